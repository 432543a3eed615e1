/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Steps that open objects, bind and enable them, connect them.
 */
#include "fuzz/calls/steps.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_collective.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define MEMORY	(4 << 20)	/* for registered buffers of a domain */
#define PASSES	30		/* that bring a connection about, where all is well */

/* ---- infos */

/* All of these bits, most, half of them, or few. */
static uint64_t a_part(uint64_t bits)
{
	switch (draw(4)) {
	case 0:
		return bits;
	case 1:
		return bits & (draw64() | draw64());
	case 2:
		return bits & draw64();
	default:
		return draw_bits(bits);
	}
}

/* Up to as much as this. */
static size_t at_most(size_t most)
{
	return one_in(2) ? most : 1 + (draw64() % (most ? most : 1));
}

static uint64_t a_caps(void)
{
	static const uint64_t usual[] = {
		0, FI_MSG, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, FI_MSG | FI_RMA, FI_TAGGED,
		FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV,
		FI_MSG | FI_TAGGED | FI_COLLECTIVE, FI_MSG | FI_TAGGED | FI_TRIGGER | FI_RMA, FI_MSG | FI_MULTICAST,
		FI_MSG | FI_NAMED_RX_CTX | FI_TAGGED, FI_MSG | FI_RMA | FI_RMA_EVENT,
		FI_MSG | FI_SOURCE | FI_SOURCE_ERR,
	};

	return usual[draw(COUNT(usual))] | (one_in(6) ? draw_bits(UINT64_MAX) : 0);
}

/* Flags that an endpoint may have by default. FI_TRIGGER, FI_CLAIM and FI_PEEK need what only a call gives. */
#define DEFAULTS(bits)	((bits) & ~(FI_TRIGGER | FI_CLAIM | FI_PEEK))
#define TX_DEFAULTS	(FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_MATCH_COMPLETE | FI_INJECT)

static bool on_device(void)
{
	return strstr(world_prov(), "verbs");
}

static struct fi_info *hints_of(enum fi_ep_type type)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup(world_prov());
	hints->ep_attr->type = type;
	return hints;
}

/* Some usual wishes. */
static struct fi_info *hints_new(enum fi_ep_type type)
{
	enum { basic = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY };
	static const int modes[] = { 0, 0, FI_MR_LOCAL, basic, basic | FI_MR_LOCAL | FI_MR_ENDPOINT };
	struct fi_info *hints = hints_of(type);

	hints->caps = a_caps();
	hints->mode = one_in(4) ? draw_bits(UINT64_MAX) : 0;
	if (!(hints->mode & FI_MSG_PREFIX) && on_device() && type == FI_EP_DGRAM)
		hints->mode |= FI_MSG_PREFIX;
	hints->domain_attr->mr_mode = modes[on_device() ? 4 : draw(COUNT(modes))];
	hints->domain_attr->threading = draw(one_in(8) ? 9 : 6);
	hints->domain_attr->data_progress = draw(one_in(8) ? 4 : 3);
	hints->domain_attr->control_progress = hints->domain_attr->data_progress;
	hints->domain_attr->av_type = draw(3);
	if (one_in(6))
		hints->domain_attr->max_group_id = draw(100);
	if (one_in(8))
		hints->tx_attr->op_flags = DEFAULTS(draw_bits(UINT64_MAX));
	if (one_in(8))
		hints->tx_attr->size = draw_len();
	if (one_in(8))
		hints->rx_attr->size = draw_len();
	if (one_in(8))
		hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = one_in(2) ? FI_SHARED_CONTEXT : draw(5);
	return hints;
}

static void lower_domain(struct fi_domain_attr *attr, int mr_mode)
{
	attr->threading = draw(6);
	attr->data_progress = draw(3);
	attr->control_progress = one_in(2) ? attr->data_progress : draw(4);
	attr->resource_mgmt = draw(3);
	attr->av_type = draw(3);
	attr->mr_mode = one_in(3) ? mr_mode : mr_mode | (int) draw_bits(0x1fff & ~3U);
	attr->mr_key_size = one_in(4) ? draw(9) : 0;
	attr->cq_data_size = one_in(4) ? draw(9) : 0;
	attr->caps = one_in(2) ? 0 : a_part(attr->caps);
	attr->tclass = one_in(4) ? fi_tc_dscp_set((uint8_t) draw(64)) : one_in(4) ? FI_TC_LABEL + draw(7) : 0;
	attr->max_group_id = one_in(4) ? draw(100) : 0;
	attr->max_err_data = one_in(4) ? draw(100) : 0;
	attr->mr_cnt = one_in(4) ? at_most(attr->mr_cnt) : 0;
}

static void lower_tx(struct fi_tx_attr *attr, uint64_t caps)
{
	attr->caps = one_in(2) ? 0 : attr->caps & caps;
	attr->mode = 0;
	attr->op_flags = one_in(3) ? draw_bits(TX_DEFAULTS) : 0;
	attr->msg_order = a_part(attr->msg_order);
	attr->comp_order = 0;
	attr->size = at_most(attr->size);
	attr->inject_size = draw64() % (attr->inject_size + 1);
	attr->iov_limit = at_most(attr->iov_limit);
	attr->rma_iov_limit = one_in(2) ? 0 : at_most(attr->rma_iov_limit);
	attr->tclass = one_in(8) ? FI_TC_LABEL + draw(7) : 0;
}

static void lower_rx(struct fi_rx_attr *attr, uint64_t caps)
{
	attr->caps = one_in(2) ? 0 : attr->caps & caps;
	attr->mode = 0;
	attr->op_flags = one_in(3) ? draw_bits(FI_COMPLETION | FI_MULTI_RECV) : 0;
	attr->msg_order = a_part(attr->msg_order);
	attr->comp_order = 0;
	attr->size = at_most(attr->size);
	attr->iov_limit = at_most(attr->iov_limit);
}

static size_t a_ctx_cnt(size_t most)
{
	return one_in(6) ? FI_SHARED_CONTEXT : one_in(3) ? 1 + draw(most < 8 ? (uint32_t) most + 1 : 8) : 0;
}

/* What the provider offers, with some of it taken away or lowered. NULL: it offers nothing of this type. */
static struct fi_info *hints_of_offer(enum fi_ep_type type)
{
	struct fi_info *all = hints_of(type), *list = NULL, *hints = NULL;

	all->mode = UINT64_MAX;
	all->domain_attr->mr_mode = 0x1fff & ~3;
	if (fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", NULL, FI_SOURCE | FI_NUMERICHOST, all, &list))
		list = NULL;
	for (struct fi_info *info = list; info && !hints; info = info->next) {
		if (!strcmp(info->fabric_attr->prov_name, world_prov()))
			hints = fi_dupinfo(info);
	}
	fi_freeinfo(list);
	fi_freeinfo(all);
	if (!hints)
		return NULL;
	if (one_in(2)) {
		free(hints->src_addr);
		hints->src_addr = NULL;
		hints->src_addrlen = 0;
	}
	if (!one_in(3))
		hints->caps = a_part(hints->caps);
	hints->mode |= draw_bits(UINT64_MAX);
	lower_domain(hints->domain_attr, hints->domain_attr->mr_mode);
	lower_tx(hints->tx_attr, hints->caps);
	lower_rx(hints->rx_attr, hints->caps);
	hints->ep_attr->tx_ctx_cnt = a_ctx_cnt(hints->ep_attr->tx_ctx_cnt);
	hints->ep_attr->rx_ctx_cnt = a_ctx_cnt(hints->ep_attr->rx_ctx_cnt);
	if (one_in(3))
		hints->ep_attr->max_msg_size = draw_len();
	if (one_in(4))
		hints->ep_attr->mem_tag_format = a_part(hints->ep_attr->mem_tag_format);
	return hints;
}

/* A version of the interface. Before 1.5 the modes of regions were one number. */
static uint32_t a_version(struct fi_info *hints)
{
	uint32_t version = one_in(2) ? FI_VERSION(2, draw(7)) : FI_VERSION(1, draw(23));

	if (version < FI_VERSION(1, 5)) {
		hints->domain_attr->mr_mode = (int) draw(3);
		hints->mode |= FI_LOCAL_MR;
	}
	return version;
}

/* What every provider has. */
static void hints_usual(struct fi_info *hints)
{
	struct fi_info *usual = hints_of(hints->ep_attr->type);

	usual->caps = one_in(2) ? 0 : FI_MSG;
	usual->mode = FI_MSG_PREFIX;
	usual->domain_attr->mr_mode = on_device() ? FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL :
		hints->domain_attr->mr_mode & ~3;
	usual->dest_addr = hints->dest_addr;
	usual->dest_addrlen = hints->dest_addrlen;
	hints->dest_addr = NULL;
	hints->dest_addrlen = 0;
	hints->next = usual;
}

/* The first entry of the provider at the loopback address for these hints. NULL: there is none. */
static struct fi_info *ask(uint32_t version, const struct fi_info *hints)
{
	struct fi_info *list = NULL, *found = NULL;
	const struct fi_domain_attr *attr = hints->domain_attr;
	int ret = (int) CALL(fi_getinfo(version, "127.0.0.1", NULL, FI_SOURCE | FI_NUMERICHOST, hints, &list),
			     "fi_getinfo(%u.%u, \"127.0.0.1\", type %d, caps %#llx, mode %#llx, mr_mode %#x, threading "
			     "%d, progress %d/%d, contexts %zd/%zd)", FI_MAJOR(version), FI_MINOR(version),
			     hints->ep_attr->type, (unsigned long long) hints->caps,
			     (unsigned long long) hints->mode, (unsigned) attr->mr_mode, attr->threading,
			     attr->data_progress, attr->control_progress, hints->ep_attr->tx_ctx_cnt,
			     hints->ep_attr->rx_ctx_cnt);

	for (struct fi_info *info = ret ? NULL : list; info && !found; info = info->next) {
		if (!strcmp(info->fabric_attr->prov_name, world_prov()))
			found = fi_dupinfo(info);
	}
	if (!ret)
		fi_freeinfo(list);
	return found;
}

/* An entry of the provider. NULL: nothing fits. */
static struct fi_info *info_new(enum fi_ep_type type, const void *dest, size_t dest_len)
{
	struct fi_info *hints = one_in(3) ? hints_new(type) : hints_of_offer(type), *found;

	if (!hints)
		hints = hints_new(type);
	free(hints->dest_addr);
	hints->dest_addr = NULL;
	hints->dest_addrlen = 0;
	if (dest) {
		hints->dest_addr = malloc(dest_len);
		memcpy(hints->dest_addr, dest, dest_len);
		hints->dest_addrlen = dest_len;
	}
	found = ask(a_version(hints), hints);
	if (!found) {
		hints_usual(hints);
		found = ask(FI_VERSION(2, 0), hints->next);
	}
	fi_freeinfo(hints);
	return found ? keep_info(found) : NULL;
}

/* A copy in which something is odd, sometimes. */
static struct fi_info *odd(const struct fi_info *from)
{
	struct fi_info *info = keep_info(fi_dupinfo(from));

	switch (draw(16)) {
	case 0:
		info->caps ^= draw_bits(UINT64_MAX);
		break;
	case 1:
		info->tx_attr->size = draw_any();
		break;
	case 2:
		info->rx_attr->size = draw_any();
		break;
	case 3:
		info->ep_attr->type = draw(8);
		break;
	case 4:
		info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = one_in(2) ? draw(6) : draw_any();
		break;
	case 5:
		info->tx_attr->op_flags = DEFAULTS(draw_bits(UINT64_MAX));
		break;
	case 6:
		info->rx_attr->op_flags = DEFAULTS(draw_bits(UINT64_MAX));
		break;
	case 7:
		info->tx_attr->inject_size = draw_any();
		break;
	case 8:
		info->ep_attr->max_msg_size = draw_any();
		break;
	case 9:
		info->addr_format = draw(20);
		break;
	case 10:
		info->tx_attr->iov_limit = info->rx_attr->iov_limit = draw_any();
		break;
	}
	return info;
}

/* ---- opening */

static struct obj *open_fabric(struct fi_info *info)
{
	struct obj *obj = obj_new(FABRIC, NULL);
	struct fid_fabric *fid = NULL;

	if (!obj || !info)
		return NULL;
	obj->info = info;
	return obj_opened(obj, CALL(one_in(4) ? fi_fabric2(info, &fid, one_in(8) ? draw_any() : 0, obj) :
				    fi_fabric(info->fabric_attr, &fid, obj), "fi_fabric() -> %u", obj->id),
			  fid ? &fid->fid : NULL);
}

/* Where buffers must be registered, all of them are in this region. */
static void register_memory(struct obj *domain)
{
	struct fid_mr *mr;
	uint64_t all = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_COLLECTIVE;

	if (!(domain->info->domain_attr->mr_mode & FI_MR_LOCAL) && !(domain->info->mode & FI_LOCAL_MR))
		return;
	domain->mem = mem_registered(MEMORY);
	domain->len = MEMORY;
	if (CALL(fi_mr_reg(AS(fid_domain, domain), domain->mem, MEMORY, all, 0, 0xfffe, 0, &mr, NULL),
		 "fi_mr_reg(all of domain %u)", domain->id) &&
	    CALL(fi_mr_reg(AS(fid_domain, domain), domain->mem, MEMORY, all & ~FI_COLLECTIVE, 0, 0xfffe, 0, &mr, NULL),
		 "fi_mr_reg(all of domain %u)", domain->id))
		world_wrong("a domain in which nothing can be registered");
	domain->mem_mr = &mr->fid;
	domain->desc = fi_mr_desc(mr);
}

static struct obj *open_domain(struct obj *fabric, struct fi_info *info)
{
	struct obj *obj = fabric ? obj_new(DOMAIN, fabric) : NULL;
	struct fid_domain *fid = NULL;

	if (!obj)
		return NULL;
	obj->info = info;
	obj = obj_opened(obj, CALL(one_in(4) ? fi_domain2(AS(fid_fabric, fabric), info, &fid, one_in(4) ? draw_any() :
							  0, obj) :
				   fi_domain(AS(fid_fabric, fabric), info, &fid, obj),
				   "fi_domain(fabric %u) -> %u", fabric->id, obj->id), fid ? &fid->fid : NULL);
	if (obj)
		register_memory(obj);
	return obj;
}

static struct obj *open_eq(struct obj *fabric, bool plain)
{
	struct obj *obj = fabric ? obj_new(EQ, fabric) : NULL, *wait = pick(WAIT);
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE };
	struct fid_eq *fid = NULL;

	if (!obj)
		return NULL;
	if (!plain)
		attr = (struct fi_eq_attr) {
			.size = draw_any(), .flags = draw_bits(one_in(4) ? UINT64_MAX : FI_WRITE | FI_AFFINITY),
			.wait_obj = draw(9), .signaling_vector = (int) draw_any(), .wait_set = AS(fid_wait, wait) };
	return obj_opened(obj, CALL(fi_eq_open(AS(fid_fabric, fabric), &attr, &fid, obj),
				    "fi_eq_open(fabric %u, size %zu, wait %d) -> %u", fabric->id, attr.size,
					attr.wait_obj,
				    obj->id), fid ? &fid->fid : NULL);
}

static struct obj *open_cq(struct obj *domain, bool plain)
{
	struct obj *obj = domain ? obj_new(CQ, domain) : NULL, *wait = pick(WAIT);
	struct fi_cq_attr attr = { .format = 1 + draw(4) };
	struct fid_cq *fid = NULL;

	if (!obj)
		return NULL;
	if (plain)
		attr.wait_obj = one_in(2) ? FI_WAIT_UNSPEC : FI_WAIT_NONE;
	else
		attr = (struct fi_cq_attr) {
			.size = draw_any(), .flags = draw_bits(one_in(4) ? UINT64_MAX & ~FI_PEER : FI_AFFINITY),
			.format = draw(6), .wait_obj = draw(9), .signaling_vector = (int) draw_any(),
				.wait_cond = draw(3),
			.wait_set = AS(fid_wait, wait) };
	obj = obj_opened(obj, CALL(fi_cq_open(AS(fid_domain, domain), &attr, &fid, obj),
				   "fi_cq_open(domain %u, size %zu, format %d, wait %d) -> %u", domain->id, attr.size,
				   attr.format, attr.wait_obj, obj->id), fid ? &fid->fid : NULL);
	if (obj)
		obj->format = attr.format;
	return obj;
}

static struct obj *open_cntr(struct obj *domain, bool plain)
{
	struct obj *obj = domain ? obj_new(CNTR, domain) : NULL, *wait = pick(WAIT);
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cntr *fid = NULL;

	if (!obj)
		return NULL;
	if (!plain)
		attr = (struct fi_cntr_attr) { .events = draw(3), .wait_obj = draw(9), .wait_set = AS(fid_wait, wait),
					       .flags = one_in(4) ? draw_bits(UINT64_MAX & ~FI_PEER) : 0 };
	return obj_opened(obj, CALL(fi_cntr_open(AS(fid_domain, domain), &attr, &fid, obj),
				    "fi_cntr_open(domain %u, wait %d) -> %u", domain->id, attr.wait_obj, obj->id),
			  fid ? &fid->fid : NULL);
}

static struct obj *open_av(struct obj *domain, bool plain)
{
	struct obj *obj = domain ? obj_new(AV, domain) : NULL;
	struct fi_av_attr attr = { .type = one_in(2) ? FI_AV_TABLE : FI_AV_MAP };
	struct fid_av *fid = NULL;

	if (!obj)
		return NULL;
	if (domain->info->domain_attr->av_type)
		attr.type = domain->info->domain_attr->av_type;
	if (!plain)
		attr = (struct fi_av_attr) { .type = draw(4), .rx_ctx_bits = one_in(4) ? (int) draw_any() :
					    (int) draw(4),
					     .count = one_in(4) ? draw_any() : draw(100), .ep_per_node = draw_any(),
					     .flags = draw_bits(one_in(4) ? UINT64_MAX & ~FI_PEER : FI_EVENT |
								FI_SYMMETRIC) };
	return obj_opened(obj, CALL(fi_av_open(AS(fid_domain, domain), &attr, &fid, obj),
				    "fi_av_open(domain %u, type %d, bits %d, count %zu, flags %#llx) -> %u", domain->id,
				    attr.type, attr.rx_ctx_bits, attr.count, (unsigned long long) attr.flags, obj->id),
			  fid ? &fid->fid : NULL);
}

static struct obj *open_ep(struct obj *domain, struct fi_info *info)
{
	struct obj *obj = domain ? obj_new(EP, domain) : NULL;
	struct fid_ep *fid = NULL;

	if (!obj)
		return NULL;
	obj->info = info;
	return obj_opened(obj, CALL(one_in(8) ? fi_endpoint2(AS(fid_domain, domain), info, &fid,
							     one_in(2) ? draw_any() & ~FI_PEER_TRANSFER : 0, obj) :
				    fi_endpoint(AS(fid_domain, domain), info, &fid, obj),
				    "fi_endpoint(domain %u, type %d) -> %u", domain->id, info->ep_attr->type, obj->id),
			  fid ? &fid->fid : NULL);
}

static struct obj *open_pep(struct obj *fabric, struct fi_info *info)
{
	struct obj *obj = fabric ? obj_new(PEP, fabric) : NULL;
	struct fid_pep *fid = NULL;

	if (!obj)
		return NULL;
	return obj_opened(obj, CALL(fi_passive_ep(AS(fid_fabric, fabric), info, &fid, obj),
				    "fi_passive_ep(fabric %u) -> %u", fabric->id, obj->id), fid ? &fid->fid : NULL);
}

static struct obj *open_context(struct obj *domain, struct fi_info *info, enum kind kind)
{
	struct obj *obj = obj_new(kind, domain);
	struct fid_ep *srx = NULL;
	struct fid_stx *stx = NULL;

	if (!obj)
		return NULL;
	obj->info = info;
	if (kind == SRX)
		return obj_opened(obj, CALL(fi_srx_context(AS(fid_domain, domain), one_in(4) ? NULL : info->rx_attr,
							   &srx, obj), "fi_srx_context(domain %u) -> %u", domain->id,
					    obj->id), srx ? &srx->fid : NULL);
	return obj_opened(obj, CALL(fi_stx_context(AS(fid_domain, domain), one_in(4) ? NULL : info->tx_attr, &stx,
						   obj), "fi_stx_context(domain %u) -> %u", domain->id, obj->id),
			  stx ? &stx->fid : NULL);
}

static struct obj *some_context(struct obj *domain, struct fi_info *info, enum kind kind)
{
	struct obj *obj = one_in(2) ? pick_beside(kind, domain) : NULL;

	return obj ? obj : open_context(domain, info, kind);
}

/* ---- binding */

static int bind_ep(struct obj *ep, struct obj *to, uint64_t flags)
{
	static const char *const names[KINDS] = { [CQ] = "cq", [CNTR] = "cntr", [AV] = "av", [EQ] = "eq", [SRX] = "srx",
						  [STX] = "stx", [EP] = "ep", [DOMAIN] = "domain" };
	int ret;

	if (!ep || !to)
		return -FI_EINVAL;
	ret = (int) CALL(fi_ep_bind(AS(fid_ep, ep), to->fid, flags), "fi_ep_bind(ep %u, %s %u, %#llx)", ep->id,
			 names[to->kind] ? names[to->kind] : "another", to->id, (unsigned long long) flags);
	if (!ret && to->kind == AV)
		ep->av = to;
	if (!ret && (to->kind == SRX || to->kind == STX))
		ep->bound = to;
	return ret;
}

static void enable(struct obj *ep)
{
	if (!CALL(fi_enable(AS(fid_ep, ep)), "fi_enable(ep %u)", ep->id))
		ep->enabled = true;
}

size_t name_of(struct obj *obj, uint8_t name[NAME_MAX_LEN])
{
	size_t len = NAME_MAX_LEN;

	if (CALL(fi_getname(obj->fid, name, &len), "fi_getname(%u)", obj->id) || len > NAME_MAX_LEN)
		return 0;
	return len;
}

/* The names of all endpoints of a kind and of this type, into the vector. */
static void insert_all(struct obj *av, const struct fi_info *info, enum kind kind)
{
	struct obj *ep;
	uint8_t name[NAME_MAX_LEN];
	fi_addr_t addr;
	unsigned at = 0;

	while ((ep = obj_next(kind, &at))) {
		if (!ep->enabled || ep->base || ep->info->addr_format != info->addr_format || !name_of(ep, name))
			continue;
		if (CALL(fi_av_insert(AS(fid_av, av), name, 1, &addr, 0, NULL), "fi_av_insert(av %u, ep %u)", av->id,
			 ep->id) == 1 && av->addr_cnt < ADDRS)
			av->addrs[av->addr_cnt++] = addr;
	}
}

/* What a program usually has before the first message. */
static struct obj *side(struct obj *domain, struct fi_info *info, struct obj *eq)
{
	struct obj *cq = open_cq(domain, true), *rx_cq = one_in(2) ? cq : open_cq(domain, true);
	struct obj *ep = open_ep(domain, info);
	uint64_t selective = one_in(6) ? FI_SELECTIVE_COMPLETION : 0;

	if (!ep)
		return NULL;
	bind_ep(ep, cq, (cq == rx_cq ? FI_TRANSMIT | FI_RECV : FI_TRANSMIT) | selective);
	if (cq != rx_cq)
		bind_ep(ep, rx_cq, FI_RECV | (one_in(6) ? FI_SELECTIVE_COMPLETION : 0));
	if (eq)
		bind_ep(ep, eq, 0);
	if (one_in(4))
		bind_ep(ep, open_cntr(domain, true), draw_bits(FI_TRANSMIT | FI_RECV | FI_READ | FI_WRITE |
							       FI_REMOTE_READ | FI_REMOTE_WRITE));
	if (info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT)
		bind_ep(ep, some_context(domain, info, SRX), 0);
	if (info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT)
		bind_ep(ep, some_context(domain, info, STX), 0);
	if (info->ep_attr->type != FI_EP_MSG) {
		struct obj *av = one_in(4) ? pick_beside(AV, domain) : NULL;

		bind_ep(ep, av ? av : open_av(domain, true), 0);
	}
	enable(ep);
	return ep;
}

/* ---- steps */

static enum fi_ep_type a_type(void)
{
	bool device = !strcmp(world_prov(), "verbs"), udp = !strcmp(world_prov(), "udp");

	if (one_in(20))
		return draw(6);
	if (udp)
		return FI_EP_DGRAM;
	if (strstr(world_prov(), "rxm"))
		return FI_EP_RDM;
	return device ? one_in(3) ? FI_EP_DGRAM : FI_EP_MSG : one_in(3) ? FI_EP_MSG : FI_EP_RDM;
}

void step_side(void)
{
	struct fi_info *info = NULL;
	struct obj *fabric, *domain = one_in(3) ? pick(DOMAIN) : NULL, *av, *eq;
	unsigned at = 0;

	if (domain) {
		info = domain->info;
		fabric = domain->up;
	} else {
		info = info_new(a_type(), NULL, 0);
		fabric = one_in(2) ? open_fabric(info) : pick(FABRIC);
		domain = info && fabric ? open_domain(fabric, info) : NULL;
	}
	if (!domain)
		return;
	eq = info->ep_attr->type == FI_EP_MSG || one_in(4) ? open_eq(fabric, true) : NULL;
	side(domain, info, eq);
	while ((av = obj_next(AV, &at)))
		insert_all(av, av->info, one_in(4) ? SEP : EP);
}

static void listen_at(struct obj *pep, struct obj *eq)
{
	CALL(fi_pep_bind(AS(fid_pep, pep), eq->fid, 0), "fi_pep_bind(pep %u, eq %u)", pep->id, eq->id);
	CALL(fi_listen(AS(fid_pep, pep)), "fi_listen(pep %u)", pep->id);
}

/* A listener, an endpoint that connects to it, and what the queues say about that. */
void step_pair(void)
{
	struct obj *pep = one_in(2) ? pick(PEP) : NULL, *fabric, *domain, *ep, *eq;
	struct fi_info *info;
	uint8_t name[NAME_MAX_LEN];
	size_t len;

	if (!pep) {
		info = info_new(FI_EP_MSG, NULL, 0);
		fabric = info ? open_fabric(info) : NULL;
		pep = fabric ? open_pep(fabric, info) : NULL;
		eq = pep ? open_eq(fabric, true) : NULL;
		if (!eq)
			return;
		listen_at(pep, eq);
	}
	len = name_of(pep, name);
	info = len ? info_new(FI_EP_MSG, name, len) : NULL;
	domain = info ? open_domain(pep->up, info) : NULL;
	eq = domain ? open_eq(pep->up, true) : NULL;
	ep = eq ? side(domain, info, eq) : NULL;
	if (!ep)
		return;
	CALL(fi_connect(AS(fid_ep, ep), name, NULL, 0), "fi_connect(ep %u, pep %u)", ep->id, pep->id);
	passes(PASSES);
}

/* A connection request: it is accepted, refused, or left. */
void answer_request(struct obj *pep, struct fi_info *info)
{
	struct obj *domain, *eq, *ep;
	uint8_t *param = mem_new(64);

	keep_info(info);
	if (one_in(8))
		return;
	if (one_in(8)) {
		if (pep)
			CALL(fi_reject(AS(fid_pep, pep), info->handle, param, draw(65)), "fi_reject(pep %u)", pep->id);
		return;
	}
	domain = one_in(3) ? pick(DOMAIN) : NULL;
	if (!domain || !domain->up || domain->info->ep_attr->type != FI_EP_MSG)
		domain = pep ? open_domain(pep->up, info) : NULL;
	eq = domain ? open_eq(domain->up, true) : NULL;
	ep = eq ? side(domain, info, eq) : NULL;
	if (ep)
		CALL(fi_accept(AS(fid_ep, ep), param, one_in(4) ? draw(65) : 0), "fi_accept(ep %u)", ep->id);
}

void step_open_queue(void)
{
	struct obj *domain = pick(DOMAIN), *fabric = pick(FABRIC), *obj;
	struct fid_wait *wait = NULL;
	struct fid_poll *poll = NULL;
	struct fi_wait_attr wait_attr = { .wait_obj = draw(9), .flags = one_in(8) ? draw_any() : 0 };
	struct fi_poll_attr poll_attr = { .flags = one_in(8) ? draw_any() : 0 };

	switch (draw(6)) {
	case 0:
		open_eq(fabric, one_in(2));
		break;
	case 1:
		open_cq(domain, one_in(2));
		break;
	case 2:
		open_cntr(domain, one_in(2));
		break;
	case 3:
		obj = fabric ? obj_new(WAIT, fabric) : NULL;
		if (obj)
			obj_opened(obj, CALL(fi_wait_open(AS(fid_fabric, fabric), &wait_attr, &wait),
					     "fi_wait_open(%d) -> %u",
					     wait_attr.wait_obj, obj->id), wait ? &wait->fid : NULL);
		break;
	case 4:
		obj = domain ? obj_new(POLL, domain) : NULL;
		if (obj)
			obj_opened(obj, CALL(fi_poll_open(AS(fid_domain, domain), &poll_attr, &poll),
					     "fi_poll_open() -> %u",
					     obj->id), poll ? &poll->fid : NULL);
		break;
	default:
		open_av(domain, one_in(3));
	}
}

/* A scalable endpoint with its contexts. */
static void open_scalable(struct obj *domain, struct fi_info *info)
{
	struct obj *sep = obj_new(SEP, domain), *av = pick_beside(AV, domain);
	struct fid_ep *fid = NULL;

	if (!sep)
		return;
	sep->info = info;
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1 + draw(4);
	if (!obj_opened(sep, CALL(fi_scalable_ep(AS(fid_domain, domain), info, &fid, sep),
				  "fi_scalable_ep(domain %u) -> %u",
				  domain->id, sep->id), fid ? &fid->fid : NULL))
		return;
	if (!CALL(fi_scalable_ep_bind(AS(fid_ep, sep), fid_of(av ? av : domain), 0), "fi_scalable_ep_bind(%u, av %u)",
		  sep->id, id_of(av)))
		sep->av = av;
	for (int i = one_in(4); i < 4 && !one_in(6); i++) {
		struct obj *ctx = obj_new(EP, sep), *cq = pick_beside(CQ, domain);
		bool tx = one_in(2);
		struct fid_ep *ep = NULL;

		if (!ctx || !obj_opened(ctx, CALL(tx ? fi_tx_context(AS(fid_ep, sep), i, NULL, &ep, ctx) :
						  fi_rx_context(AS(fid_ep, sep), i, NULL, &ep, ctx),
						  "fi_%s_context(sep %u, %d) -> %u", tx ? "tx" : "rx", sep->id, i,
							  ctx->id),
					ep ? &ep->fid : NULL))
			continue;
		ctx->av = sep->av;
		bind_ep(ctx, cq, tx ? FI_TRANSMIT : FI_RECV);
		if (!one_in(8))
			enable(ctx);
	}
	if (!one_in(8))
		enable(sep);
}

static void open_alias(struct obj *ep)
{
	struct obj *obj = ep ? obj_new(EP, ep) : NULL;
	struct fid_ep *fid = NULL;

	if (!obj)
		return;
	*obj = (struct obj) { .kind = EP, .id = obj->id, .up = ep->up, .info = ep->info, .av = ep->av,
			     .bound = ep->bound,
			      .base = ep->base ? ep->base : ep, .enabled = ep->enabled };
	obj_opened(obj, CALL(fi_ep_alias(AS(fid_ep, ep), &fid, draw_bits(UINT64_MAX & ~(FI_TRIGGER | FI_CLAIM))),
			     "fi_ep_alias(ep %u) -> %u", ep->id, obj->id), fid ? &fid->fid : NULL);
}

void step_open_ep(void)
{
	struct obj *domain = pick(DOMAIN), *fabric = pick(FABRIC);
	struct fi_info *info = domain ? odd(domain->info) : NULL;

	if (!info)
		return;
	switch (draw(6)) {
	case 0:
		open_ep(domain, info);
		break;
	case 1:
		side(domain, info, one_in(2) ? pick(EQ) : NULL);
		break;
	case 2:
		open_context(domain, info, one_in(2) ? SRX : STX);
		break;
	case 3:
		open_scalable(domain, info);
		break;
	case 4:
		open_alias(pick(EP));
		break;
	default:
		if (fabric)
			open_pep(fabric, odd(fabric->info));
	}
}

void step_open_domain(void)
{
	struct obj *fabric = pick(FABRIC);
	struct fi_info *info = info_new(a_type(), NULL, 0);

	if (!info)
		return;
	if (!fabric || one_in(3))
		open_fabric(info);
	else
		open_domain(fabric, one_in(2) ? odd(info) : info);
}

/* Anything to anything. */
void step_bind(void)
{
	static const unsigned usual = 1U << CQ | 1U << CNTR | 1U << AV | 1U << EQ | 1U << SRX | 1U << STX;
	static const uint64_t flags = FI_TRANSMIT | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE |
		FI_SELECTIVE_COMPLETION;
	struct obj *on = pick_of(1U << EP | 1U << SRX | 1U << SEP | 1U << PEP | 1U << MR | 1U << DOMAIN | 1U << AV);
	struct obj *to = pick_of(one_in(8) ? UINT32_MAX : usual);
	uint64_t bits = one_in(6) ? draw_any() : draw_bits(flags);

	if (!on || !to)
		return;
	switch (on->kind) {
	case SEP:
		CALL(fi_scalable_ep_bind(AS(fid_ep, on), to->fid, bits), "fi_scalable_ep_bind(%u, %u)", on->id, to->id);
		break;
	case PEP:
		CALL(fi_pep_bind(AS(fid_pep, on), to->fid, bits), "fi_pep_bind(%u, %u)", on->id, to->id);
		break;
	case MR:
		CALL(fi_mr_bind(AS(fid_mr, on), to->fid, bits), "fi_mr_bind(%u, %u)", on->id, to->id);
		CALL(fi_mr_enable(AS(fid_mr, on)), "fi_mr_enable(%u)", on->id);
		break;
	case DOMAIN:
		CALL(fi_domain_bind(AS(fid_domain, on), to->fid, bits), "fi_domain_bind(%u, %u)", on->id, to->id);
		break;
	case AV:
		CALL(fi_av_bind(AS(fid_av, on), to->fid, bits), "fi_av_bind(%u, %u)", on->id, to->id);
		break;
	default:
		bind_ep(on, to, bits);
	}
}

void step_enable(void)
{
	struct obj *obj = pick_of(1U << EP | 1U << SEP | 1U << SRX);

	if (obj)
		enable(obj);
}

void step_close(void)
{
	obj_close(pick_of(one_in(3) ? UINT32_MAX : ~(1U << FABRIC | 1U << DOMAIN)));
}

/* Pieces of a region follow one another. */
void step_register(void)
{
	struct obj *domain = pick(DOMAIN), *obj = domain ? obj_new(MR, domain) : NULL;
	uint64_t acs = one_in(4) ? draw_bits(UINT64_MAX) : FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
		FI_REMOTE_WRITE;
	uint64_t key = one_in(4) ? draw_any() : draw(8), flags = one_in(8) ? draw_bits(UINT64_MAX & ~FI_MR_DMABUF) : 0;
	size_t cnt = one_in(3) ? draw(6) : 1, piece;
	struct iovec iov[8];
	struct fid_mr *fid = NULL;
	struct fi_mr_attr attr = { .mr_iov = iov, .access = acs, .requested_key = key, .context = obj,
				  .iov_count = cnt };

	if (!obj)
		return;
	obj->len = draw_len();
	obj->mem = mem_registered(obj->len);
	piece = cnt ? obj->len / cnt : 0;
	for (size_t i = 0; i < cnt; i++)
		iov[i] = (struct iovec) { obj->mem + i * piece, piece };
	if (!obj_opened(obj, CALL(one_in(2) ? fi_mr_regattr(AS(fid_domain, domain), &attr, flags, &fid) :
				  cnt == 1 ? fi_mr_reg(AS(fid_domain, domain), obj->mem, obj->len, acs, one_in(8) ?
						       draw_any() : 0,
						       key, flags, &fid, obj) :
				  fi_mr_regv(AS(fid_domain, domain), iov, cnt, acs, 0, key, flags, &fid, obj),
				  "fi_mr_reg(domain %u, %zu bytes in %zu, access %#llx, key %llu, flags %#llx) -> %u",
				  domain->id, obj->len, cnt, (unsigned long long) acs, (unsigned long long) key,
				  (unsigned long long) flags, obj->id), fid ? &fid->fid : NULL)) {
		mem_unregistered(obj->mem, obj->len);
		obj->mem = NULL;
	}
}
