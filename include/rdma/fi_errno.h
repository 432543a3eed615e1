/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors - fi_errno(3). Calls return them negative (-FI_EAGAIN), entries of queues hold them positive. Those that the
 * system knows have the system's value; those of networks count from FI_ERRNO_OFFSET.
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
#define FI_EACCES EACCES		/* a key or region does not allow it */
#define FI_EFAULT EFAULT
#define FI_EBUSY EBUSY			/* others still use the object */
#define FI_ENODEV ENODEV
#define FI_EINVAL EINVAL
#define FI_EMFILE EMFILE
#define FI_ENOSPC ENOSPC
#define FI_ENOSYS ENOSYS		/* the provider does not have the call, or the library not the version */
#define FI_EWOULDBLOCK EWOULDBLOCK
#define FI_ENOMSG ENOMSG		/* of FI_PEEK: there is no such message */
#define FI_ENODATA ENODATA		/* of fi_getinfo(): nothing fits */
#define FI_EPROTO EPROTO
#define FI_EOVERFLOW EOVERFLOW
#define FI_EMSGSIZE EMSGSIZE		/* longer than the limit */
#define FI_ENOPROTOOPT ENOPROTOOPT	/* of fi_getopt(), fi_setopt(): not an option of this endpoint */
#define FI_EOPNOTSUPP EOPNOTSUPP
#define FI_EADDRINUSE EADDRINUSE
#define FI_EADDRNOTAVAIL EADDRNOTAVAIL	/* in an entry, with FI_SOURCE_ERR: received well, from an unknown peer */
#define FI_ENETDOWN ENETDOWN
#define FI_ENETUNREACH ENETUNREACH
#define FI_ECONNABORTED ECONNABORTED
#define FI_ECONNRESET ECONNRESET
#define FI_ENOBUFS ENOBUFS
#define FI_EISCONN EISCONN
#define FI_ENOTCONN ENOTCONN
#define FI_ESHUTDOWN ESHUTDOWN
#define FI_ETIMEDOUT ETIMEDOUT
#define FI_ECONNREFUSED ECONNREFUSED	/* of fi_connect(), in the EQ: nobody listens, or fi_reject() */
#define FI_EHOSTDOWN EHOSTDOWN
#define FI_EHOSTUNREACH EHOSTUNREACH
#define FI_EALREADY EALREADY
#define FI_EINPROGRESS EINPROGRESS
#define FI_EREMOTEIO EREMOTEIO
#define FI_ECANCELED ECANCELED		/* fi_cancel(), or the endpoint ended first */
#define FI_EKEYREJECTED EKEYREJECTED

#define FI_ERRNO_OFFSET 256

enum {
	FI_EOTHER = FI_ERRNO_OFFSET,
	FI_ETOOSMALL,			/* the caller's buffer; the length that is needed has been stored */
	FI_EOPBADSTATE,			/* not in the state of this object */
	FI_EAVAIL,			/* an error entry comes first: read that */
	FI_EBADFLAGS,			/* unknown, or not for this call */
	FI_ENOEQ,			/* no event queue is bound */
	FI_EDOMAIN,			/* objects of different domains */
	FI_ENOCQ,			/* no completion queue is bound */
	FI_ECRC,
	FI_ETRUNC,			/* the message was longer than its buffer: the rest is lost */
	FI_ENOKEY,			/* the memory key is not known */
	FI_ENOAV,			/* no address vector is bound */
	FI_EOVERRUN,			/* the queue was full: entries are lost */
	FI_ENORX,			/* the peer had no buffer for it: try again */
	FI_ENOMR,			/* memory registrations have run out */
	FI_EFIREWALLADDR,		/* this peer cannot be connected to: it has to come to us */
	FI_ERRNO_MAX			/* one more than the last */
};

/* An error, positive or negative, in words: a constant, also for numbers that are none. Any thread. */
const char *fi_strerror(int errnum);

#ifdef __cplusplus
}
#endif

#endif /* FI_ERRNO_H */
