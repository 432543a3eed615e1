/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See auth_rig.h. */
#include "auth_rig.h"

#include <endian.h>
#include <string.h>
#include <unistd.h>
#include "base/hmac.h"
#include "tcp/params/params.h"

void setup(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	assert_int_equal(fab_auth_get(&tcp_prov, "test", KEY, KEY_LEN, &f->key), 0);
	exchange_open(&f->x);
	f->listener = raw_listen(&f->accepting, 1);
}

void teardown(struct fixture *f)
{
	exchange_close(&f->x);
	fab_auth_put(f->key);
	close(f->listener);
	close(f->peer);
}

void check_refused(struct fixture *f, int err)
{
	exchange_finish(&f->x);
	assert_int_equal(f->x.err, err);
	assert_null(f->x.cm->proven);
	assert_non_null(strstr(f->x.text, "127.0.0.1:"));
	assert_non_null(strstr(f->x.text, " -> "));
}

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

bool leave_out_addresses;

void make_mac(const struct fixture *f, const char *role, const char *key, size_t key_len, const struct said *said,
	      uint8_t mac[TCP_MAC_LEN])
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

void send_msg(const struct fixture *f, const struct cm_bytes *msg)
{
	raw_send(f->peer, msg, raw_len(msg));
}

struct cm_bytes recv_msg(struct fixture *f)
{
	struct cm_bytes msg;

	raw_recv(f->peer, &msg, HDR, exchange_drive, &f->x);
	raw_recv(f->peer, msg.data, be16toh(msg.hdr.seg_size), exchange_drive, &f->x);
	assert_null(memmem(&msg, raw_len(&msg), KEY, KEY_LEN));
	return msg;
}

void expect_refusal(struct fixture *f, uint32_t why)
{
	struct cm_bytes msg = recv_msg(f);

	assert_int_equal(msg.hdr.type, TCP_CM_NACK);
	assert_int_equal(be32toh(msg.hdr.ext), TCP_EXT_MAGIC | TCP_EXT_AUTH);
	assert_int_equal(be32toh(msg.hdr.eager_max), why);
}
