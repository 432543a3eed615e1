/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What belongs to the whole provider: its identity, parameters, and the objects that its files share by name.
 */
#ifndef TCP_PARAMS_H
#define TCP_PARAMS_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>
#include "base/addr.h"
#include "common/domain/fabric.h"

#define TCP_TX_SIZE		1024	/* operations outstanding on an endpoint, if it does not ask for more or less */
#define TCP_TX_SIZE_MAX		65536
#define TCP_RX_SIZE		65536	/* receives posted, likewise */
#define TCP_RX_SIZE_MAX		(1 << 20)
#define TCP_IOV_LIMIT		8
#define TCP_INJECT_SIZE		128	/* bytes; fits where a queued operation keeps its iov */
#define TCP_EAGER_MAX		(256 * 1024)	/* bytes; longer messages are announced */
/* bytes kept for unexpected messages of one peer that speaks our extension */
#define TCP_CREDIT		(512 * 1024)
#define TCP_UNEXP_MAX		(64UL << 20)	/* bytes kept for a peer that does not; past it its socket waits */
#define TCP_STRANGER_MAX	(64UL << 20)	/* bytes kept for all peers that are in no address vector */
#define TCP_STRANGER_CONN	16384	/* such peers that may be connected to one endpoint */
#define TCP_MIN_MULTI_RECV 64	/* bytes: FI_OPT_MIN_MULTI_RECV until set */
#define TCP_MAX_MSG_SIZE	(1UL << 40)	/* bytes */
#define TCP_CONNECT_TIMEOUT_MS	30000
#define TCP_REPLY_TIMEOUT_MS	600000
#define TCP_USER_TIMEOUT_MS	60000
#define TCP_HOLDOFF_MS		1000
#define TCP_FLUSH_MS		2000	/* closing an endpoint waits this long for its last bytes to leave */
#define TCP_BACKLOG		4096	/* connections that the kernel keeps for a listener */

/* Environment of upstream's tcp and ours, read once at initialisation (prov.c). Those without effect are listed as
 * such there. */
struct tcp_params {
	char *iface;			/* FI_TCP_IFACE, or NULL */
	char *sockets_iface;		/* FI_SOCKETS_IFACE, or NULL */
	char *advertise;		/* FI_TCP_ADVERTISE, or NULL; see advert.h */
	bool trust_advertised;		/* peers may say that they are at another address than they come from */
	bool firewall_addr;		/* nobody can connect to us */
	int port_low, port_high;	/* listening ports; 0: any */
	int out_port_low, out_port_high;	/* ports to connect from; 0: any */
	size_t tx_size, rx_size;
	size_t max_inject;
	size_t eager_max;		/* FI_TCP_MAX_SAVED_SIZE's successor: bytes sent unasked */
	size_t credit;
	size_t unexp_max;
	size_t stranger_max;		/* of all peers together that are in no address vector (stranger.c) */
	int stranger_conn;		/* of those, connections of an endpoint (budget.c); 0: as many as like to */
	bool nodelay;
	bool auto_progress_off;		/* FI_TCP_DISABLE_AUTO_PROGRESS */
	int connect_timeout_ms;		/* until the peer's kernel has answered; for an incoming request to arrive */
	int reply_timeout_ms;		/* until a peer that is there has accepted or refused. 0: no end */
	int user_timeout_ms;		/* silence after which a connected peer is dead (alive.c) */
	int stall_timeout_ms;		/* likewise of its process, while operations wait for it. 0: no end */
	int max_conn;			/* connections of this process; 0: by the limit on descriptors (budget.c) */
	bool auth_address;		/* proofs of authorization keys are bound to addresses (auth.c) */
	int holdoff_ms;			/* after a failed connect: sends fail at once */
};
extern struct tcp_params tcp_params;

extern struct fi_provider tcp_prov;
extern struct fi_provider sockets_prov;		/* sockets.c */
extern struct fi_ops_msg tcp_msg_ops;		/* ops.c */
extern struct fi_ops_tagged tcp_tagged_ops;
extern struct fi_ops_rma tcp_rma_ops;
extern struct fi_ops_atomic tcp_atomic_ops;

#define TCP_LOG(level, subsys, ...) FI_LOG(&tcp_prov, level, subsys, __VA_ARGS__)
#define TCP_WARN(subsys, ...) FI_WARN(&tcp_prov, subsys, __VA_ARGS__)

struct fab_ep;

struct fab_coll_net;
struct fid_mc;
struct tcp_ep;
extern const struct fab_coll_net tcp_coll_net;	/* coll.c */
/* struct fi_ops_cm.join of a transmit context: groups whose messages come to the receive context of the same number.
 * Takes locks. */
int tcp_coll_ctx_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);
/* A transmit or receive context closes, which is in no group: what an aborted operation has left under way ends, and
 * the other one forgets it. Its own connections have ended. Lock held; idempotent. */
void tcp_coll_part(struct tcp_ep *ctx);

/* Built in, the registry calls these; as a DSO, fi_prov_ini() is found by name. Each once a process. */
struct fi_provider *fab_tcp_prov_ini(void);
struct fi_provider *fab_sockets_prov_ini(void);
/* Tables and parameters, for whichever of the two comes first; and their end, which may come twice. */
void tcp_init(void);
void tcp_cleanup(void);

/* Fill the empty slots of each file's tables; called once, at initialisation. */
void tcp_domain_fill_ops(void);
void tcp_ep_fill_ops(void);
void tcp_data_fill_ops(void);
void tcp_shared_fill_ops(void);
void tcp_sep_fill_ops(void);

/* Slots of the provider, fabric and domain tables, one file each. All return 0 or -FI_E*. */
int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
int sockets_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info);
/* Does an info, with which an endpoint of the domain is to be opened and whose ep_attr->type is one of its
 * provider's, ask for nothing that is not offered? 0; -FI_EINVAL, logged; -FI_ENOMEM. */
int tcp_info_check(const struct fi_info *info, const struct fab_domain *domain);
/* Put an interface's address (that of the endpoint's domain, or else the best) in place of a wildcard, for
 * fi_getname. */
void tcp_addr_fill(union fab_sockaddr *addr, const struct fab_ep *ep);
int tcp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int sockets_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int tcp_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
int tcp_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
/* fi_query_atomic(3): 0, -FI_EOPNOTSUPP, -FI_EINVAL, -FI_EBADFLAGS. */
int tcp_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags);
int tcp_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int tcp_sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context);
int tcp_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx, void *context);
int tcp_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context);

#endif
