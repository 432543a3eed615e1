# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# For the runs over the stand-in for a device; sourced. Under AddressSanitizer tests that take long, which wait rather than do,
# are left out.

# soft_conform NAMES ARGS...: run conform so; under AddressSanitizer the tests of these names, where the arguments have none.
soft_conform() {
	names=$1
	shift
	case $BUILD_KIND in
	tsan)
		echo "1..0 # SKIP tests run in a process forked from one with threads, which ThreadSanitizer does not follow (verbs-mt is for it)"
		exit 0 ;;
	asan)
		for arg; do case $arg in /* | -*) ;; */*) names= ;; esac; done
		set -f
		set -- "$@" $names ;;
	esac
	soft_exec conform --except "$srcdir/test/conform/softverbs.except" "$@"
}

# soft_mt ARGS...: run conform-mt so. All tests are one process, so that ThreadSanitizer can follow.
soft_mt() {
	[ "$BUILD_KIND" != asan ] || { echo "1..0 # SKIP one process; the other runs of verbs look for what AddressSanitizer finds"; exit 0; }
	soft_exec conform-mt --threading safe "$@"
}

# soft_exec PROGRAM ARGS...: become this program of test/conform, with the stand-in's libraries.
soft_exec() {
	. "$srcdir/test/softverbs/device.sh"
	program=$1
	shift
	exec env SOFTVERBS_STATUS= SYSFS_PATH="$srcdir/test/softverbs/sys" LD_LIBRARY_PATH="$soft${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
		"$builddir/test/conform/$program" "$@"
}
