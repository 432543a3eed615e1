/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by all files of the provider: its parameters, its devices, and its objects.
 *
 * An endpoint is a queue pair of one kind (kind.h). Work completions arrive in hardware completion queues, which belong
 * to the poller (poller.c) of an engine. The poller turns them into entries of prov/common's completion queues and
 * counters.
 *
 * "Lock held" means the lock of the endpoint's engine (ep->base.engine).
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
#include "verbs/alive.h"
#include "verbs/channel.h"
#include "verbs/quirks.h"

#define VRB_TX_SIZE		384	/* work requests of an endpoint that does not ask for another number */
#define VRB_RX_SIZE		384
#define VRB_IOV_LIMIT		8
#define VRB_INLINE		256	/* bytes asked of a device for messages that travel in the work request */
#define VRB_MIN_RNR_TIMER	12	/* 0.64 ms */
#define VRB_ATOMIC_LEN		8	/* bytes that an atomic changes */
#define VRB_RESOLVE_MS		2000	/* for an address, and again for a route */
#define VRB_CM_DATA_MAX		55	/* bytes of fi_connect's data: a CM request's, less the length before it */

/* Parameters of the environment, read once at initialisation (prov.c). */
struct vrb_params {
	char *iface;			/* FI_VERBS_IFACE, or NULL */
	char *device_name;		/* FI_VERBS_DEVICE_NAME: a comma-separated list, or NULL */
	size_t tx_size, rx_size;
	size_t tx_iov_limit, rx_iov_limit;
	size_t inline_size;
	int gid_idx;			/* -1: the provider chooses (gid.c) */
	int min_rnr_timer;		/* InfiniBand's code for a time, 0 to 31 */
	int keepalive_ms, keepalive_peers, stall_ms;	/* alive.h */
	bool relaxed_ordering;
	bool use_odp, use_dmabuf;
	bool prefer_xrc;
	char *xrcd_filename;		/* FI_VERBS_XRCD_FILENAME, or NULL */
	bool use_name_server;		/* datagram endpoints can be found by service (names.h) ... */
	int name_server_port;		/* ... over this UDP port */
};
extern struct vrb_params vrb_params;
extern struct fi_provider vrb_prov;

#define VRB_LOG(level, subsys, ...) FI_LOG(&vrb_prov, level, subsys, __VA_ARGS__)
#define VRB_WARN(subsys, ...) FI_WARN(&vrb_prov, subsys, __VA_ARGS__)

/* ---- lib.c ---- */

/* True if libibverbs and librdmacm can be called. Loads them when the kernel has a device. A library that cannot be
 * loaded is logged once. Any thread. */
bool vrb_lib_ready(void);
/* True if libibverbs has ibv_reg_dmabuf_mr(). Only after vrb_lib_ready() returned true. */
bool vrb_lib_dmabuf(void);
/* True if libibverbs has _ibv_query_gid_table(). Only after vrb_lib_ready() returned true. */
bool vrb_lib_gid_table(void);

/* ---- device.c: any thread, no lock held ---- */

/* A port of a device, which librdmacm opened. Made once, kept until vrb_devices_fini(). */
struct vrb_device {
	struct vrb_device *next;
	struct ibv_context *verbs;
	const struct vrb_quirks *quirks;
	uint8_t port_num;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint32_t inline_max;		/* bytes that a queue pair takes inline */
	uint32_t sq_max;		/* requests of a send queue, each with inline_max bytes or all buffers */
	char name[IBV_SYSFS_NAME_MAX];	/* the domain's name */
	char fabric[FI_NAME_MAX];	/* the fabric of GID 0; an entry of fi_getinfo() has the fabric of its
					 * address */
};

/* The port space of a CM id with this address. InfiniBand addresses have a port space of their own. */
static inline enum rdma_port_space vrb_port_space(const struct sockaddr *addr)
{
	return addr->sa_family == FAB_AF_IB ? RDMA_PS_IB : RDMA_PS_TCP;
}

/* The port that has this address. NULL: no device has it, or the device is not used (FI_VERBS_DEVICE_NAME leaves it
 * out, or it failed; logged once), or its port is down. */
const struct vrb_device *vrb_device_of(const struct sockaddr *addr);
/* The lowest port of a known device, by the name of a domain: the name of the device and the suffix of a kind. NULL:
 * there is none. */
const struct vrb_device *vrb_device_named(const char *domain);
/* The port that an entry of fi_getinfo() is for: the port of its domain that has its source address, else the lowest
 * port of its domain. NULL: there is none. */
const struct vrb_device *vrb_device_meant(const struct fi_info *info);
/* True if this port has the source address of an entry, in any format. */
bool vrb_device_has(const struct vrb_device *dev, const struct fi_info *info);
/* The number of buffers that one read request of the device can have (info.c). */
uint32_t vrb_read_iov_limit(const struct vrb_device *dev);
/* The number of requests that a read into up to iov_limit buffers may need (info.c, read.c). */
uint32_t vrb_requests(const struct vrb_device *dev, uint32_t iov_limit);
/* The struct vrb_device of this port of an open device. NULL as vrb_device_of(). */
const struct vrb_device *vrb_device_at(struct ibv_context *verbs, uint8_t port_num);
/* True if any device has been examined, whether it works or not. */
bool vrb_devices_known(void);
/* Report a reason why the port has no entry, if reasons are wanted (common/explain/explain.h). */
void vrb_say_lacks(const struct vrb_device *dev, const char *what, const char *wanted, const char *found);
/* Free all devices. No object of the provider is open. */
void vrb_devices_fini(void);

/* ---- fabric.c: any thread ---- */

/* Write the name of the fabric of an endpoint with this GID of the port to name[size]. */
void vrb_fabric_of_gid(char *name, size_t size, const struct vrb_device *dev, const union ibv_gid *gid);
/* The same for a RoCE port whose address is in this network ("10.1.0.0/16"). */
void vrb_fabric_of_network(char *name, size_t size, const char *network);
/* True if the port's link layer is Ethernet and its transport InfiniBand. */
bool vrb_device_roce(const struct vrb_device *dev);

/* ---- nic.c: any thread ---- */

/* Make the fid_nic of a device, which the caller closes; an fi_info does so when it is freed. 0, or -FI_ENOMEM. */
int vrb_nic_open(const struct vrb_device *dev, struct fid_nic **nic);

/* ---- gid.c: any thread ---- */

enum vrb_gid_sort {
	VRB_GID_LINK,			/* fe80::/10 */
	VRB_GID_V4,			/* ::ffff:a.b.c.d */
	VRB_GID_V6,
	VRB_GID_SORTS
};

/* The GIDs of a port that are used. */
struct vrb_gids {
	bool have[VRB_GID_SORTS];
	uint8_t index[VRB_GID_SORTS];	/* the first of its sort in the port's table */
	uint8_t own;			/* index of the GID that names of endpoints have */
};

struct vrb_gid {
	union ibv_gid gid;
	enum vrb_gid_sort sort;
	uint8_t index;			/* in the port's table */
	bool routable;			/* packets with it can pass routers (RoCE v2) */
};

/* Called with one GID of a port. Returns false to end the walk. */
typedef bool vrb_gid_fn(const struct vrb_gid *gid, void *arg);

/* The sort of a GID, by its prefix. */
enum vrb_gid_sort vrb_gid_sort(const union ibv_gid *gid);
/* Call see with each GID of the port, in the order of its table, until it returns false. The table may have a thousand
 * entries; it is read by one call where libibverbs has that, else by one call for each. */
void vrb_gids_see(struct ibv_context *verbs, uint8_t port_num, vrb_gid_fn *see, void *arg);
/* Find the first GID of each sort, and the one for names of endpoints. */
void vrb_gids_find(const struct vrb_device *dev, struct vrb_gids *gids);
/* The index of the GID to send from to dest: one of the same sort if there is one. */
uint8_t vrb_gid_towards(const struct vrb_gids *gids, const union ibv_gid *dest);

/* ---- domain.c ---- */

struct vrb_kind;			/* kind.h */

struct vrb_domain {
	struct fab_domain base;
	const struct vrb_device *dev;
	const struct vrb_kind *kind;	/* of its endpoints */
	struct ibv_pd *pd;		/* owned */
	int relaxed;			/* IBV_ACCESS_RELAXED_ORDERING, or 0: of its regions */
	bool odp;			/* regions are paged on demand: FI_VERBS_USE_ODP is set, and the device can */
	pthread_mutex_t lock;		/* guards the lists and the channel; engine locks are taken inside */
	struct rdma_event_channel *channel;	/* owned: of ids that are on no engine yet; NULL before the first */
	struct fab_list pollers;	/* struct vrb_poller.link */
	struct fab_list unanswered;	/* used by unanswered.c */
	_Atomic bool last_told;		/* the device has reported IBV_EVENT_QP_LAST_WQE_REACHED once */
	_Atomic uint32_t last_missed;	/* times that it did not do so in time */
	struct vrb_xrc *xrc;		/* used by xrc_share.c: NULL while there is no XRC endpoint */
};

extern struct fi_ops_mr vrb_mr_ops;	/* mr.c */
/* True if regions of the domain are to be paged on demand (FI_VERBS_USE_ODP). If the device cannot do that, logs it
 * once, and returns false. */
bool vrb_mr_odp(const struct vrb_device *dev, const struct vrb_kind *kind);
/* True if the processor cannot read the memory of a descriptor. A descriptor of fi_mr_desc() is the struct ibv_mr,
 * whose context is NULL then. */
static inline bool vrb_desc_foreign(const struct ibv_mr *desc)
{
	return !desc->context;
}

/* ---- async.c ---- */

/* How an engine learns of asynchronous events of a device. */
struct vrb_alarm {
	struct fab_list link;
	const struct vrb_device *dev;
	struct fab_source events;	/* the device's descriptor; the first engine that wakes reads the events */
	struct fab_bell bell;		/* wakes this engine */
	_Atomic bool dead;		/* the whole device has failed */
	/* Called when the device is dead, or a watch of this alarm was told something that cannot wait. Engine's lock
	 * held. Set before vrb_alarm_start(). */
	void (*rung)(struct vrb_alarm *alarm);
};

/* What a watch can be told. */
enum {
	VRB_TOLD_FAILED = 1,
	VRB_TOLD_ESTABLISHED = 2,	/* a queue pair got a message before its connection was established */
	VRB_TOLD_LAST = 4,		/* a queue pair in error has given back the last shared receive that it took */
	VRB_TOLD_AT_ONCE = VRB_TOLD_FAILED | VRB_TOLD_ESTABLISHED,	/* the alarm is rung */
};

/* Waits for events of an object: a queue pair, a completion queue or a shared receive queue. Zeroed before it is
 * started for the first time. */
struct vrb_watch {
	struct fab_list link;
	const void *object;		/* NULL: not started */
	struct vrb_alarm *alarm;	/* borrowed */
	_Atomic unsigned told;		/* the reader takes out what it has acted on */
};
/* Start to watch an object of which no event has come yet. The alarm outlives the watch. Any thread. */
void vrb_watch_start(struct vrb_watch *watch, struct vrb_alarm *alarm, const void *object);
/* Stop watching, before the object is destroyed. Idempotent. Any thread. */
void vrb_watch_stop(struct vrb_watch *watch);
/* Take out and return those of `what` that the watch has been told. Any thread. */
static inline unsigned vrb_watch_take(struct vrb_watch *watch, unsigned what)
{
	return atomic_load_explicit(&watch->told, memory_order_relaxed) & what ?
	       atomic_fetch_and(&watch->told, ~what) & what : 0;
}

/* Start to handle events of dev on engine. The caller has zeroed *alarm and set rung. 0: the caller calls
 * vrb_alarm_stop() later; or -errno. Engine's lock held. */
int vrb_alarm_start(struct vrb_alarm *alarm, const struct vrb_device *dev, struct fab_engine *engine);
/* Stop handling events. Engine's lock held. */
void vrb_alarm_stop(struct vrb_alarm *alarm);

/* ---- poller.c ---- */

#define VRB_BATCH	32		/* work completions that are polled at a time */

struct vrb_poller;

/* A hardware completion queue. It never overruns, because each user reserves room for all that it can have
 * outstanding. */
struct vrb_hw_cq {
	struct fab_list link;		/* in the poller's list */
	struct vrb_poller *poller;
	struct ibv_cq *cq;
	uint32_t size;			/* entries; this and the next: domain->lock */
	uint32_t room;			/* entries that are not reserved */
	uint32_t user_cnt;		/* domain->lock */
	bool armed;			/* this and the next: engine's lock */
	struct vrb_watch watch;
	struct fab_list eps;		/* struct vrb_ep.on_hw: endpoints that complete here */
	struct ibv_wc wc[VRB_BATCH];	/* result of the latest poll */
	_Atomic bool broken;		/* has failed, and is not polled any more. Set under the engine's lock */
};

/* Reserve cnt entries of a hardware queue that `engine` polls, opening one if need be. 0: the caller calls
 * vrb_hw_cq_put() later; or -FI_E*. No engine lock held. */
int vrb_hw_cq_get(struct vrb_domain *domain, struct fab_engine *engine, uint32_t cnt, struct vrb_hw_cq **hw_cq);
/* Give cnt reserved entries back. No queue pair of this user completes to the queue any more. No engine lock held. */
void vrb_hw_cq_put(struct vrb_domain *domain, struct vrb_hw_cq *hw_cq, uint32_t cnt);
/* Process all work completions that the queue holds now. True if there were any. Engine's lock held. */
bool vrb_hw_cq_poll(struct vrb_hw_cq *hw_cq);
/* For a read where the engine has several hardware queues (engine->direct.queue is NULL): poll all of them for up to
 * count entries. Returns the number of work completions; -1: the caller makes a pass of the engine instead. Lock
 * held. */
int vrb_poller_look(struct fab_engine *engine, struct fab_cq_taker *taker, size_t count);
/* The same where entries of a receive queue that was just destroyed may be left, `stale` of them at most. The driver
 * may not know such an entry, and the poll that meets it fails. Lock held. */
void vrb_hw_cq_settle(struct vrb_hw_cq *hw_cq, uint32_t stale);
/* Move a CM id to the channel of the queue's engine, whose passes handle its events from now on. 0 or -errno, logged.
 * No engine lock held. */
int vrb_hw_cq_take_id(struct vrb_domain *domain, struct vrb_hw_cq *hw_cq, struct rdma_cm_id *id);
/* The alarm that watches of objects which complete to the queue have. Any thread. */
struct vrb_alarm *vrb_hw_cq_alarm(struct vrb_hw_cq *hw_cq);
/* The device of the queue is being removed: end all endpoints of its poller, and complete all their outstanding
 * operations with err and why. Idempotent. Lock held. */
void vrb_hw_cq_removed(struct vrb_hw_cq *hw_cq, int err, const char *why);

/* ---- cq.c ---- */

/* fi_cq_open(3): a queue of prov/common, which is read as cq.c says. 0 or -FI_E*. */
int vrb_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);

/* ---- ep.c, cm.c, post.c: the engine's lock guards all fields that change after open ---- */

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
	VRB_EP_DOWN,			/* refused, lost or shut down; cannot be connected again */
};

struct vrb_ep {
	struct fab_ep base;
	const struct vrb_kind *kind;
	struct vrb_xrc_ep *xrc;		/* used by xrc.c */
	enum vrb_ep_state state;
	struct rdma_cm_id *id;		/* owned by the kind, like qp; NULL: the kind has no connections */
	struct vrb_cm_sink sink;	/* of id, until the endpoint stops */
	struct ibv_qp *qp;		/* NULL before fi_enable */
	const void *rq;			/* the shared receive queue of its receives, or NULL */
	struct ibv_ah *own_ah;		/* ud.c, owned: to this port; NULL before fi_enable, and for other kinds */
	struct vrb_named *named;	/* ud.c, owned: by which others find it (names.h); NULL if they cannot */
	union fab_any_addr peer;
	/* Private data of the next CM message: length and bytes of fi_connect() or fi_accept(), and the kind's own.
	 * Before that call, the private data of the request with which the endpoint was opened. */
	uint8_t cm_data[VRB_CM_DATA_MAX + 1];
	struct fab_timer accepted;	/* rc.c: delays FI_CONNECTED of an accepted connection */
	struct vrb_alive alive;
	int end_err;			/* why this end gave the connection up, and the next; 0: it did not */
	const char *end_why;
	bool asked;			/* rdma_connect() was called; while CONNECTING there is no answer yet */
	bool shutdown_told;		/* the application has been told of the end */
	bool local_end;			/* this end shut down: flushed operations end with FI_ECANCELED */
	struct vrb_hw_cq *hw_cq;	/* borrowed, with `reserved` of its entries; NULL before fi_enable */
	struct vrb_hw_cq *tx_hw;	/* XRC: the queue of its initiator, which another endpoint may have made */
	struct fab_list on_hw;		/* in hw_cq->eps while enabled */
	uint32_t reserved;
	uint32_t inline_max;		/* bytes, with the kind's prefix, like max_msg_size */
	uint32_t tx_iov_limit, rx_iov_limit;
	uint32_t read_iov_limit;	/* buffers of one read request; more are read by several requests (read.c) */
	uint32_t sq_size;		/* requests that the queue pair holds: of tx_size operations, and the marker */
	size_t max_msg_size;
	ssize_t (*aim)(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr);	/* copy of kind->aim */

	struct vrb_tx *tx;		/* owned ring; [tx_head, tx_tail) are outstanding */
	uint32_t tx_mask;		/* entries of the ring less one: a power of two */
	uint32_t tx_size;		/* outstanding at most */
	uint32_t tx_head, tx_tail;
	uint32_t last_read;		/* rc.c: position of the last read in the order of posting */
	uint32_t tx_quiet;		/* requests posted since the last signaled one */
	uint32_t tx_quiet_max;		/* as many unsignaled requests may follow each other */
	struct fab_pool rx_pool;	/* struct vrb_rx: receives outstanding */
	uint32_t rx_size, rx_cnt;
	struct vrb_srx *srx;		/* borrowed: its receives are of this context (a context: itself); or NULL */
	struct vrb_watch qp_watch, rq_watch;	/* of qp and rq, while it has them */
	bool last_due;			/* its queue pair has been connected, so VRB_TOLD_LAST will come */
	struct fab_list taker;		/* in srx->takers while it has a queue pair, under its number qpn */
	uint32_t qpn;
};

/* The endpoint of a fid, which may be an alias. Any thread. */
static inline struct vrb_ep *vrb_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct vrb_ep, base);
}

/* The domain of an endpoint. Any thread. */
static inline struct vrb_domain *vrb_domain_of(const struct vrb_ep *ep)
{
	return fab_container(ep->base.domain, struct vrb_domain, base);
}

/* ---- unanswered.c ---- */

/* Part of closing an endpoint whose connection request has no answer yet (vrb_quirks.holds_unanswered). Its queue pair
 * is in the error state and has nothing outstanding. Takes over id, queue pair and hardware queue, and sets them to
 * NULL in ep. False (no memory): nothing has changed, and destroying the queue pair will block until the answer. No
 * lock held. */
bool vrb_unanswered_keep(struct vrb_ep *ep);
/* Free the requests that have been answered since; with `all` the others, too, which blocks until the kernel lets go of
 * them, ten seconds at most. No lock held. */
void vrb_unanswered_end(struct vrb_domain *domain, bool all);

/* ---- ops.c, atomic.c ---- */

extern struct fi_ops_msg vrb_msg_ops;	/* ops.c */
extern struct fi_ops_rma vrb_rma_ops;
extern struct fi_ops_atomic vrb_atomic_ops;	/* atomic.c */

/* Fill the opcode and the atomic fields of a work request; the caller sets the others. */
void vrb_atomic_wr(const struct fab_amo *amo, uint64_t addr, uint32_t rkey, struct ibv_send_wr *wr);
/* fi_query_atomic(3). */
int vrb_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);
/* Fill the empty slots of vrb_atomic_ops. Called once, at load. */
void vrb_atomic_fill_ops(void);
/* True if the device has atomics. With IBV_ATOMIC_HCA they are atomic only with respect to other atomics of the
 * device. */
bool vrb_device_atomics(const struct vrb_device *dev);

#define VRB_IS_RX	1		/* in wr_id: the rest points to a struct vrb_rx, else to a struct vrb_tx */

/* The slow paths of post.h, for a call that cannot be carried out. Each returns what the call returns. Lock held. */

/* A buffer has no descriptor, and needs one: -FI_EINVAL, logged. */
ssize_t vrb_no_desc(enum fab_op_code code);
/* FI_INJECT of memory that the processor cannot read: -FI_EINVAL, logged. */
ssize_t vrb_no_copy(enum fab_op_code code);
/* A send, read or write cannot be posted, now or at all: the reason as -FI_E*. */
ssize_t vrb_refuse(const struct vrb_ep *ep, size_t iov_cnt, uint64_t len, uint64_t flags);
/* A receive cannot be posted, now or at all: the reason as -FI_E*. */
ssize_t vrb_refuse_rx(const struct vrb_ep *ep);
/* Post the marker, a write of no bytes that is no operation. Its completion tells that all requests before it have
 * ended, including unsignaled ones. In the error state it is the last request; before, it asks whether the peer is
 * there. Lock held. */
void vrb_post_marker(struct vrb_ep *ep);
/* End all outstanding operations whose completion queue is broken with err and why: the hardware will not report them.
 * The caller has set a state in which no receive can be posted. Lock held. */
void vrb_work_lost(struct vrb_ep *ep, int err, const char *why);
/* Process one work completion. taker: a read that takes its entry, unless there has been an error; or NULL. Lock
 * held. */
void vrb_work_done(const struct ibv_wc *wc, struct fab_cq_taker *taker);

/* fi_rx_size_left(3). */
ssize_t vrb_ep_rx_size_left(struct fid_ep *fid);
/* fi_enable(3). 0, also if it is enabled already; -FI_E*. No lock held. */
int vrb_ep_enable(struct vrb_ep *ep);
/* cm.c: the connection calls of a connected endpoint, for the table of its kind. */
extern struct fi_ops_cm vrb_cm_ops;
/* The parameters of rdma_connect() and rdma_accept(): ep->cm_data as private data, and limits of the device. */
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
/* The vrb_cm_sink.event of endpoints. */
void vrb_cm_sink_event(struct vrb_cm_sink *sink, const struct rdma_cm_event *event);
/* The endpoint is connected: write FI_CONNECTED, with the peer's data of event (NULL: without). Lock held. */
void vrb_cm_connected(struct vrb_ep *ep, const struct rdma_cm_event *event);
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

/* ---- pep.c ---- */

/* A connection request that has been neither accepted nor rejected. fi_info.handle of its FI_CONNREQ points to it. */
struct vrb_connreq {
	struct fab_connreq base;
	struct rdma_cm_id *id;		/* owned */
	uint8_t data[VRB_CM_DATA_MAX + 1];	/* the private data of the request, as it came */
};

/* Take a request out of the list of its handle. The caller frees it, and owns id. NULL: the handle is not a request. */
struct vrb_connreq *vrb_connreq_take(struct fab_fabric *fabric, fid_t handle);

/* Take the bound id of the passive endpoint of this handle, for an endpoint that then has its address. The caller owns
 * the id; its channel still belongs to the passive endpoint. 0; -FI_ENOENT: the handle is not a passive endpoint;
 * -FI_EOPBADSTATE: it listens; or the error of binding it, logged. No engine lock held. */
int vrb_pep_take_id(struct fab_fabric *fabric, fid_t handle, struct rdma_cm_id **id);

/* ---- calls of the provider, fabric and domain tables: 0 or -FI_E*; no lock held ---- */

/* fi_getinfo(3) of the provider. */
int vrb_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
/* Check that an info asks for nothing that this kind does not offer. 0; or -FI_E*, logged. */
int vrb_info_check(const struct vrb_kind *kind, const struct fi_info *info, uint32_t version);
/* True if regions of a domain of this info may be written in any order (FI_VERBS_RELAXED_ORDERING). */
bool vrb_info_relaxed(const struct fi_info *info);
/* fi_fabric(3). */
int vrb_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
/* fi_domain(3). */
int vrb_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
/* fi_passive_ep(3). */
int vrb_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
/* fi_endpoint(3): the domain's ep_init. */
fab_ep_init_fn vrb_ep_init;

/* Each fills the empty slots of its file's operation tables; vrb_data_fill_ops() those of ops.c. Called once, at
 * load. */
void vrb_domain_fill_ops(void);
void vrb_cq_fill_ops(void);
void vrb_ep_fill_ops(void);
void vrb_cm_fill_ops(void);
void vrb_data_fill_ops(void);
void vrb_mr_fill_ops(void);

#endif
