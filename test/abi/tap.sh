# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What the .test scripts of this folder share; sourced, after which the current folder is unchanged. Sets abi (this
# folder), top (the source tree) and work (a scratch folder, removed at exit).

abi=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$abi/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tap_cnt=0
tap_bad=0

# tap_ok NAME: the test NAME passed.
tap_ok() { echo "ok $((++tap_cnt)) - $1"; }

# tap_fail NAME [FILE]: the test NAME failed; FILE says how.
tap_fail() {
	echo "not ok $((++tap_cnt)) - $1"
	((++tap_bad))
	[ -z "$2" ] || sed 's/^/# /' "$2"
}

# tap_skip NAME WHY: the test NAME cannot run on this machine.
tap_skip() { echo "ok $((++tap_cnt)) - $1 # SKIP $2"; }

# tap_run NAME COMMAND...: run COMMAND; it passes when it exits with 0, else its output says how it failed.
tap_run() {
	local name=$1

	shift
	if "$@" >"$work/out" 2>&1; then tap_ok "$name"; else tap_fail "$name" "$work/out"; fi
}

# tap_done: the plan, and the end of the script.
tap_done() {
	echo "1..$tap_cnt"
	exit $((tap_bad > 0))
}

# have TOOL...: are all of them installed?
have() { command -v "$@" >/dev/null && [ "$(command -v "$@" | wc -l)" -eq $# ]; }

# public_headers API DIR: put the headers as they are installed for that API (2.6 or 2.7) into DIR/rdma.
public_headers() {
	local header

	for header in $(cd "$top/include" && find rdma -name '*.h'); do
		[ "$1" = 2.6 ] && [[ $header = rdma/fi_xpu* ]] && continue
		mkdir -p "$2/$(dirname "$header")"
		"$top/include/pick" "$1" "$top/include/$header" >"$2/$header" || return 1
	done
}

# linked_api: the API whose headers the build installs, and to whose symbols it links new programs.
linked_api() {
	if grep -qs '^#define API_2_7' "${builddir:-.}/config.h"; then echo 2.7; else echo 2.6; fi
}

# table_of API: the name that the tables have for it.
table_of() { if [ "$1" = 2.7 ]; then echo 2.7.0a1; else echo 2.6.0; fi; }

# our_library: the libfabric.so.1 under test, in $so; without one the script ends.
our_library() {
	so=${LIBFABRIC_SO:-${builddir:-.}/.libs/libfabric.so.1}
	[ -e "$so" ] && return
	if grep -qs "^dlname=''" "${builddir:-.}/libfabric.la"; then
		tap_skip "everything" "a build without shared library"
		tap_done
	fi
	tap_fail "$so exists (build first, or set LIBFABRIC_SO)"
	tap_done
}
