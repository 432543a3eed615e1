/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages that find a datagram endpoint by its service.
 *
 * eva: -eva-slevel 60
 */
#include "prove.h"
#include "verbs/names_wire.c"

static struct vrb_names_msg msg;
static struct vrb_ud_name name;

int main(void)
{
	//@ loop unroll 8;
	for (uint8_t code = 0; code < 5; code++) {
		any_bytes(&msg, sizeof(msg));
		if (vrb_names_valid(&msg, any_of(0, SIZE_MAX), code)) {
			prove(code == msg.code);
			prove(msg.service != 0);
			vrb_names_unpack(&msg, &name);
			if (code == VRB_NAMES_FOUND)
				prove(name.sl <= SL_MAX);
		}
	}
	reached();
	return 0;
}
