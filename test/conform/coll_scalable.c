/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives on contexts of scalable endpoints: a group is joined on a transmit context, and what its members send
 * comes to the receive context of the same number. Source: fi_collective(3), fi_endpoint(3).
 */
#include <string.h>

#include "collective.h"
#include "ops.h"
#include "scalable.h"

#define CAPS (COLL_CAPS | FI_NAMED_RX_CTX)

enum { CTXS = 2 };

/* Scalable endpoints, each of which knows all by the same fi_addr, and their transmit contexts as members of a group
 * for each number. */
struct scalables {
	struct scalable s[COLL_MEMBERS_MAX];
	struct coll_group group[CTXS];
};

/* With FI_THREAD_COMPLETION the contexts of a number must have one queue. */
static bool one_cq(const struct scalable *s)
{
	return s->base->info->domain_attr->threading == FI_THREAD_COMPLETION;
}

static void open_rx(struct scalable *s, int i)
{
	s->rx[i] = scalable_ctx(s, true, i, .cq_of = one_cq(s) ? s->tx[i] : NULL);
}

/* A context of each kind with one number. */
static void open_contexts(struct scalable *s, int i)
{
	s->tx[i] = scalable_ctx(s, false, i, .eq = true, .one_cq = one_cq(s));
	open_rx(s, i);
}

/* The first ones have contexts; the last `plain` of them are endpoints without. */
static struct scalables scalables_open(struct test *t, size_t cnt, size_t plain)
{
	struct scalables all = { 0 };
	struct side *base[COLL_MEMBERS_MAX];

	for (int k = 0; k < CTXS; k++)
		all.group[k] = (struct coll_group) { .t = t, .cnt = cnt };
	for (size_t i = 0; i < cnt; i++) {
		struct scalable *s = &all.s[i];

		if (i >= cnt - plain) {
			base[i] = all.group[0].side[i] = side_open(t, .eq = true, .rx_ctx_bits = SCALABLE_BITS);
			continue;
		}
		*s = scalable_begin(t, CTXS, CTXS);
		for (int k = 0; k < CTXS; k++) {
			open_contexts(s, k);
			all.group[k].side[i] = s->tx[k];
		}
		scalable_enable(s);
		base[i] = s->base;
	}
	for (size_t i = 0; i < cnt; i++) {
		for (size_t j = 0; j < cnt; j++)
			CHECK_EQ(side_insert(base[i], base[j]), j);
	}
	return all;
}

static void check_all(struct coll_group *g)
{
	coll_barrier(g);
	for (int kind = FI_BROADCAST; kind <= FI_GATHER; kind++) {
		coll_check_one(g, kind, 5);
		coll_check_one(g, kind, 9000);
	}
	coll_barrier(g);
}

static const struct level_row {
	const char *name;
	enum fi_threading threading;
} level_rows[] = {
	{ "any_threading", FI_THREAD_UNSPEC }, { "completion_threading", FI_THREAD_COMPLETION },
	{ "domain_threading", FI_THREAD_DOMAIN },
};

/* A group on the contexts of each number; each collective gives each member what it should, in both. */
TEST_TABLE(results_on_contexts, level_rows, CAPS, RDM_ONLY)
{
	struct scalables all;

	scalable_threading = ROW(level_rows)->threading;
	all = scalables_open(t, 3, 0);
	scalable_threading = FI_THREAD_UNSPEC;
	for (int k = CTXS; k-- > 0;) {
		coll_join_all(&all.group[k]);
		check_all(&all.group[k]);
	}
	check_all(&all.group[1]);
}

/* Endpoints that are not scalable are members beside contexts of number 0. */
TEST_PROV(with_plain_members, CAPS, RDM_ONLY)
{
	struct scalables all = scalables_open(t, 4, 2);

	coll_join_all(&all.group[0]);
	check_all(&all.group[0]);
}

/* Messages of the program on the same contexts meet nothing of a group, and the group nothing of them. */
TEST_PROV(messages_on_the_same_contexts, CAPS, RDM_ONLY)
{
	struct scalables all = scalables_open(t, 2, 0);
	fi_addr_t to = fi_rx_addr(1, 1, SCALABLE_BITS);
	char in[8];

	if (one_cq(&all.s[0]))
		ABSENT("the contexts' completions come to one queue");
	coll_join_all(&all.group[1]);
	post_recv(all.s[1].rx[1], in, 8);
	check_all(&all.group[1]);
	CHECK_EQ(rx_waiting(all.s[1].rx[1]), 0);
	post(all.s[0].tx[1], SEND, .buf = "message.", .len = 8, .addr = &to);
	expect_tx(all.s[0].tx[1]);
	expect_recv(all.s[1].rx[1], "message.", 8);
	coll_barrier(&all.group[1]);
}

/* A transmit context that has nothing to do with a group comes and goes without its noticing. */
TEST_PROV(other_contexts_come_and_go, CAPS, RDM_ONLY)
{
	struct scalables all = scalables_open(t, 3, 0);
	fi_addr_t to = 0;
	char in[8];

	if (one_cq(&all.s[0]))
		ABSENT("the contexts' completions come to one queue");
	coll_join_all(&all.group[0]);
	coll_barrier(&all.group[0]);
	/* member 0 waits for member 2, whose other context speaks to it and closes */
	coll_call(all.s[0].tx[0], all.group[0].mc[0], &(struct coll_call) { .kind = FI_BARRIER });
	coll_call(all.s[1].tx[0], all.group[0].mc[1], &(struct coll_call) { .kind = FI_BARRIER });
	post_recv(all.s[0].rx[0], in, 8);
	post(all.s[2].tx[1], SEND, .buf = "message.", .len = 8, .addr = &to);
	expect_tx(all.s[2].tx[1]);
	expect_recv(all.s[0].rx[0], "message.", 8);
	side_close_ep(all.s[2].tx[1]);
	idle(t);
	CHECK_EQ(tx_waiting(all.s[0].tx[0]), 0);
	coll_call(all.s[2].tx[0], all.group[0].mc[2], &(struct coll_call) { .kind = FI_BARRIER });
	for (int i = 0; i < 3; i++)
		coll_expect_done(all.s[i].tx[0], NULL);
}

/* A member's contexts go, in either order: the operations of all others end in error. */
static const struct gone_row {
	const char *name;
	bool rx_first;
} gone_rows[] = { { "transmit_context_first", false }, { "receive_context_first", true } };

/* Contexts may be closed, in either order, while collectives of their group wait. */
TEST_TABLE(contexts_gone, gone_rows, CAPS, RDM_ONLY)
{
	struct scalables all = scalables_open(t, 4, 1);
	struct coll_group *g = &all.group[0];
	bool called[4];

	coll_join_all(g);
	CHECK_RET(fi_close(&all.s[2].tx[0]->ep->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&all.s[2].rx[0]->ep->fid), -FI_EBUSY);
	/* in the middle of an operation that will be aborted */
	coll_call(g->side[2], g->mc[2], &(struct coll_call) { .kind = FI_BARRIER });
	close_now(t, &g->mc[2]->fid);
	expect_tx_failed(g->side[2]);
	side_close_ep(ROW(gone_rows)->rx_first ? all.s[2].rx[0] : all.s[2].tx[0]);
	side_close_ep(ROW(gone_rows)->rx_first ? all.s[2].tx[0] : all.s[2].rx[0]);
	for (size_t i = 0; i < 4; i++) {
		/* who calls late may know already */
		called[i] = i != 2 && !coll_call_now(g->side[i], g->mc[i], &(struct coll_call) { .kind = FI_BARRIER });
		g->side[i]->tx_posted += called[i];
	}
	for (size_t i = 0; i < 4; i++) {
		if (called[i])
			expect_tx_failed(g->side[i]);
	}
}

/* Contexts that are closed and opened anew can be in groups again. */
TEST_PROV(contexts_come_again, CAPS, RDM_ONLY)
{
	struct scalables all = scalables_open(t, 2, 0);

	for (int round = 0; round < 3; round++) {
		coll_join_all(&all.group[0]);
		check_all(&all.group[0]);
		for (int i = 0; i < 2; i++)
			close_now(t, &all.group[0].mc[i]->fid);
		for (int i = 0; i < 2; i++) {
			side_close_ep(all.s[i].tx[0]);
			side_close_ep(all.s[i].rx[0]);
		}
		for (int i = 0; i < 2; i++) {
			open_contexts(&all.s[i], 0);
			all.group[0].side[i] = all.s[i].tx[0];
		}
	}
	coll_join_all(&all.group[0]);
	check_all(&all.group[0]);
}

/* A receive context comes again, and a member may not have noticed when it sends: what it sent is lost, or is not, but
 * the join ends for everybody, at each in the same way. */
TEST_PROV(receive_context_comes_again_unseen, CAPS, RDM_ONLY)
{
	struct scalables all = scalables_open(t, 2, 0);
	struct coll_group *g = &all.group[0];
	int err[2];

	coll_join_all(g);
	coll_barrier(g);
	for (int i = 0; i < 2; i++)
		close_now(t, &g->mc[i]->fid);
	side_close_ep(all.s[0].rx[0]);
	open_rx(&all.s[0], 0);
	for (size_t i = 0; i < 2; i++)
		g->mc[i] = coll_join_begin(g->side[i], coll_everyone, 2);
	for (size_t i = 0; i < 2; i++) {
		struct side *s = g->side[i];
		struct wait w = wait_begin();

		while (s->event_taken == s->event_cnt)
			wait_more(t, &w, "the end of a join");
		err[i] = s->events[s->event_taken++].err;
	}
	CHECK_EQ(!err[0], !err[1]);
}

/* The event queue may be the scalable endpoint's. */
TEST_PROV(event_queue_of_the_endpoint, CAPS, RDM_ONLY)
{
	struct scalable s = scalable_begin(t, 1, 1);
	struct coll_group g = { .t = t, .cnt = 1 };
	struct fid_eq *eq;

	side_open_eq(s.base);
	eq = s.base->eq;
	MUST(fi_scalable_ep_bind(s.sep, &eq->fid, 0));
	s.tx[0] = g.side[0] = scalable_ctx(&s, false, 0, .one_cq = true);
	s.rx[0] = scalable_ctx(&s, true, 0, .cq_of = s.tx[0]);
	scalable_enable(&s);
	CHECK_EQ(side_insert(s.base, s.base), 0);
	s.base->eq = NULL;
	s.tx[0]->eq = eq;
	coll_join_all(&g);
	check_all(&g);
	close_now(t, &g.mc[0]->fid);
	side_close_ep(s.tx[0]);
	side_close_ep(s.rx[0]);
	CHECK_RET(fi_close(&eq->fid), -FI_EBUSY);
	close_now(t, &s.sep->fid);
}

/* What is missing is said. */
TEST_PROV(refused_on_contexts, CAPS, RDM_ONLY)
{
	struct scalable s;
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t addr;

	scalable_threading = FI_THREAD_COMPLETION;
	s = scalable_begin(t, 3, 2);
	scalable_threading = FI_THREAD_UNSPEC;
	for (int i = 0; i < 3; i++)
		s.tx[i] = scalable_ctx(&s, false, i, .eq = true);
	s.rx[0] = scalable_ctx(&s, true, 0);
	scalable_enable(&s);
	CHECK_EQ(side_insert(s.base, s.base), 0);
	set = coll_set_open(s.base, coll_everyone, 1);
	MUST(fi_av_set_addr(set, &addr));
	note("queues of their own");
	if (run.progress != FI_PROGRESS_AUTO)
		CHECK_RET(fi_join_collective(s.tx[0]->ep, addr, set, 0, &mc, NULL), -FI_EINVAL);
	note("no receive context of this number yet, and none ever");
	CHECK_RET(fi_join_collective(s.tx[1]->ep, addr, set, 0, &mc, NULL), -FI_EOPBADSTATE);
	CHECK_RET(fi_join_collective(s.tx[2]->ep, addr, set, 0, &mc, NULL), -FI_EOPBADSTATE);
	note("what transfers nothing");
	CHECK_RET(fi_join_collective(s.sep, addr, set, 0, &mc, NULL), -FI_ENOSYS);
	CHECK_RET(fi_join_collective(s.rx[0]->ep, addr, set, 0, &mc, NULL), -FI_ENOSYS);
}
