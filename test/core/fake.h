/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Providers made up for tests of the core. Their names have a 'q', which no real provider's has, so that a test can
 * tell them from what else is there. Each is asked like a real one, and counts.
 */
#ifndef TEST_CORE_FAKE_H
#define TEST_CORE_FAKE_H

#include <rdma/providers/fi_prov.h>

#include <stdbool.h>

enum { FAKE_MAX = 8 };

struct fake {
	struct fi_provider prov;
	const char *names[FAKE_MAX];	/* prov_name of each entry; "" to leave it NULL; ends with NULL */
	uint32_t addr_format;		/* of all entries */
	int ret;			/* what getinfo returns if it is not 0 */
	unsigned misses;		/* reasons to report, of as many attributes of one entry, before -FI_ENODATA */
	bool wrong_type;		/* the first of them is that the endpoint type is another */
	bool asks_others;		/* calls fi_getinfo() itself, for everybody (but not once more) */
	_Atomic unsigned calls;		/* of getinfo */
	_Atomic unsigned told;		/* calls that found somebody listening */
	_Atomic unsigned cleanups;
};

/* qa, qb: core providers; ofi_q: a utility provider. Each test starts them afresh with fakes_register(). */
extern struct fake fake_a, fake_b, fake_util;

/* Start the library and register the three: qa and qb with one entry each, ofi_q with one over each of them. */
void fakes_register(void);

/* prov_name of all entries that are fakes', in order, separated by blanks, in a static buffer. */
const char *fake_names(const struct fi_info *info);

#endif
