/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A tcp RDM endpoint, and plain sockets that play its peers: each shakes hands as upstream does, or announces our
 * extension, and then says what it likes. One thread: who waits reads the endpoint's CQ, which makes its progress,
 * and looks at the raw socket in between; it fails the test after DEADLINE_MS.
 */
#ifndef TEST_FAULT_VICTIM_H
#define TEST_FAULT_VICTIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <netinet/in.h>
#include <cmocka.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "tcp/wire/wire.h"

#define DEADLINE_MS	20000

#define OK(call) assert_int_equal(call, 0)

#define HDR(...) .hdr = { .version = 3, __VA_ARGS__ }

/* An atomic: kind, targets, bytes behind the header; and its one target, which nobody has the key to. */
#define AMO(kind, cnt, payload)									\
	HDR(.op = TCP_WIRE_AMO_REQ, .op_data = kind, .rma_iov_cnt = cnt, .hdr_size = 24 + 24 * cnt,	\
	    .size = 24 + 24 * cnt + payload)

struct victim {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_ep *sep;		/* scalable: ep is its receive context 0 of 2; or NULL */
	struct fid_mr *mr;
	struct fid_cntr *cntr;		/* of a test, closed with the rest; or NULL */
	struct sockaddr_in addr;
	uint8_t memory[4096];
};

/* Opened with memory that peers may read and write; or as receive context 0 of 2. Closed: everything must close. */
void victim_open(struct victim *v);
void victim_open_as(struct victim *v, bool scalable);
void victim_close(struct victim *v);
/* One pass, which completes nothing. */
void progress(struct victim *v);
/* A good peer can still reach the endpoint: an upstream-like untagged message arrives. */
void still_works(struct victim *v);
/* The next completion is an error of the operation with this context: which. */
int failure(struct victim *v, const void *context);
uint64_t now_ms(void);

/* ---- the raw peer ---- */

struct hello {
	struct tcp_cm_hdr hdr;
	struct tcp_rdm_cm rdm;
};

/* A request to begin with; each comes from another peer: another port. */
struct hello hello_make(bool ext);
/* Connect, and no more: the socket, for the caller to close, as of raw_peer(). */
int raw_connect(struct victim *v);
/* Connect and shake hands; the victim has taken us for a peer when this returns. */
int raw_peer(struct victim *v, bool ext);
/* Insert the raw peer that shook hands last. */
fi_addr_t raw_peer_addr(struct victim *v, int fd);
void raw_send(int fd, const void *buf, size_t len);
/* Send all, while the victim reads. False: it has hung up. */
bool raw_pump(struct victim *v, int fd, const void *buf, size_t len);
/* Wait for bytes while the victim makes progress: how many came, 0 at the end of the stream. */
ssize_t raw_recv(struct victim *v, int fd, void *buf, size_t len);
void raw_recv_all(struct victim *v, int fd, void *buf, size_t len);
/* The victim closes the connection; what it sends before is of no interest. fd is closed. */
void raw_closed(struct victim *v, int fd);

#endif
