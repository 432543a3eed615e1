/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queue pairs: life, states, and who gets what arrives.
 *
 *   RESET -> INIT -> RTR -> RTS      any -> ERR (flushes), any -> RESET
 */
#include "sv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define QPN_MASK	0xffffffu
#define PACKETS_A_TURN	64
#define DRAIN_MAX	100000		/* more than any socket holds */

static uint8_t packet_room[sizeof(struct sv_pkt) + SV_PAYLOAD_MAX];

int sv_send_to(int fd, uint32_t qpn, const struct sv_pkt *pkt, const struct iovec *iov, int iov_cnt)
{
	struct iovec all[SV_SGE_MAX + 1] = { { (void *) pkt, sizeof(*pkt) } };
	struct sockaddr_un name;
	struct msghdr msg = { .msg_iov = all, .msg_iovlen = 1 + iov_cnt };

	if (qpn) {
		msg.msg_namelen = sv_name(&name, "softverbs/qp/%06x", qpn);
		msg.msg_name = &name;
	}
	if (iov_cnt)
		memcpy(all + 1, iov, iov_cnt * sizeof(*iov));
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* Sockets of RC are connected, so that epoll tells when a full one has room again. */
static int connect_once(struct sv_qp *qp)
{
	struct sockaddr_un name;
	socklen_t len = sv_name(&name, "softverbs/qp/%06x", qp->attr.dest_qp_num);

	if (qp->connected)
		return 0;
	if (connect(qp->src.fd, (struct sockaddr *) &name, len))
		return errno;
	qp->connected = true;
	return 0;
}

int sv_qp_send(struct sv_qp *qp, const struct sv_pkt *pkt, const struct iovec *iov, int iov_cnt)
{
	int ret;

	if (qp->qp.qp_type != IBV_QPT_RC)
		return sv_send_to(qp->src.fd, pkt->dst_qpn, pkt, iov, iov_cnt);
	ret = connect_once(qp);
	return ret ? ret : sv_send_to(qp->src.fd, 0, pkt, iov, iov_cnt);
}

void sv_qp_packet(struct sv_qp *qp, struct sv_pkt *pkt, uint8_t *payload)
{
	bool up = qp->qp.state == IBV_QPS_RTR || qp->qp.state == IBV_QPS_RTS;

	if (!up || sv_context(qp->qp.context)->dead)
		return;
	switch (pkt->op) {
	case SV_DATAGRAM:
		if (qp->qp.qp_type == IBV_QPT_UD)
			sv_ud_arrived(qp, pkt, payload);
		break;
	case SV_SEND:
	case SV_WRITE:
	case SV_READ:
	case SV_ATOMIC:
		if (pkt->src_qpn != qp->attr.dest_qp_num)
			break;
		if (qp->unestablished)
			sv_async(qp->qp.context, IBV_EVENT_COMM_EST, &qp->qp);
		qp->unestablished = false;
		if (qp->qp.qp_type == IBV_QPT_RC)
			sv_resp_request(qp, pkt, payload);
		else if (qp->qp.qp_type == IBV_QPT_XRC_RECV)
			sv_xrc_arrived(qp, pkt, payload);
		break;
	case SV_ACK:
	case SV_NAK:
	case SV_READ_RSP:
	case SV_ATOMIC_RSP:
		sv_req_answer(qp, pkt, payload);
		break;
	case SV_OPEN:
		sv_xrc_arrived(qp, pkt, payload);
		break;
	default:
		break;
	}
}

/* Take up to so many packets. True if there may be more. */
static bool take_packets(struct sv_qp *qp, int most)
{
	struct sv_source *src = &qp->src;
	uint64_t id = src->id;
	int i;

	for (i = 0; i < most && src->id == id && !(qp->tgt && sv_xrc_busy(qp)); i++) {
		struct sv_pkt pkt;
		ssize_t len = recv(src->fd, packet_room, sizeof(packet_room), MSG_DONTWAIT);

		if (len < 0 && (errno == ECONNRESET || errno == ECONNREFUSED))
			continue;	/* of the connected socket: the sender's timer finds out */
		if (len < (ssize_t) sizeof(pkt))
			return false;
		memcpy(&pkt, packet_room, sizeof(pkt));
		if (pkt.magic == SV_MAGIC && pkt.len == len - sizeof(pkt))
			sv_qp_packet(qp, &pkt, packet_room + sizeof(pkt));
	}
	return src->id == id;
}

void sv_qp_drain(struct sv_qp *qp)
{
	take_packets(qp, DRAIN_MAX);
}

static void qp_ready(struct sv_source *src, uint32_t events)
{
	struct sv_qp *qp = fab_container(src, struct sv_qp, src);

	if (events & EPOLLOUT) {
		qp->blocked = false;
		sv_source_mod(src, EPOLLIN);
		if (sv_resp_push(qp))
			sv_req_push(qp);
	}
	take_packets(qp, PACKETS_A_TURN);
}

/* A number that no other queue pair on this machine has. */
static int bind_qpn(struct sv_qp *qp)
{
	int tries;

	for (tries = 0; tries < 100; tries++) {
		uint32_t qpn = ((uint32_t) sv_now_ns() ^ (uint32_t) rand()) & QPN_MASK;

		if (qpn < 16)
			continue;	/* 0 and 1 are special in InfiniBand */
		qp->src.fd = sv_bind(SOCK_DGRAM, "softverbs/qp/%06x", qpn);
		if (qp->src.fd >= 0) {
			qp->qp.qp_num = qp->qp.handle = qpn;
			return 0;
		}
		if (errno != EADDRINUSE)
			return errno;
	}
	return EADDRINUSE;
}

static bool caps_ok(const struct ibv_qp_cap *cap)
{
	uint64_t max_wr = sv_limit("max_qp_wr", 16384), max_sge = sv_limit("max_sge", SV_SGE_MAX);

	return cap->max_send_wr <= max_wr && cap->max_recv_wr <= max_wr && cap->max_send_sge <= max_sge &&
	       cap->max_recv_sge <= max_sge && cap->max_inline_data <= sv_limit("max_inline_data", 512);
}

static int alloc_queues(struct sv_qp *qp)
{
	uint32_t i, inline_len = qp->cap.max_inline_data;

	qp->sq = calloc(qp->cap.max_send_wr + 1, sizeof(*qp->sq));
	qp->inline_pool = calloc(qp->cap.max_send_wr + 1, inline_len + 1);
	if (!qp->sq || !qp->inline_pool)
		return ENOMEM;
	for (i = 0; i < qp->cap.max_send_wr; i++)
		qp->sq[i].inline_data = qp->inline_pool + (size_t) i * inline_len;
	return sv_rq_init(&qp->rq, qp->qp.srq ? 0 : qp->cap.max_recv_wr, qp->cap.max_recv_sge);
}

static struct fab_list qps = FAB_LIST_INIT(qps);

void sv_qp_break_all(struct sv_context *ctx)
{
	struct fab_list *link;

	fab_list_for_each(&qps, link) {
		struct sv_qp *qp = fab_container(link, struct sv_qp, link);

		if (sv_context(qp->qp.context) != ctx)
			continue;
		sv_qp_error(qp);
		sv_async(qp->qp.context, IBV_EVENT_QP_FATAL, &qp->qp);
	}
}

struct sv_qp *sv_qp_find(uint32_t qpn)
{
	struct fab_list *link;

	fab_list_for_each(&qps, link) {
		struct sv_qp *qp = fab_container(link, struct sv_qp, link);

		if (qp->qp.qp_num == qpn)
			return qp;
	}
	return NULL;
}

struct ibv_qp *sv_test_qp_at(unsigned index)
{
	struct ibv_qp *found = NULL;
	struct fab_list *link;

	sv_lock();
	fab_list_for_each(&qps, link) {
		if (index--)
			continue;
		found = &fab_container(link, struct sv_qp, link)->qp;
		break;
	}
	sv_unlock();
	return found;
}

static void hold_parts(struct sv_qp *qp, int by)
{
	if (by > 0)
		fab_list_add_tail(&qps, &qp->link);
	else
		fab_list_remove(&qp->link);
	sv_context(qp->qp.context)->ref_cnt += by;
	sv_context(qp->qp.context)->qp_cnt += by;
	if (qp->qp.pd)
		fab_container(qp->qp.pd, struct sv_pd, pd)->ref_cnt += by;
	if (qp->qp.send_cq)
		fab_container(qp->qp.send_cq, struct sv_cq, cq)->ref_cnt += by;
	if (qp->qp.recv_cq)
		fab_container(qp->qp.recv_cq, struct sv_cq, cq)->ref_cnt += by;
	if (qp->qp.srq)
		fab_container(qp->qp.srq, struct sv_srq, srq)->ref_cnt += by;
}

static void qp_free(struct sv_qp *qp)
{
	free(qp->sq);
	free(qp->inline_pool);
	free(qp->rq.ring);
	free(qp);
}

static bool type_ok(const struct ibv_qp_init_attr_ex *attr)
{
	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UD:
		return attr->pd && attr->send_cq && attr->recv_cq;
	case IBV_QPT_XRC_SEND:
		return attr->pd && attr->send_cq;
	case IBV_QPT_XRC_RECV:
		return (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) && attr->xrcd;
	default:
		return false;
	}
}

struct ibv_qp *sv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct sv_qp *qp;
	int ret;

	if (sv_fault("ibv_create_qp"))
		return NULL;
	if (!type_ok(attr) || !caps_ok(&attr->cap) || sv_model_fit(attr->qp_type, &attr->cap)) {
		errno = EINVAL;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->qp.context = context;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.srq = attr->srq;
	qp->qp.qp_type = attr->qp_type;
	qp->cap = attr->cap;
	qp->sig_all = attr->sq_sig_all;
	fab_list_init(&qp->replies);
	sv_req_timers(qp);
	sv_lock();
	ret = sv_context(context)->qp_cnt < sv_limit("max_qp", SV_MANY) ? alloc_queues(qp) : ENOMEM;
	if (!ret)
		ret = bind_qpn(qp);
	if (ret)
		goto free_qp;
	qp->src.ready = qp_ready;
	qp->xrcd = attr->qp_type == IBV_QPT_XRC_RECV ? attr->xrcd : NULL;
	ret = qp->xrcd ? sv_xrc_qp_init(qp, -1) : sv_source_add(&qp->src, EPOLLIN);
	if (ret)
		goto close_fd;
	hold_parts(qp, 1);
	sv_unlock();
	return &qp->qp;

close_fd:
	close(qp->src.fd);
free_qp:
	sv_unlock();
	qp_free(qp);
	errno = ret;
	return NULL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq,
		.cap = attr->cap, .qp_type = attr->qp_type, .sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd,
	};
	struct ibv_qp *qp = sv_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

struct ibv_qp *sv_qp_share(struct ibv_context *context, const struct ibv_qp_open_attr *attr, int fd, int progress_fd,
			   const struct sv_pkt *opened)
{
	struct sv_qp *qp = calloc(1, sizeof(*qp));
	int ret = ENOMEM;

	if (!qp)
		goto close_fd;
	qp->qp.context = context;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.qp_type = IBV_QPT_XRC_RECV;
	qp->qp.qp_num = qp->qp.handle = attr->qp_num;
	qp->qp.state = opened->status;
	qp->attr.qp_access_flags = opened->access;
	qp->attr.dest_qp_num = opened->dst_qpn;
	qp->xrcd = attr->xrcd;
	qp->src.fd = fd;
	qp->src.ready = qp_ready;
	fab_list_init(&qp->replies);
	sv_req_timers(qp);
	sv_lock();
	ret = alloc_queues(qp);
	if (!ret)
		ret = sv_xrc_qp_init(qp, progress_fd);
	if (!ret)
		hold_parts(qp, 1);
	sv_unlock();
	if (!ret)
		return &qp->qp;
	qp_free(qp);
close_fd:
	close(fd);
	close(progress_fd);
	errno = ret;
	return NULL;
}

int ibv_destroy_qp(struct ibv_qp *ibv_qp)
{
	struct sv_qp *qp = sv_qp(ibv_qp);
	uint64_t late = sv_limit("late_flush", 0);

	sv_lock();
	if (qp->qp.qp_type == IBV_QPT_RC && qp->connected)
		sv_resp_leave(qp);
	while (qp->unacked)
		sv_wait();
	sv_async_forget(qp->qp.context, &qp->qp);
	sv_source_del(&qp->src);
	sv_timer_stop(&qp->resume);
	sv_timer_stop(&qp->watch);
	sv_timer_stop(&qp->last);
	if (!late)
		sv_resp_flush(qp);
	if (qp->qp.send_cq)
		sv_cq_purge(qp->qp.send_cq, qp->qp.qp_num);
	if (qp->qp.recv_cq)
		sv_cq_purge(qp->qp.recv_cq, qp->qp.qp_num);
	if (late == 1) {
		qp->qp.state = IBV_QPS_RESET;
		sv_req_flush(qp);
		sv_resp_flush(qp);
	}
	hold_parts(qp, -1);
	if (qp->xrcd)
		sv_xrc_qp_fini(qp);
	close(qp->src.fd);
	sv_unlock();
	qp_free(qp);
	return 0;
}

void sv_qp_error(struct sv_qp *qp)
{
	if (qp->qp.state == IBV_QPS_ERR)
		return;
	qp->qp.state = IBV_QPS_ERR;
	sv_timer_stop(&qp->resume);
	sv_timer_stop(&qp->watch);
	sv_req_flush(qp);
	if (qp->qp.srq)
		sv_resp_last(qp);
	if (qp->qp.srq || !sv_limit("late_flush", 0))
		sv_resp_flush(qp);
}

static void qp_reset(struct sv_qp *qp)
{
	sv_timer_stop(&qp->resume);
	sv_timer_stop(&qp->watch);
	sv_timer_stop(&qp->last);
	sv_resp_flush(qp);
	qp->rq.cnt = 0;
	qp->head = qp->next = qp->tail = qp->freed = 0;
	if (qp->qp.send_cq)
		sv_cq_purge(qp->qp.send_cq, qp->qp.qp_num);
	memset(&qp->in, 0, sizeof(qp->in));
	memset(&qp->attr, 0, sizeof(qp->attr));
}

static bool step_ok(enum ibv_qp_state from, enum ibv_qp_state to)
{
	switch (to) {
	case IBV_QPS_RESET:
	case IBV_QPS_ERR:
		return true;
	case IBV_QPS_INIT:
		return from == IBV_QPS_RESET || from == IBV_QPS_INIT;
	case IBV_QPS_RTR:
		return from == IBV_QPS_INIT;
	case IBV_QPS_RTS:
		return from == IBV_QPS_RTR || from == IBV_QPS_RTS;
	default:
		return false;
	}
}

static void take_attr(struct sv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp->attr.qp_access_flags = attr->qp_access_flags;
	if (mask & IBV_QP_QKEY)
		qp->attr.qkey = attr->qkey;
	if (mask & IBV_QP_PORT)
		qp->attr.port_num = attr->port_num;
	if (mask & IBV_QP_AV)
		qp->attr.ah_attr = attr->ah_attr;
	if (mask & IBV_QP_DEST_QPN)
		qp->attr.dest_qp_num = attr->dest_qp_num;
	if (mask & IBV_QP_TIMEOUT)
		qp->attr.timeout = attr->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		qp->attr.retry_cnt = attr->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		qp->attr.rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		qp->attr.min_rnr_timer = attr->min_rnr_timer;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		qp->attr.max_rd_atomic = attr->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IBV_QP_PATH_MTU)
		qp->attr.path_mtu = attr->path_mtu;
}

int sv_qp_modify(struct sv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (((mask & IBV_QP_STATE) && !step_ok(qp->qp.state, attr->qp_state)) || sv_modify_check(qp, attr, mask))
		return EINVAL;
	take_attr(qp, attr, mask);
	if (!(mask & IBV_QP_STATE))
		return 0;
	if (attr->qp_state == IBV_QPS_ERR) {
		sv_qp_error(qp);
		return 0;
	}
	if (attr->qp_state == IBV_QPS_RESET)
		qp_reset(qp);
	if (attr->qp_state == IBV_QPS_INIT && qp->tgt)
		sv_xrc_qp_begin(qp);
	qp->qp.state = attr->qp_state;
	return 0;
}

static _Atomic unsigned modified;

unsigned sv_test_modify_cnt(void)
{
	return modified;
}

int ibv_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask)
{
	int ret;

	modified++;
	if (sv_fault("ibv_modify_qp"))
		return errno;
	sv_lock();
	ret = sv_qp_modify(sv_qp(ibv_qp), attr, mask);
	sv_unlock();
	return ret;
}

int ibv_query_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	struct sv_qp *qp = sv_qp(ibv_qp);

	(void) mask;
	sv_lock();
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = qp->qp.state;
	attr->cap = qp->cap;
	*init = (struct ibv_qp_init_attr) {
		.qp_context = qp->qp.qp_context, .send_cq = qp->qp.send_cq, .recv_cq = qp->qp.recv_cq,
		.srq = qp->qp.srq, .cap = qp->cap, .qp_type = qp->qp.qp_type, .sq_sig_all = qp->sig_all,
	};
	sv_unlock();
	return 0;
}

int sv_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sv_qp *qp = sv_qp(ibv_qp);
	int ret;

	*bad = wr;
	if (qp->qp.srq || sv_fault("ibv_post_recv"))
		return EINVAL;
	sv_lock();
	ret = qp->qp.state == IBV_QPS_RESET ? EINVAL : sv_rq_post(&qp->rq, wr, bad);
	if (qp->qp.state == IBV_QPS_ERR)
		sv_resp_flush(qp);
	sv_unlock();
	return ret;
}
