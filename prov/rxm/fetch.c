/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading an announced message into the buffers of its receive. Engine lock held, except where said.
 *
 * Where buffers must be registered and are not, a long message is read in chunks: while the device reads one, the next
 * is registered. Registering may take longer than reading. So it is done when the lock is about to be released anyway,
 * after the pass or call, and without the lock (rxm_fetch_after()).
 *
 *   whole: in conn->waiting; with poller->fetches while its next chunk is to be registered
 *   chunk: a read like others, with whole as its message; whole ends with the last one
 */
#include "rxm/rxm.h"

#include <string.h>

/* The next chunk of a message: a part of one buffer, and where it is at the sender. */
struct chunk {
	struct iovec iov;
	void *desc;			/* of the application, or NULL */
	struct fi_rma_iov rma;
};

static struct chunk chunk_next(const struct rxm_tx *whole)
{
	size_t at = whole->chunk_at, there = whole->chunk_at, len;
	struct chunk chunk;
	uint32_t i = 0, k = 0;

	for (; at >= whole->iov[i].iov_len; i++)
		at -= whole->iov[i].iov_len;
	for (; there >= whole->rma[k].len; k++)
		there -= whole->rma[k].len;
	len = fab_min(whole->iov[i].iov_len - at, whole->rma[k].len - there);
	len = fab_min(len, (size_t) RXM_CHUNK);
	chunk.iov = (struct iovec) { (uint8_t *) whole->iov[i].iov_base + at, len };
	chunk.desc = whole->desc[i];
	chunk.rma = (struct fi_rma_iov) {
		.addr = whole->rma[k].addr + there, .len = len, .key = whole->rma[k].key,
	};
	return chunk;
}

static bool all_begun(const struct rxm_tx *whole)
{
	return whole->chunk_at == whole->into.take;
}

/* Let the next chunk be registered, if there is one and it is its turn. */
static void queue(struct rxm_tx *whole)
{
	struct rxm_poller *poller = whole->ep->poller;

	if (whole->fetch_err || all_begun(whole) || whole->chunk_cnt == RXM_CHUNKS || whole->registering ||
	    !fab_list_empty(&whole->turn))
		return;
	fab_list_add_tail(&poller->fetches, &whole->turn);
	rxm_poller_after(poller);
}

/* End the message, once no chunk is being read or registered, if it is complete or has failed. */
static void settle(struct rxm_tx *whole, const char *text)
{
	if (whole->chunk_cnt || whole->registering)
		return;
	if (whole->fetch_err || !whole->chunk_left)
		rxm_tx_answered(whole, whole->fetch_err, text);
}

static void chunk_done(struct rxm_tx *tx, int err, const char *text)
{
	struct rxm_tx *whole = tx->whole;

	whole->chunk_cnt--;
	if (!err)
		whole->chunk_left -= tx->len;
	else if (!whole->fetch_err)
		whole->fetch_err = err;		/* the first one is the cause of the others */
	queue(whole);
	settle(whole, err == whole->fetch_err ? text : NULL);
}

/* Start to read a chunk with this registration, which it owns then. */
static int chunk_start(struct rxm_tx *whole, const struct chunk *chunk, struct fab_pin *pin)
{
	struct rxm_tx *tx = rxm_tx_new(whole->ep, RXM_TX_READ);

	if (!tx) {
		if (pin && fab_mrc_put(&whole->ep->domain->cache, pin))
			rxm_poller_after(whole->ep->poller);
		return -FI_ENOMEM;
	}
	tx->iov[0] = chunk->iov;
	tx->desc[0] = pin ? fi_mr_desc(pin->region) : rxm_desc_below(chunk->desc);
	tx->rma[0] = chunk->rma;
	tx->iov_cnt = tx->rma_cnt = tx->parts = 1;
	tx->len = chunk->iov.iov_len;
	if (pin)
		tx->pin[tx->pin_cnt++] = pin;
	tx->whole = whole;
	tx->done = chunk_done;
	tx->control = true;
	whole->chunk_cnt++;
	whole->chunk_at += tx->len;
	rxm_tx_start(whole->conn, tx);
	return 0;
}

/* Register a chunk, without the lock if it can be released. False: the message has ended meanwhile. */
static bool chunk_register(struct rxm_poller *poller, struct rxm_tx *whole, const struct chunk *chunk,
			   struct fab_pin **pin, int *ret)
{
	struct fab_mrc *cache = &poller->domain->cache;
	struct fab_engine *engine = poller->engine;
	bool holds = engine->in_pass;

	whole->registering = true;
	poller->registering++;
	if (!holds)
		fab_lock_release(&engine->lock);
	*ret = fab_mrc_get(cache, chunk->iov.iov_base, chunk->iov.iov_len, RXM_PIN_FILL, pin);
	if (!holds)
		fab_engine_lock(engine);
	poller->registering--;
	whole->registering = false;
	if (!whole->gone)
		return true;
	if (!*ret)
		fab_mrc_put(cache, *pin);
	rxm_tx_free(whole->ep, whole);
	return false;
}

static void fetch_chunk(struct rxm_poller *poller, struct rxm_tx *whole)
{
	struct chunk chunk = chunk_next(whole);
	struct fab_pin *pin = NULL;
	int ret = 0;

	if (!chunk.desc)
		pin = fab_mrc_find(&poller->domain->cache, chunk.iov.iov_base, chunk.iov.iov_len, RXM_PIN_FILL);
	if (!chunk.desc && !pin && !chunk_register(poller, whole, &chunk, &pin, &ret))
		return;
	if (!ret && !whole->fetch_err) {
		whole->registering = true;	/* it does not end inside of this, if the chunk does */
		ret = chunk_start(whole, &chunk, pin);
		whole->registering = false;
	} else if (!ret && pin) {
		fab_mrc_put(&poller->domain->cache, pin);
	}
	if (whole->gone) {
		rxm_tx_free(whole->ep, whole);
		return;
	}
	if (ret)
		whole->fetch_err = -ret;
	queue(whole);
	settle(whole, ret ? "the receive buffer cannot be registered" : NULL);
}

void rxm_fetch_after(struct fab_signal *signal)
{
	struct rxm_poller *poller = fab_container(signal, struct rxm_poller, after);
	struct fab_mrc *cache = &poller->domain->cache;
	struct fab_list *link;

	while ((link = fab_list_pop_front(&poller->fetches)))
		fetch_chunk(poller, fab_container(link, struct rxm_tx, turn));
	if (!atomic_load_explicit(&cache->has_dead, memory_order_relaxed))
		return;
	poller->registering++;
	if (!poller->engine->in_pass)
		fab_lock_release(&poller->engine->lock);
	fab_mrc_reap(cache);
	if (!poller->engine->in_pass)
		fab_engine_lock(poller->engine);
	poller->registering--;
}

/* True if all buffers have descriptors, or cached registrations; these are then the entry's. */
static bool is_pinned(struct rxm_ep *ep, struct rxm_tx *tx)
{
	for (uint32_t i = 0; i < tx->iov_cnt; i++) {
		struct fid_mr *mr;

		if (tx->desc[i])
			continue;
		if (rxm_pin_take(ep, tx, tx->iov[i].iov_base, tx->iov[i].iov_len, RXM_PIN_FILL, &mr))
			return false;
	}
	return true;
}

/* Replace the application's descriptors by those below. The registrations that is_pinned() has found are in order. */
static void use_desc(struct rxm_tx *tx)
{
	uint32_t pin = 0;

	for (uint32_t i = 0; i < tx->iov_cnt; i++)
		tx->desc[i] = tx->desc[i] ? rxm_desc_below(tx->desc[i]) : fi_mr_desc(tx->pin[pin++]->region);
}

int rxm_fetch_start(struct rxm_conn *conn, struct rxm_tx *tx)
{
	tx->control = true;
	if (!conn->ep->domain->mr_local) {
		for (uint32_t i = 0; i < tx->iov_cnt; i++)
			tx->desc[i] = conn->ep->domain->uses_desc ? rxm_desc_below(tx->desc[i]) : NULL;
		rxm_tx_start(conn, tx);
		return 0;
	}
	if (is_pinned(conn->ep, tx)) {
		use_desc(tx);
		rxm_tx_start(conn, tx);
		return 0;
	}
	rxm_tx_unpin(conn->ep, tx);
	fab_list_init(&tx->turn);
	tx->fetching = true;
	tx->fetch_err = 0;
	tx->chunk_left = tx->into.take;
	conn->ctl_cnt++;
	fab_list_add_tail(&conn->waiting, &tx->link);
	queue(tx);
	return 0;
}
