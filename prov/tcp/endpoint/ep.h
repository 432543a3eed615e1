/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room: the common part of all kinds of endpoints.
 */
#ifndef TCP_ENDPOINT_EP_H
#define TCP_ENDPOINT_EP_H

#include "common/endpoint/endpoint.h"
#include "tcp/endpoint/endpoint.h"
#include "tcp/stream/stream.h"

/* ---- ep.c ---- */

/* fab_ep_ops.enable of endpoints and contexts. */
fab_ep_enable_fn tcp_ep_enable;
/* The answer of fi_enable() of an enabled endpoint: 0 by the name sockets, otherwise -FI_EOPBADSTATE, logged. */
int tcp_enabled_again(const struct fab_ep *ep);
/* Initialise a zeroed *ep, except the connection of a MSG endpoint. 0 or -FI_E*; fini frees everything, and so does
 * fi_close(). */
int tcp_ep_init(struct tcp_ep *ep, struct fab_domain *domain, const struct fi_info *info, const struct fab_ep_ops *ops,
		void *context);
void tcp_ep_fini(struct tcp_ep *ep);
/* fi_getname() of an endpoint that is not connected. */
int tcp_rdm_getname(fid_t fid, void *addr, size_t *addrlen);
extern struct fi_ops tcp_ep_fid_ops;		/* close, bind, control; of contexts, too */
extern struct fi_ops_ep tcp_ep_ops;		/* options, cancel */

/* ---- shared.c ---- */

/* Operation tables for one direction, for contexts. */
struct tcp_half_ops {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
};
extern struct tcp_half_ops tcp_rx_half, tcp_tx_half;

/* Store the attributes that the application asks for in info; attributes that are 0 stay as they were. Then write the
 * actual attributes to attr. */
void tcp_take_tx_attr(const struct fab_domain *domain, struct fi_info *info, const struct fi_tx_attr *attr);
void tcp_give_tx_attr(const struct fab_domain *domain, const struct fi_info *info, struct fi_tx_attr *attr);
/* fi_ep_bind() of a shared context. 0; -FI_EINVAL, -FI_EDOMAIN, -FI_EOPBADSTATE, logged. No lock held. */
int tcp_srx_bind(struct tcp_ep *ep, struct fid *fid, uint64_t flags);
int tcp_stx_bind(struct tcp_ep *ep, struct fid *fid, uint64_t flags);
/* Check for fi_enable() that the endpoint has the shared contexts for which it was opened, and that they fit. 0;
 * -FI_EINVAL, -FI_EOPBADSTATE, logged. No lock held. */
int tcp_shared_check(const struct tcp_ep *ep);
/* The endpoint closes and drops its shared contexts. Lock held. */
void tcp_shared_put(struct tcp_ep *ep);

/* ---- profile.c ---- */

/* The statistics of endpoints, fi_profile(3). */
extern const struct fab_profiler tcp_rdm_profiler, tcp_msg_profiler;

#endif
