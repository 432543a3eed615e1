/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to completion queues: errors, for cq.c and cq_err.c. The lock of the queue's engine is held, except for
 * functions that take it.
 */
#ifndef FAB_CQ_ERR_H
#define FAB_CQ_ERR_H

#include "common/queue/cq.h"

struct fab_cq_err {
	struct fab_list link;
	uint32_t pos;			/* the ring position before which it is read */
	struct fab_comp comp;
	int err;
	int prov_errno;
	size_t olen;
	size_t err_data_len;
	char *text;			/* NULL, or behind err_data */
	uint8_t err_data[];
};

/* The first error, or NULL. */
static inline struct fab_cq_err *fab_cq_first_err(const struct fab_cq *cq)
{
	return fab_list_first(&cq->errs, struct fab_cq_err, link);
}

/* Allocate an entry; data may be NULL. NULL: no memory. */
struct fab_cq_err *fab_cq_err_alloc(const void *data, size_t data_len, const char *text);
/* Free an entry, unless it is one of the reserved ones, which belong to the queue. */
void fab_cq_err_free(struct fab_cq *cq, struct fab_cq_err *err);
/* Overrun the queue, because comp is lost. Queued entries can still be read, and FI_EOVERRUN follows them.
 * Idempotent. */
void fab_cq_set_overrun(struct fab_cq *cq, const struct fab_comp *comp);
/* Write a success of a peer CQ to its owner. */
void fab_cq_owner_write(struct fab_cq *cq, const struct fab_comp *comp);

/* Slots of struct fi_ops_cq. Both take the lock. */
ssize_t fab_cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags);
const char *fab_cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len);

#endif
