/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a threading level saves of a call itself: instructions, counted by stepping through it one at a time (the trap
 * flag of x86, SIGTRAP). Only calls that do no input or output, so that the count is the same each time.
 */
#include "traffic.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>

static enum fi_threading wanted;

static void ask_for_level(struct fi_info *hints)
{
	traffic_manual(hints);
	hints->domain_attr->threading = wanted;
}

enum { CALLS = 4 };

#if defined(__x86_64__) && !SANITIZED
static volatile unsigned long steps;

static void on_step(int sig)
{
	(void) sig;
	steps++;
}

/* From here to there each instruction is a signal. What is on the stack below its end stays untouched. */
#define TRAP_FLAG(change) \
	__asm__ volatile("sub $128, %%rsp; pushfq; " change ", (%%rsp); popfq; lea 128(%%rsp), %%rsp" \
			 : : : "memory", "cc")
#define STEPPING	TRAP_FLAG("orq $0x100")
#define STEPPED		TRAP_FLAG("andq $~0x100")

/* Post CALLS receives and read what completes them. Instructions of both, where the first read finds all; those that
 * find nothing, or make a pass, are not stepped through. 0: they came in more than one pass; once more, please. */
static unsigned long try_steps(struct pair *p)
{
	struct fi_cq_tagged_entry entry;
	static char in[8];
	ssize_t ret;
	int i;

	steps = 0;
	for (i = 0; i < CALLS; i++) {
		STEPPING;
		ret = fi_recv(p->b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL);
		STEPPED;
		MUST(ret);
	}
	for (i = 0; i < CALLS; i++)
		MUST(fi_inject(p->a->ep, "message", 8, p->a->peer));
	while ((ret = fi_cq_read(p->b->tx_cq, &entry, 1)) == -FI_EAGAIN)
		fi_cq_read(p->a->tx_cq, NULL, 0);
	for (i = 1; i < CALLS && ret == 1; i++) {
		STEPPING;
		ret = fi_cq_read(p->b->tx_cq, &entry, 1);
		STEPPED;
	}
	if (ret == 1)
		return steps;
	for (i--; i < CALLS; i += ret == 1)
		ret = fi_cq_read(p->b->tx_cq, &entry, 1);
	return 0;
}

static unsigned long count_steps(struct test *t)
{
	struct sigaction trap = { .sa_handler = on_step }, before;
	struct pair p = traffic_pair(t, .hints = ask_for_level);
	unsigned long cnt = 0;

	stream(&p, PLAIN, 8, CALLS, 2 * CALLS);		/* what happens once */
	sigaction(SIGTRAP, &trap, &before);
	for (int done = 0; done < 2; done += cnt > 0)	/* the first finds calls that have not been looked up */
		cnt = try_steps(&p);
	sigaction(SIGTRAP, &before, NULL);
	return cnt;
}
#else
static unsigned long count_steps(struct test *t)
{
	(void) t;
	(void) ask_for_level;
	SKIP("wants an x86, and no sanitizer");
	return 0;
}
#endif

/* A receive posted and its completion read, where that is there: each level takes fewer instructions than the one
 * above. The last two are alike there (but see locks/of_atomics_and_regions). */
TEST_PROV(of_a_post_and_a_read, FI_MSG | FI_TAGGED, RELIABLE)
{
	static const enum fi_threading level[] = {
		FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_ENDPOINT, FI_THREAD_COMPLETION, FI_THREAD_DOMAIN
	};
	unsigned long cnt[COUNT(level)];

	for (size_t i = 0; i < COUNT(level); i++) {
		wanted = level[i];
		cnt[i] = count_steps(t);
	}
	printf("# instructions of %d posts and %d reads: safe %lu, fid %lu, endpoint %lu, completion %lu, domain %lu\n",
	       CALLS, CALLS - 1, cnt[0], cnt[1], cnt[2], cnt[3], cnt[4]);
	for (size_t i = 1; i < COUNT(level); i++) {
		bool last = level[i] == FI_THREAD_DOMAIN;

		if (last ? cnt[i] > cnt[i - 1] : cnt[i] >= cnt[i - 1])
			FAIL("%lu instructions, the level above takes %lu", cnt[i], cnt[i - 1]);
	}
}
