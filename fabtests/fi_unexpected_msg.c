/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_unexpected_msg: messages that come before their receives are posted. Each size in turn, -C of them at a time: they
 * are taken in order, or by tag in reverse order, and are whole.
 */
#include "lib/func.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CNT 512
#define SMALLEST 4

struct settings {
	uint32_t cnt;
	struct func_op *ops;
	struct func_buf out, in;
};

static const struct util_opt options[] = {
	{ 'C', "count", "NUMBER", "messages of each size at a time (default: 10)" },
	{ 'M', "count", "NUMBER", "the same, under its other name" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	(void) key;
	return func_number("-C (messages)", arg, 1, MAX_CNT, &((struct settings *) func->own)->cnt);
}

static void hints(struct func *func, struct fi_info *hints)
{
	if (func->pp->opts->ep_type == FI_EP_RDM)
		hints->caps |= FI_DIRECTED_RECV;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
}

/* All are sent before the server posts anything; the first completions may have to wait for it. */
static int client(struct func *func, struct func_ep *ep, size_t len, bool one_tag)
{
	struct settings *settings = func->own;
	uint32_t i;

	for (i = 0; i < settings->cnt; i++) {
		pp_fill(settings->out.mem + i * len, len, i);
		settings->ops[i] = (struct func_op) { .done = 0 };
		FUNC_POST(func, fi_tsend(ep->ep, settings->out.mem + i * len, len, settings->out.desc, ep->peer,
					 one_tag ? 0 : i, &settings->ops[i]));
	}
	FUNC_TRY(func_sync(func));
	for (i = 0; i < settings->cnt; i++)
		FUNC_TRY(func_wait(func, &settings->ops[i], "a message to leave"));
	return 0;
}

static int server(struct func *func, struct func_ep *ep, size_t len, bool one_tag)
{
	struct settings *settings = func->own;
	uint32_t i, turn;

	memset(settings->in.mem, 0, settings->cnt * len);
	FUNC_TRY(func_sync(func));
	for (turn = 0; turn < settings->cnt; turn++) {
		i = one_tag ? turn : settings->cnt - 1 - turn;
		settings->ops[i] = (struct func_op) { .done = 0 };
		FUNC_POST(func, fi_trecv(ep->ep, settings->in.mem + i * len, len, settings->in.desc, ep->peer,
					 one_tag ? 0 : i, 0, &settings->ops[i]));
	}
	for (i = 0; i < settings->cnt; i++) {
		FUNC_TRY(func_wait(func, &settings->ops[i], "an unexpected message"));
		FUNC_EXPECT(func, settings->ops[i].entry.len == len, "message %u has %zu bytes, not %zu", i,
			    settings->ops[i].entry.len, len);
		FUNC_TRY(pp_check(func->pp, settings->in.mem + i * len, len, i));
	}
	return 0;
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	size_t len, limit = func_size(func, 0);
	struct func_ep ep;
	unsigned tags;

	/* More than an endpoint holds would wait for the receives. */
	if (settings->cnt > func->pp->info->tx_attr->size)
		settings->cnt = (uint32_t) func->pp->info->tx_attr->size;
	FUNC_TRY(func_buf(func, &settings->out, settings->cnt * limit, FI_SEND));
	FUNC_TRY(func_buf(func, &settings->in, settings->cnt * limit, FI_RECV));
	settings->ops = func_alloc(func, settings->cnt * sizeof(*settings->ops));
	if (!settings->ops)
		return -FI_ENOMEM;
	FUNC_TRY(func_ep_open(func, &ep, NULL));
	for (len = SMALLEST; len <= limit; len *= 4) {
		for (tags = 0; tags < 2; tags++) {
			FUNC_TRY(func->client ? client(func, &ep, len, tags) : server(func, &ep, len, tags));
			FUNC_TRY(func_sync(func));
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .cnt = 10 };
	static const struct func_program program = {
		.about = "Send messages that are not expected yet.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_TAGGED,
		.size = 65536,
		.options = options,
		.take = take,
		.hints = hints,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
