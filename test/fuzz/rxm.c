/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets of ofi_rxm, over tcp. An input is four bytes like those of tcp_stream.c, the private data of the peer's
 * request or answer, and what it sends then, piece by piece.
 *
 *   byte 0   1 the endpoint connects, 2 the peer's tcp speaks our extension, 4 it is in no address vector
 *   16, 24   struct rxm_cm_rsp or struct rxm_cm_req
 *   pieces   two bytes, little-endian: length, and in the upper two bits what it is: 0 a packet, in a frame of tcp's;
 *            1 the answer to a read; 2 acknowledges as many frames as its first byte says; 3 bytes for tcp
 */
#include "fuzz/fuzz.h"

#include <arpa/inet.h>
#include <string.h>
#include "fuzz/tcp_play.h"
#include "rxm/wire.h"
#include "tcp/wire/wire.h"

#define BYTES_MAX	16384

static uint8_t bytes[BYTES_MAX];
static size_t used;

static void add(const void *data, size_t len)
{
	FUZZ_MUST(len <= BYTES_MAX - used);
	if (len)
		memcpy(bytes + used, data, len);
	used += len;
}

/* The next n bytes of the input, zeros behind its end. */
static void take(void *out, size_t n, const uint8_t **data, size_t *len)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *) out)[i] = fuzz_byte(data, len);
}

static void add_hello(uint8_t how, const uint8_t **data, size_t *len)
{
	uint8_t cm[sizeof(struct rxm_cm_req)];
	size_t cm_len = how & 1 ? sizeof(struct rxm_cm_rsp) : sizeof(struct rxm_cm_req);
	struct tcp_cm_hdr hdr = {
		.version = TCP_CM_VERSION, .type = how & 1 ? TCP_CM_CONNRESP : TCP_CM_CONNREQ,
		.seg_size = htons(cm_len), .conn_data = TCP_CM_CONN_DATA,
	};

	if (how & 2) {
		hdr.ext = htonl(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AMO);
		hdr.incarnation = 1;
		hdr.eager_max = htonl(65536);
		hdr.credit = htonl(1 << 20);
	}
	take(cm, cm_len, data, len);
	add(&hdr, sizeof(hdr));
	add(cm, cm_len);
}

static void add_frame(enum tcp_wire_op op, const void *payload, size_t len)
{
	const struct tcp_hdr hdr = {
		.version = TCP_WIRE_VERSION, .op = op, .hdr_size = sizeof(hdr), .size = sizeof(hdr) + len,
	};

	add(&hdr, sizeof(hdr));
	add(payload, len);
}

static void add_piece(uint8_t how, unsigned kind, const uint8_t *data, size_t len)
{
	uint32_t cnt = len ? data[0] : 1;
	const struct {
		struct tcp_hdr hdr;
		struct tcp_ack ack;
	} ack = {
		{ .version = TCP_WIRE_VERSION, .op = TCP_WIRE_ACK, .hdr_size = sizeof(ack), .size = sizeof(ack) },
		{ .cnt = cnt },
	};

	if (kind == 0)
		add_frame(TCP_WIRE_MSG, data, len);
	else if (kind == 1)
		add_frame(TCP_WIRE_READ_RSP, data, len);
	else if (kind == 2 && (how & 2))
		add(&ack, sizeof(ack));
	else if (kind == 3)
		add(data, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t how = fuzz_byte(&data, &len);
	struct tcp_play play = { .rxm = true, .dial = how & 1, .stranger = how & 4 };

	play_bytes(&play, &data, &len);
	used = 0;
	add_hello(how, &data, &len);
	play.hello_len = used;
	while (len > 2 && used < BYTES_MAX / 2) {
		unsigned word = data[0] | data[1] << 8;
		size_t n = word & 0x3fff;

		data += 2;
		len -= 2;
		n = n < len ? n : len;
		n = n < BYTES_MAX / 4 ? n : BYTES_MAX / 4;
		add_piece(how, word >> 14, data, n);
		data += n;
		len -= n;
	}
	tcp_play(&play, bytes, used);
	return 0;
}
