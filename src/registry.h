/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The list of providers, built in and from DSOs. fab_init() makes it once; then it is only read, from any thread.
 *
 * DSOs are the files whose names end with "-fi.so", in the folders of FI_PROVIDER_PATH (separated by ':'), or else in
 * $libdir/libfabric. If FI_PROVIDER_PATH is not set, a provider that FI_PROVIDER names and that is not found there is
 * also searched for as libNAME-fi.so by the dynamic linker.
 *
 * Of two providers with the same name the one of the higher version is taken; if the versions are equal, the one in a
 * DSO. With '@' in front of FI_PROVIDER_PATH the one found first is taken. "+FILE" in place of a folder: the provider
 * in this DSO is taken in any case.
 *
 * FI_PROVIDER selects the providers that may be used. Others of ours are not initialised, and their DSOs in these
 * folders are not loaded: the file name tells the provider (libverbs-fi.so). Any other DSO, and one of "+FILE", is
 * loaded, asked for its name, and unloaded again if FI_PROVIDER leaves that out.
 */
#ifndef FAB_REGISTRY_H
#define FAB_REGISTRY_H

#include "compat.h"

#include <rdma/providers/fi_prov.h>

#include <stdbool.h>

struct fab_provider {
	struct fi_provider *prov;
	void *dso;			/* handle of dlopen(), NULL if built in */
	enum fab_layout layout;		/* of struct fi_info, for which it was compiled */
	bool preferred;			/* of "+FILE": wins over others of the same name in any case */
	bool by_name;			/* asked only if the hints or FI_PROVIDER name it */
	struct fab_provider *next;
};

/* Load and register everything. Called once, by fab_init(). */
void fab_registry_init(void);

/* Clean up all providers, last registered first, and unload their DSOs. Only when nobody can call any more. */
void fab_registry_fini(void);

/* The first provider; `next` leads to the others. Utility providers come last. */
const struct fab_provider *fab_registry_first(void);

/* The provider that opens fabrics of this name, or NULL. For a layered name it is the utility provider ("tcp;ofi_rxm":
 * ofi_rxm), in any order of the layers. */
struct fi_provider *fab_registry_find(const char *name);

/* The value of FI_PROVIDER; NULL if it is not set. */
const char *fab_registry_filter(void);
/* The names of the providers that FI_PROVIDER left out, separated by ", "; possibly "". */
const char *fab_registry_left_out(void);

/* The rank of entries of a provider of this name in the answer of fi_getinfo(): lower ranks come first. */
unsigned fab_registry_rank(const char *name);

/* Register a provider: for tests, before the first fi_getinfo() or from one thread. dso is NULL or a handle, which the
 * registry closes at the end, also if it refuses the provider. 0, or a negative errno with the reason logged. */
int fab_registry_add(struct fi_provider *prov, void *dso, const char *source, bool preferred);

#endif
