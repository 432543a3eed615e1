/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ofi_rxm: FI_EP_RDM endpoints over the FI_EP_MSG endpoints of another provider, "tcp;ofi_rxm" and "verbs;ofi_rxm". It
 * reaches that provider, the one *below*, by the public interface only.
 *
 * An endpoint has one passive endpoint below, and a connection (struct rxm_conn) for each peer that it talks to. It
 * shares one event queue and one completion queue below with the other endpoints of its engine (struct rxm_poller). The
 * engine reads both, and its lock guards all state, except fields that do not change after open. The provider below
 * never calls us, so its locks may be taken while ours are held.
 *
 * Matching, completions, address vectors, counters and atomic arithmetic are those of prov/common. objects.h has the
 * objects, wire.h the packets; the headers below have the functions, by their ideas.
 */
#ifndef RXM_RXM_H
#define RXM_RXM_H

#include <rdma/fi_domain.h>
#include "rxm/arrive.h"
#include "rxm/bufs.h"
#include "rxm/conn.h"
#include "rxm/objects.h"
#include "rxm/pins.h"
#include "rxm/poller.h"
#include "rxm/tx.h"

/*
 * Conventions of this header, and of those that it includes. "Lock held" means the lock of the endpoint's engine.
 * Lengths are in bytes. err is a positive FI_E*, and why or text a sentence; both go into the error completions of the
 * operations that end. Texts are copied. "May end the connection": the connection may be DOWN when the call returns.
 * Its memory stays until the completion queue has been read (rxm_conn_reap()), so the caller may read conn->state, but
 * must not use the connection otherwise. conn->peer is then NULL, and the peer may have been freed.
 */

/* ---- info.c, domain.c, ep.c: no lock held, unless they say so ---- */

/* The FI_MR_* bits of keys and addresses. */
#define MR_BASIC_BITS	(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
/* fi_getinfo(3) of the provider. 0 with a list that the caller frees; -FI_ENODATA, with reasons reported if they are
 * wanted; -FI_ENOMEM. */
int rxm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
/* Turn an entry of the provider below into one of ours, in place. 0; or -FI_ENOMEM: the entry is then only good for
 * fi_freeinfo(), which the caller calls. */
int rxm_info_raise(struct fi_info *info);
/* The description of entries over the provider of this name, for the matcher (common/hints). */
struct fab_offer rxm_offer_over(const char *below);
/* Ask for memory of devices in hints for the provider below. */
void rxm_ask_hmem(struct fi_info *hints);
/* Ask in hints for the provider below for the orders of remote accesses that info has, since a provider may return them
 * on request only. Its attributes may be NULL. */
void rxm_ask_order(struct fi_info *hints, const struct fi_info *info);
/* Make the hints that ask the provider below for MSG endpoints which serve an RDM endpoint of these hints (NULL: any).
 * The caller frees them. NULL: no memory. */
struct fi_info *rxm_below_hints(const char *below, const struct fi_info *hints);
/* fi_fabric(3). 0; or -FI_E* with nothing left to undo, logged unless it is -FI_ENOMEM. */
int rxm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
/* fi_endpoint(3): the domain's ep_init. */
fab_ep_init_fn rxm_ep_init;
/* Fill the empty slots of the operation tables of fabric and domain. Called once, at load. */
void rxm_fill_ops(void);
/* The same for the tables of endpoints. */
void rxm_ep_fill_ops(void);
/* A queue below has failed with err, so that nothing can be read of it any more: end every outstanding operation of the
 * endpoint with err, and refuse requests of peers. Lock held. */
void rxm_ep_lost(struct rxm_ep *ep, int err);
/* fi_query_atomic(3). */
int rxm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);

/* The endpoint of a fid, which may be an alias. Any thread. */
static inline struct rxm_ep *rxm_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct rxm_ep, base);
}

/* ---- survey.c: lock held ---- */

/* The endpoint is enabled: name it in the page of the process (common/stats), and look through what is pending from now
 * on, until fab_survey_del(). */
void rxm_survey_start(struct rxm_ep *ep);
/* The kind of an operation in that page. */
static inline enum fi_stats_peer_kind rxm_kind_of(const struct rxm_tx *app)
{
	return app->code <= FAB_OP_CSEND ? FI_STATS_PEER_MESSAGE : FI_STATS_PEER_ACCESS;
}

/* ---- account.c: lock held ---- */

/* Write what the endpoint, which is enabled, holds for peers to the page of the process. */
void rxm_account_show(struct rxm_ep *ep);
/* It holds nothing any more. */
void rxm_account_end(struct rxm_ep *ep);

/* ---- coll.c: lock held ---- */

/* How the collectives of prov/common send and receive over rxm. */
extern const struct fab_coll_net rxm_coll_net;
/* COLL_ABORT: a member says that its group has failed, or that it has left it. May end the connection. */
void rxm_coll_aborted(struct rxm_conn *conn, const struct rxm_pkt *pkt);
/* True if a message is for a group that has failed; its sender is told so, and the caller drops the
 * message. */
bool rxm_coll_refuses(struct rxm_conn *conn, const struct fab_msg *msg);
/* The connection with this peer has ended, or none can be made: groups that wait for the peer fail with err. */
void rxm_coll_lost(struct rxm_peer *peer, int err);
/* A connection is up. */
void rxm_coll_met(const struct rxm_conn *conn);
/* True if a group waits for a message from this peer. */
bool rxm_coll_waits(const struct rxm_peer *peer);
/* The peer is connected, and turns out to have no collectives: end the messages of collectives that waited for the
 * connection. */
void rxm_coll_purge(struct rxm_peer *peer);

#endif
