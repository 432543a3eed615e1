/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connection management: the stand-in for librdmacm.so.1. An address and port are a listening socket in the abstract
 * name space, a connection between two ids is a socket of packets between them, each packet a struct sv_cm_msg. All
 * under the device's lock (sv.h), which its thread holds when anything arrives.
 */
#ifndef SV_CM_H
#define SV_CM_H

#include <rdma/rdma_cma.h>
#include "sv.h"

#define SV_CM_PRIV_MAX	256

enum sv_cm_type {
	SV_CM_REQ = 1, SV_CM_REP, SV_CM_RTU, SV_CM_REJ, SV_CM_DREQ, SV_CM_DREP,
	SV_CM_SIDR_REQ, SV_CM_SIDR_REP,
	SV_CM_DROPPED,			/* no message of a real CM: the REQ was dropped, and no answer will come */
};

struct sv_cm_msg {
	uint32_t magic;			/* SV_MAGIC */
	uint8_t type;			/* enum sv_cm_type */
	uint8_t responder_resources, initiator_depth;
	uint8_t rnr_retry_count;
	uint8_t tos;
	uint32_t qpn;
	uint32_t known_qpn;		/* what the CM knows the connection by: qpn, if no test says another */
	uint32_t qkey;
	int32_t status;			/* of a reject, as InfiniBand numbers them */
	uint8_t gid[16];		/* the sender's */
	union ibv_gid guid;		/* stands for that of its device */
	struct sockaddr_storage src, dst;
	uint8_t priv[SV_CM_PRIV_MAX];	/* as long as the type has room, the rest zeros: receivers see no length */
};

enum sv_id_state {
	SV_ID_IDLE, SV_ID_BOUND, SV_ID_RESOLVED, SV_ID_ROUTED, SV_ID_LISTENING,
	SV_ID_INCOMING,			/* accepted socket without its request yet: the application knows nothing */
	SV_ID_CONNECTING, SV_ID_REQUESTED, SV_ID_RESPONDED, SV_ID_ACCEPTED, SV_ID_CONNECTED,
	SV_ID_CLOSING, SV_ID_CLOSED,
};

#define SV_LISTEN_MAX	(SV_DEVICES_MAX * SV_ADDRS_MAX)

struct sv_listener {
	struct sv_source src;
	struct sv_id *id;
};

struct sv_id {
	struct rdma_cm_id id;
	struct fab_list all;		/* of the process */
	enum sv_id_state state;
	bool gone;			/* the other end has, before it was answered */
	bool sync;			/* created without a channel: calls wait */
	struct sv_source src;		/* the connection; fd -1: none */
	struct sv_timer retry;		/* of connect: the listener's queue is full, or the request was dropped */
	bool asked;			/* the request has left; */
	unsigned dropped;		/* and was dropped so many times */
	struct sv_listener *listeners;	/* bound names */
	int listener_cnt;
	int backlog, waiting;		/* requests that may wait until they are read, and that do */
	struct sv_id *listener;		/* of an incoming one */
	struct fab_list incoming;	/* of a listener: those whose request has not come yet, which are its own */
	struct fab_list link;		/* in that */
	struct sv_cm_msg peer;		/* what the other end said: its REQ or REP */
	struct sv_cm_msg mine;		/* REQ to be sent */
	/* Reads and atomics of the connection that may be under way from here, and to here. */
	uint8_t initiator_depth, responder_resources;
	uint8_t tos;			/* of the connection's packets: who connects says it */
	struct fab_list late;		/* messages that leave later; the first when the timer says */
	struct sv_timer later;
	struct sv_source known;		/* its place among the node's connections (cm_known.c); fd -1: it has none */
	struct sv_timer timewait;
	unsigned unacked;		/* events taken and not acknowledged */
};

struct sv_cm_event {
	struct rdma_cm_event event;
	struct fab_list link;
	uint8_t priv[SV_CM_PRIV_MAX];
};

struct sv_cm_channel {
	struct rdma_event_channel channel;
	struct fab_list events;
};

static inline bool sv_cm_is_stream(enum rdma_port_space ps)
{
	return ps == RDMA_PS_TCP || ps == RDMA_PS_IB;
}

static inline struct sv_id *sv_id(struct rdma_cm_id *id)
{
	return fab_container(id, struct sv_id, id);
}

/* ---- cm_event.c; lock held ---- */

/* For tests; lock not held. */
unsigned sv_test_channel_cnt(void);	/* channels that are open */
unsigned sv_test_drop_cnt(void);	/* requests that were dropped for lack of room in a backlog */
unsigned sv_test_event_cnt(enum rdma_cm_event_type type);	/* events that were read */
/* Tell each id of the process that has a device, and that the application knows. How many these are. */
unsigned sv_test_tell_ids(enum rdma_cm_event_type type, int status);

/* Bytes of private data that a message of this type, between such addresses, has room for. */
uint8_t sv_cm_priv_len(const struct sv_cm_msg *msg);
/* The GID that a connection of this id is from. */
uint8_t sv_cm_gid_index(const struct sv_id *id);
/* Tell the application. msg, if not NULL, gives private data and parameters. */
void sv_cm_tell(struct sv_id *id, enum rdma_cm_event_type type, int status, const struct sv_cm_msg *msg);
/* Take back what has not been fetched, and wait for acknowledgement of what has. */
void sv_cm_forget(struct sv_id *id);

/* ---- cm_addr.c ---- */

/* The context of a device that this library keeps open, or NULL. */
struct ibv_context *sv_cm_context(struct sv_device *device);
struct sv_id *sv_id_alloc(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps);
/* Calls of an id without a channel wait for their event here: 0, or -1 with errno. */
int sv_cm_wait(struct sv_id *id);

/* ---- cm_conn.c; lock held ---- */

void sv_cm_init(struct sv_id *id);				/* of a new id */
void sv_cm_enlist(struct sv_id *id);				/* sv_test_tell_ids() finds it */
void sv_cm_incoming(struct sv_source *src, uint32_t events);	/* of a listener: somebody connects */
void sv_cm_stop(struct sv_id *id);				/* let go of sockets and timers */

/* The old connection of a peer that was restarted: it ends, if it is established. */
void sv_cm_stale(struct sv_id *id);

/* ---- cm_known.c; lock held ---- */

void sv_cm_known_init(struct sv_id *id);			/* of a new id */
/* The message names this queue pair of the sender. */
void sv_cm_name(struct sv_cm_msg *msg, uint32_t qpn);
/* id->peer has come. False: it is of a stale connection, and the old one has been told. */
bool sv_cm_known_add(struct sv_id *id);
void sv_cm_known_del(struct sv_id *id);				/* idempotent */
/* Both ends have said that the connection is over: it is not known any more, and TIMEWAIT_EXIT is told later. */
void sv_cm_timewait(struct sv_id *id);

#endif
