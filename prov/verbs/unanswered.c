/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * iWARP connection requests of endpoints that were closed before the answer. The kernel keeps their queue pair until
 * the peer has answered or ten seconds have passed, and destroying it blocks until then. Two processes that connect to
 * each other and then close would block each other. So the id and its queue pair, in the error state and with nothing
 * outstanding, are kept until the answer has come, and destroyed then without blocking.
 *
 * An entry is in domain->unanswered, guarded by domain->lock, and has a reference to its engine and hardware queue, and
 * so to the engine's channel, which its id is on. domain->lock must not be taken with the engine's lock held, so the
 * answer only sets `over` and lets the kernel's objects go; the next endpoint that is closed frees the entry. Closing
 * the domain or a shared receive context waits for the remaining entries.
 */
#include "verbs/kind.h"

#include <stdlib.h>

struct unanswered {
	struct fab_list link;
	struct vrb_cm_sink sink;	/* of id */
	struct fab_engine *engine;
	struct rdma_cm_id *id;		/* owned, with its queue pair */
	struct vrb_hw_cq *hw_cq;
	uint32_t reserved;		/* of hw_cq */
	bool answered;
	_Atomic bool over;		/* the id is gone */
};

/* Destroy the id. This blocks in the kernel if there is no answer yet. Engine's lock held, or the id has no sink. */
static void destroy(struct unanswered *req)
{
	rdma_destroy_qp(req->id);
	rdma_destroy_id(req->id);
	atomic_store(&req->over, true);
}

/* An event after rdma_connect() is the answer, or ends the wait for it, but for one. */
static void answered(struct vrb_cm_sink *sink, const struct rdma_cm_event *event)
{
	fab_container(sink, struct unanswered, sink)->answered = event->event != RDMA_CM_EVENT_ADDR_CHANGE;
	VRB_LOG(FI_LOG_DEBUG, FI_LOG_EP_CTRL, "a request whose endpoint is closed: %s\n", rdma_event_str(event->event));
}

static void acknowledged(struct vrb_cm_sink *sink)
{
	struct unanswered *req = fab_container(sink, struct unanswered, sink);

	if (req->answered)
		destroy(req);
}

static struct unanswered *unanswered_take(struct vrb_domain *domain, bool all)
{
	struct unanswered *found = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&domain->lock);
	fab_list_for_each(&domain->unanswered, link) {
		struct unanswered *req = fab_container(link, struct unanswered, link);

		if (!all && !atomic_load(&req->over))
			continue;
		fab_list_remove(link);
		found = req;
		break;
	}
	pthread_mutex_unlock(&domain->lock);
	return found;
}

void vrb_unanswered_end(struct vrb_domain *domain, bool all)
{
	struct unanswered *req;

	while ((req = unanswered_take(domain, all))) {
		fab_engine_lock(req->engine);	/* waits for the end of the pass that has set `over` */
		if (!atomic_load(&req->over))
			req->id->context = NULL;
		fab_engine_unlock(req->engine);
		if (!atomic_load(&req->over))
			destroy(req);
		vrb_hw_cq_put(domain, req->hw_cq, req->reserved);
		fab_domain_put_engine(&domain->base, req->engine);
		free(req);
	}
}

bool vrb_unanswered_keep(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct vrb_domain *domain = vrb_domain_of(ep);
	struct unanswered *req = calloc(1, sizeof(*req));

	if (!req)
		return false;
	*req = (struct unanswered) {
		.sink = { .event = answered, .acknowledged = acknowledged }, .engine = ep->base.engine, .id = conn->id,
		.hw_cq = ep->hw_cq, .reserved = ep->reserved,
	};
	fab_domain_hold_engine(&domain->base, req->engine);
	pthread_mutex_lock(&domain->lock);
	fab_list_add_tail(&domain->unanswered, &req->link);
	fab_engine_lock(req->engine);
	conn->id->context = &req->sink;
	fab_engine_unlock(req->engine);
	pthread_mutex_unlock(&domain->lock);
	conn->id = NULL;
	ep->qp = NULL;
	ep->hw_cq = NULL;
	return true;
}
