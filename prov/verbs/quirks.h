/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How devices differ, as a table: the one place that asks for the sort of a device. What a device can be asked for, or
 * tried (limits, inline data, atomics), is not here.
 */
#ifndef VRB_QUIRKS_H
#define VRB_QUIRKS_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct vrb_quirks {
	enum ibv_transport_type transport;	/* the row is for devices of this transport */
	uint32_t protocol;		/* of reliable connections, FI_PROTO_* */
	const char *fabric;		/* of all such devices; NULL: it depends on the port's address */
	uint32_t data_len;		/* bytes of FI_REMOTE_CQ_DATA */
	bool gids;			/* ports are known by GIDs, and have datagrams */
	bool repeats;			/* a message that finds no receive is sent again after min_rnr_timer */
	bool probes;			/* only a request shows that the peer is gone (alive.h) */
	/* Requests behind a read are reported before it is done, so they must wait for it (IBV_SEND_FENCE); a read
	 * itself must not have the flag. */
	bool reads_overtaken;
	bool reads_are_writes;		/* the peer's device writes what was read: the region allows remote writes */
	bool holds_unanswered;		/* destroying a queue pair waits for the answer to its request (unanswered.c) */
	uint64_t accepted_ns;		/* time after which an accepting end may send first */
};

/* The row of a device. Any thread. */
const struct vrb_quirks *vrb_quirks_of(const struct ibv_context *verbs);

/* Work around what a driver does wrong, for as long as the process runs. Call it once for an open device, before the
 * provider makes a queue there. attr is of ibv_query_device(3). Failure is logged. The lock of device.c is held. */
void vrb_quirks_prepare(struct ibv_context *verbs, const struct ibv_device_attr *attr);

#endif
