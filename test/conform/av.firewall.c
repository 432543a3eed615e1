/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses that cannot be connected to, FI_FIREWALL_ADDR: whoever is there connects to us, and until then what is sent
 * to it waits. (That nobody tries: test/tcp/firewall.c. That the wait ends: deadline.c.)
 * Source: fi_av(3).
 */
#include <string.h>

#include "ops.h"
#include "scalable.h"

static void need_firewall_addr(void)
{
	if (!run.ours)
		ABSENT("later than the library that is tested");
	if (strcmp(run.prov, "tcp") && strcmp(run.prov, "sockets"))
		ABSENT("%s connects to whom it sends to", run.prov);
}

/* A side whose peer cannot be connected to, and that peer, who can connect. */
static struct pair firewalled_pair(struct test *t)
{
	struct pair p = pair_open(t, .unconnected = true);

	need_firewall_addr();
	CHECK_RET(fi_av_insert(p.a->av, p.b->name, 1, &p.a->peer, FI_FIREWALL_ADDR, NULL), 1);
	p.b->peer = side_insert(p.b, p.a);
	return p;
}

static const struct call_row kinds[] = {
	{ "send", SEND }, { "tsend", TSEND }, { "write", WRITE }, { "read", READ },
};

/* Each kind of operation waits for the peer to connect, and is carried out then. */
TEST_TABLE(firewalled_peer_is_waited_for, kinds, FI_MSG | FI_TAGGED | FI_RMA, RDM_ONLY, .since = FI_VERSION(2, 6))
{
	enum call call = ROW(kinds)->call;
	struct pair p = firewalled_pair(t);
	struct region r = region_open(p.b, NULL, 4, FI_REMOTE_READ | FI_REMOTE_WRITE);
	char buf[4] = "wait", in[4] = "", first[4];

	memcpy(r.buf, "data", 4);
	if (call == SEND)
		post_recv(p.b, in, 4);
	if (call == TSEND)
		post_trecv(p.b, in, 4, 1, 0);
	post(p.a, call, .buf = buf, .len = 4, .tag = 1, .raddr = r.addr, .key = r.key);
	side_progress(p.a);
	side_progress(p.b);
	expect_no_completion(p.a);
	post_recv(p.a, first, 4);
	send_bytes(p.b, "come", 4);
	expect_recv(p.a, "come", 4);
	expect_tx(p.a);
	expect_tx(p.b);
	if (call == SEND || call == TSEND)
		expect_recv(p.b, "wait", 4);
	if (call == WRITE)
		CHECK_MEM(r.buf, "wait", 4);
	if (call == READ)
		CHECK_MEM(buf, "data", 4);
	check_link(p.a, p.b);
}

/* It makes no difference to who is connected already. */
TEST_PROV(firewalled_peer_that_is_connected, FI_MSG, RDM_ONLY, .since = FI_VERSION(2, 6))
{
	struct pair p = firewalled_pair(t);
	fi_addr_t again;

	check_link(p.b, p.a);
	check_link(p.a, p.b);
	CHECK_RET(fi_av_insert(p.b->av, p.a->name, 1, &again, FI_FIREWALL_ADDR, NULL), 1);
	CHECK_EQ(again, p.b->peer);
	check_link(p.a, p.b);
	check_link(p.b, p.a);
}

/* The other ways to insert know it, too, and so do vectors that processes share. */
TEST_PROV(firewall_flag_of_every_insertion, FI_MSG | FI_SHARED_AV, RDM_ONLY, .since = FI_VERSION(2, 6))
{
	struct pair p = pair_open(t, .unconnected = true);
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .name = "conform firewalled" };
	fi_addr_t addrs[4];
	struct fid_av *av;

	need_firewall_addr();
	CHECK_RET(fi_av_insertsvc(p.a->av, loopback(), "4711", &addrs[0], FI_FIREWALL_ADDR, NULL), 1);
	CHECK_RET(fi_av_insertsym(p.a->av, loopback(), 1, "4711", 2, &addrs[1], FI_FIREWALL_ADDR, NULL), 2);
	CHECK_EQ(addrs[0], addrs[1]);
	MUST(fi_av_remove(p.a->av, addrs, 1, 0));
	MUST(fi_av_remove(p.a->av, &addrs[1], 1, 0));
	CHECK_RET(fi_av_remove(p.a->av, addrs, 1, 0), -FI_EINVAL);
	MUST(fi_av_open(p.a->domain, &attr, &av, NULL));
	own_fid(t, &av->fid);
	CHECK_RET(fi_av_insert(av, p.b->name, 1, &addrs[3], FI_FIREWALL_ADDR, NULL), 1);
	MUST(fi_av_remove(av, &addrs[3], 1, 0));
	CHECK_RET(fi_av_remove(av, &addrs[3], 1, 0), -FI_EINVAL);
}

/* Connections of contexts go one way: such a peer can never be sent to, which the first operation says. */
TEST_PROV(firewalled_peer_of_a_context, FI_MSG | FI_NAMED_RX_CTX, RDM_ONLY, .since = FI_VERSION(2, 6))
{
	struct scalable s = scalable_open(t, 1, 1);
	struct side *other = side_open(t);
	fi_addr_t addr;

	need_firewall_addr();
	CHECK_RET(fi_av_insert(s.base->av, other->name, 1, &addr, FI_FIREWALL_ADDR, NULL), 1);
	CHECK_RET(try_op(s.tx[0], SEND, .buf = "none", .len = 4, .addr = &addr), -FI_EOPNOTSUPP);
}

/* Where there is no such thing, the flag that says so is refused, and not ignored. */
TEST_PROV(firewall_flag_is_refused, FI_MSG, UNCONNECTED, .since = FI_VERSION(2, 6))
{
	struct side *s = side_open(t);
	fi_addr_t addr;

	if (!run.ours)
		ABSENT("later than the library that is tested");
	if (run.type == FI_EP_RDM && (!strcmp(run.prov, "tcp") || !strcmp(run.prov, "sockets")))
		ABSENT("%s knows it", run.prov);
	CHECK_RET(fi_av_insert(s->av, s->name, 1, &addr, FI_FIREWALL_ADDR, NULL), -FI_EBADFLAGS);
	CHECK_RET(fi_av_insert(s->av, s->name, 1, &addr, 0, NULL), 1);
}
