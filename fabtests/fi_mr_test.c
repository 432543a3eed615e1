/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_mr_test: memory is registered by each of the three calls, for every access, in every size. */
#include "lib/unit.h"

#include <stdbool.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#define MAX_LEN (1 << 20)
#define KEY 0x100

static const uint64_t access_bits[] = { FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
#define ACCESS_CNT (sizeof(access_bits) / sizeof(access_bits[0]))

/* Register len bytes by one of the calls. */
typedef int reg_call(struct unit *unit, void *buf, size_t len, uint64_t access, struct fid_mr **mr);

static int reg(struct unit *unit, void *buf, size_t len, uint64_t access, struct fid_mr **mr)
{
	return fi_mr_reg(unit->domain, buf, len, access, 0, KEY, 0, mr, NULL);
}

static int regv(struct unit *unit, void *buf, size_t len, uint64_t access, struct fid_mr **mr)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };

	return fi_mr_regv(unit->domain, &iov, 1, access, 0, KEY, 0, mr, NULL);
}

static int regattr(struct unit *unit, void *buf, size_t len, uint64_t access, struct fid_mr **mr)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct fi_mr_attr attr = { .mr_iov = &iov, .iov_count = 1, .access = access, .requested_key = KEY };

	return fi_mr_regattr(unit->domain, &attr, 0, mr);
}

/* Register, look at the key, and let go: the same key is free again. */
static int reg_once(struct unit *unit, reg_call *call, void *buf, size_t len, uint64_t access)
{
	bool prov_key = unit->info->domain_attr->mr_mode & FI_MR_PROV_KEY;
	struct fid_mr *mr;
	int ret, close_ret;

	ret = call(unit, buf, len, access, &mr);
	if (ret)
		return unit_fail(ret, "registration");
	if (fi_mr_key(mr) == FI_KEY_NOTAVAIL || (!prov_key && fi_mr_key(mr) != KEY))
		ret = unit_fail((int64_t) fi_mr_key(mr), "fi_mr_key");
	close_ret = unit_close(&mr->fid, "fi_close of a memory region");
	return ret ? ret : close_ret;
}

static int every_access(struct unit *unit, reg_call *call, void *buf, size_t len)
{
	unsigned set;
	uint64_t access;
	size_t i;
	int ret = 0;

	for (set = 1; set < 1u << ACCESS_CNT && !ret; set++) {
		for (access = 0, i = 0; i < ACCESS_CNT; i++)
			access |= set & (1u << i) ? access_bits[i] : 0;
		ret = reg_once(unit, call, buf, len, access);
	}
	return ret;
}

/* New memory for every size: it may lie where other memory was registered before. */
static int every_size(struct unit *unit, reg_call *call)
{
	size_t len;
	void *buf;
	int ret = 0;

	for (len = 1; len <= MAX_LEN && !ret; len *= 4) {
		buf = calloc(1, len);
		if (!buf)
			return unit_fail(-FI_ENOMEM, "calloc");
		ret = every_access(unit, call, buf, len);
		free(buf);
	}
	return ret;
}

static int by_reg(struct unit *unit)
{
	return every_size(unit, reg);
}

static int by_regv(struct unit *unit)
{
	return every_size(unit, regv);
}

static int by_regattr(struct unit *unit)
{
	return every_size(unit, regattr);
}

static int same_key(struct unit *unit)
{
	struct fid_mr *first, *second;
	char buf[64] = "";
	int ret;

	if (unit->info->domain_attr->mr_mode & FI_MR_PROV_KEY)
		return unit_skip("the provider chooses the keys");
	ret = reg(unit, buf, sizeof(buf), FI_REMOTE_WRITE, &first);
	if (ret)
		return unit_fail(ret, "fi_mr_reg");
	ret = reg(unit, buf, sizeof(buf), FI_REMOTE_WRITE, &second);
	if (!ret)
		unit_close(&second->fid, "fi_close of the second memory region");
	ret = ret == -FI_ENOKEY ? 0 : unit_fail(ret, "fi_mr_reg with a key in use, which must be -FI_ENOKEY");
	return unit_close(&first->fid, "fi_close of a memory region") ? -FI_EOTHER : ret;
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "fi_mr_reg: every access, sizes to 1 MiB", by_reg },
		{ "fi_mr_regv: every access, sizes to 1 MiB", by_regv },
		{ "fi_mr_regattr: every access, sizes to 1 MiB", by_regattr },
		{ "a key is used once at a time", same_key },
	};
	static const struct unit_program program = {
		.about = "Register memory.",
		.caps = FI_MSG | FI_RMA,
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
	};

	return unit_main(argc, argv, &program);
}
