/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How tests ask: shared by getinfo.c, getinfo_addr.c and getinfo_flags.c. What is returned belongs to the test.
 */
#ifndef CONFORM_GETINFO_H
#define CONFORM_GETINFO_H

#include "ops.h"

/* One call: what fi_getinfo() returns, after a look whether that and *list agree. */
int getinfo(struct test *t, uint32_t version, const char *node, const char *service, uint64_t flags,
	    const struct fi_info *hints, struct fi_info **list);
/* Hints of the run that name provider and type only. */
struct fi_info *hints_plain(struct test *t);
/* The first entry of the run's provider and type for them; there must be one. */
struct fi_info *first_of_run(struct test *t, struct fi_info *hints);
/* All of an entry as text. */
const char *text_of(struct test *t, const struct fi_info *info);
/* Is the run's provider listed for those who do not name it? */
bool is_listed(void);
/* A name of 64 KiB, which no field is made for; malloc'd. */
char *long_name(void);

#endif
