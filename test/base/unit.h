/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cmocka, with the headers that it wants first.
 */
#ifndef TEST_BASE_UNIT_H
#define TEST_BASE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Leave the test, which cannot show anything here; test/run-test carries the reason to the result. */
#define unit_skip(reason) do { print_message("skip: %s\n", reason); skip(); return; } while (0)

#endif
