/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that do not know all that this library does: upstream's, and those of an older version of ours, which announces
 * fewer TCP_EXT_*. What such a peer cannot keep is refused, with a reason, and not sent as something less; what it asks
 * for means what it means there. doc/decisions/tcp-wire.md.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "base/clock.h"
#include "remote.h"

enum { KEY = 7 };

#define OLDER	(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AMO)

static int setup(void **state)
{
	struct node *node = calloc(1, sizeof(*node));

	node_open(node, FI_MSG | FI_RMA | FI_ATOMIC, FI_THREAD_UNSPEC);
	*state = node;
	return 0;
}

/* ---- what we want of them ---- */

/* A write of 8 bytes. */
struct write {
	struct tcp_hdr hdr;
	struct tcp_rma_iov rma;
	uint64_t payload;
};

static uint64_t out;

static int write_committed(struct node *node, fi_addr_t to)
{
	struct iovec iov = { &out, sizeof(out) };
	struct fi_rma_iov rma = { 0, sizeof(out), KEY };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .addr = to, .rma_iov = &rma, .rma_iov_count = 1,
				  .context = &out };

	return (int) fi_writemsg(node->ep, &msg, FI_COMPLETION | FI_COMMIT_COMPLETE);
}

static int add_committed(struct node *node, fi_addr_t to)
{
	struct fi_ioc ioc = { &out, 1 };
	struct fi_rma_ioc rma = { 0, 1, KEY };
	struct fi_msg_atomic msg = { .msg_iov = &ioc, .iov_count = 1, .addr = to, .rma_iov = &rma, .rma_iov_count = 1,
				     .datatype = FI_UINT64, .op = FI_SUM, .context = &out };

	return (int) fi_atomicmsg(node->ep, &msg, FI_COMPLETION | FI_COMMIT_COMPLETE);
}

static int write_pieces(struct node *node, fi_addr_t to)
{
	struct iovec iov = { &out, sizeof(out) };
	struct fi_rma_iov rma[TCP_RMA_IOV_MAX];
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .addr = to, .rma_iov = rma,
				  .rma_iov_count = TCP_RMA_IOV_MAX, .context = &out };

	for (int i = 0; i < TCP_RMA_IOV_MAX; i++)
		rma[i] = (struct fi_rma_iov) { (uint64_t) i, sizeof(out) / TCP_RMA_IOV_MAX, KEY };
	return (int) fi_writemsg(node->ep, &msg, FI_COMPLETION);
}

static const struct wish {
	int (*post)(struct node *node, fi_addr_t to);
	uint32_t ext;			/* of the peer */
	const char *text;		/* in the error's */
} wishes[] = {
	{ write_committed, 0, "FI_COMMIT_COMPLETE" },
	{ write_committed, OLDER, "FI_COMMIT_COMPLETE" },
	{ add_committed, OLDER, "FI_COMMIT_COMPLETE" },
	{ write_pieces, 0, "4 remote buffers" },
	{ write_pieces, OLDER, "4 remote buffers" },
};

/* The operation fails and says why, nothing of it has left, and the connection goes on: before it is up, and after. */
static void what_a_peer_cannot_keep_is_refused(void **state)
{
	struct node *node = *state;
	char text[256];

	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		const struct wish *wish = &wishes[i];
		struct peer peer = peer_open(node);
		int fd;

		assert_int_equal(wish->post(node, peer.fi_addr), 0);
		fd = peer_up_ext(node, &peer, wish->ext);
		for (int again = 0; again < 2; again++) {
			if (again)
				assert_int_equal(wish->post(node, peer.fi_addr), 0);
			expect_error(node, &out, FI_EOPNOTSUPP, text);
			if (!strstr(text, wish->text) || !strstr(text, "another libfabric, or an older one"))
				fail_msg("%zu: %s", i, text);
			send_hello(node, peer.fi_addr, &fd);
			hello_arrives(node, fd, &fd);
		}
		peer_close(&peer, fd);
	}
}

/* A write without a level asks peers for an acknowledgement that can refuse it only so, and no others. */
static void a_write_is_quiet_where_it_can_be_refused(void **state)
{
	static const struct {
		uint32_t ext;
		uint16_t flags;
	} rows[] = { { 0, 0 }, { OLDER, TCP_FLAG_DELIVERY }, { OLDER | TCP_EXT_NAK, 0 } };
	struct node *node = *state;
	struct write frame;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct peer peer = peer_open(node);
		int fd;

		assert_int_equal(fi_write(node->ep, &out, sizeof(out), NULL, peer.fi_addr, 0, KEY, &out), 0);
		fd = peer_up_ext(node, &peer, rows[i].ext);
		raw_recv(fd, &frame, sizeof(frame), drive, node);
		assert_int_equal(frame.hdr.op, TCP_WIRE_WRITE);
		assert_int_equal(frame.hdr.flags, rows[i].flags);
		if (rows[i].flags) {
			close(fd);
			expect_error(node, &out, FI_ECONNRESET, NULL);
			close(peer.listener);
		} else {
			assert_ptr_equal(completion(node, NULL), &out);
			peer_close(&peer, fd);
		}
	}
}

/* ---- what they want of us ---- */

/* A write with the flag, from a peer that says this of itself: what the acknowledgement says. */
static uint32_t committed_write(struct node *node, uint32_t ext, uint64_t addr)
{
	struct write req = {
		.hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_WRITE, .flags = TCP_FLAG_COMMIT, .rma_iov_cnt = 1,
			 .hdr_size = offsetof(struct write, payload), .size = sizeof(req) },
		.rma = { addr, sizeof(req.payload), KEY }, .payload = 4711,
	};
	struct tcp_hello hello = { .incarnation = ext, .features = (uint16_t) ext, .eager_max = 4096, .credit = 4096 };
	struct peer peer = peer_open(node);
	int fd = ext ? connected_ext(node, &peer, &hello) : connected(node, &peer, 1);
	struct {
		struct tcp_hdr hdr;
		struct tcp_ack ack;
	} ack = { 0 };

	raw_send(fd, &req, sizeof(req));
	raw_recv(fd, &ack.hdr, sizeof(ack.hdr), drive, node);
	if (ext) {
		assert_int_equal(ack.hdr.op, TCP_WIRE_ACK);
		raw_recv(fd, &ack.ack, sizeof(ack.ack), drive, node);
		assert_int_equal(ack.ack.cnt, ack.ack.err ? 0 : 1);
	} else {
		assert_int_equal(ack.hdr.op, TCP_WIRE_MSG);
		assert_int_equal(ack.hdr.op_data, TCP_OP_DATA_ACK);
	}
	peer_close(&peer, fd);
	return ack.ack.err;
}

/* Who has not said to mean it means delivery, into any memory; who has is refused where nothing would be durable. */
static void a_peer_gets_what_it_means(void **state)
{
	static const struct {
		uint32_t ext, err;
	} rows[] = { { 0, 0 }, { OLDER, 0 }, { OLDER | TCP_EXT_COMMIT, FI_EOPNOTSUPP } };
	struct node *node = *state;
	uint64_t memory = 0, addr;
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(node->domain, &memory, sizeof(memory), FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
	addr = node->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) &memory : 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memory = 0;
		assert_int_equal(committed_write(node, rows[i].ext, addr), rows[i].err);
		assert_int_equal(memory, rows[i].err ? 0 : 4711);
	}
	assert_int_equal(fi_close(&mr->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_peer_cannot_keep_is_refused, setup, node_teardown),
		cmocka_unit_test_setup_teardown(a_write_is_quiet_where_it_can_be_refused, setup, node_teardown),
		cmocka_unit_test_setup_teardown(a_peer_gets_what_it_means, setup, node_teardown),
	};

	return cmocka_run_group_tests_name("tcp/older", tests, NULL, NULL);
}
