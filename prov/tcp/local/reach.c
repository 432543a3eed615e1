/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See reach.h. Windows that were read are kept while the generation of the permit is the same; so is the knowledge that
 * a key has none.
 */
#include "tcp/local/reach.h"

#include <errno.h>
#include <stdlib.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "tcp/local/barrier.h"
#include "tcp/params/params.h"

#define KNOWN_CNT	16		/* windows that are kept; a power of 2 */
#define FRESH_NS	100000		/* the cookie need not be read again so soon */
#define TRIES		3		/* of an access, if what it needs does not stay fresh for so long */

/* What is known of a key. */
struct known {
	uint64_t gen;			/* of the permit when it was read; 0: nothing */
	uint64_t read_ns;
	uint32_t slot;			/* of the window in the table, from 1; 0: the key has none */
	uint64_t key;			/* also without window */
	struct tcp_window window;
};

struct tcp_reach_state {
	struct tcp_reader reader;
	struct known known[KNOWN_CNT];
};

/* True if memory of the peer from at on, of len bytes, has addresses that this process can name. */
static bool can_name(uint64_t at, uint64_t len)
{
	return at + len >= at && (uintptr_t) at == at && (uintptr_t) (at + len) == at + len;
}

/* NULL: no memory, or the peer has wider addresses. */
static struct tcp_reach_state *reach_state(struct tcp_reach *reach)
{
	struct tcp_reach_state *state = reach->state;

	if (state)
		return state;
	if (!can_name(reach->permit->table, sizeof(struct tcp_window_table)))
		return NULL;
	state = reach->state = calloc(1, sizeof(*state));
	if (state)
		state->reader = (struct tcp_reader) {
			.pid = reach->pid, .at = (struct tcp_cookie *) (uintptr_t) reach->permit->table,
			.cookie = reach->permit->cookie,
		};
	return state;
}

/* Read the windows of a key. 0 or -errno. */
static int reach_learn(struct tcp_reach_state *state, struct known *known, uint64_t key, uint64_t gen)
{
	uint32_t place = tcp_window_place(key);
	struct tcp_window window[TCP_WINDOW_PROBE];
	uintptr_t at = (uintptr_t) state->reader.at + offsetof(struct tcp_window_table, window) +
		       place * sizeof(*window);
	struct iovec to[2] = { { window, sizeof(window) } }, from[2] = { { (void *) at, sizeof(window) } };
	uint64_t now_ns = fab_now_ns();
	int ret;

	*known = (struct known) { .gen = 0 };
	ret = tcp_reader_read(&state->reader, to, 1, from, 1, sizeof(window));
	if (ret)
		return ret;
	*known = (struct known) { .gen = gen, .read_ns = now_ns, .key = key };
	for (uint32_t i = 0; i < TCP_WINDOW_PROBE; i++) {
		if (!window[i].number || window[i].key != key || window[i].check != tcp_window_check(&window[i]))
			continue;
		known->slot = place + i + 1;
		known->window = window[i];
	}
	return 0;
}

/* True if the cookie was read recently enough for this access. A read reads it by itself. */
static bool is_fresh(const struct known *known, const struct tcp_reach_access *access)
{
	return !access->write || fab_now_ns() - known->read_ns <= FRESH_NS;
}

/* What is known of the window for this access, as of this generation. 0: *known. -EAGAIN, or another -errno. */
static int reach_find(struct tcp_reach *reach, const struct tcp_reach_access *access, uint64_t gen,
		      const struct known **found)
{
	struct tcp_reach_state *state = reach_state(reach);
	struct known *known;
	int ret = 0;

	if (!state)
		return -EAGAIN;
	known = &state->known[fab_mix64(access->key) & (KNOWN_CNT - 1)];
	if (known->gen != gen || known->key != access->key ||
	    (known->slot && !is_fresh(known, access)))
		ret = reach_learn(state, known, access->key, gen);
	*found = known;
	return ret;
}

/* Verify an access, as fab_mr_verify() does. */
static bool window_permits(const struct tcp_window *window, const struct tcp_reach_access *access)
{
	uint64_t offset = access->addr - window->base;

	return (window->access & (access->write ? FI_REMOTE_WRITE : FI_REMOTE_READ)) && access->addr >= window->base &&
	       offset <= window->len && access->len <= window->len - offset &&
	       can_name(window->at + offset, access->len);
}

/* Copy. 0 or -errno. */
static int reach_transfer(const struct tcp_reader *reader, const struct tcp_window *window,
			  const struct tcp_reach_access *access)
{
	void *at = (void *) (uintptr_t) (window->at + (access->addr - window->base));
	struct iovec to[TCP_IOV_LIMIT + 1], remote[2] = { { at, access->len } };
	ssize_t n;

	if (!access->write) {
		for (size_t i = 0; i < access->iov_cnt; i++)
			to[i] = access->iov[i];
		return tcp_reader_read(reader, to, access->iov_cnt, remote, 1, access->len);
	}
	n = fab_sock->process_vm_writev(reader->pid, access->iov, access->iov_cnt, remote, 1, 0);
	if (n < 0)
		return -errno;
	return (uint64_t) n == access->len ? 0 : -EFAULT;
}

/* Copy while the target waits for us, if the window is still what is known of it. 0; -EAGAIN; -ESTALE: the cookie has
 * to be read again; or another -errno. */
static int reach_hold(struct tcp_reach *reach, const struct known *known, const struct tcp_reach_access *access)
{
	int ret = -EAGAIN;

	atomic_store_explicit(reach->busy, known->slot, memory_order_relaxed);
	tcp_full_barrier();
	if (atomic_load_explicit(&reach->permit->gen, memory_order_acquire) == known->gen)
		ret = is_fresh(known, access) ? reach_transfer(&reach->state->reader, &known->window, access) : -ESTALE;
	atomic_store_explicit(reach->busy, 0, memory_order_release);
	return ret;
}

/* Once. 0; -EAGAIN; -ESTALE as of reach_hold(); or another -errno. */
static int reach_try(struct tcp_reach *reach, const struct tcp_reach_access *access)
{
	uint64_t gen = atomic_load_explicit(&reach->permit->gen, memory_order_acquire);
	const struct known *known;
	int ret;

	if (!gen)
		return -EAGAIN;
	ret = reach_find(reach, access, gen, &known);
	if (ret)
		return ret;
	return known->slot && window_permits(&known->window, access) ? reach_hold(reach, known, access) : -EAGAIN;
}

int tcp_reach_copy(struct tcp_reach *reach, const struct tcp_reach_access *access)
{
	int ret = -ESTALE;

	if (reach->off || !reach->permit)
		return -EAGAIN;
	for (int i = 0; i < TRIES && ret == -ESTALE; i++)
		ret = reach_try(reach, access);
	/* of memory that is not valid, the frame says more */
	if (ret == -EFAULT || ret == -ESTALE)
		ret = -EAGAIN;
	reach->off = ret && ret != -EAGAIN;
	return ret;
}

void tcp_reach_fini(struct tcp_reach *reach)
{
	free(reach->state);
	reach->state = NULL;
}
