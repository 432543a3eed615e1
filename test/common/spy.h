/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stands between the library and the kernel: counts the calls made through fab_sock, and lets one of them fail. Also
 * a clock that the test sets.
 */
#ifndef TEST_COMMON_SPY_H
#define TEST_COMMON_SPY_H

#include <stdatomic.h>
#include <stdint.h>

/* Calls since spy_reset(). all: every one; the others by kind, those without a field of their own in all only. */
struct spy {
	_Atomic long all, epoll_wait, epoll_ctl, read, write, recv, poll, timer;
};
extern struct spy spy;

/* Watch fab_sock from now on. */
void spy_start(void);
void spy_stop(void);
void spy_reset(void);

/* The n-th call from now that can fail (counted from 0), other than close, fails with error; later ones work. -1:
 * none. */
void spy_fail(long n, int error);
/* Whether the call to fail has been made. */
int spy_failed(void);

/* Use a clock that stands at *now_ns; spy_real_clock() puts the system's back. */
void spy_set_clock(uint64_t now_ns);
void spy_real_clock(void);

/* Descriptors that this process has open. */
int spy_open_fds(void);

#endif
