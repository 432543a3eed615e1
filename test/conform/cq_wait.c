/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Waiting on completion queues: wait objects, blocking reads, descriptors, poll and wait sets. fi_cq(3), fi_poll(3). */
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "ops.h"
#include "waitobj.h"

/* Old calls, which the headers advise against, have to work all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Each wait object: transfers work, a wait ends at its time, and with a completion at once. */
TEST_TABLE(sread, wait_rows, FI_MSG)
{
	struct pair p = pair_open(t, .cq_wait = ROW(wait_rows)->obj, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	double start;
	char in[4];

	if (ROW(wait_rows)->obj == FI_WAIT_NONE) {
		CHECK(fi_cq_sread(p.b->rx_cq, &entry, 1, NULL, 0) < 0);
		return;
	}
	idle(t);
	start = now_ms();
	CHECK_RET(fi_cq_sread(p.b->rx_cq, &entry, 1, NULL, 60), -FI_EAGAIN);
	check_waited(start, 60);
	start = now_ms();
	CHECK_RET(fi_cq_sread(p.b->rx_cq, &entry, 1, NULL, 0), -FI_EAGAIN);
	check_waited(start, 0);
	post_recv(p.b, in, 4);
	post(p.a, INJECT, .buf = "abcd", .len = 4);
	start = now_ms();
	CHECK_RET(fi_cq_sread(p.b->rx_cq, &entry, 1, NULL, 5000), 1);
	CHECK(entry.len == 4 && !memcmp(in, "abcd", 4));
	check_waited(start, 0);
	post_recv(p.b, in, 4);
	post(p.a, INJECT, .buf = "efgh", .len = 4);
	CHECK_RET(fi_cq_sread(p.b->rx_cq, &entry, 1, NULL, -1), 1);
}

/* The same calls with the source. */
TEST_PROV(sreadfrom, FI_MSG | FI_SOURCE, UNCONNECTED)
{
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_UNSPEC, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	fi_addr_t src = 0;
	double start = now_ms();
	char in[4];

	CHECK_RET(fi_cq_sreadfrom(p.b->rx_cq, &entry, 1, &src, NULL, 30), -FI_EAGAIN);
	check_waited(start, 30);
	post_recv(p.b, in, 4);
	post(p.a, INJECT, .buf = "abcd", .len = 4);
	CHECK_RET(fi_cq_sreadfrom(p.b->rx_cq, &entry, 1, &src, NULL, 5000), 1);
	CHECK_EQ(src, p.b->peer);
}

/* A blocking read ends with -FI_EAVAIL for an error. */
TEST_PROV(sread_of_an_error, FI_MSG)
{
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_UNSPEC, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	char in[4];
	void *ctx;

	ctx = post(p.b, RECV, .buf = in, .len = 4);
	MUST(fi_cancel(&p.b->ep->fid, ctx));
	CHECK_RET(fi_cq_sread(p.b->rx_cq, &entry, 1, NULL, 5000), -FI_EAVAIL);
	CHECK_RET(fi_cq_readerr(p.b->rx_cq, &err, 0), 1);
	CHECK(err.op_context == ctx);
}

/* A threshold is a hint: what is there is returned, at the latest when the time is up. */
TEST_PROV(sread_threshold, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC,
				   .wait_cond = FI_CQ_COND_THRESHOLD };
	struct fi_cq_entry entries[4];
	size_t threshold = 3;
	struct fid_cq *cq;
	double start;
	int ret;

	ret = fi_cq_open(s->domain, &attr, &cq, NULL);
	if (ret)
		ABSENT("no threshold: %s", fi_strerror(-ret));
	own_fid(t, &cq->fid);
	start = now_ms();
	CHECK_RET(fi_cq_sread(cq, entries, 4, &threshold, 40), -FI_EAGAIN);
	check_waited(start, 40);
}

/* What was opened is what is told. */
TEST_TABLE(getwaitobj, wait_rows, FI_MSG)
{
	struct pair p = pair_open(t, .cq_wait = ROW(wait_rows)->obj, .raw_cq = true);
	enum fi_wait_obj obj = (enum fi_wait_obj) 99;
	int ret;

	ret = fi_control(&p.a->tx_cq->fid, FI_GETWAITOBJ, &obj);
	if (ret == -FI_ENOSYS || ROW(wait_rows)->obj == FI_WAIT_NONE)
		ABSENT("%s", ret ? fi_strerror(-ret) : "nothing to wait on");
	MUST(ret);
	if (ROW(wait_rows)->obj != FI_WAIT_UNSPEC)
		CHECK_EQ(obj, ROW(wait_rows)->obj);
}

/* ---- descriptors */

static void no_entry(struct side *s)
{
	struct fi_cq_tagged_entry entry;

	CHECK_RET(fi_cq_read(s->rx_cq, &entry, 1), -FI_EAGAIN);
}

/* Wait as applications do: trywait, then poll, then read. Fails if the descriptor is silent, or cries for nothing. */
static void wait_and_read(struct side *s, int fd, struct fi_cq_tagged_entry *entry)
{
	struct wait w = wait_begin();
	unsigned int idle_wakeups = 0;
	ssize_t ret;
	int wait;

	while ((ret = fi_cq_read(s->rx_cq, entry, 1)) == -FI_EAGAIN) {
		wait = trywait(s, &s->rx_cq->fid);
		CHECK(wait == 0 || wait == -FI_EAGAIN);
		if (!wait && !fd_readable(fd, 5000))
			FAIL("a lost wake-up: nothing in 5 s");
		/* A wake-up may be for a part of a message or an acknowledgement; a hundred are not. */
		CHECK(idle_wakeups++ < 100);
		CHECK(now_ms() < w.until);
	}
	CHECK_RET(ret, 1);
}

/* With nothing to do, trywait allows to block, and the descriptor lets it: no busy loop. */
static void check_quiet(struct side *s, int fd)
{
	unsigned int i;

	/* The rest of what happened before may be on its way. */
	for (i = 0; i < 20 && (trywait(s, &s->rx_cq->fid) || fd_readable(fd, 10)); i++)
		fi_cq_read(s->rx_cq, NULL, 0);
	CHECK_RET(trywait(s, &s->rx_cq->fid), 0);
	for (i = 0; i < 3; i++)
		CHECK(!fd_readable(fd, 10));
	no_entry(s);
	CHECK_RET(trywait(s, &s->rx_cq->fid), 0);
	CHECK(!fd_readable(fd, 0));
}

/* The descriptor wakes for each message, and is silent between them. */
TEST_PROV(fd_wakes_for_each_message, FI_MSG)
{
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_FD, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	int fd = wait_fd(&p.b->rx_cq->fid);
	unsigned int i;
	char in[4];

	idle(t);
	for (i = 0; i < 50; i++) {
		note("message %u", i);
		post_recv(p.b, in, 4);
		if (i % 10 == 0)
			check_quiet(p.b, fd);
		post(p.a, INJECT, .buf = "abcd", .len = 4);
		wait_and_read(p.b, fd, &entry);
		CHECK_EQ(entry.len, 4);
	}
	check_quiet(p.b, fd);
}

/* With entries queued trywait forbids to block. */
TEST_PROV(trywait_sees_entries, FI_MSG)
{
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_FD, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	char in[2][4];

	post_recv(p.b, in[0], 4);
	post_recv(p.b, in[1], 4);
	post(p.a, INJECT, .buf = "abcd", .len = 4);
	post(p.a, INJECT, .buf = "efgh", .len = 4);
	while (fi_cq_read(p.b->rx_cq, &entry, 1) != 1)
		wait_more(t, &w, "the first message");
	idle(t);
	CHECK_RET(trywait(p.b, &p.b->rx_cq->fid), -FI_EAGAIN);
	CHECK_RET(fi_cq_read(p.b->rx_cq, &entry, 1), 1);
}

/* A program looks whether it shall stop, calls fi_trywait(), then poll(). fi_cq_signal() may come between any two of
 * them, and is not lost: either fi_trywait() does not allow the sleep, or the descriptor ends it. Each signal does so
 * once. */
TEST_PROV(trywait_does_not_lose_a_signal, FI_MSG)
{
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_FD, .raw_cq = true);
	int fd = wait_fd(&p.b->rx_cq->fid);

	idle(t);
	check_quiet(p.b, fd);
	MUST(fi_cq_signal(p.b->rx_cq));
	CHECK_RET(trywait(p.b, &p.b->rx_cq->fid), -FI_EAGAIN);
	check_quiet(p.b, fd);
	CHECK_RET(trywait(p.b, &p.b->rx_cq->fid), 0);
	MUST(fi_cq_signal(p.b->rx_cq));
	CHECK(fd_readable(fd, 5000));
	no_entry(p.b);
	check_quiet(p.b, fd);
}

/* The same with a condition: the thread that signals it leaves the signal to the program. */
TEST_PROV(condition_does_not_lose_a_signal, FI_MSG)
{
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_MUTEX_COND, .raw_cq = true);
	struct fi_mutex_cond mc;
	struct timespec until;

	MUST(fi_control(&p.b->rx_cq->fid, FI_GETWAIT, &mc));
	idle(t);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 30 * run.slow;
	pthread_mutex_lock(mc.mutex);
	MUST(fi_cq_signal(p.b->rx_cq));
	CHECK_EQ(pthread_cond_timedwait(mc.cond, mc.mutex, &until), 0);
	pthread_mutex_unlock(mc.mutex);
	CHECK_RET(trywait(p.b, &p.b->rx_cq->fid), -FI_EAGAIN);
	CHECK_RET(trywait(p.b, &p.b->rx_cq->fid), 0);
}

/* An error wakes like a message. */
TEST_PROV(fd_wakes_for_an_error, FI_MSG)
{
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_FD, .raw_cq = true);
	struct fi_cq_err_entry err = { 0 };
	int fd = wait_fd(&p.b->rx_cq->fid);
	char in[4];
	void *ctx;

	idle(t);
	check_quiet(p.b, fd);
	ctx = post(p.b, RECV, .buf = in, .len = 4);
	MUST(fi_cancel(&p.b->ep->fid, ctx));
	CHECK(trywait(p.b, &p.b->rx_cq->fid) == -FI_EAGAIN || fd_readable(fd, 5000));
	CHECK_RET(fi_cq_readerr(p.b->rx_cq, &err, 0), 1);
	check_quiet(p.b, fd);
}

/* Large messages, both directions, driven by descriptors alone. */
TEST_PROV(fd_drives_large_transfers, FI_MSG, RELIABLE)
{
	enum { LEN = 6 << 20 };
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_FD, .raw_cq = true, .one_cq = true);
	struct side *s[2] = { p.a, p.b };
	uint8_t *in[2], *out = mem_pattern(t, LEN, 3);
	struct fi_cq_tagged_entry entry;
	int ep = epoll_create1(EPOLL_CLOEXEC), done = 0, i;
	double until = now_ms() + 10000.0 * run.slow;
	struct epoll_event event;

	for (i = 0; i < 2; i++) {
		event = (struct epoll_event) { .events = EPOLLIN };
		CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, wait_fd(&s[i]->rx_cq->fid), &event));
		in[i] = mem(t, LEN);
		post_recv(s[i], in[i], LEN);
	}
	for (i = 0; i < 2; i++)
		send_bytes(s[i], out, LEN);
	while (done < 4) {
		bool block = true;

		for (i = 0; i < 2; i++) {
			while (fi_cq_read(s[i]->rx_cq, &entry, 1) == 1)
				done++;
			block &= trywait(s[i], &s[i]->rx_cq->fid) == 0;
		}
		if (done < 4 && block && epoll_wait(ep, &event, 1, 5000 * (int) run.slow) != 1)
			FAIL("a lost wake-up: nothing in 5 s with %d of 4 completions", done);
		if (now_ms() > until)
			FAIL("not done in 10 s");
	}
	close(ep);
	CHECK_MEM(in[0], out, LEN);
	CHECK_MEM(in[1], out, LEN);
}

/* FI_WAIT_POLLFD: the list of descriptors, its needed room, its change index. */
TEST_PROV(pollfd_list, FI_MSG)
{
	struct pair p = pair_open(t, .cq_wait = FI_WAIT_POLLFD, .raw_cq = true);
	struct fi_wait_pollfd list = { 0 };
	struct pollfd fds[64];
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	char in[4];
	int ret;

	ret = fi_control(&p.b->rx_cq->fid, FI_GETWAIT, &list);
	CHECK(ret == -FI_ETOOSMALL || (ret == 0 && list.nfds == 0));
	CHECK(list.nfds <= COUNT(fds));
	post_recv(p.b, in, 4);
	post(p.a, INJECT, .buf = "abcd", .len = 4);
	while (fi_cq_read(p.b->rx_cq, &entry, 1) == -FI_EAGAIN) {
		list = (struct fi_wait_pollfd) { .nfds = COUNT(fds), .fd = fds };
		MUST(fi_control(&p.b->rx_cq->fid, FI_GETWAIT, &list));
		CHECK(list.nfds >= 1 && list.nfds <= COUNT(fds));
		if (!trywait(p.b, &p.b->rx_cq->fid) && poll(fds, list.nfds, 5000 * (int) run.slow) <= 0)
			FAIL("a lost wake-up: nothing in 5 s");
		CHECK(now_ms() < w.until);
	}
}

/* ---- sets */

static struct fid_poll *poll_open(struct side *s)
{
	struct fi_poll_attr attr = { 0 };
	struct fid_poll *set;
	int ret;

	ret = fi_poll_open(s->domain, &attr, &set);
	if (ret == -FI_ENOSYS)
		ABSENT("%s has no poll sets", run.prov);
	MUST(ret);
	own_fid(s->t, &set->fid);
	return set;
}

/* A poll set names the queues that have something, by their contexts. */
TEST_PROV(poll_set, FI_MSG)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct fid_poll *set = poll_open(p.b);
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	void *ctx[4];
	char in[4];
	int ret;

	MUST(fi_poll_add(set, &p.b->rx_cq->fid, 0));
	MUST(fi_poll_add(set, &p.b->tx_cq->fid, 0));
	idle(t);
	CHECK_RET(fi_poll(set, ctx, 4), 0);
	post_recv(p.b, in, 4);
	post(p.a, INJECT, .buf = "abcd", .len = 4);
	while ((ret = fi_poll(set, ctx, 4)) == 0)
		wait_more(t, &w, "the poll set to see the message");
	CHECK(ret >= 1 && ctx[0] == p.b);
	CHECK_RET(fi_cq_read(p.b->rx_cq, &entry, 1), 1);
	MUST(fi_poll_del(set, &p.b->rx_cq->fid, 0));
	MUST(fi_poll_del(set, &p.b->tx_cq->fid, 0));
	CHECK_RET(fi_poll(set, ctx, 4), 0);
}

/* A message to @b, which is only posted: the bytes leave @a. */
static void send_and_leave(struct pair *p, char in[4])
{
	check_link(p->b, p->a);
	post_recv(p->b, in, 4);
	post(p->a, INJECT, .buf = "abcd", .len = 4);
	side_idle(p->a);
}

/* Polling a set is progress for the queues in it: nothing else is called at this side. */
TEST_PROV(poll_set_is_progress, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fid_poll *set = poll_open(p.b);
	struct wait w = wait_begin();
	void *ctx[2];
	char in[4];

	MUST(fi_poll_add(set, &p.b->rx_cq->fid, 0));
	send_and_leave(&p, in);
	while (!fi_poll(set, ctx, 2))
		CHECK(now_ms() < w.until);
	CHECK(ctx[0] == p.b);
	expect_recv(p.b, "abcd", 4);
	MUST(fi_poll_del(set, &p.b->rx_cq->fid, 0));
}

/* A poll set goes on behind the queue that it named last; when that place is gone, it begins again. */
TEST_PROV(poll_set_begins_again, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fid_poll *set = poll_open(p.b);
	struct wait w = wait_begin();
	void *ctx[1];
	char in[4];

	MUST(fi_poll_add(set, &p.b->rx_cq->fid, 0));
	MUST(fi_poll_add(set, &p.b->tx_cq->fid, 0));
	send_and_leave(&p, in);
	while (!fi_poll(set, ctx, 1))
		CHECK(now_ms() < w.until);
	MUST(fi_poll_del(set, &p.b->tx_cq->fid, 0));
	ctx[0] = NULL;
	CHECK_RET(fi_poll(set, ctx, 1), 1);
	CHECK(ctx[0] == p.b);
	expect_recv(p.b, "abcd", 4);
	MUST(fi_poll_del(set, &p.b->rx_cq->fid, 0));
}

/* Asked for none, a poll set makes progress and names nobody; what a counter has counted is told when there is room. */
TEST_PROV(poll_of_none_keeps_the_news, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fid_poll *set = poll_open(s);
	struct fid_cntr *cntr;
	void *ctx[2];

	if (!run.ours)
		ABSENT("upstream tells of counters always");
	MUST(fi_cntr_open(s->domain, NULL, &cntr, s));
	own_fid(t, &cntr->fid);
	MUST(fi_poll_add(set, &cntr->fid, 0));
	MUST(fi_cntr_add(cntr, 3));
	CHECK_RET(fi_poll(set, NULL, 0), 0);
	CHECK_RET(fi_poll(set, ctx, 2), 1);
	CHECK(ctx[0] == s);
	CHECK_RET(fi_poll(set, ctx, 2), 0);
	MUST(fi_poll_del(set, &cntr->fid, 0));
}

/* A queue in a poll set is busy. */
TEST_PROV(poll_set_keeps_queue, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fid_poll *set = poll_open(s);
	struct fid_cq *cq;

	MUST(fi_cq_open(s->domain, &attr, &cq, NULL));
	MUST(fi_poll_add(set, &cq->fid, 0));
	CHECK_RET(fi_close(&cq->fid), -FI_EBUSY);
	MUST(fi_poll_del(set, &cq->fid, 0));
	MUST(fi_close(&cq->fid));
}

/* One wait set for two queues: waits its time, makes progress, and wakes for either. */
TEST_PROV(wait_set, FI_MSG, UNCONNECTED)
{
	struct side *b = domain_side(t), *a = side_open(t);
	struct fi_wait_attr wait_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_SET };
	struct fi_cq_tagged_entry entry;
	struct fid_wait *set;
	struct wait w = wait_begin();
	double start;
	char in[4] = "";
	int ret;

	ret = fi_wait_open(b->fabric, &wait_attr, &set);
	if (ret == -FI_ENOSYS)
		ABSENT("%s has no wait sets", run.prov);
	MUST(ret);
	own_fid(t, &set->fid);
	attr.wait_set = set;
	MUST(fi_cq_open(b->domain, &attr, &b->tx_cq, b));
	own_fid(t, &b->tx_cq->fid);
	MUST(fi_cq_open(b->domain, &attr, &b->rx_cq, b));
	own_fid(t, &b->rx_cq->fid);
	b->o.raw_cq = true;
	side_open_av(b);
	side_open_ep(b);
	side_bind(b);
	side_enable(b);
	a->peer = side_insert(a, b);
	if (run.ours)		/* upstream crashes */
		CHECK_RET(fi_close(&set->fid), -FI_EBUSY);
	start = now_ms();
	CHECK_RET(fi_wait(set, 40), -FI_ETIMEDOUT);
	check_waited(start, 40);
	post_recv(b, in, 4);
	post(a, INJECT, .buf = "abcd", .len = 4);
	/* With a prefix the bytes get here when the queue is read. */
	while (!(run.mode & FI_MSG_PREFIX) && memcmp(in, "abcd", 4)) {
		ret = fi_wait(set, 100);
		CHECK(ret == 0 || ret == -FI_ETIMEDOUT);
		CHECK(now_ms() < w.until);
		side_progress(a);
	}
	while (fi_cq_read(b->rx_cq, &entry, 1) == -FI_EAGAIN) {
		ret = fi_wait(set, 100);
		CHECK(ret == 0 || ret == -FI_ETIMEDOUT);
		wait_more(t, &w, "the message");
	}
	CHECK(fi_cq_sread(b->rx_cq, &entry, 1, NULL, 0) < 0);
}
