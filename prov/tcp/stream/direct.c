/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See direct.h.
 */
#include "tcp/stream/direct.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/bits.h"
#include "base/hmac.h"
#include "base/sock.h"
#include "tcp/stream/io_ring.h"

#define STEP_LEN	(1u << 20)	/* bytes of one system call */
#define PASS_LEN	(1u << 20)	/* a pass that has read so many begins no further payload */
#define PART_SHIFT	21		/* memory is known in parts of 2 MiB */
#define PARTS		64		/* how many of them a stream remembers; a power of 2 */

_Static_assert(TCP_PIECES_MAX == TCP_IOV_LIMIT, "an operation has a piece for each entry of its vector");

struct tcp_direct {
	struct tcp_cookie cookie;	/* read by the peer; 0 once the stream has ended */
	struct tcp_conn *conn;		/* borrowed */
	struct fab_defer defer;

	uint64_t readable[PARTS];	/* parts of our memory that were seen to be readable for others; 0: none */

	/* the peer's memory */
	bool was_asked, reads;		/* the peer has asked; the answer was yes */
	struct tcp_reader reader;
	struct fab_flush flush;		/* linked: a payload is not complete */
	uint32_t pass;			/* engine.pass_cnt at the last step ... */
	uint64_t pass_len;		/* ... and the bytes that were read in this pass */
	uint32_t have;			/* bytes of the pieces that have arrived */
	uint32_t cur;			/* the piece to read from */
	struct iovec piece[TCP_PIECES_MAX];
	uint8_t *rest;			/* owned: what has come behind the current frame, or NULL */
	size_t rest_len;
};

/* ---- both ends ---- */

static void direct_flush(struct fab_flush *flush)
{
	tcp_direct_go_on(fab_container(flush, struct tcp_direct, flush)->conn);
}

/* The state of a stream, made at its first use. NULL: no memory. */
static struct tcp_direct *direct_get(struct tcp_conn *conn)
{
	struct tcp_direct *direct = conn->direct.state;

	if (direct)
		return direct;
	direct = calloc(1, sizeof(*direct));
	if (!direct)
		return NULL;
	direct->conn = conn;
	fab_flush_init(&direct->flush, direct_flush);
	conn->direct.state = direct;
	return direct;
}

void tcp_direct_begin(struct tcp_conn *conn)
{
	bool may = conn->local && conn->ep->shared_memory && (conn->peer.features & TCP_EXT_DIRECT);

	conn->direct.lends = may ? TCP_DIRECT_UNASKED : TCP_DIRECT_OFF;
}

static void direct_free(struct fab_defer *defer)
{
	free(fab_container(defer, struct tcp_direct, defer));
}

void tcp_direct_end(struct tcp_conn *conn)
{
	struct tcp_direct *direct = conn->direct.state;

	conn->direct.lends = TCP_DIRECT_OFF;
	conn->direct.state = NULL;
	conn->rx.paused &= ~TCP_RX_PULLING;
	if (!direct)
		return;
	direct->cookie = (struct tcp_cookie) { 0 };
	/* before the buffers are given back; the compiler keeps the store, as others get the address */
	tcp_full_barrier();
	fab_flush_cancel(&direct->flush);
	free(direct->rest);
	direct->rest = NULL;
	direct->defer.free = direct_free;
	fab_engine_defer(conn->ep->base.engine, &direct->defer);
}

static void direct_tell_off(const struct tcp_conn *conn, const char *who, int err)
{
	char ends[TCP_CONN_TEXT];

	tcp_conn_text(conn, ends);
	TCP_LOG(FI_LOG_INFO, FI_LOG_EP_DATA, "%s: long messages go through the stream, since %s: %s\n", ends, who,
		strerror(err));
}

/* ---- sender ---- */

/* Ask the peer whether it can read our memory. If that is not possible, another frame will. */
static void direct_ask(struct tcp_conn *conn)
{
	struct tcp_direct *direct = direct_get(conn);
	struct tcp_direct_ask ask = { .addr = (uintptr_t) direct, .piece_size = sizeof(struct iovec) };
	struct tcp_tx *tx;

	_Static_assert(!offsetof(struct tcp_direct, cookie), "where it lies");
	if (!direct || fab_nonce(&direct->cookie, sizeof(direct->cookie)))
		return;
	memcpy(ask.cookie, &direct->cookie, sizeof(ask.cookie));
	tx = tcp_tx_try_control(conn, TCP_WIRE_DIRECT, &ask, sizeof(ask));
	if (!tx)
		return;
	conn->tx.len += tx->size;
	fab_list_add_tail(&conn->tx.queue, &tx->link);
	conn->direct.lends = TCP_DIRECT_ASKED;
}

/* True if this process can read the byte: a system call that takes it from here does not fail with EFAULT. */
static bool is_ours_to_read(const uint8_t *at)
{
	const void *word = (const void *) ((uintptr_t) at & ~(uintptr_t) 7);
	int fd = fab_sock->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	bool can;

	if (fd < 0)
		return false;
	can = fab_sock->write(fd, word, 8) == 8 || errno != EFAULT;
	fab_sock_close(&fd);
	return can;
}

/* True if only this process can read the byte: memory of a device, memfd_secret(2). The kernel treats a process that
 * reads itself by process_vm_readv(2) like another one. Remembers the part if it is not so. */
static __attribute__((noinline)) bool is_secret(uint64_t *part, uint8_t *at)
{
	uint8_t byte;
	struct iovec to = { &byte, 1 }, from = { at, 1 };

	if (fab_sock->process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1) {
		*part = (uintptr_t) at >> PART_SHIFT;
		return false;
	}
	return errno == EFAULT && is_ours_to_read(at);
}

/* The same, from memory if that tells. */
static bool direct_is_secret(struct tcp_direct *direct, uint8_t *at)
{
	uint64_t number = (uintptr_t) at >> PART_SHIFT, *part = &direct->readable[number & (PARTS - 1)];

	return *part != number && is_secret(part, at);
}

/* True if others can read the payload, as far as its ends tell. Memory that is not valid can be offered, too: then the
 * operation fails, and not this process. */
static __attribute__((noinline)) bool direct_can_lend(struct tcp_direct *direct, const struct tcp_tx *tx)
{
	for (uint32_t i = 0; i < tx->iov_cnt; i++) {
		uint8_t *base = tx->iov[i].iov_base;
		size_t len = tx->iov[i].iov_len;

		if (len && (direct_is_secret(direct, base) || direct_is_secret(direct, base + len - 1)))
			return false;
	}
	return true;
}

void tcp_direct_offer(struct tcp_conn *conn, struct tcp_tx *tx)
{
	if (tx->flat || tx->amo || !tcp_frames[tx->hdr.op].spoilt || tx->size - tx->hdr_len < TCP_DIRECT_MIN ||
	    tcp_tx_on_device(tx))
		return;
	if (conn->direct.lends == TCP_DIRECT_UNASKED)
		direct_ask(conn);
	if (conn->direct.lends != TCP_DIRECT_ON || !direct_can_lend(conn->direct.state, tx))
		return;
	tx->flat = (uint8_t *) tx->iov;
	tx->size = tx->hdr_len + tx->iov_cnt * sizeof(*tx->iov);
	tx->hdr.flags |= TCP_PIECES(tx->iov_cnt);
	if (!(tx->hdr.flags & TCP_FLAG_WANT_ACK))
		tx->hdr.flags |= TCP_FLAG_DELIVERY;
	tx->want_ack = true;
}

bool tcp_direct_lends(const struct tcp_conn *conn)
{
	const struct fab_list *link;

	if (conn->direct.lends != TCP_DIRECT_ON)
		return false;
	fab_list_for_each(&conn->tx.ack_wait, link) {
		if (fab_container(link, struct tcp_tx, link)->hdr.flags & TCP_FLAGS_PIECES)
			return true;
	}
	return false;
}

void tcp_direct_answered(struct tcp_conn *conn)
{
	struct tcp_direct_answer answer;

	memcpy(&answer, tcp_rx_extra(conn), sizeof(answer));
	if (conn->direct.lends != TCP_DIRECT_ASKED) {
		tcp_rx_broken(conn, "an answer about direct copies without a question");
		return;
	}
	conn->direct.lends = answer.err ? TCP_DIRECT_OFF : TCP_DIRECT_ON;
	if (answer.err)
		direct_tell_off(conn, "the peer may not read this process's memory", tcp_rx_errno(answer.err));
}

/* ---- receiver ---- */

/* 0, or the FI_E* with which the question is answered. */
static int direct_try(struct tcp_conn *conn, struct tcp_direct *direct, const struct tcp_direct_ask *ask)
{
	int ret;

	if (!direct)
		return FI_ENOMEM;
	if (!conn->local || !conn->ep->shared_memory || ask->piece_size != sizeof(struct iovec))
		return FI_EOPNOTSUPP;
	direct->reader = (struct tcp_reader) {
		.at = (struct tcp_cookie *) (uintptr_t) ask->addr, .cookie = { { ask->cookie[0], ask->cookie[1] } },
	};
	ret = tcp_reader_find(&direct->reader, conn->src.fd);
	return -(ret ? ret : tcp_reader_probe(&direct->reader));
}

void tcp_direct_asked(struct tcp_conn *conn)
{
	struct tcp_direct *direct = direct_get(conn);
	struct tcp_direct_answer answer = { 0 };
	struct tcp_direct_ask ask;
	struct tcp_tx *tx;

	if (direct && direct->was_asked) {
		tcp_rx_broken(conn, "a question about direct copies for the second time");
		return;
	}
	memcpy(&ask, tcp_rx_extra(conn), sizeof(ask));
	answer.err = direct_try(conn, direct, &ask);
	if (answer.err)
		direct_tell_off(conn, "this process may not read the peer's memory (ptrace_scope, seccomp, "
				"another pid namespace)", answer.err);
	if (direct)
		direct->was_asked = true;
	if (!answer.err)
		conn->rx.special = direct->reads = true;
	tx = tcp_tx_control(conn, TCP_WIRE_DIRECT_ANSWER, &answer, sizeof(answer));
	if (tx)
		tcp_tx_queue(conn, tx);
}

const char *tcp_direct_check(const struct tcp_conn *conn, const struct tcp_hdr *hdr)
{
	uint32_t cnt = TCP_PIECE_CNT(hdr->flags);

	if (!conn->direct.state || !conn->direct.state->reads)
		return "a direct frame where the protocol allows none";
	return cnt > TCP_PIECES_MAX || !tcp_frames[hdr->op].spoilt || !(hdr->flags & TCP_FLAG_WANT_ACK) ?
	       "a direct frame of this kind" : NULL;
}

/* The payload cannot be read: err is a positive FI_E*. */
static void direct_fail(struct tcp_conn *conn, int err)
{
	char text[160];

	if (err == FI_EFAULT) {
		conn->rx.phase = TCP_RX_HDR;
		tcp_frames[conn->rx.hdr.op].spoilt(conn, err);
	} else if (err == ESRCH) {
		tcp_conn_fail(conn, FI_ECONNRESET, err, "the peer's process has ended, or has ended the connection, "
			      "in the middle of a message");
	} else {
		snprintf(text, sizeof(text), "this process may not read the peer's memory any more: %s",
			 strerror(err));
		tcp_conn_fail(conn, FI_EIO, err, text);
	}
}

/* Copy the entries of the first n bytes of iov, which has cnt entries. Returns their number. */
static uint32_t direct_part(struct iovec *to, const struct iovec *iov, uint32_t cnt, uint64_t n)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < cnt && n; i++) {
		size_t len = fab_min((uint64_t) iov[i].iov_len, n);

		if (len)
			to[used++] = (struct iovec) { iov[i].iov_base, len };
		n -= len;
	}
	return used;
}

/* n bytes of the pieces, of which there are cnt, were read. */
static void direct_advance(struct tcp_direct *direct, uint32_t cnt, uint64_t n)
{
	while (n && direct->cur < cnt) {
		struct iovec *piece = &direct->piece[direct->cur];
		size_t len = fab_min((uint64_t) piece->iov_len, n);

		piece->iov_base = (uint8_t *) piece->iov_base + len;
		piece->iov_len -= len;
		n -= len;
		direct->cur += !piece->iov_len;
	}
}

/* n bytes of payload, all of which were asked for, are staged: copy them to the device. */
static void direct_stage(struct tcp_rx_state *rx, const uint8_t *staging, uint64_t n)
{
	const uint64_t skip = rx->skip;

	rx->skip = 0;
	tcp_rx_copy(rx, staging, n);
	rx->skip = skip;
}

/* Read the next part of the payload. When that is complete, the phase is TCP_RX_PAYLOAD with nothing left; after an
 * error it is TCP_RX_HDR, or the connection has ended. */
static void direct_step(struct tcp_conn *conn)
{
	struct tcp_direct *direct = conn->direct.state;
	struct iovec to[TCP_IOV_LIMIT + 1], from[TCP_PIECES_MAX + 1];
	struct tcp_rx_state *rx = &conn->rx;
	uint32_t cnt = TCP_PIECE_CNT(rx->hdr.flags), to_cnt, from_cnt;
	uint8_t *staging = NULL;
	uint64_t n;
	int ret;

	tcp_rx_recheck_region(conn);
	n = fab_min(rx->left, (uint64_t) (rx->hmem ? FAB_STAGING_LEN : STEP_LEN));
	if (n) {
		to_cnt = direct_part(to, rx->iov + rx->iov_cur, rx->iov_cnt - rx->iov_cur, n);
		if (__builtin_expect(rx->hmem, 0)) {
			staging = fab_engine_tx_staging(conn->ep->base.engine);
			if (!staging) {
				tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory to receive for a device");
				return;
			}
			to[0] = (struct iovec) { staging, n };
			to_cnt = 1;
		}
		from_cnt = direct_part(from, direct->piece + direct->cur, cnt - direct->cur, n);
		ret = tcp_reader_read(&direct->reader, to, to_cnt, from, from_cnt, n);
		if (ret) {
			direct_fail(conn, -ret);
			return;
		}
		if (staging)
			direct_stage(rx, staging, n);
		else
			tcp_rx_advance(rx, n);
		direct_advance(direct, cnt, n);
		direct->pass_len += n;
	}
	if (rx->left)
		return;
	rx->skip = 0;
	rx->phase = TCP_RX_PAYLOAD;
}

/* Begin to read the payload. */
static void direct_pull(struct tcp_conn *conn)
{
	struct fab_engine *engine = conn->ep->base.engine;
	struct tcp_direct *direct = conn->direct.state;

	conn->rx.phase = TCP_RX_PULL;
	if (direct->pass != engine->pass_cnt)
		direct->pass_len = 0;
	direct->pass = engine->pass_cnt;
	if (direct->pass_len < PASS_LEN)
		direct_step(conn);
	if (conn->state != TCP_CONN_UP || conn->rx.phase != TCP_RX_PULL)
		return;
	conn->rx.paused |= TCP_RX_PULLING;
	fab_engine_flush_later(engine, &direct->flush);
}

size_t tcp_direct_start(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	struct tcp_direct *direct = conn->direct.state;
	struct tcp_rx_state *rx = &conn->rx;
	uint32_t cnt = TCP_PIECE_CNT(rx->hdr.flags), need = cnt * sizeof(struct iovec);
	uint64_t left = rx->hdr.size - rx->hdr.hdr_size;
	size_t n = fab_min(len, (size_t) (need - direct->have));

	memcpy((uint8_t *) direct->piece + direct->have, buf, n);
	direct->have += n;
	if (direct->have < need)
		return n;
	direct->have = direct->cur = 0;
	for (uint32_t i = 0; i < cnt; i++)
		left -= fab_min(left, (uint64_t) direct->piece[i].iov_len);
	if (left) {
		tcp_rx_broken(conn, "a direct frame with less memory than payload");
		return n;
	}
	rx->hdr_have = 0;
	rx->next = buf + n;
	rx->next_len = 0;
	tcp_frames[rx->hdr.op].start(conn);
	if (conn->state == TCP_CONN_UP && rx->phase == TCP_RX_PAYLOAD)
		direct_pull(conn);
	return n;
}

void tcp_direct_keep(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	struct tcp_direct *direct = conn->direct.state;

	if (!len)
		return;
	direct->rest = malloc(len);
	if (!direct->rest) {
		tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory for what follows a long message");
		return;
	}
	memcpy(direct->rest, buf, len);
	direct->rest_len = len;
}

/* The payload is complete: continue with what follows it. */
static void direct_continue(struct tcp_conn *conn)
{
	static const uint8_t nothing[1];	/* an offset cannot be added to NULL, not even 0 */
	struct tcp_direct *direct = conn->direct.state;
	uint8_t *rest = direct->rest;
	size_t len = direct->rest_len;

	fab_flush_cancel(&direct->flush);	/* if the last part was read before the pass */
	direct->rest = NULL;
	direct->rest_len = 0;
	conn->rx.paused &= ~TCP_RX_PULLING;
	conn->rx.more = false;
	tcp_rx_handle(conn, rest ? rest : nothing, len);
	free(rest);
	if (!tcp_conn_has_stream(conn))
		return;
	if (conn->io->pull)
		tcp_ready_again(&conn->local->pair->near);
	else
		fab_source_hot(&conn->src);
}

void tcp_direct_go_on(struct tcp_conn *conn)
{
	struct fab_engine *engine = conn->ep->base.engine;
	struct tcp_direct *direct = conn->direct.state;

	conn->used.recv_pass = engine->pass_cnt;
	direct->pass = engine->pass_cnt;
	direct->pass_len = 0;
	conn->owed.in_read = true;
	direct_step(conn);
	conn->owed.in_read = false;
	if (conn->state != TCP_CONN_UP)
		return;
	if (conn->rx.phase != TCP_RX_PULL) {
		direct_continue(conn);
		return;
	}
	fab_engine_flush_later(engine, &direct->flush);
	/* of nothing: so the sender knows that it is being read (FI_TCP_STALL_TIMEOUT) */
	if (tcp_tx_is_clear(conn))
		tcp_tx_ack(conn, 0);
}
