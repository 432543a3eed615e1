/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a transition of a queue pair needs and takes: InfiniBand's tables, which kernels check for all but iWARP, and
 * the values that devices refuse.
 */
#include "sv.h"
#include <errno.h>

#define PATH	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RIGHTS	(IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS)
#define RESPOND	(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define REQUEST	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)
#define START	(IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RUN	(IBV_QP_CUR_STATE | RIGHTS | IBV_QP_PATH_MIG_STATE)

struct attrs {
	int need, may;
};

enum { UD, RC, INI, TGT, TYPES };

static const struct {
	enum ibv_qp_state from, to;
	struct attrs of[TYPES];
} steps[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, {
		[UD] = { START | IBV_QP_QKEY, 0 }, [RC] = { START | IBV_QP_ACCESS_FLAGS, 0 },
		[INI] = { START | IBV_QP_ACCESS_FLAGS, 0 }, [TGT] = { START | IBV_QP_ACCESS_FLAGS, 0 } } },
	{ IBV_QPS_INIT, IBV_QPS_INIT, {
		[UD] = { 0, START | IBV_QP_QKEY }, [RC] = { 0, START | IBV_QP_ACCESS_FLAGS },
		[INI] = { 0, START | IBV_QP_ACCESS_FLAGS }, [TGT] = { 0, START | IBV_QP_ACCESS_FLAGS } } },
	{ IBV_QPS_INIT, IBV_QPS_RTR, {
		[UD] = { 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
		[RC] = { PATH | RESPOND, RIGHTS | IBV_QP_PKEY_INDEX }, [INI] = { PATH, RIGHTS | IBV_QP_PKEY_INDEX },
		[TGT] = { PATH | RESPOND, RIGHTS | IBV_QP_PKEY_INDEX } } },
	{ IBV_QPS_RTR, IBV_QPS_RTS, {
		[UD] = { IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
		[RC] = { REQUEST, RUN | IBV_QP_MIN_RNR_TIMER }, [INI] = { REQUEST, RUN },
		[TGT] = { IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, RUN | IBV_QP_MIN_RNR_TIMER } } },
	{ IBV_QPS_RTS, IBV_QPS_RTS, {
		[UD] = { 0, IBV_QP_CUR_STATE | IBV_QP_QKEY }, [RC] = { 0, RUN | IBV_QP_MIN_RNR_TIMER },
		[INI] = { 0, RUN }, [TGT] = { 0, RUN | IBV_QP_MIN_RNR_TIMER } } },
};

static int row_of(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? UD : type == IBV_QPT_RC ? RC : type == IBV_QPT_XRC_SEND ? INI : TGT;
}

static bool mask_ok(const struct sv_qp *qp, enum ibv_qp_state to, int mask)
{
	mask &= ~IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return !(mask & ~IBV_QP_CUR_STATE);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct attrs *attrs = &steps[i].of[row_of(qp->qp.qp_type)];

		if (steps[i].from == qp->qp.state && steps[i].to == to)
			return (mask & attrs->need) == attrs->need && !(mask & ~(attrs->need | attrs->may));
	}
	return false;
}

static bool port_ok(const struct sv_qp *qp, uint8_t port)
{
	return port && port <= sv_context(qp->qp.context)->device->port_cnt;
}

static bool path_ok(const struct sv_qp *qp, const struct ibv_ah_attr *ah)
{
	return port_ok(qp, ah->port_num) && ah->is_global &&
	       sv_gid_at(sv_context(qp->qp.context)->device, ah->port_num, ah->grh.sgid_index);
}

static bool values_ok(const struct sv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	uint64_t depth = sv_limit("max_qp_rd_atom", 128);

	return (!(mask & IBV_QP_PORT) || port_ok(qp, attr->port_num)) &&
	       (!(mask & IBV_QP_PKEY_INDEX) || !attr->pkey_index) &&
	       (!(mask & IBV_QP_AV) || path_ok(qp, &attr->ah_attr)) &&
	       (!(mask & IBV_QP_PATH_MTU) || (attr->path_mtu >= IBV_MTU_256 && attr->path_mtu <= IBV_MTU_4096)) &&
	       (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) || attr->max_rd_atomic <= sv_limit("max_qp_init_rd_atom", depth)) &&
	       (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) || attr->max_dest_rd_atomic <= depth) &&
	       (!(mask & IBV_QP_MIN_RNR_TIMER) || attr->min_rnr_timer < 32) &&
	       (!(mask & IBV_QP_TIMEOUT) || attr->timeout < 32) &&
	       (!(mask & IBV_QP_RETRY_CNT) || attr->retry_cnt < 8) &&
	       (!(mask & IBV_QP_RNR_RETRY) || attr->rnr_retry < 8);
}

int sv_modify_check(const struct sv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : qp->qp.state;

	if (sv_limit("iwarp", 0))
		return 0;
	return mask_ok(qp, to, mask) && values_ok(qp, attr, mask) ? 0 : EINVAL;
}
