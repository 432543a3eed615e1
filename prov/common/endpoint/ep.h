/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What every endpoint shares: what it is bound to, which operation reports where, its state as fi_endpoint(3) has it. A
 * provider embeds this first. And the one way from an operation to its completion (doc/design.md, section 6).
 *
 * Binding only records. fi_enable() chooses the engine; until then it is the domain's. With FI_THREAD_COMPLETION all
 * that is bound to one endpoint must share one: queues that no endpoint has used yet come to the engine of one that has
 * been used, or to a new one (fab_queue_settle); two that have been used on different engines make fi_enable() fail.
 * The calls here are control: no engine lock held, except where it says so.
 */
#ifndef FAB_EP_H
#define FAB_EP_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include "common/av/av.h"
#include "common/queue/queue.h"
#include "common/domain/domain.h"
#include "common/op/op.h"

struct fab_ep;
struct fab_profiler;

/* What the application holds of an endpoint: that which it opened, or an alias with other default flags
 * (fi_ep_alias(3)). Calls get the endpoint from here, and the flags. */
struct fab_ep_fid {
	struct fid_ep ep_fid;
	struct fab_ep *ep;
	uint64_t tx_op_flags, rx_op_flags;	/* defaults for calls without a flags argument */
};

/* What fi_ep_bind() brought: borrowed, each with a reference. */
struct fab_ep_bound {
	struct fab_cq *tx_cq, *rx_cq;
	struct fab_cntr *cntr[FAB_CNTR_MAX];
	struct fab_eq *eq;
	struct fab_av *av;
};

/* Which completions the endpoint reports, and what they contain. Constant once the endpoint is enabled, except
 * `counted`: a counter may be bound later. */
struct fab_ep_report {
	bool tx_selective, rx_selective;	/* bound with FI_SELECTIVE_COMPLETION */
	bool tx_each;			/* each success writes an entry: there is a tx_cq, not bound with that flag */
	bool counted;			/* there is one in bound.cntr */
	bool want_src;			/* FI_SOURCE: completions of receives name the sender */
	bool src_err;			/* and with FI_SOURCE_ERR, a sender in no address vector is an error */
	uint64_t tx_msg_flags, rx_msg_flags;	/* inherited by the fi_*msg calls: FI_COMPLETION, or 0 */
};

/* The objects that show a part of the endpoint: while there are any, fi_close of it is -FI_EBUSY. Engine's lock. */
struct fab_ep_views {
	struct fab_list aliases;
	struct fab_list profiles;	/* opened by fi_profile_open() */
	const struct fab_profiler *profiler;	/* the provider's data for them (profile.h); NULL: there are none */
};

struct fab_ep {
	union {
		struct fab_ep_fid own;
		struct fid_ep ep_fid;	/* own.ep_fid */
	};
	struct fab_domain *domain;	/* borrowed: init took a reference */
	struct fab_engine *engine;	/* see above; final once enabled */
	enum fi_ep_type type;
	bool enabled;			/* the provider sets it when fi_enable is done */
	bool has_engine;		/* it has been chosen, and has a reference (fab_domain_add_ep) */
	bool eq_driven;			/* eq runs our engine (fab_eq_add_engine) */
	uint64_t caps;			/* effective: of info and its tx/rx attributes, modifiers spelled out */
	struct fab_ep_report report;
	struct fab_ep_bound bound;
	/* a reference: its authorization key, or the domain's; NULL: none, or those of its address vector */
	struct fab_auth_key *auth_key;
	/* owned: groups (collective.h), or NULL without FI_COLLECTIVE; of a receive context borrowed, or NULL */
	struct fab_coll *coll;
	struct fi_info *info;		/* owned copy of what it was opened with */
	struct fab_ops_part *part;	/* owned: tables for fewer directions than its provider has, or NULL */
	struct fab_ep_views views;
};

/* The endpoint behind what the application holds. */
static inline struct fab_ep *fab_ep_of(const struct fid *fid)
{
	return fab_container(fid, struct fab_ep_fid, ep_fid.fid)->ep;
}

/* Tables are the provider's; empty slots are filled with typed -FI_ENOSYS. */
struct fab_ep_ops {
	struct fi_ops *fid;
	struct fi_ops_ep *ep;
	struct fi_ops_cm *cm;
	struct fi_ops_msg *msg;
	struct fi_ops_tagged *tagged;	/* NULL without the capability: all -FI_ENOSYS; likewise below */
	struct fi_ops_rma *rma;
	struct fi_ops_atomic *atomic;
	struct fi_ops_collective *collective;
	const struct fab_profiler *profiler;	/* NULL: fi_profile_open() is -FI_ENOSYS */
};
/* Fill the embedded part from info, of which the endpoint keeps a copy. -FI_EINVAL, logged, if it lacks something or
 * does not suit the domain; whether it asks more than the provider offers is for the provider to check
 * (fab_hints_check). 0 or -FI_E*. */
int fab_ep_init(struct fab_ep *ep, struct fab_domain *domain, const struct fi_info *info, const struct fab_ep_ops *ops,
		void *context);
/* Does info have all its parts? 0 or -FI_EINVAL, logged. */
int fab_ep_check_parts(const struct fab_domain *domain, const struct fi_info *info);
/*
 * The domain's slot for endpoints of a provider, but for size and init: `size` zeroed bytes, which begin with a struct
 * fab_ep, are handed to init with an info that has all its parts. That checks the type and the rest of it, calls
 * fab_ep_init(), and returns 0, or -FI_E* with nothing left to undo.
 */
typedef int fab_ep_init_fn(struct fab_ep *ep, struct fab_domain *domain, const struct fi_info *info, void *context);
int fab_ep_open(struct fid_domain *domain, const struct fi_info *info, size_t size, fab_ep_init_fn *init,
		struct fid_ep **ep, void *context);
/* fi_endpoint2(3), any domain's slot: the endpoint slot where there are no flags, else -FI_EBADFLAGS, logged. */
int fab_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags, void *context);
/* fi_setname of an endpoint, whose name is kept in *name: 0, -FI_EOPBADSTATE (it is enabled), -FI_EINVAL; logged. */
int fab_ep_take_name(const struct fab_ep *ep, union fab_sockaddr *name, const void *addr, size_t addrlen);
/* What fi_close asks first: -FI_EBUSY while there are aliases or views (logged), or 0. Takes the lock. */
int fab_ep_check_close(const struct fab_ep *ep);
/* From now on the endpoint, and each alias of it, offers these calls for messages; a table that is NULL stays as it is.
 * Before the endpoint is enabled; takes the lock. */
void fab_ep_set_receives(struct fab_ep *ep, struct fi_ops_msg *msg, struct fi_ops_tagged *tagged);
/* Drops every reference. The provider has closed what could still reach the endpoint. */
void fab_ep_fini(struct fab_ep *ep);
/* The part of it that undoes binding. */
void fab_ep_unbind(struct fab_ep *ep);

/*
 * fi_ep_bind(3) for CQ, counter, AV, EQ with every flag rule of the man page; the provider's bind slot, or called from
 * it for what it does not know. Counters may be bound after enable. Each error is logged with what was asked:
 * -FI_EINVAL (wrong class of object, slot taken, a counter for remote operations without FI_RMA_EVENT, a late counter
 * that other endpoints use on another engine), -FI_EBADFLAGS, -FI_EDOMAIN (the object belongs to another domain or
 * fabric), -FI_EOPBADSTATE (enabled already), -FI_E* of settling a late counter.
 */
int fab_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* The bind slot of shared receive contexts: -FI_EINVAL, logged. */
int fab_srx_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* Bring an endpoint, and a context that it is to share with others, to one engine; each may have one already. 0;
 * -FI_EINVAL, logged: both are in use on different ones; -FI_E* of making an engine or settling a queue. */
int fab_ep_share_engine(struct fab_ep *ep, struct fab_ep *ctx);
/* A shared context gets the engine that it is to have, if it has none yet. 0 or -FI_E*. */
int fab_ep_fix_engine(struct fab_ep *ctx);
/* What fi_enable(3) demands: -FI_ENOCQ, -FI_ENOAV, -FI_ENOEQ, -FI_EOPBADSTATE (already enabled) or 0. Chooses the
 * engine: -FI_EINVAL, logged, if two of the things bound are in use on different ones; -FI_E* of making an engine or
 * settling a queue. Takes over the domain's EQ if the endpoint has none, and lets a connected endpoint's EQ drive its
 * engine. The provider goes on from there, and looks at the engine no earlier. */
int fab_ep_check_enable(struct fab_ep *ep);
/* fi_control: GETOPSFLAG, SETOPSFLAG, ALIAS. 0, -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM; -FI_ENOSYS: not for us, the
 * provider's turn. */
int fab_ep_control(struct fid *fid, int command, void *arg);
/* The same of a shared receive context, which is ready as it is opened: FI_ENABLE is 0. */
int fab_srx_control(struct fid *fid, int command, void *arg);

/* fi_getopt(3) of an option that is a size_t: 0, -FI_EINVAL, or -FI_ETOOSMALL with *optlen what is needed. */
int fab_getopt_size(size_t value, void *optval, size_t *optlen);

/* The same of a bool. */
int fab_getopt_bool(bool value, void *optval, size_t *optlen);
/* fi_setopt of an option that is a size_t: 0 with *value as it is to be; -FI_ETOOSMALL (shorter), -FI_EINVAL
 * (longer, or NULL), logged. */
int fab_setopt_size(const struct fi_provider *prov, size_t *value, const void *optval, size_t optlen);
/* The slot of endpoints where nothing can be set, or called from it for what it does not know: -FI_ENOPROTOOPT. */
int fab_ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen);

/* fi_getopt(3) of the options that only tell what the info says: FI_OPT_TX_SIZE, FI_OPT_RX_SIZE, and by kind of
 * operation FI_OPT_MAX_*_SIZE and FI_OPT_INJECT_*_SIZE. The slot of an endpoint, or called from it for what it does
 * not know. 0, -FI_EINVAL, -FI_ETOOSMALL; -FI_ENOPROTOOPT: another option, or of operations that the endpoint does
 * not have. */
int fab_ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen);

/* Does a success of this operation write a CQ entry? For the submit path; flags are the operation's. */
static inline bool fab_ep_tx_wants_comp(const struct fab_ep *ep, const struct fab_op *op)
{
	return !op->no_comp && (ep->report.tx_each || (ep->bound.tx_cq && (op->flags & FI_COMPLETION)));
}
static inline bool fab_ep_rx_wants_comp(const struct fab_ep *ep, uint64_t flags)
{
	return ep->bound.rx_cq && (!ep->report.rx_selective || (flags & FI_COMPLETION));
}

/* What a completion has as the source of what came from fi_addr. */
static inline fi_addr_t fab_ep_src(const struct fab_ep *ep, fi_addr_t fi_addr)
{
	return !ep->report.want_src ? FI_ADDR_NOTAVAIL : ep->bound.av ? fab_av_user_id(ep->bound.av, fi_addr) : fi_addr;
}

/*
 * The end of an operation, in exactly one of two ways, and the only callers of fab_cq_write() for endpoints. Engine
 * lock held. code gives counter and queue (send side: tx_cq; RECV, TRECV, REMOTE_*: rx_cq); comp->flags are complete
 * (fab_op_desc[code].cq_flags and what came with the message). want_cq false: only counters. An error always writes an
 * entry where there is a queue, whatever was selected. A reader (fab_cq_give), or NULL, may take the entry.
 */
static inline __attribute__((always_inline))
void fab_ep_complete_to(struct fab_ep *ep, enum fab_op_code code, const struct fab_comp *comp, bool want_cq,
			struct fab_cq_taker *taker)
{
	struct fab_cntr *cntr = ep->bound.cntr[fab_op_desc[code].cntr];

	if (want_cq)
		fab_cq_give(code >= FAB_OP_RECV ? ep->bound.rx_cq : ep->bound.tx_cq, comp, taker);
	if (cntr)
		fab_cntr_inc(cntr, comp->len);
}
/* The same for a completion that no reader takes at once. */
static inline void fab_ep_complete(struct fab_ep *ep, enum fab_op_code code, const struct fab_comp *comp, bool want_cq)
{
	fab_ep_complete_to(ep, code, comp, want_cq, NULL);
}
/* The operation failed: an error entry in its completion queue, wanted or not, and the error counters bound for it.
 * fail is borrowed for the call. Lock held. */
void fab_ep_fail(struct fab_ep *ep, enum fab_op_code code, const struct fab_comp *comp, const struct fab_cq_fail *fail);

#endif
