/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ofi_rxm: FI_EP_RDM endpoints over the FI_EP_MSG endpoints of another provider, "tcp;ofi_rxm" and "verbs;ofi_rxm". It
 * reaches that provider, the one *below*, by the public interface only.
 *
 * An endpoint has one passive endpoint below, one event queue, one completion queue, and a connection (struct rxm_conn)
 * for each peer that it has to do with. The endpoint's engine reads both queues; all of it is guarded by the lock of
 * that engine, except what open fixes. The provider below never calls us, so its locks come after ours.
 *
 * Matching, completions, address vectors, counters and atomic arithmetic are prov/common's.
 */
#ifndef RXM_RXM_H
#define RXM_RXM_H

#include "rxm/objects.h"

/*
 * Of all that follows: "lock held" is that of the endpoint's engine. Lengths are bytes. err is a positive FI_E* and
 * why a sentence, both for the completions of what ends; texts are copied. A call that may end the connection leaves
 * it DOWN: its memory stays until the completion queue has been read (rxm_conn_reap), so that a caller may look at
 * conn->state and goes no further with it; its peer may be gone (conn->peer is NULL).
 */

/* ---- info.c, domain.c, ep.c: no lock held, unless they say so ---- */

/* fi_getinfo(3) of a provider. 0 with a list that the caller frees; -FI_ENODATA, reasons told to who asks for them;
 * -FI_ENOMEM. */
int rxm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
/* Turn an entry of the provider below into one of ours, in place. 0; -FI_ENOMEM: it is still the caller's to free, and
 * good for nothing else. */
int rxm_info_raise(struct fi_info *info);
/* What fi_match_* is told of entries over the provider of this name. */
struct fab_offer rxm_offer_over(const char *below);
/* The hints with which the provider below is asked for an endpoint that suits hints, which may be NULL; the caller
 * frees them. NULL: no memory. */
struct fi_info *rxm_below_hints(const char *below, const struct fi_info *hints);
/* fi_fabric(3): 0, or -FI_E* with nothing left to undo, logged unless it is -FI_ENOMEM. */
int rxm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
/* fi_endpoint(3), likewise. */
int rxm_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
/* Fill the empty slots of the tables of fabric and domain, and of endpoints: once, at load. */
void rxm_fill_ops(void);
void rxm_ep_fill_ops(void);
/* What completes below cannot be told any more, for this reason (positive): all that is outstanding ends. Lock held. */
void rxm_ep_lost(struct rxm_ep *ep, int err);
/* fi_query_atomic(3). */
int rxm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);

static inline struct rxm_ep *rxm_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct rxm_ep, base);
}

/* Register len bytes at buf below, for access, with a key of our own. 0: the caller closes *mr when nothing below
 * uses it any more; -FI_E* of below. Any thread, with or without a lock of an engine. */
int rxm_reg(struct rxm_domain *domain, const void *buf, size_t len, uint64_t access, struct fid_mr **mr);
/* The descriptor of the provider below for one of ours, or NULL. */
static inline void *rxm_desc_below(void *desc)
{
	return desc ? fi_mr_desc(desc) : NULL;
}

/* ---- bufs.c: lock held, or nobody else knows of them yet or any more ---- */

/* None at first, of size bytes behind a packet's headers; below as in struct rxm_bufs. Cannot fail. */
void rxm_bufs_init(struct rxm_bufs *bufs, struct fid_domain *below, size_t size);
/* All are back: free the memory. */
void rxm_bufs_fini(struct rxm_bufs *bufs);
/* Add some. False: no memory, or it cannot be registered. */
bool rxm_bufs_grow(struct rxm_bufs *bufs);
/* One, contents undefined, which is the caller's until rxm_buf_put(). NULL: as above. */
static inline struct rxm_buf *rxm_buf_get(struct rxm_bufs *bufs)
{
	struct rxm_buf *buf;

	if (__builtin_expect(!bufs->free, 0) && !rxm_bufs_grow(bufs))
		return NULL;
	buf = bufs->free;
	bufs->free = buf->next;
	return buf;
}
static inline void rxm_buf_put(struct rxm_bufs *bufs, struct rxm_buf *buf)
{
	buf->next = bufs->free;
	bufs->free = buf;
}
/* One piece of zeroed memory for cnt buffers of size bytes, registered if below is not NULL; the caller's to free.
 * NULL: no memory, or it cannot be registered. */
struct rxm_chunk *rxm_chunk_alloc(struct fid_domain *below, size_t size, size_t cnt);
/* Nothing below uses it any more. NULL is allowed. */
void rxm_chunk_free(struct rxm_chunk *chunk);
/* Where it begins; and its descriptor for the provider below, NULL if it is not registered. */
uint8_t *rxm_chunk_mem(struct rxm_chunk *chunk);
void *rxm_chunk_desc(struct rxm_chunk *chunk);

/* ---- poller.c ---- */

/* The poller of an engine, and one user more or less of it; the last who leaves closes it, and has ended its
 * connections before. 0: the caller owes a put; -FI_E* of opening queues below. No lock held. */
int rxm_poller_get(struct rxm_domain *domain, struct fab_engine *engine, struct rxm_poller **poller);
void rxm_poller_put(struct rxm_domain *domain, struct rxm_poller *poller);
/* From here on: lock held. Any of them may end any connection. */

/* Take what there is, within bounds. True if there was anything: there may be more. */
bool rxm_poller_run(struct rxm_poller *poller);
/* The same, after waiting for something to come, for so long at most and without giving the lock up: for closing. */
void rxm_poller_wait(struct rxm_poller *poller, int timeout_ms);
/* Connections have ended: read what is behind them in the queue, until none of them is left. Not from within a pass. */
void rxm_poller_settle(struct rxm_poller *poller);

/* ---- conn.c, peer.c: lock held ---- */

/* The peer behind fi_addr, made if need be. 0; -FI_EINVAL: no such address, logged; -FI_ENOMEM. */
int rxm_peer_add(struct rxm_ep *ep, fi_addr_t fi_addr, struct rxm_peer **peer);
static inline int rxm_peer_get(struct rxm_ep *ep, fi_addr_t fi_addr, struct rxm_peer **peer)
{
	if (__builtin_expect(fi_addr >= ep->by_addr_cnt || !ep->by_addr[fi_addr], 0))
		return rxm_peer_add(ep, fi_addr, peer);
	*peer = ep->by_addr[fi_addr];
	return 0;
}
/* May operations be queued for it? Starts to connect if it must. 0: rxm_tx_submit() takes them; -FI_E*: why it cannot
 * be reached, which is what the call returns. */
int rxm_peer_connect(struct rxm_peer *peer);
static inline int rxm_peer_want(struct rxm_peer *peer)
{
	return __builtin_expect(!peer->conn, 0) ? rxm_peer_connect(peer) : 0;
}
/* The peer with this address, made if need be, which who has found no use for it gives to rxm_peer_put(). NULL: no
 * memory. */
struct rxm_peer *rxm_peer_of(struct rxm_ep *ep, const union fab_sockaddr *addr);
/* Forget it, if there is nothing to know of it: no connection, no place in the address vector, nothing that waits. The
 * caller does not touch it any more. */
void rxm_peer_put(struct rxm_peer *peer);
/* Its connection has ended; what waits for one ends too. Perhaps forgets it. */
void rxm_peer_lost(struct rxm_peer *peer, int err, const char *why);
/* An attempt has failed, but another may do better: try again after a pause, if something waits for a connection. After
 * too long what waits fails with err and why. Perhaps forgets it. */
void rxm_peer_again(struct rxm_peer *peer, int err, const char *why);
/* Connect to it: peer->conn is there then. 0, or -FI_E*, logged: it is not, and what waits is the caller's to end. */
int rxm_conn_start(struct rxm_peer *peer);
/* Look after the deadlines of connections that are being made. */
void rxm_conn_watch(struct rxm_ep *ep);
/* Why an operation to the peer fails, as its completion tells: its address, what happened, and what the provider below
 * or the peer said of it, which may be NULL. */
void rxm_peer_why(const struct rxm_peer *peer, const char *what, const char *said, char text[RXM_WHY]);
/* End a connection without a word to its peer's operations that wait for one; what hangs on it ends with why, behind
 * the peer's address. Idempotent. */
void rxm_conn_end(struct rxm_conn *conn, int err, const char *why);
/* The endpoint is lost: what is outstanding to all of them ends. */
void rxm_peers_lost(struct rxm_ep *ep, int err);
/* The table of peers, and watching the address vector; no lock held. 0, or -FI_ENOMEM with nothing to undo. */
int rxm_peers_open(struct rxm_ep *ep);
/* All connections end, all peers go; the caller has stopped watching the vector. The memory of connections goes when
 * the queue has been read: rxm_poller_settle(). */
void rxm_peers_close(struct rxm_ep *ep);
/* Read one event of the queue below, and act on it, which may end connections and make others. False: there is none, or
 * poller->ending stands before it, for which the completion queue is to be read. */
bool rxm_conn_event(struct rxm_poller *poller);
/* The completion queue has been read empty: end poller->ending. False: there is none. */
bool rxm_conn_ended(struct rxm_poller *poller);
/* The connection is no good any more: log why, end what hangs on it. Idempotent. */
void rxm_conn_fail(struct rxm_conn *conn, int err, const char *why);
/* A peer broke the rules. */
void rxm_conn_broken(struct rxm_conn *conn, const char *what);
/* Give buffers of connections that are gone back; the completion queue has been read empty since they went. */
void rxm_conn_reap(struct rxm_poller *poller);

/* ---- tx.c: lock held ---- */

/* A new entry, zeroed as far as struct rxm_tx says, without a packet; the caller's until it is started, submitted or
 * freed. NULL: no memory. */
struct rxm_tx *rxm_tx_new(struct rxm_ep *ep, enum rxm_tx_what what);
/* Give it a packet with type and op in its headers, else zero, and room for len bytes behind them, contents undefined.
 * False: no memory; the entry is still the caller's. */
bool rxm_tx_packet(struct rxm_ep *ep, struct rxm_tx *tx, enum rxm_type type, enum rxm_op op, size_t len);
/* Free what is in no list, with all that it owns; nobody is told. */
void rxm_tx_free(struct rxm_ep *ep, struct rxm_tx *tx);
/* Queue it, which takes it over, and send what can be sent. It may be over, and freed, on return. */
void rxm_tx_start(struct rxm_conn *conn, struct rxm_tx *tx);
/* Does anything wait to leave? */
static inline bool rxm_tx_waits(const struct rxm_conn *conn)
{
	return !fab_list_empty(&conn->txq) || !fab_list_empty(&conn->answerq) || !fab_list_empty(&conn->ctlq);
}
/* Send what can be sent; from within itself, nothing. */
void rxm_tx_run_queues(struct rxm_conn *conn);
static inline void rxm_tx_run(struct rxm_conn *conn)
{
	if (rxm_tx_waits(conn) || !fab_list_empty(&conn->held))
		rxm_tx_run_queues(conn);
}
/* The provider below is done with it, well or with err and what it said (or NULL). It ends, waits for its answer, or
 * goes on with its next part: the caller does not touch it any more. */
void rxm_tx_below_done(struct rxm_tx *tx, int err, const char *text);
/* Our request msg_id, as a peer's answer names it, which the caller ends by one of the next two if the answer is good
 * for it. NULL: there is none, or none any more: a peer that answers such a one breaks the rules. */
struct rxm_tx *rxm_tx_asked(struct rxm_conn *conn, uint64_t msg_id);
/* It has been answered: end it, now or once the provider below is done with it. */
void rxm_tx_answered(struct rxm_tx *tx, int err, const char *text);
/* The same, where it was the peer that said so; err may be 0. */
void rxm_tx_told(struct rxm_tx *tx, int err);
/* End all of a connection that is DOWN; the memory of what is flying stays until its completion has been read. */
void rxm_tx_fail_all(struct rxm_conn *conn, int err, const char *text);
/* End all that is in a list, none of it flying. */
void rxm_tx_fail_list(struct fab_list *list, int err, const char *text);
/* What has waited in list for this connection goes by it. */
void rxm_tx_adopt(struct rxm_conn *conn, struct fab_list *list);
/* Copy bytes [at, at + len) of iov. */
void rxm_gather(uint8_t *to, const struct iovec *iov, size_t at, size_t len);
/* Complete an operation with this context, or hook, as cancelled, if it has not begun. False: it has, or is over. */
bool rxm_tx_cancel(struct rxm_ep *ep, void *context, bool hooked);
/* Has the operation with this hook been announced, and waits for its receiver? Then its tag. */
bool rxm_tx_announced(struct rxm_ep *ep, struct fab_hook *hook, uint64_t *tag);
/* End what belongs to collectives in a queue. */
void rxm_tx_fail_coll(struct fab_list *list, int err, const char *text);
/* An operation of the application, which has passed rxm_peer_want(): takes it over and sends it, or queues it until it
 * can be sent. It may be over, and freed, on return. */
void rxm_tx_submit(struct rxm_peer *peer, struct rxm_tx *tx);
/* The same of one that may not be queued, since nobody has to call again for it. False: it cannot leave now, and is the
 * caller's to free. */
bool rxm_tx_submit_now(struct rxm_peer *peer, struct rxm_tx *tx);
/* Complete an operation of the application; the done() of most. */
void rxm_app_done(struct rxm_tx *tx, int err, const char *text);
/* An entry for op, of so many bytes, with what its completion says. 0: the caller's, as by rxm_tx_new(); -FI_ENOMEM. */
int rxm_app_tx(struct rxm_ep *ep, const struct fab_op *op, size_t len, enum rxm_tx_what what, struct rxm_tx **tx);
/* Describe a vector of at most RXM_IOV_LIMIT buffers, desc of ours or NULL, to the provider below: by its
 * descriptors, or by registrations for access, which are the entry's. 0, or -FI_E*: the entry is the caller's to
 * free. */
int rxm_tx_local(struct rxm_ep *ep, struct rxm_tx *tx, const struct iovec *iov, void **desc, size_t cnt,
		 uint64_t access);

/* ---- submit.c ---- */

/* Carry out a send, remote access or atomic. No lock held; op and all behind it are the caller's. 0: it will complete,
 * and has left if it was injected without a completion; -FI_E*: it will not, and nothing of it is left. */
ssize_t rxm_submit(struct rxm_ep *ep, const struct fab_op *op);
/* The same with the lock held, which an operation with FI_TRIGGER drops and takes again. */
int rxm_submit_locked(struct fab_ep *ep, const struct fab_op *op);
/* What a packet says that it has of this operation, a send. */
enum rxm_op rxm_op_of(const struct fab_op *op);
/* Post a receive, or look for what waits (FI_PEEK, FI_CLAIM), likewise. */
ssize_t rxm_post_recv(struct rxm_ep *ep, const struct fab_op *op);
/* rma.c, atomic.c: parts of it, lock held: an entry for op, whose iov is len bytes. 0: the caller submits it;
 * -FI_EINVAL, -FI_ENOMEM or what below says of registrations: there is none. */
int rxm_rma_make(struct rxm_ep *ep, const struct fab_op *op, size_t len, struct rxm_tx **tx);
int rxm_atomic_make(struct rxm_ep *ep, const struct fab_op *op, size_t len, struct rxm_tx **tx);

/* ---- rx.c: lock held ---- */

/* A packet has come, len bytes, or is still behind others: providers keep the order in which messages fill receives,
 * not the order in which they say so (tcp announces what it has no credit for). */
void rxm_rx_packet(struct rxm_rx *rx, size_t len);
/* Likewise a tagged message that is no packet: upstream over tcp lets that carry tag and data of those that fit into
 * one. */
void rxm_rx_bare(struct rxm_rx *rx, const struct fi_cq_tagged_entry *entry);
/* Deal with what has come, as far as it follows what was dealt with. Before the peer's end of the handshake, which
 * may come later, nothing is. */
void rxm_rx_resume(struct rxm_conn *conn);
/* The connection ends although that has not come: a peer may have said all it had to say, and gone. May end it
 * itself. */
void rxm_rx_last_words(struct rxm_conn *conn);
/* Give a new connection buffers, and post them. 0, or -FI_E* of memory or below: what was posted is taken back by
 * closing the endpoint below, and the buffers go with the connection. */
int rxm_rx_post_all(struct rxm_conn *conn);
/* The connection has ended: receives that it was filling end with err, messages that are whole wait on. */
void rxm_rx_fail_all(struct rxm_conn *conn, int err, const char *text);
/* Who listens at addr, which is peer if that is not NULL, is known as fi_addr from now on. */
void rxm_rx_name(struct rxm_ep *ep, struct rxm_peer *peer, const union fab_sockaddr *addr, fi_addr_t fi_addr);
/* A peer without our additions has written, with data for the completion queue; ctx is that of the entry, or NULL. */
void rxm_rx_remote_write(struct rxm_poller *poller, struct rxm_ctx *ctx, uint64_t data, size_t len);
/* A remote write of len bytes has ended here, with that data for the completion queue. */
void rxm_rx_written(struct rxm_ep *ep, uint64_t data, size_t len);
extern const struct fab_recv_ops rxm_recv_ops;
/* Answers have left: post what was held back for their sake. */
void rxm_rx_release_held(struct rxm_conn *conn);
static inline void rxm_rx_release(struct rxm_conn *conn)
{
	if (!fab_list_empty(&conn->held))
		rxm_rx_release_held(conn);
}
/* What a peer says is wrong, as an FI_E* (positive) or 0. */
int rxm_wire_err(uint64_t status);

/* rndv.c; len bytes are behind the headers of pkt, also in atomic.c: not checked yet. Each may end the connection. */

/* A receive of recv has taken an announced message, whose rndv has been checked: fetch it, answer request msg_id, and
 * finish the receive, now or later; nothing of rndv, into and msg is needed after the call. */
void rxm_rndv_take(struct rxm_conn *conn, struct fab_recv *recv, const struct rxm_rndv *rndv, uint64_t msg_id,
		   const struct fab_into *into, const struct fab_msg *msg);
/* An answer without payload to the peer's request msg_id, which ends well or with a positive FI_E*; the connection is
 * UP, and may end by it: a peer without our additions cannot be told of an error in another way. */
void rxm_answer(struct rxm_conn *conn, enum rxm_type type, uint64_t msg_id, int err);
/* Make op's announcement of a new entry. 0, or -FI_ENOMEM or what below says of registrations: the entry is the
 * caller's to free. */
int rxm_rndv_make(struct rxm_ep *ep, const struct fab_op *op, struct rxm_tx *tx);
/* Let a message that was to go in a packet be announced. Likewise. */
int rxm_rndv_convert(struct rxm_ep *ep, struct rxm_tx *tx);
/* The peer says where what we announced is to be written to. */
void rxm_rndv_wr(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len);

/* ---- coll.c: lock held ---- */

extern const struct fab_coll_net rxm_coll_net;
/* A member says that its group has failed. May end the connection. */
void rxm_coll_aborted(struct rxm_conn *conn, const struct rxm_pkt *pkt);
/* Has a message come for a group that has failed, which its sender is told now? Drop it. */
bool rxm_coll_refuses(struct rxm_conn *conn, const struct fab_recv *recv, uint64_t tag);
/* There is no connection with this peer any more, or none can be made: groups that wait for it fail. */
void rxm_coll_lost(struct rxm_peer *peer, int err);
/* Does a group wait for a message of this peer? */
bool rxm_coll_waits(const struct rxm_peer *peer);
/* It is connected to, and has no collectives: what waited for that ends. */
void rxm_coll_purge(struct rxm_peer *peer);

/* atomic.c, lock held: a peer asks for an atomic, or answers one of ours. May end the connection. */
void rxm_atomic_req(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len);
void rxm_atomic_rsp(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len);

#endif
