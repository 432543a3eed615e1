/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Exported address vectors and sets of addresses. Peers only read them, so they need no inbox. */
#include "common/lent/lent_own.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_peer.h>
#include "common/domain/domain.h"
#include "common/ops/ops.h"

struct av_export {
	struct fid_peer_av peer;
	struct fab_av *av;		/* borrowed: has a reference */
};

struct set_export {
	struct fid_peer_av_set peer;
	struct fab_av_set *set;		/* borrowed: has a reference */
};

/* ---- address vectors ---- */

static int av_query(struct fid_peer_av *peer, struct fi_av_attr *attr)
{
	struct fab_av *av = fab_container(peer, struct av_export, peer)->av;

	if (!attr)
		return -FI_EINVAL;
	*attr = (struct fi_av_attr) {
		.type = av->domain->attr.av_type ? av->domain->attr.av_type : FI_AV_TABLE,
		.rx_ctx_bits = av->rx_ctx_bits,
		.flags = (av->async ? FI_EVENT : 0) | (av->user_ids ? FI_AV_USER_ID : 0),
	};
	pthread_mutex_lock(&av->lock);
	attr->count = av->addr_cnt;
	pthread_mutex_unlock(&av->lock);
	return 0;
}

static fi_addr_t av_ep_addr(struct fid_peer_av *peer, struct fid_ep *ep)
{
	struct fab_av *av = fab_container(peer, struct av_export, peer)->av;
	union fab_sockaddr addr;
	size_t len = sizeof(addr);

	memset(&addr, 0, sizeof(addr));
	if (!ep || fi_getname(&ep->fid, &addr, &len) || len != av->addrlen || addr.sa.sa_family != av->family)
		return FI_ADDR_NOTAVAIL;
	return fab_av_find(av, &addr);
}

static int av_export_close(struct fid *fid)
{
	struct av_export *x = fab_container(fid, struct av_export, peer.fid);

	fab_av_put(x->av);
	free(x);
	return 0;
}

static struct fi_ops av_export_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_export_close,
};

static struct fi_ops_av_owner av_owner_ops = {
	.size = sizeof(struct fi_ops_av_owner),
	.query = av_query,
	.ep_addr = av_ep_addr,
};

int fab_export_av(struct fab_av *av, struct fi_fid_export *exp)
{
	struct av_export *x;
	int ret;

	ret = fab_export_check(av->domain->fabric->prov, exp, false);
	if (ret)
		return ret;
	x = malloc(sizeof(*x));
	if (!x)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&av_export_ops);
	*x = (struct av_export) { { { FI_CLASS_PEER_AV, exp->context, &av_export_ops }, &av_owner_ops }, av };
	fab_av_get(av);
	*exp->fid = &x->peer.fid;
	return 0;
}

/* ---- sets ---- */

static int set_members(struct fid_peer_av_set *peer, fi_addr_t *addr, size_t *count)
{
	struct fab_av_set *set = fab_container(peer, struct set_export, peer)->set;
	int ret = 0;

	if (!count)
		return -FI_EINVAL;
	pthread_mutex_lock(&set->av->change_lock);
	if (*count < set->cnt)
		ret = -FI_ETOOSMALL;
	else if (set->cnt)
		memcpy(addr, set->addr, set->cnt * sizeof(*addr));
	*count = set->cnt;
	pthread_mutex_unlock(&set->av->change_lock);
	return ret;
}

static int set_export_close(struct fid *fid)
{
	struct set_export *x = fab_container(fid, struct set_export, peer.fid);

	atomic_fetch_sub(&x->set->ref, 1);
	free(x);
	return 0;
}

static struct fi_ops set_export_ops = {
	.size = sizeof(struct fi_ops),
	.close = set_export_close,
};

static struct fi_ops_av_set_owner set_owner_ops = {
	.size = sizeof(struct fi_ops_av_set_owner),
	.members = set_members,
};

int fab_export_av_set(struct fab_av_set *set, struct fi_fid_export *exp)
{
	struct set_export *x;
	int ret;

	ret = fab_export_check(set->av->domain->fabric->prov, exp, false);
	if (ret)
		return ret;
	x = malloc(sizeof(*x));
	if (!x)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&set_export_ops);
	*x = (struct set_export) { { { FI_CLASS_PEER_AV_SET, exp->context, &set_export_ops }, &set_owner_ops }, set };
	atomic_fetch_add(&set->ref, 1);
	*exp->fid = &x->peer.fid;
	return 0;
}
