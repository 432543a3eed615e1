/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See remote.h.
 */
#include "remote.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"

int node_setup(void **state)
{
	struct node *node = calloc(1, sizeof(*node));

	node_open(node, FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE, FI_THREAD_UNSPEC);
	*state = node;
	return 0;
}

int node_teardown(void **state)
{
	node_close(*state);
	free(*state);
	return 0;
}

#define BUSY_NS		5000000U	/* a loop of drive() looks without a pause for so long */
#define APART_NS	1000000U	/* calls that are farther apart belong to different loops */

void drive(void *arg)
{
	static _Thread_local uint64_t begun_ns, last_ns;
	const struct timespec nap = { .tv_nsec = 50000 };
	const uint64_t now_ns = fab_now_ns();
	struct node *node = arg;

	if (now_ns - last_ns > APART_NS)
		begun_ns = now_ns;
	last_ns = now_ns;
	if (now_ns - begun_ns > BUSY_NS)
		nanosleep(&nap, NULL);
	fi_cq_read(node->cq, NULL, 0);
}

void *completion(struct node *node, fi_addr_t *src)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_cq_data_entry entry;
	ssize_t ret;

	do {
		ret = fi_cq_readfrom(node->cq, &entry, 1, src);
	} while (ret == -FI_EAGAIN && fab_now_ms() < end_ms);
	assert_int_equal(ret, 1);
	return entry.op_context;
}

void expect_error(struct node *node, void *context, int err, char *text)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_cq_err_entry entry = { 0 };
	struct fi_cq_data_entry ok;
	ssize_t ret;

	do {
		ret = fi_cq_read(node->cq, &ok, 1);
	} while (ret == -FI_EAGAIN && fab_now_ms() < end_ms);
	assert_int_equal(ret, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(node->cq, &entry, 0), 1);
	assert_int_equal(entry.err, err);
	assert_ptr_equal(entry.op_context, context);
	if (text)
		fi_cq_strerror(node->cq, entry.prov_errno, entry.err_data, text, 256);
}

struct tcp_conn *node_conn(struct node *node, fi_addr_t fi_addr)
{
	const struct tcp_ep *ep = (struct tcp_ep *) node->ep;

	return fi_addr < ep->rdm.by_addr_cnt ? ep->rdm.by_addr[fi_addr] : NULL;
}

struct peer peer_open(struct node *node)
{
	struct peer peer;

	peer.listener = raw_listen(&peer.addr, 16);
	peer.fi_addr = node_insert(node, &peer.addr);
	return peer;
}

struct peer peer_open_ordered(struct node *node, bool above)
{
	uint16_t port = ntohs(node->addr.sin_port);
	struct peer peer;

	do {
		port += above ? 1 : -1;
		peer.listener = raw_listen_at(&peer.addr, port, 16);
	} while (peer.listener < 0);
	peer.fi_addr = node_insert(node, &peer.addr);
	return peer;
}

int peer_accept(struct node *node, const struct peer *peer)
{
	struct tcp_rdm_cm data;
	struct cm_bytes request;
	int fd = raw_accept(peer->listener, drive, node);

	raw_recv(fd, &request, sizeof(request.hdr) + sizeof(data), drive, node);
	assert_int_equal(request.hdr.version, TCP_CM_VERSION);
	assert_int_equal(request.hdr.type, TCP_CM_CONNREQ);
	memcpy(&data, request.data, sizeof(data));
	assert_int_equal(data.version, 0);
	assert_int_equal(data.port, node->addr.sin_port);
	assert_int_equal(be32toh(data.pid), getpid());
	return fd;
}

void peer_reply(int fd, const struct peer *peer, uint8_t type)
{
	struct cm_bytes reply = raw_rdm_cm(type, ntohs(peer->addr.sin_port), 4711);

	raw_send(fd, &reply, raw_len(&reply));
}

int peer_up(struct node *node, const struct peer *peer)
{
	int fd = peer_accept(node, peer);

	peer_reply(fd, peer, TCP_CM_CONNRESP);
	return fd;
}

int peer_up_ext(struct node *node, const struct peer *peer, uint32_t ext)
{
	struct cm_bytes reply = raw_rdm_cm(TCP_CM_CONNRESP, ntohs(peer->addr.sin_port), 1);
	int fd;

	if (!ext)
		return peer_up(node, peer);
	fd = peer_accept(node, peer);
	reply.hdr.ext = htobe32(ext);
	reply.hdr.incarnation = 1;
	reply.hdr.eager_max = reply.hdr.credit = htobe32(4096);
	raw_send(fd, &reply, raw_len(&reply));
	return fd;
}

void peer_close(const struct peer *peer, int fd)
{
	close(fd);
	close(peer->listener);
}

int peer_connect(struct node *node, const struct peer *peer, uint32_t pid)
{
	struct cm_bytes request = raw_rdm_cm(TCP_CM_CONNREQ, ntohs(peer->addr.sin_port), pid);
	int fd = raw_connect(&node->addr);

	raw_send(fd, &request, raw_len(&request));
	return fd;
}

uint8_t answer(struct node *node, int fd)
{
	struct cm_bytes reply;

	raw_recv(fd, &reply, sizeof(reply.hdr) + sizeof(struct tcp_rdm_cm), drive, node);
	assert_int_equal(reply.hdr.version, TCP_CM_VERSION);
	return reply.hdr.type;
}

void expect_hello(struct node *node, int fd)
{
	uint8_t frame[sizeof(struct tcp_hdr) + 5];

	raw_recv(fd, frame, sizeof(frame), drive, node);
	assert_memory_equal(frame + sizeof(struct tcp_hdr), "hello", 5);
}

void hello_arrives(struct node *node, int fd, void *context)
{
	void *done;

	expect_hello(node, fd);
	done = completion(node, NULL);
	assert_true(!context || done == context);
}

void send_hello(struct node *node, fi_addr_t to, void *context)
{
	assert_int_equal(fi_send(node->ep, "hello", 5, NULL, to, context), 0);
}

fi_addr_t recv_from(struct node *node, int fd, char *buf)
{
	struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(hdr),
			       .size = sizeof(hdr) + 5 };
	fi_addr_t src = 0;

	assert_int_equal(fi_recv(node->ep, buf, 5, NULL, FI_ADDR_UNSPEC, buf), 0);
	raw_send(fd, &hdr, sizeof(hdr));
	raw_send(fd, "world", 5);
	assert_ptr_equal(completion(node, &src), buf);
	assert_memory_equal(buf, "world", 5);
	return src;
}

int connected(struct node *node, const struct peer *peer, uint32_t pid)
{
	int fd = peer_connect(node, peer, pid);

	assert_int_equal(answer(node, fd), TCP_CM_CONNRESP);
	return fd;
}

int peer_connect_ext(struct node *node, const struct peer *peer, const struct tcp_hello *hello)
{
	struct cm_bytes request = raw_rdm_cm(TCP_CM_CONNREQ, ntohs(peer->addr.sin_port), 1);
	int fd = raw_connect(&node->addr);

	request.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | hello->features);
	request.hdr.incarnation = htobe64(hello->incarnation);
	request.hdr.eager_max = htobe32(hello->eager_max);
	request.hdr.credit = htobe32(hello->credit);
	raw_send(fd, &request, raw_len(&request));
	return fd;
}

int connected_ext(struct node *node, const struct peer *peer, const struct tcp_hello *hello)
{
	int fd = peer_connect_ext(node, peer, hello);

	assert_int_equal(answer(node, fd), TCP_CM_CONNRESP);
	return fd;
}

uint8_t ask_to_park(struct node *node, int fd)
{
	struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_PARK, .hdr_size = sizeof(hdr),
			       .size = sizeof(hdr) };

	raw_send(fd, &hdr, sizeof(hdr));
	raw_recv(fd, &hdr, sizeof(hdr), drive, node);
	return hdr.op;
}
