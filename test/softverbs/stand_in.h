/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For programs that run over the stand-in: its functions, those for tests (sv_test_*) among them. The program is linked
 * with none of its libraries.
 */
#ifndef TEST_SOFTVERBS_STAND_IN_H
#define TEST_SOFTVERBS_STAND_IN_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *stand_in_at(const char *library, const char *name)
{
	void *lib = dlopen(library, RTLD_NOW), *at = lib ? dlsym(lib, name) : NULL;

	if (at)
		return at;
	fprintf(stderr, "%s has no %s: the libraries of test/softverbs are not in use\n", library, name);
	exit(1);
}

/* A function of the stand-in for libibverbs. Ends the process if there is none of this name. */
static inline void *stand_in(const char *name)
{
	return stand_in_at("libibverbs.so.1", name);
}

/* The same of the one for librdmacm. */
static inline void *stand_in_cm(const char *name)
{
	return stand_in_at("librdmacm.so.1", name);
}

#endif
