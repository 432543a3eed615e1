/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room: the line of outsiders. Lock held.
 */
#ifndef FAB_OUTSIDERS_H
#define FAB_OUTSIDERS_H

#include "common/engine/engine.h"

/* Of an engine that has none. */
void fab_outsiders_init(struct fab_engine_outsiders *all);
/* Handle the events of outsiders that epoll has reported, and those in line, as far as it is their turn. The others
 * wait in line. True if any was handled. */
bool fab_outsiders_serve(struct fab_engine *engine);
/* src, which is in line, leaves it without a turn. Epoll does not watch it. */
void fab_source_leave_line(struct fab_source *src);

/* True if outsiders are read in their turn only. */
static inline bool fab_outsiders_step_back(const struct fab_engine *engine)
{
	return engine->outsiders.rationed || engine->outsiders.heard || engine->outsiders.heard_before;
}

#endif
