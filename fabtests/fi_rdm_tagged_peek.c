/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_rdm_tagged_peek: look for messages that have come but have no receive: FI_PEEK tells length and tag, FI_CLAIM
 * keeps one for the receive that names it, FI_DISCARD drops one; of a tag that nobody sent there is FI_ENOMSG.
 */
#include "lib/func.h"

#include <string.h>

#define FIRST_TAG 0x900d
#define MESSAGES 10
#define NO_TAG 0xbad

static struct fi_msg_tagged message(struct func_ep *ep, struct iovec *iov, uint64_t tag, struct func_op *op)
{
	return (struct fi_msg_tagged) { .msg_iov = iov, .desc = &ep->rx.desc, .iov_count = iov ? 1 : 0,
					.addr = ep->peer, .tag = tag, .context = op };
}

/* Ask once: the error of the answer, 0 when a message was found. */
static int peek_once(struct func *func, struct func_ep *ep, uint64_t tag, uint64_t flags, struct func_op *op, int *err)
{
	struct fi_msg_tagged msg = message(ep, NULL, tag, op);

	op->done = 0;
	FUNC_POST(func, fi_trecvmsg(ep->ep, &msg, FI_PEEK | flags));
	FUNC_WAIT(func, op->done, "the answer to FI_PEEK");
	*err = op->err;
	FUNC_EXPECT(func, !op->err || op->err == FI_ENOMSG, "FI_PEEK gave %d (%s)", op->err, fi_strerror(op->err));
	return 0;
}

/* Ask until the message has come. */
static int peek(struct func *func, struct func_ep *ep, uint64_t tag, uint64_t flags, struct func_op *op)
{
	struct pp_wait wait = { .polls = 0 };
	int err;

	for (;;) {
		FUNC_TRY(peek_once(func, ep, tag, flags, op, &err));
		if (!err)
			break;
		FUNC_TRY(func_tick(func, &wait, "a message to look at"));
	}
	FUNC_EXPECT(func, op->entry.tag == tag, "FI_PEEK found tag 0x%llx, not 0x%llx",
		    (unsigned long long) op->entry.tag, (unsigned long long) tag);
	FUNC_EXPECT(func, op->entry.len == func_size(func, 0), "FI_PEEK found %zu bytes", op->entry.len);
	return 0;
}

/* Take a message: the one that was claimed with this context, or any with this tag. */
static int take_message(struct func *func, struct func_ep *ep, uint64_t tag, uint64_t flags, struct func_op *op)
{
	struct iovec iov = { .iov_base = ep->rx.mem, .iov_len = ep->rx.len };
	struct fi_msg_tagged msg = message(ep, &iov, tag, op);

	memset(ep->rx.mem, 0, ep->rx.len);
	op->done = 0;
	FUNC_POST(func, fi_trecvmsg(ep->ep, &msg, flags));
	FUNC_TRY(func_wait(func, op, "a message"));
	FUNC_EXPECT(func, op->entry.len == func_size(func, 0), "a message of %zu bytes", op->entry.len);
	return pp_check(func->pp, ep->rx.mem, op->entry.len, tag);
}

static int expect_none(struct func *func, struct func_ep *ep, uint64_t tag, uint64_t flags)
{
	struct func_op op = { .done = 0 };
	int err;

	FUNC_TRY(peek_once(func, ep, tag, flags, &op, &err));
	FUNC_EXPECT(func, err == FI_ENOMSG, "tag 0x%llx is found, which must not be there", (unsigned long long) tag);
	return 0;
}

static int server(struct func *func, struct func_ep *ep)
{
	struct func_op op = { .done = 0 };
	uint64_t i;

	/* What was sent last is there: so is all before it. */
	FUNC_TRY(peek(func, ep, FIRST_TAG + MESSAGES - 1, 0, &op));
	FUNC_TRY(expect_none(func, ep, NO_TAG, 0));
	FUNC_TRY(expect_none(func, ep, NO_TAG, FI_CLAIM));
	FUNC_TRY(expect_none(func, ep, NO_TAG, FI_DISCARD));
	/* Looking takes nothing away. */
	FUNC_TRY(peek(func, ep, FIRST_TAG, 0, &op));
	FUNC_TRY(peek(func, ep, FIRST_TAG, 0, &op));
	FUNC_TRY(take_message(func, ep, FIRST_TAG, 0, &op));
	/* What is claimed is not found again, and can be taken, or dropped. */
	FUNC_TRY(peek(func, ep, FIRST_TAG + 1, FI_CLAIM, &op));
	FUNC_TRY(expect_none(func, ep, FIRST_TAG + 1, 0));
	FUNC_TRY(take_message(func, ep, FIRST_TAG + 1, FI_CLAIM, &op));
	FUNC_TRY(peek(func, ep, FIRST_TAG + 2, FI_DISCARD, &op));
	FUNC_TRY(expect_none(func, ep, FIRST_TAG + 2, 0));
	/* The others, against the order in which they were sent. */
	for (i = MESSAGES - 1; i > 2; i--)
		FUNC_TRY(take_message(func, ep, FIRST_TAG + i, 0, &op));
	return expect_none(func, ep, FIRST_TAG + 3, 0);
}

static int client(struct func *func, struct func_ep *ep)
{
	size_t len = func_size(func, 0);
	struct func_op op;
	uint64_t i;

	for (i = 0; i < MESSAGES; i++) {
		op = (struct func_op) { .done = 0 };
		pp_fill(ep->tx.mem, len, FIRST_TAG + i);
		FUNC_POST(func, fi_tsend(ep->ep, ep->tx.mem, len, ep->tx.desc, ep->peer, FIRST_TAG + i, &op));
		FUNC_TRY(func_wait(func, &op, "a message to leave"));
	}
	return 0;
}

static void hints(struct func *func, struct fi_info *hints)
{
	(void) func;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
}

static int run(struct func *func)
{
	struct func_ep ep;

	FUNC_TRY(func_ep_open(func, &ep, NULL));
	FUNC_TRY(func->client ? client(func, &ep) : server(func, &ep));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Look for messages, claim them, drop them.",
		.ep_type = FI_EP_RDM,
		.caps = FI_TAGGED,
		.size = 512,
		.hints = hints,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
