/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_cq_data: the data that a message, or an RMA write, puts into the peer's completion. */
#include "lib/func.h"

#include <string.h>

struct settings {
	bool write;
};

static const struct util_opt options[] = {
	{ 'o', "operation", "senddata|writedata", "what carries the data (default: senddata)" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	(void) key;
	if (strcmp(arg, "senddata") && strcmp(arg, "writedata")) {
		util_err("-o is '%s': senddata or writedata is allowed", arg);
		return -FI_EINVAL;
	}
	settings->write = !strcmp(arg, "writedata");
	return 0;
}

static void hints(struct func *func, struct fi_info *hints)
{
	const struct settings *settings = func->own;

	hints->caps |= settings->write ? FI_RMA : 0;
	hints->mode |= FI_RX_CQ_DATA;
	hints->domain_attr->cq_data_size = 4;
}

/* All of the bits that both ends' completions have. */
static uint64_t test_data(const struct func *func, uint32_t i)
{
	size_t bytes = func->pp->info->domain_attr->cq_data_size;
	uint64_t data = 0x0123456789abcdefULL + i;

	return bytes < sizeof(data) ? data & ((1ULL << 8 * bytes) - 1) : data;
}

static int client_once(struct func *func, struct func_ep *ep, const struct func_region *target, uint32_t i)
{
	const struct settings *settings = func->own;
	struct func_op op = { .done = 0 };
	size_t len = func_size(func, 0);

	pp_fill(ep->tx.mem, len, i);
	if (settings->write)
		FUNC_POST(func, fi_writedata(ep->ep, ep->tx.mem, len, ep->tx.desc, test_data(func, i), ep->peer,
					     target->addr, target->key, &op));
	else
		FUNC_POST(func, fi_senddata(ep->ep, func_msg(&ep->tx), func_msg_len(&ep->tx, len), ep->tx.desc,
					    test_data(func, i), ep->peer, &op));
	return func_wait(func, &op, "the operation with data");
}

static int server_once(struct func *func, struct func_op *op, const char *mem, uint32_t i)
{
	const struct settings *settings = func->own;
	uint64_t flags = FI_REMOTE_CQ_DATA | (settings->write ? 0 : FI_RECV);

	FUNC_TRY(func_wait(func, op, "a completion with data"));
	FUNC_EXPECT(func, (op->entry.flags & flags) == flags, "flags of the completion: %s",
		    util_tostr(&op->entry.flags, FI_TYPE_CQ_EVENT_FLAGS));
	FUNC_EXPECT(func, op->entry.data == test_data(func, i), "data of the completion: 0x%llx, not 0x%llx",
		    (unsigned long long) op->entry.data, (unsigned long long) test_data(func, i));
	return pp_check(func->pp, mem, func_size(func, 0), i);
}

static int run(struct func *func)
{
	const struct settings *settings = func->own;
	bool consumes = !settings->write || (func->pp->info->mode & FI_RX_CQ_DATA) ||
			(func->pp->info->rx_attr->mode & FI_RX_CQ_DATA);
	struct func_region target = { .addr = 0 };
	struct func_op op;
	struct func_buf mem = { .len = 0 };
	struct func_ep ep;
	uint32_t i;

	FUNC_TRY(func_ep_open(func, &ep, NULL));
	if (settings->write) {
		FUNC_TRY(func_buf(func, &mem, func_size(func, 0), FI_REMOTE_WRITE));
		FUNC_TRY(func_exchange_regions(func, &mem, &target));
	}
	for (i = 0; i < func->iterations; i++) {
		op = (struct func_op) { .done = 0 };
		func->stray = consumes ? NULL : &op;
		if (!func->client && consumes)
			FUNC_TRY(func_recv(func, &ep, ep.rx.len, &op));
		FUNC_TRY(func_sync(func));
		if (func->client)
			FUNC_TRY(client_once(func, &ep, &target, i));
		else
			FUNC_TRY(server_once(func, &op, settings->write ? mem.mem : ep.rx.mem, i));
	}
	return func_sync(func);
}

int main(int argc, char **argv)
{
	static struct settings settings;
	static const struct func_program program = {
		.about = "Send data into the peer's completion, with a message or an RMA write.",
		.ep_type = FI_EP_MSG,
		.choose_type = true,
		.dgram = true,
		.caps = FI_MSG,
		.iterations = 10,
		.options = options,
		.take = take,
		.hints = hints,
		.prefix = true,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
