/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a device reports, as the application hears of it: every status of a work completion, of which the stand-in for a
 * device makes up any (SOFTVERBS_STATUS, which is there where the stand-in is). Source: fi_cq(3), ibv_poll_cq(3).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

/* By the numbers that verbs gives them: FI_E*, 0 for the end of a request that went well. */
static const int errnos[] = {
	0, FI_ETRUNC, FI_EINVAL, FI_EIO, FI_EACCES, FI_ECONNRESET, FI_EACCES, FI_EPROTO, FI_EACCES, FI_EREMOTEIO,
	FI_EACCES, FI_EREMOTEIO, FI_EHOSTUNREACH, FI_ENORX, FI_EIO, FI_EREMOTEIO, FI_ECONNABORTED, FI_EIO, FI_EIO,
	FI_EIO, FI_ETIMEDOUT, FI_EIO, FI_EIO, FI_EIO,
};

static struct fi_cq_err_entry wait_error(struct test *t, struct fid_cq *cq)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
		wait_more(t, &w, "the error");
	CHECK_RET((int) ret, -FI_EAVAIL);
	CHECK_RET((int) fi_cq_readerr(cq, &err, 0), 1);
	return err;
}

/* One message, of which one end (`kind`) is told that it failed, by that status. */
static void send_one(struct test *t, const struct pair *p, const char *kind, size_t status, struct fid_cq *fails,
		     struct fid_cq *goes, char *texts[])
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct wait w = wait_begin();
	char plan[32], buf[512], in[4];
	const char *text;
	void *ctx;

	note("%s of status %zu", kind, status);
	snprintf(plan, sizeof(plan), "%s=%zu", kind, status);
	MUST(setenv("SOFTVERBS_STATUS", plan, 1));
	MUST((int) fi_recv(p->b->ep, in, 4, desc_for(p->b, in, 4), FI_ADDR_UNSPEC, in));
	ctx = kind[0] == 's' ? (void *) plan : in;
	MUST((int) fi_send(p->a->ep, "four", 4, desc_for(p->a, "four", 4), p->a->peer, plan));
	err = wait_error(t, fails);
	CHECK_EQ(err.err, errnos[status]);
	CHECK_EQ(err.prov_errno, status);
	CHECK(err.op_context == ctx);
	text = fi_cq_strerror(fails, err.prov_errno, err.err_data, buf, sizeof(buf));
	if (!strstr(text, "soft0, port 1") || !strstr(text, loopback()))
		FAIL("'%s' does not name device, port and peer", text);
	for (size_t i = 1; i < status; i++) {
		if (!strcmp(texts[i], text))
			FAIL("'%s' is said of status %zu too", text, i);
	}
	texts[status] = mem(t, strlen(text) + 1);
	strcpy(texts[status], text);
	while (fi_cq_read(goes, &entry, 1) == -FI_EAGAIN)
		wait_more(t, &w, "the other end");
}

/* A completion that comes between the last look at a queue and its arming makes no event; no reader sleeps for it. */
TEST_PROV(completion_before_arming_is_seen, FI_MSG, CONNECTED)
{
	struct fi_cq_tagged_entry entry;
	struct pair p;
	double start;
	char in[4];

	if (!getenv("SOFTVERBS_STATUS"))
		ABSENT("no stand-in for a device here whose completions come when they are wanted");
	if (run.progress == FI_PROGRESS_AUTO)
		ABSENT("a thread would read the environment while we write it");
	p = pair_open(t, .raw_cq = true, .cq_wait = FI_WAIT_UNSPEC);
	MUST((int) fi_recv(p.b->ep, in, 4, desc_for(p.b, in, 4), FI_ADDR_UNSPEC, in));
	MUST((int) fi_send(p.a->ep, "four", 4, desc_for(p.a, "four", 4), p.a->peer, in));
	MUST(setenv("SOFTVERBS_ARM_LATE", "1", 1));
	start = now_ms();
	CHECK_RET((int) fi_cq_sread(p.b->rx_cq, &entry, 1, NULL, 20000), 1);
	MUST(unsetenv("SOFTVERBS_ARM_LATE"));
	CHECK(now_ms() - start < 15000.0);
	CHECK(entry.op_context == in);
}

/* The endpoint is closed while its queue is full of sends for which the peer has no receive: each is told, once. */
TEST_PROV(close_with_a_full_queue, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .raw_cq = true, .tx_size = 4);
	struct fi_cq_err_entry err;
	struct wait w = wait_begin();
	char out[64];
	bool told[64] = { 0 };
	size_t cnt = 0, i;

	if (!getenv("SOFTVERBS_STATUS"))
		ABSENT("no device here on which sends wait for a receive");
	while (cnt < COUNT(out) && !fi_send(p.a->ep, out, 4, desc_for(p.a, out, 4), p.a->peer, &out[cnt]))
		cnt++;
	CHECK(cnt >= p.a->info->tx_attr->size);
	side_close_ep(p.a);
	for (i = 0; i < cnt; i++) {
		memset(&err, 0, sizeof(err));
		while (fi_cq_readerr(p.a->tx_cq, &err, 0) != 1)
			wait_more(t, &w, "the error of each send");
		CHECK_EQ(err.err, FI_ECANCELED);
		CHECK((char *) err.op_context >= out && (char *) err.op_context < out + cnt);
		CHECK(!told[(char *) err.op_context - out]);
		told[(char *) err.op_context - out] = true;
	}
}

/* Receives that end with the connection leave their places, too. */
TEST_PROV(flushed_receives_are_counted, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	char in[3][4];
	ssize_t left;
	size_t i;

	if (!getenv("SOFTVERBS_STATUS") || p.b->info->rx_attr->size < COUNT(in))
		ABSENT("no device here, or one of few receives");
	left = p.b->ep->ops->rx_size_left(p.b->ep);
	for (i = 0; i < COUNT(in); i++)
		MUST((int) fi_recv(p.b->ep, in[i], 4, desc_for(p.b, in[i], 4), FI_ADDR_UNSPEC, in[i]));
	CHECK_EQ(p.b->ep->ops->rx_size_left(p.b->ep), left - (ssize_t) COUNT(in));
	MUST(fi_shutdown(p.b->ep, 0));
	for (i = 0; i < COUNT(in); i++) {
		while (fi_cq_readerr(p.b->rx_cq, &err, 0) != 1) {
			fi_cq_read(p.b->rx_cq, &entry, 1);
			wait_more(t, &w, "the end of each receive");
		}
		CHECK_EQ(err.err, FI_ECANCELED);
	}
	CHECK_EQ(p.b->ep->ops->rx_size_left(p.b->ep), left);
}

/* Each status is an error completion of one operation, with an errno of its kind and a text that names device, port and
 * peer and tells it from all others; what follows is not touched. */
TEST_PROV(each_status_is_explained, FI_MSG, CONNECTED)
{
	char *texts[COUNT(errnos)];
	struct pair p;

	if (!getenv("SOFTVERBS_STATUS"))
		ABSENT("no stand-in for a device here that makes up errors");
	if (run.progress == FI_PROGRESS_AUTO)
		ABSENT("a thread would read the environment while we write it");
	p = pair_open(t, .raw_cq = true);
	for (size_t i = 1; i < COUNT(errnos); i++)
		send_one(t, &p, "send", i, p.a->tx_cq, p.b->rx_cq, texts);
	for (size_t i = 1; i < COUNT(errnos); i++)
		send_one(t, &p, "recv", i, p.b->rx_cq, p.a->tx_cq, texts);
	MUST(setenv("SOFTVERBS_STATUS", "", 1));
}
