/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The common part of all endpoints: objects bound, reporting of completions, and the states of fi_endpoint(3). A
 * provider embeds struct fab_ep first. All operations complete here (doc/design.md, section 6).
 *
 * Binding only records the objects. fi_enable() chooses the engine; until then it is the domain's. With
 * FI_THREAD_COMPLETION all objects bound to an endpoint are on one engine. Queues that no endpoint has used yet move to
 * the engine of the queue that is in use, or to a new one (fab_queue_settle()). If two queues are in use on different
 * engines, the endpoint is on the domain's engine, and these engines follow it (fab_domain_lead()). The functions here
 * are control: no engine lock held, except where a comment says otherwise.
 */
#ifndef FAB_EP_H
#define FAB_EP_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include "base/probe.h"
#include "common/av/av.h"
#include "common/queue/queue.h"
#include "common/domain/domain.h"
#include "common/op/op.h"

struct fab_ep;
struct fab_profiler;

/* The fid of an endpoint in the application: its own one, or an alias with other default flags (fi_ep_alias(3)). Calls
 * find the endpoint and the default flags here. */
struct fab_ep_fid {
	struct fid_ep ep_fid;
	struct fab_ep *ep;
	uint64_t tx_op_flags, rx_op_flags;	/* flags of calls without a flags argument */
};

/* The objects bound by fi_ep_bind(); each has a reference. */
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
	bool tx_each;			/* each success writes an entry: tx_cq is bound without that flag */
	bool counted;			/* bound.cntr has a counter */
	bool want_src;			/* FI_SOURCE: completions of receives contain the sender */
	bool src_err;			/* with FI_SOURCE_ERR, too: a sender that is not in the address vector is an
					 * error */
	uint64_t tx_msg_flags, rx_msg_flags;	/* added to the flags of fi_*msg() calls: FI_COMPLETION or 0 */
};

/* fi_enable(3): calls fab_ep_check_enable(), starts what the endpoint has, and sets ep->enabled. No lock held. 0 or
 * -FI_E*. */
typedef int fab_ep_enable_fn(struct fab_ep *ep);

/* Objects through which the application sees a part of the endpoint. fi_close() of the endpoint returns -FI_EBUSY while
 * there are any. Engine's lock. */
struct fab_ep_views {
	struct fab_list aliases;
	struct fab_list profiles;	/* opened by fi_profile_open() */
	const struct fab_profiler *profiler;	/* the provider's statistics (profile.h), or NULL */
};

struct fab_ep {
	union {
		struct fab_ep_fid own;
		struct fid_ep ep_fid;	/* own.ep_fid */
	};
	struct fab_domain *domain;	/* borrowed: init took a reference */
	struct fab_engine *engine;	/* final once the endpoint is enabled */
	enum fi_ep_type type;
	bool enabled;			/* set by the provider at the end of fi_enable() */
	bool has_engine;		/* the engine was chosen, and has a reference (fab_domain_add_ep()) */
	bool eq_driven;			/* eq drives the endpoint's engine (fab_eq_add_engine) */
	uint64_t caps;			/* effective capabilities of info and its tx and rx attributes, with all
					 * modifiers */
	struct fab_ep_report report;
	struct fab_ep_bound bound;
	/* has a reference: the endpoint's authorization key, or the domain's; NULL: no key, or keys are in the address
	 * vector */
	struct fab_auth_key *auth_key;
	/* collective groups (collective.h): owned; of a receive context borrowed; NULL without FI_COLLECTIVE */
	struct fab_coll *coll;
	struct fi_info *info;		/* owned: a copy of the info for opening it */
	fab_ep_enable_fn *enable;	/* as fab_ep_ops.enable */
	struct fab_ops_part *part;	/* owned: operation tables for one direction only (ops.h); or NULL */
	struct fab_ep_views views;
	struct fi_stats_ep *stats;	/* owned: its record in the page of the process */
	int hmem_p2p;			/* FI_OPT_FI_HMEM_P2P */
	uint32_t forks;			/* fab_fork_cnt of the process that has opened it */
	/* With addresses of IP: the address asked for, by info or fab_ep_setname(). The provider may change it to the
	 * address in use. */
	union fab_sockaddr name;
};

/* The endpoint of a fid. */
static inline struct fab_ep *fab_ep_of(const struct fid *fid)
{
	return fab_container(fid, struct fab_ep_fid, ep_fid.fid)->ep;
}

/* A provider's operation tables for endpoints; empty entries are filled with -FI_ENOSYS functions. */
struct fab_ep_ops {
	struct fi_ops *fid;
	struct fi_ops_ep *ep;
	struct fi_ops_cm *cm;
	struct fi_ops_msg *msg;
	struct fi_ops_tagged *tagged;	/* NULL, or no such capability: calls return -FI_ENOSYS; likewise below */
	struct fi_ops_rma *rma;
	struct fi_ops_atomic *atomic;
	struct fi_ops_collective *collective;
	const struct fab_profiler *profiler;	/* NULL: fi_profile_open() returns -FI_ENOSYS */
	fab_ep_enable_fn *enable;	/* NULL: fi_enable() returns -FI_ENOSYS */
};
/* Initialise the embedded part. The endpoint keeps a copy of info. 0 or -FI_E*. -FI_EINVAL, logged: info lacks an
 * attribute structure, or does not fit the domain. The provider checks whether info asks for more than it offers
 * (fab_hints_check()). */
int fab_ep_init(struct fab_ep *ep, struct fab_domain *domain, const struct fi_info *info, const struct fab_ep_ops *ops,
		void *context);
/* Check that info has all attribute structures. 0 or -FI_EINVAL, logged. */
int fab_ep_check_parts(const struct fab_domain *domain, const struct fi_info *info);
/* The slot of every domain for fi_endpoint(3): allocates ep_size bytes and calls ep_init, both of the domain's struct
 * fab_domain_ops. 0; -FI_EINVAL, logged: info lacks an attribute structure; -FI_ENOMEM; or the error of ep_init. */
int fab_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
/* The slot of every domain for fi_endpoint2(3): calls the endpoint slot if there are no flags; otherwise -FI_EBADFLAGS,
 * logged. */
int fab_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags, void *context);
/* The setname slot of an IP endpoint: sets ep->name. 0; -FI_EOPBADSTATE (it is enabled), -FI_EINVAL; logged. */
int fab_ep_setname(fid_t fid, void *addr, size_t addrlen);
/* The getname slot of an IP endpoint: returns ep->name as it is. 0 or -FI_ETOOSMALL. */
int fab_ep_getname(fid_t fid, void *addr, size_t *addrlen);
/* Check for fi_close(), and fab_engine_disown(): 0, or -FI_EBUSY (logged) while there are aliases or views. Takes the
 * lock. */
int fab_ep_check_close(const struct fab_ep *ep);
/* Replace the message calls of the endpoint and of its aliases. A table that is NULL stays as it is. Before the
 * endpoint is enabled; takes the lock. */
void fab_ep_set_receives(struct fab_ep *ep, struct fi_ops_msg *msg, struct fi_ops_tagged *tagged);
/* Drop all references, and events of the endpoint that were not read, and free the embedded part. The provider has
 * closed everything that could still reach the endpoint. */
void fab_ep_fini(struct fab_ep *ep);
/* The part of fab_ep_fini() that drops bound objects. */
void fab_ep_unbind(struct fab_ep *ep);

/*
 * fi_ep_bind(3) of a CQ, counter, AV or EQ, with the rules for flags of the man page. The bind slot of a provider, or
 * called by it for objects that it does not handle itself. Counters may be bound after enable, and an event queue if
 * the endpoint has none. Each error is logged with the call's arguments. -FI_EINVAL: wrong class of object; an object
 * of this kind is bound already; a counter only for remote operations without FI_RMA_EVENT; a counter bound after
 * enable that other endpoints use on another engine. -FI_EBADFLAGS. -FI_EDOMAIN: the object belongs to another domain
 * or fabric. -FI_EOPBADSTATE: the endpoint is enabled. -FI_E* of settling a counter bound after enable.
 */
int fab_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* The bind slot of shared receive contexts: returns -FI_EINVAL, logged. */
int fab_srx_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* Put an endpoint, and a context that it will share with others, on one engine. If each has one already, the endpoint
 * moves to the domain's, which both engines follow from then on. 0, or -FI_E* of making an engine, settling a queue or
 * following. -FI_EINVAL, logged: an enabled endpoint cannot move. */
int fab_ep_share_engine(struct fab_ep *ep, struct fab_ep *ctx);
/* Choose the engine of a shared context, if it has none yet. 0 or -FI_E*. */
int fab_ep_fix_engine(struct fab_ep *ctx);
/* Check the conditions of fi_enable(3), and choose the engine. 0. -FI_ENOCQ, -FI_ENOAV, -FI_ENOEQ, -FI_EOPBADSTATE
 * (already enabled). -FI_E* of making an engine, settling a queue or following. Binds the domain's EQ if the endpoint
 * has none, and lets the EQ of a connected endpoint drive its engine. The provider then continues with enabling; it
 * must not use the engine before. */
int fab_ep_check_enable(struct fab_ep *ep);
/* fi_control() with FI_ENABLE, FI_GETOPSFLAG, FI_SETOPSFLAG, FI_ALIAS. The control slot of endpoints, or called by it
 * for commands that it does not handle itself. 0, the error of enable, -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM;
 * -FI_ENOSYS for other commands. */
int fab_ep_control(struct fid *fid, int command, void *arg);
/* The same for a shared receive context. It can be used as soon as it is opened, so FI_ENABLE returns 0. */
int fab_srx_control(struct fid *fid, int command, void *arg);

/* fi_getopt(3) of an option of type size_t. 0, -FI_EINVAL; -FI_ETOOSMALL: *optlen is the length needed. */
int fab_getopt_size(size_t value, void *optval, size_t *optlen);

/* The same for an option of type bool. */
int fab_getopt_bool(bool value, void *optval, size_t *optlen);
/* fi_setopt() of an option of type size_t. 0: *value is the new value. -FI_ETOOSMALL (optlen is too short), -FI_EINVAL
 * (too long, or optval is NULL), logged. */
int fab_setopt_size(const struct fi_provider *prov, size_t *value, const void *optval, size_t optlen);
/* The same for a bool. */
int fab_setopt_bool(const struct fi_provider *prov, bool *value, const void *optval, size_t optlen);
/* The setopt slot of endpoints without options of their own; others call it for options that they do not know. With
 * FI_HMEM, FI_OPT_FI_HMEM_P2P and FI_OPT_CUDA_API_PERMITTED: 0; -FI_EOPNOTSUPP: the provider works in another way;
 * -FI_EINVAL, -FI_ETOOSMALL, logged. Other options: -FI_ENOPROTOOPT. */
int fab_ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen);
/* An option of MSG endpoints, of type bool, that a layer above sets for fi_setopt(3): the peer is in no address vector
 * there. It then waits for its turn like the strangers of an RDM endpoint, and nothing is kept of it but what the
 * layer's receives take. Providers without strangers have no such option. */
#define FAB_OPT_STRANGER	((int) (FI_PROV_SPECIFIC | 0x77656675))

/* fi_getopt(3) of options whose values are in the info: FI_OPT_TX_SIZE, FI_OPT_RX_SIZE, and FI_OPT_MAX_*_SIZE and
 * FI_OPT_INJECT_*_SIZE for each kind of operation. The getopt slot of an endpoint, or called by it for options that it
 * does not know. 0, -FI_EINVAL, -FI_ETOOSMALL; -FI_ENOPROTOOPT: another option, or for a kind of operation that the
 * endpoint does not support. */
int fab_ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen);

/* True if the success of this operation writes a CQ entry. For the submit path. */
static inline bool fab_ep_tx_wants_comp(const struct fab_ep *ep, const struct fab_op *op)
{
	return !op->no_comp && (ep->report.tx_each || (ep->bound.tx_cq && (op->flags & FI_COMPLETION)));
}

/* True if the application can learn that the operation has succeeded: by a completion, a hook or a counter. Otherwise
 * its completion level makes no difference, and need not be paid for. */
static inline bool fab_ep_tx_is_observed(const struct fab_ep *ep, const struct fab_op *op)
{
	return fab_ep_tx_wants_comp(ep, op) || op->hooked || ep->bound.cntr[fab_op_desc[op->code].cntr];
}
/* True if the operation must leave within the call or be refused: it is injected, and no completion obliges its caller
 * to a further call. Operations that were accepted earlier, and those of collectives and deferred work, may wait. */
static inline bool fab_ep_tx_leaves(const struct fab_ep *ep, const struct fab_op *op)
{
	return (op->flags & FI_INJECT) && !op->accepted && !op->hooked && !fab_ep_tx_wants_comp(ep, op);
}
static inline bool fab_ep_rx_wants_comp(const struct fab_ep *ep, uint64_t flags)
{
	return ep->bound.rx_cq && (!ep->report.rx_selective || (flags & FI_COMPLETION));
}

/* The source in the completion of a message from fi_addr. */
static inline fi_addr_t fab_ep_src(const struct fab_ep *ep, fi_addr_t fi_addr)
{
	return !ep->report.want_src ? FI_ADDR_NOTAVAIL : ep->bound.av ? fab_av_user_id(ep->bound.av, fi_addr) : fi_addr;
}

/*
 * An operation ends with exactly one call of fab_ep_complete*() or fab_ep_fail(). Only these call fab_cq_write() for
 * endpoints. Engine lock held. code selects the counter and the queue (tx_cq for the transmit side; rx_cq for RECV,
 * TRECV and REMOTE_*). comp->flags are complete: fab_op_desc[code].cq_flags and the flags of the message. want_cq
 * false: only the counter is incremented. An error always writes an entry if a queue is bound. taker, or NULL, is a
 * read that may take the entry directly (fab_cq_give()).
 */
static inline __attribute__((always_inline))
void fab_ep_complete_to(struct fab_ep *ep, enum fab_op_code code, const struct fab_comp *comp, bool want_cq,
			struct fab_cq_taker *taker)
{
	struct fab_cntr *cntr = ep->bound.cntr[fab_op_desc[code].cntr];

	/* twice, so that want_cq need not be at hand as a number */
	if (want_cq) {
		FAB_PROBE4(complete, ep, code, comp->context, comp->len);
		fab_cq_give(code >= FAB_OP_RECV ? ep->bound.rx_cq : ep->bound.tx_cq, comp, taker);
	} else {
		FAB_PROBE4(complete, ep, code, comp->context, comp->len);
	}
	if (cntr)
		fab_cntr_inc(cntr, comp->len);
}
/* The same without a taker. */
static inline void fab_ep_complete(struct fab_ep *ep, enum fab_op_code code, const struct fab_comp *comp, bool want_cq)
{
	fab_ep_complete_to(ep, code, comp, want_cq, NULL);
}
/* The operation has failed: write an error entry to its completion queue, even with selective completion, and increment
 * the error counter bound for it. fail is borrowed for the call. Lock held. */
void fab_ep_fail(struct fab_ep *ep, enum fab_op_code code, const struct fab_comp *comp, const struct fab_cq_fail *fail);

#endif
