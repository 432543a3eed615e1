/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_trywait(3): prepare several objects for sleeping. No state.
 */
#include "common/queue/sets.h"

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "common/domain/domain.h"
#include "common/queue/cntr.h"
#include "common/queue/cq.h"
#include "common/queue/eq.h"
#include "common/wait/wait.h"

/* The wait object of a queue or counter; NULL for any other object. */
static struct fab_wait *trywait_object(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return &fab_container(fid, struct fab_cq, cq_fid.fid)->wait;
	case FI_CLASS_CNTR:
		return &fab_container(fid, struct fab_cntr, cntr_fid.fid)->wait;
	case FI_CLASS_EQ:
		return &fab_container(fid, struct fab_eq, eq_fid.fid)->wait;
	default:
		return NULL;
	}
}

static int trywait_one(struct fab_fabric *fabric, struct fid *fid)
{
	struct fab_wait *wait;

	if (fid->fclass == FI_CLASS_WAIT)
		return fab_wait_set_try(fid);
	wait = trywait_object(fid);
	if (wait && wait->obj != FI_WAIT_NONE)
		return fab_wait_try(wait);
	FI_WARN(fabric->prov, FI_LOG_EQ, "fi_trywait: an object of class %zu %s; CQs, counters, EQs opened with a "
		"wait object, and wait sets can be waited on\n", fid->fclass,
		wait ? "with FI_WAIT_NONE" : "cannot wait");
	return -FI_EINVAL;
}

int fab_trywait(struct fid_fabric *fabric_fid, struct fid **fids, int cnt)
{
	struct fab_fabric *fabric = fab_container(fabric_fid, struct fab_fabric, fabric_fid);
	int ret;

	for (int i = 0; i < cnt; i++) {
		ret = trywait_one(fabric, fids[i]);
		if (ret)
			return ret;
	}
	return 0;
}
