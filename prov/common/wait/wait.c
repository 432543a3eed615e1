/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait objects. wait.h describes their signals.
 *
 * Locks, outermost first: a set's mutex, the guard of a queue.
 */
#include "common/wait/wait.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <rdma/providers/fi_prov.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/engine/engine.h"
#include "common/wait/teller.h"
#include "common/wait/wait_set.h"

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

int fab_wait_nest(int epfd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return fab_sock->epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void fab_wait_unnest(int epfd, int fd)
{
	fab_sock->epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
}

int fab_sleep_left_ms(struct fab_sleep *sleep)
{
	uint64_t now;

	if (sleep->timeout_ms <= 0)
		return sleep->timeout_ms < 0 ? -1 : 0;
	now = fab_now_ns();
	if (!sleep->deadline_ns)
		sleep->deadline_ns = now + (uint64_t) sleep->timeout_ms * 1000000;
	return now >= sleep->deadline_ns ? 0 : (int) ((sleep->deadline_ns - now + 999999) / 1000000);
}

/* ---- the usual guard: one engine and its lock ---- */

static void engine_lock(struct fab_wait *wait)
{
	fab_engine_lock_of(&wait->engine);
}

static void engine_enter(struct fab_wait *wait)
{
	fab_engine_enter_of(&wait->engine);
}

static void engine_unlock(struct fab_wait *wait)
{
	fab_engine_unlock(wait->engine);
}

static void engine_run(struct fab_wait *wait)
{
	struct fab_engine *engine = fab_engine_enter_of(&wait->engine);

	fab_engine_last_look(engine);
	fab_engine_unlock(engine);
}

static void engine_watch(struct fab_wait *wait, bool on)
{
	if (on)
		fab_engine_watch(wait->engine);
	else
		fab_engine_unwatch(wait->engine);
}

static void engine_pause(struct fab_wait *wait)
{
	fab_engine_prepare_sleep(wait->engine);
	wait->engine->epoll.ask = true;
	fab_engine_unlock(wait->engine);
}

static const struct fab_wait_guard engine_guard = {
	.lock = engine_lock,
	.enter = engine_enter,
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

/* Make evfd readable. It is cleared when all threads that sleep now have looked: each knows only of itself whether its
 * time has come. */
static void rouse(struct fab_wait *wait)
{
	wait->signalled = true;
	wait->signals++;
	wait->roused = wait->sleepers;
	evfd_write(wait->evfd);
}

void fab_wait_signal(struct fab_wait *wait)
{
	if (wait->armed && !wait->signalled && wait->has_event(wait))
		rouse(wait);
}

static void signal_tell(struct fab_signal *signal)
{
	fab_wait_signal(fab_container(signal, struct fab_wait, signal));
}

/* True if fab_wait_wake() was called since the last check. All threads that sleep now must then return; if no thread
 * sleeps, the next call that would sleep returns instead. */
static bool note_wakes(struct fab_wait *wait)
{
	uint32_t wakes = atomic_load(&wait->wakes);

	if (wakes == wait->wakes_seen)
		return false;
	wait->wakes_seen = wakes;
	wait->woken = true;
	wait->leaving = wait->sleepers;
	if (wait->sleepers)
		wait->wakes_taken = wakes;
	return true;
}

/* The teller of this queue, or of its set; or NULL. */
static struct fab_teller *waits_teller(const struct fab_wait *wait)
{
	return wait->set ? wait->set->teller : wait->teller;
}

/*
 * Clear evfd. fab_wait_wake() holds no lock, and may run at the same time. If it has incremented wakes but not written
 * evfd yet, evfd must be cleared again later (woken stays true). If it incremented wakes after the check and has
 * written evfd, that write was cleared here; evfd is then written again, as threads may be asleep.
 */
static void clear(struct fab_wait *wait)
{
	wait->signalled = false;
	wait->woken = atomic_load(&wait->wakes_written) != wait->wakes_seen;
	evfd_clear(wait->evfd);
	if (note_wakes(wait))
		evfd_write(wait->evfd);
}

/* While sleepers have not left yet, evfd stays readable: without it their poll() would continue to sleep. */
void fab_wait_take_back(struct fab_wait *wait)
{
	struct fab_teller *teller = waits_teller(wait);

	note_wakes(wait);
	if ((wait->signalled || wait->woken) && !wait->roused && !wait->leaving && wait->evfd >= 0)
		clear(wait);
	if (teller)
		fab_teller_drained(teller);
}

/* wakes is incremented before the write, so that a sleeper that wakes up finds the new value. */
void fab_wait_wake(struct fab_wait *wait)
{
	atomic_fetch_add(&wait->wakes, 1);
	if (wait->evfd >= 0)
		evfd_write(wait->evfd);
	atomic_fetch_add(&wait->wakes_written, 1);
}

/* ---- sleep ---- */

void fab_wait_begin(struct fab_wait *wait, struct fab_sleep *sleep, int timeout_ms)
{
	note_wakes(wait);
	if (wait->guard == &engine_guard)
		fab_survey_due(wait->engine);
	*sleep = (struct fab_sleep) { .timeout_ms = timeout_ms, .wakes = wait->wakes_taken };
}

#define SLEEP_FDS	2

/* The descriptors of a sleeper: the epoll set, or without one its parts. Returns their number. */
static unsigned sleep_fds(const struct fab_wait *wait, struct pollfd fds[SLEEP_FDS])
{
	bool alone = wait->epfd >= 0 || wait->engine->thread.run || !wait->settled;

	fds[0] = (struct pollfd) { .fd = wait->epfd >= 0 ? wait->epfd : wait->evfd, .events = POLLIN };
	fds[1] = (struct pollfd) { .fd = wait->engine->epfd, .events = POLLIN };
	return alone ? 1 : 2;
}

/*
 * Waking a thread takes longer than most answers do. So a thread that waits where recent waits were short looks again
 * for a while before it sleeps, and lets others have the processor between two looks.
 */
#define SPIN_FIRST_NS	10000U
#define SPIN_MAX_NS	100000U		/* FI_WAIT_SPIN; default */
#define SPIN_LIMIT_US	10000

static uint32_t spin_max_ns = SPIN_MAX_NS;

static void spin_read_param(void)
{
	int us;

	if (!fi_param_get_int(NULL, "wait_spin", &us) && us >= 0)
		spin_max_ns = (uint32_t) fab_min(us, SPIN_LIMIT_US) * 1000;
}

/* True if the caller looks again instead of sleeping. */
static bool may_spin(const struct fab_wait *wait, struct fab_sleep *sleep)
{
	uint64_t now_ns;

	if (!wait->spin_ns || wait->sleepers)
		return false;
	now_ns = fab_now_ns();
	if (!sleep->spin_end_ns)
		sleep->spin_end_ns = now_ns + wait->spin_ns;
	return now_ns < sleep->spin_end_ns;
}

/* A thread has slept for so long. Where that was short, the next one looks again for a while. */
static void adapt_spin(struct fab_wait *wait, uint64_t slept_ns)
{
	if (slept_ns < spin_max_ns)
		wait->spin_ns = fab_min(fab_max(2 * wait->spin_ns, SPIN_FIRST_NS), spin_max_ns);
	else
		wait->spin_ns /= 2;
}

int fab_wait_sleep(struct fab_wait *wait, struct fab_sleep *sleep)
{
	struct pollfd fds[SLEEP_FDS];
	uint64_t since_ns;
	uint32_t signals;
	int left_ms, ret;
	unsigned cnt;

	fab_wait_drained(wait);
	if (sleep->wakes != wait->wakes_seen) {
		sleep->wakes = wait->wakes_taken = wait->wakes_seen;
		return -FI_EAGAIN;
	}
	left_ms = fab_sleep_left_ms(sleep);
	if (!left_ms)
		return -FI_ETIMEDOUT;
	/* without a wait object; or sleepers have not looked yet, and poll() would not sleep */
	if (wait->obj == FI_WAIT_YIELD || wait->obj == FI_WAIT_NONE || wait->roused || may_spin(wait, sleep)) {
		wait->guard->unlock(wait);
		sched_yield();
		wait->guard->enter(wait);
		return 0;
	}

	wait->sleepers++;
	signals = wait->signals;
	update_armed(wait);
	cnt = sleep_fds(wait, fds);
	wait->guard->pause(wait);
	since_ns = fab_now_ns();
	ret = fab_sock->poll(fds, cnt, left_ms) < 0 ? -errno : 0;
	wait->guard->enter(wait);

	adapt_spin(wait, fab_now_ns() - since_ns);
	sleep->spin_end_ns = 0;
	note_wakes(wait);
	wait->roused -= signals != wait->signals;
	wait->sleepers--;
	update_armed(wait);
	if (sleep->wakes != wait->wakes_seen) {
		sleep->wakes = wait->wakes_seen;
		wait->leaving--;
		ret = -FI_EAGAIN;
	}
	return ret;
}

/* True if fab_wait_wake() was called while no thread slept, and has ended no call since. */
static bool has_wake(struct fab_wait *wait)
{
	note_wakes(wait);
	return wait->wakes_taken != wait->wakes_seen;
}

/* The same, and this call is the one that it ends. */
static bool take_wake(struct fab_wait *wait)
{
	bool has = has_wake(wait);

	wait->wakes_taken = wait->wakes_seen;
	return has;
}

/* The same for a teller, which tells of it once and leaves it to the application. */
static bool tell_wake(struct fab_wait *wait)
{
	bool has = has_wake(wait) && wait->wakes_told != wait->wakes_seen;

	wait->wakes_told = wait->wakes_seen;
	return has;
}

static int try(struct fab_wait *wait, bool (*woken)(struct fab_wait *wait))
{
	bool event;

	wait->guard->run(wait);
	wait->guard->enter(wait);
	event = woken(wait) || wait->has_event(wait);
	if (!event)
		fab_wait_drained(wait);
	wait->guard->unlock(wait);
	return event ? -FI_EAGAIN : 0;
}

int fab_wait_try(struct fab_wait *wait)
{
	return try(wait, take_wake);
}

int fab_wait_look(struct fab_wait *wait)
{
	return try(wait, tell_wake);
}

static int wait_look(void *arg)
{
	return fab_wait_look(arg);
}

/* ---- descriptors for the application ---- */

/* Make the epoll set, which also wakes up for sources and timers of the engine. */
static int nest_open(struct fab_wait *wait)
{
	int epfd = fab_sock->epoll_create1(EPOLL_CLOEXEC);
	int ret;

	if (epfd < 0)
		return -errno;
	ret = fab_wait_nest(epfd, wait->evfd);
	if (!ret && wait->settled)
		ret = fab_wait_nest(epfd, wait->engine->epfd);
	if (ret) {
		fab_sock_close(&epfd);
		return ret;
	}
	wait->epfd = epfd;
	return 0;
}

static int given_fd(const struct fab_wait *wait)
{
	return wait->epfd >= 0 ? wait->epfd : wait->evfd;
}

/* The descriptor for the application. From now on every event signals. Guard held. Returns the descriptor or -errno. */
static int give_fd_locked(struct fab_wait *wait)
{
	int ret;

	if (wait->epfd < 0 && !wait->engine->thread.run) {
		ret = nest_open(wait);
		if (ret)
			return ret;
	}
	wait->outside = true;
	update_armed(wait);
	fab_wait_signal(wait);
	return given_fd(wait);
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

int fab_wait_give_fd(enum fi_wait_obj obj, int fd, void *arg)
{
	struct fi_wait_pollfd *out = arg;
	size_t room;

	if (obj != FI_WAIT_POLLFD) {
		*(int *) arg = fd;
		return 0;
	}
	room = out->nfds;
	out->change_index = 1;		/* the list never changes: engines are added inside of the descriptor */
	out->nfds = 1;
	if (room < 1)
		return -FI_ETOOSMALL;
	out->fd[0] = (struct pollfd) { .fd = fd, .events = POLLIN };
	return 0;
}

static int wait_give_mutex_cond(struct fab_wait *wait, struct fi_mutex_cond *out)
{
	int fd, ret = 0;

	wait->guard->lock(wait);
	if (!wait->teller) {
		fd = give_fd_locked(wait);
		ret = fd < 0 ? fd : fab_teller_start(&wait->teller, fd, wait_look, wait);
	}
	if (!ret)
		fab_teller_give(wait->teller, out);
	wait->guard->unlock(wait);
	return ret;
}

int fab_wait_give_obj(enum fi_wait_obj obj, void *arg)
{
	*(enum fi_wait_obj *) arg = obj == FI_WAIT_UNSPEC ? FI_WAIT_FD : obj;
	return 0;
}

static int wait_give(struct fab_wait *wait, void *arg)
{
	int fd;

	switch (wait->obj) {
	case FI_WAIT_UNSPEC:
	case FI_WAIT_FD:
	case FI_WAIT_POLLFD:
		fd = give_fd(wait);
		return fd < 0 ? fd : fab_wait_give_fd(wait->obj, fd, arg);
	case FI_WAIT_MUTEX_COND:
		return wait_give_mutex_cond(wait, arg);
	case FI_WAIT_SET:
		return fab_wait_set_give(wait->set, arg);
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
	return command == FI_GETWAIT ? wait_give(wait, arg) : fab_wait_give_obj(wait->obj, arg);
}

/* ---- init and fini ---- */

static int join_set(struct fab_wait *wait)
{
	int fd = give_fd(wait);

	return fd < 0 ? fd : fab_wait_set_join(wait->set, wait, fd);
}

bool fab_wait_exists(enum fi_wait_obj obj, const struct fid_wait *set)
{
	return (unsigned) obj <= FI_WAIT_POLLFD &&
	       (obj != FI_WAIT_SET || (set && set->fid.fclass == FI_CLASS_WAIT));
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
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int ret = 0;

	pthread_once(&once, spin_read_param);
	*wait = (struct fab_wait) {
		.obj = attr->obj,
		.guard = attr->guard ? attr->guard : &engine_guard,
		.has_event = attr->has_event,
		.engine = attr->engine,
		.settled = !attr->settles_later,
		.evfd = -1,
		.epfd = -1,
		.set = attr->obj == FI_WAIT_SET ? fab_container(attr->set, struct fab_wait_set, wait_fid) : NULL,
	};
	fab_list_init(&wait->signal.link);
	wait->signal.tell = signal_tell;
	fab_list_init(&wait->set_link);
	if (attr->obj == FI_WAIT_NONE || attr->obj == FI_WAIT_YIELD)
		return 0;

	wait->evfd = fab_sock->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (wait->evfd < 0)
		return -errno;
	if (attr->guard || attr->obj == FI_WAIT_FD || attr->obj == FI_WAIT_POLLFD)
		ret = attr->engine->thread.run ? 0 : nest_open(wait);
	if (fab_wait_has_thread(wait))
		fab_engine_share(attr->engine);
	if (!ret && wait->set)
		ret = join_set(wait);
	if (ret) {
		if (wait->outside)
			wait->guard->watch(wait, false);
		close_fds(wait);
	}
	return ret;
}

void fab_wait_fini(struct fab_wait *wait)
{
	if (wait->engine)
		fab_engine_disown(wait->engine);
	fab_teller_stop(wait->teller);
	wait->teller = NULL;
	if (wait->set)
		fab_wait_set_leave(wait->set, wait, given_fd(wait));
	wait->guard->lock(wait);
	fab_list_remove(&wait->signal.link);
	wait->outside = false;
	update_armed(wait);
	wait->guard->unlock(wait);
	close_fds(wait);
}

/* Wake the threads that sleep, since their descriptors belong to another engine now. */
static void wake_sleepers(struct fab_wait *wait)
{
	if (wait->sleepers && !wait->signalled)
		rouse(wait);
}

int fab_wait_settle(struct fab_wait *wait, struct fab_engine *to)
{
	int ret;

	if (wait->epfd >= 0) {
		ret = fab_wait_nest(wait->epfd, to->epfd);
		if (ret)
			return ret;
	}
	if (wait->armed) {
		wait->guard->watch(wait, false);
		fab_engine_watch(to);
	}
	wait->settled = true;
	wake_sleepers(wait);
	/* last: from now on threads come in with the lock of `to` */
	__atomic_store_n(&wait->engine, to, __ATOMIC_RELEASE);
	return 0;
}
