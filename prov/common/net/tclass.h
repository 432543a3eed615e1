/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic classes, fi_endpoint(3), as the six-bit differentiated services codepoint (DSCP) in each IP packet. The
 * network decides what it does with it.
 */
#ifndef FAB_TCLASS_H
#define FAB_TCLASS_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

/* True if the class is one of FI_TC_* or a codepoint of fi_tc_dscp_set(). False for FI_TC_UNSPEC. */
bool fab_tclass_exists(uint32_t tclass);
/* The codepoint of an endpoint: of info->tx_attr->tclass, or if that is FI_TC_UNSPEC of `fallback`, the domain's. -1:
 * both are FI_TC_UNSPEC. */
int fab_tclass_dscp(const struct fi_info *info, uint32_t fallback);
/* Mark the packets of socket fd with the traffic class of an endpoint, fab_tclass_dscp(). Without one, packets are not
 * marked. If the kernel refuses, the failure is logged and has no other effect. Any thread. */
void fab_tclass_mark(const struct fi_provider *prov, const struct fi_info *info, uint32_t fallback, int fd);

#endif
