/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arithmetic of atomics and reductions: which operation a datatype has, and doing it to memory. fi_atomic(3).
 *
 * What is defined for whom, beside reading, writing, FI_SUM, FI_PROD, FI_DIFF, the logical operations, FI_CSWAP and
 * FI_CSWAP_NE that all have: an order (FI_MIN, FI_MAX, FI_CSWAP_LE to FI_CSWAP_GT) for all but complex numbers; bits
 * (FI_BOR, FI_BAND, FI_BXOR, FI_MSWAP) for integers.
 *
 *   Integers wrap around. Logical operations give 1 or 0; NaN is true.
 *   With NaN every comparison but FI_CSWAP_NE is false, so that FI_MIN and FI_MAX leave the target alone.
 *   The 16 and 8-bit floats are computed exactly and rounded once, to nearest, ties to even. What is too large becomes
 *   an infinity, and NaN in FI_FLOAT8_E4M3, which has none.
 *   Values that are only moved keep every bit (a NaN its payload); bytes of a long double that hold no number stay
 *   those of the target when a sum is stored in it.
 *
 * No state, no locks. An element is loaded, computed and stored in plain steps: whoever lets several threads reach the
 * same target holds one lock for all of them.
 */
#ifndef FAB_ATOMIC_H
#define FAB_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <rdma/fi_domain.h>

/* Which call it is: fi_atomic(), fi_fetch_atomic(), fi_compare_atomic(). */
enum fab_atomic_kind {
	FAB_ATOMIC_BASE,
	FAB_ATOMIC_FETCH,
	FAB_ATOMIC_COMPARE,
};

/* Bytes of an element; 0: there are no such elements here (FI_VOID, numbers that are no datatype, 128-bit integers
 * where the compiler lacks them). */
size_t fab_atomic_size(enum fi_datatype datatype);

/* Does this kind of call have the operation, and the datatype too? Any number may be asked about. */
bool fab_atomic_valid(enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op);

/*
 * Do op to cnt elements of target, of any alignment. The pair is valid for some kind of call. operand: cnt elements,
 * not looked at for FI_ATOMIC_READ; compare: cnt elements, not looked at but for FI_CSWAP to FI_MSWAP; result: where
 * cnt elements go as they were before, or NULL. What is not looked at may be NULL. None of the four overlaps another.
 */
void fab_atomic_do(enum fi_datatype datatype, enum fi_op op, void *target, const void *operand, const void *compare,
		   void *result, size_t cnt);

/* The same to elements that lie one behind the other in cnt pieces of memory, of which one may hold a part of an
 * element only; operand, compare and result are in one piece each. */
void fab_atomic_pieces(enum fi_datatype datatype, enum fi_op op, const struct iovec *iov, size_t cnt,
		       const void *operand, const void *compare, void *result);

#endif
