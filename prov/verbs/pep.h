/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints and the requests that they get (pep.c).
 */
#ifndef VRB_PEP_H
#define VRB_PEP_H

#include "common/endpoint/endpoint.h"
#include "verbs/cm.h"
#include "verbs/ep.h"

/* A connection request that has been neither accepted nor rejected. fi_info.handle of its FI_CONNREQ points to it. */
struct vrb_connreq {
	struct fab_connreq base;
	struct rdma_cm_id *id;		/* owned */
	uint8_t data[VRB_CM_DATA_MAX + 1];	/* the private data of the request, as it came */
};

/* Take a request out of the list of its handle. The caller frees it, and owns id. NULL: the handle is not a request. */
struct vrb_connreq *vrb_connreq_take(struct fab_fabric *fabric, fid_t handle);

/* Take the bound id of the passive endpoint of this handle, for an endpoint that then has its address. The caller owns
 * the id; its channel still belongs to the passive endpoint. 0; -FI_ENOENT: the handle is not a passive endpoint;
 * -FI_EOPBADSTATE: it listens; or the error of binding it, logged. No engine lock held. */
int vrb_pep_take_id(struct fab_fabric *fabric, fid_t handle, struct rdma_cm_id **id);

#endif
