/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arithmetic of atomics and reductions: which operations a datatype has, and how they change memory. fi_atomic(3).
 *
 * All datatypes have reading, writing, FI_SUM, FI_PROD, FI_DIFF, the logical operations, FI_CSWAP and FI_CSWAP_NE. All
 * but complex numbers have an order: FI_MIN, FI_MAX, FI_CSWAP_LE to FI_CSWAP_GT. Integers also have operations on bits:
 * FI_BOR, FI_BAND, FI_BXOR, FI_MSWAP.
 *
 *   Integers wrap around. Logical operations give 1 or 0; NaN is true.
 *   With NaN every comparison but FI_CSWAP_NE is false, so that FI_MIN and FI_MAX leave the target unchanged.
 *   Floats of 16 and 8 bits are computed exactly and rounded once, to nearest, ties to even. A result that is too large
 *   becomes an infinity; in FI_FLOAT8_E4M3, which has no infinity, it becomes NaN.
 *   Values that are only moved keep every bit (a NaN its payload). The padding bytes of a long double keep those of the
 *   target when a result is stored in it.
 *
 * No state, no locks. Loading, computing and storing an element is not atomic: a caller whose targets several threads
 * can reach holds one lock for all of them.
 */
#ifndef FAB_ATOMIC_H
#define FAB_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <rdma/fi_domain.h>

/* The kind of call: fi_atomic(), fi_fetch_atomic(), fi_compare_atomic(). */
enum fab_atomic_kind {
	FAB_ATOMIC_BASE,
	FAB_ATOMIC_FETCH,
	FAB_ATOMIC_COMPARE,
};

/* Bytes of an element. 0: the datatype is not supported (FI_VOID, unknown values, 128-bit integers where the compiler
 * lacks them). */
size_t fab_atomic_size(enum fi_datatype datatype);

/* True if this kind of call has the operation and the datatype has it, too. datatype and op may be any values. */
bool fab_atomic_valid(enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op);

/*
 * Apply op to cnt elements of target, of any alignment. datatype and op are valid for some kind of call. operand has
 * cnt elements; not read for FI_ATOMIC_READ. compare has cnt elements; read for FI_CSWAP to FI_MSWAP only. An array
 * that is not read may be NULL. result gets the cnt previous elements, unless it is NULL. None of the four may overlap
 * another.
 */
void fab_atomic_do(enum fi_datatype datatype, enum fi_op op, void *target, const void *operand, const void *compare,
		   void *result, size_t cnt);

/* The same for a target that consists of cnt pieces of memory, one after the other; an element may be split between
 * pieces. operand, compare and result are contiguous. */
void fab_atomic_pieces(enum fi_datatype datatype, enum fi_op op, const struct iovec *iov, size_t cnt,
		       const void *operand, const void *compare, void *result);

#endif
