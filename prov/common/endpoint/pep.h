/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints, fi_cm(3): the calls, the states, and connection requests until the application takes them.
 * Providers listen and answer.
 *
 *   bound on demand -> listening;  request -> struct fab_connreq, event -> taken by fi_endpoint or fi_reject, or
 *   dropped by fi_close
 *
 * Control: no engine lock held, except where a comment says so. fabric->lock guards the lists of passive endpoints and
 * of requests. It may be taken with an engine's lock held.
 */
#ifndef FAB_PEP_H
#define FAB_PEP_H

#include <rdma/fi_cm.h>
#include "base/addr.h"
#include "common/queue/queue.h"
#include "common/domain/domain.h"

struct fab_pep;

#define FAB_CONNREQ_OLD_MAX	1024	/* handles in fabric->old_connreqs */

/* A connection request that was neither accepted nor refused. The provider owns it, and embeds this struct. */
struct fab_connreq {
	struct fab_connreq_handle *handle;	/* owned by the fabric */
	struct fab_pep *pep;		/* borrowed: a closing pep drops its requests */
	union fab_any_addr local, remote;
};

/* The provider's functions. Their argument is the struct passed to fab_pep_init(), so a provider may embed it. */
struct fab_pep_ops {
	size_t cm_data_max;		/* most bytes of private data (FI_OPT_CM_DATA_SIZE), up to FAB_CM_DATA_MAX */
	int backlog;			/* the default of FI_BACKLOG; 0: 128 */
	/* Bind to pep->addr, if not bound yet, and set pep->addr to the address bound. 0 or -FI_E*, logged. */
	int (*bind)(struct fab_pep *pep);
	/* Release the bound address. pep does not listen. */
	void (*unbind)(struct fab_pep *pep);
	/* Listen, on the engine of pep->eq. pep is bound. 0 or -FI_E*, logged. */
	int (*listen)(struct fab_pep *pep);
	/* Stop listening: afterwards no request comes and no function of the provider runs. Called only if pep is bound
	 * to an EQ. */
	void (*stop)(struct fab_pep *pep);
	/* Free the provider's memory behind a closing pep, and release its address; do not free pep. */
	void (*fini)(struct fab_pep *pep);
	/* Refuse a request, with data that fab_cm_check_data() has accepted, and free it. */
	void (*reject)(struct fab_connreq *req, const void *data, size_t len);
	/* Free a request without an answer. May block. The engine's lock may be held, fabric->lock is not. */
	void (*drop)(struct fab_connreq *req);
	/* Add further values to the info of a request. 0 or -FI_ENOMEM. NULL: nothing to add. */
	int (*describe)(const struct fab_connreq *req, struct fi_info *info);
	/* Replace the bound address by the one that fi_getname() returns. False, or NULL: they are the same. */
	bool (*advertise)(union fab_sockaddr *addr);
};

#define FAB_CM_DATA_MAX	256		/* most bytes of private data, of any provider */

struct fab_pep {
	struct fid_pep pep_fid;
	struct fab_fabric *fabric;	/* borrowed: init took a reference */
	const struct fab_pep_ops *ops;
	struct fab_eq *eq;		/* borrowed: bind took a reference; NULL before */
	struct fi_info *info;		/* owned; the info of a request is a copy of it */
	struct fab_list link;		/* in fabric->peps */
	union fab_any_addr addr;	/* requested; once bound, the address bound */
	struct fi_stats_ep *stats;	/* owned: its record in the page of the process; fabric->lock guards what is
					 * pending there */
	uint32_t forks;			/* fab_fork_cnt of the process that has opened it */
	bool listening;
	int backlog;			/* most requests that may wait */
	uint32_t req_cnt;		/* requests not taken yet; this and the next: fabric->lock */
	uint64_t req_number;		/* requests so far */
	struct fab_defer defer;
};

static inline struct fab_pep *fab_pep_of(struct fid *fid)
{
	return fab_container(fid, struct fab_pep, pep_fid.fid);
}

/* Initialise the embedded part of zeroed memory from malloc(), and add it to the fabric. The caller may then return
 * pep_fid to the application. 0. -FI_EINVAL (info is NULL, or not for FI_EP_MSG; logged), -FI_ENOMEM: only the memory
 * is left to free. fi_close() frees the memory with free(), when no pass can reach it any more. */
int fab_pep_init(struct fab_pep *pep, struct fab_fabric *fabric, const struct fi_info *info,
		 const struct fab_pep_ops *ops, void *context);

/*
 * Report a connection request with len bytes of data to the application. req is zeroed except the addresses and the
 * provider's part, and belongs to pep from here on. If there is no memory for reporting it, it is dropped (logged). The
 * engine lock may be held.
 */
void fab_pep_request(struct fab_pep *pep, struct fab_connreq *req, const void *data, size_t len);
/* True if the number of waiting requests plus `more` is below the backlog. The engine lock may be held. */
bool fab_pep_room(const struct fab_pep *pep, uint32_t more);

/* Take the request with this handle out of the fabric. The caller owns it. NULL: no such request, or it was taken
 * before. */
struct fab_connreq *fab_connreq_take(struct fab_fabric *fabric, fid_t handle);
/* Bind the passive endpoint with this handle, if it is not bound yet, and call take() with fabric->lock held. take()
 * moves the bound object from the provider's struct to *to, for an endpoint that inherits the address. 0; -FI_ENOENT:
 * the handle is not a passive endpoint of the fabric; -FI_EOPBADSTATE: it listens; or the error of ops->bind. No lock
 * held. */
int fab_pep_take(struct fab_fabric *fabric, fid_t handle, void (*take)(struct fab_pep *pep, void *to), void *to);

/* Check private data, of at most max bytes. 0 or -FI_EINVAL (logged). */
int fab_cm_check_data(const struct fi_provider *prov, size_t max, const void *data, size_t len);

/* Fill the empty entries of the operation tables. Called once by providers with passive endpoints, when they are
 * loaded. */
void fab_pep_fill_ops(void);

#endif
