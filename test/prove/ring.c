/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring whose other end writes what it likes: at every position a record that is read lies within the ring, and the
 * writer never counts more free bytes than the ring has.
 *
 * eva: -eva-slevel 20 -eva-slevel-function main:0 -eva-domains equality
 * eva: -eva-equality-through-calls all
 */
#include "prove.h"
#include "tcp/local/ring.c"

static struct tcp_ring_words words;
static _Alignas(8) uint8_t room[TCP_RING_ROOM];

static void prove_record(uint32_t pos, uint32_t word)
{
	struct tcp_ring_reader in = { .words = &words, .room = room, .pos = pos };
	uint32_t len = 0;
	const uint8_t *record;

	*tcp_ring_word(room, pos) = word;
	in.taken = any_of(0, UINT32_MAX);
	in.told = any_of(0, UINT32_MAX);
	record = tcp_ring_peek(&in, &len);
	if (record) {
		prove_readable(record, len);
		tcp_ring_take(&in, len);
		prove(in.pos < TCP_RING_ROOM);
		prove(in.pos % TCP_RING_WORD == 0);
	}
	any_bytes(room + pos, sizeof(word));
}

/* A word that leads to the front is a case of its own: the record then is at the front, where any word may stand. */
static void prove_wrap(uint32_t pos)
{
	struct tcp_ring_reader in = { .words = &words, .room = room, .pos = pos };
	uint32_t len = 0;
	const uint8_t *record;

	*tcp_ring_word(room, pos) = TCP_RING_WRAP;
	record = tcp_ring_peek(&in, &len);
	prove(in.pos == 0);
	if (record)
		prove_readable(record, len);
	any_bytes(room + pos, sizeof(uint32_t));
}

/* `used` bytes were put and not taken, as far as the writer knows. */
static void prove_writer(uint32_t used)
{
	struct tcp_ring_writer out = { .words = &words, .room = room, .put = used };
	uint32_t free_len = ring_free(&out);

	prove(free_len == UINT32_MAX || free_len <= TCP_RING_ROOM);
}

int main(void)
{
	any_bytes(room, sizeof(room));
	any_bytes(&words, sizeof(words));
	//@ loop unroll 4000;
	for (uint32_t pos = 0; pos < TCP_RING_ROOM; pos += TCP_RING_WORD) {
		prove_record(pos, any_of(0, UINT32_MAX - (pos != 0)));
		if (pos)
			prove_wrap(pos);
		prove_writer(pos);
	}
	reached();
	return 0;
}
