/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_multinode_coll: collectives of many processes, each checked against what its members gave: over all of them, and
 * over every second one.
 */
#include "lib/group.h"

#include <stdio.h>
#include <string.h>

#include <rdma/fi_collective.h>

#define ELEMENTS 4
#define WORDS (GROUP_MAX * ELEMENTS)

struct settings {
	uint32_t cnt;
	struct fid_mc *mc;
	fi_addr_t coll;                 /* of the set in use */
	unsigned members, index;        /* of it, and which of them we are */
	unsigned stride;
	uint64_t give[WORDS], got[WORDS];
	struct func_op op;
	unsigned done;                  /* collectives that ran */
};

static const struct util_opt options[] = {
	{ 'n', "number", "NUMBER", "processes (default: 3)" },
	GROUP_OPTION,
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	if (key == 'H')
		return group_take(func);
	return func_number("-n (processes)", arg, 2, GROUP_MAX, &((struct settings *) func->own)->cnt);
}

static void hints(struct func *func, struct fi_info *hints)
{
	(void) func;
	hints->domain_attr->av_type = FI_AV_TABLE;
}

/* What member `index` of the set gives as word i. */
static uint64_t word_of(unsigned index, size_t i)
{
	return 1000 * (index + 1) + i;
}

static uint64_t sum_of(const struct settings *settings, size_t i)
{
	uint64_t sum = 0;
	unsigned index;

	for (index = 0; index < settings->members; index++)
		sum += word_of(index, i);
	return sum;
}

/* Before each: what we give, and nothing that was got. */
static void prepare(struct settings *settings)
{
	size_t i;

	for (i = 0; i < WORDS; i++)
		settings->give[i] = word_of(settings->index, i);
	memset(settings->got, 0xff, sizeof(settings->got));
	memset(&settings->op, 0, sizeof(settings->op));
}

static int expect(struct func *func, const char *what, size_t i, uint64_t value)
{
	const struct settings *settings = func->own;

	FUNC_EXPECT(func, settings->got[i] == value, "%s: word %zu at member %u is %llu, not %llu", what, i,
		    settings->index, (unsigned long long) settings->got[i], (unsigned long long) value);
	return 0;
}

/* The member of the set that gives or gets alone, as an address. */
static fi_addr_t root(const struct group *group)
{
	return group->peers[0];
}

#define COLL(name) static int name(struct func *func, struct group *group, struct settings *s)

COLL(barrier)
{
	FUNC_POST(func, fi_barrier(group->ep.ep, s->coll, &s->op));
	return func_wait(func, &s->op, "a barrier");
}

COLL(broadcast)
{
	size_t i;

	if (!s->index)
		memcpy(s->got, s->give, sizeof(s->got));
	FUNC_POST(func, fi_broadcast(group->ep.ep, s->got, ELEMENTS, NULL, s->coll, root(group), FI_UINT64, 0, &s->op));
	FUNC_TRY(func_wait(func, &s->op, "a broadcast"));
	for (i = 0; i < ELEMENTS; i++)
		FUNC_TRY(expect(func, "broadcast", i, word_of(0, i)));
	return 0;
}

COLL(allreduce)
{
	size_t i;

	FUNC_POST(func, fi_allreduce(group->ep.ep, s->give, ELEMENTS, NULL, s->got, NULL, s->coll, FI_UINT64, FI_SUM,
				     0, &s->op));
	FUNC_TRY(func_wait(func, &s->op, "a reduction for all"));
	for (i = 0; i < ELEMENTS; i++)
		FUNC_TRY(expect(func, "allreduce", i, sum_of(s, i)));
	return 0;
}

COLL(allgather)
{
	size_t i;

	FUNC_POST(func, fi_allgather(group->ep.ep, s->give, ELEMENTS, NULL, s->got, NULL, s->coll, FI_UINT64, 0,
				     &s->op));
	FUNC_TRY(func_wait(func, &s->op, "a gathering for all"));
	for (i = 0; i < s->members * ELEMENTS; i++)
		FUNC_TRY(expect(func, "allgather", i, word_of((unsigned) (i / ELEMENTS), i % ELEMENTS)));
	return 0;
}

COLL(scatter)
{
	size_t i;

	FUNC_POST(func, fi_scatter(group->ep.ep, s->give, ELEMENTS, NULL, s->got, NULL, s->coll, root(group),
				   FI_UINT64, 0, &s->op));
	FUNC_TRY(func_wait(func, &s->op, "a scattering"));
	for (i = 0; i < ELEMENTS; i++)
		FUNC_TRY(expect(func, "scatter", i, word_of(0, s->index * ELEMENTS + i)));
	return 0;
}

COLL(gather)
{
	size_t i;

	FUNC_POST(func, fi_gather(group->ep.ep, s->give, ELEMENTS, NULL, s->got, NULL, s->coll, root(group), FI_UINT64,
				  0, &s->op));
	FUNC_TRY(func_wait(func, &s->op, "a gathering"));
	for (i = 0; !s->index && i < s->members * ELEMENTS; i++)
		FUNC_TRY(expect(func, "gather", i, word_of((unsigned) (i / ELEMENTS), i % ELEMENTS)));
	return 0;
}

COLL(reduce)
{
	size_t i;

	FUNC_POST(func, fi_reduce(group->ep.ep, s->give, ELEMENTS, NULL, s->got, NULL, s->coll, root(group), FI_UINT64,
				  FI_SUM, 0, &s->op));
	FUNC_TRY(func_wait(func, &s->op, "a reduction"));
	for (i = 0; !s->index && i < ELEMENTS; i++)
		FUNC_TRY(expect(func, "reduce", i, sum_of(s, i)));
	return 0;
}

COLL(alltoall)
{
	size_t i;

	FUNC_POST(func, fi_alltoall(group->ep.ep, s->give, ELEMENTS, NULL, s->got, NULL, s->coll, FI_UINT64, 0,
				    &s->op));
	FUNC_TRY(func_wait(func, &s->op, "an exchange of all with all"));
	for (i = 0; i < s->members * ELEMENTS; i++)
		FUNC_TRY(expect(func, "alltoall", i,
				word_of((unsigned) (i / ELEMENTS), s->index * ELEMENTS + i % ELEMENTS)));
	return 0;
}

COLL(reduce_scatter)
{
	size_t i;

	FUNC_POST(func, fi_reduce_scatter(group->ep.ep, s->give, ELEMENTS, NULL, s->got, NULL, s->coll, FI_UINT64,
					  FI_SUM, 0, &s->op));
	FUNC_TRY(func_wait(func, &s->op, "a scattered reduction"));
	for (i = 0; i < ELEMENTS; i++)
		FUNC_TRY(expect(func, "reduce_scatter", i, sum_of(s, s->index * ELEMENTS + i)));
	return 0;
}

static const struct collective {
	const char *name;
	enum fi_collective_op code;
	enum fi_datatype datatype;
	enum fi_op op;
	int (*run)(struct func *func, struct group *group, struct settings *settings);
} collectives[] = {
	{ "barrier", FI_BARRIER, FI_VOID, FI_NOOP, barrier },
	{ "broadcast", FI_BROADCAST, FI_UINT64, FI_NOOP, broadcast },
	{ "allreduce", FI_ALLREDUCE, FI_UINT64, FI_SUM, allreduce },
	{ "allgather", FI_ALLGATHER, FI_UINT64, FI_NOOP, allgather },
	{ "scatter", FI_SCATTER, FI_UINT64, FI_NOOP, scatter },
	{ "gather", FI_GATHER, FI_UINT64, FI_NOOP, gather },
	{ "reduce", FI_REDUCE, FI_UINT64, FI_SUM, reduce },
	{ "alltoall", FI_ALLTOALL, FI_UINT64, FI_NOOP, alltoall },
	{ "reduce_scatter", FI_REDUCE_SCATTER, FI_UINT64, FI_SUM, reduce_scatter },
};
#define COLL_CNT (sizeof(collectives) / sizeof(collectives[0]))

/* Make the set of every `stride`th member, and join it, which all of those do. */
static int join(struct func *func, struct group *group, struct fid_av_set **set)
{
	struct settings *settings = func->own;
	struct fi_av_set_attr attr = { .count = settings->members, .start_addr = 0, .stride = settings->stride,
				       .end_addr = (settings->members - 1) * settings->stride };
	struct pp_wait wait = { .polls = 0 };
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	FUNC_CALL(func, fi_av_set(func->av, &attr, set, NULL));
	FUNC_TRY(func_own(func, &(*set)->fid, "set of addresses"));
	FUNC_CALL(func, fi_av_set_addr(*set, &settings->coll));
	FUNC_CALL(func, fi_join_collective(group->ep.ep, settings->coll, *set, 0, &settings->mc, settings));
	FUNC_TRY(func_own(func, &settings->mc->fid, "collective group"));
	while ((ret = fi_eq_read(func->pp->eq, &event, &entry, sizeof(entry), 0)) == -FI_EAGAIN)
		FUNC_TRY(func_tick(func, &wait, "FI_JOIN_COMPLETE"));
	FUNC_EXPECT(func, ret == sizeof(entry) && event == FI_JOIN_COMPLETE, "fi_eq_read gave %zd, event %u", ret,
		    event);
	settings->coll = fi_mc_addr(settings->mc);
	return 0;
}

/* All collectives of the set, for those that are in it. */
static int run_set(struct func *func, struct group *group, unsigned stride)
{
	struct settings *settings = func->own;
	struct fid_av_set *set;
	size_t i;

	settings->stride = stride;
	settings->members = (group->cnt + stride - 1) / stride;
	settings->index = group->self / stride;
	if (group->self % stride || settings->members < 2)
		return group_barrier(func, group);
	FUNC_TRY(join(func, group, &set));
	for (i = 0; i < COLL_CNT; i++) {
		struct fi_collective_attr attr = { .op = collectives[i].op, .datatype = collectives[i].datatype };

		if (fi_query_collective(func->domain, collectives[i].code, &attr, 0)) {
			if (!group->self)
				printf("skipped: %s, which the provider does not have\n", collectives[i].name);
			continue;
		}
		prepare(settings);
		FUNC_TRY(collectives[i].run(func, group, settings));
		settings->done++;
	}
	FUNC_TRY(group_barrier(func, group));
	FUNC_TRY(func_close(func, &settings->mc->fid));
	return func_close(func, &set->fid);
}

static int member(struct func *func, struct group *group)
{
	struct settings *settings = func->own;
	uint32_t i;

	for (i = 0; i < func->iterations; i++) {
		FUNC_TRY(run_set(func, group, 1));
		FUNC_TRY(group_barrier(func, group));
		FUNC_TRY(run_set(func, group, 2));
		FUNC_TRY(group_barrier(func, group));
	}
	fflush(stdout);
	return settings->done ? 0 : func_skip(func, "no collective at all");
}

static int run(struct func *func)
{
	static const struct func_ep_attr attr = { .bind = func_ep_bind_eq };

	return group_run(func, ((struct settings *) func->own)->cnt, &attr, member);
}

int main(int argc, char **argv)
{
	static struct settings settings = { .cnt = 3 };
	static const struct func_program program = {
		.about = "Collectives of many processes.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG | FI_TAGGED | FI_COLLECTIVE,
		.iterations = 3,
		.options = options,
		.take = take,
		.hints = hints,
		.alone = true,
		.no_domain = true,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
