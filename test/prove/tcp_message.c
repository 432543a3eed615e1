/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions that start a frame of a message, of an announcement or of a collective, and those that end it when its
 * payload is there (tcp_frames[].start and .whole of message/msg.c, message/rndv.c and collective/coll.c), for a header
 * that rx_hdr_check() accepts (tcp_header.c), of any bytes besides. A message goes only into the room of its receive,
 * or into memory as long as it is; data is taken or sent only for an announcement, and not more than was asked for. No
 * message or receive is read after it was given back to its pool, also if the connection ends within a call.
 *
 * eva: -eva-slevel 400 -eva-slevel-function main:0,begin:0,any_header:0,any_receive_of:0,prove_kept:0,prove_posted:0
 * eva: -eva-slevel-function prove_whole:0,prove_announced:0,prove_cancel:0
 * eva: -eva-split-return-function any_receive:0,get:0,tcp_tx_control:0
 */
#include "prove.h"
#include "base/bits.h"
#include "base/pool.h"
#include "common/endpoint/endpoint.h"

/* A message and a receive are an object each, which has no values while it is in its pool. Matching is not analysed:
 * the program says whether there is a receive. */
static void *get(void);
static void put(void *object);
static void *any_memory(size_t len);
static void completed(const struct fab_comp *comp);
#define fab_pool_get(pool)				get()
#define fab_pool_put(pool, object)			put(object)
#define fab_mix64(x)					any_of(0, UINT64_MAX)
#define malloc(len)					any_memory(len)
#define free(at)					((void) 0)
#define fab_ep_complete_to(ep, code, comp, ...)		completed(comp)
#include "common/receive/receive.h"
static struct fab_rx *any_receive(enum fab_msg_class class);
#define fab_recv_find(recv, class, tag, src)		any_receive(class)
#include "tcp/message/msg.h"
static void ended(void);
#define CONN_ENDS()					ended()
#include "tcp_frame.h"
#include "common/op/op.c"
#include "tcp/message/msg.c"
#include "tcp/message/rndv.c"
#include "tcp/message/stall.c"
#include "tcp/collective/coll.c"

#define ROOM	260			/* bytes of a receive, and of a message that is kept */

struct tcp_params tcp_params;
static struct fi_stats_ep ep_stats;
static uint8_t mem[ROOM], heap[ROOM], piece[64];
static union {
	struct fab_rx rx;
	uint8_t mem[sizeof(struct fab_rx) + TCP_RX_IOV * sizeof(struct iovec)];
} receive;
static struct tcp_unexp kept;
static struct tcp_tx tx;

/* ---- memory ---- */

static void *get(void)
{
	struct tcp_unexp nothing;

	if (any_of(0, 1))
		return NULL;
	kept = nothing;
	return &kept;
}

static void put(void *object)
{
	struct tcp_unexp nothing;
	struct fab_rx no_receive;

	prove(object == &kept || object == &receive);
	if (object == &kept)
		kept = nothing;
	else
		receive.rx = no_receive;
}

static void *any_memory(size_t len)
{
	return len > ROOM || any_of(0, 1) ? NULL : heap + ROOM - len;
}

/* ---- receives ---- */

static bool posted;			/* there is a receive */

static struct fab_rx *any_receive(enum fab_msg_class class)
{
	prove(class < FAB_CLASS_MAX);
	return posted ? &receive.rx : NULL;
}

/* A receive of these two pieces; or, one: of the first only. */
static void any_receive_of(size_t first, size_t second, bool one)
{
	memset(&receive, 0, sizeof(receive));
	receive.rx.posted.seq = any_of(0, 1);
	fab_list_init(&receive.rx.posted.order);
	fab_list_init(&receive.rx.posted.node.same);
	receive.rx.flags = one && any_of(0, 1) ? FI_MULTI_RECV : any_of(0, 1) ? FAB_OP_HMEM : 0;
	receive.rx.len = first + (one ? 0 : second);
	receive.rx.code = any_of(FAB_OP_RECV, FAB_OP_CRECV);
	receive.rx.rare = any_of(0, 3);
	receive.rx.iov_cnt = one ? 1 : 2;
	receive.rx.iov = receive.rx.own;
	receive.rx.own[0] = (struct iovec) { mem + ROOM - first, first };
	receive.rx.own[1] = (struct iovec) { piece + sizeof(piece) - second, second };
}

static void completed(const struct fab_comp *comp)
{
	prove(comp->len <= receive.rx.len);
}

/*@ requires \valid_read(into) && \valid(rx);
  @ assigns \result \from *into;
  @ ensures \result == 0 || \result == 1;
  @*/
bool fab_rx_claim_part(struct fab_recv *recv, struct fab_rx *rx, const struct fab_into *into);
/*@ requires \valid_read(into) && \valid_read(msg) && \valid(comp);
  @ assigns \nothing;
  @*/
void fab_rx_finish_rare(struct fab_recv *recv, struct fab_ep *one, const struct fab_into *into, struct fab_comp *comp,
			const struct fab_msg *msg, const struct fab_cq_fail *fail);

void fab_into_copy(const struct fab_into *into, uint64_t offset, const void *buf, uint64_t len)
{
	(void) offset;
	prove(into->rx == &receive.rx);
	prove_readable(buf, len);
}

void tcp_rx_finish(struct tcp_ep *one, const struct fab_into *into, const struct tcp_msg *msg,
		   const struct fab_cq_fail *fail)
{
	(void) one, (void) msg, (void) fail;
	prove(into->rx == &receive.rx && into->take <= receive.rx.len);
	put(into->rx);
}

struct fab_rx *tcp_keyed_find(struct tcp_conn *one, enum fab_msg_class class, uint64_t tag, struct fab_rx *other)
{
	(void) one, (void) class, (void) tag;
	return other;
}

/* ---- messages that are kept ---- */

struct fab_msg fab_kept_msg(const struct fab_recv *recv, const struct fab_kept *one)
{
	(void) recv;
	return (struct fab_msg) { .tag = one->tag, .data = one->data, .len = one->len, .src = one->match.src,
				  .flags = one->flags, .class = one->class };
}

void fab_kept_drop(struct fab_recv *recv, struct fab_kept *one)
{
	fab_kept_unlink(recv, one);
	one->place = FAB_KEPT_DROPPED;
	tcp_unexp_dropped(recv, one);
}

void tcp_unexp_charge(struct tcp_unexp *unexp, uint64_t len)
{
	unexp->charged += len;
}

/* The message is still there. */
/*@ requires \initialized(&unexp->charged);
  @ assigns \nothing;
  @*/
void tcp_unexp_give(struct tcp_unexp *unexp);

void tcp_unexp_leave(struct tcp_unexp *unexp)
{
	unexp->conn = NULL;
}

void fab_match_add_unexp(struct fab_match *match, struct fab_unexp *unexp)
{
	(void) match;
	prove(kept.base.len <= TCP_MAX_MSG_SIZE && kept.base.class < FAB_CLASS_MAX && unexp == &kept.base.match);
}

/* Each table has one bucket. */
static struct fab_list announced, grouped, orphans;
static bool no_table;			/* there is no memory for one */

int fab_table_init(struct fab_table *table)
{
	if (no_table)
		return -FI_ENOMEM;
	table->bucket = table == &ep.own_rx.grouped ? &grouped : &announced;
	fab_list_init(table->bucket);
	return 0;
}

void fab_table_add(struct fab_table *table, struct fab_entry *entry, uint64_t hash)
{
	entry->hash = hash;
	fab_list_add_tail(table->bucket, &entry->link);
	table->cnt++;
}

void fab_table_remove(struct fab_table *table, struct fab_entry *entry)
{
	fab_list_remove(&entry->link);
	table->cnt--;
}

/*@ assigns \result \from addr; */
uint64_t fab_addr_hash(const struct sockaddr *addr);

static struct tcp_unexp *asked;		/* the peer was asked for the data of this message */

int tcp_idmap_add(struct tcp_idmap *map, void *object, uint32_t *id)
{
	(void) map, (void) object;
	*id = any_of(0, TCP_IDMAP_MAX - 1);
	return any_of(0, 1) ? -FI_ENOMEM : 0;
}

static bool no_id;			/* the id that the peer names is none of ours */

void *tcp_idmap_get(const struct tcp_idmap *map, uint32_t id)
{
	(void) id;
	if (no_id)
		return NULL;
	return map == &conn.tx.rts ? (void *) &tx : (void *) asked;
}

void *tcp_idmap_del(struct tcp_idmap *map, uint32_t id)
{
	(void) map, (void) id;
	return NULL;
}

/* ---- above and below ---- */

static void ended(void)
{
	tcp_rx_fail_all(&conn, FI_EIO, FI_EIO, "the end");
}

/* What others do with a message for which there is no receive. Eva joins the ends of a function, so it is not any. */
static enum other {
	NOTHING,		/* no other provider owns the receives; a collective wants the message */
	WANTS,			/* the owner has a receive, if one is posted; a collective does not want the message */
	KEEPS,			/* the owner wants to be asked again */
	FAILS,			/* the same, and the connection ends when it is; or when a collective refuses */
	FAILS_AT_ONCE,		/* the connection ends when the owner is asked for a receive */
	OTHERS
} other;

bool fab_coll_refuses(struct fab_coll *coll, fi_addr_t peer, uint64_t tag)
{
	(void) coll, (void) peer, (void) tag;
	if (other == FAILS)
		tcp_conn_fail(&conn, FI_EIO, FI_EIO, "no memory for the answer");
	return other == WANTS || other == FAILS;
}

/*@ assigns \result \from tag;
  @ ensures \result == 0 || \result == 1;
  @*/
bool fab_coll_aborted(struct fab_coll *coll, fi_addr_t peer, uint64_t tag, int err);

/* As in stream/rx.c. */
uint32_t tcp_rx_group(const struct tcp_conn *one)
{
	struct tcp_group group = { 0 };

	if (one->rx.hdr.flags & TCP_FLAG_GROUP)
		memcpy(&group, one->rx.hdr_buf + one->rx.hdr.hdr_size - sizeof(group), sizeof(group));
	return group.id <= TCP_GROUP_MAX ? group.id : UINT32_MAX;
}

size_t tcp_rx_copy(struct tcp_rx_state *rx, const uint8_t *buf, size_t len)
{
	(void) rx;
	prove_readable(buf, len);
	return len;
}

/* No more is sent than a message has. */
void tcp_tx_queue(struct tcp_conn *one, struct tcp_tx *what)
{
	(void) one;
	if (what == &tx)
		prove(what->size - what->hdr_len <= what->len);
}

static struct fab_rx *lent_find(struct tcp_conn *one, const struct tcp_msg *msg, struct fi_peer_rx_entry **entry)
{
	static struct fi_peer_rx_entry lent;

	*entry = NULL;
	if (other == WANTS)
		return any_receive(msg->base.class);
	if (other == FAILS_AT_ONCE)
		tcp_conn_fail(one, FI_ENOMEM, FI_ENOMEM, "no memory");
	else
		*entry = &lent;
	return NULL;
}

static void lent_queue(struct tcp_owner *owner, struct tcp_unexp *unexp, struct fi_peer_rx_entry *entry)
{
	(void) owner, (void) entry;
	if (unexp && other == FAILS)
		tcp_conn_fail(unexp->conn, FI_ENOMEM, FI_ENOMEM, "no memory");
}

/*@ assigns \nothing; */
static void lent_lost(struct tcp_owned *owned);
static const struct tcp_owner_ops lent_ops = { .find = lent_find, .queue = lent_queue, .lost = lent_lost };
static struct tcp_owner owner = { &lent_ops };

/*@ assigns \nothing; */
void fab_match_ungroup(struct fab_posted *one);
/*@ assigns \nothing; */
void fab_match_del_unexp(struct fab_match *match, struct fab_unexp *unexp);
/*@ requires \valid_read(unexp);
  @ assigns \nothing;
  @*/
void tcp_profile_event(const struct tcp_unexp *unexp, uint32_t event);
/*@ assigns \nothing; */
void tcp_rx_pause(struct tcp_conn *one, bool pause);
/*@ assigns \nothing; */
void tcp_rx_tell(struct tcp_conn *one);
/*@ assigns \nothing; */
void tcp_rest_pool(struct tcp_ep *one, struct fab_pool *pool);
/*@ assigns \nothing; */
void tcp_rx_ack(struct tcp_conn *one);
/*@ assigns \result \from fi_addr; */
fi_addr_t fab_av_user_id(const struct fab_av *av, fi_addr_t fi_addr);

/* ---- frames ---- */

static uint8_t frame[sizeof(uint64_t) + ROOM];	/* what is at hand; its end is the end of the array */

/* A header with these flags, and any that ask for an acknowledgement, and `more` bytes behind the base header. */
static void begin(uint8_t op, uint16_t flags, uint32_t more, uint64_t len, size_t at_hand)
{
	any_header(op, 0, more, false, len);
	conn.rx.hdr.flags = flags | any_of(0, 3) * TCP_FLAG_DELIVERY;
	any_bytes(frame, sizeof(frame));
	conn.rx.next = frame + sizeof(frame) - at_hand;
	conn.rx.next_len = at_hand;
	conn.rx.into.rx = NULL;
	conn.rx.unexp = NULL;
	conn.rx.phase = TCP_RX_HDR;
	conn.msg.unexp_len = any_of(0, UINT64_MAX);
	conn.msg.announced_cnt = any_of(0, TCP_IDMAP_MAX);
	fab_list_init(&conn.msg.unexp);
	fab_list_init(&orphans);
	ep.rx->orphans.bucket = &orphans;
	ep.rx->announced.bucket = ep.own_rx.grouped.bucket = NULL;
	ep.rx->announced.cnt = ep.own_rx.grouped.cnt = 0;
	ep.rx->owner = other == NOTHING ? NULL : &owner;
	comes = true;
	broken = false;
	awaited = false;
}

/* A message of a type, with this header. */
static void start(uint8_t op, uint16_t flags, uint32_t more, uint64_t len, size_t at_hand)
{
	begin(op, flags, more, len, at_hand);
	if (op == TCP_WIRE_COLL)
		tcp_coll_start(&conn);
	else
		tcp_msg_start(&conn);
}

/* There is no receive. */
static void prove_kept(uint8_t op, uint16_t flags, uint32_t more, uint64_t len)
{
	posted = false;
	//@ loop unroll 8;
	for (other = NOTHING; other < OTHERS; other++) {
		conn.peer.ext = true;
		start(op, flags, more, len, 0);
		conn.peer.ext = false;
		start(op, flags, more, len, 0);
		/* nothing is kept for a connection that has ended */
		prove(other != FAILS_AT_ONCE || op == TCP_WIRE_COLL || fab_list_empty(&conn.msg.unexp));
	}
	other = NOTHING;
}

/* There is one, and all of the payload is at hand, or all but a byte. */
static void prove_posted(uint8_t op, uint16_t flags, uint32_t more, uint64_t len)
{
	static const uint8_t first[] = { 0, 8, 9, 5, 3 }, second[] = { 0, 0, 0, 3, 20 };

	posted = true;
	//@ loop unroll 8;
	for (unsigned i = 0; i < sizeof(first); i++) {
		any_receive_of(first[i], second[i], !second[i]);
		start(op, flags, more, len, len);
		if (!len)
			continue;
		any_receive_of(first[i], second[i], !second[i]);
		start(op, flags, more, len, len - 1);
		prove(!conn.rx.into.rx && !conn.rx.unexp);	/* a connection that ends now finds neither */
	}
}

/* A payload of any length flows into a receive. */
static void prove_long(uint8_t op, uint32_t more)
{
	posted = true;
	any_receive_of(8, 0, true);
	begin(op, 0, more, any_of(ROOM + 1, TCP_MAX_MSG_SIZE), ROOM);
	comes = false;
	tcp_msg_start(&conn);
}

static void prove_whole(size_t len, size_t room)
{
	posted = true;
	any_receive_of(room, 0, true);
	begin(TCP_WIRE_MSG, 0, 0, len, 0);
	(void) tcp_msg_whole(&conn, frame + sizeof(frame) - len, len);
	any_receive_of(room, 0, true);
	begin(TCP_WIRE_TAG, 0, 8, len, 0);
	(void) tcp_tag_whole(&conn, frame + sizeof(frame) - len - sizeof(uint64_t), len);
	posted = false;
	begin(TCP_WIRE_MSG, 0, 0, len, 0);
	prove(!tcp_msg_whole(&conn, frame + sizeof(frame) - len, len));
}

/* ---- announcements ---- */

/* A kept message of this connection. */
static void any_kept(enum fab_msg_class class, enum fab_kept_place at, uint64_t len)
{
	memset(&kept, 0, sizeof(kept));
	kept.conn = &conn;
	kept.ep = &ep;
	kept.base.class = class;
	kept.base.place = at;
	kept.base.len = len;
	kept.kept = any_of(0, UINT64_MAX);
	kept.buf = kept.small;
	fab_list_init(&kept.base.match.order);
	fab_list_add_tail(&conn.msg.unexp, &kept.link);
	if (class == FAB_CLASS_COLL && !fab_table_init(&ep.own_rx.grouped))
		fab_table_add(&ep.own_rx.grouped, &kept.group, 0);
}

/* The message was announced, and no receive has taken it. */
static void any_announced(enum fab_msg_class class, enum fab_kept_place at)
{
	any_kept(class, at, any_of(0, TCP_MAX_MSG_SIZE));
	kept.announced = kept.listed = true;
	kept.buf = NULL;
	kept.rts_id = any_of(0, UINT32_MAX);
	if (!fab_table_init(&ep.rx->announced))
		fab_table_add(&ep.rx->announced, &kept.entry, 0);
}

static void announce(uint16_t flags, uint32_t more, uint8_t class)
{
	begin(TCP_WIRE_XRTS, flags, sizeof(struct tcp_rts) + more, 0, 0);
	conn.rx.hdr.op_data = class;
	tcp_rndv_rts(&conn);
}

static void prove_announced(uint16_t flags, uint32_t more, uint8_t class)
{
	posted = false;
	//@ loop unroll 8;
	for (other = NOTHING; other < OTHERS; other++) {
		announce(flags, more, class);
		prove(other != FAILS_AT_ONCE || class == FAB_CLASS_COLL || fab_list_empty(&conn.msg.unexp));
	}
	no_table = true;
	other = FAILS;
	announce(flags, more, class);
	no_table = false;
	no_control = true;
	other = WANTS;
	announce(flags, more, class);
	other = NOTHING;
	posted = true;
	any_receive_of(8, 0, true);
	announce(flags, more, class);
	no_control = false;
	any_receive_of(8, 0, true);
	announce(flags, more, class);
}

static void prove_go_ahead(uint64_t len, uint8_t op_data)
{
	begin(TCP_WIRE_XCTS, 0, sizeof(struct tcp_cts), 0, 0);
	conn.rx.hdr.op_data = op_data;
	any_bytes(&tx, sizeof(tx));
	tx.conn = &conn;
	tx.len = len;
	tcp_rndv_cts(&conn);
}

/* The peer was asked for n bytes of a message, and sends len bytes of data; wrong: these are not n, or for another
 * message. */
static void prove_data(uint8_t op, size_t more, size_t first, size_t second, uint64_t n, uint64_t len,
		       bool wrong)
{
	begin(op, 0, more, len, 0);
	any_receive_of(first, second, !second);
	any_kept(FAB_CLASS_COLL, FAB_KEPT_TAKEN, any_of(n, TCP_MAX_MSG_SIZE));
	kept.announced = true;
	kept.buf = NULL;
	kept.base.into = (struct fab_into) { &receive.rx, mem + ROOM - first, n };
	asked = &kept;
	tcp_rndv_data(&conn);
	prove(wrong ? broken && !awaited : awaited && !broken);
	prove(!conn.rx.unexp && fab_list_empty(&grouped));
}

static void prove_cancel(enum fab_msg_class class, enum fab_kept_place at)
{
	begin(TCP_WIRE_XCANCEL, 0, sizeof(struct tcp_xcancel), 0, 0);
	any_announced(class, at);
	tcp_rndv_xcancel(&conn);
	begin(TCP_WIRE_XCANCEL, 0, sizeof(struct tcp_xcancel), 0, 0);
	tcp_rndv_xcancel(&conn);
}

/* ---- collectives ---- */

/* A group has failed: messages of it that were kept are dropped, complete or not. */
static void prove_abort(bool complete, bool announced, bool stalled)
{
	begin(TCP_WIRE_COLL, 0, sizeof(struct tcp_coll), 0, 0);
	conn.rx.hdr.op_data = any_of(0, UINT8_MAX);
	if (announced)
		any_announced(FAB_CLASS_COLL, FAB_KEPT_QUEUED);
	else
		any_kept(FAB_CLASS_COLL, FAB_KEPT_QUEUED, 8);
	kept.complete = complete;
	kept.stalled = stalled;
	kept.base.tag = any_of(0, UINT64_MAX);
	posted = false;
	if (conn.rx.hdr.op_data != TCP_COLL_MSG)
		tcp_coll_start(&conn);
}

/* The connection ends: of its messages, a complete one waits for a receive. */
static void prove_end(bool complete)
{
	begin(TCP_WIRE_MSG, 0, 0, 0, 0);
	any_kept(FAB_CLASS_COLL, FAB_KEPT_QUEUED, 8);
	kept.complete = complete;
	ended();
	prove(fab_list_empty(&grouped) && fab_list_empty(&conn.msg.unexp));
	prove(fab_list_empty(&orphans) == !complete);
}

int main(void)
{
	static const struct {
		uint8_t op;
		uint16_t flags;
		uint32_t more;
	} headers[] = {
		{ TCP_WIRE_MSG, 0, 0 },
		{ TCP_WIRE_MSG, TCP_FLAG_CQ_DATA, 8 },
		{ TCP_WIRE_MSG, TCP_FLAG_GROUP, 8 },
		{ TCP_WIRE_MSG, TCP_FLAG_CQ_DATA | TCP_FLAG_GROUP, 16 },
		{ TCP_WIRE_MSG, TCP_FLAG_LAYER_TAG, 0 },
		{ TCP_WIRE_MSG, TCP_FLAG_LAYER_TAG, 8 },
		{ TCP_WIRE_MSG, TCP_FLAG_LAYER_TAG | TCP_FLAG_CQ_DATA, 16 },
		{ TCP_WIRE_MSG, TCP_FLAG_LAYER_TAG | TCP_FLAG_CQ_DATA | TCP_FLAG_GROUP, 24 },
		{ TCP_WIRE_MSG, TCP_PIECES(1), 0 },
		{ TCP_WIRE_TAG, 0, 8 },
		{ TCP_WIRE_TAG, TCP_FLAG_CQ_DATA, 16 },
		{ TCP_WIRE_TAG, TCP_FLAG_CQ_DATA | TCP_FLAG_GROUP, 24 },
		{ TCP_WIRE_COLL, 0, 8 },
	};
	static const uint64_t lens[] = { 0, 1, TCP_UNEXP_SMALL, TCP_UNEXP_SMALL + 1, ROOM };
	static struct fab_list view;
	static uint8_t groups;

	any_conn();
	no_control = false;
	ep.base.stats = &ep_stats;
	ep.base.caps = any_of(0, UINT64_MAX);
	ep.base.coll = any_of(0, 1) ? (struct fab_coll *) &groups : NULL;
	ep.base.views.profiles.next = any_of(0, 1) ? &view : &ep.base.views.profiles;
	ep.base.report.want_src = any_of(0, 1);
	ep.base.report.src_err = any_of(0, 1);
	ep.rx->recv.grouped = any_of(0, 1);
	ep.rx->keyed = any_of(0, 1);
	conn.fi_addr = any_of(0, UINT64_MAX);
	conn.holding.class = any_of(0, TCP_STRANGER);
	tcp_params.unexp_max = 200;
	tcp_params.credit = any_of(0, UINT32_MAX);
	tcp_params.stranger_max = 8 * 200;
	//@ loop unroll 16;
	for (unsigned i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
		prove_kept(headers[i].op, headers[i].flags, headers[i].more, 8);
		prove_posted(headers[i].op, headers[i].flags, headers[i].more, 8);
	}
	//@ loop unroll 16;
	for (unsigned i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		prove_kept(TCP_WIRE_MSG, 0, 0, lens[i]);
		prove_posted(TCP_WIRE_MSG, 0, 0, lens[i]);
	}
	no_table = true;
	prove_kept(TCP_WIRE_COLL, 0, 8, TCP_UNEXP_SMALL);
	prove_kept(TCP_WIRE_COLL, 0, 8, TCP_UNEXP_SMALL + 1);
	no_table = false;
	prove_long(TCP_WIRE_MSG, 0);
	prove_long(TCP_WIRE_TAG, 8);
	//@ loop unroll 80;
	for (size_t len = 0; len <= 64; len++) {
		prove_whole(len, len);
		prove_whole(len, len + 1);
		if (len)
			prove_whole(len, len - 1);
	}
	//@ loop unroll 8;
	for (uint8_t class = 0; class <= FAB_CLASS_MAX; class++) {
		prove_announced(0, 0, class);
		prove_announced(TCP_FLAG_CQ_DATA | TCP_FLAG_GROUP, 16, class);
	}
	prove_go_ahead(0, any_of(0, UINT8_MAX));
	prove_go_ahead(100, TCP_CTS_WIDE);
	prove_go_ahead(100, any_of(TCP_CTS_WIDE + 1, UINT8_MAX));
	prove_go_ahead(100, 0);
	prove_data(TCP_WIRE_XDATA, sizeof(struct tcp_xdata), 8, 0, 8, 8, false);
	prove_data(TCP_WIRE_XDATA, sizeof(struct tcp_xdata), 8, 8, 12, 12, false);
	prove_data(TCP_WIRE_XDATA_WIDE, sizeof(struct tcp_xdata_wide), 8, 0, 8, 8, false);
	prove_data(TCP_WIRE_XDATA, sizeof(struct tcp_xdata), 8, 0, 8, any_of(0, 7), true);
	prove_data(TCP_WIRE_XDATA, sizeof(struct tcp_xdata), 8, 0, 8, any_of(9, TCP_MAX_MSG_SIZE), true);
	no_id = true;
	prove_data(TCP_WIRE_XDATA, sizeof(struct tcp_xdata), 8, 0, 8, 8, true);
	prove_go_ahead(100, 0);
	prove(broken);
	no_id = false;
	//@ loop unroll 8;
	for (enum fab_kept_place at = FAB_KEPT_QUEUED; at <= FAB_KEPT_ASKED; at++)
		prove_cancel(at % FAB_CLASS_MAX, at);
	prove_abort(false, false, false);
	prove_abort(true, false, false);
	prove_abort(false, true, false);
	prove_abort(false, false, true);
	prove_end(false);
	prove_end(true);
	no_control = true;
	prove_cancel(FAB_CLASS_TAGGED, FAB_KEPT_QUEUED);
	prove_abort(false, true, false);
	reached();
	return 0;
}
