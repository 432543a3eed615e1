# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What calls cost beside the device, in instructions, counted by callgrind on the stand-in, of ours and of the distribution's
# library; sourced. The program to count, $source, calls each function that is asked for as often as it prints. With
# valgrind's header it is told where counting begins, which makes what comes before four times as fast (callcount.h).

. "$srcdir/test/interop/interop.sh"
soft=$builddir/test/softverbs/.libs
export SYSFS_PATH=$srcdir/test/softverbs/sys
[ "$BUILD_KIND" = release ] || skip_all "counted in a release build"
[ -e "$soft/librdmacm.so.1" ] || skip_all "not built: libibverbs-dev and librdmacm-dev are missing"
command -v valgrind >/dev/null || skip_all "there is no valgrind"
# one program for both libraries: built with theirs, which is the older
read -ra cc <<<"$CC"
flags=(-D_GNU_SOURCE -O2 -g "-I$srcdir/test/softverbs")
late=()
if echo '#include <valgrind/callgrind.h>' | "${cc[@]}" -E - >/dev/null 2>&1; then
	flags+=(-DCALLCOUNT_VALGRIND)
	late=(--instr-atstart=no)
fi
"${cc[@]}" "${flags[@]}" -o "$work/callcount" "$source" "$their_library" 2>"$work/cc" ||
	skip_all "no program with their libfabric: $(head -n 1 "$work/cc")"
# What of a call is not its own: the device's, and what goes by the clock: looks for events of connections, and through what is
# pending, and the event of a gap. None of these calls another.
not_counted='^(sv_(post_send|post_recv|post_srq_recv|poll_cq)|rxm_conn_event|look_fire|fab_stats_gap|fab_survey_run)$'
declare -A counted			# what is known, by its circumstances

# Valgrind runs one thread at a time. Only with fair scheduling does the device's thread get its turn while the program
# looks: otherwise the program, which lets go and takes again at once, may keep the processor until the test is over.
callgrind=(valgrind --tool=callgrind --fair-sched=try)
"${callgrind[@]}" --callgrind-out-file="$work/callgrind.none" true >/dev/null 2>&1 || skip_all "callgrind does not run here"
# The counting thread's clock stands, the device's does not, so a request looks old to it that is not.
export SOFTVERBS_LIMITS=silence=600000

# instructions FUNCTION LIBRARIES: per call of FUNCTION, without what is not its own, into $count.
instructions() {
	local all other of="$1 $2 ${CALLCOUNT_IDLE-} ${CALLCOUNT_PEERS-}"

	count=${counted[$of]-}
	[ -z "$count" ] || return 0
	run env -u LD_PRELOAD "LD_LIBRARY_PATH=$soft:$2" timeout 100 "${callgrind[@]}" \
		"${late[@]}" --callgrind-out-file="$work/callgrind.out" --toggle-collect="$1" "$work/callcount"
	[ "$code" = 0 ] || return
	# without the annotated source: its lines name called functions, with their counts
	callgrind_annotate --auto=no --inclusive=yes --threshold=100 "$work/callgrind.out" >"$work/table" 2>/dev/null
	all=$(awk '/PROGRAM TOTALS/ { gsub(",", "", $1); print $1; exit }' "$work/table")
	# a function has a line for each file that its code comes from: the one of its own file has the largest count
	other=$(awk -v "what=$not_counted" '
		{ sub(/\( +/, "(") }		# "( 8.09%)" is one field, as "(18.09%)" is
		split($3, part, ":") == 2 && part[2] ~ what { gsub(",", "", $1); if ($1 > most[part[2]]) most[part[2]] = $1 + 0 }
		END { for (name in most) sum += most[name]; print sum + 0 }' "$work/table")
	[ -n "$all" ] || return
	count=$(((all - other) / $(cat "$out")))
	[ "$count" -gt 0 ] && counted[$of]=$count
}

# need_provider FUNCTION: skip all where our library has not the provider.
need_provider() {
	instructions "$1" "$our_folder" || [ "$code" != 77 ] || skip_all "this build of libfabric has no such provider"
}

# at_most NAME COUNT LIMIT
at_most() {
	echo "# $1: $2"
	echo "$2, and at most $3 are allowed" >"$work/why"
	if [ "$2" -le "$3" ]; then tap_ok "$1"; else tap_fail "$1" "$work/why"; fi
}

# not_run WHAT: the last call of instructions() failed.
not_run() {
	tap_fail "$1" "$err"
	false
}

# ours FUNCTION WHAT LIMIT: of ours, at most LIMIT, into $count
ours() {
	instructions "$1" "$our_folder" || { not_run "$2"; return; }
	at_most "$2" "$count" "$3"
}

# compare FUNCTION WHAT LIMIT PERCENT: the same, and at most PERCENT of theirs
compare() {
	local own

	ours "$1" "$2" "$3" || return
	own=$count
	instructions "$1" "${their_library%/*}" || { not_run "$2: $4% of theirs"; return; }
	echo "# theirs: $count, ours are $((own * 100 / count))%"
	at_most "$2: $4% of theirs" "$own" $((count * $4 / 100))
}
