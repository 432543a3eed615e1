/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sends and looks at queues over a connection within the process, for callgrind to count (callcount.test): each in a
 * function of its own, which is where counting is switched on. Any libfabric with verbs. CALLCOUNT_IDLE is a number of
 * further endpoints on one of the ends.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_eq.h>
#include "callcount.h"

#define PERIOD	129		/* every so many looks ours runs a pass of the engine */
#define LOOKS	(PERIOD - 1)	/* of a round that are not counted, see look_often(); two are counted */
#define ROUNDS	(2 * PERIOD)	/* so each place in a round has two passes, wherever the first one was */

struct end {
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	char buf[64];
};

static struct fid_fabric *fabric;
static struct fid_eq *eq;

static void must(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "callcount: %s: %s\n", what, fi_strerror(-ret));
	exit(ret == -FI_ENODATA ? 77 : 1);
}

__attribute__((noinline)) ssize_t count_send(struct end *end);
__attribute__((noinline)) ssize_t count_send(struct end *end)
{
	return fi_send(end->ep, end->buf, 8, fi_mr_desc(end->mr), 0, end);
}

__attribute__((noinline)) ssize_t count_empty(struct end *end);
__attribute__((noinline)) ssize_t count_empty(struct end *end)
{
	struct fi_cq_msg_entry entry;

	return fi_cq_read(end->cq, &entry, 1);
}

__attribute__((noinline)) ssize_t count_read(struct end *end);
__attribute__((noinline)) ssize_t count_read(struct end *end)
{
	struct fi_cq_msg_entry entry[8];

	return fi_cq_read(end->cq, entry, 8);
}

static void wait_one(struct end *end)
{
	struct fi_cq_msg_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(end->cq, &entry, 1)) == -FI_EAGAIN)
		sched_yield();		/* the device is a thread, and has one processor with us under valgrind */
	must(ret == 1 ? 0 : -FI_EIO, "fi_cq_read");
}

static struct fi_info *ask(uint64_t flags, const char *service, const void *dest, size_t len)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->ep_attr->type = FI_EP_MSG;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->caps = FI_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (dest) {
		hints->dest_addr = memcpy(malloc(len), dest, len);
		hints->dest_addrlen = len;
	}
	must(fi_getinfo(FI_VERSION(1, 17), dest ? NULL : "127.0.0.1", service, flags, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

static void end_open(struct end *end, struct fi_info *info)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_MSG, .size = 1024 };

	must(fi_domain(fabric, info, &end->domain, NULL), "fi_domain");
	must(fi_cq_open(end->domain, &attr, &end->cq, NULL), "fi_cq_open");
	must(fi_endpoint(end->domain, info, &end->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(end->ep, &eq->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(end->ep, &end->cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
	must(fi_enable(end->ep), "fi_enable");
	must(fi_mr_reg(end->domain, end->buf, sizeof(end->buf), FI_SEND | FI_RECV, 0, 0, 0, &end->mr, NULL),
	     "fi_mr_reg");
}

static struct fi_info *event(uint32_t want)
{
	struct fi_eq_cm_entry entry;
	uint32_t type;

	must(fi_eq_sread(eq, &type, &entry, sizeof(entry), 30000, 0) > 0 && type == want ? 0 : -FI_EIO, "fi_eq_sread");
	return entry.info;
}

static void connect_ends(struct end *a, struct end *b)
{
	struct fi_info *info = ask(FI_SOURCE, "0", NULL, 0), *req;
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_pep *pep;
	char name[64];
	size_t len = sizeof(name);

	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_eq_open(fabric, &attr, &eq, NULL), "fi_eq_open");
	must(fi_passive_ep(fabric, info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	must(fi_getname(&pep->fid, name, &len), "fi_getname");
	fi_freeinfo(info);
	info = ask(0, NULL, name, len);
	end_open(a, info);
	must(fi_connect(a->ep, info->dest_addr, NULL, 0), "fi_connect");
	req = event(FI_CONNREQ);
	end_open(b, req);
	must(fi_accept(b->ep, NULL, 0), "fi_accept");
	event(FI_CONNECTED);
	event(FI_CONNECTED);
	fi_freeinfo(req);
	fi_freeinfo(info);
}

/* A library may do more in a look that comes milliseconds after the last one, by ticks, which do not stand with the
 * clock. With these in each round, no look comes so late. */
static void look_often(struct end *end)
{
	struct fi_cq_msg_entry entry;

	for (int i = 0; i < LOOKS; i++)
		must(fi_cq_read(end->cq, &entry, 1) == -FI_EAGAIN ? 0 : -FI_EIO, "fi_cq_read of an empty queue");
}

/* Endpoints of the same domain and completion queue that do nothing, as many as the environment says. */
static void open_idle(const struct end *end, struct fi_info *info)
{
	const char *text = getenv("CALLCOUNT_IDLE");
	struct fid_ep *ep;

	for (int cnt = text ? atoi(text) : 0; cnt; cnt--) {
		must(fi_endpoint(end->domain, info, &ep, NULL), "fi_endpoint");
		must(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
		must(fi_ep_bind(ep, &end->cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
		must(fi_enable(ep), "fi_enable");
	}
}

int main(void)
{
	static struct end a, b;
	struct fi_info *info;

	connect_ends(&a, &b);
	info = ask(FI_SOURCE, "0", NULL, 0);
	open_idle(&a, info);
	fi_freeinfo(info);
	count_from_here();
	for (int i = 0; i < ROUNDS; i++) {
		must((int) fi_recv(a.ep, a.buf, sizeof(a.buf), fi_mr_desc(a.mr), 0, &a), "fi_recv");
		must((int) fi_recv(b.ep, b.buf, sizeof(b.buf), fi_mr_desc(b.mr), 0, &b), "fi_recv");
		look_often(&a);
		count_empty(&a);
		must((int) count_send(&a), "fi_send");
		/* when the answer has been taken in, the device has ended both of a's requests, in this order */
		wait_one(&b);
		must((int) fi_send(b.ep, b.buf, 8, fi_mr_desc(b.mr), 0, &b), "fi_send");
		wait_one(&b);
		must(count_read(&a) == 2 ? 0 : -FI_EIO, "fi_cq_read of two completions");
	}
	printf("%d\n", ROUNDS);
	return 0;
}
