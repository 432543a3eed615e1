/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * iWARP connection requests of endpoints that were closed before the answer. The kernel keeps their queue pair until
 * the peer has answered or ten seconds have passed, and destroying it blocks until then. Two processes that connect to
 * each other and then close would block each other. So the id and its queue pair, in the error state and with nothing
 * outstanding, are kept until the answer has come, and destroyed then without blocking.
 *
 * An entry is in domain->unanswered, guarded by domain->lock, and has a reference to its engine and hardware queue. The
 * engine reads its channel. domain->lock must not be taken with the engine's lock held, so the answer only sets `over`
 * and lets the kernel's objects go; the next endpoint that is closed frees the entry. Closing the domain or a shared
 * receive context waits for the remaining entries.
 */
#include "verbs/kind.h"

#include <stdlib.h>
#include <sys/epoll.h>

struct unanswered {
	struct fab_list link;
	struct fab_source src;		/* of channel */
	struct fab_engine *engine;
	struct rdma_cm_id *id;		/* owned, with its queue pair and its channel */
	struct rdma_event_channel *channel;
	struct vrb_hw_cq *hw_cq;
	uint32_t reserved;		/* of hw_cq */
	_Atomic bool over;		/* id, channel and src are gone */
};

/* Destroy the id. This blocks in the kernel if there is no answer yet. Engine's lock held, or src is not in the
 * engine. */
static void destroy(struct unanswered *req)
{
	fab_source_del(&req->src);
	rdma_destroy_qp(req->id);
	rdma_destroy_id(req->id);
	rdma_destroy_event_channel(req->channel);
	atomic_store(&req->over, true);
}

/* The answer has come: any event after rdma_connect() is one. */
static void answered(struct fab_source *src, uint32_t events)
{
	struct unanswered *req = fab_container(src, struct unanswered, src);
	struct rdma_cm_event *event;

	(void) events;
	if (rdma_get_cm_event(req->channel, &event))
		return;
	VRB_LOG(FI_LOG_DEBUG, FI_LOG_EP_CTRL, "a request whose endpoint is closed: %s\n", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
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
		fab_source_del(&req->src);
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
	struct vrb_domain *domain = vrb_domain_of(ep);
	struct unanswered *req = calloc(1, sizeof(*req));
	int ret;

	if (!req)
		return false;
	req->engine = ep->base.engine;
	req->id = ep->id;
	req->channel = ep->channel;
	req->hw_cq = ep->hw_cq;
	req->reserved = ep->reserved;
	req->src = (struct fab_source) { .fd = ep->channel->fd, .ready = answered };
	fab_domain_hold_engine(&domain->base, req->engine);
	pthread_mutex_lock(&domain->lock);
	fab_list_add_tail(&domain->unanswered, &req->link);
	fab_engine_lock(req->engine);
	ret = fab_source_add(req->engine, &req->src, EPOLLIN);
	fab_engine_unlock(req->engine);
	if (ret)
		fab_list_remove(&req->link);
	pthread_mutex_unlock(&domain->lock);
	if (ret) {
		fab_domain_put_engine(&domain->base, req->engine);
		free(req);
		return false;
	}
	ep->id = NULL;
	ep->channel = NULL;
	ep->qp = NULL;
	ep->hw_cq = NULL;
	return true;
}
