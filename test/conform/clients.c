/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What real clients ask, one row a client: the hints as their code sets them, and what makes them take the answer. A
 * client that needs a capability which the provider does not offer is skipped with that capability's name. Then the
 * rules that several of them enforce, named after the clients.
 * Source: fi_getinfo(3).
 */
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "clients.h"

#define COMM (FI_LOCAL_COMM | FI_REMOTE_COMM)

struct client {
	const char *name;
	enum fi_ep_type type;
	uint32_t version;
	uint64_t caps, mode;
	int mr_mode;
	uint64_t tx_op_flags, rx_op_flags, msg_order;
	enum fi_threading threading;
	enum fi_progress control, data;
	enum fi_av_type av_type;
	uint32_t addr_format;
	size_t cq_data_size, mr_key_size, inject_size, iov_limit, tx_size, rx_size;
	bool no_rx_attr;		/* hints->rx_attr is NULL */
	bool shared_tx;			/* asks for FI_SHARED_CONTEXT to transmit by */
	bool xnet;			/* asks for FI_PROTO_XNET by the name tcp */
	/* What makes it take an answer, beyond what all rows are checked for; NULL: nothing more. */
	bool (*takes)(const struct fi_info *info);
};

static bool takes_in_only(const struct fi_info *i)
{
	return i->addr_format == FI_SOCKADDR_IN;
}

/* Open MPI's btl: no more than the modes of registration that it knows; not over rxm. */
static bool takes_btl(const struct fi_info *i)
{
	return !strstr(i->fabric_attr->prov_name, "ofi_rxm") &&
	       !(i->domain_attr->mr_mode & ~(MR_BASIC_BITS | FI_MR_ENDPOINT | MR_BASIC));
}

static bool takes_tags(const struct fi_info *i)
{
	return i->ep_attr->mem_tag_format >> 62 && i->domain_attr->cq_data_size >= 4;
}

static bool takes_gasnet(const struct fi_info *i)
{
	return FI_VERSION_GE(i->fabric_attr->prov_version, FI_VERSION(1, 15));
}

static bool takes_chapel(const struct fi_info *i)
{
	const uint64_t orders = FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW | FI_ORDER_SAS;

	return (i->tx_attr->msg_order & orders) == orders || (i->tx_attr->op_flags & FI_DELIVERY_COMPLETE);
}

static bool takes_mpich(const struct fi_info *i)
{
	return i->domain_attr->threading == FI_THREAD_DOMAIN && i->domain_attr->cq_data_size >= 4;
}

static bool takes_contexts(const struct fi_info *i)
{
	return i->domain_attr->max_ep_tx_ctx > 1 && i->domain_attr->max_ep_rx_ctx > 1 &&
	       i->domain_attr->cq_data_size >= 4;
}

static bool takes_shared_contexts(const struct fi_info *i)
{
	return i->domain_attr->max_ep_stx_ctx > 1;
}

static const struct client clients[] = {
	{ .name = "mpich_ch4", .type = FI_EP_RDM, .version = FI_VERSION(1, 17),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | FI_DIRECTED_RECV,
	  .mode = FI_CONTEXT | FI_ASYNC_IOV | FI_RX_CQ_DATA | FI_CONTEXT2, .mr_mode = FI_MR_ENDPOINT,
	  .tx_op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE, .rx_op_flags = FI_COMPLETION, .msg_order = FI_ORDER_SAS,
	  .threading = FI_THREAD_DOMAIN, .control = FI_PROGRESS_MANUAL, .data = FI_PROGRESS_MANUAL,
	  .av_type = FI_AV_TABLE, .cq_data_size = 4, .takes = takes_mpich },
	{ .name = "mpich_ch4_atomics", .type = FI_EP_RDM, .version = FI_VERSION(1, 17),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | FI_ATOMIC, .mode = FI_CONTEXT | FI_CONTEXT2,
	  .mr_mode = FI_MR_ENDPOINT, .tx_op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE,
	  .msg_order = FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
	  FI_ORDER_ATOMIC_WAW,
	  .threading = FI_THREAD_DOMAIN, .data = FI_PROGRESS_MANUAL, .av_type = FI_AV_TABLE, .cq_data_size = 4,
	  .takes = takes_mpich },
	{ .name = "mpich_ch4_scalable", .type = FI_EP_RDM, .version = FI_VERSION(1, 17),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | FI_NAMED_RX_CTX | FI_SHARED_AV,
	  .mode = FI_CONTEXT | FI_CONTEXT2,
	  .mr_mode = FI_MR_ENDPOINT, .tx_op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE, .rx_op_flags = FI_COMPLETION,
	  .msg_order = FI_ORDER_SAS, .threading = FI_THREAD_COMPLETION, .control = FI_PROGRESS_MANUAL,
	  .data = FI_PROGRESS_MANUAL, .av_type = FI_AV_TABLE, .cq_data_size = 4, .takes = takes_contexts },
	{ .name = "sos", .type = FI_EP_RDM, .version = FI_VERSION(1, 5), .caps = FI_RMA | FI_ATOMIC, .mr_key_size = 1,
	  .tx_op_flags = FI_DELIVERY_COMPLETE, .threading = FI_THREAD_DOMAIN, .data = FI_PROGRESS_AUTO,
	  .inject_size = 16, .no_rx_attr = true },
	{ .name = "sos_manual_basic", .type = FI_EP_RDM, .version = FI_VERSION(1, 5), .caps = FI_RMA | FI_ATOMIC,
	  .mr_mode = MR_BASIC_BITS, .mr_key_size = 1, .tx_op_flags = FI_DELIVERY_COMPLETE,
	  .threading = FI_THREAD_COMPLETION, .data = FI_PROGRESS_MANUAL, .inject_size = 16, .no_rx_attr = true },
	{ .name = "sos_target_counters", .type = FI_EP_RDM, .version = FI_VERSION(1, 5),
	  .caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT, .mr_key_size = 1, .tx_op_flags = FI_DELIVERY_COMPLETE,
	  .threading = FI_THREAD_SAFE, .data = FI_PROGRESS_AUTO, .inject_size = 16, .no_rx_attr = true },
	{ .name = "sos_shared_contexts", .type = FI_EP_RDM, .version = FI_VERSION(1, 5),
	  .caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT, .mr_key_size = 1, .tx_op_flags = FI_DELIVERY_COMPLETE,
	  .threading = FI_THREAD_SAFE, .data = FI_PROGRESS_AUTO, .inject_size = 16, .no_rx_attr = true,
	  .shared_tx = true, .takes = takes_shared_contexts },
	{ .name = "ompi_mtl_4.1", .type = FI_EP_RDM, .version = FI_VERSION(1, 5),
	  .caps = FI_TAGGED | COMM | FI_DIRECTED_RECV, .mode = FI_CONTEXT | FI_CONTEXT2, .tx_op_flags = FI_COMPLETION,
	  .rx_op_flags = FI_COMPLETION, .msg_order = FI_ORDER_SAS, .threading = FI_THREAD_DOMAIN, .av_type = FI_AV_MAP,
	  .cq_data_size = 4, .takes = takes_tags },
	{ .name = "ompi_mtl_main", .type = FI_EP_RDM, .version = FI_VERSION(1, 9),
	  .caps = FI_MSG | FI_TAGGED | COMM | FI_DIRECTED_RECV, .mode = FI_CONTEXT | FI_CONTEXT2,
	  .tx_op_flags = FI_COMPLETION, .rx_op_flags = FI_COMPLETION, .msg_order = FI_ORDER_SAS,
	  .threading = FI_THREAD_SAFE, .av_type = FI_AV_MAP, .cq_data_size = 4, .takes = takes_tags },
	{ .name = "ompi_btl", .type = FI_EP_RDM, .version = FI_VERSION(1, 5), .caps = FI_RMA | FI_ATOMIC,
	  .mr_mode = MR_BASIC_BITS | FI_MR_ENDPOINT, .tx_op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION,
	  .iov_limit = 1, .threading = FI_THREAD_DOMAIN, .takes = takes_btl },
	{ .name = "ompi_btl_two_sided", .type = FI_EP_RDM, .version = FI_VERSION(1, 9),
	  .caps = FI_RMA | FI_ATOMIC | FI_MSG, .mr_mode = MR_BASIC_BITS | FI_MR_ENDPOINT | FI_MR_HMEM, .iov_limit = 1,
	  .tx_op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION, .threading = FI_THREAD_SAFE, .takes = takes_btl },
	{ .name = "nccl_sendrecv", .type = FI_EP_RDM, .version = FI_VERSION(1, 17), .caps = COMM | FI_TAGGED | FI_MSG,
	  .mode = FI_CONTEXT | FI_CONTEXT2, .mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | MR_BASIC_BITS, .mr_key_size = 2,
	  .msg_order = FI_ORDER_SAS, .threading = FI_THREAD_SAFE },
	{ .name = "nccl_sendrecv_1.6", .type = FI_EP_RDM, .version = FI_VERSION(1, 6),
	  .caps = COMM | FI_TAGGED | FI_MSG,
	  .mode = FI_CONTEXT | FI_CONTEXT2, .mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | MR_BASIC_BITS, .mr_key_size = 2,
	  .msg_order = FI_ORDER_SAS, .threading = FI_THREAD_SAFE },
	{ .name = "mercury_client", .type = FI_EP_RDM, .version = FI_VERSION(1, 13),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV, .mode = FI_ASYNC_IOV | FI_CONTEXT,
	  .mr_mode = MR_BASIC_BITS | FI_MR_LOCAL | FI_MR_ENDPOINT, .tx_op_flags = FI_INJECT_COMPLETE,
	  .threading = FI_THREAD_SAFE, .control = FI_PROGRESS_MANUAL, .data = FI_PROGRESS_MANUAL,
	  .addr_format = FI_SOCKADDR_IN, .tx_size = 512, .rx_size = 512, .xnet = true, .takes = takes_in_only },
	{ .name = "mercury_listener", .type = FI_EP_RDM, .version = FI_VERSION(1, 9),
	  .caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV, .mode = FI_ASYNC_IOV | FI_CONTEXT,
	  .mr_mode = MR_BASIC_BITS | FI_MR_LOCAL | FI_MR_ENDPOINT, .tx_op_flags = FI_INJECT_COMPLETE,
	  .threading = FI_THREAD_SAFE, .control = FI_PROGRESS_MANUAL, .data = FI_PROGRESS_MANUAL,
	  .addr_format = FI_SOCKADDR_IN, .tx_size = 4096, .rx_size = 512, .xnet = true, .takes = takes_in_only },
	{ .name = "gasnet", .type = FI_EP_RDM, .version = FI_VERSION(1, 5), .caps = FI_RMA | FI_MSG | FI_MULTI_RECV,
	  .mode = FI_CONTEXT, .mr_mode = MR_BASIC_BITS | FI_MR_ENDPOINT, .tx_op_flags = FI_DELIVERY_COMPLETE,
	  .threading = FI_THREAD_SAFE, .control = FI_PROGRESS_MANUAL, .av_type = FI_AV_TABLE, .takes = takes_gasnet },
	{ .name = "gasnet_scalable", .type = FI_EP_RDM, .version = FI_VERSION(1, 5),
	  .caps = FI_RMA | FI_MSG | FI_MULTI_RECV,
	  .mode = FI_CONTEXT, .tx_op_flags = FI_DELIVERY_COMPLETE, .threading = FI_THREAD_DOMAIN,
	  .control = FI_PROGRESS_MANUAL, .av_type = FI_AV_TABLE, .takes = takes_gasnet },
	{ .name = "chapel_orders", .type = FI_EP_RDM, .version = FI_VERSION(1, 9),
	  .caps = FI_MSG | FI_RMA | FI_MULTI_RECV, .mode = FI_CONTEXT, .mr_mode = FI_MR_ALLOCATED,
	  .msg_order = FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW | FI_ORDER_SAS, .av_type = FI_AV_TABLE,
	  .takes = takes_chapel },
	{ .name = "chapel_delivery", .type = FI_EP_RDM, .version = FI_VERSION(1, 9),
	  .caps = FI_MSG | FI_RMA | FI_MULTI_RECV,
	  .mode = FI_CONTEXT, .mr_mode = MR_BASIC_BITS, .tx_op_flags = FI_DELIVERY_COMPLETE, .av_type = FI_AV_TABLE,
	  .takes = takes_chapel },
	{ .name = "nixl", .type = FI_EP_RDM, .version = FI_VERSION(1, 17), .caps = FI_MSG | FI_RMA | COMM,
	  .mode = FI_CONTEXT | FI_CONTEXT2, .mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY,
	  .threading = FI_THREAD_COMPLETION },
	{ .name = "oneccl", .type = FI_EP_RDM, .version = FI_VERSION(1, 12), .caps = FI_TAGGED, .mode = FI_CONTEXT,
	  .control = FI_PROGRESS_MANUAL, .data = FI_PROGRESS_MANUAL },
	{ .name = "hcl", .type = FI_EP_MSG, .version = FI_VERSION(1, 12), .caps = FI_MSG | FI_RMA,
	  .addr_format = FI_SOCKADDR_IN, .control = FI_PROGRESS_AUTO, .data = FI_PROGRESS_AUTO,
	  .takes = takes_in_only },
	{ .name = "ldms", .type = FI_EP_MSG, .version = FI_VERSION(1, 5),
	  .caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ |
	  FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, .mode = FI_CONTEXT, .mr_mode = MR_BASIC_BITS | FI_MR_LOCAL },
	{ .name = "julea", .type = FI_EP_MSG, .version = FI_VERSION(1, 11),
	  .caps = FI_MSG | FI_SEND | FI_RECV | FI_READ |
	  FI_RMA | FI_REMOTE_READ, .mode = FI_MSG_PREFIX, .mr_mode = FI_MR_LOCAL | MR_BASIC_BITS },
	{ .name = "derecho", .type = FI_EP_MSG, .version = FI_VERSION(1, 5),
	  .caps = FI_MSG | FI_RMA | FI_READ | FI_WRITE |
	  FI_REMOTE_READ | FI_REMOTE_WRITE, .mode = ~0ULL >> 4, .mr_mode = MR_BASIC_BITS | FI_MR_LOCAL },
};

static const struct client *asking;	/* whose hints set_hints() makes */

static void set_hints(struct fi_info *h)
{
	const struct client *c = asking;

	h->mode = c->mode;
	h->tx_attr->op_flags = c->tx_op_flags;
	h->rx_attr->op_flags = c->rx_op_flags;
	h->tx_attr->msg_order = h->rx_attr->msg_order = c->msg_order;
	h->tx_attr->inject_size = c->inject_size;
	h->tx_attr->iov_limit = c->iov_limit;
	h->tx_attr->size = c->tx_size;
	h->rx_attr->size = c->rx_size;
	h->domain_attr->threading = c->threading;
	h->domain_attr->control_progress = c->control;
	h->domain_attr->data_progress = c->data;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->av_type = c->av_type;
	h->domain_attr->cq_data_size = c->cq_data_size;
	h->domain_attr->mr_key_size = c->mr_key_size;
	h->addr_format = c->addr_format;
	h->ep_attr->tx_ctx_cnt = c->shared_tx ? FI_SHARED_CONTEXT : 0;
	if (c->xnet && !strcmp(run.prov, "tcp"))
		h->ep_attr->protocol = FI_PROTO_XNET;
}

static struct opts opts_of(const struct client *c)
{
	asking = c;
	return (struct opts) { .caps = c->caps, .mr_none = !c->mr_mode, .mr_mode = c->mr_mode, .version = c->version,
			       .hints = set_hints };
}

/* What every client does with an answer: nothing that it did not offer, all that it asked. */
static void check_answer(const struct client *c, const struct fi_info *hints, const struct fi_info *info)
{
	CHECK_EQ(info->caps & c->caps, c->caps);
	CHECK_EQ(info->mode & ~c->mode, 0);
	CHECK_EQ(info->domain_attr->mr_mode & ~c->mr_mode, 0);
	CHECK_EQ(info->tx_attr->op_flags & c->tx_op_flags, c->tx_op_flags);
	CHECK_EQ(info->tx_attr->msg_order & c->msg_order, c->msg_order);
	CHECK_EQ(info->fabric_attr->api_version, c->version);
	CHECK(info->tx_attr->inject_size >= c->inject_size);
	CHECK(info->domain_attr->cq_data_size >= c->cq_data_size);
	CHECK(info->domain_attr->mr_key_size >= c->mr_key_size);
	if (c->threading)
		CHECK_EQ(info->domain_attr->threading, c->threading);
	if (c->av_type)
		CHECK_EQ(info->domain_attr->av_type, c->av_type);
	if (hints->ep_attr->protocol)
		CHECK_EQ(info->ep_attr->protocol, hints->ep_attr->protocol);
	CHECK(!c->takes || c->takes(info));
}

/* Objects as the client opens them: the answer must be one to work with. */
static void check_opens(struct test *t, struct fi_info *info)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;

	MUST(fi_fabric(info->fabric_attr, &fabric, NULL));
	own_fid(t, &fabric->fid);
	MUST(fi_domain(fabric, info, &domain, NULL));
	own_fid(t, &domain->fid);
	MUST(fi_endpoint(domain, info, &ep, NULL));
	own_fid(t, &ep->fid);
}

/* Skip the test unless the client can be had in this run. */
static void need_client(const struct client *c)
{
	if (c->type != run.type)
		ABSENT("asks for %s", fi_tostr(&c->type, FI_TYPE_EP_TYPE));
	if (c->addr_format && !has_sockaddr())
		ABSENT("%s has no socket addresses", run.prov);
	if (FI_VERSION_LT(fi_version(), c->version))
		ABSENT("library too old for the client");
	offer_check(c->caps);
}

/* What fi_getinfo() answers this client; @hints is what it asked. All belongs to the test. */
static struct fi_info *client_ask(struct test *t, const struct client *c, struct fi_info **hints)
{
	struct fi_info *list = NULL;
	struct fi_rx_attr *rx_attr;
	struct opts o;
	int ret;

	need_client(c);
	o = opts_of(c);
	*hints = hints_new(t, &o);
	rx_attr = (*hints)->rx_attr;
	if (c->no_rx_attr)
		(*hints)->rx_attr = NULL;
	ret = fi_getinfo(c->version, NULL, NULL, 0, *hints, &list);
	(*hints)->rx_attr = rx_attr;
	MUST(ret);
	own_info(t, list);
	return list;
}

static struct fi_info *first_of_run(struct fi_info *info)
{
	while (info && !info_is_run(info))
		info = info->next;
	CHECK(info != NULL);
	return info;
}

static const struct client *client_find(const char *name)
{
	size_t i;

	for (i = 0; i < COUNT(clients); i++) {
		if (!strcmp(clients[i].name, name))
			return &clients[i];
	}
	FAIL("no client %s in the table", name);
}

struct fi_info *client_info(struct test *t, const char *name)
{
	struct fi_info *hints;

	return first_of_run(client_ask(t, client_find(name), &hints));
}

const char *client_name(size_t i)
{
	return i < COUNT(clients) ? clients[i].name : NULL;
}

struct fid_cntr *client_counter(struct side *s, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = wait };
	struct fid_cntr *cntr;

	MUST(fi_cntr_open(s->domain, &attr, &cntr, NULL));
	own_fid(s->t, &cntr->fid);
	return cntr;
}

void client_counted(struct side *s, struct fid_cntr *cntr, uint64_t cnt)
{
	struct wait w = wait_begin();

	while (fi_cntr_read(cntr) < cnt)
		wait_more(s->t, &w, "a counter");
	CHECK_EQ(fi_cntr_read(cntr), cnt);
	CHECK_EQ(fi_cntr_readerr(cntr), 0);
}

struct opts client_opts(const char *name)
{
	const struct client *c = client_find(name);

	need_client(c);
	return opts_of(c);
}

/* The hints of each client find an entry that passes its checks and can be opened. */
TEST_TABLE(hints, clients, 0)
{
	const struct client *c = ROW(clients);
	struct fi_info *hints, *list = client_ask(t, c, &hints), *info;

	check_opens(t, first_of_run(list));
	for (info = list; info; info = info->next) {
		if (info_is_run(info))
			check_answer(c, hints, info);
	}
}

/* ---- rules */

/* All entries that the provider has for this endpoint type. */
static struct fi_info *entries(struct test *t)
{
	struct fi_info *list;

	MUST(fi_getinfo(run.version, NULL, NULL, 0, hints_new(t, &(struct opts) { 0 }), &list));
	own_info(t, list);
	return list;
}

static void need_tcp(void)
{
	if (!run.ours || strcmp(run.prov, "tcp"))
		ABSENT("a rule for tcp of this library");
}

/* Capabilities that tcp must offer so that nobody goes elsewhere. */
static const struct flag_row tcp_caps[] = {
	{ "msg", FI_MSG }, { "tagged", FI_TAGGED }, { "rma", FI_RMA }, { "source", FI_MSG | FI_SOURCE },
	{ "directed_recv", FI_TAGGED | FI_DIRECTED_RECV }, { "rma_event", FI_RMA | FI_RMA_EVENT },
	{ "local_comm", FI_LOCAL_COMM }, { "all", FI_MSG | FI_TAGGED | FI_RMA },
};

/* tcp offers each of these capabilities with both reliable endpoint types, as far as fi_getinfo(3) allows. */
TEST_TABLE(tcp_offers, tcp_caps, 0, RELIABLE)
{
	uint64_t caps = ROW(tcp_caps)->flags;
	struct fi_info *list;

	need_tcp();
	if (run.type == FI_EP_MSG && (caps & (FI_SOURCE | FI_DIRECTED_RECV)))
		ABSENT("for connectionless endpoints");
	MUST(fi_getinfo(run.version, NULL, NULL, 0, hints_new(t, &(struct opts) { .caps = caps }), &list));
	own_info(t, list);
}

/* Mercury, GASNet, MPICH compare the name; Mercury the protocol, too. */
TEST_PROV(tcp_name_and_protocol, 0, RDM_ONLY)
{
	struct fi_info *info;

	need_tcp();
	for (info = entries(t); info; info = info->next) {
		if (strchr(info->fabric_attr->prov_name, ';'))
			continue;
		CHECK(!strcmp(info->fabric_attr->prov_name, "tcp"));
		CHECK_EQ(info->ep_attr->protocol, FI_PROTO_XNET);
		CHECK(FI_VERSION_GE(info->fabric_attr->prov_version, FI_VERSION(112, 0)));
		CHECK_EQ(info->mode, 0);
		CHECK_EQ(info->domain_attr->cq_data_size, 8);
		CHECK(info->ep_attr->mem_tag_format >> 63);
		CHECK(info->tx_attr->inject_size >= 128);
	}
}

/* Has the interface this address? Ports do not count. */
static bool has_address(const char *iface, const struct sockaddr *addr)
{
	size_t from = addr->sa_family == AF_INET6 ? offsetof(struct sockaddr_in6, sin6_addr) :
						    offsetof(struct sockaddr_in, sin_addr);
	size_t len = addr->sa_family == AF_INET6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
	struct ifaddrs *list, *one;
	bool found = false;

	CHECK(!getifaddrs(&list));
	for (one = list; one && !found; one = one->ifa_next)
		found = one->ifa_addr && one->ifa_addr->sa_family == addr->sa_family && !strcmp(one->ifa_name, iface) &&
			!memcmp((char *) one->ifa_addr + from, (const char *) addr + from, len);
	freeifaddrs(list);
	return found;
}

/* Mercury and NCCL choose by interface: the domain is named after it, its address is the source, and each has one
 * entry a family. */
TEST_PROV(entry_per_interface, 0)
{
	struct fi_info *list = entries(t), *info, *other;

	if (!has_sockaddr())
		ABSENT("%s has no socket addresses", run.prov);
	for (info = list; info; info = info->next) {
		CHECK(if_nametoindex(info->domain_attr->name) != 0);
		CHECK(info->src_addr != NULL);
		CHECK(has_address(info->domain_attr->name, info->src_addr));
		for (other = info->next; other; other = other->next)
			CHECK(!info_is_run(other) || !info_is_run(info) || info->src_addrlen != other->src_addrlen ||
			      memcmp(info->src_addr, other->src_addr, info->src_addrlen));
	}
}

/* NCCL and Open MPI must not take the loopback interface for a way to other hosts: it comes last, and says so. */
TEST_PROV(loopback_is_last_and_local, 0)
{
	struct fi_info *info;
	bool lo, was_lo = false;

	need_tcp();
	for (info = entries(t); info; info = info->next) {
		if (!info_is_run(info))
			continue;
		lo = !strcmp(info->domain_attr->name, "lo");
		CHECK(lo || !was_lo);
		CHECK_EQ(info->domain_attr->caps & COMM, lo ? FI_LOCAL_COMM : COMM);
		CHECK_EQ(info->caps & FI_REMOTE_COMM, lo ? 0 : FI_REMOTE_COMM);
		was_lo = lo;
	}
}

/* GASNet measures the name with NULL; MPICH has room for 64 bytes. */
TEST_PROV(getname_measures, FI_MSG, UNCONNECTED)
{
	struct side *s = side_open(t);
	uint8_t name[128], guard[128];
	size_t len = 0;

	CHECK_RET(fi_getname(&s->ep->fid, NULL, &len), -FI_ETOOSMALL);
	CHECK(len > 0 && len <= 64);
	CHECK_EQ(len, s->name_len);
	memset(name, 0x5a, sizeof(name));
	memset(guard, 0x5a, sizeof(guard));
	len = s->name_len - 1;
	CHECK_RET(fi_getname(&s->ep->fid, name, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, s->name_len);
	CHECK_MEM(name + s->name_len - 1, guard, sizeof(name) - s->name_len + 1);
	len = sizeof(name);
	MUST(fi_getname(&s->ep->fid, name, &len));
	CHECK_EQ(len, s->name_len);
}

/* NCCL, Mercury, GASNet: options that are not known are -FI_ENOPROTOOPT, not an accident. */
TEST_PROV(unknown_option, FI_MSG)
{
	struct pair p = pair_open(t, .unconnected = true);
	size_t value = 1, len = sizeof(value);

	CHECK_RET(fi_setopt(&p.a->ep->fid, FI_OPT_ENDPOINT, 7777, &value, sizeof(value)), -FI_ENOPROTOOPT);
	CHECK_RET(fi_getopt(&p.a->ep->fid, FI_OPT_ENDPOINT, 7777, &value, &len), -FI_ENOPROTOOPT);
	CHECK_RET(fi_getopt(&p.a->ep->fid, FI_OPT_ENDPOINT, INT_MIN, &value, &len), -FI_ENOPROTOOPT);
	CHECK_RET(fi_setopt(&p.a->ep->fid, 99, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)), -FI_ENOPROTOOPT);
}

/* NCCL switches things off that are not there: it understands only these answers. */
TEST_PROV(nccl_options, FI_MSG | FI_TAGGED)
{
#if FI_VERSION_GE(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), FI_VERSION(1, 20))
	static const int opts[] = { FI_OPT_SHARED_MEMORY_PERMITTED, FI_OPT_CUDA_API_PERMITTED };
	struct pair p = pair_open(t, .unconnected = true);
	bool off = false;
	size_t i;
	int ret;

	for (i = 0; i < COUNT(opts); i++) {
		ret = fi_setopt(&p.a->ep->fid, FI_OPT_ENDPOINT, opts[i], &off, sizeof(off));
		CHECK(ret == 0 || ret == -FI_EOPNOTSUPP || ret == -FI_ENOPROTOOPT);
	}
#else
	ABSENT("headers without these options");
#endif
}

/* MPICH, GASNet and Mercury abort if this fails. */
TEST_PROV(min_multi_recv_option, FI_MSG | FI_MULTI_RECV)
{
	struct pair p = pair_open(t, .unconnected = true);
	size_t value = 16384, len = sizeof(value);

	MUST(fi_setopt(&p.a->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
	value = 0;
	MUST(fi_getopt(&p.a->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len));
	CHECK_EQ(value, 16384);
}

static void set_auto(struct fi_info *hints)
{
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
}

/* MPICH writes MANUAL over the progress of the answer and opens with it. */
TEST_PROV(mpich_alters_progress, FI_MSG, UNCONNECTED)
{
	struct fi_info *info = info_find(t, hints_new(t, &(struct opts) { .hints = set_auto }), NULL, NULL, 0);

	if (!info)
		ABSENT("no automatic progress");
	info->domain_attr->control_progress = info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	check_opens(t, info);
}

static void set_sas_only(struct fi_info *info)
{
	info->tx_attr->msg_order = info->rx_attr->msg_order = FI_ORDER_SAS;
}

/* fi_endpoint(3): ordering bits that are not required may be dropped before the endpoint is opened. */
TEST_PROV(orders_may_be_dropped, FI_MSG, RDM_ONLY)
{
	struct fi_info *info = info_find(t, hints_new(t, &(struct opts) { 0 }), NULL, NULL, 0);

	CHECK(info != NULL);
	set_sas_only(info);
	check_opens(t, info);
	info->tx_attr->msg_order = info->rx_attr->msg_order = 0;
	check_opens(t, info);
}

static void set_tx_only(struct fi_info *info)
{
	info->caps &= ~(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE);
	info->rx_attr->caps &= ~(FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE);
	info->caps |= FI_RMA | FI_READ | FI_WRITE;
}

/* SOS opens its contexts with fewer capabilities than the answer has: transmit only, no receive queue, and writes. */
TEST_PROV(sos_reduced_caps, FI_RMA | FI_MSG, RDM_ONLY)
{
	struct side *b = side_open(t), *a = domain_side(t);
	struct region r = region_open(b, NULL, 64, FI_REMOTE_WRITE | FI_REMOTE_READ);

	set_tx_only(a->info);
	side_open_cqs(a);
	side_open_av(a);
	side_open_ep(a);
	MUST(fi_ep_bind(a->ep, &a->tx_cq->fid, FI_TRANSMIT));
	MUST(fi_ep_bind(a->ep, &a->av->fid, 0));
	MUST(fi_enable(a->ep));
	a->peer = side_insert(a, b);
	post(a, WRITEMSG, .buf = "reduced!", .len = 8, .raddr = r.addr, .key = r.key, .flags = FI_DELIVERY_COMPLETE);
	expect_tx(a);
	CHECK_MEM(r.buf, "reduced!", 8);
}

/* GASNet: several endpoints of one domain share an address vector. */
TEST_PROV(gasnet_shares_av, FI_MSG, UNCONNECTED)
{
	struct side *b = side_open(t), *a = side_open(t), *a2, *a3;
	char in[4];

	a2 = side_open(t, .domain_of = a, .av_of = a);
	a3 = side_open(t, .domain_of = a, .av_of = a, .cq_of = a);
	CHECK_RET(fi_av_insert(a->av, b->name, 1, NULL, 0, NULL), 1);
	a->peer = a2->peer = a3->peer = 0;
	post_recv(b, in, 4);
	send_bytes(a, "1111", 4);
	expect_recv(b, "1111", 4);
	post_recv(b, in, 4);
	send_bytes(a2, "2222", 4);
	expect_recv(b, "2222", 4);
	post_recv(b, in, 4);
	send_bytes(a3, "3333", 4);
	expect_recv(b, "3333", 4);
}
