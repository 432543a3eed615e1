/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finding the provider under test, and opening sides and pairs. Every fid is given to the test as it is opened, so the
 * order of closing is the reverse of what is written here.
 */
#define CONFORM_INSIDE
#include "ops.h"
#include "runner.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- discovery */

bool info_is_run(const struct fi_info *info)
{
	return !strcmp(info->fabric_attr->prov_name, run.prov) && info->ep_attr->type == run.type;
}

/* First entry of the exact name; the list is freed, the entry duplicated. */
static struct fi_info *exact(struct fi_info *list)
{
	struct fi_info *info, *found = NULL;

	for (info = list; info && !found; info = info->next) {
		if (info_is_run(info))
			found = fi_dupinfo(info);
	}
	fi_freeinfo(list);
	return found;
}

static struct fi_info *ask(const struct fi_info *hints, uint32_t version, const char *node, const char *service,
			   uint64_t flags)
{
	struct fi_info *list = NULL;
	int ret;

	ret = fi_getinfo(version, node, service, flags, hints, &list);
	if (ret && ret != -FI_ENODATA)
		FAIL("fi_getinfo() returned %d (%s)", ret, fi_strerror(-ret));
	if (ret && list)
		FAIL("fi_getinfo() failed and left a list");
	return ret ? NULL : exact(list);
}

static struct fi_info *hints_blank(const struct opts *o)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		FAIL("fi_allocinfo() returned NULL");
	hints->ep_attr->type = run.type;
	hints->fabric_attr->prov_name = strdup(run.prov);
	hints->domain_attr->mr_mode = o->mr_none ? 0 : o->mr_mode ? o->mr_mode : run.mr_mode;
	hints->mode = run.mode;
	hints->domain_attr->threading = run.threading;
	hints->domain_attr->control_progress = run.progress;
	hints->domain_attr->data_progress = run.progress;
	hints->domain_attr->av_type = o->av_type;
	hints->caps = o->caps;
	hints->tx_attr->op_flags = o->tx_op_flags;
	hints->tx_attr->size = o->tx_size;
	hints->rx_attr->size = o->rx_size;
	hmem_ask(hints);
	return hints;
}

static void free_info(void *info)
{
	fi_freeinfo(info);
}

void own_info(struct test *t, struct fi_info *info)
{
	own(t, free_info, info);
}

struct fi_info *hints_new(struct test *t, const struct opts *o)
{
	struct opts mine = *o;
	struct fi_info *hints;

	if (!mine.caps)
		mine.caps = t->c->caps;
	hints = hints_blank(&mine);
	own_info(t, hints);
	if (o->hints)
		o->hints(hints);
	return hints;
}

/* Any entry with these capabilities and no other wish, at this node if it is not NULL? */
static struct fi_info *ask_caps_at(const char *node, uint64_t caps)
{
	struct fi_info *hints = hints_blank(&(struct opts) { .caps = caps }), *info;

	info = ask(hints, run.version, node, NULL, node ? FI_SOURCE | FI_NUMERICHOST : 0);
	fi_freeinfo(hints);
	return info;
}

bool has_sockaddr(void)
{
	static int answer = -1;
	struct fi_info *info;

	if (answer < 0) {
		info = ask_caps_at(NULL, 0);
		answer = info && (info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6 ||
				  info->addr_format == FI_SOCKADDR);
		fi_freeinfo(info);
	}
	return answer;
}

const char *loopback(void)
{
	const char *node = getenv("CONFORM_NODE");

	return node ? node : run.family == AF_INET6 ? "::1" : "127.0.0.1";
}

/* The same at the address of both ends, if the run names one: its device may offer less than others. */
static struct fi_info *ask_caps(uint64_t caps)
{
	return ask_caps_at(has_sockaddr() ? getenv("CONFORM_NODE") : NULL, caps);
}

bool offered(uint64_t caps)
{
	struct fi_info *info = ask_caps(caps);

	fi_freeinfo(info);
	return info != NULL;
}

/* Name the first bit of @caps that alone makes the answer empty. */
static void skip_lacking(uint64_t caps)
{
	struct fi_info *info;
	uint64_t bit;

	if (caps & FI_REMOTE_COMM && !offered(FI_REMOTE_COMM))
		SKIP("no interface to other hosts");
	info = ask_caps(0);
	if (!info)
		SKIP("no provider %s with %s", run.prov, fi_tostr(&run.type, FI_TYPE_EP_TYPE));
	fi_freeinfo(info);
	for (bit = 1; bit; bit <<= 1) {
		if (!(caps & bit))
			continue;
		/* A secondary bit alone would be asked without what it belongs to. */
		info = ask_caps(bit | (caps & (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC) & (bit - 1)));
		fi_freeinfo(info);
		if (!info)
			ABSENT("%s does not offer %s here", run.prov, fi_tostr(&bit, FI_TYPE_CAPS));
	}
	ABSENT("%s does not offer %s together", run.prov, fi_tostr(&caps, FI_TYPE_CAPS));
}

void offer_check(uint64_t caps)
{
	if (!offered(caps))
		skip_lacking(caps);
}

void ask_for_groups(struct fi_info *hints)
{
	hints->domain_attr->max_group_id = GROUPS;
}

struct fi_info *info_find(struct test *t, struct fi_info *hints, const char *node, const char *service, uint64_t flags)
{
	struct fi_info *info;

	if (!node && !service && !hints->src_addr && !hints->dest_addr && has_sockaddr()) {
		node = loopback();
		flags |= FI_SOURCE | FI_NUMERICHOST;
	}
	info = ask(hints, hints->fabric_attr->api_version ? hints->fabric_attr->api_version : run.version, node,
		   service, flags);
	if (info)
		own_info(t, info);
	return info;
}

/* ---- opening */

static void side_free(void *arg)
{
	struct side *s = arg;

	free(s->tx.list);
	free(s->rx.list);
	free(s);
}

static struct side *side_new(struct test *t, const struct opts *o)
{
	struct side *s = calloc(1, sizeof(*s));

	if (!s)
		FAIL("no memory");
	own(t, side_free, s);
	s->t = t;
	s->o = *o;
	s->peer = FI_ADDR_UNSPEC;
	s->prefixed_end = &s->prefixed;
	s->next = t->sides;
	t->sides = s;
	return s;
}

/* What the fixture asks for is what the test case needs, which offer_check() found; more comes from the options. */
static struct fi_info *info_for(struct test *t, const struct opts *o, const struct side *to)
{
	struct fi_info *hints, *info;

	if (o->info)
		return o->info;
	hints = hints_new(t, o);
	if (o->version)
		hints->fabric_attr->api_version = o->version;
	if (to) {
		hints->addr_format = to->info->addr_format;
		hints->dest_addr = malloc(to->name_len);
		hints->dest_addrlen = to->name_len;
		memcpy(hints->dest_addr, to->name, to->name_len);
	}
	info = info_find(t, hints, NULL, NULL, 0);
	if (!info)
		ABSENT("%s has no entry with what the test asks beyond capabilities", run.prov);
	return info;
}

static void open_fabric(struct side *s)
{
	MUST(fi_fabric(s->info->fabric_attr, &s->fabric, s));
	own_fid(s->t, &s->fabric->fid);
}

static void open_domain(struct side *s)
{
	MUST(fi_domain(s->fabric, s->info, &s->domain, s));
	own_fid(s->t, &s->domain->fid);
}

void side_open_eq(struct side *s)
{
	struct fi_eq_attr attr = { .wait_obj = s->o.eq_wait };

	MUST(fi_eq_open(s->fabric, &attr, &s->eq, s));
	own_fid(s->t, &s->eq->fid);
}

static struct fid_cq *open_cq(struct side *s)
{
	struct fi_cq_attr attr = { .size = s->o.cq_size, .format = s->o.format, .wait_obj = s->o.cq_wait };
	struct fid_cq *cq = NULL;
	int ret;

	if (!attr.format)
		attr.format = FI_CQ_FORMAT_TAGGED;
	ret = fi_cq_open(s->domain, &attr, &cq, s);
	if (ret && !s->o.format) {
		attr.format = FI_CQ_FORMAT_DATA;
		ret = fi_cq_open(s->domain, &attr, &cq, s);
	}
	if (ret && s->o.cq_wait)
		ABSENT("%s has no CQ with wait object %d: %s", run.prov, s->o.cq_wait, fi_strerror(-ret));
	MUST(ret);
	s->o.format = attr.format;
	own_fid(s->t, &cq->fid);
	return cq;
}

void side_open_cqs(struct side *s)
{
	if (s->o.cq_of) {
		s->tx_cq = s->o.cq_of->tx_cq;
		s->rx_cq = s->o.cq_of->rx_cq;
		return;
	}
	s->tx_cq = open_cq(s);
	s->rx_cq = s->o.one_cq ? s->tx_cq : open_cq(s);
}

void side_open_av(struct side *s)
{
	struct fi_av_attr attr = { .type = s->o.av_type, .rx_ctx_bits = s->o.rx_ctx_bits };

	if (s->o.av_of) {
		s->av = s->o.av_of->av;
		return;
	}
	if (!attr.type)
		attr.type = s->info->domain_attr->av_type ? s->info->domain_attr->av_type : FI_AV_TABLE;
	MUST(fi_av_open(s->domain, &attr, &s->av, s));
	own_fid(s->t, &s->av->fid);
}

void side_open_ep(struct side *s)
{
	if (!s->o.sep)
		MUST(fi_endpoint(s->domain, s->info, &s->ep, s));
	else if (s->o.rx_ctx)
		MUST(fi_rx_context(s->o.sep, s->o.ctx, NULL, &s->ep, s));
	else
		MUST(fi_tx_context(s->o.sep, s->o.ctx, NULL, &s->ep, s));
	own_fid(s->t, &s->ep->fid);
}

void side_bind(struct side *s)
{
	uint64_t tx = FI_TRANSMIT | s->o.tx_bind, rx = FI_RECV | s->o.rx_bind;

	if (s->eq)
		MUST(fi_ep_bind(s->ep, &s->eq->fid, 0));
	if (s->o.sep) {
		MUST(fi_ep_bind(s->ep, s->o.rx_ctx ? &s->rx_cq->fid : &s->tx_cq->fid, s->o.rx_ctx ? rx : tx));
		return;
	}
	if (s->av)
		MUST(fi_ep_bind(s->ep, &s->av->fid, 0));
	if (s->o.srx)
		MUST(fi_ep_bind(s->ep, &s->o.srx->fid, 0));
	if (s->o.stx)
		MUST(fi_ep_bind(s->ep, &s->o.stx->fid, 0));
	if (s->tx_cq && s->tx_cq == s->rx_cq) {
		MUST(fi_ep_bind(s->ep, &s->tx_cq->fid, tx | rx));
	} else {
		if (s->tx_cq)
			MUST(fi_ep_bind(s->ep, &s->tx_cq->fid, tx));
		if (s->rx_cq)
			MUST(fi_ep_bind(s->ep, &s->rx_cq->fid, rx));
	}
}

void side_enable(struct side *s)
{
	MUST(fi_enable(s->ep));
	s->name_len = sizeof(s->name);
	if (s->info->ep_attr->type != FI_EP_MSG)
		MUST(fi_getname(&s->ep->fid, s->name, &s->name_len));
}

struct side *domain_side_opts(struct test *t, const struct opts *o)
{
	struct side *s = side_new(t, o);

	if (o->domain_of) {
		s->info = o->info ? o->info : o->domain_of->info;
		s->fabric = o->domain_of->fabric;
		s->domain = o->domain_of->domain;
	} else {
		s->info = info_for(t, o, NULL);
		open_fabric(s);
		open_domain(s);
	}
	if (o->eq || run.type == FI_EP_MSG)
		side_open_eq(s);
	return s;
}

void side_open_rest(struct side *s)
{
	side_open_cqs(s);
	if (s->info->ep_attr->type != FI_EP_MSG)
		side_open_av(s);
	side_open_ep(s);
	side_bind(s);
	if (!s->o.unenabled)
		side_enable(s);
}

struct side *side_open_opts(struct test *t, const struct opts *o)
{
	struct side *s = domain_side_opts(t, o);

	side_open_rest(s);
	return s;
}

struct side *listener_open_opts(struct test *t, const struct opts *o)
{
	struct side *s = side_new(t, o);

	s->info = info_for(t, o, NULL);
	open_fabric(s);
	side_open_eq(s);
	MUST(fi_passive_ep(s->fabric, s->info, &s->pep, s));
	own_fid(t, &s->pep->fid);
	MUST(fi_pep_bind(s->pep, &s->eq->fid, 0));
	MUST(fi_listen(s->pep));
	s->name_len = sizeof(s->name);
	MUST(fi_getname(&s->pep->fid, s->name, &s->name_len));
	return s;
}

struct side *connector_open(struct test *t, struct side *to, const struct opts *o)
{
	struct side *s = side_new(t, o);

	s->info = info_for(t, o, to);
	open_fabric(s);
	open_domain(s);
	side_open_eq(s);
	side_open_rest(s);
	return s;
}

struct side *acceptor_new(struct side *listener, struct fi_info *request, const struct opts *o)
{
	struct side *s = side_new(listener->t, o);

	s->info = request;
	s->fabric = listener->fabric;
	if (o->domain_of)
		s->domain = o->domain_of->domain;
	else
		open_domain(s);
	side_open_eq(s);
	return s;
}

struct side *acceptor_open(struct side *listener, struct fi_info *request, const struct opts *o)
{
	struct side *s = acceptor_new(listener, request, o);

	side_open_rest(s);
	return s;
}

struct side *side_connect(struct side *a, struct side *listener)
{
	struct event request;
	struct side *b;

	MUST(fi_connect(a->ep, listener->name, NULL, 0));
	request = expect_event(listener, FI_CONNREQ);
	b = acceptor_open(listener, request.info, &a->o);
	MUST(fi_accept(b->ep, NULL, 0));
	expect_event(a, FI_CONNECTED);
	expect_event(b, FI_CONNECTED);
	return b;
}

fi_addr_t side_insert(struct side *a, struct side *b)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	CHECK_RET(fi_av_insert(a->av, b->name, 1, &addr, 0, NULL), 1);
	CHECK(addr != FI_ADDR_NOTAVAIL);
	return addr;
}

/* An RDM endpoint connects when it is used first, which needs both sides. A test that drives one side only starts
 * later. */
static void first_contact(struct pair *p)
{
	p->a->o.raw_cq = p->b->o.raw_cq = false;
	check_link(p->a, p->b);
	check_link(p->b, p->a);
	p->a->o.raw_cq = p->b->o.raw_cq = true;
}

struct pair pair_open_opts(struct test *t, const struct opts *o)
{
	struct pair p = { 0 };

	if (run.type == FI_EP_MSG) {
		p.listener = listener_open_opts(t, o);
		p.a = connector_open(t, p.listener, o);
		if (!o->unconnected)
			p.b = side_connect(p.a, p.listener);
		return p;
	}
	p.a = side_open_opts(t, o);
	p.b = side_open_opts(t, o);
	if (!o->unconnected) {
		p.a->peer = side_insert(p.a, p.b);
		p.b->peer = side_insert(p.b, p.a);
	}
	if (o->raw_cq && !o->unconnected && run.type == FI_EP_RDM)
		first_contact(&p);
	return p;
}

void side_close_ep(struct side *s)
{
	struct fid_ep *ep = s->ep;

	s->ep = NULL;
	close_now(s->t, &ep->fid);
}

void side_close(struct side *s)
{
	bool own_cq = !s->o.cq_of, own_av = !s->o.av_of;

	if (s->ep)
		side_close_ep(s);
	if (s->pep)
		close_now(s->t, &s->pep->fid);
	if (s->av && own_av)
		close_now(s->t, &s->av->fid);
	if (s->rx_cq && own_cq && s->rx_cq != s->tx_cq)
		close_now(s->t, &s->rx_cq->fid);
	if (s->tx_cq && own_cq)
		close_now(s->t, &s->tx_cq->fid);
	s->pep = NULL;
	s->av = NULL;
	s->tx_cq = s->rx_cq = NULL;
	if (s->eq)
		close_now(s->t, &s->eq->fid);
	s->eq = NULL;
	if (s->domain && !s->o.domain_of) {
		locals_close(s);
		close_now(s->t, &s->domain->fid);
	}
	s->domain = NULL;
}

bool fixture_is_offered(void)
{
	struct fi_info *info = ask_caps(0);

	fi_freeinfo(info);
	return info;
}

void fixture_warm_up(struct test *t)
{
	struct fi_info *info = ask_caps(0);

	fi_freeinfo(info);
	if (!info) {
		report_bail_out();
		isolate_bail_out();
	}
	pair_open(t, .caps = FI_MSG);
}
