/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What fi_atomic(3) says of datatypes and operations, worked out one element at a time and for the tests alone.
 */
#ifndef CONFORM_ATOMIC_MODEL_H
#define CONFORM_ATOMIC_MODEL_H

#include <rdma/fi_atomic.h>

#include "conform.h"

#define ELEMENT_MAX 32			/* bytes */

enum kind { BASE, FETCH, COMPARE, KIND_CNT };

struct datatype {
	const char *name;
	enum fi_datatype type;
	size_t size;			/* bytes of an element */
	/* bytes that count: of a long double not all do; the rest of each half is skipped */
	size_t part, used;
	/* *t becomes what op makes of it with b, and c where it compares; false: this datatype has no such operation */
	bool (*apply)(enum fi_op op, void *t, const void *b, const void *c);
	/* Element i of a series that starts at seed: small numbers, zero and negative ones among them. */
	void (*make)(void *at, unsigned int seed);
};
extern const struct datatype datatypes[];
extern const size_t datatype_cnt;

/* Operations that a kind of call has. */
bool kind_has(enum kind kind, enum fi_op op);
/* Are two elements the same, as far as bytes count? */
bool element_eq(const struct datatype *type, const void *a, const void *b);

#endif
