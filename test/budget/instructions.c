/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The instructions of a call, counted by stepping through it one at a time (the trap flag of x86, SIGTRAP); a system
 * call is one of them. What a short message costs, and a look at a queue that finds nothing; what a threading level
 * saves. BUDGET_STEPS=FILE writes which instructions a message takes (test/why/cost.test).
 */
#include "traffic.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum fi_threading wanted;

static void ask_for_level(struct fi_info *hints)
{
	traffic_manual(hints);
	hints->domain_attr->threading = wanted;
}

enum { CALLS = 4 };

/* The calls of a message of 8 bytes. */
enum call_of_message {
	POST,				/* fi_trecv() */
	SUBMIT,				/* fi_tsend() */
	READ_SENT,			/* fi_cq_read() of its completion */
	READ_RECEIVED,			/* fi_cq_read() that receives it */
	MESSAGE_CALLS,
	LOOK = MESSAGE_CALLS,		/* fi_cq_read() that finds nothing */
	COSTS
};

/* The calls of a remote access of 8 bytes. */
enum call_of_access {
	ACCESS,				/* fi_write(), fi_read(), fi_fetch_atomic() */
	SERVE,				/* the target's fi_cq_read(), which finds no entry */
	READ_DONE,			/* fi_cq_read() of its completion */
	ACCESS_CALLS
};

enum {
	MESSAGES = 7,
	LOOKS = 5,			/* after each message */
};

#if defined(__x86_64__) && !SANITIZED
static volatile unsigned long steps;
/* Where the steps of the calls of a message are; their number so far, less 1. */
static struct trail {
	unsigned long cnt;
	uintptr_t at[4096];
} trails[MESSAGE_CALLS];
static int trail_call;

/* The calls of a message do not tell where one ends: what they compute between them would be counted. */
static void on_step(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *at = context;
	struct trail *trail;

	(void) sig;
	(void) info;
	trail_call += !steps && trail_call < MESSAGE_CALLS;
	trail = trail_call < MESSAGE_CALLS ? &trails[trail_call] : NULL;
	if (trail && steps < COUNT(trail->at)) {
		trail->at[steps] = (uintptr_t) at->uc_mcontext.gregs[REG_RIP];
		trail->cnt = steps + 1;
	}
	steps++;
}

/* Write the steps of a message: lines of the number of the message, that of the call, the file and the offset in it. */
static void write_steps(void)
{
	static int number;
	const char *path = getenv("BUDGET_STEPS");
	FILE *out = path ? fopen(path, "a") : NULL;
	Dl_info where;

	if (!out)
		return;
	for (int call = 0; call < MESSAGE_CALLS; call++)
		for (unsigned long i = 0; i < trails[call].cnt; i++)
			if (dladdr((void *) trails[call].at[i], &where))
				fprintf(out, "%d %d %s 0x%lx\n", number, call, where.dli_fname,
					(unsigned long) (trails[call].at[i] - (uintptr_t) where.dli_fbase));
	number++;
	fclose(out);
}

/* From here to there each instruction is a signal. What is on the stack below its end stays untouched. */
#define TRAP_FLAG(change) \
	__asm__ volatile("sub $128, %%rsp; pushfq; " change ", (%%rsp); popfq; lea 128(%%rsp), %%rsp" \
			 : : : "memory", "cc")
#define STEPPING	TRAP_FLAG("orq $0x100")
#define STEPPED		TRAP_FLAG("andq $~0x100")

/* Evaluate `expr`, a call; the number of its instructions. */
#define STEPS_OF(ret, expr) (steps = 0, ({ STEPPING; ret = (expr); STEPPED; }), steps)

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
	struct sigaction trap = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, before;
	struct pair p = traffic_pair(t, .hints = ask_for_level);
	unsigned long cnt = 0;

	stream(&p, PLAIN, 8, CALLS, 2 * CALLS);		/* what happens once */
	sigaction(SIGTRAP, &trap, &before);
	for (int done = 0; done < 2; done += cnt > 0)	/* the first finds calls that have not been looked up */
		cnt = try_steps(&p);
	sigaction(SIGTRAP, &before, NULL);
	return cnt;
}

static int by_size(const void *a, const void *b)
{
	const unsigned long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Sorts the values. */
static unsigned long lowest(unsigned long *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), by_size);
	return values[0];
}

/* One message, and looks behind it. False: the first read did not find it. */
static bool step_through_message(struct pair *p, unsigned long cost[MESSAGE_CALLS], unsigned long looks[LOOKS])
{
	struct fi_cq_tagged_entry entry;
	static char in[8];
	ssize_t ret;

	trail_call = -1;
	cost[POST] = STEPS_OF(ret, fi_trecv(p->b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	MUST(ret);
	cost[SUBMIT] = STEPS_OF(ret, fi_tsend(p->a->ep, "message", 8, NULL, p->a->peer, 1, NULL));
	MUST(ret);
	cost[READ_SENT] = STEPS_OF(ret, fi_cq_read(p->a->tx_cq, &entry, 1));
	CHECK_EQ(ret, 1);
	cost[READ_RECEIVED] = STEPS_OF(ret, fi_cq_read(p->b->tx_cq, &entry, 1));
	if (ret != 1) {
		while ((ret = fi_cq_read(p->b->tx_cq, &entry, 1)) == -FI_EAGAIN)
			;
		CHECK_EQ(ret, 1);
		return false;
	}
	write_steps();
	for (int i = 0; i < LOOKS; i++) {
		looks[i] = STEPS_OF(ret, fi_cq_read(p->b->tx_cq, &entry, 1));
		CHECK_EQ(ret, -FI_EAGAIN);
	}
	fi_cq_read(p->a->tx_cq, NULL, 0);	/* the next send is the first since a pass */
	return true;
}

/* The lowest of many messages, and of the looks behind them. What happens a few times a second (a survey of
 * what is pending, fi_stats(7)) is not of a message; to step through one takes long. */
static void count_message(struct test *t, unsigned long cost[COSTS])
{
	struct sigaction trap = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, before;
	const uint64_t more = run.type == FI_EP_MSG ? 0 : FI_DIRECTED_RECV | FI_SOURCE;
	struct pair p = traffic_pair(t, .hints = ask_for_level, .caps = FI_MSG | FI_TAGGED | FI_RMA | more);
	unsigned long looks[MESSAGES * LOOKS], each[COSTS][MESSAGES], one[MESSAGE_CALLS];

	stream(&p, TAGGED, 8, CALLS, 2 * CALLS);		/* what happens once */
	while (fi_cq_read(p.a->tx_cq, NULL, 0) == 0 || fi_cq_read(p.b->tx_cq, NULL, 0) == 0)
		;
	sigaction(SIGTRAP, &trap, &before);
	for (int i = 0; i < MESSAGES;) {
		if (!step_through_message(&p, one, &looks[i * LOOKS]))
			continue;
		for (int call = 0; call < MESSAGE_CALLS; call++)
			each[call][i] = one[call];
		i++;
	}
	sigaction(SIGTRAP, &before, NULL);
	for (int call = 0; call < MESSAGE_CALLS; call++)
		cost[call] = lowest(each[call], MESSAGES);
	cost[LOOK] = lowest(looks, COUNT(looks));
}

/* One remote access. False: the target's first look did not find it, or the answer was not there at once. */
static bool step_through_access(struct pair *p, enum kind kind, unsigned long cost[ACCESS_CALLS])
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	cost[ACCESS] = STEPS_OF(ret, traffic_start(p->a, kind, 8));
	MUST(ret);
	cost[SERVE] = STEPS_OF(ret, fi_cq_read(p->b->tx_cq, &entry, 1));
	CHECK_EQ(ret, -FI_EAGAIN);
	cost[READ_DONE] = STEPS_OF(ret, fi_cq_read(p->a->tx_cq, &entry, 1));
	if (ret == 1)
		return true;
	while (ret != 1) {
		fi_cq_read(p->b->tx_cq, NULL, 0);
		ret = fi_cq_read(p->a->tx_cq, &entry, 1);
	}
	return false;
}

/* The lowest of many accesses, as above. */
static void count_access(struct test *t, enum kind kind, unsigned long cost[ACCESS_CALLS])
{
	struct sigaction trap = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, before;
	struct pair p = traffic_pair(t, .hints = ask_for_level, .caps = FI_MSG | FI_RMA | FI_ATOMIC);
	unsigned long each[ACCESS_CALLS][MESSAGES], one[ACCESS_CALLS];

	stream(&p, kind, 8, CALLS, 2 * CALLS);		/* what happens once */
	sigaction(SIGTRAP, &trap, &before);
	for (int i = 0; i < MESSAGES;) {
		while (fi_cq_read(p.b->tx_cq, NULL, 0) != -FI_EAGAIN || fi_cq_read(p.a->tx_cq, NULL, 0) != -FI_EAGAIN)
			;
		if (!step_through_access(&p, kind, one))
			continue;
		for (int call = 0; call < ACCESS_CALLS; call++)
			each[call][i] = one[call];
		i++;
	}
	sigaction(SIGTRAP, &before, NULL);
	for (int call = 0; call < ACCESS_CALLS; call++)
		cost[call] = lowest(each[call], MESSAGES);
}
#else
static unsigned long count_steps(struct test *t)
{
	(void) t;
	(void) ask_for_level;
	SKIP("wants an x86, and no sanitizer");
	return 0;
}

static void count_message(struct test *t, unsigned long cost[COSTS])
{
	(void) cost;
	count_steps(t);
}

static void count_access(struct test *t, enum kind kind, unsigned long cost[ACCESS_CALLS])
{
	(void) kind;
	(void) cost;
	count_steps(t);
}
#endif

/* What static probes add (--enable-probes): a nop each, and what their arguments move (doc/decisions/probes.md). */
#ifdef FAB_PROBES
enum { PROBES_OF_MESSAGE = 7, PROBES_OF_ACCESS = 14 };
#else
enum { PROBES_OF_MESSAGE = 0, PROBES_OF_ACCESS = 0 };
#endif

/* Budgets of a release build with gcc. */
struct message_row {
	const char *name;
	enum fi_threading threading;
	struct message_budget {
		unsigned long message;	/* the four calls together */
		unsigned long look;
	} socket, ring;			/* over a TCP socket; over rings in shared memory */
};

static const struct message_row message_rows[] = {
	{ "safe", FI_THREAD_SAFE, { 1364, 214 }, { 1547, 201 } },
	{ "fid", FI_THREAD_FID, { 1418, 220 }, { 1601, 206 } },
	{ "endpoint", FI_THREAD_ENDPOINT, { 1170, 158 }, { 1353, 144 } },
	{ "completion", FI_THREAD_COMPLETION, { 818, 95 }, { 1000, 73 } },
	{ "domain", FI_THREAD_DOMAIN, { 818, 95 }, { 1000, 73 } },
};

/* The budgets are those of a release build with gcc. */
static void need_release(void)
{
	const char *kind = getenv("BUILD_KIND");

#ifdef __clang__
	SKIP("the budgets are those of gcc");
#endif
	if (kind && strcmp(kind, "release"))
		SKIP("the budgets are those of a release build");
}

/* A tagged message of 8 bytes to a posted receive: the four calls that it takes, and a look that finds nothing. */
TEST_TABLE(of_a_message, message_rows, FI_MSG | FI_TAGGED, RELIABLE)
{
	const struct message_row *row = ROW(message_rows);
	const struct message_budget *budget = traffic_over_socket() ? &row->socket : &row->ring;
	unsigned long cost[COSTS], message = 0;

	wanted = row->threading;
	count_message(t, cost);
	for (int call = 0; call < MESSAGE_CALLS; call++)
		message += cost[call];
	printf("# %s: %lu for a message (fi_trecv %lu, fi_tsend %lu, fi_cq_read %lu, and %lu where it receives), "
	       "%lu for a look\n", row->name, message, cost[POST], cost[SUBMIT], cost[READ_SENT], cost[READ_RECEIVED],
	       cost[LOOK]);
	need_release();
	if (message > budget->message + PROBES_OF_MESSAGE)
		FAIL("%lu instructions for a message, budget %lu", message, budget->message + PROBES_OF_MESSAGE);
	if (cost[LOOK] > budget->look)
		FAIL("%lu instructions for a look that finds nothing, budget %lu", cost[LOOK], budget->look);
}

struct access_row {
	const char *name;
	enum kind kind;
	unsigned long socket, ring;	/* the three calls together */
};

static const struct access_row access_rows[] = {
	{ "write", WRITES, 773, 955 },
	{ "read", READS, 1905, 1530 },
	{ "fetch", FETCHES, 3268, 3261 },
};

/* A remote access of 8 bytes: the initiator's call, the target's look that serves it, and the read of its completion. A
 * write is at the level inject complete. */
TEST_TABLE(of_an_access, access_rows, FI_MSG | FI_RMA | FI_ATOMIC, RELIABLE)
{
	const struct access_row *row = ROW(access_rows);
	unsigned long cost[ACCESS_CALLS], budget = traffic_over_socket() ? row->socket : row->ring, all = 0;

	wanted = FI_THREAD_DOMAIN;
	count_access(t, row->kind, cost);
	for (int call = 0; call < ACCESS_CALLS; call++)
		all += cost[call];
	printf("# %s: %lu (the call %lu, at the target %lu, fi_cq_read %lu)\n", row->name, all, cost[ACCESS],
	       cost[SERVE], cost[READ_DONE]);
	need_release();
	budget += PROBES_OF_ACCESS;
	if (all > budget)
		FAIL("%lu instructions, budget %lu", all, budget);
}

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
