/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints of different kinds cannot talk: RDM endpoints of tcp (upstream calls them tcp, up to 1.17 net), MSG
 * endpoints, and RDM endpoints of tcp;ofi_rxm, which are layered over MSG endpoints. All connect and listen in the same
 * way, and the handshake is where the kinds of both ends can be compared.
 */
#ifndef TCP_KIND_H
#define TCP_KIND_H

#include "tcp/handshake/cm.h"

enum tcp_kind {
	TCP_KIND_UNKNOWN,
	TCP_KIND_RDM,
	TCP_KIND_MSG,			/* or RXM, of an application or library that does not show it */
	TCP_KIND_RXM,
};

/* The kind of the peer as its message shows it; the message is complete. */
enum tcp_kind tcp_cm_kind(const struct tcp_cm *cm);

/* The request that is done came from a peer of this kind, which does not fit: log that, and refuse it for good. here is
 * the kind of this end. The caller frees cm. */
void tcp_cm_refuse_kind(struct tcp_cm *cm, enum tcp_kind here);

/* Why an RDM endpoint and one that listens for MSG endpoints cannot talk, for cm->why of the end that connects. */
extern const char tcp_kind_rdm_here[], tcp_kind_msg_here[];

#endif
