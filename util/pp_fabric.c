/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The libfabric objects of fi_pingpong: opened in the order that its peer expects, connected, closed in reverse order.
 * Runs before the first message and after the last one.
 */
#include "pp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "common.h"

/* The data check and the goodbye need buffers of at least this many bytes. */
#define MIN_BUF_LEN 64

/* Copy `text`, or NULL, to *to. False: no memory. */
static bool copy_text(char **to, const char *text)
{
	*to = text ? strdup(text) : NULL;
	return !text || *to;
}

int pp_fill_hints(struct pp *pp)
{
	const struct pp_opts *opts = pp->opts;
	struct fi_info *hints;

	hints = pp->hints = fi_allocinfo();
	if (!hints)
		return pp_fail(pp, -FI_ENOMEM, "fi_allocinfo");
	hints->caps = (opts->tagged ? FI_TAGGED : FI_MSG) | (opts->rma ? FI_RMA : 0) |
		      (opts->atomics ? FI_ATOMIC : 0) | opts->caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA | opts->mode;
	hints->ep_attr->type = opts->ep_type;
	hints->domain_attr->threading = opts->threading ? opts->threading : FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = opts->progress;
	hints->domain_attr->av_type = opts->av_type;
	hints->tx_attr->op_flags = opts->op_flags | (opts->delivered ? FI_DELIVERY_COMPLETE : 0);
	/* Order matters: each receive of the ring must get the message with its index. */
	if (opts->window > 1)
		hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->mr_mode = (FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				       FI_MR_ENDPOINT) & ~opts->not_mr_mode;
	if (!copy_text(&hints->fabric_attr->prov_name,
		       opts->provider || !*pp->provider ? opts->provider : pp->provider) ||
	    !copy_text(&hints->domain_attr->name, opts->domain) ||
	    !copy_text(&hints->fabric_attr->name, opts->fabric))
		return pp_fail(pp, -FI_ENOMEM, "fi_allocinfo");
	return opts->hints ? opts->hints(opts, hints) : 0;
}

/* With -6 the server prefers an interface with IPv6 addresses. */
static int ask(struct pp *pp)
{
	const struct pp_opts *opts = pp->opts;
	uint64_t flags = opts->src ? FI_SOURCE : 0;
	int ret = -FI_ENODATA;

	if (opts->ipv6 && !opts->server) {
		pp->hints->addr_format = FI_SOCKADDR_IN6;
		ret = fi_getinfo(UTIL_API_VERSION, opts->src, NULL, flags, pp->hints, &pp->info);
		if (ret)
			pp->hints->addr_format = FI_FORMAT_UNSPEC;
	}
	return ret ? fi_getinfo(UTIL_API_VERSION, opts->src, NULL, flags, pp->hints, &pp->info) : 0;
}

int pp_get_info(struct pp *pp)
{
	const struct pp_opts *opts = pp->opts;
	int ret = ask(pp);

	if (ret == -FI_ENODATA && opts->delivered && !(opts->op_flags & FI_DELIVERY_COMPLETE)) {
		pp->hints->tx_attr->op_flags &= ~FI_DELIVERY_COMPLETE;
		pp->hints->tx_attr->msg_order |= FI_ORDER_SAW;
		pp->hints->rx_attr->msg_order |= FI_ORDER_SAW;
		ret = ask(pp);
	}
	if (ret == -FI_ENODATA && opts->quiet)
		return ret;
	if (ret) {
		pp_fail(pp, ret, "fi_getinfo");
		fprintf(stderr, "To see what each interface lacks:\n  fi_info --why -t %s -c %s%s%s%s%s%s%s\n",
			util_tostr(&opts->ep_type, FI_TYPE_EP_TYPE), opts->tagged ? "FI_TAGGED" : "FI_MSG",
			opts->provider ? " -p " : "", opts->provider ? opts->provider : "",
			opts->domain ? " -d " : "", opts->domain ? opts->domain : "",
			opts->src ? " -s " : "", opts->src ? opts->src : "");
		return ret;
	}
	pp_debug(pp, "chosen from fi_getinfo:\n%s", util_tostr(pp->info, FI_TYPE_INFO));
	return 0;
}

int pp_find_provider(struct pp *pp)
{
	int ret = pp_fill_hints(pp);

	if (!ret)
		ret = pp_get_info(pp);
	if (!ret)
		snprintf(pp->provider, sizeof(pp->provider), "%s", pp->info->fabric_attr->prov_name);
	fi_freeinfo(pp->hints);
	fi_freeinfo(pp->info);
	pp->hints = pp->info = NULL;
	return ret;
}

int pp_open_fabric(struct pp *pp)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	int ret;

	ret = fi_fabric(pp->info->fabric_attr, &pp->fabric, NULL);
	if (ret)
		return pp_fail(pp, ret, "fi_fabric");
	if (pp->opts->ep_type != FI_EP_MSG)
		return 0;
	ret = fi_eq_open(pp->fabric, &attr, &pp->eq, NULL);
	return ret ? pp_fail(pp, ret, "fi_eq_open") : 0;
}

/* Set the size of the largest message. */
static int set_max_size(struct pp *pp)
{
	const struct pp_opts *opts = pp->opts;
	size_t allowed = pp->info->ep_attr->max_msg_size;

	pp->max_size = opts->size[opts->size_cnt - 1];
	if (pp->max_size <= allowed)
		return 0;
	if (opts->one_size)
		return pp_fail(pp, -FI_EMSGSIZE, "messages of %zu bytes: this endpoint allows %zu", pp->max_size,
			       allowed);
	pp->max_size = allowed;
	return 0;
}

static int alloc_buffers(struct pp *pp)
{
	size_t page = (size_t) sysconf(_SC_PAGESIZE);
	size_t need = pp->max_size > MIN_BUF_LEN ? pp->max_size : MIN_BUF_LEN;
	bool remote = pp->opts->rma || pp->opts->atomics;
	uint64_t access = FI_SEND | FI_RECV;
	size_t part, total;
	int ret;

	/* Debian's verbs requires it for receives only, so each direction is checked separately */
	if (pp->info->tx_attr->mode & FI_MSG_PREFIX)
		pp->tx_prefix = pp->info->ep_attr->msg_prefix_size;
	if (pp->info->rx_attr->mode & FI_MSG_PREFIX)
		pp->rx_prefix = pp->info->ep_attr->msg_prefix_size;
	need += pp->tx_prefix > pp->rx_prefix ? pp->tx_prefix : pp->rx_prefix;
	pp->slots = pp->opts->check || pp->opts->own_bufs ? pp->opts->window : 1;
	pp->buf_len = (need + page - 1) / page * page;
	part = pp->slots * pp->buf_len;
	total = (remote ? 3 : 2) * part;
	pp->tx_buf = aligned_alloc(page, total);
	pp->tx = calloc(2 * (size_t) pp->opts->window, sizeof(*pp->tx));
	if (!pp->tx_buf || !pp->tx)
		return pp_fail(pp, -FI_ENOMEM, "buffers of %zu bytes", total);
	memset(pp->tx_buf, 0, total);
	pp->rx_buf = pp->tx_buf + part;
	pp->rx = pp->tx + pp->opts->window;
	if (remote) {
		pp->rma_buf = pp->rx_buf + part;
		access |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	} else if (!(pp->info->domain_attr->mr_mode & FI_MR_LOCAL)) {
		return 0;
	}
	ret = fi_mr_reg(pp->domain, pp->tx_buf, total, access, 0, 0, 0, &pp->mr, NULL);
	return ret ? pp_fail(pp, ret, "fi_mr_reg of %zu bytes", total) : 0;
}

static int open_av(struct pp *pp)
{
	struct fi_av_attr attr = { .type = pp->info->domain_attr->av_type, .count = 1 };
	int ret;

	if (pp->opts->ep_type == FI_EP_MSG)
		return 0;
	ret = fi_av_open(pp->domain, &attr, &pp->av, NULL);
	return ret ? pp_fail(pp, ret, "fi_av_open") : 0;
}

/* The wait object for this way of waiting. */
static enum fi_wait_obj wait_obj(const struct pp_opts *opts)
{
	if (opts->look == PP_LOOK_FD)
		return FI_WAIT_FD;
	return opts->look == PP_LOOK_SREAD ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
}

/* With PP_LOOK_FD: get the descriptor of an object. */
static int get_fd(const struct pp *pp, struct fid *fid, int *fd)
{
	int ret = pp->opts->look == PP_LOOK_FD ? fi_control(fid, FI_GETWAIT, fd) : 0;

	if (ret == -FI_ENOSYS)
		util_err("skipped: the provider's queues and counters have no descriptor to wait for");
	return ret ? pp_fail(pp, ret, "fi_control(FI_GETWAIT)") : 0;
}

static int open_cntr(struct pp *pp, struct fid_cntr **cntr, int *fd)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = wait_obj(pp->opts) };
	int ret;

	ret = fi_cntr_open(pp->domain, &attr, cntr, NULL);
	return ret ? pp_fail(pp, ret, "fi_cntr_open") : get_fd(pp, &(*cntr)->fid, fd);
}

/* Open the queue and, if used, the counters. */
static int open_completions(struct pp *pp)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE };
	bool counters = pp->opts->counters;
	int ret;

	if (pp->opts->window > 1)
		attr.size = 2 * (size_t) pp->opts->window + 2;
	if (!counters)
		attr.wait_obj = wait_obj(pp->opts);
	ret = fi_cq_open(pp->domain, &attr, &pp->cq, NULL);
	if (ret)
		return pp_fail(pp, ret, "fi_cq_open");
	pp->spins = PP_POLLS_PER_TICK;
	if (!counters)
		return get_fd(pp, &pp->cq->fid, &pp->cq_fd);
	ret = open_cntr(pp, &pp->tx_cntr, &pp->tx_fd);
	return ret ? ret : open_cntr(pp, &pp->rx_cntr, &pp->rx_fd);
}

int pp_open_domain(struct pp *pp)
{
	int ret;

	ret = fi_domain(pp->fabric, pp->info, &pp->domain, NULL);
	if (ret)
		return pp_fail(pp, ret, "fi_domain");
	ret = set_max_size(pp);
	if (!ret)
		ret = alloc_buffers(pp);
	if (!ret)
		ret = open_completions(pp);
	return ret ? ret : open_av(pp);
}

/* Bind all open objects to an endpoint, and enable it. */
static int bind_all(struct pp *pp, struct fid_ep *ep)
{
	uint64_t selective = pp->opts->counters ? FI_SELECTIVE_COMPLETION : 0;
	const struct {
		struct fid *fid;
		uint64_t flags;
		const char *what;
	} bind[] = {
		{ pp->eq ? &pp->eq->fid : NULL, 0, "event queue" },
		{ pp->av ? &pp->av->fid : NULL, 0, "address vector" },
		{ &pp->cq->fid, FI_TRANSMIT | FI_RECV | selective, "completion queue" },
		{ pp->tx_cntr ? &pp->tx_cntr->fid : NULL,
		  FI_SEND | (pp->opts->rma || pp->opts->atomics ? FI_WRITE | FI_READ : 0),
		  "counter of transmit operations" },
		{ pp->rx_cntr ? &pp->rx_cntr->fid : NULL, FI_RECV, "counter of receives" },
	};
	int ret = 0;
	size_t i;

	for (i = 0; i < sizeof(bind) / sizeof(bind[0]) && !ret; i++) {
		ret = bind[i].fid ? fi_ep_bind(ep, bind[i].fid, bind[i].flags) : 0;
		if (ret)
			pp_fail(pp, ret, "fi_ep_bind to the %s", bind[i].what);
	}
	if (ret)
		return ret;
	ret = fi_enable(ep);
	return ret ? pp_fail(pp, ret, "fi_enable") : 0;
}

int pp_open_ep(struct pp *pp, struct fid_ep **ep)
{
	struct fid_ep *opened;
	int ret;

	ret = fi_endpoint(pp->domain, pp->info, &opened, NULL);
	if (ret)
		return pp_fail(pp, ret, "fi_endpoint");
	ret = bind_all(pp, opened);
	if (ret)
		pp_close(pp, &opened->fid, "endpoint");
	else
		*ep = opened;
	return ret;
}

/* Domain, buffers, queues and the endpoint, enabled and with its receives posted. */
static int open_endpoint(struct pp *pp)
{
	int ret;

	ret = pp_open_domain(pp);
	if (!ret)
		ret = pp_open_ep(pp, &pp->ep);
	if (!ret && pp->info->domain_attr->mr_mode & FI_MR_ENDPOINT && pp->mr) {
		ret = fi_mr_bind(pp->mr, &pp->ep->fid, 0);
		if (!ret)
			ret = fi_mr_enable(pp->mr);
		if (ret)
			return pp_fail(pp, ret, "bind the memory region to the endpoint");
	}
	return ret ? ret : pp_post_recvs(pp);
}

static int open_msg_server(struct pp *pp)
{
	int ret;

	ret = pp_get_info(pp);
	if (!ret)
		ret = pp_open_fabric(pp);
	if (!ret)
		ret = pp_listen(pp);
	if (!ret)
		ret = pp_wait_request(pp);
	if (!ret)
		ret = open_endpoint(pp);
	return ret ? ret : pp_accept(pp, pp->ep);
}

static int open_msg_client(struct pp *pp)
{
	int ret;

	ret = pp_get_info_to_server(pp);
	if (!ret)
		ret = pp_open_fabric(pp);
	if (!ret)
		ret = open_endpoint(pp);
	return ret ? ret : pp_connect(pp, pp->ep);
}

static int open_rdm_server(struct pp *pp)
{
	int ret;

	ret = pp_get_info(pp);
	if (!ret)
		ret = pp_open_fabric(pp);
	if (!ret)
		ret = open_endpoint(pp);
	if (!ret)
		ret = pp_send_name(pp, &pp->ep->fid);
	return ret ? ret : pp_recv_peer(pp, pp->av, &pp->peer_addr);
}

static int open_rdm_client(struct pp *pp)
{
	int ret;

	ret = pp_get_info_to_server(pp);
	if (!ret)
		ret = pp_open_fabric(pp);
	if (!ret)
		ret = open_endpoint(pp);
	if (!ret)
		ret = pp_send_name(pp, &pp->ep->fid);
	return ret ? ret : pp_insert_peer(pp, pp->av, pp->hints->dest_addr, pp->hints->addr_format, &pp->peer_addr);
}

int pp_fabric_open(struct pp *pp)
{
	static int (*const open_calls[2][2])(struct pp *pp) = {
		{ open_rdm_server, open_rdm_client },
		{ open_msg_server, open_msg_client },
	};
	int ret;

	pp->xfer = pp->opts->tagged ? &pp_tagged_xfer : &pp_msg_xfer;
	pp->peer_addr = FI_ADDR_UNSPEC;
	ret = pp_fill_hints(pp);
	if (!ret)
		ret = open_calls[pp->opts->ep_type == FI_EP_MSG][!!pp->opts->server](pp);
	return ret || !pp->opts->opened ? ret : pp->opts->opened(pp);
}

int pp_close(const struct pp *pp, struct fid *fid, const char *what)
{
	int ret = fid ? fi_close(fid) : 0;

	return ret ? pp_fail(pp, ret, "fi_close of the %s", what) : 0;
}

int pp_fabric_close(struct pp *pp)
{
	/* In this order: each object before the one from which it was opened. */
	const struct {
		struct fid *fid;
		const char *what;
	} open[] = {
		{ pp->ep ? &pp->ep->fid : NULL, "endpoint" },
		{ pp->pep ? &pp->pep->fid : NULL, "passive endpoint" },
		{ pp->mr ? &pp->mr->fid : NULL, "memory region" },
		{ pp->tx_cntr ? &pp->tx_cntr->fid : NULL, "counter of transmit operations" },
		{ pp->rx_cntr ? &pp->rx_cntr->fid : NULL, "counter of receives" },
		{ pp->cq ? &pp->cq->fid : NULL, "completion queue" },
		{ pp->av ? &pp->av->fid : NULL, "address vector" },
		{ pp->domain ? &pp->domain->fid : NULL, "domain" },
		{ pp->eq ? &pp->eq->fid : NULL, "event queue" },
		{ pp->fabric ? &pp->fabric->fid : NULL, "fabric" },
	};
	int ret, first = 0;
	size_t i;

	for (i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		ret = pp_close(pp, open[i].fid, open[i].what);
		first = first ? first : ret;
	}
	free(pp->tx_buf);
	free(pp->tx);
	fi_freeinfo(pp->info);
	fi_freeinfo(pp->hints);
	return first;
}
