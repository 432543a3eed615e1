/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A shared receive context whose receives belong to another provider (FI_PEER, fi_peer(3)), the owner. For each message
 * we ask the owner for a receive. If there is none, we keep the message like any other unexpected message; the owner
 * keeps an entry for it, and later starts or discards it.
 *
 * We call the owner with the engine's lock held. The owner may hold a lock of its own when it calls us, so its call
 * only records the request, and wakes the engine with a bell to carry it out.
 */
#ifndef TCP_OWNER_H
#define TCP_OWNER_H

#include <rdma/providers/fi_peer.h>
#include "tcp/message/message.h"

/* For fi_srx_context() with FI_PEER: check the owner's part of context, and fill in ours. 0; -FI_EINVAL, logged;
 * -FI_ENOMEM. */
int tcp_owner_open(struct tcp_ep *srx, const struct fi_peer_srx_context *context);
/* Free the data of a context that closes. No endpoint uses it any more, and all entries were returned to the owner.
 * Lock held. NULL is allowed. */
void tcp_owner_close(struct tcp_owner *owner);
/* An endpoint that used the context is closing, and its messages were dropped: messages that the owner has started end
 * with an error. Lock held. */
void tcp_owner_forget(struct tcp_owner *owner, struct tcp_ep *ep);

#endif
