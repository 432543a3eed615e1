/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Event channels of librdmacm, each a descriptor. An engine of a domain has one for all its connections; until an
 * endpoint is enabled, its id is on a channel of the domain, which nobody reads.
 */
#ifndef VRB_CHANNEL_H
#define VRB_CHANNEL_H

#include <rdma/rdma_cma.h>
#include "common/engine/engine.h"

/* Takes the events of a CM id, whose context points to it. Lock of the engine held. */
struct vrb_cm_sink {
	/* Handle an event, which the caller acknowledges afterwards. */
	void (*event)(struct vrb_cm_sink *sink, const struct rdma_cm_event *event);
	/* Called when the event has been acknowledged, so that the id may be destroyed here. NULL: not called. */
	void (*acknowledged)(struct vrb_cm_sink *sink);
};

/* The channel of an engine. Zeroed before it is opened. */
struct vrb_channel {
	struct rdma_event_channel *cm;	/* owned; NULL: not open */
	struct fab_source src;
};

/* Open a channel whose reads do not block, which the caller destroys. 0 or -errno, logged. */
int vrb_channel_make(struct rdma_event_channel **cm);
/* Open the channel of an engine, which passes each event to the sink of its id; an id without a sink gets none. 0 or
 * -errno, logged. Lock of the engine held. */
int vrb_channel_open(struct vrb_channel *channel, struct fab_engine *engine);
/* Close a channel that no id is on. Idempotent. Lock of the engine held. */
void vrb_channel_close(struct vrb_channel *channel);

#endif
