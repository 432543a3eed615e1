/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Unreliable datagrams and address handles. A datagram that finds no receive or the wrong key is dropped; one that
 * finds no room on its way waits for it, up to a time, as on a lossless network. */
#include "sv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MTU_BYTES	4096

struct sv_ah {
	struct ibv_ah ah;
	struct ibv_ah_attr attr;
};

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct sv_ah *ah;

	if (sv_fault("ibv_create_ah"))
		return NULL;
	if (!attr->is_global) {
		errno = EINVAL;		/* RoCE knows GIDs only */
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	ah->attr = *attr;
	sv_lock();
	fab_container(pd, struct sv_pd, pd)->ref_cnt++;
	sv_unlock();
	return &ah->ah;
}

int ibv_destroy_ah(struct ibv_ah *ibv_ah)
{
	sv_lock();
	fab_container(ibv_ah->pd, struct sv_pd, pd)->ref_cnt--;
	sv_unlock();
	free(fab_container(ibv_ah, struct sv_ah, ah));
	return 0;
}

int sv_ud_send(struct sv_qp *qp, struct sv_swqe *wqe)
{
	struct sv_ah *ah = fab_container(wqe->wr.wr.ud.ah, struct sv_ah, ah);
	struct sv_device *device = sv_context(qp->qp.context)->device;
	struct sv_pkt pkt = {
		.magic = SV_MAGIC, .op = SV_DATAGRAM, .src_qpn = qp->qp.qp_num, .dst_qpn = wqe->wr.wr.ud.remote_qpn,
		.qkey = wqe->wr.wr.ud.remote_qkey, .total = wqe->total, .len = wqe->total,
		.flags = wqe->wr.opcode == IBV_WR_SEND_WITH_IMM ? SV_F_IMM : 0, .imm = wqe->wr.imm_data,
	};
	struct iovec iov[SV_SGE_MAX];
	const union ibv_gid *sgid = sv_gid_at(device, qp->attr.port_num, ah->attr.grh.sgid_index);
	int i;

	if (wqe->total > MTU_BYTES)
		return IBV_WC_LOC_LEN_ERR;
	memcpy(pkt.src_gid, sgid ? sgid : &device->gids[0], 16);
	memcpy(pkt.dst_gid, ah->attr.grh.dgid.raw, 16);
	if (wqe->wr.send_flags & IBV_SEND_SOLICITED)
		pkt.flags |= SV_F_SOLICITED;
	if (wqe->wr.send_flags & IBV_SEND_INLINE) {
		iov[0] = (struct iovec) { wqe->inline_data, wqe->total };
		return sv_qp_send(qp, &pkt, iov, 1) == EAGAIN ? SV_UD_FULL : IBV_WC_SUCCESS;
	}
	for (i = 0; i < wqe->wr.num_sge; i++) {
		const void *ptr = sv_mem_read(qp->qp.pd, wqe->sge[i].lkey, wqe->sge[i].addr, wqe->sge[i].length, 0);

		if (!ptr && wqe->sge[i].length)
			return IBV_WC_LOC_PROT_ERR;
		iov[i] = (struct iovec) { (void *) ptr, wqe->sge[i].length };
	}
	return sv_qp_send(qp, &pkt, iov, wqe->wr.num_sge) == EAGAIN ? SV_UD_FULL : IBV_WC_SUCCESS;
}

static bool is_mine(struct sv_qp *qp, const uint8_t *gid)
{
	return sv_gid_port(sv_context(qp->qp.context)->device, gid) == qp->attr.port_num;
}

void sv_ud_arrived(struct sv_qp *qp, const struct sv_pkt *pkt, const uint8_t *payload)
{
	struct sv_rq *rq = qp->qp.srq ? &fab_container(qp->qp.srq, struct sv_srq, srq)->rq : &qp->rq;
	struct ibv_grh grh = { .version_tclass_flow = htobe32(6u << 28), .next_hdr = 0x1b, .hop_limit = 1 };
	struct ibv_wc wc = {
		.opcode = IBV_WC_RECV, .byte_len = pkt->len + SV_GRH_LEN, .qp_num = qp->qp.qp_num,
		.src_qp = pkt->src_qpn, .imm_data = pkt->imm,
		.wc_flags = IBV_WC_GRH | (pkt->flags & SV_F_IMM ? IBV_WC_WITH_IMM : 0),
	};
	struct sv_rqe rqe;

	if (pkt->qkey != qp->attr.qkey || !is_mine(qp, pkt->dst_gid) || !sv_rq_take(rq, &rqe))
		return;
	grh.paylen = htobe16(pkt->len);
	memcpy(grh.sgid.raw, pkt->src_gid, 16);
	memcpy(grh.dgid.raw, pkt->dst_gid, 16);
	wc.wr_id = rqe.wr_id;
	if (pkt->len + SV_GRH_LEN > sv_sge_len(rqe.sge, rqe.sge_cnt))
		wc.status = IBV_WC_LOC_LEN_ERR;
	else if (sv_scatter(qp->qp.pd, &rqe, 0, &grh, SV_GRH_LEN) ||
		 sv_scatter(qp->qp.pd, &rqe, SV_GRH_LEN, payload, pkt->len))
		wc.status = IBV_WC_LOC_PROT_ERR;
	sv_cq_push(qp->qp.recv_cq, &wc, pkt->flags & SV_F_SOLICITED);
}
