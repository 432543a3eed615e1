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
		FI_WARN(prov, FI_LOG_EP_DATA, "msg is NULL\n");
		return -FI_EINVAL;
	}
	FI_WARN(prov, FI_LOG_EP_DATA, "flags %#" PRIx64 " of a data call: %#" PRIx64 " are not supported by it\n",
		flags, flags & ~allowed);
	return -FI_EBADFLAGS;
}
