/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_pingpong: what its parts know of each other. One process is the server, the other the client; a TCP socket
 * beside the fabric, the control channel, carries addresses and keeps both in step. Single-threaded.
 *
 *   fi_pingpong.c   options, sizes, the exchange, results
 *   pp_ctrl.c       the control channel
 *   pp_fabric.c     libfabric objects
 *   pp_data.c       one message out, one message in
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

#define PP_MAX_SIZES 64

/* What the command line asked for. Strings are borrowed from argv. */
struct pp_opts {
	const char *server;             /* NULL on the server */
	const char *src, *provider, *domain, *port_file;
	enum fi_ep_type ep_type;
	uint16_t src_port, dst_port;    /* of the control channel; source port 0 means any free one */
	bool have_src_port;             /* src_port was given */
	uint32_t iterations;
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

	char *tx_buf, *rx_buf;          /* one allocation, tx_buf is its start; buf_len bytes each */
	size_t buf_len;
	size_t max_size;                /* of a message, from the sizes asked for and what the endpoint allows */
	struct pp_op tx, rx;
	uint64_t tx_seq, rx_seq;        /* with -c: messages so far, which choose the pattern */
	bool leaving;                   /* the results stand: that the peer goes is no failure */
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

/* pp_ctrl.c */

/* Server: listen, tell the port where it was asked for, wait for a client. Client: connect to the server. */
int pp_ctrl_open(struct pp *pp);
void pp_ctrl_close(struct pp *pp);

/* Pass on, or take, a fabric address and its format. A received address is malloc()ed and the caller's. */
int pp_ctrl_send_name(struct pp *pp, const void *name, size_t len, uint32_t addr_format);
int pp_ctrl_recv_name(struct pp *pp, void **name, size_t *len, uint32_t *addr_format);

/* Return when both ends have come here. */
int pp_ctrl_sync(struct pp *pp);

/* The client tells how many messages came back; both have the number in *cnt. */
int pp_ctrl_exchange_count(struct pp *pp, uint32_t *cnt);

/* Whether the peer has closed the control channel, or does so within wait_ms: it is done, has given up, or died. */
bool pp_ctrl_is_closed(const struct pp *pp, int wait_ms);

/* pp_fabric.c */

/* Open everything and connect to, or learn the address of, the peer; one receive is posted. Messages up to
 * pp->max_size, which it sets, can be exchanged; -FI_EMSGSIZE when the size that -S asks for is above what the
 * endpoint allows. */
int pp_fabric_open(struct pp *pp);

/* Close all that is open, whatever state it is in. */
int pp_fabric_close(struct pp *pp);

/* pp_data.c */

/* The calls that plain and tagged messages are made of. */
extern const struct pp_xfer pp_msg_xfer, pp_tagged_xfer;

/* Post the receive for the next message. */
int pp_post_recv(struct pp *pp);

/* Send one message of len bytes; with -c its data is the next pattern. Returns once it is posted. */
int pp_send(struct pp *pp, size_t len);

/* Wait for a message, check that it has len bytes and, with -c, the next pattern; post the receive for the next one. */
int pp_recv(struct pp *pp, size_t len);

/* Wait until what was sent is complete, so that the buffer is ours. */
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
