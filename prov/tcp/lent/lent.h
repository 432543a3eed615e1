/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives that this provider and others lend each other (fi_peer(3)): ours to others, exported.h; theirs to us,
 * owner.h.
 */
#ifndef TCP_LENT_H
#define TCP_LENT_H

#include "tcp/lent/exported.h"
#include "tcp/lent/owner.h"

#endif
