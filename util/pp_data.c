/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages of fi_pingpong: one out, one in. There is one completion queue for both directions, one receive posted
 * at any time, and at most one send under way. Completions are noted wherever the queue is read; waits look at the
 * notes.
 */
#include "pp.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "common.h"

/* The tag of every tagged message, and the last message, as upstream's program has them. */
#define PP_TAG 1234
static const char goodbye[] = "fin";

/* With -c, message n starts at letter 7 * n of this alphabet and goes round it: upstream's pattern. */
static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
#define ALPHABET_LEN (sizeof(alphabet) - 1)
#define PATTERN_STEP 7

/* How long a peer that has closed its endpoint may take to close the control channel. */
#define LEAVE_MS 2000

/* The calls that differ between plain and tagged messages. */
struct pp_xfer {
	ssize_t (*recv)(struct pp *pp);
	ssize_t (*send)(struct pp *pp, size_t len);
	ssize_t (*inject)(struct pp *pp, size_t len);
	ssize_t (*send_last)(struct pp *pp, size_t len);        /* complete when it has left for good */
};

static void *mr_desc(const struct pp *pp)
{
	return pp->mr ? fi_mr_desc(pp->mr) : NULL;
}

static ssize_t msg_recv(struct pp *pp)
{
	return fi_recv(pp->ep, pp->rx_buf, pp->buf_len, mr_desc(pp), FI_ADDR_UNSPEC, &pp->rx.context);
}

static ssize_t msg_send(struct pp *pp, size_t len)
{
	return fi_send(pp->ep, pp->tx_buf, len, mr_desc(pp), pp->peer_addr, &pp->tx.context);
}

static ssize_t msg_inject(struct pp *pp, size_t len)
{
	return fi_inject(pp->ep, pp->tx_buf, len, pp->peer_addr);
}

static ssize_t msg_send_last(struct pp *pp, size_t len)
{
	struct iovec iov = { .iov_base = pp->tx_buf, .iov_len = len };
	void *desc = mr_desc(pp);
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = pp->peer_addr,
			      .context = &pp->tx.context };

	return fi_sendmsg(pp->ep, &msg, FI_TRANSMIT_COMPLETE);
}

static ssize_t tagged_recv(struct pp *pp)
{
	return fi_trecv(pp->ep, pp->rx_buf, pp->buf_len, mr_desc(pp), FI_ADDR_UNSPEC, PP_TAG, 0, &pp->rx.context);
}

static ssize_t tagged_send(struct pp *pp, size_t len)
{
	return fi_tsend(pp->ep, pp->tx_buf, len, mr_desc(pp), pp->peer_addr, PP_TAG, &pp->tx.context);
}

static ssize_t tagged_inject(struct pp *pp, size_t len)
{
	return fi_tinject(pp->ep, pp->tx_buf, len, pp->peer_addr, PP_TAG);
}

static ssize_t tagged_send_last(struct pp *pp, size_t len)
{
	struct iovec iov = { .iov_base = pp->tx_buf, .iov_len = len };
	void *desc = mr_desc(pp);
	struct fi_msg_tagged msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = pp->peer_addr,
				     .tag = PP_TAG, .context = &pp->tx.context };

	return fi_tsendmsg(pp->ep, &msg, FI_TRANSMIT_COMPLETE);
}

const struct pp_xfer pp_msg_xfer = {
	.recv = msg_recv,
	.send = msg_send,
	.inject = msg_inject,
	.send_last = msg_send_last,
};

const struct pp_xfer pp_tagged_xfer = {
	.recv = tagged_recv,
	.send = tagged_send,
	.inject = tagged_inject,
	.send_last = tagged_send_last,
};

int pp_wait_tick(struct pp *pp, struct pp_wait *wait, const char *what)
{
	if (++wait->polls < PP_POLLS_PER_TICK && pp->cq)
		return 0;
	sched_yield();
	if (wait->polls % PP_POLLS_PER_TICK && pp->cq)
		return 0;
	if (util_now_ns() - wait->start > (uint64_t) pp->opts->wait_ms * 1000000)
		return pp_fail(pp, -FI_ETIMEDOUT, "wait for %s (-T sets how long)", what);
	if (!pp_ctrl_is_closed(pp, 0))
		return 0;
	return pp->leaving ? -FI_ECONNRESET : pp_fail(pp, -FI_ECONNRESET, "wait for %s: the peer has ended", what);
}

/* Read and explain the entry behind -FI_EAVAIL. Returns its error as -FI_*. */
static int cq_error(struct pp *pp)
{
	struct fi_cq_err_entry entry = { .err_data_size = 0 };
	const char *detail, *what;
	ssize_t ret;
	char buf[256];

	ret = fi_cq_readerr(pp->cq, &entry, 0);
	if (ret < 0)
		return pp_fail(pp, (int) ret, "fi_cq_readerr");
	if (!entry.err)
		entry.err = FI_EOTHER;
	if (pp->leaving)
		return -entry.err;
	what = entry.op_context == &pp->tx.context ? "send" : "receive";
	detail = fi_cq_strerror(pp->cq, entry.prov_errno, entry.err_data, buf, sizeof(buf));
	return pp_fail(pp, -entry.err, "%s failed: provider error %d (%s)", what, entry.prov_errno,
		       detail ? detail : "no text");
}

int pp_progress(struct pp *pp)
{
	struct fi_cq_msg_entry entries[2];
	struct pp_op *op;
	ssize_t ret, i;

	if (!pp->cq)
		return 0;
	ret = fi_cq_read(pp->cq, entries, sizeof(entries) / sizeof(entries[0]));
	if (ret == -FI_EAGAIN)
		return 0;
	if (ret == -FI_EAVAIL)
		return cq_error(pp);
	if (ret < 0)
		return pp_fail(pp, (int) ret, "fi_cq_read");
	for (i = 0; i < ret; i++) {
		op = entries[i].op_context == &pp->rx.context ? &pp->rx : &pp->tx;
		op->busy = false;
		op->len = entries[i].len;
	}
	return 0;
}

/* Wait for an operation to complete. */
static int wait_op(struct pp *pp, const struct pp_op *op, const char *what)
{
	struct pp_wait wait = { .polls = 0 };
	int ret;

	while (op->busy) {
		ret = pp_progress(pp);
		if (ret)
			return ret;
		if (!op->busy)
			break;
		if (!wait.polls)
			wait.start = util_now_ns();
		ret = pp_wait_tick(pp, &wait, what);
		if (ret)
			return ret;
	}
	return 0;
}

/* After a posting call that gave `posted`: 0 when it is done, 1 when it has to be tried again, or what went wrong. */
static int check_posted(struct pp *pp, ssize_t posted, struct pp_wait *wait, const char *call)
{
	int ret;

	if (!posted)
		return 0;
	if (posted != -FI_EAGAIN)
		return pp_fail(pp, (int) posted, "%s", call);
	if (!wait->polls)
		wait->start = util_now_ns();
	ret = pp_progress(pp);
	if (!ret)
		ret = pp_wait_tick(pp, wait, call);
	return ret ? ret : 1;
}

int pp_post_recv(struct pp *pp)
{
	struct pp_wait wait = { .polls = 0 };
	int ret;

	pp->rx.busy = true;
	do {
		ret = check_posted(pp, pp->xfer->recv(pp), &wait, "post a receive");
	} while (ret > 0);
	return ret;
}

/* Post what is in tx_buf with one of the three calls of pp_xfer. */
static int post_send(struct pp *pp, ssize_t (*call)(struct pp *pp, size_t len), size_t len)
{
	struct pp_wait wait = { .polls = 0 };
	int ret;

	pp->tx.busy = call != pp->xfer->inject;
	do {
		ret = check_posted(pp, call(pp, len), &wait, "post a send");
	} while (ret > 0);
	return ret;
}

/* Where in the alphabet message number seq starts. */
static size_t pattern_start(uint64_t seq)
{
	return seq * PATTERN_STEP % ALPHABET_LEN;
}

static void fill_pattern(char *buf, size_t len, uint64_t seq)
{
	size_t i, start = pattern_start(seq), head = len < ALPHABET_LEN ? len : ALPHABET_LEN;

	for (i = 0; i < head; i++)
		buf[i] = alphabet[(start + i) % ALPHABET_LEN];
	for (; i < len; i += head) {
		head = len - i < i ? len - i : i;
		memcpy(buf + i, buf, head);
	}
}

static int pattern_error(struct pp *pp, const char *buf, size_t len, uint64_t seq)
{
	size_t i, start = pattern_start(seq), first = len, bad = 0;

	for (i = 0; i < len; i++) {
		if (buf[i] == alphabet[(start + i) % ALPHABET_LEN])
			continue;
		if (!bad++)
			first = i;
	}
	util_err("data check: message %llu of %zu bytes: %zu wrong, first at offset %zu",
		 (unsigned long long) seq + 1, len, bad, first);
	fprintf(stderr, "%10s", "expected:");
	for (i = first; i < len && i < first + 16; i++)
		fprintf(stderr, " %02x", (unsigned char) alphabet[(start + i) % ALPHABET_LEN]);
	fprintf(stderr, "\n%10s", "received:");
	for (i = first; i < len && i < first + 16; i++)
		fprintf(stderr, " %02x", (unsigned char) buf[i]);
	fputc('\n', stderr);
	return pp_fail(pp, -FI_EIO, "data check (-c must be given on both sides)");
}

/* The head must be the pattern, and the rest repeat it. */
static bool pattern_matches(const char *buf, size_t len, uint64_t seq)
{
	char head[ALPHABET_LEN];
	size_t head_len = len < ALPHABET_LEN ? len : ALPHABET_LEN;

	fill_pattern(head, head_len, seq);
	return !memcmp(buf, head, head_len) && !memcmp(buf, buf + head_len, len - head_len);
}

int pp_flush(struct pp *pp)
{
	return wait_op(pp, &pp->tx, "a send to complete");
}

int pp_send(struct pp *pp, size_t len)
{
	int ret;

	ret = pp_flush(pp);
	if (ret)
		return ret;
	if (pp->opts->check)
		fill_pattern(pp->tx_buf, len, pp->tx_seq++);
	return post_send(pp, len <= pp->info->tx_attr->inject_size ? pp->xfer->inject : pp->xfer->send, len);
}

int pp_recv(struct pp *pp, size_t len)
{
	int ret;

	ret = wait_op(pp, &pp->rx, "a message");
	if (ret)
		return ret;
	if (pp->rx.len != len)
		return pp_fail(pp, -FI_EIO, "received %zu bytes instead of %zu (-I and -S must be those of the peer)",
			       pp->rx.len, len);
	if (pp->opts->check) {
		if (!pattern_matches(pp->rx_buf, len, pp->rx_seq))
			return pattern_error(pp, pp->rx_buf, len, pp->rx_seq);
		pp->rx_seq++;
	}
	return pp_post_recv(pp);
}

int pp_finish(struct pp *pp)
{
	int ret;

	ret = pp_flush(pp);
	if (ret)
		return ret;
	memcpy(pp->tx_buf, goodbye, sizeof(goodbye));
	ret = post_send(pp, pp->xfer->send_last, sizeof(goodbye));
	if (ret)
		return ret;
	pp->leaving = true;
	ret = wait_op(pp, &pp->tx, "the last send to complete");
	if (!ret && pp->opts->ep_type != FI_EP_DGRAM)
		ret = wait_op(pp, &pp->rx, "the peer's last message");
	if (!ret || ret == -FI_ETIMEDOUT)
		return ret;
	/* The peer may close as soon as it has what it waits for, and upstream's does before it has sent all. */
	return pp_ctrl_is_closed(pp, LEAVE_MS) ? 0 : pp_fail(pp, ret, "say goodbye");
}
