/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A library with nothing in it but the types of the public headers, for abidiff.test: built once with the headers of
 * the distribution and once with ours, its debug information is all that abidiff needs to compare them. Everything is
 * reached from the parameters of one function. What providers alone share (fi_prov.h, fi_peer.h) has no promise of
 * stability.
 */
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>
#include <rdma/fi_collective.h>

struct every_type {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_pep *pep;
	struct fid_mr *mr;
	struct fid_mc *mc;
	struct fid_stx *stx;
	struct fid_av_set *av_set;
	struct fi_mr_modify *mr_modify;
	struct fi_mr_raw_attr *mr_raw_attr;
	struct fi_mr_map_raw *mr_map_raw;
	struct fi_alias *alias;
	struct fi_param *param;
	struct fi_context *context;
	struct fi_context2 *context2;
	struct fi_mutex_cond *mutex_cond;
	struct fi_wait_pollfd *wait_pollfd;
	struct fi_eq_entry *eq_entry;
	struct fi_eq_err_entry *eq_err_entry;
	struct fi_eq_cm_entry *eq_cm_entry;
	struct fi_cq_tagged_entry *cq_tagged_entry;
	struct fi_cq_err_entry *cq_err_entry;
	struct fi_triggered_context *triggered_context;
	struct fi_triggered_context2 *triggered_context2;
	struct fi_deferred_work *deferred_work;
	struct fi_collective_addr *collective_addr;
	enum fi_type type;
};

int every_type(struct every_type *types);

int every_type(struct every_type *types)
{
	return types != 0;
}
