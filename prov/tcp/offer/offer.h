/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What tcp offers: fi_getinfo, and what is held against the same offers later. Any thread.
 */
#ifndef TCP_OFFER_H
#define TCP_OFFER_H

#include "base/addr.h"
#include "common/endpoint/endpoint.h"

/* Slots of struct fi_provider. 0 or -FI_E*. */
int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
int sockets_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info);
/* Does an info, with which an endpoint of the domain is to be opened and whose ep_attr->type is one of its
 * provider's, ask for nothing that is not offered? 0; -FI_EINVAL, logged; -FI_ENOMEM. */
int tcp_info_check(const struct fi_info *info, const struct fab_domain *domain);
/* Put an interface's address (that of the endpoint's domain, or else the best) in place of a wildcard, for
 * fi_getname. */
void tcp_addr_fill(union fab_sockaddr *addr, const struct fab_ep *ep);

#endif
