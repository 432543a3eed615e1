/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See top.h. A page is read record by record, each of which is copied first, so nothing changes or is misaligned while
 * it is looked at.
 */
#include "top.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S	1e9
#define QUIET_S		60		/* a process that cannot be seen may have ended */

/* ---- records ---- */

/* What a record of a peer has counted. */
struct counts {
	uint64_t out_ops, out_bytes, in_ops, in_bytes;
};

static void add_op(uint64_t *ops, uint64_t *bytes, const struct fi_stats_count *count)
{
	*ops += count->ops;
	*bytes += count->bytes;
}

/* A collective as a whole is left out: its messages are counted. */
static struct counts counts_of(const struct fi_stats_peer *peer)
{
	static const bool leaves[FI_STATS_OPS] = {
		[FI_STATS_SEND] = true, [FI_STATS_TSEND] = true, [FI_STATS_COLL_SEND] = true, [FI_STATS_WRITE] = true,
		[FI_STATS_ATOMIC] = true, [FI_STATS_REMOTE_READ] = true, [FI_STATS_REMOTE_FETCH_ATOMIC] = true,
	};
	struct counts counts = { 0 };

	for (int op = 0; op < FI_STATS_OPS; op++) {
		if (op == FI_STATS_COLLECTIVE)
			continue;
		if (leaves[op])
			add_op(&counts.out_ops, &counts.out_bytes, &peer->op[op]);
		else
			add_op(&counts.in_ops, &counts.in_bytes, &peer->op[op]);
	}
	return counts;
}

static void counts_add(struct counts *sum, const struct counts *more)
{
	sum->out_ops += more->out_ops;
	sum->out_bytes += more->out_bytes;
	sum->in_ops += more->in_ops;
	sum->in_bytes += more->in_bytes;
}

/* What has grown from b to a, or 0 where it has not. */
static uint64_t growth(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct counts counts_growth(const struct counts *a, const struct counts *b)
{
	return (struct counts) { growth(a->out_ops, b->out_ops), growth(a->out_bytes, b->out_bytes),
				 growth(a->in_ops, b->in_ops), growth(a->in_bytes, b->in_bytes) };
}

static bool counts_have_grown(const struct counts *a, const struct counts *b)
{
	return a->out_ops >= b->out_ops && a->out_bytes >= b->out_bytes && a->in_ops >= b->in_ops &&
	       a->in_bytes >= b->in_bytes;
}

/* A page of this reading, and of the one before. */
struct look {
	const struct page *page, *before;	/* before may be NULL */
	struct fi_stats_header header, header_before;
	bool is_new;				/* the page was made since the reading before */
	double seconds;				/* between the readings; 0: there was none */
};

static bool get_ep(const struct page *page, const struct fi_stats_header *header, uint32_t i, struct fi_stats_ep *ep)
{
	const void *record = page ? page_record(page, header, FI_STATS_EPS, i, sizeof(*ep)) : NULL;

	if (record)
		memcpy(ep, record, sizeof(*ep));
	return record;
}

static bool get_peer(const struct page *page, const struct fi_stats_header *header, uint32_t i,
		     struct fi_stats_peer *peer)
{
	const void *record = page ? page_record(page, header, FI_STATS_PEERS, i, sizeof(*peer)) : NULL;

	if (record)
		memcpy(peer, record, sizeof(*peer));
	return record;
}

static bool is_used(const struct fi_stats_peer *peer)
{
	return peer->used == FI_STATS_LIVE || peer->used == FI_STATS_GONE;
}

/* Seconds from this moment to the reading. Moments outside of the life of the page are its ends. */
static double age(const struct look *look, uint64_t ticks)
{
	const struct fi_stats_source *source = &look->page->source;
	const struct fi_stats_header *header = &look->header;
	uint64_t now_ticks = header->clock == FI_STATS_CLOCK_TSC ? source->now_ticks : source->now_ns;
	int64_t ns;

	if (header->open_ticks >= now_ticks || header->open_ns >= source->now_ns || ticks >= now_ticks)
		return 0;
	ns = fi_stats_ns(header, ticks > header->open_ticks ? ticks : header->open_ticks, now_ticks, source->now_ns);
	return (double) ((int64_t) source->now_ns - ns) / NS_PER_S;
}

/* Seconds since the last progress call on an engine, or -1. */
static double progress_age(const struct look *look, uint32_t i)
{
	struct fi_stats_engine engine;
	const void *record = page_record(look->page, &look->header, FI_STATS_ENGINES, i, sizeof(engine));

	if (!record)
		return -1;
	memcpy(&engine, record, sizeof(engine));
	return engine.used == FI_STATS_LIVE && engine.last_pass ? age(look, engine.last_pass) : -1;
}

/* A process of another pid namespace, of which nobody knows whether it lives, has called no progress for long. */
static bool may_have_ended(const struct look *look)
{
	for (uint32_t i = 0; i < look->header.table[FI_STATS_ENGINES].cnt && i < FI_STATS_ENGINE_CNT; i++) {
		double seconds = progress_age(look, i);

		if (seconds >= 0 && seconds < QUIET_S)
			return false;
	}
	return !look->page->ours;
}

/* ---- texts ---- */

/* A text of a page, which may have any bytes and no end. */
static void copy_text(char *to, const char *from, size_t size)
{
	size_t i;

	for (i = 0; i < size - 1 && from[i]; i++)
		to[i] = from[i] >= ' ' && from[i] < 127 ? from[i] : '?';
	to[i] = 0;
}

/* An address, of "fi_sockaddr_in://10.0.0.1:4711" what is behind the format. */
static void copy_addr(char *to, const char *from, size_t size)
{
	char *begin;

	copy_text(to, from, size);
	begin = strstr(to, "://");
	if (begin)
		memmove(to, begin + 3, strlen(begin + 3) + 1);
}

/* A program and its arguments, without the folder of the program. */
static void copy_command(char *to, const char *from, size_t size)
{
	char *name = to;

	copy_text(to, from, size);
	for (char *c = to; *c && *c != ' '; c++)
		name = *c == '/' ? c + 1 : name;
	memmove(to, name, strlen(name) + 1);
}

static const char *link_of(const struct fi_stats_peer *peer)
{
	static const char *const carriers[] = {
		[FI_STATS_CARRIER_NONE] = "up", [FI_STATS_CARRIER_TCP] = "tcp", [FI_STATS_CARRIER_UNIX] = "unix",
		[FI_STATS_CARRIER_RING] = "ring", [FI_STATS_CARRIER_UDP] = "udp", [FI_STATS_CARRIER_RDMA] = "rdma",
		[FI_STATS_CARRIER_BELOW] = "below",
	};
	static const char *const states[] = {
		[FI_STATS_CONN_NONE] = "-", [FI_STATS_CONN_CONNECTING] = "wait", [FI_STATS_CONN_PARKED] = "park",
		[FI_STATS_CONN_DOWN] = "down",
	};

	if (peer->used == FI_STATS_GONE)
		return "gone";
	if (peer->conn == FI_STATS_CONN_UP)
		return peer->carrier < sizeof(carriers) / sizeof(*carriers) ? carriers[peer->carrier] : "?";
	return peer->conn < sizeof(states) / sizeof(*states) ? states[peer->conn] : "?";
}

static const char *const waits[FI_STATS_STATES] = {
	[FI_STATS_NONE] = "", [FI_STATS_RESOLVING] = "resolving", [FI_STATS_CONNECTING] = "connecting",
	[FI_STATS_ACCEPTING] = "accepting", [FI_STATS_AWAITED] = "awaited", [FI_STATS_PARKED] = "parked",
	[FI_STATS_CREDIT] = "credit", [FI_STATS_ANNOUNCED] = "announced", [FI_STATS_FULL] = "full",
	[FI_STATS_QUEUED] = "queued", [FI_STATS_SENT] = "sent", [FI_STATS_ANSWER] = "answer",
	[FI_STATS_DELIVERY] = "delivery", [FI_STATS_FENCE] = "fence", [FI_STATS_POSTED] = "posted",
	[FI_STATS_ARRIVING] = "arriving", [FI_STATS_KEPT] = "kept", [FI_STATS_KEPT_ANNOUNCED] = "kept_announced",
	[FI_STATS_MEMBERS] = "members", [FI_STATS_THRESHOLD] = "threshold", [FI_STATS_REQUESTED] = "requested",
};

/* ---- rows ---- */

static struct top_row *row_new(struct top *top, const struct top_row *like)
{
	if (top->cnt == top->space) {
		size_t space = top->space ? 2 * top->space : 64;
		struct top_row *row = realloc(top->row, space * sizeof(*row));

		if (!row)
			return NULL;
		top->row = row;
		top->space = space;
	}
	top->row[top->cnt] = *like;
	return &top->row[top->cnt++];
}

static void flow_add(struct top_flow *flow, const struct top_flow *more)
{
	flow->ops += more->ops;
	flow->bytes += more->bytes;
	flow->ops_s += more->ops_s;
	flow->bytes_s += more->bytes_s;
}

static void row_add(struct top_row *row, const struct top_row *more)
{
	flow_add(&row->out, &more->out);
	flow_add(&row->in, &more->in);
	row->has_rates |= more->has_rates;
	row->procs += more->procs;
	row->eps += more->eps;
	row->peers += more->peers;
	row->queued += more->queued;
	row->kept += more->kept;
	row->posted += more->posted;
	row->errors += more->errors;
	if (more->waits != FI_STATS_NONE && (row->waits == FI_STATS_NONE || more->waits_s > row->waits_s)) {
		row->waits = more->waits;
		row->waits_s = more->waits_s;
	}
	if (more->progress_s > row->progress_s)
		row->progress_s = more->progress_s;
}

/* Something is pending, and the record is whole. */
static bool is_pending(const struct fi_stats_pending *pending)
{
	return pending->since && pending->written == pending->begun && pending->state < FI_STATS_STATES;
}

/* Keep the operation in the row that has waited for the longest time. */
static void note_wait(struct top_row *row, const struct look *look, const struct fi_stats_pending *pending)
{
	double waits_s;

	if (!is_pending(pending))
		return;
	waits_s = age(look, pending->since);
	if (row->waits == FI_STATS_NONE || waits_s > row->waits_s) {
		row->waits = pending->state;
		row->waits_s = waits_s;
	}
}

/* The part of a row that a record of a peer is, with what it has counted since the reading before. */
static struct top_row part_of(const struct look *look, const struct fi_stats_peer *peer, const struct counts *total,
			      const struct counts *more)
{
	double per_s = look->seconds > 0 ? 1 / look->seconds : 0;
	struct top_row part = {
		.ep = peer->ep, .errors = peer->errors, .progress_s = -1,
		.has_rates = look->seconds > 0 && (look->before || look->is_new),
		.out = { total->out_ops, total->out_bytes, (double) more->out_ops * per_s,
			 (double) more->out_bytes * per_s },
		.in = { total->in_ops, total->in_bytes, (double) more->in_ops * per_s,
			(double) more->in_bytes * per_s },
		.queued = growth(peer->queued, peer->dequeued),
	};

	if (is_pending(&peer->pending[FI_STATS_PEER_KEPT]))
		part.kept = peer->pending[FI_STATS_PEER_KEPT].cnt;
	note_wait(&part, look, &peer->pending[FI_STATS_PEER_MESSAGE]);
	note_wait(&part, look, &peer->pending[FI_STATS_PEER_ACCESS]);
	note_wait(&part, look, &peer->pending[FI_STATS_PEER_CONNECT]);
	note_wait(&part, look, &peer->pending[FI_STATS_PEER_ARRIVING]);
	return part;
}

/* Of an endpoint: the sum of its records, now and in the reading before, and what those of single peers have grown. */
struct sums {
	struct counts now, before, peers;
	bool was_there;
	size_t row;			/* its place in top->row, or SIZE_MAX */
	uint32_t peers_cnt;
};

/* What a page has so far. */
struct work {
	struct top *top;
	struct look *look;
	struct top_row like;		/* what is the same in all rows of the page */
	struct sums *ep;		/* cnt of them */
	uint32_t cnt;
	size_t row;			/* of the process, or SIZE_MAX */
	bool failed;
};

/* Put a part into the row of its view; for a peer, into one of its own. */
static void put_part(struct work *work, const struct top_row *part, const struct fi_stats_peer *peer)
{
	struct top *top = work->top;
	size_t at = top->view == TOP_PROCESSES ? work->row : top->view == TOP_ENDPOINTS ? work->ep[part->ep].row :
		    SIZE_MAX;
	struct fi_stats_ep ep;
	struct top_row *row;

	row_add(&top->sum, part);
	if (at != SIZE_MAX) {
		row_add(&top->row[at], part);
		return;
	}
	if (top->view != TOP_PEERS)
		return;
	row = row_new(top, &work->like);
	if (!row) {
		work->failed = true;
		return;
	}
	row_add(row, part);
	row->ep = part->ep;
	copy_addr(row->addr, peer->addr, sizeof(row->addr));
	snprintf(row->link, sizeof(row->link), "%s", link_of(peer));
	if (get_ep(work->look->page, &work->look->header, part->ep, &ep))
		copy_text(row->prov, ep.prov, sizeof(row->prov));
}

/* An endpoint of the reading before: the sum of what it had counted, but for its peers. */
static void read_ep_before(struct work *work, const struct fi_stats_ep *ep, uint32_t i)
{
	struct fi_stats_ep old;

	if (!get_ep(work->look->before, &work->look->header_before, i, &old) || old.used != FI_STATS_LIVE ||
	    old.opened != ep->opened)
		return;
	work->ep[i].was_there = true;
	work->ep[i].before = counts_of(&old.rest);
}

static void read_ep(struct work *work, uint32_t i)
{
	struct top *top = work->top;
	struct sums *sums = &work->ep[i];
	struct top_row row = work->like;
	struct fi_stats_ep ep;
	struct top_row part = { .ep = i, .eps = 1 };

	sums->row = SIZE_MAX;
	if (!get_ep(work->look->page, &work->look->header, i, &ep) || ep.used != FI_STATS_LIVE)
		return;
	part.progress_s = ep.enabled ? progress_age(work->look, ep.engine) : -1;
	part.posted = ep.posted[0] + ep.posted[1];
	if (top->view == TOP_ENDPOINTS) {
		row.ep = i;
		row.procs = 0;
		copy_text(row.prov, ep.prov, sizeof(row.prov));
		copy_addr(row.addr, ep.addr, sizeof(row.addr));
		sums->row = top->cnt;
		if (!row_new(top, &row)) {
			work->failed = true;
			sums->row = SIZE_MAX;
			return;
		}
	}
	read_ep_before(work, &ep, i);
	sums->now = counts_of(&ep.rest);
	note_wait(&part, work->look, &ep.pending[FI_STATS_EP_COLLECTIVE]);
	note_wait(&part, work->look, &ep.pending[FI_STATS_EP_ACCEPT]);
	if (top->view == TOP_PEERS)
		row_add(&top->sum, &part);
	else
		put_part(work, &part, NULL);
}

/* The peer's record in the reading before, if it was the same peer's. */
static bool find_before(const struct work *work, const struct fi_stats_peer *peer, uint32_t i, struct counts *counts)
{
	struct fi_stats_peer old;

	if (!work->ep[peer->ep].was_there || !get_peer(work->look->before, &work->look->header_before, i, &old) ||
	    !is_used(&old) || old.ep != peer->ep)
		return false;
	/* an address may become known later */
	*counts = counts_of(&old);
	return !old.addr[0] || !memcmp(old.addr, peer->addr, sizeof(old.addr));
}

static void read_peer(struct work *work, const struct fi_stats_peer *peer, uint32_t i)
{
	struct counts now = counts_of(peer), before = { 0 }, more;
	struct top_row part;

	if (find_before(work, peer, i, &before) && counts_have_grown(&now, &before))
		more = counts_growth(&now, &before);
	else
		more = now;
	if (!work->look->before && !work->look->is_new)
		more = (struct counts) { 0 };
	counts_add(&work->ep[peer->ep].now, &now);
	counts_add(&work->ep[peer->ep].peers, &more);
	work->ep[peer->ep].peers_cnt++;
	part = part_of(work->look, peer, &now, &more);
	part.peers = peer->used == FI_STATS_LIVE;
	put_part(work, &part, peer);
}

/* The reading before: sum up what the peers of each endpoint had counted. */
static void read_peers_before(struct work *work)
{
	struct fi_stats_peer peer;

	for (uint32_t i = 0; get_peer(work->look->before, &work->look->header_before, i, &peer); i++) {
		struct counts counts = counts_of(&peer);

		if (is_used(&peer) && peer.ep < work->cnt && work->ep[peer.ep].was_there)
			counts_add(&work->ep[peer.ep].before, &counts);
	}
}

/*
 * The record of those peers that have none. Counters of a peer that has lost its record move into it, so what it has
 * grown is the growth of the endpoint without that of the peers.
 */
static void read_rest(struct work *work, uint32_t i)
{
	struct sums *sums = &work->ep[i];
	struct fi_stats_ep ep;
	struct counts total, more;
	struct top_row part;

	if (!get_ep(work->look->page, &work->look->header, i, &ep) || ep.used != FI_STATS_LIVE)
		return;
	ep.rest.ep = i;
	total = counts_of(&ep.rest);
	more = counts_growth(&sums->now, &sums->before);
	more = counts_growth(&more, &sums->peers);
	if (!work->look->before && !work->look->is_new)
		more = (struct counts) { 0 };
	part = part_of(work->look, &ep.rest, &total, &more);
	/* an endpoint without peers has a line, too */
	if (work->top->view == TOP_PEERS && sums->peers_cnt && !total.out_ops && !total.in_ops && !part.queued &&
	    !part.kept && !part.errors && part.waits == FI_STATS_NONE)
		return;
	snprintf(ep.rest.addr, sizeof(ep.rest.addr), "%s", sums->peers_cnt ? "others" : "-");
	ep.rest.used = FI_STATS_LIVE;
	ep.rest.conn = FI_STATS_CONN_NONE;
	put_part(work, &part, &ep.rest);
}

static uint32_t count_eps(const struct look *look)
{
	uint32_t cnt = 0;

	while (page_record(look->page, &look->header, FI_STATS_EPS, cnt, sizeof(struct fi_stats_ep)))
		cnt++;
	return cnt;
}

static void read_page(struct work *work)
{
	struct look *look = work->look;
	struct top *top = work->top;
	struct top_row process;
	struct fi_stats_peer peer;

	process = (struct top_row) { .procs = 1, .progress_s = -1 };
	row_add(&top->sum, &process);
	work->like = (struct top_row) { .pid = look->page->pid, .progress_s = -1 };
	work->like.state = look->page->ours ? look->page->source.proc_state : '?';
	copy_text(work->like.rank, look->header.rank, sizeof(work->like.rank));
	copy_command(work->like.command, look->header.command, sizeof(work->like.command));
	if (!work->like.state)
		work->like.state = '-';
	work->row = SIZE_MAX;
	if (top->view == TOP_PROCESSES) {
		struct top_row row = work->like;

		row.procs = 1;
		work->row = top->cnt;
		if (!row_new(top, &row)) {
			work->failed = true;
			return;
		}
	}
	for (uint32_t i = 0; i < work->cnt; i++)
		read_ep(work, i);
	read_peers_before(work);
	for (uint32_t i = 0; get_peer(look->page, &look->header, i, &peer); i++)
		if (is_used(&peer) && peer.ep < work->cnt)
			read_peer(work, &peer, i);
	for (uint32_t i = 0; i < work->cnt; i++)
		read_rest(work, i);
}

/* The page of the same file in another reading. Files mostly stand in the same order. */
static const struct page *find_page(const struct pages *pages, const char *path, size_t hint)
{
	for (size_t i = 0; pages && i < pages->cnt; i++) {
		const struct page *page = &pages->list[(hint + i) % pages->cnt];

		if (!strcmp(page->path, path))
			return page;
	}
	return NULL;
}

static bool make_page(struct top *top, const struct pages *now, size_t i, const struct pages *before,
		      uint64_t before_ns)
{
	struct look look = { .page = &now->list[i], .before = find_page(before, now->list[i].path, i) };
	struct work work = { .top = top, .look = &look };

	if (!page_header(look.page, &look.header)) {
		top->bad++;
		return true;
	}
	if (look.before && (!page_header(look.before, &look.header_before) ||
			    look.header_before.start != look.header.start ||
			    look.header_before.open_ns != look.header.open_ns))
		look.before = NULL;
	if (may_have_ended(&look))
		return true;
	look.is_new = before && look.header.open_ns >= before_ns;
	if (before && look.page->source.now_ns > before_ns)
		look.seconds = (double) (look.page->source.now_ns -
					 (look.before ? look.before->source.now_ns : before_ns)) / NS_PER_S;
	work.cnt = count_eps(&look);
	work.ep = calloc(work.cnt + 1, sizeof(*work.ep));
	if (!work.ep)
		return false;
	read_page(&work);
	free(work.ep);
	return !work.failed;
}

bool top_make(struct top *top, enum top_view view, const struct pages *now, size_t cnt, const struct pages *before,
	      uint64_t before_ns)
{
	bool ok = true;

	top->view = view;
	top->cnt = top->bad = 0;
	top->sum = (struct top_row) { .progress_s = -1, .has_rates = before != NULL };
	for (size_t i = 0; ok && i < cnt; i++)
		ok = make_page(top, now, i, before, before_ns);
	return ok;
}

void top_free(struct top *top)
{
	free(top->row);
	*top = (struct top) { .row = NULL };
}

/* ---- sorting ---- */

const char *const top_key_names[TOP_KEYS] = {
	[TOP_BY_PID] = "pid", [TOP_BY_PEER] = "peer", [TOP_BY_OPS] = "ops", [TOP_BY_BYTES] = "bytes",
	[TOP_BY_QUEUE] = "queue", [TOP_BY_KEPT] = "kept", [TOP_BY_ERRORS] = "errors", [TOP_BY_WAITS] = "waits",
};

const char *const top_view_names[TOP_VIEWS] = {
	[TOP_PROCESSES] = "processes", [TOP_ENDPOINTS] = "endpoints", [TOP_PEERS] = "peers", [TOP_SUM] = "sum",
};

/* How much of it a row has. */
static double amount(const struct top_row *row, enum top_key key)
{
	switch (key) {
	case TOP_BY_OPS:
		return row->out.ops_s + row->in.ops_s;
	case TOP_BY_BYTES:
		return row->out.bytes_s + row->in.bytes_s;
	case TOP_BY_QUEUE:
		return (double) row->queued;
	case TOP_BY_KEPT:
		return (double) row->kept;
	case TOP_BY_ERRORS:
		return (double) row->errors;
	case TOP_BY_WAITS:
		return row->waits == FI_STATS_NONE ? -1 : row->waits_s;
	default:
		return 0;
	}
}

struct order {
	enum top_key key;
	bool reverse;
};

static int row_compare(const void *left, const void *right, void *context)
{
	const struct top_row *a = left, *b = right;
	const struct order *order = context;
	double of_a = amount(a, order->key), of_b = amount(b, order->key);
	int way = order->reverse ? -1 : 1;

	if (of_a != of_b)
		return of_a > of_b ? -way : way;
	if (order->key == TOP_BY_PEER && strcmp(a->addr, b->addr))
		return strcmp(a->addr, b->addr) * way;
	if (order->key != TOP_BY_PID)
		way = 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -way : way;
	if (a->ep != b->ep)
		return a->ep < b->ep ? -way : way;
	return strcmp(a->addr, b->addr) * way;
}

void top_sort(struct top *top, enum top_key key, bool reverse)
{
	struct order order = { key, reverse };

	if (top->cnt)
		qsort_r(top->row, top->cnt, sizeof(*top->row), row_compare, &order);
}

/* ---- text ---- */

const char *top_number(char *buf, size_t len, double value)
{
	static const char units[] = " kMGTPE";
	const char *unit = units;

	if (value < 9999.5) {
		snprintf(buf, len, "%.0f", value);
		return buf;
	}
	while (value >= 999.5 && unit[1]) {
		value /= 1000;
		unit++;
	}
	if (value >= 999.5)
		snprintf(buf, len, "huge");
	else
		snprintf(buf, len, "%.*f%c", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, *unit);
	return buf;
}

const char *top_duration(char *buf, size_t len, double seconds)
{
	if (seconds < 9.95)
		snprintf(buf, len, "%.1fs", seconds);
	else if (seconds < 119.5)
		snprintf(buf, len, "%.0fs", seconds);
	else if (seconds < 7200)
		snprintf(buf, len, "%.0fm", seconds / 60);
	else if (seconds < 48 * 3600)
		snprintf(buf, len, "%.0fh", seconds / 3600);
	else if (seconds < 9999 * 86400.0)
		snprintf(buf, len, "%.0fd", seconds / 86400);
	else
		snprintf(buf, len, "ages");
	return buf;
}

/* The text of a cell. */
typedef void (*cell_fn)(char *buf, size_t len, const struct top_row *row, bool exact);

static void put_count(char *buf, size_t len, uint64_t value, bool exact)
{
	if (exact)
		snprintf(buf, len, "%" PRIu64, value);
	else
		top_number(buf, len, (double) value);
}

static void put_rate(char *buf, size_t len, const struct top_row *row, double value, bool exact)
{
	if (!row->has_rates)
		snprintf(buf, len, "-");
	else if (exact)
		snprintf(buf, len, "%.0f", value);
	else
		top_number(buf, len, value);
}

#define COUNT_CELL(name, member)								\
	static void name(char *buf, size_t len, const struct top_row *row, bool exact)		\
	{											\
		put_count(buf, len, row->member, exact);					\
	}
#define RATE_CELL(name, member)									\
	static void name(char *buf, size_t len, const struct top_row *row, bool exact)		\
	{											\
		put_rate(buf, len, row, row->member, exact);					\
	}
#define TEXT_CELL(name, ...)									\
	static void name(char *buf, size_t len, const struct top_row *row, bool exact)		\
	{											\
		(void) exact;									\
		snprintf(buf, len, __VA_ARGS__);						\
	}

COUNT_CELL(cell_procs, procs)
COUNT_CELL(cell_eps, eps)
COUNT_CELL(cell_peers, peers)
COUNT_CELL(cell_out_ops, out.ops)
COUNT_CELL(cell_out_bytes, out.bytes)
COUNT_CELL(cell_in_ops, in.ops)
COUNT_CELL(cell_in_bytes, in.bytes)
COUNT_CELL(cell_queued, queued)
COUNT_CELL(cell_kept, kept)
COUNT_CELL(cell_posted, posted)
COUNT_CELL(cell_errors, errors)
RATE_CELL(cell_out_ops_s, out.ops_s)
RATE_CELL(cell_out_bytes_s, out.bytes_s)
RATE_CELL(cell_in_ops_s, in.ops_s)
RATE_CELL(cell_in_bytes_s, in.bytes_s)
TEXT_CELL(cell_pid, "%d", (int) row->pid)
TEXT_CELL(cell_rank, "%s", row->rank[0] ? row->rank : "-")
TEXT_CELL(cell_state, "%c", row->state)
TEXT_CELL(cell_ep, "%s/%" PRIu32, row->prov, row->ep)
TEXT_CELL(cell_addr, "%s", row->addr[0] ? row->addr : "-")
TEXT_CELL(cell_link, "%s", row->link)
TEXT_CELL(cell_command, "%s", row->command)

static void cell_progress(char *buf, size_t len, const struct top_row *row, bool exact)
{
	if (row->progress_s < 0)
		snprintf(buf, len, "-");
	else if (exact)
		snprintf(buf, len, "%.1f", row->progress_s);
	else
		top_duration(buf, len, row->progress_s);
}

static void cell_waits(char *buf, size_t len, const struct top_row *row, bool exact)
{
	char age[24];

	if (row->waits == FI_STATS_NONE)
		snprintf(buf, len, "-");
	else if (exact)
		snprintf(buf, len, "%s:%.1f", waits[row->waits], row->waits_s);
	else
		snprintf(buf, len, "%s %s", waits[row->waits], top_duration(age, sizeof(age), row->waits_s));
}

enum { P = 1 << TOP_PROCESSES, E = 1 << TOP_ENDPOINTS, R = 1 << TOP_PEERS, S = 1 << TOP_SUM };

struct column {
	const char *title;
	cell_fn cell;
	unsigned views;
	bool left;			/* text that begins at the left */
	bool exact;			/* only in exact layouts */
	int width;			/* at least */
};

static const struct column columns[] = {
	{ "PID", cell_pid, P | E | R, false, false, 5 },
	{ "RANK", cell_rank, P | E | R, false, false, 4 },
	{ "PROCS", cell_procs, S, false, false, 5 },
	{ "S", cell_state, P, false, false, 1 },
	{ "EP", cell_ep, E | R, true, false, 5 },
	{ "PEER", cell_addr, R, true, false, 6 },
	{ "LINK", cell_link, R, true, false, 4 },
	{ "ADDRESS", cell_addr, E, true, false, 7 },
	{ "EPS", cell_eps, P | S, false, false, 3 },
	{ "PEERS", cell_peers, P | E | S, false, false, 5 },
	{ "OUT/s", cell_out_ops_s, P | E | R | S, false, false, 5 },
	{ "OUTB/s", cell_out_bytes_s, P | E | R | S, false, false, 6 },
	{ "IN/s", cell_in_ops_s, P | E | R | S, false, false, 5 },
	{ "INB/s", cell_in_bytes_s, P | E | R | S, false, false, 5 },
	{ "OUT", cell_out_ops, P | E | R, false, true, 5 },
	{ "OUTB", cell_out_bytes, P | E | R, false, true, 5 },
	{ "IN", cell_in_ops, P | E | R, false, true, 5 },
	{ "INB", cell_in_bytes, P | E | R, false, true, 5 },
	{ "QUEUE", cell_queued, P | E | R | S, false, false, 5 },
	{ "KEPT", cell_kept, P | E | R | S, false, false, 4 },
	{ "POSTED", cell_posted, P | E, false, false, 6 },
	{ "ERR", cell_errors, P | E | R | S, false, false, 3 },
	{ "LAST", cell_progress, P | E, false, false, 4 },
	{ "WAITS", cell_waits, P | E | R, true, false, 5 },
	{ "COMMAND", cell_command, P, true, false, 7 },
};

_Static_assert(sizeof(columns) / sizeof(*columns) == TOP_COLUMNS, "a layout has the width of each column");

static bool has_column(const struct top_layout *layout, const struct column *column)
{
	return column->views & 1U << layout->view && (layout->exact || !column->exact) &&
	       (layout->ranks || column->cell != cell_rank);
}

enum { CELL_LEN = 160 };

static void widen(struct top_layout *layout, const struct top_row *row)
{
	char cell[CELL_LEN];

	for (size_t i = 0; i < TOP_COLUMNS; i++) {
		if (!has_column(layout, &columns[i]))
			continue;
		columns[i].cell(cell, sizeof(cell), row, layout->exact);
		if ((int) strlen(cell) > layout->width[i])
			layout->width[i] = (int) strlen(cell);
	}
}

void top_layout(struct top_layout *layout, const struct top *top, enum top_view view, bool exact)
{
	*layout = (struct top_layout) { .view = view, .exact = exact };
	for (size_t i = 0; i < TOP_COLUMNS; i++)
		layout->width[i] = columns[i].width;
	for (size_t i = 0; i < top->cnt; i++)
		layout->ranks |= top->row[i].rank[0] != 0;
	if (view == TOP_SUM)
		widen(layout, &top->sum);
	for (size_t i = 0; view != TOP_SUM && i < top->cnt; i++)
		widen(layout, &top->row[i]);
}

size_t top_line(char *buf, size_t len, const struct top_layout *layout, const struct top_row *row)
{
	char cell[CELL_LEN];
	size_t used = 0, last = 0;

	for (size_t i = 0; i < TOP_COLUMNS; i++)
		last = has_column(layout, &columns[i]) ? i : last;
	for (size_t i = 0; i <= last; i++) {
		int width = !columns[i].left ? layout->width[i] : i < last ? -layout->width[i] : 0;

		if (!has_column(layout, &columns[i]))
			continue;
		if (row)
			columns[i].cell(cell, sizeof(cell), row, layout->exact);
		else
			snprintf(cell, sizeof(cell), "%s", columns[i].title);
		used += (size_t) snprintf(used < len ? buf + used : NULL, used < len ? len - used : 0, "%s%*s",
					  used ? " " : "", width, cell);
	}
	return used;
}
