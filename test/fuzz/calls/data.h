/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The arguments of a data call, by chance.
 */
#ifndef TEST_FUZZ_CALLS_DATA_H
#define TEST_FUZZ_CALLS_DATA_H

#include "fuzz/calls/steps.h"
#include <rdma/fi_rma.h>
#include <sys/uio.h>

struct args {
	struct obj *ep;
	struct fid_ep *fid;
	struct op *op;
	void *context;			/* the operation's, or NULL */
	fi_addr_t addr;
	uint64_t tag, ignore, data, flags;
	struct iovec iov[PIECES];	/* memory of the operation */
	void *desc[PIECES];
	size_t cnt;
	void *buf;			/* the first piece */
	size_t len;
	uint64_t raddr, key;		/* remote memory: some region, mostly within its bounds */
	struct fi_rma_iov rma[PIECES];
	size_t rma_cnt;
};

/* For a call at some endpoint. False: there is none, or no memory. tx: it sends; flags: those that make sense. */
bool args_draw(struct args *args, bool tx, uint64_t flags);
/* Remote memory, of up to so many pieces. */
void args_draw_remote(struct args *args);
/* The call has returned. inject: the memory is the program's again. */
void args_called(struct args *args, long long ret, bool inject);
/* Some memory of the operation of count elements of size bytes, in pieces. False: there is no more. */
bool args_memory(struct args *args, size_t len);
/* An address of the endpoint's vector, mostly. */
fi_addr_t an_addr(const struct obj *ep);

#endif
