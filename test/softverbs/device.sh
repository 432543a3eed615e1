# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# For tests on the stand-in; sourced. $soft becomes the LD_LIBRARY_PATH of the device that SOFTVERBS_DEVICE names.
soft=$builddir/test/softverbs/.libs
[ "$SOFTVERBS_DEVICE" != rdma-core-27 ] || soft=$builddir/test/softverbs/27/.libs:$soft
