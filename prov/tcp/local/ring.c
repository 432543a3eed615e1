/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See ring.h. No lost wake-up: the writer sets wants_room and then reads `taken`; the reader writes `taken` and then
 * reads wants_room; both with a full barrier in between. So one of them sees what the other has written. The reader
 * publishes each quarter, so a writer that waits for room, behind at least three quarters of records, is told.
 */
#include "tcp/local/ring.h"

#include <errno.h>
#include "base/bits.h"
#include "tcp/local/barrier.h"

#define SPLIT_MIN	512		/* a record shorter than that is not cut at the end of the ring, or to fit */
#define LINE		64		/* bytes of a cache line */
#define FIRST_LEN	2048		/* bytes of a frame, about, that are written before it is open */
#define OPEN_LOOKS	64		/* at an open record, in one call */

_Static_assert(TCP_RING_ROOM % TCP_RING_WORD == 0, "a word is never cut");

const uint8_t *tcp_ring_peek_open(const struct tcp_ring_reader *ring, uint32_t *len)
{
	const uint32_t open = *len, all = open & ~TCP_RING_OPEN;
	const uint8_t *buf = ring->room + ring->pos + TCP_RING_WORD;

	if (!(open & TCP_RING_OPEN) || !all || all > TCP_RING_ROOM - ring->pos - TCP_RING_WORD)
		return NULL;
	for (uint32_t at = LINE; at < fab_min(all, (uint32_t) FIRST_LEN); at += LINE)
		__builtin_prefetch(buf + at);
	for (int i = 0; i < OPEN_LOOKS; i++) {
		if (atomic_load_explicit(tcp_ring_word(ring->room, ring->pos), memory_order_acquire) != all)
			continue;
		for (uint32_t at = FIRST_LEN; at < all; at += LINE)
			__builtin_prefetch(buf + at);
		*len = all;
		return buf;
	}
	*len = 0;
	return NULL;
}

bool tcp_ring_tell(struct tcp_ring_reader *ring)
{
	ring->told = ring->taken;
	atomic_store_explicit(&ring->words->taken, ring->taken, memory_order_release);
	tcp_full_barrier();
	return atomic_load_explicit(&ring->words->wants_room, memory_order_relaxed) &&
	       atomic_exchange_explicit(&ring->words->wants_room, 0, memory_order_relaxed);
}

/* The free bytes, of which the last word stays 0. UINT32_MAX: the reader has broken the ring. */
static uint32_t ring_free(struct tcp_ring_writer *ring)
{
	uint32_t taken = atomic_load_explicit(&ring->words->taken, memory_order_acquire);

	/* it only grows, and not beyond what was put */
	if (taken - ring->taken > ring->put - ring->taken)
		return UINT32_MAX;
	ring->taken = taken;
	return TCP_RING_ROOM - (ring->put - taken);
}

/* The bytes, `want` at most, that a record at the current position may have when `room` bytes are free; 0: too few. */
static uint32_t ring_fit(const struct tcp_ring_writer *ring, uint32_t room, uint32_t want)
{
	uint32_t tail = TCP_RING_ROOM - ring->pos, fit;

	if (room < 3 * TCP_RING_WORD)
		return 0;
	fit = fab_min(fab_min(room - TCP_RING_WORD, tail) - TCP_RING_WORD, want);
	return fit == want || fit >= SPLIT_MIN ? fit : 0;
}

/* Lead to the front of the ring. *room is the number of free bytes, before and after. False: they are too few. */
static bool ring_wrap(struct tcp_ring_writer *ring, uint32_t *room)
{
	uint32_t tail = TCP_RING_ROOM - ring->pos;

	if (*room < tail + TCP_RING_WORD)
		return false;
	tcp_ring_publish(ring, TCP_RING_WRAP, tail);
	*room -= tail;
	return true;
}

/* Find room for a record of at most `want` bytes; it may go to the front. Returns its bytes; 0: the ring is full. */
static uint32_t ring_reserve(struct tcp_ring_writer *ring, uint32_t room, uint32_t want)
{
	uint32_t tail = TCP_RING_ROOM - ring->pos;

	if (tail - TCP_RING_WORD < fab_min(want, (uint32_t) SPLIT_MIN) && !ring_wrap(ring, &room))
		return 0;
	return ring_fit(ring, room, want);
}

static void ring_copy(uint8_t *to, const struct iovec *iov, size_t cnt, size_t skip, size_t len)
{
	for (size_t i = 0; i < cnt && len; i++) {
		size_t n = iov[i].iov_len > skip ? iov[i].iov_len - skip : 0;

		n = fab_min(n, len);
		if (n)
			memcpy(to, (const uint8_t *) iov[i].iov_base + skip, n);
		skip = skip > iov[i].iov_len ? skip - iov[i].iov_len : 0;
		to += n;
		len -= n;
	}
}

bool tcp_ring_put_whole(struct tcp_ring_writer *ring, const void *buf, size_t len)
{
	uint8_t *place = len <= TCP_RING_ROOM / 2 ? tcp_ring_place(ring, len) : NULL;

	if (!place)
		return false;
	memcpy(place, buf, len);
	tcp_ring_publish(ring, len, tcp_ring_size(len));
	return true;
}

/* The place of a record of len bytes in one piece, at the front if need be. NULL: there is no room. */
static uint8_t *ring_claim(struct tcp_ring_writer *ring, uint32_t len)
{
	uint8_t *place = tcp_ring_place(ring, len);
	uint32_t room;

	if (__builtin_expect(place != NULL, 1))
		return place;
	room = ring_free(ring);
	if (room == UINT32_MAX || (tcp_ring_size(len) > TCP_RING_ROOM - ring->pos && !ring_wrap(ring, &room)))
		return NULL;
	return tcp_ring_place(ring, len);
}

/* memcpy() of some hundred bytes or more. A compiler that knows a limit of their number puts the string instruction in
 * its place, which takes longer to begin. */
static inline void ring_copy_long(void *to, const void *from, size_t len)
{
	__asm__("" : "+r"(len));
	memcpy(to, from, len);
}

/* The reader looks at the line of the word. So that line is written last, with the word. */
bool tcp_ring_put_frame(struct tcp_ring_writer *ring, const void *hdr, size_t hdr_len, const void *payload, size_t len)
{
	const uint32_t all = hdr_len + len;
	uint8_t *frame = ring_claim(ring, all), *to;
	const uint8_t *from = payload;
	size_t line, first;

	if (!frame)
		return false;
	to = frame + hdr_len;
	line = fab_min((size_t) (LINE - (uintptr_t) to % LINE), len);
	first = fab_min(line + FIRST_LEN, len);
	ring_copy_long(to + line, from + line, first - line);
	memcpy(frame, hdr, hdr_len);
	memcpy(to, from, line);
	if (first < len) {
		atomic_store_explicit(tcp_ring_word(ring->room, ring->pos), TCP_RING_OPEN | all, memory_order_release);
		memcpy(to + first, from + first, len - first);
	}
	tcp_ring_publish(ring, all, tcp_ring_size(all));
	return true;
}

/* By stores: a prefetch that is to write brings the lines of another core's cache late, or not. */
void tcp_ring_own_next(struct tcp_ring_writer *ring, uint32_t size)
{
	uint8_t *place = tcp_ring_place(ring, size);

	if (!place && ring_free(ring) != UINT32_MAX)
		place = tcp_ring_place(ring, size);
	for (uint32_t at = LINE; place && at < size; at += LINE)
		*(volatile uint8_t *) (place + at) = 0;
}

ssize_t tcp_ring_put(struct tcp_ring_writer *ring, const struct iovec *iov, size_t cnt, size_t len)
{
	size_t done = 0;

	while (done < len) {
		uint32_t want = fab_min(len - done, (size_t) TCP_RING_ROOM);
		uint32_t room = TCP_RING_ROOM - (ring->put - ring->taken);
		uint32_t fit = ring_reserve(ring, room, want);

		if (fit < want) {
			room = ring_free(ring);
			if (room == UINT32_MAX)
				return -EPROTO;
			fit = ring_reserve(ring, room, want);
		}
		if (!fit)
			break;
		ring_copy(tcp_ring_next(ring), iov, cnt, done, fit);
		tcp_ring_publish(ring, fit, tcp_ring_size(fit));
		done += fit;
	}
	return done || !len ? (ssize_t) done : -EAGAIN;
}

bool tcp_ring_want_room(struct tcp_ring_writer *ring)
{
	uint32_t room;

	atomic_store_explicit(&ring->words->wants_room, 1, memory_order_relaxed);
	tcp_full_barrier();
	room = ring_free(ring);
	return room >= TCP_RING_ROOM / 4;
}
