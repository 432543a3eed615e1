/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_msg: a connection, a message there and one back. */
#include "lib/func.h"

int main(int argc, char **argv)
{
	static const struct func_program program = {
		.about = "Connect two endpoints and send a message each way.",
		.ep_type = FI_EP_MSG,
		.caps = FI_MSG,
		.run = func_greet_each,
	};

	return func_main(argc, argv, &program, NULL);
}
