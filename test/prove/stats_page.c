/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reader of a page of statistics (src/stats_read.c), which another process writes while it is read, or has made to
 * harm us: records lie in the copy of the page, texts end, operations and their states have names, and ages do not
 * overflow. The page ends with its array; it is of each of some lengths, and has any bytes.
 *
 * eva: -eva-slevel 150 -eva-slevel-function main:0,make_text:0 -eva-min-loop-unroll 130
 */
#include "prove.h"
#include "stats_read.c"

#define PAGE	sizeof(struct fi_stats_page)
static _Alignas(128) char mem[PAGE];
static struct fab_view view;

/* A text that ends, and has nothing that a terminal must not see. */
static void prove_text(const char *text, size_t size)
{
	prove(text[size - 1] == 0);
}

static void prove_pending(const struct fi_stats_pending *pending, size_t cnt)
{
	//@ loop unroll 8;
	for (size_t i = 0; i < cnt; i++) {
		if (fab_view_pending(&pending[i])) {
			prove(pending[i].op < FI_STATS_OPS);
			prove(pending[i].state > 0 && pending[i].state < FI_STATS_STATES);
		}
	}
}

static void prove_peer(const struct fi_stats_peer *peer)
{
	prove_text(peer->addr, sizeof(peer->addr));
	prove_text(peer->local, sizeof(peer->local));
	prove_pending(peer->pending, FI_STATS_PEER_KINDS);
}

static void prove_records(uint32_t index)
{
	struct fi_stats_engine engine;
	struct fi_stats_ep ep;
	struct fi_stats_peer peer;
	struct fi_stats_wait wait;

	if (fab_view_engine(&view, index, &engine))
		(void) fab_view_age(&view, engine.last_pass);
	if (fab_view_ep(&view, index, &ep)) {
		prove_text(ep.prov, sizeof(ep.prov));
		prove_text(ep.domain, sizeof(ep.domain));
		prove_text(ep.addr, sizeof(ep.addr));
		prove_pending(ep.pending, FI_STATS_EP_KINDS);
		prove_peer(&ep.rest);
	}
	if (fab_view_peer(&view, index, &peer))
		prove_peer(&peer);
	if (fab_view_wait(&view, index, &wait))
		prove_pending(&wait.pending, 1);
}

/* A page of this length. */
static void prove_page(size_t len)
{
	struct fi_stats_source source = { .page = mem + PAGE - len, .len = len };

	any_bytes(mem + PAGE - len, len);
	source.now_ticks = any_of(0, UINT64_MAX);
	source.now_ns = any_of(0, INT64_MAX / 2);
	fab_view_open(&view, &source);
	if (!view.wrong) {
		prove(len >= offsetof(struct fi_stats_header, label));
		prove_text(view.header.library, sizeof(view.header.library));
		prove_text(view.header.host, sizeof(view.header.host));
		prove_text(view.header.command, sizeof(view.header.command));
		prove_text(view.header.rank, sizeof(view.header.rank));
	}
	prove_records(any_of(0, UINT32_MAX));
}

int main(void)
{
	static const size_t header = sizeof(struct fi_stats_header), fixed = offsetof(struct fi_stats_header, label);

	prove_page(0);
	prove_page(1);
	prove_page(fixed - 1);
	prove_page(fixed);
	prove_page(fixed + 1);
	prove_page(header - 1);
	prove_page(header);
	prove_page(header + sizeof(struct fi_stats_engine));
	prove_page(header + sizeof(struct fi_stats_ep) - 1);
	prove_page(PAGE - 1);
	prove_page(PAGE);
	reached();
	return 0;
}
