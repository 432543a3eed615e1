/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_scalable_ep: an endpoint of several transmit and receive contexts. Every transmit context of the client sends to
 * every receive context of the server by its number (fi_rx_addr), and back.
 */
#include "lib/func.h"

#include <string.h>

#define MAX_CONTEXTS 16
#define RX_BITS 4

struct settings {
	uint32_t cnt;
	struct fid_ep *sep, *tx[MAX_CONTEXTS], *rx[MAX_CONTEXTS];
	struct fid_av *av;
	fi_addr_t peer;
	struct func_buf out, in;
};

static const struct util_opt options[] = {
	{ 'n', "number", "NUMBER", "contexts of each kind (default: 4)" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	(void) key;
	return func_number("-n (contexts)", arg, 1, MAX_CONTEXTS, &((struct settings *) func->own)->cnt);
}

static void hints(struct func *func, struct fi_info *hints)
{
	const struct settings *settings = func->own;

	hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = settings->cnt;
}

static int open_contexts(struct func *func)
{
	const struct func_ep_attr attr = { .cq_size = 64 };
	struct settings *settings = func->own;
	struct fi_info *info = func->pp->info;
	struct fid_cq *cq;
	uint32_t i;

	for (i = 0; i < settings->cnt; i++) {
		FUNC_TRY(func_cq_open(func, &attr, NULL, &cq));
		FUNC_CALL(func, fi_tx_context(settings->sep, (int) i, info->tx_attr, &settings->tx[i], NULL));
		FUNC_TRY(func_own(func, &settings->tx[i]->fid, "transmit context"));
		FUNC_CALL(func, fi_ep_bind(settings->tx[i], &cq->fid, FI_TRANSMIT));
		FUNC_CALL(func, fi_enable(settings->tx[i]));
		FUNC_CALL(func, fi_rx_context(settings->sep, (int) i, info->rx_attr, &settings->rx[i], NULL));
		FUNC_TRY(func_own(func, &settings->rx[i]->fid, "receive context"));
		FUNC_CALL(func, fi_ep_bind(settings->rx[i], &cq->fid, FI_RECV));
		FUNC_CALL(func, fi_enable(settings->rx[i]));
	}
	FUNC_CALL(func, fi_enable(settings->sep));
	return 0;
}

static int open_sep(struct func *func)
{
	struct fi_av_attr av_attr = { .type = func->pp->info->domain_attr->av_type, .count = 4,
				      .rx_ctx_bits = RX_BITS };
	struct settings *settings = func->own;

	FUNC_TRY(func_av_open(func, func->domain, &av_attr, &settings->av));
	FUNC_CALL(func, fi_scalable_ep(func->domain, func->pp->info, &settings->sep, NULL));
	FUNC_TRY(func_own(func, &settings->sep->fid, "scalable endpoint"));
	FUNC_CALL(func, fi_scalable_ep_bind(settings->sep, &settings->av->fid, 0));
	return open_contexts(func);
}

/* From transmit context `from` of one end to receive context `to` of the other. */
static int send_one(struct func *func, uint32_t from, uint32_t to, uint64_t seq)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	struct func_op op = { .done = 0 };

	pp_fill(settings->out.mem, len, seq);
	FUNC_POST(func, fi_send(settings->tx[from], settings->out.mem, len, settings->out.desc,
				fi_rx_addr(settings->peer, (int) to, RX_BITS), &op));
	return func_wait(func, &op, "a message to leave");
}

/* One message from us to the peer, or from the peer to us. */
static int once(struct func *func, uint32_t from, uint32_t to, bool send, uint64_t seq)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	struct func_op op = { .done = 0 };

	if (send) {
		FUNC_TRY(func_sync(func));
		return send_one(func, from, to, seq);
	}
	memset(settings->in.mem, 0, len);
	FUNC_POST(func, fi_recv(settings->rx[to], settings->in.mem, len, settings->in.desc, FI_ADDR_UNSPEC, &op));
	FUNC_TRY(func_sync(func));
	FUNC_TRY(func_wait(func, &op, "a message at the context that it was sent to"));
	FUNC_EXPECT(func, op.entry.len == len, "a message of %zu bytes", op.entry.len);
	return pp_check(func->pp, settings->in.mem, len, seq);
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	uint32_t from, to;

	FUNC_TRY(func_agree(func, open_sep(func)));
	FUNC_TRY(func_exchange_names(func, &settings->sep->fid, settings->av, &settings->peer));
	FUNC_TRY(func_buf(func, &settings->out, func_size(func, 0), FI_SEND));
	FUNC_TRY(func_buf(func, &settings->in, func_size(func, 0), FI_RECV));
	for (from = 0; from < settings->cnt; from++) {
		for (to = 0; to < settings->cnt; to++) {
			FUNC_TRY(once(func, from, to, func->client, 2 * to));
			FUNC_TRY(once(func, from, to, !func->client, 2 * to + 1));
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .cnt = 4 };
	static const struct func_program program = {
		.about = "Send between the contexts of scalable endpoints.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG | FI_NAMED_RX_CTX,
		.options = options,
		.take = take,
		.hints = hints,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
