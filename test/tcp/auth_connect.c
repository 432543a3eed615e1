/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The proof of authorization keys at the connecting side, likewise (auth.c). */
#include <endian.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <rdma/fi_errno.h>
#include "auth_rig.h"
#include "base/bits.h"

static void setup_connecting(struct fixture *f, bool keyed, struct said *said)
{
	const struct tcp_cm_msg msg = { .type = TCP_CM_CONNREQ, .incarnation = 5, .data = "hello", .data_len = 5,
					.ext = keyed ? TCP_EXT_AUTH : 0 };
	socklen_t len = sizeof(f->connecting);

	setup(f);
	f->x.cm->keyring.key = keyed ? f->key : NULL;
	assert_int_equal(exchange_connect(&f->x, &f->accepting, &msg), 0);
	f->peer = raw_accept(f->listener, exchange_drive, &f->x);
	assert_int_equal(getpeername(f->peer, (struct sockaddr *) &f->connecting, &len), 0);
	said->request = recv_msg(f);
}

static struct cm_bytes challenge(void)
{
	uint8_t nonce[TCP_NONCE_LEN];

	memset(nonce, 0xc3, sizeof(nonce));
	return raw_cm(TCP_CM_CHALLENGE, nonce, sizeof(nonce));
}

/* Challenge it, and take its proof, which is good. */
static struct tcp_proof challenge_it(struct fixture *f, struct said *said)
{
	uint8_t mac[TCP_MAC_LEN];
	struct tcp_proof proof;
	struct cm_bytes msg;

	said->challenge = challenge();
	send_msg(f, &said->challenge);
	msg = recv_msg(f);
	assert_int_equal(msg.hdr.type, TCP_CM_PROOF);
	assert_int_equal(be16toh(msg.hdr.seg_size), sizeof(proof));
	memcpy(&proof, msg.data, sizeof(proof));
	memcpy(said->nonce, proof.nonce, sizeof(said->nonce));
	make_mac(f, "weft1 connect", KEY, KEY_LEN, said, mac);
	assert_memory_equal(proof.mac, mac, sizeof(mac));
	return proof;
}

static void the_accepting_side_proves_too(void **state)
{
	struct cm_bytes msg, response = raw_cm(TCP_CM_CONNRESP, "yes", 3);
	uint8_t mac[TCP_MAC_LEN];
	struct fixture f;
	struct said said;

	(void) state;
	setup_connecting(&f, true, &said);
	assert_int_equal(be32toh(said.request.hdr.ext) & TCP_EXT_AUTH, TCP_EXT_AUTH);
	challenge_it(&f, &said);
	make_mac(&f, "weft1 accept", KEY, KEY_LEN, &said, mac);
	msg = raw_cm(TCP_CM_ADMIT, mac, sizeof(mac));
	send_msg(&f, &msg);
	send_msg(&f, &response);
	exchange_finish(&f.x);
	assert_int_equal(f.x.err, 0);
	assert_ptr_equal(f.x.cm->proven, f.key);
	assert_int_equal(f.x.cm->data_len, 3);
	teardown(&f);
}

/* Without the key nobody gets further by leaving something out, or by giving us back our own words. */
static void an_accepting_side_that_cheats_is_left(void **state)
{
	struct cm_bytes msg, yes = raw_cm(TCP_CM_CONNRESP, NULL, 0);
	uint8_t nothing[TCP_MAC_LEN] = { 0 };
	struct tcp_proof proof;
	struct fixture f;
	struct said said;

	(void) state;
	setup_connecting(&f, true, &said);
	send_msg(&f, &yes);
	check_refused(&f, FI_EACCES);
	teardown(&f);

	setup_connecting(&f, true, &said);
	challenge_it(&f, &said);
	send_msg(&f, &yes);
	check_refused(&f, FI_EACCES);
	teardown(&f);

	setup_connecting(&f, true, &said);
	proof = challenge_it(&f, &said);
	msg = raw_cm(TCP_CM_ADMIT, proof.mac, sizeof(proof.mac));
	send_msg(&f, &msg);
	check_refused(&f, FI_EACCES);
	teardown(&f);

	setup_connecting(&f, true, &said);
	msg = raw_cm(TCP_CM_ADMIT, nothing, sizeof(nothing));
	send_msg(&f, &msg);
	check_refused(&f, FI_EPROTO);
	teardown(&f);

	setup_connecting(&f, true, &said);
	challenge_it(&f, &said);
	send_msg(&f, &said.challenge);
	check_refused(&f, FI_EPROTO);
	teardown(&f);

	setup_connecting(&f, true, &said);
	msg = challenge();
	msg.hdr.seg_size = htobe16(TCP_NONCE_LEN - 1);
	send_msg(&f, &msg);
	check_refused(&f, FI_EPROTO);
	teardown(&f);
}

/* An endpoint without a key does not prove anything to anybody. */
static void without_a_key_a_challenge_is_rubbish(void **state)
{
	struct cm_bytes msg = challenge();
	struct fixture f;
	struct said said;

	(void) state;
	setup_connecting(&f, false, &said);
	assert_false(be32toh(said.request.hdr.ext) & TCP_EXT_AUTH);
	send_msg(&f, &msg);
	check_refused(&f, FI_EPROTO);
	teardown(&f);
}

static void a_refusal_says_why(void **state)
{
	static const uint32_t reasons[] = { TCP_REFUSE_KEY_WANTED, TCP_REFUSE_NO_KEY, TCP_REFUSE_WRONG_KEY, 99 };
	struct cm_bytes msg = raw_cm(TCP_CM_NACK, NULL, 0);
	struct fixture f;
	struct said said;

	(void) state;
	for (size_t i = 0; i < fab_countof(reasons); i++) {
		setup_connecting(&f, reasons[i] != TCP_REFUSE_KEY_WANTED, &said);
		msg.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_AUTH);
		msg.hdr.eager_max = htobe32(reasons[i]);
		send_msg(&f, &msg);
		check_refused(&f, FI_EACCES);
		assert_non_null(strstr(f.x.text, "authoriz"));
		teardown(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_accepting_side_proves_too),
		cmocka_unit_test(an_accepting_side_that_cheats_is_left),
		cmocka_unit_test(without_a_key_a_challenge_is_rubbish),
		cmocka_unit_test(a_refusal_says_why),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/auth_connect", tests, NULL, NULL);
}
