/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See victim.h. */
#include "fault/victim.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_tagged.h>

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static void victim_open_ep(struct victim *v, bool scalable)
{
	struct fid *named;
	size_t len = sizeof(v->addr);

	if (scalable) {
		v->info->ep_attr->rx_ctx_cnt = 2;
		OK(fi_scalable_ep(v->domain, v->info, &v->sep, NULL));
		OK(fi_scalable_ep_bind(v->sep, &v->av->fid, 0));
		OK(fi_rx_context(v->sep, 0, NULL, &v->ep, NULL));
	} else {
		OK(fi_endpoint(v->domain, v->info, &v->ep, NULL));
		OK(fi_ep_bind(v->ep, &v->av->fid, 0));
	}
	OK(fi_ep_bind(v->ep, &v->cq->fid, scalable ? FI_RECV : FI_TRANSMIT | FI_RECV));
	OK(fi_enable(v->ep));
	named = scalable ? &v->sep->fid : &v->ep->fid;
	OK(fi_getname(named, &v->addr, &len));
}

void victim_open_as(struct victim *v, bool scalable)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	memset(v, 0, sizeof(*v));
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_NAMED_RX_CTX;
	hints->fabric_attr->prov_name = strdup("tcp");
	hints->domain_attr->max_group_id = 100;
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &v->info));
	fi_freeinfo(hints);
	OK(fi_fabric(v->info->fabric_attr, &v->fabric, NULL));
	OK(fi_domain(v->fabric, v->info, &v->domain, NULL));
	OK(fi_cq_open(v->domain, &cq_attr, &v->cq, NULL));
	OK(fi_av_open(v->domain, &av_attr, &v->av, NULL));
	victim_open_ep(v, scalable);
	OK(fi_mr_reg(v->domain, v->memory, sizeof(v->memory), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &v->mr,
		     NULL));
}

void victim_open(struct victim *v)
{
	victim_open_as(v, false);
}

void victim_close(struct victim *v)
{
	OK(fi_close(&v->mr->fid));
	OK(fi_close(&v->ep->fid));
	if (v->sep)
		OK(fi_close(&v->sep->fid));
	if (v->cntr)
		OK(fi_close(&v->cntr->fid));
	OK(fi_close(&v->av->fid));
	OK(fi_close(&v->cq->fid));
	OK(fi_close(&v->domain->fid));
	OK(fi_close(&v->fabric->fid));
	fi_freeinfo(v->info);
}

void progress(struct victim *v)
{
	assert_int_equal(fi_cq_read(v->cq, NULL, 0), -FI_EAGAIN);
}

/* ---- the raw peer ---- */

int raw_connect(struct victim *v)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	OK(connect(fd, (struct sockaddr *) &v->addr, sizeof(v->addr)));
	return fd;
}

void raw_send(int fd, const void *buf, size_t len)
{
	/* the victim may have hung up already: that is for raw_closed() to see */
	(void) !send(fd, buf, len, MSG_NOSIGNAL);
}

ssize_t raw_recv(struct victim *v, int fd, void *buf, size_t len)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	while (now_ms() < end) {
		fi_cq_read(v->cq, NULL, 0);
		if (poll(&pfd, 1, 0) > 0) {
			ssize_t n = recv(fd, buf, len, 0);

			return n < 0 ? 0 : n;
		}
	}
	fail_msg("the endpoint neither answered nor closed the connection within %d ms", DEADLINE_MS);
	return -1;
}

void raw_recv_all(struct victim *v, int fd, void *buf, size_t len)
{
	for (size_t have = 0; have < len; ) {
		ssize_t n = raw_recv(v, fd, (uint8_t *) buf + have, len - have);

		assert_true(n > 0);
		have += n;
	}
}

void raw_closed(struct victim *v, int fd)
{
	uint8_t buf[256];

	while (raw_recv(v, fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
}

struct hello hello_make(bool ext)
{
	static uint16_t port = 1000;
	struct hello hello = {
		.hdr = {
			.version = TCP_CM_VERSION, .type = TCP_CM_CONNREQ,
			.seg_size = htons(sizeof(struct tcp_rdm_cm)), .conn_data = TCP_CM_CONN_DATA,
		},
		.rdm = { .port = htons(port++), .pid = htonl(1) },
	};

	if (ext) {
		hello.hdr.ext = htonl(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AMO | TCP_EXT_COLL | TCP_EXT_PARK |
				      TCP_EXT_GROUP | TCP_EXT_NAK);
		hello.hdr.incarnation = 0x0123456789abcdef;
		hello.hdr.eager_max = htonl(4096);
		hello.hdr.credit = htonl(65536);
	}
	return hello;
}

int raw_peer(struct victim *v, bool ext)
{
	struct hello hello = hello_make(ext), answer;
	int fd = raw_connect(v);

	raw_send(fd, &hello, sizeof(hello));
	raw_recv_all(v, fd, &answer, sizeof(answer));
	assert_int_equal(answer.hdr.version, TCP_CM_VERSION);
	assert_int_equal(answer.hdr.type, TCP_CM_CONNRESP);
	assert_int_equal(ntohl(answer.hdr.ext) & TCP_EXT_MAGIC_MASK, TCP_EXT_MAGIC);
	return fd;
}

void still_works(struct victim *v)
{
	struct {
		struct tcp_hdr hdr;
		char text[8];
	} frame = { .hdr = { .version = 3, .op = TCP_WIRE_MSG, .hdr_size = 16, .size = 24 }, .text = "hello!!" };
	struct fi_cq_tagged_entry entry;
	char buf[8] = "";
	uint64_t end = now_ms() + DEADLINE_MS;
	int fd = raw_peer(v, false);
	ssize_t ret;

	OK(fi_recv(v->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf));
	raw_send(fd, &frame, sizeof(frame));
	while ((ret = fi_cq_read(v->cq, &entry, 1)) == -FI_EAGAIN)
		assert_true(now_ms() < end);
	assert_int_equal(ret, 1);
	assert_ptr_equal(entry.op_context, buf);
	assert_string_equal(buf, "hello!!");
	close(fd);
}

int failure(struct victim *v, const void *context)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	uint64_t end = now_ms() + DEADLINE_MS;
	ssize_t ret;

	while ((ret = fi_cq_read(v->cq, &entry, 1)) == -FI_EAGAIN)
		assert_true(now_ms() < end);
	assert_int_equal(ret, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(v->cq, &err, 0), 1);
	assert_ptr_equal(err.op_context, context);
	return err.err;
}

fi_addr_t raw_peer_addr(struct victim *v, int fd)
{
	struct hello next = hello_make(false);
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	fi_addr_t fi_addr;

	OK(getsockname(fd, (struct sockaddr *) &addr, &len));
	addr.sin_port = htons(ntohs(next.rdm.port) - 1);
	assert_int_equal(fi_av_insert(v->av, &addr, 1, &fi_addr, 0, NULL), 1);
	return fi_addr;
}

bool raw_pump(struct victim *v, int fd, const void *buf, size_t len)
{
	uint64_t end = now_ms() + DEADLINE_MS;

	for (size_t sent = 0; sent < len; ) {
		ssize_t n = send(fd, (const uint8_t *) buf + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			return false;
		sent += n > 0 ? n : 0;
		fi_cq_read(v->cq, NULL, 0);
		assert_true(now_ms() < end);
	}
	return true;
}
