/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tells objects of this process from those that a child of fork(2) has inherited. A child has the memory of its parent,
 * but shares sockets and epoll sets with it.
 */
#ifndef FAB_BASE_FORKS_H
#define FAB_BASE_FORKS_H

#include <stdint.h>

/* Calls of fork(2) between the process that loaded the library and this one. An object that was made with another
 * number is inherited. Constant within a process; any thread. */
extern uint32_t fab_fork_cnt;

#endif
