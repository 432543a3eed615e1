/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The first message of a tcp connection, in any state of its exchange, with any private data: it is taken if and only
 * if the format allows it, and what is read from it is what the bytes say.
 */
#include "fuzz/decode/decode.h"

#include <string.h>
#include "fuzz/hello.h"
#include "tcp/handshake/cm.c"
#include "tcp/peer/request.c"

#define HDR	sizeof(struct tcp_cm_hdr)

static uint64_t number(const uint8_t *at, unsigned len)
{
	uint64_t value = 0;

	while (len--)
		value = value << 8 | *at++;
	return value;
}

/* The conn_data of this end's byte order, x86's, and of the other. */
static bool one_at(const uint8_t *at, unsigned which)
{
	for (unsigned i = 0; i < 8; i++) {
		if (at[i] != (i == which))
			return false;
	}
	return true;
}

static bool model_valid(const struct tcp_cm *cm)
{
	const uint8_t *b = cm->buf;
	bool order = one_at(b + 24, 0) || one_at(b + 24, 7);

	if (b[0] != 3 || number(b + 2, 2) > 256)
		return false;
	switch (cm->state) {
	case TCP_CM_REQUEST:
		return b[1] == 0 && order;
	case TCP_CM_REPLY:
		return b[1] == 6 || ((b[1] == 1 || b[1] == 32 || b[1] == 34) && order);
	case TCP_CM_PROOFS:
		return b[1] == 33 && order;
	default:
		return false;
	}
}

static void check_meaning(const struct tcp_cm *cm)
{
	const uint8_t *b = cm->buf;
	uint64_t ext = number(b + 4, 4);
	bool ours = (ext & TCP_EXT_MAGIC_MASK) == TCP_EXT_MAGIC, base = ours && (ext & TCP_EXT_BASE);

	FUZZ_MUST(cm->type == b[1] && cm->data_len == number(b + 2, 2));
	FUZZ_MUST(cm->peer.ext == base && cm->peer.swap == one_at(b + 24, 7));
	FUZZ_MUST(cm->peer.incarnation == (base ? number(b + 8, 8) : 0));
	FUZZ_MUST(cm->peer.eager_max == (base ? number(b + 16, 4) : 0));
	FUZZ_MUST(cm->peer.credit == (base ? number(b + 20, 4) : 0));
	FUZZ_MUST(!(cm->peer.features & ~(base ? (uint16_t) ext : 0)));
	FUZZ_MUST(cm->keyed == (ours && (ext & TCP_EXT_AUTH)));
	FUZZ_MUST(!cm->refusal || (cm->keyed && b[1] == 6));
	FUZZ_MUST(tcp_cm_kind(cm) <= TCP_KIND_RXM);
}

/* Who asks, as an RDM endpoint reads it. */
static void check_request(const struct tcp_ep *ep, const struct tcp_cm *cm)
{
	const uint8_t *data = cm->data;
	uint8_t known[12] = { 0 };
	struct tcp_request req;
	bool ctx = cm->peer.features & TCP_EXT_CTX;

	if (!request_read_ctx(cm, &req)) {
		FUZZ_MUST(ctx);
		FUZZ_MUST(cm->data_len < 16 || number(data + cm->data_len - 6, 2) - 256 < 0xffff - 256);
		return;
	}
	FUZZ_MUST(!ctx || cm->data_len >= 16);
	FUZZ_MUST(req.data_len == cm->data_len - (ctx ? 8 : 0));
	FUZZ_MUST(req.tx_ctx < TCP_CTX_MAX || req.tx_ctx == TCP_CTX_NONE);
	FUZZ_MUST(req.rx_ctx == (ctx ? number(data + cm->data_len - 8, 2) : 0));
	/* what is missing is 0 */
	memcpy(known, data, fab_min(sizeof(known), (size_t) req.data_len));
	if (request_read_addr(ep, cm, &req) && cm->peer.incarnation != ep->incarnation)
		FUZZ_MUST(fab_addr_port(&req.addr.sa) == number(known + 2, 2) ||
			  fab_addr_port(&req.addr.sa) == number(known + 10, 2));
}

static void near_one(struct decode *decode, struct tcp_cm *cm)
{
	static const uint8_t types[] = { TCP_CM_CONNREQ, TCP_CM_CONNREQ, TCP_CM_CONNRESP, TCP_CM_NACK, TCP_CM_CHALLENGE,
					 TCP_CM_PROOF, TCP_CM_ADMIT, 99 };
	uint64_t how = decode_draw(decode);
	struct hello hello = hello_make((uint16_t) (how >> 48), how & 1, 256, 4096);

	memcpy(cm->buf, &hello, sizeof(hello));
	cm->buf[1] = types[how >> 1 & 7];
	if (how & 16)
		cm->buf[3] = (uint8_t) (how >> 8);
	if (how & 32)
		cm->buf[6] = (uint8_t) (how >> 16);	/* features */
	if (how & 64)
		cm->buf[7] = (uint8_t) (how >> 24);
	if (how & 128) {
		uint64_t swapped = bswap_64(TCP_CM_CONN_DATA);

		memcpy(cm->buf + 24, &swapped, sizeof(swapped));
	}
}

uint64_t decode_hellos(struct decode *decode, uint64_t cnt)
{
	static const enum tcp_cm_state states[] = { TCP_CM_REQUEST, TCP_CM_REQUEST, TCP_CM_REPLY, TCP_CM_PROOFS };
	static struct tcp_ep ep = { .incarnation = 1 };
	static struct tcp_cm cm;
	uint64_t valid = 0;

	cm.remote.sa.sa_family = ep.base.name.sa.sa_family = AF_INET;
	for (uint64_t i = 0; i < cnt; i++) {
		const char *why;

		cm.state = states[decode_draw(decode) >> 5 & 3];
		if (i & 3)
			near_one(decode, &cm);
		else
			decode_from_corpus(decode, cm.buf, HDR + 24);
		if (i & 1)
			decode_change(decode, cm.buf, i & 2 ? HDR : HDR + 24);
		tcp_cm_decode(&cm);
		why = cm_check(&cm);
		FUZZ_MUST(!why == model_valid(&cm));
		if (why)
			continue;
		valid++;
		check_meaning(&cm);
		if (cm.state == TCP_CM_REQUEST)
			check_request(&ep, &cm);
	}
	return valid;
}
