/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The steps of a program. Each takes objects of the world, whichever are there, and arguments by chance, and does
 * nothing where there is no object for it.
 */
#ifndef TEST_FUZZ_CALLS_STEPS_H
#define TEST_FUZZ_CALLS_STEPS_H

#include "fuzz/calls/world.h"

#define NAME_MAX_LEN	256

/* ---- open.c */

void step_side(void);
void step_pair(void);
void step_open_domain(void);
void step_open_ep(void);
void step_open_queue(void);
void step_register(void);
void step_bind(void);
void step_enable(void);
void step_close(void);
/* The address of an endpoint; returns its length, 0: it has none yet. */
size_t name_of(struct obj *obj, uint8_t name[NAME_MAX_LEN]);
/* A listener, NULL if it is not known any more, has a request; the world keeps the info. */
void answer_request(struct obj *pep, struct fi_info *info);

/* ---- data.c, atomic.c */

void step_send(void);
void step_tsend(void);
void step_recv(void);
void step_trecv(void);
void step_rma(void);
void step_atomic(void);
void step_collective(void);
void step_deferred(void);
void step_cancel(void);

/* ---- read.c */

void step_pass(void);
void step_cq(void);
void step_eq(void);
void step_cntr(void);
void step_wait(void);
/* So many times all queues are read, and the events answered. */
void passes(unsigned cnt);

/* ---- ask.c */

void step_getinfo(void);
void step_text(void);
void step_option(void);
void step_control(void);
void step_cm(void);
void step_av(void);
void step_set(void);
void step_mr(void);
void step_other(void);

/* ---- lend.c */

void step_library(void);
void step_lend(void);

#endif
