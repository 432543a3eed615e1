/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets of an endpoint: opening them, their events, and errors that ICMP reports.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <linux/errqueue.h>	/* requires struct timespec */
#include <rdma/fi_errno.h>
#include "base/sock.h"
#include "common/net/net.h"
#include "udp/udp.h"

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL	29	/* from linux/in6.h, which conflicts with netinet/in.h */
#endif

#define ERRORS_MAX	16		/* errors read from the kernel in one call */

/* ---- errors reported by ICMP ---- */

static const struct sock_extended_err *find_error(struct msghdr *msg)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if ((cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_RECVERR) ||
		    (cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_RECVERR))
			return (const struct sock_extended_err *) (const void *) CMSG_DATA(cmsg);
	}
	return NULL;
}

static void port_tell(struct udp_ep *ep, int err, const union fab_sockaddr *dest)
{
	/* a peer that has answered may have ended since, which datagrams do not tell */
	bool quiet = ep->complained || ep->heard;
	struct fab_eq *eq = ep->base.bound.eq;
	struct fid *fid = &ep->base.ep_fid.fid;
	fi_addr_t fi_addr = fab_av_find(ep->base.bound.av, dest);
	struct fi_stats_peer *stats = fi_addr == FI_ADDR_NOTAVAIL ? &ep->base.stats->rest :
								    udp_stats(ep, fi_addr, dest);
	char text[FAB_ADDR_STRLEN];

	fab_addr_to_str(&dest->sa, text, sizeof(text));
	FI_LOG(&udp_prov, quiet ? FI_LOG_INFO : FI_LOG_WARN, FI_LOG_EP_DATA,
	       "a datagram to %s did not arrive: %s (ICMP error of the network)%s\n", text, strerror(err),
	       quiet ? "" : "; is the peer running, and is this its address? Further ones of this endpoint are logged "
	       "at level info");
	ep->complained = true;
	stats->losses++;
	fab_stats_event(ep->base.stats, stats, FI_STATS_EV_LOST, (uint64_t) err);
	if (!eq)
		return;
	fab_eq_purge(eq, fid, NULL);
	fab_eq_write_err(eq, fid, fid->context, 0, err, err, dest, fab_addr_len(&dest->sa));
}

/* Read one error from the socket's error queue. False: it is empty. */
static bool read_error(struct udp_port *port)
{
	union {
		struct cmsghdr align;
		uint8_t room[CMSG_SPACE(sizeof(struct sock_extended_err) + sizeof(struct sockaddr_in6))];
	} control;
	union fab_sockaddr dest = { 0 };
	struct msghdr msg = {
		.msg_name = &dest, .msg_namelen = sizeof(dest), .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct sock_extended_err *error;

	if (fab_sock->recvmsg(port->src.fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return false;
	error = find_error(&msg);
	if (error && error->ee_errno && fab_addr_len(&dest.sa))
		port_tell(port->ep, (int) error->ee_errno, &dest);
	return true;
}

bool udp_port_errors(struct udp_port *port)
{
	int cnt = 0;

	while (cnt < ERRORS_MAX && read_error(port))
		cnt++;
	/* a remaining error has no details: clear it, so that it wakes no thread again */
	return cnt || fab_sock_error(port->src.fd);
}

/* ---- engine ---- */

static bool port_poll(struct fab_source *src)
{
	return udp_rx_run(fab_container(src, struct udp_port, src));
}

static void port_ready(struct fab_source *src, uint32_t events)
{
	struct udp_port *port = fab_container(src, struct udp_port, src);
	struct udp_ep *ep = port->ep;

	if (events & EPOLLERR)
		udp_port_errors(port);
	if (events & EPOLLOUT)
		udp_tx_flush(ep);
	if (!(events & EPOLLIN))
		return;
	if (!fab_list_empty(&ep->posted)) {
		if (udp_rx_run(port))
			fab_source_hot(src);
		return;
	}
	fab_source_mod(src, src->events & ~EPOLLIN);
	ep->deaf = true;
}

/* ---- sockets ---- */

/* Send multicast through the domain's interface, and receive it only on the sockets of groups. */
static int set_multicast(int fd, int family, const char *iface)
{
	struct ip_mreqn at = { .imr_ifindex = (int) if_nametoindex(iface) };
	bool v6 = family == AF_INET6;
	int ret;

	ret = fab_sock_set_int(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MULTICAST_HOPS : IP_MULTICAST_TTL,
			       udp_params.multicast_ttl);
	if (!ret && v6)
		ret = fab_sock_set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, at.imr_ifindex);
	else if (!ret && fab_sock->setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &at, sizeof(at)))
		ret = -errno;
	/* kernels without this option for IPv6 deliver other groups as well, but only to endpoints bound to :: */
	fab_sock_set_int(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MULTICAST_ALL : IP_MULTICAST_ALL, 0);
	return ret;
}

static int set_options(int fd, const struct udp_ep *ep, bool shared)
{
	int family = ep->base.info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	bool v6 = family == AF_INET6;
	int ret;

	ret = fab_sock_set_int(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVERR : IP_RECVERR, 1);
	if (!ret && v6)
		ret = fab_sock_set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (!ret && shared)
		ret = fab_sock_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	fab_tclass_mark(&udp_prov, ep->base.info, ep->base.domain->attr.tclass, fd);
	if (!ret && (ep->base.caps & FI_MULTICAST))
		ret = set_multicast(fd, family, ep->base.domain->name);
	return ret;
}

static int open_bound(const struct udp_ep *ep, const union fab_sockaddr *addr, bool shared)
{
	char text[FAB_ADDR_STRLEN];
	int fd, ret;

	fd = fab_sock_open(addr->sa.sa_family, SOCK_DGRAM);
	if (fd < 0) {
		UDP_WARN(FI_LOG_EP_CTRL, "cannot open a socket: %s%s\n", strerror(-fd),
			 fd == -EMFILE || fd == -ENFILE ? "; raise the limit on open files (ulimit -n)" : "");
		return fd;
	}
	ret = set_options(fd, ep, shared);
	if (!ret && fab_sock->bind(fd, &addr->sa, fab_addr_len(&addr->sa)))
		ret = -errno;
	if (!ret)
		return fd;
	fab_addr_to_str(&addr->sa, text, sizeof(text));
	UDP_WARN(FI_LOG_EP_CTRL, "cannot bind to %s: %s\n", text, strerror(-ret));
	fab_sock_close(&fd);
	return ret;
}

int udp_port_open(struct udp_port *port, struct udp_ep *ep, const union fab_sockaddr *addr, bool shared)
{
	int ret;

	memset(&port->src, 0, sizeof(port->src));
	port->ep = ep;
	port->src.ready = port_ready;
	port->src.poll = port_poll;
	port->src.fd = open_bound(ep, addr, shared);
	if (port->src.fd < 0)
		return port->src.fd;
	ret = fab_source_add(ep->base.engine, &port->src, EPOLLIN);
	if (ret)
		fab_sock_close(&port->src.fd);
	else
		fab_list_add_tail(&ep->ports, &port->link);
	return ret;
}

void udp_port_close(struct udp_port *port)
{
	if (port->src.fd < 0)
		return;
	fab_source_del(&port->src);
	fab_list_remove(&port->link);
	fab_sock_close(&port->src.fd);
}
