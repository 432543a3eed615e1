/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The handshake of a connection: one CM message in each direction (tcp/wire/wire.h), until the stream is passed to
 * tcp_conn_start(). A struct tcp_cm is one exchange while it waits for the network: on the active side for connect and
 * answer, on the passive side for a request. MSG endpoints, passive endpoints and peers of RDM endpoints own their
 * exchanges.
 *
 *   active:  IDLE -> CONNECTING -> REPLY -> DONE         passive:  IDLE -> REQUEST -> DONE         any error: -> DONE
 *                                                        with an authorization key:    \-> PROOF -> DONE
 *
 * A peer of this host is tried over a Unix socket first (tcp/local/local.h): IDLE -> REPLY. If it does not answer the
 * greeting properly, TCP follows: REPLY -> CONNECTING. The peer's answer about rings, if they were offered, comes after
 * its acceptance: REPLY -> RINGS -> DONE. So a stream that has begun can send.
 *
 * All functions require the lock of the exchange's engine.
 */
#ifndef TCP_CM_H
#define TCP_CM_H

#include "common/engine/engine.h"
#include "tcp/handshake/auth.h"
#include "tcp/local/local.h"
#include "tcp/stream/stream.h"
#include "tcp/wire/wire.h"

enum tcp_cm_state {
	TCP_CM_IDLE,
	TCP_CM_CONNECTING,		/* active: connect() has not finished */
	TCP_CM_REPLY,			/* active: request sent, waiting for the answer */
	TCP_CM_RINGS,			/* active: accepted, waiting for the answer about rings */
	TCP_CM_REQUEST,			/* passive: waiting for the request */
	TCP_CM_PROOFS,			/* passive: challenge sent, waiting for the proof of a key (auth.h) */
	TCP_CM_DONE,			/* the owner was told, or has closed it */
	TCP_CM_STATE_MAX
};

struct tcp_cm;

/* Callbacks for the end of an exchange, of which one is called once. The exchange is DONE; the owner takes its
 * socket or closes it. */
struct tcp_cm_owner {
	/* The peer's message is complete and well-formed: cm->type (CONNREQ on the passive side, CONNRESP or NACK on
	 * the active side), cm->peer, cm->data. cm still owns the socket. */
	void (*done)(struct tcp_cm *cm);
	/* The exchange has failed with err (a positive FI_E*); tcp_cm_text() describes the failure. The owner logs it
	 * if it wants to. */
	void (*fail)(struct tcp_cm *cm, int err);
};

struct tcp_cm {
	struct fab_source src;
	struct fab_timer timer;		/* deadline of the state */
	struct fab_engine *engine;	/* borrowed */
	const struct tcp_cm_owner *owner;
	void *ctx;			/* the owner's */
	struct fab_list link;		/* for the owner's lists; empty while in none */
	uint8_t host;			/* the listener's (listen.c) */
	enum tcp_cm_state state;
	bool nagged;			/* the late answer was logged */
	bool shared_memory;		/* active: offer it to a peer of this host; set by the owner */
	struct tcp_link sock;		/* owned */
	int err;			/* connect() failed at once with this; the engine reports it */
	const char *why;		/* the reason beyond errno, or NULL */
	union fab_sockaddr local, remote;
	uint64_t since_ns;		/* start of the state */
	uint64_t reply_ns;		/* active: how long it has waited for the answer, when it is DONE */
	struct fab_defer defer;

	/* Authorization keys: the keys of this end, set by the owner before the exchange begins; the state of their
	 * proof, owned; and the key, of this end, that both ends have, or NULL. */
	struct tcp_keyring keyring;
	struct tcp_auth *auth;
	struct fab_auth_key *proven;

	/* The peer's message. */
	struct tcp_hello peer;
	bool keyed;			/* a request: the peer has an authorization key */
	uint32_t refusal;		/* a NACK: TCP_REFUSE_*, or 0 */
	uint8_t type;
	uint16_t data_len;		/* length of data */
	uint16_t buf_len;		/* bytes of the message to send, or read so far */
	union {
		uint8_t buf[sizeof(struct tcp_cm_hdr) + TCP_CM_DATA_MAX];
		struct {
			struct tcp_cm_hdr hdr;
			uint8_t data[TCP_CM_DATA_MAX];
		};
	};
};

/* The contents of an endpoint's message. */
struct tcp_cm_msg {
	uint8_t type;			/* TCP_CM_CONNREQ ... */
	uint16_t ext;			/* TCP_EXT_* beside TCP_EXT_BASE */
	uint64_t incarnation;		/* of the endpoint; 0 (with NACK): no announcement */
	const void *data;		/* private data, at most TCP_CM_DATA_MAX bytes */
	size_t data_len;
	uint8_t refusal;		/* NACK: TCP_REFUSE_*, or 0 */
};

/* Make an exchange; ctx is for the owner's callbacks. NULL: no memory. The caller frees it with tcp_cm_free(). */
struct tcp_cm *tcp_cm_new(struct fab_engine *engine, const struct tcp_cm_owner *owner, void *ctx);
/*
 * Connect to remote, from local unless that is NULL or the wildcard; send msg; wait for the answer. A port in local is
 * that of the caller's listener, for a peer of this host; a TCP socket does not use it. fd is a bound TCP socket to
 * use, which cm owns on success, or -1. 0: owner->done or owner->fail will be called later by the engine.
 * -FI_EMFILE, -FI_ENOMEM, -FI_EADDRNOTAVAIL ...: nothing was begun.
 */
int tcp_cm_connect(struct tcp_cm *cm, int fd, const union fab_sockaddr *local, const union fab_sockaddr *remote,
		   const struct tcp_cm_msg *msg);
/* Wait for the request on a socket that was accepted by a listener at `at`: a TCP socket from remote, or, without
 * remote, a Unix socket, over which the peer's greeting comes first. On success cm owns it. 0 or -errno. */
int tcp_cm_await(struct tcp_cm *cm, const struct tcp_link *link, const union fab_sockaddr *at,
		 const union fab_sockaddr *remote);
/* Take the socket out of an exchange that is DONE. The caller owns it. */
struct tcp_link tcp_cm_take_sock(struct tcp_cm *cm);
/* The same, and start conn's stream with it and the peer's announcements: tcp_conn_start(). 0; -errno: the socket was
 * closed. */
int tcp_cm_start(struct tcp_cm *cm, struct tcp_conn *conn);
/* Move the result of an exchange that is DONE to a new exchange on another engine: socket, peer's message, proven
 * key. The lock of the other engine need not be held. NULL: no memory. */
struct tcp_cm *tcp_cm_pass(struct tcp_cm *cm, struct fab_engine *to);
/* End an exchange in any state: no callback comes any more, and the socket is closed. The memory is freed when the
 * engine cannot reach it any more. NULL is allowed. */
void tcp_cm_free(struct tcp_cm *cm);
/* Describe the failure of an exchange in a sentence: both addresses, the error, and advice. */
void tcp_cm_text(const struct tcp_cm *cm, int err, char *text, size_t size);

/* Send one CM message over a new stream, as a whole. 0 or -errno; no lock needed. */
int tcp_cm_send(int fd, const struct tcp_cm_msg *msg);

/* For auth.c: encode a message, and return its length; decode the header in cm, which may be invalid. */
size_t tcp_cm_encode(const struct tcp_cm_msg *msg, uint8_t *buf);
void tcp_cm_decode(struct tcp_cm *cm);

#endif
