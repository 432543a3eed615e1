/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Queues, counters and waiting - fi_eq(3), fi_cq(3), fi_cntr(3), fi_poll(3):
 *
 *   event queue		of a fabric: events of connections and of asynchronous control operations
 *   completion queue (CQ)	of a domain: an entry for each transfer that has completed and asked for one
 *   counter			of a domain: counts completed transfers without identifying them
 *   wait object		blocks a thread until one of the others has something
 *
 * Reading drives progress, if progress is manual. Failures are kept apart: a read returns -FI_EAVAIL until readerr has
 * taken the failure. Event queues may be used from any thread. For the other objects, the domain's enum fi_threading
 * says which calls the program serialises.
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
 * The kind is chosen when a queue or counter is opened. Objects of kind FD, POLLFD and MUTEX_COND can be obtained with
 * FI_GETWAIT, for waiting on them together with others. Call fi_trywait() every time before, and block only if it
 * returns 0.
 */
enum fi_wait_obj {
	FI_WAIT_NONE,			/* no blocking: sread and wait fail */
	FI_WAIT_UNSPEC,			/* only calls of this API block; the provider chooses how */
	FI_WAIT_SET,			/* the wait set in the attributes; deprecated */
	FI_WAIT_FD,			/* a file descriptor, for poll(2) and epoll(7) */
	FI_WAIT_MUTEX_COND,		/* struct fi_mutex_cond; deprecated */
	FI_WAIT_YIELD,			/* no object: sread and wait poll, and yield the CPU in between */
	FI_WAIT_POLLFD,			/* several file descriptors: struct fi_wait_pollfd */
};

/* The argument of FI_GETWAIT for FI_WAIT_MUTEX_COND. Mutex and condition belong to the provider, which signals with the
 * mutex held. */
struct fi_mutex_cond {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
};

/* The argument of FI_GETWAIT for FI_WAIT_POLLFD. -FI_ETOOSMALL: nfds is the number of entries needed, and fd was not
 * filled in. So a call with nfds 0 shows whether change_index has changed. */
struct fi_wait_pollfd {
	uint64_t change_index;		/* out: grows whenever the list changes; read it before blocking */
	size_t nfds;			/* in: entries for which fd has room; out: entries */
	struct pollfd *fd;		/* out, the caller's room */
};

/*
 * Check whether the caller may block on the wait objects of these queues, counters or wait sets, which must all be of
 * one kind. 0: yes; any new entry will wake it. -FI_EAGAIN: no; an object has an entry or needs progress. Read them
 * all, and check again.
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

/* Block until an object of the set has something, or for timeout ms. 0 or -FI_ETIMEDOUT. */
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

/* Drive the progress of all members. Returns how many may have something, at most count, and stores their fid::context
 * in context. It may include a queue that has nothing, but never omits one that has something. */
FI_DEPRECATED_FUNC static inline int fi_poll(struct fid_poll *pollset, void **context, int count)
{
	return pollset->ops->poll(pollset, context, count);
}

/* Add a completion queue or counter to the set, which borrows it; remove one. flags: 0. */
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
	int signaling_vector;		/* CPU for interrupts; a hint */
	struct fid_wait *wait_set;	/* with FI_WAIT_SET; borrowed */
};

/* Events, with the contents that fi_eq_read() stores. */
enum {
	FI_NOTIFY,			/* the data passed to fi_eq_write() */
	FI_CONNREQ,			/* fi_eq_cm_entry: a peer wants to connect to fid, a passive endpoint */
	FI_CONNECTED,			/* fi_eq_cm_entry: fid, an endpoint, can send */
	FI_SHUTDOWN,			/* fi_eq_cm_entry: the peer of fid has disconnected */
	FI_MR_COMPLETE,			/* fi_eq_entry: the memory region is registered */
	FI_AV_COMPLETE,			/* fi_eq_entry: an insertion has ended; data: number of addresses inserted */
	FI_JOIN_COMPLETE,		/* fi_eq_entry: fid, a struct fid_mc, has joined */
};

struct fi_eq_entry {
	fid_t fid;			/* the object of the event */
	void *context;			/* of the operation; if it had none, of the object */
	uint64_t data;
};

/* A failure, in place of any event. */
struct fi_eq_err_entry {
	fid_t fid;
	void *context;
	uint64_t data;			/* of FI_AV_COMPLETE: index of the address that failed */
	int err;			/* positive: FI_E* */
	int prov_errno;			/* the provider's own, for fi_eq_strerror() */
	/*
	 * Further data; for a refused connection the param of fi_reject(). In: a buffer of the caller, which is filled
	 * in. With err_data_size 0, or in a fabric opened for a version below 1.5, out: a buffer of the provider, valid
	 * until the next read of the queue.
	 */
	void *err_data;
	size_t err_data_size;
};

struct fi_eq_cm_entry {
	fid_t fid;
	struct fi_info *info;		/* of FI_CONNREQ: for opening an endpoint for fi_accept(); its handle is for
					 * fi_reject(). The caller frees it. Otherwise NULL */
	__extension__ uint8_t data[];	/* param of the peer's fi_connect() or fi_accept(): the rest of the length that
					 * fi_eq_read() returned, possibly padded */
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

/* Open an event queue. Closing it returns -FI_EBUSY while an object is bound to it. Events that were not read are
 * lost. */
static inline int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context)
{
	return fabric->ops->eq_open(fabric, attr, eq, context);
}

/*
 * Take an event. flags: FI_PEEK leaves it in the queue. Returns the length stored in buf; *event is the kind.
 * -FI_EAGAIN: the queue is empty. -FI_EAVAIL: a failure comes first, call fi_eq_readerr(). -FI_ETOOSMALL: the event is
 * longer than len, and stays. If the call returns -FI_EOVERRUN, or an error entry has err FI_EOVERRUN, events were lost
 * and the queue cannot be used any more.
 */
static inline ssize_t fi_eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	return eq->ops->read(eq, event, buf, len, flags);
}

/* Take a failure. Returns the length of the entry, or -FI_EAGAIN. flags: FI_PEEK leaves it in the queue. */
static inline ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	return eq->ops->readerr(eq, buf, flags);
}

/* Write an event of the program: len bytes, which are copied. Returns len. -FI_EAGAIN: the queue is full; -FI_ENOMEM.
 * flags: 0. */
static inline ssize_t fi_eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len, uint64_t flags)
{
	return eq->ops->write(eq, event, buf, len, flags);
}

/* fi_eq_read() that waits up to timeout ms. -FI_EAGAIN: the time is over, or a signal arrived. Not with
 * FI_WAIT_NONE. */
static inline ssize_t fi_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
				  uint64_t flags)
{
	return eq->ops->sread(eq, event, buf, len, timeout, flags);
}

/* Describe prov_errno and err_data of an error entry as text: in buf, cut off at len bytes including the NUL, or with
 * buf NULL in memory of the provider. */
static inline const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf,
					 size_t len)
{
	return eq->ops->strerror(eq, prov_errno, err_data, buf, len);
}


/*
 * Completion queues - fi_cq(3)
 */

/* Contents of an entry. Each format begins with all members of the one before. */
enum fi_cq_format {
	FI_CQ_FORMAT_UNSPEC,		/* the provider's choice */
	FI_CQ_FORMAT_CONTEXT,		/* struct fi_cq_entry */
	FI_CQ_FORMAT_MSG,		/* struct fi_cq_msg_entry */
	FI_CQ_FORMAT_DATA,		/* struct fi_cq_data_entry */
	FI_CQ_FORMAT_TAGGED,		/* struct fi_cq_tagged_entry */
};

/* The meaning of the argument cond of fi_cq_sread(). */
enum fi_cq_wait_cond {
	FI_CQ_COND_NONE,		/* cond is ignored: wake up for any entry */
	FI_CQ_COND_THRESHOLD,		/* cond is a size_t, not a pointer: wake up for this number of entries. A hint:
					 * it may wake up for fewer */
};

struct fi_cq_attr {
	size_t size;			/* entries, at least; 0: the provider's choice */
	uint64_t flags;			/* FI_AFFINITY: signaling_vector is set */
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj;
	int signaling_vector;		/* CPU for interrupts; a wish */
	enum fi_cq_wait_cond wait_cond;
	struct fid_wait *wait_set;	/* with FI_WAIT_SET; borrowed */
#ifdef WEFT_API_2_7
	struct fid_xpu_ctx *xpu_ctx;	/* since 2.7. With FI_XPU in flags: the device that reads the queue; borrowed */
#endif /* WEFT_API_2_7 */
};

/* The entries. A member has the same meaning in all of them. The flags tell which members are set. */
struct fi_cq_entry {
	void *op_context;		/* of the operation; NULL if there was none, as at the target of an RMA write */
};

struct fi_cq_msg_entry {
	void *op_context;
	uint64_t flags;			/* kind (FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC...) and operation (FI_SEND,
					 * FI_RECV, FI_READ, FI_REMOTE_WRITE...); FI_REMOTE_CQ_DATA, FI_MULTI_RECV */
	size_t len;			/* bytes received, including the prefix of FI_MSG_PREFIX */
};

struct fi_cq_data_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;			/* for FI_MULTI_RECV buffers: the start of this message in the buffer */
	uint64_t data;			/* with FI_REMOTE_CQ_DATA: the peer's data, in this machine's byte order */
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
 * A failed operation, including one whose success would not have been reported. A program has the members of its
 * version: up to err_data since 1.0, err_data_size since 1.5, src_addr since 1.20.
 */
struct fi_cq_err_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	size_t olen;			/* of FI_ETRUNC: bytes that did not fit and are lost */
	int err;			/* positive: FI_E* */
	int prov_errno;			/* the provider's own, for fi_cq_strerror() */
	/*
	 * Further data; for FI_EADDRNOTAVAIL the peer's address, as fi_av_insert() takes it. In: a buffer of the
	 * caller, which is filled in. With err_data_size 0, or in a fabric opened for a version below 1.5, out: a
	 * buffer of the provider, valid until the next read of the queue.
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
#ifdef WEFT_API_2_7
	int (*export_xpu)(struct fid_cq *cq, uint64_t flags, struct fid_xpu_cq *xpu_cq);	/* since 2.7 */
#endif /* WEFT_API_2_7 */
};

struct fid_cq {
	struct fid fid;
	struct fi_ops_cq *ops;
};

/*
 * Take up to count entries in the queue's format; count 0 only drives progress. Returns the number of entries.
 * -FI_EAGAIN: the queue is empty. -FI_EAVAIL: a failure comes first, call fi_cq_readerr(). If the call returns
 * -FI_EOVERRUN, or an error entry has err FI_EOVERRUN, entries were lost and the queue cannot be used any more.
 */
static inline ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return cq->ops->read(cq, buf, count);
}

/* The same, with the source of each receive. It is FI_ADDR_NOTAVAIL if the endpoint lacks FI_SOURCE, or the peer is not
 * in the address vector. */
static inline ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	return cq->ops->readfrom(cq, buf, count, src_addr);
}

/* Take a failure. Returns 1 or -FI_EAGAIN. Set err_data_size before the call. flags: 0. This function presets src_addr,
 * because a provider does not write it for programs of older versions. */
static inline ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	if (buf)
		buf->src_addr = FI_ADDR_NOTAVAIL;
	return cq->ops->readerr(cq, buf, flags);
}

/* fi_cq_read() that waits up to timeout ms, or until cond is met (wait_cond of the queue). -FI_EAGAIN: the time is
 * over, or a signal or fi_cq_signal() came. Not with FI_WAIT_NONE and FI_WAIT_SET. */
static inline ssize_t fi_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout)
{
	return cq->ops->sread(cq, buf, count, cond, timeout);
}

static inline ssize_t fi_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr,
				      const void *cond, int timeout)
{
	return cq->ops->sreadfrom(cq, buf, count, src_addr, cond, timeout);
}

/* Wake all threads that wait in fi_cq_sread() or fi_cq_sreadfrom(). Any thread. */
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
 * A counter has two values, for successes and for failures. The objects to which it is bound, and the flags of these
 * bindings, determine the operations that it counts. The values wrap after domain_attr::max_cntr_value and
 * max_err_cntr_value.
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
#ifdef WEFT_API_2_7
	struct fid_xpu_ctx *xpu_ctx;	/* since 2.7. With FI_XPU in flags: the device that reads it; borrowed */
#endif /* WEFT_API_2_7 */
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
#ifdef WEFT_API_2_7
	int (*export_xpu)(struct fid_cntr *cntr, uint64_t flags, struct fid_xpu_cntr *xpu_cntr);	/* since 2.7 */
#endif /* WEFT_API_2_7 */
};

struct fid_cntr {
	struct fid fid;
	struct fi_ops_cntr *ops;
};

/* The number of successes, or of failures. A change by one of the calls below may become visible with a delay. */
static inline uint64_t fi_cntr_read(struct fid_cntr *cntr)
{
	return cntr->ops->read(cntr);
}

static inline uint64_t fi_cntr_readerr(struct fid_cntr *cntr)
{
	return cntr->ops->readerr(cntr);
}

/* Add to a value, or replace it. Replace it only while no operation changes it, since that change may be lost. */
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

/* Wait until the number of successes is at least threshold. 0. -FI_ETIMEDOUT: timeout ms have passed. -FI_EAVAIL: a
 * failure was counted meanwhile. Not with FI_WAIT_NONE and FI_WAIT_SET. */
static inline int fi_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
{
	return cntr->ops->wait(cntr, threshold, timeout);
}
#ifdef WEFT_API_2_7

/* Fill in a handle by which the device of a queue or counter that was opened with FI_XPU reads it: fi_xpu.h. The caller
 * owns the handle, and may copy it to the device. flags: 0. -FI_EINVAL: opened without FI_XPU. Since 2.7; an older
 * library has no such function, and the call must not be made there. */
static inline int fi_cq_export_xpu(struct fid_cq *cq, uint64_t flags, struct fid_xpu_cq *xpu_cq)
{
	return cq->ops->export_xpu(cq, flags, xpu_cq);
}

static inline int fi_cntr_export_xpu(struct fid_cntr *cntr, uint64_t flags, struct fid_xpu_cntr *xpu_cntr)
{
	return cntr->ops->export_xpu(cntr, flags, xpu_cntr);
}
#endif /* WEFT_API_2_7 */

#ifdef __cplusplus
}
#endif

#endif /* FI_EQ_H */
