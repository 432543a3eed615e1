/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections, addresses of endpoints, and multicast groups - fi_cm(3). All calls are control calls, and may be made
 * from any thread. Operations that they start end with an event in the endpoint's event queue (fi_eq.h).
 *
 *   active side			passive side
 *   					fi_passive_ep, fi_pep_bind, fi_listen
 *   fi_endpoint, fi_ep_bind
 *   fi_connect(param)		->	FI_CONNREQ with param and an fi_info
 *   					fi_endpoint with that fi_info, fi_ep_bind, fi_accept(param)
 *   FI_CONNECTED with param	<-	FI_CONNECTED				both can send now
 *   fi_shutdown		->	FI_SHUTDOWN				or the other way round
 *
 * param is data of the program that is sent along. It has at most FI_OPT_CM_DATA_SIZE bytes, and is copied. For more
 * bytes a call returns -FI_EINVAL; some providers cut the data off instead.
 */
#ifndef FI_CM_H
#define FI_CM_H

#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A group that an endpoint has joined. Closing it leaves the group. */
struct fid_mc {
	struct fid fid;
	fi_addr_t fi_addr;		/* fi_mc_addr() */
};

struct fi_ops_cm {
	size_t size;
	int (*setname)(fid_t fid, void *addr, size_t addrlen);
	int (*getname)(fid_t fid, void *addr, size_t *addrlen);
	int (*getpeer)(struct fid_ep *ep, void *addr, size_t *addrlen);
	int (*connect)(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
	int (*listen)(struct fid_pep *pep);
	int (*accept)(struct fid_ep *ep, const void *param, size_t paramlen);
	int (*reject)(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen);
	int (*shutdown)(struct fid_ep *ep, uint64_t flags);
	int (*join)(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,	/* since 1.5 */
		    void *context);
};

/* Set the address of an endpoint, active or passive, before it is enabled or listens. The address has the format of its
 * fi_info. */
static inline int fi_setname(fid_t fid, void *addr, size_t addrlen)
{
	return ((struct fid_ep *) fid)->cm->setname(fid, addr, addrlen);
}

/* Get the address of an endpoint, active or passive, that is enabled or listens. Programs send it to peers. *addrlen:
 * in the room, out the full length. -FI_ETOOSMALL: the address was cut off at the room, so a call with *addrlen 0
 * returns the length. */
static inline int fi_getname(fid_t fid, void *addr, size_t *addrlen)
{
	return ((struct fid_ep *) fid)->cm->getname(fid, addr, addrlen);
}

/* Get the peer's address of a connected endpoint. Otherwise the same; -FI_ENOTCONN. */
static inline int fi_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return ep->cm->getpeer(ep, addr, addrlen);
}

/* Accept connection requests from now on. FI_BACKLOG of fi_control() sets how many may wait. -FI_ENOEQ: no event queue
 * is bound. */
static inline int fi_listen(struct fid_pep *pep)
{
	return pep->cm->listen(pep);
}

/* Request a connection to the peer at addr; once in the life of an endpoint. Enables the endpoint. 0: the request was
 * started. FI_CONNECTED follows, or an error event; if that is FI_ECONNREFUSED, err_data has the param of
 * fi_reject(). */
static inline int fi_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return ep->cm->connect(ep, addr, param, paramlen);
}

/* Accept the request for which ep was opened. Enables the endpoint. 0: FI_CONNECTED follows, or an error event. */
static inline int fi_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return ep->cm->accept(ep, param, paramlen);
}

/* Refuse a request. handle is fi_info::handle of the FI_CONNREQ; it is invalid afterwards. */
static inline int fi_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return pep->cm->reject(pep, handle, param, paramlen);
}

/* End a connection. Outstanding operations are cancelled or dropped; completions written before can still be read. The
 * peer gets FI_SHUTDOWN. flags: 0. */
static inline int fi_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return ep->cm->shutdown(ep, flags);
}

/* Join a multicast group, for sending (FI_SEND), receiving (FI_RECV), or by default both. 0: the join was started;
 * transfers are allowed after FI_JOIN_COMPLETE. For collectives: fi_join_collective(). -FI_ENOEQ: no event queue is
 * bound. */
static inline int fi_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	if (!FI_CHECK_OP(ep->cm, struct fi_ops_cm, join))
		return -FI_ENOSYS;
	return ep->cm->join(ep, addr, flags, mc, context);
}

/* The address of the group for transfers with FI_MULTICAST and for collectives, once the join is complete. */
static inline fi_addr_t fi_mc_addr(struct fid_mc *mc)
{
	return mc->fi_addr;
}

#ifdef __cplusplus
}
#endif

#endif /* FI_CM_H */
