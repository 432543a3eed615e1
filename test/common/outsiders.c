/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Outsiders of an engine have a bounded part of the time while others have data, and all of it otherwise. The clock is
 * the test's: it goes on while a source is served, and stands still otherwise.
 */
#include "unit.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "engine.h"

#define BEGIN_NS	1000000000ULL
#define CNT		12

/* A source that is served in so much time; it always has data if it is never read. */
struct guest {
	struct fab_source src;
	int far;
	uint64_t cost_ns;
	unsigned cnt;			/* how often it was served */
	unsigned order;			/* when it was served last */
	uint32_t events;		/* with which it was served last */
	bool reads;
	uint64_t above_ns;		/* what a layer above spends on it then */
	struct guest *kill;		/* taken out when this one is served */
};

static uint64_t clock_ns, outsiders_ns, above_ns;
static unsigned served;

static void spend(uint64_t ns)
{
	clock_ns += ns;
	spy_set_clock(clock_ns);
}

static void guest_serve(struct guest *guest)
{
	spend(guest->cost_ns);
	if (guest->src.outsider)
		outsiders_ns += guest->cost_ns;
	if (guest->src.outsider)
		above_ns += guest->above_ns;
	guest->cnt++;
	guest->order = ++served;
}

static void guest_ready(struct fab_source *src, uint32_t events)
{
	struct guest *guest = fab_container(src, struct guest, src);
	char byte;

	assert_true(events & EPOLLIN);
	assert_non_null(src->engine);
	guest->events = events;
	guest_serve(guest);
	if (guest->reads)
		assert_int_equal(read(src->fd, &byte, 1), 1);
	if (guest->kill)
		fab_source_del(&guest->kill->src);
}

static void guest_open(struct guest *guest, bool outsider, uint64_t cost_ns)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	*guest = (struct guest) { .src = { .fd = fds[0], .ready = guest_ready, .outsider = outsider }, .far = fds[1],
				  .cost_ns = cost_ns };
	assert_int_equal(fab_source_add(&engine, &guest->src, EPOLLIN), 0);
}

static void guest_close(struct guest *guest)
{
	fab_source_del(&guest->src);
	fab_sock_close(&guest->src.fd);
	close(guest->far);
}

static void guest_write(struct guest *guest)
{
	assert_int_equal(write(guest->far, "x", 1), 1);
}

static struct guest known, strangers[CNT];

static void open_strangers(uint64_t cost_ns)
{
	for (int i = 0; i < CNT; i++) {
		guest_open(&strangers[i], true, cost_ns);
		guest_write(&strangers[i]);
	}
}

static void close_all(void)
{
	for (int i = 0; i < CNT; i++)
		guest_close(&strangers[i]);
	guest_close(&known);
}

static int setup_clock(void **state)
{
	clock_ns = BEGIN_NS;
	spy_set_clock(clock_ns);
	outsiders_ns = served = 0;
	return setup(state);
}

/* Passes for so long; the known one has something to be read in each. */
static void pass_for(uint64_t ns)
{
	for (uint64_t end_ns = clock_ns + ns; clock_ns < end_ns; fab_engine_last_look(&engine))
		;
}

/* They served alike, and returns how often at least. */
static unsigned check_served_alike(void)
{
	unsigned least = strangers[0].cnt, most = strangers[0].cnt;

	for (int i = 0; i < CNT; i++) {
		least = fab_min(least, strangers[i].cnt);
		most = fab_max(most, strangers[i].cnt);
	}
	assert_in_range(most, least, least + 1);
	return least;
}

/* ---- shares ---- */

/* However much each of them takes: little, more than a turn, and so much that one turn is enough for a long time. */
static void they_share_an_eighth_beside_others(void **state)
{
	static const uint64_t cost_ns[] = { 2000, 10000, 45000, 700000 };

	(void) state;
	for (unsigned i = 0; i < fab_countof(cost_ns); i++) {
		guest_open(&known, false, 20000);
		guest_write(&known);
		pass_for(1000000);
		outsiders_ns = 0;
		open_strangers(cost_ns[i]);
		pass_for(100000000);
		print_message("# %u ns each: %u of 1000\n", (unsigned) cost_ns[i], (unsigned) (outsiders_ns / 100000));
		assert_in_range(outsiders_ns, 90000000 / 8, 115000000 / 8);
		check_served_alike();
		close_all();
	}
}

/* What a layer above spends on them behind each pass is part of their eighth. */
static void what_is_spent_above_counts(void **state)
{
	uint64_t begun_ns;

	(void) state;
	guest_open(&known, false, 20000);
	guest_write(&known);
	pass_for(1000000);
	open_strangers(2000);
	for (int i = 0; i < CNT; i++)
		strangers[i].above_ns = 8000;
	outsiders_ns = above_ns = 0;
	begun_ns = clock_ns;
	while (clock_ns < begun_ns + 200000000) {
		uint64_t before_ns = above_ns;

		fab_engine_last_look(&engine);
		if (above_ns == before_ns)
			continue;
		spend(above_ns - before_ns);
		fab_engine_outsiders_took(&engine, above_ns - before_ns);
	}
	print_message("# %u of 1000\n", (unsigned) ((outsiders_ns + above_ns) / 200000));
	assert_in_range(outsiders_ns + above_ns, 180000000 / 8, 230000000 / 8);
	close_all();
}

/* The known one has nothing: nobody has to wait. */
static void alone_they_have_all(void **state)
{
	(void) state;
	guest_open(&known, false, 20000);
	open_strangers(10000);
	pass_for(12000000);
	assert_int_equal(outsiders_ns, clock_ns - BEGIN_NS);
	assert_in_range(check_served_alike(), 99, 101);
	close_all();
}

/* Others are looked at again after a fifth of a millisecond, even if they had nothing for long. */
static void others_are_looked_at_in_between(void **state)
{
	(void) state;
	guest_open(&known, false, 20000);
	open_strangers(100000);
	fab_engine_last_look(&engine);
	assert_int_equal(served, 2);
	guest_write(&known);
	fab_engine_last_look(&engine);
	assert_int_equal(known.cnt, 1);
	close_all();
}

static void others_are_served_first(void **state)
{
	(void) state;
	open_strangers(10000);
	guest_open(&known, false, 20000);
	guest_write(&known);
	fab_engine_last_look(&engine);
	assert_int_equal(known.order, 1);
	assert_true(served > 1);
	close_all();
}

/* A thread that was not run for a while in a turn does not keep outsiders away for eight times as long. */
static void a_turn_that_was_long_is_forgotten_soon(void **state)
{
	(void) state;
	guest_open(&known, false, 20000);
	guest_write(&known);
	open_strangers(1000);
	strangers[0].cost_ns = 1000000000;
	for (int i = 0; i < 2; i++)
		fab_engine_last_look(&engine);
	strangers[0].cost_ns = 1000;
	strangers[1].cnt = 0;
	pass_for(105000000);
	assert_true(strangers[1].cnt > 1);
	close_all();
}

/* ---- a known one that glances read ---- */

static size_t guest_glance_len(const struct fab_source *src)
{
	(void) src;
	return 1;
}

static bool guest_glanced(struct fab_source *src, ssize_t n)
{
	struct guest *guest = fab_container(src, struct guest, src);

	if (n <= 0)
		return false;
	guest_serve(guest);
	return true;
}

/* What a pass does in place of a glance. */
static bool guest_poll(struct fab_source *src)
{
	char byte;

	return guest_glanced(src, read(src->fd, &byte, 1));
}

/* A message that a glance has taken keeps outsiders to short turns, as one that a pass has read does. */
static void who_is_heard_by_a_glance_is_heard(void **state)
{
	(void) state;
	guest_open(&known, false, 20000);
	fab_source_del(&known.src);
	known.src.poll = guest_poll;
	known.src.glance_len = guest_glance_len;
	known.src.glanced = guest_glanced;
	assert_int_equal(fab_source_add(&engine, &known.src, EPOLLIN), 0);
	for (int i = 0; i < CNT; i++)
		guest_open(&strangers[i], true, 10000);
	assert_non_null(fab_engine_staging(&engine));
	fab_source_heat(&known.src);
	while (!engine.glance.reads)
		fab_engine_pass(&engine);
	guest_write(&known);
	spy_reset();
	assert_true(fab_engine_pass(&engine));
	assert_int_equal(known.cnt, 1);
	assert_int_equal(spy.recv, 1);		/* and no read of guest_poll() */
	for (int i = 0; i < CNT; i++)
		guest_write(&strangers[i]);
	fab_engine_last_look(&engine);
	assert_in_range(outsiders_ns, 10000, 40000);
	close_all();
}

/* ---- the line ---- */

/* Two outsiders, the second of which waits for its turn. */
static void let_one_wait(void)
{
	guest_open(&known, false, 20000);
	guest_write(&known);
	for (int i = 0; i < 2; i++) {
		guest_open(&strangers[i], true, 40000);
		guest_write(&strangers[i]);
		strangers[i].reads = true;
	}
	known.reads = true;
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[0].cnt, 1);
	assert_int_equal(strangers[1].cnt, 0);
}

/* A clock that goes on by a tick whenever it is read. */
static uint64_t tick_now_ns(void)
{
	return clock_ns += 1000;
}

static void close_few(void)
{
	guest_close(&known);
	guest_close(&strangers[0]);
	guest_close(&strangers[1]);
}

/* The one that waits is closed by the other end: it is served in its turn. */
static void end_of_who_waits(void)
{
	close(strangers[1].far);
	strangers[1].far = -1;
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[1].cnt, 0);
	spend(1000000);
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[1].cnt, 1);
}

/* It does not keep a thread from sleeping, costs no call, and wakes the thread when it is its turn. */
static void who_waits_wakes_a_sleeper_in_its_turn(void **state)
{
	struct pollfd pollfd = { .events = POLLIN };

	(void) state;
	fab_engine_watch(&engine);
	let_one_wait();
	pollfd.fd = engine.epfd;
	assert_int_equal(poll(&pollfd, 1, 0), 0);
	assert_true(engine.alarm.when_ns > clock_ns);
	assert_int_equal(poll(&pollfd, 1, 10000), 1);
	spend(1000000);
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[1].cnt, 1);
	guest_write(&strangers[1]);
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[1].cnt, 2);
	fab_engine_unwatch(&engine);
	close_few();
}

/* Looks take time themselves, however many there are: those in which nobody has a turn do not put off the next one. */
static void looks_do_not_put_off_a_turn(void **state)
{
	const struct fab_clock_ops ticks = { tick_now_ns, fab_clock->random64 }, *spied = fab_clock;
	uint64_t begin_ns;

	(void) state;
	let_one_wait();
	begin_ns = clock_ns;
	fab_clock = &ticks;
	while (!strangers[1].cnt)
		fab_engine_last_look(&engine);
	fab_clock = spied;
	/* seven times as long as the turn of the first one, some ticks of which were the engine's */
	assert_in_range(clock_ns - begin_ns, 7 * 40000, 8 * 40000 + 40000);
	close_few();
}

/* A turn that was nobody's loss is not made up for when others come. */
static void a_turn_without_others_costs_no_rest(void **state)
{
	(void) state;
	guest_open(&known, false, 1000);
	open_strangers(1000);
	strangers[0].cost_ns = 50000000;
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[0].cnt, 1);
	strangers[0].cost_ns = 1000;
	guest_write(&known);
	for (int i = 0; i < 2; i++)
		fab_engine_last_look(&engine);
	assert_true(engine.outsiders.rationed);
	assert_true(strangers[1].cnt > 0);
	close_all();
}

/* It is not epoll that has reported it: what it has to do is known from the last look before the sleep. */
static void who_asks_for_its_turn_wakes_a_sleeper(void **state)
{
	struct pollfd pollfd = { .events = POLLIN };

	(void) state;
	fab_engine_watch(&engine);
	guest_open(&strangers[0], true, 1000);
	fab_engine_last_look(&engine);
	fab_source_ask_turn(&strangers[0].src);
	fab_engine_prepare_sleep(&engine);
	pollfd.fd = engine.epfd;
	assert_int_equal(poll(&pollfd, 1, 10000), 1);
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[0].cnt, 1);
	assert_true(fab_list_empty(&engine.outsiders.line));
	fab_engine_unwatch(&engine);
	guest_close(&strangers[0]);
}

/* Who has asked for its turn is told in it of what epoll has reported meanwhile. */
static void who_waits_hears_of_its_events(void **state)
{
	(void) state;
	let_one_wait();
	spend(1000000);
	fab_engine_last_look(&engine);
	guest_write(&known);
	guest_write(&strangers[0]);
	fab_engine_last_look(&engine);
	strangers[1].reads = false;
	strangers[1].cnt = 0;
	fab_source_ask_turn(&strangers[1].src);
	end_of_who_waits();
	assert_true(strangers[1].events & EPOLLHUP);
	close_few();
}

/* Who becomes known while it waits need not wait any more. */
static void who_becomes_known_leaves_the_line(void **state)
{
	(void) state;
	let_one_wait();
	fab_source_set_outsider(&strangers[1].src, false);
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[1].cnt, 1);
	assert_true(fab_list_empty(&engine.outsiders.line));
	close_few();
}

/* Events that it asks for while it waits hold from its turn on. */
static void who_waits_may_change_its_events(void **state)
{
	(void) state;
	let_one_wait();
	spy_reset();
	fab_source_mod(&strangers[1].src, EPOLLIN | EPOLLRDHUP);
	assert_int_equal(spy.epoll_ctl, 0);
	end_of_who_waits();
	close_few();
}

/* A connection that was a stranger's until its request was read. */
static void who_waits_may_be_replaced(void **state)
{
	struct guest known_now;

	(void) state;
	let_one_wait();
	known_now = strangers[1];
	known_now.src = (struct fab_source) { .fd = strangers[1].src.fd, .ready = guest_ready };
	assert_int_equal(fab_source_move(&strangers[1].src, &known_now.src, EPOLLIN), 0);
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[1].cnt, 0);
	assert_int_equal(known_now.cnt, 1);
	fab_source_del(&known_now.src);
	close_few();
}

static void who_waits_may_be_removed(void **state)
{
	(void) state;
	let_one_wait();
	fab_source_del(&strangers[1].src);
	assert_true(fab_list_empty(&engine.outsiders.line));
	spend(1000000);
	fab_engine_last_look(&engine);
	assert_int_equal(strangers[1].cnt, 0);
	close_few();
}

/* The same by one that is served before it, in the pass that has reported both. */
static void who_is_reported_may_be_removed(void **state)
{
	(void) state;
	guest_open(&known, false, 1000);
	open_strangers(1000);
	for (int i = 0; i < CNT; i++)
		strangers[i].kill = &strangers[i ^ 1];
	fab_engine_last_look(&engine);
	assert_int_equal(served, CNT / 2);
	close_all();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_clock, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(they_share_an_eighth_beside_others),
		TEST(what_is_spent_above_counts),
		TEST(alone_they_have_all),
		TEST(others_are_looked_at_in_between),
		TEST(others_are_served_first),
		TEST(a_turn_that_was_long_is_forgotten_soon),
		TEST(a_turn_without_others_costs_no_rest),
		TEST(who_is_heard_by_a_glance_is_heard),
		TEST(who_waits_wakes_a_sleeper_in_its_turn),
		TEST(who_asks_for_its_turn_wakes_a_sleeper),
		TEST(looks_do_not_put_off_a_turn),
		TEST(who_waits_hears_of_its_events),
		TEST(who_becomes_known_leaves_the_line),
		TEST(who_waits_may_change_its_events),
		TEST(who_waits_may_be_replaced),
		TEST(who_waits_may_be_removed),
		TEST(who_is_reported_may_be_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
