/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * DGRAM endpoints over unreliable datagram queue pairs: a queue pair on a port, without connection manager. An address
 * vector has the destinations of sends (ud_av.c). The device writes 40 bytes before each datagram into the receive
 * buffer (FI_MSG_PREFIX). Send buffers have this prefix, too, so that buffers look the same at both ends; it is not
 * sent.
 *
 * A send completes when it has left. A datagram for which there is no receive or no endpoint is silently lost.
 */
#include "verbs/ud.h"
#include "verbs/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/ops/ops.h"

struct vrb_ud_ep {
	struct vrb_ep ep;
	struct ibv_ah *own_ah;		/* owned: to this port; NULL before fi_enable */
	struct vrb_named *named;	/* owned: by which others find it (names.h); NULL if they cannot */
};

static struct vrb_ud_ep *ud_of(struct vrb_ep *ep)
{
	return fab_container(ep, struct vrb_ud_ep, ep);
}

/* ---- endpoints ---- */

/* The queue pair will use the domain's port, so the info must name the same. */
static int ud_open(struct vrb_ep *ep, const struct fi_info *info)
{
	const struct vrb_device *dev = vrb_domain_of(ep)->dev, *meant = vrb_device_meant(info);

	if (meant == dev || !vrb_device_has(meant, info))
		return 0;
	VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: the source address belongs to %s, port %u, but the domain was opened "
		 "for port %u; open a domain with this info\n", dev->name, meant->port_num, dev->port_num);
	return -FI_EINVAL;
}

static void ud_close(struct vrb_ep *ep)
{
	(void) ep;
}

/* Move a queue pair from reset to ready. A datagram queue pair needs no peer for this. */
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

/* An address handle for vrb_post_marker(): a device reads the address handle of every posted request, also of one that
 * is flushed. */
static int make_own_ah(struct vrb_ep *ep)
{
	const struct vrb_domain *domain = vrb_domain_of(ep);
	struct vrb_ud_name own;
	struct vrb_gids gids;

	if (vrb_ud_port_name(domain->dev, &gids, &own))
		ud_of(ep)->own_ah = vrb_ud_ah(domain, &gids, &own);
	if (ud_of(ep)->own_ah)
		return 0;
	VRB_WARN(FI_LOG_EP_CTRL, "no address handle of %s, port %u for itself: ibv_create_ah: %s\n", domain->dev->name,
		 domain->dev->port_num, strerror(errno));
	return errno ? -errno : -FI_EIO;
}

/* The name of an enabled endpoint. False: the port's GID cannot be read; errno is set. */
static bool ep_name(const struct vrb_ep *ep, struct vrb_ud_name *name)
{
	const struct fi_info *info = ep->base.info;
	const struct vrb_ud_name *src = vrb_ud_name_in(info, info->src_addr, info->src_addrlen);
	struct vrb_gids gids;

	if (!vrb_ud_port_name(vrb_domain_of(ep)->dev, &gids, name))
		return false;
	name->qpn = ep->qp->qp_num;
	name->service = src ? src->service : 0;
	return true;
}

/* A name in the page of the process. */
static void name_text(const struct vrb_ud_name *name, char text[FI_STATS_TEXT])
{
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, name->gid.raw, gid, sizeof(gid));
	snprintf(text, FI_STATS_TEXT, "ib_ud://[%s]:%u", gid, name->qpn);
}

static int ud_create(struct vrb_ep *ep)
{
	const struct vrb_device *dev = vrb_domain_of(ep)->dev;
	struct ibv_qp_init_attr attr = vrb_qp_attr(ep);
	struct vrb_ud_name name;
	char text[FI_STATS_TEXT];
	int ret;

	ret = make_own_ah(ep);
	if (ret)
		return ret;
	attr.qp_type = IBV_QPT_UD;
	errno = 0;
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
	ep->inline_max = vrb_inline_max(ep, &attr.cap) + VRB_UD_PREFIX;
	ep->state = VRB_EP_CONNECTED;
	if (!ep_name(ep, &name))
		return 0;
	name_text(&name, text);
	fab_stats_ep_name_text(ep->base.stats, text);
	if (vrb_params.use_name_server && name.service)
		ud_of(ep)->named = vrb_named_open(&name);
	return 0;

destroy_qp:
	ibv_destroy_qp(ep->qp);
	ep->qp = NULL;
destroy_ah:
	ibv_destroy_ah(ud_of(ep)->own_ah);
	ud_of(ep)->own_ah = NULL;
	return ret;
}

static void ud_destroy(struct vrb_ep *ep)
{
	vrb_named_close(ud_of(ep)->named);
	ud_of(ep)->named = NULL;
	ibv_destroy_qp(ep->qp);
	ep->qp = NULL;
	ibv_destroy_ah(ud_of(ep)->own_ah);
	ud_of(ep)->own_ah = NULL;
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

static __attribute__((noinline))
struct fi_stats_peer *stats_add(struct vrb_ep *ep, const struct vrb_ud_peer *peer, fi_addr_t addr)
{
	char text[FI_STATS_TEXT];

	name_text(&peer->name, text);
	return fab_stats_peers_add(&ep->peers, ep->base.stats, peer->number, text, addr);
}

static ssize_t ud_aim(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr)
{
	const struct vrb_ud_peer *peer = vrb_ud_peer(ep->base.bound.av, addr);
	struct vrb_tx *tx = (struct vrb_tx *) (uintptr_t) wr->wr_id;

	if (!peer || !wr->num_sge || wr->sg_list->length < VRB_UD_PREFIX)
		return -FI_EINVAL;
	tx->stats = fab_stats_peers_find(&ep->peers, peer->number);
	if (__builtin_expect(!tx->stats, 0))
		tx->stats = stats_add(ep, peer, addr);
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
	wr->wr.ud.ah = ud_of(ep)->own_ah;
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
	.ep_size = sizeof(struct vrb_ud_ep),
	.suffix = "-dgram",
	.prefix = VRB_UD_PREFIX,
	.getinfo = vrb_ud_getinfo,
	.offered = vrb_ud_offered,
	.fill = vrb_ud_fill,
	.av_open = vrb_ud_av_open,
	.open = ud_open,
	.close = ud_close,
	.create = ud_create,
	.destroy = ud_destroy,
	.halt = vrb_qp_halt,
	.cm = &ud_cm_ops,
	.aim = ud_aim,
	.marker_opcode = IBV_WR_SEND,
	.aim_marker = ud_aim_marker,
	.post_recv = vrb_qp_post_recv,
};
