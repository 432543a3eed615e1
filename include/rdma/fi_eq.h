/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a program learns what has happened - fi_eq(3), fi_cq(3), fi_cntr(3), fi_poll(3):
 *
 *   event queue		of a fabric: connections, and control operations that were started asynchronously
 *   completion queue (CQ)	of a domain: one entry for each transfer that has ended and asked for one
 *   counter			of a domain: how many transfers have ended, without telling which
 *   wait object		what can be blocked on until one of the others has something
 *
 * Reading drives progress where that is manual. A failure is kept apart: read then returns -FI_EAVAIL until readerr has
 * taken it. Event queues may be used by any thread; the other objects as the domain's enum fi_threading says.
 */
#ifndef FI_EQ_H
#define FI_EQ_H

#include <poll.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Wait objects
 *
 * The kind is chosen when a queue or counter is opened. FD, POLLFD and MUTEX_COND can be had with FI_GETWAIT and be
 * waited on together with other things: call fi_trywait() each time, and block only if it returns 0.
 */
enum fi_wait_obj {
	FI_WAIT_NONE,			/* nobody blocks: sread and wait fail */
	FI_WAIT_UNSPEC,			/* only calls of this API block; how is the provider's choice */
	FI_WAIT_SET,			/* the wait set in the attributes; deprecated */
	FI_WAIT_FD,			/* a file descriptor, for poll(2) and epoll(7) */
	FI_WAIT_MUTEX_COND,		/* struct fi_mutex_cond; deprecated */
	FI_WAIT_YIELD,			/* nothing to block on: sread and wait poll, and yield the CPU in between */
	FI_WAIT_POLLFD,			/* several file descriptors: struct fi_wait_pollfd */
};

/* FI_GETWAIT's argument for FI_WAIT_MUTEX_COND. Both belong to the provider, which signals under the mutex. */
struct fi_mutex_cond {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
};

/* FI_GETWAIT's argument for FI_WAIT_POLLFD. -FI_ETOOSMALL: nfds is what it takes, fd was not filled; so a call with
 * nfds 0 asks whether change_index has moved. */
struct fi_wait_pollfd {
	uint64_t change_index;		/* out: goes up whenever the list changes; read it before blocking */
	size_t nfds;			/* in: entries of room; out: entries there are */
	struct pollfd *fd;		/* out, the caller's room */
};

/*
 * May the caller block on the wait objects of these queues, counters or wait sets, all of one kind? 0: yes, whatever
 * comes will wake it. -FI_EAGAIN: no, something is there already or needs progress: read them all, then ask again.
 */
static inline int fi_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	return fabric->ops->trywait(fabric, fids, count);
}

/* A wait set: one wait object for many queues and counters. Deprecated. */
struct fi_wait_attr {
	enum fi_wait_obj wait_obj;	/* UNSPEC, FD, MUTEX_COND, POLLFD or YIELD */
	uint64_t flags;			/* 0 */
};

struct fi_ops_wait {
	size_t size;
	int (*wait)(struct fid_wait *waitset, int timeout);
};

struct fid_wait {
	struct fid fid;
	struct fi_ops_wait *ops;
};

/* Block until one of the set has something, or for timeout ms: 0 or -FI_ETIMEDOUT. */
FI_DEPRECATED_FUNC static inline int fi_wait(struct fid_wait *waitset, int timeout)
{
	return waitset->ops->wait(waitset, timeout);
}

/* A poll set: drives many completion queues and counters at once. Deprecated. */
struct fi_poll_attr {
	uint64_t flags;			/* 0 */
};

struct fi_ops_poll {
	size_t size;
	int (*poll)(struct fid_poll *pollset, void **context, int count);
	int (*poll_add)(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags);
	int (*poll_del)(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags);
};

struct fid_poll {
	struct fid fid;
	struct fi_ops_poll *ops;
};

/* Drive all of the set. How many may have something, with their fid::context in context, at most count; a queue that
 * has nothing may be among them, one that has is never left out. */
FI_DEPRECATED_FUNC static inline int fi_poll(struct fid_poll *pollset, void **context, int count)
{
	return pollset->ops->poll(pollset, context, count);
}

/* Put a completion queue or counter into the set, which borrows it; take it out. flags: 0. */
FI_DEPRECATED_FUNC static inline int fi_poll_add(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags)
{
	return pollset->ops->poll_add(pollset, event_fid, flags);
}

FI_DEPRECATED_FUNC static inline int fi_poll_del(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags)
{
	return pollset->ops->poll_del(pollset, event_fid, flags);
}


/*
 * Event queues - fi_eq(3)
 */
struct fi_eq_attr {
	size_t size;			/* events, at least; 0: the provider's choice */
	uint64_t flags;			/* FI_WRITE: fi_eq_write() will be used. FI_AFFINITY: signaling_vector is set */
	enum fi_wait_obj wait_obj;
	int signaling_vector;		/* CPU for interrupts; a wish */
	struct fid_wait *wait_set;	/* with FI_WAIT_SET; borrowed */
};

/* Events, and what fi_eq_read() stores for them. */
enum {
	FI_NOTIFY,			/* what fi_eq_write() was given */
	FI_CONNREQ,			/* fi_eq_cm_entry: a peer wants to connect to fid, a passive endpoint */
	FI_CONNECTED,			/* fi_eq_cm_entry: fid, an endpoint, can send */
	FI_SHUTDOWN,			/* fi_eq_cm_entry: the peer of fid has gone */
	FI_MR_COMPLETE,			/* fi_eq_entry: the memory region is registered */
	FI_AV_COMPLETE,			/* fi_eq_entry: an insertion has ended; data: how many are in */
	FI_JOIN_COMPLETE,		/* fi_eq_entry: fid, a struct fid_mc, has joined */
};

struct fi_eq_entry {
	fid_t fid;			/* the object it is about */
	void *context;			/* of the operation; of the object if that had none */
	uint64_t data;
};

/* A failure, in place of any of the events. */
struct fi_eq_err_entry {
	fid_t fid;
	void *context;
	uint64_t data;			/* of FI_AV_COMPLETE: index of the address that failed */
	int err;			/* positive: FI_E* */
	int prov_errno;			/* the provider's own, for fi_eq_strerror() */
	/*
	 * More about it, for a connection that was refused what the peer gave to fi_reject(). In: the caller's room,
	 * which is filled. With err_data_size 0, or a fabric opened for a version below 1.5: out, the provider's, valid
	 * until the next read of the queue.
	 */
	void *err_data;
	size_t err_data_size;
};

struct fi_eq_cm_entry {
	fid_t fid;
	struct fi_info *info;		/* of FI_CONNREQ: to open an endpoint with for fi_accept(), or its handle for
					 * fi_reject(); the caller frees it. Otherwise NULL */
	__extension__ uint8_t data[];	/* what the peer gave to fi_connect() or fi_accept(): the rest of the length
					 * that fi_eq_read() returned, possibly padded */
};

struct fi_ops_eq {
	size_t size;
	ssize_t (*read)(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags);
	ssize_t (*readerr)(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags);
	ssize_t (*write)(struct fid_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags);
	ssize_t (*sread)(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout, uint64_t flags);
	const char *(*strerror)(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf, size_t len);
};

struct fid_eq {
	struct fid fid;
	struct fi_ops_eq *ops;
};

/* Open an event queue. Closing it is -FI_EBUSY while anything is bound to it; events that were not read are lost. */
static inline int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context)
{
	return fabric->ops->eq_open(fabric, attr, eq, context);
}

/*
 * Take one event. flags: FI_PEEK leaves it there. The length stored in buf, with the kind in *event. -FI_EAGAIN: none.
 * -FI_EAVAIL: a failure comes first, call fi_eq_readerr(). -FI_ETOOSMALL: it is longer than len, and stays.
 * An error entry with err FI_EOVERRUN, or that as the answer: events were lost, the queue is of no more use.
 */
static inline ssize_t fi_eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	return eq->ops->read(eq, event, buf, len, flags);
}

/* Take one failure: the length of the entry, or -FI_EAGAIN. flags: FI_PEEK leaves it there. */
static inline ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	return eq->ops->readerr(eq, buf, flags);
}

/* Put an event of the program into the queue, len bytes that are copied: len. -FI_EAGAIN: it is full; -FI_ENOMEM.
 * flags: 0. */
static inline ssize_t fi_eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	return eq->ops->write(eq, event, buf, len, flags);
}

/* fi_eq_read() that waits for timeout ms; -FI_EAGAIN when they are over, or sooner on a signal. Not with
 * FI_WAIT_NONE. */
static inline ssize_t fi_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
				  uint64_t flags)
{
	return eq->ops->sread(eq, event, buf, len, timeout, flags);
}

/* What an error entry's prov_errno and err_data mean, in words: in buf, cut to len with its end, or with buf NULL in
 * the provider's memory. */
static inline const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf,
					 size_t len)
{
	return eq->ops->strerror(eq, prov_errno, err_data, buf, len);
}


/*
 * Completion queues - fi_cq(3)
 */

/* How much an entry tells; each starts with all of the one before it. */
enum fi_cq_format {
	FI_CQ_FORMAT_UNSPEC,		/* the provider's choice */
	FI_CQ_FORMAT_CONTEXT,		/* struct fi_cq_entry */
	FI_CQ_FORMAT_MSG,		/* struct fi_cq_msg_entry */
	FI_CQ_FORMAT_DATA,		/* struct fi_cq_data_entry */
	FI_CQ_FORMAT_TAGGED,		/* struct fi_cq_tagged_entry */
};

/* What the argument cond of fi_cq_sread() is. */
enum fi_cq_wait_cond {
	FI_CQ_COND_NONE,		/* not looked at: any entry will do */
	FI_CQ_COND_THRESHOLD,		/* a size_t, not a pointer: entries worth waking up for. A wish: fewer may do */
};

struct fi_cq_attr {
	size_t size;			/* entries, at least; 0: the provider's choice */
	uint64_t flags;			/* FI_AFFINITY: signaling_vector is set */
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj;
	int signaling_vector;		/* CPU for interrupts; a wish */
	enum fi_cq_wait_cond wait_cond;
	struct fid_wait *wait_set;	/* with FI_WAIT_SET; borrowed */
};

/* The entries. A member means the same in all of them; the flags say which are set. */
struct fi_cq_entry {
	void *op_context;		/* the operation's; NULL if none was posted: the target of an RMA write */
};

struct fi_cq_msg_entry {
	void *op_context;
	uint64_t flags;			/* kind (FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC...) and what was done (FI_SEND,
					 * FI_RECV, FI_READ, FI_REMOTE_WRITE...); FI_REMOTE_CQ_DATA, FI_MULTI_RECV */
	size_t len;			/* received bytes, any prefix of FI_MSG_PREFIX with them */
};

struct fi_cq_data_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;			/* of FI_MULTI_RECV buffers: where in it this message starts */
	uint64_t data;			/* with FI_REMOTE_CQ_DATA: what the peer gave, in this machine's byte order */
};

struct fi_cq_tagged_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;			/* of a tagged message: the sender's */
};

/*
 * An operation that failed; also one that was not to be reported. What a program has of it depends on its version: all
 * up to err_data since 1.0, err_data_size since 1.5, src_addr since 1.20.
 */
struct fi_cq_err_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	size_t olen;			/* of FI_ETRUNC: bytes that had no room and are lost */
	int err;			/* positive: FI_E* */
	int prov_errno;			/* the provider's own, for fi_cq_strerror() */
	/*
	 * More about it; of FI_EADDRNOTAVAIL the peer's address, ready for fi_av_insert(). In: the caller's room, which
	 * is filled. With err_data_size 0, or a fabric opened for a version below 1.5: out, the provider's, valid until
	 * the next read of the queue.
	 */
	void *err_data;
	size_t err_data_size;
	fi_addr_t src_addr;		/* of a failed receive: the peer, or FI_ADDR_NOTAVAIL */
};

struct fi_ops_cq {
	size_t size;
	ssize_t (*read)(struct fid_cq *cq, void *buf, size_t count);
	ssize_t (*readfrom)(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr);
	ssize_t (*readerr)(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags);
	ssize_t (*sread)(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout);
	ssize_t (*sreadfrom)(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr, const void *cond,
			     int timeout);
	int (*signal)(struct fid_cq *cq);
	const char *(*strerror)(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf, size_t len);
};

struct fid_cq {
	struct fid fid;
	struct fi_ops_cq *ops;
};

/*
 * Take up to count entries of the queue's format; with count 0, only drive progress. How many. -FI_EAGAIN: none.
 * -FI_EAVAIL: a failure comes first, call fi_cq_readerr(). An error entry with err FI_EOVERRUN, or that as the
 * answer: entries were lost, the queue is of no more use.
 */
static inline ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return cq->ops->read(cq, buf, count);
}

/* The same with the peers of receives, count of them: FI_ADDR_NOTAVAIL where the endpoint lacks FI_SOURCE, or the peer
 * is in no address vector. */
static inline ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	return cq->ops->readfrom(cq, buf, count, src_addr);
}

/* Take one failure: 1, or -FI_EAGAIN. Set err_data_size before. flags: 0. src_addr is preset here because a provider
 * leaves it alone for programs older than it. */
static inline ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	if (buf)
		buf->src_addr = FI_ADDR_NOTAVAIL;
	return cq->ops->readerr(cq, buf, flags);
}

/* fi_cq_read() that waits for timeout ms, or as the queue's wait_cond takes cond; -FI_EAGAIN when they are over, or
 * sooner on a signal or fi_cq_signal(). Not with FI_WAIT_NONE and FI_WAIT_SET. */
static inline ssize_t fi_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout)
{
	return cq->ops->sread(cq, buf, count, cond, timeout);
}

static inline ssize_t fi_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr,
				      const void *cond, int timeout)
{
	return cq->ops->sreadfrom(cq, buf, count, src_addr, cond, timeout);
}

/* Wake whoever waits in fi_cq_sread() or fi_cq_sreadfrom(). Any thread. */
static inline int fi_cq_signal(struct fid_cq *cq)
{
	return cq->ops->signal(cq);
}

/* As fi_eq_strerror(). */
static inline const char *fi_cq_strerror(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf,
					 size_t len)
{
	return cq->ops->strerror(cq, prov_errno, err_data, buf, len);
}


/*
 * Counters - fi_cntr(3)
 *
 * Two values: successes, and failures. What is counted depends on what the counter is bound to, and with which flags.
 * Both wrap after domain_attr::max_cntr_value and max_err_cntr_value.
 */
enum fi_cntr_events {
	FI_CNTR_EVENTS_COMP,		/* operations */
	FI_CNTR_EVENTS_BYTES,		/* their bytes */
};

struct fi_cntr_attr {
	enum fi_cntr_events events;
	enum fi_wait_obj wait_obj;
	struct fid_wait *wait_set;	/* with FI_WAIT_SET; borrowed */
	uint64_t flags;			/* 0 */
};

struct fi_ops_cntr {
	size_t size;
	uint64_t (*read)(struct fid_cntr *cntr);
	uint64_t (*readerr)(struct fid_cntr *cntr);
	int (*add)(struct fid_cntr *cntr, uint64_t value);
	int (*set)(struct fid_cntr *cntr, uint64_t value);
	int (*wait)(struct fid_cntr *cntr, uint64_t threshold, int timeout);
	int (*adderr)(struct fid_cntr *cntr, uint64_t value);		/* since 1.5, as seterr */
	int (*seterr)(struct fid_cntr *cntr, uint64_t value);
};

struct fid_cntr {
	struct fid fid;
	struct fi_ops_cntr *ops;
};

/* The successes so far, or the failures. A change by one of the calls below may take a moment to show. */
static inline uint64_t fi_cntr_read(struct fid_cntr *cntr)
{
	return cntr->ops->read(cntr);
}

static inline uint64_t fi_cntr_readerr(struct fid_cntr *cntr)
{
	return cntr->ops->readerr(cntr);
}

/* Add to a value, or replace it; the latter only while nothing else changes it, or that change may be lost. */
static inline int fi_cntr_add(struct fid_cntr *cntr, uint64_t value)
{
	return cntr->ops->add(cntr, value);
}

static inline int fi_cntr_adderr(struct fid_cntr *cntr, uint64_t value)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, adderr))
		return -FI_ENOSYS;
	return cntr->ops->adderr(cntr, value);
}

static inline int fi_cntr_set(struct fid_cntr *cntr, uint64_t value)
{
	return cntr->ops->set(cntr, value);
}

static inline int fi_cntr_seterr(struct fid_cntr *cntr, uint64_t value)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, seterr))
		return -FI_ENOSYS;
	return cntr->ops->seterr(cntr, value);
}

/* Wait until the successes are at least threshold: 0. -FI_ETIMEDOUT: timeout ms are over. -FI_EAVAIL: a failure was
 * counted meanwhile. Not with FI_WAIT_NONE and FI_WAIT_SET. */
static inline int fi_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
{
	return cntr->ops->wait(cntr, threshold, timeout);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_EQ_H */
