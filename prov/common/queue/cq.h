/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues: a ring of struct fab_comp that grows, converted to the application's format when read, and a
 * list of errors, each with its place in the ring's order. fi_cq(3).
 *
 * A peer CQ (FI_PEER, fi_peer(3)) has nothing to read: each completion written to it goes to its owner, another
 * provider, at once and with the engine's lock held. Its ring is always full, so that writing an entry takes the path
 * for full rings (fab_cq_full()), and only that path tests for a peer CQ.
 *
 * Everything below wants the lock of its engine (cq->wait.engine), except fab_cq_open() and what struct fab_cq_ahead
 * says. Reading entries that are queued makes no system call and no progress; a read that finds nothing runs one pass,
 * or does what a provider has in its place.
 */
#ifndef FAB_CQ_H
#define FAB_CQ_H

#include <string.h>
#include <rdma/fi_eq.h>
#include "common/op/op.h"
#include "common/engine/engine.h"
#include "common/wait/wait.h"

struct fab_domain;
struct fab_cq_err;
struct fid_peer_cq;

#define FAB_CQ_AHEAD	64		/* entries; a power of 2 */

/*
 * FI_THREAD_FID and FI_THREAD_ENDPOINT, manual progress, no wait object: a read that holds the lock takes out more
 * than it was asked for, and the next ones need none. The application reads a queue in one thread at a time, so only
 * cnt is seen by others (poll sets). What is here is before all that is in the ring, errors too.
 */
struct fab_cq_ahead {
	_Atomic uint32_t cnt;		/* entries from `at` on; written by the reader */
	uint32_t at;
	struct fab_comp entry[FAB_CQ_AHEAD];
};

struct fab_cq {
	struct fid_cq cq_fid;
	struct fab_domain *domain;	/* borrowed: open took a reference */
	enum fi_cq_format format;
	bool threshold;			/* FI_CQ_COND_THRESHOLD */
	bool want_src;			/* FI_SOURCE was asked of an endpoint bound here */
	/* Entries cnt from position pos of a ring on, as the format has them, to buf. */
	void (*copy)(const struct fab_comp *ring, uint32_t mask, uint32_t pos, uint32_t cnt, void *buf);
	uint32_t head, tail, mask;	/* ring positions run freely; mask + 1 slots */
	struct fab_comp *ring;		/* owned */
	struct fab_cq_ahead *ahead;	/* owned; NULL: nothing is read ahead */
	struct fid_peer_cq *peer;	/* borrowed from the owner of a peer CQ; NULL: an ordinary one */
	struct fab_list errs;		/* struct fab_cq_err, each with the ring position before which it stands */
	struct fab_list exports;	/* export.c's own: its exported forms */
	uint32_t wake_cnt;		/* entries that the least demanding sleeper waits for */
	bool spare_used;
	struct fab_cq_err *spare;	/* owned: the error entry for when there is no memory */
	struct fab_cq_err *overrun;	/* owned: stands last, for ever, once something was lost; in errs then */
	struct fab_cq_err *last_err;	/* owned: read last; its text and err_data stay valid until the next */
	_Atomic uint32_t ref;		/* endpoints and poll sets that use it; any thread */
	struct fab_wait wait;		/* .engine guards all above but what is fixed at open, or atomic */
};

/* What went wrong, for an error entry. err is a positive FI_E*; the text is what fi_cq_strerror gives. */
struct fab_cq_fail {
	int err;
	int prov_errno;			/* positive errno of the cause, or err itself */
	size_t olen;			/* bytes that did not fit (FI_ETRUNC) */
	const char *text;		/* NULL, or a sentence naming both addresses; copied, at most 319 bytes */
	const void *err_data;		/* NULL or err_data_len bytes; copied */
	size_t err_data_len;
};

/* fi_cq_open: 0 or -FI_E*. Providers use it as the domain's slot directly. */
int fab_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);

/*
 * What a provider needs whose table of calls reads its hardware straight into the caller's entries: the slots of an
 * ordinary CQ, for the rest of its table; and the ordinary read, for whatever is not as it expects (arguments, entries
 * in the ring, errors). Takes the lock; src may be NULL. fab_cq_open() gives other tables to those that are not
 * ordinary: peers' and those that are read ahead.
 */
extern struct fi_ops_cq fab_cq_ops;
ssize_t fab_cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src);

/* A read that takes successes of its CQ as they come, while nothing is queued there: each is the first `size` bytes of
 * a struct fab_comp, at `to`, where there is room for all that can come. */
struct fab_cq_taker {
	struct fab_cq *cq;		/* NULL: no more, as an error has been queued */
	char *to;
	size_t size;
	ssize_t cnt;			/* taken so far */
};

/* The ring is full: make room, and return false; or true: there is nothing left to do. comp has gone to the owner of a
 * peer CQ then, or there is no memory and the CQ is overrun from now on (fi_cq(3)): what is queued can be read, then
 * comes FI_EOVERRUN. */
bool fab_cq_full(struct fab_cq *cq, const struct fab_comp *comp);

/* Queue a success. No system call, no allocation unless the ring is full. */
static inline void fab_cq_write(struct fab_cq *cq, const struct fab_comp *comp)
{
	if (__builtin_expect(cq->tail - cq->head > cq->mask, 0) && fab_cq_full(cq, comp))
		return;
	cq->ring[cq->tail++ & cq->mask] = *comp;
	fab_wait_event(&cq->wait);
}

/* The same, unless it is for this taker. NULL: there is none. */
static inline __attribute__((always_inline))
void fab_cq_give(struct fab_cq *cq, const struct fab_comp *comp, struct fab_cq_taker *taker)
{
	if (!taker || taker->cq != cq) {
		fab_cq_write(cq, comp);
		return;
	}
	memcpy(taker->to, comp, taker->size);
	taker->to += taker->size;
	taker->cnt++;
}

/* Queue an error, in order with the successes. Falls back to a reserved entry, without text and data, when memory is
 * short; when that is taken too, the CQ is overrun: nothing is lost in silence. */
void fab_cq_write_err(struct fab_cq *cq, const struct fab_comp *comp, const struct fab_cq_fail *fail);

/* Nothing in the ring, and no error? */
static inline bool fab_cq_ring_empty(const struct fab_cq *cq)
{
	return cq->head == cq->tail && fab_list_empty(&cq->errs);
}

/* None queued that has not been read, errors and what was read ahead included? */
static inline bool fab_cq_empty(const struct fab_cq *cq)
{
	return fab_cq_ring_empty(cq) &&
	       !(cq->ahead && atomic_load_explicit(&cq->ahead->cnt, memory_order_relaxed));
}

#endif
