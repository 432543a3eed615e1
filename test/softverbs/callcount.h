/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For programs whose calls callgrind counts (callcount.sh): where counting begins, and a clock that stands still from
 * there on for the thread that counts. Under callgrind a call takes so long that a library which reads events each
 * millisecond would do so in each call, or in some of them, and counts would differ from run to run.
 */
#ifndef CALLCOUNT_H
#define CALLCOUNT_H

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef CALLCOUNT_VALGRIND
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION	((void) 0)
#endif

static __thread struct timespec stands_at;	/* 0: the clock goes */

/* In place of libc's, for the libraries, too. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	if (stands_at.tv_sec && id != CLOCK_REALTIME) {
		*now = stands_at;
		return 0;
	}
	return (int) syscall(SYS_clock_gettime, id, now);
}

/* Calls are counted from now on, and the caller's clock stands. */
static inline void count_from_here(void)
{
	clock_gettime(CLOCK_MONOTONIC, &stands_at);
	CALLGRIND_START_INSTRUMENTATION;
}

#endif
