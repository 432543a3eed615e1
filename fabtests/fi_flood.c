/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_flood: more messages than the receiver is ready for. The client posts as many as it may and goes on when that is
 * -FI_EAGAIN; the server, after a pause, takes them one by one, each whole and in order. Then the same into
 * memory that is registered all at once, and one after the other.
 */
#include "lib/func.h"

#include <string.h>

#define WINDOW 64
#define MAX_PAUSE_S 20           /* less than the client waits */
#define DEFAULT_PAUSE_MS 20

struct settings {
	uint32_t pause_ms;
	struct func_ep ep;
};

static const struct util_opt options[] = {
	{ 'T', "sleep-time", "SECONDS", "how long the server does nothing at first (default: 20 ms)" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;
	uint32_t seconds;

	(void) key;
	FUNC_TRY(func_number("-T (seconds)", arg, 0, MAX_PAUSE_S, &seconds));
	settings->pause_ms = seconds * 1000;
	return 0;
}

static void hints(struct func *func, struct fi_info *hints)
{
	(void) func;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
}

static int send_all(struct func *func, size_t len)
{
	struct settings *settings = func->own;
	struct func_ep *ep = &settings->ep;
	static struct func_op ops[WINDOW];
	struct func_buf mem[WINDOW];
	uint32_t i, slot;

	memset(ops, 0, sizeof(ops));
	for (i = 0; i < WINDOW; i++)
		FUNC_TRY(func_buf(func, &mem[i], len, FI_SEND));
	for (i = 0; i < func->iterations; i++) {
		slot = i % WINDOW;
		if (i >= WINDOW)
			FUNC_TRY(func_wait(func, &ops[slot], "a message to leave"));
		pp_fill(mem[slot].mem, len, i);
		ops[slot].done = 0;
		FUNC_POST(func, fi_send(ep->ep, mem[slot].mem, len, mem[slot].desc, ep->peer, &ops[slot]));
	}
	for (i = 0; i < WINDOW && i < func->iterations; i++)
		FUNC_TRY(func_wait(func, &ops[i], "a message to leave"));
	for (i = 0; i < WINDOW; i++)
		func_buf_close(func, &mem[i]);
	return 0;
}

/* Let the messages come, with nothing posted and nothing read. */
static void pause_now(const struct settings *settings)
{
	uint64_t start = util_now_ns();

	while (util_now_ns() - start < (uint64_t) settings->pause_ms * 1000000)
		;
}

static int recv_one(struct func *func, struct func_buf *mem, size_t len, uint64_t seq)
{
	struct settings *settings = func->own;
	struct func_op op = { .done = 0 };

	FUNC_POST(func, fi_recv(settings->ep.ep, mem->mem, len, mem->desc, settings->ep.peer, &op));
	FUNC_TRY(func_wait(func, &op, "a message"));
	FUNC_EXPECT(func, op.entry.len == len, "message %llu has %zu bytes", (unsigned long long) seq, op.entry.len);
	return pp_check(func->pp, mem->mem, len, seq);
}

/* Into memory that is registered before the first message is taken, or one registration for each. */
static int recv_all(struct func *func, size_t len, bool at_once)
{
	struct func_buf mem[WINDOW];
	uint32_t i;

	for (i = 0; i < WINDOW; i++) {
		mem[i] = (struct func_buf) { .len = 0 };
		if (at_once)
			FUNC_TRY(func_buf(func, &mem[i], len, FI_RECV));
	}
	for (i = 0; i < func->iterations; i++) {
		if (!at_once)
			FUNC_TRY(func_buf(func, &mem[0], len, FI_RECV));
		FUNC_TRY(recv_one(func, &mem[at_once ? i % WINDOW : 0], len, i));
		if (!at_once)
			func_buf_close(func, &mem[0]);
	}
	for (i = 0; at_once && i < WINDOW; i++)
		func_buf_close(func, &mem[i]);
	return 0;
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	unsigned round;

	FUNC_TRY(func_ep_open(func, &settings->ep, NULL));
	for (round = 0; round < 2; round++) {
		FUNC_TRY(func_sync(func));
		if (!func->client)
			pause_now(settings);
		FUNC_TRY(func->client ? send_all(func, func_size(func, 0)) :
			 recv_all(func, func_size(func, 0), !round));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .pause_ms = DEFAULT_PAUSE_MS };
	static const struct func_program program = {
		.about = "Send more than the receiver is ready for.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_MSG,
		.iterations = 1000,
		.options = options,
		.take = take,
		.hints = hints,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
