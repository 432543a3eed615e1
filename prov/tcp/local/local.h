/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streams between processes of one host.
 */
#ifndef TCP_LOCAL_ROOM_H
#define TCP_LOCAL_ROOM_H

#include "tcp/local/direct.h"
#include "tcp/local/greet.h"
#include "tcp/local/pair.h"
#include "tcp/local/windows.h"

#endif
