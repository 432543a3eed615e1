/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider's entry: struct fi_provider, parameters, start and cleanup.
 */
#include "config.h"
#include "udp/udp.h"

#include <stdlib.h>
#include "base/bits.h"
#include "common/params/params.h"

struct udp_params udp_params = {
	.tx_size = UDP_TX_SIZE,
	.rx_size = UDP_RX_SIZE,
	.multicast_ttl = 1,
};

static void udp_cleanup(void)
{
	free(udp_params.iface);
	udp_params.iface = NULL;
}

struct fi_provider udp_prov = {
	.name = "udp",
	.version = FI_VERSION(206, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = udp_getinfo,
	.fabric = udp_fabric_open,
	.cleanup = udp_cleanup,
};

static const struct fab_param params[] = {
	{ "iface", FI_PARAM_STRING, &udp_params.iface, 0, 0,
	  "Interfaces to use: a comma-separated list of names, globs (eth*), networks (10.1.0.0/16); ^ or ! in front "
	  "of an item excludes it (default: all)" },
	{ "tx_size", FI_PARAM_SIZE_T, &udp_params.tx_size, 1, UDP_TX_SIZE_MAX,
	  "Default of tx_attr->size, the number of sends that may be outstanding on an endpoint; further ones get "
	  "-FI_EAGAIN (default: 1024)" },
	{ "rx_size", FI_PARAM_SIZE_T, &udp_params.rx_size, 1, UDP_RX_SIZE_MAX,
	  "Default of rx_attr->size, the number of receives that may be posted to an endpoint; further ones get "
	  "-FI_EAGAIN (default: 1024)" },
	{ "multicast_ttl", FI_PARAM_INT, &udp_params.multicast_ttl, 0, 255,
	  "Time to live of datagrams to a multicast group: 0 stays on this machine, 1 in its network, n crosses n - 1 "
	  "routers (default: 1)" },
};

/* Called once in a process: by the registry if built in; a DSO exports it as fi_prov_ini(). */
struct fi_provider *fab_udp_prov_ini(void);

struct fi_provider *fab_udp_prov_ini(void)
{
	fab_params_read(&udp_prov, params, fab_countof(params));
	return &udp_prov;
}

#ifdef HAVE_UDP_DL
FI_EXT_INI
{
	return fab_udp_prov_ini();
}
#endif
