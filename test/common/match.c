/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching against a model that searches plain lists, with random operations; and what a search costs, in steps
 * counted, with ten and with ten thousand outstanding. Includes match.c to count its steps.
 */
static unsigned long steps;
#define FAB_MATCH_STEP() (steps++)
#include "../../prov/common/receive/match.c"

#include "unit.h"

struct recv {
	struct fab_posted posted;
	uint64_t tag;
	struct recv *next;
};

struct msg {
	struct fab_unexp unexp;
	struct msg *next;
};

/* Both sides, in order, beside the thing under test. */
struct model {
	struct fab_match match;
	struct recv *recvs, **recvs_end;
	struct msg *msgs, **msgs_end;
	uint32_t recv_cnt, msg_cnt;
};

/* Sources of the runs with peer groups: address and group. */
#define NOBODY	UINT32_MAX
static bool grouped;

static fi_addr_t source(uint32_t addr, uint32_t group)
{
	if (grouped)
		return (fi_addr_t) group << 32 | addr;
	return addr == NOBODY ? FI_ADDR_UNSPEC : addr;
}

static bool from_fits(fi_addr_t from, fi_addr_t src)
{
	if (!grouped)
		return from == FI_ADDR_UNSPEC || from == src;
	return from >> 32 == src >> 32 && ((uint32_t) from == NOBODY || from == src);
}

static bool fits(uint64_t want, uint64_t ignore, fi_addr_t from, uint64_t tag, fi_addr_t src)
{
	return !((want ^ tag) & ~ignore) && from_fits(from, src);
}

static struct recv **model_find_recv(struct model *model, uint64_t tag, fi_addr_t src)
{
	struct recv **place = &model->recvs;

	while (*place && !fits((*place)->posted.tag, (*place)->posted.ignore, (*place)->posted.src, tag, src))
		place = &(*place)->next;
	return place;
}

static struct msg **model_find_msg(struct model *model, uint64_t tag, uint64_t ignore, fi_addr_t src)
{
	struct msg **place = &model->msgs;

	while (*place && !fits(tag, ignore, src, (*place)->unexp.tag, (*place)->unexp.src))
		place = &(*place)->next;
	return place;
}

static void drop_recv(struct model *model, struct recv **place)
{
	struct recv *recv = *place;

	fab_match_unpost(&model->match, &recv->posted);
	*place = recv->next;
	if (!*place)
		model->recvs_end = place;
	model->recv_cnt--;
	free(recv);
}

static void drop_msg(struct model *model, struct msg **place)
{
	struct msg *msg = *place;

	fab_match_del_unexp(&model->match, &msg->unexp);
	*place = msg->next;
	if (!*place)
		model->msgs_end = place;
	model->msg_cnt--;
	free(msg);
}

static struct recv *post(struct model *model, uint64_t tag, uint64_t ignore, fi_addr_t src)
{
	struct recv *recv = calloc(1, sizeof(*recv));

	recv->posted.tag = tag & ~ignore;
	recv->posted.ignore = ignore;
	recv->posted.src = src;
	assert_int_equal(fab_match_post(&model->match, &recv->posted), 0);
	*model->recvs_end = recv;
	model->recvs_end = &recv->next;
	model->recv_cnt++;
	return recv;
}

static struct msg *keep(struct model *model, uint64_t tag, fi_addr_t src)
{
	struct msg *msg = calloc(1, sizeof(*msg));

	msg->unexp.tag = tag;
	msg->unexp.src = src;
	fab_match_add_unexp(&model->match, &msg->unexp);
	*model->msgs_end = msg;
	model->msgs_end = &msg->next;
	model->msg_cnt++;
	return msg;
}

static void model_init(struct model *model)
{
	memset(model, 0, sizeof(*model));
	model->recvs_end = &model->recvs;
	model->msgs_end = &model->msgs;
	assert_int_equal(fab_match_init(&model->match), 0);
	model->match.grouped = grouped;
}

static void model_fini(struct model *model)
{
	while (model->recvs)
		drop_recv(model, &model->recvs);
	while (model->msgs)
		drop_msg(model, &model->msgs);
	assert_int_equal(model->match.posted_cnt, 0);
	assert_int_equal(model->match.unexp_cnt, 0);
	fab_match_fini(&model->match);
}

/* ---- random operations ---- */

static const uint64_t few_masks[] = { 0, 0, 0, UINT64_MAX, 0xff, 0xff00 };

/* many: more pairs than there are groups. */
static uint64_t random_mask(struct rng *rng, bool many)
{
	return many ? rng_below(rng, 64) : few_masks[rng_below(rng, fab_countof(few_masks))];
}

static fi_addr_t random_src(struct rng *rng)
{
	return source(rng_below(rng, 3) ? rng_below(rng, 4) : NOBODY, grouped ? rng_below(rng, 3) : 0);
}

/* A receive is posted: it takes the oldest message that fits, or stays. */
static void step_recv(struct model *model, struct rng *rng, bool many)
{
	uint64_t tag = rng_below(rng, 8) * 0x41, ignore = random_mask(rng, many);
	fi_addr_t src = random_src(rng);
	struct msg **place = model_find_msg(model, tag, ignore, src);
	struct fab_unexp *found = fab_match_find_unexp(&model->match, tag, ignore, src);

	assert_ptr_equal(found, *place ? &(*place)->unexp : NULL);
	if (found)
		drop_msg(model, place);
	else
		post(model, tag, ignore, src);
}

/* A message arrives: it goes to the oldest receive that fits, or stays. */
static void step_msg(struct model *model, struct rng *rng)
{
	uint64_t tag = rng_below(rng, 8) * 0x41;
	fi_addr_t src = random_src(rng);
	struct recv **place = model_find_recv(model, tag, src);
	struct fab_posted *found = fab_match_find_posted(&model->match, tag, src);

	assert_ptr_equal(found, *place ? &(*place)->posted : NULL);
	if (found)
		drop_recv(model, place);
	else
		keep(model, tag, src);
}

/* A receive is cancelled, a message is dropped, a sender becomes known: somewhere in the middle. */
static void step_other(struct model *model, struct rng *rng)
{
	struct recv **recv = &model->recvs;
	struct msg **msg = &model->msgs;

	for (uint64_t n = rng_below(rng, model->recv_cnt + 1); n && *recv; n--)
		recv = &(*recv)->next;
	for (uint64_t n = rng_below(rng, model->msg_cnt + 1); n && *msg; n--)
		msg = &(*msg)->next;
	if (*msg && rng_below(rng, 2))
		fab_match_set_unexp_src(&model->match, &(*msg)->unexp, random_src(rng));
	else if (*msg && rng_below(rng, 4) == 0)
		drop_msg(model, msg);
	else if (*recv)
		drop_recv(model, recv);
}

static void run_random(uint64_t seed, bool many)
{
	struct rng rng = { seed };
	struct model model;
	uint64_t bias = 50;

	model_init(&model);
	for (int i = 0; i < 20000; i++) {
		/* let either side pile up for a while */
		if (i % 500 == 0)
			bias = 10 + rng_below(&rng, 80);
		if (rng_below(&rng, 100) < 5)
			step_other(&model, &rng);
		else if (rng_below(&rng, 100) < bias)
			step_recv(&model, &rng, many);
		else
			step_msg(&model, &rng);
		assert_int_equal(model.match.posted_cnt, model.recv_cnt);
		assert_int_equal(model.match.unexp_cnt, model.msg_cnt);
	}
	model_fini(&model);
}

static void behaves_as_two_plain_lists(void **state)
{
	(void) state;
	for (uint64_t seed = 1; seed <= 10; seed++)
		run_random(seed, false);
}

static void peer_groups_are_kept_apart(void **state)
{
	(void) state;
	grouped = true;
	for (uint64_t seed = 30; seed <= 40; seed++)
		run_random(seed, seed & 1);
	grouped = false;
}

static void more_masks_than_groups_stay_in_order(void **state)
{
	(void) state;
	for (uint64_t seed = 1; seed <= 10; seed++)
		run_random(seed, true);
}

/* ---- cost ---- */

enum shape {
	SAME_TAG,		/* one key, many receives */
	OTHER_TAGS,		/* each its own tag */
	OTHER_SRCS,		/* each its own source */
	SAME_TAG_AND_OTHERS,	/* one key with half of them, each of the rest its own */
	TWO_MASKS,		/* half of them for any source */
	SHAPE_MAX
};

static void shape_entry(enum shape shape, uint64_t i, uint64_t *tag, uint64_t *ignore, fi_addr_t *src)
{
	*tag = *ignore = *src = 0;
	switch (shape) {
	case SAME_TAG:
		break;
	case OTHER_TAGS:
		*tag = i;
		break;
	case OTHER_SRCS:
		*src = i;
		break;
	case SAME_TAG_AND_OTHERS:
		*tag = i % 2 ? i : 0;
		break;
	default:
		*tag = i;
		*src = i % 2 ? FI_ADDR_UNSPEC : 0;
	}
}

/* Mean steps to take one of cnt outstanding receives and post it again. */
static double cost_posted(enum shape shape, uint64_t cnt)
{
	struct rng rng = { 7 };
	struct model model;
	uint64_t tag, ignore;
	fi_addr_t src;

	model_init(&model);
	for (uint64_t i = 0; i < cnt; i++) {
		shape_entry(shape, i, &tag, &ignore, &src);
		post(&model, tag, ignore, src);
	}
	steps = 0;
	for (int n = 0; n < 1000; n++) {
		struct fab_posted *found;

		shape_entry(shape, rng_below(&rng, cnt), &tag, &ignore, &src);
		found = fab_match_find_posted(&model.match, tag, src == FI_ADDR_UNSPEC ? 0 : src);
		assert_non_null(found);
		fab_match_unpost(&model.match, found);
		assert_int_equal(fab_match_post(&model.match, found), 0);
	}
	model_fini(&model);
	return steps / 1000.0;
}

static void posted_receives_cost_the_same_ten_or_ten_thousand(void **state)
{
	(void) state;
	for (enum shape shape = 0; shape < SHAPE_MAX; shape++) {
		double few = cost_posted(shape, 10), many = cost_posted(shape, 10000);

		print_message("# shape %d: %.2f steps with 10, %.2f with 10000\n", shape, few, many);
		assert_true(many <= 1.5 * few);
	}
}

/* Mean steps to take any of cnt unexpected messages by a receive with some bits ignored, and to get another one. */
static double cost_unexp(uint64_t ignore, bool any, uint64_t cnt)
{
	struct rng rng = { 11 };
	struct model model;
	struct fab_unexp *found;

	model_init(&model);
	for (uint64_t i = 0; i < cnt; i++)
		keep(&model, i << 8, i % 4);
	for (int n = 0; n < 200; n++)	/* until it is worth an index */
		fab_match_find_unexp(&model.match, (cnt - 1) << 8, ignore, any ? FI_ADDR_UNSPEC : (cnt - 1) % 4);
	steps = 0;
	for (int n = 0; n < 1000; n++) {
		uint64_t i = rng_below(&rng, cnt);

		found = fab_match_find_unexp(&model.match, i << 8, ignore, any ? FI_ADDR_UNSPEC : i % 4);
		assert_non_null(found);
		fab_match_del_unexp(&model.match, found);
		fab_match_add_unexp(&model.match, found);
	}
	model_fini(&model);
	return steps / 1000.0;
}

static void unexpected_messages_cost_the_same_ten_or_ten_thousand(void **state)
{
	static const struct {
		uint64_t ignore;
		bool any;
	} cases[] = { { 0, false }, { 0, true }, { 0xff, false }, { 0xff, true } };

	(void) state;
	for (unsigned i = 0; i < fab_countof(cases); i++) {
		double few = cost_unexp(cases[i].ignore, cases[i].any, 10);
		double many = cost_unexp(cases[i].ignore, cases[i].any, 10000);

		print_message("# ignore %#lx any %d: %.2f steps with 10, %.2f with 10000\n",
			      (unsigned long) cases[i].ignore, cases[i].any, few, many);
		assert_true(many <= 1.5 * few);
	}
}

/* Five kinds of receive take turns, two more than there are indexes: the cost is that of searching, not of indexing on
 * top. */
static void thrashing_indexes_cost_no_more_than_searching(void **state)
{
	struct model model;

	(void) state;
	model_init(&model);
	for (uint64_t i = 0; i < 1000; i++)
		keep(&model, i << 8, 0);
	steps = 0;
	for (int n = 0; n < 500; n++)
		assert_non_null(fab_match_find_unexp(&model.match, UINT64_C(999) << 8, FAB_BIT(n % 5), 0));
	assert_true(steps <= 500 * 1000 * 1.5);
	model_fini(&model);
}

static void a_posted_receive_is_small(void **state)
{
	(void) state;
	assert_true(sizeof(struct fab_posted) <= 96);
	assert_true(sizeof(struct fab_unexp) <= 144);
}

static void no_memory_for_the_first_of_a_kind_is_an_error(void **state)
{
	struct fab_posted few[FAB_MATCH_FEW] = { 0 }, posted = { .tag = 1 };
	struct fab_match match;

	(void) state;
	assert_int_equal(fab_match_init(&match), 0);
	fail_alloc(0);
	for (int i = 0; i < FAB_MATCH_FEW; i++)
		assert_int_equal(fab_match_post(&match, &few[i]), 0);	/* no hash table yet */
	assert_int_equal(fab_match_post(&match, &posted), -FI_ENOMEM);
	fail_alloc(-1);
	assert_int_equal(match.posted_cnt, FAB_MATCH_FEW);
	assert_int_equal(fab_match_post(&match, &posted), 0);
	fab_match_unpost(&match, &posted);
	for (int i = 0; i < FAB_MATCH_FEW; i++)
		fab_match_unpost(&match, &few[i]);
	fab_match_fini(&match);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(behaves_as_two_plain_lists),
		cmocka_unit_test(peer_groups_are_kept_apart),
		cmocka_unit_test(more_masks_than_groups_stay_in_order),
		cmocka_unit_test(posted_receives_cost_the_same_ten_or_ten_thousand),
		cmocka_unit_test(unexpected_messages_cost_the_same_ten_or_ten_thousand),
		cmocka_unit_test(thrashing_indexes_cost_no_more_than_searching),
		cmocka_unit_test(a_posted_receive_is_small),
		cmocka_unit_test(no_memory_for_the_first_of_a_kind_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
