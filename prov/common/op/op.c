/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The constant table of operation codes: names, completion flags, counters. Also copies bytes out of an iov.
 */
#include "common/op/op.h"

#include <string.h>
#include "base/bits.h"

const struct fab_op_desc fab_op_desc[FAB_OP_MAX] = {
	[FAB_OP_SEND]         = { "send", FI_MSG | FI_SEND, FAB_CNTR_SEND },
	[FAB_OP_TSEND]        = { "tagged send", FI_TAGGED | FI_SEND, FAB_CNTR_SEND },
	[FAB_OP_CSEND]        = { "collective send", FI_COLLECTIVE | FI_SEND, FAB_CNTR_SEND },
	[FAB_OP_WRITE]        = { "write", FI_RMA | FI_WRITE, FAB_CNTR_WRITE },
	[FAB_OP_ATOMIC]       = { "atomic", FI_ATOMIC | FI_WRITE, FAB_CNTR_WRITE },
	[FAB_OP_FETCH_ATOMIC] = { "fetching atomic", FI_ATOMIC | FI_READ, FAB_CNTR_READ },
	[FAB_OP_READ]         = { "read", FI_RMA | FI_READ, FAB_CNTR_READ },
	[FAB_OP_RECV]         = { "receive", FI_MSG | FI_RECV, FAB_CNTR_RECV },
	[FAB_OP_TRECV]        = { "tagged receive", FI_TAGGED | FI_RECV, FAB_CNTR_RECV },
	[FAB_OP_CRECV]        = { "collective receive", FI_COLLECTIVE | FI_RECV, FAB_CNTR_RECV },
	[FAB_OP_REMOTE_WRITE] = { "remote write", FI_RMA | FI_REMOTE_WRITE, FAB_CNTR_REMOTE_WRITE },
	[FAB_OP_REMOTE_READ]  = { "remote read", FI_RMA | FI_REMOTE_READ, FAB_CNTR_REMOTE_READ },
	[FAB_OP_COLLECTIVE]   = { "collective", FI_COLLECTIVE, FAB_CNTR_WRITE },
	[FAB_OP_REMOTE_ATOMIC] = { "remote atomic", FI_ATOMIC | FI_REMOTE_WRITE, FAB_CNTR_REMOTE_WRITE },
	[FAB_OP_REMOTE_FETCH_ATOMIC] = { "remote fetching atomic", FI_ATOMIC | FI_REMOTE_READ, FAB_CNTR_REMOTE_READ },
};

void fab_iov_gather(uint8_t *to, const struct iovec *iov, size_t at, size_t len)
{
	for (; len; iov++) {
		size_t part;

		if (at >= iov->iov_len) {
			at -= iov->iov_len;
			continue;
		}
		part = fab_min(iov->iov_len - at, len);
		memcpy(to, (const uint8_t *) iov->iov_base + at, part);
		to += part;
		len -= part;
		at = 0;
	}
}
