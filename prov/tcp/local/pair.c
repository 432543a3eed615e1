/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See pair.h.
 */
#include "tcp/local/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "base/forks.h"
#include "base/sock.h"
#include "tcp/local/share.h"

#define PAIR_SIZE	sizeof(struct tcp_pair_mem)
#define ANSWER_MAGIC	0x72696e67u	/* "ring" */
#define ANSWER_NONE	UINT32_MAX	/* bit: the accepting end does not want rings */

/* ---- messages with descriptors ---- */

union control {
	struct cmsghdr hdr;
	char room[CMSG_SPACE(2 * sizeof(int))];
};

ssize_t tcp_pair_send(int fd, const struct iovec *iov, size_t iov_cnt, const int *fds, int cnt)
{
	struct msghdr msg = { .msg_iov = (struct iovec *) iov, .msg_iovlen = iov_cnt };
	union control control = { .hdr = { .cmsg_len = CMSG_LEN(cnt * sizeof(int)), .cmsg_level = SOL_SOCKET,
					   .cmsg_type = SCM_RIGHTS } };
	ssize_t n;

	if (cnt) {
		memcpy(CMSG_DATA(&control.hdr), fds, cnt * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(cnt * sizeof(int));
	}
	n = fab_sock->sendmsg(fd, &msg, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

static void inbox_keep(struct tcp_pair_inbox *inbox, const struct cmsghdr *hdr)
{
	int came = (hdr->cmsg_len - CMSG_LEN(0)) / sizeof(int), fd;

	for (int i = 0; i < came; i++) {
		memcpy(&fd, CMSG_DATA(hdr) + i * sizeof(int), sizeof(fd));
		if (inbox->cnt < 2)
			inbox->fds[inbox->cnt++] = fd;
		else
			fab_sock_close(&fd);
	}
}

/* Returns as recvmsg(2), or -errno. */
static ssize_t inbox_recv(struct tcp_pair_inbox *inbox, int fd, void *buf, size_t len)
{
	union control control;
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = fab_sock->recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return -errno;
	for (struct cmsghdr *hdr = CMSG_FIRSTHDR(&msg); hdr; hdr = CMSG_NXTHDR(&msg, hdr)) {
		if (hdr->cmsg_level == SOL_SOCKET && hdr->cmsg_type == SCM_RIGHTS)
			inbox_keep(inbox, hdr);
	}
	return n;
}

int tcp_pair_recv(int fd, void *buf, size_t size, struct tcp_pair_inbox *inbox)
{
	while (inbox->len < size) {
		ssize_t n = inbox_recv(inbox, fd, (uint8_t *) buf + inbox->len, size - inbox->len);

		if (n < 0 && n != -EINTR)
			return n;
		if (!n)
			return -ECONNRESET;
		if (n > 0)
			inbox->len += n;
	}
	return 0;
}

void tcp_pair_close(struct tcp_pair_inbox *inbox)
{
	while (inbox->cnt)
		fab_sock_close(&inbox->fds[--inbox->cnt]);
}

/* ---- pairs ---- */

/* The look of a stream that has not begun. */
static bool pair_no_look(struct tcp_near *near)
{
	(void) near;
	return false;
}

/* Which ring is whose: the connecting end writes the first one. */
static void pair_assign(struct tcp_pair *pair, bool connects)
{
	struct tcp_pair_mem *mem = pair->mem;
	const struct tcp_ring_writer ring[2] = {
		{ .words = &mem->words[0], .room = mem->first },
		{ .words = &mem->words[1], .room = mem->second, .pos = TCP_PAIR_SECOND_POS },
	};
	const struct tcp_ring_writer *in = &ring[connects];

	pair->out = ring[!connects];
	pair->in = (struct tcp_ring_reader) { .words = in->words, .room = in->room, .pos = in->pos };
}

struct tcp_pair *tcp_pair_make(struct fab_engine *engine, int *fd)
{
	struct tcp_pair *pair = calloc(1, sizeof(*pair));
	void *mem;

	if (!pair)
		return NULL;
	pair->forks = fab_fork_cnt;
	if (tcp_share_make(PAIR_SIZE, &mem, fd))
		goto free_pair;
	pair->mem = mem;
	pair_assign(pair, true);
	if (tcp_ready_add(engine, &pair->near, pair_no_look))
		goto close_fd;
	return pair;

close_fd:
	fab_sock_close(fd);
free_pair:
	tcp_pair_free(pair);
	return NULL;
}

struct tcp_pair *tcp_pair_map(int pair_fd, int ready_fd, uint32_t bit)
{
	struct tcp_pair *pair = bit < TCP_READY_MAX ? calloc(1, sizeof(*pair)) : NULL;
	void *mem;

	if (!pair)
		return NULL;
	pair->forks = fab_fork_cnt;
	pair->peer_bit = bit;
	if (tcp_share_map(pair_fd, PAIR_SIZE, &mem))
		goto free_pair;
	pair->mem = mem;
	pair_assign(pair, false);
	if (tcp_share_map(ready_fd, TCP_READY_SIZE, &mem))
		goto free_pair;
	pair->peer = mem;
	return pair;

free_pair:
	tcp_pair_free(pair);
	return NULL;
}

void tcp_pair_stop(struct tcp_pair *pair, int *fd)
{
	tcp_ready_remove(&pair->near);
	tcp_windows_leave(&pair->visitor, fd);
}

static void pair_free(struct tcp_pair *pair)
{
	tcp_reach_fini(&pair->reach);
	/* a child of fork(2) may have other memory at these addresses */
	if (pair->forks == fab_fork_cnt) {
		tcp_share_unmap(pair->mem, PAIR_SIZE);
		tcp_share_unmap(pair->peer, TCP_READY_SIZE);
	}
	tcp_pair_close(&pair->inbox);
	free(pair);
}

void tcp_pair_free(struct tcp_pair *pair)
{
	if (!pair)
		return;
	tcp_pair_stop(pair, NULL);
	if (tcp_windows_release(&pair->visitor))
		pair_free(pair);
}

static void pair_free_late(struct tcp_visitor *visitor)
{
	pair_free(fab_container(visitor, struct tcp_pair, visitor));
}

void tcp_pair_begin_straight(struct tcp_pair *pair, struct fab_mr_map *map, pid_t pid, int fd)
{
	pair->visitor.free = pair_free_late;
	if (map)
		tcp_windows_join(map, &pair->visitor, &pair->in.words->permit, &pair->in.words->busy, pid, fd);
	if (pid)
		pair->reach = (struct tcp_reach) { .permit = &pair->out.words->permit, .busy = &pair->out.words->busy,
						   .pid = pid };
}

/* ---- the answer ---- */

int tcp_pair_answer(struct tcp_pair *pair, int fd, struct fab_engine *engine)
{
	struct tcp_pair_answer answer = { .magic = ANSWER_MAGIC, .bit = ANSWER_NONE };
	struct iovec iov = { &answer, sizeof(answer) };
	bool can = pair && engine && !tcp_ready_add(engine, &pair->near, pair_no_look);
	int page = -1;
	ssize_t n;

	if (can) {
		answer.bit = pair->near.bit;
		page = tcp_ready_fd(&pair->near);
	}
	n = tcp_pair_send(fd, &iov, 1, &page, can);
	if (n == -ETOOMANYREFS) {
		/* the kernel lets descriptors in flight be no more than open ones */
		tcp_pair_stop(pair, NULL);
		can = false;
		answer.bit = ANSWER_NONE;
		n = tcp_pair_send(fd, &iov, 1, NULL, 0);
	}
	if (n == sizeof(answer))
		return can ? 0 : -ENOTSUP;
	return n < 0 ? n : -ENOBUFS;
}

int tcp_pair_take_answer(struct tcp_pair *pair, int fd)
{
	int ret = tcp_pair_recv(fd, &pair->answer, sizeof(pair->answer), &pair->inbox);
	void *mem;

	if (ret)
		return ret;
	if (pair->answer.magic != ANSWER_MAGIC)
		return -EPROTO;
	if (pair->answer.bit == ANSWER_NONE) {
		tcp_pair_stop(pair, NULL);
		return 0;
	}
	if (pair->inbox.cnt != 1 || pair->answer.bit >= TCP_READY_MAX)
		return -EPROTO;
	ret = tcp_share_map(pair->inbox.fds[0], TCP_READY_SIZE, &mem);
	if (ret)
		return ret;
	pair->peer = mem;
	pair->peer_bit = pair->answer.bit;
	tcp_pair_close(&pair->inbox);
	return 0;
}
