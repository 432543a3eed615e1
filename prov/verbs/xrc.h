/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MSG endpoints over XRC. Each has a shared receive queue (SRQ) of its own, or that of the shared receive context that
 * it is bound to; queue pairs are shared (doc/decisions/xrc.md).
 *
 * An initiator QP (struct vrb_ini) sends to another node. All endpoints of this process that are connected to any
 * process of that node send on it, but never two of them to the same SRQ: so a target and an SRQ name an endpoint. A
 * target QP (struct vrb_tgt) is the other end of an initiator of another node; each process of this node that receives
 * by it has a reference.
 */
#ifndef VRB_XRC_H
#define VRB_XRC_H

#include "verbs/kind.h"
#include "verbs/xrc_wire.h"

/* The XRC part of a domain; exists while the domain has XRC endpoints. */
struct vrb_xrc {
	struct ibv_xrcd *xrcd;		/* owned */
	uint32_t tag;			/* tells XRC domains of this node apart */
	unsigned ref_cnt;		/* endpoints; guarded by the lock of xrc_share.c, like the lists */
	struct fab_list inis;		/* struct vrb_ini.link */
	struct fab_list tgts;		/* struct vrb_tgt.link */
};

enum vrb_ini_state {
	VRB_INI_CONNECTING,		/* a REQ has been sent; the peer may take any time to answer */
	VRB_INI_ACCEPTING,		/* a REP has been sent; the RTU follows soon */
	VRB_INI_READY,
	VRB_INI_OLD,			/* has failed, or is not for new endpoints */
};

/* An initiator. All its users are on one engine, whose lock guards all fields except link. */
struct vrb_ini {
	struct fab_list link;		/* in xrc->inis */
	struct fab_engine *engine;
	union fab_any_addr node;	/* the peer's address; the port means nothing */
	uint32_t tag;			/* of the peer's XRC domain; not valid while CONNECTING */
	enum vrb_ini_state state;
	struct ibv_qp *qp;		/* owned */
	uint32_t size;			/* requests that may be outstanding */
	uint32_t tgt;			/* number of its target, once READY */
	/* It completes to the hardware queue of the endpoint that made it. When that endpoint leaves, maker is NULL,
	 * and the initiator has the hardware queue (hw_cq) and its reserved entries. */
	struct vrb_ep *maker;
	struct vrb_hw_cq *hw_cq, *completes_to;
	uint32_t reserved;
	unsigned user_cnt;
	struct fab_list users;		/* struct vrb_xrc_ep.user */
	struct fab_list waiters;	/* struct vrb_xrc_ep.wait */
};

/* A target. Guarded by the lock of xrc_share.c. */
struct vrb_tgt {
	struct fab_list link;		/* in xrc->tgts */
	struct ibv_qp *qp;		/* owned: this process's reference */
	unsigned ref_cnt;		/* endpoints of this process */
};

/* An endpoint. Guarded by the engine's lock. */
struct vrb_xrc_ep {
	struct vrb_conn_ep conn;
	struct ibv_srq *srq;		/* owned; NULL before fi_enable, after the end, and with a shared context */
	uint32_t srqn;			/* of srq, or of the shared context's */
	uint32_t peer_srqn;		/* 0: not known yet */
	bool peer_shares;		/* it belongs to a shared receive context */
	uint64_t *posted;		/* owned: wr_id of the receives, in order; rx_mask + 1 entries */
	uint32_t posted_cnt, rx_mask;
	struct vrb_ini *ini;		/* the initiator that it uses, or NULL */
	struct fab_list user;		/* in its users, or self-linked */
	struct vrb_tgt *tgt;		/* a reference, or NULL */
	/* Owned: a target that receives nothing. Its number is in the CM's messages of the connection, since each
	 * connection of the CM needs its own, and tgt is shared with another connection. NULL: tgt's number is. */
	struct vrb_tgt *number;
	struct vrb_xrc_up *up;		/* owned: it connects as upstream does (xrc_upstream.c); NULL: in our way */
	struct fab_list wait;		/* in the waiters of an initiator that another makes, or self-linked */
	struct fab_timer timer;		/* bounds the wait; or is due at once, to ask again */
	bool again;			/* has asked a second time, with a new initiator */
	bool renew;			/* the timer is to ask again, with a new id */
	struct vrb_hw_cq *put_cq;	/* left by an initiator: fi_close gives put_cnt entries back */
	uint32_t put_cnt;
};

static inline struct vrb_xrc_ep *vrb_xrc_ep_of(const struct vrb_ep *ep)
{
	return fab_container(ep, struct vrb_xrc_ep, conn.ep);
}

/* The XRC part of an endpoint's domain. */
static inline struct vrb_xrc *vrb_xrc_of(const struct vrb_ep *ep)
{
	return vrb_domain_of(ep)->xrc;
}

/* Make an SRQ of the XRC domain with the endpoint's sizes (xrc.c), which completes to ep->hw_cq. *num is its number. 0,
 * or -errno, logged. Any lock. */
int vrb_xrc_srq_make(struct vrb_ep *ep, struct ibv_srq **srq, uint32_t *num);

/* ---- xrc_share.c ---- */

/* Take a reference to the XRC part of a domain; the first one opens it. 0: the caller calls vrb_xrc_put() later; or
 * -FI_E*, logged. No engine lock held. */
int vrb_xrc_get(struct vrb_domain *domain);
/* Give the reference back; the last one closes the XRC domain. No engine lock held. */
void vrb_xrc_put(struct vrb_domain *domain);

/* From here on: engine's lock held. */

/* The initiator to ep's peer in the most advanced state that ep can use, or can wait for. Nobody sends on it to the SRQ
 * that ep will send to (peer_srqn). tag: the tag of the peer's XRC domain, which the initiator's tag must equal; NULL:
 * any. NULL: there is none. */
struct vrb_ini *vrb_ini_find(const struct vrb_ep *ep, const uint32_t *tag);
/* Make an initiator in this state, whose queue pair is in INIT on the path of this CM id; ep is its maker and first
 * user. NULL: errno, logged except for lack of memory. */
struct vrb_ini *vrb_ini_make(struct vrb_ep *ep, struct rdma_cm_id *id, enum vrb_ini_state state);
/* Make ep a user of the initiator: it sends on it from now on. */
void vrb_ini_use(struct vrb_ep *ep, struct vrb_ini *ini);
/* Connect ep's initiator to the target of this number, on the path of a CM id: its queue pair goes to RTS. 0 or -errno,
 * logged. */
int vrb_ini_connect(struct vrb_ep *ep, struct rdma_cm_id *id, uint32_t tgt);
/* Set the state to READY or OLD, and make the timers of endpoints that wait for the initiator run now. */
void vrb_ini_settle(struct vrb_ini *ini, enum vrb_ini_state state);
/* ep leaves its initiator, if it has one. The last user destroys it. */
void vrb_ini_leave(struct vrb_ep *ep);

/* Make a target, whose queue pair is in RESET. The caller has a reference. NULL: errno, logged. */
struct vrb_tgt *vrb_tgt_make(struct vrb_ep *ep);
/* Take a reference to the target of this number, which any process of this node has made in the XRC domain. NULL:
 * errno, logged at level info. */
struct vrb_tgt *vrb_tgt_open(struct vrb_ep *ep, uint32_t qpn);
/* Connect a new target to the initiator of this number (0: of the queue pair that the CM id names), on the path of the
 * id: its queue pair goes to RTR. 0 or -errno, logged. */
int vrb_tgt_connect(struct vrb_ep *ep, struct rdma_cm_id *id, struct vrb_tgt *tgt, uint32_t ini);
/* Give a reference back; the last one of this process destroys or closes the queue pair. */
void vrb_tgt_put(struct vrb_ep *ep, struct vrb_tgt *tgt);

/* ---- xrc_cm.c: engine's lock held ---- */

/* True if the target of this number takes receives of ep's shared context for another endpoint. */
bool vrb_xrc_is_taken(const struct vrb_ep *ep, uint32_t qpn);
/* Give back the references to targets that ep has. */
void vrb_xrc_drop_targets(struct vrb_ep *ep);
/* From now on its target takes receives of ep's shared context, if it has one, for ep. */
void vrb_xrc_join(struct vrb_ep *ep);
/* An attempt has failed: endpoints that wait for its initiator wait no longer, and the application gets an error event
 * (vrb_cm_refused()). */
void vrb_xrc_give_up(struct vrb_ep *ep, int err, const struct rdma_cm_event *event, const char *step);
/* Leave initiator and target, and make another attempt with a new id, when the event that is being handled has been
 * acknowledged. */
void vrb_xrc_renew(struct vrb_ep *ep);
/* Any thread: vrb_kind.unpack and vrb_kind.refusal. */
const void *vrb_xrc_unpack(const void *data, uint8_t len, size_t *cnt);
uint8_t vrb_xrc_refusal(const uint8_t *req, uint8_t *data);
/* True if private data is of our handshake, of any version. Any thread. */
bool vrb_xrc_is_ours(const void *data, size_t len);

/* ---- xrc_upstream.c: upstream's handshake; engine's lock held, if no other is said ---- */

/* For fi_endpoint() with a request: if the request is upstream's, ep will answer as upstream does. 0 or -FI_ENOMEM. No
 * lock held. */
int vrb_xrc_up_open(struct vrb_ep *ep);
/* vrb_kind.refusal of a request of upstream's: its part is before the application's data. 0: the request is not
 * upstream's. Any thread. */
uint8_t vrb_xrc_up_refusal(const uint8_t *req, uint8_t *data);
/* Accept the request. 0 or -errno, logged. */
int vrb_xrc_up_accept(struct vrb_ep *ep);
/* The peer has refused ep's request without a word of our handshake: if upstream may be there, make another attempt in
 * its way. False: it is not. */
bool vrb_xrc_up_try(struct vrb_ep *ep, const struct rdma_cm_event *event);
/* Handle an event of ep's id. */
void vrb_xrc_up_event(struct vrb_ep *ep, const struct rdma_cm_event *event);
/* Close the other ids of the handshake. Idempotent. */
void vrb_xrc_up_end(struct vrb_ep *ep);

/* ---- xrc_cm.c: functions of the kind's table (kind.h); engine's lock held ---- */

/* vrb_kind.connect. */
int vrb_xrc_connect(struct vrb_ep *ep);
/* vrb_kind.accept. */
int vrb_xrc_accept(struct vrb_ep *ep);
/* vrb_kind.event. */
void vrb_xrc_event(struct vrb_ep *ep, const struct rdma_cm_event *event);
/* vrb_xrc_ep.timer has run out: the wait for an initiator is over, or it is time to ask again. */
void vrb_xrc_timer(struct fab_timer *timer);

#endif
