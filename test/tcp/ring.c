/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring in shared memory: the stream that comes out is the one that went in, nobody waits for ever, and an end that
 * writes anything at all into the ring harms only its own stream.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/bits.h"
#include "base/unit.h"
#include "tcp/local/pair.h"

#define STREAM_LEN	(8u << 20)

/* The room lies between pages that nobody may touch; it ends where one of them begins, or begins where one ends. */
static uint8_t *pages;
static size_t page, inner;
static struct tcp_ring_words words;
static uint8_t *room;
static struct tcp_ring_writer out;
static struct tcp_ring_reader in;

/* Both ends begin at `pos`. */
static void begin(size_t offset, uint32_t pos)
{
	page = sysconf(_SC_PAGESIZE);
	inner = fab_align(TCP_RING_ROOM, page);
	pages = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + page, inner, PROT_READ | PROT_WRITE), 0);
	memset(&words, 0, sizeof(words));
	room = pages + page + offset;
	out = (struct tcp_ring_writer) { .words = &words, .room = room, .pos = pos };
	in = (struct tcp_ring_reader) { .words = &words, .room = room, .pos = pos };
}

static int setup(void **state)
{
	(void) state;
	begin(0, 0);
	return 0;
}

/* As the second ring of a pair. */
static int setup_late(void **state)
{
	(void) state;
	begin(fab_align(TCP_RING_ROOM, sysconf(_SC_PAGESIZE)) - TCP_RING_ROOM, TCP_PAIR_SECOND_POS);
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	munmap(pages, inner + 2 * page);
	return 0;
}

/* The byte of the stream at this place. */
static uint8_t byte_at(uint32_t at)
{
	return at * 2654435761u >> 13;
}

static uint32_t lengths(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	switch (*seed >> 30) {
	case 0:
		return 1 + (*seed >> 8) % 64;
	case 1:
		return 1 + (*seed >> 8) % 600;
	case 2:
		return 24;
	default:
		return 1 + (*seed >> 8) % 50000;
	}
}

#define HDR_LEN		24

/* Put len bytes as a frame, if they can be one. */
static bool write_frame(const uint8_t *buf, uint32_t len)
{
	if (len < HDR_LEN || len - HDR_LEN > TCP_RING_FRAME_MAX ||
	    !tcp_ring_put_frame(&out, buf, HDR_LEN, buf + HDR_LEN, len - HDR_LEN))
		return false;
	tcp_ring_own_next(&out, len);
	return true;
}

/* Write the stream from `at` on in pieces, as far as the ring takes it. Returns the end. */
static uint32_t write_some(uint32_t at, uint32_t *seed)
{
	static uint8_t buf[50000];
	uint32_t len = fab_min(lengths(seed), STREAM_LEN - at);
	struct iovec iov[3] = { { buf, len / 3 }, { buf + len / 3, 0 }, { buf + len / 3, len - len / 3 } };
	ssize_t n;

	for (uint32_t i = 0; i < len; i++)
		buf[i] = byte_at(at + i);
	if (*seed >> 20 & 1 && write_frame(buf, len))
		return at + len;
	n = tcp_ring_put(&out, iov, 3, len);
	assert_true(n == -EAGAIN || (n > 0 && n <= (ssize_t) len));
	return n > 0 ? at + n : at;
}

static const uint8_t *peek(uint32_t *len)
{
	const uint8_t *buf = tcp_ring_peek(&in, len);

	return buf || !*len ? buf : tcp_ring_peek_open(&in, len);
}

/* Read and check one record. Returns the end. */
static uint32_t read_one(uint32_t at, bool *tell)
{
	uint32_t len;
	const uint8_t *buf = peek(&len);

	if (!buf) {
		assert_int_equal(len, 0);
		return at;
	}
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(buf[i], byte_at(at + i));
	*tell |= tcp_ring_take(&in, len);
	return at + len;
}

static void what_goes_in_comes_out(void **state)
{
	uint32_t put = 0, got = 0, seed = 1, turns = 0;
	bool tell = false;

	(void) state;
	while (got < STREAM_LEN) {
		for (turns = lengths(&seed) % 9; turns && put < STREAM_LEN; turns--)
			put = write_some(put, &seed);
		for (turns = lengths(&seed) % 9; turns; turns--)
			got = read_one(got, &tell);
	}
	assert_int_equal(got, put);
}

/* A writer that waits for room is told, once it has asked, as soon as a quarter is free. */
static void a_writer_that_waits_is_told(void **state)
{
	uint32_t put = 0, got = 0, seed = 7, waited = 0;

	(void) state;
	while (put < STREAM_LEN) {
		uint32_t end = write_some(put, &seed);
		bool tell = false;

		if (end != put || tcp_ring_want_room(&out)) {
			put = end;
			continue;
		}
		waited++;
		while (!tell) {
			uint32_t next = read_one(got, &tell);

			assert_true(next > got);	/* otherwise the ring is empty, and nobody would tell */
			got = next;
		}
		assert_true(tcp_ring_want_room(&out));
		assert_true(tcp_ring_unread(&out) <= TCP_RING_ROOM * 3 / 4);
	}
	assert_true(waited > 100);
}

static void a_frame_is_one_record(void **state)
{
	static uint8_t buf[HDR_LEN + TCP_RING_FRAME_MAX];
	uint32_t frames = 0, len;

	(void) state;
	for (uint32_t i = 0; i < sizeof(buf); i++)
		buf[i] = byte_at(i);
	for (uint32_t size = HDR_LEN; size <= sizeof(buf); size++) {
		const uint8_t *got;

		while (!write_frame(buf, size)) {
			assert_non_null(got = peek(&len));
			tcp_ring_take(&in, len);
		}
		frames++;
		while ((got = peek(&len)) && len != size)
			tcp_ring_take(&in, len);
		assert_int_equal(len, size);
		assert_memory_equal(got, buf, size);
		if (size % 3)
			tcp_ring_take(&in, len);
	}
	assert_int_equal(frames, TCP_RING_FRAME_MAX + 1);
}

/* A writer that has begun a record may be killed, or stopped for long. */
static void an_open_record_is_none_until_it_is_closed(void **state)
{
	uint32_t len;

	(void) state;
	assert_true(write_frame(room + TCP_RING_ROOM - 4096, 4096));
	assert_non_null(peek(&len));	/* it may be at the front */
	atomic_store(tcp_ring_word(room, in.pos), TCP_RING_OPEN | 4096);
	for (int i = 0; i < 3; i++) {
		assert_null(peek(&len));
		assert_int_equal(len, 0);
	}
	atomic_store(tcp_ring_word(room, in.pos), 4096);
	assert_ptr_equal(peek(&len), room + in.pos + TCP_RING_WORD);
	assert_int_equal(len, 4096);
}

/* ---- two threads ---- */

static _Atomic bool told;

static void *reader_main(void *arg)
{
	uint32_t got = 0;

	(void) arg;
	while (got < STREAM_LEN) {
		bool tell = false;

		got = read_one(got, &tell);
		if (tell)
			atomic_store(&told, true);
	}
	return NULL;
}

static void two_threads(void **state)
{
	uint32_t put = 0, seed = 3;
	pthread_t reader;

	(void) state;
	atomic_store(&told, false);
	assert_int_equal(pthread_create(&reader, NULL, reader_main, NULL), 0);
	while (put < STREAM_LEN) {
		uint32_t end = write_some(put, &seed);

		if (end == put && !tcp_ring_want_room(&out)) {
			while (!atomic_load(&told))
				sched_yield();
		}
		atomic_store(&told, false);
		put = end;
	}
	pthread_join(reader, NULL);
}

/* ---- hostile ends ---- */

static void a_hostile_writer_stays_in_the_ring(void **state)
{
	uint32_t seed = 5, len;

	(void) state;
	for (int i = 0; i < 200000; i++) {
		uint32_t word = lengths(&seed) * (i % 7 ? 1 : 0x9e3779b1u);
		const uint8_t *buf;

		if (i % 5 == 0)
			word |= TCP_RING_OPEN;
		atomic_store(tcp_ring_word(room, in.pos), i % 11 ? word : TCP_RING_WRAP);
		atomic_store(tcp_ring_word(room, 0), i % 3 ? word : TCP_RING_WRAP);
		buf = peek(&len);
		assert_true(in.pos < TCP_RING_ROOM && !(in.pos % TCP_RING_WORD));
		if (!buf)
			continue;
		assert_true(buf >= room && buf + len <= room + TCP_RING_ROOM);
		tcp_ring_take(&in, len);
	}
}

static void a_hostile_reader_stays_in_the_ring(void **state)
{
	static uint8_t buf[50000];
	uint32_t seed = 9, broken = 0;

	(void) state;
	for (int i = 0; i < 200000; i++) {
		struct iovec iov = { buf, lengths(&seed) };
		ssize_t n;

		atomic_store(&words.taken, i % 2 ? seed : out.put - seed % (TCP_RING_ROOM + 9));
		n = tcp_ring_put(&out, &iov, 1, iov.iov_len);
		assert_true(out.pos < TCP_RING_ROOM && !(out.pos % TCP_RING_WORD));
		assert_true(n == -EAGAIN || n == -EPROTO || (n > 0 && n <= (ssize_t) iov.iov_len));
		broken += n == -EPROTO;
		tcp_ring_want_room(&out);
		if (i % 4 == 0)
			write_frame(buf, fab_min(iov.iov_len, (size_t) TCP_RING_FRAME_MAX));
	}
	assert_true(broken > 1000);
}

/* ---- both rings of a pair ---- */

static void first_records_are_in_the_page_of_the_words(void **state)
{
	const size_t words = offsetof(struct tcp_pair_mem, words), end = offsetof(struct tcp_pair_mem, first);

	(void) state;
	assert_int_equal(words / TCP_PAIR_PAGE, (end - 1) / TCP_PAIR_PAGE);
	assert_int_equal(TCP_PAIR_SECOND_POS / TCP_PAIR_PAGE, words / TCP_PAIR_PAGE);
	assert_true(words - TCP_PAIR_SECOND_POS >= 1024 && TCP_PAIR_PAGE - end % TCP_PAIR_PAGE >= 1024);
}

#define TESTS_AT(begin) \
	cmocka_unit_test_setup_teardown(what_goes_in_comes_out, begin, teardown), \
	cmocka_unit_test_setup_teardown(a_writer_that_waits_is_told, begin, teardown), \
	cmocka_unit_test_setup_teardown(two_threads, begin, teardown), \
	cmocka_unit_test_setup_teardown(a_frame_is_one_record, begin, teardown), \
	cmocka_unit_test_setup_teardown(an_open_record_is_none_until_it_is_closed, begin, teardown), \
	cmocka_unit_test_setup_teardown(a_hostile_writer_stays_in_the_ring, begin, teardown), \
	cmocka_unit_test_setup_teardown(a_hostile_reader_stays_in_the_ring, begin, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TESTS_AT(setup),
		TESTS_AT(setup_late),
		cmocka_unit_test(first_records_are_in_the_page_of_the_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
