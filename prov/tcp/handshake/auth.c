/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See auth.h. The hash covers what both sides have sent so far: the request, header and private data; the challenge;
 * the nonce of the proof; and both addresses of the connection. Its first word differs between the sides, so that a
 * proof cannot be sent back to its sender. It contains both nonces, so that a proof cannot be replayed.
 */
#include "tcp/handshake/auth.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "base/hmac.h"
#include "common/av/av.h"
#include "tcp/handshake/cm.h"
#include "tcp/handshake/kind.h"
#include "tcp/params/params.h"

#define HDR_LEN		sizeof(struct tcp_cm_hdr)
#define ROLE_LEN	16

/* The state of an exchange with keys; each side has its own states. */
enum stage {
	ASKED,				/* connecting: request sent, waiting for the challenge */
	PROVED,				/* connecting: proof sent, waiting for the peer's proof */
	CHALLENGED,			/* accepting: challenge sent, waiting for the proof */
	ADMITTED,			/* both sides have proved their key */
};

struct tcp_auth {
	enum stage stage;
	size_t request_len;
	uint8_t request[HDR_LEN + TCP_CM_DATA_MAX];
	uint8_t challenge[HDR_LEN + sizeof(struct tcp_challenge)];
	uint8_t nonce[TCP_NONCE_LEN];	/* of the proof */
};

static const char connecting_role[ROLE_LEN] = "weft1 connect";
static const char accepting_role[ROLE_LEN] = "weft1 accept";

static bool auth_has_keys(const struct tcp_cm *cm)
{
	return cm->keyring.key || cm->keyring.av;
}

static struct tcp_auth *auth_new(enum stage stage, const struct tcp_cm *cm, size_t len)
{
	struct tcp_auth *auth = calloc(1, sizeof(*auth));

	if (!auth)
		return NULL;
	auth->stage = stage;
	auth->request_len = len;
	memcpy(auth->request, cm->buf, len);
	return auth;
}

/* ---- the hash ---- */

static size_t auth_put(uint8_t *buf, size_t at, const void *data, size_t len)
{
	memcpy(buf + at, data, len);
	return at + len;
}

/* Append an address of the connection: the host in 16 bytes, and the port. */
static size_t auth_put_addr(uint8_t *buf, size_t at, const union fab_sockaddr *addr)
{
	uint16_t port = htobe16(fab_addr_port(&addr->sa));
	uint8_t host[16] = { 0 };

	if (addr->sa.sa_family == AF_INET6)
		memcpy(host, &addr->sin6.sin6_addr, sizeof(addr->sin6.sin6_addr));
	else
		memcpy(host, &addr->sin.sin_addr, sizeof(addr->sin.sin_addr));
	return auth_put(buf, auth_put(buf, at, host, sizeof(host)), &port, sizeof(port));
}

/* Compute the proof of a side with this role and this key. 0 or -errno. */
static int auth_make_mac(const struct tcp_cm *cm, const char role[ROLE_LEN], const struct fab_auth_key *key,
			 uint8_t mac[FAB_MAC_LEN])
{
	const struct tcp_auth *auth = cm->auth;
	bool accepting = auth->stage == CHALLENGED;
	uint8_t buf[ROLE_LEN + sizeof(auth->request) + sizeof(auth->challenge) + TCP_NONCE_LEN + 2 * 18];
	size_t len = auth_put(buf, 0, role, ROLE_LEN);

	len = auth_put(buf, len, auth->request, auth->request_len);
	len = auth_put(buf, len, auth->challenge, sizeof(auth->challenge));
	len = auth_put(buf, len, auth->nonce, sizeof(auth->nonce));
	if (tcp_params.auth_address) {
		len = auth_put_addr(buf, len, accepting ? &cm->remote : &cm->local);
		len = auth_put_addr(buf, len, accepting ? &cm->local : &cm->remote);
	}
	return fab_hmac(key->bytes, key->len, buf, len, mac);
}

/* ---- sending messages ---- */

static int auth_send_msg(const struct tcp_cm *cm, uint8_t type, const void *data, size_t len)
{
	return tcp_cm_send(cm->sock.fd, &(struct tcp_cm_msg) { .type = type, .data = data, .data_len = len });
}

/* Tell the peer that it is refused, and fail with err. The peer may or may not receive that. */
static int auth_refuse(struct tcp_cm *cm, uint8_t refusal, int err, const char *why)
{
	tcp_cm_send(cm->sock.fd, &(struct tcp_cm_msg) { .type = TCP_CM_NACK, .refusal = refusal });
	cm->why = why;
	return err;
}

static int auth_fail(struct tcp_cm *cm, int err, const char *why)
{
	cm->why = why;
	return err;
}

/* ---- accepting side ---- */

static int auth_send_challenge(struct tcp_cm *cm)
{
	struct tcp_challenge challenge;
	int ret = fab_nonce(challenge.nonce, sizeof(challenge.nonce));

	if (ret)
		return ret;
	/* the same bytes as tcp_cm_send() sends */
	tcp_cm_encode(&(struct tcp_cm_msg) { .type = TCP_CM_CHALLENGE, .data = &challenge,
					     .data_len = sizeof(challenge) }, cm->auth->challenge);
	return auth_send_msg(cm, TCP_CM_CHALLENGE, &challenge, sizeof(challenge));
}

/* Handle a request. */
static int auth_take_request(struct tcp_cm *cm)
{
	if (!auth_has_keys(cm) && !cm->keyed)
		return 0;
	if (!auth_has_keys(cm))
		return auth_refuse(cm, TCP_REFUSE_NO_KEY, -FI_EACCES,
				   "it has an authorization key, and this end has none");
	if (!cm->keyed)
		return auth_refuse(cm, TCP_REFUSE_KEY_WANTED, -FI_EACCES,
				   "this end has an authorization key, and it has none (or runs another libfabric)");
	cm->auth = auth_new(CHALLENGED, cm, HDR_LEN + cm->data_len);
	if (!cm->auth)
		return -FI_ENOMEM;
	return auth_send_challenge(cm) ? auth_fail(cm, -FI_EIO, "the challenge could not be made or sent") : 1;
}

/* True if the peer's proof was made with this key. ctx is the exchange. */
static bool auth_proves(struct fab_auth_key *key, void *ctx)
{
	const struct tcp_cm *cm = ctx;
	struct tcp_proof proof;
	uint8_t mac[FAB_MAC_LEN];

	memcpy(&proof, cm->data, sizeof(proof));
	return !auth_make_mac(cm, connecting_role, key, mac) && fab_mac_equal(mac, proof.mac);
}

static struct fab_auth_key *auth_proven_key(struct tcp_cm *cm)
{
	if (cm->keyring.av)
		return fab_av_key_find(cm->keyring.av, auth_proves, cm);
	return auth_proves(cm->keyring.key, cm) ? cm->keyring.key : NULL;
}

/* Put the request back in place of the messages after it. */
static void auth_restore_request(struct tcp_cm *cm)
{
	memcpy(cm->buf, cm->auth->request, cm->auth->request_len);
	cm->buf_len = cm->auth->request_len;
	tcp_cm_decode(cm);
}

static int auth_take_proof(struct tcp_cm *cm)
{
	struct tcp_auth *auth = cm->auth;
	struct tcp_admit admit;

	if (cm->data_len != sizeof(struct tcp_proof))
		return auth_fail(cm, -FI_EPROTO, "its proof of an authorization key has a wrong length");
	memcpy(auth->nonce, cm->data, sizeof(auth->nonce));
	cm->proven = auth_proven_key(cm);
	if (!cm->proven)
		return auth_refuse(cm, TCP_REFUSE_WRONG_KEY, -FI_EACCES,
				   "it does not have this end's authorization key");
	if (auth_make_mac(cm, accepting_role, cm->proven, admit.mac) ||
	    auth_send_msg(cm, TCP_CM_ADMIT, &admit, sizeof(admit)))
		return auth_fail(cm, -FI_EIO, "the proof of the authorization key could not be made or sent");
	auth_restore_request(cm);
	auth->stage = ADMITTED;
	return 0;
}

/* ---- connecting side ---- */

int tcp_auth_begin(struct tcp_cm *cm)
{
	if (!auth_has_keys(cm))
		return 0;
	cm->auth = auth_new(ASKED, cm, cm->buf_len);
	return cm->auth ? 0 : -FI_ENOMEM;
}

static int auth_take_challenge(struct tcp_cm *cm)
{
	struct tcp_auth *auth = cm->auth;
	struct tcp_proof proof;

	if (!auth || auth->stage != ASKED || cm->data_len != sizeof(struct tcp_challenge))
		return auth_fail(cm, -FI_EPROTO, "its challenge was not asked for, or has a wrong length");
	memcpy(auth->challenge, cm->buf, sizeof(auth->challenge));
	if (fab_nonce(auth->nonce, sizeof(auth->nonce)) ||
	    auth_make_mac(cm, connecting_role, cm->keyring.key, proof.mac))
		return auth_fail(cm, -FI_EIO, "the proof of the authorization key could not be made");
	memcpy(proof.nonce, auth->nonce, sizeof(proof.nonce));
	auth->stage = PROVED;
	return auth_send_msg(cm, TCP_CM_PROOF, &proof, sizeof(proof)) ?
	       auth_fail(cm, -FI_ECONNRESET, "the proof of the authorization key could not be sent") : 1;
}

static int auth_take_admit(struct tcp_cm *cm)
{
	struct tcp_auth *auth = cm->auth;
	uint8_t mac[FAB_MAC_LEN];

	if (!auth || auth->stage != PROVED || cm->data_len != sizeof(struct tcp_admit))
		return auth_fail(cm, -FI_EPROTO, "its proof was not asked for, or has a wrong length");
	if (auth_make_mac(cm, accepting_role, cm->keyring.key, mac) || !fab_mac_equal(mac, cm->data))
		return auth_fail(cm, -FI_EACCES, "it does not prove that it has this end's authorization key");
	auth->stage = ADMITTED;
	cm->proven = cm->keyring.key;
	return 1;
}

static int auth_take_response(struct tcp_cm *cm)
{
	if (cm->auth && cm->auth->stage != ADMITTED)
		return auth_fail(cm, -FI_EACCES,
				 "this end has an authorization key, and it asks for none (another libfabric?)");
	return 0;
}

static int auth_take_nack(struct tcp_cm *cm)
{
	static const struct {
		int err;
		const char *text;
	} refusal[] = {
		[TCP_REFUSE_KEY_WANTED] = { FI_EACCES, "it has an authorization key, and this end has none" },
		[TCP_REFUSE_NO_KEY] = { FI_EACCES, "this end has an authorization key, and it has none" },
		[TCP_REFUSE_WRONG_KEY] = { FI_EACCES, "it has another authorization key than this end" },
		[TCP_REFUSE_NO_CTX] = { FI_ENORX, "it has no receive context of this number (fi_rx_addr)" },
		[TCP_REFUSE_NO_EXT] = { FI_EOPNOTSUPP, "it is a scalable endpoint: its peers need this library" },
		[TCP_REFUSE_RDM_HERE] = { FI_EOPNOTSUPP, tcp_kind_rdm_here },
		[TCP_REFUSE_MSG_HERE] = { FI_EOPNOTSUPP, tcp_kind_msg_here },
	};

	if (!cm->refusal)
		return 0;
	if (cm->refusal >= fab_countof(refusal))
		return auth_fail(cm, -FI_EACCES, "it refused the authorization");
	return auth_fail(cm, -refusal[cm->refusal].err, refusal[cm->refusal].text);
}

int tcp_auth_receive(struct tcp_cm *cm)
{
	switch (cm->type) {
	case TCP_CM_CONNREQ:
		return auth_take_request(cm);
	case TCP_CM_PROOF:
		return auth_take_proof(cm);
	case TCP_CM_CHALLENGE:
		return auth_take_challenge(cm);
	case TCP_CM_ADMIT:
		return auth_take_admit(cm);
	case TCP_CM_NACK:
		return auth_take_nack(cm);
	default:
		return auth_take_response(cm);
	}
}

void tcp_auth_free(struct tcp_auth *auth)
{
	free(auth);
}

int tcp_auth_spare(const char *what, struct fab_auth_key **key)
{
	*key = NULL;
	return tcp_params.auth_key_file ? fab_auth_read(&tcp_prov, what, tcp_params.auth_key_file, key) : 0;
}
