/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posted receives and unexpected messages.
 *
 *   match        finds posted receives and unexpected messages by tag and source; group.h: its hash tables
 *   recv         the receives of providers that match messages themselves: multi-receive, peek, claim, discard
 *   recv_cancel  cancels posted receives, which it finds by context
 *   recv_path    the part of recv that every message runs through, compiled inline with the provider's operations
 */
#ifndef FAB_RECEIVE_ROOM_H
#define FAB_RECEIVE_ROOM_H

#include "common/receive/match.h"
#include "common/receive/recv.h"
#include "common/receive/recv_path.h"

#endif
