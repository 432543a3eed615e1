/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues: formats, order, growth, error entries for every API version, texts, blocking reads in one thread,
 * attributes, and what happens when there is no memory.
 */
#include "net.h"

/* ---- reading ---- */

static const size_t entry_len[] = {
	[FI_CQ_FORMAT_UNSPEC] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

static void each_format_gives_its_members_and_no_more(void **state)
{
	(void) state;
	for (int format = FI_CQ_FORMAT_UNSPEC; format <= FI_CQ_FORMAT_TAGGED; format++) {
		struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .format = format });
		struct fi_cq_tagged_entry entry = { 0 };
		uint8_t buf[3 * sizeof(entry)];
		size_t len = entry_len[format];

		net_comp(cq, 100);
		net_comp(cq, 200);
		memset(buf, 0xee, sizeof(buf));
		assert_int_equal(fi_cq_read(&cq->cq_fid, buf, 3), 2);
		for (size_t i = 2 * len; i < sizeof(buf); i++)
			assert_int_equal(buf[i], 0xee);
		memcpy(&entry, buf + len, len);
		assert_ptr_equal(entry.op_context, (void *) 200);
		assert_int_equal(entry.flags, len >= sizeof(struct fi_cq_msg_entry) ? FI_RECV | FI_TAGGED : 0);
		assert_int_equal(entry.len, len >= sizeof(struct fi_cq_msg_entry) ? 201 : 0);
		assert_ptr_equal(entry.buf, len >= sizeof(struct fi_cq_data_entry) ? (void *) 202 : NULL);
		assert_int_equal(entry.data, len >= sizeof(struct fi_cq_data_entry) ? 203 : 0);
		assert_int_equal(entry.tag, len >= sizeof(struct fi_cq_tagged_entry) ? 204 : 0);
		net_shut(&cq->cq_fid.fid);
	}
}

static void readfrom_gives_sources(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct fi_cq_entry entries[4];
	fi_addr_t src[4] = { 0, 0, 77, 77 };

	(void) state;
	net_comp(cq, 10);
	net_comp(cq, 20);
	assert_int_equal(fi_cq_readfrom(&cq->cq_fid, entries, 4, src), 2);
	assert_int_equal(src[0], 15);
	assert_int_equal(src[1], 25);
	assert_int_equal(src[2], 77);
	net_shut(&cq->cq_fid.fid);
}

static int setup_fid(void **state)
{
	(void) state;
	return net_begin((struct net_attr) { .threading = FI_THREAD_FID });
}

/* What is read ahead keeps its sources, in whatever portions it is taken. */
static void reading_ahead_keeps_sources(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct fi_cq_entry entries[2];
	uintptr_t next = 10;
	fi_addr_t src[2];
	ssize_t ret;

	(void) state;
	assert_non_null(cq->ahead);
	for (uintptr_t i = 1; i <= 7; i++)
		net_comp(cq, 10 * i);
	for (int n = 0; next <= 70; n++) {
		ret = fi_cq_readfrom(&cq->cq_fid, entries, 1 + (size_t) n % 2, src);
		assert_true(ret > 0);
		for (ssize_t i = 0; i < ret; i++, next += 10) {
			assert_ptr_equal(entries[i].op_context, (void *) next);
			assert_int_equal(src[i], next + 5);
		}
	}
	assert_int_equal(fi_cq_readfrom(&cq->cq_fid, entries, 2, src), -FI_EAGAIN);
	net_shut(&cq->cq_fid.fid);
}

/* Far more than the ring holds at first, read in odd portions: nothing is lost, doubled or out of order. */
static void ring_grows_and_keeps_order(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .size = 1 });
	struct fi_cq_entry entries[97];
	uintptr_t in = 0, out = 0;
	ssize_t ret;

	(void) state;
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 7 * round; i++)
			net_comp(cq, in++);
		ret = fi_cq_read(&cq->cq_fid, entries, 1 + (size_t) round % 97);
		for (ssize_t i = 0; i < ret; i++)
			assert_ptr_equal(entries[i].op_context, (void *) out++);
	}
	while ((ret = fi_cq_read(&cq->cq_fid, entries, 97)) > 0) {
		for (ssize_t i = 0; i < ret; i++)
			assert_ptr_equal(entries[i].op_context, (void *) out++);
	}
	assert_int_equal(ret, -FI_EAGAIN);
	assert_int_equal(in, out);
	net_shut(&cq->cq_fid.fid);
}

static void entries_that_are_queued_cost_no_system_call(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_FD });
	struct feed feed = { .cq = cq };
	struct fi_cq_entry entry;

	(void) state;
	feed_open(&feed, cq->wait.engine);
	for (int i = 0; i < 10; i++)
		net_comp(cq, 1);
	spy_reset();
	for (int i = 0; i < 10; i++)
		assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), 1);
	assert_int_equal(spy.all, 0);
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), -FI_EAGAIN);
	assert_int_equal(spy.all, 1);
	feed_close(&feed);
	net_shut(&cq->cq_fid.fid);
}

static void empty_read_makes_one_pass_and_gives_what_it_found(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct feed feed = { .cq = cq };
	struct fi_cq_entry entry;

	(void) state;
	feed_open(&feed, cq->wait.engine);
	feed_write(&feed);
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), 1);
	assert_ptr_equal(entry.op_context, &feed);
	feed_write(&feed);
	assert_int_equal(fi_cq_read(&cq->cq_fid, NULL, 0), 0);	/* count 0: progress only */
	assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), 1);
	assert_int_equal(fi_cq_read(&cq->cq_fid, NULL, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(&cq->cq_fid, NULL, 1), -FI_EINVAL);
	feed_close(&feed);
	net_shut(&cq->cq_fid.fid);
}

/* ---- errors ---- */

static void error_stands_in_order_with_successes(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry entries[8];

	(void) state;
	net_comp(cq, 1);
	net_comp(cq, 2);
	net_comp_err(cq, 3, (struct fab_cq_fail) { .err = FI_ETRUNC, .prov_errno = 5, .olen = 11 });
	net_comp_err(cq, 4, (struct fab_cq_fail) { .err = FI_ECANCELED });
	net_comp(cq, 5);

	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(&cq->cq_fid, entries, 8), 2);
	assert_int_equal(fi_cq_read(&cq->cq_fid, entries, 8), -FI_EAVAIL);
	assert_int_equal(fi_cq_read(&cq->cq_fid, NULL, 0), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_ptr_equal(err.op_context, (void *) 3);
	assert_int_equal(err.flags, FI_SEND | FI_MSG);
	assert_int_equal(err.len, 7);
	assert_int_equal(err.olen, 11);
	assert_int_equal(err.err, FI_ETRUNC);
	assert_int_equal(err.prov_errno, 5);
	assert_null(err.err_data);
	assert_int_equal(err.err_data_size, 0);
	assert_int_equal(err.src_addr, 9);
	assert_int_equal(fi_cq_read(&cq->cq_fid, entries, 8), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_ptr_equal(err.op_context, (void *) 4);
	assert_int_equal(fi_cq_read(&cq->cq_fid, entries, 8), 1);
	assert_ptr_equal(entries[0].op_context, (void *) 5);
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, NULL, 0), -FI_EINVAL);
	net_shut(&cq->cq_fid.fid);
}

/* The structure grew with the API: what an application does not know of is not written, and not read. */
static void error_entry_is_as_long_as_the_application_knows_it(void **state)
{
	static const struct {
		uint32_t api_version;
		size_t len;
	} cases[] = {
		{ FI_VERSION(1, 0), 72 }, { FI_VERSION(1, 4), 72 },
		{ FI_VERSION(1, 5), 80 }, { FI_VERSION(1, 19), 80 },
		{ FI_VERSION(1, 20), 88 }, { FI_VERSION(2, 6), 88 },
	};

	(void) state;
	for (size_t i = 0; i < fab_countof(cases); i++) {
		struct net old;
		struct fab_cq *cq;
		union {
			struct fi_cq_err_entry entry;
			uint8_t bytes[sizeof(struct fi_cq_err_entry)];
		} buf;

		net_open(&old, (struct net_attr) { .api_version = cases[i].api_version });
		cq = net_cq(&old, (struct fi_cq_attr) { 0 });
		net_comp_err(cq, 3, (struct fab_cq_fail) { .err = FI_EIO, .err_data = "data", .err_data_len = 4 });
		memset(&buf, 0xee, sizeof(buf));
		if (cases[i].len > 72)
			buf.entry.err_data_size = 0;
		/* not by the inline function of today's header, which presets src_addr */
		assert_int_equal(cq->cq_fid.ops->readerr(&cq->cq_fid, &buf.entry, 0), 1);
		assert_int_equal(buf.entry.err, FI_EIO);
		assert_memory_equal(buf.entry.err_data, "data", 4);
		if (cases[i].len >= 80)
			assert_int_equal(buf.entry.err_data_size, 4);
		for (size_t at = cases[i].len; at < sizeof(buf); at++)
			assert_int_equal(buf.bytes[at], 0xee);
		net_shut(&cq->cq_fid.fid);
		net_close(&old);
	}
}

static void err_data_goes_to_the_callers_buffer_as_far_as_it_fits(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	char room[8] = "........";
	struct fi_cq_err_entry err = { .err_data = room, .err_data_size = 3 };
	struct fab_cq_fail fail = { .err = FI_EIO, .err_data = "abcdef", .err_data_len = 6 };

	(void) state;
	net_comp_err(cq, 1, fail);
	net_comp_err(cq, 2, fail);
	net_comp_err(cq, 3, fail);
	net_comp_err(cq, 4, (struct fab_cq_fail) { .err = FI_EIO });
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_ptr_equal(err.err_data, room);
	assert_int_equal(err.err_data_size, 3);
	assert_memory_equal(room, "abc.....", 8);
	err.err_data_size = 8;
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_int_equal(err.err_data_size, 6);
	assert_memory_equal(room, "abcdef..", 8);

	/* a size of 0: ours, which outlives the entry until the next one is read */
	err = (struct fi_cq_err_entry) { .err_data = (void *) 1 };
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_int_equal(err.err_data_size, 6);
	assert_memory_equal(err.err_data, "abcdef", 6);

	err = (struct fi_cq_err_entry) { .err_data = room, .err_data_size = 8 };
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_int_equal(err.err_data_size, 0);
	net_shut(&cq->cq_fid.fid);
}

static void strerror_tells_what_the_provider_said(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct fi_cq_err_entry err = { 0 };
	char small[6], large[400], longest[500];

	(void) state;
	memset(longest, 'y', sizeof(longest));
	longest[499] = '\0';
	net_comp_err(cq, 1, (struct fab_cq_fail) { .err = FI_EIO, .prov_errno = 111, .text = "from here to there" });
	net_comp_err(cq, 2, (struct fab_cq_fail) { .err = FI_EIO, .prov_errno = 111, .text = longest });
	net_comp_err(cq, 3, (struct fab_cq_fail) { .err = FI_EIO, .prov_errno = 111 });

	assert_string_equal(fi_cq_strerror(&cq->cq_fid, 5, NULL, NULL, 0), fi_strerror(5));
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_string_equal(fi_cq_strerror(&cq->cq_fid, err.prov_errno, err.err_data, NULL, 0), "from here to there");
	assert_ptr_equal(fi_cq_strerror(&cq->cq_fid, err.prov_errno, NULL, small, sizeof(small)), small);
	assert_string_equal(small, "from ");
	assert_string_equal(fi_cq_strerror(&cq->cq_fid, 5, NULL, large, sizeof(large)), fi_strerror(5));
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_int_equal(strlen(fi_cq_strerror(&cq->cq_fid, 111, NULL, large, sizeof(large))), 319);
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_string_equal(fi_cq_strerror(&cq->cq_fid, 111, NULL, large, sizeof(large)), fi_strerror(111));
	net_shut(&cq->cq_fid.fid);
}

/* ---- blocking ---- */

static void sread_ends_at_its_deadline_and_not_before(void **state)
{
	static const enum fi_wait_obj objs[] = {
		FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD, FI_WAIT_YIELD, FI_WAIT_MUTEX_COND,
	};

	(void) state;
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = objs[i] });
		uint64_t start = fab_now_ns();
		struct fi_cq_entry entry;

		assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 0), -FI_EAGAIN);
		assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 30), -FI_EAGAIN);
		assert_in_range(elapsed_ms(start), 30, 1000);
		net_comp(cq, 1);
		assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, -1), 1);
		net_comp_err(cq, 2, (struct fab_cq_fail) { .err = FI_EIO });
		assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, -1), -FI_EAVAIL);
		net_shut(&cq->cq_fid.fid);
	}
}

/* A sleeper of manual progress wakes for data, which it then turns into its completion. */
static void sread_makes_the_progress_it_waits_for(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	struct feed feed = { .cq = cq };
	struct fi_cq_entry entry;

	(void) state;
	feed_open(&feed, cq->wait.engine);
	for (int i = 0; i < 100; i++) {
		feed_write(&feed);
		assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, -1), 1);
	}
	feed_close(&feed);
	net_shut(&cq->cq_fid.fid);
}

static void idle_sread_sleeps(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC });
	struct feed feed = { .cq = cq };
	struct fi_cq_entry entry;

	(void) state;
	feed_open(&feed, cq->wait.engine);
	spy_reset();
	assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 50), -FI_EAGAIN);
	assert_in_range(spy.all, 1, 10);
	feed_close(&feed);
	net_shut(&cq->cq_fid.fid);
}

static void signal_ends_the_next_sread_if_none_is_under_way(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD };

	(void) state;
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = objs[i] });
		struct fi_cq_entry entry;
		uint64_t start = fab_now_ns();

		assert_int_equal(fi_cq_signal(&cq->cq_fid), 0);
		assert_int_equal(fi_cq_signal(&cq->cq_fid), 0);
		assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, -1), -FI_EAGAIN);
		/* it is used up, and its descriptor does not keep the next one awake */
		spy_reset();
		assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 30), -FI_EAGAIN);
		assert_in_range(elapsed_ms(start), 30, 1000);
		if (objs[i] != FI_WAIT_YIELD)
			assert_in_range(spy.all, 1, 10);
		net_shut(&cq->cq_fid.fid);
	}
}

static void objects_that_cannot_block_say_so(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_NONE });
	struct fi_cq_entry entry;

	(void) state;
	assert_int_equal(fi_cq_sread(&cq->cq_fid, &entry, 1, NULL, 0), -FI_ENOSYS);
	assert_int_equal(fi_cq_signal(&cq->cq_fid), -FI_ENOSYS);
	net_shut(&cq->cq_fid.fid);
}

static void threshold_waits_for_so_many(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = FI_WAIT_UNSPEC,
				   .wait_cond = FI_CQ_COND_THRESHOLD });
	struct fi_cq_entry entries[8];
	uint64_t start = fab_now_ns();

	(void) state;
	net_comp(cq, 1);
	net_comp(cq, 2);
	assert_int_equal(fi_cq_sread(&cq->cq_fid, entries, 8, (void *) 3, 20), 2);	/* time is up: what there is */
	assert_in_range(elapsed_ms(start), 20, 1000);
	for (int i = 0; i < 3; i++)
		net_comp(cq, 3);
	assert_int_equal(fi_cq_sread(&cq->cq_fid, entries, 8, (void *) 3, -1), 3);
	net_comp(cq, 4);
	assert_int_equal(fi_cq_sread(&cq->cq_fid, entries, 1, (void *) 3, -1), 1);	/* no room for three */
	net_comp(cq, 5);
	assert_int_equal(fi_cq_sread(&cq->cq_fid, entries, 8, NULL, -1), 1);		/* no condition */
	net_comp_err(cq, 6, (struct fab_cq_fail) { .err = FI_EIO });
	assert_int_equal(fi_cq_sread(&cq->cq_fid, entries, 8, (void *) 3, -1), -FI_EAVAIL);
	net_shut(&cq->cq_fid.fid);
}

struct ticks {
	struct fab_timer timer;
	struct fab_cq *cq;
	unsigned cnt;
};

/* An entry more, for which a sleeper wakes. */
static void tick(struct fab_timer *timer)
{
	struct ticks *ticks = fab_container(timer, struct ticks, timer);

	ticks->cnt++;
	fab_cq_write(ticks->cq, &(struct fab_comp) { .src = FI_ADDR_NOTAVAIL });
	fab_timer_start(ticks->cq->wait.engine, timer, fab_now_ns() + 1000000);
}

/* Woken again and again by less than it waits for, a reader's time is up when it said. */
static void wakes_do_not_move_the_deadline(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD, FI_WAIT_MUTEX_COND };
	static struct fi_cq_entry entries[4000];

	(void) state;
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct ticks ticks = { .cq = net_cq(&net, (struct fi_cq_attr) { .wait_obj = objs[i],
						    .wait_cond = FI_CQ_COND_THRESHOLD }) };
		struct fab_engine *engine = ticks.cq->wait.engine;
		uint64_t start = fab_now_ns();
		ssize_t cnt;

		fab_timer_init(&ticks.timer, tick);
		fab_engine_lock(engine);
		fab_timer_start(engine, &ticks.timer, start);
		fab_engine_unlock(engine);
		cnt = fi_cq_sread(&ticks.cq->cq_fid, entries, fab_countof(entries), (void *) fab_countof(entries), 60);
		assert_in_range(elapsed_ms(start), 60, 3000);
		assert_in_range(cnt, 3, ticks.cnt);
		fab_engine_lock(engine);
		fab_timer_stop(&ticks.timer);
		fab_engine_unlock(engine);
		net_shut(&ticks.cq->cq_fid.fid);
	}
}

/* ---- life ---- */

static void attributes_that_make_no_sense_are_refused(void **state)
{
	struct fi_cq_attr good = { .size = 131072, .flags = FI_AFFINITY, .signaling_vector = 3,
				   .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD };
	struct fi_cq_attr bad[7];
	struct fid_cq *fid = NULL;

	(void) state;
	for (size_t i = 0; i < fab_countof(bad); i++)
		bad[i] = good;
	bad[0].size = SIZE_MAX;
	bad[1].flags = FI_PEEK;
	bad[2].format = FI_CQ_FORMAT_TAGGED + 1;
	bad[3].wait_obj = FI_WAIT_POLLFD + 1;
	bad[4].wait_cond = FI_CQ_COND_THRESHOLD + 1;
	bad[5].wait_obj = FI_WAIT_SET;
	bad[6].wait_obj = FI_WAIT_SET;
	bad[6].wait_set = (struct fid_wait *) &net.fabric.fabric_fid;	/* no wait set */
	for (size_t i = 0; i < fab_countof(bad); i++) {
		assert_int_equal(fab_cq_open(&net.domain.domain_fid, &bad[i], &fid, NULL), -FI_EINVAL);
		assert_null(fid);
	}
	assert_int_equal(fab_cq_open(&net.domain.domain_fid, &good, &fid, &net), 0);
	assert_ptr_equal(fid->fid.context, &net);
	assert_int_equal(fid->fid.fclass, FI_CLASS_CQ);
	net_shut(&fid->fid);
	assert_int_equal(fab_cq_open(&net.domain.domain_fid, NULL, &fid, NULL), 0);
	assert_int_equal(fi_control(&fid->fid, FI_BACKLOG, NULL), -FI_ENOSYS);
	net_shut(&fid->fid);
}

static void close_waits_for_what_is_bound(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });

	(void) state;
	net_comp(cq, 1);
	net_comp_err(cq, 1, (struct fab_cq_fail) { .err = FI_EIO, .text = "left over" });
	cq->ref++;
	assert_int_equal(fi_close(&cq->cq_fid.fid), -FI_EBUSY);
	cq->ref--;
	assert_int_equal(fab_domain_fini(&net.domain), -FI_EBUSY);
	net_shut(&cq->cq_fid.fid);
}

static int open_and_close(void)
{
	struct fi_cq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fid_cq *fid;
	int ret = fab_cq_open(&net.domain.domain_fid, &attr, &fid, NULL);

	if (!ret)
		net_shut(&fid->fid);
	return ret;
}

static void open_undoes_what_it_did(void **state)
{
	(void) state;
	assert_in_range(fail_each(open_and_close, false), 3, 10);
	assert_in_range(fail_each(open_and_close, true), 3, 10);
}

/* ---- no memory ---- */

/* The first error without memory still comes whole but for its text; the next one ends the CQ, audibly and in order. */
static void errors_without_memory_are_not_lost_in_silence(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct fab_cq_fail fail = { .err = FI_ECONNRESET, .prov_errno = 104, .text = "text" };
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry entry;

	(void) state;
	for (int round = 0; round < 3; round++) {
		fail_alloc(0);
		net_comp_err(cq, 1, fail);
		fail_alloc(-1);
		assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
		assert_int_equal(err.err, FI_ECONNRESET);
		assert_ptr_equal(err.op_context, (void *) 1);
		net_comp_err(cq, 2, fail);
		assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	}
	fail_alloc(0);
	net_comp_err(cq, 1, fail);
	net_comp_err(cq, 2, fail);
	net_comp_err(cq, 3, fail);
	fail_alloc(-1);
	net_comp(cq, 4);
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_ptr_equal(err.op_context, (void *) 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_cq_read(&cq->cq_fid, &entry, 1), -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
		assert_int_equal(err.err, FI_EOVERRUN);
	}
	net_shut(&cq->cq_fid.fid);
}

static void full_ring_without_memory_is_an_overrun(void **state)
{
	struct fab_cq *cq = net_cq(&net, (struct fi_cq_attr) { 0 });
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_entry entry;
	uintptr_t in;

	(void) state;
	fail_alloc(0);
	for (in = 0; in < 200; in++)
		net_comp(cq, in);
	fail_alloc(-1);
	for (in = 0; fi_cq_read(&cq->cq_fid, &entry, 1) == 1; in++)
		assert_ptr_equal(entry.op_context, (void *) in);
	assert_int_equal(in, 64);
	assert_int_equal(fi_cq_readerr(&cq->cq_fid, &err, 0), 1);
	assert_int_equal(err.err, FI_EOVERRUN);
	net_shut(&cq->cq_fid.fid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, net_setup, net_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_format_gives_its_members_and_no_more),
		TEST(readfrom_gives_sources),
		cmocka_unit_test_setup_teardown(reading_ahead_keeps_sources, setup_fid, net_teardown),
		TEST(ring_grows_and_keeps_order),
		TEST(entries_that_are_queued_cost_no_system_call),
		TEST(empty_read_makes_one_pass_and_gives_what_it_found),
		TEST(error_stands_in_order_with_successes),
		TEST(error_entry_is_as_long_as_the_application_knows_it),
		TEST(err_data_goes_to_the_callers_buffer_as_far_as_it_fits),
		TEST(strerror_tells_what_the_provider_said),
		TEST(sread_ends_at_its_deadline_and_not_before),
		TEST(sread_makes_the_progress_it_waits_for),
		TEST(idle_sread_sleeps),
		TEST(signal_ends_the_next_sread_if_none_is_under_way),
		TEST(objects_that_cannot_block_say_so),
		TEST(threshold_waits_for_so_many),
		TEST(wakes_do_not_move_the_deadline),
		TEST(attributes_that_make_no_sense_are_refused),
		TEST(close_waits_for_what_is_bound),
		TEST(open_undoes_what_it_did),
		TEST(errors_without_memory_are_not_lost_in_silence),
		TEST(full_ring_without_memory_is_an_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
