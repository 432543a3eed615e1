/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What counters trigger, where an endpoint and its counter have different engines (FI_THREAD_COMPLETION): it begins
 * on the endpoint's, with that lock held; counters that nothing else uses move over; two threads lose and repeat
 * nothing.
 */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <rdma/fi_errno.h>
#include "common/calls/calls.h"
#include "common/ops/ops.h"
#include "common/trigger/trigger.h"
#include "world.h"

#define ROUNDS 2000

/* Operations that began, in order; submit() ends each at once. */
static void *begun[ROUNDS];
static _Atomic unsigned begun_cnt;
static struct fab_ep *submitted_on;

static int submit(struct fab_ep *ep, const struct fab_op *op)
{
	const struct fab_comp comp = { .context = op->context };
	struct fab_hook *hook = op->context;

	submitted_on = ep;
	begun[begun_cnt++] = op->context;
	if (op->hooked)
		hook->done(hook, op->code, &comp, NULL);
	return 0;
}

static ssize_t trigger(struct fab_ep *ep, const struct fab_op *op)
{
	ssize_t ret;

	fab_engine_lock(ep->engine);
	ret = fab_trigger_op(ep, op, submit);
	fab_engine_unlock(ep->engine);
	return ret;
}

static const struct fi_provider prov = { .name = "test" };
static const struct fab_calls calls = {
	.prov = &prov, .submit = trigger, .post_recv = trigger, .send_flags = FI_TRIGGER | FI_INJECT, .iov_limit = 1,
};

static int bind_ep(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return fab_ep_bind(fid, bfid, flags);
}

static struct fi_ops fid_ops = { .bind = bind_ep };
static struct fi_ops_ep ep_ops;
static struct fi_ops_msg msg_ops = { .size = sizeof(struct fi_ops_msg), .sendmsg = call_sendmsg };
static const struct fab_ep_ops ops = { .fid = &fid_ops, .ep = &ep_ops, .msg = &msg_ops };

/* Two endpoints, each with a CQ and a counter and so an engine of its own. */
struct two {
	struct world world;
	struct fab_ep ep[2];
	struct fid_av *av[2];
	struct fid_cq *cq[2];
	struct fid_cntr *cntr[2];
};

static void two_open(struct two *two)
{
	struct fi_info *info;

	world_open(&two->world, &(struct world_attr) { .threading = FI_THREAD_COMPLETION });
	info = fi_dupinfo(two->world.info);
	info->caps |= FI_TRIGGER;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fab_ep_init(&two->ep[i], &two->world.domain, info, &ops, NULL), 0);
		two->av[i] = open_av_table(&two->world);
		two->cq[i] = open_cq(&two->world);
		two->cntr[i] = open_cntr(&two->world);
		assert_int_equal(fi_ep_bind(&two->ep[i].ep_fid, &two->cq[i]->fid, FI_TRANSMIT | FI_RECV), 0);
		assert_int_equal(fi_ep_bind(&two->ep[i].ep_fid, &two->cntr[i]->fid, FI_SEND), 0);
		assert_int_equal(fi_ep_bind(&two->ep[i].ep_fid, &two->av[i]->fid, 0), 0);
		assert_int_equal(fab_ep_check_enable(&two->ep[i]), 0);
		two->ep[i].enabled = true;
	}
	fi_freeinfo(info);
	begun_cnt = 0;
}

static void two_close(struct two *two)
{
	for (int i = 0; i < 2; i++) {
		fab_trigger_close(&two->ep[i]);
		fab_ep_fini(&two->ep[i]);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_close(&two->cntr[i]->fid), 0);
		assert_int_equal(fi_close(&two->cq[i]->fid), 0);
		assert_int_equal(fi_close(&two->av[i]->fid), 0);
	}
	world_close(&two->world);
}

static struct fi_triggered_context at(struct fid_cntr *cntr, size_t threshold)
{
	return (struct fi_triggered_context) { FI_TRIGGER_THRESHOLD, { .threshold = { cntr, threshold } } };
}

static ssize_t send_at(struct fab_ep *ep, struct fi_triggered_context *context)
{
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = context };

	return fi_sendmsg(&ep->ep_fid, &msg, FI_TRIGGER);
}

static void begins_on_the_engine_of_its_endpoint(void **state)
{
	struct fi_triggered_context context;
	struct two two;

	(void) state;
	two_open(&two);
	context = at(two.cntr[0], 1);
	assert_int_equal(send_at(&two.ep[1], &context), 0);
	assert_int_equal(fi_cntr_add(two.cntr[0], 1), 0);
	assert_int_equal(begun_cnt, 0);
	assert_int_equal(fi_cq_read(two.cq[0], NULL, 0), -FI_EAGAIN);
	assert_int_equal(begun_cnt, 0);
	assert_int_equal(fi_cq_read(two.cq[1], NULL, 0), -FI_EAGAIN);
	assert_int_equal(begun_cnt, 1);
	assert_ptr_equal(begun[0], &context);
	assert_ptr_equal(submitted_on, &two.ep[1]);
	two_close(&two);
}

/* The completion counter is another endpoint's: it counts there. */
static void completion_is_counted_where_its_counter_is(void **state)
{
	struct fi_op_msg op = { 0 };
	struct fi_deferred_work work = { .threshold = 1, .op_type = FI_OP_SEND, .op.msg = &op };
	struct two two;

	(void) state;
	two_open(&two);
	op.ep = &two.ep[1].ep_fid;
	work.triggering_cntr = two.cntr[1];
	work.completion_cntr = two.cntr[0];
	assert_int_equal(fab_work_control(&two.world.domain, &calls, FI_QUEUE_WORK, &work), 0);
	assert_int_equal(fi_cntr_add(two.cntr[1], 1), 0);
	assert_int_equal(begun_cnt, 1);
	assert_int_equal(fi_cntr_read(two.cntr[0]), 1);
	assert_int_equal(fi_cq_read(two.cq[1], NULL, 0), -FI_EAGAIN);
	two_close(&two);
}

/* Flushing works, or closing the endpoint, counts what has ended and lets go of its counters, though nobody reads the
 * completion counter, which is on another engine. */
static void ended_work_lets_go_of_its_counters(void **state)
{
	struct fi_op_msg op = { 0 };
	struct fi_deferred_work work = { .threshold = 1, .op_type = FI_OP_SEND, .op.msg = &op };
	struct two two;

	(void) state;
	two_open(&two);
	op.ep = &two.ep[1].ep_fid;
	work.completion_cntr = two.cntr[0];
	for (unsigned i = 0; i < 2; i++) {
		work.triggering_cntr = open_cntr(&two.world);
		assert_int_equal(fab_work_control(&two.world.domain, &calls, FI_QUEUE_WORK, &work), 0);
		assert_int_equal(fi_cntr_add(work.triggering_cntr, 1), 0);
		assert_int_equal(begun_cnt, i + 1);
		assert_int_equal(fab_work_control(&two.world.domain, &calls, FI_CANCEL_WORK, &work), -FI_ENOENT);
		if (i)
			fab_trigger_close(&two.ep[1]);
		else
			assert_int_equal(fab_work_control(&two.world.domain, &calls, FI_FLUSH_WORK, NULL), 0);
		assert_int_equal(fi_close(&work.triggering_cntr->fid), 0);
		assert_int_equal(fi_cntr_read(two.cntr[0]), i + 1);
	}
	two_close(&two);
}

/* An application sees the end of a work in the CQ, and closes the completion counter, which is on another engine: the
 * work has let go of it. */
static void ended_work_lets_go_of_a_counter_that_closes(void **state)
{
	struct fi_op_msg op = { 0 };
	struct fi_deferred_work work = { .threshold = 1, .op_type = FI_OP_SEND, .op.msg = &op };
	struct two two;

	(void) state;
	two_open(&two);
	work.completion_cntr = open_cntr(&two.world);
	for (int i = 0; i < 2; i++) {
		op.ep = &two.ep[i].ep_fid;
		work.triggering_cntr = two.cntr[i];
		assert_int_equal(fab_work_control(&two.world.domain, &calls, FI_QUEUE_WORK, &work), 0);
		assert_int_equal(fi_close(&work.completion_cntr->fid), -FI_EBUSY);
		assert_int_equal(fi_cntr_add(two.cntr[i], 1), 0);
		assert_int_equal(begun_cnt, i + 1);
	}
	assert_int_equal(fi_close(&work.completion_cntr->fid), 0);
	two_close(&two);
}

/* Deferred work is refused for what its call would be refused for; nothing waits afterwards. */
static void work_is_refused_like_its_call(void **state)
{
	struct iovec iov[2] = { 0 };
	struct fi_op_msg op = { .msg = { .msg_iov = iov } };
	struct fi_deferred_work work = { .threshold = 1, .op_type = FI_OP_SEND, .op.msg = &op };
	struct world other;
	struct two two;

	(void) state;
	two_open(&two);
	world_open(&other, &(struct world_attr) { 0 });
	op.ep = &two.ep[1].ep_fid;
	work.triggering_cntr = two.cntr[1];
	assert_int_equal(fab_work_control(&other.domain, &calls, FI_QUEUE_WORK, &work), -FI_EINVAL);
	op.flags = FI_FENCE;
	assert_int_equal(fab_work_control(&two.world.domain, &calls, FI_QUEUE_WORK, &work), -FI_EBADFLAGS);
	op.flags = FI_INJECT;
	op.msg.iov_count = 2;
	assert_int_equal(fab_work_control(&two.world.domain, &calls, FI_QUEUE_WORK, &work), -FI_EINVAL);
	op.msg.iov_count = 1;
	work.op_type = FI_OP_RECV;
	assert_int_equal(fab_work_control(&two.world.domain, &calls, FI_QUEUE_WORK, &work), -FI_ENOSYS);
	assert_int_equal(fi_cntr_add(two.cntr[1], 1), 0);
	assert_int_equal(begun_cnt, 0);
	work.op_type = FI_OP_SEND;
	assert_int_equal(fab_work_control(&two.world.domain, &calls, FI_QUEUE_WORK, &work), 0);
	assert_int_equal(begun_cnt, 1);
	two_close(&two);
	world_close(&other);
}

/* A counter of which nobody would make progress moves to who uses it. */
static void free_counter_joins(void **state)
{
	struct fi_triggered_context context;
	struct fid_cntr *cntr;
	struct two two;

	(void) state;
	two_open(&two);
	cntr = open_cntr(&two.world);
	context = at(cntr, 1);
	assert_int_equal(send_at(&two.ep[0], &context), 0);
	assert_ptr_equal(fab_container(cntr, struct fab_cntr, cntr_fid)->wait.engine, two.ep[0].engine);
	assert_int_equal(fi_close(&cntr->fid), -FI_EBUSY);
	assert_int_equal(fi_cntr_add(cntr, 1), 0);
	assert_int_equal(begun_cnt, 1);
	assert_int_equal(fi_close(&cntr->fid), 0);
	two_close(&two);
}

struct drive {
	struct fid_cq *cq;
	_Atomic bool stop;
};

static void *drive(void *arg)
{
	struct drive *drive = arg;

	while (!drive->stop) {
		fi_cq_read(drive->cq, NULL, 0);
		sched_yield();
	}
	return NULL;
}

/* One thread counts, another one drives the endpoint: each begins once, in order. */
static void threads_lose_nothing(void **state)
{
	static struct fi_triggered_context context[ROUNDS];
	struct drive other = { 0 };
	pthread_t thread;
	struct two two;

	(void) state;
	two_open(&two);
	other.cq = two.cq[1];
	assert_int_equal(pthread_create(&thread, NULL, drive, &other), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		context[i] = at(two.cntr[0], i + 1);
		assert_int_equal(send_at(&two.ep[1], &context[i]), 0);
		if (i % 3)
			assert_int_equal(fi_cntr_add(two.cntr[0], 1), 0);
	}
	assert_int_equal(fi_cntr_add(two.cntr[0], ROUNDS), 0);
	while (begun_cnt < ROUNDS)
		sched_yield();
	other.stop = true;
	pthread_join(thread, NULL);
	for (unsigned i = 0; i < ROUNDS; i++)
		assert_ptr_equal(begun[i], &context[i]);
	two_close(&two);
}

/* No memory for the copy of the operation, or for the engine's list: refused, and nothing is kept. */
static void no_memory_is_refused(void **state)
{
	struct fi_triggered_context context;
	struct two two;

	(void) state;
	two_open(&two);
	context = at(two.cntr[0], 1);
	for (long n = 0; n < 2; n++) {
		fail_alloc(n);
		assert_int_equal(send_at(&two.ep[1], &context), -FI_ENOMEM);
		fail_alloc(-1);
	}
	assert_int_equal(send_at(&two.ep[1], &context), 0);
	two_close(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_on_the_engine_of_its_endpoint),
		cmocka_unit_test(completion_is_counted_where_its_counter_is),
		cmocka_unit_test(ended_work_lets_go_of_its_counters),
		cmocka_unit_test(ended_work_lets_go_of_a_counter_that_closes),
		cmocka_unit_test(work_is_refused_like_its_call),
		cmocka_unit_test(free_counter_joins),
		cmocka_unit_test(threads_lose_nothing),
		cmocka_unit_test(no_memory_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
