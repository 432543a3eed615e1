/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Poll sets, fi_poll(3): make progress for several CQs and counters, and report those that have something to read. A
 * set has a mutex of its own, which is taken before all other locks.
 */
#include "common/queue/sets.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "common/queue/cntr.h"
#include "common/queue/cq.h"
#include "common/domain/domain.h"
#include "common/ops/ops.h"

/* A queue of a set. A counter is reported if it differs from the value that the set saw last. */
struct entry {
	struct fid *fid;
	uint64_t value, err;
};

struct fab_poll {
	struct fid_poll poll_fid;
	struct fab_domain *domain;	/* borrowed: open took a reference */
	pthread_mutex_t lock;
	struct entry *entries;		/* owned; a reference to each queue */
	size_t cnt;
	size_t next;			/* where the next fi_poll() starts, so that all queues are reported if the array
					 * is short */
};

/* The wait object and reference count of a queue. NULL: the object is neither a CQ nor a counter. */
static struct fab_wait *poll_queue_of(struct fid *fid, _Atomic uint32_t **ref)
{
	struct fab_cntr *cntr;
	struct fab_cq *cq;

	switch (fid->fclass) {
	case FI_CLASS_CQ:
		cq = fab_container(fid, struct fab_cq, cq_fid.fid);
		*ref = &cq->ref;
		return &cq->wait;
	case FI_CLASS_CNTR:
		cntr = fab_container(fid, struct fab_cntr, cntr_fid.fid);
		*ref = &cntr->ref;
		return &cntr->wait;
	default:
		return NULL;
	}
}

/* True if a CQ has something to read. A peer CQ never has. */
static bool cq_has_news(const struct fab_cq *cq)
{
	return !cq->peer && !fab_cq_empty(cq);
}

/* True if there is something new to read; the set has then seen it. Engine lock held. */
static bool has_news(struct entry *entry)
{
	struct fab_cntr *cntr;
	uint64_t value, err;
	bool news;

	if (entry->fid->fclass == FI_CLASS_CQ)
		return cq_has_news(fab_container(entry->fid, struct fab_cq, cq_fid.fid));
	cntr = fab_container(entry->fid, struct fab_cntr, cntr_fid.fid);
	value = atomic_load(&cntr->value);
	err = atomic_load(&cntr->err);
	news = value != entry->value || err != entry->err;
	entry->value = value;
	entry->err = err;
	return news;
}

/* Make progress for a queue. With tell, also return true if it has something new to read. last is the engine that was
 * driven last, so that several queues on one engine cost one pass. */
static bool poll_look(struct entry *entry, struct fab_engine **last, bool tell)
{
	_Atomic uint32_t *ref;
	struct fab_engine *engine = fab_engine_enter_of(&poll_queue_of(entry->fid, &ref)->engine);
	bool news;

	if (engine != *last)
		fab_engine_run(engine);
	*last = engine;
	news = tell && has_news(entry);
	fab_engine_unlock(engine);
	return news;
}

static int poll_poll(struct fid_poll *fid, void **context, int count)
{
	struct fab_poll *set = fab_container(fid, struct fab_poll, poll_fid);
	struct fab_engine *last = NULL;
	struct entry *entry;
	int found = 0;

	if (count < 0 || (count && !context))
		return -FI_EINVAL;
	pthread_mutex_lock(&set->lock);
	for (size_t i = 0; i < set->cnt && (found < count || !count); i++) {
		entry = &set->entries[set->next];
		set->next = (set->next + 1) % set->cnt;
		if (poll_look(entry, &last, count))
			context[found++] = entry->fid->context;
	}
	pthread_mutex_unlock(&set->lock);
	return found;
}

static size_t poll_find(const struct fab_poll *set, const struct fid *fid)
{
	size_t i = 0;

	while (i < set->cnt && set->entries[i].fid != fid)
		i++;
	return i;
}

static int add_locked(struct fab_poll *set, struct fid *fid, _Atomic uint32_t *ref)
{
	struct entry *entries;

	if (poll_find(set, fid) < set->cnt)
		return -FI_EINVAL;
	entries = realloc(set->entries, (set->cnt + 1) * sizeof(*entries));
	if (!entries)
		return -FI_ENOMEM;
	set->entries = entries;
	entries[set->cnt++] = (struct entry) { .fid = fid };
	atomic_fetch_add(ref, 1);
	return 0;
}

static int del_locked(struct fab_poll *set, struct fid *fid, _Atomic uint32_t *ref)
{
	size_t at = poll_find(set, fid);

	if (at == set->cnt)
		return -FI_EINVAL;
	set->cnt--;
	memmove(&set->entries[at], &set->entries[at + 1], (set->cnt - at) * sizeof(*set->entries));
	set->next = 0;
	atomic_fetch_sub(ref, 1);
	return 0;
}

static int poll_change(struct fid_poll *poll_fid, struct fid *fid, uint64_t flags, const char *call,
		       int (*fn)(struct fab_poll *set, struct fid *fid, _Atomic uint32_t *ref))
{
	struct fab_poll *set = fab_container(poll_fid, struct fab_poll, poll_fid);
	_Atomic uint32_t *ref;
	int ret = -FI_EINVAL;

	if (!flags && poll_queue_of(fid, &ref)) {
		pthread_mutex_lock(&set->lock);
		ret = fn(set, fid, ref);
		pthread_mutex_unlock(&set->lock);
	}
	if (ret == -FI_EINVAL)
		FI_WARN(set->domain->fabric->prov, FI_LOG_CQ, "%s of an object of class %zu, flags 0x%llx; a poll "
			"set holds CQs and counters, each once, without flags\n", call, fid->fclass,
			(unsigned long long) flags);
	return ret;
}

static int poll_add(struct fid_poll *poll_fid, struct fid *fid, uint64_t flags)
{
	return poll_change(poll_fid, fid, flags, "fi_poll_add", add_locked);
}

static int poll_del(struct fid_poll *poll_fid, struct fid *fid, uint64_t flags)
{
	return poll_change(poll_fid, fid, flags, "fi_poll_del", del_locked);
}

/* Queues that are still in the set are removed. */
static int poll_close(struct fid *fid)
{
	struct fab_poll *set = fab_container(fid, struct fab_poll, poll_fid.fid);
	_Atomic uint32_t *ref;

	for (size_t i = 0; i < set->cnt; i++) {
		poll_queue_of(set->entries[i].fid, &ref);
		atomic_fetch_sub(ref, 1);
	}
	free(set->entries);
	pthread_mutex_destroy(&set->lock);
	atomic_fetch_sub(&set->domain->ref, 1);
	free(set);
	return 0;
}

static struct fi_ops poll_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = poll_close,
};

static struct fi_ops_poll poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = poll_poll,
	.poll_add = poll_add,
	.poll_del = poll_del,
};

int fab_poll_open(struct fid_domain *domain_fid, struct fi_poll_attr *attr, struct fid_poll **pollset)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct fab_poll *set;

	if (attr && attr->flags) {
		FI_WARN(domain->fabric->prov, FI_LOG_CQ, "fi_poll_attr.flags is 0x%llx: none are defined\n",
			(unsigned long long) attr->flags);
		return -FI_EINVAL;
	}
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&poll_fid_ops);
	set->poll_fid.fid = (struct fid) { .fclass = FI_CLASS_POLL, .ops = &poll_fid_ops };
	set->poll_fid.ops = &poll_ops;
	set->domain = domain;
	pthread_mutex_init(&set->lock, NULL);
	atomic_fetch_add(&domain->ref, 1);
	*pollset = &set->poll_fid;
	return 0;
}
