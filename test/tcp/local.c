/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints of one host: which kind of socket they use, and when they use TCP after all.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/sock.h"
#include "node.h"
#include "tcp/params/params.h"
#include "tcp/stream/stream.h"

#define OTHER_UID	4711

static struct fab_sock_ops ops;
static struct node a, b;
static unsigned tcp_accepts, unix_accepts;

static int count_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int ret = fab_sock_libc.accept4(fd, addr, len, flags);

	if (ret >= 0)
		*(addr ? &tcp_accepts : &unix_accepts) += 1;
	return ret;
}

/* Everybody else is of another user. */
static int foreign_user(int fd, int level, int name, void *value, socklen_t *len)
{
	int ret = fab_sock_libc.getsockopt(fd, level, name, value, len);

	if (level == SOL_SOCKET && name == SO_PEERCRED)
		((struct ucred *) value)->uid++;
	return ret;
}

static int setup(void **state)
{
	(void) state;
	ops = fab_sock_libc;
	ops.accept4 = count_accept4;
	fab_sock = &ops;
	tcp_accepts = unix_accepts = 0;
	node_open(&a, FI_MSG, FI_THREAD_UNSPEC);
	node_open(&b, FI_MSG, FI_THREAD_UNSPEC);
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	node_close(&a);
	node_close(&b);
	fab_sock = &fab_sock_libc;
	tcp_params.local = true;
	return 0;
}

/* One message from a to b, and one back. */
static void exchange(void)
{
	struct fi_cq_data_entry entry;
	char in = 0, back = 0;
	int done = 0;

	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	assert_int_equal(fi_recv(a.ep, &back, 1, NULL, FI_ADDR_UNSPEC, &back), 0);
	assert_int_equal(fi_send(a.ep, "x", 1, NULL, node_insert(&a, &b.addr), NULL), 0);
	while (done < 3) {
		if (fi_cq_read(b.cq, &entry, 1) == 1) {
			done++;
			assert_int_equal(fi_inject(b.ep, "y", 1, node_insert(&b, &a.addr)), 0);
		}
		done += fi_cq_read(a.cq, &entry, 1) == 1;
	}
	assert_int_equal(in, 'x');
	assert_int_equal(back, 'y');
}

static void peers_of_one_host_use_a_unix_socket(void **state)
{
	(void) state;
	exchange();
	assert_int_equal(unix_accepts, 1);
	assert_int_equal(tcp_accepts, 0);
}

/* a's connection to b. */
static const struct tcp_conn *conn_of_a(void)
{
	const struct tcp_conn *conn = tcp_ep_of(&a.ep->fid)->rdm.by_addr[0];

	assert_non_null(conn);
	return conn;
}

/* Pages that exist of the memory of a's rings. */
static size_t pages_of_rings(void)
{
	struct tcp_pair_mem *mem = conn_of_a()->local->pair->mem;
	const size_t page = sysconf(_SC_PAGESIZE);
	unsigned char there[sizeof(*mem) / 4096];
	size_t cnt = 0;

	assert_return_code(mincore(mem, sizeof(*mem), there), 0);
	for (size_t i = 0; i < (sizeof(*mem) + page - 1) / page; i++)
		cnt += there[i] & 1;
	return cnt;
}

static void a_connection_with_few_messages_has_one_page(void **state)
{
	(void) state;
	exchange();
	assert_ptr_equal(conn_of_a()->io, &tcp_io_ring);
	assert_int_equal(pages_of_rings(), 1);
	for (int i = 0; i < 15; i++)
		exchange();
	assert_int_equal(pages_of_rings(), 1);
}

/* Whoever connects offers rings of another layout. */
static ssize_t other_layout(int fd, const struct msghdr *msg, int flags)
{
	struct tcp_greeting *greeting = msg->msg_iov->iov_base;

	if (msg->msg_controllen && msg->msg_iov->iov_len == sizeof(*greeting) && greeting->pair)
		greeting->pair = TCP_PAIR_LAYOUT + 1;
	return fab_sock_libc.sendmsg(fd, msg, flags);
}

static void peers_with_another_layout_do_without_rings(void **state)
{
	(void) state;
	ops.sendmsg = other_layout;
	exchange();
	assert_int_equal(unix_accepts, 1);
	assert_ptr_equal(conn_of_a()->io, &tcp_io_sock);
}

static void another_user_gets_tcp(void **state)
{
	(void) state;
	ops.getsockopt = foreign_user;
	exchange();
	assert_int_equal(tcp_accepts, 1);
}

/* The name of the Unix socket that belongs to b. Returns its length. */
static socklen_t name_of_b(struct sockaddr_un *un)
{
	int len;

	*un = (struct sockaddr_un) { .sun_family = AF_UNIX };
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "libfabric-tcp/fi_sockaddr_in://127.0.0.1:%u",
		       ntohs(b.addr.sin_port));
	return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

/* A listener has the user that called listen(), and a connection the one that called connect(). */
static void the_kernel_tells_users_apart(void **state)
{
	struct fi_cq_data_entry entry;
	struct sockaddr_un un;
	socklen_t len;
	char byte;
	int fd;

	(void) state;
	if (geteuid() || seteuid(OTHER_UID))
		unit_skip("only root can be another user");
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	len = name_of_b(&un);
	assert_int_equal(connect(fd, (struct sockaddr *) &un, len), 0);
	assert_int_equal(seteuid(0), 0);
	while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		fi_cq_read(b.cq, &entry, 1);
	close(fd);
	node_close(&b);
	assert_int_equal(seteuid(OTHER_UID), 0);
	node_open(&b, FI_MSG, FI_THREAD_UNSPEC);
	assert_int_equal(seteuid(0), 0);
	exchange();
	assert_int_equal(tcp_accepts, 1);
}

static void a_listener_without_a_unix_socket_gets_tcp(void **state)
{
	(void) state;
	tcp_params.local = false;
	node_close(&b);
	node_open(&b, FI_MSG, FI_THREAD_UNSPEC);
	tcp_params.local = true;
	exchange();
	assert_int_equal(tcp_accepts, 1);
	assert_int_equal(unix_accepts, 0);
}

/* Each connects before it knows of the other's request, the first over TCP, the second over a Unix socket. Two messages
 * from each arrive once, in order. */
static void cross(struct node *over_tcp, struct node *over_unix)
{
	struct node *const node[2] = { over_tcp, over_unix };
	char in[2][4] = { "", "" };
	struct fi_cq_data_entry entry;
	int done[2] = { 0, 0 };
	fi_addr_t to;

	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 3; k++)
			assert_int_equal(fi_recv(node[i]->ep, &in[i][k], 1, NULL, FI_ADDR_UNSPEC, in[i]), 0);
		to = node_insert(node[i], &node[1 - i]->addr);
		tcp_params.local = i == 1;
		assert_int_equal(fi_send(node[i]->ep, "1", 1, NULL, to, NULL), 0);
		assert_int_equal(fi_send(node[i]->ep, "2", 1, NULL, to, NULL), 0);
	}
	while (done[0] < 4 || done[1] < 4) {
		for (int i = 0; i < 2; i++)
			done[i] += fi_cq_read(node[i]->cq, &entry, 1) == 1;
	}
	for (int k = 0; k < 100; k++) {
		for (int i = 0; i < 2; i++)
			assert_int_equal(fi_cq_read(node[i]->cq, &entry, 1), -FI_EAGAIN);
	}
	for (int i = 0; i < 2; i++)
		assert_memory_equal(in[i], "12\0", 4);
}

static struct node *larger(void)
{
	return ntohs(a.addr.sin_port) > ntohs(b.addr.sin_port) ? &a : &b;
}

/* The larger address decides which of the two connections stays, so each kind of socket stays once. */
static void both_ends_connect_at_once_over_different_sockets(void **state)
{
	(void) state;
	cross(larger(), larger() == &a ? &b : &a);
	node_close(&a);
	node_close(&b);
	node_open(&a, FI_MSG, FI_THREAD_UNSPEC);
	node_open(&b, FI_MSG, FI_THREAD_UNSPEC);
	cross(larger() == &a ? &b : &a, larger());
}

static void the_parameter_turns_it_off(void **state)
{
	(void) state;
	tcp_params.local = false;
	exchange();
	assert_int_equal(tcp_accepts, 1);
	assert_int_equal(unix_accepts, 0);
}

/* Take the name of b. Returns a socket that has it, or -1. */
static int take_name_of_b(void)
{
	struct sockaddr_un un;
	socklen_t len = name_of_b(&un);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (!bind(fd, (struct sockaddr *) &un, len) && !listen(fd, 1))
		return fd;
	close(fd);
	return -1;
}

static unsigned tcp_closes;

/* Whoever closes a TCP listener has given the name free. */
static int close_in_order(int fd)
{
	int listens = 0, family = 0, name;
	socklen_t len = sizeof(int);

	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len);
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	if (listens && family == AF_INET) {
		name = take_name_of_b();
		assert_true(name >= 0);
		close(name);
		tcp_closes++;
	}
	return fab_sock_libc.close(fd);
}

/* A process that begins to listen at the port as soon as it can must not find the name taken. */
static void the_name_is_free_before_the_port(void **state)
{
	(void) state;
	assert_int_equal(take_name_of_b(), -1);
	tcp_closes = 0;
	ops.close = close_in_order;
	node_close(&b);
	ops.close = fab_sock_libc.close;
	assert_int_equal(tcp_closes, 1);
	node_open(&b, FI_MSG, FI_THREAD_UNSPEC);
}

static void rubbish_at_the_unix_socket_ends_only_itself(void **state)
{
	struct sockaddr_un un;
	socklen_t len = name_of_b(&un);
	char rubbish[200] = "no greeting", byte;
	struct fi_cq_data_entry entry;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void) state;
	assert_int_equal(connect(fd, (struct sockaddr *) &un, len), 0);
	assert_int_equal(send(fd, rubbish, sizeof(rubbish), 0), sizeof(rubbish));
	while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		fi_cq_read(b.cq, &entry, 1);
	close(fd);
	exchange();
	assert_int_equal(unix_accepts, 2);
}

static void who_takes_the_name_and_does_not_answer_is_left(void **state)
{
	struct fi_cq_data_entry entry;
	int fd, taken;
	char in = 0;

	(void) state;
	tcp_params.local = false;
	node_close(&b);
	node_open(&b, FI_MSG, FI_THREAD_UNSPEC);
	tcp_params.local = true;
	fd = take_name_of_b();
	assert_true(fd >= 0);
	assert_int_equal(fi_recv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in), 0);
	assert_int_equal(fi_send(a.ep, "x", 1, NULL, node_insert(&a, &b.addr), NULL), 0);
	taken = accept(fd, NULL, NULL);
	assert_true(taken >= 0);
	close(taken);
	while (fi_cq_read(b.cq, &entry, 1) != 1)
		fi_cq_read(a.cq, &entry, 1);
	assert_int_equal(tcp_accepts, 1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(peers_of_one_host_use_a_unix_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(a_connection_with_few_messages_has_one_page, setup, teardown),
		cmocka_unit_test_setup_teardown(peers_with_another_layout_do_without_rings, setup, teardown),
		cmocka_unit_test_setup_teardown(another_user_gets_tcp, setup, teardown),
		cmocka_unit_test_setup_teardown(the_kernel_tells_users_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(a_listener_without_a_unix_socket_gets_tcp, setup, teardown),
		cmocka_unit_test_setup_teardown(both_ends_connect_at_once_over_different_sockets, setup, teardown),
		cmocka_unit_test_setup_teardown(the_parameter_turns_it_off, setup, teardown),
		cmocka_unit_test_setup_teardown(the_name_is_free_before_the_port, setup, teardown),
		cmocka_unit_test_setup_teardown(rubbish_at_the_unix_socket_ends_only_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(who_takes_the_name_and_does_not_answer_is_left, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
