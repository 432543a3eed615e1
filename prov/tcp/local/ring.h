/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One direction of a stream in shared memory: a ring of records with one writer and one reader. A record is a word, its
 * length, and the bytes. The stream may be cut into records anywhere.
 *
 *   | len | bytes ... | len | bytes ... | 0 |          | WRAP |
 *
 * The word 0 ends the records; the writer sets the next word to 0 before it publishes a record by its length. So the
 * reader looks at one word, in the cache line of the bytes. WRAP: the next record is at the front. The reader publishes
 * how much it has taken once for each quarter of the ring.
 *
 * A frame of some KiB is one record. The writer writes its first part, OPEN with the length, the rest, and then the
 * length. OPEN is no record yet: it lets the reader fetch the cache lines of the first part while the writer is still
 * at the rest.
 *
 * Either end may be hostile to the other. Each reads a word of the other once, and checks it. Bytes may change while
 * they are read. Positions are kept in private memory.
 */
#ifndef TCP_RING_H
#define TCP_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include "base/bits.h"
#include "tcp/local/windows.h"

#define TCP_RING_ROOM	30592		/* bytes for records (pair.h) */
#define TCP_RING_WORD	8		/* bytes of a word with its padding; records are aligned to that */
#define TCP_RING_WRAP	UINT32_MAX
#define TCP_RING_OPEN	0x80000000u	/* with the length */
#define TCP_RING_FRAME_MAX	8192	/* bytes of payload of a frame that tcp_ring_put_frame() takes */

/* Shared, zeroed at first, as the room for records is. The words of each end are in a cache line of their own. */
struct tcp_ring_words {
	_Alignas(64) _Atomic uint32_t taken;	/* by the reader: bytes taken so far, modulo 2^32 */
	/* by the reader: of these, when it last had handled all of its records. Always told, unlike `taken` */
	_Atomic uint32_t handled;
	struct tcp_permit permit;		/* by the reader: for remote accesses of the writer */
	_Alignas(64) _Atomic uint32_t wants_room;	/* by the writer: the ring was full; by the reader: 0 again */
	_Atomic uint32_t busy;			/* by the writer: windows.h */
};

/* Both ends begin at the same position, at any word. */
struct tcp_ring_writer {
	struct tcp_ring_words *words;	/* borrowed, shared */
	uint8_t *room;			/* borrowed, shared: TCP_RING_ROOM bytes */
	uint32_t pos;			/* of the next record */
	uint32_t put;			/* bytes written so far, modulo 2^32 */
	uint32_t taken;			/* words->taken when it was read last */
};

struct tcp_ring_reader {
	struct tcp_ring_words *words;	/* borrowed, shared */
	uint8_t *room;			/* borrowed, shared */
	uint32_t pos;			/* of the next record */
	uint32_t taken;			/* bytes taken so far, modulo 2^32 */
	uint32_t told;			/* of these published */
};

/* Bytes in the ring of a record with len bytes. */
static inline uint32_t tcp_ring_size(uint32_t len)
{
	return TCP_RING_WORD + fab_align(len, TCP_RING_WORD);
}

static inline _Atomic uint32_t *tcp_ring_word(uint8_t *room, uint32_t pos)
{
	return (_Atomic uint32_t *) (room + pos);
}

/* ---- the reader ---- */

/*
 * The next record, which stays in the ring until tcp_ring_take(). NULL with *len 0: there is none. NULL with another
 * *len: it is open, or the writer has broken the ring; tcp_ring_peek_open() knows.
 */
static inline const uint8_t *tcp_ring_peek(struct tcp_ring_reader *ring, uint32_t *len)
{
	uint32_t word = atomic_load_explicit(tcp_ring_word(ring->room, ring->pos), memory_order_acquire);

	if (__builtin_expect(word == TCP_RING_WRAP && ring->pos, 0)) {
		ring->taken += TCP_RING_ROOM - ring->pos;
		ring->pos = 0;
		word = atomic_load_explicit(tcp_ring_word(ring->room, 0), memory_order_acquire);
	}
	*len = word;
	if (!word || __builtin_expect(word > TCP_RING_ROOM - ring->pos - TCP_RING_WORD, 0))
		return NULL;
	return ring->room + ring->pos + TCP_RING_WORD;
}

/* After tcp_ring_peek(), with its *len, which was not 0: wait a little for the end of an open record. As that, but with
 * *len 0 if it is still open; otherwise the writer has broken the ring. */
const uint8_t *tcp_ring_peek_open(const struct tcp_ring_reader *ring, uint32_t *len);

/* Publish what was taken. True: the writer waits for room, and is to be told. */
bool tcp_ring_tell(struct tcp_ring_reader *ring);

/* Take the record of len bytes that tcp_ring_peek() has returned. True: as of tcp_ring_tell(). */
static inline bool tcp_ring_take(struct tcp_ring_reader *ring, uint32_t len)
{
	uint32_t size = tcp_ring_size(len);

	ring->taken += size;
	ring->pos += size;
	if (ring->pos == TCP_RING_ROOM)
		ring->pos = 0;
	return ring->taken - ring->told >= TCP_RING_ROOM / 4 && tcp_ring_tell(ring);
}

/* All records that were taken have been handled, so what comes beside the ring does not overtake them. */
static inline void tcp_ring_tell_handled(struct tcp_ring_reader *ring)
{
	atomic_store_explicit(&ring->words->handled, ring->taken, memory_order_release);
}

/* ---- the writer ---- */

/* True if the reader has handled all that was put. */
static inline bool tcp_ring_is_handled(const struct tcp_ring_writer *ring)
{
	return atomic_load_explicit(&ring->words->handled, memory_order_acquire) == ring->put;
}

/* Where the bytes of the next record go. */
static inline uint8_t *tcp_ring_next(const struct tcp_ring_writer *ring)
{
	return ring->room + ring->pos + TCP_RING_WORD;
}

/* The same, if there is room for a record of len bytes (TCP_RING_ROOM / 2 at most) there; otherwise NULL. */
static inline uint8_t *tcp_ring_place(const struct tcp_ring_writer *ring, uint32_t len)
{
	uint32_t room = TCP_RING_ROOM - (ring->put - ring->taken), size = tcp_ring_size(len);

	return size <= TCP_RING_ROOM - ring->pos && size + TCP_RING_WORD <= room ? tcp_ring_next(ring) : NULL;
}

/* Publish what is at the current position, and `size` bytes long, by its word: the length of its bytes, or
 * TCP_RING_WRAP. */
static inline void tcp_ring_publish(struct tcp_ring_writer *ring, uint32_t word, uint32_t size)
{
	uint32_t pos = ring->pos, next = pos + size == TCP_RING_ROOM ? 0 : pos + size;

	atomic_store_explicit(tcp_ring_word(ring->room, next), 0, memory_order_relaxed);
	atomic_store_explicit(tcp_ring_word(ring->room, pos), word, memory_order_release);
	ring->put += size;
	ring->pos = next;
}

/* Put len bytes into the ring, as one record where the last one ends. False: there is no room for that there, and
 * tcp_ring_put() may do something else. */
bool tcp_ring_put_whole(struct tcp_ring_writer *ring, const void *buf, size_t len);

/* Put a frame, a header and a payload of len bytes (TCP_RING_FRAME_MAX at most), into the ring as one record. False:
 * there is no room for that, and tcp_ring_put() may do something else. */
bool tcp_ring_put_frame(struct tcp_ring_writer *ring, const void *hdr, size_t hdr_len, const void *payload, size_t len);
/* The reader has been told of a frame of `size` bytes: get the cache lines to which the next one of that size will be
 * written. */
void tcp_ring_own_next(struct tcp_ring_writer *ring, uint32_t size);

/* Put len bytes of iov (cnt entries), or as many as there is room for, into the ring. Returns their number; -EAGAIN:
 * the ring is full; -EPROTO: the reader has broken the ring. */
ssize_t tcp_ring_put(struct tcp_ring_writer *ring, const struct iovec *iov, size_t cnt, size_t len);

/* The ring is full: ask to be told when there is room. True: there is room already. */
bool tcp_ring_want_room(struct tcp_ring_writer *ring);

/* Bytes that the reader has not taken, as far as it has published. */
static inline uint32_t tcp_ring_unread(const struct tcp_ring_writer *ring)
{
	return ring->put - atomic_load_explicit(&ring->words->taken, memory_order_relaxed);
}

#endif
