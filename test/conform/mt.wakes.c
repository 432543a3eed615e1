/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A thread waits, for completions, counts, events or a descriptor, and what another thread does wakes it. Source:
 * fi_cq(3), fi_cntr(3), fi_eq(3), fi_poll(3).
 */
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>

#include "mt_worker.h"
#include "waitobj.h"

/* Blocks in fi_cq_sread() for each of N messages. */
static void *sleeper(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry entry;
	ssize_t ret;
	size_t cnt = *(size_t *) w->arg;

	while (w->done < cnt && !w->wrong[0]) {
		ret = fi_cq_sread(w->s->rx_cq, &entry, 1, NULL, 30000 * (int) run.slow);
		if (ret != 1)
			WRONG(w, "fi_cq_sread: %zd after %zu messages", ret, w->done);
		else
			w->done++;
	}
	return NULL;
}

/* A thread asleep in fi_cq_sread() is woken by each message that another thread's endpoint sends. */
TEST_TABLE(sread_wakes, wait_rows, FI_MSG, RELIABLE)
{
	struct pair p;
	struct worker w;
	size_t cnt = 100, i;
	uint8_t in[100];

	if (ROW(wait_rows)->obj == FI_WAIT_NONE)
		ABSENT("nothing to wait on");
	p = safe_pair(t, ROW(wait_rows)->obj);
	for (i = 0; i < cnt; i++)
		post_recv(p.b, &in[i], 1);
	p.b->o.raw_cq = true;
	w = (struct worker) { .t = t, .s = p.b, .fn = sleeper, .arg = &cnt };
	worker_start(&w);
	for (i = 0; i < cnt; i++) {
		post(p.a, SEND, .buf = "x", .len = 1);
		if (i % 10 == 0)
			sched_yield();
		expect_tx(p.a);
	}
	worker_finish(&w);
	CHECK_EQ(w.done, cnt);
}

/* Two threads in blocking reads play ping-pong: a lost wake-up would stop them. */
static void *pong(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry entry;
	struct side *s = w->s;
	ssize_t ret;
	char in, out = 'p';

	while (w->done < 200 && !w->wrong[0]) {
		if (fi_recv(s->ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL))
			WRONG(w, "fi_recv");
		if (w->id == 0 || w->done)
			while ((ret = fi_inject(s->ep, &out, 1, s->peer)) == -FI_EAGAIN)
				fi_cq_read(s->tx_cq, NULL, 0);
		ret = fi_cq_sread(s->rx_cq, &entry, 1, NULL, 30000 * (int) run.slow);
		if (ret != 1)
			WRONG(w, "fi_cq_sread: %zd after %zu rounds", ret, w->done);
		w->done++;
	}
	/* The one that answers owes the last answer. */
	if (w->id == 1 && !w->wrong[0])
		while (fi_inject(s->ep, &out, 1, s->peer) == -FI_EAGAIN)
			fi_cq_read(s->tx_cq, NULL, 0);
	return NULL;
}

/* Two threads that sleep in blocking reads wake each other. */
TEST_PROV(ping_pong_of_sleepers, FI_MSG, RELIABLE)
{
	struct pair p = safe_pair(t, FI_WAIT_UNSPEC);
	struct worker w[2] = { { .t = t, .s = p.a, .id = 0, .fn = pong }, { .t = t, .s = p.b, .id = 1, .fn = pong } };

	worker_start(&w[0]);
	worker_start(&w[1]);
	worker_finish(&w[0]);
	worker_finish(&w[1]);
}

/* fi_cq_signal() ends a blocking read without a completion. */
static void *wait_for_signal(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry entry;
	double since = now_ms();
	ssize_t ret;

	ret = fi_cq_sread(w->s->rx_cq, &entry, 1, NULL, -1);
	if (ret != -FI_EAGAIN)
		WRONG(w, "fi_cq_sread: %zd", ret);
	if (worker_late(since))
		WRONG(w, "woken late");
	atomic_store((_Atomic bool *) w->arg, true);
	return NULL;
}

static const struct wait_row signal_rows[] = {
	{ "unspec", FI_WAIT_UNSPEC }, { "fd", FI_WAIT_FD }, { "mutex_cond", FI_WAIT_MUTEX_COND },
	{ "yield", FI_WAIT_YIELD },
};

/* fi_cq_signal(), fi_eq_write() and the like wake a thread that waits for the object. */
TEST_TABLE(signal_wakes, signal_rows, FI_MSG, RELIABLE)
{
	struct pair p = safe_pair(t, ROW(signal_rows)->obj);
	unsigned int i;
	int ret;

	p.b->o.raw_cq = true;
	ret = fi_cq_signal(p.b->rx_cq);
	if (ret == -FI_ENOSYS)
		ABSENT("no fi_cq_signal()");
	for (i = 0; i < 10; i++) {
		_Atomic bool woken = false;
		struct worker w = { .t = t, .s = p.b, .fn = wait_for_signal, .arg = &woken };

		worker_start(&w);
		/* It may not be asleep yet: fi_cq(3) promises to wake who waits. */
		while (!atomic_load(&woken)) {
			side_idle(p.a);
			ret |= fi_cq_signal(p.b->rx_cq);
		}
		worker_finish(&w);
		MUST(ret);
	}
}

/* A counter that another thread adds to, and one that counts messages. */
static void *wait_for_counter(void *arg)
{
	struct worker *w = arg;
	int ret = fi_cntr_wait(w->arg, 100, 30000 * (int) run.slow);

	if (ret)
		WRONG(w, "fi_cntr_wait: %d (%s)", ret, fi_strerror(-ret));
	return NULL;
}

/* A count wakes a thread in fi_cntr_wait(). */
TEST_PROV(counter_wakes, FI_MSG)
{
	struct side *s = domain_side(t, .hints = set_safe);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct worker w = { .t = t, .s = s, .fn = wait_for_counter };
	struct fid_cntr *cntr;
	unsigned int i;

	MUST(fi_cntr_open(s->domain, &attr, &cntr, NULL));
	own_fid(t, &cntr->fid);
	w.arg = cntr;
	worker_start(&w);
	for (i = 0; i < 100; i++)
		MUST(fi_cntr_add(cntr, 1));
	worker_finish(&w);
}

/* An event queue that another thread writes to. */
static void *wait_for_events(void *arg)
{
	struct worker *w = arg;
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	while (w->done < 100 && !w->wrong[0]) {
		ret = fi_eq_sread(w->arg, &event, &entry, sizeof(entry), 30000 * (int) run.slow, 0);
		if (ret != sizeof(entry))
			WRONG(w, "fi_eq_sread: %zd", ret);
		else if (entry.data != w->done)
			WRONG(w, "event %llu instead of %zu", (unsigned long long) entry.data, w->done);
		w->done++;
	}
	return NULL;
}

/* An event wakes a thread in fi_eq_sread(). */
TEST_PROV(event_queue_wakes, FI_MSG)
{
	struct side *s = domain_side(t, .hints = set_safe);
	struct fi_eq_attr attr = { .flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC };
	struct worker w = { .t = t, .s = s, .fn = wait_for_events };
	struct fi_eq_entry entry = { 0 };
	struct fid_eq *eq;

	MUST(fi_eq_open(s->fabric, &attr, &eq, NULL));
	own_fid(t, &eq->fid);
	w.arg = eq;
	worker_start(&w);
	for (entry.data = 0; entry.data < 100; entry.data++)
		CHECK_RET(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	worker_finish(&w);
}

/* A descriptor polled by a thread, while another one posts. */
static void *poller(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry entry;
	struct pollfd pfd = { .events = POLLIN };
	struct side *s = w->s;
	struct fid *fid = &s->rx_cq->fid;
	ssize_t ret;

	if (fi_control(fid, FI_GETWAIT, &pfd.fd))
		WRONG(w, "FI_GETWAIT");
	while (w->done < 100 && !w->wrong[0]) {
		ret = fi_cq_read(s->rx_cq, &entry, 1);
		if (ret == 1)
			w->done++;
		else if (ret != -FI_EAGAIN)
			WRONG(w, "fi_cq_read: %zd", ret);
		else if (!fi_trywait(s->fabric, &fid, 1) && poll(&pfd, 1, 30000 * (int) run.slow) != 1)
			WRONG(w, "a lost wake-up after %zu messages", w->done);
	}
	return NULL;
}

/* A completion wakes a thread that polls the descriptor of the queue. */
TEST_PROV(poll_wakes, FI_MSG, RELIABLE)
{
	struct pair p = safe_pair(t, FI_WAIT_FD);
	struct worker w = { .t = t, .s = p.b, .fn = poller };
	uint8_t in[100];
	unsigned int i;

	for (i = 0; i < 100; i++)
		post_recv(p.b, &in[i], 1);
	p.b->o.raw_cq = true;
	worker_start(&w);
	for (i = 0; i < 100; i++) {
		post(p.a, SEND, .buf = "x", .len = 1);
		expect_tx(p.a);
	}
	worker_finish(&w);
}
