/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs check of a provider that they have asked for by the name "sockets": MPICH, SOS, Mercury, GASNet.
 * Source: fi_getinfo(3).
 */
#include <stdlib.h>
#include <string.h>

#include "ops.h"

static void need_sockets(void)
{
	if (!run.ours || strcmp(run.prov, "sockets"))
		ABSENT("for the name sockets of this library");
}

static struct fi_info *found(struct test *t, struct fi_info *hints)
{
	struct fi_info *info;

	need_sockets();
	info = info_find(t, hints, NULL, NULL, 0);
	CHECK(info);
	return info;
}

/* Mercury: protocol and progress as it knows them, both as hints and, left open, as answers. */
TEST_PROV(protocol_and_progress, FI_MSG | FI_TAGGED)
{
	struct fi_info *hints = hints_new(t, &(struct opts) { 0 }), *info;

	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
	info = found(t, hints);
	CHECK_EQ(info->ep_attr->protocol, FI_PROTO_SOCK_TCP);
	CHECK_EQ(info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	CHECK_EQ(info->domain_attr->control_progress, FI_PROGRESS_AUTO);
	hints->ep_attr->protocol = FI_PROTO_SOCK_TCP;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	CHECK_EQ(found(t, hints)->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	hints->ep_attr->protocol = FI_PROTO_XNET;
	CHECK(!info_find(t, hints, NULL, NULL, 0));
}

/* MPICH's capability set of this name: API 1.5, a table of addresses, no mr_mode bit needed. */
TEST_PROV(mpich_set, FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV, RDM_ONLY)
{
	struct fi_info *hints = hints_new(t, &(struct opts) { .av_type = FI_AV_TABLE, .mr_none = true,
					  .tx_op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE }), *info;

	hints->fabric_attr->api_version = FI_VERSION(1, 5);
	hints->mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->cq_data_size = 4;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	info = found(t, hints);
	CHECK(!strcmp(info->fabric_attr->prov_name, "sockets"));
	CHECK_EQ(info->domain_attr->threading, FI_THREAD_DOMAIN);
	CHECK_EQ(info->domain_attr->mr_mode, 0);
	CHECK_EQ(info->mode, 0);
}

/* SOS binds counters to an endpoint that is enabled, and then, with this name only, enables it again. */
TEST_PROV(sos_enables_again, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	need_sockets();
	MUST(fi_cntr_open(p.a->domain, &attr, &cntr, NULL));
	own_fid(t, &cntr->fid);
	MUST(fi_ep_bind(p.a->ep, &cntr->fid, FI_SEND));
	MUST(fi_enable(p.a->ep));
	check_link(p.a, p.b);
	CHECK_EQ(fi_cntr_read(cntr), 1);
	side_close_ep(p.a);
}

/* The same of a scalable endpoint. */
TEST_PROV(scalable_enables_again, FI_MSG, RDM_ONLY)
{
	struct side *s = domain_side(t);
	struct fid_ep *sep;

	need_sockets();
	side_open_av(s);
	MUST(fi_scalable_ep(s->domain, s->info, &sep, NULL));
	own_fid(t, &sep->fid);
	MUST(fi_scalable_ep_bind(sep, &s->av->fid, 0));
	MUST(fi_enable(sep));
	MUST(fi_enable(sep));
}

/* All entries have the name, and no other name has them. */
TEST_PROV(name_of_entries, 0)
{
	struct fi_info *hints, *list, *info;

	need_sockets();
	hints = fi_allocinfo();
	own_info(t, hints);
	hints->fabric_attr->prov_name = strdup("sockets");
	MUST(fi_getinfo(run.version, NULL, NULL, 0, hints, &list));
	own_info(t, list);
	for (info = list; info; info = info->next)
		CHECK(!strcmp(info->fabric_attr->prov_name, "sockets"));
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup("tcp");
	MUST(fi_getinfo(run.version, NULL, NULL, 0, hints, &list));
	own_info(t, list);
	for (info = list; info; info = info->next)
		CHECK(strcmp(info->fabric_attr->prov_name, "sockets"));
}
