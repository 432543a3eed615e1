/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_dgram: a datagram there and one back. */
#include "lib/func.h"

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Send a datagram each way.",
		.ep_type = FI_EP_DGRAM,
		.caps = FI_MSG,
		.prefix = true,
		.run = func_greet_each,
	};

	return func_main(argc, argv, &program, NULL);
}
