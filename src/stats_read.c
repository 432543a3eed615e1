/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See stats_read.h.
 */
#include "stats_read.h"

#include "base/bits.h"

#include <string.h>

#define RECORDS_MAX	256	/* of a table: rubbish must not take long */

#define TEXT(field)	make_text(field, sizeof(field))

/* End a text, and replace what a terminal must not see: some take bytes above 127 for controls. */
static void make_text(char *text, size_t size)
{
	text[size - 1] = 0;
	for (; *text; text++)
		if ((unsigned char) *text < ' ' || (unsigned char) *text >= 127)
			*text = '?';
}

void fab_view_open(struct fab_view *view, const struct fi_stats_source *source)
{
	struct fi_stats_header *header = &view->header;
	const size_t fixed = offsetof(struct fi_stats_header, label);

	view->source = source;
	view->wrong = NULL;
	memset(header, 0, sizeof(*header));
	if (!source->page || source->len < fixed) {
		view->wrong = "it is too short";
		return;
	}
	memcpy(header, source->page, fixed);
	TEXT(header->library);
	TEXT(header->host);
	TEXT(header->command);
	TEXT(header->rank);
	if (header->magic != FI_STATS_MAGIC)
		view->wrong = "it is no page of weft, or is being made just now";
	else if (header->version != FI_STATS_VERSION)
		view->wrong = "it is of another version of weft";
	else if (header->table_cnt < FI_STATS_TABLES)
		view->wrong = "it lacks tables";
}

uint32_t fab_view_cnt(const struct fab_view *view, enum fi_stats_table_kind kind)
{
	return view->wrong ? 0 : fab_min(view->header.table[kind].cnt, (uint32_t) RECORDS_MAX);
}

bool fab_view_read(const struct fab_view *view, enum fi_stats_table_kind kind, uint32_t index, void *record,
		   size_t size)
{
	const struct fi_stats_table *table = &view->header.table[kind];
	uint64_t at = (uint64_t) index * table->size;

	if (index >= fab_view_cnt(view, kind) || table->size < size || table->offset > view->source->len)
		return false;
	at += table->offset;
	if (at + size > view->source->len)
		return false;
	memcpy(record, (const char *) view->source->page + at, size);
	return true;
}

bool fab_view_engine(const struct fab_view *view, uint32_t index, struct fi_stats_engine *engine)
{
	return fab_view_read(view, FI_STATS_ENGINES, index, engine, sizeof(*engine)) && engine->used == FI_STATS_LIVE;
}

static void check_peer(struct fi_stats_peer *peer)
{
	TEXT(peer->addr);
	TEXT(peer->local);
}

bool fab_view_ep(const struct fab_view *view, uint32_t index, struct fi_stats_ep *ep)
{
	if (!fab_view_read(view, FI_STATS_EPS, index, ep, sizeof(*ep)) || ep->used != FI_STATS_LIVE)
		return false;
	TEXT(ep->prov);
	TEXT(ep->domain);
	TEXT(ep->addr);
	check_peer(&ep->rest);
	return true;
}

bool fab_view_peer(const struct fab_view *view, uint32_t index, struct fi_stats_peer *peer)
{
	if (!fab_view_read(view, FI_STATS_PEERS, index, peer, sizeof(*peer)) ||
	    (peer->used != FI_STATS_LIVE && peer->used != FI_STATS_GONE))
		return false;
	check_peer(peer);
	return true;
}

bool fab_view_wait(const struct fab_view *view, uint32_t index, struct fi_stats_wait *wait)
{
	return fab_view_read(view, FI_STATS_WAITS, index, wait, sizeof(*wait)) && wait->used == FI_STATS_LIVE;
}

bool fab_view_figure(const struct fab_view *view, uint32_t index, struct fi_stats_figure *figure)
{
	if (!fab_view_read(view, FI_STATS_FIGURES, index, figure, sizeof(*figure)) || figure->used != FI_STATS_LIVE)
		return false;
	TEXT(figure->name);
	return true;
}

bool fab_view_pending(const struct fi_stats_pending *pending)
{
	return pending->since && pending->written == pending->begun && pending->op < FI_STATS_OPS &&
	       pending->state > FI_STATS_NONE && pending->state < FI_STATS_STATES;
}

uint64_t fab_view_age(const struct fab_view *view, uint64_t ticks)
{
	const struct fi_stats_source *source = view->source;
	int64_t then;

	if (ticks >= (view->header.clock == FI_STATS_CLOCK_MONOTONIC ? source->now_ns : source->now_ticks))
		return 0;
	if (view->header.clock != FI_STATS_CLOCK_MONOTONIC && ticks < view->header.open_ticks)
		ticks = view->header.open_ticks;
	then = fi_stats_ns(&view->header, ticks, source->now_ticks, source->now_ns);
	return then < 0 || (uint64_t) then > source->now_ns ? 0 : source->now_ns - (uint64_t) then;
}
