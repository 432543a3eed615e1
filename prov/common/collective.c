/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See collective.h. An operation goes through its plan step by step; a hook that is called in the middle of sending or
 * parsing only notes the end of a message, and the group's flush goes on from there in the next pass.
 *
 *   group:  JOINING --join ends--> JOINED --> FAILED (also from JOINING)
 *
 * A group that is closed while messages of an aborted operation are still under way stays until those have ended.
 */
#include "common/collective.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/av_set.h"
#include "common/coll_plan.h"
#include "common/ep.h"
#include "common/ops.h"

#define GROUP_ADDR	(1ULL << 63)	/* fi_mc_addr() of a group: this and its slot; no address of a vector or set */
#define DEAD_MAX	64		/* failed groups that are remembered after their closing */
#define MEMBERS_MAX	(1u << 24)

enum group_state {
	JOINING,
	JOINED,
	FAILED,
};

struct group {
	struct fid_mc mc;
	struct fab_coll *coll;
	struct fab_list link;		/* in coll->groups */
	struct fab_list ops;		/* struct coll_op, the first one is running */
	struct fab_flush flush;		/* goes on with the first one */
	enum group_state state;
	bool closed;
	int err;			/* FAILED: a positive FI_E* */
	int aborted;			/* a member says so, and it has not been acted on; likewise */
	uint64_t kinds;			/* FI_BARRIER_SET ...: allowed operations */
	uint64_t hash;			/* group bits of the join's tags */
	uint64_t id;			/* group bits of all others */
	uint16_t seq;			/* of the next operation */
	uint32_t rank, cnt;
	fi_addr_t member[];
};

/* One message of a step. */
struct message {
	struct fab_hook hook;
	struct coll_op *op;
	bool busy;
	size_t len;			/* bytes that a received one must have */
};

struct coll_op {
	struct fab_list link;
	struct group *group;
	void *context;
	bool want_cq;
	bool begun;			/* the receive of step `at` is under way, or has been */
	bool sent;			/* and so is the other message */
	int err;			/* why it fails */
	int lost;			/* a connection has ended, not acted on yet; positive FI_E* */
	uint32_t at;
	uint64_t tag;			/* without the round */
	struct fab_coll_call call;
	struct fab_coll_plan plan;
	struct message out, in;
	uint64_t join[2];		/* what a join reduces, and the result */
};

struct dead {
	uint64_t group;			/* bits of the tag; 0: none */
	int err;
};

struct fab_coll {
	struct fab_ep *ep;
	const struct fab_coll_net *net;
	struct fab_list groups;		/* closed ones too */
	struct group **slot;		/* owned; by fi_mc_addr() */
	uint32_t slot_cnt;
	uint32_t next_id;		/* no group of ours has this number yet */
	uint32_t op_cnt;		/* outstanding */
	struct dead dead[DEAD_MAX];
	unsigned dead_next;
};

static const struct fi_provider *prov_of(const struct fab_ep *ep)
{
	return ep->domain->fabric->prov;
}

/* ---- the end of operations and groups ---- */

static void group_free(struct group *group)
{
	fab_flush_cancel(&group->flush);
	fab_list_remove(&group->link);
	free(group);
}

static void report_join(struct group *group)
{
	struct fi_eq_entry entry = { .fid = &group->mc.fid, .context = group->mc.fid.context };
	struct fab_eq *eq = group->coll->ep->eq;

	if (group->closed)
		return;
	if (group->state == JOINED)
		fab_eq_write(eq, FI_JOIN_COMPLETE, &entry, sizeof(entry), 0, &group->mc.fid);
	else
		fab_eq_write_err(eq, &group->mc.fid, entry.context, 0, group->err, group->err, NULL, 0);
}

static uint64_t bits_of(uint64_t hash)
{
	return hash & FAB_COLL_GROUP_BITS;
}

/* The members have agreed on the largest number that one of them had free. */
static void join_done(struct coll_op *op)
{
	struct group *group = op->group;
	struct fab_coll *coll = group->coll;
	struct fab_list *link;

	if (!op->err) {
		group->state = JOINED;
		group->id = bits_of(fab_mix64(group->hash ^ fab_mix64(op->join[1])));
		coll->next_id = fab_max(coll->next_id, (uint32_t) op->join[1] + 1);
	}
	report_join(group);
	/* those who wait for a join of the same members */
	fab_list_for_each(&coll->groups, link)
		fab_progress_flush_later(coll->ep->progress, &fab_container(link, struct group, link)->flush);
}

static void report(struct coll_op *op)
{
	struct fab_ep *ep = op->group->coll->ep;
	const struct fab_comp comp = {
		.context = op->context, .flags = FI_COLLECTIVE, .src = FI_ADDR_NOTAVAIL,
		.len = op->call.kind == FI_BARRIER ? 0 : op->call.count * fab_atomic_size(op->call.datatype),
	};

	if (op->err)
		fab_ep_fail(ep, FAB_OP_COLLECTIVE, &comp, &(struct fab_cq_fail) { .err = op->err,
			    .prov_errno = op->err, .text = "a member of the group has failed, or left it" });
	else
		fab_ep_complete(ep, FAB_OP_COLLECTIVE, &comp, op->want_cq);
}

static bool is_join(const struct coll_op *op)
{
	return op->call.buf == &op->join[0];
}

/* Neither of its messages is under way. */
static void op_end(struct coll_op *op)
{
	fab_list_remove(&op->link);
	op->group->coll->op_cnt--;
	if (is_join(op))
		join_done(op);
	else
		report(op);
	fab_coll_plan_fini(&op->plan);
	free(op);
}

/* ---- failure ---- */

static void message_cancel(struct group *group, struct message *message, uint32_t rank)
{
	if (message->busy)
		group->coll->net->cancel(group->coll->ep, group->member[rank], &message->hook);
}

static void op_fail(struct coll_op *op, int err)
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

/* Once: what is running fails, and the neighbours hear of it. */
static void group_fail(struct group *group, int err)
{
	struct coll_op *op = fab_list_first(&group->ops, struct coll_op, link);
	struct fab_coll *coll = group->coll;
	uint64_t tag = group->state == JOINING ? group->hash : group->id;

	if (group->state == FAILED)
		return;
	group->state = FAILED;
	group->id = tag;
	group->err = err;
	FI_INFO(prov_of(coll->ep), FI_LOG_EP_DATA, "a group of %u members has failed: %s\n", group->cnt,
		fi_strerror(err));
	if (op)
		op_fail(op, err);
	for (uint64_t by = 1; by < group->cnt; by *= 2) {
		coll->net->abort(coll->ep, group->member[(group->rank + by) % group->cnt], tag, err);
		coll->net->abort(coll->ep, group->member[(group->rank + group->cnt - by) % group->cnt], tag, err);
	}
}

/* ---- running ---- */

static void message_done(struct fab_hook *hook, enum fab_op_code code, const struct fab_comp *comp,
			 const struct fab_cq_fail *fail)
{
	struct message *message = fab_container(hook, struct message, hook);
	struct coll_op *op = message->op;
	struct group *group = op->group;

	message->busy = false;
	if (fail && !op->lost)
		op->lost = fail->err;
	else if (code == FAB_OP_CRECV && comp->len != message->len && !op->lost)
		op->lost = FI_EIO;	/* the members do not call the same operation */
	fab_progress_flush_later(group->coll->ep->progress, &group->flush);
}

static int message_begin(struct coll_op *op, struct message *message, enum fab_op_code code, fi_addr_t member, void *buf,
			 size_t len)
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

static int step_recv(struct coll_op *op)
{
	const struct fab_coll_step *step = &op->plan.step[op->at];
	struct group *group = op->group;
	int ret;

	if (step->from == FAB_COLL_NOBODY)
		return 0;
	ret = group->coll->net->watch(group->coll->ep, group->member[step->from]);
	return ret ? ret : message_begin(op, &op->in, FAB_OP_CRECV, group->member[step->from], step->in, step->in_len);
}

static int step_send(struct coll_op *op)
{
	const struct fab_coll_step *step = &op->plan.step[op->at];

	if (step->to == FAB_COLL_NOBODY)
		return 0;
	return message_begin(op, &op->out, FAB_OP_CSEND, op->group->member[step->to], (void *) step->out,
			     step->out_len);
}

/* One step further. False: not now. */
static bool op_step(struct coll_op *op)
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
			fab_progress_flush_later(op->group->coll->ep->progress, &op->group->flush);
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

/* As far as it goes. True: it has ended. */
static bool op_run(struct coll_op *op)
{
	for (;;) {
		if (op->lost)
			group_fail(op->group, op->lost);
		if (op->group->state == FAILED)
			op_fail(op, op->group->err);
		if (op->err ? !op->out.busy && !op->in.busy : op->at == op->plan.cnt) {
			op_end(op);
			return true;
		}
		if (op->err || !op_step(op))
			return false;
	}
}

/* A join waits for an earlier one of the same members, since their messages look the same. */
static bool join_waits(const struct group *group)
{
	struct fab_list *link;

	if (group->state != JOINING)
		return false;
	for (link = group->link.prev; link != &group->coll->groups; link = link->prev) {
		const struct group *other = fab_container(link, struct group, link);

		if (other->state == JOINING && other->hash == group->hash)
			return true;
	}
	return false;
}

/* May free the group. */
static void group_run(struct group *group)
{
	struct coll_op *op;

	if (group->aborted)
		group_fail(group, group->aborted);
	while (!join_waits(group) && (op = fab_list_first(&group->ops, struct coll_op, link))) {
		if (!op_run(op))
			return;
	}
	if (group->closed && fab_list_empty(&group->ops))
		group_free(group);
}

static void group_flush(struct fab_flush *flush)
{
	group_run(fab_container(flush, struct group, flush));
}

/* Hand an operation with its call filled in to the group; begins it if it is the first. 0; -FI_E*: it is gone. */
static int op_queue(struct group *group, struct coll_op *op)
{
	int ret;

	ret = fab_coll_plan(&op->plan, &op->call);
	if (ret) {
		free(op);
		return ret;
	}
	op->group = group;
	op->out = op->in = (struct message) { .hook.done = message_done, .op = op };
	op->tag = is_join(op) ? group->hash : group->id | (uint64_t) group->seq++ << 8;
	group->coll->op_cnt++;
	fab_list_add_tail(&group->ops, &op->link);
	if (group->ops.next == &op->link)
		group_run(group);
	return 0;
}

/* ---- what arrives ---- */

static bool is_member(const struct group *group, fi_addr_t addr)
{
	for (uint32_t i = 0; i < group->cnt; i++) {
		if (group->member[i] == addr)
			return true;
	}
	return false;
}

static bool op_waits_for(const struct coll_op *op, fi_addr_t peer)
{
	return op && op->in.busy && op->group->member[op->plan.step[op->at].from] == peer;
}

void fab_coll_lost(struct fab_coll *coll, fi_addr_t peer, int err)
{
	struct fab_list *link;

	fab_list_for_each(&coll->groups, link) {
		struct group *group = fab_container(link, struct group, link);
		struct coll_op *op = fab_list_first(&group->ops, struct coll_op, link);

		if (!op_waits_for(op, peer) || op->lost)
			continue;
		op->lost = err;
		fab_progress_flush_later(coll->ep->progress, &group->flush);
	}
}

bool fab_coll_waits_for(const struct fab_coll *coll, fi_addr_t peer)
{
	struct fab_list *link;

	fab_list_for_each(&coll->groups, link) {
		const struct group *group = fab_container(link, struct group, link);

		if (op_waits_for(fab_list_first(&group->ops, struct coll_op, link), peer))
			return true;
	}
	return false;
}

/* Is this group meant? While one member is still joining, another may be through: so the join's tag means the latest
 * group of these members. */
static bool is_meant(const struct group *group, uint64_t tag)
{
	return tag == group->id || (group->state != FAILED && tag == group->hash);
}

void fab_coll_aborted(struct fab_coll *coll, fi_addr_t peer, uint64_t tag, int err)
{
	struct fab_list *link;

	for (link = coll->groups.prev; link != &coll->groups; link = link->prev) {
		struct group *group = fab_container(link, struct group, link);

		if (!is_meant(group, bits_of(tag)) || !is_member(group, peer))
			continue;
		if (group->state != FAILED && !group->aborted) {
			group->aborted = err;
			fab_progress_flush_later(coll->ep->progress, &group->flush);
		}
		return;
	}
}

/* The error of a failed group, 0 if it has not. */
static int error_of(const struct fab_coll *coll, uint64_t tag)
{
	struct fab_list *link;

	fab_list_for_each(&coll->groups, link) {
		const struct group *group = fab_container(link, struct group, link);

		if (group->state == FAILED && group->id == tag)
			return group->err;
	}
	for (unsigned i = 0; i < DEAD_MAX; i++) {
		if (coll->dead[i].group == tag)
			return coll->dead[i].err;
	}
	return 0;
}

bool fab_coll_refuses(struct fab_coll *coll, fi_addr_t peer, uint64_t tag)
{
	int err = error_of(coll, bits_of(tag));

	if (!err || peer == FI_ADDR_NOTAVAIL)
		return false;
	coll->net->abort(coll->ep, peer, tag, err);
	return true;
}

/* ---- joining and leaving ---- */

static struct group *group_of(const struct fab_coll *coll, fi_addr_t addr)
{
	uint64_t slot = addr & ~GROUP_ADDR;

	return (addr & GROUP_ADDR) && slot < coll->slot_cnt ? coll->slot[slot] : NULL;
}

/* 0 or -FI_ENOMEM. */
static int slot_take(struct fab_coll *coll, struct group *group)
{
	uint32_t slot = 0, cnt;
	struct group **more;

	while (slot < coll->slot_cnt && coll->slot[slot])
		slot++;
	if (slot == coll->slot_cnt) {
		cnt = slot ? slot * 2 : 4;
		more = realloc(coll->slot, cnt * sizeof(struct group *));
		if (!more)
			return -FI_ENOMEM;
		memset(more + slot, 0, (cnt - slot) * sizeof(struct group *));
		coll->slot = more;
		coll->slot_cnt = cnt;
	}
	coll->slot[slot] = group;
	group->mc.fi_addr = GROUP_ADDR | slot;
	return 0;
}

static void dead_add(struct fab_coll *coll, const struct group *group)
{
	coll->dead[coll->dead_next++ % DEAD_MAX] = (struct dead) { group->id, group->err };
}

static void dead_forget(struct fab_coll *coll, uint64_t tag)
{
	for (unsigned i = 0; i < DEAD_MAX; i++) {
		if (coll->dead[i].group == tag)
			coll->dead[i].group = 0;
	}
}

static int mc_close(struct fid *fid)
{
	struct group *group = fab_container(fid, struct group, mc.fid);
	struct fab_coll *coll = group->coll;
	struct fab_progress *progress = coll->ep->progress;

	fab_progress_lock(progress);
	coll->slot[group->mc.fi_addr & ~GROUP_ADDR] = NULL;
	if (!fab_list_empty(&group->ops))
		group_fail(group, FI_ECANCELED);
	if (group->state == FAILED)
		dead_add(coll, group);
	group->closed = true;
	fab_eq_purge(coll->ep->eq, fid, NULL);
	group_run(group);
	fab_progress_unlock(progress);
	return 0;
}

static struct fi_ops mc_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mc_close,
};

static int refuse_join(const struct fab_ep *ep, const char *why)
{
	FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "fi_join_collective: %s\n", why);
	return -FI_EINVAL;
}

/* A copy of the set's members, with what all of them have in common: the hash. NULL: no memory. */
static struct group *group_make(struct fab_ep *ep, const struct fab_av_set *set)
{
	struct group *group;
	uint64_t hash;

	pthread_mutex_lock(&set->av->change_lock);
	group = calloc(1, sizeof(*group) + set->cnt * sizeof(*group->member));
	if (group) {
		group->cnt = (uint32_t) set->cnt;
		memcpy(group->member, set->addr, set->cnt * sizeof(*group->member));
		group->kinds = set->flags;
	}
	pthread_mutex_unlock(&set->av->change_lock);
	if (!group)
		return NULL;
	hash = group->cnt;
	group->rank = FAB_COLL_NOBODY;
	for (uint32_t i = 0; i < group->cnt; i++) {
		const union fab_sockaddr *addr = fab_av_addr(ep->av, group->member[i]);
		const uint8_t *byte = (const uint8_t *) addr;

		for (size_t at = 0; addr && at < fab_addr_len(&addr->sa); at++)
			hash = fab_mix64(hash ^ byte[at]);
		if (addr && group->rank == FAB_COLL_NOBODY && ep->coll->net->is_self(ep, addr))
			group->rank = i;
	}
	group->hash = bits_of(hash);
	return group;
}

static int check_join(const struct fab_ep *ep, const struct fi_collective_addr *addr, uint64_t flags)
{
	const struct fab_av_set *set;

	if (!addr || !addr->set || addr->set->fid.fclass != FI_CLASS_AV_SET)
		return refuse_join(ep, "no address set is given");
	if (!(flags & FI_COLLECTIVE) || (flags & ~(FI_COLLECTIVE | FI_SEND | FI_RECV)))
		return refuse_join(ep, "flags other than FI_SEND and FI_RECV");
	if (!ep->eq) {
		FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "fi_join_collective: bind an event queue to the endpoint, for "
			"FI_JOIN_COMPLETE\n");
		return -FI_ENOEQ;
	}
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	set = fab_container(addr->set, const struct fab_av_set, set_fid);
	if (set->av != ep->av)
		return refuse_join(ep, "the set is of another address vector than the endpoint's");
	if (!set->cnt || set->cnt > MEMBERS_MAX)
		return refuse_join(ep, "the set is empty, or has more than 2^24 members");
	return 0;
}

/* Lock held. 0; -FI_E*: the group is gone. */
static int group_join(struct fab_coll *coll, struct group *group, void *context)
{
	struct coll_op *op = calloc(1, sizeof(*op));

	if (!op || slot_take(coll, group)) {
		free(op);
		free(group);
		return -FI_ENOMEM;
	}
	group->coll = coll;
	group->mc.fid = (struct fid) { .fclass = FI_CLASS_MC, .context = context, .ops = &mc_fid_ops };
	fab_list_init(&group->ops);
	fab_flush_init(&group->flush, group_flush);
	fab_list_add_tail(&coll->groups, &group->link);
	dead_forget(coll, group->hash);
	op->join[0] = coll->next_id;
	op->call = (struct fab_coll_call) {
		.kind = FI_ALLREDUCE, .rank = group->rank, .cnt = group->cnt, .datatype = FI_UINT64, .op = FI_MAX,
		.count = 1, .buf = &op->join[0], .result = &op->join[1],
	};
	if (!op_queue(group, op))
		return 0;
	coll->slot[group->mc.fi_addr & ~GROUP_ADDR] = NULL;
	group_free(group);
	return -FI_ENOMEM;
}

int fab_coll_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	const struct fi_collective_addr *coll_addr = addr;
	struct fab_ep *ep = fab_ep_of(&fid->fid);
	struct group *group;
	int ret;

	if (!ep->coll)
		return -FI_ENOSYS;
	ret = check_join(ep, coll_addr, flags);
	if (ret)
		return ret;
	group = group_make(ep, fab_container(coll_addr->set, const struct fab_av_set, set_fid));
	if (!group)
		return -FI_ENOMEM;
	if (group->rank == FAB_COLL_NOBODY) {
		free(group);
		return refuse_join(ep, "the endpoint's own address is not in the set");
	}
	if (!ep->eq_driven) {
		fab_progress_share(ep->progress);	/* with who reads the queue */
		ret = fab_eq_add_engine(ep->eq, ep->progress);
		if (ret) {
			free(group);
			return ret;
		}
		ep->eq_driven = true;
	}
	FAB_OPS_FILL(&mc_fid_ops);
	fab_progress_lock(ep->progress);
	ret = group_join(ep->coll, group, context);
	fab_progress_unlock(ep->progress);
	if (!ret)
		*mc = &group->mc;
	return ret;
}

/* ---- operations ---- */

#define FLAGS	(FI_COMPLETION | FI_MORE | FI_COLLECTIVE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
		 FI_DELIVERY_COMPLETE)

static bool reduces(enum fi_collective_op kind)
{
	return kind == FI_ALLREDUCE || kind == FI_REDUCE_SCATTER || kind == FI_REDUCE;
}

static bool has_root(enum fi_collective_op kind)
{
	return kind == FI_BROADCAST || kind == FI_REDUCE || kind == FI_SCATTER || kind == FI_GATHER;
}

/* Those whose result does not depend on who comes first. */
static bool can_reduce(enum fi_datatype datatype, enum fi_op op)
{
	return (unsigned) op <= FI_BXOR && fab_atomic_valid(FAB_ATOMIC_BASE, datatype, op);
}

static bool can_do(enum fi_collective_op kind, enum fi_datatype datatype, enum fi_op op)
{
	if (kind == FI_BARRIER)
		return true;
	return reduces(kind) ? can_reduce(datatype, op) : fab_atomic_size(datatype) != 0;
}

/* A call, as its entry point has it. */
struct request {
	fi_addr_t group, root;
	uint64_t flags;
	void *context;
	struct fab_coll_call call;
};

static int find_root(const struct group *group, struct request *request)
{
	if (!has_root(request->call.kind))
		return 0;
	for (uint32_t i = 0; i < group->cnt; i++) {
		if (group->member[i] == request->root) {
			request->call.root = i;
			return 0;
		}
	}
	return -FI_EINVAL;
}

static int check_group(const struct group *group, enum fi_collective_op kind)
{
	const uint64_t all = (FI_GATHER_SET << 1) - FI_BARRIER_SET;

	if (!group)
		return -FI_EINVAL;
	if ((group->kinds & all) && !(group->kinds & FI_BARRIER_SET << kind))
		return -FI_EOPNOTSUPP;
	if (group->state == JOINING)
		return -FI_EOPBADSTATE;
	return group->state == FAILED ? -group->err : 0;
}

static int submit_locked(struct fab_ep *ep, struct request *request)
{
	struct group *group = group_of(ep->coll, request->group);
	struct coll_op *op;
	int ret;

	ret = check_group(group, request->call.kind);
	if (!ret)
		ret = find_root(group, request);
	if (ret)
		return ret;
	if (ep->coll->op_cnt >= ep->info->tx_attr->size)
		return -FI_EAGAIN;
	op = calloc(1, sizeof(*op));
	if (!op)
		return -FI_ENOMEM;
	op->call = request->call;
	op->call.rank = group->rank;
	op->call.cnt = group->cnt;
	op->context = request->context;
	op->want_cq = ep->tx_cq && (!ep->tx_selective || (request->flags & FI_COMPLETION));
	return op_queue(group, op);
}

static ssize_t submit(struct fid_ep *fid, struct request request)
{
	struct fab_ep *ep = fab_ep_of(&fid->fid);
	int ret;

	if (request.flags & ~FLAGS) {
		FI_WARN(prov_of(ep), FI_LOG_EP_DATA, "flags %#" PRIx64 " of a collective: %#" PRIx64 " are not supported\n",
			request.flags, (uint64_t) (request.flags & ~FLAGS));
		return -FI_EBADFLAGS;
	}
	if (!can_do(request.call.kind, request.call.datatype, request.call.op))
		return -FI_EOPNOTSUPP;
	fab_progress_lock(ep->progress);
	ret = submit_locked(ep, &request);
	fab_progress_unlock(ep->progress);
	return ret;
}

static ssize_t coll_barrier2(struct fid_ep *ep, fi_addr_t addr, uint64_t flags, void *context)
{
	return submit(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context, { .kind = FI_BARRIER } });
}

static ssize_t coll_barrier(struct fid_ep *ep, fi_addr_t addr, void *context)
{
	uint64_t flags = fab_container(ep, struct fab_ep_fid, ep_fid)->tx_op_flags;

	return coll_barrier2(ep, addr, flags & FLAGS, context);
}

static ssize_t coll_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t addr, fi_addr_t root,
			      enum fi_datatype datatype, uint64_t flags, void *context)
{
	(void) desc;
	return submit(ep, (struct request) { addr, root, flags, context, { .kind = FI_BROADCAST, .datatype = datatype,
		      .count = count, .result = buf } });
}

static ssize_t coll_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			     void *result_desc, fi_addr_t addr, enum fi_datatype datatype, uint64_t flags, void *context)
{
	(void) desc, (void) result_desc;
	return submit(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context, { .kind = FI_ALLTOALL,
		      .datatype = datatype, .count = count, .buf = buf, .result = result } });
}

static ssize_t coll_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			      void *result_desc, fi_addr_t addr, enum fi_datatype datatype, enum fi_op op,
			      uint64_t flags, void *context)
{
	(void) desc, (void) result_desc;
	return submit(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context, { .kind = FI_ALLREDUCE,
		      .datatype = datatype, .op = op, .count = count, .buf = buf, .result = result } });
}

static ssize_t coll_allgather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			      void *result_desc, fi_addr_t addr, enum fi_datatype datatype, uint64_t flags, void *context)
{
	(void) desc, (void) result_desc;
	return submit(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context, { .kind = FI_ALLGATHER,
		      .datatype = datatype, .count = count, .buf = buf, .result = result } });
}

static ssize_t coll_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				   void *result_desc, fi_addr_t addr, enum fi_datatype datatype, enum fi_op op,
				   uint64_t flags, void *context)
{
	(void) desc, (void) result_desc;
	return submit(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context, { .kind = FI_REDUCE_SCATTER,
		      .datatype = datatype, .op = op, .count = count, .buf = buf, .result = result } });
}

static ssize_t coll_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc,
			   fi_addr_t addr, fi_addr_t root, enum fi_datatype datatype, enum fi_op op, uint64_t flags,
			   void *context)
{
	(void) desc, (void) result_desc;
	return submit(ep, (struct request) { addr, root, flags, context, { .kind = FI_REDUCE, .datatype = datatype,
		      .op = op, .count = count, .buf = buf, .result = result } });
}

static ssize_t coll_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			    void *result_desc, fi_addr_t addr, fi_addr_t root, enum fi_datatype datatype, uint64_t flags,
			    void *context)
{
	(void) desc, (void) result_desc;
	return submit(ep, (struct request) { addr, root, flags, context, { .kind = FI_SCATTER, .datatype = datatype,
		      .count = count, .buf = buf, .result = result } });
}

static ssize_t coll_gather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc,
			   fi_addr_t addr, fi_addr_t root, enum fi_datatype datatype, uint64_t flags, void *context)
{
	(void) desc, (void) result_desc;
	return submit(ep, (struct request) { addr, root, flags, context, { .kind = FI_GATHER, .datatype = datatype,
		      .count = count, .buf = buf, .result = result } });
}

struct fi_ops_collective fab_coll_ops = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = coll_barrier,
	.broadcast = coll_broadcast,
	.alltoall = coll_alltoall,
	.allreduce = coll_allreduce,
	.allgather = coll_allgather,
	.reduce_scatter = coll_reduce_scatter,
	.reduce = coll_reduce,
	.scatter = coll_scatter,
	.gather = coll_gather,
	.barrier2 = coll_barrier2,
};

int fab_coll_query(struct fid_domain *domain, enum fi_collective_op coll, struct fi_collective_attr *attr,
		   uint64_t flags)
{
	(void) domain;
	if (!attr || (flags & ~FI_SCATTER))
		return -FI_EINVAL;
	if ((unsigned) coll > FI_GATHER || !can_do(coll, attr->datatype, attr->op))
		return -FI_EOPNOTSUPP;
	attr->datatype_attr.size = fab_atomic_size(attr->datatype);
	attr->datatype_attr.count = coll == FI_BARRIER ? 0 : SIZE_MAX / 2 / MEMBERS_MAX / attr->datatype_attr.size;
	attr->max_members = MEMBERS_MAX;
	attr->mode = 0;
	return 0;
}

/* ---- life ---- */

int fab_coll_open(struct fab_ep *ep, const struct fab_coll_net *net)
{
	ep->coll = calloc(1, sizeof(*ep->coll));
	if (!ep->coll)
		return -FI_ENOMEM;
	ep->coll->ep = ep;
	ep->coll->net = net;
	fab_list_init(&ep->coll->groups);
	return 0;
}

int fab_coll_check_close(struct fab_ep *ep)
{
	unsigned cnt = 0;

	if (!ep->coll)
		return 0;
	fab_progress_lock(ep->progress);
	for (uint32_t i = 0; i < ep->coll->slot_cnt; i++)
		cnt += ep->coll->slot[i] != NULL;
	fab_progress_unlock(ep->progress);
	if (!cnt)
		return 0;
	FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "fi_close of an endpoint that is in %u groups; close those (struct fid_mc) "
		"first\n", cnt);
	return -FI_EBUSY;
}

void fab_coll_fini(struct fab_ep *ep)
{
	struct fab_coll *coll = ep->coll;
	struct group *group;

	if (!coll)
		return;
	while ((group = fab_list_first(&coll->groups, struct group, link))) {
		struct coll_op *op;

		while ((op = fab_list_first(&group->ops, struct coll_op, link))) {
			fab_list_remove(&op->link);
			fab_coll_plan_fini(&op->plan);
			free(op);
		}
		group_free(group);
	}
	free(coll->slot);
	free(coll);
	ep->coll = NULL;
}
