/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See av_set.h. The members are an array, which keeps their order, and a bitmap, which makes the test for a member
 * cheap.
 */
#include "common/av/av_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/table.h"
#include "common/domain/domain.h"
#include "common/ops/ops.h"

#define KINDS (FI_BARRIER_SET | FI_BROADCAST_SET | FI_ALLTOALL_SET | FI_ALLREDUCE_SET | FI_ALLGATHER_SET | \
	       FI_REDUCE_SCATTER_SET | FI_REDUCE_SET | FI_SCATTER_SET | FI_GATHER_SET)

static struct fab_av_set *av_set_of(struct fid_av_set *fid)
{
	return fab_container(fid, struct fab_av_set, set_fid);
}

static const struct fi_provider *av_set_prov(const struct fab_av *av)
{
	return av->domain->fabric->prov;
}

/* ---- members; change_lock held ---- */

/* Make room for another member, addr. 0 or -FI_ENOMEM. */
static int make_room(struct fab_av_set *set, fi_addr_t addr)
{
	int ret = fab_grow(&set->addr, &set->room, set->cnt, sizeof(*set->addr));

	return ret ? ret : fab_grow(&set->has, &set->has_words, addr / 64, sizeof(*set->has));
}

/* Append addr, which is not a member yet. 0 or -FI_ENOMEM. */
static int set_append(struct fab_av_set *set, fi_addr_t addr)
{
	int ret = make_room(set, addr);

	if (ret)
		return ret;
	set->addr[set->cnt++] = addr;
	set->has[addr / 64] |= FAB_BIT(addr % 64);
	return 0;
}

/* Keep only the members that are also members of other (keep is true) or are not (false). The order stays. */
static void set_filter(struct fab_av_set *set, const struct fab_av_set *other, bool keep)
{
	size_t kept = 0;

	for (size_t i = 0; i < set->cnt; i++) {
		fi_addr_t addr = set->addr[i];

		if (fab_av_set_has(other, addr) == keep)
			set->addr[kept++] = addr;
		else if (set != other)
			set->has[addr / 64] &= ~FAB_BIT(addr % 64);
	}
	if (set == other && !keep && set->has)
		memset(set->has, 0, set->has_words * sizeof(*set->has));
	set->cnt = kept;
}

/* ---- the calls ---- */

/* Lock both sets of a call, or return an error. */
static int pair_lock(struct fab_av_set *dst, const struct fab_av_set *src, const char *call)
{
	if (dst->av != src->av) {
		FI_WARN(av_set_prov(dst->av), FI_LOG_AV, "%s: the two sets are of different address vectors\n", call);
		return -FI_EINVAL;
	}
	pthread_mutex_lock(&dst->av->change_lock);
	return 0;
}

static int set_union(struct fid_av_set *dst_fid, const struct fid_av_set *src_fid)
{
	struct fab_av_set *dst = av_set_of(dst_fid), *src = av_set_of((struct fid_av_set *) src_fid);
	int ret = pair_lock(dst, src, "fi_av_set_union");
	size_t before;

	if (ret)
		return ret;
	before = dst->cnt;
	for (size_t i = 0; i < src->cnt && !ret; i++) {
		if (!fab_av_set_has(dst, src->addr[i]))
			ret = set_append(dst, src->addr[i]);
	}
	while (ret && dst->cnt > before) {
		dst->cnt--;
		dst->has[dst->addr[dst->cnt] / 64] &= ~FAB_BIT(dst->addr[dst->cnt] % 64);
	}
	pthread_mutex_unlock(&dst->av->change_lock);
	return ret;
}

static int filter_by(struct fid_av_set *dst_fid, const struct fid_av_set *src_fid, bool keep, const char *call)
{
	struct fab_av_set *dst = av_set_of(dst_fid), *src = av_set_of((struct fid_av_set *) src_fid);
	int ret = pair_lock(dst, src, call);

	if (ret)
		return ret;
	set_filter(dst, src, keep);
	pthread_mutex_unlock(&dst->av->change_lock);
	return 0;
}

static int set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return filter_by(dst, src, true, "fi_av_set_intersect");
}

static int set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return filter_by(dst, src, false, "fi_av_set_diff");
}

static int set_insert(struct fid_av_set *fid, fi_addr_t addr)
{
	struct fab_av_set *set = av_set_of(fid);
	const char *why = NULL;
	int ret = -FI_EINVAL;

	pthread_mutex_lock(&set->av->change_lock);
	if (!fab_av_addr(set->av, addr))
		why = "is not in the address vector";
	else if (fab_av_set_has(set, addr))
		why = "is a member already";
	else
		ret = set_append(set, addr);
	pthread_mutex_unlock(&set->av->change_lock);
	if (why)
		FI_WARN(av_set_prov(set->av), FI_LOG_AV, "fi_av_set_insert: fi_addr %" PRIu64 " %s\n", addr, why);
	return ret;
}

static int set_remove(struct fid_av_set *fid, fi_addr_t addr)
{
	struct fab_av_set *set = av_set_of(fid);
	bool has;

	pthread_mutex_lock(&set->av->change_lock);
	has = fab_av_set_has(set, addr);
	if (has) {
		size_t i = 0;

		while (set->addr[i] != addr)
			i++;
		set->cnt--;
		memmove(set->addr + i, set->addr + i + 1, (set->cnt - i) * sizeof(*set->addr));
		set->has[addr / 64] &= ~FAB_BIT(addr % 64);
	}
	pthread_mutex_unlock(&set->av->change_lock);
	return has ? 0 : -FI_EINVAL;
}

static int set_addr(struct fid_av_set *fid, fi_addr_t *coll_addr)
{
	*coll_addr = (uintptr_t) av_set_of(fid);
	return 0;
}

static void set_free(struct fab_av_set *set)
{
	free(set->addr);
	free(set->has);
	free(set);
}

static int av_set_close(struct fid *fid)
{
	struct fab_av_set *set = fab_container(fid, struct fab_av_set, set_fid.fid);

	if (atomic_load(&set->ref)) {
		FI_WARN(av_set_prov(set->av), FI_LOG_AV,
			"fi_close of a set of addresses that is exported; close that first\n");
		return -FI_EBUSY;
	}
	fab_av_put(set->av);
	set_free(set);
	return 0;
}

static int av_set_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_EXPORT_FID)
		return -FI_ENOSYS;
	return fab_domain_lend(fab_container(fid, struct fab_av_set, set_fid.fid)->av->domain, fid, arg);
}

static struct fi_ops set_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_set_close,
	.control = av_set_control,
};

static struct fi_ops_av_set set_ops = {
	.size = sizeof(struct fi_ops_av_set),
	.set_union = set_union,
	.intersect = set_intersect,
	.diff = set_diff,
	.insert = set_insert,
	.remove = set_remove,
	.addr = set_addr,
};

/* ---- open ---- */

static bool has_range(const struct fi_av_set_attr *attr)
{
	return attr->start_addr != FI_ADDR_NOTAVAIL || attr->end_addr != FI_ADDR_NOTAVAIL;
}

/* The reason why the attributes are invalid, or NULL if they are valid. */
static const char *av_set_bad_attr(const struct fab_av *av, const struct fi_av_set_attr *attr)
{
	uint64_t cnt = atomic_load(&av->cnt);

	if (!attr)
		return "attr is NULL";
	if (!has_range(attr) || (attr->flags & FI_UNIVERSE))
		return NULL;
	if (attr->start_addr > attr->end_addr || attr->end_addr >= cnt)
		return "start_addr and end_addr are not a range of the address vector (for no range, set both to "
		       "FI_ADDR_NOTAVAIL)";
	if (!attr->stride)
		return "stride is 0; with start_addr and end_addr it must be at least 1";
	if (attr->count && (attr->end_addr - attr->start_addr) / attr->stride + 1 > attr->count)
		return "the range from start_addr to end_addr has more members than count";
	return NULL;
}

static int av_set_check_attr(const struct fab_av *av, const struct fi_av_set_attr *attr)
{
	const char *why = av_set_bad_attr(av, attr);

	if (why) {
		FI_WARN(av_set_prov(av), FI_LOG_AV, "fi_av_set: %s\n", why);
		return -FI_EINVAL;
	}
	if (attr->flags & ~(FI_UNIVERSE | KINDS)) {
		FI_WARN(av_set_prov(av), FI_LOG_AV,
			"fi_av_set: flags are %#" PRIx64 "; only FI_UNIVERSE and FI_*_SET are supported\n",
			attr->flags);
		return -FI_EBADFLAGS;
	}
	if (attr->comm_key_size) {
		FI_WARN(av_set_prov(av), FI_LOG_AV,
			"fi_av_set: comm_key has %zu bytes, but communication keys are not supported; set "
			"comm_key_size to 0, and insert the members\n", attr->comm_key_size);
		return -FI_ENOSYS;
	}
	return 0;
}

/* Add the first members, as the attributes say. change_lock held. */
static int set_fill(struct fab_av_set *set, const struct fi_av_set_attr *attr)
{
	uint64_t cnt = atomic_load(&set->av->cnt), stride = attr->stride;
	fi_addr_t start = attr->start_addr, end = attr->end_addr;
	int ret = 0;

	if (attr->flags & FI_UNIVERSE) {
		start = 0;
		stride = 1;
		end = cnt - 1;
	} else if (!has_range(attr)) {
		return 0;
	}
	for (uint64_t left = cnt ? (end - start) / stride + 1 : 0; left && !ret; left--, start += stride) {
		if (fab_av_addr(set->av, start))
			ret = set_append(set, start);
	}
	return ret;
}

int fab_av_set_open(struct fid_av *av_fid, struct fi_av_set_attr *attr, struct fid_av_set **set_fid, void *context)
{
	struct fab_av *av = fab_container(av_fid, struct fab_av, av_fid);
	struct fab_av_set *set;
	int ret;

	ret = av_set_check_attr(av, attr);
	if (ret)
		return ret;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&set_fid_ops);
	set->set_fid = (struct fid_av_set) {
		.fid = { .fclass = FI_CLASS_AV_SET, .context = context, .ops = &set_fid_ops },
		.ops = &set_ops,
	};
	set->av = av;
	set->flags = attr->flags & KINDS;
	pthread_mutex_lock(&av->change_lock);
	ret = set_fill(set, attr);
	pthread_mutex_unlock(&av->change_lock);
	if (ret) {
		set_free(set);
		return ret;
	}
	fab_av_get(av);
	*set_fid = &set->set_fid;
	return 0;
}
