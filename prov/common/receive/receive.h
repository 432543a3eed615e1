/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posted receives and the messages that meet them.
 *
 *   match      posted receives and unexpected messages, found by tag and source
 *   recv       on top of it, for all that match messages themselves: multi-receive, peek, claim, discard, cancel, flush
 *   recv_path  what every message passes of that, inlined with the provider's operations
 */
#ifndef FAB_RECEIVE_ROOM_H
#define FAB_RECEIVE_ROOM_H

#include "common/receive/match.h"
#include "common/receive/recv.h"
#include "common/receive/recv_path.h"

#endif
