/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider's entry: struct fi_provider, parameters, start and cleanup.
 */
#include "config.h"
#include "verbs/names.h"
#include "verbs/srx.h"
#include "verbs/ud.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/params/params.h"

struct vrb_params vrb_params = {
	.tx_size = VRB_TX_SIZE,
	.rx_size = VRB_RX_SIZE,
	.tx_iov_limit = VRB_IOV_LIMIT,
	.rx_iov_limit = VRB_IOV_LIMIT,
	.inline_size = VRB_INLINE,
	.gid_idx = -1,
	.min_rnr_timer = VRB_MIN_RNR_TIMER,
	.keepalive_ms = 30000,
	.keepalive_peers = 256,
	.stall_ms = 600000,
	.async_events = true,
	.use_dmabuf = true,
	.use_name_server = true,
	.name_server_port = 5678,
};

static void vrb_cleanup(void)
{
	vrb_names_fini();
	vrb_devices_fini();
	free(vrb_params.iface);
	free(vrb_params.device_name);
	free(vrb_params.xrcd_filename);
	vrb_params.iface = vrb_params.device_name = vrb_params.xrcd_filename = NULL;
}

struct fi_provider vrb_prov = {
	.name = "verbs",
	.version = FI_VERSION(206, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = vrb_getinfo,
	.fabric = vrb_fabric_open,
	.cleanup = vrb_cleanup,
};

static const struct fab_param params[] = {
	{ "iface", FI_PARAM_STRING, &vrb_params.iface, 0, 0,
	  "Interfaces whose addresses are used: a comma-separated list of names, globs (ib*), networks (10.1.0.0/16); "
	  "^ or ! in front of an item excludes it (default: all)" },
	{ "device_name", FI_PARAM_STRING, &vrb_params.device_name, 0, 0,
	  "Devices to use: a comma-separated list of names, or beginnings of names (default: all)" },
	{ "tx_size", FI_PARAM_SIZE_T, &vrb_params.tx_size, 1, 1 << 16,
	  "Default of tx_attr->size, the number of operations that may be outstanding on an endpoint (default: 384)" },
	{ "rx_size", FI_PARAM_SIZE_T, &vrb_params.rx_size, 1, 1 << 16,
	  "Default of rx_attr->size, the number of receives that may be posted to an endpoint (default: 384)" },
	{ "tx_iov_limit", FI_PARAM_SIZE_T, &vrb_params.tx_iov_limit, 1, VRB_IOV_LIMIT,
	  "Most buffers of one send, write or read (default: 8, or the device's limit if that is lower)" },
	{ "rx_iov_limit", FI_PARAM_SIZE_T, &vrb_params.rx_iov_limit, 1, VRB_IOV_LIMIT,
	  "Most buffers of one receive (default: 8, or the device's limit if that is lower)" },
	{ "inline_size", FI_PARAM_SIZE_T, &vrb_params.inline_size, 0, 4096,
	  "Most bytes that are sent inside a work request, and so the limit of fi_inject; less if the device's limit "
	  "is lower (default: 256)" },
	{ "prefer_xrc", FI_PARAM_BOOL, &vrb_params.prefer_xrc, 0, 0,
	  "fi_getinfo lists XRC domains (DEVICE-xrc) before the domains of reliable connections (default: off)" },
	{ "xrcd_filename", FI_PARAM_STRING, &vrb_params.xrcd_filename, 0, 0,
	  "File that identifies the XRC domain: processes of a node with the same file share queue pairs (default: "
	  "/tmp/verbs_xrcd.UID)" },
	{ "use_odp", FI_PARAM_BOOL, &vrb_params.use_odp, 0, 0,
	  "Page registered memory on demand instead of pinning it, if the device supports that (default: off)" },
	{ "use_dmabuf", FI_PARAM_BOOL, &vrb_params.use_dmabuf, 0, 0,
	  "Allow the registration of dma-bufs (FI_MR_DMABUF), if the device supports it (default: on)" },
	{ "cqread_bunch_size", FI_PARAM_INT, NULL, 0, 0, "work completions are always read 32 at a time" },
	{ "min_rnr_timer", FI_PARAM_INT, &vrb_params.min_rnr_timer, 0, 31,
	  "Time that a peer waits before it repeats a message that found no posted receive, in InfiniBand's code: 1 is "
	  "10 us, 31 is 492 ms, 0 is 655 ms (default: 12, 0.64 ms)" },
	{ "keepalive_interval", FI_PARAM_INT, &vrb_params.keepalive_ms, 0, 86400000,
	  "Time without a request after which a connection gets a write of no bytes, milliseconds: it fails if the "
	  "peer is gone, which would not be noticed otherwise; 0: never (default: 30000)" },
	{ "keepalive_peers", FI_PARAM_INT, &vrb_params.keepalive_peers, 0, 1 << 20,
	  "Most endpoints of an engine for which FI_VERBS_KEEPALIVE_INTERVAL has an effect (default: 256)" },
	{ "stall_timeout", FI_PARAM_INT, &vrb_params.stall_ms, 0, 86400000,
	  "Time after which a connection ends if its peer answers but posts no receive for a message that waits, "
	  "milliseconds; 0: never (default: 600000)" },
	{ "async_events", FI_PARAM_BOOL, &vrb_params.async_events, 0, 0,
	  "Read the asynchronous events of each device's context, which librdmacm shares with the program; off for a "
	  "program that reads them itself: then a failure is noticed by its effects (default: on)" },
	{ "relaxed_ordering", FI_PARAM_BOOL, &vrb_params.relaxed_ordering, 0, 0,
	  "Let the bus write what arrives in any order (IBV_ACCESS_RELAXED_ORDERING), in domains that were asked for "
	  "no order of remote writes and reads (default: off)" },
	{ "gid_idx", FI_PARAM_INT, &vrb_params.gid_idx, 0, 255,
	  "Index of the port's GID that datagram endpoints use (default: the first routable GID)" },
	{ "dgram_use_name_server", FI_PARAM_BOOL, &vrb_params.use_name_server, 0, 0,
	  "Datagram endpoints that were opened with a service (FI_SOURCE) answer questions for the address of that "
	  "service on this node (default: on)" },
	{ "dgram_name_server_port", FI_PARAM_INT, &vrb_params.name_server_port, 1, 65535,
	  "UDP port for the questions and answers of FI_VERBS_DGRAM_USE_NAME_SERVER, the same on all nodes (default: "
	  "5678)" },
	{ "nic_affinity_policy", FI_PARAM_STRING, NULL, 0, 0, "see FI_VERBS_DEVICE_NAME and FI_VERBS_IFACE" },
	{ "nic_affinity_config", FI_PARAM_STRING, NULL, 0, 0, "see FI_VERBS_DEVICE_NAME and FI_VERBS_IFACE" },
	{ "affinity_device", FI_PARAM_STRING, NULL, 0, 0, "see FI_VERBS_DEVICE_NAME and FI_VERBS_IFACE" },
};

/* Called once in a process: by the registry if built in; a DSO exports it as fi_prov_ini(). */
struct fi_provider *fab_verbs_prov_ini(void);

struct fi_provider *fab_verbs_prov_ini(void)
{
	vrb_domain_fill_ops();
	vrb_cq_fill_ops();
	fab_pep_fill_ops();
	vrb_ep_fill_ops();
	vrb_cm_fill_ops();
	vrb_atomic_fill_ops();
	vrb_ud_fill_ops();
	vrb_data_fill_ops();
	vrb_srx_fill_ops();
	vrb_mr_fill_ops();
	fab_params_read(&vrb_prov, params, fab_countof(params));
	return &vrb_prov;
}

#ifdef HAVE_VERBS_DL
FI_EXT_INI
{
	return fab_verbs_prov_ini();
}
#endif
