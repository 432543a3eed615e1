/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "world.h"

#include "unit.h"
#include "offer.h"
#include "common/memory/memory.h"

static struct fi_ops fabric_fid_ops, domain_fid_ops = { .bind = fab_domain_bind, .control = fab_domain_control };
static struct fi_ops_fabric fabric_ops = { .eq_open = fab_eq_open };
static struct fi_ops_domain domain_ops = { .av_open = fab_av_open, .cq_open = fab_cq_open, .cntr_open = fab_cntr_open };
static const struct fab_domain_ops domain_tables = {
	.fid = &domain_fid_ops,
	.domain = &domain_ops,
	.mr = &fab_mr_ops,
};

static void apply(struct fi_info *info, const struct world_attr *attr)
{
	struct fi_domain_attr *domain = info->domain_attr;

	if (attr->threading)
		domain->threading = attr->threading;
	if (attr->control_progress)
		domain->control_progress = attr->control_progress;
	if (attr->data_progress)
		domain->data_progress = attr->data_progress;
	if (attr->type)
		info->ep_attr->type = attr->type;
	if (attr->caps)
		info->caps = attr->caps;
	if (attr->addr_format)
		info->addr_format = attr->addr_format;
	domain->mr_mode = attr->mr_mode;
	info->fabric_attr->api_version = attr->api_version ? attr->api_version : FI_VERSION(2, 6);
}

void world_open(struct world *world, const struct world_attr *attr)
{
	struct offers offers;

	memset(world, 0, sizeof(*world));
	offers_make(&offers);
	world->info = fi_dupinfo(offers.info[0]);
	offers_free(&offers);
	apply(world->info, attr);
	assert_int_equal(fab_fabric_init(&world->fabric, &test_prov, world->info->fabric_attr, &fabric_fid_ops,
					 &fabric_ops, NULL), 0);
	assert_int_equal(fab_domain_init(&world->domain, &world->fabric, world->info, &domain_tables, NULL), 0);
}

void world_close(struct world *world)
{
	assert_int_equal(fab_domain_fini(&world->domain), 0);
	assert_int_equal(fab_fabric_fini(&world->fabric), 0);
	fi_freeinfo(world->info);
}

struct fid_cq *open_cq(struct world *world)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_cq *cq;

	assert_int_equal(fi_cq_open(&world->domain.domain_fid, &attr, &cq, NULL), 0);
	return cq;
}

struct fid_av *open_av_table(struct world *world)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fid_av *av;

	assert_int_equal(fi_av_open(&world->domain.domain_fid, &attr, &av, NULL), 0);
	return av;
}

struct fab_engine *settle_cq(struct world *world, struct fid_cq *cq)
{
	struct fab_wait *wait = &fab_container(cq, struct fab_cq, cq_fid)->wait;

	pthread_mutex_lock(&world->domain.engines.join_lock);
	assert_int_equal(fab_queue_settle_alone(&world->domain, wait), 0);
	pthread_mutex_unlock(&world->domain.engines.join_lock);
	return wait->engine;
}

struct fid_cntr *open_cntr(struct world *world)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(&world->domain.domain_fid, &attr, &cntr, NULL), 0);
	return cntr;
}

struct fid_eq *open_eq(struct world *world)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_eq *eq;

	assert_int_equal(fi_eq_open(&world->fabric.fabric_fid, &attr, &eq, NULL), 0);
	return eq;
}
