/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider's parameters with their defaults, and its names.
 */
#include "tcp/params/params.h"

#include <stdlib.h>
#include <string.h>
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
	.shared_memory = true,
	.eager_max = TCP_EAGER_MAX,
	.credit = TCP_CREDIT,
	.unexp_max = TCP_UNEXP_MAX,
	.stranger_max = TCP_STRANGER_MAX,
	.stranger_conn = TCP_STRANGER_CONN,
	.nodelay = true,
	.local = true,
	.connect_timeout_ms = TCP_CONNECT_TIMEOUT_MS,
	.reply_timeout_ms = TCP_REPLY_TIMEOUT_MS,
	.user_timeout_ms = TCP_USER_TIMEOUT_MS,
	.holdoff_ms = TCP_HOLDOFF_MS,
	.auth_address = true,
};

static const struct fab_param params[] = {
	{ "iface", FI_PARAM_STRING, &tcp_params.iface, 0, 0,
	  "Interfaces to use: a comma-separated list of names, globs (eth*), networks (10.1.0.0/16); ^ or ! in front "
	  "of an item excludes it (default: all)" },
	{ "advertise", FI_PARAM_STRING, &tcp_params.advertise, 0, 0,
	  "Address to announce to peers in place of the address of the listening socket, for hosts behind a NAT: "
	  "192.0.2.1 or 192.0.2.1:5000, or, behind a comma, an IPv6 address, [2001:db8::1] (default: none)" },
	{ "trust_advertised", FI_PARAM_BOOL, &tcp_params.trust_advertised, 0, 1,
	  "Trust peers that announce another address than the one they connect from, as peers with FI_TCP_ADVERTISE do "
	  "(default: off)" },
	{ "firewall_addr", FI_PARAM_BOOL, &tcp_params.firewall_addr, 0, 1,
	  "This process is behind a firewall, so no peer can connect to it: it tells its peers, and they keep the "
	  "connections that it opens (default: off)" },
	{ "port_low_range", FI_PARAM_INT, &tcp_params.port_low, 0, 65535,
	  "Lowest port to listen on; with FI_TCP_PORT_HIGH_RANGE (default: any port)" },
	{ "port_high_range", FI_PARAM_INT, &tcp_params.port_high, 0, 65535,
	  "Highest port to listen on; with FI_TCP_PORT_LOW_RANGE (default: any port)" },
	{ "out_port_low_range", FI_PARAM_INT, &tcp_params.out_port_low, 0, 65535,
	  "Lowest port to connect from; with FI_TCP_OUT_PORT_HIGH_RANGE (default: any port)" },
	{ "out_port_high_range", FI_PARAM_INT, &tcp_params.out_port_high, 0, 65535,
	  "Highest port to connect from; with FI_TCP_OUT_PORT_LOW_RANGE (default: any port)" },
	{ "tx_size", FI_PARAM_SIZE_T, &tcp_params.tx_size, 1, TCP_TX_SIZE_MAX,
	  "Default of tx_attr->size, the number of operations that may be outstanding on an endpoint; further ones get "
	  "-FI_EAGAIN (default: 1024)" },
	{ "rx_size", FI_PARAM_SIZE_T, &tcp_params.rx_size, 1, TCP_RX_SIZE_MAX,
	  "Default of rx_attr->size, the number of receives that may be posted to an endpoint; further ones get "
	  "-FI_EAGAIN (default: 65536)" },
	{ "max_inject", FI_PARAM_SIZE_T, &tcp_params.max_inject, 0, TCP_INJECT_SIZE,
	  "Largest message for fi_inject and FI_INJECT, bytes (default and maximum: 128)" },
	{ "max_saved_size", FI_PARAM_SIZE_T, &tcp_params.eager_max, 0, SIZE_MAX,
	  "Largest message that peers may send before a receive is posted, bytes; the sender announces longer ones and "
	  "keeps their data until then (default: 262144)" },
	{ "credit", FI_PARAM_SIZE_T, &tcp_params.credit, 4096, 1 << 30,
	  "Memory for unexpected messages of one peer, bytes. Its connection ends if it announces more than 65536 "
	  "messages beside these, or does not read 262144 answers (default: 524288)" },
	{ "unexp_max", FI_PARAM_SIZE_T, &tcp_params.unexp_max, 4096, SIZE_MAX,
	  "Memory for unexpected messages of one peer that runs another libfabric, which has no credits, bytes: beyond "
	  "it, or when a longer message arrives, its connection is not read until receives are posted (default: "
	  "67108864)" },
	{ "stranger_max", FI_PARAM_SIZE_T, &tcp_params.stranger_max, 4096, SIZE_MAX,
	  "Memory for unexpected messages of all peers whose address is not in the address vector, together, bytes, of "
	  "which one has an eighth: beyond it their connections are not read until receives are posted. A quarter as "
	  "much in addition is for answers that they do not read: beyond it a connection ends (default: 67108864)" },
	{ "nodelay", FI_PARAM_BOOL, &tcp_params.nodelay, 0, 1,
	  "Send small segments at once, TCP_NODELAY (default: on)" },
	{ "local", FI_PARAM_BOOL, &tcp_params.local, 0, 1,
	  "Use shared memory and Unix sockets in place of TCP between processes of one host and one user "
	  "(default: on)" },
	{ "shared_memory", FI_PARAM_BOOL, &tcp_params.shared_memory, 0, 1,
	  "Use shared memory between these processes, and read long payloads from the memory of the sender; otherwise "
	  "the Unix sockets alone (default: on)" },
	{ "disable_auto_progress", FI_PARAM_BOOL, &tcp_params.auto_progress_off, 0, 1,
	  "Start no progress thread, not even for FI_PROGRESS_AUTO (default: off)" },
	{ "connect_timeout", FI_PARAM_INT, &tcp_params.connect_timeout_ms, 1, 3600000,
	  "Longest wait for a peer's kernel to answer a connect, and for the request on an incoming connection, "
	  "milliseconds (default: 30000)" },
	{ "reply_timeout", FI_PARAM_INT, &tcp_params.reply_timeout_ms, 0, 86400000,
	  "Longest wait for a peer to accept a connection if its kernel answers but its process makes no progress, "
	  "milliseconds; 0: no limit (default: 600000)" },
	{ "user_timeout", FI_PARAM_INT, &tcp_params.user_timeout_ms, 0, 86400000,
	  "Time without a sign of life from the kernel of a connected peer after which the connection ends, "
	  "milliseconds; 0: the kernel's own limits (default: 60000)" },
	{ "stall_timeout", FI_PARAM_INT, &tcp_params.stall_timeout_ms, 0, 86400000,
	  "Time after which the connection to a peer ends if its kernel answers but its process reads and answers "
	  "nothing while operations wait for it, milliseconds; 0: never (default: 0)" },
	{ "max_conn", FI_PARAM_INT, &tcp_params.max_conn, 0, 1 << 20,
	  "Limit of the connections of this process: beyond it, the connections of FI_EP_RDM endpoints that have been "
	  "idle longest are closed, and reopened when they are needed; 0: three quarters of the limit on open files. "
	  "Beside these, 1024 for an endpoint that have not sent all of their request, and an eighth of the limit on "
	  "open files for the process: beyond it the oldest ones are closed (default: 0)" },
	{ "stranger_conn", FI_PARAM_INT, &tcp_params.stranger_conn, 0, 1 << 20,
	  "Limit of the connections of an FI_EP_RDM endpoint from peers that are in no address vector: at the limit "
	  "idle ones are closed, and new ones have to wait, as they do while the connections of the process take five "
	  "eighths of the limit on open files; 0: only that and FI_TCP_MAX_CONN limit them. Together they have an "
	  "eighth of the time while other peers have data (default: 16384)" },
	{ "holdoff", FI_PARAM_INT, &tcp_params.holdoff_ms, 0, 3600000,
	  "Time after a failed connect during which operations to that peer fail at once, milliseconds "
	  "(default: 1000)" },
	{ "auth_address", FI_PARAM_BOOL, &tcp_params.auth_address, 0, 1,
	  "Bind the proof of an authorization key to the addresses of both ends, so that nobody can forward it. Set it "
	  "to off if there is address translation between the peers; both ends need the same value (default: on)" },
	{ "auth_key_file", FI_PARAM_STRING, &tcp_params.auth_key_file, 0, 0,
	  "File with an authorization key for the endpoints to which the program gives none: they connect only to "
	  "peers that have it, too. 16 to 256 bytes; the file belongs to the user of the process, and nobody else "
	  "has access to it (default: none)" },

	{ "write_complete", FI_PARAM_STRING, &tcp_params.write_complete, 0, 0,
	  "Completion of writes and of atomics without a result, if the program asks for no completion level: inject "
	  "(when the buffer may be used again; if the target refuses the access, an error without a context follows) "
	  "or delivered (when the target has carried out the access or refused it) (default: inject)" },

	{ "prov_name", FI_PARAM_STRING, NULL, 0, 0, "the provider is always called tcp" },
	{ "max_saved", FI_PARAM_INT, NULL, 0, 0,
	  "FI_TCP_CREDIT limits the bytes of unexpected messages, not their number" },
	{ "max_rx_size", FI_PARAM_SIZE_T, NULL, 0, 0, "see FI_TCP_RX_SIZE" },
	{ "staging_sbuf_size", FI_PARAM_INT, NULL, 0, 0,
	  "each progress engine has one buffer that gathers small messages" },
	{ "prefetch_rbuf_size", FI_PARAM_INT, NULL, 0, 0,
	  "each progress engine has one buffer for received data" },
	{ "zerocopy_size", FI_PARAM_SIZE_T, NULL, 0, 0, "the kernel's zero copy is not used" },
	{ "trace_msg", FI_PARAM_BOOL, NULL, 0, 0, "single messages are not logged" },
	{ "io_uring", FI_PARAM_BOOL, NULL, 0, 0, "io_uring is not used" },
};

/* Check a range of ports: both ends must be set, or none. */
static void params_check_range(const char *which, int *low, int *high)
{
	if (!*low == !*high && *low <= *high)
		return;
	TCP_WARN(FI_LOG_CORE, "FI_TCP_%sPORT_LOW_RANGE is %d and FI_TCP_%sPORT_HIGH_RANGE is %d; any port is used. Set "
		 "both, the low one not above the high one\n", which, *low, which, *high);
	*low = *high = 0;
}

static void params_check_write(void)
{
	const char *level = tcp_params.write_complete;

	tcp_params.write_delivered = level && !strcmp(level, "delivered");
	if (level && !tcp_params.write_delivered && strcmp(level, "inject"))
		TCP_WARN(FI_LOG_CORE, "FI_TCP_WRITE_COMPLETE is \"%s\", but must be inject or delivered; inject is "
			 "used\n", level);
}

/* Empty, as from a variable of a shell that is not set, is a file that cannot be read. It is not "no key". */
static void params_check_key_file(void)
{
	char *path;

	if (!tcp_params.auth_key_file && !fi_param_get_str(&tcp_prov, "auth_key_file", &path) && path)
		tcp_params.auth_key_file = strdup(path);
}

void tcp_params_read(void)
{
	fab_params_read(&tcp_prov, params, fab_countof(params));
	params_check_range("", &tcp_params.port_low, &tcp_params.port_high);
	params_check_range("OUT_", &tcp_params.out_port_low, &tcp_params.out_port_high);
	params_check_write();
	params_check_key_file();
	/* lengths have 32 bits on the wire; an unannounced message must fit into the credit */
	tcp_params.eager_max = fab_min(tcp_params.eager_max, tcp_params.credit / 2);
}

void tcp_params_free(void)
{
	free(tcp_params.iface);
	free(tcp_params.advertise);
	free(tcp_params.write_complete);
	free(tcp_params.auth_key_file);
	tcp_params.iface = tcp_params.advertise = tcp_params.write_complete = tcp_params.auth_key_file = NULL;
}
