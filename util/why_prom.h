/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pages as OpenMetrics text, for the textfile collector of a node exporter.
 */
#ifndef UTIL_WHY_PROM_H
#define UTIL_WHY_PROM_H

#include <stdio.h>
#include "pages.h"

/* Write every labelled counter and figure of the first cnt pages, and what fi_why has found. verdict may be NULL. */
void why_prom(FILE *out, const struct pages *pages, size_t cnt, const struct fi_stats_verdict *verdict);

#endif
