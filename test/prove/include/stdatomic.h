/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stands in for the compiler's <stdatomic.h>: Frama-C does not parse _Atomic. One thread is analysed, so each operation
 * is the plain one. Memory that another process writes is made unknown by the program that is analysed.
 */
#ifndef PROVE_STDATOMIC_H
#define PROVE_STDATOMIC_H

typedef int memory_order;
enum { memory_order_relaxed, memory_order_consume, memory_order_acquire, memory_order_release, memory_order_acq_rel,
       memory_order_seq_cst };
typedef _Bool atomic_bool;
typedef int atomic_int;
typedef unsigned int atomic_uint;
typedef unsigned long atomic_ulong;
typedef _Bool atomic_flag;

#define ATOMIC_FLAG_INIT		0
#define atomic_init(at, value)		(*(at) = (value))
#define atomic_load(at)			(*(at))
#define atomic_store(at, value)		((void) (*(at) = (value)))
#define atomic_load_explicit(at, order)			(*(at))
#define atomic_store_explicit(at, value, order)		((void) (*(at) = (value)))
#define atomic_fetch_add(at, n)		((*(at) += (n)) - (n))
#define atomic_fetch_sub(at, n)		((*(at) -= (n)) + (n))
#define atomic_fetch_or(at, n)		(*(at) |= (n))
#define atomic_fetch_add_explicit(at, n, order)		((*(at) += (n)) - (n))
#define atomic_fetch_sub_explicit(at, n, order)		((*(at) -= (n)) + (n))
#define atomic_fetch_or_explicit(at, n, order)		(*(at) |= (n))
#define atomic_fetch_and_explicit(at, n, order)		(*(at) &= (n))
#define atomic_exchange_explicit(at, value, order)	(*(at) = (value))
#define atomic_exchange(at, value)	(*(at) = (value))
#define atomic_compare_exchange_strong_explicit(at, was, value, success, failure) \
	(*(at) == *(was) ? (*(at) = (value), 1) : (*(was) = *(at), 0))
#define atomic_thread_fence(order)	((void) 0)
#define atomic_signal_fence(order)	((void) 0)

#endif
