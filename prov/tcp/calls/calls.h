/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls: operation tables (ops.c), and the way from a call to the send queue (submit.c).
 */
#ifndef TCP_CALLS_H
#define TCP_CALLS_H

#include "tcp/stream/stream.h"

struct fab_calls;

extern struct fi_ops_msg tcp_msg_ops;
extern struct fi_ops_tagged tcp_tagged_ops;
extern struct fi_ops_rma tcp_rma_ops;
extern struct fi_ops_atomic tcp_atomic_ops;
extern const struct fab_calls *const tcp_calls;	/* the functions behind the tables; for deferred work */
/* Fill the empty entries of the operation tables. Called once, when the provider is loaded. */
void tcp_data_fill_ops(void);
/* fi_query_atomic(3): 0, -FI_EOPNOTSUPP, -FI_EINVAL, -FI_EBADFLAGS. */
int tcp_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);

/*
 * Start a send, tagged send, remote access or atomic (op->code below FAB_OP_RECV). Takes and releases the engine lock.
 * 0: exactly one completion will follow, or none if none was asked for. -FI_EAGAIN: a queue is full; call again after
 * reading completions. -FI_EINVAL, -FI_EMSGSIZE, -FI_ENOTCONN, -FI_EOPBADSTATE, or the reason why the peer cannot be
 * reached: nothing was done.
 */
ssize_t tcp_submit(struct tcp_ep *ep, const struct fab_op *op);
/* The same with the lock held. For an operation with FI_TRIGGER it is released and taken again. Must not be called from
 * a completion. */
int tcp_submit_locked(struct fab_ep *ep, const struct fab_op *op);
/* Cancel an operation by its context. It completes at once if none of its bytes was sent. For an announced message the
 * peer is asked to forget it; it then completes as cancelled, or as sent if a receive has taken it. True if there was
 * such an operation. Lock held. */
bool tcp_tx_cancel(struct tcp_ep *ep, struct tcp_conn *conn, void *context);
bool tcp_tx_cancel_coll(struct tcp_ep *ep, struct tcp_conn *conn, void *hook);	/* the same for an operation of a
										 * collective */

#endif
