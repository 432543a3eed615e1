/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices as they are (SOFTVERBS_DEVICE, test/softverbs/model.c): what is announced is true of each, an object that
 * fails takes no others with it, and what a device tells beside completions is acted on.
 */
#include "link.h"
#include "../softverbs/stand_in.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MSG_LEN		64
#define PART		12		/* bytes of a message of more_rings_once() */
#define PARTS		20
#define MORE		8
#define MANY		50
#define CROWD		200
#define VECTORS		16
#define LONG_QUEUE	1100		/* operations: more than the first completion queue has room for */

static void tell(enum ibv_event_type type)
{
	((void (*)(enum ibv_event_type)) stand_in("sv_test_event"))(type);
}

/* ---- more connections between the domains of a link ---- */

struct one {
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

struct more {
	struct one a, b;
};

static void one_open(struct one *one, const struct end *end, struct fi_info *info)
{
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .size = 64 };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };

	MUST(fi_eq_open(end->fabric, &eq, &one->eq, NULL));
	MUST(fi_cq_open(end->domain, &cq, &one->cq, NULL));
	MUST(fi_endpoint(end->domain, info, &one->ep, NULL));
	MUST(fi_ep_bind(one->ep, &one->eq->fid, 0));
	MUST(fi_ep_bind(one->ep, &one->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_enable(one->ep));
}

/* b accepts what a's end requests. */
static void more_accept(struct link *link, struct more *more)
{
	struct fi_info *info = link_await_request(link).info;

	one_open(&more->b, &link->b, info);
	fi_freeinfo(info);
	MUST(fi_accept(more->b.ep, NULL, 0));
	MUST_BE(await_event(link, more->a.eq).event == FI_CONNECTED);
	MUST_BE(await_event(link, more->b.eq).event == FI_CONNECTED);
}

static void more_open(struct link *link, struct more *more)
{
	one_open(&more->a, &link->a, link->a.info);
	MUST(fi_connect(more->a.ep, link->a.info->dest_addr, NULL, 0));
	more_accept(link, more);
}

static void one_close(struct one *one)
{
	if (one->ep)
		MUST(fi_close(&one->ep->fid));
	MUST(fi_close(&one->cq->fid));
	MUST(fi_close(&one->eq->fid));
}

static void more_close(struct more *more)
{
	one_close(&more->a);
	one_close(&more->b);
}

/* A completion of this one, without driving the other end: 0, or its error. */
static int one_comp(const struct one *one)
{
	struct end end = { .cq = one->cq };
	struct link nobody = { 0 };

	return await_comp(&nobody, &end, NULL);
}

/* A message from a to b of a further connection arrives. */
static void more_send(struct link *link, struct more *more)
{
	MUST(fi_recv(more->b.ep, link->b.room, MSG_LEN, fi_mr_desc(link->b.mr), 0, NULL));
	MUST(fi_send(more->a.ep, link->a.room, MSG_LEN, fi_mr_desc(link->a.mr), 0, NULL));
	MUST_BE(!one_comp(&more->a));
	MUST_BE(!one_comp(&more->b));
}

/* ---- sizes ---- */

/* Everything that can be asked for can be had, up to the longest queue. */
static void largest_queue(void)
{
	struct fi_info *hints = hints_new(), *info = NULL;
	size_t good = 1, bad = 1 << 20;
	struct end end = { 0 };

	while (bad - good > 1) {
		struct fi_info *found;

		hints->tx_attr->size = (good + bad) / 2;
		if (fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &found)) {
			bad = hints->tx_attr->size;
			continue;
		}
		good = hints->tx_attr->size;
		fi_freeinfo(info);
		info = found;
	}
	fi_freeinfo(hints);
	MUST_BE(info && good >= 1000);
	end_open(&end, info);
	MUST(end_open_ep(&end));
	end_close(&end);
}

/* What is said of fi_inject is true: nothing at all may go. */
static void nothing_inline(void)
{
	struct link link = { 0 };

	link_open(&link);
	MUST_BE(link.a.info->tx_attr->inject_size == 0);
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	MUST_FAIL(fi_inject(link.a.ep, link.a.room, 1, 0), FI_EMSGSIZE);
	link_close(&link);
}

static void connects(void)
{
	struct link link = { 0 };

	link_open(&link);
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	MUST(fi_read(link.a.ep, link.a.room, 8, fi_mr_desc(link.a.mr), 0, (uintptr_t) link.b.room,
		     fi_mr_key(link.b.mr), NULL));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	link_close(&link);
}

/* ---- failures ---- */

/* An endpoint with so many receives closes. It has an unread message, and others come while it closes. A message for an
 * endpoint of the same completion queue came just before. */
static void closes_with(int receives)
{
	struct link link = { 0 };
	struct more more = { 0 };

	link_open(&link);
	MUST_BE(link.a.info->ep_attr->protocol == FI_PROTO_RDMA_CM_IB_XRC);
	more_open(&link, &more);
	for (int i = 0; i < receives; i++)
		MUST(fi_recv(more.b.ep, link.b.room, MSG_LEN, fi_mr_desc(link.b.mr), 0, NULL));
	MUST(fi_recv(link.b.ep, link.b.room, MSG_LEN, fi_mr_desc(link.b.mr), 0, NULL));
	MUST(fi_send(link.a.ep, link.a.room, MSG_LEN, fi_mr_desc(link.a.mr), 0, NULL));
	MUST(fi_send(more.a.ep, link.a.room, MSG_LEN, fi_mr_desc(link.a.mr), 0, NULL));
	/* when a knows of both, both are in b's queue */
	MUST_BE(!one_comp(&(struct one) { .cq = link.a.cq }));
	MUST_BE(!one_comp(&more.a));
	MUST(fi_close(&more.b.ep->fid));
	more.b.ep = NULL;
	MUST_BE(!await_comp(&link, &link.b, NULL));
	MUST_BE(!one_comp(&more.b));
	for (int i = 1; i < receives; i++)
		MUST_BE(one_comp(&more.b) == FI_ECANCELED);
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	more_close(&more);
	link_close(&link);
}

static void closes_unread(void)
{
	closes_with(4);
}

/* More polls fail than a queue that works may have in a row. */
static void closes_in_a_storm(void)
{
	closes_with(60);
}

/* A message of an initiator finds no receive: those behind it wait, for whichever queue they are, and come in order
 * when there is one. */
static void all_wait_for_a_receive(void)
{
	unsigned (*rnr_cnt)(void), (*most_under_way)(void), before;
	struct fi_cq_data_entry entry;
	struct link link = { 0 };
	struct more more = { 0 };

	link_open(&link);
	MUST_BE(link.a.info->ep_attr->protocol == FI_PROTO_RDMA_CM_IB_XRC);
	more_open(&link, &more);
	rnr_cnt = stand_in("sv_test_rnr_cnt");
	most_under_way = stand_in("sv_test_most_under_way");
	for (int i = 1; i < 5; i++)
		MUST(fi_recv(more.b.ep, link.b.room + i * PART, PART, fi_mr_desc(link.b.mr), 0, NULL));
	for (int i = 0; i < 5; i++) {
		memset(link.a.room + i * PART, 'a' + i, PART);
		MUST(fi_send(i ? more.a.ep : link.a.ep, link.a.room + i * PART, PART, fi_mr_desc(link.a.mr), 0, NULL));
	}
	before = rnr_cnt();
	while (rnr_cnt() < before + 3)
		MUST_FAIL(fi_cq_read(more.b.cq, &entry, 1), FI_EAGAIN);
	MUST_BE(most_under_way() >= 5);
	MUST_FAIL(fi_cq_read(more.b.cq, &entry, 1), FI_EAGAIN);
	MUST(fi_recv(link.b.ep, link.b.room, PART, fi_mr_desc(link.b.mr), 0, NULL));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	MUST_BE(!await_comp(&link, &link.b, NULL));
	for (int i = 1; i < 5; i++) {
		MUST_BE(!one_comp(&more.a));
		MUST_BE(!one_comp(&more.b));
	}
	for (int i = 0; i < 5 * PART; i++)
		MUST_BE(link.b.room[i] == 'a' + i / PART);
	more_close(&more);
	link_close(&link);
}

/* The peer of an endpoint posts no receive for long. Another endpoint shares its initiator, and may be what holds it up
 * as far as this end knows: neither connection ends. */
static void stall_of_a_shared_initiator(void)
{
	struct timespec begin, now;
	struct link link = { 0 };
	struct more more = { 0 };

	link_open(&link);
	more_open(&link, &more);
	MUST(fi_recv(more.b.ep, link.b.room, MSG_LEN, fi_mr_desc(link.b.mr), 0, NULL));
	MUST(fi_send(link.a.ep, link.a.room, MSG_LEN, fi_mr_desc(link.a.mr), 0, NULL));
	MUST(fi_send(more.a.ep, link.a.room, MSG_LEN, fi_mr_desc(link.a.mr), 0, NULL));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		fi_cq_read(link.a.cq, NULL, 0);
		fi_cq_read(more.a.cq, NULL, 0);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 500);
	MUST(fi_recv(link.b.ep, link.b.room, MSG_LEN, fi_mr_desc(link.b.mr), 0, NULL));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	MUST_BE(!await_comp(&link, &link.b, NULL));
	MUST_BE(!one_comp(&more.a));
	MUST_BE(!one_comp(&more.b));
	more_close(&more);
	link_close(&link);
}

/* The next message of an endpoint fails, as its initiator has; a new connection has another initiator. */
static void expect_new_initiator(struct link *link, struct more *failed)
{
	struct more next = { 0 };
	ssize_t ret = fi_send(failed->a.ep, link->a.room, MSG_LEN, fi_mr_desc(link->a.mr), 0, NULL);

	MUST_BE(ret || one_comp(&failed->a));
	more_open(link, &next);
	more_send(link, &next);
	more_close(&next);
	more_close(failed);
}

/* A request with a wrong key puts the initiator into error, also for those that share it. */
static void failure_of_a_shared_initiator(void)
{
	struct link link = { 0 };
	struct more more = { 0 };

	link_open(&link);
	more_open(&link, &more);
	more_send(&link, &more);
	MUST(fi_write(link.a.ep, link.a.room, MSG_LEN, fi_mr_desc(link.a.mr), 0, (uintptr_t) link.b.room,
		      fi_mr_key(link.b.mr) + 1, NULL));
	MUST_BE(await_comp(&link, &link.a, NULL) > 0);
	expect_new_initiator(&link, &more);
	link_close(&link);
}

/* An endpoint closes, and its message never finds a receive: it holds up those that share the initiator for a second,
 * and then the initiator ends. */
static void close_of_a_shared_initiator(void)
{
	struct link link = { 0 };
	struct more more = { 0 };

	link_open(&link);
	more_open(&link, &more);
	MUST(fi_send(link.a.ep, link.a.room, MSG_LEN, fi_mr_desc(link.a.mr), 0, NULL));
	MUST(fi_close(&link.a.ep->fid));
	link.a.ep = NULL;
	MUST_BE(await_comp(&link, &link.a, NULL) == FI_ECANCELED);
	expect_new_initiator(&link, &more);
	link_close(&link);
}

/* The endpoint that has made an initiator closes. Its requests go on completing where that endpoint's did, which has a
 * completion queue of the device for itself. */
static void maker_closes(void)
{
	struct link link = { 0 };
	struct more more = { 0 };
	size_t size;

	link_listen(&link);
	MUST(fi_close(&link.a.ep->fid));
	size = link.a.info->tx_attr->size;
	link.a.info->tx_attr->size = LONG_QUEUE;
	MUST(end_open_ep(&link.a));
	link_accept(&link, link_request(&link).info);
	link.a.info->tx_attr->size = size;
	more_open(&link, &more);
	MUST(fi_close(&link.a.ep->fid));
	link.a.ep = NULL;
	for (int i = 0; i < 3; i++)
		more_send(&link, &more);
	more_close(&more);
	link_close(&link);
}

/* A poll fails once: nothing ends. */
static void poll_fails(void)
{
	struct link link = { 0 };

	link_open(&link);
	for (int i = 0; i < 20; i++)
		link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	link_close(&link);
}

/* libsiw's errors of posting are negative. */
static void posts_fail(void)
{
	struct link link = { 0 };
	void *desc;

	link_open(&link);
	desc = fi_mr_desc(link.a.mr);
	setenv("SOFTVERBS_FAIL", "ibv_post_send:1=-ENOMEM,ibv_post_send:2=-EINVAL,ibv_post_send:3=EINVAL", 1);
	MUST_FAIL(fi_send(link.a.ep, link.a.room, MSG_LEN, desc, 0, NULL), FI_EAGAIN);
	MUST_FAIL(fi_send(link.a.ep, link.a.room, MSG_LEN, desc, 0, NULL), FI_EINVAL);
	MUST_FAIL(fi_send(link.a.ep, link.a.room, MSG_LEN, desc, 0, NULL), FI_EINVAL);
	link_send(&link, link.a.room, desc, MSG_LEN);
	unsetenv("SOFTVERBS_FAIL");
	link_close(&link);
}

/* Send the i-th part of a's room with these flags. */
static ssize_t send_part(struct link *link, int i, uint64_t flags)
{
	struct iovec iov = { link->a.room + i * PART, PART };
	void *desc = fi_mr_desc(link->a.mr);
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1 };

	memset(iov.iov_base, 'a' + i, PART);
	MUST(fi_recv(link->b.ep, link->b.room + i * PART, PART, fi_mr_desc(link->b.mr), 0, NULL));
	return fi_sendmsg(link->a.ep, &msg, flags | FI_COMPLETION);
}

/* The first cnt parts have arrived, in order. */
static void expect_parts(struct link *link, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		MUST_BE(!await_comp(link, &link->a, NULL));
		MUST_BE(!await_comp(link, &link->b, NULL));
	}
	for (int i = 0; i < cnt * PART; i++)
		MUST_BE(link->b.room[i] == 'a' + i / PART);
}

static void more_rings_once(void)
{
	struct link link = { 0 };
	unsigned (*rings)(void), before;

	link_open(&link);
	rings = stand_in("sv_test_doorbell_cnt");
	before = rings();
	for (int i = 0; i < 4; i++)
		MUST(send_part(&link, i, FI_MORE));
	MUST_BE(rings() == before);
	MUST(send_part(&link, 4, 0));
	MUST_BE(rings() == before + 1);
	expect_parts(&link, 5);
	/* as many as are kept */
	for (int i = 0; i < PARTS; i++)
		MUST(send_part(&link, i, FI_MORE));
	MUST_BE(rings() == before + 2);
	/* no other follows: they leave with the next look */
	expect_parts(&link, PARTS);
	MUST_BE(rings() == before + 3);
	if (link.a.info->tx_attr->inject_size >= PART) {
		/* its buffer is the program's again */
		MUST(send_part(&link, 0, FI_MORE));
		MUST(send_part(&link, 1, FI_MORE | FI_INJECT));
		memset(link.a.room + PART, '-', PART);
		expect_parts(&link, 2);
	}
	MUST(send_part(&link, 0, FI_MORE));
	link_close(&link);
}

/* Calls that have succeeded end with an error, and the connection with them. */
static void more_is_refused(void)
{
	struct fi_cq_err_entry error;
	struct link link = { 0 };

	link_open(&link);
	setenv("SOFTVERBS_FAIL", "ibv_post_send:1+=EIO", 1);
	MUST(send_part(&link, 0, FI_MORE));
	MUST_FAIL(send_part(&link, 1, 0), FI_EIO);
	MUST_BE(await_comp(&link, &link.a, &error) == FI_EIO);
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	unsetenv("SOFTVERBS_FAIL");
	link_close(&link);
}

/* More queue pairs fail at once than anybody counts: the others go on. */
static void queue_pairs_fail(enum ibv_event_type type)
{
	void (*tell_of)(enum ibv_event_type, void *);
	struct ibv_qp *(*qp_at)(unsigned);
	struct more more[MORE] = { 0 };
	struct ibv_qp *victims[MORE];
	struct link link = { 0 };

	link_open(&link);
	tell_of = stand_in("sv_test_event_of");
	qp_at = stand_in("sv_test_qp_at");
	for (int i = 0; i < MORE; i++)
		more_open(&link, &more[i]);
	/* queue pairs are in the order of their making: a's and b's of the link first */
	for (unsigned i = 0; i < MORE; i++)
		MUST_BE((victims[i] = qp_at(2 * i + 3)));
	for (int i = 1; i < MORE; i++)
		tell_of(type, victims[i]);
	for (int i = 1; i < MORE; i++) {
		MUST_BE(await_event(&link, more[i].b.eq).event == FI_SHUTDOWN);
		MUST_BE(await_event(&link, more[i].a.eq).event == FI_SHUTDOWN);
	}
	more_send(&link, &more[0]);
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	for (int i = 0; i < MORE; i++)
		more_close(&more[i]);
	link_close(&link);
}

static void many_fail(void)
{
	queue_pairs_fail(IBV_EVENT_QP_FATAL);
}

static void bad_requests(void)
{
	queue_pairs_fail(IBV_EVENT_QP_ACCESS_ERR);
}

/* A device flushes the queue pair only when it is destroyed, and so reports a request of an endpoint that is gone, in a
 * queue that others share. The request has ended once. */
static void flushed_late(void)
{
	struct link link = { 0 };
	struct more more = { 0 };
	char entry[64];

	link_open(&link);
	more_open(&link, &more);
	/* meets no receive: it is not over */
	MUST(fi_send(more.a.ep, link.a.room, MSG_LEN, fi_mr_desc(link.a.mr), 0, NULL));
	MUST(fi_close(&more.a.ep->fid));
	more.a.ep = NULL;
	MUST_BE(one_comp(&more.a) == FI_ECANCELED);
	for (int i = 0; i < 20; i++)
		link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	MUST_BE(fi_cq_read(more.a.cq, entry, 1) == -FI_EAGAIN);
	more_close(&more);
	link_close(&link);
}

/* ---- a program that reads asynchronous events itself ---- */

/* A thread that waits for one. */
struct reader {
	struct ibv_context *verbs;
	struct ibv_async_event event;
	int ret;
	atomic_bool over;
};

static void *read_event(void *arg)
{
	struct reader *reader = arg;
	int (*get)(struct ibv_context *, struct ibv_async_event *) = stand_in("ibv_get_async_event");
	void (*ack)(struct ibv_async_event *) = stand_in("ibv_ack_async_event");

	reader->ret = get(reader->verbs, &reader->event);
	if (!reader->ret)
		ack(&reader->event);
	atomic_store(&reader->over, true);
	return NULL;
}

/* It blocks until there is an event of its own, on the context that our connections use, and gets it, while messages go
 * over these. */
static void events_are_the_programs(void)
{
	void (*tell_of)(enum ibv_event_type, void *);
	struct ibv_cq *(*create)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
	int (*destroy)(struct ibv_cq *);
	struct reader reader = { 0 };
	struct link link = { 0 };
	struct ibv_cq *own;
	pthread_t thread;

	link_open(&link);
	tell_of = stand_in("sv_test_event_of");
	create = stand_in("ibv_create_cq");
	destroy = stand_in("ibv_destroy_cq");
	reader.verbs = ((struct ibv_qp *(*)(unsigned)) stand_in("sv_test_qp_at"))(0)->context;
	MUST_BE((own = create(reader.verbs, 1, NULL, NULL, 0)));
	MUST_BE(!pthread_create(&thread, NULL, read_event, &reader));
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	MUST_BE(!atomic_load(&reader.over));
	tell_of(IBV_EVENT_CQ_ERR, own);
	while (!atomic_load(&reader.over))	/* a case has its time */
		link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	MUST_BE(!pthread_join(thread, NULL));
	MUST_BE(!reader.ret && reader.event.event_type == IBV_EVENT_CQ_ERR && reader.event.element.cq == own);
	MUST_BE(!destroy(own));
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	link_close(&link);
}

/* ---- many endpoints ---- */

static unsigned channel_cnt(void)
{
	return ((unsigned (*)(void)) stand_in_cm("sv_test_channel_cnt"))();
}

static unsigned queue_cnt(void)
{
	unsigned (*cnt_of)(int) = (unsigned (*)(int)) stand_in("sv_test_vector_cnt"), cnt = 0;

	for (int vector = 0; vector < VECTORS; vector++)
		cnt += cnt_of(vector);
	return cnt;
}

/* Two domains with this many connections between them have `queues` completion queues, and event channels as with one
 * connection. A message goes over each. */
static void many_endpoints(unsigned queues)
{
	static struct more more[MANY];
	struct link link = { 0 };
	unsigned channels;

	link_open(&link);
	channels = channel_cnt();
	for (int i = 0; i < MANY; i++)
		more_open(&link, &more[i]);
	MUST_BE(channel_cnt() == channels);
	MUST_BE(queue_cnt() == queues);
	for (int i = 0; i < MANY; i++)
		more_send(&link, &more[i]);
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	for (int i = 0; i < MANY; i++)
		more_close(&more[i]);
	link_close(&link);
	MUST_BE(!queue_cnt() && channel_cnt() <= 1);
}

static void many_in_one_queue(void)
{
	many_endpoints(2);
}

static void many_where_queues_are_fixed(void)
{
	many_endpoints(2 * 4);
}

/* A queue has room for five endpoints. */
static void many_where_queues_are_small(void)
{
	many_endpoints(2 * 11);
}

/* ---- the connection manager ---- */

static unsigned drop_cnt(void)
{
	return ((unsigned (*)(void)) stand_in_cm("sv_test_drop_cnt"))();
}

static unsigned event_cnt(enum rdma_cm_event_type type)
{
	return ((unsigned (*)(enum rdma_cm_event_type)) stand_in_cm("sv_test_event_cnt"))(type);
}

/* Make progress at both ends. */
static void look(const struct link *link)
{
	fi_cq_read(link->a.cq, NULL, 0);
	fi_cq_read(link->b.cq, NULL, 0);
}

/* So many endpoints connect, and the listener looks when all requests have left, or `drops` of them were dropped. All
 * get their connection. */
static void crowd(int cnt, unsigned drops)
{
	static struct more more[CROWD];
	struct link link = { 0 };
	unsigned route_cnt;

	link_listen(&link);
	route_cnt = event_cnt(RDMA_CM_EVENT_ROUTE_RESOLVED);
	for (int i = 0; i < cnt; i++) {
		one_open(&more[i].a, &link.a, link.a.info);
		MUST(fi_connect(more[i].a.ep, link.a.info->dest_addr, NULL, 0));
	}
	while (event_cnt(RDMA_CM_EVENT_ROUTE_RESOLVED) < route_cnt + cnt || drop_cnt() < drops)
		look(&link);
	for (int i = 0; i < cnt; i++) {
		struct fi_info *info = link_await_request(&link).info;

		one_open(&more[i].b, &link.b, info);
		fi_freeinfo(info);
		MUST(fi_accept(more[i].b.ep, NULL, 0));
	}
	for (int i = 0; i < cnt; i++) {
		MUST_BE(await_event(&link, more[i].a.eq).event == FI_CONNECTED);
		MUST_BE(await_event(&link, more[i].b.eq).event == FI_CONNECTED);
	}
	MUST_BE(drops ? drop_cnt() >= drops : !drop_cnt());
	for (int i = 0; i < cnt; i++)
		more_close(&more[i]);
	link_close(&link);
}

static void crowd_beyond_the_backlog(void)
{
	crowd(10, 8);
}

/* As many as wait without being dropped by the kernel are more than wait by default with other providers. */
static void crowd_within_the_backlog(void)
{
	crowd(CROWD, 0);
}

/* An endpoint waits for the initiator that another connects. That one closes: the endpoint asks with its own. */
static void maker_gives_up(void)
{
	struct link link = { 0 };
	struct more next = { 0 };

	link_listen(&link);
	fi_freeinfo(link_request(&link).info);
	one_open(&next.a, &link.a, link.a.info);
	MUST(fi_connect(next.a.ep, link.a.info->dest_addr, NULL, 0));
	while (event_cnt(RDMA_CM_EVENT_ROUTE_RESOLVED) < 2)
		look(&link);
	look(&link);
	MUST(fi_close(&link.a.ep->fid));
	link.a.ep = NULL;
	more_accept(&link, &next);
	more_send(&link, &next);
	more_close(&next);
	link_close(&link);
}

/* A connection ends, and the next one is there before the time of the first is over, of which nobody is told. */
static void timewait(void)
{
	struct link link = { 0 };
	struct more more = { 0 };
	uint32_t event;

	link_open(&link);
	MUST(fi_shutdown(link.a.ep, 0));
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	MUST_BE(await_event(&link, link.b.eq).event == FI_SHUTDOWN);
	more_open(&link, &more);
	MUST_BE(!event_cnt(RDMA_CM_EVENT_TIMEWAIT_EXIT));
	while (event_cnt(RDMA_CM_EVENT_TIMEWAIT_EXIT) < 2)
		look(&link);
	MUST_FAIL(fi_eq_read(link.a.eq, &event, NULL, 0, 0), FI_EAGAIN);
	MUST_FAIL(fi_eq_read(link.b.eq, &event, NULL, 0, 0), FI_EAGAIN);
	MUST_FAIL(fi_eq_read(more.a.eq, &event, NULL, 0, 0), FI_EAGAIN);
	MUST_FAIL(fi_eq_read(more.b.eq, &event, NULL, 0, 0), FI_EAGAIN);
	more_send(&link, &more);
	/* these ids end before that */
	more_close(&more);
	MUST(fi_close(&link.a.ep->fid));
	MUST(fi_close(&link.b.ep->fid));
	MUST(end_open_ep(&link.a));
	link_accept(&link, link_request(&link).info);
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	MUST_BE(event_cnt(RDMA_CM_EVENT_TIMEWAIT_EXIT) == 2);
	link_close(&link);
}

/* The hardware address behind the IP address changes while one connection is up, another is being made, and a listener
 * listens: all goes on. */
static void address_changes(void)
{
	unsigned told, (*tell_ids)(enum rdma_cm_event_type, int);
	struct link link = { 0 };
	struct more more = { 0 };
	struct fi_info *info;
	uint32_t event;

	link_open(&link);
	one_open(&more.a, &link.a, link.a.info);
	MUST(fi_connect(more.a.ep, link.a.info->dest_addr, NULL, 0));
	info = link_await_request(&link).info;
	tell_ids = stand_in_cm("sv_test_tell_ids");
	told = tell_ids(RDMA_CM_EVENT_ADDR_CHANGE, 0);
	MUST_BE(told >= 4);		/* both ends of the connection, the listener, the id that is connecting */
	while (event_cnt(RDMA_CM_EVENT_ADDR_CHANGE) < told) {
		look(&link);
		MUST_FAIL(fi_eq_read(link.pep_eq, &event, NULL, 0, 0), FI_EAGAIN);
	}
	MUST_FAIL(fi_eq_read(link.a.eq, &event, NULL, 0, 0), FI_EAGAIN);
	MUST_FAIL(fi_eq_read(link.b.eq, &event, NULL, 0, 0), FI_EAGAIN);
	MUST_FAIL(fi_eq_read(more.a.eq, &event, NULL, 0, 0), FI_EAGAIN);
	link_send(&link, link.a.room, fi_mr_desc(link.a.mr), MSG_LEN);
	one_open(&more.b, &link.b, info);
	fi_freeinfo(info);
	MUST(fi_accept(more.b.ep, NULL, 0));
	MUST_BE(await_event(&link, more.a.eq).event == FI_CONNECTED);
	MUST_BE(await_event(&link, more.b.eq).event == FI_CONNECTED);
	more_send(&link, &more);
	more_close(&more);
	link_close(&link);
}

/* Engines take completion vectors in turn. */
static void vectors_in_turn(void)
{
	unsigned (*cnt_of)(int);
	struct link link = { 0 };

	link_open(&link);
	cnt_of = (unsigned (*)(int)) stand_in("sv_test_vector_cnt");
	for (int vector = 0; vector < 2; vector++)
		MUST_BE(cnt_of(vector) == 1);
	link_close(&link);
}

/* The last word of the handshake is lost, and a message comes: both ends are connected. */
static void message_before_the_last_word(void)
{
	struct link link = { 0 };

	link_listen(&link);
	link_open_b(&link, link_request(&link).info);
	MUST(fi_recv(link.b.ep, link.b.room, MSG_LEN, fi_mr_desc(link.b.mr), 0, NULL));
	MUST(fi_accept(link.b.ep, NULL, 0));
	MUST_BE(await_event(&link, link.a.eq).event == FI_CONNECTED);
	MUST(fi_send(link.a.ep, link.a.room, MSG_LEN, fi_mr_desc(link.a.mr), 0, NULL));
	MUST_BE(await_event(&link, link.b.eq).event == FI_CONNECTED);
	MUST_BE(!await_comp(&link, &link.b, NULL));
	link_close(&link);
}

/* An event says that the port has other addresses: the name of an endpoint before it, and after it. */
static void port_changes(enum ibv_event_type type, const char *limits, char before[DGRAM_NAME_LEN],
			 char after[DGRAM_NAME_LEN])
{
	struct fi_info *hints = dgram_hints_new(), *info;
	struct fi_cq_data_entry entry;
	struct dgram dgram = { 0 };
	size_t len = DGRAM_NAME_LEN;

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	dgram_open(&dgram, info);
	memcpy(before, dgram.name, DGRAM_NAME_LEN);
	setenv("SOFTVERBS_LIMITS", limits, 1);
	tell(type);
	MUST_FAIL(fi_cq_read(dgram.end.cq, &entry, 1), FI_EAGAIN);
	MUST(fi_getname(&dgram.end.ep->fid, after, &len));
	for (int i = 0; i < 1000; i++)
		MUST_FAIL(fi_cq_read(dgram.end.cq, &entry, 1), FI_EAGAIN);
	fi_freeinfo(info);
	dgram_close(&dgram);
}

static uint16_t lid_in(const char *name)
{
	uint16_t lid;

	memcpy(&lid, name + 20, sizeof(lid));
	return lid;
}

/* The subnet manager gives it another LID. */
static void lid_changes(void)
{
	char before[DGRAM_NAME_LEN], after[DGRAM_NAME_LEN];

	port_changes(IBV_EVENT_LID_CHANGE, "lid=9", before, after);
	MUST_BE(lid_in(before) == 5 && lid_in(after) == 9);
}

/* It loses its IP addresses, and so all GIDs but that of the link. */
static void gid_changes(void)
{
	char before[DGRAM_NAME_LEN], after[DGRAM_NAME_LEN];

	port_changes(IBV_EVENT_GID_CHANGE, "gids=1", before, after);
	MUST_BE(!memcmp(before, "\0\0\0\0\0\0\0\0\0\0\377\377\177\0\0\1", 16));
	MUST_BE(!memcmp(after, "\376\200", 2));
}

/* Packets of both directions have the traffic class of who connects. */
static void traffic_class(void)
{
	int (*query_qp)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
	struct ibv_qp *(*qp_at)(unsigned);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct link link = { 0 };

	link_listen(&link);
	MUST(fi_close(&link.a.ep->fid));
	link.a.info->tx_attr->tclass = FI_TC_LOW_LATENCY;
	MUST(end_open_ep(&link.a));
	link_accept(&link, link_request(&link).info);
	qp_at = (struct ibv_qp *(*)(unsigned)) stand_in("sv_test_qp_at");
	query_qp = (int (*)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *))
		   stand_in("ibv_query_qp");
	for (unsigned i = 0; i < 2; i++) {
		MUST_BE(!query_qp(qp_at(i), &attr, IBV_QP_AV, &init));
		MUST_BE(attr.ah_attr.grh.traffic_class == 46 << 2);
	}
	link_close(&link);
}

/* Where no order was asked, the bus may choose one; where one was asked, not. */
static void relaxed(bool ask)
{
	struct fi_info *hints = hints_new(), *info;
	int (*access_of)(const struct ibv_mr *);
	struct end end = { 0 };
	const struct ibv_mr *mr;

	hints->tx_attr->msg_order = hints->rx_attr->msg_order = ask ? FI_ORDER_SAS | FI_ORDER_WAW : FI_ORDER_SAS;
	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	MUST_BE(!(info->tx_attr->msg_order & FI_ORDER_WAW) == !ask);
	end_open(&end, info);
	mr = fi_mr_desc(end.mr);
	access_of = (int (*)(const struct ibv_mr *)) stand_in("sv_test_access_of");
	MUST_BE(!(access_of(mr) & IBV_ACCESS_RELAXED_ORDERING) == ask);
	/* an endpoint that promises an order needs regions that keep it */
	info->tx_attr->msg_order |= FI_ORDER_WAW;
	if (ask)
		MUST(end_open_ep(&end));
	else
		MUST_FAIL(fi_endpoint(end.domain, info, &end.ep, NULL), FI_EINVAL);
	end_close(&end);
}

static void relaxed_where_no_order_is_asked(void)
{
	relaxed(false);
}

static void strict_where_an_order_is_asked(void)
{
	relaxed(true);
}

static void no_descriptor(void)
{
	struct fi_info *hints = hints_new(), *info;
	struct end end = { 0 };

	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	end_open(&end, info);
	setenv("SOFTVERBS_FAIL", "rdma_create_event_channel:1+=EMFILE", 1);
	MUST_FAIL(fi_endpoint(end.domain, end.info, &end.ep, NULL), FI_EMFILE);
	end.ep = NULL;
	end_close(&end);
}

#define DEVICE(name)	"SOFTVERBS_DEVICE=" name
#define XRC		"FI_VERBS_PREFER_XRC=1 "
#define NO_EVENTS	"FI_VERBS_ASYNC_EVENTS=0"

static const struct vcase cases[] = {
	{ "mlx5: the longest queue", DEVICE("mlx5"), largest_queue, NULL },
	{ "irdma: the longest queue", DEVICE("irdma"), largest_queue, NULL },
	{ "hfi1: the longest queue", DEVICE("hfi1"), largest_queue, NULL },
	{ "hfi1: no inline data", DEVICE("hfi1"), nothing_inline, NULL },
	{ "pvrdma: no inline data", DEVICE("pvrdma"), nothing_inline, NULL },
	{ "mlx4 connects to itself", DEVICE("mlx4"), connects, NULL },
	{ "mlx4 connects to itself, XRC", XRC DEVICE("mlx4"), connects, NULL },
	{ "cxgb4 connects to itself", DEVICE("cxgb4"), connects, NULL },
	{ "mlx5: an XRC endpoint closes with a message unread", XRC DEVICE("mlx5"), closes_unread, NULL },
	{ "mlx5: an XRC endpoint closes while many messages come", XRC DEVICE("mlx5") " SOFTVERBS_LIMITS=stale_srq=50",
	  closes_in_a_storm, NULL },
	{ "mlx4: an XRC endpoint closes with a message unread", XRC DEVICE("mlx4"), closes_unread, NULL },
	{ "messages of an XRC initiator wait behind one that finds no receive", XRC, all_wait_for_a_receive, NULL },
	{ "XRC: a peer that posts no receive, and another endpoint has the same initiator",
	  XRC "FI_VERBS_STALL_TIMEOUT=100", stall_of_a_shared_initiator, NULL },
	{ "XRC: a request fails, and another endpoint has the same initiator", XRC, failure_of_a_shared_initiator,
	  NULL },
	{ "XRC: an endpoint closes whose message never ends, and another has the same initiator", XRC,
	  close_of_a_shared_initiator, "1 requests of a closed XRC endpoint do not end and delay 1 other" },
	{ "XRC: the endpoint that made an initiator closes", XRC "SOFTVERBS_LIMITS=no_resize_cq=1", maker_closes,
	  NULL },
	{ "XRC: an endpoint closes while it connects, and another waits for its initiator", XRC, maker_gives_up,
	  NULL },
	{ "a poll fails once", "SOFTVERBS_FAIL=ibv_poll_cq:40=EIO,ibv_poll_cq:60=EIO", poll_fails,
	  "ibv_poll_cq on soft0 failed .-2., and is tried again" },
	{ "requests cannot be posted", NULL, posts_fail, NULL },
	{ "requests with FI_MORE share a doorbell", NULL, more_rings_once, NULL },
	{ "requests with FI_MORE that are read by the device", "FI_VERBS_INLINE_SIZE=0", more_rings_once, NULL },
	{ "requests with FI_MORE are refused", NULL, more_is_refused,
	  "refused a request that was posted with FI_MORE" },
	{ "many queue pairs fail at once", NULL, many_fail, "soft0: a queue pair has failed" },
	{ "many queue pairs get bad requests", NULL, bad_requests, "soft0: a queue pair got a request" },
	{ "a queue pair is flushed when it is destroyed", "SOFTVERBS_LIMITS=late_flush=1", flushed_late,
	  "device soft0 has not flushed its queues" },
	{ "a program's own asynchronous events", NO_EVENTS, events_are_the_programs, NULL },
	{ "a program's own asynchronous events, XRC", XRC NO_EVENTS, events_are_the_programs, NULL },
	{ "many queue pairs fail at once, and no event is read", NO_EVENTS " FI_VERBS_KEEPALIVE_INTERVAL=200",
	  many_fail, NULL },
	{ "fifty endpoints complete to one queue", NULL, many_in_one_queue, NULL },
	{ "fifty endpoints, XRC", XRC, many_in_one_queue, NULL },
	{ "fifty endpoints where queues cannot grow", "SOFTVERBS_LIMITS=no_resize_cq=1", many_where_queues_are_fixed,
	  NULL },
	{ "fifty endpoints where queues are small", "SOFTVERBS_LIMITS=max_cqe=4096", many_where_queues_are_small,
	  NULL },
	{ "completion vectors are taken in turn", "SOFTVERBS_LIMITS=comp_vectors=2", vectors_in_turn, NULL },
	{ "a message comes before the last word of the handshake", "SOFTVERBS_FAIL=cm_rtu:1=EIO",
	  message_before_the_last_word, NULL },
	{ "messages of the connection manager are late", "SOFTVERBS_LIMITS=cm_delay=30", connects, NULL },
	{ "messages of the connection manager are lost", "SOFTVERBS_LIMITS=cm_loss=2,cm_retry=50", connects, NULL },
	{ "messages of the connection manager are lost, XRC", XRC "SOFTVERBS_LIMITS=cm_loss=2,cm_retry=50", connects,
	  NULL },
	{ "questions for an address and a route are lost",
	  "SOFTVERBS_FAIL=cm_addr:1=ETIMEDOUT,cm_addr:2=ETIMEDOUT,cm_route:1=ETIMEDOUT", connects, NULL },
	{ "questions for an address and a route are lost, XRC",
	  XRC "SOFTVERBS_FAIL=cm_addr:1=ETIMEDOUT,cm_route:1=ETIMEDOUT,cm_route:2=ETIMEDOUT", connects, NULL },
	{ "a crowd is larger than the backlog", "SOFTVERBS_LIMITS=max_backlog=2,cm_retry=5", crowd_beyond_the_backlog,
	  NULL },
	{ "a crowd is larger than the backlog, XRC", XRC "SOFTVERBS_LIMITS=max_backlog=2,cm_retry=5",
	  crowd_beyond_the_backlog, NULL },
	{ "a crowd waits for a listener that is busy", NULL, crowd_within_the_backlog, NULL },
	{ "connections are in timewait", "SOFTVERBS_LIMITS=timewait=100", timewait, NULL },
	{ "connections are in timewait, XRC", XRC "SOFTVERBS_LIMITS=timewait=100", timewait, NULL },
	{ "a hardware address changes", NULL, address_changes, "device soft0: the hardware address behind an IP" },
	{ "a hardware address changes, XRC", XRC, address_changes,
	  "device soft0: the hardware address behind an IP" },
	{ "the LID changes", "SOFTVERBS_LIMITS=lid=5 SOFTVERBS_DEVICES=soft0=ib", lid_changes,
	  "LID change.*fi_getname" },
	{ "the GID changes", NULL, gid_changes, "GID table change.*fi_getname" },
	{ "packets have a traffic class", NULL, traffic_class, NULL },
	{ "no order is asked: relaxed ordering", "FI_VERBS_RELAXED_ORDERING=1", relaxed_where_no_order_is_asked,
	  "that of the domain has none" },
	{ "an order is asked: no relaxed ordering", "FI_VERBS_RELAXED_ORDERING=1", strict_where_an_order_is_asked,
	  NULL },
	{ "no descriptor is left", NULL, no_descriptor, "rdma_create_event_channel.*ulimit -n" },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
