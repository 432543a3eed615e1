/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Raw keys of regions (fi_mr_map_raw(3)): of any length, which is the one that they have, or not.
 *
 * eva: -eva-slevel 20
 */
#include "prove.h"
#include "common/regions/regions.c"

static uint8_t raw[UINT8_MAX];

/* The key is the end of the array. */
static void prove_len(size_t len)
{
	uint64_t key = 0;
	struct fi_mr_map_raw map = { .raw_key = raw + sizeof(raw) - len, .key_size = len, .key = &key };

	map.base_addr = any_of(0, UINT64_MAX);
	prove((fab_mr_map_raw(&map) == 0) == (len == FAB_MR_KEY_SIZE));
}

int main(void)
{
	any_bytes(raw, sizeof(raw));
	//@ loop unroll 300;
	for (size_t len = 1; len <= UINT8_MAX; len++)
		prove_len(len);
	reached();
	return 0;
}
