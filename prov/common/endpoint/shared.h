/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared contexts, fi_endpoint(3): what providers ask of one that is opened, or bound to an endpoint. Control: no
 * engine lock held.
 */
#ifndef FAB_SHARED_H
#define FAB_SHARED_H

#include "common/endpoint/ep.h"

/* A field that the application leaves at 0 stays as it was. */
#define FAB_TAKE(to, from, field) ((to)->field = (from)->field ? (from)->field : (to)->field)

/* What fi_srx_context(3) or fi_rx_context(3) asks of a context, into info, which says the rest. */
void fab_rx_attr_take(struct fi_info *info, const struct fi_rx_attr *attr);
/* May ctx become one half of the endpoint, which has another for it already or not? kinds: what must be in the caps of
 * both. 0; -FI_EINVAL, -FI_EDOMAIN, -FI_EOPBADSTATE, logged. */
int fab_shared_check_bind(const struct fab_ep *ep, const struct fab_ep *ctx, bool has_one, uint64_t kinds,
			  uint64_t flags);
/* fi_close of a context that endpoints use: -FI_EBUSY, logged. what: "receive" or "transmit". */
int fab_shared_busy(const struct fab_ep *ctx, const char *what);
/* fi_enable of an endpoint that was opened with FI_SHARED_CONTEXT and has none: -FI_EOPBADSTATE, logged. */
int fab_shared_missing(const struct fab_ep *ep);

#endif
