/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A data operation and its completion, in the form that all providers use (doc/design.md, section 6).
 *
 * libfabric has some sixty data calls. Each fills a struct fab_op on its stack and passes it to one submit function of
 * the provider. When the operation completes, a struct fab_comp has all that a CQ entry or a counter needs.
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
	FAB_OP_CSEND,			/* a message of a collective: tagged and hooked */
	FAB_OP_WRITE,
	FAB_OP_ATOMIC,
	FAB_OP_READ,			/* from here to before RECV: data comes back */
	FAB_OP_FETCH_ATOMIC,		/* fi_fetch_atomic() and fi_compare_atomic() */
	FAB_OP_COLLECTIVE,		/* of an application; appears in completions only */
	FAB_OP_RECV,
	FAB_OP_TRECV,
	FAB_OP_CRECV,			/* receives a FAB_OP_CSEND; addr is its source, independent of the endpoint's
					 * caps */
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
 * The fields of an atomic that struct fab_op lacks. The operands of fi_atomic() are in fab_op.iov. Those of
 * fi_fetch_atomic() and fi_compare_atomic() are here, since fab_op.iov then is the buffer for the result. operand,
 * compare and result have the same number of bytes in all; operand or compare has none if the operation does not use
 * it.
 */
struct fab_call_atomic;
struct fab_amo {
	enum fab_atomic_kind kind;
	enum fi_datatype datatype;
	enum fi_op op;
	uint32_t operand_cnt, compare_cnt;
	const struct iovec *operand;
	const struct iovec *compare;
	const struct fab_call_atomic *call;	/* with the descriptors, during the call; or NULL */
};

/*
 * The arguments of a data call. Everything that it points to belongs to the caller, and is valid only until submit
 * returns. flags are final: the entry point has added the endpoint's op_flags for calls that use them (fi_endpoint(3)).
 * fi_inject*() have FI_INJECT and no_comp set.
 */
struct fab_op {
	enum fab_op_code code;
	bool no_comp;			/* fi_inject*(): success writes no CQ entry (counters still count) */
	bool hooked;			/* context is a struct fab_hook: it is called instead of writing to the CQ */
	bool accepted;			/* accepted from the application earlier: not refused for a full queue */
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

/*
 * Bits of fab_op.flags that no program passes: a buffer of the operation is memory of a device (common/hmem/hmem.h), of
 * the number in the upper bits. The bit is among those for rare cases, so that one test finds it with others.
 */
#define FAB_OP_HMEM		(1ULL << 23)
#define FAB_OP_HMEM_SHIFT	40
#define FAB_OP_HMEM_BITS	(FAB_OP_HMEM | 0xffULL << FAB_OP_HMEM_SHIFT)

/* The flags for buffers of this number; none for the host's. */
static inline uint64_t fab_op_hmem_flags(uint8_t hmem)
{
	return hmem ? FAB_OP_HMEM | (uint64_t) hmem << FAB_OP_HMEM_SHIFT : 0;
}

/* The number in flags that have FAB_OP_HMEM; 0 in others. */
static inline uint8_t fab_op_hmem(uint64_t flags)
{
	return flags & FAB_OP_HMEM ? (uint8_t) (flags >> FAB_OP_HMEM_SHIFT) : 0;
}

/* The result of a function that tries an operation: nothing was done. */
#define FAB_OP_NOT_NOW	1

struct fab_comp;
struct fab_cq_fail;

/* Called when an operation has ended, in place of completion queue and counters: for deferred work and collectives.
 * done() runs with the engine's lock held, inside of sending or parsing, so it must not submit operations. fail is NULL
 * after success. The hook must live until then. */
struct fab_hook {
	void (*done)(struct fab_hook *hook, enum fab_op_code code, const struct fab_comp *comp,
		     const struct fab_cq_fail *fail);
};

/* The total length of iov[0..cnt) in bytes. */
static inline size_t fab_iov_len(const struct iovec *iov, size_t cnt)
{
	size_t len = 0;

	if (__builtin_expect(cnt == 1, 1))
		return iov->iov_len;
	for (size_t i = 0; i < cnt; i++)
		len += iov[i].iov_len;
	return len;
}

/* Copy cnt entries. from may be NULL if cnt is 0; Open MPI passes that. */
static inline void fab_iov_copy(struct iovec *to, const struct iovec *from, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		to[i] = from[i];
}

/*
 * An operation with one local buffer, at most one remote buffer and no struct fab_amo, and all that it points to. An
 * inline function that was given such an operation passes a copy to functions that are not inline, in its rare cases.
 * Then the compiler need not store the original.
 */
struct fab_op_one {
	struct fab_op op;
	struct iovec iov;
	struct fi_rma_iov rma;
	void *desc;
};

/* Make the copy, member by member, so that the compiler sees each by itself. Returns its op, which is valid as long as
 * *one. */
static inline __attribute__((always_inline))
const struct fab_op *fab_op_one(struct fab_op_one *one, const struct fab_op *op)
{
	one->iov.iov_base = op->iov->iov_base;
	one->iov.iov_len = op->iov->iov_len;
	one->desc = *op->desc;
	one->op = (struct fab_op) {
		.code = op->code, .no_comp = op->no_comp, .hooked = op->hooked, .accepted = op->accepted,
		.iov_cnt = 1, .iov = &one->iov, .desc = &one->desc, .addr = op->addr, .tag = op->tag,
		.ignore = op->ignore, .data = op->data, .flags = op->flags, .context = op->context,
	};
	if (op->rma_cnt) {
		one->rma.addr = op->rma->addr;
		one->rma.len = op->rma->len;
		one->rma.key = op->rma->key;
		one->op.rma = &one->rma;
		one->op.rma_cnt = 1;
	}
	return &one->op;
}

/* Copy bytes [at, at + len) of iov to *to. iov has at least at + len bytes. */
void fab_iov_gather(uint8_t *to, const struct iovec *iov, size_t at, size_t len);

/* The values of a completion, for any format of the CQ. */
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
