/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The data transfer calls, one row each. */
#include "calls.h"

#include <rdma/fi_atomic.h>

#define TAG 0x7a6

/* The memory in as many parts as the call is given. */
static unsigned cut(const struct call *call, const struct transfer *transfer, struct iovec *iov, void **desc)
{
	size_t first = call->iov_cnt > 1 ? transfer->len / 2 : transfer->len;

	iov[0] = (struct iovec) { .iov_base = transfer->mem, .iov_len = first };
	iov[1] = (struct iovec) { .iov_base = transfer->mem + first, .iov_len = transfer->len - first };
	desc[0] = desc[1] = transfer->desc;
	return call->iov_cnt > 1 ? 2 : 1;
}

static uint64_t flags_of(struct func *func, const struct call *call, const struct transfer *transfer)
{
	return transfer->flags | (call->data ? FI_REMOTE_CQ_DATA : 0) |
	       (call->cntr == FI_WRITE ? func_delivery(func) : 0);
}

#define T const struct transfer *t
#define CALL(name) static int name(struct func *func, const struct call *call, T)

CALL(post_send)
{
	(void) call;
	FUNC_POST(func, fi_send(t->ep->ep, t->mem, t->len, t->desc, t->ep->peer, t->op));
	return 0;
}

CALL(post_sendv)
{
	struct iovec iov[2];
	void *desc[2];
	unsigned cnt = cut(call, t, iov, desc);

	FUNC_POST(func, fi_sendv(t->ep->ep, iov, desc, cnt, t->ep->peer, t->op));
	return 0;
}

CALL(post_sendmsg)
{
	struct iovec iov[2];
	void *desc[2];
	struct fi_msg msg = { .msg_iov = iov, .desc = desc, .iov_count = cut(call, t, iov, desc), .addr = t->ep->peer,
			      .context = t->op, .data = t->data };

	FUNC_POST(func, fi_sendmsg(t->ep->ep, &msg, flags_of(func, call, t)));
	return 0;
}

CALL(post_inject)
{
	(void) call;
	FUNC_POST(func, fi_inject(t->ep->ep, t->mem, t->len, t->ep->peer));
	return 0;
}

CALL(post_senddata)
{
	(void) call;
	FUNC_POST(func, fi_senddata(t->ep->ep, t->mem, t->len, t->desc, t->data, t->ep->peer, t->op));
	return 0;
}

CALL(post_injectdata)
{
	(void) call;
	FUNC_POST(func, fi_injectdata(t->ep->ep, t->mem, t->len, t->data, t->ep->peer));
	return 0;
}

CALL(post_tsend)
{
	(void) call;
	FUNC_POST(func, fi_tsend(t->ep->ep, t->mem, t->len, t->desc, t->ep->peer, TAG, t->op));
	return 0;
}

CALL(post_tsendv)
{
	struct iovec iov[2];
	void *desc[2];
	unsigned cnt = cut(call, t, iov, desc);

	FUNC_POST(func, fi_tsendv(t->ep->ep, iov, desc, cnt, t->ep->peer, TAG, t->op));
	return 0;
}

CALL(post_tsendmsg)
{
	struct iovec iov[2];
	void *desc[2];
	struct fi_msg_tagged msg = { .msg_iov = iov, .desc = desc, .iov_count = cut(call, t, iov, desc),
				     .addr = t->ep->peer, .context = t->op, .data = t->data, .tag = TAG };

	FUNC_POST(func, fi_tsendmsg(t->ep->ep, &msg, flags_of(func, call, t)));
	return 0;
}

CALL(post_tinject)
{
	(void) call;
	FUNC_POST(func, fi_tinject(t->ep->ep, t->mem, t->len, t->ep->peer, TAG));
	return 0;
}

CALL(post_tsenddata)
{
	(void) call;
	FUNC_POST(func, fi_tsenddata(t->ep->ep, t->mem, t->len, t->desc, t->data, t->ep->peer, TAG, t->op));
	return 0;
}

CALL(post_tinjectdata)
{
	(void) call;
	FUNC_POST(func, fi_tinjectdata(t->ep->ep, t->mem, t->len, t->data, t->ep->peer, TAG));
	return 0;
}

CALL(post_write)
{
	(void) call;
	FUNC_POST(func, fi_write(t->ep->ep, t->mem, t->len, t->desc, t->ep->peer, t->remote->addr, t->remote->key,
				 t->op));
	return 0;
}

CALL(post_writev)
{
	struct iovec iov[2];
	void *desc[2];
	unsigned cnt = cut(call, t, iov, desc);

	FUNC_POST(func, fi_writev(t->ep->ep, iov, desc, cnt, t->ep->peer, t->remote->addr, t->remote->key, t->op));
	return 0;
}

static int post_rma_msg(struct func *func, const struct call *call, T, bool read)
{
	struct iovec iov[2];
	void *desc[2];
	struct fi_rma_iov rma_iov = { .addr = t->remote->addr, .len = t->len, .key = t->remote->key };
	struct fi_msg_rma msg = { .msg_iov = iov, .desc = desc, .iov_count = cut(call, t, iov, desc),
				  .addr = t->ep->peer,
				  .rma_iov = &rma_iov, .rma_iov_count = 1, .context = t->op, .data = t->data };

	if (read)
		FUNC_POST(func, fi_readmsg(t->ep->ep, &msg, t->flags));
	else
		FUNC_POST(func, fi_writemsg(t->ep->ep, &msg, flags_of(func, call, t)));
	return 0;
}

CALL(post_writemsg)
{
	return post_rma_msg(func, call, t, false);
}

CALL(post_inject_write)
{
	(void) call;
	FUNC_POST(func, fi_inject_write(t->ep->ep, t->mem, t->len, t->ep->peer, t->remote->addr, t->remote->key));
	return 0;
}

CALL(post_writedata)
{
	(void) call;
	FUNC_POST(func, fi_writedata(t->ep->ep, t->mem, t->len, t->desc, t->data, t->ep->peer, t->remote->addr,
				     t->remote->key, t->op));
	return 0;
}

CALL(post_inject_writedata)
{
	(void) call;
	FUNC_POST(func, fi_inject_writedata(t->ep->ep, t->mem, t->len, t->data, t->ep->peer, t->remote->addr,
					    t->remote->key));
	return 0;
}

CALL(post_read)
{
	(void) call;
	FUNC_POST(func, fi_read(t->ep->ep, t->mem, t->len, t->desc, t->ep->peer, t->remote->addr, t->remote->key,
				t->op));
	return 0;
}

CALL(post_readv)
{
	struct iovec iov[2];
	void *desc[2];
	unsigned cnt = cut(call, t, iov, desc);

	FUNC_POST(func, fi_readv(t->ep->ep, iov, desc, cnt, t->ep->peer, t->remote->addr, t->remote->key, t->op));
	return 0;
}

CALL(post_readmsg)
{
	return post_rma_msg(func, call, t, true);
}

CALL(post_atomic)
{
	FUNC_POST(func, fi_atomic(t->ep->ep, t->mem, t->len, t->desc, t->ep->peer, t->remote->addr, t->remote->key,
				  FI_UINT8, call->op, t->op));
	return 0;
}

CALL(post_atomicv)
{
	struct fi_ioc ioc[2] = { { .addr = t->mem, .count = t->len / 2 },
				 { .addr = t->mem + t->len / 2, .count = t->len - t->len / 2 } };
	void *desc[2] = { t->desc, t->desc };

	FUNC_POST(func, fi_atomicv(t->ep->ep, ioc, desc, call->iov_cnt, t->ep->peer, t->remote->addr, t->remote->key,
				   FI_UINT8, call->op, t->op));
	return 0;
}

CALL(post_inject_atomic)
{
	FUNC_POST(func, fi_inject_atomic(t->ep->ep, t->mem, t->len, t->ep->peer, t->remote->addr, t->remote->key,
					 FI_UINT8, call->op));
	return 0;
}

CALL(post_fetch_atomic)
{
	FUNC_POST(func, fi_fetch_atomic(t->ep->ep, t->result, t->len, t->result_desc, t->mem, t->desc, t->ep->peer,
					t->remote->addr, t->remote->key, FI_UINT8, call->op, t->op));
	return 0;
}

/* The target is 0 before: it differs from what is compared with, which is what is written. */
CALL(post_compare_atomic)
{
	FUNC_POST(func, fi_compare_atomic(t->ep->ep, t->mem, t->len, t->desc, t->mem, t->desc, t->result,
					  t->result_desc,
					  t->ep->peer, t->remote->addr, t->remote->key, FI_UINT8, call->op, t->op));
	return 0;
}

const struct call calls[] = {
	{ "send", FI_MSG, FI_SEND, .iov_cnt = 1, .post = post_send },
	{ "sendv", FI_MSG, FI_SEND, .iov_cnt = 2, .post = post_sendv },
	{ "sendmsg", FI_MSG, FI_SEND, .iov_cnt = 2, .data = true, .post = post_sendmsg },
	{ "inject", FI_MSG, FI_SEND, .iov_cnt = 1, .inject = true, .post = post_inject },
	{ "senddata", FI_MSG, FI_SEND, .iov_cnt = 1, .data = true, .post = post_senddata },
	{ "injectdata", FI_MSG, FI_SEND, .iov_cnt = 1, .inject = true, .data = true, .post = post_injectdata },
	{ "tsend", FI_TAGGED, FI_SEND, .iov_cnt = 1, .post = post_tsend },
	{ "tsendv", FI_TAGGED, FI_SEND, .iov_cnt = 2, .post = post_tsendv },
	{ "tsendmsg", FI_TAGGED, FI_SEND, .iov_cnt = 2, .data = true, .post = post_tsendmsg },
	{ "tinject", FI_TAGGED, FI_SEND, .iov_cnt = 1, .inject = true, .post = post_tinject },
	{ "tsenddata", FI_TAGGED, FI_SEND, .iov_cnt = 1, .data = true, .post = post_tsenddata },
	{ "tinjectdata", FI_TAGGED, FI_SEND, .iov_cnt = 1, .inject = true, .data = true, .post = post_tinjectdata },
	{ "write", FI_RMA, FI_WRITE, .iov_cnt = 1, .post = post_write },
	{ "writev", FI_RMA, FI_WRITE, .iov_cnt = 2, .post = post_writev },
	{ "writemsg", FI_RMA, FI_WRITE, .iov_cnt = 2, .post = post_writemsg },
	{ "inject_write", FI_RMA, FI_WRITE, .iov_cnt = 1, .inject = true, .post = post_inject_write },
	{ "writedata", FI_RMA, FI_WRITE, .iov_cnt = 1, .data = true, .post = post_writedata },
	{ "inject_writedata", FI_RMA, FI_WRITE, .iov_cnt = 1, .inject = true, .data = true,
	  .post = post_inject_writedata },
	{ "read", FI_RMA, FI_READ, .iov_cnt = 1, .fetches = true, .post = post_read },
	{ "readv", FI_RMA, FI_READ, .iov_cnt = 2, .fetches = true, .post = post_readv },
	{ "readmsg", FI_RMA, FI_READ, .iov_cnt = 2, .fetches = true, .post = post_readmsg },
	{ "atomic", FI_ATOMIC, FI_WRITE, .iov_cnt = 1, .op = FI_ATOMIC_WRITE, .valid = fi_atomicvalid,
	  .post = post_atomic },
	{ "atomicv", FI_ATOMIC, FI_WRITE, .iov_cnt = 2, .op = FI_ATOMIC_WRITE, .valid = fi_atomicvalid,
	  .post = post_atomicv },
	{ "inject_atomic", FI_ATOMIC, FI_WRITE, .iov_cnt = 1, .inject = true, .op = FI_ATOMIC_WRITE,
	  .valid = fi_atomicvalid, .post = post_inject_atomic },
	{ "fetch_atomic", FI_ATOMIC, FI_READ, .iov_cnt = 1, .fetches = true, .op = FI_ATOMIC_READ,
	  .valid = fi_fetch_atomicvalid, .post = post_fetch_atomic },
	{ "compare_atomic", FI_ATOMIC, FI_READ, .iov_cnt = 1, .op = FI_CSWAP_NE, .valid = fi_compare_atomicvalid,
	  .post = post_compare_atomic },
};
const size_t call_cnt = sizeof(calls) / sizeof(calls[0]);

int call_recv(struct func *func, const struct call *call, const struct transfer *t)
{
	if (call->caps == FI_TAGGED)
		FUNC_POST(func, fi_trecv(t->ep->ep, t->mem, t->len, t->desc, FI_ADDR_UNSPEC, TAG, 0, t->op));
	else
		FUNC_POST(func, fi_recv(t->ep->ep, t->mem, t->len, t->desc, FI_ADDR_UNSPEC, t->op));
	return 0;
}
