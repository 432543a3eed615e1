/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The control channel of fi_pingpong: a TCP connection beside the fabric, unless the program has another carrier for
 * the bytes. Every wait is bounded, and lets the provider make progress. The protocol is that of upstream's
 * fi_pingpong, as observed on its sockets:
 *
 *   address    length, 32 bits, network order; address format, 32 bits, sender's order; `length` bytes
 *   in step    client "q\0", then server "a\0"
 *   count      client ten bytes, decimal digits filled up with \0; then server "cnt ok\0"
 *
 * Server and client send their addresses in this order; the client only on connectionless endpoints. They synchronise
 * before each message size, and exchange a count after it.
 */
#include "pp.h"

#include <arpa/inet.h>
#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "common.h"

/* Longer than any fabric address. */
#define NAME_MAX_LEN 4096
#define COUNT_LEN 10

static const char query[] = "q";
static const char answer[] = "a";
static const char count_ok[] = "cnt ok";

/* Wait for `events` on a socket, at most limit_ms. 0, -FI_ETIMEDOUT, -errno. */
static int wait_socket(int fd, short events, int limit_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	int ret;

	do {
		ret = poll(&poll_fd, 1, limit_ms);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		return -errno;
	return ret ? 0 : -FI_ETIMEDOUT;
}

int pp_ctrl_announce(const struct pp *pp, uint16_t port)
{
	char temporary[4096];
	FILE *file;

	if (!pp->opts->src_port || pp->opts->verbose)
		util_err("listening on port %u", port);
	if (!pp->opts->port_file)
		return 0;
	if (snprintf(temporary, sizeof(temporary), "%s.tmp", pp->opts->port_file) >= (int) sizeof(temporary))
		return pp_fail(pp, -FI_EINVAL, "--port-file: the name is too long");
	file = fopen(temporary, "w");
	if (!file)
		return pp_fail(pp, -errno, "open %s", temporary);
	fprintf(file, "%u\n", port);
	if (fclose(file) || rename(temporary, pp->opts->port_file))
		return pp_fail(pp, -errno, "write %s", pp->opts->port_file);
	return 0;
}

static uint16_t addr_port(const struct sockaddr_storage *addr)
{
	return ntohs(addr->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *) addr)->sin6_port :
						   ((const struct sockaddr_in *) addr)->sin_port);
}

static void set_peer(struct pp *pp, const struct sockaddr_storage *addr, socklen_t len)
{
	snprintf(pp->peer, sizeof(pp->peer), "%s",
		 util_addr_text(addr->ss_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN, addr, len));
}

/* Resolve `host` and `port` to *res, which the caller frees with freeaddrinfo(). Without a host: addresses for
 * listening. */
static int resolve(const char *host, uint16_t port, int family, struct addrinfo **res)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE };
	char service[8];
	int ret;

	snprintf(service, sizeof(service), "%u", port);
	ret = getaddrinfo(host, service, &hints, res);
	if (!ret)
		return 0;
	util_err("'%s': %s", host ? host : "listen", gai_strerror(ret));
	return -FI_ENODATA;
}

/* A socket of res' family with SO_REUSEADDR, or -errno. */
static int new_socket(const struct addrinfo *res)
{
	int one = 1, fd;

	fd = socket(res->ai_family, res->ai_socktype | SOCK_CLOEXEC, res->ai_protocol);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	return fd;
}

/* A socket that listens on one of the addresses, or -errno of the last attempt. */
static int listen_any(const struct addrinfo *res)
{
	int fd = -FI_EADDRNOTAVAIL;

	for (; res; res = res->ai_next) {
		fd = new_socket(res);
		if (fd < 0)
			continue;
		if (!bind(fd, res->ai_addr, res->ai_addrlen) && !listen(fd, 1))
			break;
		close(fd);
		fd = -errno;
	}
	return fd;
}

static int accept_client(struct pp *pp, int listener)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	int ret;

	if (getsockname(listener, (struct sockaddr *) &addr, &len))
		return pp_fail(pp, -errno, "getsockname");
	ret = pp_ctrl_announce(pp, addr_port(&addr));
	if (ret)
		return ret;
	ret = wait_socket(listener, POLLIN, pp->opts->accept_ms);
	if (ret)
		return pp_fail(pp, ret, "wait for a client on port %u (-A sets how long)", addr_port(&addr));
	len = sizeof(addr);
	pp->ctrl = accept4(listener, (struct sockaddr *) &addr, &len, SOCK_CLOEXEC);
	if (pp->ctrl < 0)
		return pp_fail(pp, -errno, "accept");
	set_peer(pp, &addr, len);
	return 0;
}

static int open_server(struct pp *pp)
{
	struct addrinfo *res;
	int ret, listener;

	ret = resolve(pp->opts->src, pp->opts->src_port,
		      pp->opts->ipv6 ? AF_INET6 : pp->opts->src ? AF_UNSPEC : AF_INET, &res);
	if (ret)
		return ret;
	listener = listen_any(res);
	freeaddrinfo(res);
	if (listener < 0)
		return pp_fail(pp, listener, "listen on port %u", pp->opts->src_port);
	ret = accept_client(pp, listener);
	close(listener);
	return ret;
}

/* Bind the client's socket, if the options have a source address or port. 0 or -errno. */
static int bind_source(const struct pp *pp, int fd, int family)
{
	struct addrinfo *res;
	int ret;

	if (!pp->opts->src && !pp->opts->src_port)
		return 0;
	ret = resolve(pp->opts->src, pp->opts->src_port, family, &res);
	if (ret)
		return ret;
	ret = bind(fd, res->ai_addr, res->ai_addrlen) ? -errno : 0;
	freeaddrinfo(res);
	return ret;
}

/* Connect within the limit. 0 or -errno. */
static int connect_within(int fd, const struct addrinfo *res, int limit_ms)
{
	socklen_t len = sizeof(int);
	int ret, error = 0;

	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	if (connect(fd, res->ai_addr, res->ai_addrlen) && errno != EINPROGRESS)
		return -errno;
	ret = wait_socket(fd, POLLOUT, limit_ms);
	if (ret)
		return ret;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? -errno : -error;
}

/* Try one address of the server. 0 with pp->ctrl open, or -errno. */
static int connect_one(struct pp *pp, const struct addrinfo *res)
{
	struct sockaddr_storage addr;
	int ret, fd;

	memcpy(&addr, res->ai_addr, res->ai_addrlen);
	set_peer(pp, &addr, res->ai_addrlen);
	fd = new_socket(res);
	if (fd < 0)
		return fd;
	ret = bind_source(pp, fd, res->ai_family);
	if (!ret)
		ret = connect_within(fd, res, pp->opts->wait_ms);
	if (ret)
		close(fd);
	else
		pp->ctrl = fd;
	return ret;
}

static int open_client(struct pp *pp)
{
	struct addrinfo *list, *res;
	int ret;

	ret = resolve(pp->opts->server, pp->opts->dst_port, pp->opts->ipv6 ? AF_INET6 : AF_UNSPEC, &list);
	if (ret)
		return ret;
	ret = -FI_EADDRNOTAVAIL;
	for (res = list; res && ret; res = res->ai_next)
		ret = connect_one(pp, res);
	freeaddrinfo(list);
	if (ret)
		return pp_fail(pp, ret, "connect to the server (is it running there, on this port?)");
	return 0;
}

static int tcp_open(struct pp *pp)
{
	int ret, one = 1;

	ret = pp->opts->server ? open_client(pp) : open_server(pp);
	if (!ret)
		setsockopt(pp->ctrl, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return ret;
}

static void tcp_close(struct pp *pp)
{
	if (pp->ctrl >= 0)
		close(pp->ctrl);
	pp->ctrl = -1;
}

static bool tcp_is_closed(const struct pp *pp, int wait_ms)
{
	struct pollfd reset = { .fd = pp->ctrl };
	ssize_t ret;
	char byte;

	if (wait_ms)
		wait_socket(pp->ctrl, POLLIN, wait_ms);
	/* After a reset, data that the peer wrote before it could be read again and again. */
	if (poll(&reset, 1, 0) > 0)
		return true;
	ret = recv(pp->ctrl, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return !ret || (ret < 0 && errno != EAGAIN && errno != EINTR) || pp_meet_failed(pp);
}

/* The result of a call on the socket. If it would block, wait a little first. */
static ssize_t moved(const struct pp *pp, ssize_t ret, short events)
{
	if (ret > 0)
		return ret;
	if (!ret || errno == EPIPE)
		return -FI_ECONNRESET;
	if (errno != EAGAIN && errno != EINTR)
		return -errno;
	wait_socket(pp->ctrl, events, 1);
	return -FI_EAGAIN;
}

static ssize_t tcp_send(struct pp *pp, const void *buf, size_t len)
{
	return moved(pp, send(pp->ctrl, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT), POLLOUT);
}

static ssize_t tcp_recv(struct pp *pp, void *buf, size_t len)
{
	return moved(pp, recv(pp->ctrl, buf, len, MSG_DONTWAIT), POLLIN);
}

static const struct pp_carrier tcp = {
	.open = tcp_open,
	.close = tcp_close,
	.send = tcp_send,
	.recv = tcp_recv,
	.is_closed = tcp_is_closed,
};

static const struct pp_carrier *carrier(const struct pp *pp)
{
	return pp->opts->carrier ? pp->opts->carrier : &tcp;
}

int pp_ctrl_open(struct pp *pp)
{
	int ret = pp->opts->alone ? 0 : carrier(pp)->open(pp);

	if (!ret && !pp->opts->alone)
		pp_debug(pp, "control channel to %s", pp->peer);
	return ret;
}

void pp_ctrl_close(struct pp *pp)
{
	if (!pp->opts->alone)
		carrier(pp)->close(pp);
}

bool pp_ctrl_is_closed(const struct pp *pp, int wait_ms)
{
	return !pp->opts->alone && carrier(pp)->is_closed(pp, wait_ms);
}

static int peer_ended(const struct pp *pp, const char *what)
{
	return pp_meet_report(pp) ? -FI_ECONNRESET :
	       pp_fail(pp, -FI_ECONNRESET, "wait for %s: the peer has ended", what);
}

/* Send or receive len bytes; `what` names them in messages. */
static int transfer(struct pp *pp, void *buf, size_t len, bool out, const char *what)
{
	struct pp_wait wait = { .start = util_now_ns() };
	size_t done = 0;
	ssize_t ret;
	int err;

	while (done < len) {
		if (!out && !done && pp_meet_failed(pp))
			return peer_ended(pp, what);
		ret = out ? carrier(pp)->send(pp, (char *) buf + done, len - done) :
			    carrier(pp)->recv(pp, (char *) buf + done, len - done);
		if (ret > 0) {
			done += (size_t) ret;
			continue;
		}
		if (ret == -FI_ECONNRESET)
			return peer_ended(pp, what);
		if (ret != -FI_EAGAIN)
			return pp_fail(pp, (int) ret, "%s %s", out ? "send" : "receive", what);
		err = pp_progress(pp);
		if (!err)
			err = pp_wait_tick(pp, &wait, what);
		if (err)
			return err;
	}
	return 0;
}

int pp_ctrl_send(struct pp *pp, const void *buf, size_t len, const char *what)
{
	return transfer(pp, (void *) buf, len, true, what);
}

int pp_ctrl_recv(struct pp *pp, void *buf, size_t len, const char *what)
{
	return transfer(pp, buf, len, false, what);
}

/* Receive a fixed text. Any other text means that the peer is not fi_pingpong. */
static int ctrl_expect(struct pp *pp, const char *text, size_t len, const char *what)
{
	char buf[16];
	int ret;

	ret = pp_ctrl_recv(pp, buf, len, what);
	if (!ret && memcmp(buf, text, len))
		ret = pp_fail(pp, -EPROTO, "wait for %s: the peer sent something else", what);
	return ret;
}

int pp_ctrl_send_name(struct pp *pp, const void *name, size_t len, uint32_t addr_format)
{
	uint32_t net_len = htonl((uint32_t) len);
	int ret;

	ret = pp_ctrl_send(pp, &net_len, sizeof(net_len), "our address length");
	if (!ret)
		ret = pp_ctrl_send(pp, &addr_format, sizeof(addr_format), "our address format");
	if (!ret)
		ret = pp_ctrl_send(pp, name, len, "our address");
	return ret;
}

int pp_ctrl_recv_name(struct pp *pp, void **name, size_t *len, uint32_t *addr_format)
{
	uint32_t net_len;
	void *buf;
	int ret;

	ret = pp_ctrl_recv(pp, &net_len, sizeof(net_len), "the peer's address length");
	if (ret)
		return ret;
	*len = ntohl(net_len);
	if (!*len || *len > NAME_MAX_LEN)
		return pp_fail(pp, -EPROTO, "receive the peer's address: %zu bytes, 1 to %d are allowed", *len,
			       NAME_MAX_LEN);
	ret = pp_ctrl_recv(pp, addr_format, sizeof(*addr_format), "the peer's address format");
	if (ret)
		return ret;
	buf = malloc(*len);
	if (!buf)
		return pp_fail(pp, -FI_ENOMEM, "receive the peer's address");
	ret = pp_ctrl_recv(pp, buf, *len, "the peer's address");
	if (ret) {
		free(buf);
		return ret;
	}
	if (*addr_format > UINT16_MAX)	/* the peer's byte order is the other one */
		*addr_format = bswap_32(*addr_format);
	util_addr_to_host(*addr_format, buf, *len);
	snprintf(pp->peer, sizeof(pp->peer), "%s", util_addr_text(*addr_format, buf, *len));
	pp_debug(pp, "the peer's address is %s", pp->peer);
	*name = buf;
	return 0;
}

int pp_ctrl_sync(struct pp *pp)
{
	const char *what = "the peer to come in step";
	int ret;

	if (!pp->opts->server) {
		ret = ctrl_expect(pp, query, sizeof(query), what);
		return ret ? ret : pp_ctrl_send(pp, answer, sizeof(answer), what);
	}
	ret = pp_ctrl_send(pp, query, sizeof(query), what);
	return ret ? ret : ctrl_expect(pp, answer, sizeof(answer), what);
}

int pp_ctrl_exchange_count(struct pp *pp, uint32_t *cnt)
{
	char digits[COUNT_LEN + 1] = "";
	const char *what = "the count of messages";
	char *end;
	int ret;

	if (pp->opts->server) {
		snprintf(digits, sizeof(digits), "%u", *cnt);
		ret = pp_ctrl_send(pp, digits, COUNT_LEN, what);
		return ret ? ret : ctrl_expect(pp, count_ok, sizeof(count_ok), "the server to take the count");
	}
	ret = pp_ctrl_recv(pp, digits, COUNT_LEN, what);
	if (ret)
		return ret;
	*cnt = (uint32_t) strtoul(digits, &end, 10);
	if (end == digits || *end)
		return pp_fail(pp, -EPROTO, "receive %s: '%s' is not a number", what, digits);
	return pp_ctrl_send(pp, count_ok, sizeof(count_ok), what);
}
