/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Each message-ordering bit that is offered, as litmus tests: two operations, and what must never be seen if the second
 * comes after the first. Sockets take and give bytes in random portions; every pair of kinds of operations that a bit
 * speaks of is tried, several pairs under way at a time, behind other traffic; and all of it once more over rings in
 * shared memory. Source: fi_endpoint(3), message ordering.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "base/bits.h"
#include "base/clock.h"
#include "jitter.h"
#include "node.h"
#include "tcp/params/params.h"

#define LONG		(200 * 1024)	/* bytes: announced, and more than sockets take at once */
#define AMO_LONG	(16 * 1024)	/* the most that one call may have */
#define SLOTS		3		/* pairs under way */
#define ROUNDS		20
#define PATIENCE_MS	60000
#define WORDS		(LONG / sizeof(uint64_t))

enum kind { SEND, SEND_LONG, TSEND, TSEND_LONG, WRITE, WRITE_LONG, AMO, AMO_LONG_, READ, READ_LONG, FETCH, FETCH_LONG };

static const size_t kind_len[] = {
	[SEND] = 8, [SEND_LONG] = LONG, [TSEND] = 8, [TSEND_LONG] = LONG, [WRITE] = 8, [WRITE_LONG] = LONG, [AMO] = 8,
	[AMO_LONG_] = AMO_LONG, [READ] = 8, [READ_LONG] = LONG, [FETCH] = 8, [FETCH_LONG] = AMO_LONG,
};

#define KIND(k)		(1u << (k))
#define SENDS		(KIND(SEND) | KIND(SEND_LONG) | KIND(TSEND) | KIND(TSEND_LONG))
#define WRITES		(KIND(WRITE) | KIND(WRITE_LONG))
#define AMOS		(KIND(AMO) | KIND(AMO_LONG_))
#define READS		(KIND(READ) | KIND(READ_LONG))
#define FETCHES		(KIND(FETCH) | KIND(FETCH_LONG))

/* Every bit, "second after first". */
static const struct order {
	uint64_t bit;
	uint32_t first, second;		/* KIND() */
	const char *name;
} orders[] = {
	{ FI_ORDER_RAR, READS | FETCHES, READS | FETCHES, "RAR" },
	{ FI_ORDER_RAW, WRITES | AMOS, READS | FETCHES, "RAW" },
	{ FI_ORDER_RAS, SENDS, READS | FETCHES, "RAS" },
	{ FI_ORDER_WAR, READS | FETCHES, WRITES | AMOS, "WAR" },
	{ FI_ORDER_WAW, WRITES | AMOS, WRITES | AMOS, "WAW" },
	{ FI_ORDER_WAS, SENDS, WRITES | AMOS, "WAS" },
	{ FI_ORDER_SAR, READS | FETCHES, SENDS, "SAR" },
	{ FI_ORDER_SAW, WRITES | AMOS, SENDS, "SAW" },
	{ FI_ORDER_SAS, SENDS, SENDS, "SAS" },
	{ FI_ORDER_RMA_RAR, READS, READS, "RMA_RAR" },
	{ FI_ORDER_RMA_RAW, WRITES, READS, "RMA_RAW" },
	{ FI_ORDER_RMA_WAR, READS, WRITES, "RMA_WAR" },
	{ FI_ORDER_RMA_WAW, WRITES, WRITES, "RMA_WAW" },
	{ FI_ORDER_ATOMIC_RAR, FETCHES, FETCHES, "ATOMIC_RAR" },
	{ FI_ORDER_ATOMIC_RAW, AMOS, FETCHES, "ATOMIC_RAW" },
	{ FI_ORDER_ATOMIC_WAR, FETCHES, AMOS, "ATOMIC_WAR" },
	{ FI_ORDER_ATOMIC_WAW, AMOS, AMOS, "ATOMIC_WAW" },
};

/* One pair. x is what the first operation is about; y the second, or x as well where one reads what the other
 * writes. */
static struct slot {
	uint64_t x[WORDS], y[WORDS];		/* at the target */
	uint64_t out[2][WORDS], in[2][WORDS];	/* at the initiator: what either operation sends, gets */
	bool seen;
} *slots;

static struct node ini, target;
static struct fid_mr *mr;
static fi_addr_t to;
static uint32_t posted, done, received, expected;
static uint64_t noise[WORDS], noise_in[WORDS];
static const struct order *order;
static enum kind first, second;
static uint64_t value;				/* that the first writes; the second one more */

static bool is(enum kind kind, uint32_t kinds)
{
	return KIND(kind) & kinds;
}

#define NEVER(what) \
	fail_msg("%s: kind %d then %d, value %lu: %s", order->name, first, second, (unsigned long) value, what)

static bool all_are(const uint64_t *buf, size_t len, uint64_t word)
{
	for (size_t i = 0; i < len / sizeof(*buf); i++) {
		if (buf[i] != word)
			return false;
	}
	return true;
}

/* ---- what may be seen at the target, looked at between passes ---- */

/* Places where a read that is answered in portions takes what it takes at different times. */
static const size_t probe[] = { 0, AMO_LONG / 16, AMO_LONG / 8 - 1, WORDS / 2, WORDS - 1 };

/* The target's program counts up: y, then x. Whoever reads x before y cannot get more from x. A read may leave in the
 * middle of a word, so the upper half of a word repeats the count, inverted. */
static void count_up(struct slot *slot)
{
	static uint32_t count;
	uint64_t word;

	count++;
	word = (uint64_t) ~count << 32 | count;
	for (size_t i = 0; i < fab_countof(probe); i++)
		slot->y[probe[i]] = word;
	for (size_t i = 0; i < fab_countof(probe); i++)
		slot->x[probe[i]] = word;
}

/* What a word counts, 0 if it was there before; or if its bytes are of two counts, `torn`. */
static uint32_t count_in(uint64_t word, uint32_t torn)
{
	uint32_t count = (uint32_t) word, check = (uint32_t) (word >> 32);

	return check == (uint32_t) ~count ? count : check ? torn : 0;
}

static void look(void)
{
	for (struct slot *slot = slots; slot < slots + SLOTS; slot++) {
		if (is(first, READS | FETCHES) && is(second, READS | FETCHES))
			count_up(slot);
		/* messages are in order when they are matched in order */
		if (slot->seen || is(first, READS | FETCHES) || is(second, READS | FETCHES) ||
		    (is(first, SENDS) && is(second, SENDS)) || slot->y[0] != value + 1)
			continue;
		slot->seen = true;
		if (!all_are(slot->x, kind_len[first], value))
			NEVER("the second is seen, and the first is not");
	}
}

static void drive(struct node *node)
{
	struct fi_cq_data_entry entry;
	ssize_t ret = fi_cq_read(node->cq, &entry, 1);

	if (ret == -FI_EAVAIL) {
		struct fi_cq_err_entry err = { 0 };

		fi_cq_readerr(node->cq, &err, 0);
		NEVER(fi_cq_strerror(node->cq, err.prov_errno, err.err_data, NULL, 0));
	}
	if (ret == 1) {
		received += !!(entry.flags & FI_RECV);
		done += !(entry.flags & FI_RECV);
	}
	look();
}

/* ---- operations ---- */

static ssize_t try_post(enum kind kind, void *out, void *in, uint64_t at)
{
	size_t len = kind_len[kind];
	uint64_t key = fi_mr_key(mr);

	switch (kind) {
	case SEND:
	case SEND_LONG:
		return fi_send(ini.ep, out, len, NULL, to, NULL);
	case TSEND:
	case TSEND_LONG:
		return fi_tsend(ini.ep, out, len, NULL, to, 7, NULL);
	case WRITE:
	case WRITE_LONG:
		return fi_write(ini.ep, out, len, NULL, to, at, key, NULL);
	case AMO:
	case AMO_LONG_:
		return fi_atomic(ini.ep, out, len / 8, NULL, to, at, key, FI_UINT64, FI_ATOMIC_WRITE, NULL);
	case READ:
	case READ_LONG:
		return fi_read(ini.ep, in, len, NULL, to, at, key, NULL);
	default:
		return fi_fetch_atomic(ini.ep, NULL, len / 8, NULL, in, NULL, to, at, key, FI_UINT64, FI_ATOMIC_READ,
				       NULL);
	}
}

static void post(enum kind kind, void *out, void *in, uint64_t at)
{
	ssize_t ret;

	while ((ret = try_post(kind, out, in, at)) == -FI_EAGAIN)
		drive(jitter_dice(2) ? &ini : &target);
	assert_int_equal(ret, 0);
	posted++;
	while (!jitter_dice(3))
		drive(jitter_dice(2) ? &ini : &target);
}

/* Where a message is to go. */
static void post_recv(enum kind kind, void *buf)
{
	if (!is(kind, SENDS))
		return;
	expected++;
	if (is(kind, KIND(TSEND) | KIND(TSEND_LONG)))
		assert_int_equal(fi_trecv(target.ep, buf, kind_len[kind], NULL, FI_ADDR_UNSPEC, 7, 0, NULL), 0);
	else
		assert_int_equal(fi_recv(target.ep, buf, kind_len[kind], NULL, FI_ADDR_UNSPEC, NULL), 0);
}

/* Do both operations speak of the same place? */
static bool share_x(void)
{
	return is(first, READS | FETCHES) != is(second, READS | FETCHES);
}

static uint64_t offset(const void *at)
{
	return (const uint8_t *) at - (const uint8_t *) slots;
}

static void slot_prepare(struct slot *slot)
{
	slot->seen = false;
	for (size_t i = 0; i < WORDS; i++) {
		slot->x[i] = slot->y[i] = value - 1;
		slot->out[0][i] = value;
		slot->out[1][i] = value + 1;
	}
}

static void slot_check(const struct slot *slot)
{
	size_t len = fab_min(kind_len[first], kind_len[second]);

	if (is(first, SENDS) && is(second, SENDS)) {
		if (!all_are(slot->x, kind_len[first], value) || !all_are(slot->y, kind_len[second], value + 1))
			NEVER("messages that were matched in another order");
	} else if (!share_x() && is(first, READS | FETCHES)) {
		for (size_t i = 0; i < fab_countof(probe); i++) {
			if (probe[i] < kind_len[first] / 8 &&
			    count_in(slot->in[0][probe[i]], 0) > count_in(slot->in[1][0], UINT32_MAX))
				NEVER("the first has read what came after the second");
		}
	} else if (is(first, READS | FETCHES)) {
		if (!all_are(slot->in[0], len, value - 1))
			NEVER("the first has read what the second wrote");
	} else if (is(second, READS | FETCHES)) {
		if (!all_are(slot->in[1], len, value))
			NEVER("the second has not read what the first wrote");
	} else if (!slot->seen) {
		NEVER("the second is not there");
	}
}

/* Something for the pairs to be behind: results of as many atomics as may be under way, a long read. */
static void make_noise(void)
{
	uint32_t kind = jitter_dice(4);

	for (int i = 0; kind == 0 && i < 17; i++)
		post(FETCH_LONG, noise, noise_in, SLOTS * sizeof(*slots));
	if (kind == 1)
		post(READ_LONG, noise, noise_in, SLOTS * sizeof(*slots));
}

static void round_run(void)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	posted = done = received = expected = 0;
	value += 3;
	for (struct slot *slot = slots; slot < slots + SLOTS; slot++) {
		slot_prepare(slot);
		post_recv(first, slot->x);
		post_recv(second, share_x() ? slot->x : slot->y);
	}
	make_noise();
	for (struct slot *slot = slots; slot < slots + SLOTS; slot++) {
		post(first, slot->out[0], slot->in[0], offset(slot->x));
		post(second, slot->out[1], slot->in[1], offset(share_x() ? slot->x : slot->y));
	}
	/* a write may have completed before it arrives; the answer to a read comes behind it */
	post(READ, NULL, noise_in, 0);
	while (done < posted || received < expected) {
		drive(jitter_dice(2) ? &ini : &target);
		if (fab_now_ms() > end_ms)
			NEVER("no end");
	}
	for (struct slot *slot = slots; slot < slots + SLOTS; slot++)
		slot_check(slot);
}

/* ---- life ---- */

static bool world_open(void)
{
	uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;

	if (!node_open_ordered(&ini, caps, order->bit))
		return false;
	assert_true(node_open_ordered(&target, caps, order->bit));
	assert_int_equal(fi_mr_reg(target.domain, slots, SLOTS * sizeof(*slots) + LONG,
				   FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL), 0);
	to = node_insert(&ini, &target.addr);
	return true;
}

static void world_close(void)
{
	assert_int_equal(fi_close(&mr->fid), 0);
	node_close(&ini);
	node_close(&target);
}

static void order_is_kept(void **state)
{
	order = *state;
	value = 1;
	jitter_open();
	slots = calloc(1, SLOTS * sizeof(*slots) + LONG);
	if (!world_open()) {
		free(slots);
		jitter_close();
		skip();
	}
	jitter_on(order->bit, 2);
	for (first = 0; first <= FETCH_LONG; first++) {
		for (second = 0; second <= FETCH_LONG; second++) {
			/* tagged messages and others are matched apart */
			if (!is(first, order->first) || !is(second, order->second) ||
			    (is(first, SENDS) && is(second, SENDS) && (first ^ second) & ~1))
				continue;
			for (int i = 0; i < ROUNDS; i++)
				round_run();
		}
	}
	jitter_off();
	world_close();
	free(slots);
	jitter_close();
}

/* Sockets, of which the portions are random. */
static int over_tcp(void **state)
{
	(void) state;
	tcp_params.local = false;
	return 0;
}

static int over_rings(void **state)
{
	(void) state;
	tcp_params.local = true;
	return 0;
}

int main(void)
{
	struct CMUnitTest tests[2 * fab_countof(orders)] = { 0 };
	char names[fab_countof(orders)][32];

	for (size_t i = 0; i < fab_countof(orders); i++) {
		snprintf(names[i], sizeof(names[i]), "%s_over_rings", orders[i].name);
		tests[2 * i] = (struct CMUnitTest) { .name = orders[i].name, .test_func = order_is_kept,
						     .setup_func = over_tcp, .initial_state = (void *) &orders[i] };
		tests[2 * i + 1] = tests[2 * i];
		tests[2 * i + 1].name = names[i];
		tests[2 * i + 1].setup_func = over_rings;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
