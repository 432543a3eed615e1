/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What eq.c needs of the engines that an EQ drives.
 */
#ifndef FAB_EQ_ENGINES_H
#define FAB_EQ_ENGINES_H

#include "common/queue/eq.h"

/* Make progress on all of them, but for those that have a thread. No lock held. */
void fab_eq_run(struct fab_eq *eq);

/* For the wait object of an EQ: its mutex, and all its engines. */
extern const struct fab_wait_guard fab_eq_guard;

#endif
