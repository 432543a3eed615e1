/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See ready.h. The page of an engine exists as long as it has a ring. Its lookup is one of the engine's polls.
 */
#include "tcp/local/ready.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/sock.h"
#include "tcp/local/share.h"

#define HOT_MAX		4
#define QUIET_MAX	1024		/* passes without anything in a hot ring, after which it is not hot any more */
#define SILENCE_MAX	64		/* passes that look at a ring's bell alone, before a look at the ring */
#define LATELY		2		/* passes */
#define ROUNDS_MAX	16		/* looks before a thread sleeps, each of which finds something */

struct tcp_ready {
	struct fab_poll_fn fn;		/* in engine->polls */
	struct fab_attached attached;	/* to the engine */
	struct fab_flush again;		/* there was still something in the last look before a sleep */
	struct fab_engine *engine;
	struct tcp_ready_mem *mem;	/* owned, mapped; NULL: no ring */
	int fd;				/* owned */
	uint32_t cnt;			/* rings */
	uint32_t sleep;			/* number of the last sleep, never 0: mem->asleep meanwhile */
	uint32_t hot_cnt;
	struct fab_list hot;		/* struct tcp_near.hot, the latest first */
	struct tcp_near *near[TCP_READY_MAX];	/* by bit */
};

static const char ready_key;

_Static_assert(sizeof(struct tcp_ready_mem) <= TCP_READY_SIZE, "the page has room");
_Static_assert(HOT_MAX <= FAB_GLANCE_MAX, "a glance takes in all hot rings");

/* ---- looking ---- */

static void ready_clear_bit(struct tcp_near *near)
{
	atomic_fetch_and_explicit(&near->ready->mem->word[near->bit / 64], ~((uint64_t) 1 << near->bit % 64),
				  memory_order_seq_cst);
}

static void ready_unlist(struct tcp_near *near)
{
	if (fab_list_empty(&near->hot))
		return;
	fab_list_remove(&near->hot);
	near->ready->hot_cnt--;
}

/* A ring is not hot any more: its writer sets the bit from now on. What it has written before is taken here, and if a
 * look may not have taken all, later. */
static bool ready_cool(struct tcp_near *near)
{
	ready_unlist(near);
	ready_clear_bit(near);
	tcp_full_barrier();
	if (!near->look(near))
		return false;
	if (near->ready)
		tcp_ready_again(near);
	return true;
}

/* Make a ring hot, whose bit is set, and look at it; the one that was looked at longest ago makes room. */
static bool ready_heat(struct tcp_ready *ready, struct tcp_near *near)
{
	bool found = false;

	if (ready->hot_cnt == HOT_MAX)
		found = ready_cool(fab_container(ready->hot.prev, struct tcp_near, hot));
	if (!near->ready)
		return found;		/* that look has removed it */
	near->looked_pass = near->found_pass = ready->engine->pass_cnt;
	fab_list_add_head(&ready->hot, &near->hot);
	ready->hot_cnt++;
	return near->look(near) || found;
}

/* True if there is nothing to look at in a ring that is hot. */
static inline bool near_is_silent(const struct tcp_near *near)
{
	return !near->attend && !atomic_load_explicit(near->bell, memory_order_relaxed);
}

static bool ready_look_hot(struct tcp_ready *ready)
{
	const uint32_t pass = ready->engine->pass_cnt;
	bool found = false;

	/* a look may remove rings, so the last one is always taken and moved to the front */
	for (uint32_t cnt = ready->hot_cnt; cnt && ready->hot_cnt; cnt--) {
		struct tcp_near *near = fab_container(ready->hot.prev, struct tcp_near, hot);

		if (ready->hot_cnt > 1) {
			fab_list_remove(&near->hot);
			fab_list_add_head(&ready->hot, &near->hot);
		}
		if (near_is_silent(near) && pass - near->looked_pass < SILENCE_MAX)
			continue;
		near->looked_pass = pass;
		if (near->look(near)) {
			near->found_pass = pass;
			found = true;
		} else if (pass - near->found_pass > QUIET_MAX && near->ready) {
			found |= ready_cool(near);
		}
	}
	return found;
}

/* Look at the rings of one word whose bits are new. */
static bool ready_look_word(struct tcp_ready *ready, uint32_t n)
{
	uint64_t bits = atomic_load_explicit(&ready->mem->word[n], memory_order_seq_cst);
	bool found = false;

	for (; bits && ready->cnt; bits &= bits - 1) {
		uint32_t bit = 64 * n + __builtin_ctzll(bits);
		struct tcp_near *near = ready->near[bit];

		if (!near)
			atomic_fetch_and_explicit(&ready->mem->word[n], ~(bits & -bits), memory_order_relaxed);
		else if (fab_list_empty(&near->hot))
			found |= ready_heat(ready, near);
	}
	return found;
}

/* Look at the rings whose bits are new. */
static __attribute__((noinline)) bool ready_look_new(struct tcp_ready *ready)
{
	uint64_t words = atomic_exchange_explicit(&ready->mem->words, 0, memory_order_seq_cst);
	bool found = false;

	for (; words && ready->cnt; words &= words - 1)
		found |= ready_look_word(ready, __builtin_ctzll(words));
	return found;
}

/* Look at all hot rings, and at those whose bits are new. */
static bool ready_look(struct tcp_ready *ready)
{
	bool found = ready_look_hot(ready);

	if (!ready->cnt || __builtin_expect(!atomic_load_explicit(&ready->mem->words, memory_order_relaxed), 1))
		return found;
	return ready_look_new(ready) || found;
}

static void ready_arm(struct tcp_ready *ready)
{
	if (!++ready->sleep)
		ready->sleep = 1;
	atomic_store_explicit(&ready->mem->asleep, ready->sleep, memory_order_relaxed);
}

/* A thread may sleep after this. */
static __attribute__((noinline)) bool ready_look_and_arm(struct tcp_ready *ready)
{
	bool found = false;

	for (int i = 0; i < ROUNDS_MAX && ready->cnt; i++) {
		bool more;

		ready_arm(ready);
		tcp_full_barrier();
		more = ready_look(ready);
		found |= more;
		if (!more && (!ready->cnt || !atomic_load_explicit(&ready->mem->words, memory_order_relaxed)))
			return found;
	}
	if (ready->cnt)
		fab_engine_flush_later(ready->engine, &ready->again);
	return true;
}

static void ready_look_again(struct fab_flush *flush)
{
	(void) flush;			/* the pass looks */
}

static bool ready_poll(struct fab_poll_fn *fn)
{
	struct tcp_ready *ready = fab_container(fn, struct tcp_ready, fn);

	if (__builtin_expect(atomic_load_explicit(&ready->engine->watchers, memory_order_relaxed) != 0, 0))
		return ready_look_and_arm(ready);
	if (__builtin_expect(atomic_load_explicit(&ready->mem->asleep, memory_order_relaxed), 0))
		atomic_store_explicit(&ready->mem->asleep, 0, memory_order_relaxed);
	return ready_look(ready);
}

static bool ready_words(const struct fab_poll_fn *fn, struct fab_engine_glance *glance)
{
	const struct tcp_ready *ready = fab_container(fn, struct tcp_ready, fn);
	struct fab_list *link;

	glance->bits = &ready->mem->words;
	glance->cnt = 0;
	fab_list_for_each(&ready->hot, link) {
		const struct tcp_near *near = fab_container(link, struct tcp_near, hot);

		if (near->attend)
			return false;
		glance->word[glance->cnt++] = near->bell;
	}
	return true;
}

/* ---- rings ---- */

static void ready_free(struct fab_attached *attached)
{
	free(fab_container(attached, struct tcp_ready, attached));
}

/* The engine's, which is made if there is none. NULL: no memory. */
static struct tcp_ready *ready_of(struct fab_engine *engine)
{
	struct fab_attached *attached = fab_engine_attached(engine, &ready_key);
	struct tcp_ready *ready;

	if (attached)
		return fab_container(attached, struct tcp_ready, attached);
	ready = calloc(1, sizeof(*ready));
	if (!ready)
		return NULL;
	ready->engine = engine;
	ready->fn.poll = ready_poll;
	ready->fn.words = ready_words;
	ready->fd = -1;
	fab_list_init(&ready->hot);
	fab_flush_init(&ready->again, ready_look_again);
	ready->attached = (struct fab_attached) { .key = &ready_key, .free = ready_free };
	fab_engine_attach(engine, &ready->attached);
	return ready;
}

/* 0 or -errno. */
static int ready_open(struct tcp_ready *ready)
{
	void *mem;
	int ret = tcp_share_make(TCP_READY_SIZE, &mem, &ready->fd);

	if (ret)
		return ret;
	ready->mem = mem;
	ready_arm(ready);		/* a thread may sleep already */
	fab_poll_add(ready->engine, &ready->fn);
	return 0;
}

static void ready_close(struct tcp_ready *ready)
{
	fab_poll_del(ready->engine, &ready->fn);
	fab_flush_cancel(&ready->again);
	if (!fab_engine_is_inherited(ready->engine))
		tcp_share_unmap(ready->mem, TCP_READY_SIZE);
	ready->mem = NULL;
	fab_sock_close(&ready->fd);
}

static uint32_t ready_free_bit(const struct tcp_ready *ready)
{
	uint32_t bit = 0;

	while (ready->near[bit])
		bit++;
	return bit;
}

int tcp_ready_add(struct fab_engine *engine, struct tcp_near *near, bool (*look)(struct tcp_near *near))
{
	struct tcp_ready *ready = ready_of(engine);
	int ret = 0;

	if (!ready)
		return -FI_ENOMEM;
	if (ready->cnt == TCP_READY_MAX)
		return -FI_EAGAIN;
	if (!ready->cnt)
		ret = ready_open(ready);
	if (ret)
		return ret;
	near->bit = ready_free_bit(ready);
	ready->near[near->bit] = near;
	ready->cnt++;
	near->ready = ready;
	near->look = look;
	near->attend = true;
	fab_list_init(&near->hot);
	return 0;
}

void tcp_ready_remove(struct tcp_near *near)
{
	struct tcp_ready *ready = near->ready;

	if (!ready)
		return;
	ready_unlist(near);
	if (!fab_engine_is_inherited(ready->engine))
		ready_clear_bit(near);
	ready->near[near->bit] = NULL;
	near->ready = NULL;
	fab_engine_no_glance(ready->engine);
	if (!--ready->cnt)
		ready_close(ready);
}

int tcp_ready_fd(const struct tcp_near *near)
{
	return near->ready->fd;
}

uint32_t tcp_ready_tell(struct tcp_ready_mem *mem, uint32_t bit)
{
	const uint64_t mask = (uint64_t) 1 << bit % 64;
	_Atomic uint64_t *word = &mem->word[bit / 64];

	tcp_full_barrier();
	if (!(atomic_load_explicit(word, memory_order_relaxed) & mask)) {
		atomic_fetch_or_explicit(word, mask, memory_order_relaxed);
		atomic_fetch_or_explicit(&mem->words, (uint64_t) 1 << bit / 64, memory_order_seq_cst);
		tcp_full_barrier();
	}
	return atomic_load_explicit(&mem->asleep, memory_order_relaxed);
}

void tcp_ready_attend(struct tcp_near *near)
{
	near->attend = true;
	fab_engine_no_glance(near->ready->engine);
}

void tcp_ready_again(struct tcp_near *near)
{
	struct tcp_ready_mem *mem = near->ready->mem;

	tcp_ready_attend(near);
	/* for a thread that sleeps */
	fab_engine_flush_later(near->ready->engine, &near->ready->again);
	if (!fab_list_empty(&near->hot))
		return;
	atomic_fetch_or_explicit(&mem->word[near->bit / 64], (uint64_t) 1 << near->bit % 64, memory_order_relaxed);
	atomic_fetch_or_explicit(&mem->words, (uint64_t) 1 << near->bit / 64, memory_order_seq_cst);
}

bool tcp_ready_has_others(const struct fab_engine *engine, const struct tcp_near *near)
{
	const struct fab_attached *attached = fab_engine_attached(engine, &ready_key);
	const struct fab_list *link;

	if (!attached)
		return false;
	fab_list_for_each(&fab_container(attached, struct tcp_ready, attached)->hot, link) {
		const struct tcp_near *other = fab_container(link, struct tcp_near, hot);

		if (other != near && engine->pass_cnt - other->found_pass <= LATELY)
			return true;
	}
	return false;
}
