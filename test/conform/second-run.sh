# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# For the runs that second-runs lists; sourced.

# second_run NAME ARGS...: $tests are the patterns of the tests of run NAME, or nothing if ARGS name some.
second_run() {
	set -f
	tests=$(sed -n "s/^$1	\\(.*\\) | .*/\\1/p" "$srcdir/test/conform/second-runs")
	[ "$tests" ] || { echo "Bail out! test/conform/second-runs does not list $1"; exit 99; }
	shift
	for arg; do
		case $arg in
		/* | -*) ;;
		*/*) tests= ;;
		esac
	done
}
