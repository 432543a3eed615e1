/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The news that a group has failed, for each neighbour that has to know. A member that waits for another one has, or
 * makes, a connection to it, and fails if it sees that end. So news that may have been lost goes with the next
 * connection to the neighbour, whichever end makes that. News outlives its group.
 *
 *   DUE --net->abort--> SENT --the connection is lost, or there was none--> LOST --a connection is made--> DUE
 */
#include "common/collective/coll_group.h"

#define PRESSES_MAX	8		/* connections that this end makes for a piece of news, beyond the first */

static void send_news(const struct fab_coll *coll, struct fab_coll_news *news)
{
	news->state = FAB_NEWS_SENT;
	if (coll->net->abort(coll->ep, news->peer, news->tag, news->err))
		news->state = FAB_NEWS_LOST;
}

void fab_coll_tell(struct fab_coll *coll, fi_addr_t peer, uint64_t tag, int err)
{
	struct fab_coll_news *news = NULL;

	if (!err) {
		coll->net->abort(coll->ep, peer, tag, 0);
		return;
	}
	for (unsigned i = 0; i < FAB_COLL_NEWS_MAX; i++) {
		if (coll->news[i].tag == tag && coll->news[i].peer == peer)
			news = &coll->news[i];
	}
	if (!news)
		news = &coll->news[coll->news_next++ % FAB_COLL_NEWS_MAX];
	*news = (struct fab_coll_news) { .tag = tag, .peer = peer, .err = err };
	send_news(coll, news);
}

void fab_coll_news_forget(struct fab_coll *coll, uint64_t tag)
{
	for (unsigned i = 0; i < FAB_COLL_NEWS_MAX; i++) {
		if (coll->news[i].tag == tag)
			coll->news[i] = (struct fab_coll_news) { .state = FAB_NEWS_NONE };
	}
}

static void now_due(struct fab_coll *coll, struct fab_coll_news *news)
{
	news->state = FAB_NEWS_DUE;
	fab_engine_flush_later(coll->ep->engine, &coll->flush);
}

void fab_coll_news_lost(struct fab_coll *coll, fi_addr_t peer)
{
	for (unsigned i = 0; i < FAB_COLL_NEWS_MAX; i++) {
		if (coll->news[i].state == FAB_NEWS_SENT && coll->news[i].peer == peer)
			coll->news[i].state = FAB_NEWS_LOST;
	}
}

void fab_coll_news_met(struct fab_coll *coll, fi_addr_t peer)
{
	for (unsigned i = 0; i < FAB_COLL_NEWS_MAX; i++) {
		if (coll->news[i].state == FAB_NEWS_LOST && coll->news[i].peer == peer)
			now_due(coll, &coll->news[i]);
	}
}

void fab_coll_untold(struct fab_coll *coll, fi_addr_t peer, uint64_t tag)
{
	for (unsigned i = 0; i < FAB_COLL_NEWS_MAX; i++) {
		struct fab_coll_news *news = &coll->news[i];

		if (news->tag != fab_group_bits(tag) || news->peer != peer ||
		    (news->state != FAB_NEWS_SENT && news->state != FAB_NEWS_LOST))
			continue;
		news->state = FAB_NEWS_LOST;
		if (news->presses == PRESSES_MAX)
			continue;
		news->presses++;
		now_due(coll, news);
	}
}

void fab_coll_news_flush(struct fab_flush *flush)
{
	struct fab_coll *coll = fab_container(flush, struct fab_coll, flush);

	for (unsigned i = 0; i < FAB_COLL_NEWS_MAX; i++) {
		if (coll->news[i].state == FAB_NEWS_DUE)
			send_news(coll, &coll->news[i]);
	}
}
