/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See node.h.
 */
#include "sim/node.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>
#include "sim/group.h"
#include "sim/link.h"

#define PORT		10000
#define CONTEXT_BITS	1
#define KINDS		512			/* of infos, as far as programs differ */
#define ORDERS		(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_WAS | \
			 FI_ORDER_SAR | FI_ORDER_SAW | FI_ORDER_SAS)
/* All that tcp;ofi_rxm has. */
#define RXM_ORDERS	(FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW | \
			 FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

struct node nodes[NET_NODES];

static const struct program *program;

static void must(int ret, const char *call)
{
	if (ret)
		judge_wrong("%s: %s", call, fi_strerror(-ret));
}

#define MUST(call) must(call, #call)

void node_begin(const struct program *what)
{
	program = what;
	memset(nodes, 0, sizeof(nodes));
}

/* ---- infos ---- */

static uint16_t port_of(unsigned n, unsigned context)
{
	return (uint16_t) (PORT + n + context * NET_NODES);
}

static void ask_key(struct fi_info *hints, unsigned n)
{
	const char *key = program->keys == 2 && !n ? "the key of others" : "the key of all nodes";

	hints->ep_attr->auth_key = (uint8_t *) strdup(key);
	hints->ep_attr->auth_key_size = strlen(key);
}

static uint64_t ask_caps(void)
{
	return FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | (program->rxm ? 0 : FI_FENCE) |
	       (program->msg ? 0 : FI_DIRECTED_RECV | (program->data ? FI_SOURCE : 0)) |
	       (program->group ? FI_COLLECTIVE : 0) | (program->contexts == SCALABLE ? FI_NAMED_RX_CTX : 0);
}

static struct fi_info *ask_info(unsigned n)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	char service[8];
	int ret;

	snprintf(service, sizeof(service), "%u", port_of(n, 0));
	hints->ep_attr->type = program->msg ? FI_EP_MSG : FI_EP_RDM;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = ask_caps();
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = program->rxm ? RXM_ORDERS :
								program->ordered ? ORDERS : 0;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(program->rxm ? "tcp;ofi_rxm" : "tcp");
	if (program->contexts == SCALABLE)
		hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = CONTEXTS;
	if (program->contexts == SHARED)
		hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	if (program->keys)
		ask_key(hints, n);
	ret = fi_getinfo(FI_VERSION(2, 6), "127.0.0.1", service, FI_SOURCE, hints, &info);
	fi_freeinfo(hints);
	must(ret, "fi_getinfo");
	return info;
}

/* Ask for an info once: that takes longer than a short program. */
static struct fi_info *info_of(unsigned n)
{
	static struct fi_info *infos[NET_NODES][KINDS];
	unsigned kind = program->msg | program->data << 1 | program->group << 2 | program->ordered << 3 |
			(unsigned) program->rxm << 4 | (unsigned) program->keys << 5 |
			(unsigned) program->contexts << 7;

	if (!infos[n][kind])
		infos[n][kind] = ask_info(n);
	return fi_dupinfo(infos[n][kind]);
}

/* ---- endpoints ---- */

static void bind_ep(struct node *node, struct fid_ep *ep)
{
	MUST(fi_ep_bind(ep, &node->av->fid, 0));
	MUST(fi_ep_bind(ep, &node->cq->fid, FI_TRANSMIT | FI_RECV));
}

static void open_own(struct node *node, unsigned n)
{
	MUST(fi_endpoint(node->domain, node->info, &node->tx[0], NULL));
	bind_ep(node, node->tx[0]);
	if (program->group)
		group_bind(n, node->fabric, node->tx[0]);
	MUST(fi_enable(node->tx[0]));
	node->rx[0] = node->tx[0];
}

static void open_scalable(struct node *node)
{
	MUST(fi_scalable_ep(node->domain, node->info, &node->sep, NULL));
	MUST(fi_scalable_ep_bind(node->sep, &node->av->fid, 0));
	for (int i = 0; i < CONTEXTS; i++) {
		MUST(fi_tx_context(node->sep, i, NULL, &node->tx[i], NULL));
		MUST(fi_ep_bind(node->tx[i], &node->cq->fid, FI_TRANSMIT));
		MUST(fi_enable(node->tx[i]));
		MUST(fi_rx_context(node->sep, i, NULL, &node->rx[i], NULL));
		MUST(fi_ep_bind(node->rx[i], &node->cq->fid, FI_RECV));
		MUST(fi_enable(node->rx[i]));
	}
	MUST(fi_enable(node->sep));
}

static void open_contexts(struct node *node)
{
	MUST(fi_stx_context(node->domain, NULL, &node->stx, NULL));
	MUST(fi_srx_context(node->domain, NULL, &node->srx, NULL));
}

static void open_shared(struct node *node, unsigned n)
{
	struct sockaddr_in *addr = node->info->src_addr;

	for (unsigned i = 0; i < CONTEXTS; i++) {
		addr->sin_port = htons(port_of(n, i));
		MUST(fi_endpoint(node->domain, node->info, &node->tx[i], NULL));
		bind_ep(node, node->tx[i]);
		MUST(fi_ep_bind(node->tx[i], &node->stx->fid, 0));
		MUST(fi_ep_bind(node->tx[i], &node->srx->fid, 0));
		MUST(fi_enable(node->tx[i]));
	}
}

static fi_addr_t insert(struct node *node, uint16_t port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	fi_addr_t got;

	if (fi_av_insert(node->av, &addr, 1, &got, 0, NULL) != 1)
		judge_wrong("fi_av_insert");
	return got;
}

/* All nodes are in the address vector of each. */
static void insert_all(struct node *node)
{
	for (unsigned i = 0; i < program->nodes; i++) {
		node->addr[i][0] = insert(node, port_of(i, 0));
		if (program->contexts == SCALABLE)
			node->addr[i][1] = fi_rx_addr(node->addr[i][0], 1, CONTEXT_BITS);
		else if (program->contexts == SHARED)
			node->addr[i][1] = insert(node, port_of(i, 1));
	}
}

static void know_group(const struct node *node, unsigned n)
{
	fi_addr_t addr[NET_NODES] = { 0 };

	for (unsigned i = 0; i < program->nodes; i++)
		addr[i] = node->addr[i][0];
	group_know(n, node->av, addr);
}

static void open_eps(struct node *node, unsigned n)
{
	struct fi_av_attr attr = {
		.type = FI_AV_TABLE, .rx_ctx_bits = program->contexts == SCALABLE ? CONTEXT_BITS : 0,
	};

	MUST(fi_av_open(node->domain, &attr, &node->av, NULL));
	if (program->contexts == SCALABLE)
		open_scalable(node);
	else if (program->contexts == SHARED)
		open_shared(node, n);
	else
		open_own(node, n);
	insert_all(node);
	if (program->group)
		know_group(node, n);
}

static void close_eps(struct node *node)
{
	for (unsigned i = 0; i < CONTEXTS; i++) {
		if (node->tx[i])
			MUST(fi_close(&node->tx[i]->fid));
		if (node->sep)
			MUST(fi_close(&node->rx[i]->fid));
	}
	if (node->sep)
		MUST(fi_close(&node->sep->fid));
	if (node->srx) {
		MUST(fi_close(&node->srx->fid));
		MUST(fi_close(&node->stx->fid));
	}
}

/* ---- nodes ---- */

/* Memory of zeros. Most of it is never touched, so it comes from the kernel, which clears the rest. */
static struct memory *memory_map(void)
{
	void *map = mmap(NULL, sizeof(struct memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		judge_wrong("the simulator has no memory");
	return map;
}

void node_start(unsigned n)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct node *node = &nodes[n];

	net_node(n);
	*node = (struct node) { .info = info_of(n) };
	memory[n] = memory_map();
	MUST(fi_fabric(node->info->fabric_attr, &node->fabric, NULL));
	MUST(fi_domain(node->fabric, node->info, &node->domain, NULL));
	MUST(fi_cq_open(node->domain, &cq_attr, &node->cq, NULL));
	if (program->contexts == SHARED)
		open_contexts(node);
	if (program->msg)
		link_open(n, &(struct link_node) { node->info, node->fabric, node->domain, node->cq, node->stx,
						   node->srx });
	else
		open_eps(node, n);
	MUST(fi_mr_regv(node->domain, (struct iovec[]) {
				{ memory[n]->slots, SLOTS_LEN }, { &memory[n]->cells, REGION_LEN - SLOTS_LEN } }, 2,
			FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &node->mr, NULL));
}

void node_close(unsigned n)
{
	struct node *node = &nodes[n];

	net_node(n);
	node->down = true;
	if (program->group)
		group_close(n);
	if (program->msg)
		link_close(n);
	close_eps(node);
	if (program->group)
		group_close_queue(n);
	MUST(fi_close(&node->mr->fid));
	MUST(fi_close(&node->cq->fid));
	if (!program->msg)
		MUST(fi_close(&node->av->fid));
	MUST(fi_close(&node->domain->fid));
	MUST(fi_close(&node->fabric->fid));
	fi_freeinfo(node->info);
	munmap(memory[n], sizeof(*memory[n]));
	memory[n] = NULL;
}

/* ---- operations ---- */

static bool is_posted_to_rx(const struct op *op)
{
	return op_is_recv(op) || op->kind == ACT_PEEK;
}

struct fid_ep *node_ep_of(const struct op *op)
{
	const struct node *node = &nodes[op->node];

	if (program->msg && (program->contexts != SHARED || !is_posted_to_rx(op)))
		return link_ep(op->node, op->peer);
	if (is_posted_to_rx(op))
		return program->contexts == SHARED ? node->srx : node->rx[op->rx];
	return node->tx[op->tx];
}

fi_addr_t node_dest(const struct op *op)
{
	return nodes[op->node].addr[op->peer][op->rx];
}

fi_addr_t node_source(const struct op *op)
{
	if (op->peer == op->node || program->msg)
		return FI_ADDR_UNSPEC;
	return nodes[op->node].addr[op->peer][program->contexts == SHARED ? op->tx : 0];
}

unsigned node_at(unsigned n, fi_addr_t addr)
{
	for (unsigned i = 0; i < program->nodes; i++) {
		for (unsigned context = 0; context < CONTEXTS; context++) {
			if (nodes[n].addr[i][context] == addr && (!context || program->contexts == SHARED))
				return i;
		}
	}
	return NET_NODES;
}
