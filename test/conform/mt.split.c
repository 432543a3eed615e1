/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints whose two completion queues serve other endpoints too, each of them another one, with FI_THREAD_COMPLETION.
 * Source: fi_domain(3), which asks for no more than that calls on one completion queue are one at a time.
 */
#include "mt_worker.h"

enum { LEN = 8, MSGS = 16, ROUNDS = 10 };

/* One domain: the first endpoint has queue a, the second has b, both work; the third sends to a and receives to b. */
struct split {
	struct side *a, *b, *both;
	fi_addr_t a_to_both, both_to_b;
	char in[MSGS][LEN];
};

/* wait: of b. */
static void split_open(struct test *t, struct split *split, enum fi_wait_obj wait)
{
	const struct opts one = { .hints = set_completion, .one_cq = true, .raw_cq = true };

	if (!info_find(t, hints_new(t, &one), NULL, NULL, 0))
		ABSENT("%s has no FI_THREAD_COMPLETION", run.prov);
	split->a = side_open_opts(t, &one);
	split->b = side_open(t, .hints = set_completion, .one_cq = true, .raw_cq = true, .cq_wait = wait,
			     .domain_of = split->a);
	split->both = domain_side(t, .hints = set_completion, .raw_cq = true, .domain_of = split->a,
				  .cq_of = split->a);
	split->both->tx_cq = split->a->tx_cq;
	split->both->rx_cq = split->b->rx_cq;
	side_open_av(split->both);
	side_open_ep(split->both);
	side_bind(split->both);
	side_enable(split->both);
	split->a_to_both = side_insert(split->a, split->both);
	split->both_to_b = side_insert(split->both, split->b);
}

static void split_close(struct split *split)
{
	side_close_ep(split->both);
	side_close(split->b);
}

/* Completions of queue a until there is one of tx, and of b until there is one of rx. */
static void expect_both(struct split *split, void *tx, void *rx)
{
	struct fi_cq_tagged_entry entry;
	double start = now_ms();

	while (tx || rx) {
		if (fi_cq_read(split->a->tx_cq, &entry, 1) == 1) {
			CHECK(entry.op_context == tx);
			tx = NULL;
		}
		if (fi_cq_read(split->b->rx_cq, &entry, 1) == 1) {
			CHECK(entry.op_context == rx);
			rx = NULL;
		}
		if (worker_late(start))
			FAIL("%s%s missing", tx ? "a transmit " : "", rx ? "a receive" : "");
	}
}

/* An endpoint whose two queues serve other endpoints too has its completions in the right queue. */
TEST_PROV(endpoint_of_two_busy_queues, FI_MSG, UNCONNECTED)
{
	struct split split;
	int tx, rx;

	split_open(t, &split, FI_WAIT_NONE);
	for (int i = 0; i < ROUNDS; i++) {
		post(split.both, RECV, .buf = split.in[0], .len = LEN, .ctx = &rx);
		post(split.a, SEND, .buf = "to both.", .len = LEN, .addr = &split.a_to_both, .ctx = &tx);
		expect_both(&split, &tx, &rx);
		CHECK_MEM(split.in[0], "to both.", LEN);
		post(split.b, RECV, .buf = split.in[1], .len = LEN, .ctx = &rx);
		post(split.both, SEND, .buf = "to b ...", .len = LEN, .addr = &split.both_to_b, .ctx = &tx);
		expect_both(&split, &tx, &rx);
		CHECK_MEM(split.in[1], "to b ...", LEN);
	}
	split_close(&split);
}

/* ---- a thread for each queue ---- */

/* Sends to the third endpoint, and reads a: its passes may bring what another thread waits for at b. */
static void *send_and_read_a(void *arg)
{
	struct worker *w = arg;
	struct split *split = w->arg;
	struct fi_cq_tagged_entry entry;
	double start = now_ms();
	size_t sent = 0;
	ssize_t ret;

	while (w->done < MSGS && !w->wrong[0]) {
		ret = sent < MSGS ? fi_send(split->a->ep, "8 bytes.", LEN, NULL, split->a_to_both, NULL) : -FI_EAGAIN;
		if (!ret)
			sent++;
		else if (ret != -FI_EAGAIN)
			WRONG(w, "fi_send: %zd", ret);
		ret = fi_cq_read(split->a->tx_cq, &entry, 1);
		if (ret == 1)
			w->done++;
		else if (ret != -FI_EAGAIN)
			WRONG(w, "fi_cq_read of a: %zd", ret);
		if (worker_late(start))
			WRONG(w, "%zu of %zu sent", w->done, sent);
	}
	return NULL;
}

/* w->id: with a sleep for each. */
static void *read_b(void *arg)
{
	struct worker *w = arg;
	struct split *split = w->arg;
	struct fi_cq_tagged_entry entry;
	double start = now_ms();
	ssize_t ret;

	while (w->done < MSGS && !w->wrong[0]) {
		if (w->id)
			ret = fi_cq_sread(split->b->rx_cq, &entry, 1, NULL, 20000 * run.slow);
		else
			ret = fi_cq_read(split->b->rx_cq, &entry, 1);
		if (ret == 1)
			w->done++;
		else if (ret != -FI_EAGAIN)
			WRONG(w, "a read of b: %zd", ret);
		if (worker_late(start))
			WRONG(w, "%zu received", w->done);
	}
	return NULL;
}

/* What arrives in the pass of a thread that reads a wakes one that sleeps on b. */
TEST_PROV(threads_of_two_busy_queues, FI_MSG, UNCONNECTED)
{
	struct split split;

	split_open(t, &split, FI_WAIT_FD);
	if (split.a->info->domain_attr->mr_mode & FI_MR_LOCAL)
		ABSENT("threads send without a descriptor");
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct worker sender = { .t = t, .fn = send_and_read_a, .arg = &split };
		struct worker reader = { .t = t, .id = i % 2, .fn = read_b, .arg = &split };

		for (int k = 0; k < MSGS; k++)
			post(split.both, RECV, .buf = split.in[k], .len = LEN);
		worker_start(&reader);
		worker_start(&sender);
		worker_finish(&sender);
		worker_finish(&reader);
	}
	split_close(&split);
}
