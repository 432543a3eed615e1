/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See jitter.h.
 */
#include "jitter.h"

#include <errno.h>
#include <stdbool.h>
#include "base/bits.h"

#define IOV_MAX_HERE	80		/* more pieces than any call has */

struct fab_sock_ops jitter_sock;

static uint64_t state;
static uint32_t cut_once_in;
static bool on;

uint32_t jitter_dice(uint32_t cnt)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % cnt;
}

static size_t some(size_t len)
{
	if (!on || !len || jitter_dice(cut_once_in))
		return len;
	return 1 + jitter_dice(jitter_dice(2) ? fab_min(len, (size_t) 24) : len);
}

static bool not_now(void)
{
	if (!on || jitter_dice(8))
		return false;
	errno = EAGAIN;
	return true;
}

/* The first bytes of what msg describes, in place. */
static struct msghdr cut(const struct msghdr *msg, struct iovec *iov)
{
	struct msghdr part = *msg;
	size_t len = 0, cnt = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	len = some(len);
	for (; len && cnt < IOV_MAX_HERE && cnt < msg->msg_iovlen; cnt++) {
		iov[cnt] = msg->msg_iov[cnt];
		iov[cnt].iov_len = fab_min(iov[cnt].iov_len, len);
		len -= iov[cnt].iov_len;
	}
	part.msg_iov = iov;
	part.msg_iovlen = cnt;
	return part;
}

static ssize_t jitter_send(int fd, const void *buf, size_t len, int flags)
{
	if (!(flags & MSG_DONTWAIT))
		return fab_sock_libc.send(fd, buf, len, flags);
	return not_now() ? -1 : fab_sock_libc.send(fd, buf, some(len), flags);
}

static ssize_t jitter_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct iovec iov[IOV_MAX_HERE];
	struct msghdr part = cut(msg, iov);

	if (!(flags & MSG_DONTWAIT))
		return fab_sock_libc.sendmsg(fd, msg, flags);
	return not_now() ? -1 : fab_sock_libc.sendmsg(fd, &part, flags);
}

static ssize_t jitter_recv(int fd, void *buf, size_t len, int flags)
{
	return not_now() ? -1 : fab_sock_libc.recv(fd, buf, some(len), flags);
}

static ssize_t jitter_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct iovec iov[IOV_MAX_HERE];
	struct msghdr part = cut(msg, iov);
	ssize_t n = not_now() ? -1 : fab_sock_libc.recvmsg(fd, &part, flags);

	msg->msg_controllen = part.msg_controllen;
	msg->msg_flags = part.msg_flags;
	return n;
}

static int jitter_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	int cnt = fab_sock_libc.epoll_wait(epfd, events, max, timeout_ms);

	for (int i = cnt - 1; on && i > 0; i--) {
		uint32_t other = jitter_dice(i + 1);
		struct epoll_event event = events[i];

		events[i] = events[other];
		events[other] = event;
	}
	return cnt;
}

void jitter_open(void)
{
	on = false;
	jitter_sock = fab_sock_libc;
	jitter_sock.send = jitter_send;
	jitter_sock.sendmsg = jitter_sendmsg;
	jitter_sock.recv = jitter_recv;
	jitter_sock.recvmsg = jitter_recvmsg;
	jitter_sock.epoll_wait = jitter_epoll_wait;
	fab_sock = &jitter_sock;
}

void jitter_close(void)
{
	on = false;
	fab_sock = &fab_sock_libc;
}

void jitter_on(uint64_t seed, uint32_t cut_cnt)
{
	state = seed;
	cut_once_in = cut_cnt;
	on = true;
}

void jitter_off(void)
{
	on = false;
}
