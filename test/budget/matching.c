/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching does not grow with what is outstanding: with 10,000 receives against 10 a message costs at most 1.5 times
 * as much, and a cancelled receive at most twice as much. Counted in instructions where the kernel lets us, else in
 * processor time, the best of several.
 */
#include "traffic.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MSGS = 4000, ROUNDS = 7 };

static int perf_fd = -1;

static bool perf_open(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE, .size = sizeof(attr),
					.config = PERF_COUNT_HW_INSTRUCTIONS, .exclude_kernel = 1, .exclude_hv = 1 };

	if (perf_fd < 0)
		perf_fd = (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return perf_fd >= 0;
}

static void perf_close(void)
{
	if (perf_fd >= 0)
		close(perf_fd);
	perf_fd = -1;
}

static double cost_now(void)
{
	struct timespec ts;
	uint64_t count;

	if (perf_fd >= 0 && read(perf_fd, &count, sizeof(count)) == sizeof(count))
		return (double) count;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

/* Receives with other tags, posted before, which no message matches. */
static void post_others(struct side *s, size_t cnt)
{
	static char buf[8];
	size_t i;

	for (i = 0; i < cnt; i++)
		MUST(fi_trecv(s->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, (1000 + i) << 8, 0, NULL));
}

static double cost_per_message(struct pair *p)
{
	double best = 0, start, cost;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		start = cost_now();
		ping_pong(p, TAGGED, 8, MSGS / 2);
		cost = (cost_now() - start) / MSGS;
		if (i == 0 || cost < best)
			best = cost;
	}
	return best;
}

TEST_PROV(receives_outstanding, FI_MSG | FI_TAGGED, RELIABLE)
{
	struct pair p = traffic_pair(t, .rx_size = 20000);
	double few, many;

	perf_open();
	post_others(p.b, 10);
	few = cost_per_message(&p);
	post_others(p.b, 10000);
	many = cost_per_message(&p);
	printf("# a message costs %.0f with 10 receives outstanding, %.0f with 10,000 (%s)\n", few, many,
	       perf_fd >= 0 ? "instructions" : "ns of processor time");
	perf_close();
	if (many > 1.5 * few)
		FAIL("%.2f times the cost, budget 1.5", many / few);
}

/* Post cnt receives, cancel them, the youngest first, and read their completions. What one of them costs. */
static double cost_per_cancel(struct side *s, size_t cnt)
{
	static char in[10000];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	double start = cost_now();
	size_t i;

	for (i = 0; i < cnt; i++)
		MUST(fi_trecv(s->ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, i, 0, &in[i]));
	for (i = cnt; i--; ) {
		MUST(fi_cancel(&s->ep->fid, &in[i]));
		CHECK_EQ(fi_cq_read(s->rx_cq, &entry, 1), -FI_EAVAIL);
		CHECK_EQ(fi_cq_readerr(s->rx_cq, &err, 0), 1);
		CHECK(err.op_context == &in[i] && err.err == FI_ECANCELED);
	}
	return (cost_now() - start) / cnt;
}

TEST_PROV(receives_cancelled, FI_MSG | FI_TAGGED, RELIABLE)
{
	struct pair p = traffic_pair(t, .rx_size = 20000);
	double few = 0, many = 0;
	unsigned int i;

	perf_open();
	for (i = 0; i < ROUNDS; i++) {
		double ten = cost_per_cancel(p.b, 10), all = cost_per_cancel(p.b, 10000);

		few = i && few < ten ? few : ten;
		many = i && many < all ? many : all;
	}
	printf("# a cancelled receive costs %.0f among 10, %.0f among 10,000 (%s)\n", few, many,
	       perf_fd >= 0 ? "instructions" : "ns of processor time");
	perf_close();
	if (many > 2 * few)
		FAIL("%.2f times the cost, budget 2", many / few);
}
