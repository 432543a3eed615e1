/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic classes, fi_endpoint(3), as what IP has for them: the six bits of the differentiated services field of each
 * packet. What the network makes of those is its own business.
 */
#ifndef FAB_TCLASS_H
#define FAB_TCLASS_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

/* Is there such a class: one of FI_TC_*, or a codepoint by fi_tc_dscp_set()? FI_TC_UNSPEC is not. */
bool fab_tclass_exists(uint32_t tclass);
/* Mark the packets that leave the socket fd with the traffic class of an endpoint: that of info->tx_attr, or else
 * `fallback`, its domain's. FI_TC_UNSPEC marks nothing. A refusal of the kernel is logged and otherwise harmless. Any
 * thread. */
void fab_tclass_mark(const struct fi_provider *prov, const struct fi_info *info, uint32_t fallback, int fd);

#endif
