/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_loopback: an endpoint that sends to itself, plain and tagged, at sizes from nothing to large. One process. */
#include "lib/func.h"

#include <string.h>

#define TAG 9

static int receive(struct func *func, struct func_ep *ep, size_t len, struct func_op *op, bool tagged)
{
	memset(ep->rx.mem, 0, len);
	if (tagged)
		FUNC_POST(func, fi_trecv(ep->ep, ep->rx.mem, len, ep->rx.desc, ep->peer, TAG, 0, op));
	else
		FUNC_POST(func, fi_recv(ep->ep, ep->rx.mem, len, ep->rx.desc, ep->peer, op));
	return 0;
}

static int send_message(struct func *func, struct func_ep *ep, size_t len, struct func_op *op, bool tagged)
{
	pp_fill(ep->tx.mem, len, len);
	if (tagged)
		FUNC_POST(func, fi_tsend(ep->ep, ep->tx.mem, len, ep->tx.desc, ep->peer, TAG, op));
	else
		FUNC_POST(func, fi_send(ep->ep, ep->tx.mem, len, ep->tx.desc, ep->peer, op));
	return 0;
}

/* With the receive posted before the message is sent, or after. */
static int once(struct func *func, struct func_ep *ep, size_t len, bool tagged, bool expected)
{
	struct func_op tx = { .done = 0 }, rx = { .done = 0 };

	if (expected)
		FUNC_TRY(receive(func, ep, len, &rx, tagged));
	FUNC_TRY(send_message(func, ep, len, &tx, tagged));
	if (!expected)
		FUNC_TRY(receive(func, ep, len, &rx, tagged));
	FUNC_TRY(func_wait(func, &tx, "a message to leave"));
	FUNC_TRY(func_wait(func, &rx, "a message"));
	FUNC_EXPECT(func, rx.entry.len == len, "%zu bytes came of %zu", rx.entry.len, len);
	return pp_check(func->pp, ep->rx.mem, len, len);
}

static int run(struct func *func)
{
	size_t len, limit = func_size(func, 0);
	struct func_ep ep;
	unsigned how;

	FUNC_TRY(func_ep_to_self(func, &ep, NULL));
	for (len = 0; len <= limit; len = len ? 4 * len : 1) {
		for (how = 0; how < 4; how++)
			FUNC_TRY(once(func, &ep, len, how & 1, how & 2));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Send to ourselves.",
		.ep_type = FI_EP_RDM,
		.caps = FI_LOCAL_COMM | FI_MSG | FI_TAGGED,
		.size = 1048576,
		.run = run,
		.alone = true,
	};

	return func_main(argc, argv, &program, NULL);
}
