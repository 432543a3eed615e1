/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets that are hard to please: transfers are cut at random, fail for now, and become ready in any order. What the
 * handshake sends goes in one piece, as its peers expect.
 */
#ifndef TEST_TCP_JITTER_H
#define TEST_TCP_JITTER_H

#include <stdint.h>
#include "base/sock.h"

/* The table while jitter_open() holds; a test may put calls of its own into it. */
extern struct fab_sock_ops jitter_sock;

/* Put the table in place: plain until jitter_on(). And libc's again. */
void jitter_open(void);
void jitter_close(void);
/* From here on at random, the same for the same seed and calls. A read or a write is cut once in `cut` times, at a
 * random place, often a very early one. */
void jitter_on(uint64_t seed, uint32_t cut);
void jitter_off(void);
/* A random number below cnt, not 0, from the same seed. */
uint32_t jitter_dice(uint32_t cnt);

#endif
