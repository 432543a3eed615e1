/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See sock.h.
 */
#include "tcp/sock/sock.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/net/net.h"
#include "tcp/params/params.h"

#define SHORTAGE_SILENCE_NS	10000000000ULL
#define OUT_PORTS_MAX		256	/* ports that are tried for one connection when all are in use */
#define KEEPALIVE_IDLE_S	10	/* at most; less for a short FI_TCP_USER_TIMEOUT */
#define KEEPALIVE_INTERVAL_S	5

static int sock_set_options(int fd, const union fab_sockaddr *addr)
{
	int ret = fab_sock_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);

	/* An IPv6 listener leaves IPv4 to another socket: the two are different addresses to an address vector. */
	if (!ret && addr->sa.sa_family == AF_INET6)
		ret = fab_sock_set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	return ret;
}

static int sock_bind_port(int fd, const union fab_sockaddr *addr, uint16_t port)
{
	union fab_sockaddr at = *addr;

	fab_addr_set_port(&at.sa, port);
	return fab_sock->bind(fd, &at.sa, fab_addr_len(&at.sa)) ? -errno : 0;
}

/* Bind to one of the allowed ports, from `start` on. */
static int sock_bind_from(int fd, const union fab_sockaddr *addr, int low, int high, unsigned start)
{
	unsigned cnt = high - low + 1;
	int ret = -EADDRINUSE;

	for (unsigned i = 0; i < cnt && ret == -EADDRINUSE; i++)
		ret = sock_bind_port(fd, addr, low + (start + i) % cnt);
	return ret;
}

/* The same, from a random one on, so that many processes that start together seldom collide. */
static int sock_bind_range(int fd, const union fab_sockaddr *addr, int low, int high)
{
	return sock_bind_from(fd, addr, low, high, fab_random64() % (high - low + 1));
}

static int sock_bind_listening(int fd, const union fab_sockaddr *addr)
{
	int low = tcp_params.port_low, high = tcp_params.port_high, ret;

	if (fab_addr_port(&addr->sa) || !low)
		return sock_bind_port(fd, addr, fab_addr_port(&addr->sa));
	ret = sock_bind_range(fd, addr, low, high);
	if (ret == -EADDRINUSE)
		TCP_WARN(FI_LOG_EP_CTRL, "no port is free from FI_TCP_PORT_LOW_RANGE, %d, to FI_TCP_PORT_HIGH_RANGE, "
			 "%d: widen the range\n", low, high);
	return ret;
}

/* Bind to an unused port if there is one; otherwise to one that is or was used for other destinations. */
static int sock_bind_out(int fd, const union fab_sockaddr *addr)
{
	int low = tcp_params.out_port_low, high = tcp_params.out_port_high, ret;

	if (!low) {
		/* connect() then chooses the port, and may use one that is in use for another destination. */
		fab_sock_set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
		return sock_bind_port(fd, addr, 0);
	}
	ret = sock_bind_range(fd, addr, low, high);
	/* both sockets must allow it, so sockets with a port of their own do so from now on, too */
	fab_sock_set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (ret == -EADDRINUSE)
		ret = sock_bind_range(fd, addr, low, high);
	if (ret == -EADDRINUSE)
		TCP_WARN(FI_LOG_EP_CTRL, "no port is free from FI_TCP_OUT_PORT_LOW_RANGE, %d, to "
			 "FI_TCP_OUT_PORT_HIGH_RANGE, %d: widen the range\n", low, high);
	return ret;
}

int tcp_sock_bind(const union fab_sockaddr *addr, union fab_sockaddr *bound)
{
	char text[FAB_ADDR_STRLEN];
	int fd, ret;

	fd = fab_sock_open(addr->sa.sa_family, SOCK_STREAM);
	if (fd < 0) {
		TCP_WARN(FI_LOG_EP_CTRL, "cannot open a socket: %s\n", strerror(-fd));
		return fd;
	}
	ret = sock_set_options(fd, addr);
	if (!ret)
		ret = sock_bind_listening(fd, addr);
	if (ret) {
		fab_addr_to_str(&addr->sa, text, sizeof(text));
		TCP_WARN(FI_LOG_EP_CTRL, "cannot bind to %s: %s\n", text, strerror(-ret));
		fab_sock_close(&fd);
		return ret;
	}
	fab_name_local(fd, bound);
	return fd;
}

void tcp_sock_shortage(const char *what, int err)
{
	static _Atomic uint64_t silent_until_ns;
	uint64_t now = fab_now_ns(), until = atomic_load(&silent_until_ns);
	struct rlimit lim = { 0 };

	if (now < until || !atomic_compare_exchange_strong(&silent_until_ns, &until, now + SHORTAGE_SILENCE_NS))
		return;
	getrlimit(RLIMIT_NOFILE, &lim);
	TCP_WARN(FI_LOG_EP_CTRL, "%s: %s. The limit on open files is %llu (ulimit -n): raise it. This message is "
		 "repeated after 10 seconds at the earliest\n", what, strerror(err), (unsigned long long) lim.rlim_cur);
}

/* Open a socket, and bind it as tcp_sock_connect() says. Returns the descriptor or -errno, logged. */
static int sock_open_from(const union fab_sockaddr *from)
{
	int fd = fab_sock_open(from->sa.sa_family, SOCK_STREAM), ret = 0;

	if (fd < 0) {
		tcp_sock_shortage("no socket to connect with", -fd);
		return fd;
	}
	if (!fab_addr_is_any(&from->sa) || tcp_params.out_port_low)
		ret = sock_bind_out(fd, from);
	if (ret) {
		char text[FAB_ADDR_STRLEN];

		fab_addr_to_str(&from->sa, text, sizeof(text));
		TCP_WARN(FI_LOG_EP_CTRL, "cannot connect from %s: %s\n", text, strerror(-ret));
		fab_sock_close(&fd);
		return ret;
	}
	return fd;
}

/* 0 or the errno of connect(2), where EINPROGRESS is none. */
static int sock_connect(int fd, const union fab_sockaddr *to)
{
	return fab_sock->connect(fd, &to->sa, fab_addr_len(&to->sa)) && errno != EINPROGRESS ? errno : 0;
}

/* In place of a socket whose port has a connection to this destination already: one with the port behind it. Returns
 * it, or fd if there is none. */
static int sock_next_port(int fd, const union fab_sockaddr *from)
{
	int low = tcp_params.out_port_low, high = tcp_params.out_port_high, next;
	union fab_sockaddr bound = *from;

	fab_name_local(fd, &bound);
	next = fab_sock_open(from->sa.sa_family, SOCK_STREAM);
	if (next < 0)
		return fd;
	fab_sock_set_int(next, SOL_SOCKET, SO_REUSEADDR, 1);
	if (sock_bind_from(next, from, low, high, fab_addr_port(&bound.sa) - low + 1)) {
		fab_sock_close(&next);
		return fd;
	}
	fab_sock_close(&fd);
	return next;
}

int tcp_sock_connect(const union fab_sockaddr *addr, const union fab_sockaddr *to, int *err)
{
	int ports = tcp_params.out_port_low ? tcp_params.out_port_high - tcp_params.out_port_low + 1 : 1;
	union fab_sockaddr from = { .sa.sa_family = to->sa.sa_family };
	int fd, last;

	if (addr->sa.sa_family == to->sa.sa_family)
		from = *addr;
	fd = sock_open_from(&from);
	if (fd < 0)
		return fd;
	*err = sock_connect(fd, to);
	for (int i = 1; i < fab_min(ports, OUT_PORTS_MAX) && *err == EADDRNOTAVAIL; i++) {
		last = fd;
		fd = sock_next_port(fd, &from);
		if (fd == last)
			break;
		*err = sock_connect(fd, to);
	}
	return fd;
}

int tcp_sock_reserve(const union fab_sockaddr *addr, union fab_sockaddr *bound)
{
	int fd = fab_sock_open(addr->sa.sa_family, SOCK_STREAM), ret;

	if (fd < 0)
		return fd;
	ret = tcp_params.out_port_low ? sock_bind_out(fd, addr) : sock_bind_port(fd, addr, 0);
	if (ret) {
		fab_sock_close(&fd);
		return ret;
	}
	fab_name_local(fd, bound);
	return fd;
}

ssize_t tcp_sock_peek(int fd)
{
	char byte;
	ssize_t ret = fab_sock->recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return ret < 0 ? -errno : ret;
}

void tcp_sock_tune(int fd)
{
	int limit_s = fab_max(tcp_params.user_timeout_ms / 1000, 1);
	int interval_s = fab_min(fab_max(limit_s / 4, 1), KEEPALIVE_INTERVAL_S);
	int idle_s = fab_min(fab_max(limit_s / 2, 1), KEEPALIVE_IDLE_S);
	int probes = fab_min(fab_max((limit_s - idle_s) / interval_s, 1), 127);
	int ret = 0;

	if (tcp_params.nodelay)
		ret = fab_sock_set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (!ret && tcp_params.user_timeout_ms) {
		fab_sock_set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
		fab_sock_set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
		fab_sock_set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
		ret = fab_sock_set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, probes);
	}
	if (ret)
		TCP_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "socket option refused: %s\n", strerror(-ret));
}
