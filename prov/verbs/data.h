/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data calls: their tables, what becomes of work completions, and the slow paths of post.h.
 */
#ifndef VRB_DATA_H
#define VRB_DATA_H

#include "verbs/ep.h"

#define VRB_ATOMIC_LEN		8	/* bytes that an atomic changes */

extern struct fi_ops_msg vrb_msg_ops;	/* ops.c */
extern struct fi_ops_rma vrb_rma_ops;
extern struct fi_ops_atomic vrb_atomic_ops;	/* atomic.c */

/* Fill the opcode and the atomic fields of a work request; the caller sets the others. */
void vrb_atomic_wr(const struct fab_amo *amo, uint64_t addr, uint32_t rkey, struct ibv_send_wr *wr);
/* fi_query_atomic(3). */
int vrb_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);
/* Fill the empty slots of vrb_atomic_ops. Called once, at load. */
void vrb_atomic_fill_ops(void);
/* True if the device has atomics. With IBV_ATOMIC_HCA they are atomic only with respect to other atomics of the
 * device. */
bool vrb_device_atomics(const struct vrb_device *dev);

#define VRB_IS_RX	1		/* in wr_id: the rest points to a struct vrb_rx, else to a struct vrb_tx */

/* The slow paths of post.h, for a call that cannot be carried out. Each returns what the call returns. Lock held. */

/* A buffer has no descriptor, and needs one: -FI_EINVAL, logged. */
ssize_t vrb_no_desc(enum fab_op_code code);
/* FI_INJECT of memory that the processor cannot read: -FI_EINVAL, logged. */
ssize_t vrb_no_copy(enum fab_op_code code);
/* A send, read or write cannot be posted, now or at all: the reason as -FI_E*. */
ssize_t vrb_refuse(const struct vrb_ep *ep, size_t iov_cnt, uint64_t len, uint64_t flags);
/* The device has refused requests that were kept (vrb_kind.hold). Their calls have succeeded, so the connection ends,
 * and all that is outstanding with it. Lock held. */
void vrb_held_refused(struct vrb_ep *ep);
/* The device has refused wr with ret, which is not 0. If others follow wr, they were kept: vrb_held_refused(). Returns
 * the -FI_E* of the call. Lock held. */
ssize_t vrb_post_failed(struct vrb_ep *ep, const struct ibv_send_wr *wr, int ret);
/* A receive cannot be posted, now or at all: the reason as -FI_E*. */
ssize_t vrb_refuse_rx(const struct vrb_ep *ep);
/* Post the marker, a write of no bytes that is no operation. Its completion tells that all requests before it have
 * ended, including unsignaled ones. In the error state it is the last request; before, it asks whether the peer is
 * there. False: the device has refused it. Lock held. */
bool vrb_post_marker(struct vrb_ep *ep);
/* End all outstanding operations whose completion queue is broken with err and why: the hardware will not report them.
 * The caller has set a state in which no receive can be posted. Lock held. */
void vrb_work_lost(struct vrb_ep *ep, int err, const char *why);
/* Complete all outstanding requests and receives with err and why, whatever the state of their queue. A completion that
 * the device reports for one of them afterwards is ignored; it refers to ep, ep->tx and ep->rx_pool. Lock held. */
void vrb_requests_lost(struct vrb_ep *ep, int err, const char *why);
/* Process one work completion. taker: a read that takes its entry, unless there has been an error; or NULL. Lock
 * held. */
void vrb_work_done(const struct ibv_wc *wc, struct fab_cq_taker *taker);

#endif
