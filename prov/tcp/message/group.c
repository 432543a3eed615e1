/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peer groups: fi_group_addr(3) addresses a peer within a group, and such a message matches receives of this group
 * only. They exist if the domain was opened with a max_group_id. The group is the upper half of an fi_addr_t, except
 * the bits of fi_rx_addr(3). In a message it is at the end of the header (struct tcp_group). In matching it is part of
 * the source, so order, claims, cancellation and cost are as for any receive. doc/decisions/peer-groups.md. Engine lock
 * held.
 */
#include "tcp/message/msg.h"

#include "common/domain/domain.h"
#include "tcp/params/params.h"

uint64_t tcp_group_of(const struct tcp_ep *ep, fi_addr_t fi_addr)
{
	return fi_addr == FI_ADDR_UNSPEC ? 0 : (fi_addr & (UINT64_MAX >> ep->rdm.rx_ctx_bits)) >> 32;
}

bool tcp_group_valid(const struct tcp_ep *ep, fi_addr_t fi_addr)
{
	uint64_t group = tcp_group_of(ep, fi_addr);

	if (group <= ep->base.domain->attr.max_group_id)
		return true;
	TCP_WARN(FI_LOG_EP_DATA, "an address has group %llu, but the domain was opened with max_group_id %u\n",
		 (unsigned long long) group, ep->base.domain->attr.max_group_id);
	return false;
}

fi_addr_t tcp_group_recv_src(const struct tcp_ep *ep, fi_addr_t fi_addr)
{
	return tcp_match_src(ep, ep->directed_recv ? fi_addr : FI_ADDR_UNSPEC, tcp_group_of(ep, fi_addr));
}

void tcp_group_init(struct tcp_rx_ctx *ctx, const struct fab_domain *domain)
{
	fab_recv_set_grouped(&ctx->recv, domain->attr.max_group_id);
}
