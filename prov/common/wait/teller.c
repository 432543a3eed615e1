/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread of teller.h. It waits for the descriptor, checks the queue and signals the condition. Then it waits until
 * a read has found the queue empty, so that it does not signal again and again while the application has not read yet.
 */
#include "common/wait/teller.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <rdma/fi_errno.h>
#include "base/forks.h"
#include "base/sock.h"
#include "common/engine/engine.h"

#define LOCK_TRY_NS	10000000	/* wait for the application's mutex so long, then check whether to stop */

struct fab_teller {
	pthread_mutex_t mutex;		/* the application's, with cond */
	pthread_cond_t cond;
	int fd;
	uint32_t forks;			/* fab_fork_cnt: a child of fork(2) has no thread */
	int nudge_fd;			/* eventfd: wakes the thread after a drain or a stop */
	_Atomic bool told;		/* the thread has signalled, and waits for a drain */
	_Atomic bool stop;
	_Atomic uint32_t drains;	/* calls of fab_teller_drained() */
	int (*try)(void *arg);
	void *arg;
	pthread_t thread;
};

static void nudge(struct fab_teller *teller)
{
	const uint64_t one = 1;

	(void) !fab_sock->write(teller->nudge_fd, &one, sizeof(one));
}

void fab_teller_drained(struct fab_teller *teller)
{
	/* in this order; teller_main() reads them in the opposite order */
	atomic_fetch_add(&teller->drains, 1);
	if (atomic_exchange(&teller->told, false))
		nudge(teller);
}

void fab_teller_give(struct fab_teller *teller, struct fi_mutex_cond *out)
{
	out->mutex = &teller->mutex;
	out->cond = &teller->cond;
}

/* Lock the application's mutex. False: the teller must stop; the thread that closes the queue may hold the mutex. */
static bool lock_theirs(struct fab_teller *teller)
{
	struct timespec until;

	do {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOCK_TRY_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (!pthread_mutex_timedlock(&teller->mutex, &until))
			return true;
	} while (!teller->stop);
	return false;
}

/* Wait for nudge_fd; if fd is true, also for the queue's descriptor. */
static void wait(struct fab_teller *teller, bool fd)
{
	struct pollfd fds[] = {
		{ .fd = teller->nudge_fd, .events = POLLIN },
		{ .fd = teller->fd, .events = POLLIN },
	};
	uint64_t cnt;

	fab_sock->poll(fds, fd ? 2 : 1, -1);
	if (fds[0].revents)
		(void) !fab_sock->read(teller->nudge_fd, &cnt, sizeof(cnt));
}

static void *teller_main(void *arg)
{
	struct fab_teller *teller = arg;
	uint32_t drains;

	while (!teller->stop) {
		drains = teller->drains;
		if (!teller->try(teller->arg)) {
			wait(teller, true);
			continue;
		}
		if (!lock_theirs(teller))
			break;
		pthread_cond_broadcast(&teller->cond);
		pthread_mutex_unlock(&teller->mutex);
		teller->told = true;
		if (teller->drains == drains)
			wait(teller, false);
		teller->told = false;
	}
	return NULL;
}

int fab_teller_start(struct fab_teller **out, int fd, int (*try)(void *arg), void *arg)
{
	struct fab_teller *teller = calloc(1, sizeof(*teller));
	int ret;

	if (!teller)
		return -FI_ENOMEM;
	teller->forks = fab_fork_cnt;
	teller->fd = fd;
	teller->try = try;
	teller->arg = arg;
	pthread_mutex_init(&teller->mutex, NULL);
	pthread_cond_init(&teller->cond, NULL);
	teller->nudge_fd = fab_sock->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (teller->nudge_fd < 0) {
		ret = -errno;
		goto free_teller;
	}
	ret = fab_thread_start(&teller->thread, teller_main, teller, "fi-teller");
	if (ret)
		goto close_nudge;
	*out = teller;
	return 0;

close_nudge:
	fab_sock_close(&teller->nudge_fd);
free_teller:
	free(teller);
	return ret;
}

void fab_teller_stop(struct fab_teller *teller)
{
	if (!teller)
		return;
	teller->stop = true;
	if (teller->forks == fab_fork_cnt) {
		nudge(teller);
		pthread_join(teller->thread, NULL);
	}
	fab_sock_close(&teller->nudge_fd);
	pthread_cond_destroy(&teller->cond);
	/* the mutex is not destroyed, since the application may hold it; it has no memory of its own */
	free(teller);
}
