/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The threads of a test, for the files of the group mt.
 *
 * A thread must not fail a test by itself (checks leave by longjmp): it notes what went wrong in its struct worker, and
 * the test's thread says it after joining.
 */
#ifndef CONFORM_MT_WORKER_H
#define CONFORM_MT_WORKER_H

#include <pthread.h>
#include <stdio.h>

#include "ops.h"

struct worker {
	pthread_t thread;
	struct test *t;
	struct side *s;
	unsigned int id;
	void *(*fn)(void *arg);
	char wrong[256];		/* empty: all well */
	void *arg;
	size_t done;
};

/* For a thread, of its own worker: what is wrong, the first time. */
#define WRONG(w, ...) do { if (!(w)->wrong[0]) snprintf((w)->wrong, sizeof((w)->wrong), __VA_ARGS__); } while (0)

void worker_start(struct worker *w);
/* Wait for its end; fails the test if something was wrong. */
void worker_finish(struct worker *w);
/* For a thread's loops: have they gone on for too long since then (now_ms())? */
bool worker_late(double start_ms);

/* Hints: the threading level that the name says. */
void set_safe(struct fi_info *hints);
void set_fid(struct fi_info *hints);
void set_endpoint(struct fi_info *hints);
void set_completion(struct fi_info *hints);
void set_domain(struct fi_info *hints);
/* A linked pair in which every call may come from every thread. */
struct pair safe_pair(struct test *t, enum fi_wait_obj wait);

#endif
