/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rdm_multi_domain: endpoints in domains of their own, all of one fabric, with messages under way on all at once. */
#include "lib/func.h"


#define MAX_DOMAINS 32

struct settings {
	uint32_t cnt;
	struct func_ep eps[MAX_DOMAINS];
	struct func_op tx[MAX_DOMAINS], rx[MAX_DOMAINS];
};

static const struct util_opt options[] = {
	{ 'n', "number", "NUMBER", "domains (default: 3)" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	(void) key;
	return func_number("-n (domains)", arg, 1, MAX_DOMAINS, &((struct settings *) func->own)->cnt);
}

/* A domain with an address vector and an endpoint; memory belongs to one domain, so it is opened in func->domain. */
static int open_one(struct func *func, struct func_ep *ep)
{
	struct fi_av_attr av_attr = { .type = func->pp->info->domain_attr->av_type, .count = 4 };

	FUNC_CALL(func, fi_domain(func->pp->fabric, func->pp->info, &func->domain, NULL));
	FUNC_TRY(func_own(func, &func->domain->fid, "domain"));
	FUNC_TRY(func_av_open(func, func->domain, &av_attr, &func->av));
	return func_ep_open(func, ep, NULL);
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	uint32_t i;

	for (i = 0; i < settings->cnt; i++)
		FUNC_TRY(open_one(func, &settings->eps[i]));
	for (i = 0; i < func->iterations; i++)
		FUNC_TRY(func_exchange_on_all(func, settings->eps, settings->tx, settings->rx, settings->cnt,
					      i * MAX_DOMAINS));
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings = { .cnt = 3 };
	static const struct func_program program = {
		.about = "Exchange messages in several domains at the same time.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG,
		.iterations = 10,
		.options = options,
		.take = take,
		.run = run,
	};

	return func_main(argc, argv, &program, &settings);
}
