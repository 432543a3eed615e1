/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "verbs/quirks.h"

#include <rdma/fabric.h>
#include "base/bits.h"

/*
 * iWARP. The accepting end may not send before the other end has sent (RFC 5044, section 7.1.2). Hardware ensures that.
 * Soft-iWARP ends a connection whose first message arrives together with the answer to its request, and the other end
 * need not send anything; the time is enough for a busy kernel to read an answer. Soft-iWARP may report a message as
 * complete while a read before it is outstanding. A read is executed after all requests before it anyway (RFC 5040,
 * section 5.5), and Soft-iWARP ends a queue pair that gets a read with a fence. Messages that find no receive wait in
 * TCP, which also has probes of its own.
 */
static const struct vrb_quirks rows[] = {
	{ .transport = IBV_TRANSPORT_IWARP, .protocol = FI_PROTO_IWARP, .fabric = "Ethernet-iWARP",
	  .reads_overtaken = true, .reads_are_writes = true, .holds_unanswered = true, .accepted_ns = 20000000 },
	/* InfiniBand and RoCE; also the row of what is none of these */
	{ .transport = IBV_TRANSPORT_IB, .protocol = FI_PROTO_RDMA_CM_IB_RC, .data_len = sizeof(uint32_t),
	  .gids = true, .repeats = true, .probes = true },
};

const struct vrb_quirks *vrb_quirks_of(const struct ibv_context *verbs)
{
	size_t i = 0;

	while (i < fab_countof(rows) - 1 && rows[i].transport != verbs->device->transport_type)
		i++;
	return &rows[i];
}
