# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What the tests with Open MPI share; sourced. The distribution's Open MPI, as it was built, over our libfabric.so.1, in a
# network of the test's own: Open MPI wants an interface that leads elsewhere, and `lo` does not. The network is a
# namespace, and so are the processes: none outlives the script.
#
# CLIENT_PROVIDER names the provider (default: tcp); one over verbs is on the stand-in for a device (test/softverbs).
# Sets `messages` (options of mpirun: all messages by the MTL ofi), and the functions below. `how` is part of the tests'
# names.

. "$(dirname "${BASH_SOURCE[0]}")/../util/util.sh"
programs=${builddir:-.}/test/client

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# An interface with an address, of whichever kind this kernel has.
make_interface() {
	ip link set lo up &&
	{ ip link add weft0 type bridge || ip link add weft0 type dummy ||
	  ip link add weft0 type veth peer name weft1; } &&
	{ [ ! -e /sys/class/net/weft1 ] || ip link set weft1 up; } &&
	ip address add 10.77.0.1/24 dev weft0 && ip link set weft0 up
}

[ "$BUILD_KIND" != tsan ] || skip_all "Open MPI was built without ThreadSanitizer"
[ -x "$programs/carried" ] || skip_all "configured without Open MPI (packages openmpi-bin and libopenmpi-dev)"
mpirun=$(command -v mpirun.openmpi) || skip_all "there is no mpirun.openmpi (package openmpi-bin)"
have ip unshare || skip_all "there is no ip or no unshare (packages iproute2, util-linux)"
if [ -z "$CLIENT_NETWORK" ]; then
	[ "$(id -u)" = 0 ] && user= || user=--map-root-user
	namespaces=(unshare $user --net --pid --fork --kill-child --mount-proc)
	"${namespaces[@]}" true 2>"$err" || skip_all "no namespaces here: $(head -n 1 "$err")"
	rm -rf "$work"
	CLIENT_NETWORK=yes exec "${namespaces[@]}" "$0" "$@"
fi
make_interface 2>"$err" || skip_all "no network of our own here: $(tail -n 1 "$err")"

our_library
so=$(readlink -f "$so")
provider=${CLIENT_PROVIDER:-tcp}
libraries=${so%/*}
carrier=()
if [[ $provider = verbs* ]]; then
	[ "$BUILD_KIND" != asan ] || skip_all "a device that has no sanitizer under a library that has"
	device=$(readlink -f "$builddir/test/softverbs/.libs/libibverbs.so.1") && [ -e "$device" ] ||
		skip_all "not built: libibverbs-dev and librdmacm-dev are missing"
	libraries=$libraries:${device%/*}
	carrier=(-x "CLIENT_DEVICE=$device" -x "SYSFS_PATH=$srcdir/test/softverbs/sys" -x SOFTVERBS_DEVICES=soft0=10.77.0.1)
fi
[ "$provider" = tcp ] || carrier+=(-x "FI_PROVIDER=$provider")
# Ranks get our library, mpirun keeps its own. A rank that waits gives way. What Open MPI leaks is not our matter.
launch=(timeout 115 "$mpirun" --allow-run-as-root --oversubscribe --mca orte_tmpdir_base "$work" --mca plm isolated
	--mca mpi_yield_when_idle 1
	--mca opal_common_ofi_provider_include "$provider" --mca mtl_ofi_provider_include "$provider"
	"${carrier[@]}" -x "LD_LIBRARY_PATH=$libraries" -x "CLIENT_LIBRARY=$so" -x FI_LOG_LEVEL=warn
	-x "ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0")
messages=(--mca pml cm --mca mtl ofi --mca btl self)
how=

# job RANKS OPTION... -- PROGRAM ARG...: run it. Output in `out` and `err`, exit code in `code`.
job() {
	local cnt=$1 options=()

	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	run "${launch[@]}" -n "$cnt" "${options[@]}" "$programs/$1" "${@:2}" </dev/null
}

# result NAME WRONG: the last job, as a test; it failed where WRONG, which says why, is not empty.
result() {
	if [ -z "$2" ]; then
		tap_ok "$1"
	else
		{ echo "$2"; head -n 200 "$err"; head -n 20 "$out"; } >"$work/why"
		tap_fail "$1" "$work/why"
	fi
}

# cases RANKS OPTION... -- PROGRAM ARG...: each case of the program that all ranks passed is a test; and one more: the job
# ends well, and our library has nothing to warn of.
cases() {
	local cnt=$1 all="$*" name wrong= passed

	name=${all##* -- }${how:+ $how}
	case $name in
	carried*) FI_TCP_LOCAL=0 job "$@" ;;	# it counts what goes over TCP
	*) job "$@" ;;
	esac
	while read -r passed; do
		tap_ok "$name, $cnt ranks: $passed"
	done < <(sed -n 's/^done //p' "$out")
	[ "$code" = 0 ] || wrong="exit code $code"
	! grep -q '^libfabric:' "$err" || wrong="$wrong; the library complains"
	grep -q '^done ' "$out" || wrong="$wrong; no case passed"
	result "$name, $cnt ranks, ends well" "$wrong"
}
