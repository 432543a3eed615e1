/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations, from a data call to the provider below. Conventions: rxm.h.
 */
#ifndef RXM_TX_H
#define RXM_TX_H

#include "rxm/objects.h"

/* ---- tx.c: lock held ---- */

/* Take a new entry without a packet, zeroed as far as struct rxm_tx says. The caller owns it until it is started,
 * submitted or freed. NULL: no memory. */
struct rxm_tx *rxm_tx_new(struct rxm_ep *ep, enum rxm_tx_what what);
/* Give an entry a packet. Its headers have type and op and are zero otherwise; behind them is room for len bytes,
 * contents undefined. False: no memory; the caller still owns the entry. */
bool rxm_tx_packet(struct rxm_ep *ep, struct rxm_tx *tx, enum rxm_type type, enum rxm_op op, size_t len);
/* Free an entry that is in no list, with everything that it owns. done() is not called. */
void rxm_tx_free(struct rxm_ep *ep, struct rxm_tx *tx);
/* Queue an entry, which the connection owns from then on, and send from the queues as much as possible. The entry may
 * have ended and been freed on return. */
void rxm_tx_start(struct rxm_conn *conn, struct rxm_tx *tx);
/* True if an entry is queued that the provider below has not taken yet. */
static inline bool rxm_tx_waits(const struct rxm_conn *conn)
{
	return !fab_list_empty(&conn->txq) || !fab_list_empty(&conn->answerq) || !fab_list_empty(&conn->ctlq);
}
/* Send from the queues as much as credit and the provider below allow. Does nothing when called from inside of
 * itself. */
void rxm_tx_run_queues(struct rxm_conn *conn);
/* The same, fast where nothing is queued. */
static inline void rxm_tx_run(struct rxm_conn *conn)
{
	if (rxm_tx_waits(conn) || !fab_list_empty(&conn->held))
		rxm_tx_run_queues(conn);
}
/* The provider below has completed the operation, with err (0: success) and its text (may be NULL). The entry ends,
 * waits for the peer's answer, or goes on with its next part. The caller must not use it afterwards. */
void rxm_tx_below_done(struct rxm_tx *tx, int err, const char *text);
/* Find our request by the number that a peer's answer names. If the answer is of the right type, the caller ends the
 * request by rxm_tx_answered() or rxm_tx_told(). NULL: no such request is outstanding, so the peer broke the
 * protocol. */
struct rxm_tx *rxm_tx_asked(struct rxm_conn *conn, uint64_t msg_id);
/* A request has been answered: end it with err (0: success) and text, at once or when the provider below has completed
 * it. */
void rxm_tx_answered(struct rxm_tx *tx, int err, const char *text);
/* The same, with the err (0: success) that the peer sent; the text says that it was the peer. */
void rxm_tx_told(struct rxm_tx *tx, int err);
/* End all entries of a connection that is DOWN. The memory of those that the provider below still has is freed when
 * their completions have been read. */
void rxm_tx_fail_all(struct rxm_conn *conn, int err, const char *text);
/* End all entries of a list. The provider below has none of them. */
void rxm_tx_fail_list(struct fab_list *list, int err, const char *text);
/* Move the entries of a list that waited for this connection into its queue, and send as much as possible. */
void rxm_tx_adopt(struct rxm_conn *conn, struct fab_list *list);
/* Complete the operation of this context (or of this hook, if hooked) with FI_ECANCELED, if no part of it has left.
 * False: there is no such operation, or it has begun. */
bool rxm_tx_cancel(struct rxm_ep *ep, void *context, bool hooked);
/* True, with its tag, if the operation with this hook has been announced (rendezvous) and waits for the receiver. */
bool rxm_tx_announced(struct rxm_ep *ep, struct fab_hook *hook, uint64_t *tag);
/* End the messages of collectives in a queue, with err and text. */
void rxm_tx_fail_coll(struct fab_list *list, int err, const char *text);
/* Send an operation of the application, or queue it until it can be sent. rxm_peer_want() has returned 0. The call
 * takes over the entry, which may have ended and been freed on return. */
void rxm_tx_submit(struct rxm_peer *peer, struct rxm_tx *tx);
/* The same for an operation that must not be queued, because the application need not make progress for it. False: it
 * cannot leave now, and the caller frees the entry. */
bool rxm_tx_submit_now(struct rxm_peer *peer, struct rxm_tx *tx);
/* Complete an operation of the application, with err (0: success) and text. Most entries have this as done(). */
void rxm_app_done(struct rxm_tx *tx, int err, const char *text);
/* Make an entry for op, of len bytes, with the values for its completion. 0: the caller owns it, as after rxm_tx_new().
 * -FI_ENOMEM. */
int rxm_app_tx(struct rxm_ep *ep, const struct fab_op *op, size_t len, enum rxm_tx_what what, struct rxm_tx **tx);
/* Set the entry's local buffers: at most RXM_IOV_LIMIT, with our descriptors in desc, or NULL. Each gets a descriptor
 * of the provider below where that needs one: the caller's descriptor, or that of a registration for access, which
 * the entry owns. 0; RXM_UNPINNED: the caller frees the entry. */
int rxm_tx_local(struct rxm_ep *ep, struct rxm_tx *tx, const struct iovec *iov, void **desc, size_t cnt,
		 uint64_t access);

/* ---- submit.c ---- */

/* Carry out a send, RMA or atomic operation. No lock held. op and everything that it points to stay the caller's. 0:
 * the operation will complete; if it was injected without a completion, it has left already. -FI_E*: nothing was done,
 * and no completion follows. */
ssize_t rxm_submit(struct rxm_ep *ep, const struct fab_op *op);
/* The same with the lock held. An operation with FI_TRIGGER releases the lock and takes it again. */
int rxm_submit_locked(struct fab_ep *ep, const struct fab_op *op);
/* The value of rxm_op_hdr.op in the packets of a send. */
enum rxm_op rxm_op_of(const struct fab_op *op);
/* Post a receive, or search the unexpected messages (FI_PEEK, FI_CLAIM). No lock held. Returns as rxm_submit(). */
ssize_t rxm_post_recv(struct rxm_ep *ep, const struct fab_op *op);
/* Make an entry for a read or write, whose iov has len bytes (rma.c). Lock held. 0: the caller submits it. -FI_EINVAL,
 * -FI_ENOMEM, or the error of a registration below: there is no entry. */
int rxm_rma_make(struct rxm_ep *ep, const struct fab_op *op, size_t len, struct rxm_tx **tx);
/* The same for an atomic (atomic.c). */
int rxm_atomic_make(struct rxm_ep *ep, const struct fab_op *op, size_t len, struct rxm_tx **tx);

#endif
