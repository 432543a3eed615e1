/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The providers: those built in, and those in DSOs. The list is made once, by fab_init(), and then only read, from any
 * thread.
 *
 * DSOs are the files whose names end with "-fi.so" in the folders of FI_PROVIDER_PATH (separated by ':'), or else in
 * $libdir/libfabric; there, a provider that FI_PROVIDER asks for and nobody has is also looked for as libNAME-fi.so
 * where the dynamic linker looks. Two providers of one name: the one of higher version is taken, and of equal ones the
 * DSO. '@' in front of FI_PROVIDER_PATH: the one found first. "+FILE" for a folder: this DSO is taken in any case.
 * FI_PROVIDER says who may be used at all. The others of ours are not initialised, nor are their DSOs in these folders
 * loaded, whose file names tell who is in them (libverbs-fi.so); a DSO of somebody else's, or "+FILE", is loaded and
 * asked for its name, and let go again if that is left out.
 */
#ifndef FAB_REGISTRY_H
#define FAB_REGISTRY_H

#include "compat.h"

#include <rdma/providers/fi_prov.h>

#include <stdbool.h>

struct fab_provider {
	struct fi_provider *prov;
	void *dso;			/* handle of dlopen(), NULL if built in */
	enum fab_layout layout;		/* in which it sees a struct fi_info */
	bool preferred;			/* wins over others of the same name in any case */
	bool by_name;			/* asked only if the hints or FI_PROVIDER name it */
	struct fab_provider *next;
};

/* Load and register everything. Called once, by fab_init(). */
void fab_registry_init(void);

/* Clean up all providers, last registered first, and unload their DSOs. Only when nobody can call any more. */
void fab_registry_fini(void);

/* The first provider; the rest by next. Providers that layer themselves over others come last. */
const struct fab_provider *fab_registry_first(void);

/* The provider that opens what this name means: of a layered one the utility provider ("tcp;ofi_rxm": ofi_rxm),
 * wherever it stands. NULL if there is none. */
struct fi_provider *fab_registry_find(const char *name);

/* FI_PROVIDER's value, NULL if it is not set; and who it left out, separated by ", ", "" for nobody. */
const char *fab_registry_filter(void);
const char *fab_registry_left_out(void);

/* Where entries of a provider of this name stand in the answer of fi_getinfo(): smaller is earlier. */
unsigned fab_registry_rank(const char *name);

/* Register a provider by hand: for tests, before the first fi_getinfo() or from one thread. dso is NULL or a handle
 * that the registry closes in the end, also when it refuses. 0, or a negative errno after saying in the log what is
 * wrong. */
int fab_registry_add(struct fi_provider *prov, void *dso, const char *source, bool preferred);

#endif
