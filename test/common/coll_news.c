/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The news that a group has failed, which may be lost on its way to a neighbour: when it is sent again, and how often.
 */
#include "unit.h"

#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/collective/coll_group.h"
#include "engine.h"

#define PEER	5
#define OTHER	6
#define TAG	(0x77ULL << 24)
#define TRIES	8		/* of this end, after the first */

static struct fab_ep ep;
static unsigned told[8];	/* by peer: how often */
static uint64_t last_tag;
static int last_err;
static bool reached = true;

static int note_abort(struct fab_ep *from, fi_addr_t member, uint64_t tag, int err)
{
	assert_ptr_equal(from, &ep);
	told[member]++;
	last_tag = tag;
	last_err = err;
	return reached ? 0 : -FI_EHOSTUNREACH;
}

static int open_coll(void **state)
{
	static const struct fab_coll_net net = { .abort = note_abort };

	assert_int_equal(setup(state), 0);
	ep = (struct fab_ep) { .engine = &engine };
	memset(told, 0, sizeof(told));
	reached = true;
	fab_engine_lock(&engine);
	return fab_coll_open(&ep, &net);
}

static int close_coll(void **state)
{
	fab_coll_fini(&ep);
	fab_engine_unlock(&engine);
	return teardown(state);
}

static void expect_told(fi_addr_t peer, unsigned times)
{
	fab_engine_run(&engine);
	assert_int_equal(told[peer], times);
}

/* News that was sent on a connection that lives is not repeated. */
static void sent_news_is_told_once(void **state)
{
	(void) state;
	fab_coll_tell(ep.coll, PEER, TAG, FI_EIO);
	fab_coll_met(ep.coll, PEER, 1);
	expect_told(PEER, 1);
}

/* With each new connection after a loss, of this peer alone. */
static void lost_news_goes_with_each_connection(void **state)
{
	(void) state;
	fab_coll_tell(ep.coll, PEER, TAG, FI_EIO);
	fab_coll_tell(ep.coll, OTHER, TAG, FI_EIO);
	for (unsigned i = 2; i < 100; i++) {
		fab_coll_lost(ep.coll, PEER, FI_ECONNRESET);
		expect_told(PEER, i - 1);
		fab_coll_met(ep.coll, OTHER, 1);
		fab_coll_met(ep.coll, PEER, 1);
		last_tag = 0;
		expect_told(PEER, i);
		assert_int_equal(last_tag, TAG);
		assert_int_equal(last_err, FI_EIO);
	}
	fab_coll_lost(ep.coll, OTHER, FI_ECONNRESET);
	fab_coll_met(ep.coll, PEER, 1);
	expect_told(OTHER, 1);
}

static void unreachable_peer_is_told_when_it_connects(void **state)
{
	(void) state;
	reached = false;
	fab_coll_tell(ep.coll, PEER, TAG, FI_EIO);
	expect_told(PEER, 1);
	fab_coll_met(ep.coll, PEER, 1);
	expect_told(PEER, 2);
	reached = true;
	fab_coll_met(ep.coll, PEER, 1);
	expect_told(PEER, 3);
	fab_coll_met(ep.coll, PEER, 1);
	expect_told(PEER, 3);
}

/* A loss that the provider reports makes connections, but not for ever; the peer's own still bring the news. */
static void this_end_tries_again_a_few_times(void **state)
{
	(void) state;
	fab_coll_tell(ep.coll, PEER, TAG, FI_EIO);
	for (unsigned i = 0; i < TRIES; i++) {
		fab_coll_untold(ep.coll, PEER, TAG | 0xabcdef);		/* the rest of the tag does not count */
		expect_told(PEER, i + 2);
	}
	fab_coll_untold(ep.coll, PEER, TAG);
	expect_told(PEER, TRIES + 1);
	fab_coll_met(ep.coll, PEER, 1);
	expect_told(PEER, TRIES + 2);
}

/* The old connection's loss is reported when the new one has been made: the news still leaves. */
static void late_report_takes_nothing_back(void **state)
{
	(void) state;
	fab_coll_tell(ep.coll, PEER, TAG, FI_EIO);
	for (unsigned i = 0; i < TRIES; i++)
		fab_coll_untold(ep.coll, PEER, TAG);	/* one report counts until the news has left */
	expect_told(PEER, 2);
	fab_coll_lost(ep.coll, PEER, FI_ECONNRESET);
	fab_coll_met(ep.coll, PEER, 1);
	fab_coll_untold(ep.coll, PEER, TAG);
	expect_told(PEER, 3);
}

static void new_join_makes_news_void(void **state)
{
	(void) state;
	fab_coll_tell(ep.coll, PEER, TAG, FI_EIO);
	fab_coll_tell(ep.coll, PEER, 2 * TAG, FI_EIO);
	fab_coll_lost(ep.coll, PEER, FI_ECONNRESET);
	fab_coll_news_forget(ep.coll, TAG);
	fab_coll_met(ep.coll, PEER, 1);
	expect_told(PEER, 3);
	assert_int_equal(last_tag, 2 * TAG);
}

/* The oldest is forgotten, and repeated news takes no room. */
static void news_is_bounded(void **state)
{
	(void) state;
	for (uint64_t i = 1; i < FAB_COLL_NEWS_MAX; i++)
		fab_coll_tell(ep.coll, PEER, i << 24, FI_EIO);
	for (unsigned i = 0; i < 2 * FAB_COLL_NEWS_MAX; i++)
		fab_coll_tell(ep.coll, OTHER, TAG, FI_EIO);
	fab_coll_tell(ep.coll, PEER, 1ULL << 40, FI_EIO);
	fab_coll_lost(ep.coll, PEER, FI_ECONNRESET);
	fab_coll_lost(ep.coll, OTHER, FI_ECONNRESET);
	fab_coll_met(ep.coll, PEER, 1);
	fab_coll_met(ep.coll, OTHER, 1);
	expect_told(PEER, 2 * FAB_COLL_NEWS_MAX - 1);
	expect_told(OTHER, 2 * FAB_COLL_NEWS_MAX + 1);
}

/* That this end has left a group is said once. */
static void leaving_is_no_news(void **state)
{
	(void) state;
	fab_coll_tell(ep.coll, PEER, TAG, 0);
	fab_coll_lost(ep.coll, PEER, FI_ECONNRESET);
	fab_coll_met(ep.coll, PEER, 1);
	expect_told(PEER, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_coll, close_coll)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sent_news_is_told_once),
		TEST(lost_news_goes_with_each_connection),
		TEST(unreachable_peer_is_told_when_it_connects),
		TEST(this_end_tries_again_a_few_times),
		TEST(late_report_takes_nothing_back),
		TEST(new_join_makes_news_void),
		TEST(news_is_bounded),
		TEST(leaving_is_no_news),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
