/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a peer says about authorization keys, in each stage of an exchange: messages of every type and length. Of those
 * with the length of their type, no byte behind the end was ever written. And nobody is let in before the proof.
 *
 * eva: -eva-slevel 60 -eva-alloc-builtin fresh -eva-split-return full
 */
#include "prove.h"
#include "base/strbuf.c"
#include "base/addr_ib.c"
#undef SCHEME
#include "base/addr.c"
#include "tcp/handshake/auth.c"

struct tcp_params tcp_params;
const char tcp_kind_rdm_here[1], tcp_kind_msg_here[1];

static struct fab_auth_key key;
static struct tcp_auth auth;
static struct tcp_cm cm;

/* ---- below ---- */

/*@ requires \valid_read((char *) data + (0 .. len - 1));
  @ requires \initialized((char *) data + (0 .. len - 1));
  @ requires \valid(mac + (0 .. 31));
  @ assigns mac[0 .. 31], \result \from key_len, ((char *) data)[0 .. len - 1];
  @ ensures \initialized(mac + (0 .. 31));
  @ ensures -133 <= \result <= 0;
  @*/
int fab_hmac(const void *with, size_t key_len, const void *data, size_t len, uint8_t mac[FAB_MAC_LEN]);
/*@ requires \valid_read(a + (0 .. 31));
  @ requires \initialized(a + (0 .. 31));
  @ requires \valid_read(b + (0 .. 31));
  @ requires \initialized(b + (0 .. 31));
  @ assigns \result \from a[0 .. 31], b[0 .. 31];
  @ ensures \result == 0 || \result == 1;
  @*/
bool fab_mac_equal(const uint8_t a[FAB_MAC_LEN], const uint8_t b[FAB_MAC_LEN]);
/*@ requires \valid((char *) buf + (0 .. len - 1));
  @ assigns ((char *) buf)[0 .. len - 1], \result \from len;
  @ ensures \initialized((char *) buf + (0 .. len - 1));
  @ ensures -133 <= \result <= 0;
  @*/
int fab_nonce(void *buf, size_t len);

size_t tcp_cm_encode(const struct tcp_cm_msg *msg, uint8_t *buf)
{
	prove_readable(msg->data, msg->data_len);
	any_bytes(buf, HDR_LEN + msg->data_len);
	return HDR_LEN + msg->data_len;
}

int tcp_cm_send(int fd, const struct tcp_cm_msg *msg)
{
	(void) fd;
	if (msg->data_len)
		prove_readable(msg->data, msg->data_len);
	return (int) any_of(0, 133) - 133;
}

void tcp_cm_decode(struct tcp_cm *one)
{
	prove(one == &cm);
}

struct fab_auth_key *fab_av_key_find(const struct fab_av *av, bool (*is)(struct fab_auth_key *one, void *ctx),
				     void *ctx)
{
	(void) av;
	return is(&key, ctx) ? &key : NULL;
}

/* ---- messages ---- */

enum keys {
	NO_KEYS,
	ONE_KEY,
	KEYS_OF_AV,
};

/* A message of this type and length, `written` bytes of data, in an exchange of this stage; a stage below 0 has no
 * state. */
static int receive(enum keys keys, int stage, size_t request_len, uint8_t type, size_t len, size_t written)
{
	struct tcp_cm one;
	struct tcp_auth empty;

	cm = one;
	auth = empty;
	cm.keyring = (struct tcp_keyring) { .key = keys == ONE_KEY ? &key : NULL,
					    .av = keys == KEYS_OF_AV ? (struct fab_av *) &key : NULL };
	cm.auth = stage < 0 ? NULL : &auth;
	cm.proven = NULL;
	cm.sock.fd = 3;
	cm.type = type;
	cm.data_len = len;
	cm.keyed = any_of(0, 1);
	cm.refusal = any_of(0, UINT32_MAX);
	any_bytes(cm.buf, HDR_LEN + written);
	any_bytes(&cm.local, sizeof(cm.local));
	any_bytes(&cm.remote, sizeof(cm.remote));
	cm.local.sa.sa_family = cm.remote.sa.sa_family = any_of(0, 1) ? AF_INET : AF_INET6;
	auth.request_len = request_len;
	any_bytes(auth.request, request_len);
	if (stage >= 0) {
		auth.stage = stage;
		if (stage != ASKED) {
			any_bytes(auth.challenge, sizeof(auth.challenge));
			any_bytes(auth.nonce, sizeof(auth.nonce));
		}
	}
	return tcp_auth_receive(&cm);
}

/* A request: with private data of any length. */
static void prove_request(void)
{
	size_t len = any_of(0, TCP_CM_DATA_MAX);

	receive(NO_KEYS, -1, HDR_LEN, TCP_CM_CONNREQ, len, TCP_CM_DATA_MAX);
	prove(!cm.proven);
	prove(receive(ONE_KEY, -1, HDR_LEN, TCP_CM_CONNREQ, len, TCP_CM_DATA_MAX) != 0);
	prove(receive(KEYS_OF_AV, -1, HDR_LEN, TCP_CM_CONNREQ, len, TCP_CM_DATA_MAX) != 0);
}

/* The accepting end has sent its challenge, and gets a proof after a request of this length. */
static void prove_proof(enum keys keys, size_t request_len)
{
	const size_t len = sizeof(struct tcp_proof);

	if (receive(keys, CHALLENGED, request_len, TCP_CM_PROOF, len, len) == 0) {
		prove(cm.proven == &key);
		prove(cm.buf_len == request_len);
	}
}

/* Proofs, challenges and admissions of another length are refused, and so are those that were not asked for. */
static void prove_refused(size_t low, size_t high, int stage, uint8_t type)
{
	prove(receive(stage < 0 ? NO_KEYS : ONE_KEY, stage, HDR_LEN, type, any_of(low, high), TCP_CM_DATA_MAX) < 0);
}

static void prove_refusals(void)
{
	prove_refused(0, sizeof(struct tcp_proof) - 1, CHALLENGED, TCP_CM_PROOF);
	prove_refused(sizeof(struct tcp_proof) + 1, TCP_CM_DATA_MAX, CHALLENGED, TCP_CM_PROOF);
	prove_refused(0, sizeof(struct tcp_challenge) - 1, ASKED, TCP_CM_CHALLENGE);
	prove_refused(sizeof(struct tcp_challenge) + 1, TCP_CM_DATA_MAX, ASKED, TCP_CM_CHALLENGE);
	prove_refused(0, TCP_CM_DATA_MAX, PROVED, TCP_CM_CHALLENGE);
	prove_refused(0, TCP_CM_DATA_MAX, -1, TCP_CM_CHALLENGE);
	prove_refused(0, sizeof(struct tcp_admit) - 1, PROVED, TCP_CM_ADMIT);
	prove_refused(sizeof(struct tcp_admit) + 1, TCP_CM_DATA_MAX, PROVED, TCP_CM_ADMIT);
	prove_refused(0, TCP_CM_DATA_MAX, ASKED, TCP_CM_ADMIT);
	prove_refused(0, TCP_CM_DATA_MAX, -1, TCP_CM_ADMIT);
	prove_refused(0, TCP_CM_DATA_MAX, ASKED, TCP_CM_CONNRESP);
	prove_refused(0, TCP_CM_DATA_MAX, PROVED, TCP_CM_CONNRESP);
}

/* The connecting end goes on after a challenge and an admission: no answer is for the owner before both. */
static void prove_steps(size_t request_len)
{
	const size_t challenge = sizeof(struct tcp_challenge), admit = sizeof(struct tcp_admit);

	prove(receive(ONE_KEY, ASKED, request_len, TCP_CM_CHALLENGE, challenge, challenge) != 0);
	prove(receive(ONE_KEY, PROVED, request_len, TCP_CM_ADMIT, admit, admit) != 0);
	receive(ONE_KEY, PROVED, request_len, TCP_CM_NACK, 0, 0);
}

int main(void)
{
	tcp_params.auth_address = any_of(0, 1);
	prove_request();
	prove_refusals();
	//@ loop unroll 40;
	for (size_t len = 0; len <= TCP_CM_DATA_MAX; len += 32) {
		prove_proof(ONE_KEY, HDR_LEN + len);
		prove_proof(KEYS_OF_AV, HDR_LEN + len);
		prove_steps(HDR_LEN + len);
	}
	reached();
	return 0;
}
