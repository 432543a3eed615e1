/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which receive a cancel finds, against a model that searches a plain list, with random posts, messages and cancels;
 * and what it costs, in receives and entries visited. Includes recv_cancel.c to count them.
 */
static unsigned long steps;
#define FAB_MATCH_STEP() (steps++)
#include "../../prov/common/receive/recv_cancel.c"

#include "common/receive/recv_path.h"
#include "unit.h"

static const struct fab_recv_ops ops = { .iov_max = 1, .iov_own = 1 };
static char contexts[5];

static void start(struct fab_recv *recv, size_t size)
{
	static struct fab_ep ep;

	assert_int_equal(fab_recv_init(recv, &ep, size, &ops), 0);
}

static struct fab_rx *post(struct fab_recv *recv, enum fab_msg_class class, void *context)
{
	struct fab_rx *rx;

	assert_int_equal(fab_rx_new(recv, &(struct fab_op) { .code = FAB_OP_RECV + class, .context = context },
				    FI_ADDR_UNSPEC, &rx), 0);
	assert_int_equal(fab_match_post(&recv->queue[class], &rx->posted), 0);
	return rx;
}

/* A message takes a receive, or a cancel ends it. */
static void end(struct fab_recv *recv, struct fab_rx *rx)
{
	assert_non_null(rx);
	fab_rx_unpost(recv, rx);
	fab_rx_free(recv, rx);
}

static struct fab_rx *cancel(struct fab_recv *recv, enum fab_msg_class class, const void *context)
{
	struct fab_rx *rx = find_posted(recv, class, context, false);

	if (rx)
		end(recv, rx);
	if (!recv->queue[class].posted_cnt)
		index_free(recv, class);
	return rx;
}

/* A message takes the oldest receive. */
static void message(struct fab_recv *recv, enum fab_msg_class class)
{
	end(recv, rx_at(recv->queue[class].posted_order.next));
}

static void finish(struct fab_recv *recv)
{
	for (int class = 0; class < FAB_CLASS_MAX; class++) {
		while (recv->queue[class].posted_cnt)
			message(recv, class);
	}
	fab_recv_fini(recv);
}

/* The receive that is to be found. */
static struct fab_rx *oldest_with(const struct fab_recv *recv, enum fab_msg_class class, const void *context)
{
	struct fab_list *link;

	fab_list_for_each(&recv->queue[class].posted_order, link) {
		if (rx_at(link)->context == context)
			return rx_at(link);
	}
	return NULL;
}

/* Phases of few and of many receives, of both classes, whose memory is used again and again. */
static void finds_the_oldest_posted_receive_with_a_context(void **state)
{
	struct rng rng = { 3 };
	struct fab_recv recv;

	(void) state;
	start(&recv, 0);
	for (int n = 0; n < 200000; n++) {
		enum fab_msg_class class = rng_below(&rng, 2);
		uint32_t posted = recv.queue[class].posted_cnt, most = n / 1000 % 3 ? 200 : 10;
		void *context = rng_below(&rng, 4) ? contexts + rng_below(&rng, sizeof(contexts)) : NULL;
		uint64_t what = rng_below(&rng, 10);

		if (what < (posted < most ? 6 : 2)) {
			post(&recv, class, context);
		} else if (what < 8 && posted) {
			message(&recv, class);
		} else {
			struct fab_rx *wanted = oldest_with(&recv, class, context);

			assert_ptr_equal(cancel(&recv, class, context), wanted);
		}
	}
	finish(&recv);
}

static void nothing_is_found_in_a_queue_without_the_context(void **state)
{
	struct fab_recv recv;

	(void) state;
	start(&recv, 0);
	for (int i = 0; i < 100; i++)
		post(&recv, FAB_CLASS_MSG, contexts);
	assert_null(cancel(&recv, FAB_CLASS_MSG, NULL));
	assert_null(cancel(&recv, FAB_CLASS_TAGGED, contexts));
	assert_null(find_posted(&recv, FAB_CLASS_MSG, contexts, true));
	finish(&recv);
}

/* ---- cost ---- */

enum { MANY = 65536 };

enum order { OLDEST_FIRST, NEWEST_FIRST, ANY_ORDER, SAME_CONTEXT, POSTED_AGAIN, ALSO_TAKEN, ORDER_MAX };

enum { OTHERS = 2 * LOOK_FIRST };		/* SAME_CONTEXT: as many have others, and are older */

static char all[MANY];

/* The context of the receive that is posted as the i-th. */
static char *posted_with(enum order order, uint64_t i)
{
	return order == SAME_CONTEXT && i >= OTHERS ? NULL : all + i;
}

/* The context of the i-th cancel. */
static char *cancelled(enum order order, uint64_t i)
{
	if (order == SAME_CONTEXT)
		return i < MANY - OTHERS ? NULL : all + i - (MANY - OTHERS);
	if (order == NEWEST_FIRST)
		return all + MANY - 1 - i;
	return all + (order == OLDEST_FIRST ? i : i * 40503 % MANY);	/* an odd factor: each once */
}

/* The steps of a cancel on average, when MANY receives are cancelled in this order. ALSO_TAKEN: after each a message
 * takes the oldest. */
static double cost_of(enum order order)
{
	struct fab_recv recv;

	start(&recv, 0);
	for (uint64_t i = 0; i < MANY; i++)
		post(&recv, FAB_CLASS_TAGGED, posted_with(order, i));
	steps = 0;
	for (uint64_t i = 0; i < MANY; i++) {
		bool found = cancel(&recv, FAB_CLASS_TAGGED, cancelled(order, i));

		assert_true(found || order == ALSO_TAKEN);
		if (order == POSTED_AGAIN)
			post(&recv, FAB_CLASS_TAGGED, cancelled(order, i));
		if (order == ALSO_TAKEN && recv.queue[FAB_CLASS_TAGGED].posted_cnt)
			message(&recv, FAB_CLASS_TAGGED);
	}
	finish(&recv);
	return (double) steps / MANY;
}

static void each_of_65536_cancels_is_a_few_steps(void **state)
{
	(void) state;
	for (enum order order = 0; order < ORDER_MAX; order++) {
		double cost = cost_of(order);

		print_message("# order %d: %.2f steps\n", order, cost);
		assert_true(cost < 10);
	}
}

/* Receives that messages take leave entries behind: these are dropped before they are many. */
static void entries_of_receives_that_are_gone_do_not_pile_up(void **state)
{
	static char others[64], last;
	struct fab_recv recv;

	(void) state;
	start(&recv, 0);
	steps = 0;
	for (int n = 0; n < 1000; n++) {
		for (size_t i = 0; i < sizeof(others); i++)
			post(&recv, FAB_CLASS_MSG, others + i);
		post(&recv, FAB_CLASS_MSG, &last);
		assert_non_null(cancel(&recv, FAB_CLASS_MSG, &last));
		assert_true(recv.by_context[FAB_CLASS_MSG]->group.cnt <= 4 * sizeof(others));
		for (size_t i = 0; i < sizeof(others); i++)
			message(&recv, FAB_CLASS_MSG);
	}
	assert_true(steps < 10 * 1000 * sizeof(others));
	finish(&recv);
}

/* The index is freed with the last cancelled receive. */
static void an_empty_queue_has_no_index(void **state)
{
	struct fab_recv recv;

	(void) state;
	start(&recv, 0);
	for (int i = 0; i < 2 * LOOK_FIRST; i++)
		post(&recv, FAB_CLASS_MSG, all + i);
	for (int i = 2 * LOOK_FIRST; i--; ) {
		assert_non_null(cancel(&recv, FAB_CLASS_MSG, all + i));
		assert_int_equal(recv.by_context[FAB_CLASS_MSG] != NULL, i > 0);
	}
	finish(&recv);
}

/* Wherever memory ends, the right receive is found. */
static void no_memory_for_an_index_makes_it_slow_only(void **state)
{
	(void) state;
	for (long n = 0; n < 8; n++) {
		struct fab_recv recv;

		start(&recv, 0);
		for (int i = 0; i < 200; i++)
			post(&recv, FAB_CLASS_MSG, all + i);
		fail_alloc(n);
		for (int i = 100; i < 200; i++) {
			struct fab_rx *wanted = oldest_with(&recv, FAB_CLASS_MSG, all + i);

			assert_ptr_equal(cancel(&recv, FAB_CLASS_MSG, all + i), wanted);
		}
		fail_alloc(-1);
		for (int i = 100; i--; )
			assert_non_null(cancel(&recv, FAB_CLASS_MSG, all + i));
		finish(&recv);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_oldest_posted_receive_with_a_context),
		cmocka_unit_test(nothing_is_found_in_a_queue_without_the_context),
		cmocka_unit_test(each_of_65536_cancels_is_a_few_steps),
		cmocka_unit_test(entries_of_receives_that_are_gone_do_not_pile_up),
		cmocka_unit_test(an_empty_queue_has_no_index),
		cmocka_unit_test(no_memory_for_an_index_makes_it_slow_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
