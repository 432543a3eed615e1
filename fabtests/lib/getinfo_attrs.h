/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of fi_getinfo_test that goes through attributes: whatever is asked for, each entry that comes back has
 * it, or nothing comes back. Each is a test of unit.h.
 */
#ifndef FABTESTS_GETINFO_ATTRS_H
#define FABTESTS_GETINFO_ATTRS_H

#include <stdbool.h>

#include "unit.h"

#define GETINFO_VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

/* Whether an entry is what the hints ask for. */
typedef bool getinfo_fits_fn(const struct fi_info *hints, const struct fi_info *info);

/* Hints for the kind of endpoint that the program has opened. NULL without memory. */
struct fi_info *getinfo_hints(const struct unit *unit);

/* Ask with hints, which are freed (NULL: there was no memory): every answer fits. `found` may be NULL, or counts those
 * that found something; without it there must be an answer. 0, or what unit_fail() gives. */
int getinfo_ask(struct unit *unit, struct fi_info *hints, getinfo_fits_fn *fits, unsigned *found);

/* Ask with hints, which are freed: there is no answer. */
int getinfo_ask_none(struct fi_info *hints);

extern const struct unit_test getinfo_attr_tests[];
extern const size_t getinfo_attr_test_cnt;

#endif /* FABTESTS_GETINFO_ATTRS_H */
