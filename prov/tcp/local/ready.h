/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How an engine learns which of its rings to look at. A page in shared memory has a bit for each ring that somebody
 * writes for this engine. A writer sets the bit of its ring unless it is set. The engine looks at rings whose bit is
 * set, so a look costs the same however many idle rings there are. A few rings are hot: they are looked at in each
 * pass, and keep their bit, so that their writers have nothing to set.
 *
 * The page also says whether a thread may be asleep. The writer that finds this set wakes the engine with a byte on the
 * Unix socket of its connection, and then clears it, unless the engine has gone to sleep anew. A writer that cannot
 * send its byte leaves it for the next one.
 *
 * No lost wake-up: a writer publishes its record, and then reads the bit and `asleep`; the engine clears the bit or
 * sets `asleep`, and then looks at the ring; both with a full barrier in between.
 *
 * Anybody who has the page may set bits: that costs looks. All functions are called with the engine's lock held, except
 * tcp_ready_tell() and tcp_ready_woken().
 */
#ifndef TCP_READY_H
#define TCP_READY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "common/engine/engine.h"
#include "tcp/local/barrier.h"

#define TCP_READY_WORDS	64
#define TCP_READY_MAX	(64 * TCP_READY_WORDS)	/* rings of an engine; others use the Unix socket */
#define TCP_READY_SIZE	4096			/* bytes of the page */

/* Shared, zeroed at first. */
struct tcp_ready_mem {
	_Alignas(64) _Atomic uint32_t asleep;	/* 0: nobody sleeps; otherwise the number of this sleep */
	_Alignas(64) _Atomic uint64_t words;	/* bit n: word[n] may have new bits */
	_Alignas(64) _Atomic uint64_t word[TCP_READY_WORDS];
};

struct tcp_ready;

/* A ring that the engine may have to look at. Embedded; zeroed before. */
struct tcp_near {
	struct tcp_ready *ready;	/* NULL: not added */
	struct fab_list hot;
	uint32_t bit;
	uint32_t looked_pass, found_pass;	/* engine->pass_cnt at the last look, and at the last with something */
	/* Set by a look, for the next ones: the word in the ring that is 0 until there is something. While it is, they
	 * are left out, unless attend is set: there is something else to see to. */
	const _Atomic uint32_t *bell;
	bool attend;
	/* Look at the ring. True if there was something. It may remove this or any other ring. */
	bool (*look)(struct tcp_near *near);
};

/* Add a ring to the engine's page, which is made for the first one. 0: near->bit is its bit, and the caller removes it
 * before the engine ends. -FI_EAGAIN: there are too many; -FI_ENOMEM or another -errno. */
int tcp_ready_add(struct fab_engine *engine, struct tcp_near *near, bool (*look)(struct tcp_near *near));
/* Idempotent. */
void tcp_ready_remove(struct tcp_near *near);
/* The descriptor of the page, to be sent to a peer. It belongs to the engine. */
int tcp_ready_fd(const struct tcp_near *near);
/* There is something else to see to than what the bell tells: looks do not leave the ring out. */
void tcp_ready_attend(struct tcp_near *near);
/* Look at the ring in the next pass. */
void tcp_ready_again(struct tcp_near *near);
/* True if rings of the engine other than this one (NULL: any) have had something in the last passes. */
bool tcp_ready_has_others(const struct fab_engine *engine, const struct tcp_near *near);

/* Tell the engine of this page that there is something in the ring with this bit. Returns 0, or the number of the
 * engine's sleep: the caller must wake it, and then call tcp_ready_woken(). Any thread. */
uint32_t tcp_ready_tell(struct tcp_ready_mem *mem, uint32_t bit);

/* The same, if there is nothing to do but to look: true. False: call tcp_ready_tell(). */
static inline bool tcp_ready_knows(struct tcp_ready_mem *mem, uint32_t bit)
{
	tcp_full_barrier();
	return __builtin_expect((atomic_load_explicit(&mem->word[bit / 64], memory_order_relaxed) >> bit % 64 & 1) &&
				!atomic_load_explicit(&mem->asleep, memory_order_relaxed), 1);
}

/* The engine was woken from this sleep. Any thread. */
static inline void tcp_ready_woken(struct tcp_ready_mem *mem, uint32_t sleep)
{
	atomic_compare_exchange_strong_explicit(&mem->asleep, &sleep, 0, memory_order_relaxed, memory_order_relaxed);
}

#endif
