/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues and channels. A channel's descriptor is an eventfd that counts: each event is one unit, and the
 * list says whose. Destroying a queue waits for its events to be acknowledged, as ibv_destroy_cq(3) says.
 */
#include "sv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define POLL_ERR	(-2)		/* as libmlx5 has it */
#define MAX_CQE		4194303

struct sv_event {
	struct fab_list link;
	struct sv_cq *cq;
};

struct sv_channel {
	struct ibv_comp_channel channel;
	struct fab_list events;
};

static struct sv_cq *sv_cq(struct ibv_cq *cq)
{
	return fab_container(cq, struct sv_cq, cq);
}

static struct fab_list all = { &all, &all };

void sv_cq_break_all(struct sv_context *ctx)
{
	struct fab_list *link;

	fab_list_for_each(&all, link) {
		struct sv_cq *cq = fab_container(link, struct sv_cq, link);

		if (sv_context(cq->cq.context) != ctx)
			continue;
		cq->overrun = true;
		sv_async(cq->cq.context, IBV_EVENT_CQ_ERR, &cq->cq);
	}
}

static void channel_tell(struct sv_cq *cq)
{
	struct sv_channel *channel = fab_container(cq->cq.channel, struct sv_channel, channel);
	struct sv_event *event;

	if (!cq->cq.channel)
		return;
	event = malloc(sizeof(*event));
	if (!event)
		abort();		/* a device does not lose events */
	event->cq = cq;
	fab_list_add_tail(&channel->events, &event->link);
	(void) !write(channel->channel.fd, &(uint64_t) { 1 }, sizeof(uint64_t));
}

/* Of a completion in error little is defined. The rest is what was there before. */
static void spoil(struct ibv_wc *wc)
{
	struct ibv_wc old = {
		.wr_id = wc->wr_id, .status = wc->status, .qp_num = wc->qp_num, .vendor_err = 0x5a,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM, .byte_len = 0x5a5a5a5a, .imm_data = 0x5a5a5a5a, .src_qp = 0x5a5a5a,
		.wc_flags = IBV_WC_GRH | IBV_WC_WITH_IMM, .pkey_index = 0x5a5a, .slid = 0x5a5a, .sl = 5,
		.dlid_path_bits = 0x5a,
	};

	*wc = old;
}

void sv_cq_push(struct ibv_cq *ibv_cq, const struct ibv_wc *wc, bool solicited)
{
	struct sv_cqe cqe = { .wc = *wc };

	sv_cq_push_entry(ibv_cq, &cqe, solicited);
}

void sv_cq_push_entry(struct ibv_cq *ibv_cq, const struct sv_cqe *cqe, bool solicited)
{
	struct sv_cq *cq = sv_cq(ibv_cq);
	struct sv_cqe *to;

	if (cq->overrun)
		return;
	if (sv_context(cq->cq.context)->dead)
		return;
	if (cq->cnt == cq->room) {
		cq->overrun = true;
		sv_async(cq->cq.context, IBV_EVENT_CQ_ERR, &cq->cq);
		return;
	}
	to = &cq->ring[(cq->head + cq->cnt++) % cq->cq.cqe];
	*to = *cqe;
	if (to->wc.status)
		spoil(&to->wc);
	if (cq->arm == SV_CQ_ARMED || (cq->arm == SV_CQ_ARMED_SOLICITED && (solicited || to->wc.status))) {
		cq->arm = SV_CQ_IDLE;
		channel_tell(cq);
	}
}

void sv_cq_purge(struct ibv_cq *ibv_cq, uint32_t qpn)
{
	struct sv_cq *cq = sv_cq(ibv_cq);
	uint32_t i, kept = 0;

	for (i = 0; i < cq->cnt; i++) {
		struct sv_cqe *cqe = &cq->ring[(cq->head + i) % cq->cq.cqe];

		if (cqe->wc.qp_num != qpn)
			cq->ring[(cq->head + kept++) % cq->cq.cqe] = *cqe;
	}
	cq->cnt = kept;
}

void sv_cq_srq_gone(struct ibv_cq *ibv_cq, const struct sv_srq *srq)
{
	struct sv_cq *cq = sv_cq(ibv_cq);
	bool drop = sv_limit("purge_srq", 0), spoils = sv_limit("stale_srq", 0);
	uint32_t i, kept = 0;

	for (i = 0; i < cq->cnt; i++) {
		struct sv_cqe *cqe = &cq->ring[(cq->head + i) % cq->cq.cqe];
		bool own = cqe->xrc_srq == srq;

		if (own)
			cqe->xrc_srq = NULL;
		if (own && drop)
			continue;
		cqe->stale |= own && spoils;
		cq->ring[(cq->head + kept++) % cq->cq.cqe] = *cqe;
	}
	cq->cnt = kept;
}

unsigned sv_test_vector_cnt(int vector)
{
	struct fab_list *link;
	unsigned cnt = 0;

	sv_lock();
	fab_list_for_each(&all, link)
		cnt += fab_container(link, struct sv_cq, link)->vector == vector;
	sv_unlock();
	return cnt;
}

/* Report these otherwise than they ended, as SOFTVERBS_STATUS asks for. */
static void misreport(struct ibv_wc *wc, int cnt)
{
	const char *plan = getenv("SOFTVERBS_STATUS");
	unsigned kind = plan && !strncmp(plan, "recv=", 5) ? IBV_WC_RECV : 0;

	if (!plan || (!kind && strncmp(plan, "send=", 5)))
		return;
	for (; cnt--; wc++) {
		if ((wc->opcode & IBV_WC_RECV) == kind && !wc->status)
			wc->status = strtoul(plan + 5, NULL, 0);
	}
}

int sv_poll_cq(struct ibv_cq *ibv_cq, int cnt, struct ibv_wc *wc)
{
	struct sv_cq *cq = sv_cq(ibv_cq);
	bool stale = false;
	int i;

	if (sv_fault("ibv_poll_cq"))
		return POLL_ERR;
	sv_lock();
	if (cq->overrun) {
		sv_unlock();
		return -EIO;
	}
	for (i = 0; i < cnt && cq->cnt && !stale; i++, cq->cnt--) {
		const struct sv_cqe *cqe = &cq->ring[cq->head];

		wc[i] = cqe->wc;
		if (cqe->sender)
			cqe->sender->freed = cqe->end;
		stale = cqe->stale;
		cq->head = (cq->head + 1) % cq->cq.cqe;
	}
	sv_unlock();
	if (stale)
		return POLL_ERR;	/* those before are lost with it */
	if (i)
		misreport(wc, i);
	return i;
}

int sv_resize_cq(struct ibv_cq *ibv_cq, int cqe)
{
	struct sv_cq *cq = sv_cq(ibv_cq);
	struct sv_cqe *ring;

	if (sv_fault("ibv_resize_cq"))
		return errno;
	if (sv_limit("no_resize_cq", 0))
		return ENOSYS;
	if (cqe < 1 || (uint64_t) cqe > sv_limit("max_cqe", MAX_CQE))
		return EINVAL;
	ring = calloc(cqe, sizeof(*ring));
	if (!ring)
		return ENOMEM;
	sv_lock();
	if ((uint32_t) cqe < cq->cnt) {
		sv_unlock();
		free(ring);
		return EINVAL;
	}
	for (uint32_t i = 0; i < cq->cnt; i++)
		ring[i] = cq->ring[(cq->head + i) % cq->cq.cqe];
	free(cq->ring);
	cq->ring = ring;
	cq->head = 0;
	cq->cq.cqe = cqe;
	cq->room = sv_limit("cq_room", (uint64_t) cqe);
	sv_unlock();
	return 0;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	return sv_resize_cq(cq, cqe);
}

/* SOFTVERBS_ARM_LATE: a completion that will come does so after the last look at a queue and before it is armed. */
static void arm_late(const struct sv_cq *cq)
{
	const char *wish = getenv("SOFTVERBS_ARM_LATE");
	uint32_t cnt = 0;

	for (int ms = 0; wish && *wish && !cnt && ms < 1000; ms++) {
		usleep(1000);
		sv_lock();
		cnt = cq->cnt;
		sv_unlock();
	}
}

int sv_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct sv_cq *cq = sv_cq(ibv_cq);

	if (sv_fault("ibv_req_notify_cq"))
		return errno;
	arm_late(cq);
	sv_lock();
	if (cq->arm != SV_CQ_ARMED)
		cq->arm = solicited_only ? SV_CQ_ARMED_SOLICITED : SV_CQ_ARMED;
	sv_unlock();
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				       struct ibv_comp_channel *channel, int comp_vector)
{
	struct sv_cq *cq;

	if (sv_fault("ibv_create_cq"))
		return NULL;
	if (cqe < 1 || (uint64_t) cqe > sv_limit("max_cqe", MAX_CQE) || comp_vector < 0 ||
	    comp_vector >= context->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->ring = calloc(cqe, sizeof(*cq->ring));
	if (!cq->ring) {
		free(cq);
		return NULL;
	}
	cq->cq.context = context;
	cq->cq.channel = channel;
	cq->cq.cq_context = cq_context;
	cq->cq.cqe = cqe;
	cq->vector = comp_vector;
	cq->room = sv_limit("cq_room", (uint64_t) cqe);
	sv_lock();
	if (sv_context(context)->cq_cnt >= sv_limit("max_cq", SV_MANY)) {
		sv_unlock();
		free(cq->ring);
		free(cq);
		errno = ENOMEM;
		return NULL;
	}
	sv_context(context)->ref_cnt++;
	sv_context(context)->cq_cnt++;
	if (channel)
		channel->refcnt++;
	fab_list_add_tail(&all, &cq->link);
	sv_unlock();
	return &cq->cq;
}

/* Events of this queue that nobody has taken yet are taken back. */
static void forget_events(struct sv_cq *cq)
{
	struct sv_channel *channel;
	struct fab_list *link, *tmp;

	if (!cq->cq.channel)
		return;
	channel = fab_container(cq->cq.channel, struct sv_channel, channel);
	fab_list_for_each_safe(&channel->events, link, tmp) {
		struct sv_event *event = fab_container(link, struct sv_event, link);

		if (event->cq == cq) {
			fab_list_remove(link);
			free(event);
		}
	}
	cq->cq.channel->refcnt--;
}

int ibv_destroy_cq(struct ibv_cq *ibv_cq)
{
	struct sv_cq *cq = sv_cq(ibv_cq);

	sv_lock();
	if (cq->ref_cnt) {
		sv_unlock();
		return EBUSY;
	}
	while (cq->unacked)
		sv_wait();
	forget_events(cq);
	sv_async_forget(cq->cq.context, &cq->cq);
	fab_list_remove(&cq->link);
	sv_context(cq->cq.context)->ref_cnt--;
	sv_context(cq->cq.context)->cq_cnt--;
	sv_unlock();
	free(cq->ring);
	free(cq);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct sv_channel *channel = sv_fault("ibv_create_comp_channel") ? NULL : calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->channel.context = context;
	channel->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (channel->channel.fd < 0) {
		free(channel);
		return NULL;
	}
	fab_list_init(&channel->events);
	sv_lock();
	sv_context(context)->ref_cnt++;
	sv_unlock();
	return &channel->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv_channel)
{
	bool busy;

	sv_lock();
	busy = ibv_channel->refcnt;
	if (!busy)
		sv_context(ibv_channel->context)->ref_cnt--;
	sv_unlock();
	if (busy)
		return EBUSY;
	close(ibv_channel->fd);
	free(fab_container(ibv_channel, struct sv_channel, channel));
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *ibv_channel, struct ibv_cq **cq, void **cq_context)
{
	struct sv_channel *channel = fab_container(ibv_channel, struct sv_channel, channel);
	struct sv_event *event;
	uint64_t unit;

	/* The unit of an event that was taken back has no event: look for the next. */
	do {
		if (read(ibv_channel->fd, &unit, sizeof(unit)) != sizeof(unit))
			return -1;
		sv_lock();
		event = fab_list_empty(&channel->events) ? NULL :
			fab_container(fab_list_pop_front(&channel->events), struct sv_event, link);
		if (event)
			event->cq->unacked++;
		sv_unlock();
	} while (!event);
	*cq = &event->cq->cq;
	*cq_context = event->cq->cq.cq_context;
	free(event);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int cnt)
{
	sv_lock();
	sv_cq(cq)->unacked -= cnt;
	sv_wake_all();
	sv_unlock();
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const text[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "message longer than the receive",
		[IBV_WC_LOC_QP_OP_ERR] = "queue pair operation error",
		[IBV_WC_LOC_PROT_ERR] = "local key, bounds or rights",
		[IBV_WC_WR_FLUSH_ERR] = "flushed",
		[IBV_WC_REM_INV_REQ_ERR] = "invalid request at the responder",
		[IBV_WC_REM_ACCESS_ERR] = "remote key, bounds or rights",
		[IBV_WC_REM_OP_ERR] = "error at the responder",
		[IBV_WC_RETRY_EXC_ERR] = "no answer",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "no receive posted",
	};

	if ((size_t) status >= sizeof(text) / sizeof(text[0]) || !text[status])
		return "unknown";
	return text[status];
}
