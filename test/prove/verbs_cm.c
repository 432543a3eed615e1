/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private data of the connection manager, of every length that an event can say: of answers, of XRC, and of requests.
 *
 * eva: -eva-slevel 20
 */
#include "prove.h"
#include "common/ops/ops.h"

/* It asks for the type of a table, and Frama-C does not parse that. */
#undef FAB_OPS_FILL
#define FAB_OPS_FILL(ops)	((void) 0)
#include "verbs/cm.c"
#include "verbs/xrc_cm.c"

static uint8_t data[UINT8_MAX];

static void prove_xrc(const uint8_t *at, uint8_t len)
{
	size_t cnt;
	const void *told = vrb_xrc_unpack(at, len, &cnt);

	prove(cnt <= VRB_CM_DATA_MAX);
	if (told)
		prove_readable(told, cnt);
}

/* The data is the end of the array, so that a byte after it cannot be read. */
static void prove_len(uint8_t len)
{
	const uint8_t *at = data + sizeof(data) - len;
	struct vrb_xrc_wire wire;
	const void *told;
	size_t cnt;

	any_bytes(data, sizeof(data));
	told = vrb_cm_unpack(at, len, &cnt);
	prove(cnt <= VRB_CM_DATA_MAX);
	if (told)
		prove_readable(told, cnt);
	/* Eva would forget which handshake a result is of */
	if (!len || at[0] < VRB_XRC_UP_VERSION)
		prove_xrc(at, len);
	else if (at[0] == VRB_XRC_UP_VERSION)
		prove_xrc(at, len);
	else
		prove_xrc(at, len);
	xrc_cm_take(at, len, &wire);
	xrc_cm_take(NULL, len, &wire);
}

int main(void)
{
	//@ loop unroll 256;
	for (unsigned len = 0; len <= UINT8_MAX; len++)
		prove_len(len);
	reached();
	return 0;
}
