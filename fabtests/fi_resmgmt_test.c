/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_resmgmt_test: with FI_RM_ENABLED nothing overruns. The client sends until it is told -FI_EAGAIN, or has sent -m
 * messages, without reading a completion; the server posts as many receives as it can, and reads nothing either
 * until all were sent. Then every operation that was accepted completes, well and once.
 */
#include "lib/func.h"

#include <arpa/inet.h>
#include <string.h>

#define MAX_OPS 8192

struct settings {
	uint32_t ops, tx_cq, rx_cq, pause_ms;
	bool tagged, table;
	struct func_op *list;
	struct func_buf mem;
	uint32_t posted, completed;
};

static const struct util_opt options[] = {
	{ 't', "tagged", NULL, "tagged messages" },
	{ 'm', "operations", "NUMBER", "messages at most (default: 1024)" },
	{ 'R', "rx-cq", "NUMBER", "size of the server's completion queue (default: 16)" },
	{ 'S', "tx-cq", "NUMBER", "size of the client's completion queue (default: 16)" },
	{ 'd', "delay", "MILLISECONDS", "how long the server reads nothing (default: 10)" },
	{ 'A', "av-table", NULL, "addresses in a table: FI_AV_TABLE" },
	{ 'j', "shared-cq", NULL, "one queue for both directions, as it always is here: taken for scripts" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	switch (key) {
	case 't':
		settings->tagged = true;
		return 0;
	case 'm':
		return func_number("-m (operations)", arg, 1, MAX_OPS, &settings->ops);
	case 'R':
		return func_number("-R (entries)", arg, 1, 65536, &settings->rx_cq);
	case 'S':
		return func_number("-S (entries)", arg, 1, 65536, &settings->tx_cq);
	case 'd':
		return func_number("-d (milliseconds)", arg, 0, 60000, &settings->pause_ms);
	case 'A':
		settings->table = true;
		return 0;
	default:
		return 0;
	}
}

static void hints(struct func *func, struct fi_info *hints)
{
	const struct settings *settings = func->own;

	if (settings->tagged)
		hints->caps = (hints->caps & ~FI_MSG) | FI_TAGGED;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	if (settings->table)
		hints->domain_attr->av_type = FI_AV_TABLE;
}

static int on_completion(struct func *func, struct func_op *op)
{
	struct settings *settings = func->own;

	FUNC_EXPECT(func, !op->err, "operation %td failed: %s", op - settings->list, fi_strerror(op->err));
	FUNC_EXPECT(func, op->done == 1, "operation %td completed twice", op - settings->list);
	settings->completed++;
	return 0;
}

/* Post the next operation: 0, -FI_EAGAIN when there is no room, or what went wrong. */
static ssize_t post_next(struct func *func, struct func_ep *ep, size_t len)
{
	struct settings *settings = func->own;
	struct func_op *op = &settings->list[settings->posted];
	char *mem = settings->mem.mem + settings->posted * len;
	void *desc = settings->mem.desc;

	*op = (struct func_op) { .on_completion = on_completion };
	if (func->client) {
		pp_fill(mem, len, 0);
		return settings->tagged ? fi_tsend(ep->ep, mem, len, desc, ep->peer, 0, op) :
					  fi_send(ep->ep, mem, len, desc, ep->peer, op);
	}
	return settings->tagged ? fi_trecv(ep->ep, mem, len, desc, ep->peer, 0, 0, op) :
				  fi_recv(ep->ep, mem, len, desc, ep->peer, op);
}

/* Post, without reading a queue, until `limit` are posted or there is no room. */
static int post_many(struct func *func, struct func_ep *ep, size_t len, uint32_t limit)
{
	struct settings *settings = func->own;
	ssize_t ret = 0;

	while (settings->posted < limit) {
		ret = post_next(func, ep, len);
		if (ret)
			break;
		settings->posted++;
	}
	return !ret || ret == -FI_EAGAIN ? 0 : pp_fail(func->pp, (int) ret, "post an operation");
}

/* Post what there was no room for as completions make room, until the last has completed. */
static int finish(struct func *func, struct func_ep *ep, size_t len, uint32_t cnt)
{
	struct settings *settings = func->own;

	while (settings->posted < cnt) {
		FUNC_POST(func, post_next(func, ep, len));
		settings->posted++;
	}
	FUNC_WAIT(func, settings->completed == cnt, "completions");
	return 0;
}

/* How many the client got in at once. */
static int tell_count(struct func *func, uint32_t *cnt)
{
	uint32_t ours = htonl(func->client ? *cnt : 0), theirs = 0;

	FUNC_TRY(pp_ctrl_send(func->pp, &ours, sizeof(ours), "the number of messages"));
	FUNC_TRY(pp_ctrl_recv(func->pp, &theirs, sizeof(theirs), "the number of messages"));
	if (!func->client)
		*cnt = ntohl(theirs);
	return 0;
}

static int server(struct func *func, struct func_ep *ep, size_t len)
{
	struct settings *settings = func->own;
	uint64_t start = util_now_ns();
	uint32_t cnt = 0, i;

	FUNC_TRY(post_many(func, ep, len, settings->ops));
	while (util_now_ns() - start < (uint64_t) settings->pause_ms * 1000000)
		;
	FUNC_TRY(tell_count(func, &cnt));
	FUNC_TRY(finish(func, ep, len, settings->ops));
	for (i = 0; i < settings->ops; i++) {
		FUNC_EXPECT(func, settings->list[i].entry.len == len, "message %u has %zu bytes", i,
			    settings->list[i].entry.len);
		FUNC_TRY(pp_check(func->pp, settings->mem.mem + i * len, len, 0));
	}
	return 0;
}

static int client(struct func *func, struct func_ep *ep, size_t len)
{
	struct settings *settings = func->own;

	FUNC_TRY(post_many(func, ep, len, settings->ops));
	FUNC_TRY(tell_count(func, &settings->posted));
	return finish(func, ep, len, settings->ops);
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	const struct func_ep_attr attr = { .cq_size = func->client ? settings->tx_cq : settings->rx_cq };
	size_t len = func_size(func, 0);
	struct func_ep ep;

	settings->list = func_alloc(func, settings->ops * sizeof(*settings->list));
	if (!settings->list)
		return -FI_ENOMEM;
	FUNC_TRY(func_buf(func, &settings->mem, settings->ops * len, FI_SEND | FI_RECV));
	FUNC_TRY(func_ep_open(func, &ep, &attr));
	return func->client ? client(func, &ep, len) : server(func, &ep, len);
}

int main(int argc, char **argv)
{
	static struct settings settings = { .ops = 1024, .tx_cq = 16, .rx_cq = 16, .pause_ms = 10 };
	static const struct func_program program = {
		.about = "Post as much as there is room for, and read nothing meanwhile.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_MSG,
		.size = 256,
		.options = options,
		.take = take,
		.hints = hints,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
