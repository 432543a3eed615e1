/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider's entry: struct fi_provider, parameters, start and cleanup.
 */
#include "config.h"
#include "rxm/rxm.h"

#include "common/params/params.h"

struct rxm_params rxm_params = {
	.buffer_size = RXM_EAGER_MAX,
	.sar_limit = RXM_SAR_LIMIT,
	.tx_size = RXM_TX_SIZE,
	.rx_size = RXM_RX_SIZE,
	.conn_rx = RXM_CONN_RX,
	.use_srx = true,
	.msg_tx = RXM_MSG_TX,
	.comp_max = 1024,
	.connect_timeout_ms = 600000,
	.holdoff_ms = 1000,
	.stranger_max = RXM_STRANGER_MAX,
	.stranger_conn = RXM_STRANGER_CONN,
};

static void rxm_cleanup(void)
{
}

struct fi_provider rxm_prov = {
	.name = RXM_LAYER,
	.version = FI_VERSION(206, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = rxm_getinfo,
	.fabric = rxm_fabric_open,
	.cleanup = rxm_cleanup,
};

static const struct fab_param params[] = {
	{ "buffer_size", FI_PARAM_SIZE_T, &rxm_params.buffer_size, 1024, 1 << 20,
	  "Largest message that is sent in one packet, bytes; both ends need the same value (default: 16384)" },
	{ "sar_limit", FI_PARAM_SIZE_T, &rxm_params.sar_limit, 0, 1 << 24,
	  "Largest message that is sent in several packets, bytes; longer ones are announced and stay with the sender "
	  "until a receive takes them (default: 131072)" },
	{ "tx_size", FI_PARAM_SIZE_T, &rxm_params.tx_size, 1, RXM_SIZE_MAX,
	  "Default of tx_attr->size, the number of operations that may be outstanding on an endpoint; further ones get "
	  "-FI_EAGAIN (default: 1024)" },
	{ "rx_size", FI_PARAM_SIZE_T, &rxm_params.rx_size, 1, RXM_SIZE_MAX,
	  "Default of rx_attr->size, the number of receives that may be posted to an endpoint; further ones get "
	  "-FI_EAGAIN (default: 4096)" },
	{ "msg_rx_size", FI_PARAM_SIZE_T, &rxm_params.conn_rx, 16, 4096,
	  "Packets that a peer may send before they are processed, and receives that each connection posts if they are "
	  "not shared (use_srx) (default: 64)" },
	{ "use_srx", FI_PARAM_BOOL, &rxm_params.use_srx, 0, 1,
	  "The connections of an endpoint share their packet buffers, so that memory does not grow with the peers, "
	  "where the provider below has shared receives (verbs, but for iWARP); otherwise each has its own "
	  "(default: on)" },
	{ "msg_tx_size", FI_PARAM_SIZE_T, &rxm_params.msg_tx, 16, 65535,
	  "Operations that a connection may have outstanding in the provider below; one less than a power of two "
	  "suits the queues of most devices (default: 255)" },
	{ "comp_per_progress", FI_PARAM_INT, &rxm_params.comp_max, 1, 1 << 20,
	  "Completions of the provider below that a pass takes at most, rounded up to a multiple of 16 (default: "
	  "1024)" },
	{ "use_rndv_write", FI_PARAM_BOOL, &rxm_params.rndv_write, 0, 1,
	  "The sender writes long messages into the receive buffer, instead of the receiver reading them; only with "
	  "peers that run this library too (default: off)" },
	{ "connect_timeout", FI_PARAM_INT, &rxm_params.connect_timeout_ms, 1, 3600000,
	  "Longest wait for a busy peer to accept a connection, milliseconds; the provider below reports a peer that "
	  "does not exist earlier (default: 600000)" },
	{ "holdoff", FI_PARAM_INT, &rxm_params.holdoff_ms, 0, 3600000,
	  "Time after a failed connect during which operations to that peer fail at once, milliseconds "
	  "(default: 1000)" },
	{ "stranger_max", FI_PARAM_SIZE_T, &rxm_params.stranger_max, 1 << 16, SIZE_MAX / 2,
	  "Bytes of messages without a receive that an endpoint keeps of all peers in no address vector; beyond it "
	  "they get no credit, and further ones wait (default: 67108864)" },
	{ "stranger_conn", FI_PARAM_SIZE_T, &rxm_params.stranger_conn, 1, 1 << 20,
	  "Connections of an endpoint with peers in no address vector; further ones wait, and over tcp also while all "
	  "connections of the endpoint have five eighths of the limit on open files (default: 16384)" },

	{ "cm_progress_interval", FI_PARAM_INT, NULL, 0, 0,
	  "connections are looked after when something comes" },
	{ "cq_eq_fairness", FI_PARAM_INT, NULL, 0, 0, "connections are looked after when something comes" },
	{ "data_auto_progress", FI_PARAM_BOOL, NULL, 0, 0, "ask for FI_PROGRESS_AUTO" },
	{ "def_wait_obj", FI_PARAM_STRING, NULL, 0, 0, "the wait object below is a descriptor" },
	{ "def_tcp_wait_obj", FI_PARAM_STRING, NULL, 0, 0, "the wait object below is a descriptor" },
	{ "enable_direct_send", FI_PARAM_BOOL, NULL, 0, 0, "memory that need not be registered is always sent without "
	  "a copy" },
	{ "enable_passthru", FI_PARAM_BOOL, NULL, 0, 0, "every message has a packet header" },
	{ "detect_hmem_iface", FI_PARAM_BOOL, NULL, 0, 0, "memory of a device is known by its descriptors "
	  "(FI_MR_HMEM)" },
	{ "rescan", FI_PARAM_BOOL, NULL, 0, 0, "each call of fi_getinfo looks up the interfaces" },
};

/* Called once in a process: by the registry if built in; a DSO exports it as fi_prov_ini(). */
struct fi_provider *fab_rxm_prov_ini(void);

struct fi_provider *fab_rxm_prov_ini(void)
{
	rxm_fill_ops();
	rxm_ep_fill_ops();
	fab_params_read(&rxm_prov, params, fab_countof(params));
	return &rxm_prov;
}

#ifdef HAVE_RXM_DL
FI_EXT_INI
{
	return fab_rxm_prov_ini();
}
#endif
