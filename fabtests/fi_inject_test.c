/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_inject_test: buffers that are ours again as soon as an injected send returns. Each message is overwritten at once,
 * and must arrive as it was.
 */
#include "lib/func.h"

#include <string.h>

#define TAG 77

enum { INJECT, INJ_COMPLETE };

struct settings {
	bool flags[2];
	bool no_calls;
};

static const struct util_opt options[] = {
	{ 'A', "mode", "inject|inj_complete",
	  "with FI_INJECT alone, or with FI_INJECT_COMPLETE as well\n(default: both in turn)" },
	{ 'N', "sendmsg-only", NULL, "only fi_tsendmsg(), not fi_tinject()" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	if (key == 'N') {
		settings->no_calls = true;
		return 0;
	}
	if (strcmp(arg, "inject") && strcmp(arg, "inj_complete")) {
		util_err("-A is '%s': inject or inj_complete is allowed", arg);
		return -FI_EINVAL;
	}
	settings->flags[INJECT] = !strcmp(arg, "inject");
	settings->flags[INJ_COMPLETE] = !settings->flags[INJECT];
	return 0;
}

static int send_msg(struct func *func, struct func_ep *ep, size_t len, uint64_t flags)
{
	struct iovec iov = { .iov_base = ep->tx.mem, .iov_len = len };
	struct func_op op = { .done = 0 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .desc = &ep->tx.desc, .iov_count = 1, .addr = ep->peer,
				     .tag = TAG, .context = &op };

	FUNC_POST(func, fi_tsendmsg(ep->ep, &msg, flags));
	memset(ep->tx.mem, 0xee, len);
	return func_wait(func, &op, "an injected message to leave");
}

/* fi_tinject() makes no completion. */
static int send_call(struct func *func, struct func_ep *ep, size_t len)
{
	FUNC_POST(func, fi_tinject(ep->ep, ep->tx.mem, len, ep->peer, TAG));
	memset(ep->tx.mem, 0xee, len);
	return 0;
}

static int send_one(struct func *func, struct func_ep *ep, size_t len, unsigned how)
{
	pp_fill(ep->tx.mem, len, len + how);
	if (how == 2)
		return send_call(func, ep, len);
	return send_msg(func, ep, len, FI_INJECT | FI_COMPLETION | (how == INJECT ? 0 : FI_INJECT_COMPLETE));
}

static int exchange(struct func *func, struct func_ep *ep, size_t len, unsigned how)
{
	struct func_op op = { .done = 0 };

	if (!func->client)
		FUNC_POST(func, fi_trecv(ep->ep, ep->rx.mem, ep->rx.len, ep->rx.desc, ep->peer, TAG, 0, &op));
	FUNC_TRY(func_sync(func));
	if (func->client) {
		FUNC_TRY(send_one(func, ep, len, how));
	} else {
		FUNC_TRY(func_wait(func, &op, "an injected message"));
		FUNC_EXPECT(func, op.entry.len == len, "%zu bytes came, not %zu", op.entry.len, len);
		FUNC_TRY(pp_check(func->pp, ep->rx.mem, len, len + how));
	}
	return func_sync(func);
}

static int run(struct func *func)
{
	const struct settings *settings = func->own;
	size_t len, limit = func->pp->info->tx_attr->inject_size;
	struct func_ep ep;
	unsigned how;

	limit = func_size(func, limit);
	FUNC_TRY(func_ep_open(func, &ep, NULL));
	for (how = 0; how < 3; how++) {
		if (how == 2 ? settings->no_calls : !settings->flags[how])
			continue;
		for (len = 1; len <= limit; len = len < limit && 2 * len > limit ? limit : 2 * len)
			FUNC_TRY(exchange(func, &ep, len, how));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .flags = { true, true } };
	static const struct func_program program = {
		.about = "Inject messages and overwrite them at once.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_TAGGED,
		.size = 4096,
		.options = options,
		.take = take,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
