/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of this process that others may read as a file, also after the process was killed. It can never harm the
 * process: it has all its memory before it is used, and where there is no file, or no more, it is ordinary memory at
 * the same address.
 *
 * The file is on a tmpfs, in the first folder of these that is one, is the user's, and only the user's:
 *
 *	$XDG_RUNTIME_DIR/NAME, else $TMPDIR/NAME-UID (/tmp without TMPDIR), else /dev/shm/NAME-UID
 *
 * It is called PID-START-NAMESPACE: the process, the time of its start (field 22 of /proc/PID/stat), and the inode of
 * its pid namespace. Its mode is 0400, so that nobody cuts it off by mistake. A process that ends removes its file.
 * Those of processes that were killed stay for PAGEFILE_KEEP_S after another process has noticed, PAGEFILE_DEAD_MAX of
 * them at most; the next process that makes a file removes the others. A process of another pid namespace lives as long
 * as the file is mapped for writing, so as long as the kernel refuses a lease on it (F_SETLEASE, fcntl(2)).
 */
#ifndef FAB_BASE_PAGEFILE_H
#define FAB_BASE_PAGEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGEFILE_KEEP_S		3600
#define PAGEFILE_DEAD_MAX	32
#define PAGEFILE_PATH		512

struct fab_pagefile {
	void *mem;			/* owned: len bytes, zero at first; NULL: not open */
	size_t len;
	uint32_t forks;			/* fab_fork_cnt of the process that may use the file */
	bool has_file;
	char path[PAGEFILE_PATH];	/* of the file; "": none */
};

/* Get zeroed memory of len bytes, a multiple of the size of a page, and with wanted a file for it, if that is possible.
 * Again in a child of fork(2): a file of its own, at the same address, whose bytes are zero. 0; -errno: there is no
 * memory, and nothing was changed. One thread at a time. */
int fab_pagefile_open(struct fab_pagefile *file, const char *name, size_t len, bool wanted);
/* Remove the file; the memory stays, as others may still write to it. Does nothing in a child of fork(2) that has not
 * opened it. */
void fab_pagefile_remove(struct fab_pagefile *file);
/* In a child of fork(2), before anything is written: replace what is shared with the parent by zeroed memory of the
 * child's own, at the same address. */
void fab_pagefile_inherit(struct fab_pagefile *file);

/* The n-th folder in which a file with this name may be, whether it exists or not; false: there are no more. */
bool fab_pagefile_folder(unsigned n, const char *name, char path[PAGEFILE_PATH]);

/* The time at which a process was started, field 22 of /proc/PID/stat; 0: there is no such process. */
uint64_t fab_process_start(uint32_t pid);

#endif
