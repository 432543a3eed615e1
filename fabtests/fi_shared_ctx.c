/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_shared_ctx: endpoints that share a transmit context (fi_stx_context) and a receive context (fi_srx_context).
 * Receives are posted to the shared context, and every message that any of the endpoints takes finds one.
 */
#include "lib/func.h"

#include <string.h>

#define MAX_EPS 32
#define RECVS 16

struct settings {
	uint32_t cnt;
	bool no_tx, no_rx;
	struct fid_stx *stx;
	struct fid_ep *srx;
	struct fid_cq *cq;
	struct func_ep eps[MAX_EPS];
	struct func_buf in;
	struct func_op tx[MAX_EPS], rx[RECVS];
	unsigned received;              /* bit i: message of endpoint i */
};

enum { OPT_NO_TX = 1000, OPT_NO_RX };

static const struct util_opt options[] = {
	{ OPT_NO_TX, "no-tx-shared-ctx", NULL, "endpoints have transmit contexts of their own" },
	{ OPT_NO_RX, "no-rx-shared-ctx", NULL, "endpoints have receive contexts of their own" },
	{ 'n', "number", "NUMBER", "endpoints (default: 4)" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	settings->no_tx |= key == OPT_NO_TX;
	settings->no_rx |= key == OPT_NO_RX;
	return key == 'n' ? func_number("-n (endpoints)", arg, 1, RECVS, &settings->cnt) : 0;
}

static void hints(struct func *func, struct fi_info *hints)
{
	const struct settings *settings = func->own;

	if (!settings->no_tx)
		hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	if (!settings->no_rx)
		hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
}

static int bind(struct func *func, struct func_ep *ep, void *arg)
{
	const struct settings *settings = arg;

	if (settings->stx)
		FUNC_CALL(func, fi_ep_bind(ep->ep, &settings->stx->fid, 0));
	if (settings->srx)
		FUNC_CALL(func, fi_ep_bind(ep->ep, &settings->srx->fid, 0));
	return 0;
}

/* The shared contexts, and room for receives in the one of them. */
static int open_shared(struct func *func)
{
	struct settings *settings = func->own;
	const struct func_ep_attr attr = { .cq_size = 4 * MAX_EPS };
	struct fi_info *info = func->pp->info;

	FUNC_TRY(func_cq_open(func, &attr, NULL, &settings->cq));
	if (!settings->no_tx) {
		FUNC_CALL(func, fi_stx_context(func->domain, info->tx_attr, &settings->stx, NULL));
		FUNC_TRY(func_own(func, &settings->stx->fid, "shared transmit context"));
	}
	if (!settings->no_rx) {
		FUNC_CALL(func, fi_srx_context(func->domain, info->rx_attr, &settings->srx, NULL));
		FUNC_TRY(func_own(func, &settings->srx->fid, "shared receive context"));
	}
	return func_buf(func, &settings->in, RECVS * func_size(func, 0), FI_RECV);
}

/* Message `seq` of an endpoint starts with that endpoint's number. */
static int on_completion(struct func *func, struct func_op *op)
{
	struct settings *settings = func->own;
	size_t slot = (size_t) (op - settings->rx), len = func_size(func, 0);
	const char *mem = settings->in.mem + slot * len;
	unsigned from = (unsigned char) mem[0];

	FUNC_EXPECT(func, !op->err, "a receive failed: %s", fi_strerror(op->err));
	FUNC_EXPECT(func, op->entry.len == len, "a message of %zu bytes", op->entry.len);
	FUNC_EXPECT(func, from < settings->cnt && !(settings->received & 1u << from), "endpoint %u: unknown, or twice",
		    from);
	settings->received |= 1u << from;
	return pp_check(func->pp, mem + 1, len - 1, from);
}

static int post_recvs(struct func *func)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	struct fid_ep *ep;
	char *mem;
	uint32_t i;

	settings->received = 0;
	memset(settings->in.mem, 0xff, settings->in.len);
	for (i = 0; i < settings->cnt; i++) {
		settings->rx[i] = (struct func_op) { .on_completion = on_completion };
		ep = settings->srx ? settings->srx : settings->eps[i].ep;
		mem = settings->in.mem + i * len;
		FUNC_POST(func, fi_recv(ep, mem, len, settings->in.desc, FI_ADDR_UNSPEC, &settings->rx[i]));
	}
	return 0;
}

static int send_all(struct func *func)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	struct func_ep *ep;
	uint32_t i;

	for (i = 0; i < settings->cnt; i++) {
		ep = &settings->eps[i];
		ep->tx.mem[0] = (char) i;
		pp_fill(ep->tx.mem + 1, len - 1, i);
		settings->tx[i].done = 0;
		FUNC_POST(func, fi_send(ep->ep, ep->tx.mem, len, ep->tx.desc, ep->peer, &settings->tx[i]));
	}
	for (i = 0; i < settings->cnt; i++)
		FUNC_TRY(func_wait(func, &settings->tx[i], "a message to leave"));
	FUNC_WAIT(func, settings->received == (1u << settings->cnt) - 1, "a message of each endpoint");
	return 0;
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	struct func_ep_attr attr = { .bind = bind, .arg = settings };
	uint32_t i;

	FUNC_TRY(func_agree(func, open_shared(func)));
	attr.cq = settings->cq;
	for (i = 0; i < settings->cnt; i++)
		FUNC_TRY(func_ep_open(func, &settings->eps[i], &attr));
	for (i = 0; i < func->iterations; i++) {
		FUNC_TRY(post_recvs(func));
		FUNC_TRY(func_sync(func));
		FUNC_TRY(send_all(func));
		FUNC_TRY(func_sync(func));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .cnt = 4 };
	static const struct func_program program = {
		.about = "Share transmit and receive contexts between endpoints.",
		.ep_type = FI_EP_MSG,
		.choose_type = true,
		.dgram = true,
		.caps = FI_MSG,
		.iterations = 5,
		.options = options,
		.take = take,
		.hints = hints,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
