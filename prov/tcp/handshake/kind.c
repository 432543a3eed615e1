/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See kind.h. Ours announce their kind in features. Of upstream's, what tcp;ofi_rxm sends as private data is known by
 * its length and versions; requests of its RDM and MSG endpoints cannot be told apart.
 */
#include "tcp/handshake/kind.h"

#include "tcp/params/params.h"

/* Private data of tcp;ofi_rxm: of a request (version, byte order, versions of two headers ...) and of a refusal
 * (version, reason). */
enum {
	RXM_REQ_LEN = 24,
	RXM_REJ_LEN = 2,
	RXM_VERSION = 1,
	RXM_CTRL_VERSION = 4,
	RXM_OP_VERSION = 3,
	RXM_REFUSED = 1,
};

const char tcp_kind_rdm_here[] = "an RDM endpoint of tcp listens there, and this end is a MSG endpoint or tcp;ofi_rxm: "
				 "open the same provider at both ends";
const char tcp_kind_msg_here[] = "a MSG endpoint or tcp;ofi_rxm listens there, and this end is an RDM endpoint of tcp: "
				 "open the same provider at both ends";

static bool is_rxm(const struct tcp_cm *cm)
{
	if (cm->type == TCP_CM_NACK)
		return cm->data_len == RXM_REJ_LEN && cm->data[0] == RXM_VERSION;
	return cm->data_len == RXM_REQ_LEN && cm->data[0] == RXM_VERSION && cm->data[2] == RXM_CTRL_VERSION &&
	       cm->data[3] == RXM_OP_VERSION;
}

enum tcp_kind tcp_cm_kind(const struct tcp_cm *cm)
{
	if (cm->peer.features & TCP_EXT_PARK)
		return TCP_KIND_RDM;
	if (is_rxm(cm))
		return TCP_KIND_RXM;
	return cm->peer.features & TCP_EXT_MSG ? TCP_KIND_MSG : TCP_KIND_UNKNOWN;
}

void tcp_cm_refuse_kind(struct tcp_cm *cm, enum tcp_kind here)
{
	static const char *const name[] = {
		[TCP_KIND_RDM] = "an RDM endpoint of tcp",
		[TCP_KIND_MSG] = "a MSG endpoint",
		[TCP_KIND_RXM] = "an endpoint of tcp;ofi_rxm",
	};
	static const uint8_t rxm_refused[RXM_REJ_LEN] = { RXM_VERSION, RXM_REFUSED };
	enum tcp_kind there = tcp_cm_kind(cm);
	struct tcp_cm_msg msg = { .type = TCP_CM_NACK,
				  .refusal = here == TCP_KIND_RDM ? TCP_REFUSE_RDM_HERE : TCP_REFUSE_MSG_HERE };
	union fab_sockaddr host = cm->remote;
	char from[FAB_ADDR_STRLEN];

	if (there == TCP_KIND_RXM) {
		msg.data = rxm_refused;
		msg.data_len = sizeof(rxm_refused);
	}
	/* without the port, which differs each time: the log then says this once for a host */
	fab_addr_set_port(&host.sa, 0);
	fab_addr_to_str(&host.sa, from, sizeof(from));
	TCP_WARN(FI_LOG_EP_CTRL, "refused a connection from %s: the peer is %s, and this is %s; open the same provider "
		 "at both ends: prov_name or FI_PROVIDER \"tcp;ofi_rxm\", or \"tcp\" (RDM endpoints of libfabric up to "
		 "1.17: \"net\")\n", from, name[there], here == TCP_KIND_RDM ? name[TCP_KIND_RDM] :
		 "a passive endpoint, for MSG endpoints or tcp;ofi_rxm");
	tcp_cm_send(cm->sock.fd, &msg);
}
