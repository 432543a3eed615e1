/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions as programs see them: registration, what is bound to them, and their end. fi_mr(3). Keys and remote
 * access are those of common/regions.
 */
#ifndef FAB_MEMORY_H
#define FAB_MEMORY_H

#include "common/domain/domain.h"
#include "common/regions/regions.h"

struct fab_engine;

/* The domain's fi_mr_reg, fi_mr_regv, fi_mr_regattr slots. fi_mr_attr is read only as far as the fabric's API version
 * says. */
extern struct fi_ops_mr fab_mr_ops;
/* fi_mr_attr as the caller's API version has it; what came later reads as zero. */
void fab_mr_read_attr(const struct fab_domain *domain, const struct fi_mr_attr *attr, struct fi_mr_attr *full);

/* Of a provider that proves no authorization keys: does a region ask for one? 0, or -FI_EINVAL, logged. */
int fab_mr_refuse_key(const struct fab_domain *domain, const struct fi_mr_attr *attr);

/* A peer's write or atomic of len bytes has reached the region: count it, if a counter is bound. The lock of
 * `engine`, the engine that carried it, is held; that of the domain's engine may be taken on top of it. */
void fab_mr_count(struct fab_mr *mr, struct fab_engine *engine, size_t len);

/* Have the pages of these places, in mr, on what they are a mapping of: FI_COMMIT_COMPLETE. Waits for the device. 0, or
 * -FI_E* as msync(2) says, logged: then nothing is promised. */
int fab_mr_commit(const struct fab_mr *mr, const struct iovec *iov, uint32_t cnt);

#endif
