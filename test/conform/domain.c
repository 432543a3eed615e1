/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a domain decides for the objects that are opened from it. Source: fi_domain(3), the same in three versions. */
#include <stdlib.h>
#include <string.h>

#include "ops.h"

/* Open the domain of @s anew: the objects that were opened first are closed after it. */
static void reopen(struct side *s)
{
	close_now(s->t, &s->domain->fid);
	MUST(fi_domain(s->fabric, s->info, &s->domain, s));
	own_fid(s->t, &s->domain->fid);
}

/* A side whose domain is bound to its event queue. What fi_domain_bind() says is *@ret. */
static struct side *bound_side(struct test *t, uint64_t flags, int *ret)
{
	struct side *s = domain_side(t);

	if (!s->eq)
		side_open_eq(s);
	reopen(s);
	*ret = fi_domain_bind(s->domain, &s->eq->fid, flags);
	return s;
}

/* Connections tell the event queue of the domain what happens, if the endpoint has none of its own. */
TEST_PROV(events_go_to_the_domains_queue, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t), *a;
	struct opts o = { 0 };
	struct event e;
	int ret;

	a = bound_side(t, 0, &ret);
	MUST(ret);
	a->info->dest_addr = malloc(l->name_len);
	memcpy(a->info->dest_addr, l->name, l->name_len);
	a->info->dest_addrlen = l->name_len;
	side_open_cqs(a);
	side_open_ep(a);
	MUST(fi_ep_bind(a->ep, &a->tx_cq->fid, FI_TRANSMIT));
	MUST(fi_ep_bind(a->ep, &a->rx_cq->fid, FI_RECV));
	MUST(fi_enable(a->ep));
	MUST(fi_connect(a->ep, l->name, NULL, 0));
	e = expect_event(l, FI_CONNREQ);
	MUST(fi_accept(acceptor_open(l, e.info, &o)->ep, NULL, 0));
	e = expect_event(a, FI_CONNECTED);
	CHECK(e.fid == &a->ep->fid);
}

/* With FI_REG_MR a registration is told by the queue of the domain when it is done, and usable then. */
TEST_PROV(registrations_are_told, FI_MSG | FI_RMA, RDM_ONLY)
{
	struct side *peer = side_open(t), *s;
	uint8_t *buf = mem(t, 64);
	struct region r = { 0 };
	struct event e;
	int ret;

	s = bound_side(t, FI_REG_MR, &ret);
	if (ret && !run.ours)
		SKIP("%s registers at once", run.prov);
	MUST(ret);
	MUST(fi_mr_reg(s->domain, buf, 64, FI_REMOTE_WRITE, 0, 7, 0, &r.mr, s));
	own_fid(t, &r.mr->fid);
	e = expect_event(s, FI_MR_COMPLETE);
	CHECK(e.fid == &r.mr->fid);
	side_open_rest(s);
	region_ready(s, r.mr);
	peer->peer = side_insert(peer, s);
	post(peer, WRITE, .buf = "8 bytes.", .len = 8, .key = fi_mr_key(r.mr),
	     .raddr = s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t) buf : 0);
	expect_tx(peer);
	while (memcmp(buf, "8 bytes.", 8))
		sides_progress(t);
}

static void unified(struct fi_info *hints)
{
	hints->domain_attr->control_progress = FI_PROGRESS_CONTROL_UNIFIED;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
}

/* FI_PROGRESS_CONTROL_UNIFIED is answered as asked, and all works in the one thread that has it. */
TEST_PROV(control_is_unified, FI_MSG, RELIABLE)
{
	struct fi_info *info = info_find(t, hints_new(t, &(struct opts) { .hints = unified }), NULL, NULL, 0);
	struct pair p;

	if (!info)
		SKIP("%s has no unified control progress", run.prov);
	CHECK_EQ(info->domain_attr->control_progress, FI_PROGRESS_CONTROL_UNIFIED);
	CHECK_EQ(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	CHECK_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
	p = pair_open(t, .hints = unified);
	check_link(p.a, p.b);
	check_link(p.b, p.a);
}

static void key_of_domain(struct fi_info *info)
{
	info->domain_attr->auth_key = (uint8_t *) strdup("a key");
	info->domain_attr->auth_key_size = 5;
}

/* The authorization key of a domain is ignored by a fabric that was opened for an API before 1.5. */
TEST_PROV(key_is_ignored_before_1_5, FI_MSG, RDM_ONLY)
{
	struct side *old = domain_side(t, .version = FI_VERSION(1, 4)), *plain = side_open(t);

	if (!run.ours)
		SKIP("upstream's providers have no keys");
	key_of_domain(old->info);
	reopen(old);
	side_open_rest(old);
	old->peer = side_insert(old, plain);
	plain->peer = side_insert(plain, old);
	check_link(old, plain);
	check_link(plain, old);
}

/* FI_AV_AUTH_KEY as its length says that keys come with addresses: a key beside it is refused. */
TEST_PROV(no_key_beside_those_of_addresses, FI_MSG, RDM_ONLY)
{
	struct side *s = domain_side(t);
	struct fid_domain *domain = NULL;

	if (!run.ours)
		SKIP("upstream's providers have no keys");
	key_of_domain(s->info);
	s->info->domain_attr->auth_key_size = FI_AV_AUTH_KEY;
	CHECK_RET(fi_domain(s->fabric, s->info, &domain, NULL), -FI_EINVAL);
	CHECK(domain == NULL);
	s->info->domain_attr->auth_key_size = 5;
}

/* Failures are told also where successes are not asked for. */
TEST_PROV(failure_is_told_though_success_is_not, FI_MSG | FI_RMA, RDM_ONLY)
{
	struct side *b = side_open(t), *a = side_open(t, .tx_bind = FI_SELECTIVE_COMPLETION);
	struct region r = region_open(b, NULL, 64, FI_REMOTE_WRITE);

	a->peer = side_insert(a, b);
	post(a, WRITE, .buf = "8 bytes.", .len = 8, .raddr = r.addr, .key = r.key);
	post(a, WRITE, .buf = "8 bytes.", .len = 8, .raddr = r.addr + 60, .key = r.key);
	expect_tx_failed(a);
	expect_no_completion(a);
}
