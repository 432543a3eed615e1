/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_multi_ep: several endpoints of one domain at the same time. All have messages under way at once, then RMA writes;
 * then the memory regions are closed and made anew, and the writes go to the new ones.
 */
#include "lib/func.h"


#define MAX_EPS 64

struct settings {
	uint32_t cnt;
	bool shared_av, shared_cq;
	struct func_ep *eps;
	struct func_buf *mem;
	struct func_region *targets;
	struct func_op *tx, *rx;
};

static const struct util_opt options[] = {
	{ 'n', "number", "NUMBER", "endpoints (default: 3)" },
	{ 'A', "shared-av", NULL, "one address vector for all" },
	{ 'Q', "shared-cq", NULL, "one completion queue for all" },
	{ 'V', "verify-data", NULL, "data is always checked: taken for scripts" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	switch (key) {
	case 'n':
		return func_number("-n (endpoints)", arg, 1, MAX_EPS, &settings->cnt);
	case 'A':
		settings->shared_av = true;
		break;
	case 'Q':
		settings->shared_cq = true;
		break;
	}
	return 0;
}

static int open_eps(struct func *func)
{
	struct settings *settings = func->own;
	struct fi_av_attr av_attr = { .type = func->pp->info->domain_attr->av_type, .count = 4 };
	struct func_ep_attr attr = { .cq_size = 64 * settings->cnt };
	uint32_t i;

	if (settings->shared_cq)
		FUNC_TRY(func_cq_open(func, &attr, NULL, &attr.cq));
	for (i = 0; i < settings->cnt; i++) {
		if (func->av && !settings->shared_av)
			FUNC_TRY(func_av_open(func, func->domain, &av_attr, &attr.av));
		FUNC_TRY(func_ep_open(func, &settings->eps[i], &attr));
	}
	return 0;
}

static int register_all(struct func *func)
{
	struct settings *settings = func->own;
	uint32_t i;

	for (i = 0; i < settings->cnt; i++) {
		FUNC_TRY(func_buf(func, &settings->mem[i], func_size(func, 0), FI_REMOTE_WRITE));
		FUNC_TRY(func_exchange_regions(func, &settings->mem[i], &settings->targets[i]));
	}
	return 0;
}

/* Every write is complete at the peer before it says so over the control channel. */
static int write_all(struct func *func, uint64_t seq)
{
	struct settings *settings = func->own;
	size_t len = func_size(func, 0);
	struct fi_rma_iov rma_iov = { .len = len };
	struct iovec iov = { .iov_len = len };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = &rma_iov, .rma_iov_count = 1 };
	struct func_ep *ep;
	uint32_t i;

	for (i = 0; i < settings->cnt; i++) {
		ep = &settings->eps[i];
		pp_fill(ep->tx.mem, len, seq + i);
		settings->tx[i].done = 0;
		iov.iov_base = ep->tx.mem;
		rma_iov.addr = settings->targets[i].addr;
		rma_iov.key = settings->targets[i].key;
		msg.desc = &ep->tx.desc;
		msg.addr = ep->peer;
		msg.context = &settings->tx[i];
		FUNC_POST(func, fi_writemsg(ep->ep, &msg, func_delivery(func) | FI_COMPLETION));
	}
	for (i = 0; i < settings->cnt; i++)
		FUNC_TRY(func_wait(func, &settings->tx[i], "a write"));
	return 0;
}

/* Where writes are not known to be there when they complete, a message behind them is. */
static int check_all(struct func *func, uint64_t seq)
{
	struct settings *settings = func->own;
	uint32_t i;

	FUNC_TRY(func_exchange_on_all(func, settings->eps, settings->tx, settings->rx, settings->cnt, seq + 100));
	for (i = 0; i < settings->cnt; i++) {
		FUNC_TRY(pp_check(func->pp, settings->mem[i].mem, func_size(func, 0), seq + i));
		func_buf_close(func, &settings->mem[i]);
	}
	return func_sync(func);
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	uint64_t round;

	settings->eps = func_alloc(func, settings->cnt * sizeof(*settings->eps));
	settings->mem = func_alloc(func, settings->cnt * sizeof(*settings->mem));
	settings->targets = func_alloc(func, settings->cnt * sizeof(*settings->targets));
	settings->tx = func_alloc(func, settings->cnt * sizeof(*settings->tx));
	settings->rx = func_alloc(func, settings->cnt * sizeof(*settings->rx));
	if (!settings->eps || !settings->mem || !settings->targets || !settings->tx || !settings->rx)
		return -FI_ENOMEM;
	FUNC_TRY(open_eps(func));
	for (round = 0; round < 2 * (uint64_t) func->iterations; round++) {
		FUNC_TRY(register_all(func));
		FUNC_TRY(func_exchange_on_all(func, settings->eps, settings->tx, settings->rx, settings->cnt,
					      10 * round));
		FUNC_TRY(write_all(func, 10 * round));
		FUNC_TRY(check_all(func, 10 * round));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .cnt = 3 };
	static const struct func_program program = {
		.about = "Use several endpoints at the same time.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_MSG | FI_RMA,
		.options = options,
		.take = take,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
