/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See stats.h. A record is taken by an atomic change of its word `used`, since several copies of this code (providers
 * as DSOs) share the page.
 */
#include "common/stats/stats.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/providers/fi_prov.h>
#include "base/addr.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/core_ops.h"
#include "base/forks.h"
#include "base/probe.h"
#include "base/table.h"

#define NUMBERS_MAX	65536	/* further peers share a record */

/* In place of the page where another core loaded the provider. */
static struct fi_stats_page nowhere;
/* The page; it never moves. Written once, always with the same value. */
static struct fi_stats_page *_Atomic known = &nowhere;

/* The page of this process, made by the first call in it. */
static struct fi_stats_page *page_make(const struct fi_provider *prov)
{
	const struct fab_core_ops *core = prov ? fab_core_ops(prov->context.internal) : NULL;
	struct fi_stats_page *page = NULL;

	if (core && core->size >= offsetof(struct fab_core_ops, stats_page) + sizeof(core->stats_page) &&
	    core->stats_page)
		page = core->stats_page();
	if (page)
		known = page;
	return known;
}

static bool in_page(const void *record)
{
	const struct fi_stats_page *page = known;

	return record >= (const void *) page && record < (const void *) (page + 1);
}

/* ---- taking and giving back ---- */

static bool take(uint32_t *used, uint32_t from)
{
	return __atomic_compare_exchange_n(used, &from, FI_STATS_MAKING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void show(uint32_t *used, uint32_t what)
{
	__atomic_store_n(used, what, __ATOMIC_RELEASE);
}

static bool is(const uint32_t *used, uint32_t what)
{
	return __atomic_load_n(used, __ATOMIC_ACQUIRE) == what;
}

/* Take the first free record of a table, all zero but for its first word. NULL: there is none. */
static void *take_one(void *table, size_t cnt, size_t size)
{
	for (char *record = table; cnt; cnt--, record += size) {
		if (take((uint32_t *) (void *) record, FI_STATS_FREE)) {
			memset(record + sizeof(uint32_t), 0, size - sizeof(uint32_t));
			return record;
		}
	}
	return NULL;
}
#define TAKE_ONE(table)	take_one(table, fab_countof(table), sizeof(table[0]))

/* Give a record back, or free one outside of the page. */
static void give(void *record)
{
	if (!record)
		return;
	if (in_page(record))
		show(record, FI_STATS_FREE);
	else
		free(record);
}

struct fi_stats_engine *fab_stats_engine_open(const struct fi_provider *prov, bool automatic)
{
	struct fi_stats_page *page = page_make(prov);
	struct fi_stats_engine *engine = TAKE_ONE(page->engine);

	if (!engine)
		engine = calloc(1, sizeof(*engine));
	if (!engine)
		return NULL;
	engine->automatic = automatic;
	engine->last_pass = fab_ticks();
	show(&engine->used, FI_STATS_LIVE);
	return engine;
}

void fab_stats_engine_close(struct fi_stats_engine *engine)
{
	give(engine);
}

static void copy_text(char *to, size_t len, const char *text)
{
	snprintf(to, len, "%s", text ? text : "");
}

struct fi_stats_ep *fab_stats_ep_open(const struct fi_provider *prov, const struct fi_info *info, bool layered)
{
	struct fi_stats_page *page = page_make(prov);
	struct fi_stats_ep *ep = layered ? NULL : TAKE_ONE(page->ep);

	if (!ep) {
		ep = calloc(1, sizeof(*ep));
		__atomic_fetch_add(&page->header.lost_eps, ep && !layered, __ATOMIC_RELAXED);
	}
	if (!ep)
		return NULL;
	ep->engine = UINT32_MAX;
	ep->type = info->ep_attr->type;
	ep->opened = fab_ticks();
	copy_text(ep->prov, sizeof(ep->prov), prov ? prov->name : NULL);
	copy_text(ep->domain, sizeof(ep->domain), info->domain_attr->name);
	ep->rest.ep = in_page(ep) ? (uint32_t) (ep - page->ep) : UINT32_MAX;
	ep->rest.used = FI_STATS_LIVE;
	show(&ep->used, FI_STATS_LIVE);
	return ep;
}

struct fi_stats_ep *fab_stats_nobody(void)
{
	return &nowhere.ep[0];
}

void fab_stats_ep_close(struct fi_stats_ep *ep)
{
	struct fi_stats_page *page = known;

	if (!ep)
		return;
	fab_stats_event(ep, NULL, FI_STATS_EV_CLOSED, 0);
	for (size_t i = 0; in_page(ep) && i < FI_STATS_PEER_CNT; i++) {
		if (page->peer[i].ep == ep->rest.ep && !is(&page->peer[i].used, FI_STATS_FREE))
			show(&page->peer[i].used, FI_STATS_FREE);
	}
	give(ep);
}

void fab_stats_ep_enabled(struct fi_stats_ep *ep, const struct fi_stats_engine *engine, size_t fclass)
{
	const struct fi_stats_page *page = known;

	ep->engine = in_page(engine) ? (uint32_t) (engine - page->engine) : UINT32_MAX;
	ep->fclass = (uint32_t) fclass;
	ep->enabled = 1;
	fab_stats_event(ep, NULL, FI_STATS_EV_OPENED, 0);
}

void fab_stats_ep_name_text(struct fi_stats_ep *ep, const char *addr)
{
	copy_text(ep->addr, sizeof(ep->addr), addr);
}

void fab_stats_ep_name(struct fi_stats_ep *ep, const struct sockaddr *addr, uint64_t incarnation)
{
	if (addr && addr->sa_family)
		fab_addr_to_str(addr, ep->addr, sizeof(ep->addr));
	if (incarnation)
		ep->incarnation = incarnation;
}

/* ---- peers ---- */

/* Add what a peer has counted to the record of those that have none, and free its record. */
static void peer_fold(struct fi_stats_ep *ep, struct fi_stats_peer *peer)
{
	const uint64_t *from = (const uint64_t *) peer->op;
	uint64_t *to = (uint64_t *) ep->rest.op;
	const size_t words = (offsetof(struct fi_stats_peer, pending) - offsetof(struct fi_stats_peer, op)) / 8;

	for (size_t i = 0; i < words; i++)
		to[i] += from[i];
	show(&peer->used, FI_STATS_FREE);
}

/* True for the record of a stranger. The peers of connected endpoints are chosen by the program. */
static bool is_stranger(const struct fi_stats_peer *peer)
{
	const struct fi_stats_page *page = known;

	return peer->fi_addr == FI_ADDR_NOTAVAIL && peer->ep < FI_STATS_EP_CNT && page->ep[peer->ep].type != FI_EP_MSG;
}

/* The records of strangers, of all endpoints. */
static size_t count_strangers(void)
{
	struct fi_stats_page *page = known;
	size_t cnt = 0;

	for (size_t i = 0; i < FI_STATS_PEER_CNT; i++)
		cnt += !is(&page->peer[i].used, FI_STATS_FREE) && is_stranger(&page->peer[i]);
	return cnt;
}

/* True if the record of `peer`, which has gone, is given to another peer sooner than that of `other`, or NULL. */
static bool goes_before(const struct fi_stats_peer *peer, const struct fi_stats_peer *other)
{
	if (!other || is_stranger(peer) != is_stranger(other))
		return !other || is_stranger(peer);
	return peer->changed < other->changed;
}

/* The record that a peer at this address had before, or NULL. *first is the one to give away, if there is no free one;
 * for a stranger it is that of a stranger. */
static struct fi_stats_peer *peer_again(struct fi_stats_ep *ep, const char *addr, bool stranger,
					struct fi_stats_peer **first)
{
	struct fi_stats_page *page = known;

	*first = NULL;
	for (size_t i = 0; i < FI_STATS_PEER_CNT; i++) {
		struct fi_stats_peer *peer = &page->peer[i];

		if (!is(&peer->used, FI_STATS_GONE) || peer->ep != ep->rest.ep)
			continue;
		if (*addr && !strcmp(peer->addr, addr))
			return peer;
		if ((!stranger || is_stranger(peer)) && goes_before(peer, *first))
			*first = peer;
	}
	return NULL;
}

struct fi_stats_peer *fab_stats_peer_get_text(struct fi_stats_ep *ep, const char *text, fi_addr_t fi_addr)
{
	bool stranger = fi_addr == FI_ADDR_NOTAVAIL && ep->type != FI_EP_MSG;
	struct fi_stats_page *page = known;
	struct fi_stats_peer *peer, *first;

	if (!in_page(ep))
		return &ep->rest;
	peer = peer_again(ep, text, stranger, &first);
	if (peer) {
		peer->incarnation = peer->pid = 0;
	} else {
		bool full = stranger && count_strangers() >= FAB_STATS_STRANGERS;

		peer = full ? NULL : TAKE_ONE(page->peer);
		if (!peer && first) {
			peer_fold(ep, first);
			peer = TAKE_ONE(page->peer);
		}
	}
	if (!peer)
		return &ep->rest;
	peer->ep = ep->rest.ep;
	peer->fi_addr = fi_addr;
	peer->conn = FI_STATS_CONN_NONE;
	peer->changed = fab_ticks();
	copy_text(peer->addr, sizeof(peer->addr), text);
	show(&peer->used, FI_STATS_LIVE);
	return peer;
}

struct fi_stats_peer *fab_stats_peer_insert(struct fi_stats_ep *ep, struct fi_stats_peer *peer,
					    const struct sockaddr *addr, uint64_t fi_addr)
{
	if (peer == &ep->rest)
		return fab_stats_peer_get(ep, addr, fi_addr);
	peer->fi_addr = fi_addr;
	return peer;
}

struct fi_stats_peer *fab_stats_peer_get(struct fi_stats_ep *ep, const struct sockaddr *addr, uint64_t fi_addr)
{
	char text[FI_STATS_TEXT] = "";

	if (addr && addr->sa_family)
		fab_addr_to_str(addr, text, sizeof(text));
	return fab_stats_peer_get_text(ep, text, fi_addr);
}

uint32_t fab_stats_peer_mention(struct fi_stats_ep *ep, const struct sockaddr *addr, uint64_t fi_addr)
{
	struct fi_stats_peer *peer, *first;
	char text[FI_STATS_TEXT] = "";

	if (!in_page(ep))
		return UINT32_MAX;
	fab_addr_to_str(addr, text, sizeof(text));
	peer = peer_again(ep, text, false, &first);
	if (!peer) {
		peer = fab_stats_peer_get(ep, addr, fi_addr);
		fab_stats_peer_put(ep, peer);
	}
	return fab_stats_peer_index(ep, peer);
}

void fab_stats_peer_put(struct fi_stats_ep *ep, struct fi_stats_peer *peer)
{
	if (peer == &ep->rest || !is(&peer->used, FI_STATS_LIVE))
		return;
	for (size_t i = 0; i < FI_STATS_PEER_KINDS; i++)
		fab_stats_pending(&peer->pending[i], NULL);
	peer->dequeued = peer->queued;
	peer->changed = fab_ticks();
	peer->conn = FI_STATS_CONN_DOWN;
	show(&peer->used, FI_STATS_GONE);
}

void fab_stats_peer_name(struct fi_stats_ep *ep, struct fi_stats_peer *peer, const struct sockaddr *addr,
			 const struct sockaddr *local, uint64_t incarnation, uint32_t pid)
{
	if (peer == &ep->rest)
		return;
	if (addr && addr->sa_family)
		fab_addr_to_str(addr, peer->addr, sizeof(peer->addr));
	if (local && local->sa_family)
		fab_addr_to_str(local, peer->local, sizeof(peer->local));
	if (incarnation)
		peer->incarnation = incarnation;
	if (pid)
		peer->pid = pid;
}

void fab_stats_rest_name(struct fi_stats_ep *ep, const struct sockaddr *addr, const struct sockaddr *local)
{
	fab_addr_to_str(addr, ep->rest.addr, sizeof(ep->rest.addr));
	fab_addr_to_str(local, ep->rest.local, sizeof(ep->rest.local));
}

void fab_stats_peer_conn(struct fi_stats_ep *ep, struct fi_stats_peer *peer, enum fi_stats_conn conn,
			 enum fi_stats_carrier carrier)
{
	static const enum fi_stats_event_kind event[] = {
		[FI_STATS_CONN_CONNECTING] = FI_STATS_EV_CONNECTING, [FI_STATS_CONN_UP] = FI_STATS_EV_CONNECTED,
		[FI_STATS_CONN_PARKED] = FI_STATS_EV_PARKED,
	};

	FAB_PROBE3(conn, peer->addr, conn, carrier);
	peer->connects += conn == FI_STATS_CONN_UP;
	peer->parks += conn == FI_STATS_CONN_PARKED;
	if (peer != &ep->rest) {
		peer->conn = conn;
		peer->carrier = carrier;
		peer->changed = fab_ticks();
	}
	if (conn < fab_countof(event) && event[conn])
		fab_stats_event(ep, peer, event[conn], carrier);
}

uint32_t fab_stats_peer_index(const struct fi_stats_ep *ep, const struct fi_stats_peer *peer)
{
	const struct fi_stats_page *page = known;

	return peer == &ep->rest || !in_page(peer) ? UINT32_MAX : (uint32_t) (peer - page->peer);
}

struct fi_stats_peer *fab_stats_peers_add(struct fab_stats_peers *peers, struct fi_stats_ep *ep, uint64_t number,
					  const char *addr, fi_addr_t fi_addr)
{
	if (number >= NUMBERS_MAX || fab_grow(&peers->of, &peers->cnt, number, sizeof(*peers->of)))
		return &ep->rest;
	if (!peers->of[number])
		peers->of[number] = fab_stats_peer_get_text(ep, addr, fi_addr);
	return peers->of[number];
}

void fab_stats_peers_forget(struct fab_stats_peers *peers, struct fi_stats_ep *ep, uint64_t number)
{
	struct fi_stats_peer *peer = fab_stats_peers_find(peers, number);

	if (!peer)
		return;
	fab_stats_peer_put(ep, peer);
	peers->of[number] = NULL;
}

void fab_stats_peers_fini(struct fab_stats_peers *peers)
{
	free(peers->of);
	*peers = (struct fab_stats_peers) { .of = NULL };
}

/* ---- pending operations ---- */

void fab_stats_pending(struct fi_stats_pending *pending, const struct fi_stats_pending *what)
{
	uint64_t since = what && pending->since && pending->number == what->number ? pending->since : 0;
	uint64_t turn = pending->begun + 1;

	if (!what && !pending->since)
		return;
	/* what follows is stored after it; a fence would do as well, but ThreadSanitizer knows none */
	__atomic_exchange_n(&pending->begun, turn, __ATOMIC_ACQ_REL);
	if (what) {
		const struct fi_stats_pending copy = *what;

		pending->number = copy.number;
		pending->cnt = copy.cnt;
		pending->tag = copy.tag;
		pending->ignore = copy.ignore;
		pending->len = copy.len;
		pending->peer = copy.peer;
		pending->op = copy.op;
		pending->state = copy.state;
		pending->flags = copy.flags;
		pending->since = since ? since : fab_ticks();
	} else {
		pending->since = 0;
		pending->cnt = 0;
	}
	__atomic_store_n(&pending->written, turn, __ATOMIC_RELEASE);
}

void fab_stats_peer_pending(struct fi_stats_ep *ep, struct fi_stats_peer *peer, enum fi_stats_peer_kind kind,
			    const struct fi_stats_pending *what)
{
	const struct fi_stats_pending *pending = &peer->pending[kind];
	bool told = what && pending->since && pending->number == what->number && pending->state == what->state;

	fab_stats_pending(&peer->pending[kind], what);
	if (told || !what || (what->state != FI_STATS_CREDIT && what->state != FI_STATS_FULL))
		return;
	fab_stats_event(ep, peer, what->state == FI_STATS_CREDIT ? FI_STATS_EV_CREDIT : FI_STATS_EV_FULL, what->len);
}

struct fi_stats_wait *fab_stats_wait_open(const struct fi_provider *prov, bool deferred)
{
	struct fi_stats_page *page = page_make(prov);
	struct fi_stats_wait *wait = TAKE_ONE(page->wait);

	if (!wait)
		return NULL;
	wait->deferred = deferred;
	show(&wait->used, FI_STATS_LIVE);
	return wait;
}

void fab_stats_wait_close(struct fi_stats_wait *wait)
{
	give(wait);
}

/* ---- events and errors ---- */

/* The next place of a ring of cnt records, and its number. */
static uint64_t ring_next(uint64_t *last, size_t cnt, size_t *place)
{
	uint64_t number = __atomic_add_fetch(last, 1, __ATOMIC_RELAXED);

	*place = number % cnt;
	return number;
}

/* Take this place for the entry of that number. False: another thread, which is a whole round behind, still writes
 * there, and the entry is left out. */
static bool ring_take(uint64_t *place, uint64_t number, size_t cnt)
{
	return __atomic_exchange_n(place, 0, __ATOMIC_ACQ_REL) || number <= cnt;
}

static void add_event(uint32_t ep, const struct fi_stats_peer *peer, enum fi_stats_event_kind kind, uint64_t value)
{
	struct fi_stats_page *page = known;
	struct fi_stats_event *event;
	uint64_t number;
	size_t place;

	number = ring_next(&page->header.last_event, FI_STATS_EVENT_CNT, &place);
	event = &page->event[place];
	if (!ring_take(&event->number, number, FI_STATS_EVENT_CNT))
		return;
	event->when = fab_ticks();
	event->kind = kind;
	event->ep = ep;
	event->value = value;
	/* an address that is cut off is of no use to a program, and of some to people */
	snprintf(event->addr, sizeof(event->addr), "%.*s", (int) sizeof(event->addr) - 1, peer ? peer->addr : "");
	__atomic_store_n(&event->number, number, __ATOMIC_RELEASE);
}

void fab_stats_event(struct fi_stats_ep *ep, const struct fi_stats_peer *peer, enum fi_stats_event_kind kind,
		     uint64_t value)
{
	add_event(ep->rest.ep, peer, kind, value);
}

void fab_stats_gap(uint64_t ticks)
{
	add_event(UINT32_MAX, NULL, FI_STATS_EV_GAP, ticks);
}

void fab_stats_error(struct fi_stats_ep *ep, enum fab_op_code code, const struct fab_comp *comp, int err,
		     int prov_errno, const char *text)
{
	struct fi_stats_page *page = known;
	struct fi_stats_error *error;
	uint64_t number;
	size_t place;

	number = ring_next(&page->header.last_error, FI_STATS_ERROR_CNT, &place);
	error = &page->error[place];
	if (!ring_take(&error->number, number, FI_STATS_ERROR_CNT))
		return;
	error->when = fab_ticks();
	error->err = (uint32_t) err;
	error->prov_errno = (uint32_t) prov_errno;
	error->op = code;
	error->ep = ep->rest.ep;
	error->tag = comp->tag;
	error->len = comp->len;
	copy_text(error->text, sizeof(error->text), text);
	__atomic_store_n(&error->number, number, __ATOMIC_RELEASE);
	fab_stats_event(ep, NULL, FI_STATS_EV_ERROR, (uint64_t) err);
}

uint64_t fab_stats_stuck(const struct fi_provider *prov)
{
	const struct fab_core_ops *core = prov ? fab_core_ops(prov->context.internal) : NULL;

	return core && core->size >= offsetof(struct fab_core_ops, stats_stuck) + sizeof(core->stats_stuck) &&
	       core->stats_stuck ? core->stats_stuck() : 0;
}

/* ---- figures ---- */

static bool figure_is(const struct fi_stats_figure *figure, const char *name)
{
	return is(&figure->used, FI_STATS_LIVE) && !strcmp(figure->name, name);
}

uint64_t *fab_stats_figure(const struct fi_provider *prov, const char *name, enum fi_stats_label_kind kind)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct fi_stats_page *page = page_make(prov);
	struct fi_stats_figure *figure = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < FI_STATS_FIGURE_CNT && !figure; i++)
		figure = figure_is(&page->figure[i], name) ? &page->figure[i] : NULL;
	if (!figure && (figure = TAKE_ONE(page->figure))) {
		figure->kind = kind;
		copy_text(figure->name, sizeof(figure->name), name);
		show(&figure->used, FI_STATS_LIVE);
	}
	pthread_mutex_unlock(&lock);
	return figure ? &figure->value : &nowhere.figure[0].value;
}
