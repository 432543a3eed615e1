/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The account of descriptors, one for the process: how many connections hold, and how much of the limit on open files
 * they may take. Of the limit, connections take three quarters at most, and a quarter is left to the application; those
 * that have not sent their request take an eighth; strangers get none while connections have five eighths
 * (doc/decisions/tcp-peers.md). Any thread, without a lock.
 */
#ifndef TCP_ACCOUNT_DESCRIPTORS_H
#define TCP_ACCOUNT_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

/* A connection has one descriptor, and is of one kind at a time. */
enum tcp_descriptors {
	TCP_FD_AWAITED,			/* accepted, and its request has not come yet */
	TCP_FD_STREAM,			/* carries a stream */
	TCP_FD_KINDS,
};

/* A connection becomes one of this kind; and is none any more. */
void tcp_descriptor_take(enum tcp_descriptors kind);
void tcp_descriptor_give(enum tcp_descriptors kind);
/* Connections of this kind in the process. */
uint32_t tcp_descriptors_held(enum tcp_descriptors kind);

/* A connection that waits for its request was closed, so that another one may; how often that was done. */
void tcp_descriptor_drop(void);
uint64_t tcp_descriptors_dropped(void);

/* The most connections that may wait for their request: one system call. UINT32_MAX: there is no limit. */
uint32_t tcp_descriptors_awaited_max(void);
/* Streams beyond what there may be, FI_TCP_MAX_CONN or three quarters of the limit, and some, so that new ones find
 * room. 0: there may be more. */
uint64_t tcp_descriptors_excess(void);
/* True if there are so many streams that strangers get no more descriptors. */
bool tcp_descriptors_short(void);

#endif
