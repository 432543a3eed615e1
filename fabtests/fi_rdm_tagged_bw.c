/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rdm_tagged_bw: bandwidth of tagged messages from a client to a server, RDM endpoints. */
#include "lib/bench.h"

int main(int argc, char **argv)
{
	static const struct bench bench = {
		.about = "Bandwidth of tagged messages from a client to a server, RDM endpoints.",
		.ep_type = FI_EP_RDM,
		.tagged = true,
		.windowed = true,
		.test = &bench_stream,
	};

	return bench_main(argc, argv, &bench);
}
