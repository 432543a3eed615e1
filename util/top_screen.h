/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of fi_top in a terminal, by ncurses.
 */
#ifndef UTIL_TOP_SCREEN_H
#define UTIL_TOP_SCREEN_H

#include "top_watch.h"

/* Show readings, and do what keys ask for, until the user or watch->readings ends it. The first reading has been made.
 * 0; -1: it cannot go on, and the reason was printed. */
int top_screen(struct top_watch *watch);

#endif
