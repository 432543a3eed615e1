/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Event queues by themselves: reading, writing, waiting, overrun. Connection events are in cm.c. Source: fi_eq(3). */
#include <string.h>

#include "ops.h"
#include "waitobj.h"

/* An event queue with these attributes; it belongs to the test. NULL: the provider does not have such a one. */
static struct fid_eq *eq_open(struct side *s, struct fi_eq_attr attr)
{
	struct fid_eq *eq = NULL;
	int ret = fi_eq_open(s->fabric, &attr, &eq, s);

	if (ret == -FI_ENOSYS || ret == -FI_EINVAL || ret == -FI_EOPNOTSUPP)
		return NULL;
	MUST(ret);
	own_fid(s->t, &eq->fid);
	return eq;
}

static struct fid_eq *eq_writable(struct side *s, enum fi_wait_obj wait)
{
	struct fid_eq *eq = eq_open(s, (struct fi_eq_attr) { .flags = FI_WRITE, .wait_obj = wait });

	if (!eq)
		ABSENT("%s has no event queue with wait object %d to write to", run.prov, wait);
	return eq;
}

static void put(struct fid_eq *eq, uint64_t data)
{
	struct fi_eq_entry entry = { .fid = &eq->fid, .context = eq, .data = data };

	CHECK_RET(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
}

static void get(struct fid_eq *eq, uint64_t data)
{
	struct fi_eq_entry entry;
	uint32_t event = 0;

	CHECK_RET(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	CHECK_EQ(event, FI_NOTIFY);
	CHECK_EQ(entry.data, data);
	CHECK(entry.context == eq && entry.fid == &eq->fid);
}

static ssize_t read_none(struct fid_eq *eq)
{
	struct fi_eq_entry entry;
	uint32_t event;

	return fi_eq_read(eq, &event, &entry, sizeof(entry), 0);
}

/* Nothing there is -FI_EAGAIN, for events and errors. */
TEST_PROV(empty, FI_MSG)
{
	struct fid_eq *eq = eq_writable(domain_side(t), FI_WAIT_NONE);
	struct fi_eq_err_entry err = { 0 };

	CHECK_RET(read_none(eq), -FI_EAGAIN);
	CHECK_RET(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
}

/* Events written are read, in order. */
TEST_PROV(write_and_read, FI_MSG)
{
	struct fid_eq *eq = eq_writable(domain_side(t), FI_WAIT_NONE);
	uint64_t i;

	for (i = 0; i < 50; i++)
		put(eq, i);
	for (i = 0; i < 50; i++)
		get(eq, i);
	CHECK_RET(read_none(eq), -FI_EAGAIN);
}

/* FI_PEEK looks and leaves. */
TEST_PROV(peek, FI_MSG)
{
	struct fid_eq *eq = eq_writable(domain_side(t), FI_WAIT_NONE);
	struct fi_eq_entry entry;
	uint32_t event;

	put(eq, 1);
	put(eq, 2);
	CHECK_RET(fi_eq_read(eq, &event, &entry, sizeof(entry), FI_PEEK), sizeof(entry));
	CHECK_EQ(entry.data, 1);
	CHECK_RET(fi_eq_read(eq, &event, &entry, sizeof(entry), FI_PEEK), sizeof(entry));
	CHECK_EQ(entry.data, 1);
	get(eq, 1);
	get(eq, 2);
	CHECK_RET(read_none(eq), -FI_EAGAIN);
}

/* Without FI_WRITE the application may not write. */
TEST_PROV(write_needs_flag, FI_MSG)
{
	struct fid_eq *eq = eq_open(domain_side(t), (struct fi_eq_attr) { 0 });
	struct fi_eq_entry entry = { 0 };

	CHECK(eq != NULL);
	CHECK(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0) < 0);
	CHECK_RET(read_none(eq), -FI_EAGAIN);
}

/* Events that are never read go with the queue. */
TEST_PROV(close_with_events, FI_MSG)
{
	struct fid_eq *eq = eq_writable(domain_side(t), FI_WAIT_NONE);

	put(eq, 1);
	put(eq, 2);
	close_now(t, &eq->fid);
}

/* A queue takes what its size promises; beyond it more, or -FI_EOVERRUN; what it took is read. */
TEST_PROV(overrun, FI_MSG)
{
	enum { SIZE = 8, MOST = 100000 };
	struct fid_eq *eq = eq_open(domain_side(t), (struct fi_eq_attr) { .size = SIZE, .flags = FI_WRITE });
	struct fi_eq_entry entry = { 0 };
	struct fi_eq_err_entry err = { 0 };
	uint64_t i, n;
	ssize_t ret = 0;

	if (!eq)
		ABSENT("%s has no event queue to write to", run.prov);
	for (n = 0; n < MOST; n++) {
		entry = (struct fi_eq_entry) { .fid = &eq->fid, .context = eq, .data = n };
		ret = fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0);
		if (ret < 0)
			break;
	}
	CHECK(n >= SIZE);
	if (n < MOST)
		CHECK_RET(ret, -FI_EOVERRUN);
	for (i = 0; i < n; i++)
		get(eq, i);
	if (n == MOST)
		return;
	CHECK_RET(read_none(eq), -FI_EAVAIL);
	CHECK_RET(fi_eq_readerr(eq, &err, 0), sizeof(err));
	CHECK_EQ(err.err, FI_EOVERRUN);
}

/* A provider's error number has a text, which also fits into a buffer given. */
TEST_PROV(strerror_says_something, FI_MSG)
{
	struct fid_eq *eq = eq_open(domain_side(t), (struct fi_eq_attr) { 0 });
	char buf[8];
	const char *text;

	CHECK(eq != NULL);
	text = fi_eq_strerror(eq, FI_ECONNREFUSED, NULL, NULL, 0);
	CHECK(text && text[0]);
	memset(buf, 'x', sizeof(buf));
	text = fi_eq_strerror(eq, FI_ECONNREFUSED, NULL, buf, 4);
	CHECK(text != NULL);
	CHECK(memchr(buf, 0, 4) || buf[0] == 'x');
	CHECK(buf[4] == 'x');
}

/* ---- waiting */

/* Each wait object: a wait without events ends at its time, with events at once. */
TEST_TABLE(sread, wait_rows, FI_MSG)
{
	struct fid_eq *eq = eq_writable(domain_side(t), ROW(wait_rows)->obj);
	struct fi_eq_entry entry;
	uint32_t event;
	double start;

	if (ROW(wait_rows)->obj == FI_WAIT_NONE) {
		CHECK(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0) < 0);
		return;
	}
	start = now_ms();
	CHECK_RET(fi_eq_sread(eq, &event, &entry, sizeof(entry), 60, 0), -FI_EAGAIN);
	check_waited(start, 60);
	start = now_ms();
	CHECK_RET(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_EAGAIN);
	check_waited(start, 0);
	put(eq, 3);
	start = now_ms();
	CHECK_RET(fi_eq_sread(eq, &event, &entry, sizeof(entry), 5000, 0), sizeof(entry));
	CHECK_EQ(entry.data, 3);
	check_waited(start, 0);
	put(eq, 4);
	CHECK_RET(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
	CHECK_EQ(entry.data, 4);
}

/* A queue waits for a connection request by itself. */
TEST_PROV(sread_of_a_request, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t, .raw_eq = true, .eq_wait = FI_WAIT_UNSPEC);
	struct side *a = connector_open(t, l, &(struct opts) { 0 });
	uint8_t buf[sizeof(struct fi_eq_cm_entry) + 512];
	struct wait w = wait_begin();
	uint32_t event;
	ssize_t ret;

	MUST(fi_connect(a->ep, l->name, NULL, 0));
	while ((ret = fi_eq_sread(l->eq, &event, buf, sizeof(buf), 10, 0)) == -FI_EAGAIN)
		wait_more(t, &w, "the request");
	CHECK(ret >= (ssize_t) sizeof(struct fi_eq_cm_entry));
	CHECK_EQ(event, FI_CONNREQ);
	own_info(t, ((struct fi_eq_cm_entry *) buf)->info);
	MUST(fi_reject(l->pep, ((struct fi_eq_cm_entry *) buf)->info->handle, NULL, 0));
}

/* The file descriptor is readable if and only if there is an event. */
TEST_PROV(fd_follows_events, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fid_eq *eq = eq_writable(s, FI_WAIT_FD);
	unsigned int i;
	int fd = wait_fd(&eq->fid);

	for (i = 0; i < 20; i++) {
		MUST(trywait(s, &eq->fid));
		CHECK(!fd_readable(fd, 0));
		put(eq, i);
		CHECK(fd_readable(fd, 30000));
		CHECK_RET(trywait(s, &eq->fid), -FI_EAGAIN);
		put(eq, i + 100);
		get(eq, i);
		CHECK_RET(trywait(s, &eq->fid), -FI_EAGAIN);
		get(eq, i + 100);
		CHECK_RET(read_none(eq), -FI_EAGAIN);
	}
}

/* What was not read of an endpoint goes with it: it names an object that is not there. */
TEST_PROV(events_of_a_closed_endpoint_are_gone, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t);
	struct fi_eq_cm_entry entry;
	struct wait w = wait_begin();
	uint32_t event = 0;

	if (!run.ours)
		ABSENT("upstream keeps them");
	p.b->o.raw_eq = true;
	side_close_ep(p.a);
	while (fi_eq_read(p.b->eq, &event, &entry, sizeof(entry), FI_PEEK) == -FI_EAGAIN)
		wait_more(t, &w, "the end of the connection");
	CHECK_EQ(event, FI_SHUTDOWN);
	side_close_ep(p.b);
	CHECK_RET((int) fi_eq_read(p.b->eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
}

/* By trywait and poll alone an application hears of a request, of the connection, and of its end. */
TEST_PROV(fd_hears_of_connections, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .eq_wait = FI_WAIT_FD);
	struct side *l = p.listener;
	int fd = wait_fd(&p.b->eq->fid), lfd = wait_fd(&l->eq->fid);
	struct side *a;

	idle(t);
	MUST(trywait(p.b, &p.b->eq->fid));
	CHECK(!fd_readable(fd, 0));
	p.b->o.raw_eq = true;
	side_close_ep(p.a);
	if (p.b->info->domain_attr->control_progress == FI_PROGRESS_AUTO ||
	    trywait(p.b, &p.b->eq->fid) == 0)
		CHECK(fd_readable(fd, 5000));
	p.b->o.raw_eq = false;
	expect_event(p.b, FI_SHUTDOWN);

	l->o.raw_eq = true;
	a = connector_open(t, l, &(struct opts) { 0 });
	MUST(trywait(l, &l->eq->fid));
	MUST(fi_connect(a->ep, l->name, NULL, 0));
	side_idle(a);
	CHECK(fd_readable(lfd, 5000));
	l->o.raw_eq = false;
	MUST(fi_reject(l->pep, expect_event(l, FI_CONNREQ).info->handle, NULL, 0));
}
