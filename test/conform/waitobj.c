/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See the header. */
#define CONFORM_INSIDE
#include "waitobj.h"

#include <poll.h>

int wait_fd(struct fid *fid)
{
	int fd = -1;

	MUST(fi_control(fid, FI_GETWAIT, &fd));
	CHECK(fd >= 0);
	return fd;
}

bool fd_readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms * (int) run.slow) == 1;
}

void check_waited(double start, double ms)
{
	double waited = now_ms() - start;

	/* A millisecond less is the rounding of clocks. */
	if (waited < ms - 1.0)
		FAIL("waited %.1f ms instead of %.0f", waited, ms);
	if (waited > ms + 10000.0 * run.slow)
		FAIL("waited %.1f ms instead of %.0f", waited, ms);
}

int trywait(struct side *s, struct fid *fid)
{
	return fi_trywait(s->fabric, &fid, 1);
}
