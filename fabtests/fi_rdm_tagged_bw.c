/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rdm_tagged_bw: bandwidth of tagged messages from a client to a server, RDM endpoints. */
#include "lib/ft.h"

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Bandwidth of tagged messages from a client to a server, RDM endpoints.",
		.ep_type = FI_EP_RDM,
		.tagged = true,
		.windowed = true,
		.test = &ft_stream,
	};

	return ft_main(argc, argv, &program);
}
