/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ofi_rxm: FI_EP_RDM endpoints over the FI_EP_MSG endpoints of another provider, "tcp;ofi_rxm" and "verbs;ofi_rxm". It
 * reaches that provider, the one *below*, by the public interface only.
 *
 * An endpoint has one passive endpoint below, and a connection (struct rxm_conn) for each peer that it talks to. It
 * shares one event queue and one completion queue below with the other endpoints of its engine (struct rxm_poller). The
 * engine reads both, and its lock guards all state, except fields that do not change after open. The provider below
 * never calls us, so its locks may be taken while ours are held.
 *
 * Matching, completions, address vectors, counters and atomic arithmetic are those of prov/common.
 */
#ifndef RXM_RXM_H
#define RXM_RXM_H

#include <rdma/fi_domain.h>
#include "rxm/objects.h"

/*
 * Conventions of this header. "Lock held" means the lock of the endpoint's engine. Lengths are in bytes. err is a
 * positive FI_E*, and why or text a sentence; both go into the error completions of the operations that end. Texts are
 * copied. "May end the connection": the connection may be DOWN when the call returns. Its memory stays until the
 * completion queue has been read (rxm_conn_reap()), so the caller may read conn->state, but must not use the connection
 * otherwise. conn->peer is then NULL, and the peer may have been freed.
 */

/* ---- info.c, domain.c, ep.c: no lock held, unless they say so ---- */

/* The FI_MR_* bits of keys and addresses. */
#define MR_BASIC_BITS	(FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
/* fi_getinfo(3) of the provider. 0 with a list that the caller frees; -FI_ENODATA, with reasons reported if they are
 * wanted; -FI_ENOMEM. */
int rxm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
/* Turn an entry of the provider below into one of ours, in place. 0; or -FI_ENOMEM: the entry is then only good for
 * fi_freeinfo(), which the caller calls. */
int rxm_info_raise(struct fi_info *info);
/* The description of entries over the provider of this name, for the matcher (common/hints). */
struct fab_offer rxm_offer_over(const char *below);
/* Ask for memory of devices in hints for the provider below. */
void rxm_ask_hmem(struct fi_info *hints);
/* Make the hints that ask the provider below for MSG endpoints which serve an RDM endpoint of these hints (NULL: any).
 * The caller frees them. NULL: no memory. */
struct fi_info *rxm_below_hints(const char *below, const struct fi_info *hints);
/* fi_fabric(3). 0; or -FI_E* with nothing left to undo, logged unless it is -FI_ENOMEM. */
int rxm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
/* fi_endpoint(3): the domain's ep_init. */
fab_ep_init_fn rxm_ep_init;
/* Fill the empty slots of the operation tables of fabric and domain. Called once, at load. */
void rxm_fill_ops(void);
/* The same for the tables of endpoints. */
void rxm_ep_fill_ops(void);
/* A queue below has failed with err, so that nothing can be read of it any more: end every outstanding operation of the
 * endpoint with err, and refuse requests of peers. Lock held. */
void rxm_ep_lost(struct rxm_ep *ep, int err);
/* fi_query_atomic(3). */
int rxm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);

/* The endpoint of a fid, which may be an alias. Any thread. */
static inline struct rxm_ep *rxm_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct rxm_ep, base);
}

/* ---- pins.c: registrations for operations whose buffers the application has not registered ---- */

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

/* ---- bufs.c: lock held, or no other thread can reach the object yet or any more ---- */

/* Make an empty pool of buffers, each with room for size bytes behind the headers of a packet. below is as in struct
 * rxm_bufs. Cannot fail. */
void rxm_bufs_init(struct rxm_bufs *bufs, struct fid_domain *below, size_t size);
/* Free the memory of all buffers. None may be in use. */
void rxm_bufs_fini(struct rxm_bufs *bufs);
/* Add one chunk of buffers. False: no memory, or it cannot be registered. */
bool rxm_bufs_grow(struct rxm_bufs *bufs);
/* Take a buffer, contents undefined; the caller owns it until rxm_buf_put(). NULL: no memory, or it cannot be
 * registered. */
static inline struct rxm_buf *rxm_buf_get(struct rxm_bufs *bufs)
{
	struct rxm_buf *buf;

	if (__builtin_expect(!bufs->free, 0) && !rxm_bufs_grow(bufs))
		return NULL;
	buf = bufs->free;
	bufs->free = buf->next;
	return buf;
}
/* Give a buffer back to the pool that it was taken from. */
static inline void rxm_buf_put(struct rxm_bufs *bufs, struct rxm_buf *buf)
{
	buf->next = bufs->free;
	bufs->free = buf;
}
/* Allocate cnt * size bytes of zeroed memory, registered with the domain below unless that is NULL. The caller frees
 * it. NULL: no memory, or it cannot be registered. */
struct rxm_chunk *rxm_chunk_alloc(struct fid_domain *below, size_t size, size_t cnt);
/* Free a chunk that no operation below uses any more. NULL is allowed. */
void rxm_chunk_free(struct rxm_chunk *chunk);
/* The first byte of the chunk's memory. */
uint8_t *rxm_chunk_mem(struct rxm_chunk *chunk);
/* The chunk's descriptor for the provider below; NULL if it is not registered. */
void *rxm_chunk_desc(struct rxm_chunk *chunk);

/* ---- poller.c ---- */

/* Take a reference to the poller of an engine, which is opened if there is none. 0: the caller calls rxm_poller_put()
 * later. -FI_E*: the queues below cannot be opened. No lock held. */
int rxm_poller_get(struct rxm_domain *domain, struct fab_engine *engine, struct rxm_poller **poller);
/* Give a reference back; the last one closes the poller. The caller has ended its own connections before. No lock
 * held. */
void rxm_poller_put(struct rxm_domain *domain, struct rxm_poller *poller);
/* From here on: lock held. Each call may end any connection. */

/* Process completions and events, up to a bound. True if there were any: there may be more. */
bool rxm_poller_run(struct rxm_poller *poller);
/* Wait up to timeout_ms until there is a completion or an event, without releasing the lock; then process them. For
 * closing. */
void rxm_poller_wait(struct rxm_poller *poller, int timeout_ms);
/* Connections have ended: read the completion queue until the memory of all of them can be freed, and free it. Not from
 * inside of a pass. */
void rxm_poller_settle(struct rxm_poller *poller);
/* A queue below, "completion" or "event", has failed with err: the endpoints of the poller are lost. Lock held. */
void rxm_poller_lose(struct rxm_poller *poller, const char *queue, int err);

/* ---- conn.c, peer.c: lock held ---- */

/* Find the peer of fi_addr, or make it. 0; -FI_EINVAL: the address vector has no such entry, logged; -FI_ENOMEM. */
int rxm_peer_add(struct rxm_ep *ep, fi_addr_t fi_addr, struct rxm_peer **peer);
/* The same, fast where the peer is known already. */
static inline int rxm_peer_get(struct rxm_ep *ep, fi_addr_t fi_addr, struct rxm_peer **peer)
{
	if (__builtin_expect(fi_addr >= ep->by_addr_cnt || !ep->by_addr[fi_addr], 0))
		return rxm_peer_add(ep, fi_addr, peer);
	*peer = ep->by_addr[fi_addr];
	return 0;
}
/* Start to connect to the peer if there is neither a connection nor an attempt. 0: rxm_tx_submit() may queue operations
 * for it. -FI_E*: why the peer cannot be reached; the data call returns this. */
int rxm_peer_connect(struct rxm_peer *peer);
/* The same, fast where there is a connection. */
static inline int rxm_peer_want(struct rxm_peer *peer)
{
	return __builtin_expect(!peer->conn, 0) ? rxm_peer_connect(peer) : 0;
}
/* Find the peer with this address, or make it. A caller that has no use for the peer after all calls rxm_peer_put().
 * NULL: no memory. */
struct rxm_peer *rxm_peer_of(struct rxm_ep *ep, const union fab_sockaddr *addr);
/* Free the peer if it has no connection, no entry in the address vector and no operation that waits. The caller must
 * not use it afterwards. */
void rxm_peer_put(struct rxm_peer *peer);
/* The peer's connection has ended: end the operations that wait for one with err and why. May free the peer. */
void rxm_peer_lost(struct rxm_peer *peer, int err, const char *why);
/* An attempt to connect has failed, and another may succeed: try again after a pause, if operations wait for a
 * connection. When the deadline has passed, end them with err and why instead. May free the peer. */
void rxm_peer_again(struct rxm_peer *peer, int err, const char *why);
/* Start a connection to the peer. 0: peer->conn is set. -FI_E*, logged: it is not, and the caller ends the operations
 * that wait. */
int rxm_conn_start(struct rxm_peer *peer);
/* Start the endpoint's timer for the deadlines of connections that are being made, unless it runs. */
void rxm_conn_watch(struct rxm_ep *ep);
/* Write the text of an error completion: the peer's address, what happened, and the words of the provider below or of
 * the peer (said, may be NULL). */
void rxm_peer_why(const struct rxm_peer *peer, const char *what, const char *said, char text[RXM_WHY]);
/* End a connection, and all its operations with err and a text of the peer's address and why. Operations that wait for
 * a connection with the same peer (peer->txq) go on waiting. Idempotent. */
void rxm_conn_end(struct rxm_conn *conn, int err, const char *why);
/* The completion queue below has failed: end all connections of the endpoint, and all operations that wait for one. */
void rxm_peers_lost(struct rxm_ep *ep, int err);
/* Make the endpoint's table of peers, and begin to watch the address vector. 0, or -FI_ENOMEM with nothing to undo. No
 * lock held. */
int rxm_peers_open(struct rxm_ep *ep);
/* End all connections and free all peers. The caller has stopped watching the address vector. The memory of the
 * connections is freed by rxm_poller_settle(), after the completion queue has been read. */
void rxm_peers_close(struct rxm_ep *ep);
/* Read one event of the event queue below and act on it; this may end connections and make others. False: there is no
 * event, or poller->ending must end first, for which the caller reads the completion queue. */
bool rxm_conn_event(struct rxm_poller *poller);
/* The completion queue has been read until it was empty: end the connection poller->ending, which there is. */
void rxm_conn_ended(struct rxm_poller *poller);
/* End a connection that has failed: log why, end all its operations, and those that wait for a connection with the same
 * peer unless another attempt is worth it. Idempotent. */
void rxm_conn_fail(struct rxm_conn *conn, int err, const char *why);
/* The peer has another record in the page of the process: write there what is known of the connection. */
void rxm_conn_tell_again(struct rxm_conn *conn);
/* The peer is in no address vector now, or in one: count the connection. */
void rxm_conn_set_stranger(struct rxm_conn *conn, bool stranger);
/* True if so much is kept for strangers, and this is one, that it gets no credit before receives have taken some. */
static inline bool rxm_strangers_have_enough(const struct rxm_conn *conn)
{
	return conn->stranger && conn->ep->stranger_len >= rxm_params.stranger_max;
}
/* End a connection where the peer broke the protocol: log what it did, as a warning, and end with FI_EPROTO. */
void rxm_conn_broken(struct rxm_conn *conn, const char *what);
/* Free the memory of connections that are DOWN. The completion queue has been read until it was empty since they went
 * DOWN. */
void rxm_conn_reap(struct rxm_poller *poller);

/* ---- survey.c: lock held ---- */

/* The endpoint is enabled: name it in the page of the process (common/stats), and look through what is pending from now
 * on, until fab_survey_del(). */
void rxm_survey_start(struct rxm_ep *ep);
/* The kind of an operation in that page. */
static inline enum fi_stats_peer_kind rxm_kind_of(const struct rxm_tx *app)
{
	return app->code <= FAB_OP_CSEND ? FI_STATS_PEER_MESSAGE : FI_STATS_PEER_ACCESS;
}

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

/* ---- rx.c: lock held ---- */

/* A receive below has completed with a packet of len bytes. The packet is processed as soon as all earlier ones have
 * been: a provider fills receives in the order of the messages, but may complete them in another order (tcp does, for
 * messages that it announces for lack of credit). May end the connection. */
void rxm_rx_packet(struct rxm_rx *rx, size_t len);
/* The same for a tagged message without a packet. Upstream over tcp sends small messages so, with tag and data in tcp's
 * own header. */
void rxm_rx_bare(struct rxm_rx *rx, const struct fi_cq_tagged_entry *entry);
/* Process the packets that have arrived, in order, up to the first that is missing. Nothing is processed before the
 * handshake is complete, which may be read later than packets. May end the connection. */
void rxm_rx_resume(struct rxm_conn *conn);
/* The connection is about to end before the handshake was complete: process the packets that have arrived, since the
 * peer may have sent all it had to send, and closed. May end the connection. */
void rxm_rx_last_words(struct rxm_conn *conn);
/* Allocate the packet buffers of a new connection and post them below. 0, or -FI_E*. After an error the caller closes
 * the endpoint below, which takes back the buffers that were posted; their memory is freed with the connection. */
int rxm_rx_post_all(struct rxm_conn *conn);
/* The connection has ended: end the receives that it was filling with err and text. Unexpected messages that are
 * complete stay (ep->orphans); others are dropped. */
void rxm_rx_fail_all(struct rxm_conn *conn, int err, const char *text);
/* The address vector now has addr as fi_addr (FI_ADDR_NOTAVAIL: no longer): set this as the source of unexpected
 * messages from there, and let receives take them that were posted for it before. peer is the peer of addr, or NULL. */
void rxm_rx_name(struct rxm_ep *ep, struct rxm_peer *peer, const union fab_sockaddr *addr, fi_addr_t fi_addr);
/* The completion queue below has an entry for a remote write of len bytes with data, by a peer without our additions.
 * ctx is the context of that entry, or NULL. */
void rxm_rx_remote_write(struct rxm_poller *poller, struct rxm_ctx *ctx, uint64_t data, size_t len);
/* Complete a remote write of len bytes with data, at its target. */
void rxm_rx_written(struct rxm_ep *ep, struct fi_stats_peer *stats, uint64_t data, size_t len);
/* The slots of struct fab_recv_ops for unexpected messages, called by common/receive: kept.c. */
bool rxm_kept_take(struct fab_recv *recv, struct fab_kept *kept);
void rxm_kept_drop(struct fab_recv *recv, struct fab_kept *kept);
static const struct fab_recv_ops rxm_recv_ops = {
	.iov_max = RXM_IOV_LIMIT,
	.iov_own = RXM_IOV_LIMIT,
	.keeps_desc = true,
	.take = rxm_kept_take,
	.drop = rxm_kept_drop,
};
/* fab_rx_finish() of a message that came to the endpoint. */
void rxm_rx_finish(struct rxm_ep *ep, struct fi_stats_peer *stats, const struct fab_into *into,
		   const struct fab_msg *msg,
		   const struct fab_cq_fail *fail);
/* Post again the packet buffers that were held back because too many answers were queued, as far as enough answers have
 * left. May end the connection. */
void rxm_rx_release_held(struct rxm_conn *conn);
/* The same, fast where none are held back. */
static inline void rxm_rx_release(struct rxm_conn *conn)
{
	if (!fab_list_empty(&conn->held))
		rxm_rx_release_held(conn);
}
/* The status in a peer's packet as a positive FI_E*, or 0; a value out of range becomes FI_EIO. */
int rxm_wire_err(uint64_t status);

/* ---- srx.c: lock held, except in open and close ---- */

/* Open the shared receives of a new poller, if the provider below has what they need and FI_OFI_RXM_USE_SRX permits;
 * poller->srx tells. */
void rxm_srx_open(struct rxm_domain *domain, struct rxm_poller *poller);
/* Free them. No connection uses them. */
void rxm_srx_close(struct rxm_poller *poller);
/* A connection will use them: make sure that there are some. 0 or -FI_E*. */
int rxm_srx_join(struct rxm_conn *conn);
/* More than half of the shared receives were in use: double them, if that is useful. */
void rxm_srx_enlarge(struct rxm_poller *poller);
/* Post a shared receive again, which is in no list. */
void rxm_srx_repost(struct rxm_poller *poller, struct rxm_rx *rx);
/* A connection has ended: post those again that it has. */
void rxm_srx_return(struct rxm_conn *conn);

/* ---- rndv.c: lock held; each may end the connection. len is the number of bytes behind the headers of pkt, and not
 * checked yet (so in atomic.c) ---- */

/* A receive has matched an announced message, whose rndv has been checked: fetch the message, answer the peer's
 * request msg_id, and finish the receive, now or later. rndv, into and msg are copied. */
void rxm_rndv_take(struct rxm_conn *conn, const struct rxm_rndv *rndv, uint64_t msg_id, const struct fab_into *into,
		   const struct fab_msg *msg);
/* True for an entry that fetches an announced message, whose msg and msg_id it has. */
bool rxm_rndv_fetches(const struct rxm_tx *tx);
/* Answer the peer's request msg_id, without payload, with err (0: success). The connection is UP. An error ends the
 * connection if the peer is without our additions: its packets have no field for an error. */
void rxm_answer(struct rxm_conn *conn, enum rxm_type type, uint64_t msg_id, int err);
/* Make a new entry the announcement of op. 0; or -FI_ENOMEM, or the error of a registration below: the caller frees the
 * entry. */
int rxm_rndv_make(struct rxm_ep *ep, const struct fab_op *op, struct rxm_tx *tx);
/* Turn an eager message that has not left into an announcement. Returns as rxm_rndv_make(). */
int rxm_rndv_convert(struct rxm_ep *ep, struct rxm_tx *tx);
/* RNDV_WR: the peer says where to write a message that we announced. */
void rxm_rndv_wr(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len);

/* ---- fetch.c ---- */

/* Read an announced message into the buffers of its receive; tx has rma, into, and done. 0: done() will be called.
 * -FI_E*: the caller frees tx. Lock held. */
int rxm_fetch_start(struct rxm_conn *conn, struct rxm_tx *tx);
/* rxm_poller.after. */
void rxm_fetch_after(struct fab_signal *signal);
/* Have after() called when the lock is released. Lock held. */
static inline void rxm_poller_after(struct rxm_poller *poller)
{
	if (fab_list_empty(&poller->after.link))
		fab_list_add_tail(&poller->engine->signals, &poller->after.link);
}

/* ---- coll.c: lock held ---- */

/* How the collectives of prov/common send and receive over rxm. */
extern const struct fab_coll_net rxm_coll_net;
/* COLL_ABORT: a member says that its group has failed, or that it has left it. May end the connection. */
void rxm_coll_aborted(struct rxm_conn *conn, const struct rxm_pkt *pkt);
/* True if a message is for a group that has failed; its sender is told so, and the caller drops the
 * message. */
bool rxm_coll_refuses(struct rxm_conn *conn, const struct fab_msg *msg);
/* The connection with this peer has ended, or none can be made: groups that wait for the peer fail with err. */
void rxm_coll_lost(struct rxm_peer *peer, int err);
/* A connection is up. */
void rxm_coll_met(const struct rxm_conn *conn);
/* True if a group waits for a message from this peer. */
bool rxm_coll_waits(const struct rxm_peer *peer);
/* The peer is connected, and turns out to have no collectives: end the messages of collectives that waited for the
 * connection. */
void rxm_coll_purge(struct rxm_peer *peer);

/* ---- atomic.c: lock held ---- */

/* ATOMIC: carry out a peer's atomic, and answer it. May end the connection. */
void rxm_atomic_req(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len);
/* ATOMIC_RSP: the answer to one of our atomics. May end the connection. */
void rxm_atomic_rsp(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len);

#endif
