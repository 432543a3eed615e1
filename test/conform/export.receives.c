/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exported shared receive contexts: messages of another provider and our own for the receives of one context. In most
 * tests the other provider is played by the test (shop.h), in some it is another domain of the provider. Source:
 * fi_peer(3).
 */
#include <rdma/fi_trigger.h>
#include <string.h>

#include "shop.h"

#define CAPS (FI_MSG | FI_TAGGED | FI_PEER)

/* Posted receives go to whoever has a message that fits, the oldest first, and each is used once. */
TEST_PROV(receives_serve_both, CAPS, RELIABLE)
{
	struct shop shop = shop_open(t);
	char in[5][8];

	trecv(&shop, in[0], 8, 0x10, 0);
	trecv(&shop, in[1], 8, 0x20, 0xf);
	trecv(&shop, in[2], 8, 0x20, 0xf);
	trecv(&shop, in[3], 8, 0x10, 0);
	MUST((int) fi_recv(shop.srx, in[4], 8, desc_for(shop.b, in[4], 8), FI_ADDR_UNSPEC, in[4]));
	arrive_tagged(t, shop.fake, "theirs1", 0x23);
	CHECK_EQ(expect_text(&shop, in[1], "theirs1").tag, 0x23);
	send_there(&shop, "ours1", 0x24);
	expect_text(&shop, in[2], "ours1");
	send_there(&shop, "ours2", 0x10);
	expect_text(&shop, in[0], "ours2");
	arrive_tagged(t, shop.fake, "theirs2", 0x10);
	expect_text(&shop, in[3], "theirs2");
	arrive_plain(t, shop.fake, "plain");
	CHECK((expect_text(&shop, in[4], "plain").flags & (FI_MSG | FI_RECV)) == (FI_MSG | FI_RECV));
	CHECK_EQ(shop.fake->start_cnt, 0);
	all_back(&shop);
}

/* Messages that wait do so in the order of their arrival, whoever has them. */
TEST_PROV(waiting_messages_stand_in_line, CAPS, RELIABLE)
{
	static const char *const text[] = { "1 ours", "2 theirs", "3 theirs", "4 ours", "5 theirs" };
	struct shop shop = shop_open(t);
	char in[COUNT(text)][16];
	size_t i;

	shop.fake->at_once = true;
	for (i = 0; i < COUNT(text); i++) {
		if (strstr(text[i], "ours"))
			send_there(&shop, text[i], 7);
		else
			arrive_tagged(t, shop.fake, text[i], 7);
	}
	CHECK_EQ(shop.fake->out_cnt, 3);
	for (i = 0; i < COUNT(text); i++) {
		trecv(&shop, in[i], 16, i == 2 ? 0 : 7, i == 2 ? UINT64_MAX : 0);
		expect_text(&shop, in[i], text[i]);
	}
	CHECK_EQ(shop.fake->start_cnt, 3);
	all_back(&shop);
}

/* The same with a peer that takes its time: the receive stays its own meanwhile. */
TEST_PROV(peer_may_take_its_time, CAPS, RELIABLE)
{
	struct shop shop = shop_open(t);
	char in[2][8];

	arrive_tagged(t, shop.fake, "theirs", 7);
	trecv(&shop, in[0], 8, 7, 0);
	trecv(&shop, in[1], 8, 7, 0);
	send_there(&shop, "ours", 7);
	expect_text(&shop, in[1], "ours");
	MUST((int) fi_cancel(&shop.srx->fid, in[0]));
	CHECK_EQ(shop.fake->start_cnt, 1);
	finish_started(shop.fake, 0);
	expect_text(&shop, in[0], "theirs");
	all_back(&shop);
}

/* A receive that is posted between the two calls of a peer is not missed. */
TEST_PROV(receive_comes_between_get_and_queue, CAPS, RELIABLE)
{
	struct shop shop = shop_open(t);
	struct message m = { .fake = shop.fake, .tagged = true, .buf = "late", .len = 4, .tag = 3,
			     .addr = FI_ADDR_NOTAVAIL };
	struct fi_peer_rx_entry *entry;
	char in[8];
	int i;

	for (i = 0; i < 2; i++) {
		shop.fake->at_once = i;
		CHECK_RET(ask(&m, &entry), -FI_ENOENT);
		trecv(&shop, in, 8, 3, 0);
		MUST(wait_for_receive(&m, entry));
		CHECK_EQ(shop.fake->start_cnt, i + 1);
		if (!i)
			finish_started(shop.fake, 0);
		expect_text(&shop, in, "late");
	}
	all_back(&shop);
}

/* Too long for its receive: the peer sees both lengths, and says so. */
TEST_PROV(peer_truncates, CAPS, RELIABLE)
{
	struct shop shop = shop_open(t);
	struct message m = { .fake = shop.fake, .buf = "too long", .len = 8, .addr = FI_ADDR_NOTAVAIL };
	struct fi_peer_rx_entry *entry;
	char in[4];

	MUST((int) fi_recv(shop.srx, in, 4, desc_for(shop.b, in, 4), FI_ADDR_UNSPEC, in));
	MUST(ask(&m, &entry));
	CHECK(entry->msg_size == 8 && entry->count == 1 && entry->iov[0].iov_len == 4 && entry->context == in);
	CHECK(entry->desc && entry->srx == shop.fake->srx);
	finish(&m, entry);
	expect_rx_err(shop.b, FI_ETRUNC, .ctx = in, .olen = 4);
	all_back(&shop);
}

/* A multi-receive is filled by both, and released when nothing more is on its way into it, behind all that is in it. */
TEST_PROV(multi_receive_of_both, CAPS | FI_MULTI_RECV, RELIABLE)
{
	struct shop shop = shop_open(t);
	struct message m = { .fake = shop.fake, .buf = "theirs--", .len = 8, .addr = FI_ADDR_NOTAVAIL };
	struct fi_peer_rx_entry *first, *last;
	size_t min = 64, whole = 64 + 8 + 8;
	char *in = mem(t, whole);
	struct iovec iov = { in, whole };
	void *desc = desc_for(shop.b, in, whole);
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in };
	struct comp c;

	MUST(fi_setopt(&shop.srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	shop.fake->at_once = true;
	arrive_plain(t, shop.fake, "waited--");
	MUST((int) fi_recvmsg(shop.srx, &msg, FI_MULTI_RECV));
	c = expect_rx(shop.b);
	CHECK(c.ctx == in && c.buf == in && c.len == 8 && !(c.flags & FI_MULTI_RECV));
	MUST(ask(&m, &first));
	CHECK(first->iov[0].iov_base == in + 8 && first->iov[0].iov_len == 8);
	post(shop.a, SEND, .buf = "ours--", .len = 6);
	c = expect_rx(shop.b);
	CHECK(c.buf == in + 16 && c.len == 6 && !(c.flags & FI_MULTI_RECV));
	MUST((int) fi_recv(shop.srx, mem(t, 8), 8, NULL, FI_ADDR_UNSPEC, &min));
	MUST(ask(&m, &last));
	CHECK(last->context == &min);
	finish(&m, last);
	CHECK(expect_rx(shop.b).ctx == &min);
	finish(&m, first);
	c = expect_rx(shop.b);
	CHECK(c.buf == in + 8 && c.len == 8 && !(c.flags & FI_MULTI_RECV));
	CHECK_MEM(in, "waited--theirs--ours--", 22);
	c = expect_rx(shop.b);
	CHECK(c.ctx == in && c.len == 0 && (c.flags & FI_MULTI_RECV));
	expect_tx(shop.a);
	all_back(&shop);
}

/* What a peer has not finished keeps a multi-receive whose last message was ours. */
TEST_PROV(multi_receive_waits_for_the_peer, CAPS | FI_MULTI_RECV, RELIABLE)
{
	struct shop shop = shop_open(t);
	char *in = mem(t, 128);
	struct iovec iov = { in, 128 };
	void *desc = desc_for(shop.b, in, 128);
	struct fi_msg msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in };
	struct comp c;
	int i;

	arrive_plain(t, shop.fake, "theirs");
	MUST((int) fi_recvmsg(shop.srx, &msg, FI_MULTI_RECV));
	post(shop.a, SEND, .buf = mem_pattern(t, 100, 1), .len = 100);
	c = expect_rx(shop.b);
	CHECK(c.buf == in + 6 && c.len == 100 && !(c.flags & FI_MULTI_RECV));
	finish_started(shop.fake, 0);
	for (i = 0; i < 2; i++) {
		c = expect_rx(shop.b);
		CHECK(c.ctx == in && c.len == (i ? 0 : 6) && !(c.flags & FI_MULTI_RECV) == !i);
	}
	expect_tx(shop.a);
	all_back(&shop);
}

/* A peek finds what another provider has, a claim keeps it, a discard drops it. */
TEST_PROV(peek_claim_discard, CAPS, RELIABLE)
{
	struct shop shop = shop_open(t);
	char in[8];
	struct iovec iov = { in, 8 };
	void *desc = desc_for(shop.b, in, 8);
	struct fi_context2 ctx;
	struct fi_msg_tagged msg = { .msg_iov = &iov, .desc = &desc, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 7,
				     .context = &ctx };
	struct comp c;

	shop.fake->at_once = true;
	arrive(t, shop.fake, &(struct message) { .tagged = true, .buf = "first", .len = 5, .tag = 7, .data = 99,
	       .addr = FI_ADDR_NOTAVAIL });
	arrive_tagged(t, shop.fake, "second", 7);
	arrive_tagged(t, shop.fake, "third", 7);
	MUST((int) fi_trecvmsg(shop.srx, &msg, FI_PEEK));
	c = expect_rx(shop.b);
	CHECK(c.len == 5 && c.tag == 7 && c.data == 99 && (c.flags & FI_REMOTE_CQ_DATA));
	MUST((int) fi_trecvmsg(shop.srx, &msg, FI_PEEK | FI_CLAIM));
	expect_rx(shop.b);
	MUST((int) fi_trecvmsg(shop.srx, &(struct fi_msg_tagged) { .addr = FI_ADDR_UNSPEC, .tag = 7, .context = in },
			       FI_PEEK | FI_DISCARD));
	CHECK_EQ(expect_rx(shop.b).len, 6);
	CHECK_EQ(shop.fake->discard_cnt, 1);
	trecv(&shop, in, 8, 7, 0);
	expect_text(&shop, in, "third");
	MUST((int) fi_trecvmsg(shop.srx, &msg, FI_CLAIM));
	c = expect_rx(shop.b);
	CHECK(c.ctx == &ctx);
	CHECK_MEM(in, "first", 5);
	MUST((int) fi_trecvmsg(shop.srx, &msg, FI_PEEK));
	expect_rx_err(shop.b, FI_ENOMSG);
	all_back(&shop);
}

/* A message that its provider takes back is not found any more, claimed or not. */
TEST_PROV(peer_takes_back, CAPS, RELIABLE)
{
	struct shop shop = shop_open(t);
	struct fi_peer_rx_entry *plain = arrive_tagged(t, shop.fake, "first", 7), *claimed;
	struct fi_context2 ctx;
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = 8, .context = &ctx };
	char in[8];

	claimed = arrive_tagged(t, shop.fake, "second", 8);
	MUST((int) fi_trecvmsg(shop.srx, &msg, FI_PEEK | FI_CLAIM));
	expect_rx(shop.b);
	shop.fake->srx->owner_ops->free_entry(plain);
	shop.fake->srx->owner_ops->free_entry(claimed);
	shop.fake->out_cnt = 0;
	MUST((int) fi_trecvmsg(shop.srx, &msg, FI_CLAIM));
	expect_rx_err(shop.b, FI_ENOMSG, .ctx = &ctx);
	trecv(&shop, in, 8, 0, UINT64_MAX);
	send_there(&shop, "ours", 7);
	expect_text(&shop, in, "ours");
	all_back(&shop);
}

/* A peer that will not deliver after all: the receive ends in error, once. */
TEST_PROV(peer_refuses_to_start, CAPS, RELIABLE)
{
	struct shop shop = shop_open(t);
	struct fi_peer_rx_entry *entry = arrive_tagged(t, shop.fake, "first", 7);
	char in[8];

	shop.fake->refuse = -FI_ECONNRESET;
	trecv(&shop, in, 8, 7, 0);
	expect_rx_err(shop.b, FI_ECONNRESET, .ctx = in);
	shop.fake->srx->owner_ops->free_entry(entry);
	shop.fake->out_cnt--;
	all_back(&shop);
}

static fi_addr_t known_addr;

static fi_addr_t address_of(struct fi_peer_rx_entry *entry)
{
	return ((struct message *) entry->peer_context)->len == 5 ? known_addr : FI_ADDR_UNSPEC;
}

/* A directed receive waits for its source, also where the source becomes known when the message waits already. */
TEST_PROV(directed_receives, CAPS | FI_DIRECTED_RECV, RDM_ONLY)
{
	struct shop shop = shop_open(t);
	char in[3][8];

	shop.fake->at_once = true;
	known_addr = side_insert(shop.b, side_open(t));
	MUST((int) fi_trecv(shop.srx, in[0], 8, NULL, known_addr, 7, 0, in[0]));
	send_there(&shop, "ours", 7);
	arrive_tagged(t, shop.fake, "first", 7);
	arrive_tagged(t, shop.fake, "second", 7);
	CHECK_EQ(shop.fake->start_cnt, 0);
	shop.fake->srx->owner_ops->foreach_unspec_addr(shop.fake->srx, address_of);
	expect_text(&shop, in[0], "first");
	MUST((int) fi_trecv(shop.srx, in[1], 8, NULL, known_addr, 7, 0, in[1]));
	arrive(t, shop.fake, &(struct message) { .tagged = true, .buf = "third", .len = 5, .tag = 7,
						 .addr = known_addr });
	expect_text(&shop, in[1], "third");
	trecv(&shop, in[0], 8, 7, 0);
	expect_text(&shop, in[0], "ours");
	trecv(&shop, in[2], 8, 7, 0);
	expect_text(&shop, in[2], "second");
	all_back(&shop);
}

/* How many messages may wait is bounded; there is room again when one has gone. */
TEST_PROV(waiting_is_bounded, CAPS, RDM_ONLY)
{
	struct shop shop = shop_open(t);
	struct message m = { .fake = shop.fake, .tagged = true, .len = 8, .tag = 1, .addr = FI_ADDR_NOTAVAIL };
	struct fi_peer_rx_entry **entry = mem(t, (1 << 20) * sizeof(*entry));
	struct fi_peer_rx_entry *last = NULL;
	size_t cnt = 0, i;
	int ret;

	while ((ret = ask(&m, &entry[cnt])) == -FI_ENOENT && cnt < (1 << 20) - 1)
		MUST(wait_for_receive(&m, entry[cnt++]));
	CHECK_RET(ret, -FI_ENOMEM);
	CHECK(cnt >= 10000);
	shop.fake->srx->owner_ops->free_entry(entry[--cnt]);
	CHECK_RET(ask(&m, &last), -FI_ENOENT);
	shop.fake->srx->owner_ops->free_entry(last);
	for (i = 0; i < cnt; i++)
		shop.fake->srx->owner_ops->free_entry(entry[i]);
	shop.fake->out_cnt = 0;
	all_back(&shop);
}

/* The context stays until its exported form has gone, and that until the peer has given back what it has. */
TEST_PROV(exported_context_is_closed_last, CAPS, RELIABLE)
{
	struct shop shop = shop_open(t);
	struct fi_peer_rx_entry *entry = arrive_tagged(t, shop.fake, "first", 7);
	struct fid *exported = NULL;

	CHECK_RET(fi_export_fid(&shop.srx->fid, 1, &exported, NULL), -FI_EINVAL);
	CHECK(exported == NULL);
	side_close_ep(shop.b);
	CHECK_RET(fi_close(&shop.srx->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&shop.fake->srx->ep_fid.fid), -FI_EBUSY);
	shop.fake->srx->owner_ops->free_entry(entry);
	close_now(t, &shop.fake->srx->ep_fid.fid);
	close_now(t, &shop.srx->fid);
}

/* Deferred work hears of the end of its receive, which a peer could not tell it: the two do not go together. */
TEST_PROV(no_deferred_receives, CAPS | FI_TRIGGER, RDM_ONLY)
{
	struct shop shop = shop_open(t);
	struct fi_cntr_attr attr = { 0 };
	char in[8];
	struct iovec iov = { in, 8 };
	struct fi_op_tagged op = { .ep = shop.srx, .msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC } };
	struct fi_deferred_work work = { .threshold = 1, .op_type = FI_OP_TRECV, .op.tagged = &op };
	struct fid *exported = NULL;
	struct fid_cntr *cntr;
	struct fid_ep *other;

	MUST(fi_cntr_open(shop.b->domain, &attr, &cntr, NULL));
	own_fid(t, &cntr->fid);
	work.triggering_cntr = cntr;
	CHECK_RET(fi_control(&shop.b->domain->fid, FI_QUEUE_WORK, &work), -FI_EOPNOTSUPP);
	MUST(fi_srx_context(shop.b->domain, shop.b->info->rx_attr, &other, NULL));
	own_fid(t, &other->fid);
	op.ep = other;
	MUST(fi_control(&shop.b->domain->fid, FI_QUEUE_WORK, &work));
	CHECK_RET(fi_export_fid(&other->fid, 0, &exported, NULL), -FI_EBUSY);
	MUST(fi_control(&shop.b->domain->fid, FI_CANCEL_WORK, &work));
	export(t, &other->fid, FI_CLASS_PEER_SRX);
}

/* ---- another domain of the provider as the peer */

static struct side *another(struct shop *shop, const struct opts *o)
{
	struct test *t = shop->b->t;

	return peer_open(t, o, &(struct owners) {
		.cq = shop->fake->cq, .av = export(t, &shop->b->av->fid, FI_CLASS_PEER_AV),
		.srx = export(t, &shop->srx->fid, FI_CLASS_PEER_SRX),
	});
}

static const struct length_row peer_lengths[] = { { "8_bytes", 8 }, { "64_KiB", 65536 }, { "1_MiB", 1 << 20 } };

/* One context has the messages of two providers, whichever of receive and message comes first; each is told once. */
TEST_TABLE(one_context_for_two, peer_lengths, CAPS, RDM_ONLY)
{
	enum { N = 4 };
	size_t len = ROW(peer_lengths)->len, i, told[2 * N] = { 0 };
	struct shop shop = shop_open(t);
	struct side *to[2] = { shop.b, another(&shop, &(struct opts) { .raw_cq = true }) };
	uint8_t *in[2 * N];
	fi_addr_t addr[2];
	struct comp c;

	addr[0] = shop.a->peer;
	addr[1] = side_insert(shop.a, to[1]);
	side_insert(to[1], shop.a);
	for (i = 0; i < 2 * N; i++)
		in[i] = mem(t, len);
	for (i = 0; i < N; i++)
		trecv(&shop, in[i], len, i, 0);
	for (i = 0; i < 2 * N; i++)
		post(shop.a, TSEND, .buf = mem_pattern(t, len, i), .len = len, .tag = i, .addr = &addr[i & 1]);
	for (i = 0; i < N; i++)
		told[expect_rx(shop.b).tag]++;
	idle(t);
	for (i = N; i < 2 * N; i++)
		trecv(&shop, in[i], len, i, 0);
	for (i = 0; i < N; i++) {
		c = expect_rx(shop.b);
		CHECK_EQ(c.len, len);
		told[c.tag]++;
	}
	for (i = 0; i < 2 * N; i++) {
		CHECK_EQ(told[i], 1);
		check_fill(in[i], len, i);
	}
	expect_tx_cnt(shop.a, 2 * N);
	side_close_ep(to[1]);
}

/* What waits at a peer goes with its connection, and the receive that fits takes the next message. */
TEST_PROV(peer_loses_its_sender, CAPS, RDM_ONLY)
{
	struct shop shop = shop_open(t);
	struct side *peer = another(&shop, &(struct opts) { .raw_cq = true });
	struct side *c = side_open(t);
	size_t len = 1 << 20;
	struct fi_context2 ctx;
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = 7, .context = &ctx };
	struct wait w;
	char in[8];

	c->peer = side_insert(c, peer);
	post(c, TSEND, .buf = mem_pattern(t, len, 1), .len = len, .tag = 7);
	/* until it is there, and until it has gone again */
	for (w = wait_begin();; wait_more(t, &w, "a message to wait")) {
		MUST((int) fi_trecvmsg(shop.srx, &msg, FI_PEEK));
		while (!rx_waiting(shop.b))
			wait_more(t, &w, "the answer to a peek");
		if (!shop.b->rx.list[shop.b->rx.taken++].err)
			break;
	}
	side_close_ep(c);
	for (w = wait_begin();; wait_more(t, &w, "the message to go")) {
		MUST((int) fi_trecvmsg(shop.srx, &msg, FI_PEEK));
		while (!rx_waiting(shop.b))
			wait_more(t, &w, "the answer to a peek");
		if (shop.b->rx.list[shop.b->rx.taken++].err == FI_ENOMSG)
			break;
	}
	trecv(&shop, in, 8, 7, 0);
	send_there(&shop, "ours", 7);
	expect_text(&shop, in, "ours");
	side_close_ep(peer);
}

/* What is a peer's is not exported, and nobody is a peer of his own domain. */
TEST_PROV(peers_of_peers, CAPS, RDM_ONLY)
{
	struct shop shop = shop_open(t);
	struct fi_peer_srx_context context = { .size = sizeof(context), .srx = shop.fake->srx };
	struct fi_rx_attr attr = *shop.b->info->rx_attr;
	struct side *other = domain_side(t);
	struct fid *exported = NULL;
	struct fid_ep *srx;

	attr.op_flags = FI_PEER;
	CHECK_RET(fi_srx_context(shop.b->domain, &attr, &srx, &context), -FI_EINVAL);
	MUST(fi_srx_context(other->domain, &attr, &srx, &context));
	own_fid(t, &srx->fid);
	CHECK_RET(fi_export_fid(&srx->fid, 0, &exported, NULL), -FI_EINVAL);
}

/* Directed receives name a peer's senders by the numbers of the owner, who has given them. */
TEST_PROV(receives_by_the_owners_numbers, CAPS | FI_DIRECTED_RECV | FI_SOURCE, RDM_ONLY)
{
	struct shop shop = shop_open(t);
	struct side *peer = another(&shop, &(struct opts) { .raw_cq = true }), *c = side_open(t);
	const fi_addr_t number = side_insert(shop.b, c);
	char in[2][8];

	peer_insert(peer, c, number);
	c->peer = side_insert(c, peer);
	CHECK(number != 0);
	MUST((int) fi_trecv(shop.srx, in[0], 8, NULL, shop.b->peer, 7, 0, in[0]));
	MUST((int) fi_trecv(shop.srx, in[1], 8, NULL, number, 7, 0, in[1]));
	post(c, TSEND, .buf = "theirs", .len = 6, .tag = 7);
	CHECK_EQ(expect_text(&shop, in[1], "theirs").src, number);
	send_there(&shop, "ours", 7);
	CHECK_EQ(expect_text(&shop, in[0], "ours").src, shop.b->peer);
	expect_tx(c);
	side_close_ep(peer);
}

static void tsend_in_group(struct side *s, fi_addr_t peer, uint32_t group, const char *text)
{
	const fi_addr_t addr = fi_group_addr(peer, group);

	post(s, TSENDMSG, .buf = text, .len = strlen(text), .tag = 7, .addr = &addr, .flags = FI_DELIVERY_COMPLETE);
	expect_tx(s);
}

static void trecv_in_group(struct shop *shop, char *buf, uint32_t group)
{
	MUST((int) fi_trecv(shop->srx, buf, 8, NULL, fi_group_addr(UINT32_MAX, group), 7, 0, buf));
}

/* Groups are kept apart at a shared context, whoever brings the messages: known senders and strangers. */
TEST_PROV(groups_of_both, CAPS | FI_DIRECTED_RECV, RDM_ONLY)
{
	struct opts o = { .hints = ask_for_groups };
	struct side *peer;
	struct shop shop;
	fi_addr_t theirs;
	char in[3][8];
	uint32_t i;

	if (!info_find(t, hints_new(t, &o), NULL, NULL, 0))
		ABSENT("%s has no peer groups", run.prov);
	shop = shop_open_opts(t, &o);
	o.raw_cq = true;
	peer = another(&shop, &o);
	theirs = side_insert(shop.a, peer);
	shop.fake->at_once = true;
	for (i = 0; i < 2; i++) {
		if (i)
			peer_insert(peer, shop.a, shop.b->peer);
		/* they wait */
		tsend_in_group(shop.a, theirs, 3, "peer's 3");
		tsend_in_group(shop.a, shop.a->peer, 2, "ours 2");
		arrive(t, shop.fake, &(struct message) { .tagged = true, .buf = "fake's 1", .len = 8, .tag = 7,
		       .addr = fi_group_addr(shop.b->peer, 1) });
		trecv_in_group(&shop, in[0], 1);
		expect_text(&shop, in[0], "fake's 1");
		trecv_in_group(&shop, in[1], 2);
		expect_text(&shop, in[1], "ours 2");
		trecv_in_group(&shop, in[2], 3);
		expect_text(&shop, in[2], "peer's 3");
		/* the receives do */
		trecv_in_group(&shop, in[0], 1);
		trecv_in_group(&shop, in[1], 2);
		trecv_in_group(&shop, in[2], 0);
		tsend_in_group(shop.a, theirs, 2, "peer's 2");
		expect_text(&shop, in[1], "peer's 2");
		tsend_in_group(shop.a, shop.a->peer, 1, "ours 1");
		expect_text(&shop, in[0], "ours 1");
		MUST((int) fi_cancel(&shop.srx->fid, in[2]));
		expect_rx_err(shop.b, FI_ECANCELED, .ctx = in[2]);
	}
	all_back(&shop);
	side_close_ep(peer);
}
