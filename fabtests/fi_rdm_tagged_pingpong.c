/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rdm_tagged_pingpong: latency of tagged messages between two RDM endpoints. */
#include "lib/ft.h"

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Latency of tagged messages between two RDM endpoints.",
		.ep_type = FI_EP_RDM,
		.tagged = true,
		.test = &pp_pingpong,
	};

	return ft_main(argc, argv, &program);
}
