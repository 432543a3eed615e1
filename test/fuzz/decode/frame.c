/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Headers of tcp's frames, for peers that have agreed on anything. The check accepts a header if and only if the format
 * allows it (the contract that test/prove/tcp_header.c proves is one half of this).
 */
#include "fuzz/decode/decode.h"

#include <string.h>
#include "tcp/stream/rx.c"
#include "tcp/stream/direct.c"

static struct fi_ep_attr attr;
static struct fi_info info = { .ep_attr = &attr };
static struct tcp_ep ep;
static struct tcp_conn conn;
static struct tcp_direct direct;

/* The length of a header with these flags; 0: it may not have them. */
static uint64_t model_len(const struct tcp_hdr *hdr, const struct tcp_frame *kind)
{
	uint64_t len = 16 + kind->fixed, pieces = TCP_PIECE_CNT(hdr->flags);

	if (kind->rma)
		len += 24 * (uint64_t) hdr->rma_iov_cnt;
	if (hdr->flags & TCP_FLAG_CQ_DATA)
		len += kind->cq_data ? 8 : 1000;
	if (hdr->flags & TCP_FLAG_GROUP)
		len += kind->group && (conn.peer.features & TCP_EXT_GROUP) ? sizeof(struct tcp_group) : 1000;
	if (hdr->flags & TCP_FLAGS_PIECES && (!conn.direct.state || !direct.reads || pieces > TCP_PIECES_MAX ||
					      !kind->spoilt || !(hdr->flags & TCP_FLAG_WANT_ACK)))
		len += 1000;
	if (hdr->flags & TCP_FLAG_LAYER_TAG && hdr->op == TCP_WIRE_MSG && !conn.peer.ext && attr.type == FI_EP_MSG)
		len += 8;
	return len < 1000 ? len : 0;
}

static bool model_valid(const struct tcp_hdr *hdr)
{
	const struct tcp_frame *kind = &tcp_frames[hdr->op < TCP_WIRE_OP_END ? hdr->op : 0];
	uint64_t len;

	if (hdr->op >= TCP_WIRE_OP_END || !kind->start || (kind->ext & ~conn.peer.features))
		return false;
	if (kind->rma && (!hdr->rma_iov_cnt || hdr->rma_iov_cnt > TCP_RMA_IOV_MAX))
		return false;
	if (kind->rma && hdr->rma_iov_cnt > TCP_RMA_IOV_BASE && !(conn.peer.features & TCP_EXT_RIOV))
		return false;
	len = model_len(hdr, kind);
	if (!len || hdr->hdr_size != len || hdr->hdr_size > sizeof(conn.rx.hdr_buf) || hdr->size < len)
		return false;
	return hdr->size - len <= (kind->payload ? TCP_MAX_MSG_SIZE : 0);
}

static void any_peer(struct decode *decode)
{
	uint64_t how = decode_draw(decode);

	attr.type = how & 1 ? FI_EP_MSG : FI_EP_RDM;
	ep.base.info = &info;
	conn.ep = &ep;
	conn.peer.ext = how & 2;
	conn.peer.features = how & 4 ? UINT16_MAX : (uint16_t) (how >> 16);
	conn.direct.state = how & 8 ? &direct : NULL;
	direct.reads = how & 16;
}

/* A header that is nearly in order. */
static void near_one(struct decode *decode, struct tcp_hdr *hdr)
{
	uint64_t how = decode_draw(decode), len;
	static const uint64_t sizes[] = { 0, 1, 8, 4096, TCP_MAX_MSG_SIZE - 1, TCP_MAX_MSG_SIZE, TCP_MAX_MSG_SIZE + 1,
					  UINT64_MAX };

	hdr->version = TCP_WIRE_VERSION;
	hdr->op = (uint8_t) (how % TCP_WIRE_OP_END);
	if (how & 1 << 8)
		hdr->op %= TCP_WIRE_DATA + 1;
	hdr->flags = how & 1 << 9 ? 0 : (uint16_t) (1 << (how >> 10 & 15) | (how & 1 << 14 ? how >> 32 : 0));
	hdr->rma_iov_cnt = (uint8_t) (how >> 16 & (how & 1 << 15 ? 0xff : 7));
	len = model_len(hdr, &tcp_frames[hdr->op]);
	hdr->hdr_size = (uint8_t) len;
	hdr->size = len + (tcp_frames[hdr->op].payload || how & 1 << 28 ? sizes[how >> 24 & 7] : 0);
}

uint64_t decode_frames(struct decode *decode, uint64_t cnt)
{
	uint64_t valid = 0;
	struct tcp_hdr hdr;

	for (uint64_t i = 0; i < cnt; i++) {
		const char *why;

		if (!(i & 15))
			any_peer(decode);
		if (i & 3)
			near_one(decode, &hdr);
		else
			decode_from_corpus(decode, (uint8_t *) &hdr, sizeof(hdr));
		if (i & 1)
			decode_change(decode, (uint8_t *) &hdr, sizeof(hdr));
		why = rx_hdr_check(&conn, &hdr);
		FUZZ_MUST(!why == model_valid(&hdr));
		valid += !why;
	}
	return valid;
}
