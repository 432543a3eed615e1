/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What libraries for remote calls and for accelerators do with the entry they have taken, call by call: Mercury, the
 * plugin of NCCL, NIXL. The two sides are two processes of the client.
 * Source: fi_msg(3), fi_tagged(3), fi_rma(3).
 */
#include <string.h>

#include "clients.h"
#include "waitobj.h"

/* ---- Mercury */

#define UNEXPECTED_LEN 65536

static struct side *mercury_open(struct test *t, const char *name)
{
	return side_open(t, .info = client_info(t, name), .one_cq = true, .cq_wait = FI_WAIT_FD, .av_type = FI_AV_MAP);
}

/* It sleeps in epoll on the descriptor when fi_trywait() lets it: the descriptor wakes it for a message, and once that
 * is taken it sleeps again (Mercury issue 317, libfabric 8947: 100% CPU). It is driven by that alone. */
static void mercury_check_sleep(struct side *client, struct side *server)
{
	int fd = wait_fd(&server->rx_cq->fid);
	uint8_t *in = mem(server->t, 256);
	struct wait w;
	int i;

	for (i = 0; i < 3; i++) {
		post(server, TRECV, .buf = in, .len = 256, .tag = 900 + i);
		idle(server->t);
		CHECK_RET(trywait(server, &server->rx_cq->fid), 0);
		CHECK(!fd_readable(fd, 0));
		tsend_bytes(client, "wake up!", 8, 900 + i);
		w = wait_begin();
		while (!rx_waiting(server)) {
			side_progress(client);
			if (trywait(server, &server->rx_cq->fid) || fd_readable(fd, 1))
				side_progress(server);
			if (now_ms() > w.until)
				FAIL("the descriptor does not wake the server");
		}
		expect_recv(server, "wake up!", 8);
		expect_tx(client);
	}
}

/* Requests come unexpected, into buffers for many; the answer is expected, by tag; bulk data goes by RMA. */
static void mercury_check_calls(struct side *client, struct side *server)
{
	struct region bulk = region_open(client, NULL, 100000, FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint8_t *requests = mem(server->t, UNEXPECTED_LEN), *answer = mem(client->t, 4096);
	uint8_t *local = mem(server->t, 100000);
	struct comp c;
	uint64_t i;

	fill(bulk.buf, 100000, 1);
	post(server, RECVMSG, .buf = requests, .len = UNEXPECTED_LEN, .flags = FI_MULTI_RECV);
	for (i = 0; i < 10; i++) {
		post(client, TRECV, .buf = answer, .len = 4096, .tag = 0x1000 + i);
		send_bytes(client, "a request", 10);
		c = expect_rx(server);
		CHECK_MEM(c.buf, "a request", 10);
		if (server->info->caps & FI_SOURCE)
			CHECK_EQ(c.src, server->peer);
		post(server, READMSG, .buf = local, .len = 100000, .raddr = bulk.addr, .key = bulk.key,
		     .flags = FI_COMPLETION);
		expect_tx(server);
		check_fill(local, 100000, 1 + (unsigned int) i);
		fill(local, 100000, 2 + (unsigned int) i);
		post(server, WRITEMSG, .buf = local, .len = 100000, .raddr = bulk.addr, .key = bulk.key,
		     .flags = FI_COMPLETION | FI_DELIVERY_COMPLETE);
		expect_tx(server);
		check_fill(bulk.buf, 100000, 2 + (unsigned int) i);
		tsend_bytes(server, "its answer", 11, 0x1000 + i);
		expect_recv(client, "its answer", 11);
		expect_tx(client);
		expect_tx(server);
	}
}

/* Cancelled: one completion that says so, with the context; a buffer for many says also that it is released. */
static void mercury_check_cancel(struct side *s)
{
	uint8_t *in = mem(s->t, 4096);
	void *ctx = post(s, TRECV, .buf = in, .len = 64, .tag = 0x5555);
	struct comp c;

	MUST((int) fi_cancel(&s->ep->fid, ctx));
	c = expect_rx_err(s, FI_ECANCELED);
	CHECK(c.ctx == ctx);
	if (!run.ours)
		return;
	ctx = post(s, RECVMSG, .buf = in, .len = 4096, .flags = FI_MULTI_RECV);
	MUST((int) fi_cancel(&s->ep->fid, ctx));
	c = expect_rx_err(s, FI_ECANCELED);
	CHECK(c.ctx == ctx);
	CHECK(c.flags & FI_MULTI_RECV);
}

/* The calls of Mercury: a server, a client, multi-receive buffers, expected messages, RMA. */
TEST_PROV(mercury_sequence, FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV, RDM_ONLY)
{
	struct side *server = mercury_open(t, "mercury_listener"), *client = mercury_open(t, "mercury_client");
	size_t min = 4096;
	int i;

	MUST(fi_setopt(&server->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	client->peer = side_insert(client, server);
	server->peer = side_insert(server, client);
	mercury_check_calls(client, server);
	mercury_check_sleep(client, server);
	mercury_check_cancel(client);
	for (i = 0; i < 20; i++) {
		MUST(fi_av_remove(client->av, &client->peer, 1, 0));
		client->peer = side_insert(client, server);
	}
	post_trecv(server, mem(t, 16), 16, 77, 0);
	tsend_bytes(client, "still there", 12, 77);
	expect_recv(server, "still there", 12);
	expect_tx(client);
}

/* It tells its users that the host is unreachable by these errors, and tries again for two minutes after others. */
TEST_PROV(mercury_understands_who_is_gone, FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV, RDM_ONLY)
{
	struct side *server = mercury_open(t, "mercury_listener"), *client = mercury_open(t, "mercury_client");
	struct comp c;

	client->peer = side_insert(client, server);
	side_close(server);
	if (post_ret(client, SEND, .buf = "anybody?", .len = 8))
		return;
	c = expect_tx_failed(client);
	CHECK(c.err == FI_ECONNREFUSED || c.err == FI_ECONNRESET || c.err == FI_ENOTCONN || c.err == FI_EHOSTUNREACH);
}

/* ---- NCCL's plugin, protocol sendrecv */

/* Every buffer is registered with key 0, since it will never be accessed remotely. */
static void *nccl_desc(struct side *s, void *buf, size_t len)
{
	struct fid_mr *mr;

	MUST(fi_mr_reg(s->domain, buf, len, FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL));
	own_fid(s->t, &mr->fid);
	region_ready(s, mr);
	return fi_mr_desc(mr);
}

static void nccl_sequence(struct test *t, const char *name)
{
	enum { INFLIGHT = 8, LEN = 300000 };
	struct fi_info *info = client_info(t, name);
	struct side *a = side_open(t, .info = info, .one_cq = true), *b = side_open(t, .info = info, .one_cq = true);
	struct fi_context2 *ctx = mem(t, 2 * INFLIGHT * sizeof(*ctx));
	uint8_t *out = mem(t, INFLIGHT * LEN), *in = mem(t, INFLIGHT * LEN);
	void *out_desc = nccl_desc(a, out, INFLIGHT * LEN), *in_desc = nccl_desc(b, in, INFLIGHT * LEN);
	struct wait w = wait_begin();
	unsigned int i;

	a->peer = side_insert(a, b);
	b->peer = side_insert(b, a);
	for (i = 0; i < INFLIGHT; i++) {
		fill(out + i * LEN, LEN - i, i);
		MUST((int) fi_trecv(b->ep, in + i * LEN, LEN, in_desc, FI_ADDR_UNSPEC, 3, 0, &ctx[i]));
		while (fi_tsend(a->ep, out + i * LEN, LEN - i, out_desc, a->peer, 3, &ctx[INFLIGHT + i]) == -FI_EAGAIN)
			wait_more(t, &w, "room to send");
	}
	a->tx_posted += INFLIGHT;
	for (i = 0; i < INFLIGHT; i++) {
		struct comp c = expect_rx(b);

		CHECK_EQ(c.len, LEN - (size_t) ((struct fi_context2 *) c.ctx - ctx));
		check_fill(in + i * LEN, LEN - i, i);
	}
	expect_tx_cnt(a, INFLIGHT);
}

/* The calls of NCCL's plugin that asks for version 1.18. */
TEST_PROV(nccl_sequence_1_18, FI_MSG | FI_TAGGED, RDM_ONLY)
{
	nccl_sequence(t, "nccl_sendrecv");
}

/* The same of the plugin that asks for version 1.6. */
TEST_PROV(nccl_sequence_1_6, FI_MSG | FI_TAGGED, RDM_ONLY)
{
	nccl_sequence(t, "nccl_sendrecv_1.6");
}

/* ---- NIXL */

/* The calls of NIXL: writes with a notification. */
TEST_PROV(nixl_sequence, FI_MSG | FI_RMA, RDM_ONLY)
{
	struct opts o = { .info = client_info(t, "nixl"), .one_cq = true, .format = FI_CQ_FORMAT_DATA, .cq_size = 12288,
			  .cq_wait = FI_WAIT_NONE };
	struct side *a = side_open_opts(t, &o), *b = side_open_opts(t, &o);
	uint8_t *target = mem(t, 50000), *out = mem_pattern(t, 50000, 6), *in = mem(t, 50000);
	int mr_mode = o.info->domain_attr->mr_mode;
	struct fid_mr *mr;
	struct comp c;

	a->peer = side_insert(a, b);
	b->peer = side_insert(b, a);
	MUST(fi_mr_reg(b->domain, target, 50000, FI_REMOTE_READ | FI_REMOTE_WRITE | FI_WRITE | FI_READ, 0,
		       (uintptr_t) target, 0, &mr, NULL));
	own_fid(t, &mr->fid);
	region_ready(b, mr);
	post(a, WRITEDATA, .buf = out, .len = 50000, .raddr = mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) target : 0,
	     .key = fi_mr_key(mr), .data = 0x12345678);
	c = expect_rx(b);
	CHECK(c.flags & FI_REMOTE_CQ_DATA);
	CHECK_EQ(c.data, 0x12345678);
	check_fill(target, 50000, 6);
	expect_tx(a);
	post(a, READ, .buf = in, .len = 50000, .raddr = mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) target : 0,
	     .key = fi_mr_key(mr));
	expect_tx(a);
	check_fill(in, 50000, 6);
	post_recv(b, in, 64);
	post(a, SENDDATA, .buf = "a notification", .len = 15, .data = 9);
	c = expect_recv(b, "a notification", 15);
	CHECK_EQ(c.data, 9);
	expect_tx(a);
}
