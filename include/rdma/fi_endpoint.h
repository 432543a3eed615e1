/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints, and untagged messages between them - fi_endpoint(3), fi_msg(3).
 *
 * A program opens an endpoint for an entry of fi_getinfo() with fi_endpoint(), binds a completion queue and, if the
 * endpoint is connectionless, an address vector with fi_ep_bind(), enables it with fi_enable() (or connects it with
 * fi_connect() or fi_accept() of fi_cm.h), and then posts receives and sends. Calls that open, bind and set options are
 * control calls, and may be made from any thread. For transfers, here and in fi_tagged.h, fi_rma.h, fi_atomic.h and
 * fi_collective.h, the domain's enum fi_threading says which calls the program serialises.
 *
 * Rules for all transfers:
 *
 *   - 0: the operation was started, and ends with exactly one completion. That is an entry in the completion queue, if
 *     one was asked for or the operation failed, and an increment of the counters. The provider owns the buffers until
 *     then. With FI_INJECT it owns buffers that it only reads until the call returns. iovec, desc and message structs
 *     are borrowed for the call (but see FI_ASYNC_IOV).
 *   - -FI_EAGAIN: not started, because a queue is full or a connection is being made. Read the completion queue and
 *     call again. -FI_EOPBADSTATE: the endpoint is not enabled. -FI_EMSGSIZE: too many bytes or elements. After any
 *     other error, the operation was not started either.
 *   - context is op_context in the completion, and identifies the operation in fi_cancel(). It points to a struct
 *     fi_context if the mode requires that.
 *   - desc is fi_mr_desc() of the buffer, one for each element of an iovec. It may be NULL if mr_mode requires no
 *     registration.
 *   - A peer is an fi_addr_t of the endpoint's address vector. A connected endpoint ignores it.
 *   - Calls without a flags argument use op_flags of the endpoint. A flags argument replaces op_flags.
 *   - The inject calls never report success to a completion queue, and do not use the buffer after they return.
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

/* Options of level FI_OPT_ENDPOINT, with their types. Set them before fi_enable(). Since 2.0, options with MAX and
 * INJECT restrict the sizes that an endpoint has to support to less than its attributes, separately for each kind of
 * operation. */
enum {
	FI_OPT_MIN_MULTI_RECV,		/* size_t: an FI_MULTI_RECV buffer with less room than this is used up */
	FI_OPT_CM_DATA_SIZE,		/* size_t, read-only: most bytes of param in fi_connect(), fi_accept(),
					 * fi_reject() */
	FI_OPT_BUFFERED_MIN,		/* size_t, 1.x: of FI_BUFFERED_RECV, bytes that are delivered with the
					 * notification */
	FI_OPT_BUFFERED_LIMIT,		/* size_t, 1.x: of FI_BUFFERED_RECV, longest message that is delivered whole */
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
	FI_OPT_FIREWALL_ADDR,		/* bool: the endpoint accepts no connections, it connects to its peers */
};

/* Whether the network accesses device memory directly, without a copy in host memory. */
enum {
	FI_HMEM_P2P_ENABLED,		/* the provider chooses */
	FI_HMEM_P2P_REQUIRED,		/* always; operations for which it is impossible fail */
	FI_HMEM_P2P_PREFERRED,		/* if possible */
	FI_HMEM_P2P_DISABLED,		/* never */
};

/* A message to send, or a receive to post, for the calls with flags. */
struct fi_msg {
	const struct iovec *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;			/* the peer; of a receive, with FI_DIRECTED_RECV, its source, or FI_ADDR_UNSPEC
					 * for any */
	void *context;
	uint64_t data;			/* with FI_REMOTE_CQ_DATA; domain_attr::cq_data_size bytes of it are sent */
};

/* The operations of an endpoint other than transfers; use the inline functions of the same names. rx_size_left and
 * tx_size_left are deprecated. */
struct fi_ops_ep {
	size_t size;
	ssize_t (*cancel)(fid_t fid, void *context);
	int (*getopt)(fid_t fid, int level, int optname, void *optval, size_t *optlen);
	int (*setopt)(fid_t fid, int level, int optname, const void *optval, size_t optlen);
	int (*tx_ctx)(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **tx_ep, void *context);
	int (*rx_ctx)(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **rx_ep, void *context);
	ssize_t (*rx_size_left)(struct fid_ep *ep);
	ssize_t (*tx_size_left)(struct fid_ep *ep);
#ifdef WEFT_API_2_7
	int (*export_xpu)(struct fid_ep *ep, uint64_t flags, struct fid_xpu_ep *xpu_ep);	/* since 2.7 */
#endif /* WEFT_API_2_7 */
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
 * An endpoint; also a scalable endpoint, a context of one, or a shared receive context. For operations that it does not
 * support, the table has functions that return -FI_ENOSYS. A provider from before 1.9 lacks the member collective.
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

/* A passive endpoint: it listens, or reserves an address for an endpoint that will be opened. */
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

/* Open an endpoint, which is not enabled yet, for an entry of fi_getinfo(), whose values the program may have lowered.
 * If handle is a connection request, the endpoint is for accepting it. If handle is a passive endpoint, the new
 * endpoint takes over its address, and the passive endpoint can only be closed afterwards. */
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

/* Open a scalable endpoint. It has one address and no transfers of its own. Its contexts, as many as ep_attr says, are
 * opened with fi_tx_context() and fi_rx_context(), and closed before it. */
static inline int fi_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context)
{
	return domain->ops->scalable_ep(domain, info, sep, context);
}

/*
 * Bind an object to an endpoint before it is enabled. The endpoint borrows the object until it is closed. Objects and
 * flags:
 *
 *   completion queue	FI_TRANSMIT and FI_RECV for the operations that it reports, at most one queue for each. With
 *			FI_SELECTIVE_COMPLETION the success of operations without FI_COMPLETION is not reported
 *   counter		FI_SEND, FI_RECV, FI_READ, FI_WRITE, and with FI_RMA_EVENT FI_REMOTE_READ and FI_REMOTE_WRITE,
 *			for the operations that it counts; at most one counter for each
 *   event queue, address vector, shared context	0
 *
 * -FI_EDOMAIN: the object belongs to another domain. -FI_EBADFLAGS. -FI_EOPBADSTATE: the endpoint is enabled already.
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

/* Allow transfers from now on. -FI_ENOCQ, -FI_ENOEQ, -FI_ENOAV: this object must be bound first. */
static inline int fi_enable(struct fid_ep *ep)
{
	return ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL);
}

/*
 * Ask the provider to cancel an operation of an endpoint or a context, identified by its context. The operation ends
 * within a bounded time, with FI_ECANCELED or as it would have ended otherwise. 0: the request was accepted, or the
 * operation has ended. -FI_ENOENT: no such operation.
 */
static inline ssize_t fi_cancel(fid_t fid, void *context)
{
	return ((struct fid_ep *) fid)->ops->cancel(fid, context);
}

/* Set or read an option of an endpoint, active or passive, or of a context. optlen is the size of its type; in
 * fi_getopt() in the room, out the size. -FI_ENOPROTOOPT: not an option of this endpoint. -FI_ETOOSMALL: the room is
 * too small. */
static inline int fi_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	return ((struct fid_ep *) fid)->ops->setopt(fid, level, optname, optval, optlen);
}

static inline int fi_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	return ((struct fid_ep *) fid)->ops->getopt(fid, level, optname, optval, optlen);
}

/* Open a second handle of an endpoint with other op_flags. flags has FI_TRANSMIT or FI_RECV, and the new op_flags.
 * Close both handles. */
static inline int fi_ep_alias(struct fid_ep *ep, struct fid_ep **alias_ep, uint64_t flags)
{
	struct fid *fid;
	int ret = fi_alias(&ep->fid, &fid, flags);

	if (!ret)
		*alias_ep = (struct fid_ep *) fid;
	return ret;
}

/* Open the context with index idx of a scalable endpoint. It is then bound and enabled like an endpoint. attr: in the
 * attributes wanted, out the actual ones; NULL: the endpoint's. There is no order between contexts. */
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

/* The number of operations that can at least be posted before -FI_EAGAIN. */
FI_DEPRECATED_FUNC static inline ssize_t fi_rx_size_left(struct fid_ep *ep)
{
	return ep->ops->rx_size_left(ep);
}

FI_DEPRECATED_FUNC static inline ssize_t fi_tx_size_left(struct fid_ep *ep)
{
	return ep->ops->tx_size_left(ep);
}

/* Open a context that several endpoints share. Their ep_attr::tx_ctx_cnt or rx_ctx_cnt is FI_SHARED_CONTEXT, and the
 * context is bound to them. Sends are posted to the endpoints, receives to the shared context. Completions go to the
 * queues of the endpoints. */
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
#ifdef WEFT_API_2_7

/* Fill in a handle by which the device of an endpoint that was opened with FI_XPU starts operations; otherwise as
 * fi_cq_export_xpu(). -FI_EINVAL also before fi_enable(). Since 2.7. */
static inline int fi_ep_export_xpu(struct fid_ep *ep, uint64_t flags, struct fid_xpu_ep *xpu_ep)
{
	return ep->ops->export_xpu(ep, flags, xpu_ep);
}
#endif /* WEFT_API_2_7 */


/*
 * Messages - fi_msg(3)
 */

/* Post a buffer for a message. Buffers are used in the order of posting. src_addr is used only with FI_DIRECTED_RECV. A
 * message longer than the buffer completes with FI_ETRUNC. */
static inline ssize_t fi_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, void *context)
{
	return ep->msg->recv(ep, buf, len, desc, src_addr, context);
}

static inline ssize_t fi_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			       fi_addr_t src_addr, void *context)
{
	return ep->msg->recvv(ep, iov, desc, count, src_addr, context);
}

/* flags: FI_COMPLETION, FI_MORE, FI_MULTI_RECV, FI_AUTH_KEY; FI_TRANSMIT_COMPLETE: the provider need not flush device
 * memory. */
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
