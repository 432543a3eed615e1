/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Two endpoints of verbs;ofi_rxm in one process, a and b, for tests over the stand-in for a device. Each has a domain
 * of its own. One thread drives both. Every wait ends, with a failure after PATIENCE_S.
 */
#ifndef TEST_RXM_ENDS_H
#define TEST_RXM_ENDS_H

#include "base/unit.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define OK(call)	assert_int_equal(call, 0)
#define PATIENCE_S	60

struct end {
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
	unsigned done;			/* completions so far, all good */
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct end a, b;

/* An enabled endpoint on the domain, address vector and queue of this end, beside its own. */
static inline struct fid_ep *endpoint_open(const struct end *end)
{
	struct fid_ep *ep;

	OK(fi_endpoint(end->domain, info, &ep, NULL));
	OK(fi_ep_bind(ep, &end->av->fid, 0));
	OK(fi_ep_bind(ep, &end->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	return ep;
}

static inline void end_open(struct end *end)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	memset(end, 0, sizeof(*end));
	OK(fi_domain(fabric, info, &end->domain, NULL));
	OK(fi_av_open(end->domain, &av_attr, &end->av, NULL));
	OK(fi_cq_open(end->domain, &cq_attr, &end->cq, NULL));
	end->ep = endpoint_open(end);
}

static inline void end_close(struct end *end)
{
	OK(fi_close(&end->ep->fid));
	OK(fi_close(&end->cq->fid));
	OK(fi_close(&end->av->fid));
	OK(fi_close(&end->domain->fid));
}

static inline void introduce(struct end *end, struct end *peer)
{
	char name[64];
	size_t len = sizeof(name);

	OK(fi_getname(&peer->ep->fid, name, &len));
	assert_int_equal(fi_av_insert(end->av, name, 1, &end->peer, 0, NULL), 1);
}

/* info and fabric. */
static inline void fabric_open(uint64_t caps, int mr_mode, size_t tx_size)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = caps;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | mr_mode;
	hints->tx_attr->size = tx_size;
	OK(fi_getinfo(FI_VERSION(2, 0), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
}

/* All, and each end knows the other's address. */
static inline void ends_open(uint64_t caps, int mr_mode, size_t tx_size)
{
	fabric_open(caps, mr_mode, tx_size);
	end_open(&a);
	end_open(&b);
	introduce(&a, &b);
	introduce(&b, &a);
}

static inline int ends_close(void **state)
{
	(void) state;
	end_close(&a);
	end_close(&b);
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	return 0;
}

/* One pass. True: something has completed. */
static inline bool drive(struct end *end)
{
	struct fi_cq_tagged_entry entry[16];
	ssize_t ret = fi_cq_read(end->cq, entry, 16);

	if (ret == -FI_EAGAIN)
		return false;
	assert_true(ret > 0);
	end->done += (unsigned) ret;
	return true;
}

static inline time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Drive b, and a if it is not to be quiet, until something is so. */
#define until_with(cond, with_a)							\
	do {										\
		time_t end_ = now_s() + PATIENCE_S;					\
		while (!(cond)) {							\
			drive(&b);							\
			if (with_a)							\
				drive(&a);						\
			if (now_s() > end_)						\
				fail_msg("in vain waited for %s", #cond);		\
		}									\
	} while (0)
#define until(cond)	until_with(cond, true)

/* An endpoint of b's domain, which a sends a message to. */
static inline struct fid_ep *peer_add(void)
{
	struct fid_ep *ep = endpoint_open(&b);
	fi_addr_t addr;
	char name[64], to[8], from[8] = { 0 };
	size_t len = sizeof(name);
	unsigned sent = a.done + 1, received = b.done + 1;

	OK(fi_getname(&ep->fid, name, &len));
	assert_int_equal(fi_av_insert(a.av, name, 1, &addr, 0, NULL), 1);
	OK((int) fi_recv(ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, from, 8, NULL, addr, NULL));
	until(a.done == sent && b.done == received);
	return ep;
}

#endif
