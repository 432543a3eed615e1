/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rma_tx_completion: time from posting an RMA write to its completion. */
#include "lib/rma.h"

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Time from posting an RMA write to its completion.",
		.ep_type = FI_EP_RDM,
		.ep_types = FT_MSG | FT_RDM,
		.rma = true,
		.operations = ft_rma_tx_completion,
	};

	return ft_main(argc, argv, &program);
}
