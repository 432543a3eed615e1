/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Groups of collectives, whose members the test drives one by one: the news that a group has failed, where a member
 * cannot be connected to (FI_FIREWALL_ADDR), and messages of a join that is over.
 */
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "node.h"
#include "raw.h"
#include "tcp/params/params.h"

#define MS	1000000ULL
#define QUIET	300		/* passes after which nothing moves any more */

/* In a group of three, the last two agree, and the second one tells the first. */
enum { UNTOLD, STOPS, KNOWS, MEMBERS };

static struct node nodes[MEMBERS];
static struct fid_av_set *sets[MEMBERS];
static struct fid_mc *groups[MEMBERS];
static int joined[MEMBERS];		/* joins that have succeeded */
static int done[MEMBERS];		/* completions without an error */
static int failed[MEMBERS];		/* the last completion with an error: a positive FI_E*; 0: there was none */

static void drive(int n)
{
	struct fi_cq_data_entry entry;
	struct fi_cq_err_entry err = { 0 };
	struct fi_eq_entry event;
	uint32_t type;
	ssize_t ret = fi_cq_read(nodes[n].cq, &entry, 1);

	if (ret == -FI_EAVAIL) {
		assert_int_equal(fi_cq_readerr(nodes[n].cq, &err, 0), 1);
		failed[n] = err.err;
	} else if (ret != -FI_EAGAIN) {
		assert_int_equal(ret, 1);
		done[n]++;
	}
	if (fi_eq_read(nodes[n].eq, &type, &event, sizeof(event), 0) == sizeof(event))
		joined[n] += type == FI_JOIN_COMPLETE;
}

static void drive_both(int a, int b)
{
	for (int i = 0; i < QUIET; i++) {
		drive(a);
		drive(b);
	}
}

/* Until *cnt is want. */
static void drive_until(int a, int b, const int *cnt, int want)
{
	for (uint64_t end = fab_now_ns() + PATIENCE_MS * MS; *cnt != want;) {
		assert_true(fab_now_ns() < end);
		drive(a);
		drive(b);
	}
}

/* A message from a to b, which connects them. */
static void greet(int a, int b)
{
	char in, out = 'x';

	assert_int_equal(fi_recv(nodes[b].ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_send(nodes[a].ep, &out, 1, NULL, (fi_addr_t) b, NULL), 0);
	drive_until(a, b, &done[b], done[b] + 1);
	drive_both(a, b);
}

/* Begin to join the group of the first cnt members. */
static void join(int n, fi_addr_t cnt)
{
	struct fi_av_set_attr attr = {
		.count = cnt, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL,
	};
	fi_addr_t all;

	assert_int_equal(fi_av_set(nodes[n].av, &attr, &sets[n], NULL), 0);
	for (fi_addr_t i = 0; i < cnt; i++)
		assert_int_equal(fi_av_set_insert(sets[n], i), 0);
	assert_int_equal(fi_av_set_addr(sets[n], &all), 0);
	assert_int_equal(fi_join_collective(nodes[n].ep, all, sets[n], 0, &groups[n], NULL), 0);
}

static void leave(int n)
{
	if (groups[n])
		assert_int_equal(fi_close(&groups[n]->fid), 0);
	if (sets[n])
		assert_int_equal(fi_close(&sets[n]->fid), 0);
	groups[n] = NULL;
	sets[n] = NULL;
}

static void broadcast(int n, int root)
{
	static char buf[8];

	assert_int_equal(fi_broadcast(nodes[n].ep, buf, sizeof(buf), NULL, fi_mc_addr(groups[n]), (fi_addr_t) root,
				      FI_UINT8, 0, NULL), 0);
}

static int members_open(void **state)
{
	(void) state;
	test_clock_start();
	memset(joined, 0, sizeof(joined));
	memset(done, 0, sizeof(done));
	memset(failed, 0, sizeof(failed));
	for (int n = 0; n < MEMBERS; n++) {
		test_random += 2;	/* an incarnation is odd */
		node_open(&nodes[n], FI_MSG | FI_COLLECTIVE, FI_THREAD_UNSPEC);
	}
	for (int n = 0; n < MEMBERS; n++) {
		for (int i = 0; i < MEMBERS; i++)
			assert_int_equal(fi_av_insert(nodes[n].av, &nodes[i].addr, 1, NULL,
						      n == KNOWS && i == UNTOLD ? FI_FIREWALL_ADDR : 0, NULL), 1);
	}
	return 0;
}

static int members_close(void **state)
{
	(void) state;
	for (int n = 0; n < MEMBERS; n++)
		leave(n);
	for (int n = 0; n < MEMBERS; n++)
		node_close(&nodes[n]);
	return 0;
}

/* ---- news ---- */

/* KNOWS and STOPS have joined, and UNTOLD has not read the last message of the join. From here on STOPS says nothing to
 * anybody, and KNOWS cannot connect to UNTOLD. */
static void join_but_for_one(void)
{
	greet(UNTOLD, STOPS);
	greet(KNOWS, STOPS);
	join(UNTOLD, MEMBERS);
	join(STOPS, MEMBERS);
	drive_both(UNTOLD, STOPS);
	join(KNOWS, MEMBERS);
	drive_both(STOPS, KNOWS);
	assert_true(joined[STOPS] && joined[KNOWS] && !joined[UNTOLD]);
}

/* KNOWS gives up connecting to UNTOLD. */
static void wait_in_vain(void)
{
	drive_both(KNOWS, KNOWS);
	test_added_ns += tcp_params.connect_timeout_ms * MS;
	drive_both(KNOWS, KNOWS);
}

/* UNTOLD joins, connects, and waits for a message of KNOWS, to which it has nothing to send. */
static void expect_told(int err)
{
	drive_until(UNTOLD, UNTOLD, &joined[UNTOLD], 1);
	broadcast(UNTOLD, KNOWS);
	drive_until(UNTOLD, KNOWS, &failed[UNTOLD], err);
}

/* There was no connection, and KNOWS makes none for a while. */
static void member_is_told_when_it_connects(void **state)
{
	(void) state;
	join_but_for_one();
	assert_int_equal(fi_barrier(nodes[KNOWS].ep, fi_mc_addr(groups[KNOWS]), NULL), 0);
	wait_in_vain();
	assert_int_equal(failed[KNOWS], FI_EFIREWALLADDR);
	expect_told(FI_EFIREWALLADDR);
}

/* The news has waited for a connection, and ended with the attempt. The group is closed by then. */
static void lost_news_goes_with_the_next_connection(void **state)
{
	(void) state;
	join_but_for_one();
	leave(KNOWS);
	wait_in_vain();
	expect_told(FI_ECANCELED);
}

/* ---- messages of a join that is over ---- */

/* One member leaves its first join, and takes the other's message of that for one of its second join, which the other
 * never begins. When both have left all groups, the message that it has sent in the second join is not taken for one of
 * the third. */
static void left_join_leaves_no_message(void **state)
{
	enum { HASTY, SLOW };

	(void) state;
	greet(HASTY, SLOW);
	join(HASTY, 2);
	join(SLOW, 2);
	drive_both(SLOW, SLOW);
	assert_int_equal(joined[SLOW], 1);
	leave(HASTY);
	join(HASTY, 2);
	drive_both(HASTY, HASTY);
	assert_int_equal(joined[HASTY], 1);
	broadcast(HASTY, HASTY);
	drive_until(HASTY, HASTY, &done[HASTY], 2);
	leave(HASTY);
	drive_both(HASTY, SLOW);
	leave(SLOW);
	drive_both(HASTY, SLOW);
	join(SLOW, 2);			/* in this order the larger number is that of the message that may be missed */
	join(HASTY, 2);
	drive_until(HASTY, SLOW, &joined[HASTY], 2);
	drive_until(HASTY, SLOW, &joined[SLOW], 2);
	assert_int_equal(fi_barrier(nodes[HASTY].ep, fi_mc_addr(groups[HASTY]), NULL), 0);
	assert_int_equal(fi_barrier(nodes[SLOW].ep, fi_mc_addr(groups[SLOW]), NULL), 0);
	drive_until(HASTY, SLOW, &done[HASTY], 3);
	drive_until(HASTY, SLOW, &done[SLOW], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(member_is_told_when_it_connects, members_open, members_close),
		cmocka_unit_test_setup_teardown(lost_news_goes_with_the_next_connection, members_open, members_close),
		cmocka_unit_test_setup_teardown(left_join_leaves_no_message, members_open, members_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
