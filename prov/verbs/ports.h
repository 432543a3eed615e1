/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(3) by ports instead of IP addresses: every port of every device that is up, and offers put together from
 * them. No state; any thread.
 */
#ifndef VRB_PORTS_H
#define VRB_PORTS_H

#include "verbs/kind.h"

struct vrb_offers {
	struct fab_offer *offer;	/* owned, with the infos; cnt in use */
	size_t cnt, room;
};

/* Another one, last: info is the list's from here on. NULL is -FI_ENOMEM. */
int vrb_offers_add(struct vrb_offers *offers, struct fi_info *info);
/* The answer, unless ret is an error already; frees the list. 0, -FI_ENODATA, -FI_ENOMEM, or ret. */
int vrb_offers_answer(struct vrb_offers *offers, int ret, const struct vrb_query *query, struct fi_info **info);

/* Call see() for each port that is up and has such queue pairs, until it fails: what it said, or 0; -FI_ENODATA: no
 * device can be opened. */
int vrb_ports_see(const struct vrb_kind *kind, int (*see)(const struct vrb_device *dev, void *arg), void *arg);

/* An entry of a port that is known by this GID, with these addresses, of the kind's format or FI_SOCKADDR_IB: copies;
 * dest may be NULL. NULL: no memory. */
struct fi_info *vrb_port_entry(const struct vrb_kind *kind, const struct vrb_device *dev, const union ibv_gid *gid,
			       const void *src, const void *dest, size_t len);

/* ib_info.c's: entries of GIDs, for ports of InfiniBand. Where the call names no format, only for those that have no IP
 * address. */
int vrb_ib_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info);

#endif
