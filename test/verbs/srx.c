/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A device takes shared receives ahead. What it has in hand when an endpoint ends is given back, later than all else
 * ends, and it says when that is done: none of the context's receives is lost, and a device that says nothing is not
 * waited for without end.
 */
#include "link.h"
#include "../softverbs/stand_in.h"

#include <netinet/in.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVES	4

static struct fid_ep *srx_open(struct end *end)
{
	struct fi_rx_attr attr = { .caps = FI_MSG | FI_RECV, .size = RECEIVES, .iov_limit = 1 };
	struct fid_ep *srx;

	MUST(fi_srx_context(end->domain, &attr, &srx, NULL));
	for (intptr_t i = 0; i < RECEIVES; i++)
		MUST(fi_recv(srx, end->room + i * 64, 64, fi_mr_desc(end->mr), 0, (void *) i));
	return srx;
}

/* b's endpoint with this context, which has receives of the shared one, accepts a request. Returns what fi_accept()
 * does. */
static int accept_shared(struct link *link, struct fid_ep *srx, void *context, struct fi_info *info)
{
	struct end *b = &link->b;

	fi_freeinfo(b->info);
	b->info = info;
	b->info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	MUST(fi_endpoint(b->domain, b->info, &b->ep, context));
	MUST(fi_ep_bind(b->ep, &b->eq->fid, 0));
	MUST(fi_ep_bind(b->ep, &b->cq->fid, FI_TRANSMIT | FI_RECV));
	MUST(fi_ep_bind(b->ep, &srx->fid, 0));
	return fi_accept(b->ep, NULL, 0);
}

/* a connects, and b's endpoint with this context, which has receives of the shared one, accepts. */
static void connect_both(struct link *link, struct fid_ep *srx, void *context)
{
	struct fi_info *info = link_request(link).info;
	int ret;

	while ((ret = accept_shared(link, srx, context, info)) == -FI_ECONNABORTED) {
		MUST(fi_close(&link->b.ep->fid));
		info = link_await_request(link).info;
	}
	MUST(ret);
	MUST_BE(await_event(link, link->a.eq).event == FI_CONNECTED);
	MUST_BE(await_event(link, link->b.eq).event == FI_CONNECTED);
}

static void send_one(struct link *link)
{
	MUST(fi_send(link->a.ep, link->a.room, 8, fi_mr_desc(link->a.mr), 0, NULL));
	MUST_BE(!await_comp(link, &link->a, NULL));
	MUST_BE(!await_comp(link, &link->b, NULL));
}

/* What the device had taken ends with the endpoint; whoever comes next has the rest, and room for as many. */
static void taken_ahead(bool peer_first)
{
	struct link link = { 0 };
	struct fi_cq_err_entry error = { 0 };
	struct fid_ep *srx;
	int err;

	link_listen(&link);
	srx = srx_open(&link.b);
	connect_both(&link, srx, NULL);
	send_one(&link);
	if (peer_first) {
		MUST(fi_close(&link.a.ep->fid));
		link.a.ep = NULL;
		MUST_BE(await_event(&link, link.b.eq).event == FI_SHUTDOWN);
	}
	MUST(fi_close(&link.b.ep->fid));
	link.b.ep = NULL;
	err = await_comp(&link, &link.b, &error);
	MUST_BE(err == FI_ECANCELED || (peer_first && err == FI_ECONNRESET));
	MUST_BE(error.op_context == (void *) 1);
	MUST_BE(srx->ops->rx_size_left(srx) == 2);
	if (!peer_first)
		MUST(fi_close(&link.a.ep->fid));
	link.a.ep = NULL;
	MUST(end_open_ep(&link.a));
	connect_both(&link, srx, NULL);
	send_one(&link);
	MUST_BE(srx->ops->rx_size_left(srx) == 3);
	MUST(fi_close(&link.b.ep->fid));
	link.b.ep = NULL;
	MUST(fi_close(&srx->fid));
	link_close(&link);
}

static void closed_first(void)
{
	taken_ahead(false);
}

static void peer_closed_first(void)
{
	taken_ahead(true);
}

/* Six endpoints end, one after the other. */
static void never_told(void)
{
	struct link link = { 0 };
	struct fid_ep *srx;

	link_listen(&link);
	srx = srx_open(&link.b);
	for (int i = 0; i < 6; i++) {
		connect_both(&link, srx, NULL);
		if (i < RECEIVES)
			send_one(&link);
		MUST(fi_close(&link.b.ep->fid));
		link.b.ep = NULL;
		MUST(fi_close(&link.a.ep->fid));
		link.a.ep = NULL;
		MUST(end_open_ep(&link.a));
	}
	MUST_BE(srx->ops->rx_size_left(srx) == RECEIVES);
	MUST(fi_close(&srx->fid));
	link_close(&link);
}

/* Its endpoints end, which is told. */
static void queue_fails(void)
{
	void (*event)(enum ibv_event_type type);
	struct link link = { 0 };
	struct fid_ep *srx;

	event = stand_in("sv_test_event");
	link_listen(&link);
	srx = srx_open(&link.b);
	connect_both(&link, srx, NULL);
	send_one(&link);
	event(IBV_EVENT_SRQ_ERR);
	MUST_BE(await_event(&link, link.b.eq).event == FI_SHUTDOWN);
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	MUST(fi_close(&link.b.ep->fid));
	link.b.ep = NULL;
	MUST(fi_close(&srx->fid));
	link_close(&link);
}

#define LONG_QUEUE	1100	/* operations: more than the first completion queue has room for */

/* An endpoint's queue pair completes to one completion queue, and its receives, which are the context's, to another.
 * That one breaks: the endpoint ends, which is told. */
static void completions_fail(void)
{
	void (*tell_of)(enum ibv_event_type type, void *object);
	struct ibv_qp *(*qp_at)(unsigned), *qp;
	struct link link = { 0 };
	struct fi_info *info;
	struct fid_ep *srx;
	unsigned i = 0;

	tell_of = stand_in("sv_test_event_of");
	qp_at = stand_in("sv_test_qp_at");
	link_listen(&link);
	srx = srx_open(&link.b);
	info = link_request(&link).info;
	info->tx_attr->size = LONG_QUEUE;
	MUST(accept_shared(&link, srx, NULL, info));
	MUST_BE(await_event(&link, link.a.eq).event == FI_CONNECTED);
	MUST_BE(await_event(&link, link.b.eq).event == FI_CONNECTED);
	send_one(&link);
	while ((qp = qp_at(i)) && !qp->srq)
		i++;
	MUST_BE(qp && qp->send_cq != qp->recv_cq);
	tell_of(IBV_EVENT_CQ_ERR, qp->recv_cq);
	MUST_BE(await_event(&link, link.b.eq).event == FI_SHUTDOWN);
	MUST_BE(await_event(&link, link.a.eq).event == FI_SHUTDOWN);
	MUST(fi_close(&link.b.ep->fid));
	link.b.ep = NULL;
	MUST(fi_close(&srx->fid));
	link_close(&link);
}

/* The same as await_comp(), without a pass of the other end. */
static void await_sent(struct end *end)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(end->cq, &entry, 1)) == -FI_EAGAIN)
		sched_yield();
	MUST_BE(ret == 1);
}

/* The next pass posts the receive of the message that was dropped; until then the next message finds none. So a pass
 * reads at most one such message for each receive, and ends, however much the peer sends. */
static void expect_no_receive(void)
{
	unsigned (*rnr_cnt)(void) = stand_in("sv_test_rnr_cnt"), before = rnr_cnt();

	while (rnr_cnt() < before + 2)
		sched_yield();
}

/* Over XRC a target is shared. One endpoint has it with a shared context, which is empty; another, *b, keeps it alive,
 * with *a as its peer. Two messages to the first wait at its device until the endpoint has gone. Then the context gets
 * a receive, which the first message takes. Returns the context. */
static struct fid_ep *send_late(struct link *link, struct fid_ep **a, struct fid_ep **b)
{
	struct fi_rx_attr attr = { .caps = FI_MSG | FI_RECV, .size = RECEIVES, .iov_limit = 1 };
	struct fid_ep *srx;

	link_listen(link);
	MUST(fi_srx_context(link->b.domain, &attr, &srx, NULL));
	link_accept(link, link_request(link).info);
	*a = link->a.ep;
	*b = link->b.ep;
	MUST(end_open_ep(&link->a));
	connect_both(link, srx, NULL);
	MUST(fi_send(link->a.ep, "late", 4, NULL, 0, NULL));
	MUST(fi_send(link->a.ep, "more", 4, NULL, 0, NULL));
	MUST(fi_close(&link->b.ep->fid));
	link->b.ep = NULL;
	MUST(fi_recv(srx, link->b.room, 64, fi_mr_desc(link->b.mr), 0, link));
	await_sent(&link->a);
	return srx;
}

/* Each message is dropped, and the receive is there for the next endpoint. */
static void comes_late(void)
{
	struct link link = { 0 };
	struct fid_ep *srx, *a, *b;

	srx = send_late(&link, &a, &b);
	fi_cq_read(link.b.cq, NULL, 0);
	MUST_BE(srx->ops->rx_size_left(srx) == RECEIVES - 1);
	expect_no_receive();
	MUST_BE(!await_comp(&link, &link.a, NULL));
	MUST(fi_close(&link.a.ep->fid));
	MUST(fi_close(&a->fid));
	MUST(fi_close(&b->fid));
	MUST(end_open_ep(&link.a));
	connect_both(&link, srx, NULL);
	MUST(fi_send(link.a.ep, "next", 4, NULL, 0, NULL));
	MUST_BE(!await_comp(&link, &link.b, NULL));
	MUST_BE(!memcmp(link.b.room, "next", 4));
	MUST(fi_close(&link.b.ep->fid));
	link.b.ep = NULL;
	MUST(fi_close(&srx->fid));
	link_close(&link);
}

/* The device does not take the receive again: the context has room for another in its place. */
static void comes_late_in_vain(void)
{
	struct link link = { 0 };
	struct fid_ep *srx, *a, *b;

	srx = send_late(&link, &a, &b);
	setenv("SOFTVERBS_FAIL", "ibv_post_srq_recv:1+=ENOMEM", 1);
	while (srx->ops->rx_size_left(srx) < RECEIVES)
		fi_cq_read(link.b.cq, NULL, 0);
	unsetenv("SOFTVERBS_FAIL");
	MUST(fi_recv(srx, link.b.room, 64, fi_mr_desc(link.b.mr), 0, &link));
	MUST_BE(!await_comp(&link, &link.a, NULL));
	MUST(fi_close(&link.a.ep->fid));
	link.a.ep = NULL;
	MUST(fi_close(&a->fid));
	MUST(fi_close(&b->fid));
	MUST(fi_close(&srx->fid));
	link_close(&link);
}

/* The endpoint that the next message at this end came to. */
static void *taker(const struct end *at, const struct end *other)
{
	struct fi_cq_data_entry entry;
	ssize_t ret;

	while ((ret = fi_cq_read(at->cq, &entry, 1)) == -FI_EAGAIN)
		fi_cq_read(other->cq, NULL, 0);
	MUST(ret);
	return entry.buf;
}

/* From now on a connects to another listener of b's. */
static struct fid_pep *listen_elsewhere(struct link *link)
{
	size_t len = link->a.info->dest_addrlen;
	struct fid_pep *pep = link->pep;

	((struct sockaddr_in *) link->b.info->src_addr)->sin_port = 0;
	MUST(fi_passive_ep(link->b.fabric, link->b.info, &link->pep, NULL));
	MUST(fi_pep_bind(link->pep, &link->pep_eq->fid, 0));
	MUST(fi_listen(link->pep));
	MUST(fi_getname(&link->pep->fid, link->a.info->dest_addr, &len));
	return pep;
}

/* The endpoints of all connections close. */
static void close_both(struct link *link, struct fid_ep **a, struct fid_ep **b)
{
	for (int i = 0; i < RECEIVES; i++) {
		MUST(fi_close(&a[i]->fid));
		MUST(fi_close(&b[i]->fid));
	}
	link->a.ep = link->b.ep = NULL;
}

/* Two processes have several connections between them, to one context. A completion names its endpoint. The end that
 * connects does not know which contexts its peers have, so over XRC the other may refuse, and is asked again. */
static void names_endpoint(void)
{
	struct link link = { 0 };
	struct fid_ep *srx, *a[RECEIVES], *b[RECEIVES];
	struct fid_pep *first = NULL;
	char which[RECEIVES];

	link_listen(&link);
	srx = srx_open(&link.b);
	for (int i = 0; i < RECEIVES; i++) {
		if (i == RECEIVES - 1)
			first = listen_elsewhere(&link);
		connect_both(&link, srx, &which[i]);
		a[i] = link.a.ep;
		b[i] = link.b.ep;
		if (i + 1 < RECEIVES)
			MUST(end_open_ep(&link.a));
	}
	for (int i = RECEIVES; i--;) {
		MUST(fi_send(a[i], "which", 5, NULL, 0, NULL));
		MUST_BE(taker(&link.b, &link.a) == &which[i]);
	}
	close_both(&link, a, b);
	MUST(fi_close(&first->fid));
	MUST(fi_close(&srx->fid));
	link_close(&link);
}

/* The same where the context is that of the end that connects. The other knows it, and takes another initiator. */
static void names_connector(void)
{
	struct link link = { 0 };
	struct fid_ep *srx, *a[RECEIVES], *b[RECEIVES];
	char which[RECEIVES];

	link_listen(&link);
	MUST(fi_close(&link.a.ep->fid));
	srx = srx_open(&link.a);
	link.a.info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	for (int i = 0; i < RECEIVES; i++) {
		MUST(fi_endpoint(link.a.domain, link.a.info, &link.a.ep, &which[i]));
		MUST(fi_ep_bind(link.a.ep, &link.a.eq->fid, 0));
		MUST(fi_ep_bind(link.a.ep, &link.a.cq->fid, FI_TRANSMIT | FI_RECV));
		MUST(fi_ep_bind(link.a.ep, &srx->fid, 0));
		link_accept(&link, link_request(&link).info);
		a[i] = link.a.ep;
		b[i] = link.b.ep;
	}
	for (int i = RECEIVES; i--;) {
		MUST(fi_send(b[i], "which", 5, NULL, 0, NULL));
		MUST_BE(taker(&link.a, &link.b) == &which[i]);
	}
	close_both(&link, a, b);
	MUST(fi_close(&srx->fid));
	link_close(&link);
}

static const struct vcase cases[] = {
	{ "an endpoint closes: what its device had taken ends", "SOFTVERBS_LIMITS=last_wqe=50", closed_first, NULL },
	{ "a peer closes: what the device had taken ends", "SOFTVERBS_LIMITS=last_wqe=50", peer_closed_first, NULL },
	{ "the context's queue fails", NULL, queue_fails, "device soft0: a shared receive queue has failed" },
	{ "the completion queue of the context fails", "SOFTVERBS_LIMITS=no_resize_cq=1", completions_fail,
	  "device soft0: a completion queue is broken" },
	{ "a device that never tells is not waited for", "SOFTVERBS_LIMITS=no_last_wqe=1", never_told,
	  "device soft0 has not reported the last shared receive" },
	{ "a completion names its endpoint", NULL, names_endpoint, NULL },
	{ "XRC: a completion names its endpoint", "FI_VERBS_PREFER_XRC=1", names_endpoint, NULL },
	{ "XRC: a completion names the endpoint that has connected", "FI_VERBS_PREFER_XRC=1", names_connector, NULL },
	{ "XRC: what comes for an endpoint that has gone leaves its receive to others", "FI_VERBS_PREFER_XRC=1",
	  comes_late, NULL },
	{ "XRC: such a receive cannot be posted again", "FI_VERBS_PREFER_XRC=1", comes_late_in_vain,
	  "ibv_post_srq_recv on soft0: .*a shared receive that came to a closed endpoint is lost" },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
