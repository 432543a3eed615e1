/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See why_prom.h. A metric is a label of the page's header: it may be of a later release. A page may have any contents.
 */
#include "why_prom.h"

#include <inttypes.h>
#include <string.h>

#define RECORDS_MAX	256

/* A text of a record as the value of a label. */
static void put_value(FILE *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size && text[i]; i++) {
		if (text[i] == '"' || text[i] == '\\' || (unsigned char) text[i] < ' ')
			fputc('_', out);
		else
			fputc(text[i], out);
	}
}

static bool name_is_valid(const char *name, size_t size)
{
	size_t len = strnlen(name, size);

	return len && len < size && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len;
}

/* The labels of a record: its process, and what it is of. */
static void put_labels(FILE *out, const struct page *page, const struct fi_stats_header *header, uint32_t kind,
		       uint32_t index)
{
	const void *peer_at = NULL, *ep_at = NULL;
	struct fi_stats_peer peer;
	struct fi_stats_ep ep;

	if (kind == FI_STATS_PEERS)
		peer_at = page_record(page, header, kind, index, sizeof(peer));
	fprintf(out, "{pid=\"%" PRIu32 "\",rank=\"", header->pid);
	put_value(out, header->rank, sizeof(header->rank));
	if (peer_at) {
		memcpy(&peer, peer_at, sizeof(peer));
		fprintf(out, "\",peer=\"");
		put_value(out, peer.addr, sizeof(peer.addr));
		fprintf(out, "\",record=\"%" PRIu32, index);	/* another may have the same address, from before */
		index = peer.ep;
	}
	if (kind != FI_STATS_ENGINES)
		ep_at = page_record(page, header, FI_STATS_EPS, index, sizeof(ep));
	if (ep_at) {
		memcpy(&ep, ep_at, sizeof(ep));
		fprintf(out, "\",provider=\"");
		put_value(out, ep.prov, sizeof(ep.prov));
		fprintf(out, "\",endpoint=\"%" PRIu32, index);
	} else {
		fprintf(out, "\",index=\"%" PRIu32, index);
	}
	fprintf(out, "\"} ");
}

/* What is behind the name of a sample. */
static const char *suffix_of(uint32_t kind)
{
	return kind == FI_STATS_COUNTER ? "_total" : kind == FI_STATS_TICKS ? "_seconds" : "";
}

/* The type of a metric: its name there has the suffix of seconds, and not that of a counter. */
static void put_type(FILE *out, const char *name, uint32_t kind)
{
	fprintf(out, "# TYPE weft_%s%s %s\n", name, kind == FI_STATS_TICKS ? "_seconds" : "",
		kind == FI_STATS_COUNTER ? "counter" : "gauge");
}

/* A duration of a page in seconds. */
static double seconds_of(const struct page *page, const struct fi_stats_header *header, uint64_t ticks)
{
	uint64_t now_ticks = page->source.now_ticks, now_ns = page->source.now_ns;

	if (header->clock == FI_STATS_CLOCK_MONOTONIC)
		return (double) ticks / 1e9;
	if (now_ticks <= header->open_ticks || now_ns <= header->open_ns)
		return 0;
	return (double) ticks / (double) (now_ticks - header->open_ticks) * (double) (now_ns - header->open_ns) / 1e9;
}

/* The sample of a label in a record, if that is in use. */
static void put_sample(FILE *out, const struct page *page, const struct fi_stats_header *header,
		       const struct fi_stats_label *label, uint32_t index)
{
	const void *used_at = page_record(page, header, label->table, index, sizeof(uint32_t));
	const void *value_at = page_bytes(page, header, label->table, index, label->offset, sizeof(uint64_t));
	uint32_t used;
	uint64_t value;

	if (!used_at || !value_at)
		return;
	memcpy(&used, used_at, sizeof(used));
	if (used != FI_STATS_LIVE && used != FI_STATS_GONE)
		return;
	memcpy(&value, value_at, sizeof(value));
	fprintf(out, "weft_%s%s", label->name, suffix_of(label->kind));
	put_labels(out, page, header, label->table, index);
	if (label->kind == FI_STATS_TICKS)
		fprintf(out, "%.6f\n", seconds_of(page, header, value));
	else
		fprintf(out, "%" PRIu64 "\n", value);
}

/* The records of a table whose structs this program knows. */
static bool knows(const struct fi_stats_header *header, uint32_t kind)
{
	static const size_t sizes[FI_STATS_TABLES] = {
		[FI_STATS_ENGINES] = sizeof(struct fi_stats_engine), [FI_STATS_EPS] = sizeof(struct fi_stats_ep),
		[FI_STATS_PEERS] = sizeof(struct fi_stats_peer),
	};

	return kind < FI_STATS_TABLES && sizes[kind] && header->table[kind].size >= sizes[kind];
}

/* Samples of one metric stand together, so each metric goes through all pages. */
static void put_metric(FILE *out, const struct pages *pages, size_t cnt, const struct fi_stats_label *label)
{
	struct fi_stats_header header;

	put_type(out, label->name, label->kind);
	for (size_t i = 0; i < cnt; i++) {
		if (!page_header(&pages->list[i], &header))
			continue;
		for (uint32_t j = 0; j < FI_STATS_LABELS; j++) {
			const struct fi_stats_label *same = &header.label[j];

			if (strncmp(same->name, label->name, sizeof(same->name)) || !knows(&header, same->table))
				continue;
			for (uint32_t k = 0; k < RECORDS_MAX; k++)
				put_sample(out, &pages->list[i], &header, same, k);
			break;
		}
	}
}

/* ---- figures of processes ---- */

/* Copy a figure of a page. False: there is none at that index. */
static bool figure_at(const struct page *page, uint32_t index, struct fi_stats_figure *figure)
{
	struct fi_stats_header header;
	const char *record = page_header(page, &header) ?
			     page_record(page, &header, FI_STATS_FIGURES, index, sizeof(*figure)) : NULL;

	if (!record || header.table[FI_STATS_FIGURES].size < sizeof(*figure))
		return false;
	memcpy(figure, record, sizeof(*figure));
	return figure->used == FI_STATS_LIVE && name_is_valid(figure->name, sizeof(figure->name));
}

/* The figure with this name. False: the page has none. */
static bool figure_named(const struct page *page, const char *name, struct fi_stats_figure *figure)
{
	for (uint32_t i = 0; i < FI_STATS_FIGURE_CNT; i++)
		if (figure_at(page, i, figure) && !strcmp(figure->name, name))
			return true;
	return false;
}

/* The metric of a figure of page `first`, unless an earlier page has it, too. */
static void put_figure(FILE *out, const struct pages *pages, size_t cnt, size_t first,
		       const struct fi_stats_figure *figure)
{
	struct fi_stats_header header;
	struct fi_stats_figure same;

	for (size_t i = 0; i < first; i++)
		if (figure_named(&pages->list[i], figure->name, &same))
			return;
	put_type(out, figure->name, figure->kind);
	for (size_t i = first; i < cnt; i++) {
		if (!figure_named(&pages->list[i], figure->name, &same) || !page_header(&pages->list[i], &header))
			continue;
		fprintf(out, "weft_%s%s{pid=\"%" PRIu32 "\",rank=\"", figure->name, suffix_of(figure->kind),
			header.pid);
		put_value(out, header.rank, sizeof(header.rank));
		fprintf(out, "\"} %" PRIu64 "\n", same.value);
	}
}

static void put_figures(FILE *out, const struct pages *pages, size_t cnt)
{
	struct fi_stats_figure figure;

	for (size_t i = 0; i < cnt; i++)
		for (uint32_t k = 0; k < FI_STATS_FIGURE_CNT; k++)
			if (figure_at(&pages->list[i], k, &figure))
				put_figure(out, pages, cnt, i, &figure);
}

void why_prom(FILE *out, const struct pages *pages, size_t cnt, const struct fi_stats_verdict *verdict)
{
	struct fi_stats_header header;

	if (verdict)
		fprintf(out, "# TYPE weft_pending gauge\nweft_pending %" PRIu32 "\n# TYPE weft_stuck gauge\n"
			"weft_stuck %" PRIu32 "\n# TYPE weft_cycles gauge\nweft_cycles %" PRIu32 "\n",
			verdict->pending, verdict->stuck, verdict->cycles);
	/* the metrics of the first page that can be read: processes of one host mostly have the same library */
	for (size_t i = 0; i < cnt; i++) {
		if (!page_header(&pages->list[i], &header))
			continue;
		for (int j = 0; j < FI_STATS_LABELS; j++)
			if (name_is_valid(header.label[j].name, sizeof(header.label[j].name)))
				put_metric(out, pages, cnt, &header.label[j]);
		break;
	}
	put_figures(out, pages, cnt);
	fprintf(out, "# EOF\n");
}
