/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What real devices are like where programs notice it: SOFTVERBS_DEVICE chooses one. A device is a list of limits, in
 * the words of SOFTVERBS_LIMITS, which says more and comes first. The facts are those of rdma-core's and the kernel's
 * drivers.
 *
 * No device here is complete: a limit that is not listed is the stand-in's.
 */
#include "sv.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK	64			/* a request takes whole blocks of the send queue */
#define SEGMENT	16			/* of a request: a buffer, and what inline data is rounded up to */

static const struct {
	const char *name, *facts;
} models[] = {
	/* ConnectX-4 and later. A send queue has 2 MiB for requests of 1 KiB at most, each as long as the longest may
	 * be. A completion of an XRC receive queue that is gone makes a poll fail. */
	{ "mlx5", "max_qp_wr=32768,max_qp_rd_atom=16,max_qp_init_rd_atom=16,max_inline_data=1024,max_srq_wr=32767,"
	  "sq_bytes=2097152,sq_entry=1024,sq_header=192,stale_srq=1,comp_vectors=16" },
	/* ConnectX-3: destroying a receive queue takes its completions away. */
	{ "mlx4", "max_qp_rd_atom=16,max_qp_init_rd_atom=128,max_qp_wr=16351,purge_srq=1,comp_vectors=8" },
	/* E810, RoCE v2 */
	{ "irdma", "max_qp_rd_atom=127,max_qp_init_rd_atom=255,max_qp_wr=4063,max_sge=13,max_sge_rd=13,"
	  "max_inline_data=101,xrc=0,max_srq=0,atomics=0,comp_vectors=8" },
	/* Queue pairs are made without room for inline data, whatever was asked. */
	{ "hfi1", "no_inline=1,max_qp_rd_atom=16,max_qp_init_rd_atom=255,max_qp_wr=16383,max_cqe=196607,xrc=0" },
	{ "qib", "no_inline=1,max_qp_rd_atom=16,max_qp_init_rd_atom=255,max_qp_wr=16383,max_cqe=196607,xrc=0" },
	{ "pvrdma", "no_inline=1,xrc=0,no_resize_cq=1" },
	/* NetXtreme-E */
	{ "bnxt", "max_qp_rd_atom=126,max_qp_init_rd_atom=126,max_sge=6,max_sge_rd=6,max_inline_data=96,xrc=0,"
	  "comp_vectors=8" },
	/* T6: a queue of completions cannot grow. */
	{ "cxgb4", "iwarp=1,max_sge=4,max_sge_rd=1,max_qp_rd_atom=128,max_qp_init_rd_atom=128,max_inline_data=160,"
	  "xrc=0,atomics=0,no_resize_cq=1" },
	/* An old library, which has no more symbols than its map (libibverbs-27.map). */
	{ "rdma-core-27", "dmabuf=0" },
};

const char *sv_model_facts(void)
{
	const char *name = getenv("SOFTVERBS_DEVICE");

	if (!name || !*name)
		return NULL;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (!strcmp(models[i].name, name))
			return models[i].facts;
	fprintf(stderr, "softverbs: SOFTVERBS_DEVICE=%s is not known\n", name);
	exit(2);
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static uint64_t power_of_two(uint64_t n)
{
	uint64_t size = 1;

	while (size < n)
		size *= 2;
	return size;
}

/* Bytes of the longest request that these sizes allow. */
static uint64_t entry_len(const struct ibv_qp_cap *cap, uint64_t header)
{
	uint64_t buffers = (uint64_t) cap->max_send_sge * SEGMENT;
	uint64_t data = cap->max_inline_data ? round_up(4 + cap->max_inline_data, SEGMENT) : 0;

	return round_up(header + (buffers > data ? buffers : data), BLOCK);
}

int sv_model_fit(enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
	uint64_t header = type == IBV_QPT_UD ? 64 : sv_limit("sq_header", 0) + (type == IBV_QPT_XRC_SEND ? SEGMENT : 0);
	uint64_t room = sv_limit("sq_bytes", 0), entry = entry_len(cap, header);

	if (sv_limit("no_inline", 0))
		cap->max_inline_data = 0;
	if (!room || type == IBV_QPT_XRC_RECV)
		return 0;
	if (entry > sv_limit("sq_entry", room) || power_of_two(cap->max_send_wr * entry) > room)
		return EINVAL;
	cap->max_send_wr = (uint32_t) (power_of_two(cap->max_send_wr * entry) / entry);
	if (cap->max_inline_data)
		cap->max_inline_data = (uint32_t) (entry - header - 4);
	return 0;
}
