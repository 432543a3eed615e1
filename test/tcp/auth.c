/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of authorization keys at the accepting side, against a peer that has the key, one that has not, and one
 * that tries what such a peer may try.
 */
#include <endian.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <rdma/fi_errno.h>
#include "auth_rig.h"
#include "base/bits.h"
#include "tcp/params/params.h"

/* Somebody connects, and is to be asked for the key. */
static void setup_accepting(struct fixture *f, bool keyed)
{
	socklen_t len = sizeof(f->connecting);

	setup(f);
	f->peer = raw_connect(&f->accepting);
	assert_int_equal(getsockname(f->peer, (struct sockaddr *) &f->connecting, &len), 0);
	f->x.cm->keyring.key = keyed ? f->key : NULL;
	exchange_accept(&f->x, f->listener, &f->connecting);
}

/* The request, and the challenge that it meets. */
static void ask(struct fixture *f, struct said *said)
{
	said->request = raw_cm(TCP_CM_CONNREQ, "private", 7);
	said->request.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AUTH);
	said->request.hdr.incarnation = 77;
	send_msg(f, &said->request);
	said->challenge = recv_msg(f);
	assert_int_equal(said->challenge.hdr.type, TCP_CM_CHALLENGE);
	assert_int_equal(raw_len(&said->challenge), HDR + TCP_NONCE_LEN);
}

static struct cm_bytes good_proof(const struct fixture *f, struct said *said)
{
	struct tcp_proof proof;

	memset(said->nonce, 0x5a, sizeof(said->nonce));
	memcpy(proof.nonce, said->nonce, sizeof(proof.nonce));
	make_mac(f, "weft1 connect", KEY, KEY_LEN, said, proof.mac);
	return raw_cm(TCP_CM_PROOF, &proof, sizeof(proof));
}

static void a_peer_with_the_key_is_admitted(void **state)
{
	uint8_t mac[TCP_MAC_LEN];
	struct cm_bytes msg;
	struct said said;
	struct fixture f;

	(void) state;
	setup_accepting(&f, true);
	ask(&f, &said);
	msg = good_proof(&f, &said);
	for (size_t i = 0; i < raw_len(&msg); i++) {
		raw_send(f.peer, (uint8_t *) &msg + i, 1);
		exchange_drive(&f.x);
	}
	msg = recv_msg(&f);
	assert_int_equal(msg.hdr.type, TCP_CM_ADMIT);
	make_mac(&f, "weft1 accept", KEY, KEY_LEN, &said, mac);
	assert_int_equal(be16toh(msg.hdr.seg_size), sizeof(mac));
	assert_memory_equal(msg.data, mac, sizeof(mac));
	exchange_finish(&f.x);
	assert_int_equal(f.x.err, 0);
	assert_ptr_equal(f.x.cm->proven, f.key);
	assert_int_equal(f.x.cm->type, TCP_CM_CONNREQ);
	assert_int_equal(f.x.cm->data_len, 7);
	assert_memory_equal(f.x.cm->data, "private", 7);
	assert_true(f.x.cm->peer.ext);
	teardown(&f);
}

/* How a proof can be wrong. */
static void flip_mac(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	(void) f, (void) said;
	proof->data[sizeof(struct tcp_proof) - 1] ^= 1;
}

static void flip_nonce(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	(void) f, (void) said;
	proof->data[0] ^= 1;
}

static void with_key(struct fixture *f, struct said *said, struct cm_bytes *proof, const char *role, const char *key,
		     size_t len)
{
	make_mac(f, role, key, len, said, proof->data + TCP_NONCE_LEN);
}

static void other_key(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	with_key(f, said, proof, "weft1 connect", KEY, sizeof(KEY) - 2);
}

static void other_role(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	with_key(f, said, proof, "weft1 accept", KEY, KEY_LEN);
}

/* What was good for another challenge, or another request. */
static void other_challenge(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	said->challenge.data[0] ^= 1;
	*proof = good_proof(f, said);
}

static void other_request(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	said->request.hdr.incarnation = 78;
	*proof = good_proof(f, said);
}

/* Somebody passes on what another one said who does have the key. */
static void other_address(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	f->connecting.sin_port ^= 1;
	*proof = good_proof(f, said);
	f->connecting.sin_port ^= 1;
}

static void too_short(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	(void) f, (void) said;
	proof->hdr.seg_size = htobe16(sizeof(struct tcp_proof) - 1);
}

static void too_long(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	(void) f, (void) said;
	proof->hdr.seg_size = htobe16(sizeof(struct tcp_proof) + 1);
}

static void another_request(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	(void) f;
	*proof = said->request;
}

static void the_challenge_itself(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	(void) f;
	*proof = said->challenge;
}

static void an_admission(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	uint8_t mac[TCP_MAC_LEN];

	make_mac(f, "weft1 accept", KEY, KEY_LEN, said, mac);
	*proof = raw_cm(TCP_CM_ADMIT, mac, sizeof(mac));
}

static const struct {
	void (*change)(struct fixture *f, struct said *said, struct cm_bytes *proof);
	int err;
	bool told;
} wrong_proofs[] = {
	{ flip_mac, FI_EACCES, true },
	{ flip_nonce, FI_EACCES, true },
	{ other_key, FI_EACCES, true },
	{ other_role, FI_EACCES, true },
	{ other_challenge, FI_EACCES, true },
	{ other_request, FI_EACCES, true },
	{ other_address, FI_EACCES, true },
	{ too_short, FI_EPROTO, false },
	{ too_long, FI_EPROTO, false },
	{ another_request, FI_EPROTO, false },
	{ the_challenge_itself, FI_EPROTO, false },
	{ an_admission, FI_EPROTO, false },
};

static void a_wrong_proof_is_refused(void **state)
{
	struct cm_bytes proof;
	struct fixture f;
	struct said said;

	(void) state;
	for (size_t i = 0; i < fab_countof(wrong_proofs); i++) {
		print_message("proof %zu\n", i);
		setup_accepting(&f, true);
		ask(&f, &said);
		proof = good_proof(&f, &said);
		wrong_proofs[i].change(&f, &said, &proof);
		send_msg(&f, &proof);
		check_refused(&f, wrong_proofs[i].err);
		if (wrong_proofs[i].told)
			expect_refusal(&f, TCP_REFUSE_WRONG_KEY);
		teardown(&f);
	}
}

/* FI_TCP_AUTH_ADDRESS off: the way there does not matter. */
static void addresses_may_be_left_out(void **state)
{
	struct cm_bytes proof;
	struct fixture f;
	struct said said;

	(void) state;
	tcp_params.auth_address = leave_out_addresses = true;
	for (int i = 0; i < 2; i++) {
		setup_accepting(&f, true);
		ask(&f, &said);
		proof = good_proof(&f, &said);
		send_msg(&f, &proof);
		if (i)
			exchange_finish(&f.x);
		else
			check_refused(&f, FI_EACCES);
		assert_int_equal(f.x.err, i ? 0 : FI_EACCES);
		teardown(&f);
		tcp_params.auth_address = false;
	}
	tcp_params.auth_address = true;
	leave_out_addresses = false;
}

/* The same words once more, on a second connection: the challenge is another one. */
static void a_recorded_proof_is_worth_nothing(void **state)
{
	struct cm_bytes proof;
	struct fixture f;
	struct said said, second;

	(void) state;
	setup_accepting(&f, true);
	ask(&f, &said);
	proof = good_proof(&f, &said);
	send_msg(&f, &proof);
	exchange_finish(&f.x);
	assert_int_equal(f.x.err, 0);
	teardown(&f);

	setup_accepting(&f, true);
	ask(&f, &second);
	assert_memory_not_equal(second.challenge.data, said.challenge.data, TCP_NONCE_LEN);
	send_msg(&f, &proof);
	check_refused(&f, FI_EACCES);
	teardown(&f);
}

static void a_proof_that_is_cut_ends_it(void **state)
{
	struct cm_bytes proof;
	struct fixture f;
	struct said said;

	(void) state;
	for (size_t len = 0; len < HDR + sizeof(struct tcp_proof); len += 19) {
		setup_accepting(&f, true);
		ask(&f, &said);
		proof = good_proof(&f, &said);
		raw_send(f.peer, &proof, len);
		shutdown(f.peer, SHUT_WR);
		check_refused(&f, FI_ECONNRESET);
		teardown(&f);
	}
}

/* Who takes a challenge and says nothing has the time of a request, not that time again. */
static void a_challenge_has_the_deadline_of_the_request(void **state)
{
	uint64_t half_ns = tcp_params.connect_timeout_ms * 500000ULL;
	struct fixture f;
	struct said said;

	(void) state;
	setup_accepting(&f, true);
	test_added_ns += half_ns;
	ask(&f, &said);
	exchange_drive(&f.x);
	assert_false(f.x.over);
	test_added_ns += half_ns;
	check_refused(&f, FI_ETIMEDOUT);
	teardown(&f);
}

/* A peer without a key, such as upstream, and one with a key that we have not. */
static void keys_on_one_side_only_do_not_meet(void **state)
{
	struct cm_bytes request = raw_cm(TCP_CM_CONNREQ, NULL, 0);
	struct fixture f;

	(void) state;
	setup_accepting(&f, true);
	send_msg(&f, &request);
	check_refused(&f, FI_EACCES);
	expect_refusal(&f, TCP_REFUSE_KEY_WANTED);
	teardown(&f);

	setup_accepting(&f, false);
	request.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AUTH);
	send_msg(&f, &request);
	check_refused(&f, FI_EACCES);
	expect_refusal(&f, TCP_REFUSE_NO_KEY);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_with_the_key_is_admitted),
		cmocka_unit_test(a_wrong_proof_is_refused),
		cmocka_unit_test(addresses_may_be_left_out),
		cmocka_unit_test(a_recorded_proof_is_worth_nothing),
		cmocka_unit_test(a_proof_that_is_cut_ends_it),
		cmocka_unit_test(a_challenge_has_the_deadline_of_the_request),
		cmocka_unit_test(keys_on_one_side_only_do_not_meet),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/auth", tests, NULL, NULL);
}
