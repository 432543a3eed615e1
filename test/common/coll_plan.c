/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plans of collectives, carried out for all members of a group in this process with messages as a list, against a plain
 * computation: each collective, groups of 1 to 17 members, every root, short and long, every datatype and operation.
 */
#include "unit.h"

#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>
#include "base/pool.h"
#include "common/collective/coll_plan.h"

#define MEMBERS_MAX	17
/* Groups of any size up to this. What AddressSanitizer finds depends on the path, which smaller groups share. */
#ifdef FAB_ASAN
#define GROUP_MAX	9
#else
#define GROUP_MAX	MEMBERS_MAX
#endif
#define LONG_LEN	33013	/* bytes, enough for rings; as elements of any size no multiple of 5 */

struct message {
	struct message *next;
	uint32_t from, to;
	uint8_t round;
	size_t len;
	uint8_t data[];
};

struct member {
	struct fab_coll_call call;
	struct fab_coll_plan plan;
	uint32_t at;
	bool sent;
	uint8_t *buf, *result;
};

static struct message *posted, **posted_end = &posted;
static unsigned message_cnt;

static void post(uint32_t from, const struct fab_coll_step *step)
{
	struct message *message = malloc(sizeof(*message) + step->out_len);

	*message = (struct message) { .from = from, .to = step->to, .round = step->round, .len = step->out_len };
	if (step->out_len)
		memcpy(message->data, step->out, step->out_len);
	*posted_end = message;
	posted_end = &message->next;
	message_cnt++;
}

/* The oldest message that fits, into the step's place. */
static bool take(uint32_t to, const struct fab_coll_step *step)
{
	for (struct message **place = &posted; *place; place = &(*place)->next) {
		struct message *message = *place;

		if (message->to != to || message->from != step->from || message->round != step->round)
			continue;
		assert_int_equal(message->len, step->in_len);
		if (message->len)
			memcpy(step->in, message->data, message->len);
		*place = message->next;
		if (posted_end == &message->next)
			posted_end = place;
		free(message);
		return true;
	}
	return false;
}

/* One step further, if it can be. */
static bool advance(struct member *member)
{
	const struct fab_coll_step *step = &member->plan.step[member->at];

	if (member->at == member->plan.cnt)
		return false;
	if (step->to != FAB_COLL_NOBODY && !member->sent)
		post(member->call.rank, step);
	member->sent = true;
	if (step->from != FAB_COLL_NOBODY && !take(member->call.rank, step))
		return false;
	fab_coll_step_finish(&member->call, step);
	member->sent = false;
	member->at++;
	return true;
}

static void run(struct member *member, uint32_t cnt)
{
	bool moved = true;

	message_cnt = 0;
	while (moved) {
		moved = false;
		for (uint32_t i = cnt; i-- > 0;)
			moved |= advance(&member[i]);
	}
	for (uint32_t i = 0; i < cnt; i++)
		assert_int_equal(member[i].at, member[i].plan.cnt);
	assert_null(posted);
}

/* ---- a plain computation ---- */

/* Bytes of all blocks of one side. */
static size_t side_len(const struct fab_coll_call *call, bool whole)
{
	return call->count * fab_atomic_size(call->datatype) * (whole ? call->cnt : 1);
}

static bool buf_is_whole(enum fi_collective_op kind)
{
	return kind == FI_ALLTOALL || kind == FI_SCATTER || kind == FI_REDUCE_SCATTER;
}

static bool result_is_whole(enum fi_collective_op kind)
{
	return kind == FI_ALLTOALL || kind == FI_ALLGATHER || kind == FI_GATHER;
}

static uint8_t *reduced(const struct member *member, uint32_t cnt, size_t len)
{
	const struct fab_coll_call *call = &member[0].call;
	uint8_t *all = malloc(len + 1);

	memcpy(all, member[0].buf, len);
	for (uint32_t i = 1; i < cnt; i++)
		fab_atomic_do(call->datatype, call->op, all, member[i].buf, NULL, NULL,
			      len / fab_atomic_size(call->datatype));
	return all;
}

/* Has member r what it should have? */
static void check(const struct member *member, uint32_t cnt, uint32_t r)
{
	const struct fab_coll_call *call = &member[r].call;
	size_t block = side_len(call, false);
	const uint8_t *got = member[r].result;
	uint8_t *all;

	switch (call->kind) {
	case FI_BROADCAST:
		assert_memory_equal(got, member[call->root].result, block);
		assert_memory_equal(got, member[call->root].buf, block);
		break;
	case FI_ALLTOALL:
		for (uint32_t i = 0; i < cnt; i++)
			assert_memory_equal(got + i * block, member[i].buf + r * block, block);
		break;
	case FI_ALLGATHER:
	case FI_GATHER:
		for (uint32_t i = 0; i < cnt && (call->kind == FI_ALLGATHER || r == call->root); i++)
			assert_memory_equal(got + i * block, member[i].buf, block);
		break;
	case FI_SCATTER:
		assert_memory_equal(got, member[call->root].buf + r * block, block);
		break;
	case FI_ALLREDUCE:
	case FI_REDUCE:
	case FI_REDUCE_SCATTER:
		if (call->kind == FI_REDUCE && r != call->root)
			break;
		all = reduced(member, cnt, side_len(call, call->kind == FI_REDUCE_SCATTER));
		assert_memory_equal(got, all + (call->kind == FI_REDUCE_SCATTER ? r * block : 0), block);
		free(all);
		break;
	default:
		break;
	}
}

/* Small numbers, so that floating point is exact whatever the order. */
static void fill_buf(struct rng *rng, enum fi_datatype datatype, uint8_t *buf, size_t len)
{
	size_t size = fab_atomic_size(datatype);

	memset(buf, 0, len);
	for (size_t at = 0; at < len; at += size) {
		if (datatype == FI_DOUBLE)
			memcpy(buf + at, &(double) { (double) rng_below(rng, 4) }, size);
		else if (datatype == FI_FLOAT)
			memcpy(buf + at, &(float) { (float) rng_below(rng, 4) }, size);
		else
			buf[at] = (uint8_t) rng_below(rng, 256);
	}
}

static bool in_place;		/* buf and result are the same memory, where a member has both */

static void play(const struct fab_coll_call *call)
{
	struct rng rng = { 1 };
	struct member member[MEMBERS_MAX] = { 0 };

	for (uint32_t i = 0; i < call->cnt; i++) {
		struct fab_coll_call *mine = &member[i].call;
		size_t buf_len, result_len;

		*mine = *call;
		mine->rank = i;
		buf_len = side_len(mine, buf_is_whole(call->kind));
		result_len = side_len(mine, result_is_whole(call->kind));
		member[i].buf = malloc(buf_len + 1);
		member[i].result = malloc(fab_max(buf_len, result_len) + 1);
		fill_buf(&rng, call->datatype, member[i].buf, buf_len);
		memset(member[i].result, 0xee, result_len + 1);
		if (call->kind == FI_BROADCAST && i == call->root)
			memcpy(member[i].result, member[i].buf, buf_len);
		mine->buf = call->kind == FI_SCATTER && i != call->root ? NULL : member[i].buf;
		mine->result = (call->kind == FI_GATHER || call->kind == FI_REDUCE) && i != call->root ? NULL :
			       member[i].result;
		if (in_place && mine->buf && mine->result) {
			memcpy(mine->result, mine->buf, buf_len);
			mine->buf = mine->result;
		}
		assert_int_equal(fab_coll_plan(&member[i].plan, mine), 0);
	}
	run(member, call->cnt);
	for (uint32_t i = 0; i < call->cnt; i++) {
		check(member, call->cnt, i);
		if (!in_place)
			assert_int_equal(member[i].result[side_len(call, result_is_whole(call->kind))], 0xee);
	}
	for (uint32_t i = 0; i < call->cnt; i++) {
		fab_coll_plan_fini(&member[i].plan);
		free(member[i].buf);
		free(member[i].result);
	}
}

static void every_kind_in_groups_of_any_size(void **state)
{
	static const size_t counts[] = { 0, 1, 3, 1500 };

	(void) state;
	for (unsigned kind = FI_BARRIER; kind <= FI_GATHER; kind++) {
		for (uint32_t cnt = 1; cnt <= GROUP_MAX; cnt++) {
			for (size_t i = 0; i < fab_countof(counts); i++)
				play(&(struct fab_coll_call) { .kind = kind, .cnt = cnt, .root = cnt / 2, .op = FI_SUM,
				     .datatype = FI_UINT64, .count = counts[i] });
		}
	}
}

static void buf_and_result_may_be_the_same(void **state)
{
	in_place = true;
	every_kind_in_groups_of_any_size(state);
	in_place = false;
}

static void every_root(void **state)
{
	static const enum fi_collective_op kinds[] = { FI_BROADCAST, FI_REDUCE, FI_SCATTER, FI_GATHER };

	(void) state;
	for (size_t kind = 0; kind < fab_countof(kinds); kind++) {
		for (uint32_t root = 0; root < 7; root++)
			play(&(struct fab_coll_call) { .kind = kinds[kind], .cnt = 7, .root = root, .op = FI_MAX,
			     .datatype = FI_INT32, .count = 2 });
	}
}

/* Also rings, whose parts are not equal. */
static void every_datatype_and_operation(void **state)
{
	static const enum fi_datatype types[] = {
		FI_INT8, FI_UINT8, FI_INT16, FI_UINT16, FI_INT32, FI_UINT32, FI_INT64, FI_UINT64, FI_FLOAT, FI_DOUBLE,
	};

	(void) state;
	for (size_t type = 0; type < fab_countof(types); type++) {
		for (unsigned op = FI_MIN; op <= FI_BXOR; op++) {
			if (!fab_atomic_valid(FAB_ATOMIC_BASE, types[type], op) ||
			    (op == FI_PROD && (types[type] == FI_FLOAT || types[type] == FI_DOUBLE)))
				continue;
			play(&(struct fab_coll_call) { .kind = FI_ALLREDUCE, .cnt = 5, .op = op,
			     .datatype = types[type], .count = 7 });
			play(&(struct fab_coll_call) { .kind = FI_ALLREDUCE, .cnt = 5, .op = op,
			     .datatype = types[type], .count = LONG_LEN / fab_atomic_size(types[type]) });
			play(&(struct fab_coll_call) { .kind = FI_REDUCE_SCATTER, .cnt = 6, .op = op,
			     .datatype = types[type], .count = 3 });
		}
	}
}

/* All members end with the same bits, though no order of these gives the same as another. */
static void all_have_the_same_bits(void **state)
{
	const double values[] = { 1e16, 1.0, -1e16, 3.5, 1e-9 };
	const size_t counts[] = { 1, 8192 };

	(void) state;
	for (size_t c = 0; c < fab_countof(counts); c++) {
		struct member member[5] = { 0 };

		for (uint32_t i = 0; i < 5; i++) {
			double *buf = malloc(counts[c] * sizeof(double));

			for (size_t j = 0; j < counts[c]; j++)
				buf[j] = values[(i + j) % 5];
			member[i].buf = (uint8_t *) buf;
			member[i].result = malloc(counts[c] * sizeof(double));
			member[i].call = (struct fab_coll_call) {
				.kind = FI_ALLREDUCE, .rank = i, .cnt = 5, .op = FI_SUM, .datatype = FI_DOUBLE,
				.count = counts[c], .buf = buf, .result = member[i].result,
			};
			assert_int_equal(fab_coll_plan(&member[i].plan, &member[i].call), 0);
		}
		run(member, 5);
		for (uint32_t i = 0; i < 5; i++)
			assert_memory_equal(member[i].result, member[0].result, counts[c] * sizeof(double));
		for (uint32_t i = 0; i < 5; i++) {
			fab_coll_plan_fini(&member[i].plan);
			free(member[i].buf);
			free(member[i].result);
		}
	}
}

/* Messages of a member: log n for what is usual. */
static void short_ones_take_few_messages(void **state)
{
	static const struct {
		enum fi_collective_op kind;
		unsigned total;		/* of 16 members */
	} rows[] = {
		{ FI_BARRIER, 64 }, { FI_BROADCAST, 15 }, { FI_ALLREDUCE, 64 }, { FI_ALLGATHER, 64 }, { FI_REDUCE, 15 },
		{ FI_SCATTER, 15 }, { FI_GATHER, 15 }, { FI_REDUCE_SCATTER, 64 }, { FI_ALLTOALL, 240 },
	};

	(void) state;
	for (size_t i = 0; i < fab_countof(rows); i++) {
		play(&(struct fab_coll_call) { .kind = rows[i].kind, .cnt = 16, .op = FI_SUM, .datatype = FI_INT32,
		     .count = 1 });
		assert_int_equal(message_cnt, rows[i].total);
	}
}

/* Blocks of memory that the members of a group allocate, 1000 of them, as 0 does when it is the root. */
static void a_member_allocates_what_its_part_needs(void **state)
{
	static const struct {
		enum fi_collective_op kind;
		uint32_t rank, root;
		unsigned blocks;
	} rows[] = {
		{ FI_SCATTER, 1, 0, 0 }, { FI_SCATTER, 512, 0, 488 }, { FI_SCATTER, 768, 0, 232 },
		{ FI_SCATTER, 0, 0, 0 }, { FI_SCATTER, 1, 1, 488 }, { FI_SCATTER, 999, 999, 0 },
		{ FI_GATHER, 1, 0, 0 }, { FI_GATHER, 512, 0, 488 }, { FI_GATHER, 768, 0, 232 },
		{ FI_GATHER, 0, 0, 0 }, { FI_GATHER, 1, 1, 488 }, { FI_GATHER, 999, 999, 0 },
		{ FI_REDUCE, 1, 0, 0 }, { FI_REDUCE, 2, 0, 2 }, { FI_REDUCE, 0, 0, 1 },
		{ FI_ALLTOALL, 1, 0, 0 }, { FI_ALLGATHER, 1, 0, 0 }, { FI_REDUCE_SCATTER, 1, 0, 1001 },
		{ FI_ALLREDUCE, 1, 0, 1 }, { FI_BROADCAST, 1, 0, 0 },
	};
	static uint64_t in[1000 * 8], out[1000 * 8];

	(void) state;
	for (size_t i = 0; i < fab_countof(rows); i++) {
		struct fab_coll_call call = {
			.kind = rows[i].kind, .rank = rows[i].rank, .cnt = 1000, .root = rows[i].root, .op = FI_SUM,
			.datatype = FI_UINT64, .count = 8, .buf = in, .result = out,
		};
		struct fab_coll_plan plan;

		malloc_asked();
		assert_int_equal(fab_coll_plan(&plan, &call), 0);
		assert_int_equal(malloc_asked(), rows[i].blocks * 8 * sizeof(uint64_t));
		fab_coll_plan_fini(&plan);
	}
}

/* The ring of a long FI_ALLREDUCE has one part of the vector beside it, and an FI_ALLTOALL in place all of it. */
static void long_ones_allocate_no_second_vector(void **state)
{
	static uint64_t in[16000], out[16000];
	struct fab_coll_call call = { .kind = FI_ALLREDUCE, .rank = 3, .cnt = 16, .op = FI_SUM, .datatype = FI_UINT64,
				      .count = 16000, .buf = in, .result = out };
	struct fab_coll_plan plan;

	(void) state;
	malloc_asked();
	assert_int_equal(fab_coll_plan(&plan, &call), 0);
	assert_in_range(malloc_asked(), sizeof(in) / 16, sizeof(in) / 16 + sizeof(uint64_t));
	fab_coll_plan_fini(&plan);
	call.kind = FI_ALLTOALL;
	call.count = 1000;
	call.result = in;
	assert_int_equal(fab_coll_plan(&plan, &call), 0);
	assert_int_equal(malloc_asked(), sizeof(in));
	fab_coll_plan_fini(&plan);
}

static void what_does_not_fit_memory_is_refused(void **state)
{
	struct fab_coll_call call = { .kind = FI_ALLGATHER, .cnt = 3, .datatype = FI_INT64, .count = SIZE_MAX / 16 };
	struct fab_coll_plan plan;

	(void) state;
	assert_int_equal(fab_coll_plan(&plan, &call), -FI_EMSGSIZE);
	call.count = SIZE_MAX / 4;
	assert_int_equal(fab_coll_plan(&plan, &call), -FI_EMSGSIZE);
	call.count = 1;
	call.kind = FI_ALLREDUCE;
	call.buf = call.result = &plan;
	for (long n = 0; n < 2; n++) {
		fail_alloc(n);
		assert_int_equal(fab_coll_plan(&plan, &call), -FI_ENOMEM);
		fail_alloc(-1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_in_groups_of_any_size),
		cmocka_unit_test(buf_and_result_may_be_the_same),
		cmocka_unit_test(every_root),
		cmocka_unit_test(every_datatype_and_operation),
		cmocka_unit_test(all_have_the_same_bits),
		cmocka_unit_test(short_ones_take_few_messages),
		cmocka_unit_test(a_member_allocates_what_its_part_needs),
		cmocka_unit_test(long_ones_allocate_no_second_vector),
		cmocka_unit_test(what_does_not_fit_memory_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
