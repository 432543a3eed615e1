/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reasons: recording, sorting, writing them out.
 * State: for each thread, the list in which its reasons are collected.
 */
#include "why.h"

#include "base/bits.h"
#include "base/strbuf.h"
#include "compat.h"
#include "fabric.h"
#include "getinfo.h"
#include "log.h"
#include "monitor.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_REASONS = 4096,	/* of one call; further reasons are dropped and counted */
	LOG_REASONS = 3,	/* of one entry in a line of log */
	LINE_ENTRIES = 3,	/* that are named in a line; further ones are counted */
	LOG_LEN = 1024,
	RANK_CALL = 500,	/* between the two: half of a FAB_WHY_WHICH */
	RANK_WHICH = 1000,	/* outweighs any number of FAB_WHY_WHAT, which count 1 each */
	RANK_WHERE = 100000,	/* outweighs all: a caller who names an address means that interface */
	RANK_SKIPPED = 1 << 30,
};

/* Initial-exec, because __tls_get_addr() would be a symbol from outside of libc. */
static __thread struct fab_reasons *listener __attribute__((tls_model("initial-exec")));

void fab_reasons_init(struct fab_reasons *reasons)
{
	*reasons = (struct fab_reasons) { .list = NULL };
}

static void reason_free(struct fab_reason *reason)
{
	free(reason->entry);
	free(reason->attr);
	free(reason->asked);
	free(reason->offered);
}

void fab_reasons_fini(struct fab_reasons *reasons)
{
	size_t i;

	for (i = 0; i < reasons->cnt; i++)
		reason_free(&reasons->list[i]);
	free(reasons->list);
	fab_reasons_init(reasons);
}

struct fab_reasons *fab_reasons_listen(struct fab_reasons *reasons)
{
	struct fab_reasons *before = listener;

	listener = reasons;
	return before;
}

size_t fab_reasons_heard(void)
{
	return listener ? listener->cnt + listener->lost : 0;
}

static bool why_wanted(void)
{
	return listener;
}

/* Append a slot to the list. NULL: the list is full, or there is no memory. */
static struct fab_reason *new_reason(struct fab_reasons *reasons)
{
	struct fab_reason *list;
	size_t room;

	if (reasons->cnt == reasons->room) {
		room = reasons->room ? reasons->room * 2 : 32;
		list = room <= MAX_REASONS ? realloc(reasons->list, room * sizeof(*list)) : NULL;
		if (!list)
			return NULL;
		reasons->list = list;
		reasons->room = room;
	}
	return &reasons->list[reasons->cnt];
}

static char *why_copy(const char *string)
{
	return strdup(string ? string : "-");
}

static void record(const struct fi_provider *prov, const struct fab_why *why, bool skipped)
{
	struct fab_reason *reason;

	if (!listener)
		return;
	reason = new_reason(listener);
	if (reason) {
		*reason = (struct fab_reason) {
			.prov = prov->name,
			.kind = why->kind,
			.skipped = skipped,
			.entry = why->entry ? strdup(why->entry) : NULL,
			.attr = why_copy(why->attr),
			.asked = why_copy(why->asked),
			.offered = why_copy(why->offered),
			.order = (unsigned) listener->cnt,
		};
		if ((reason->entry || !why->entry) && reason->attr && reason->asked && reason->offered) {
			listener->cnt++;
			return;
		}
		reason_free(reason);
	}
	listener->lost++;
}

static void provider_why(const struct fi_provider *prov, const struct fab_why *why)
{
	record(prov, why, false);
}

const struct fab_core_ops fab_reasons_ops = {
	.size = sizeof(struct fab_core_ops),
	.why_wanted = why_wanted,
	.why = provider_why,
	.getinfo = fab_getinfo_inner,
	.count_fabric = fab_count_fabric,
	.dupinfo = fab_dupinfo_of,
	.stats_page = fab_stats_page,
	.monitor = &fab_monitor,
	.stats_stuck = fab_stats_tell_stuck,
};

static void why_add(const struct fi_provider *prov, const char *attr, const char *asked, const char *offered,
		    bool skipped)
{
	record(prov, &(struct fab_why) { .kind = FAB_WHY_CALL, .attr = attr, .asked = asked, .offered = offered },
	       skipped);
}

void fab_reasons_add(const struct fi_provider *prov, const char *attr, const char *asked, const char *offered)
{
	why_add(prov, attr, asked, offered, false);
}

void fab_reasons_add_skipped(const struct fi_provider *prov, const char *attr, const char *asked, const char *offered)
{
	why_add(prov, attr, asked, offered, true);
}

static bool same_provider(const struct fab_reason *a, const struct fab_reason *b)
{
	return !strcmp(a->prov, b->prov);
}

static bool same_entry(const struct fab_reason *a, const struct fab_reason *b)
{
	return same_provider(a, b) && (a->entry && b->entry ? !strcmp(a->entry, b->entry) : a->entry == b->entry);
}

/* The weight of a reason: the higher the sum of its weights, the further away is an entry. */
static unsigned reason_weight(const struct fab_reason *reason)
{
	if (reason->skipped)
		return RANK_SKIPPED;
	switch (reason->kind) {
	case FAB_WHY_CALL:
		return RANK_CALL;
	case FAB_WHY_WHERE:
		return RANK_WHERE;
	case FAB_WHY_WHICH:
		return RANK_WHICH;
	default:
		return 1;
	}
}

/* Index behind the run of reasons that begins at start and for which same() holds. */
static size_t run_end(const struct fab_reasons *reasons, size_t start,
		      bool (*same)(const struct fab_reason *a, const struct fab_reason *b))
{
	size_t end = start + 1;

	while (end < reasons->cnt && same(&reasons->list[start], &reasons->list[end]))
		end++;
	return end;
}

/* Reasons of one entry come one after the other; each gets the sum of their weights. */
static void rank_entries(struct fab_reasons *reasons)
{
	size_t start, end, i;
	unsigned rank;

	for (start = 0; start < reasons->cnt; start = end) {
		end = run_end(reasons, start, same_entry);
		for (rank = 0, i = start; i < end; i++)
			rank += reason_weight(&reasons->list[i]);
		for (i = start; i < end; i++)
			reasons->list[i].entry_rank = rank;
	}
}

/* Reasons of one provider come one after the other, too. A provider has the rank of its nearest entry. */
static void rank_providers(struct fab_reasons *reasons)
{
	size_t start, end, i;
	unsigned rank;

	for (start = 0; start < reasons->cnt; start = end) {
		end = run_end(reasons, start, same_provider);
		for (rank = RANK_SKIPPED, i = start; i < end; i++)
			rank = fab_min(rank, reasons->list[i].entry_rank);
		for (i = start; i < end; i++)
			reasons->list[i].provider_rank = rank;
	}
}

static int why_compare(const void *left, const void *right)
{
	const struct fab_reason *a = left, *b = right;

	if (a->provider_rank != b->provider_rank)
		return a->provider_rank < b->provider_rank ? -1 : 1;
	if (!same_provider(a, b))
		return a->order < b->order ? -1 : 1;
	if (a->entry_rank != b->entry_rank)
		return a->entry_rank < b->entry_rank ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

void fab_reasons_sort(struct fab_reasons *reasons)
{
	rank_entries(reasons);
	rank_providers(reasons);
	if (reasons->cnt)
		qsort(reasons->list, reasons->cnt, sizeof(*reasons->list), why_compare);
}

/* True if the text is the name of an environment variable. */
static bool is_variable(const char *text)
{
	return !strncmp(text, "FI_", 3) && !strchr(text, ' ');
}

static bool is_of_core(const struct fab_reason *reason)
{
	return !strcmp(reason->prov, fab_core_prov.name);
}

static void put_reason(struct fab_strbuf *sb, const struct fab_reason *reason)
{
	switch (reason->kind) {
	case FAB_WHY_CALL:
		fab_strbuf_printf(sb, "%s%s%s: %s", reason->attr,
				  !*reason->asked ? "" : is_variable(reason->attr) ? "=" : " ", reason->asked,
				  reason->offered);
		break;
	case FAB_WHY_LACKS:
		fab_strbuf_printf(sb, "%s: lacks %s", reason->attr, reason->asked);
		break;
	case FAB_WHY_NEEDS:
		fab_strbuf_printf(sb, "%s: the hints must allow %s", reason->attr, reason->offered);
		break;
	default:
		fab_strbuf_printf(sb, "%s: asked %s, offered %s", reason->attr, reason->asked, reason->offered);
	}
}

/* ---- all reasons ---- */

/* True if put_reason() writes the same for both. */
static bool same_text(const struct fab_reason *a, const struct fab_reason *b)
{
	return a->kind == b->kind && !strcmp(a->attr, b->attr) &&
	       (a->kind == FAB_WHY_NEEDS || !strcmp(a->asked, b->asked)) &&
	       (a->kind == FAB_WHY_LACKS || !strcmp(a->offered, b->offered));
}

/* True if the reasons from a to a_end are the same as those from b to b_end. */
static bool same_reasons(const struct fab_reasons *reasons, size_t a, size_t a_end, size_t b, size_t b_end)
{
	if (a_end - a != b_end - b)
		return false;
	for (; a < a_end; a++, b++)
		if (!same_text(&reasons->list[a], &reasons->list[b]))
			return false;
	return true;
}

/* Put the names of the entry of the reasons from start to end, and of later ones of its provider with the same reasons;
 * these are told then. */
static void put_entries(struct fab_reasons *reasons, size_t start, size_t end, struct fab_strbuf *sb)
{
	size_t other, other_end, more = 0, cnt = 1;

	fab_strbuf_printf(sb, "    %s", reasons->list[start].entry);
	for (other = end; other < reasons->cnt && same_provider(&reasons->list[start], &reasons->list[other]);
	     other = other_end) {
		other_end = run_end(reasons, other, same_entry);
		if (!reasons->list[other].entry || reasons->list[other].told ||
		    !same_reasons(reasons, start, end, other, other_end))
			continue;
		reasons->list[other].told = true;
		if (cnt++ < LINE_ENTRIES)
			fab_strbuf_printf(sb, "; %s", reasons->list[other].entry);
		else
			more++;
	}
	if (more)
		fab_strbuf_printf(sb, "; and %zu more", more);
	fab_strbuf_putc(sb, '\n');
}

/* Put the reasons of one entry, or those of a provider that are about no entry. */
static void put_asked(struct fab_reasons *reasons, size_t start, size_t end, struct fab_strbuf *sb)
{
	const struct fab_reason *first = &reasons->list[start];
	const char *indent = first->entry ? "      " : is_of_core(first) ? "  " : "    ";

	if (!is_of_core(first) && (!start || !same_provider(first, first - 1)))
		fab_strbuf_printf(sb, "  %s\n", first->prov);
	if (first->told)
		return;
	if (first->entry)
		put_entries(reasons, start, end, sb);
	for (size_t i = start; i < end; i++) {
		fab_strbuf_puts(sb, indent);
		put_reason(sb, &reasons->list[i]);
		fab_strbuf_putc(sb, '\n');
	}
}

/* Put a provider that was not asked, with all later ones that were not asked for the same reason. */
static void put_not_asked(struct fab_reasons *reasons, size_t start, struct fab_strbuf *sb)
{
	struct fab_reason *first = &reasons->list[start];

	if (first->told)
		return;
	fab_strbuf_printf(sb, "not asked: %s", first->prov);
	for (size_t i = start + 1; i < reasons->cnt; i++) {
		struct fab_reason *other = &reasons->list[i];

		if (!other->skipped || other->told || !same_text(first, other))
			continue;
		other->told = true;
		fab_strbuf_printf(sb, ", %s", other->prov);
	}
	fab_strbuf_puts(sb, " (");
	put_reason(sb, first);
	fab_strbuf_puts(sb, ")");
}

/* True if the provider was not asked because the call or FI_PROVIDER names another. That is no news if one was asked,
 * too. */
static bool is_other_name(const struct fab_reason *reason)
{
	return reason->skipped &&
	       (!strcmp(reason->attr, "fabric_attr->prov_name") || !strcmp(reason->attr, "FI_PROVIDER"));
}

void fab_reasons_put(struct fab_reasons *reasons, struct fab_strbuf *sb)
{
	size_t start, end;

	for (start = 0; start < reasons->cnt; start++)
		reasons->list[start].told = false;
	for (start = 0; start < reasons->cnt; start = end) {
		end = run_end(reasons, start, same_entry);
		if (!reasons->list[start].skipped) {
			put_asked(reasons, start, end, sb);
		} else if (!reasons->list[start].told &&
			   (reasons->list[0].skipped || !is_other_name(&reasons->list[start]))) {
			fab_strbuf_puts(sb, "  ");
			put_not_asked(reasons, start, sb);
			fab_strbuf_putc(sb, '\n');
		}
	}
	if (reasons->lost)
		fab_strbuf_printf(sb, "  and %zu more, which did not fit\n", reasons->lost);
}

/* ---- the log ---- */

/* Put the line of one provider, whose reasons are those from start to end: its nearest entry, and how many more it
 * has. */
static void put_provider(FILE *text, const struct fab_reasons *reasons, size_t start, size_t end)
{
	size_t entry_end = run_end(reasons, start, same_entry), other_cnt = 0, i;
	const struct fab_reason *nearest = &reasons->list[start];
	char line[LOG_LEN];
	struct fab_strbuf sb;

	fab_strbuf_init(&sb, line, sizeof(line));
	fab_strbuf_printf(&sb, "fi_getinfo: %s has no match", nearest->prov);
	if (nearest->entry)
		fab_strbuf_printf(&sb, "; nearest is %s", nearest->entry);
	for (i = start; i < entry_end && i < start + LOG_REASONS; i++) {
		fab_strbuf_puts(&sb, i == start ? ": " : "; ");
		put_reason(&sb, &reasons->list[i]);
	}
	if (i < entry_end)
		fab_strbuf_printf(&sb, "; and %zu more", entry_end - i);
	for (i = entry_end; i < end; i = run_end(reasons, i, same_entry))
		other_cnt++;
	if (other_cnt)
		fab_strbuf_printf(&sb, " (%zu other entries are not nearer; FI_EXPLAIN=1 lists all)", other_cnt);
	fprintf(text, "%s\n", line);
}

/* Put each reason of the core in a line. */
static void put_core(FILE *text, const struct fab_reasons *reasons, size_t start, size_t end)
{
	char line[LOG_LEN];
	struct fab_strbuf sb;

	for (; start < end; start++) {
		fab_strbuf_init(&sb, line, sizeof(line));
		put_reason(&sb, &reasons->list[start]);
		fprintf(text, "fi_getinfo: %s\n", line);
	}
}

/* No provider was asked: put that in one line for all of them. */
static void put_skipped(FILE *text, struct fab_reasons *reasons)
{
	char line[LOG_LEN];
	struct fab_strbuf sb;

	fab_strbuf_init(&sb, line, sizeof(line));
	for (size_t i = 0; i < reasons->cnt; i++)
		reasons->list[i].told = false;
	for (size_t i = 0; i < reasons->cnt; i++) {
		if (i && !reasons->list[i].told)
			fab_strbuf_puts(&sb, "; ");
		put_not_asked(reasons, i, &sb);
	}
	fprintf(text, "fi_getinfo: %s\n", reasons->cnt ? line : "no provider is loaded");
}

static void put_log(FILE *text, struct fab_reasons *reasons)
{
	size_t start, end;

	if (!reasons->cnt || reasons->list[0].skipped) {
		put_skipped(text, reasons);
		return;
	}
	for (start = 0; start < reasons->cnt && !reasons->list[start].skipped; start = end) {
		end = run_end(reasons, start, same_provider);
		if (is_of_core(&reasons->list[start]))
			put_core(text, reasons, start, end);
		else
			put_provider(text, reasons, start, end);
	}
}

void fab_reasons_log(struct fab_reasons *reasons)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	if (!file)
		return;
	put_log(file, reasons);
	fclose(file);
	fab_log_keep(text);
}
