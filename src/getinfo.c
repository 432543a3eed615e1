/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(): check the call, ask each provider whose name may match, merge the answers, and log why if nothing
 * matches. The providers interpret node, service, hints and addresses (prov/common/hints/hints.c). The core handles
 * provider names, versions, flags and the order of entries.
 *
 * A call that succeeds does not pay for reasons: they are collected in a second round of calls, only when the first
 * round found nothing. The first round collects them only if an explanation was asked for (explain.h).
 *
 * Any thread. State: `depth`, which is not 0 while the calling thread is inside of fi_getinfo(). A layered provider
 * calls fi_getinfo() from there. Such an inner call reports nothing; the outer one does.
 */
#include "getinfo.h"

#include "advice.h"
#include "base/bits.h"
#include "base/list.h"
#include "base/strbuf.h"
#include "explain.h"
#include "fabric.h"
#include "filter.h"
#include "info.h"
#include "log.h"
#include "names.h"
#include "registry.h"
#include "why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KNOWN_FLAGS (FI_NUMERICHOST | FI_SOURCE | FI_PROV_ATTR_ONLY | FI_RESCAN)

/* The caller's question, and the entries found so far. */
struct query {
	uint32_t version;
	const char *node;
	const char *service;
	uint64_t flags;
	const struct fi_info *hints;
	const char *prov_name;		/* of the hints; NULL: any */
	uint32_t prov_version;		/* of the hints: at least this; 0: any */
	const char *user_list;		/* FI_PROVIDER; NULL: all, as in an inner call */
	bool names_core;		/* the hints allow a core provider, so a utility may be layered over it */
	struct fi_info *head;
	struct fi_info **tail;
	struct fi_info *last;		/* the entry inserted last, NULL: none; and its rank */
	unsigned last_rank;
	int ret;			/* -FI_ENOMEM if any provider had none, otherwise 0 */
};

/* FI_ADDR_FORMAT: the only format of entries that is shown; FI_FORMAT_UNSPEC: any. And its text. Constant after
 * fab_getinfo_init(). */
static uint32_t only_format;
static char *only_format_text;

static __thread unsigned depth __attribute__((tls_model("initial-exec")));

void fab_getinfo_init(void)
{
	static const uint32_t formats[] = {
		FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_SOCKADDR_IB, FI_ADDR_IB_UD, FI_ADDR_EFA, FI_ADDR_PSMX3,
		FI_ADDR_OPX, FI_ADDR_CXI, FI_ADDR_STR,
	};

	fi_param_define(NULL, "addr_format", FI_PARAM_STRING,
			"Show only entries of fi_getinfo() with this address format, FI_SOCKADDR_IN for example; "
			"FI_SOCKADDR does not include others (default: all)");
	if (fi_param_get_str(NULL, "addr_format", &only_format_text))
		return;
	for (size_t i = 0; i < fab_countof(formats); i++) {
		if (!strcasecmp(only_format_text, fab_names_find(FI_TYPE_ADDR_FORMAT, formats[i])))
			only_format = formats[i];
	}
	if (only_format == FI_FORMAT_UNSPEC)
		FAB_WARN("FI_ADDR_FORMAT=%.40s is unknown and not used; a format is FI_SOCKADDR_IN, FI_SOCKADDR_IN6, "
			 "FI_SOCKADDR_IB, FI_ADDR_IB_UD or another of fi_getinfo(3)", only_format_text);
}

static int check_call(uint32_t version, uint64_t flags, struct fi_info **info)
{
	if (!info) {
		FAB_ERROR("fi_getinfo: info is NULL; pass a pointer for the result");
		return -FI_EINVAL;
	}
	*info = NULL;
	if (FI_VERSION_LT(fi_version(), version)) {
		FAB_ERROR("fi_getinfo: the caller asks for API %u.%u; this library supports up to %u.%u",
			  FI_MAJOR(version), FI_MINOR(version), FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
		return -FI_ENOSYS;
	}
	if (flags & ~KNOWN_FLAGS) {
		FAB_ERROR("fi_getinfo: flags 0x%llx are unknown; known are FI_SOURCE, FI_NUMERICHOST, "
			  "FI_PROV_ATTR_ONLY and FI_RESCAN", (unsigned long long) (flags & ~KNOWN_FLAGS));
		return -FI_EBADFLAGS;
	}
	return 0;
}

static void query_init(struct query *query, uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints)
{
	*query = (struct query) {
		.version = version,
		.node = node,
		.service = service,
		.flags = flags,
		.hints = hints,
		.user_list = depth ? NULL : fab_registry_filter(),
	};
	if (hints && hints->fabric_attr) {
		query->prov_name = hints->fabric_attr->prov_name;
		query->prov_version = hints->fabric_attr->prov_version;
	}
	query->tail = &query->head;
}

/* True if the provider has at least the version asked for. Otherwise records the reason. */
static bool is_new_enough(const struct fi_provider *prov, const char *attr, uint32_t asked, const char *what,
			  uint32_t have)
{
	char asked_text[32], have_text[64];

	if (!FI_VERSION_LT(have, asked))
		return true;
	snprintf(asked_text, sizeof(asked_text), "%u.%u", FI_MAJOR(asked), FI_MINOR(asked));
	snprintf(have_text, sizeof(have_text), "is newer than its %s %u.%u", what, FI_MAJOR(have), FI_MINOR(have));
	fab_reasons_add_skipped(prov, attr, asked_text, have_text);
	return false;
}

/* True if a provider of this name can have an entry that the list lets through. The entries of a core provider have its
 * own name; those of a utility have the name of the utility over a core provider. */
static bool getinfo_is_meant(const struct query *query, const char *list, const char *name)
{
	if (fab_filter_is_util(name))
		return query->names_core && fab_filter_needs(list, name);
	return fab_filter_allows(list, name);
}

static bool is_named(const struct query *query, const char *name)
{
	return fab_filter_names(query->prov_name, name) || fab_filter_names(query->user_list, name);
}

/* True if the provider is a utility that neither the hints nor FI_PROVIDER mention. Its reasons are not recorded: the
 * providers under it give theirs. */
static bool is_aside(const struct query *query, const struct fi_provider *prov)
{
	return fab_filter_is_util(prov->name) && !fab_filter_mentions(query->prov_name, prov->name) &&
	       !fab_filter_mentions(query->user_list, prov->name);
}

/* True if this provider must be called. Otherwise records the reason. Utilities come after all others. */
static bool may_ask(struct query *query, const struct fi_provider *prov)
{
	if (!fab_filter_is_util(prov->name) && fab_filter_needs(query->prov_name, prov->name))
		query->names_core = true;
	if (!getinfo_is_meant(query, query->prov_name, prov->name)) {
		if (!is_aside(query, prov))
			fab_reasons_add_skipped(prov, "fabric_attr->prov_name", query->prov_name, "is another name");
		return false;
	}
	if (!getinfo_is_meant(query, query->user_list, prov->name)) {
		if (!is_aside(query, prov))
			fab_reasons_add_skipped(prov, "FI_PROVIDER", query->user_list, "needs another name");
		return false;
	}
	return is_new_enough(prov, "version", query->version, "API", prov->fi_version) &&
	       is_new_enough(prov, "fabric_attr->prov_version", query->prov_version, "version", prov->version);
}

/* Convert the answer of a provider that was written for an older layout, and free the old one. NULL: no memory. */
static struct fi_info *widen_list(struct fi_info *old, enum fab_layout layout)
{
	struct fi_info *list = NULL, **tail = &list, *entry;
	struct fab_wide_info wide;

	for (entry = old; entry; entry = entry->next) {
		*tail = fab_info_dup(fab_widen(&wide, entry, layout));
		if (!*tail) {
			fab_info_free(list, FAB_INFO_ALL);
			list = NULL;
			break;
		}
		tail = &(*tail)->next;
	}
	fab_info_free(old, fab_layout_parts(layout));
	return list;
}

/* Fill in provider name, provider version and API version. 0, or -FI_ENOMEM. */
static int complete(const struct query *query, const struct fi_provider *prov, struct fi_info *info)
{
	if (!info->fabric_attr) {
		info->fabric_attr = calloc(1, sizeof(*info->fabric_attr));
		if (!info->fabric_attr)
			return -FI_ENOMEM;
	}
	if (!info->fabric_attr->prov_name) {
		info->fabric_attr->prov_name = strdup(prov->name);
		if (!info->fabric_attr->prov_name)
			return -FI_ENOMEM;
	}
	info->fabric_attr->prov_version = prov->version;
	info->fabric_attr->api_version = query->version;
	return 0;
}

/* True if the hints, FI_PROVIDER and FI_ADDR_FORMAT let an entry through. Otherwise records the reason. */
static bool may_show(const struct query *query, const struct fi_provider *prov, const struct fi_info *info)
{
	const char *name = info->fabric_attr->prov_name;

	if (!fab_filter_allows(query->prov_name, name)) {
		fab_reasons_add(prov, "fabric_attr->prov_name", query->prov_name,
				"is not among the layers of its entries");
		return false;
	}
	if (!fab_filter_allows(query->user_list, name)) {
		fab_reasons_add(prov, "FI_PROVIDER", query->user_list, "leaves out its entries");
		return false;
	}
	if (only_format && info->addr_format != only_format && !(query->flags & FI_PROV_ATTR_ONLY)) {
		fab_reasons_add(prov, "FI_ADDR_FORMAT", only_format_text, "leaves out its entries");
		return false;
	}
	return true;
}

/* Position of an entry in the answer: by the rank of its core provider, a layered entry behind a plain one. */
static unsigned rank_of(const struct fi_info *info)
{
	const char *name = info->fabric_attr->prov_name;

	return fab_registry_rank(name) * 2 + (strchr(name, ';') ? 1 : 0);
}

/* Put an entry behind all entries of a lower or the same rank. Most entries of one provider have the same rank, so the
 * place is behind the entry that was inserted last. */
static void insert(struct query *query, struct fi_info *info)
{
	struct fi_info **place = query->tail;
	unsigned rank = rank_of(info);

	if (query->last && query->last_rank == rank)
		place = &query->last->next;
	else if (query->head && rank_of(fab_container(query->tail, struct fi_info, next)) > rank)
		for (place = &query->head; *place && rank_of(*place) <= rank; place = &(*place)->next)
			;
	info->next = *place;
	*place = info;
	if (!info->next)
		query->tail = &info->next;
	query->last = info;
	query->last_rank = rank;
}

static void take_entries(struct query *query, const struct fi_provider *prov, struct fi_info *list)
{
	struct fi_info *info;

	while ((info = list)) {
		list = info->next;
		info->next = NULL;
		if (complete(query, prov, info)) {
			query->ret = -FI_ENOMEM;
			fab_info_free(info, FAB_INFO_ALL);
		} else if (!may_show(query, prov, info)) {
			fab_info_free(info, FAB_INFO_ALL);
		} else {
			insert(query, info);
		}
	}
}

/* Ask one provider. -FI_ENODATA is normal. Other failures are logged, since the answer then lacks its entries. */
static void getinfo_ask(struct query *query, const struct fab_provider *entry)
{
	struct fi_provider *prov = entry->prov;
	struct fi_info *list = NULL;
	bool aside = is_aside(query, prov);
	struct fab_reasons *listener = aside ? fab_reasons_listen(NULL) : NULL;
	size_t before = fab_reasons_heard();
	int ret;

	ret = prov->getinfo(query->version, query->node, query->service, query->flags, query->hints, &list);
	if (aside)
		fab_reasons_listen(listener);
	if (!ret && list && entry->layout != FAB_LAYOUT_NEWEST) {
		list = widen_list(list, entry->layout);
		ret = list ? 0 : -FI_ENOMEM;
	}
	if (ret == -FI_ENOMEM)
		query->ret = ret;
	if (ret && ret != -FI_ENODATA)
		FAB_INFO("fi_getinfo: provider %s failed: %s", prov->name, fi_strerror(-ret));
	if (!ret && list)
		take_entries(query, prov, list);
	else if (!aside && fab_reasons_heard() == before)
		fab_reasons_add(prov, "its getinfo()", "", ret && ret != -FI_ENODATA ? fi_strerror(-ret) :
				"returned no entry, and gave no reason");
}

/* FI_PROV_ATTR_ONLY: add a blank entry for a provider, whether it can be used on this machine or not. */
static void list_provider(struct query *query, const struct fi_provider *prov)
{
	bool over = query->prov_name && strchr(query->prov_name, ';') && !strchr(query->prov_name, ',');
	struct fi_info *info = fab_info_dup(NULL);

	/* a utility is listed by its own name, or by the layered name in the hints */
	if (info && over && fab_filter_is_util(prov->name)) {
		info->fabric_attr->prov_name = strdup(query->prov_name);
		if (!info->fabric_attr->prov_name) {
			fab_info_free(info, FAB_INFO_ALL);
			info = NULL;
		}
	}
	if (info)
		take_entries(query, prov, info);
	else
		query->ret = -FI_ENOMEM;
}

/* Record why no provider has the name of an item, if that is so. attr is where the list with the item comes from. */
static bool blame_item(const char *item, int len, const void *attr)
{
	char asked[FI_NAME_MAX], text[256];
	struct fab_strbuf sb;

	fab_strbuf_init(&sb, text, sizeof(text));
	if (!fab_advice_find(item, len, &sb)) {
		snprintf(asked, sizeof(asked), "%.*s", len, item);
		fab_reasons_add(&fab_core_prov, attr, asked, text);
	}
	return false;
}

static void blame_names(const char *attr, const char *names)
{
	if (names && !fab_filter_negated(names))
		fab_filter_any(names, blame_item, attr);
}

/* Nothing was found. Record what names of providers have to do with it: those that no provider has, and what
 * FI_PROVIDER leaves out of all that there is. */
static void blame_filter(const struct query *query)
{
	const char *left_out = fab_registry_left_out();
	size_t before = fab_reasons_heard();
	struct fab_strbuf sb;
	char text[256];

	blame_names("fabric_attr->prov_name", query->prov_name);
	if (query->prov_name)
		return;
	blame_names("FI_PROVIDER", query->user_list);
	if (!*left_out || fab_reasons_heard() > before)
		return;
	fab_strbuf_init(&sb, text, sizeof(text));
	fab_strbuf_printf(&sb, "leaves out %s", left_out);
	fab_reasons_add(&fab_core_prov, "FI_PROVIDER", fab_registry_filter(), text);
}

/* Ask each provider that may have a matching entry. */
static void collect(struct query *query)
{
	const struct fab_provider *entry;

	for (entry = fab_registry_first(); entry; entry = entry->next) {
		if (entry->by_name && !(query->flags & FI_PROV_ATTR_ONLY) && !is_named(query, entry->prov->name))
			continue;
		if (!may_ask(query, entry->prov))
			continue;
		if (query->flags & FI_PROV_ATTR_ONLY)
			list_provider(query, entry->prov);
		else
			getinfo_ask(query, entry);
	}
	if (!query->head)
		blame_filter(query);
}

/* 0, or -FI_ENODATA or -FI_ENOMEM with an empty list. A list that is incomplete for lack of memory is dropped. */
static int finish(struct query *query)
{
	if (query->ret) {
		fab_info_free(query->head, FAB_INFO_ALL);
		query->head = query->last = NULL;
		query->tail = &query->head;
		return query->ret;
	}
	return query->head ? 0 : -FI_ENODATA;
}

static int getinfo_run(struct query *query, struct fab_reasons *reasons)
{
	struct fab_reasons *before = fab_reasons_listen(reasons);

	depth++;
	collect(query);
	depth--;
	fab_reasons_listen(before);
	return finish(query);
}

int fab_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	bool inner = depth > 0, explain, keep;
	struct fab_reasons reasons;
	struct query query;
	int ret;

	fab_init();
	ret = check_call(version, flags, info);
	if (ret)
		return ret;

	fab_reasons_init(&reasons);
	explain = !inner && fab_explain_wanted();
	query_init(&query, version, node, service, flags, hints);
	ret = getinfo_run(&query, explain ? &reasons : NULL);
	keep = ret == -FI_ENODATA && !inner && !fab_explain_on_stderr() && fab_log_keeps();
	if (keep && !explain)
		ret = getinfo_run(&query, &reasons);

	fab_reasons_sort(&reasons);
	if (keep && ret)
		fab_reasons_log(&reasons);
	else if (!ret && !inner && hints)
		fab_log_keep_none();	/* the program has what it asked for */
	if (explain)
		fab_explain_tell(&reasons, version, node, service, flags, ret);
	fab_reasons_fini(&reasons);
	*info = query.head;
	return ret;
}

int fab_getinfo_inner(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info)
{
	int ret;

	depth++;
	ret = fab_getinfo(version, node, service, flags, hints, info);
	depth--;
	return ret;
}
