/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The receiving side: requests are carried out in order, each answered by ACK, NAK, or the data asked for. A message
 * that finds no receive is refused with "not ready", and everything behind it dropped until it comes again.
 */
#include "sv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define RESUME_NS	200000ull	/* before a full socket is tried again */
#define UNTOLD_MAX	5000		/* no process has the target any more */
#define LEAVE_NS	5000000000ull	/* for what a full socket holds up, when its queue pair is destroyed */

/* Whom a request concerns: the parts that RC takes from its queue pair and XRC from the shared receive queue. */
struct target {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct sv_rq *rq;
	unsigned access;		/* enum ibv_access_flags of the queue pair */
	uint32_t qpn;			/* what completions name */
	struct sv_inbound *in;
	struct sv_srq *xrc_srq;		/* or NULL */
};

uint64_t sv_sge_len(const struct ibv_sge *sge, int cnt)
{
	uint64_t len = 0;
	int i;

	for (i = 0; i < cnt; i++)
		len += sge[i].length;
	return len;
}

int sv_scatter(struct ibv_pd *pd, const struct sv_rqe *rqe, uint64_t offset, const void *data, uint64_t len)
{
	const uint8_t *from = data;
	int i;

	for (i = 0; i < rqe->sge_cnt && len; i++) {
		const struct ibv_sge *sge = &rqe->sge[i];
		uint64_t part;

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		part = sge->length - offset < len ? sge->length - offset : len;
		if (!sv_mem_write(pd, sge->lkey, sge->addr + offset, from, part, IBV_ACCESS_LOCAL_WRITE))
			return SV_NAK_OP;
		from += part;
		len -= part;
		offset = 0;
	}
	return len ? SV_NAK_INVALID : 0;
}

static void receive_done(const struct target *t, const struct sv_pkt *pkt, enum ibv_wc_status status)
{
	struct sv_cqe cqe = {
		.wc = { .wr_id = t->in->rqe.wr_id, .status = status, .qp_num = t->qpn, .src_qp = pkt->src_qpn,
			.opcode = pkt->op == SV_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
			.byte_len = pkt->total, .imm_data = pkt->imm,
			.wc_flags = pkt->flags & SV_F_IMM ? IBV_WC_WITH_IMM : 0 },
		.xrc_srq = t->xrc_srq,
	};

	t->in->have_rqe = false;
	sv_cq_push_entry(t->cq, &cqe, pkt->flags & SV_F_SOLICITED);
}

/* The receive that this message takes: found at its first packet. */
static int take_receive(const struct target *t, const struct sv_pkt *pkt)
{
	if (pkt->op == SV_WRITE && !(pkt->flags & SV_F_IMM))
		return 0;
	if (!sv_rq_take(t->rq, &t->in->rqe))
		return SV_NAK_RNR;
	t->in->have_rqe = true;
	if (pkt->op == SV_SEND && pkt->total > sv_sge_len(t->in->rqe.sge, t->in->rqe.sge_cnt)) {
		receive_done(t, pkt, IBV_WC_LOC_LEN_ERR);
		return SV_NAK_INVALID;
	}
	return 0;
}

static int store(const struct target *t, const struct sv_pkt *pkt, const uint8_t *payload)
{
	int nak;

	if (pkt->op == SV_SEND) {
		nak = sv_scatter(t->pd, &t->in->rqe, pkt->offset, payload, pkt->len);
		if (nak)
			receive_done(t, pkt, IBV_WC_LOC_PROT_ERR);
		return nak;
	}
	if (!pkt->len)
		return 0;
	return (t->access & IBV_ACCESS_REMOTE_WRITE) &&
	       sv_mem_write(t->pd, pkt->rkey, pkt->raddr + pkt->offset, payload, pkt->len, IBV_ACCESS_REMOTE_WRITE) ?
	       0 : SV_NAK_ACCESS;
}

/* Is the packet what is left of a message whose beginning was refused? It comes again as a whole. */
static bool is_rest(const struct sv_inbound *in, const struct sv_pkt *pkt)
{
	return (pkt->op == SV_SEND || pkt->op == SV_WRITE) && pkt->offset != in->offset;
}

/* One packet of a send or a write. `done` is set with the last. */
static int data_packet(const struct target *t, const struct sv_pkt *pkt, const uint8_t *payload, bool *done)
{
	int nak = 0;

	if (pkt->len > pkt->total - pkt->offset)
		return SV_NAK_INVALID;
	if (!pkt->offset)
		nak = take_receive(t, pkt);
	if (!nak)
		nak = store(t, pkt, payload);
	if (nak)
		return nak;
	t->in->offset += pkt->len;
	*done = t->in->offset == pkt->total;
	if (*done && t->in->have_rqe)
		receive_done(t, pkt, IBV_WC_SUCCESS);
	return 0;
}

static int atomic(const struct target *t, const struct sv_pkt *pkt, uint8_t *result)
{
	uint64_t *at = t->access & IBV_ACCESS_REMOTE_ATOMIC ?
		       sv_mem(t->pd, pkt->rkey, pkt->raddr, 8, IBV_ACCESS_REMOTE_ATOMIC) : NULL;

	if (pkt->raddr % 8)
		return SV_NAK_INVALID;
	if (!at)
		return SV_NAK_ACCESS;
	memcpy(result, at, 8);
	if (!(pkt->flags & SV_F_CSWAP))
		*at += pkt->operand;
	else if (*at == pkt->operand)
		*at = pkt->swap;
	return 0;
}

/*
 * Carry out a packet. The answer, if one is due, is made in *reply: true.
 */
static bool carry_out(const struct target *t, const struct sv_pkt *pkt, const uint8_t *payload, struct sv_reply *reply)
{
	bool done = true;
	int nak = 0;

	memset(reply, 0, sizeof(*reply));
	reply->pkt = (struct sv_pkt) {
		.magic = SV_MAGIC, .op = SV_ACK, .src_qpn = t->qpn, .dst_qpn = pkt->src_qpn, .msn = pkt->msn,
	};
	switch (pkt->op) {
	case SV_READ:
		reply->pkt.op = SV_READ_RSP;
		reply->pkt.total = pkt->total;
		reply->key = pkt->rkey;
		reply->raddr = pkt->raddr;
		reply->pd = t->pd;
		if (pkt->total && (!(t->access & IBV_ACCESS_REMOTE_READ) ||
				   !sv_mem(t->pd, pkt->rkey, pkt->raddr, pkt->total, IBV_ACCESS_REMOTE_READ)))
			nak = SV_NAK_ACCESS;
		break;
	case SV_ATOMIC:
		reply->pkt.op = SV_ATOMIC_RSP;
		reply->pkt.total = reply->pkt.len = 8;
		nak = atomic(t, pkt, reply->data);
		break;
	default:
		nak = data_packet(t, pkt, payload, &done);
		break;
	}
	if (nak) {
		reply->pkt.op = SV_NAK;
		reply->pkt.status = nak;
		reply->pkt.total = reply->pkt.len = 0;
	}
	if (nak || done)
		t->in->offset = 0;
	return nak || done;
}

/* The next bytes of a read's answer, if the region still holds; a refusal otherwise. */
static void next_part(struct sv_reply *reply)
{
	uint64_t left = reply->pkt.total - reply->pkt.offset;

	reply->pkt.len = left < SV_PAYLOAD_MAX ? left : SV_PAYLOAD_MAX;
	reply->from = reply->pkt.len ?
		      (void *) sv_mem_read(reply->pd, reply->key, reply->raddr + reply->pkt.offset, reply->pkt.len,
					   IBV_ACCESS_REMOTE_READ) : NULL;
	if (reply->from || !reply->pkt.len)
		return;
	reply->pkt.op = SV_NAK;
	reply->pkt.status = SV_NAK_ACCESS;
	reply->pkt.len = 0;
}

/* Send one answer as far as it goes: 0, or an errno. */
static int send_reply(struct sv_qp *qp, int fd, struct sv_reply *reply)
{
	int ret;

	do {
		struct iovec iov = { reply->data, reply->pkt.len };

		if (reply->pkt.op == SV_READ_RSP) {
			next_part(reply);
			iov = (struct iovec) { reply->from, reply->pkt.len };
		}
		ret = qp ? sv_qp_send(qp, &reply->pkt, &iov, reply->pkt.len ? 1 : 0) :
			   sv_send_to(fd, reply->pkt.dst_qpn, &reply->pkt, &iov, reply->pkt.len ? 1 : 0);
		if (ret)
			return ret;
		reply->pkt.offset += reply->pkt.len;
	} while (reply->pkt.op == SV_READ_RSP && reply->pkt.offset < reply->pkt.total);
	return 0;
}

bool sv_resp_push(struct sv_qp *qp)
{
	while (!fab_list_empty(&qp->replies)) {
		struct sv_reply *reply = fab_container(qp->replies.next, struct sv_reply, link);

		if (send_reply(qp, -1, reply) == EAGAIN) {
			qp->blocked = true;
			sv_source_mod(&qp->src, EPOLLIN | EPOLLOUT);
			return false;
		}
		fab_list_remove(&reply->link);
		free(reply);
	}
	if (qp->leaving)
		sv_wake_all();
	return true;
}

/* In error: refusals still go out, and the word that a message has arrived, as a device sends that at once; but none
 * that is behind a read, which it would mean as well. */
static void drop_replies(struct fab_list *replies, bool in_error)
{
	struct fab_list *link, *tmp;
	bool read = false;

	fab_list_for_each_safe(replies, link, tmp) {
		struct sv_reply *reply = fab_container(link, struct sv_reply, link);

		if (in_error && (reply->pkt.op == SV_NAK || (reply->pkt.op == SV_ACK && !read)))
			continue;
		read = true;
		fab_list_remove(link);
		free(reply);
	}
}

static void wake(struct sv_timer *timer)
{
	(void) timer;
	sv_wake_all();
}

void sv_resp_leave(struct sv_qp *qp)
{
	uint64_t end = sv_now_ns() + LEAVE_NS;
	struct sv_timer timer;

	drop_replies(&qp->replies, true);
	if (fab_list_empty(&qp->replies) || sv_resp_push(qp))
		return;
	qp->leaving = true;
	sv_timer_init(&timer, wake);
	sv_timer_start(&timer, LEAVE_NS);
	while (!fab_list_empty(&qp->replies) && sv_now_ns() < end)
		sv_wait();
	sv_timer_stop(&timer);
}

void sv_resp_request(struct sv_qp *qp, const struct sv_pkt *pkt, const uint8_t *payload)
{
	struct sv_srq *srq = qp->qp.srq ? fab_container(qp->qp.srq, struct sv_srq, srq) : NULL;
	struct target t = {
		.pd = qp->qp.pd, .cq = qp->qp.recv_cq, .rq = srq ? &srq->rq : &qp->rq,
		.access = qp->attr.qp_access_flags, .qpn = qp->qp.qp_num, .in = &qp->in,
	};
	struct sv_reply *reply;
	bool fatal;

	if (pkt->msn != qp->in.msn || is_rest(&qp->in, pkt))
		return;			/* behind one that was refused */
	reply = malloc(sizeof(*reply));
	if (!reply)
		abort();
	if (!carry_out(&t, pkt, payload, reply)) {
		free(reply);
		return;
	}
	fatal = reply->pkt.op == SV_NAK && reply->pkt.status != SV_NAK_RNR;
	if (reply->pkt.op != SV_NAK)
		qp->in.msn++;
	fab_list_add_tail(&qp->replies, &reply->link);
	sv_resp_push(qp);
	if (fatal)
		sv_qp_error(qp);
}

static struct sv_inbound *inbound_of(struct sv_srq *srq, const struct sv_pkt *pkt)
{
	struct sv_inbound *in;
	struct fab_list *link;

	fab_list_for_each(&srq->inbound, link) {
		in = fab_container(link, struct sv_inbound, link);
		if (in->src_qpn == pkt->src_qpn && in->dst_qpn == pkt->dst_qpn)
			return in;
	}
	in = calloc(1, sizeof(*in));
	if (!in)
		abort();
	in->src_qpn = pkt->src_qpn;
	in->dst_qpn = pkt->dst_qpn;
	fab_list_add_tail(&srq->inbound, &in->link);
	return in;
}

/* Send an answer of an XRC SRQ, and tell who reads for the target that it has left. False: not yet. */
static bool reply_srq(struct sv_srq *srq, struct sv_reply *reply)
{
	if (!reply->untold && send_reply(NULL, srq->src.fd, reply) == EAGAIN)
		return false;
	return sv_xrc_answered(srq->src.fd, &reply->pkt) || reply->untold++ == UNTOLD_MAX;
}

/* Send what an XRC SRQ has to answer; what cannot leave is tried again soon. */
static void push_srq(struct sv_srq *srq)
{
	while (!fab_list_empty(&srq->replies)) {
		struct sv_reply *reply = fab_container(srq->replies.next, struct sv_reply, link);

		if (!reply_srq(srq, reply)) {
			sv_timer_start(&srq->resume, RESUME_NS);
			return;
		}
		fab_list_remove(&reply->link);
		free(reply);
	}
}

void sv_resp_resume_srq(struct sv_timer *timer)
{
	push_srq(fab_container(timer, struct sv_srq, resume));
}

void sv_resp_xrc(struct sv_srq *srq, const struct sv_pkt *pkt, const uint8_t *payload)
{
	struct target t = {
		.pd = srq->srq.pd, .cq = srq->cq, .rq = &srq->rq, .access = pkt->access, .qpn = pkt->dst_qpn,
		.in = inbound_of(srq, pkt), .xrc_srq = srq,
	};
	struct sv_reply *reply = malloc(sizeof(*reply));

	if (!reply)
		abort();
	if (is_rest(t.in, pkt) || !carry_out(&t, pkt, payload, reply)) {
		free(reply);
		return;
	}
	fab_list_remove(&t.in->link);
	free(t.in);
	fab_list_add_tail(&srq->replies, &reply->link);
	push_srq(srq);
}

void sv_resp_fini_srq(struct sv_srq *srq)
{
	sv_timer_stop(&srq->resume);
	drop_replies(&srq->replies, false);
	while (!fab_list_empty(&srq->inbound))
		free(fab_container(fab_list_pop_front(&srq->inbound), struct sv_inbound, link));
}

void sv_resp_flush(struct sv_qp *qp)
{
	struct sv_rqe rqe;

	drop_replies(&qp->replies, qp->qp.state == IBV_QPS_ERR);
	if (qp->qp.qp_type == IBV_QPT_XRC_RECV || qp->qp.qp_type == IBV_QPT_XRC_SEND)
		return;
	if (qp->in.have_rqe && fab_list_empty(&qp->last.link)) {
		struct ibv_wc wc = {
			.wr_id = qp->in.rqe.wr_id, .status = IBV_WC_WR_FLUSH_ERR, .qp_num = qp->qp.qp_num,
		};

		qp->in.have_rqe = false;
		sv_cq_push(qp->qp.recv_cq, &wc, true);
	}
	while (sv_rq_take(&qp->rq, &rqe)) {
		struct ibv_wc wc = { .wr_id = rqe.wr_id, .status = IBV_WC_WR_FLUSH_ERR, .qp_num = qp->qp.qp_num };

		sv_cq_push(qp->qp.recv_cq, &wc, true);
	}
}

void sv_resp_last_due(struct sv_timer *timer)
{
	struct sv_qp *qp = fab_container(timer, struct sv_qp, last);

	sv_resp_flush(qp);
	sv_async(qp->qp.context, IBV_EVENT_QP_LAST_WQE_REACHED, &qp->qp);
}

/* A device takes receives ahead. One that takes its time has one in hand. */
void sv_resp_last(struct sv_qp *qp)
{
	uint64_t delay_ms = sv_limit("last_wqe", 0);

	if (sv_limit("no_last_wqe", 0))
		return;
	if (!delay_ms) {
		sv_async(qp->qp.context, IBV_EVENT_QP_LAST_WQE_REACHED, &qp->qp);
		return;
	}
	if (!qp->in.have_rqe)
		qp->in.have_rqe = sv_rq_take(&fab_container(qp->qp.srq, struct sv_srq, srq)->rq, &qp->in.rqe);
	sv_timer_start(&qp->last, delay_ms * 1000000);
}
