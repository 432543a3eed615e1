/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What fi_pingpong and the benchmarks of fabtests are made of. One process is the server, the other the client; a TCP
 * socket beside the fabric, the control channel, carries addresses and keeps both in step. Single-threaded, public API
 * only.
 *
 *   pp_opts.c       arguments of options
 *   pp_run.c        from the command line to the exit code; the sizes and the measurement
 *   pp_report.c     results as rows or as JSON
 *   pp_ctrl.c       the control channel
 *   pp_fabric.c     libfabric objects
 *   pp_connect.c    names, connections, events
 *   pp_data.c       one message out, one message in
 *   pp_wait.c       completions by queue or counter, and every way to wait for them
 *
 * A program has a table of options, fills a struct pp_opts from it, and says in a struct pp_test what it measures;
 * pp_run() does the rest. Or it has a body of its own, which pp_call() runs between opening and closing.
 *
 * Functions return 0 or -FI_*; whoever first sees a failure has said what it was (pp_fail()), callers only pass it on.
 */
#ifndef UTIL_PP_H
#define UTIL_PP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include "common.h"
#include "hist.h"

#define PP_MAX_SIZES 64

/* How a wait for completions waits. */
enum pp_look {
	PP_LOOK_SPIN,           /* look again; after a while the processor is given away between looks */
	PP_LOOK_YIELD,          /* give the processor away between looks */
	PP_LOOK_SREAD,          /* sleep in fi_cq_sread() or fi_cntr_wait() */
	PP_LOOK_FD,             /* fi_trywait() and poll() on the descriptor */
};

struct pp;

/* What takes the bytes of the control channel to the peer. */
struct pp_carrier {
	int (*open)(struct pp *pp);     /* to the peer, by the options: 0 or -FI_*, with a message */
	void (*close)(struct pp *pp);   /* whatever state it is in */
	/* Some of the bytes, within about a millisecond: how many, -FI_EAGAIN, -FI_ECONNRESET when the peer has
	 * ended, or another -FI_*. */
	ssize_t (*send)(struct pp *pp, const void *buf, size_t len);
	ssize_t (*recv)(struct pp *pp, void *buf, size_t len);
	bool (*is_closed)(const struct pp *pp, int wait_ms);    /* as pp_ctrl_is_closed() */
};

/* What the command line asked for. Strings are borrowed from argv. */
struct pp_opts {
	const char *server;             /* NULL on the server */
	const char *src, *provider, *fabric, *domain, *port_file;
	enum fi_ep_type ep_type;
	uint16_t src_port, dst_port;    /* of the control channel; source port 0 means any free one */
	bool have_src_port;             /* src_port was given */
	uint32_t iterations;
	uint32_t warmup;                /* iterations of every size before those that count */
	uint32_t window;                /* at least 1: sends under way, and receives posted, at a time */
	bool own_bufs;                  /* each of the window has buffers of its own, as with check */
	bool rma;                       /* FI_RMA; the peer may read and write rma_buf */
	bool atomics;                   /* FI_ATOMIC on the same rma_buf */
	uint64_t op_flags;              /* of every transmit operation */
	bool delivered;                 /* the last message finds at the peer what RMA has written before it: operations
					 * have FI_DELIVERY_COMPLETE, or the interface keeps FI_ORDER_SAW */
	uint64_t caps;                  /* to ask for beside what tagged, rma and atomics mean */
	uint64_t mode;                  /* to accept beside FI_CONTEXT and FI_CONTEXT2 */
	uint64_t not_mr_mode;           /* registration modes that are not accepted */
	enum fi_progress progress;      /* FI_PROGRESS_UNSPEC for any */
	enum fi_av_type av_type;        /* FI_AV_UNSPEC for the provider's own */
	enum fi_threading threading;    /* FI_THREAD_UNSPEC for FI_THREAD_DOMAIN */
	enum pp_look look;
	bool counters;                  /* completions are counted, not queued (errors are queued) */
	int (*hints)(const struct pp_opts *opts, struct fi_info *hints);        /* the last word; or NULL */
	const struct pp_carrier *carrier;       /* of the control channel; NULL for a TCP connection */
	int (*opened)(struct pp *pp);   /* called when endpoints can be used: 0 or -FI_*, with a message; or NULL */
	int wait_ms;                    /* no wait for the peer is longer */
	int accept_ms;                  /* but the server's for its client, which may take this long */
	bool tagged, check, ipv6, verbose, stats, json;
	bool cpu;                       /* with stats: processor time as well */
	bool quiet;                     /* an interface that is not there is no news */
	bool alone;                     /* there is no peer, and no control channel */
	bool one_size;                  /* from -S: what the endpoint does not allow is an error, not left out */
	size_t size_cnt;
	uint64_t size[PP_MAX_SIZES];    /* in bytes, ascending */
};

/* An operation that may be under way: its completion finds it through the context. */
struct pp_op {
	struct fi_context2 context;
	bool busy;                      /* posted, not completed */
	bool recv;
	size_t len;                     /* of a received message, once completed; unknown with counters */
};

struct pp {
	const struct pp_opts *opts;
	int ctrl;                       /* the socket of the control channel, -1 before it is open */
	void *carried;                  /* what opts->carrier has opened */
	char peer[128];                 /* whom we talk to, for messages */

	struct fi_info *hints, *info;   /* owned */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;              /* MSG only */
	struct fid_pep *pep;            /* MSG server only */
	struct fid_av *av;              /* RDM and DGRAM only */
	struct fid_cq *cq;
	struct fid_cntr *tx_cntr, *rx_cntr;     /* with opts->counters */
	int cq_fd, tx_fd, rx_fd;        /* with PP_LOOK_FD: what to poll; owned by the objects */
	struct fid_mr *mr;              /* only when the provider asks for local registration */
	struct fid_ep *ep;
	fi_addr_t peer_addr;
	const struct pp_xfer *xfer;     /* plain or tagged messages */

	char *tx_buf, *rx_buf;          /* one allocation, tx_buf is its start; each slots buffers of buf_len bytes */
	char *rma_buf;                  /* with opts->rma, as many more: where RMA operations read and write */
	size_t buf_len;
	uint32_t slots;                 /* with check or own_bufs the window, that no message meets another; else 1 */
	size_t max_size;                /* of a message, from the sizes asked for and what the endpoint allows */
	struct pp_op *tx, *rx;          /* rings of opts->window operations; one allocation, tx is its start */
	size_t tx_prefix, rx_prefix;    /* with FI_MSG_PREFIX: bytes before the data of a message to send, to receive */
	uint32_t tx_next, rx_next;      /* in the rings: what is posted, or completes, next */
	uint64_t tx_done, rx_done;      /* with counters: how many completions have been noted in the rings */
	uint64_t data_cnt;              /* RMA writes of the peer's that came with data, and were not for a receive */
	uint64_t tx_seq, rx_seq;        /* with -c: messages so far, which choose the pattern */
	uint64_t remote_addr, remote_key;       /* the peer's rma_buf; a test with RMA sets them */
	int (*progress)(struct pp *pp); /* what pp_progress() does as long as there is no cq; or NULL */
	bool leaving;                   /* the results stand: that the peer goes is no failure */
};

/* What a program measures. All calls return 0 or -FI_*. */
struct pp_test {
	unsigned transfers;             /* messages of one iteration */
	size_t min_size;                /* smaller ones mean nothing here: they are left out */
	bool latency;                   /* the time of an iteration means something; else that of a window of them */
	int (*open)(struct pp *pp);     /* once, after the fabric is open; or NULL */
	int (*begin)(struct pp *pp, size_t size);       /* before the clock starts; or NULL */
	int (*step)(struct pp *pp, size_t size);        /* one iteration */
	int (*end)(struct pp *pp, size_t size);         /* until all of them are complete at both ends; timed */
	int (*check)(struct pp *pp, size_t size);       /* with opts->check, after the clock has stopped; or NULL */
};

struct pp_result {
	uint64_t size;
	unsigned transfers;             /* messages of each that was sent */
	uint32_t sent, acked;
	uint64_t elapsed_ns;
	uint64_t cpu_ns;                /* processor time of this process meanwhile */
	struct hist latency;            /* of one message in ns; empty unless asked for */
};

#define PP_POLLS_PER_TICK 1024

/* One wait: when it began, in ns, and how often it has looked in vain. */
struct pp_wait {
	uint64_t start;
	uint64_t polls;
};

/* Print "OPERATION: PEER: text of ret" and give ret back. */
int pp_fail(const struct pp *pp, int ret, const char *operation, ...) __attribute__((format(printf, 3, 4)));
/* Print a line on stderr with -v. */
void pp_debug(const struct pp *pp, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* pp_opts.c: what options mean. What returns int returns 0, or -FI_EINVAL with a message, nothing changed. */

/* Long options that mean the same in every program; keys of its own are above PP_OPT_LAST. */
enum {
	PP_OPT_JSON = 256,
	PP_OPT_PORT_FILE,
	PP_OPT_LAST = PP_OPT_PORT_FILE,
};

/* The sizes that are used without -S. */
void pp_sizes_default(struct pp_opts *opts);

/* Take one of the options that mean the same in every program: these two, and -p -d -s -S -I -B -P -T -A. */
int pp_take_option(struct pp_opts *opts, int key, const char *arg);

/* An endpoint type: msg, rdm or dgram; a whole number; a port. */
int pp_parse_ep_type(const char *text, enum fi_ep_type *type);
int pp_parse_count(const char *what, const char *text, uint32_t min, uint32_t *cnt);
int pp_parse_port(const char *what, const char *text, uint16_t *port);

/* Read the command line: `take` is given each option but -h. Beside them there may be one server address. 0 to go on,
 * else *code is what to exit with. */
int pp_parse_command_line(struct pp_opts *opts, int argc, char **argv, const struct util_opt *options,
			  const char *about, int (*take)(struct pp_opts *opts, int key, const char *arg), int *code);

/* pp_run.c */

/* Everything between the command line and the exit code, which it returns: 0, or the positive FI_E* of the failure. */
int pp_run(const struct pp_opts *opts, const struct pp_test *test);

/* The same around `body`, which returns 0 or -FI_*. With `whole` it finds everything open, connected, one receive of
 * the window posted after the other, and ends with the goodbyes; else only the control channel, and opens what it
 * needs with the calls below. All that is in *pp is closed behind it. */
int pp_call(const struct pp_opts *opts, bool whole, int (*body)(struct pp *pp));

/* Only closing is left, after a run that came to `ret`: a provider that does not come back from it within -T has the
 * process end all the same, with a line that says so and the exit code of `ret`, or of FI_ETIMEDOUT where that is 0. */
void pp_closing(const struct pp *pp, int ret);

/* One message there and one back, half of which is the latency. */
extern const struct pp_test pp_pingpong;

/* pp_report.c: what is said before the first result, each result, and at the end, where ret is what the run came to. */
struct json;
void pp_report_begin(const struct pp *pp, struct json *json, const struct pp_test *test);
void pp_report(const struct pp *pp, struct json *json, const struct pp_test *test, const struct pp_result *result);
void pp_report_end(const struct pp *pp, struct json *json, int ret);

/* pp_ctrl.c */

/* Server: listen, tell the port where it was asked for, wait for a client. Client: connect to the server. */
int pp_ctrl_open(struct pp *pp);
void pp_ctrl_close(struct pp *pp);

/* Server: tell the port that a client has to know, on stderr and in a file that appears with its contents, where it was
 * asked for. */
int pp_ctrl_announce(const struct pp *pp, uint16_t port);

/* Pass on, or take, a fabric address and its format. A received address is malloc()ed and the caller's. */
int pp_ctrl_send_name(struct pp *pp, const void *name, size_t len, uint32_t addr_format);
int pp_ctrl_recv_name(struct pp *pp, void **name, size_t *len, uint32_t *addr_format);

/* Pass on, or take, len bytes that both ends know the meaning of; `what` names them in messages. */
int pp_ctrl_send(struct pp *pp, const void *buf, size_t len, const char *what);
int pp_ctrl_recv(struct pp *pp, void *buf, size_t len, const char *what);

/* Return when both ends have come here. */
int pp_ctrl_sync(struct pp *pp);

/* The client tells how many messages came back; both have the number in *cnt. */
int pp_ctrl_exchange_count(struct pp *pp, uint32_t *cnt);

/* Whether the peer has closed the control channel, or does so within wait_ms: it is done, has given up, or died. */
bool pp_ctrl_is_closed(const struct pp *pp, int wait_ms);

/* pp_fabric.c: objects. Each call opens what it names into *pp, from the options and what is open already. */

/* Open everything and connect to, or learn the address of, the peer; the receives are posted. Messages up to
 * pp->max_size, which it sets, can be exchanged; -FI_EMSGSIZE when the size that -S asks for is above what the
 * endpoint allows. The parts of it follow, in their order. */
int pp_fabric_open(struct pp *pp);

/* hints, from the options. */
int pp_fill_hints(struct pp *pp);

/* info: the first interface that fits the hints. -FI_ENODATA when there is none; what to ask fi_info is printed. */
int pp_get_info(struct pp *pp);

/* fabric, and eq where endpoints are connected. */
int pp_open_fabric(struct pp *pp);

/* domain, buffers and their registration, cq or counters, av. */
int pp_open_domain(struct pp *pp);

/* An endpoint of pp->info in pp->domain, bound to the eq, av, cq and counters of *pp, enabled. The caller closes it. */
int pp_open_ep(struct pp *pp, struct fid_ep **ep);

/* Close all that is open, whatever state it is in. */
int pp_fabric_close(struct pp *pp);

/* Close one object, unless it is NULL; `what` names it when that fails. */
int pp_close(const struct pp *pp, struct fid *fid, const char *what);

/* pp_connect.c: names and connections, over the control channel and pp->eq. */

/* Tell the peer the name of an endpoint, active or passive. */
int pp_send_name(struct pp *pp, struct fid *fid);

/* Learn the name of an endpoint of the peer's, and put it into an address vector. */
int pp_recv_peer(struct pp *pp, struct fid_av *av, fi_addr_t *addr);

/* Both at once, in the order that works at either end. */
int pp_swap_names(struct pp *pp, struct fid *fid, struct fid_av *av, fi_addr_t *addr);

/* Put a name of the given format into an address vector. */
int pp_insert_peer(struct pp *pp, struct fid_av *av, const void *name, uint32_t addr_format, fi_addr_t *addr);

/* Client: ask for an interface that reaches the server, whose name comes over the control channel, into pp->info. */
int pp_get_info_to_server(struct pp *pp);

/* Server: open pp->pep, listen, and tell the peer where. */
int pp_listen(struct pp *pp);

/* Server: wait for a request; the info that came with it replaces pp->info. Then accept on an endpoint of it. */
int pp_wait_request(struct pp *pp);
int pp_accept(struct pp *pp, struct fid_ep *ep);

/* Client: connect an enabled endpoint to pp->info's destination. */
int pp_connect(struct pp *pp, struct fid_ep *ep);

/* Wait for one event of pp->eq; any other than `wanted` is an error. `what` names it in messages. */
struct fi_eq_cm_entry;
int pp_wait_event(struct pp *pp, uint32_t wanted, struct fi_eq_cm_entry *entry, const char *what);

/* pp_data.c */

/* The calls that plain and tagged messages are made of. */
extern const struct pp_xfer pp_msg_xfer, pp_tagged_xfer;

/* Post all receives of the window; once, before the first pp_recv(). */
int pp_post_recvs(struct pp *pp);

/* Send one message of len bytes; with -c its data is the next pattern. Returns once it is posted. */
int pp_send(struct pp *pp, size_t len);

/* Wait for a message, check that it has len bytes and, with -c, the next pattern; post its receive again. */
int pp_recv(struct pp *pp, size_t len);

/* Wait for an RMA write of the peer's that comes with data. Where the provider takes a receive for that, it is posted
 * again. */
int pp_recv_data(struct pp *pp);

/* Post `call` as the next transmit operation of the ring, once that is free; the call finds its descriptor, its
 * context and its part of rma_buf with the three below, and is made again as long as it says -FI_EAGAIN. */
typedef ssize_t pp_call_fn(struct pp *pp, size_t len);
int pp_post(struct pp *pp, pp_call_fn *call, size_t len);
char *pp_rma_buf(const struct pp *pp);
/* The message buffers of this turn, of a send and of a receive: first room for the provider's prefix, then the data. */
char *pp_tx_buf(const struct pp *pp);
char *pp_rx_buf(const struct pp *pp);
void *pp_desc(const struct pp *pp);
void *pp_tx_context(struct pp *pp);

/* Write the pattern of message number seq, and look whether it is there: 0, or -FI_EIO after having said where not. */
void pp_fill(char *buf, size_t len, uint64_t seq);
int pp_check(struct pp *pp, const char *buf, size_t len, uint64_t seq);

/* Wait until all that was posted is complete, so that the buffers are ours. */
int pp_flush(struct pp *pp);

/* Say goodbye to the peer and wait for its goodbye (not on DGRAM, where it may be lost): then nothing is under way. */
int pp_finish(struct pp *pp);

/* pp_wait.c: completions find their struct pp_op through the context; with counters, they are noted in ring order. */

/* Let the provider work, and note completions. Does not wait. */
int pp_progress(struct pp *pp);

/* Wait for an operation of the rings, or of a program's own made with pp->cq, to complete. */
int pp_wait_op(struct pp *pp, const struct pp_op *op, const char *what);

/* Wait for an RMA write of the peer's that comes with data and takes no receive; pp_recv_data() is the general one. */
int pp_wait_data(struct pp *pp);

/* After a posting call that gave `posted`: 0 when it is done, 1 when it has to be made again (progress was made), or
 * what went wrong. *wait starts as { .polls = 0 }; `call` names the operation. */
int pp_check_posted(struct pp *pp, ssize_t posted, struct pp_wait *wait, const char *call);

/* A wait found nothing: is it time to stop? Called for each look, cheap: only every PP_POLLS_PER_TICK-th reads the
 * clock; after the first of these the processor is given away between looks. -FI_ETIMEDOUT after wait_ms,
 * -FI_ECONNRESET when the peer is gone; `what` names what was waited for. */
int pp_wait_tick(struct pp *pp, struct pp_wait *wait, const char *what);

/* Read and explain the entry behind the -FI_EAVAIL of a queue. Returns its error as -FI_*. */
int pp_cq_error(struct pp *pp, struct fid_cq *cq);

#endif /* UTIL_PP_H */
