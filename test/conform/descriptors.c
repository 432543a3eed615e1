/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The descriptors that the library opens, looked at from beside it.
 * Source: fi_fabric(3).
 */
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "ops.h"
#include "rawsock.h"

enum { FD_MAX = 4096 };

/* Set open[fd] for each descriptor of the process. */
static void list_fds(bool open[FD_MAX])
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd < FD_MAX && fd != dirfd(dir))
			open[fd] = true;
	}
	if (dir)
		closedir(dir);
}

/* A program that the application starts inherits nothing of the library's. */
TEST_PROV(closed_on_exec, FI_MSG)
{
	bool before[FD_MAX] = { false }, now[FD_MAX] = { false };
	unsigned int cnt = 0;
	struct pair p;
	int fd;

	if (!run.ours)
		ABSENT("upstream passes some on");
	list_fds(before);
	p = pair_open(t, .cq_wait = FI_WAIT_FD, .eq_wait = FI_WAIT_FD);
	check_link(p.a, p.b);
	list_fds(now);
	for (fd = 0; fd < FD_MAX; fd++) {
		if (!now[fd] || before[fd])
			continue;
		cnt++;
		if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			FAIL("descriptor %d stays open after exec", fd);
	}
	CHECK(cnt > 0);
}

static int tcp_option(int fd, int level, int option)
{
	socklen_t len = sizeof(int);
	int value = 0;

	return getsockopt(fd, level, option, &value, &len) ? 0 : value;
}

/* A connection of tcp, at both ends, sends small segments at once, and probes a peer that is silent. */
TEST_PROV(tcp_connections_send_at_once_and_probe, FI_MSG, RELIABLE)
{
	bool before[FD_MAX] = { false }, now[FD_MAX] = { false };
	unsigned int cnt = 0;
	struct pair p;
	int fd;

	if (!run.ours || strncmp(run.prov, "tcp", 3))
		ABSENT("for the connections of tcp");
	need_tcp_sockets();
	list_fds(before);
	p = pair_open(t);
	check_link(p.a, p.b);
	list_fds(now);
	for (fd = 0; fd < FD_MAX; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer);

		if (!now[fd] || before[fd] || getpeername(fd, (struct sockaddr *) &peer, &len) ||
		    (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
			continue;
		cnt++;
		CHECK(tcp_option(fd, IPPROTO_TCP, TCP_NODELAY));
		CHECK(tcp_option(fd, SOL_SOCKET, SO_KEEPALIVE));
	}
	CHECK(cnt >= 2);
}
