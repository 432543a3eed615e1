/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors - fi_errno(3). Calls return them as negative numbers (-FI_EAGAIN); entries of queues have positive numbers.
 * Errors of the system have the system's numbers; errors of libfabric count from FI_ERRNO_OFFSET.
 */
#ifndef FI_ERRNO_H
#define FI_ERRNO_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_SUCCESS 0

#define FI_EPERM EPERM
#define FI_ENOENT ENOENT
#define FI_EINTR EINTR
#define FI_EIO EIO
#define FI_E2BIG E2BIG
#define FI_EBADF EBADF
#define FI_EAGAIN EAGAIN		/* not now: drive progress, then call again */
#define FI_ENOMEM ENOMEM
#define FI_EACCES EACCES		/* a key or region does not allow the access */
#define FI_EFAULT EFAULT
#define FI_EBUSY EBUSY			/* other objects depend on this one */
#define FI_ENODEV ENODEV
#define FI_EINVAL EINVAL
#define FI_EMFILE EMFILE
#define FI_ENOSPC ENOSPC
#define FI_ENOSYS ENOSYS		/* the provider lacks the call, or the library is older than the version */
#define FI_EWOULDBLOCK EWOULDBLOCK
#define FI_ENOMSG ENOMSG		/* of FI_PEEK: no such message */
#define FI_ENODATA ENODATA		/* of fi_getinfo(): nothing matches */
#define FI_EPROTO EPROTO
#define FI_EOVERFLOW EOVERFLOW
#define FI_EMSGSIZE EMSGSIZE		/* longer than the limit */
#define FI_ENOPROTOOPT ENOPROTOOPT	/* of fi_getopt(), fi_setopt(): not an option of this endpoint */
#define FI_EOPNOTSUPP EOPNOTSUPP
#define FI_EADDRINUSE EADDRINUSE
#define FI_EADDRNOTAVAIL EADDRNOTAVAIL	/* in an entry, with FI_SOURCE_ERR: a received message from an unknown peer */
#define FI_ENETDOWN ENETDOWN
#define FI_ENETUNREACH ENETUNREACH
#define FI_ECONNABORTED ECONNABORTED
#define FI_ECONNRESET ECONNRESET
#define FI_ENOBUFS ENOBUFS
#define FI_EISCONN EISCONN
#define FI_ENOTCONN ENOTCONN
#define FI_ESHUTDOWN ESHUTDOWN
#define FI_ETIMEDOUT ETIMEDOUT
#define FI_ECONNREFUSED ECONNREFUSED	/* of fi_connect(), in the EQ: no listener, or fi_reject() */
#define FI_EHOSTDOWN EHOSTDOWN
#define FI_EHOSTUNREACH EHOSTUNREACH
#define FI_EALREADY EALREADY
#define FI_EINPROGRESS EINPROGRESS
#define FI_EREMOTEIO EREMOTEIO
#define FI_ECANCELED ECANCELED		/* fi_cancel(), or the endpoint was closed or disconnected */
#define FI_EKEYREJECTED EKEYREJECTED

#define FI_ERRNO_OFFSET 256

enum {
	FI_EOTHER = FI_ERRNO_OFFSET,
	FI_ETOOSMALL,			/* the caller's buffer is too small; the length needed was stored */
	FI_EOPBADSTATE,			/* not allowed in this state of the object */
	FI_EAVAIL,			/* read the error entry first */
	FI_EBADFLAGS,			/* unknown, or not for this call */
	FI_ENOEQ,			/* no event queue is bound */
	FI_EDOMAIN,			/* objects of different domains */
	FI_ENOCQ,			/* no completion queue is bound */
	FI_ECRC,
	FI_ETRUNC,			/* the message was longer than its buffer: the rest is lost */
	FI_ENOKEY,			/* the memory key is not known */
	FI_ENOAV,			/* no address vector is bound */
	FI_EOVERRUN,			/* the queue was full: entries are lost */
	FI_ENORX,			/* the peer had no buffer posted: try again */
	FI_ENOMR,			/* no more memory registrations */
	FI_EFIREWALLADDR,		/* this peer accepts no connections: it must connect to us */
	FI_ERRNO_MAX			/* the last number plus 1 */
};

/* The text of an error, positive or negative, as a constant. Unknown numbers have a text, too. Any thread. */
const char *fi_strerror(int errnum);

#ifdef __cplusplus
}
#endif

#endif /* FI_ERRNO_H */
