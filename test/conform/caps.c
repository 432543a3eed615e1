/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every capability that a provider offers is shown to be there by a test: the table says which, and fails for a bit
 * that is offered and has none. Then the tests of those that no other file is about: each direction alone, here and
 * elsewhere.
 * Source: fi_getinfo(3), fi_endpoint(3).
 */
#include <stdlib.h>
#include <string.h>

#include "getinfo.h"
#include "ops.h"

/* A test that asks for the capability and uses it, for the endpoint types that offer it. */
struct shown {
	uint64_t cap;
	const char *test;
};

static const struct shown shown[] = {
	{ FI_MSG, "msg/size" }, { FI_RMA, "rma/write_call" }, { FI_RMA, "rma/read_call" },
	{ FI_TAGGED, "tagged/match" }, { FI_ATOMIC, "atomic/matrix" }, { FI_MULTICAST, "multicast/all_members" },
	{ FI_COLLECTIVE, "collective/results" }, { FI_READ, "caps/read_alone" }, { FI_WRITE, "caps/write_alone" },
	{ FI_SEND, "caps/send_alone" }, { FI_RECV, "caps/send_alone" }, { FI_REMOTE_READ, "caps/read_alone" },
	{ FI_REMOTE_WRITE, "caps/write_alone" }, { FI_MULTI_RECV, "msg_flags/multi_recv" },
	{ FI_TRIGGER, "trigger/waits_for_threshold" }, { FI_FENCE, "fence/write_behind_read" },
	{ FI_LOCAL_COMM, "caps/on_this_host" }, { FI_REMOTE_COMM, "caps/on_an_interface_to_others" },
	{ FI_SHARED_AV, "av/named_vector_is_shared" }, { FI_RMA_EVENT, "cntr/counts_remote" },
	{ FI_SOURCE, "msg_flags/source_is_known" }, { FI_NAMED_RX_CTX, "scalable/every_pair" },
	{ FI_DIRECTED_RECV, "msg_flags/directed_recv" }, { FI_DIRECTED_RECV, "tagged/directed_trecv" },
	{ FI_AV_USER_ID, "av/user_ids_are_reported" }, { FI_PEER, "peer/completions_go_to_the_owner" },
	{ FI_TAGGED_MULTI_RECV, "msg_flags/tagged_multi_recv" },
	{ FI_SOURCE_ERR, "msg_flags/source_err_gives_address" },
	{ FI_RMA_PMEM, "commit/a_write" }, { FI_HMEM, "hmem_copies/message" },
};

/* All that the provider says it can with the run's endpoint type, asked or not. */
static uint64_t all_offered(struct test *t)
{
	struct fi_info *list, *info;
	uint64_t caps = 0;
	unsigned int bit;

	MUST(fi_getinfo(run.version, NULL, NULL, 0,
			hints_new(t, &(struct opts) { .mr_mode = -1 & ~(MR_BASIC | MR_SCALABLE) }), &list));
	own_info(t, list);
	for (info = list; info; info = info->next) {
		if (info_is_run(info))
			caps |= info->caps | info->tx_attr->caps | info->rx_attr->caps | info->domain_attr->caps;
	}
	for (bit = 0; bit < 64; bit++) {
		if (!(caps & 1ULL << bit) && (offered(1ULL << bit) || offered(1ULL << bit | FI_MSG | FI_SOURCE)))
			caps |= 1ULL << bit;
	}
	return caps;
}

static bool shows(const struct shown *s, uint64_t cap)
{
	const struct test_case *c = test_named(s->test);

	return s->cap == cap && c && c->caps & cap && (!c->types || c->types & BIT(run.type));
}

/* Each capability that the provider offers with this endpoint type has a test that shows it. */
TEST_PROV(each_that_is_offered_is_shown, 0)
{
	uint64_t caps = all_offered(t), cap;
	unsigned int bit;
	size_t i;

	if (!strcmp(run.prov, "sockets") && run.type == FI_EP_DGRAM)
		ABSENT("the same code as that of reliable endpoints, where each is shown");
	CHECK(caps != 0);
	for (i = 0; i < COUNT(shown); i++) {
		note("%s", shown[i].test);
		CHECK(test_named(shown[i].test) != NULL);
		CHECK(test_named(shown[i].test)->caps & shown[i].cap);
	}
	note(NULL);
	for (bit = 0; bit < 64 && run.ours; bit++) {
		cap = 1ULL << bit;
		for (i = 0; i < COUNT(shown) && !shows(&shown[i], cap); i++)
			;
		if (caps & cap && i == COUNT(shown))
			FAIL("%s is offered, and no test shows it with this endpoint type",
			     fi_tostr(&cap, FI_TYPE_CAPS));
	}
}

/* ---- one direction: an endpoint that is opened for it does it, and nothing else */

/* @a with one part of the capabilities, @b with the other. */
static struct pair complement_open(struct test *t, uint64_t a_caps, uint64_t b_caps)
{
	struct pair p = { 0 };

	if (run.type == FI_EP_MSG) {
		p.listener = listener_open(t, .caps = b_caps);
		p.a = connector_open(t, p.listener, &(struct opts) { .caps = a_caps });
		p.b = side_connect(p.a, p.listener);
		return p;
	}
	p.a = side_open(t, .caps = a_caps);
	p.b = side_open(t, .caps = b_caps);
	p.a->peer = side_insert(p.a, p.b);
	p.b->peer = side_insert(p.b, p.a);
	return p;
}

static void expect_not_there(ssize_t ret)
{
	if (run.ours)
		CHECK_RET(ret, -FI_ENOSYS);
}

/* Of an endpoint with FI_SEND alone, and a peer with FI_RECV alone: the one sends, the other receives, and no more. */
TEST_PROV(send_alone, FI_MSG | FI_SEND | FI_RECV)
{
	struct pair p = complement_open(t, FI_MSG | FI_SEND, FI_MSG | FI_RECV);
	char in[8];

	CHECK_EQ(p.a->info->caps & (FI_SEND | FI_RECV), FI_SEND);
	post_recv(p.b, in, 8);
	send_bytes(p.a, "one way.", 8);
	expect_recv(p.b, "one way.", 8);
	expect_tx(p.a);
	expect_not_there(try_op(p.a, RECV, .buf = in, .len = 8));
	expect_not_there(try_op(p.b, SEND, .buf = in, .len = 8));
}

/* The same of tagged messages. */
TEST_PROV(tagged_send_alone, FI_TAGGED | FI_SEND | FI_RECV)
{
	struct pair p = complement_open(t, FI_TAGGED | FI_SEND, FI_TAGGED | FI_RECV);
	char in[8];

	post_trecv(p.b, in, 8, 7, 0);
	tsend_bytes(p.a, "one way.", 8, 7);
	expect_recv(p.b, "one way.", 8);
	expect_tx(p.a);
	expect_not_there(try_op(p.a, TRECV, .buf = in, .len = 8, .tag = 7));
	expect_not_there(try_op(p.b, TSEND, .buf = in, .len = 8, .tag = 7));
}

static void rma_alone(struct test *t, uint64_t mine, uint64_t its, enum call can, enum call cannot)
{
	struct pair p = complement_open(t, FI_RMA | mine, FI_RMA | its);
	struct region back = region_open(p.a, NULL, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
	struct region r = region_open(p.b, NULL, 64, its);
	char *buf = mem(t, 8);

	memcpy(buf, "one way.", 8);
	memcpy(r.buf, "one way.", 8);
	post(p.a, can, .buf = buf, .len = 8, .raddr = r.addr + 8 * (can == WRITE), .key = r.key);
	expect_tx(p.a);
	if (run.type == FI_EP_MSG || can == READ)
		CHECK_MEM(buf, "one way.", 8);
	expect_not_there(try_op(p.a, cannot, .buf = buf, .len = 8, .raddr = r.addr, .key = r.key));
	expect_not_there(try_op(p.b, can, .buf = buf, .len = 8, .raddr = back.addr, .key = back.key));
}

/* Of an endpoint with FI_WRITE alone, and a peer with FI_REMOTE_WRITE alone: writes work, reads are not there. */
TEST_PROV(write_alone, FI_RMA | FI_WRITE | FI_REMOTE_WRITE)
{
	rma_alone(t, FI_WRITE, FI_REMOTE_WRITE, WRITE, READ);
}

/* Of an endpoint with FI_READ alone, and a peer with FI_REMOTE_READ alone: reads work, writes are not there. */
TEST_PROV(read_alone, FI_RMA | FI_READ | FI_REMOTE_READ)
{
	rma_alone(t, FI_READ, FI_REMOTE_READ, READ, WRITE);
}

/* ---- how far */

/* FI_LOCAL_COMM: endpoints of one host reach each other, both ways. */
TEST_PROV(on_this_host, FI_MSG | FI_LOCAL_COMM)
{
	struct pair p = pair_open(t);

	CHECK(p.a->info->caps & FI_LOCAL_COMM);
	check_link(p.a, p.b);
	check_link(p.b, p.a);
}

static const struct fi_info *far;	/* whose address far_hints() asks for */

static void far_hints(struct fi_info *hints)
{
	hints->caps |= FI_REMOTE_COMM;
	hints->addr_format = far->addr_format;
	hints->src_addr = malloc(far->src_addrlen);
	hints->src_addrlen = far->src_addrlen;
	memcpy(hints->src_addr, far->src_addr, far->src_addrlen);
}

/* Other hosts reach this one there; that it does so itself shows that address and interface are good. */
TEST_PROV(on_an_interface_to_others, FI_MSG | FI_REMOTE_COMM, .alone = true)
{
	struct fi_info *hints = hints_new(t, &(struct opts) { .caps = FI_MSG | FI_REMOTE_COMM }), *list = NULL, *info;
	struct pair p;

	if (fi_getinfo(run.version, NULL, NULL, 0, hints, &list))
		SKIP("no interface to other hosts");
	own_info(t, list);
	for (info = list; info && !info_is_run(info); info = info->next)
		;
	if (!info || !info->src_addr)
		SKIP("no interface to other hosts that has an address");
	CHECK(info->caps & FI_REMOTE_COMM);
	CHECK(info->domain_attr->caps & FI_REMOTE_COMM);
	far = info;
	p = pair_open(t, .caps = FI_MSG, .hints = far_hints);
	check_link(p.a, p.b);
	check_link(p.b, p.a);
}
