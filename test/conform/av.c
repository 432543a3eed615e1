/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Address vectors: inserting in each way, finding again, removing, and what cannot be an address. Source: fi_av(3). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ops.h"

/* Old calls, which the headers advise against, have to work all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

struct type_row {
	const char *name;
	enum fi_av_type type;
};

static const struct type_row type_rows[] = {
	{ "table", FI_AV_TABLE }, { "map", FI_AV_MAP }, { "unspec", FI_AV_UNSPEC },
};

/* A side with domain and an address vector of this type. */
static struct side *av_side(struct test *t, enum fi_av_type type)
{
	struct side *s = domain_side(t);
	struct fi_av_attr attr = { .type = type, .count = 4 };

	MUST(fi_av_open(s->domain, &attr, &s->av, s));
	own_fid(t, &s->av->fid);
	if (type)
		CHECK_EQ(attr.type, type);
	else
		CHECK(attr.type == FI_AV_TABLE || attr.type == FI_AV_MAP);
	return s;
}

/* Socket addresses by number: loopback, ports 1000 + i. */
static void need_sockaddr(void)
{
	if (!has_sockaddr())
		ABSENT("%s has no socket addresses", run.prov);
}

struct addrs {
	uint8_t bytes[64 * sizeof(struct sockaddr_in6)];
	size_t len;			/* of one */
};

static void *addr_at(struct addrs *a, size_t i)
{
	return a->bytes + i * a->len;
}

static struct addrs addrs_new(unsigned int from, unsigned int cnt)
{
	struct addrs a = { .len = run.family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in) };
	unsigned int i;

	need_sockaddr();
	CHECK(cnt <= 64);
	for (i = 0; i < cnt; i++) {
		struct sockaddr_in6 *sin6 = addr_at(&a, i);
		struct sockaddr_in *sin = addr_at(&a, i);

		if (run.family == AF_INET6)
			*sin6 = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
							.sin6_port = htons((uint16_t) (1000 + from + i)) };
		else
			*sin = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
						      .sin_port = htons((uint16_t) (1000 + from + i)) };
	}
	return a;
}

/* The address behind @fi_addr is number @n of addrs_new(). */
static void check_lookup(struct fid_av *av, fi_addr_t fi_addr, unsigned int n)
{
	struct addrs want = addrs_new(n, 1);
	struct sockaddr_in6 got = { 0 };
	size_t len = sizeof(got);

	MUST(fi_av_lookup(av, fi_addr, &got, &len));
	CHECK_EQ(len, want.len);
	CHECK_EQ(got.sin6_port, ((struct sockaddr_in6 *) want.bytes)->sin6_port);
	CHECK_EQ(got.sin6_family, run.family);
}

/* Addresses inserted together and one by one are found again; a table numbers them from 0 on. */
TEST_TABLE(insert_and_lookup, type_rows, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, ROW(type_rows)->type);
	struct addrs a = addrs_new(0, 20);
	fi_addr_t addr[20];
	unsigned int i;

	CHECK_RET(fi_av_insert(s->av, a.bytes, 17, addr, 0, NULL), 17);
	for (i = 17; i < 20; i++)
		CHECK_RET(fi_av_insert(s->av, addr_at(&a, i), 1, &addr[i], FI_MORE * (i < 19), NULL), 1);
	for (i = 0; i < 20; i++) {
		if (ROW(type_rows)->type == FI_AV_TABLE)
			CHECK_EQ(addr[i], i);
		check_lookup(s->av, addr[i], i);
	}
}

/* A table may be filled without being told the indexes. */
TEST_PROV(insert_without_answer, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct addrs a = addrs_new(0, 10);
	unsigned int i;

	CHECK_RET(fi_av_insert(s->av, a.bytes, 6, NULL, 0, NULL), 6);
	CHECK_RET(fi_av_insert(s->av, addr_at(&a, 6), 4, NULL, 0, NULL), 4);
	for (i = 0; i < 10; i++)
		check_lookup(s->av, i, i);
}

/* Nothing inserted is nothing inserted. */
TEST_PROV(insert_none, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct addrs a = addrs_new(0, 1);
	int ret = fi_av_insert(s->av, a.bytes, 0, NULL, 0, NULL);

	CHECK(ret == 0 || ret == -FI_EINVAL);
}

/* Many more than the count that was announced. */
TEST_PROV(count_is_a_hint, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	unsigned int i, j;

	for (i = 0; i < 30; i++) {
		struct addrs a = addrs_new(i * 64, 64);
		fi_addr_t addr[64];

		CHECK_RET(fi_av_insert(s->av, a.bytes, 64, addr, 0, NULL), 64);
		for (j = 0; j < 64; j++)
			CHECK_EQ(addr[j], i * 64 + j);
	}
	check_lookup(s->av, 1919, 1919);
}

/* Room for a lookup: too little cuts, tells the size, and writes no further. */
TEST_PROV(lookup_room, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct addrs a = addrs_new(0, 1);
	uint8_t buf[64];
	size_t len = 4;
	int ret;

	CHECK_RET(fi_av_insert(s->av, a.bytes, 1, NULL, 0, NULL), 1);
	memset(buf, 0x5a, sizeof(buf));
	ret = fi_av_lookup(s->av, 0, buf, &len);
	CHECK(ret == 0 || ret == -FI_ETOOSMALL);
	CHECK_EQ(len, a.len);
	CHECK_MEM(buf, a.bytes, 4);
	CHECK_EQ(buf[4], 0x5a);
	len = 0;
	ret = fi_av_lookup(s->av, 0, NULL, &len);
	CHECK(ret == 0 || ret == -FI_ETOOSMALL);
	CHECK_EQ(len, a.len);
}

/* What was never inserted, or was removed, is -FI_EINVAL. */
TEST_PROV(lookup_of_nothing, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct addrs a = addrs_new(0, 3);
	uint8_t buf[64];
	fi_addr_t gone = 1;
	size_t len = sizeof(buf);

	if (!run.ours)
		ABSENT("fi_av(3) of 1.17 does not say; upstream crashes");
	CHECK_RET(fi_av_lookup(s->av, 0, buf, &len), -FI_EINVAL);
	CHECK_RET(fi_av_insert(s->av, a.bytes, 3, NULL, 0, NULL), 3);
	CHECK_RET(fi_av_lookup(s->av, 3, buf, &len), -FI_EINVAL);
	CHECK_RET(fi_av_lookup(s->av, FI_ADDR_UNSPEC, buf, &len), -FI_EINVAL);
	CHECK_RET(fi_av_lookup(s->av, 1ULL << 40, buf, &len), -FI_EINVAL);
	MUST(fi_av_remove(s->av, &gone, 1, 0));
	CHECK_RET(fi_av_lookup(s->av, 1, buf, &len), -FI_EINVAL);
	len = sizeof(buf);
	MUST(fi_av_lookup(s->av, 2, buf, &len));
}

/* A removed address can come back; in a table it takes the lowest free place. */
TEST_TABLE(remove_and_reinsert, type_rows, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, ROW(type_rows)->type);
	struct addrs a = addrs_new(0, 6), b = addrs_new(10, 2);
	fi_addr_t addr[6], two[2];

	CHECK_RET(fi_av_insert(s->av, a.bytes, 6, addr, 0, NULL), 6);
	two[0] = addr[3];
	two[1] = addr[1];
	MUST(fi_av_remove(s->av, two, 2, 0));
	CHECK_RET(fi_av_insert(s->av, b.bytes, 2, two, 0, NULL), 2);
	check_lookup(s->av, two[0], 10);
	check_lookup(s->av, two[1], 11);
	if (ROW(type_rows)->type == FI_AV_TABLE && run.ours) {
		CHECK_EQ(two[0], 1);
		CHECK_EQ(two[1], 3);
	}
	check_lookup(s->av, addr[0], 0);
	check_lookup(s->av, addr[5], 5);
	MUST(fi_av_remove(s->av, two, 2, 0));
	CHECK_RET(fi_av_insert(s->av, addr_at(&a, 1), 1, two, 0, NULL), 1);
	check_lookup(s->av, two[0], 1);
}

/* Removing what is not there is refused and harms nothing. */
TEST_PROV(remove_nothing, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct addrs a = addrs_new(0, 1);
	fi_addr_t addr = 7;

	if (!run.ours)
		ABSENT("upstream crashes");
	CHECK_RET(fi_av_insert(s->av, a.bytes, 1, NULL, 0, NULL), 1);
	CHECK_RET(fi_av_remove(s->av, &addr, 1, 0), -FI_EINVAL);
	addr = 0;
	MUST(fi_av_remove(s->av, &addr, 1, 0));
	CHECK_RET(fi_av_remove(s->av, &addr, 1, 0), -FI_EINVAL);
	CHECK_RET(fi_av_remove(s->av, NULL, 1, 0), -FI_EINVAL);
	MUST(fi_av_remove(s->av, NULL, 0, 0));
}

/* One in the middle that is not there: the call says so, and all others are removed. */
TEST_PROV(remove_what_is_there, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct addrs a = addrs_new(0, 3);
	fi_addr_t addr[] = { 0, FI_ADDR_NOTAVAIL, 99, 2 };
	uint8_t buf[64];
	size_t len = sizeof(buf);

	if (!run.ours)
		ABSENT("upstream crashes");
	CHECK_RET(fi_av_insert(s->av, a.bytes, 3, NULL, 0, NULL), 3);
	CHECK_RET(fi_av_remove(s->av, addr, COUNT(addr), 0), -FI_EINVAL);
	CHECK_RET(fi_av_lookup(s->av, 0, buf, &len), -FI_EINVAL);
	CHECK_RET(fi_av_lookup(s->av, 2, buf, &len), -FI_EINVAL);
	check_lookup(s->av, 1, 1);
}

/* An address inserted twice: whatever it becomes, both names reach it. */
TEST_PROV(duplicates, FI_MSG, UNCONNECTED)
{
	struct side *b = side_open(t), *a = side_open(t);
	fi_addr_t addr[2];
	char in[2][4];

	addr[0] = side_insert(a, b);
	addr[1] = side_insert(a, b);
	post_recv(b, in[0], 4);
	post_recv(b, in[1], 4);
	post(a, SEND, .buf = "1111", .len = 4, .addr = &addr[0]);
	post(a, SEND, .buf = "2222", .len = 4, .addr = &addr[1]);
	expect_recv(b, "1111", 4);
	expect_recv(b, "2222", 4);
	MUST(fi_av_remove(a->av, &addr[1], 1, 0));
	if (addr[0] == addr[1] && !run.ours)
		return;
	post_recv(b, in[0], 4);
	post(a, SEND, .buf = "3333", .len = 4, .addr = &addr[0]);
	expect_recv(b, "3333", 4);
}

/* A peer removed and inserted again is reached again. */
TEST_PROV(remove_a_connected_peer, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	unsigned int i;

	for (i = 0; i < 5; i++) {
		check_link(p.a, p.b);
		MUST(fi_av_remove(p.a->av, &p.a->peer, 1, 0));
		p.a->peer = side_insert(p.a, p.b);
		check_link(p.a, p.b);
		check_link(p.b, p.a);
	}
}

/* ---- bad addresses */

/* Among good addresses a bad one fails alone: count, FI_ADDR_NOTAVAIL, and its error by FI_SYNC_ERR. */
TEST_PROV(one_bad_address, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct addrs a = addrs_new(0, 3);
	fi_addr_t addr[3] = { 77, 77, 77 };
	int err[3] = { 77, 77, 77 };

	if (!run.ours)
		ABSENT("upstream's answers differ by provider");
	((struct sockaddr *) addr_at(&a, 1))->sa_family = 99;
	CHECK_RET(fi_av_insert(s->av, a.bytes, 3, addr, FI_SYNC_ERR, err), 2);
	CHECK(addr[1] == FI_ADDR_NOTAVAIL);
	CHECK(err[0] == 0 && err[1] != 0 && err[2] == 0);
	check_lookup(s->av, addr[0], 0);
	check_lookup(s->av, addr[2], 2);
}

/* All bad: nothing inserted, and the vector is as before. */
TEST_PROV(all_bad_addresses, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct addrs a = addrs_new(0, 2), good = addrs_new(5, 1);
	fi_addr_t addr[2] = { 77, 77 };
	int ret;

	((struct sockaddr *) addr_at(&a, 0))->sa_family = 99;
	((struct sockaddr *) addr_at(&a, 1))->sa_family = 0;
	ret = fi_av_insert(s->av, a.bytes, 2, addr, 0, NULL);
	CHECK(ret <= 0);
	CHECK(addr[0] == FI_ADDR_NOTAVAIL && addr[1] == FI_ADDR_NOTAVAIL);
	CHECK_RET(fi_av_insert(s->av, good.bytes, 1, addr, 0, NULL), 1);
	check_lookup(s->av, addr[0], 5);
}

/* ---- by name */

/* Node and service. */
TEST_PROV(insertsvc, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	fi_addr_t addr[2] = { 77, 77 };

	need_sockaddr();
	CHECK_RET(fi_av_insertsvc(s->av, loopback(), "1007", &addr[0], 0, NULL), 1);
	check_lookup(s->av, addr[0], 7);
	CHECK(fi_av_insertsvc(s->av, "no-such-host.invalid", "1", &addr[1], 0, NULL) <= 0);
	CHECK(fi_av_insertsvc(s->av, loopback(), "no-such-service", &addr[1], 0, NULL) <= 0);
	CHECK_RET(fi_av_insertsvc(s->av, loopback(), "1008", &addr[1], 0, NULL), 1);
	check_lookup(s->av, addr[1], 8);
}

/* Ports of InfiniBand without IP addresses: what is inserted, as an address or as a text, is found again as it was. */
TEST_PROV(gids, FI_MSG, RDM_ONLY)
{
	struct side *s = side_open(t);
	fi_addr_t addr[2] = { 77, 77 };
	char text[128], there[128];
	size_t len = sizeof(text);

	if (s->info->addr_format != FI_SOCKADDR_IB)
		ABSENT("%s has IP addresses here", run.prov);
	CHECK_RET(fi_av_insert(s->av, s->name, 1, &addr[0], 0, NULL), 1);
	fi_av_straddr(s->av, s->name, text, &len);
	CHECK(!strncmp(text, "fi_sockaddr_ib://[", 18));
	CHECK_RET(fi_av_insertsvc(s->av, text, NULL, &addr[1], 0, NULL), 1);
	for (int i = 0; i < 2; i++) {
		len = sizeof(there);
		MUST(fi_av_lookup(s->av, addr[i], there, &len));
		CHECK_EQ(len, s->name_len);
		CHECK(!memcmp(there, s->name, len));
	}
	memset(there, 0, sizeof(there));
	CHECK(fi_av_insert(s->av, there, 1, &addr[0], 0, NULL) <= 0);
	CHECK(fi_av_insertsvc(s->av, "no GID", "1", &addr[0], 0, NULL) <= 0);
	CHECK_RET(fi_av_insertsym(s->av, "fe80::1", 2, "1", 2, addr, 0, NULL), -FI_ENOSYS);
}

/* Ranges of nodes and services: all services of the first node, then of the next. */
TEST_PROV(insertsym, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct sockaddr_in sin;
	fi_addr_t addr[6];
	unsigned int i;

	need_sockaddr();
	if (run.family == AF_INET6)
		ABSENT("counts up IPv4 addresses");
	CHECK_RET(fi_av_insertsym(s->av, "127.0.0.1", 2, "1000", 3, addr, 0, NULL), 6);
	for (i = 0; i < 6; i++) {
		size_t len = sizeof(sin);

		MUST(fi_av_lookup(s->av, addr[i], &sin, &len));
		CHECK_EQ(ntohs(sin.sin_port), 1000 + i % 3);
		CHECK_EQ(ntohl(sin.sin_addr.s_addr), INADDR_LOOPBACK + i / 3);
	}
	if (run.ours)
		CHECK_RET(fi_av_insertsym(s->av, "127.0.0.1", 1 << 20, "1000", 1 << 16, addr, 0, NULL), -FI_EINVAL);
}

/* An address in text: a URL-like form, cut to the room, with the size that it needs. */
TEST_PROV(straddr, FI_MSG, UNCONNECTED)
{
	struct side *s = av_side(t, FI_AV_TABLE);
	struct addrs a = addrs_new(234, 1);
	char buf[128], small[8];
	size_t len = sizeof(buf), small_len = sizeof(small);

	memset(buf, 0, sizeof(buf));
	CHECK(fi_av_straddr(s->av, a.bytes, buf, &len) == buf);
	CHECK(strstr(buf, run.family == AF_INET6 ? "[::1]" : "127.0.0.1"));
	CHECK(strstr(buf, "1234"));
	CHECK(len >= strlen(buf) && len <= sizeof(buf));
	memset(small, 'x', sizeof(small));
	small_len = 4;
	CHECK(fi_av_straddr(s->av, a.bytes, small, &small_len) == small);
	CHECK_EQ(small_len, len);
	CHECK(small[3] == 0 && small[4] == 'x');
}

/* ---- use */

/* Transfers to what is not in the vector are refused, or fail; nothing crashes. */
TEST_PROV(send_to_nobody, FI_MSG, UNCONNECTED)
{
	struct pair p = pair_open(t);
	const fi_addr_t bad[] = { 1000, FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL, 1ULL << 50 };
	ssize_t ret;
	size_t i;

	if (!run.ours)
		ABSENT("upstream crashes");
	for (i = 0; i < COUNT(bad); i++) {
		note("address 0x%llx", (unsigned long long) bad[i]);
		ret = try_op(p.a, SEND, .buf = "x", .len = 1, .addr = &bad[i]);
		CHECK(ret < 0 && ret != -FI_EAGAIN);
		ret = try_op(p.a, INJECT, .buf = "x", .len = 1, .addr = &bad[i]);
		CHECK(ret < 0 && ret != -FI_EAGAIN);
	}
	expect_no_completion(p.a);
	check_link(p.a, p.b);
}

/* Every vector type carries messages both ways. */
TEST_TABLE(types_carry_messages, type_rows, FI_MSG, UNCONNECTED)
{
	struct pair p = pair_open(t, .av_type = ROW(type_rows)->type);

	check_link(p.a, p.b);
	check_link(p.b, p.a);
}

/* A vector that is open for sharing by name needs the capability. */
TEST_PROV(bad_read_only, FI_MSG, UNCONNECTED)
{
	struct side *s = domain_side(t);
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_READ };
	struct fid_av *av;

	/* Not named: nothing to read. */
	CHECK(fi_av_open(s->domain, &attr, &av, NULL) < 0);
}

/* Asynchronous insertion, where it is offered: -FI_ENOEQ before a queue is bound, then one event for the call. */
TEST_PROV(insert_with_events, FI_MSG, UNCONNECTED)
{
	struct side *s = domain_side(t, .eq = true);
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_EVENT };
	struct addrs a = addrs_new(0, 3);
	struct event e;
	fi_addr_t addr[3];
	int ret, context;

	ret = fi_av_open(s->domain, &attr, &s->av, s);
	if (ret)
		ABSENT("%s has no asynchronous insertion: %s", run.prov, fi_strerror(-ret));
	/* The vector is closed before the queue that it is bound to. */
	own_fid(t, &s->av->fid);
	CHECK_RET(fi_av_insert(s->av, a.bytes, 3, addr, 0, &context), -FI_ENOEQ);
	MUST(fi_av_bind(s->av, &s->eq->fid, 0));
	MUST(fi_av_insert(s->av, a.bytes, 3, addr, 0, &context));
	e = expect_event(s, FI_AV_COMPLETE);
	CHECK(e.fid == &s->av->fid);
	CHECK_EQ(addr[2], 2);
	expect_no_event(s);
}

/* ---- shared by name */

static struct fid_av *named_open(struct side *s, uint64_t flags, void **map_addr)
{
	char name[64];
	struct fi_av_attr attr = { .type = FI_AV_MAP, .name = name, .flags = flags, .map_addr = *map_addr };
	struct fid_av *av;

	snprintf(name, sizeof(name), "conform of %d", (int) getpid());
	MUST(fi_av_open(s->domain, &attr, &av, NULL));
	own_fid(s->t, &av->fid);
	*map_addr = attr.map_addr;
	return av;
}

/* Who opens a named vector uses the fi_addr_t of the others, for looking up and for sending, and reads them at
 * map_addr, in the order of insertion. */
TEST_PROV(named_vector_is_shared, FI_MSG | FI_SOURCE | FI_SHARED_AV, RDM_ONLY)
{
	struct side *owner = domain_side(t), *reader = domain_side(t), *target = side_open(t);
	fi_addr_t addrs[3] = { 0 };
	void *map_addr = NULL, *map;
	struct fid_av *av = named_open(owner, 0, &map_addr);
	uint8_t found[128];
	size_t len = sizeof(found);
	char in[4];

	CHECK(map_addr != NULL);
	map = map_addr;
	map_addr = NULL;
	reader->av = named_open(reader, FI_READ, &map_addr);
	side_open_cqs(reader);
	side_open_ep(reader);
	side_bind(reader);
	side_enable(reader);
	target->peer = side_insert(target, reader);
	post_recv(reader, in, 4);
	send_bytes(target, "who?", 4);
	CHECK_EQ(expect_recv(reader, "who?", 4).src, FI_ADDR_NOTAVAIL);

	CHECK_RET(fi_av_insert(av, reader->name, 1, &addrs[0], 0, NULL), 1);
	CHECK_RET(fi_av_insert(av, target->name, 1, &addrs[1], 0, NULL), 1);
	CHECK_MEM(map, addrs, 2 * sizeof(*addrs));
	CHECK_MEM(map_addr, addrs, 2 * sizeof(*addrs));
	post_recv(target, in, 4);
	post(reader, SEND, .buf = "here", .len = 4, .addr = &addrs[1]);
	expect_recv(target, "here", 4);
	post_recv(reader, in, 4);
	send_bytes(target, "then", 4);
	CHECK_EQ(expect_recv(reader, "then", 4).src, addrs[1]);
	MUST(fi_av_lookup(reader->av, addrs[1], found, &len));
	CHECK_EQ(len, target->name_len);
	CHECK_MEM(found, target->name, len);
	CHECK(fi_av_insert(reader->av, target->name, 1, &addrs[2], 0, NULL) <= 0);
	expect_tx(reader);
	expect_tx_cnt(target, 2);
}

/* A name that nobody has open cannot be opened to be read. */
TEST_PROV(named_vector_to_read_must_be_there, FI_MSG | FI_SHARED_AV, RDM_ONLY)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .name = "nobody has this", .flags = FI_READ };
	struct side *s = domain_side(t);
	struct fid_av *av;

	CHECK(fi_av_open(s->domain, &attr, &av, NULL) < 0);
}

/* ---- numbers of the program */

/* Completions name a peer by the number that it was inserted with, or was given later; calls take the fi_addr_t. */
TEST_PROV(user_ids_are_reported, FI_MSG | FI_SOURCE | FI_AV_USER_ID, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	fi_addr_t id = 0x1234567890;
	char in[4];

	post_recv(p.b, in, 4);
	send_bytes(p.a, "none", 4);
	CHECK_EQ(expect_recv(p.b, "none", 4).src, p.b->peer);

	c->peer = side_insert(c, p.b);
	if (run.ours)		/* there are no ids, and upstream reads them */
		CHECK_RET(fi_av_insert(p.b->av, c->name, 1, NULL, FI_AV_USER_ID, NULL), -FI_EINVAL);
	CHECK_RET(fi_av_insert(p.b->av, c->name, 1, &id, FI_AV_USER_ID, NULL), 1);
	CHECK(id != 0x1234567890);
	post_recv(p.b, in, 4);
	send_bytes(c, "with", 4);
	CHECK_EQ(expect_recv(p.b, "with", 4).src, 0x1234567890);

	MUST(fi_av_set_user_id(p.b->av, id, 77, 0));
	post(p.b, RECV, .buf = in, .len = 4, .addr = &id);
	send_bytes(c, "set_", 4);
	CHECK_EQ(expect_recv(p.b, "set_", 4).src, 77);
	CHECK(fi_av_set_user_id(p.b->av, id + 1000, 77, 0) < 0);
	p.b->peer = id;
	check_link(p.b, c);
}

static void ids_of_the_domain(struct fi_info *hints)
{
	hints->domain_attr->caps = FI_AV_USER_ID;
}

static int open_for_ids(struct side *s)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_AV_USER_ID };
	struct fid_av *av = NULL;
	int ret = fi_av_open(s->domain, &attr, &av, NULL);

	CHECK((av != NULL) == (ret == 0));
	if (av)
		MUST(fi_close(&av->fid));
	return ret;
}

/* A domain whose capabilities have FI_AV_USER_ID opens vectors with that flag; another one does not. The capability is
 * told to those who ask for it, for the whole or for the domain. */
TEST_PROV(user_ids_are_of_the_domain, FI_MSG | FI_AV_USER_ID, RDM_ONLY)
{
	struct side *whole = domain_side(t), *plain = domain_side(t, .caps = FI_MSG);
	struct side *own = domain_side(t, .caps = FI_MSG, .hints = ids_of_the_domain);

	CHECK(whole->info->domain_attr->caps & FI_AV_USER_ID);
	CHECK(own->info->domain_attr->caps & FI_AV_USER_ID);
	MUST(open_for_ids(whole));
	MUST(open_for_ids(own));
	if (!run.ours)
		return;
	CHECK_EQ(plain->info->domain_attr->caps & (FI_AV_USER_ID | FI_DIRECTED_RECV), 0);
	CHECK_RET(open_for_ids(plain), -FI_EINVAL);
}

/* Without the capability there are no such numbers. */
TEST_PROV(user_ids_want_the_capability, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	fi_addr_t id = 5;

	CHECK(fi_av_insert(p.b->av, p.a->name, 1, &id, FI_AV_USER_ID, NULL) <= 0);
	CHECK(fi_av_set_user_id(p.b->av, p.b->peer, 5, 0) < 0);
}
