/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp: FI_EP_DGRAM endpoints over UDP sockets. A message is one datagram without a header of ours. It may be lost,
 * duplicated or reordered, and its source address is not verified. There are no connections and no timers; all state
 * belongs to an endpoint.
 *
 * An endpoint has one socket, and another one for each multicast group that it has joined to receive: a socket that is
 * bound to a unicast address receives no multicast. The lock of the endpoint's engine ("lock held") guards all fields,
 * except those that do not change after open.
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

/* Parameters of the environment, read once at initialisation (prov.c). */
struct udp_params {
	char *iface;			/* FI_UDP_IFACE, or NULL */
	size_t tx_size, rx_size;
	int multicast_ttl;		/* IP_MULTICAST_TTL: 1 for the local network, and 1 more for each router */
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
	uint64_t cq_flags;		/* added to the flags of completions of its datagrams: FI_MULTICAST or 0 */
};

struct udp_ep {
	struct fab_ep base;
	struct udp_port port;		/* its own socket: for all sends, and for unicast receives */
	struct fab_list ports;		/* struct udp_port.link: port, and those of groups */
	bool closing;			/* fi_close has begun: new operations are refused */
	bool complained;		/* a warning about an unreachable destination has been logged */
	bool heard;			/* datagrams have arrived */

	struct fab_pool rx_pool;	/* struct udp_rx; at most rx_attr->size */
	struct fab_list posted;		/* struct udp_rx, oldest first */
	uint32_t batch;			/* datagrams that the next recvmmsg() asks for: adapts to the traffic */
	bool deaf;			/* a port's EPOLLIN is off: a datagram came while no receive was posted */
	bool want_src, source_err;	/* FI_SOURCE, FI_SOURCE_ERR */
	struct fab_av_watch watch;	/* forgets last_src and peers when the AV changes */
	union fab_sockaddr last_src;	/* source of the previous datagram: the next from there needs no look-up */
	fi_addr_t last_fi_addr;		/* of last_src; FI_ADDR_NOTAVAIL: look it up */
	struct fi_stats_peer *last_stats;	/* borrowed: of last_src, in the page of the process */

	struct fab_pool tx_pool;	/* struct udp_tx; at most tx_attr->size */
	struct fab_list txq;		/* struct udp_tx not yet sent, oldest first */
	struct fab_flush flush;
	uint32_t sent_pass;		/* the engine's pass in which something was sent last */

	struct fab_stats_peers peers;	/* records of peers, by fi_addr_t */
	struct fab_survey survey;

	struct udp_group *groups[UDP_GROUP_MAX];	/* by fi_mc_addr(); borrowed, NULL where there is none */
};

/* The endpoint of a fid, which may be an alias. Any thread. */
static inline struct udp_ep *udp_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct udp_ep, base);
}

/* fi_getinfo(3) of the provider. 0 with a list that the caller frees, or -FI_E*. Any thread. */
int udp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
/* fi_fabric(3). 0 or -FI_E*. */
int udp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
/* fi_endpoint(3): the domain's ep_init. */
fab_ep_init_fn udp_ep_init;
/* Check that an info asks for nothing that udp does not offer. 0; -FI_EINVAL, logged; -FI_ENOMEM. */
int udp_info_check(const struct fi_info *info, uint32_t version);

/* ---- tx.c ---- */

/*
 * Send a datagram; all sends come here (op->code is FAB_OP_SEND). Lock held. 0: the kernel has the
 * datagram or will get it, and a completion follows if one was asked for. -FI_EAGAIN: queue or socket are full; the
 * caller tries again after reading completions. -FI_EINVAL, -FI_EMSGSIZE, -FI_EOPBADSTATE, -FI_ENOMEM, or the error of
 * the kernel (-FI_ENETUNREACH ...): nothing was done.
 */
int udp_submit(struct fab_ep *ep, const struct fab_op *op);
/* Send queued datagrams, as many as the socket takes. Lock held. */
void udp_tx_flush(struct udp_ep *ep);
/* Complete the oldest queued send with this context with FI_ECANCELED. False: there is none. Lock held. */
bool udp_tx_cancel(struct udp_ep *ep, const void *context);
/* Complete all queued sends with FI_ECANCELED. Lock held. */
void udp_tx_cancel_all(struct udp_ep *ep);
/* Prepare the sending half of a new endpoint. Cannot fail. */
void udp_tx_init(struct udp_ep *ep, const struct fi_tx_attr *attr);
/* Free the sending half. All sends have been cancelled. */
void udp_tx_fini(struct udp_ep *ep);

/* The record of the peer with this fi_addr_t and address in the page of the process. Lock held. */
struct fi_stats_peer *udp_stats_add(struct udp_ep *ep, fi_addr_t fi_addr, const union fab_sockaddr *addr);
static inline struct fi_stats_peer *udp_stats(struct udp_ep *ep, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct fi_stats_peer *peer = fab_stats_peers_find(&ep->peers, fi_addr);

	return __builtin_expect(peer != NULL, 1) ? peer : udp_stats_add(ep, fi_addr, addr);
}
/* Write the sends that wait to that page. Returns their number. Lock held. */
uint64_t udp_tx_survey(struct udp_ep *ep);

/* ---- rx.c ---- */

/* Post a receive; all receives come here (op->code is FAB_OP_RECV). Lock held. 0: exactly one completion
 * will follow. -FI_EAGAIN, -FI_EOPBADSTATE, -FI_ENOMEM: nothing was done. */
int udp_post_recv(struct fab_ep *ep, const struct fab_op *op);
/* Complete the oldest posted receive with this context with FI_ECANCELED. False: there is none. Lock held. */
bool udp_rx_cancel(struct udp_ep *ep, const void *context);
/* Complete all posted receives with FI_ECANCELED. Lock held. */
void udp_rx_cancel_all(struct udp_ep *ep);
/* Write the receives that wait to the page of the process. Lock held. */
void udp_rx_survey(struct udp_ep *ep);
/* Receive datagrams of this socket into posted receives, by one system call. True if there were any. Lock held. */
bool udp_rx_run(struct udp_port *port);
/* Prepare the receiving half of a new endpoint, and ep->watch, which ep.c registers. Cannot fail. */
void udp_rx_init(struct udp_ep *ep, const struct fi_rx_attr *attr);
/* Free the receiving half. All receives have been cancelled, and ep->watch is not registered any more. */
void udp_rx_fini(struct udp_ep *ep);

/* ---- port.c ---- */

/* Open a socket of the endpoint's family, bind it to addr (port 0: any free port; shared: others may bind to the same
 * address), and add it to the engine. 0; or -FI_E*, logged, with nothing left open. Lock held. */
int udp_port_open(struct udp_port *port, struct udp_ep *ep, const union fab_sockaddr *addr, bool shared);
/* Close the socket. Idempotent. Lock held. */
void udp_port_close(struct udp_port *port);
/* Read the socket's error queue: ICMP errors for datagrams that were sent and did not arrive. Each is logged: as a
 * warning the first one of an endpoint that has received nothing so far, and perhaps has wrong addresses. If the
 * endpoint has an EQ, each is also written there as an error event, in place of an earlier one that is still unread.
 * True if there were any. Lock held. */
bool udp_port_errors(struct udp_port *port);

/* ---- group.c: multicast ---- */

/* The address of a group that this endpoint has joined to send, by its fi_mc_addr(); borrowed. NULL: there is none.
 * Lock held. */
const union fab_sockaddr *udp_group_addr(const struct udp_ep *ep, fi_addr_t fi_addr);
/* fi_join(3) of endpoints with FI_MULTICAST. 0; -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOEQ or -FI_EOPBADSTATE, logged; or
 * -FI_E* of the system. */
int udp_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);
/* Number of groups that the endpoint has joined and not left. Lock held. */
unsigned udp_group_cnt(const struct udp_ep *ep);

#endif
