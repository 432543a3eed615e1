/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pages of the processes of this host (weft/stats.h): finds their files, and reads them. For fi_why and fi_top.
 */
#ifndef UTIL_PAGES_H
#define UTIL_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <weft/stats.h>

/* A page that was found. */
struct page {
	pid_t pid;
	char path[512];
	bool ours;			/* of this pid namespace */
	bool left;			/* by a process that has called exec() since, and does not use the page */
	struct fi_stats_source source;	/* source.page is owned */
};

struct pages {
	struct page *list;		/* owned: cnt of them */
	size_t cnt;
	char denied[256];		/* a folder of another user, which was not read; or empty */
};

/* Find and read all pages of the user, or only those of a process: pid > 0. A page that cannot be read has
 * source.page NULL. False: no memory. */
bool pages_read(struct pages *pages, pid_t pid);
/* Free them. */
void pages_free(struct pages *pages);
/* Read the file at this path alone. False: it cannot be read, and errno is the reason. */
bool page_read(struct page *page, const char *path);

/* Copy the header of a page. False: the page was not read, is damaged, or is of another version. */
bool page_header(const struct page *page, struct fi_stats_header *header);
/* len bytes at this offset of a record of a table (enum fi_stats_table_kind), at no particular alignment; NULL: they
 * are not there. header is that of page_header(). */
const void *page_bytes(const struct page *page, const struct fi_stats_header *header, uint32_t table, uint32_t index,
		       uint64_t offset, size_t len);
/* The first len bytes of a record, likewise. */
static inline const void *page_record(const struct page *page, const struct fi_stats_header *header, uint32_t table,
				      uint32_t index, size_t len)
{
	return page_bytes(page, header, table, index, 0, len);
}

/* Of what was read some time ago and again now: a process that has glanced meanwhile has made progress now. */
void pages_note_progress(struct pages *now, const struct pages *before);

/* Say on stderr why a process has no page in what pages_read() has found. */
void pages_tell_missing(const struct pages *pages, pid_t pid);

#endif
