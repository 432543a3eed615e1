/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See the header. */
#define CONFORM_INSIDE
#include "rawsock.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void close_fd(void *arg)
{
	close((int) (intptr_t) arg);
}

void own_fd(struct test *t, int fd)
{
	own(t, close_fd, (void *) (intptr_t) fd);
}

static int new_socket(struct test *t, int family, int flags)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	if (fd < 0)
		FAIL("socket: %s", strerror(errno));
	own_fd(t, fd);
	return fd;
}

int raw_connect(struct test *t, const void *name, size_t len)
{
	int fd = new_socket(t, ((const struct sockaddr *) name)->sa_family, 0);

	if (connect(fd, name, (socklen_t) len))
		FAIL("connect: %s", strerror(errno));
	return fd;
}

int raw_listen(struct test *t, const void *like, size_t len, struct sockaddr_storage *name)
{
	int fd = new_socket(t, ((const struct sockaddr *) like)->sa_family, SOCK_NONBLOCK);
	socklen_t name_len = (socklen_t) len;

	memcpy(name, like, len);
	((struct sockaddr_in *) name)->sin_port = 0;		/* the same place in sockaddr_in6 */
	if (bind(fd, (struct sockaddr *) name, name_len) || listen(fd, 5) ||
	    getsockname(fd, (struct sockaddr *) name, &name_len))
		FAIL("listen: %s", strerror(errno));
	return fd;
}

void need_tcp_wire(void)
{
	if (!has_sockaddr() || (strcmp(run.prov, "tcp") && strcmp(run.prov, "net")))
		ABSENT("for the wire of tcp");
}

void need_tcp_sockets(void)
{
	const char *local = getenv("FI_TCP_LOCAL");

	if (run.ours && (!local || strcmp(local, "0")))
		ABSENT("for connections over TCP (FI_TCP_LOCAL=0)");
}
