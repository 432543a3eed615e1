/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a test talks through: a side is one end (fabric, domain, queues, address vector, endpoint), a pair is two sides
 * that can reach each other: connected (MSG), or with each other's address inserted (RDM, DGRAM).
 *
 * All belongs to the test. A helper that waits drives every side of the test. Completions that the test has not
 * asked for yet are kept with the side, in order; a side opened with .raw_cq keeps its queue to the test and is only
 * progressed.
 */
#ifndef CONFORM_FIXTURE_H
#define CONFORM_FIXTURE_H

#include <sys/socket.h>

#include "conform.h"
#include "hmem.h"

/* How a side is opened. All zero is the common case. */
struct opts {
	uint64_t caps;			/* 0: those of the test case */
	enum fi_cq_format format;	/* UNSPEC: TAGGED */
	enum fi_wait_obj cq_wait;
	enum fi_wait_obj eq_wait;
	size_t cq_size;
	enum fi_av_type av_type;	/* UNSPEC: TABLE */
	size_t tx_size, rx_size;	/* 0: provider's */
	uint64_t tx_op_flags;
	uint64_t tx_bind, rx_bind;	/* extra flags of binding a CQ: FI_SELECTIVE_COMPLETION */
	bool one_cq;			/* one for both directions */
	bool raw_cq;			/* the test reads the CQs itself */
	bool raw_eq;
	bool unconnected;		/* pair_open() stops before fi_connect() or fi_av_insert() */
	bool unenabled;			/* stop before fi_enable() */
	bool eq;			/* RDM and DGRAM: an event queue, too */
	int mr_mode;			/* 0: the run's; bits otherwise */
	bool mr_none;			/* no mr_mode bit, whatever the run says */
	uint32_t version;		/* given to fi_getinfo(); 0: the run's */
	struct fi_info *info;		/* borrowed: open with this entry, do not ask */
	void (*hints)(struct fi_info *hints);	/* last word on the hints */
	struct side *domain_of;		/* share fabric and domain of that side (RDM, DGRAM) */
	struct side *av_of;		/* and its address vector */
	struct side *cq_of;		/* and its completion queues */
	struct fid_ep *srx;		/* shared contexts to bind */
	struct fid_stx *stx;
	int rx_ctx_bits;		/* of the address vector */
	struct fid_ep *sep;		/* the endpoint is a context of this scalable one, whose AV it uses */
	bool rx_ctx;			/* ... a receive context; else a transmit context */
	int ctx;			/* ... this one */
};

/* A completion, or an error completion if err is not 0. */
struct comp {
	void *ctx;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data, tag;
	fi_addr_t src;
	int err, prov_errno;
	size_t olen;
	uint64_t err_data[4];		/* the first bytes of it */
	size_t err_data_len;
};

/* An event, or an error event if err is not 0. */
struct event {
	uint32_t type;
	struct fid *fid;
	struct fi_info *info;		/* of FI_CONNREQ; belongs to the test */
	size_t len;			/* of data[] */
	uint8_t data[512];
	int err;
};

struct comps {
	struct comp *list;
	size_t cnt, taken, room;
};

struct side {
	char err_text[512];		/* fi_cq_strerror() of the last error completion */
	struct test *t;
	struct side *next;
	struct opts o;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_pep *pep;
	struct fid_av *av;
	struct fid_cq *tx_cq, *rx_cq;
	struct fid_ep *ep;
	struct fid_mc *mc;		/* that a peer process has joined */
	fi_addr_t peer;			/* the other side of the pair; FI_ADDR_UNSPEC for MSG */
	uint8_t name[128];		/* own address, once enabled */
	size_t name_len;
	struct comps tx, rx;
	struct event events[64];
	size_t event_cnt, event_taken;
	size_t tx_posted;		/* transmits that may complete */
	struct slots *slots;
	struct prefixed *prefixed, **prefixed_end;	/* receives outstanding, with FI_MSG_PREFIX */
	struct local *locals;		/* local registrations, for FI_MR_LOCAL */
};

struct pair {
	struct side *a, *b;
	struct side *listener;		/* MSG: what b came from */
};

/* ---- discovery */

/* Skip the test if the provider has no entry of this endpoint type with @caps, saying which capability it lacks. */
void offer_check(uint64_t caps);
bool offered(uint64_t caps);
/* Blank hints for this run: prov_name, endpoint type, mr_mode; belongs to the test. */
struct fi_info *hints_new(struct test *t, const struct opts *o);
/* For opts.hints: peer groups, GROUPS is the highest. */
enum { GROUPS = 100 };
void ask_for_groups(struct fi_info *hints);
/* First entry for @hints whose prov_name is exactly the run's. Belongs to the test. NULL: none. With node or service
 * NULL and no address in @hints the loopback address of the run's family is asked for, where the provider has such
 * addresses. */
struct fi_info *info_find(struct test *t, struct fi_info *hints, const char *node, const char *service, uint64_t flags);
/* @info (one entry or a list) is freed at the end of the test. */
void own_info(struct test *t, struct fi_info *info);
/* Is @info of the run's provider and endpoint type? Upstream answers "tcp" with "tcp;ofi_rxm", too. */
bool info_is_run(const struct fi_info *info);
/* Has the provider socket addresses? */
bool has_sockaddr(void);
/* The address that both ends are at: loopback, unless CONFORM_NODE names another of this machine. */
const char *loopback(void);

/* ---- opening: each fails the test if anything fails */

#define pair_open(t, ...) AT(pair_open_opts(t, &(struct opts) { __VA_ARGS__ }))
struct pair pair_open_opts(struct test *t, const struct opts *o);
/* A side whose endpoint is enabled. MSG: not connected. */
#define side_open(t, ...) AT(side_open_opts(t, &(struct opts) { __VA_ARGS__ }))
struct side *side_open_opts(struct test *t, const struct opts *o);
/* MSG: a side with a passive endpoint that listens, and no more. */
#define listener_open(t, ...) AT(listener_open_opts(t, &(struct opts) { __VA_ARGS__ }))
struct side *listener_open_opts(struct test *t, const struct opts *o);
/* MSG: a side for the destination @to (a listener), enabled, fi_connect() not yet called. */
struct side *connector_open(struct test *t, struct side *to, const struct opts *o);
/* MSG: the side for a connection request, its endpoint enabled, fi_accept() not yet called. */
struct side *acceptor_open(struct side *listener, struct fi_info *request, const struct opts *o);
/* The same, but only up to the domain and event queue. */
struct side *acceptor_new(struct side *listener, struct fi_info *request, const struct opts *o);
/* Queues, address vector, endpoint, bindings, and fi_enable() unless o.unenabled. */
void side_open_rest(struct side *s);
/* MSG: from fi_connect() on @a to both connected events. Returns the accepted side. */
struct side *side_connect(struct side *a, struct side *listener);
/* RDM, DGRAM: @b's address in @a's AV. */
fi_addr_t side_insert(struct side *a, struct side *b);
/* Only fabric and domain (and eq, if o.eq), for tests of other objects; no endpoint, no queue. */
#define domain_side(t, ...) AT(domain_side_opts(t, &(struct opts) { __VA_ARGS__ }))
struct side *domain_side_opts(struct test *t, const struct opts *o);
/* Single steps, for a test that stops between them; what they open belongs to the test. */
void side_open_cqs(struct side *s);
void side_open_av(struct side *s);
void side_open_eq(struct side *s);
void side_open_ep(struct side *s);		/* no binding */
void side_bind(struct side *s);			/* all that is open */
void side_enable(struct side *s);		/* and learn the name */
/* Close the endpoint of a side now; the other objects stay. */
void side_close_ep(struct side *s);
/* The whole side now, in order, each fi_close() checked. */
/* Close the regions that desc_for() registered on the side's domain (ops.c). */
void locals_close(struct side *s);
void side_close(struct side *s);

/* ---- progress */

void sides_progress(struct test *t);
/* Only this one, for a test in which the peer does nothing. */
void side_progress(struct side *s);
/* Only this one, for a while. */
void side_idle(struct side *s);
/* At the end of a test that passed: no side has more completions than it posted operations. */
bool sides_tidy(struct test *t, char *why, size_t size);
/* Drive all sides for a while in which nothing is expected. */
void idle(struct test *t);

/* ---- events */

struct event expect_event(struct side *s, uint32_t type);
struct event expect_event_err(struct side *s, int err);
void expect_no_event(struct side *s);

/* ---- completions; @s->tx or @s->rx in order */

struct comp expect_tx(struct side *s);
struct comp expect_rx(struct side *s);
void expect_tx_cnt(struct side *s, size_t cnt);
void expect_rx_cnt(struct side *s, size_t cnt);
/* The next transmit completion is this error. */
struct comp expect_tx_err(struct side *s, int err);
/* Or any error. */
struct comp expect_tx_failed(struct side *s);
/* The next transmit completion, success or error. */
struct comp expect_tx_any(struct side *s);
/* The next receive completion is this error; members given in @... must be equal. */
#define expect_rx_err(s, err, ...) AT(expect_rx_err_with(s, err, &(struct comp) { __VA_ARGS__ }))
struct comp expect_rx_err_with(struct side *s, int err, const struct comp *want);
void expect_no_completion(struct side *s);
/* The text of the last error names both ends of a connection, where the provider has connections of its own. */
void expect_both_ends_named(struct side *s);
/* Completions that have come and that the test has not taken. */
size_t rx_waiting(struct side *s);
size_t tx_waiting(struct side *s);

/* Whether the provider of `run` has an entry of its endpoint type. */
bool fixture_is_offered(void);
void fixture_warm_up(struct test *t);

#ifndef CONFORM_INSIDE
#define side_connect(a, listener) AT(side_connect(a, listener))
#define side_insert(a, b) AT(side_insert(a, b))
#define side_close_ep(s) AT(side_close_ep(s))
#define side_close(s) AT(side_close(s))
#define expect_event(s, type) AT(expect_event(s, type))
#define expect_event_err(s, err) AT(expect_event_err(s, err))
#define expect_no_event(s) AT(expect_no_event(s))
#define expect_tx(s) AT(expect_tx(s))
#define expect_rx(s) AT(expect_rx(s))
#define expect_tx_cnt(s, cnt) AT(expect_tx_cnt(s, cnt))
#define expect_rx_cnt(s, cnt) AT(expect_rx_cnt(s, cnt))
#define expect_tx_err(s, err) AT(expect_tx_err(s, err))
#define expect_tx_failed(s) AT(expect_tx_failed(s))
#define expect_tx_any(s) AT(expect_tx_any(s))
#define expect_no_completion(s) AT(expect_no_completion(s))
#define idle(t) AT(idle(t))
#endif

#endif
