/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See top_watch.h. The last two readings are kept: rates are their differences.
 */
#include "top_watch.h"

#include <string.h>
#include "common.h"

/* The page is to be shown: it can be read, and is that of a process which was asked for or lives. */
static bool is_wanted(const struct top_watch *watch, const struct page *page)
{
	if (!page->source.page)
		return false;
	if (!watch->pids_cnt)
		return page->source.proc_state && !page->left;
	/* a number is that of this pid namespace */
	for (size_t i = 0; i < watch->pids_cnt; i++)
		if (page->ours && page->pid == watch->pids[i])
			return true;
	return false;
}

/* Move the pages that are to be shown to the front. */
static void choose(struct top_watch *watch)
{
	struct page *list = watch->now.list;

	watch->cnt = watch->living = 0;
	for (size_t i = 0; i < watch->now.cnt; i++) {
		struct page page = list[i];

		if (!is_wanted(watch, &page))
			continue;
		watch->living += page.source.proc_state && !page.left;
		list[i] = list[watch->cnt];
		list[watch->cnt++] = page;
	}
}

bool top_watch_again(struct top_watch *watch)
{
	if (!top_make(&watch->top, watch->view, &watch->now, watch->cnt, watch->before_ns ? &watch->before : NULL,
		      watch->before_ns))
		return false;
	top_sort(&watch->top, watch->key, watch->reverse);
	return true;
}

bool top_watch_read(struct top_watch *watch)
{
	pages_free(&watch->before);
	watch->before = watch->now;
	watch->before_ns = watch->now_ns;
	watch->now_ns = util_now_ns();
	if (!pages_read(&watch->now, watch->pids_cnt == 1 ? watch->pids[0] : 0))
		return false;
	if (watch->before_ns)
		pages_note_progress(&watch->now, &watch->before);
	choose(watch);
	return top_watch_again(watch);
}

void top_watch_free(struct top_watch *watch)
{
	top_free(&watch->top);
	pages_free(&watch->before);
	pages_free(&watch->now);
}
