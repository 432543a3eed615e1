/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queues and engines with more than one thread: no wake-up is lost through any wait object, whoever makes the progress;
 * the progress thread works while nobody else does, and otherwise stays out of the way. Several that sleep: sleepers.c.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include "net.h"
#include "common/queue/queue.h"

/* Wait sets: programs that use them must still be served. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define ROUNDS		2000

static int setup_auto(void **state)
{
	(void) state;
	return net_begin((struct net_attr) { .engine = FI_PROGRESS_AUTO });
}

/* ---- a game of one completion at a time ---- */

/* The producer queues completion n when the consumer has taken n - 1, so that each must wake the consumer. */
struct game {
	struct fab_cq *cq;
	struct fid_wait *set;
	struct feed *feed;		/* the completion comes as data: someone must make the progress */
	struct fab_cq *other;		/* a CQ of the same engine, read by the producer: so it is often that thread */
	_Atomic uint32_t taken;
	int fd;
	struct fi_mutex_cond mc;
};

static void *produce(void *arg)
{
	struct game *game = arg;
	struct fi_cq_entry entry;

	for (uint32_t n = 1; n <= ROUNDS; n++) {
		if (game->feed)
			feed_write(game->feed);
		else
			net_comp(game->cq, n);
		while (atomic_load(&game->taken) < n) {
			if (game->other)
				fi_cq_read(&game->other->cq_fid, &entry, 1);
			sched_yield();
		}
	}
	return NULL;
}

static bool take(struct game *game)
{
	struct fi_cq_entry entry;
	ssize_t ret = fi_cq_read(&game->cq->cq_fid, &entry, 1);

	if (ret == -FI_EAGAIN)
		return false;
	assert_int_equal(ret, 1);
	atomic_fetch_add(&game->taken, 1);
	return true;
}

static void consume_by_sread(struct game *game)
{
	struct fi_cq_entry entry;

	while (game->taken < ROUNDS) {
		assert_int_equal(fi_cq_sread(&game->cq->cq_fid, &entry, 1, NULL, -1), 1);
		atomic_fetch_add(&game->taken, 1);
	}
}

/* As fi_poll(3) wants it: never sleep on the descriptor without a word from fi_trywait. */
static void consume_by_fd(struct game *game)
{
	struct fid *fid = game->set ? &game->set->fid : &game->cq->cq_fid.fid;
	struct pollfd pollfd = { .fd = game->fd, .events = POLLIN };

	while (game->taken < ROUNDS) {
		if (!fab_trywait(&net.fabric.fabric_fid, &fid, 1))
			assert_int_equal(poll(&pollfd, 1, -1), 1);
		while (take(game))
			;
	}
}

/* Without a word from fi_trywait. */
static void consume_by_fd_alone(struct game *game)
{
	struct pollfd pollfd = { .fd = game->fd, .events = POLLIN };

	while (game->taken < ROUNDS) {
		assert_int_equal(poll(&pollfd, 1, -1), 1);
		while (take(game))
			;
	}
}

/* The mutex is held from looking to sleeping. */
static void consume_by_cond(struct game *game)
{
	pthread_mutex_lock(game->mc.mutex);
	while (game->taken < ROUNDS) {
		if (!take(game))
			pthread_cond_wait(game->mc.cond, game->mc.mutex);
	}
	pthread_mutex_unlock(game->mc.mutex);
}

static void consume_by_set(struct game *game)
{
	while (game->taken < ROUNDS) {
		assert_int_equal(fi_wait(game->set, -1), 0);
		take(game);
	}
}

enum source { DIRECT, DATA, DATA_AND_OTHER_READER };

static void play(struct fi_cq_attr attr, void (*consume)(struct game *game), enum source source)
{
	struct game game = { .set = attr.wait_set };
	struct fid *fid;
	pthread_t producer;
	struct feed feed;

	game.cq = net_cq(&net, attr);
	feed = (struct feed) { .cq = game.cq };
	fid = game.set ? &game.set->fid : &game.cq->cq_fid.fid;
	if (consume == consume_by_cond)
		assert_int_equal(fi_control(fid, FI_GETWAIT, &game.mc), 0);
	else if (consume == consume_by_fd || consume == consume_by_fd_alone)
		assert_int_equal(fi_control(fid, FI_GETWAIT, &game.fd), 0);
	if (source != DIRECT) {
		feed_open(&feed, game.cq->wait.engine);
		game.feed = &feed;
	}
	if (source == DATA_AND_OTHER_READER)
		game.other = net_cq(&net, (struct fi_cq_attr) { 0 });

	producer = thread_start(produce, &game);
	consume(&game);
	pthread_join(producer, NULL);

	if (game.feed)
		feed_close(&feed);
	if (game.other)
		net_shut(&game.other->cq_fid.fid);
	net_shut(&game.cq->cq_fid.fid);
}

static void play_all(enum fi_wait_obj obj, void (*consume)(struct game *game))
{
	for (int source = DIRECT; source <= DATA_AND_OTHER_READER; source++)
		play((struct fi_cq_attr) { .wait_obj = obj }, consume, (enum source) source);
}

static void sread_misses_nothing(void **state)
{
	(void) state;
	play_all(FI_WAIT_UNSPEC, consume_by_sread);
	play_all(FI_WAIT_FD, consume_by_sread);
}

static void yielding_sread_misses_nothing(void **state)
{
	(void) state;
	play_all(FI_WAIT_YIELD, consume_by_sread);
}

static void fd_with_trywait_misses_nothing(void **state)
{
	(void) state;
	play_all(FI_WAIT_FD, consume_by_fd);
}

static void fd_without_trywait_misses_nothing(void **state)
{
	(void) state;
	play_all(FI_WAIT_FD, consume_by_fd_alone);
}

static void mutex_cond_misses_nothing(void **state)
{
	(void) state;
	play_all(FI_WAIT_MUTEX_COND, consume_by_cond);
	play_all(FI_WAIT_MUTEX_COND, consume_by_sread);
}

static void play_set(enum fi_wait_obj obj, void (*consume)(struct game *game))
{
	struct fi_wait_attr attr = { .wait_obj = obj };
	struct fid_wait *set;

	assert_int_equal(fab_wait_open(&net.fabric.fabric_fid, &attr, &set), 0);
	for (int source = DIRECT; source <= DATA_AND_OTHER_READER; source++)
		play((struct fi_cq_attr) { .wait_obj = FI_WAIT_SET, .wait_set = set }, consume, (enum source) source);
	net_shut(&set->fid);
}

static void wait_set_misses_nothing(void **state)
{
	(void) state;
	play_set(FI_WAIT_UNSPEC, consume_by_set);
	play_set(FI_WAIT_FD, consume_by_fd);
	play_set(FI_WAIT_MUTEX_COND, consume_by_cond);
}

/* ---- the progress thread ---- */

static void progress_thread_needs_no_application(void **state)
{
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { 0 });
	struct feed feed = { .cntr = cntr };

	(void) state;
	feed_open(&feed, cntr->wait.engine);
	for (uint64_t n = 1; n <= 200; n++) {
		feed_write(&feed);
		while (atomic_load(&cntr->value) < n)		/* not a call: nobody else makes progress */
			sched_yield();
	}
	feed_close(&feed);
	net_shut(&cntr->cntr_fid.fid);
}

static void auto_progress_misses_nothing(void **state)
{
	(void) state;
	play_all(FI_WAIT_UNSPEC, consume_by_sread);
	play_all(FI_WAIT_FD, consume_by_fd);
	play_all(FI_WAIT_FD, consume_by_fd_alone);
	play_all(FI_WAIT_MUTEX_COND, consume_by_cond);
	play_all(FI_WAIT_YIELD, consume_by_sread);
}

struct late {
	struct fab_flush flush;
	struct fab_timer timer;
	_Atomic uint32_t done;
};

static void late_flush(struct fab_flush *flush)
{
	atomic_fetch_add(&fab_container(flush, struct late, flush)->done, 1);
}

static void late_fire(struct fab_timer *timer)
{
	atomic_fetch_add(&fab_container(timer, struct late, timer)->done, 1);
}

/* What the application queues, or starts, gets the thread out of its sleep. */
static void progress_thread_flushes_and_fires(void **state)
{
	struct fab_engine *engine = &net.domain.engine;
	struct late late = { .done = 0 };

	(void) state;
	fab_flush_init(&late.flush, late_flush);
	fab_timer_init(&late.timer, late_fire);
	for (uint32_t n = 1; n <= 200; n++) {
		fab_engine_lock(engine);
		fab_engine_flush_later(engine, &late.flush);
		fab_engine_unlock(engine);
		thread_await(&late.done, 2 * n - 1);
		fab_engine_lock(engine);
		fab_timer_start(engine, &late.timer, fab_now_ns() + 10000);
		fab_engine_unlock(engine);
		thread_await(&late.done, 2 * n);
	}
}

static void idle_progress_thread_sleeps(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	struct feed feed = { .cq = cq };
	struct fi_cq_entry entry;

	(void) state;
	feed_open(&feed, cq->wait.engine);
	feed_write(&feed);
	assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, -1), 1);
	spy_reset();
	assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 50), -FI_EAGAIN);
	assert_in_range(spy.all, 1, 20);
	feed_close(&feed);
	net_shut(&cq->cq_fid.fid);
}

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

/* While the application polls, the thread is not woken for every message. (On a machine with other things to do the
 * processor is taken from the application now and then, and the thread rightly steps in: so the best of many tries
 * counts.) */
static void progress_thread_keeps_away_from_a_polling_application(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	static struct feed feed;	/* the engine has it as a source until net_teardown(), also if a check fails */
	struct fi_cq_entry entry;
	long best = LONG_MAX, before;

	(void) state;
	feed.cq = cq;
	feed_open(&feed, cq->wait.engine);
	for (int try = 0; try < 200 && best > 100; try++) {
		for (int i = 0; i < 1000; i++)
			fi_cq_read(&cq->cq_fid, &entry, 1);
		before = switches();
		for (int message = 0; message < 1000; message++) {
			feed_write(&feed);
			for (int i = 0; i < 10; i++)
				fi_cq_read(&cq->cq_fid, &entry, 1);
		}
		best = fab_min(best, switches() - before);
	}
	assert_in_range(best, 0, 100);
	feed_close(&feed);
	net_shut(&cq->cq_fid.fid);
}

#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, net_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sread_misses_nothing, net_setup),
		TEST(yielding_sread_misses_nothing, net_setup),
		TEST(fd_with_trywait_misses_nothing, net_setup),
		TEST(fd_without_trywait_misses_nothing, net_setup),
		TEST(mutex_cond_misses_nothing, net_setup),
		TEST(wait_set_misses_nothing, net_setup),
		TEST(progress_thread_needs_no_application, setup_auto),
		TEST(auto_progress_misses_nothing, setup_auto),
		TEST(progress_thread_flushes_and_fires, setup_auto),
		TEST(idle_progress_thread_sleeps, setup_auto),
		TEST(progress_thread_keeps_away_from_a_polling_application, setup_auto),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
