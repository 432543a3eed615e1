/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that tests of memory regions register, and the calls on it that all of them make.
 */
#ifndef TEST_COMMON_REGIONS_H
#define TEST_COMMON_REGIONS_H

#include "world.h"

#define RMA (FI_REMOTE_READ | FI_REMOTE_WRITE)

static uint8_t memory[4096];

static inline int reg(struct world *world, void *buf, size_t len, uint64_t access, uint64_t key, struct fid_mr **mr)
{
	return fi_mr_reg(&world->domain.domain_fid, buf, len, access, 0, key, 0, mr, NULL);
}

/* fab_mr_verify() as the data path calls it: 0 and the first piece, or the error. */
static inline int verify(struct world *world, uint64_t key, uint64_t addr, size_t len, uint64_t access,
			 struct iovec *iov)
{
	uint32_t cnt = 1;
	struct fab_mr *mr;
	int ret;

	fab_engine_lock(&world->domain.engine);
	ret = fab_mr_verify(&world->domain.mr_map, NULL, key, addr, len, access, iov, &cnt, &mr);
	fab_engine_unlock(&world->domain.engine);
	return ret;
}

#endif
