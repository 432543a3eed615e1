/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_rdm_multi_client: a server that stays while clients come and go, each an endpoint of its own, with -R each at the
 * address of the first. The server answers each of them, and its address vector names each.
 */
#include "lib/func.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAME 256

struct settings {
	uint32_t clients;
	bool reuse;
	char name[MAX_NAME];            /* the first client's address */
	size_t name_len;
};

static const struct util_opt options[] = {
	{ 'C', "clients", "NUMBER", "how many clients come (default: 4)" },
	{ 'R', "reuse", NULL, "each at the address of the first" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;

	settings->reuse |= key == 'R';
	return key == 'C' ? func_number("-C (clients)", arg, 1, 10000, &settings->clients) : 0;
}

/* Ask for an endpoint at the first client's address. */
static int take_name(struct func *func)
{
	struct settings *settings = func->own;
	struct fi_info *info = func->pp->info;

	free(info->src_addr);
	info->src_addr = malloc(settings->name_len);
	if (!info->src_addr)
		return pp_fail(func->pp, -FI_ENOMEM, "an address");
	memcpy(info->src_addr, settings->name, settings->name_len);
	info->src_addrlen = settings->name_len;
	return 0;
}

static int client_once(struct func *func, uint32_t i)
{
	struct settings *settings = func->own;
	struct func_ep ep;
	char name[MAX_NAME];
	size_t len = sizeof(name);

	if (i && settings->reuse)
		FUNC_TRY(take_name(func));
	FUNC_TRY(func_ep_open(func, &ep, NULL));
	FUNC_CALL(func, fi_getname(&ep.ep->fid, name, &len));
	if (!i) {
		memcpy(settings->name, name, len);
		settings->name_len = len;
	}
	FUNC_EXPECT(func, !i || !settings->reuse || (len == settings->name_len && !memcmp(name, settings->name, len)),
		    "the address of client %u is not that of the first", i + 1);
	FUNC_TRY(func_greet(func, &ep, func_size(func, 0), i));
	FUNC_TRY(func_sync(func));
	FUNC_TRY(func_ep_close(func, &ep));
	FUNC_TRY(func_close(func, &ep.cq->fid));
	func_buf_close(func, &ep.tx);
	func_buf_close(func, &ep.rx);
	FUNC_CALL(func, fi_av_remove(func->av, &ep.peer, 1, 0));
	return func_sync(func);
}

/* The same endpoint all the time; the client tells it the names. */
static int server_once(struct func *func, struct func_ep *ep, uint32_t i)
{
	FUNC_TRY(i ? func_exchange_names(func, &ep->ep->fid, func->av, &ep->peer) : func_ep_open(func, ep, NULL));
	FUNC_TRY(func_greet(func, ep, func_size(func, 0), i));
	FUNC_TRY(func_sync(func));
	FUNC_TRY(func_sync(func));
	FUNC_CALL(func, fi_av_remove(func->av, &ep->peer, 1, 0));
	return 0;
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	struct func_ep ep;
	uint32_t i;

	for (i = 0; i < settings->clients; i++)
		FUNC_TRY(func->client ? client_once(func, i) : server_once(func, &ep, i));
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .clients = 4 };
	static const struct func_program program = {
		.about = "Answer clients that come and go.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG,
		.options = options,
		.take = take,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
