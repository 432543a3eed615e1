/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Plays programs of DGRAM endpoints, and judges them. A datagram may be lost, arrive twice and overtake others, so the
 * judge counts what the library gives to the kernel and takes from it: each send that completes without an error, and
 * no other, has given its datagram once; each datagram that was taken completes a receive, the oldest one, whole or
 * with FI_ETRUNC.
 */
#ifndef TEST_SIM_DATAGRAM_H
#define TEST_SIM_DATAGRAM_H

#include "sim/judge.h"

/* Play a program of DGRAM endpoints, after net_begin(). A broken promise ends it by judge_wrong(). */
void datagram_play(const struct program *program);

#endif
