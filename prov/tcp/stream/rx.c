/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving: frames, their headers and their payload, without their meaning. Engine lock held.
 *
 *   socket -> staging (of the engine) -> parse: header, check, start by type -> payload -> done
 *         \-> directly into the posted buffer, if a payload is larger than the staged part
 *   the payload of a direct frame comes from the memory of the peer (direct.c)
 *
 * A header is not trusted until rx_hdr_check() has accepted it. The start functions check what only they know (keys,
 * ids, agreed lengths). A frame that violates the protocol ends the connection with one line in the log.
 */
#include "tcp/stream/direct.h"
#include <byteswap.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include "base/bits.h"
#include "base/clock.h"
#include "common/hmem/hmem.h"
#include "tcp/params/params.h"

/* If payloads of TCP_RX_BULK_LEN follow one another, no more than this is staged. */
#define RX_BULK_STAGE	4096
/* A read has as many bytes as can be handled in a peer's share of a pass: forty bytes may ask for a megabyte. Of a
 * stranger that is a turn, and no more than RX_STRANGER_MOST while others have something to be read. */
#define RX_LEAST		512
#define RX_STRANGER_MOST	4096
#define RX_SHARE_NS		15000

/* ---- frame headers ---- */

static const struct tcp_frame rx_unknown;

/* Check the flags that make the header longer, and add their bytes to *len. NULL: valid; otherwise the fault. */
static const char *rx_flags_check(const struct tcp_conn *conn, const struct tcp_hdr *hdr, const struct tcp_frame *kind,
				  uint32_t *len)
{
	if (hdr->flags & TCP_FLAG_CQ_DATA) {
		if (!kind->cq_data)
			return "CQ data in a frame of a kind without it";
		*len += sizeof(uint64_t);
	}
	if (hdr->flags & TCP_FLAG_GROUP) {
		if (!kind->group || !(conn->peer.features & TCP_EXT_GROUP))
			return "a peer group in a frame of a kind without one";
		*len += sizeof(struct tcp_group);
	}
	if (hdr->flags & TCP_FLAGS_PIECES) {
		const char *why = tcp_direct_check(conn, hdr);

		if (why)
			return why;
	}
	if ((hdr->flags & TCP_FLAG_LAYER_TAG) && hdr->op == TCP_WIRE_MSG && !conn->peer.ext &&
	    conn->ep->base.info->ep_attr->type == FI_EP_MSG)
		*len += sizeof(uint64_t);
	return NULL;
}

/* Check the base header. NULL: valid; otherwise the fault. */
static const char *rx_hdr_check(const struct tcp_conn *conn, const struct tcp_hdr *hdr)
{
	const struct tcp_frame *kind = hdr->op < TCP_WIRE_OP_END ? &tcp_frames[hdr->op] : &rx_unknown;
	uint32_t len = sizeof(*hdr);

	if (!kind->start || (kind->ext & ~conn->peer.features))
		return "frame of unknown type";
	if (kind->rma) {
		if (!hdr->rma_iov_cnt || hdr->rma_iov_cnt > TCP_RMA_IOV_MAX ||
		    (hdr->rma_iov_cnt > TCP_RMA_IOV_BASE && !(conn->peer.features & TCP_EXT_RIOV)))
			return "wrong number of RMA targets";
		len += hdr->rma_iov_cnt * sizeof(struct tcp_rma_iov);
	}
	if (__builtin_expect(hdr->flags & TCP_FLAGS_LONGER, 0)) {
		uint32_t more = 0;
		const char *why = rx_flags_check(conn, hdr, kind, &more);

		if (why)
			return why;
		len += more;
	}
	len += kind->fixed;
	if (hdr->hdr_size != len)
		return "header of wrong length";
	if (hdr->size - len > (kind->payload ? TCP_MAX_MSG_SIZE : 0))	/* a shorter one wraps around */
		return "frame of wrong length";
	return NULL;
}

/* Swap the base header of a peer with the other byte order. The parts after it are 64-bit words, and in our frames
 * pairs of 32 bits. */
static void rx_hdr_swap_base(struct tcp_hdr *hdr)
{
	hdr->flags = bswap_16(hdr->flags);
	hdr->size = bswap_64(hdr->size);
}

static void rx_hdr_swap_rest(struct tcp_rx_state *rx)
{
	const struct tcp_frame *kind = &tcp_frames[rx->hdr.op];
	uint32_t group_len = rx->hdr.flags & TCP_FLAG_GROUP ? sizeof(struct tcp_group) : 0;
	uint32_t fixed = rx->hdr.hdr_size - kind->fixed - group_len;

	for (uint32_t pos = sizeof(rx->hdr); pos + 8 <= rx->hdr.hdr_size; pos += 8) {
		uint64_t word;

		memcpy(&word, rx->hdr_buf + pos, sizeof(word));
		word = bswap_64(word);
		if (pos >= fixed && (kind->pairs >> (pos - fixed) / 8 & 1))
			word = word >> 32 | word << 32;
		memcpy(rx->hdr_buf + pos, &word, sizeof(word));
	}
}

uint32_t tcp_rx_group(const struct tcp_conn *conn)
{
	struct tcp_group group = { 0 };

	if (conn->rx.hdr.flags & TCP_FLAG_GROUP)
		memcpy(&group, conn->rx.hdr_buf + conn->rx.hdr.hdr_size - sizeof(group), sizeof(group));
	return group.id <= TCP_GROUP_MAX ? group.id : UINT32_MAX;
}

const void *tcp_rx_extra(const struct tcp_conn *conn)
{
	size_t data_len = conn->rx.hdr.flags & TCP_FLAG_CQ_DATA ? sizeof(uint64_t) : 0;

	return conn->rx.hdr_buf + sizeof(struct tcp_hdr) + data_len;
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
	tcp_conn_fail(conn, FI_EIO, EPROTO, text);
}

/* ---- payload ---- */

void tcp_rx_aim(struct tcp_rx_state *rx, const struct iovec *iov, uint32_t cnt, uint64_t len, uint8_t hmem)
{
	rx->iov_cnt = rx->iov_cur = 0;
	rx->hmem = hmem;
	rx->spoilt = false;
	for (uint32_t i = 0; i < cnt && len; i++) {
		size_t n = iov[i].iov_len < len ? iov[i].iov_len : len;

		if (!n)
			continue;
		rx->iov[rx->iov_cnt++] = (struct iovec) { iov[i].iov_base, n };
		len -= n;
	}
}

void tcp_rx_expect(struct tcp_conn *conn, uint64_t left, uint64_t skip, void (*done)(struct tcp_conn *conn))
{
	conn->rx.left = left;
	conn->rx.skip = skip;
	conn->rx.done = done;
	conn->rx.phase = TCP_RX_PAYLOAD;
	/* all that goes to a device is staged */
	conn->rx.bulk = left >= TCP_RX_BULK_LEN && !conn->rx.hmem;
}

void tcp_rx_advance(struct tcp_rx_state *rx, size_t n)
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

__attribute__((noinline)) void tcp_rx_to_device(struct tcp_rx_state *rx, const uint8_t *buf, size_t n)
{
	if (!rx->spoilt && fab_hmem_to(rx->hmem, rx->iov + rx->iov_cur, 0, buf, n))
		rx->spoilt = true;
}

size_t tcp_rx_copy(struct tcp_rx_state *rx, const uint8_t *buf, size_t len)
{
	size_t used = 0;

	while (rx->left && used < len) {
		struct iovec *iov = &rx->iov[rx->iov_cur];
		size_t n = iov->iov_len < len - used ? iov->iov_len : len - used;

		if (__builtin_expect(!rx->hmem, 1))
			memcpy(iov->iov_base, buf + used, n);
		else
			tcp_rx_to_device(rx, buf + used, n);
		tcp_rx_advance(rx, n);
		used += n;
	}
	if (!rx->left && rx->skip) {
		size_t n = rx->skip < len - used ? rx->skip : len - used;

		rx->skip -= n;
		used += n;
	}
	return used;
}

/* Add bytes to the header, until it has `need` bytes. Returns how many were added. */
static inline size_t rx_hdr_add(struct tcp_rx_state *rx, const uint8_t *buf, size_t len, size_t need)
{
	size_t n = need - rx->hdr_have < len ? need - rx->hdr_have : len;
	uint8_t *to = rx->hdr_buf + rx->hdr_have;

	/* the tag, where it is there at once: a length that the compiler knows */
	if (n == sizeof(uint64_t))
		memcpy(to, buf, sizeof(uint64_t));
	else
		memcpy(to, buf, n);
	rx->hdr_have += n;
	return n;
}

/* Complete the header, and start the frame. Returns the number of bytes used, of the header and of payload that the
 * start has taken. */
static size_t rx_header(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	struct tcp_rx_state *rx = &conn->rx;
	size_t used = 0;
	const char *wrong;

	if (rx->hdr_have < sizeof(rx->hdr)) {
		if (__builtin_expect(!rx->hdr_have && len >= sizeof(rx->hdr), 1)) {
			memcpy(&rx->hdr, buf, sizeof(rx->hdr));		/* mostly all of it is there */
			used = rx->hdr_have = sizeof(rx->hdr);
		} else {
			used = rx_hdr_add(rx, buf, len, sizeof(rx->hdr));
		}
		if (rx->hdr_have < sizeof(rx->hdr))
			return used;
		if (__builtin_expect(conn->peer.swap, 0))
			rx_hdr_swap_base(&rx->hdr);
		wrong = rx_hdr_check(conn, &rx->hdr);
		if (wrong) {
			tcp_rx_broken(conn, wrong);
			return used;
		}
	}
	if (rx->hdr_have < rx->hdr.hdr_size)
		used += rx_hdr_add(rx, buf + used, len - used, rx->hdr.hdr_size);
	if (rx->hdr_have < rx->hdr.hdr_size)
		return used;
	if (__builtin_expect(rx->special, 0)) {
		if (rx->hdr.flags & TCP_FLAGS_PIECES)
			return used + tcp_direct_start(conn, buf + used, len - used);
		if (conn->peer.swap)
			rx_hdr_swap_rest(rx);
	}
	rx->hdr_have = 0;
	rx->next = buf + used;
	rx->next_len = len - used;
	tcp_frames[rx->hdr.op].start(conn);
	return rx->next - buf;
}

/* True if the rest of a read still belongs to this stream. */
static bool rx_goes_on(struct tcp_conn *conn, size_t len)
{
	if (conn->state != TCP_CONN_PARKING || !len)
		return false;
	tcp_conn_wake(conn);
	return conn->state == TCP_CONN_UP;
}

/* Handle the first frame in buf, if all of it is there, and its type has a way for that. Returns its length; 0: nothing
 * was done. rx_header() checks the same, with an error for each fault. */
static inline size_t rx_whole(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	struct tcp_hdr *hdr = &conn->rx.hdr;
	const struct tcp_frame *kind;
	uint64_t size;

	memcpy(hdr, buf, sizeof(*hdr));
	size = hdr->size;
	kind = hdr->op < TCP_WIRE_OP_END ? &tcp_frames[hdr->op] : &rx_unknown;
	if (!kind->whole || (hdr->flags & TCP_FLAGS_LONGER) || hdr->hdr_size != kind->whole_hdr ||
	    size < hdr->hdr_size || size > len || conn->peer.swap ||
	    !kind->whole(conn, buf + sizeof(*hdr), size - hdr->hdr_size))
		return 0;
	conn->rx.bulk = size >= TCP_RX_BULK_LEN;
	return size;
}

/* Handle the frames in buf, the first of which has begun, or goes another way than rx_whole(). */
static __attribute__((noinline)) void rx_parse_parts(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	struct tcp_rx_state *rx = &conn->rx;

	for (;;) {
		if (rx->phase == TCP_RX_PAYLOAD) {
			size_t used = tcp_rx_copy(rx, buf, len);

			buf += used;
			len -= used;
			if (rx->left || rx->skip)
				return;
			rx->phase = TCP_RX_HDR;
			rx->done(conn);
		} else if (__builtin_expect(rx->phase != TCP_RX_HDR, 0)) {
			enum tcp_rx_phase phase = rx->phase;

			if (phase == TCP_RX_PULL)
				tcp_direct_keep(conn, buf, len);
			else
				tcp_above.stalled(conn, buf, len);
			if (rx->phase == phase)
				return;
		} else {
			size_t used;

			if (!len)
				return;
			used = rx_header(conn, buf, len);
			buf += used;
			len -= used;
		}
		if (conn->state != TCP_CONN_UP && !rx_goes_on(conn, len))
			return;
	}
}

/* Handle the frames in buf. */
static inline void rx_parse(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	const struct tcp_rx_state *rx = &conn->rx;

	while (rx->phase == TCP_RX_HDR && !rx->hdr_have && len >= sizeof(rx->hdr) && conn->state == TCP_CONN_UP) {
		size_t used = rx_whole(conn, buf, len);

		if (__builtin_expect(!used, 0))
			break;
		len -= used;
		if (!len)
			return;
		buf += used;
	}
	if (conn->state == TCP_CONN_UP || rx_goes_on(conn, len))
		rx_parse_parts(conn, buf, len);
}

void tcp_rx_recheck_region(struct tcp_conn *conn)
{
	struct tcp_rx_state *rx = &conn->rx;
	uint64_t left = rx->left, len = rx->hdr.size - rx->hdr.hdr_size;

	if (rx->hdr.op != TCP_WIRE_WRITE || !rx->left || rx->mr_gen == conn->ep->base.domain->mr_map.gen)
		return;
	rx->refuse = tcp_above.reaim(conn);
	if (rx->refuse) {
		rx->skip += left;
		rx->left = 0;
		return;
	}
	rx->left = len;
	tcp_rx_advance(rx, len - left);
}

/* The number of bytes to read into the staging buffer so that none is of another frame, after the payload that has its
 * own place. */
static __attribute__((noinline, cold)) size_t rx_rest_len(const struct tcp_rx_state *rx)
{
	if (rx->phase == TCP_RX_PAYLOAD)
		return fab_min(rx->skip + (rx->hmem ? rx->left : 0), (uint64_t) FAB_STAGING_LEN);
	return (rx->hdr_have < sizeof(rx->hdr) ? sizeof(rx->hdr) : rx->hdr.hdr_size) - rx->hdr_have;
}

static inline size_t rx_stage_len(const struct tcp_rx_state *rx)
{
	if (__builtin_expect(!rx->bulk, 1))
		return rx->stage;
	return __builtin_expect(rx->bulk == TCP_RX_REST, 0) ? rx_rest_len(rx) : RX_BULK_STAGE;
}

/* Read once, between frames: all of it to staging. Returns the number of bytes, or -errno. */
static inline ssize_t rx_read_frames(struct tcp_conn *conn, uint8_t *staging)
{
	size_t stage = rx_stage_len(&conn->rx);
	ssize_t n = conn->io->recv(conn, staging, stage);

	conn->rx.more = n == (ssize_t) stage;
	return n;
}

/* Read once, in a payload: its rest to its place, and the bytes after it to staging. Returns the number of bytes, or
 * -errno; *staged is the number of bytes in staging. */
static __attribute__((noinline)) ssize_t rx_read_payload(struct tcp_conn *conn, uint8_t *staging, size_t *staged)
{
	struct tcp_rx_state *rx = &conn->rx;
	size_t stage = rx_stage_len(rx);
	struct iovec iov[TCP_IOV_LIMIT + 1];
	uint32_t cnt = rx->iov_cnt - rx->iov_cur;
	ssize_t n;

	*staged = 0;
	memcpy(iov, rx->iov + rx->iov_cur, cnt * sizeof(*iov));
	iov[cnt] = (struct iovec) { staging, stage };
	n = conn->io->recvv(conn, iov, cnt + 1);
	if (n > 0) {
		size_t direct = (uint64_t) n < rx->left ? (size_t) n : rx->left;

		tcp_rx_advance(rx, direct);
		*staged = n - direct;
	}
	rx->more = n > 0 && *staged == stage;
	return n;
}

/* Read once. Results as of rx_read_payload(). */
static inline ssize_t rx_read(struct tcp_conn *conn, uint8_t *staging, size_t *staged)
{
	if (__builtin_expect(conn->rx.phase == TCP_RX_PAYLOAD, 0)) {
		tcp_rx_recheck_region(conn);
		if (conn->rx.left && !conn->rx.hmem)
			return rx_read_payload(conn, staging, staged);
	}
	*staged = rx_read_frames(conn, staging);	/* where it is used, it is positive */
	return (ssize_t) *staged;
}

static bool rx_mid_frame(const struct tcp_rx_state *rx)
{
	return rx->phase != TCP_RX_HDR || rx->hdr_have;
}

__attribute__((noinline, cold)) void tcp_rx_end(struct tcp_conn *conn, int err)
{
	if (conn->state == TCP_CONN_PARKING) {
		tcp_conn_park(conn);
		return;
	}
	if (err)
		tcp_conn_fail(conn, err, err, "receive failed: the peer or the network is down");
	else if (rx_mid_frame(&conn->rx))
		tcp_conn_fail(conn, FI_ECONNRESET, ECONNRESET, "the peer closed in the middle of a message");
	else
		tcp_conn_fail(conn, 0, FI_ECONNRESET, "the peer closed it");
}

/* True if acknowledgements may wait for the next read, which will bring more. Long frames are read one by one; frames
 * up to the length of a staging buffer share an acknowledgement. */
static bool rx_ack_waits(const struct tcp_conn *conn)
{
	return conn->rx.more && conn->owed.ack_len < FAB_STAGING_LEN && !conn->rx.paused &&
	       fab_engine_may_hold(conn->ep->base.engine);
}

/* Send acknowledgements, or leave them to the next read, or to conn->tx.flush if a thread sleeps before that. */
static void rx_tell_acks(struct tcp_conn *conn, bool next_read)
{
	if (conn->state != TCP_CONN_UP || !conn->owed.ack_cnt)
		return;
	if (next_read && rx_ack_waits(conn))
		fab_engine_flush_later(conn->ep->base.engine, &conn->tx.flush);
	else
		tcp_tx_ack(conn, 0);
}

/* At the start of the pass after the last read, this pass may read again. If it has not, since the stream is not hot
 * and has no more, later passes will not either. */
void tcp_rx_tell_flush(struct tcp_conn *conn)
{
	const struct fab_engine *engine = conn->ep->base.engine;

	rx_tell_acks(conn, engine->in_pass && engine->pass_cnt - conn->used.recv_pass <= 1);
}

void tcp_rx_pause(struct tcp_conn *conn, bool pause)
{
	const uint32_t off = pause ? EPOLLIN : EPOLLRDHUP, on = pause ? EPOLLRDHUP : EPOLLIN;

	if ((conn->rx.paused & TCP_RX_PAUSED) == (pause ? TCP_RX_PAUSED : 0) || conn->state != TCP_CONN_UP)
		return;
	conn->rx.paused ^= TCP_RX_PAUSED;
	if (conn->io->pull) {
		if (!pause)
			tcp_ready_again(&conn->local->pair->near);
		return;
	}
	fab_source_mod(&conn->src, (conn->src.events & ~off) | on);
}

/* True if a read has left something to be sent. */
static inline bool rx_owes(const struct tcp_conn *conn)
{
	return conn->owed.ack_cnt || conn->owed.answers || !fab_list_empty(&conn->tx.held) ||
	       (conn->owed.credit >= tcp_params.credit / 2 && !conn->owed.credit_due);
}

void tcp_rx_tell(struct tcp_conn *conn)
{
	if (conn->owed.in_read)
		return;
	rx_tell_acks(conn, true);
	if (conn->state == TCP_CONN_UP && conn->owed.credit >= tcp_params.credit / 2 && !conn->owed.credit_due) {
		/* sent by the next pass, or with the application's next send */
		conn->owed.credit_due = true;
		fab_engine_flush_later(conn->ep->base.engine, &conn->tx.flush);
	}
	if (conn->owed.answers || !fab_list_empty(&conn->tx.held)) {
		conn->owed.answers = false;
		tcp_tx_flush(conn);
	}
}

void tcp_rx_handle(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	conn->owed.in_read = true;
	rx_parse(conn, buf, len);
	conn->owed.in_read = false;
	if (rx_owes(conn))
		tcp_rx_tell(conn);
}

/* True if the next frame of this peer must not be read, because too much is kept for strangers. */
static inline bool rx_stranger_waits(const struct tcp_conn *conn)
{
	return tcp_account_is_full(&conn->ep->rx->account, &conn->holding) && conn->state == TCP_CONN_UP;
}

/* True for a stranger, and for a peer that reads no answers. */
static inline bool rx_has_turns(const struct tcp_conn *conn)
{
	return __builtin_expect(conn->src.outsider, 0);
}

/* Do not read the next frame. False: the current one has to be read first, and the next read takes its rest only. */
static __attribute__((noinline, cold)) bool rx_hold(struct tcp_conn *conn)
{
	if (rx_mid_frame(&conn->rx)) {
		conn->rx.bulk = TCP_RX_REST;
		return false;
	}
	tcp_above.hold(conn);
	tcp_rx_tell(conn);
	return true;
}

void tcp_rx_begin_turn(struct tcp_conn *conn)
{
	if (fab_engine_rations(conn->ep->base.engine))
		conn->rx.stage = fab_min(conn->rx.stage, (uint32_t) RX_STRANGER_MOST);
}

/* Before a read in a turn. True: it is not to be read. */
static __attribute__((noinline)) bool rx_turn_must_wait(struct tcp_conn *conn)
{
	tcp_rx_begin_turn(conn);
	return rx_stranger_waits(conn) && rx_hold(conn);
}

void tcp_rx_learn_cost(struct tcp_conn *conn)
{
	uint32_t stage = conn->rx.stage;

	conn->rx.stage = fab_engine_turn_is_over(conn->ep->base.engine) ?
			 fab_max(stage / 4, (uint32_t) RX_LEAST) :
			 fab_min(2 * stage, (uint32_t) FAB_STAGING_LEN);
}

static inline bool rx_must_wait(struct tcp_conn *conn)
{
	if (!tcp_conn_has_stream(conn) || conn->rx.paused)
		return true;
	return rx_has_turns(conn) && rx_turn_must_wait(conn);
}

static __attribute__((noinline, cold)) void rx_no_staging(struct tcp_conn *conn)
{
	tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory to receive into");
}

/* A read in state PARKING has returned n. The end of the stream is expected; data means that the peer has continued.
 * True if either came. */
static bool rx_parking_has_read(struct tcp_conn *conn, const uint8_t *staging, ssize_t n)
{
	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0) {
		tcp_conn_park(conn);
	} else {
		tcp_conn_wake(conn);
		if (conn->state == TCP_CONN_UP)
			tcp_rx_handle(conn, staging, n);
	}
	return true;
}

static __attribute__((noinline, cold)) bool rx_poll_parking(struct tcp_conn *conn)
{
	uint8_t *staging;

	if (rx_must_wait(conn))
		return false;
	staging = fab_engine_staging(conn->src.engine);
	if (!staging) {
		rx_no_staging(conn);
		return true;
	}
	return rx_parking_has_read(conn, staging, conn->io->recv(conn, staging, FAB_STAGING_LEN));
}

/* Before a record is handled, unless the connection is simply up, and between frames. False: it is not to be taken. */
static __attribute__((noinline, cold)) bool rx_begin_record(struct tcp_conn *conn)
{
	if (rx_must_wait(conn))
		return false;
	if (conn->state == TCP_CONN_PARKING)
		tcp_conn_wake(conn);
	if (conn->state == TCP_CONN_UP && conn->rx.phase == TCP_RX_PAYLOAD)
		tcp_rx_recheck_region(conn);
	return true;
}

bool tcp_rx_record(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	if (__builtin_expect(conn->state != TCP_CONN_UP || conn->rx.paused || conn->rx.phase != TCP_RX_HDR ||
			     conn->holding.class == TCP_STRANGER, 0)) {
		if (!rx_begin_record(conn))
			return false;
		if (conn->state != TCP_CONN_UP)
			return true;
	}
	conn->used.recv_pass = conn->ep->base.engine->pass_cnt;
	conn->owed.in_read = true;
	rx_parse(conn, buf, len);
	return true;
}

void tcp_rx_records_end(struct tcp_conn *conn)
{
	conn->owed.in_read = false;
	if (rx_owes(conn))
		tcp_rx_tell(conn);
}

/* True if others have data, too: sources that are read in each pass, or that epoll has reported last, and rings. */
static bool rx_has_company(const struct tcp_conn *conn)
{
	const struct fab_engine *engine = conn->ep->base.engine;
	const struct tcp_near *near = conn->io->pull ? &conn->local->pair->near : NULL;

	return engine->sources.hot_cnt > !near || engine->epoll.cnt > 1 || tcp_ready_has_others(engine, near);
}

bool tcp_rx_learn_share(struct tcp_conn *conn, uint64_t took)
{
	uint32_t *stage = &conn->rx.stage;

	if (took > RX_SHARE_NS && rx_has_company(conn))
		*stage = fab_max((uint32_t) (*stage * RX_SHARE_NS / took), (uint32_t) RX_LEAST);
	else if (2 * took < RX_SHARE_NS || !rx_has_company(conn))
		*stage = fab_min(2 * *stage, (uint32_t) FAB_STAGING_LEN);
	return 2 * took < RX_SHARE_NS;
}

/* Handle what a read has brought that has filled its room. There is more, so the next reads become as long as takes a
 * share of a pass, and if nobody else has data, as long as can be. */
static __attribute__((noinline)) void rx_handle_measured(struct tcp_conn *conn, const uint8_t *staging, size_t staged)
{
	uint64_t begun = fab_now_ns();

	tcp_rx_handle(conn, staging, staged);
	if (!rx_has_turns(conn))	/* its turns are measured */
		tcp_rx_learn_share(conn, fab_now_ns() - begun);
}

/* A read in state UP has returned n, and left `staged` bytes in staging. True if anything came. */
static inline bool rx_has_read(struct tcp_conn *conn, const uint8_t *staging, ssize_t n, size_t staged)
{
	if (n == -EAGAIN || n == -EINTR) {
		if (conn->owed.ack_cnt)
			tcp_rx_tell(conn);
		return false;
	}
	if (n <= 0) {
		tcp_rx_end(conn, -n);
		return true;
	}
	conn->owed.ack_len = (conn->owed.ack_cnt ? conn->owed.ack_len : 0) + n;
	conn->used.recv_pass = conn->src.engine->pass_cnt;
	if (__builtin_expect(conn->rx.more, 0))
		rx_handle_measured(conn, staging, staged);
	else
		tcp_rx_handle(conn, staging, staged);
	if (conn->state == TCP_CONN_UP)
		fab_source_hot(&conn->src);
	return true;
}

bool tcp_rx_poll_socket(struct fab_source *src)
{
	struct tcp_conn *conn = fab_container(src, struct tcp_conn, src);
	uint8_t *staging;
	size_t staged;
	ssize_t n;

	if (__builtin_expect(conn->state != TCP_CONN_UP, 0))
		return conn->state == TCP_CONN_PARKING && rx_poll_parking(conn);
	if (rx_must_wait(conn))
		return false;
	staging = fab_engine_staging(src->engine);
	if (!staging) {
		rx_no_staging(conn);
		return true;
	}
	n = rx_read(conn, staging, &staged);
	return rx_has_read(conn, staging, n, staged);
}

size_t tcp_rx_glance_len(const struct fab_source *src)
{
	const struct tcp_conn *conn = fab_container(src, struct tcp_conn, src);

	if (conn->state != TCP_CONN_UP || conn->rx.phase != TCP_RX_HDR || conn->rx.paused || conn->owed.ack_cnt ||
	    rx_stranger_waits(conn))
		return 0;
	return rx_stage_len(&conn->rx);
}

bool tcp_rx_glanced(struct fab_source *src, ssize_t n)
{
	struct tcp_conn *conn = fab_container(src, struct tcp_conn, src);

	if (__builtin_expect(conn->state == TCP_CONN_PARKING, 0))	/* meanwhile */
		return rx_parking_has_read(conn, src->engine->staging, n);
	conn->rx.more = n == (ssize_t) rx_stage_len(&conn->rx);
	return rx_has_read(conn, src->engine->staging, n, n);
}

bool tcp_rx_poll(struct fab_source *src)
{
	struct tcp_conn *conn = fab_container(src, struct tcp_conn, src);

	if (conn->rx.paused & TCP_RX_PULLING) {
		tcp_direct_go_on(conn);
		return true;
	}
	return conn->io->pull ? conn->io->pull(conn) : tcp_rx_poll_socket(src);
}

/* ---- control frames ---- */

void tcp_rx_ack(struct tcp_conn *conn)
{
	struct tcp_ack ack = { .cnt = 1 };

	if (conn->rx.hdr.op == TCP_WIRE_ACK)
		memcpy(&ack, tcp_rx_extra(conn), sizeof(ack));
	else if (conn->rx.hdr.size != sizeof(struct tcp_hdr)) {
		tcp_rx_broken(conn, "acknowledgement with a payload");
		return;
	}
	if (!tcp_tx_acked(conn, ack.cnt, tcp_rx_errno(ack.err)))
		tcp_rx_broken(conn, "acknowledgement of an operation that was not sent");
}

void tcp_rx_credit(struct tcp_conn *conn)
{
	struct tcp_credit credit;

	memcpy(&credit, tcp_rx_extra(conn), sizeof(credit));
	if (credit.len > (uint64_t) conn->peer.credit + TCP_SHORT_DEBT ||
	    conn->tx.credit + (int64_t) credit.len > (int64_t) conn->peer.credit) {
		tcp_rx_broken(conn, "credit beyond the announced limit");
		return;
	}
	conn->tx.credit += credit.len;
}
