/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rdm_rma_event: a counter of the target tells it that its memory was written. */
#include "lib/func.h"

static int bind_cntr(struct func *func, struct func_ep *ep, void *arg)
{
	struct fid_cntr **cntr = arg;

	FUNC_TRY(func_cntr_open(func, cntr));
	FUNC_CALL(func, fi_ep_bind(ep->ep, &(*cntr)->fid, FI_REMOTE_WRITE));
	return 0;
}

static int write_once(struct func *func, struct func_ep *ep, const struct func_region *target, uint32_t i)
{
	size_t len = func_size(func, 0);
	struct func_op op = { .done = 0 };

	pp_fill(ep->tx.mem, len, i);
	FUNC_POST(func, fi_write(ep->ep, ep->tx.mem, len, ep->tx.desc, ep->peer, target->addr, target->key, &op));
	return func_wait(func, &op, "a write");
}

static int run(struct func *func)
{
	struct fid_cntr *cntr = NULL;
	const struct func_ep_attr attr = { .bind = bind_cntr, .arg = &cntr };
	struct func_region target;
	struct func_buf mem;
	struct func_ep ep;
	uint32_t i;

	FUNC_TRY(func_ep_open(func, &ep, &attr));
	FUNC_TRY(func_buf(func, &mem, func_size(func, 0), FI_REMOTE_WRITE));
	if (func->pp->info->domain_attr->mr_mode & FI_MR_RMA_EVENT) {
		FUNC_CALL(func, fi_mr_bind(mem.mr, &cntr->fid, FI_REMOTE_WRITE));
		FUNC_CALL(func, fi_mr_enable(mem.mr));
	}
	FUNC_TRY(func_exchange_regions(func, &mem, &target));
	for (i = 0; i < func->iterations; i++) {
		if (func->client)
			FUNC_TRY(write_once(func, &ep, &target, i));
		else
			FUNC_TRY(func_wait_cntr(func, cntr, i + 1, "the counter of remote writes"));
		if (!func->client)
			FUNC_TRY(pp_check(func->pp, mem.mem, func_size(func, 0), i));
		FUNC_TRY(func_sync(func));
	}
	FUNC_EXPECT(func, fi_cntr_read(cntr) == (func->client ? 0 : i), "the counter is at %llu",
		    (unsigned long long) fi_cntr_read(cntr));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Count remote writes at the target.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG | FI_RMA | FI_RMA_EVENT,
		.iterations = 10,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
