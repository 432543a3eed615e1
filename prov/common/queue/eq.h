/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event queues, fi_eq(3): control events of a fabric in order, with a mutex of their own since several domains may
 * write here. Setup tier: plain code.
 *
 * An EQ owns an engine for what belongs to no domain (listening sockets and handshakes of passive endpoints), and
 * knows the engines of the endpoints bound to it, which a read or a wait drives too, unless they have a thread. Lock
 * order: an engine's lock, then eq->lock; never the other way.
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
	pthread_cond_t idle;		/* an engine that goes away is no longer being driven */
	struct fab_list events;		/* struct fab_eq_event */
	struct fab_eq_event *overrun;	/* owned: stands last, for ever, once an event was lost; in events then */
	struct fab_eq_event *last_err;	/* owned: read last; its err_data stays valid until the next read */
	struct fab_list engines;	/* struct fab_eq_driven: those of the endpoints bound here, counted */
	uint32_t ref;
	struct fab_engine engine;	/* for passive endpoints; shared (mutex) */
	struct fab_wait wait;
};

/* fi_eq_open: 0 or -FI_E*; the fabric's slot. */
int fab_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq, void *context);

/* Queue an event; data (len bytes) is copied. Any thread; an engine's lock may be held. 0 or -FI_ENOMEM (logged here;
 * the EQ is overrun then, fi_eq(3)). `owner` lets fab_eq_purge() find the events of an object that closes. */
int fab_eq_write(struct fab_eq *eq, uint32_t event, const void *data, size_t len, struct fid *owner);
/* The same of an event about fid that says something is done: a struct fi_eq_entry. */
int fab_eq_write_done(struct fab_eq *eq, uint32_t event, struct fid *fid, void *context, uint64_t data);
/* The same of a connection event about fid: a struct fi_eq_cm_entry with data (len bytes) behind it. info, or NULL, is
 * the reader's once this has returned 0. */
int fab_eq_write_cm(struct fab_eq *eq, uint32_t event, struct fid *fid, struct fi_info *info, const void *data,
		    size_t len);
/* Queue an error event about fid. data is the event's (index of an address that did not go into an AV; else 0), err
 * is a positive FI_E*, err_data (reject data) is copied. */
int fab_eq_write_err(struct fab_eq *eq, struct fid *fid, void *context, uint64_t data, int err, int prov_errno,
		     const void *err_data, size_t err_data_len);
/* The same of a connection that fid does not get. text is copied: what fi_eq_strerror says of prov_errno until the next
 * error is read. */
int fab_eq_write_cm_err(struct fab_eq *eq, struct fid *fid, int err, int prov_errno, const void *err_data,
			size_t err_data_len, const char *text);
/* Something is bound to this EQ (fi_close of it is -FI_EBUSY), or no longer. Any thread, an engine's lock may be
 * held. */
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

/* Drop unread events of an object that is being closed; frees the fi_info of unread FI_CONNREQs through `drop`, if
 * given. */
void fab_eq_purge(struct fab_eq *eq, struct fid *owner, void (*drop)(uint32_t event, void *data, size_t len));

/* An endpoint whose engine is `engine` is bound here / goes away. Any thread, no lock held, not from within a pass.
 * 0 or -FI_E*. */
int fab_eq_add_engine(struct fab_eq *eq, struct fab_engine *engine);
void fab_eq_del_engine(struct fab_eq *eq, struct fab_engine *engine);

/* fi_domain_bind(3): the domain's bind slot. bfid is an event queue of the domain's fabric, flags are 0 or FI_REG_MR;
 * the domain takes a reference. 0; -FI_EINVAL, -FI_EBADFLAGS, -FI_EBUSY (there is one already): logged. */
int fab_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

#endif
