/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See node.h.
 */
#include "node.h"

#include <stdio.h>
#include <string.h>
#include <rdma/fi_cm.h>
#include "tcp/sock/advert.h"
#include "tcp/params/params.h"

const char *node_provider = "tcp";
enum fi_progress node_progress = FI_PROGRESS_UNSPEC;

void node_open_ep(struct node *node)
{
	size_t len = sizeof(node->addr);

	assert_int_equal(fi_endpoint(node->domain, node->info, &node->ep, NULL), 0);
	assert_int_equal(fi_ep_bind(node->ep, &node->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(node->ep, &node->cq->fid, FI_TRANSMIT | FI_RECV), 0);
	if (node->eq)
		assert_int_equal(fi_ep_bind(node->ep, &node->eq->fid, 0), 0);
	assert_int_equal(fi_enable(node->ep), 0);
	assert_int_equal(fi_getname(&node->ep->fid, &node->addr, &len), 0);
}

/* What fi_getinfo() is asked for. */
static struct fi_info *hints_new(uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = caps;
	hints->domain_attr->data_progress = node_progress;
	hints->fabric_attr->prov_name = strdup(node_provider);
	return hints;
}

/* As node->info says. */
static void open_objects(struct node *node, enum fi_wait_obj wait_obj)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA, .wait_obj = wait_obj };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_NONE };

	assert_int_equal(fi_fabric(node->info->fabric_attr, &node->fabric, NULL), 0);
	assert_int_equal(fi_domain(node->fabric, node->info, &node->domain, NULL), 0);
	assert_int_equal(fi_av_open(node->domain, &av_attr, &node->av, NULL), 0);
	assert_int_equal(fi_cq_open(node->domain, &cq_attr, &node->cq, NULL), 0);
	node->eq = NULL;
	if (node->info->caps & FI_COLLECTIVE)
		assert_int_equal(fi_eq_open(node->fabric, &eq_attr, &node->eq, NULL), 0);
	node_open_ep(node);
}

static void open_all(struct node *node, uint64_t caps, enum fi_threading threading, const char *host,
		     const char *service, enum fi_wait_obj wait_obj)
{
	struct fi_info *hints = hints_new(caps);

	hints->domain_attr->threading = threading;
	assert_int_equal(fi_getinfo(FI_VERSION(2, 6), host, service, host ? FI_SOURCE : 0, hints, &node->info), 0);
	fi_freeinfo(hints);
	open_objects(node, wait_obj);
}

bool node_open_ordered(struct node *node, uint64_t caps, uint64_t msg_order)
{
	struct fi_info *hints = hints_new(caps);
	int ret;

	hints->tx_attr->msg_order = hints->rx_attr->msg_order = msg_order;
	ret = fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", NULL, FI_SOURCE, hints, &node->info);
	fi_freeinfo(hints);
	if (ret)
		return false;
	open_objects(node, FI_WAIT_NONE);
	return true;
}

void node_open(struct node *node, uint64_t caps, enum fi_threading threading)
{
	open_all(node, caps, threading, "127.0.0.1", NULL, FI_WAIT_NONE);
}

void node_open_at(struct node *node, uint64_t caps, uint16_t port)
{
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	open_all(node, caps, FI_THREAD_UNSPEC, "127.0.0.1", service, FI_WAIT_FD);
}

void node_open_best(struct node *node, uint64_t caps)
{
	open_all(node, caps, FI_THREAD_UNSPEC, NULL, NULL, FI_WAIT_NONE);
}

void advertise(char *list)
{
	tcp_params.advertise = list;
	tcp_advert_init();
}

void node_close(struct node *node)
{
	assert_int_equal(fi_close(&node->ep->fid), 0);
	assert_int_equal(fi_close(&node->cq->fid), 0);
	if (node->eq)
		assert_int_equal(fi_close(&node->eq->fid), 0);
	assert_int_equal(fi_close(&node->av->fid), 0);
	assert_int_equal(fi_close(&node->domain->fid), 0);
	assert_int_equal(fi_close(&node->fabric->fid), 0);
	fi_freeinfo(node->info);
}

fi_addr_t node_insert(struct node *node, const struct sockaddr_in *addr)
{
	fi_addr_t fi_addr = FI_ADDR_NOTAVAIL;

	assert_int_equal(fi_av_insert(node->av, addr, 1, &fi_addr, 0, NULL), 1);
	return fi_addr;
}
