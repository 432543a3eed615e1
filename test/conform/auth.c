/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Authorization keys mean something: who does not have the key of an endpoint, a domain or a region does not get in.
 * fi_domain(3), fi_endpoint(3), fi_mr(3), fi_av(3).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

#define KEY_A "the first key"
#define KEY_B "another key altogether, and longer than one block of SHA-256, which has sixty-four bytes"

static void domain_key(struct fi_info *hints, const char *key)
{
	hints->domain_attr->auth_key = (uint8_t *) strdup(key);
	hints->domain_attr->auth_key_size = strlen(key);
}

static void ep_key(struct fi_info *hints, const char *key)
{
	hints->ep_attr->auth_key = (uint8_t *) strdup(key);
	hints->ep_attr->auth_key_size = strlen(key);
}

static void domain_a(struct fi_info *hints)
{
	domain_key(hints, KEY_A);
}

static void domain_b(struct fi_info *hints)
{
	domain_key(hints, KEY_B);
}

static void ep_a(struct fi_info *hints)
{
	ep_key(hints, KEY_A);
}

static void ep_b_in_domain_a(struct fi_info *hints)
{
	domain_key(hints, KEY_A);
	ep_key(hints, KEY_B);
}

static void av_keys(struct fi_info *hints)
{
	hints->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
}

static void no_key(struct fi_info *hints)
{
	(void) hints;
}

/* Skip where there are no keys. */
static void want_keys(struct test *t, void (*hints)(struct fi_info *))
{
	if (!info_find(t, hints_new(t, &(struct opts) { .hints = hints }), NULL, NULL, 0))
		ABSENT("the provider has no authorization keys, or not these");
}

static struct side *open_with(struct test *t, void (*hints)(struct fi_info *))
{
	return side_open(t, .hints = hints);
}

static const struct {
	const char *name;
	void (*a)(struct fi_info *), (*b)(struct fi_info *);
	bool meet;
} ends[] = {
	{ "same_domain_key", domain_a, domain_a, true },
	{ "long_domain_key", domain_b, domain_b, true },
	{ "same_endpoint_key", ep_a, ep_a, true },
	{ "endpoint_key_is_domain_key", ep_a, domain_a, true },
	{ "endpoint_key_goes_first", ep_b_in_domain_a, domain_b, true },
	{ "other_key", domain_a, domain_b, false },
	{ "endpoint_key_hides_the_domains", ep_b_in_domain_a, domain_a, false },
	{ "key_and_none", domain_a, no_key, false },
	{ "none_and_key", no_key, domain_a, false },
};

/* Only endpoints with the same key can send to each other; the others get FI_EACCES, and nothing arrives. */
TEST_TABLE(endpoints_meet_under_one_key, ends, FI_MSG, RDM_ONLY)
{
	struct side *a, *b;
	char in[4];

	want_keys(t, ROW(ends)->a);
	a = open_with(t, ROW(ends)->a);
	b = open_with(t, ROW(ends)->b);
	a->peer = side_insert(a, b);
	b->peer = side_insert(b, a);
	if (ROW(ends)->meet) {
		check_link(a, b);
		check_link(b, a);
		return;
	}
	post_recv(a, in, sizeof(in));
	post_recv(b, in, sizeof(in));
	CHECK_RET(post_ret(a, SEND, .buf = "none", .len = 4), 0);
	expect_tx_err(a, FI_EACCES);
	CHECK_RET(post_ret(b, SEND, .buf = "none", .len = 4), 0);
	expect_tx_err(b, FI_EACCES);
	CHECK_EQ(rx_waiting(a) + rx_waiting(b), 0);
}

/* Connected endpoints likewise; a peer without the key is not even reported. */
TEST_TABLE(connections_want_one_key, ends, FI_MSG, CONNECTED)
{
	struct side *a, *b, *l;

	want_keys(t, ROW(ends)->a);
	l = listener_open_opts(t, &(struct opts) { .hints = ROW(ends)->b });
	a = connector_open(t, l, &(struct opts) { .hints = ROW(ends)->a });
	if (ROW(ends)->meet) {
		b = side_connect(a, l);
		check_link(a, b);
		check_link(b, a);
		return;
	}
	MUST(fi_connect(a->ep, l->name, NULL, 0));
	expect_event_err(a, FI_EACCES);
	expect_no_event(l);
}

/* Private data of both sides arrives whole beside the proof of the keys. */
TEST_PROV(keyed_connection_carries_private_data, FI_MSG, CONNECTED)
{
	struct side *a, *b, *l;
	struct event e;
	uint8_t data[256];

	want_keys(t, domain_a);
	fill(data, sizeof(data), 5);
	l = listener_open(t, .hints = domain_a);
	a = connector_open(t, l, &(struct opts) { .hints = domain_a });
	MUST(fi_connect(a->ep, l->name, data, sizeof(data)));
	e = expect_event(l, FI_CONNREQ);
	CHECK_EQ(e.len, sizeof(data));
	check_fill(e.data, sizeof(data), 5);
	b = acceptor_open(l, e.info, &a->o);
	MUST(fi_accept(b->ep, data, 100));
	e = expect_event(a, FI_CONNECTED);
	CHECK_EQ(e.len, 100);
	check_fill(e.data, 100, 5);
	expect_event(b, FI_CONNECTED);
	check_link(a, b);
}

/* A request that has proved the passive endpoint's key cannot be accepted by an endpoint with another one. */
TEST_PROV(accept_wants_the_key_that_was_proved, FI_MSG, CONNECTED)
{
	struct side *a, *b, *l;
	struct event e;

	want_keys(t, domain_a);
	l = listener_open(t, .hints = domain_a);
	a = connector_open(t, l, &(struct opts) { .hints = domain_a });
	MUST(fi_connect(a->ep, l->name, NULL, 0));
	e = expect_event(l, FI_CONNREQ);
	e.info->domain_attr->auth_key[0] ^= 1;
	b = acceptor_open(l, e.info, &a->o);
	CHECK_RET(fi_accept(b->ep, NULL, 0), -FI_EACCES);
}

/* ---- memory */

static struct region region_with(struct side *s, const void *key, size_t key_size, uint64_t flags)
{
	struct region r = { .buf = mem(s->t, 64), .len = 64 };
	struct iovec iov = { r.buf, r.len };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				   .requested_key = ++s->t->key, .auth_key = (uint8_t *) key,
				   .auth_key_size = key_size };

	MUST(fi_mr_regattr(s->domain, &attr, flags, &r.mr));
	own_fid(s->t, &r.mr->fid);
	region_ready(s, r.mr);
	r.key = fi_mr_key(r.mr);
	r.addr = s->info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | MR_BASIC) ? (uintptr_t) r.buf : 0;
	return r;
}

/* s writes to and reads from the region, which it may or may not. */
static void check_access(struct side *s, fi_addr_t peer, const struct region *r, bool allowed)
{
	char buf[8] = "written";

	memset(r->buf, 0, r->len);
	post(s, WRITEMSG, .buf = buf, .len = 8, .addr = &peer, .raddr = r->addr, .key = r->key,
	     .flags = FI_COMPLETION | level_delivered());
	if (allowed)
		expect_tx(s);
	else
		expect_tx_failed(s);
	CHECK_EQ(!memcmp(r->buf, buf, 8), allowed);
}

/* Where nobody proves a key, a region is not taken for one that has one. */
TEST_PROV(region_keys_are_refused_where_there_are_none, FI_RMA)
{
	struct side *s = side_open(t);
	struct iovec iov = { mem(t, 64), 64 };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = FI_REMOTE_WRITE, .requested_key = 1,
				   .auth_key = (uint8_t *) KEY_A, .auth_key_size = strlen(KEY_A) };
	struct fid_mr *mr;

	if (info_find(t, hints_new(t, &(struct opts) { .hints = domain_a }), NULL, NULL, 0))
		ABSENT("the provider has authorization keys");
	CHECK_RET(fi_mr_regattr(s->domain, &attr, 0, &mr), -FI_EINVAL);
}

static const struct {
	const char *name;
	const char *key;
	bool allowed;
} regions[] = {
	{ "key_of_the_domain", NULL, true },
	{ "the_same_said_again", KEY_A, true },
	{ "another_key", KEY_B, false },
};

/* A region with a key of its own is only for those who have proved that key, whatever the domain's is. */
TEST_TABLE(region_is_for_those_with_its_key, regions, FI_MSG | FI_RMA, RELIABLE)
{
	const char *key = ROW(regions)->key;
	struct region r;
	struct pair p;

	want_keys(t, domain_a);
	p = pair_open(t, .hints = domain_a);
	r = region_with(p.b, key, key ? strlen(key) : 0, 0);
	check_access(p.a, p.a->peer, &r, ROW(regions)->allowed);
}

/* Endpoints of a domain may have keys of their own; the domain's regions stay under the domain's key. */
TEST_PROV(region_is_not_for_another_endpoints_key, FI_MSG | FI_RMA, RDM_ONLY)
{
	struct region own, domains;
	struct side *a, *b;

	want_keys(t, domain_a);
	b = open_with(t, ep_b_in_domain_a);
	a = open_with(t, domain_b);
	domains = region_with(b, NULL, 0, 0);
	own = region_with(b, KEY_B, strlen(KEY_B), 0);
	a->peer = side_insert(a, b);
	check_access(a, a->peer, &own, true);
	check_access(a, a->peer, &domains, false);
}

/* ---- keys in the address vector */

static fi_addr_t add_key(struct side *s, const char *key)
{
	fi_addr_t handle = FI_ADDR_NOTAVAIL;

	MUST(fi_av_insert_auth_key(s->av, key, strlen(key), &handle, 0));
	return handle;
}

static fi_addr_t insert_under(struct side *s, struct side *peer, fi_addr_t key)
{
	CHECK_RET(fi_av_insert(s->av, peer->name, 1, &key, FI_AUTH_KEY, NULL), 1);
	return key;
}

/* An endpoint with several keys talks under each of them, and completions tell peers apart by address and key. */
TEST_PROV(one_endpoint_has_many_keys, FI_MSG | FI_SOURCE, RDM_ONLY, .since = FI_VERSION(1, 20))
{
	struct side *many, *other, *a, *b;
	fi_addr_t key_a, key_b, under_a, under_b, to_a, to_b;
	char in[4];

	want_keys(t, av_keys);
	many = open_with(t, av_keys);
	other = open_with(t, av_keys);
	key_a = add_key(many, KEY_A);
	key_b = add_key(many, KEY_B);
	CHECK(key_a != key_b);
	CHECK_EQ(add_key(many, KEY_A), key_a);
	add_key(other, "of no interest here");
	to_a = insert_under(other, many, add_key(other, KEY_A));
	to_b = insert_under(other, many, add_key(other, KEY_B));
	under_a = insert_under(many, other, key_a);
	under_b = insert_under(many, other, key_b);
	CHECK(under_a != under_b);

	post_recv(many, in, 4);
	post(other, SEND, .buf = "by_A", .len = 4, .addr = &to_a);
	CHECK_EQ(expect_recv(many, "by_A", 4).src, under_a);
	post_recv(many, in, 4);
	post(other, SEND, .buf = "by_B", .len = 4, .addr = &to_b);
	CHECK_EQ(expect_recv(many, "by_B", 4).src, under_b);
	expect_tx_cnt(other, 2);

	/* and with those who have one key each */
	a = open_with(t, domain_a);
	b = open_with(t, domain_b);
	a->peer = side_insert(a, many);
	b->peer = side_insert(b, many);
	many->peer = insert_under(many, b, key_b);
	check_link(many, b);
	check_link(b, many);
	many->peer = insert_under(many, a, key_b);
	post(many, SEND, .buf = "none", .len = 4);
	expect_tx_err(many, FI_EACCES);
}

/* A key is found again by its handle and by the entries under it; what is none is refused. */
TEST_PROV(av_keys_are_looked_up, FI_MSG, RDM_ONLY, .since = FI_VERSION(1, 20))
{
	struct side *s, *peer;
	fi_addr_t key, entry, none = 77;
	char found[100];
	size_t len = sizeof(found);

	want_keys(t, av_keys);
	s = open_with(t, av_keys);
	peer = open_with(t, av_keys);
	key = add_key(s, KEY_A);
	entry = insert_under(s, peer, key);
	MUST(fi_av_lookup_auth_key(s->av, entry, found, &len));
	CHECK_EQ(len, strlen(KEY_A));
	CHECK_MEM(found, KEY_A, len);
	len = 3;
	MUST(fi_av_lookup_auth_key(s->av, entry, found, &len));
	CHECK_EQ(len, strlen(KEY_A));
	CHECK_RET(fi_av_lookup_auth_key(s->av, none, found, &len), -FI_EINVAL);
	CHECK_RET(fi_av_insert(s->av, peer->name, 1, &none, FI_AUTH_KEY, NULL), 0);
	CHECK_RET(fi_av_insert_auth_key(s->av, KEY_A, 0, &none, 0), -FI_EINVAL);
}

/* A vector takes as many keys as max_ep_auth_key says, and each of them again; one more is -FI_ENOSPC. */
TEST_PROV(keys_are_counted, FI_MSG, RDM_ONLY, .since = FI_VERSION(1, 20))
{
	fi_addr_t first, handle;
	struct side *s;
	size_t i, max;
	char key[32];

	want_keys(t, av_keys);
	s = open_with(t, av_keys);
	max = s->info->domain_attr->max_ep_auth_key;
	first = add_key(s, "key 0");
	for (i = 1; i < max; i++) {
		snprintf(key, sizeof(key), "key %zu", i);
		add_key(s, key);
	}
	CHECK_EQ(add_key(s, "key 0"), first);
	CHECK_RET(fi_av_insert_auth_key(s->av, "one more", 8, &handle, 0), -FI_ENOSPC);
}

/* A region can be limited to one key of the vector. */
TEST_PROV(region_is_limited_to_an_av_key, FI_MSG | FI_RMA | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(1, 20))
{
	struct side *s, *a, *b;
	struct fi_mr_auth_key limit;
	struct region only_a, all;
	fi_addr_t key_a;

	want_keys(t, av_keys);
	s = open_with(t, av_keys);
	key_a = add_key(s, KEY_A);
	add_key(s, KEY_B);
	limit = (struct fi_mr_auth_key) { .av = s->av, .src_addr = key_a };
	only_a = region_with(s, &limit, sizeof(limit), FI_AUTH_KEY);
	limit.src_addr = FI_ADDR_UNSPEC;
	all = region_with(s, &limit, sizeof(limit), 0);
	a = open_with(t, domain_a);
	b = open_with(t, domain_b);
	check_access(a, side_insert(a, s), &only_a, true);
	check_access(b, side_insert(b, s), &only_a, false);
	check_access(b, side_insert(b, s), &all, true);
}

/* A receive with FI_AUTH_KEY is for messages under that key alone, whoever sends them; others are left to others. */
TEST_PROV(receive_for_a_key, FI_MSG | FI_SOURCE | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(1, 20))
{
	struct side *s, *a, *b;
	fi_addr_t key_a, key_b, none = 9;
	char in[4][4];

	want_keys(t, av_keys);
	s = open_with(t, av_keys);
	key_a = add_key(s, KEY_A);
	key_b = add_key(s, KEY_B);
	a = open_with(t, domain_a);
	b = open_with(t, domain_b);
	a->peer = side_insert(a, s);
	b->peer = side_insert(b, s);

	post(s, RECVMSG, .buf = in[0], .len = 4, .addr = &key_b, .flags = FI_AUTH_KEY | FI_COMPLETION);
	post_recv(s, in[1], 4);
	post(s, RECVMSG, .buf = in[2], .len = 4, .addr = &key_a, .flags = FI_AUTH_KEY | FI_COMPLETION);
	send_bytes(a, "any1", 4);
	expect_recv(s, "any1", 4);
	CHECK_MEM(in[1], "any1", 4);
	send_bytes(a, "a_2_", 4);
	expect_recv(s, "a_2_", 4);
	CHECK_MEM(in[2], "a_2_", 4);
	send_bytes(b, "b_3_", 4);
	expect_recv(s, "b_3_", 4);
	CHECK_MEM(in[0], "b_3_", 4);

	/* and what has come before the receive */
	send_bytes(a, "a_4_", 4);
	send_bytes(b, "b_5_", 4);
	expect_tx_cnt(a, 3);
	expect_tx_cnt(b, 2);
	idle(t);
	post(s, RECVMSG, .buf = in[0], .len = 4, .addr = &key_b, .flags = FI_AUTH_KEY | FI_COMPLETION);
	expect_recv(s, "b_5_", 4);
	post(s, RECVMSG, .buf = in[1], .len = 4, .addr = &key_a, .flags = FI_AUTH_KEY | FI_COMPLETION);
	expect_recv(s, "a_4_", 4);
	CHECK_RET(try_op(s, RECVMSG, .buf = in[0], .len = 4, .addr = &none, .flags = FI_AUTH_KEY), -FI_EINVAL);
	CHECK_RET(try_op(a, RECVMSG, .buf = in[0], .len = 4, .addr = &key_a, .flags = FI_AUTH_KEY), -FI_EINVAL);
}

/* A stranger is reported with its address and the key that it has: what is needed to insert it. */
TEST_PROV(stranger_is_known_by_its_key, FI_MSG | FI_SOURCE | FI_SOURCE_ERR, RDM_ONLY)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	struct side *s, *b;
	fi_addr_t key_b, src;
	uint8_t addr[128];
	ssize_t ret;
	char in[4];

	want_keys(t, av_keys);
	s = side_open(t, .hints = av_keys, .raw_cq = true);
	add_key(s, KEY_A);
	key_b = add_key(s, KEY_B);
	b = open_with(t, domain_b);
	b->peer = side_insert(b, s);
	post_recv(s, in, 4);
	send_bytes(b, "who?", 4);
	while ((ret = fi_cq_readfrom(s->rx_cq, &entry, 1, &src)) == -FI_EAGAIN)
		wait_more(t, &w, "the message");
	CHECK_RET(ret, -FI_EAVAIL);
	err.err_data = addr;
	err.err_data_size = sizeof(addr);
	CHECK_RET(fi_cq_readerr(s->rx_cq, &err, 0), 1);
	CHECK_EQ(err.err, FI_EADDRNOTAVAIL);
	CHECK_EQ(err.src_addr, key_b);
	src = err.src_addr;
	CHECK_RET(fi_av_insert(s->av, err.err_data, 1, &src, FI_AUTH_KEY, NULL), 1);
	CHECK_EQ(insert_under(s, b, key_b), src);
}
