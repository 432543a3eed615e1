/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_export_fid(3) of a shared receive context: other providers match their messages with its receives (fi_peer(3)); we
 * are the owner. A message of another provider is a struct tcp_unexp like our own, but that provider keeps the payload.
 * If a receive fits, the message takes it in turn with our messages; if none fits, it waits among our unexpected
 * messages. So order, tags, sources, multi-receives, peeks and claims are as without.
 * doc/decisions/exported-receives.md.
 *
 * The owner's operations take the lock of the context's engine; a peer may hold a lock of its own around them. A peer
 * is called with the engine's lock held, and may call back. The peer reports the completion, so its queue must be
 * exported, too (common/lent/lent.h).
 */
#ifndef TCP_EXPORTED_H
#define TCP_EXPORTED_H

#include <rdma/fi_ext.h>
#include <rdma/providers/fi_peer.h>
#include "tcp/message/message.h"

#define TCP_EXPORTED_MAX	(256 * 1024)	/* entries without a receive that a peer may have */

/* FI_EXPORT_FID of a shared receive context. *exp->fid is a struct fid_peer_srx for one peer; the caller closes it. No
 * lock held. 0; -FI_EINVAL (exp is invalid, or the context was itself opened as a peer), -FI_EBUSY (deferred work
 * receives there), logged; -FI_ENOMEM, -FI_E* of making an engine. */
int tcp_srx_export(struct tcp_ep *srx, struct fi_fid_export *exp);
/* fi_close() of a context with exported forms: returns -FI_EBUSY, logged. */
int tcp_exported_busy(void);
/* True if peer is the exported form of a context of the domain. */
bool tcp_exported_by(const struct fid_peer_srx *peer, const struct fab_domain *domain);
void tcp_exported_fill_ops(void);

#endif
