/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Which connections go when there are too many: those that have been idle for longest. One endpoint talks to some in
 * turn, and to the first two once more; then the process may have fewer connections.
 */
#include "base/bits.h"
#include "node.h"
#include "tcp/peer/peers.h"
#include "tcp/params/params.h"

#define PEERS		8
#define AGAIN		2		/* the first of them are used again */
#define GOING		4
#define PLENTY		1000
#define PATIENCE	1000000		/* passes */

static struct node hub, peer[PEERS];
static fi_addr_t to[PEERS];
static char buf[8];

static void drive(struct node *node, int *sent, int *got)
{
	struct fi_cq_data_entry entry;
	ssize_t ret = fi_cq_read(node->cq, &entry, 1);

	if (ret == -FI_EAGAIN)
		return;
	assert_int_equal(ret, 1);
	*(entry.flags & FI_RECV ? got : sent) += 1;
}

/* A message to the peer, there and reported; and some passes more of the hub, in which it is not used. */
static void talk_to(int i)
{
	int sent = 0, got = 0;

	assert_int_equal(fi_recv(peer[i].ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), 0);
	assert_int_equal(fi_send(hub.ep, buf, sizeof(buf), NULL, to[i], NULL), 0);
	for (int n = 0; !sent || !got; n++) {
		assert_in_range(n, 0, PATIENCE);
		drive(&hub, &sent, &got);
		drive(&peer[i], &sent, &got);
	}
	for (int n = 0; n < 100; n++) {
		drive(&hub, &sent, &got);
		drive(&peer[i], &sent, &got);
	}
}

static bool is_connected(int i)
{
	const struct tcp_conn *conn = tcp_ep_of(&hub.ep->fid)->rdm.by_addr[to[i]];

	return conn && conn->state == TCP_CONN_UP;
}

static int connected_cnt(void)
{
	int cnt = 0;

	for (int i = 0; i < PEERS; i++)
		cnt += is_connected(i);
	return cnt;
}

static void longest_idle_go_first(void **state)
{
	int none = 0, i, n;

	(void) state;
	for (i = 0; i < PEERS; i++)
		talk_to(i);
	for (i = 0; i < AGAIN; i++)
		talk_to(i);
	assert_int_equal(connected_cnt(), PEERS);
	tcp_params.max_conn = 2 * PEERS - GOING;	/* both ends of each count; but asking is for this many */
	tcp_reap_start(tcp_ep_of(&hub.ep->fid)->rdm.peers);
	for (n = 0; connected_cnt() > PEERS - GOING; n++) {
		assert_in_range(n, 0, PATIENCE);
		drive(&hub, &none, &none);
		for (i = 0; i < PEERS; i++)
			drive(&peer[i], &none, &none);
	}
	for (i = 0; i < PEERS; i++)
		assert_int_equal(is_connected(i), i < AGAIN || i >= AGAIN + GOING);
	assert_int_equal(none, 0);
	tcp_params.max_conn = PLENTY;
	for (i = 0; i < PEERS; i++)
		talk_to(i);
	assert_int_equal(connected_cnt(), PEERS);
}

static int setup(void **state)
{
	(void) state;
	tcp_params.max_conn = PLENTY;
	node_open(&hub, FI_MSG, FI_THREAD_DOMAIN);
	for (int i = 0; i < PEERS; i++) {
		node_open(&peer[i], FI_MSG, FI_THREAD_DOMAIN);
		to[i] = node_insert(&hub, &peer[i].addr);
	}
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	node_close(&hub);
	for (int i = 0; i < PEERS; i++)
		node_close(&peer[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(longest_idle_go_first, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
