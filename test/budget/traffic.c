/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The patterns, and the two that test/budget/syscalls counts by strace. */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>

#define READ_MAX 16

#define TAG 7
#define WINDOW_MAX 64
#define LEN_MAX (1 << 20)

static uint8_t out[LEN_MAX], in[LEN_MAX];
static struct region target;

void traffic_manual(struct fi_info *hints)
{
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
}

struct pair traffic_pair_opts(struct test *t, const struct opts *o)
{
	struct opts mine = *o;
	struct pair p;

	if (!mine.hints)
		mine.hints = traffic_manual;
	p = pair_open_opts(t, &mine);
	check_link(p.a, p.b);
	check_link(p.b, p.a);
	p.a->o.raw_cq = p.b->o.raw_cq = true;
	if (p.b->info->caps & FI_RMA)
		target = region_open(p.b, NULL, LEN_MAX, FI_REMOTE_READ | FI_REMOTE_WRITE);
	return p;
}

bool traffic_over_socket(void)
{
	const char *local = getenv("FI_TCP_LOCAL");

	return local && !strcmp(local, "0");
}

size_t traffic_cnt(size_t otherwise)
{
	const char *text = getenv("BUDGET_CNT");

	return text && atol(text) > 0 ? (size_t) atol(text) : otherwise;
}

ssize_t traffic_start(struct side *s, enum kind kind, size_t len)
{
	switch (kind) {
	case TAGGED:
		return fi_tsend(s->ep, out, len, NULL, s->peer, TAG, NULL);
	case INJECTED:
		return fi_inject(s->ep, out, len, s->peer);
	case WRITES:
		return fi_write(s->ep, out, len, NULL, s->peer, target.addr, target.key, NULL);
	case DATA_WRITES:
		return fi_writedata(s->ep, out, len, NULL, 1, s->peer, target.addr, target.key, NULL);
	case DATA_INJECTED:
		return fi_inject_writedata(s->ep, out, len, 1, s->peer, target.addr, target.key);
	case READS:
		return fi_read(s->ep, in, len, NULL, s->peer, target.addr, target.key, NULL);
	case ATOMICS:
		return fi_atomic(s->ep, out, len / 8, NULL, s->peer, target.addr, target.key, FI_UINT64, FI_SUM, NULL);
	case FETCHES:
		return fi_fetch_atomic(s->ep, out, len / 8, NULL, in, NULL, s->peer, target.addr, target.key, FI_UINT64,
				       FI_SUM, NULL);
	default:
		return fi_send(s->ep, out, len, NULL, s->peer, NULL);
	}
}

static void recv_one(struct side *s, enum kind kind, size_t len)
{
	if (kind == TAGGED)
		MUST(fi_trecv(s->ep, in, len, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL));
	else
		MUST(fi_recv(s->ep, in, len, NULL, FI_ADDR_UNSPEC, NULL));
}

size_t traffic_read_cnt = READ_MAX;

/* Read one side's queue once: count what was sent and received. */
static void read_queue(struct side *s, size_t *sent, size_t *received)
{
	struct fi_cq_tagged_entry entry[READ_MAX];
	ssize_t ret = fi_cq_read(s->tx_cq, entry, traffic_read_cnt), i;

	if (ret == -FI_EAGAIN)
		return;
	CHECK(ret > 0);
	for (i = 0; i < ret; i++) {
		if (entry[i].flags & (FI_RECV | FI_REMOTE_WRITE))
			++*received;
		else
			++*sent;
	}
}

/* One message from @from to @to, until it is received and, if it has one, its own completion is read. */
static void one_way(struct side *from, struct side *to, enum kind kind, size_t len)
{
	size_t sent = kind == INJECTED || kind == DATA_INJECTED, received = 0, none = 0;
	ssize_t ret;

	if (kind != UNEXPECTED && kind < WRITES)
		recv_one(to, kind, len);
	while ((ret = traffic_start(from, kind, len)) == -FI_EAGAIN)
		read_queue(from, &sent, &none);
	MUST(ret);
	if (kind == UNEXPECTED) {
		read_queue(to, &none, &received);
		recv_one(to, kind, len);
	}
	while (!received) {
		read_queue(to, &none, &received);
		if (!received && !sent)
			read_queue(from, &sent, &none);
	}
	while (!sent)
		read_queue(from, &sent, &none);
}

void ping_pong(struct pair *p, enum kind kind, size_t len, size_t cnt)
{
	while (cnt--) {
		one_way(p->a, p->b, kind, len);
		one_way(p->b, p->a, kind, len);
	}
}

void stream(struct pair *p, enum kind kind, size_t len, size_t window, size_t cnt)
{
	bool receives = kind < WRITES;
	size_t posted = 0, started = 0, sent = 0, received = 0, none = 0;

	while (sent < cnt || (receives && received < cnt)) {
		for (; receives && posted < cnt && posted < received + 2 * window; posted++)
			recv_one(p->b, kind, len);
		for (; started < cnt && started < sent + window && (!receives || started < posted); started++) {
			if (traffic_start(p->a, kind, len))
				break;
			sent += kind == INJECTED;
		}
		read_queue(p->a, &sent, &none);
		read_queue(p->b, &none, &received);
	}
}

void bursts(struct pair *p, enum kind kind, size_t len, size_t window, size_t cnt)
{
	for (; cnt >= window; cnt -= window) {
		size_t sent = 0, received = 0, none = 0;

		for (size_t i = 0; kind < WRITES && i < window; i++)
			recv_one(p->b, kind, len);
		for (size_t i = 0; i < window; i++)
			MUST(traffic_start(p->a, kind, len));
		while (sent < window || (kind < WRITES && received < window)) {
			read_queue(p->a, &sent, &none);
			read_queue(p->b, &none, &received);
		}
	}
}

/* ---- run under strace by test/budget/syscalls: 8 bytes (where nothing else is said), one by one, or with 64 under
 * way */

TEST_PROV(ping_pong_tagged, FI_MSG | FI_TAGGED)
{
	struct pair p = traffic_pair(t);

	ping_pong(&p, TAGGED, 8, traffic_cnt(100) / 2);
}

/* The message for which an RDM endpoint connects. Two system calls that fail mark it, for those who trace this. */
TEST_PROV(first_message, FI_MSG | FI_TAGGED)
{
	struct pair p = pair_open(t, .hints = traffic_manual, .one_cq = true);

	fi_cq_read(p.a->tx_cq, NULL, 0);
	fi_cq_read(p.b->tx_cq, NULL, 0);
	CHECK_EQ(write(-1, "begin", 5), -1);
	stream(&p, TAGGED, 8, 1, 1);
	CHECK_EQ(write(-1, "end", 3), -1);
}

TEST_PROV(stream_tagged, FI_MSG | FI_TAGGED)
{
	struct pair p = traffic_pair(t);

	stream(&p, TAGGED, 8, WINDOW_MAX, traffic_cnt(1000));
}

TEST_PROV(ping_pong_plain, FI_MSG)
{
	struct pair p = traffic_pair(t);

	ping_pong(&p, PLAIN, 8, traffic_cnt(100) / 2);
}

/* A completion level that nobody can observe costs no answer. */
TEST_PROV(ping_pong_inject_delivery, FI_MSG)
{
	struct pair p = traffic_pair(t, .tx_op_flags = FI_DELIVERY_COMPLETE);

	ping_pong(&p, INJECTED, 8, traffic_cnt(100) / 2);
}

TEST_PROV(stream_plain, FI_MSG)
{
	struct pair p = traffic_pair(t);

	stream(&p, PLAIN, 8, WINDOW_MAX, traffic_cnt(1000));
}

/* Writes one at a time, which the target is told of: one frame each, and no answer. */
static void writes(struct test *t, enum kind kind, uint64_t level)
{
	struct pair p = traffic_pair(t, .tx_op_flags = level);

	for (size_t cnt = traffic_cnt(100); cnt--; )
		one_way(p.a, p.b, kind, 8);
}

TEST_PROV(write_data_plain, FI_MSG | FI_RMA)
{
	writes(t, DATA_WRITES, 0);
}

TEST_PROV(write_data_inject, FI_MSG | FI_RMA)
{
	writes(t, DATA_INJECTED, FI_DELIVERY_COMPLETE);
}

/* Here there is an answer. */
TEST_PROV(write_data_delivery, FI_MSG | FI_RMA)
{
	writes(t, DATA_WRITES, FI_DELIVERY_COMPLETE);
}

/* Long, but not announced: credits ride with messages. */
TEST_PROV(ping_pong_64k, FI_MSG)
{
	struct pair p = traffic_pair(t);

	ping_pong(&p, PLAIN, 64 << 10, traffic_cnt(100) / 2);
}

/* Up to some KiB messages share a call, too: 1 KiB and 4 KiB. */
TEST_PROV(stream_1k, FI_MSG)
{
	struct pair p = traffic_pair(t);

	stream(&p, PLAIN, 1024, WINDOW_MAX, traffic_cnt(1000));
}

TEST_PROV(stream_4k, FI_MSG)
{
	struct pair p = traffic_pair(t);

	stream(&p, PLAIN, 4096, WINDOW_MAX, traffic_cnt(1000));
}

/* Long, and more at once than there is credit for: what is announced then shares calls, too. */
TEST_PROV(burst_64k, FI_MSG)
{
	struct pair p = traffic_pair(t);

	bursts(&p, PLAIN, 64 << 10, 16, traffic_cnt(64));
}

/* Long messages are announced; announcements and go-aheads of several share calls. */
TEST_PROV(stream_1m, FI_MSG | FI_TAGGED)
{
	struct pair p = traffic_pair(t);

	stream(&p, TAGGED, 1 << 20, 16, traffic_cnt(64));
}

/* Requests to read are short, whatever they are for. */
TEST_PROV(burst_reads_64k, FI_MSG | FI_RMA)
{
	struct pair p = traffic_pair(t);

	bursts(&p, READS, 64 << 10, 16, traffic_cnt(64));
}

/* Writes one behind the other share acknowledgements, also those that are read one by one. */
TEST_PROV(burst_writes_32k, FI_MSG | FI_RMA)
{
	struct pair p = traffic_pair(t);

	bursts(&p, WRITES, 32 << 10, 16, traffic_cnt(64));
}
