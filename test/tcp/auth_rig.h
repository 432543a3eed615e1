/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An exchange of prov/tcp/cm.c with authorization keys, on an engine of its own, and the raw other end, made of what
 * wire.h says, byte by byte. Everything is asserted.
 */
#ifndef TEST_TCP_AUTH_RIG_H
#define TEST_TCP_AUTH_RIG_H

#include <stdbool.h>
#include "common/progress.h"
#include "raw.h"
#include "tcp/cm.h"

#define HDR	sizeof(struct tcp_cm_hdr)
#define KEY	"the key of this job, seventeen"
#define KEY_LEN	(sizeof(KEY) - 1)

struct fixture {
	struct fab_progress progress;
	struct fab_auth_key *key;	/* KEY */
	struct tcp_cm *cm;
	int listener, peer;		/* peer: the raw end of the connection; the test's, closed by teardown() */
	struct sockaddr_in connecting, accepting;	/* the two ends */
	bool over;			/* the exchange has ended, with this error and text */
	int err;
	char text[256];
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
/* One pass of the engine; arg is the fixture (raw_drive). */
void drive(void *arg);
void drive_until_over(struct fixture *f);
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
