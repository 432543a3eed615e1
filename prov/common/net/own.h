/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The addresses of this host.
 */
#ifndef FAB_OWN_H
#define FAB_OWN_H

#include <stdbool.h>
#include "base/addr.h"

/* True if an interface of this host has the address; the port does not count. False for a wildcard, and for an IPv4
 * address that is written as an IPv6 address. Any thread. */
bool fab_net_is_own(const union fab_sockaddr *addr);

#endif
