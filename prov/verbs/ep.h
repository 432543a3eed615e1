/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What endpoints of every kind have. Each kind embeds a struct vrb_ep at the beginning of its own: datagrams (struct
 * vrb_ud_ep) and shared receive contexts (struct vrb_srx) by itself, connected kinds (struct vrb_rc_ep, vrb_xrc_ep)
 * within a struct vrb_conn_ep (cm.h). The engine's lock guards all fields that change after open; "lock held" means
 * that lock.
 */
#ifndef VRB_EP_H
#define VRB_EP_H

#include "base/pool.h"
#include "common/endpoint/endpoint.h"
#include "verbs/params.h"
#include "verbs/poller.h"

struct vrb_kind;			/* kind.h */
struct vrb_ep;
struct vrb_srx;				/* srx.h */

/* A send, write or read, in the order of posting. */
struct vrb_tx {
	struct vrb_ep *ep;
	struct fi_stats_peer *stats;	/* borrowed: the record of its peer in the page of the process */
	void *context;
	uint64_t len;			/* bytes of the message */
	uint32_t pos;			/* in the order of posting */
	uint8_t code;			/* enum fab_op_code; FAB_OP_MAX: the marker of vrb_post_marker() */
	bool want_cq;
};

struct vrb_rx {
	struct vrb_ep *ep;
	void *context;
	uint64_t flags;
};

enum vrb_ep_state {
	VRB_EP_IDLE,			/* receives can be posted once it is enabled */
	VRB_EP_CONNECTING,		/* or accepting */
	VRB_EP_CONNECTED,
	VRB_EP_DOWN,			/* refused, lost or shut down; cannot be connected again */
};

struct vrb_ep {
	struct fab_ep base;
	const struct vrb_kind *kind;
	enum vrb_ep_state state;
	struct ibv_qp *qp;		/* owned by the kind; NULL before fi_enable */
	const struct ibv_srq *srq;	/* borrowed: the shared receive queue of its receives, or NULL */
	const struct sockaddr *peer_sa;	/* borrowed: the peer of its connection, or NULL */
	/* survey.c. Borrowed: the record of the peer in the page of the process; without one, that of all others */
	struct fi_stats_peer *stats;
	struct fab_stats_peers peers;	/* ud.c: records by vrb_ud_peer.number */
	struct fab_survey survey;	/* while enabled */
	bool told;			/* survey.c: the page has something that waits */
	/* Its record is in the page. That of an endpoint below a layer is not, since the layer has records of its own:
	 * completions are not counted there, and operations are not looked through. */
	bool shown;
	int end_err;			/* flushed operations end with this error, and end_why; 0: FI_ECONNRESET */
	const char *end_why;
	bool shutdown_told;		/* the application has been told of the end */
	bool local_end;			/* this end shut down: flushed operations end with FI_ECANCELED */
	struct vrb_hw_cq *hw_cq;	/* borrowed, with `reserved` of its entries; NULL before fi_enable */
	struct vrb_hw_cq *tx_hw;	/* where sends complete if not there: XRC; or NULL */
	struct fab_list on_hw;		/* in hw_cq->eps while enabled; in domain->late once closed (keep_late()) */
	uint32_t reserved;
	uint32_t inline_max;		/* bytes, with the kind's prefix, like max_msg_size */
	uint32_t tx_iov_limit, rx_iov_limit;
	uint32_t read_iov_limit;	/* buffers of one read request; more are read by several requests (read.c) */
	uint32_t sq_size;		/* requests that the queue pair holds: of tx_size operations, and the marker */
	size_t max_msg_size;
	ssize_t (*aim)(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr);	/* copy of kind->aim */

	struct vrb_tx *tx;		/* owned ring; [tx_head, tx_tail) are outstanding */
	uint32_t tx_mask;		/* entries of the ring less one: a power of two */
	uint32_t tx_size;		/* outstanding at most */
	uint32_t tx_head, tx_tail;
	uint32_t tx_quiet;		/* requests posted since the last signaled one */
	uint32_t tx_quiet_max;		/* as many unsignaled requests may follow each other */
	struct fab_pool rx_pool;	/* struct vrb_rx: receives outstanding */
	uint32_t rx_size, rx_cnt;
	struct vrb_srx *srx;		/* borrowed: its receives are of this context (a context: itself); or NULL */
	struct vrb_watch qp_watch, srq_watch;	/* of qp and srq, while it has them */
	bool last_due;			/* its queue pair has been connected, so VRB_TOLD_LAST will come */
	struct fab_list taker;		/* in srx->takers, under qpn: vrb_srx_join() */
	uint32_t qpn;			/* of the queue pair that takes its receives: its own, or its XRC target */
};

/* The endpoint of a fid, which may be an alias. Any thread. */
static inline struct vrb_ep *vrb_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct vrb_ep, base);
}

/* The domain of an endpoint. Any thread. */
static inline struct vrb_domain *vrb_domain_of(const struct vrb_ep *ep)
{
	return fab_container(ep->base.domain, struct vrb_domain, base);
}

/* fi_rx_size_left(3): receives that can still be posted, or -FI_EOPBADSTATE. No lock held. */
ssize_t vrb_ep_rx_size_left(struct fid_ep *fid);
/* fi_enable(3). 0, also if it is enabled already; -FI_E*. No lock held. */
int vrb_ep_enable(struct vrb_ep *ep);

/* Free closed endpoints whose requests the device may have reported until now. The domain has no completion queue any
 * more. No lock held. */
void vrb_ep_free_late(struct vrb_domain *domain);

/* ---- survey.c: the page of the process. Lock held ---- */

/* The endpoint is enabled: look through what is pending from now on. */
void vrb_survey_start(struct vrb_ep *ep);
/* Undo it. Nothing is outstanding. Idempotent. */
void vrb_survey_stop(struct vrb_ep *ep);
/* A connected kind: ep->peer_sa was set, and a connection to it is being made. */
void vrb_survey_connecting(struct vrb_ep *ep);
/* The same: the connection is up. */
void vrb_survey_connected(struct vrb_ep *ep);
/* It has ended, or could not be made: err is a positive FI_E*, 0 if it was closed properly. */
void vrb_survey_ended(struct vrb_ep *ep, int err);
/* True if the application is told of the end of an operation. Nobody waits for others, and their end becomes known
 * late, since their requests are not signaled. */
static inline __attribute__((always_inline)) bool vrb_is_awaited(const struct vrb_tx *tx)
{
	return tx->want_cq || tx->ep->base.bound.cntr[fab_op_desc[tx->code].cntr];
}
/* An operation has completed without an error. */
static inline __attribute__((always_inline)) void vrb_count_done(const struct vrb_tx *tx)
{
	if (!tx->ep->shown)
		return;
	tx->stats->dequeued += vrb_is_awaited(tx);
	fab_stats_count(tx->stats, tx->code, tx->len);
}
/* It has completed with one. */
static inline void vrb_count_failed(const struct vrb_tx *tx)
{
	tx->stats->dequeued += vrb_is_awaited(tx);
	tx->stats->errors++;
}

#endif
