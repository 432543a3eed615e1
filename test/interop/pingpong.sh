# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Our fi_pingpong on our library against theirs on theirs; sourced by a script for each endpoint type.

. "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
ours=("$util/fi_pingpong" -T 20)
our_provider=${INTEROP_PROVIDER:-tcp}

# exchange NAME ROWS OPTION...: both directions, data checked.
exchange() {
	local name=$1 rows=$2

	shift 2
	start_their_server "${their_pingpong[@]}" -p "$their_provider" "$@"
	run "${ours[@]}" -p "$our_provider" "$@" -P "$port" 127.0.0.1
	expect_pair "$name: our client, their server" "$rows"
	start_server "${ours[@]}" -p "$our_provider" "$@"
	run timeout 100 "${their_pingpong[@]}" -p "$their_provider" "$@" -P "$port" 127.0.0.1
	expect_pair "$name: their client, our server" "$rows"
}

# interop TYPE: plain and tagged messages, every size.
interop() {
	local type=$1 mode

	their_provider=$(provider_of_theirs "$type")
	offers "$util/fi_info" -p "$our_provider" -t "$type" || skip_all "fi_info -p $our_provider -t $type finds nothing"
	for mode in msg tagged; do
		if ! offers "${their_info[@]}" -p "$their_provider" -t "FI_EP_${type^^}" -c "FI_${mode^^}"; then
			tap_skip "$type, $mode" "their $their_provider has no $mode messages on $type endpoints"
			continue
		fi
		exchange "$type, $mode, all sizes" 46 -e "$type" -m "$mode" -c -S all -I 3
		exchange "$type, $mode, 8 MiB" 1 -e "$type" -m "$mode" -c -S 8388608 -I 3
		exchange "$type, $mode, many small ones" 1 -e "$type" -m "$mode" -c -S 8 -I 1000
	done
	tap_done
}
