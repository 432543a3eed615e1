/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(3) by ports instead of IP addresses: a walk over the ports of all devices, and lists of offers. No state;
 * any thread.
 */
#ifndef VRB_PORTS_H
#define VRB_PORTS_H

#include "verbs/kind.h"

struct vrb_offers {
	struct fab_offer *offer;	/* owned, with the infos; cnt in use */
	size_t cnt, room;
};

/* Append an offer of info, which the list owns from then on, also if this fails. 0; -FI_ENOMEM, also if info is
 * NULL. */
int vrb_offers_add(struct vrb_offers *offers, struct fi_info *info);
/* Match the offers against the query, unless ret is an error already, and free the list. 0 with the answer in *info,
 * which the caller frees; -FI_ENODATA; -FI_ENOMEM; or ret. */
int vrb_offers_answer(struct vrb_offers *offers, int ret, const struct vrb_query *query, struct fi_info **info);

/* Call see(dev, arg) for each port that is up and has queue pairs of this kind, until it returns an error. 0 or that
 * error; -FI_ENODATA: no device can be opened. */
int vrb_ports_see(const struct vrb_kind *kind, int (*see)(const struct vrb_device *dev, void *arg), void *arg);

/* Make an entry of a port with this GID. src and dest (may be NULL) are its addresses, of len bytes, in the kind's
 * format or FI_SOCKADDR_IB; they are copied. The caller frees the entry. NULL: no memory. */
struct fi_info *vrb_port_entry(const struct vrb_kind *kind, const struct vrb_device *dev, const union ibv_gid *gid,
			       const void *src, const void *dest, size_t len);

/* ib_info.c: the entries of InfiniBand ports with GIDs as addresses. If the query asks for no address format, only of
 * ports without an IP address. 0, -FI_ENODATA, -FI_EINVAL or -FI_ENOMEM. */
int vrb_ib_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info);

#endif
