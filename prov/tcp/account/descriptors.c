/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "tcp/account/descriptors.h"

#include <stdatomic.h>
#include "base/bits.h"
#include "base/sock.h"
#include "tcp/params/params.h"

#define FEW	8			/* streams for which the limit is not asked: that is a system call */

static _Atomic uint32_t held[TCP_FD_KINDS];

void tcp_descriptor_take(enum tcp_descriptors kind)
{
	atomic_fetch_add_explicit(&held[kind], 1, memory_order_relaxed);
}

void tcp_descriptor_give(enum tcp_descriptors kind)
{
	atomic_fetch_sub_explicit(&held[kind], 1, memory_order_relaxed);
}

uint32_t tcp_descriptors_held(enum tcp_descriptors kind)
{
	return atomic_load_explicit(&held[kind], memory_order_relaxed);
}

static _Atomic uint64_t dropped;

void tcp_descriptor_drop(void)
{
	atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
}

uint64_t tcp_descriptors_dropped(void)
{
	return atomic_load_explicit(&dropped, memory_order_relaxed);
}

uint32_t tcp_descriptors_awaited_max(void)
{
	return fab_min(fab_file_limit() / 8, (uint64_t) UINT32_MAX);
}

/* The most streams. A quarter of the descriptors is left to the application. */
static uint64_t stream_max(void)
{
	uint64_t files;

	if (tcp_params.max_conn)
		return tcp_params.max_conn;
	files = fab_file_limit();
	return files == UINT64_MAX ? files : fab_max(files - files / 4, (uint64_t) FEW);
}

uint64_t tcp_descriptors_excess(void)
{
	uint64_t cnt = tcp_descriptors_held(TCP_FD_STREAM), max;

	if (cnt <= FEW && !tcp_params.max_conn)
		return 0;
	max = stream_max();
	return cnt > max ? cnt - max + max / 16 : 0;
}

bool tcp_descriptors_short(void)
{
	uint64_t cnt = tcp_descriptors_held(TCP_FD_STREAM);

	return cnt > FEW && cnt >= fab_file_limit() / 8 * 5;
}
