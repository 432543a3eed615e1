/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Typed "not supported" functions for every operation table of the interface, so that no table has a NULL entry
 * (doc/design.md, section 5). They return -FI_ENOSYS, with these exceptions: a function that returns a pointer returns
 * NULL, one that returns a count returns 0, and getopt and setopt of an endpoint return -FI_ENOPROTOOPT, as for an
 * unknown option.
 *
 * FAB_OPS_FILL(table) fills the entries of a table that are NULL, and sets size if it is 0. Providers call it for each
 * static table when they are loaded; the fab_*_init() functions that take tables call it, too. Any thread, any number
 * of times. In the fab_no_* tables all entries are "not supported".
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

/* FAB_OPS_FILL() for each type of table; callers use that. */
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
 * Operation tables of an endpoint that only sends or only receives: those of its provider, with the calls of the other
 * direction replaced by ones that return -FI_ENOSYS. They are chosen when the endpoint is opened, so that no call has
 * to check capabilities.
 */
struct fab_ops_part {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
};

/* Make *part a copy of *all, without the calls of directions (FI_SEND, FI_RECV) that are not in caps. */
void fab_ops_part_msg(struct fi_ops_msg *part, const struct fi_ops_msg *all, uint64_t caps);
/* The same for tagged messages. */
void fab_ops_part_tagged(struct fi_ops_tagged *part, const struct fi_ops_tagged *all, uint64_t caps);
/* Replace the provider's tables in ep by ones for caps (with all modifiers, see fab_caps_full()). 0: *part holds the
 * tables, and the caller frees it after the endpoint; NULL: ep has all directions and keeps its tables. -FI_ENOMEM. */
int fab_ops_part_take(struct fid_ep *ep, uint64_t caps, struct fab_ops_part **part);

#endif
