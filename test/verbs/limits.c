/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device that has the least of something: what it offers then is true, to the last operation and receive, or it
 * offers nothing and says what is too small.
 */
#include "link.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A read into as many buffers as an operation may have. */
static void read_apart(struct link *link)
{
	size_t cnt = link->a.info->tx_attr->iov_limit, len = least(cnt, link->a.info->ep_attr->max_msg_size);
	struct iovec iov[64];
	void *desc[64];

	MUST_BE(cnt >= 1 && cnt <= 64);
	for (size_t i = 0; i < len; i++) {
		iov[i] = (struct iovec) { link->a.room + 2 * i, 1 };
		desc[i] = fi_mr_desc(link->a.mr);
		link->b.room[i] = (char) ('a' + i);
	}
	MUST(fi_readv(link->a.ep, iov, desc, len, 0, (uintptr_t) link->b.room, fi_mr_key(link->b.mr), NULL));
	MUST_BE(!await_comp(link, &link->a, NULL));
	for (size_t i = 0; i < len; i++)
		MUST_BE(link->a.room[2 * i] == (char) ('a' + i));
}

/* b's queue of receives is filled, and a's of sends: neither takes one more, and all that they took is done. */
static void fill_queues(struct link *link)
{
	const struct fi_tx_attr *tx = link->a.info->tx_attr;
	size_t len = least(link->a.info->ep_attr->max_msg_size, 8), rx_cnt = 0, tx_cnt = 0;
	ssize_t ret;

	while (!(ret = fi_recv(link->b.ep, link->b.room, len, fi_mr_desc(link->b.mr), 0, NULL)))
		MUST_BE(++rx_cnt <= link->b.info->rx_attr->size);
	MUST_BE(ret == -FI_EAGAIN && rx_cnt == link->b.info->rx_attr->size);
	/* nothing is known to have left before it is looked at */
	for (; tx_cnt < least(tx->size, rx_cnt); tx_cnt++)
		MUST(fi_send(link->a.ep, link->a.room, len, fi_mr_desc(link->a.mr), 0, NULL));
	if (tx_cnt == tx->size)
		MUST_FAIL(fi_send(link->a.ep, link->a.room, len, fi_mr_desc(link->a.mr), 0, NULL), FI_EAGAIN);
	for (size_t i = 0; i < tx_cnt; i++) {
		MUST_BE(!await_comp(link, &link->a, NULL));
		MUST_BE(!await_comp(link, &link->b, NULL));
	}
	if (!tx->inject_size)
		return;
	if (rx_cnt == tx_cnt)
		MUST(fi_recv(link->b.ep, link->b.room, len, fi_mr_desc(link->b.mr), 0, NULL));
	MUST(fi_inject(link->a.ep, link->a.room, least(tx->inject_size, len), 0));
	MUST_BE(!await_comp(link, &link->b, NULL));
}

static void works(void)
{
	struct link link = { 0 };

	link_open(&link);
	MUST_BE(link.a.info->tx_attr->size && link.a.info->rx_attr->size && link.a.info->rx_attr->iov_limit);
	MUST_BE(link.a.info->tx_attr->inject_size <= link.a.info->ep_attr->max_msg_size);
	read_apart(&link);
	fill_queues(&link);
	link_close(&link);
}

/* A context that endpoints share has as many receives as it says. */
static void shares(void)
{
	struct fi_info *hints = hints_new(), *info;
	struct fi_rx_attr attr = { .caps = FI_MSG | FI_RECV, .size = 1, .iov_limit = 1 };
	struct end end = { 0 };
	struct fid_ep *srx;

	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	end_open(&end, info);
	MUST(fi_srx_context(end.domain, &attr, &srx, NULL));
	MUST(fi_recv(srx, end.room, 8, fi_mr_desc(end.mr), 0, NULL));
	MUST_FAIL(fi_recv(srx, end.room, 8, fi_mr_desc(end.mr), 0, NULL), FI_EAGAIN);
	MUST(fi_close(&srx->fid));
	attr.size = 2;
	MUST_BE(fi_srx_context(end.domain, &attr, &srx, NULL) < 0);
	end_close(&end);
}

/* One of something: the first has it, the next is refused, which leaves the first as it was. */
static void one(void)
{
	struct fi_info *hints = hints_new(), *info;
	struct end first = { 0 }, second = { 0 };
	struct fid_mr *mr;
	int ret;

	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	end_open(&first, info);
	MUST(end_open_ep(&first));
	second = first;
	second.ep = NULL;
	ret = fi_mr_reg(first.domain, first.room, 64, FI_SEND, 0, 0, 0, &mr, NULL);
	if (!ret) {
		MUST(fi_close(&mr->fid));
		ret = end_open_ep(&second);
		MUST_BE(ret == -FI_ENOMEM);
		MUST(fi_close(&second.ep->fid));
	}
	MUST_BE(ret == -FI_ENOMEM);
	MUST(fi_recv(first.ep, first.room, 64, fi_mr_desc(first.mr), 0, NULL));
	end_close(&first);
}

/* Each domain has a completion queue of the device's. */
static void one_queue(void)
{
	struct fi_info *hints = hints_new(), *info;
	struct end first = { 0 }, second = { 0 };

	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	end_open(&first, info);
	MUST(end_open_ep(&first));
	end_open(&second, fi_dupinfo(info));
	MUST_FAIL(end_open_ep(&second), FI_ENOMEM);
	end_close(&second);
	end_close(&first);
}

/* All endpoints of the device can share one receive context. */
static void sharers(void)
{
	struct fi_info *hints = hints_new(), *info;

	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	MUST_BE(info->domain_attr->ep_cnt == 5 && info->domain_attr->max_ep_srx_ctx == 5);
	fi_freeinfo(info);
}

static void datagrams(void)
{
	struct fi_info *hints = dgram_hints_new(), *info;
	struct dgram one = { 0 };

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	MUST_BE(info->tx_attr->size && info->rx_attr->size && info->tx_attr->iov_limit && info->rx_attr->iov_limit);
	MUST_BE(info->tx_attr->inject_size <= info->ep_attr->max_msg_size);
	dgram_open(&one, info);
	fi_freeinfo(info);
	MUST(fi_recv(one.end.ep, one.end.room, 1000, fi_mr_desc(one.end.mr), 0, NULL));
	dgram_close(&one);
}

static void nothing_is_found(void)
{
	hints_in_vain(hints_new());
}

static void no_xrc(void)
{
	struct fi_info *hints = hints_new();

	hints->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_XRC;
	hints_in_vain(hints);
}

#define XRC	"FI_VERBS_PREFER_XRC=1 SOFTVERBS_LIMITS="
#define TOO_SMALL(name, is, need) \
	"device soft0, port 1 is not used: its " name " is " is ", and an endpoint needs " need

static const struct vcase cases[] = {
	{ "max_sge 1", "SOFTVERBS_LIMITS=max_sge=1", works, NULL },
	{ "max_sge 1, XRC", XRC "max_sge=1", works, NULL },
	{ "max_sge 1, datagrams", "SOFTVERBS_LIMITS=max_sge=1", datagrams, NULL },
	{ "max_sge_rd 1", "SOFTVERBS_LIMITS=max_sge_rd=1", works, NULL },
	{ "max_sge_rd 1, XRC", XRC "max_sge_rd=1", works, NULL },
	{ "max_sge_rd 1, of 2 requests", "SOFTVERBS_LIMITS=max_sge_rd=1,max_qp_wr=2", works, NULL },
	{ "max_qp_wr 1", "SOFTVERBS_LIMITS=max_qp_wr=1", nothing_is_found, TOO_SMALL("max_qp_wr", "1", "2") },
	{ "max_qp_wr 2", "SOFTVERBS_LIMITS=max_qp_wr=2", works, NULL },
	{ "max_qp_wr 2, XRC", XRC "max_qp_wr=2", works, NULL },
	{ "max_qp_wr 2, datagrams", "SOFTVERBS_LIMITS=max_qp_wr=2", datagrams, NULL },
	{ "max_cqe 1", "SOFTVERBS_LIMITS=max_cqe=1", nothing_is_found, TOO_SMALL("max_cqe", "1", "3") },
	{ "max_cqe 2", "SOFTVERBS_LIMITS=max_cqe=2", nothing_is_found, TOO_SMALL("max_cqe", "2", "3") },
	{ "max_cqe 3", "SOFTVERBS_LIMITS=max_cqe=3", works, NULL },
	{ "max_cqe 3, XRC", XRC "max_cqe=3", works, NULL },
	{ "max_cqe 3, datagrams", "SOFTVERBS_LIMITS=max_cqe=3", datagrams, NULL },
	{ "max_cqe 100", "SOFTVERBS_LIMITS=max_cqe=100", works, NULL },
	{ "max_qp 1", "SOFTVERBS_LIMITS=max_qp=1", one, "rdma_create_qp on soft0 .*ask for less" },
	{ "max_qp 1, XRC", "FI_EXPLAIN=1 SOFTVERBS_LIMITS=max_qp=1", no_xrc,
	  "max_qp, for XRC: asked 1, 1, 1, 2, offered .*, 1" },
	{ "max_qp 2", "SOFTVERBS_LIMITS=max_qp=2", works, NULL },
	{ "max_qp 5, of a shared receive context", "SOFTVERBS_LIMITS=max_qp=5", sharers, NULL },
	{ "max_cq 1", "SOFTVERBS_LIMITS=max_cq=1", one_queue, "ibv_create_cq of .* on soft0" },
	{ "max_cq 2", "SOFTVERBS_LIMITS=max_cq=2", works, NULL },
	{ "max_mr 1", "SOFTVERBS_LIMITS=max_mr=1", one, "ibv_reg_mr of 64 bytes on soft0" },
	{ "max_mr 2", "SOFTVERBS_LIMITS=max_mr=2", works, NULL },
	{ "max_srq_wr 1", "SOFTVERBS_LIMITS=max_srq_wr=1", shares, "rx_attr->size is 2, verbs offers 1" },
	{ "max_srq_wr 1, XRC", XRC "max_srq_wr=1", works, NULL },
	{ "max_srq_sge 1, XRC", XRC "max_srq_sge=1", works, NULL },
	{ "max_qp_rd_atom 1", "SOFTVERBS_LIMITS=max_qp_rd_atom=1", works, NULL },
	{ "max_qp_rd_atom 1, XRC", XRC "max_qp_rd_atom=1", works, NULL },
	{ "max_inline_data 1", "SOFTVERBS_LIMITS=max_inline_data=1", works, NULL },
	{ "max_msg_sz 1", "SOFTVERBS_LIMITS=max_msg_sz=1", works, NULL },
	{ "max_msg_sz 1, XRC", XRC "max_msg_sz=1", works, NULL },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
