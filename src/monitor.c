/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory monitor: userfaultfd(2), or an imported one, fi_mr(3).
 *
 * Watched memory is registered with a userfaultfd in write-protect mode. No page is ever protected, so nobody faults;
 * all that comes are events: memory was unmapped, is about to be discarded (madvise), or has moved. The thread that
 * causes one waits in the kernel until the event is read. A thread of ours reads them, with the lock held, and tells
 * the caches. It must never wait for itself, so nothing that it calls may free memory. The descriptor is one for which
 * no privileges are needed (UFFD_USER_MODE_ONLY).
 *
 * Between the end of an unmapping and its event, another thread may map and register the same addresses. The kernel
 * tells of that time: any request that would fill pages is refused with EAGAIN. quiet() makes such a request, with a
 * length of 0, which is refused with EINVAL otherwise.
 *
 * Only private anonymous memory counts as watched. Files, and memory that is shared, may lose pages by ftruncate(2) in
 * any process, of which there is no event.
 *
 * State: one struct, under one lock. A child of fork(2) has none of it: the memory is watched for its parent only.
 */
#include "monitor.h"

#include "base/bits.h"
#include "base/forks.h"
#include "fid.h"
#include "log.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_prov.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY	1
#endif

#define EVENTS		(UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP)
#define MSGS		32		/* events that are read at a time */
#define PAGES		512		/* entries of pagemap that are read at a time */
#define SHARED_PAGE	(UINT64_C(1) << 61)	/* in pagemap: of a file, or shared */
#define MAX_CNT		1024		/* default of FI_MR_CACHE_MAX_COUNT */
#define MAX_CNT_LIMIT	(1u << 20)

static struct {
	pthread_mutex_t lock;		/* for the rest, but for what says otherwise */
	pthread_mutex_t joining;	/* held by join, leave and import; taken before lock */
	struct fab_list watchers;
	unsigned watcher_cnt;		/* joining */
	uint32_t forks;			/* fab_fork_cnt of the process that started the monitor */
	bool off;			/* FI_MR_CACHE_MONITOR; constant */
	bool told;			/* that there is none, and why; joining */
	_Atomic int fd;			/* the userfaultfd, or -1 */
	int map_fd;			/* /proc/self/pagemap; joining */
	int stop_fd;			/* an eventfd that ends the thread; joining */
	pthread_t thread;		/* joining */
	struct fid_mem_monitor *_Atomic foreign;	/* borrowed: the imported one, or NULL; set with joining */
} mon = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .joining = PTHREAD_MUTEX_INITIALIZER,
	.watchers = FAB_LIST_INIT(mon.watchers),
	.fd = -1, .map_fd = -1, .stop_fd = -1,
};

/* A fork does not wait until this lock is free (base/forks.h): while it would hold the lock, it would wait for threads
 * that are inside of free(), and these may wait for the monitor. monitor_inherit() makes a new one in the child. */
static void monitor_lock(void)
{
	pthread_mutex_lock(&mon.lock);
}

static void monitor_unlock(void)
{
	pthread_mutex_unlock(&mon.lock);
}

static uintptr_t page_mask(void)
{
	return (uintptr_t) sysconf(_SC_PAGESIZE) - 1;
}

/* ---- changes: lock held ---- */

static void tell(uintptr_t start, uintptr_t end)
{
	struct fab_list *link;

	fab_list_for_each(&mon.watchers, link) {
		struct fab_mem_watcher *watcher = fab_container(link, struct fab_mem_watcher, link);

		watcher->changed(watcher, start, end);
	}
}

static void take_event(const struct uffd_msg *msg)
{
	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		tell(msg->arg.remove.start, msg->arg.remove.end);
		break;
	case UFFD_EVENT_REMAP:
		tell(msg->arg.remap.from, msg->arg.remap.from + msg->arg.remap.len);
		tell(msg->arg.remap.to, msg->arg.remap.to + msg->arg.remap.len);
		break;
	default:
		break;
	}
}

/* Who causes an event goes on as soon as it is read, and the caches must know by then. So the lock is held. */
static bool take_events(int fd)
{
	struct uffd_msg msg[MSGS];
	ssize_t len;

	monitor_lock();
	while ((len = read(fd, msg, sizeof(msg))) > 0) {
		for (size_t i = 0; i < (size_t) len / sizeof(*msg); i++)
			take_event(&msg[i]);
	}
	/* somebody has closed the descriptor, or put another in its place: nothing is watched any more */
	if (len < 0 && errno != EAGAIN && errno != EINTR) {
		tell(0, UINTPTR_MAX);
		atomic_store(&mon.fd, -1);
	}
	monitor_unlock();
	return atomic_load(&mon.fd) == fd;
}

/* Nothing in here may allocate or free memory, or log. */
static void *thread_main(void *arg)
{
	struct pollfd fds[] = { { .fd = mon.fd, .events = POLLIN }, { .fd = mon.stop_fd, .events = POLLIN } };

	(void) arg;
	for (;;) {
		if (poll(fds, fab_countof(fds), -1) < 0)
			continue;
		if (fds[1].revents)
			return NULL;
		if (fds[0].revents && !take_events(fds[0].fd))
			fds[0].fd = -1;
	}
}

/* ---- start and stop: joining held ---- */

static int thread_start(void)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&mon.thread, NULL, thread_main, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pthread_setname_np(mon.thread, "fi-mr-monitor");
	return ret;
}

static void close_all(void)
{
	if (mon.fd >= 0)
		close(mon.fd);
	if (mon.map_fd >= 0)
		close(mon.map_fd);
	if (mon.stop_fd >= 0)
		close(mon.stop_fd);
	mon.fd = mon.map_fd = mon.stop_fd = -1;
}

/* A descriptor whose events need no privileges, or -1 with errno. Kernels before 5.11 know no flag for that. */
static int uffd_open(void)
{
	int fd = (int) syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	return fd < 0 && errno == EINVAL ? (int) syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK) : fd;
}

/* The step that failed, with errno; NULL if the monitor runs. */
static const char *uffd_start(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = EVENTS | UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	int ret;

	mon.fd = uffd_open();
	if (mon.fd < 0)
		return "userfaultfd";
	if (ioctl(mon.fd, UFFDIO_API, &api))
		return "UFFDIO_API with write protection and events";
	mon.map_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (mon.map_fd < 0)
		return "/proc/self/pagemap";
	mon.stop_fd = eventfd(0, EFD_CLOEXEC);
	if (mon.stop_fd < 0)
		return "eventfd";
	ret = thread_start();
	errno = ret;
	return ret ? "pthread_create" : NULL;
}

static int foreign_start(struct fid_mem_monitor *foreign)
{
	int ret = foreign->export_ops->start(foreign);

	if (ret)
		FAB_WARN("the imported memory monitor does not start: %s; no registration is cached",
			 fi_strerror(-ret));
	return ret ? -FI_ENOSYS : 0;
}

static int monitor_start(void)
{
	struct fid_mem_monitor *foreign = atomic_load(&mon.foreign);
	const char *step;

	mon.forks = fab_fork_cnt;
	if (foreign)
		return foreign_start(foreign);
	step = uffd_start();
	if (!step)
		return 0;
	if (!mon.told)
		FAB_INFO("no registration is cached, because nothing tells when memory is unmapped: %s: %s; a program "
			 "may import a monitor of its own, fi_mr(3)", step, strerror(errno));
	mon.told = true;
	close_all();
	return -FI_ENOSYS;
}

static void monitor_stop(void)
{
	struct fid_mem_monitor *foreign = atomic_load(&mon.foreign);

	if (foreign) {
		foreign->export_ops->stop(foreign);
		return;
	}
	if (mon.stop_fd < 0)
		return;		/* a foreign one was closed before */
	eventfd_write(mon.stop_fd, 1);
	pthread_join(mon.thread, NULL);
	close_all();
}

/* In a child of fork(2), forget the parent's monitor. Its watchers, which the child may close, are in no list. */
static void monitor_inherit(void)
{
	if (mon.forks == fab_fork_cnt)
		return;
	mon.forks = fab_fork_cnt;
	while (fab_list_pop_front(&mon.watchers))
		;
	mon.watcher_cnt = 0;
	pthread_mutex_init(&mon.lock, NULL);
	close_all();
}

static int monitor_join(struct fab_mem_watcher *watcher)
{
	int ret = 0;

	if (mon.off)
		return -FI_ENOSYS;
	pthread_mutex_lock(&mon.joining);
	monitor_inherit();
	if (!mon.watcher_cnt)
		ret = monitor_start();
	if (!ret) {
		mon.watcher_cnt++;
		monitor_lock();
		fab_list_add_tail(&mon.watchers, &watcher->link);
		monitor_unlock();
	}
	pthread_mutex_unlock(&mon.joining);
	return ret;
}

static void monitor_leave(struct fab_mem_watcher *watcher)
{
	pthread_mutex_lock(&mon.joining);
	monitor_inherit();
	if (!fab_list_empty(&watcher->link)) {
		monitor_lock();
		fab_list_remove(&watcher->link);
		monitor_unlock();
		if (!--mon.watcher_cnt)
			monitor_stop();
	}
	pthread_mutex_unlock(&mon.joining);
}

/* ---- watching ---- */

static bool monitor_quiet(void)
{
	struct uffdio_zeropage nothing = { .range = { 0, 0 } };
	int fd;

	if (mon.forks != fab_fork_cnt)
		return false;
	if (atomic_load(&mon.foreign))
		return true;
	fd = atomic_load(&mon.fd);
	return fd >= 0 && ioctl(fd, UFFDIO_ZEROPAGE, &nothing) < 0 && errno == EINVAL;
}

static bool monitor_valid(uintptr_t addr, size_t len)
{
	struct fid_mem_monitor *foreign = atomic_load(&mon.foreign);

	return !foreign || foreign->export_ops->valid(foreign, (void *) addr, len);
}

static bool monitor_watch(uintptr_t addr, size_t len)
{
	struct fid_mem_monitor *foreign = atomic_load(&mon.foreign);
	uintptr_t mask = page_mask(), start = addr & ~mask, end = (addr + len + mask) & ~mask;
	struct uffdio_register reg = {
		.range = { .start = start, .len = end - start }, .mode = UFFDIO_REGISTER_MODE_WP,
	};

	if (foreign)
		return !foreign->export_ops->subscribe(foreign, (void *) addr, len);
	return monitor_quiet() && !ioctl(atomic_load(&mon.fd), UFFDIO_REGISTER, &reg);
}

/* True if no page is one of a file or shared. */
static bool is_private(uintptr_t start, uintptr_t end)
{
	uint64_t page[PAGES];
	uintptr_t size = page_mask() + 1;
	size_t at = start / size, cnt = (end + size - 1) / size - at;

	while (cnt) {
		ssize_t len = pread(mon.map_fd, page, fab_min(cnt, (size_t) PAGES) * sizeof(*page),
				    (off_t) (at * sizeof(*page)));
		size_t got = len > 0 ? (size_t) len / sizeof(*page) : 0;

		if (!got)
			return false;
		for (size_t i = 0; i < got; i++) {
			if (page[i] & SHARED_PAGE)
				return false;
		}
		at += got;
		cnt -= got;
	}
	return true;
}

static bool monitor_lasts(uintptr_t addr, size_t len)
{
	return atomic_load(&mon.foreign) || is_private(addr, addr + len);
}

static void monitor_unwatch(uintptr_t addr, size_t len)
{
	struct fid_mem_monitor *foreign = atomic_load(&mon.foreign);
	uintptr_t mask = foreign ? 0 : page_mask(), start = addr & ~mask, end = (addr + len + mask) & ~mask;
	struct uffdio_range range;
	struct fab_list *link;

	fab_list_for_each(&mon.watchers, link) {
		struct fab_mem_watcher *watcher = fab_container(link, struct fab_mem_watcher, link);

		watcher->spare(watcher, &start, &end);
	}
	start = (start + mask) & ~mask;
	end &= ~mask;
	if (start >= end)
		return;
	if (foreign) {
		foreign->export_ops->unsubscribe(foreign, (void *) start, end - start);
		return;
	}
	range = (struct uffdio_range) { .start = start, .len = end - start };
	ioctl(atomic_load(&mon.fd), UFFDIO_UNREGISTER, &range);
}

struct fab_monitor fab_monitor = {
	.join = monitor_join, .leave = monitor_leave, .lock = monitor_lock, .unlock = monitor_unlock,
	.quiet = monitor_quiet, .valid = monitor_valid, .watch = monitor_watch,
	.lasts = monitor_lasts, .unwatch = monitor_unwatch,
	.max_size = SIZE_MAX, .max_cnt = MAX_CNT,
};

/* ---- an imported monitor ---- */

static atomic_flag is_open = ATOMIC_FLAG_INIT;

static void notify(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	if (monitor != atomic_load(&mon.foreign))
		return;
	monitor_lock();
	tell((uintptr_t) addr, (uintptr_t) addr + len);
	monitor_unlock();
}

/* True if the object is a monitor with all calls that we make. Of another object only the fid is read. */
static bool is_monitor(const struct fid_mem_monitor *monitor)
{
	const struct fi_ops_mem_monitor *ops;

	if (monitor->fid.fclass != FI_CLASS_MEM_MONITOR)
		return false;
	ops = monitor->export_ops;
	return ops && ops->size >= sizeof(*ops) && ops->start && ops->stop && ops->subscribe && ops->unsubscribe &&
	       ops->valid;
}

/* The program closes its monitor, through the operations that import gave it: Open MPI does so when it ends, and frees
 * it then. Caches that still use it forget all that they have, and get no more. */
static int foreign_close(struct fid *fid)
{
	struct fid_mem_monitor *monitor = fab_container(fid, struct fid_mem_monitor, fid);

	pthread_mutex_lock(&mon.joining);
	monitor_inherit();
	if (monitor == atomic_load(&mon.foreign)) {
		if (mon.watcher_cnt)
			monitor_stop();
		atomic_store(&mon.foreign, NULL);
		monitor_lock();
		tell(0, UINTPTR_MAX);
		monitor_unlock();
	}
	pthread_mutex_unlock(&mon.joining);
	return 0;
}

static int monitor_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	static struct fi_ops fid_ops = {
		.size = sizeof(struct fi_ops),
		.close = foreign_close,
		.bind = fab_fid_no_bind,
		.control = fab_fid_no_control,
		.ops_open = fab_fid_no_ops_open,
	};
	static struct fi_ops_mem_notify ops = { .size = sizeof(ops), .notify = notify };
	struct fid_mem_monitor *monitor = (struct fid_mem_monitor *) bfid;
	int ret = 0;

	(void) fid;
	if (flags)
		return -FI_EBADFLAGS;
	if (!monitor || !is_monitor(monitor))
		return -FI_EINVAL;
	pthread_mutex_lock(&mon.joining);
	monitor_inherit();
	if (mon.watcher_cnt || atomic_load(&mon.foreign)) {
		FAB_ERROR("fi_import_fid: a memory monitor is in use already; import one before the first domain is "
			  "opened");
		ret = -FI_EBUSY;
	} else {
		monitor->fid.ops = &fid_ops;
		monitor->import_ops = &ops;
		atomic_store(&mon.foreign, monitor);
	}
	pthread_mutex_unlock(&mon.joining);
	return ret;
}

static int monitor_close(struct fid *fid)
{
	(void) fid;
	atomic_flag_clear(&is_open);
	return 0;
}

int fab_monitor_open(struct fid **fid, void *context)
{
	static struct fi_ops ops = {
		.size = sizeof(struct fi_ops),
		.close = monitor_close,
		.bind = monitor_bind,
		.control = fab_fid_no_control,
		.ops_open = fab_fid_no_ops_open,
	};
	static struct fid cache = { .fclass = FI_CLASS_MR_CACHE, .ops = &ops };

	if (atomic_flag_test_and_set(&is_open))
		return -FI_EALREADY;
	cache.context = context;
	*fid = &cache;
	return 0;
}

/* ---- parameters ---- */

void fab_monitor_init(void)
{
	char *name;

	fi_param_define(NULL, "mr_cache_max_size", FI_PARAM_SIZE_T,
			"Bytes of memory that a domain keeps registered while no transfer uses them (default: no "
			"limit)");
	fi_param_define(NULL, "mr_cache_max_count", FI_PARAM_SIZE_T,
			"Regions that a domain keeps registered while no transfer uses them; 0: each transfer "
			"registers its buffers (default: 1024)");
	fi_param_define(NULL, "mr_cache_monitor", FI_PARAM_STRING,
			"How the cache of registrations learns that memory was unmapped: userfaultfd, or disabled, "
			"which turns the cache off; memhooks means userfaultfd here (default: userfaultfd)");
	fi_param_get_size_t(NULL, "mr_cache_max_size", &fab_monitor.max_size);
	fi_param_get_size_t(NULL, "mr_cache_max_count", &fab_monitor.max_cnt);
	fab_monitor.max_cnt = fab_min(fab_monitor.max_cnt, (size_t) MAX_CNT_LIMIT);
	if (fi_param_get_str(NULL, "mr_cache_monitor", &name))
		return;
	mon.off = !strcasecmp(name, "disabled");
	if (!mon.off && strcasecmp(name, "userfaultfd") && strcasecmp(name, "uffd") && strcasecmp(name, "memhooks"))
		FAB_WARN("FI_MR_CACHE_MONITOR is %s; the monitors are userfaultfd and disabled. userfaultfd stays in "
			 "force", name);
}
