/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_av_test: address vectors open, close, and give back the addresses that were inserted. */
#include "lib/unit.h"

#include <string.h>

#include <rdma/fi_errno.h>

#define MAX_SIZE 65536
#define MAX_ADDR_LEN 256

static int open_av(struct unit *unit, enum fi_av_type type, size_t cnt, struct fid_av **av)
{
	struct fi_av_attr attr = { .type = type, .count = cnt };
	int ret = fi_av_open(unit->domain, &attr, av, NULL);

	return ret ? unit_fail(ret, "fi_av_open") : 0;
}

static int open_sizes(struct unit *unit)
{
	struct fid_av *av;
	size_t cnt;
	int ret;

	for (cnt = 0; cnt <= MAX_SIZE; cnt = cnt ? 2 * cnt : 1) {
		ret = open_av(unit, FI_AV_TABLE, cnt, &av);
		if (!ret)
			ret = unit_close(&av->fid, "fi_close of an address vector");
		if (ret)
			return ret;
	}
	return 0;
}

/* Insert the address of our own interface, with a port. */
static int insert(struct unit *unit, struct fid_av *av, fi_addr_t *addr)
{
	int ret = fi_av_insert(av, unit->info->src_addr, 1, addr, 0, NULL);

	return ret == 1 ? 0 : unit_fail(ret, "fi_av_insert, which must be 1");
}

/* What fi_av_lookup() gives for addr is our own interface's address. */
static int lookup(struct unit *unit, struct fid_av *av, fi_addr_t addr)
{
	char buf[MAX_ADDR_LEN];
	size_t len = sizeof(buf);
	int ret = fi_av_lookup(av, addr, buf, &len);

	if (ret)
		return unit_fail(ret, "fi_av_lookup");
	if (len != unit->info->src_addrlen)
		return unit_fail((int64_t) len, "length of the address");
	return memcmp(buf, unit->info->src_addr, len) ? unit_fail(0, "another address") : 0;
}

/* A buffer that is too small has the start of the address, and the length says what there is. */
static int lookup_short(struct unit *unit, struct fid_av *av, fi_addr_t addr)
{
	char buf[2] = "";
	size_t len = 1;
	int ret = fi_av_lookup(av, addr, buf, &len);

	if (ret && ret != -FI_ETOOSMALL)
		return unit_fail(ret, "fi_av_lookup with one byte");
	if (len != unit->info->src_addrlen || buf[1])
		return unit_fail((int64_t) len, "length of the address, or bytes behind the buffer");
	return memcmp(buf, unit->info->src_addr, 1) ? unit_fail(0, "another first byte") : 0;
}

static int check_round_trip(struct unit *unit, struct fid_av *av)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	int ret;

	ret = insert(unit, av, &addr);
	if (!ret && addr == FI_ADDR_NOTAVAIL)
		ret = unit_fail(0, "no fi_addr_t");
	if (!ret)
		ret = lookup(unit, av, addr);
	if (!ret)
		ret = lookup_short(unit, av, addr);
	if (ret)
		return ret;
	ret = fi_av_remove(av, &addr, 1, 0);
	return ret ? unit_fail(ret, "fi_av_remove") : 0;
}

/* The addresses of a table are numbered from 0. */
static int check_numbers(struct unit *unit, struct fid_av *av)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	int ret;

	ret = insert(unit, av, &addr);
	if (ret)
		return ret;
	return addr ? unit_fail((int64_t) addr, "first fi_addr_t of a table, which must be 0") : lookup(unit, av, 0);
}

static int with_av(struct unit *unit, enum fi_av_type type, int (*check)(struct unit *unit, struct fid_av *av))
{
	struct fid_av *av;
	int ret, close_ret;

	if (!unit->info->src_addr || unit->info->src_addrlen > MAX_ADDR_LEN)
		return unit_skip("the interface has no address of a length that we know");
	ret = open_av(unit, type, 1, &av);
	if (ret)
		return ret;
	ret = check(unit, av);
	close_ret = unit_close(&av->fid, "fi_close of an address vector");
	return ret ? ret : close_ret;
}

static int table(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_round_trip);
}

static int map(struct unit *unit)
{
	return with_av(unit, FI_AV_MAP, check_round_trip);
}

static int numbers(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_numbers);
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "vectors of every size", open_sizes },
		{ "FI_AV_TABLE: insert, look up, remove", table },
		{ "FI_AV_MAP: insert, look up, remove", map },
		{ "the addresses of a table are numbered from 0", numbers },
	};
	static const struct unit_program program = {
		.about = "Insert, look up and remove addresses.",
		.caps = FI_MSG,
		.ep_type = FI_EP_RDM,
		.service = "4711",     /* a peer has a port */
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
	};

	return unit_main(argc, argv, &program);
}
