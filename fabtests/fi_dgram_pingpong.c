/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_dgram_pingpong: latency of datagrams, DGRAM endpoints. */
#include "lib/ft.h"

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Latency of datagrams, DGRAM endpoints.",
		.ep_type = FI_EP_DGRAM,
		.test = &pp_pingpong,
	};

	return ft_main(argc, argv, &program);
}
