/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts of fi_pingpong and of the benchmarks of fabtests. One process is the server and the other the client. A TCP
 * socket beside the fabric, the control channel, carries addresses and synchronises them. Single-threaded, public API
 * only.
 *
 *   pp_opts.c       arguments of options
 *   pp_run.c        from the command line to the exit code; the sizes and the measurement
 *   pp_report.c     results as rows or as JSON
 *   pp_ctrl.c       the control channel
 *   pp_meet.c       what two of our programs tell each other over it
 *   pp_cpu.c        two processes of one host on different cores
 *   pp_fabric.c     libfabric objects
 *   pp_connect.c    names, connections, events
 *   pp_data.c       sending and receiving a message
 *   pp_wait.c       completions by queue or counter, and every way to wait for them
 *
 * A program has a table of options, fills in a struct pp_opts from it, and describes its measurement in a struct
 * pp_test; pp_run() does the rest. Or it has its own function, which pp_call() runs between opening and closing.
 *
 * Functions return 0 or -FI_*. The function that detects a failure prints it (pp_fail()); its callers only return it.
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

/* How to wait for completions. */
enum pp_look {
	PP_LOOK_SPIN,           /* poll; after a while, yield the processor between polls */
	PP_LOOK_YIELD,          /* yield the processor between polls */
	PP_LOOK_SREAD,          /* sleep in fi_cq_sread() or fi_cntr_wait() */
	PP_LOOK_FD,             /* fi_trywait() and poll() on the descriptor */
};

struct pp;

/* Transport of the control channel. */
struct pp_carrier {
	int (*open)(struct pp *pp);     /* connect to the peer: 0 or -FI_*, with a message */
	void (*close)(struct pp *pp);   /* in any state */
	/* Move some bytes, within about a millisecond. Returns their number, -FI_EAGAIN, -FI_ECONNRESET if the peer has
	 * ended, or another -FI_*. */
	ssize_t (*send)(struct pp *pp, const void *buf, size_t len);
	ssize_t (*recv)(struct pp *pp, void *buf, size_t len);
	bool (*is_closed)(const struct pp *pp, int wait_ms);    /* as pp_ctrl_is_closed() */
};

/* The options. Strings are borrowed from argv. */
struct pp_opts {
	const char *server;             /* NULL on the server */
	const char *src, *provider, *fabric, *domain, *port_file;
	enum fi_ep_type ep_type;
	uint16_t src_port, dst_port;    /* of the control channel; source port 0 means any free one */
	bool have_src_port;             /* src_port was given */
	uint32_t iterations;            /* 0: as many as time_ms permits, or 10 if the peer cannot agree on a number */
	uint32_t time_ms;               /* with iterations 0: the time for every size */
	uint32_t warmup;                /* iterations of every size before the measured ones */
	uint32_t window;                /* at least 1: most sends outstanding, and receives posted */
	bool own_bufs;                  /* each operation of the window has its own buffers, as with check */
	bool rma;                       /* FI_RMA; the peer may read and write rma_buf */
	bool atomics;                   /* FI_ATOMIC on the same rma_buf */
	uint64_t op_flags;              /* of all transmit operations */
	bool delivered;                 /* RMA before the last message is visible when that arrives: operations have
					 * FI_DELIVERY_COMPLETE, or the interface FI_ORDER_SAW */
	uint64_t caps;                  /* further capabilities to ask for, beside those for tagged, rma and atomics */
	uint64_t mode;                  /* further modes to accept, beside FI_CONTEXT and FI_CONTEXT2 */
	uint64_t not_mr_mode;           /* registration modes that are not accepted */
	enum fi_progress progress;      /* FI_PROGRESS_UNSPEC for any */
	enum fi_av_type av_type;        /* FI_AV_UNSPEC: the provider chooses */
	enum fi_threading threading;    /* FI_THREAD_UNSPEC for FI_THREAD_DOMAIN */
	enum pp_look look;
	bool counters;                  /* completions are counted, not queued (errors are queued) */
	int (*hints)(const struct pp_opts *opts, struct fi_info *hints);        /* may change the hints at the end; or
										 * NULL */
	const struct pp_carrier *carrier;       /* of the control channel; NULL for a TCP connection */
	int (*opened)(struct pp *pp);   /* called when endpoints can be used: 0 or -FI_*, with a message; or NULL */
	int wait_ms;                    /* longest wait for the peer */
	int accept_ms;                  /* longest wait of the server for its client */
	bool tagged, check, ipv6, verbose, stats, json;
	bool cpu;                       /* with stats: processor time, too */
	bool quiet;                     /* do not report that no interface matches */
	bool meet;                      /* compare options with a peer that can, see pp_meet() */
	bool extremes;                  /* with stats: minimum and maximum, too */
	bool pin;                       /* use different cores if both processes are on one host */
	bool alone;                     /* there is no peer, and no control channel */
	bool one_size;                  /* from -S: a size that the endpoint does not allow is an error */
	size_t size_cnt;
	uint64_t size[PP_MAX_SIZES];    /* in bytes, ascending */
};

/* An operation. context is passed to the call, so that its completion leads here. */
struct pp_op {
	struct fi_context2 context;
	bool busy;                      /* posted, not completed */
	bool recv;
	size_t len;                     /* of a received message, once completed; not known with counters */
};

struct pp {
	const struct pp_opts *opts;
	int ctrl;                       /* the socket of the control channel, -1 before it is open */
	void *carried;                  /* the data of opts->carrier */
	char peer[128];                 /* address of the peer, for messages */

	struct fi_info *hints, *info;   /* owned */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;              /* MSG only */
	struct fid_pep *pep;            /* MSG server only */
	struct fid_av *av;              /* RDM and DGRAM only */
	struct fid_cq *cq;
	struct fid_cntr *tx_cntr, *rx_cntr;     /* with opts->counters */
	int cq_fd, tx_fd, rx_fd;        /* with PP_LOOK_FD: descriptors to poll; owned by the objects */
	struct fid_mr *mr;              /* if the provider requires local registration */
	struct fid_ep *ep;
	fi_addr_t peer_addr;
	const struct pp_xfer *xfer;     /* untagged or tagged messages */

	char *tx_buf, *rx_buf;          /* one allocation, tx_buf is its start; each has slots buffers of buf_len
					 * bytes */
	char *rma_buf;                  /* with opts->rma, likewise: local buffers and targets of RMA operations */
	size_t buf_len;
	uint32_t slots;                 /* buffers for each direction: the window with check or own_bufs, else 1 */
	size_t max_size;                /* largest message, from the sizes asked for and the limit of the endpoint */
	struct pp_op *tx, *rx;          /* rings of opts->window operations; one allocation, tx is its start */
	size_t tx_prefix, rx_prefix;    /* with FI_MSG_PREFIX: bytes before the data of a message to send, to receive */
	uint32_t tx_next, rx_next;      /* indices in the rings: the next operation to post, or to complete */
	uint64_t tx_done, rx_done;      /* with counters: completions noted in the rings so far */
	uint64_t data_cnt;              /* RMA writes of the peer with data that did not use a receive */
	uint64_t tx_seq, rx_seq;        /* with -c: messages so far, which select the pattern */
	uint64_t remote_addr, remote_key;       /* the peer's rma_buf; set by tests with RMA */
	int (*progress)(struct pp *pp); /* called by pp_progress() while there is no cq; or NULL */
	bool leaving;                   /* the results are complete: the peer may disconnect */
	bool met;                       /* the peer is one of our programs, see pp_meet() */
	char provider[256];             /* server: of the interface that it will use; client: the server's, to be used
					 * if the options have none; "": not known */
	uint32_t spins;                 /* polls of a wait before it yields; adapted by pp_wait_tick(), unless pinned */
	bool pinned;                    /* this process and its peer have cores of their own */
};

/* A measurement. All functions return 0 or -FI_*. */
struct pp_test {
	unsigned transfers;             /* messages in one iteration */
	size_t min_size;                /* smaller sizes are left out */
	bool latency;                   /* measure each iteration; otherwise windows of iterations */
	int (*open)(struct pp *pp);     /* once, after the fabric is open; or NULL */
	int (*begin)(struct pp *pp, size_t size);       /* before the clock starts; or NULL */
	int (*step)(struct pp *pp, size_t size);        /* one iteration */
	int (*end)(struct pp *pp, size_t size);         /* wait until all iterations are complete at both ends;
							 * measured */
	int (*check)(struct pp *pp, size_t size);       /* with opts->check, after the clock has stopped; or NULL */
};

struct pp_result {
	uint64_t size;
	unsigned transfers;             /* messages in each iteration */
	uint32_t sent, acked;
	uint64_t elapsed_ns;
	uint64_t cpu_ns;                /* processor time of this process during the measurement */
	struct hist latency;            /* of one message in ns; empty if not requested */
};

#define PP_POLLS_PER_TICK 1024
/* The fewest polls before a wait yields; and as many as a process with a core of its own makes, about a millisecond. */
#define PP_POLLS_MIN 16
#define PP_POLLS_PINNED (16 * PP_POLLS_PER_TICK)

/* A wait: its beginning in ns, and the number of polls without result. */
struct pp_wait {
	uint64_t start;
	uint64_t polls;
};

/* Print "OPERATION: PEER: text of ret" and return ret. */
int pp_fail(const struct pp *pp, int ret, const char *operation, ...) __attribute__((format(printf, 3, 4)));
/* Print a line on stderr with -v. */
void pp_debug(const struct pp *pp, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* pp_opts.c: parsing options. Functions with an int result return 0; or -FI_EINVAL after printing a message, with
 * nothing changed. */

/* Long options common to all programs. The keys of a program's own options are above PP_OPT_LAST. */
enum {
	PP_OPT_JSON = 256,
	PP_OPT_PORT_FILE,
	PP_OPT_LAST = PP_OPT_PORT_FILE,
};

/* The sizes that are used without -S. */
void pp_sizes_default(struct pp_opts *opts);

/* Handle one of the options common to all programs: these two, and -p -d -s -S -I -B -P -T -A. */
int pp_take_option(struct pp_opts *opts, int key, const char *arg);

/* Parse an endpoint type: msg, rdm or dgram; a whole number; a port. */
int pp_parse_ep_type(const char *text, enum fi_ep_type *type);
int pp_parse_count(const char *what, const char *text, uint32_t min, uint32_t *cnt);
int pp_parse_port(const char *what, const char *text, uint16_t *port);

/* Read the command line. `take` is called for each option except -h. There may be one further argument, the server's
 * address. 0: continue; otherwise exit with *code. */
int pp_parse_command_line(struct pp_opts *opts, int argc, char **argv, const struct util_opt *options,
			  const char *about, int (*take)(struct pp_opts *opts, int key, const char *arg), int *code);

/* pp_run.c */

/* Run the whole program after the command line. Returns the exit code: 0, or the positive FI_E* of the failure. */
int pp_run(const struct pp_opts *opts, const struct pp_test *test);

/* The same with `body` in place of a test. body returns 0 or -FI_*. With `whole`, everything is open and connected and
 * all receives of the window are posted when body is called, and goodbyes are exchanged after it. Otherwise only the
 * control channel is open, and body opens what it needs with the functions below. All members of *pp are closed
 * afterwards. */
int pp_call(const struct pp_opts *opts, bool whole, int (*body)(struct pp *pp));

/* Begin closing, after a run with result `ret`. If a provider does not return from closing within -T, the process ends
 * with a message and the exit code of `ret`, or of FI_ETIMEDOUT if `ret` is 0. */
void pp_closing(const struct pp *pp, int ret);

/* One message in each direction; half of the time is the latency. */
extern const struct pp_test pp_pingpong;

/* pp_report.c: output before the first result, for each result, and at the end, where ret is the result of the run. */
struct json;
void pp_report_begin(const struct pp *pp, struct json *json, const struct pp_test *test);
void pp_report(const struct pp *pp, struct json *json, const struct pp_test *test, const struct pp_result *result);
void pp_report_end(const struct pp *pp, struct json *json, int ret);

/* pp_ctrl.c */

/* Server: listen, announce the port if asked to, and wait for a client. Client: connect to the server. */
int pp_ctrl_open(struct pp *pp);
void pp_ctrl_close(struct pp *pp);

/* Server: announce the port for clients, on stderr and in a file, which appears with its contents complete, if asked
 * to. */
int pp_ctrl_announce(const struct pp *pp, uint16_t port);

/* Send or receive a fabric address and its format. A received address is malloc()ed, and the caller frees it. */
int pp_ctrl_send_name(struct pp *pp, const void *name, size_t len, uint32_t addr_format);
int pp_ctrl_recv_name(struct pp *pp, void **name, size_t *len, uint32_t *addr_format);

/* Send or receive len bytes; `what` names them in messages. */
int pp_ctrl_send(struct pp *pp, const void *buf, size_t len, const char *what);
int pp_ctrl_recv(struct pp *pp, void *buf, size_t len, const char *what);

/* Wait until the peer calls it, too. */
int pp_ctrl_sync(struct pp *pp);

/* The client sends the number of messages that it received; both ends then have it in *cnt. */
int pp_ctrl_exchange_count(struct pp *pp, uint32_t *cnt);

/* True if the peer has closed the control channel, or does so within wait_ms: it has finished, failed, or died. */
bool pp_ctrl_is_closed(const struct pp *pp, int wait_ms);

/* pp_meet.c */

/* Find out whether the peer is one of our programs (pp->met), and if so compare the options that must be the same, and
 * agree on the provider. Called by both ends, once the control channel is open. 0; -FI_EINVAL: the options differ,
 * which both ends report; another -FI_*. Nothing happens without opts->meet. */
int pp_meet(struct pp *pp);

/* With pp->met: the client tells the server *cnt, and there *cnt is set. */
int pp_meet_count(struct pp *pp, uint32_t *cnt);

/* Tell the peer why this process fails. It must not use the control channel for anything else afterwards. */
void pp_meet_tell(const struct pp *pp, const char *text);

/* True if the next bytes of the control channel say that the peer has failed. */
bool pp_meet_failed(const struct pp *pp);

/* Print what the peer has said about its failure. False: it has said nothing. */
bool pp_meet_report(const struct pp *pp);

/* pp_cpu.c */

/* With opts->pin, and a peer on this host: put the calling thread on a core of its own, the server on the first that
 * the process may use and the client on the next. Waits then yield later. Nothing happens if it may use one core
 * only. */
void pp_pin(struct pp *pp);

/* pp_fabric.c: objects. Each call opens members of *pp, using the options and the members that are open already. */

/* Open everything, post the receives, and connect to the peer or get its address. Sets pp->max_size, the largest
 * message that can be exchanged. -FI_EMSGSIZE: the size of -S is above the limit of the endpoint. The functions after
 * it are its parts, in order. */
int pp_fabric_open(struct pp *pp);

/* Make hints from the options. */
int pp_fill_hints(struct pp *pp);

/* Server: set pp->provider to that of the interface that matches the options, before a client is waited for. Fails as
 * pp_get_info(). */
int pp_find_provider(struct pp *pp);

/* Set info to the first interface that matches the hints. -FI_ENODATA: no interface matches; a call of fi_info that
 * explains it was printed. */
int pp_get_info(struct pp *pp);

/* Open fabric, and eq for connected endpoints. */
int pp_open_fabric(struct pp *pp);

/* Open domain, cq or counters, and av; allocate and register buffers. */
int pp_open_domain(struct pp *pp);

/* Open an endpoint of pp->info in pp->domain, bind it to the eq, av, cq and counters of *pp, and enable it. The caller
 * closes it. */
int pp_open_ep(struct pp *pp, struct fid_ep **ep);

/* Close everything that is open, in any state. */
int pp_fabric_close(struct pp *pp);

/* Close one object, unless it is NULL; `what` names it in the message if that fails. */
int pp_close(const struct pp *pp, struct fid *fid, const char *what);

/* pp_connect.c: names and connections, over the control channel and pp->eq. */

/* Send the name of an endpoint, active or passive, to the peer. */
int pp_send_name(struct pp *pp, struct fid *fid);

/* Receive the name of a peer's endpoint, and insert it into an address vector. */
int pp_recv_peer(struct pp *pp, struct fid_av *av, fi_addr_t *addr);

/* Both, in the order that works at either end. */
int pp_swap_names(struct pp *pp, struct fid *fid, struct fid_av *av, fi_addr_t *addr);

/* Insert a name of the given format into an address vector. */
int pp_insert_peer(struct pp *pp, struct fid_av *av, const void *name, uint32_t addr_format, fi_addr_t *addr);

/* Client: receive the server's name over the control channel, and set pp->info to an interface that reaches it. */
int pp_get_info_to_server(struct pp *pp);

/* Server: open pp->pep, listen, and send its name to the peer. */
int pp_listen(struct pp *pp);

/* Server: wait for a request, and replace pp->info by the info of the request. Then accept on an endpoint of it. */
int pp_wait_request(struct pp *pp);
int pp_accept(struct pp *pp, struct fid_ep *ep);

/* Client: connect an enabled endpoint to pp->info's destination. */
int pp_connect(struct pp *pp, struct fid_ep *ep);

/* Wait for an event of pp->eq; any other event than `wanted` is an error. `what` names it in messages. */
struct fi_eq_cm_entry;
int pp_wait_event(struct pp *pp, uint32_t wanted, struct fi_eq_cm_entry *entry, const char *what);

/* pp_data.c */

/* The calls for untagged and for tagged messages. */
extern const struct pp_xfer pp_msg_xfer, pp_tagged_xfer;

/* Post all receives of the window. Call it once, before the first pp_recv(). */
int pp_post_recvs(struct pp *pp);

/* Send one message of len bytes; with -c its data is the next pattern. Returns once it is posted. */
int pp_send(struct pp *pp, size_t len);

/* Wait for a message, check its length and, with -c, that its data is the next pattern; post its receive again. */
int pp_recv(struct pp *pp, size_t len);

/* Wait for an RMA write of the peer with data. If the provider uses a receive for it, post that again. */
int pp_recv_data(struct pp *pp);

/* Post `call` as the next transmit operation of the ring, when that is free. The call gets its descriptor, its context
 * and its part of rma_buf with the next three functions. It is repeated as long as it returns -FI_EAGAIN. */
typedef ssize_t pp_call_fn(struct pp *pp, size_t len);
int pp_post(struct pp *pp, pp_call_fn *call, size_t len);
char *pp_rma_buf(const struct pp *pp);
/* The buffers of the next send and of the next receive: room for the provider's prefix, then the data. */
char *pp_tx_buf(const struct pp *pp);
char *pp_rx_buf(const struct pp *pp);
void *pp_desc(const struct pp *pp);
void *pp_tx_context(struct pp *pp);

/* Write the pattern of message number seq; check it: 0, or -FI_EIO after printing the first difference. */
void pp_fill(char *buf, size_t len, uint64_t seq);
int pp_check(struct pp *pp, const char *buf, size_t len, uint64_t seq);

/* Wait until all posted operations are complete, so that the buffers may be changed. */
int pp_flush(struct pp *pp);

/* Send a goodbye to the peer and wait for its goodbye (not on DGRAM, where it may be lost). Afterwards no operation is
 * outstanding. */
int pp_finish(struct pp *pp);

/* pp_wait.c: a completion leads to its struct pp_op through the context; with counters, completions are noted in ring
 * order. */

/* Drive progress, and note completions. Does not wait. */
int pp_progress(struct pp *pp);

/* Wait for an operation to complete. It is in a ring, or a program's own that was made with pp->cq. */
int pp_wait_op(struct pp *pp, const struct pp_op *op, const char *what);

/* Wait for an RMA write of the peer with data that uses no receive. pp_recv_data() handles both cases. */
int pp_wait_data(struct pp *pp);

/* Handle the result `posted` of a call that posts an operation. 0: done. 1: progress was made, and the call must be
 * repeated. -FI_*: error. *wait starts as { .polls = 0 }; `call` names the operation in messages. */
int pp_check_posted(struct pp *pp, ssize_t posted, struct pp_wait *wait, const char *call);

/* Called after each poll without result; tells whether to stop waiting. It is cheap: only every PP_POLLS_PER_TICK-th
 * call reads the clock. After pp->spins calls it yields the processor in each: a peer on the same core runs then. Where
 * waits end only after that, the next ones spin for a shorter time. 0: continue. -FI_ETIMEDOUT after wait_ms;
 * -FI_ECONNRESET if the peer has ended; `what` names the object of the wait in messages. */
int pp_wait_tick(struct pp *pp, struct pp_wait *wait, const char *what);

/* Read the error entry of a queue after -FI_EAVAIL, and print it. Returns its error as -FI_*. */
int pp_cq_error(struct pp *pp, struct fid_cq *cq);

#endif /* UTIL_PP_H */
