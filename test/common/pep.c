/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints: the handles of connection requests, and what becomes of requests that nobody takes. What listens
 * is made up: the test reports the requests itself.
 */
#include "unit.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include "common/endpoint/pep.h"
#include "offer.h"
#include "world.h"

#define REQUESTS	100

static struct world world;
static struct fid_eq *eq;
static struct fab_pep *pep;
static unsigned refused, dropped;
static bool locked;		/* fabric->lock was held when a request was dropped */

static int listen_nowhere(struct fab_pep *it)
{
	(void) it;
	return 0;
}

static void nothing_to_undo(struct fab_pep *it)
{
	(void) it;
}

static void refuse(struct fab_connreq *req, const void *data, size_t len)
{
	(void) data, (void) len;
	refused++;
	free(req);
}

static void drop(struct fab_connreq *req)
{
	dropped++;
	if (pthread_mutex_trylock(&world.fabric.lock))
		locked = true;
	else
		pthread_mutex_unlock(&world.fabric.lock);
	free(req);
}

static const struct fab_pep_ops ops = {
	.cm_data_max = 16, .bind = listen_nowhere, .unbind = nothing_to_undo, .listen = listen_nowhere,
	.stop = nothing_to_undo, .fini = nothing_to_undo, .reject = refuse, .drop = drop,
};

static int open_pep(void **state)
{
	(void) state;
	refused = dropped = 0;
	locked = false;
	world_open(&world, &(struct world_attr) { .type = FI_EP_MSG });
	eq = open_eq(&world);
	pep = calloc(1, sizeof(*pep));
	assert_int_equal(fab_pep_init(pep, &world.fabric, world.info, &ops, NULL), 0);
	assert_int_equal(fi_pep_bind(&pep->pep_fid, &eq->fid, 0), 0);
	assert_int_equal(fi_listen(&pep->pep_fid), 0);
	return 0;
}

static int close_eq(void **state)
{
	(void) state;
	assert_int_equal(fi_close(&eq->fid), 0);
	world_close(&world);
	return 0;
}

static void report_request(void)
{
	struct fab_connreq *req = calloc(1, sizeof(*req));

	req->local.ip.sin = req->remote.ip.sin = (struct sockaddr_in) { .sin_family = AF_INET };
	fab_pep_request(pep, req, NULL, 0);
}

/* A request comes: its handle. */
static fid_t next_request(void)
{
	struct fi_eq_cm_entry entry;
	uint32_t event;
	fid_t handle;

	report_request();
	assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	assert_int_equal(event, FI_CONNREQ);
	handle = entry.info->handle;
	assert_int_equal(handle->fclass, FI_CLASS_CONNREQ);
	fi_freeinfo(entry.info);
	return handle;
}

static int reject(fid_t handle)
{
	return fi_reject(&pep->pep_fid, handle, NULL, 0);
}

/* Also where malloc() gives the memory of an answered request to the next one. */
static void a_handle_that_was_used_means_no_later_request(void **state)
{
	fid_t handles[REQUESTS], last;

	(void) state;
	for (unsigned i = 0; i < REQUESTS; i++) {
		handles[i] = next_request();
		for (unsigned k = 0; k < i; k++)
			assert_ptr_not_equal(handles[k], handles[i]);
		assert_int_equal(reject(handles[i]), 0);
	}
	last = next_request();
	assert_int_equal(reject(handles[REQUESTS - 1]), -FI_EINVAL);
	assert_int_equal(reject(NULL), -FI_EINVAL);
	assert_int_equal(refused, REQUESTS);
	assert_int_equal(reject(last), 0);
	assert_int_equal(fi_close(&pep->pep_fid.fid), 0);
	assert_int_equal(dropped, 0);
}

static void handles_of_answered_requests_are_kept_within_a_bound(void **state)
{
	(void) state;
	for (unsigned i = 0; i < FAB_CONNREQ_OLD_MAX + 10; i++)
		assert_int_equal(reject(next_request()), 0);
	assert_int_equal(world.fabric.old_connreq_cnt, FAB_CONNREQ_OLD_MAX);
	assert_int_equal(fi_close(&pep->pep_fid.fid), 0);
}

/* A provider that refuses a request may wait for the kernel, while engines want the fabric's lock. */
static void requests_that_nobody_took_are_dropped_without_the_fabrics_lock(void **state)
{
	(void) state;
	report_request();
	next_request();
	assert_int_equal(fi_close(&pep->pep_fid.fid), 0);
	assert_int_equal(dropped, 2);
	assert_false(locked);
}

/* Allocations: the handle, and what the event is made of. */
static void a_request_without_memory_is_dropped(void **state)
{
	struct fab_connreq *req;

	(void) state;
	for (long n = 0; n < 3; n++) {
		req = calloc(1, sizeof(*req));
		fail_alloc(n);
		fab_pep_request(pep, req, NULL, 0);
		fail_alloc(-1);
		assert_int_equal(dropped, n + 1);
	}
	assert_true(fab_pep_room(pep, 0));
	assert_int_equal(pep->req_cnt, 0);
	assert_int_equal(fi_close(&pep->pep_fid.fid), 0);
}

static void note_pep(struct fab_pep *it, void *to)
{
	*(struct fab_pep **) to = it;
	assert_int_not_equal(pthread_mutex_trylock(&world.fabric.lock), 0);
}

/* An endpoint can have the address of a passive endpoint that does not listen. */
static void only_a_bound_address_can_be_taken(void **state)
{
	struct fab_pep *idle = calloc(1, sizeof(*idle)), *taken = NULL;

	(void) state;
	assert_int_equal(fab_pep_take(&world.fabric, &pep->pep_fid.fid, note_pep, &taken), -FI_EOPBADSTATE);
	assert_int_equal(fab_pep_take(&world.fabric, &eq->fid, note_pep, &taken), -FI_ENOENT);
	assert_null(taken);
	assert_int_equal(fab_pep_init(idle, &world.fabric, world.info, &ops, NULL), 0);
	assert_int_equal(fab_pep_take(&world.fabric, &idle->pep_fid.fid, note_pep, &taken), 0);
	assert_ptr_equal(taken, idle);
	assert_int_equal(fi_close(&idle->pep_fid.fid), 0);
	assert_int_equal(fi_close(&pep->pep_fid.fid), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_pep, close_eq)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_handle_that_was_used_means_no_later_request),
		TEST(handles_of_answered_requests_are_kept_within_a_bound),
		TEST(requests_that_nobody_took_are_dropped_without_the_fabrics_lock),
		TEST(a_request_without_memory_is_dropped),
		TEST(only_a_bound_address_can_be_taken),
	};

	fab_pep_fill_ops();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
