/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hardware completion queues, and how an engine reads them (poller.c), also past itself (cq.c).
 */
#ifndef VRB_POLLER_H
#define VRB_POLLER_H

#include "common/queue/queue.h"
#include "verbs/async.h"
#include "verbs/domain.h"

#define VRB_BATCH	32		/* work completions that are polled at a time */

struct vrb_poller;

/* A hardware completion queue. It never overruns, because each user reserves room for all that it can have
 * outstanding. */
struct vrb_hw_cq {
	struct fab_list link;		/* in the poller's list */
	struct vrb_poller *poller;
	struct ibv_cq *cq;
	uint32_t size;			/* entries; this and the next: domain->lock */
	uint32_t room;			/* entries that are not reserved */
	uint32_t user_cnt;		/* domain->lock */
	bool armed;			/* this and the next: engine's lock */
	struct vrb_watch watch;
	struct fab_list eps;		/* struct vrb_ep.on_hw: endpoints that complete here */
	struct ibv_wc wc[VRB_BATCH];	/* result of the latest poll */
	_Atomic bool broken;		/* has failed, and is not polled any more. Set under the engine's lock */
};

/* Reserve cnt entries of a hardware queue that `engine` polls, opening one if need be. 0: the caller calls
 * vrb_hw_cq_put() later; or -FI_E*. No engine lock held. */
int vrb_hw_cq_get(struct vrb_domain *domain, struct fab_engine *engine, uint32_t cnt, struct vrb_hw_cq **hw_cq);
/* Give cnt reserved entries back. No queue pair of this user completes to the queue any more. No engine lock held. */
void vrb_hw_cq_put(struct vrb_domain *domain, struct vrb_hw_cq *hw_cq, uint32_t cnt);
/* Process all work completions that the queue holds now. True if there were any. Engine's lock held. */
bool vrb_hw_cq_poll(struct vrb_hw_cq *hw_cq);
/* The same where completions of an SRQ that was just destroyed may be left, `stale` of them at most. The driver may not
 * know such a completion, and the poll that meets it fails. Lock held. */
void vrb_hw_cq_settle(struct vrb_hw_cq *hw_cq, uint32_t stale);
/* For a read where the engine has several hardware queues (engine->direct.queue is NULL): poll all of them for up to
 * count entries. Returns the number of work completions; -1: the caller makes a pass of the engine instead. Lock
 * held. */
int vrb_poller_look(struct fab_engine *engine, struct fab_cq_taker *taker, size_t count);
/* Move a CM id to the channel of the queue's engine, whose passes handle its events from now on. 0 or -errno, logged.
 * No engine lock held. */
int vrb_hw_cq_take_id(struct vrb_domain *domain, struct vrb_hw_cq *hw_cq, struct rdma_cm_id *id);
/* The alarm that watches of objects which complete to the queue have. Any thread. */
struct vrb_alarm *vrb_hw_cq_alarm(struct vrb_hw_cq *hw_cq);
/* The device of the queue is being removed: end all endpoints of its poller, and complete all their outstanding
 * operations with err (a positive FI_E*) and why (a constant). Idempotent. Lock held. */
void vrb_hw_cq_removed(struct vrb_hw_cq *hw_cq, int err, const char *why);

/* fi_cq_open(3): a queue of prov/common, which is read as cq.c says. 0 or -FI_E*. */
int vrb_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);

#endif
