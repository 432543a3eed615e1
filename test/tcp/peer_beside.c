/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An RDM endpoint that opens or closes while another thread drives its engine: whatever happens between two times that
 * the lock is held.
 */
#include <unistd.h>
#include "base/clock.h"
#include "base/lock.h"
#include "remote.h"

/* What another thread may do whenever this one lets go of an engine's lock. */
static void (*beside)(void *arg);
static void *beside_arg;
static const struct fab_lock_ops *real_mutex;
static struct fab_lock_ops meddling_mutex;

static void release_and_run(struct fab_lock *lock)
{
	void (*fn)(void *arg) = beside;

	real_mutex->unlock(lock);
	if (!fn)
		return;
	beside = NULL;
	fn(beside_arg);
	beside = fn;
}

static int setup_beside(void **state)
{
	real_mutex = fab_lock_kinds[FAB_LOCK_MUTEX];
	meddling_mutex = *real_mutex;
	meddling_mutex.unlock = release_and_run;
	fab_lock_kinds[FAB_LOCK_MUTEX] = &meddling_mutex;
	return node_setup(state);
}

static int teardown_beside(void **state)
{
	node_teardown(state);
	fab_lock_kinds[FAB_LOCK_MUTEX] = real_mutex;
	return 0;
}

/* A pass, long after the one before. */
static void late_pass(void *arg)
{
	test_added_ns += 3600000 * MS;
	drive(arg);
}

static void close_meets_a_pass_of_another_thread(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd;

	send_hello(node, peer.fi_addr, NULL);
	fd = peer_up(node, &peer);
	hello_arrives(node, fd, NULL);
	beside = late_pass;
	beside_arg = node;
	assert_int_equal(fi_close(&node->ep->fid), 0);
	beside = NULL;
	node_open_ep(node);
	peer_close(&peer, fd);
}

/* The first peer there is: accepted, and then its address is inserted, both while fi_enable is under way. */
struct early {
	struct node *node;
	struct peer peer;
	int fd;
};

static void early_peer_comes(void *arg)
{
	struct early *early = arg;
	struct node *node = early->node;
	size_t len = sizeof(node->addr);

	if (early->fd >= 0 || !((struct tcp_ep *) node->ep)->rdm.peers)
		return;
	assert_int_equal(fi_getname(&node->ep->fid, &node->addr, &len), 0);
	early->fd = connected(node, &early->peer, 1);
	early->peer.fi_addr = node_insert(node, &early->peer.addr);
}

static void open_meets_a_peer_and_its_address(void **state)
{
	struct node *node = *state;
	struct early early = { .node = node, .peer.listener = raw_listen(&early.peer.addr, 1), .fd = -1 };
	char buf[5];

	assert_int_equal(fi_close(&node->ep->fid), 0);
	beside = early_peer_comes;
	beside_arg = &early;
	node_open_ep(node);
	beside = NULL;
	assert_true(early.fd >= 0);
	assert_int_equal(recv_from(node, early.fd, buf), early.peer.fi_addr);
	peer_close(&early.peer, early.fd);
}

#define BESIDE(fn) cmocka_unit_test_setup_teardown(fn, setup_beside, teardown_beside)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BESIDE(close_meets_a_pass_of_another_thread),
		BESIDE(open_meets_a_peer_and_its_address),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/peer_beside", tests, NULL, NULL);
}
