/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data of connection requests and of their answers, byte by byte: those of this build, of older builds of ours, and
 * of upstream, whose next release asks for several connections with a peer.
 */
#include "rxm/rig.h"

#include <string.h>
#include "rxm/rxm.h"

#define MARKED(rx_size)	((rx_size) | RXM_EXT << RXM_EXT_SHIFT)

static char out[8], in[8];

/* ---- requests of this build ---- */

/* Where the peer of a rig listens, and its events. */
struct listener {
	struct fid_pep *pep;
	struct fid_eq *eq;
	ssize_t len;			/* of entry, as read */
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[256];
	} entry;
};

/* Listen at a port above that of the rig's endpoint. */
static void listener_open(struct listener *listener, struct rig *rig, struct sockaddr_in *addr)
{
	struct fi_eq_attr attr = { 0 };
	size_t len = sizeof(*addr);
	int ret;

	OK(fi_eq_open(rig->raw_fabric, &attr, &listener->eq, NULL));
	OK(fi_getname(&rig->ep->fid, addr, &len));
	do {
		addr->sin_port = htons(ntohs(addr->sin_port) + 1);
		OK(fi_passive_ep(rig->raw_fabric, rig->raw_info, &listener->pep, NULL));
		OK(fi_pep_bind(listener->pep, &listener->eq->fid, 0));
		OK(fi_setname(&listener->pep->fid, addr, sizeof(*addr)));
		ret = fi_listen(listener->pep);
		if (ret)
			OK(fi_close(&listener->pep->fid));
	} while (ret == -FI_EADDRINUSE);
	OK(ret);
}

static bool has_event(struct listener *listener)
{
	uint32_t event;

	listener->len = fi_eq_read(listener->eq, &event, &listener->entry, sizeof(listener->entry), 0);
	return listener->len > 0;
}

/* A rig whose endpoint requests a connection with the listener, for the send of `out`. */
static void attempt_open(struct rig *rig, struct listener *listener)
{
	struct sockaddr_in addr;
	fi_addr_t to;

	rig_open(rig, false, true);
	listener_open(listener, rig, &addr);
	assert_int_equal(fi_av_insert(rig->av, &addr, 1, &to, 0, NULL), 1);
	OK((int) fi_send(rig->ep, out, 4, NULL, to, out));
	rig_until(rig, has_event(listener));
	rig->port = ntohs(addr.sin_port);
}

/* The listener refuses the request, so the send fails: the attempt was still there, and is not repeated. */
static void attempt_close(struct rig *rig, struct listener *listener)
{
	OK(fi_reject(listener->pep, listener->entry.cm.info->handle, NULL, 0));
	fi_freeinfo(listener->entry.cm.info);
	assert_int_equal(rig_result(rig, out), FI_ECONNREFUSED);
	OK(fi_close(&listener->pep->fid));
	OK(fi_close(&listener->eq->fid));
	rig_close(rig);
}

/* Upstream's next release reads byte 7 as the index of a connection, and older ones do not read it: it is 0. Our mark
 * is in a byte that no upstream reads. */
static void request_bytes(void **state)
{
	const uint8_t want[8] = { 1, 2, 4, 3, [6] = 2, 0 };
	struct listener listener;
	struct rig rig;
	uint8_t bytes[24];

	(void) state;
	attempt_open(&rig, &listener);
	assert_int_equal(listener.len, sizeof(listener.entry.cm) + sizeof(bytes));
	memcpy(bytes, listener.entry.cm.data, sizeof(bytes));
	assert_memory_equal(bytes, want, 4);
	assert_memory_equal(bytes + 6, want + 6, 2);
	assert_int_equal(bytes[15], 0x57);
	attempt_close(&rig, &listener);
}

/* ---- requests of others ---- */

/* Additions are known to both ends, or the peer is upstream's, which has 0 in both places. */
static void expect_answer(uint8_t slot, uint32_t rx_size, uint8_t ext)
{
	struct rig rig;

	rig_open_as(&rig, slot, rx_size, true);
	assert_int_equal(rig.answer.ext, ext);
	assert_int_equal(rig.answer.rx_size, RXM_CONN_RX);
	OK((int) fi_send(rig.ep, out, 4, NULL, rig.peer, out));
	assert_int_equal(rig_packet(&rig)->ctrl.type, RXM_EAGER);
	rig_close(&rig);
}

static void answers(void **state)
{
	(void) state;
	expect_answer(0, MARKED(64), RXM_EXT);
	expect_answer(0, 64, 0);
	/* builds of ours until November 2026, without and with collectives */
	expect_answer(RXM_EXT, 64, RXM_EXT);
	expect_answer(RXM_EXT | RXM_EXT_COLL, 64, RXM_EXT);
}

/* Below the mark are the packet buffers of the peer: it is not sent more than those take before it gives credit. */
static void window(void **state)
{
	const unsigned cnt = RXM_WINDOW(16);
	struct rxm_pkt *credit;
	struct rig rig;

	(void) state;
	rig_open_as(&rig, 0, MARKED(16), true);
	for (unsigned i = 0; i <= cnt; i++)
		OK((int) fi_send(rig.ep, out, 4, NULL, rig.peer, out));
	rig_until(&rig, rig.done_cnt >= cnt);
	for (int i = 0; i < 10; i++)
		rig_drive(&rig);
	assert_int_equal(rig.done_cnt, cnt);
	credit = rig_make(&rig, RXM_CREDIT, RXM_OP_MSG, 0);
	credit->ctrl.conn_id = 1;
	rig_send(&rig, credit, 0);
	rig_until(&rig, rig.done_cnt > cnt);
	rig_close(&rig);
}

/* A further endpoint of the peer requests a connection, and is refused. The caller closes it. */
static struct fid_ep *refused(struct rig *rig, uint8_t slot)
{
	struct fid_ep *raw = rig_raw(rig);
	int before = rig->refusals;

	rig_request(rig, raw, slot, 64);
	rig_until(rig, rig->refusals > before);
	assert_int_equal(rig->refusal.version, RXM_CM_VERSION);
	assert_int_equal(rig->refusal.reason, RXM_REJECT_REFUSED);
	return raw;
}

/* A further request of a peer that has a connection is refused, and that connection stays. */
static void expect_refusal(struct rig *rig, uint8_t slot)
{
	struct fid_ep *raw = refused(rig, slot);

	OK((int) fi_recv(rig->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(rig->ep, out, 4, NULL, rig->peer, NULL));
	assert_int_equal(rig_packet(rig)->ctrl.type, RXM_EAGER);
	assert_false(rig->down);
	OK(fi_close(&raw->fid));
}

/* ... also those whose index is the mark of older builds of ours. */
static void further_connections(void **state)
{
	struct rig rig;

	(void) state;
	rig_open(&rig, false, true);
	expect_refusal(&rig, 1);
	expect_refusal(&rig, 255);
	expect_refusal(&rig, RXM_EXT);
	expect_refusal(&rig, RXM_EXT | RXM_EXT_COLL);
	rig_close(&rig);
}

/* Packets are as long at both ends: a peer that may send longer ones than this end has room for is refused. */
static void other_packet_length(void **state)
{
	const size_t size = rxm_params.buffer_size;
	struct fid_ep *raw;
	struct rig rig;

	(void) state;
	rig_open(&rig, false, true);
	OK(fi_shutdown(rig.raw, 0));
	rxm_params.buffer_size = size / 2;
	raw = refused(&rig, 0);
	rxm_params.buffer_size = size;
	OK(fi_close(&raw->fid));
	rig_close(&rig);
}

/* A further request that comes before the answer to our own leaves our attempt alone. The peer has the higher address,
 * so that a request for its first connection would end the attempt. */
static void further_while_connecting(void **state)
{
	struct listener listener;
	struct fid_ep *raw;
	struct rig rig;

	(void) state;
	attempt_open(&rig, &listener);
	raw = rig_raw(&rig);
	rig_request(&rig, raw, 1, 64);
	rig_until(&rig, rig.refusals);
	assert_int_equal(rig.refusal.reason, RXM_REJECT_REFUSED);
	OK(fi_close(&raw->fid));
	attempt_close(&rig, &listener);
}

/* ---- levels ---- */

/* An empty message to upstream is not announced, since upstream never answers that. It ends when the provider below has
 * delivered it, and no answer is waited for. */
static void empty_delivered(void **state)
{
	struct fi_msg msg = { .context = out };
	const struct rxm_pkt *pkt;
	struct rig rig;

	(void) state;
	rig_open(&rig, false, true);
	msg.addr = rig.peer;
	OK((int) fi_sendmsg(rig.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	for (int i = 0; i < 10; i++)		/* the peer makes no progress */
		assert_int_equal(fi_cq_read(rig.cq, NULL, 0), -FI_EAGAIN);
	pkt = rig_packet(&rig);
	assert_int_equal(pkt->ctrl.type, RXM_EAGER);
	assert_int_equal(pkt->op.size, 0);
	assert_int_equal(pkt->op.flags, 0);
	assert_int_equal(rig_result(&rig, out), 0);
	msg.context = in;
	OK((int) fi_sendmsg(rig.ep, &msg, FI_COMPLETION | FI_MATCH_COMPLETE));
	assert_int_equal(rig_result(&rig, in), FI_EOPNOTSUPP);
	assert_non_null(strstr(rig.text, "cannot tell when a receive takes an empty message"));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_bytes),
		cmocka_unit_test(answers),
		cmocka_unit_test(window),
		cmocka_unit_test(further_connections),
		cmocka_unit_test(other_packet_length),
		cmocka_unit_test(further_while_connecting),
		cmocka_unit_test(empty_delivered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
