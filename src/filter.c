/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Matching of names against lists of names. A list is parsed at every call: lists are short, and they are used at setup
 * and when a log line is written.
 */
#include "filter.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t\r\n"

/* Take the next part of *text, up to the separator, without blanks around it. Skips empty parts. False at the end. */
static bool next_part(const char **text, const char *end, char separator, const char **part, int *len)
{
	const char *start, *stop;

	while (*text < end) {
		start = *text;
		stop = memchr(start, separator, (size_t) (end - start));
		if (!stop)
			stop = end;
		*text = stop < end ? stop + 1 : end;
		while (start < stop && strchr(BLANKS, *start))
			start++;
		while (stop > start && strchr(BLANKS, stop[-1]))
			stop--;
		if (stop > start) {
			*part = start;
			*len = (int) (stop - start);
			return true;
		}
	}
	return false;
}

static const char *skip_blanks(const char *list)
{
	return list ? list + strspn(list, BLANKS) : "";
}

bool fab_filter_negated(const char *list)
{
	return *skip_blanks(list) == '^';
}

bool fab_filter_any(const char *list, bool (*fn)(const char *item, int len, const void *arg), const void *arg)
{
	const char *end, *item;
	int len;

	list = skip_blanks(list);
	if (*list == '^')
		list++;
	end = list + strlen(list);
	while (next_part(&list, end, ',', &item, &len))
		if (fn(item, len, arg))
			return true;
	return false;
}

static bool any_item(const char *item, int len, const void *arg)
{
	(void) item;
	(void) len;
	(void) arg;
	return true;
}

static bool has_layer(const char *name, const char *layer, int layer_len)
{
	const char *end = name + strlen(name), *part;
	int len;

	while (next_part(&name, end, ';', &part, &len))
		if (len == layer_len && !strncasecmp(part, layer, (size_t) len))
			return true;
	return false;
}

/* True if this name has every layer of the item. */
static bool item_means(const char *item, int len, const void *name)
{
	const char *end = item + len, *layer;
	int layer_len;

	while (next_part(&item, end, ';', &layer, &layer_len))
		if (!has_layer(name, layer, layer_len))
			return false;
	return true;
}

bool fab_filter_allows(const char *list, const char *name)
{
	if (!fab_filter_any(list, any_item, NULL))
		return true;
	return fab_filter_any(list, item_means, name) != fab_filter_negated(list);
}

bool fab_filter_names(const char *list, const char *name)
{
	return !fab_filter_negated(list) && fab_filter_any(list, item_means, name);
}

bool fab_filter_is_util(const char *name)
{
	return !strncasecmp(name, "ofi_", 4);
}

/* True if every layer of the item is a utility provider, so that any core provider may be under it. */
static bool only_utils(const char *item, int len)
{
	const char *end = item + len, *layer;
	int layer_len;

	while (next_part(&item, end, ';', &layer, &layer_len))
		if (layer_len < 4 || !fab_filter_is_util(layer))
			return false;
	return true;
}

static bool item_has(const char *item, int len, const void *name)
{
	const char *end = item + len, *layer;
	int layer_len;

	while (next_part(&item, end, ';', &layer, &layer_len))
		if (has_layer(name, layer, layer_len))
			return true;
	return false;
}

/* True if the provider of this name may be a layer of a name that the item matches. */
static bool item_needs(const char *item, int len, const void *name)
{
	const char *text = item, *layer;
	int layer_len, cnt = 0;

	if (item_has(item, len, name))
		return true;
	while (next_part(&text, item + len, ';', &layer, &layer_len))
		cnt++;
	/* "tcp" also matches every utility over tcp, and "ofi_rxm" itself over every core provider */
	return fab_filter_is_util(name) ? cnt == 1 : only_utils(item, len);
}

bool fab_filter_mentions(const char *list, const char *name)
{
	return !fab_filter_negated(list) && fab_filter_any(list, item_has, name);
}

bool fab_filter_needs(const char *list, const char *name)
{
	if (!fab_filter_any(list, any_item, NULL) || fab_filter_negated(list))
		return fab_filter_allows(list, name);
	return fab_filter_any(list, item_needs, name);
}
