/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagrams of udp, and the network's word that some did not arrive, as the kernel would hand them over. An input is
 * two bytes and then what there is to be read, one after the other:
 *
 *   byte 0   1 FI_SOURCE, 2 FI_SOURCE_ERR, 4 the sender is in the address vector, 8 there is no event queue
 *   byte 1   receives that are posted
 *   of each  family, port, host (1 byte each), then: of a datagram 2 bytes of length; of an error (family has 128)
 *            errno, bytes of control data, 1 more for what they are
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include "base/sock.h"

#define BUF_LEN		64
#define OK(call)	FUZZ_MUST((call) == 0)

static const uint8_t *rest;		/* of the input */
static size_t rest_len;
static uint64_t watched;		/* what epoll says of the socket, with */
static bool watching;

static struct sockaddr_in from_input(uint8_t family)
{
	static const int families[] = { AF_INET, AF_INET6, AF_UNSPEC, AF_UNIX };
	struct sockaddr_in addr = { .sin_family = families[family & 3] };

	addr.sin_port = htons(fuzz_byte(&rest, &rest_len));
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK + fuzz_byte(&rest, &rest_len));
	return addr;
}

static void set_name(struct msghdr *msg, uint8_t family)
{
	struct sockaddr_in addr = from_input(family);

	FUZZ_MUST(msg->msg_namelen >= sizeof(struct sockaddr_in6));
	memcpy(msg->msg_name, &addr, sizeof(addr));
	msg->msg_namelen = sizeof(addr);
}

/* ---- the kernel ---- */

static int fake_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int cnt, int flags, struct timespec *timeout)
{
	unsigned int i;

	(void) fd, (void) timeout;
	FUZZ_MUST(flags & MSG_TRUNC);
	for (i = 0; i < cnt && rest_len && !(*rest & 128); i++) {
		struct msghdr *msg = &msgs[i].msg_hdr;
		size_t left;

		set_name(msg, fuzz_byte(&rest, &rest_len));
		msgs[i].msg_len = fuzz_byte(&rest, &rest_len) | fuzz_byte(&rest, &rest_len) << 8;
		left = msgs[i].msg_len;
		for (size_t n = 0; n < msg->msg_iovlen; n++) {
			size_t part = left < msg->msg_iov[n].iov_len ? left : msg->msg_iov[n].iov_len;

			memset(msg->msg_iov[n].iov_base, 'x', part);
			left -= part;
		}
	}
	errno = rest_len && (*rest & 128) ? ECONNREFUSED : EAGAIN;
	return i ? (int) i : -1;
}

static ssize_t fake_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	struct sock_extended_err error = { 0 };
	size_t room = msg->msg_controllen, len;
	uint8_t what;

	(void) fd;
	FUZZ_MUST((flags & MSG_ERRQUEUE) && cmsg && room >= CMSG_SPACE(sizeof(error)));
	if (!rest_len || !(*rest & 128)) {
		errno = EAGAIN;
		return -1;
	}
	set_name(msg, fuzz_byte(&rest, &rest_len));
	error.ee_errno = fuzz_byte(&rest, &rest_len);
	len = fuzz_byte(&rest, &rest_len);
	what = fuzz_byte(&rest, &rest_len);
	memset(msg->msg_control, 0, room);
	cmsg->cmsg_level = what & 1 ? IPPROTO_IPV6 : what & 2 ? SOL_SOCKET : IPPROTO_IP;
	cmsg->cmsg_type = what & 1 ? IPV6_RECVERR : what & 4 ? IP_TTL : IP_RECVERR;
	/* as the kernel shortens what has no room */
	cmsg->cmsg_len = what & 8 ? CMSG_LEN(len < sizeof(error) ? len : sizeof(error)) : CMSG_LEN(sizeof(error));
	msg->msg_controllen = what & 16 ? 0 : CMSG_SPACE(sizeof(error));
	if (cmsg->cmsg_len == CMSG_LEN(sizeof(error)))
		memcpy(CMSG_DATA(cmsg), &error, sizeof(error));
	return 0;
}

static int fake_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int type = 0;
	socklen_t len = sizeof(type);

	if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_DGRAM && op != EPOLL_CTL_DEL) {
		watched = event->data.u64;
		watching = true;
	}
	return fab_sock_libc.epoll_ctl(epfd, op, fd, event);
}

static int fake_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	if (!rest_len || !watching || max < 1)
		return fab_sock_libc.epoll_wait(epfd, events, max, timeout_ms);
	events[0] = (struct epoll_event) { .events = *rest & 128 ? EPOLLERR : EPOLLIN, .data.u64 = watched };
	return 1;
}

static void install(void)
{
	static struct fab_sock_ops ops;

	ops = fab_sock_libc;
	ops.recvmmsg = fake_recvmmsg;
	ops.recvmsg = fake_recvmsg;
	ops.epoll_ctl = fake_epoll_ctl;
	ops.epoll_wait = fake_epoll_wait;
	fab_sock = &ops;
}

/* ---- the library ---- */

static struct fi_info *info_get(uint8_t how)
{
	static struct fi_info *infos[4];
	struct fi_info **info = &infos[how & 3], *hints;

	if (*info)
		return *info;
	hints = fi_allocinfo();
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->caps = FI_MSG | (how & 1 ? FI_SOURCE : 0) | (how & 2 ? FI_SOURCE | FI_SOURCE_ERR : 0);
	hints->fabric_attr->prov_name = strdup("udp");
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, info));
	fi_freeinfo(hints);
	return *info;
}

/* How many receives have completed. */
static unsigned read_cq(struct fid_cq *cq)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_msg_entry entry;
	fi_addr_t src;
	ssize_t ret = fi_cq_readfrom(cq, &entry, 1, &src);

	if (ret == 1) {
		FUZZ_MUST(entry.len <= BUF_LEN);
		return 1;
	}
	if (ret != -FI_EAVAIL)
		return 0;
	FUZZ_MUST(fi_cq_readerr(cq, &err, 0) == 1);
	FUZZ_MUST(err.err > 0 && err.len <= BUF_LEN);
	return 1;
}

static void read_eq(struct fid_eq *eq)
{
	struct fi_eq_err_entry err = { 0 };
	uint32_t event;
	char room[64];

	if (fi_eq_read(eq, &event, room, sizeof(room), 0) == -FI_EAVAIL)
		fi_eq_readerr(eq, &err, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct fid_fabric *fabric;
	static struct fid_domain *domains[4];
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq_attr = { 0 };
	uint8_t how = fuzz_byte(&data, &len);
	unsigned posted = fuzz_byte(&data, &len) % 32, done = 0;
	struct sockaddr_in friend = {
		.sin_family = AF_INET, .sin_port = htons(5), .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	uint8_t *bufs[32];
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_eq *eq;
	struct fid_ep *ep;

	watching = false;
	rest_len = 0;
	if (!fabric) {
		install();
		OK(fi_fabric(info_get(0)->fabric_attr, &fabric, NULL));
	}
	if (!domains[how & 3])
		OK(fi_domain(fabric, info_get(how), &domains[how & 3], NULL));
	OK(fi_endpoint(domains[how & 3], info_get(how), &ep, NULL));
	OK(fi_cq_open(domains[how & 3], &cq_attr, &cq, NULL));
	OK(fi_av_open(domains[how & 3], &av_attr, &av, NULL));
	OK(fi_eq_open(fabric, &eq_attr, &eq, NULL));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(ep, &av->fid, 0));
	if (!(how & 8))
		OK(fi_ep_bind(ep, &eq->fid, 0));
	OK(fi_enable(ep));
	if (how & 4)
		FUZZ_MUST(fi_av_insert(av, &friend, 1, NULL, 0, NULL) == 1);
	for (unsigned i = 0; i < posted; i++) {
		bufs[i] = malloc(BUF_LEN);
		OK(fi_recv(ep, bufs[i], i % 2 ? BUF_LEN : i, NULL, FI_ADDR_UNSPEC, NULL));
	}
	rest = data;
	rest_len = len;
	for (size_t i = 0; i < 64 + len / 4; i++) {
		done += read_cq(cq);
		read_eq(eq);
	}
	rest_len = 0;
	FUZZ_MUST(done <= posted);
	OK(fi_close(&ep->fid));
	OK(fi_close(&cq->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&eq->fid));
	for (unsigned i = 0; i < posted; i++)
		free(bufs[i]);
	return 0;
}
