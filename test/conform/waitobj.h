/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Wait objects of queues and counters: the table of them, and what may be said of file descriptors and times. */
#ifndef CONFORM_WAITOBJ_H
#define CONFORM_WAITOBJ_H

#include "fixture.h"

struct wait_row {
	const char *name;
	enum fi_wait_obj obj;
};

static const struct wait_row wait_rows[] = {
	{ "none", FI_WAIT_NONE }, { "unspec", FI_WAIT_UNSPEC }, { "fd", FI_WAIT_FD },
	{ "mutex_cond", FI_WAIT_MUTEX_COND },
	{ "yield", FI_WAIT_YIELD }, { "pollfd", FI_WAIT_POLLFD },
};

/* The descriptor of an object that was opened with FI_WAIT_FD. */
int wait_fd(struct fid *fid);
/* Within @ms milliseconds. */
bool fd_readable(int fd, int ms);
/* A wait of @ms milliseconds that began at @start was neither short nor, by more than a second, long. */
void check_waited(double start, double ms);
/* fi_trywait() of one object. */
int trywait(struct side *s, struct fid *fid);

#endif
