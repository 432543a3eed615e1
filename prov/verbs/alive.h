/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections that fall silent. A device notices that its peer is gone only while it has requests to send. So a
 * connection that has been idle gets a write of no bytes, which the device repeats until its retries are over. And a
 * peer that answers but never posts a receive is given up after a time.
 */
#ifndef VRB_ALIVE_H
#define VRB_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

struct vrb_ep;

/* What was seen of an endpoint's requests. Guarded by the engine's lock. */
struct vrb_alive {
	uint32_t head, tail;		/* of the requests outstanding, at the last look */
	uint64_t moved_ns;		/* head was elsewhere before, or no report was due */
	uint64_t posted_ns;		/* tail was elsewhere before */
};

/* Nanoseconds between two looks; 0: none are needed. */
uint64_t vrb_alive_period_ns(void);
/* Look at an endpoint; with `probe`, post a write if it has been idle (FI_VERBS_KEEPALIVE_INTERVAL). Ends the
 * connection if its requests have waited too long (FI_VERBS_STALL_TIMEOUT). Lock held. */
void vrb_alive_look(struct vrb_ep *ep, uint64_t now_ns, bool probe);

/* The peer may be gone: find out, if no outstanding request tells. Lock held. */
void vrb_alive_ask(struct vrb_ep *ep);

#endif
