/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints, fi_cm(3): calls and states, requests from when they come until somebody takes them. What listens,
 * and what answers, is the provider's.
 *
 *   bound on demand -> listening;  request -> struct fab_connreq, event -> taken by fi_endpoint or fi_reject, or
 *   dropped by fi_close
 *
 * Control: no engine lock held, except where it says so. fabric->lock guards the lists of passive endpoints and of
 * requests, and may be taken with an engine's lock held.
 */
#ifndef FAB_PEP_H
#define FAB_PEP_H

#include <rdma/fi_cm.h>
#include "base/addr.h"
#include "common/queue/queue.h"
#include "common/domain/domain.h"

struct fab_pep;

#define FAB_CONNREQ_OLD_MAX	1024	/* handles in fabric->old_connreqs */

/* A request that nobody has accepted or refused: its provider's, who embeds this. */
struct fab_connreq {
	struct fab_connreq_handle *handle;	/* owned by the fabric */
	struct fab_pep *pep;		/* borrowed: a closing pep drops its requests */
	union fab_any_addr local, remote;
};

/* What a provider does. Each gets what fab_pep_init() was given, so that it may embed it. */
struct fab_pep_ops {
	size_t cm_data_max;		/* bytes of private data (FI_OPT_CM_DATA_SIZE), at most FAB_CM_DATA_MAX */
	/* Bind to pep->addr, unless that is done, and let pep->addr be where. 0 or -FI_E*, logged. */
	int (*bind)(struct fab_pep *pep);
	/* Give a bound address back; pep does not listen. */
	void (*unbind)(struct fab_pep *pep);
	/* Listen, on the engine of pep->eq; bound. 0 or -FI_E*, logged. */
	int (*listen)(struct fab_pep *pep);
	/* No request comes any more, and nothing of the provider's runs. Of one that is bound to an EQ. */
	void (*stop)(struct fab_pep *pep);
	/* Free what the provider's part of a closing pep owns, an address bound included; not pep itself. */
	void (*fini)(struct fab_pep *pep);
	/* Refuse a request that has been taken, with data that fab_cm_check_data() has passed, and free it. */
	void (*reject)(struct fab_connreq *req, const void *data, size_t len);
	/* Refuse without a word, and free. May block; the engine's lock may be held, fabric->lock is not. */
	void (*drop)(struct fab_connreq *req);
	/* What the info of a request says beyond its addresses: 0 or -FI_ENOMEM. NULL: nothing. */
	int (*describe)(const struct fab_connreq *req, struct fi_info *info);
	/* Put what fi_getname says in place of the address bound. False, or NULL: that it is. */
	bool (*advertise)(union fab_sockaddr *addr);
};

#define FAB_CM_DATA_MAX	256		/* bytes of private data, of any provider */

struct fab_pep {
	struct fid_pep pep_fid;
	struct fab_fabric *fabric;	/* borrowed: init took a reference */
	const struct fab_pep_ops *ops;
	struct fab_eq *eq;		/* borrowed: bind took a reference; NULL before */
	struct fi_info *info;		/* owned; what a request's info is a copy of */
	struct fab_list link;		/* in fabric->peps */
	union fab_any_addr addr;	/* asked for, then bound to */
	bool listening;
	int backlog;			/* requests that nobody has answered yet, at most */
	uint32_t req_cnt;		/* requests not taken yet; fabric->lock */
	struct fab_defer defer;
};

static inline struct fab_pep *fab_pep_of(struct fid *fid)
{
	return fab_container(fid, struct fab_pep, pep_fid.fid);
}

/* Fill the embedded part of zeroed memory of malloc(), and let the fabric know it: *pep_fid may be given to the
 * application. 0; -FI_EINVAL (info is none, or not of FI_EP_MSG; logged), -FI_ENOMEM: nothing is left to free but the
 * memory. fi_close frees that with free(), once no pass can reach it. */
int fab_pep_init(struct fab_pep *pep, struct fab_fabric *fabric, const struct fi_info *info,
		 const struct fab_pep_ops *ops, void *context);

/*
 * A request has come, with len bytes of data: tell the application. req is zeroed but for the addresses and the
 * provider's part, and is the pep's from here on. With no memory for that it is dropped (logged). Engine lock may be
 * held.
 */
void fab_pep_request(struct fab_pep *pep, struct fab_connreq *req, const void *data, size_t len);
/* Are there fewer requests than the backlog, with `more` counted beside? Engine lock may be held. */
bool fab_pep_room(const struct fab_pep *pep, uint32_t more);

/* Take the request that handle means out of the fabric: the caller owns it. NULL if there is none (any more). */
struct fab_connreq *fab_connreq_take(struct fab_fabric *fabric, fid_t handle);
/* The passive endpoint that handle means, or NULL. fabric->lock held. */
struct fab_pep *fab_pep_find_locked(struct fab_fabric *fabric, fid_t handle);

/* May this go with a connection as private data, of max bytes? 0 or -FI_EINVAL (logged). */
int fab_cm_check_data(const struct fi_provider *prov, size_t max, const void *data, size_t len);

/* Fill the empty slots of the tables; called by providers that have passive endpoints, at initialisation. */
void fab_pep_fill_ops(void);

#endif
