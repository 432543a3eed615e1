/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The decoders of the first bytes of a peer, alone and in a loop: many millions of inputs a second, where a fuzzer that
 * plays a whole connection makes some thousands. What they answer is compared with a second description of the format,
 * written byte by byte. One thread.
 */
#ifndef TEST_FUZZ_DECODE_H
#define TEST_FUZZ_DECODE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "base/bits.h"
#include "fuzz/fuzz.h"

/* Random bytes from a seed, and the bytes of a corpus (never fewer than one input needs). */
struct decode {
	uint64_t random;
	const uint8_t *corpus;
	size_t corpus_len;
};

static inline uint64_t decode_draw(struct decode *decode)
{
	decode->random += UINT64_C(0x9e3779b97f4a7c15);
	return fab_mix64(fab_mix64(decode->random));
}

/* Overwrite an input with bytes of the corpus, from a random place on. */
static inline void decode_from_corpus(struct decode *decode, uint8_t *input, size_t len)
{
	const uint8_t *from = decode->corpus + decode_draw(decode) % (decode->corpus_len - len);

	for (size_t i = 0; i < len; i++)
		input[i] = from[i];
}

/* Change some bits of some bytes. */
static inline void decode_change(struct decode *decode, uint8_t *input, size_t len)
{
	for (uint64_t left = decode_draw(decode) & 3; left; left--) {
		uint64_t how = decode_draw(decode);
		uint8_t *byte = &input[how % len];

		*byte = (uint8_t) (how & 1 << 20 ? how >> 24 : *byte ^ UINT64_C(1) << (how >> 24 & 7));
	}
}

/* Play cnt inputs. Returns how many the decoder took for valid; a broken promise aborts. */
uint64_t decode_frames(struct decode *decode, uint64_t cnt);
uint64_t decode_hellos(struct decode *decode, uint64_t cnt);

#endif
