# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# What the tests of the utilities share; sourced. Sets util (the folder of our programs), and out and err, files that
# hold what the command of the last `run` printed, with its exit code in `code`.

. "$(dirname "${BASH_SOURCE[0]}")/../abi/tap.sh"
util=${UTIL_DIR:-${builddir:-.}/util}
out=$work/stdout
err=$work/stderr
server_pid=
trap '[ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null; rm -rf "$work"' EXIT

# Programs print their own reasons; these would only repeat them.
export FI_LOG_LEVEL=${FI_LOG_LEVEL:-error}

run() {
	"$@" >"$out" 2>"$err"
	code=$?
}

# verdict NAME WHY: that test is well, or WHY says what is not; then what the programs have said follows.
verdict() {
	if [ -z "$2" ]; then
		tap_ok "$1"
	else
		{ echo "$2"; head -n 40 "$out" "$err" "$work"/server.* 2>/dev/null; } >"$work/why"
		tap_fail "$1" "$work/why"
	fi
}

# expect NAME CODE [PATTERN FILE]...: the last `run` ended with CODE (`!0` for any but 0), and each FILE has a line like
# PATTERN.
expect() {
	local name=$1 want=$2 bad=

	shift 2
	[ "$code" = "$want" ] || { [ "$want" = '!0' ] && [ "$code" -gt 0 ] && [ "$code" -lt 126 ]; } ||
		bad="exit code $code, not $want"
	for (( ; $# > 1 && ${#bad} == 0; )); do
		grep -qE -- "$1" "$2" || bad="no line like '$1' in $(basename "$2")"
		shift 2
	done
	verdict "$name" "$bad"
}

# expect_json NAME PYTHON: stdout of the last `run` is JSON, for which, as `x`, the expression holds.
expect_json() {
	tap_run "$1" python3 -c 'import json, sys
x = json.load(open(sys.argv[1]))
assert eval("(" + sys.argv[2] + ")"), json.dumps(x, indent=1)[:4000]' "$out" "$2"
}

# wait_for COMMAND...: until COMMAND succeeds; fails when the server is gone, or after 30 seconds.
wait_for() {
	local tries=600

	until "$@" 2>/dev/null; do
		kill -0 "$server_pid" 2>/dev/null && [ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.05
	done
}

# listens PORT: does a TCP socket of this machine listen there?
listens() {
	grep -qiE "^ *[0-9]+: [0-9A-F]+:$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6
}

# A port that nobody has, of those that the system gives nobody by itself: it is free until whoever is told of it takes it.
free_port() {
	python3 -c 'import random, socket
first = int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])
while True:
    try:
        s = socket.socket()
        s.bind(("", random.randrange(10000, first) if first > 12000 else 0))
        print(s.getsockname()[1])
        break
    except OSError:
        pass'
}

# start_server COMMAND...: one of our fi_pingpong's, in the background; its port is then in `port`.
start_server() {
	rm -f "$work/port"
	"$@" -B 0 --port-file "$work/port" >"$work/server.out" 2>"$work/server.err" &
	server_pid=$!
	wait_for test -s "$work/port" || return
	port=$(cat "$work/port")
}

# start_their_server COMMAND...: the same with upstream's, which has no free port of its own choice.
start_their_server() {
	port=$(free_port)
	"$@" -B "$port" >"$work/server.out" 2>"$work/server.err" &
	server_pid=$!
	wait_for listens "$port"
}

# end_server: wait for the end of the server; its exit code.
end_server() {
	local status

	wait "$server_pid"
	status=$?
	server_pid=
	return $status
}

# expect_pair NAME ROWS: after start_server and the `run` of a client both have ended well, each with a result for ROWS sizes,
# all messages acknowledged.
expect_pair() {
	local name=$1 rows=$2 file bad=

	end_server || bad="server: exit code $?"
	[ "$code" = 0 ] || bad="$bad client: exit code $code"
	for file in "$out" "$work/server.out"; do
		[ "$(awk '$3 ~ /^=/ { rows++ } END { print rows + 0 }' "$file")" = "$rows" ] || bad="$bad $(basename "$file"): not $rows rows"
	done
	verdict "$name" "$bad"
}

# offers PROGRAM OPTION...: does fi_info list anything? PROGRAM may be a command of several words in an array.
offers() {
	"$@" >/dev/null 2>&1
}
