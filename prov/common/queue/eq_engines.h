/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engines that an EQ drives, for eq.c.
 */
#ifndef FAB_EQ_ENGINES_H
#define FAB_EQ_ENGINES_H

#include "common/queue/eq.h"

/* Make progress on all engines of an EQ, except those with a thread. No lock held. */
void fab_eq_run(struct fab_eq *eq);

/* The guard for the wait object of an EQ: its mutex, and all its engines. */
extern const struct fab_wait_guard fab_eq_guard;

#endif
