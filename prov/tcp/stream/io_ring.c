/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connection's bytes over rings in shared memory (tcp/local/pair.h). The Unix socket carries bytes that wake a
 * sleeper, and the end of the stream. Engine lock held.
 */
#include <errno.h>
#include <sys/epoll.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "tcp/capture/capture.h"
#include "tcp/params/params.h"
#include "tcp/stream/io_capture.h"
#include "tcp/stream/io_ring.h"
#include "tcp/stream/stream.h"

#define RECORDS_MAX	64		/* records of one look */
#define RECORDS_TURN	4		/* ... in a turn, while others have data */
#define SPARED		16		/* full looks that follow one that took little: they are not measured */
#define WAKE_LEN	64		/* bytes that are read from the socket at a time */

static struct tcp_pair *ring_pair(const struct tcp_conn *conn)
{
	return conn->local->pair;
}

/* ---- writing ---- */

/* The same as ring_tell(), if the peer is to be told, or woken. */
static __attribute__((noinline)) ssize_t ring_tell_rare(struct tcp_conn *conn, const struct tcp_pair *pair, ssize_t n)
{
	uint32_t sleep = tcp_ready_tell(pair->peer, pair->peer_bit);

	/* if the socket is full, the peer has enough to wake for */
	if (sleep && (fab_sock->send(conn->src.fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 || errno == EAGAIN))
		tcp_ready_woken(pair->peer, sleep);
	return n;
}

/* There is something for the peer to look at: n bytes, or room. Returns n. */
static inline ssize_t ring_tell(struct tcp_conn *conn, const struct tcp_pair *pair, ssize_t n)
{
	return tcp_ready_knows(pair->peer, pair->peer_bit) ? n : ring_tell_rare(conn, pair, n);
}

static ssize_t ring_put(struct tcp_conn *conn, const struct iovec *iov, size_t cnt, size_t len)
{
	ssize_t n;

	if (ring_pair(conn)->ended)
		return -EPIPE;
	n = tcp_ring_put(&ring_pair(conn)->out, iov, cnt, len);
	return n > 0 ? ring_tell(conn, ring_pair(conn), n) : n;
}

static ssize_t ring_send(struct tcp_conn *conn, const void *buf, size_t len)
{
	const struct iovec iov = { (void *) buf, len };

	if (__builtin_expect(ring_pair(conn)->ended || !tcp_ring_put_whole(&ring_pair(conn)->out, buf, len), 0))
		return ring_put(conn, &iov, 1, len);
	return ring_tell(conn, ring_pair(conn), len);
}

/* Where the next record goes. */
static uint8_t *ring_place(struct tcp_conn *conn, size_t len)
{
	const struct tcp_pair *pair = ring_pair(conn);

	return pair->ended ? NULL : tcp_ring_place(&pair->out, len);
}

/* The same, or if there is no room, anywhere. */
static uint8_t *ring_room(struct tcp_conn *conn, size_t len)
{
	uint8_t *place = ring_place(conn, len);

	return __builtin_expect(place != NULL, 1) ? place : fab_engine_tx_staging(conn->ep->base.engine);
}

static ssize_t ring_leave(struct tcp_conn *conn, const void *frame, size_t len)
{
	struct tcp_pair *pair = ring_pair(conn);

	if (__builtin_expect(frame != tcp_ring_next(&pair->out), 0))
		return ring_send(conn, frame, len);
	tcp_ring_publish(&pair->out, len, tcp_ring_size(len));
	return ring_tell(conn, pair, len);
}

/* The same as ring_put() for a header and a payload of some KiB, which mostly is one record. */
static ssize_t ring_put_frame(struct tcp_conn *conn, const struct iovec iov[2])
{
	const size_t len = iov[0].iov_len + iov[1].iov_len;
	struct tcp_pair *pair = ring_pair(conn);

	if (pair->ended ||
	    !tcp_ring_put_frame(&pair->out, iov[0].iov_base, iov[0].iov_len, iov[1].iov_base, iov[1].iov_len))
		return ring_put(conn, iov, 2, len);
	ring_tell(conn, pair, len);
	tcp_ring_own_next(&pair->out, len);
	return len;
}

static ssize_t ring_sendv(struct tcp_conn *conn, const struct iovec *iov, size_t cnt)
{
	size_t len = 0;

	if (cnt == 2 && iov[0].iov_len <= TCP_HDR_MAX && iov[1].iov_len <= TCP_RING_FRAME_MAX)
		return ring_put_frame(conn, iov);
	for (size_t i = 0; i < cnt; i++)
		len += iov[i].iov_len;
	return ring_put(conn, iov, cnt, len);
}

static bool ring_want_room(struct tcp_conn *conn)
{
	tcp_ready_attend(&ring_pair(conn)->near);
	return tcp_ring_want_room(&ring_pair(conn)->out);
}

static bool ring_has_input(const struct tcp_conn *conn)
{
	struct tcp_ring_reader in = ring_pair(conn)->in;
	uint32_t len;

	return tcp_ring_peek(&in, &len) || (len && (tcp_ring_peek_open(&in, &len) || len));
}

static uint64_t ring_unread(const struct tcp_conn *conn)
{
	return tcp_ring_unread(&ring_pair(conn)->out);
}

/* ---- reading ---- */

static void ring_broken(struct tcp_conn *conn)
{
	tcp_conn_fail(conn, FI_EIO, EPROTO, "the peer has broken the ring in shared memory");
}

/* See to a ring that was full, or whose peer has closed; `found`: there were records. */
static __attribute__((noinline)) bool ring_attend(struct tcp_conn *conn, struct tcp_pair *pair, bool found)
{
	if (conn->tx.blocked && !pair->ended && ring_want_room(conn))
		tcp_tx_unblock(conn);
	if (found || !tcp_conn_has_stream(conn) || !ring_pair(conn)->ended || conn->rx.paused)
		return found;
	tcp_rx_end(conn, ring_pair(conn)->err);
	return true;
}

/* True if the stream of these rings has ended. */
static inline bool ring_is_gone(const struct tcp_conn *conn, const struct tcp_pair *pair)
{
	return __builtin_expect(conn->state != TCP_CONN_UP, 0) &&
	       (!tcp_conn_has_stream(conn) || ring_pair(conn) != pair);
}

static bool ring_near_look(struct tcp_near *near), ring_near_look_measured(struct tcp_near *near);

/* The peer had as much as a look takes, or more than the ring has room for: measure the next look. */
static __attribute__((noinline, cold)) void ring_note_full(struct tcp_pair *pair)
{
	if (pair->near.look != ring_near_look)
		return;
	if (pair->spared)
		pair->spared--;
	else
		pair->near.look = ring_near_look_measured;
}

/* Records were taken, if any were found. tell: the peer waits for room; broken: what comes next is no record. */
static inline __attribute__((always_inline)) bool ring_taken(struct tcp_conn *conn, struct tcp_pair *pair, bool found,
							     bool tell, bool broken)
{
	if (found) {
		tcp_ring_tell_handled(&pair->in);
		tcp_rx_records_end(conn);
	}
	if (__builtin_expect(tell, 0) && tcp_conn_has_stream(conn)) {
		ring_note_full(pair);
		ring_tell(conn, pair, 0);
	}
	if (__builtin_expect(broken, 0) && tcp_conn_has_stream(conn)) {
		ring_broken(conn);
		return true;
	}
	return found;
}

/* Handle what is in the ring, RECORDS_MAX records at most, by tcp_rx_record() or tcp_io_capture_record(). True if there
 * was anything. */
static inline __attribute__((always_inline)) bool ring_take_records(struct tcp_conn *conn, struct tcp_pair *pair,
								    tcp_record_fn *record)
{
	const uint8_t *buf;
	int left = RECORDS_MAX;
	bool tell = false;
	uint32_t len;

	while (((buf = tcp_ring_peek(&pair->in, &len)) ||
		(__builtin_expect(len, 0) && (buf = tcp_ring_peek_open(&pair->in, &len)))) &&
	       record(conn, buf, len)) {
		if (ring_is_gone(conn, pair)) {
			conn->owed.in_read = false;
			return true;
		}
		tell |= tcp_ring_take(&pair->in, len);
		if (!--left) {
			ring_note_full(pair);
			break;
		}
	}
	return ring_taken(conn, pair, left < RECORDS_MAX, tell, !buf && len);
}

/* The same of a peer that has a share of a pass, or a turn: no more than conn->rx.stage bytes and `max` records, so the
 * last one may be taken in parts. */
static __attribute__((noinline)) bool ring_take_share(struct tcp_conn *conn, struct tcp_pair *pair, int max)
{
	uint32_t room = conn->rx.stage, len = 0;
	const uint8_t *buf = NULL;
	bool tell = false, found = false;

	while (room && max-- &&
	       ((buf = tcp_ring_peek(&pair->in, &len)) || (len && (buf = tcp_ring_peek_open(&pair->in, &len))))) {
		uint32_t n = len > pair->part ? fab_min(len - pair->part, room) : 0;

		if (!n)
			buf = NULL;		/* it has become shorter than it was */
		if (!n || !tcp_rx_record(conn, buf + pair->part, n))
			break;
		if (ring_is_gone(conn, pair)) {
			conn->owed.in_read = false;
			return true;
		}
		found = true;
		room -= n;
		pair->part += n;
		if (pair->part == len) {
			tell |= tcp_ring_take(&pair->in, len);
			pair->part = 0;
		}
	}
	return ring_taken(conn, pair, found, tell, !buf && len);
}

/* A look has found something, or not. */
static inline __attribute__((always_inline)) bool ring_looked(struct tcp_conn *conn, struct tcp_pair *pair, bool found)
{
	if (ring_is_gone(conn, pair))
		return found;
	/* the next looks may leave out this one until its next record comes */
	pair->near.bell = tcp_ring_word(pair->in.room, pair->in.pos);
	pair->near.attend = conn->tx.blocked || pair->ended;
	if (__builtin_expect(pair->near.attend, 0))
		return ring_attend(conn, pair, found);
	return found;
}

static bool ring_near_look(struct tcp_near *near)
{
	struct tcp_pair *pair = fab_container(near, struct tcp_pair, near);
	struct tcp_conn *conn = pair->conn;

	return ring_looked(conn, pair, ring_take_records(conn, pair, tcp_rx_record));
}

static bool ring_near_look_captured(struct tcp_near *near)
{
	struct tcp_pair *pair = fab_container(near, struct tcp_pair, near);
	struct tcp_conn *conn = pair->conn;

	return ring_looked(conn, pair, ring_take_records(conn, pair, tcp_io_capture_record));
}

static bool ring_look_share(struct tcp_conn *conn, struct tcp_pair *pair, int max)
{
	return ring_looked(conn, pair, ring_take_share(conn, pair, max));
}

/* The same for a peer that has much: it has a share of a pass, while others have data. */
static bool ring_near_look_measured(struct tcp_near *near)
{
	struct tcp_pair *pair = fab_container(near, struct tcp_pair, near);
	struct tcp_conn *conn = pair->conn;
	uint64_t begun = fab_now_ns();
	bool found = ring_look_share(conn, pair, RECORDS_MAX);

	if (!found || ring_is_gone(conn, pair) || near->look != ring_near_look_measured)
		return found;
	if (tcp_rx_learn_share(conn, fab_now_ns() - begun) && conn->rx.stage == FAB_STAGING_LEN && !pair->part) {
		near->look = ring_near_look;
		pair->spared = SPARED;
	}
	return found;
}

/* The same for a stranger, or a peer that reads no answers: what is in its ring waits for its turn (common/engine). */
static bool ring_near_look_outsider(struct tcp_near *near)
{
	struct tcp_pair *pair = fab_container(near, struct tcp_pair, near);
	struct tcp_conn *conn = pair->conn;

	if (!conn->src.engine)
		return ring_look_share(conn, pair, RECORDS_MAX);
	if (near->attend || atomic_load_explicit(near->bell, memory_order_relaxed))
		fab_source_ask_turn(&conn->src);
	return false;
}

/* Its turn. */
static __attribute__((noinline, cold)) bool ring_turn(struct tcp_conn *conn, struct tcp_pair *pair)
{
	int max = fab_engine_rations(conn->ep->base.engine) ? RECORDS_TURN : RECORDS_MAX;
	bool found;

	tcp_rx_begin_turn(conn);
	found = ring_look_share(conn, pair, max);
	if (found && !ring_is_gone(conn, pair))
		tcp_ready_again(&pair->near);
	return found;
}

/* The same after the peer has closed, and cannot have left more than a ring has room for. What goes on after that are
 * records that lead round the ring for ever. */
static bool ring_near_look_last(struct tcp_near *near)
{
	struct tcp_pair *pair = fab_container(near, struct tcp_pair, near);
	struct tcp_conn *conn = pair->conn;
	bool captured = conn->io != &tcp_io_ring;
	bool found = captured ? ring_near_look_captured(near) : ring_look_share(conn, pair, RECORDS_MAX);

	if (found && tcp_conn_has_stream(conn) && pair->in.taken - pair->taken_at_end > TCP_RING_ROOM)
		ring_broken(conn);
	return found;
}

static void ring_choose_look(const struct tcp_conn *conn, struct tcp_pair *pair)
{
	pair->near.look = pair->ended ? ring_near_look_last : conn->io != &tcp_io_ring ? ring_near_look_captured :
			  conn->src.outsider ? ring_near_look_outsider :
			  pair->part ? ring_near_look_measured : ring_near_look;
}

/* Read the socket: bytes that have woken us, or the end. */
static void ring_read_socket(struct tcp_conn *conn)
{
	struct tcp_pair *pair = ring_pair(conn);
	char wake[WAKE_LEN];
	ssize_t n = fab_sock->recv(conn->src.fd, wake, sizeof(wake), MSG_DONTWAIT);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	pair->ended = true;
	pair->taken_at_end = pair->in.taken;
	ring_choose_look(conn, pair);
	/* ECONNRESET: it has left bytes unread that were to wake it */
	pair->err = n < 0 && errno != ECONNRESET ? errno : 0;
	fab_source_del(&conn->src);	/* it would be readable for good */
	tcp_ready_again(&pair->near);
}

static bool ring_pull(struct tcp_conn *conn)
{
	struct tcp_pair *pair = ring_pair(conn);

	if (!pair->ended)
		ring_read_socket(conn);
	return pair->near.look == ring_near_look_outsider ? ring_turn(conn, pair) : pair->near.look(&pair->near);
}

const struct tcp_io tcp_io_ring = {
	.send = ring_send,
	.sendv = ring_sendv,
	.room = ring_room,
	.leave = ring_leave,
	.place = ring_place,
	.pull = ring_pull,
	.want_room = ring_want_room,
	.has_input = ring_has_input,
	.unread = ring_unread,
};

/* ---- the beginning ---- */

/* The regions that the peer may reach by itself: NULL, if remote accesses are counted, or to be seen in a capture. */
static struct fab_mr_map *ring_regions(const struct tcp_conn *conn)
{
	const struct fab_ep *ep = &conn->ep->base;

	return ep->bound.cntr[FAB_CNTR_REMOTE_READ] || ep->bound.cntr[FAB_CNTR_REMOTE_WRITE] || tcp_capture_on() ?
	       NULL : &ep->domain->mr_map;
}

void tcp_io_ring_classify(struct tcp_conn *conn)
{
	struct tcp_pair *pair = conn->io->pull ? ring_pair(conn) : NULL;

	if (!pair || !pair->near.ready)
		return;
	ring_choose_look(conn, pair);
	tcp_ready_again(&pair->near);
}

static void ring_use(struct tcp_conn *conn, int fd)
{
	struct tcp_pair *pair = ring_pair(conn);

	pair->conn = conn;
	tcp_pair_begin_straight(pair, ring_regions(conn), conn->local->pid, fd);
	conn->io = &tcp_io_ring;
	if (tcp_capture_on()) {
		conn->io = &tcp_io_capture_ring;
		tcp_capture_note(fd, "from here on over rings in shared memory");
	}
	ring_choose_look(conn, pair);
	conn->src.poll = NULL;
	conn->rx.more = false;		/* for good: what the last look at a ring has left is no reason to wait */
	tcp_ready_again(&pair->near);
}

/* Say why frames go over the Unix socket. */
static void ring_tell_socket(const struct tcp_conn *conn, const struct tcp_local *local)
{
	char to[FAB_ADDR_STRLEN];

	fab_addr_to_str(&local->theirs.sa, to, sizeof(to));
	TCP_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "%s is on this host and is reached over a Unix socket, without "
		"shared memory: %s\n", to,
		!conn->ep->shared_memory ? "FI_TCP_SHARED_MEMORY or FI_OPT_SHARED_MEMORY_PERMITTED is off here" :
		local->owes_answer && local->greeting.pair != TCP_PAIR_LAYOUT ?
		"the peer is another version of the library, and has another layout of it" :
		local->owes_answer ? "this process cannot make or map it (memfd_create(2), mmap(2))" :
		local->pair ? "the peer has refused it" :
		"one of the two processes does not offer it, or cannot make it (memfd_create(2))");
}

int tcp_io_ring_choose(struct tcp_conn *conn, const struct tcp_link *link)
{
	struct tcp_local *local = link->local;
	int ret = -ENOTSUP;

	conn->local = local;
	conn->io = &tcp_io_sock;
	conn->src.poll = tcp_rx_poll_socket;
	if (tcp_capture_on())
		tcp_io_capture_use(conn);
	if (!local)
		return 0;
	if (local->owes_answer)
		ret = tcp_pair_answer(local->pair, link->fd, conn->ep->shared_memory ? conn->ep->base.engine : NULL);
	else if (local->pair && local->pair->peer)
		ret = 0;
	if (!ret)
		ring_use(conn, link->fd);
	else if (ret == -ENOTSUP)
		ring_tell_socket(conn, local);
	return ret == -ENOTSUP ? 0 : ret;
}
