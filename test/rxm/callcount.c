/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tagged sends and receives between two reliable datagram endpoints of this process, over verbs, for callgrind to count
 * (callcount.test): each call in a function of its own, which is where counting is switched on. Any libfabric with
 * verbs;ofi_rxm. CALLCOUNT_PEERS is the number of peers of one of the ends.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include "callcount.h"

#define ROUNDS	400
#define TAG	5

struct end {
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	fi_addr_t peer;
	char buf[64];
};

static struct fid_fabric *fabric;

static void must(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "callcount: %s: %s\n", what, fi_strerror(-ret));
	exit(ret == -FI_ENODATA ? 77 : 1);
}

#define COUNTED __attribute__((noinline, noclone))

COUNTED ssize_t count_send(struct end *end);
COUNTED ssize_t count_send(struct end *end)
{
	return fi_tsend(end->ep, end->buf, 8, NULL, end->peer, TAG, end);
}

COUNTED ssize_t count_recv(struct end *end);
COUNTED ssize_t count_recv(struct end *end)
{
	return fi_trecv(end->ep, end->buf, sizeof(end->buf), NULL, end->peer, TAG, 0, end);
}

COUNTED ssize_t count_empty(struct end *end);
COUNTED ssize_t count_empty(struct end *end)
{
	struct fi_cq_tagged_entry entry;

	return fi_cq_read(end->cq, &entry, 1);
}

/* What is in the queue below: a send that is over, and a message. */
COUNTED ssize_t count_read(struct end *end);
COUNTED ssize_t count_read(struct end *end)
{
	struct fi_cq_tagged_entry entry[8];

	return fi_cq_read(end->cq, entry, 8);
}

static void wait_one(struct end *end, struct end *other)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(end->cq, &entry, 1)) == -FI_EAGAIN) {
		sched_yield();		/* the device is a thread, and has one processor with us under valgrind */
		if (other)
			fi_cq_read(other->cq, NULL, 0);
	}
	must(ret == 1 ? 0 : -FI_EIO, "fi_cq_read");
}

static struct fi_info *ask(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
	hints->caps = FI_TAGGED;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "0", FI_SOURCE, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

static void end_open(struct end *end, struct fi_info *info)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 1024 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	must(fi_domain(fabric, info, &end->domain, NULL), "fi_domain");
	must(fi_cq_open(end->domain, &cq_attr, &end->cq, NULL), "fi_cq_open");
	must(fi_av_open(end->domain, &av_attr, &end->av, NULL), "fi_av_open");
	must(fi_endpoint(end->domain, info, &end->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(end->ep, &end->av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(end->ep, &end->cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
	must(fi_enable(end->ep), "fi_enable");
}

/* The address of `of` in end's address vector. */
static void introduce(struct end *end, struct end *of)
{
	char name[64];
	size_t len = sizeof(name);

	must(fi_getname(&of->ep->fid, name, &len), "fi_getname");
	must(fi_av_insert(end->av, name, 1, &end->peer, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
}

/* The first message makes the connection, for which both have to make progress; before it is there, some libraries take
 * none. */
static void connect_ends(struct end *a, struct end *b)
{
	ssize_t ret;

	introduce(a, b);
	introduce(b, a);
	must((int) fi_trecv(b->ep, b->buf, sizeof(b->buf), NULL, b->peer, TAG, 0, b), "fi_trecv");
	while ((ret = fi_tsend(a->ep, a->buf, 8, NULL, a->peer, TAG, a)) == -FI_EAGAIN) {
		fi_cq_read(a->cq, NULL, 0);
		fi_cq_read(b->cq, NULL, 0);
	}
	must((int) ret, "fi_tsend");
	wait_one(b, a);
	wait_one(a, b);
}

/* Further endpoints at one end, each with a connection to the other, so many that the environment says how many peers
 * that one has. Each connection has descriptors on the stand-in. */
static void connect_more(struct end *a, const struct end *b, struct fi_info *info)
{
	const char *text = getenv("CALLCOUNT_PEERS");
	struct rlimit limit;

	must(-getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
	limit.rlim_cur = limit.rlim_max;
	must(-setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	for (int cnt = text ? atoi(text) : 1; cnt > 1; cnt--) {
		struct end more = *b;

		must(fi_endpoint(b->domain, info, &more.ep, NULL), "fi_endpoint");
		must(fi_ep_bind(more.ep, &b->av->fid, 0), "fi_ep_bind");
		must(fi_ep_bind(more.ep, &b->cq->fid, FI_SEND | FI_RECV), "fi_ep_bind");
		must(fi_enable(more.ep), "fi_enable");
		connect_ends(&more, a);
	}
}

int main(void)
{
	static struct end a, b;
	struct fi_cq_tagged_entry none;
	struct fi_info *info = ask();

	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	end_open(&a, info);
	end_open(&b, info);
	connect_more(&a, &b, info);
	fi_freeinfo(info);
	connect_ends(&a, &b);
	count_from_here();
	for (int i = 0; i < ROUNDS; i++) {
		must((int) count_recv(&a), "fi_trecv");
		must((int) fi_trecv(b.ep, b.buf, sizeof(b.buf), NULL, b.peer, TAG, 0, &b), "fi_trecv");
		/* any look may be the fourth, eighth ... one, which does more than others */
		for (int n = (i + i / 4) % 4; n; n--)
			fi_cq_read(a.cq, &none, 1);
		count_empty(&a);
		must((int) count_send(&a), "fi_tsend");
		/* when the answer has been taken in, the device has ended both of a's requests, in this order */
		wait_one(&b, NULL);
		must((int) fi_tsend(b.ep, b.buf, 8, NULL, b.peer, TAG, &b), "fi_tsend");
		wait_one(&b, NULL);
		must(count_read(&a) == 2 ? 0 : -FI_EIO, "fi_cq_read of two completions");
	}
	printf("%d\n", ROUNDS);
	return 0;
}
