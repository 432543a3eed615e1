/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_multi_recv: many messages in one buffer. Each is where its completion says, behind the one before, and whole; the
 * buffer is given back once, when less than FI_OPT_MIN_MULTI_RECV is left; two buffers are used in turn.
 */
#include "lib/func.h"

#include <string.h>

#define BUFFERS 2
#define MESSAGES_PER_BUFFER 16
#define WINDOW 8

struct settings {
	bool recvmsg;
	struct func_buf mem[BUFFERS];
	struct func_op ops[BUFFERS];
	struct func_ep ep;
	size_t len, used[BUFFERS];
	uint64_t received, released;
};

static const struct util_opt options[] = {
	{ 'M', "recvmsg", NULL, "post the buffers with fi_recvmsg()" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	(void) key;
	(void) arg;
	settings->recvmsg = true;
	return 0;
}

static void hints(struct func *func, struct fi_info *hints)
{
	(void) func;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->op_flags = FI_MULTI_RECV;
}

static int post(struct func *func, struct func_op *op)
{
	struct settings *settings = func->own;
	struct func_buf *mem = &settings->mem[op - settings->ops];
	struct iovec iov = { .iov_base = mem->mem, .iov_len = mem->len };
	struct fi_msg msg = { .msg_iov = &iov, .desc = &mem->desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
			      .context = op };

	settings->used[op - settings->ops] = 0;
	if (settings->recvmsg)
		FUNC_POST(func, fi_recvmsg(settings->ep.ep, &msg, FI_MULTI_RECV));
	else
		FUNC_POST(func, fi_recv(settings->ep.ep, mem->mem, mem->len, mem->desc, FI_ADDR_UNSPEC, op));
	return 0;
}

/* One message, or the buffer that is given back, or both. */
static int on_completion(struct func *func, struct func_op *op)
{
	struct settings *settings = func->own;
	const struct func_buf *mem = &settings->mem[op - settings->ops];
	size_t *used = &settings->used[op - settings->ops];
	const struct fi_cq_tagged_entry *entry = &op->entry;

	FUNC_EXPECT(func, !op->err, "a receive failed: %s", fi_strerror(op->err));
	if (entry->flags & FI_RECV && entry->len) {
		FUNC_EXPECT(func, (char *) entry->buf == mem->mem + *used, "message %llu is at offset %td, not %zu",
			    (unsigned long long) settings->received, (char *) entry->buf - mem->mem, *used);
		FUNC_EXPECT(func, entry->len == settings->len, "message %llu has %zu bytes, not %zu",
			    (unsigned long long) settings->received, entry->len, settings->len);
		FUNC_TRY(pp_check(func->pp, entry->buf, entry->len, settings->received));
		memset(entry->buf, 0, entry->len);
		*used += entry->len;
		settings->received++;
	}
	if (!(entry->flags & FI_MULTI_RECV))
		return 0;
	settings->released++;
	return post(func, op);
}

static int server(struct func *func, uint64_t cnt)
{
	struct settings *settings = func->own;
	size_t min = settings->len;
	unsigned i;

	FUNC_CALL(func, fi_setopt(&settings->ep.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	for (i = 0; i < BUFFERS; i++) {
		FUNC_TRY(func_buf(func, &settings->mem[i], settings->len * MESSAGES_PER_BUFFER, FI_RECV));
		settings->ops[i].on_completion = on_completion;
		FUNC_TRY(post(func, &settings->ops[i]));
	}
	FUNC_TRY(func_sync(func));
	FUNC_WAIT(func, settings->received >= cnt, "messages");
	FUNC_TRY(func_sync(func));
	FUNC_EXPECT(func, settings->received == cnt, "%llu messages came of %llu",
		    (unsigned long long) settings->received, (unsigned long long) cnt);
	/* A full buffer may be given back with its last message, or when the next one finds it full. */
	FUNC_EXPECT(func, settings->released + 1 >= cnt / MESSAGES_PER_BUFFER &&
		    settings->released <= cnt / MESSAGES_PER_BUFFER,
		    "%llu buffers were given back after %llu messages", (unsigned long long) settings->released,
		    (unsigned long long) cnt);
	return 0;
}

static int client(struct func *func, uint64_t cnt)
{
	struct settings *settings = func->own;
	struct func_op ops[WINDOW] = { { .done = 1 } };
	struct func_op *op;
	char *mem;
	uint64_t i;

	FUNC_TRY(func_buf(func, &settings->mem[0], settings->len * WINDOW, FI_SEND));
	FUNC_TRY(func_sync(func));
	for (i = 0; i < cnt; i++) {
		op = &ops[i % WINDOW];
		if (i >= WINDOW)
			FUNC_TRY(func_wait(func, op, "a message to leave"));
		mem = settings->mem[0].mem + i % WINDOW * settings->len;
		pp_fill(mem, settings->len, i);
		op->done = 0;
		FUNC_POST(func, fi_send(settings->ep.ep, mem, settings->len, settings->mem[0].desc, settings->ep.peer,
					op));
	}
	for (i = 0; i < WINDOW; i++)
		FUNC_TRY(func_wait(func, &ops[i], "a message to leave"));
	return func_sync(func);
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	uint64_t cnt = (uint64_t) func->iterations * MESSAGES_PER_BUFFER;

	settings->len = func_size(func, 0);
	FUNC_TRY(func_ep_open(func, &settings->ep, NULL));
	return func->client ? client(func, cnt) : server(func, cnt);
}

int main(int argc, char **argv)
{
	static struct settings settings;
	static const struct func_program program = {
		.about = "Receive many messages in one buffer.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_MSG | FI_MULTI_RECV,
		.iterations = 10,
		.options = options,
		.take = take,
		.hints = hints,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
