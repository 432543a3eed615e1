/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages. There is a ring of operations for each direction. All receives of the window are always posted; at most a
 * window of sends is outstanding. pp_wait.c notes completions in the rings.
 */
#include "pp.h"

#include <stdio.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "common.h"

/* The tag of all tagged messages, and the last message, as in upstream's program. */
#define PP_TAG 1234
static const char goodbye[] = "fin";

/* With -c, message n starts at letter 7 * n of this alphabet and wraps around: upstream's pattern. */
static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
#define ALPHABET_LEN (sizeof(alphabet) - 1)
#define PATTERN_STEP 7

/* The time that a peer may take from closing its endpoint to closing the control channel. */
#define LEAVE_MS 2000

/* The calls that differ between untagged and tagged messages. */
struct pp_xfer {
	ssize_t (*recv)(struct pp *pp);
	pp_call_fn *send, *inject;
	pp_call_fn *send_last;             /* completes when the message has been transmitted */
};

/* The buffer of an index in a ring. */
static char *slot(const struct pp *pp, char *buf, uint32_t turn)
{
	return buf + (pp->slots > 1 ? turn * pp->buf_len : 0);
}

char *pp_rma_buf(const struct pp *pp)
{
	return slot(pp, pp->rma_buf, pp->tx_next);
}

char *pp_tx_buf(const struct pp *pp)
{
	return slot(pp, pp->tx_buf, pp->tx_next);
}

char *pp_rx_buf(const struct pp *pp)
{
	return slot(pp, pp->rx_buf, pp->rx_next);
}

void *pp_tx_context(struct pp *pp)
{
	return &pp->tx[pp->tx_next].context;
}

static void *rx_context(struct pp *pp)
{
	return &pp->rx[pp->rx_next].context;
}

void *pp_desc(const struct pp *pp)
{
	return pp->mr ? fi_mr_desc(pp->mr) : NULL;
}

static ssize_t msg_recv(struct pp *pp)
{
	return fi_recv(pp->ep, pp_rx_buf(pp), pp->buf_len, pp_desc(pp), FI_ADDR_UNSPEC, rx_context(pp));
}

static ssize_t msg_send(struct pp *pp, size_t len)
{
	return fi_send(pp->ep, pp_tx_buf(pp), pp->tx_prefix + len, pp_desc(pp), pp->peer_addr, pp_tx_context(pp));
}

static ssize_t msg_inject(struct pp *pp, size_t len)
{
	return fi_inject(pp->ep, pp_tx_buf(pp), pp->tx_prefix + len, pp->peer_addr);
}

static ssize_t msg_send_last(struct pp *pp, size_t len)
{
	struct iovec iov = { .iov_base = pp_tx_buf(pp), .iov_len = pp->tx_prefix + len };
	void *desc = pp_desc(pp);
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = pp->peer_addr,
			      .context = pp_tx_context(pp) };

	return fi_sendmsg(pp->ep, &msg, FI_TRANSMIT_COMPLETE);
}

static ssize_t tagged_recv(struct pp *pp)
{
	return fi_trecv(pp->ep, pp_rx_buf(pp), pp->buf_len, pp_desc(pp), FI_ADDR_UNSPEC, PP_TAG, 0, rx_context(pp));
}

static ssize_t tagged_send(struct pp *pp, size_t len)
{
	return fi_tsend(pp->ep, pp_tx_buf(pp), pp->tx_prefix + len, pp_desc(pp), pp->peer_addr, PP_TAG,
			pp_tx_context(pp));
}

static ssize_t tagged_inject(struct pp *pp, size_t len)
{
	return fi_tinject(pp->ep, pp_tx_buf(pp), pp->tx_prefix + len, pp->peer_addr, PP_TAG);
}

static ssize_t tagged_send_last(struct pp *pp, size_t len)
{
	struct iovec iov = { .iov_base = pp_tx_buf(pp), .iov_len = pp->tx_prefix + len };
	void *desc = pp_desc(pp);
	struct fi_msg_tagged msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = pp->peer_addr,
				     .tag = PP_TAG, .context = pp_tx_context(pp) };

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

/* Post the next receive of the ring, without advancing the index. */
static int post_recv(struct pp *pp)
{
	struct pp_wait wait = { .polls = 0 };
	int ret;

	pp->rx[pp->rx_next].recv = true;
	pp->rx[pp->rx_next].busy = true;
	do {
		ret = pp_check_posted(pp, pp->xfer->recv(pp), &wait, "post a receive");
	} while (ret > 0);
	return ret;
}

/* The index after `turn` in a ring. */
static uint32_t next_turn(const struct pp *pp, uint32_t turn)
{
	return turn + 1 < pp->opts->window ? turn + 1 : 0;
}

int pp_post_recvs(struct pp *pp)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < pp->opts->window && !ret; i++) {
		ret = post_recv(pp);
		pp->rx_next = next_turn(pp, pp->rx_next);
	}
	return ret;
}

/* Post the next transmit operation: one that will complete, or one without a completion. */
static int post_tx(struct pp *pp, pp_call_fn *call, size_t len, bool completes)
{
	struct pp_wait wait = { .polls = 0 };
	int ret;

	pp->tx[pp->tx_next].busy = completes;
	do {
		ret = pp_check_posted(pp, call(pp, len), &wait, "post a transmit operation");
	} while (ret > 0);
	pp->tx_next = next_turn(pp, pp->tx_next);
	return ret;
}

/* Wait until the next operation of the transmit ring is free. */
static int wait_tx(struct pp *pp)
{
	return pp_wait_op(pp, &pp->tx[pp->tx_next], "a transmit operation to complete");
}

int pp_post(struct pp *pp, pp_call_fn *call, size_t len)
{
	int ret = wait_tx(pp);

	return ret ? ret : post_tx(pp, call, len, true);
}

/* The index in the alphabet at which message number seq starts. */
static size_t pattern_start(uint64_t seq)
{
	return seq * PATTERN_STEP % ALPHABET_LEN;
}

void pp_fill(char *buf, size_t len, uint64_t seq)
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
	return pp_fail(pp, -FI_EIO, "data check (both sides must be told to)");
}

/* Check that the head is the pattern and the rest repeats it. */
static bool pattern_matches(const char *buf, size_t len, uint64_t seq)
{
	char head[ALPHABET_LEN];
	size_t head_len = len < ALPHABET_LEN ? len : ALPHABET_LEN;

	pp_fill(head, head_len, seq);
	return !memcmp(buf, head, head_len) && !memcmp(buf, buf + head_len, len - head_len);
}

int pp_check(struct pp *pp, const char *buf, size_t len, uint64_t seq)
{
	return pattern_matches(buf, len, seq) ? 0 : pattern_error(pp, buf, len, seq);
}

int pp_flush(struct pp *pp)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < pp->opts->window && !ret; i++)
		ret = pp_wait_op(pp, &pp->tx[i], "a transmit operation to complete");
	return ret;
}

int pp_send(struct pp *pp, size_t len)
{
	/* Operations that are counted must complete, so inject cannot be used. */
	bool inject = !pp->tx_cntr && pp->tx_prefix + len <= pp->info->tx_attr->inject_size;
	int ret;

	ret = wait_tx(pp);
	if (ret)
		return ret;
	if (pp->opts->check)
		pp_fill(pp_tx_buf(pp) + pp->tx_prefix, len, pp->tx_seq++);
	return post_tx(pp, inject ? pp->xfer->inject : pp->xfer->send, len, !inject);
}

int pp_recv(struct pp *pp, size_t len)
{
	struct pp_op *op = &pp->rx[pp->rx_next];
	int ret;

	ret = pp_wait_op(pp, op, "a message");
	if (ret)
		return ret;
	if (!pp->rx_cntr && op->len != pp->rx_prefix + len)
		return pp_fail(pp, -FI_EIO, "received %zu bytes instead of %zu (-I and -S must be those of the peer)",
			       op->len - pp->rx_prefix, len);
	ret = pp->opts->check ? pp_check(pp, pp_rx_buf(pp) + pp->rx_prefix, len, pp->rx_seq++) : 0;
	if (!ret)
		ret = post_recv(pp);
	pp->rx_next = next_turn(pp, pp->rx_next);
	return ret;
}

int pp_recv_data(struct pp *pp)
{
	int ret;

	if (!(pp->info->rx_attr->mode & FI_RX_CQ_DATA))
		return pp_wait_data(pp);
	ret = pp_wait_op(pp, &pp->rx[pp->rx_next], "an RMA write with data");
	if (!ret)
		ret = post_recv(pp);
	pp->rx_next = next_turn(pp, pp->rx_next);
	return ret;
}

int pp_finish(struct pp *pp)
{
	int ret;

	ret = pp_flush(pp);
	if (ret)
		return ret;
	memcpy(pp_tx_buf(pp) + pp->tx_prefix, goodbye, sizeof(goodbye));
	ret = pp_post(pp, pp->xfer->send_last, sizeof(goodbye));
	if (ret)
		return ret;
	pp->leaving = true;
	ret = pp_flush(pp);
	if (!ret && pp->opts->ep_type != FI_EP_DGRAM)
		ret = pp_wait_op(pp, &pp->rx[pp->rx_next], "the peer's last message");
	if (!ret || ret == -FI_ETIMEDOUT)
		return ret;
	/* The peer may close as soon as it has all it waits for; upstream's program does so before it has sent
	 * everything. */
	return pp_ctrl_is_closed(pp, LEAVE_MS) ? 0 : pp_fail(pp, ret, "say goodbye");
}
