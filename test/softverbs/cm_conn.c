/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections. Active and passive side of a stream (RC, XRC):
 *
 *   connect: REQ ->  CONNECT_REQUEST event, accept: -> REP  ESTABLISHED event (or CONNECT_RESPONSE, where the id has no
 *   queue pair, and rdma_establish), RTU -> ESTABLISHED event
 *   disconnect: DREQ -> DISCONNECTED event, disconnect: -> DREP  DISCONNECTED event, TIMEWAIT_EXIT event at both ends
 *
 * The service of datagrams (RDMA_PS_UDP) is a question and an answer: SIDR_REQ -> CONNECT_REQUEST, accept: -> SIDR_REP
 * ESTABLISHED, which carries a queue pair number.
 *
 * A process that ends takes its sockets with it, which stands for what the kernel would send for it.
 */
#include "cm.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNECT_RETRY_NS	1000000ull
#define IWARP_ANSWER_NS		10000000000ull
#define REJECTED_BY_CONSUMER	28
#define REJECTED_NO_SERVICE	8
#define REJECTED_STALE		10
#define SIDR_REJECTED		2
#define DEPTH			128	/* reads and atomics, where SOFTVERBS_LIMITS says nothing */
#define RETRY_MS		200	/* before a message that was lost is sent again */
#define RETRIES			15	/* of a request */
#define BACKLOG_MAX		1024

static int fail(int cause)
{
	errno = cause;
	return -1;
}

/* ---- messages */

/* A message that leaves later: the network is slow, or has lost it, and it is sent again. */
struct late {
	struct fab_list link;
	struct sv_cm_msg msg;
	uint64_t delay_ns;
};

static void send_now(struct sv_id *id, const struct sv_cm_msg *msg)
{
	/* The other end has gone if this fails: its socket will say so. */
	if (id->src.fd >= 0)
		(void) !send(id->src.fd, msg, sizeof(*msg), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Send the first message that waits, or all of them. */
static void send_late(struct sv_id *id, bool all)
{
	struct fab_list *link;

	sv_timer_stop(&id->later);
	while ((link = fab_list_pop_front(&id->late))) {
		struct late *late = fab_container(link, struct late, link);

		send_now(id, &late->msg);
		free(late);
		if (!all)
			break;
	}
	if (!fab_list_empty(&id->late))
		sv_timer_start(&id->later, fab_container(id->late.next, struct late, link)->delay_ns);
}

static void later(struct sv_timer *timer)
{
	send_late(fab_container(timer, struct sv_id, later), false);
}

static struct fab_list ids = FAB_LIST_INIT(ids);

void sv_cm_enlist(struct sv_id *id)
{
	fab_list_add_tail(&ids, &id->all);
}

unsigned sv_test_tell_ids(enum rdma_cm_event_type type, int status)
{
	struct fab_list *link;
	unsigned cnt = 0;

	sv_lock();
	fab_list_for_each(&ids, link) {
		struct sv_id *id = fab_container(link, struct sv_id, all);

		bool bound = id->id.verbs || id->state == SV_ID_LISTENING;

		if (!bound || id->state == SV_ID_INCOMING || id->state == SV_ID_REQUESTED)
			continue;
		sv_cm_tell(id, type, status, NULL);
		cnt++;
	}
	sv_unlock();
	return cnt;
}

void sv_cm_init(struct sv_id *id)
{
	fab_list_init(&id->all);
	fab_list_init(&id->late);
	sv_timer_init(&id->later, later);
	sv_cm_known_init(id);
}

/* How long this message takes. */
static uint64_t delay_ns(void)
{
	static unsigned cnt;
	uint64_t lose = sv_limit("cm_loss", 0), ms = sv_limit("cm_delay", 0);

	if (lose && ++cnt % lose == 0)
		ms += sv_limit("cm_retry", RETRY_MS);
	return ms * 1000000;
}

static void post(struct sv_id *id, const struct sv_cm_msg *msg)
{
	uint64_t delay = delay_ns();
	struct late *late;

	if (!delay && fab_list_empty(&id->late)) {
		send_now(id, msg);
		return;
	}
	late = calloc(1, sizeof(*late));
	if (!late)
		abort();
	late->msg = *msg;
	late->delay_ns = delay;
	if (fab_list_empty(&id->late))
		sv_timer_start(&id->later, delay);
	fab_list_add_tail(&id->late, &late->link);
}

static struct sv_cm_msg message(struct sv_id *id, enum sv_cm_type type)
{
	struct sv_cm_msg msg = { .magic = SV_MAGIC, .type = type, .src = id->id.route.addr.src_storage,
				 .dst = id->id.route.addr.dst_storage };
	union ibv_gid gid;

	if (sv_gid_of((struct sockaddr *) &msg.src, &gid))
		memcpy(msg.gid, gid.raw, 16);
	return msg;
}

static void post_type(struct sv_id *id, enum sv_cm_type type)
{
	struct sv_cm_msg msg = message(id, type);

	post(id, &msg);
}

static void refuse(struct sv_id *id, int status)
{
	struct sv_cm_msg msg = message(id, SV_CM_REJ);

	msg.status = status;
	post(id, &msg);
}

void sv_cm_stop(struct sv_id *id)
{
	struct fab_list *link;
	int i;

	/* a kernel refuses what is dropped without an answer */
	if (id->state == SV_ID_REQUESTED && !id->gone && id->peer.type == SV_CM_REQ)
		refuse(id, REJECTED_BY_CONSUMER);
	send_late(id, true);
	fab_list_remove(&id->all);
	fab_list_init(&id->all);
	sv_cm_known_del(id);
	sv_timer_stop(&id->timewait);
	while ((link = fab_list_pop_front(&id->incoming))) {
		struct sv_id *in = fab_container(link, struct sv_id, link);

		refuse(in, REJECTED_NO_SERVICE);
		sv_cm_stop(in);
		free(in);
	}

	sv_timer_stop(&id->retry);
	for (i = 0; i < id->listener_cnt; i++) {
		sv_source_del(&id->listeners[i].src);
		close(id->listeners[i].src.fd);
	}
	id->listener_cnt = 0;
	free(id->listeners);
	id->listeners = NULL;
	if (id->src.fd >= 0) {
		sv_source_del(&id->src);
		close(id->src.fd);
		id->src.fd = -1;
	}
}

static int take_priv(struct sv_cm_msg *msg, const void *priv, uint8_t len)
{
	if (len > sv_cm_priv_len(msg))
		return EINVAL;
	if (len)
		memcpy(msg->priv, priv, len);
	return 0;
}

/* ---- queue pairs ---- */

static struct ibv_qp_attr attr_for(struct sv_id *id, enum ibv_qp_state state, int *mask)
{
	enum ibv_qp_type type = id->id.qp_type;
	struct ibv_qp_attr attr = {
		.qp_state = state, .port_num = id->id.port_num, .dest_qp_num = id->peer.qpn, .path_mtu = IBV_MTU_4096,
		.max_dest_rd_atomic = id->responder_resources, .max_rd_atomic = id->initiator_depth,
		.min_rnr_timer = 1, .timeout = 19, .qkey = RDMA_UDP_QKEY, .retry_cnt = 7,
		.rnr_retry = id->peer.type == SV_CM_REP ? id->peer.rnr_retry_count : id->mine.rnr_retry_count,
		.ah_attr = { .is_global = 1, .port_num = id->id.port_num,
			     .grh = { .sgid_index = sv_cm_gid_index(id), .hop_limit = 1, .traffic_class = id->tos } },
	};

	memcpy(attr.ah_attr.grh.dgid.raw, id->peer.gid, 16);
	*mask = IBV_QP_STATE;
	if (state == IBV_QPS_INIT)
		*mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (state == IBV_QPS_RTR)
		*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 (type == IBV_QPT_XRC_SEND ? 0 : IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (state == IBV_QPS_RTS)
		*mask |= IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
			 (type == IBV_QPT_XRC_RECV ? 0 : IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	return attr;
}

/* Remote access is what the connection allows by default: librdmacm gives all of it. */
static void open_up(struct ibv_qp_attr *attr)
{
	attr->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC;
}

static int move_qp(struct sv_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;
	int mask;

	attr = attr_for(id, state, &mask);
	if (state == IBV_QPS_INIT)
		open_up(&attr);
	return sv_qp_modify(sv_qp(id->id.qp), &attr, mask);
}

static int qp_ready_to_go(struct sv_id *id)
{
	int ret;

	if (!id->id.qp || id->id.qp->qp_type == IBV_QPT_UD)
		return 0;
	ret = move_qp(id, IBV_QPS_RTR);
	if (!ret)
		ret = move_qp(id, IBV_QPS_RTS);
	return ret;
}

int rdma_init_qp_attr(struct rdma_cm_id *cm_id, struct ibv_qp_attr *attr, int *mask)
{
	enum ibv_qp_state state = attr->qp_state;

	sv_lock();
	*attr = attr_for(sv_id(cm_id), state, mask);
	sv_unlock();
	if (state == IBV_QPS_INIT)
		open_up(attr);
	return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *cm_id, struct ibv_qp_init_attr_ex *attr)
{
	struct sv_id *id = sv_id(cm_id);
	struct ibv_qp *qp;
	int ret;

	if (sv_fault("rdma_create_qp"))
		return -1;
	if (!cm_id->verbs || cm_id->qp)
		return fail(EINVAL);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) && attr->qp_type != IBV_QPT_XRC_RECV) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = cm_id->pd;
	}
	qp = sv_create_qp_ex(cm_id->verbs, attr);
	if (!qp)
		return -1;
	sv_lock();
	cm_id->qp = qp;
	cm_id->qp_type = attr->qp_type;
	ret = move_qp(id, IBV_QPS_INIT);
	if (!ret && attr->qp_type == IBV_QPT_UD) {
		struct ibv_qp_attr up = { .qp_state = IBV_QPS_RTR };

		sv_qp_modify(sv_qp(qp), &up, IBV_QP_STATE);
		up.qp_state = IBV_QPS_RTS;
		ret = sv_qp_modify(sv_qp(qp), &up, IBV_QP_STATE | IBV_QP_SQ_PSN);
	}
	sv_unlock();
	return ret ? fail(ret) : 0;
}

int rdma_create_qp(struct rdma_cm_id *cm_id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context, .send_cq = attr->send_cq, .recv_cq = attr->recv_cq, .srq = attr->srq,
		.cap = attr->cap, .qp_type = attr->qp_type, .sq_sig_all = attr->sq_sig_all,
		.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0, .pd = pd,
	};
	int ret = rdma_create_qp_ex(cm_id, &ex);

	if (!ret)
		attr->cap = ex.cap;
	return ret;
}

static _Atomic unsigned answer_waits;

unsigned sv_test_answer_waits(void)
{
	return answer_waits;
}

/* As the kernel does it for iWARP: a connection that was asked for keeps its queue pair until there is an answer. */
static void wait_for_answer(const struct sv_id *id)
{
	uint64_t end = sv_now_ns() + IWARP_ANSWER_NS;

	answer_waits += id->state == SV_ID_CONNECTING;
	while (id->state == SV_ID_CONNECTING && sv_now_ns() < end)
		sv_wait_until(end);
}

/* The engine finds the queue pair by its identifier: not any more once it is freed. */
void rdma_destroy_qp(struct rdma_cm_id *cm_id)
{
	struct ibv_qp *qp;

	sv_lock();
	if (sv_limit("iwarp", 0))
		wait_for_answer(sv_id(cm_id));
	qp = cm_id->qp;
	cm_id->qp = NULL;
	sv_unlock();
	ibv_destroy_qp(qp);
}

void rdma_destroy_ep(struct rdma_cm_id *cm_id)
{
	if (cm_id->qp)
		rdma_destroy_qp(cm_id);
	rdma_destroy_id(cm_id);
}

/* ---- what arrives ---- */

/* What the other end sent before it went is there before the news of that: data and CM come by different sockets
 * here, by one wire elsewhere. */
static void drain(struct sv_id *id)
{
	if (id->id.qp && id->id.qp->qp_type == IBV_QPT_RC)
		sv_qp_drain(sv_qp(id->id.qp));
}

/* Only told: it is rdma_disconnect() that moves the queue pair, which may have work under way towards others (XRC).
 * Where the other end was first, it is also what ends the connection for the CM. */
static void down(struct sv_id *id)
{
	drain(id);
	if (id->state == SV_ID_CLOSING)
		sv_cm_timewait(id);
	id->state = SV_ID_CLOSED;
	sv_cm_tell(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
}

/* An attempt has failed. */
static void failed(struct sv_id *id, enum rdma_cm_event_type type, int status, const struct sv_cm_msg *msg)
{
	id->state = SV_ID_CLOSED;
	sv_cm_known_del(id);
	sv_cm_tell(id, type, status, msg);
}

/* A peer that was restarted answers a DREQ at once, as it knows of no connection. */
void sv_cm_stale(struct sv_id *id)
{
	if (id->state != SV_ID_CONNECTED)
		return;
	post_type(id, SV_CM_DREQ);
	id->state = SV_ID_CLOSING;
	down(id);
}

/* The other end's socket has closed. */
static void hung_up(struct sv_id *id)
{
	sv_source_del(&id->src);
	switch (id->state) {
	case SV_ID_INCOMING:
		fab_list_remove(&id->link);
		sv_cm_stop(id);
		free(id);
		break;
	case SV_ID_CONNECTING:
	case SV_ID_ACCEPTED:
	case SV_ID_RESPONDED:
		failed(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		break;
	case SV_ID_CONNECTED:
	case SV_ID_CLOSING:
		down(id);
		break;
	case SV_ID_REQUESTED:
		id->gone = true;	/* who answers will hear of it */
		break;
	default:
		break;
	}
}

static _Atomic unsigned drop_cnt;

unsigned sv_test_drop_cnt(void)
{
	return drop_cnt;
}

/* The backlog is full. A kernel keeps silent, so that the request comes again; it answers a question. */
static void drop_request(struct sv_id *id)
{
	struct sv_cm_msg msg = message(id, id->peer.type == SV_CM_REQ ? SV_CM_DROPPED : SV_CM_SIDR_REP);

	drop_cnt++;
	msg.status = SIDR_REJECTED;
	sv_cm_known_del(id);
	post(id, &msg);
}

static void got_request(struct sv_id *id, const struct sv_cm_msg *msg)
{
	if (id->state != SV_ID_INCOMING)
		return;
	id->peer = *msg;
	id->initiator_depth = msg->responder_resources;
	id->responder_resources = msg->initiator_depth;
	id->tos = msg->tos;
	id->id.route.addr.src_storage = msg->dst;
	id->id.route.addr.dst_storage = msg->src;
	if (msg->type == SV_CM_REQ && !sv_cm_known_add(id)) {
		refuse(id, REJECTED_STALE);
		return;
	}
	if (id->listener->waiting == id->listener->backlog) {
		drop_request(id);
		return;
	}
	fab_list_remove(&id->link);
	id->state = SV_ID_REQUESTED;
	sv_cm_tell(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, msg);
}

static void got_reply(struct sv_id *id, const struct sv_cm_msg *msg)
{
	int ret;

	if (id->state != SV_ID_CONNECTING)
		return;
	id->peer = *msg;
	id->initiator_depth = msg->responder_resources;
	id->responder_resources = msg->initiator_depth;
	if (msg->type == SV_CM_SIDR_REP) {
		id->state = SV_ID_CLOSED;
		sv_cm_tell(id, msg->status ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_ESTABLISHED, msg->status, msg);
		return;
	}
	if (!sv_cm_known_add(id)) {	/* a kernel only refuses the answer, and asks until all tries are over */
		refuse(id, REJECTED_STALE);
		failed(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		return;
	}
	if (!id->id.qp) {
		id->state = SV_ID_RESPONDED;
		sv_cm_tell(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, msg);
		return;
	}
	ret = qp_ready_to_go(id);
	if (ret) {
		failed(id, RDMA_CM_EVENT_CONNECT_ERROR, -ret, msg);
		return;
	}
	id->state = SV_ID_CONNECTED;
	if (!sv_fault("cm_rtu"))
		post_type(id, SV_CM_RTU);
	sv_cm_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, msg);
}

/* The last word of the handshake has come, or a message by the connection. */
static int established(struct sv_id *id)
{
	if (id->state != SV_ID_ACCEPTED)
		return EINVAL;
	if (id->id.qp)
		sv_qp(id->id.qp)->unestablished = false;
	id->state = SV_ID_CONNECTED;
	sv_cm_tell(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL);
	return 0;
}

int rdma_notify(struct rdma_cm_id *cm_id, enum ibv_event_type event)
{
	int ret;

	if (sv_fault("rdma_notify"))
		return -1;
	sv_lock();
	ret = event == IBV_EVENT_COMM_EST ? established(sv_id(cm_id)) : EINVAL;
	sv_unlock();
	return ret ? fail(ret) : 0;
}

static void got(struct sv_id *id, const struct sv_cm_msg *msg)
{
	switch (msg->type) {
	case SV_CM_REQ:
	case SV_CM_SIDR_REQ:
		got_request(id, msg);
		break;
	case SV_CM_REP:
	case SV_CM_SIDR_REP:
		got_reply(id, msg);
		break;
	case SV_CM_RTU:
		established(id);
		break;
	case SV_CM_REJ:
		if (id->state != SV_ID_CONNECTING && id->state != SV_ID_ACCEPTED)
			break;
		failed(id, RDMA_CM_EVENT_REJECTED, msg->status, msg);
		break;
	case SV_CM_DREQ:
		if (id->state == SV_ID_CLOSING)
			post_type(id, SV_CM_DREP);	/* both at once */
		if (id->state == SV_ID_CONNECTED || id->state == SV_ID_CLOSING || id->state == SV_ID_ACCEPTED)
			down(id);
		break;
	case SV_CM_DREP:
		if (id->state == SV_ID_CLOSING)
			down(id);
		break;
	case SV_CM_DROPPED:
		if (id->state != SV_ID_CONNECTING)
			break;
		if (id->dropped++ < sv_limit("cm_retries", RETRIES))
			sv_timer_start(&id->retry, sv_limit("cm_retry", RETRY_MS) * 1000000);
		else
			failed(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		break;
	default:
		break;
	}
}

static void conn_ready(struct sv_source *src, uint32_t events)
{
	struct sv_id *id = fab_container(src, struct sv_id, src);
	struct sv_cm_msg msg;
	ssize_t len = recv(src->fd, &msg, sizeof(msg), MSG_DONTWAIT);

	(void) events;
	if (len == (ssize_t) sizeof(msg) && msg.magic == SV_MAGIC)
		got(id, &msg);
	else if (len >= 0 || errno != EAGAIN)
		hung_up(id);
}

void sv_cm_incoming(struct sv_source *src, uint32_t events)
{
	struct sv_listener *listener = fab_container(src, struct sv_listener, src);
	int fd = accept4(src->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct rdma_cm_id *parent = &listener->id->id;
	struct sv_id *id;

	(void) events;
	if (fd < 0)
		return;
	id = sv_id_alloc(parent->channel, parent->context, parent->ps);
	if (!id) {
		close(fd);
		return;
	}
	id->state = SV_ID_INCOMING;
	id->listener = listener->id;
	id->id.verbs = parent->verbs;
	id->id.pd = parent->pd;
	id->id.port_num = parent->port_num ? parent->port_num : 1;
	id->src.fd = fd;
	id->src.ready = conn_ready;
	if (sv_source_add(&id->src, EPOLLIN)) {
		close(fd);
		free(id);
		return;
	}
	fab_list_add_tail(&listener->id->incoming, &id->link);
	sv_cm_enlist(id);
}

/* ---- calls ---- */

int rdma_listen(struct rdma_cm_id *cm_id, int backlog)
{
	struct sv_id *id = sv_id(cm_id);
	int i, ret = 0, most = (int) sv_limit("max_backlog", BACKLOG_MAX);

	if (sv_fault("rdma_listen"))
		return -1;
	if (id->state != SV_ID_BOUND)
		return fail(EINVAL);
	sv_lock();
	id->backlog = backlog > 0 && backlog < most ? backlog : most;
	for (i = 0; i < id->listener_cnt && !ret; i++) {
		if (listen(id->listeners[i].src.fd, SOMAXCONN))
			ret = errno;
		else
			ret = sv_source_add(&id->listeners[i].src, EPOLLIN);
	}
	id->state = SV_ID_LISTENING;
	sv_unlock();
	return ret ? fail(ret) : 0;
}

/* Then no request and no answer gets out, and whoever waits for an answer is told so, as after all tries. */
static bool port_is_down(void)
{
	return sv_limit("port_down", 0);
}

static void try_connect(struct sv_id *id)
{
	struct sockaddr_un name;
	union ibv_gid gid;
	socklen_t len;

	if (port_is_down()) {
		id->state = SV_ID_CLOSED;
		sv_cm_tell(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL);
		return;
	}
	sv_gid_of(&id->id.route.addr.dst_addr, &gid);
	len = sv_name(&name, "softverbs/cm/%x/%016llx%016llx/%u", id->id.ps,
		      (unsigned long long) be64toh(gid.global.subnet_prefix),
		      (unsigned long long) be64toh(gid.global.interface_id), ntohs(rdma_get_dst_port(&id->id)));
	if (!connect(id->src.fd, (struct sockaddr *) &name, len)) {
		id->asked = true;
		post(id, &id->mine);
		if (sv_source_add(&id->src, EPOLLIN))
			abort();
		return;
	}
	if (errno == EAGAIN) {		/* the listener's queue is full */
		sv_timer_start(&id->retry, CONNECT_RETRY_NS);
		return;
	}
	id->state = SV_ID_CLOSED;
	sv_cm_tell(id, sv_cm_is_stream(id->id.ps) ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE,
		   REJECTED_NO_SERVICE, NULL);
}

static void connect_again(struct sv_timer *timer)
{
	struct sv_id *id = fab_container(timer, struct sv_id, retry);

	if (!id->asked)
		try_connect(id);
	else if (id->state == SV_ID_CONNECTING)
		post(id, &id->mine);
}

/* ---- read and atomic depths: what is asked may not exceed the device's, unless it is "as much as possible". */

static uint8_t own_initiator_depth(void)
{
	return (uint8_t) sv_limit("max_qp_init_rd_atom", sv_limit("max_qp_rd_atom", DEPTH));
}

static uint8_t own_responder_resources(void)
{
	return (uint8_t) sv_limit("max_qp_rd_atom", DEPTH);
}

static bool depths_ok(const struct rdma_conn_param *param)
{
	return (param->initiator_depth == RDMA_MAX_INIT_DEPTH || param->initiator_depth <= own_initiator_depth()) &&
	       (param->responder_resources == RDMA_MAX_RESP_RES ||
		param->responder_resources <= own_responder_resources());
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

int rdma_connect(struct rdma_cm_id *cm_id, struct rdma_conn_param *param)
{
	struct sv_id *id = sv_id(cm_id);
	bool stream = sv_cm_is_stream(cm_id->ps);

	if (sv_fault("rdma_connect"))
		return -1;
	if (id->state != SV_ID_ROUTED)
		return fail(EINVAL);
	id->mine = message(id, stream ? SV_CM_REQ : SV_CM_SIDR_REQ);
	id->mine.tos = id->tos;
	sv_cm_name(&id->mine, cm_id->qp ? cm_id->qp->qp_num : param ? param->qp_num : 0);
	if (param) {
		if (take_priv(&id->mine, param->private_data, param->private_data_len))
			return fail(EINVAL);
		if (stream && !depths_ok(param))
			return fail(EINVAL);
		id->responder_resources = param->responder_resources == RDMA_MAX_RESP_RES ? own_responder_resources() :
											    param->responder_resources;
		id->initiator_depth = param->initiator_depth == RDMA_MAX_INIT_DEPTH ? own_initiator_depth() :
										      param->initiator_depth;
		id->mine.responder_resources = id->responder_resources;
		id->mine.initiator_depth = id->initiator_depth;
		id->mine.rnr_retry_count = param->rnr_retry_count;
	}
	id->src.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (id->src.fd < 0)
		return -1;
	id->src.ready = conn_ready;
	sv_lock();
	sv_timer_init(&id->retry, connect_again);
	id->state = SV_ID_CONNECTING;
	if (sv_fault("cm_removal"))
		sv_cm_tell(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, NULL);
	else
		try_connect(id);
	sv_unlock();
	return sv_cm_wait(id);
}

/* The request said what the other end can; "as much as possible" is the least of that and the device's own. */
static void settle_depths(struct sv_id *id, const struct rdma_conn_param *param)
{
	id->initiator_depth = !param || param->initiator_depth == RDMA_MAX_INIT_DEPTH ?
			      least(id->initiator_depth, own_initiator_depth()) : param->initiator_depth;
	id->responder_resources = !param || param->responder_resources == RDMA_MAX_RESP_RES ?
				  least(id->responder_resources, own_responder_resources()) :
				  param->responder_resources;
}

int rdma_accept(struct rdma_cm_id *cm_id, struct rdma_conn_param *param)
{
	struct sv_id *id = sv_id(cm_id);
	struct sv_cm_msg msg;
	int ret;

	if (sv_fault("rdma_accept"))
		return -1;
	if (param && sv_cm_is_stream(cm_id->ps) && !depths_ok(param))
		return fail(EINVAL);
	sv_lock();
	settle_depths(id, param);
	msg = message(id, id->peer.type == SV_CM_SIDR_REQ ? SV_CM_SIDR_REP : SV_CM_REP);
	sv_cm_name(&msg, cm_id->qp ? cm_id->qp->qp_num : param ? param->qp_num : 0);
	msg.qkey = RDMA_UDP_QKEY;
	msg.responder_resources = id->responder_resources;
	msg.initiator_depth = id->initiator_depth;
	if (param) {
		msg.rnr_retry_count = id->mine.rnr_retry_count = param->rnr_retry_count;
	}
	ret = id->state != SV_ID_REQUESTED ? EINVAL :
	      param ? take_priv(&msg, param->private_data, param->private_data_len) : 0;
	if (!ret && msg.type == SV_CM_REP)
		ret = qp_ready_to_go(id);
	if (!ret) {
		/* the answer to a question is all there is: nothing is heard of its end */
		id->state = msg.type == SV_CM_REP ? SV_ID_ACCEPTED : SV_ID_CLOSED;
		if (msg.type == SV_CM_REP && cm_id->qp)
			sv_qp(cm_id->qp)->unestablished = true;
		if (port_is_down())
			id->gone = true;
		else
			post(id, &msg);
		if (id->gone && id->state == SV_ID_ACCEPTED)
			hung_up(id);
	}
	sv_unlock();
	return ret ? fail(ret) : 0;
}

int rdma_reject(struct rdma_cm_id *cm_id, const void *priv, uint8_t len)
{
	struct sv_id *id = sv_id(cm_id);
	struct sv_cm_msg msg;
	int ret;

	if (sv_fault("rdma_reject"))
		return -1;
	sv_lock();
	msg = message(id, id->peer.type == SV_CM_SIDR_REQ ? SV_CM_SIDR_REP : SV_CM_REJ);
	msg.status = msg.type == SV_CM_REJ ? REJECTED_BY_CONSUMER : SIDR_REJECTED;
	ret = id->state != SV_ID_REQUESTED && id->state != SV_ID_RESPONDED ? EINVAL : take_priv(&msg, priv, len);
	if (!ret) {
		post(id, &msg);
		id->state = SV_ID_CLOSED;
		sv_cm_known_del(id);
	}
	sv_unlock();
	return ret ? fail(ret) : 0;
}

int rdma_establish(struct rdma_cm_id *cm_id)
{
	struct sv_id *id = sv_id(cm_id);
	bool ok;

	if (sv_fault("rdma_establish"))
		return -1;
	sv_lock();
	ok = id->state == SV_ID_RESPONDED;
	if (ok) {
		id->state = SV_ID_CONNECTED;
		post_type(id, SV_CM_RTU);
	}
	sv_unlock();
	return ok ? 0 : fail(EINVAL);
}

int rdma_disconnect(struct rdma_cm_id *cm_id)
{
	struct sv_id *id = sv_id(cm_id);
	int ret = 0;

	if (sv_fault("rdma_disconnect"))
		return -1;
	sv_lock();
	if (id->id.qp)
		sv_qp_error(sv_qp(id->id.qp));
	switch (id->state) {
	case SV_ID_CONNECTED:
	case SV_ID_ACCEPTED:
		id->state = SV_ID_CLOSING;
		post_type(id, SV_CM_DREQ);
		break;
	case SV_ID_CLOSED:		/* the other end was first */
		post_type(id, SV_CM_DREP);
		sv_cm_timewait(id);
		break;
	default:
		ret = EINVAL;
		break;
	}
	sv_unlock();
	return ret ? fail(ret) : 0;
}

/* Of others, like time-outs of acknowledgements, nothing here has any. */
int rdma_set_option(struct rdma_cm_id *cm_id, int level, int optname, void *optval, size_t optlen)
{
	if (sv_fault("rdma_set_option"))
		return -1;
	if (level == RDMA_OPTION_ID && optname == RDMA_OPTION_ID_TOS) {
		if (optlen != sizeof(uint8_t))
			return fail(EINVAL);
		sv_lock();
		sv_id(cm_id)->tos = *(uint8_t *) optval;
		sv_unlock();
	}
	return 0;
}
