/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registrations below: those for operations whose buffers the application has not registered (pins.c), and those that
 * belong to descriptors of the application. Conventions: rxm.h.
 */
#ifndef RXM_PINS_H
#define RXM_PINS_H

#include "rxm/objects.h"

/* The uses of memory. An operation that reads memory here also finds what was registered for a peer's reads. */
#define RXM_PIN_OFFER	(FI_REMOTE_READ | FI_WRITE)	/* a peer reads it, or a write of ours is from it */
#define RXM_PIN_FILL	FI_READ				/* a read of ours goes there */
#define RXM_PIN_LEND	FI_REMOTE_WRITE			/* a peer writes there */

#define RXM_UNPINNED	4	/* result of making an entry: register its buffers without the lock, and try again */

extern const struct fab_mrc_ops rxm_pin_ops;
/* Get a registration of len bytes at buf, which the entry owns from then on: one that ep->pins has, or a cached one.
 * 0: *mr is the region of the provider below. RXM_UNPINNED: there is none. Lock held. */
int rxm_pin_take(struct rxm_ep *ep, struct rxm_tx *tx, const void *buf, size_t len, uint64_t access,
		 struct fid_mr **mr);
/* The same, or make one, with the lock held: where it cannot be released. 0, or -FI_E* of the provider below. */
int rxm_pin_make(struct rxm_ep *ep, struct rxm_tx *tx, const void *buf, size_t len, uint64_t access,
		 struct fid_mr **mr);
/* Register the buffers of op, as far as it has no descriptors. 0: the caller calls rxm_pins_put() later; -FI_E* of the
 * provider below. The lock need not be held. */
int rxm_pins_get(struct rxm_ep *ep, const struct fab_op *op, struct rxm_pins *pins);
/* Give those back that no operation has taken over. */
void rxm_pins_put(struct rxm_ep *ep, struct rxm_pins *pins);
/* An entry ends: give its registrations back, and fetch no more chunks of it. Lock held. */
void rxm_tx_unpin(struct rxm_ep *ep, struct rxm_tx *tx);
/* The region below that belongs to a descriptor of ours, and permits a peer this access. NULL: there is none, or desc
 * is NULL. */
static inline struct fid_mr *rxm_mr_for(void *desc, uint64_t access)
{
	struct rxm_mr *mr = desc;

	if (!mr || (mr->access & access) == access)
		return mr ? mr->below : NULL;
	return access == FI_REMOTE_READ ? mr->offer : NULL;
}
/* True if a buffer of op is in a region of a device. */
bool rxm_is_device(const struct fab_op *op);
/* Set FAB_OP_HMEM in the flags of such an operation. 0; -FI_EOPNOTSUPP: a region is a dma-buf that nobody here can
 * copy; -FI_EINVAL: devices of several interfaces. */
int rxm_mark_device(const struct fab_op *op, uint64_t *flags);
/* Copy the len bytes of iov to host memory, for an operation with these flags. 0 or -FI_EIO. */
int rxm_gather(uint64_t flags, uint8_t *to, const struct iovec *iov, size_t len);
/* Make the region for announced messages, for which rxm_mr_for() has found none. 0; -FI_E* of the provider below. No
 * lock need be held. */
int rxm_mr_offer(struct rxm_domain *domain, struct rxm_mr *mr);
/* The descriptor of the provider below that belongs to one of ours; NULL for NULL. */
static inline void *rxm_desc_below(void *desc)
{
	const struct rxm_mr *mr = desc;

	return mr ? fi_mr_desc(mr->below) : NULL;
}

#endif
