/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls: from the tables that a program's calls go through (ops.c) to the send queue (submit.c).
 */
#ifndef TCP_CALLS_H
#define TCP_CALLS_H

#include "tcp/stream/stream.h"

struct fab_calls;

extern struct fi_ops_msg tcp_msg_ops;
extern struct fi_ops_tagged tcp_tagged_ops;
extern struct fi_ops_rma tcp_rma_ops;
extern struct fi_ops_atomic tcp_atomic_ops;
extern const struct fab_calls *const tcp_calls;	/* those that the tables end in; for deferred work */
/* Fill their empty slots; once, at initialisation. */
void tcp_data_fill_ops(void);
/* fi_query_atomic(3): 0, -FI_EOPNOTSUPP, -FI_EINVAL, -FI_EBADFLAGS. */
int tcp_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);

/*
 * The one way in for sends, tagged sends, remote access and atomics (op->code below FAB_OP_RECV). Takes and drops the
 * engine lock. 0: exactly one completion will follow (or none if not asked for); -FI_EAGAIN: queue full, call again
 * after reading completions; -FI_EINVAL, -FI_EMSGSIZE, -FI_ENOTCONN, -FI_EOPBADSTATE, or why the peer cannot be
 * reached: nothing was done.
 */
ssize_t tcp_submit(struct tcp_ep *ep, const struct fab_op *op);
/* The same with the lock held, which an operation with FI_TRIGGER drops and takes again. Not from within a
 * completion. */
int tcp_submit_locked(struct fab_ep *ep, const struct fab_op *op);
/* Cancel an operation by its context: at once if none of its bytes has left; an announced message is asked back from
 * the peer, and completes as cancelled, or as sent if a receive had taken it. True if found. Lock held. */
bool tcp_tx_cancel(struct tcp_ep *ep, struct tcp_conn *conn, void *context);
bool tcp_tx_cancel_coll(struct tcp_ep *ep, struct tcp_conn *conn, void *hook);	/* the same of a collective's */

#endif
