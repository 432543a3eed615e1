/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * DGRAM endpoints over unreliable datagram queue pairs: a queue pair on a port, no connection manager. Whom a send goes
 * to an address vector says (ud_av.c). Before each datagram the receiver's buffer has 40 bytes for the device
 * (FI_MSG_PREFIX), and since buffers look the same at both ends, so have those of sends: they stay here.
 *
 * A send is done when it has left. A datagram that meets no receive, or no endpoint, is lost without a word.
 */
#include "verbs/ud.h"
#include "verbs/names.h"
#include "verbs/ports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "common/ip_name.h"
#include "common/ops.h"
#include "common/match_info.h"
#include "common/netif.h"

#define AGAIN_MS	1000

/* ---- offers: one for each port that is up ---- */

static bool ud_offered(const struct vrb_device *dev)
{
	return dev->verbs->device->transport_type == IBV_TRANSPORT_IB;
}

static void ud_fill(struct fi_info *info, const struct vrb_device *dev)
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

/* False: the GID that the port is to be known by cannot be read. */
static bool port_name(const struct vrb_device *dev, struct vrb_gids *gids, struct vrb_ud_name *name)
{
	*name = (struct vrb_ud_name) { .lid = dev->port.lid, .pkey = VRB_UD_PKEY };
	vrb_gids_find(dev, gids);
	return !ibv_query_gid(dev->verbs, dev->port_num, gids->own, &name->gid);
}

/* The name in the hints, or NULL. */
static const struct vrb_ud_name *name_in(const struct fi_info *hints, const void *addr, size_t len)
{
	return hints && addr && len >= sizeof(struct vrb_ud_name) &&
	       (!hints->addr_format || hints->addr_format == FI_ADDR_IB_UD) ? addr : NULL;
}

/* ret, with the reason for those who ask. */
static int say_not(int ret, const char *attr, const char *asked, const char *why)
{
	if (fab_why_wanted(&vrb_prov))
		fab_why_report(&vrb_prov, FAB_WHY_CALL, NULL, attr, asked, why);
	return ret;
}

/* A source may be named by IP address, and is then the port that has it; NULL: any port will do. And by service, by
 * which others are to find it (names.h); 0: none. */
static int wanted(const struct vrb_query *query, const struct vrb_device **only, uint16_t *service)
{
	const struct fi_info *hints = query->hints;
	const struct vrb_ud_name *src = hints ? name_in(hints, hints->src_addr, hints->src_addrlen) : NULL;
	union fab_sockaddr addr;
	const char *why = "";
	int ret = -FI_ENODATA;

	*only = NULL;
	*service = src ? src->service : 0;
	if (!(query->flags & FI_SOURCE))
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
	if (*only)
		return 0;
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

/* And *own, the name that the port is known by. */
static bool is_wanted(const struct vrb_device *dev, const struct vrb_device *only, const struct vrb_query *query,
		      struct vrb_ud_name *own)
{
	const struct fi_info *hints = query->hints;
	const struct vrb_ud_name *src = hints ? name_in(hints, hints->src_addr, hints->src_addrlen) : NULL;
	static const union ibv_gid any;
	struct vrb_gids gids;

	if (only && dev != only)
		return false;
	if (!port_name(dev, &gids, own)) {
		say_no_gid(dev);
		return false;
	}
	if (only || !src || query->node || !memcmp(&src->gid, &any, sizeof(any)))
		return true;
	return !memcmp(&src->gid, &own->gid, sizeof(own->gid));
}

struct search {
	const struct vrb_kind *kind;
	const struct vrb_query *query;
	const struct vrb_device *only;	/* or NULL */
	uint16_t service;		/* of the source, or 0 */
	struct vrb_offers offers;
};

static int add_port(const struct vrb_device *dev, void *arg)
{
	struct search *search = arg;
	const struct fi_info *hints = search->query->hints;
	const struct vrb_ud_name *dest = hints ? name_in(hints, hints->dest_addr, hints->dest_addrlen) : NULL;
	struct vrb_ud_name own;

	if (!is_wanted(dev, search->only, search->query, &own))
		return 0;
	own.service = search->service;
	return vrb_offers_add(&search->offers, vrb_port_entry(search->kind, dev, &own.gid, &own,
							      search->query->node ? NULL : dest, sizeof(own)));
}

/* The node is a destination, and datagrams are what is asked for, so that it is worth asking there. */
static bool has_dest_node(const struct vrb_query *query)
{
	return query->node && !(query->flags & FI_SOURCE) && query->hints && query->hints->ep_attr &&
	       query->hints->ep_attr->type == FI_EP_DGRAM;
}

/* What was not found just now, and why: the core calls a second time for reasons, and nobody is asked twice. */
static __thread struct {
	const char *node;		/* of the first call; NULL: there is none */
	uint64_t ms;			/* when */
	char why[VRB_NAMES_WHY];
} missed;

/* As vrb_names_ask(), which it calls; the reason is told. */
static int ask(const struct vrb_query *query, uint16_t service, struct vrb_ud_name *dest)
{
	bool told = fab_why_wanted(&vrb_prov);
	bool again = told && missed.node == query->node && fab_now_ms() - missed.ms < AGAIN_MS;
	int ret = -FI_ENODATA;

	missed.node = NULL;
	if (!again)
		ret = vrb_names_ask(query->node, 0, query->flags, service, dest, missed.why);
	if (ret && !told) {
		missed.node = query->node;
		missed.ms = fab_now_ms();
	}
	return ret ? say_not(ret, "node", query->node, missed.why) : 0;
}

/* To all entries, which have none yet. 0, -FI_ENODATA, -FI_EINVAL, -FI_ENOMEM. */
static int add_dest(const struct vrb_query *query, struct fi_info *info)
{
	struct vrb_ud_name dest;
	const char *why = "";
	uint16_t service;
	int ret;

	ret = vrb_names_service(query->service, &service, &why);
	if (ret)
		return say_not(ret, "service", query->service, why);
	ret = ask(query, service, &dest);
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

static int ud_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info)
{
	struct search search = { .kind = kind, .query = query };
	int ret = wanted(query, &search.only, &search.service);

	if (!ret)
		ret = vrb_ports_see(kind, add_port, &search);
	ret = vrb_offers_answer(&search.offers, ret, query, info);
	if (ret || !has_dest_node(query))
		return ret;
	ret = add_dest(query, *info);
	if (ret)
		fi_freeinfo(*info);
	return ret;
}

/* ---- endpoints ---- */

/* The queue pair is going to be on the domain's port. */
static int ud_open(struct vrb_ep *ep, const struct fi_info *info)
{
	const struct vrb_device *dev = vrb_domain_of(ep)->dev, *meant = vrb_device_meant(info);

	if (meant == dev || !vrb_device_has(meant, info))
		return 0;
	VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: the source address is one of %s, port %u, and the domain was opened for "
		 "port %u; open one with this info\n", dev->name, meant->port_num, dev->port_num);
	return -FI_EINVAL;
}

static void ud_close(struct vrb_ep *ep)
{
	(void) ep;
}

/* Reset to ready: a queue pair of datagrams needs no other end for it. */
static int make_ready(struct ibv_qp *qp, const struct vrb_device *dev)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = dev->port_num, .qkey = VRB_UD_QKEY };
	int ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	if (!ret)
		ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	return ret ? ret : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* A device reads the address handle of a request when it is posted, also of one that is only to be flushed. */
static int make_own_ah(struct vrb_ep *ep)
{
	const struct vrb_domain *domain = vrb_domain_of(ep);
	struct vrb_ud_name own;
	struct vrb_gids gids;

	if (port_name(domain->dev, &gids, &own))
		ep->own_ah = vrb_ud_ah(domain, &gids, &own);
	if (ep->own_ah)
		return 0;
	VRB_WARN(FI_LOG_EP_CTRL, "no address handle of %s, port %u for itself: ibv_create_ah: %s\n", domain->dev->name,
		 domain->dev->port_num, strerror(errno));
	return errno ? -errno : -FI_EIO;
}

/* What others know it by, once it is enabled. False: the port's GID cannot be read; errno. */
static bool ep_name(const struct vrb_ep *ep, struct vrb_ud_name *name)
{
	const struct fi_info *info = ep->base.info;
	const struct vrb_ud_name *src = name_in(info, info->src_addr, info->src_addrlen);
	struct vrb_gids gids;

	if (!port_name(vrb_domain_of(ep)->dev, &gids, name))
		return false;
	name->qpn = ep->qp->qp_num;
	name->service = src ? src->service : 0;
	return true;
}

static int ud_create(struct vrb_ep *ep)
{
	const struct vrb_device *dev = vrb_domain_of(ep)->dev;
	struct ibv_qp_init_attr attr = vrb_qp_attr(ep);
	struct vrb_ud_name name;
	int ret;

	ret = make_own_ah(ep);
	if (ret)
		return ret;
	attr.qp_type = IBV_QPT_UD;
	ep->qp = ibv_create_qp(vrb_domain_of(ep)->pd, &attr);
	if (!ep->qp) {
		ret = vrb_qp_refused(ep, "ibv_create_qp");
		goto destroy_ah;
	}
	ret = -make_ready(ep->qp, dev);
	if (ret) {
		VRB_WARN(FI_LOG_EP_CTRL, "ibv_modify_qp on %s, port %u: %s\n", dev->name, dev->port_num,
			 strerror(-ret));
		goto destroy_qp;
	}
	ep->inline_max = attr.cap.max_inline_data + VRB_UD_PREFIX;
	ep->state = VRB_EP_CONNECTED;
	if (vrb_params.use_name_server && ep_name(ep, &name) && name.service)
		ep->named = vrb_named_open(&name);
	return 0;

destroy_qp:
	ibv_destroy_qp(ep->qp);
	ep->qp = NULL;
destroy_ah:
	ibv_destroy_ah(ep->own_ah);
	ep->own_ah = NULL;
	return ret;
}

static void ud_destroy(struct vrb_ep *ep)
{
	vrb_named_close(ep->named);
	ep->named = NULL;
	ibv_destroy_qp(ep->qp);
	ep->qp = NULL;
	ibv_destroy_ah(ep->own_ah);
	ep->own_ah = NULL;
	ep->state = VRB_EP_DOWN;
}

static int ud_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct vrb_ep *ep = vrb_ep_of(fid);
	struct vrb_ud_name name;
	size_t room;

	if (!addrlen)
		return -FI_EINVAL;
	if (!ep->qp)
		return -FI_EOPBADSTATE;
	if (!ep_name(ep, &name))
		return -errno;
	room = addr ? *addrlen : 0;
	*addrlen = sizeof(name);
	if (addr)
		memcpy(addr, &name, fab_min(room, sizeof(name)));
	return room < sizeof(name) ? -FI_ETOOSMALL : 0;
}

static struct fi_ops_cm ud_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.getname = ud_getname,
};

/* ---- data ---- */

static ssize_t ud_aim(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr)
{
	const struct vrb_ud_peer *peer = vrb_ud_peer(ep->base.av, addr);
	struct vrb_tx *tx = (struct vrb_tx *) (uintptr_t) wr->wr_id;

	if (!peer || !wr->num_sge || wr->sg_list->length < VRB_UD_PREFIX)
		return -FI_EINVAL;
	tx->len -= VRB_UD_PREFIX;
	wr->sg_list->addr += VRB_UD_PREFIX;
	wr->sg_list->length -= VRB_UD_PREFIX;
	if (!wr->sg_list->length) {
		wr->sg_list++;
		wr->num_sge--;
	}
	wr->wr.ud.ah = peer->ah;
	wr->wr.ud.remote_qpn = peer->name.qpn;
	wr->wr.ud.remote_qkey = VRB_UD_QKEY;
	return 0;
}

static void ud_aim_marker(struct vrb_ep *ep, struct ibv_send_wr *wr)
{
	wr->wr.ud.ah = ep->own_ah;
	wr->wr.ud.remote_qpn = ep->qp->qp_num;
	wr->wr.ud.remote_qkey = VRB_UD_QKEY;
}

void vrb_ud_fill_ops(void)
{
	FAB_OPS_FILL(&ud_cm_ops);
	vrb_ud_av_fill_ops();
}

const struct vrb_kind vrb_ud = {
	.ep_type = FI_EP_DGRAM,
	.suffix = "-dgram",
	.prefix = VRB_UD_PREFIX,
	.getinfo = ud_getinfo,
	.offered = ud_offered,
	.fill = ud_fill,
	.av_open = vrb_ud_av_open,
	.open = ud_open,
	.close = ud_close,
	.create = ud_create,
	.destroy = ud_destroy,
	.halt = vrb_qp_halt,
	.cm = &ud_cm_ops,
	.aim = ud_aim,
	.aim_marker = ud_aim_marker,
	.post_recv = vrb_qp_post_recv,
};
