/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address that peers are told in place of the one that we listen at: behind a NAT, or a port that is forwarded.
 */
#ifndef TCP_ADVERT_H
#define TCP_ADVERT_H

#include <stdbool.h>
#include "base/addr.h"

/* Read FI_TCP_ADVERTISE (tcp_params.advertise). What is no address is a warning, and left out. One thread. */
void tcp_advert_init(void);
/* Put what is advertised in place of an own address; its port stays where none is. False: nothing is, for that family.
 * Any thread. */
bool tcp_advertise(union fab_sockaddr *addr);

#endif
