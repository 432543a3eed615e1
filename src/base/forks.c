/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See forks.h.
 */
#include "base/forks.h"

#include <pthread.h>

uint32_t fab_fork_cnt;

static void forks_count(void)
{
	fab_fork_cnt++;
}

__attribute__((constructor)) static void forks_watch(void)
{
	pthread_atfork(NULL, NULL, forks_count);
}
