/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside of the runner, for its four files: conform.c (choosing, running, printing), isolate.c (the processes that
 * tests run in), cmdline.c (the command line) and owned.c (what a test owns and leaves behind). Tests see conform.h
 * alone.
 */
#ifndef CONFORM_RUNNER_H
#define CONFORM_RUNNER_H

#include "conform.h"

/* ---- cmdline.c */

/* What the command line wants beyond struct run. */
struct cmdline {
	bool list;			/* tests are only to be listed */
	bool fork_each;			/* each test in a process of its own */
	bool excepted;			/* only the tests of --except, which must fail */
	bool be_peer;			/* this is the other process of a test (process.c) */
	char **patterns;		/* of names, up to a NULL; none: all. In argv */
};

/* Fill `run`, and read the files of --except. Ends the program with status 2 and the usage if it does not know a word,
 * and after --help and --probe. */
struct cmdline cmdline_read(int argc, char **argv);
/* Why not this test, as a file of --except says, or NULL. */
const char *excepted(const char *name);

/* ---- owned.c */

/* Undo everything, newest first. A fid that does not close is reported in @why (first one only) and left. */
bool undo_all(struct test *t, char *why, size_t size);

struct left {
	unsigned int fds, threads;
};
struct left left_now(void);
/* Is there no more than before? Waits for threads that are on their way out; if not, @why says what there is. */
bool nothing_left(struct left before, char *why, size_t size);

/* ---- isolate.c */

/* How far the tests have come: in memory that the runner shares with its children, so that it outlives them. */
struct tally {
	unsigned int done;		/* tests that have been dealt with, with a result or without */
	unsigned int number;		/* results */
	unsigned int failed;
	char running[256];		/* the test that is under way, or empty */
	char noted[256];		/* what it is about to try: note() */
};
extern struct tally *tally;
/* Before anything else of this part. */
void tally_init(void);
/* Fork. True in the child, which runs tests and exits. False in the runner, after the child has ended: a test that was
 * under way has been counted and printed as failed. Ends the program if the provider is missing. */
bool isolate(void);
/* The provider is missing: end this child and its runner. */
__attribute__((noreturn)) void isolate_bail_out(void);

/* ---- conform.c */

/* The name of a negative return code; "" for others. */
const char *ret_name(long long ret);

#endif
