/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A child of fork(2) closes what it has inherited. It shares sockets and epoll sets with its parent. The connections of
 * the parent go on: over TCP, over rings, and with a thread that makes progress; those of RDM and of MSG endpoints, and
 * those below tcp;ofi_rxm.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_cm.h>
#include "base/clock.h"
#include "remote.h"
#include "tcp/params/params.h"

#define CAPS	(FI_MSG | FI_SOURCE)
#define MANY	64			/* messages that fill a socket, and a queue */
#define LONG	65536

/* Two nodes of this process, and what one is for the other. */
static struct node a, b;
static fi_addr_t a_of_b, b_of_a;

/* A child of this process closes both nodes, if they are open, and the one given. */
static void child_closes(struct node *node)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(PATIENCE_MS / 1000);
		if (node) {
			node_close(node);
		} else {
			node_close(&a);
			node_close(&b);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Wait for one completion of a node, while both make progress. */
static void one(struct node *node)
{
	struct fi_cq_data_entry entry;
	ssize_t ret = -FI_EAGAIN;

	for (uint64_t end_ms = fab_now_ms() + PATIENCE_MS; ret == -FI_EAGAIN && fab_now_ms() < end_ms;) {
		drive(&a);
		drive(&b);
		ret = fi_cq_read(node->cq, &entry, 1);
	}
	assert_int_equal(ret, 1);
}

/* A message from one node to the other. */
static void hello(struct node *from, struct node *to, fi_addr_t dest)
{
	char buf[5];

	assert_int_equal(fi_recv(to->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	send_hello(from, dest, NULL);
	one(from);
	one(to);
	assert_memory_equal(buf, "hello", 5);
}

/* The same; the receiver sleeps on its descriptor. */
static void hello_wakes(void)
{
	struct fid *fids[] = { &b.cq->fid };
	char buf[5];
	int fd;

	assert_int_equal(fi_control(&b.cq->fid, FI_GETWAIT, &fd), 0);
	assert_int_equal(fi_recv(b.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	while (fi_trywait(b.fabric, fids, 1))
		drive(&b);
	send_hello(&a, b_of_a, NULL);
	while (fi_cq_read(a.cq, &(struct fi_cq_data_entry) { 0 }, 1) == -FI_EAGAIN)
		;
	assert_int_equal(poll(&(struct pollfd) { .fd = fd, .events = POLLIN }, 1, PATIENCE_MS), 1);
	one(&b);
}

static void goes_on(bool local, enum fi_progress progress)
{
	tcp_params.local = local;
	node_progress = progress;
	node_open_at(&a, CAPS, 0);
	node_open_at(&b, CAPS, 0);
	node_progress = FI_PROGRESS_UNSPEC;
	a_of_b = node_insert(&b, &a.addr);
	b_of_a = node_insert(&a, &b.addr);
	hello(&a, &b, b_of_a);
	for (int i = 0; i < 2; i++) {
		child_closes(NULL);
		hello(&a, &b, b_of_a);
		hello(&b, &a, a_of_b);
		hello_wakes();
	}
	node_close(&a);
	node_close(&b);
	tcp_params.local = true;
}

static void connections_over_tcp_go_on(void **state)
{
	(void) state;
	goes_on(false, FI_PROGRESS_UNSPEC);
}

static void connections_over_rings_go_on(void **state)
{
	(void) state;
	goes_on(true, FI_PROGRESS_UNSPEC);
}

static void connections_with_a_thread_go_on(void **state)
{
	(void) state;
	goes_on(true, FI_PROGRESS_AUTO);
	goes_on(false, FI_PROGRESS_AUTO);
}

/* ---- tcp;ofi_rxm ---- */

/* Both post many long messages. While they are on their way, a child closes both nodes. All arrive, whole. */
static void unfinished_sends_go_on(void)
{
	static uint8_t out[LONG], in[MANY][LONG];

	memset(out, 7, sizeof(out));
	memset(in, 0, sizeof(in));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(fi_recv(b.ep, in[i], LONG, NULL, FI_ADDR_UNSPEC, in[i]), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(fi_send(a.ep, out, LONG, NULL, b_of_a, out), 0);
		if (i % (MANY / 4) == 1)
			child_closes(NULL);
	}
	for (int i = 0; i < MANY; i++) {
		one(&a);
		one(&b);
	}
	for (int i = 0; i < MANY; i++)
		assert_memory_equal(in[i], out, LONG);
}

static void through_rxm(enum fi_progress progress)
{
	node_provider = "tcp;ofi_rxm";
	tcp_params.local = false;
	node_progress = progress;
	node_open_at(&a, CAPS, 0);
	node_open_at(&b, CAPS, 0);
	node_progress = FI_PROGRESS_UNSPEC;
	node_provider = "tcp";
	a_of_b = node_insert(&b, &a.addr);
	b_of_a = node_insert(&a, &b.addr);
	hello(&a, &b, b_of_a);
	unfinished_sends_go_on();
	hello(&b, &a, a_of_b);
	hello_wakes();
	node_close(&a);
	node_close(&b);
	tcp_params.local = true;
}

static void connections_of_rxm_go_on(void **state)
{
	(void) state;
	through_rxm(FI_PROGRESS_MANUAL);
	through_rxm(FI_PROGRESS_AUTO);
}

/* ---- connected endpoints ---- */

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_pep *pep;
} msg;

static struct fid_ep *msg_endpoint(struct fi_info *info)
{
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(msg.domain, info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &msg.eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &msg.cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	return ep;
}

/* The next event is this one; its fi_info, if it has one. */
static struct fi_info *msg_event(uint32_t want)
{
	struct fi_eq_cm_entry entry = { 0 };
	uint32_t event = 0;

	assert_int_equal(fi_eq_sread(msg.eq, &event, &entry, sizeof(entry), PATIENCE_MS, 0), sizeof(entry));
	assert_int_equal(event, want);
	return entry.info;
}

/* Connect two endpoints by way of the passive one. */
static void msg_connect(struct fid_ep *ep[2])
{
	struct fi_info *request;
	struct sockaddr_in addr;
	size_t len = sizeof(addr);

	assert_int_equal(fi_getname(&msg.pep->fid, &addr, &len), 0);
	ep[0] = msg_endpoint(msg.info);
	assert_int_equal(fi_connect(ep[0], &addr, NULL, 0), 0);
	request = msg_event(FI_CONNREQ);
	ep[1] = msg_endpoint(request);
	fi_freeinfo(request);
	assert_int_equal(fi_accept(ep[1], NULL, 0), 0);
	msg_event(FI_CONNECTED);
	msg_event(FI_CONNECTED);
}

static void msg_open(void)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_FD };

	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup("tcp");
	assert_int_equal(fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", NULL, FI_SOURCE, hints, &msg.info), 0);
	fi_freeinfo(hints);
	assert_int_equal(fi_fabric(msg.info->fabric_attr, &msg.fabric, NULL), 0);
	assert_int_equal(fi_domain(msg.fabric, msg.info, &msg.domain, NULL), 0);
	assert_int_equal(fi_cq_open(msg.domain, &cq_attr, &msg.cq, NULL), 0);
	assert_int_equal(fi_eq_open(msg.fabric, &eq_attr, &msg.eq, NULL), 0);
	assert_int_equal(fi_passive_ep(msg.fabric, msg.info, &msg.pep, NULL), 0);
	assert_int_equal(fi_pep_bind(msg.pep, &msg.eq->fid, 0), 0);
	assert_int_equal(fi_listen(msg.pep), 0);
}

static void msg_close(struct fid_ep *ep[2])
{
	assert_int_equal(fi_close(&ep[0]->fid), 0);
	assert_int_equal(fi_close(&ep[1]->fid), 0);
	assert_int_equal(fi_close(&msg.pep->fid), 0);
	assert_int_equal(fi_close(&msg.eq->fid), 0);
	assert_int_equal(fi_close(&msg.cq->fid), 0);
	assert_int_equal(fi_close(&msg.domain->fid), 0);
	assert_int_equal(fi_close(&msg.fabric->fid), 0);
	fi_freeinfo(msg.info);
}

static void msg_child(struct fid_ep *ep[2], bool closes)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(PATIENCE_MS / 1000);
		assert_int_equal(fi_shutdown(ep[0], 0), 0);
		if (closes)
			msg_close(ep);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A message in this direction; the receiver sleeps on the descriptor of its queue. */
static void msg_hello(struct fid_ep *from, struct fid_ep *to)
{
	struct fi_cq_entry entry;
	char buf[5] = "";

	assert_int_equal(fi_recv(to, buf, sizeof(buf), NULL, 0, buf), 0);
	assert_int_equal(fi_send(from, "hello", 5, NULL, 0, buf), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_cq_sread(msg.cq, &entry, 1, NULL, PATIENCE_MS), 1);
	assert_memory_equal(buf, "hello", 5);
}

/* A child shuts an endpoint down, or closes it and the passive one. The connection goes on, and new ones are made. */
static void connected_endpoints_go_on(void **state)
{
	struct fid_ep *ep[2], *other[2];

	(void) state;
	tcp_params.local = false;
	msg_open();
	msg_connect(ep);
	for (int i = 0; i < 4; i++) {
		msg_child(ep, i & 1);
		msg_hello(ep[0], ep[1]);
		msg_hello(ep[1], ep[0]);
	}
	msg_connect(other);
	msg_hello(other[0], other[1]);
	assert_int_equal(fi_close(&other[0]->fid), 0);
	assert_int_equal(fi_close(&other[1]->fid), 0);
	msg_close(ep);
	tcp_params.local = true;
}

/* ---- what the child must not send ---- */

/* What is queued for a peer is sent by the parent, once. And the parent's listener listens on. */
static void child_sends_nothing(void **state)
{
	static uint8_t buf[MANY][LONG], got[sizeof(struct tcp_hdr) + LONG];
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1), other;
	size_t before, after;

	for (int i = 0; i < MANY; i++) {
		memset(buf[i], i, LONG);
		assert_int_equal(fi_send(node->ep, buf[i], LONG, NULL, peer.fi_addr, NULL), 0);
	}
	for (int i = 0; i < 100; i++)
		drive(node);
	/* the socket is full; with room in it, a child that sends would send */
	before = recv(fd, got, sizeof(got), MSG_WAITALL);
	assert_int_equal(before, sizeof(got));
	child_closes(node);
	for (int i = 1; i < MANY; i++) {
		raw_recv(fd, got, sizeof(got), drive, node);
		for (after = sizeof(struct tcp_hdr); after < sizeof(got) && got[after] == i;)
			after++;
		assert_int_equal(after, sizeof(got));
	}
	for (int i = 0; i < MANY; i++)
		completion(node, NULL);
	other = connected(node, &(struct peer) { .addr = peer.addr }, 2);
	close(other);
	peer_close(&peer, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_over_tcp_go_on),
		cmocka_unit_test(connections_over_rings_go_on),
		cmocka_unit_test(connections_with_a_thread_go_on),
		cmocka_unit_test(connections_of_rxm_go_on),
		cmocka_unit_test(connected_endpoints_go_on),
		cmocka_unit_test_setup_teardown(child_sends_nothing, node_setup, node_teardown),
	};

	return cmocka_run_group_tests_name("tcp/forked", tests, NULL, NULL);
}
