/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints: MSG and RDM (ep.c), scalable (sep.c), shared contexts (shared.c). All functions return 0 or -FI_E*; no
 * lock held.
 */
#ifndef TCP_ENDPOINT_H
#define TCP_ENDPOINT_H

#include "common/domain/domain.h"

/* fi_endpoint(3): the domain's ep_init (fab_ep_open()), of MSG and RDM endpoints. */
fab_ep_init_fn tcp_ep_start;
/* The domain's slots for fi_scalable_ep(3), fi_srx_context(3), fi_stx_context(3). The application owns the new object
 * and closes it with fi_close(). 0 or -FI_E*, logged. */
int tcp_sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context);
int tcp_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx, void *context);
int tcp_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context);

/* Fill the empty entries of the operation tables of each file. Called once, when the provider is loaded. */
void tcp_ep_fill_ops(void);
void tcp_shared_fill_ops(void);
void tcp_sep_fill_ops(void);

#endif
