/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints that are known by another address than their own, as behind a NAT. Nobody listens at the one advertised.
 */
#include <string.h>
#include <arpa/inet.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "node.h"
#include "tcp/sock/advert.h"
#include "tcp/params/params.h"

#define PATIENCE_MS	10000

static struct node a, b;

static int setup(void **state)
{
	(void) state;
	node_open(&a, FI_MSG | FI_SOURCE, FI_THREAD_UNSPEC);
	node_open(&b, FI_MSG | FI_SOURCE, FI_THREAD_UNSPEC);
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	node_close(&a);
	node_close(&b);
	tcp_params.trust_advertised = false;
	advertise(NULL);
	return 0;
}

/* A message from one to the other; returns its source as the receiver knows it. */
static fi_addr_t exchange(struct node *from, fi_addr_t to, struct node *at)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	struct fi_cq_data_entry entry;
	fi_addr_t src = 0;
	char buf[8];
	int ret;

	assert_int_equal(fi_recv(at->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), 0);
	while ((ret = (int) fi_inject(from->ep, "hello", 5, to)) == -FI_EAGAIN) {
		assert_true(fab_now_ms() < end_ms);
		fi_cq_read(at->cq, NULL, 0);
	}
	assert_int_equal(ret, 0);
	while (fi_cq_readfrom(at->cq, &entry, 1, &src) != 1) {
		assert_true(fab_now_ms() < end_ms);
		fi_cq_read(from->cq, NULL, 0);
	}
	return src;
}

static struct sockaddr_in name_of(struct node *node)
{
	struct sockaddr_in name;
	size_t len = sizeof(name);

	assert_int_equal(fi_getname(&node->ep->fid, &name, &len), 0);
	return name;
}

static void name_is_what_is_advertised(void **state)
{
	struct sockaddr_in name;

	(void) state;
	advertise("127.0.0.77");
	name = name_of(&a);
	assert_int_equal(name.sin_addr.s_addr, inet_addr("127.0.0.77"));
	assert_int_equal(name.sin_port, a.addr.sin_port);
	advertise("[2001:db8::1], 127.0.0.78:4711");
	name = name_of(&a);
	assert_int_equal(name.sin_addr.s_addr, inet_addr("127.0.0.78"));
	assert_int_equal(ntohs(name.sin_port), 4711);
}

static void what_is_no_address_is_not_advertised(void **state)
{
	struct sockaddr_in name;

	(void) state;
	advertise("gateway,0.0.0.0,127.0.0.1.2");
	name = name_of(&a);
	assert_int_equal(name.sin_addr.s_addr, a.addr.sin_addr.s_addr);
}

/* A peer that comes from elsewhere than it says is nobody that we know ... */
static void an_advertised_address_is_not_believed(void **state)
{
	struct sockaddr_in name;

	(void) state;
	advertise("127.0.0.77");
	name = name_of(&a);
	node_insert(&b, &name);
	assert_int_equal(exchange(&a, node_insert(&a, &b.addr), &b), FI_ADDR_NOTAVAIL);
}

/* ... unless we are to believe it: then it is that peer, and the answer goes the same way back. */
static void an_advertised_address_is_believed_on_request(void **state)
{
	struct sockaddr_in name;
	fi_addr_t a_at_b, b_at_a;

	(void) state;
	advertise("127.0.0.77");
	tcp_params.trust_advertised = true;
	name = name_of(&a);
	a_at_b = node_insert(&b, &name);
	b_at_a = node_insert(&a, &b.addr);
	assert_int_equal(exchange(&a, b_at_a, &b), a_at_b);
	assert_int_equal(exchange(&b, a_at_b, &a), b_at_a);
}

/* One's own name leads back to oneself, though the way through the NAT may not. */
static void one_reaches_oneself_by_the_advertised_address(void **state)
{
	struct sockaddr_in name;
	fi_addr_t self;

	(void) state;
	advertise("127.0.0.77");
	name = name_of(&a);
	self = node_insert(&a, &name);
	assert_int_equal(exchange(&a, self, &a), self);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(name_is_what_is_advertised),
		TEST(what_is_no_address_is_not_advertised),
		TEST(an_advertised_address_is_not_believed),
		TEST(an_advertised_address_is_believed_on_request),
		TEST(one_reaches_oneself_by_the_advertised_address),
	};

	return cmocka_run_group_tests_name("tcp/advert", tests, NULL, NULL);
}
