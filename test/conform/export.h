/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Exported objects, and another domain of the provider as the peer that uses them. */
#ifndef CONFORM_EXPORT_H
#define CONFORM_EXPORT_H

#include <rdma/fi_ext.h>
#include <rdma/providers/fi_peer.h>

#include "ops.h"

/* The exported form of an object, which the test owns. Skips where the provider does not export shared receive
 * contexts. */
void *export(struct test *t, struct fid *fid, size_t class);
/* A side, enabled, whose completions go to @cq, and whose receives are those of @srx (NULL: its own). */
struct side *peer_open(struct side *owner, const struct opts *o, struct fid_peer_cq *cq, struct fid_peer_srx *srx);

#endif
