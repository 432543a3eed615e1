/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics by each of the calls that there are for them, see atomic_call.h. */
#include "atomic_call.h"

/* Elements at buf, the first one apart from the others. */
struct split {
	struct fi_ioc ioc[2];
	size_t cnt;
};

static struct split split(const struct amo *a, const void *buf)
{
	if (!buf)
		return (struct split) { .cnt = 0 };
	if (a->count < 2)
		return (struct split) { .ioc = { { (void *) buf, a->count } }, .cnt = 1 };
	return (struct split) { .ioc = { { (void *) buf, 1 }, { (char *) buf + a->size, a->count - 1 } }, .cnt = 2 };
}

static ssize_t call_msg(struct side *s, const struct amo *a)
{
	struct split buf = split(a, a->buf), compare = split(a, a->compare), result = split(a, a->result);
	struct fi_rma_ioc rma = { .addr = a->raddr, .count = a->count, .key = a->key };
	struct fi_msg_atomic m = {
		.msg_iov = buf.ioc, .iov_count = buf.cnt, .addr = s->peer, .rma_iov = a->rma ? a->rma : &rma,
		.rma_iov_count = a->rma ? a->rma_cnt : 1, .datatype = a->type, .op = a->op, .context = a->ctx,
	};

	switch (a->kind) {
	case BASE:
		return fi_atomicmsg(s->ep, &m, a->flags);
	case FETCH:
		return fi_fetch_atomicmsg(s->ep, &m, result.ioc, NULL, result.cnt, a->flags);
	default:
		return fi_compare_atomicmsg(s->ep, &m, compare.ioc, NULL, compare.cnt, result.ioc, NULL, result.cnt,
					    a->flags);
	}
}

static ssize_t call_vec(struct side *s, const struct amo *a)
{
	struct split buf = split(a, a->buf), compare = split(a, a->compare), result = split(a, a->result);

	switch (a->kind) {
	case BASE:
		return fi_atomicv(s->ep, buf.ioc, NULL, buf.cnt, s->peer, a->raddr, a->key, a->type, a->op, a->ctx);
	case FETCH:
		return fi_fetch_atomicv(s->ep, buf.ioc, NULL, buf.cnt, result.ioc, NULL, result.cnt, s->peer, a->raddr,
					a->key, a->type, a->op, a->ctx);
	default:
		return fi_compare_atomicv(s->ep, buf.ioc, NULL, buf.cnt, compare.ioc, NULL, compare.cnt, result.ioc,
					  NULL, result.cnt, s->peer, a->raddr, a->key, a->type, a->op, a->ctx);
	}
}

static ssize_t call_one(struct side *s, const struct amo *a)
{
	switch (a->kind) {
	case BASE:
		return fi_atomic(s->ep, a->buf, a->count, NULL, s->peer, a->raddr, a->key, a->type, a->op, a->ctx);
	case FETCH:
		return fi_fetch_atomic(s->ep, a->buf, a->count, NULL, a->result, NULL, s->peer, a->raddr, a->key,
				       a->type, a->op, a->ctx);
	default:
		return fi_compare_atomic(s->ep, a->buf, a->count, NULL, a->compare, NULL, a->result, NULL, s->peer,
					 a->raddr, a->key, a->type, a->op, a->ctx);
	}
}

static ssize_t call(struct side *s, const struct amo *a)
{
	switch (a->form) {
	case ONE:
		return call_one(s, a);
	case VEC:
		return call_vec(s, a);
	case MSG:
		return call_msg(s, a);
	default:
		return fi_inject_atomic(s->ep, a->buf, a->count, s->peer, a->raddr, a->key, a->type, a->op);
	}
}

ssize_t amo_ret(struct side *s, const struct amo *a)
{
	struct wait w = wait_begin();
	ssize_t ret;

	while ((ret = call(s, a)) == -FI_EAGAIN)
		wait_more(s->t, &w, "room for an atomic");
	if (!ret)
		s->tx_posted++;
	return ret;
}

struct pair amo_pair(struct test *t)
{
	struct pair p = pair_open(t, .tx_op_flags = level_delivered());

	CHECK(p.a->info->caps & FI_ATOMIC);
	return p;
}
