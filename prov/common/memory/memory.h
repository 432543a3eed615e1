/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions as applications see them, fi_mr(3): registration, binding, closing. common/regions has the map of keys
 * and the check of remote access.
 */
#ifndef FAB_MEMORY_H
#define FAB_MEMORY_H

#include "common/domain/domain.h"
#include "common/regions/regions.h"

struct fab_engine;

/* The domain's fi_mr_reg, fi_mr_regv and fi_mr_regattr slots. They read only the members of fi_mr_attr that exist in
 * the API version of the fabric. */
extern struct fi_ops_mr fab_mr_ops;
/* Copy attr to *full: the members that exist in the API version of the fabric. Later members are 0. */
void fab_mr_read_attr(const struct fab_domain *domain, const struct fi_mr_attr *attr, struct fi_mr_attr *full);

/* The bits of `access` that mean a use of a region. Others, such as FI_RMA, permit nothing and are ignored, with a line
 * at level info. */
uint64_t fab_mr_access(const struct fab_domain *domain, uint64_t access);

/* The flags of a registration without those that mean nothing here: how memory of a device was allocated, and that the
 * buffers are for collectives. They are ignored, with a line at level info. */
uint64_t fab_mr_flags(const struct fab_domain *domain, uint64_t flags);

/* Find the memory of a registration: *hmem is the number of a device's, or FAB_HMEM_HOST. attr is complete
 * (fab_mr_read_attr()), flags as of fab_mr_flags(). 0; -FI_EBADFLAGS: FI_RMA_PMEM on a device; or as of
 * fab_hmem_open(); logged. */
int fab_mr_hmem(const struct fab_domain *domain, const struct fi_mr_attr *attr, uint64_t flags, uint8_t *hmem);
/* Set FAB_OP_HMEM in flags if a buffer is memory of a device. desc: the descriptors of cnt buffers, as calls pass
 * them: NULL, or an array whose entries are NULL or a struct fab_mr. 0; -FI_EINVAL (logged): devices of several
 * interfaces. */
int fab_mr_mark(void *const *desc, size_t cnt, uint64_t *flags);

/* Check the attributes of a registration in a provider without authorization keys. 0; -FI_EINVAL: attr has a key
 * (logged). */
int fab_mr_refuse_key(const struct fab_domain *domain, const struct fi_mr_attr *attr);

/* Count a peer's write or atomic of len bytes that has reached the region, if a counter is bound. The lock of `engine`,
 * which carried the operation, is held; the lock of the domain's engine may be taken in addition. */
void fab_mr_count(struct fab_mr *mr, struct fab_engine *engine, size_t len);

/* FI_COMMIT_COMPLETE: write the pages of iov[0..cnt), all in mr, to the device or file that they map. Blocks until the
 * device has them. 0; or -FI_E* of msync(2), logged: the data may not be persistent. */
int fab_mr_commit(const struct fab_mr *mr, const struct iovec *iov, uint32_t cnt);

#endif
