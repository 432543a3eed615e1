/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rma_pingpong: latency of RMA writes that arrive, there and back. */
#include "lib/rma.h"

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Latency of RMA writes that arrive, there and back.",
		.ep_type = FI_EP_RDM,
		.ep_types = FT_MSG | FT_RDM,
		.rma = true,
		.operations = ft_rma_pingpong,
	};

	return ft_main(argc, argv, &program);
}
