/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Frames on a tcp stream that is up. An input is four bytes, which say who listens and with what operations
 * outstanding, and then what the peer sends behind a request that is in order.
 *
 *   byte 0   1 the peer speaks our extension, 2 it has the other byte order, 4 MSG, 8 it is in no address vector
 *   byte 1   enum PLAY_RECV ..., byte 2 enum PLAY_SEND ..., byte 3 how many bytes come at a time
 */
#include "fuzz/fuzz.h"

#include <byteswap.h>
#include <string.h>
#include "fuzz/hello.h"
#include "fuzz/tcp_play.h"

#define FRAMES_MAX	8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t bytes[sizeof(struct hello) + FRAMES_MAX];
	uint8_t how = fuzz_byte(&data, &len);
	struct hello hello = hello_make(PLAY_PEER, how & 1, 256, 4096);
	struct tcp_play play = { .msg = how & 4, .stranger = how & 8, .hello_len = sizeof(hello) };

	if (how & 2)
		hello.hdr.conn_data = bswap_64(TCP_CM_CONN_DATA);
	play_bytes(&play, &data, &len);
	if (len > FRAMES_MAX)
		len = FRAMES_MAX;
	memcpy(bytes, &hello, sizeof(hello));
	if (len)
		memcpy(bytes + sizeof(hello), data, len);
	tcp_play(&play, bytes, sizeof(hello) + len);
	return 0;
}
