/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints, and plain messages between them - fi_endpoint(3), fi_msg(3).
 *
 * From an entry of fi_getinfo() to a message: fi_endpoint(), fi_ep_bind() of a completion queue and, without
 * connection, of an address vector, fi_enable() (or fi_connect() and fi_accept() of fi_cm.h), then receives and sends.
 * Calls that open, bind and set options are control calls: any thread. Transfers, here and in fi_tagged.h, fi_rma.h,
 * fi_atomic.h and fi_collective.h: as the domain's enum fi_threading says.
 *
 * What holds for every transfer:
 *   - 0: it has been started, and ends in exactly one completion: an entry of the completion queue where one was asked
 *     for or it failed, a step of the counters. Until then its buffers belong to the provider; with FI_INJECT those
 *     that are only read are the caller's again at once. iovec, desc and message structs may go at once (but see
 *     FI_ASYNC_IOV).
 *   - -FI_EAGAIN: not started, the queue is full or a connection is being made. Read the completion queue, then call
 *     again. -FI_EOPBADSTATE: not enabled. -FI_EMSGSIZE: too long, or too many elements. Other errors: not started
 *     either.
 *   - context comes back as the completion's op_context, and tells fi_cancel() which operation is meant; it points to a
 *     struct fi_context where the mode says so.
 *   - desc is fi_mr_desc() of the buffer, one for each element of an iovec; NULL where mr_mode asks for no
 *     registration.
 *   - Peers are fi_addr_t of the endpoint's address vector; a connected endpoint does not look at them.
 *   - Calls without flags use op_flags of the endpoint; flags of a call replace them.
 *   - The calls with inject never report success to a completion queue, and do not need the buffer after they return.
 */
#ifndef FI_ENDPOINT_H
#define FI_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fi_ops_cm;
struct fi_ops_rma;
struct fi_ops_tagged;
struct fi_ops_atomic;
struct fi_ops_collective;

/* Levels of options. */
enum {
	FI_OPT_ENDPOINT,
};

/* Options of that level, and their type. Set them before fi_enable(). Those with MAX and INJECT, in 2.0 and later,
 * narrow what an endpoint has to be able to do below its attributes, kind by kind. */
enum {
	FI_OPT_MIN_MULTI_RECV,		/* size_t: an FI_MULTI_RECV buffer with less room left is used up */
	FI_OPT_CM_DATA_SIZE,		/* size_t, to read: bytes that fi_connect(), fi_accept(), fi_reject() carry */
	FI_OPT_BUFFERED_MIN,		/* size_t, 1.x: of FI_BUFFERED_RECV, bytes that come with the news of one */
	FI_OPT_BUFFERED_LIMIT,		/* size_t, 1.x: of FI_BUFFERED_RECV, longest message that comes whole */
	FI_OPT_SEND_BUF_SIZE,		/* size_t: bytes the provider buffers */
	FI_OPT_RECV_BUF_SIZE,
	FI_OPT_TX_SIZE,			/* size_t: tx_attr::size, rx_attr::size */
	FI_OPT_RX_SIZE,
	FI_OPT_FI_HMEM_P2P,		/* int, FI_HMEM_P2P_* */
	FI_OPT_XPU_TRIGGER,		/* struct fi_trigger_xpu, 1.x */
	FI_OPT_CUDA_API_PERMITTED,	/* bool: the provider may call CUDA */
	FI_OPT_SHARED_MEMORY_PERMITTED,	/* bool: it may use shared memory */
	FI_OPT_MAX_MSG_SIZE,		/* size_t */
	FI_OPT_MAX_TAGGED_SIZE,
	FI_OPT_MAX_RMA_SIZE,
	FI_OPT_MAX_ATOMIC_SIZE,
	FI_OPT_INJECT_MSG_SIZE,		/* size_t */
	FI_OPT_INJECT_TAGGED_SIZE,
	FI_OPT_INJECT_RMA_SIZE,
	FI_OPT_INJECT_ATOMIC_SIZE,
	FI_OPT_FIREWALL_ADDR,		/* bool: nobody can connect to this endpoint, it connects to others */
};

/* May the network reach device memory without a detour through the host's? */
enum {
	FI_HMEM_P2P_ENABLED,		/* where the provider likes */
	FI_HMEM_P2P_REQUIRED,		/* always, what cannot be done so fails */
	FI_HMEM_P2P_PREFERRED,		/* where it can be done */
	FI_HMEM_P2P_DISABLED,		/* never */
};

/* A message to send, or a receive to post, for the calls with flags. */
struct fi_msg {
	const struct iovec *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;			/* the peer; of a receive, with FI_DIRECTED_RECV, or FI_ADDR_UNSPEC for any */
	void *context;
	uint64_t data;			/* with FI_REMOTE_CQ_DATA, of which domain_attr::cq_data_size bytes arrive */
};

/* What an endpoint can do besides transfers; the inline functions of the same names. rx_size_left and tx_size_left are
 * deprecated. */
struct fi_ops_ep {
	size_t size;
	ssize_t (*cancel)(fid_t fid, void *context);
	int (*getopt)(fid_t fid, int level, int optname, void *optval, size_t *optlen);
	int (*setopt)(fid_t fid, int level, int optname, const void *optval, size_t optlen);
	int (*tx_ctx)(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep, void *context);
	int (*rx_ctx)(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep, void *context);
	ssize_t (*rx_size_left)(struct fid_ep *ep);
	ssize_t (*tx_size_left)(struct fid_ep *ep);
};

struct fi_ops_msg {
	size_t size;
	ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, void *context);
	ssize_t (*recvv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr,
			 void *context);
	ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
	ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, void *context);
	ssize_t (*sendv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr,
			 void *context);
	ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr);
	ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			    fi_addr_t dest_addr, void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr);
};

/*
 * An endpoint; also a scalable one, a context of it, and a receive context that others share. What it cannot do is a
 * table of functions that say -FI_ENOSYS; of a provider before 1.9, collective is not there at all.
 */
struct fid_ep {
	struct fid fid;
	struct fi_ops_ep *ops;
	struct fi_ops_cm *cm;
	struct fi_ops_msg *msg;
	struct fi_ops_rma *rma;
	struct fi_ops_tagged *tagged;
	struct fi_ops_atomic *atomic;
	struct fi_ops_collective *collective;
};

/* A passive endpoint: listens, or holds an address for an endpoint to come. */
struct fid_pep {
	struct fid fid;
	struct fi_ops_ep *ops;
	struct fi_ops_cm *cm;
};

/* A transmit context that endpoints share. */
struct fid_stx {
	struct fid fid;
	struct fi_ops_ep *ops;
};


/*
 * Endpoints
 */

/* Open a passive endpoint at the source address of an entry. */
static inline int fi_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context)
{
	return fabric->ops->passive_ep(fabric, info, pep, context);
}

/* Open an endpoint, not enabled, for an entry of fi_getinfo() that may have been lowered; with handle a connection
 * request, to accept it; with handle a passive endpoint, to take over its address, and then only close that one. */
static inline int fi_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context)
{
	return domain->ops->endpoint(domain, info, ep, context);
}

/* The same with flags: FI_PEER_TRANSFER makes context a struct fi_peer_transfer_context of fi_peer.h. Since 1.17. */
static inline int fi_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
			       void *context)
{
	if (!flags)
		return fi_endpoint(domain, info, ep, context);
	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, endpoint2))
		return -FI_ENOSYS;
	return domain->ops->endpoint2(domain, info, ep, flags, context);
}

/* Open a scalable endpoint: one address, no transfers of its own, with contexts of fi_tx_context() and fi_rx_context(),
 * as many as ep_attr says. It is closed after them. */
static inline int fi_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context)
{
	return domain->ops->scalable_ep(domain, info, sep, context);
}

/*
 * Bind what an endpoint needs, before it is enabled; the endpoint borrows it until it is closed.
 *   completion queue	FI_TRANSMIT and FI_RECV for what it reports, with FI_SELECTIVE_COMPLETION where success is to be
 *			reported for operations with FI_COMPLETION only. One queue for each of the two at most
 *   counter		FI_SEND, FI_RECV, FI_READ, FI_WRITE, and with FI_RMA_EVENT FI_REMOTE_READ and FI_REMOTE_WRITE,
 *			for what it counts. One counter for each at most
 *   event queue, address vector, shared context	0
 * -FI_EDOMAIN: it belongs to another domain. -FI_EBADFLAGS. -FI_EOPBADSTATE: too late.
 */
static inline int fi_ep_bind(struct fid_ep *ep, struct fid *bfid, uint64_t flags)
{
	return ep->fid.ops->bind(&ep->fid, bfid, flags);
}

/* Bind the event queue of a passive endpoint. flags: 0. */
static inline int fi_pep_bind(struct fid_pep *pep, struct fid *bfid, uint64_t flags)
{
	return pep->fid.ops->bind(&pep->fid, bfid, flags);
}

/* Bind the address vector of a scalable endpoint, for all its contexts. flags: 0. */
static inline int fi_scalable_ep_bind(struct fid_ep *sep, struct fid *bfid, uint64_t flags)
{
	return sep->fid.ops->bind(&sep->fid, bfid, flags);
}

/* From here on it takes part in transfers. -FI_ENOCQ, -FI_ENOEQ, -FI_ENOAV: bind that first. */
static inline int fi_enable(struct fid_ep *ep)
{
	return ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL);
}

/*
 * Ask for the end of one operation, of an endpoint or a context, that was started with this context. It ends within a
 * bounded time: with FI_ECANCELED, or as it would have. 0: asked, or it has ended already. -FI_ENOENT: there is none.
 */
static inline ssize_t fi_cancel(fid_t fid, void *context)
{
	return ((struct fid_ep *) fid)->ops->cancel(fid, context);
}

/* Set, or read, an option of an endpoint, active or passive, or of a context. optlen: the length of its type; of
 * fi_getopt() in the room, out the length. -FI_ENOPROTOOPT: not an option here. -FI_ETOOSMALL: the room. */
static inline int fi_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	return ((struct fid_ep *) fid)->ops->setopt(fid, level, optname, optval, optlen);
}

static inline int fi_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	return ((struct fid_ep *) fid)->ops->getopt(fid, level, optname, optval, optlen);
}

/* A second handle of an endpoint with other op_flags: flags has FI_TRANSMIT or FI_RECV, and the new ones. Close
 * both. */
static inline int fi_ep_alias(struct fid_ep *ep, struct fid_ep **alias_ep, uint64_t flags)
{
	struct fid *fid;
	int ret = fi_alias(&ep->fid, &fid, flags);

	if (!ret)
		*alias_ep = (struct fid_ep *) fid;
	return ret;
}

/* Open context number idx of a scalable endpoint, which is then bound and enabled like an endpoint. attr: in what it
 * shall have, out what it has; NULL takes the endpoint's. No order holds between contexts. */
static inline int fi_tx_context(struct fid_ep *ep, int idx, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
				void *context)
{
	return ep->ops->tx_ctx(ep, idx, attr, tx_ep, context);
}

static inline int fi_rx_context(struct fid_ep *ep, int idx, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
				void *context)
{
	return ep->ops->rx_ctx(ep, idx, attr, rx_ep, context);
}

/* How many operations can be posted at least before -FI_EAGAIN. */
FI_DEPRECATED_FUNC static inline ssize_t fi_rx_size_left(struct fid_ep *ep)
{
	return ep->ops->rx_size_left(ep);
}

FI_DEPRECATED_FUNC static inline ssize_t fi_tx_size_left(struct fid_ep *ep)
{
	return ep->ops->tx_size_left(ep);
}

/* Open a context that several endpoints use, with ep_attr::tx_ctx_cnt or rx_ctx_cnt FI_SHARED_CONTEXT, once it is
 * bound to them. Sends are posted to the endpoints, receives to the shared context; completions go to the endpoints'
 * queues. */
static inline int fi_stx_context(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
				 void *context)
{
	return domain->ops->stx_ctx(domain, attr, stx, context);
}

static inline int fi_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
				 void *context)
{
	return domain->ops->srx_ctx(domain, attr, rx_ep, context);
}


/*
 * Messages - fi_msg(3)
 */

/* Post a buffer for a message. Buffers are used in the order in which they were posted; src_addr is looked at with
 * FI_DIRECTED_RECV. A longer message completes with FI_ETRUNC. */
static inline ssize_t fi_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, void *context)
{
	return ep->msg->recv(ep, buf, len, desc, src_addr, context);
}

static inline ssize_t fi_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			       fi_addr_t src_addr, void *context)
{
	return ep->msg->recvv(ep, iov, desc, count, src_addr, context);
}

/* flags: FI_COMPLETION, FI_MORE, FI_MULTI_RECV, FI_AUTH_KEY; FI_TRANSMIT_COMPLETE: device memory need not be
 * flushed. */
static inline ssize_t fi_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return ep->msg->recvmsg(ep, msg, flags);
}

/* Send a message. */
static inline ssize_t fi_send(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
			      void *context)
{
	return ep->msg->send(ep, buf, len, desc, dest_addr, context);
}

static inline ssize_t fi_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			       fi_addr_t dest_addr, void *context)
{
	return ep->msg->sendv(ep, iov, desc, count, dest_addr, context);
}

/* flags: FI_REMOTE_CQ_DATA, FI_COMPLETION, FI_MORE, FI_INJECT, FI_*_COMPLETE, FI_FENCE, FI_MULTICAST, FI_TRIGGER. */
static inline ssize_t fi_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return ep->msg->sendmsg(ep, msg, flags);
}

/* len: at most tx_attr::inject_size. */
static inline ssize_t fi_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
{
	return ep->msg->inject(ep, buf, len, dest_addr);
}

/* The same two with remote CQ data. */
static inline ssize_t fi_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
				  fi_addr_t dest_addr, void *context)
{
	return ep->msg->senddata(ep, buf, len, desc, data, dest_addr, context);
}

static inline ssize_t fi_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr)
{
	return ep->msg->injectdata(ep, buf, len, data, dest_addr);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_ENDPOINT_H */
