/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The scenario with authorization keys: two nodes that have the key, and a third one, M, that has not. M knows all that
 * was ever sent, and sends what it likes of that: challenges, proofs and admissions of other connections, requests in
 * the name of another node. The log says what each hash covers, computed here once more from what wire.h says.
 */
#include "sim/trace.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "base/bits.h"
#include "base/hmac.h"
#include "base/sock.h"
#include "tcp/params/params.h"

#define KEY		"the key of both nodes"
#define HDR_LEN		sizeof(struct tcp_cm_hdr)
#define M_NODE		2
#define NONCES		120		/* those of keys.pml */
#define MACS		64
#define SESSIONS	24		/* those of keys.pml */
#define WIRES		16
#define ROLE_CONNECT	1
#define ROLE_ACCEPT	2

/* What a hash covers, as the model knows it. */
struct mac {
	uint8_t bytes[TCP_MAC_LEN], nonce[TCP_NONCE_LEN];
	int role, challenge, number, ends;	/* number: of the nonce */
};

/* A connection. */
struct session {
	bool begun;
	int number;
	int from, to;			/* 1 + node */
	struct sockaddr_in from_addr, to_addr;
	size_t request_len;
	uint8_t request[FRAME_HEAD], challenge[HDR_LEN + TCP_NONCE_LEN], nonce[TCP_NONCE_LEN];
	bool framed[NODES][2];		/* a frame was sent or read by this node */
};

/* A connection of M. */
struct wire {
	int fd;				/* 0: none */
	bool asked;
	size_t have;
	uint8_t buf[FRAME_HEAD];
};

static struct session sessions[FRAME_CONNS];
static int session_cnt;
static uint8_t nonces[NONCES][TCP_NONCE_LEN];
static int nonce_cnt;
static struct mac macs[MACS];
static int mac_cnt;

static struct wire wires[WIRES];
static int listen_fd;
static size_t stolen_len;		/* a request of a node */
static uint8_t stolen[FRAME_HEAD];

/* ---- what is known ---- */

/* The number of a nonce, from 1 on. */
static int nonce_number(const uint8_t *nonce)
{
	for (int i = 0; i < nonce_cnt; i++) {
		if (!memcmp(nonces[i], nonce, TCP_NONCE_LEN))
			return i + 1;
	}
	if (nonce_cnt < NONCES - 1)
		memcpy(nonces[nonce_cnt++], nonce, TCP_NONCE_LEN);
	return nonce_cnt;
}

static const struct mac *mac_find(const uint8_t *bytes)
{
	for (int i = 0; i < mac_cnt; i++) {
		if (!memcmp(macs[i].bytes, bytes, TCP_MAC_LEN))
			return &macs[i];
	}
	return NULL;
}

static size_t put(uint8_t *buf, size_t at, const void *data, size_t len)
{
	memcpy(buf + at, data, len);
	return at + len;
}

static size_t put_addr(uint8_t *buf, size_t at, const struct sockaddr_in *addr)
{
	uint8_t host[16] = { 0 };

	memcpy(host, &addr->sin_addr, sizeof(addr->sin_addr));
	return put(buf, put(buf, at, host, sizeof(host)), &addr->sin_port, sizeof(addr->sin_port));
}

/* True if this is the hash that wire.h describes for this session and role. */
static bool is_hash(const struct session *session, int role, const uint8_t *mac)
{
	uint8_t buf[16 + FRAME_HEAD + sizeof(session->challenge) + TCP_NONCE_LEN + 36], want[FAB_MAC_LEN];
	char name[16] = { 0 };
	size_t len;

	memcpy(name, role == ROLE_CONNECT ? "weft1 connect" : "weft1 accept", role == ROLE_CONNECT ? 13 : 12);
	len = put(buf, 0, name, sizeof(name));
	len = put(buf, len, session->request, session->request_len);
	len = put(buf, len, session->challenge, sizeof(session->challenge));
	len = put(buf, len, session->nonce, TCP_NONCE_LEN);
	len = put_addr(buf, len, &session->from_addr);
	len = put_addr(buf, len, &session->to_addr);
	return !fab_hmac(KEY, strlen(KEY), buf, len, want) && !memcmp(want, mac, TCP_MAC_LEN);
}

/* A node has made a hash. What it covers; role 0 if it is none. */
static struct mac mac_made(const struct session *session, int role, const uint8_t *bytes)
{
	struct mac mac = { 0 };

	memcpy(mac.bytes, bytes, TCP_MAC_LEN);
	memcpy(mac.nonce, session->nonce, TCP_NONCE_LEN);
	if (!is_hash(session, role, bytes))
		return mac;
	mac.role = role;
	mac.challenge = nonce_number(session->challenge + HDR_LEN);
	mac.number = nonce_number(session->nonce);
	mac.ends = 4 * session->from + session->to;
	if (mac_cnt < MACS)
		macs[mac_cnt++] = mac;
	return mac;
}

/* A node has read a hash, and with a proof its nonce. Role 0: nobody has made it, or it was for another nonce. */
static struct mac mac_read(const uint8_t *bytes, const uint8_t *nonce)
{
	const struct mac *mac = mac_find(bytes);

	return mac && (!nonce || !memcmp(mac->nonce, nonce, TCP_NONCE_LEN)) ? *mac : (struct mac) { 0 };
}

/* ---- the log ---- */

static void tell(const struct frame *frame, const struct session *session, const struct mac *mac)
{
	trace_say(frame->got ? "got" : "sent", frame->end.node, 6, frame->cm ? frame->type + TRACE_CM : 0, mac->role,
		  mac->challenge, mac->number, mac->ends, session->number);
}

static void begin(struct session *session, const struct frame *frame)
{
	session->begun = true;
	session->number = session_cnt++;
	session->from = (int) frame->end.node + 1;
	session->to = ntohs(frame->end.theirs->sin_port) - PORT + 1;
	session->from_addr = *frame->end.ours;
	session->to_addr = *frame->end.theirs;
	trace_say("limit", 0, 6, session->from, session->to, 0, 0, 0, session->number);
}

/* What a message of the handshake says. */
static struct mac hello_says(const struct frame *frame, struct session *session)
{
	const uint8_t *data = frame->head + HDR_LEN;
	struct mac mac = { 0 };

	switch (frame->type) {
	case TCP_CM_CONNREQ:
		session->request_len = frame->head_len;
		memcpy(session->request, frame->head, frame->head_len);
		break;
	case TCP_CM_CHALLENGE:
		memcpy(session->challenge, frame->head, sizeof(session->challenge));
		mac.challenge = nonce_number(data);
		break;
	case TCP_CM_PROOF:
		memcpy(session->nonce, data, TCP_NONCE_LEN);
		if (frame->got)
			return mac_read(data + TCP_NONCE_LEN, data);
		return mac_made(session, ROLE_CONNECT, data + TCP_NONCE_LEN);
	case TCP_CM_ADMIT:
		return frame->got ? mac_read(data, NULL) : mac_made(session, ROLE_ACCEPT, data);
	}
	return mac;
}

static void keys_frame(const struct frame *frame)
{
	struct session *session = &sessions[frame->end.conn];
	struct mac mac = { 0 };

	if (!session->begun)
		begin(session, frame);
	if (frame->end.node == M_NODE)
		return;
	if (frame->cm) {
		mac = hello_says(frame, session);
	} else if (session->framed[frame->end.node][frame->got]) {
		return;
	} else {
		session->framed[frame->end.node][frame->got] = true;
	}
	if (frame->cm && frame->type == TCP_CM_CONNREQ && !frame->got) {
		stolen_len = frame->head_len;
		memcpy(stolen, frame->head, frame->head_len);
	}
	tell(frame, session, &mac);
}

/* ---- M ---- */

static void wire_close(struct wire *wire)
{
	fab_sock->close(wire->fd);
	wire->fd = 0;
}

static struct wire *wire_new(int fd, bool asked)
{
	for (int i = 0; i < WIRES; i++) {
		if (wires[i].fd)
			continue;
		wires[i] = (struct wire) { .fd = fd, .asked = asked };
		return &wires[i];
	}
	fab_sock->close(fd);
	return NULL;
}

static void wire_send(const struct wire *wire, uint8_t type, const void *data, size_t len)
{
	struct tcp_cm_hdr hdr = { .version = TCP_CM_VERSION, .type = type, .seg_size = htobe16((uint16_t) len),
				  .conn_data = TCP_CM_CONN_DATA };
	uint8_t msg[FRAME_HEAD];

	memcpy(msg, &hdr, sizeof(hdr));
	memcpy(msg + sizeof(hdr), data, len);
	fab_sock->send(wire->fd, msg, sizeof(hdr) + len, MSG_NOSIGNAL);
}

/* One of so many; the last ones more often. */
static int any_of(int cnt)
{
	return cnt > 2 && net_random(2) ? cnt - 1 - (int) net_random(2) : (int) net_random((uint32_t) cnt);
}

static void fill_random(uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t) net_random(256);
}

/* A nonce that M knows, or its own. */
static void choose_nonce(uint8_t *to)
{
	if (nonce_cnt && net_random(4))
		memcpy(to, nonces[any_of(nonce_cnt)], TCP_NONCE_LEN);
	else
		fill_random(to, TCP_NONCE_LEN);
}

static void answer_challenge(const struct wire *wire)
{
	struct tcp_proof proof;

	fill_random((uint8_t *) &proof, sizeof(proof));
	if (mac_cnt && net_random(8)) {
		const struct mac *mac = &macs[any_of(mac_cnt)];

		memcpy(proof.mac, mac->bytes, TCP_MAC_LEN);
		memcpy(proof.nonce, mac->nonce, TCP_NONCE_LEN);
		if (!net_random(4))
			choose_nonce(proof.nonce);
	}
	wire_send(wire, TCP_CM_PROOF, &proof, sizeof(proof));
}

static void answer_proof(const struct wire *wire)
{
	const struct tcp_rdm_cm cm = { .port = htobe16(PORT + M_NODE) };
	struct tcp_admit admit;

	fill_random(admit.mac, sizeof(admit.mac));
	if (mac_cnt && net_random(8))
		memcpy(admit.mac, macs[any_of(mac_cnt)].bytes, TCP_MAC_LEN);
	wire_send(wire, TCP_CM_ADMIT, &admit, sizeof(admit));
	wire_send(wire, TCP_CM_CONNRESP, &cm, sizeof(cm));
}

/* A whole message has come. */
static void answer(const struct wire *wire, uint8_t type)
{
	struct tcp_challenge challenge;

	switch (type) {
	case TCP_CM_CONNREQ:
		choose_nonce(challenge.nonce);
		wire_send(wire, TCP_CM_CHALLENGE, &challenge, sizeof(challenge));
		break;
	case TCP_CM_CHALLENGE:
		answer_challenge(wire);
		break;
	case TCP_CM_PROOF:
		answer_proof(wire);
		break;
	}
}

static void wire_read(struct wire *wire)
{
	struct tcp_cm_hdr hdr = { 0 };
	ssize_t n = fab_sock->recv(wire->fd, wire->buf + wire->have, sizeof(wire->buf) - wire->have, 0);
	size_t len;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		wire_close(wire);
		return;
	}
	wire->have += (size_t) n;
	memcpy(&hdr, wire->buf, fab_min(wire->have, sizeof(hdr)));
	len = HDR_LEN + be16toh(hdr.seg_size);
	if (wire->have < HDR_LEN || wire->have < len)
		return;
	wire->have = 0;			/* nobody sends the next one before it has an answer */
	answer(wire, hdr.type);
}

static void m_accept(void)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	int fd = fab_sock->accept4(listen_fd, (struct sockaddr *) &addr, &len, 0);

	if (fd >= 0)
		wire_new(fd, false);
}

/* Connect to a node, in the name of one of them. */
static void m_connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t) (PORT + net_random(NODES))),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = fab_sock->socket(AF_INET, SOCK_STREAM, 0);

	fab_sock->connect(fd, (struct sockaddr *) &to, sizeof(to));
	wire_new(fd, true);
}

/* The first bytes of a connection of M, as soon as it is up. */
static void m_ask(struct wire *wire)
{
	if (fab_sock->send(wire->fd, stolen, stolen_len, MSG_NOSIGNAL) > 0)
		wire->asked = false;
}

static void keys_meddle(void)
{
	net_node(M_NODE);
	m_accept();
	if (stolen_len && session_cnt < SESSIONS / 2 && !net_random(60))
		m_connect();
	for (int i = 0; i < WIRES; i++) {
		if (wires[i].fd && wires[i].asked)
			m_ask(&wires[i]);
		if (wires[i].fd)
			wire_read(&wires[i]);
	}
}

static unsigned keys_prepare(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(PORT + M_NODE),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	memset(sessions, 0, sizeof(sessions));
	memset(wires, 0, sizeof(wires));
	session_cnt = nonce_cnt = mac_cnt = 0;
	stolen_len = 0;
	net_node(M_NODE);
	listen_fd = fab_sock->socket(AF_INET, SOCK_STREAM, 0);
	fab_sock->bind(listen_fd, (struct sockaddr *) &addr, sizeof(addr));
	fab_sock->listen(listen_fd, 10);
	return 0;
}

const struct scenario trace_keys = {
	.name = "keys", .prepare = keys_prepare, .watch = { .frame = keys_frame }, .meddle = keys_meddle, .key = KEY,
};
