/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sock_test: many TCP sockets and the kernel's ways to wait for them: select, poll and epoll each find the one that has
 * something to read, and no other. Nothing of libfabric but the frame: it shows what the machine does below a provider.
 */
#include "lib/func.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_SOCKETS 512                 /* select() has no more than 1024 descriptors */

struct settings {
	uint32_t cnt;
	int fds[MAX_SOCKETS];
	int epoll_fd;
};

/* Which socket can be read: its index, -1 when there is none within limit_ms, -2 when there are several. */
typedef int find_fn(struct settings *settings, int limit_ms);

static const struct util_opt options[] = {
	{ 'n', "number", "NUMBER", "sockets (default: 64)" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	(void) key;
	return func_number("-n (sockets)", arg, 1, MAX_SOCKETS, &((struct settings *) func->own)->cnt);
}

static int fail(struct func *func, const char *call)
{
	return pp_fail(func->pp, errno ? -errno : -FI_EOTHER, "%s", call);
}

static int find_by_select(struct settings *settings, int limit_ms)
{
	struct timeval limit = { .tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000 };
	int ready, max = 0;
	uint32_t i;
	fd_set set;

	FD_ZERO(&set);
	for (i = 0; i < settings->cnt; i++) {
		if (settings->fds[i] >= FD_SETSIZE)
			return -1;
		FD_SET(settings->fds[i], &set);
		max = settings->fds[i] > max ? settings->fds[i] : max;
	}
	ready = select(max + 1, &set, NULL, NULL, &limit);
	for (i = 0; ready == 1 && i < settings->cnt; i++) {
		if (FD_ISSET(settings->fds[i], &set))
			return (int) i;
	}
	return ready > 1 ? -2 : -1;
}

static int find_by_poll(struct settings *settings, int limit_ms)
{
	struct pollfd list[MAX_SOCKETS];
	int ready;
	uint32_t i;

	for (i = 0; i < settings->cnt; i++)
		list[i] = (struct pollfd) { .fd = settings->fds[i], .events = POLLIN };
	ready = poll(list, settings->cnt, limit_ms);
	for (i = 0; ready == 1 && i < settings->cnt; i++) {
		if (list[i].revents)
			return (int) i;
	}
	return ready > 1 ? -2 : -1;
}

static int find_by_epoll(struct settings *settings, int limit_ms)
{
	struct epoll_event events[2];
	int ready = epoll_wait(settings->epoll_fd, events, 2, limit_ms);

	return ready == 1 ? (int) events[0].data.u32 : ready > 1 ? -2 : -1;
}

/* The address of one end of the control channel, with a port, and its length. */
static int channel_addr(struct func *func, bool peer, uint16_t port, struct sockaddr_storage *addr, socklen_t *len)
{
	int ret;

	*len = sizeof(*addr);
	ret = peer ? getpeername(func->pp->ctrl, (struct sockaddr *) addr, len) :
		     getsockname(func->pp->ctrl, (struct sockaddr *) addr, len);
	if (ret)
		return fail(func, "the control channel's address");
	/* At the same place in both families. */
	((struct sockaddr_in *) addr)->sin_port = htons(port);
	return 0;
}

static int accept_all(struct func *func, int listener)
{
	struct settings *settings = func->own;
	struct pollfd poll_fd = { .fd = listener, .events = POLLIN };
	uint32_t i;

	for (i = 0; i < settings->cnt; i++) {
		if (poll(&poll_fd, 1, func->pp->opts->wait_ms) != 1)
			return pp_fail(func->pp, -FI_ETIMEDOUT, "wait for connection %u", i + 1);
		settings->fds[i] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (settings->fds[i] < 0)
			return fail(func, "accept4");
		/* One at a time, so that both number them alike. */
		FUNC_TRY(func_sync(func));
	}
	return 0;
}

static int connect_all(struct func *func, uint16_t port)
{
	struct settings *settings = func->own;
	struct sockaddr_storage addr;
	socklen_t len;
	uint32_t i;

	FUNC_TRY(channel_addr(func, true, port, &addr, &len));
	for (i = 0; i < settings->cnt; i++) {
		settings->fds[i] = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (settings->fds[i] < 0 || connect(settings->fds[i], (struct sockaddr *) &addr, len))
			return fail(func, "connect");
		FUNC_TRY(func_sync(func));
	}
	return 0;
}

/* Server: listen, tell where, and take the connections. */
static int listen_once(struct func *func)
{
	struct sockaddr_storage addr;
	socklen_t len;
	uint32_t port, none;
	int listener, ret;

	FUNC_TRY(channel_addr(func, false, 0, &addr, &len));
	listener = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0)
		return fail(func, "socket");
	ret = bind(listener, (struct sockaddr *) &addr, len) || listen(listener, MAX_SOCKETS) ||
	      getsockname(listener, (struct sockaddr *) &addr, &len) ? fail(func, "listen") : 0;
	port = htonl(ntohs(((struct sockaddr_in *) &addr)->sin_port));
	if (!ret)
		ret = func_exchange(func, &port, &none, sizeof(port), "the port of the sockets");
	if (!ret)
		ret = accept_all(func, listener);
	close(listener);
	return ret;
}

static int open_all(struct func *func)
{
	struct settings *settings = func->own;
	struct epoll_event event = { .events = EPOLLIN };
	uint32_t port, none = 0, i;

	if (func->client) {
		FUNC_TRY(func_exchange(func, &none, &port, sizeof(port), "the port of the sockets"));
		FUNC_TRY(connect_all(func, (uint16_t) ntohl(port)));
	} else {
		FUNC_TRY(listen_once(func));
	}
	settings->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	for (i = 0; i < settings->cnt; i++) {
		event.data.u32 = i;
		if (epoll_ctl(settings->epoll_fd, EPOLL_CTL_ADD, settings->fds[i], &event))
			return fail(func, "epoll_ctl");
	}
	return 0;
}

/* The client writes a byte to each socket in turn; the server finds it with nothing on the others. */
static int try_all(struct func *func, const char *name, find_fn *find)
{
	struct settings *settings = func->own;
	uint64_t start, looked = 0;
	uint32_t i;
	int found;
	char byte;

	for (i = 0; i < settings->cnt; i++) {
		if (func->client && send(settings->fds[i], "x", 1, MSG_NOSIGNAL) != 1)
			return fail(func, "send");
		if (!func->client) {
			start = util_now_ns();
			found = find(settings, func->pp->opts->wait_ms);
			looked += util_now_ns() - start;
			FUNC_EXPECT(func, found == (int) i, "%s found %d where socket %u can be read", name, found, i);
			if (recv(settings->fds[i], &byte, 1, 0) != 1)
				return fail(func, "recv");
			FUNC_EXPECT(func, find(settings, 0) == -1, "%s found a socket with nothing to read", name);
		}
		FUNC_TRY(func_sync(func));
	}
	if (!func->client)
		printf("%s: %u sockets, %.1f us until the one was found\n", name, settings->cnt,
		       (double) looked / 1000 / settings->cnt);
	return 0;
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	uint32_t i;
	int ret;

	if (func->pp->ctrl < 0)
		return func_skip(func, "with --in-band there is no TCP connection whose addresses can be used");
	ret = open_all(func);
	if (!ret)
		ret = try_all(func, "select", find_by_select);
	if (!ret)
		ret = try_all(func, "poll", find_by_poll);
	if (!ret)
		ret = try_all(func, "epoll", find_by_epoll);
	for (i = 0; i < settings->cnt; i++) {
		if (settings->fds[i] >= 0)
			close(settings->fds[i]);
	}
	if (settings->epoll_fd >= 0)
		close(settings->epoll_fd);
	return ret;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .cnt = 64, .epoll_fd = -1 };
	static const struct func_program program = {
		.about = "Find the one of many TCP sockets that can be read, by select, poll and epoll.",
		.ep_type = FI_EP_MSG,
		.options = options,
		.take = take,
		.no_domain = true,
		.run = run,
	};

	memset(settings.fds, 0xff, sizeof(settings.fds));
	return func_main(argc, argv, &program, &settings);
}
