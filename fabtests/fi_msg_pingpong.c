/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_msg_pingpong: latency of messages between two MSG endpoints. */
#include "lib/ft.h"

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Latency of messages between two MSG endpoints.",
		.ep_type = FI_EP_MSG,
		.test = &pp_pingpong,
	};

	return ft_main(argc, argv, &program);
}
