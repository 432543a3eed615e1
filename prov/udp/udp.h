/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp: FI_EP_DGRAM endpoints over UDP sockets. A message is one datagram, with nothing of ours in it; it may be lost,
 * come twice, or out of order, and its source address is what the network says. No state but the endpoint's, no
 * connection, no timer.
 *
 * An endpoint has a socket of its own, and one more for each multicast group that it has joined to receive (a socket
 * that is bound to a unicast address gets no multicast). All of it is guarded by the lock of the endpoint's engine,
 * except what open fixes.
 */
#ifndef UDP_UDP_H
#define UDP_UDP_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "base/addr.h"
#include "base/pool.h"
#include "common/endpoint/endpoint.h"

#define UDP_IOV_LIMIT		8
#define UDP_TX_SIZE		1024	/* sends outstanding on an endpoint, if it does not ask for another number */
#define UDP_TX_SIZE_MAX		65536
#define UDP_RX_SIZE		1024	/* receives posted, likewise */
#define UDP_RX_SIZE_MAX		65536
#define UDP_BATCH		16	/* datagrams a system call, at most */
#define UDP_GROUP_MAX		256	/* multicast groups of an endpoint */

/* Of the environment, read once at initialisation (prov.c). */
struct udp_params {
	char *iface;			/* FI_UDP_IFACE, or NULL */
	size_t tx_size, rx_size;
	int multicast_ttl;		/* routers that a datagram to a group may pass, and one more */
};
extern struct udp_params udp_params;

extern struct fi_provider udp_prov;
extern struct fi_ops_msg udp_msg_ops;	/* ops.c */

#define UDP_WARN(subsys, ...) FI_WARN(&udp_prov, subsys, __VA_ARGS__)

/* A socket of an endpoint. */
struct udp_port {
	struct fab_source src;		/* its fd is owned; -1 while there is none */
	struct udp_ep *ep;
	struct fab_list link;		/* in ep->ports */
	uint64_t cq_flags;		/* what completions of datagrams that arrive here say besides: FI_MULTICAST */
};

struct udp_ep {
	struct fab_ep base;
	struct udp_port port;		/* its own socket: all that it sends, all unicast that it receives */
	struct fab_list ports;		/* that, and those of groups */
	union fab_sockaddr addr;	/* where it is bound, once enabled; what was asked for before */
	bool closing;			/* fi_close has begun: nothing is taken any more */
	bool complained;		/* a warning about an unreachable destination has been logged */

	struct fab_pool rx_pool;	/* struct udp_rx; at most rx_attr->size */
	struct fab_list posted;		/* struct udp_rx, oldest first */
	uint32_t batch;			/* how many datagrams the next receive asks for: follows what there is */
	bool deaf;			/* a port's EPOLLIN is off, because data came and nothing was posted */
	bool want_src, source_err;	/* FI_SOURCE, FI_SOURCE_ERR */
	struct fab_av_watch watch;	/* forgets last_src when the AV changes */
	union fab_sockaddr last_src;	/* of the datagram before, and what the AV calls it: no look-up for another */
	fi_addr_t last_fi_addr;		/* FI_ADDR_NOTAVAIL: look it up */

	struct fab_pool tx_pool;	/* struct udp_tx; at most tx_attr->size */
	struct fab_list txq;		/* struct udp_tx not yet sent, oldest first */
	struct fab_flush flush;
	uint32_t sent_pass;		/* the engine's pass in which something was sent last */

	struct udp_group *groups[UDP_GROUP_MAX];	/* by fi_mc_addr(); borrowed, NULL where there is none */
};

/* The endpoint behind what the application holds: itself, or an alias. */
static inline struct udp_ep *udp_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct udp_ep, base);
}

/* Slots of the provider, fabric and domain. 0 or -FI_E*. */
int udp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
int udp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int udp_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
/* Does an info, whose type is FI_EP_DGRAM, ask for nothing that udp does not offer? 0; -FI_EINVAL, logged;
 * -FI_ENOMEM. */
int udp_info_check(const struct fi_info *info, uint32_t version);

/* ---- tx.c ---- */

/*
 * The one way in for sends (op->code FAB_OP_SEND). Takes and drops the engine lock. 0: the datagram has been given
 * to the kernel or will be, and a completion follows if one was asked for; -FI_EAGAIN: queue or socket full, call
 * again after reading completions; -FI_EINVAL, -FI_EMSGSIZE, -FI_EOPBADSTATE, -FI_ENOMEM, or why the kernel does not
 * take it (-FI_ENETUNREACH ...): nothing was done.
 */
ssize_t udp_submit(struct udp_ep *ep, const struct fab_op *op);
/* Send what is queued, as far as the socket takes it. Lock held. */
void udp_tx_flush(struct udp_ep *ep);
/* Complete the oldest queued send with this context, or all of them, with FI_ECANCELED. False: there is none. Lock
 * held. */
bool udp_tx_cancel(struct udp_ep *ep, const void *context);
void udp_tx_cancel_all(struct udp_ep *ep);
void udp_tx_init(struct udp_ep *ep, const struct fi_tx_attr *attr);
void udp_tx_fini(struct udp_ep *ep);	/* all has been cancelled */

/* ---- rx.c ---- */

/* The one way in for receives (FAB_OP_RECV). Takes and drops the lock. 0: exactly one completion will follow;
 * -FI_EAGAIN, -FI_EOPBADSTATE, -FI_ENOMEM: nothing was done. */
ssize_t udp_post_recv(struct udp_ep *ep, const struct fab_op *op);
/* Complete the oldest posted receive with this context, or all of them, with FI_ECANCELED. False: there is none. Lock
 * held. */
bool udp_rx_cancel(struct udp_ep *ep, const void *context);
void udp_rx_cancel_all(struct udp_ep *ep);
/* Receive what port has for receives that are posted, in one system call. True if there was anything. Lock held. */
bool udp_rx_run(struct udp_port *port);
/* The rx side watches the AV from init to fini. No lock held. */
void udp_rx_init(struct udp_ep *ep, const struct fi_rx_attr *attr);
void udp_rx_fini(struct udp_ep *ep);	/* all has been cancelled */

/* ---- port.c ---- */

/* Open a socket of the endpoint's family, bind it to addr (port 0: any that is free; shared: others may be bound
 * there as well), and let the engine watch it. 0 or -FI_E*, logged; then nothing is left open. Lock held. */
int udp_port_open(struct udp_port *port, struct udp_ep *ep, const union fab_sockaddr *addr, bool shared);
/* Lock held; idempotent. */
void udp_port_close(struct udp_port *port);
/* Read what the kernel has to say about datagrams that were sent from this socket and did not arrive (ICMP). Each is
 * told: as an error event if the endpoint has an EQ, of which one at most stands unread, and in the log. True if there
 * was anything. Lock held. */
bool udp_port_errors(struct udp_port *port);

/* ---- group.c: multicast ---- */

/* The address of a group that this endpoint has joined to send, by its fi_mc_addr(), or NULL. Lock held. */
const union fab_sockaddr *udp_group_addr(const struct udp_ep *ep, fi_addr_t fi_addr);
/* fi_join(3): the slot of endpoints with FI_MULTICAST. 0; -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOEQ, -FI_EOPBADSTATE (all
 * logged), -FI_E* of the system. */
int udp_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);
/* Groups joined and not yet left. Lock held. */
unsigned udp_group_cnt(const struct udp_ep *ep);

#endif
