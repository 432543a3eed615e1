/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_cq_test: completion queues open, close and wait. */
#include "lib/unit.h"

#include <time.h>

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define MAX_SIZE 65536
/* A wait that nothing ends, and one that should end at once. */
#define SHORT_WAIT_MS 1
#define LONG_WAIT_S 20

static int open_cq(struct unit *unit, size_t size, enum fi_wait_obj wait_obj, struct fid_cq **cq)
{
	struct fi_cq_attr attr = { .size = size, .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = wait_obj };

	return fi_cq_open(unit->domain, &attr, cq, NULL);
}

static int open_sizes(struct unit *unit)
{
	struct fid_cq *cq;
	size_t size;
	int ret;

	for (size = 0; size <= MAX_SIZE; size = size ? 2 * size : 1) {
		ret = open_cq(unit, size, FI_WAIT_NONE, &cq);
		if (ret)
			return unit_fail(ret, "fi_cq_open");
		ret = unit_close(&cq->fid, "fi_close of a completion queue");
		if (ret)
			return ret;
	}
	return 0;
}

static int open_one(struct unit *unit, struct fid **fid)
{
	struct fid_cq *cq;
	int ret = open_cq(unit, 0, FI_WAIT_NONE, &cq);

	if (ret)
		return unit_fail(ret, "fi_cq_open");
	*fid = &cq->fid;
	return 0;
}

static int open_many(struct unit *unit)
{
	return unit_open_many(unit, unit->cnt, unit->info->domain_attr->cq_cnt, open_one);
}

/* Nothing is there to be read, now or within a moment. */
static int check_empty(struct fid_cq *cq)
{
	struct fi_cq_err_entry err = { .err_data_size = 0 };
	struct fi_cq_entry entry;
	ssize_t ret;

	ret = fi_cq_read(cq, &entry, 1);
	if (ret != -FI_EAGAIN)
		return unit_fail(ret, "fi_cq_read, which must be -FI_EAGAIN");
	ret = fi_cq_readerr(cq, &err, 0);
	if (ret != -FI_EAGAIN)
		return unit_fail(ret, "fi_cq_readerr, which must be -FI_EAGAIN");
	ret = fi_cq_sread(cq, &entry, 1, NULL, SHORT_WAIT_MS);
	return ret == -FI_EAGAIN ? 0 : unit_fail(ret, "fi_cq_sread, which must be -FI_EAGAIN");
}

/* A signal ends the next wait before its time. */
static int check_signal(struct fid_cq *cq)
{
	time_t start = time(NULL);
	struct fi_cq_entry entry;
	ssize_t ret;

	ret = fi_cq_signal(cq);
	if (ret)
		return unit_fail(ret, "fi_cq_signal");
	ret = fi_cq_sread(cq, &entry, 1, NULL, LONG_WAIT_S * 1000);
	if (ret != -FI_EAGAIN && ret != -FI_EINTR)
		return unit_fail(ret, "fi_cq_sread after fi_cq_signal");
	return time(NULL) - start < LONG_WAIT_S / 2 ? 0 : unit_fail(LONG_WAIT_S, "seconds that fi_cq_sread waited");
}

static int with_wait(struct unit *unit, int (*check)(struct fid_cq *cq))
{
	int ret, close_ret;
	struct fid_cq *cq;

	ret = open_cq(unit, 0, FI_WAIT_UNSPEC, &cq);
	if (ret)
		return unit_fail(ret, "fi_cq_open with FI_WAIT_UNSPEC");
	ret = check(cq);
	close_ret = unit_close(&cq->fid, "fi_close of a completion queue");
	return ret ? ret : close_ret;
}

static int empty(struct unit *unit)
{
	return with_wait(unit, check_empty);
}

static int signal_ends_wait(struct unit *unit)
{
	return with_wait(unit, check_signal);
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "queues of every size", open_sizes },
		{ "many queues at a time", open_many },
		{ "an empty queue says so", empty },
		{ "a signal ends a wait", signal_ends_wait },
	};
	static const struct unit_program program = {
		.about = "Open, read and signal completion queues.",
		.cnt_help = "queues at a time, no more than the domain says (default: 64)",
		.cnt = 64,
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
	};

	return unit_main(argc, argv, &program);
}
