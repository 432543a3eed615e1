/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared contexts, fi_endpoint(3): their attributes, and checks when they are bound, enabled and closed. Control: no
 * engine lock held.
 */
#ifndef FAB_SHARED_H
#define FAB_SHARED_H

#include "common/endpoint/ep.h"

/* Take over an attribute, unless the application left it at 0. */
#define FAB_TAKE(to, from, field) ((to)->field = (from)->field ? (from)->field : (to)->field)

/* Store the attributes of fi_srx_context(3) or fi_rx_context(3) in info; other members of info stay. */
void fab_rx_attr_take(struct fi_info *info, const struct fi_rx_attr *attr);
/* Check whether ctx may be bound to the endpoint. has_one: the endpoint has such a context already. late: an enabled
 * endpoint may get one. kinds: capabilities that both must have. 0; -FI_EINVAL, -FI_EDOMAIN, -FI_EOPBADSTATE,
 * logged. */
int fab_shared_check_bind(const struct fab_ep *ep, const struct fab_ep *ctx, bool has_one, bool late,
			  uint64_t kinds, uint64_t flags);
/* fi_close() of a context that endpoints use: returns -FI_EBUSY, logged. what: "receive" or "transmit". */
int fab_shared_busy(const struct fab_ep *ctx, const char *what);
/* An option of shared receive contexts, of type bool, for fi_getopt(3). 0 and true: `buf` of a completion is the
 * context of the endpoint (fi_endpoint(3)) that took the receive. An error: nothing in a completion names the
 * endpoint. */
#define FAB_OPT_NAMES_TAKER	((int) (FI_PROV_SPECIFIC | 0x77656674))

/* fi_enable() of an endpoint with FI_SHARED_CONTEXT that has no context bound: returns -FI_EOPBADSTATE, logged. */
int fab_shared_missing(const struct fab_ep *ep);

#endif
