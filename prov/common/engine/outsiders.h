/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Between engine.c and outsiders.c. Lock held.
 */
#ifndef FAB_OUTSIDERS_H
#define FAB_OUTSIDERS_H

#include "common/engine/engine.h"

/* ---- outsiders.c ---- */

/* Of an engine that has none. */
void fab_outsiders_init(struct fab_engine_outsiders *all);
/* Handle the events of outsiders that epoll has reported, and those in line, as far as it is their turn. The others
 * wait in line. True if any was handled. */
bool fab_outsiders_serve(struct fab_engine *engine);
/* src, which is in line, leaves it without a turn. Epoll does not watch it. */
void fab_source_leave_line(struct fab_source *src);

/* ---- engine.c ---- */

/* Have epoll watch src again, or not any more. 0 or -errno. */
int fab_source_watch(struct fab_source *src, bool watch);
/* The sources have changed, or the line, or the gap: find out again what passes would otherwise have to think
 * about. */
void fab_engine_sources_changed(struct fab_engine *engine);

#endif
