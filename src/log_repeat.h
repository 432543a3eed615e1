/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Repeated warnings. Each line is written once, and a place in the source writes a few different lines at a time. What
 * is left out is counted. Neither a program that repeats a call nor a peer that breaks rules floods the log. Any
 * thread.
 */
#ifndef FAB_LOG_REPEAT_H
#define FAB_LOG_REPEAT_H

#include <stdbool.h>

/* Different lines of one place that are written within FAB_PLACE_MS milliseconds. */
#define FAB_PLACE_LINES	10
#define FAB_PLACE_MS	600000
/* Lines of one place that are left out before their number is written; again at ten times as many, and so on. */
#define FAB_PLACE_TELL	100
/* Lines of one place that are left out before any other is, too: one line may come without end, at little cost. */
#define FAB_PLACE_LEAVE	1000

enum fab_repeat {
	FAB_REPEAT_NEW,		/* write the line */
	FAB_REPEAT_LAST,	/* the same; further lines of this place will be left out for a while */
	FAB_REPEAT_OLD,		/* leave the line out */
	FAB_REPEAT_COUNT,	/* write the line, and how many lines of this place were left out */
};

/*
 * Count a line that is about to be written: its text without time, and the place in the source (a function's name,
 * which is borrowed for the call, and a number). With FAB_REPEAT_COUNT *left_out is set: the number of lines of this
 * place that were left out in the last FAB_PLACE_MS, or in those before, if they have just passed. It does not count
 * this line.
 */
enum fab_repeat fab_log_repeat(const char *func, int line, const char *text, unsigned long *left_out);

/* The same before there is a text, which takes most of the time: true if any line of this place will be left out now.
 * It is counted then, and need not be made. */
bool fab_log_spent(const char *func, int line);

#endif
