/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data calls with invalid arguments.
 */
#include "common/calls/calls_message.h"

#include <inttypes.h>
#include <rdma/providers/fi_log.h>

ssize_t fab_calls_refuse(const struct fi_provider *prov, const void *msg, uint64_t flags, uint64_t allowed)
{
	if (!msg) {
		FI_WARN(prov, FI_LOG_EP_DATA, "a data call got NULL in place of a message (fi_sendmsg() and the "
			"like)\n");
		return -FI_EINVAL;
	}
	FI_WARN(prov, FI_LOG_EP_DATA, "a data call got flags %#" PRIx64 ", of which it does not support %#" PRIx64 "\n",
		flags, flags & ~allowed);
	return -FI_EBADFLAGS;
}
