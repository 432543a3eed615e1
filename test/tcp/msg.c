/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What fi_info.handle may stand for when a MSG endpoint is opened: a connection request, once, or a passive endpoint
 * that gives its address away. And what an endpoint says that a test with two endpoints of ours does not see: what is
 * on the wire, and what is said of a connection that does not come about.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include "base/clock.h"
#include "base/sock.h"
#include "raw.h"
#include "tcp/connect/connect.h"
#include "tcp/params/params.h"

struct world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_eq *eq;
	struct fid_pep *pep;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };

	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup("tcp");
	assert_int_equal(fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", NULL, FI_SOURCE, hints, &w->info), 0);
	fi_freeinfo(hints);
	assert_int_equal(fi_fabric(w->info->fabric_attr, &w->fabric, NULL), 0);
	assert_int_equal(fi_domain(w->fabric, w->info, &w->domain, NULL), 0);
	assert_int_equal(fi_cq_open(w->domain, &cq_attr, &w->cq, NULL), 0);
	assert_int_equal(fi_eq_open(w->fabric, &eq_attr, &w->eq, NULL), 0);
	assert_int_equal(fi_passive_ep(w->fabric, w->info, &w->pep, NULL), 0);
	assert_int_equal(fi_pep_bind(w->pep, &w->eq->fid, 0), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	assert_int_equal(fi_close(&w->pep->fid), 0);
	assert_int_equal(fi_close(&w->eq->fid), 0);
	assert_int_equal(fi_close(&w->cq->fid), 0);
	assert_int_equal(fi_close(&w->domain->fid), 0);
	assert_int_equal(fi_close(&w->fabric->fid), 0);
	fi_freeinfo(w->info);
	free(w);
	return 0;
}

static void drive(void *arg)
{
	struct world *w = arg;
	uint32_t event;

	/* a buffer that holds no event: nothing is taken */
	fi_eq_read(w->eq, &event, NULL, 0, FI_PEEK);
}

/* The next event, which must be this one. Its info to *info, its data to data[256]; returns how many bytes of that. */
static size_t expect_event(struct world *w, uint32_t wanted, struct fi_info **info, uint8_t *data)
{
	union {
		struct fi_eq_cm_entry entry;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + TCP_CM_DATA_MAX];
	} ev;
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	uint32_t event = 0;
	ssize_t ret;

	do {
		ret = fi_eq_read(w->eq, &event, &ev, sizeof(ev), 0);
	} while (ret == -FI_EAGAIN && fab_now_ms() < end_ms);
	assert_true(ret >= (ssize_t) sizeof(ev.entry));
	assert_int_equal(event, wanted);
	if (info)
		*info = ev.entry.info;
	if (data)
		memcpy(data, ev.entry.data, ret - sizeof(ev.entry));
	return ret - sizeof(ev.entry);
}

static struct fid_ep *open_ep(struct world *w, struct fi_info *info)
{
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(w->domain, info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &w->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_ep_bind(ep, &w->eq->fid, 0), 0);
	return ep;
}

/* A raw peer connects, and its request has been reported. ext: it speaks our extension. */
static int raw_request_ext(struct world *w, struct fi_info **info, bool ext)
{
	struct cm_bytes request = raw_cm(TCP_CM_CONNREQ, "hi", 2);
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	uint8_t data[TCP_CM_DATA_MAX];
	int fd;

	if (ext) {
		request.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE);
		request.hdr.incarnation = 1;
	}
	assert_int_equal(fi_listen(w->pep), 0);
	assert_int_equal(fi_getname(&w->pep->fid, &addr, &len), 0);
	fd = raw_connect(&addr);
	raw_send(fd, &request, raw_len(&request));
	assert_int_equal(expect_event(w, FI_CONNREQ, info, data), 2);
	assert_memory_equal(data, "hi", 2);
	return fd;
}

/* Connections without a request do not keep those that have one from a passive endpoint, whatever its backlog. */
static void silent_connections_give_way(void **state)
{
	enum { BACKLOG = 4, SILENT = 40 };
	struct world *w = *state;
	int backlog = BACKLOG, silent[SILENT], fd;
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	struct cm_bytes request = raw_cm(TCP_CM_CONNREQ, "hi", 2);
	uint64_t end_ns = fab_now_ns() + 5000000000ULL;
	struct fi_eq_cm_entry entry;
	uint32_t event = 0;

	assert_int_equal(fi_control(&w->pep->fid, FI_BACKLOG, &backlog), 0);
	assert_int_equal(fi_listen(w->pep), 0);
	assert_int_equal(fi_getname(&w->pep->fid, &addr, &len), 0);
	for (int i = 0; i < SILENT; i++) {
		silent[i] = raw_connect(&addr);
		raw_send(silent[i], &request, 1);
	}
	fd = raw_connect(&addr);
	raw_send(fd, &request, raw_len(&request));
	while (fi_eq_read(w->eq, &event, &entry, sizeof(entry), 0) == -FI_EAGAIN) {
		assert_true(fab_now_ns() < end_ns);
		test_added_ns += 10000000;
	}
	assert_int_equal(event, FI_CONNREQ);
	assert_int_equal(fi_reject(w->pep, entry.info->handle, NULL, 0), 0);
	fi_freeinfo(entry.info);
	for (int i = 0; i < SILENT; i++)
		close(silent[i]);
	close(fd);
}

static int raw_request(struct world *w, struct fi_info **info)
{
	return raw_request_ext(w, info, false);
}

/* ---- what a handle stands for ---- */

static void a_request_is_taken_once(void **state)
{
	struct world *w = *state;
	struct fid_ep *ep, *again;
	struct fi_info *info;
	int fd = raw_request(w, &info);

	ep = open_ep(w, info);
	assert_int_equal(fi_endpoint(w->domain, info, &again, NULL), -FI_EINVAL);
	assert_int_equal(fi_reject(w->pep, info->handle, NULL, 0), -FI_EINVAL);
	fi_freeinfo(info);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_true(raw_recv_end(fd, drive, w));
	close(fd);
}

static void a_rejected_request_is_gone(void **state)
{
	struct world *w = *state;
	struct cm_bytes reply;
	struct fi_info *info;
	struct fid_ep *ep;
	int fd = raw_request(w, &info);

	assert_int_equal(fi_reject(w->pep, info->handle, "why", 3), 0);
	raw_recv(fd, &reply, sizeof(reply.hdr) + 3, drive, w);
	assert_int_equal(reply.hdr.type, TCP_CM_NACK);
	assert_memory_equal(reply.data, "why", 3);
	assert_true(raw_recv_end(fd, drive, w));
	assert_int_equal(fi_endpoint(w->domain, info, &ep, NULL), -FI_EINVAL);
	assert_int_equal(fi_reject(w->pep, info->handle, NULL, 0), -FI_EINVAL);
	fi_freeinfo(info);
	close(fd);
}

static void a_handle_that_is_nothing_is_refused(void **state)
{
	struct world *w = *state;
	struct fid_ep *ep;
	struct fid *nothing = (struct fid *) 64;	/* must not even be looked at */

	w->info->handle = nothing;
	assert_int_equal(fi_endpoint(w->domain, w->info, &ep, NULL), -FI_EINVAL);
	assert_int_equal(fi_reject(w->pep, nothing, NULL, 0), -FI_EINVAL);
	w->info->handle = NULL;
}

/* An active endpoint takes over the address that a passive one had reserved. */
static void a_passive_endpoint_gives_its_address_away(void **state)
{
	struct world *w = *state;
	struct sockaddr_in reserved, to, from;
	size_t len = sizeof(reserved);
	socklen_t from_len = sizeof(from);
	int listener = raw_listen(&to, 1), fd;
	struct fid_ep *ep;

	assert_int_equal(fi_getname(&w->pep->fid, &reserved, &len), 0);
	w->info->handle = &w->pep->fid;
	ep = open_ep(w, w->info);
	w->info->handle = NULL;
	assert_int_equal(fi_connect(ep, &to, NULL, 0), 0);
	fd = raw_accept(listener, drive, w);
	assert_int_equal(getpeername(fd, (struct sockaddr *) &from, &from_len), 0);
	assert_int_equal(from.sin_port, reserved.sin_port);
	assert_int_equal(fi_close(&ep->fid), 0);
	close(fd);
	close(listener);
}

static void a_listener_keeps_its_address(void **state)
{
	struct world *w = *state;
	struct fid_ep *ep;

	assert_int_equal(fi_listen(w->pep), 0);
	w->info->handle = &w->pep->fid;
	assert_int_equal(fi_endpoint(w->domain, w->info, &ep, NULL), -FI_EOPBADSTATE);
	w->info->handle = NULL;
}

/* Connect to w->pep, which leaves the request unanswered. Returns the connecting end's port, as the request names it;
 * *local: it came over the Unix socket. */
static uint16_t port_of_request(struct world *w, struct fid_ep *ep, bool *local)
{
	struct sockaddr_in to, from;
	size_t len = sizeof(to);
	struct fab_connreq_handle *handle;
	struct fi_info *info;

	assert_int_equal(fi_getname(&w->pep->fid, &to, &len), 0);
	assert_int_equal(fi_connect(ep, &to, NULL, 0), 0);
	expect_event(w, FI_CONNREQ, &info, NULL);
	memcpy(&from, info->dest_addr, sizeof(from));
	assert_int_equal(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	handle = fab_container(info->handle, struct fab_connreq_handle, fid);
	*local = fab_container(handle->req, struct tcp_connreq, base)->sock.local;
	fi_freeinfo(info);
	return from.sin_port;
}

/* Active endpoints of one source address, with a port: each has a port of its own nevertheless, as with TCP. */
static void connections_from_one_address_differ_in_their_ports(void **state)
{
	struct world *w = *state;
	struct sockaddr_in *source = w->info->src_addr;
	struct fid_ep *ep[2];
	uint16_t port[2];
	bool local;

	assert_int_equal(fi_listen(w->pep), 0);
	assert_int_equal(fi_getname(&w->pep->fid, source, &w->info->src_addrlen), 0);
	for (int i = 0; i < 2; i++) {
		ep[i] = open_ep(w, w->info);
		port[i] = port_of_request(w, ep[i], &local);
		assert_true(local);
	}
	assert_int_not_equal(port[0], port[1]);
	assert_int_not_equal(port[0], source->sin_port);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_close(&ep[i]->fid), 0);
}

/* The address that a passive endpoint gives away may be the wildcard: peers see the address that TCP would take. */
static void a_wildcard_that_is_given_away_is_filled_in(void **state)
{
	struct world *w = *state;
	struct sockaddr_in any = { .sin_family = AF_INET }, reserved;
	size_t len = sizeof(reserved);
	struct fid_pep *given;
	struct fid_ep *ep;
	bool local;

	assert_int_equal(fi_listen(w->pep), 0);
	assert_int_equal(fi_passive_ep(w->fabric, w->info, &given, NULL), 0);
	assert_int_equal(fi_setname(&given->fid, &any, sizeof(any)), 0);
	assert_int_equal(fi_pep_bind(given, &w->eq->fid, 0), 0);
	assert_int_equal(fi_getname(&given->fid, &reserved, &len), 0);
	w->info->handle = &given->fid;
	ep = open_ep(w, w->info);
	w->info->handle = NULL;
	assert_int_equal(port_of_request(w, ep, &local), reserved.sin_port);
	assert_true(local);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&given->fid), 0);
}

/* ---- a peer that goes ---- */

/* The peer has closed before it is accepted: one FI_CONNECTED at most, then one FI_SHUTDOWN, or accepting says so. */
static void a_peer_may_go_before_it_is_accepted(void **state)
{
	struct world *w = *state;
	struct fi_info *info;
	struct fid_ep *ep;
	int fd = raw_request(w, &info);

	ep = open_ep(w, info);
	fi_freeinfo(info);
	close(fd);
	if (!fi_accept(ep, NULL, 0)) {
		expect_event(w, FI_CONNECTED, NULL, NULL);
		expect_event(w, FI_SHUTDOWN, NULL, NULL);
	}
	assert_int_equal(fi_close(&ep->fid), 0);
}

/* An accepted connection carries data at once, and its end is told once. */
static void accepted_data_and_end(void **state)
{
	struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(hdr),
			       .size = sizeof(hdr) + 3 };
	struct world *w = *state;
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_cq_entry entry;
	struct cm_bytes reply;
	struct fi_info *info;
	struct fid_ep *ep;
	char buf[3];
	int fd = raw_request(w, &info);

	ep = open_ep(w, info);
	fi_freeinfo(info);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_recv(ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	assert_int_equal(fi_accept(ep, "yes", 3), 0);
	expect_event(w, FI_CONNECTED, NULL, NULL);
	raw_recv(fd, &reply, sizeof(reply.hdr) + 3, drive, w);
	assert_int_equal(reply.hdr.type, TCP_CM_CONNRESP);
	assert_memory_equal(reply.data, "yes", 3);
	raw_send(fd, &hdr, sizeof(hdr));
	raw_send(fd, "abc", 3);
	close(fd);
	expect_event(w, FI_SHUTDOWN, NULL, NULL);
	while (fi_cq_read(w->cq, &entry, 1) != 1)
		assert_true(fab_now_ms() < end_ms);
	assert_ptr_equal(entry.op_context, buf);
	assert_memory_equal(buf, "abc", 3);
	assert_int_equal(fi_close(&ep->fid), 0);
}

/* ---- a connection that fails in the middle of a call ---- */

static ssize_t unreachable(int fd, const void *buf, size_t len, int flags)
{
	(void) fd, (void) buf, (void) len, (void) flags;
	errno = EHOSTUNREACH;
	return -1;
}

/* A multi-receive takes two messages, whose credit cannot be sent: that ends the connection and with it the receive. */
static void connection_ends_while_a_multi_receive_takes_messages(void **state)
{
	static struct {
		struct tcp_hdr hdr;
		uint8_t payload[4096];
	} frame[2];
	static uint8_t room[1 << 16];
	struct fab_sock_ops table = *fab_sock;
	struct iovec iov = { room, sizeof(room) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = room };
	struct fi_cq_err_entry err = { 0 };
	size_t credit = tcp_params.credit;
	struct world *w = *state;
	struct fi_cq_entry entry;
	struct fi_info *info;
	struct fid_ep *ep;
	int fd = raw_request_ext(w, &info, true);

	tcp_params.credit = 2 * sizeof(frame[0].payload);
	ep = open_ep(w, info);
	fi_freeinfo(info);
	assert_int_equal(fi_accept(ep, NULL, 0), 0);
	frame[0].hdr = frame[1].hdr = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG,
							 .hdr_size = 16, .size = sizeof(frame[0]) };
	raw_send(fd, frame, sizeof(frame));
	for (int i = 0; i < 1000; i++)
		fi_cq_read(w->cq, &entry, 1);
	table.send = unreachable;
	fab_sock = &table;
	assert_int_equal(fi_recvmsg(ep, &msg, FI_MULTI_RECV), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_cq_read(w->cq, &entry, 1), 1);
		assert_ptr_equal(entry.op_context, room);
	}
	assert_int_equal(fi_cq_read(w->cq, &entry, 1), -FI_EAVAIL);
	fab_sock = &fab_sock_libc;
	tcp_params.credit = credit;
	assert_int_equal(fi_cq_readerr(w->cq, &err, 0), 1);
	assert_int_equal(err.err, FI_EHOSTUNREACH);
	assert_true(err.flags & FI_MULTI_RECV);
	assert_int_equal(fi_cq_read(w->cq, &entry, 1), -FI_EAGAIN);
	assert_int_equal(fi_close(&ep->fid), 0);
	close(fd);
}

/* ---- no connection ---- */

/* The next event, which must be that there is no connection to addr, with this data of the peer. The text of it names
 * both ends, and says why. */
static void expect_refused(struct world *w, const struct sockaddr_in *addr, const char *data, const char *why)
{
	static const char from[] = "connection fi_sockaddr_in://127.0.0.1:";
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_eq_err_entry err = { 0 };
	char to[128], text[256];
	uint32_t event;
	ssize_t ret;

	do {
		ret = fi_eq_read(w->eq, &event, text, sizeof(text), 0);
	} while (ret == -FI_EAGAIN && fab_now_ms() < end_ms);
	assert_int_equal(ret, -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(w->eq, &err, 0), sizeof(err));
	assert_int_equal(err.err, FI_ECONNREFUSED);
	assert_int_equal(err.err_data_size, strlen(data));
	if (err.err_data_size)
		assert_memory_equal(err.err_data, data, err.err_data_size);
	fi_eq_strerror(w->eq, err.prov_errno, err.err_data, text, sizeof(text));
	snprintf(to, sizeof(to), " -> fi_sockaddr_in://127.0.0.1:%u: %s", ntohs(addr->sin_port), why);
	if (strncmp(text, from, strlen(from)) || !strstr(text, to))
		fail_msg("'%s' does not begin with '%s' and have '%s' in it", text, from, to);
}

static void nobody_listens(void **state)
{
	struct world *w = *state;
	struct fid_ep *ep = open_ep(w, w->info);
	struct sockaddr_in addr;

	close(raw_listen(&addr, 1));
	assert_int_equal(fi_connect(ep, &addr, NULL, 0), 0);
	expect_refused(w, &addr, "", "Connection refused");
	assert_int_equal(fi_close(&ep->fid), 0);
}

static void the_peer_rejects(void **state)
{
	struct world *w = *state;
	struct fid_ep *ep = open_ep(w, w->info);
	struct sockaddr_in addr;
	size_t len = sizeof(addr);
	struct fi_info *info;

	assert_int_equal(fi_listen(w->pep), 0);
	assert_int_equal(fi_getname(&w->pep->fid, &addr, &len), 0);
	assert_int_equal(fi_connect(ep, &addr, NULL, 0), 0);
	expect_event(w, FI_CONNREQ, &info, NULL);
	assert_int_equal(fi_reject(w->pep, info->handle, "full", 4), 0);
	fi_freeinfo(info);
	expect_refused(w, &addr, "full", "the peer rejected it");
	assert_int_equal(fi_close(&ep->fid), 0);
}

/* ---- a destination that the endpoint was opened with as a string ---- */

static struct fid_ep *open_ep_to_string(struct world *w, const struct sockaddr_in *addr)
{
	struct fi_info *info = fi_dupinfo(w->info);
	struct fid_ep *ep;
	char text[64];

	snprintf(text, sizeof(text), "fi_sockaddr_in://127.0.0.1:%u", ntohs(addr->sin_port));
	info->dest_addr = strdup(text);
	info->dest_addrlen = strlen(text) + 1;
	ep = open_ep(w, info);
	fi_freeinfo(info);
	return ep;
}

/* What is said of its connection names the address that it went to, also when the kernel knows it no more. */
static void a_destination_that_was_a_string_is_named(void **state)
{
	const struct linger reset = { .l_onoff = 1 };
	struct cm_bytes request, reply = raw_cm(TCP_CM_CONNRESP, NULL, 0);
	struct fi_cq_err_entry err = { 0 };
	struct world *w = *state;
	char text[256], to[64];
	struct sockaddr_in addr;
	uint64_t buf, end_ms;
	struct fi_cq_entry entry;
	struct fid_ep *ep;
	int listener = raw_listen(&addr, 1), fd;

	ep = open_ep_to_string(w, &addr);
	assert_int_equal(fi_connect(ep, &addr, NULL, 0), 0);
	fd = raw_accept(listener, drive, w);
	close(listener);
	raw_recv(fd, &request, sizeof(request.hdr), drive, w);
	raw_send(fd, &reply, raw_len(&reply));
	expect_event(w, FI_CONNECTED, NULL, NULL);
	assert_int_equal(fi_read(ep, &buf, sizeof(buf), NULL, 0, 0, 1, &buf), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
	close(fd);
	end_ms = fab_now_ms() + PATIENCE_MS;
	while (fi_cq_read(w->cq, &entry, 1) == -FI_EAGAIN)
		assert_true(fab_now_ms() < end_ms);
	assert_int_equal(fi_cq_readerr(w->cq, &err, 0), 1);
	assert_int_equal(err.err, FI_ECONNRESET);
	fi_cq_strerror(w->cq, err.prov_errno, err.err_data, text, sizeof(text));
	snprintf(to, sizeof(to), " -> fi_sockaddr_in://127.0.0.1:%u: ", ntohs(addr.sin_port));
	if (!strstr(text, to))
		fail_msg("'%s' does not have '%s' in it", text, to);
	expect_event(w, FI_SHUTDOWN, NULL, NULL);
	assert_int_equal(fi_close(&ep->fid), 0);

	ep = open_ep_to_string(w, &addr);
	assert_int_equal(fi_connect(ep, &addr, NULL, 0), 0);
	expect_refused(w, &addr, "", "Connection refused");
	assert_int_equal(fi_close(&ep->fid), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(silent_connections_give_way),
		TEST(a_request_is_taken_once),
		TEST(a_rejected_request_is_gone),
		TEST(a_handle_that_is_nothing_is_refused),
		TEST(a_passive_endpoint_gives_its_address_away),
		TEST(a_listener_keeps_its_address),
		TEST(connections_from_one_address_differ_in_their_ports),
		TEST(a_wildcard_that_is_given_away_is_filled_in),
		TEST(a_peer_may_go_before_it_is_accepted),
		TEST(accepted_data_and_end),
		TEST(connection_ends_while_a_multi_receive_takes_messages),
		TEST(nobody_listens),
		TEST(the_peer_rejects),
		TEST(a_destination_that_was_a_string_is_named),
	};

	return cmocka_run_group_tests_name("tcp/msg", tests, NULL, NULL);
}
