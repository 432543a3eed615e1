/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A libfabric.conf of the test's own, which children (child.h) read in place of the system's.
 */
#ifndef TEST_CORE_CONF_H
#define TEST_CORE_CONF_H

#include <stddef.h>

extern char conf_path[];

/* Set-up and tear-down of a cmocka group: an empty file, which fab_param_path names; and its end. 0 or -1. */
int conf_set_up(void **state);
int conf_tear_down(void **state);
/* Its text from now on. */
void conf_write(const char *text, size_t len);

#endif
