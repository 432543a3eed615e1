/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer writes to a program that sleeps, and waits for the acknowledgement: it comes though nothing else arrives.
 *
 * The second write makes a frame as long as what is read at a time behind a long payload. So the read comes back full,
 * and the acknowledgement is left to the next one, which would find nothing.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "common/queue/eq_engines.h"
#include "remote.h"
#include "tcp/params/params.h"

#define KEY		1
#define LONG_LEN	40000		/* of which the payload is read straight to its place */
#define FULL_LEN	(4096 - sizeof(struct write_hdr))

struct write_hdr {
	struct tcp_hdr hdr;
	struct tcp_rma_iov rma;
};

/* Each write begins at its start. */
static volatile char target[LONG_LEN];

struct sleeper {
	struct node node;
	struct fid_eq *eq;
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	struct peer peer;
	int stream;			/* the peer's end */
	int fd;				/* of the queue, where the sleeper asked for it */
	pthread_t thread;
	void (*sleep)(struct sleeper *sleeper);	/* NULL: there is no thread */
	void (*wake)(struct sleeper *sleeper);
	atomic_bool stop;
};

static void open_queues(struct sleeper *sleeper)
{
	struct node *node = &sleeper->node;
	struct fi_eq_attr eq_attr = { .flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cntr_attr cntr_attr = { .wait_obj = FI_WAIT_UNSPEC };

	node_open_at(node, FI_MSG | FI_RMA | FI_RMA_EVENT, 0);
	assert_int_equal(fi_close(&node->ep->fid), 0);
	assert_int_equal(fi_eq_open(node->fabric, &eq_attr, &sleeper->eq, NULL), 0);
	assert_int_equal(fi_cntr_open(node->domain, &cntr_attr, &sleeper->cntr, NULL), 0);
	assert_int_equal(fi_mr_reg(node->domain, (void *) target, sizeof(target), FI_REMOTE_WRITE, 0, KEY, 0,
				   &sleeper->mr, NULL), 0);
	node_open_ep(node);
	/* as it is where the endpoint joins a collective */
	assert_int_equal(fab_eq_add_engine((struct fab_eq *) sleeper->eq, fab_ep_of(&node->ep->fid)->engine), 0);
}

static int setup(void **state)
{
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .credit = 4096 };
	struct sleeper *sleeper = calloc(1, sizeof(*sleeper));

	memset((void *) target, 0, sizeof(target));
	tcp_params.user_timeout_ms = 0;		/* or its timer wakes the sleeper in the end */
	open_queues(sleeper);
	sleeper->peer = peer_open(&sleeper->node);
	sleeper->stream = connected_ext(&sleeper->node, &sleeper->peer, &hello);
	*state = sleeper;
	return 0;
}

static int teardown(void **state)
{
	struct sleeper *sleeper = *state;

	if (sleeper->sleep) {
		sleeper->stop = true;
		sleeper->wake(sleeper);
		pthread_join(sleeper->thread, NULL);
	}
	fab_eq_del_engine((struct fab_eq *) sleeper->eq, fab_ep_of(&sleeper->node.ep->fid)->engine);
	peer_close(&sleeper->peer, sleeper->stream);
	assert_int_equal(fi_close(&sleeper->mr->fid), 0);
	assert_int_equal(fi_close(&sleeper->node.ep->fid), 0);
	assert_int_equal(fi_close(&sleeper->cntr->fid), 0);
	assert_int_equal(fi_close(&sleeper->node.cq->fid), 0);
	assert_int_equal(fi_close(&sleeper->node.av->fid), 0);
	assert_int_equal(fi_close(&sleeper->node.domain->fid), 0);
	assert_int_equal(fi_close(&sleeper->eq->fid), 0);
	assert_int_equal(fi_close(&sleeper->node.fabric->fid), 0);
	fi_freeinfo(sleeper->node.info);
	free(sleeper);
	return 0;
}

/* ---- the peer ---- */

static void peer_write(struct sleeper *sleeper, size_t len)
{
	struct write_hdr hdr = {
		.hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_WRITE, .flags = TCP_FLAG_DELIVERY,
			 .rma_iov_cnt = 1, .hdr_size = sizeof(hdr), .size = sizeof(hdr) + len },
		.rma = { 0, len, KEY },
	};
	uint8_t frame[sizeof(hdr) + LONG_LEN];

	memcpy(frame, &hdr, sizeof(hdr));
	memset(frame + sizeof(hdr), 'x', len);
	raw_send(sleeper->stream, frame, sizeof(hdr) + len);
}

static void leave_alone(void *arg)
{
	(void) arg;
}

static void expect_ack(struct sleeper *sleeper)
{
	struct {
		struct tcp_hdr hdr;
		struct tcp_ack ack;
	} ack;

	raw_recv(sleeper->stream, &ack, sizeof(ack), leave_alone, NULL);
	assert_int_equal(ack.hdr.op, TCP_WIRE_ACK);
	assert_int_equal(ack.ack.cnt, 1);
	assert_int_equal(ack.ack.err, 0);
}

/* ---- those who sleep ---- */

static void sleep_cq(struct sleeper *sleeper)
{
	struct fi_cq_data_entry entry;

	fi_cq_sread(sleeper->node.cq, &entry, 1, NULL, -1);
}

static void wake_cq(struct sleeper *sleeper)
{
	fi_cq_signal(sleeper->node.cq);
}

static void sleep_cntr(struct sleeper *sleeper)
{
	fi_cntr_wait(sleeper->cntr, 1, -1);
}

static void wake_cntr(struct sleeper *sleeper)
{
	fi_cntr_add(sleeper->cntr, 1);
}

static void sleep_eq(struct sleeper *sleeper)
{
	struct fi_eq_entry entry;
	uint32_t event;

	fi_eq_sread(sleeper->eq, &event, &entry, sizeof(entry), -1, 0);
}

static void wake_eq(struct sleeper *sleeper)
{
	struct fi_eq_entry entry = { 0 };

	fi_eq_write(sleeper->eq, FI_NOTIFY, &entry, sizeof(entry), 0);
}

/* As fi_trywait(3) has it. */
static void sleep_fd(struct sleeper *sleeper)
{
	struct fid *fid = &sleeper->node.cq->fid;
	struct pollfd pollfd = { .fd = sleeper->fd, .events = POLLIN };

	if (!fi_trywait(sleeper->node.fabric, &fid, 1))
		poll(&pollfd, 1, -1);
	drive(&sleeper->node);
}

/* Until the test ends. */
static void *sleeper_main(void *arg)
{
	struct sleeper *sleeper = arg;

	while (!sleeper->stop)
		sleeper->sleep(sleeper);
	return NULL;
}

static void ask_for_fd(struct sleeper *sleeper)
{
	assert_int_equal(fi_control(&sleeper->node.cq->fid, FI_GETWAIT, &sleeper->fd), 0);
}

static void sleeper_acknowledges(struct sleeper *sleeper, void (*sleep)(struct sleeper *sleeper),
				 void (*wake)(struct sleeper *sleeper))
{
	sleeper->sleep = sleep;
	sleeper->wake = wake;
	assert_int_equal(pthread_create(&sleeper->thread, NULL, sleeper_main, sleeper), 0);
	peer_write(sleeper, LONG_LEN);
	expect_ack(sleeper);
	peer_write(sleeper, FULL_LEN);
	expect_ack(sleeper);
}

static void asleep_in_cq_sread(void **state)
{
	sleeper_acknowledges(*state, sleep_cq, wake_cq);
}

static void asleep_in_cntr_wait(void **state)
{
	sleeper_acknowledges(*state, sleep_cntr, wake_cntr);
}

static void asleep_in_eq_sread(void **state)
{
	sleeper_acknowledges(*state, sleep_eq, wake_eq);
}

static void asleep_on_a_descriptor(void **state)
{
	ask_for_fd(*state);
	sleeper_acknowledges(*state, sleep_fd, wake_cq);
}

/* Whoever has the descriptor may sleep on it at any time: nothing is left for the next look of somebody else. */
static void who_looks_leaves_nothing_to_who_may_sleep(void **state)
{
	struct sleeper *sleeper = *state;

	ask_for_fd(sleeper);
	peer_write(sleeper, LONG_LEN);
	while (target[LONG_LEN - 1] != 'x')
		drive(&sleeper->node);
	expect_ack(sleeper);
	memset((void *) target, 0, sizeof(target));
	peer_write(sleeper, FULL_LEN);
	while (target[FULL_LEN - 1] != 'x')
		drive(&sleeper->node);
	expect_ack(sleeper);
}

/* ---- many peers ---- */

#define CROWD		6		/* more than the sources that are read before epoll is asked */
#define PASSES		50

static void write_all(struct sleeper *crowd, size_t len)
{
	memset((void *) target, 0, sizeof(target));
	for (int i = 0; i < CROWD; i++)
		peer_write(&crowd[i], len);
	for (int i = 0; i < PASSES; i++)
		drive(&crowd[0].node);
	assert_int_equal(target[len - 1], 'x');
}

/* Each peer has its acknowledgement, without a further pass. */
static void expect_all_acks(struct sleeper *crowd)
{
	uint8_t byte;

	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(recv(crowd[i].stream, &byte, 1, MSG_PEEK | MSG_DONTWAIT), 1);
		expect_ack(&crowd[i]);
	}
}

/* So many peers write at once that none of their streams is read again without an event of epoll, and each read comes
 * back full. */
static void crowd_is_acknowledged(void **state)
{
	struct sleeper *sleeper = *state, crowd[CROWD] = { *sleeper };

	for (int i = 1; i < CROWD; i++) {
		const struct tcp_hello hello = { .incarnation = 1 + (uint64_t) i, .eager_max = 4096, .credit = 4096 };

		crowd[i].peer = peer_open(&sleeper->node);
		crowd[i].stream = connected_ext(&sleeper->node, &crowd[i].peer, &hello);
	}
	write_all(crowd, LONG_LEN);
	expect_all_acks(crowd);
	write_all(crowd, FULL_LEN);
	expect_all_acks(crowd);
	for (int i = 1; i < CROWD; i++)
		peer_close(&crowd[i].peer, crowd[i].stream);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(asleep_in_cq_sread),
		TEST(asleep_in_cntr_wait),
		TEST(asleep_in_eq_sread),
		TEST(asleep_on_a_descriptor),
		TEST(who_looks_leaves_nothing_to_who_may_sleep),
		TEST(crowd_is_acknowledged),
	};

	return cmocka_run_group_tests_name("tcp/asleep", tests, NULL, NULL);
}
