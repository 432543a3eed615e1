/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_PROGRESS_AUTO: what happens while the application calls nothing. Source: fi_domain(3). */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

static void set_auto(struct fi_info *hints)
{
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
}

/* A pair with automatic progress, linked. */
static struct pair auto_pair(struct test *t)
{
	struct pair p;

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = set_auto }), NULL, NULL, 0))
		ABSENT("%s has no automatic progress", run.prov);
	p = pair_open(t, .hints = set_auto);
	check_link(p.a, p.b);
	return p;
}

/* Wait for a byte that others write, without calling anything. */
static void watch(const volatile uint8_t *at, uint8_t want, const char *what)
{
	double until = now_ms() + 30000.0 * run.slow;

	while (*at != want) {
		if (now_ms() > until)
			FAIL("waited 30 s for %s", what);
	}
}

/* A message reaches its buffer while neither side calls anything. */
TEST_PROV(message_arrives_by_itself, FI_MSG, RELIABLE)
{
	enum { LEN = 4 << 20 };
	struct pair p = auto_pair(t);
	uint8_t *in = mem(t, LEN), *out = mem(t, LEN);

	memset(out, 7, LEN);
	post_recv(p.b, in, LEN);
	send_bytes(p.a, out, LEN);
	watch(&in[LEN - 1], 7, "the last byte of the message");
	expect_recv(p.b, out, LEN);
	expect_tx(p.a);
}

/* So does a write; and a read is served by a target that does nothing. */
TEST_PROV(target_serves_by_itself, FI_MSG | FI_RMA)
{
	enum { LEN = 4 << 20 };
	struct pair p = auto_pair(t);
	struct region r = region_open(p.b, NULL, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint8_t *buf = mem(t, LEN);
	struct wait w = wait_begin();

	memset(buf, 7, LEN);
	post(p.a, WRITE, .buf = buf, .len = LEN, .raddr = r.addr, .key = r.key);
	watch(&r.buf[LEN - 1], 7, "the last byte of the write");
	memset(buf, 0, LEN);
	post(p.a, READ, .buf = buf, .len = LEN, .raddr = r.addr, .key = r.key);
	while (tx_waiting(p.a) < 2) {
		side_progress(p.a);
		CHECK(now_ms() < w.until);
	}
	expect_tx_cnt(p.a, 2);
	CHECK_MEM(buf, r.buf, LEN);
}

/* Send the first message from one side to the other, which has posted a receive and does nothing from then on. */
static void send_first(struct side *from, struct side *to, uint8_t in[4], const struct wait *w)
{
	from->peer = side_insert(from, to);
	post_recv(to, in, 4);
	while (try_op(from, SEND, .buf = "\1\2\3\4", .len = 4) == -FI_EAGAIN)
		CHECK(now_ms() < w->until);
}

/* Even the first message, for which a connection is made. */
TEST_PROV(first_contact_by_itself, FI_MSG, RDM_ONLY)
{
	struct side *a, *b;
	uint8_t in[4] = { 0 };
	struct wait w = wait_begin();

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = set_auto }), NULL, NULL, 0))
		ABSENT("%s has no automatic progress", run.prov);
	a = side_open(t, .hints = set_auto);
	b = side_open(t, .hints = set_auto);
	send_first(a, b, in, &w);
	watch(&in[3], 4, "the message of a first contact");
	expect_recv(b, "\1\2\3\4", 4);
}

static void set_control(struct fi_info *hints)
{
	hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
}

/* With automatic progress of control alone the first message makes its connection, though the target does nothing. */
TEST_PROV(first_contact_with_control_alone, FI_MSG, RDM_ONLY)
{
	struct side *a, *b;
	uint8_t in[4] = { 0 };
	struct wait w = wait_begin();

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = set_control }), NULL, NULL, 0))
		ABSENT("%s has no automatic progress of control", run.prov);
	a = side_open(t);
	b = side_open(t, .hints = set_control);
	send_first(a, b, in, &w);
	while (tx_waiting(a) < 1) {
		side_progress(a);
		CHECK(now_ms() < w.until);
	}
	expect_tx_cnt(a, 1);
	expect_recv(b, "\1\2\3\4", 4);
}

/* So does a connection: the side that asks for it does nothing after fi_connect(). */
TEST_PROV(connection_with_control_alone, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t), *a, *b;
	struct opts o = { .hints = set_control };
	struct wait w = wait_begin();

	if (!info_find(t, hints_new(t, &o), NULL, NULL, 0))
		ABSENT("%s has no automatic progress of control", run.prov);
	a = connector_open(t, l, &o);
	MUST(fi_connect(a->ep, l->name, NULL, 0));
	for (; !l->event_cnt; side_progress(l))
		CHECK(now_ms() < w.until);
	b = acceptor_open(l, expect_event(l, FI_CONNREQ).info, &(struct opts) { 0 });
	MUST(fi_accept(b->ep, NULL, 0));
	for (; !b->event_cnt; side_progress(b))
		CHECK(now_ms() < w.until);
	expect_event(b, FI_CONNECTED);
	expect_event(a, FI_CONNECTED);
	check_link(a, b);
}

/* ---- threads */

/* Of the threads of this process: how many are the library's, which are named fi-, and how many of those take
 * signals. */
static unsigned int fi_threads(unsigned int *take_signals)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned long long blocked = 0;
	char path[300], line[256];
	struct dirent *entry;
	unsigned int cnt = 0;
	bool ours;
	FILE *f;

	*take_signals = 0;
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		for (ours = false; fgets(line, sizeof(line), f);) {
			ours |= !strncmp(line, "Name:\tfi-", 9);
			sscanf(line, "SigBlk: %llx", &blocked);
		}
		fclose(f);
		cnt += ours;
		*take_signals += ours && !(blocked & 1ULL << (SIGINT - 1));
	}
	if (dir)
		closedir(dir);
	return cnt;
}

static void set_manual(struct fi_info *hints)
{
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
}

/* With manual progress the library has no thread; with automatic progress those that it has are named and leave
 * signals to the program, and FI_TCP_DISABLE_AUTO_PROGRESS takes them away. */
TEST_PROV(threads_only_where_asked_for, FI_MSG, RELIABLE)
{
	const char *off = getenv("FI_TCP_DISABLE_AUTO_PROGRESS");
	unsigned int before, cnt, take_signals;
	struct pair p;

	if (!run.ours)
		ABSENT("a rule for this library");
	before = fi_threads(&take_signals);
	p = pair_open(t, .hints = set_manual);
	check_link(p.a, p.b);
	CHECK_EQ(fi_threads(&take_signals), before);
	if (off && atoi(off)) {
		p = pair_open(t, .hints = set_auto);
		check_link(p.a, p.b);
		CHECK_EQ(fi_threads(&take_signals), before);
		return;
	}
	p = auto_pair(t);
	cnt = fi_threads(&take_signals);
	CHECK(cnt > before);
	CHECK_EQ(take_signals, 0);
}
