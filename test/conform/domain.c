/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What a domain decides for the objects that are opened from it. Source: fi_domain(3), the same in three versions. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "rawsock.h"

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

/* An endpoint with a queue of its own tells that one, and not the domain's. */
TEST_PROV(own_queue_goes_before_the_domains, FI_MSG, CONNECTED)
{
	struct side *l = listener_open(t), *a;
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fi_eq_cm_entry entry;
	struct opts o = { 0 };
	struct fid_eq *domains;
	struct event e;
	uint32_t event;
	int ret;

	a = bound_side(t, 0, &ret);
	MUST(ret);
	domains = a->eq;
	MUST(fi_eq_open(a->fabric, &attr, &a->eq, a));
	own_fid(t, &a->eq->fid);
	a->info->dest_addr = malloc(l->name_len);
	memcpy(a->info->dest_addr, l->name, l->name_len);
	a->info->dest_addrlen = l->name_len;
	side_open_rest(a);
	MUST(fi_connect(a->ep, l->name, NULL, 0));
	e = expect_event(l, FI_CONNREQ);
	MUST(fi_accept(acceptor_open(l, e.info, &o)->ep, NULL, 0));
	CHECK(expect_event(a, FI_CONNECTED).fid == &a->ep->fid);
	CHECK_RET(fi_eq_read(domains, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
}

/* An address vector with FI_EVENT tells its insertions to the queue of the domain, if it has none of its own. */
TEST_PROV(insertions_are_told, FI_MSG, UNCONNECTED)
{
	struct side *peer = side_open(t), *s;
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .flags = FI_EVENT };
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	struct event e;
	int ret;

	s = bound_side(t, 0, &ret);
	if (!ret)
		ret = fi_av_open(s->domain, &attr, &s->av, s);
	if (ret)
		ABSENT("%s has no events of domains and vectors: %s", run.prov, fi_strerror(-ret));
	own_fid(t, &s->av->fid);
	ret = fi_av_insert(s->av, peer->name, 1, &addr, 0, NULL);
	if (ret == -FI_ENOEQ && !run.ours)
		ABSENT("%s wants a queue bound to the vector", run.prov);
	MUST(ret);
	e = expect_event(s, FI_AV_COMPLETE);
	CHECK(e.fid == &s->av->fid);
	CHECK_EQ(addr, 0);
	/* what nobody has read goes with the vector */
	MUST(fi_av_insert(s->av, peer->name, 1, &addr, 0, NULL));
	close_now(t, &s->av->fid);
	s->av = NULL;
	expect_no_event(s);
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
		ABSENT("%s registers at once", run.prov);
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
		ABSENT("%s has no unified control progress", run.prov);
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

static void unmanaged(struct fi_info *hints)
{
	hints->domain_attr->resource_mgmt = FI_RM_DISABLED;
}

/* Without resource management nothing is lost either: messages wait for receives, and completions for their reader. */
TEST_PROV(protected_without_management, FI_MSG, RELIABLE)
{
	enum { N = 64, LATE = 8 };	/* receives that are posted late: fewer than sends fit */
	struct pair p = pair_open(t, .cq_size = 8, .tx_size = 16, .hints = unmanaged);
	uint32_t in[N], out[N], i;

	if (!run.ours)
		ABSENT("upstream need not");
	for (i = 0; i < N; i++) {
		out[i] = i;
		if (i < N - LATE)
			post_recv(p.b, &in[i], sizeof(in[0]));
		post(p.a, SEND, .buf = &out[i], .len = sizeof(out[0]));
	}
	for (i = N - LATE; i < N; i++)
		post_recv(p.b, &in[i], sizeof(in[0]));
	expect_rx_cnt(p.b, N);
	expect_tx_cnt(p.a, N);
	CHECK_MEM(in, out, sizeof(in));
}

/* The authorization key of a domain is ignored by a fabric that was opened for an API before 1.5. */
TEST_PROV(key_is_ignored_before_1_5, FI_MSG, RDM_ONLY)
{
	struct side *old = domain_side(t, .version = FI_VERSION(1, 4)), *plain = side_open(t);

	if (!run.ours)
		ABSENT("upstream's providers have no keys");
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
		ABSENT("upstream's providers have no keys");
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

/* ---- traffic classes */

static uint32_t domain_class, tx_class;	/* what classes() asks for */

static void classes(struct fi_info *hints)
{
	hints->domain_attr->tclass = domain_class;
	hints->tx_attr->tclass = tx_class;
}

/* Sockets of this process whose packets are marked with @dscp. */
static unsigned int marked(int dscp)
{
	bool v6 = run.family == AF_INET6;
	unsigned int cnt = 0;
	int fd, tos;
	socklen_t len;

	for (fd = 0; fd < 1024; fd++) {
		len = sizeof(tos);
		tos = 0;
		if (!getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &tos, &len))
			cnt += tos >> 2 == dscp;
	}
	return cnt;
}

struct class_row {
	const char *name;
	uint32_t domain, tx;
	int dscp;
};

static const struct class_row class_rows[] = {
	{ "dscp_of_the_domain", FI_TC_DSCP | 22, 0, 22 },
	{ "endpoint_before_domain", FI_TC_DSCP | 22, FI_TC_DSCP | 11, 11 },
	{ "low_latency", 0, FI_TC_LOW_LATENCY, 46 },
	{ "bulk_data", FI_TC_BULK_DATA, 0, 10 },
	{ "network_control", FI_TC_NETWORK_CTRL, 0, 48 },
};

/* A traffic class that is asked for is in the answer, and on the packets of the endpoint. */
TEST_TABLE(packets_are_marked, class_rows, FI_MSG)
{
	const struct class_row *row = ROW(class_rows);
	struct wait w = wait_begin();
	unsigned int most = 0;
	struct fi_info *info;
	struct pair p;
	char in[8];

	domain_class = row->domain;
	tx_class = row->tx;
	info = info_find(t, hints_new(t, &(struct opts) { .hints = classes }), NULL, NULL, 0);
	CHECK(info);
	if (!run.ours || !strncmp(run.prov, "verbs", 5) || !strcmp(run.prov, "loop"))
		ABSENT("%s does not mark packets", run.prov);
	if (strcmp(run.prov, "udp"))
		need_tcp_sockets();
	CHECK_EQ(info->domain_attr->tclass, row->domain);
	CHECK_EQ(info->tx_attr->tclass, row->tx);
	CHECK_EQ(marked(row->dscp), 0);
	p = pair_open(t, .hints = classes);
	/* an idle connection may be closed: look while it is not */
	post_recv(p.b, in, 8);
	send_bytes(p.a, "marked!!", 8);
	while (!rx_waiting(p.b)) {
		wait_more(t, &w, "a message");
		most = MAX(most, marked(row->dscp));
	}
	CHECK_EQ(most, 2);
}

/* A class never refuses an entry. The answer is a class that packets get, or FI_TC_UNSPEC, and the pair opens. */
TEST_PROV(class_refuses_no_entry, FI_MSG)
{
	static const uint32_t asked[] = { FI_TC_LOW_LATENCY, FI_TC_DSCP | 46, FI_TC_DSCP | 64, FI_TC_LABEL | 77, 5 };
	struct fi_info *info;
	size_t i;

	for (i = 0; i < COUNT(asked); i++) {
		note("class %#x", asked[i]);
		domain_class = tx_class = asked[i];
		info = info_find(t, hints_new(t, &(struct opts) { .hints = classes }), NULL, NULL, 0);
		CHECK(info);
		CHECK(info->domain_attr->tclass == (i < 2 ? asked[i] : FI_TC_UNSPEC) ||
		      info->domain_attr->tclass == FI_TC_UNSPEC);
		CHECK_EQ(info->tx_attr->tclass, info->domain_attr->tclass);
		pair_open(t, .hints = classes);
	}
}
