/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Proof of authorization keys in a handshake (tcp/wire/wire.h has the messages, doc/decisions/tcp-auth.md the reasons).
 * Each side proves that it has the same key before the other continues. A side with a key does not connect to a side
 * without one.
 *
 *   connecting side        REQUEST(keyed) ->            -> PROOF            -> ...
 *   accepting side                        <- CHALLENGE          <- ADMIT        <- RESPONSE
 *
 * Runs inside an exchange (cm.h), engine lock held. An exchange without keys only costs the test of two pointers.
 */
#ifndef TCP_AUTH_H
#define TCP_AUTH_H

#include "common/domain/domain.h"
#include "tcp/wire/wire.h"

struct fab_av;
struct tcp_cm;
struct tcp_auth;

/* The keys of one end: one key, or, for an accepting end with FI_AV_AUTH_KEY, the keys of an address vector. Both are
 * borrowed during the exchange. Both NULL: no key. */
struct tcp_keyring {
	struct fab_auth_key *key;
	struct fab_av *av;
};

/* Get the key of FI_TCP_AUTH_KEY_FILE for an object without a key of its own; `what` is for the log. 0: *key has a
 * reference for the caller, or is NULL if the parameter is not set. -FI_E*: see fab_auth_read(); then the object must
 * not be opened, since it would let everybody in. No lock needed. */
int tcp_auth_spare(const char *what, struct fab_auth_key **key);

/* Prepare the exchange before its request, which is complete in cm->buf, is sent. 0 or -FI_ENOMEM. */
int tcp_auth_begin(struct tcp_cm *cm);

/*
 * Handle the peer's message, which is complete in cm. 0: the message is for the owner, and its statement about keys is
 * valid (cm->proven is the common key, or NULL without keys). 1: it was about keys and was answered; another message
 * will follow. -FI_E*: the handshake has failed; cm->why is the reason, and the peer was told.
 */
int tcp_auth_receive(struct tcp_cm *cm);

/* Free and wipe nonces and transcript. NULL is allowed. */
void tcp_auth_free(struct tcp_auth *auth);

#endif
