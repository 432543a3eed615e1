/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A fabric and a domain of the test provider, for tests of what lives in them.
 */
#ifndef TEST_COMMON_WORLD_H
#define TEST_COMMON_WORLD_H

#include "common/queue/cntr.h"
#include "common/queue/cq.h"
#include "common/endpoint/ep.h"
#include "common/queue/eq.h"
#include "common/domain/domain.h"

struct world {
	struct fi_info *info;		/* what the domain was opened with; owned */
	struct fab_fabric fabric;
	struct fab_domain domain;
};

/* What a test changes in the info before anything is opened; 0 leaves the offer's. */
struct world_attr {
	uint32_t api_version;		/* 0: 2.6 */
	enum fi_threading threading;
	enum fi_progress control_progress, data_progress;
	enum fi_ep_type type;
	int mr_mode;
	uint64_t caps;
	uint32_t addr_format;
};

/* Everything must succeed. */
void world_open(struct world *world, const struct world_attr *attr);
void world_close(struct world *world);

struct fid_cq *open_cq(struct world *world);
/* The engine that a completion queue has settled on: one of its own, if it had not settled. */
struct fab_engine *settle_cq(struct world *world, struct fid_cq *cq);
struct fid_av *open_av_table(struct world *world);
struct fid_cntr *open_cntr(struct world *world);
struct fid_eq *open_eq(struct world *world);

#endif
