/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The page of a process: what each endpoint does, to whom, what waits and why. fi_stats(7) describes it for users,
 * fi_why(1) reads it.
 *
 * The page is a file in a folder of the user (fi_stats(7)), which the library maps when the first fabric is opened. It
 * has a fixed size. It can be read while the process runs, hangs or is stopped, and after it was killed. A process that
 * ends properly removes its page. A child of fork(2) has none until it opens a fabric itself, and then its own.
 *
 * Layout: struct fi_stats_page. The header names the place, the size and the number of the records of each table, and a
 * label for each counter in them. A reader finds tables and counters there, so it can print counters that it does not
 * know, and read pages of later releases with the same FI_STATS_VERSION: those may have longer records and more tables
 * and labels. All numbers are in the byte order of the host.
 *
 * Writers: each record has one at a time, the holder of the lock of its engine; the library guards tables, events and
 * errors itself. A reader takes no lock. It copies the page with read(2) (never by mapping it, since a file that is cut
 * off under a mapping raises SIGBUS), checks each number and text before it uses it, and knows that other words change
 * meanwhile. Counters are single words that only grow. A struct fi_stats_pending is whole if its first and last words
 * are equal, as they were copied in the order of their addresses.
 *
 * Times are ticks of the clock that the header names, 0 means never. fi_stats_ns() converts them.
 */
#ifndef WEFT_STATS_H
#define WEFT_STATS_H

#include <stdint.h>
#include <rdma/fabric.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_STATS_MAGIC		0x6567617074666577ULL	/* "weftpage" in a little-endian file */
#define FI_STATS_VERSION	2

#define FI_STATS_TEXT		64	/* bytes of an address, or a name, with the NUL */
#define FI_STATS_ERROR_TEXT	208

/* ---- what is counted ---- */

/* Kinds of operations. The order is that of the counters in struct fi_stats_peer. */
enum fi_stats_op {
	FI_STATS_SEND,			/* fi_send() and its forms */
	FI_STATS_TSEND,			/* fi_tsend() and its forms */
	FI_STATS_COLL_SEND,		/* a message of a collective */
	FI_STATS_WRITE,
	FI_STATS_ATOMIC,
	FI_STATS_READ,
	FI_STATS_FETCH_ATOMIC,		/* also fi_compare_atomic() */
	FI_STATS_COLLECTIVE,		/* an operation of fi_collective(3) */
	FI_STATS_RECV,
	FI_STATS_TRECV,
	FI_STATS_COLL_RECV,
	FI_STATS_REMOTE_WRITE,		/* by the peer, in memory of this process; counted as far as this process
					 * carries them out or learns of them */
	FI_STATS_REMOTE_READ,
	FI_STATS_REMOTE_ATOMIC,
	FI_STATS_REMOTE_FETCH_ATOMIC,
	FI_STATS_OPS
};

struct fi_stats_count {
	uint64_t ops;			/* that have succeeded */
	uint64_t bytes;			/* of their payload, as their completions report it */
};

/* ---- operations that wait ---- */

/* What the oldest operation of its kind waits for. */
enum fi_stats_state {
	FI_STATS_NONE,
	FI_STATS_RESOLVING,		/* an address or a route is being resolved */
	FI_STATS_CONNECTING,		/* the connection is being made */
	FI_STATS_ACCEPTING,		/* the peer's program has not answered the request: fi_accept(), fi_reject() */
	FI_STATS_AWAITED,		/* the peer must connect to us (FI_FIREWALL_ADDR) */
	FI_STATS_PARKED,		/* the idle connection was closed by agreement, and is being reopened */
	FI_STATS_CREDIT,		/* the peer has granted no credit: it has not taken earlier messages */
	FI_STATS_ANNOUNCED,		/* the message is announced, and the peer has posted no receive for it */
	FI_STATS_FULL,			/* the stream is full: the peer does not read */
	FI_STATS_QUEUED,		/* it leaves with the next progress call of this process */
	FI_STATS_SENT,			/* all of it was given to the network, whose confirmation is outstanding */
	FI_STATS_ANSWER,		/* a read or fetching atomic waits for its data */
	FI_STATS_DELIVERY,		/* the peer must confirm delivery, a match, or durability */
	FI_STATS_FENCE,			/* held behind earlier operations: FI_FENCE, or an order that was asked for */
	FI_STATS_POSTED,		/* a receive for which no message has come */
	FI_STATS_ARRIVING,		/* a message of which a part has arrived */
	FI_STATS_KEPT,			/* a message has arrived, and no receive is posted for it */
	FI_STATS_KEPT_ANNOUNCED,	/* a message was announced by the peer, and no receive is posted for it */
	FI_STATS_MEMBERS,		/* a collective waits for messages of other members */
	FI_STATS_THRESHOLD,		/* a thread waits in fi_cntr_wait(), or deferred work waits, for a counter */
	FI_STATS_REQUESTED,		/* a connection request of a peer that this program has not answered */
	FI_STATS_STATES
};

/* Flags of struct fi_stats_pending. */
#define FI_STATS_TAGGED		1	/* tag (and ignore) are valid */
#define FI_STATS_ANY_SOURCE	2	/* a receive from anybody */
#define FI_STATS_PEER		4	/* peer names the index of the record of the peer */
#define FI_STATS_IN_ORDER	8	/* operations of the peer complete in their order: this one has completed if the
					 * peer's `dequeued` is `number` at least */

/* The oldest operation of a kind that has not completed, and the number of all of them. */
struct fi_stats_pending {
	uint64_t written;		/* equal to `begun`: the record is whole */
	uint64_t since;			/* when it was first seen as the oldest, at most 0.1 s after it was; 0: nothing
					 * is pending */
	uint64_t number;		/* of the operation: another operation has another number */
	uint64_t cnt;			/* pending of this kind; for threads in fi_cntr_wait(): the counter's value */
	uint64_t tag, ignore;
	uint64_t len;			/* bytes; for a counter: the value that is waited for */
	uint32_t peer;			/* index in the table of peers */
	uint8_t op;			/* enum fi_stats_op */
	uint8_t state;			/* enum fi_stats_state */
	uint16_t flags;
	uint64_t begun;
};

/* ---- records ---- */

enum fi_stats_used {
	FI_STATS_FREE,
	FI_STATS_LIVE,
	FI_STATS_GONE,			/* of peers: no connection any more; the counters go on if it comes back */
	FI_STATS_MAKING,		/* nothing of it is valid yet */
};

/* A progress engine: one lock, and all that makes progress under it. */
struct fi_stats_engine {
	uint32_t used;			/* enum fi_stats_used */
	uint32_t automatic;		/* FI_PROGRESS_AUTO: a thread of the library makes progress */
	uint64_t last_pass;		/* the last progress call that looked everywhere. Calls that follow each other
					 * closely may be glances, up to 128 of them */
	uint64_t glances;		/* so far */
	uint64_t passes;		/* progress calls of both kinds, as of `surveyed` */
	uint64_t last_sleep;		/* when a thread has last prepared to sleep until something happens. Later than
					 * last_pass: it may be sleeping (fi_cq_sread(), poll() on the descriptor) */
	uint64_t longest_gap;		/* ticks between two progress calls while something was pending; shorter ones
					 * than some 2 s may be left out */
	uint64_t longest_gap_end;
	uint64_t surveyed;		/* when the pending operations were last looked through */
	uint64_t pending;		/* operations pending then, without receives and kept messages */
};

enum fi_stats_conn {
	FI_STATS_CONN_NONE,		/* needs none, or has none yet */
	FI_STATS_CONN_CONNECTING,
	FI_STATS_CONN_UP,
	FI_STATS_CONN_PARKED,
	FI_STATS_CONN_DOWN,
};

enum fi_stats_carrier {
	FI_STATS_CARRIER_NONE,
	FI_STATS_CARRIER_TCP,
	FI_STATS_CARRIER_UNIX,		/* a Unix socket of this host */
	FI_STATS_CARRIER_RING,		/* rings in memory shared with a process of this host */
	FI_STATS_CARRIER_UDP,
	FI_STATS_CARRIER_RDMA,
	FI_STATS_CARRIER_BELOW,		/* an endpoint of another provider (rxm) */
};

/* Kinds of pending operations of a peer. */
enum fi_stats_peer_kind {
	FI_STATS_PEER_MESSAGE,		/* sends */
	FI_STATS_PEER_ACCESS,		/* writes, reads, atomics */
	FI_STATS_PEER_CONNECT,		/* the connection itself: fi_connect(), or the first operation */
	FI_STATS_PEER_KEPT,		/* messages of the peer for which no receive is posted */
	FI_STATS_PEER_ARRIVING,		/* messages that have their receive, and of which a part is missing */
	FI_STATS_PEER_KINDS
};

/* A peer of an endpoint. The last members of the name are the counters, all of which only grow. */
struct fi_stats_peer {
	uint32_t used;			/* enum fi_stats_used */
	uint32_t ep;			/* index of the endpoint */
	uint64_t incarnation;		/* of the peer's endpoint, as it was announced; 0: unknown */
	uint64_t fi_addr;
	uint32_t pid;			/* of the peer's process on its host, as it was announced; 0: unknown */
	uint16_t conn;			/* enum fi_stats_conn */
	uint16_t carrier;		/* enum fi_stats_carrier */
	uint64_t changed;		/* when conn changed last */
	char addr[FI_STATS_TEXT];	/* "10.0.0.1:4711", the address of the peer; empty: unknown */
	char local[FI_STATS_TEXT];	/* this end of the connection, where the peer's end names it; or empty */

	struct fi_stats_count op[FI_STATS_OPS];
	uint64_t errors;		/* operations that completed in error */
	uint64_t unexpected;		/* messages that came before their receive */
	uint64_t unexpected_bytes;
	uint64_t announced;		/* messages that this process had to announce, since they are long or the peer
					 * had granted no credit */
	uint64_t announced_by_peer;
	uint64_t credit_waits;		/* messages that could not leave at once for lack of credit */
	uint64_t full_waits;		/* times that the stream was full */
	uint64_t retries;		/* attempts to connect after the first one; calls that got -FI_EAGAIN */
	uint64_t connects;		/* connections that came up */
	uint64_t losses;		/* connections that ended with an error; datagrams that ICMP says were lost */
	uint64_t parks;
	uint64_t queued;		/* operations that did not complete within their call ... */
	uint64_t dequeued;		/* ... and those of them that have completed */

	struct fi_stats_pending pending[FI_STATS_PEER_KINDS];
	uint64_t spare[8];
};

/* Kinds of pending operations of an endpoint. */
enum fi_stats_ep_kind {
	FI_STATS_EP_RECV,		/* fi_recv() and its forms */
	FI_STATS_EP_TRECV,
	FI_STATS_EP_COLLECTIVE,
	FI_STATS_EP_ACCEPT,		/* a connection request that the program has not answered; `rest` has the
					 * addresses of its peer */
	FI_STATS_EP_KINDS
};

/* An endpoint, a passive endpoint, or a shared context. */
struct fi_stats_ep {
	uint32_t used;			/* enum fi_stats_used */
	uint32_t engine;		/* index of its engine */
	uint32_t type;			/* enum fi_ep_type */
	uint32_t enabled;
	uint64_t incarnation;		/* as it is announced to peers; 0: none */
	uint64_t opened;
	char prov[16];
	char domain[FI_STATS_TEXT];
	char addr[FI_STATS_TEXT];	/* its own address, where peers find it; or empty */

	uint64_t posted[3];		/* receives posted so far: untagged, tagged, of collectives */
	struct fi_stats_pending pending[FI_STATS_EP_KINDS];
	uint32_t fclass;		/* FI_CLASS_EP, FI_CLASS_PEP, or that of a shared context */
	uint32_t spare32;
	uint64_t spare[2];
	/* the sum of peers that have no record of their own, or have had one (ep is that of this endpoint); pending:
	 * the oldest of those that have none now, and addr and incarnation are those of its peer */
	struct fi_stats_peer rest;
};

/* Threads that wait for a counter (fi_cntr_wait(3)), and deferred work. */
struct fi_stats_wait {
	uint32_t used;			/* enum fi_stats_used */
	uint32_t deferred;		/* 1: deferred work waits; 0: a thread does */
	struct fi_stats_pending pending;	/* state FI_STATS_THRESHOLD */
};

enum fi_stats_event_kind {
	FI_STATS_EV_NONE,
	FI_STATS_EV_OPENED,		/* an endpoint was enabled */
	FI_STATS_EV_CLOSED,
	FI_STATS_EV_CONNECTING,
	FI_STATS_EV_CONNECTED,
	FI_STATS_EV_PARKED,
	FI_STATS_EV_LOST,		/* a connection ended with an error, value */
	FI_STATS_EV_ENDED,		/* a connection was closed properly */
	FI_STATS_EV_ERROR,		/* an operation completed in error, value */
	FI_STATS_EV_CREDIT,		/* a message of value bytes waits, since the peer has granted no credit */
	FI_STATS_EV_FULL,		/* an operation on value bytes waits, since the stream is full. Both are noticed
					 * when pending operations are looked through */
	FI_STATS_EV_GAP,		/* no progress was called for value ticks while something was pending */
	FI_STATS_EVENTS_KINDS
};

struct fi_stats_event {
	uint64_t number;		/* counts events; 0: none. Its place in the table is the remainder */
	uint64_t when;
	uint32_t kind;			/* enum fi_stats_event_kind */
	uint32_t ep;			/* index */
	uint64_t value;
	char addr[40];			/* of the peer, cut off; or empty */
};

struct fi_stats_error {
	uint64_t number;		/* as in struct fi_stats_event */
	uint64_t when;
	uint32_t err;			/* FI_E* */
	uint32_t prov_errno;
	uint32_t op;			/* enum fi_stats_op */
	uint32_t ep;			/* index */
	uint64_t tag;
	uint64_t len;
	char text[FI_STATS_ERROR_TEXT];
};

/* ---- the page ---- */

enum fi_stats_table_kind {
	FI_STATS_ENGINES,
	FI_STATS_EPS,
	FI_STATS_PEERS,
	FI_STATS_WAITS,
	FI_STATS_EVENTS,
	FI_STATS_ERRORS,
	FI_STATS_FIGURES,		/* of the process: struct fi_stats_figure */
	FI_STATS_TABLES
};

struct fi_stats_table {
	uint64_t offset;		/* in the page */
	uint32_t size;			/* bytes of a record; at least those of the struct here */
	uint32_t cnt;
};

enum fi_stats_label_kind {
	FI_STATS_COUNTER,		/* only grows */
	FI_STATS_GAUGE,
	FI_STATS_TICKS,			/* a duration */
};

/* A figure of the whole process that has its own name, such as what tcp holds for peers. */
struct fi_stats_figure {
	uint32_t used;			/* enum fi_stats_used */
	uint32_t kind;			/* FI_STATS_COUNTER, FI_STATS_GAUGE */
	char name[48];			/* lower case, with underscores */
	uint64_t value;
};

/* A 64-bit word of each record of a table that may be printed without knowing it. */
struct fi_stats_label {
	char name[32];			/* empty: none; lower case, with underscores, as OpenMetrics wants it */
	uint32_t table;			/* enum fi_stats_table_kind */
	uint32_t kind;			/* enum fi_stats_label_kind */
	uint64_t offset;		/* in the record */
};

enum fi_stats_clock {
	FI_STATS_CLOCK_MONOTONIC,	/* ticks are CLOCK_MONOTONIC in nanoseconds */
	FI_STATS_CLOCK_TSC,		/* the time stamp counter of x86 */
};

enum { FI_STATS_LABELS = 80 };

struct fi_stats_header {
	uint64_t magic;
	uint32_t version;
	uint32_t size;			/* bytes of this header */
	uint64_t page_size;
	uint32_t pid;
	uint32_t uid;
	uint64_t start;			/* of the process, field 22 of /proc/PID/stat; 0: unknown */
	uint32_t clock;			/* enum fi_stats_clock */
	uint32_t closed;		/* the process has left the page of its own will */
	uint64_t open_ticks, open_ns;	/* the same moment, when the page was made: ticks, and CLOCK_MONOTONIC */
	uint64_t open_real_ns;		/* CLOCK_REALTIME then */
	char library[64];		/* name and version of the library */
	char host[FI_STATS_TEXT];
	char command[128];		/* program and arguments, cut off */
	char rank[16];			/* the rank that a launcher has put into the environment; or empty */
	uint64_t last_event, last_error;	/* numbers */
	uint64_t lost_eps;		/* endpoints for which the table had no room */
	uint32_t table_cnt, label_cnt;
	struct fi_stats_table table[FI_STATS_TABLES];
	struct fi_stats_label label[FI_STATS_LABELS];
};

enum {
	FI_STATS_ENGINE_CNT = 16,
	FI_STATS_EP_CNT = 32,
	FI_STATS_PEER_CNT = 128,
	FI_STATS_WAIT_CNT = 16,
	FI_STATS_EVENT_CNT = 256,
	FI_STATS_ERROR_CNT = 16,
	FI_STATS_FIGURE_CNT = 32,
};

/* The page as this release writes it. A reader finds the tables by the header. */
struct fi_stats_page {
	struct fi_stats_header header;
	struct fi_stats_engine engine[FI_STATS_ENGINE_CNT] __attribute__((aligned(128)));
	struct fi_stats_ep ep[FI_STATS_EP_CNT] __attribute__((aligned(128)));
	struct fi_stats_peer peer[FI_STATS_PEER_CNT] __attribute__((aligned(128)));
	struct fi_stats_wait wait[FI_STATS_WAIT_CNT];
	struct fi_stats_event event[FI_STATS_EVENT_CNT];
	struct fi_stats_error error[FI_STATS_ERROR_CNT];
	struct fi_stats_figure figure[FI_STATS_FIGURE_CNT];
};

/* Convert ticks of a page to CLOCK_MONOTONIC in nanoseconds. now_ticks and now_ns are the same moment, read by the
 * caller: fi_stats_ticks(), and clock_gettime(). What is farther away than 146 years is 146 years away. */
static inline int64_t fi_stats_ns(const struct fi_stats_header *header, uint64_t ticks, uint64_t now_ticks,
				  uint64_t now_ns)
{
	const uint64_t span = now_ticks > header->open_ticks ? now_ticks - header->open_ticks : 0;
	const double farthest = (double) (INT64_MAX / 2);
	double ago;

	if (header->clock == FI_STATS_CLOCK_MONOTONIC)
		return (int64_t) ticks;
	if (!span || now_ns <= header->open_ns)
		return (int64_t) now_ns;
	ago = (double) (int64_t) (now_ticks - ticks) / (double) span * (double) (now_ns - header->open_ns);
	ago = ago > farthest ? farthest : ago < -farthest ? -farthest : ago;
	return (int64_t) (now_ns - (uint64_t) (int64_t) ago);
}

/* Read the clock FI_STATS_CLOCK_TSC; 0 where there is none. */
static inline uint64_t fi_stats_tsc(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/* ---- in the program ---- */

/*
 * fi_open(version, "stats", NULL, 0, 0, &fid, context) gives access to the page of this process and to the sentences
 * of fi_why(1). fi_open_ops(fid, FI_STATS_OPS_1, 0, &ops, NULL) returns the functions. Close it with fi_close().
 */
#define FI_STATS_OPS_1	"weft_stats_1"

/* What fi_ops_stats.explain() found, in addition to the text. */
struct fi_stats_verdict {
	uint32_t pending;		/* operations that wait, with or without a reason for worry */
	uint32_t stuck;			/* sentences about operations that have waited for `after_ns` at least, and
					 * that somebody must act on */
	uint32_t cycles;		/* processes that wait for one another */
	uint32_t bad;			/* pages that are damaged, of another version, or of another user */
};

/* A page that was read, for explain(). */
struct fi_stats_source {
	const void *page;
	size_t len;
	uint64_t now_ticks, now_ns;	/* the same moment, shortly before the page was read */
	/* what /proc says: 'R', 'S', 'D', 'T' (stopped), 't' (traced), 'Z' ... ; 0: the process is gone */
	char proc_state;
};

enum fi_stats_form {
	FI_STATS_FORM_TEXT,
	FI_STATS_FORM_JSON,
};

struct fi_ops_stats {
	size_t size;
	/* The page of this process; valid until the library is unloaded. NULL: there is no memory for
	 * one. */
	const struct fi_stats_page *(*page)(struct fid *fid);
	/* The path of its file, or NULL: it has none (FI_STATS=0, no folder, a child of fork()). */
	const char *(*path)(struct fid *fid);
	/*
	 * Explain what waits in the first `about` of cnt pages; the others are those of processes of this host that
	 * they may wait for. Sentences are written to buf, at most len bytes with the NUL. Returns the length of the
	 * whole text, as snprintf(). after_ns: what waits for less is no reason for worry. A page may have any
	 * contents.
	 */
	size_t (*explain)(struct fid *fid, const struct fi_stats_source *source, size_t cnt, size_t about,
			  uint64_t after_ns, enum fi_stats_form form, char *buf, size_t len,
			  struct fi_stats_verdict *verdict);
};

#ifdef __cplusplus
}
#endif

#endif
