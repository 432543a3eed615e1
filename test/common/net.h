/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fabric and a domain of no provider in particular, for tests of the queues that belong to them.
 */
#ifndef TEST_COMMON_NET_H
#define TEST_COMMON_NET_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/sock.h"
#include "common/queue/cntr.h"
#include "common/queue/cq.h"
#include "common/queue/eq.h"
#include "common/domain/domain.h"
#include "common/memory/memory.h"
#include "spy.h"
#include "unit.h"

/* That of a test is `net`, opened by net_setup() and the like, and closed by net_teardown(). */
struct net {
	struct fab_fabric fabric;
	struct fab_domain domain;
};
static struct net net;

struct net_attr {
	uint32_t api_version;		/* 0: 2.6 */
	enum fi_threading threading;	/* 0: FI_THREAD_SAFE */
	enum fi_progress engine;	/* 0: manual */
	enum fi_progress control;	/* of domain_attr->control_progress; 0: unspecified */
	enum fi_ep_type type;		/* 0: FI_EP_RDM */
};

static inline void net_open(struct net *net, struct net_attr attr)
{
	static struct fi_provider prov = { .name = "test" };
	static struct fi_ops fid_ops;
	static struct fi_ops_fabric fabric_ops;
	static struct fi_ops_domain domain_ops;
	struct fi_fabric_attr fabric_attr = { .api_version = attr.api_version ? attr.api_version : FI_VERSION(2, 6) };
	struct fi_domain_attr domain_attr = {
		.name = (char *) "net",
		.threading = attr.threading ? attr.threading : FI_THREAD_SAFE,
		.data_progress = attr.engine ? attr.engine : FI_PROGRESS_MANUAL,
		.control_progress = attr.control,
	};
	struct fi_ep_attr ep_attr = { .type = attr.type ? attr.type : FI_EP_RDM };
	const struct fab_domain_ops tables = { .fid = &fid_ops, .domain = &domain_ops, .mr = &fab_mr_ops };
	struct fi_info info = { .domain_attr = &domain_attr, .fabric_attr = &fabric_attr, .ep_attr = &ep_attr };

	assert_int_equal(fab_fabric_init(&net->fabric, &prov, &fabric_attr, &fid_ops, &fabric_ops, NULL), 0);
	assert_int_equal(fab_domain_init(&net->domain, &net->fabric, &info, &tables, NULL), 0);
}

static inline void net_close(struct net *net)
{
	assert_int_equal(fab_domain_fini(&net->domain), 0);
	assert_int_equal(fab_fabric_fini(&net->fabric), 0);
}

/* Setup and teardown of a test; net_begin() is the part of a setup that wants attributes. */
static inline int net_begin(struct net_attr attr)
{
	spy_start();
	net_open(&net, attr);
	return 0;
}

static inline int net_setup(void **state)
{
	(void) state;
	return net_begin((struct net_attr) { 0 });
}

static inline int net_teardown(void **state)
{
	(void) state;
	fail_alloc(-1);
	net_close(&net);
	spy_stop();
	return 0;
}

/* Call open with the n-th call to the kernel, or (alloc) the n-th allocation, failing, for n from 0 on until it
 * works. How often it failed. Each time no descriptor may stay open. */
static inline long fail_each(int (*open)(void), bool alloc)
{
	int fds = spy_open_fds();
	long n;

	for (n = 0; n < 50; n++) {
		if (alloc)
			fail_alloc(n);
		else
			spy_fail(n, EMFILE);
		if (!open())
			break;
		assert_int_equal(spy_open_fds(), fds);
	}
	fail_alloc(-1);
	spy_fail(-1, 0);
	return n;
}

static inline struct fab_cq *net_cq(struct net *net, struct fi_cq_attr attr)
{
	struct fid_cq *fid;

	assert_int_equal(fab_cq_open(&net->domain.domain_fid, &attr, &fid, NULL), 0);
	return fab_container(fid, struct fab_cq, cq_fid);
}

static inline struct fab_cntr *net_cntr(struct net *net, struct fi_cntr_attr attr)
{
	struct fid_cntr *fid;

	assert_int_equal(fab_cntr_open(&net->domain.domain_fid, &attr, &fid, NULL), 0);
	return fab_container(fid, struct fab_cntr, cntr_fid);
}

static inline struct fab_eq *net_eq(struct net *net, struct fi_eq_attr attr)
{
	struct fid_eq *fid;

	assert_int_equal(fab_eq_open(&net->fabric.fabric_fid, &attr, &fid, NULL), 0);
	return fab_container(fid, struct fab_eq, eq_fid);
}

#define net_shut(queue) assert_int_equal(fi_close(queue), 0)

/* A success with this context, as a provider would queue it. */
static inline void net_comp(struct fab_cq *cq, uintptr_t context)
{
	struct fab_comp comp = { .context = (void *) context, .flags = FI_RECV | FI_TAGGED, .len = context + 1,
				 .buf = (void *) (context + 2), .data = context + 3, .tag = context + 4,
				 .src = context + 5 };

	fab_engine_lock(cq->wait.engine);
	fab_cq_write(cq, &comp);
	fab_engine_unlock(cq->wait.engine);
}

static inline void net_comp_err(struct fab_cq *cq, uintptr_t context, struct fab_cq_fail fail)
{
	struct fab_comp comp = { .context = (void *) context, .flags = FI_SEND | FI_MSG, .len = 7, .src = 9 };

	fab_engine_lock(cq->wait.engine);
	fab_cq_write_err(cq, &comp, &fail);
	fab_engine_unlock(cq->wait.engine);
}

/*
 * A source that hands what arrives to a CQ, counter or EQ: each byte written to the far end becomes one event. As a
 * provider's connection does.
 */
struct feed {
	struct fab_source src;
	int far;
	struct fab_cq *cq;
	struct fab_cntr *cntr;
	struct fab_eq *eq;
};

static inline bool feed_read(struct fab_source *src)
{
	struct feed *feed = fab_container(src, struct feed, src);
	struct fi_eq_entry entry = { .data = 1 };
	char buf[256];
	ssize_t len = recv(src->fd, buf, sizeof(buf), MSG_DONTWAIT);

	for (ssize_t i = 0; i < len; i++) {
		if (feed->cq)
			fab_cq_write(feed->cq, &(struct fab_comp) { .context = feed, .data = (uint8_t) buf[i] });
		if (feed->cntr)
			fab_cntr_inc(feed->cntr, (size_t) buf[i]);
		if (feed->eq)
			fab_eq_write(feed->eq, FI_NOTIFY, &entry, sizeof(entry), NULL);
	}
	if (len > 0)
		fab_source_hot(src);
	return len > 0;
}

static inline void feed_ready(struct fab_source *src, uint32_t events)
{
	(void) events;
	feed_read(src);
}

static inline void feed_open(struct feed *feed, struct fab_engine *engine)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	feed->src = (struct fab_source) { .fd = fds[0], .ready = feed_ready, .poll = feed_read };
	feed->far = fds[1];
	fab_engine_lock(engine);
	assert_int_equal(fab_source_add(engine, &feed->src, EPOLLIN), 0);
	fab_engine_unlock(engine);
}

static inline void feed_write(struct feed *feed)
{
	assert_int_equal(write(feed->far, "x", 1), 1);
}

static inline void feed_close(struct feed *feed)
{
	struct fab_engine *engine = feed->src.engine;

	fab_engine_lock(engine);
	fab_source_del(&feed->src);
	fab_engine_unlock(engine);
	close(feed->src.fd);
	close(feed->far);
}

static inline bool readable(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

static inline uint64_t elapsed_ms(uint64_t since_ns)
{
	return (fab_now_ns() - since_ns) / 1000000;
}

static inline pthread_t thread_start(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	return thread;
}

/* Until others have got as far; gives them the processor. */
static inline void thread_await(_Atomic uint32_t *value, uint32_t at_least)
{
	while (atomic_load(value) < at_least)
		sched_yield();
}

#endif
