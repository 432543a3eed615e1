# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What the tests against the distribution's libfabric share; sourced. Sets, as commands in arrays: their_pingpong and
# their_info (their programs on their library), borrowed_pingpong and borrowed_info (their programs on our library).
# Without their packages the script ends, skipped.

. "$(dirname "${BASH_SOURCE[0]}")/../util/util.sh"

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# file_of PACKAGE SUFFIX: the file of an installed package whose path ends so.
file_of() {
	dpkg -L "$1" 2>/dev/null | grep -m 1 -- "$2\$"
}

command -v dpkg >/dev/null || skip_all "this is no Debian: there is no dpkg to find their libfabric"
their_library=$(file_of libfabric1 /libfabric.so.1) && pingpong_path=$(file_of libfabric-bin /bin/fi_pingpong) &&
	info_path=$(file_of libfabric-bin /bin/fi_info) ||
	skip_all "their libfabric is not installed (packages libfabric1 and libfabric-bin)"

# Only the providers that are compared: the others take a second to find that they have no hardware.
theirs=(env -u FI_PROVIDER_PATH -u LD_PRELOAD "LD_LIBRARY_PATH=${their_library%/*}" FI_PROVIDER=tcp,net,udp)
their_pingpong=("${theirs[@]}" "$pingpong_path")
their_info=("${theirs[@]}" "$info_path")

our_library
our_folder=$(cd "$(dirname "$so")" && pwd)
borrowed=(env "LD_LIBRARY_PATH=$our_folder")
if [ "$BUILD_KIND" = asan ]; then
	# A program without the sanitizer needs its runtime first, and what it leaks itself is not our matter.
	borrowed+=("LD_PRELOAD=$($CC -print-file-name=libasan.so)" "ASAN_OPTIONS=detect_leaks=0")
elif [ "$BUILD_KIND" = tsan ]; then
	borrowed+=("LD_PRELOAD=$($CC -print-file-name=libtsan.so)")
fi
borrowed_pingpong=("${borrowed[@]}" "$pingpong_path")
borrowed_info=("${borrowed[@]}" "$info_path")

# What the tcp of 2.x is, their 1.17 has in two: messages under the name tcp, RDM under the name net. Datagrams: udp in both.
# Layers have the same name, and are told by their_provider.
provider_of_theirs() {
	case ${their_provider:+named}$1 in
	named*) echo "$their_provider" ;;
	rdm) echo net ;;
	dgram) echo udp ;;
	*) echo tcp ;;
	esac
}
