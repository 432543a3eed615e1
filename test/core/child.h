/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The core reads its settings once a process. So a test of settings runs its body in a child of its own, with an
 * environment of its own, and looks at what it wrote. The parent itself calls nothing of the library.
 */
#ifndef TEST_CORE_CHILD_H
#define TEST_CORE_CHILD_H

/* Run body in a child whose FI_* variables are exactly those of env ("FI_A=x", ..., NULL), which may be NULL. Returns
 * all that it wrote to stdout and stderr, as one string that the caller frees; the test fails if the child does not
 * end with exit status 0. */
char *child_run(const char *const env[], void (*body)(void));

/* Number of lines of text that contain the words. */
int count_lines(const char *text, const char *words);

/* In a child: like assert_true(), since cmocka's is for the parent only. */
#define child_check(condition) child_check_at(!!(condition), #condition, __FILE__, __LINE__)
void child_check_at(int ok, const char *condition, const char *file, int line);

#endif
