/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first bytes of a tcp connection, whoever began it: requests, answers, refusals, challenges and proofs. An
 * input is four bytes like those of tcp_stream.c, and then all that the peer ever says.
 *
 *   byte 0   1 the endpoint connects, 2 it has an authorization key, 4 MSG, 8 it has receive contexts, 16 the peer
 *   is in no
 *            address vector
 */
#include "fuzz/fuzz.h"

#include <stdbool.h>
#include "fuzz/tcp_play.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t how = fuzz_byte(&data, &len);
	struct tcp_play play = {
		.dial = how & 1, .keyed = how & 2, .msg = how & 4, .scalable = !(how & 4) && (how & 8),
		.stranger = how & 16,
	};

	play_bytes(&play, &data, &len);
	tcp_play(&play, data, len);
	return 0;
}
