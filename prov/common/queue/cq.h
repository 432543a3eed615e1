/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues, fi_cq(3): a ring of struct fab_comp that grows, converted to the application's format when it is
 * read, and a list of errors, each with its place in the order of the ring.
 *
 * A peer CQ (FI_PEER, fi_peer(3)) has nothing to read: each completion written to it goes to its owner, another
 * provider, at once and with the engine's lock held. Its ring is always full, so that writing an entry takes the path
 * for full rings (fab_cq_full()), and only that path tests for a peer CQ.
 *
 * All functions require the lock of the queue's engine (cq->wait.engine), except fab_cq_open(); struct fab_cq_ahead
 * describes another exception. Reading queued entries makes no system call and no progress. A read that finds the queue
 * empty runs a pass, or the provider's replacement for one.
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

/* A command of fi_control() for a layer above, with a pointer to uint64_t: so many nanoseconds it has spent on what
 * strangers (FAB_OPT_STRANGER) have sent through this queue. They wait for that as if it were a turn of theirs. */
#define FAB_CONTROL_STRANGERS_TOOK	0x66616202

#define FAB_CQ_AHEAD	64		/* entries; a power of 2 */

/*
 * For FI_THREAD_FID and FI_THREAD_ENDPOINT with manual progress and no wait object. A read that takes the lock takes
 * out more entries than it returns, so that the next reads need no lock. The application reads a queue from one thread
 * at a time, so other threads (poll sets) read only cnt. Entries here come before all entries and errors in the ring.
 */
struct fab_cq_ahead {
	_Atomic uint32_t cnt;		/* entries from `at` on; written by the reading thread */
	uint32_t at;
	struct fab_comp entry[FAB_CQ_AHEAD];
};

struct fab_cq {
	struct fid_cq cq_fid;
	struct fab_domain *domain;	/* borrowed: open took a reference */
	enum fi_cq_format format;
	bool threshold;			/* FI_CQ_COND_THRESHOLD */
	/* Copy cnt entries from position pos of the ring to buf, in the queue's format. */
	void (*copy)(const struct fab_comp *ring, uint32_t mask, uint32_t pos, uint32_t cnt, void *buf);
	uint32_t head, tail, mask;	/* positions are not reduced to the ring's size; mask + 1 slots */
	struct fab_comp *ring;		/* owned */
	struct fab_cq_ahead *ahead;	/* owned; NULL: no reading ahead */
	struct fid_peer_cq *peer;	/* borrowed: the owner of a peer CQ; NULL: not a peer CQ */
	struct fab_list errs;		/* struct fab_cq_err, each with the ring position before which it is read */
	uint32_t err_cnt;		/* of errs */
	struct fab_list exports;	/* exported forms; private to common/lent */
	uint32_t wake_cnt;		/* the smallest number of entries for which a sleeper waits */
	bool spare_used;
	struct fab_cq_err *spare;	/* owned: an error entry for use without memory */
	struct fab_cq_err *overrun;	/* owned; last in errs for good, once an entry was lost */
	struct fab_cq_err *last_err;	/* owned; read last: its text and err_data stay valid until the next error is
					 * read */
	_Atomic uint32_t ref;		/* counts endpoints, poll sets and exported forms; any thread */
	struct fab_wait wait;		/* .engine guards all members above, except constants and atomics */
};

/* The contents of an error entry. err is a positive FI_E*; fi_cq_strerror() returns the text. */
struct fab_cq_fail {
	int err;
	int prov_errno;			/* positive errno of the cause, or err itself */
	size_t olen;			/* bytes that did not fit (FI_ETRUNC) */
	const char *text;		/* NULL, or a sentence with both addresses; copied, at most 319 bytes */
	const void *err_data;		/* NULL or err_data_len bytes; copied */
	size_t err_data_len;
};

/* The err_data of an error entry without a context, for an operation that its target has refused after it completed
 * (fi_tcp(7)). */
struct fab_cq_late {
	uint64_t addr, len, key;	/* the first of its remote buffers */
	uint64_t peer;			/* the target's fi_addr; of a MSG endpoint, the endpoint's context */
};

/* The domain's fi_cq_open slot. 0 or -FI_E*. */
int fab_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);

/*
 * For a provider with a table of its own, whose read function reads the hardware into the caller's entries. fab_cq_ops
 * has the functions for the rest of that table. The function below is the normal read, for all other cases (arguments,
 * entries in the ring, errors); it takes the lock, and src may be NULL. fab_cq_open() gives other tables to peer CQs
 * and to CQs that read ahead.
 */
extern struct fi_ops_cq fab_cq_ops;
ssize_t fab_cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src);

/* A read that takes successes of its CQ directly, while the queue is empty. Each is the first `size` bytes of a struct
 * fab_comp, and is stored at `to`, where there is room for all that may come. */
struct fab_cq_taker {
	struct fab_cq *cq;		/* NULL: stop, since an error was queued */
	char *to;
	size_t size;
	ssize_t cnt;			/* taken so far */
};

/* Handle a full ring. False: there is room now, and the caller adds comp. True: comp was handled. It was passed to the
 * owner of a peer CQ; or there is no memory, and the CQ is overrun from now on (fi_cq(3)): queued entries can still be
 * read, and FI_EOVERRUN follows them. */
bool fab_cq_full(struct fab_cq *cq, const struct fab_comp *comp);

/* Queue a success. Makes no system call, and allocates only if the ring is full. What is rare gets a copy, so that the
 * compiler can make the entry where it belongs, in the ring. */
static inline __attribute__((always_inline)) void fab_cq_write(struct fab_cq *cq, const struct fab_comp *comp)
{
	if (__builtin_expect(cq->tail - cq->head > cq->mask, 0)) {
		const struct fab_comp copy = *comp;

		if (fab_cq_full(cq, &copy))
			return;
	}
	cq->ring[cq->tail++ & cq->mask] = *comp;
	fab_wait_event(&cq->wait);
}

/* The same, but if taker reads this CQ, give the entry to it. NULL: no taker. */
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

/* Queue an error, in order with the successes. Without memory it uses a reserved entry, without text and data. If that
 * is in use, too, the CQ is overrun, so that no error is lost unnoticed. */
void fab_cq_write_err(struct fab_cq *cq, const struct fab_comp *comp, const struct fab_cq_fail *fail);

/* True if the ring has no entry, and there is no error. */
static inline bool fab_cq_ring_empty(const struct fab_cq *cq)
{
	return cq->head == cq->tail && !cq->err_cnt;
}

/* True if nothing is queued, including errors and entries that were read ahead. */
static inline bool fab_cq_empty(const struct fab_cq *cq)
{
	return fab_cq_ring_empty(cq) &&
	       !(cq->ahead && atomic_load_explicit(&cq->ahead->cnt, memory_order_relaxed));
}

#endif
