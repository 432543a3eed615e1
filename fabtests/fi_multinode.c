/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_multinode: many processes that all talk to each other: full mesh, ring, gather, broadcast and all to all, with
 * messages or with RMA. What arrives names where it comes from and is checked.
 */
#include "lib/group.h"

#include <stdio.h>
#include <string.h>

struct pattern {
	const char *name;
	bool (*sends)(unsigned from, unsigned to, unsigned cnt);
};

struct settings {
	uint32_t cnt;
	const struct pattern *only;     /* NULL: all */
	bool rma, timing;
	struct func_buf out, in;        /* a part for each peer */
	struct func_region regions[GROUP_MAX];
	struct func_op tx[GROUP_MAX], rx[GROUP_MAX];
};

static bool mesh(unsigned from, unsigned to, unsigned cnt)
{
	(void) cnt;
	return from != to;
}

static bool ring(unsigned from, unsigned to, unsigned cnt)
{
	return to == (from + 1) % cnt && cnt > 1;
}

static bool gather(unsigned from, unsigned to, unsigned cnt)
{
	(void) cnt;
	return !to && from;
}

static bool broadcast(unsigned from, unsigned to, unsigned cnt)
{
	(void) cnt;
	return !from && to;
}

/* To ourselves as well. */
static bool alltoall(unsigned from, unsigned to, unsigned cnt)
{
	(void) from;
	(void) to;
	(void) cnt;
	return true;
}

static const struct pattern patterns[] = {
	{ "full-mesh", mesh }, { "ring", ring }, { "gather", gather }, { "broadcast", broadcast },
	{ "alltoall", alltoall },
};
#define PATTERN_CNT (sizeof(patterns) / sizeof(patterns[0]))

static const struct util_opt options[] = {
	{ 'n', "number", "NUMBER", "processes (default: 3)" },
	{ 'z', "pattern", "NAME", "full-mesh, ring, gather, broadcast or alltoall (default: each of them)" },
	{ 'x', "transfer", "msg|rma", "messages, or writes into the others' memory (default: msg)" },
	{ 'T', "timing", NULL, "print how long an iteration of each pattern takes" },
	GROUP_OPTION,
	{ 0, NULL, NULL, NULL },
};

static int take_pattern(struct settings *settings, const char *arg)
{
	size_t i;

	for (i = 0; i < PATTERN_CNT; i++) {
		if (!strcmp(arg, patterns[i].name)) {
			settings->only = &patterns[i];
			return 0;
		}
	}
	util_err("-z is '%s': full-mesh, ring, gather, broadcast or alltoall is allowed", arg);
	return -FI_EINVAL;
}

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	switch (key) {
	case 'n':
		return func_number("-n (processes)", arg, 1, GROUP_MAX, &settings->cnt);
	case 'z':
		return take_pattern(settings, arg);
	case 'T':
		settings->timing = true;
		return 0;
	case 'H':
		return group_take(func);
	}
	settings->rma = !strcmp(arg, "rma");
	if (settings->rma || !strcmp(arg, "msg"))
		return 0;
	util_err("-x is '%s': msg or rma is allowed", arg);
	return -FI_EINVAL;
}

static void hints(struct func *func, struct fi_info *hints)
{
	const struct settings *settings = func->own;

	if (settings->rma)
		hints->caps |= FI_RMA;
	else
		hints->caps |= FI_DIRECTED_RECV;
}

/* What one tells another. */
static uint64_t seq_of(const struct group *group, unsigned from, unsigned to, uint32_t round)
{
	return (uint64_t) round * 100003 + from * group->cnt + to;
}

static int post_recvs(struct func *func, struct group *group, const struct pattern *pattern)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	unsigned i;

	memset(settings->in.mem, 0, settings->in.len);
	for (i = 0; i < group->cnt && !settings->rma; i++) {
		settings->rx[i] = (struct func_op) { .done = 0 };
		if (pattern->sends(i, group->self, group->cnt))
			FUNC_POST(func, fi_recv(group->ep.ep, settings->in.mem + i * len, len, settings->in.desc,
						group->peers[i], &settings->rx[i]));
	}
	return 0;
}

static int post_one(struct func *func, struct group *group, unsigned to)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	char *mem = settings->out.mem + to * len;
	struct iovec iov = { .iov_base = mem, .iov_len = len };
	struct fi_rma_iov rma_iov = { .addr = settings->regions[to].addr + group->self * len, .len = len,
				      .key = settings->regions[to].key };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = &settings->out.desc, .iov_count = 1,
				  .addr = group->peers[to],
				  .rma_iov = &rma_iov, .rma_iov_count = 1, .context = &settings->tx[to] };

	if (settings->rma)
		FUNC_POST(func, fi_writemsg(group->ep.ep, &msg, func_delivery(func) | FI_COMPLETION));
	else
		FUNC_POST(func, fi_send(group->ep.ep, mem, len, settings->out.desc, group->peers[to],
					&settings->tx[to]));
	return 0;
}

static int send_all(struct func *func, struct group *group, const struct pattern *pattern, uint32_t round)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	unsigned i;

	for (i = 0; i < group->cnt; i++) {
		settings->tx[i] = (struct func_op) { .done = 1 };
		if (!pattern->sends(group->self, i, group->cnt))
			continue;
		settings->tx[i].done = 0;
		pp_fill(settings->out.mem + i * len, len, seq_of(group, group->self, i, round));
		FUNC_TRY(post_one(func, group, i));
	}
	for (i = 0; i < group->cnt; i++)
		FUNC_TRY(func_wait(func, &settings->tx[i], "an operation to complete"));
	return 0;
}

static int check_all(struct func *func, struct group *group, const struct pattern *pattern, uint32_t round)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	unsigned i;

	for (i = 0; i < group->cnt; i++) {
		if (!pattern->sends(i, group->self, group->cnt))
			continue;
		if (!settings->rma)
			FUNC_TRY(func_wait(func, &settings->rx[i], "a message of a member"));
		FUNC_TRY(pp_check(func->pp, settings->in.mem + i * len, len, seq_of(group, i, group->self, round)));
	}
	return 0;
}

static int once(struct func *func, struct group *group, const struct pattern *pattern, uint32_t round)
{
	struct settings *settings = func->own;

	FUNC_TRY(post_recvs(func, group, pattern));
	FUNC_TRY(group_barrier(func, group));
	FUNC_TRY(send_all(func, group, pattern, round));
	if (settings->rma)
		FUNC_TRY(group_barrier(func, group));
	FUNC_TRY(check_all(func, group, pattern, round));
	return group_barrier(func, group);
}

/* Everyone's memory is known to everyone. */
static int share_memory(struct func *func, struct group *group)
{
	struct settings *settings = func->own;
	bool virt_addr = func->pp->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	size_t len = group->cnt * func_size(func, 0);
	struct func_region ours;

	FUNC_TRY(func_buf(func, &settings->out, len, FI_SEND | FI_WRITE));
	FUNC_TRY(func_buf(func, &settings->in, len, FI_RECV | (settings->rma ? FI_REMOTE_WRITE : 0)));
	if (!settings->rma)
		return 0;
	if (!func->delivery)
		return func_skip(func, "writes that complete when they are there");
	ours = (struct func_region) { .addr = virt_addr ? (uintptr_t) settings->in.mem : 0,
				      .key = fi_mr_key(settings->in.mr) };
	return group_gather(func, group, &ours, settings->regions, sizeof(ours));
}

static int member(struct func *func, struct group *group)
{
	struct settings *settings = func->own;
	uint32_t round = 0, i;
	uint64_t start;
	size_t which;

	FUNC_TRY(share_memory(func, group));
	for (which = 0; which < PATTERN_CNT; which++) {
		if (settings->only && settings->only != &patterns[which])
			continue;
		start = util_now_ns();
		for (i = 0; i < func->iterations; i++)
			FUNC_TRY(once(func, group, &patterns[which], round++));
		if (settings->timing && !group->self)
			printf("%s: %.1f us an iteration\n", patterns[which].name,
			       (double) (util_now_ns() - start) / 1000 / func->iterations);
		fflush(stdout);
	}
	return 0;
}

static int run(struct func *func)
{
	return group_run(func, ((struct settings *) func->own)->cnt, NULL, member);
}

int main(int argc, char **argv)
{
	static struct settings settings = { .cnt = 3 };
	static const struct func_program program = {
		.about = "Many processes that all talk to each other.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG,
		.iterations = 5,
		.size = 1024,
		.options = options,
		.take = take,
		.hints = hints,
		.alone = true,
		.no_domain = true,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
