/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells objects of this process from those that a child of fork(2) has inherited. A child has the memory of its parent,
 * but shares sockets and epoll sets with it.
 */
#ifndef FAB_BASE_FORKS_H
#define FAB_BASE_FORKS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "base/lock.h"

/* Calls of fork(2) between the process that loaded the library and this one. An object that was made with another
 * number is inherited. Constant within a process; any thread. */
extern uint32_t fab_fork_cnt;

/*
 * Makes fork(2) wait until no thread holds a lock. The child then finds the lock free, and all that it guards whole.
 * Embedded. It costs something at a fork only. A fork waits for a second at most, and not for a lock that its own
 * thread holds: the child then finds the state of that moment.
 */
struct fab_fork_guard {
	struct fab_list link;		/* private to forks.c, as all of it */
	struct fab_lock *lock;		/* borrowed */
	bool taken;			/* a fork is under way, and has it */
};

/* From now on each fork waits for this lock, a FAB_LOCK_MUTEX. The caller removes the guard before the lock ends. Any
 * thread. */
void fab_fork_guard_add(struct fab_fork_guard *guard, struct fab_lock *lock);
/* Undo it. Without effect on a guard that is zeroed and was never added. Any thread that does not hold the lock. */
void fab_fork_guard_remove(struct fab_fork_guard *guard);

#endif
