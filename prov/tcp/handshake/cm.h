/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The handshake of a connection: one CM message each way (wire.h), until the stream can be handed to
 * tcp_conn_start(). A struct tcp_cm is one exchange while it waits for the network: the active side's connect,
 * request and answer, or the passive side's wait for a request. MSG endpoints, passive endpoints and the peers of RDM
 * endpoints own one each while it lasts.
 *
 *   active:  IDLE -> CONNECTING -> REPLY -> DONE         passive:  IDLE -> REQUEST -> DONE         any error: -> DONE
 *                                                        with an authorization key:    \-> PROOF -> DONE
 *
 * All calls want the lock of the engine that the exchange runs on.
 */
#ifndef TCP_CM_H
#define TCP_CM_H

#include "common/engine/engine.h"
#include "tcp/handshake/auth.h"
#include "tcp/stream/stream.h"
#include "tcp/wire/wire.h"

enum tcp_cm_state {
	TCP_CM_IDLE,
	TCP_CM_CONNECTING,		/* active: the kernels talk */
	TCP_CM_REPLY,			/* active: request sent, answer to come */
	TCP_CM_REQUEST,			/* passive: request to come */
	TCP_CM_PROOFS,			/* passive: challenged, proof of a key to come (auth.h) */
	TCP_CM_DONE,			/* the owner has been told, or has closed it */
	TCP_CM_STATE_MAX
};

struct tcp_cm;

/* Told once how an exchange ended; the exchange is DONE by then, and the owner takes its descriptor or closes it. */
struct tcp_cm_owner {
	/* The peer's message is here, whole and well-formed: cm->type (CONNREQ for the passive side, CONNRESP or NACK
	 * for the active), cm->peer, cm->data. The descriptor still belongs to cm. */
	void (*done)(struct tcp_cm *cm);
	/* It failed with err, a positive FI_E*; tcp_cm_text() says more. Logged by the owner, if at all. */
	void (*fail)(struct tcp_cm *cm, int err);
};

struct tcp_cm {
	struct fab_source src;
	struct fab_timer timer;		/* deadline of the state */
	struct fab_engine *engine;	/* borrowed */
	const struct tcp_cm_owner *owner;
	void *ctx;			/* the owner's */
	struct fab_list link;		/* the owner's; not in a list: idle */
	enum tcp_cm_state state;
	bool nagged;			/* said that the answer is late */
	int fd;				/* owned */
	int err;			/* to be reported from the engine: connect() failed at once */
	const char *why;		/* what went wrong beyond errno, or NULL */
	union fab_sockaddr local, remote;
	uint64_t since_ns;		/* of the state */
	struct fab_defer defer;

	/* Authorization keys: what this end has, set by the owner before the exchange begins; how far their proof is,
	 * owned; and the one that both ends have, of this end's, or NULL */
	struct tcp_keyring keyring;
	struct tcp_auth *auth;
	struct fab_auth_key *proven;

	/* What the peer said. */
	struct tcp_hello peer;
	bool keyed;			/* a request: the peer has an authorization key */
	uint32_t refusal;		/* a NACK: TCP_REFUSE_*, or 0 */
	uint8_t type;
	uint16_t data_len;		/* bytes in data */
	uint16_t buf_len;		/* bytes of the message to be sent, or of the one read so far */
	union {
		uint8_t buf[sizeof(struct tcp_cm_hdr) + TCP_CM_DATA_MAX];
		struct {
			struct tcp_cm_hdr hdr;
			uint8_t data[TCP_CM_DATA_MAX];
		};
	};
};

/* Say what the message of an endpoint is to announce. */
struct tcp_cm_msg {
	uint8_t type;			/* TCP_CM_CONNREQ ... */
	uint16_t ext;			/* TCP_EXT_* beside TCP_EXT_BASE */
	uint64_t incarnation;		/* of the endpoint; 0 (with NACK): announce nothing */
	const void *data;		/* private data, TCP_CM_DATA_MAX bytes at most */
	size_t data_len;
	uint8_t refusal;		/* NACK: TCP_REFUSE_*, or 0 */
};

/* A new exchange; ctx is for the owner's callbacks. NULL: no memory. Ends with tcp_cm_free(). */
struct tcp_cm *tcp_cm_new(struct fab_engine *engine, const struct tcp_cm_owner *owner, void *ctx);
/*
 * Connect to remote, from local unless that is NULL or the wildcard, send msg, wait for the answer. fd: a bound
 * socket to use, which cm then owns on success, or -1. 0: owner->done or owner->fail will be called later, from the
 * engine, whatever the network does; -FI_EMFILE, -FI_ENOMEM, -FI_EADDRNOTAVAIL ...: nothing was begun.
 */
int tcp_cm_connect(struct tcp_cm *cm, int fd, const union fab_sockaddr *local, const union fab_sockaddr *remote,
		   const struct tcp_cm_msg *msg);
/* Wait for the request on a descriptor accepted from remote, which cm owns on success. 0 or -errno. */
int tcp_cm_await(struct tcp_cm *cm, int fd, const union fab_sockaddr *remote);
/* Take the descriptor out of a DONE exchange: the caller owns it. */
int tcp_cm_take_fd(struct tcp_cm *cm);
/* Hand what a DONE exchange has got to one for another engine, whose lock need not be held: the descriptor, what the
 * peer said, the key proven. NULL: no memory. */
struct tcp_cm *tcp_cm_pass(struct tcp_cm *cm, struct fab_engine *to);
/* End an exchange in any state: nobody is told any more, the descriptor is closed; memory goes when the engine cannot
 * reach it any more. NULL is allowed. */
void tcp_cm_free(struct tcp_cm *cm);
/* One sentence about how an exchange failed: both addresses, the error, what to look at. */
void tcp_cm_text(const struct tcp_cm *cm, int err, char *text, size_t size);

/* Send one CM message over a fresh stream, in one piece. 0 or -errno; no lock needed. */
int tcp_cm_send(int fd, const struct tcp_cm_msg *msg);

/* For auth.c: a message as bytes, and how many; and what the message in cm says, which is whole. */
size_t tcp_cm_encode(const struct tcp_cm_msg *msg, uint8_t *buf);
void tcp_cm_decode(struct tcp_cm *cm);

#endif
