/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rows of fi_top, from pages that are made here: rates, order, text; and pages of rubbish.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../../util/top.h"

#define SECOND		UINT64_C(1000000000)
#define OPENED		(100 * SECOND)

/* Two readings of up to two pages, two seconds apart. */
struct bench {
	struct page list[2][2];
	struct pages before, now;
	struct top top;
};

static void set_table(struct fi_stats_page *page, int kind, size_t offset, size_t size, size_t cnt)
{
	page->header.table[kind] = (struct fi_stats_table) { offset, (uint32_t) size, (uint32_t) cnt };
}

#define SET_TABLE(page, kind, member)						\
	set_table(page, kind, offsetof(struct fi_stats_page, member),		\
		  sizeof((page)->member[0]), sizeof((page)->member) / sizeof((page)->member[0]))

/* A page with one endpoint of tcp, whose process was opened at 100 s. */
static struct fi_stats_page *page_new(uint32_t pid)
{
	struct fi_stats_page *page = calloc(1, sizeof(*page));

	assert_non_null(page);
	page->header = (struct fi_stats_header) {
		.magic = FI_STATS_MAGIC, .version = FI_STATS_VERSION, .size = sizeof(page->header), .pid = pid,
		.clock = FI_STATS_CLOCK_MONOTONIC, .open_ticks = OPENED, .open_ns = OPENED,
		.command = "/bin/program a/b",
	};
	SET_TABLE(page, FI_STATS_ENGINES, engine);
	SET_TABLE(page, FI_STATS_EPS, ep);
	SET_TABLE(page, FI_STATS_PEERS, peer);
	page->engine[0] = (struct fi_stats_engine) { .used = FI_STATS_LIVE, .last_pass = 109 * SECOND };
	page->ep[0] = (struct fi_stats_ep) {
		.used = FI_STATS_LIVE, .enabled = 1, .opened = OPENED, .prov = "tcp", .addr = "10.0.0.1:1",
		.posted = { 3, 4 },
	};
	return page;
}

static struct fi_stats_peer *add_peer(struct fi_stats_page *page, int i, const char *addr, uint64_t ops,
				      uint64_t bytes)
{
	struct fi_stats_peer *peer = &page->peer[i];

	*peer = (struct fi_stats_peer) { .used = FI_STATS_LIVE, .conn = FI_STATS_CONN_UP,
					 .carrier = FI_STATS_CARRIER_RING };
	snprintf(peer->addr, sizeof(peer->addr), "%s", addr);
	peer->op[FI_STATS_TSEND] = (struct fi_stats_count) { ops, bytes };
	return peer;
}

static struct page page_at(struct fi_stats_page *page, uint64_t ns)
{
	struct page at = { .pid = (pid_t) page->header.pid, .ours = true,
			   .source = { page, sizeof(*page), ns, ns, 'R' } };

	snprintf(at.path, sizeof(at.path), "/page/%u", page->header.pid);
	return at;
}

/* Read this page at 110 s and that at 112 s, and make rows of them. The pages are the bench's then. */
static void read_twice(struct bench *bench, struct fi_stats_page *before, struct fi_stats_page *now, enum top_view view)
{
	bench->before = (struct pages) { .list = bench->list[0] };
	bench->now = (struct pages) { .list = bench->list[1] };
	if (before)
		bench->list[0][bench->before.cnt++] = page_at(before, 110 * SECOND);
	bench->list[1][bench->now.cnt++] = page_at(now, 112 * SECOND);
	assert_true(top_make(&bench->top, view, &bench->now, bench->now.cnt, &bench->before, 110 * SECOND));
}

static void end(struct bench *bench)
{
	for (size_t i = 0; i < bench->before.cnt; i++)
		free((void *) bench->before.list[i].source.page);
	for (size_t i = 0; i < bench->now.cnt; i++)
		free((void *) bench->now.list[i].source.page);
	top_free(&bench->top);
}

static void rates_are_differences_by_time(void **state)
{
	struct fi_stats_page *before = page_new(7), *now = page_new(7);
	struct bench bench = { .top.cnt = 0 };
	const struct top_row *row;

	(void) state;
	add_peer(before, 0, "fi_sockaddr_in://10.0.0.2:2", 100, 1000);
	add_peer(now, 0, "fi_sockaddr_in://10.0.0.2:2", 300, 5000);
	now->peer[0].op[FI_STATS_READ] = (struct fi_stats_count) { 6, 60 };
	now->peer[0].op[FI_STATS_COLLECTIVE].ops = 1000;
	read_twice(&bench, before, now, TOP_PEERS);
	assert_int_equal(bench.top.cnt, 1);
	row = &bench.top.row[0];
	assert_true(row->has_rates);
	assert_true(row->out.ops == 300 && row->out.bytes == 5000 && row->in.ops == 6 && row->in.bytes == 60);
	assert_true(row->out.ops_s == 100 && row->out.bytes_s == 2000);
	assert_true(row->in.ops_s == 3 && row->in.bytes_s == 30);
	assert_string_equal(row->addr, "10.0.0.2:2");
	assert_string_equal(row->link, "ring");
	assert_string_equal(row->prov, "tcp");
	assert_true(bench.top.sum.out.ops_s == 100 && bench.top.sum.peers == 1 && bench.top.sum.procs == 1);
	end(&bench);
}

/* The record of A went to B, and what A has counted moved to that of the others. */
static void counters_that_move_are_counted_once(void **state)
{
	struct fi_stats_page *before = page_new(7), *now = page_new(7);
	struct bench bench = { .top.cnt = 0 };

	(void) state;
	add_peer(before, 0, "A", 98, 980);
	add_peer(now, 0, "B", 4, 40);
	now->ep[0].rest.op[FI_STATS_TSEND] = (struct fi_stats_count) { 100, 1000 };
	read_twice(&bench, before, now, TOP_PEERS);
	top_sort(&bench.top, TOP_BY_PEER, false);
	assert_int_equal(bench.top.cnt, 2);
	assert_string_equal(bench.top.row[0].addr, "B");
	assert_true(bench.top.row[0].out.ops_s == 2);
	assert_string_equal(bench.top.row[1].addr, "others");
	assert_true(bench.top.row[1].out.ops_s == 1 && bench.top.row[1].out.bytes_s == 10);
	assert_true(bench.top.sum.out.ops_s == 3 && bench.top.sum.out.ops == 104);
	end(&bench);
}

static void a_process_that_came_counts_from_zero_and_an_older_one_has_no_rates(void **state)
{
	struct fi_stats_page *came = page_new(7), *old = page_new(7);
	struct bench bench = { .top.cnt = 0 };

	(void) state;
	came->header.open_ticks = came->header.open_ns = 111 * SECOND;
	add_peer(came, 0, "A", 8, 80);
	read_twice(&bench, NULL, came, TOP_PROCESSES);
	assert_true(bench.top.row[0].has_rates && bench.top.row[0].out.ops_s == 4);
	end(&bench);
	add_peer(old, 0, "A", 8, 80);
	read_twice(&bench, NULL, old, TOP_PROCESSES);
	assert_false(bench.top.row[0].has_rates);
	assert_true(bench.top.row[0].out.ops_s == 0 && bench.top.row[0].out.ops == 8);
	end(&bench);
}

static void a_counter_that_went_back_counts_from_zero(void **state)
{
	struct fi_stats_page *before = page_new(7), *now = page_new(7);
	struct bench bench = { .top.cnt = 0 };

	(void) state;
	add_peer(before, 0, "A", 1000, 1000);
	add_peer(now, 0, "A", 10, 10);
	read_twice(&bench, before, now, TOP_PEERS);
	assert_true(bench.top.row[0].out.ops_s == 5);
	end(&bench);
}

static void rows_are_of_endpoints_or_processes(void **state)
{
	struct fi_stats_page *before = page_new(7), *now = page_new(7);
	struct bench bench = { .top.cnt = 0 };

	(void) state;
	now->ep[1] = now->ep[0];
	now->ep[1].posted[0] = 10;
	add_peer(now, 0, "A", 2, 20)->errors = 1;
	add_peer(now, 1, "B", 4, 40)->ep = 1;
	now->peer[1].queued = 9;
	now->peer[1].dequeued = 4;
	read_twice(&bench, before, now, TOP_ENDPOINTS);
	assert_int_equal(bench.top.cnt, 2);
	assert_string_equal(bench.top.row[1].addr, "10.0.0.1:1");
	assert_true(bench.top.row[0].posted == 7 && bench.top.row[1].posted == 14);
	assert_true(bench.top.row[0].errors == 1 && bench.top.row[0].queued == 0 && bench.top.row[1].queued == 5);
	assert_true(bench.top.row[1].progress_s == 3);
	assert_true(top_make(&bench.top, TOP_PROCESSES, &bench.now, 1, &bench.before, 110 * SECOND));
	assert_int_equal(bench.top.cnt, 1);
	assert_true(bench.top.row[0].eps == 2 && bench.top.row[0].peers == 2 && bench.top.row[0].out.bytes == 60);
	assert_string_equal(bench.top.row[0].command, "program a/b");
	end(&bench);
}

static void an_endpoint_without_peers_has_a_row(void **state)
{
	struct bench bench = { .top.cnt = 0 };

	(void) state;
	read_twice(&bench, page_new(7), page_new(7), TOP_PEERS);
	assert_int_equal(bench.top.cnt, 1);
	assert_string_equal(bench.top.row[0].addr, "-");
	end(&bench);
}

static void the_oldest_operation_is_shown_and_torn_records_are_not(void **state)
{
	struct fi_stats_page *now = page_new(7);
	struct fi_stats_pending pending = { .begun = 3, .written = 3, .since = 105 * SECOND, .state = FI_STATS_CREDIT };
	struct bench bench = { .top.cnt = 0 };
	struct fi_stats_peer *peer = add_peer(now, 0, "A", 0, 0);

	(void) state;
	peer->pending[FI_STATS_PEER_MESSAGE] = pending;
	pending.since = 102 * SECOND;
	pending.state = FI_STATS_ANSWER;
	peer->pending[FI_STATS_PEER_ACCESS] = pending;
	pending.since = 101 * SECOND;
	pending.begun = 4;
	peer->pending[FI_STATS_PEER_CONNECT] = pending;
	peer->pending[FI_STATS_PEER_KEPT] = (struct fi_stats_pending) { .since = 1, .cnt = 12 };
	read_twice(&bench, NULL, now, TOP_PEERS);
	assert_int_equal(bench.top.row[0].waits, FI_STATS_ANSWER);
	assert_true(bench.top.row[0].waits_s == 10 && bench.top.row[0].kept == 12);
	end(&bench);
}

static void rows_are_sorted_by_each_key(void **state)
{
	static const char *const orders[TOP_KEYS] = {
		[TOP_BY_PID] = "abc", [TOP_BY_PEER] = "abc", [TOP_BY_OPS] = "cab", [TOP_BY_BYTES] = "bca",
		[TOP_BY_QUEUE] = "bac", [TOP_BY_KEPT] = "acb", [TOP_BY_ERRORS] = "cba", [TOP_BY_WAITS] = "bca",
	};
	struct top_row rows[] = {
		{ .pid = 1, .ep = 2, .addr = "a", .out = { .ops_s = 2, .bytes_s = 1 }, .queued = 2, .kept = 3 },
		{ .pid = 2, .ep = 1, .addr = "b", .out = { .ops_s = 1, .bytes_s = 3 }, .queued = 3, .kept = 1,
		  .errors = 1, .waits = FI_STATS_SENT, .waits_s = 5 },
		{ .pid = 3, .addr = "c", .in = { .ops_s = 3, .bytes_s = 2 }, .queued = 1, .kept = 2, .errors = 2,
		  .waits = FI_STATS_SENT, .waits_s = 0 },
	};

	(void) state;
	for (int key = 0; key < TOP_KEYS; key++) {
		struct top top = { .row = rows, .cnt = 3 };
		char order[4] = "";

		top_sort(&top, key, false);
		for (int i = 0; i < 3; i++)
			order[i] = rows[i].addr[0];
		assert_string_equal(order, orders[key]);
		top_sort(&top, key, true);
		for (int i = 0; i < 3; i++)
			assert_int_equal(rows[i].addr[0], orders[key][2 - i]);
	}
}

static void lines_align_and_have_no_control_characters(void **state)
{
	struct fi_stats_page *now = page_new(7);
	struct bench bench = { .top.cnt = 0 };
	struct top_layout layout;
	char titles[256], line[256], cut[8];
	size_t len;

	(void) state;
	add_peer(now, 0, "\x1b[2J\x9b\n", 12345678, 5);
	memset(now->ep[0].prov, 'x', sizeof(now->ep[0].prov));
	strcpy(now->header.rank, "3");
	read_twice(&bench, page_new(7), now, TOP_PEERS);
	top_layout(&layout, &bench.top, TOP_PEERS, false);
	top_line(titles, sizeof(titles), &layout, NULL);
	len = top_line(line, sizeof(line), &layout, &bench.top.row[0]);
	assert_int_equal(len, strlen(line));
	assert_string_equal(titles, "  PID RANK EP                PEER   LINK OUT/s OUTB/s  IN/s INB/s QUEUE KEPT ERR "
			    "WAITS");
	assert_string_equal(line, "    7    3 xxxxxxxxxxxxxxx/0 ?[2J?? ring 6.17M      2     0     0     0    0   0 "
			    "-");
	assert_int_equal(top_line(cut, sizeof(cut), &layout, &bench.top.row[0]), len);
	assert_string_equal(cut, "    7  ");
	top_layout(&layout, &bench.top, TOP_PEERS, true);
	top_line(line, sizeof(line), &layout, &bench.top.row[0]);
	assert_non_null(strstr(line, " 6172839 "));
	assert_non_null(strstr(line, " 12345678 "));
	end(&bench);
}

static void numbers_and_durations_have_five_characters(void **state)
{
	static const struct {
		double value;
		const char *number, *duration;
	} rows[] = {
		{ 0, "0", "0.0s" }, { 9.94, "10", "9.9s" }, { 9.96, "10", "10s" }, { 119.4, "119", "119s" },
		{ 120, "120", "2m" }, { 7199, "7199", "120m" }, { 9999, "9999", "3h" }, { 9999.6, "10.0k", "3h" },
		{ 99949, "99.9k", "28h" }, { 99951, "100k", "28h" }, { 999499, "999k", "12d" },
		{ 999501, "1.00M", "12d" },
		{ 1.5e9, "1.50G", "ages" }, { 1.8e19, "18.0E", "ages" }, { 1e300, "huge", "ages" },
	};
	char buf[16];

	(void) state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_string_equal(top_number(buf, sizeof(buf), rows[i].value), rows[i].number);
		assert_string_equal(top_duration(buf, sizeof(buf), rows[i].value), rows[i].duration);
	}
}

static void a_process_that_cannot_be_seen_is_left_out_once_it_is_quiet(void **state)
{
	struct fi_stats_page *page = page_new(7);
	struct pages pages = { .list = &(struct page) { .pid = 0 }, .cnt = 1 };
	struct top top = { .cnt = 0 };

	(void) state;
	pages.list[0] = page_at(page, 112 * SECOND);
	pages.list[0].ours = false;
	assert_true(top_make(&top, TOP_PROCESSES, &pages, 1, NULL, 0));
	assert_true(top.cnt == 1 && top.row[0].state == '?');
	pages.list[0] = page_at(page, 1112 * SECOND);
	pages.list[0].ours = false;
	assert_true(top_make(&top, TOP_PROCESSES, &pages, 1, NULL, 0));
	assert_int_equal(top.cnt, 0);
	top_free(&top);
	free(page);
}

/* Replace random words of a page by random ones, of which some are small or near to valid ones. */
static void spoil(struct fi_stats_page *page, unsigned seed)
{
	uint64_t *words = (uint64_t *) page;
	size_t cnt = seed % 2 ? offsetof(struct fi_stats_page, event) / 8 : sizeof(page->header) / 8;

	srandom(seed);
	for (int i = 0; i < 200; i++) {
		uint64_t *word = &words[(size_t) random() % cnt];

		*word = random() % 3 ? (uint64_t) random() << 33 ^ (uint64_t) random() :
			*word + (uint64_t) random() % 5 - 2;
	}
	page->header.magic = FI_STATS_MAGIC;
	page->header.version = FI_STATS_VERSION;
}

static void rubbish_does_no_harm(void **state)
{
	char line[512];

	(void) state;
	for (unsigned seed = 0; seed < 3000; seed++) {
		struct fi_stats_page *before = page_new(7), *now = page_new(7);
		struct bench bench = { .top.cnt = 0 };
		struct top_layout layout;

		for (int i = 0; i < 20; i++)
			add_peer(now, i, "A", 1, 1);
		spoil(before, 3 * seed + 1);
		spoil(now, seed);
		read_twice(&bench, before, now, seed % TOP_VIEWS);
		bench.now.list[0].source.len = seed % 5 ? sizeof(*now) : (size_t) random() % sizeof(*now);
		assert_true(top_make(&bench.top, seed % TOP_VIEWS, &bench.now, 1, &bench.before, 110 * SECOND));
		top_sort(&bench.top, seed % TOP_KEYS, false);
		top_layout(&layout, &bench.top, seed % TOP_VIEWS, seed & 64);
		for (size_t i = 0; i < bench.top.cnt; i++) {
			top_line(line, sizeof(line), &layout, &bench.top.row[i]);
			for (const char *c = line; *c; c++)
				assert_true(*c >= ' ' && *c < 127);
		}
		end(&bench);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_differences_by_time),
		cmocka_unit_test(counters_that_move_are_counted_once),
		cmocka_unit_test(a_process_that_came_counts_from_zero_and_an_older_one_has_no_rates),
		cmocka_unit_test(a_counter_that_went_back_counts_from_zero),
		cmocka_unit_test(rows_are_of_endpoints_or_processes),
		cmocka_unit_test(an_endpoint_without_peers_has_a_row),
		cmocka_unit_test(the_oldest_operation_is_shown_and_torn_records_are_not),
		cmocka_unit_test(rows_are_sorted_by_each_key),
		cmocka_unit_test(lines_align_and_have_no_control_characters),
		cmocka_unit_test(numbers_and_durations_have_five_characters),
		cmocka_unit_test(a_process_that_cannot_be_seen_is_left_out_once_it_is_quiet),
		cmocka_unit_test(rubbish_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
