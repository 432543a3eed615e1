/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_rdm_rma_trigger: a write that waits for a counter. It is posted through an alias of the endpoint, must not start
 * before the counter is there, and starts by itself when another write has counted.
 */
#include "lib/func.h"

#include <string.h>

#include <rdma/fi_trigger.h>

static int bind_cntr(struct func *func, struct func_ep *ep, void *arg)
{
	struct fid_cntr **cntr = arg;

	FUNC_TRY(func_cntr_open(func, cntr));
	FUNC_CALL(func, fi_ep_bind(ep->ep, &(*cntr)->fid, FI_WRITE));
	return 0;
}

/* The triggered write makes no completion: its counter tells. */
static int write_triggered(struct func *func, struct fid_ep *alias, struct func_ep *ep,
			   const struct func_region *target, struct fid_cntr *cntr)
{
	static struct fi_triggered_context2 trigger;
	uint64_t now = fi_cntr_read(cntr);
	size_t len = func_size(func, 0);
	struct func_op op = { .done = 0 };

	trigger.event_type = FI_TRIGGER_THRESHOLD;
	trigger.trigger.threshold.cntr = cntr;
	trigger.trigger.threshold.threshold = now + 1;
	pp_fill(ep->tx.mem, len, 1);
	pp_fill(ep->tx.mem + len, len, 2);
	FUNC_POST(func, fi_write(alias, ep->tx.mem + len, len, ep->tx.desc, ep->peer, target->addr + len, target->key,
				 &trigger));
	FUNC_TRY(func_progress(func));
	FUNC_EXPECT(func, fi_cntr_read(cntr) == now, "the triggered write did not wait");
	/* This one counts, and so starts the other. */
	FUNC_POST(func, fi_write(ep->ep, ep->tx.mem, len, ep->tx.desc, ep->peer, target->addr, target->key, &op));
	FUNC_TRY(func_wait(func, &op, "the first write"));
	return func_wait_cntr(func, cntr, now + 2, "the triggered write");
}

static int run(struct func *func)
{
	struct fid_cntr *cntr;
	const struct func_ep_attr attr = { .bind = bind_cntr, .arg = &cntr, .cq_flags = FI_SELECTIVE_COMPLETION,
					   .buf_len = 2 * func_size(func, 0) };
	struct func_region target;
	struct func_buf mem;
	struct func_ep ep;
	struct fid_ep *alias = NULL;
	uint32_t i;

	func->pp->info->tx_attr->op_flags = FI_COMPLETION | func_delivery(func);
	func->pp->info->rx_attr->op_flags = FI_COMPLETION;
	FUNC_TRY(func_ep_open(func, &ep, &attr));
	FUNC_CALL(func, fi_ep_alias(ep.ep, &alias, FI_TRANSMIT | FI_TRIGGER | func_delivery(func)));
	FUNC_TRY(func_own(func, &alias->fid, "alias of the endpoint"));
	FUNC_TRY(func_buf(func, &mem, 2 * func_size(func, 0), FI_REMOTE_WRITE));
	FUNC_TRY(func_exchange_regions(func, &mem, &target));
	for (i = 0; i < func->iterations; i++) {
		memset(mem.mem, 0, mem.len);
		FUNC_TRY(func_sync(func));
		if (func->client)
			FUNC_TRY(write_triggered(func, alias, &ep, &target, cntr));
		FUNC_TRY(func_sync(func));
		FUNC_TRY(func_greet(func, &ep, 1, i));
		if (!func->client) {
			FUNC_TRY(pp_check(func->pp, mem.mem, func_size(func, 0), 1));
			FUNC_TRY(pp_check(func->pp, mem.mem + func_size(func, 0), func_size(func, 0), 2));
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Write when a counter says so.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG | FI_RMA | FI_TRIGGER,
		.iterations = 5,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
