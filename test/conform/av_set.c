/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of addresses, fi_av_set(3). A set says nothing about its members but who is one (FI_EINVAL of inserting one
 * again, or of removing another), so a test asks by removing all in turn.
 */
#include <arpa/inet.h>
#include <rdma/fi_collective.h>
#include <string.h>

#include "fixture.h"

#define ADDRS 12

/* A side whose address vector has ADDRS addresses, 0 to ADDRS - 1, and nothing else. */
static struct fid_av *av_open(struct test *t)
{
	struct side *s = side_open(t, .unenabled = true);
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct sockaddr_in6 in6[ADDRS] = { 0 };
	struct sockaddr_in in[ADDRS] = { 0 };
	struct fid_av *av;

	if (!has_sockaddr())
		ABSENT("the provider has no socket addresses");
	for (unsigned int i = 0; i < ADDRS; i++) {
		in[i].sin_family = AF_INET;
		in[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
		in6[i].sin6_family = AF_INET6;
		in6[i].sin6_addr.s6_addr[15] = i + 1;
		in[i].sin_port = in6[i].sin6_port = htons(9);
	}
	MUST(fi_av_open(s->domain, &attr, &av, NULL));
	own_fid(t, &av->fid);
	CHECK_RET(fi_av_insert(av, run.family == AF_INET6 ? (void *) in6 : in, ADDRS, NULL, 0, NULL), ADDRS);
	return av;
}

static struct fid_av_set *set_new(struct test *t, struct fid_av *av, struct fi_av_set_attr *attr)
{
	struct fid_av_set *set;
	int ret = fi_av_set(av, attr, &set, NULL);

	if (ret == -FI_ENOSYS)
		ABSENT("the provider has no sets of addresses");
	MUST(ret);
	own_fid(t, &set->fid);
	return set;
}

static struct fi_av_set_attr range(fi_addr_t start, fi_addr_t end, uint64_t stride)
{
	return (struct fi_av_set_attr) { .count = ADDRS, .start_addr = start, .end_addr = end, .stride = stride };
}

/* The set with members "a.b" is those two; hexadecimal digits. */
static struct fid_av_set *set_of(struct test *t, struct fid_av *av, const char *members)
{
	struct fi_av_set_attr none = range(FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, 0);
	struct fid_av_set *set = set_new(t, av, &none);

	for (; *members; members++)
		MUST(fi_av_set_insert(set, *members <= '9' ? *members - '0' : *members - 'a' + 10));
	return set;
}

/* Takes them out. */
static void check_members(struct fid_av_set *set, const char *members)
{
	char found[ADDRS + 1] = "";
	size_t cnt = 0;

	for (fi_addr_t i = 0; i < ADDRS; i++) {
		if (!fi_av_set_remove(set, i))
			found[cnt++] = "0123456789ab"[i];
	}
	if (strcmp(found, members))
		FAIL("members %s, expected %s", found, members);
}

static const struct {
	const char *name;
	fi_addr_t start, end;
	uint64_t stride, flags;
	const char *members;
} openings[] = {
	{ "none", FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, 0, 0, "" },
	{ "range", 3, 6, 1, 0, "3456" },
	{ "one", 5, 5, 1, 0, "5" },
	{ "stride", 1, 10, 4, 0, "159" },
	{ "stride_beyond", 2, 4, 5, 0, "2" },
	{ "universe", FI_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL, 0, FI_UNIVERSE, "0123456789ab" },
};

/* A set begins with the addresses of its attributes. */
TEST_TABLE(av_set_begins_with, openings, FI_MSG, RDM_ONLY)
{
	struct fi_av_set_attr attr = range(ROW(openings)->start, ROW(openings)->end, ROW(openings)->stride);

	attr.flags = ROW(openings)->flags;
	check_members(set_new(t, av_open(t), &attr), ROW(openings)->members);
}

static const struct {
	const char *name;
	int (*call)(struct fid_av_set *dst, const struct fid_av_set *src);
	const char *dst, *src, *result;
} pairs[] = {
	{ "union", fi_av_set_union, "024", "1234", "01234" },
	{ "union_none", fi_av_set_union, "7", "", "7" },
	{ "union_to_none", fi_av_set_union, "", "b0", "0b" },
	{ "intersect", fi_av_set_intersect, "0246", "a642", "246" },
	{ "intersect_none", fi_av_set_intersect, "01", "", "" },
	{ "diff", fi_av_set_diff, "01234", "13a", "024" },
	{ "diff_all", fi_av_set_diff, "12", "12", "" },
};

/* Two sets make one, as their names say; the other one stays as it is. */
TEST_TABLE(av_set_pair, pairs, FI_MSG, RDM_ONLY)
{
	struct fid_av *av = av_open(t);
	struct fid_av_set *dst = set_of(t, av, ROW(pairs)->dst), *src = set_of(t, av, ROW(pairs)->src);
	char sorted[ADDRS + 1] = "";
	size_t cnt = 0;

	MUST(ROW(pairs)->call(dst, src));
	check_members(dst, ROW(pairs)->result);
	for (const char *c = "0123456789ab"; *c; c++) {
		if (strchr(ROW(pairs)->src, *c))
			sorted[cnt++] = *c;
	}
	check_members(src, sorted);
}

/* An address is in a set once, and only if it is in the vector. */
TEST_PROV(av_set_member_is_known_and_once, FI_MSG, RDM_ONLY)
{
	struct fid_av *av = av_open(t);
	struct fid_av_set *set = set_of(t, av, "3");

	CHECK_RET(fi_av_set_insert(set, 3), -FI_EINVAL);
	CHECK_RET(fi_av_set_insert(set, ADDRS), -FI_EINVAL);
	CHECK_RET(fi_av_set_remove(set, 4), -FI_EINVAL);
	check_members(set, "3");
}

/* Each set has a collective address, which is no other's; the vector is closed after its sets. */
TEST_PROV(av_set_has_an_address, FI_MSG, RDM_ONLY)
{
	struct fid_av *av = av_open(t);
	struct fid_av_set *a = set_of(t, av, "01"), *b = set_of(t, av, "01");
	fi_addr_t a_addr = FI_ADDR_NOTAVAIL, b_addr = FI_ADDR_NOTAVAIL;

	MUST(fi_av_set_addr(a, &a_addr));
	MUST(fi_av_set_addr(b, &b_addr));
	CHECK(a_addr != b_addr && a_addr != FI_ADDR_NOTAVAIL && b_addr != FI_ADDR_NOTAVAIL);
	CHECK_RET(fi_close(&av->fid), -FI_EBUSY);
}

static const struct {
	const char *name;
	struct fi_av_set_attr attr;
	int ret;
} refusals[] = {
	{ "beyond_the_vector", { .start_addr = 0, .end_addr = ADDRS, .stride = 1 }, -FI_EINVAL },
	{ "backwards", { .start_addr = 3, .end_addr = 2, .stride = 1 }, -FI_EINVAL },
	{ "no_stride", { .start_addr = 0, .end_addr = 2 }, -FI_EINVAL },
	{ "more_than_count", { .count = 2, .start_addr = 0, .end_addr = 2, .stride = 1 }, -FI_EINVAL },
	{ "unknown_flag", { .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL, .flags = 1 }, -FI_EBADFLAGS },
};

/* Attributes that make no sense are refused. */
TEST_TABLE(av_set_refuses, refusals, FI_MSG, RDM_ONLY)
{
	struct fi_av_set_attr attr = ROW(refusals)->attr;
	struct fid_av *av = av_open(t);
	struct fid_av_set *set;

	if (!run.ours)
		ABSENT("what upstream refuses is its own");
	CHECK_RET(fi_av_set(av, &attr, &set, NULL), ROW(refusals)->ret);
}
