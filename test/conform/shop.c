/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See shop.h. */
#include <string.h>

#include "shop.h"

/* ---- a provider that has messages */

/* Completions are told, or failures, and the entry goes back. */
void finish(const struct message *m, struct fi_peer_rx_entry *entry)
{
	struct fid_peer_cq *cq = m->fake->cq;
	uint64_t flags = FI_RECV | (m->tagged ? FI_TAGGED : FI_MSG) | (entry->flags & ~(uint64_t) FI_COMPLETION);
	struct fi_cq_err_entry err = { .op_context = entry->context, .flags = flags, .err = FI_ETRUNC };
	size_t done = 0, part, i;

	for (i = 0; i < entry->count && done < m->len; i++) {
		part = m->len - done < entry->iov[i].iov_len ? m->len - done : entry->iov[i].iov_len;
		memcpy(entry->iov[i].iov_base, (const char *) m->buf + done, part);
		done += part;
	}
	err.olen = m->len - done;
	if (err.olen)
		cq->owner_ops->writeerr(cq, &err);
	else
		cq->owner_ops->write(cq, entry->context, flags, done, entry->count ? entry->iov[0].iov_base : NULL,
				     m->data, m->tag, entry->addr);
	m->fake->out_cnt--;
	entry->srx->owner_ops->free_entry(entry);
}

static int fake_start(struct fi_peer_rx_entry *entry)
{
	struct message *m = entry->peer_context;
	struct fake *fake = m->fake;

	fake->start_cnt++;
	if (fake->refuse)
		return fake->refuse;
	if (fake->at_once)
		finish(m, entry);
	else
		fake->started[fake->start_cnt - 1] = entry;
	return 0;
}

static int fake_discard(struct fi_peer_rx_entry *entry)
{
	struct fake *fake = ((struct message *) entry->peer_context)->fake;

	fake->discard_cnt++;
	fake->out_cnt--;
	entry->srx->owner_ops->free_entry(entry);
	return 0;
}

void finish_started(struct fake *fake, size_t nth)
{
	finish(fake->started[nth]->peer_context, fake->started[nth]);
}

/* Ask for the receive of a message: what get says. */
int ask(struct message *m, struct fi_peer_rx_entry **entry)
{
	struct fi_peer_match_attr attr = { .addr = m->addr, .msg_size = m->len, .tag = m->tag };
	struct fi_ops_srx_owner *ops = m->fake->srx->owner_ops;
	int ret;

	ret = m->tagged ? ops->get_tag(m->fake->srx, &attr, entry) : ops->get_msg(m->fake->srx, &attr, entry);
	if (!ret || ret == -FI_ENOENT) {
		m->fake->out_cnt++;
		(*entry)->peer_context = m;
	}
	return ret;
}

int wait_for_receive(const struct message *m, struct fi_peer_rx_entry *entry)
{
	struct fi_ops_srx_owner *ops = m->fake->srx->owner_ops;

	entry->cq_data = m->data;
	entry->flags = m->data ? FI_REMOTE_CQ_DATA : 0;
	return m->tagged ? ops->queue_tag(entry) : ops->queue_msg(entry);
}

/* A message comes: into its receive, or it waits. */
struct fi_peer_rx_entry *arrive(struct test *t, struct fake *fake, const struct message *what)
{
	struct message *m = mem(t, sizeof(*m));
	struct fi_peer_rx_entry *entry;
	int ret;

	*m = *what;
	m->fake = fake;
	ret = ask(m, &entry);
	if (!ret) {
		finish(m, entry);
		return NULL;
	}
	CHECK_RET(ret, -FI_ENOENT);
	MUST(wait_for_receive(m, entry));
	return entry;
}

/* ---- both providers at one context */

static void open_srx(struct shop *shop, struct side *b)
{
	struct fi_rx_attr attr = *b->info->rx_attr;

	if (!b->info->domain_attr->max_ep_srx_ctx)
		ABSENT("%s has no shared receive contexts here: max_ep_srx_ctx is 0", run.prov);
	MUST(fi_srx_context(b->domain, &attr, &shop->srx, NULL));
	own_fid(b->t, &shop->srx->fid);
	shop->fake = mem(b->t, sizeof(*shop->fake));
	shop->fake->srx = export(b->t, &shop->srx->fid, FI_CLASS_PEER_SRX);
	shop->fake->srx->peer_ops->start_msg = shop->fake->srx->peer_ops->start_tag = fake_start;
	shop->fake->srx->peer_ops->discard_msg = shop->fake->srx->peer_ops->discard_tag = fake_discard;
	b->o.srx = shop->srx;
	side_open_rest(b);
	shop->fake->cq = export(b->t, &b->rx_cq->fid, FI_CLASS_PEER_CQ);
	shop->b = b;
}

struct shop shop_open_opts(struct test *t, const struct opts *o)
{
	struct side *listener = NULL;
	struct shop shop = { 0 };

	if (run.type == FI_EP_MSG) {
		listener = listener_open_opts(t, o);
		shop.a = connector_open(t, listener, o);
		MUST(fi_connect(shop.a->ep, listener->name, NULL, 0));
		open_srx(&shop, acceptor_new(listener, expect_event(listener, FI_CONNREQ).info, o));
		MUST(fi_accept(shop.b->ep, NULL, 0));
		expect_event(shop.a, FI_CONNECTED);
		expect_event(shop.b, FI_CONNECTED);
		return shop;
	}
	shop.a = side_open_opts(t, o);
	open_srx(&shop, domain_side_opts(t, o));
	shop.a->peer = side_insert(shop.a, shop.b);
	shop.b->peer = side_insert(shop.b, shop.a);
	return shop;
}

/* a sends, and it is at b. */
void send_there(struct shop *shop, const char *text, uint64_t tag)
{
	post(shop->a, TSENDMSG, .buf = text, .len = strlen(text), .tag = tag, .flags = FI_DELIVERY_COMPLETE);
	expect_tx(shop->a);
}

void trecv(struct shop *shop, void *buf, size_t len, uint64_t tag, uint64_t ignore)
{
	MUST((int) fi_trecv(shop->srx, buf, len, desc_for(shop->b, buf, len), FI_ADDR_UNSPEC, tag, ignore, buf));
}

/* The next completion is of this buffer, with this text. */
struct comp expect_text(struct shop *shop, void *buf, const char *text)
{
	struct comp c = expect_rx(shop->b);

	CHECK(c.ctx == buf);
	CHECK_EQ(c.len, strlen(text));
	CHECK_MEM(buf, text, c.len);
	return c;
}

void all_back(struct shop *shop)
{
	CHECK_EQ(shop->fake->out_cnt, 0);
	idle(shop->b->t);
	CHECK_EQ(rx_waiting(shop->b), 0);
}
