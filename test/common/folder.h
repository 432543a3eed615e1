/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A folder that a test has made. */
#ifndef TEST_COMMON_FOLDER_H
#define TEST_COMMON_FOLDER_H

#include "base/unit.h"

#include <ftw.h>
#include <stdio.h>

static inline int folder_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void) st, (void) type, (void) ftw;
	return remove(path);
}

/* Add this text to a file in it, which is made if need be. Asserted. */
static inline void folder_write(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "a");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* With all that is in it. 0, or not: something is left. */
static inline int folder_remove(const char *path)
{
	return nftw(path, folder_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

#endif
