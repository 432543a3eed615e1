/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Numbers about an endpoint: what waits in it, which connections it has, and who is told. Source: fi_profile(3).
 */
#include <rdma/fi_profile.h>
#include <string.h>

#include "ops.h"

/* The caller closes it. */
static struct fid_profile *view_new(struct side *s)
{
	struct fid_profile *view = NULL;
	int ret = fi_profile_open(&s->ep->fid, 0, &view, s);

	if (ret == -FI_ENOSYS)
		ABSENT("%s tells nothing of its endpoints", run.prov);
	MUST(ret);
	CHECK_EQ(view->fid.fclass, FI_CLASS_PROFILE);
	CHECK(view->fid.context == s);
	return view;
}

static struct fid_profile *view_open(struct side *s)
{
	struct fid_profile *view = view_new(s);

	own_fid(s->t, &view->fid);
	return view;
}

static uint64_t number(struct fid_profile *view, uint32_t id)
{
	uint64_t value = UINT64_MAX;

	MUST((int) fi_profile_read_u64(view, id, &value));
	return value;
}

static bool has_var(struct fid_profile *view, uint32_t id)
{
	struct fi_profile_desc desc[16];
	size_t cnt = 16;
	ssize_t i, ret = fi_profile_query_vars(view, desc, &cnt);

	CHECK_EQ(ret, cnt);
	for (i = 0; i < ret; i++) {
		if (desc[i].id == id)
			return true;
	}
	return false;
}

/* Until so many messages wait. */
static void await_unexpected(struct side *s, struct fid_profile *view, uint64_t cnt)
{
	struct wait w = wait_begin();

	while (number(view, FI_VAR_UNEXP_MSG_CNT) != cnt) {
		sides_progress(s->t);
		wait_more(s->t, &w, "messages that nobody waits for");
	}
}

/* The variables of an endpoint are listed, and each of them can be read. */
TEST_PROV(variables_are_listed, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fid_profile *view = view_open(p.b);
	struct fi_profile_desc all[16], some[1];
	size_t cnt = 0, few = 1, i;
	uint64_t value;

	CHECK_RET(fi_profile_query_vars(view, NULL, &cnt), 0);
	CHECK(cnt > 1 && cnt <= 16);
	CHECK_RET(fi_profile_query_vars(view, all, &cnt), (ssize_t) cnt);
	CHECK_RET(fi_profile_query_vars(view, some, &few), 1);
	CHECK_EQ(few, cnt);
	CHECK_EQ(some[0].id, all[0].id);
	for (i = 0; i < cnt; i++) {
		CHECK(all[i].name && *all[i].name && all[i].desc && *all[i].desc);
		if (all[i].id == FI_VAR_UNEXP_MSG_QUEUE) {
			CHECK_EQ(all[i].datatype_sel, fi_defined_type);
			CHECK_EQ(all[i].size, sizeof(struct fi_cq_tagged_entry));
			continue;
		}
		CHECK_EQ(all[i].datatype_sel, fi_primitive_type);
		CHECK_EQ(all[i].datatype.primitive, FI_UINT64);
		CHECK_EQ(all[i].size, sizeof(value));
		number(view, all[i].id);
	}
	CHECK_RET(fi_profile_read_u64(view, 1000, &value), -FI_EINVAL);
	cnt = 0;
	CHECK_RET(fi_profile_query_events(view, NULL, &cnt), 0);
	CHECK_EQ(cnt, 2);
}

/* Receives that wait are counted, and messages that wait are listed: what they are, untagged ones first. */
TEST_PROV(what_waits_is_told, FI_MSG | FI_TAGGED)
{
	struct pair p = pair_open(t);
	struct fid_profile *view = view_open(p.b);
	struct fi_cq_tagged_entry entry[3] = { 0 };
	size_t size = sizeof(entry);
	char buf[3][64];
	void *ctx;

	post_recv(p.b, buf[0], 64);
	ctx = post(p.b, TRECV, .buf = buf[1], .len = 64, .tag = 5);
	CHECK_EQ(number(view, FI_VAR_MSG_QUEUE_CNT), 2);
	CHECK_EQ(number(view, FI_VAR_UNEXP_MSG_CNT), 0);
	tsend_bytes(p.a, "another tag", 11, 6);
	send_bytes(p.a, "received", 8);
	send_bytes(p.a, "not received", 12);
	expect_recv(p.b, "received", 8);
	await_unexpected(p.b, view, 2);
	CHECK_EQ(number(view, FI_VAR_MSG_QUEUE_CNT), 1);

	CHECK_RET(view->ops->read_var(view, FI_VAR_UNEXP_MSG_QUEUE, entry, &size), 2 * sizeof(entry[0]));
	CHECK_EQ(size, 2 * sizeof(entry[0]));
	CHECK_EQ(entry[0].len, 12);
	CHECK_EQ(entry[0].flags, FI_MSG | FI_RECV);
	CHECK_EQ(entry[1].len, 11);
	CHECK_EQ(entry[1].tag, 6);
	CHECK_EQ(entry[1].flags, FI_TAGGED | FI_RECV);
	memset(entry, 0, sizeof(entry));
	size = sizeof(entry[0]) + 1;
	CHECK_RET(view->ops->read_var(view, FI_VAR_UNEXP_MSG_QUEUE, entry, &size), sizeof(entry[0]));
	CHECK_EQ(size, 2 * sizeof(entry[0]));
	CHECK_EQ(entry[1].len, 0);

	post_trecv(p.b, buf[2], 64, 6, 0);
	expect_recv(p.b, "another tag", 11);
	CHECK_EQ(number(view, FI_VAR_UNEXP_MSG_CNT), 1);
	post_recv(p.b, buf[2], 64);
	expect_recv(p.b, "not received", 12);
	CHECK_EQ(number(view, FI_VAR_UNEXP_MSG_CNT), 0);
	MUST((int) fi_cancel(&p.b->ep->fid, ctx));
	expect_rx_err(p.b, FI_ECANCELED);
	CHECK_EQ(number(view, FI_VAR_MSG_QUEUE_CNT), 0);
}

/* Between start_reads and end_reads the numbers stand still, and the endpoint does not. */
TEST_PROV(one_moment_is_read, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fid_profile *view = view_open(p.b), *other = view_open(p.b);
	struct fi_cq_tagged_entry entry[2];
	size_t size = sizeof(entry);
	char buf[64];

	send_bytes(p.a, "first", 5);
	await_unexpected(p.b, view, 1);
	fi_profile_start_reads(view, 0);
	send_bytes(p.a, "second", 6);
	await_unexpected(p.b, other, 2);
	CHECK_EQ(number(view, FI_VAR_UNEXP_MSG_CNT), 1);
	post_recv(p.b, buf, 64);
	expect_recv(p.b, "first", 5);
	CHECK_RET(view->ops->read_var(view, FI_VAR_UNEXP_MSG_QUEUE, entry, &size), sizeof(entry[0]));
	CHECK_EQ(entry[0].len, 5);
	fi_profile_end_reads(view, 0);
	CHECK_EQ(number(view, FI_VAR_UNEXP_MSG_CNT), 1);
	size = sizeof(entry);
	CHECK_RET(view->ops->read_var(view, FI_VAR_UNEXP_MSG_QUEUE, entry, &size), sizeof(entry[0]));
	CHECK_EQ(entry[0].len, 6);
}

/* A connection is counted at the endpoint that has it. */
TEST_PROV(connections_are_counted, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fid_profile *view = view_open(p.b);

	check_link(p.a, p.b);
	CHECK_EQ(number(view, FI_VAR_CONNECTION_CNT), 1);
	if (!has_var(view, FI_VAR_CONN_REQUEST))
		return;
	CHECK_EQ(number(view, FI_VAR_CONN_REQUEST), 1);
	CHECK_EQ(number(view, FI_VAR_CONN_ACCEPT), 1);
	CHECK_EQ(number(view, FI_VAR_CONN_REJECT), 0);
	fi_profile_reset(view, 0);
	CHECK_EQ(number(view, FI_VAR_CONN_REQUEST), 0);
	CHECK_EQ(number(view, FI_VAR_CONN_ACCEPT), 0);
	CHECK_EQ(number(view, FI_VAR_CONNECTION_CNT), 1);
}

/* ---- events */

struct told {
	int cnt;
	uint32_t id;
	size_t len;
	uint64_t flags;
};

static int on_event(struct fid_profile *view, struct fi_profile_desc *event, void *data, size_t size, void *context)
{
	struct told *told = context;
	const struct fi_cq_tagged_entry *entry = data;

	(void) view;
	told->cnt++;
	told->id = event->id;
	told->len = size == sizeof(*entry) ? entry->len : 0;
	told->flags = entry->flags;
	return 0;
}

/* Registered callbacks are called when an unexpected message comes, and when a receive takes it. */
TEST_PROV(callbacks_hear_of_unexpected_messages, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fid_profile *view = view_open(p.b);
	struct told come = { 0 }, matched = { 0 };
	char buf[64];

	MUST(fi_profile_register_callback(view, FI_EVENT_UNEXP_MSG_RECVD, on_event, &come));
	MUST(fi_profile_register_callback(view, FI_EVENT_UNEXP_MSG_MATCHED, on_event, &matched));
	CHECK_EQ(fi_profile_register_callback(view, 1000, on_event, &come), -FI_EINVAL);
	post_recv(p.b, buf, 64);
	send_bytes(p.a, "awaited", 7);
	expect_recv(p.b, "awaited", 7);
	CHECK(!come.cnt && !matched.cnt);
	send_bytes(p.a, "early", 5);
	await_unexpected(p.b, view, 1);
	CHECK(come.cnt == 1 && come.id == FI_EVENT_UNEXP_MSG_RECVD && come.len == 5);
	CHECK_EQ(come.flags, FI_MSG | FI_RECV);
	CHECK_EQ(matched.cnt, 0);
	post_recv(p.b, buf, 64);
	expect_recv(p.b, "early", 5);
	CHECK(matched.cnt == 1 && matched.id == FI_EVENT_UNEXP_MSG_MATCHED && matched.len == 5);
	MUST(fi_profile_register_callback(view, FI_EVENT_UNEXP_MSG_RECVD, NULL, NULL));
	send_bytes(p.a, "unheard", 7);
	await_unexpected(p.b, view, 1);
	CHECK_EQ(come.cnt, 1);
}

/* ---- life */

/* An endpoint with an open view is -FI_EBUSY. */
TEST_PROV(view_goes_before_its_endpoint, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fid_profile *view = view_new(p.b);

	CHECK_EQ(fi_close(&p.b->ep->fid), -FI_EBUSY);
	CHECK_EQ(fi_profile_close(view), 0);
	check_link(p.a, p.b);
}

/* Other names of operations, and flags, are refused. */
TEST_PROV(other_names_and_flags_are_refused, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fid_profile *view = view_open(p.b);
	void *ops;

	CHECK_EQ(fi_open_ops(&p.b->ep->fid, "no such ops", 0, &ops, NULL), -FI_ENOSYS);
	CHECK_EQ(fi_profile_open(&p.b->ep->fid, 1, &view, NULL), -FI_EBADFLAGS);
}
