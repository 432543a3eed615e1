/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queues, fi_eq(3): control events of a fabric, in order. An EQ has a mutex of its own, since several domains may
 * write to it. Not on the data path.
 *
 * An EQ owns an engine for sources that belong to no domain (listening sockets and handshakes of passive endpoints). It
 * knows the engines of the endpoints bound to it. Reading and waiting drive these engines, too, except those with a
 * thread. Lock order: an engine's lock, then eq->lock.
 */
#ifndef FAB_EQ_H
#define FAB_EQ_H

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include "common/engine/engine.h"
#include "common/wait/wait.h"

struct fab_fabric;

struct fab_eq_event;

struct fab_eq {
	struct fid_eq eq_fid;
	struct fab_fabric *fabric;	/* borrowed: open took a reference */
	uint64_t flags;			/* FI_WRITE: fi_eq_write allowed */
	pthread_mutex_t lock;		/* guards the events, engines, ref and wait */
	pthread_cond_t idle;		/* signalled when an engine that is being removed is not driven any more */
	struct fab_list events;		/* struct fab_eq_event */
	struct fab_eq_event *overrun;	/* owned; last in events for good, once an event was lost */
	struct fab_eq_event *last_err;	/* owned; its err_data stays valid until the next read */
	struct fab_list engines;	/* struct fab_eq_driven, one for each engine of the endpoints bound here */
	uint32_t ref;
	struct fab_engine engine;	/* for passive endpoints; lock is a mutex */
	struct fab_wait wait;
};

/* The fabric's fi_eq_open slot. 0 or -FI_E*. */
int fab_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);

/* Queue an event; data (len bytes) is copied. Any thread; an engine's lock may be held. `owner` identifies the events
 * that fab_eq_purge() drops when an object is closed. 0; -FI_ENOMEM (logged): the EQ is overrun from now on,
 * fi_eq(3). */
int fab_eq_write(struct fab_eq *eq, uint32_t event, const void *data, size_t len, struct fid *owner);
/* The same for the end of an operation on fid: a struct fi_eq_entry. */
int fab_eq_write_done(struct fab_eq *eq, uint32_t event, struct fid *fid, void *context, uint64_t data);
/* The same for a connection event of fid: a struct fi_eq_cm_entry followed by data (len bytes). If this returns 0, info
 * (or NULL) belongs to the reader of the event. */
int fab_eq_write_cm(struct fab_eq *eq, uint32_t event, struct fid *fid, struct fi_info *info, const void *data,
		    size_t len);
/* Queue an error event of fid. data is fi_eq_err_entry.data (for FI_AV_COMPLETE the index of the address that failed,
 * otherwise 0), err is a positive FI_E*, err_data is copied. */
int fab_eq_write_err(struct fab_eq *eq, struct fid *fid, void *context, uint64_t data, int err, int prov_errno,
		     const void *err_data, size_t err_data_len);
/* The same for a connection of fid that failed. text is copied; fi_eq_strerror() returns it for prov_errno until the
 * next error is read. */
int fab_eq_write_cm_err(struct fab_eq *eq, struct fid *fid, int err, int prov_errno, const void *err_data,
			size_t err_data_len, const char *text);
/* Take and drop a reference, for an object bound to this EQ; fi_close() of the EQ returns -FI_EBUSY while there are
 * any. Any thread; an engine's lock may be held. */
static inline void fab_eq_get(struct fab_eq *eq)
{
	pthread_mutex_lock(&eq->lock);
	eq->ref++;
	pthread_mutex_unlock(&eq->lock);
}

static inline void fab_eq_put(struct fab_eq *eq)
{
	pthread_mutex_lock(&eq->lock);
	eq->ref--;
	pthread_mutex_unlock(&eq->lock);
}

/* Drop the unread events of an object that is being closed. `drop`, unless NULL, is called with each of them, to free
 * the fi_info of an FI_CONNREQ. */
void fab_eq_purge(struct fab_eq *eq, struct fid *owner, void (*drop)(uint32_t event, void *data, size_t len));

/* Add an engine when an endpoint on it is bound here; remove it when the endpoint goes. Any thread, no lock held, not
 * within a pass. add: 0 or -FI_E*. */
int fab_eq_add_engine(struct fab_eq *eq, struct fab_engine *engine);
void fab_eq_del_engine(struct fab_eq *eq, struct fab_engine *engine);

/* The domain's bind slot, fi_domain_bind(3). bfid is an event queue of the domain's fabric; flags are 0 or FI_REG_MR.
 * The domain takes a reference. 0; -FI_EINVAL, -FI_EBADFLAGS, -FI_EBUSY (an event queue is bound already), logged. */
int fab_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

#endif
