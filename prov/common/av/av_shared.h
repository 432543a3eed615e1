/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors that processes of one node share by name, fi_av(3): a file in /dev/shm with the addresses at their
 * indices, which every process reads into a vector of its own (av.c) when it looks for what it does not know.
 * Nothing is mapped, and what is read is checked, so that nobody who writes rubbish into the file harms another.
 *
 * The name lives as long as somebody has it open: each holds a lock on the file, which the kernel drops when a process
 * ends, however it does. The last to close removes the file; who opens one that nobody holds takes it away first. Only
 * processes of the same user share.
 *
 * Calls take no lock of their own; av.h says which are held.
 */
#ifndef FAB_AV_SHARED_H
#define FAB_AV_SHARED_H

#include "common/av/vector.h"

struct fab_av_shared;

/* A place of the vector. */
struct fab_av_record {
	union fab_sockaddr addr;	/* zeros behind the address */
	uint32_t ref;			/* inserts less removes, of all processes; 0: free */
};

/* Open attr->name for the domain and address family of av, or create it unless attr->flags has FI_READ. 0; -FI_ENOENT
 * (FI_READ, and nobody has it open); -FI_EACCES (somebody else's); -FI_EINVAL (it is no such file, or of another
 * address family; the name is empty or too long), -FI_EBUSY, or another -errno. Logged. */
int fab_av_shared_open(const struct fab_av *av, const struct fi_av_attr *attr, struct fab_av_shared **shared);
/* Let go of it. NULL is allowed. */
void fab_av_shared_close(struct fab_av_shared *shared);

/* Counts changes that were made, by anybody. */
uint64_t fab_av_shared_gen(const struct fab_av_shared *shared);
/* All records, which the caller frees; those that are not in order have ref 0. 0, -FI_ENOMEM, -FI_EBUSY (others have
 * been changing it for a second), -errno. */
int fab_av_shared_load(struct fab_av_shared *shared, struct fab_av_record **records, uint64_t *cnt);

/* Begin and end changes, between which nobody else makes any; which makes gen another one, the result of the end.
 * Begin: 0; -FI_EACCES: opened with FI_READ (logged); -FI_EBUSY. */
int fab_av_shared_lock(struct fab_av_shared *shared);
uint64_t fab_av_shared_unlock(struct fab_av_shared *shared);
/* Within: read or write one record. 0, -FI_ENOSPC (index is beyond what the vector was created for; logged), -errno. */
int fab_av_shared_get(const struct fab_av_shared *shared, uint64_t index, struct fab_av_record *record);
int fab_av_shared_put(struct fab_av_shared *shared, uint64_t index, const struct fab_av_record *record);

#endif
