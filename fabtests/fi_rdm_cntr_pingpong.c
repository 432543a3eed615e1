/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rdm_cntr_pingpong: latency of messages with counters for completions, RDM endpoints. */
#include "lib/ft.h"

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Latency of messages with counters for completions, RDM endpoints.",
		.ep_type = FI_EP_RDM,
		.counters = true,
		.test = &pp_pingpong,
	};

	return ft_main(argc, argv, &program);
}
