/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * softverbs: a device in software behind the names of libibverbs.so.1 and librdmacm.so.1, for testing programs on them
 * where there is no RDMA device. README.md says what it has.
 *
 * One lock guards everything in a process; "lock held" below means sv_lock(). One thread, the device's, waits on all
 * sockets and runs what arrives and the timers, with the lock held. Calls of the application take the lock.
 */
#ifndef SV_H
#define SV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <infiniband/verbs.h>
#include "base/list.h"
#include "wire.h"

/* ---- engine.c: the device's thread ---- */

struct sv_source {
	int fd;				/* the embedder's */
	uint32_t events;		/* EPOLLIN, EPOLLOUT as armed */
	uint64_t id;			/* engine's own: what epoll knows it by */
	void (*ready)(struct sv_source *src, uint32_t events);
};

struct sv_timer {
	struct fab_list link;		/* self-linked (fab_list_init) while it does not run */
	uint64_t when_ns;
	void (*fire)(struct sv_timer *timer);
};

void sv_lock(void);
void sv_unlock(void);
/* Sleep until somebody calls sv_wake_all(); lock held, given up meanwhile. */
void sv_wait(void);
void sv_wait_until(uint64_t end_ns);	/* or until then, of sv_now_ns() */
void sv_wake_all(void);
/* Lock held. add starts the thread if need be. 0 or an errno. */
int sv_source_add(struct sv_source *src, uint32_t events);
void sv_source_mod(struct sv_source *src, uint32_t events);
void sv_source_del(struct sv_source *src);	/* idempotent; fd stays open */
void sv_timer_init(struct sv_timer *timer, void (*fire)(struct sv_timer *timer));
void sv_timer_start(struct sv_timer *timer, uint64_t delay_ns);
void sv_timer_stop(struct sv_timer *timer);	/* idempotent */
uint64_t sv_now_ns(void);

/* A non-blocking socket of `type` bound to the abstract name made by the format, or -1 (errno). */
int sv_bind(int type, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
socklen_t sv_name(struct sockaddr_un *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- fault.c: failures on request ---- */

/*
 * True if this call is to fail: errno is set. SOFTVERBS_FAIL is a list "call:n=ERRNO" (the n-th call, counted from 1),
 * or "call:n+=ERRNO" (that and all later ones). Lock not needed.
 */
bool sv_fault(const char *call);
/* A limit of the device: of SOFTVERBS_LIMITS, "name=value,...", of the device that SOFTVERBS_DEVICE names, or the
 * default. */
uint64_t sv_limit(const char *name, uint64_t standard);
/* Called for each send request posted: true if SOFTVERBS_FLUSH_AFTER says that the queue pair goes into error now. */
bool sv_flush_due(void);

/* ---- model.c ---- */

/* The limits of the device that SOFTVERBS_DEVICE names, as in SOFTVERBS_LIMITS; NULL: it names none. */
const char *sv_model_facts(void);
/* Make of the sizes that were asked for a queue pair those that it gets. 0, or EINVAL: the device has no room. */
int sv_model_fit(enum ibv_qp_type type, struct ibv_qp_cap *cap);

/* ---- device.c ---- */

#define SV_DEVICES_MAX	8
#define SV_ADDRS_MAX	8
#define SV_SGE_MAX	16
#define SV_VECTORS	4		/* completion vectors, where SOFTVERBS_LIMITS says nothing */
#define SV_MANY		65536		/* queue pairs and others, where SOFTVERBS_LIMITS says nothing */
#define SV_GRH_LEN	40		/* bytes before a datagram's payload in the receiver's buffer */

/* What exists: SOFTVERBS_DEVICES "name=addr[,addr...] ..." (none if empty), or soft0=127.0.0.1,::1. Fixed once read. */
struct sv_device {
	struct ibv_device dev;
	struct sockaddr_storage addrs[SV_ADDRS_MAX];
	uint8_t addr_port[SV_ADDRS_MAX];	/* which port has it, from 1 */
	int addr_cnt;
	uint8_t port_cnt;
	bool infiniband;		/* GIDs are addresses of the CM, too (AF_IB) */
	union ibv_gid gids[SV_ADDRS_MAX + 1];	/* the link-local one of port 1, then one an address */
	union ibv_gid other_gid;	/* the link-local one of port 2 */
	__be64 guid;
};

struct sv_context {
	struct verbs_context v;		/* v.context is what the application holds */
	struct sv_device *device;
	struct fab_list link;		/* all of the process */
	unsigned ref_cnt;		/* objects of this context, and opens of it by librdmacm; */
	uint64_t qp_cnt, cq_cnt;	/* of which these */
	struct fab_list events;		/* asynchronous ones that nobody has read; async_fd counts them */
	bool dead;			/* the device has failed: takes no request and reports nothing */
};

struct sv_device *sv_devices(int *cnt);
/* The device that has this address (port ignored), or NULL. */
struct sv_device *sv_device_of(const struct sockaddr *addr);
bool sv_gid_of(const struct sockaddr *addr, union ibv_gid *gid);
/* A GID of a port's table, or NULL: 0 is the link-local one; and the port that has it, 0: none. */
const union ibv_gid *sv_gid_at(const struct sv_device *device, uint32_t port, uint32_t index);
uint8_t sv_gid_port(const struct sv_device *device, const void *gid);
static inline struct sv_context *sv_context(struct ibv_context *context)
{
	return fab_container(context, struct sv_context, v.context);
}

/* ---- async.c ---- */

/* Tell the owner of the context: of a completion queue or a queue pair, or NULL: the device, or its port. Lock held. */
void sv_async(struct ibv_context *context, enum ibv_event_type type, void *element);
void sv_async_forget(struct ibv_context *context, void *element);	/* what has not been read of it; lock held */
/* For tests, which find it by dlsym(): it happens to all that the process has open. IBV_EVENT_DEVICE_FATAL: from now
 * on the device does nothing, IBV_EVENT_CQ_ERR, QP_FATAL, SRQ_ERR: nor do all its queues of that kind. */
void sv_test_event(enum ibv_event_type type);
/* The same for one queue pair, completion queue or receive queue of the process, by its address. */
void sv_test_event_of(enum ibv_event_type type, void *element);
/* A queue pair of the process, in the order of their making; NULL: there are no more. */
struct ibv_qp *sv_test_qp_at(unsigned index);
/* How often requests of the process have met no receive, and are to be sent again. */
unsigned sv_test_rnr_cnt(void);
/* How many requests of a queue pair have been under way at a time, at most. */
unsigned sv_test_most_under_way(void);
/* How many requests the process has posted to its send queues. */
unsigned sv_test_post_cnt(void);
/* How often it has called ibv_post_send(): a device is rung once in each. */
unsigned sv_test_doorbell_cnt(void);
/* How often it has called ibv_modify_qp() itself, without those of librdmacm. */
unsigned sv_test_modify_cnt(void);
void sv_context_add(struct sv_context *ctx);	/* all of them, for that; lock not held */
void sv_context_del(struct sv_context *ctx);
void sv_cq_break_all(struct sv_context *ctx);	/* cq.c; lock held, as for the next two */
void sv_qp_break_all(struct sv_context *ctx);	/* qp.c */
void sv_srq_break_all(struct sv_context *ctx);	/* srq.c */

/* ---- mem.c ---- */

struct sv_pd {
	struct ibv_pd pd;
	unsigned ref_cnt;
};

/* Bytes [addr, addr + len) of the region with this key, if it is of this protection domain and grants all of `access`
 * (enum ibv_access_flags); else NULL. Lock held. */
void *sv_mem(struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t len, int access);
/* For tests: registrations so far, and pages that regions keep in memory now. */
uint64_t sv_test_reg_cnt(void);
uint64_t sv_test_pinned_pages(void);
int sv_test_access_of(const struct ibv_mr *mr);	/* as asked of ibv_reg_mr_iova2() */
/* What the device finds there, to be read before the region ends and before the next call for it. NULL as above. Lock
 * held. */
const void *sv_mem_read(struct ibv_pd *pd, uint32_t key, uint64_t addr, uint64_t len, int access);
/* The device writes len bytes there. False as above. Lock held. */
bool sv_mem_write(struct ibv_pd *pd, uint32_t key, uint64_t addr, const void *from, uint64_t len, int access);
/* ---- pin.c: lock held ---- */

/* Does the device keep to the pages that a region had when it was registered? */
bool sv_pins(void);
/* The same, for tests. */
bool sv_test_pins(void);
/* Pin these pages, in place of those of this slot: 0 or an errno. */
int sv_pin(uint32_t slot, void *addr, size_t len);
void sv_unpin(uint32_t slot);
/* Copy len bytes from, and to, the pages that were pinned at addr. */
void sv_pin_read(uint32_t slot, void *addr, size_t len, void *to);
void sv_pin_write(uint32_t slot, void *addr, size_t len, const void *from);

/* ---- cq.c ---- */

struct sv_qp;
struct sv_srq;

/* A completion, and what reading it does. */
struct sv_cqe {
	struct ibv_wc wc;
	struct sv_qp *sender;		/* of a send request: whose queue has room again, up to `end` */
	uint32_t end;
	struct sv_srq *xrc_srq;		/* of an XRC receive: its queue */
	bool stale;			/* that queue is gone: the poll fails */
};

struct sv_cq {
	struct ibv_cq cq;
	struct fab_list link;		/* all of the process */
	struct sv_cqe *ring;
	int vector;
	uint32_t head, cnt;		/* oldest, and how many */
	enum { SV_CQ_IDLE, SV_CQ_ARMED, SV_CQ_ARMED_SOLICITED } arm;
	uint64_t room;			/* entries at which it overflows */
	bool overrun;
	unsigned ref_cnt;		/* queue pairs and SRQs */
	unsigned unacked;		/* events taken by the application and not acknowledged */
};

/* Write an entry; a full queue is broken from then on, as hardware's is. Lock held. */
void sv_cq_push(struct ibv_cq *cq, const struct ibv_wc *wc, bool solicited);
void sv_cq_push_entry(struct ibv_cq *cq, const struct sv_cqe *cqe, bool solicited);
/* An XRC receive queue goes: its entries are dropped, make polls fail, or stay, as the device has it. Lock held. */
void sv_cq_srq_gone(struct ibv_cq *cq, const struct sv_srq *srq);
/* For tests: completion queues of the process on this vector. */
unsigned sv_test_vector_cnt(int vector);
void sv_cq_purge(struct ibv_cq *cq, uint32_t qpn);	/* drop the entries of a queue pair; lock held */

/* ---- srq.c: queues of receives ---- */

struct sv_rqe {
	uint64_t wr_id;
	int sge_cnt;
	struct ibv_sge sge[SV_SGE_MAX];
};

struct sv_rq {
	struct sv_rqe *ring;
	uint32_t cap, head, cnt;
	uint32_t max_sge;
};

/* A request on its way in: state between its packets. */
struct sv_inbound {
	struct fab_list link;		/* XRC: in sv_srq.inbound */
	uint32_t src_qpn, dst_qpn;	/* XRC: whose */
	uint32_t msn;
	uint64_t offset;		/* bytes here */
	bool have_rqe;
	struct sv_rqe rqe;
};

struct sv_srq {
	struct fab_list link;		/* all of the process */
	struct ibv_srq srq;
	struct sv_rq rq;
	unsigned ref_cnt;
	uint32_t limit;
	/* XRC */
	uint32_t num;			/* 0: not XRC */
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	struct sv_source src;		/* requests forwarded to this process */
	struct fab_list inbound;
	struct fab_list replies;
	struct sv_timer resume;
};

int sv_rq_init(struct sv_rq *rq, uint32_t cap, uint32_t max_sge);	/* 0 or ENOMEM */
int sv_rq_post(struct sv_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
bool sv_rq_take(struct sv_rq *rq, struct sv_rqe *rqe);			/* false: empty */
/* The SRQ of this number in this process, or NULL. */
struct sv_srq *sv_srq_find(uint32_t num);

/* ---- qp.c, requester.c, responder.c, datagram.c ---- */

struct sv_swqe {
	struct ibv_send_wr wr;		/* sg_list is sge[], or unused if inline */
	struct ibv_sge sge[SV_SGE_MAX];
	uint8_t *inline_data;		/* max_inline_data bytes, part of the queue */
	uint64_t total;			/* bytes of the message */
	uint64_t sent, got;		/* bytes that left; bytes of a read's answer that came */
	uint32_t rnr_cnt;
	bool done;
	enum ibv_wc_status status;
};

/* An answer to be sent. */
struct sv_reply {
	struct fab_list link;
	struct sv_pkt pkt;
	uint8_t data[8];		/* of an atomic */
	unsigned untold;		/* XRC: it has left, and the holder of the target could so often not be told */
	/* of a read: where from, checked again for each packet; what of it has left is pkt.offset */
	struct ibv_pd *pd;
	uint64_t raddr;
	uint32_t key;
	void *from;
};

struct sv_qp {
	struct ibv_qp qp;
	struct fab_list link;		/* all queue pairs of the process */
	struct sv_source src;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr;	/* as last set */
	bool sig_all;
	bool connected;			/* the socket is (RC) */
	bool unestablished;		/* accepted, and the last word of the handshake has not come */
	bool blocked;			/* the other socket was full */

	/* requester: [head, next) have left, [next, tail) wait; a message's number is its index */
	struct sv_swqe *sq;
	uint8_t *inline_pool;
	uint32_t head, next, tail;
	uint32_t freed;			/* [freed, tail) take room: completions are read before their room is free */
	struct sv_timer resume;		/* after receiver not ready, or where a full socket does not tell */
	struct sv_timer watch;		/* while something is unanswered: is the other end there? */
	struct sv_timer last;		/* in error, until no shared receive is taken any more */
	unsigned unacked;		/* events taken by the application and not acknowledged */
	uint64_t asked_ns;		/* when the oldest unanswered was sent, or last heard of */

	/* responder */
	struct sv_rq rq;
	struct sv_inbound in;
	struct fab_list replies;
	bool leaving;			/* sv_resp_leave() waits for them */
	struct ibv_xrcd *xrcd;		/* XRC_RECV */
	struct sv_xrc_tgt *tgt;		/* xrc.c */
};

static inline struct sv_qp *sv_qp(struct ibv_qp *qp)
{
	return fab_container(qp, struct sv_qp, qp);
}

int sv_poll_cq(struct ibv_cq *cq, int cnt, struct ibv_wc *wc);
int sv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int sv_resize_cq(struct ibv_cq *cq, int cqe);
int sv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int sv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *sv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int sv_get_srq_num(struct ibv_srq *srq, uint32_t *num);
struct ibv_qp *sv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *sv_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_xrcd *sv_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int sv_close_xrcd(struct ibv_xrcd *xrcd);

/* Move to the error state and flush. Lock held. */
void sv_qp_error(struct sv_qp *qp);
/* Take in what has arrived already. Lock held. */
void sv_qp_drain(struct sv_qp *qp);
/* May a queue pair be modified so? 0 or EINVAL (modify.c). Lock held. */
int sv_modify_check(const struct sv_qp *qp, const struct ibv_qp_attr *attr, int mask);
int sv_qp_modify(struct sv_qp *qp, const struct ibv_qp_attr *attr, int mask);	/* 0 or an errno; lock held */
void sv_qp_packet(struct sv_qp *qp, struct sv_pkt *pkt, uint8_t *payload);	/* lock held */
/* A packet from this socket to the other end of the queue pair, or (UD, XRC) to a named one: 0, EAGAIN: full; another
 * errno: nobody is there. */
int sv_qp_send(struct sv_qp *qp, const struct sv_pkt *pkt, const struct iovec *iov, int iov_cnt);
int sv_send_to(int fd, uint32_t qpn, const struct sv_pkt *pkt, const struct iovec *iov, int iov_cnt);

void sv_req_push(struct sv_qp *qp);		/* send what can be sent */
void sv_req_answer(struct sv_qp *qp, const struct sv_pkt *pkt, const uint8_t *payload);
void sv_req_flush(struct sv_qp *qp);		/* complete everything as flushed */
void sv_req_gone(struct sv_qp *qp);		/* the other end is not there */
void sv_req_timers(struct sv_qp *qp);		/* init */

/* A request for a queue pair of type RC. */
void sv_resp_request(struct sv_qp *qp, const struct sv_pkt *pkt, const uint8_t *payload);
/* A request for an XRC SRQ of this process; answers leave from its socket straight to the requester. */
void sv_resp_xrc(struct sv_srq *srq, const struct sv_pkt *pkt, const uint8_t *payload);
void sv_resp_resume_srq(struct sv_timer *timer);
void sv_resp_fini_srq(struct sv_srq *srq);
void sv_resp_flush(struct sv_qp *qp);
/* Of RC, before it is destroyed: what has arrived is answered, which the sender's full socket may hold up. Lock held,
 * given up meanwhile. */
void sv_resp_leave(struct sv_qp *qp);
/* In error, with an SRQ: the last receive is over, now or as SOFTVERBS_LIMITS says. */
void sv_resp_last(struct sv_qp *qp);
void sv_resp_last_due(struct sv_timer *timer);
/* Send queued answers. False: the socket is full. */
bool sv_resp_push(struct sv_qp *qp);
/* Scatter into a receive at an offset; 0, or enum sv_nak. */
int sv_scatter(struct ibv_pd *pd, const struct sv_rqe *rqe, uint64_t offset, const void *data, uint64_t len);
uint64_t sv_sge_len(const struct ibv_sge *sge, int cnt);

#define SV_UD_FULL	(-1)
/* A status of a work completion, or SV_UD_FULL: there is no room at present. */
int sv_ud_send(struct sv_qp *qp, struct sv_swqe *wqe);
void sv_ud_arrived(struct sv_qp *qp, const struct sv_pkt *pkt, const uint8_t *payload);

/* ---- xrc.c ---- */

/* A packet for a target queue pair that this process reads: to its SRQ, here or elsewhere. */
void sv_xrc_arrived(struct sv_qp *qp, struct sv_pkt *pkt, uint8_t *payload);
int sv_xrc_srq_init(struct sv_srq *srq);	/* number and socket; 0 or an errno */
/* Of a target: of this process, or (progress_fd, taken over) of another one. 0 or an errno. */
int sv_xrc_qp_init(struct sv_qp *qp, int progress_fd);
bool sv_xrc_busy(const struct sv_qp *qp);	/* of a target, not in RESET: nothing is to be read for it */
/* An answer of an SRQ, whose socket is fd, has left: tell the holder of the target. False: nobody is the holder now, or
 * there is no room. */
bool sv_xrc_answered(int fd, const struct sv_pkt *answer);
void sv_xrc_qp_begin(struct sv_qp *qp);		/* it goes to INIT: what arrives is read from now on */
void sv_xrc_qp_fini(struct sv_qp *qp);
/* qp.c: a target queue pair of another process, whose socket and progress these are (taken over). NULL: errno. */
struct ibv_qp *sv_qp_share(struct ibv_context *context, const struct ibv_qp_open_attr *attr, int fd, int progress_fd,
			   const struct sv_pkt *opened);
struct sv_qp *sv_qp_find(uint32_t qpn);		/* qp.c: of this process, or NULL; lock held */
void sv_xrcd_hold(struct ibv_xrcd *xrcd);
void sv_xrcd_drop(struct ibv_xrcd *xrcd);

#endif
