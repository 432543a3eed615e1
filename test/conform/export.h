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
/* What the objects of a peer are for; NULL: it has its own. */
struct owners {
	struct fid_peer_cq *cq;
	struct fid_peer_srx *srx;
	struct fid_peer_av *av;
};
/* A side, enabled, of which that is so; at least its completions are an owner's. */
struct side *peer_open(struct test *t, const struct opts *o, const struct owners *owners);
/* In the address vector of @a, which has an owner, @b is @number. */
void peer_insert(struct side *a, struct side *b, fi_addr_t number);

#endif
