/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Several threads that sleep on queues and counters: each is woken when it is its turn, fi_cq_signal ends every sleep,
 * and engines may come and go meanwhile.
 */
#include <pthread.h>
#include <sched.h>
#include "net.h"
#include "common/queue/queue.h"

#define ROUNDS		2000

static int setup_domain(void **state)
{
	(void) state;
	return net_begin((struct net_attr) { .threading = FI_THREAD_DOMAIN, .control = FI_PROGRESS_CONTROL_UNIFIED });
}

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

	fab_engine_lock(cq->wait.engine);
	cnt = cq->wait.sleepers;
	fab_engine_unlock(cq->wait.engine);
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
			threads[i] = thread_start(sleep_until_told, &sleepers[i]);
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
		threads[i] = thread_start(sleep_until_told, &sleeper);
	for (uint32_t n = 1; n <= ROUNDS; n++) {
		net_comp(cq, n);
		if (n % 7 == 0)
			thread_await(&sleeper.got, n);
	}
	thread_await(&sleeper.got, ROUNDS);
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
		threads[i] = thread_start(sleep_until_told, &sleeper);
	await_sleepers(cq, 2);
	net_comp(cq, 1);
	thread_await(&sleeper.got, 1);
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
	pthread_t thread = thread_start(sleep_often, &sleeper);

	(void) state;
	for (uint32_t n = 1; n <= ROUNDS; n++) {
		fi_cq_signal(&cq->cq_fid);
		thread_await(&sleeper.ended, n);
	}
	pthread_join(thread, NULL);
	net_shut(&cq->cq_fid.fid);
}

/* The application serialises what it does with a domain, but somebody must be able to end its sleep. */
static void no_signal_is_lost_without_a_lock(void **state)
{
	assert_ptr_equal(net.domain.engine.lock.ops, fab_lock_kinds[FAB_LOCK_NONE]);
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
	feed_open(&feed, cq->wait.engine);
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
		fab_engine_lock(cntr->wait.engine);
		fab_cntr_inc(cntr, 1);
		fab_engine_unlock(cntr->wait.engine);
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
		threads[i] = thread_start(add_many, cntr);
	for (uint64_t at = 1; at <= 4 * ROUNDS; at += 97)
		assert_int_equal(fi_cntr_wait(&cntr->cntr_fid, at, -1), 0);
	assert_int_equal(fi_cntr_wait(&cntr->cntr_fid, 4 * ROUNDS, -1), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(fi_cntr_read(&cntr->cntr_fid), 4 * ROUNDS);
	net_shut(&cntr->cntr_fid.fid);
}

/* ---- counters ---- */

struct waiter {
	struct fab_cntr *cntr;
	uint64_t threshold;
	_Atomic uint32_t ended;
	int ret;
};

static void *wait_for_threshold(void *arg)
{
	struct waiter *waiter = arg;

	waiter->ret = fi_cntr_wait(&waiter->cntr->cntr_fid, waiter->threshold, 30000);
	atomic_fetch_add(&waiter->ended, 1);
	return NULL;
}

/* Each is woken at its own threshold, also the one that has slept for longer and waits for less. */
static void waiters_of_a_counter_have_thresholds_of_their_own(void **state)
{
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { .wait_obj = FI_WAIT_UNSPEC });
	struct waiter waiters[] = { { cntr, .threshold = 2 }, { cntr, .threshold = 100 }, { cntr, .threshold = 3 } };
	pthread_t threads[fab_countof(waiters)];
	uint32_t sleepers;

	(void) state;
	for (size_t i = 0; i < fab_countof(waiters); i++) {
		threads[i] = thread_start(wait_for_threshold, &waiters[i]);
		do {
			sched_yield();
			fab_engine_lock(cntr->wait.engine);
			sleepers = cntr->wait.sleepers;
			fab_engine_unlock(cntr->wait.engine);
		} while (sleepers <= i);
	}
	assert_int_equal(fi_cntr_add(&cntr->cntr_fid, 2), 0);
	thread_await(&waiters[0].ended, 1);
	assert_int_equal(waiters[0].ret, 0);
	assert_int_equal(fi_cntr_add(&cntr->cntr_fid, 1), 0);
	thread_await(&waiters[2].ended, 1);
	assert_int_equal(waiters[2].ret, 0);
	if (waiters[1].ended)
		fail_msg("it ended with %d", waiters[1].ret);
	assert_int_equal(fi_cntr_add(&cntr->cntr_fid, 97), 0);
	for (size_t i = 0; i < fab_countof(waiters); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(waiters[1].ret, 0);
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
		fab_engine_lock(&net.domain.engine);
		fab_eq_write(events->eq, FI_NOTIFY, &entry, sizeof(entry), NULL);
		fab_engine_unlock(&net.domain.engine);
		thread_await(&events->taken, n);
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

		assert_int_equal(fab_eq_add_engine(events.eq, &net.domain.engine), 0);
		writer = thread_start(write_events, &events);
		while (events.taken < ROUNDS) {
			assert_int_equal(fi_eq_sread(&events.eq->eq_fid, &event, &entry, sizeof(entry), -1, 0),
					 sizeof(entry));
			atomic_fetch_add(&events.taken, 1);
		}
		pthread_join(writer, NULL);
		fab_eq_del_engine(events.eq, &net.domain.engine);
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
	pthread_t thread = thread_start(sread_one_event, &events);

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
	feed_open(&feed, &net.domain.engine);
	assert_int_equal(fab_eq_add_engine(events.eq, &net.domain.engine), 0);
	assert_int_equal(atomic_load(&net.domain.engine.watchers), 1);
	feed_write(&feed);
	pthread_join(thread, NULL);
	assert_int_equal(events.taken, 1);
	assert_int_equal(atomic_load(&net.domain.engine.watchers), 0);
	feed_close(&feed);
	fab_eq_del_engine(events.eq, &net.domain.engine);
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
		threads[i] = thread_start(read_events, &events);
	for (uint32_t n = 1; n <= 200; n++) {
		struct fab_engine *engine = calloc(1, sizeof(*engine));
		struct feed feed = { .eq = events.eq };

		assert_non_null(engine);
		assert_int_equal(fab_engine_init(engine, &(struct fab_engine_attr) { .shared = true }), 0);
		feed_open(&feed, engine);
		assert_int_equal(fab_eq_add_engine(events.eq, engine), 0);
		feed_write(&feed);
		thread_await(&events.taken, n);
		fab_eq_del_engine(events.eq, engine);
		feed_close(&feed);
		fab_engine_fini(engine);
		memset(engine, 0xee, sizeof(*engine));
		free(engine);
	}
	events.stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	net_shut(&events.eq->eq_fid.fid);
}

#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, net_teardown)

/* Threads are asleep on a queue when it settles on an engine: they wake for what comes there. */
static void sleepers_follow_their_queue_to_its_engine(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_FD, FI_WAIT_UNSPEC };
	struct net own;

	(void) state;
	net_open(&own, (struct net_attr) { .threading = FI_THREAD_COMPLETION });
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct fab_cq *cq = net_cq(&own, (struct fi_cq_attr) { .wait_obj = objs[i] });
		struct sleeper sleeper = { .cq = cq };
		struct feed feed = { .cq = cq };
		pthread_t thread = thread_start(sleep_until_told, &sleeper);

		await_sleepers(cq, 1);
		pthread_mutex_lock(&own.domain.engines.join_lock);
		assert_int_equal(fab_queue_settle_alone(&own.domain, &cq->wait), 0);
		pthread_mutex_unlock(&own.domain.engines.join_lock);
		assert_ptr_not_equal(cq->wait.engine, &own.domain.engine);
		await_sleepers(cq, 1);
		assert_int_equal(atomic_load(&own.domain.engine.watchers), 0);
		feed_open(&feed, cq->wait.engine);
		feed_write(&feed);
		while (!atomic_load(&sleeper.got))
			sched_yield();
		assert_int_equal(fi_cq_signal(&cq->cq_fid), 0);
		pthread_join(thread, NULL);
		assert_int_equal(atomic_load(&cq->wait.engine->watchers), 0);
		feed_close(&feed);
		net_shut(&cq->cq_fid.fid);
	}
	net_close(&own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(signal_ends_every_sread, net_setup),
		TEST(sleepers_share_completions, net_setup),
		cmocka_unit_test(sleepers_follow_their_queue_to_its_engine),
		TEST(sleeper_that_comes_too_late_sleeps_on, net_setup),
		TEST(no_signal_is_lost, net_setup),
		TEST(no_signal_is_lost_without_a_lock, setup_domain),
		TEST(mutex_cond_works_in_a_serialised_domain, setup_domain),
		TEST(counter_wakes_each_who_waits_for_less, net_setup),
		TEST(waiters_of_a_counter_have_thresholds_of_their_own, net_setup),
		TEST(eq_sread_misses_nothing, net_setup),
		TEST(engine_added_meanwhile_wakes_a_sleeper, net_setup),
		TEST(engine_goes_away_under_readers, net_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
