/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What belongs to the whole provider: its identity, parameters, and the objects that its files share by name.
 */
#ifndef TCP_TCP_H
#define TCP_TCP_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "common/fabric.h"

#define TCP_TX_SIZE		1024	/* operations outstanding by default and at most reported */
#define TCP_RX_SIZE		65536	/* receives */
#define TCP_IOV_LIMIT		8
#define TCP_INJECT_SIZE		128	/* bytes; fits where a queued operation keeps its iov */
#define TCP_EAGER_MAX		(32 * 1024)	/* bytes; longer messages are announced */
/* bytes kept for unexpected messages of one peer that speaks our extension */
#define TCP_CREDIT		(256 * 1024)
#define TCP_UNEXP_MAX		(64UL << 20)	/* bytes kept for a peer that does not; past it its socket waits */
#define TCP_MIN_MULTI_RECV 64	/* bytes: FI_OPT_MIN_MULTI_RECV until set */
#define TCP_MAX_MSG_SIZE	(1UL << 40)	/* bytes */
#define TCP_CONNECT_TIMEOUT_MS	30000

/* Environment of upstream's tcp and ours, read once at initialisation (prov.c). Those without effect are listed as
 * such there. */
struct tcp_params {
	char *iface;			/* FI_TCP_IFACE, or NULL */
	int port_low, port_high;	/* listening ports; 0: any */
	size_t tx_size, rx_size;
	size_t max_inject;
	size_t eager_max;		/* FI_TCP_MAX_SAVED_SIZE's successor: bytes sent unasked */
	size_t credit;
	size_t unexp_max;
	bool nodelay;
	bool auto_progress_off;		/* FI_TCP_DISABLE_AUTO_PROGRESS */
	int connect_timeout_ms;
	int user_timeout_ms;		/* TCP_USER_TIMEOUT of established connections */
	int holdoff_ms;			/* after a failed connect: sends fail at once */
};
extern struct tcp_params tcp_params;

extern struct fi_provider tcp_prov;
extern struct fi_ops_msg tcp_msg_ops;		/* ops.c */
extern struct fi_ops_tagged tcp_tagged_ops;
extern struct fi_ops_rma tcp_rma_ops;

#define TCP_LOG(level, subsys, ...) FI_LOG(&tcp_prov, level, subsys, __VA_ARGS__)
#define TCP_WARN(subsys, ...) FI_WARN(&tcp_prov, subsys, __VA_ARGS__)

/* Slots of the provider, fabric and domain tables, one file each. All return 0 or -FI_E*. */
int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
int tcp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int tcp_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
int tcp_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
int tcp_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);

#endif
