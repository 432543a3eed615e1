/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the kernel may answer to the calls of udp: no room, no permission, an error about one datagram of many, any call
 * failing. Two endpoints in this thread, manual progress; calls on descriptors are replaced through fab_sock.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/sock.h"
#include "base/unit.h"

/* ---- what fails ---- */

static int send_errno;			/* the next sends fail so, send_cnt of them */
static int send_cnt;
static long until;			/* calls until the one that fails; 0: none does */

static bool fails(int *cnt)
{
	if (*cnt <= 0)
		return false;
	--*cnt;
	errno = send_errno;
	return true;
}

static ssize_t my_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return fails(&send_cnt) ? -1 : fab_sock_libc.sendmsg(fd, msg, flags);
}

static int my_sendmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags)
{
	return fails(&send_cnt) ? -1 : fab_sock_libc.sendmmsg(fd, msgs, cnt, flags);
}

/* Of any call that can fail: is this the one? */
static bool nth(void)
{
	if (!until || --until)
		return false;
	errno = EIO;
	return true;
}

#define NTH(name, type, params, args)						\
	static type nth_##name params						\
	{									\
		return nth() ? -1 : fab_sock_libc.name args;			\
	}
NTH(socket, int, (int family, int type, int protocol), (family, type, protocol))
NTH(bind, int, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len))
NTH(setsockopt, int, (int fd, int level, int name, const void *value, socklen_t len), (fd, level, name, value, len))
NTH(sendmsg, ssize_t, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))
NTH(sendmmsg, int, (int fd, struct mmsghdr *msgs, unsigned int cnt, int flags), (fd, msgs, cnt, flags))
NTH(recvmmsg, int, (int fd, struct mmsghdr *msgs, unsigned int cnt, int flags, struct timespec *timeout),
    (fd, msgs, cnt, flags, timeout))
NTH(epoll_ctl, int, (int epfd, int op, int fd, struct epoll_event *event), (epfd, op, fd, event))

static struct fab_sock_ops calls;

static void use_calls(bool any)
{
	calls = fab_sock_libc;
	calls.sendmsg = any ? nth_sendmsg : my_sendmsg;
	calls.sendmmsg = any ? nth_sendmmsg : my_sendmmsg;
	if (any) {
		calls.socket = nth_socket;
		calls.bind = nth_bind;
		calls.setsockopt = nth_setsockopt;
		calls.recvmmsg = nth_recvmmsg;
		calls.epoll_ctl = nth_epoll_ctl;
	}
	fab_sock = &calls;
}

/* ---- two endpoints ---- */

struct end {
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer;
};

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct end a, b;
} net;

static int end_open(struct end *end)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	assert_int_equal(fi_cq_open(net.domain, &cq_attr, &end->cq, NULL), 0);
	assert_int_equal(fi_av_open(net.domain, &av_attr, &end->av, NULL), 0);
	assert_int_equal(fi_endpoint(net.domain, net.info, &end->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(end->ep, &end->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(end->ep, &end->av->fid, 0), 0);
	return fi_enable(end->ep);
}

static void end_close(struct end *end)
{
	assert_int_equal(fi_close(&end->ep->fid), 0);
	assert_int_equal(fi_close(&end->av->fid), 0);
	assert_int_equal(fi_close(&end->cq->fid), 0);
}

static void meet(struct end *from, const struct end *to)
{
	uint8_t name[64];
	size_t len = sizeof(name);

	assert_int_equal(fi_getname(&to->ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(from->av, name, 1, &from->peer, 0, NULL), 1);
}

static void domain_open(void)
{
	struct fi_info *hints = fi_allocinfo();

	memset(&net, 0, sizeof(net));
	hints->fabric_attr->prov_name = strdup("udp");
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	assert_int_equal(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &net.info), 0);
	fi_freeinfo(hints);
	assert_int_equal(fi_fabric(net.info->fabric_attr, &net.fabric, NULL), 0);
	assert_int_equal(fi_domain(net.fabric, net.info, &net.domain, NULL), 0);
}

static void domain_close(void)
{
	assert_int_equal(fi_close(&net.domain->fid), 0);
	assert_int_equal(fi_close(&net.fabric->fid), 0);
	fi_freeinfo(net.info);
}

static int net_open(void **state)
{
	(void) state;
	send_cnt = 0;
	use_calls(false);
	domain_open();
	assert_int_equal(end_open(&net.a), 0);
	assert_int_equal(end_open(&net.b), 0);
	meet(&net.a, &net.b);
	return 0;
}

static int net_close(void **state)
{
	(void) state;
	end_close(&net.a);
	end_close(&net.b);
	domain_close();
	fab_sock = &fab_sock_libc;
	return 0;
}

/* The next completion: its context, or that of an error, whose code goes to *err. */
static void *next(struct end *end, int *err)
{
	struct fi_cq_err_entry error = { 0 };
	struct fi_cq_msg_entry entry;
	ssize_t ret;

	*err = 0;
	while ((ret = fi_cq_read(end->cq, &entry, 1)) == -FI_EAGAIN)
		;
	if (ret == 1)
		return entry.op_context;
	assert_int_equal(ret, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(end->cq, &error, 0), 1);
	*err = error.err;
	return error.op_context;
}

static void expect(struct end *end, void *context, int err)
{
	int got;

	assert_ptr_equal(next(end, &got), context);
	assert_int_equal(got, err);
}

/* ---- tests ---- */

/* No room: a send waits for it and completes, an inject is for the caller to try again. */
static void no_room_is_waited_for(void **state)
{
	static const int errnos[] = { EAGAIN, EINTR, ENOBUFS };
	char in[2][4], out[4] = "send", ctx[3];

	(void) state;
	for (size_t i = 0; i < fab_countof(errnos); i++) {
		send_errno = errnos[i];
		send_cnt = 1;
		assert_int_equal(fi_inject(net.a.ep, "away", 4, net.a.peer), -FI_EAGAIN);
	}
	fi_recv(net.b.ep, in[0], 4, NULL, FI_ADDR_UNSPEC, &ctx[0]);
	fi_recv(net.b.ep, in[1], 4, NULL, FI_ADDR_UNSPEC, &ctx[1]);
	send_cnt = 1;
	assert_int_equal(fi_inject(net.a.ep, "away", 4, net.a.peer), -FI_EAGAIN);
	send_cnt = 2;
	assert_int_equal(fi_send(net.a.ep, out, 4, NULL, net.a.peer, &ctx[2]), 0);
	expect(&net.a, &ctx[2], 0);
	expect(&net.b, &ctx[0], 0);
	assert_memory_equal(in[0], "send", 4);
	assert_int_equal(fi_inject(net.a.ep, "away", 4, net.a.peer), 0);
	expect(&net.b, &ctx[1], 0);
}

/* What the kernel does not take at all is told at once, and nothing has happened. */
static void refusal_is_returned(void **state)
{
	char ctx;

	(void) state;
	send_errno = EPERM;
	send_cnt = 1;
	assert_int_equal(fi_send(net.a.ep, "x", 1, NULL, net.a.peer, &ctx), -EPERM);
	assert_int_equal(fi_send(net.a.ep, "x", 1, NULL, net.a.peer, &ctx), 0);
	expect(&net.a, &ctx, 0);
}

/* Of many that are queued the refused one alone completes in error. */
static void one_of_many_is_refused(void **state)
{
	char ctx[3], in[2];
	struct iovec iov = { "x", 1 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = net.a.peer };

	(void) state;
	fi_recv(net.b.ep, &in[0], 1, NULL, FI_ADDR_UNSPEC, NULL);
	fi_recv(net.b.ep, &in[1], 1, NULL, FI_ADDR_UNSPEC, NULL);
	for (int i = 0; i < 3; i++) {
		msg.context = &ctx[i];
		assert_int_equal(fi_sendmsg(net.a.ep, &msg, FI_MORE), 0);
	}
	send_errno = ENETUNREACH;
	send_cnt = 1;
	expect(&net.a, &ctx[0], ENETUNREACH);
	expect(&net.a, &ctx[1], 0);
	expect(&net.a, &ctx[2], 0);
	expect(&net.b, NULL, 0);
	expect(&net.b, NULL, 0);
}

static unsigned open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned cnt = 0;

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

/* A life with the n-th call failing; true once it was too short for that. */
static bool short_life(long n)
{
	char in[4], ctx[2];
	bool whole;
	int err;

	domain_open();
	until = n;
	if (!end_open(&net.a) && !end_open(&net.b)) {
		meet(&net.a, &net.b);
		fi_recv(net.b.ep, in, 4, NULL, FI_ADDR_UNSPEC, &ctx[0]);
		if (!fi_send(net.a.ep, "1234", 4, NULL, net.a.peer, &ctx[1]))
			assert_ptr_equal(next(&net.a, &err), &ctx[1]);
	}
	whole = until > 0;
	until = 0;
	end_close(&net.a);
	if (net.b.ep)
		end_close(&net.b);
	domain_close();
	return whole;
}

/* Whichever call fails: every close works, no descriptor is left, what was accepted completes. */
static void any_call_may_fail(void **state)
{
	unsigned before = open_fds();
	long n = 1;

	(void) state;
	use_calls(true);
	while (!short_life(n)) {
		assert_int_equal(open_fds(), before);
		assert_true(++n < 1000);
	}
	assert_true(n > 10);
	fab_sock = &fab_sock_libc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_room_is_waited_for, net_open, net_close),
		cmocka_unit_test_setup_teardown(refusal_is_returned, net_open, net_close),
		cmocka_unit_test_setup_teardown(one_of_many_is_refused, net_open, net_close),
		cmocka_unit_test(any_call_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
