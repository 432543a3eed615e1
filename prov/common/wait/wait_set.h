/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait sets, fi_poll(3): an epoll set of the descriptors of queues that were opened with FI_WAIT_SET. For wait.c, which
 * handles the members.
 */
#ifndef FAB_WAIT_SET_H
#define FAB_WAIT_SET_H

#include <pthread.h>
#include <rdma/fi_eq.h>
#include "base/list.h"
#include "common/wait/teller.h"

struct fab_fabric;
struct fab_wait;

struct fab_wait_set {
	struct fid_wait wait_fid;
	struct fab_fabric *fabric;	/* borrowed: open took a reference */
	enum fi_wait_obj obj;		/* fixed */
	int epfd;			/* epoll set of the members' descriptors; constant */
	pthread_mutex_t lock;		/* guards waits, and starting teller; taken before a member's guard */
	struct fab_list waits;		/* struct fab_wait.set_link */
	_Atomic(struct fab_teller *) teller;	/* owned; FI_WAIT_MUTEX_COND: started when it is first needed; else
						 * NULL */
};

/* Add or remove a member with this descriptor. No guard held. join: 0 or -errno. */
int fab_wait_set_join(struct fab_wait_set *set, struct fab_wait *wait, int fd);
void fab_wait_set_leave(struct fab_wait_set *set, struct fab_wait *wait, int fd);
/* FI_GETWAIT of the set or of a member; arg is not NULL. 0 or -FI_E*. */
int fab_wait_set_give(struct fab_wait_set *set, void *arg);

#endif
