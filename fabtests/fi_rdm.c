/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_rdm: a message there and one back, RDM endpoints. */
#include "lib/func.h"

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Send a message each way between RDM endpoints.",
		.ep_type = FI_EP_RDM,
		.caps = FI_MSG,
		.run = func_greet_each,
	};

	return func_main(argc, argv, &program, NULL);
}
