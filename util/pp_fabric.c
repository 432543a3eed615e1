/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The libfabric objects of fi_pingpong: opened in the order that its peer expects, connected, closed in reverse. Runs
 * before the first message and after the last one.
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

/* A wait on an event queue returns this often to see whether the peer is still there. */
#define EQ_SLICE_MS 50
/* The data check and the goodbye need buffers of at least this many bytes. */
#define MIN_BUF_LEN 64

/* What we ask libfabric for. */
static int fill_hints(struct pp *pp)
{
	const struct pp_opts *opts = pp->opts;
	struct fi_info *hints;

	hints = pp->hints = fi_allocinfo();
	if (!hints)
		return pp_fail(pp, -FI_ENOMEM, "fi_allocinfo");
	hints->caps = (opts->tagged ? FI_TAGGED : FI_MSG) | (opts->rma ? FI_RMA : 0);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = opts->ep_type;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->op_flags = opts->op_flags;
	/* A receive of the ring has the message of its turn. */
	if (opts->window > 1)
		hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (opts->provider)
		hints->fabric_attr->prov_name = strdup(opts->provider);
	if (opts->domain)
		hints->domain_attr->name = strdup(opts->domain);
	if (opts->fabric)
		hints->fabric_attr->name = strdup(opts->fabric);
	if ((opts->provider && !hints->fabric_attr->prov_name) || (opts->domain && !hints->domain_attr->name) ||
	    (opts->fabric && !hints->fabric_attr->name))
		return pp_fail(pp, -FI_ENOMEM, "fi_allocinfo");
	return 0;
}

/* Take the first interface that fits. With -6 the server prefers one with IPv6 addresses. */
static int get_info(struct pp *pp)
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
	if (ret)
		ret = fi_getinfo(UTIL_API_VERSION, opts->src, NULL, flags, pp->hints, &pp->info);
	if (ret) {
		pp_fail(pp, ret, "fi_getinfo");
		fprintf(stderr, "what each interface lacks is said by:\n  fi_info --why -t %s -c %s%s%s%s%s%s%s\n",
			util_tostr(&opts->ep_type, FI_TYPE_EP_TYPE), opts->tagged ? "FI_TAGGED" : "FI_MSG",
			opts->provider ? " -p " : "", opts->provider ? opts->provider : "",
			opts->domain ? " -d " : "", opts->domain ? opts->domain : "",
			opts->src ? " -s " : "", opts->src ? opts->src : "");
		return ret;
	}
	pp_debug(pp, "chosen from fi_getinfo:\n%s", util_tostr(pp->info, FI_TYPE_INFO));
	return 0;
}

/* Learn the server's address and ask for an interface that reaches it. */
static int get_info_to_server(struct pp *pp)
{
	int ret;

	ret = pp_ctrl_recv_name(pp, &pp->hints->dest_addr, &pp->hints->dest_addrlen, &pp->hints->addr_format);
	return ret ? ret : get_info(pp);
}

static int open_fabric(struct pp *pp)
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

/* The largest message that will be exchanged. */
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
	uint64_t access = FI_SEND | FI_RECV;
	size_t part, total;
	int ret;

	pp->slots = pp->opts->check ? pp->opts->window : 1;
	pp->buf_len = (need + page - 1) / page * page;
	part = pp->slots * pp->buf_len;
	total = (pp->opts->rma ? 3 : 2) * part;
	pp->tx_buf = aligned_alloc(page, total);
	pp->tx = calloc(2 * (size_t) pp->opts->window, sizeof(*pp->tx));
	if (!pp->tx_buf || !pp->tx)
		return pp_fail(pp, -FI_ENOMEM, "buffers of %zu bytes", total);
	memset(pp->tx_buf, 0, total);
	pp->rx_buf = pp->tx_buf + part;
	pp->rx = pp->tx + pp->opts->window;
	if (pp->opts->rma) {
		pp->rma_buf = pp->rx_buf + part;
		access |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	} else if (!(pp->info->domain_attr->mr_mode & FI_MR_LOCAL)) {
		return 0;
	}
	ret = fi_mr_reg(pp->domain, pp->tx_buf, total, access, 0, 0, 0, &pp->mr, NULL);
	return ret ? pp_fail(pp, ret, "fi_mr_reg of %zu bytes", total) : 0;
}

static int bind_ep(struct pp *pp, struct fid *fid, uint64_t flags, const char *what)
{
	int ret;

	if (!fid)
		return 0;
	ret = fi_ep_bind(pp->ep, fid, flags);
	return ret ? pp_fail(pp, ret, "fi_ep_bind to the %s", what) : 0;
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

/* Domain, buffers, queues and the endpoint, enabled and with its receives posted. */
static int open_endpoint(struct pp *pp)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE };
	int ret;

	ret = fi_domain(pp->fabric, pp->info, &pp->domain, NULL);
	if (ret)
		return pp_fail(pp, ret, "fi_domain");
	ret = set_max_size(pp);
	if (!ret)
		ret = alloc_buffers(pp);
	if (ret)
		return ret;
	if (pp->opts->window > 1)
		cq_attr.size = 2 * (size_t) pp->opts->window + 2;
	ret = fi_cq_open(pp->domain, &cq_attr, &pp->cq, NULL);
	if (ret)
		return pp_fail(pp, ret, "fi_cq_open");
	ret = open_av(pp);
	if (ret)
		return ret;
	ret = fi_endpoint(pp->domain, pp->info, &pp->ep, NULL);
	if (ret)
		return pp_fail(pp, ret, "fi_endpoint");
	ret = bind_ep(pp, pp->eq ? &pp->eq->fid : NULL, 0, "event queue");
	if (!ret)
		ret = bind_ep(pp, pp->av ? &pp->av->fid : NULL, 0, "address vector");
	if (!ret)
		ret = bind_ep(pp, &pp->cq->fid, FI_TRANSMIT | FI_RECV, "completion queue");
	if (ret)
		return ret;
	ret = fi_enable(pp->ep);
	if (ret)
		return pp_fail(pp, ret, "fi_enable");
	return pp_post_recvs(pp);
}

/* Tell the peer the address of one of our endpoints. */
static int send_name(struct pp *pp, struct fid *fid)
{
	size_t len = 0;
	void *name;
	int ret;

	ret = fi_getname(fid, NULL, &len);
	if (ret && ret != -FI_ETOOSMALL)
		return pp_fail(pp, ret, "fi_getname");
	name = calloc(1, len ? len : 1);
	if (!name)
		return pp_fail(pp, -FI_ENOMEM, "fi_getname");
	ret = fi_getname(fid, name, &len);
	if (ret) {
		pp_fail(pp, ret, "fi_getname");
	} else {
		pp_debug(pp, "our address is %s", util_addr_text(pp->info->addr_format, name, len));
		ret = pp_ctrl_send_name(pp, name, len, pp->info->addr_format);
	}
	free(name);
	return ret;
}

/* Put the peer's address into the address vector. */
static int insert_peer(struct pp *pp, const void *name, uint32_t addr_format)
{
	uint32_t ours = pp->info->addr_format;
	int ret;

	if (addr_format != ours)
		return pp_fail(pp, -FI_EADDRNOTAVAIL, "the peer's address format is %u, ours is %u", addr_format, ours);
	ret = fi_av_insert(pp->av, name, 1, &pp->peer_addr, 0, NULL);
	return ret == 1 ? 0 : pp_fail(pp, ret < 0 ? ret : -FI_EINVAL, "fi_av_insert");
}

/* Explain the error event behind -FI_EAVAIL. */
static int eq_error(struct pp *pp, const char *what)
{
	struct fi_eq_err_entry entry = { .err_data_size = 0 };
	const char *detail;
	char buf[256];
	ssize_t ret;

	ret = fi_eq_readerr(pp->eq, &entry, 0);
	if (ret < 0)
		return pp_fail(pp, (int) ret, "fi_eq_readerr");
	detail = fi_eq_strerror(pp->eq, entry.prov_errno, entry.err_data, buf, sizeof(buf));
	return pp_fail(pp, entry.err ? -entry.err : -FI_EOTHER, "%s: provider error %d (%s)", what, entry.prov_errno,
		       detail ? detail : "no text");
}

/* Wait for one event of the connection; any other than `wanted` is an error. */
static int wait_event(struct pp *pp, uint32_t wanted, struct fi_eq_cm_entry *entry, const char *what)
{
	struct pp_wait wait = { .start = util_now_ns() };
	uint32_t event;
	ssize_t len;
	int ret;

	for (;;) {
		len = fi_eq_sread(pp->eq, &event, entry, sizeof(*entry), EQ_SLICE_MS, 0);
		if (len == -FI_EAVAIL)
			return eq_error(pp, what);
		if (len < 0 && len != -FI_EAGAIN && len != -FI_EINTR)
			return pp_fail(pp, (int) len, "fi_eq_sread");
		if (len >= 0)
			break;
		wait.polls = PP_POLLS_PER_TICK - 1;
		ret = pp_wait_tick(pp, &wait, what);
		if (ret)
			return ret;
	}
	if (event == wanted)
		return 0;
	return pp_fail(pp, -FI_EOTHER, "%s: event %s came instead", what, util_tostr(&event, FI_TYPE_EQ_EVENT));
}

/* Listen, tell the client where, and take its connection. */
static int open_msg_server(struct pp *pp)
{
	struct fi_eq_cm_entry entry;
	int ret;

	ret = get_info(pp);
	if (!ret)
		ret = open_fabric(pp);
	if (ret)
		return ret;
	ret = fi_passive_ep(pp->fabric, pp->info, &pp->pep, NULL);
	if (ret)
		return pp_fail(pp, ret, "fi_passive_ep");
	ret = fi_pep_bind(pp->pep, &pp->eq->fid, 0);
	if (ret)
		return pp_fail(pp, ret, "fi_pep_bind");
	ret = fi_listen(pp->pep);
	if (ret)
		return pp_fail(pp, ret, "fi_listen");
	ret = send_name(pp, &pp->pep->fid);
	if (!ret)
		ret = wait_event(pp, FI_CONNREQ, &entry, "a connection request");
	if (ret)
		return ret;

	fi_freeinfo(pp->info);
	pp->info = entry.info;
	ret = open_endpoint(pp);
	if (ret)
		return ret;
	ret = fi_accept(pp->ep, NULL, 0);
	if (ret)
		return pp_fail(pp, ret, "fi_accept");
	return wait_event(pp, FI_CONNECTED, &entry, "the connection");
}

static int open_msg_client(struct pp *pp)
{
	struct fi_eq_cm_entry entry;
	int ret;

	ret = get_info_to_server(pp);
	if (!ret)
		ret = open_fabric(pp);
	if (!ret)
		ret = open_endpoint(pp);
	if (ret)
		return ret;
	ret = fi_connect(pp->ep, pp->info->dest_addr, NULL, 0);
	if (ret)
		return pp_fail(pp, ret, "fi_connect");
	return wait_event(pp, FI_CONNECTED, &entry, "the connection");
}

static int open_rdm_server(struct pp *pp)
{
	uint32_t format;
	size_t len;
	void *name;
	int ret;

	ret = get_info(pp);
	if (!ret)
		ret = open_fabric(pp);
	if (!ret)
		ret = open_endpoint(pp);
	if (!ret)
		ret = send_name(pp, &pp->ep->fid);
	if (!ret)
		ret = pp_ctrl_recv_name(pp, &name, &len, &format);
	if (ret)
		return ret;
	ret = insert_peer(pp, name, format);
	free(name);
	return ret;
}

static int open_rdm_client(struct pp *pp)
{
	int ret;

	ret = get_info_to_server(pp);
	if (!ret)
		ret = open_fabric(pp);
	if (!ret)
		ret = open_endpoint(pp);
	if (!ret)
		ret = send_name(pp, &pp->ep->fid);
	if (!ret)
		ret = insert_peer(pp, pp->hints->dest_addr, pp->hints->addr_format);
	return ret;
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
	ret = fill_hints(pp);
	return ret ? ret : open_calls[pp->opts->ep_type == FI_EP_MSG][!!pp->opts->server](pp);
}

int pp_fabric_close(struct pp *pp)
{
	/* Each before what it was opened from. */
	const struct {
		struct fid *fid;
		const char *what;
	} open[] = {
		{ pp->ep ? &pp->ep->fid : NULL, "endpoint" },
		{ pp->pep ? &pp->pep->fid : NULL, "passive endpoint" },
		{ pp->mr ? &pp->mr->fid : NULL, "memory region" },
		{ pp->cq ? &pp->cq->fid : NULL, "completion queue" },
		{ pp->av ? &pp->av->fid : NULL, "address vector" },
		{ pp->domain ? &pp->domain->fid : NULL, "domain" },
		{ pp->eq ? &pp->eq->fid : NULL, "event queue" },
		{ pp->fabric ? &pp->fabric->fid : NULL, "fabric" },
	};
	int ret, first = 0;
	size_t i;

	for (i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		ret = open[i].fid ? fi_close(open[i].fid) : 0;
		if (ret)
			pp_fail(pp, ret, "fi_close of the %s", open[i].what);
		if (ret && !first)
			first = ret;
	}
	free(pp->tx_buf);
	free(pp->tx);
	fi_freeinfo(pp->info);
	fi_freeinfo(pp->hints);
	return first;
}
