/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From a socket to a stream: exchanges (cm.h), proof of authorization keys (auth.h), kinds of endpoints (kind.h), and
 * listeners (listen.h).
 */
#ifndef TCP_HANDSHAKE_H
#define TCP_HANDSHAKE_H

#include "tcp/handshake/cm.h"
#include "tcp/handshake/kind.h"
#include "tcp/handshake/listen.h"

#endif
