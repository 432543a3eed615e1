/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Typed "not supported" entries for every ops table of the interface, so that a caller never meets a NULL and each
 * answers -FI_ENOSYS (doc/design.md, section 5).
 *
 * FAB_OPS_FILL(table) sets slots that are NULL, and size if it is 0, to the -FI_ENOSYS entries (a function that returns
 * a pointer gives NULL, a count 0; options of an endpoint are -FI_ENOPROTOOPT, as those are that it does not know).
 * Providers call it on each static table when they are initialised; the fab_*_init() calls that take tables do it as
 * well. Any thread, any number of times. In the fab_no_* tables every entry is of that kind.
 */
#ifndef FAB_OPS_H
#define FAB_OPS_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

void fab_ops_fill_fid(struct fi_ops *ops);
void fab_ops_fill_fabric(struct fi_ops_fabric *ops);
void fab_ops_fill_domain(struct fi_ops_domain *ops);
void fab_ops_fill_mr(struct fi_ops_mr *ops);
void fab_ops_fill_av(struct fi_ops_av *ops);
void fab_ops_fill_cq(struct fi_ops_cq *ops);
void fab_ops_fill_cntr(struct fi_ops_cntr *ops);
void fab_ops_fill_eq(struct fi_ops_eq *ops);
void fab_ops_fill_ep(struct fi_ops_ep *ops);
void fab_ops_fill_cm(struct fi_ops_cm *ops);
void fab_ops_fill_msg(struct fi_ops_msg *ops);
void fab_ops_fill_tagged(struct fi_ops_tagged *ops);
void fab_ops_fill_rma(struct fi_ops_rma *ops);
void fab_ops_fill_atomic(struct fi_ops_atomic *ops);
void fab_ops_fill_collective(struct fi_ops_collective *ops);

extern struct fi_ops_cm fab_no_cm;
extern struct fi_ops_msg fab_no_msg;
extern struct fi_ops_tagged fab_no_tagged;
extern struct fi_ops_rma fab_no_rma;
extern struct fi_ops_atomic fab_no_atomic;
extern struct fi_ops_collective fab_no_collective;

#define FAB_OPS_FILL(ops) _Generic((ops),					\
	struct fi_ops *: fab_ops_fill_fid,					\
	struct fi_ops_fabric *: fab_ops_fill_fabric,				\
	struct fi_ops_domain *: fab_ops_fill_domain,				\
	struct fi_ops_mr *: fab_ops_fill_mr,					\
	struct fi_ops_av *: fab_ops_fill_av,					\
	struct fi_ops_cq *: fab_ops_fill_cq,					\
	struct fi_ops_cntr *: fab_ops_fill_cntr,				\
	struct fi_ops_eq *: fab_ops_fill_eq,					\
	struct fi_ops_ep *: fab_ops_fill_ep,					\
	struct fi_ops_cm *: fab_ops_fill_cm,					\
	struct fi_ops_msg *: fab_ops_fill_msg,					\
	struct fi_ops_tagged *: fab_ops_fill_tagged,				\
	struct fi_ops_rma *: fab_ops_fill_rma,					\
	struct fi_ops_atomic *: fab_ops_fill_atomic,				\
	struct fi_ops_collective *: fab_ops_fill_collective)(ops)

/*
 * The calls of an endpoint that sends only or receives only: the tables of its provider, in which the calls of the
 * direction that its capabilities leave out answer -FI_ENOSYS. Chosen when the endpoint is opened, so that no call
 * asks.
 */
struct fab_ops_part {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
};

/* *part becomes *all with what caps (FI_SEND, FI_RECV) has of it. */
void fab_ops_part_msg(struct fi_ops_msg *part, const struct fi_ops_msg *all, uint64_t caps);
void fab_ops_part_tagged(struct fi_ops_tagged *part, const struct fi_ops_tagged *all, uint64_t caps);
/* Replace the tables of ep, which are its provider's, by such for caps, all modifiers spelled out. *part is what
 * they are in, which the caller frees after the endpoint; NULL if nothing had to be left out. 0 or -FI_ENOMEM. */
int fab_ops_part_take(struct fid_ep *ep, uint64_t caps, struct fab_ops_part **part);

#endif
