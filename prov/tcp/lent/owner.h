/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A shared receive context whose receives another provider has (FI_PEER, fi_peer(3)): the owner. Each message asks it
 * for a receive; where there is none, the message is kept here as all others are, the owner keeps an entry for it, and
 * says later what is to become of it.
 *
 * The owner is called with the engine's lock held. It may hold a lock of its own when it calls back, so that only notes
 * what it wants, and an eventfd brings the engine to do it.
 */
#ifndef TCP_OWNER_H
#define TCP_OWNER_H

#include <rdma/providers/fi_peer.h>
#include "tcp/message/message.h"

/* For fi_srx_context with FI_PEER: check the owner's part of context, fill in ours. 0; -FI_EINVAL, logged;
 * -FI_ENOMEM. */
int tcp_owner_open(struct tcp_ep *srx, const struct fi_peer_srx_context *context);
/* The context closes, and no endpoint uses it: all entries have gone back to the owner. Lock held. NULL is allowed. */
void tcp_owner_close(struct tcp_owner *owner);
/* An endpoint that used the context is going, and its messages have been dropped: what the owner has told of one ends
 * in error. Lock held. */
void tcp_owner_forget(struct tcp_owner *owner, struct tcp_ep *ep);

#endif
