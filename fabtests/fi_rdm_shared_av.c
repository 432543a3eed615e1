/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_rdm_shared_av: processes of one host that share an address vector by its name. On either side the parent
 * inserts the peer and makes a child, which opens the vector to read it: it has the same address under the same
 * number.
 */
#include "lib/func.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_NAME 256

/* What the child must find. */
struct expected {
	const char *av_name;
	fi_addr_t peer;
	char name[MAX_NAME];
	size_t len;
};

static int open_named(struct func *func, struct fid_domain *domain, const char *name, uint64_t flags,
		      struct fid_av **av)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .count = 16, .name = name, .flags = flags };

	return func_av_open(func, domain, &attr, av);
}

/* In the child, which opens a fabric and a domain of its own: those of its parent are not its. */
static int child(struct func *func, void *arg)
{
	const struct expected *expected = arg;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	char name[MAX_NAME];
	size_t len = sizeof(name);

	FUNC_CALL(func, fi_fabric(func->pp->info->fabric_attr, &fabric, NULL));
	FUNC_CALL(func, fi_domain(fabric, func->pp->info, &domain, NULL));
	FUNC_TRY(open_named(func, domain, expected->av_name, FI_READ, &av));
	FUNC_CALL(func, fi_av_lookup(av, expected->peer, name, &len));
	FUNC_EXPECT(func, len == expected->len && !memcmp(name, expected->name, len),
		    "the child finds another address");
	return 0;
}

static int run_child(struct func *func, struct expected *expected)
{
	int status;

	FUNC_TRY(func_in_child(func, child, expected, &status));
	FUNC_EXPECT(func, WIFEXITED(status) && !WEXITSTATUS(status), "the child failed: status 0x%x", status);
	return 0;
}

static int run(struct func *func)
{
	struct func_ep_attr attr = { .cq_size = 0 };
	struct expected expected = { .len = MAX_NAME };
	char av_name[64];
	struct func_ep ep;

	snprintf(av_name, sizeof(av_name), "fi_rdm_shared_av.%ld", (long) getpid());
	expected.av_name = av_name;
	FUNC_TRY(func_agree(func, open_named(func, func->domain, av_name, 0, &attr.av)));
	FUNC_TRY(func_ep_open(func, &ep, &attr));
	FUNC_TRY(func_greet(func, &ep, func_size(func, 0), 0));
	expected.peer = ep.peer;
	FUNC_CALL(func, fi_av_lookup(attr.av, ep.peer, expected.name, &expected.len));
	FUNC_TRY(func_agree(func, run_child(func, &expected)));
	return func_greet(func, &ep, func_size(func, 0), 2);
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Share an address vector between processes.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG | FI_SHARED_AV,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
