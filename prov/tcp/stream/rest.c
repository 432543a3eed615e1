/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What takes long to free: the answers that a connection owed when it ended, 65,536 or more, and the memory of pools
 * that have grown by such peers. It is freed in pieces, one in each pass. Engine lock held.
 */
#include "tcp/stream/stream.h"

#include <assert.h>
#include <stdlib.h>
#include "base/clock.h"

#define PIECE_NS	20000		/* of a pass */
#define PIECE_CNT	32		/* answers between two looks at the clock */
#define KEEP_UP_CNT	2		/* answers for each new one that is queued */
#define TRIM_CNT	1024		/* a pool keeps so many entries beyond those of operations when all are free */

static bool rest_is_empty(const struct tcp_ep_rest *rest)
{
	for (int class = 0; class < TCP_CLASSES; class++) {
		if (!fab_list_empty(&rest->answers[class]))
			return false;
	}
	return !rest->chunks;
}

static void answer_free(struct tcp_ep *ep, enum tcp_class class, struct tcp_tx *tx)
{
	assert(tx->code == FAB_OP_MAX);
	if (tcp_tx_owns_flat(tx))
		free(tx->flat);
	tcp_account_give_left(&ep->rx->account, class, TCP_HELD_ANSWERS, tx->charged);
	fab_pool_put(&ep->tx->pool, tx);
}

/* Free so many answers. Returns how many fewer there were. */
static int rest_free_answers(struct tcp_ep *ep, int left)
{
	for (int class = 0; class < TCP_CLASSES; class++) {
		struct fab_list *link;

		for (; left && (link = fab_list_pop_front(&ep->rest.answers[class])); left--)
			answer_free(ep, class, fab_container(link, struct tcp_tx, link));
	}
	return left;
}

/* Free some of it, the oldest first. */
static void rest_free_some(struct tcp_ep *ep)
{
	struct tcp_ep_rest *rest = &ep->rest;

	if (rest_free_answers(ep, PIECE_CNT) < PIECE_CNT)
		tcp_rest_trim(ep);
	else
		fab_pool_free_chunk(&rest->chunks);
}

static void rest_flush(struct fab_flush *flush)
{
	struct tcp_ep *ep = fab_container(flush, struct tcp_ep, rest.flush);
	uint64_t begun = fab_now_ns();

	while (!rest_is_empty(&ep->rest)) {
		rest_free_some(ep);
		if (fab_now_ns() - begun < PIECE_NS)
			continue;
		fab_engine_flush_later(ep->base.engine, flush);
		return;
	}
}

void tcp_rest_answers(struct tcp_conn *conn)
{
	struct tcp_ep *ep = conn->ep;
	struct tcp_holding *holding = &conn->holding;

	tcp_account_leave(holding, TCP_HELD_ANSWERS, holding->len[TCP_HELD_ANSWERS]);
	fab_list_splice_tail(&ep->rest.answers[holding->class], &conn->tx.queue);
	conn->tx.control_cnt = conn->tx.pack_cnt = 0;
	fab_engine_flush_later(ep->base.engine, &ep->rest.flush);
}

void tcp_rest_keep_up(struct tcp_ep *ep)
{
	rest_free_answers(ep, KEEP_UP_CNT);
}

void tcp_rest_pool(struct tcp_ep *ep, struct fab_pool *pool)
{
	fab_pool_detach(pool, &ep->rest.chunks);
	fab_engine_flush_later(ep->base.engine, &ep->rest.flush);
}

void tcp_rest_trim(struct tcp_ep *ep)
{
	struct fab_pool *pool = &ep->tx->pool;

	if (!pool->out_cnt && pool->made_cnt > 2 * ep->tx->size + TRIM_CNT)
		tcp_rest_pool(ep, pool);
}

void tcp_rest_init(struct tcp_ep *ep)
{
	for (int class = 0; class < TCP_CLASSES; class++)
		fab_list_init(&ep->rest.answers[class]);
	fab_flush_init(&ep->rest.flush, rest_flush);
}

void tcp_rest_fini(struct tcp_ep *ep)
{
	fab_flush_cancel(&ep->rest.flush);
	while (!rest_is_empty(&ep->rest))
		rest_free_some(ep);
	fab_flush_cancel(&ep->rest.flush);	/* the last answer may have left a pool to be freed */
}
