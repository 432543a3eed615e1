/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives shared with other providers (fi_peer(3)): ours used by others (exported.h), and others' used by us
 * (owner.h).
 */
#ifndef TCP_LENT_H
#define TCP_LENT_H

#include "tcp/lent/exported.h"
#include "tcp/lent/owner.h"

#endif
