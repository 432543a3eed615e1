/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See ports.h.
 */
#include "verbs/ports.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/table.h"

#define PORTS_MAX	16		/* ports of a device */

int vrb_offers_add(struct vrb_offers *offers, struct fi_info *info)
{
	if (!info || fab_grow(&offers->offer, &offers->room, offers->cnt, sizeof(*offers->offer))) {
		fi_freeinfo(info);
		return -FI_ENOMEM;
	}
	offers->offer[offers->cnt] = vrb_offer();
	offers->offer[offers->cnt].tclasses = info->ep_attr->type == FI_EP_MSG;
	offers->offer[offers->cnt++].info = info;
	return 0;
}

int vrb_offers_answer(struct vrb_offers *offers, int ret, const struct vrb_query *query, struct fi_info **info)
{
	if (!ret)
		ret = fab_hints_match(&vrb_prov, query->version, query->hints, offers->offer, offers->cnt, info);
	while (offers->cnt)
		fi_freeinfo((struct fi_info *) offers->offer[--offers->cnt].info);
	free(offers->offer);
	return ret;
}

int vrb_ports_see(const struct vrb_kind *kind, int (*see)(const struct vrb_device *dev, void *arg), void *arg)
{
	struct ibv_context **list;
	int cnt = 0, ret = 0;

	list = rdma_get_devices(&cnt);
	if (!list)
		return -FI_ENODATA;
	for (int i = 0; i < cnt; i++) {
		for (uint8_t port = 1; port <= PORTS_MAX && !ret; port++) {
			const struct vrb_device *dev = vrb_device_at(list[i], port);

			if (dev && kind->offered(dev))
				ret = see(dev, arg);
		}
	}
	rdma_free_devices(list);
	return ret;
}

static int ports_copy(void **to, size_t *to_len, const void *from, size_t len)
{
	*to = from ? malloc(len) : NULL;
	if (!*to)
		return from ? -FI_ENOMEM : 0;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

struct fi_info *vrb_port_entry(const struct vrb_kind *kind, const struct vrb_device *dev, const union ibv_gid *gid,
			       const void *src, const void *dest, size_t len)
{
	char fabric[FI_NAME_MAX];
	struct fi_info *info;

	vrb_fabric_of_gid(fabric, sizeof(fabric), dev, gid);
	info = vrb_info_of(kind, dev, fabric);
	if (info && !vrb_nic_open(dev, &info->nic) && !ports_copy(&info->src_addr, &info->src_addrlen, src, len) &&
	    !ports_copy(&info->dest_addr, &info->dest_addrlen, dest, len))
		return info;
	fi_freeinfo(info);
	return NULL;
}
