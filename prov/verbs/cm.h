/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of endpoints, over librdmacm (cm.c).
 */
#ifndef VRB_CM_H
#define VRB_CM_H

#include "verbs/alive.h"
#include "verbs/channel.h"
#include "verbs/ep.h"

#define VRB_CM_DATA_MAX		55	/* bytes of fi_connect's data: a CM request's, less the length before it */
#define VRB_RESOLVE_MS		2000	/* for an address, and again for a route; cm.c asks for either again */

/* An endpoint of a connected kind. The engine's lock guards all fields that change after open. */
struct vrb_conn_ep {
	struct vrb_ep ep;
	struct rdma_cm_id *id;		/* owned; unanswered.c may take it over */
	struct vrb_cm_sink sink;	/* of id, until the endpoint stops */
	union fab_any_addr peer;
	/* Private data of the next CM message: length and bytes of fi_connect() or fi_accept(), and the kind's own.
	 * Before that call, the private data of the request with which the endpoint was opened. */
	uint8_t cm_data[VRB_CM_DATA_MAX + 1];
	uint8_t resolved_again;		/* how often an address or route was asked for once more */
	bool asked;			/* rdma_connect() was called; while CONNECTING there is no answer yet */
	bool req_sent;			/* the peer's program can have the request */
	struct vrb_alive alive;
};

/* The endpoint of a connected kind. Any thread. */
static inline struct vrb_conn_ep *vrb_conn_of(const struct vrb_ep *ep)
{
	return fab_container(ep, struct vrb_conn_ep, ep);
}

/* cm.c: the connection calls of a connected endpoint, for the table of its kind. */
extern struct fi_ops_cm vrb_cm_ops;
/* The parameters of rdma_connect() and rdma_accept(): cm_data as private data, and limits of the device. */
struct rdma_conn_param vrb_cm_param(const struct vrb_ep *ep);
/* Stands before the private data of a request between InfiniBand addresses. It is as long as the header that librdmacm
 * puts there for IP addresses, so that both have the same room for data. Nothing reads it. */
struct vrb_ib_ahead {
	uint8_t zero[4];
	uint8_t src_gid[16], dest_gid[16];
};
_Static_assert(sizeof(struct vrb_ib_ahead) == 36, "as upstream's");
/* rdma_connect(), with a struct vrb_ib_ahead where one is needed. Changes *param. 0, or -1 with errno. Lock held. */
int vrb_cm_ask(struct vrb_ep *ep, struct rdma_conn_param *param);
/* A message has come before the peer's last word of the handshake: tell the CM, which then reports the connection.
 * Lock held. */
void vrb_cm_notify(struct vrb_ep *ep);
/* Handle an event of the endpoint's id, which the caller acknowledges. Lock held. */
void vrb_cm_event(struct vrb_ep *ep, const struct rdma_cm_event *event);
/* Log that an id on the device of this name got RDMA_CM_EVENT_ADDR_CHANGE: one line a second at most. Any thread. */
void vrb_cm_address_changed(const char *device);
/* The vrb_cm_sink.event of endpoints. */
void vrb_cm_sink_event(struct vrb_cm_sink *sink, const struct rdma_cm_event *event);
/* The endpoint is connected: write FI_CONNECTED, with the peer's data of event (NULL: without). Lock held. */
void vrb_cm_connected(struct vrb_ep *ep, const struct rdma_cm_event *event);
/* The same, with these bytes of the peer's application, which are copied. Lock held. */
void vrb_cm_up(struct vrb_ep *ep, const void *data, size_t len);
/* The attempt to connect has failed: write an error event of err, with a text of step and event. Lock held. */
void vrb_cm_refused(struct vrb_ep *ep, int err, const struct rdma_cm_event *event, const char *step);
/* The device or its completion queue has failed: end the connection, or the attempt, with err and why. Lock held. */
void vrb_cm_lost(struct vrb_ep *ep, int err, const char *why);
/* The peer of a connection is silent: end it, and all that is outstanding, with err and why, a constant. Lock held. */
void vrb_cm_silent(struct vrb_ep *ep, int err, const char *why);
/* Write a length byte and paramlen bytes of param to `to`, which has room for VRB_CM_DATA_MAX + 1 bytes: the private
 * data of a CM message. 0, or -FI_EINVAL, logged. */
int vrb_cm_pack(uint8_t *to, const void *param, size_t paramlen);
/* The application's bytes in the private data of a CM message, borrowed from it; *cnt is their number, 0 if the data is
 * not of this form. */
const void *vrb_cm_unpack(const void *data, uint8_t len, size_t *cnt);
/* The same of this kind's private data; NULL: as vrb_cm_unpack(). */
const void *vrb_cm_data(const struct vrb_kind *kind, const void *data, uint8_t len, size_t *cnt);

/* ---- unanswered.c ---- */

/* Part of closing an endpoint whose connection request has no answer yet (vrb_quirks.holds_unanswered). Its queue pair
 * is in the error state and has nothing outstanding. Takes over id, queue pair and hardware queue, and sets them to
 * NULL in ep. False (no memory): nothing has changed, and destroying the queue pair will block until the answer. No
 * lock held. */
bool vrb_unanswered_keep(struct vrb_ep *ep);
/* Free the requests that have been answered since; with `all` the others, too, which blocks until the kernel lets go of
 * them, ten seconds at most. No lock held. */
void vrb_unanswered_end(struct vrb_domain *domain, bool all);

#endif
