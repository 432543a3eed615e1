# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What the tests of a build folder came to, from the .trs and .log files that automake leaves, and the second run of those that
# failed. Sourced by ./check after config/steps.sh, and by test/harness.

retried=()	# tests that passed in their second run only, as FOLDER/NAME

# results_of DIR: the totals of the tests that ran there: passed failed skipped. A test whose status says what its lines said
# already is not counted twice.
results_of() {
	find "$1" -name '*.trs' -exec awk '
		FNR == 1 { bad += fail ? fail : error; fail = error = 0 }
		/^:test-result: (PASS|XFAIL)/ { ok++ }
		/^:test-result: (FAIL|XPASS)/ { fail++ }
		/^:test-result: ERROR/ { error++ }
		/^:test-result: SKIP/ { skip++ }
		END { print ok + 0, bad + (fail ? fail : error), skip + 0 }' {} +
}

failed_trs() { grep -lrE --include='*.trs' '^:test-result: (FAIL|XPASS|ERROR)' "$1"; }

# once_more DIR COMMAND_PREFIX...: give those tests of DIR that failed their second run, where they may have one. The log of the
# first stays beside that of the second, as NAME.log.first. With no_second_run set nothing is run again: for a leg whose target
# is not check, or whose tests are thousands in one.
once_more() {
	local dir=$1 trs names=() name

	shift
	[ -z "${no_second_run:-}" ] || return
	for trs in $(failed_trs "$dir"); do
		grep -qE '(ERROR|WARNING): [A-Za-z]+Sanitizer|runtime error:|ended by (SIG|signal)|Assertion .* failed' "${trs%.trs}.log" && return
		name=${trs#"$dir"/}
		names+=("${name%.trs}")
	done
	[ ${#names[@]} -le 3 ] || return
	for name in "${names[@]}"; do
		cp "$dir/$name.log" "$dir/$name.log.first"
		"$@" make -C "$dir" check TESTS="$name" >"$step_log" 2>&1 </dev/null && retried+=("$dir/$name")
	done
}
