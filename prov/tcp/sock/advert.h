/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The address announced to peers in place of our own: the address of a NAT, or a forwarded port.
 */
#ifndef TCP_ADVERT_H
#define TCP_ADVERT_H

#include <stdbool.h>
#include "base/addr.h"

/* Read FI_TCP_ADVERTISE (tcp_params.advertise). An invalid address is logged as a warning, and ignored. One thread. */
void tcp_advert_init(void);
/* Replace an own address by the advertised one; the port stays if none is advertised. False: none is advertised for
 * this family. Any thread. */
bool tcp_advertise(union fab_sockaddr *addr);

#endif
