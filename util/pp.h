/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What fi_pingpong and the benchmarks of fabtests are made of. One process is the server, the other the client; a TCP
 * socket beside the fabric, the control channel, carries addresses and keeps both in step. Single-threaded, public API
 * only.
 *
 *   pp_opts.c       arguments of options
 *   pp_run.c        the sizes, the measurement, results
 *   pp_ctrl.c       the control channel
 *   pp_fabric.c     libfabric objects
 *   pp_data.c       one message out, one message in
 *
 * A program has a table of options, fills a struct pp_opts from it, and says in a struct pp_test what it measures;
 * pp_run() does the rest.
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
	bool rma;                       /* FI_RMA; the peer may read and write rma_buf */
	uint64_t op_flags;              /* of every transmit operation */
	int wait_ms;                    /* no wait for the peer is longer */
	int accept_ms;                  /* but the server's for its client, which may take this long */
	bool tagged, check, ipv6, verbose, stats, json;
	bool one_size;                  /* from -S: what the endpoint does not allow is an error, not left out */
	size_t size_cnt;
	uint64_t size[PP_MAX_SIZES];    /* in bytes, ascending */
};

/* An operation that may be under way: its completion finds it through the context. */
struct pp_op {
	struct fi_context2 context;
	bool busy;                      /* posted, not completed */
	bool recv;
	size_t len;                     /* of a received message, once completed */
};

struct pp {
	const struct pp_opts *opts;
	int ctrl;                       /* the control channel, -1 before it is open */
	char peer[128];                 /* whom we talk to, for messages */

	struct fi_info *hints, *info;   /* owned */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;              /* MSG only */
	struct fid_pep *pep;            /* MSG server only */
	struct fid_av *av;              /* RDM and DGRAM only */
	struct fid_cq *cq;
	struct fid_mr *mr;              /* only when the provider asks for local registration */
	struct fid_ep *ep;
	fi_addr_t peer_addr;
	const struct pp_xfer *xfer;     /* plain or tagged messages */

	char *tx_buf, *rx_buf;          /* one allocation, tx_buf is its start; each slots buffers of buf_len bytes */
	char *rma_buf;                  /* with opts->rma, as many more: where RMA operations read and write */
	size_t buf_len;
	uint32_t slots;                 /* with -c the window, so that nobody writes where data is checked; else 1 */
	size_t max_size;                /* of a message, from the sizes asked for and what the endpoint allows */
	struct pp_op *tx, *rx;          /* rings of opts->window operations; one allocation, tx is its start */
	uint32_t tx_next, rx_next;      /* in the rings: what is posted, or completes, next */
	uint64_t tx_seq, rx_seq;        /* with -c: messages so far, which choose the pattern */
	uint64_t remote_addr, remote_key;       /* the peer's rma_buf; a test with RMA sets them */
	bool leaving;                   /* the results stand: that the peer goes is no failure */
};

/* What a program measures. All calls return 0 or -FI_*. */
struct pp_test {
	unsigned transfers;             /* messages of one iteration */
	bool latency;                   /* the time of an iteration means something */
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

/* An endpoint type: msg, rdm or dgram; a whole number. */
int pp_parse_ep_type(const char *text, enum fi_ep_type *type);
int pp_parse_count(const char *what, const char *text, uint32_t min, uint32_t *cnt);

/* Read the command line: `take` is given each option but -h. Beside them there may be one server address. 0 to go on,
 * else *code is what to exit with. */
int pp_parse_command_line(struct pp_opts *opts, int argc, char **argv, const struct util_opt *options,
			  const char *about, int (*take)(struct pp_opts *opts, int key, const char *arg), int *code);

/* pp_run.c */

/* Everything between the command line and the exit code, which it returns. */
int pp_run(const struct pp_opts *opts, const struct pp_test *test);

/* One message there and one back, half of which is the latency. */
extern const struct pp_test pp_pingpong;

/* pp_ctrl.c */

/* Server: listen, tell the port where it was asked for, wait for a client. Client: connect to the server. */
int pp_ctrl_open(struct pp *pp);
void pp_ctrl_close(struct pp *pp);

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

/* pp_fabric.c */

/* Open everything and connect to, or learn the address of, the peer; the receives are posted. Messages up to
 * pp->max_size, which it sets, can be exchanged; -FI_EMSGSIZE when the size that -S asks for is above what the
 * endpoint allows. */
int pp_fabric_open(struct pp *pp);

/* Close all that is open, whatever state it is in. */
int pp_fabric_close(struct pp *pp);

/* pp_data.c */

/* The calls that plain and tagged messages are made of. */
extern const struct pp_xfer pp_msg_xfer, pp_tagged_xfer;

/* Post all receives of the window; once, before the first pp_recv(). */
int pp_post_recvs(struct pp *pp);

/* Send one message of len bytes; with -c its data is the next pattern. Returns once it is posted. */
int pp_send(struct pp *pp, size_t len);

/* Wait for a message, check that it has len bytes and, with -c, the next pattern; post its receive again. */
int pp_recv(struct pp *pp, size_t len);

/* Post `call` as the next transmit operation of the ring, once that is free; the call finds its descriptor, its
 * context and its part of rma_buf with the three below, and is made again as long as it says -FI_EAGAIN. */
typedef ssize_t pp_call(struct pp *pp, size_t len);
int pp_post(struct pp *pp, pp_call *call, size_t len);
char *pp_rma_buf(const struct pp *pp);
void *pp_desc(const struct pp *pp);
void *pp_tx_context(struct pp *pp);

/* Write the pattern of message number seq, and look whether it is there: 0, or -FI_EIO after having said where not. */
void pp_fill(char *buf, size_t len, uint64_t seq);
int pp_check(struct pp *pp, const char *buf, size_t len, uint64_t seq);

/* Wait until all that was posted is complete, so that the buffers are ours. */
int pp_flush(struct pp *pp);

/* Say goodbye to the peer and wait for its goodbye (not on DGRAM, where it may be lost): then nothing is under way. */
int pp_finish(struct pp *pp);

/* Let the provider work, and note completions. */
int pp_progress(struct pp *pp);

/* A wait found nothing: is it time to stop? Called for each look, cheap: only every PP_POLLS_PER_TICK-th reads the
 * clock; after the first of these the processor is given away between looks. -FI_ETIMEDOUT after wait_ms,
 * -FI_ECONNRESET when the peer is gone; `what` names what was waited for. */
int pp_wait_tick(struct pp *pp, struct pp_wait *wait, const char *what);

#endif /* UTIL_PP_H */
