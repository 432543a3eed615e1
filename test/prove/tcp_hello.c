/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages of the handshake, in each state that reads one: read from a stream that gives any bytes in pieces of any
 * length, checked, and decoded; and what an RDM endpoint reads in the private data of a request.
 *
 * One call of recv() follows each number of bytes that are there already; the next call finds nothing. That is enough:
 * it leaves one of the numbers with which this program begins, too.
 *
 * eva: -eva-slevel 60 -eva-domains-function equality:cm_read
 */
#include "prove.h"
#include <errno.h>
#include "base/strbuf.c"
#include "base/addr_ib.c"
#undef SCHEME
#include "base/addr.c"
#include "tcp/handshake/cm.c"
#include "tcp/handshake/kind.c"
#undef MS
#include "tcp/peer/request.c"

struct tcp_params tcp_params;
_Atomic bool tcp_capture_is_on;		/* it is off */

static struct tcp_ep ep;
static struct tcp_cm cm;
static bool ended, asked;

/* ---- above and below ---- */

static void on_done(struct tcp_cm *done)
{
	(void) done;
}

static void on_fail(struct tcp_cm *failed, int err)
{
	prove(failed->state == TCP_CM_DONE);
	prove(err > 0);
	ended = true;
}

static const struct tcp_cm_owner owner = { .done = on_done, .fail = on_fail };

static int any_errno;
int *__errno_location(void)
{
	return &any_errno;
}

/* The first call has any result; at another, there is nothing. */
static ssize_t any_recv(int fd, void *buf, size_t len, int flags)
{
	(void) fd;
	(void) flags;
	any_errno = EAGAIN;
	if (asked)
		return -1;
	asked = true;
	prove(len > 0);
	any_bytes(buf, len);
	any_errno = any_of(1, 133);
	return (ssize_t) any_of(0, len + 1) - 1;
}

static uint64_t any_now(void)
{
	return any_of(0, UINT64_MAX);
}

static const struct fab_sock_ops sock = { .recv = any_recv };
const struct fab_sock_ops *fab_sock = &sock;
static const struct fab_clock_ops clock_ops = { .now_ns = any_now };
const struct fab_clock_ops *fab_clock = &clock_ops;

/*@ assigns \nothing; */
void fab_timer_stop(struct fab_timer *timer);
/*@ assigns \nothing; */
void fab_source_del(struct fab_source *src);
/*@ requires \valid(addr);
  @ assigns *addr \from \nothing;
  @ assigns \result \from \nothing;
  @ ensures \initialized((char *) addr + (0 .. sizeof(*addr) - 1));
  @ ensures addr->sa.sa_family == \old(addr->sa.sa_family);
  @ ensures \result == 0 || \result == 1;
  @*/
bool tcp_advertise(union fab_sockaddr *addr);

/* ---- the messages ---- */

/* One of the states that read a message. */
static enum tcp_cm_state any_state(void)
{
	return any_of(0, 1) ? TCP_CM_REPLY : any_of(0, 1) ? TCP_CM_REQUEST : TCP_CM_PROOFS;
}

static void begin(enum tcp_cm_state state, size_t have)
{
	cm.owner = &owner;
	cm.state = state;
	cm.since_ns = cm.reply_ns = 0;
	cm.sock.fd = 3;
	cm.buf_len = have;
	ended = false;
	asked = false;
}

/* Some bytes were read before, and are of a message that may come. */
static void prove_pieces(enum tcp_cm_state state, size_t have)
{
	begin(state, have);
	any_bytes(cm.buf, sizeof(cm.buf));
	if (cm_read_msg(&cm)) {
		prove(!ended);
		prove(cm.buf_len >= HDR_LEN && cm.buf_len <= sizeof(cm.buf));
		prove_readable(cm.data, cm.data_len);
	}
}

/* A whole message, and no byte behind it was ever written. */
static void prove_whole(size_t data_len)
{
	struct tcp_cm one;

	cm = one;
	begin(any_state(), HDR_LEN + data_len);
	any_bytes(cm.buf, HDR_LEN + data_len);
	cm.hdr.seg_size = htons(data_len);
	if (cm_read_msg(&cm)) {
		prove(!asked && !ended);
		prove(cm.data_len == data_len && cm.type <= TCP_CM_ADMIT);
		prove(cm.hdr.version == TCP_CM_VERSION);
		prove(tcp_cm_kind(&cm) <= TCP_KIND_RXM);
	}
}

/* A type is accepted only in a state in which it is expected. */
static void prove_type(enum tcp_cm_state state, uint8_t type)
{
	begin(state, HDR_LEN);
	any_bytes(cm.buf, HDR_LEN);
	cm.hdr.seg_size = 0;
	cm.hdr.type = type;
	if (cm_read_msg(&cm))
		prove(type == TCP_CM_CONNREQ ? state == TCP_CM_REQUEST : type == TCP_CM_PROOF ? state == TCP_CM_PROOFS :
		      state == TCP_CM_REPLY);
}

/* Who asks: private data of this length, and no byte behind it was ever written. */
static void prove_request(size_t data_len, uint16_t features, int family)
{
	struct tcp_cm one;
	struct tcp_request req;

	cm = one;
	any_bytes(&cm.peer, sizeof(cm.peer));
	cm.peer.ext = any_of(0, 1);
	cm.peer.features = features;
	any_bytes(&cm.remote, sizeof(cm.remote));
	cm.remote.sa.sa_family = family;
	cm.data_len = data_len;
	if (data_len)
		any_bytes(cm.data, data_len);
	if (!request_read_ctx(&cm, &req)) {
		prove(features != 0);
		return;
	}
	prove(req.data_len == data_len - (features ? sizeof(struct tcp_rdm_ctx) : 0));
	if (request_read_addr(&ep, &cm, &req))
		prove(req.addr.sa.sa_family == family);
}

int main(void)
{
	tcp_params.trust_advertised = any_of(0, 1);
	any_bytes(&ep.base.name, sizeof(ep.base.name));
	//@ loop unroll 300;
	for (size_t have = 0; have < HDR_LEN + TCP_CM_DATA_MAX; have++) {
		prove_pieces(TCP_CM_REQUEST, have);
		prove_pieces(any_of(0, 1) ? TCP_CM_REPLY : TCP_CM_PROOFS, have);
	}
	//@ loop unroll 40;
	for (uint8_t type = 0; type <= TCP_CM_ADMIT; type++) {
		prove_type(TCP_CM_REPLY, type);
		prove_type(TCP_CM_REQUEST, type);
		prove_type(TCP_CM_PROOFS, type);
	}
	//@ loop unroll 300;
	for (size_t len = 0; len <= TCP_CM_DATA_MAX; len++) {
		prove_whole(len);
		prove_request(len, 0, AF_INET);
		prove_request(len, TCP_EXT_CTX, AF_INET6);
	}
	reached();
	return 0;
}
