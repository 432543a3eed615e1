/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What belongs to the whole provider: its identity, parameters, devices, and the objects that its files share.
 *
 * Endpoints are queue pairs, of a kind each (kind.h). Hardware completes to queues of a poller (poller.c), one for each
 * progress engine in use, which turns work completions into entries of prov/common's completion queues and counters.
 */
#ifndef VRB_VERBS_H
#define VRB_VERBS_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include <rdma/rdma_cma.h>
#include "base/addr.h"
#include "base/pool.h"
#include "common/endpoint/endpoint.h"
#include "common/domain/domain.h"

#define VRB_TX_SIZE		384	/* work requests of an endpoint that does not ask for another number */
#define VRB_RX_SIZE		384
#define VRB_IOV_LIMIT		8
#define VRB_INLINE		256	/* bytes asked of a device for messages that travel in the work request */
#define VRB_MIN_RNR_TIMER	12	/* 0.64 ms */
#define VRB_ATOMIC_LEN		8	/* bytes that an atomic changes */
#define VRB_RESOLVE_MS		2000	/* for an address, and again for a route */
#define VRB_CM_DATA_MAX		55	/* bytes of fi_connect's data: a CM request's, less the length before it */

/* Environment, read once at initialisation (prov.c). */
struct vrb_params {
	char *iface;			/* FI_VERBS_IFACE, or NULL */
	char *device_name;		/* FI_VERBS_DEVICE_NAME: a comma-separated list, or NULL */
	size_t tx_size, rx_size;
	size_t tx_iov_limit, rx_iov_limit;
	size_t inline_size;
	int gid_idx;			/* -1: chosen by itself */
	int min_rnr_timer;		/* as InfiniBand numbers times, 0 to 31 */
	bool use_odp, use_dmabuf;
	bool prefer_xrc;
	char *xrcd_filename;		/* FI_VERBS_XRCD_FILENAME, or NULL */
	bool use_name_server;		/* datagram endpoints can be found (names.h), */
	int name_server_port;		/* and others are, at this UDP port */
};
extern struct vrb_params vrb_params;
extern struct fi_provider vrb_prov;

#define VRB_LOG(level, subsys, ...) FI_LOG(&vrb_prov, level, subsys, __VA_ARGS__)
#define VRB_WARN(subsys, ...) FI_WARN(&vrb_prov, subsys, __VA_ARGS__)

/* ---- lib.c ---- */

/* Are libibverbs and librdmacm there? Loads them when a device may be. Any thread; what is broken is logged once. */
bool vrb_lib_ready(void);
/* Has libibverbs ibv_reg_dmabuf_mr()? It is loaded. */
bool vrb_lib_dmabuf(void);
/* Likewise, _ibv_query_gid_table()? */
bool vrb_lib_gid_table(void);

/* ---- device.c ---- */

/* A port of a device, as librdmacm opened it. Found once, kept for the life of the process. */
struct vrb_device {
	struct vrb_device *next;
	struct ibv_context *verbs;
	uint8_t port_num;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint32_t inline_max;		/* bytes that a queue pair takes inline */
	char name[IBV_SYSFS_NAME_MAX];	/* the domain's name */
	char fabric[FI_NAME_MAX];	/* the fabric's: that of GID 0; an entry has that of its address (fabric.c) */
};

/* The CM's ids: what has addresses of InfiniBand has ports of its own. */
static inline enum rdma_port_space vrb_port_space(const struct sockaddr *addr)
{
	return addr->sa_family == FAB_AF_IB ? RDMA_PS_IB : RDMA_PS_TCP;
}

/* The device whose port has this address, or NULL: none, or one that is left out or out of order (logged once). */
const struct vrb_device *vrb_device_of(const struct sockaddr *addr);
/* One that was found before, by the name of a domain, which may have the suffix of a kind behind the device's: its
 * lowest port; NULL: none. And the port that an entry means, by its domain and source address, or the lowest where it
 * has none. */
const struct vrb_device *vrb_device_named(const char *domain);
const struct vrb_device *vrb_device_meant(const struct fi_info *info);
/* Has this port the source address of an entry, of whatever format? */
bool vrb_device_has(const struct vrb_device *dev, const struct fi_info *info);
/* Buffers that one request may read into (info.c); and the requests that an operation with up to iov_limit buffers may
 * come to, since more of them are read by several. */
uint32_t vrb_read_iov_limit(const struct vrb_device *dev);
uint32_t vrb_requests(const struct vrb_device *dev, uint32_t iov_limit);
/* That which this port of an open device is, or NULL as above. */
const struct vrb_device *vrb_device_at(struct ibv_context *verbs, uint8_t port_num);
bool vrb_devices_known(void);	/* has any been looked at, whether it works or not? */
bool vrb_device_iwarp(const struct vrb_device *dev);
/* Why there is no entry of it, for those who ask (common/explain/explain.h). */
void vrb_say_lacks(const struct vrb_device *dev, const char *what, const char *wanted, const char *found);
void vrb_devices_fini(void);	/* forget all; no object of the provider is left */

/* ---- fabric.c ---- */

/* The fabric of an endpoint that is known by this GID of the port, into name; and of a port of RoCE by an address of
 * this network ("10.1.0.0/16"). */
void vrb_fabric_of_gid(char *name, size_t size, const struct vrb_device *dev, const union ibv_gid *gid);
void vrb_fabric_of_network(char *name, size_t size, const char *network);
bool vrb_device_roce(const struct vrb_device *dev);

/* ---- nic.c ---- */

/* What info->nic says of a device, for whoever frees the info. 0, -FI_ENOMEM. */
int vrb_nic_open(const struct vrb_device *dev, struct fid_nic **nic);

/* ---- gid.c ---- */

enum vrb_gid_sort {
	VRB_GID_LINK,			/* fe80::/10 */
	VRB_GID_V4,			/* ::ffff:a.b.c.d */
	VRB_GID_V6,
	VRB_GID_SORTS
};

struct vrb_gids {
	bool have[VRB_GID_SORTS];
	uint8_t index[VRB_GID_SORTS];	/* the first of its sort in the port's table */
	uint8_t own;			/* what the port is known by */
};

struct vrb_gid {
	union ibv_gid gid;
	enum vrb_gid_sort sort;
	uint8_t index;			/* in the port's table */
	bool routable;			/* routers know it */
};

/* What is done with a GID of a port. False: it was the last that is wanted. */
typedef bool vrb_gid_fn(const struct vrb_gid *gid, void *arg);

enum vrb_gid_sort vrb_gid_sort(const union ibv_gid *gid);
/* All that the port has, in the order of its table, which may have a thousand entries: read by one call where
 * libibverbs has that, else by one each. */
void vrb_gids_see(struct ibv_context *verbs, uint8_t port_num, vrb_gid_fn *see, void *arg);
void vrb_gids_find(const struct vrb_device *dev, struct vrb_gids *gids);
/* Which to send from to that one. */
uint8_t vrb_gid_towards(const struct vrb_gids *gids, const union ibv_gid *dest);

/* ---- domain.c ---- */

struct vrb_kind;			/* kind.h */

struct vrb_domain {
	struct fab_domain base;
	const struct vrb_device *dev;
	const struct vrb_kind *kind;	/* of its endpoints */
	struct ibv_pd *pd;		/* owned */
	bool odp;			/* regions are paged on demand: FI_VERBS_USE_ODP, and the device can */
	pthread_mutex_t lock;		/* guards the two lists; engine locks are taken inside */
	struct fab_list pollers;	/* struct vrb_poller.link */
	struct fab_list unanswered;	/* unanswered.c's */
	_Atomic bool last_told;		/* the device has told of a queue pair's last shared receive, */
	_Atomic uint32_t last_missed;	/* or has not, in time */
	struct vrb_xrc *xrc;		/* xrc_share.c's: NULL while there is no XRC endpoint */
};

extern struct fi_ops_mr vrb_mr_ops;	/* mr.c */
/* Are regions of the domain to be paged on demand? If that is wanted and the device cannot, one line says so. */
bool vrb_mr_odp(const struct vrb_device *dev, const struct vrb_kind *kind);
/* What fi_mr_desc() gives is a struct ibv_mr, whose context is NULL if the processor cannot read the memory. */
static inline bool vrb_desc_foreign(const struct ibv_mr *desc)
{
	return !desc->context;
}

/* ---- async.c ---- */

#define VRB_BAD_MAX	4

/* An engine's ear for what a device tells on its own. */
struct vrb_alarm {
	struct fab_list link;
	const struct vrb_device *dev;
	struct fab_source events;	/* of the device; whoever comes first reads them */
	struct fab_source bell;		/* an eventfd, owned: there is something for this engine; */
	bool dead;			/* all of the device is lost, */
	const void *bad[VRB_BAD_MAX];	/* or these queues and queue pairs, of whoever they are */
	int bad_cnt;
	/* Act on it: NULL: the device has failed. Engine's lock held. Set before the start. */
	void (*lost)(struct vrb_alarm *alarm, const void *element);
};

/* A queue pair that takes shared receives: has it taken its last (IBV_EVENT_QP_LAST_WQE_REACHED)? */
struct vrb_last {
	struct fab_list link;
	const struct ibv_qp *qp;
	_Atomic bool reached;
	bool due;			/* it has been connected: the device will tell. The endpoint's */
};
/* From before it can be in error until before it is destroyed. */
void vrb_last_watch(struct vrb_last *last, const struct ibv_qp *qp);
void vrb_last_unwatch(struct vrb_last *last);

/* Engine's lock held. Zeroed but for lost. 0 or -errno. */
int vrb_alarm_start(struct vrb_alarm *alarm, const struct vrb_device *dev, struct fab_engine *engine);
void vrb_alarm_stop(struct vrb_alarm *alarm);

/* ---- poller.c ---- */

#define VRB_BATCH	32		/* work completions that are taken at a time */

struct vrb_poller;

/* A hardware queue. Never overrun: whoever completes here has reserved room for all that it can have outstanding. */
struct vrb_hw_cq {
	struct fab_list link;		/* in the poller's */
	struct vrb_poller *poller;
	struct ibv_cq *cq;
	uint32_t room;			/* entries not reserved; domain->lock */
	uint32_t user_cnt;		/* likewise */
	bool armed;			/* engine's lock, as what follows */
	struct fab_list eps;		/* struct vrb_ep.on_hw: whose completions come here */
	struct ibv_wc wc[VRB_BATCH];	/* what a look has found */
	_Atomic bool broken;		/* for ever: nothing is taken from it any more. Set under the engine's lock */
};

/* Reserve cnt entries of a queue that `engine` polls. No engine lock held. 0 or -FI_E*. */
int vrb_hw_cq_get(struct vrb_domain *domain, struct fab_engine *engine, uint32_t cnt, struct vrb_hw_cq **hw_cq);
/* No queue pair of this user completes here any more. No engine lock held. */
void vrb_hw_cq_put(struct vrb_domain *domain, struct vrb_hw_cq *hw_cq, uint32_t cnt);
/* Take all that it holds now. True if there was anything. Engine's lock held. */
bool vrb_hw_cq_poll(struct vrb_hw_cq *hw_cq);
/* For a read that finds no engine->direct: up to count entries from all queues of the engine. How many work
 * completions there were; -1: a pass is to look. Lock held. */
int vrb_poller_look(struct fab_engine *engine, struct fab_cq_taker *taker, size_t count);
/* It will report nothing any more, nor will the others of its poller: their endpoints end, with an error for all
 * that they have outstanding. Idempotent. Lock held. */
void vrb_hw_cq_lost(struct vrb_hw_cq *hw_cq, int err, const char *why);

/* ---- cq.c ---- */

/* The domain's slot of fi_cq_open(3): prov/common's, but for how an ordinary queue is read. */
int vrb_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);

/* ---- ep.c, cm.c, post.c: guarded by base.progress's lock, except what open fixes ---- */

struct vrb_ep;
struct vrb_srx;				/* srx.h */

/* A send, write or read, in the order of posting. */
struct vrb_tx {
	struct vrb_ep *ep;
	void *context;
	uint64_t len;			/* bytes of the message */
	uint32_t pos;			/* in the order of posting */
	uint8_t code;			/* enum fab_op_code; FAB_OP_MAX: the marker of vrb_post_marker() */
	bool want_cq;
};

struct vrb_rx {
	struct vrb_ep *ep;
	void *context;
	uint64_t flags;
};

enum vrb_ep_state {
	VRB_EP_IDLE,			/* receives can be posted once it is enabled */
	VRB_EP_CONNECTING,		/* or accepting */
	VRB_EP_CONNECTED,
	VRB_EP_DOWN,			/* refused, lost or shut down: for ever */
};

struct vrb_ep {
	struct fab_ep base;
	const struct vrb_kind *kind;
	struct vrb_xrc_ep *xrc;		/* xrc.c's */
	enum vrb_ep_state state;
	struct rdma_event_channel *channel;	/* owned by the kind, like id and qp: its events come to the engine */
	struct rdma_cm_id *id;
	struct ibv_qp *qp;		/* NULL before fi_enable */
	const void *rq;			/* where its receives are, as the device's events name it: an SRQ, or qp */
	struct ibv_ah *own_ah;		/* ud.c's, owned: to this port; NULL before fi_enable, and for other kinds */
	struct vrb_named *named;	/* likewise: how others find it (names.h); NULL if they do not */
	struct fab_source cm_src;	/* the channel's descriptor, once enabled */
	union fab_any_addr peer;
	uint8_t cm_data[VRB_CM_DATA_MAX + 1];	/* what the CM's next message carries: length and bytes of fi_connect,
						 * fi_accept, and what the kind adds; before, what a request carried */
	struct fab_timer accepted;	/* rc.c's, of iWARP: when the application is told that it is connected */
	bool asked;			/* rdma_connect was called: while connecting there is no answer yet */
	bool shutdown_told;
	bool local_end;			/* we ended it: what is flushed was cancelled */
	struct vrb_hw_cq *hw_cq;	/* borrowed, with `reserved` of its entries; NULL before fi_enable */
	struct fab_list on_hw;		/* in hw_cq->eps while enabled */
	uint32_t reserved;
	uint32_t inline_max;		/* with the kind's prefix, as max_msg_size */
	uint32_t tx_iov_limit, rx_iov_limit;
	uint32_t read_iov_limit;	/* buffers of one request that reads: more are several requests (read.c) */
	uint32_t sq_size;		/* requests that the queue pair holds: of tx_size operations, and the marker */
	size_t max_msg_size;
	ssize_t (*aim)(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr);	/* the kind's */

	struct vrb_tx *tx;		/* owned ring; [tx_head, tx_tail) are outstanding */
	uint32_t tx_mask;		/* entries of the ring less one: a power of two */
	uint32_t tx_size;		/* outstanding at most */
	uint32_t tx_head, tx_tail;
	uint32_t last_read;		/* rc.c's, of iWARP: where in the order */
	uint32_t tx_quiet;		/* posted since one that the hardware is to report, */
	uint32_t tx_quiet_max;		/* and when the next has to be */
	struct fab_pool rx_pool;	/* struct vrb_rx: receives outstanding */
	uint32_t rx_size, rx_cnt;
	struct vrb_srx *srx;		/* borrowed: the context whose receives it takes; a context's own; or NULL */
	struct vrb_last last;		/* likewise watched, where there is srx */
	struct fab_list taker;		/* in srx->takers while there is a queue pair, of number */
	uint32_t qpn;
};

static inline struct vrb_ep *vrb_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct vrb_ep, base);
}

static inline struct vrb_domain *vrb_domain_of(const struct vrb_ep *ep)
{
	return fab_container(ep->base.domain, struct vrb_domain, base);
}

/* ---- unanswered.c ---- */

/* Last steps of closing an endpoint of iWARP that asked for a connection and has no answer, whose queue pair is in
 * error and has nothing outstanding: takes over id, channel, queue pair and hardware queue, which are NULL in ep then.
 * False, and all as it was, where that cannot be (no memory): destroying the queue pair will wait for the answer. No
 * lock held. */
bool vrb_unanswered_keep(struct vrb_ep *ep);
/* Free what has been answered; with `all` the others too, waiting for as long as the kernel does, ten seconds at most.
 * No lock held. */
void vrb_unanswered_end(struct vrb_domain *domain, bool all);

/* ---- ops.c, atomic.c ---- */

extern struct fi_ops_msg vrb_msg_ops;	/* ops.c */
extern struct fi_ops_rma vrb_rma_ops;
extern struct fi_ops_atomic vrb_atomic_ops;	/* atomic.c */

/* What the request of an atomic has beside its buffers. */
void vrb_atomic_wr(const struct fab_amo *amo, uint64_t addr, uint32_t rkey, struct ibv_send_wr *wr);
/* The domain's slot of fi_query_atomic(3). */
int vrb_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);
void vrb_atomic_fill_ops(void);
/* Does the device have atomics? Those of InfiniBand may be so only against each other (IBV_ATOMIC_HCA). */
bool vrb_device_atomics(const struct vrb_device *dev);

#define VRB_IS_RX	1		/* in wr_id: the rest points to a struct vrb_rx, else to a struct vrb_tx */

/* The slow halves of post.h: what the call that cannot be carried out returns. Lock held. */
ssize_t vrb_no_desc(enum fab_op_code code);	/* -FI_EINVAL, logged */
ssize_t vrb_no_copy(enum fab_op_code code);	/* likewise */
ssize_t vrb_refuse(const struct vrb_ep *ep, size_t iov_cnt, uint64_t len, uint64_t flags);
ssize_t vrb_refuse_rx(const struct vrb_ep *ep);
/* The queue pair is in the error state: post one request more, whose end tells that all before it are over, those too
 * that ended without a report. Lock held. */
void vrb_post_marker(struct vrb_ep *ep);
/* The hardware will report nothing: all that is outstanding ends with err, for the reason `why`. No receive can be
 * posted any more (state). Lock held. */
void vrb_work_lost(struct vrb_ep *ep, int err, const char *why);
/* What the hardware has to report. taker: a read that takes entries, until there is an error, or NULL. Lock held. */
void vrb_work_done(const struct ibv_wc *wc, struct fab_cq_taker *taker);

/* fi_rx_size_left(3) */
ssize_t vrb_ep_rx_size_left(struct fid_ep *fid);
int vrb_ep_enable(struct vrb_ep *ep);	/* 0, also if it is enabled; -FI_E* */
/* cm.c: the slots of a connected endpoint, for the table of its kind. */
extern struct fi_ops_cm vrb_cm_ops;
/* What rdma_connect() and rdma_accept() are given: ep->cm_data, and what the device can. */
struct rdma_conn_param vrb_cm_param(const struct vrb_ep *ep);
/* What stands in front of the private data of a request between addresses of InfiniBand: as long as what librdmacm has
 * there for those of IP, so that as much is left. Nobody reads it. */
struct vrb_ib_ahead {
	uint8_t zero[4];
	uint8_t src_gid[16], dest_gid[16];
};
_Static_assert(sizeof(struct vrb_ib_ahead) == 36, "as upstream's");
/* rdma_connect, with that where it belongs; param is changed. 0, or -1 with errno. Lock held. */
int vrb_cm_ask(struct vrb_ep *ep, struct rdma_conn_param *param);
/* An event of the endpoint's channel. Lock held. */
void vrb_cm_event(struct vrb_ep *ep, const struct rdma_cm_event *event);
void vrb_cm_ready(struct fab_source *src, uint32_t events);
/* Tell the application: there is a connection (NULL: nothing is known of the peer's data); there is none, because of
 * err, or what the event says. Lock held. */
void vrb_cm_connected(struct vrb_ep *ep, const struct rdma_cm_event *event);
void vrb_cm_refused(struct vrb_ep *ep, int err, const struct rdma_cm_event *event, const char *step);
/* The device or its queue is lost, and with it the connection, or the attempt. Lock held. */
void vrb_cm_lost(struct vrb_ep *ep, int err, const char *why);
/* Length and bytes, as they stand in front of a CM message's data, into room of VRB_CM_DATA_MAX + 1. 0, or -FI_EINVAL,
 * logged. */
int vrb_cm_pack(uint8_t *to, const void *param, size_t paramlen);
/* The bytes that the other end gave, and how many; none if what came is not of this form. */
const void *vrb_cm_unpack(const void *data, uint8_t len, size_t *cnt);

/* ---- pep.c ---- */

/* A request that nobody has accepted or refused: what fi_info.handle of an FI_CONNREQ points to. */
struct vrb_connreq {
	struct fab_connreq base;
	struct rdma_cm_id *id;		/* owned */
	uint8_t data[VRB_CM_DATA_MAX + 1];	/* as it came */
};

/* Take a request out of the list. NULL: the handle is none. The caller frees it and owns id. */
struct vrb_connreq *vrb_connreq_take(struct fab_fabric *fabric, fid_t handle);

/* A channel of CM events that does not block. 0 or -errno, logged. */
int vrb_channel_open(struct rdma_event_channel **channel);

/* Take the bound id of the passive endpoint that handle means, for an endpoint that has its address from then on:
 * the caller owns it, its channel is still the passive endpoint's. 0; -FI_ENOENT: the handle is no passive endpoint;
 * -FI_EOPBADSTATE: it listens; or why it cannot be bound, logged. No engine lock held. */
int vrb_pep_take_id(struct fab_fabric *fabric, fid_t handle, struct rdma_cm_id **id);

/* ---- slots of the provider, fabric and domain tables; 0 or -FI_E* ---- */

int vrb_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
/* Does an info ask for nothing that this kind does not offer? -FI_E*, logged. */
int vrb_info_check(const struct vrb_kind *kind, const struct fi_info *info, uint32_t version);
int vrb_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int vrb_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
int vrb_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
int vrb_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

void vrb_domain_fill_ops(void);
void vrb_cq_fill_ops(void);
void vrb_ep_fill_ops(void);
void vrb_cm_fill_ops(void);
void vrb_data_fill_ops(void);
void vrb_mr_fill_ops(void);

#endif
