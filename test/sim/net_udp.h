/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The UDP sockets of the simulated kernel (net.h), of IPv4 and IPv6. A datagram may be lost, arrive twice, and overtake
 * others; one to a multicast group arrives at each socket that is bound to the group and has joined it. A socket
 * drops those that it has no room for. Where no socket is bound to the destination, ICMP tells the sender, whose next
 * call then fails, as that of a Linux socket with IP_RECVERR. Calls set errno as those of their names.
 */
#ifndef TEST_SIM_NET_UDP_H
#define TEST_SIM_NET_UDP_H

#include <stdbool.h>
#include <sys/socket.h>
#include "sim/net.h"

struct net_udp;

/* All sockets have been closed. attr: borrowed until the next call. */
void net_udp_begin(const struct net_attr *attr);
/* A socket of this node; net_udp_close() frees it. */
struct net_udp *net_udp_open(unsigned node);
void net_udp_close(struct net_udp *sock);
/* Its process is killed: nothing arrives any more, and calls fail. */
void net_udp_kill(struct net_udp *sock);

int net_udp_bind(struct net_udp *sock, const struct sockaddr *addr);
/* It has a name afterwards, the loopback address. Nothing is sent or received by such a socket. */
void net_udp_connect(struct net_udp *sock, int family);
const struct sockaddr *net_udp_name(const struct net_udp *sock);
/* setsockopt(2): SO_REUSEADDR and MCAST_JOIN_GROUP are known, others are ignored. */
int net_udp_setsockopt(struct net_udp *sock, int level, int name, const void *value);
ssize_t net_udp_send(struct net_udp *sock, const struct msghdr *msg);
/* recvmsg(2); with MSG_ERRQUEUE an error that ICMP has reported. */
ssize_t net_udp_recv(struct net_udp *sock, struct msghdr *msg, int flags);
int net_udp_sendmmsg(struct net_udp *sock, struct mmsghdr *msgs, unsigned cnt);
int net_udp_recvmmsg(struct net_udp *sock, struct mmsghdr *msgs, unsigned cnt, int flags);
/* SO_ERROR: 0 or an errno, which is cleared. */
int net_udp_error(struct net_udp *sock);
/* Events of epoll(7). */
uint32_t net_udp_ready(const struct net_udp *sock);

/* Deliver what is due. Returns when the next datagram arrives; UINT64_MAX: none is on its way. */
uint64_t net_udp_deliver(void);

#endif
