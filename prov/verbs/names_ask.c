/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Asks a node for an endpoint. The question goes to the node's IPv4 and IPv6 addresses, and is repeated while there is
 * no answer, each time from a new port: the node's kernel then gives it to another of the processes that share the port
 * there. An answer is valid if it has the nonce of the question; nothing else is authenticated. All state is on the
 * stack.
 */
#include "verbs/names.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/net/net.h"

#define END_MS		2000

static const unsigned send_ms[] = { 0, 100, 300, 700, 1300 };

#define SENDS		fab_countof(send_ms)
#define HOSTS		2		/* one of each family */

struct ask {
	struct vrb_names_msg msg;
	union fab_sockaddr host[HOSTS];
	const char *over[HOSTS];	/* the reason why this host cannot answer; NULL: it may still answer */
	size_t host_cnt;
	struct pollfd fds[SENDS * HOSTS];	/* owned descriptors */
	size_t of[SENDS * HOSTS];	/* for each of fds: index of the host that was asked */
	size_t fd_cnt;
};

int vrb_names_service(const char *text, uint16_t *service, const char **why)
{
	union fab_sockaddr addr;
	int ret = fab_resolve_name(NULL, text, FI_SOURCE, AF_INET, &addr, why);

	*service = ret ? 0 : fab_addr_port(&addr.sa);
	return ret;
}

/* Send the question to a host. 0 or -errno. The descriptor stays open for the answer. */
static int send_to(struct ask *ask, size_t i)
{
	struct sockaddr *to = &ask->host[i].sa;
	struct iovec iov = { &ask->msg, sizeof(ask->msg) };
	struct msghdr hdr = { .msg_name = to, .msg_namelen = fab_addr_len(to), .msg_iov = &iov, .msg_iovlen = 1 };
	int fd = fab_sock_open(to->sa_family, SOCK_DGRAM), ret;

	if (fd < 0)
		return fd;
	ask->of[ask->fd_cnt] = i;
	ask->fds[ask->fd_cnt++] = (struct pollfd) { .fd = fd, .events = POLLIN };
	/* get errors for a closed port; not connected, since the answer may come from another address of the node */
	ret = to->sa_family == AF_INET6 ? fab_sock_set_int(fd, IPPROTO_IPV6, IPV6_RECVERR, 1) :
					  fab_sock_set_int(fd, IPPROTO_IP, IP_RECVERR, 1);
	return ret ? ret : fab_sock->sendmsg(fd, &hdr, MSG_DONTWAIT) < 0 ? -errno : 0;
}

static void send_all(struct ask *ask)
{
	for (size_t i = 0; i < ask->host_cnt; i++) {
		int ret = ask->over[i] ? 0 : send_to(ask, i);

		if (ret)
			ask->over[i] = strerror(-ret);
	}
}

/* Read from a descriptor. True: *name is the answer. */
static bool names_ask_take(struct ask *ask, size_t n, struct vrb_ud_name *name)
{
	struct vrb_names_msg msg;
	ssize_t len = fab_sock->recv(ask->fds[n].fd, &msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC);
	const char **over = &ask->over[ask->of[n]];
	bool found = len >= 0 && vrb_names_valid(&msg, (size_t) len, VRB_NAMES_FOUND);
	bool none = len >= 0 && vrb_names_valid(&msg, (size_t) len, VRB_NAMES_NONE);

	if (len < 0 && errno != EAGAIN && errno != EINTR) {
		*over = errno == ECONNREFUSED ? "no process of that node has an endpoint that can be found" :
			strerror(errno);
		fab_sock_close(&ask->fds[n].fd);
	}
	if ((!found && !none) || msg.nonce != ask->msg.nonce || msg.service != ask->msg.service)
		return false;
	if (none)
		*over = "no endpoint of that node has the service";
	else
		vrb_names_unpack(&msg, name);
	return found;
}

static bool all_over(const struct ask *ask)
{
	size_t i = 0;

	while (i < ask->host_cnt && ask->over[i])
		i++;
	return i == ask->host_cnt;
}

/* Ask until there is an answer (true), no answer is possible, or the time is over. */
static bool converse(struct ask *ask, struct vrb_ud_name *name)
{
	uint64_t begin = fab_now_ms(), now = 0, next;
	size_t sends = 0;

	while (now < END_MS) {
		if (sends < SENDS && now >= send_ms[sends]) {
			send_all(ask);
			sends++;
		}
		if (all_over(ask))
			return false;
		next = sends < SENDS ? send_ms[sends] : END_MS;
		fab_sock->poll(ask->fds, ask->fd_cnt, (int) (next > now ? next - now : 0));
		for (size_t n = 0; n < ask->fd_cnt; n++) {
			if (ask->fds[n].revents && names_ask_take(ask, n, name))
				return true;
		}
		now = fab_now_ms() - begin;
	}
	for (size_t i = 0; i < ask->host_cnt; i++) {
		if (!ask->over[i])
			ask->over[i] = "no answer within 2 seconds";
	}
	return false;
}

/* Resolve the node's addresses. 0 if there is at least one, or -FI_E* with the reason in *why. */
static int find_hosts(struct ask *ask, const char *node, uint64_t n, uint64_t flags, const char **why)
{
	static const int families[HOSTS] = { AF_INET, AF_INET6 };
	int ret = -FI_ENODATA, one;

	for (size_t i = 0; i < HOSTS; i++) {
		one = fab_resolve_nth(node, n, flags & FI_NUMERICHOST, families[i], &ask->host[ask->host_cnt], why);
		ask->host_cnt += !one;
		if (one != -FI_ENODATA)
			ret = one;
	}
	return ask->host_cnt ? 0 : ret;
}

int vrb_names_ask(const char *node, uint64_t n, uint64_t flags, uint16_t service, struct vrb_ud_name *name, char *why)
{
	const char *reason = "";
	struct ask ask = { .host_cnt = 0 };
	char host[FAB_ADDR_STRLEN];
	int ret = find_hosts(&ask, node, n, flags, &reason);
	bool found;

	if (!ret && !service)
		service = fab_addr_port(&ask.host[0].sa);
	if (!ret && !service) {
		ret = -FI_ENODATA;
		reason = "the service is missing; a datagram endpoint is found by node and service";
	}
	if (ret) {
		snprintf(why, VRB_NAMES_WHY, "%s", reason);
		return ret;
	}
	for (size_t i = 0; i < ask.host_cnt; i++)
		fab_addr_set_port(&ask.host[i].sa, (uint16_t) vrb_params.name_server_port);
	vrb_names_pack(&ask.msg, VRB_NAMES_ASK, service, fab_random64(), NULL);
	found = converse(&ask, name);
	for (size_t i = 0; i < ask.fd_cnt; i++)
		fab_sock_close(&ask.fds[i].fd);
	if (found)
		return 0;
	fab_addr_to_str(&ask.host[0].sa, host, sizeof(host));
	snprintf(why, VRB_NAMES_WHY, "UDP, %s, asked for service %u: %s; the endpoint must be enabled and must have "
		 "asked for its service with FI_SOURCE (fi_verbs(7), Datagrams by name)", host, service, ask.over[0]);
	return -FI_ENODATA;
}
