/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections, addresses of endpoints, and multicast groups - fi_cm(3). All calls are control calls: any thread, and
 * what they start ends in an event of the endpoint's event queue (fi_eq.h).
 *
 *   active side			passive side
 *   					fi_passive_ep, fi_pep_bind, fi_listen
 *   fi_endpoint, fi_ep_bind
 *   fi_connect(param)		->	FI_CONNREQ with param and an fi_info
 *   					fi_endpoint with that fi_info, fi_ep_bind, fi_accept(param)
 *   FI_CONNECTED with param	<-	FI_CONNECTED				both can send now
 *   fi_shutdown		->	FI_SHUTDOWN				or the other way round
 *
 * Data of the program that goes along (param) has up to FI_OPT_CM_DATA_SIZE bytes and is copied; more is -FI_EINVAL, or
 * cut short by providers that do not tell.
 */
#ifndef FI_CM_H
#define FI_CM_H

#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A group that an endpoint has joined; closing it leaves the group. */
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

/* Give an endpoint, active or passive, its address, before it is enabled or listens. In the format of its fi_info. */
static inline int fi_setname(fid_t fid, void *addr, size_t addrlen)
{
	return ((struct fid_ep *) fid)->cm->setname(fid, addr, addrlen);
}

/* The address of an endpoint, active or passive, once it is enabled or listens; to be told to peers. *addrlen: in the
 * room, out the full length. -FI_ETOOSMALL: cut to the room; so a call with *addrlen 0 asks for the length. */
static inline int fi_getname(fid_t fid, void *addr, size_t *addrlen)
{
	return ((struct fid_ep *) fid)->cm->getname(fid, addr, addrlen);
}

/* The same of the peer, once connected. -FI_ENOTCONN. */
static inline int fi_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	return ep->cm->getpeer(ep, addr, addrlen);
}

/* Take connection requests from now on; FI_BACKLOG of fi_control() says how many can wait. -FI_ENOEQ: bind one
 * first. */
static inline int fi_listen(struct fid_pep *pep)
{
	return pep->cm->listen(pep);
}

/* Ask the peer at addr for a connection; once in an endpoint's life. Enables it. 0: asked; the answer is FI_CONNECTED,
 * or an error event, FI_ECONNREFUSED with the param of fi_reject() as err_data. */
static inline int fi_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen)
{
	return ep->cm->connect(ep, addr, param, paramlen);
}

/* Accept the request for which ep was opened. Enables it. 0: accepted; FI_CONNECTED follows, or an error event. */
static inline int fi_accept(struct fid_ep *ep, const void *param, size_t paramlen)
{
	return ep->cm->accept(ep, param, paramlen);
}

/* Refuse a request: fi_info::handle of the FI_CONNREQ, which is gone then. */
static inline int fi_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t paramlen)
{
	return pep->cm->reject(pep, handle, param, paramlen);
}

/* End a connection. Operations that have not completed are cancelled or dropped, completions before it can still be
 * read. The peer gets FI_SHUTDOWN. flags: 0. */
static inline int fi_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return ep->cm->shutdown(ep, flags);
}

/* Join a multicast group, to send (FI_SEND), to receive (FI_RECV) or by default both. 0: asked; transfers can begin
 * with FI_JOIN_COMPLETE. For collectives: fi_join_collective(). -FI_ENOEQ: bind one first. */
static inline int fi_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	if (!FI_CHECK_OP(ep->cm, struct fi_ops_cm, join))
		return -FI_ENOSYS;
	return ep->cm->join(ep, addr, flags, mc, context);
}

/* What transfers to the group name it by, with FI_MULTICAST; collectives without. Once the join is complete. */
static inline fi_addr_t fi_mc_addr(struct fid_mc *mc)
{
	return mc->fi_addr;
}

#ifdef __cplusplus
}
#endif

#endif /* FI_CM_H */
