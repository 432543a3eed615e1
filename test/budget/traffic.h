/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Patterns of traffic written as an application would, without anything of the test in the way: no allocation, no
 * call but the data calls and fi_cq_read(). Both ends in one thread with manual progress, so what happens is the
 * same every time.
 */
#ifndef BUDGET_TRAFFIC_H
#define BUDGET_TRAFFIC_H

#include "ops.h"

/* A linked pair with manual progress and one queue a side, which the patterns read themselves. opts.hints, if there is
 * one, calls traffic_manual(). */
#define traffic_pair(t, ...) AT(traffic_pair_opts(t, &(struct opts) { .one_cq = true, __VA_ARGS__ }))
struct pair traffic_pair_opts(struct test *t, const struct opts *o);
void traffic_manual(struct fi_info *hints);

enum kind { PLAIN, TAGGED, INJECTED, UNEXPECTED, WRITES, READS, ATOMICS, FETCHES,
	    DATA_WRITES, DATA_INJECTED };

/* Start one of @len bytes; as the call returns. */
ssize_t traffic_start(struct side *s, enum kind kind, size_t len);
/* @cnt messages of @len bytes there and the same back, one at a time. Each costs a send and a receive. */
void ping_pong(struct pair *p, enum kind kind, size_t len, size_t cnt);
/* @cnt messages (or writes, reads) of @len bytes one way, at most @window of them not yet completed. */
void stream(struct pair *p, enum kind kind, size_t len, size_t window, size_t cnt);
/* The same, but so many at once, and the next when all of them have completed. */
void bursts(struct pair *p, enum kind kind, size_t len, size_t window, size_t cnt);

/* Entries that each read of a queue asks for, 1 to 16 (which it is if nobody says otherwise). */
extern size_t traffic_read_cnt;

/* True over a TCP socket, false over rings in shared memory. */
bool traffic_over_socket(void);

/* How many messages a test is to send: the environment's BUDGET_CNT, or @otherwise. */
size_t traffic_cnt(size_t otherwise);

#endif
