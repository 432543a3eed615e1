/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posted receives and the messages that meet them.
 *
 *   match  posted receives and unexpected messages, found by tag and source
 *   recv   posting, peek, claim, discard and cancel on top of it
 */
#ifndef FAB_RECEIVE_ROOM_H
#define FAB_RECEIVE_ROOM_H

#include "common/receive/match.h"
#include "common/receive/recv.h"

#endif
