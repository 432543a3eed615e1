/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What arrives on a connection, and the receives it is for. Engine lock held by all but tcp_post_recv(), which takes it.
 *
 *   socket -> staging (of the engine) -> parse: header, check, start by type -> payload -> done
 *         \-> straight into the posted buffer, when a payload is larger than what is staged
 *
 * Everything in a header is hostile until hdr_check() has passed it; the start functions check what only they can know (keys, ids,
 * lengths agreed before). A frame that breaks a rule ends this connection with one log line.
 */
#include "tcp/stream.h"
#include <byteswap.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include "base/bits.h"
#include "tcp/tcp.h"

/* ---- frame headers ---- */

static void rx_message(struct tcp_conn *conn);
static void rx_ack(struct tcp_conn *conn);
static void rx_credit(struct tcp_conn *conn);

/* What a frame of each type looks like, and who takes it up. */
static const struct rx_kind {
	void (*start)(struct tcp_conn *conn);	/* header is complete; NULL: no such frame */
	uint8_t fixed;				/* bytes behind base header and CQ data */
	bool cq_data;				/* may carry CQ data */
	bool rma;				/* carries rma_iov, one at least */
	bool payload;				/* size may exceed hdr_size */
	bool ext;				/* ours: only where announced */
} rx_kind[TCP_WIRE_OP_END] = {
	[TCP_WIRE_MSG] = { rx_message, 0, .cq_data = true, .payload = true },
	[TCP_WIRE_TAG] = { rx_message, sizeof(uint64_t), .cq_data = true, .payload = true },
	[TCP_WIRE_READ_REQ] = { tcp_rma_read_req, 0, .rma = true },
	[TCP_WIRE_READ_RSP] = { tcp_rma_read_rsp, 0, .payload = true },
	[TCP_WIRE_WRITE] = { tcp_rma_write, 0, .cq_data = true, .rma = true, .payload = true },
	[TCP_WIRE_ACK] = { rx_ack, sizeof(struct tcp_ack), .ext = true },
	[TCP_WIRE_CREDIT] = { rx_credit, sizeof(struct tcp_credit), .ext = true },
	[TCP_WIRE_XRTS] = { tcp_rndv_rts, sizeof(struct tcp_rts), .cq_data = true, .ext = true },
	[TCP_WIRE_XCTS] = { tcp_rndv_cts, sizeof(struct tcp_cts), .ext = true },
	[TCP_WIRE_XDATA] = { tcp_rndv_data, sizeof(struct tcp_xdata), .payload = true, .ext = true },
	[TCP_WIRE_READ_ERR] = { tcp_rma_read_err, sizeof(struct tcp_read_err), .ext = true },
};

/* The base header is here. NULL: it is in order; otherwise what is wrong with it. */
static const char *hdr_check(const struct tcp_conn *conn, const struct tcp_hdr *hdr)
{
	const struct rx_kind *kind = &rx_kind[hdr->op];
	uint32_t len = sizeof(*hdr);

	if (hdr->op >= TCP_WIRE_OP_END || !kind->start || (kind->ext && !conn->peer.ext))
		return "frame of unknown type";
	if (kind->rma && (!hdr->rma_iov_cnt || hdr->rma_iov_cnt > TCP_RMA_IOV_MAX))
		return "wrong number of RMA targets";
	if ((hdr->flags & TCP_FLAG_CQ_DATA) && kind->cq_data)
		len += sizeof(uint64_t);
	len += kind->fixed + (kind->rma ? hdr->rma_iov_cnt * sizeof(struct tcp_rma_iov) : 0);
	if (hdr->hdr_size != len)
		return "header of wrong length";
	if (hdr->size < len || (hdr->size > len && !kind->payload) || hdr->size - len > TCP_MAX_MSG_SIZE)
		return "frame of wrong length";
	return NULL;
}

/* The peer's byte order is not ours. All that upstream's frames have behind the base header are 64-bit words. */
static void hdr_swap_base(struct tcp_hdr *hdr)
{
	hdr->flags = bswap_16(hdr->flags);
	hdr->size = bswap_64(hdr->size);
}

static void hdr_swap_rest(struct tcp_rx_state *rx)
{
	for (uint32_t pos = sizeof(rx->hdr); pos + 8 <= rx->hdr.hdr_size; pos += 8) {
		uint64_t word;

		memcpy(&word, rx->hdr_buf + pos, sizeof(word));
		word = bswap_64(word);
		memcpy(rx->hdr_buf + pos, &word, sizeof(word));
	}
}

const void *tcp_rx_extra(const struct tcp_conn *conn)
{
	return conn->rx.hdr_buf + sizeof(struct tcp_hdr) + (conn->rx.hdr.flags & TCP_FLAG_CQ_DATA ? sizeof(uint64_t) : 0);
}

uint64_t tcp_rx_cq_data(const struct tcp_conn *conn)
{
	uint64_t data = 0;

	if (conn->rx.hdr.flags & TCP_FLAG_CQ_DATA)
		memcpy(&data, conn->rx.hdr_buf + sizeof(struct tcp_hdr), sizeof(data));
	return data;
}

void tcp_rx_broken(struct tcp_conn *conn, const char *what)
{
	char text[96];

	snprintf(text, sizeof(text), "peer broke the protocol: %s (type %u)", what, conn->rx.hdr.op);
	TCP_WARN(FI_LOG_EP_DATA, "%s; connection closed\n", text);
	tcp_conn_fail(conn, FI_EIO, EPROTO, text);
}

/* ---- payload ---- */

void tcp_rx_aim(struct tcp_rx_state *rx, const struct iovec *iov, uint32_t cnt, uint64_t len)
{
	rx->iov_cnt = rx->iov_cur = 0;
	for (uint32_t i = 0; i < cnt && len; i++) {
		size_t n = iov[i].iov_len < len ? iov[i].iov_len : len;

		if (!n)
			continue;
		rx->iov[rx->iov_cnt++] = (struct iovec) { iov[i].iov_base, n };
		len -= n;
	}
}

void tcp_rx_aim_into(struct tcp_rx_state *rx, const struct tcp_into *into)
{
	if (into->rx->flags & FI_MULTI_RECV)
		tcp_rx_aim(rx, &(struct iovec) { into->start, into->take }, 1, into->take);
	else
		tcp_rx_aim(rx, into->rx->iov, into->rx->iov_cnt, into->take);
}

void tcp_rx_expect(struct tcp_conn *conn, uint64_t left, uint64_t skip, void (*done)(struct tcp_conn *conn))
{
	conn->rx.left = left;
	conn->rx.skip = skip;
	conn->rx.done = done;
	conn->rx.phase = TCP_RX_PAYLOAD;
}

/* n bytes have gone to where rx.iov points. */
static void rx_advance(struct tcp_rx_state *rx, size_t n)
{
	rx->left -= n;
	while (n) {
		struct iovec *iov = &rx->iov[rx->iov_cur];
		size_t part = n < iov->iov_len ? n : iov->iov_len;

		iov->iov_base = (uint8_t *) iov->iov_base + part;
		iov->iov_len -= part;
		n -= part;
		if (!iov->iov_len)
			rx->iov_cur++;
	}
}

/* Copy staged payload to where it belongs; returns how much was used. */
static size_t rx_copy(struct tcp_rx_state *rx, const uint8_t *buf, size_t len)
{
	size_t used = 0;

	while (rx->left && used < len) {
		struct iovec *iov = &rx->iov[rx->iov_cur];
		size_t n = iov->iov_len < len - used ? iov->iov_len : len - used;

		memcpy(iov->iov_base, buf + used, n);
		rx_advance(rx, n);
		used += n;
	}
	if (!rx->left && rx->skip) {
		size_t n = rx->skip < len - used ? rx->skip : len - used;

		rx->skip -= n;
		used += n;
	}
	return used;
}

/* Add to the header what it lacks. Returns how much was used; the frame has been started when phase is PAYLOAD or the connection down. */
static size_t rx_header(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	struct tcp_rx_state *rx = &conn->rx;
	size_t need = rx->hdr_have < sizeof(rx->hdr) ? sizeof(rx->hdr) : rx->hdr.hdr_size, used;
	const char *wrong;

	used = need - rx->hdr_have < len ? need - rx->hdr_have : len;
	memcpy(rx->hdr_buf + rx->hdr_have, buf, used);
	rx->hdr_have += used;
	if (rx->hdr_have < need)
		return used;
	if (need == sizeof(rx->hdr)) {
		if (conn->peer.swap)
			hdr_swap_base(&rx->hdr);
		wrong = hdr_check(conn, &rx->hdr);
		if (wrong) {
			tcp_rx_broken(conn, wrong);
			return used;
		}
	}
	if (rx->hdr_have < rx->hdr.hdr_size)
		return used;
	if (conn->peer.swap)
		hdr_swap_rest(rx);
	rx->hdr_have = 0;
	rx_kind[rx->hdr.op].start(conn);
	return used;
}

/* All that one read brought. */
static void rx_parse(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	struct tcp_rx_state *rx = &conn->rx;

	for (;;) {
		if (rx->phase == TCP_RX_PAYLOAD) {
			size_t used = rx_copy(rx, buf, len);

			buf += used;
			len -= used;
			if (rx->left || rx->skip)
				return;
			rx->phase = TCP_RX_HDR;
			rx->done(conn);
		} else {
			size_t used;

			if (!len)
				return;
			used = rx_header(conn, buf, len);
			buf += used;
			len -= used;
		}
		if (conn->state != TCP_CONN_UP)
			return;
	}
}

/* A region was closed while the rest of a write to it is on its way: that rest goes nowhere. */
static void rx_recheck_region(struct tcp_conn *conn)
{
	struct tcp_rx_state *rx = &conn->rx;

	if (rx->hdr.op != TCP_WIRE_WRITE || !rx->left || rx->mr_gen == conn->ep->base.domain->mr_map.gen)
		return;
	rx->skip += rx->left;
	rx->left = 0;
	rx->refuse = FI_EACCES;
}

/* One call: the rest of a payload to its place, what follows it to staging. Bytes, or -errno; *staged says how many are in staging. */
static ssize_t rx_read(struct tcp_conn *conn, uint8_t *staging, size_t *staged)
{
	struct tcp_rx_state *rx = &conn->rx;
	struct iovec iov[TCP_IOV_LIMIT + 1];
	uint32_t cnt;
	ssize_t n;

	*staged = 0;
	if (rx->phase != TCP_RX_PAYLOAD || !rx->left) {
		n = conn->io->recv(conn, staging, FAB_STAGING_LEN);
		if (n > 0)
			*staged = n;
		return n;
	}
	cnt = rx->iov_cnt - rx->iov_cur;
	memcpy(iov, rx->iov + rx->iov_cur, cnt * sizeof(*iov));
	iov[cnt] = (struct iovec) { staging, FAB_STAGING_LEN };
	n = conn->io->recvv(conn, iov, cnt + 1);
	if (n > 0) {
		size_t direct = (uint64_t) n < rx->left ? (size_t) n : rx->left;

		rx_advance(rx, direct);
		*staged = n - direct;
	}
	return n;
}

static bool rx_mid_frame(const struct tcp_rx_state *rx)
{
	return rx->phase == TCP_RX_PAYLOAD || rx->hdr_have;
}

/* The stream has ended, or the socket says why not. */
static void rx_end(struct tcp_conn *conn, int err)
{
	if (err)
		tcp_conn_fail(conn, err, err, "receive failed: the peer has gone or the network has");
	else if (rx_mid_frame(&conn->rx))
		tcp_conn_fail(conn, FI_ECONNRESET, ECONNRESET, "the peer closed in the middle of a message");
	else
		tcp_conn_down(conn, 0, 0, "the peer closed the connection");
}

/* Tell the peer, once a read, what its frames have come to. */
static void rx_tell(struct tcp_conn *conn)
{
	if (conn->state == TCP_CONN_UP && conn->ack_owed)
		tcp_tx_ack(conn, 0);
	if (conn->state == TCP_CONN_UP && conn->credit_owed >= tcp_params.credit / 2)
		tcp_tx_credit(conn);
}

bool tcp_rx_poll(struct fab_source *src)
{
	struct tcp_conn *conn = fab_container(src, struct tcp_conn, src);
	uint8_t *staging = tcp_staging(&src->progress->staging);
	size_t staged;
	ssize_t n;

	if (conn->state != TCP_CONN_UP || conn->rx_paused)
		return false;
	if (!staging) {
		tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory to receive into");
		return true;
	}
	rx_recheck_region(conn);
	n = rx_read(conn, staging, &staged);
	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0) {
		rx_end(conn, -n);
		return true;
	}
	rx_parse(conn, staging, staged);
	rx_tell(conn);
	if (conn->state == TCP_CONN_UP)
		fab_source_hot(src);
	return true;
}

/* ---- receives ---- */

static struct fab_match *rx_queue(struct tcp_ep *ep, bool tagged)
{
	return tagged ? &ep->rx.tagged : &ep->rx.msg;
}

struct tcp_rx *tcp_rx_find(struct tcp_conn *conn, bool tagged, uint64_t tag)
{
	struct fab_posted *posted = fab_match_find_posted(rx_queue(conn->ep, tagged), tag, conn->fi_addr);

	return posted ? fab_container(posted, struct tcp_rx, posted) : NULL;
}

static void rx_unpost(struct tcp_ep *ep, struct tcp_rx *rx)
{
	fab_match_unpost(rx_queue(ep, rx->code == FAB_OP_TRECV), &rx->posted);
	rx->unposted = true;
}

bool tcp_rx_claim(struct tcp_ep *ep, struct tcp_rx *rx, uint64_t len, struct tcp_into *into)
{
	into->rx = rx;
	into->start = rx->iov_cnt ? rx->iov[0].iov_base : NULL;
	into->take = len < rx->len ? len : rx->len;
	rx->busy++;
	if (rx->flags & FI_MULTI_RECV) {
		/* one buffer, filled from the front */
		rx->iov[0].iov_base = into->start + into->take;
		rx->iov[0].iov_len -= into->take;
		rx->len -= into->take;
		if (rx->len && rx->len >= ep->rx.min_multi_recv)
			return true;
	}
	if (!rx->unposted)
		rx_unpost(ep, rx);
	return false;
}

void tcp_rx_finish(struct tcp_ep *ep, const struct tcp_into *into, const struct tcp_msg *msg, const struct fab_cq_fail *fail)
{
	static const char too_long[] = "the message is longer than the receive buffer";
	struct fab_cq_fail trunc = { .err = FI_ETRUNC, .prov_errno = FI_ETRUNC, .olen = msg->len - into->take, .text = too_long };
	struct tcp_rx *rx = into->rx;
	bool last = !--rx->busy && rx->unposted;
	struct fab_comp comp = {
		.context = rx->context,
		.flags = fab_op_desc[rx->code].cq_flags | (msg->has_data ? FI_REMOTE_CQ_DATA : 0),
		.len = into->take,
		.buf = into->start,
		.data = msg->data,
		.tag = msg->tag,
		.src = ep->want_src ? msg->src : FI_ADDR_NOTAVAIL,
	};

	if (last && (rx->flags & FI_MULTI_RECV))
		comp.flags |= FI_MULTI_RECV;
	if (!fail && into->take < msg->len)
		fail = &trunc;
	if (fail)
		fab_ep_fail(&ep->base, rx->code, &comp, fail);
	else
		fab_ep_complete(&ep->base, rx->code, &comp, fab_ep_rx_wants_comp(&ep->base, rx->flags));
	if (last)
		fab_pool_put(&ep->rx.pool, rx);
}

/* ---- unexpected messages ---- */

struct tcp_unexp *tcp_unexp_new(struct tcp_conn *conn, const struct tcp_msg *msg, bool announced)
{
	struct tcp_ep *ep = conn->ep;
	bool too_many = announced ? conn->announced_cnt >= TCP_IDMAP_MAX :
				    conn->peer.ext && conn->unexp_len + msg->len > 2 * tcp_params.credit;
	struct tcp_unexp *unexp;

	if (too_many) {
		tcp_rx_broken(conn, "more unexpected messages than it was given credit for");
		return NULL;
	}
	unexp = fab_pool_get(&ep->rx.unexp_pool);
	if (!unexp)
		goto no_memory;
	memset(unexp, 0, offsetof(struct tcp_unexp, small));
	unexp->conn = conn;
	unexp->tag = msg->tag;
	unexp->data = msg->data;
	unexp->len = msg->len;
	unexp->tagged = msg->tagged;
	unexp->has_data = msg->has_data;
	unexp->announced = announced;
	unexp->buf = unexp->small;
	if (!announced && msg->len > TCP_UNEXP_SMALL)
		unexp->buf = malloc(msg->len);
	if (!unexp->buf)
		goto put;
	unexp->match.tag = msg->tag;
	unexp->match.src = msg->src;
	if (fab_match_add_unexp(rx_queue(ep, msg->tagged), &unexp->match))
		goto free_buf;
	fab_list_add_tail(&conn->unexp, &unexp->link);
	if (announced)
		conn->announced_cnt++;
	else
		conn->unexp_len += msg->len + TCP_CREDIT_OVERHEAD;
	return unexp;

free_buf:
	if (unexp->buf != unexp->small)
		free(unexp->buf);
put:
	fab_pool_put(&ep->rx.unexp_pool, unexp);
no_memory:
	tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory to keep an unexpected message");
	return NULL;
}

/* Read from a peer again that had too much unread; only those without credits are ever stopped. */
static void rx_pause(struct tcp_conn *conn, bool pause)
{
	if (conn->rx_paused == pause || conn->state != TCP_CONN_UP)
		return;
	conn->rx_paused = pause;
	fab_source_mod(&conn->src, pause ? conn->src.events & ~(uint32_t) EPOLLIN : conn->src.events | EPOLLIN);
}

/* len bytes of eager messages have been consumed. */
static void rx_give_credit(struct tcp_conn *conn, uint64_t len)
{
	if (conn->peer.ext)
		conn->credit_owed += len;
}

void tcp_unexp_free(struct tcp_ep *ep, struct tcp_unexp *unexp)
{
	struct tcp_conn *conn = unexp->conn;

	if (conn) {
		fab_list_remove(&unexp->link);
		if (unexp->announced) {
			conn->announced_cnt--;
		} else {
			conn->unexp_len -= unexp->len + TCP_CREDIT_OVERHEAD;
			rx_give_credit(conn, unexp->len + TCP_CREDIT_OVERHEAD);
		}
		if (conn->unexp_len < tcp_params.unexp_max / 2)
			rx_pause(conn, false);
	}
	if (unexp->buf != unexp->small)
		free(unexp->buf);
	fab_pool_put(&ep->rx.unexp_pool, unexp);
}

struct tcp_msg tcp_unexp_msg(const struct tcp_unexp *unexp)
{
	return (struct tcp_msg) {
		.tag = unexp->tag, .data = unexp->data, .len = unexp->len, .src = unexp->match.src,
		.tagged = unexp->tagged, .has_data = unexp->has_data,
	};
}

/* All of it is here and a receive has taken it. */
static void unexp_deliver(struct tcp_ep *ep, struct tcp_unexp *unexp)
{
	struct tcp_msg msg = tcp_unexp_msg(unexp);
	struct tcp_rx_state aim = { .left = unexp->into.take };

	tcp_rx_aim_into(&aim, &unexp->into);
	rx_copy(&aim, unexp->buf, unexp->into.take);
	tcp_rx_finish(ep, &unexp->into, &msg, NULL);
	tcp_unexp_free(ep, unexp);
}

bool tcp_unexp_take(struct tcp_ep *ep, struct tcp_unexp *unexp, struct tcp_rx *rx)
{
	struct tcp_conn *conn = unexp->conn;
	bool more;

	fab_match_del_unexp(rx_queue(ep, unexp->tagged), &unexp->match);
	more = tcp_rx_claim(ep, rx, unexp->len, &unexp->into);
	if (unexp->announced)
		tcp_rndv_take(conn, unexp);
	else if (unexp->complete)
		unexp_deliver(ep, unexp);
	if (conn)
		rx_tell(conn);
	return more;
}

/* ---- messages ---- */

static struct tcp_msg rx_msg(const struct tcp_conn *conn)
{
	const struct tcp_hdr *hdr = &conn->rx.hdr;
	struct tcp_msg msg = {
		.tagged = hdr->op == TCP_WIRE_TAG, .has_data = hdr->flags & TCP_FLAG_CQ_DATA, .data = tcp_rx_cq_data(conn),
		.len = hdr->size - hdr->hdr_size, .src = conn->fi_addr,
	};

	if (msg.tagged)
		memcpy(&msg.tag, tcp_rx_extra(conn), sizeof(msg.tag));
	return msg;
}

static void posted_done(struct tcp_conn *conn)
{
	struct tcp_msg msg = rx_msg(conn);
	struct tcp_into into = conn->rx.into;

	conn->rx.into.rx = NULL;
	tcp_rx_finish(conn->ep, &into, &msg, NULL);
	rx_give_credit(conn, msg.len + TCP_CREDIT_OVERHEAD);
	tcp_rx_delivered(conn);
}

static void unexp_done(struct tcp_conn *conn)
{
	struct tcp_unexp *unexp = conn->rx.unexp;

	conn->rx.unexp = NULL;
	unexp->complete = true;
	tcp_rx_delivered(conn);
	if (unexp->into.rx)
		unexp_deliver(conn->ep, unexp);
	else if (!conn->peer.ext && conn->unexp_len > tcp_params.unexp_max)
		rx_pause(conn, true);
}

static void rx_message(struct tcp_conn *conn)
{
	const struct tcp_hdr *hdr = &conn->rx.hdr;
	struct tcp_msg msg;
	struct tcp_rx *rx;

	if (hdr->op == TCP_WIRE_MSG && hdr->op_data == TCP_OP_DATA_ACK) {
		rx_ack(conn);
		return;
	}
	msg = rx_msg(conn);
	rx = tcp_rx_find(conn, msg.tagged, msg.tag);
	if (rx) {
		tcp_rx_claim(conn->ep, rx, msg.len, &conn->rx.into);
		tcp_rx_aim_into(&conn->rx, &conn->rx.into);
		tcp_rx_expect(conn, conn->rx.into.take, msg.len - conn->rx.into.take, posted_done);
		return;
	}
	conn->rx.unexp = tcp_unexp_new(conn, &msg, false);
	if (!conn->rx.unexp)
		return;
	tcp_rx_aim(&conn->rx, &(struct iovec) { conn->rx.unexp->buf, msg.len }, 1, msg.len);
	tcp_rx_expect(conn, msg.len, 0, unexp_done);
}

void tcp_rx_delivered(struct tcp_conn *conn)
{
	if (conn->rx.hdr.flags & TCP_FLAG_WANT_ACK)
		conn->ack_owed++;
}

/* Upstream's acknowledgement has no body and stands for one frame. */
static void rx_ack(struct tcp_conn *conn)
{
	struct tcp_ack ack = { .cnt = 1 };

	if (conn->rx.hdr.op == TCP_WIRE_ACK)
		memcpy(&ack, tcp_rx_extra(conn), sizeof(ack));
	else if (conn->rx.hdr.size != sizeof(struct tcp_hdr)) {
		tcp_rx_broken(conn, "acknowledgement with a payload");
		return;
	}
	if (!tcp_tx_acked(conn, ack.cnt, ack.err))
		tcp_rx_broken(conn, "acknowledgement of what was not sent");
}

static void rx_credit(struct tcp_conn *conn)
{
	struct tcp_credit credit;

	memcpy(&credit, tcp_rx_extra(conn), sizeof(credit));
	if (credit.len > conn->peer.credit || conn->credit + credit.len > conn->peer.credit) {
		tcp_rx_broken(conn, "more credit than it promised");
		return;
	}
	conn->credit += credit.len;
}

/* ---- failure ---- */

void tcp_rx_fail_all(struct tcp_conn *conn, int err, int prov_errno, const char *text)
{
	const struct fab_cq_fail fail = { .err = err, .prov_errno = prov_errno, .text = text };
	struct tcp_ep *ep = conn->ep;
	struct fab_list *link, *next;

	if (conn->rx.into.rx) {
		struct tcp_msg msg = rx_msg(conn);
		struct tcp_into into = conn->rx.into;

		into.take -= conn->rx.left;
		conn->rx.into.rx = NULL;
		tcp_rx_finish(ep, &into, &msg, &fail);
	}
	fab_list_for_each_safe(&conn->unexp, link, next) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, link);

		if (unexp->complete) {
			/* its receive may still come */
			fab_list_remove(link);
			unexp->conn = NULL;
			continue;
		}
		if (unexp->into.rx) {
			struct tcp_msg msg = tcp_unexp_msg(unexp);

			tcp_rx_finish(ep, &unexp->into, &msg, &fail);
		} else {
			fab_match_del_unexp(rx_queue(ep, unexp->tagged), &unexp->match);
		}
		tcp_unexp_free(ep, unexp);
	}
}

/* Complete a posted receive, which no message has taken, in error. */
static void rx_fail_posted(struct tcp_ep *ep, struct tcp_rx *rx, int err)
{
	struct tcp_msg msg = { .src = FI_ADDR_NOTAVAIL };
	struct tcp_into into = { .rx = rx };

	rx_unpost(ep, rx);
	rx->busy++;
	tcp_rx_finish(ep, &into, &msg, &(struct fab_cq_fail) { .err = err, .prov_errno = err });
}

static bool rx_cancel(struct tcp_ep *ep, struct fab_match *match, void *context)
{
	struct fab_list *link;

	fab_list_for_each(&match->posted_order, link) {
		struct tcp_rx *rx = fab_container(link, struct tcp_rx, posted.order);

		if (rx->context == context) {
			rx_fail_posted(ep, rx, FI_ECANCELED);
			return true;
		}
	}
	return false;
}

bool tcp_rx_cancel(struct tcp_ep *ep, void *context)
{
	return rx_cancel(ep, &ep->rx.tagged, context) || rx_cancel(ep, &ep->rx.msg, context);
}

static void rx_flush(struct tcp_ep *ep, struct fab_match *match, int err)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&match->posted_order, link, next)
		rx_fail_posted(ep, fab_container(link, struct tcp_rx, posted.order), err);
}

void tcp_rx_flush(struct tcp_ep *ep, int err)
{
	rx_flush(ep, &ep->rx.msg, err);
	rx_flush(ep, &ep->rx.tagged, err);
}

/* ---- posting ---- */

static int rx_post(struct tcp_ep *ep, const struct fab_op *op)
{
	bool tagged = op->code == FAB_OP_TRECV;
	struct fab_match *queue = rx_queue(ep, tagged);
	fi_addr_t src = ep->directed_recv ? op->addr : FI_ADDR_UNSPEC;
	struct fab_unexp *unexp;
	struct tcp_rx *rx;
	int ret;

	if (!ep->base.enabled || ep->closing || (ep->conn && ep->conn->state == TCP_CONN_DOWN))
		return -FI_EOPBADSTATE;
	if (op->iov_cnt > TCP_IOV_LIMIT || ((op->flags & FI_MULTI_RECV) && op->iov_cnt != 1))
		return -FI_EINVAL;
	rx = fab_pool_get(&ep->rx.pool);
	if (!rx)
		return fab_pool_full(&ep->rx.pool) ? -FI_EAGAIN : -FI_ENOMEM;
	rx->posted.tag = op->tag & ~op->ignore;
	rx->posted.ignore = op->ignore;
	rx->posted.src = src;
	rx->context = op->context;
	rx->flags = op->flags;
	rx->len = fab_iov_len(op->iov, op->iov_cnt);
	rx->iov_cnt = op->iov_cnt;
	rx->busy = 0;
	rx->code = op->code;
	memcpy(rx->iov, op->iov, op->iov_cnt * sizeof(*op->iov));
	unexp = queue->unexp_cnt ? fab_match_find_unexp(queue, op->tag, op->ignore, src) : NULL;
	rx->unposted = unexp && !(op->flags & FI_MULTI_RECV);
	if (!rx->unposted) {
		ret = fab_match_post(queue, &rx->posted);
		if (ret) {
			fab_pool_put(&ep->rx.pool, rx);
			return ret;
		}
	}
	/* a multi-receive may take several, and still be posted for more */
	while (unexp && tcp_unexp_take(ep, fab_container(unexp, struct tcp_unexp, match), rx))
		unexp = fab_match_find_unexp(queue, op->tag, op->ignore, src);
	return 0;
}

ssize_t tcp_post_recv(struct tcp_ep *ep, const struct fab_op *op)
{
	struct fab_progress *progress = ep->base.progress;
	int ret;

	fab_progress_lock(progress);
	ret = rx_post(ep, op);
	fab_progress_unlock(progress);
	return ret;
}

/* ---- life ---- */

int tcp_rx_ctx_init(struct tcp_rx_ctx *ctx, const struct fi_rx_attr *attr)
{
	int ret;

	ret = fab_match_init(&ctx->msg);
	if (ret)
		return ret;
	ret = fab_match_init(&ctx->tagged);
	if (ret)
		goto fini_msg;
	fab_pool_init(&ctx->pool, &(struct fab_pool_attr) { .size = sizeof(struct tcp_rx), .max_cnt = attr->size,
		      .chunk_cnt = 16 });
	fab_pool_init(&ctx->unexp_pool, &(struct fab_pool_attr) { .size = sizeof(struct tcp_unexp), .chunk_cnt = 16 });
	ctx->min_multi_recv = TCP_MIN_MULTI_RECV;
	return 0;

fini_msg:
	fab_match_fini(&ctx->msg);
	return ret;
}

static void unexp_drop_all(struct tcp_ep *ep, struct fab_match *match)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&match->unexp_order, link, next) {
		struct fab_unexp *unexp = fab_container(link, struct fab_unexp, link[FAB_MATCH_ORDER]);

		fab_match_del_unexp(match, unexp);
		tcp_unexp_free(ep, fab_container(unexp, struct tcp_unexp, match));
	}
}

void tcp_rx_ctx_fini(struct tcp_ep *ep)
{
	struct tcp_rx_ctx *ctx = &ep->rx;

	unexp_drop_all(ep, &ctx->msg);
	unexp_drop_all(ep, &ctx->tagged);
	fab_match_fini(&ctx->tagged);
	fab_match_fini(&ctx->msg);
	fab_pool_fini(&ctx->unexp_pool);
	fab_pool_fini(&ctx->pool);
}
