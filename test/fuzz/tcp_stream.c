/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames on a tcp stream that is up. An input is four bytes, which say who listens and with what operations
 * outstanding, and then what the peer sends behind a request that is in order.
 *
 *   byte 0   1 the peer speaks our extension, 2 it has the other byte order, 4 MSG, 8 it is in no address vector
 *   byte 1   enum PLAY_RECV ..., byte 2 enum PLAY_SEND ..., byte 3 how many bytes come at a time
 */
#include "fuzz/fuzz.h"

#include <arpa/inet.h>
#include <byteswap.h>
#include <string.h>
#include "fuzz/tcp_play.h"
#include "tcp/wire/wire.h"

#define FRAMES_MAX	8192

struct hello {
	struct tcp_cm_hdr hdr;
	struct tcp_rdm_cm rdm;
};

static struct hello make_hello(uint8_t how)
{
	struct hello hello = {
		.hdr = {
			.version = TCP_CM_VERSION, .type = TCP_CM_CONNREQ, .seg_size = htons(sizeof(hello.rdm)),
			.conn_data = how & 2 ? bswap_64(TCP_CM_CONN_DATA) : TCP_CM_CONN_DATA,
		},
		.rdm = { .port = htons(PLAY_PEER), .pid = htonl(1) },
	};

	if (how & 1) {
		hello.hdr.ext = htonl(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AMO | TCP_EXT_TAMO | TCP_EXT_COLL |
				      TCP_EXT_PARK | TCP_EXT_GROUP | TCP_EXT_COMMIT | TCP_EXT_RIOV |
				      TCP_EXT_NAK);
		hello.hdr.incarnation = 1;
		hello.hdr.eager_max = htonl(256);
		hello.hdr.credit = htonl(4096);
	}
	return hello;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t bytes[sizeof(struct hello) + FRAMES_MAX];
	uint8_t how = fuzz_byte(&data, &len);
	struct hello hello = make_hello(how);
	struct tcp_play play = { .msg = how & 4, .stranger = how & 8, .hello_len = sizeof(hello) };

	play_bytes(&play, &data, &len);
	if (len > FRAMES_MAX)
		len = FRAMES_MAX;
	memcpy(bytes, &hello, sizeof(hello));
	if (len)
		memcpy(bytes + sizeof(hello), data, len);
	tcp_play(&play, bytes, sizeof(hello) + len);
	return 0;
}
