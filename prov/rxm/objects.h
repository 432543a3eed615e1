/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of ofi_rxm, what they hold and whose it is, and its bounds. What is done with them, and what guards them:
 * rxm.h.
 */
#ifndef RXM_OBJECTS_H
#define RXM_OBJECTS_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "base/addr.h"
#include "base/bits.h"
#include "base/pool.h"
#include "base/table.h"
#include "common/endpoint/ep.h"
#include "common/engine/pace.h"
#include "common/receive/recv.h"
#include "rxm/wire.h"

#define RXM_LAYER		"ofi_rxm"
#define RXM_IOV_LIMIT		4
#define RXM_DELIVERED		(FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define RXM_TX_SIZE		1024	/* operations outstanding, if the endpoint does not ask for another number */
#define RXM_RX_SIZE		4096
#define RXM_SIZE_MAX		65536
#define RXM_INJECT_SIZE		1024
#define RXM_EAGER_MAX		16384	/* bytes of a message in one packet */
#define RXM_SAR_LIMIT		131072	/* bytes of a message in several; longer ones are read or written */
#define RXM_CONN_RX		64	/* packets that a connection can have coming */
#define RXM_ASKED_MAX		65535	/* requests of a connection that wait for an answer */
#define RXM_KEEP_MAX		(4 << 20)	/* bytes of unexpected messages of a peer: then it gets no credit */
#define RXM_KEEP_CNT		4096		/* likewise, messages */
#define RXM_BELOW_NAME_MAX	32
#define RXM_PARTS_MAX		32	/* messages of a peer of which segments have come, and others are to come */
#define RXM_CTL_MAX		256	/* answers that have not left: then a peer without credit is not heard */
#define RXM_SMALL		448	/* bytes behind the headers of a packet in ep->small */
#define RXM_BIG_MIN		4608	/* likewise in ep->big, at least */
#define RXM_AMO_MAX		2048	/* bytes of elements of an atomic */
#define RXM_SEG_MAX		(1u << 24)	/* bytes of a message in segments */
/* Of cnt packets that a connection can have coming: how many of each enum rxm_load may be under way. The others are for
 * credits: before it has taken one, nobody is sent more than two for each kind. */
#define RXM_WINDOW(cnt)		(((cnt) - 4) / RXM_LOADS)

/* Of the environment, read once at initialisation (prov.c). */
struct rxm_params {
	size_t buffer_size;		/* bytes of message in a packet */
	size_t sar_limit;
	size_t tx_size, rx_size;
	size_t conn_rx;
	bool rndv_write;
	int connect_timeout_ms;
	int holdoff_ms;
};
extern struct rxm_params rxm_params;

extern struct fi_provider rxm_prov;
extern struct fi_ops_msg rxm_msg_ops;
extern struct fi_ops_tagged rxm_tagged_ops;
extern struct fi_ops_rma rxm_rma_ops;
extern struct fi_ops_atomic rxm_atomic_ops;

#define RXM_WARN(subsys, ...) FI_WARN(&rxm_prov, subsys, __VA_ARGS__)
#define RXM_INFO(subsys, ...) FI_INFO(&rxm_prov, subsys, __VA_ARGS__)

struct rxm_fabric {
	struct fab_fabric base;
	char below_name[RXM_BELOW_NAME_MAX];	/* "tcp" */
	struct fid_fabric *below;	/* owned */
};

/* Memory for packets, in pieces of one size that never move. Guarded by the lock of the endpoint's engine. */
struct rxm_bufs {
	struct fid_domain *below;	/* borrowed: where chunks are registered; NULL: they need not be */
	size_t size;			/* bytes of a buffer */
	struct rxm_buf *free;
	struct rxm_chunk *chunks;	/* owned */
};

struct rxm_buf {
	struct rxm_buf *next;		/* while free */
	void *desc;			/* for the provider below */
	struct rxm_pkt pkt;
};

struct rxm_domain {
	struct fab_domain base;
	struct fid_domain *below;	/* owned */
	struct fi_info *below_info;	/* owned: what it was opened with */
	struct fi_info *most;		/* owned: the most that an endpoint may ask for */
	bool mr_local;			/* below, memory has to be registered */
	bool mr_virt;			/* remote addresses are virtual ones */
	bool own_keys;			/* the application's keys are not for remote access; below gets others */
	bool has_dc;			/* below knows FI_DELIVERY_COMPLETE */
	bool patient;			/* below waits for a peer that is there, but busy, until it accepts */
	pthread_mutex_t lock;		/* guards what follows (of regions until it is set); an engine's comes after */
	struct fab_list pollers;	/* struct rxm_poller.link */
	struct fi_ops mr_fid_ops;	/* of regions: those of prov/common, but for close */
	int (*mr_close_base)(struct fid *fid);	/* what that was */
};

struct rxm_conn;
struct rxm_ep;
struct rxm_peer;
struct rxm_tx;

/* What every operation below has as its context. */
enum rxm_ctx_kind {
	RXM_CTX_TX,
	RXM_CTX_RX,
};

struct rxm_ctx {
	struct fi_context2 below;	/* scratch of the provider below */
	enum rxm_ctx_kind kind;
};

/* A receive posted below. Part of its connection's array. */
struct rxm_rx {
	struct rxm_ctx ctx;
	struct rxm_conn *conn;
	struct rxm_pkt *pkt;
	struct fab_list link;		/* in conn->posted */
	size_t len;			/* bytes that have come, if arrived */
	uint64_t data, tag;		/* of what has no packet */
	bool arrived;			/* its completion was there before that of one posted earlier */
	bool written;			/* ... and is that of a remote write with data, which takes a receive */
	bool bare, has_data;		/* ... and is that of a tagged message without a packet, and has data */
};

/* What rxm_tx.what is. */
enum rxm_tx_what {
	RXM_TX_PACKET,			/* pkt, and behind it iov */
	RXM_TX_READ,			/* from rma to iov */
	RXM_TX_WRITE,			/* from iov to rma */
};

/* One operation below, and what hangs on its end. What is not zeroed is valid where another field says so: buf, app,
 * hold, has_slot, answered, a vector's count, or the done() that reads it. */
struct rxm_tx {
	struct rxm_ctx ctx;
	struct fab_list link;		/* in conn's txq, ctlq, answerq, flying or waiting */
	struct rxm_ep *ep;		/* borrowed */
	/* ---- zeroed from here ---- */
	struct rxm_conn *conn;
	struct rxm_tx *then;		/* owned: starts, first of all in txq, when this has gone well; or NULL */
	/* Called when it is over below, and answered if it had to be, before it is freed; err is a positive FI_E* or 0.
	 * NULL: nobody is to know. */
	void (*done)(struct rxm_tx *tx, int err, const char *text);
	struct rxm_buf *buf;		/* owned, or NULL */
	struct rxm_buf *hold;		/* owned: payload that was injected; or NULL */
	uint64_t below_flags;
	uint64_t len, data;
	uint8_t what;			/* enum rxm_tx_what */
	uint8_t iov_cnt, rma_cnt, mr_cnt, user_cnt;
	uint8_t parts;			/* of a read or write: operations below, one for each of rma, or 1 for all */
	uint8_t rma_at;			/* those that are over */
	uint8_t code;			/* enum fab_op_code, of operations of the application */
	bool app;			/* an operation of the application, which counts in ep->tx_cnt */
	bool hooked;			/* ... and context is a struct fab_hook */
	bool control;			/* an answer, or what it takes to give one: goes past the application's */
	bool wants_answer;
	bool answered;
	bool writing;			/* announced, and being written: only the end of that ends it */
	bool gone;			/* its connection has ended, and done() was called: only memory is left */
	bool has_slot;
	bool flying;			/* the provider below has it */
	bool want_cq;
	/* ---- not from here on ---- */
	uint32_t slot;			/* in conn->asked */
	int answer_err;
	struct rxm_bufs *bufs;		/* where buf is from */
	struct rxm_bufs *hold_bufs;	/* likewise */
	size_t pkt_len;			/* bytes of buf->pkt that go */
	void *context;
	uint64_t tag;
	struct iovec iov[RXM_IOV_LIMIT];
	void *desc[RXM_IOV_LIMIT];	/* as the provider below has them */
	struct fi_rma_iov rma[RXM_IOV_LIMIT];
	struct fid_mr *mr[RXM_IOV_LIMIT];	/* owned: registered for this */
	/* what the answer is about: results of an atomic go there, an announced message is there */
	struct iovec user[RXM_IOV_LIMIT];
	void *user_desc[RXM_IOV_LIMIT];
	/* rendezvous, at the receiver */
	struct fab_recv *recv;		/* borrowed: whose receive it is */
	struct fab_into into;
	struct fab_msg msg;
	uint64_t msg_id;		/* the sender's */
};

/* A number for requests. */
struct rxm_slot {
	struct rxm_tx *tx;		/* the request, or NULL */
	uint32_t gen;			/* how often it has been in use */
	uint32_t next_free;		/* as conn->asked_free */
};

/* What a packet costs its sender, and gives it back when the peer has taken it. Answers have credit of their own, since
 * many can become due at once, long after what asked for them was taken; and they must not wait behind requests. */
enum rxm_load {
	RXM_ASKS,
	RXM_ANSWERS,
	RXM_LOADS,
	RXM_FREE = RXM_LOADS,		/* word of credit costs none */
};

/* Of one kind, at one end. */
struct rxm_credit {
	uint32_t left;			/* packets that may be sent */
	uint32_t owed;			/* packets of the peer taken, and not yet said */
	/* Packets of the peer that spent its credit, and of which it has not been told: never more than it was
	 * given. */
	uint32_t unpaid;
};

enum rxm_conn_state {
	RXM_CONN_CONNECTING,		/* fi_connect() has been called */
	RXM_CONN_ACCEPTING,		/* fi_accept() */
	RXM_CONN_UP,
	RXM_CONN_DOWN,			/* closed below; waits for its last completions to be read */
};

struct rxm_conn {
	struct rxm_ep *ep;		/* borrowed */
	struct rxm_peer *peer;		/* borrowed; NULL when DOWN */
	struct fab_list link;		/* in ep->conns, or poller->gone when DOWN */
	struct fid_ep *below;		/* owned; NULL when DOWN */
	enum rxm_conn_state state;
	bool ext;			/* the peer knows our additions */
	bool coll;			/* both ends have collectives */
	struct fab_list stuck;		/* in poller->stuck: the provider below took no more */
	bool running;			/* in rxm_tx_run() */
	uint64_t peer_id;		/* the peer's incarnation */
	uint32_t window;		/* credit of each kind at the beginning; 0 unless ext */
	struct rxm_credit credit[RXM_LOADS];
	struct rxm_slot *asked;		/* owned: by number. Grows: an announcement waits as long as its receive does */
	size_t asked_room;
	uint32_t asked_cnt;		/* of them that have ever been in use */
	uint32_t asked_free;		/* the first of those that are not, and one more; 0: none */
	struct fab_list txq;		/* struct rxm_tx, in order, not yet given to the provider below */
	struct fab_list ctlq;		/* likewise, of those that need no credit */
	struct fab_list answerq;	/* likewise, of answers */
	uint32_t ctl_cnt;		/* answers not yet over, within the peer's credit, or RXM_CTL_MAX and rx_cnt */
	struct fab_list held;		/* struct rxm_rx.link: not posted again while ctl_cnt is too high */
	struct fab_list flying;		/* it has them */
	struct fab_list waiting;	/* it is done with them, the peer's answer is still to come */
	struct fab_list kept;		/* struct rxm_kept.link */
	size_t kept_len, kept_cnt;
	struct fab_list parts;		/* struct rxm_part.link: messages of which segments are to come */
	uint32_t part_cnt;		/* at most RXM_PARTS_MAX */
	struct rxm_rx *rx;		/* owned */
	struct fab_list posted;		/* struct rxm_rx.link, in the order in which packets fill them */
	struct rxm_chunk *rx_mem;	/* owned */
	uint32_t rx_cnt;
	uint64_t deadline_ns;		/* CONNECTING, ACCEPTING */
};

struct rxm_peer {
	struct fab_entry entry;		/* in ep->peers, by addr */
	struct rxm_ep *ep;
	union fab_sockaddr addr;
	fi_addr_t fi_addr;		/* FI_ADDR_NOTAVAIL: not in the address vector */
	struct rxm_conn *conn;		/* for all that we send; NULL: none */
	struct rxm_conn *inbound;	/* from ourselves to ourselves: the other end of conn */
	struct fab_list txq;		/* operations that wait for a connection to be made */
	bool asked;			/* none may, but a refused inject (-FI_EAGAIN) wants a connection, too ... */
	bool untold;			/* ... which has failed, and no call has been told since */
	struct fab_turn turn;		/* in ep->pace */
	struct fab_timer retry;
	uint64_t holdoff_ns;		/* until then, operations fail with holdoff_err */
	int holdoff_err;
	unsigned tries;			/* since the first that failed */
	uint64_t deadline_ns;		/* of them */
};

/* A message that waits for its receive. */
struct rxm_kept {
	struct fab_kept base;
	struct fab_recv *recv;		/* borrowed: where it waits */
	struct fab_list link;		/* in conn->kept, or ep->orphans */
	struct rxm_conn *conn;		/* NULL: gone, and the message is whole */
	union fab_sockaddr from;
	struct rxm_rx *rx;		/* held, or NULL */
	struct rxm_part *part;		/* not whole yet, or NULL */
	bool no_credit;			/* the peer has had no credit for it */
	bool rndv;			/* data holds a struct rxm_rndv */
	bool owes_ack;			/* the sender waits for it to be taken (FI_MATCH_COMPLETE) */
	uint64_t msg_id;		/* of what is announced, or owes_ack */
	size_t cost;			/* what it adds to conn->kept_len */
	size_t have;			/* bytes in data */
	uint8_t data[];
};

/* A message that comes in segments. */
struct rxm_part {
	struct fab_list link;		/* in conn->parts */
	struct rxm_conn *conn;
	uint64_t msg_id;
	uint64_t have;
	uint32_t next_no;
	struct fab_msg msg;
	struct fab_recv *recv;		/* borrowed */
	struct fab_into into;		/* rx NULL: into kept, or nowhere */
	struct rxm_kept *kept;		/* where it waits, or NULL */
};

#define RXM_WHY		320		/* bytes of a text that says why something has failed */

/* Progress below, for the endpoints on one engine: poller.c. */
struct rxm_poller {
	struct fab_list link;		/* in domain->pollers; under domain->lock, as user_cnt is */
	unsigned user_cnt;
	struct fab_engine *engine;	/* borrowed: its endpoints keep it */
	struct fid_fabric *fabric;	/* borrowed: below */
	struct fid_eq *eq;		/* owned */
	struct fid_cq *cq;		/* owned */
	struct fab_source eq_src, cq_src;	/* added when somebody sleeps for the first time ... */
	bool wakes;			/* ... which was so, and they are */
	struct fab_timer look;		/* ... or that failed, and this wakes */
	struct fab_poll_fn fn;
	struct fab_list gone;		/* struct rxm_conn.link, those that are DOWN */
	struct fab_list stuck;		/* struct rxm_conn.stuck */
	unsigned making;		/* connections that are being made */
	bool more_events;		/* than were taken in the last pass */
	unsigned passes;		/* while nobody slept; they wrap */
	uint64_t events_ns;		/* when the last of them looked for events */
	bool reading;			/* in read_cq() */
	int lost;			/* why cq is not read any more, a positive FI_E*; 0: it is */
	struct fab_list eps;		/* struct rxm_ep.poller_link */
	/* The event queue says that it has ended: it does when all that came before is out of the completion queue. No
	 * events are read behind that. Or NULL */
	struct rxm_conn *ending;
	int ending_err;			/* why */
	char ending_why[RXM_WHY];
	/* There was no memory for an event below (FI_EOVERRUN): eq is not read any more, and endpoints on this
	 * poller make no connections */
	bool eq_lost;
};

struct rxm_ep {
	struct fab_ep base;
	struct rxm_domain *domain;
	struct fab_recv recv;
	struct fab_recv coll_recv;	/* of messages within collectives, if base.coll: matched by tag and source */
	bool has_coll;
	union fab_sockaddr addr;	/* where it listens; what was asked for before it is enabled */
	struct fid_pep *pep;		/* owned */
	struct rxm_poller *poller;	/* a reference, from enable on */
	struct fab_list poller_link;	/* in poller->eps, while enabled */
	struct fab_av_watch watch;
	bool closing;
	uint64_t incarnation;		/* what peers know this endpoint by */
	uint64_t seg_id;		/* of the last message that went in segments */
	size_t rx_len;			/* bytes of a packet, at most */
	struct fab_pool tx_pool;	/* struct rxm_tx */
	uint32_t tx_cnt, tx_size;	/* operations of the application */
	struct rxm_bufs small, big;	/* packets without and with payload */
	struct fab_table peers;		/* struct rxm_peer: owned */
	struct rxm_peer **by_addr;	/* owned: index fi_addr */
	size_t by_addr_cnt;
	struct fab_list conns;
	struct fab_list orphans;	/* struct rxm_kept whose connection has ended */
	struct fab_pace pace;		/* whose turn it is to connect */
	unsigned making;		/* connections being made */
	struct fab_timer timer;		/* deadlines of connections */
	bool timer_runs;
};

#endif
