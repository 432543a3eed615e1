/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scalable endpoints and their contexts: open, bind, enable, close. peer/contexts.h has the part that the contexts
 * share.
 */
#include "tcp/endpoint/ep.h"

#include <stdlib.h>
#include <string.h>
#include "base/sock.h"
#include "common/endpoint/endpoint.h"
#include "common/net/net.h"
#include "common/ops/ops.h"
#include "tcp/calls/calls.h"
#include "tcp/collective/collective.h"
#include "tcp/offer/offer.h"
#include "tcp/params/params.h"
#include "tcp/peer/peer.h"

static struct tcp_sep *sep_of(const struct fid *fid)
{
	return fab_container(tcp_ep_of(fid), struct tcp_sep, ep);
}

/* ---- contexts ---- */

static struct fi_ops_cm tx_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.getname = tcp_rdm_getname,
	.join = tcp_coll_ctx_join,
};

static struct fi_ops_cm rx_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.getname = tcp_rdm_getname,
};

static struct fab_ep_ops sep_ctx_ops(const struct fi_info *info, bool tx)
{
	struct tcp_half_ops *half = tx ? &tcp_tx_half : &tcp_rx_half;

	return (struct fab_ep_ops) {
		.fid = &tcp_ep_fid_ops,
		.ep = &tcp_ep_ops,
		.cm = tx ? &tx_cm_ops : &rx_cm_ops,
		.msg = &half->msg,
		.tagged = &half->tagged,
		.rma = tx ? &tcp_rma_ops : NULL,
		.atomic = tx ? &tcp_atomic_ops : NULL,
		.collective = tx && (info->caps & FI_COLLECTIVE) ? &fab_coll_ops : NULL,
		.enable = tcp_ep_enable,
	};
}

/* Reserve the index for a new context. NULL: not possible, *ret is the error. */
static struct tcp_sep_slot *sep_slot_take(struct tcp_sep *sep, bool tx, int index, struct tcp_ep *ctx, int *ret)
{
	struct tcp_sep_slot *slot = NULL;
	uint32_t cnt = tx ? sep->tx_cnt : sep->rx_cnt;

	*ret = -FI_EINVAL;
	if (index >= 0 && (uint32_t) index < cnt) {
		slot = tx ? &sep->tx[index] : &sep->rx[index];
		pthread_mutex_lock(&sep->lock);
		*ret = slot->open ? -FI_EBUSY : 0;
		if (!*ret)
			slot->open = ctx;
		pthread_mutex_unlock(&sep->lock);
	}
	if (*ret)
		TCP_WARN(FI_LOG_EP_CTRL, "%s: context %d of a scalable endpoint %s; it was opened with %u of them "
			 "(ep_attr)\n", tx ? "fi_tx_context" : "fi_rx_context", index,
			 *ret == -FI_EBUSY ? "is open already" : "does not exist", cnt);
	return *ret ? NULL : slot;
}

/* Initialise a context. info is the scalable endpoint's, with the attributes of the context. */
static int sep_ctx_init(struct tcp_ep *ctx, struct tcp_sep *sep, const struct fi_info *info, bool tx, int index,
			void *context)
{
	const uint64_t not_tx = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE, not_rx = FI_SEND | FI_READ | FI_WRITE;
	struct fab_domain *domain = sep->ep.base.domain;
	struct fab_ep_ops ops = sep_ctx_ops(info, tx);
	int ret;

	if (info->caps & ~sep->ep.base.info->caps) {
		TCP_WARN(FI_LOG_EP_CTRL, "a context of a scalable endpoint asks for capabilities %#llx, which the "
			 "scalable endpoint lacks\n",
			 (unsigned long long) (info->caps & ~sep->ep.base.info->caps));
		return -FI_EINVAL;
	}
	ret = tcp_info_check(info, domain);
	if (!ret)
		ret = tcp_ep_init(ctx, domain, info, &ops, context);
	if (ret)
		return ret;
	if (ops.collective)
		ret = fab_coll_open(&ctx->base, &tcp_coll_net);
	if (ret) {
		tcp_ep_fini(ctx);
		return ret;
	}
	ctx->base.ep_fid.fid.fclass = tx ? FI_CLASS_TX_CTX : FI_CLASS_RX_CTX;
	ctx->base.caps &= ~(tx ? not_tx : not_rx);
	ctx->incarnation = sep->ep.incarnation;
	ctx->shared_memory = sep->ep.shared_memory;
	ctx->base.name = sep->ep.base.name;
	ctx->context.sep = sep;
	ctx->context.number = index;
	return 0;
}

static int sep_ctx_open(struct tcp_sep *sep, const struct fi_info *info, bool tx, int index, struct fid_ep **fid,
			void *context)
{
	struct tcp_ep *ctx = calloc(1, sizeof(*ctx));
	struct tcp_sep_slot *slot;
	int ret;

	if (!ctx)
		return -FI_ENOMEM;
	slot = sep_slot_take(sep, tx, index, ctx, &ret);
	if (slot)
		ret = sep_ctx_init(ctx, sep, info, tx, index, context);
	if (!ret) {
		*fid = &ctx->base.ep_fid;
		return 0;
	}
	if (slot) {
		pthread_mutex_lock(&sep->lock);
		slot->open = NULL;
		pthread_mutex_unlock(&sep->lock);
	}
	free(ctx);
	return ret;
}

static int sep_tx_ctx(struct fid_ep *fid, int index, struct fi_tx_attr *attr, struct fid_ep **tx_fid, void *context)
{
	struct tcp_sep *sep = sep_of(&fid->fid);
	struct fi_info *info = fi_dupinfo(sep->ep.base.info);
	int ret;

	if (!info)
		return -FI_ENOMEM;
	if (attr)
		tcp_take_tx_attr(sep->ep.base.domain, info, attr);
	ret = sep_ctx_open(sep, info, true, index, tx_fid, context);
	if (!ret && attr)
		tcp_give_tx_attr(sep->ep.base.domain, info, attr);
	fi_freeinfo(info);
	return ret;
}

static int sep_rx_ctx(struct fid_ep *fid, int index, struct fi_rx_attr *attr, struct fid_ep **rx_fid, void *context)
{
	struct tcp_sep *sep = sep_of(&fid->fid);
	struct fi_info *info = fi_dupinfo(sep->ep.base.info);
	int ret;

	if (!info)
		return -FI_ENOMEM;
	if (attr)
		fab_rx_attr_take(info, attr);
	ret = sep_ctx_open(sep, info, false, index, rx_fid, context);
	if (!ret && attr)
		*attr = *info->rx_attr;
	fi_freeinfo(info);
	return ret;
}

/* ---- the endpoint itself ---- */

static bool sep_busy(struct tcp_sep *sep)
{
	bool busy = false;

	pthread_mutex_lock(&sep->lock);
	for (uint32_t i = 0; i < sep->tx_cnt; i++)
		busy |= sep->tx[i].open != NULL;
	for (uint32_t i = 0; i < sep->rx_cnt; i++)
		busy |= sep->rx[i].open != NULL;
	pthread_mutex_unlock(&sep->lock);
	return busy;
}

static void sep_free(struct tcp_sep *sep)
{
	fab_sock_close(&sep->fd);
	pthread_mutex_destroy(&sep->lock);
	free(sep->tx);
	free(sep->rx);
	free(sep);
}

static int sep_close(struct fid *fid)
{
	struct tcp_sep *sep = sep_of(fid);
	int ret;

	ret = fab_ep_check_close(&sep->ep.base);
	if (ret)
		return ret;
	if (sep_busy(sep)) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_close of a scalable endpoint that has open contexts; close them first\n");
		return -FI_EBUSY;
	}
	tcp_ep_fini(&sep->ep);
	sep_free(sep);
	return 0;
}

static int sep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	if (bfid->fclass == FI_CLASS_AV || bfid->fclass == FI_CLASS_EQ)
		return fab_ep_bind(fid, bfid, flags);
	TCP_WARN(FI_LOG_EP_CTRL, "fi_scalable_ep_bind: object of class %zu; only an address vector can be bound here; "
		 "bind queues, counters and shared contexts to the endpoint's contexts\n", bfid->fclass);
	return -FI_EINVAL;
}

static int sep_enable(struct fab_ep *base)
{
	struct tcp_sep *sep = fab_container(base, struct tcp_sep, ep.base);
	int ret;

	if (sep->ep.base.enabled)
		return tcp_enabled_again(base);
	if (!sep->ep.base.bound.av) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_enable of a scalable endpoint: bind an address vector\n");
		return -FI_ENOAV;
	}
	ret = tcp_sep_bind(sep);
	sep->ep.base.enabled = !ret;
	return ret;
}

static int sep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct tcp_sep *sep = sep_of(fid);
	int ret = -FI_EOPBADSTATE;

	pthread_mutex_lock(&sep->lock);
	if (sep->fd < 0)
		ret = fab_name_take(&tcp_prov, &sep->ep.base.name, sep->ep.base.info, addr, addrlen);
	else
		TCP_WARN(FI_LOG_EP_CTRL, "fi_setname: the endpoint or one of its contexts is enabled already\n");
	pthread_mutex_unlock(&sep->lock);
	return ret;
}

static struct fi_ops sep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = sep_close,
	.bind = sep_bind,
	.control = fab_ep_control,
};

static struct fi_ops_ep sep_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.getopt = fab_ep_getopt,
	.setopt = fab_ep_setopt,
	.tx_ctx = sep_tx_ctx,
	.rx_ctx = sep_rx_ctx,
};

static struct fi_ops_cm sep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = sep_setname,
	.getname = tcp_rdm_getname,
};

void tcp_sep_fill_ops(void)
{
	FAB_OPS_FILL(&tx_cm_ops);
	FAB_OPS_FILL(&rx_cm_ops);
	FAB_OPS_FILL(&sep_fid_ops);
	FAB_OPS_FILL(&sep_ep_ops);
	FAB_OPS_FILL(&sep_cm_ops);
}

/* ---- open ---- */

static int sep_check_open(const struct fab_domain *domain, const struct fi_info *info)
{
	int ret = fab_ep_check_parts(domain, info);

	if (!ret)
		ret = tcp_info_check(info, domain);
	if (ret)
		return ret;
	if (info->ep_attr->type == FI_EP_RDM && info->ep_attr->tx_ctx_cnt != FI_SHARED_CONTEXT &&
	    info->ep_attr->rx_ctx_cnt != FI_SHARED_CONTEXT)
		return 0;
	TCP_WARN(FI_LOG_EP_CTRL, "fi_scalable_ep: ep_attr->type is %d, tx_ctx_cnt %zu, rx_ctx_cnt %zu; a scalable "
		 "endpoint needs FI_EP_RDM, and shared contexts are bound to its contexts\n",
		 info->ep_attr->type, info->ep_attr->tx_ctx_cnt, info->ep_attr->rx_ctx_cnt);
	return -FI_EINVAL;
}

static struct tcp_sep_slot *sep_slots_new(uint32_t cnt)
{
	struct tcp_sep_slot *slots = calloc(cnt, sizeof(*slots));

	for (uint32_t i = 0; slots && i < cnt; i++)
		fab_list_init(&slots[i].inbox);
	return slots;
}

static struct tcp_sep *sep_new(const struct fi_info *info)
{
	struct tcp_sep *sep = calloc(1, sizeof(*sep));

	if (!sep)
		return NULL;
	pthread_mutex_init(&sep->lock, NULL);
	sep->fd = -1;
	sep->tx_cnt = info->ep_attr->tx_ctx_cnt ? info->ep_attr->tx_ctx_cnt : 1;
	sep->rx_cnt = info->ep_attr->rx_ctx_cnt ? info->ep_attr->rx_ctx_cnt : 1;
	sep->tx = sep_slots_new(sep->tx_cnt);
	sep->rx = sep_slots_new(sep->rx_cnt);
	if (sep->tx && sep->rx)
		return sep;
	sep_free(sep);
	return NULL;
}

int tcp_sep_open(struct fid_domain *domain_fid, struct fi_info *info, struct fid_ep **sep_fid, void *context)
{
	const struct fab_ep_ops ops = {
		.fid = &sep_fid_ops, .ep = &sep_ep_ops, .cm = &sep_cm_ops, .enable = sep_enable,
	};
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct tcp_sep *sep;
	int ret;

	ret = sep_check_open(domain, info);
	if (ret)
		return ret;
	sep = sep_new(info);
	if (!sep)
		return -FI_ENOMEM;
	ret = tcp_ep_init(&sep->ep, domain, info, &ops, context);
	if (ret) {
		sep_free(sep);
		return ret;
	}
	sep->ep.base.ep_fid.fid.fclass = FI_CLASS_SEP;
	*sep_fid = &sep->ep.base.ep_fid;
	return 0;
}
