/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion queues, counters, event queues, and sets of them.
 *
 *   cq          completion queues, fi_cq(3)
 *   cntr        completion counters, fi_cntr(3)
 *   eq          event queues, fi_eq(3)
 *   queue_open  the engine and wait object of completion queues and counters
 *   sets        poll sets and fi_trywait(3), fi_poll(3)
 */
#ifndef FAB_QUEUE_ROOM_H
#define FAB_QUEUE_ROOM_H

#include "common/queue/cntr.h"
#include "common/queue/cq.h"
#include "common/queue/eq.h"
#include "common/queue/queue_open.h"
#include "common/queue/sets.h"

#endif
