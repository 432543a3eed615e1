/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Kinds of queue pairs, a table each: what differs between reliable connections (rc.c), datagrams and others is
 * here, is chosen once, at fi_getinfo or fi_endpoint, and no other file asks which kind it has.
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

/* Slots are called by ep.c, cm.c, info.c and post.h. Those marked (lock) with the lock of base.progress held. 0 or
 * -FI_E*, logged, where they return int. */
struct vrb_kind {
	enum fi_ep_type ep_type;
	const char *suffix;		/* of the domain's name, after the device's: each kind has its own domains */
	uint32_t prefix;		/* bytes before a message, in the buffers of both ends, that are not sent */

	/* fi_getinfo: the entries of this kind. vrb_msg_getinfo(), or the kind's own. -FI_ENODATA, -FI_EINVAL,
	 * -FI_ENOMEM. */
	int (*getinfo)(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info);
	/* Has the device such queue pairs? */
	bool (*offered)(const struct vrb_device *dev);
	/* Can such queue pairs do all of their operations on memory that is paged in on demand? NULL: no. */
	bool (*odp)(const struct ibv_device_attr_ex *attr);
	/* What an entry says otherwise than what the device does (info.c): protocol, capabilities, sizes. */
	void (*fill)(struct fi_info *info, const struct vrb_device *dev);

	size_t cm_data_max;		/* bytes of fi_connect's data, FI_OPT_CM_DATA_SIZE */

	/* fi_av_open of its domains */
	int (*av_open)(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
	/* fi_srx_context of its domains; kinds without leave it out */
	int (*srx_open)(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx, void *context);
	/* fi_endpoint: its place on the device (an id, an address). After a failure undo has been done. */
	int (*open)(struct vrb_ep *ep, const struct fi_info *info);
	/* The last of fi_close: what open made. Nothing can reach the endpoint any more. */
	void (*close)(struct vrb_ep *ep);
	/* fi_enable: ep->qp and ep->inline_max; receives can be posted from now on. ep->hw_cq is there. */
	int (*create)(struct vrb_ep *ep);
	/* What create made goes. (lock, once enabled) */
	void (*destroy)(struct vrb_ep *ep);
	/* All that is outstanding ends soon, by work completions (an error for each receive, and one for the last
	 * send at least, see vrb_post_marker()) or, where the hardware reports none, before this returns. (lock) */
	void (*halt)(struct vrb_ep *ep);

	struct fi_ops_cm *cm;		/* names, connections */
	/* Start towards ep->peer with ep->cm_data, or accept the request that it was opened with. Those without
	 * leave the three out. (lock) */
	int (*connect)(struct vrb_ep *ep);
	int (*accept)(struct vrb_ep *ep);
	/* Tell the peer that it is over. (lock) */
	void (*disconnect)(struct vrb_ep *ep);
	/* An event of ep->channel; its caller acknowledges it. (lock) */
	void (*event)(struct vrb_ep *ep, const struct rdma_cm_event *event);

	/* Complete a request, and the struct vrb_tx that its wr_id points to: to whom it goes, without the prefix.
	 * NULL: the queue pair knows. -FI_EINVAL, -FI_ENOENT ...: not posted. (lock) */
	ssize_t (*aim)(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr);
	/* Complete the request of vrb_post_marker(), which goes nowhere: what a device looks at when it is posted.
	 * Those that are connected leave it out. (lock) */
	void (*aim_marker)(struct vrb_ep *ep, struct ibv_send_wr *wr);
	/* Post a receive: 0 or an errno of the device's. (lock) */
	int (*post_recv)(struct vrb_ep *ep, struct ibv_recv_wr *wr);
};

extern const struct vrb_kind vrb_rc;	/* rc.c */
extern const struct vrb_kind vrb_ud;	/* ud.c */
extern const struct vrb_kind vrb_xrc_kind;	/* xrc.c */

/* All, in the order of fi_getinfo's answer. */
extern const struct vrb_kind *const vrb_kinds[];
extern const size_t vrb_kind_cnt;

/* The kind of endpoints in a domain of this name, whose device is called `device`. NULL: there is none. */
const struct vrb_kind *vrb_kind_of(const char *domain, const char *device);

/* info.c: an entry for each address of a device's port that is up: of IP, and of InfiniBand (ib_info.c). */
int vrb_msg_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info);
/* An entry of this kind, in this fabric (copied), without addresses and complete otherwise; the caller's to free, NULL:
 * no memory. And what goes with every entry. Any thread. */
struct fi_info *vrb_info_of(const struct vrb_kind *kind, const struct vrb_device *dev, const char *fabric);
struct fab_offer vrb_offer(void);
/* mr.c, for odp: do these capabilities of a transport (IBV_ODP_SUPPORT_*) hold `more` and all that connections do? */
bool vrb_odp_has(const struct ibv_device_attr_ex *attr, uint32_t caps, uint32_t more);

/* ep.c, for kinds: what most of them do. */

/* What a queue pair of this endpoint is to have; the kind adds its type. */
struct ibv_qp_init_attr vrb_qp_attr(const struct vrb_ep *ep);
/* Log that the queue pair of these sizes was not to be had, for errno, or for a reason that nobody gave if that is 0:
 * the caller sets it so before, as a driver's library may leave it alone. -errno, or -FI_EIO. */
int vrb_qp_refused(const struct vrb_ep *ep, const char *call);
/* halt: the queue pair goes into the error state, which flushes it. */
void vrb_qp_halt(struct vrb_ep *ep);
/* post_recv: to ep->qp. */
int vrb_qp_post_recv(struct vrb_ep *ep, struct ibv_recv_wr *wr);

/* rc.c, for kinds that are connected by an id of the CM: open, close, connect. */
int vrb_id_open(struct vrb_ep *ep, const struct fi_info *info);
void vrb_id_close(struct vrb_ep *ep);
int vrb_id_connect(struct vrb_ep *ep);

#endif
