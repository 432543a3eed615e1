/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names, limits and parameters of the provider.
 */
#ifndef TCP_PARAMS_H
#define TCP_PARAMS_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#define TCP_TX_SIZE		1024	/* operations outstanding on an endpoint, by default */
#define TCP_TX_SIZE_MAX		65536
#define TCP_RX_SIZE		65536	/* receives posted on an endpoint, by default */
#define TCP_RX_SIZE_MAX		(1 << 20)
#define TCP_IOV_LIMIT		8
#define TCP_INJECT_SIZE		128	/* bytes; fits into the iov of a queued operation */
#define TCP_EAGER_MAX		(256 * 1024)	/* bytes; longer messages are announced */
/* bytes of unexpected messages kept for one peer with our extension */
#define TCP_CREDIT		(512 * 1024)
#define TCP_UNEXP_MAX		(64UL << 20)	/* the same for a peer without it; above this, its socket is not read */
#define TCP_STRANGER_MAX	(64UL << 20)	/* the same for all peers together that are not in an address vector */
#define TCP_STRANGER_CONN	16384	/* most connections of such peers to one endpoint */
#define TCP_MIN_MULTI_RECV 64	/* bytes: default of FI_OPT_MIN_MULTI_RECV */
#define TCP_MAX_MSG_SIZE	(1UL << 40)	/* bytes */
#define TCP_CONNECT_TIMEOUT_MS	30000
#define TCP_REPLY_TIMEOUT_MS	600000
#define TCP_USER_TIMEOUT_MS	60000
#define TCP_HOLDOFF_MS		1000
#define TCP_FLUSH_MS		2000	/* closing an endpoint waits so long for queued bytes to be sent */
#define TCP_BACKLOG		4096	/* connections in the kernel's queue of a listener */

/* Parameters of upstream's tcp and of our own, read once when the provider is loaded (params.c). params.c also lists
 * those without effect. */
struct tcp_params {
	char *iface;			/* FI_TCP_IFACE, or NULL */
	char *sockets_iface;		/* FI_SOCKETS_IFACE, or NULL */
	char *advertise;		/* FI_TCP_ADVERTISE, or NULL; see advert.h */
	bool trust_advertised;		/* peers may announce another address than the one they connect from */
	bool firewall_addr;		/* peers cannot connect to this process */
	int port_low, port_high;	/* listening ports; 0: any */
	int out_port_low, out_port_high;	/* ports to connect from; 0: any */
	size_t tx_size, rx_size;
	size_t max_inject;
	size_t eager_max;		/* longest message sent without an announcement (upstream:
					 * FI_TCP_MAX_SAVED_SIZE) */
	size_t credit;
	size_t unexp_max;
	size_t stranger_max;		/* for all peers together that are in no address vector (message/stranger.c) */
	int stranger_conn;		/* connections of such peers to an endpoint (peer/budget.c); 0: no limit */
	bool nodelay;
	bool local;			/* Unix sockets and shared memory between processes of one host */
	bool shared_memory;		/* false: Unix sockets only */
	char *write_complete;		/* FI_TCP_WRITE_COMPLETE, or NULL */
	bool write_delivered;		/* it is "delivered" */
	bool auto_progress_off;		/* FI_TCP_DISABLE_AUTO_PROGRESS */
	int connect_timeout_ms;		/* until the peer's kernel has answered; until an incoming request has
					 * arrived */
	int reply_timeout_ms;		/* until a connected peer has accepted or refused; 0: no limit */
	int user_timeout_ms;		/* silence after which a connected peer is dead (peer/alive.c) */
	int stall_timeout_ms;		/* the same for a silent process while operations wait for it; 0: no limit */
	int max_conn;			/* connections of this process; 0: by the limit on descriptors
					 * (peer/budget.c) */
	bool auth_address;		/* proofs of authorization keys are bound to addresses (handshake/auth.c) */
	char *auth_key_file;		/* FI_TCP_AUTH_KEY_FILE, or NULL */
	int holdoff_ms;			/* after a failed connect, sends fail at once for so long */
};
extern struct tcp_params tcp_params;

/* The two names of the provider. Their operations are set by their entry functions (face/prov.c, face/sockets.c). */
extern struct fi_provider tcp_prov, sockets_prov;

/* Read the environment into tcp_params; free the memory of tcp_params (may be called twice). One thread. */
void tcp_params_read(void);
void tcp_params_free(void);

#define TCP_LOG(level, subsys, ...) FI_LOG(&tcp_prov, level, subsys, __VA_ARGS__)
#define TCP_WARN(subsys, ...) FI_WARN(&tcp_prov, subsys, __VA_ARGS__)

#endif
