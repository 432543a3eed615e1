/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The proof of authorization keys, each side against a peer that has the key, one that has not, and one that tries what
 * such a peer may try. The other side is made here of what wire.h says, byte by byte.
 */
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/hmac.h"
#include "base/sock.h"
#include "raw.h"
#include "tcp/cm.h"
#include "tcp/tcp.h"

#define HDR sizeof(struct tcp_cm_hdr)
static const char key_bytes[] = "the key of this job, seventeen";

/* An engine, an exchange on it, and the raw other end. */
struct fixture {
	struct fab_progress progress;
	struct fab_auth_key *key;
	struct tcp_cm *cm;
	int listener, peer;
	struct sockaddr_in connecting, accepting;	/* the two ends */
	bool over;
	int err;
	char text[256];
};

static void on_done(struct tcp_cm *cm)
{
	((struct fixture *) cm->ctx)->over = true;
}

static void on_fail(struct tcp_cm *cm, int err)
{
	struct fixture *f = cm->ctx;

	f->over = true;
	f->err = err;
	tcp_cm_text(cm, err, f->text, sizeof(f->text));
}

static const struct tcp_cm_owner owner = { .done = on_done, .fail = on_fail };

static void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	assert_int_equal(fab_auth_get(&tcp_prov, "test", key_bytes, sizeof(key_bytes) - 1, &f->key), 0);
	assert_int_equal(fab_progress_init(&f->progress, &(struct fab_progress_attr) { .shared = true }), 0);
	f->cm = tcp_cm_new(&f->progress, &owner, f);
	assert_non_null(f->cm);
	f->listener = raw_listen(&f->accepting, 1);
}

static void teardown(struct fixture *f)
{
	fab_progress_lock(&f->progress);
	tcp_cm_free(f->cm);
	fab_progress_run(&f->progress);
	fab_progress_unlock(&f->progress);
	fab_progress_fini(&f->progress);
	fab_auth_put(f->key);
	close(f->listener);
	close(f->peer);
}

static void drive(void *arg)
{
	struct fixture *f = arg;

	fab_progress_lock(&f->progress);
	fab_progress_run(&f->progress);
	fab_progress_unlock(&f->progress);
}

static void drive_until_over(struct fixture *f)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	while (!f->over && fab_now_ms() < end_ms)
		drive(f);
	assert_true(f->over);
}

static void check_refused(struct fixture *f, int err)
{
	drive_until_over(f);
	assert_int_equal(f->err, err);
	assert_null(f->cm->proven);
	assert_non_null(strstr(f->text, "127.0.0.1:"));
	assert_non_null(strstr(f->text, " -> "));
}

/* ---- the other end: everything by wire.h ---- */

static size_t add(uint8_t *buf, size_t at, const void *data, size_t len)
{
	memcpy(buf + at, data, len);
	return at + len;
}

static size_t add_addr(uint8_t *buf, size_t at, const struct sockaddr_in *addr)
{
	at = add(buf, at, &addr->sin_addr, 4);
	memset(buf + at, 0, 12);
	return add(buf, at + 12, &addr->sin_port, 2);
}

static bool leave_out_addresses;

/* What was said, for a mac. */
struct said {
	struct cm_bytes request, challenge;
	uint8_t nonce[TCP_NONCE_LEN];
};

static void make_mac(const struct fixture *f, const char *role, const char *key, size_t key_len,
		     const struct said *said, uint8_t mac[TCP_MAC_LEN])
{
	uint8_t buf[1024] = { 0 };
	size_t len;

	strcpy((char *) buf, role);
	len = add(buf, 16, &said->request, raw_len(&said->request));
	len = add(buf, len, &said->challenge, raw_len(&said->challenge));
	len = add(buf, len, said->nonce, sizeof(said->nonce));
	if (!leave_out_addresses) {
		len = add_addr(buf, len, &f->connecting);
		len = add_addr(buf, len, &f->accepting);
	}
	assert_int_equal(fab_hmac(key, key_len, buf, len, mac), 0);
}

static void send_msg(const struct fixture *f, const struct cm_bytes *msg)
{
	raw_send(f->peer, msg, raw_len(msg));
}

static struct cm_bytes recv_msg(struct fixture *f)
{
	struct cm_bytes msg;

	raw_recv(f->peer, &msg, HDR, drive, f);
	raw_recv(f->peer, msg.data, be16toh(msg.hdr.seg_size), drive, f);
	assert_null(memmem(&msg, raw_len(&msg), key_bytes, sizeof(key_bytes) - 1));
	return msg;
}

static void expect_refusal(struct fixture *f, uint32_t why)
{
	struct cm_bytes msg = recv_msg(f);

	assert_int_equal(msg.hdr.type, TCP_CM_NACK);
	assert_int_equal(be32toh(msg.hdr.ext), TCP_EXT_MAGIC | TCP_EXT_AUTH);
	assert_int_equal(be32toh(msg.hdr.eager_max), why);
}

/* ---- accepting ---- */

/* Somebody connects, and is to be asked for the key. */
static void setup_accepting(struct fixture *f, bool keyed)
{
	socklen_t len = sizeof(f->connecting);
	int fd;

	setup(f);
	f->peer = raw_connect(&f->accepting);
	assert_int_equal(getsockname(f->peer, (struct sockaddr *) &f->connecting, &len), 0);
	fd = raw_accept(f->listener, NULL, NULL);
	assert_int_equal(fab_sock->set_nonblock(fd, true), 0);
	f->cm->keyring.key = keyed ? f->key : NULL;
	fab_progress_lock(&f->progress);
	assert_int_equal(tcp_cm_await(f->cm, fd, &(union fab_sockaddr) { .sin = f->connecting }), 0);
	fab_progress_unlock(&f->progress);
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
	make_mac(f, "weft1 connect", key_bytes, sizeof(key_bytes) - 1, said, proof.mac);
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
		drive(&f);
	}
	msg = recv_msg(&f);
	assert_int_equal(msg.hdr.type, TCP_CM_ADMIT);
	make_mac(&f, "weft1 accept", key_bytes, sizeof(key_bytes) - 1, &said, mac);
	assert_int_equal(be16toh(msg.hdr.seg_size), sizeof(mac));
	assert_memory_equal(msg.data, mac, sizeof(mac));
	drive_until_over(&f);
	assert_int_equal(f.err, 0);
	assert_ptr_equal(f.cm->proven, f.key);
	assert_int_equal(f.cm->type, TCP_CM_CONNREQ);
	assert_int_equal(f.cm->data_len, 7);
	assert_memory_equal(f.cm->data, "private", 7);
	assert_true(f.cm->peer.ext);
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
	with_key(f, said, proof, "weft1 connect", key_bytes, sizeof(key_bytes) - 2);
}

static void other_role(struct fixture *f, struct said *said, struct cm_bytes *proof)
{
	with_key(f, said, proof, "weft1 accept", key_bytes, sizeof(key_bytes) - 1);
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

	make_mac(f, "weft1 accept", key_bytes, sizeof(key_bytes) - 1, said, mac);
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
			drive_until_over(&f);
		else
			check_refused(&f, FI_EACCES);
		assert_int_equal(f.err, i ? 0 : FI_EACCES);
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
	drive_until_over(&f);
	assert_int_equal(f.err, 0);
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
	drive(&f);
	assert_false(f.over);
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

/* ---- connecting ---- */

static void setup_connecting(struct fixture *f, bool keyed, struct said *said)
{
	const struct tcp_cm_msg msg = { .type = TCP_CM_CONNREQ, .incarnation = 5, .data = "hello", .data_len = 5,
					.ext = keyed ? TCP_EXT_AUTH : 0 };
	socklen_t len = sizeof(f->connecting);

	setup(f);
	f->cm->keyring.key = keyed ? f->key : NULL;
	fab_progress_lock(&f->progress);
	assert_int_equal(tcp_cm_connect(f->cm, -1, NULL, &(union fab_sockaddr) { .sin = f->accepting }, &msg), 0);
	fab_progress_unlock(&f->progress);
	f->peer = raw_accept(f->listener, drive, f);
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
	make_mac(f, "weft1 connect", key_bytes, sizeof(key_bytes) - 1, said, mac);
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
	make_mac(&f, "weft1 accept", key_bytes, sizeof(key_bytes) - 1, &said, mac);
	msg = raw_cm(TCP_CM_ADMIT, mac, sizeof(mac));
	send_msg(&f, &msg);
	send_msg(&f, &response);
	drive_until_over(&f);
	assert_int_equal(f.err, 0);
	assert_ptr_equal(f.cm->proven, f.key);
	assert_int_equal(f.cm->data_len, 3);
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
		assert_non_null(strstr(f.text, "authoriz"));
		teardown(&f);
	}
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
		cmocka_unit_test(the_accepting_side_proves_too),
		cmocka_unit_test(an_accepting_side_that_cheats_is_left),
		cmocka_unit_test(without_a_key_a_challenge_is_rubbish),
		cmocka_unit_test(a_refusal_says_why),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/auth", tests, NULL, NULL);
}
