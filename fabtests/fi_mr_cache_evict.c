/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_mr_cache_evict: memory that is registered, given back to the system and mapped again at the same place: a new
 * registration must reach the new pages. By mmap() and by sbrk(); what is written through the region is looked for in
 * the memory. One process.
 */
#include "lib/func.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEN 65536

/* Write through a registration of this memory, and find it there. */
static int write_through(struct func *func, struct func_ep *ep, char *mem, uint64_t seq)
{
	bool virt_addr = func->pp->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct func_op op = { .done = 0 };
	struct fid_mr *mr;
	struct iovec iov = { .iov_base = ep->tx.mem, .iov_len = LEN };
	struct fi_rma_iov rma_iov = { .addr = virt_addr ? (uintptr_t) mem : 0, .len = LEN };
	struct fi_msg_rma msg = { .msg_iov = &iov, .desc = &ep->tx.desc, .iov_count = 1, .addr = ep->peer,
				  .rma_iov = &rma_iov, .rma_iov_count = 1, .context = &op };

	FUNC_TRY(func_mr_reg(func, func->domain, mem, LEN, FI_REMOTE_WRITE, &mr));
	pp_fill(ep->tx.mem, LEN, seq);
	rma_iov.key = fi_mr_key(mr);
	FUNC_POST(func, fi_writemsg(ep->ep, &msg, func_delivery(func) | FI_COMPLETION));
	FUNC_TRY(func_wait(func, &op, "a write to ourselves"));
	FUNC_TRY(pp_check(func->pp, mem, LEN, seq));
	return func_close(func, &mr->fid);
}

static int by_mmap(struct func *func, struct func_ep *ep)
{
	char *mem, *first = NULL;
	uint32_t i;

	for (i = 0; i < func->iterations; i++) {
		mem = mmap(first, LEN, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | (first ? MAP_FIXED_NOREPLACE : 0), -1, 0);
		if (mem == MAP_FAILED)
			return pp_fail(func->pp, -errno, "mmap of %d bytes", LEN);
		first = mem;
		FUNC_TRY(write_through(func, ep, mem, i));
		munmap(mem, LEN);
	}
	return 0;
}

/* The break belongs to malloc() as well: it is moved only as long as nobody else has moved it. */
static int by_sbrk(struct func *func, struct func_ep *ep)
{
	char *mem;
	uint32_t i;
	int ret;

	for (i = 0; i < func->iterations; i++) {
		mem = sbrk(LEN);
		if (mem == (void *) -1)
			return pp_fail(func->pp, -errno, "sbrk of %d bytes", LEN);
		ret = write_through(func, ep, mem, 100 + i);
		if (sbrk(0) == mem + LEN)
			sbrk(-LEN);
		FUNC_TRY(ret);
	}
	return 0;
}

static int run(struct func *func)
{
	const struct func_ep_attr attr = { .buf_len = LEN };
	struct func_ep ep;

	FUNC_TRY(func_ep_to_self(func, &ep, &attr));
	FUNC_TRY(by_mmap(func, &ep));
	return by_sbrk(func, &ep);
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Register memory that is new at an old place.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG | FI_RMA | FI_LOCAL_COMM,
		.iterations = 20,
		.alone = true,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
