/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * More connections than the process may have: idle ones are closed and opened again, and nobody sees it. Some
 * endpoints, each with an engine of its own, all talk to all, at random and with sockets that take and give bytes in
 * random portions; each message must arrive once and in its order, each operation complete once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "jitter.h"
#include "node.h"
#include "tcp/peer/peers.h"
#include "tcp/params/params.h"

#define NODES		8
#define MAX_CONN	10		/* of 56, both ends of each counted */
#define OPS		1500
#define RECVS		2
#define LEN_MAX		(288 * 1024)	/* longer than what is sent unasked */
#define PATIENCE_MS	60000

struct message {
	uint32_t src, seq;
};

struct member {
	struct node node;
	struct fid_mr *mr;
	fi_addr_t to[NODES];
	uint32_t sent[NODES], got[NODES];	/* messages, to and from */
	uint64_t window[NODES][2];		/* remote writes and sums of each */
	uint64_t added[NODES];			/* to the sum of each */
	uint64_t key;
	uint8_t *recv_buf[RECVS];
};

static struct member member[NODES];
static uint32_t ops_posted, ops_done;
static uint8_t completed[OPS];
static uint8_t *payload;
static unsigned accepted;
static int counting_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int ret = fab_sock_libc.accept4(fd, addr, len, flags);

	accepted += ret >= 0;
	return ret;
}

/* ---- members ---- */

static void post_recv(struct member *m, uint8_t *buf)
{
	assert_int_equal(fi_recv(m->node.ep, buf, LEN_MAX, NULL, FI_ADDR_UNSPEC, buf), 0);
}

static void member_open(struct member *m)
{
	memset(m, 0, sizeof(*m));
	node_open(&m->node, FI_MSG | FI_RMA | FI_ATOMIC, FI_THREAD_DOMAIN);
	assert_int_equal(fi_mr_reg(m->node.domain, m->window, sizeof(m->window), FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 7,
				   0, &m->mr, NULL), 0);
	m->key = fi_mr_key(m->mr);
}

static void member_close(struct member *m)
{
	assert_int_equal(fi_close(&m->mr->fid), 0);
	node_close(&m->node);
	for (int i = 0; i < RECVS; i++)
		free(m->recv_buf[i]);
}

static int setup(void **state)
{
	(void) state;
	tcp_params.max_conn = MAX_CONN;
	jitter_open();
	jitter_sock.accept4 = counting_accept4;
	accepted = ops_posted = ops_done = 0;
	payload = calloc(1, LEN_MAX);
	for (int i = 0; i < NODES; i++)
		member_open(&member[i]);
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++)
			member[i].to[j] = node_insert(&member[i].node, &member[j].node.addr);
	}
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	jitter_off();
	for (int i = 0; i < NODES; i++)
		member_close(&member[i]);
	free(payload);
	jitter_close();
	tcp_params.max_conn = 0;
	return 0;
}

/* ---- traffic ---- */

static void got_message(struct member *m, uint8_t *buf)
{
	struct message msg;

	memcpy(&msg, buf, sizeof(msg));
	assert_true(msg.src < NODES);
	assert_int_equal(msg.seq, m->got[msg.src]);
	m->got[msg.src]++;
	post_recv(m, buf);
}

static void drive(struct member *m)
{
	struct fi_cq_data_entry entry;
	ssize_t ret = fi_cq_read(m->node.cq, &entry, 1);

	if (ret == -FI_EAGAIN)
		return;
	if (ret == -FI_EAVAIL) {
		struct fi_cq_err_entry err = { 0 };

		fi_cq_readerr(m->node.cq, &err, 0);
		fail_msg("%s", fi_cq_strerror(m->node.cq, err.prov_errno, err.err_data, NULL, 0));
	}
	assert_int_equal(ret, 1);
	if (entry.flags & FI_RECV) {
		got_message(m, entry.op_context);
	} else {
		uint8_t *done = entry.op_context;

		assert_int_equal(++*done, 1);
		ops_done++;
	}
}

static void drive_all(void)
{
	for (int i = 0; i < NODES; i++)
		drive(&member[i]);
}

static size_t random_len(void)
{
	switch (jitter_dice(12)) {
	case 0:
		return 256 * 1024 + 1 + jitter_dice(16 * 1024);
	case 1:
		return 8 + jitter_dice(40000);
	default:
		return 8 + jitter_dice(64);
	}
}

static void post_message(struct member *m, uint32_t me, uint32_t peer, void *context)
{
	struct message msg = { .src = me, .seq = m->sent[peer]++ };
	size_t len = random_len();
	uint8_t *buf = payload;
	ssize_t ret;

	/* long ones stay with us until the peer wants them: then all that is common to them is the header's place */
	if (len > 128) {
		buf = malloc(LEN_MAX);
		memcpy(buf, &msg, sizeof(msg));
		ret = fi_send(m->node.ep, buf, len, NULL, m->to[peer], context);
		assert_int_equal(ret, 0);
		while (!*(volatile uint8_t *) context)
			drive_all();
		free(buf);
		return;
	}
	memcpy(buf, &msg, sizeof(msg));
	ret = fi_sendmsg(m->node.ep, &(struct fi_msg) { .msg_iov = &(struct iovec) { buf, len }, .iov_count = 1,
			 .addr = m->to[peer], .context = context }, FI_INJECT | FI_COMPLETION);
	assert_int_equal(ret, 0);
}

static uint64_t landing[OPS];

static void post_op(uint32_t op)
{
	static const uint64_t one = 1;
	uint32_t me = jitter_dice(NODES), peer = jitter_dice(NODES);
	struct member *m = &member[me];
	void *context = &completed[op];
	uint64_t at = me * sizeof(m->window[0]), key = member[peer].key;
	ssize_t ret = 0;

	completed[op] = 0;
	landing[op] = op;
	ops_posted++;
	switch (jitter_dice(10)) {
	case 0:
		m->added[peer]++;
		ret = fi_atomic(m->node.ep, &one, 1, NULL, m->to[peer], at + sizeof(one), key, FI_UINT64, FI_SUM,
				context);
		break;
	case 1:
		ret = fi_write(m->node.ep, &landing[op], 8, NULL, m->to[peer], at, key, context);
		break;
	case 2:
		ret = fi_read(m->node.ep, &landing[op], 8, NULL, m->to[peer], at, key, context);
		break;
	default:
		post_message(m, me, peer, context);
	}
	assert_int_equal(ret, 0);
}

static bool all_arrived(void)
{
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++) {
			if (member[i].sent[j] != member[j].got[i])
				return false;
		}
	}
	/* a write or an atomic without a level completes before the peer has it */
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++) {
			if (member[j].window[i][1] != member[i].added[j])
				return false;
		}
	}
	return ops_done == ops_posted;
}

static void finish(void)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	while (!all_arrived() && fab_now_ms() < end_ms)
		drive_all();
	assert_int_equal(ops_done, ops_posted);
	assert_true(all_arrived());
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++)
			assert_int_equal(member[j].window[i][1], member[i].added[j]);
	}
}

static void post_all_recvs(void)
{
	for (int i = 0; i < NODES; i++) {
		for (int k = 0; k < RECVS; k++)
			post_recv(&member[i], member[i].recv_buf[k] = malloc(LEN_MAX));
	}
}

static void run(uint64_t seed)
{
	jitter_on(seed, 4);
	for (uint32_t op = 0; op < OPS; op++) {
		post_op(op);
		for (uint32_t i = jitter_dice(6); i; i--)
			drive(&member[jitter_dice(NODES)]);
		if (!jitter_dice(20))
			for (uint32_t i = 0; i < 50; i++)
				drive_all();
	}
	finish();
}

static const struct tcp_conn *conn_to(const struct member *m, const struct member *peer)
{
	const struct tcp_ep *ep = fab_container(m->node.ep, struct tcp_ep, base.ep_fid);
	union fab_sockaddr addr = { .sin = peer->node.addr };
	const struct tcp_peer *entry = tcp_peer_find(ep->rdm.peers, &addr, NULL, 0);

	return entry && entry->life ? &entry->life->conn : NULL;
}

/* True if both ends of each pair agree that their connection is parked, or that it is not. */
static bool all_agree(void)
{
	bool agree = true;

	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++) {
			const struct tcp_conn *here = conn_to(&member[i], &member[j]);
			const struct tcp_conn *there = conn_to(&member[j], &member[i]);

			agree &= i == j || !here || !there || here->park.parked == there->park.parked;
		}
	}
	return agree;
}

/* What one end may still send unasked and what the other has yet to give back is all there is, however often the
 * connection between them was opened. */
static void credits_add_up(void)
{
	for (int i = 0; i < NODES; i++) {
		for (int j = 0; j < NODES; j++) {
			const struct tcp_conn *here = conn_to(&member[i], &member[j]);
			const struct tcp_conn *there = conn_to(&member[j], &member[i]);

			if (i == j || !here || !there)
				continue;
			assert_int_equal(here->park.parked, there->park.parked);
			assert_int_equal(there->msg.unexp_len, 0);
			assert_int_equal(here->tx.credit + there->owed.credit, tcp_params.credit);
		}
	}
}

/* Each pair meets for the first time once; what is accepted beyond that was closed in between. */
static void all_to_all_with_few_connections(void **state)
{
	uint64_t end_ms;

	(void) state;
	post_all_recvs();
	for (uint64_t seed = 1; seed < 4; seed++) {
		ops_posted = ops_done = 0;
		run(seed);
	}
	jitter_off();
	end_ms = fab_now_ms() + PATIENCE_MS;
	do {
		for (int i = 0; i < 1000; i++)
			drive_all();
	} while (!all_agree() && fab_now_ms() < end_ms);
	credits_add_up();
	assert_true(accepted > 3 * NODES * NODES);
	print_message("%u connections for %u pairs\n", accepted, NODES * (NODES + 1) / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_to_all_with_few_connections, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
