/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data transfers: every call of the data API behind one struct, so that a test can say "each way of sending". An
 * operation without a context of its own gets one, by which a receive finds its buffer again.
 */
#ifndef CONFORM_OPS_H
#define CONFORM_OPS_H

#include "fixture.h"

enum call {
	SEND, SENDV, SENDMSG, INJECT, SENDDATA, INJECTDATA,
	TSEND, TSENDV, TSENDMSG, TINJECT, TSENDDATA, TINJECTDATA,
	RECV, RECVV, RECVMSG, TRECV, TRECVV, TRECVMSG,
	WRITE, WRITEV, WRITEMSG, INJECT_WRITE, WRITEDATA, INJECT_WRITEDATA,
	READ, READV, READMSG,
	CALL_CNT
};

/* One call. Members that the call has no parameter for are ignored. */
struct op {
	enum call call;
	const void *buf;		/* or iov */
	size_t len;
	const struct iovec *iov;	/* NULL: buf, len */
	size_t iov_cnt;
	const fi_addr_t *addr;		/* NULL: the peer for transmits, FI_ADDR_UNSPEC for receives */
	uint64_t tag, ignore, data, flags;
	uint64_t raddr, key;		/* or rma_iov */
	const struct fi_rma_iov *rma_iov;
	size_t rma_cnt;
	void *ctx;			/* NULL: one of the side's */
};

struct call_info {
	const char *name;
	uint64_t caps;			/* FI_MSG, FI_TAGGED or FI_RMA */
	bool recv, inject, data, iov, msg;	/* what sort of call */
};
extern const struct call_info calls[CALL_CNT];

/* Rows of tables about calls, lengths and flags. */
struct call_row {
	const char *name;
	enum call call;
};
struct length_row {
	const char *name;
	size_t len;
};
struct flag_row {
	const char *name;
	uint64_t flags;
};

/* One call, its answer as it is. */
#define try_op(s, call_, ...) AT(try_op_with(s, &(struct op) { .call = call_, __VA_ARGS__ }))
ssize_t try_op_with(struct side *s, const struct op *op);
/* Again while it says -FI_EAGAIN, driving progress; anything else but 0 fails the test. Returns the context used. */
#define post(s, call_, ...) AT(post_with(s, &(struct op) { .call = call_, __VA_ARGS__ }))
void *post_with(struct side *s, const struct op *op);
/* Again while it says -FI_EAGAIN; whatever else it says is returned. */
#define post_ret(s, call_, ...) AT(post_ret_with(s, &(struct op) { .call = call_, __VA_ARGS__ }))
ssize_t post_ret_with(struct side *s, const struct op *op);

void post_recv(struct side *s, void *buf, size_t len);
void send_bytes(struct side *s, const void *buf, size_t len);
/* A message to @nobody is refused, or completes in error, soon (-FI_EAGAIN is no answer for ever): which, positive. */
int send_fails(struct side *s, fi_addr_t nobody);
void post_trecv(struct side *s, void *buf, size_t len, uint64_t tag, uint64_t ignore);
void tsend_bytes(struct side *s, const void *buf, size_t len, uint64_t tag);

/* The next receive completion is a message of exactly these bytes, in the buffer that was posted with its context. */
struct comp expect_recv(struct side *s, const void *data, size_t len);
/* The buffer of the operation with this context. */
void *ctx_buf(struct side *s, void *ctx);
/* A message of @len bytes from @a to @b and its completions, to see that all is well. */
void check_link(struct side *a, struct side *b);
/* MSG: a new connection to the listener works. */
void check_listener(struct side *listener);

/* ---- memory regions */

struct region {
	struct fid_mr *mr;
	uint8_t *buf;
	size_t len;
	uint64_t key;
	uint64_t addr;			/* what a peer gives for the first byte */
};
/* @len bytes of own memory (zeroed), or @buf, registered on the side's domain; belongs to the test. */
struct region region_open(struct side *s, void *buf, size_t len, uint64_t access);
/* Bound and enabled if mr_mode says so. */
void region_ready(struct side *s, struct fid_mr *mr);
/* What to pass as desc for @buf: NULL unless FI_MR_LOCAL is required. */
void *desc_for(struct side *s, const void *buf, size_t len);

/* In a run on memory of a device (hmem.h): if the buffer is such memory, its address becomes the device's, and the
 * descriptor that of its registration. Otherwise desc is returned. */
void *device_desc(struct side *s, struct iovec *iov, void *desc);

#ifndef CONFORM_INSIDE
#define post_recv(s, buf, len) AT(post_recv(s, buf, len))
#define send_bytes(s, buf, len) AT(send_bytes(s, buf, len))
#define send_fails(s, nobody) AT(send_fails(s, nobody))
#define post_trecv(s, buf, len, tag, ignore) AT(post_trecv(s, buf, len, tag, ignore))
#define tsend_bytes(s, buf, len, tag) AT(tsend_bytes(s, buf, len, tag))
#define expect_recv(s, data, len) AT(expect_recv(s, data, len))
#define check_link(a, b) AT(check_link(a, b))
#define region_open(s, buf, len, access) AT(region_open(s, buf, len, access))
#endif

/* Drive all until the byte at @at is @want: the target of a write that may have completed. */
void wait_byte(struct test *t, const volatile uint8_t *at, uint8_t want);
/* The completion level at which the success of a write means that it is in the target's memory. */
uint64_t level_delivered(void);

#endif
