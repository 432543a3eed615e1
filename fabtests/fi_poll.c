/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_poll: a poll set names the queue, or the counter, that has something, and no other. */
#include "lib/func.h"

/* Poll sets are no longer part of the newest interface, which still has the calls. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include <rdma/fi_domain.h>

#define MAX_CONTEXTS 4

struct objects {
	struct fid_poll *set;
	struct fid_cntr *cntr;
};

static int bind_cntr(struct func *func, struct func_ep *ep, void *arg)
{
	struct objects *objects = arg;

	FUNC_TRY(func_cntr_open(func, &objects->cntr));
	FUNC_CALL(func, fi_ep_bind(ep->ep, &objects->cntr->fid, FI_RECV));
	return 0;
}

/* Poll until something is named; `op` is done once its queue, which must be the one that is named, is read. */
static int poll_until(struct func *func, struct fid_poll *set, struct func_ep *ep, struct func_op *op)
{
	struct pp_wait wait = { .polls = 0 };
	void *contexts[MAX_CONTEXTS];
	int cnt;

	while (!op->done) {
		cnt = fi_poll(set, contexts, MAX_CONTEXTS);
		if (cnt < 0 && cnt != -FI_EAGAIN)
			return pp_fail(func->pp, cnt, "fi_poll");
		if (cnt > 0) {
			FUNC_EXPECT(func, cnt == 1 && contexts[0] == ep->cq->fid.context,
				    "fi_poll named %d, the first is %p", cnt, contexts[0]);
			FUNC_TRY(func_progress(func));
		} else {
			FUNC_TRY(func_tick_quiet(func, &wait, "fi_poll to name the queue"));
		}
	}
	return op->err ? pp_fail(func->pp, -op->err, "an operation failed") : 0;
}

static int send_one(struct func *func, struct fid_poll *set, struct func_ep *ep, uint64_t seq)
{
	struct func_op op = { .done = 0 };

	pp_fill(ep->tx.mem, func_size(func, 0), seq);
	FUNC_TRY(func_send(func, ep, func_size(func, 0), &op));
	return poll_until(func, set, ep, &op);
}

static int exchange(struct func *func, struct fid_poll *set, struct func_ep *ep, uint64_t seq)
{
	struct func_op op = { .done = 0 };

	FUNC_TRY(func_recv(func, ep, ep->rx.len, &op));
	FUNC_TRY(func_sync(func));
	if (func->client)
		FUNC_TRY(send_one(func, set, ep, seq));
	FUNC_TRY(poll_until(func, set, ep, &op));
	FUNC_TRY(pp_check(func->pp, ep->rx.mem, func_size(func, 0), func->client ? seq + 1 : seq));
	return func->client ? 0 : send_one(func, set, ep, seq + 1);
}

static int run(struct func *func)
{
	struct objects objects = { .set = NULL };
	const struct func_ep_attr ep_attr = { .bind = bind_cntr, .arg = &objects };
	struct fi_poll_attr attr = { .flags = 0 };
	struct func_ep ep;
	void *contexts[MAX_CONTEXTS];
	uint32_t i;
	int cnt;

	FUNC_TRY(func_ep_open(func, &ep, &ep_attr));
	FUNC_CALL(func, fi_poll_open(func->domain, &attr, &objects.set));
	FUNC_TRY(func_own(func, &objects.set->fid, "poll set"));
	cnt = fi_poll(objects.set, contexts, MAX_CONTEXTS);
	FUNC_EXPECT(func, cnt == 0 || cnt == -FI_EAGAIN, "an empty poll set gave %d", cnt);
	FUNC_CALL(func, fi_poll_add(objects.set, &ep.cq->fid, 0));
	for (i = 0; i < func->iterations; i++)
		FUNC_TRY(exchange(func, objects.set, &ep, i));
	FUNC_CALL(func, fi_poll_del(objects.set, &ep.cq->fid, 0));
	FUNC_EXPECT(func, fi_cntr_read(objects.cntr) == i, "the counter is at %llu, not %u",
		    (unsigned long long) fi_cntr_read(objects.cntr), i);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Ask a poll set which queue has something.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_MSG,
		.iterations = 10,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
