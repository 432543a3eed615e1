/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What belongs to the whole provider: its names, its limits and its parameters.
 */
#ifndef TCP_PARAMS_H
#define TCP_PARAMS_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

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

/* Environment of upstream's tcp and ours, read once at initialisation (params.c). Those without effect are listed as
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
	size_t stranger_max;		/* of all peers together that are in no address vector (message/stranger.c) */
	int stranger_conn;		/* of those, connections of an endpoint (budget.c); 0: as many as like to */
	bool nodelay;
	bool auto_progress_off;		/* FI_TCP_DISABLE_AUTO_PROGRESS */
	int connect_timeout_ms;		/* until the peer's kernel has answered; for an incoming request to arrive */
	int reply_timeout_ms;		/* until a peer that is there has accepted or refused. 0: no end */
	int user_timeout_ms;		/* silence after which a connected peer is dead (peer/alive.c) */
	int stall_timeout_ms;		/* likewise of its process, while operations wait for it. 0: no end */
	int max_conn;			/* connections of this process; 0: by the limit on descriptors (budget.c) */
	bool auth_address;		/* proofs of authorization keys are bound to addresses (handshake/auth.c) */
	int holdoff_ms;			/* after a failed connect: sends fail at once */
};
extern struct tcp_params tcp_params;

/* The two names of the provider. What they can do is filled in as they are asked for (face/prov.c, face/sockets.c). */
extern struct fi_provider tcp_prov, sockets_prov;

/* Read what is set in the environment into tcp_params; and give back what it owns, which may happen twice. One
 * thread. */
void tcp_params_read(void);
void tcp_params_free(void);

#define TCP_LOG(level, subsys, ...) FI_LOG(&tcp_prov, level, subsys, __VA_ARGS__)
#define TCP_WARN(subsys, ...) FI_WARN(&tcp_prov, subsys, __VA_ARGS__)

#endif
