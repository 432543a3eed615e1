/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The progress engine: what a pass costs in system calls, who is served, removal from within callbacks. Timers,
 * flushes, and what wakes a sleeper: timers.c.
 */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "engine.h"

#define PATIENCE_NS	10000000000ULL
#define VAIN_NS		3000000		/* thirty times as long as a program may look in vain before it yields */

static unsigned yield_cnt;

/* In place of libc's, for the library, too. */
int sched_yield(void)
{
	yield_cnt++;
	return 0;
}

/* One end is a source that reads; the other is written to by the test. */
struct pipe {
	struct fab_source src;
	struct fab_defer defer;
	int far;
	unsigned ready_cnt, poll_cnt, glanced_cnt;
	ssize_t glanced;		/* what the last glance that found something has read */
	size_t glance_len;		/* of the next glance */
	unsigned got;			/* bytes */
	struct pipe *kill_on_ready;	/* taken out when this one is ready */
	bool kill_on_poll;
	bool freed;
};

static void pipe_kill(struct pipe *pipe);

static bool pipe_read(struct pipe *pipe)
{
	char buf[64];
	ssize_t len = fab_sock->recv(pipe->src.fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (len <= 0)
		return false;
	pipe->got += (unsigned) len;
	return true;
}

static void pipe_ready(struct fab_source *src, uint32_t events)
{
	struct pipe *pipe = fab_container(src, struct pipe, src);

	assert_true(events & EPOLLIN);
	assert_false(pipe->freed);
	pipe->ready_cnt++;
	if (pipe->kill_on_ready) {
		pipe_kill(pipe->kill_on_ready);
		pipe->kill_on_ready = NULL;
	}
	if (pipe_read(pipe))
		fab_source_hot(src);
}

static bool pipe_poll(struct fab_source *src)
{
	struct pipe *pipe = fab_container(src, struct pipe, src);

	assert_false(pipe->freed);
	pipe->poll_cnt++;
	if (pipe->kill_on_poll) {
		pipe_kill(pipe);
		return false;
	}
	return pipe_read(pipe);
}

static void pipe_free(struct fab_defer *defer)
{
	struct pipe *pipe = fab_container(defer, struct pipe, defer);

	pipe->freed = true;
}

static void pipe_kill(struct pipe *pipe)
{
	struct fab_engine *engine = pipe->src.engine;

	fab_source_del(&pipe->src);
	fab_source_del(&pipe->src);
	fab_sock_close(&pipe->src.fd);
	fab_engine_defer(engine, &pipe->defer);
}

static void pipe_open(struct fab_engine *engine, struct pipe *pipe)
{
	int fds[2];

	memset(pipe, 0, sizeof(*pipe));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	pipe->src.fd = fds[0];
	pipe->far = fds[1];
	pipe->src.ready = pipe_ready;
	pipe->src.poll = pipe_poll;
	pipe->defer.free = pipe_free;
	assert_int_equal(fab_source_add(engine, &pipe->src, EPOLLIN), 0);
}

static void pipe_close(struct pipe *pipe)
{
	fab_source_del(&pipe->src);
	fab_sock_close(&pipe->src.fd);
	close(pipe->far);
}

static void pipe_write(struct pipe *pipe)
{
	assert_int_equal(write(pipe->far, "x", 1), 1);
}

/* Let the pipe become one of the busy few. */
static void make_hot(struct pipe *pipe)
{
	pipe_write(pipe);
	fab_engine_last_look(&engine);
	assert_int_equal(pipe->got, 1);
	assert_false(fab_list_empty(&pipe->src.hot));
}

/* ---- cost and fairness ---- */

static void busy_source_costs_one_recv_a_pass(void **state)
{
	struct pipe pipe;

	(void) state;
	pipe_open(&engine, &pipe);
	make_hot(&pipe);
	spy_reset();
	for (int i = 0; i < 320; i++) {
		pipe_write(&pipe);
		assert_true(fab_engine_run(&engine));
	}
	assert_int_equal(pipe.got, 321);
	assert_int_equal(spy.recv, 320);
	assert_in_range(spy.epoll_wait, 19, 21);
	assert_int_equal(spy.all, spy.recv + spy.epoll_wait);
	pipe_close(&pipe);
}

/* Look cnt times at a hot source without data: one recv() each, and epoll every sixteenth time. */
static void spin_idle(unsigned cnt)
{
	spy_reset();
	for (unsigned i = 0; i < cnt; i++)
		assert_false(fab_engine_run(&engine));
	assert_int_equal(spy.recv, cnt);
	assert_in_range(spy.epoll_wait, cnt / 16 - 1, cnt / 16 + 3);
	assert_int_equal(spy.all, spy.recv + spy.epoll_wait);
}

static void idle_spin_costs_about_one_recv_a_pass(void **state)
{
	struct pipe pipe;

	(void) state;
	pipe_open(&engine, &pipe);
	make_hot(&pipe);
	spin_idle(400);
	pipe_close(&pipe);
}

/* Look until it has yielded, or ns have passed. */
static bool yields_within(struct fab_engine *engine, uint64_t ns)
{
	uint64_t begun = fab_now_ns();

	yield_cnt = 0;
	while (!yield_cnt && fab_now_ns() - begun < ns) {
		fab_engine_lock(engine);
		fab_engine_run(engine);
		fab_engine_unlock(engine);
	}
	return yield_cnt;
}

/* Where there are more processes than processors, the one that it waits for may want to run. */
static void who_looks_in_vain_lets_others_run(void **state)
{
	struct fab_engine other;
	struct pipe pipe;

	(void) state;
	assert_true(yields_within(&engine, PATIENCE_NS));
	assert_true(yields_within(&engine, PATIENCE_NS));
	pipe_open(&engine, &pipe);
	make_hot(&pipe);
	assert_true(yields_within(&engine, PATIENCE_NS));
	/* who goes to sleep lets them run by that */
	yield_cnt = 0;
	for (uint64_t begun = fab_now_ns(); fab_now_ns() - begun < VAIN_NS;)
		fab_engine_last_look(&engine);
	assert_int_equal(yield_cnt, 0);
	pipe_close(&pipe);
	/* threads may wait for the lock */
	assert_int_equal(fab_engine_init(&other, &(struct fab_engine_attr) { .shared = true }), 0);
	assert_false(yields_within(&other, VAIN_NS));
	fab_engine_fini(&other);
}

static void who_gets_something_keeps_the_processor(void **state)
{
	uint64_t begun = fab_now_ns();
	struct pipe pipe;

	(void) state;
	pipe_open(&engine, &pipe);
	make_hot(&pipe);
	assert_true(yields_within(&engine, PATIENCE_NS));
	pipe_write(&pipe);
	assert_true(fab_engine_run(&engine));
	yield_cnt = 0;
	while (fab_now_ns() - begun < VAIN_NS) {
		assert_false(fab_engine_run(&engine));
		assert_false(fab_engine_run(&engine));
		pipe_write(&pipe);
		assert_true(fab_engine_run(&engine));
	}
	assert_int_equal(yield_cnt, 0);
	pipe_close(&pipe);
}

static void source_quiet_for_long_is_no_longer_hot(void **state)
{
	struct pipe pipe;
	int i;

	(void) state;
	pipe_open(&engine, &pipe);
	make_hot(&pipe);
	for (i = 0; i < 2000 && !fab_list_empty(&pipe.src.hot); i++)
		fab_engine_run(&engine);
	assert_in_range(i, 100, 1000);
	assert_int_equal(engine.sources.hot_cnt, 0);
	spy_reset();
	fab_engine_run(&engine);
	assert_int_equal(spy.all, 1);
	assert_int_equal(spy.epoll_wait, 1);
	pipe_write(&pipe);
	assert_true(fab_engine_run(&engine));
	assert_int_equal(pipe.got, 2);
	pipe_close(&pipe);
}

/* Several hot sources that fall quiet are left to epoll, which costs one call a pass for all of them. */
static void idle_spin_costs_no_more_with_several_sources(void **state)
{
	struct pipe pipes[4];

	(void) state;
	for (int i = 0; i < 4; i++)
		pipe_open(&engine, &pipes[i]);
	for (int i = 0; i < 4; i++)
		make_hot(&pipes[i]);
	spy_reset();
	for (int i = 0; i < 400; i++)
		assert_false(fab_engine_run(&engine));
	assert_int_equal(engine.sources.hot_cnt, 0);
	assert_in_range(spy.all, 400, 412);
	for (int i = 0; i < 4; i++)
		pipe_close(&pipes[i]);
}

/* A program that gives way after each pass without an event, on a host with more processes than cores, waits a time
 * slice for each pass that does not look everywhere. */
static void pass_misses_no_source_if_hot_ones_are_quiet(void **state)
{
	struct pipe pipes[8];

	(void) state;
	for (int i = 0; i < 8; i++)
		pipe_open(&engine, &pipes[i]);
	for (int i = 0; i < 4; i++)
		make_hot(&pipes[i]);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 8; i++) {
			unsigned got = pipes[i].got;

			pipe_write(&pipes[i]);
			assert_true(fab_engine_run(&engine));
			assert_int_equal(pipes[i].got, got + 1);
		}
		for (int i = 0; i < round; i++)
			assert_false(fab_engine_run(&engine));
	}
	for (int i = 0; i < 8; i++)
		pipe_close(&pipes[i]);
}

/* Data that comes by words in memory. */
static _Atomic uint64_t word_bits;
static bool words_have_data;

static bool words_poll(struct fab_poll_fn *fn)
{
	(void) fn;
	return words_have_data;
}

static bool words_look(const struct fab_poll_fn *fn, struct fab_engine_glance *glance)
{
	(void) fn;
	glance->bits = &word_bits;
	glance->cnt = 0;
	return true;
}

/* The time between two passes of a test. */
static int run_after(uint64_t ns)
{
	static uint64_t now = 1000;

	spy_set_clock(now += ns);
	return fab_engine_run(&engine);
}

/* Where all data comes by words, epoll has only what begins and ends: it is asked rarely, and more so by a program that
 * looks often, until something comes by a socket again. */
static void words_leave_little_to_epoll(void **state)
{
	struct fab_poll_fn fn = { .poll = words_poll, .words = words_look };
	struct pipe idle, data;
	int passes;

	(void) state;
	pipe_open(&engine, &idle);
	fab_source_del(&idle.src);
	idle.src.poll = NULL;		/* one that begins or ends something */
	assert_int_equal(fab_source_add(&engine, &idle.src, EPOLLIN), 0);
	fab_poll_add(&engine, &fn);
	for (int round = 0; round < 2; round++) {
		words_have_data = round;
		for (int i = 0; i < 256; i++)
			run_after(1000);
		spy_reset();
		for (int i = 0; i < 1280; i++)
			assert_int_equal(run_after(1000), words_have_data);
		assert_in_range(spy.epoll_wait, 9, 11);
		assert_int_equal(spy.all, spy.epoll_wait);
		spy_reset();
		for (int i = 0; i < 128000; i++)
			run_after(10);
		assert_in_range(spy.epoll_wait, 10, 13);
	}
	pipe_write(&idle);
	for (passes = 0; !idle.ready_cnt; passes++)
		run_after(1000);
	assert_in_range(passes, 1, 128);
	words_have_data = false;
	pipe_open(&engine, &data);
	pipe_write(&data);
	for (passes = 0; !data.got; passes++)
		fab_engine_run(&engine);
	assert_in_range(passes, 1, 16);
	spy_real_clock();
	fab_poll_del(&engine, &fn);
	pipe_close(&data);
	pipe_close(&idle);
}

static void engine_without_sources_makes_no_call(void **state)
{
	(void) state;
	spy_reset();
	assert_false(fab_engine_run(&engine));
	assert_int_equal(spy.all, 0);
}

/* Data that arrives elsewhere while some sources are busy, or quiet, is not left lying. */
static void cold_source_is_served_within_bounds(void **state)
{
	struct pipe hot, cold;
	int passes;

	(void) state;
	pipe_open(&engine, &hot);
	pipe_open(&engine, &cold);
	make_hot(&hot);

	pipe_write(&cold);
	for (passes = 0; !cold.got; passes++) {
		pipe_write(&hot);
		fab_engine_run(&engine);
	}
	assert_in_range(passes, 1, 5);

	for (int i = 0; i < 1000; i++)		/* both cool down, then only one is hot again */
		fab_engine_run(&engine);
	hot.got = cold.got = 0;
	make_hot(&hot);
	pipe_write(&cold);
	for (passes = 0; !cold.got; passes++)
		fab_engine_run(&engine);
	assert_int_equal(passes, 1);
	pipe_close(&hot);
	pipe_close(&cold);
}

static void more_busy_sources_than_can_be_hot(void **state)
{
	struct pipe pipes[12];

	(void) state;
	for (int i = 0; i < 12; i++)
		pipe_open(&engine, &pipes[i]);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 12; i++)
			pipe_write(&pipes[i]);
		for (int i = 0; i < 3; i++)
			fab_engine_run(&engine);
		assert_in_range(engine.sources.hot_cnt, 0, 4);
	}
	for (int i = 0; i < 40; i++)
		fab_engine_run(&engine);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(pipes[i].got, 100);
		pipe_close(&pipes[i]);
	}
	assert_int_equal(engine.sources.hot_cnt, 0);
}

/* Sources that all have data at all times are read equally often, however many they are. */
static void busy_sources_have_equal_shares(void **state)
{
	enum { MAX = 100, PASSES = 240, READ = 64 };
	static const int cnts[] = { 2, 4, 5, 8, 12, MAX };
	static const char data[(PASSES + PASSES / 4) * READ];
	static struct pipe pipes[MAX];

	(void) state;
	for (size_t row = 0; row < sizeof(cnts) / sizeof(*cnts); row++) {
		unsigned least = UINT_MAX, most = 0;

		for (int i = 0; i < cnts[row]; i++) {
			pipe_open(&engine, &pipes[i]);
			assert_int_equal(write(pipes[i].far, data, sizeof(data)), sizeof(data));
		}
		for (int i = 0; i < PASSES; i++)
			assert_true(fab_engine_run(&engine));
		for (int i = 0; i < cnts[row]; i++) {
			least = fab_min(least, pipes[i].got / READ);
			most = fab_max(most, pipes[i].got / READ);
			pipe_close(&pipes[i]);
		}
		print_message("# %d sources, %d passes: %u to %u reads of each\n", cnts[row], PASSES, least, most);
		assert_true(2 * least >= most);
	}
}

/* Who sleeps next asks epoll even though a hot source was quiet. */
static void last_look_misses_nothing(void **state)
{
	struct pipe hot, cold;

	(void) state;
	pipe_open(&engine, &hot);
	pipe_open(&engine, &cold);
	make_hot(&hot);
	pipe_write(&cold);
	fab_engine_last_look(&engine);
	assert_int_equal(cold.got, 1);
	pipe_close(&hot);
	pipe_close(&cold);
}

/* A source that waits to write gets its turn in every pass that finds nothing to read. */
static void writer_does_not_wait_for_readers(void **state)
{
	struct pipe hot, writer;

	(void) state;
	pipe_open(&engine, &hot);
	pipe_open(&engine, &writer);
	make_hot(&hot);
	fab_source_mod(&writer.src, EPOLLIN | EPOLLOUT);
	pipe_write(&writer);
	fab_engine_run(&engine);
	assert_int_equal(writer.ready_cnt, 1);
	fab_source_mod(&writer.src, EPOLLIN);
	assert_int_equal(engine.sources.out_cnt, 0);
	spy_reset();
	fab_source_mod(&writer.src, EPOLLIN);
	assert_int_equal(spy.all, 0);
	pipe_close(&hot);
	pipe_close(&writer);
}

struct alarm {
	struct fab_timer timer;
	unsigned fired;
};

static void alarm_fire(struct fab_timer *timer)
{
	fab_container(timer, struct alarm, timer)->fired++;
}

/* Data in every pass does not keep timers from being looked at. */
static void timer_fires_though_data_flows(void **state)
{
	struct alarm c = { 0 };
	struct pipe pipe;
	int passes;

	(void) state;
	spy_set_clock(1000);
	pipe_open(&engine, &pipe);
	make_hot(&pipe);
	fab_timer_init(&c.timer, alarm_fire);
	fab_timer_start(&engine, &c.timer, 900);
	for (passes = 0; !c.fired; passes++) {
		pipe_write(&pipe);
		fab_engine_run(&engine);
	}
	assert_in_range(passes, 1, 32);
	pipe_close(&pipe);
}

/* ---- glances ---- */

static size_t pipe_glance_len(const struct fab_source *src)
{
	return fab_container(src, struct pipe, src)->glance_len;
}

static bool pipe_glanced(struct fab_source *src, ssize_t n)
{
	struct pipe *pipe = fab_container(src, struct pipe, src);

	pipe->glanced_cnt++;
	pipe->glanced = n;
	if (n <= 0)
		return false;
	pipe->got += (unsigned) n;
	assert_false(fab_engine_run(&engine));		/* a glance that finds something is a pass */
	return true;
}

/* Open a pipe that is hot, and at which glances are allowed from the next pass on that finds nothing. */
static void open_glanced(struct pipe *pipe)
{
	pipe_open(&engine, pipe);
	pipe->src.glance_len = pipe_glance_len;
	pipe->src.glanced = pipe_glanced;
	pipe->glance_len = 1;
	assert_non_null(fab_engine_staging(&engine));
	make_hot(pipe);
	for (int i = 0; i < 100; i++)		/* epoll is asked seldom by now */
		fab_engine_run(&engine);
	while (!engine.glance.reads)
		fab_engine_run(&engine);
	pipe->poll_cnt = 0;
	spy_reset();
}

/* Nearly all of the looks that find nothing are one recv() without a pass, and are counted as passes. */
static void glance_takes_the_place_of_a_pass(void **state)
{
	uint32_t passes, spins;
	struct pipe pipe;

	(void) state;
	open_glanced(&pipe);
	passes = engine.pass_cnt;
	spins = engine.spins;
	spin_idle(160);
	assert_int_equal(engine.pass_cnt, passes + 160);
	assert_int_equal(engine.spins, spins + 160);
	assert_in_range(pipe.poll_cnt, 10, 21);
	assert_int_equal(pipe.glanced_cnt, 0);
	pipe_close(&pipe);
}

/* What arrives is found by the next look, with no call besides; so is an error. */
static void glance_takes_what_it_finds(void **state)
{
	struct pipe pipe;

	(void) state;
	open_glanced(&pipe);
	pipe_write(&pipe);
	assert_true(fab_engine_run(&engine));
	assert_int_equal(pipe.got, 2);
	assert_int_equal(pipe.glanced_cnt, 1);
	assert_int_equal(engine.staging[0], 'x');
	assert_int_equal(spy.all, 1);
	assert_int_equal(pipe.src.quiet, 0);
	pipe_write(&pipe);
	assert_true(fab_engine_run(&engine));	/* a pass, since the one before has found something */
	assert_int_equal(pipe.poll_cnt, 1);
	while (!engine.glance.reads)
		assert_false(fab_engine_run(&engine));
	spy_fail(0, ECONNRESET);
	assert_false(fab_engine_run(&engine));
	assert_int_equal(pipe.glanced, -ECONNRESET);
	pipe_close(&pipe);
}

static void note_flush(struct fab_flush *flush)
{
	(void) flush;
	spy.all += 1000;
}

/* A look is a pass again as soon as there is anything else to do. */
static void glance_is_no_substitute_for_more(void **state)
{
	struct fab_flush flush;
	struct pipe pipe, other;

	(void) state;
	open_glanced(&pipe);
	fab_flush_init(&flush, note_flush);
	fab_engine_flush_later(&engine, &flush);
	assert_false(fab_engine_run(&engine));
	assert_in_range(spy.all, 1000, 1002);
	pipe_close(&pipe);

	open_glanced(&pipe);
	pipe.glance_len = 0;		/* for the next pass; glances that are allowed already stay so */
	for (int i = 0; i < 32; i++)
		assert_false(fab_engine_run(&engine));
	assert_int_equal(engine.glance.reads, 0);
	pipe.glance_len = 1;
	while (!engine.glance.reads)
		assert_false(fab_engine_run(&engine));

	pipe_open(&engine, &other);
	pipe_write(&other);
	assert_true(fab_engine_run(&engine));
	assert_int_equal(other.got, 1);
	pipe_close(&other);
	pipe_close(&pipe);
	assert_null(engine.glance.src);
	assert_false(fab_engine_run(&engine));
}

/* Timers fire, and a source falls quiet, after as many looks as without glances. */
static void glances_delay_nothing(void **state)
{
	struct alarm c = { 0 };
	struct pipe pipe;
	int i;

	(void) state;
	spy_set_clock(1000);
	open_glanced(&pipe);
	fab_timer_init(&c.timer, alarm_fire);
	fab_timer_start(&engine, &c.timer, 900);
	for (i = 0; !c.fired; i++)
		fab_engine_run(&engine);
	assert_in_range(i, 1, 16);
	for (i = 0; engine.sources.hot_cnt; i++)
		assert_false(fab_engine_run(&engine));
	assert_in_range(i, 380, 530);
	pipe_close(&pipe);
}

/* A child of fork(2) does not read the bytes of its parent. */
static void glances_end_with_a_fork(void **state)
{
	struct pipe pipe;

	(void) state;
	open_glanced(&pipe);
	engine.forks--;			/* of the parent */
	assert_true(fab_engine_disown(&engine));
	pipe_write(&pipe);
	for (int i = 0; i < 40; i++)
		assert_false(fab_engine_run(&engine));
	assert_int_equal(spy.recv, 0);
	pipe_close(&pipe);
}

/* A source that is in the middle of something for a while, in which nobody may see it. */
static struct {
	struct fab_source src;
	sem_t begun;
	bool half;
} busy;

static void busy_ready(struct fab_source *src, uint32_t events)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	char byte;

	(void) events;
	busy.half = true;
	sem_post(&busy.begun);
	nanosleep(&nap, NULL);
	assert_int_equal(read(src->fd, &byte, 1), 1);
	busy.half = false;
}

/* A fork waits for the pass that the engine's thread is in. The child has the lock, and no half of a change. */
static void a_fork_waits_for_the_end_of_a_pass(void **state)
{
	struct fab_engine other;
	int fds[2], status;
	pid_t pid;

	(void) state;
	assert_int_equal(sem_init(&busy.begun, 0, 0), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(fab_engine_init(&other, &(struct fab_engine_attr) { .auto_progress = true }), 0);
	busy.src = (struct fab_source) { .fd = fds[0], .ready = busy_ready };
	fab_engine_lock(&other);
	assert_int_equal(fab_source_add(&other, &busy.src, EPOLLIN), 0);
	fab_engine_unlock(&other);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(write(fds[1], "x", 1), 1);
		while (sem_wait(&busy.begun))
			;
		pid = fork();
		if (!pid) {
			alarm(60);
			fab_engine_lock(&other);
			_exit(busy.half || other.in_pass);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	fab_engine_lock(&other);
	fab_source_del(&busy.src);
	fab_engine_unlock(&other);
	fab_engine_fini(&other);
	close(fds[0]);
	close(fds[1]);
	sem_destroy(&busy.begun);
}

/* ---- removal ---- */

static void source_removed_by_another_is_not_called(void **state)
{
	struct pipe pipes[8];
	unsigned called = 0, killed = 0;

	(void) state;
	for (int i = 0; i < 8; i++)
		pipe_open(&engine, &pipes[i]);
	for (int i = 0; i < 8; i++) {
		pipes[i].kill_on_ready = &pipes[i ^ 1];
		pipe_write(&pipes[i]);
	}
	fab_engine_run(&engine);
	for (int i = 0; i < 8; i++) {
		called += pipes[i].ready_cnt;
		killed += pipes[i].freed;
	}
	assert_int_equal(called, 4);
	assert_int_equal(killed, 4);
	for (int i = 0; i < 8; i++)
		pipe_close(&pipes[i]);
}

static void source_may_remove_itself(void **state)
{
	struct pipe a, b;

	(void) state;
	pipe_open(&engine, &a);
	pipe_open(&engine, &b);
	make_hot(&a);
	make_hot(&b);
	a.kill_on_poll = true;
	a.poll_cnt = b.poll_cnt = 0;
	fab_engine_run(&engine);
	assert_true(a.freed);
	assert_int_equal(a.poll_cnt, 1);
	assert_int_equal(b.poll_cnt, 1);
	assert_int_equal(engine.sources.hot_cnt, 1);
	pipe_close(&a);
	pipe_close(&b);
}

/* ---- the rest ---- */

struct hardware {
	struct fab_poll_fn fn;
	unsigned cnt;
	bool nested;
};

static bool hardware_poll(struct fab_poll_fn *fn)
{
	struct hardware *hardware = fab_container(fn, struct hardware, fn);

	hardware->cnt++;
	hardware->nested |= fab_engine_run(&engine);
	return hardware->cnt == 2;
}

/* A descriptor changes hands with one system call; from then on only the new source is called. */
static void source_takes_the_place_of_another(void **state)
{
	struct pipe old, new;

	(void) state;
	pipe_open(&engine, &old);
	make_hot(&old);
	new = old;
	new.src.engine = NULL;
	new.ready_cnt = old.ready_cnt = 0;
	spy_reset();
	fab_source_move(&old.src, &new.src, EPOLLIN);
	assert_int_equal(spy.all, 1);
	assert_null(old.src.engine);
	assert_int_equal(engine.sources.cnt, 1);
	assert_int_equal(engine.sources.hot_cnt, 0);
	pipe_write(&new);
	assert_true(fab_engine_run(&engine));
	assert_int_equal(old.ready_cnt, 0);
	assert_int_equal(new.ready_cnt, 1);
	fab_source_del(&old.src);
	pipe_close(&new);
	assert_int_equal(engine.sources.cnt, 0);
}

static void poll_functions_run_in_every_pass_and_a_pass_does_not_nest(void **state)
{
	struct hardware hardware = { .fn.poll = hardware_poll };

	(void) state;
	fab_poll_add(&engine, &hardware.fn);
	assert_false(fab_engine_run(&engine));
	assert_true(fab_engine_run(&engine));
	assert_int_equal(hardware.cnt, 2);
	assert_false(hardware.nested);
	fab_poll_del(&engine, &hardware.fn);
}

static void staging_is_made_once(void **state)
{
	uint8_t *rx = fab_engine_staging(&engine), *tx = fab_engine_tx_staging(&engine);

	(void) state;
	assert_non_null(rx);
	assert_non_null(tx);
	assert_ptr_not_equal(rx, tx);
	memset(rx, 0, FAB_STAGING_LEN);
	memset(tx, 0, FAB_STAGING_LEN);
	assert_ptr_equal(fab_engine_staging(&engine), rx);
	assert_ptr_equal(fab_engine_tx_staging(&engine), tx);
}

static void lock_is_what_was_asked_for(void **state)
{
	struct fab_engine other;

	(void) state;
	assert_ptr_equal(engine.lock.ops, fab_lock_kinds[FAB_LOCK_NONE]);
	assert_int_equal(fab_engine_init(&other, &(struct fab_engine_attr) { .shared = true }), 0);
	assert_ptr_equal(other.lock.ops, fab_lock_kinds[FAB_LOCK_MUTEX]);
	fab_engine_share(&other);
	fab_engine_lock(&other);
	assert_true(fab_lock_held(&other.lock));
	fab_engine_unlock(&other);
	fab_engine_fini(&other);

	/* a lock that does nothing says that it is held; a mutex that nobody has does not */
	assert_true(fab_lock_held(&engine.lock));
	fab_engine_share(&engine);
	assert_false(fab_lock_held(&engine.lock));
	fab_engine_lock(&engine);
	assert_true(fab_lock_held(&engine.lock));
	fab_engine_unlock(&engine);
}

/* Whichever call of init fails: its errno, and nothing stays open. */
static void init_undoes_what_it_did(void **state)
{
	struct fab_engine other;
	int fds = spy_open_fds();
	long n;

	(void) state;
	for (n = 0; n < 10; n++) {
		spy_fail(n, EMFILE);
		if (!fab_engine_init(&other, &(struct fab_engine_attr) { 0 }))
			break;
		assert_true(spy_failed());
		assert_int_equal(spy_open_fds(), fds);
	}
	spy_fail(-1, 0);
	assert_in_range(n, 3, 9);
	fab_engine_fini(&other);
	assert_int_equal(spy_open_fds(), fds);
}

/* ---- bells ---- */

struct door {
	struct fab_bell bell;
	unsigned rung_cnt;
	bool again;
};

static void door_rung(struct fab_bell *bell)
{
	struct door *door = fab_container(bell, struct door, bell);

	if (!door->rung_cnt++ && door->again)
		fab_bell_ring(bell);
}

static void bell_is_heard_once_for_all_rings_before(void **state)
{
	struct door door = { 0 };

	(void) state;
	assert_int_equal(fab_bell_open(&door.bell, &engine, door_rung), 0);
	assert_true(fab_bell_is_open(&door.bell));
	assert_false(fab_engine_run(&engine));
	fab_bell_ring(&door.bell);
	fab_bell_ring(&door.bell);
	fab_engine_last_look(&engine);
	fab_engine_last_look(&engine);
	assert_int_equal(door.rung_cnt, 1);
	fab_bell_close(&door.bell);
	fab_bell_close(&door.bell);
	assert_false(fab_bell_is_open(&door.bell));
}

static void bell_rung_while_it_is_heard_is_heard_again(void **state)
{
	struct door door = { .again = true };

	(void) state;
	assert_int_equal(fab_bell_open(&door.bell, &engine, door_rung), 0);
	fab_bell_ring(&door.bell);
	fab_engine_last_look(&engine);
	fab_engine_last_look(&engine);
	assert_int_equal(door.rung_cnt, 2);
	fab_bell_ring(&door.bell);
	fab_bell_close(&door.bell);
	assert_int_equal(fab_bell_open(&door.bell, &engine, door_rung), 0);
	fab_engine_last_look(&engine);
	assert_int_equal(door.rung_cnt, 2);
	fab_bell_close(&door.bell);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bell_is_heard_once_for_all_rings_before),
		TEST(bell_rung_while_it_is_heard_is_heard_again),
		TEST(busy_source_costs_one_recv_a_pass),
		TEST(idle_spin_costs_about_one_recv_a_pass),
		TEST(who_looks_in_vain_lets_others_run),
		TEST(who_gets_something_keeps_the_processor),
		TEST(source_quiet_for_long_is_no_longer_hot),
		TEST(idle_spin_costs_no_more_with_several_sources),
		TEST(pass_misses_no_source_if_hot_ones_are_quiet),
		TEST(words_leave_little_to_epoll),
		TEST(engine_without_sources_makes_no_call),
		TEST(cold_source_is_served_within_bounds),
		TEST(more_busy_sources_than_can_be_hot),
		TEST(busy_sources_have_equal_shares),
		TEST(last_look_misses_nothing),
		TEST(writer_does_not_wait_for_readers),
		TEST(glance_takes_the_place_of_a_pass),
		TEST(glance_takes_what_it_finds),
		TEST(glance_is_no_substitute_for_more),
		TEST(glances_delay_nothing),
		TEST(glances_end_with_a_fork),
		TEST(a_fork_waits_for_the_end_of_a_pass),
		TEST(source_removed_by_another_is_not_called),
		TEST(source_may_remove_itself),
		TEST(timer_fires_though_data_flows),
		TEST(source_takes_the_place_of_another),
		TEST(poll_functions_run_in_every_pass_and_a_pass_does_not_nest),
		TEST(staging_is_made_once),
		TEST(lock_is_what_was_asked_for),
		TEST(init_undoes_what_it_did),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
