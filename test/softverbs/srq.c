/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Queues of posted receives: those of a queue pair, and shared ones. */
#include "sv.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct fab_list srqs = FAB_LIST_INIT(srqs);

int sv_rq_init(struct sv_rq *rq, uint32_t cap, uint32_t max_sge)
{
	rq->cap = cap;
	rq->max_sge = max_sge;
	rq->ring = calloc(cap ? cap : 1, sizeof(*rq->ring));
	return rq->ring ? 0 : ENOMEM;
}

int sv_rq_post(struct sv_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sv_rqe *rqe;

	for (; wr; wr = wr->next) {
		*bad = wr;
		if (rq->cnt == rq->cap)
			return ENOMEM;
		if (wr->num_sge < 0 || (uint32_t) wr->num_sge > rq->max_sge)
			return EINVAL;
		rqe = &rq->ring[(rq->head + rq->cnt) % rq->cap];
		rqe->wr_id = wr->wr_id;
		rqe->sge_cnt = wr->num_sge;
		if (wr->num_sge)
			memcpy(rqe->sge, wr->sg_list, wr->num_sge * sizeof(rqe->sge[0]));
		rq->cnt++;
	}
	return 0;
}

bool sv_rq_take(struct sv_rq *rq, struct sv_rqe *rqe)
{
	if (!rq->cnt)
		return false;
	*rqe = rq->ring[rq->head];
	rq->head = (rq->head + 1) % rq->cap;
	rq->cnt--;
	return true;
}

struct sv_srq *sv_srq_find(uint32_t num)
{
	struct fab_list *link;

	fab_list_for_each(&srqs, link) {
		struct sv_srq *srq = fab_container(link, struct sv_srq, link);

		if (srq->num == num)
			return srq;
	}
	return NULL;
}

void sv_srq_break_all(struct sv_context *ctx)
{
	struct fab_list *link;

	fab_list_for_each(&srqs, link) {
		struct sv_srq *srq = fab_container(link, struct sv_srq, link);

		if (sv_context(srq->srq.context) == ctx)
			sv_async(srq->srq.context, IBV_EVENT_SRQ_ERR, &srq->srq);
	}
}

static struct ibv_srq *srq_open(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr, struct ibv_xrcd *xrcd,
				struct ibv_cq *cq)
{
	struct sv_srq *srq;
	int ret;

	if (!sv_limit("max_srq", SV_MANY)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!attr->max_wr || attr->max_wr > sv_limit("max_srq_wr", 32768) ||
	    attr->max_sge > sv_limit("max_srq_sge", SV_SGE_MAX)) {
		errno = EINVAL;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	srq->srq.context = pd->context;
	srq->srq.srq_context = srq_context;
	srq->srq.pd = pd;
	srq->xrcd = xrcd;
	srq->cq = cq;
	fab_list_init(&srq->inbound);
	fab_list_init(&srq->replies);
	sv_timer_init(&srq->resume, sv_resp_resume_srq);
	sv_lock();
	ret = sv_rq_init(&srq->rq, attr->max_wr, attr->max_sge);
	if (!ret && xrcd)
		ret = sv_xrc_srq_init(srq);
	if (ret) {
		sv_unlock();
		free(srq->rq.ring);
		free(srq);
		errno = ret;
		return NULL;
	}
	fab_list_add_tail(&srqs, &srq->link);
	sv_context(pd->context)->ref_cnt++;
	fab_container(pd, struct sv_pd, pd)->ref_cnt++;
	if (cq)
		fab_container(cq, struct sv_cq, cq)->ref_cnt++;
	sv_unlock();
	return &srq->srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	return sv_fault("ibv_create_srq") ? NULL : srq_open(pd, attr->srq_context, &attr->attr, NULL, NULL);
}

struct ibv_srq *sv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	uint32_t need = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	(void) context;
	if (sv_fault("ibv_create_srq_ex"))
		return NULL;
	if (attr->comp_mask != need || attr->srq_type != IBV_SRQT_XRC || !attr->xrcd || !attr->cq) {
		errno = EINVAL;
		return NULL;
	}
	return srq_open(attr->pd, attr->srq_context, &attr->attr, attr->xrcd, attr->cq);
}

int sv_get_srq_num(struct ibv_srq *ibv_srq, uint32_t *num)
{
	struct sv_srq *srq = fab_container(ibv_srq, struct sv_srq, srq);

	if (!srq->num)
		return EINVAL;
	*num = srq->num;
	return 0;
}

int ibv_query_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr)
{
	struct sv_srq *srq = fab_container(ibv_srq, struct sv_srq, srq);

	sv_lock();
	*attr = (struct ibv_srq_attr) { .max_wr = srq->rq.cap, .max_sge = srq->rq.max_sge, .srq_limit = srq->limit };
	sv_unlock();
	return 0;
}

int ibv_modify_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr, int mask)
{
	if (mask & ~IBV_SRQ_LIMIT)
		return EINVAL;
	sv_lock();
	fab_container(ibv_srq, struct sv_srq, srq)->limit = attr->srq_limit;
	sv_unlock();
	return 0;
}

int sv_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	int ret;

	*bad = wr;
	if (sv_fault("ibv_post_srq_recv"))
		return errno;
	sv_lock();
	ret = sv_rq_post(&fab_container(ibv_srq, struct sv_srq, srq)->rq, wr, bad);
	sv_unlock();
	return ret;
}

/* So many messages come while their queue is destroyed: nobody will know whose they are. */
static void comes_late(struct sv_srq *srq)
{
	struct sv_cqe cqe = { .xrc_srq = srq };
	struct sv_rqe rqe;

	for (uint64_t i = 0; i < sv_limit("stale_srq", 0) && sv_rq_take(&srq->rq, &rqe); i++) {
		cqe.wc.wr_id = rqe.wr_id;
		sv_cq_push_entry(srq->cq, &cqe, false);
	}
}

int ibv_destroy_srq(struct ibv_srq *ibv_srq)
{
	struct sv_srq *srq = fab_container(ibv_srq, struct sv_srq, srq);

	sv_lock();
	if (srq->ref_cnt) {
		sv_unlock();
		return EBUSY;
	}
	fab_list_remove(&srq->link);
	sv_async_forget(ibv_srq->context, ibv_srq);
	if (srq->num) {
		sv_source_del(&srq->src);
		close(srq->src.fd);
		sv_xrcd_drop(srq->xrcd);
	}
	sv_resp_fini_srq(srq);
	if (srq->cq) {
		comes_late(srq);
		sv_cq_srq_gone(srq->cq, srq);
		fab_container(srq->cq, struct sv_cq, cq)->ref_cnt--;
	}
	fab_container(ibv_srq->pd, struct sv_pd, pd)->ref_cnt--;
	sv_context(ibv_srq->context)->ref_cnt--;
	sv_unlock();
	free(srq->rq.ring);
	free(srq);
	return 0;
}
