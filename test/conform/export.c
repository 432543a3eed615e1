/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exported objects: the provider as owner of what peers put their results into. In some tests a peer is another
 * domain of the provider, in others the test calls the owner as a peer does. Source: fi_peer(3).
 */
#include <pthread.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_peer.h>
#include <string.h>

#include "export.h"
#include "waitobj.h"

#define CAPS (FI_MSG | FI_PEER)

static struct side *peer_of(struct side *owner, struct fid_peer_cq *cq)
{
	return peer_open(owner->t, &(struct opts) { .raw_cq = true }, &(struct owners) { .cq = cq });
}

/* ---- completion queues */

/* One queue has the completions of both: those of its own endpoint and of a peer's, failures included. */
TEST_PROV(one_queue_for_two, CAPS, RDM_ONLY)
{
	struct side *a = side_open(t), *owner = side_open(t, .one_cq = true), *peer;
	char in[3][8], ctx[3];
	struct comp c;
	int i, own = 0, theirs = 0;

	peer = peer_of(owner, export(t, &owner->rx_cq->fid, FI_CLASS_PEER_CQ));
	for (i = 0; i < 2; i++) {
		struct side *to = i ? peer : owner;

		MUST((int) fi_recv(to->ep, in[i], 8, NULL, FI_ADDR_UNSPEC, &ctx[i]));
		a->peer = side_insert(a, to);
		send_bytes(a, i ? "theirs.." : "our own.", 8);
	}
	for (i = 0; i < 2; i++) {
		c = expect_rx(owner);
		CHECK_EQ(c.len, 8);
		own += c.ctx == &ctx[0];
		theirs += c.ctx == &ctx[1];
	}
	CHECK(own == 1 && theirs == 1);
	CHECK_MEM(in[0], "our own.", 8);
	CHECK_MEM(in[1], "theirs..", 8);
	MUST((int) fi_recv(peer->ep, in[2], 4, NULL, FI_ADDR_UNSPEC, &ctx[2]));
	send_bytes(a, "too long", 8);
	c = expect_rx_err(owner, FI_ETRUNC, .olen = 4);
	CHECK(c.ctx == &ctx[2]);
}

/* What a peer reports is all there, in its order, whatever the queue had room for at first; errors in their places. */
TEST_PROV(reports_are_whole_and_in_order, CAPS, RDM_ONLY)
{
	enum { CNT = 5000, FAILED = 77 };
	struct side *s = side_open(t, .raw_cq = true);
	struct fid_peer_cq *peer = export(t, &s->rx_cq->fid, FI_CLASS_PEER_CQ);
	struct fi_cq_err_entry err = { .op_context = s, .err = FI_EIO, .prov_errno = 9, .flags = FI_RECV,
				       .err_data = "why", .err_data_size = 4 }, got = { 0 };
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	uintptr_t i;
	ssize_t ret;

	for (i = 0; i < CNT; i++) {
		if (i == FAILED)
			CHECK_EQ(peer->owner_ops->writeerr(peer, &err), 0);
		CHECK_EQ(peer->owner_ops->write(peer, (void *) i, FI_RECV | FI_TAGGED, i, s, 2 * i, 3 * i, 0), 0);
	}
	for (i = 0; i < CNT; i++) {
		while ((ret = fi_cq_read(s->rx_cq, &entry, 1)) == -FI_EAGAIN)
			wait_more(t, &w, "what the peer has reported");
		if (i == FAILED && ret == -FI_EAVAIL) {
			CHECK_RET(fi_cq_readerr(s->rx_cq, &got, 0), 1);
			CHECK(got.op_context == s && got.err == FI_EIO && got.prov_errno == 9);
			CHECK_EQ(got.err_data_size, 4);
			CHECK_MEM(got.err_data, "why", 4);
			CHECK_RET(fi_cq_read(s->rx_cq, &entry, 1), 1);
		} else {
			CHECK_RET(ret, 1);
			CHECK(i != FAILED);
		}
		CHECK(entry.op_context == (void *) i && entry.len == i && entry.data == 2 * i && entry.tag == 3 * i);
		CHECK(entry.buf == s && entry.flags == (FI_RECV | FI_TAGGED));
	}
	CHECK_RET(fi_cq_read(s->rx_cq, &entry, 1), -FI_EAGAIN);
}

struct reporter {
	struct fid_peer_cq *peer;
	pthread_t thread;
	uintptr_t from;
	bool ok;
};

enum { REPORTS = 2000 };

static void *report(void *arg)
{
	struct reporter *r = arg;
	uintptr_t i;

	r->ok = true;
	for (i = 0; i < REPORTS; i++)
		r->ok &= !r->peer->owner_ops->write(r->peer, (void *) (r->from + i), FI_SEND, 0, NULL, 0, 0, 0);
	return NULL;
}

static void wait_reporter(void *arg)
{
	pthread_join(((struct reporter *) arg)->thread, NULL);
}

/* Threads of peers report while the program reads: each report comes once, those of one thread in their order. */
TEST_PROV(threads_report, CAPS, RDM_ONLY)
{
	struct side *s = side_open(t, .raw_cq = true);
	struct fid_peer_cq *peer = export(t, &s->tx_cq->fid, FI_CLASS_PEER_CQ);
	struct reporter *r = mem(t, 2 * sizeof(*r));
	uintptr_t next[2] = { 0 }, at;
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	int i;

	for (i = 0; i < 2; i++) {
		r[i] = (struct reporter) { .peer = peer, .from = (uintptr_t) i * REPORTS };
		MUST(pthread_create(&r[i].thread, NULL, report, &r[i]));
		own(t, wait_reporter, &r[i]);
	}
	while (next[0] + next[1] < 2 * REPORTS) {
		if (fi_cq_read(s->tx_cq, &entry, 1) != 1) {
			wait_more(t, &w, "what the threads report");
			continue;
		}
		at = (uintptr_t) entry.op_context;
		CHECK(at < 2 * REPORTS);
		CHECK_EQ(at % REPORTS, next[at / REPORTS]);
		next[at / REPORTS]++;
	}
	for (i = 0; i < 2; i++) {
		disown(t, &r[i]);
		wait_reporter(&r[i]);
		CHECK(r[i].ok);
	}
}

/* A report wakes who sleeps on the queue's descriptor, and lets him sleep again when it is read. */
TEST_PROV(report_wakes, CAPS, RDM_ONLY)
{
	struct side *s = side_open(t, .raw_cq = true, .cq_wait = FI_WAIT_FD);
	struct fid_peer_cq *peer = export(t, &s->rx_cq->fid, FI_CLASS_PEER_CQ);
	int fd = wait_fd(&s->rx_cq->fid), i;
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();

	for (i = 0; i < 3; i++) {
		while (trywait(s, &s->rx_cq->fid))
			wait_more(t, &w, "the queue to be quiet");
		CHECK(!fd_readable(fd, 0));
		CHECK_EQ(peer->owner_ops->write(peer, &w, FI_RECV, 4, NULL, 0, 0, FI_ADDR_NOTAVAIL), 0);
		CHECK(fd_readable(fd, 30000));
		while (fi_cq_read(s->rx_cq, &entry, 1) != 1)
			wait_more(t, &w, "the report");
		CHECK(entry.op_context == &w);
	}
}

/* The queue stays until its exported form is closed, which brings what is still on its way. */
TEST_PROV(export_is_closed_first, CAPS, RDM_ONLY)
{
	struct side *s = side_open(t, .raw_cq = true);
	struct fid_peer_cq *peer = export(t, &s->rx_cq->fid, FI_CLASS_PEER_CQ);
	struct fi_cq_tagged_entry entry;

	side_close_ep(s);
	CHECK_RET(fi_close(&s->rx_cq->fid), -FI_EBUSY);
	CHECK_EQ(peer->owner_ops->write(peer, s, FI_RECV, 4, NULL, 0, 0, 0), 0);
	close_now(t, &peer->fid);
	CHECK_RET(fi_cq_read(s->rx_cq, &entry, 1), 1);
	CHECK(entry.op_context == s);
	close_now(t, &s->rx_cq->fid);
}

/* ---- counters */

/* What a peer counts is in the counter, failures apart. */
TEST_PROV(one_counter_for_two, CAPS, RDM_ONLY)
{
	struct side *s = domain_side(t);
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct wait w = wait_begin();
	struct fid_peer_cntr *peer;
	struct fid_cntr *cntr;
	int i;

	MUST(fi_cntr_open(s->domain, &attr, &cntr, NULL));
	own_fid(t, &cntr->fid);
	peer = export(t, &cntr->fid, FI_CLASS_PEER_CNTR);
	MUST(fi_cntr_add(cntr, 5));
	for (i = 0; i < 100; i++)
		peer->owner_ops->inc(peer);
	MUST(fi_cntr_wait(cntr, 105, 30000));
	CHECK_EQ(fi_cntr_read(cntr), 105);
	CHECK_EQ(fi_cntr_readerr(cntr), 0);
	peer->owner_ops->incerr(peer);
	while (!fi_cntr_readerr(cntr))
		wait_more(t, &w, "the failure");
	CHECK_EQ(fi_cntr_readerr(cntr), 1);
	/* each is counted once, also where another follows later */
	peer->owner_ops->inc(peer);
	MUST(fi_cntr_wait(cntr, 106, 30000));
	CHECK_EQ(fi_cntr_readerr(cntr), 1);
	CHECK_RET(fi_close(&cntr->fid), -FI_EBUSY);
}

/* ---- address vectors and sets */

/* A peer asks what the vector is, and by which handle it has an endpoint of this process. */
TEST_PROV(vector_is_told, CAPS, RDM_ONLY)
{
	struct side *s = side_open(t, .rx_ctx_bits = 3, .av_type = FI_AV_TABLE), *other = side_open(t);
	struct fid_peer_av *peer = export(t, &s->av->fid, FI_CLASS_PEER_AV);
	struct fi_av_attr attr = { 0 };
	fi_addr_t addr;

	CHECK(peer->owner_ops->ep_addr(peer, s->ep) == FI_ADDR_NOTAVAIL);
	addr = side_insert(s, other);
	CHECK_EQ(peer->owner_ops->ep_addr(peer, other->ep), addr);
	CHECK(peer->owner_ops->ep_addr(peer, s->ep) == FI_ADDR_NOTAVAIL);
	addr = side_insert(s, s);
	CHECK_EQ(peer->owner_ops->ep_addr(peer, s->ep), addr);
	MUST(peer->owner_ops->query(peer, &attr));
	CHECK_EQ(attr.count, 2);
	CHECK_EQ(attr.rx_ctx_bits, 3);
	side_close_ep(s);
	CHECK_RET(fi_close(&s->av->fid), -FI_EBUSY);
}

/* A vector that has an owner is shaped as that, and names whom it knows by the owner's numbers. */
TEST_PROV(vector_has_an_owner, CAPS | FI_SOURCE, RDM_ONLY)
{
	struct side *owner = side_open(t, .rx_ctx_bits = 3, .av_type = FI_AV_TABLE), *a = side_open(t), *peer;
	struct fi_av_attr attr = { 0 };
	struct fid_peer_av *again;
	struct comp c;
	char in[8];

	peer = peer_open(t, &(struct opts) { .raw_cq = true }, &(struct owners) {
			 .cq = export(t, &owner->rx_cq->fid, FI_CLASS_PEER_CQ),
			 .av = export(t, &owner->av->fid, FI_CLASS_PEER_AV) });
	again = export(t, &peer->av->fid, FI_CLASS_PEER_AV);
	MUST(again->owner_ops->query(again, &attr));
	CHECK(attr.rx_ctx_bits == 3 && attr.type == FI_AV_TABLE && (attr.flags & FI_AV_USER_ID));
	peer_insert(peer, a, 4711);
	a->peer = side_insert(a, peer);
	MUST((int) fi_recv(peer->ep, in, 8, NULL, FI_ADDR_UNSPEC, in));
	send_bytes(a, "numbered", 8);
	c = expect_rx(owner);
	CHECK(c.ctx == in);
	CHECK_EQ(c.src, 4711);
	side_close_ep(peer);
}

/* A peer gets the members of a set, in their order, into room for all of them. */
TEST_PROV(set_is_told, CAPS | FI_COLLECTIVE, RDM_ONLY)
{
	struct side *s = side_open(t), *other[3];
	struct fi_av_set_attr attr = { .count = 3, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL };
	struct fid_peer_av_set *peer;
	struct fid_av_set *set;
	fi_addr_t addr[3], got[3];
	size_t i, cnt = 0;

	for (i = 0; i < 3; i++) {
		other[i] = side_open(t);
		addr[i] = side_insert(s, other[i]);
	}
	MUST(fi_av_set(s->av, &attr, &set, NULL));
	own_fid(t, &set->fid);
	MUST(fi_av_set_insert(set, addr[2]));
	MUST(fi_av_set_insert(set, addr[0]));
	peer = export(t, &set->fid, FI_CLASS_PEER_AV_SET);
	CHECK_RET(peer->owner_ops->members(peer, NULL, &cnt), -FI_ETOOSMALL);
	CHECK_EQ(cnt, 2);
	MUST(peer->owner_ops->members(peer, got, &cnt));
	CHECK(got[0] == addr[2] && got[1] == addr[0]);
	CHECK_RET(fi_close(&set->fid), -FI_EBUSY);
}

/* ---- what cannot be */

/* Flags, objects that are a peer's already, and kinds that nobody shares are refused. */
TEST_PROV(what_is_not_exported, CAPS, RDM_ONLY)
{
	struct side *s = side_open(t), *peer = peer_of(s, export(t, &s->rx_cq->fid, FI_CLASS_PEER_CQ));
	struct fid *exported = NULL;

	CHECK_RET(fi_export_fid(&s->rx_cq->fid, 1, &exported, NULL), -FI_EINVAL);
	CHECK_RET(fi_export_fid(&s->rx_cq->fid, 0, NULL, NULL), -FI_EINVAL);
	CHECK_RET(fi_export_fid(&peer->rx_cq->fid, 0, &exported, NULL), -FI_EINVAL);
	CHECK(fi_export_fid(&s->ep->fid, 0, &exported, NULL) < 0);
	CHECK(fi_export_fid(&s->domain->fid, 0, &exported, NULL) < 0);
	CHECK(exported == NULL);
}
