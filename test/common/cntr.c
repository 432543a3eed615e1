/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Counters: values, waiting with a threshold and for errors, when a descriptor is readable, attributes.
 */
#include "net.h"

/* An operation of len bytes ends, well or not. */
static void count(struct fab_cntr *cntr, size_t len, bool failed)
{
	fab_engine_lock(cntr->wait.engine);
	if (failed)
		fab_cntr_err(cntr);
	else
		fab_cntr_inc(cntr, len);
	fab_engine_unlock(cntr->wait.engine);
}

static void counts_operations_or_bytes_and_errors_apart(void **state)
{
	struct fab_cntr *comp = net_cntr(&net, (struct fi_cntr_attr) { .events = FI_CNTR_EVENTS_COMP });
	struct fab_cntr *bytes = net_cntr(&net, (struct fi_cntr_attr) { .events = FI_CNTR_EVENTS_BYTES });

	(void) state;
	count(comp, 1000, false);
	count(comp, 0, false);
	count(comp, 1000, true);
	count(bytes, 1000, false);
	count(bytes, 24, false);
	assert_int_equal(fi_cntr_read(&comp->cntr_fid), 2);
	assert_int_equal(fi_cntr_readerr(&comp->cntr_fid), 1);
	assert_int_equal(fi_cntr_read(&bytes->cntr_fid), 1024);
	assert_int_equal(fi_cntr_readerr(&bytes->cntr_fid), 0);
	net_shut(&comp->cntr_fid.fid);
	net_shut(&bytes->cntr_fid.fid);
}

static void application_can_add_and_set(void **state)
{
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { 0 });
	struct fid_cntr *fid = &cntr->cntr_fid;

	(void) state;
	assert_int_equal(fi_cntr_add(fid, 5), 0);
	assert_int_equal(fi_cntr_add(fid, 6), 0);
	assert_int_equal(fi_cntr_read(fid), 11);
	assert_int_equal(fi_cntr_set(fid, 3), 0);
	assert_int_equal(fi_cntr_read(fid), 3);
	assert_int_equal(fi_cntr_set(fid, UINT64_MAX), 0);
	assert_int_equal(fi_cntr_read(fid), UINT64_MAX);
	assert_int_equal(fi_cntr_adderr(fid, 2), 0);
	assert_int_equal(fi_cntr_readerr(fid), 2);
	assert_int_equal(fi_cntr_seterr(fid, 0), 0);
	assert_int_equal(fi_cntr_readerr(fid), 0);
	net_shut(&fid->fid);
}

/* Reading the same value again makes progress; a new value is given without. */
static void reading_makes_progress(void **state)
{
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { 0 });
	struct feed feed = { .cntr = cntr };

	(void) state;
	feed_open(&feed, cntr->wait.engine);
	feed_write(&feed);
	assert_int_equal(fi_cntr_read(&cntr->cntr_fid), 1);
	count(cntr, 1, false);
	spy_reset();
	assert_int_equal(fi_cntr_read(&cntr->cntr_fid), 2);
	assert_int_equal(spy.all, 0);
	assert_int_equal(fi_cntr_read(&cntr->cntr_fid), 2);
	assert_in_range(spy.all, 0, 1);
	feed_write(&feed);
	assert_int_equal(fi_cntr_readerr(&cntr->cntr_fid), 0);
	assert_int_equal(atomic_load(&cntr->value), 3);
	feed_close(&feed);
	net_shut(&cntr->cntr_fid.fid);
}

static void wait_ends_at_the_threshold_an_error_or_the_deadline(void **state)
{
	static const enum fi_wait_obj objs[] = { FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD, FI_WAIT_MUTEX_COND };

	(void) state;
	for (size_t i = 0; i < fab_countof(objs); i++) {
		struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { .wait_obj = objs[i] });
		struct fid_cntr *fid = &cntr->cntr_fid;
		struct feed feed = { .cntr = cntr };
		uint64_t start = fab_now_ns();

		feed_open(&feed, cntr->wait.engine);
		assert_int_equal(fi_cntr_wait(fid, 0, -1), 0);
		assert_int_equal(fi_cntr_wait(fid, 1, 0), -FI_ETIMEDOUT);
		assert_int_equal(fi_cntr_wait(fid, 1, 20), -FI_ETIMEDOUT);
		assert_in_range(elapsed_ms(start), 20, 1000);
		feed_write(&feed);
		feed_write(&feed);
		assert_int_equal(fi_cntr_wait(fid, 2, -1), 0);
		assert_int_equal(fi_cntr_wait(fid, 3, 20), -FI_ETIMEDOUT);

		/* an error ends one wait; the next one waits for a further error */
		count(cntr, 1, true);
		assert_int_equal(fi_cntr_wait(fid, 3, -1), -FI_EAVAIL);
		assert_int_equal(fi_cntr_wait(fid, 3, 1), -FI_ETIMEDOUT);
		assert_int_equal(fi_cntr_readerr(fid), 1);
		count(cntr, 1, true);
		assert_int_equal(fi_cntr_wait(fid, 2, -1), 0);		/* reached all the same */
		assert_int_equal(fi_cntr_wait(fid, 3, -1), -FI_EAVAIL);
		feed_close(&feed);
		net_shut(&fid->fid);
	}
}

static void wait_without_a_wait_object(void **state)
{
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { .wait_obj = FI_WAIT_NONE });

	(void) state;
	assert_int_equal(fi_cntr_wait(&cntr->cntr_fid, 0, 0), 0);
	assert_int_equal(fi_cntr_wait(&cntr->cntr_fid, 1, 0), -FI_ETIMEDOUT);
	assert_int_equal(fi_cntr_wait(&cntr->cntr_fid, 1, 5), -FI_ETIMEDOUT);
	count(cntr, 1, false);
	assert_int_equal(fi_cntr_wait(&cntr->cntr_fid, 1, -1), 0);
	net_shut(&cntr->cntr_fid.fid);
}

static void fd_is_readable_while_there_is_a_value_not_seen(void **state)
{
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { .wait_obj = FI_WAIT_FD });
	struct fid_cntr *fid = &cntr->cntr_fid;
	int fd = -1;

	(void) state;
	assert_int_equal(fi_control(&fid->fid, FI_GETWAIT, &fd), 0);
	assert_false(readable(fd));
	count(cntr, 1, false);
	assert_true(readable(fd));
	assert_int_equal(fi_cntr_read(fid), 1);
	assert_false(readable(fd));
	count(cntr, 1, true);
	assert_true(readable(fd));
	assert_int_equal(fi_cntr_read(fid), 1);
	assert_true(readable(fd));
	assert_int_equal(fi_cntr_readerr(fid), 1);
	assert_false(readable(fd));
	net_shut(&fid->fid);
}

static void attributes_that_make_no_sense_are_refused(void **state)
{
	struct fi_cntr_attr bad[] = {
		{ .events = FI_CNTR_EVENTS_BYTES + 1 }, { .wait_obj = FI_WAIT_POLLFD + 1 }, { .flags = 1 },
		{ .wait_obj = FI_WAIT_SET },
	};
	struct fi_cntr_attr fd = { .wait_obj = FI_WAIT_FD };
	struct fid_cntr *fid = NULL;

	(void) state;
	for (size_t i = 0; i < fab_countof(bad); i++)
		assert_int_equal(fab_cntr_open(&net.domain.domain_fid, &bad[i], &fid, NULL), -FI_EINVAL);
	fail_alloc(0);
	assert_int_equal(fab_cntr_open(&net.domain.domain_fid, NULL, &fid, NULL), -FI_ENOMEM);
	fail_alloc(-1);
	spy_fail(0, EMFILE);
	assert_int_equal(fab_cntr_open(&net.domain.domain_fid, &fd, &fid, NULL), -FI_EMFILE);
	assert_null(fid);
}

static void control_and_close(void **state)
{
	struct fab_cntr *cntr = net_cntr(&net, (struct fi_cntr_attr) { 0 });
	uint64_t flags = FI_COMPLETION;

	(void) state;
	assert_int_equal(fi_control(&cntr->cntr_fid.fid, FI_SETOPSFLAG, &flags), 0);
	flags = 0;
	assert_int_equal(fi_control(&cntr->cntr_fid.fid, FI_GETOPSFLAG, &flags), 0);
	assert_int_equal(flags, FI_COMPLETION);
	assert_int_equal(fi_control(&cntr->cntr_fid.fid, FI_GETOPSFLAG, NULL), -FI_EINVAL);
	assert_int_equal(fi_control(&cntr->cntr_fid.fid, FI_BACKLOG, &flags), -FI_ENOSYS);
	cntr->ref++;
	assert_int_equal(fi_close(&cntr->cntr_fid.fid), -FI_EBUSY);
	cntr->ref--;
	net_shut(&cntr->cntr_fid.fid);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, net_setup, net_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(counts_operations_or_bytes_and_errors_apart),
		TEST(application_can_add_and_set),
		TEST(reading_makes_progress),
		TEST(wait_ends_at_the_threshold_an_error_or_the_deadline),
		TEST(wait_without_a_wait_object),
		TEST(fd_is_readable_while_there_is_a_value_not_seen),
		TEST(attributes_that_make_no_sense_are_refused),
		TEST(control_and_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
