/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls of libfabric, written once: each puts its arguments into a struct fab_op for the provider.
 *
 *   calls_message  fi_msg(3), fi_tagged(3), fi_rma(3)
 *   calls_atomic   fi_atomic(3)
 *   calls_deferred deferred work, fi_trigger(3), as the same operations
 */
#ifndef FAB_CALLS_ROOM_H
#define FAB_CALLS_ROOM_H

#include "common/calls/calls_atomic.h"
#include "common/calls/calls_deferred.h"
#include "common/calls/calls_message.h"

#endif
