/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * util/why_prom.c with pages that lie about their tables. A page lies between two others that nobody may read, and ends
 * where they begin.
 */
#include "../../util/why_prom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Just after a page that cannot be read, or just before one. */
static char *first, *last;

static int setup(void **state)
{
	size_t unit = (size_t) sysconf(_SC_PAGESIZE), len = (sizeof(struct fi_stats_page) / unit + 1) * unit;
	char *mem = mmap(NULL, len + 2 * unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void) state;
	assert_true(mem != MAP_FAILED);
	assert_int_equal(mprotect(mem + unit, len, PROT_READ | PROT_WRITE), 0);
	first = mem + unit;
	last = mem + unit + len - sizeof(struct fi_stats_page);
	return 0;
}

/* A page with a metric of its endpoints, one of which is in use, and one of its peers. */
static struct fi_stats_header make_header(void)
{
	struct fi_stats_header header = { .magic = FI_STATS_MAGIC, .version = FI_STATS_VERSION, .pid = 7 };

	header.table[FI_STATS_EPS] = (struct fi_stats_table) {
		.offset = offsetof(struct fi_stats_page, ep), .size = sizeof(struct fi_stats_ep), .cnt = 1,
	};
	header.table[FI_STATS_PEERS] = (struct fi_stats_table) {
		.offset = offsetof(struct fi_stats_page, peer), .size = sizeof(struct fi_stats_peer), .cnt = 1,
	};
	header.label[0] = (struct fi_stats_label) { .name = "opened", .table = FI_STATS_EPS, .kind = FI_STATS_GAUGE,
						    .offset = offsetof(struct fi_stats_ep, opened) };
	header.label[1] = (struct fi_stats_label) { .name = "errors", .table = FI_STATS_PEERS,
						    .kind = FI_STATS_COUNTER,
						    .offset = offsetof(struct fi_stats_peer, errors) };
	return header;
}

/* What is printed about a page at this place with this header. */
static const char *printed(char *at, const struct fi_stats_header *header)
{
	static char text[4096];
	struct fi_stats_ep ep = { .used = FI_STATS_LIVE, .prov = "tcp", .opened = 42 };
	struct fi_stats_peer peer = { .used = FI_STATS_LIVE, .addr = "10.0.0.1:5", .errors = 3 };
	struct page page = { .source = { .page = at, .len = sizeof(struct fi_stats_page) } };
	struct pages pages = { .list = &page, .cnt = 1 };
	FILE *out;

	memset(at, 0, sizeof(struct fi_stats_page));
	memcpy(at, header, sizeof(*header));
	if (header->table[FI_STATS_EPS].offset == offsetof(struct fi_stats_page, ep))
		memcpy(at + offsetof(struct fi_stats_page, ep), &ep, sizeof(ep));
	memcpy(at + offsetof(struct fi_stats_page, peer), &peer, sizeof(peer));
	memset(text, 0, sizeof(text));
	out = fmemopen(text, sizeof(text), "w");
	assert_non_null(out);
	why_prom(out, &pages, 1, NULL);
	fclose(out);
	return text;
}

static void records_in_use_are_printed(void **state)
{
	const struct fi_stats_header header = make_header();
	const char *text = printed(first, &header);

	(void) state;
	assert_non_null(strstr(text, "weft_opened{pid=\"7\",rank=\"\",provider=\"tcp\",endpoint=\"0\"} 42\n"));
	assert_non_null(strstr(text, "weft_errors_total{pid=\"7\",rank=\"\",peer=\"10.0.0.1:5\",record=\"0\","
				     "provider=\"tcp\",endpoint=\"0\"} 3\n"));
}

/* The counter begins before the record, which is in use, or ends behind it. */
static void a_counter_beside_its_record_is_none(void **state)
{
	struct fi_stats_header header = make_header();

	(void) state;
	header.label[0].offset = UINT64_MAX - 7;
	assert_null(strstr(printed(first, &header), "weft_opened{"));
	header.label[0].offset = sizeof(struct fi_stats_ep) - 7;
	assert_null(strstr(printed(first, &header), "weft_opened{"));
}

/* Endpoints of one byte, the last of the page: their peer has no name of its endpoint. */
static void a_short_record_is_none(void **state)
{
	struct fi_stats_header header = make_header();

	(void) state;
	header.table[FI_STATS_EPS] = (struct fi_stats_table) {
		.offset = sizeof(struct fi_stats_page) - 1, .size = 1, .cnt = 1,
	};
	assert_non_null(strstr(printed(last, &header), "weft_errors_total{pid=\"7\",rank=\"\",peer=\"10.0.0.1:5\","
						       "record=\"0\",index=\"0\"} 3\n"));
}

/* Records at an odd place. */
static void records_anywhere_are_read(void **state)
{
	struct fi_stats_header header = make_header();

	(void) state;
	header.table[FI_STATS_EPS].offset = sizeof(struct fi_stats_page) - sizeof(struct fi_stats_ep);
	assert_non_null(strstr(printed(last, &header), "weft_errors_total{"));
	header.table[FI_STATS_PEERS].offset++;
	assert_non_null(printed(last, &header));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_in_use_are_printed),
		cmocka_unit_test(a_counter_beside_its_record_is_none),
		cmocka_unit_test(a_short_record_is_none),
		cmocka_unit_test(records_anywhere_are_read),
	};

	return cmocka_run_group_tests_name("util/prom", tests, setup, NULL);
}
