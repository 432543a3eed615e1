/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_export_fid(3) of a shared receive context: other providers bring their messages to its receives (fi_peer(3)), and
 * we are the owner. A message of theirs is a struct tcp_unexp like our own, for which their provider keeps the payload;
 * where a receive fits, it takes its turn with ours, and where none does, it waits among ours. Hence order, tags,
 * sources, multi-receives, peeks and claims are what they are without. doc/decisions/exported-receives.md.
 *
 * The owner's operations take the lock of the context's engine, which a peer's lock may be held around; a peer is
 * called with it held, and may call back from there. How the message ended is reported by its provider, which is to
 * have a queue that is exported too (common/lent/lent.h).
 */
#ifndef TCP_EXPORTED_H
#define TCP_EXPORTED_H

#include <rdma/fi_ext.h>
#include <rdma/providers/fi_peer.h>
#include "tcp/message/message.h"

#define TCP_EXPORTED_MAX	(256 * 1024)	/* entries that a peer may have without a receive */

/* FI_EXPORT_FID of a shared receive context: *exp->fid, a struct fid_peer_srx for one peer, is the caller's. No lock
 * held. 0; -FI_EINVAL (no exp, flags, or the context is itself a peer's), -FI_EBUSY (deferred work receives there),
 * logged; -FI_ENOMEM, -FI_E* of making an engine. */
int tcp_srx_export(struct tcp_ep *srx, struct fi_fid_export *exp);
/* -FI_EBUSY, logged: fi_close of a context with exported forms. */
int tcp_exported_busy(void);
/* Is this the exported form of a context of the domain? */
bool tcp_exported_by(const struct fid_peer_srx *peer, const struct fab_domain *domain);
void tcp_exported_fill_ops(void);

#endif
