/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A child of fork(2) closes what it has inherited. It shares sockets and epoll sets with its parent. The connections of
 * the parent go on: over TCP, over rings, and with a thread that makes progress.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
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
		cmocka_unit_test_setup_teardown(child_sends_nothing, node_setup, node_teardown),
	};

	return cmocka_run_group_tests_name("tcp/forked", tests, NULL, NULL);
}
