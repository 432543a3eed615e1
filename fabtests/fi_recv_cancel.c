/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_recv_cancel: of two receives one is cancelled, which completes with FI_ECANCELED, and the other still takes its
 * message; a cancelled receive takes none.
 */
#include "lib/func.h"

#define TAG_CANCELLED 1
#define TAG_KEPT 2

static int send_tag(struct func *func, struct func_ep *ep, uint64_t tag, uint64_t seq)
{
	size_t len = func_size(func, 0);
	struct func_op op = { .done = 0 };

	pp_fill(ep->tx.mem, len, seq);
	FUNC_POST(func, fi_tsend(ep->ep, ep->tx.mem, len, ep->tx.desc, ep->peer, tag, &op));
	return func_wait(func, &op, "a message to leave");
}

static int recv_tag(struct func *func, struct func_ep *ep, uint64_t tag, struct func_op *op)
{
	*op = (struct func_op) { .done = 0 };
	FUNC_POST(func, fi_trecv(ep->ep, ep->rx.mem, ep->rx.len, ep->rx.desc, ep->peer, tag, 0, op));
	return 0;
}

static int check(struct func *func, struct func_ep *ep, struct func_op *op, uint64_t tag, uint64_t seq)
{
	FUNC_TRY(func_wait(func, op, "a message"));
	FUNC_EXPECT(func, op->entry.tag == tag, "the message has tag %llu", (unsigned long long) op->entry.tag);
	return pp_check(func->pp, ep->rx.mem, func_size(func, 0), seq);
}

static int server(struct func *func, struct func_ep *ep, uint64_t seq)
{
	struct func_op cancelled, kept;
	int ret;

	FUNC_TRY(recv_tag(func, ep, TAG_CANCELLED, &cancelled));
	FUNC_TRY(recv_tag(func, ep, TAG_KEPT, &kept));
	ret = fi_cancel(&ep->ep->fid, &cancelled);
	FUNC_EXPECT(func, !ret || ret == 1, "fi_cancel gave %d", ret);
	FUNC_TRY(func_wait_err(func, &cancelled, FI_ECANCELED, "the cancelled receive"));
	FUNC_TRY(func_sync(func));
	FUNC_TRY(check(func, ep, &kept, TAG_KEPT, seq));
	FUNC_EXPECT(func, cancelled.done == 1, "the cancelled receive completed %u times", cancelled.done);
	/* What the cancelled receive did not take is still there. */
	FUNC_TRY(recv_tag(func, ep, TAG_CANCELLED, &cancelled));
	return check(func, ep, &cancelled, TAG_CANCELLED, seq + 1);
}

static int client(struct func *func, struct func_ep *ep, uint64_t seq)
{
	FUNC_TRY(func_sync(func));
	FUNC_TRY(send_tag(func, ep, TAG_KEPT, seq));
	return send_tag(func, ep, TAG_CANCELLED, seq + 1);
}

static int run(struct func *func)
{
	struct func_ep ep;
	uint32_t i;

	FUNC_TRY(func_ep_open(func, &ep, NULL));
	for (i = 0; i < func->iterations; i++) {
		FUNC_TRY(func->client ? client(func, &ep, 2 * i) : server(func, &ep, 2 * i));
		FUNC_TRY(func_sync(func));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct util_opt options[] = {
		{ 'V', "verify-data", NULL, "data is always checked: taken for scripts" },
		{ 0, NULL, NULL, NULL },
	};
	static const struct func_program program = {
		.about = "Cancel one of two receives.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_TAGGED,
		.iterations = 10,
		.options = options,
		.take = func_take_nothing,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
