/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queues and engines with more than one thread: no wake-up is lost through any wait object, whoever makes the progress;
 * fi_cq_signal ends every sleep; the progress thread works while nobody else does, and otherwise stays out of the way.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include "net.h"

/* Wait sets: programs that use them must still be served. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define ROUNDS		2000

static int setup_auto(void **state)
{
	(void) state;
	return net_begin((struct net_attr) { .progress = FI_PROGRESS_AUTO });
}

static int setup_domain(void **state)
{
	(void) state;
	return net_begin((struct net_attr) { .threading = FI_THREAD_DOMAIN });
}

static pthread_t start(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	return thread;
}

/* Until others have got as far; gives them the processor. */
static void await(_Atomic uint32_t *value, uint32_t at_least)
{
	while (atomic_load(value) < at_least)
		sched_yield();
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
			else
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
		feed_open(&feed, game.cq->progress);
		game.feed = &feed;
	}
	if (source == DATA_AND_OTHER_READER)
		game.other = net_cq(&net, (struct fi_cq_attr) { 0 });

	producer = start(produce, &game);
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

/* ---- several sleepers ---- */

struct sleeper {
	struct fab_cq *cq;
	_Atomic uint32_t got, ended;
	_Atomic ssize_t ret;
};

static void *sleep_until_told(void *arg)
{
	struct sleeper *sleeper = arg;
	struct fi_cq_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_sread(&sleeper->cq->cq_fid, &entry, 1, NULL, -1)) == 1)
		atomic_fetch_add(&sleeper->got, 1);
	sleeper->ret = ret;
	atomic_fetch_add(&sleeper->ended, 1);
	return NULL;
}

static uint32_t sleeping(struct fab_cq *cq)
{
	uint32_t cnt;

	fab_progress_lock(cq->progress);
	cnt = cq->wait.sleepers;
	fab_progress_unlock(cq->progress);
	return cnt;
}

static void await_sleepers(struct fab_cq *cq, uint32_t cnt)
{
	while (sleeping(cq) != cnt)
		sched_yield();
}

/* One call ends the calls of all who wait, and only these. */
static void signal_ends_every_sread(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	struct sleeper sleepers[4];
	struct fi_cq_entry entry;
	pthread_t threads[4];
	uint64_t begin;

	(void) state;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 4; i++) {
			sleepers[i] = (struct sleeper) { .cq = cq };
			threads[i] = start(sleep_until_told, &sleepers[i]);
		}
		await_sleepers(cq, 4);
		assert_int_equal(fi_cq_signal(&cq->cq_fid), 0);
		for (int i = 0; i < 4; i++) {
			pthread_join(threads[i], NULL);
			assert_int_equal(sleepers[i].ret, -FI_EAGAIN);
		}
	}
	begin = fab_now_ns();
	assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 20), -FI_EAGAIN);
	assert_in_range(elapsed_ms(begin), 20, 10000);
	net_shut(&cq->cq_fid.fid);
}

/* Several threads in sread share what comes: each completion is read once, and none is left while somebody sleeps. */
static void sleepers_share_completions(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	struct sleeper sleeper = { .cq = cq };
	pthread_t threads[3];

	(void) state;
	for (int i = 0; i < 3; i++)
		threads[i] = start(sleep_until_told, &sleeper);
	for (uint32_t n = 1; n <= ROUNDS; n++) {
		net_comp(cq, n);
		if (n % 7 == 0)
			await(&sleeper.got, n);
	}
	await(&sleeper.got, ROUNDS);
	while (atomic_load(&sleeper.ended) < 3) {
		fi_cq_signal(&cq->cq_fid);
		sched_yield();
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(sleeper.got, ROUNDS);
	net_shut(&cq->cq_fid.fid);
}

/* Two sleepers, one of whom takes it: the other one must sleep on, not spin on a signal that nobody takes back. */
static void sleeper_that_comes_too_late_sleeps_on(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	struct sleeper sleeper = { .cq = cq };
	struct fi_cq_entry entry;
	pthread_t threads[2];

	(void) state;
	for (int i = 0; i < 2; i++)
		threads[i] = start(sleep_until_told, &sleeper);
	await_sleepers(cq, 2);
	net_comp(cq, 1);
	await(&sleeper.got, 1);
	await_sleepers(cq, 2);
	spy_reset();
	assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 50), -FI_EAGAIN);
	assert_in_range(spy.all, 0, 30);
	await_sleepers(cq, 2);
	fi_cq_signal(&cq->cq_fid);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	net_shut(&cq->cq_fid.fid);
}

static void *sleep_often(void *arg)
{
	struct sleeper *sleeper = arg;
	struct fi_cq_entry entry;

	for (int i = 0; i < ROUNDS; i++) {
		assert_int_equal(fi_cq_sread(&sleeper->cq->cq_fid, &entry, 1, NULL, -1), -FI_EAGAIN);
		atomic_fetch_add(&sleeper->ended, 1);
	}
	return NULL;
}

/* Each call ends one sread, whether it is asleep, on its way there, or on its way back from the call before. */
static void no_signal_is_lost(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	struct sleeper sleeper = { .cq = cq };
	pthread_t thread = start(sleep_often, &sleeper);

	(void) state;
	for (uint32_t n = 1; n <= ROUNDS; n++) {
		fi_cq_signal(&cq->cq_fid);
		await(&sleeper.ended, n);
	}
	pthread_join(thread, NULL);
	net_shut(&cq->cq_fid.fid);
}

/* The application serialises what it does with a domain, but somebody must be able to end its sleep. */
static void no_signal_is_lost_without_a_lock(void **state)
{
	assert_ptr_equal(net.domain.progress.lock.ops, fab_lock_kinds[FAB_LOCK_NONE]);
	no_signal_is_lost(state);
}

/* FI_WAIT_MUTEX_COND needs a thread, and so gives a domain a lock that had none. */
static void mutex_cond_works_in_a_serialised_domain(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_MUTEX_COND });
	struct feed feed = { .cq = cq };
	struct fi_cq_entry entry;
	struct fi_mutex_cond mc;

	(void) state;
	assert_int_equal(fi_control(&cq->cq_fid.fid, FI_GETWAIT, &mc), 0);
	feed_open(&feed, cq->progress);
	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(mc.mutex);
		feed_write(&feed);
		while (fi_cq_read(&cq->cq_fid, &entry, 1) == -FI_EAGAIN)
			pthread_cond_wait(mc.cond, mc.mutex);
		pthread_mutex_unlock(mc.mutex);
	}
	feed_close(&feed);
	/* closed with something to tell while the mutex is held: must not wait for it */
	pthread_mutex_lock(mc.mutex);
	net_comp(cq, 1);
	net_shut(&cq->cq_fid.fid);
}

/* ---- counters ---- */

static void *add_many(void *arg)
{
	struct fab_cntr *cntr = arg;

	for (int i = 0; i < ROUNDS; i++) {
		fab_progress_lock(cntr->progress);
		fab_cntr_inc(cntr, 1);
		fab_progress_unlock(cntr->progress);
		fi_cntr_add(&cntr->cntr_fid, 1);
	}
	return NULL;
}

static void counter_wakes_each_who_waits_for_less(void **state)
{
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { .wait_obj = FI_WAIT_UNSPEC });
	pthread_t threads[2];

	(void) state;
	for (int i = 0; i < 2; i++)
		threads[i] = start(add_many, cntr);
	for (uint64_t at = 1; at <= 4 * ROUNDS; at += 97)
		assert_int_equal(fi_cntr_wait(&cntr->cntr_fid, at, -1), 0);
	assert_int_equal(fi_cntr_wait(&cntr->cntr_fid, 4 * ROUNDS, -1), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(fi_cntr_read(&cntr->cntr_fid), 4 * ROUNDS);
	net_shut(&cntr->cntr_fid.fid);
}

/* ---- event queues ---- */

struct events {
	struct fab_eq *eq;
	_Atomic uint32_t taken;
	_Atomic bool stop;
};

static void *write_events(void *arg)
{
	struct events *events = arg;
	struct fi_eq_entry entry = { 0 };

	for (uint32_t n = 1; n <= ROUNDS; n++) {
		/* as a callback of a domain's engine does */
		fab_progress_lock(&net.domain.progress);
		fab_eq_write(events->eq, FI_NOTIFY, &entry, sizeof(entry), NULL);
		fab_progress_unlock(&net.domain.progress);
		await(&events->taken, n);
	}
	return NULL;
}

static void eq_sread_misses_nothing(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_MUTEX_COND, FI_WAIT_YIELD };

	(void) state;
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct events events = { .eq = net_eq(&net, (struct fi_eq_attr) { .wait_obj = objs[i] }) };
		struct fi_eq_entry entry;
		uint32_t event;
		pthread_t writer;

		assert_int_equal(fab_eq_add_engine(events.eq, &net.domain.progress), 0);
		writer = start(write_events, &events);
		while (events.taken < ROUNDS) {
			assert_int_equal(fi_eq_sread(&events.eq->eq_fid, &event, &entry, sizeof(entry), -1, 0),
					 sizeof(entry));
			atomic_fetch_add(&events.taken, 1);
		}
		pthread_join(writer, NULL);
		fab_eq_del_engine(events.eq, &net.domain.progress);
		net_shut(&events.eq->eq_fid.fid);
	}
}

static void *sread_one_event(void *arg)
{
	struct events *events = arg;
	struct fi_eq_entry entry;
	uint32_t event;

	if (fi_eq_sread(&events->eq->eq_fid, &event, &entry, sizeof(entry), -1, 0) == sizeof(entry))
		events->taken++;
	return NULL;
}

/* An endpoint bound to the EQ while somebody sleeps on it wakes the sleeper, too. */
static void engine_added_meanwhile_wakes_a_sleeper(void **state)
{
	struct events events = { .eq = net_eq(&net, (struct fi_eq_attr) { .wait_obj = FI_WAIT_UNSPEC }) };
	struct feed feed = { .eq = events.eq };
	pthread_t thread = start(sread_one_event, &events);

	(void) state;
	for (;;) {
		uint32_t sleepers;

		pthread_mutex_lock(&events.eq->lock);
		sleepers = events.eq->wait.sleepers;
		pthread_mutex_unlock(&events.eq->lock);
		if (sleepers)
			break;
		sched_yield();
	}
	feed_open(&feed, &net.domain.progress);
	assert_int_equal(fab_eq_add_engine(events.eq, &net.domain.progress), 0);
	assert_int_equal(atomic_load(&net.domain.progress.watchers), 1);
	feed_write(&feed);
	pthread_join(thread, NULL);
	assert_int_equal(events.taken, 1);
	assert_int_equal(atomic_load(&net.domain.progress.watchers), 0);
	feed_close(&feed);
	fab_eq_del_engine(events.eq, &net.domain.progress);
	net_shut(&events.eq->eq_fid.fid);
}

static void *read_events(void *arg)
{
	struct events *events = arg;
	struct fi_eq_entry entry;
	uint32_t event;

	while (!events->stop) {
		if (fi_eq_read(&events->eq->eq_fid, &event, &entry, sizeof(entry), 0) > 0)
			events->taken++;
	}
	return NULL;
}

/* An engine is gone, and may be freed, when fab_eq_del_engine() returns, though others read the EQ all the time. */
static void engine_goes_away_under_readers(void **state)
{
	struct events events = { .eq = net_eq(&net, (struct fi_eq_attr) { .wait_obj = FI_WAIT_FD }) };
	pthread_t threads[2];

	(void) state;
	for (int i = 0; i < 2; i++)
		threads[i] = start(read_events, &events);
	for (uint32_t n = 1; n <= 200; n++) {
		struct fab_progress *engine = calloc(1, sizeof(*engine));
		struct feed feed = { .eq = events.eq };

		assert_non_null(engine);
		assert_int_equal(fab_progress_init(engine, &(struct fab_progress_attr) { .shared = true }), 0);
		feed_open(&feed, engine);
		assert_int_equal(fab_eq_add_engine(events.eq, engine), 0);
		feed_write(&feed);
		await(&events.taken, n);
		fab_eq_del_engine(events.eq, engine);
		feed_close(&feed);
		fab_progress_fini(engine);
		memset(engine, 0xee, sizeof(*engine));
		free(engine);
	}
	events.stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	net_shut(&events.eq->eq_fid.fid);
}

/* ---- the progress thread ---- */

static void progress_thread_needs_no_application(void **state)
{
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { 0 });
	struct feed feed = { .cntr = cntr };

	(void) state;
	feed_open(&feed, cntr->progress);
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
	struct fab_progress *progress = &net.domain.progress;
	struct late late = { .done = 0 };

	(void) state;
	fab_flush_init(&late.flush, late_flush);
	fab_timer_init(&late.timer, late_fire);
	for (uint32_t n = 1; n <= 200; n++) {
		fab_progress_lock(progress);
		fab_progress_flush_later(progress, &late.flush);
		fab_progress_unlock(progress);
		await(&late.done, 2 * n - 1);
		fab_progress_lock(progress);
		fab_timer_start(progress, &late.timer, fab_now_ns() + 10000);
		fab_progress_unlock(progress);
		await(&late.done, 2 * n);
	}
}

static void idle_progress_thread_sleeps(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	struct feed feed = { .cq = cq };
	struct fi_cq_entry entry;

	(void) state;
	feed_open(&feed, cq->progress);
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
 * processor is taken from the application now and then, and the thread rightly steps in: so the best of a few tries
 * counts.) */
static void progress_thread_keeps_away_from_a_polling_application(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct feed feed = { .cq = cq };
	struct fi_cq_entry entry;
	long best = LONG_MAX, before;

	(void) state;
	feed_open(&feed, cq->progress);
	for (int try = 0; try < 20 && best > 100; try++) {
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
		TEST(signal_ends_every_sread, net_setup),
		TEST(sleepers_share_completions, net_setup),
		TEST(sleeper_that_comes_too_late_sleeps_on, net_setup),
		TEST(no_signal_is_lost, net_setup),
		TEST(no_signal_is_lost_without_a_lock, setup_domain),
		TEST(mutex_cond_works_in_a_serialised_domain, setup_domain),
		TEST(counter_wakes_each_who_waits_for_less, net_setup),
		TEST(eq_sread_misses_nothing, net_setup),
		TEST(engine_added_meanwhile_wakes_a_sleeper, net_setup),
		TEST(engine_goes_away_under_readers, net_setup),
		TEST(progress_thread_needs_no_application, setup_auto),
		TEST(auto_progress_misses_nothing, setup_auto),
		TEST(progress_thread_flushes_and_fires, setup_auto),
		TEST(idle_progress_thread_sleeps, setup_auto),
		TEST(progress_thread_keeps_away_from_a_polling_application, setup_auto),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
