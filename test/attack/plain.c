/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A server of plain sockets, and its honest client: what remains of the throughput of a program without any library,
 * which reads what comes and answers whom it knows. A message has HONEST_LEN bytes, the answer a byte; 16 are under
 * way.
 */
#include "attack.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WINDOW		16
#define EVENTS		64
#define HONEST_BYTE	'h'
#define ECHO_MS		20

static void must(long ret, const char *what)
{
	if (ret < 0)
		give_up("%s: %s", what, strerror(errno));
}

static void watch(int epfd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	must(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

/* Read what has come, and answer what is honest. */
static void read_stream(int fd)
{
	static char in[64 * 1024], answers[sizeof(in) / HONEST_LEN];
	ssize_t len = recv(fd, in, sizeof(in), MSG_DONTWAIT);

	if (!len || (len < 0 && errno != EAGAIN))
		close(fd);
	else if (len > 0 && in[0] == HONEST_BYTE)
		must(send(fd, answers, len / HONEST_LEN, MSG_NOSIGNAL), "send");
}

static void read_packets(int fd)
{
	char in[2048];

	for (int i = 0; i < EVENTS; i++) {
		struct sockaddr_in from;
		socklen_t from_len = sizeof(from);
		ssize_t len = recvfrom(fd, in, sizeof(in), MSG_DONTWAIT, (struct sockaddr *) &from, &from_len);

		if (len < 0)
			return;
		if (len == HONEST_LEN && in[0] == HONEST_BYTE)
			sendto(fd, in, len, 0, (const struct sockaddr *) &from, from_len);
	}
}

_Noreturn void serve_plainly(enum kind kind)
{
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	int fd = socket(AF_INET, (kind == DGRAM ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	must(bind(fd, (const struct sockaddr *) &addr, sizeof(addr)), "bind");
	must(getsockname(fd, (struct sockaddr *) &addr, &len), "getsockname");
	if (kind != DGRAM)
		must(listen(fd, SOMAXCONN), "listen");
	watch(epfd, fd);
	page->server = addr;
	SET(ready, 1);
	for (;;) {
		struct epoll_event event[EVENTS];
		int cnt = epoll_wait(epfd, event, EVENTS, -1);

		for (int i = 0; i < cnt; i++) {
			if (event[i].data.fd != fd) {
				read_stream(event[i].data.fd);
			} else if (kind == DGRAM) {
				read_packets(fd);
			} else {
				int stream = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

				if (stream >= 0)
					watch(epfd, stream);
			}
		}
	}
}

static _Noreturn void echo_packets(int fd)
{
	char out[HONEST_LEN] = { HONEST_BYTE }, in[HONEST_LEN];
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	for (;;) {
		send(fd, out, sizeof(out), 0);
		if (poll(&pfd, 1, ECHO_MS) == 1 && recv(fd, in, sizeof(in), MSG_DONTWAIT) == HONEST_LEN)
			SET(done, page->done + 1);
	}
}

_Noreturn void be_plain(enum kind kind)
{
	int fd = socket(AF_INET, (kind == DGRAM ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	char out[HONEST_LEN] = { HONEST_BYTE }, answers[WINDOW];
	int under_way = 0;

	memset(out, HONEST_BYTE, sizeof(out));		/* wherever a read of the server begins */
	must(connect(fd, (const struct sockaddr *) &page->server, sizeof(page->server)), "connect");
	if (kind == DGRAM)
		echo_packets(fd);
	for (;;) {
		ssize_t len;

		for (; under_way < WINDOW; under_way++)
			must(send(fd, out, sizeof(out), MSG_NOSIGNAL), "send");
		len = recv(fd, answers, sizeof(answers), 0);
		must(len, "recv");
		if (!len)
			give_up("the server has hung up on an honest client");
		under_way -= len;
		SET(done, page->done + len);
	}
}
