/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The objects of ofi_rxm: their fields, who owns what a field points to, and limits. rxm.h says which lock guards them,
 * and includes the headers that have the functions.
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
#include "common/endpoint/endpoint.h"
#include "common/mrcache/mrcache.h"
#include "common/pace/pace.h"
#include "common/receive/receive.h"
#include "rxm/wire.h"

#define RXM_LAYER		"ofi_rxm"
#define RXM_IOV_LIMIT		4
#define RXM_DELIVERED		(FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define RXM_TX_SIZE		1024	/* operations outstanding, if the endpoint does not ask for another number */
#define RXM_RX_SIZE		4096
#define RXM_SIZE_MAX		65536
#define RXM_INJECT_SIZE		1024
#define RXM_EAGER_MAX		16384	/* default: bytes of a message that goes in one packet (eager) */
#define RXM_SAR_LIMIT		131072	/* default: bytes of a message that goes in segments; longer: rendezvous */
#define RXM_CONN_RX		64	/* default: packet buffers posted for a connection */
#define RXM_SRX_MAX	1024	/* packet buffers that the connections of an engine share, at most */
/* Default: operations that a connection can have outstanding below. With the request that marks the end, a queue pair
 * has 256; one more would take twice the memory. */
#define RXM_MSG_TX	255
#define RXM_ASKED_MAX		65535	/* requests of a connection that wait for an answer */
#define RXM_KEEP_MAX		(4 << 20)	/* bytes of unexpected messages beyond which a peer gets no credit */
#define RXM_STRANGER_MAX	(64 << 20)	/* bytes of unexpected messages of all peers in no address vector ... */
#define RXM_STRANGER_CONN	16384		/* ... and their connections with an endpoint */
#define RXM_KEEP_SHARED	(64 << 20)	/* bytes beyond which a peer without credit is dropped, with shared receives */
#define RXM_KEEP_CNT		4096		/* likewise, number of messages */
#define RXM_BELOW_NAME_MAX	32
#define RXM_PARTS_MAX		32	/* messages of a peer of which some segments have arrived */
#define RXM_CTL_MAX		256	/* queued answers beyond which nothing is received from a peer without credit */
#define RXM_SMALL		448	/* bytes behind the headers of a packet in ep->small */
#define RXM_BIG_MIN		4608	/* likewise in ep->big, at least */
#define RXM_AMO_MAX		2048	/* bytes of elements of an atomic */
#define RXM_COPY_MAX	4096	/* bytes of an RMA that is copied rather than registered */
#define RXM_CHUNK	(512 << 10)	/* bytes of a long message that are registered and read at a time */
#define RXM_CHUNKS	4	/* reads of a message at a time, while its buffer is being registered */
#define RXM_SEG_MAX		(1u << 24)	/* bytes of a message in segments */
/* Packets of each enum rxm_load that may be under way to a connection with cnt packet buffers. Four buffers remain for
 * packets of credit: at most two of each load are sent before the peer has taken one. */
#define RXM_WINDOW(cnt)		(((cnt) - 4) / RXM_LOADS)

/* Parameters of the environment, read once at initialisation (prov.c). */
struct rxm_params {
	size_t buffer_size;		/* bytes of message in a packet */
	size_t sar_limit;
	size_t tx_size, rx_size;
	size_t conn_rx;
	bool rndv_write;
	bool use_srx;
	size_t msg_tx;
	int comp_max;
	int connect_timeout_ms;
	int holdoff_ms;
	size_t stranger_max, stranger_conn;
};
extern struct rxm_params rxm_params;

extern struct fi_provider rxm_prov;
extern const struct fab_calls *const rxm_calls;	/* the functions that the tables below call; for deferred work */
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

/* A region of the application, over a device: what its descriptors point to. */
struct rxm_mr {
	struct fid_mr *below;		/* owned: has the rights and the key that the application asked for */
	/* Owned, or NULL: the same memory with a key for peers that read an announced message, where `below` does not
	 * allow that. Made when it is first needed, under domain->lock. */
	struct fid_mr *_Atomic offer;
	void *base;
	size_t len;
	uint64_t access;
	bool device;			/* memory of a device, or a dma-buf: the processor must not touch it */
	uint8_t hmem;			/* the number of a device's memory (common/hmem), which can be copied; or 0 */
};

/* A pool of packet buffers of one size, which never move. Guarded by the lock of the endpoint's engine. */
struct rxm_bufs {
	struct fid_domain *below;	/* borrowed: chunks are registered here; NULL: registration is not needed */
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
	struct fi_info *below_info;	/* owned: the info that `below` was opened with */
	struct fi_info *most;		/* owned: the most that an endpoint may ask for */
	bool mr_local;			/* the provider below needs local memory registered (FI_MR_LOCAL) */
	bool mr_virt;			/* remote addresses are virtual addresses (FI_MR_VIRT_ADDR) */
	struct fab_mrc cache;		/* registrations for operations: pins.c */
	bool uses_desc;			/* descriptors of the application are valid, or NULL: FI_MR_LOCAL or FI_HMEM */
	bool has_device;		/* a region of a device has been registered; under `lock` */
	bool own_keys;			/* regions get keys of ours below, not those of the application */
	bool has_dc;			/* the provider below has FI_DELIVERY_COMPLETE */
	bool has_files;			/* each connection of the provider below has a descriptor */
	bool patient;			/* the provider below waits until a busy peer accepts the connection */
	/* Guards the next three fields (the last two until they are set), and rxm_mr.offer. An engine's lock is taken
	 * inside of it. */
	pthread_mutex_t lock;
	struct fab_list pollers;	/* struct rxm_poller.link */
	struct fi_ops mr_fid_ops;	/* of regions: the common ones, with our close */
	int (*mr_close_base)(struct fid *fid);	/* close of prov/common */
};

/* The registrations that a call has made for its buffers. */
struct rxm_pins {
	struct fab_pin *pin[RXM_IOV_LIMIT];	/* NULL: none, or taken over by the operation */
};

struct rxm_conn;
struct rxm_ep;
struct rxm_peer;
struct rxm_tx;

/* The operation that the context of a completion below belongs to. */
enum rxm_ctx_kind {
	RXM_CTX_TX,
	RXM_CTX_RX,
};

struct rxm_ctx {
	struct fi_context2 below;	/* scratch of the provider below */
	enum rxm_ctx_kind kind;
};

/* A receive posted below. Part of its connection's array; where receives are shared, of one of the poller (srx.c), and
 * a connection's from its arrival until it is posted again. */
struct rxm_rx {
	struct rxm_ctx ctx;
	bool shared;
	struct rxm_conn *conn;		/* NULL: shared, and posted */
	struct rxm_pkt *pkt;
	void *desc;			/* of pkt, for the provider below */
	struct fab_list link;		/* in conn->posted or conn->held */
	size_t len;			/* bytes received, if arrived */
	uint64_t data, tag;		/* if written or bare */
	bool arrived;			/* completed, but one that was posted earlier has not */
	bool written;			/* arrived, and was taken by a remote write with data */
	bool bare, has_data;		/* arrived, and holds a tagged message without packet headers; it has data */
};

/* The operation below that an rxm_tx is. */
enum rxm_tx_what {
	RXM_TX_PACKET,			/* a message: buf->pkt, followed by iov */
	RXM_TX_READ,			/* an RMA read from rma to iov */
	RXM_TX_WRITE,			/* an RMA write from iov to rma */
};

/* An operation of the provider below, and the action at its end. A field that is not zeroed is valid only where another
 * field says so: buf, app, hold, has_slot, answered, the count of a vector, or a done() that reads it. */
struct rxm_tx {
	struct rxm_ctx ctx;
	struct fab_list link;		/* in conn's txq, ctlq, answerq, flying or waiting */
	struct rxm_ep *ep;		/* borrowed */
	/* ---- zeroed from here ---- */
	struct rxm_conn *conn;
	struct rxm_tx *then;		/* owned: goes to the head of txq when this one has succeeded; or NULL */
	/* Called before the entry is freed, when it has completed below and, if it wants an answer, been answered. err
	 * is a positive FI_E* or 0. NULL: nothing to call. */
	void (*done)(struct rxm_tx *tx, int err, const char *text);
	struct rxm_buf *buf;		/* owned, or NULL */
	struct rxm_buf *hold;		/* owned: a copy of injected payload; or NULL */
	uint64_t below_flags;
	uint64_t len, data;
	uint8_t what;			/* enum rxm_tx_what */
	uint8_t iov_cnt, rma_cnt, pin_cnt, user_cnt;
	uint8_t parts;			/* operations below of a read or write: one for each rma, or 1 for all */
	uint8_t rma_at;			/* parts that have completed */
	uint8_t code;			/* enum fab_op_code, of an operation of the application */
	bool app;			/* an operation of the application, counted in ep->tx_cnt */
	bool hooked;			/* ... and context is a struct fab_hook */
	bool control;			/* for an answer to the peer: overtakes operations of the application */
	bool wants_answer;
	bool answered;
	bool writing;			/* announced, and now being written: it ends when the write ends */
	bool gone;			/* its connection has ended and done() was called; waits for its completion */
	bool has_slot;
	bool flying;			/* the provider below has it */
	bool want_cq;
	uint8_t hmem;			/* of an atomic: the number of the memory in user; or 0 */
	/* rendezvous, at the receiver: fetch.c */
	bool fetching;			/* it is fetched in chunks; `turn` is valid */
	bool registering;		/* a thread registers the next chunk, without the lock */
	uint8_t chunk_cnt;		/* chunks that are being read */
	bool told;			/* the page of the process has it as the oldest of its kind */
	struct rxm_tx *whole;		/* of a chunk: the message */
	size_t chunk_at, chunk_left;	/* bytes whose reads have begun; that have not been read */
	/* ---- not from here on ---- */
	struct fi_stats_peer *stats;	/* borrowed, of an operation of the application: the record of its peer */
	uint32_t number;		/* likewise: counts those of the record */
	uint32_t slot;			/* in conn->asked */
	int answer_err;
	struct rxm_bufs *bufs;		/* where buf is from */
	struct rxm_bufs *hold_bufs;	/* likewise */
	size_t pkt_len;			/* bytes of buf->pkt that are sent */
	void *context;
	uint64_t tag;
	struct iovec iov[RXM_IOV_LIMIT];
	void *desc[RXM_IOV_LIMIT];	/* descriptors of the provider below */
	struct fi_rma_iov rma[RXM_IOV_LIMIT];
	struct fab_pin *pin[RXM_IOV_LIMIT];	/* owned: registrations for this operation */
	/* the application's buffers: for the results of an atomic, or with the announced message */
	struct iovec user[RXM_IOV_LIMIT];
	void *user_desc[RXM_IOV_LIMIT];
	/* rendezvous, at the receiver */
	struct fab_into into;
	struct fab_msg msg;
	uint64_t msg_id;		/* of the sender's request */
	struct fab_list turn;		/* in poller->fetches */
	int fetch_err;			/* why the chunks that have not begun are not read, or 0 */
};

/* A slot for a request that waits for its answer. The request's msg_id is made of the slot's index and gen. */
struct rxm_slot {
	struct rxm_tx *tx;		/* the request, or NULL */
	uint32_t gen;			/* how often the slot has been used */
	uint32_t next_free;		/* as conn->asked_free */
};

/* The kind of credit that a packet costs its sender. The peer gives the credit back when it has taken the packet.
 * Answers have credit of their own: many can become due at once, long after their requests were taken, and they must
 * not wait behind requests. */
enum rxm_load {
	RXM_ASKS,
	RXM_ANSWERS,
	RXM_LOADS,
	RXM_FREE = RXM_LOADS,		/* a packet of credit costs none */
};

/* The credit of one kind, at one end of a connection. */
struct rxm_credit {
	uint32_t left;			/* packets that this end may send */
	uint32_t owed;			/* packets of the peer that were taken, and not yet reported to it */
	/* Packets that the peer has sent on its credit, less those reported to it: never more than it was given. */
	uint32_t unpaid;
};

enum rxm_conn_state {
	RXM_CONN_CONNECTING,		/* fi_connect() has been called */
	RXM_CONN_ACCEPTING,		/* fi_accept() */
	RXM_CONN_UP,
	RXM_CONN_DOWN,			/* closed below; freed when its last completions have been read */
};

struct rxm_conn {
	struct rxm_ep *ep;		/* borrowed */
	struct rxm_peer *peer;		/* borrowed; NULL when DOWN */
	struct fi_stats_peer *stats;	/* borrowed: of the peer */
	struct fab_list link;		/* in ep->conns, or poller->gone when DOWN */
	struct fid_ep *below;		/* owned; NULL when DOWN */
	enum rxm_conn_state state;
	bool ext;			/* the peer knows our additions to the protocol (wire.h) */
	bool coll;			/* both ends have collectives */
	bool stranger;			/* the peer is in no address vector; not DOWN: it counts in ep->stranger_cnt */
	struct fab_list stuck;		/* in poller->stuck: no memory, or the provider below returned -FI_EAGAIN */
	bool running;			/* in rxm_tx_run() */
	uint64_t peer_id;		/* the peer's incarnation */
	uint32_t window;		/* initial credit of each kind; 0 unless ext */
	struct rxm_credit credit[RXM_LOADS];
	/* Owned: the slots of requests. Grows, since an announcement waits for as long as its receive is not posted. */
	struct rxm_slot *asked;
	size_t asked_room;
	uint32_t asked_cnt;		/* slots that have ever been in use */
	uint32_t asked_free;		/* index of the first free slot, plus one; 0: none */
	struct fab_list txq;		/* struct rxm_tx, in order, not yet given to the provider below */
	struct fab_list ctlq;		/* likewise: operations that need no credit */
	struct fab_list answerq;	/* likewise: answers */
	uint32_t ctl_cnt;		/* answers that have not ended; bounded by credit, or by RXM_CTL_MAX + rx_cnt */
	struct fab_list held;		/* struct rxm_rx.link: not posted again while ctl_cnt is too high */
	struct fab_list flying;		/* struct rxm_tx that the provider below has */
	struct fab_list waiting;	/* struct rxm_tx that have completed below and wait for the peer's answer */
	struct fab_list kept;		/* struct rxm_kept.link */
	size_t kept_len, kept_cnt;
	struct fab_list parts;		/* struct rxm_part.link: messages that lack segments */
	uint32_t part_cnt;		/* at most RXM_PARTS_MAX */
	bool shares;			/* its receives are the poller's: rx and rx_mem are NULL */
	struct rxm_rx *rx;		/* owned */
	/* struct rxm_rx.link, in the order of posting, in which packets fill them. Of shared receives, those that have
	 * arrived and wait, in the order of the packets */
	struct fab_list posted;
	struct rxm_chunk *rx_mem;	/* owned: the packet buffers */
	uint32_t rx_cnt;
	uint32_t own_window;		/* RXM_WINDOW(rx_cnt): credit of each kind that the peer has at most */
	uint64_t deadline_ns;		/* of an attempt: while CONNECTING or ACCEPTING */
};

struct rxm_peer {
	struct fab_entry entry;		/* in ep->peers, by addr */
	struct rxm_ep *ep;
	union fab_sockaddr addr;
	struct fi_stats_peer *stats;	/* borrowed: its record in the page of the process */
	fi_addr_t fi_addr;		/* FI_ADDR_NOTAVAIL: not in the address vector */
	struct rxm_conn *conn;		/* we send on it; NULL: there is no connection */
	struct rxm_conn *inbound;	/* where the peer is this endpoint itself: the other end of conn */
	/* an attempt beside conn, which finds out whether the peer still has its end of that; or NULL */
	struct rxm_conn *inquiry;
	uint64_t inquired_ns;		/* when the last one began; 0: never */
	struct fab_list txq;		/* struct rxm_tx that wait for a connection */
	bool asked;			/* an inject was refused with -FI_EAGAIN: connect, though txq may be empty */
	bool untold;			/* the attempt for it has failed, and no call has returned that error yet */
	struct fab_turn turn;		/* in ep->pace */
	struct fab_timer retry;
	uint64_t holdoff_ns;		/* operations fail with holdoff_err until then; 0: they do not */
	int holdoff_err;
	unsigned tries;			/* attempts to connect since the first that failed */
	uint64_t deadline_ns;		/* of these attempts */
};

/* An unexpected message: it waits for a receive. */
struct rxm_kept {
	struct fab_kept base;
	struct rxm_ep *ep;		/* borrowed */
	union {
		struct fab_list link;	/* in conn->kept */
		struct fab_entry orphan;	/* in ep->orphans, when conn is NULL */
	};
	struct rxm_conn *conn;		/* NULL: the connection has ended; the message is complete */
	union fab_sockaddr from;
	struct rxm_rx *rx;		/* its packet buffer, not posted again yet; or NULL */
	struct rxm_part *part;		/* segments are missing; or NULL */
	bool stranger;			/* it counts in ep->stranger_len */
	uint32_t no_credit;		/* packets of it for which the peer has not got its credit back */
	bool rndv;			/* announced: data holds a struct rxm_rndv */
	bool owes_ack;			/* the sender waits until a receive has taken it (FI_MATCH_COMPLETE) */
	uint64_t msg_id;		/* if rndv or owes_ack */
	size_t cost;			/* its part of conn->kept_len */
	size_t have;			/* bytes in data */
	uint8_t data[];
};

/* A message that arrives in segments, and lacks some. */
struct rxm_part {
	struct fab_list link;		/* in conn->parts */
	struct rxm_conn *conn;
	uint64_t msg_id;
	uint64_t have;
	uint32_t next_no;
	struct fab_msg msg;
	struct fab_into into;		/* rx is NULL: segments are copied into kept, or dropped */
	struct rxm_kept *kept;		/* unexpected, and waits here; or NULL */
};

#define RXM_WHY		320		/* bytes of a text that says why something has failed */

/* The queues below of the endpoints on one engine: poller.c. */
struct rxm_poller {
	struct fab_list link;		/* in domain->pollers; under domain->lock, as user_cnt is */
	unsigned user_cnt;
	struct fab_engine *engine;	/* borrowed: its endpoints keep it */
	struct rxm_domain *domain;	/* borrowed, likewise */
	struct fid_fabric *fabric;	/* borrowed: below */
	struct fid_eq *eq;		/* owned */
	struct fid_cq *cq;		/* owned */
	struct fab_source eq_src, cq_src;	/* descriptors of the queues; added when a thread first sleeps */
	struct fid_ep *srx;		/* owned: the shared receives of all connections; NULL: each has its own */
	struct rxm_srx_part *parts;	/* owned: their buffers */
	uint32_t srx_cnt, srx_posted;	/* of these: all, and those that are posted */
	size_t srx_len;			/* bytes of each */
	bool srx_full;			/* there was no memory for more */
	uint32_t conn_cnt;		/* connections that share them */
	bool wakes;			/* both sources have been added */
	struct fab_timer look;		/* where they cannot be added: polls for threads that sleep */
	struct fab_poll_fn fn;
	struct fab_list gone;		/* struct rxm_conn.link of connections that are DOWN */
	struct fab_list stuck;		/* struct rxm_conn.stuck */
	struct fab_timer again;		/* runs the queues of these, where no end of an operation will */
	unsigned making;		/* connections that are being made */
	bool more_events;		/* the last pass left events unread */
	unsigned passes;		/* passes while no thread slept; wraps */
	uint64_t events_ns;		/* when such a pass last read events */
	uint32_t srx_taken;		/* shared receives completed in this read_cq(): as many were filled before */
	bool reading;			/* in read_cq() */
	struct fab_signal after;	/* runs after the pass or call, where it may take long: fetch.c */
	struct fab_list fetches;	/* struct rxm_tx.turn: messages whose next chunk is to be registered */
	unsigned registering;		/* threads that do so, without the lock */
	int lost;			/* positive FI_E*: cq has failed and is not read any more; 0: it works */
	bool odd;			/* lost, or domain->has_device: calls look closer */
	bool watch;			/* lost, or there are strangers, or have been: read_cq() looks closer */
	unsigned stranger_cnt;		/* connections with strangers */
	uint64_t stranger_ns;		/* when one was last seen, or asked for a connection */
	uint64_t heard_ns;		/* when known peers had completions last, as far as watched; 0: never */
	uint64_t rest_ns;		/* no events are read before, since those of strangers took long; 0: they are */
	struct fab_timer rest;		/* the end of that, where threads sleep */
	struct fab_list eps;		/* struct rxm_ep.poller_link */
	/* A connection whose end was read from the event queue, or NULL. It ends as soon as the completion queue has
	 * been read until it was empty. No more events are read before that. */
	struct rxm_conn *ending;
	int ending_err;			/* why it ends */
	char ending_why[RXM_WHY];
	/* The provider below had no memory for an event (FI_EOVERRUN): eq is not read any more, and endpoints on this
	 * poller make no connections. */
	bool eq_lost;
};

/* Figures of the process to which each endpoint adds its part: account.c. */
enum rxm_figure {
	RXM_HELD_KNOWN,			/* bytes of unexpected messages: of peers in the address vector */
	RXM_HELD_STRANGERS,		/* ... and of others */
	RXM_HELD_BUFFERS,		/* bytes of packet buffers */
	RXM_HELD_CONNS,			/* connections with peers in no address vector */
	RXM_REFUSED,			/* requests of such peers that were refused since there were too many */
	RXM_FIGURES
};

struct rxm_ep {
	struct fab_ep base;
	struct rxm_domain *domain;
	struct fab_recv recv;
	bool has_coll;
	union fab_sockaddr addr;	/* it listens here; before it is enabled, the address asked for */
	struct fid_pep *pep;		/* owned */
	struct rxm_poller *poller;	/* a reference, from enable on */
	struct fab_list poller_link;	/* in poller->eps, while enabled */
	struct fab_av_watch watch;
	bool closing;
	uint64_t incarnation;		/* random: tells this endpoint from an earlier one at its address */
	uint64_t seg_id;		/* number of the last message that was sent in segments */
	size_t rx_len;			/* bytes of a packet, at most */
	struct rxm_pins *pins;		/* what the call under way has registered before it took the lock; or NULL */
	struct fab_pool tx_pool;	/* struct rxm_tx */
	uint32_t tx_cnt, tx_size;	/* operations of the application: outstanding, and at most */
	struct rxm_bufs small, big;	/* packets without and with payload */
	struct fab_table peers;		/* struct rxm_peer: owned */
	struct rxm_peer **by_addr;	/* owned: peers, indexed by fi_addr */
	size_t by_addr_cnt;
	struct fab_list conns;
	unsigned conn_cnt, stranger_cnt;	/* in conns, and of these with strangers */
	size_t kept_len;		/* bytes of messages that are kept, also of peers that have gone */
	size_t stranger_len;		/* those of them of strangers */
	uint64_t refused_cnt;		/* requests of strangers, since there were too many */
	uint64_t shown[RXM_FIGURES];	/* what this endpoint has added to the figures of the process */
	struct fab_table orphans;	/* struct rxm_kept.orphan: connections have ended; by address */
	struct fab_pace pace;		/* bounds the attempts to connect at a time */
	unsigned making;		/* connections being made */
	unsigned inquiry_cnt;		/* of these, peers' inquiries */
	struct fab_timer timer;		/* deadlines of connections */
	bool timer_runs;
	struct fab_survey survey;	/* while enabled */
};

#endif
