/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider: its parameters, read once at initialisation (prov.c), and its log.
 */
#ifndef VRB_PARAMS_H
#define VRB_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define VRB_TX_SIZE		384	/* work requests of an endpoint that does not ask for another number */
#define VRB_RX_SIZE		384
#define VRB_IOV_LIMIT		8
#define VRB_INLINE		256	/* bytes asked of a device for messages that travel in the work request */
#define VRB_MIN_RNR_TIMER	12	/* 0.64 ms */

/* Parameters of the environment. */
struct vrb_params {
	char *iface;			/* FI_VERBS_IFACE, or NULL */
	char *device_name;		/* FI_VERBS_DEVICE_NAME: a comma-separated list, or NULL */
	size_t tx_size, rx_size;
	size_t tx_iov_limit, rx_iov_limit;
	size_t inline_size;
	int gid_idx;			/* -1: the provider chooses (gid.c) */
	int min_rnr_timer;		/* InfiniBand's code for a time, 0 to 31 */
	int keepalive_ms, keepalive_peers, stall_ms;	/* alive.h */
	bool async_events;		/* read the asynchronous events of the devices' contexts (async.h) */
	bool relaxed_ordering;
	bool use_odp, use_dmabuf;
	bool prefer_xrc;
	char *xrcd_filename;		/* FI_VERBS_XRCD_FILENAME, or NULL */
	bool use_name_server;		/* datagram endpoints can be found by service (names.h) ... */
	int name_server_port;		/* ... over this UDP port */
};
extern struct vrb_params vrb_params;
extern struct fi_provider vrb_prov;

#define VRB_LOG(level, subsys, ...) FI_LOG(&vrb_prov, level, subsys, __VA_ARGS__)
#define VRB_WARN(subsys, ...) FI_WARN(&vrb_prov, subsys, __VA_ARGS__)

#endif
