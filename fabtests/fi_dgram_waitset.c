/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_dgram_waitset: completions that are waited for with fi_wait() on a set of queues. */
#include "lib/func.h"

/* Wait sets are no longer part of the newest interface, which still has the calls. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int wait_for(struct func *func, struct fid_wait *set, struct func_op *op)
{
	int ret;

	while (!op->done) {
		ret = fi_wait(set, func->pp->opts->wait_ms);
		if (ret && ret != -FI_EAGAIN && ret != -FI_EINTR)
			return pp_fail(func->pp, ret, "fi_wait");
		FUNC_TRY(func_progress(func));
	}
	return func_wait(func, op, "an operation");
}

static int send_one(struct func *func, struct fid_wait *set, struct func_ep *ep, uint64_t seq)
{
	struct func_op op = { .done = 0 };

	pp_fill(ep->tx.mem, func_size(func, 0), seq);
	FUNC_TRY(func_send(func, ep, func_size(func, 0), &op));
	return wait_for(func, set, &op);
}

static int exchange(struct func *func, struct fid_wait *set, struct func_ep *ep, uint64_t seq)
{
	struct func_op op = { .done = 0 };

	FUNC_TRY(func_recv(func, ep, ep->rx.len, &op));
	FUNC_TRY(func_sync(func));
	if (func->client)
		FUNC_TRY(send_one(func, set, ep, seq));
	FUNC_TRY(wait_for(func, set, &op));
	FUNC_TRY(pp_check(func->pp, ep->rx.mem, func_size(func, 0), func->client ? seq + 1 : seq));
	return func->client ? 0 : send_one(func, set, ep, seq + 1);
}

static int run(struct func *func)
{
	struct fi_wait_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct func_ep_attr ep_attr = { .wait_obj = FI_WAIT_SET };
	struct func_ep ep;
	uint32_t i;

	FUNC_CALL(func, fi_wait_open(func->pp->fabric, &attr, &ep_attr.wait_set));
	FUNC_TRY(func_own(func, &ep_attr.wait_set->fid, "wait set"));
	FUNC_TRY(func_ep_open(func, &ep, &ep_attr));
	for (i = 0; i < func->iterations; i++)
		FUNC_TRY(exchange(func, ep_attr.wait_set, &ep, i));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Wait for completions with a wait set.",
		.ep_type = FI_EP_DGRAM,
		.choose_type = true,
		.dgram = true,
		.caps = FI_MSG,
		.iterations = 10,
		.prefix = true,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
