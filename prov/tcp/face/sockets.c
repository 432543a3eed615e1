/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The name "sockets", for programs and scripts that ask for it: a second provider with the same code, and with the
 * properties that its users expect (automatic progress by default, FI_PROTO_SOCK_TCP everywhere, datagram endpoints,
 * which lose nothing here). Its protocol is tcp's, not the one of upstream's provider with this name. The core lists it
 * only if it is named.
 */
#include "tcp/face/face.h"

#include <stdlib.h>
#include "base/bits.h"
#include "common/params/params.h"
#include "tcp/offer/offer.h"
#include "tcp/params/params.h"

static void sockets_cleanup(void)
{
	free(tcp_params.sockets_iface);
	tcp_params.sockets_iface = NULL;
	tcp_cleanup();
}

#define GROWS	"it grows as needed"
#define SILENCE	"FI_TCP_USER_TIMEOUT sets the time after which a silent peer is given up"

/* The parameters of upstream's provider, since users' scripts set them. */
static const struct fab_param params[] = {
	{ "iface", FI_PARAM_STRING, &tcp_params.sockets_iface, 0, 0,
	  "Interfaces to use for this provider, in the form of FI_TCP_IFACE" },
	{ "conn_timeout", FI_PARAM_INT, &tcp_params.connect_timeout_ms, 1, 3600000,
	  "The same as FI_TCP_CONNECT_TIMEOUT, and overrides it, milliseconds (default: 30000)" },
	{ "pe_waittime", FI_PARAM_INT, NULL, 0, 0, "the progress thread sleeps until something happens" },
	{ "pe_affinity", FI_PARAM_STRING, NULL, 0, 0, "the progress thread has the CPU affinity of the process" },
	{ "max_conn_retry", FI_PARAM_INT, NULL, 0, 0, "see FI_TCP_CONNECT_TIMEOUT and FI_TCP_HOLDOFF" },
	{ "def_conn_map_sz", FI_PARAM_INT, NULL, 0, 0, GROWS },
	{ "def_av_sz", FI_PARAM_INT, NULL, 0, 0, GROWS },
	{ "def_cq_sz", FI_PARAM_INT, NULL, 0, 0, GROWS },
	{ "def_eq_sz", FI_PARAM_INT, NULL, 0, 0, GROWS },
	{ "keepalive_enable", FI_PARAM_BOOL, NULL, 0, 0, SILENCE },
	{ "keepalive_time", FI_PARAM_INT, NULL, 0, 0, SILENCE },
	{ "keepalive_intvl", FI_PARAM_INT, NULL, 0, 0, SILENCE },
	{ "keepalive_probes", FI_PARAM_INT, NULL, 0, 0, SILENCE },
	{ "dgram_drop_rate", FI_PARAM_INT, NULL, 0, 0, "datagrams are not dropped" },
	{ "max_buf_sz", FI_PARAM_INT, NULL, 0, 0, "the kernel sizes its buffers by itself" },
};

struct fi_provider *fab_sockets_prov_ini(void)
{
	tcp_init();
	fab_params_read(&sockets_prov, params, fab_countof(params));
	sockets_prov.getinfo = sockets_getinfo;
	sockets_prov.fabric = sockets_fabric_open;
	sockets_prov.cleanup = sockets_cleanup;
	return &sockets_prov;
}
