/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait objects, wait sets and fi_trywait. See wait.h for who signals whom.
 *
 * Locks, outermost first: a set's mutex, a teller's gate, the guard of a queue.
 */
#include "common/wait.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/cntr.h"
#include "common/cq.h"
#include "common/eq.h"
#include "common/fabric.h"
#include "common/ops.h"
#include "common/progress.h"

/*
 * Tells a mutex and condition what a descriptor says. Having told, it waits until somebody read the queue empty, so
 * that it does not spin while the application takes its time.
 */
struct fab_teller {
	pthread_mutex_t mutex;		/* the application's, with cond */
	pthread_cond_t cond;
	pthread_mutex_t gate;		/* held while it touches the queue */
	int fd;				/* readable: worth a try */
	int nudge_fd;			/* eventfd: read empty, or stop */
	_Atomic bool told;		/* waits to be nudged */
	_Atomic uint32_t drains;	/* times that a read found nothing */
	_Atomic bool stop;
	int (*try)(void *arg);		/* fab_wait_try, or that of a set */
	void *arg;
	pthread_t thread;
};

struct fab_wait_set {
	struct fid_wait wait_fid;
	struct fab_fabric *fabric;	/* borrowed: open took a reference */
	enum fi_wait_obj obj;
	int epfd;			/* of the descriptors of its members */
	pthread_mutex_t lock;		/* guards waits, and the start of teller */
	struct fab_list waits;
	_Atomic(struct fab_teller *) teller;	/* owned */
};

/* ---- descriptors ---- */

static void evfd_write(int fd)
{
	const uint64_t one = 1;

	(void) !fab_sock->write(fd, &one, sizeof(one));
}

static void evfd_clear(int fd)
{
	uint64_t cnt;

	(void) !fab_sock->read(fd, &cnt, sizeof(cnt));
}

static int epoll_add(int epfd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return fab_sock->epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static void epoll_del(int epfd, int fd)
{
	fab_sock->epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
}

/* Milliseconds left, rounded up, as poll() wants them. */
static int sleep_left_ms(struct fab_sleep *sleep)
{
	uint64_t now;

	if (sleep->timeout_ms <= 0)
		return sleep->timeout_ms < 0 ? -1 : 0;
	now = fab_now_ns();
	if (!sleep->deadline_ns)
		sleep->deadline_ns = now + (uint64_t) sleep->timeout_ms * 1000000;
	return now >= sleep->deadline_ns ? 0 : (int) ((sleep->deadline_ns - now + 999999) / 1000000);
}

/* ---- the teller ---- */

/* Lock the application's mutex, unless told to stop meanwhile: it may be held by who closes the queue. */
static bool teller_lock(struct fab_teller *teller)
{
	struct timespec until;

	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 10000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		if (!pthread_mutex_timedlock(&teller->mutex, &until))
			return true;
		if (teller->stop)
			return false;
	}
}

static int teller_try(struct fab_teller *teller)
{
	int ret;

	pthread_mutex_lock(&teller->gate);
	ret = teller->try(teller->arg);
	pthread_mutex_unlock(&teller->gate);
	return ret;
}

/* Wait for a nudge; with fd also for that. */
static void teller_wait(struct fab_teller *teller, bool fd)
{
	struct pollfd fds[] = {
		{ .fd = teller->nudge_fd, .events = POLLIN },
		{ .fd = teller->fd, .events = POLLIN },
	};

	fab_sock->poll(fds, fd ? 2 : 1, -1);
	if (fds[0].revents)
		evfd_clear(teller->nudge_fd);
}

static void *teller_main(void *arg)
{
	struct fab_teller *teller = arg;
	uint32_t drains;

	while (!teller->stop) {
		drains = teller->drains;
		if (!teller_try(teller)) {
			teller_wait(teller, true);
			continue;
		}
		if (!teller_lock(teller))
			break;
		pthread_cond_broadcast(&teller->cond);
		pthread_mutex_unlock(&teller->mutex);
		/* whoever reads it empty counts first, then looks at `told` */
		teller->told = true;
		if (teller->drains == drains)
			teller_wait(teller, false);
		teller->told = false;
	}
	return NULL;
}

static void teller_nudge(struct fab_teller *teller)
{
	atomic_fetch_add(&teller->drains, 1);
	if (atomic_exchange(&teller->told, false))
		evfd_write(teller->nudge_fd);
}

/* The caller publishes *out under the lock that keeps `try` from being called before. */
static int teller_start(struct fab_teller **out, int fd, int (*try)(void *arg), void *arg)
{
	struct fab_teller *teller = calloc(1, sizeof(*teller));
	int ret;

	if (!teller)
		return -FI_ENOMEM;
	teller->fd = fd;
	teller->try = try;
	teller->arg = arg;
	pthread_mutex_init(&teller->mutex, NULL);
	pthread_cond_init(&teller->cond, NULL);
	pthread_mutex_init(&teller->gate, NULL);
	teller->nudge_fd = fab_sock->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (teller->nudge_fd < 0) {
		ret = -errno;
		goto free_teller;
	}
	ret = fab_thread_start(&teller->thread, teller_main, teller, "fab-teller");
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

static void teller_stop(struct fab_teller *teller)
{
	if (!teller)
		return;
	teller->stop = true;
	evfd_write(teller->nudge_fd);
	pthread_join(teller->thread, NULL);
	fab_sock_close(&teller->nudge_fd);
	pthread_mutex_destroy(&teller->gate);
	pthread_cond_destroy(&teller->cond);
	/* not the application's mutex, which it may hold: it owns nothing beyond its memory */
	free(teller);
}

/* ---- the usual guard: one engine and its lock ---- */

static void engine_lock(struct fab_wait *wait)
{
	fab_progress_lock(wait->progress);
}

static void engine_unlock(struct fab_wait *wait)
{
	fab_progress_unlock(wait->progress);
}

static void engine_run(struct fab_wait *wait)
{
	fab_progress_lock(wait->progress);
	fab_progress_last_look(wait->progress);
	fab_progress_unlock(wait->progress);
}

static void engine_watch(struct fab_wait *wait, bool on)
{
	if (on)
		fab_progress_watch(wait->progress);
	else
		fab_progress_unwatch(wait->progress);
}

static void engine_pause(struct fab_wait *wait)
{
	fab_progress_prepare_sleep(wait->progress);
	wait->progress->ask_epoll = true;
	fab_progress_unlock(wait->progress);
}

static const struct fab_wait_guard engine_guard = {
	.lock = engine_lock,
	.unlock = engine_unlock,
	.run = engine_run,
	.watch = engine_watch,
	.pause = engine_pause,
};

/* ---- signals ---- */

static void update_armed(struct fab_wait *wait)
{
	bool armed = wait->sleepers || wait->outside;

	if (armed == wait->armed)
		return;
	wait->armed = armed;
	wait->guard->watch(wait, armed);
}

void fab_wait_signal(struct fab_wait *wait)
{
	if (!wait->armed || wait->signalled || !wait->has_event(wait))
		return;
	wait->signalled = true;
	evfd_write(wait->evfd);
}

/* Look whether fab_wait_wake() was called. All who are asleep now shall leave; if there is none, the next call takes
 * it. */
static void note_wakes(struct fab_wait *wait)
{
	uint32_t wakes = atomic_load(&wait->wakes);

	if (wakes == wait->wakes_seen)
		return;
	wait->wakes_seen = wakes;
	wait->woken = true;
	wait->leaving = wait->sleepers;
	if (wait->sleepers)
		wait->wakes_taken = wakes;
}

/* Who tells of this queue: its own teller or that of its set, or NULL. */
static struct fab_teller *waits_teller(const struct fab_wait *wait)
{
	return wait->set ? wait->set->teller : wait->teller;
}

/* While some have yet to leave, the signal stays: poll() would let them sleep on without. */
void fab_wait_drained(struct fab_wait *wait)
{
	struct fab_teller *teller = waits_teller(wait);

	note_wakes(wait);
	if ((wait->signalled || wait->woken) && !wait->leaving) {
		wait->signalled = false;
		wait->woken = false;
		if (wait->evfd >= 0)
			evfd_clear(wait->evfd);
	}
	if (teller)
		teller_nudge(teller);
}

/* In this order, so that whoever sees the count can take back the signal. */
void fab_wait_wake(struct fab_wait *wait)
{
	if (wait->evfd >= 0)
		evfd_write(wait->evfd);
	atomic_fetch_add(&wait->wakes, 1);
}

/* ---- sleep ---- */

void fab_wait_begin(struct fab_wait *wait, struct fab_sleep *sleep, int timeout_ms)
{
	note_wakes(wait);
	*sleep = (struct fab_sleep) { .timeout_ms = timeout_ms, .wakes = wait->wakes_taken };
}

/* The descriptors of a sleeper: the epoll set if there is one, else its parts. */
static int sleep_poll(struct fab_wait *wait, int left_ms)
{
	struct pollfd fds[2] = {
		{ .fd = wait->epfd >= 0 ? wait->epfd : wait->evfd, .events = POLLIN },
		{ .fd = wait->progress->epfd, .events = POLLIN },
	};
	bool alone = wait->epfd >= 0 || wait->progress->thread_run;

	return fab_sock->poll(fds, alone ? 1 : 2, left_ms) < 0 ? -errno : 0;
}

int fab_wait_sleep(struct fab_wait *wait, struct fab_sleep *sleep)
{
	int left_ms, ret;

	fab_wait_drained(wait);
	if (sleep->wakes != wait->wakes_seen) {
		sleep->wakes = wait->wakes_taken = wait->wakes_seen;
		return -FI_EAGAIN;
	}
	left_ms = sleep_left_ms(sleep);
	if (!left_ms)
		return -FI_ETIMEDOUT;
	if (wait->obj == FI_WAIT_YIELD) {
		wait->guard->unlock(wait);
		sched_yield();
		wait->guard->lock(wait);
		return 0;
	}

	wait->sleepers++;
	update_armed(wait);
	wait->guard->pause(wait);
	ret = sleep_poll(wait, left_ms);
	wait->guard->lock(wait);

	note_wakes(wait);
	wait->sleepers--;
	update_armed(wait);
	if (sleep->wakes != wait->wakes_seen) {
		sleep->wakes = wait->wakes_seen;
		wait->leaving--;
		ret = -FI_EAGAIN;
	}
	return ret;
}

int fab_wait_try(struct fab_wait *wait)
{
	bool event;

	wait->guard->run(wait);
	wait->guard->lock(wait);
	event = wait->has_event(wait);
	if (!event)
		fab_wait_drained(wait);
	wait->guard->unlock(wait);
	return event ? -FI_EAGAIN : 0;
}

static int wait_try(void *arg)
{
	return fab_wait_try(arg);
}

/* ---- what is given away ---- */

/* Make the epoll set that also wakes for what the engine would find. */
static int nest_open(struct fab_wait *wait)
{
	int epfd = fab_sock->epoll_create1(EPOLL_CLOEXEC);
	int ret;

	if (epfd < 0)
		return -errno;
	ret = epoll_add(epfd, wait->evfd);
	if (!ret)
		ret = epoll_add(epfd, wait->progress->epfd);
	if (ret) {
		fab_sock_close(&epfd);
		return ret;
	}
	wait->epfd = epfd;
	return 0;
}

/* The descriptor to sleep on outside: from now on events always signal. Guard held. The descriptor or -errno. */
static int give_fd_locked(struct fab_wait *wait)
{
	int ret;

	if (wait->epfd < 0 && !wait->progress->thread_run) {
		ret = nest_open(wait);
		if (ret)
			return ret;
	}
	wait->outside = true;
	update_armed(wait);
	fab_wait_signal(wait);
	return wait->epfd >= 0 ? wait->epfd : wait->evfd;
}

static int give_fd(struct fab_wait *wait)
{
	int fd;

	wait->guard->lock(wait);
	fd = give_fd_locked(wait);
	wait->guard->unlock(wait);
	if (fd >= 0)
		wait->guard->run(wait);
	return fd;
}

static int give_pollfd(struct fi_wait_pollfd *out, int fd)
{
	size_t room = out->nfds;

	out->change_index = 1;		/* this list never changes: engines come and go inside of the descriptor */
	out->nfds = 1;
	if (room < 1)
		return -FI_ETOOSMALL;
	out->fd[0] = (struct pollfd) { .fd = fd, .events = POLLIN };
	return 0;
}

static void give_mutex_cond(struct fi_mutex_cond *out, struct fab_teller *teller)
{
	out->mutex = &teller->mutex;
	out->cond = &teller->cond;
}

static int wait_give_mutex_cond(struct fab_wait *wait, struct fi_mutex_cond *out)
{
	int fd, ret = 0;

	wait->guard->lock(wait);
	if (!wait->teller) {
		fd = give_fd_locked(wait);
		ret = fd < 0 ? fd : teller_start(&wait->teller, fd, wait_try, wait);
	}
	if (!ret)
		give_mutex_cond(out, wait->teller);
	wait->guard->unlock(wait);
	return ret;
}

static int give_obj(enum fi_wait_obj obj, void *arg)
{
	*(enum fi_wait_obj *) arg = obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : obj;
	return 0;
}

static int set_control(struct fid *fid, int command, void *arg);

static int wait_give(struct fab_wait *wait, void *arg)
{
	int fd;

	switch (wait->obj) {
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
	case FI_WAIT_POLLFD:
		fd = give_fd(wait);
		if (fd < 0)
			return fd;
		if (wait->obj == FI_WAIT_POLLFD)
			return give_pollfd(arg, fd);
		*(int *) arg = fd;
		return 0;
	case FI_WAIT_MUTEX_COND:
		return wait_give_mutex_cond(wait, arg);
	case FI_WAIT_SET:
		return set_control(&wait->set->wait_fid.fid, FI_GETWAIT, arg);
	default:
		return -FI_ENODATA;
	}
}

int fab_wait_control(struct fab_wait *wait, int command, void *arg)
{
	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	return command == FI_GETWAIT ? wait_give(wait, arg) : give_obj(wait->obj, arg);
}

/* ---- life ---- */

static int set_join(struct fab_wait_set *set, struct fab_wait *wait)
{
	int fd = give_fd(wait);
	int ret;

	if (fd < 0)
		return fd;
	pthread_mutex_lock(&set->lock);
	ret = epoll_add(set->epfd, fd);
	if (!ret)
		fab_list_add_tail(&set->waits, &wait->set_link);
	pthread_mutex_unlock(&set->lock);
	return ret;
}

static void set_leave(struct fab_wait_set *set, struct fab_wait *wait)
{
	pthread_mutex_lock(&set->lock);
	fab_list_remove(&wait->set_link);
	epoll_del(set->epfd, wait->epfd >= 0 ? wait->epfd : wait->evfd);
	pthread_mutex_unlock(&set->lock);
}

/* The set of the attributes: *set, or NULL where none is wanted. 0 or -FI_EINVAL. */
static int find_set(const struct fab_wait_attr *attr, struct fab_wait_set **set)
{
	*set = NULL;
	if (attr->obj != FI_WAIT_SET)
		return 0;
	if (!attr->set || attr->set->fid.fclass != FI_CLASS_WAIT)
		return -FI_EINVAL;
	*set = fab_container(attr->set, struct fab_wait_set, wait_fid);
	return 0;
}

bool fab_wait_has_thread(const struct fab_wait *wait)
{
	return (wait->set ? wait->set->obj : wait->obj) == FI_WAIT_MUTEX_COND;
}

static void close_fds(struct fab_wait *wait)
{
	fab_sock_close(&wait->epfd);
	fab_sock_close(&wait->evfd);
}

int fab_wait_init(struct fab_wait *wait, const struct fab_wait_attr *attr)
{
	struct fab_wait_set *set;
	int ret;

	if ((unsigned) attr->obj > FI_WAIT_POLLFD)
		return -FI_EINVAL;
	ret = find_set(attr, &set);
	if (ret)
		return ret;

	*wait = (struct fab_wait) {
		.obj = attr->obj,
		.guard = attr->guard ? attr->guard : &engine_guard,
		.has_event = attr->has_event,
		.progress = attr->progress,
		.evfd = -1,
		.epfd = -1,
		.set = set,
	};
	fab_list_init(&wait->link);
	fab_list_init(&wait->set_link);
	if (attr->obj == FI_WAIT_NONE || attr->obj == FI_WAIT_YIELD)
		return 0;

	wait->evfd = fab_sock->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (wait->evfd < 0)
		return -errno;
	if (attr->guard || attr->obj == FI_WAIT_FD || attr->obj == FI_WAIT_POLLFD)
		ret = attr->progress->thread_run ? 0 : nest_open(wait);
	if (fab_wait_has_thread(wait))
		fab_progress_share(attr->progress);
	if (!ret && set)
		ret = set_join(set, wait);
	if (ret) {
		if (wait->outside)
			wait->guard->watch(wait, false);
		close_fds(wait);
	}
	return ret;
}

void fab_wait_fini(struct fab_wait *wait)
{
	teller_stop(wait->teller);
	wait->teller = NULL;
	if (wait->set)
		set_leave(wait->set, wait);
	wait->guard->lock(wait);
	fab_list_remove(&wait->link);
	wait->outside = false;
	update_armed(wait);
	wait->guard->unlock(wait);
	close_fds(wait);
}

/* Swap the engine, while the teller stays out. */
static void move_to(struct fab_wait *wait, struct fab_progress *to)
{
	fab_progress_lock(wait->progress);
	fab_list_remove(&wait->link);
	if (wait->armed)
		wait->guard->watch(wait, false);
	fab_progress_unlock(wait->progress);
	wait->progress = to;
	if (wait->armed)
		wait->guard->watch(wait, true);
}

int fab_wait_move(struct fab_wait *wait, struct fab_progress *to)
{
	struct fab_teller *teller = waits_teller(wait);
	struct fab_progress *from = wait->progress;
	int ret;

	if (wait->epfd >= 0) {
		ret = epoll_add(wait->epfd, to->epfd);
		if (ret)
			return ret;
	}
	if (fab_wait_has_thread(wait))
		fab_progress_share(to);
	if (teller)
		pthread_mutex_lock(&teller->gate);
	move_to(wait, to);
	if (teller)
		pthread_mutex_unlock(&teller->gate);
	if (wait->epfd >= 0)
		epoll_del(wait->epfd, from->epfd);
	return 0;
}

/* ---- wait sets ---- */

static int set_try(void *arg)
{
	struct fab_wait_set *set = arg;
	struct fab_list *link;
	int ret = 0;

	pthread_mutex_lock(&set->lock);
	fab_list_for_each(&set->waits, link) {
		ret = fab_wait_try(fab_container(link, struct fab_wait, set_link));
		if (ret)
			break;
	}
	pthread_mutex_unlock(&set->lock);
	return ret;
}

static int set_wait(struct fid_wait *fid, int timeout_ms)
{
	struct fab_wait_set *set = fab_container(fid, struct fab_wait_set, wait_fid);
	struct pollfd pollfd = { .fd = set->epfd, .events = POLLIN };
	struct fab_sleep sleep = { .timeout_ms = timeout_ms };
	int left_ms;

	for (;;) {
		if (set_try(set))
			return 0;
		left_ms = sleep_left_ms(&sleep);
		if (!left_ms)
			return -FI_ETIMEDOUT;
		if (set->obj == FI_WAIT_YIELD)
			sched_yield();
		else if (fab_sock->poll(&pollfd, 1, left_ms) < 0)
			return -errno;
	}
}

static int set_give_mutex_cond(struct fab_wait_set *set, struct fi_mutex_cond *out)
{
	struct fab_teller *teller;
	int ret = 0;

	pthread_mutex_lock(&set->lock);
	teller = set->teller;
	if (!teller)
		ret = teller_start(&teller, set->epfd, set_try, set);
	if (!ret) {
		set->teller = teller;
		give_mutex_cond(out, teller);
	}
	pthread_mutex_unlock(&set->lock);
	return ret;
}

static int set_control(struct fid *fid, int command, void *arg)
{
	struct fab_wait_set *set = fab_container(fid, struct fab_wait_set, wait_fid.fid);

	if (command != FI_GETWAIT && command != FI_GETWAITOBJ)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ)
		return give_obj(set->obj, arg);

	switch (set->obj) {
	case FI_WAIT_YIELD:
		return -FI_ENODATA;
	case FI_WAIT_MUTEX_COND:
		return set_give_mutex_cond(set, arg);
	case FI_WAIT_POLLFD:
		return give_pollfd(arg, set->epfd);
	default:
		*(int *) arg = set->epfd;
		return 0;
	}
}

static int set_close(struct fid *fid)
{
	struct fab_wait_set *set = fab_container(fid, struct fab_wait_set, wait_fid.fid);
	bool busy;

	pthread_mutex_lock(&set->lock);
	busy = !fab_list_empty(&set->waits);
	pthread_mutex_unlock(&set->lock);
	if (busy) {
		FI_WARN(set->fabric->prov, FI_LOG_EQ, "wait set: queues that use it are still open\n");
		return -FI_EBUSY;
	}
	teller_stop(set->teller);
	fab_sock_close(&set->epfd);
	pthread_mutex_destroy(&set->lock);
	atomic_fetch_sub(&set->fabric->ref, 1);
	free(set);
	return 0;
}

static struct fi_ops set_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = set_close,
	.control = set_control,
};

static struct fi_ops_wait set_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = set_wait,
};

int fab_wait_open(struct fid_fabric *fabric_fid, struct fi_wait_attr *attr, struct fid_wait **waitset)
{
	struct fab_fabric *fabric = fab_container(fabric_fid, struct fab_fabric, fabric_fid);
	enum fi_wait_obj obj = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	struct fab_wait_set *set;

	if (obj == FI_WAIT_NONE || obj == FI_WAIT_SET || (unsigned) obj > FI_WAIT_POLLFD || (attr && attr->flags)) {
		FI_WARN(fabric->prov, FI_LOG_EQ, "wait set: wait_obj %d, flags 0x%llx: a set can be UNSPEC, FD, POLLFD, "
			"MUTEX_COND or YIELD, without flags\n", obj, attr ? (unsigned long long) attr->flags : 0);
		return -FI_EINVAL;
	}
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->epfd = fab_sock->epoll_create1(EPOLL_CLOEXEC);
	if (set->epfd < 0) {
		int ret = -errno;

		free(set);
		return ret;
	}
	FAB_OPS_FILL(&set_fid_ops);
	set->fabric = fabric;
	set->obj = obj;
	set->wait_fid.fid.fclass = FI_CLASS_WAIT;
	set->wait_fid.fid.ops = &set_fid_ops;
	set->wait_fid.ops = &set_ops;
	pthread_mutex_init(&set->lock, NULL);
	fab_list_init(&set->waits);
	atomic_fetch_add(&fabric->ref, 1);
	*waitset = &set->wait_fid;
	return 0;
}

/* ---- fi_trywait ---- */

/* The wait object of a queue; NULL for what is no queue. */
static struct fab_wait *wait_of(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return &fab_container(fid, struct fab_cq, cq_fid.fid)->wait;
	case FI_CLASS_CNTR:
		return &fab_container(fid, struct fab_cntr, cntr_fid.fid)->wait;
	case FI_CLASS_EQ:
		return &fab_container(fid, struct fab_eq, eq_fid.fid)->wait;
	default:
		return NULL;
	}
}

static int try_fid(struct fab_fabric *fabric, struct fid *fid)
{
	struct fab_wait *wait;

	if (fid->fclass == FI_CLASS_WAIT)
		return set_try(fab_container(fid, struct fab_wait_set, wait_fid.fid));
	wait = wait_of(fid);
	if (wait && wait->obj != FI_WAIT_NONE)
		return fab_wait_try(wait);
	FI_WARN(fabric->prov, FI_LOG_EQ, "fi_trywait: an object of class %zu %s: CQs, counters, EQs opened with a wait "
		"object, and wait sets can be waited on\n", fid->fclass, wait ? "with FI_WAIT_NONE" : "cannot wait");
	return -FI_EINVAL;
}

int fab_trywait(struct fid_fabric *fabric_fid, struct fid **fids, int cnt)
{
	struct fab_fabric *fabric = fab_container(fabric_fid, struct fab_fabric, fabric_fid);
	int ret;

	for (int i = 0; i < cnt; i++) {
		ret = try_fid(fabric, fids[i]);
		if (ret)
			return ret;
	}
	return 0;
}
