/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rdm_bw: bandwidth of messages from a client to a server, RDM endpoints. */
#include "lib/ft.h"

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Bandwidth of messages from a client to a server, RDM endpoints.",
		.ep_type = FI_EP_RDM,
		.windowed = true,
		.test = &ft_stream,
	};

	return ft_main(argc, argv, &program);
}
