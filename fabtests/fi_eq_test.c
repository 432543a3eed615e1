/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_eq_test: event queues open, close, and give back what was written to them. */
#include "lib/unit.h"

#include <poll.h>

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#define MAX_SIZE 65536
#define SHORT_WAIT_MS 1
#define LONG_WAIT_MS 60000
#define EVENTS 5

static int open_eq(struct unit *unit, size_t size, enum fi_wait_obj wait_obj, struct fid_eq **eq)
{
	struct fi_eq_attr attr = { .size = size, .flags = FI_WRITE, .wait_obj = wait_obj };

	return fi_eq_open(unit->fabric, &attr, eq, NULL);
}

static int open_sizes(struct unit *unit)
{
	struct fid_eq *eq;
	size_t size;
	int ret;

	for (size = 0; size <= MAX_SIZE; size = size ? 2 * size : 1) {
		ret = open_eq(unit, size, FI_WAIT_NONE, &eq);
		if (ret)
			return unit_fail(ret, "fi_eq_open");
		ret = unit_close(&eq->fid, "fi_close of an event queue");
		if (ret)
			return ret;
	}
	return 0;
}

/* Write event number i, which carries i. */
static int write_event(struct fid_eq *eq, uint64_t i)
{
	struct fi_eq_entry entry = { .fid = &eq->fid, .data = i };
	ssize_t ret = fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0);

	return ret == (ssize_t) sizeof(entry) ? 0 : unit_fail(ret, "fi_eq_write");
}

/* What was read must be event number i. */
static int check_event(ssize_t ret, uint32_t event, const struct fi_eq_entry *entry, uint64_t i)
{
	if (ret != (ssize_t) sizeof(*entry))
		return unit_fail(ret, "read of an event");
	if (event != FI_NOTIFY)
		return unit_fail(event, "type of the event, which must be FI_NOTIFY");
	return entry->data == i ? 0 : unit_fail((int64_t) entry->data, "data of the event");
}

static int read_event(struct fid_eq *eq, uint64_t flags, uint64_t i)
{
	struct fi_eq_entry entry = { .data = 0 };
	uint32_t event = 0;
	ssize_t ret = fi_eq_read(eq, &event, &entry, sizeof(entry), flags);

	return check_event(ret, event, &entry, i);
}

static int sread_event(struct fid_eq *eq, uint64_t flags, uint64_t i)
{
	struct fi_eq_entry entry = { .data = 0 };
	uint32_t event = 0;
	ssize_t ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), LONG_WAIT_MS, flags);

	return check_event(ret, event, &entry, i);
}

static int check_order(struct fid_eq *eq)
{
	uint64_t i;
	int ret = 0;

	for (i = 0; i < EVENTS && !ret; i++)
		ret = write_event(eq, i);
	for (i = 0; i < EVENTS && !ret; i++)
		ret = read_event(eq, 0, i);
	return ret;
}

static int check_peek(struct fid_eq *eq)
{
	int ret = write_event(eq, 1);

	if (!ret)
		ret = read_event(eq, FI_PEEK, 1);
	if (!ret)
		ret = sread_event(eq, FI_PEEK, 1);
	return ret ? ret : sread_event(eq, 0, 1);
}

static int check_empty(struct fid_eq *eq)
{
	struct fi_eq_err_entry err = { .err_data_size = 0 };
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	ret = fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
	if (ret != -FI_EAGAIN)
		return unit_fail(ret, "fi_eq_read, which must be -FI_EAGAIN");
	ret = fi_eq_readerr(eq, &err, 0);
	if (ret != -FI_EAGAIN)
		return unit_fail(ret, "fi_eq_readerr, which must be -FI_EAGAIN");
	ret = fi_eq_sread(eq, &event, &entry, sizeof(entry), SHORT_WAIT_MS, 0);
	return ret == -FI_EAGAIN ? 0 : unit_fail(ret, "fi_eq_sread, which must be -FI_EAGAIN");
}

/* The descriptor is readable when, and only when, there is an event. */
static int check_fd(struct fid_eq *eq)
{
	struct pollfd poll_fd = { .events = POLLIN };
	int ret;

	ret = fi_control(&eq->fid, FI_GETWAIT, &poll_fd.fd);
	if (ret)
		return unit_fail(ret, "fi_control with FI_GETWAIT");
	ret = poll(&poll_fd, 1, 0);
	if (ret)
		return unit_fail(ret, "poll of an empty queue");
	ret = write_event(eq, 1);
	if (ret)
		return ret;
	ret = poll(&poll_fd, 1, LONG_WAIT_MS);
	return ret == 1 ? read_event(eq, 0, 1) : unit_fail(ret, "poll of a queue with an event");
}

static int with_eq(struct unit *unit, enum fi_wait_obj wait_obj, int (*check)(struct fid_eq *eq))
{
	int ret, close_ret;
	struct fid_eq *eq;

	ret = open_eq(unit, 0, wait_obj, &eq);
	if (ret)
		return unit_fail(ret, "fi_eq_open");
	ret = check(eq);
	close_ret = unit_close(&eq->fid, "fi_close of an event queue");
	return ret ? ret : close_ret;
}

static int order(struct unit *unit)
{
	return with_eq(unit, FI_WAIT_NONE, check_order);
}

static int peek(struct unit *unit)
{
	return with_eq(unit, FI_WAIT_UNSPEC, check_peek);
}

static int empty(struct unit *unit)
{
	return with_eq(unit, FI_WAIT_UNSPEC, check_empty);
}

static int wait_fd(struct unit *unit)
{
	return with_eq(unit, FI_WAIT_FD, check_fd);
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "queues of every size", open_sizes },
		{ "what was written is read in order", order },
		{ "a peek leaves the event there", peek },
		{ "an empty queue says so", empty },
		{ "the descriptor of a queue with an event is readable", wait_fd },
	};
	static const struct unit_program program = {
		.about = "Open, write, read and poll event queues.",
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
	};

	return unit_main(argc, argv, &program);
}
