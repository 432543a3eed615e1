/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "verbs/quirks.h"

#include <errno.h>
#include <string.h>
#include <rdma/fabric.h>
#include "base/bits.h"
#include "verbs/verbs.h"

#define SIW_VENDOR	0x626d74	/* ibv_query_device(3) of Soft-iWARP */
#define SIW_SPACER	32768		/* completions: with 20 bytes each the queue reaches beyond page 0x90 */

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

/*
 * The queues of Soft-iWARP are mapped from a file, in which the kernel gives them places from 0 on. libsiw takes place
 * 0x90000 for that of no queue, and refuses the queue there. Which one it is depends on the sizes of those before. So a
 * completion queue that nobody uses covers that place.
 */
void vrb_quirks_prepare(struct ibv_context *verbs, const struct ibv_device_attr *attr)
{
	if (attr->vendor_id == SIW_VENDOR && !ibv_create_cq(verbs, SIW_SPACER, NULL, NULL, 0))
		VRB_LOG(FI_LOG_INFO, FI_LOG_FABRIC, "ibv_create_cq on %s: %s: some queue pairs may be refused\n",
			ibv_get_device_name(verbs->device), strerror(errno));
}
