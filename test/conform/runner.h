/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside of the runner, for its five files: conform.c (choosing, running), isolate.c (the processes that tests run in),
 * cmdline.c (the command line), owned.c (what a test owns and leaves behind) and report.c (results). Tests see
 * conform.h alone.
 */
#ifndef CONFORM_RUNNER_H
#define CONFORM_RUNNER_H

#include "conform.h"

/* ---- cmdline.c */

/* What the command line wants beyond struct run. */
struct cmdline {
	bool list;			/* tests are only to be listed */
	bool explain;			/* with the text of each test: --list, and of those that fail */
	bool json;			/* results are JSON in place of TAP */
	bool every_type;		/* no endpoint type was given: all that the provider has */
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
/* The first pattern of an exception for which this is false; NULL: there is none. */
const char *excepts_unmatched(bool (*matches)(const char *glob));

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
	unsigned int passed, failed, skipped;
	unsigned int printed;		/* JSON: objects of the list that is being written */
	double kill_ms;			/* now_ms() after which the runner kills a child that its alarm has not ended;
					 * 0: no test is under way */
	char fault[256];		/* JSON: a failure that is no test's; the last one */
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

/* ---- report.c: results on standard output, as TAP or as JSON. The functions may be called by the runner and by its
 * children, one process at a time; tally has what they share. */

enum outcome { PASSED = 1, FAILED, SKIPPED, ABSENT };	/* longjmp values: never 0 */

/* What is run, before the first result: the library, its provider. */
void report_begin(const struct cmdline *cmdline);
/* Results from here on are of run.type. */
void report_type(void);
/* One result; reason is borrowed, and "" for a test that passed. Counts it in tally. */
void report_result(const char *name, enum outcome result, const char *reason);
/* A fault that is no test's, and counts as a failure. */
void report_fault(const char *text);
/* After the last result. */
void report_end(void);
/* In place of all results: there is no provider for them. */
void report_bail_out(void);
/* The text of test GROUP/NAME[/ROW]. Never NULL; its members are "" for a test without one. */
const struct test_text *test_text_of(const char *name);

/* ---- texts.c, made by texts.awk */

/* What a test checks, and the manual pages that say so. */
struct test_text {
	const char *name;		/* GROUP/NAME; NULL ends the list */
	const char *checks;
	const char *pages;		/* "fi_cq(3), fi_msg(3)" */
};
extern const struct test_text test_texts[];

/* ---- conform.c */

/* The name of a negative return code; "" for others. */
const char *ret_name(long long ret);

#endif
