/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_dgram: a datagram there and one back. */
#include "lib/func.h"

static int run(struct func *func)
{
	struct func_ep ep;
	uint32_t i;

	FUNC_TRY(func_ep_open(func, &ep, NULL));
	for (i = 0; i < func->iterations; i++)
		FUNC_TRY(func_greet(func, &ep, func_size(func, 0), i));
	return 0;
}

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Send a datagram each way.",
		.ep_type = FI_EP_DGRAM,
		.caps = FI_MSG,
		.prefix = true,
		.run = run,
	};

	return func_main(argc, argv, &program, NULL);
}
