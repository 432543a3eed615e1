/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors that processes of one node share by name, fi_av(3). The shared vector is a file in /dev/shm with a
 * record for each index. Each process copies it into a vector of its own (av_table.c), and copies new records when it
 * looks up an address or index that its copy lacks. The file is not mapped, and every record that is read is checked,
 * so a process that writes invalid data into the file cannot harm another.
 *
 * The name exists as long as a process has it open. Each process holds a lock on the file, which the kernel releases
 * when the process ends, in whatever way. The last process to close the vector removes the file. A process that opens a
 * file which no other holds removes it first. Only processes of the same user share a vector.
 *
 * These functions take no lock in memory; the callers hold the locks named in vector.h.
 */
#ifndef FAB_AV_SHARED_H
#define FAB_AV_SHARED_H

#include "common/av/vector.h"

struct fab_av_shared;

/* One index of the vector. */
struct fab_av_record {
	union fab_sockaddr addr;	/* the bytes behind the address are zero */
	uint32_t ref;			/* inserts less removes of all processes; 0: free */
};

/* Open attr->name for the domain and address family of av; create it if it does not exist, unless attr->flags has
 * FI_READ. 0; -FI_ENOENT (with FI_READ: no process has it open); -FI_EACCES (the file belongs to another user, or
 * others may write to it); -FI_EINVAL (the file is not a shared vector or has another address family; the name is empty
 * or too long); -FI_EBUSY; or another -errno. Errors are logged. The caller closes *shared. */
int fab_av_shared_open(const struct fab_av *av, const struct fi_av_attr *attr, struct fab_av_shared **shared);
/* The array of all fi_addr_t of the vector in their order, to read: map_addr of fi_av(3). It is at attr->map_addr of
 * the open, if that memory was free. Valid until close. */
void *fab_av_shared_map(const struct fab_av_shared *shared);
/* Close it, and remove the file if no other process has it open. NULL is allowed. */
void fab_av_shared_close(struct fab_av_shared *shared);

/* The generation: another number after every change by any process. */
uint64_t fab_av_shared_gen(const struct fab_av_shared *shared);
/* Read all records, into an array that the caller frees. Invalid records get ref 0. 0, -FI_ENOMEM, -FI_EBUSY (other
 * processes kept it locked for a second), -errno. */
int fab_av_shared_load(struct fab_av_shared *shared, struct fab_av_record **records, uint64_t *cnt);

/* Begin and end changes; no other process can change the vector in between. Begin returns 0; -FI_EACCES: opened with
 * FI_READ (logged); -FI_EBUSY. End increments the generation and returns it. */
int fab_av_shared_lock(struct fab_av_shared *shared);
uint64_t fab_av_shared_unlock(struct fab_av_shared *shared);
/* Between begin and end: read or write one record. 0; -FI_ENOSPC (index is beyond the capacity chosen when the vector
 * was created; logged); -errno. */
int fab_av_shared_get(const struct fab_av_shared *shared, uint64_t index, struct fab_av_record *record);
int fab_av_shared_put(struct fab_av_shared *shared, uint64_t index, const struct fab_av_record *record);

#endif
