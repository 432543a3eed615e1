/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rma_bw: bandwidth of RMA between a client and a server's memory. */
#include "lib/bench.h"

int main(int argc, char **argv)
{
	static const struct bench bench = {
		.about = "Bandwidth of a client that reads or writes a server's memory.",
		.ep_type = FI_EP_RDM,
		.windowed = true,
		.rma = true,
	};

	return bench_main(argc, argv, &bench);
}
