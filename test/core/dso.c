/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A provider as a DSO, good or ill. core/registry.c compiles it, once for each set of these:
 * NAME (its name), VERSION, API (fi_version); NO_ENTRY, NULL_ENTRY, NO_CALLS: what is wrong with it.
 */
#include <rdma/providers/fi_prov.h>

#include <stdio.h>

#ifndef NO_ENTRY
#ifndef NO_CALLS
static int give_none(uint32_t version, const char *node, const char *service, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info)
{
	(void) version, (void) node, (void) service, (void) flags, (void) hints, (void) info;
	return -FI_ENODATA;
}

static int open_none(struct fi_fabric_attr *attr, struct fid_fabric **fid, void *context)
{
	(void) attr, (void) fid, (void) context;
	return -FI_ENODEV;
}
#else
#define give_none NULL
#define open_none NULL
#endif

static void __attribute__((constructor)) load(void)
{
	printf("load %s\n", NAME);
}

static void cleanup(void)
{
	printf("cleanup %s %d\n", NAME, FI_MINOR(VERSION));
}

FI_EXT_INI
{
	static struct fi_provider prov = {
		.name = NAME, .version = VERSION, .fi_version = API, .getinfo = give_none, .fabric = open_none,
		.cleanup = cleanup,
	};

	printf("init %s %d\n", NAME, FI_MINOR(VERSION));
#ifdef NULL_ENTRY
	return NULL;
#endif
	return &prov;
}
#endif
