/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An exchange with authorization keys, and its raw other end, made of what wire.h says, byte by byte. Everything is
 * asserted.
 */
#ifndef TEST_TCP_AUTH_RIG_H
#define TEST_TCP_AUTH_RIG_H

#include "exchange.h"

#define HDR	sizeof(struct tcp_cm_hdr)
#define KEY	"the key of this job, seventeen"
#define KEY_LEN	(sizeof(KEY) - 1)

struct fixture {
	struct exchange x;
	struct fab_auth_key *key;	/* KEY */
	int listener, peer;		/* peer: the raw end of the connection; the test's, closed by teardown() */
	struct sockaddr_in connecting, accepting;	/* the two ends */
};

/* What was said, for a mac. */
struct said {
	struct cm_bytes request, challenge;
	uint8_t nonce[TCP_NONCE_LEN];
};

extern bool leave_out_addresses;	/* of a mac, as both sides do with FI_TCP_AUTH_ADDRESS off */

/* All but the connection. */
void setup(struct fixture *f);
void teardown(struct fixture *f);
/* The exchange ends with this error, nothing is proved, and its text names both ends. */
void check_refused(struct fixture *f, int err);
/* The mac of what was said by this key, in this role (wire.h). */
void make_mac(const struct fixture *f, const char *role, const char *key, size_t key_len, const struct said *said,
	      uint8_t mac[TCP_MAC_LEN]);
void send_msg(const struct fixture *f, const struct cm_bytes *msg);
/* The next message of the exchange; the key is not in it. */
struct cm_bytes recv_msg(struct fixture *f);
/* That is a refusal, for this reason (TCP_REFUSE_*). */
void expect_refusal(struct fixture *f, uint32_t why);

#endif
