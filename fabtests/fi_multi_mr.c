/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_multi_mr: writes to many memory regions of the target, each with its own key, and counted there. */
#include "lib/func.h"

#include <string.h>

#define MAX_REGIONS 1024

struct settings {
	uint32_t cnt;
	struct func_buf *mem;
	struct func_region *targets;
};

static const struct util_opt options[] = {
	{ 'n', "number", "NUMBER", "memory regions (default: 16)" },
	{ 'V', "verify-data", NULL, "data is always checked: taken for scripts" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	return key == 'n' ? func_number("-n (regions)", arg, 1, MAX_REGIONS, &settings->cnt) : 0;
}

static int bind_cntr(struct func *func, struct func_ep *ep, void *arg)
{
	struct fid_cntr **cntr = arg;

	FUNC_TRY(func_cntr_open(func, cntr));
	FUNC_CALL(func, fi_ep_bind(ep->ep, &(*cntr)->fid, FI_REMOTE_WRITE));
	return 0;
}

static int write_all(struct func *func, struct func_ep *ep, uint32_t round)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	struct func_op op;
	uint32_t i;

	for (i = 0; i < settings->cnt; i++) {
		op = (struct func_op) { .done = 0 };
		pp_fill(ep->tx.mem, len, round + i);
		FUNC_POST(func, fi_write(ep->ep, ep->tx.mem, len, ep->tx.desc, ep->peer, settings->targets[i].addr,
					 settings->targets[i].key, &op));
		FUNC_TRY(func_wait(func, &op, "a write"));
	}
	return 0;
}

static int check_all(struct func *func, struct fid_cntr *cntr, uint32_t round)
{
	struct settings *settings = func->own;
	uint32_t i;

	FUNC_TRY(func_wait_cntr(func, cntr, (uint64_t) (round + 1) * settings->cnt, "the counter of remote writes"));
	for (i = 0; i < settings->cnt; i++) {
		FUNC_TRY(pp_check(func->pp, settings->mem[i].mem, func_size(func, 0), round + i));
		memset(settings->mem[i].mem, 0, settings->mem[i].len);
	}
	return 0;
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	struct fid_cntr *cntr;
	const struct func_ep_attr attr = { .bind = bind_cntr, .arg = &cntr };
	struct func_ep ep;
	uint32_t i;

	FUNC_TRY(func_ep_open(func, &ep, &attr));
	settings->mem = func_alloc(func, settings->cnt * sizeof(*settings->mem));
	settings->targets = func_alloc(func, settings->cnt * sizeof(*settings->targets));
	if (!settings->mem || !settings->targets)
		return -FI_ENOMEM;
	for (i = 0; i < settings->cnt; i++) {
		FUNC_TRY(func_buf(func, &settings->mem[i], func_size(func, 0), FI_REMOTE_WRITE));
		FUNC_TRY(func_exchange_regions(func, &settings->mem[i], &settings->targets[i]));
	}
	for (i = 0; i < func->iterations; i++) {
		FUNC_TRY(func->client ? write_all(func, &ep, i) : check_all(func, cntr, i));
		FUNC_TRY(func_sync(func));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .cnt = 16 };
	static const struct func_program program = {
		.about = "Write to many memory regions of the target.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_MSG | FI_RMA | FI_RMA_EVENT,
		.iterations = 4,
		.options = options,
		.take = take,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
