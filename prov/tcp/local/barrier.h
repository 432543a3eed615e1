/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A full barrier: stores before it are seen by others before loads after it are made.
 */
#ifndef TCP_BARRIER_H
#define TCP_BARRIER_H

#include <stdatomic.h>

static inline void tcp_full_barrier(void)
{
#ifdef __SANITIZE_THREAD__
	/* ThreadSanitizer does not know fences; it knows this */
	static _Atomic int common;

	atomic_fetch_add(&common, 0);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif
