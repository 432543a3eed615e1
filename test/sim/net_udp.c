/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See net_udp.h. All datagrams are on one list while they travel; then on that of their socket, until they are read.
 */
#include "sim/net_udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <linux/errqueue.h>	/* requires struct timespec */
#include "base/addr.h"
#include "base/bits.h"

#define ERRORS		16		/* of ICMP that a socket holds; further ones are dropped */
#define DATAGRAM_MAX	65507
#define ROOM_MIN	(1U << 17)	/* bytes that a socket holds to be read, at least */

struct datagram {
	struct datagram *next;
	uint64_t due_ns;
	union fab_sockaddr from, to;
	unsigned node;			/* of the sender */
	size_t len;
	uint8_t bytes[];
};

struct net_udp {
	struct net_udp *next;
	unsigned node;
	bool dead;
	bool shares;			/* SO_REUSEADDR */
	bool joined;			/* the group that it is bound to */
	union fab_sockaddr name;
	struct datagram *in, **in_end;	/* arrived, not read */
	size_t in_len;			/* their bytes */
	int error;			/* what the next call fails with */
	union fab_sockaddr refused[ERRORS];	/* destinations, oldest first */
	unsigned refused_cnt;
};

static struct net_udp *socks;
static struct datagram *flight;
static const struct net_attr *attr;
static net_datagram_fn *watch;

void net_watch_datagrams(net_datagram_fn *who)
{
	watch = who;
}

void net_udp_begin(const struct net_attr *how)
{
	struct datagram *datagram;

	while ((datagram = flight)) {
		flight = datagram->next;
		free(datagram);
	}
	attr = how;
	watch = NULL;
}

static void tell(enum net_fate fate, unsigned node, const struct datagram *datagram)
{
	net_event((uint64_t) fate << 56 ^ (uint64_t) node << 40 ^ datagram->len);
	if (watch)
		watch(fate, node, datagram->bytes, datagram->len);
}

uint32_t net_datagrams(void)
{
	const struct datagram *datagram;
	uint32_t cnt = 0;

	for (datagram = flight; datagram; datagram = datagram->next)
		cnt++;
	for (const struct net_udp *sock = socks; sock; sock = sock->next) {
		for (datagram = sock->in; datagram; datagram = datagram->next)
			cnt++;
	}
	return cnt;
}

static bool one_in(uint32_t n)
{
	return n && !net_random(n);
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/* ---- sockets ---- */

struct net_udp *net_udp_open(unsigned node)
{
	struct net_udp *sock = net_alloc(sizeof(*sock));

	*sock = (struct net_udp) { .next = socks, .node = node };
	sock->in_end = &sock->in;
	socks = sock;
	return sock;
}

void net_udp_kill(struct net_udp *sock)
{
	struct datagram *datagram;

	while ((datagram = sock->in)) {
		sock->in = datagram->next;
		free(datagram);
	}
	sock->in_end = &sock->in;
	sock->in_len = 0;
	sock->refused_cnt = 0;
	sock->error = 0;
	sock->dead = true;
}

void net_udp_close(struct net_udp *sock)
{
	struct net_udp **at = &socks;

	net_udp_kill(sock);
	while (*at != sock)
		at = &(*at)->next;
	*at = sock->next;
	free(sock);
}

static bool is_group(const union fab_sockaddr *addr)
{
	return addr->sa.sa_family == AF_INET6 ? IN6_IS_ADDR_MULTICAST(&addr->sin6.sin6_addr) :
						IN_MULTICAST(ntohl(addr->sin.sin_addr.s_addr));
}

static struct net_udp *bound_to(const union fab_sockaddr *addr)
{
	for (struct net_udp *sock = socks; sock; sock = sock->next) {
		if (!sock->dead && fab_addr_equal(&sock->name.sa, &addr->sa))
			return sock;
	}
	return NULL;
}

int net_udp_bind(struct net_udp *sock, const struct sockaddr *addr)
{
	union fab_sockaddr name = { 0 };
	const struct net_udp *other;

	memcpy(&name, addr, fab_addr_len(addr));
	other = bound_to(&name);
	if (other && (!sock->shares || !other->shares))
		return fail(EADDRINUSE);
	sock->name = name;
	return 0;
}

void net_udp_connect(struct net_udp *sock, int family)
{
	if (family == AF_INET6)
		sock->name.sin6 = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	else
		sock->name.sin = (struct sockaddr_in) {
			.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		};
}

const struct sockaddr *net_udp_name(const struct net_udp *sock)
{
	return &sock->name.sa;
}

int net_udp_setsockopt(struct net_udp *sock, int level, int name, const void *value)
{
	const struct group_req *req = value;

	if (level == SOL_SOCKET && name == SO_REUSEADDR)
		sock->shares = true;
	if (level == SOL_SOCKET || name != MCAST_JOIN_GROUP)
		return 0;
	if (one_in(attr->no_bufs))
		return fail(ENOBUFS);
	sock->joined = fab_addr_equal(&sock->name.sa, (const struct sockaddr *) (const void *) &req->gr_group);
	return 0;
}

int net_udp_error(struct net_udp *sock)
{
	int error = sock->error;

	sock->error = 0;
	return error;
}

/* ---- sending ---- */

/* Bytes of this node that have not arrived: they fill its socket. */
static size_t on_the_way(const struct net_udp *sock)
{
	size_t len = 0;

	for (const struct datagram *datagram = flight; datagram; datagram = datagram->next)
		len += fab_addr_equal(&datagram->from.sa, &sock->name.sa) ? datagram->len : 0;
	return len;
}

static void launch(const struct datagram *what)
{
	struct datagram *datagram = net_alloc(sizeof(*datagram) + what->len);

	memcpy(datagram, what, sizeof(*what) + what->len);
	datagram->due_ns = net_now_ns() + 1 + (attr->delay_ns ? net_random((uint32_t) attr->delay_ns) : 0);
	datagram->next = flight;
	flight = datagram;
	net_arrives_at(datagram->due_ns);
}

ssize_t net_udp_send(struct net_udp *sock, const struct msghdr *msg)
{
	struct datagram *datagram;
	size_t len = 0, done = 0;

	if (sock->dead)
		return fail(EBADF);
	if (sock->error)
		return fail(net_udp_error(sock));
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	if (len > DATAGRAM_MAX)
		return fail(EMSGSIZE);
	if (one_in(attr->no_bufs))
		return fail(ENOBUFS);
	if (on_the_way(sock) >= attr->room)
		return fail(EAGAIN);
	datagram = net_alloc(sizeof(*datagram) + len);
	*datagram = (struct datagram) { .from = sock->name, .node = sock->node, .len = len };
	memcpy(&datagram->to, msg->msg_name, msg->msg_namelen);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		memcpy(datagram->bytes + done, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		done += msg->msg_iov[i].iov_len;
	}
	tell(NET_SENT, sock->node, datagram);
	if (!one_in(attr->lose))
		launch(datagram);
	if (one_in(attr->twice))
		launch(datagram);
	free(datagram);
	return (ssize_t) len;
}

/* A call on many stops at the first that fails, and then fails only if nothing was done before. */
int net_udp_sendmmsg(struct net_udp *sock, struct mmsghdr *msgs, unsigned cnt)
{
	unsigned done = 0;

	for (; done < cnt; done++) {
		ssize_t n = done && one_in(attr->short_io) ? -1 : net_udp_send(sock, &msgs[done].msg_hdr);

		if (n < 0)
			break;
		msgs[done].msg_len = (unsigned) n;
	}
	return done ? (int) done : -1;
}

/* ---- arriving ---- */

static void refuse(struct net_udp *sock, const union fab_sockaddr *dest)
{
	if (sock->refused_cnt == ERRORS)
		return;
	sock->refused[sock->refused_cnt++] = *dest;
	sock->error = ECONNREFUSED;
}

/* The socket takes the datagram, or a copy of it, if it has room. False: it is dropped. */
static bool take(struct net_udp *to, struct datagram *datagram)
{
	if (net_is_cut(datagram->node, to->node) || to->in_len + datagram->len > fab_max(attr->room, ROOM_MIN))
		return false;
	datagram->next = NULL;
	*to->in_end = datagram;
	to->in_end = &datagram->next;
	to->in_len += datagram->len;
	return true;
}

static void arrive_at_group(struct datagram *datagram)
{
	size_t len = sizeof(*datagram) + datagram->len;

	for (struct net_udp *to = socks; to; to = to->next) {
		struct datagram *copy;

		if (to->dead || !to->joined || !fab_addr_equal(&to->name.sa, &datagram->to.sa) || one_in(attr->lose))
			continue;
		copy = memcpy(net_alloc(len), datagram, len);
		if (!take(to, copy))
			free(copy);
	}
	free(datagram);
}

static void arrive(struct datagram *datagram)
{
	struct net_udp *to = bound_to(&datagram->to), *from = bound_to(&datagram->from);

	if (is_group(&datagram->to)) {
		arrive_at_group(datagram);
		return;
	}
	if (to && take(to, datagram))
		return;
	if (!to && from)
		refuse(from, &datagram->to);
	free(datagram);
}

uint64_t net_udp_deliver(void)
{
	struct datagram **at = &flight, *datagram;
	uint64_t next_ns = UINT64_MAX;

	while ((datagram = *at)) {
		if (datagram->due_ns > net_now_ns()) {
			next_ns = fab_min(next_ns, datagram->due_ns);
			at = &datagram->next;
			continue;
		}
		*at = datagram->next;
		arrive(datagram);
	}
	return next_ns;
}

uint32_t net_udp_ready(const struct net_udp *sock)
{
	if (sock->dead)
		return 0;
	return (sock->in ? EPOLLIN : 0U) | (on_the_way(sock) < attr->room ? EPOLLOUT : 0U) |
	       (sock->error || sock->refused_cnt ? EPOLLERR : 0U);
}

/* ---- receiving ---- */

static void give_name(struct msghdr *msg, const union fab_sockaddr *name)
{
	msg->msg_namelen = fab_addr_len(&name->sa);
	memcpy(msg->msg_name, name, msg->msg_namelen);
}

static ssize_t recv_error(struct net_udp *sock, struct msghdr *msg)
{
	struct sock_extended_err error = { .ee_errno = ECONNREFUSED };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	bool v6 = sock->name.sa.sa_family == AF_INET6;

	if (!sock->refused_cnt)
		return fail(EAGAIN);
	error.ee_origin = v6 ? SO_EE_ORIGIN_ICMP6 : SO_EE_ORIGIN_ICMP;
	give_name(msg, &sock->refused[0]);
	cmsg->cmsg_level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
	cmsg->cmsg_type = v6 ? IPV6_RECVERR : IP_RECVERR;
	cmsg->cmsg_len = CMSG_LEN(sizeof(error));
	memcpy(CMSG_DATA(cmsg), &error, sizeof(error));
	msg->msg_controllen = CMSG_SPACE(sizeof(error));
	memmove(sock->refused, sock->refused + 1, --sock->refused_cnt * sizeof(*sock->refused));
	sock->error = sock->refused_cnt ? ECONNREFUSED : 0;
	return 0;
}

ssize_t net_udp_recv(struct net_udp *sock, struct msghdr *msg, int flags)
{
	struct datagram *datagram = sock->in;
	size_t done = 0, len;

	if (sock->dead)
		return fail(EBADF);
	if (flags & MSG_ERRQUEUE)
		return recv_error(sock, msg);
	if (sock->error)
		return fail(net_udp_error(sock));
	if (!datagram)
		return fail(EAGAIN);
	sock->in = datagram->next;
	if (!sock->in)
		sock->in_end = &sock->in;
	sock->in_len -= datagram->len;
	give_name(msg, &datagram->from);
	for (size_t i = 0; i < msg->msg_iovlen && done < datagram->len; i++) {
		size_t part = fab_min(datagram->len - done, msg->msg_iov[i].iov_len);

		memcpy(msg->msg_iov[i].iov_base, datagram->bytes + done, part);
		done += part;
	}
	msg->msg_flags = done < datagram->len ? MSG_TRUNC : 0;
	len = flags & MSG_TRUNC ? datagram->len : done;
	tell(NET_READ, sock->node, datagram);
	free(datagram);
	return (ssize_t) len;
}

int net_udp_recvmmsg(struct net_udp *sock, struct mmsghdr *msgs, unsigned cnt, int flags)
{
	unsigned done = 0;

	for (; done < cnt; done++) {
		ssize_t n = done && one_in(attr->short_io) ? -1 : net_udp_recv(sock, &msgs[done].msg_hdr, flags);

		if (n < 0)
			break;
		msgs[done].msg_len = (unsigned) n;
	}
	return done ? (int) done : -1;
}
