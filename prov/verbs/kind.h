/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Kinds of queue pairs, each a table: reliable connections (rc.c), datagrams (ud.c), XRC (xrc.c). The table has all
 * that differs between kinds. It is chosen once, by fi_getinfo() or fi_endpoint(); no other file asks for the kind.
 */
#ifndef VRB_KIND_H
#define VRB_KIND_H

#include "common/hints/hints.h"
#include "verbs/verbs.h"

/* The arguments of fi_getinfo(3). */
struct vrb_query {
	uint32_t version;
	const char *node, *service;
	uint64_t flags;
	const struct fi_info *hints;
};

/* ep.c, cm.c, info.c and post.h call these. "(lock)": with the engine's lock held. A function that returns int returns
 * 0, or -FI_E* and has logged it, unless it says otherwise. */
struct vrb_kind {
	enum fi_ep_type ep_type;
	size_t ep_size;			/* bytes of the kind's endpoint, which begins with a struct vrb_ep */
	const char *suffix;		/* of a domain's name, behind the device's: each kind has domains of its own */
	uint32_t prefix;		/* bytes before a message, in the buffers of both ends, that are not sent */

	/* fi_getinfo(): the entries of this kind. -FI_ENODATA, -FI_EINVAL or -FI_ENOMEM. */
	int (*getinfo)(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info);
	/* True if the device has such queue pairs. */
	bool (*offered)(const struct vrb_device *dev);
	/* True if such queue pairs can do all their operations on memory that is paged on demand. NULL: they cannot. */
	bool (*odp)(const struct ibv_device_attr_ex *attr);
	/* Set the fields of an entry (info.c) that differ for this kind: protocol, capabilities, sizes. */
	void (*fill)(struct fi_info *info, const struct vrb_device *dev);

	size_t cm_data_max;		/* bytes of fi_connect's data, FI_OPT_CM_DATA_SIZE */
	bool sidr;			/* passive endpoints listen to the service of datagrams (SIDR), too */
	/* vrb_cm_unpack() of the private data of this kind. NULL: vrb_cm_unpack(). Any thread. */
	const void *(*unpack)(const void *data, uint8_t len, size_t *cnt);
	/* Add the kind's part to data, the private data with which a request is refused: before, it is that of
	 * vrb_cm_pack(). req is the private data of the request. Both have room for VRB_CM_DATA_MAX + 1 bytes. Returns
	 * the length of data. NULL: the kind adds nothing. Any thread. */
	uint8_t (*refusal)(const uint8_t *req, uint8_t *data);

	/* fi_av_open() of domains of this kind. */
	int (*av_open)(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
	const struct vrb_kind *srx;	/* of shared receive contexts (srx.h); NULL: endpoints have none */
	/* fi_endpoint(): bind the endpoint to the device (a CM id, an address). A failure leaves nothing to undo. */
	int (*open)(struct vrb_ep *ep, const struct fi_info *info);
	/* The last step of fi_close(): undo open. Nothing can reach the endpoint any more. */
	void (*close)(struct vrb_ep *ep);
	/* fi_enable(): set ep->qp and ep->inline_max. ep->hw_cq is set. Receives can be posted afterwards. */
	int (*create)(struct vrb_ep *ep);
	/* Undo create. (lock, once enabled) */
	void (*destroy)(struct vrb_ep *ep);
	/* The last step of fi_enable(): let events of the CM reach the endpoint. NULL: there are none. */
	int (*attach)(struct vrb_ep *ep);
	/* The first step of fi_close(): they reach it no more. NULL like attach. (lock) */
	void (*detach)(struct vrb_ep *ep);
	/* True if destroying the queue pair would wait for the peer (unanswered.c). NULL: it never does. (lock) */
	bool (*unanswered)(const struct vrb_ep *ep);
	/* Make all outstanding operations end soon. Either work completions report them: an error for each receive and
	 * at least one for the last send (vrb_post_marker()). Or they have ended when this returns. (lock) */
	void (*halt)(struct vrb_ep *ep);

	struct fi_ops_cm *cm;		/* names, connections */
	/* Connect to the peer with cm_data. Kinds without connections have NULL here and in the next two. (lock) */
	int (*connect)(struct vrb_ep *ep);
	/* Accept the request that the endpoint was opened with. (lock) */
	int (*accept)(struct vrb_ep *ep);
	/* End the connection, and let the peer know. (lock) */
	void (*disconnect)(struct vrb_ep *ep);
	/* Handle an event of the id, which the caller acknowledges. (lock) */
	void (*event)(struct vrb_ep *ep, const struct rdma_cm_event *event);

	/* Set the destination in a work request, and take the prefix off its buffers and off the struct vrb_tx that
	 * wr_id points to. NULL: the queue pair is connected. An error (-FI_EINVAL, -FI_ENOENT ...): the request is not
	 * posted. (lock) */
	ssize_t (*aim)(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr);
	/* Keep a request of FI_MORE, which is ready, for the next call of the device: aim of the next request takes it
	 * along, or a pass posts it. Its data stays where it is until it has completed. NULL: requests are not kept.
	 * False: it is not kept now. (lock) */
	bool (*hold)(struct vrb_ep *ep, const struct ibv_send_wr *wr);
	/* Post what is kept. NULL like hold. (lock) */
	void (*release)(struct vrb_ep *ep);
	enum ibv_wr_opcode marker_opcode;	/* of vrb_post_marker(): with 0, a write of no bytes */
	/* True if a connection can be asked whether its peer is there, by vrb_post_marker(). NULL: none can. (lock) */
	bool (*probes)(const struct vrb_ep *ep);
	/* True if requests of other endpoints cannot hold up those of ep. NULL: they cannot. (lock) */
	bool (*alone)(const struct vrb_ep *ep);
	/* Set the fields of the request of vrb_post_marker() that a device checks when it is posted, though it is never
	 * sent. NULL: there are none. (lock) */
	void (*aim_marker)(struct vrb_ep *ep, struct ibv_send_wr *wr);
	/* Post a receive. 0 or a positive errno of the device, not logged. (lock) */
	int (*post_recv)(struct vrb_ep *ep, struct ibv_recv_wr *wr);
	/* Have the next pass post a receive of a shared context again. NULL: a receive that no endpoint of the context
	 * wants is lost. (lock) */
	void (*repost)(struct vrb_ep *ep, struct vrb_rx *rx);
};

extern const struct vrb_kind vrb_rc;	/* rc.c */
extern const struct vrb_kind vrb_ud;	/* ud.c */
extern const struct vrb_kind vrb_xrc_kind;	/* xrc.c */

/* All kinds, in the order of their entries in the answer of fi_getinfo(). */
#define VRB_KIND_CNT	3
extern const struct vrb_kind *const vrb_kinds[VRB_KIND_CNT];

/* The kind of endpoints in a domain of this name, on the device of this name. NULL: the domain is not of the device, or
 * its suffix is of no kind. */
const struct vrb_kind *vrb_kind_of(const char *domain, const char *device);

/* vrb_kind.getinfo of connected kinds (info.c): an entry for each IP address and, from ib_info.c, each InfiniBand
 * address of ports that are up. Any thread. */
int vrb_msg_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info);
/* Make an entry of this kind and port in this fabric (copied), complete except for addresses. The caller frees it.
 * NULL: no memory. Any thread. */
struct fi_info *vrb_info_of(const struct vrb_kind *kind, const struct vrb_device *dev, const char *fabric);
/* The description of verbs entries for the matcher (common/hints). Any thread. */
struct fab_offer vrb_offer(void);
/* For vrb_kind.odp (mr.c): true if the capabilities of a transport (IBV_ODP_SUPPORT_*) include `more` and those that
 * connected queue pairs need. */
bool vrb_odp_has(const struct ibv_device_attr_ex *attr, uint32_t caps, uint32_t more);

/* ---- ep.c: functions that most kinds use ---- */

/* The attributes of a queue pair for this endpoint; the kind adds the type. */
struct ibv_qp_init_attr vrb_qp_attr(const struct vrb_ep *ep);
/* Bytes that are sent inline: as many as the queue pair that was made with these sizes can, and no more than
 * announced. */
uint32_t vrb_inline_max(const struct vrb_ep *ep, const struct ibv_qp_cap *cap);
/* Log that `call` could not make the endpoint's queue pair, with its sizes and errno. The caller sets errno to 0 before
 * the call, since a driver's library may fail without setting it. Returns -errno, or -FI_EIO if errno is 0. */
int vrb_qp_refused(const struct vrb_ep *ep, const char *call);
/* Log that `call` could not make an SRQ with the endpoint's sizes. Returns -errno. */
int vrb_srq_refused(const struct vrb_ep *ep, const char *call);
/* Destroy an SRQ of the endpoint; a failure is logged. */
void vrb_srq_destroy(const struct vrb_ep *ep, struct ibv_srq *srq);
/* A vrb_kind.halt: move the queue pair to the error state, which flushes its requests. Lock held. */
void vrb_qp_halt(struct vrb_ep *ep);
/* A vrb_kind.post_recv: post to ep->qp. Lock held. */
int vrb_qp_post_recv(struct vrb_ep *ep, struct ibv_recv_wr *wr);

/* ---- rc.c: for kinds that are connected by a CM id ---- */

/* A vrb_kind.open: get the id, from the request or the passive endpoint of info->handle, or a new one that is bound to
 * info->src_addr. */
int vrb_id_open(struct vrb_ep *ep, const struct fi_info *info);
/* A vrb_kind.close: destroy the id. */
void vrb_id_close(struct vrb_ep *ep);
/* A vrb_kind.attach and detach: the id's events go to the channel of the endpoint's engine; they go to nobody. */
int vrb_id_attach(struct vrb_ep *ep);
void vrb_id_detach(struct vrb_ep *ep);
/* A vrb_kind.connect: resolve the peer; the events that follow go on from there. Lock held. */
int vrb_id_connect(struct vrb_ep *ep);

#endif
