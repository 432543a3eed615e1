/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory access at the target, and its answers at the initiator. Engine lock held.
 *
 * The peer sends keys and addresses; fab_mr_verify() checks them. If access is refused, an initiator with our extension
 * gets an error completion (TCP_WIRE_ACK with an error, TCP_WIRE_READ_ERR, TCP_WIRE_REFUSED), and the stream continues.
 * Upstream has no such frame: its connection is ended, as it would be with upstream as the target.
 */
#include "tcp/remote/rma.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/copy.h"
#include "tcp/message/message.h"
#include "tcp/params/params.h"
#include "common/hmem/hmem.h"
#include "common/memory/memory.h"

#define RSP_MAX		TCP_IDMAP_MAX	/* most read responses queued for one peer; more are an attack */

static const char *rma_access_name(uint64_t access)
{
	return access == FI_REMOTE_READ ? "read" : access == FI_REMOTE_WRITE ? "write" : "fetching atomic";
}

int tcp_rma_verify(struct tcp_conn *conn, const struct tcp_rma_iov *rma, uint32_t cnt, uint64_t access,
		   struct fab_mr **mr, struct iovec *iov, uint32_t *iov_cnt)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t slots = TCP_IOV_LIMIT - used;
		int ret;

		ret = fab_mr_verify(&conn->ep->base.domain->mr_map, conn->auth_key, rma[i].key, rma[i].addr,
				    rma[i].len, access, iov + used, &slots, &mr[i]);
		if (ret) {
			TCP_WARN(FI_LOG_EP_DATA, "refused a peer's %s of %" PRIu64 " bytes at 0x%" PRIx64
				 " with key 0x%" PRIx64 ": %s\n", rma_access_name(access), rma[i].len, rma[i].addr,
				 rma[i].key, fi_strerror(-ret));
			return ret;
		}
		used += slots;
	}
	*iov_cnt = used;
	return 0;
}

int tcp_rma_find_hmem(struct fab_mr *const *mr, uint32_t cnt, uint8_t *hmem)
{
	*hmem = FAB_HMEM_HOST;
	for (uint32_t i = 0; i < cnt; i++) {
		if (!mr[i]->hmem || !fab_hmem_join(hmem, mr[i]->hmem))
			continue;
		TCP_WARN(FI_LOG_EP_DATA, "refused a peer's access to memory of devices of several interfaces\n");
		return -FI_EOPNOTSUPP;
	}
	return 0;
}

bool tcp_rma_targets(struct tcp_conn *conn, struct tcp_rma_iov *rma, uint64_t *len)
{
	uint32_t cnt = conn->rx.hdr.rma_iov_cnt;

	memcpy(rma, tcp_rx_extra(conn), cnt * sizeof(*rma));
	*len = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		if (rma[i].len > TCP_MAX_MSG_SIZE)
			return false;
		*len += rma[i].len;
	}
	return true;
}

/* ---- accesses of one piece of memory, whose frames are at hand ---- */

/* Verify access to the only target of the current frame, in memory of the host. False: the general way, which also
 * refuses it. */
static bool rma_piece(const struct tcp_conn *conn, const struct tcp_rma_iov *target, uint64_t access,
		      struct iovec *piece, struct fab_mr **mr)
{
	uint32_t cnt = 1;

	*piece = (struct iovec) { 0 };		/* of no bytes there is no piece */
	return conn->rx.hdr.rma_iov_cnt == 1 &&
	       !fab_mr_verify(&conn->ep->base.domain->mr_map, conn->auth_key, target->key, target->addr, target->len,
			      access | FAB_MR_HOST, piece, &cnt, mr);
}

bool tcp_rma_write_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len)
{
	struct tcp_rma_iov target;
	struct iovec piece;
	struct fab_mr *mr;

	memcpy(&target, rest, sizeof(target));	/* once: a hostile peer may change it */
	if (target.len != len || (conn->rx.hdr.flags & TCP_FLAG_COMMIT) ||
	    !rma_piece(conn, &target, FI_REMOTE_WRITE, &piece, &mr))
		return false;
	fab_copy_short(piece.iov_base, rest + sizeof(target), len);
	fab_stats_count(conn->stats, FAB_OP_REMOTE_WRITE, len);
	fab_ep_complete(&conn->ep->base, FAB_OP_REMOTE_WRITE, &(struct fab_comp) { .len = len }, false);
	fab_mr_count(mr, conn->ep->base.engine, len);
	tcp_quiet_taken(conn);
	tcp_rx_delivered(conn);
	return true;
}

bool tcp_rma_read_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len)
{
	struct tcp_rma_iov target;
	struct iovec piece;
	struct fab_mr *mr;
	uint8_t *frame;
	size_t size;

	memcpy(&target, rest, sizeof(target));
	if (len || target.len > TCP_TX_COPY_MAX - sizeof(struct tcp_hdr))
		return false;
	size = sizeof(struct tcp_hdr) + target.len;
	frame = tcp_tx_place(conn, size);
	if (!frame || !rma_piece(conn, &target, FI_REMOTE_READ, &piece, &mr))
		return false;
	fab_copy_short(tcp_tx_make(conn, frame, TCP_WIRE_READ_RSP, size, NULL, 0), piece.iov_base, target.len);
	tcp_tx_put(conn, frame, size);
	fab_stats_count(conn->stats, FAB_OP_REMOTE_READ, target.len);
	fab_ep_complete(&conn->ep->base, FAB_OP_REMOTE_READ, &(struct fab_comp) { .len = target.len }, false);
	return true;
}

bool tcp_rma_take_whole(struct tcp_conn *conn, enum tcp_wire_op request, const uint8_t *payload, size_t len)
{
	struct tcp_tx *tx = fab_list_first(&conn->tx.read_wait, struct tcp_tx, link);

	if (!tx || tx->hdr.op != request || tx->len != len || tx->iov_cnt != 1)
		return false;
	fab_list_remove(&tx->link);
	fab_copy_short(tx->iov->iov_base, payload, len);
	if (request == TCP_WIRE_READ_REQ)
		tcp_read_ends(conn, tx);
	tcp_tx_done(tx, 0, 0, NULL);
	return true;
}

bool tcp_rma_rsp_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len)
{
	return tcp_rma_take_whole(conn, TCP_WIRE_READ_REQ, rest, len);
}

/* ---- target of writes ---- */

void tcp_rma_count(struct tcp_conn *conn)
{
	struct fab_mr *const *mr = conn->rx.mr;
	struct tcp_rma_iov rma[TCP_RMA_IOV_MAX];
	uint32_t cnt = conn->rx.hdr.rma_iov_cnt;
	uint64_t len;

	tcp_rma_targets(conn, rma, &len);
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t first = 0;

		while (mr[first] != mr[i])
			first++;
		if (first != i)
			continue;
		len = 0;
		for (uint32_t k = i; k < cnt; k++)
			len += mr[k] == mr[i] ? rma[k].len : 0;
		fab_mr_count(mr[i], conn->ep->base.engine, len);
	}
}

int tcp_rma_may_commit(struct tcp_conn *conn, bool tagged)
{
	struct fab_mr *const *mr = conn->rx.mr;

	if (!(conn->rx.hdr.flags & TCP_FLAG_COMMIT) || !(conn->peer.features & TCP_EXT_COMMIT))
		return 0;
	for (uint32_t i = 0; i < conn->rx.hdr.rma_iov_cnt; i++) {
		if (!tagged && (mr[i]->flags & FI_RMA_PMEM))
			continue;
		TCP_WARN(FI_LOG_EP_DATA, "refused a peer's access with FI_COMMIT_COMPLETE: the target region was not "
			 "registered with FI_RMA_PMEM\n");
		return -FI_EOPNOTSUPP;
	}
	return 0;
}

int tcp_rma_commit(struct tcp_conn *conn)
{
	struct tcp_rma_iov rma[TCP_RMA_IOV_MAX];
	uint64_t len;
	int ret = 0;

	if (__builtin_expect(!(conn->rx.hdr.flags & TCP_FLAG_COMMIT), 1))
		return 0;
	tcp_rma_targets(conn, rma, &len);
	for (uint32_t i = 0; i < conn->rx.hdr.rma_iov_cnt && !ret; i++) {
		struct iovec iov[TCP_IOV_LIMIT];
		uint32_t cnt;

		ret = tcp_rma_verify(conn, &rma[i], 1, FI_REMOTE_WRITE, &conn->rx.mr[i], iov, &cnt);
		if (!ret && (conn->rx.mr[i]->flags & FI_RMA_PMEM))
			ret = fab_mr_commit(conn->rx.mr[i], iov, cnt);
	}
	return ret;
}

void tcp_rma_refuse(struct tcp_conn *conn, uint32_t err)
{
	tcp_quiet_taken(conn);
	if (conn->peer.ext && (conn->rx.hdr.flags & TCP_FLAG_WANT_ACK))
		tcp_tx_ack(conn, err);
	else if ((conn->peer.features & TCP_EXT_NAK) && !(conn->rx.hdr.flags & TCP_FLAG_WANT_ACK))
		tcp_quiet_refuse(conn, err);
	else
		tcp_conn_fail(conn, FI_EACCES, err, "a remote write that is not allowed");
}

static void rma_write_done(struct tcp_conn *conn)
{
	const struct tcp_hdr *hdr = &conn->rx.hdr;
	bool has_data = hdr->flags & TCP_FLAG_CQ_DATA;
	struct fab_comp comp = {
		.flags = fab_op_desc[FAB_OP_REMOTE_WRITE].cq_flags | (has_data ? FI_REMOTE_CQ_DATA : 0),
		.len = hdr->size - hdr->hdr_size, .data = tcp_rx_cq_data(conn),
		.src = fab_ep_src(&conn->ep->base, conn->fi_addr),
	};

	if (!conn->rx.refuse && conn->rx.spoilt)
		conn->rx.refuse = FI_EIO;
	if (!conn->rx.refuse)
		conn->rx.refuse = -tcp_rma_commit(conn);
	if (conn->rx.refuse) {
		tcp_rma_refuse(conn, conn->rx.refuse);
		return;
	}
	if (__builtin_expect(has_data && conn->ep->base.report.src_err && conn->fi_addr == FI_ADDR_NOTAVAIL, 0) &&
	    conn->ep->base.bound.rx_cq)
		tcp_fail_unknown(conn->ep, FAB_OP_REMOTE_WRITE, &comp, conn);
	else
		fab_ep_complete(&conn->ep->base, FAB_OP_REMOTE_WRITE, &comp, has_data && conn->ep->base.bound.rx_cq);
	fab_stats_count(conn->stats, FAB_OP_REMOTE_WRITE, comp.len);
	tcp_rma_count(conn);
	tcp_quiet_taken(conn);
	tcp_rx_delivered(conn);
}

void tcp_rma_write_spoilt(struct tcp_conn *conn, int err)
{
	tcp_rma_refuse(conn, err);
}

uint32_t tcp_rma_write_aim(struct tcp_conn *conn)
{
	struct tcp_rx_state *rx = &conn->rx;
	struct tcp_rma_iov rma[TCP_RMA_IOV_MAX];
	struct iovec iov[TCP_IOV_LIMIT];
	uint64_t len;
	uint32_t cnt;
	uint8_t hmem;
	int ret;

	tcp_rma_targets(conn, rma, &len);
	rx->mr_gen = conn->ep->base.domain->mr_map.gen;
	ret = tcp_rma_verify(conn, rma, rx->hdr.rma_iov_cnt, FI_REMOTE_WRITE, rx->mr, iov, &cnt);
	if (!ret)
		ret = tcp_rma_may_commit(conn, false);
	if (!ret)
		ret = tcp_rma_hmem(conn, rx->mr, rx->hdr.rma_iov_cnt, &hmem);
	if (!ret)
		tcp_rx_aim(rx, iov, cnt, len, hmem);
	return -ret;
}

void tcp_rma_write(struct tcp_conn *conn)
{
	struct tcp_rx_state *rx = &conn->rx;
	struct tcp_rma_iov rma[TCP_RMA_IOV_MAX];
	uint64_t len;

	if (!tcp_rma_targets(conn, rma, &len) || len != rx->hdr.size - rx->hdr.hdr_size) {
		tcp_rx_broken(conn, "write of another length than its targets");
		return;
	}
	rx->refuse = tcp_rma_write_aim(conn);
	if (rx->refuse)
		tcp_rx_expect(conn, 0, len, rma_write_done);
	else
		tcp_rx_expect(conn, len, 0, rma_write_done);
}

/* ---- target of reads ---- */

/* The regions of a response are stored behind its header, for rma_rsp_valid(); they are not sent. */
static struct tcp_rma_iov *rma_rsp_regions(struct tcp_tx *tx)
{
	return (struct tcp_rma_iov *) (tx->hdr_buf + sizeof(struct tcp_hdr));
}

static int rma_rsp_verify(struct tcp_conn *conn, struct tcp_tx *tx)
{
	struct fab_mr *mr[TCP_RMA_IOV_MAX];
	uint32_t cnt;
	int ret;

	ret = tcp_rma_verify(conn, rma_rsp_regions(tx), tx->id, FI_REMOTE_READ, mr, tx->iov, &cnt);
	if (ret)
		return ret;
	if (__builtin_expect(conn->ep->detours, 0)) {
		ret = tcp_rma_find_hmem(mr, tx->id, &tx->hmem);
		if (ret)
			return ret;
		cnt |= tx->hmem ? TCP_TX_ON_DEVICE : 0;
	}
	tx->iov_cnt = cnt;
	tx->mr_gen = conn->ep->base.domain->mr_map.gen;
	return 0;
}

static bool rma_rsp_valid(struct tcp_conn *conn, struct tcp_tx *tx)
{
	uint8_t iov_cnt = tx->iov_cnt;

	if (tx->mr_gen == conn->ep->base.domain->mr_map.gen)
		return true;
	/* a direct response has as many pieces as its header says */
	return !rma_rsp_verify(conn, tx) && (!tx->flat || tx->iov_cnt == iov_cnt);
}

/* Turn a response into a refusal, at its place in the queue. False: part of it was sent, or the peer does not support
 * refusals. */
static bool rma_rsp_refuse(struct tcp_conn *conn, struct tcp_tx *tx)
{
	const struct tcp_read_err answer = { .err = FI_EACCES };

	if (!conn->peer.ext || tx->sent)
		return false;
	conn->remote.rsp_cnt--;
	conn->tx.len -= tx->size;
	tcp_tx_control_fill(tx, TCP_WIRE_READ_ERR, &answer, sizeof(answer));
	conn->tx.len += tx->size;
	return true;
}

bool tcp_rma_rsp_may_leave(struct tcp_conn *conn, struct tcp_tx *tx)
{
	return rma_rsp_valid(conn, tx) || rma_rsp_refuse(conn, tx);
}

static void rma_read_refuse(struct tcp_conn *conn, int err)
{
	struct tcp_read_err answer = { .err = err };
	struct tcp_tx *tx;

	if (!conn->peer.ext) {
		tcp_conn_fail(conn, FI_EACCES, err, "a remote read that is not allowed");
		return;
	}
	tx = tcp_tx_control(conn, TCP_WIRE_READ_ERR, &answer, sizeof(answer));
	if (tx)
		tcp_tx_queue(conn, tx);
}

void tcp_rma_read_req(struct tcp_conn *conn)
{
	struct tcp_rma_iov rma[TCP_RMA_IOV_MAX];
	uint32_t cnt = conn->rx.hdr.rma_iov_cnt;
	struct tcp_tx *tx;
	uint64_t len;
	int ret;

	if (!tcp_rma_targets(conn, rma, &len) || conn->remote.rsp_cnt >= RSP_MAX) {
		tcp_rx_broken(conn, "a read that is too long, or more reads than the limit");
		return;
	}
	tx = tcp_tx_control(conn, TCP_WIRE_READ_RSP, NULL, 0);
	if (!tx)
		return;
	memcpy(rma_rsp_regions(tx), rma, cnt * sizeof(*rma));
	tx->id = cnt;
	tx->len = len;
	ret = rma_rsp_verify(conn, tx);
	if (ret) {
		tcp_tx_done(tx, 0, 0, NULL);
		rma_read_refuse(conn, -ret);
		return;
	}
	tx->size += len;
	tx->hdr.size = tx->size;
	conn->remote.rsp_cnt++;
	tcp_direct_offer(conn, tx);
	tcp_tx_queue(conn, tx);
}

static void rma_rsp_drop(struct tcp_conn *conn, struct tcp_tx *tx)
{
	tx->want_ack = false;
	conn->remote.rsp_cnt--;
	tcp_tx_done(tx, 0, 0, NULL);
}

void tcp_rma_rsp_refused(struct tcp_tx *tx, int err)
{
	(void) err;		/* the peer's read completes with it */
	rma_rsp_drop(tx->conn, tx);
}

void tcp_rma_served(struct tcp_conn *conn, struct tcp_tx *tx)
{
	struct fab_comp comp = { .flags = fab_op_desc[FAB_OP_REMOTE_READ].cq_flags, .len = tx->len };

	if (tx->want_ack && !rma_rsp_valid(conn, tx)) {
		rma_rsp_drop(conn, tx);
		tcp_conn_fail(conn, FI_EACCES, FI_EACCES, "a memory region was closed while the peer was reading it");
		return;
	}
	tx->want_ack = false;
	conn->remote.rsp_cnt--;
	fab_stats_count(conn->stats, FAB_OP_REMOTE_READ, comp.len);
	fab_ep_complete(&conn->ep->base, FAB_OP_REMOTE_READ, &comp, false);
	tcp_tx_done(tx, 0, 0, NULL);
}

/* ---- initiator ---- */

int tcp_rma_write_enter(struct tcp_conn *conn, struct tcp_tx *tx)
{
	/* a peer without TCP_EXT_NAK cannot refuse a quiet frame */
	if (conn->peer.ext && !(conn->peer.features & TCP_EXT_NAK))
		tx->hdr.flags |= TCP_FLAG_DELIVERY;
	return 0;
}

/* Answers to reads come in the order of requests. */
int tcp_rma_read_enter(struct tcp_conn *conn, struct tcp_tx *tx)
{
	tcp_read_begins(conn, tx);
	return 0;
}

void tcp_rma_asked(struct tcp_conn *conn, struct tcp_tx *tx)
{
	fab_list_add_tail(&conn->tx.read_wait, &tx->link);
}

static void rma_read_done(struct tcp_conn *conn)
{
	struct tcp_tx *tx = fab_container(fab_list_pop_front(&conn->tx.read_wait), struct tcp_tx, link);

	if (tx->hdr.op == TCP_WIRE_READ_REQ)
		tcp_read_ends(conn, tx);
	if (__builtin_expect(conn->rx.spoilt, 0))
		tcp_tx_done(tx, FI_EIO, FI_EIO, "what was read could not be copied to the device");
	else
		tcp_tx_done(tx, 0, 0, NULL);
	if (__builtin_expect(conn->rx.hdr.flags & TCP_FLAGS_PIECES, 0))
		tcp_rx_delivered(conn);
}

void tcp_rma_rsp_spoilt(struct tcp_conn *conn, int err)
{
	struct tcp_tx *tx = fab_container(fab_list_pop_front(&conn->tx.read_wait), struct tcp_tx, link);

	tcp_read_ends(conn, tx);
	tcp_tx_done(tx, err, err, "the buffer of the read, or the region at the target, is no valid memory");
	tcp_tx_ack(conn, err);
}

void tcp_rma_take(struct tcp_conn *conn, struct tcp_tx *tx)
{
	tcp_rx_aim(&conn->rx, tx->iov, tx->iov_cnt & ~TCP_TX_ON_DEVICE, tx->len,
		   tcp_tx_on_device(tx) ? tx->hmem : FAB_HMEM_HOST);
	tcp_rx_expect(conn, tx->len, 0, rma_read_done);
}

void tcp_rma_read_rsp(struct tcp_conn *conn)
{
	struct tcp_tx *tx = fab_list_first(&conn->tx.read_wait, struct tcp_tx, link);
	uint64_t len = conn->rx.hdr.size - conn->rx.hdr.hdr_size;

	if (!tx || tx->hdr.op != TCP_WIRE_READ_REQ || tx->len != len) {
		tcp_rx_broken(conn, "answer to a read that was not asked for");
		return;
	}
	tcp_rma_take(conn, tx);
}

const char *tcp_rma_why(int err)
{
	switch (err) {
	case FI_ENOKEY:
		return "it has no region with this key";
	case FI_EACCES:
		return "the region does not allow this access, or needs another authorization key";
	case FI_EINVAL:
		return "the access goes beyond the region, whose addresses count from 0 without FI_MR_VIRT_ADDR";
	case FI_ETOOSMALL:
		return "it touches more than 8 pieces of memory there, in regions of several buffers";
	default:
		return fi_strerror(err);
	}
}

void tcp_rma_refused(struct tcp_tx *tx, int err)
{
	char ends[TCP_CONN_TEXT], text[TCP_CONN_TEXT + 128];

	tcp_conn_text(tx->conn, ends);
	snprintf(text, sizeof(text), "%s: the target refuses %" PRIu64 " bytes: %s", ends, (uint64_t) tx->len,
		 tcp_rma_why(err));
	tcp_tx_done(tx, err, err, text);
}

void tcp_rma_read_err(struct tcp_conn *conn)
{
	struct tcp_tx *tx = fab_list_first(&conn->tx.read_wait, struct tcp_tx, link);
	struct tcp_read_err answer;

	memcpy(&answer, tcp_rx_extra(conn), sizeof(answer));
	if (!tx || tx->hdr.op != TCP_WIRE_READ_REQ || !answer.err) {
		tcp_rx_broken(conn, "refusal of a read that was not asked for");
		return;
	}
	fab_list_remove(&tx->link);
	tcp_read_ends(conn, tx);
	tcp_rma_refused(tx, tcp_rx_errno(answer.err));
}
