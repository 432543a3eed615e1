/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See greet.h.
 */
#include "tcp/local/local.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/sock.h"
#include "common/net/net.h"
#include "tcp/capture/capture.h"
#include "tcp/params/params.h"
#include "tcp/sock/sock.h"

#define GREETING_MAGIC	0x77656674u	/* "weft" */
#define GREETING_VERSION	2
#define OVERFLOW_UID	65534		/* of all users that the user namespace does not know */

/* ---- addresses ---- */

/* The abstract name of a listener. Returns the length of *un. */
static socklen_t local_name(const union fab_sockaddr *addr, struct sockaddr_un *un)
{
	char text[FAB_ADDR_STRLEN];
	int len;

	fab_addr_to_str(&addr->sa, text, sizeof(text));
	*un = (struct sockaddr_un) { .sun_family = AF_UNIX };
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "libfabric-tcp/%s", text);
	return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

/* A listener of any address has the wildcard in its name. */
static union fab_sockaddr local_any(const union fab_sockaddr *addr)
{
	union fab_sockaddr any = { .sa.sa_family = addr->sa.sa_family };

	fab_addr_set_port(&any.sa, fab_addr_port(&addr->sa));
	return any;
}

bool tcp_local_is_near(const union fab_sockaddr *addr)
{
	return tcp_params.local && fab_net_is_own(addr);
}

/* ---- sockets ---- */

static void local_free(struct tcp_local *local)
{
	tcp_pair_free(local->pair);
	free(local);
}

static void local_release(struct fab_defer *defer)
{
	local_free(fab_container(defer, struct tcp_local, defer));
}

/* Close all descriptors of a link, and make it {-1, NULL}. Returns the memory, which the caller frees; or NULL. */
static struct tcp_local *link_unplug(struct tcp_link *link)
{
	struct tcp_local *local = link->local;

	tcp_capture_end(link->fd);
	if (local && local->pair)
		tcp_pair_stop(local->pair, &link->fd);
	fab_sock_close(&link->fd);
	link->local = NULL;
	if (!local)
		return NULL;
	fab_sock_close(&local->port_fd);
	tcp_pair_close(&local->inbox);
	return local;
}

void tcp_link_close(struct tcp_link *link)
{
	struct tcp_local *local = link_unplug(link);

	if (local)
		local_free(local);
}

void tcp_link_retire(struct tcp_link *link, struct fab_engine *engine)
{
	struct tcp_local *local = link_unplug(link);

	if (!local)
		return;
	local->defer.free = local_release;
	fab_engine_defer(engine, &local->defer);
}

void tcp_link_names(const struct tcp_link *link, union fab_sockaddr *ours, union fab_sockaddr *theirs)
{
	if (link->local) {
		*ours = link->local->ours;
		*theirs = link->local->theirs;
	} else {
		fab_name_local(link->fd, ours);
		fab_name_remote(link->fd, theirs);
	}
}

/* Check that the peer of a connected socket is of the same user. 0: *pid is its process; -EACCES or another -errno. */
static int local_check_user(int fd, pid_t *pid)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof(cred);

	if (fab_sock->getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	*pid = cred.pid;
	return cred.uid == geteuid() && cred.uid != OVERFLOW_UID ? 0 : -EACCES;
}

/* Make the struct of a connected socket. 0: link owns fd. -errno: fd still belongs to the caller. */
static int local_open(int fd, struct tcp_link *link)
{
	struct tcp_local *local;
	pid_t pid = 0;
	int ret = local_check_user(fd, &pid);

	if (ret)
		return ret;
	local = calloc(1, sizeof(*local));
	if (!local)
		return -ENOMEM;
	local->pid = pid;
	local->port_fd = -1;
	*link = (struct tcp_link) { fd, local };
	return 0;
}

int tcp_local_listen(const union fab_sockaddr *addr, int backlog)
{
	struct sockaddr_un un;
	socklen_t len = local_name(addr, &un);
	int fd, ret;

	if (!tcp_params.local)
		return -ENOSYS;
	fd = fab_sock_open(AF_UNIX, SOCK_STREAM);
	if (fd < 0)
		return fd;
	if (!fab_sock->bind(fd, (struct sockaddr *) &un, len) && !fab_sock->listen(fd, backlog))
		return fd;
	ret = -errno;
	fab_sock_close(&fd);
	return ret;
}

int tcp_local_accept(int listen_fd, struct tcp_link *link)
{
	int fd = fab_sock->accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int ret;

	if (fd < 0)
		return -errno;
	ret = local_open(fd, link);
	if (ret)
		fab_sock_close(&fd);
	return ret;
}

/* ---- connecting ---- */

/* Connect to the name of addr. 0: *link is the caller's; -errno. */
static int local_connect(const union fab_sockaddr *addr, struct tcp_link *link)
{
	struct sockaddr_un un;
	socklen_t len = local_name(addr, &un);
	int fd = fab_sock_open(AF_UNIX, SOCK_STREAM), ret;

	if (fd < 0)
		return fd;
	ret = fab_sock->connect(fd, (struct sockaddr *) &un, len) ? -errno : local_open(fd, link);
	if (ret)
		fab_sock_close(&fd);
	return ret;
}

/* Choose the own address as TCP would, and reserve a port unless there is one. 0 or -errno. */
static int local_choose_name(struct tcp_local *local, const union fab_sockaddr *from, int port_fd)
{
	const union fab_sockaddr *to = &local->theirs;
	union fab_sockaddr loopback4 = { .sin = { .sin_family = AF_INET,
						  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) } };
	union fab_sockaddr bound = { 0 };
	uint16_t port = from ? fab_addr_port(&from->sa) : 0;

	if (port_fd >= 0) {
		fab_name_local(port_fd, &bound);
		port = fab_addr_port(&bound.sa);
		if (!port)
			return -EADDRNOTAVAIL;
	}
	if (from && from->sa.sa_family == to->sa.sa_family && !fab_addr_is_any(&from->sa))
		local->ours = *from;
	else if (to->sa.sa_family == AF_INET && fab_addr_is_loopback(&to->sa))
		local->ours = loopback4;
	else
		local->ours = *to;
	fab_addr_set_port(&local->ours.sa, port);
	if (port)
		return 0;
	local->port_fd = tcp_sock_reserve(&local->ours, &local->ours);
	return local->port_fd < 0 ? local->port_fd : 0;
}

/* Send a greeting, with len bytes of a request behind it, over a socket that has not been used. pair_fd: of the pair
 * that is offered, or -1. 0 or -errno. */
static int local_send_greeting(const struct tcp_link *link, const union fab_sockaddr *from,
			       const union fab_sockaddr *to, int pair_fd, const void *request, size_t len)
{
	struct tcp_greeting greeting = { .magic = GREETING_MAGIC, .version = GREETING_VERSION, .from = *from,
					 .to = *to };
	struct iovec iov[2] = { { &greeting, sizeof(greeting) }, { (void *) request, len } };
	int fds[2] = { pair_fd, -1 };
	ssize_t n;

	if (pair_fd >= 0) {
		greeting.pair = TCP_PAIR_LAYOUT;
		greeting.bit = link->local->pair->near.bit;
		fds[1] = tcp_ready_fd(&link->local->pair->near);
	}
	n = tcp_pair_send(link->fd, iov, len ? 2 : 1, fds, pair_fd >= 0 ? 2 : 0);
	if (n < 0)
		return n == -EPIPE ? -ECONNRESET : n;
	return (size_t) n == sizeof(greeting) + len ? 0 : -ENOBUFS;
}

int tcp_local_dial(const union fab_sockaddr *from, const union fab_sockaddr *to, int port_fd,
		   struct fab_engine *engine, const void *request, size_t len, struct tcp_link *link)
{
	const union fab_sockaddr any = local_any(to);
	int ret = local_connect(to, link), pair_fd = -1;

	if (ret == -ECONNREFUSED)
		ret = local_connect(&any, link);
	if (ret)
		return ret;
	link->local->theirs = *to;
	ret = local_choose_name(link->local, from, port_fd);
	if (!ret && engine)
		link->local->pair = tcp_pair_make(engine, &pair_fd);
	if (!ret)
		ret = local_send_greeting(link, &link->local->ours, to, pair_fd, request, len);
	fab_sock_close(&pair_fd);
	if (ret)
		tcp_link_close(link);
	else if (port_fd >= 0)
		link->local->port_fd = port_fd;
	return ret;
}

/* ---- greetings ---- */

/* Take over the addresses in the greeting of a peer that connects to `at`. False: they are not valid. */
static bool local_take_names(struct tcp_local *local, const union fab_sockaddr *at)
{
	local->theirs = local->greeting.from;
	local->ours = local->greeting.to;
	return local->theirs.sa.sa_family == at->sa.sa_family && local->ours.sa.sa_family == at->sa.sa_family &&
	       fab_addr_port(&local->ours.sa) == fab_addr_port(&at->sa) &&
	       (fab_addr_is_any(&at->sa) || fab_addr_equal_host(&local->ours.sa, &at->sa)) &&
	       fab_net_is_own(&local->theirs);
}

int tcp_local_greet(struct tcp_link *link, const union fab_sockaddr *at)
{
	struct tcp_local *local = link->local;
	int ret = tcp_pair_recv(link->fd, &local->greeting, sizeof(local->greeting), &local->inbox);

	if (ret)
		return ret;
	if (local->greeting.magic != GREETING_MAGIC || local->greeting.version != GREETING_VERSION)
		return -EPROTO;
	if (!at)
		return 0;
	if (!local_take_names(local, at))
		return -EPROTO;
	local->owes_answer = local->greeting.pair;
	if (local->greeting.pair == TCP_PAIR_LAYOUT && local->inbox.cnt == 2)
		local->pair = tcp_pair_map(local->inbox.fds[0], local->inbox.fds[1], local->greeting.bit);
	tcp_pair_close(&local->inbox);
	ret = local_send_greeting(link, &local->theirs, &local->ours, -1, NULL, 0);
	return ret == -EAGAIN ? -ENOBUFS : ret;
}
