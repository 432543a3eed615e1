/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queues: order, peeking, buffers too small, private data, errors, blocking, the engines that are driven, and
 * no memory.
 */
#include "net.h"

static int setup(void **state)
{
	(void) state;
	return net_begin((struct net_attr) { .type = FI_EP_MSG });
}

static void write_event(struct fab_eq *eq, uint32_t event, uint64_t data, struct fid *owner)
{
	struct fi_eq_entry entry = { .fid = owner, .data = data };

	assert_int_equal(fab_eq_write(eq, event, &entry, sizeof(entry), owner), 0);
}

static void events_come_in_order_and_can_be_peeked_at(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { 0 });
	struct fid_eq *fid = &eq->eq_fid;
	struct fi_eq_entry entry;
	uint32_t event;

	(void) state;
	assert_int_equal(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	write_event(eq, FI_MR_COMPLETE, 1, NULL);
	write_event(eq, FI_AV_COMPLETE, 2, NULL);
	assert_int_equal(fi_eq_read(fid, &event, &entry, sizeof(entry), FI_PEEK), sizeof(entry));
	assert_int_equal(event, FI_MR_COMPLETE);
	assert_int_equal(fi_eq_read(fid, &event, &entry, 5, 0), -FI_ETOOSMALL);		/* stays */
	assert_int_equal(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_MR_COMPLETE);
	assert_int_equal(entry.data, 1);
	assert_int_equal(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_AV_COMPLETE);
	assert_int_equal(entry.data, 2);
	assert_int_equal(fi_eq_read(fid, &event, &entry, sizeof(entry), FI_PEEK), -FI_EAGAIN);
	assert_int_equal(fi_eq_read(fid, &event, &entry, sizeof(entry), FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(fi_eq_read(fid, NULL, &entry, sizeof(entry), 0), -FI_EINVAL);
	assert_int_equal(fi_eq_read(fid, &event, NULL, sizeof(entry), 0), -FI_EINVAL);
	net_shut(&fid->fid);
}

/* Private data is given as far as the buffer goes; the entry before it must fit. */
static void private_data_is_cut_to_the_room_there_is(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { 0 });
	const size_t fixed = sizeof(struct fi_eq_cm_entry);
	union {
		struct fi_eq_cm_entry entry;
		uint8_t bytes[sizeof(struct fi_eq_cm_entry) + 16];
	} in = { .entry.fid = &net.domain.domain_fid.fid }, out;
	uint32_t event;

	(void) state;
	memcpy(in.bytes + fixed, "0123456789abcdef", 16);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fab_eq_write(eq, FI_CONNREQ, &in, sizeof(in), NULL), 0);
	assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &out, fixed - 1, 0), -FI_ETOOSMALL);
	memset(&out, 0xee, sizeof(out));
	assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &out, fixed + 4, 0), fixed + 4);
	assert_int_equal(event, FI_CONNREQ);
	assert_memory_equal(out.bytes, in.bytes, fixed + 4);
	assert_int_equal(out.bytes[fixed + 4], 0xee);
	assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &out, 1000, 0), sizeof(in));
	assert_memory_equal(&out, &in, sizeof(in));
	net_shut(&eq->eq_fid.fid);
}

static void error_stands_in_order_and_keeps_its_data(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { 0 });
	struct fid_eq *fid = &eq->eq_fid;
	struct fid *about = &net.domain.domain_fid.fid;
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry;
	char room[4] = "....";
	uint32_t event;

	(void) state;
	write_event(eq, FI_NOTIFY, 1, NULL);
	fab_eq_write_err(eq, about, (void *) 7, 8, FI_ECONNREFUSED, 111, "reject", 6);
	fab_eq_write_err(eq, about, NULL, 0, FI_ETIMEDOUT, 110, "reject", 6);
	assert_int_equal(fi_eq_readerr(fid, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	assert_int_equal(fi_eq_readerr(fid, &err, FI_PEEK), sizeof(err));
	err = (struct fi_eq_err_entry) { 0 };
	assert_int_equal(fi_eq_readerr(fid, &err, 0), sizeof(err));
	assert_ptr_equal(err.fid, about);
	assert_ptr_equal(err.context, (void *) 7);
	assert_int_equal(err.data, 8);
	assert_int_equal(err.err, FI_ECONNREFUSED);
	assert_int_equal(err.prov_errno, 111);
	assert_int_equal(err.err_data_size, 6);
	assert_int_equal(fi_eq_read(fid, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	assert_memory_equal(err.err_data, "reject", 6);		/* ours, until the next error is read */
	err = (struct fi_eq_err_entry) { .err_data = room, .err_data_size = 3 };
	assert_int_equal(fi_eq_readerr(fid, &err, 0), sizeof(err));
	assert_ptr_equal(err.err_data, room);
	assert_int_equal(err.err_data_size, 3);
	assert_memory_equal(room, "rej.", 4);
	assert_int_equal(fi_eq_readerr(fid, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_eq_readerr(fid, &err, FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(fi_eq_readerr(fid, NULL, 0), -FI_EINVAL);
	net_shut(&fid->fid);
}

/* Before API 1.5 err_data_size is not looked at: it may be anything. */
static void old_applications_are_shown_our_err_data(void **state)
{
	struct fi_eq_err_entry err = { .err_data = (void *) 1, .err_data_size = 77 };
	struct fab_eq *eq;
	struct net old;

	(void) state;
	net_open(&old, (struct net_attr) { .api_version = FI_VERSION(1, 4) });
	eq = net_eq(&old, (struct fi_eq_attr) { 0 });
	fab_eq_write_err(eq, NULL, NULL, 0, FI_EIO, 5, "data", 4);
	assert_int_equal(fi_eq_readerr(&eq->eq_fid, &err, 0), sizeof(err));
	assert_int_equal(err.err_data_size, 4);
	assert_memory_equal(err.err_data, "data", 4);
	net_shut(&eq->eq_fid.fid);
	net_close(&old);
}

static void application_writes_events_if_it_asked_for_that(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { .flags = FI_WRITE | FI_AFFINITY });
	struct fab_eq *other = net_eq(&net, (struct fi_eq_attr) { 0 });
	char out[8];
	uint32_t event;

	(void) state;
	assert_int_equal(fi_eq_write(&eq->eq_fid, 1234, "own", 4, 0), 4);
	assert_int_equal(fi_eq_write(&eq->eq_fid, 1235, NULL, 0, 0), 0);
	assert_int_equal(fi_eq_write(&eq->eq_fid, 1234, "own", 4, FI_MORE), -FI_EBADFLAGS);
	assert_int_equal(fi_eq_write(&eq->eq_fid, 1234, NULL, 4, 0), -FI_EINVAL);
	assert_int_equal(fi_eq_write(&eq->eq_fid, 1234, "own", SIZE_MAX, 0), -FI_EINVAL);
	assert_int_equal(fi_eq_write(&other->eq_fid, 1234, "own", 4, 0), -FI_ENOSYS);
	assert_int_equal(fi_eq_read(&eq->eq_fid, &event, out, sizeof(out), 0), 4);
	assert_int_equal(event, 1234);
	assert_string_equal(out, "own");
	assert_int_equal(fi_eq_read(&eq->eq_fid, &event, NULL, 0, 0), 0);
	assert_int_equal(event, 1235);
	net_shut(&eq->eq_fid.fid);
	net_shut(&other->eq_fid.fid);
}

static void strerror_fits_the_buffer(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { 0 });
	char buf[5];

	(void) state;
	assert_string_equal(fi_eq_strerror(&eq->eq_fid, FI_ECONNREFUSED, NULL, NULL, 0), fi_strerror(FI_ECONNREFUSED));
	assert_ptr_equal(fi_eq_strerror(&eq->eq_fid, FI_ECONNREFUSED, NULL, buf, sizeof(buf)), buf);
	assert_memory_equal(buf, fi_strerror(FI_ECONNREFUSED), 4);
	assert_int_equal(buf[4], '\0');
	net_shut(&eq->eq_fid.fid);
}

/* ---- closing objects ---- */

static unsigned dropped;

static void drop(uint32_t event, void *data, size_t len)
{
	assert_int_equal(event, FI_CONNREQ);
	assert_int_equal(len, sizeof(struct fi_eq_entry));
	assert_int_equal(((struct fi_eq_entry *) data)->data, 2);
	dropped++;
}

static void purge_drops_the_events_of_one_object(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { 0 });
	struct fid mine, other;
	struct fi_eq_entry entry;
	uint32_t event;

	(void) state;
	dropped = 0;
	write_event(eq, FI_NOTIFY, 1, &other);
	write_event(eq, FI_CONNREQ, 2, &mine);
	fab_eq_write_err(eq, &mine, NULL, 0, FI_EIO, 5, NULL, 0);
	write_event(eq, FI_NOTIFY, 3, &other);
	write_event(eq, FI_CONNREQ, 2, &mine);
	fab_eq_purge(eq, &mine, drop);
	assert_int_equal(dropped, 2);
	for (uint64_t data = 1; data <= 3; data += 2) {
		assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
		assert_int_equal(entry.data, data);
	}
	assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	fab_eq_purge(eq, &mine, NULL);
	net_shut(&eq->eq_fid.fid);
}

static void close_waits_for_what_is_bound(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { 0 });

	(void) state;
	write_event(eq, FI_NOTIFY, 1, NULL);
	fab_eq_get(eq);
	assert_int_equal(fi_close(&eq->eq_fid.fid), -FI_EBUSY);
	fab_eq_put(eq);
	net_shut(&eq->eq_fid.fid);
}

/* ---- progress and sleep ---- */

/* A read drives the EQ's engine and those of the endpoints bound to it; sleepers and descriptors wake for all of
 * them. */
static void every_engine_is_driven(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_UNSPEC, FI_WAIT_FD };

	(void) state;
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { .wait_obj = objs[i] });
		struct fab_engine *engines[] = { &eq->engine, &net.domain.engine };
		struct fi_eq_entry entry;
		uint32_t event;
		int fd;

		assert_int_equal(fab_eq_add_engine(eq, &net.domain.engine), 0);
		assert_int_equal(fab_eq_add_engine(eq, &net.domain.engine), 0);
		for (size_t j = 0; j < fab_countof(engines); j++) {
			struct feed feed = { .eq = eq };

			feed_open(&feed, engines[j]);
			feed_write(&feed);
			assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
			feed_write(&feed);
			assert_int_equal(fi_eq_sread(&eq->eq_fid, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
			feed_close(&feed);
		}
		assert_int_equal(fi_control(&eq->eq_fid.fid, FI_GETWAIT, &fd), 0);
		for (size_t j = 0; j < fab_countof(engines); j++) {
			struct feed feed = { .eq = eq };

			feed_open(&feed, engines[j]);
			assert_false(readable(fd));
			feed_write(&feed);
			assert_true(readable(fd));
			assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
			assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
			assert_false(readable(fd));
			feed_close(&feed);
		}
		fab_eq_del_engine(eq, &net.domain.engine);
		assert_int_equal(atomic_load(&net.domain.engine.watchers), 1);
		fab_eq_del_engine(eq, &net.domain.engine);
		assert_int_equal(atomic_load(&net.domain.engine.watchers), 0);
		net_shut(&eq->eq_fid.fid);
	}
}

static void sread_ends_at_its_deadline_and_not_before(void **state)
{
	static const enum fi_wait_obj objs[] = {
		FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_POLLFD, FI_WAIT_YIELD, FI_WAIT_MUTEX_COND,
	};

	(void) state;
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { .wait_obj = objs[i] });
		struct fid_eq *fid = &eq->eq_fid;
		uint64_t start = fab_now_ns();
		struct fi_eq_entry entry;
		uint32_t event;

		assert_int_equal(fi_eq_sread(fid, &event, &entry, sizeof(entry), 0, 0), -FI_EAGAIN);
		assert_int_equal(fi_eq_sread(fid, &event, &entry, sizeof(entry), 30, 0), -FI_EAGAIN);
		assert_in_range(elapsed_ms(start), 30, 1000);
		write_event(eq, FI_NOTIFY, 1, NULL);
		assert_int_equal(fi_eq_sread(fid, &event, &entry, sizeof(entry), -1, FI_PEEK), sizeof(entry));
		assert_int_equal(fi_eq_sread(fid, &event, &entry, sizeof(entry), -1, 0), sizeof(entry));
		assert_int_equal(fi_eq_sread(fid, &event, &entry, sizeof(entry), 0, FI_MORE), -FI_EBADFLAGS);
		fab_eq_write_err(eq, NULL, NULL, 0, FI_EIO, 5, NULL, 0);
		assert_int_equal(fi_eq_sread(fid, &event, &entry, sizeof(entry), -1, 0), -FI_EAVAIL);
		net_shut(&fid->fid);
	}
}

static void sread_needs_a_wait_object(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { 0 });
	struct fi_eq_entry entry;
	uint32_t event;

	(void) state;
	assert_int_equal(fi_eq_sread(&eq->eq_fid, &event, &entry, sizeof(entry), 0, 0), -FI_ENOSYS);
	net_shut(&eq->eq_fid.fid);
}

/* ---- what can go wrong ---- */

static void attributes_that_make_no_sense_are_refused(void **state)
{
	struct fi_eq_attr bad[] = {
		{ .size = SIZE_MAX }, { .flags = FI_PEEK }, { .wait_obj = FI_WAIT_POLLFD + 1 },
		{ .wait_obj = FI_WAIT_SET },
	};
	struct fid_eq *fid = NULL;

	(void) state;
	for (size_t i = 0; i < fab_countof(bad); i++)
		assert_int_equal(fab_eq_open(&net.fabric.fabric_fid, &bad[i], &fid, NULL), -FI_EINVAL);
	assert_null(fid);
}

static int open_and_close(void)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_FD };
	struct fid_eq *fid;
	int ret = fab_eq_open(&net.fabric.fabric_fid, &attr, &fid, NULL);

	if (!ret)
		net_shut(&fid->fid);
	return ret;
}

static void open_undoes_what_it_did(void **state)
{
	(void) state;
	assert_in_range(fail_each(open_and_close, false), 6, 12);
	assert_in_range(fail_each(open_and_close, true), 2, 5);
}

static void engine_that_cannot_be_added_leaves_nothing(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { .wait_obj = FI_WAIT_FD });

	(void) state;
	fail_alloc(0);
	assert_int_equal(fab_eq_add_engine(eq, &net.domain.engine), -FI_ENOMEM);
	fail_alloc(-1);
	spy_fail(0, ENOSPC);
	assert_int_equal(fab_eq_add_engine(eq, &net.domain.engine), -FI_ENOSPC);
	assert_true(fab_list_empty(&eq->engines));
	net_shut(&eq->eq_fid.fid);
}

/* What could not be queued is told of, once everything before it has been read, and for good. */
static void event_without_memory_is_an_overrun(void **state)
{
	struct fab_eq *eq = net_eq(&net, (struct fi_eq_attr) { 0 });
	struct fi_eq_err_entry err = { 0 };
	struct fi_eq_entry entry = { 0 };
	uint32_t event;

	(void) state;
	write_event(eq, FI_NOTIFY, 1, NULL);
	fail_alloc(0);
	assert_int_equal(fab_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), NULL), -FI_ENOMEM);
	fail_alloc(-1);
	assert_int_equal(fab_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), NULL), -FI_EOVERRUN);
	assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &entry, sizeof(entry), 0), sizeof(entry));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_eq_read(&eq->eq_fid, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
		assert_int_equal(fi_eq_readerr(&eq->eq_fid, &err, 0), sizeof(err));
		assert_int_equal(err.err, FI_EOVERRUN);
	}
	fab_eq_purge(eq, NULL, NULL);
	net_shut(&eq->eq_fid.fid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, net_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_come_in_order_and_can_be_peeked_at),
		TEST(private_data_is_cut_to_the_room_there_is),
		TEST(error_stands_in_order_and_keeps_its_data),
		TEST(old_applications_are_shown_our_err_data),
		TEST(application_writes_events_if_it_asked_for_that),
		TEST(strerror_fits_the_buffer),
		TEST(purge_drops_the_events_of_one_object),
		TEST(close_waits_for_what_is_bound),
		TEST(every_engine_is_driven),
		TEST(sread_ends_at_its_deadline_and_not_before),
		TEST(sread_needs_a_wait_object),
		TEST(attributes_that_make_no_sense_are_refused),
		TEST(open_undoes_what_it_did),
		TEST(engine_that_cannot_be_added_leaves_nothing),
		TEST(event_without_memory_is_an_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
