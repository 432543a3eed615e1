/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Repeated warnings. Each line is written once, and a place in the source writes a few different lines at a time.
 * Neither a program that repeats a call nor a peer that breaks rules floods the log. Any thread.
 */
#ifndef FAB_LOG_REPEAT_H
#define FAB_LOG_REPEAT_H

/* Different lines of one place that are written within FAB_PLACE_MS milliseconds. */
#define FAB_PLACE_LINES	10
#define FAB_PLACE_MS	600000

enum fab_repeat {
	FAB_REPEAT_NEW,		/* write the line */
	FAB_REPEAT_LAST,	/* the same; further lines of this place will be left out for a while */
	FAB_REPEAT_OLD,		/* leave the line out */
};

/* Count a line that is about to be written: its text without time, and the place in the source (a function's name,
 * which is borrowed for the call, and a number). */
enum fab_repeat fab_log_repeat(const char *func, int line, const char *text);

#endif
