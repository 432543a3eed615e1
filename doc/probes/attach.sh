# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What the scripts of this folder share; sourced. Takes PID [SECONDS] as arguments of the script, and needs bpftrace.

pid=${1-} seconds=${2-10}
case $pid in
'' | *[!0-9]*) sed -n '4,/^$/s/^# \?//p' "$0" >&2; exit 2 ;;
esac
[ -e "/proc/$pid/maps" ] || { echo "$0: there is no process $pid, or it is another user's" >&2; exit 1; }
command -v bpftrace >/dev/null || { echo "$0: bpftrace is not installed" >&2; exit 1; }

# The files of the process with probes: libfabric, and its providers as DSOs. Each probe asks for the process, and bpftrace
# attaches to that process alone (-p) where there is one file: of several it would look for the probes of all in each.
files=$(sed -nE 's#^.* r-xp [^/]* (/.*/(libfabric\.so[^/]*|lib[^/]*-fi\.so))$#\1#p' "/proc/$pid/maps" | sort -u)
one_file=
[ "$(echo "$files" | wc -l)" -gt 1 ] || one_file=1

# What says that all of a program is attached; it stands behind the other probes.
ready="interval:ms:100 /!@ready/ { @ready = 1; printf(\"tracing process $pid for $seconds s\\n\"); }"

# at NAME: the attach points of a probe, joined by commas.
at() {
	local file points=

	for file in $files; do
		[ -z "$(bpftrace -l "usdt:$file:weft:$1" 2>/dev/null)" ] || points="$points${points:+, }usdt:$file:weft:$1"
	done
	[ -n "$points" ] || { echo "$0: process $pid has no probe $1: its libfabric is not weft, built with --enable-probes" >&2; return 1; }
	echo "$points"
}
