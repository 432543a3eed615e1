/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See advert.h. Written once, when the provider is loaded.
 */
#include "tcp/sock/advert.h"

#include <stdio.h>
#include <string.h>
#include "tcp/params/params.h"

static union fab_sockaddr advertised4, advertised6;

static void advert_add(const char *item, int len)
{
	union fab_sockaddr addr;
	char text[FAB_ADDR_STRLEN];

	snprintf(text, sizeof(text), "fi_sockaddr://%.*s", len, item);
	if (fab_addr_from_str(text, &addr) || fab_addr_is_any(&addr.sa))
		TCP_WARN(FI_LOG_CORE, "FI_TCP_ADVERTISE: \"%.*s\" is not an address; examples are 192.0.2.1, "
			 "192.0.2.1:5000, [2001:db8::1] or [2001:db8::1]:5000\n", len, item);
	else if (addr.sa.sa_family == AF_INET)
		advertised4 = addr;
	else
		advertised6 = addr;
}

void tcp_advert_init(void)
{
	const char *item = tcp_params.advertise;

	advertised4.sa.sa_family = advertised6.sa.sa_family = AF_UNSPEC;
	while (item && *item) {
		int len = strcspn(item, ", ");

		if (len)
			advert_add(item, len);
		item += len;
		item += strspn(item, ", ");
	}
}

bool tcp_advertise(union fab_sockaddr *addr)
{
	const union fab_sockaddr *instead = addr->sa.sa_family == AF_INET6 ? &advertised6 : &advertised4;
	uint16_t port = fab_addr_port(&addr->sa);

	if (instead->sa.sa_family != addr->sa.sa_family)
		return false;
	*addr = *instead;
	if (!fab_addr_port(&addr->sa))
		fab_addr_set_port(&addr->sa, port);
	return true;
}
