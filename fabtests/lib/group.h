/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A group of processes which a program makes of itself: each has an RDM endpoint, and the address of every other in its
 * address vector, under the other's number. The parent is no member; it only starts them, passes on what they tell each
 * other, and takes their exit codes. Every member runs the same body.
 *
 * With -H there are two parents, a server and a client with a control channel between them, on hosts of one byte order:
 * each starts half of the members, the server those with the lower numbers.
 *
 * Members talk through a socket each to the parent: group_gather() gives everyone what everyone has said, and so is a
 * barrier too. Members that die are noticed there.
 */
#ifndef FABTESTS_GROUP_H
#define FABTESTS_GROUP_H

#include <sys/types.h>

#include "func.h"

#define GROUP_MAX 64
#define GROUP_MAX_SAID 512

/* Of a member. */
struct group {
	unsigned cnt, self;             /* how many, and which of them this is */
	int fd;                         /* to the parent */
	struct func_ep ep;
	fi_addr_t peers[GROUP_MAX];     /* by number; ours as well */
};

/* For the options of a program, and its take(): 0. */
#define GROUP_OPTION \
	{ 'H', "hosts", NULL, "half of the processes are the client's, on another host; on both sides" }
int group_take(struct func *func);

/* Start `cnt` members, each of which opens its domain, its endpoint, learns the others' names, runs `body` and ends;
 * wait for all. `bind` may be NULL, as in struct func_ep_attr. In the parent: 0, or the first member's failure,
 * -FI_*. */
int group_run(struct func *func, unsigned cnt, const struct func_ep_attr *attr,
	      int (*body)(struct func *func, struct group *group));

/* In a member: everyone says `len` bytes, at most GROUP_MAX_SAID; said has room for all, by number. 0 or -FI_*. */
int group_gather(struct func *func, struct group *group, const void *ours, void *said, size_t len);

/* Nobody goes on before everybody is here. */
int group_barrier(struct func *func, struct group *group);

#endif /* FABTESTS_GROUP_H */
