/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Making, joining and freeing groups. A group that is closed while messages of an aborted operation are under way is
 * freed when these have ended.
 */
#include "common/collective/coll_group.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/table.h"
#include "common/av/av.h"
#include "common/ops/ops.h"

/* ---- joining and leaving ---- */

struct fab_group *fab_group_of(const struct fab_coll *coll, fi_addr_t addr)
{
	uint64_t slot = addr & ~FAB_GROUP_ADDR;

	return (addr & FAB_GROUP_ADDR) && slot < coll->slot_cnt ? coll->slot[slot] : NULL;
}

/* Put a group into a free slot, which gives it its fi_mc_addr(). 0 or -FI_ENOMEM. */
static int group_slot_take(struct fab_coll *coll, struct fab_group *group)
{
	size_t slot = 0;

	while (slot < coll->slot_cnt && coll->slot[slot])
		slot++;
	if (fab_grow(&coll->slot, &coll->slot_cnt, slot, sizeof(*coll->slot)))
		return -FI_ENOMEM;
	coll->slot[slot] = group;
	group->mc.fi_addr = FAB_GROUP_ADDR | slot;
	return 0;
}

void fab_coll_dead_add(struct fab_coll *coll, uint64_t tag, int err)
{
	coll->dead[coll->dead_next++ % FAB_COLL_DEAD_MAX] = (struct fab_coll_dead) { tag, err };
}

static void dead_forget(struct fab_coll *coll, uint64_t tag)
{
	for (unsigned i = 0; i < FAB_COLL_DEAD_MAX; i++) {
		if (coll->dead[i].group == tag)
			coll->dead[i].group = 0;
	}
}

static int mc_close(struct fid *fid)
{
	struct fab_group *group = fab_container(fid, struct fab_group, mc.fid);
	struct fab_coll *coll = group->coll;
	struct fab_engine *engine = coll->ep->engine;

	fab_engine_lock(engine);
	coll->slot[group->mc.fi_addr & ~FAB_GROUP_ADDR] = NULL;
	if (!fab_list_empty(&group->ops) || fab_group_just_joined(group))
		fab_group_fail(group, FI_ECANCELED);
	fab_group_leave(group);
	/* a message that comes for it yet is of a call that this member has not made, and will not */
	if (group->state == FAB_GROUP_JOINED)
		group->err = FI_ECANCELED;
	fab_coll_dead_add(coll, group->id, group->err);
	group->closed = true;
	fab_eq_purge(coll->ep->bound.eq, fid, NULL);
	fab_group_run(group);
	fab_engine_unlock(engine);
	return 0;
}

static struct fi_ops mc_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mc_close,
};

static int refuse_join(const struct fab_ep *ep, const char *why)
{
	FI_WARN(fab_coll_prov(ep), FI_LOG_EP_CTRL, "fi_join_collective: %s\n", why);
	return -FI_EINVAL;
}

/* Make a group with a copy of the set's members. Its hash is the same on all members. NULL: no memory. */
static struct fab_group *group_make(struct fab_ep *ep, const struct fab_av_set *set)
{
	struct fab_group *group;
	uint64_t hash;

	pthread_mutex_lock(&set->av->change_lock);
	group = calloc(1, sizeof(*group) + set->cnt * (sizeof(*group->member) + sizeof(*group->life) +
						       sizeof(*group->lost)));
	if (group) {
		group->life = group->member + set->cnt;
		group->lost = (bool *) (group->life + set->cnt);
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
		const union fab_sockaddr *addr = fab_av_addr(ep->bound.av, group->member[i]);
		union fab_any_addr full = { .sa.sa_family = AF_UNSPEC };
		const uint8_t *byte = (const uint8_t *) &full;

		if (addr)
			fab_addr_expand(addr, &full);
		for (size_t at = 0; at < fab_any_addr_len(&full.sa); at++)
			hash = fab_mix64(hash ^ byte[at]);
		if (addr && group->rank == FAB_COLL_NOBODY && ep->coll->net->is_self(ep, addr))
			group->rank = i;
	}
	group->hash = fab_group_bits(hash);
	return group;
}

static int coll_check_join(const struct fab_ep *ep, const struct fi_collective_addr *addr, uint64_t flags)
{
	const struct fab_av_set *set;

	if (!(flags & FI_COLLECTIVE)) {		/* addr is then a multicast group's, not a struct fi_collective_addr */
		FI_WARN(fab_coll_prov(ep), FI_LOG_EP_CTRL, "fi_join: this endpoint has no multicast (FI_MULTICAST); "
			"for collectives, call fi_join_collective()\n");
		return -FI_ENOSYS;
	}
	if (!addr || !addr->set || addr->set->fid.fclass != FI_CLASS_AV_SET)
		return refuse_join(ep, "no address set is given");
	if (flags & ~(FI_COLLECTIVE | FI_SEND | FI_RECV))
		return refuse_join(ep, "flags other than FI_SEND and FI_RECV");
	if (!ep->bound.eq) {
		FI_WARN(fab_coll_prov(ep), FI_LOG_EP_CTRL, "fi_join_collective: bind an event queue to the "
			"endpoint, for FI_JOIN_COMPLETE\n");
		return -FI_ENOEQ;
	}
	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	set = fab_container(addr->set, const struct fab_av_set, set_fid);
	if (set->av != ep->bound.av)
		return refuse_join(ep, "the set is of another address vector than the endpoint's");
	if (!set->cnt || set->cnt > FAB_GROUP_MEMBERS_MAX)
		return refuse_join(ep, "the set is empty, or has more than 2^24 members");
	return 0;
}

/* Begin the join. Lock held. 0; -FI_E*: the group was freed. */
static int group_join(struct fab_coll *coll, struct fab_group *group, void *context)
{
	struct fab_coll_op *op = calloc(1, sizeof(*op));

	if (!op || group_slot_take(coll, group)) {
		free(op);
		free(group);
		return -FI_ENOMEM;
	}
	group->coll = coll;
	group->mc.fid = (struct fid) { .fclass = FI_CLASS_MC, .context = context, .ops = &mc_fid_ops };
	fab_list_init(&group->ops);
	fab_flush_init(&group->flush, fab_group_flush);
	fab_list_add_tail(&coll->groups, &group->link);
	dead_forget(coll, group->hash);
	fab_coll_news_forget(coll, group->hash);
	/* messages of an earlier join of these members, one of whom has lost the connection or was started again: its
	 * next join sends them again */
	coll->net->forget(coll->ep, group->hash);
	for (uint32_t i = 0; i < group->cnt; i++)
		group->life[i] = coll->net->life(coll->ep, group->member[i]);
	op->join[0] = fab_random64();
	op->call = (struct fab_coll_call) {
		.kind = FI_ALLREDUCE, .rank = group->rank, .cnt = group->cnt, .datatype = FI_UINT64, .op = FI_MAX,
		.count = 1, .buf = &op->join[0], .result = &op->join[1],
	};
	if (!fab_group_queue(group, op))
		return 0;
	coll->slot[group->mc.fi_addr & ~FAB_GROUP_ADDR] = NULL;
	fab_group_free(group);
	return -FI_ENOMEM;
}

int fab_coll_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	const struct fi_collective_addr *coll_addr = addr;
	struct fab_ep *ep = fab_ep_of(&fid->fid);
	struct fab_group *group;
	int ret;

	if (!ep->coll)
		return -FI_ENOSYS;
	ret = coll_check_join(ep, coll_addr, flags);
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
		fab_engine_share(ep->engine);	/* with threads that read the queue */
		ret = fab_eq_add_engine(ep->bound.eq, ep->engine);
		if (ret) {
			free(group);
			return ret;
		}
		ep->eq_driven = true;
	}
	FAB_OPS_FILL(&mc_fid_ops);
	fab_engine_lock(ep->engine);
	ret = group_join(ep->coll, group, context);
	fab_engine_unlock(ep->engine);
	if (!ret)
		*mc = &group->mc;
	return ret;
}

/* ---- opening and closing ---- */

int fab_coll_open(struct fab_ep *ep, const struct fab_coll_net *net)
{
	ep->coll = calloc(1, sizeof(*ep->coll));
	if (!ep->coll)
		return -FI_ENOMEM;
	ep->coll->ep = ep;
	ep->coll->net = net;
	fab_list_init(&ep->coll->groups);
	fab_flush_init(&ep->coll->flush, fab_coll_news_flush);
	return 0;
}

int fab_coll_check_close(struct fab_ep *ep)
{
	unsigned cnt = 0;

	if (!ep->coll)
		return 0;
	fab_engine_lock(ep->engine);
	for (uint32_t i = 0; i < ep->coll->slot_cnt; i++)
		cnt += ep->coll->slot[i] != NULL;
	fab_engine_unlock(ep->engine);
	if (!cnt)
		return 0;
	FI_WARN(fab_coll_prov(ep), FI_LOG_EP_CTRL, "fi_close of an endpoint that is in %u groups; close those "
		"(struct fid_mc) first\n", cnt);
	return -FI_EBUSY;
}

bool fab_coll_lingers(const struct fab_coll *coll)
{
	return !fab_list_empty(&coll->groups);
}

void fab_coll_fini(struct fab_ep *ep)
{
	struct fab_coll *coll = ep->coll;
	struct fab_group *group;

	if (!coll)
		return;
	while ((group = fab_list_first(&coll->groups, struct fab_group, link))) {
		struct fab_coll_op *op;

		while ((op = fab_list_first(&group->ops, struct fab_coll_op, link))) {
			fab_list_remove(&op->link);
			fab_coll_plan_fini(&op->plan);
			free(op);
		}
		fab_group_free(group);
	}
	fab_flush_cancel(&coll->flush);
	free(coll->slot);
	free(coll);
	ep->coll = NULL;
}
