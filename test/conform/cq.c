/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion queues: formats, reading, error entries by API version, sizes. Waiting is in cq_wait.c. Source:
 * fi_cq(3). */
#include <string.h>

#include "ops.h"

struct format_row {
	const char *name;
	enum fi_cq_format format;
	size_t size;
};

static const struct format_row format_rows[] = {
	{ "context", FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry) },
	{ "msg", FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry) },
	{ "data", FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry) },
	{ "tagged", FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry) },
};

/* Wait until @cq has something, by reading @cnt entries. */
static ssize_t read_some(struct test *t, struct fid_cq *cq, void *buf, size_t cnt)
{
	struct wait w = wait_begin();
	ssize_t ret;

	while ((ret = fi_cq_read(cq, buf, cnt)) == -FI_EAGAIN)
		wait_more(t, &w, "a completion");
	return ret;
}

/* An entry of each format has its members and not a byte more. */
TEST_TABLE(format, format_rows, FI_MSG)
{
	const struct format_row *row = ROW(format_rows);
	struct pair p = pair_open(t, .format = row->format, .raw_cq = true);
	struct fi_cq_tagged_entry entries[2];
	uint8_t guard[sizeof(entries)];
	char in[8];
	void *ctx;

	memset(entries, 0x5a, sizeof(entries));
	memset(guard, 0x5a, sizeof(guard));
	ctx = post(p.b, RECV, .buf = in, .len = sizeof(in));
	if (p.a->info->domain_attr->cq_data_size)
		post(p.a, SENDDATA, .buf = "abcd", .len = 4, .data = 9);
	else
		send_bytes(p.a, "abcd", 4);
	CHECK_RET(read_some(t, p.b->rx_cq, entries, 1), 1);
	CHECK(entries[0].op_context == ctx);
	if (row->format >= FI_CQ_FORMAT_MSG) {
		CHECK_EQ(entries[0].flags & (FI_RECV | FI_MSG), FI_RECV | FI_MSG);
		CHECK_EQ(entries[0].len, 4);
	}
	if (row->format >= FI_CQ_FORMAT_DATA && (entries[0].flags & FI_REMOTE_CQ_DATA))
		CHECK_EQ(entries[0].data, 9);
	CHECK_MEM((uint8_t *) entries + row->size, guard, sizeof(entries) - row->size);
}

/* Entries are read in order, as many at a time as there is room for. */
TEST_TABLE(many_at_once, format_rows, FI_MSG)
{
	enum { N = 40 };
	const struct format_row *row = ROW(format_rows);
	struct pair p = pair_open(t, .format = row->format, .raw_cq = true);
	uint8_t buf[N * sizeof(struct fi_cq_tagged_entry)];
	struct wait w = wait_begin();
	void *ctx[N], *got;
	size_t n = 0, i;
	ssize_t ret;
	char in[N];

	for (i = 0; i < N; i++)
		ctx[i] = post(p.b, RECV, .buf = &in[i], .len = 1);
	for (i = 0; i < N; i++)
		post(p.a, INJECT, .buf = "x", .len = 1);
	idle(t);
	while (n < N) {
		ret = fi_cq_read(p.b->rx_cq, buf, n ? N : 7);
		if (ret == -FI_EAGAIN) {
			wait_more(t, &w, "the rest");
			continue;
		}
		CHECK(ret > 0 && (n || ret <= 7));
		for (i = 0; i < (size_t) ret; i++, n++) {
			memcpy(&got, buf + i * row->size, sizeof(got));
			CHECK(got == ctx[n]);
		}
	}
	CHECK_RET(fi_cq_read(p.b->rx_cq, buf, N), -FI_EAGAIN);
}

/* The unspecified format is one that works. */
TEST_PROV(format_unspec, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_UNSPEC };
	struct fid_cq *cq;

	MUST(fi_cq_open(s->domain, &attr, &cq, NULL));
	MUST(fi_close(&cq->fid));
}

/* Nothing there is -FI_EAGAIN, for entries and errors; reading none is progress only. */
TEST_PROV(empty, FI_MSG)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret;
	char in[4];

	CHECK_RET(fi_cq_read(p.b->rx_cq, &entry, 1), -FI_EAGAIN);
	CHECK_RET(fi_cq_readerr(p.b->rx_cq, &err, 0), -FI_EAGAIN);
	post_recv(p.b, in, 4);
	send_bytes(p.a, "abcd", 4);
	idle(t);
	ret = fi_cq_read(p.b->rx_cq, NULL, 0);
	CHECK(ret == 0 || ret == -FI_EAGAIN);
	CHECK_RET(read_some(t, p.b->rx_cq, &entry, 1), 1);
}

/* fi_cq_readfrom() without FI_SOURCE says that it does not know. */
TEST_PROV(readfrom_without_source, FI_MSG)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	fi_addr_t src = 123456;
	ssize_t ret;
	char in[4];

	if (p.b->info->caps & FI_SOURCE)
		ABSENT("FI_SOURCE is given unasked");
	post_recv(p.b, in, 4);
	send_bytes(p.a, "abcd", 4);
	while ((ret = fi_cq_readfrom(p.b->rx_cq, &entry, 1, &src)) == -FI_EAGAIN)
		wait_more(t, &w, "the message");
	CHECK_RET(ret, 1);
	CHECK(src == FI_ADDR_NOTAVAIL);
}

/* ---- errors */

/* Make an error entry at @s: a cancelled receive. Returns its context. */
static void *make_error(struct side *s, char *buf)
{
	void *ctx = post(s, RECV, .buf = buf, .len = 4);

	MUST(fi_cancel(&s->ep->fid, ctx));
	return ctx;
}

/* An error in the queue is -FI_EAVAIL until it is read, once, and other entries are not lost by it. */
TEST_PROV(error_between_entries, FI_MSG)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	struct wait w = wait_begin();
	unsigned int good = 0, bad = 0;
	void *ctx;
	char in[4];
	ssize_t ret;

	post_recv(p.b, in, 4);
	send_bytes(p.a, "1111", 4);
	CHECK_RET(read_some(t, p.b->rx_cq, &entry, 1), 1);
	ctx = make_error(p.b, in);
	CHECK_RET(read_some(t, p.b->rx_cq, &entry, 1), -FI_EAVAIL);
	CHECK_RET(fi_cq_read(p.b->rx_cq, &entry, 1), -FI_EAVAIL);
	CHECK_RET(fi_cq_readerr(p.b->rx_cq, &err, 0), 1);
	CHECK(err.op_context == ctx);
	CHECK_EQ(err.err, FI_ECANCELED);
	CHECK_RET(fi_cq_readerr(p.b->rx_cq, &err, 0), -FI_EAGAIN);

	note("one good, one bad");
	post_recv(p.b, in, 4);
	send_bytes(p.a, "2222", 4);
	idle(t);
	make_error(p.b, in + 2);
	while (good + bad < 2) {
		ret = fi_cq_read(p.b->rx_cq, &entry, 1);
		if (ret == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			CHECK_RET(fi_cq_readerr(p.b->rx_cq, &err, 0), 1);
			bad++;
		} else if (ret == -FI_EAGAIN) {
			wait_more(t, &w, "both entries");
		} else {
			CHECK_RET(ret, 1);
			good++;
		}
	}
	CHECK(good == 1 && bad == 1);
}

struct era_row {
	const char *name;
	uint32_t version;
	size_t size;			/* bytes of struct fi_cq_err_entry that a caller of then has */
};

static const struct era_row era_rows[] = {
	{ "1.0", FI_VERSION(1, 0), 72 }, { "1.4", FI_VERSION(1, 4), 72 }, { "1.5", FI_VERSION(1, 5), 80 },
	{ "1.17", FI_VERSION(1, 17), 80 }, { "1.19", FI_VERSION(1, 19), 80 }, { "1.20", FI_VERSION(1, 20), 88 },
	{ "2.0", FI_VERSION(2, 0), 88 }, { "2.6", FI_VERSION(2, 6), 88 },
};

/* The error entry grew: a program of an older API version has less room, and nothing is written beyond it. */
TEST_TABLE(error_entry_of_era, era_rows, FI_MSG)
{
	const struct era_row *row = ROW(era_rows);
	struct pair p;
	uint8_t buf[128], guard[128];
	struct fi_cq_err_entry *err = (struct fi_cq_err_entry *) buf;
	char in[4];
	void *ctx;

	if (FI_VERSION_LT(fi_version(), row->version))
		ABSENT("later than the library");
	if (!run.ours && FI_VERSION_LT(row->version, FI_VERSION(1, 5)))
		ABSENT("upstream answers mr_mode 0 of that time with nothing");
	p = pair_open(t, .version = row->version, .mr_none = true, .raw_cq = true);
	ctx = make_error(p.b, in);
	idle(t);
	memset(buf, 0x5a, sizeof(buf));
	memset(guard, 0x5a, sizeof(guard));
	memset(buf, 0, row->size);
	/* Not the inline function: it is of today. */
	CHECK_RET(p.b->rx_cq->ops->readerr(p.b->rx_cq, err, 0), 1);
	CHECK(err->op_context == ctx);
	CHECK_EQ(err->err, FI_ECANCELED);
	CHECK_MEM(buf + row->size, guard + row->size, sizeof(buf) - row->size);
}

/* Before 1.5 the caller does not set err_data_size; what is in err_data is ignored. */
TEST_PROV(error_data_before_1_5, FI_MSG)
{
	struct pair p;
	struct fi_cq_err_entry err;
	char in[4];

	if (!run.ours)
		ABSENT("upstream answers mr_mode 0 of that time with nothing");
	p = pair_open(t, .version = FI_VERSION(1, 4), .mr_none = true, .raw_cq = true);
	make_error(p.b, in);
	idle(t);
	memset(&err, 0x5a, sizeof(err));
	CHECK_RET(p.b->rx_cq->ops->readerr(p.b->rx_cq, &err, 0), 1);
	CHECK_EQ(err.err, FI_ECANCELED);
	CHECK(err.err_data != (void *) 0x5a5a5a5a5a5a5a5a);
}

/* From 1.5 on err_data is the caller's buffer: kept, and not written beyond its size. */
TEST_PROV(error_data_buffer, FI_MSG)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct fi_cq_err_entry err = { 0 };
	uint8_t data[64];
	char in[4];

	make_error(p.b, in);
	idle(t);
	memset(data, 0x5a, sizeof(data));
	err.err_data = data;
	err.err_data_size = 16;
	CHECK_RET(fi_cq_readerr(p.b->rx_cq, &err, 0), 1);
	CHECK(err.err_data == data);
	CHECK(err.err_data_size <= 16);
	CHECK(data[16] == 0x5a && data[63] == 0x5a);
}

/* The text for a provider's error number, with and without a buffer. */
TEST_PROV(strerror_says_something, FI_MSG)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct fi_cq_err_entry err = { 0 };
	char in[4], buf[256];
	const char *text;

	make_error(p.b, in);
	idle(t);
	CHECK_RET(fi_cq_readerr(p.b->rx_cq, &err, 0), 1);
	text = fi_cq_strerror(p.b->rx_cq, err.prov_errno, err.err_data, NULL, 0);
	CHECK(text && text[0]);
	buf[0] = 0;
	text = fi_cq_strerror(p.b->rx_cq, err.prov_errno, err.err_data, buf, sizeof(buf));
	CHECK(text && text[0]);
	if (!run.ours)
		return;
	CHECK(buf[0] && memchr(buf, 0, sizeof(buf)));
	memset(buf, 'x', sizeof(buf));
	fi_cq_strerror(p.b->rx_cq, err.prov_errno, err.err_data, buf, 4);
	CHECK(memchr(buf, 0, 4) && buf[4] == 'x');
}

/* ---- sizes */

struct cq_size_row {
	const char *name;
	size_t size;
};

static const struct cq_size_row cq_size_rows[] = {
	{ "default", 0 }, { "1", 1 }, { "8", 8 }, { "1024", 1024 }, { "mercury_131072", 131072 },
};

/* The size is a minimum; with resource management nothing is lost when it is exceeded. */
TEST_TABLE(size_is_no_limit_to_loss, cq_size_rows, FI_MSG, RELIABLE)
{
	enum { N = 300 };
	struct pair p = pair_open(t, .cq_size = ROW(cq_size_rows)->size, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	unsigned int i, posted = 0, sent = 0;
	struct wait w = wait_begin();
	uint8_t in[N];
	void *ctx[N];

	if (!p.a->info->tx_attr->inject_size)
		ABSENT("inject_size is 0");
	/* What a full queue refuses is posted again when entries have been read. */
	for (i = 0; i < N; ) {
		while (posted < N && !try_op(p.b, RECV, .buf = &in[posted], .len = 1, .ctx = &in[posted])) {
			ctx[posted] = &in[posted];
			posted++;
		}
		while (sent < posted && !try_op(p.a, INJECT, .buf = "x", .len = 1))
			sent++;
		if (!i && (posted < N || sent < N))
			idle(t);
		if (fi_cq_read(p.b->rx_cq, &entry, 1) == 1) {
			CHECK(entry.op_context == ctx[i]);
			i++;
			continue;
		}
		wait_more(t, &w, "all messages");
	}
	CHECK_RET(fi_cq_read(p.b->rx_cq, &entry, 1), -FI_EAGAIN);
}

/* Interrupt affinity is a hint that anybody may give. */
TEST_PROV(affinity_is_a_hint, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT, .flags = FI_AFFINITY, .signaling_vector = 0 };
	struct fid_cq *cq;

	MUST(fi_cq_open(s->domain, &attr, &cq, NULL));
	MUST(fi_close(&cq->fid));
}

/* One queue for endpoints of different capabilities. */
TEST_PROV(one_queue_for_different_capabilities, FI_MSG | FI_TAGGED, RDM_ONLY)
{
	struct side *a = side_open(t, .caps = FI_MSG), *c = side_open(t);
	struct fi_info *tagged = info_find(t, hints_new(t, &(struct opts) { .caps = FI_TAGGED }), NULL, NULL, 0);
	struct side *b = side_open(t, .info = tagged, .domain_of = a, .av_of = a, .cq_of = a);
	fi_addr_t a_addr = side_insert(c, a), b_addr = side_insert(c, b);
	char in[2][4];

	post(a, RECV, .buf = in[0], .len = 4, .ctx = in[0]);
	post(c, SEND, .buf = "1111", .len = 4, .addr = &a_addr);
	CHECK(expect_rx(a).ctx == in[0]);
	post(b, TRECV, .buf = in[1], .len = 4, .tag = 7, .ctx = in[1]);
	post(c, TSEND, .buf = "2222", .len = 4, .tag = 7, .addr = &b_addr);
	CHECK(expect_rx(a).ctx == in[1]);
	expect_tx_cnt(c, 2);
	side_close_ep(b);
}

/* One queue for both directions, and for several endpoints. */
TEST_PROV(one_queue_for_all, FI_MSG)
{
	struct pair p = pair_open(t, .one_cq = true);
	char in[2][4];

	post_recv(p.b, in[0], 4);
	post_recv(p.a, in[1], 4);
	send_bytes(p.a, "1111", 4);
	send_bytes(p.b, "2222", 4);
	expect_recv(p.b, "1111", 4);
	expect_recv(p.a, "2222", 4);
	expect_tx(p.a);
	expect_tx(p.b);
}

/* Completions that are never read go with the queue. */
TEST_PROV(close_with_completions, FI_MSG)
{
	struct pair p = pair_open(t, .raw_cq = true);
	char in[2][4];

	post_recv(p.b, in[0], 4);
	send_bytes(p.a, "1111", 4);
	make_error(p.b, in[1]);
	idle(t);
}
