/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_WAIT_MUTEX_COND: a thread that watches the descriptor of a queue, or of a wait set, as an application would, and
 * signals a mutex and condition. The thread holds none of our locks while it waits for the mutex, so the application
 * may hold the mutex during any call.
 */
#ifndef FAB_TELLER_H
#define FAB_TELLER_H

#include <rdma/fi_eq.h>

struct fab_teller;

/*
 * Start a teller. When fd is readable, it calls try(arg), which returns -FI_EAGAIN if there is something to read and 0
 * if not. 0 or -errno. The caller holds a lock that keeps try from being called, or from returning, until
 * fab_teller_drained() can find *teller.
 */
int fab_teller_start(struct fab_teller **teller, int fd, int (*try)(void *arg), void *arg);
/* Stop and free it; NULL is allowed. Waits for the thread, but not for the application's mutex. No lock held. */
void fab_teller_stop(struct fab_teller *teller);
/* A read found the queue empty: the next event must be signalled. Any lock may be held. */
void fab_teller_drained(struct fab_teller *teller);
/* Store mutex and condition for FI_GETWAIT. */
void fab_teller_give(struct fab_teller *teller, struct fi_mutex_cond *out);

#endif
