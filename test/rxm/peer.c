/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What ofi_rxm does about peers that fail, ask too much or break the rules, and about a queue below that fails: each
 * operation ends once, with the reason, at both ends; nothing grows without bound.
 */
#include "rxm/rig.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "rxm/rxm.h"
#include "stats.h"
#include "stats_why.h"

#define NO_KEY	0x123456789abcdefULL	/* of no memory */

static char out[1 << 18], in[1 << 18];

/* ---- transfers that fail ---- */

/* The peer announces a message of len bytes that it has nowhere. */
static void announce(struct rig *rig, size_t len, uint64_t msg_id)
{
	struct rxm_rndv rndv = { .iov[0] = { .len = len, .key = NO_KEY }, .count = 1 };
	struct rxm_pkt *pkt = rig_make(rig, RXM_RNDV_REQ, RXM_OP_MSG, sizeof(rndv));

	pkt->ctrl.msg_id = msg_id;
	pkt->op.size = len;
	memcpy(pkt->data, &rndv, sizeof(rndv));
	rig_send(rig, pkt, sizeof(rndv));
}

/* An announced message that cannot be read: the receive fails, and so does the send of the other end. */
static void unreadable(void **state)
{
	const struct rxm_pkt *answer;
	struct rig rig;

	(void) state;
	rig_open(&rig, true, true);
	OK((int) fi_recv(rig.ep, in, 65536, NULL, FI_ADDR_UNSPEC, in));
	announce(&rig, 65536, 77);
	assert_int_not_equal(rig_result(&rig, in), 0);
	rig_text(&rig, rig.port, "the target refuses 65536 bytes");
	answer = rig_packet(&rig);
	assert_int_equal(answer->ctrl.type, RXM_RNDV_DONE);
	assert_int_equal(answer->ctrl.msg_id, 77);
	assert_int_not_equal(answer->ctrl.ctrl_data, 0);
	rig_close(&rig);
}

/* Where the other end cannot be told, its send must not look like a success: the connection ends. */
static void unreadable_by_upstream(void **state)
{
	struct rig rig;

	(void) state;
	rig_open(&rig, false, true);
	OK((int) fi_recv(rig.ep, in, 65536, NULL, FI_ADDR_UNSPEC, in));
	announce(&rig, 65536, 77);
	assert_int_not_equal(rig_result(&rig, in), 0);
	rig_until(&rig, rig.down);
	assert_int_equal(rig.arrived_cnt, 0);
	rig_close(&rig);
}

/* The send of an announced message of len bytes has begun; the packet with which it has. */
static struct rxm_pkt send_announced(struct rig *rig, size_t len)
{
	const struct rxm_pkt *req;

	OK((int) fi_send(rig->ep, out, len, NULL, rig->peer, out));
	req = rig_packet(rig);
	assert_int_equal(req->ctrl.type, RXM_RNDV_REQ);
	return *req;
}

/* The receiver says that it could not read the message: the send ends with its reason. */
static void not_read(void **state)
{
	struct rxm_pkt *answer, req;
	struct rig rig;

	(void) state;
	rig_open(&rig, true, true);
	req = send_announced(&rig, sizeof(out));
	answer = rig_make(&rig, RXM_RNDV_DONE, RXM_OP_MSG, 0);
	answer->ctrl.msg_id = req.ctrl.msg_id;
	answer->ctrl.ctrl_data = FI_EACCES;
	rig_send(&rig, answer, 0);
	assert_int_equal(rig_result(&rig, out), FI_EACCES);
	rig_text(&rig, rig.port, "the peer could not execute it: Permission denied");
	rig_close(&rig);
}

/* What upstream has in that field means nothing. */
static void read_by_upstream(void **state)
{
	struct rxm_pkt *answer, req;
	struct rig rig;

	(void) state;
	rig_open(&rig, false, true);
	req = send_announced(&rig, sizeof(out));
	answer = rig_make(&rig, RXM_RNDV_DONE, RXM_OP_MSG, 0);
	answer->ctrl.msg_id = req.ctrl.msg_id;
	answer->ctrl.ctrl_data = FI_EACCES;
	rig_send(&rig, answer, 0);
	assert_int_equal(rig_result(&rig, out), 0);
	rig_close(&rig);
}

/* A message cannot be written to where the receiver says: both ends hear of it. */
static void not_written(void **state)
{
	struct rxm_rndv rndv = { .iov[0] = { .len = sizeof(out), .key = NO_KEY }, .count = 1 };
	const struct rxm_pkt *answer;
	struct rxm_pkt *room, req;
	struct rig rig;

	(void) state;
	rig_open(&rig, true, true);
	req = send_announced(&rig, sizeof(out));
	room = rig_make(&rig, RXM_RNDV_WR, RXM_OP_MSG, sizeof(rndv));
	room->ctrl.msg_id = req.ctrl.msg_id;
	room->ctrl.ctrl_data = 88;
	room->op.size = sizeof(out);
	memcpy(room->data, &rndv, sizeof(rndv));
	rig_send(&rig, room, sizeof(rndv));
	assert_int_not_equal(rig_result(&rig, out), 0);
	rig_text(&rig, rig.port, "the target refuses");
	answer = rig_packet(&rig);
	assert_int_equal(answer->ctrl.type, RXM_RNDV_WDONE);
	assert_int_equal(answer->ctrl.msg_id, 88);
	assert_int_not_equal(answer->ctrl.ctrl_data, 0);
	rig_close(&rig);
}

/* A peer that ends the connection: what it was asked for ends with that. */
static void closed(void **state)
{
	struct rig rig;

	(void) state;
	rig_open(&rig, true, true);
	send_announced(&rig, sizeof(out));
	OK(fi_shutdown(rig.raw, 0));
	assert_int_equal(rig_result(&rig, out), FI_ECONNRESET);
	rig_text(&rig, rig.port, "the peer has closed the connection");
	rig_close(&rig);
}

/* A peer that nobody is at: what the provider below says of it is told. */
static void nobody(void **state)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	fi_addr_t to;
	struct rig rig;
	int fd;

	(void) state;
	rig_open(&rig, true, true);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	OK(bind(fd, (struct sockaddr *) &addr, len));
	OK(getsockname(fd, (struct sockaddr *) &addr, &len));
	OK(fi_av_insert(rig.av, &addr, 1, &to, 0, NULL) - 1);
	OK((int) fi_send(rig.ep, out, 4, NULL, to, out));
	assert_int_equal(rig_result(&rig, out), FI_ECONNREFUSED);
	rig_text(&rig, ntohs(addr.sin_port), "cannot connect: ");
	rig_text(&rig, ntohs(addr.sin_port), "Connection refused");
	close(fd);
	rig_close(&rig);
}

/* ---- levels ---- */

static void send_asking(struct rig *rig, uint32_t flags, uint64_t msg_id)
{
	struct rxm_pkt *pkt = rig_make(rig, RXM_EAGER, RXM_OP_MSG, 4);

	pkt->ctrl.msg_id = msg_id;
	pkt->op.size = 4;
	pkt->op.flags = flags;
	memcpy(pkt->data, "1234", 4);
	rig_send(rig, pkt, 4);
}

static void expect_ack(struct rig *rig, uint64_t msg_id)
{
	const struct rxm_pkt *answer = rig_packet(rig);

	assert_int_equal(answer->ctrl.type, RXM_ACK);
	assert_int_equal(answer->ctrl.msg_id, msg_id);
}

/* Delivered is a message that is kept; matched only one that a receive has taken. */
static void levels(void **state)
{
	struct rig rig;

	(void) state;
	rig_open(&rig, true, true);
	send_asking(&rig, RXM_FLAG_ACK | RXM_FLAG_MATCH, 1);
	send_asking(&rig, RXM_FLAG_ACK, 2);
	expect_ack(&rig, 2);
	OK((int) fi_recv(rig.ep, in, 4, NULL, FI_ADDR_UNSPEC, in));
	expect_ack(&rig, 1);
	assert_int_equal(rig_result(&rig, in), 0);
	rig_close(&rig);
}

/* Send a message that the peer has to acknowledge. Returns the number of the request. */
static uint64_t ask(struct rig *rig, void *context)
{
	const struct iovec iov = { in, 4 };
	const struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = rig->peer, .context = context };
	const struct rxm_pkt *pkt;

	OK((int) fi_sendmsg(rig->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	pkt = rig_packet(rig);
	assert_true(pkt->op.flags & RXM_FLAG_ACK);
	return pkt->ctrl.msg_id;
}

static void acknowledge(struct rig *rig, uint64_t msg_id)
{
	struct rxm_pkt *pkt = rig_make(rig, RXM_ACK, RXM_OP_MSG, 0);

	pkt->ctrl.msg_id = msg_id;
	rig_send(rig, pkt, 0);
}

/* An answer that comes again is not taken for that to another request. */
static void second_answer(void **state)
{
	uint64_t first, second;
	struct rig rig;

	(void) state;
	rig_open(&rig, true, true);
	first = ask(&rig, &first);
	acknowledge(&rig, first);
	assert_int_equal(rig_result(&rig, &first), 0);
	second = ask(&rig, &second);
	assert_int_not_equal(second, first);
	acknowledge(&rig, first);
	assert_int_equal(rig_result(&rig, &second), FI_EPROTO);
	rig_text(&rig, rig.port, "the peer broke the protocol");
	rig_until(&rig, rig.down);
	rig_close(&rig);
}

/* ---- collectives ---- */

/* An endpoint that has none said so; a peer that sends their messages nevertheless is cut off. */
static void cut_off(enum rxm_type type)
{
	struct rxm_pkt *pkt;
	struct rig rig;

	rig_open(&rig, true, true);
	pkt = rig_make(&rig, type, RXM_OP_COLL, 0);
	pkt->op.tag = 1ULL << 24;
	rig_send(&rig, pkt, 0);
	rig_until(&rig, rig.down);
	assert_int_equal(rig.done_cnt, 0);
	rig_close(&rig);
}

static void no_collectives(void **state)
{
	(void) state;
	cut_off(RXM_EAGER);
	cut_off(RXM_RNDV_REQ);
	cut_off(RXM_SEG);
	cut_off(RXM_COLL_ABORT);
}

/* ---- bounds ---- */

/* An unexpected message as long as a packet can have. */
static void send_long(struct rig *rig)
{
	struct rxm_pkt *pkt = rig_make(rig, RXM_EAGER, RXM_OP_MSG, RXM_EAGER_MAX);

	pkt->op.size = RXM_EAGER_MAX;
	rig_send(rig, pkt, RXM_EAGER_MAX);
}

/* Half of a message of 8 bytes. */
static void send_segment(struct rig *rig, uint64_t msg_id, uint32_t seg_no)
{
	struct rxm_pkt *pkt = rig_make(rig, RXM_SEG, RXM_OP_MSG, 4);

	pkt->ctrl.msg_id = msg_id;
	pkt->ctrl.seg_no = seg_no;
	pkt->ctrl.seg_size = 4;
	pkt->op.size = 8;
	rig_send(rig, pkt, 4);
}

static void begin_segments(struct rig *rig, uint64_t msg_id)
{
	send_segment(rig, msg_id, 0);
}

/* All that the peer has sent so far is dealt with. */
static void catch_up(struct rig *rig)
{
	struct rxm_pkt *pkt = rig_make(rig, RXM_EAGER, RXM_OP_TAGGED, 4);
	static char mark[4];

	pkt->op.size = 4;
	rig_send(rig, pkt, 4);
	rig->done_cnt = 0;
	OK((int) fi_trecv(rig->ep, mark, 4, NULL, FI_ADDR_UNSPEC, 0, 0, mark));
	assert_int_equal(rig_result(rig, mark), 0);
}

/* Messages of which only the first segment comes: so many of them, and no more. */
static void unfinished(void **state)
{
	struct rig rig;

	(void) state;
	rig_open(&rig, false, true);
	for (unsigned i = 0; i < RXM_PARTS_MAX; i++)
		begin_segments(&rig, i);
	send_asking(&rig, 0, 0);
	/* what was begun is dealt with when this has arrived: it was sent behind it */
	OK((int) fi_recv(rig.ep, out, 4, NULL, FI_ADDR_UNSPEC, out));
	for (unsigned i = 0; i < RXM_PARTS_MAX; i++)
		OK((int) fi_recv(rig.ep, in + 8 * i, 8, NULL, FI_ADDR_UNSPEC, in + 8 * i));
	assert_int_equal(rig_result(&rig, in + 8 * (RXM_PARTS_MAX - 1)), 0);
	assert_false(rig.down);
	begin_segments(&rig, RXM_PARTS_MAX);
	rig_until(&rig, rig.down);
	assert_int_not_equal(rig_result(&rig, in), 0);
	for (unsigned i = 0; i < rig.done_cnt; i++) {
		if (rig.done[i].context == in)
			assert_int_equal(rig.done[i].len, 4);	/* what has come of it */
	}
	rig_close(&rig);
}

/* The connection ends in the middle of messages: the receive of the one fails; the other, which waits for a receive, is
 * dropped. */
static void unfinished_at_the_end(void **state)
{
	struct rig rig;

	(void) state;
	rig_open(&rig, true, true);
	OK((int) fi_recv(rig.ep, in, 8, NULL, FI_ADDR_UNSPEC, in));
	begin_segments(&rig, 1);
	begin_segments(&rig, 2);
	catch_up(&rig);
	OK(fi_shutdown(rig.raw, 0));
	assert_int_equal(rig_result(&rig, in), FI_ECONNRESET);
	OK((int) fi_recv(rig.ep, out, 8, NULL, FI_ADDR_UNSPEC, out));
	rig_drive(&rig);
	assert_false(rig_has_result(&rig, out));
	rig_close(&rig);
}

/* A segment that is longer than the rest of its message ends the connection, and nothing of it is taken. */
static void segment_beyond_the_message(void **state)
{
	struct rxm_pkt *pkt;
	struct rig rig;

	(void) state;
	rig_open(&rig, true, true);
	memset(in, 0x5a, 32);
	OK((int) fi_recv(rig.ep, in, 16, NULL, FI_ADDR_UNSPEC, in));
	begin_segments(&rig, 3);
	pkt = rig_make(&rig, RXM_SEG, RXM_OP_MSG, 8);
	pkt->ctrl.msg_id = 3;
	pkt->ctrl.seg_no = 1;
	pkt->ctrl.seg_size = 8;
	pkt->op.size = 8;
	rig_send(&rig, pkt, 8);
	rig_until(&rig, rig.down);
	assert_int_not_equal(rig_result(&rig, in), 0);
	assert_int_equal(in[8], 0x5a);
	rig_close(&rig);
}

/* A peer cannot give back more credit than was spent. */
static void credit_that_was_not_spent(void **state)
{
	struct rxm_pkt *pkt;
	struct rig rig;

	(void) state;
	for (int load = 0; load < 2; load++) {
		rig_open(&rig, true, true);
		pkt = rig_make(&rig, RXM_CREDIT, RXM_OP_MSG, 0);
		pkt->ctrl.conn_id = load ? 1000ULL << 32 : 1000;
		rig_send(&rig, pkt, 0);
		rig_until(&rig, rig.down);
		rig_close(&rig);
	}
}

#define ATOMICS	3000

static struct rxm_pkt *make_atomic(struct rig *rig, uint64_t key)
{
	const uint64_t one = 1;
	struct rxm_amo amo = { .ioc[0] = { .addr = 0, .count = 1, .key = key } };
	struct rxm_pkt *pkt = rig_make(rig, RXM_ATOMIC, RXM_OP_AMO, sizeof(amo) + sizeof(one));

	pkt->op.size = sizeof(amo) + sizeof(one);
	pkt->op.amo.datatype = FI_UINT64;
	pkt->op.amo.op = FI_SUM;
	pkt->op.amo.ioc_count = 1;
	memcpy(pkt->data, &amo, sizeof(amo));
	memcpy(pkt->data + sizeof(amo), &one, sizeof(one));
	return pkt;
}

/* Ask for as many as there are to be, or until the endpoint takes no more. How many have been asked. */
static unsigned ask_atomics(struct rig *rig, unsigned asked, uint64_t key, const volatile uint64_t *sum)
{
	const size_t len = sizeof(struct rxm_amo) + sizeof(*sum);
	struct rxm_pkt *pkt = NULL;
	uint64_t before = *sum;

	for (unsigned quiet = 0; quiet < 2000; quiet++) {
		if (!pkt)
			pkt = make_atomic(rig, key);
		if (asked < ATOMICS && !rig_try_send(rig, pkt, len)) {
			asked++;
			pkt = NULL;
			quiet = 0;
		}
		rig_drive(rig);
		if (*sum != before)
			quiet = 0;
		before = *sum;
	}
	free(pkt);
	return asked;
}

/* A peer that asks, and does not take the answers, is heard no more until it does. Then all is done. */
static void answers_not_taken(void **state)
{
	static uint64_t sum;
	unsigned asked, answers = 0;
	struct fid_mr *mr;
	struct rig rig;

	(void) state;
	sum = 0;
	rig_open(&rig, false, false);
	OK(fi_mr_reg(rig.domain, &sum, sizeof(sum), FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 5, 0, &mr, NULL));
	asked = ask_atomics(&rig, 0, fi_mr_key(mr), &sum);
	/* besides what has left: answers that wait, and packets that are held back */
	assert_true(sum <= RXM_CTL_MAX + RXM_CONN_RX + 4096 / sizeof(struct rxm_pkt));
	rig_post(&rig);
	while (answers < ATOMICS) {
		const struct rxm_pkt *pkt;

		if (asked < ATOMICS) {
			pkt = make_atomic(&rig, fi_mr_key(mr));
			rig_send(&rig, (struct rxm_pkt *) pkt, sizeof(struct rxm_amo) + sizeof(sum));
			asked++;
		}
		pkt = rig_packet(&rig);
		assert_int_equal(pkt->ctrl.type, RXM_ATOMIC_RSP);
		answers++;
	}
	assert_int_equal(sum, ATOMICS);
	OK(fi_close(&mr->fid));
	rig_close(&rig);
}

/* ---- buffers ---- */

static const struct rxm_conn *conn_of(const struct rig *rig)
{
	return fab_list_first(&rxm_ep_of(&rig->ep->fid)->conns, struct rxm_conn, link);
}

/* How many of the connection's buffers are not posted. */
static uint32_t missing_buffers(const struct rig *rig)
{
	const struct rxm_conn *conn = conn_of(rig);
	const struct fab_list *link;
	uint32_t cnt = 0;

	fab_list_for_each(&conn->posted, link)
		cnt++;
	return conn->rx_cnt - cnt;
}

/* A packet of each kind that needs no more than this end, and messages for three receives of 8 bytes. */
static void send_each_kind(struct rig *rig, bool ext, uint64_t key)
{
	struct rxm_pkt *pkt;

	begin_segments(rig, 1);
	send_segment(rig, 1, 1);
	send_asking(rig, ext ? RXM_FLAG_ACK : 0, 2);
	rig_send(rig, make_atomic(rig, key), sizeof(struct rxm_amo) + sizeof(uint64_t));
	rig_send(rig, rig_make(rig, RXM_CREDIT, RXM_OP_MSG, 0), 0);
	if (ext) {
		announce(rig, 8, 3);	/* the receive fails */
		pkt = rig_make(rig, RXM_WRITTEN, RXM_OP_MSG, 0);
		pkt->op.flags = RXM_FLAG_CQ_DATA;
		rig_send(rig, pkt, 0);
	} else {
		send_asking(rig, 0, 3);
	}
	begin_segments(rig, 4);
}

static void recv_cnt(struct rig *rig, unsigned cnt, size_t len)
{
	for (unsigned i = 0; i < cnt; i++)
		OK((int) fi_recv(rig->ep, in, len, NULL, FI_ADDR_UNSPEC, in));
}

/* Whatever a packet is, and whether its message finds a receive, waits for one, or gets it between two segments: its
 * buffer is posted again. One in a hundred that is not would stop the peer in the end. */
static void each_buffer_is_posted_again(void **state)
{
	static uint64_t sum;
	struct fid_mr *mr;
	struct rig rig;

	(void) state;
	for (int ext = 0; ext < 2; ext++) {
		rig_open(&rig, ext, true);
		OK(fi_mr_reg(rig.domain, &sum, sizeof(sum), FI_REMOTE_WRITE, 0, 5, 0, &mr, NULL));
		recv_cnt(&rig, 4, 8);
		for (int i = 0; i < 20; i++) {
			/* these find receives, then these wait; the segment at the end gets its receive in between */
			send_each_kind(&rig, ext, fi_mr_key(mr));
			catch_up(&rig);
			send_segment(&rig, 4, 1);
			catch_up(&rig);
			assert_int_equal(missing_buffers(&rig), 0);
			send_each_kind(&rig, ext, fi_mr_key(mr));
			catch_up(&rig);
			recv_cnt(&rig, 4, 8);
			send_segment(&rig, 4, 1);
			recv_cnt(&rig, 4, 8);
			catch_up(&rig);
			assert_int_equal(missing_buffers(&rig), 0);
		}
		assert_false(rig.down);
		OK(fi_close(&mr->fid));
		rig_close(&rig);
	}
}

/* Those of messages that wait, and are more than are kept for a peer without credit, when a receive has taken them. */
static void held_buffers_are_posted_again(void **state)
{
	const unsigned cnt = RXM_KEEP_MAX / 16384 + 10;
	struct rxm_pkt *pkt;
	struct rig rig;

	(void) state;
	rig_open(&rig, false, true);
	for (unsigned i = 0; i < cnt; i++) {
		pkt = rig_make(&rig, RXM_EAGER, RXM_OP_MSG, 16384);
		pkt->op.size = 16384;
		rig_send(&rig, pkt, 16384);
	}
	catch_up(&rig);
	assert_in_range(missing_buffers(&rig), 10, 20);
	recv_cnt(&rig, cnt, 16384);
	catch_up(&rig);
	assert_int_equal(missing_buffers(&rig), 0);
	rig_close(&rig);
}

/* ---- the queue below ---- */

static ssize_t read_none(struct fid_cq *cq, void *buf, size_t count)
{
	(void) cq, (void) buf, (void) count;
	return -FI_EAVAIL;
}

/* It stays, as that of a queue that had no memory does. */
static ssize_t read_overrun(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags)
{
	(void) cq, (void) flags;
	*entry = (struct fi_cq_err_entry) { .err = FI_EOVERRUN, .prov_errno = FI_EOVERRUN };
	return 1;
}

/* ... or an error that cannot be read. */
static ssize_t read_nothing(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags)
{
	(void) cq, (void) entry, (void) flags;
	return -FI_EAGAIN;
}

static void lose_queue(ssize_t (*readerr)(struct fid_cq *, struct fi_cq_err_entry *, uint64_t))
{
	struct fi_ops_cq ops;
	struct rxm_ep *ep;
	struct rig rig;
	char more[4];

	rig_open(&rig, true, true);
	send_announced(&rig, sizeof(out));
	OK((int) fi_recv(rig.ep, in, 4, NULL, FI_ADDR_UNSPEC, in));
	OK((int) fi_trecv(rig.ep, more, 4, NULL, FI_ADDR_UNSPEC, 1, 0, more));
	ep = rxm_ep_of(&rig.ep->fid);
	ops = *ep->poller->cq->ops;
	ops.read = read_none;
	ops.readerr = readerr;
	ep->poller->cq->ops = &ops;
	assert_int_equal(rig_result(&rig, in), FI_EOVERRUN);
	assert_int_equal(rig_result(&rig, more), FI_EOVERRUN);
	assert_int_equal(rig_result(&rig, out), FI_EOVERRUN);
	rig_until(&rig, rig.down);
	assert_int_equal(rig.done_cnt, 3);
	assert_int_equal(fi_send(rig.ep, out, 4, NULL, rig.peer, NULL), -FI_EOVERRUN);
	assert_int_equal(fi_recv(rig.ep, in, 4, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOVERRUN);
	rig_close(&rig);
}

/* What completes below is lost: everything ends once, nothing is taken any more, and all can be closed. */
static void overrun(void **state)
{
	(void) state;
	lose_queue(read_overrun);
}

static void error_that_stays(void **state)
{
	(void) state;
	lose_queue(read_nothing);
}

/* ---- strangers ---- */

#define STRANGERS	(4 * RXM_EAGER_MAX)	/* bytes kept of them */

/* Packets for which the only peer has not got its credit back. */
static unsigned no_credit(const struct rig *rig)
{
	const struct rxm_conn *conn = fab_list_first(&rxm_ep_of(&rig->ep->fid)->conns, struct rxm_conn, link);
	struct fab_list *link;
	unsigned cnt = 0;

	fab_list_for_each(&conn->kept, link)
		cnt += fab_container(link, struct rxm_kept, link)->no_credit;
	return cnt;
}

/* Of peers in no address vector so much is kept together, whatever they have left behind; then they get no credit, for
 * segments neither, until receives have taken it. */
static void strangers_have_a_part(void **state)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct rxm_ep *ep;
	struct rig rig;

	(void) state;
	rxm_params.stranger_max = STRANGERS;
	rig_open(&rig, true, true);
	ep = rxm_ep_of(&rig.ep->fid);
	OK(fi_av_remove(rig.av, &rig.peer, 1, 0));
	assert_int_equal(ep->stranger_cnt, 1);
	for (int i = 0; i < 4; i++)
		send_long(&rig);
	send_segment(&rig, 1, 0);
	send_segment(&rig, 1, 1);
	catch_up(&rig);
	assert_in_range(ep->stranger_len, STRANGERS, STRANGERS + 4096);
	assert_int_equal(no_credit(&rig), 1 + 2);
	for (int i = 0; i < 5; i++) {
		OK((int) fi_recv(rig.ep, in, RXM_EAGER_MAX, NULL, FI_ADDR_UNSPEC, in));
		rig_until(&rig, rig.done_cnt == 2u + i);	/* after that of catch_up() */
	}
	assert_int_equal(ep->stranger_len, 0);
	assert_int_equal(no_credit(&rig), 0);
	/* it is known, and then a stranger again that has left a message */
	addr.sin_port = htons(rig.port);
	send_long(&rig);
	catch_up(&rig);
	assert_in_range(ep->stranger_len, RXM_EAGER_MAX, RXM_EAGER_MAX + 4096);
	OK(fi_av_insert(rig.av, &addr, 1, &rig.peer, 0, NULL) - 1);
	assert_int_equal(ep->stranger_len + ep->stranger_cnt, 0);
	OK(fi_shutdown(rig.raw, 0));
	rig_until(&rig, fab_list_empty(&ep->conns));
	OK(fi_av_remove(rig.av, &rig.peer, 1, 0));
	assert_in_range(ep->stranger_len, RXM_EAGER_MAX, RXM_EAGER_MAX + 4096);
	assert_int_equal(ep->stranger_cnt, 0);
	rig_close(&rig);
	rxm_params.stranger_max = RXM_STRANGER_MAX;
}

/* A segment of 16 KiB, of a message of 16 MiB. */
static void send_long_segment(struct rig *rig, uint64_t msg_id, uint32_t seg_no)
{
	struct rxm_pkt *pkt = rig_make(rig, RXM_SEG, RXM_OP_MSG, RXM_EAGER_MAX);

	pkt->ctrl.msg_id = msg_id;
	pkt->ctrl.seg_no = seg_no;
	pkt->ctrl.seg_size = RXM_EAGER_MAX;
	pkt->op.size = RXM_SEG_MAX;
	rig_send(rig, pkt, RXM_EAGER_MAX);
}

/* A message that has begun costs what has come of it: otherwise a few packets of a stranger stop all others. */
static void a_long_message_costs_what_is_there(void **state)
{
	const struct rxm_ep *ep;
	struct rig rig;

	(void) state;
	rig_open(&rig, true, true);
	ep = rxm_ep_of(&rig.ep->fid);
	OK(fi_av_remove(rig.av, &rig.peer, 1, 0));
	for (unsigned i = 0; i < 4; i++)
		send_long_segment(&rig, i, 0);
	send_long_segment(&rig, 0, 1);
	catch_up(&rig);
	assert_in_range(ep->stranger_len, 5 * RXM_EAGER_MAX, 5 * RXM_EAGER_MAX + 4096);
	assert_int_equal(no_credit(&rig), 0);
	OK(fi_shutdown(rig.raw, 0));
	rig_until(&rig, fab_list_empty(&ep->conns));
	assert_int_equal(ep->stranger_len, 0);
	rig_close(&rig);
}

/* One that knows no credit, so that its segments cannot be held back, loses its connection with an eighth of what all
 * may have; the others go on. */
static void one_does_not_stop_the_others(void **state)
{
	const struct rxm_ep *ep;
	struct rig rig;
	unsigned sent = 0;

	(void) state;
	rxm_params.stranger_max = 8 * 4 * RXM_EAGER_MAX;
	rig_open(&rig, false, true);
	ep = rxm_ep_of(&rig.ep->fid);
	OK(fi_av_remove(rig.av, &rig.peer, 1, 0));
	while (!rig.down && sent < 16) {
		unsigned before = rig.sent_cnt;

		send_long_segment(&rig, 1, sent++);
		rig_until(&rig, rig.down || rig.sent_cnt > before);
		for (int i = 0; i < 50; i++)
			rig_drive(&rig);
	}
	assert_in_range(sent, 4, 5);
	assert_int_equal(ep->stranger_len, 0);
	rig_close(&rig);
	rxm_params.stranger_max = RXM_STRANGER_MAX;
}

static uint64_t figure(const char *name)
{
	return *fab_stats_figure(&rxm_prov, name, FI_STATS_GAUGE);
}

/* fi_why says so of this process. */
static void check_told(const char *name, uint64_t value)
{
	const struct fi_stats_source own = { fab_stats_page(), sizeof(struct fi_stats_page), fab_ticks(), fab_now_ns(),
					     'R' };
	struct fi_stats_verdict verdict;
	char text[16384], said[128];

	fab_stats_explain(&own, 1, 1, 0, FI_STATS_FORM_TEXT, text, sizeof(text), &verdict);
	snprintf(said, sizeof(said), " %s %llu", name, (unsigned long long) value);
	if (!strstr(text, said))
		fail_msg("'%s' does not say '%s'", text, said);
}

/* What is held for peers is in the page of the process, and goes when it does. */
static void what_is_held_is_shown(void **state)
{
	struct rig rig;
	struct rxm_ep *ep;

	(void) state;
	rig_open(&rig, true, true);
	ep = rxm_ep_of(&rig.ep->fid);
	send_long(&rig);
	catch_up(&rig);
	rxm_account_show(ep);
	assert_in_range(figure("rxm_messages_held_known_bytes"), RXM_EAGER_MAX, RXM_EAGER_MAX + 4096);
	assert_int_equal(figure("rxm_messages_held_strangers_bytes"), 0);
	check_told("rxm_messages_held_known_bytes", figure("rxm_messages_held_known_bytes"));
	assert_in_range(figure("rxm_buffers_held_bytes"), 64 * RXM_EAGER_MAX, 65 * RXM_EAGER_MAX);
	OK(fi_av_remove(rig.av, &rig.peer, 1, 0));
	rxm_account_show(ep);
	assert_int_equal(figure("rxm_messages_held_known_bytes"), 0);
	assert_in_range(figure("rxm_messages_held_strangers_bytes"), RXM_EAGER_MAX, RXM_EAGER_MAX + 4096);
	assert_int_equal(figure("rxm_connections_held_strangers"), 1);
	/* it goes, and its message stays */
	OK(fi_shutdown(rig.raw, 0));
	rig_until(&rig, fab_list_empty(&ep->conns));
	rxm_account_show(ep);
	assert_in_range(figure("rxm_messages_held_strangers_bytes"), RXM_EAGER_MAX, RXM_EAGER_MAX + 4096);
	assert_int_equal(figure("rxm_connections_held_strangers") + figure("rxm_buffers_held_bytes"), 0);
	rig_close(&rig);
	assert_int_equal(figure("rxm_messages_held_strangers_bytes"), 0);
}

/* ---- who a peer is ---- */

/* Beside the rig, another endpoint, and a process that claims to be it. */
struct claimed {
	struct rig rig;
	struct fid_ep *ep;
	fi_addr_t addr, to_rig;		/* of the endpoint, and from it to the rig's */
	struct fid_ep *thief;
};

static void claimed_open(struct claimed *claimed)
{
	struct rig *rig = &claimed->rig;
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	rig_open(rig, true, true);
	OK(fi_endpoint(rig->domain, rig->info, &claimed->ep, NULL));
	OK(fi_ep_bind(claimed->ep, &rig->av->fid, 0));
	OK(fi_ep_bind(claimed->ep, &rig->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(claimed->ep));
	OK(fi_getname(&rig->ep->fid, &addr, &len));
	OK(fi_av_insert(rig->av, &addr, 1, &claimed->to_rig, 0, NULL) - 1);
	OK(fi_getname(&claimed->ep->fid, &addr, &len));
	OK(fi_av_insert(rig->av, &addr, 1, &claimed->addr, 0, NULL) - 1);
	rig->port = ntohs(addr.sin_port);
	claimed->thief = rig_raw(rig);
}

static void claimed_close(struct claimed *claimed)
{
	OK(fi_close(&claimed->thief->fid));
	OK(fi_close(&claimed->ep->fid));
	rig_close(&claimed->rig);
}

/* The process requests the connection of the endpoint. */
static void claim(struct claimed *claimed)
{
	rig_request(&claimed->rig, claimed->thief, 0, RIG_BUFS | RXM_EXT << RXM_EXT_SHIFT);
}

static unsigned up_cnt(const struct rig *rig)
{
	struct fab_list *link;
	unsigned cnt = 0;

	fab_list_for_each(&rxm_ep_of(&rig->ep->fid)->conns, link)
		cnt += fab_container(link, struct rxm_conn, link)->state == RXM_CONN_UP;
	return cnt;
}

/* A message from one to the other arrives there. */
static void check_arrives(struct rig *rig, struct fid_ep *from, struct fid_ep *at, fi_addr_t to)
{
	rig->done_cnt = 0;
	OK((int) fi_recv(at, in, 4, NULL, FI_ADDR_UNSPEC, in));
	OK((int) fi_send(from, out, 4, NULL, to, out));
	assert_int_equal(rig_result(rig, in), 0);
	assert_int_equal(rig_result(rig, out), 0);
}

/* Who claims to be a peer that is connected does not get its connection. */
static void connection_is_not_stolen(void **state)
{
	struct claimed claimed;
	struct rig *rig = &claimed.rig;

	(void) state;
	claimed_open(&claimed);
	check_arrives(rig, rig->ep, claimed.ep, claimed.addr);
	claim(&claimed);
	rig_until(rig, rig->refusals);
	assert_int_equal(rig->refusal.reason, RXM_REJECT_ALREADY);
	rig_until(rig, !rxm_ep_of(&rig->ep->fid)->inquiry_cnt);
	assert_int_equal(up_cnt(rig), 2);
	check_arrives(rig, rig->ep, claimed.ep, claimed.addr);
	claimed_close(&claimed);
}

/* Who has claimed to be it before it has connected gives way to it. */
static void peer_itself_gets_its_place(void **state)
{
	struct claimed claimed;
	struct rig *rig = &claimed.rig;

	(void) state;
	claimed_open(&claimed);
	claim(&claimed);
	rig_until(rig, up_cnt(rig) == 2);
	check_arrives(rig, claimed.ep, rig->ep, claimed.to_rig);
	check_arrives(rig, rig->ep, claimed.ep, claimed.addr);
	assert_int_equal(up_cnt(rig), 2);
	claimed_close(&claimed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unreadable),
		cmocka_unit_test(unreadable_by_upstream),
		cmocka_unit_test(not_read),
		cmocka_unit_test(read_by_upstream),
		cmocka_unit_test(not_written),
		cmocka_unit_test(closed),
		cmocka_unit_test(nobody),
		cmocka_unit_test(levels),
		cmocka_unit_test(second_answer),
		cmocka_unit_test(no_collectives),
		cmocka_unit_test(unfinished),
		cmocka_unit_test(unfinished_at_the_end),
		cmocka_unit_test(segment_beyond_the_message),
		cmocka_unit_test(credit_that_was_not_spent),
		cmocka_unit_test(answers_not_taken),
		cmocka_unit_test(each_buffer_is_posted_again),
		cmocka_unit_test(held_buffers_are_posted_again),
		cmocka_unit_test(overrun),
		cmocka_unit_test(error_that_stays),
		cmocka_unit_test(strangers_have_a_part),
		cmocka_unit_test(a_long_message_costs_what_is_there),
		cmocka_unit_test(one_does_not_stop_the_others),
		cmocka_unit_test(what_is_held_is_shown),
		cmocka_unit_test(connection_is_not_stolen),
		cmocka_unit_test(peer_itself_gets_its_place),
	};

	/* little is buffered below, of what nobody takes */
	setenv("FI_TCP_CREDIT", "4096", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
