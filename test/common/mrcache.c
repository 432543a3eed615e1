/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The cache of registrations over the process's memory monitor: a registration that is cached is watched, whatever else
 * is registered, evicted or refused in the same page meanwhile. A provider stands in that registers nothing, but may
 * act in the middle of a registration. Where the kernel gives no userfaultfd, nothing is cached; the tests are skipped.
 */
#include "base/unit.h"

#include "common/mrcache/mrcache.h"
#include "monitor.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_prov.h>

#define PART	512		/* bytes of a buffer: several share a page */
#define BUFS	4

static struct fab_core_ops core = { .size = sizeof(core), .monitor = &fab_monitor };
static struct fi_provider prov = { .context.internal = { &core, FAB_CORE_MAGIC } };

static struct fab_mrc cache;
static uint8_t *page;
static unsigned live, made;
static int reg_err;		/* of the next registration, once */
static void (*during)(void);	/* called in the middle of the next registration, once; or NULL */

static int reg(struct fab_mrc *of, void *addr, size_t len, uint64_t access, void **region)
{
	void (*act)(void) = during;
	int err = reg_err;

	(void) of;
	(void) len;
	(void) access;
	during = NULL;
	reg_err = 0;
	if (act)
		act();
	if (err)
		return err;
	live++;
	made++;
	*region = addr;
	return 0;
}

static void dereg(struct fab_mrc *of, void *region)
{
	(void) of;
	(void) region;
	live--;
}

static const struct fab_mrc_ops ops = { .reg = reg, .dereg = dereg };

static uint8_t *buf(unsigned i)
{
	return page + i * PART;
}

/* One transfer of len bytes. True if it found a registration. */
static bool use_bytes(uint8_t *addr, size_t len)
{
	unsigned before = made;
	struct fab_pin *pin;

	assert_int_equal(fab_mrc_get(&cache, addr, len, 1, &pin), 0);
	fab_mrc_put(&cache, pin);
	fab_mrc_reap(&cache);
	return made == before;
}

static bool use(unsigned i)
{
	return use_bytes(buf(i), PART);
}

/* The page becomes another one. */
static void change_page(void)
{
	assert_int_equal(madvise(page, (size_t) sysconf(_SC_PAGESIZE), MADV_DONTNEED), 0);
}

static void open_with(size_t max_cnt)
{
	fab_monitor.max_cnt = max_cnt;
	assert_int_equal(fab_mrc_init(&cache, &prov, &ops), 0);
}

static int setup(void **state)
{
	(void) state;
	page = mmap(NULL, (size_t) sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	made = 0;
	return page == MAP_FAILED;
}

static int teardown(void **state)
{
	(void) state;
	fab_mrc_fini(&cache);
	return munmap(page, (size_t) sysconf(_SC_PAGESIZE)) || live;
}

#define NEED_MONITOR()								\
	do {									\
		use(0);								\
		if (!use(0))							\
			unit_skip("the kernel gives no userfaultfd here");	\
	} while (0)

/* ---- eviction of a neighbour in the same page ---- */

/* The new registration takes the place of its neighbour, whose end does not end the watch of their page. */
static void neighbour_that_makes_room_leaves_the_page_watched(void **state)
{
	(void) state;
	open_with(1);
	NEED_MONITOR();
	assert_false(use(1));
	assert_true(use(1));
	change_page();
	assert_false(use(1));
}

/* The cache gives up what is idle when the device has no room. The registration that wanted it is tried again. */
static void neighbour_that_is_given_up_leaves_the_page_watched(void **state)
{
	(void) state;
	open_with(BUFS);
	NEED_MONITOR();
	reg_err = -FI_ENOMEM;
	assert_false(use(1));
	assert_true(use(1));
	change_page();
	assert_false(use(1));
}

/* While one is registered, others in its page are registered and evicted, as another thread does it. */
static void evict_others(void)
{
	for (unsigned i = 2; i < BUFS; i++)
		use(i);
	for (unsigned i = 2; i < BUFS; i++)
		use(i);
}

static void eviction_during_a_registration_leaves_the_page_watched(void **state)
{
	(void) state;
	open_with(1);
	NEED_MONITOR();
	during = evict_others;
	use(1);
	change_page();
	assert_false(use(1));
}

/* ---- bounds ---- */

static void least_recently_used_makes_room(void **state)
{
	(void) state;
	open_with(2);
	NEED_MONITOR();
	assert_false(use(1));
	assert_true(use(0));
	assert_false(use(2));
	assert_int_equal(live, 2);
	assert_true(use(0));
	assert_false(use(1));
	assert_int_equal(live, 2);
}

/* What is in use stays, and what finds no room is registered for its user alone. */
static void registration_in_use_is_not_evicted(void **state)
{
	struct fab_pin *pin, *other;

	(void) state;
	open_with(1);
	NEED_MONITOR();
	assert_int_equal(fab_mrc_get(&cache, buf(0), PART, 1, &pin), 0);
	assert_int_equal(fab_mrc_get(&cache, buf(1), PART, 1, &other), 0);
	assert_int_equal(live, 2);
	assert_true(fab_mrc_put(&cache, other));
	fab_mrc_reap(&cache);
	assert_int_equal(live, 1);
	assert_false(fab_mrc_put(&cache, pin));
	assert_true(use(0));
}

/* ---- changes ---- */

/* Memory that changes while it is registered is not found again; that of others does not matter. */
static void change_during_a_registration_is_noticed(void **state)
{
	(void) state;
	open_with(BUFS);
	NEED_MONITOR();
	during = change_page;
	assert_false(use(1));
	assert_false(use(1));
	assert_true(use(1));
}

static void change_other_page(void)
{
	size_t size = (size_t) sysconf(_SC_PAGESIZE);
	uint8_t *other = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(other != MAP_FAILED);
	use_bytes(other, size);
	munmap(other, size);
}

static void change_elsewhere_does_not_matter(void **state)
{
	(void) state;
	open_with(BUFS);
	NEED_MONITOR();
	during = change_other_page;
	assert_false(use(1));
	assert_true(use(1));
}

/* ---- between a change and its event ---- */

static void *unmap_page(void *arg)
{
	munmap(page, (size_t) sysconf(_SC_PAGESIZE));
	return arg;
}

/* A thread unmaps memory, of which the monitor has not heard yet: nothing that is cached may be used. The monitor needs
 * the lock to hear of it. */
static void nothing_is_found_until_a_change_is_told(void **state)
{
	size_t size = (size_t) sysconf(_SC_PAGESIZE);
	unsigned char resident;
	pthread_t thread;
	bool quiet;

	(void) state;
	open_with(BUFS);
	NEED_MONITOR();
	assert_true(fab_monitor.quiet());
	fab_monitor.lock();
	assert_int_equal(pthread_create(&thread, NULL, unmap_page, NULL), 0);
	while (!mincore(page, size, &resident))
		sched_yield();
	assert_true(mmap(page, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			 0) == page);
	quiet = fab_monitor.quiet();
	fab_monitor.unlock();
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(quiet);
	assert_true(fab_monitor.quiet());
	assert_false(use(0));
}

/* ---- an imported monitor that watches bytes as it is told ---- */

static uint8_t watched[BUFS * PART];

static void mark(const void *addr, size_t len, uint8_t value)
{
	memset(&watched[(const uint8_t *) addr - page], value, len);
}

static int mon_start(struct fid_mem_monitor *monitor)
{
	(void) monitor;
	return 0;
}

static void mon_stop(struct fid_mem_monitor *monitor)
{
	(void) monitor;
}

static int mon_subscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void) monitor;
	mark(addr, len, 1);
	return 0;
}

static void mon_unsubscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void) monitor;
	mark(addr, len, 0);
}

static bool mon_valid(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void) monitor;
	(void) addr;
	(void) len;
	return true;
}

/* Two registrations have some bytes in common. The end of one does not end the other's watch. */
static void imported_monitor_watches_what_is_cached(void **state)
{
	static struct fi_ops_mem_monitor mon_ops = {
		.size = sizeof(mon_ops), .start = mon_start, .stop = mon_stop, .subscribe = mon_subscribe,
		.unsubscribe = mon_unsubscribe, .valid = mon_valid,
	};
	static struct fid_mem_monitor monitor = { .fid.fclass = FI_CLASS_MEM_MONITOR, .export_ops = &mon_ops };

	(void) state;
	assert_int_equal(fi_import(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &monitor.fid, NULL), 0);
	open_with(2);
	use_bytes(page, 2 * PART);
	use_bytes(page + PART, 2 * PART);
	/* the first one goes */
	use_bytes(page + 3 * PART, PART);
	assert_true(use_bytes(page + PART, 2 * PART));
	for (size_t i = 0; i < sizeof(watched); i++)
		assert_int_equal(watched[i], i >= PART);
	assert_int_equal(fi_close(&monitor.fid), 0);
	assert_false(use_bytes(page + PART, 2 * PART));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(neighbour_that_makes_room_leaves_the_page_watched),
		CASE(neighbour_that_is_given_up_leaves_the_page_watched),
		CASE(eviction_during_a_registration_leaves_the_page_watched),
		CASE(least_recently_used_makes_room),
		CASE(registration_in_use_is_not_evicted),
		CASE(change_during_a_registration_is_noticed),
		CASE(change_elsewhere_does_not_matter),
		CASE(nothing_is_found_until_a_change_is_told),
		CASE(imported_monitor_watches_what_is_cached),
	};

	return cmocka_run_group_tests_name("common/mrcache", tests, NULL, NULL);
}
