/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine of a test, which nobody else drives, with calls of the system counted (spy.h).
 */
#ifndef TEST_COMMON_ENGINE_H
#define TEST_COMMON_ENGINE_H

#include "common/engine/engine.h"
#include "spy.h"

static struct fab_engine engine;

static inline int setup(void **state)
{
	(void) state;
	spy_start();
	return fab_engine_init(&engine, &(struct fab_engine_attr) { 0 });
}

static inline int teardown(void **state)
{
	(void) state;
	fab_engine_fini(&engine);
	spy_real_clock();
	spy_stop();
	return 0;
}

#endif
