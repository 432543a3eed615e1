/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One data operation and its completion, as every provider passes them around (doc/design.md, section 6).
 *
 * libfabric has some sixty data calls; each fills a struct fab_op on its stack and hands it to one submit function.
 * Whatever outlives the call keeps a struct fab_comp: all that a CQ entry or a counter will need.
 */
#ifndef FAB_OP_H
#define FAB_OP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include <rdma/fabric.h>
#include <rdma/fi_rma.h>
#include "common/op/atomic.h"

enum fab_op_code {
	FAB_OP_SEND,
	FAB_OP_TSEND,
	FAB_OP_CSEND,			/* a message within a collective, tagged, hooked */
	FAB_OP_WRITE,
	FAB_OP_ATOMIC,
	FAB_OP_READ,			/* from here to RECV: data comes back */
	FAB_OP_FETCH_ATOMIC,		/* fetching and comparing ones */
	FAB_OP_COLLECTIVE,		/* of an application; appears in completions only */
	FAB_OP_RECV,
	FAB_OP_TRECV,
	FAB_OP_CRECV,			/* likewise; addr is its source whatever the endpoint's capabilities */
	FAB_OP_REMOTE_WRITE,		/* at the target; appears in completions only */
	FAB_OP_REMOTE_READ,		/* likewise */
	FAB_OP_REMOTE_ATOMIC,		/* likewise */
	FAB_OP_REMOTE_FETCH_ATOMIC,	/* likewise */
	FAB_OP_MAX
};

/* Which of an endpoint's counters an operation adds to: the bits of fi_ep_bind(3), as an index. */
enum fab_cntr_slot {
	FAB_CNTR_SEND,
	FAB_CNTR_RECV,
	FAB_CNTR_READ,
	FAB_CNTR_WRITE,
	FAB_CNTR_REMOTE_READ,
	FAB_CNTR_REMOTE_WRITE,
	FAB_CNTR_MAX
};

/* Facts about an operation, by code: FI_* completion flags (fi_cq(3)) and the counter that it adds to. */
struct fab_op_desc {
	const char *name;		/* for messages: "tagged send" */
	uint64_t cq_flags;		/* FI_SEND | FI_TAGGED ... */
	enum fab_cntr_slot cntr;
};
extern const struct fab_op_desc fab_op_desc[FAB_OP_MAX];

/*
 * What an atomic has beside. Operands of fetching and comparing ones are here, since struct fab_op.iov is where the
 * result goes; of the others they are there. Each has the same bytes in all, or none where the operation does not look.
 */
struct fab_amo {
	enum fab_atomic_kind kind;
	enum fi_datatype datatype;
	enum fi_op op;
	uint32_t operand_cnt, compare_cnt;
	const struct iovec *operand;
	const struct iovec *compare;
};

/*
 * A call's arguments in one form. Everything that it points to belongs to the caller and is gone when submit returns.
 * flags are final: the entry point has merged the endpoint's op_flags for the calls that use them (fi_endpoint(3)),
 * and fi_inject*() come as FI_INJECT with no_comp set.
 */
struct fab_op {
	enum fab_op_code code;
	bool no_comp;			/* fi_inject*(): success writes no CQ entry (counters still count) */
	bool hooked;			/* context is a struct fab_hook, which hears of the end; nobody else does */
	bool accepted;			/* taken from the application before: the size of the queue does not bound it */
	uint32_t iov_cnt;
	uint32_t rma_cnt;
	const struct iovec *iov;
	void **desc;			/* one per iov, or NULL */
	const struct fi_rma_iov *rma;	/* rma_cnt entries: write, read, atomics */
	const struct fab_amo *amo;	/* atomics */
	fi_addr_t addr;			/* destination, or source of a directed receive; FI_ADDR_UNSPEC if none */
	uint64_t tag;
	uint64_t ignore;
	uint64_t data;			/* with FI_REMOTE_CQ_DATA */
	uint64_t flags;
	void *context;
};

struct fab_comp;
struct fab_cq_fail;

/* Who is told how an operation has ended, in place of queue and counters: deferred work, collectives. Engine lock held,
 * in the middle of sending or parsing: nothing is submitted from in here. fail is NULL after a success. The hook is the
 * operation's until then. */
struct fab_hook {
	void (*done)(struct fab_hook *hook, enum fab_op_code code, const struct fab_comp *comp,
		     const struct fab_cq_fail *fail);
};

/* Bytes that iov[0..cnt) describe. */
static inline size_t fab_iov_len(const struct iovec *iov, size_t cnt)
{
	size_t len = 0;

	for (size_t i = 0; i < cnt; i++)
		len += iov[i].iov_len;
	return len;
}

/* Copy cnt entries; from may be NULL where there are none, as Open MPI has it. */
static inline void fab_iov_copy(struct iovec *to, const struct iovec *from, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		to[i] = from[i];
}

/* What a completion says, whatever the format of the CQ. */
struct fab_comp {
	void *context;
	uint64_t flags;			/* FI_* of fi_cq(3) */
	size_t len;
	void *buf;			/* receive buffer with FI_MULTI_RECV, otherwise NULL or the buffer */
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;			/* FI_ADDR_NOTAVAIL if unknown or not asked for */
};

#endif
