/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Not on the data path. */
#include "common/av/av_batch.h"

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "common/queue/queue.h"
#include "common/domain/domain.h"

/* The event queue for the results: the vector's own, or that of its domain, which has the reference. NULL: none. */
static struct fab_eq *events_of(const struct fab_av *av)
{
	return av->eq ? av->eq : av->domain->events.eq;
}

int fab_av_batch_start(struct fab_av_batch *batch, struct fab_av *av, fi_addr_t *fi_addr, uint64_t flags,
		       void *context)
{
	const struct fi_provider *prov = av->domain->fabric->prov;

	if ((flags & FI_SYNC_ERR) && (av->async || !context)) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_insert: FI_SYNC_ERR requires %s\n", av->async ?
			"an address vector without FI_EVENT" : "context to be an array of int");
		return -FI_EINVAL;
	}
	if (av->async && !events_of(av)) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_insert: the address vector has FI_EVENT; bind an event queue to it "
			"or to its domain first\n");
		return -FI_ENOEQ;
	}
	*batch = (struct fab_av_batch) { .av = av, .fi_addr = fi_addr, .context = context,
					 .errs = flags & FI_SYNC_ERR ? context : NULL };
	return 0;
}

void fab_av_batch_next(struct fab_av_batch *batch, fi_addr_t fi_addr, int err)
{
	struct fab_av *av = batch->av;

	if (batch->fi_addr)
		batch->fi_addr[batch->index] = err ? FI_ADDR_NOTAVAIL : fi_addr;
	if (batch->errs)
		batch->errs[batch->index] = -err;
	if (err && av->async)
		fab_eq_write_err(events_of(av), &av->av_fid.fid, batch->context, batch->index, -err, -err, NULL,
				 0);
	batch->ok_cnt += !err;
	batch->index++;
}

int fab_av_batch_end(const struct fab_av_batch *batch)
{
	struct fab_av *av = batch->av;

	if (!av->async)
		return (int) batch->ok_cnt;
	return fab_eq_write_done(events_of(av), FI_AV_COMPLETE, &av->av_fid.fid, batch->context, batch->ok_cnt);
}

void fab_av_drop_events(struct fab_av *av)
{
	struct fab_eq *domains = av->domain->events.eq;

	if (av->async && domains)
		fab_eq_purge(domains, &av->av_fid.fid, NULL);
	if (!av->eq)
		return;
	fab_eq_purge(av->eq, &av->av_fid.fid, NULL);
	fab_eq_put(av->eq);
}
