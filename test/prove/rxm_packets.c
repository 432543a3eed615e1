/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets of rxm: what a peer says about messages, announcements, segments, answers and credit is used within the
 * packet, within the buffers that were given for it, and within our requests.
 *
 * eva: -eva-slevel 100 -eva-alloc-builtin fresh
 */
#include "prove.h"
#include "rxm/rx.h"

/* Matching is not analysed: a receive may be found for each message, or none. */
static struct fab_rx *any_receive(void);
static void claim(struct fab_rx *rx, uint64_t len, struct fab_into *into);
#define fab_recv_find(recv, class, tag, src)		any_receive()
#define fab_rx_claim(recv, rx, len, into)		claim(rx, len, into)
#define fab_rx_finish_with(recv, ep, into, msg, ...)	((void) 0)
#include "rxm/rx.c"
#include "rxm/msg.c"
#include "rxm/rndv.c"
#define decode	atomic_decode
#include "rxm/atomic.c"
#undef decode

struct rxm_params rxm_params;
const struct fab_op_desc fab_op_desc[FAB_OP_MAX];

/* A packet with any bytes, whose end is the array's. */
#define ROOM	112
static _Alignas(8) uint8_t mem[sizeof(struct rxm_pkt) + ROOM];
/* An unexpected message; its room ends with the array. */
static _Alignas(8) uint8_t kept_mem[sizeof(struct rxm_kept) + ROOM];
static uint8_t user0[5], user1[8], user2[3], user3[6];
static struct fi_info info;
static struct fi_ep_attr attr;
static struct fi_tx_attr tx_attr;
static struct rxm_domain domain;
static struct rxm_ep ep;
static struct rxm_peer peer;
static struct rxm_conn conn;
static struct rxm_rx rx;
static struct fi_stats_ep stats;
static struct rxm_tx request, made;
static struct rxm_buf request_buf;
static struct fab_rx receive;

/* ---- above and below ---- */

void rxm_conn_broken(struct rxm_conn *one, const char *what)
{
	(void) what;
	one->state = RXM_CONN_DOWN;
}

void rxm_conn_fail(struct rxm_conn *one, int err, const char *why)
{
	(void) why;
	prove(err > 0);
	one->state = RXM_CONN_DOWN;
}

/* The request that the peer names, or none. */
struct rxm_tx *rxm_tx_asked(struct rxm_conn *one, uint64_t msg_id)
{
	(void) one;
	(void) msg_id;
	return any_of(0, 1) ? &request : NULL;
}

/*@ requires 0 <= err < 4096;
  @ assigns \nothing;
  @*/
void rxm_tx_told(struct rxm_tx *tx, int err);
/*@ assigns \nothing; */
void rxm_tx_answered(struct rxm_tx *tx, int err, const char *text);
/*@ assigns \nothing; */
void rxm_tx_free(struct rxm_ep *one, struct rxm_tx *tx);
/*@ assigns \result \from one, tx;
  @ ensures \result == 0 || \result == 1;
  @*/
bool rxm_tx_packet(struct rxm_ep *one, struct rxm_tx *tx, enum rxm_type type, enum rxm_op op, size_t len);
/*@ assigns \result \from one;
  @ ensures \result == 0 || \result == 1;
  @*/
bool rxm_coll_refuses(struct rxm_conn *one, const struct fab_msg *msg);
/*@ assigns \nothing; */
void rxm_coll_aborted(struct rxm_conn *one, const struct rxm_pkt *pkt);

struct rxm_tx *rxm_tx_new(struct rxm_ep *one, enum rxm_tx_what what)
{
	(void) one;
	(void) what;
	return what == RXM_TX_WRITE && any_of(0, 1) ? &made : NULL;
}

/* What is written for the peer lies in the application's buffers. */
void rxm_tx_start(struct rxm_conn *one, struct rxm_tx *tx)
{
	(void) one;
	prove(tx->iov_cnt <= RXM_IOV_LIMIT);
	prove(tx->rma_cnt <= RXM_IOV_LIMIT);
	//@ loop unroll 5;
	for (int i = 0; i < tx->iov_cnt; i++)
		prove_readable(tx->iov[i].iov_base, tx->iov[i].iov_len);
}

struct rxm_kept *rxm_kept_new(struct rxm_conn *one, const struct fab_msg *msg, size_t room)
{
	struct rxm_kept *kept = NULL;

	(void) one;
	(void) msg;
	prove(room <= ROOM);
	if (any_of(0, 1)) {
		kept = (struct rxm_kept *) (kept_mem + ROOM - room);
		memset(kept, 0, sizeof(*kept));
	}
	return kept;
}

static struct fab_rx *any_receive(void)
{
	return any_of(0, 1) ? &receive : NULL;
}

static void claim(struct fab_rx *one, uint64_t len, struct fab_into *into)
{
	*into = (struct fab_into) { .rx = one, .take = any_of(0, len) };
}

void fab_into_copy(const struct fab_into *into, uint64_t offset, const void *buf, uint64_t len)
{
	prove(into->rx == &receive);
	(void) offset;
	if (len)
		prove_readable(buf, len);
}

/*@ requires \valid(iov + (0 .. *iov_cnt - 1));
  @ assigns *iov_cnt, *mr, \result \from access;
  @*/
int fab_mr_verify(struct fab_mr_map *map, const struct fab_auth_key *proven, uint64_t key, uint64_t addr, size_t len,
		  uint64_t access, struct iovec *iov, uint32_t *iov_cnt, struct fab_mr **mr);
/*@ assigns \nothing; */
void fab_ep_complete(struct fab_ep *base, enum fab_op_code op, const struct fab_comp *comp, bool wanted);

/* ---- packets ---- */

static void begin(void)
{
	conn.state = RXM_CONN_UP;
	conn.ext = any_of(0, 1);
	conn.coll = any_of(0, 1);
	fab_list_init(&conn.parts);
	conn.part_cnt = any_of(0, RXM_PARTS_MAX);
	conn.window = 30;
	conn.credit[RXM_ASKS].left = any_of(0, 30);
	conn.credit[RXM_ANSWERS].left = any_of(0, 30);
	request.what = any_of(0, RXM_TX_WRITE);
	request.writing = any_of(0, 1);
	request_buf.pkt.ctrl.type = any_of(0, RXM_TYPE_MAX - 1);
}

static struct rxm_pkt *packet(uint8_t type, size_t len)
{
	any_bytes(mem, sizeof(mem));
	rx.pkt = (struct rxm_pkt *) (mem + ROOM - len);
	rx.len = sizeof(*rx.pkt) + len;
	rx.pkt->ctrl.type = type;
	return rx.pkt;
}

static struct rxm_kept *take(size_t len)
{
	struct rxm_in in = { .conn = &conn, .rx = &rx, .pkt = rx.pkt, .len = len };

	if (!check_packet(&conn, &rx))
		return NULL;
	dispatch(&in);
	return in.kept;
}

/* A request of ours with this number of buffers, and an answer of this type. */
static void prove_packet(uint8_t type, size_t len, uint8_t user_cnt)
{
	begin();
	request.user_cnt = user_cnt;
	packet(type, len);
	take(len);
}

/* The answer says where a message of ours is to be written, or part of it. */
static void prove_write(uint8_t user_cnt, uint64_t len, uint64_t size)
{
	begin();
	request.user_cnt = user_cnt;
	request.len = len;
	packet(RXM_RNDV_WR, sizeof(struct rxm_rndv))->op.size = size;
	take(sizeof(struct rxm_rndv));
}

/* The first segment of a message of this size. */
static void prove_first_segment(size_t len, uint64_t size)
{
	begin();
	packet(RXM_SEG, len)->op.size = size;
	take(len);
}

/* A segment of a message of `total` bytes, of which some have come. */
static void prove_segment(uint64_t total, uint64_t have, size_t len)
{
	struct rxm_part *part = malloc(sizeof(*part));
	struct rxm_kept *kept = (struct rxm_kept *) (kept_mem + ROOM - total);

	if (!part)
		return;
	begin();
	conn.part_cnt = any_of(1, RXM_PARTS_MAX);
	memset(part, 0, sizeof(*part));
	memset(kept, 0, sizeof(*kept));
	part->conn = &conn;
	part->have = have;
	part->next_no = any_of(0, UINT32_MAX);
	part->msg_id = any_of(0, UINT64_MAX);
	part->msg.len = total;
	if (any_of(0, 1))
		part->kept = kept;
	else
		part->into.rx = &receive;
	fab_list_add_tail(&conn.parts, &part->link);
	packet(RXM_SEG, len)->ctrl.seg_no = any_of(1, UINT32_MAX);
	take(len);
}

/* A message that is all of its buffer, whose tag came past it. */
static void prove_bare(size_t len)
{
	struct rxm_in in = { .conn = &conn, .rx = &rx };

	begin();
	conn.ext = any_of(0, 1);
	any_bytes(mem, sizeof(mem));
	rx.pkt = (struct rxm_pkt *) (mem + sizeof(mem) - len);
	rx.len = len;
	rx.tag = any_of(0, UINT64_MAX);
	rx.data = any_of(0, UINT64_MAX);
	rx.has_data = any_of(0, 1);
	rxm_msg_bare(&in);
}

static void prove_credit(uint32_t left)
{
	begin();
	conn.credit[RXM_ASKS].left = left;
	conn.credit[RXM_ANSWERS].left = left;
	take_credit(&conn, any_of(0, UINT64_MAX));
	prove(conn.credit[RXM_ASKS].left <= conn.window);
	prove(conn.credit[RXM_ANSWERS].left <= conn.window);
}

static void prove_short(void)
{
	begin();
	rx.pkt = (struct rxm_pkt *) (mem + sizeof(mem));
	rx.len = any_of(0, sizeof(*rx.pkt) - 1);
	prove(!check_packet(&conn, &rx));
}

int main(void)
{
	static const uint64_t sums[] = { 0, 5, 13, 16, 22 };

	conn.ep = &ep;
	conn.peer = &peer;
	conn.stats = &stats.rest;
	ep.base.stats = &stats;
	rx.conn = &conn;
	ep.base.info = &info;
	ep.base.domain = &domain.base;
	ep.domain = &domain;
	info.ep_attr = &attr;
	info.tx_attr = &tx_attr;
	domain.below_info = &info;
	domain.has_dc = any_of(0, 1);
	attr.max_msg_size = any_of(0, UINT64_MAX);
	tx_attr.rma_iov_limit = any_of(0, 4);
	request.buf = &request_buf;
	request.user[0] = (struct iovec) { user0, sizeof(user0) };
	request.user[1] = (struct iovec) { user1, sizeof(user1) };
	request.user[2] = (struct iovec) { user2, sizeof(user2) };
	request.user[3] = (struct iovec) { user3, sizeof(user3) };
	prove_short();
	//@ loop unroll 200;
	for (size_t len = 0; len <= ROOM; len += 8)
		prove_bare(len);
	//@ loop unroll 40;
	for (uint32_t left = 0; left <= 30; left++)
		prove_credit(left);
	//@ loop unroll 200;
	for (size_t len = 0; len <= ROOM; len += 8) {
		//@ loop unroll 40;
		for (uint8_t type = 0; type <= RXM_TYPE_MAX; type++) {
			if (type != RXM_SEG && type != RXM_ATOMIC && (type <= RXM_RNDV_WDONE || type >= RXM_ACK))
				prove_packet(type, len, 2);
		}
	}
	//@ loop unroll 8;
	for (uint8_t cnt = 0; cnt <= RXM_IOV_LIMIT; cnt++) {
		//@ loop unroll 40;
		for (uint64_t size = 0; size <= sums[cnt]; size++)
			prove_write(cnt, sums[cnt], size);
		prove_write(cnt, sums[cnt], any_of(sums[cnt] + 1, UINT64_MAX));
		//@ loop unroll 40;
		for (size_t len = 0; len <= sizeof(struct rxm_amo_rsp) + 24; len++)
			prove_packet(RXM_ATOMIC_RSP, len, cnt);
	}
	//@ loop unroll 40;
	for (size_t len = 0; len <= 6; len++) {
		//@ loop unroll 40;
		for (uint64_t size = 0; size <= 7; size++)
			prove_first_segment(len, size);
		prove_first_segment(len, any_of(RXM_SEG_MAX + 1, UINT64_MAX));
	}
	//@ loop unroll 40;
	for (uint64_t have = 0; have < 8; have++) {
		//@ loop unroll 40;
		for (size_t len = 0; len <= 9; len++)
			prove_segment(8, have, len);
	}
	reached();
	return 0;
}
