/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Runs operations on groups, step by step through their plans. Hooks are called in the middle of sending or parsing.
 * They only record the end of a message; the group's flush continues the operation in the next pass.
 */
#include "common/collective/coll_group.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"

/* ---- the end of operations and groups ---- */

void fab_group_free(struct fab_group *group)
{
	fab_flush_cancel(&group->flush);
	fab_list_remove(&group->link);
	free(group);
}

static void report_join(struct fab_group *group)
{
	void *context = group->mc.fid.context;
	struct fab_eq *eq = group->coll->ep->bound.eq;

	if (group->closed)
		return;
	if (group->state == FAB_GROUP_JOINED)
		fab_eq_write_done(eq, FI_JOIN_COMPLETE, &group->mc.fid, context, 0);
	else
		fab_eq_write_err(eq, &group->mc.fid, context, 0, group->err, group->err, NULL, 0);
}

/* Each member waits for messages of its neighbours only, or of members to which it sends, too. */
static void meet_neighbours(const struct fab_group *group)
{
	struct fab_coll *coll = group->coll;

	for (uint64_t by = 1; by < group->cnt; by *= 2) {
		coll->net->watch(coll->ep, group->member[(group->rank + by) % group->cnt]);
		coll->net->watch(coll->ep, group->member[(group->rank + group->cnt - by) % group->cnt]);
	}
}

/* The error of the failed group with this tag; 0 if it has not failed. */
static int error_of(const struct fab_coll *coll, uint64_t tag)
{
	struct fab_list *link;

	fab_list_for_each(&coll->groups, link) {
		const struct fab_group *group = fab_container(link, struct fab_group, link);

		if (group->state == FAB_GROUP_FAILED && group->id == tag)
			return group->err;
	}
	for (unsigned i = 0; i < FAB_COLL_DEAD_MAX; i++) {
		if (coll->dead[i].group == tag)
			return coll->dead[i].err;
	}
	return 0;
}

/* The members have agreed on a number: the largest of those that they have drawn. So no two groups have the same, of
 * processes that were started again neither. */
static void join_done(struct fab_coll_op *op)
{
	struct fab_group *group = op->group;
	struct fab_coll *coll = group->coll;
	struct fab_list *link;

	if (!op->err) {
		group->state = FAB_GROUP_JOINED;
		group->id = fab_group_bits(fab_mix64(group->hash ^ fab_mix64(op->join[1])));
		/* a member whose join ended earlier may have reported the failure of the group already */
		group->aborted = error_of(coll, group->id);
		meet_neighbours(group);
	}
	report_join(group);
	/* joins of groups with the same members have waited for this one */
	fab_list_for_each(&coll->groups, link)
		fab_engine_flush_later(coll->ep->engine, &fab_container(link, struct fab_group, link)->flush);
}

static void coll_op_report(struct fab_coll_op *op)
{
	struct fab_ep *ep = op->group->coll->ep;
	struct fi_stats_peer *stats = &ep->stats->rest;	/* of all members */
	const struct fab_comp comp = {
		.context = op->context, .flags = FI_COLLECTIVE, .src = FI_ADDR_NOTAVAIL,
		.len = op->call.kind == FI_BARRIER ? 0 : op->call.count * fab_atomic_size(op->call.datatype),
	};

	if (op->err)
		stats->errors++;
	else
		fab_stats_count(stats, FAB_OP_COLLECTIVE, comp.len);
	if (op->err)
		fab_ep_fail(ep, FAB_OP_COLLECTIVE, &comp, &(struct fab_cq_fail) { .err = op->err,
			    .prov_errno = op->err, .text = "a member of the group has failed, or left it" });
	else
		fab_ep_complete(ep, FAB_OP_COLLECTIVE, &comp, op->want_cq);
}

static bool is_join(const struct fab_coll_op *op)
{
	return op->call.buf == &op->join[0];
}

/* True if all members have called the operation when it ends here, so that none is in the join any more. */
static bool needs_all(const struct fab_coll_call *call)
{
	switch (call->kind) {
	case FI_BROADCAST:
	case FI_SCATTER:
		return false;
	case FI_REDUCE:
	case FI_GATHER:
		return call->rank == call->root;
	default:
		return true;
	}
}

/* End an operation. Neither of its messages is under way. */
static void op_end(struct fab_coll_op *op)
{
	fab_list_remove(&op->link);
	op->group->coll->op_cnt--;
	op->group->used |= !op->err && !is_join(op);
	op->group->whole |= !op->err && !is_join(op) && needs_all(&op->call);
	if (is_join(op))
		join_done(op);
	else
		coll_op_report(op);
	fab_coll_plan_fini(&op->plan);
	free(op);
}

/* ---- failure ---- */

static void message_cancel(struct fab_group *group, struct fab_coll_message *message, uint32_t rank)
{
	if (message->busy)
		group->coll->net->cancel(group->coll->ep, group->member[rank], &message->hook);
}

static void op_fail(struct fab_coll_op *op, int err)
{
	const struct fab_coll_step *step;

	if (op->err)
		return;
	op->err = err;
	if (!op->begun || op->at >= op->plan.cnt)
		return;
	step = &op->plan.step[op->at];
	message_cancel(op->group, &op->in, step->from);
	message_cancel(op->group, &op->out, step->to);
}

static void tell_neighbours(const struct fab_group *group, uint64_t tag, int err)
{
	for (uint64_t by = 1; by < group->cnt; by *= 2) {
		fab_coll_tell(group->coll, group->member[(group->rank + by) % group->cnt], tag, err);
		fab_coll_tell(group->coll, group->member[(group->rank + group->cnt - by) % group->cnt], tag, err);
	}
}

void fab_group_leave(struct fab_group *group)
{
	if (group->state == FAB_GROUP_JOINED && !group->whole)
		tell_neighbours(group, group->hash, 0);
}

/* Fail the group once; see coll_group.h. */
void fab_group_fail(struct fab_group *group, int err)
{
	struct fab_coll_op *op = fab_list_first(&group->ops, struct fab_coll_op, link);
	struct fab_coll *coll = group->coll;
	uint64_t tag = group->state == FAB_GROUP_JOINING ? group->hash : group->id;

	if (group->state == FAB_GROUP_FAILED)
		return;
	group->join_aborted |= fab_group_just_joined(group);
	if (!group->join_aborted)
		fab_group_leave(group);
	group->state = FAB_GROUP_FAILED;
	group->id = tag;
	group->err = err;
	FI_INFO(fab_coll_prov(coll->ep), FI_LOG_EP_DATA, "a group of %u members has failed: %s\n", group->cnt,
		fi_strerror(err));
	if (op)
		op_fail(op, err);
	tell_neighbours(group, tag, err);
	/* a member that left the join may have taken our message for one of its next join */
	if (group->join_aborted)
		tell_neighbours(group, group->hash, err);
}

/* ---- running ---- */

static void message_done(struct fab_hook *hook, enum fab_op_code code, const struct fab_comp *comp,
			 const struct fab_cq_fail *fail)
{
	struct fab_coll_message *message = fab_container(hook, struct fab_coll_message, hook);
	struct fab_coll_op *op = message->op;
	struct fab_group *group = op->group;

	message->busy = false;
	if (fail && !op->lost)
		op->lost = fail->err;
	else if (code == FAB_OP_CRECV && comp->len != message->len && !op->lost)
		op->lost = FI_EIO;	/* the members do not call the same operation */
	fab_engine_flush_later(group->coll->ep->engine, &group->flush);
}

static int message_begin(struct fab_coll_op *op, struct fab_coll_message *message, enum fab_op_code code,
			 fi_addr_t member, void *buf, size_t len)
{
	struct fab_ep *ep = op->group->coll->ep;
	struct iovec iov = { buf, len };
	int ret;

	message->busy = true;
	message->len = len;
	ret = op->group->coll->net->submit(ep, &(struct fab_op) {
		.code = code, .hooked = true, .accepted = true, .iov = &iov, .iov_cnt = len != 0, .addr = member,
		.tag = op->tag | op->plan.step[op->at].round, .context = &message->hook,
	});
	if (ret)
		message->busy = false;
	return ret;
}

/* Receive the message of a step. A member with which the connection was lost may have sent it before. */
static int step_recv(struct fab_coll_op *op)
{
	const struct fab_coll_step *step = &op->plan.step[op->at];
	struct fab_group *group = op->group;
	int ret;

	if (step->from == FAB_COLL_NOBODY)
		return 0;
	ret = group->coll->net->watch(group->coll->ep, group->member[step->from]);
	if (!ret)
		ret = message_begin(op, &op->in, FAB_OP_CRECV, group->member[step->from], step->in, step->in_len);
	return !ret && op->in.busy && group->lost[step->from] ? -FI_ECONNRESET : ret;
}

static int step_send(struct fab_coll_op *op)
{
	const struct fab_coll_step *step = &op->plan.step[op->at];

	if (step->to == FAB_COLL_NOBODY)
		return 0;
	return message_begin(op, &op->out, FAB_OP_CSEND, op->group->member[step->to], (void *) step->out,
			     step->out_len);
}

/* Go one step further. False: the operation has to wait. */
static bool op_step(struct fab_coll_op *op)
{
	int ret;

	if (!op->begun) {
		op->begun = true;
		ret = step_recv(op);
		if (ret)
			op->lost = -ret;
		return true;
	}
	if (!op->sent) {
		ret = step_send(op);
		if (ret == -FI_EAGAIN) {
			fab_engine_flush_later(op->group->coll->ep->engine, &op->group->flush);
			return false;
		}
		op->sent = true;
		if (ret)
			op->lost = -ret;
		return true;
	}
	if (op->out.busy || op->in.busy)
		return false;
	fab_coll_step_finish(&op->call, &op->plan.step[op->at++]);
	op->begun = op->sent = false;
	return true;
}

/* Run until the operation has to wait. True: it has ended. */
static bool op_run(struct fab_coll_op *op)
{
	for (;;) {
		if (op->lost)
			fab_group_fail(op->group, op->lost);
		if (op->group->state == FAB_GROUP_FAILED)
			op_fail(op, op->group->err);
		if (op->err ? !op->out.busy && !op->in.busy : op->at == op->plan.cnt) {
			op_end(op);
			return true;
		}
		if (op->err || !op_step(op))
			return false;
	}
}

/* True if a join has to wait for an earlier one with the same members: their messages have the same tags. */
static bool join_waits(const struct fab_group *group)
{
	struct fab_list *link;

	if (group->state != FAB_GROUP_JOINING)
		return false;
	for (link = group->link.prev; link != &group->coll->groups; link = link->prev) {
		const struct fab_group *other = fab_container(link, struct fab_group, link);

		if (other->state == FAB_GROUP_JOINING && other->hash == group->hash)
			return true;
	}
	return false;
}

/* See coll_group.h. May free the group. */
void fab_group_run(struct fab_group *group)
{
	struct fab_coll_op *op;

	if (group->aborted)
		fab_group_fail(group, group->aborted);
	while (!join_waits(group) && (op = fab_list_first(&group->ops, struct fab_coll_op, link))) {
		if (!op_run(op))
			return;
	}
	if (group->closed && fab_list_empty(&group->ops))
		fab_group_free(group);
}

void fab_group_flush(struct fab_flush *flush)
{
	fab_group_run(fab_container(flush, struct fab_group, flush));
}

/* See coll_group.h. */
int fab_group_queue(struct fab_group *group, struct fab_coll_op *op)
{
	int ret;

	ret = fab_coll_plan(&op->plan, &op->call);
	if (ret) {
		free(op);
		return ret;
	}
	op->group = group;
	op->out = op->in = (struct fab_coll_message) { .hook.done = message_done, .op = op };
	op->tag = is_join(op) ? group->hash : group->id | (uint64_t) group->seq++ << 8;
	group->coll->op_cnt++;
	op->number = ++group->coll->op_number;
	fab_list_add_tail(&group->ops, &op->link);
	if (group->ops.next == &op->link)
		fab_group_run(group);
	return 0;
}

/* ---- the page of the process ---- */

/* The member for whose message an operation waits, or that has not taken the one from here. */
static fi_addr_t member_waited_for(const struct fab_coll_op *op)
{
	const struct fab_coll_step *step = &op->plan.step[op->at];

	if (op->at >= op->plan.cnt || (!op->in.busy && !op->out.busy))
		return FI_ADDR_NOTAVAIL;
	return op->group->member[op->in.busy ? step->from : step->to];
}

uint64_t fab_coll_survey(const struct fab_coll *coll, uint32_t (*record)(const struct fab_ep *ep, fi_addr_t member))
{
	struct fi_stats_pending *pending = &coll->ep->stats->pending[FI_STATS_EP_COLLECTIVE];
	const struct fab_coll_op *oldest = NULL;
	struct fab_list *link;
	fi_addr_t member;
	uint32_t peer;

	fab_list_for_each(&coll->groups, link) {
		const struct fab_group *group = fab_container(link, const struct fab_group, link);
		const struct fab_coll_op *op = fab_list_first(&group->ops, const struct fab_coll_op, link);

		if (op && (!oldest || op->number < oldest->number))
			oldest = op;
	}
	member = oldest ? member_waited_for(oldest) : FI_ADDR_NOTAVAIL;
	peer = member == FI_ADDR_NOTAVAIL ? UINT32_MAX : record(coll->ep, member);
	fab_stats_pending(pending, !oldest ? NULL : &(struct fi_stats_pending) {
		.number = oldest->number, .cnt = coll->op_cnt, .peer = peer, .op = FI_STATS_COLLECTIVE,
		.state = FI_STATS_MEMBERS, .flags = peer != UINT32_MAX ? FI_STATS_PEER : 0,
	});
	return coll->op_cnt;
}

/* ---- what arrives ---- */

/* The rank of a member, or FAB_COLL_NOBODY. Mostly a set has its members in the order of the vector. */
static uint32_t rank_of(const struct fab_group *group, fi_addr_t addr)
{
	if (addr < group->cnt && group->member[addr] == addr)
		return (uint32_t) addr;
	for (uint32_t i = 0; i < group->cnt; i++) {
		if (group->member[i] == addr)
			return i;
	}
	return FAB_COLL_NOBODY;
}

static bool op_waits_for(const struct fab_coll_op *op, fi_addr_t peer)
{
	return op && op->in.busy && op->group->member[op->plan.step[op->at].from] == peer;
}

void fab_coll_lost(struct fab_coll *coll, fi_addr_t peer, int err)
{
	struct fab_list *link;

	fab_coll_news_lost(coll, peer);
	fab_list_for_each(&coll->groups, link) {
		struct fab_group *group = fab_container(link, struct fab_group, link);
		struct fab_coll_op *op = fab_list_first(&group->ops, struct fab_coll_op, link);
		uint32_t rank = rank_of(group, peer);

		if (rank != FAB_COLL_NOBODY)
			group->lost[rank] = true;
		if (!op_waits_for(op, peer) || op->lost)
			continue;
		op->lost = err;
		fab_engine_flush_later(coll->ep->engine, &group->flush);
	}
}

/* A member of the group that is another process now. */
static bool is_reborn(const struct fab_group *group, uint32_t rank, uint64_t life)
{
	if (!group->life[rank])
		group->life[rank] = life;
	return group->life[rank] != life;
}

void fab_coll_met(struct fab_coll *coll, fi_addr_t peer, uint64_t life)
{
	struct fab_list *link;

	fab_coll_news_met(coll, peer);
	fab_list_for_each(&coll->groups, link) {
		struct fab_group *group = fab_container(link, struct fab_group, link);

		uint32_t rank = rank_of(group, peer);

		if (rank == FAB_COLL_NOBODY || !is_reborn(group, rank, life) || group->aborted)
			continue;
		group->aborted = FI_ECONNRESET;
		fab_engine_flush_later(coll->ep->engine, &group->flush);
	}
}

bool fab_coll_waits_for(const struct fab_coll *coll, fi_addr_t peer)
{
	struct fab_list *link;

	fab_list_for_each(&coll->groups, link) {
		const struct fab_group *group = fab_container(link, struct fab_group, link);

		if (op_waits_for(fab_list_first(&group->ops, struct fab_coll_op, link), peer))
			return true;
	}
	return false;
}

/* True if the tag is of this group. A member may have finished the join while another is still in it, so the join's tag
 * refers to the latest group with these members. */
static bool coll_is_meant(const struct fab_group *group, uint64_t tag)
{
	return tag == group->id || (group->state != FAB_GROUP_FAILED && tag == group->hash);
}

/* True if a join with this tag is under way. */
static bool coll_joins(const struct fab_coll *coll, uint64_t tag)
{
	struct fab_list *link;

	fab_list_for_each(&coll->groups, link) {
		const struct fab_group *group = fab_container(link, const struct fab_group, link);

		if (group->state == FAB_GROUP_JOINING && group->hash == tag)
			return true;
	}
	return false;
}

/* True if a join of which the peer is a member is under way. */
static bool coll_joins_with(const struct fab_coll *coll, fi_addr_t peer)
{
	struct fab_list *link;

	fab_list_for_each(&coll->groups, link) {
		const struct fab_group *group = fab_container(link, const struct fab_group, link);

		if (group->state == FAB_GROUP_JOINING && rank_of(group, peer) != FAB_COLL_NOBODY)
			return true;
	}
	return false;
}

bool fab_coll_aborted(struct fab_coll *coll, fi_addr_t peer, uint64_t tag, int err)
{
	struct fab_list *link;

	/* a member that is still in the join needs what waits for its next steps */
	if (!err)
		return !coll_joins(coll, fab_group_bits(tag));
	for (link = coll->groups.prev; link != &coll->groups; link = link->prev) {
		struct fab_group *group = fab_container(link, struct fab_group, link);

		if (!coll_is_meant(group, fab_group_bits(tag)) ||
		    rank_of(group, peer) == FAB_COLL_NOBODY)
			continue;
		if (group->state != FAB_GROUP_FAILED && !group->aborted) {
			group->aborted = err;
			group->join_aborted = group->state == FAB_GROUP_JOINED && fab_group_bits(tag) != group->id;
			fab_engine_flush_later(coll->ep->engine, &group->flush);
		}
		return true;
	}
	/* this member learns the number of its group when the join ends: join_done() looks it up */
	if (coll_joins_with(coll, peer) && !error_of(coll, fab_group_bits(tag)))
		fab_coll_dead_add(coll, fab_group_bits(tag), err);
	return true;
}

bool fab_coll_refuses(struct fab_coll *coll, fi_addr_t peer, uint64_t tag)
{
	int err = error_of(coll, fab_group_bits(tag));

	if (!err || peer == FI_ADDR_NOTAVAIL)
		return false;
	coll->net->abort(coll->ep, peer, tag, err);
	return true;
}
