/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_av_test: address vectors open, close, and give back the addresses that were inserted. */
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#define MAX_SIZE 65536
#define MAX_ADDR_LEN 256
#define DEFAULT_CNT 8
#define MAX_CNT 200             /* ports, of one byte, that differ */

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

/* The i-th of several addresses is ours with another port. Where addresses have none, all are the same, which is
 * allowed. */
static bool have_ports(const struct unit *unit)
{
	return unit->info->addr_format == FI_SOCKADDR_IN || unit->info->addr_format == FI_SOCKADDR_IN6;
}

/* Each has a number of its own, by which it is found. */
static int check_found(struct unit *unit, struct fid_av *av, const char *names, const fi_addr_t *addrs, size_t cnt)
{
	size_t len = unit->info->src_addrlen, found_len, i, j;
	char found[MAX_ADDR_LEN];
	int ret;

	for (i = 0; i < cnt; i++) {
		for (j = 0; j < i && have_ports(unit); j++) {
			if (addrs[j] == addrs[i])
				return unit_fail((int64_t) addrs[i], "one number for two addresses");
		}
		found_len = sizeof(found);
		ret = fi_av_lookup(av, addrs[i], found, &found_len);
		if (ret)
			return unit_fail(ret, "fi_av_lookup");
		if (found_len != len || memcmp(found, names + i * len, len))
			return unit_fail((int64_t) i, "fi_av_lookup of another address");
	}
	return 0;
}

/* Several at once, as many as -n says. */
static int check_several(struct unit *unit, struct fid_av *av)
{
	size_t len = unit->info->src_addrlen, cnt = unit->cnt < MAX_CNT ? unit->cnt : MAX_CNT, i;
	char *names = calloc(cnt, len);
	fi_addr_t addrs[MAX_CNT];
	int ret;

	if (!names)
		return unit_fail(-FI_ENOMEM, "calloc");
	for (i = 0; i < cnt; i++) {
		memcpy(names + i * len, unit->info->src_addr, len);
		if (have_ports(unit))
			names[i * len + 3] = (char) (names[i * len + 3] + (char) i);
	}
	ret = fi_av_insert(av, names, cnt, addrs, 0, NULL);
	ret = ret == (int) cnt ? check_found(unit, av, names, addrs, cnt) : unit_fail(ret, "fi_av_insert of several");
	free(names);
	return ret;
}

/* fi_addr may be left out, and FI_MORE says that more will follow. */
static int check_without_addr(struct unit *unit, struct fid_av *av)
{
	int ret = fi_av_insert(av, unit->info->src_addr, 1, NULL, 0, NULL);
	fi_addr_t addr;

	if (ret != 1)
		return unit_fail(ret, "fi_av_insert without room for numbers");
	ret = fi_av_insert(av, unit->info->src_addr, 1, &addr, FI_MORE, NULL);
	if (ret != 1)
		return unit_fail(ret, "fi_av_insert with FI_MORE");
	return insert(unit, av, &addr);
}

/* An address of a family that there is not. */
static void make_bad(const struct unit *unit, char *name)
{
	memcpy(name, unit->info->src_addr, unit->info->src_addrlen);
	name[0] = name[1] = (char) 0xee;
}

/* A bad address is not inserted, and has no number. */
static int check_bad(struct unit *unit, struct fid_av *av)
{
	char name[MAX_ADDR_LEN];
	fi_addr_t addr = 0;
	int ret;

	if (!have_ports(unit))
		return unit_skip("what makes an address bad is known of socket addresses");
	make_bad(unit, name);
	ret = fi_av_insert(av, name, 1, &addr, 0, NULL);
	if (ret > 0)
		return unit_fail(ret, "fi_av_insert of a bad address, which must not be 1");
	return addr == FI_ADDR_NOTAVAIL || ret < 0 ? 0 : unit_fail((int64_t) addr, "number of a bad address");
}

/* Of a good and a bad one the good one is inserted; with FI_SYNC_ERR each says what became of it. */
static int check_mixed(struct unit *unit, struct fid_av *av)
{
	size_t len = unit->info->src_addrlen;
	char names[2 * MAX_ADDR_LEN];
	int ret, errs[2] = { -1, -1 };
	fi_addr_t addrs[2] = { 0, 0 };

	if (!have_ports(unit))
		return unit_skip("what makes an address bad is known of socket addresses");
	memcpy(names, unit->info->src_addr, len);
	make_bad(unit, names + len);
	ret = fi_av_insert(av, names, 2, addrs, 0, NULL);
	if (ret != 1 || addrs[0] == FI_ADDR_NOTAVAIL || addrs[1] != FI_ADDR_NOTAVAIL)
		return unit_fail(ret, "fi_av_insert of a good and a bad address, which must be 1");
	ret = fi_av_insert(av, names, 2, addrs, FI_SYNC_ERR, errs);
	if (ret == -FI_EBADFLAGS || ret == -FI_ENOSYS)
		return unit_skip("FI_SYNC_ERR is not offered");
	if (ret != 1 || errs[0] || !errs[1])
		return unit_fail(ret, "fi_av_insert with FI_SYNC_ERR, whose errors must be 0 and another");
	return 0;
}

/* Numbers that nobody was given. */
static int check_unknown(struct unit *unit, struct fid_av *av)
{
	char name[MAX_ADDR_LEN];
	size_t len = sizeof(name);
	fi_addr_t addr = 4711;
	int ret;

	(void) unit;
	ret = fi_av_lookup(av, addr, name, &len);
	if (!ret)
		return unit_fail(ret, "fi_av_lookup of an unknown number");
	ret = fi_av_remove(av, &addr, 1, 0);
	return ret ? 0 : unit_fail(ret, "fi_av_remove of an unknown number");
}

/* An address that is removed is unknown, and its place can be taken. */
static int check_reuse(struct unit *unit, struct fid_av *av)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	char name[MAX_ADDR_LEN];
	size_t len;
	int ret, i;

	for (i = 0; i < 1000; i++) {
		ret = insert(unit, av, &addr);
		if (!ret)
			ret = lookup(unit, av, addr);
		if (ret)
			return ret;
		ret = fi_av_remove(av, &addr, 1, 0);
		if (ret)
			return unit_fail(ret, "fi_av_remove");
		len = sizeof(name);
		if (!fi_av_lookup(av, addr, name, &len))
			return unit_fail(0, "fi_av_lookup of an address that was removed");
	}
	return 0;
}

/* What fi_getinfo() makes of a host, or NULL. */
static struct fi_info *resolve(struct unit *unit, const char *host)
{
	struct fi_info *hints = unit_hints(unit, unit->info->caps, unit->ep_type), *info = NULL;

	if (hints) {
		hints->addr_format = unit->info->addr_format;
		if (fi_getinfo(FI_VERSION(1, 17), host, "4711", 0, hints, &info))
			info = NULL;
	}
	fi_freeinfo(hints);
	return info;
}

/* The host of -g has an address, which can be inserted and is found again. */
static int check_good_host(struct unit *unit, struct fid_av *av)
{
	struct fi_info *info;
	char found[MAX_ADDR_LEN];
	size_t len = sizeof(found);
	fi_addr_t addr;
	int ret;

	if (!unit->good)
		return unit_skip("no host was given (-g)");
	info = resolve(unit, unit->good);
	if (!info || !info->dest_addr) {
		fi_freeinfo(info);
		return unit_fail(-FI_ENODATA, "fi_getinfo of the host of -g");
	}
	ret = fi_av_insert(av, info->dest_addr, 1, &addr, 0, NULL);
	ret = ret == 1 ? fi_av_lookup(av, addr, found, &len) : -FI_EINVAL;
	if (!ret && (len != info->dest_addrlen || memcmp(found, info->dest_addr, len)))
		ret = -FI_EOTHER;
	fi_freeinfo(info);
	return ret ? unit_fail(ret, "insert and look up the host of -g") : 0;
}

/* That of -G has none, or one that is refused. */
static int check_bad_host(struct unit *unit, struct fid_av *av)
{
	struct fi_info *info;
	fi_addr_t addr;
	int ret = 0;

	if (!unit->bad)
		return unit_skip("no host was given (-G)");
	info = resolve(unit, unit->bad);
	if (info && info->dest_addr)
		ret = fi_av_insert(av, info->dest_addr, 1, &addr, 0, NULL);
	fi_freeinfo(info);
	return ret > 0 ? unit_fail(ret, "fi_av_insert of the host of -G, which must not be 1") : 0;
}

/* Every address has a text. */
static int check_text(struct unit *unit, struct fid_av *av)
{
	char text[512] = "", part[4] = "";
	size_t len = sizeof(text), part_len = sizeof(part);

	if (!fi_av_straddr(av, unit->info->src_addr, text, &len) || !*text)
		return unit_fail(0, "fi_av_straddr gave nothing");
	fi_av_straddr(av, unit->info->src_addr, part, &part_len);
	if (memcmp(part, text, sizeof(part) - 1) || part[sizeof(part) - 1])
		return unit_fail(0, "fi_av_straddr wrote behind its room, or no end");
	return part_len > sizeof(part) ? 0 : unit_fail((int64_t) part_len, "length of the text");
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

static int several_in_table(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_several);
}

static int several_in_map(struct unit *unit)
{
	return with_av(unit, FI_AV_MAP, check_several);
}

static int without_addr(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_without_addr);
}

static int bad(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_bad);
}

static int mixed(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_mixed);
}

static int unknown(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_unknown);
}

static int reuse(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_reuse);
}

static int good_host(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_good_host);
}

static int bad_host(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_bad_host);
}

static int text(struct unit *unit)
{
	return with_av(unit, FI_AV_TABLE, check_text);
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "vectors of every size", open_sizes },
		{ "FI_AV_TABLE: insert, look up, remove", table },
		{ "FI_AV_MAP: insert, look up, remove", map },
		{ "the addresses of a table are numbered from 0", numbers },
		{ "FI_AV_TABLE: several at once", several_in_table },
		{ "FI_AV_MAP: several at once", several_in_map },
		{ "without room for numbers; FI_MORE", without_addr },
		{ "a bad address is not inserted", bad },
		{ "a good and a bad address; FI_SYNC_ERR", mixed },
		{ "unknown numbers cannot be looked up or removed", unknown },
		{ "a place is free again after fi_av_remove", reuse },
		{ "fi_av_straddr", text },
		{ "the host of -g can be inserted", good_host },
		{ "the host of -G cannot", bad_host },
	};
	static const struct unit_program program = {
		.about = "Insert, look up and remove addresses.",
		.cnt_help = "addresses at once (default: 8)",
		.cnt = DEFAULT_CNT,
		.caps = FI_MSG,
		.ep_type = FI_EP_RDM,
		.addresses = true,
		.service = "4711",     /* a peer has a port */
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
	};

	return unit_main(argc, argv, &program);
}
