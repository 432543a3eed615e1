/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The poller: one completion queue and one event queue of the provider below, for all endpoints on one engine of a
 * domain.
 *
 * Each pass of the engine reads the completion queue, which also makes progress below. The file descriptors of both
 * queues are sources of the engine, so that a thread that sleeps on the engine wakes for completions and events below.
 * Once a descriptor has been requested, the provider below must signal it for every completion. Over a device that
 * costs an interrupt and system calls, so there the descriptors are requested when a thread sleeps for the first time
 * (engine->watchers); until then the event queue is read every few passes. Other providers are asked for descriptors at
 * once: tcp delays some sends until the next pass if no thread can sleep on its queue, and an application that injects
 * need not make that pass.
 *
 * A poller is opened with the first endpoint that is enabled on an engine, and closed with the last. Lock of the engine
 * held, except in rxm_poller_get() and rxm_poller_put().
 *
 * If one of the queues fails, completions or events cannot be read any more, and the endpoints on it are lost: all
 * their outstanding operations end in error, once, new operations are refused, and so are requests of peers.
 */
#include "rxm/rxm.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "base/clock.h"
#include "base/sock.h"

#define BATCH		16
#define EVENTS_MAX	16		/* limit of events per pass: requests must not delay completions */
#define CLOCK_EVERY	4		/* passes between clock readings, which check whether ... */
#define EVENTS_NS	1000000		/* ... this time has passed since the event queue was read */
#define AGAIN_NS	1000000		/* to the next try of what is stuck with nothing under way */
#define BUSY_NS		1000000		/* since a known peer had a completion: it is busy, and strangers rest */
#define REST		7		/* times that what strangers have asked for took */
#define REST_MAX_NS	100000000
#define WATCH_NS	1000000000	/* after the last stranger */
#define LOOK_MS		10		/* poll interval for sleeping threads without descriptors */

static bool read_cq(struct rxm_poller *poller);

/* ---- strangers ---- */

/* True if no events are to be read yet. */
static __attribute__((noinline, cold)) bool is_resting(struct rxm_poller *poller)
{
	if (fab_now_ns() < poller->rest_ns)
		return true;
	poller->rest_ns = 0;
	return false;
}

/* The descriptor stays readable meanwhile, and must wake nobody; a timer does. */
void rxm_poller_stranger_asked(struct rxm_poller *poller, uint64_t took_ns)
{
	uint64_t now = fab_now_ns();

	poller->watch = true;
	poller->stranger_ns = now;
	if (!took_ns || !poller->heard_ns || now - poller->heard_ns > BUSY_NS)
		return;
	poller->rest_ns = now + fab_min(REST * took_ns, (uint64_t) REST_MAX_NS);
	if (!poller->wakes)
		return;
	fab_source_mod(&poller->eq_src, 0);
	fab_timer_start(poller->engine, &poller->rest, poller->rest_ns);
}

/* ---- events ---- */

/* Read up to `most` events. If a connection ends, stop until the completion queue has been read, here or by the
 * read_cq() that called this. */
static bool take_events(struct rxm_poller *poller, int most)
{
	int cnt = 0;

	if (__builtin_expect(poller->rest_ns != 0, 0) && is_resting(poller))
		return false;
	while (cnt < most && !poller->rest_ns && rxm_conn_event(poller)) {
		cnt++;
		if (poller->ending)
			read_cq(poller);
	}
	poller->more_events = cnt == most || poller->rest_ns;
	return cnt;
}

static bool being_made(const struct rxm_conn *conn)
{
	return conn->state == RXM_CONN_CONNECTING || conn->state == RXM_CONN_ACCEPTING;
}

/* A shared receive has completed for this connection; NULL: for none that is known. False: it has been posted again,
 * since nobody wants it. */
static inline bool take_shared(struct rxm_poller *poller, struct rxm_rx *rx, struct rxm_conn *conn)
{
	if (--poller->srx_posted < poller->srx_cnt / 2 + poller->srx_taken++)
		rxm_srx_enlarge(poller);
	if (!conn || conn->state == RXM_CONN_DOWN) {
		rxm_srx_repost(poller, rx);
		return false;
	}
	rx->conn = conn;
	return true;
}

static inline __attribute__((always_inline))
void take_completion(struct rxm_poller *poller, const struct fi_cq_tagged_entry *entry)
{
	struct rxm_ctx *ctx = entry->op_context;
	struct rxm_rx *rx;

	if (__builtin_expect(ctx != NULL, 1) && ctx->kind == RXM_CTX_TX && !(entry->flags & FI_REMOTE_WRITE)) {
		rxm_tx_below_done(fab_container(ctx, struct rxm_tx, ctx), 0, NULL);
		return;
	}
	if (poller->srx && ctx && ctx->kind == RXM_CTX_RX &&
	    !take_shared(poller, fab_container(ctx, struct rxm_rx, ctx), entry->buf))
		return;
	/* a remote write whose CQ data the provider below reports in its completion queue */
	if (entry->flags & FI_REMOTE_WRITE) {
		rxm_rx_remote_write(poller, ctx, entry->data, entry->len);
		return;
	}
	rx = fab_container(ctx, struct rxm_rx, ctx);
	/* the event that ends the handshake may be unread or, on a network, arrive after this message */
	if (being_made(rx->conn))
		take_events(poller, INT_MAX);
	if (entry->flags & FI_TAGGED)
		rxm_rx_bare(rx, entry);
	else
		rxm_rx_packet(rx, entry->len);
}

void rxm_poller_lose(struct rxm_poller *poller, const char *queue, int err)
{
	struct fab_list *link;

	if (poller->lost)
		return;
	RXM_WARN(FI_LOG_CQ, "the %s queue below has failed: %s; all outstanding operations on endpoints of this queue "
		 "end with that error, and the endpoints accept no new ones: close them and open others\n", queue,
		 fi_strerror(err));
	poller->lost = err;
	poller->odd = poller->watch = true;
	fab_source_mod(&poller->cq_src, 0);
	fab_list_for_each(&poller->eps, link)
		rxm_ep_lost(fab_container(link, struct rxm_ep, poller_link), err);
}

static void lose(struct rxm_poller *poller, int err)
{
	rxm_poller_lose(poller, "completion", err);
}

static void take_tx_error(struct rxm_poller *poller, struct rxm_tx *tx, int err, const char *said)
{
	struct rxm_conn *conn = tx->gone ? NULL : tx->conn;
	char text[RXM_WHY];

	/* this error also occurs if the peer has closed; if its event has arrived, it is the reason to report */
	if (err == FI_EHOSTUNREACH)
		take_events(poller, INT_MAX);
	/* a timeout below is the reason itself; the end of the connection follows from it */
	if (err != FI_ETIMEDOUT && !tx->gone && tx->conn && tx->conn == poller->ending) {
		err = poller->ending_err;
		said = poller->ending_why;
	}
	if (!tx->gone && tx->conn) {
		rxm_peer_why(tx->conn->peer, said, NULL, text);
		said = text;
	}
	rxm_tx_below_done(tx, err, said);
	/* a connection that has receives of its own ends when these are flushed; shared receives are not */
	if (conn && conn->shares && conn->state != RXM_CONN_DOWN && conn != poller->ending)
		rxm_conn_fail(conn, FI_ECONNRESET, "the connection was lost: an operation failed");
}

/* The provider below has completed a write, and now its target refuses it. */
static void take_late_error(const struct fi_cq_err_entry *entry, const char *said)
{
	struct fab_comp comp = { .flags = fab_op_desc[FAB_OP_WRITE].cq_flags, .len = entry->len,
				 .src = FI_ADDR_NOTAVAIL };
	const struct rxm_conn *conn;
	struct fab_cq_late late;
	char text[RXM_WHY];

	if (!(entry->flags & FI_RMA) || entry->err_data_size != sizeof(late))
		return;
	memcpy(&late, entry->err_data, sizeof(late));
	conn = (const struct rxm_conn *) (uintptr_t) late.peer;
	late.peer = conn->peer ? conn->peer->fi_addr : FI_ADDR_NOTAVAIL;
	if (conn->peer)
		rxm_peer_why(conn->peer, said, NULL, text);
	else
		snprintf(text, sizeof(text), "%s", said);
	fab_ep_fail(&conn->ep->base, FAB_OP_WRITE, &comp, &(struct fab_cq_fail) {
		    .err = entry->err, .prov_errno = entry->err, .text = text, .err_data = &late,
		    .err_data_len = sizeof(late) });
}

static void take_error(struct rxm_poller *poller)
{
	struct fi_cq_err_entry entry = { 0 };
	char said[RXM_WHY - 40], why[RXM_WHY];
	struct rxm_ctx *ctx;
	struct rxm_conn *conn;
	struct rxm_rx *rx;

	/* if the entry cannot be read, or stays in the queue as an overrun does, it blocks all entries after it */
	if (fi_cq_readerr(poller->cq, &entry, 0) != 1 || entry.err == FI_EOVERRUN) {
		lose(poller, FI_EOVERRUN);
		return;
	}
	snprintf(said, sizeof(said), "%s", fi_cq_strerror(poller->cq, entry.prov_errno, entry.err_data, NULL, 0));
	ctx = entry.op_context;
	if (!ctx) {
		take_late_error(&entry, said);
		return;
	}
	if (ctx->kind == RXM_CTX_TX) {
		take_tx_error(poller, fab_container(ctx, struct rxm_tx, ctx), entry.err, said);
		return;
	}
	rx = fab_container(ctx, struct rxm_rx, ctx);
	conn = rx->shared ? entry.buf : rx->conn;
	if (rx->shared) {
		poller->srx_posted--;
		rxm_srx_repost(poller, rx);
	}
	if (!conn || conn->state == RXM_CONN_DOWN)
		return;
	if (entry.err == FI_ETRUNC)
		rxm_conn_broken(conn, "a packet longer than its buffer");
	else
		take_events(poller, INT_MAX);	/* an event has the reason */
	/* or it comes later: while a connection ends, this one or another, no event is read */
	if (conn->state == RXM_CONN_DOWN || poller->ending)
		return;
	snprintf(why, sizeof(why), "the connection was lost: %s", said);
	rxm_conn_fail(conn, entry.err == FI_ECANCELED ? FI_ECONNRESET : entry.err, why);
}

/* True if a read of cnt entries has emptied the queue, and no read that finds it empty is needed. Such a read is needed
 * while a connection ends, and while a thread sleeps, whose descriptor stays readable until then. */
static bool is_all(const struct rxm_poller *poller, ssize_t cnt)
{
	return cnt >= 0 && cnt < BATCH && !poller->ending && !poller->wakes && fab_list_empty(&poller->gone);
}

/* The connection that a completion is of, as far as it is known; or NULL. */
static const struct rxm_conn *conn_of(const struct fi_cq_tagged_entry *entry)
{
	const struct rxm_ctx *ctx = entry->op_context;
	const struct rxm_tx *tx;
	const struct rxm_rx *rx;

	if (!ctx)
		return NULL;
	if (ctx->kind == RXM_CTX_TX) {
		tx = fab_container(ctx, struct rxm_tx, ctx);
		return tx->gone || (entry->flags & FI_REMOTE_WRITE) ? NULL : tx->conn;
	}
	rx = fab_container(ctx, struct rxm_rx, ctx);
	return rx->shared ? entry->buf : rx->conn;
}

/* What a pass has found, while there are strangers. */
struct watched {
	bool known;			/* a completion of a known peer */
	uint64_t took_ns;		/* to handle those of strangers */
};

static __attribute__((noinline))
void take_watched(struct rxm_poller *poller, const struct fi_cq_tagged_entry *entry, struct watched *watched)
{
	const struct rxm_conn *conn = conn_of(entry);
	bool strange = conn && conn->stranger;
	uint64_t begun = strange ? fab_now_ns() : 0;

	watched->known |= conn && !strange;
	take_completion(poller, entry);
	watched->took_ns += strange ? fab_now_ns() - begun : 0;
}

static void end_watched(struct rxm_poller *poller, struct watched *watched)
{
	bool strange = poller->ending->stranger;
	uint64_t begun = fab_now_ns();

	rxm_conn_ended(poller);
	watched->took_ns += strange ? fab_now_ns() - begun : 0;
}

enum below {
	EMPTY,				/* a read has found nothing */
	ENOUGH,				/* all that there was was read, without one */
	MORE,				/* or unknown */
};

/* Read completions, up to a bound. watched: see read_watched(). */
static inline __attribute__((always_inline))
enum below read_below(struct rxm_poller *poller, struct watched *watched, bool *any)
{
	struct fi_cq_tagged_entry entry[BATCH];

	for (int left = rxm_params.comp_max; left > 0 && !(watched ? poller->lost : poller->watch); left -= BATCH) {
		ssize_t cnt = fi_cq_read(poller->cq, entry, BATCH);

		if (cnt == -FI_EAGAIN) {
			if (!poller->ending)
				return EMPTY;
			if (watched)
				end_watched(poller, watched);
			else
				rxm_conn_ended(poller);
		}
		*any = true;
		for (ssize_t n = 0; n < cnt; n++) {
			if (watched)
				take_watched(poller, &entry[n], watched);
			else
				take_completion(poller, &entry[n]);
		}
		if (cnt == -FI_EAVAIL)
			take_error(poller);
		else if (cnt < 0 && cnt != -FI_EAGAIN)
			lose(poller, (int) -cnt);
		else if (is_all(poller, cnt))
			return ENOUGH;
	}
	return MORE;
}

/* The same while there are strangers, or the queue has failed. What strangers' completions take here is part of their
 * time below, where they wait for their turns. */
static __attribute__((noinline)) enum below read_watched(struct rxm_poller *poller, bool *any)
{
	struct watched watched = { 0 };
	enum below left = read_below(poller, &watched, any);
	uint64_t now = fab_now_ns();

	if (watched.known)
		poller->heard_ns = now;
	if (watched.took_ns)
		fi_control(&poller->cq->fid, FAB_CONTROL_STRANGERS_TOOK, &watched.took_ns);
	if (poller->stranger_cnt)
		poller->stranger_ns = now;
	poller->watch = poller->lost || now - poller->stranger_ns < WATCH_NS;
	return poller->lost ? EMPTY : left;
}

static bool read_cq(struct rxm_poller *poller)
{
	enum below left;
	bool any = false;

	if (poller->reading)
		return false;
	poller->reading = true;
	left = read_below(poller, NULL, &any);
	if (left == MORE && poller->watch)
		left = read_watched(poller, &any);
	if (left == EMPTY && !fab_list_empty(&poller->gone))
		rxm_conn_reap(poller);
	poller->srx_taken = 0;
	poller->reading = false;
	return any;
}

static void run_stuck(struct rxm_poller *poller)
{
	struct fab_list list, *link;

	fab_list_init(&list);
	fab_list_splice_tail(&list, &poller->stuck);
	while ((link = fab_list_pop_front(&list)))
		rxm_tx_run(fab_container(link, struct rxm_conn, stuck));
}

static void again_fire(struct fab_timer *timer)
{
	run_stuck(fab_container(timer, struct rxm_poller, again));
}

void rxm_poller_again(struct rxm_poller *poller)
{
	if (!poller->again.when_ns)
		fab_timer_start(poller->engine, &poller->again, fab_now_ns() + AGAIN_NS);
}

/* Process what there is below. True if there was anything. */
static inline __attribute__((always_inline)) bool run(struct rxm_poller *poller)
{
	bool any = read_cq(poller);

	if (poller->making || poller->more_events)
		any |= take_events(poller, EVENTS_MAX);
	if (any && !fab_list_empty(&poller->stuck))
		run_stuck(poller);
	return any;
}

bool rxm_poller_run(struct rxm_poller *poller)
{
	return run(poller);
}

void rxm_poller_settle(struct rxm_poller *poller)
{
	while (!fab_list_empty(&poller->gone))
		read_cq(poller);
}

static void cq_ready(struct fab_source *src, uint32_t events)
{
	struct rxm_poller *poller = fab_container(src, struct rxm_poller, cq_src);

	(void) events;
	/* events are left to eq_ready() and to poll_below(): one pass takes EVENTS_MAX of them from each */
	if (read_cq(poller) && !fab_list_empty(&poller->stuck))
		run_stuck(poller);
}

static void eq_ready(struct fab_source *src, uint32_t events)
{
	(void) events;
	take_events(fab_container(src, struct rxm_poller, eq_src), EVENTS_MAX);
}

/* ---- sleeping threads ---- */

/* Add the descriptor of a queue to the engine. A queue that has failed is not read any more, so its descriptor is added
 * without EPOLLIN: it stays readable, and must wake nobody. */
static int add_source(struct rxm_poller *poller, struct fid *fid, struct fab_source *src, bool is_read)
{
	int ret = src->engine ? 0 : fi_control(fid, FI_GETWAIT, &src->fd);

	return ret || src->engine ? ret : fab_source_add(poller->engine, src, is_read ? EPOLLIN : 0);
}

/* Let completions and events wake threads that sleep on the engine. Where the descriptors cannot be had, a timer polls
 * the queues instead. */
static void wake_sleepers(struct rxm_poller *poller)
{
	int ret = add_source(poller, &poller->cq->fid, &poller->cq_src, !poller->lost);

	if (!ret)
		ret = add_source(poller, &poller->eq->fid, &poller->eq_src, !poller->eq_lost);
	poller->wakes = !ret;
	if (ret && !poller->look.when_ns)
		RXM_WARN(FI_LOG_CQ, "the descriptors of the queues below cannot be polled: %s; sleeping threads look "
			 "every %d ms\n", fi_strerror(-ret), LOOK_MS);
	if (ret)
		fab_timer_start(poller->engine, &poller->look, fab_now_ns() + LOOK_MS * 1000000ULL);
}

static void rest_fire(struct fab_timer *timer)
{
	struct rxm_poller *poller = fab_container(timer, struct rxm_poller, rest);

	poller->rest_ns = 0;
	if (!poller->eq_lost)
		fab_source_mod(&poller->eq_src, EPOLLIN);
	take_events(poller, EVENTS_MAX);
}

static void look_fire(struct fab_timer *timer)
{
	rxm_poller_run(fab_container(timer, struct rxm_poller, look));
}

/* A pass while a thread sleeps or is about to: process all completions and events, and make sure that the provider
 * below signals its descriptors from now on. True if there was any. */
static bool poll_for_sleepers(struct rxm_poller *poller)
{
	struct fid *fids[] = { &poller->cq->fid, &poller->eq->fid };
	int fid_cnt = fab_countof(fids);
	bool any;

	if (!poller->wakes)
		wake_sleepers(poller);
	if (rxm_poller_run(poller))
		return true;
	any = take_events(poller, EVENTS_MAX);
	if (poller->rest_ns)
		fid_cnt--;		/* the timer wakes for events */
	if (!poller->wakes || fi_trywait(poller->fabric, fids, fid_cnt) != -FI_EAGAIN)
		return any;
	any |= take_events(poller, EVENTS_MAX);
	return read_cq(poller) || any;
}

/* True if it is time to read events, while no thread sleeps. Bounded by time, since the application may make any number
 * of passes. */
static bool events_due(struct rxm_poller *poller)
{
	uint64_t now;

	if (poller->passes++ % CLOCK_EVERY)
		return false;
	now = fab_now_ns();
	if (now - poller->events_ns < EVENTS_NS)
		return false;
	poller->events_ns = now;
	return true;
}

static bool poll_below(struct fab_poll_fn *fn)
{
	struct rxm_poller *poller = fab_container(fn, struct rxm_poller, fn);
	bool any;

	if (atomic_load_explicit(&poller->engine->watchers, memory_order_seq_cst))
		return poll_for_sleepers(poller);
	any = run(poller);
	if (!poller->wakes && events_due(poller))
		any |= take_events(poller, EVENTS_MAX);
	return any;
}

void rxm_poller_wait(struct rxm_poller *poller, int timeout_ms)
{
	struct fid *fids[] = { &poller->cq->fid, &poller->eq->fid };
	struct pollfd fds[fab_countof(fids)];

	if (!poller->wakes)
		wake_sleepers(poller);
	fds[0] = (struct pollfd) { .fd = poller->cq_src.fd, .events = POLLIN };
	fds[1] = (struct pollfd) { .fd = poller->eq_src.fd, .events = POLLIN };
	if (!poller->wakes || !fi_trywait(poller->fabric, fids, fab_countof(fids)))
		fab_sock->poll(fds, poller->wakes ? fab_countof(fids) : 0, timeout_ms);
	take_events(poller, EVENTS_MAX);
	read_cq(poller);
	run_stuck(poller);
}

/* ---- open and close ---- */

static int open_queues(struct rxm_domain *domain, struct rxm_poller *poller)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_FD };
	int ret;

	ret = fi_eq_open(poller->fabric, &eq_attr, &poller->eq, NULL);
	if (ret)
		return ret;
	ret = fi_cq_open(domain->below, &cq_attr, &poller->cq, NULL);
	if (ret)
		fi_close(&poller->eq->fid);
	return ret;
}

static void rxm_poller_start(struct rxm_poller *poller, bool over_device)
{
	poller->cq_src.ready = cq_ready;
	poller->eq_src.ready = eq_ready;
	poller->fn.poll = poll_below;
	fab_timer_init(&poller->look, look_fire);
	fab_timer_init(&poller->again, again_fire);
	fab_timer_init(&poller->rest, rest_fire);
	fab_engine_lock(poller->engine);
	fab_poll_add(poller->engine, &poller->fn);
	if (!over_device)
		wake_sleepers(poller);
	poll_below(&poller->fn);	/* a thread, such as the engine's own, may be asleep already */
	fab_engine_unlock(poller->engine);
}

static int poller_open(struct rxm_domain *domain, struct fab_engine *engine, struct rxm_poller **out)
{
	struct rxm_poller *poller = calloc(1, sizeof(*poller));
	int ret;

	if (!poller)
		return -FI_ENOMEM;
	poller->engine = engine;
	poller->domain = domain;
	poller->odd = domain->has_device;
	poller->after.tell = rxm_fetch_after;
	fab_list_init(&poller->after.link);
	fab_list_init(&poller->fetches);
	poller->fabric = fab_container(domain->base.fabric, struct rxm_fabric, base)->below;
	fab_list_init(&poller->gone);
	fab_list_init(&poller->eps);
	fab_list_init(&poller->stuck);
	ret = open_queues(domain, poller);
	if (ret) {
		free(poller);
		return ret;
	}
	if (domain->mr_local)
		rxm_srx_open(domain, poller);
	rxm_poller_start(poller, domain->mr_local);
	fab_list_add_tail(&domain->pollers, &poller->link);
	*out = poller;
	return 0;
}

static void poller_close(struct rxm_poller *poller)
{
	fab_engine_lock(poller->engine);
	fab_source_del(&poller->cq_src);
	fab_source_del(&poller->eq_src);
	fab_timer_stop(&poller->look);
	fab_timer_stop(&poller->again);
	fab_timer_stop(&poller->rest);
	fab_poll_del(poller->engine, &poller->fn);
	rxm_poller_settle(poller);
	fab_engine_unlock(poller->engine);
	fab_list_remove(&poller->link);
	rxm_srx_close(poller);
	fi_close(&poller->cq->fid);
	fi_close(&poller->eq->fid);
	free(poller);
}

int rxm_poller_get(struct rxm_domain *domain, struct fab_engine *engine, struct rxm_poller **out)
{
	struct rxm_poller *poller = NULL;
	struct fab_list *link;
	int ret = 0;

	pthread_mutex_lock(&domain->lock);
	fab_list_for_each(&domain->pollers, link) {
		struct rxm_poller *other = fab_container(link, struct rxm_poller, link);

		if (other->engine == engine)
			poller = other;
	}
	if (!poller)
		ret = poller_open(domain, engine, &poller);
	if (!ret) {
		poller->user_cnt++;
		*out = poller;
	}
	pthread_mutex_unlock(&domain->lock);
	return ret;
}

void rxm_poller_put(struct rxm_domain *domain, struct rxm_poller *poller)
{
	pthread_mutex_lock(&domain->lock);
	if (!--poller->user_cnt)
		poller_close(poller);
	pthread_mutex_unlock(&domain->lock);
}
