/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The application's calls. Each puts its arguments into a struct request, and coll_submit_call() passes that to the
 * group.
 */
#include "common/collective/coll_group.h"

#include <inttypes.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

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

/* True for operations whose result does not depend on the order of the operands. */
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

/* The arguments of a call. */
struct request {
	fi_addr_t group, root;
	uint64_t flags;
	void *context;
	struct fab_coll_call call;
	void *desc[2];
};

static int find_root(const struct fab_group *group, struct request *request)
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

static int check_group(const struct fab_group *group, enum fi_collective_op kind)
{
	const uint64_t all = (FI_GATHER_SET << 1) - FI_BARRIER_SET;

	if (!group)
		return -FI_EINVAL;
	if ((group->kinds & all) && !(group->kinds & FI_BARRIER_SET << kind))
		return -FI_EOPNOTSUPP;
	if (group->state == FAB_GROUP_JOINING)
		return -FI_EOPBADSTATE;
	return group->state == FAB_GROUP_FAILED ? -group->err : 0;
}

static int submit_locked(struct fab_ep *ep, struct request *request)
{
	struct fab_group *group = fab_group_of(ep->coll, request->group);
	struct fab_coll_op *op;
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
	op->want_cq = ep->bound.tx_cq && (!ep->report.tx_selective || (request->flags & FI_COMPLETION));
	return fab_group_queue(group, op);
}

/* True if a buffer is memory of a device. */
static bool is_on_device(const struct fab_ep *ep, const struct request *request)
{
	if (!(ep->caps & FI_HMEM))
		return false;
	return fab_domain_hmem(ep->domain, request->desc[0]) || fab_domain_hmem(ep->domain, request->desc[1]);
}

static ssize_t coll_submit_call(struct fid_ep *fid, struct request request)
{
	struct fab_ep *ep = fab_ep_of(&fid->fid);
	int ret;

	if (request.flags & ~FLAGS) {
		FI_WARN(fab_coll_prov(ep), FI_LOG_EP_DATA, "a collective got flags %#" PRIx64 ", of which it does not "
			"support %#" PRIx64 "\n", request.flags, (uint64_t) (request.flags & ~FLAGS));
		return -FI_EBADFLAGS;
	}
	if (!can_do(request.call.kind, request.call.datatype, request.call.op))
		return -FI_EOPNOTSUPP;
	if (is_on_device(ep, &request)) {
		FI_WARN(fab_coll_prov(ep), FI_LOG_EP_DATA, "a collective on memory of a device: its buffers have to be "
			"the host's\n");
		return -FI_EOPNOTSUPP;
	}
	fab_engine_enter(ep->engine);
	ret = submit_locked(ep, &request);
	fab_engine_unlock(ep->engine);
	return ret;
}

static ssize_t coll_barrier2(struct fid_ep *ep, fi_addr_t addr, uint64_t flags, void *context)
{
	return coll_submit_call(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context,
				{ .kind = FI_BARRIER }, { NULL } });
}

static ssize_t coll_barrier(struct fid_ep *ep, fi_addr_t addr, void *context)
{
	uint64_t flags = fab_container(ep, struct fab_ep_fid, ep_fid)->tx_op_flags;

	return coll_barrier2(ep, addr, flags & FLAGS, context);
}

static ssize_t coll_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t addr, fi_addr_t root,
			      enum fi_datatype datatype, uint64_t flags, void *context)
{
	return coll_submit_call(ep, (struct request) { addr, root, flags, context, { .kind = FI_BROADCAST,
				.datatype = datatype,
				.count = count, .result = buf }, { desc } });
}

static ssize_t coll_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			     void *result_desc, fi_addr_t addr, enum fi_datatype datatype, uint64_t flags,
			     void *context)
{
	return coll_submit_call(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context, { .kind = FI_ALLTOALL,
				.datatype = datatype, .count = count, .buf = buf, .result = result },
				{ desc, result_desc } });
}

static ssize_t coll_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			      void *result_desc, fi_addr_t addr, enum fi_datatype datatype, enum fi_op op,
			      uint64_t flags, void *context)
{
	return coll_submit_call(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context, { .kind = FI_ALLREDUCE,
				.datatype = datatype, .op = op, .count = count, .buf = buf, .result = result },
				{ desc, result_desc } });
}

static ssize_t coll_allgather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			      void *result_desc, fi_addr_t addr, enum fi_datatype datatype, uint64_t flags,
			      void *context)
{
	return coll_submit_call(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context, { .kind = FI_ALLGATHER,
				.datatype = datatype, .count = count, .buf = buf, .result = result },
				{ desc, result_desc } });
}

static ssize_t coll_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				   void *result_desc, fi_addr_t addr, enum fi_datatype datatype, enum fi_op op,
				   uint64_t flags, void *context)
{
	return coll_submit_call(ep, (struct request) { addr, FI_ADDR_UNSPEC, flags, context,
				{ .kind = FI_REDUCE_SCATTER,
				.datatype = datatype, .op = op, .count = count, .buf = buf, .result = result },
				{ desc, result_desc } });
}

static ssize_t coll_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			   void *result_desc, fi_addr_t addr, fi_addr_t root, enum fi_datatype datatype, enum fi_op op,
			   uint64_t flags, void *context)
{
	return coll_submit_call(ep, (struct request) { addr, root, flags, context, { .kind = FI_REDUCE,
				.datatype = datatype,
				.op = op, .count = count, .buf = buf, .result = result },
				{ desc, result_desc } });
}

static ssize_t coll_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			    void *result_desc, fi_addr_t addr, fi_addr_t root, enum fi_datatype datatype,
			    uint64_t flags, void *context)
{
	return coll_submit_call(ep, (struct request) { addr, root, flags, context, { .kind = FI_SCATTER,
				.datatype = datatype,
				.count = count, .buf = buf, .result = result },
				{ desc, result_desc } });
}

static ssize_t coll_gather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			   void *result_desc, fi_addr_t addr, fi_addr_t root, enum fi_datatype datatype, uint64_t flags,
			   void *context)
{
	return coll_submit_call(ep, (struct request) { addr, root, flags, context, { .kind = FI_GATHER,
				.datatype = datatype,
				.count = count, .buf = buf, .result = result },
				{ desc, result_desc } });
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
	attr->datatype_attr.count = coll == FI_BARRIER ? 0 :
				    SIZE_MAX / 2 / FAB_GROUP_MEMBERS_MAX / attr->datatype_attr.size;
	attr->max_members = FAB_GROUP_MEMBERS_MAX;
	attr->mode = 0;
	return 0;
}
