/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What fi_top was asked for, and the readings that it makes for it.
 */
#ifndef UTIL_TOP_WATCH_H
#define UTIL_TOP_WATCH_H

#include "top.h"

struct top_watch {
	const pid_t *pids;		/* borrowed: pids_cnt of them; 0: all processes of the user that live */
	size_t pids_cnt;
	uint64_t delay_ms;		/* between readings */
	uint64_t readings;		/* to show; 0: without end */
	enum top_view view;
	enum top_key key;
	bool reverse;

	struct pages now, before;	/* owned; the first `cnt` of `now` are shown */
	size_t cnt;
	uint64_t now_ns, before_ns;	/* when they were read; 0: not yet */
	struct top top;
	size_t living;			/* of the shown processes */
};

/* Read the pages, and make the rows. False: no memory. */
bool top_watch_read(struct top_watch *watch);
/* Make the rows of the last reading again, since view, key or order have changed. False: no memory. */
bool top_watch_again(struct top_watch *watch);
void top_watch_free(struct top_watch *watch);

#endif
