/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What to tell somebody who asks for a provider that is not there. Constant tables, and the registry after its start;
 * any thread.
 */
#ifndef FAB_ADVICE_H
#define FAB_ADVICE_H

#include <stdbool.h>

struct fab_strbuf;

/* True if every layer of name[0..len) ("tcp", "tcp;ofi_rxm") is a provider that was registered. Otherwise append why
 * the first one that is missing is not there, and what to do. name is an item of fab_filter_any(). */
bool fab_advice_find(const char *name, int len, struct fab_strbuf *sb);

#endif
