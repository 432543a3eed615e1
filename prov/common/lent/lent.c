/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exported completion queues and counters. The lock of an inbox is taken after any other lock. The first item in an
 * empty inbox rings its bell; this wakes the engine of the object, which empties the inbox in a pass. A queue gets the
 * engine on which it stays when it is exported.
 */
#include "common/lent/lent_own.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>
#include "base/table.h"
#include "common/domain/domain.h"
#include "common/ops/ops.h"

#define ROOM_FIRST 16			/* items for which an inbox has room at first */

/* A completion that a peer has reported. */
struct item {
	struct fab_comp comp;
	struct fab_cq_fail fail;	/* err is 0: success; err_data is owned */
};

struct inbox {
	struct fab_bell bell;
	struct fab_defer defer;
	struct fab_engine *engine;	/* borrowed: the object's; constant while the inbox is open */
	pthread_mutex_t lock;		/* guards the members below, and those of the struct around the inbox */
	bool rung;			/* the bell was rung, and the inbox was not emptied since */
};

struct cq_export {
	struct fid_peer_cq peer;
	struct inbox inbox;
	struct fab_list link;		/* in cq->exports; engine's lock */
	struct fab_cq *cq;		/* borrowed: has a reference; the same below */
	struct item *item;		/* owned, in order */
	size_t cnt, room;
	bool lost;			/* an item was lost for lack of memory: report it in the queue */
};

struct cntr_export {
	struct fid_peer_cntr peer;
	struct inbox inbox;
	struct fab_cntr *cntr;
	uint64_t incs, errs;		/* not added to the counter yet */
};

int fab_export_check(const struct fi_provider *prov, const struct fi_fid_export *exp, bool is_peer)
{
	if (exp && exp->fid && !exp->flags && !is_peer)
		return 0;
	FI_WARN(prov, FI_LOG_CORE, "fi_export_fid: %s\n", is_peer ? "a peer's object has an owner already" :
		"flags must be 0, and fid must not be NULL");
	return -FI_EINVAL;
}

/* Give an object that will be exported its final engine. 0 or -FI_E*. */
static int settle(struct fab_domain *domain, struct fab_wait *wait)
{
	int ret;

	pthread_mutex_lock(&domain->engines.join_lock);
	ret = fab_queue_settle_alone(domain, wait);
	pthread_mutex_unlock(&domain->engines.join_lock);
	return ret;
}

/* ---- the inbox ---- */

/* 0 or -FI_E*. rung will be called with the engine's lock held. */
static int inbox_open(struct inbox *inbox, struct fab_engine *engine, void (*rung)(struct fab_bell *bell))
{
	int ret;

	pthread_mutex_init(&inbox->lock, NULL);
	inbox->engine = engine;
	fab_engine_lock(engine);
	ret = fab_bell_open(&inbox->bell, engine, rung);
	fab_engine_unlock(engine);
	if (ret)
		pthread_mutex_destroy(&inbox->lock);
	return ret;
}

/* Wake the engine: there is an item. Lock of the inbox held. */
static void knock(struct inbox *inbox)
{
	if (!inbox->rung)
		fab_bell_ring(&inbox->bell);
	inbox->rung = true;
}

/* Engine's lock held. free_it frees the exported form, after the current pass. */
static void inbox_close(struct inbox *inbox, void (*free_it)(struct fab_defer *defer))
{
	fab_bell_close(&inbox->bell);
	inbox->defer.free = free_it;
	fab_engine_defer(inbox->engine, &inbox->defer);
}

/* ---- queues ---- */

static struct cq_export *cq_export_of(struct inbox *inbox)
{
	return fab_container(inbox, struct cq_export, inbox);
}

/* Move all items to the queue. Engine's lock held. */
static void cq_empty(struct cq_export *x)
{
	const struct fab_cq_fail lost = { .err = FI_EOVERRUN, .prov_errno = FI_ENOMEM,
					  .text = "no memory for completions of a peer: some are lost" };
	const struct fab_comp nobody = { .src = FI_ADDR_NOTAVAIL };

	pthread_mutex_lock(&x->inbox.lock);
	x->inbox.rung = false;
	for (size_t i = 0; i < x->cnt; i++) {
		if (!x->item[i].fail.err)
			fab_cq_write(x->cq, &x->item[i].comp);
		else
			fab_cq_write_err(x->cq, &x->item[i].comp, &x->item[i].fail);
		free((void *) x->item[i].fail.err_data);
	}
	x->cnt = 0;
	if (x->lost)
		fab_cq_write_err(x->cq, &nobody, &lost);
	x->lost = false;
	pthread_mutex_unlock(&x->inbox.lock);
}

static void cq_rung(struct fab_bell *bell)
{
	cq_empty(cq_export_of(fab_container(bell, struct inbox, bell)));
}

/* Lock of the inbox held. NULL: no memory. */
static struct item *item_add(struct cq_export *x)
{
	if (fab_grow(&x->item, &x->room, x->cnt, sizeof(*x->item)))
		return NULL;
	return &x->item[x->cnt++];
}

static ssize_t cq_put(struct fid_peer_cq *peer, const struct item *item)
{
	struct cq_export *x = fab_container(peer, struct cq_export, peer);
	struct item *slot;

	pthread_mutex_lock(&x->inbox.lock);
	slot = item_add(x);
	if (slot)
		*slot = *item;
	else
		x->lost = true;
	knock(&x->inbox);
	pthread_mutex_unlock(&x->inbox.lock);
	return slot ? 0 : -FI_ENOMEM;
}

static ssize_t cq_write(struct fid_peer_cq *peer, void *context, uint64_t flags, size_t len, void *buf, uint64_t data,
			uint64_t tag, fi_addr_t src)
{
	return cq_put(peer, &(struct item) { .comp = { context, flags, len, buf, data, tag, src } });
}

static ssize_t cq_writeerr(struct fid_peer_cq *peer, const struct fi_cq_err_entry *err)
{
	struct item item = {
		.comp = { err->op_context, err->flags, err->len, err->buf, err->data, err->tag, err->src_addr },
		.fail = { .err = err->err ? err->err : FI_EOTHER, .prov_errno = err->prov_errno, .olen = err->olen },
	};
	ssize_t ret;

	if (err->err_data && err->err_data_size) {
		item.fail.err_data = malloc(err->err_data_size);
		if (item.fail.err_data) {
			memcpy((void *) item.fail.err_data, err->err_data, err->err_data_size);
			item.fail.err_data_len = err->err_data_size;
		}
	}
	ret = cq_put(peer, &item);
	if (ret)
		free((void *) item.fail.err_data);
	return ret;
}

static void cq_export_free(struct fab_defer *defer)
{
	struct cq_export *x = cq_export_of(fab_container(defer, struct inbox, defer));

	pthread_mutex_destroy(&x->inbox.lock);
	free(x->item);
	free(x);
}

static int cq_export_close(struct fid *fid)
{
	struct cq_export *x = fab_container(fid, struct cq_export, peer.fid);
	struct fab_engine *engine = x->inbox.engine;
	struct fab_cq *cq = x->cq;

	fab_engine_lock(engine);
	cq_empty(x);
	fab_list_remove(&x->link);
	inbox_close(&x->inbox, cq_export_free);
	fab_engine_unlock(engine);
	atomic_fetch_sub(&cq->ref, 1);
	return 0;
}

static struct fi_ops cq_export_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_export_close,
};

static struct fi_ops_cq_owner cq_owner_ops = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = cq_write,
	.writeerr = cq_writeerr,
};

int fab_export_cq(struct fab_cq *cq, struct fi_fid_export *exp)
{
	struct cq_export *x;
	int ret;

	ret = fab_export_check(cq->domain->fabric->prov, exp, cq->peer);
	if (ret)
		return ret;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -FI_ENOMEM;
	x->item = malloc(ROOM_FIRST * sizeof(*x->item));
	if (!x->item) {
		free(x);
		return -FI_ENOMEM;
	}
	x->room = ROOM_FIRST;
	FAB_OPS_FILL(&cq_export_ops);
	x->cq = cq;
	x->peer = (struct fid_peer_cq) { { FI_CLASS_PEER_CQ, exp->context, &cq_export_ops }, &cq_owner_ops };
	ret = settle(cq->domain, &cq->wait);
	if (!ret)
		ret = inbox_open(&x->inbox, cq->wait.engine, cq_rung);
	if (ret) {
		free(x->item);
		free(x);
		return ret;
	}
	fab_engine_lock(cq->wait.engine);
	fab_list_add_tail(&cq->exports, &x->link);
	fab_engine_unlock(cq->wait.engine);
	atomic_fetch_add(&cq->ref, 1);
	*exp->fid = &x->peer.fid;
	return 0;
}

void fab_export_settle(struct fab_cq *cq)
{
	struct fab_list *link;

	fab_list_for_each(&cq->exports, link)
		cq_empty(fab_container(link, struct cq_export, link));
}

/* ---- counters ---- */

/* Add to the counter. Engine's lock held. The inbox's lock is not held meanwhile, since the counter may trigger work
 * that ends in a call of a peer. */
static void cntr_empty(struct cntr_export *x)
{
	uint64_t incs, errs;

	pthread_mutex_lock(&x->inbox.lock);
	x->inbox.rung = false;
	incs = x->incs;
	errs = x->errs;
	x->incs = x->errs = 0;
	pthread_mutex_unlock(&x->inbox.lock);
	if (incs)
		fab_cntr_bump(x->cntr, &x->cntr->value, incs);
	if (errs)
		fab_cntr_bump(x->cntr, &x->cntr->err, errs);
}

static void cntr_rung(struct fab_bell *bell)
{
	cntr_empty(fab_container(bell, struct cntr_export, inbox.bell));
}

static void count(struct cntr_export *x, uint64_t *what)
{
	pthread_mutex_lock(&x->inbox.lock);
	++*what;
	knock(&x->inbox);
	pthread_mutex_unlock(&x->inbox.lock);
}

static void cntr_inc(struct fid_peer_cntr *peer)
{
	struct cntr_export *x = fab_container(peer, struct cntr_export, peer);

	count(x, &x->incs);
}

static void cntr_incerr(struct fid_peer_cntr *peer)
{
	struct cntr_export *x = fab_container(peer, struct cntr_export, peer);

	count(x, &x->errs);
}

static void cntr_export_free(struct fab_defer *defer)
{
	struct cntr_export *x = fab_container(defer, struct cntr_export, inbox.defer);

	pthread_mutex_destroy(&x->inbox.lock);
	free(x);
}

static int cntr_export_close(struct fid *fid)
{
	struct cntr_export *x = fab_container(fid, struct cntr_export, peer.fid);
	struct fab_engine *engine = x->inbox.engine;
	struct fab_cntr *cntr = x->cntr;

	fab_engine_lock(engine);
	cntr_empty(x);
	inbox_close(&x->inbox, cntr_export_free);
	fab_engine_unlock(engine);
	atomic_fetch_sub(&cntr->ref, 1);
	return 0;
}

static struct fi_ops cntr_export_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_export_close,
};

static struct fi_ops_cntr_owner cntr_owner_ops = {
	.size = sizeof(struct fi_ops_cntr_owner),
	.inc = cntr_inc,
	.incerr = cntr_incerr,
};

int fab_export_cntr(struct fab_cntr *cntr, struct fi_fid_export *exp)
{
	struct cntr_export *x;
	int ret;

	ret = fab_export_check(cntr->domain->fabric->prov, exp, cntr->peer);
	if (ret)
		return ret;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&cntr_export_ops);
	x->cntr = cntr;
	x->peer = (struct fid_peer_cntr) { { FI_CLASS_PEER_CNTR, exp->context, &cntr_export_ops }, &cntr_owner_ops };
	ret = settle(cntr->domain, &cntr->wait);
	if (!ret)
		ret = inbox_open(&x->inbox, cntr->wait.engine, cntr_rung);
	if (ret) {
		free(x);
		return ret;
	}
	atomic_fetch_add(&cntr->ref, 1);
	*exp->fid = &x->peer.fid;
	return 0;
}

/* ---- by class ---- */

int fab_lend(struct fid *fid, struct fi_fid_export *exp)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return fab_export_cq(fab_container(fid, struct fab_cq, cq_fid.fid), exp);
	case FI_CLASS_CNTR:
		return fab_export_cntr(fab_container(fid, struct fab_cntr, cntr_fid.fid), exp);
	case FI_CLASS_AV:
		return fab_export_av(fab_container(fid, struct fab_av, av_fid.fid), exp);
	case FI_CLASS_AV_SET:
		return fab_export_av_set(fab_container(fid, struct fab_av_set, set_fid.fid), exp);
	default:
		return -FI_ENOSYS;
	}
}
