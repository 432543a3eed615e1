/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A long message over verbs;ofi_rxm that its receiver reads in chunks, and what may end that: memory that cannot be
 * registered, a sender or receiver that is closed while chunks are read, or while one is registered. One process,
 * endpoints a (sends) and b (receives).
 */
#include "ends.h"
#include "monitor.h"
#include "../softverbs/stand_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CHUNK		(512 << 10)	/* prov/rxm/objects.h */
#define CHUNKS		4		/* that are read at a time */
#define LEN		(10 * CHUNK + 12345)
#define FIRST		(CHUNK / 2 + 100)	/* bytes of the sender's first buffer, which a chunk does not cross */
#define PAGE		4096

static uint64_t (*reg_cnt)(void), (*pinned_pages)(void);
static uint8_t *from, *to;

/* An error in place of a completion. */
static int failed_a, failed_b;

static bool look(struct end *end, int *failed)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_read(end->cq, &entry, 1);

	if (ret == -FI_EAVAIL) {
		assert_int_equal(fi_cq_readerr(end->cq, &err, 0), 1);
		assert_int_equal(*failed, 0);
		*failed = err.err;
		return true;
	}
	if (ret == 1)
		end->done++;
	else
		assert_int_equal(ret, -FI_EAGAIN);
	return ret == 1;
}

#define until_seen(cond)								\
	do {										\
		time_t end_ = now_s() + PATIENCE_S;					\
		while (!(cond)) {							\
			if (a.ep)							\
				look(&a, &failed_a);					\
			if (b.ep)							\
				look(&b, &failed_b);					\
			if (now_s() > end_)						\
				fail_msg("in vain waited for %s", #cond);		\
		}									\
	} while (0)

/* ---- both ends ---- */

static void *map(void)
{
	void *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(mem != MAP_FAILED);
	return mem;
}

/* a has sent a long message of two buffers, with tag 1, and b knows of it. */
static void announce(void)
{
	const struct iovec iov[] = { { from, FIRST }, { from + FIRST, LEN - FIRST } };
	struct fi_msg_tagged peek = { .tag = 1, .addr = b.peer };
	unsigned found = b.done;

	for (size_t i = 0; i < LEN; i++)
		from[i] = (uint8_t) (i * 7 + i / CHUNK);
	OK((int) fi_tsendv(a.ep, iov, NULL, 2, a.peer, 1, NULL));
	while (b.done == found) {
		failed_b = 0;
		OK((int) fi_trecvmsg(b.ep, &peek, FI_PEEK));
		until_seen(b.done != found || failed_b);
		assert_true(b.done != found || failed_b == FI_ENOMSG);
	}
	failed_b = 0;
}

static void receive(void)
{
	OK((int) fi_trecv(b.ep, to, LEN, NULL, b.peer, 1, 0, NULL));
}

static void close_ep(struct end *end)
{
	OK(fi_close(&end->ep->fid));
	end->ep = NULL;
}

static int setup(void **state)
{
	char bytes[2][8] = { { 0 } };

	(void) state;
	failed_a = failed_b = 0;
	before_registration = NULL;
	unsetenv("SOFTVERBS_LIMITS");
	from = map();
	to = map();
	ends_open(FI_MSG | FI_TAGGED, 0, 0);
	OK((int) fi_recv(b.ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, bytes[1], 8, NULL, a.peer, NULL));
	/* and back, so that both have packet buffers */
	OK((int) fi_recv(a.ep, bytes[0], 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(b.ep, bytes[1], 8, NULL, b.peer, NULL));
	until_seen(a.done == 2 && b.done == 2);
	announce();
	return 0;
}

static int teardown(void **state)
{
	struct end *end[] = { &a, &b };

	(void) state;
	for (int i = 0; i < 2; i++) {
		if (end[i]->ep)
			close_ep(end[i]);
		OK(fi_close(&end[i]->cq->fid));
		OK(fi_close(&end[i]->av->fid));
		OK(fi_close(&end[i]->domain->fid));
	}
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	munmap(from, LEN);
	munmap(to, LEN);
	return 0;
}

/* ---- tests ---- */

/* A call has no completion of a chunk yet, so it has registered as many as may be read at a time. */
static void chunks_are_registered_while_others_are_read(void **state)
{
	unsigned sent = a.done, received = b.done;
	uint64_t before = reg_cnt();

	(void) state;
	receive();
	assert_int_equal(reg_cnt() - before, CHUNKS);
	until_seen(a.done == sent + 1 && b.done == received + 1);
	assert_int_equal(reg_cnt() - before, LEN / CHUNK + 1);
	assert_memory_equal(to, from, LEN);
}

/* Two ends that are still connected. */
static void connection_works(void)
{
	unsigned sent = a.done, received = b.done;
	char bytes[2][8] = { "again" };

	failed_a = failed_b = 0;
	OK((int) fi_recv(b.ep, bytes[1], 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, bytes[0], 8, NULL, a.peer, NULL));
	until_seen(a.done == sent + 1 && b.done == received + 1);
	assert_memory_equal(bytes[1], bytes[0], 8);
	assert_int_equal(failed_a + failed_b, 0);
}

/* The call that sends registers without the lock: b's message comes to a meanwhile. */
static void send_to_who_registers(const void *addr)
{
	unsigned received = a.done + 1;
	char byte = 1;

	(void) addr;
	before_registration = NULL;
	OK((int) fi_send(b.ep, &byte, 1, NULL, b.peer, NULL));
	until_seen(a.done == received);
}

static void sender_makes_progress_during_a_registration(void **state)
{
	unsigned before = b.done;
	uint8_t *other = map();
	char byte;

	(void) state;
	OK((int) fi_recv(a.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL));
	before_registration = send_to_who_registers;
	OK((int) fi_tsend(a.ep, other, LEN, NULL, a.peer, 2, NULL));
	assert_null(before_registration);
	receive();
	/* and its own message */
	until_seen(b.done == before + 2);
	OK((int) fi_trecv(b.ep, to, LEN, NULL, b.peer, 2, 0, NULL));
	until_seen(b.done == before + 3);
	assert_memory_equal(to, other, LEN);
	munmap(other, LEN);
}

/* The fourth chunk, while three are read, so that the cache has none to give up. Both ends learn of it, once, and the
 * connection stays. */
static void memory_that_cannot_be_registered_fails_the_message(void **state)
{
	unsigned sent = a.done, received = b.done;
	char limit[64];

	(void) state;
	snprintf(limit, sizeof(limit), "memlock=%llu", (unsigned long long) pinned_pages() * PAGE + 3 * CHUNK - PAGE);
	setenv("SOFTVERBS_LIMITS", limit, 1);
	receive();
	until_seen(failed_b && failed_a);
	assert_int_equal(failed_b, FI_ENOMEM);
	assert_int_equal(failed_a, FI_ENOMEM);
	unsetenv("SOFTVERBS_LIMITS");
	connection_works();
	/* the message that failed is not done */
	assert_int_equal(a.done, sent + 1);
	assert_int_equal(b.done, received + 1);
}

static void sender_that_closes_fails_the_receive(void **state)
{
	(void) state;
	receive();
	close_ep(&a);
	until_seen(failed_b);
}

static void receiver_that_closes_fails_the_send(void **state)
{
	(void) state;
	receive();
	close_ep(&b);
	until_seen(failed_a);
}

/* The call registers without the lock, and others may make progress meanwhile. */
static void lose_the_sender(const void *addr)
{
	if ((const uint8_t *) addr != to + FIRST)
		return;
	before_registration = NULL;
	if (a.ep)
		close_ep(&a);
	until_seen(failed_b);
}

/* The same, and the first chunk is read from a sender that is no more: its read fails during the registration. */
static void lose_the_sender_before(const void *addr)
{
	if ((const uint8_t *) addr == to)
		close_ep(&a);
	lose_the_sender(addr);
}

static void lose_during_a_registration(void (*how)(const void *addr))
{
	uint64_t before = reg_cnt();

	before_registration = how;
	receive();
	assert_null(before_registration);
	assert_null(a.ep);
	/* the chunk that was being registered, and no other */
	assert_int_equal(reg_cnt() - before, 2);
	/* once */
	assert_false(look(&b, &failed_b));
}

static void sender_that_closes_during_a_registration_fails_the_receive(void **state)
{
	(void) state;
	lose_during_a_registration(lose_the_sender);
}

static void chunk_that_fails_during_a_registration_fails_the_receive(void **state)
{
	(void) state;
	lose_during_a_registration(lose_the_sender_before);
}

/* The device refuses the second chunk, and takes what is posted afterwards. */
static void refuse_the_second(const void *addr)
{
	if ((const uint8_t *) addr == to + FIRST)
		setenv("SOFTVERBS_FAIL", "ibv_post_send:1+=EIO", 1);
}

static void chunk_that_the_device_refuses_fails_the_message(void **state)
{
	(void) state;
	before_registration = refuse_the_second;
	receive();
	before_registration = NULL;
	unsetenv("SOFTVERBS_FAIL");
	until_seen(failed_b && failed_a);
	assert_int_equal(failed_b, FI_EIO);
	assert_int_equal(failed_a, FI_EIO);
	connection_works();
}

/* The chunks after the first one that fails end with the connection. */
static void receive_has_the_error_of_the_first_chunk_that_fails(void **state)
{
	(void) state;
	receive();
	setenv("SOFTVERBS_STATUS", "send=10", 1);	/* IBV_WC_REM_ACCESS_ERR */
	until_seen(failed_b);
	unsetenv("SOFTVERBS_STATUS");
	assert_int_equal(failed_b, FI_EACCES);
	until_seen(failed_a);
}

/* While the second chunk is registered, the first fails. The message ends once, when the registration is done. */
static void fail_the_first(const void *addr)
{
	if ((const uint8_t *) addr != to + FIRST)
		return;
	before_registration = NULL;
	setenv("SOFTVERBS_STATUS", "send=10", 1);
	until_seen(failed_b);
	unsetenv("SOFTVERBS_STATUS");
}

static void chunk_that_fails_during_a_registration_ends_the_message_afterwards(void **state)
{
	(void) state;
	before_registration = fail_the_first;
	receive();
	assert_null(before_registration);
	failed_b = 0;
	until_seen(failed_a);
	assert_false(look(&b, &failed_b));
}

/* A message of b waits, since the device has no room. When the first chunk is posted, the device refuses both, and the
 * connection ends with the message. */
static void refuse_all(const void *addr)
{
	(void) addr;
	before_registration = NULL;
	setenv("SOFTVERBS_FAIL", "ibv_post_send:1+=EIO", 1);
}

static void connection_that_ends_while_a_chunk_is_posted_fails_the_receive(void **state)
{
	char bytes[8] = { 0 };

	(void) state;
	setenv("SOFTVERBS_FAIL", "ibv_post_send:1+=ENOMEM", 1);
	OK((int) fi_send(b.ep, bytes, 8, NULL, b.peer, NULL));
	before_registration = refuse_all;
	receive();
	unsetenv("SOFTVERBS_FAIL");
	assert_null(before_registration);
	until_seen(failed_b);
	failed_b = 0;
	until_seen(failed_b && failed_a);
	assert_false(look(&b, &failed_b));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(chunks_are_registered_while_others_are_read),
		CASE(sender_makes_progress_during_a_registration),
		CASE(memory_that_cannot_be_registered_fails_the_message),
		CASE(sender_that_closes_fails_the_receive),
		CASE(receiver_that_closes_fails_the_send),
		CASE(sender_that_closes_during_a_registration_fails_the_receive),
		CASE(chunk_that_fails_during_a_registration_fails_the_receive),
		CASE(chunk_that_the_device_refuses_fails_the_message),
		CASE(receive_has_the_error_of_the_first_chunk_that_fails),
		CASE(chunk_that_fails_during_a_registration_ends_the_message_afterwards),
		CASE(connection_that_ends_while_a_chunk_is_posted_fails_the_receive),
	};

	reg_cnt = stand_in("sv_test_reg_cnt");
	pinned_pages = stand_in("sv_test_pinned_pages");
	if (mon_import())
		return 1;
	return cmocka_run_group_tests_name("rxm/fetch", tests, NULL, NULL);
}
