/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every data transfer call by its name, in the shape that a sweep needs: one transfer, which leaves a pattern in memory
 * that one of the ends checks. Atomics write, or read, bytes.
 */
#ifndef FABTESTS_CALLS_H
#define FABTESTS_CALLS_H

#include "func.h"

/* One transfer. All is borrowed. */
struct transfer {
	struct func_ep *ep;
	char *mem;                      /* what is sent or written, or where what is read goes */
	size_t len;
	void *desc;
	char *result;                   /* of fetching atomics: also `len` bytes */
	void *result_desc;
	const struct func_region *remote;       /* RMA and atomics: where */
	uint64_t flags;                 /* for the calls that have them: FI_COMPLETION, or nothing */
	uint64_t data;                  /* for the peer's completion, where the call has it */
	struct func_op *op;
};

struct call {
	const char *name;               /* without fi_ */
	uint64_t caps;                  /* FI_MSG, FI_TAGGED, FI_RMA or FI_ATOMIC */
	uint64_t cntr;                  /* FI_SEND, FI_WRITE or FI_READ: what counts it */
	bool inject;                    /* makes no completion: the memory is ours again at once */
	bool data;                      /* carries data for the peer's completion */
	bool fetches;                   /* what is checked arrives at the caller */
	unsigned iov_cnt;               /* parts that the memory is cut into */
	enum fi_op op;                  /* of atomics */
	int (*valid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count);  /* or NULL */
	int (*post)(struct func *func, const struct call *call, const struct transfer *transfer);      /* 0 or -FI_* */
};

extern const struct call calls[];
extern const size_t call_cnt;

/* Post a receive for a message of any of the calls. */
int call_recv(struct func *func, const struct call *call, const struct transfer *transfer);

#endif /* FABTESTS_CALLS_H */
