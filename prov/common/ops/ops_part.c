/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Operation tables with one direction left out. No lock: while an endpoint is opened, only its opener can reach it. */
#include "common/ops/ops.h"

#include <stdbool.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>

#define MSG_WAYS (FI_SEND | FI_RECV)
#define RMA_WAYS (FI_READ | FI_WRITE)

void fab_ops_part_msg(struct fi_ops_msg *part, const struct fi_ops_msg *all, uint64_t caps)
{
	const struct fi_ops_msg *tx = caps & FI_SEND ? all : &fab_no_msg, *rx = caps & FI_RECV ? all : &fab_no_msg;

	*part = *tx;
	part->size = all->size;
	part->recv = rx->recv;
	part->recvv = rx->recvv;
	part->recvmsg = rx->recvmsg;
}

void fab_ops_part_tagged(struct fi_ops_tagged *part, const struct fi_ops_tagged *all, uint64_t caps)
{
	const struct fi_ops_tagged *tx = caps & FI_SEND ? all : &fab_no_tagged;
	const struct fi_ops_tagged *rx = caps & FI_RECV ? all : &fab_no_tagged;

	*part = *tx;
	part->size = all->size;
	part->recv = rx->recv;
	part->recvv = rx->recvv;
	part->recvmsg = rx->recvmsg;
}

static void part_rma(struct fi_ops_rma *part, const struct fi_ops_rma *all, uint64_t caps)
{
	const struct fi_ops_rma *writes = caps & FI_WRITE ? all : &fab_no_rma;
	const struct fi_ops_rma *reads = caps & FI_READ ? all : &fab_no_rma;

	*part = *writes;
	part->size = all->size;
	part->read = reads->read;
	part->readv = reads->readv;
	part->readmsg = reads->readmsg;
}

int fab_ops_part_take(struct fid_ep *ep, uint64_t caps, struct fab_ops_part **part)
{
	bool one_way = (caps & (FI_MSG | FI_TAGGED)) && (caps & MSG_WAYS) != MSG_WAYS;
	bool rma = (caps & FI_RMA) && (caps & RMA_WAYS) != RMA_WAYS;

	*part = NULL;
	if (!one_way && !rma)
		return 0;
	*part = malloc(sizeof(**part));
	if (!*part)
		return -FI_ENOMEM;
	if (one_way) {
		fab_ops_part_msg(&(*part)->msg, ep->msg, caps);
		fab_ops_part_tagged(&(*part)->tagged, ep->tagged, caps);
		ep->msg = &(*part)->msg;
		ep->tagged = &(*part)->tagged;
	}
	if (rma) {
		part_rma(&(*part)->rma, ep->rma, caps);
		ep->rma = &(*part)->rma;
	}
	return 0;
}
