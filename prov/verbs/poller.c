/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The poller of an engine of a domain: it owns a hardware completion queue, which every pass of the engine polls, and
 * which cq.c reads directly. All endpoints of the engine share it, so a look costs the same with one and with a
 * thousand. Each endpoint reserves entries for all that it can have outstanding. When all entries are reserved, the
 * queue grows (ibv_resize_cq). Where a device cannot do that, or the queue has its largest size, another one is opened,
 * four times as large; then there are a few. The poller also owns the engine's event channel of librdmacm (channel.h).
 *
 * Polling costs no system call, so queues are not armed while the application polls. When a thread may sleep on the
 * engine's epoll set (engine->watchers), a pass arms the queues that are not armed, and polls again. The descriptor of
 * the completion channel then wakes that thread. A thread that reads an event of the channel makes a pass, so that
 * while there are watchers each queue is armed or has an event pending.
 *
 * A poller is opened with the first endpoint that is enabled on an engine, and closed with the last.
 */
#include "verbs/kind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "verbs/srx.h"

#define SEVERAL_LOOKS	32		/* limit of reads of several queues without a pass of the engine */
#define FAILURES_MAX	16		/* so many polls of a queue may fail in a row */
#define HW_CQ_SIZE	1024		/* entries of the first queue, unless one endpoint needs more */
#define NEXT_FACTOR	4		/* of the size of another queue */

struct vrb_poller {
	struct fab_list link;		/* in domain->pollers */
	struct fab_engine *engine;	/* borrowed: the endpoints hold a reference */
	struct ibv_comp_channel *channel;
	struct fab_source src;		/* the channel's descriptor */
	struct fab_poll_fn fn;
	struct vrb_alarm alarm;
	struct fab_timer look;		/* at connections that may be silent (alive.h) */
	struct vrb_channel cm;		/* opened with the first connected endpoint; both locks */
	int vector;			/* the completion vector of its queues */
	bool fixed;			/* the device's queues cannot grow; domain->lock */
	struct fab_list cqs;		/* struct vrb_hw_cq; changed under both locks */
	unsigned looks;			/* reads of several queues since the last pass */
	struct fab_list *first;		/* the entry of cqs to poll first next time, or NULL; engine's lock */
};

/* Let readers poll the hardware queue directly if there is only one, and it works. Lock held, or no reader is
 * possible. */
static void choose_direct(struct vrb_poller *poller)
{
	struct vrb_hw_cq *hw = fab_list_first(&poller->cqs, struct vrb_hw_cq, link);
	bool one = hw && hw->link.next == &poller->cqs;

	fab_engine_set_direct(poller->engine, one && !atomic_load(&hw->broken) ? hw : NULL);
}

static void ep_lost(struct vrb_ep *ep, int err, const char *why)
{
	vrb_cm_lost(ep, err, why);
	vrb_work_lost(ep, err, why);
}

static void queue_lost(struct vrb_hw_cq *hw, int err, const char *why)
{
	struct fab_list *link;

	fab_list_for_each(&hw->eps, link)
		ep_lost(fab_container(link, struct vrb_ep, on_hw), err, why);
}

static void mark_broken(struct vrb_hw_cq *hw)
{
	atomic_store(&hw->broken, true);
	choose_direct(hw->poller);
}

static void all_lost(struct vrb_poller *poller, int err, const char *why)
{
	struct fab_list *link;

	/* what completes to several queues is lost in all of them */
	fab_list_for_each(&poller->cqs, link)
		mark_broken(fab_container(link, struct vrb_hw_cq, link));
	fab_list_for_each(&poller->cqs, link)
		queue_lost(fab_container(link, struct vrb_hw_cq, link), err, why);
}

void vrb_hw_cq_removed(struct vrb_hw_cq *hw, int err, const char *why)
{
	all_lost(hw->poller, err, why);
}

/* The queue pair or shared receive queue of an endpoint has failed. The queue pair goes into the error state, and
 * outstanding requests are reported as usual. */
static void endpoint_lost(struct vrb_ep *ep)
{
	vrb_cm_lost(ep, FI_EIO, "the device's queue pair or shared receive queue has failed");
	if (!ep->kind->disconnect)
		ep->kind->halt(ep);
}

static void look_at_endpoint(struct vrb_ep *ep)
{
	unsigned told = vrb_watch_take(&ep->qp_watch, VRB_TOLD_AT_ONCE);

	told |= vrb_watch_take(&ep->srq_watch, VRB_TOLD_AT_ONCE);
	if (told & VRB_TOLD_FAILED)
		endpoint_lost(ep);
	else if (told & VRB_TOLD_ESTABLISHED)
		vrb_cm_notify(ep);
}

/* True if work completions of the endpoint come through the queue: its own, those of its shared receive context, or
 * those of an XRC initiator that another endpoint has made. */
static bool completes_to(const struct vrb_ep *ep, const struct vrb_hw_cq *hw)
{
	return ep->hw_cq == hw || ep->tx_hw == hw || (ep->srx && ep->srx->ep.hw_cq == hw);
}

/* A queue has failed. It ends the endpoints that complete to it, and no others. */
static void queue_broken(struct vrb_hw_cq *hw)
{
	static const char why[] = "the device's completion queue is broken";
	struct fab_list *link, *inner;

	if (atomic_load(&hw->broken))
		return;
	mark_broken(hw);
	queue_lost(hw, FI_EIO, why);
	fab_list_for_each(&hw->poller->cqs, link) {
		const struct vrb_hw_cq *other = fab_container(link, struct vrb_hw_cq, link);

		fab_list_for_each(&other->eps, inner) {
			struct vrb_ep *ep = fab_container(inner, struct vrb_ep, on_hw);

			if (other != hw && completes_to(ep, hw))
				ep_lost(ep, FI_EIO, why);
		}
	}
}

static void rung(struct vrb_alarm *alarm)
{
	struct vrb_poller *poller = fab_container(alarm, struct vrb_poller, alarm);
	struct fab_list *link, *inner;

	if (atomic_load(&alarm->dead)) {
		all_lost(poller, FI_ENODEV, "the device has failed");
		return;
	}
	fab_list_for_each(&poller->cqs, link) {
		struct vrb_hw_cq *hw = fab_container(link, struct vrb_hw_cq, link);

		if (vrb_watch_take(&hw->watch, VRB_TOLD_FAILED))
			queue_broken(hw);
		fab_list_for_each(&hw->eps, inner)
			look_at_endpoint(fab_container(inner, struct vrb_ep, on_hw));
	}
}

struct vrb_alarm *vrb_hw_cq_alarm(struct vrb_hw_cq *hw)
{
	return &hw->poller->alarm;
}

/* Poll until the queue is empty, one entry at a time: then a poll that fails loses nothing that it has found before. A
 * driver takes the entry that it does not know out of the queue, so the next poll may succeed. The queue is broken if
 * more polls fail in a row than there can be such entries. */
static bool poll_singly(struct vrb_hw_cq *hw, uint32_t failures_max)
{
	struct ibv_wc wc;
	bool found = false;
	uint32_t failed = 0;
	int cnt = 0;

	while (failed <= failures_max && (cnt = ibv_poll_cq(hw->cq, 1, &wc))) {
		failed = cnt < 0 ? failed + 1 : 0;
		if (cnt > 0)
			vrb_work_done(&wc, NULL);
		found |= cnt > 0;
	}
	if (!cnt || failed <= failures_max)
		return found;
	VRB_WARN(FI_LOG_CQ, "ibv_poll_cq on %s fails again and again (%d): the endpoints of that completion queue "
		 "fail, too\n", ibv_get_device_name(hw->cq->context->device), cnt);
	queue_broken(hw);
	return true;
}

bool vrb_hw_cq_poll(struct vrb_hw_cq *hw)
{
	struct ibv_wc wc[VRB_BATCH];
	int i, cnt, found = 0;

	if (__builtin_expect(atomic_load_explicit(&hw->broken, memory_order_relaxed), 0))
		return false;
	do {
		cnt = ibv_poll_cq(hw->cq, VRB_BATCH, wc);
		for (i = 0; i < cnt; i++)
			vrb_work_done(&wc[i], NULL);
		found += cnt > 0;
	} while (cnt == VRB_BATCH);
	if (__builtin_expect(cnt < 0, 0)) {
		VRB_WARN(FI_LOG_CQ, "ibv_poll_cq on %s failed (%d), and is tried again\n",
			 ibv_get_device_name(hw->cq->context->device), cnt);
		return poll_singly(hw, FAILURES_MAX) || found;
	}
	return found;
}

void vrb_hw_cq_settle(struct vrb_hw_cq *hw, uint32_t stale)
{
	if (!atomic_load(&hw->broken))
		poll_singly(hw, stale + FAILURES_MAX);
}

static bool take_all(struct vrb_poller *poller)
{
	struct fab_list *link;
	bool found = false;

	fab_list_for_each(&poller->cqs, link)
		found |= vrb_hw_cq_poll(fab_container(link, struct vrb_hw_cq, link));
	return found;
}

/* The next queue; after the last, the first. */
static struct fab_list *next_of(const struct vrb_poller *poller, const struct fab_list *link)
{
	return link->next == &poller->cqs ? poller->cqs.next : link->next;
}

int vrb_poller_look(struct fab_engine *engine, struct fab_cq_taker *taker, size_t count)
{
	struct vrb_poller *poller = fab_list_empty(&engine->polls) || engine->lead ? NULL :
				    fab_container(engine->polls.next, struct vrb_poller, fn.link);
	struct fab_list *first, *link;
	int found = 0;

	if (!poller || fab_list_empty(&poller->cqs) || !fab_list_empty(&engine->flush) ||
	    poller->looks++ == SEVERAL_LOOKS)
		return -1;
	first = poller->first ? poller->first : poller->cqs.next;
	link = first;
	do {
		struct vrb_hw_cq *hw = fab_container(link, struct vrb_hw_cq, link);
		size_t room = count - (size_t) taker->cnt;
		int cnt;

		if (!room || !taker->cq)
			break;
		cnt = atomic_load_explicit(&hw->broken, memory_order_relaxed) ? -1 :
		      ibv_poll_cq(hw->cq, (int) fab_min(room, (size_t) VRB_BATCH), hw->wc);
		if (cnt < 0)
			return -1;
		for (int i = 0; i < cnt; i++)
			vrb_work_done(&hw->wc[i], taker);
		found += cnt;
		link = next_of(poller, link);
	} while (link != first);
	/* start with another queue next time, so that each is polled in turn */
	poller->first = next_of(poller, first);
	return found;
}

/* Arm all queues, so that the channel signals the next completion. True if any was not armed before. */
static bool arm_all(struct vrb_poller *poller)
{
	struct fab_list *link;
	bool any = false;

	fab_list_for_each(&poller->cqs, link) {
		struct vrb_hw_cq *hw = fab_container(link, struct vrb_hw_cq, link);

		if (hw->armed || atomic_load_explicit(&hw->broken, memory_order_relaxed))
			continue;
		hw->armed = !ibv_req_notify_cq(hw->cq, 0);
		any = true;
	}
	return any;
}

static bool poll_hw(struct fab_poll_fn *fn)
{
	struct vrb_poller *poller = fab_container(fn, struct vrb_poller, fn);

	bool found = take_all(poller);

	poller->looks = 0;
	if (atomic_load_explicit(&poller->engine->watchers, memory_order_seq_cst) && arm_all(poller))
		found |= take_all(poller);
	return found;
}

/* An armed queue has a completion. poll_hw() arms it again if a thread may sleep. */
static void channel_ready(struct fab_source *src, uint32_t events)
{
	struct vrb_poller *poller = fab_container(src, struct vrb_poller, src);
	struct ibv_cq *cq;
	void *context;

	(void) events;
	while (!ibv_get_cq_event(poller->channel, &cq, &context)) {
		struct vrb_hw_cq *hw = context;

		hw->armed = false;
		ibv_ack_cq_events(cq, 1);
	}
	poll_hw(&poller->fn);
}

/* Look at all connections. Many are not asked: each may wait for its own peer. */
static void look_fire(struct fab_timer *timer)
{
	struct vrb_poller *poller = fab_container(timer, struct vrb_poller, look);
	uint64_t now = fab_now_ns();
	struct fab_list *link, *inner;
	int cnt = 0;
	bool probe;

	fab_list_for_each(&poller->cqs, link) {
		fab_list_for_each(&fab_container(link, struct vrb_hw_cq, link)->eps, inner)
			cnt++;
	}
	probe = vrb_params.keepalive_ms && cnt <= vrb_params.keepalive_peers;
	fab_list_for_each(&poller->cqs, link) {
		fab_list_for_each(&fab_container(link, struct vrb_hw_cq, link)->eps, inner)
			vrb_alive_look(fab_container(inner, struct vrb_ep, on_hw), now, probe);
	}
	fab_timer_start(poller->engine, timer, now + vrb_alive_period_ns());
}

static int open_channel(struct vrb_domain *domain, struct vrb_poller *poller)
{
	int flags, ret;

	poller->channel = ibv_create_comp_channel(domain->dev->verbs);
	if (!poller->channel)
		return -errno;
	flags = fcntl(poller->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(poller->channel->fd, F_SETFL, flags | O_NONBLOCK)) {
		ret = -errno;
		ibv_destroy_comp_channel(poller->channel);
		return ret;
	}
	poller->src = (struct fab_source) { .fd = poller->channel->fd, .ready = channel_ready };
	return 0;
}

/* Completion vectors are taken in turn, as each has an interrupt of its own. The first depends on the process: often a
 * node runs a process on each processor, and each process has one engine. */
static int next_vector(const struct ibv_context *verbs)
{
	static atomic_uint cnt;

	return verbs->num_comp_vectors > 1 ?
	       (int) (((unsigned) getpid() + atomic_fetch_add(&cnt, 1)) % (unsigned) verbs->num_comp_vectors) : 0;
}

static int poller_open(struct vrb_domain *domain, struct fab_engine *engine, struct vrb_poller **out)
{
	struct vrb_poller *poller = calloc(1, sizeof(*poller));
	int ret;

	if (!poller)
		return -FI_ENOMEM;
	poller->engine = engine;
	poller->vector = next_vector(domain->dev->verbs);
	poller->fn.poll = poll_hw;
	fab_timer_init(&poller->look, look_fire);
	fab_list_init(&poller->cqs);
	ret = open_channel(domain, poller);
	if (ret)
		goto free_poller;
	fab_engine_lock(engine);
	ret = fab_source_add(engine, &poller->src, EPOLLIN);
	poller->alarm.rung = rung;
	if (!ret)
		ret = vrb_alarm_start(&poller->alarm, domain->dev, engine);
	if (ret)
		fab_source_del(&poller->src);
	else
		fab_poll_add(engine, &poller->fn);
	if (!ret && domain->kind->probes && vrb_alive_period_ns())
		fab_timer_start(engine, &poller->look, fab_now_ns() + vrb_alive_period_ns());
	fab_engine_unlock(engine);
	if (ret)
		goto destroy_channel;
	fab_list_add_tail(&domain->pollers, &poller->link);
	*out = poller;
	return 0;

destroy_channel:
	ibv_destroy_comp_channel(poller->channel);
free_poller:
	free(poller);
	return ret;
}

static void poller_close(struct vrb_poller *poller)
{
	fab_engine_lock(poller->engine);
	fab_timer_stop(&poller->look);
	vrb_alarm_stop(&poller->alarm);
	vrb_channel_close(&poller->cm);
	fab_source_del(&poller->src);
	fab_poll_del(poller->engine, &poller->fn);
	fab_engine_unlock(poller->engine);
	fab_list_remove(&poller->link);
	ibv_destroy_comp_channel(poller->channel);
	free(poller);
}

static int poller_get(struct vrb_domain *domain, struct fab_engine *engine, struct vrb_poller **out)
{
	struct fab_list *link;

	fab_list_for_each(&domain->pollers, link) {
		struct vrb_poller *poller = fab_container(link, struct vrb_poller, link);

		if (poller->engine == engine) {
			*out = poller;
			return 0;
		}
	}
	return poller_open(domain, engine, out);
}

static struct vrb_hw_cq *with_room(struct vrb_poller *poller, uint32_t cnt)
{
	struct fab_list *link;

	fab_list_for_each(&poller->cqs, link) {
		struct vrb_hw_cq *hw = fab_container(link, struct vrb_hw_cq, link);

		if (hw->room >= cnt && !atomic_load(&hw->broken))
			return hw;
	}
	return NULL;
}

static struct vrb_hw_cq *newest(const struct vrb_poller *poller)
{
	return fab_list_empty(&poller->cqs) ? NULL : fab_container(poller->cqs.prev, struct vrb_hw_cq, link);
}

/* Let the newest queue grow by doubling until cnt more entries are free. NULL: it cannot. */
static struct vrb_hw_cq *grow(struct vrb_domain *domain, struct vrb_poller *poller, uint32_t cnt)
{
	struct vrb_hw_cq *hw = newest(poller);
	uint64_t need, size;
	int ret;

	if (!hw || poller->fixed || atomic_load(&hw->broken))
		return NULL;
	need = (uint64_t) hw->size - hw->room + cnt;
	for (size = hw->size; size < need; size *= 2)
		;
	size = fab_min(size, (uint64_t) domain->dev->attr.max_cqe);
	if (size < need)
		return NULL;
	fab_engine_lock(poller->engine);
	ret = ibv_resize_cq(hw->cq, (int) size);
	fab_engine_unlock(poller->engine);
	if (ret) {
		VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "ibv_resize_cq to %u entries on %s: %s; another queue is opened\n",
			(unsigned) size, domain->dev->name, strerror(ret));
		poller->fixed = true;
		return NULL;
	}
	hw->room += (uint32_t) size - hw->size;
	hw->size = (uint32_t) size;
	return hw;
}

/* The size of another queue of the poller. */
static uint32_t next_size(const struct vrb_domain *domain, const struct vrb_poller *poller, uint32_t cnt)
{
	const struct vrb_hw_cq *last = newest(poller);
	uint64_t size = last ? (uint64_t) last->size * NEXT_FACTOR : HW_CQ_SIZE;

	return (uint32_t) fab_min(fab_max(size, (uint64_t) cnt), (uint64_t) domain->dev->attr.max_cqe);
}

static int hw_cq_open(struct vrb_domain *domain, struct vrb_poller *poller, uint32_t cnt, struct vrb_hw_cq **out)
{
	uint32_t size = next_size(domain, poller, cnt);
	struct vrb_hw_cq *hw;
	int ret;

	if (cnt > size) {
		VRB_WARN(FI_LOG_EP_CTRL, "the endpoint may have %u operations and receives outstanding, but a "
			 "completion queue of %s holds %u; ask for a smaller tx_attr->size and rx_attr->size\n",
			 cnt, domain->dev->name, size);
		return -FI_EINVAL;
	}
	hw = calloc(1, sizeof(*hw));
	if (!hw)
		return -FI_ENOMEM;
	hw->cq = ibv_create_cq(domain->dev->verbs, (int) size, hw, poller->channel, poller->vector);
	if (!hw->cq) {
		ret = -errno;
		VRB_WARN(FI_LOG_EP_CTRL, "ibv_create_cq of %u entries on %s: %s\n", size, domain->dev->name,
			 strerror(errno));
		free(hw);
		return ret;
	}
	hw->poller = poller;
	hw->size = hw->room = size;
	fab_list_init(&hw->eps);
	vrb_watch_start(&hw->watch, &poller->alarm, hw->cq);
	fab_engine_lock(poller->engine);
	fab_list_add_tail(&poller->cqs, &hw->link);
	choose_direct(poller);
	poll_hw(&poller->fn);		/* arms the queue if a thread is asleep */
	fab_engine_unlock(poller->engine);
	*out = hw;
	return 0;
}

static void hw_cq_close(struct vrb_hw_cq *hw)
{
	fab_engine_lock(hw->poller->engine);
	if (hw->poller->first == &hw->link)
		hw->poller->first = NULL;
	fab_list_remove(&hw->link);
	choose_direct(hw->poller);
	fab_engine_unlock(hw->poller->engine);
	vrb_watch_stop(&hw->watch);
	ibv_destroy_cq(hw->cq);
	free(hw);
}

int vrb_hw_cq_get(struct vrb_domain *domain, struct fab_engine *engine, uint32_t cnt, struct vrb_hw_cq **hw_cq)
{
	struct vrb_poller *poller = NULL;
	struct vrb_hw_cq *hw;
	int ret;

	pthread_mutex_lock(&domain->lock);
	ret = poller_get(domain, engine, &poller);
	if (ret)
		goto unlock;
	hw = with_room(poller, cnt);
	if (!hw)
		hw = grow(domain, poller, cnt);
	if (!hw)
		ret = hw_cq_open(domain, poller, cnt, &hw);
	if (ret) {
		if (fab_list_empty(&poller->cqs))
			poller_close(poller);
		goto unlock;
	}
	hw->room -= cnt;
	hw->user_cnt++;
	*hw_cq = hw;
unlock:
	pthread_mutex_unlock(&domain->lock);
	return ret;
}

void vrb_hw_cq_put(struct vrb_domain *domain, struct vrb_hw_cq *hw, uint32_t cnt)
{
	struct vrb_poller *poller = hw->poller;

	pthread_mutex_lock(&domain->lock);
	hw->room += cnt;
	if (!--hw->user_cnt) {
		hw_cq_close(hw);
		if (fab_list_empty(&poller->cqs))
			poller_close(poller);
	}
	pthread_mutex_unlock(&domain->lock);
}

int vrb_hw_cq_take_id(struct vrb_domain *domain, struct vrb_hw_cq *hw, struct rdma_cm_id *id)
{
	struct vrb_poller *poller = hw->poller;
	int ret = 0;

	pthread_mutex_lock(&domain->lock);
	fab_engine_lock(poller->engine);
	if (!poller->cm.cm)
		ret = vrb_channel_open(&poller->cm, poller->engine);
	fab_engine_unlock(poller->engine);
	pthread_mutex_unlock(&domain->lock);
	if (ret)
		return ret;
	if (!rdma_migrate_id(id, poller->cm.cm))
		return 0;
	ret = -errno;
	VRB_WARN(FI_LOG_EP_CTRL, "rdma_migrate_id on %s: %s\n", domain->dev->name, strerror(errno));
	return ret;
}
