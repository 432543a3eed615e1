/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The rules of shared contexts that are the same for all providers. */
#include "common/endpoint/shared.h"

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

void fab_rx_attr_take(struct fi_info *info, const struct fi_rx_attr *attr)
{
	struct fi_rx_attr *mine = info->rx_attr;

	FAB_TAKE(mine, attr, caps);
	FAB_TAKE(mine, attr, msg_order);
	FAB_TAKE(mine, attr, comp_order);
	FAB_TAKE(mine, attr, size);
	FAB_TAKE(mine, attr, iov_limit);
	mine->mode = attr->mode;
	mine->op_flags = attr->op_flags;
	FAB_TAKE(info, attr, caps);
}

int fab_shared_check_bind(const struct fab_ep *ep, const struct fab_ep *ctx, bool has_one, bool late,
			  uint64_t kinds, uint64_t flags)
{
	const char *why = NULL;
	int ret = -FI_EINVAL;

	if (flags) {
		why = "flags are 0 for these";
	} else if (ctx->domain != ep->domain) {
		why = "it belongs to another domain";
		ret = -FI_EDOMAIN;
	} else if (ep->enabled && !late) {
		why = "the endpoint is enabled; bind before fi_enable()";
		ret = -FI_EOPBADSTATE;
	} else if (has_one) {
		why = "the endpoint has one";
	} else if (ep->caps & ~ctx->caps & kinds) {
		why = "the endpoint has capabilities that the shared context lacks (fi_endpoint(3))";
	} else {
		return 0;
	}
	FI_WARN(ep->domain->fabric->prov, FI_LOG_EP_CTRL, "fi_ep_bind of a shared context: %s\n", why);
	return ret;
}

int fab_shared_busy(const struct fab_ep *ctx, const char *what)
{
	FI_WARN(ctx->domain->fabric->prov, FI_LOG_EP_CTRL, "fi_close of a shared %s context that endpoints use; close "
		"them first\n", what);
	return -FI_EBUSY;
}

int fab_shared_missing(const struct fab_ep *ep)
{
	FI_WARN(ep->domain->fabric->prov, FI_LOG_EP_CTRL, "fi_enable: the endpoint was opened with FI_SHARED_CONTEXT; "
		"bind the shared context first\n");
	return -FI_EOPBADSTATE;
}
