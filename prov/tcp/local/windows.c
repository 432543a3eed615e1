/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See windows.h. The table is made when there are a region that may have a window and a peer that may use it.
 *
 *   region:  listed -> with a slot, if the table has room -> withdrawn
 *   stream:  joined -> with a permit, once there is a table -> left -> released, or lingers while its peer is busy
 */
#include "tcp/local/windows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/hmac.h"
#include "base/sock.h"
#include "tcp/local/barrier.h"
#include "tcp/params/params.h"

#define LINGER_MAX	64		/* of a domain: streams that linger. With so many, others get no permit, and
					 * those that have one keep no socket */
#define WAIT_MS		1000		/* for a peer that is busy with a region to be closed, and was stopped */
#define WAIT_LONG_MS	10000		/* for one that was not: it has too little of the processor */
#define STATE_MS	100		/* between two looks whether it was stopped */
#define YIELD_CNT	100		/* looks at the beginning of a wait that only yield the processor ... */
#define PAUSE_NS	50000		/* ... and the time between later ones */

struct tcp_windows {
	pid_t owner;			/* the process that has opened the domain; constant */
	pthread_mutex_t lock;		/* guards all of it; the lock of an engine may be held */
	struct fab_list regions;	/* struct fab_mr.watched.link: those that may have a window */
	struct fab_list visitors;	/* struct tcp_visitor.link */
	struct tcp_window_table *table;	/* owned; NULL: not made */
	uint32_t lingering;		/* of them, those that linger */
	uint64_t number;		/* of the last window */
};

uint32_t tcp_window_place(uint64_t key)
{
	return fab_mix64(key) % TCP_WINDOW_CNT;
}

uint64_t tcp_window_check(const struct tcp_window *window)
{
	uint64_t check = fab_mix64(window->number);

	check = fab_mix64(check ^ window->key);
	check = fab_mix64(check ^ window->base);
	check = fab_mix64(check ^ window->len);
	check = fab_mix64(check ^ window->at);
	return fab_mix64(check ^ window->access);
}

/* ---- generations ---- */

/* The table has changed: what a peer knows of it is not valid any more. */
static void visitor_tell(struct tcp_visitor *visitor)
{
	if (visitor->gen && !visitor->left)
		atomic_store_explicit(&visitor->permit->gen, ++visitor->gen, memory_order_release);
}

/* The same for all; they see it before we look whether they are busy. */
static void windows_tell(struct tcp_windows *windows)
{
	struct fab_list *link;

	fab_list_for_each(&windows->visitors, link)
		visitor_tell(fab_container(link, struct tcp_visitor, link));
	tcp_full_barrier();
}

static void visitor_permit(struct tcp_windows *windows, struct tcp_visitor *visitor)
{
	if (visitor->left)
		return;
	visitor->permit->table = (uintptr_t) windows->table;
	visitor->permit->cookie = windows->table->cookie;
	visitor->gen = 1;
	atomic_store_explicit(&visitor->permit->gen, visitor->gen, memory_order_release);
}

/* ---- who is busy ---- */

/* True if the process has ended: none of its threads is in a system call any more. */
static bool process_has_ended(pid_t pid)
{
	struct pollfd poll = { .fd = fab_sock->pidfd_open(pid), .events = POLLIN };
	bool ended;

	if (poll.fd < 0)
		return errno == ESRCH || (kill(pid, 0) && errno == ESRCH);
	ended = fab_sock->poll(&poll, 1, 0) == 1;
	fab_sock_close(&poll.fd);
	return ended;
}

/* True if the peer has closed the socket of its stream. It does so under the lock that it copies under. If it ends, or
 * calls exec(2), the kernel does so after all its threads have left their system calls. */
static bool visitor_has_closed(const struct tcp_visitor *visitor)
{
	struct pollfd poll = { .fd = visitor->fd };

	return visitor->fd >= 0 && fab_sock->poll(&poll, 1, 0) == 1 && (poll.revents & POLLHUP);
}

/* True if the peer accesses the window in this slot, or any if it is 0. ask: look whether it is still there. */
static bool visitor_is_busy(struct tcp_visitor *visitor, uint32_t slot, bool ask)
{
	uint32_t busy = visitor->gen ? atomic_load_explicit(visitor->busy, memory_order_acquire) : 0;

	if (!busy || (slot && busy != slot))
		return false;
	/* a child of the peer may have the socket, and another process the peer's number */
	if (!ask || (!visitor_has_closed(visitor) && !process_has_ended(visitor->pid)))
		return true;
	atomic_store_explicit(visitor->busy, 0, memory_order_relaxed);
	return false;
}

static void visitor_remove(struct tcp_visitor *visitor)
{
	fab_list_remove(&visitor->link);
	fab_sock_close(&visitor->fd);
}

/* Free the streams that have ended, and whose peers are not busy any more. */
static void windows_sweep(struct tcp_windows *windows)
{
	struct fab_list *link, *next;

	if (!windows->lingering)
		return;
	fab_list_for_each_safe(&windows->visitors, link, next) {
		struct tcp_visitor *visitor = fab_container(link, struct tcp_visitor, link);

		if (!visitor->lingers || visitor_is_busy(visitor, 0, true))
			continue;
		visitor_remove(visitor);
		windows->lingering--;
		visitor->free(visitor);
	}
}

/* ---- windows ---- */

/* Give a region a window, if there is a free one for its key. */
static void window_open(struct tcp_windows *windows, struct fab_mr *mr)
{
	uint32_t place = tcp_window_place(mr->mr_fid.key), i = 0;
	struct tcp_window *window = &windows->table->window[place];

	while (i < TCP_WINDOW_PROBE && window[i].number)
		i++;
	if (i == TCP_WINDOW_PROBE)
		return;
	window[i] = (struct tcp_window) {
		.number = ++windows->number, .key = mr->mr_fid.key, .base = mr->base, .len = mr->len,
		.at = (uintptr_t) mr->iov[0].iov_base, .access = mr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE),
	};
	window[i].check = tcp_window_check(&window[i]);
	mr->watched.slot = place + i + 1;
}

/* Make the table, for the regions that are there. */
static void windows_make_table(struct tcp_windows *windows)
{
	struct fab_list *link;

	windows->table = calloc(1, sizeof(*windows->table));
	if (!windows->table)
		return;
	if (fab_nonce(&windows->table->cookie, sizeof(windows->table->cookie))) {
		free(windows->table);
		windows->table = NULL;
		return;
	}
	fab_list_for_each(&windows->regions, link)
		window_open(windows, fab_container(link, struct fab_mr, watched.link));
	fab_list_for_each(&windows->visitors, link)
		visitor_permit(windows, fab_container(link, struct tcp_visitor, link));
}

/* True if an access to the region needs nothing of us. */
static bool region_may_open(const struct fab_mr *mr)
{
	return mr->iov_cnt == 1 && mr->len >= TCP_WINDOW_MIN && !mr->auth_key && !mr->hmem &&
	       (mr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE));
}

/* True in a child of fork(2). It has no shared memory, and peers do not reach its regions. */
static bool windows_are_of_parent(const struct tcp_windows *windows)
{
	return windows->owner != getpid();
}

static void windows_opened(struct fab_mr_map *map, struct fab_mr *mr)
{
	struct tcp_windows *windows = map->watch_data;

	if (windows_are_of_parent(windows) || !region_may_open(mr))
		return;
	pthread_mutex_lock(&windows->lock);
	windows_sweep(windows);
	mr->watched.listed = true;
	fab_list_add_tail(&windows->regions, &mr->watched.link);
	if (windows->table) {
		window_open(windows, mr);
		windows_tell(windows);
	} else if (!fab_list_empty(&windows->visitors)) {
		windows_make_table(windows);
	}
	pthread_mutex_unlock(&windows->lock);
}

/* ---- closing ---- */

/* The process of a peer that is busy with the window, or 0. */
static pid_t windows_find_busy(struct tcp_windows *windows, uint32_t slot, bool ask)
{
	struct fab_list *link;
	pid_t found = 0;

	pthread_mutex_lock(&windows->lock);
	fab_list_for_each(&windows->visitors, link) {
		struct tcp_visitor *visitor = fab_container(link, struct tcp_visitor, link);

		if (visitor_is_busy(visitor, slot, ask))
			found = visitor->pid;
	}
	pthread_mutex_unlock(&windows->lock);
	return found;
}

static void windows_pause(unsigned looks)
{
	if (looks < YIELD_CNT)
		sched_yield();
	else
		nanosleep(&(struct timespec) { .tv_nsec = PAUSE_NS }, NULL);
}

/* True if a signal or a debugger has stopped the process, which may last for ever; also if the system does not tell. */
static bool is_stopped(pid_t pid)
{
	char path[32], text[256] = "", *state;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	(void) !read(fd, text, sizeof(text) - 1);
	close(fd);
	state = strrchr(text, ')');	/* "PID (NAME) STATE ...", and the name may have anything */
	return !state || state[1] != ' ' || state[2] == 'T' || state[2] == 't';
}

/* Wait until no peer is busy with the window. 0 or -FI_EBUSY. */
static int windows_wait(struct tcp_windows *windows, const struct fab_mr *mr)
{
	uint64_t begin_ms = 0, look_ms = 0, now_ms;
	pid_t pid;

	for (unsigned looks = 0; ; looks++) {
		pid = windows_find_busy(windows, mr->watched.slot, looks >= YIELD_CNT);
		if (!pid)
			return 0;
		now_ms = fab_now_ms();
		if (!begin_ms) {
			begin_ms = now_ms;
			look_ms = now_ms + WAIT_MS;
		}
		if (now_ms > look_ms) {
			if (now_ms > begin_ms + WAIT_LONG_MS || is_stopped(pid))
				break;
			look_ms = now_ms + STATE_MS;
		}
		windows_pause(looks);
	}
	TCP_WARN(FI_LOG_MR, "the memory region with key 0x%" PRIx64 " stays open: process %d of this host has been in "
		 "the middle of a remote access to it for %" PRIu64 " ms. Was it stopped?\n", mr->mr_fid.key, (int) pid,
		 now_ms - begin_ms);
	return -FI_EBUSY;
}

static int windows_withdraw(struct fab_mr_map *map, struct fab_mr *mr)
{
	struct tcp_windows *windows = map->watch_data;
	struct tcp_window *window;
	int ret;

	if (windows_are_of_parent(windows))
		return 0;
	pthread_mutex_lock(&windows->lock);
	if (mr->watched.listed && !mr->watched.withdrawn)
		fab_list_remove(&mr->watched.link);
	if (mr->watched.slot && !mr->watched.withdrawn) {
		window = &windows->table->window[mr->watched.slot - 1];
		window->access = 0;
		window->check = ~tcp_window_check(window);
		windows_tell(windows);
	}
	mr->watched.withdrawn = true;
	pthread_mutex_unlock(&windows->lock);
	if (!mr->watched.slot)
		return 0;
	ret = windows_wait(windows, mr);
	if (ret)
		return ret;
	pthread_mutex_lock(&windows->lock);
	windows->table->window[mr->watched.slot - 1].number = 0;
	mr->watched.slot = 0;
	windows_sweep(windows);
	pthread_mutex_unlock(&windows->lock);
	return 0;
}

/* ---- streams ---- */

void tcp_windows_join(struct fab_mr_map *map, struct tcp_visitor *visitor, struct tcp_permit *permit,
		      _Atomic uint32_t *busy, pid_t pid, int fd)
{
	struct tcp_windows *windows = map->watch_data;

	if (!windows || !pid || windows_are_of_parent(windows))
		return;
	visitor->permit = permit;
	visitor->busy = busy;
	visitor->pid = pid;
	visitor->windows = windows;
	pthread_mutex_lock(&windows->lock);
	windows_sweep(windows);
	fab_list_add_tail(&windows->visitors, &visitor->link);
	visitor->left = windows->lingering >= LINGER_MAX;
	visitor->fd = visitor->left ? -1 : fd;
	if (windows->table)
		visitor_permit(windows, visitor);
	else if (!fab_list_empty(&windows->regions))
		windows_make_table(windows);
	pthread_mutex_unlock(&windows->lock);
}

/* Keep the socket of a stream that we end while its peer is busy, to see when the peer closes it. */
static void visitor_keep_socket(struct tcp_visitor *visitor, int *fd)
{
	fab_sock->shutdown(*fd, SHUT_WR);
	visitor->fd = *fd;
	*fd = -1;
}

void tcp_windows_leave(struct tcp_visitor *visitor, int *fd)
{
	struct tcp_windows *windows = visitor->windows;

	if (!windows || visitor->left || windows_are_of_parent(windows))
		return;
	pthread_mutex_lock(&windows->lock);
	visitor->left = true;
	atomic_store_explicit(&visitor->permit->gen, 0, memory_order_relaxed);
	tcp_full_barrier();
	if (fd && windows->lingering < LINGER_MAX && visitor_is_busy(visitor, 0, true))
		visitor_keep_socket(visitor, fd);
	else
		visitor->fd = -1;
	pthread_mutex_unlock(&windows->lock);
}

bool tcp_windows_release(struct tcp_visitor *visitor)
{
	struct tcp_windows *windows = visitor->windows;
	bool lingers;

	if (!windows)
		return true;
	if (windows_are_of_parent(windows)) {
		if (!visitor->left)
			visitor->fd = -1;	/* the stream's */
		visitor_remove(visitor);
		return true;
	}
	pthread_mutex_lock(&windows->lock);
	windows_sweep(windows);
	lingers = visitor->lingers = visitor_is_busy(visitor, 0, true);
	if (lingers)
		windows->lingering++;
	else
		visitor_remove(visitor);
	pthread_mutex_unlock(&windows->lock);
	return !lingers;
}

/* ---- domains ---- */

static void windows_fini(struct fab_mr_map *map)
{
	struct tcp_windows *windows = map->watch_data;
	struct fab_list *link;

	while ((link = fab_list_pop_front(&windows->visitors))) {
		struct tcp_visitor *visitor = fab_container(link, struct tcp_visitor, link);

		fab_sock_close(&visitor->fd);
		visitor->free(visitor);
	}
	if (windows->table)
		windows->table->cookie = (struct tcp_cookie) { 0 };
	tcp_full_barrier();
	free(windows->table);
	pthread_mutex_destroy(&windows->lock);
	free(windows);
}

static const struct fab_mr_watch windows_watch = {
	.opened = windows_opened,
	.withdraw = windows_withdraw,
	.fini = windows_fini,
};

void tcp_windows_open(struct fab_mr_map *map)
{
	struct tcp_windows *windows = tcp_params.local ? calloc(1, sizeof(*windows)) : NULL;

	if (!windows)
		return;
	windows->owner = getpid();
	pthread_mutex_init(&windows->lock, NULL);
	fab_list_init(&windows->regions);
	fab_list_init(&windows->visitors);
	map->watch_data = windows;
	map->watch = &windows_watch;
}
