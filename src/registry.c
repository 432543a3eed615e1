/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Finds, checks and keeps providers. A provider that cannot be used costs one line in the log, and does not affect
 * others. Runs inside fab_init(), on one thread; the list is constant afterwards.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "registry.h"

#include "base/bits.h"
#include "base/core_ops.h"
#include "base/strbuf.h"
#include "filter.h"
#include "log.h"
#include "why.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifdef HAVE_TCP
struct fi_provider *fab_tcp_prov_ini(void);
struct fi_provider *fab_sockets_prov_ini(void);
#endif
#ifdef HAVE_VERBS
struct fi_provider *fab_verbs_prov_ini(void);
#endif
#ifdef HAVE_RXM
struct fi_provider *fab_rxm_prov_ini(void);
#endif
#ifdef HAVE_UDP
struct fi_provider *fab_udp_prov_ini(void);
#endif

/* The list of providers that are built in. */
static const struct {
	const char *name;
	struct fi_provider *(*ini)(void);
} built_in[] = {
#ifdef HAVE_TCP
	{ "tcp", fab_tcp_prov_ini },
	{ "sockets", fab_sockets_prov_ini },
#endif
#ifdef HAVE_UDP
	{ "udp", fab_udp_prov_ini },
#endif
#ifdef HAVE_VERBS
	{ "verbs", fab_verbs_prov_ini },
#endif
#ifdef HAVE_RXM
	{ "ofi_rxm", fab_rxm_prov_ini },
#endif
	{ NULL, NULL },
};

/* Providers that work on every machine come after all others, in this order. */
static const char *const software[] = { "shm", "tcp", "udp", "sockets" };

/* Aliases of other providers, which are used only if they are named. */
static const char *const by_name[] = { "sockets" };

static struct fab_provider *providers;
static char *filter;			/* value of FI_PROVIDER, owned by param.c */
static bool first_wins;			/* FI_PROVIDER_PATH begins with '@' */
static char left_out_text[512];
static struct fab_strbuf left_out = { .text = left_out_text, .size = sizeof(left_out_text) };

static void leave_out(const char *name)
{
	fab_strbuf_printf(&left_out, "%s%s", left_out.len ? ", " : "", name);
	FAB_INFO("provider %s is left out: FI_PROVIDER=%s", name, filter);
}

/* Append the reason why a provider cannot be used. True if there is one. */
static bool find_fault(const struct fi_provider *prov, struct fab_strbuf *fault)
{
	if (!prov)
		fab_strbuf_puts(fault, "its entry point returned NULL");
	else if (!prov->name || !*prov->name)
		fab_strbuf_puts(fault, "it has no name");
	else if (!prov->getinfo || !prov->fabric)
		fab_strbuf_puts(fault, "it lacks getinfo() or fabric()");
	else if (prov->fi_version < FI_VERSION(1, 0) ||
		 FI_VERSION_LT(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), prov->fi_version))
		fab_strbuf_printf(fault, "it was written for API %u.%u; this library supports 1.0 to %d.%d",
				  FI_MAJOR(prov->fi_version), FI_MINOR(prov->fi_version), FI_MAJOR_VERSION,
				  FI_MINOR_VERSION);
	return fault->len;
}

/* Clean up a provider that is not, or no longer, in the list. If the same provider is in the list because its file has
 * two names, only the handle is closed. */
static void dismiss(struct fi_provider *prov, void *dso)
{
	const struct fab_provider *entry;

	for (entry = providers; entry && entry->prov != prov; entry = entry->next)
		;
	if (!entry && prov && prov->cleanup)
		prov->cleanup();
	if (dso)
		dlclose(dso);
}

/* The position of the provider with this name in the list. If the list has no such provider, the position for inserting
 * it: the end, or for a core provider before the first utility. */
static struct fab_provider **find_place(const char *name)
{
	struct fab_provider **place;

	for (place = &providers; *place; place = &(*place)->next)
		if (!strcasecmp((*place)->prov->name, name))
			return place;
	if (fab_filter_is_util(name))
		return place;
	for (place = &providers; *place && !fab_filter_is_util((*place)->prov->name); place = &(*place)->next)
		;
	return place;
}

/* True if a new provider replaces the old one of the same name. If nothing else decides, the provider found first
 * stays. */
static bool wins(const struct fi_provider *prov, bool preferred, const struct fab_provider *old)
{
	if (preferred != old->preferred)
		return preferred;
	return !preferred && !first_wins && FI_VERSION_LT(old->prov->version, prov->version);
}

static bool is_by_name(const char *name)
{
	for (size_t i = 0; i < fab_countof(by_name); i++)
		if (!strcmp(by_name[i], name))
			return true;
	return false;
}

static int registry_add(struct fab_provider **place, struct fi_provider *prov, void *dso, bool preferred)
{
	struct fab_provider *entry = *place, old;

	if (!entry || strcasecmp(entry->prov->name, prov->name)) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return -FI_ENOMEM;
		entry->next = *place;
		*place = entry;
	} else {
		old = *entry;
		entry->prov = prov;
		dismiss(old.prov, old.dso);
	}
	entry->prov = prov;
	entry->dso = dso;
	entry->preferred = preferred;
	entry->by_name = !dso && is_by_name(prov->name);
	/* what is compiled with the core has its structs, whatever version the public headers have */
	entry->layout = !dso && FI_VERSION_GE(prov->fi_version, fi_version()) ? FAB_LAYOUT_NEWEST :
			fab_layout_of(prov->fi_version);
	memset(&prov->context, 0, sizeof(prov->context));
	prov->context.internal[0] = (void *) &fab_reasons_ops;
	prov->context.internal[1] = FAB_CORE_MAGIC;
	return 0;
}

int fab_registry_add(struct fi_provider *prov, void *dso, const char *source, bool preferred)
{
	struct fab_provider **place;
	struct fab_strbuf fault;
	char text[128];
	int ret;

	fab_strbuf_init(&fault, text, sizeof(text));
	if (find_fault(prov, &fault)) {
		FAB_WARN("provider %s of %s is not used: %s", prov && prov->name ? prov->name : "?", source, text);
		dismiss(NULL, dso);
		return -FI_EINVAL;
	}
	if (!fab_filter_needs(filter, prov->name)) {
		leave_out(prov->name);
		dismiss(prov, dso);
		return -FI_ENODATA;
	}
	place = find_place(prov->name);
	if (*place && !strcasecmp((*place)->prov->name, prov->name) && !wins(prov, preferred, *place)) {
		FAB_INFO("provider %s of %s, version %u.%u, is not used: another one has version %u.%u", prov->name,
			 source, FI_MAJOR(prov->version), FI_MINOR(prov->version),
			 FI_MAJOR((*place)->prov->version), FI_MINOR((*place)->prov->version));
		dismiss(prov, dso);
		return -FI_EALREADY;
	}
	ret = registry_add(place, prov, dso, preferred);
	if (ret) {
		FAB_WARN("provider %s of %s is not used: %s", prov->name, source, fi_strerror(-ret));
		dismiss(prov, dso);
		return ret;
	}
	FAB_INFO("provider %s of %s, version %u.%u, API %u.%u", prov->name, source, FI_MAJOR(prov->version),
		 FI_MINOR(prov->version), FI_MAJOR(prov->fi_version), FI_MINOR(prov->fi_version));
	return 0;
}

/* Our own files lib<file>-fi.so, with the provider in each. */
static const struct {
	const char *file;
	const char *prov;
} own_files[] = {
	{ "tcp", "tcp" }, { "udp", "udp" }, { "verbs", "verbs" }, { "rxm", "ofi_rxm" },
};

#define DSO_PREFIX "lib"
#define DSO_SUFFIX "-" FI_LIB_SUFFIX

/* The name of the provider in a file of our own; NULL for any other file. The name of another vendor's provider may
 * differ from its file name, so the file must be loaded to find out. */
static const char *prov_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < fab_countof(own_files); i++) {
		size_t len = strlen(own_files[i].file);

		if (!strncmp(name, DSO_PREFIX, strlen(DSO_PREFIX)) &&
		    !strncmp(name + strlen(DSO_PREFIX), own_files[i].file, len) &&
		    !strcmp(name + strlen(DSO_PREFIX) + len, DSO_SUFFIX))
			return own_files[i].prov;
	}
	return NULL;
}

/* Load a file and register its provider. quiet: do not log if the file does not exist. */
static void load_dso(const char *path, bool preferred, bool quiet)
{
	struct fi_provider *(*ini)(void);
	void *dso = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!dso) {
		if (!quiet)
			FAB_WARN("provider %s is not used: %s", path, dlerror());
		return;
	}
	*(void **) &ini = dlsym(dso, "fi_prov_ini");
	if (!ini) {
		FAB_WARN("provider %s is not used: it has no function fi_prov_ini()", path);
		dlclose(dso);
		return;
	}
	fab_registry_add(ini(), dso, path, preferred);
}

static int is_dso(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > strlen(DSO_SUFFIX) && !strcmp(entry->d_name + len - strlen(DSO_SUFFIX), DSO_SUFFIX);
}

/* Load a file of a folder, unless FI_PROVIDER leaves out its provider: loading runs code of the file and of its
 * libraries. A file given as "+FILE" is always loaded. */
static void load_found(const char *path)
{
	const char *name = prov_of_file(path);

	if (name && !fab_filter_needs(filter, name))
		leave_out(name);
	else
		load_dso(path, false, false);
}

/* Load all DSOs of a folder, sorted by name, so that the order does not depend on the file system. */
static void load_folder(const char *path)
{
	struct dirent **entries;
	char *file;
	int cnt, i;

	cnt = scandir(path, &entries, is_dso, alphasort);
	if (cnt < 0) {
		FAB_INFO("no providers from %s: %s", path, fi_strerror(errno));
		return;
	}
	for (i = 0; i < cnt; i++) {
		if (asprintf(&file, "%s/%s", path, entries[i]->d_name) >= 0) {
			load_found(file);
			free(file);
		}
		free(entries[i]);
	}
	free(entries);
}

/* Load the "+FILE" items of a path (preferred), or the folders. */
static void load_path(const char *path, bool preferred)
{
	char *copy = strdup(path), *rest = copy, *part;

	while (copy && (part = strsep(&rest, ":"))) {
		if (*part == '+' && preferred)
			load_dso(part + 1, true, false);
		else if (*part && *part != '+' && !preferred)
			load_folder(part);
	}
	free(copy);
}

/* Try to load a provider that FI_PROVIDER names and that is not registered: the dynamic linker may find it. */
static bool load_by_name(const char *item, int len, const void *arg)
{
	char name[FI_NAME_MAX], file[FI_NAME_MAX + 16];

	(void) arg;
	if (len >= FI_NAME_MAX || memchr(item, ';', (size_t) len) || memchr(item, '/', (size_t) len))
		return false;
	snprintf(name, sizeof(name), "%.*s", len, item);
	if (!fab_registry_find(name)) {
		snprintf(file, sizeof(file), DSO_PREFIX "%s" DSO_SUFFIX, name);
		load_dso(file, false, true);
	}
	return false;
}

static void load_dsos(void)
{
	char *path = NULL;

	fi_param_get_str(NULL, "provider_path", &path);
	if (!path) {
		load_folder(FAB_PROVIDER_DIR);
		return;
	}
	first_wins = *path == '@';
	if (first_wins)
		path++;
	load_path(path, true);
	load_path(path, false);
}

static void add_built_in(void)
{
	size_t i;

	for (i = 0; built_in[i].name; i++) {
		if (fab_filter_needs(filter, built_in[i].name))
			fab_registry_add(built_in[i].ini(), NULL, "libfabric", false);
		else
			leave_out(built_in[i].name);
	}
}

void fab_registry_init(void)
{
	char *path = NULL;

	fi_param_define(NULL, "provider", FI_PARAM_STRING,
			"Providers to use, separated by commas; with ^ in front, all providers except these (default: "
			"all)");
	fi_param_define(NULL, "provider_path", FI_PARAM_STRING,
			"Folders to load providers (*-" FI_LIB_SUFFIX ") from, separated by colons. With @ in front, "
			"the first of two providers with the same name is used, not the one with the higher version. "
			"+FILE in place of a folder: this provider is always used (default: %s)", FAB_PROVIDER_DIR);
	fi_param_get_str(NULL, "provider", &filter);
	fi_param_get_str(NULL, "provider_path", &path);
	load_dsos();
	add_built_in();
	if (!path && filter && !fab_filter_negated(filter))
		fab_filter_any(filter, load_by_name, NULL);
}

void fab_registry_fini(void)
{
	struct fab_provider **last, *entry;

	/* in reverse: utilities, which call the others, are at the end */
	while (providers) {
		for (last = &providers; (*last)->next; last = &(*last)->next)
			;
		entry = *last;
		*last = NULL;
		dismiss(entry->prov, entry->dso);
		free(entry);
	}
}

const struct fab_provider *fab_registry_first(void)
{
	return providers;
}

struct fi_provider *fab_registry_find(const char *name)
{
	const struct fab_provider *entry;
	struct fi_provider *found = NULL;

	for (entry = providers; entry; entry = entry->next) {
		if (!fab_filter_allows(entry->prov->name, name))
			continue;
		if (!found || fab_filter_is_util(entry->prov->name))
			found = entry->prov;
	}
	return found;
}

const char *fab_registry_filter(void)
{
	return filter;
}

const char *fab_registry_left_out(void)
{
	return left_out_text;
}

unsigned fab_registry_rank(const char *name)
{
	unsigned i;

	for (i = 0; i < fab_countof(software); i++)
		if (fab_filter_allows(software[i], name))
			return i + 1;
	return 0;
}
