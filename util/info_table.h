/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Entries of fi_getinfo() as a table for people: a row for each provider and domain. */
#ifndef UTIL_INFO_TABLE_H
#define UTIL_INFO_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include <rdma/fabric.h>

/* True if `out` is a terminal that shows colours, and the user has not said otherwise (NO_COLOR, TERM=dumb). */
bool info_table_colours(FILE *out);

/* Print the entries of `list` for which `wanted` is true. Lines have at most `columns` characters: addresses that do
 * not fit are counted; 0: there is no limit. With `colours`, headings and names of providers stand out. 0, or
 * -FI_ENOMEM. */
int info_table_print(FILE *out, const struct fi_info *list, bool (*wanted)(const void *arg, const struct fi_info *info),
		     const void *arg, unsigned columns, bool colours);

#endif /* UTIL_INFO_TABLE_H */
