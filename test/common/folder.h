/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A folder that a test has made. */
#ifndef TEST_COMMON_FOLDER_H
#define TEST_COMMON_FOLDER_H

#include <ftw.h>
#include <stdio.h>

static inline int folder_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void) st, (void) type, (void) ftw;
	return remove(path);
}

/* With all that is in it. 0, or not: something is left. */
static inline int folder_remove(const char *path)
{
	return nftw(path, folder_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
