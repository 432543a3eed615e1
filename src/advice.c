/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Why a provider is not there: FI_PROVIDER leaves it out, this build lacks it, weft does not have it, or nobody does,
 * which may be a typing error. No state.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "advice.h"

#include "base/bits.h"
#include "base/nearest.h"
#include "base/strbuf.h"
#include "filter.h"
#include "registry.h"

#include <string.h>
#include <strings.h>

#define NOT_BUILT	"this build of weft does not have it; configure --enable-"
#define NOT_FOUND	"it is built as a file of its own, which was not loaded: set FI_PROVIDER_PATH to the folder of "
#define FOREIGN		"weft does not have it; FI_PROVIDER_PATH may name a folder with a "
#define SAME_HOST	"weft does not have it; tcp connects processes of one host through shared memory"

#ifdef HAVE_TCP_DL
#define WHERE_TCP	NOT_FOUND "libtcp-fi.so"
#else
#define WHERE_TCP	NOT_BUILT "tcp adds it"
#endif
#ifdef HAVE_UDP_DL
#define WHERE_UDP	NOT_FOUND "libudp-fi.so"
#else
#define WHERE_UDP	NOT_BUILT "udp adds it"
#endif
#ifdef HAVE_RXM_DL
#define WHERE_RXM	NOT_FOUND "librxm-fi.so"
#else
#define WHERE_RXM	NOT_BUILT "rxm adds it"
#endif
#ifdef HAVE_VERBS_DL
#define WHERE_VERBS	NOT_FOUND "libverbs-fi.so"
#else
#define WHERE_VERBS	NOT_BUILT "verbs adds it, and needs libibverbs-dev and librdmacm-dev (their names in Debian)"
#endif

/* Providers of ours, and of upstream, that may be asked for. */
static const struct {
	const char *name;
	const char *advice;
} known[] = {
	{ "tcp", WHERE_TCP },
	{ "sockets", WHERE_TCP },
	{ "udp", WHERE_UDP },
	{ "ofi_rxm", WHERE_RXM },
	{ "verbs", WHERE_VERBS },
	{ "net", "upstream's provider net is part of tcp here: ask for tcp" },
	{ "rxm", "its name is ofi_rxm" },
	{ "shm", SAME_HOST },
	{ "sm2", SAME_HOST },
	{ "lnx", SAME_HOST },
	{ "ofi_rxd", "weft does not have it; tcp has the same endpoints (FI_EP_RDM)" },
	{ "ofi_mrail", "weft does not have it" },
	{ "efa", FOREIGN "libefa-fi.so" },
	{ "cxi", FOREIGN "libcxi-fi.so" },
	{ "opx", FOREIGN "libopx-fi.so" },
	{ "psm2", FOREIGN "libpsm2-fi.so" },
	{ "psm3", FOREIGN "libpsm3-fi.so" },
	{ "ucx", FOREIGN "libucx-fi.so" },
	{ "usnic", FOREIGN "libusnic-fi.so" },
};

struct layer {
	const char *name;
	size_t len;
};

static bool layer_is(const struct layer *layer, const char *name)
{
	return strlen(name) == layer->len && !strncasecmp(layer->name, name, layer->len);
}

static bool is_this(const char *item, int len, const void *layer)
{
	const struct layer *one = layer;

	return (size_t) len == one->len && !strncasecmp(item, one->name, one->len);
}

static bool is_registered(const struct layer *layer)
{
	const struct fab_provider *entry;

	for (entry = fab_registry_first(); entry; entry = entry->next)
		if (layer_is(layer, entry->prov->name))
			return true;
	return false;
}

static const char *advice_of(const struct layer *layer)
{
	for (size_t i = 0; i < fab_countof(known); i++)
		if (layer_is(layer, known[i].name))
			return known[i].advice;
	return NULL;
}

/* Append the names of all providers, as a list. */
static void put_names(struct fab_strbuf *sb)
{
	const struct fab_provider *entry;

	fab_strbuf_puts(sb, "no provider has this name; there are ");
	for (entry = fab_registry_first(); entry; entry = entry->next)
		fab_strbuf_printf(sb, "%s%s", entry == fab_registry_first() ? "" : ", ", entry->prov->name);
	if (*fab_registry_left_out())
		fab_strbuf_printf(sb, "%s%s", fab_registry_first() ? ", " : "", fab_registry_left_out());
	else if (!fab_registry_first())
		fab_strbuf_puts(sb, "none");
}

/* The registered or known provider that is nearest to the name. NULL: none is near. */
static const char *nearest_of(const struct layer *layer)
{
	const struct fab_provider *entry;
	struct fab_nearest nearest;

	fab_nearest_init(&nearest, layer->name, layer->len);
	for (entry = fab_registry_first(); entry; entry = entry->next)
		fab_nearest_try(&nearest, entry->prov->name);
	for (size_t i = 0; i < fab_countof(known); i++)
		fab_nearest_try(&nearest, known[i].name);
	return nearest.found;
}

static void put_advice(const struct layer *layer, bool alone, struct fab_strbuf *sb)
{
	const char *advice = advice_of(layer), *nearest;

	if (!alone)
		fab_strbuf_printf(sb, "%.*s: ", (int) layer->len, layer->name);
	if (fab_filter_any(fab_registry_left_out(), is_this, layer))
		fab_strbuf_printf(sb, "FI_PROVIDER=%s leaves it out", fab_registry_filter());
	else if (advice)
		fab_strbuf_puts(sb, advice);
	else if ((nearest = nearest_of(layer)))
		fab_strbuf_printf(sb, "no provider has this name; did you mean %s?", nearest);
	else
		put_names(sb);
}

bool fab_advice_find(const char *name, int len, struct fab_strbuf *sb)
{
	const char *end = name + len, *stop;
	struct layer layer;

	for (; name < end; name = stop + 1) {
		stop = memchr(name, ';', (size_t) (end - name));
		if (!stop)
			stop = end;
		layer = (struct layer) { .name = name, .len = (size_t) (stop - name) };
		if (layer.len && !is_registered(&layer)) {
			put_advice(&layer, layer.len == (size_t) len, sb);
			return false;
		}
	}
	return true;
}
