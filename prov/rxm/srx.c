/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packet buffers that all connections of an engine share, where the provider below has shared receive contexts and says
 * whose packet has filled a receive. So the memory for packets does not grow with the peers. It begins with as much as
 * one connection may need (FI_OFI_RXM_MSG_RX_SIZE), and doubles when more than half of it is in use at a time, up to
 * RXM_SRX_MAX buffers: filled by the device and not read yet, or held back. With more traffic than that, a device
 * repeats packets until there is a buffer again. Engine lock held.
 */
#include "rxm/rxm.h"

#include <stdlib.h>
#include "common/endpoint/endpoint.h"

/* Buffers that were allocated together. */
struct rxm_srx_part {
	struct rxm_srx_part *next;
	struct rxm_chunk *chunk;	/* owned */
	struct rxm_rx rx[];
};

static int srx_post(struct rxm_poller *poller, struct rxm_rx *rx)
{
	int ret = (int) fi_recv(poller->srx, rx->pkt, poller->srx_len, rx->desc, FI_ADDR_UNSPEC, &rx->ctx);

	if (!ret)
		poller->srx_posted++;
	return ret;
}

/* Add cnt buffers. 0; -FI_ENOMEM, or the error of posting one. */
static int srx_grow(struct rxm_poller *poller, uint32_t cnt)
{
	size_t stride = (poller->srx_len + 63) & ~(size_t) 63;
	struct rxm_srx_part *part = calloc(1, sizeof(*part) + cnt * sizeof(part->rx[0]));
	int ret = 0;

	if (!part)
		return -FI_ENOMEM;
	part->chunk = rxm_chunk_alloc(poller->domain->below, stride, cnt);
	if (!part->chunk) {
		free(part);
		return -FI_ENOMEM;
	}
	part->next = poller->parts;
	poller->parts = part;
	for (uint32_t i = 0; i < cnt && !ret; i++) {
		struct rxm_rx *rx = &part->rx[i];

		rx->ctx.kind = RXM_CTX_RX;
		rx->shared = true;
		rx->pkt = (struct rxm_pkt *) (rxm_chunk_mem(part->chunk) + i * stride);
		rx->desc = rxm_chunk_desc(part->chunk);
		fab_list_init(&rx->link);
		ret = srx_post(poller, rx);
		poller->srx_cnt += !ret;
	}
	return ret;
}

/* As many buffers as the connections could have under way, and no more than the context has room for. */
static uint32_t srx_useful(const struct rxm_poller *poller)
{
	return (uint32_t) fab_min(poller->conn_cnt * rxm_params.conn_rx, (size_t) RXM_SRX_MAX);
}

void rxm_srx_enlarge(struct rxm_poller *poller)
{
	uint32_t useful = srx_useful(poller);

	/* if there is no memory for more, what there is has to do, until another connection joins */
	if (poller->srx_cnt < useful && !poller->srx_full)
		poller->srx_full = srx_grow(poller, fab_min(poller->srx_cnt, useful - poller->srx_cnt));
}

void rxm_srx_repost(struct rxm_poller *poller, struct rxm_rx *rx)
{
	rx->conn = NULL;
	srx_post(poller, rx);	/* there is room for all; if the device has failed, nothing comes any more */
}

void rxm_srx_return(struct rxm_conn *conn)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(&conn->posted)) || (link = fab_list_pop_front(&conn->held))) {
		struct rxm_rx *rx = fab_container(link, struct rxm_rx, link);

		rx->arrived = rx->written = rx->bare = false;
		rxm_srx_repost(conn->ep->poller, rx);
	}
}

int rxm_srx_join(struct rxm_conn *conn)
{
	struct rxm_poller *poller = conn->ep->poller;
	int ret = 0;

	poller->srx_full = false;
	if (!poller->srx_cnt)
		ret = srx_grow(poller, (uint32_t) fab_min(rxm_params.conn_rx, (size_t) RXM_SRX_MAX));
	return poller->srx_cnt ? 0 : ret;
}

void rxm_srx_open(struct rxm_domain *domain, struct rxm_poller *poller)
{
	struct fi_rx_attr attr = { .caps = FI_MSG | FI_RECV, .size = RXM_SRX_MAX, .iov_limit = 1 };
	size_t len = sizeof(bool);
	bool names = false;

	poller->srx_len = sizeof(struct rxm_pkt) + fab_max(rxm_params.buffer_size, (size_t) RXM_BIG_MIN);
	/* over iWARP a message that finds no receive ends its connection (RFC 5041, section 7.1), and nothing bounds
	 * how many messages all peers send at a time */
	if (!rxm_params.use_srx || domain->below_info->ep_attr->protocol == FI_PROTO_IWARP ||
	    fi_srx_context(domain->below, &attr, &poller->srx, NULL)) {
		poller->srx = NULL;
		return;
	}
	if (!fi_getopt(&poller->srx->fid, FI_OPT_ENDPOINT, FAB_OPT_NAMES_TAKER, &names, &len) && names)
		return;
	fi_close(&poller->srx->fid);
	poller->srx = NULL;
}

void rxm_srx_close(struct rxm_poller *poller)
{
	struct rxm_srx_part *part;

	if (poller->srx)
		fi_close(&poller->srx->fid);
	while ((part = poller->parts)) {
		poller->parts = part->next;
		rxm_chunk_free(part->chunk);
		free(part);
	}
}
