/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The page of this process, and its reader with pages of rubbish.
 */
#include "base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "stats.h"
#include "stats_why.h"

static uint64_t seed = 88172645463325252ULL;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Two pages of processes that wait for each other's receives. */
static void make_pages(struct fi_stats_page page[2])
{
	const struct fi_stats_page *own = fab_stats_page();

	for (int i = 0; i < 2; i++) {
		memcpy(&page[i], own, sizeof(page[i]));
		page[i].header.pid = 100 + i;
		page[i].engine[0] = (struct fi_stats_engine) { .used = FI_STATS_LIVE, .last_pass = fab_ticks() };
		page[i].ep[0] = (struct fi_stats_ep) { .used = FI_STATS_LIVE, .incarnation = 7 + i, .enabled = 1 };
		page[i].peer[0] = (struct fi_stats_peer) { .used = FI_STATS_LIVE, .incarnation = 8 - i };
		page[i].peer[0].pending[0] = (struct fi_stats_pending) {
			.since = page[i].header.open_ticks + 1, .cnt = 1, .tag = 7, .len = 9, .peer = UINT32_MAX,
			.op = FI_STATS_TSEND, .state = FI_STATS_ANNOUNCED, .flags = FI_STATS_TAGGED,
		};
	}
}

static size_t explain(const struct fi_stats_page page[2], char *text, size_t len, struct fi_stats_verdict *verdict)
{
	struct fi_stats_source source[2];

	for (int i = 0; i < 2; i++)
		source[i] = (struct fi_stats_source) { &page[i], sizeof(page[i]), fab_ticks(), fab_now_ns(), 'R' };
	return fab_stats_explain(source, 2, 2, 0, FI_STATS_FORM_TEXT, text, len, verdict);
}

static void two_that_wait_for_each_other_are_a_cycle(void **state)
{
	struct fi_stats_page *page = calloc(2, sizeof(*page));
	struct fi_stats_verdict verdict;
	char text[4096];

	(void) state;
	make_pages(page);
	explain(page, text, sizeof(text), &verdict);
	assert_int_equal(verdict.cycles, 1);
	assert_int_equal(verdict.stuck, 2);
	assert_memory_equal(text, "CYCLE: ", 7);
	assert_non_null(strstr(text, "pid 100 waits for pid 101"));
	assert_non_null(strstr(text, "to post a receive with tag 7"));
	free(page);
}

/* Who asks about a third process is told nothing of them. */
static void a_cycle_of_others_is_not_told(void **state)
{
	struct fi_stats_page *page = calloc(3, sizeof(*page));
	struct fi_stats_source source[3];
	struct fi_stats_verdict verdict;
	char text[4096];

	(void) state;
	make_pages(page + 1);
	memcpy(page, fab_stats_page(), sizeof(*page));
	page->header.pid = 102;
	for (int i = 0; i < 3; i++)
		source[i] = (struct fi_stats_source) { &page[i], sizeof(page[i]), fab_ticks(), fab_now_ns(), 'R' };
	fab_stats_explain(source, 3, 1, 0, FI_STATS_FORM_TEXT, text, sizeof(text), &verdict);
	assert_int_equal(verdict.cycles, 0);
	assert_int_equal(verdict.stuck, 0);
	assert_null(strstr(text, "CYCLE"));
	free(page);
}

static void pages_that_cannot_be_read_are_counted(void **state)
{
	struct fi_stats_page *page = calloc(2, sizeof(*page));
	struct fi_stats_verdict verdict;
	char text[4096];

	(void) state;
	make_pages(page);
	page[0].header.version = page[1].header.version = FI_STATS_VERSION + 1;
	explain(page, text, sizeof(text), &verdict);
	assert_int_equal(verdict.bad, 2);
	assert_memory_equal(text, "2 pages cannot be read: ", 24);
	assert_null(strstr(text + 24, "cannot be read"));
	free(page);
}

/* Something that waits, in any state that there may be, whether it makes sense there or not. */
static void make_nonsense(struct fi_stats_pending *pending, uint64_t since)
{
	*pending = (struct fi_stats_pending) {
		.since = since, .number = next_random() % 3, .cnt = next_random() % 3, .tag = next_random(),
		.ignore = next_random() % 2 ? next_random() : 0, .len = next_random(),
		.peer = (uint32_t) (next_random() % 200), .op = (uint8_t) (next_random() % FI_STATS_OPS),
		.state = (uint8_t) (next_random() % FI_STATS_STATES), .flags = (uint16_t) (next_random() % 16),
	};
}

static void fill_with_nonsense(struct fi_stats_page *page)
{
	const uint64_t since = page->header.open_ticks + 1;

	for (int i = 0; i < FI_STATS_PEER_KINDS; i++) {
		make_nonsense(&page->peer[0].pending[i], since);
		make_nonsense(&page->ep[0].rest.pending[i], since);
	}
	for (int i = 0; i < FI_STATS_EP_KINDS; i++)
		make_nonsense(&page->ep[0].pending[i], since);
	make_nonsense(&page->wait[0].pending, since);
	page->wait[0].used = FI_STATS_LIVE;
	page->wait[0].deferred = (uint32_t) (next_random() % 2);
	page->ep[0].fclass = (uint32_t) (next_random() % 12);
	page->ep[0].type = (uint32_t) (next_random() % 4);
	page->peer[0].carrier = (uint16_t) (next_random() % 8);
	page->peer[0].conn = (uint16_t) (next_random() % 6);
	page->figure[0] = (struct fi_stats_figure) { .used = FI_STATS_LIVE, .value = next_random(),
						     .name = "x_held_y" };
}

/* Each state is told in words, also where no release would write it. */
static void nonsense_is_told(void **state)
{
	struct fi_stats_page *page = calloc(2, sizeof(*page));
	struct fi_stats_verdict verdict;
	static char text[65536];

	(void) state;
	for (int i = 0; i < 2000; i++) {
		make_pages(page);
		fill_with_nonsense(&page[0]);
		assert_true(explain(page, text, sizeof(text), &verdict) < sizeof(text));
		assert_non_null(strstr(text, "pid 100"));
		assert_null(strstr(text, "(null)"));
	}
	free(page);
}

/* A reader must not read outside of a page, nor take long, whatever is in it. */
static void rubbish_does_no_harm(void **state)
{
	struct fi_stats_page *page = calloc(2, sizeof(*page));
	struct fi_stats_verdict verdict;
	static char text[65536];

	(void) state;
	for (int i = 0; i < 500; i++) {
		make_pages(page);
		for (uint64_t j = next_random() % 64; j; j--) {
			uint64_t at = next_random() % (next_random() % 2 ? sizeof(page->header) : sizeof(*page));

			((uint8_t *) &page[j % 2])[at] = (uint8_t) next_random();
		}
		explain(page, text, sizeof(text), &verdict);
	}
	for (size_t len = 0; len < sizeof(*page); len += 997) {
		const struct fi_stats_source source = { page, len, fab_ticks(), fab_now_ns(), 'R' };

		fab_stats_explain(&source, 1, 1, 0, FI_STATS_FORM_JSON, text, sizeof(text), &verdict);
	}
	free(page);
}

/* No byte of a text can control a terminal. */
static void text_is_printable(void **state)
{
	struct fi_stats_page *page = calloc(2, sizeof(*page));
	struct fi_stats_verdict verdict;
	static char text[65536];

	(void) state;
	make_pages(page);
	for (int i = 0; i < 2; i++)
		memset(page[i].header.command, 0x9b, sizeof(page[i].header.command));
	memset(page[0].peer[0].addr, 0x85, sizeof(page[0].peer[0].addr));
	explain(page, text, sizeof(text), &verdict);
	for (const char *at = text; *at; at++)
		assert_true(*at == '\n' || (*at >= ' ' && *at < 127));
	free(page);
}

static void object_hands_out_the_page(void **state)
{
	struct fi_ops_stats *ops;
	struct fid *fid;

	(void) state;
	assert_int_equal(fi_open(FI_VERSION(1, 20), "stats", NULL, 0, 0, &fid, NULL), 0);
	assert_int_equal(fi_open_ops(fid, "another", 0, (void **) &ops, NULL), -FI_EINVAL);
	assert_int_equal(fi_open_ops(fid, FI_STATS_OPS_1, 0, (void **) &ops, NULL), 0);
	assert_ptr_equal(ops->page(fid), fab_stats_page());
	assert_int_equal(fi_close(fid), 0);
}

/* A page may say anything. What is far in the future or the past, stays there. */
static void times_do_not_overflow(void **state)
{
	const struct fi_stats_header header = { .clock = FI_STATS_CLOCK_TSC, .open_ticks = 1, .open_ns = 1 };
	const uint64_t now_ns = UINT64_C(1000000000000000000);

	(void) state;
	assert_true(fi_stats_ns(&header, UINT64_MAX / 2, 2, now_ns) > (int64_t) now_ns);
	assert_true(fi_stats_ns(&header, 0, UINT64_MAX / 2, now_ns) < 10);
	assert_int_equal(fi_stats_ns(&header, 2, 2, now_ns), now_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_that_wait_for_each_other_are_a_cycle),
		cmocka_unit_test(a_cycle_of_others_is_not_told),
		cmocka_unit_test(pages_that_cannot_be_read_are_counted),
		cmocka_unit_test(nonsense_is_told),
		cmocka_unit_test(rubbish_does_no_harm),
		cmocka_unit_test(text_is_printable),
		cmocka_unit_test(object_hands_out_the_page),
		cmocka_unit_test(times_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
