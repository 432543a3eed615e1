/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Proof of authorization keys in a handshake (wire.h has the messages, doc/decisions/tcp-auth.md the reasons). Both
 * sides prove that they have the same key before either goes on; a side without a key and a side with one do not
 * meet.
 *
 *   connecting side        REQUEST(keyed) ->            -> PROOF            -> ...
 *   accepting side                        <- CHALLENGE          <- ADMIT        <- RESPONSE
 *
 * Runs inside an exchange (cm.h), engine lock held. An exchange without keys costs a test of two pointers.
 */
#ifndef TCP_AUTH_H
#define TCP_AUTH_H

#include "common/domain/domain.h"
#include "tcp/wire/wire.h"

struct fab_av;
struct tcp_cm;
struct tcp_auth;

/* What one end may prove: one key, or (accepting, FI_AV_AUTH_KEY) any of those of an address vector. Both borrowed
 * for as long as the exchange lasts; both NULL: this end has no key. */
struct tcp_keyring {
	struct fab_auth_key *key;
	struct fab_av *av;
};

/* The exchange is about to send its request, which is complete in cm->buf. 0 or -FI_ENOMEM. */
int tcp_auth_begin(struct tcp_cm *cm);

/*
 * The peer's message is in cm, whole. 0: it is the owner's, and what it says of keys is in order (cm->proven is the key
 * that both have, NULL without keys). 1: it was about keys, and answered; the next message is to come. -FI_E*: the
 * handshake has failed, cm->why says why, and the peer has been told.
 */
int tcp_auth_receive(struct tcp_cm *cm);

/* Forget nonces and transcript. NULL is allowed. */
void tcp_auth_free(struct tcp_auth *auth);

#endif
