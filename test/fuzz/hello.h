/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The request of an RDM peer of tcp, in order.
 */
#ifndef TEST_FUZZ_HELLO_H
#define TEST_FUZZ_HELLO_H

#include <arpa/inet.h>
#include <stdbool.h>
#include "tcp/wire/wire.h"

struct hello {
	struct tcp_cm_hdr hdr;
	struct tcp_rdm_cm rdm;
};

/* Of a peer that listens at this port. ext: it speaks our extension, and takes so long messages and so much credit. */
static inline struct hello hello_make(uint16_t port, bool ext, uint32_t eager_max, uint32_t credit)
{
	struct hello hello = {
		.hdr = {
			.version = TCP_CM_VERSION, .type = TCP_CM_CONNREQ, .seg_size = htons(sizeof(hello.rdm)),
			.conn_data = TCP_CM_CONN_DATA,
		},
		.rdm = { .port = htons(port), .pid = htonl(1) },
	};

	if (ext) {
		hello.hdr.ext = htonl(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AMO | TCP_EXT_TAMO | TCP_EXT_COLL |
				      TCP_EXT_PARK | TCP_EXT_GROUP | TCP_EXT_COMMIT | TCP_EXT_RIOV |
				      TCP_EXT_NAK);
		hello.hdr.incarnation = 1;
		hello.hdr.eager_max = htonl(eager_max);
		hello.hdr.credit = htonl(credit);
	}
	return hello;
}

#endif
