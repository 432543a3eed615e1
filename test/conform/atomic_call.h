/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One atomic, described once and posted by any of the calls: what the files of the group atomic share.
 */
#ifndef CONFORM_ATOMIC_CALL_H
#define CONFORM_ATOMIC_CALL_H

#include "atomic_model.h"
#include "ops.h"

#define ALL_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

/* The calls of a kind: one place, a vector (here of two pieces), a message, and with inject. */
enum form { ONE, VEC, MSG, INJ };

struct amo {
	enum kind kind;
	enum form form;
	enum fi_datatype type;
	enum fi_op op;
	size_t size;			/* bytes of an element */
	const void *buf, *compare;
	void *result;
	size_t count;
	uint64_t raddr, key;
	const struct fi_rma_ioc *rma;	/* with MSG, in place of raddr and key */
	size_t rma_cnt;
	uint64_t flags;
	void *ctx;
};

/* Post it, driving the test's sides while there is no room: the last call's answer, never -FI_EAGAIN. */
ssize_t amo_ret(struct side *s, const struct amo *a);
#define amo(s, kind_, form_, ...)							\
	CHECK_RET((int) amo_ret(s, &(struct amo) { .kind = kind_, .form = form_, __VA_ARGS__ }), 0)
/* One of 64 bits. */
#define amo_u64(s, kind_, form_, ...)							\
	amo(s, kind_, form_, .type = FI_UINT64, .size = 8, .count = 1, __VA_ARGS__)

/* An endpoint for which atomics and nothing else is asked must do. */
struct pair amo_pair(struct test *t);

#endif
