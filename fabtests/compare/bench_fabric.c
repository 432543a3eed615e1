/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages and RMA over libfabric: an endpoint and its peer's, joined with the help of the socket between the
 * processes. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define NAME_LEN 64
#define TAG 1
#define WAIT_MS 20000
#define ANSWER_LEN 8

/* The node of this process, and what it moves: the first half of buf is sent or written from, the other one received
 * into, written to, and read from. */
static struct node self;
static char *buf;
static size_t half;
static struct fid_mr *mr;
static uint64_t remote_addr, remote_key;
static struct fi_context2 ctx[2 * WINDOW_MAX];

void *node_ctx(void)
{
	static unsigned next;

	return &ctx[next++ % (2 * WINDOW_MAX)];
}

void node_poll(struct node *node)
{
	struct fi_cq_tagged_entry entry[64];
	struct fi_cq_err_entry err = { .err_data_size = 0 };
	ssize_t i, cnt = node->sleeps ? fi_cq_sread(node->cq, entry, 64, NULL, WAIT_MS) :
					fi_cq_read(node->cq, entry, 64);

	if (cnt == -FI_EAGAIN)
		return;
	if (cnt == -FI_EAVAIL && fi_cq_readerr(node->cq, &err, 0) == 1)
		bench_check(-err.err, "a completion");
	bench_check(cnt, "fi_cq_read");
	for (i = 0; i < cnt; i++) {
		if (entry[i].flags & FI_RECV)
			node->received++;
		else
			node->sent++;
	}
}

static struct fi_info *get_info(struct bench *b, uint64_t caps, size_t rx_size)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int ret;

	hints->ep_attr->type = b->ep_type;
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->rx_attr->size = rx_size;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup(b->provider);
	ret = fi_getinfo(FI_VERSION(1, 17), *b->address ? b->address : NULL, NULL, *b->address ? FI_SOURCE : 0, hints,
			 &info);
	fi_freeinfo(hints);
	/* A size that the provider does not have is no reason to give up. */
	if (ret && rx_size)
		return get_info(b, caps, 0);
	bench_check(ret, "fi_getinfo");
	return info;
}

struct fid_ep *node_ep(struct node *node)
{
	struct fid_ep *ep;

	bench_check(fi_endpoint(node->domain, node->info, &ep, NULL), "fi_endpoint");
	bench_check(fi_ep_bind(ep, &node->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	if (node->av)
		bench_check(fi_ep_bind(ep, &node->av->fid, 0), "fi_ep_bind");
	if (node->eq)
		bench_check(fi_ep_bind(ep, &node->eq->fid, 0), "fi_ep_bind");
	bench_check(fi_enable(ep), "fi_enable");
	return ep;
}

static void open_domain(struct node *node)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .size = 4 * WINDOW_MAX,
				      .wait_obj = node->sleeps ? FI_WAIT_UNSPEC : FI_WAIT_NONE };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };

	bench_check(fi_domain(node->fabric, node->info, &node->domain, NULL), "fi_domain");
	bench_check(fi_cq_open(node->domain, &cq_attr, &node->cq, NULL), "fi_cq_open");
	if (node->info->ep_attr->type == FI_EP_RDM)
		bench_check(fi_av_open(node->domain, &av_attr, &node->av, NULL), "fi_av_open");
}

void node_open(struct bench *b, struct node *node, uint64_t caps, size_t rx_size)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

	node->sleeps = b->sleeps;
	node->info = get_info(b, caps, rx_size);
	bench_check(fi_fabric(node->info->fabric_attr, &node->fabric, NULL), "fi_fabric");
	if (b->ep_type == FI_EP_MSG)
		bench_check(fi_eq_open(node->fabric, &eq_attr, &node->eq, NULL), "fi_eq_open");
	open_domain(node);
	if (b->ep_type == FI_EP_RDM)
		node->ep = node_ep(node);
}

void node_name(struct fid_ep *ep, char *name)
{
	size_t len = NAME_LEN;

	bench_check(fi_getname(&ep->fid, name, &len), "fi_getname");
}

fi_addr_t node_insert(struct node *node, const char *name)
{
	fi_addr_t addr;

	bench_check(fi_av_insert(node->av, name, 1, &addr, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
	return addr;
}

static void wait_event(struct node *node, uint32_t wanted, struct fi_eq_cm_entry *entry)
{
	uint32_t event = 0;
	ssize_t ret = fi_eq_sread(node->eq, &event, entry, sizeof(*entry), WAIT_MS, 0);

	bench_check(ret, "fi_eq_sread");
	bench_check(event == wanted ? 0 : -FI_EOTHER, "an event of the connection");
}

/* The child listens, the parent connects. */
static void join_msg(struct bench *b, struct node *node)
{
	struct fi_eq_cm_entry entry;
	char name[NAME_LEN] = "", theirs[NAME_LEN];
	size_t len = sizeof(name);

	if (!b->parent) {
		bench_check(fi_passive_ep(node->fabric, node->info, &node->pep, NULL), "fi_passive_ep");
		bench_check(fi_pep_bind(node->pep, &node->eq->fid, 0), "fi_pep_bind");
		bench_check(fi_listen(node->pep), "fi_listen");
		bench_check(fi_getname(&node->pep->fid, name, &len), "fi_getname");
		bench_swap(b, name, theirs, sizeof(name));
		wait_event(node, FI_CONNREQ, &entry);
		fi_freeinfo(node->info);
		node->info = entry.info;
		node->ep = node_ep(node);
		bench_check(fi_accept(node->ep, NULL, 0), "fi_accept");
	} else {
		bench_swap(b, name, theirs, sizeof(name));
		node->ep = node_ep(node);
		bench_check(fi_connect(node->ep, theirs, NULL, 0), "fi_connect");
	}
	wait_event(node, FI_CONNECTED, &entry);
}

void node_join(struct bench *b, struct node *node)
{
	char mine[NAME_LEN] = "", theirs[NAME_LEN];

	if (b->ep_type == FI_EP_MSG) {
		join_msg(b, node);
		return;
	}
	node_name(node->ep, mine);
	bench_swap(b, mine, theirs, sizeof(mine));
	node->peer = node_insert(node, theirs);
}

static void close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

void node_close(struct node *node)
{
	close_fid(node->ep ? &node->ep->fid : NULL);
	close_fid(node->pep ? &node->pep->fid : NULL);
	close_fid(node->av ? &node->av->fid : NULL);
	close_fid(node->cq ? &node->cq->fid : NULL);
	close_fid(node->domain ? &node->domain->fid : NULL);
	close_fid(node->eq ? &node->eq->fid : NULL);
	close_fid(node->fabric ? &node->fabric->fid : NULL);
	fi_freeinfo(node->info);
}

/* ---- operations: each is made again as long as the provider has no room for it ---- */

typedef ssize_t post_fn(size_t size);

static void post(post_fn *call, size_t size, const char *what)
{
	ssize_t ret;

	while ((ret = call(size)) == -FI_EAGAIN)
		node_poll(&self);
	bench_check(ret, what);
}

static void *desc(void)
{
	return mr ? fi_mr_desc(mr) : NULL;
}

static ssize_t post_trecv(size_t size)
{
	return fi_trecv(self.ep, buf + half, size, desc(), self.peer, TAG, 0, node_ctx());
}

static ssize_t post_tsend(size_t size)
{
	return fi_tsend(self.ep, buf, size, desc(), self.peer, TAG, node_ctx());
}

static ssize_t post_recv(size_t size)
{
	return fi_recv(self.ep, buf + half, size, desc(), FI_ADDR_UNSPEC, node_ctx());
}

static ssize_t post_send(size_t size)
{
	return fi_send(self.ep, buf, size, desc(), self.peer, node_ctx());
}

static ssize_t post_write(size_t size)
{
	return fi_write(self.ep, buf, size, desc(), self.peer, remote_addr, remote_key, node_ctx());
}

/* A write that completes when it is in the target's memory, whatever the library's own default is. */
static ssize_t post_delivered(size_t size)
{
	const struct iovec iov = { buf, size };
	const struct fi_rma_iov target = { remote_addr, size, remote_key };
	void *descs[1] = { desc() };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .desc = descs, .iov_count = 1, .addr = self.peer, .rma_iov = &target,
		.rma_iov_count = 1, .context = node_ctx(),
	};

	return fi_writemsg(self.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
}

static ssize_t post_read(size_t size)
{
	return fi_read(self.ep, buf, size, desc(), self.peer, remote_addr, remote_key, node_ctx());
}

static void wait_for(long sent, long received)
{
	while (self.sent < sent || self.received < received)
		node_poll(&self);
}

/* The parent's messages of a window and the child's answer; a ping-pong is a window of one, answered by as much. */
static void turn(struct bench *b, post_fn *send, post_fn *recv)
{
	long sent = self.sent, received = self.received, window = b->window ? b->window : 1;
	long i, out = b->parent ? window : 1, in = b->parent ? 1 : window;
	size_t answer = b->window ? ANSWER_LEN : b->size;

	for (i = 0; i < in; i++)
		post(recv, b->parent ? answer : b->size, "receive");
	if (!b->parent)
		wait_for(sent, received + in);
	for (i = 0; i < out; i++)
		post(send, b->parent ? b->size : answer, "send");
	wait_for(sent + out, received + in);
}

static void messages(struct bench *b, long count, post_fn *send, post_fn *recv)
{
	long i, unit = b->window ? b->window : 1;

	for (i = 0; i < count; i += unit)
		turn(b, send, recv);
}

static void tagged_run(struct bench *b, long count)
{
	messages(b, count, post_tsend, post_trecv);
}

static void msg_run(struct bench *b, long count)
{
	messages(b, count, post_send, post_recv);
}

/* The child lets its provider work until the parent has done its part, which it hears by a message, and answers. */
static void finish_rma(struct bench *b)
{
	long sent = self.sent, received = self.received;

	post(post_recv, ANSWER_LEN, "receive");
	if (!b->parent)
		wait_for(sent, received + 1);
	post(post_send, ANSWER_LEN, "send");
	wait_for(sent + 1, received + 1);
}

/* The parent's operations, a window or one under way. */
static void one_sided(struct bench *b, long count, post_fn *call)
{
	long i, begin = self.sent, window = b->window ? b->window : 1;

	for (i = 0; b->parent && i < count; i++) {
		wait_for(begin + i - window + 1, 0);
		post(call, b->size, "RMA");
	}
	if (b->parent)
		wait_for(begin + count, 0);
	finish_rma(b);
}

/* Writes there and back: each end sees the other's by the last byte, which is never the same twice in a row. */
static void bounce(struct bench *b, long count, post_fn *call)
{
	static unsigned char mine, theirs;
	volatile unsigned char *last = (unsigned char *) buf + half + b->size - 1;
	long i, sent;
	int side;

	for (i = 0; i < count; i++) {
		theirs = (unsigned char) (theirs % 127 + 1);
		for (side = 0; side < 2; side++) {
			if (side == !b->parent) {
				mine = (unsigned char) (mine % 127 + 1);
				buf[b->size - 1] = (char) mine;
				sent = self.sent;
				post(call, b->size, "write");
				wait_for(sent + 1, 0);
				continue;
			}
			while (*last != theirs)
				node_poll(&self);
		}
	}
}

static void write_run(struct bench *b, long count)
{
	(b->window ? one_sided : bounce)(b, count, post_write);
}

static void delivered_run(struct bench *b, long count)
{
	(b->window ? one_sided : bounce)(b, count, post_delivered);
}

static void read_run(struct bench *b, long count)
{
	one_sided(b, count, post_read);
}

/* ---- open and close ---- */

static void open_messages(struct bench *b, uint64_t caps)
{
	size_t len = b->size < ANSWER_LEN ? ANSWER_LEN : b->size;

	half = (len + 4095) / 4096 * 4096;
	buf = aligned_alloc(4096, 2 * half);
	bench_check(buf ? 0 : -FI_ENOMEM, "buffers");
	memset(buf, 0, 2 * half);
	node_open(b, &self, caps, 0);
	if (caps & FI_RMA || self.info->domain_attr->mr_mode & FI_MR_LOCAL)
		bench_check(fi_mr_reg(self.domain, buf, 2 * half,
				      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
				      FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL), "fi_mr_reg");
	node_join(b, &self);
}

static void tagged_open(struct bench *b)
{
	open_messages(b, FI_TAGGED);
}

static void asleep_open(struct bench *b)
{
	b->sleeps = true;
	open_messages(b, FI_TAGGED);
}

static void msg_open(struct bench *b)
{
	open_messages(b, FI_MSG);
}

static void rma_open(struct bench *b)
{
	uint64_t mine[2], theirs[2];

	open_messages(b, FI_MSG | FI_RMA);
	mine[0] = half + (self.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) buf : 0);
	mine[1] = fi_mr_key(mr);
	bench_swap(b, mine, theirs, sizeof(mine));
	remote_addr = theirs[0];
	remote_key = theirs[1];
}

static void close_all(struct bench *b)
{
	(void) b;
	close_fid(mr ? &mr->fid : NULL);
	node_close(&self);
	free(buf);
}

const struct way fabric_ways[6] = {
	{ "tagged", 2, tagged_open, tagged_run, close_all },
	{ "asleep", 2, asleep_open, tagged_run, close_all },
	{ "msg", 2, msg_open, msg_run, close_all },
	{ "write", 2, rma_open, write_run, close_all },
	{ "delivered", 2, rma_open, delivered_run, close_all },
	{ "read", 1, rma_open, read_run, close_all },
};
