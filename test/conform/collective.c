/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Collectives, all members in this process, against a plain computation. Source: fi_collective(3), fi_av_set(3). */
#include "collective.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "process.h"

#define CAPS COLL_CAPS

/* Members that know each other and are in no group. */
static struct coll_group members_open(struct test *t, size_t cnt)
{
	struct coll_group g = { .t = t, .cnt = cnt };

	for (size_t i = 0; i < cnt; i++)
		g.side[i] = side_open(t, .eq = true);
	for (size_t i = 0; i < cnt; i++) {
		for (size_t j = 0; j < cnt; j++)
			CHECK_EQ(side_insert(g.side[i], g.side[j]), j);
	}
	return g;
}

static struct coll_group group_open(struct test *t, size_t cnt)
{
	struct coll_group g = members_open(t, cnt);

	coll_join_all(&g);
	return g;
}

struct size_row {
	const char *name;
	size_t cnt;
};
static const struct size_row size_rows[] = {
	{ "1_member", 1 }, { "2_members", 2 }, { "3_members", 3 }, { "5_members", 5 }, { "8_members", 8 },
};

/* Each collective, short and long, gives each member what it should. */
TEST_TABLE(results, size_rows, CAPS, RDM_ONLY)
{
	struct coll_group g = group_open(t, ROW(size_rows)->cnt);

	coll_barrier(&g);
	for (int kind = FI_BROADCAST; kind <= FI_GATHER; kind++) {
		coll_check_one(&g, kind, 1);
		coll_check_one(&g, kind, 5);
		coll_check_one(&g, kind, 9000);
	}
	coll_check_one(&g, FI_BROADCAST, 40000);
	coll_barrier(&g);
}

struct op_row {
	const char *name;
	enum fi_op op;
	uint32_t want;			/* of 5, 3 and 6 */
};
static const struct op_row op_rows[] = {
	{ "min", FI_MIN, 3 }, { "max", FI_MAX, 6 }, { "sum", FI_SUM, 14 }, { "prod", FI_PROD, 90 },
	{ "lor", FI_LOR, 1 }, { "land", FI_LAND, 1 }, { "bor", FI_BOR, 7 }, { "band", FI_BAND, 0 },
	{ "lxor", FI_LXOR, 1 }, { "bxor", FI_BXOR, 0 },
};

/* Each operation, on integers of each size and, where they have it, on floating point. */
TEST_TABLE(operations, op_rows, CAPS, RDM_ONLY)
{
	static const uint32_t values[] = { 5, 3, 6 };
	struct coll_group g = group_open(t, 3);
	uint8_t in8[3], out8[3];
	uint32_t in32[3], out32[3];
	double in[3], out[3];

	for (int type = 0; type < 3; type++) {
		for (size_t i = 0; i < 3; i++) {
			struct coll_call c = { .kind = FI_ALLREDUCE, .op = ROW(op_rows)->op, .count = 1 };

			in8[i] = (uint8_t) values[i];
			in32[i] = values[i];
			in[i] = values[i];
			c.datatype = type == 0 ? FI_UINT8 : type == 1 ? FI_UINT32 : FI_DOUBLE;
			c.buf = type == 0 ? (void *) &in8[i] : type == 1 ? (void *) &in32[i] : (void *) &in[i];
			c.result = type == 0 ? (void *) &out8[i] : type == 1 ? (void *) &out32[i] : (void *) &out[i];
			if (type == 2 && (c.op == FI_BOR || c.op == FI_BAND || c.op == FI_BXOR)) {
				CHECK_RET(coll_call_now(g.side[i], g.mc[i], &c), -FI_EOPNOTSUPP);
				continue;
			}
			coll_call(g.side[i], g.mc[i], &c);
		}
		for (size_t i = 0; i < 3; i++) {
			if (type == 2 && tx_waiting(g.side[i]) == 0 &&
			    (ROW(op_rows)->op == FI_BOR || ROW(op_rows)->op == FI_BAND || ROW(op_rows)->op == FI_BXOR))
				continue;
			coll_expect_done(g.side[i], NULL);
			CHECK_EQ(type == 0 ? out8[i] : type == 1 ? out32[i] : (uint32_t) out[i], ROW(op_rows)->want);
		}
	}
}

/* ---- order and company */

/* Many at once, in the order of the calls. */
TEST_PROV(many_outstanding, CAPS, RDM_ONLY)
{
	enum { CNT = 30 };
	struct coll_group g = group_open(t, 4);
	static int64_t in[4][CNT], out[4][CNT];

	for (size_t i = 4; i-- > 0;) {
		for (size_t n = 0; n < CNT; n++) {
			in[i][n] = coll_value(i, 0, n);
			coll_call(g.side[i], g.mc[i], &(struct coll_call) { .kind = FI_ALLREDUCE, .datatype = FI_INT64,
			     .op = FI_SUM, .count = 1, .buf = &in[i][n], .result = &out[i][n], .context = &in[i][n] });
		}
	}
	for (size_t i = 0; i < 4; i++) {
		for (size_t n = 0; n < CNT; n++)
			coll_expect_done(g.side[i], &in[i][n]);
	}
	for (size_t i = 0; i < 4; i++) {
		for (size_t n = 0; n < CNT; n++)
			CHECK(out[i][n] == coll_sum(4, 0, n));
	}
}

/* A root need not wait: what it sends is kept for who is late, in order. */
TEST_PROV(root_runs_ahead, CAPS, RDM_ONLY)
{
	enum { CNT = 20, LEN = 3000 };
	struct coll_group g = group_open(t, 3);
	static int64_t out[CNT][LEN], in[2][CNT][LEN];

	for (size_t n = 0; n < CNT; n++) {
		out[n][0] = out[n][LEN - 1] = (int64_t) n + 1;
		coll_call(g.side[0], g.mc[0], &(struct coll_call) {
			.kind = FI_BROADCAST, .datatype = FI_INT64, .count = LEN, .result = out[n],
		});
	}
	idle(t);
	for (size_t n = 0; n < CNT; n++) {
		for (size_t i = 1; i < 3; i++)
			coll_call(g.side[i], g.mc[i], &(struct coll_call) { .kind = FI_BROADCAST, .datatype = FI_INT64,
			     .count = LEN, .result = in[i - 1][n] });
	}
	for (size_t i = 0; i < 3; i++)
		expect_tx_cnt(g.side[i], CNT);
	for (size_t n = 0; n < CNT; n++) {
		for (size_t i = 0; i < 2; i++)
			CHECK(in[i][n][0] == (int64_t) n + 1 && in[i][n][LEN - 1] == (int64_t) n + 1);
	}
}

/* Receives of the application, even those that take anything, meet nothing of it; and messages go on beside it. */
TEST_PROV(no_message_of_the_application, CAPS, RDM_ONLY)
{
	struct coll_group g = group_open(t, 2);
	char in[8], tagged[8];

	g.side[0]->peer = 1;
	g.side[1]->peer = 0;
	post_recv(g.side[1], in, 8);
	post_trecv(g.side[1], tagged, 8, 0, UINT64_MAX);
	coll_check_one(&g, FI_ALLGATHER, 3);
	coll_check_one(&g, FI_BROADCAST, 60000);
	coll_barrier(&g);
	CHECK_EQ(rx_waiting(g.side[1]), 0);
	send_bytes(g.side[0], "message.", 8);
	tsend_bytes(g.side[0], "tagged..", 8, 77);
	expect_rx_cnt(g.side[1], 2);
	CHECK_MEM(in, "message.", 8);
	CHECK_MEM(tagged, "tagged..", 8);
}

/* Groups that share members do not mix, whatever the order in which a member uses them. */
TEST_PROV(groups_do_not_mix, CAPS, RDM_ONLY)
{
	static const fi_addr_t some[] = { 2, 0 };
	struct coll_group g = group_open(t, 3);
	struct fid_mc *two[3] = { 0 }, *again[3];
	int64_t in[3][3], out[3][3];

	for (size_t i = 0; i < 3; i++)
		again[i] = coll_join_begin(g.side[i], coll_everyone, 3);
	for (size_t i = 0; i < 3; i += 2)
		two[i] = coll_join_begin(g.side[i], some, 2);
	for (size_t i = 0; i < 3; i++) {
		expect_event(g.side[i], FI_JOIN_COMPLETE);
		if (two[i])
			expect_event(g.side[i], FI_JOIN_COMPLETE);
	}
	for (size_t i = 0; i < 3; i++) {
		for (size_t n = 0; n < 3; n++) {
			size_t k = i % 2 ? 2 - n : n;
			struct fid_mc *mc = k == 0 ? g.mc[i] : k == 1 ? two[i] : again[i];

			in[i][k] = coll_value(i, k, 0);
			if (mc)
				coll_call(g.side[i], mc, &(struct coll_call) {
					.kind = FI_ALLREDUCE, .datatype = FI_INT64, .op = FI_SUM, .count = 1,
					.buf = &in[i][k], .result = &out[i][k],
				});
		}
	}
	for (size_t i = 0; i < 3; i++)
		expect_tx_cnt(g.side[i], two[i] ? 3 : 2);
	for (size_t i = 0; i < 3; i++) {
		CHECK(out[i][0] == coll_sum(3, 0, 0) && out[i][2] == coll_sum(3, 2, 0));
		if (two[i])
			CHECK(out[i][1] == coll_value(0, 1, 0) + coll_value(2, 1, 0));
	}
}

/* Groups of one size do not wait for each other: in a ring of pairs everybody joins that with the next one first. */
TEST_PROV(groups_of_one_size, CAPS, RDM_ONLY)
{
	static const fi_addr_t pair[3][2] = { { 0, 1 }, { 1, 2 }, { 2, 0 } };
	struct coll_group g = group_open(t, 3);

	for (size_t i = 0; i < 3; i++)
		coll_join_begin(g.side[i], pair[i], 2);
	for (size_t i = 0; i < 3; i++)
		coll_join_begin(g.side[i], pair[(i + 2) % 3], 2);
	for (size_t i = 0; i < 6; i++)
		expect_event(g.side[i % 3], FI_JOIN_COMPLETE);
}

/* A barrier ends for nobody before the last one has called it. */
TEST_PROV(barrier_waits, CAPS, RDM_ONLY)
{
	struct coll_group g = group_open(t, 3);

	for (size_t i = 0; i < 2; i++)
		coll_call(g.side[i], g.mc[i], &(struct coll_call) { .kind = FI_BARRIER });
	idle(t);
	CHECK_EQ(tx_waiting(g.side[0]) + tx_waiting(g.side[1]), 0);
	MUST(fi_barrier2(g.side[2]->ep, fi_mc_addr(g.mc[2]), FI_COMPLETION, NULL));
	g.side[2]->tx_posted++;
	for (size_t i = 0; i < 3; i++)
		coll_expect_done(g.side[i], NULL);
}

/* ---- failure */

/* One closes its group in the middle: what the others have called ends in error, and what they call later is refused or
 * fails. */
TEST_PROV(member_leaves, CAPS, RDM_ONLY)
{
	struct coll_group g = group_open(t, 5);

	for (size_t i = 0; i < 5; i++) {
		if (i != 2)
			coll_call(g.side[i], g.mc[i], &(struct coll_call) { .kind = FI_BARRIER });
	}
	coll_call(g.side[2], g.mc[2], &(struct coll_call) {
		.kind = FI_BROADCAST, .datatype = FI_INT8, .count = 1, .root = 0, .result = &g,
	});
	close_now(t, &g.mc[2]->fid);
	for (size_t i = 0; i < 5; i++)
		CHECK(expect_tx_failed(g.side[i]).err != 0);
	for (size_t i = 0; i < 5; i++) {
		if (i != 2)
			CHECK(coll_call_now(g.side[i], g.mc[i], &(struct coll_call) { .kind = FI_BARRIER }) < 0);
	}
}

/* A member that asks for more than the others give gets an error, and not a result of which a part is old memory. */
TEST_PROV(members_disagree, CAPS, RDM_ONLY)
{
	struct coll_group g = group_open(t, 2);
	int64_t data[2] = { 0 };
	struct coll_call c = { .kind = FI_BROADCAST, .datatype = FI_INT64, .count = 1, .result = data };

	coll_call(g.side[0], g.mc[0], &c);
	coll_expect_done(g.side[0], NULL);
	c.count = 2;
	coll_call(g.side[1], g.mc[1], &c);
	expect_tx_err(g.side[1], FI_EIO);
}

/* One is gone altogether: every member's operation ends in error, also of those who never spoke with it. */
TEST_PROV(member_gone, CAPS, RDM_ONLY)
{
	struct coll_group g = group_open(t, 6);
	bool called[5];

	close_now(t, &g.mc[5]->fid);
	side_close_ep(g.side[5]);
	for (size_t i = 0; i < 5; i++) {
		/* who calls late may know already */
		called[i] = !coll_call_now(g.side[i], g.mc[i], &(struct coll_call) { .kind = FI_BARRIER });
		g.side[i]->tx_posted += called[i];
	}
	for (size_t i = 0; i < 5; i++) {
		if (called[i])
			expect_tx_failed(g.side[i]);
	}
}

static const struct killed_row {
	const char *name;
	bool calls;			/* it has called the barrier before it is killed */
	bool later;			/* the others call it only afterwards */
} killed_rows[] = {
	{ .name = "before_its_call" },
	{ .name = "after_its_call", .calls = true },
	{ .name = "unseen", .later = true },
};

/* Three here, and a fourth in a process that is killed: every operation of the others ends, in error unless it was
 * complete, well before the suite's deadline; and none waits that is called later. */
TEST_TABLE(member_killed, killed_rows, CAPS, RDM_ONLY)
{
	const struct killed_row *row = t->row;
	struct coll_group g = members_open(t, 3);
	struct process *p = process_start(t);
	uint8_t name[128];
	size_t len = process_name(p, name, sizeof(name));
	bool called[3] = { false };

	for (size_t i = 0; i < 3; i++)
		process_tell_name(p, g.side[i]->name, g.side[i]->name_len);
	process_tell_name(p, name, len);
	process_tell(p, "join 4\n");
	for (size_t i = 0; i < 3; i++) {
		CHECK_RET(fi_av_insert(g.side[i]->av, name, 1, NULL, 0, NULL), 1);
		g.mc[i] = coll_join_begin(g.side[i], coll_everyone, 4);
	}
	process_answer(p, "joined");
	for (size_t i = 0; i < 3; i++)
		coll_join_end(g.side[i], g.mc[i]);
	if (row->calls) {
		process_tell(p, "barrier\n");
		process_answer(p, "called");
	}
	if (row->later)
		process_kill(p);
	for (size_t i = 0; i < 3; i++) {
		/* who calls late may know already; with the process' call the last of us may complete the barrier */
		called[i] = (i < 2 || !row->calls) &&
			    !coll_call_now(g.side[i], g.mc[i], &(struct coll_call) { .kind = FI_BARRIER });
		g.side[i]->tx_posted += called[i];
	}
	if (!row->later)
		process_kill(p);
	for (size_t i = 0; i < 3; i++) {
		if (called[i])
			expect_tx_failed(g.side[i]);
	}
}

/* All but the last one join; for each it is an error. Returns that of member 0. */
static int join_without_last(struct coll_group *g)
{
	struct event e = { .err = 0 };

	for (size_t i = 0; i + 1 < g->cnt; i++)
		g->mc[i] = coll_join_begin(g->side[i], coll_everyone, g->cnt);
	for (size_t i = g->cnt - 1; i-- > 0;) {
		struct wait w = wait_begin();

		while (g->side[i]->event_taken == g->side[i]->event_cnt)
			wait_more(g->t, &w, "the error of a join");
		e = g->side[i]->events[g->side[i]->event_taken++];
		CHECK(e.err != 0);
	}
	return e.err;
}

/* The same while they join. */
TEST_PROV(member_gone_before_join, CAPS, RDM_ONLY)
{
	struct coll_group g = members_open(t, 4);

	side_close_ep(g.side[3]);
	join_without_last(&g);
}

/* One was opened without collectives: it could never answer, and says so. */
TEST_PROV(member_without_collectives, CAPS, RDM_ONLY)
{
	struct coll_group g = members_open(t, 3);
	struct side *plain = side_open(t, .caps = FI_MSG | FI_TAGGED);

	g.cnt = 4;
	for (size_t i = 0; i < 3; i++)
		CHECK_EQ(side_insert(g.side[i], plain), 3);
	CHECK_EQ(join_without_last(&g), FI_EOPNOTSUPP);
}

/* ---- what is refused */

/* Collectives that cannot be carried out are refused by the call: other sets, operations, sizes. */
TEST_PROV(refused, CAPS, RDM_ONLY)
{
	static const fi_addr_t other[] = { 1 };
	struct coll_group g = members_open(t, 2);
	struct side *none = side_open(t);
	struct fid_av_set *set = coll_set_open(g.side[0], other, 1);
	struct fid_mc *mc;
	fi_addr_t addr;

	MUST(fi_av_set_addr(set, &addr));
	CHECK_RET(fi_join_collective(g.side[0]->ep, addr, set, 0, &mc, NULL), -FI_EINVAL);
	CHECK_RET(fi_join(g.side[0]->ep, "not a struct fi_collective_addr", 0, &mc, NULL), -FI_ENOSYS);
	CHECK_EQ(side_insert(none, none), 0);
	set = coll_set_open(none, coll_everyone, 1);
	CHECK_RET(fi_join_collective(none->ep, addr, set, 0, &mc, NULL), -FI_ENOEQ);
	CHECK_RET(fi_barrier(g.side[0]->ep, 12345, NULL), -FI_EINVAL);
	g.mc[0] = coll_join_begin(g.side[0], coll_everyone, 2);
	CHECK_RET(fi_barrier(g.side[0]->ep, fi_mc_addr(g.mc[0]), NULL), -FI_EOPBADSTATE);
	CHECK_RET(fi_close(&g.side[0]->ep->fid), -FI_EBUSY);
	g.mc[1] = coll_join_begin(g.side[1], coll_everyone, 2);
	coll_join_end(g.side[0], g.mc[0]);
	coll_join_end(g.side[1], g.mc[1]);
	CHECK_RET(coll_call_now(g.side[0], g.mc[0], &(struct coll_call) { .kind = FI_REDUCE, .op = FI_CSWAP,
		  .datatype = FI_INT32 }), -FI_EOPNOTSUPP);
	CHECK_RET(coll_call_now(g.side[0], g.mc[0],
				&(struct coll_call) { .kind = FI_GATHER, .root = 7, .datatype = FI_INT32 }),
		  -FI_EINVAL);
	coll_barrier(&g);
}

/* fi_query_collective() says what the calls take. */
TEST_PROV(query, CAPS, RDM_ONLY)
{
	struct side *s = domain_side(t);
	struct fi_collective_attr attr = { .op = FI_SUM, .datatype = FI_DOUBLE };

	for (int kind = FI_BROADCAST; kind <= FI_GATHER; kind++) {
		MUST(fi_query_collective(s->domain, kind, &attr, 0));
		CHECK_EQ(attr.datatype_attr.size, sizeof(double));
		CHECK(attr.datatype_attr.count >= 1 && attr.max_members >= 2);
	}
	attr.op = FI_BOR;
	CHECK_RET(fi_query_collective(s->domain, FI_ALLREDUCE, &attr, 0), -FI_EOPNOTSUPP);
	attr = (struct fi_collective_attr) { .op = FI_NOOP, .datatype = FI_VOID };
	MUST(fi_query_collective(s->domain, FI_BARRIER, &attr, 0));
	CHECK_RET(fi_query_collective(s->domain, FI_BROADCAST, &attr, 0), -FI_EOPNOTSUPP);
	CHECK_RET(fi_query_collective(s->domain, 99, &attr, 0), -FI_EOPNOTSUPP);
}
