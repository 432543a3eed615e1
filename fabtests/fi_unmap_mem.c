/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_unmap_mem: buffers that are unmapped after each message and mapped again at the same place, with other pages
 * behind it: what a provider remembers of memory must not outlive the mapping.
 */
#include "lib/func.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static void hints(struct func *func, struct fi_info *hints)
{
	(void) func;
	hints->domain_attr->mr_mode &= ~FI_MR_LOCAL;
}

/* Map, at `place` unless that is NULL. */
static int map(struct func *func, char *place, size_t len, char **mem)
{
	*mem = mmap(place, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (place ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	if (*mem == MAP_FAILED)
		return pp_fail(func->pp, -errno, "mmap of %zu bytes", len);
	FUNC_EXPECT(func, !place || *mem == place, "mmap gave another place");
	return 0;
}

static int send_one(struct func *func, struct func_ep *ep, char **place, size_t len, uint64_t seq)
{
	struct func_op op = { .done = 0 };
	char *mem;

	FUNC_TRY(map(func, *place, len, &mem));
	*place = mem;
	pp_fill(mem, len, seq);
	FUNC_POST(func, fi_send(ep->ep, mem, len, NULL, ep->peer, &op));
	FUNC_TRY(func_wait(func, &op, "a message to leave"));
	munmap(mem, len);
	return 0;
}

static int recv_one(struct func *func, struct func_ep *ep, char **place, size_t len, uint64_t seq)
{
	struct func_op op = { .done = 0 };
	char *mem;
	int ret;

	FUNC_TRY(map(func, *place, len, &mem));
	*place = mem;
	FUNC_POST(func, fi_recv(ep->ep, mem, len, NULL, ep->peer, &op));
	FUNC_TRY(func_sync(func));
	FUNC_TRY(func_wait(func, &op, "a message"));
	ret = pp_check(func->pp, mem, len, seq);
	munmap(mem, len);
	return ret;
}

static int run(struct func *func)
{
	size_t len = func_size(func, 0);
	struct func_ep ep;
	char *place = NULL;
	uint32_t i;

	FUNC_TRY(func_ep_open(func, &ep, NULL));
	for (i = 0; i < func->iterations; i++) {
		if (func->client)
			FUNC_TRY(func_sync(func));
		FUNC_TRY(func->client ? send_one(func, &ep, &place, len, i) : recv_one(func, &ep, &place, len, i));
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Map other pages behind the same buffer between messages.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_MSG,
		.iterations = 10,
		.size = 1048576,
		.hints = hints,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
