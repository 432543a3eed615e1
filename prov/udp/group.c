/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Multicast groups, fi_cm(3). Joining to receive opens a socket that is bound to the group's address and port, so that
 * nothing else arrives there. Joining to send gives the address a number, fi_mc_addr(). A join does not wait for
 * anything, so its event is in the EQ when fi_join() returns.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/sock.h"
#include "common/net/net.h"
#include "common/ops/ops.h"
#include "udp/udp.h"

struct udp_group {
	struct fid_mc mc_fid;
	struct udp_ep *ep;		/* borrowed; an endpoint cannot be closed before its groups */
	struct udp_port port;		/* fd is -1 if joined only to send */
	union fab_sockaddr addr;
	bool sends;
};

const union fab_sockaddr *udp_group_addr(const struct udp_ep *ep, fi_addr_t fi_addr)
{
	const struct udp_group *group = fi_addr < UDP_GROUP_MAX ? ep->groups[fi_addr] : NULL;

	return group && group->sends ? &group->addr : NULL;
}

unsigned udp_group_cnt(const struct udp_ep *ep)
{
	unsigned cnt = 0;

	for (unsigned i = 0; i < UDP_GROUP_MAX; i++)
		cnt += !!ep->groups[i];
	return cnt;
}

/* ---- leave ---- */

static int group_close(struct fid *fid)
{
	struct udp_group *group = fab_container(fid, struct udp_group, mc_fid.fid);
	struct udp_ep *ep = group->ep;

	fab_engine_disown(ep->base.engine);
	fab_engine_lock(ep->base.engine);
	udp_port_close(&group->port);
	ep->groups[group->mc_fid.fi_addr] = NULL;
	fab_engine_unlock(ep->base.engine);
	fab_eq_purge(ep->base.bound.eq, fid, NULL);
	free(group);
	return 0;
}

static struct fi_ops group_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = group_close,
};

/* ---- join ---- */

static bool is_multicast(const union fab_sockaddr *addr)
{
	if (addr->sa.sa_family == AF_INET)
		return IN_MULTICAST(ntohl(addr->sin.sin_addr.s_addr));
	return IN6_IS_ADDR_MULTICAST(&addr->sin6.sin6_addr);
}

static int group_refuse(const char *why, int err)
{
	UDP_WARN(FI_LOG_EP_CTRL, "fi_join: %s\n", why);
	return -err;
}

/* Check the arguments of a join. *flags: in, those of the caller; out, FI_SEND and FI_RECV as they apply. */
static int group_check_join(const struct udp_ep *ep, const void *addr, uint64_t *flags)
{
	uint64_t can = ep->base.caps & (FI_SEND | FI_RECV);

	if (*flags & ~(FI_SEND | FI_RECV))
		return group_refuse("flags other than FI_SEND and FI_RECV", FI_EBADFLAGS);
	if (*flags & ~can)
		return group_refuse("the endpoint was opened without the requested direction (FI_SEND or FI_RECV)",
				    FI_EINVAL);
	if (!ep->base.bound.eq)
		return group_refuse("bind an event queue to the endpoint first", FI_ENOEQ);
	if (!ep->base.enabled || ep->closing)
		return group_refuse("the endpoint is not enabled", FI_EOPBADSTATE);
	if (!addr)
		return group_refuse("addr is NULL; pass the socket address of a group", FI_EINVAL);
	if (!*flags)
		*flags = can;
	return 0;
}

static int check_addr(const union fab_sockaddr *addr)
{
	if (is_multicast(addr) && fab_addr_port(&addr->sa))
		return 0;
	return group_refuse("the address is not one of a multicast group (224.0.0.0/4, ff00::/8) with a port",
			    FI_EINVAL);
}

static unsigned iface_of(const struct udp_group *group)
{
	return if_nametoindex(group->ep->base.domain->name);
}

/* Tell the kernel to deliver datagrams for the group on the domain's interface. */
static int subscribe(struct udp_group *group)
{
	struct group_req req = { .gr_interface = iface_of(group) };
	int level = group->addr.sa.sa_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
	char text[FAB_ADDR_STRLEN];
	int err;

	memcpy(&req.gr_group, &group->addr, fab_addr_len(&group->addr.sa));
	if (!fab_sock->setsockopt(group->port.src.fd, level, MCAST_JOIN_GROUP, &req, sizeof(req)))
		return 0;
	err = errno;
	fab_addr_to_str(&group->addr.sa, text, sizeof(text));
	UDP_WARN(FI_LOG_EP_CTRL, "fi_join of %s on interface %s: %s\n", text, group->ep->base.domain->name,
		 strerror(err));
	return -err;
}

/* Open the sockets of a group and give it an address number. Lock held. */
static int group_start(struct udp_group *group, bool receives)
{
	struct udp_ep *ep = group->ep;
	unsigned i = 0;
	int ret = 0;

	while (i < UDP_GROUP_MAX && ep->groups[i])
		i++;
	if (i == UDP_GROUP_MAX)
		return group_refuse("the endpoint has joined as many groups as it can", FI_ENOSPC);
	if (receives)
		ret = udp_port_open(&group->port, ep, &group->addr, true);
	if (receives && !ret) {
		ret = subscribe(group);
		if (ret)
			udp_port_close(&group->port);
	}
	if (ret)
		return ret;
	ep->groups[i] = group;
	group->mc_fid.fi_addr = i;
	return 0;
}

int udp_join(struct fid_ep *ep_fid, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	struct udp_ep *ep = udp_ep_of(&ep_fid->fid);
	struct udp_group *group;
	int ret;

	ret = group_check_join(ep, addr, &flags);
	if (ret)
		return ret;
	group = calloc(1, sizeof(*group));
	if (!group)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&group_fid_ops);
	group->mc_fid.fid = (struct fid) { .fclass = FI_CLASS_MC, .context = context, .ops = &group_fid_ops };
	group->ep = ep;
	group->port.src.fd = -1;
	group->port.cq_flags = FI_MULTICAST;
	group->sends = flags & FI_SEND;
	ret = fab_name_take(&udp_prov, &group->addr, ep->base.info, addr, fab_addr_len(addr));
	if (!ret)
		ret = check_addr(&group->addr);
	if (ret)
		goto free_group;
	if (group->addr.sa.sa_family == AF_INET6 && !group->addr.sin6.sin6_scope_id)
		group->addr.sin6.sin6_scope_id = iface_of(group);	/* ff01:: and ff02:: addresses need a scope */
	fab_engine_lock(ep->base.engine);
	ret = group_start(group, flags & FI_RECV);
	fab_engine_unlock(ep->base.engine);
	if (ret)
		goto free_group;
	ret = fab_eq_write_done(ep->base.bound.eq, FI_JOIN_COMPLETE, &group->mc_fid.fid, context, 0);
	if (ret) {
		group_close(&group->mc_fid.fid);
		return ret;
	}
	*mc = &group->mc_fid;
	return 0;

free_group:
	free(group);
	return ret;
}
