/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of fi_getinfo_test that goes through attributes: whatever is asked for, each entry that comes back has
 * it, or nothing comes back. Each is a test of unit.h.
 */
#ifndef FABTESTS_GETINFO_ATTRS_H
#define FABTESTS_GETINFO_ATTRS_H

#include "unit.h"

extern const struct unit_test getinfo_attr_tests[];
extern const size_t getinfo_attr_test_cnt;

#endif /* FABTESTS_GETINFO_ATTRS_H */
