/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_WAIT_MUTEX_COND: a thread that uses a queue, or a set of them, as an application would that has its descriptor,
 * and tells a mutex and condition what the descriptor says. As it takes no lock of ours while it waits for the mutex,
 * the application may hold that during any call.
 */
#ifndef FAB_TELLER_H
#define FAB_TELLER_H

#include <rdma/fi_eq.h>

struct fab_teller;

/*
 * Start one. It calls try(arg) when fd is readable: -FI_EAGAIN if there is something to read, 0 if not. 0 or -errno.
 * The caller holds the lock that keeps try from being called, or returning, before *teller is known to
 * fab_teller_drained().
 */
int fab_teller_start(struct fab_teller **teller, int fd, int (*try)(void *arg), void *arg);
/* End it; NULL is nothing to end. Waits for the thread, but not for the application's mutex. No lock held. */
void fab_teller_stop(struct fab_teller *teller);
/* A read found nothing: what comes next must be told. Any lock may be held. */
void fab_teller_drained(struct fab_teller *teller);
/* What FI_GETWAIT gives. */
void fab_teller_give(struct fab_teller *teller, struct fi_mutex_cond *out);

#endif
