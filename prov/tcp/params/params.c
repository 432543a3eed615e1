/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider's names, and its parameters with their defaults.
 */
#include "tcp/params/params.h"

#include <stdlib.h>
#include "base/bits.h"
#include "common/params/params.h"

struct fi_provider tcp_prov = {
	.name = "tcp",
	.version = FI_VERSION(206, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
};

struct fi_provider sockets_prov = {
	.name = "sockets",
	.version = FI_VERSION(206, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
};

struct tcp_params tcp_params = {
	.tx_size = TCP_TX_SIZE,
	.rx_size = TCP_RX_SIZE,
	.max_inject = TCP_INJECT_SIZE,
	.eager_max = TCP_EAGER_MAX,
	.credit = TCP_CREDIT,
	.unexp_max = TCP_UNEXP_MAX,
	.stranger_max = TCP_STRANGER_MAX,
	.stranger_conn = TCP_STRANGER_CONN,
	.nodelay = true,
	.connect_timeout_ms = TCP_CONNECT_TIMEOUT_MS,
	.reply_timeout_ms = TCP_REPLY_TIMEOUT_MS,
	.user_timeout_ms = TCP_USER_TIMEOUT_MS,
	.holdoff_ms = TCP_HOLDOFF_MS,
	.auth_address = true,
};

static const struct fab_param params[] = {
	{ "iface", FI_PARAM_STRING, &tcp_params.iface, 0, 0,
	  "Interfaces to use: a comma-separated list of names, globs (eth*), networks (10.1.0.0/16); each with ^ or"
	  " ! in front to leave it out" },
	{ "advertise", FI_PARAM_STRING, &tcp_params.advertise, 0, 0,
	  "Address that peers are told in place of the one that is listened at, for NAT: 192.0.2.1 or 192.0.2.1:5000,"
	  " and with a comma one of IPv6, [2001:db8::1] (default: none)" },
	{ "trust_advertised", FI_PARAM_BOOL, &tcp_params.trust_advertised, 0, 1,
	  "Believe peers that say they are at another address than the one they come from, as those with "
	  "FI_TCP_ADVERTISE do (default: off)" },
	{ "firewall_addr", FI_PARAM_BOOL, &tcp_params.firewall_addr, 0, 1,
	  "Nobody can connect to this process, it is behind a firewall: peers are told, and keep the connections that "
	  "it makes (default: off)" },
	{ "port_low_range", FI_PARAM_INT, &tcp_params.port_low, 0, 65535,
	  "Lowest port to listen on; with FI_TCP_PORT_HIGH_RANGE (default: any port)" },
	{ "port_high_range", FI_PARAM_INT, &tcp_params.port_high, 0, 65535,
	  "Highest port to listen on; with FI_TCP_PORT_LOW_RANGE (default: any port)" },
	{ "out_port_low_range", FI_PARAM_INT, &tcp_params.out_port_low, 0, 65535,
	  "Lowest port to connect from; with FI_TCP_OUT_PORT_HIGH_RANGE (default: any port)" },
	{ "out_port_high_range", FI_PARAM_INT, &tcp_params.out_port_high, 0, 65535,
	  "Highest port to connect from; with FI_TCP_OUT_PORT_LOW_RANGE (default: any port)" },
	{ "tx_size", FI_PARAM_SIZE_T, &tcp_params.tx_size, 1, TCP_TX_SIZE_MAX,
	  "Operations that may be outstanding on an endpoint that does not ask for another number; beyond them "
	  "-FI_EAGAIN (default: 1024)" },
	{ "rx_size", FI_PARAM_SIZE_T, &tcp_params.rx_size, 1, TCP_RX_SIZE_MAX,
	  "Receives that may be posted to an endpoint that does not ask for another number; beyond them -FI_EAGAIN "
	  "(default: 65536)" },
	{ "max_inject", FI_PARAM_SIZE_T, &tcp_params.max_inject, 0, TCP_INJECT_SIZE,
	  "Largest message for fi_inject and FI_INJECT, bytes (default and maximum: 128)" },
	{ "max_saved_size", FI_PARAM_SIZE_T, &tcp_params.eager_max, 0, SIZE_MAX,
	  "Largest message that peers may send before a receive is posted, bytes; longer ones are announced and "
	  "stay with the sender until then (default: 262144)" },
	{ "credit", FI_PARAM_SIZE_T, &tcp_params.credit, 4096, 1 << 30,
	  "Memory for unexpected messages of one peer, bytes (default: 524288)" },
	{ "unexp_max", FI_PARAM_SIZE_T, &tcp_params.unexp_max, 4096, SIZE_MAX,
	  "The same for a peer that runs another libfabric, which knows no credits: past it, or when a longer message "
	  "comes, its connection is not read until receives are posted (default: 67108864)" },
	{ "stranger_max", FI_PARAM_SIZE_T, &tcp_params.stranger_max, 4096, SIZE_MAX,
	  "Memory for unexpected messages of all peers together whose address is not in the address vector, bytes: "
	  "past it their connections are not read until receives are posted (default: 67108864)" },
	{ "nodelay", FI_PARAM_BOOL, &tcp_params.nodelay, 0, 1,
	  "Send small segments at once, TCP_NODELAY (default: on)" },
	{ "disable_auto_progress", FI_PARAM_BOOL, &tcp_params.auto_progress_off, 0, 1,
	  "Start no progress thread, also for FI_PROGRESS_AUTO (default: off)" },
	{ "connect_timeout", FI_PARAM_INT, &tcp_params.connect_timeout_ms, 1, 3600000,
	  "Longest wait for a peer's kernel to answer a connect, and for the request on an incoming connection, "
	  "milliseconds (default: 30000)" },
	{ "reply_timeout", FI_PARAM_INT, &tcp_params.reply_timeout_ms, 0, 86400000,
	  "Longest wait for a peer that is there, but does not make progress, to accept a connection, milliseconds;"
	  " 0 is for ever (default: 600000)" },
	{ "user_timeout", FI_PARAM_INT, &tcp_params.user_timeout_ms, 0, 86400000,
	  "A connected peer whose kernel has not been heard of for so long is taken for dead, milliseconds; 0: "
	  "leave it to the kernel's defaults (default: 60000)" },
	{ "stall_timeout", FI_PARAM_INT, &tcp_params.stall_timeout_ms, 0, 86400000,
	  "A connected peer whose machine is well, but which has read and answered nothing for so long, though "
	  "operations wait for it, is given up, milliseconds; 0: never (default: 0)" },
	{ "max_conn", FI_PARAM_INT, &tcp_params.max_conn, 0, 1 << 20,
	  "Connections of this process: past it, those of FI_EP_RDM endpoints that have been idle for longest are "
	  "closed, and opened again when they are needed; 0: three quarters of the limit on open files (default: 0)" },
	{ "stranger_conn", FI_PARAM_INT, &tcp_params.stranger_conn, 0, 1 << 20,
	  "Connections of an FI_EP_RDM endpoint from peers that are in no address vector: at the limit idle ones are "
	  "closed, and new ones have to wait; 0: no limit but that of all connections (default: 16384)" },
	{ "holdoff", FI_PARAM_INT, &tcp_params.holdoff_ms, 0, 3600000,
	  "After a failed connect, further operations to that peer fail at once for so long, milliseconds (default:"
	  " 1000)" },
	{ "auth_address", FI_PARAM_BOOL, &tcp_params.auth_address, 0, 1,
	  "Bind the proof of an authorization key to the addresses of both ends, so that nobody can pass it on. Off "
	  "where address translation lies between; both ends have to agree (default: on)" },

	{ "prov_name", FI_PARAM_STRING, NULL, 0, 0, "the provider's name is tcp" },
	{ "max_saved", FI_PARAM_INT, NULL, 0, 0,
	  "unexpected messages are bounded by their bytes, FI_TCP_CREDIT, not by their number" },
	{ "max_rx_size", FI_PARAM_SIZE_T, NULL, 0, 0, "see FI_TCP_RX_SIZE" },
	{ "staging_sbuf_size", FI_PARAM_INT, NULL, 0, 0,
	  "small messages are gathered in one buffer a progress engine" },
	{ "prefetch_rbuf_size", FI_PARAM_INT, NULL, 0, 0,
	  "one buffer a progress engine takes whatever a socket has" },
	{ "zerocopy_size", FI_PARAM_SIZE_T, NULL, 0, 0, "the kernel's zero copy is not used" },
	{ "trace_msg", FI_PARAM_BOOL, NULL, 0, 0, "there is no log of single messages" },
	{ "io_uring", FI_PARAM_BOOL, NULL, 0, 0, "io_uring is not used" },
};

/* A range of ports has two ends, or it is none. */
static void params_check_range(const char *which, int *low, int *high)
{
	if (!*low == !*high && *low <= *high)
		return;
	TCP_WARN(FI_LOG_CORE, "FI_TCP_%sPORT_LOW_RANGE is %d, FI_TCP_%sPORT_HIGH_RANGE %d: both are needed, the low "
		 "one first; any port is used\n", which, *low, which, *high);
	*low = *high = 0;
}

void tcp_params_read(void)
{
	fab_params_read(&tcp_prov, params, fab_countof(params));
	params_check_range("", &tcp_params.port_low, &tcp_params.port_high);
	params_check_range("OUT_", &tcp_params.out_port_low, &tcp_params.out_port_high);
	/* What the wire carries in 32 bits; and a message that is sent unasked must fit into the credit. */
	tcp_params.eager_max = fab_min(tcp_params.eager_max, tcp_params.credit / 2);
}

void tcp_params_free(void)
{
	free(tcp_params.iface);
	free(tcp_params.advertise);
	tcp_params.iface = tcp_params.advertise = NULL;
}
