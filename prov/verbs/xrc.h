/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MSG endpoints over XRC: a receive queue each, and queue pairs that are shared. doc/decisions/xrc.md says by whom.
 *
 * An initiator (struct vrb_ini) is this process's way to a peer's node: its endpoints to any process there send on
 * it. A target (struct vrb_tgt) is what an initiator of another node leads to: one number, a reference in each
 * process of this node that receives by it.
 */
#ifndef VRB_XRC_H
#define VRB_XRC_H

#include "verbs/kind.h"
#include "verbs/xrc_wire.h"

/* Of a domain, with the first endpoint, to the last. */
struct vrb_xrc {
	struct ibv_xrcd *xrcd;		/* owned */
	uint32_t tag;
	unsigned ref_cnt;		/* endpoints; lock of xrc_share.c, like the lists */
	struct fab_list inis;		/* struct vrb_ini.link */
	struct fab_list tgts;		/* struct vrb_tgt.link */
};

enum vrb_ini_state {
	VRB_INI_CONNECTING,		/* by a request without an answer yet, for which the peer may take its time */
	VRB_INI_ACCEPTING,		/* by an answer: its end is near */
	VRB_INI_READY,
	VRB_INI_OLD,			/* failed, or not for new endpoints */
};

/* All users are on one engine, whose lock guards all but the list. */
struct vrb_ini {
	struct fab_list link;		/* in xrc->inis */
	struct fab_engine *engine;
	union fab_any_addr node;	/* the peer's address; its port says nothing */
	uint32_t tag;			/* of the peer's XRC domain, but while CONNECTING */
	enum vrb_ini_state state;
	struct ibv_qp *qp;		/* owned */
	uint32_t size;			/* requests outstanding */
	uint32_t tgt;			/* the target that it leads to, once READY */
	struct vrb_ep *maker;		/* in whose entries of a hardware queue it completes; NULL: inherited, below */
	struct vrb_hw_cq *hw_cq;
	uint32_t reserved;
	unsigned user_cnt;
	struct fab_list waiters;	/* struct vrb_xrc_ep.wait */
};

struct vrb_tgt {
	struct fab_list link;
	struct ibv_qp *qp;
	unsigned ref_cnt;
};

/* An endpoint's part. Engine's lock. */
struct vrb_xrc_ep {
	struct vrb_ep *ep;
	struct ibv_srq *srq;		/* owned; NULL before fi_enable and after the end */
	uint32_t srqn;
	uint32_t peer_srqn;
	uint64_t *posted;		/* owned: wr_id of the receives, in order; rx_mask + 1 entries */
	uint32_t posted_cnt, rx_mask;
	struct vrb_ini *ini;		/* a user of it, or NULL */
	struct vrb_tgt *tgt;		/* a reference, or NULL */
	struct fab_list wait;		/* in ini->waiters of another's, or self-linked */
	struct fab_timer timer;		/* while it waits; or at once, to ask again */
	bool again;			/* asked a second time, with an initiator of its own */
	bool renew;			/* the timer is to ask again, with a new id */
	struct vrb_hw_cq *put_cq;	/* what an initiator left to be given back by fi_close */
	uint32_t put_cnt;
};

static inline struct vrb_xrc *vrb_xrc_of(const struct vrb_ep *ep)
{
	return vrb_domain_of(ep)->xrc;
}

/* ---- xrc_share.c ---- */

/* A reference to the domain's XRC side, which the first opens. No engine lock held. 0 or -FI_E*, logged. */
int vrb_xrc_get(struct vrb_domain *domain);
void vrb_xrc_put(struct vrb_domain *domain);

/*
 * Engine's lock held. An initiator to ep->peer that ep can use, or one that will soon be ready: the best state there
 * is. tag: NULL, or that of the peer's domain, which must be its own. NULL: there is none.
 */
struct vrb_ini *vrb_ini_find(const struct vrb_ep *ep, const uint32_t *tag);
/* A new one, of which ep is the maker and user, in INIT. NULL: errno, logged. */
struct vrb_ini *vrb_ini_make(struct vrb_ep *ep, enum vrb_ini_state state);
/* ep sends on it from now on. */
void vrb_ini_use(struct vrb_ep *ep, struct vrb_ini *ini);
/* Up to RTS, towards this target. 0 or -errno, logged. */
int vrb_ini_connect(struct vrb_ep *ep, uint32_t tgt);
/* READY or OLD, which waiters are to hear of: their timers are set to run now. */
void vrb_ini_settle(struct vrb_ini *ini, enum vrb_ini_state state);
/* ep leaves its initiator, if it has one. The last user ends it. */
void vrb_ini_leave(struct vrb_ep *ep);

/* Engine's lock held. A new target (INIT), or another reference to the one of this number in this XRC domain, made by
 * whatever process. NULL: errno. */
struct vrb_tgt *vrb_tgt_make(struct vrb_ep *ep);
struct vrb_tgt *vrb_tgt_open(struct vrb_ep *ep, uint32_t qpn);
/* Up to RTR, for this initiator. 0 or -errno, logged. */
int vrb_tgt_connect(struct vrb_ep *ep, struct vrb_tgt *tgt, uint32_t ini);
void vrb_tgt_put(struct vrb_ep *ep, struct vrb_tgt *tgt);

/* ---- xrc_cm.c: slots of the table; engine's lock held ---- */

int vrb_xrc_connect(struct vrb_ep *ep);
int vrb_xrc_accept(struct vrb_ep *ep);
void vrb_xrc_event(struct vrb_ep *ep, const struct rdma_cm_event *event);
void vrb_xrc_timer(struct fab_timer *timer);

#endif
