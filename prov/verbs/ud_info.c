/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo() of datagram endpoints: an entry for each port that is up. The source address is the name of the port.
 * The destination is the endpoint of the service at the node; the node is asked for it (names.h). Called at setup only;
 * no lock.
 */
#include "verbs/ud.h"
#include "verbs/names.h"
#include "verbs/ports.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "common/hints/hints.h"
#include "common/net/net.h"

#define AGAIN_MS	1000

/* ---- an entry ---- */

bool vrb_ud_offered(const struct vrb_device *dev)
{
	return dev->quirks->gids;
}

void vrb_ud_fill(struct fi_info *info, const struct vrb_device *dev)
{
	size_t mtu = 128u << dev->port.active_mtu;

	info->mode = FI_MSG_PREFIX;
	info->tx_attr->mode = info->rx_attr->mode = FI_MSG_PREFIX;
	info->addr_format = FI_ADDR_IB_UD;
	info->tx_attr->caps = FI_MSG | FI_SEND;
	info->rx_attr->caps = FI_MSG | FI_RECV;
	info->tx_attr->msg_order = info->rx_attr->msg_order = FI_ORDER_SAS;
	info->tx_attr->inject_size = fab_min(info->tx_attr->inject_size, mtu);
	info->tx_attr->rma_iov_limit = 0;
	info->ep_attr->protocol = FI_PROTO_IB_UD;
	info->ep_attr->msg_prefix_size = VRB_UD_PREFIX;
	info->ep_attr->max_msg_size = mtu;
	info->ep_attr->max_order_raw_size = info->ep_attr->max_order_war_size = info->ep_attr->max_order_waw_size = 0;
	info->domain_attr->cq_data_size = sizeof(uint32_t);
	info->domain_attr->av_type = FI_AV_UNSPEC;
	info->domain_attr->max_err_data = 0;
}

bool vrb_ud_port_name(const struct vrb_device *dev, struct vrb_gids *gids, struct vrb_ud_name *name)
{
	struct ibv_port_attr port;

	/* the subnet manager may have given it another one since */
	if (ibv_query_port(dev->verbs, dev->port_num, &port))
		port.lid = dev->port.lid;
	*name = (struct vrb_ud_name) { .lid = port.lid, .pkey = VRB_UD_PKEY };
	vrb_gids_find(dev, gids);
	return !ibv_query_gid(dev->verbs, dev->port_num, gids->own, &name->gid);
}

const struct vrb_ud_name *vrb_ud_name_in(const struct fi_info *hints, const void *addr, size_t len)
{
	return hints && addr && len >= sizeof(struct vrb_ud_name) &&
	       (!hints->addr_format || hints->addr_format == FI_ADDR_IB_UD) ? addr : NULL;
}

/* ---- the query ---- */

/* True if node and service, if given, name the peer. */
static bool asks_for_dest(const struct vrb_query *query)
{
	return !(query->flags & FI_SOURCE);
}

/* The source address in the hints, unless node and service replace it; or NULL. */
static const struct vrb_ud_name *hint_src(const struct vrb_query *query)
{
	const struct fi_info *hints = query->hints;

	return hints && asks_for_dest(query) ? vrb_ud_name_in(hints, hints->src_addr, hints->src_addrlen) : NULL;
}

static const struct vrb_ud_name *hint_dest(const struct vrb_query *query)
{
	const struct fi_info *hints = query->hints;

	return hints && !(query->node && asks_for_dest(query)) ?
	       vrb_ud_name_in(hints, hints->dest_addr, hints->dest_addrlen) : NULL;
}

/* Report the reason if explanations are wanted. Returns ret. */
static int say_not(int ret, const char *attr, const char *asked, const char *why)
{
	if (fab_why_wanted(&vrb_prov))
		fab_why_report(&vrb_prov, FAB_WHY_CALL, NULL, attr, asked, why);
	return ret;
}

/* Get the source from the query. *only: the port with the given IP address; NULL: any port will do. *service: the
 * service number by which peers find the endpoint (names.h); 0: none. */
static int wanted(const struct vrb_query *query, const struct vrb_device **only, uint16_t *service)
{
	const struct vrb_ud_name *src = hint_src(query);
	union fab_sockaddr addr;
	const char *why = "";
	int ret = -FI_ENODATA;

	*only = NULL;
	*service = src ? src->service : 0;
	if (asks_for_dest(query))
		return 0;
	if (vrb_names_service(query->service, service, &why))
		return say_not(-FI_EINVAL, "service", query->service, why);
	if (!query->node)
		return 0;
	for (int i = 0; i < 2 && !*only; i++) {
		ret = fab_resolve_name(query->node, query->service, query->flags, i ? AF_INET6 : AF_INET, &addr, &why);
		if (!ret)
			*only = vrb_device_of(&addr.sa);
	}
	if (*only) {
		*service = fab_addr_port(&addr.sa);	/* or the service in an address text */
		return 0;
	}
	if (fab_why_wanted(&vrb_prov))
		fab_why_report(&vrb_prov, FAB_WHY_WHICH, "FI_EP_DGRAM", "node", query->node,
			       ret ? why : "an address of an RDMA device's port");
	return -FI_ENODATA;
}

static void say_no_gid(const struct vrb_device *dev)
{
	char entry[64], asked[16], have[32];

	if (!fab_why_wanted(&vrb_prov))
		return;
	snprintf(entry, sizeof(entry), "%.40s, port %u", dev->name, dev->port_num);
	snprintf(asked, sizeof(asked), "%d", vrb_params.gid_idx);
	snprintf(have, sizeof(have), "0 to %d", dev->port.gid_tbl_len - 1);
	fab_why_report(&vrb_prov, FAB_WHY_WHICH, entry, "FI_VERBS_GID_IDX", asked, have);
}

/* True if the port is wanted. Sets *own, the name of the port. */
static bool ud_info_is_wanted(const struct vrb_device *dev, const struct vrb_device *only,
			      const struct vrb_query *query, struct vrb_ud_name *own)
{
	const struct vrb_ud_name *src = hint_src(query);
	static const union ibv_gid any;
	struct vrb_gids gids;

	if (only && dev != only)
		return false;
	if (!vrb_ud_port_name(dev, &gids, own)) {
		say_no_gid(dev);
		return false;
	}
	if (!src || !memcmp(&src->gid, &any, sizeof(any)))
		return true;
	return !memcmp(&src->gid, &own->gid, sizeof(own->gid));
}

/* ---- the answer ---- */

struct search {
	const struct vrb_kind *kind;
	const struct vrb_query *query;
	const struct vrb_device *only;	/* or NULL */
	uint16_t service;		/* of the source, or 0 */
	struct vrb_offers offers;
};

static int ud_info_add_port(const struct vrb_device *dev, void *arg)
{
	struct search *search = arg;
	struct vrb_ud_name own;

	if (!ud_info_is_wanted(dev, search->only, search->query, &own))
		return 0;
	own.service = search->service;
	return vrb_offers_add(&search->offers, vrb_port_entry(search->kind, dev, &own.gid, &own,
							      hint_dest(search->query), sizeof(own)));
}

/* True if the hints ask for datagram endpoints, so that asking the node is useful. */
static bool is_worth_asking(const struct vrb_query *query)
{
	return query->node && asks_for_dest(query) && query->hints && query->hints->ep_attr &&
	       query->hints->ep_attr->type == FI_EP_DGRAM;
}

/* The last question without an answer, and the reason. The core calls fi_getinfo() a second time to get reasons, and
 * the node should not be asked twice. If several threads call at the same time, only the last result is kept. (A
 * thread-local variable would need __tls_get_addr() of the dynamic linker, or 272 bytes of the small static TLS for
 * libraries that are loaded later.) */
static struct {
	pthread_mutex_t lock;
	pthread_t thread;		/* thread of the first call */
	const char *node;		/* node of the first call; NULL: none is kept */
	uint64_t ms;			/* time of the first call */
	char why[VRB_NAMES_WHY];
} missed = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* True if this thread asked the node in vain a moment ago; why[] is set to the reason. The result is then forgotten. */
static bool missed_recall(const char *node, char why[VRB_NAMES_WHY])
{
	bool just_now;

	pthread_mutex_lock(&missed.lock);
	just_now = missed.node == node && pthread_equal(missed.thread, pthread_self()) &&
		   fab_now_ms() - missed.ms < AGAIN_MS;
	if (just_now)
		memcpy(why, missed.why, VRB_NAMES_WHY);
	missed.node = NULL;
	pthread_mutex_unlock(&missed.lock);
	return just_now;
}

/* Keep the result of a question. node NULL: it was answered. */
static void missed_keep(const char *node, const char why[VRB_NAMES_WHY])
{
	pthread_mutex_lock(&missed.lock);
	missed.thread = pthread_self();
	missed.node = node;
	missed.ms = fab_now_ms();
	memcpy(missed.why, why, VRB_NAMES_WHY);
	pthread_mutex_unlock(&missed.lock);
}

/* Like vrb_names_ask(), which it calls, but reports the reason. */
static int ud_info_ask(const struct vrb_query *query, uint16_t service, struct vrb_ud_name *dest)
{
	bool told = fab_why_wanted(&vrb_prov);
	char why[VRB_NAMES_WHY] = "";
	int ret = -FI_ENODATA;

	if (!told || !missed_recall(query->node, why))
		ret = vrb_names_ask(query->node, 0, query->flags, service, dest, why);
	if (!told)
		missed_keep(ret ? query->node : NULL, why);
	return ret ? say_not(ret, "node", query->node, why) : 0;
}

/* Add the destination to all entries. They have none yet. 0, -FI_ENODATA, -FI_EINVAL, -FI_ENOMEM. */
static int add_dest(const struct vrb_query *query, struct fi_info *info)
{
	struct vrb_ud_name dest;
	const char *why = "";
	uint16_t service;
	int ret;

	ret = vrb_names_service(query->service, &service, &why);
	if (ret)
		return say_not(ret, "service", query->service, why);
	ret = ud_info_ask(query, service, &dest);
	if (ret)
		return ret;
	for (; info; info = info->next) {
		info->dest_addr = malloc(sizeof(dest));
		if (!info->dest_addr)
			return -FI_ENOMEM;
		info->dest_addrlen = sizeof(dest);
		memcpy(info->dest_addr, &dest, sizeof(dest));
	}
	return 0;
}

int vrb_ud_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info)
{
	struct search search = { .kind = kind, .query = query };
	int ret = wanted(query, &search.only, &search.service);

	if (!ret)
		ret = vrb_ports_see(kind, ud_info_add_port, &search);
	ret = vrb_offers_answer(&search.offers, ret, query, info);
	if (ret || !is_worth_asking(query))
		return ret;
	ret = add_dest(query, *info);
	if (ret)
		fi_freeinfo(*info);
	return ret;
}
