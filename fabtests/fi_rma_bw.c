/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rma_bw: bandwidth of RMA between a client and a server's memory. */
#include "lib/rma.h"

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Bandwidth of a client that reads or writes a server's memory.",
		.ep_type = FI_EP_RDM,
		.windowed = true,
		.ep_types = FT_MSG | FT_RDM,
		.rma = true,
		.operations = ft_rma_bw,
	};

	return ft_main(argc, argv, &program);
}
