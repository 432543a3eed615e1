# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# For the runs on memory of a device (test/hmem); sourced.

export CONFORM_HMEM="${CONFORM_HMEM:-cuda}"
export LD_LIBRARY_PATH="$builddir/test/hmem/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
