/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait objects seen by one thread: when a descriptor is readable and when not, fi_trywait, wait sets, poll sets, what
 * FI_GETWAIT gives, and what happens when a descriptor cannot be had. With threads: threads.c.
 */
#include "net.h"
#include "common/queue/queue.h"

/* Wait sets and poll sets: programs that use them must still be served. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int getwait_fd(struct fid *fid)
{
	int fd = -1;

	assert_int_equal(fi_control(fid, FI_GETWAIT, &fd), 0);
	assert_true(fd >= 0);
	return fd;
}

static int trywait(struct fid *fid)
{
	return fab_trywait(&net.fabric.fabric_fid, &fid, 1);
}

/* ---- the descriptor ---- */

/* Readable if and only if a read would find or do something: through every way in which that can change. */
static void check_cq_fd(enum fi_wait_obj obj)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = obj });
	struct feed feed = { .cq = cq };
	struct fid *fid = &cq->cq_fid.fid;
	struct fi_cq_entry entry;
	int fd;

	feed_open(&feed, cq->wait.engine);
	fd = getwait_fd(fid);
	assert_false(readable(fd));
	assert_int_equal(trywait(fid), 0);
	assert_false(readable(fd));

	/* an entry queued by somebody else's call */
	net_comp(cq, 1);
	assert_true(readable(fd));
	assert_int_equal(trywait(fid), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), 1);
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), -FI_EAGAIN);
	assert_false(readable(fd));

	/* data for the engine: reading would do something */
	feed_write(&feed);
	assert_true(readable(fd));
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), 1);
	assert_false(readable(fd));

	/* data that trywait found */
	feed_write(&feed);
	assert_int_equal(trywait(fid), -FI_EAGAIN);
	assert_true(readable(fd));
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), 1);
	assert_int_equal(trywait(fid), 0);
	assert_false(readable(fd));

	/* an error */
	net_comp_err(cq, 1, (struct fab_cq_fail) { .err = FI_EIO });
	assert_true(readable(fd));
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &(struct fi_cq_err_entry) { 0 }, 0), 1);
	assert_int_equal(trywait(fid), 0);
	assert_false(readable(fd));

	/* fi_cq_signal */
	assert_int_equal(fi_cq_signal(&cq->cq_fid), 0);
	assert_true(readable(fd));
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), -FI_EAGAIN);
	assert_false(readable(fd));
	feed_close(&feed);
	net_shut(fid);
}

static void cq_fd_is_readable_iff_a_read_would_find_something(void **state)
{
	(void) state;
	check_cq_fd(FI_WAIT_FD);
	check_cq_fd(FI_WAIT_UNSPEC);
}

/* What was queued before anybody asked for the descriptor counts, too. */
static void fd_given_late_is_readable_at_once(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_FD });

	(void) state;
	net_comp(cq, 1);
	assert_true(readable(getwait_fd(&cq->cq_fid.fid)));
	net_shut(&cq->cq_fid.fid);
}

/* An entry that is read in the call that found it, and one that nobody can be asleep for, write nothing. */
static void signals_cost_nothing_where_nobody_sleeps(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_FD });
	struct feed feed = { .cq = cq };
	struct fi_cq_entry entry;

	(void) state;
	feed_open(&feed, cq->wait.engine);
	spy_reset();
	net_comp(cq, 1);
	assert_int_equal(spy.write, 0);
	fi_cq_read(&cq->cq_fid, &entry, 1);
	getwait_fd(&cq->cq_fid.fid);
	spy_reset();
	for (int i = 0; i < 10; i++) {
		feed_write(&feed);
		assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), 1);
	}
	assert_int_equal(spy.write, 0);
	assert_int_equal(spy.read, 0);
	feed_close(&feed);
	net_shut(&cq->cq_fid.fid);
}

static void burst_writes_the_descriptor_once(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_FD });

	(void) state;
	getwait_fd(&cq->cq_fid.fid);
	spy_reset();
	for (int i = 0; i < 10; i++)
		net_comp(cq, 1);
	assert_int_equal(spy.write, 1);
	net_shut(&cq->cq_fid.fid);
}

static void flush_later(struct fab_flush *flush)
{
	(void) flush;
}

/* What is queued to leave after the application went to sleep on the descriptor makes it readable: a read would send
 * it. */
static void fd_becomes_readable_for_a_flush(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_FD });
	int fd = getwait_fd(&cq->cq_fid.fid);
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	struct fi_cq_entry entry;
	struct fab_flush flush;

	(void) state;
	fab_flush_init(&flush, flush_later);
	assert_int_equal(trywait(&cq->cq_fid.fid), 0);
	fab_engine_lock(cq->wait.engine);
	fab_engine_flush_later(cq->wait.engine, &flush);
	fab_engine_unlock(cq->wait.engine);
	assert_int_equal(poll(&pollfd, 1, 10000), 1);
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), -FI_EAGAIN);
	assert_false(readable(fd));
	net_shut(&cq->cq_fid.fid);
}

static void timer_fired(struct fab_timer *timer)
{
	(void) timer;
}

static void fd_becomes_readable_for_a_timer(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_FD });
	int fd = getwait_fd(&cq->cq_fid.fid);
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	struct fi_cq_entry entry;
	struct fab_timer timer;

	(void) state;
	fab_timer_init(&timer, timer_fired);
	fab_engine_lock(cq->wait.engine);
	fab_timer_start(cq->wait.engine, &timer, fab_now_ns() + 20000000);
	fab_engine_unlock(cq->wait.engine);
	assert_int_equal(trywait(&cq->cq_fid.fid), 0);
	assert_false(readable(fd));
	assert_int_equal(poll(&pollfd, 1, 10000), 1);
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), -FI_EAGAIN);
	assert_true(fab_list_empty(&timer.link));
	assert_false(readable(fd));
	net_shut(&cq->cq_fid.fid);
}

static void pollfd_is_a_list_of_one_that_does_not_change(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_POLLFD });
	struct pollfd fds[2] = { { .fd = -1 } };
	struct fi_wait_pollfd pollfd = { .nfds = 0 };
	uint64_t index;

	(void) state;
	assert_int_equal(fi_control(&cq->cq_fid.fid, FI_GETWAIT, &pollfd), -FI_ETOOSMALL);
	assert_int_equal(pollfd.nfds, 1);
	index = pollfd.change_index;
	pollfd.nfds = 2;
	pollfd.fd = fds;
	assert_int_equal(fi_control(&cq->cq_fid.fid, FI_GETWAIT, &pollfd), 0);
	assert_int_equal(pollfd.nfds, 1);
	assert_int_equal(pollfd.change_index, index);
	assert_int_equal(fds[0].events, POLLIN);
	assert_int_equal(poll(fds, 1, 0), 0);
	net_comp(cq, 1);
	assert_int_equal(poll(fds, 1, 0), 1);
	net_shut(&cq->cq_fid.fid);
}

static void getwait_fits_the_object(void **state)
{
	static const struct {
		enum fi_wait_obj asked, told;
		int ret;
	} cases[] = {
		{ FI_WAIT_NONE, FI_WAIT_NONE, -FI_ENODATA }, { FI_WAIT_YIELD, FI_WAIT_YIELD, -FI_ENODATA },
		{ FI_WAIT_UNSPEC, FI_WAIT_FD, 0 }, { FI_WAIT_FD, FI_WAIT_FD, 0 },
	};

	(void) state;
	for (size_t i = 0; i < fab_countof(cases); i++) {
		struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = cases[i].asked });
		enum fi_wait_obj obj = 99;
		int fd = -1;

		assert_int_equal(fi_control(&cq->cq_fid.fid, FI_GETWAITOBJ, &obj), 0);
		assert_int_equal(obj, cases[i].told);
		assert_int_equal(fi_control(&cq->cq_fid.fid, FI_GETWAIT, &fd), cases[i].ret);
		assert_int_equal(fi_control(&cq->cq_fid.fid, FI_GETWAIT, NULL), -FI_EINVAL);
		net_shut(&cq->cq_fid.fid);
	}
}

/* The epoll set of FI_WAIT_UNSPEC is made when asked for; without descriptors that fails, and works later. */
static void getwait_fails_cleanly(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	int fds = spy_open_fds();
	int fd;

	(void) state;
	for (int n = 0; n < 3; n++) {
		spy_fail(n, EMFILE);
		assert_int_equal(fi_control(&cq->cq_fid.fid, FI_GETWAIT, &fd), -FI_EMFILE);
		assert_int_equal(spy_open_fds(), fds);
	}
	spy_fail(-1, 0);
	net_comp(cq, 1);
	assert_true(readable(getwait_fd(&cq->cq_fid.fid)));
	net_shut(&cq->cq_fid.fid);
}

/* ---- engines that change ---- */

/* With FI_THREAD_COMPLETION a queue settles on an engine after its descriptor was given out. */
static void descriptor_follows_its_queue_to_another_engine(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_FD, FI_WAIT_UNSPEC };
	struct net own;

	(void) state;
	net_open(&own, (struct net_attr) { .threading = FI_THREAD_COMPLETION });
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct fab_cq *a = net_cq(&own, (struct fi_cq_attr) { .wait_obj = objs[i] });
		struct fab_cq *b = net_cq(&own, (struct fi_cq_attr) { .wait_obj = objs[i] });
		struct feed feed = { .cq = b };
		struct fi_cq_entry entry;
		int fd = getwait_fd(&b->cq_fid.fid);

		pthread_mutex_lock(&own.domain.engines.join_lock);
		assert_int_equal(fab_queue_settle_alone(&own.domain, &a->wait), 0);
		assert_ptr_not_equal(a->wait.engine, b->wait.engine);
		assert_int_equal(fab_queue_settle(&own.domain, &b->wait, a->wait.engine), 0);
		pthread_mutex_unlock(&own.domain.engines.join_lock);
		assert_ptr_equal(a->wait.engine, b->wait.engine);
		feed_open(&feed, a->wait.engine);
		assert_false(readable(fd));
		feed_write(&feed);
		assert_true(readable(fd));
		assert_int_equal(fi_cq_read(&b->cq_fid, &entry, 1), 1);
		assert_false(readable(fd));
		net_comp(b, 1);
		assert_true(readable(fd));
		assert_int_equal(atomic_load(&a->wait.engine->watchers), 1);
		feed_close(&feed);
		net_shut(&a->cq_fid.fid);
		net_shut(&b->cq_fid.fid);
	}
	net_close(&own);
}

/* ---- trywait ---- */

static void trywait_takes_any_mix_of_queues(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_FD });
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { .wait_obj = FI_WAIT_FD });
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { .wait_obj = FI_WAIT_FD });
	struct fid *fids[] = { &cq->cq_fid.fid, &cntr->cntr_fid.fid, &eq->eq_fid.fid };
	struct fi_eq_entry entry = { 0 };
	uint32_t event;

	(void) state;
	assert_int_equal(fab_trywait(&net.fabric.fabric_fid, fids, 3), 0);
	assert_int_equal(fi_cntr_add(&cntr->cntr_fid, 1), 0);
	assert_int_equal(fab_trywait(&net.fabric.fabric_fid, fids, 1), 0);
	getwait_fd(fids[1]);
	assert_int_equal(fab_trywait(&net.fabric.fabric_fid, fids, 3), -FI_EAGAIN);
	assert_int_equal(fi_cntr_read(&cntr->cntr_fid), 1);
	assert_int_equal(fab_trywait(&net.fabric.fabric_fid, fids, 3), 0);
	fab_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), NULL);
	assert_int_equal(fab_trywait(&net.fabric.fabric_fid, fids, 3), -FI_EAGAIN);
	assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fab_trywait(&net.fabric.fabric_fid, fids, 3), 0);
	net_shut(fids[0]);
	net_shut(fids[1]);
	net_shut(fids[2]);
}

static void trywait_refuses_what_cannot_wait(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });

	(void) state;
	assert_int_equal(trywait(&cq->cq_fid.fid), -FI_EINVAL);
	assert_int_equal(trywait(&net.domain.domain_fid.fid), -FI_EINVAL);
	assert_int_equal(fab_trywait(&net.fabric.fabric_fid, NULL, 0), 0);
	net_shut(&cq->cq_fid.fid);
}

/* ---- wait sets ---- */

static struct fid_wait *set_open(enum fi_wait_obj obj)
{
	struct fid_wait *set;

	assert_int_equal(fab_wait_open(&net.fabric.fabric_fid, &(struct fi_wait_attr) { .wait_obj = obj }, &set), 0);
	return set;
}

static void set_tells_of_every_member(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD, FI_WAIT_POLLFD };

	(void) state;
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct fid_wait *set = set_open(objs[i]);
		struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_SET, .wait_set = set };
		struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_SET, .wait_set = set });
		struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { .wait_obj = FI_WAIT_SET, .wait_set = set });
		struct fab_cntr *cntr = net_cntr(&net, cntr_attr);
		struct feed feed = { .cq = cq };
		uint64_t start = fab_now_ns();
		struct fi_eq_entry event = { 0 };
		struct fi_cq_entry entry;
		uint32_t code;

		assert_int_equal(fi_close(&set->fid), -FI_EBUSY);
		assert_int_equal(fi_wait(set, 20), -FI_ETIMEDOUT);
		assert_in_range(elapsed_ms(start), 20, 1000);
		assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);
		assert_int_equal(trywait(&set->fid), 0);

		feed_open(&feed, cq->wait.engine);
		feed_write(&feed);
		assert_int_equal(fi_wait(set, -1), 0);
		assert_int_equal(trywait(&set->fid), -FI_EAGAIN);
		assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 0), -FI_ENOSYS);
		assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), 1);
		assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), -FI_EAGAIN);
		assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);

		fi_cntr_add(&cntr->cntr_fid, 5);
		assert_int_equal(fi_wait(set, -1), 0);
		assert_int_equal(fi_cntr_read(&cntr->cntr_fid), 5);
		assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);

		fab_eq_write(eq, FI_NOTIFY, &event, sizeof(event), NULL);
		assert_int_equal(fi_wait(set, -1), 0);
		assert_int_equal(fi_eq_read(&eq->eq_fid, &code, &event, sizeof(event), 0), sizeof(event));
		assert_int_equal(fi_wait(set, 0), -FI_ETIMEDOUT);

		feed_close(&feed);
		net_shut(&cq->cq_fid.fid);
		net_shut(&cntr->cntr_fid.fid);
		assert_int_equal(fi_close(&set->fid), -FI_EBUSY);
		net_shut(&eq->eq_fid.fid);
		net_shut(&set->fid);
	}
}

static void set_has_one_descriptor(void **state)
{
	struct fid_wait *set = set_open(FI_WAIT_FD);
	struct fab_cq *a = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_SET, .wait_set = set });
	struct fab_cq *b = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_SET, .wait_set = set });
	struct fi_cq_entry entry;
	enum fi_wait_obj obj;
	int fd = getwait_fd(&set->fid);

	(void) state;
	assert_int_equal(fi_control(&set->fid, FI_GETWAITOBJ, &obj), 0);
	assert_int_equal(obj, FI_WAIT_FD);
	assert_int_equal(getwait_fd(&a->cq_fid.fid), fd);
	assert_int_equal(trywait(&set->fid), 0);
	assert_false(readable(fd));
	net_comp(b, 1);
	assert_true(readable(fd));
	assert_int_equal(fi_cq_read(&b->cq_fid, &entry, 1), 1);
	assert_int_equal(trywait(&set->fid), 0);
	assert_false(readable(fd));
	net_shut(&a->cq_fid.fid);
	net_comp(b, 1);
	assert_true(readable(fd));
	net_shut(&b->cq_fid.fid);
	assert_false(readable(fd));
	net_shut(&set->fid);
}

static void sets_that_cannot_be_are_refused(void **state)
{
	struct fi_wait_attr bad[] = {
		{ .wait_obj = FI_WAIT_NONE }, { .wait_obj = FI_WAIT_SET }, { .wait_obj = FI_WAIT_POLLFD + 1 },
		{ .wait_obj = FI_WAIT_FD, .flags = 1 },
	};
	struct fid_wait *set = NULL;

	(void) state;
	for (size_t i = 0; i < fab_countof(bad); i++)
		assert_int_equal(fab_wait_open(&net.fabric.fabric_fid, &bad[i], &set), -FI_EINVAL);
	spy_fail(0, EMFILE);
	assert_int_equal(fab_wait_open(&net.fabric.fabric_fid, NULL, &set), -FI_EMFILE);
	assert_null(set);
}

static struct fid_wait *failing_set;

static int open_member(void)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_SET, .wait_set = failing_set };
	struct fid_cq *fid;
	int ret = fab_cq_open(&net.domain.domain_fid, &attr, &fid, NULL);

	if (!ret)
		net_shut(&fid->fid);
	assert_int_equal(atomic_load(&net.domain.engine.watchers), 0);
	assert_int_equal(fi_wait(failing_set, 0), -FI_ETIMEDOUT);
	return ret;
}

/* A member whose open fails leaves nothing in the set. */
static void failed_member_leaves_the_set_clean(void **state)
{
	(void) state;
	failing_set = set_open(FI_WAIT_FD);
	assert_in_range(fail_each(open_member, false), 4, 12);
	net_shut(&failing_set->fid);
}

/* ---- poll sets ---- */

static struct fid_poll *poll_set_open(void)
{
	struct fid_poll *set;

	assert_int_equal(fab_poll_open(&net.domain.domain_fid, NULL, &set), 0);
	return set;
}

static void poll_set_makes_progress_and_names_who_has_news(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { 0 });
	struct feed feed = { .cq = cq };
	struct fid_poll *set = poll_set_open();
	struct fi_cq_entry entry;
	void *contexts[4];

	(void) state;
	cq->cq_fid.fid.context = cq;
	cntr->cntr_fid.fid.context = cntr;
	assert_int_equal(fi_poll_add(set, &cq->cq_fid.fid, 0), 0);
	assert_int_equal(fi_poll_add(set, &cntr->cntr_fid.fid, 0), 0);
	assert_int_equal(fi_poll(set, contexts, 4), 0);
	feed_open(&feed, cq->wait.engine);
	feed_write(&feed);
	assert_int_equal(fi_poll(set, contexts, 4), 1);
	assert_ptr_equal(contexts[0], cq);
	assert_int_equal(fi_poll(set, contexts, 4), 1);		/* as long as it is not read */
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), 1);
	assert_int_equal(fi_poll(set, contexts, 4), 0);
	fab_engine_lock(cntr->wait.engine);
	fab_cntr_inc(cntr, 1);
	fab_engine_unlock(cntr->wait.engine);
	assert_int_equal(fi_poll(set, contexts, 4), 1);
	assert_ptr_equal(contexts[0], cntr);
	assert_int_equal(fi_poll(set, contexts, 4), 0);		/* once a change */
	fi_cntr_adderr(&cntr->cntr_fid, 1);
	assert_int_equal(fi_poll(set, contexts, 4), 1);
	feed_close(&feed);
	net_shut(&set->fid);
	net_shut(&cq->cq_fid.fid);
	net_shut(&cntr->cntr_fid.fid);
}

static void short_poll_array_is_shared_fairly(void **state)
{
	struct fid_poll *set = poll_set_open();
	struct fab_cq *cqs[3];
	unsigned seen[3] = { 0 };
	void *context;

	(void) state;
	for (uintptr_t i = 0; i < 3; i++) {
		cqs[i] = net_cq(&net, (struct fi_cq_attr) { 0 });
		cqs[i]->cq_fid.fid.context = (void *) i;
		net_comp(cqs[i], 1);
		assert_int_equal(fi_poll_add(set, &cqs[i]->cq_fid.fid, 0), 0);
	}
	for (int i = 0; i < 6; i++) {
		assert_int_equal(fi_poll(set, &context, 1), 1);
		seen[(uintptr_t) context]++;
	}
	net_shut(&set->fid);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(seen[i], 2);
		net_shut(&cqs[i]->cq_fid.fid);
	}
}

static void poll_set_refuses_what_it_cannot_hold(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { 0 });
	struct fid_poll *set = poll_set_open(), *none = NULL;
	struct fi_poll_attr flags = { .flags = 1 };
	struct fid *fid = &cq->cq_fid.fid;

	(void) state;
	assert_int_equal(fab_poll_open(&net.domain.domain_fid, &flags, &none), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, &eq->eq_fid.fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, fid, 1), -FI_EINVAL);
	assert_int_equal(fi_poll_del(set, fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll_add(set, fid, 0), 0);
	assert_int_equal(fi_poll_add(set, fid, 0), -FI_EINVAL);
	assert_int_equal(fi_poll(set, NULL, 1), -FI_EINVAL);
	assert_int_equal(fi_close(fid), -FI_EBUSY);
	assert_int_equal(fi_poll_del(set, fid, 0), 0);
	net_shut(fid);
	net_shut(&eq->eq_fid.fid);
	net_shut(&set->fid);
}

/* ---- short waits ---- */

static uint64_t clock_ns, clock_step_ns;	/* each reading takes a step */

static uint64_t stepping_now_ns(void)
{
	return clock_ns += clock_step_ns;
}

/* Sleep once. Returns how often the thread looked again before it slept. */
static int looks_before_sleep(struct fab_cq *cq)
{
	struct fab_sleep sleep;
	int looks = 0;

	spy_reset();
	fab_engine_lock(cq->wait.engine);
	fab_wait_begin(&cq->wait, &sleep, -1);
	while (!spy.poll) {
		assert_int_equal(fab_wait_sleep(&cq->wait, &sleep), 0);
		looks += !spy.poll;
	}
	fab_engine_unlock(cq->wait.engine);
	return looks;
}

/* After short waits a thread looks again before it sleeps, for up to 100 us; after long ones it does not. */
static void short_waits_are_spent_looking(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	const struct fab_clock_ops *real = fab_clock;
	const struct fab_clock_ops stepping = { .now_ns = stepping_now_ns, .random64 = real->random64 };
	struct feed feed = { .cq = cq };

	(void) state;
	feed_open(&feed, cq->wait.engine);
	feed_write(&feed);		/* wakes each sleep at once, as nobody reads it */
	fab_clock = &stepping;
	clock_step_ns = 1000;
	assert_int_equal(looks_before_sleep(cq), 0);
	assert_in_range(looks_before_sleep(cq), 5, 10);
	assert_in_range(looks_before_sleep(cq), 15, 20);
	for (int i = 0; i < 5; i++)
		looks_before_sleep(cq);
	assert_in_range(looks_before_sleep(cq), 90, 100);
	clock_step_ns = 150000;
	looks_before_sleep(cq);
	clock_step_ns = 1000;
	assert_in_range(looks_before_sleep(cq), 40, 50);
	clock_step_ns = 150000;
	for (int i = 0; i < 20; i++)
		looks_before_sleep(cq);
	clock_step_ns = 1000;
	assert_int_equal(looks_before_sleep(cq), 0);
	fab_clock = real;
	feed_close(&feed);
	net_shut(&cq->cq_fid.fid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, net_setup, net_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cq_fd_is_readable_iff_a_read_would_find_something),
		TEST(fd_given_late_is_readable_at_once),
		TEST(signals_cost_nothing_where_nobody_sleeps),
		TEST(burst_writes_the_descriptor_once),
		TEST(fd_becomes_readable_for_a_flush),
		TEST(fd_becomes_readable_for_a_timer),
		TEST(pollfd_is_a_list_of_one_that_does_not_change),
		TEST(getwait_fits_the_object),
		TEST(getwait_fails_cleanly),
		TEST(descriptor_follows_its_queue_to_another_engine),
		TEST(trywait_takes_any_mix_of_queues),
		TEST(trywait_refuses_what_cannot_wait),
		TEST(set_tells_of_every_member),
		TEST(set_has_one_descriptor),
		TEST(sets_that_cannot_be_are_refused),
		TEST(failed_member_leaves_the_set_clean),
		TEST(poll_set_makes_progress_and_names_who_has_news),
		TEST(short_poll_array_is_shared_fairly),
		TEST(poll_set_refuses_what_it_cannot_hold),
		TEST(short_waits_are_spent_looking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
