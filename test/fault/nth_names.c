/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The n-th allocation, or the n-th call on a descriptor, fails while a datagram endpoint of verbs is made one that
 * others find; and the n-th call while a node is asked for one. There is none then, which is said, and nothing is left.
 */
#include <string.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include "base/sock.h"
#include "base/unit.h"
#include "failing.h"
#include "verbs/names.h"

#define SERVICE		9001

/* Take a port that is shared with this program alone; who asks there hears nothing. */
static int port_open(void)
{
	union fab_sockaddr addr = { .sin6.sin6_family = AF_INET6 };
	socklen_t len = sizeof(addr);
	int fd = fab_sock_open(AF_INET6, SOCK_DGRAM);

	if (fd < 0) {
		addr.sa.sa_family = AF_INET;
		fd = fab_sock_open(AF_INET, SOCK_DGRAM);
	}
	assert_return_code(fd, -fd);
	assert_int_equal(fab_sock_set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1), 0);
	assert_return_code(fab_sock->bind(fd, &addr.sa, fab_addr_len(&addr.sa)), 0);
	assert_return_code(fab_sock->getsockname(fd, &addr.sa, &len), 0);
	vrb_params.name_server_port = fab_addr_port(&addr.sa);
	return fd;
}

static void be_found(void *arg)
{
	struct vrb_ud_name name = { .gid.raw = { 1 }, .qpn = 7, .service = SERVICE };
	struct vrb_named *named = vrb_named_open(&name);

	(void) arg;
	assert_int_equal(!named, failed);
	vrb_named_close(named);
}

static void ask(void *arg)
{
	char why[VRB_NAMES_WHY] = "";
	struct vrb_ud_name name;
	int ret = vrb_names_ask("127.0.0.1", 0, FI_NUMERICHOST, SERVICE, &name, why);

	(void) arg;
	assert_int_equal(ret, -FI_ENODATA);
	assert_true(failed || strstr(why, "no answer within 2 seconds"));
	assert_true(strlen(why));
}

static void nth_fails(long *until, void (*life)(void *arg), long least)
{
	int fd = port_open();

	assert_true(failing_sweep(until, life, NULL) >= least);
	fab_sock_close(&fd);
}

static void nth_allocation_of_a_name_fails(void **state)
{
	(void) state;
	if (!CAN_FAIL_ALLOC)
		unit_skip("a sanitizer has a heap of its own");
	nth_fails(&alloc_until, be_found, 1);
}

static void nth_call_for_a_name_fails(void **state)
{
	(void) state;
	nth_fails(&sock_until, be_found, 10);
}

static void nth_call_for_a_question_fails(void **state)
{
	(void) state;
	nth_fails(&sock_until, ask, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nth_allocation_of_a_name_fails),
		cmocka_unit_test(nth_call_for_a_name_fails),
		cmocka_unit_test(nth_call_for_a_question_fails),
	};

	failing_install();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
