/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sending side: work requests leave in order, are answered in order, and complete in order. A message's number is
 * its index in the queue. As many are under way as are posted. "Receiver not ready" goes back to the message that met
 * it, after a pause; the responder takes none of those behind it before it comes again.
 */
#include "sv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define RNR_PAUSE_NS	1000000ull
#define FULL_PAUSE_NS	200000ull	/* where epoll does not tell when the other socket has room */
#define FULL_PAUSES_MAX	150000		/* a datagram gives up then */
#define PROBE_NS	20000000ull
#define SILENCE_MS	20000		/* a process answers here, which others may keep from its turn for seconds */

static struct sv_swqe *wqe_at(struct sv_qp *qp, uint32_t i)
{
	return &qp->sq[i % qp->cap.max_send_wr];
}

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	default:
		return IBV_WC_SEND;
	}
}

static bool is_read(const struct sv_swqe *wqe)
{
	return wqe->wr.opcode == IBV_WR_RDMA_READ || wqe->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* Complete from the front what is done. The first failure puts the queue pair into error, which flushes the rest. */
static void complete(struct sv_qp *qp)
{
	bool gone = qp->qp.state == IBV_QPS_RESET;	/* it is being destroyed */

	if (qp->qp.state == IBV_QPS_ERR && sv_limit("late_flush", 0))
		return;
	while (qp->head != qp->tail && wqe_at(qp, qp->head)->done) {
		struct sv_swqe *wqe = wqe_at(qp, qp->head++);
		struct sv_cqe cqe = {
			.wc = { .wr_id = wqe->wr.wr_id, .status = wqe->status, .opcode = wc_opcode(wqe->wr.opcode),
				.byte_len = wqe->total, .qp_num = qp->qp.qp_num },
			.sender = gone ? NULL : qp, .end = qp->head,
		};

		if (wqe->status || qp->sig_all || (wqe->wr.send_flags & IBV_SEND_SIGNALED))
			sv_cq_push_entry(qp->qp.send_cq, &cqe, false);
		if (wqe->status && wqe->status != IBV_WC_WR_FLUSH_ERR) {
			sv_qp_error(qp);
			return;
		}
	}
}

static void finish(struct sv_qp *qp, uint32_t i, enum ibv_wc_status status)
{
	wqe_at(qp, i)->done = true;
	wqe_at(qp, i)->status = status;
	complete(qp);
}

void sv_req_flush(struct sv_qp *qp)
{
	uint32_t i;

	for (i = qp->head; i != qp->tail; i++) {
		wqe_at(qp, i)->done = true;
		wqe_at(qp, i)->status = IBV_WC_WR_FLUSH_ERR;
	}
	qp->next = qp->tail;
	complete(qp);
}

void sv_req_gone(struct sv_qp *qp)
{
	if (qp->head != qp->tail)
		finish(qp, qp->head, IBV_WC_RETRY_EXC_ERR);
}

static struct sv_pkt packet_of(struct sv_qp *qp, const struct sv_swqe *wqe, uint32_t msn)
{
	struct sv_pkt pkt = {
		.magic = SV_MAGIC, .src_qpn = qp->qp.qp_num, .dst_qpn = qp->attr.dest_qp_num, .msn = msn,
		.srqn = qp->qp.qp_type == IBV_QPT_XRC_SEND ? wqe->wr.qp_type.xrc.remote_srqn : 0,
		.total = wqe->total, .offset = wqe->sent,
	};

	switch (wqe->wr.opcode) {
	case IBV_WR_SEND_WITH_IMM:
		pkt.flags |= SV_F_IMM;
		pkt.imm = wqe->wr.imm_data;
		/* fall through */
	case IBV_WR_SEND:
		pkt.op = SV_SEND;
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		pkt.flags |= SV_F_IMM;
		pkt.imm = wqe->wr.imm_data;
		/* fall through */
	case IBV_WR_RDMA_WRITE:
		pkt.op = SV_WRITE;
		pkt.raddr = wqe->wr.wr.rdma.remote_addr;
		pkt.rkey = wqe->wr.wr.rdma.rkey;
		break;
	case IBV_WR_RDMA_READ:
		pkt.op = SV_READ;
		pkt.raddr = wqe->wr.wr.rdma.remote_addr;
		pkt.rkey = wqe->wr.wr.rdma.rkey;
		break;
	default:
		pkt.op = SV_ATOMIC;
		pkt.flags |= wqe->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? SV_F_CSWAP : 0;
		pkt.raddr = wqe->wr.wr.atomic.remote_addr;
		pkt.rkey = wqe->wr.wr.atomic.rkey;
		pkt.operand = wqe->wr.wr.atomic.compare_add;
		pkt.swap = wqe->wr.wr.atomic.swap;
		break;
	}
	if (wqe->wr.send_flags & IBV_SEND_SOLICITED)
		pkt.flags |= SV_F_SOLICITED;
	return pkt;
}

/* The next bytes of a message, up to a packet's worth: how many iov entries, -1 if a key does not hold. */
static int gather(struct sv_qp *qp, const struct sv_swqe *wqe, uint64_t len, struct iovec *iov)
{
	uint64_t skip = wqe->sent;
	int i, cnt = 0;

	if (wqe->wr.send_flags & IBV_SEND_INLINE) {
		iov[0] = (struct iovec) { wqe->inline_data + skip, len };
		return 1;
	}
	for (i = 0; i < wqe->wr.num_sge && len; i++) {
		const struct ibv_sge *sge = &wqe->sge[i];
		uint64_t part;
		const void *ptr;

		if (skip >= sge->length) {
			skip -= sge->length;
			continue;
		}
		part = sge->length - skip < len ? sge->length - skip : len;
		ptr = sv_mem_read(qp->qp.pd, sge->lkey, sge->addr + skip, part, 0);
		if (!ptr)
			return -1;
		iov[cnt++] = (struct iovec) { (void *) ptr, part };
		len -= part;
		skip = 0;
	}
	return cnt;
}

static void wait_for_room(struct sv_qp *qp)
{
	qp->blocked = true;
	if (qp->connected)
		sv_source_mod(&qp->src, EPOLLIN | EPOLLOUT);
	else
		sv_timer_start(&qp->resume, FULL_PAUSE_NS);
}

/* Send the message `next`: 0 if all of it has left, else the queue pair has to wait or has failed. */
static int send_message(struct sv_qp *qp, struct sv_swqe *wqe)
{
	bool data = !is_read(wqe);

	do {
		struct sv_pkt pkt = packet_of(qp, wqe, qp->next);
		struct iovec iov[SV_SGE_MAX];
		uint64_t left = data ? wqe->total - wqe->sent : 0;
		int ret, cnt;

		pkt.len = left < SV_PAYLOAD_MAX ? left : SV_PAYLOAD_MAX;
		cnt = pkt.len ? gather(qp, wqe, pkt.len, iov) : 0;
		if (cnt < 0) {
			finish(qp, qp->next, IBV_WC_LOC_PROT_ERR);
			return EFAULT;
		}
		ret = sv_qp_send(qp, &pkt, iov, cnt);
		if (ret == EAGAIN) {
			wait_for_room(qp);
			return ret;
		}
		if (ret) {		/* nobody is there: lost, as on a wire, which look() finds out */
			wqe->sent = wqe->total;
			return 0;
		}
		wqe->sent += pkt.len;
	} while (data && wqe->sent < wqe->total);
	return 0;
}

/* A fenced request waits for the answers of earlier reads and atomics. */
static bool fenced(struct sv_qp *qp, const struct sv_swqe *wqe)
{
	uint32_t i;

	if (!(wqe->wr.send_flags & IBV_SEND_FENCE))
		return false;
	for (i = qp->head; i != qp->next; i++)
		if (is_read(wqe_at(qp, i)))
			return true;
	return false;
}

static bool may_send(struct sv_qp *qp)
{
	if (qp->qp.state != IBV_QPS_RTS || qp->blocked || qp->next == qp->tail)
		return false;
	return !fenced(qp, wqe_at(qp, qp->next));
}

static void watch(struct sv_qp *qp)
{
	qp->asked_ns = sv_now_ns();
	if (fab_list_empty(&qp->watch.link))
		sv_timer_start(&qp->watch, PROBE_NS);
}

static _Atomic unsigned most_under_way;

unsigned sv_test_most_under_way(void)
{
	return most_under_way;
}

void sv_req_push(struct sv_qp *qp)
{
	while (may_send(qp)) {
		struct sv_swqe *wqe = wqe_at(qp, qp->next);

		if (qp->qp.qp_type == IBV_QPT_UD) {
			int status = sv_ud_send(qp, wqe);

			if (status == SV_UD_FULL && wqe->rnr_cnt++ < FULL_PAUSES_MAX) {
				wait_for_room(qp);
				return;
			}
			qp->next++;
			finish(qp, qp->next - 1, status == SV_UD_FULL ? IBV_WC_SUCCESS : status);	/* lost */
			continue;
		}
		if (send_message(qp, wqe))
			return;
		qp->next++;
		if (qp->next - qp->head > most_under_way)
			most_under_way = qp->next - qp->head;
		watch(qp);
	}
}

/* Everything up to msn has been carried out, and msn as `status` says. */
static void answered(struct sv_qp *qp, uint32_t msn, enum ibv_wc_status status)
{
	uint32_t i;

	for (i = qp->head; i != msn; i++)
		wqe_at(qp, i)->done = true;
	finish(qp, msn, status);
	qp->asked_ns = sv_now_ns();
	sv_req_push(qp);
}

static _Atomic unsigned rnr_cnt;

unsigned sv_test_rnr_cnt(void)
{
	return rnr_cnt;
}

static void not_ready(struct sv_qp *qp, uint32_t msn)
{
	struct sv_swqe *wqe = wqe_at(qp, msn);
	uint32_t i;

	rnr_cnt++;
	if (sv_limit("no_rnr", 0)) {
		answered(qp, msn, IBV_WC_REM_OP_ERR);
		return;
	}
	if (qp->attr.rnr_retry != 7 && wqe->rnr_cnt++ >= qp->attr.rnr_retry) {
		answered(qp, msn, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	for (i = msn; i != qp->tail; i++)
		wqe_at(qp, i)->sent = wqe_at(qp, i)->got = 0;
	qp->next = msn;
	qp->blocked = true;
	qp->asked_ns = sv_now_ns();
	sv_source_mod(&qp->src, EPOLLIN);
	sv_timer_start(&qp->resume, RNR_PAUSE_NS);
}

static void refused(struct sv_qp *qp, const struct sv_pkt *pkt)
{
	static const enum ibv_wc_status status[] = {
		[SV_NAK_INVALID] = IBV_WC_REM_INV_REQ_ERR,
		[SV_NAK_ACCESS] = IBV_WC_REM_ACCESS_ERR,
		[SV_NAK_OP] = IBV_WC_REM_OP_ERR,
	};

	if (pkt->status == SV_NAK_RNR)
		not_ready(qp, pkt->msn);
	else if (pkt->status <= SV_NAK_OP)
		answered(qp, pkt->msn, status[pkt->status]);
}

/* The answer to a read or an atomic goes where the request said. */
static void arrived(struct sv_qp *qp, const struct sv_pkt *pkt, const uint8_t *payload)
{
	struct sv_swqe *wqe = wqe_at(qp, pkt->msn);
	struct sv_rqe into = { .sge_cnt = wqe->wr.num_sge };

	if (!is_read(wqe) || pkt->offset != wqe->got || pkt->len > wqe->total - wqe->got)
		return;
	memcpy(into.sge, wqe->sge, wqe->wr.num_sge * sizeof(into.sge[0]));
	if (sv_scatter(qp->qp.pd, &into, wqe->got, payload, pkt->len)) {
		answered(qp, pkt->msn, IBV_WC_LOC_PROT_ERR);
		return;
	}
	wqe->got += pkt->len;
	qp->asked_ns = sv_now_ns();
	if (wqe->got == wqe->total)
		answered(qp, pkt->msn, IBV_WC_SUCCESS);
}

void sv_req_answer(struct sv_qp *qp, const struct sv_pkt *pkt, const uint8_t *payload)
{
	/* a message may be refused while the rest of it waits to leave */
	uint32_t under_way = qp->next - qp->head + (qp->next != qp->tail && wqe_at(qp, qp->next)->sent);

	if (qp->qp.state != IBV_QPS_RTS || pkt->msn - qp->head >= under_way)
		return;			/* not asked, or not any more */
	switch (pkt->op) {
	case SV_ACK:
		answered(qp, pkt->msn, IBV_WC_SUCCESS);
		break;
	case SV_NAK:
		refused(qp, pkt);
		break;
	default:
		arrived(qp, pkt, payload);
		break;
	}
}

static void resume(struct sv_timer *timer)
{
	struct sv_qp *qp = fab_container(timer, struct sv_qp, resume);

	qp->blocked = false;
	if (sv_resp_push(qp))
		sv_req_push(qp);
}

/* How long to wait for an answer from somebody who is there. A timeout of 0 is for ever; any other is not told
 * apart. */
static uint64_t patience_ns(const struct sv_qp *qp)
{
	return qp->attr.timeout ? sv_limit("silence", SILENCE_MS) * 1000000 : UINT64_MAX;
}

static void look(struct sv_timer *timer)
{
	struct sv_qp *qp = fab_container(timer, struct sv_qp, watch);
	struct sv_pkt probe = { .magic = SV_MAGIC, .op = SV_PROBE, .dst_qpn = qp->attr.dest_qp_num };
	int ret;

	if (qp->head == qp->tail)
		return;
	ret = sv_qp_send(qp, &probe, NULL, 0);
	if ((ret && ret != EAGAIN) || sv_now_ns() - qp->asked_ns > patience_ns(qp)) {
		sv_qp_drain(qp);	/* what it answered before it went */
		if (qp->head == qp->tail)
			return;
		if (ret ? ret != EAGAIN : sv_now_ns() - qp->asked_ns > patience_ns(qp)) {
			sv_req_gone(qp);
			return;
		}
	}
	sv_timer_start(&qp->watch, PROBE_NS);
}

void sv_req_timers(struct sv_qp *qp)
{
	sv_timer_init(&qp->resume, resume);
	sv_timer_init(&qp->watch, look);
	sv_timer_init(&qp->last, sv_resp_last_due);
}

static bool opcode_ok(const struct sv_qp *qp, enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM)
		return true;
	return qp->qp.qp_type != IBV_QPT_UD && opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static int check(const struct sv_qp *qp, const struct ibv_send_wr *wr, uint64_t total)
{
	if (qp->qp.state != IBV_QPS_RTS && qp->qp.state != IBV_QPS_ERR)
		return EINVAL;
	if (qp->tail - qp->freed == qp->cap.max_send_wr)
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t) wr->num_sge > qp->cap.max_send_sge || !opcode_ok(qp, wr->opcode))
		return EINVAL;
	if (wr->opcode == IBV_WR_RDMA_READ && (uint64_t) wr->num_sge > sv_limit("max_sge_rd", SV_SGE_MAX))
		return EINVAL;
	if (wr->opcode == IBV_WR_RDMA_READ && (wr->send_flags & IBV_SEND_FENCE) && sv_limit("iwarp", 0))
		return EINVAL;
	if ((wr->send_flags & IBV_SEND_INLINE) && total > qp->cap.max_inline_data)
		return EINVAL;
	if ((wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) && total != 8)
		return EINVAL;
	return 0;
}

static void take_inline(struct sv_swqe *wqe, const struct ibv_send_wr *wr)
{
	uint8_t *to = wqe->inline_data;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length)
			memcpy(to, (const void *) (uintptr_t) wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
}

static int post_one(struct sv_qp *qp, const struct ibv_send_wr *wr)
{
	uint64_t total = sv_sge_len(wr->sg_list, wr->num_sge);
	int ret = check(qp, wr, total);
	struct sv_swqe *wqe;

	if (ret)
		return ret;
	if (qp->qp.qp_type == IBV_QPT_UD && !wr->wr.ud.ah)
		abort();		/* a driver reads it at once, whatever becomes of the request */
	wqe = wqe_at(qp, qp->tail);
	wqe->wr = *wr;
	wqe->total = total;
	wqe->sent = wqe->got = 0;
	wqe->rnr_cnt = 0;
	wqe->done = false;
	wqe->status = IBV_WC_SUCCESS;
	if (wr->send_flags & IBV_SEND_INLINE)
		take_inline(wqe, wr);
	else if (wr->num_sge)
		memcpy(wqe->sge, wr->sg_list, wr->num_sge * sizeof(wqe->sge[0]));
	qp->tail++;
	return 0;
}

static _Atomic unsigned posted, doorbells;

unsigned sv_test_doorbell_cnt(void)
{
	return doorbells;
}

unsigned sv_test_post_cnt(void)
{
	return posted;
}

int sv_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sv_qp *qp = sv_qp(ibv_qp);
	int ret = 0;

	*bad = wr;
	doorbells++;
	if (sv_fault("ibv_post_send"))
		return errno;
	if (sv_context(qp->qp.context)->dead)
		return EIO;
	sv_lock();
	for (; wr && !ret; wr = wr->next) {
		*bad = wr;
		ret = post_one(qp, wr);
		posted += !ret;
		if (!ret && sv_flush_due())
			sv_qp_error(qp);
	}
	if (qp->qp.state == IBV_QPS_ERR)
		sv_req_flush(qp);
	else
		sv_req_push(qp);
	sv_unlock();
	return ret;
}
