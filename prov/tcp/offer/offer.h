/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo() of tcp, and checks against the same offers later. Any thread.
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
/* Check the info for opening an endpoint of the domain; its ep_attr->type is one of the provider's. 0; -FI_EINVAL,
 * logged; -FI_ENOMEM. */
int tcp_info_check(const struct fi_info *info, const struct fab_domain *domain);
/* For fi_getname(): replace a wildcard address by an interface's address. The interface is the one of the endpoint's
 * domain, or else the best one. */
void tcp_addr_fill(union fab_sockaddr *addr, const struct fab_ep *ep);

#endif
