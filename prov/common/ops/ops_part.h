/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of an endpoint that does not go all ways: the tables of its provider, in which those of a direction that
 * its capabilities leave out answer -FI_ENOSYS. Chosen when the endpoint is opened, so that no call asks.
 */
#ifndef COMMON_OPS_PART_H
#define COMMON_OPS_PART_H

#include "common/ops/ops.h"

struct fab_ops_part {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
	struct fi_ops_rma rma;
};

/* *part becomes *all with what caps (FI_SEND, FI_RECV) has of it. */
void fab_ops_part_msg(struct fi_ops_msg *part, const struct fi_ops_msg *all, uint64_t caps);
void fab_ops_part_tagged(struct fi_ops_tagged *part, const struct fi_ops_tagged *all, uint64_t caps);
/* Replace the tables of ep, which are its provider's, by such for caps, all modifiers spelled out. *part is what
 * they are in, which the caller frees after the endpoint; NULL if nothing had to be left out. 0 or -FI_ENOMEM. */
int fab_ops_part_take(struct fid_ep *ep, uint64_t caps, struct fab_ops_part **part);

#endif
