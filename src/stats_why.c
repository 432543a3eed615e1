/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See stats_why.h. Each pending operation of a page becomes a `wait`: who waits, for whom, and why. The other end is
 * the page that has the incarnation of the peer, or its address. What has to be done follows from the state of the
 * operation and from what the other process does: it is gone, stopped, calls no progress, or works.
 */
#include "stats_why.h"

#include "base/bits.h"
#include "base/strbuf.h"
#include "stats_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SILENT_NS	1000000000ULL	/* a process that has called no progress for so long is said to call none */
#define NOBODY		SIZE_MAX

/* What a process does. */
enum doing {
	WORKS,
	SLEEPS,				/* in a call of the library, until something happens */
	SILENT,				/* calls no progress */
	STOPPED,
	ENDED,
	UNKNOWN,			/* there is no page of it */
};

struct why {
	struct fab_view *view;		/* owned: cnt of them */
	size_t cnt;
	uint64_t after_ns;
	enum fi_stats_form form;
	struct fab_strbuf sb;
	struct fi_stats_verdict verdict;
	uint8_t *edge;			/* owned: cnt * cnt; the one waits for the other */
	bool first;			/* nothing was written yet */
	uint64_t since, next_ns;	/* fab_stats_waiting() */
};

/* One operation that waits. */
struct wait {
	size_t who;			/* index of the page */
	const struct fi_stats_ep *ep;
	const struct fi_stats_peer *peer;	/* or NULL: anybody */
	const struct fi_stats_pending *what;
	uint64_t age_ns;
	size_t whom;			/* index of the page of the other process, or NOBODY */
	struct fi_stats_ep other;	/* its endpoint, if whom is not NOBODY */
	enum doing doing;		/* of the other process */
	uint64_t quiet_ns;		/* SILENT: for so long */
	bool deferred;			/* deferred work, which is no operation of an endpoint yet */
};

/* ---- names ---- */

static void put_seconds(struct fab_strbuf *sb, uint64_t ns)
{
	if (ns < 10000000000)
		fab_strbuf_printf(sb, "%.1f s", (double) ns / 1e9);
	else
		fab_strbuf_printf(sb, "%" PRIu64 " s", ns / 1000000000);
}

static void put_process(struct fab_strbuf *sb, const struct fab_view *view)
{
	if (*view->header.rank)
		fab_strbuf_printf(sb, "rank %s (pid %" PRIu32 ")", view->header.rank, view->header.pid);
	else
		fab_strbuf_printf(sb, "pid %" PRIu32, view->header.pid);
}

/* An address without the name of its format. */
static const char *plain(const char *addr)
{
	const char *end = strstr(addr, "://");

	return end ? end + 3 : addr;
}

/* The other end: its process, as far as that is known, and its address. */
static void put_peer(const struct why *why, struct fab_strbuf *sb, const struct wait *wait)
{
	const struct fi_stats_peer *peer = wait->peer;

	if (wait->whom != NOBODY) {
		put_process(sb, &why->view[wait->whom]);
		fab_strbuf_printf(sb, " (%s%s%s)", why->view[wait->whom].header.host, peer && *peer->addr ? ", " : "",
				  peer ? plain(peer->addr) : "");
	} else if (peer && peer->pid) {
		fab_strbuf_printf(sb, "pid %" PRIu32 " at %s", peer->pid,
				  *peer->addr ? plain(peer->addr) : "an unknown address");
	} else if (peer && *peer->addr) {
		fab_strbuf_puts(sb, plain(peer->addr));
	} else {
		fab_strbuf_puts(sb, "its peer");
	}
}

static const char *const op_names[FI_STATS_OPS] = {
	[FI_STATS_SEND] = "message", [FI_STATS_TSEND] = "tagged message",
	[FI_STATS_COLL_SEND] = "message of a collective",
	[FI_STATS_WRITE] = "write", [FI_STATS_ATOMIC] = "atomic", [FI_STATS_READ] = "read",
	[FI_STATS_FETCH_ATOMIC] = "fetching atomic", [FI_STATS_COLLECTIVE] = "collective",
	[FI_STATS_RECV] = "message", [FI_STATS_TRECV] = "tagged message",
	[FI_STATS_COLL_RECV] = "message of a collective", [FI_STATS_REMOTE_WRITE] = "write",
	[FI_STATS_REMOTE_READ] = "read", [FI_STATS_REMOTE_ATOMIC] = "atomic",
	[FI_STATS_REMOTE_FETCH_ATOMIC] = "fetching atomic",
};

static const char *const state_names[FI_STATS_STATES] = {
	[FI_STATS_RESOLVING] = "resolving", [FI_STATS_CONNECTING] = "connecting", [FI_STATS_ACCEPTING] = "accepting",
	[FI_STATS_AWAITED] = "awaited", [FI_STATS_PARKED] = "parked", [FI_STATS_CREDIT] = "credit",
	[FI_STATS_ANNOUNCED] = "announced", [FI_STATS_FULL] = "full", [FI_STATS_QUEUED] = "queued",
	[FI_STATS_SENT] = "sent", [FI_STATS_ANSWER] = "answer", [FI_STATS_DELIVERY] = "delivery",
	[FI_STATS_FENCE] = "fence", [FI_STATS_POSTED] = "posted", [FI_STATS_ARRIVING] = "arriving",
	[FI_STATS_KEPT] = "kept", [FI_STATS_KEPT_ANNOUNCED] = "kept_announced", [FI_STATS_MEMBERS] = "members",
	[FI_STATS_THRESHOLD] = "threshold", [FI_STATS_REQUESTED] = "requested",
};

static void put_tag(struct fab_strbuf *sb, const struct fi_stats_pending *what)
{
	if (!(what->flags & FI_STATS_TAGGED))
		return;
	if (what->ignore == UINT64_MAX)
		fab_strbuf_puts(sb, " with any tag");
	else if (what->ignore)
		fab_strbuf_printf(sb, " with tag 0x%" PRIx64 " (ignoring 0x%" PRIx64 ")", what->tag, what->ignore);
	else if (what->tag < 10000000)
		fab_strbuf_printf(sb, " with tag %" PRIu64, what->tag);
	else
		fab_strbuf_printf(sb, " with tag 0x%" PRIx64, what->tag);
}

/* ---- what processes do ---- */

/* What the process of an endpoint does, and for how long it has been silent. */
static enum doing doing_of(const struct fab_view *view, const struct fi_stats_ep *ep, uint64_t *quiet_ns)
{
	struct fi_stats_engine engine;
	char state = view->source->proc_state;

	*quiet_ns = 0;
	if (!state || state == 'Z' || state == 'X')
		return ENDED;
	if (state == 'T' || state == 't')
		return STOPPED;
	if (!fab_view_engine(view, ep->engine, &engine) || engine.automatic)
		return WORKS;
	if (engine.last_sleep >= engine.last_pass)
		return SLEEPS;
	*quiet_ns = fab_view_age(view, engine.last_pass);
	return *quiet_ns >= SILENT_NS ? SILENT : WORKS;
}

typedef bool match_fn(const struct fab_view *view, const struct fi_stats_ep *ep, const struct fi_stats_peer *peer);

/* The endpoint of this incarnation; without one, the one whose connection has the same two ends. */
static bool is_connected(const struct fab_view *view, const struct fi_stats_ep *ep, const struct fi_stats_peer *peer)
{
	struct fi_stats_peer theirs;

	if (peer->incarnation)
		return ep->incarnation == peer->incarnation;
	for (uint32_t i = 0; *peer->local && *peer->addr && i < fab_view_cnt(view, FI_STATS_PEERS); i++) {
		if (fab_view_peer(view, i, &theirs) && theirs.ep == ep->rest.ep && !strcmp(theirs.local, peer->addr) &&
		    !strcmp(theirs.addr, peer->local))
			return true;
	}
	return false;
}

/* The endpoint that can be found at the address. A listener is not the end of a connection. */
static bool is_addressed(const struct fab_view *view, const struct fi_stats_ep *ep, const struct fi_stats_peer *peer)
{
	(void) view;
	return !peer->incarnation && *peer->addr && !strcmp(ep->addr, peer->addr) &&
	       (ep->fclass != FI_CLASS_PEP || peer->conn != FI_STATS_CONN_UP);
}

static bool find_end(const struct why *why, struct wait *wait, match_fn *match)
{
	for (size_t i = 0; i < why->cnt; i++) {
		for (uint32_t j = 0; j < fab_view_cnt(&why->view[i], FI_STATS_EPS); j++) {
			if (!fab_view_ep(&why->view[i], j, &wait->other) ||
			    !match(&why->view[i], &wait->other, wait->peer))
				continue;
			wait->whom = i;
			wait->doing = doing_of(&why->view[i], &wait->other, &wait->quiet_ns);
			return true;
		}
	}
	return false;
}

/* The endpoint at the other end of a connection, in another page or in the same. */
static void find_other(const struct why *why, struct wait *wait)
{
	wait->whom = NOBODY;
	wait->doing = UNKNOWN;
	wait->quiet_ns = 0;
	if (wait->peer && !find_end(why, wait, is_connected))
		find_end(why, wait, is_addressed);
}

/* ---- sentences ---- */

/* True for a message that the device of the other end repeats until there is a receive for it. */
static bool needs_receive(const struct wait *wait)
{
	return wait->what->state == FI_STATS_SENT && wait->what->op <= FI_STATS_COLL_SEND && wait->peer &&
	       wait->peer->carrier == FI_STATS_CARRIER_RDMA;
}

/* True for an access that the device of the other end carries out, whatever its program does. */
static bool needs_device(const struct wait *wait)
{
	return wait->peer && wait->peer->carrier == FI_STATS_CARRIER_RDMA && wait->what->op >= FI_STATS_WRITE &&
	       (wait->what->state == FI_STATS_SENT || wait->what->state == FI_STATS_ANSWER);
}

/* What the state of the operation asks of the other process: "post a receive with tag 7". */
static void put_demand(struct fab_strbuf *sb, const struct wait *wait)
{
	const struct fi_stats_pending *what = wait->what;
	const char *name = op_names[what->op];

	switch (what->state) {
	case FI_STATS_ANNOUNCED:
	case FI_STATS_CREDIT:
		fab_strbuf_puts(sb, "to post a receive");
		put_tag(sb, what);
		fab_strbuf_printf(sb, " (%s of %" PRIu64 " bytes, %s)", name, what->len,
				  what->state == FI_STATS_CREDIT ? "held back for lack of credit" : "announced");
		break;
	case FI_STATS_RESOLVING:
		fab_strbuf_puts(sb, "to be found: its address is being resolved");
		break;
	case FI_STATS_CONNECTING:
		fab_strbuf_puts(sb, "to accept the connection");
		break;
	case FI_STATS_ACCEPTING:
		fab_strbuf_puts(sb, "to answer the connection request");
		break;
	case FI_STATS_AWAITED:
		fab_strbuf_puts(sb, "to connect to this process (FI_FIREWALL_ADDR)");
		break;
	case FI_STATS_PARKED:
		fab_strbuf_puts(sb, "to reopen the parked connection");
		break;
	case FI_STATS_FULL:
		fab_strbuf_puts(sb, "to read: the connection is full");
		break;
	case FI_STATS_SENT:
		if (needs_receive(wait))
			fab_strbuf_printf(sb, "to take a %s of %" PRIu64 " bytes", name, what->len);
		else
			fab_strbuf_printf(sb, "to confirm a %s", name);
		break;
	case FI_STATS_ANSWER:
		fab_strbuf_printf(sb, "to answer a %s of %" PRIu64 " bytes", name, what->len);
		break;
	case FI_STATS_DELIVERY:
		fab_strbuf_printf(sb, "to confirm the delivery of a %s", name);
		put_tag(sb, what);
		break;
	case FI_STATS_POSTED:
		fab_strbuf_puts(sb, "to send a ");
		fab_strbuf_puts(sb, what->flags & FI_STATS_TAGGED ? "tagged message" : "message");
		put_tag(sb, what);
		break;
	case FI_STATS_ARRIVING:
		fab_strbuf_printf(sb, "to send the rest of a %s of %" PRIu64 " bytes", name, what->len);
		put_tag(sb, what);
		break;
	case FI_STATS_MEMBERS:
		fab_strbuf_puts(sb, "to take part in a collective");
		break;
	default:
		fab_strbuf_printf(sb, "to complete a %s", name);
		break;
	}
}

/* What the program of the other process has to do, if it works. */
static const char *task_of(const struct wait *wait)
{
	switch (wait->what->state) {
	case FI_STATS_ANNOUNCED:
	case FI_STATS_CREDIT:
		return wait->what->flags & FI_STATS_TAGGED ? "it has to call fi_trecv() for this message" :
							      "it has to call fi_recv()";
	case FI_STATS_CONNECTING:
	case FI_STATS_ACCEPTING:
		return wait->other.fclass == FI_CLASS_PEP ? "it has to call fi_accept() or fi_reject()" :
							     "it has to call fi_cq_read()";
	case FI_STATS_SENT:
		return needs_receive(wait) ? "it has to call fi_recv()" : "it has to call fi_cq_read()";
	case FI_STATS_POSTED:
		return wait->what->flags & FI_STATS_TAGGED ? "it has to call fi_tsend()" : "it has to call fi_send()";
	case FI_STATS_MEMBERS:
		return "it has to call the same collective";
	default:
		return "it has to call fi_cq_read()";
	}
}

#define DEVICE_TASK	"its device or the network does not answer: check the port and the cable (ibv_devinfo)"

/* Who has to act, and what to do. */
static void put_advice(const struct why *why, struct fab_strbuf *sb, const struct wait *wait)
{
	const struct fab_view *other = wait->whom != NOBODY ? &why->view[wait->whom] : NULL;
	const struct fi_stats_pending *theirs = &wait->other.pending[FI_STATS_EP_TRECV];

	switch (wait->doing) {
	case ENDED:
		put_process(sb, other);
		fab_strbuf_puts(sb, " has ended: find out why, this operation will fail");
		break;
	case STOPPED:
		put_process(sb, other);
		fab_strbuf_printf(sb, " is stopped, by a signal or a debugger: kill -CONT %" PRIu32, other->header.pid);
		break;
	case SILENT:
		put_process(sb, other);
		fab_strbuf_puts(sb, " has called no progress for ");
		put_seconds(sb, wait->quiet_ns);
		fab_strbuf_printf(sb, ": %s", needs_receive(wait) ? "it has to call fi_recv()" :
				  needs_device(wait) ? DEVICE_TASK :
				  wait->other.fclass == FI_CLASS_PEP ? "it has to call fi_eq_read()" :
				  "it has to call fi_cq_read()");
		break;
	case WORKS:
	case SLEEPS:
		put_process(sb, other);
		fab_strbuf_puts(sb, wait->doing == SLEEPS ? " sleeps until something happens" : " makes progress");
		if (wait->what->state == FI_STATS_ANNOUNCED && (wait->what->flags & FI_STATS_TAGGED) &&
		    fab_view_pending(theirs)) {
			fab_strbuf_puts(sb, ", and its oldest receive is for a message");
			put_tag(sb, theirs);
		}
		fab_strbuf_printf(sb, ": %s", needs_device(wait) ? DEVICE_TASK : task_of(wait));
		break;
	default:
		if (wait->what->state == FI_STATS_CONNECTING || wait->what->state == FI_STATS_AWAITED)
			fab_strbuf_puts(sb, "check that its process runs, and that no firewall is between");
		else
			fab_strbuf_puts(sb, "run fi_why --all on its host");
	}
}

/* True for an operation on datagrams, for which the peer need not do anything. */
static bool is_datagram(const struct wait *wait)
{
	return wait->ep && wait->ep->type == FI_EP_DGRAM;
}

/* The sentence about an operation, up to the advice. */
static void put_fact(const struct why *why, struct fab_strbuf *sb, const struct wait *wait)
{
	const struct fi_stats_pending *what = wait->what;

	put_process(sb, &why->view[wait->who]);
	switch (what->state) {
	case FI_STATS_QUEUED:
		fab_strbuf_printf(sb, " has not sent a %s to ", op_names[what->op]);
		put_peer(why, sb, wait);
		break;
	case FI_STATS_FENCE:
		fab_strbuf_printf(sb, " holds a %s to ", op_names[what->op]);
		put_peer(why, sb, wait);
		fab_strbuf_puts(sb, " behind earlier operations (FI_FENCE, or an order that was asked for)");
		break;
	case FI_STATS_KEPT:
	case FI_STATS_KEPT_ANNOUNCED:
		fab_strbuf_printf(sb, " has a message%s of %" PRIu64 " bytes from ",
				  what->state == FI_STATS_KEPT ? "" : " announced", what->len);
		put_peer(why, sb, wait);
		put_tag(sb, what);
		fab_strbuf_puts(sb, " and no receive for it");
		break;
	case FI_STATS_THRESHOLD:
		fab_strbuf_printf(sb, " %s for a counter to reach %" PRIu64 "; it is at %" PRIu64,
				  wait->deferred ? "has deferred work that waits" : "waits", what->len, what->cnt);
		break;
	case FI_STATS_REQUESTED:
		fab_strbuf_puts(sb, " has a connection request from ");
		put_peer(why, sb, wait);
		fab_strbuf_puts(sb, " that its program has not answered");
		break;
	default:
		if (is_datagram(wait) && what->state == FI_STATS_FULL) {
			fab_strbuf_printf(sb, " cannot send a %s to ", op_names[what->op]);
			put_peer(why, sb, wait);
			fab_strbuf_puts(sb, ", since the socket is full");
			break;
		}
		fab_strbuf_puts(sb, " waits for ");
		if (wait->peer)
			put_peer(why, sb, wait);
		else
			fab_strbuf_puts(sb, "anybody");
		fab_strbuf_putc(sb, ' ');
		put_demand(sb, wait);
	}
	fab_strbuf_puts(sb, ", since ");
	put_seconds(sb, wait->age_ns);
	if (what->cnt > 1 && what->state != FI_STATS_THRESHOLD)
		fab_strbuf_printf(sb, " (the oldest of %" PRIu64 ")", what->cnt);
}

/* What this process itself has to do about it. NULL: others have to act. */
static const char *own_task(const struct wait *wait)
{
	switch (wait->what->state) {
	case FI_STATS_REQUESTED:
		return "this process has to call fi_eq_read(), and then fi_accept() or fi_reject()";
	case FI_STATS_FULL:
		return is_datagram(wait) ? "it leaves when the socket has room again" : NULL;
	case FI_STATS_QUEUED:
		return "it leaves with the next progress call: this process has to call fi_cq_read()";
	case FI_STATS_FENCE:
		return "it starts when those have completed";
	case FI_STATS_KEPT:
	case FI_STATS_KEPT_ANNOUNCED:
		return wait->what->flags & FI_STATS_TAGGED ? "this process has to call fi_trecv() for it" :
							      "this process has to call fi_recv()";
	case FI_STATS_THRESHOLD:
		return "operations that count there have not completed: see the others, or compare the threshold with "
		       "what is bound to the counter";
	default:
		return NULL;
	}
}

/* ---- JSON ---- */

static void put_json_text(struct fab_strbuf *sb, const char *text)
{
	fab_strbuf_putc(sb, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fab_strbuf_putc(sb, '\\');
		fab_strbuf_putc(sb, (unsigned char) *text < ' ' ? ' ' : *text);
	}
	fab_strbuf_putc(sb, '"');
}

static void put_json(struct why *why, const struct wait *wait, const char *sentence, bool stuck)
{
	static const char *const doing[] = { "works", "sleeps", "silent", "stopped", "ended", "unknown" };
	struct fab_strbuf *sb = &why->sb;

	fab_strbuf_printf(sb, "%s\n  {\"pid\": %" PRIu32 ", \"seconds\": %.3f, \"state\": \"%s\", \"stuck\": %s, ",
			  why->first ? "" : ",", why->view[wait->who].header.pid, (double) wait->age_ns / 1e9,
			  state_names[wait->what->state], stuck ? "true" : "false");
	fab_strbuf_printf(sb, "\"operation\": \"%s\", \"count\": %" PRIu64 ", \"bytes\": %" PRIu64 ", ",
			  op_names[wait->what->op], wait->what->cnt, wait->what->len);
	if (wait->what->flags & FI_STATS_TAGGED)
		fab_strbuf_printf(sb, "\"tag\": %" PRIu64 ", \"ignore\": %" PRIu64 ", ", wait->what->tag,
				  wait->what->ignore);
	if (wait->whom != NOBODY)
		fab_strbuf_printf(sb, "\"peer_pid\": %" PRIu32 ", ", why->view[wait->whom].header.pid);
	if (wait->peer) {
		fab_strbuf_puts(sb, "\"peer_address\": ");
		put_json_text(sb, wait->peer->addr);
		fab_strbuf_puts(sb, ", ");
	}
	fab_strbuf_printf(sb, "\"peer\": \"%s\", \"text\": ", wait->peer ? doing[wait->doing] : "anybody");
	put_json_text(sb, sentence);
	fab_strbuf_putc(sb, '}');
}

/* ---- one operation ---- */

/* True if somebody should worry about an operation that has waited for long enough. A receive may wait for any time for
 * somebody to send: that is how servers idle. */
static bool worries(const struct why *why, const struct wait *wait)
{
	if (wait->age_ns < why->after_ns)
		return false;
	if (wait->what->state == FI_STATS_POSTED)
		return wait->peer && (wait->doing == ENDED || wait->doing == STOPPED ||
				      (wait->doing == SILENT && wait->quiet_ns >= why->after_ns));
	return wait->what->state != FI_STATS_KEPT;
}

static void tell(struct why *why, const struct wait *wait)
{
	bool stuck = worries(why, wait);
	char text[1024];
	struct fab_strbuf sb;

	why->verdict.pending++;
	why->verdict.stuck += stuck;
	fab_strbuf_init(&sb, text, sizeof(text));
	put_fact(why, &sb, wait);
	fab_strbuf_puts(&sb, ": ");
	if (own_task(wait))
		fab_strbuf_puts(&sb, own_task(wait));
	else if (wait->peer)
		put_advice(why, &sb, wait);
	else
		fab_strbuf_puts(&sb, "a receive from any source waits for any time");
	if (why->form == FI_STATS_FORM_JSON)
		put_json(why, wait, text, stuck);
	else
		fab_strbuf_printf(&why->sb, "%s%s\n", text, stuck ? "" : "  [no reason for worry yet]");
	why->first = false;
}

/* An edge of the graph: who waits for whom. */
static void note_edge(struct why *why, const struct wait *wait)
{
	bool own = own_task(wait) && wait->what->state != FI_STATS_FENCE;

	if (wait->whom != NOBODY && wait->whom != wait->who && !own && wait->age_ns >= why->after_ns)
		why->edge[wait->who * why->cnt + wait->whom] = 1;
}

typedef void wait_fn(struct why *why, const struct wait *wait);

static void visit_wait(struct why *why, struct wait *wait, wait_fn *fn)
{
	if (!fab_view_pending(wait->what))
		return;
	wait->age_ns = fab_view_age(&why->view[wait->who], wait->what->since);
	find_other(why, wait);
	fn(why, wait);
}

static void visit_one(struct why *why, size_t who, const struct fi_stats_ep *ep, const struct fi_stats_peer *peer,
		      const struct fi_stats_pending *what, wait_fn *fn)
{
	struct wait wait = { .who = who, .ep = ep, .peer = peer, .what = what };

	visit_wait(why, &wait, fn);
}

/* The peer of a receive: the one that it names, or the only one of a connected endpoint. */
static const struct fi_stats_peer *source_of(const struct fab_view *view, const struct fi_stats_pending *what,
					     struct fi_stats_peer *peer)
{
	return (what->flags & FI_STATS_PEER) && fab_view_peer(view, what->peer, peer) ? peer : NULL;
}

/* Visit what is pending for a peer, and has not completed since the page was last surveyed. */
static void visit_peer(struct why *why, size_t who, const struct fi_stats_ep *ep, const struct fi_stats_peer *peer,
		       wait_fn *fn)
{
	for (int kind = 0; kind < FI_STATS_PEER_KINDS; kind++) {
		const struct fi_stats_pending *what = &peer->pending[kind];

		if (!(what->flags & FI_STATS_IN_ORDER) || peer->dequeued < what->number)
			visit_one(why, who, ep, peer, what, fn);
	}
}

static void visit_ep(struct why *why, size_t who, uint32_t index, const struct fi_stats_ep *ep, wait_fn *fn)
{
	const struct fab_view *view = &why->view[who];
	struct fi_stats_peer peer;

	for (uint32_t i = 0; i < fab_view_cnt(view, FI_STATS_PEERS); i++) {
		if (!fab_view_peer(view, i, &peer) || peer.ep != index || peer.used != FI_STATS_LIVE)
			continue;
		visit_peer(why, who, ep, &peer, fn);
	}
	visit_peer(why, who, ep, &ep->rest, fn);
	for (int kind = 0; kind < FI_STATS_EP_KINDS; kind++)
		visit_one(why, who, ep, kind == FI_STATS_EP_ACCEPT ? &ep->rest :
			  source_of(view, &ep->pending[kind], &peer), &ep->pending[kind], fn);
}

static void visit(struct why *why, size_t who, wait_fn *fn)
{
	const struct fab_view *view = &why->view[who];
	struct fi_stats_wait record;
	struct fi_stats_ep ep;

	for (uint32_t i = 0; i < fab_view_cnt(view, FI_STATS_EPS); i++)
		if (fab_view_ep(view, i, &ep))
			visit_ep(why, who, i, &ep, fn);
	for (uint32_t i = 0; i < fab_view_cnt(view, FI_STATS_WAITS); i++)
		if (fab_view_wait(view, i, &record))
			visit_wait(why, &(struct wait) { .who = who, .what = &record.pending,
				   .deferred = record.deferred }, fn);
}

/* ---- the process itself ---- */

/* The operations of a page that have not completed, as the counters have it; messages that wait for this process. */
static uint64_t owed(const struct fab_view *view, const struct fi_stats_ep *ep, uint32_t index)
{
	uint64_t cnt = ep->rest.queued - ep->rest.dequeued;
	struct fi_stats_peer peer;

	for (uint32_t i = 0; i < fab_view_cnt(view, FI_STATS_PEERS); i++)
		if (fab_view_peer(view, i, &peer) && peer.ep == index && peer.used == FI_STATS_LIVE)
			cnt += peer.queued - peer.dequeued;
	return cnt;
}

/* A process that calls no progress while operations of its own are pending. */
static void tell_silence(struct why *why, size_t who)
{
	const struct fab_view *view = &why->view[who];
	struct fi_stats_ep ep;
	uint64_t quiet, cnt;

	for (uint32_t i = 0; i < fab_view_cnt(view, FI_STATS_EPS); i++) {
		if (!fab_view_ep(view, i, &ep) || doing_of(view, &ep, &quiet) != SILENT || quiet < why->after_ns)
			continue;
		cnt = owed(view, &ep, i);
		if (!cnt || cnt > INT64_MAX)
			continue;
		why->verdict.stuck++;
		if (why->form == FI_STATS_FORM_JSON)
			continue;
		put_process(&why->sb, view);
		fab_strbuf_puts(&why->sb, " has called no progress for ");
		put_seconds(&why->sb, quiet);
		fab_strbuf_printf(&why->sb, " while operations of its own wait (%" PRIu64
				  "): it has to call fi_cq_read()\n", cnt);
		why->first = false;
		return;
	}
}

/* What a process holds for its peers, or has refused them, if there is anything. */
static void tell_account(struct why *why, size_t who)
{
	const struct fab_view *view = &why->view[who];
	struct fi_stats_figure figure;
	bool any = false;

	for (uint32_t i = 0; why->form == FI_STATS_FORM_TEXT && i < fab_view_cnt(view, FI_STATS_FIGURES); i++) {
		if (!fab_view_figure(view, i, &figure) || !figure.value ||
		    !(strstr(figure.name, "_held_") || strstr(figure.name, "_refused_") ||
		      strstr(figure.name, "_not_read")))
			continue;
		if (!any)
			put_process(&why->sb, view);
		fab_strbuf_printf(&why->sb, "%s %s %" PRIu64, any ? "," : ", account:", figure.name, figure.value);
		any = true;
	}
	if (any)
		fab_strbuf_putc(&why->sb, '\n');
}

/* ---- cycles ---- */

/* Continue a path at its last process. True: it has come back to the first one, and is path[0..*len). */
static bool close_path(const struct why *why, size_t *path, size_t *len, uint8_t *seen)
{
	size_t last = path[*len - 1];

	for (size_t next = 0; next < why->cnt; next++) {
		if (!why->edge[last * why->cnt + next])
			continue;
		if (next == path[0])
			return true;
		if (seen[next])
			continue;
		seen[next] = 1;
		path[(*len)++] = next;
		if (close_path(why, path, len, seen))
			return true;
		(*len)--;
	}
	return false;
}

static void tell_cycle(struct why *why, const size_t *path, size_t len)
{
	struct fab_strbuf *sb = &why->sb;

	why->verdict.cycles++;
	if (why->form == FI_STATS_FORM_JSON) {
		fab_strbuf_printf(sb, "%s\n  {\"cycle\": [", why->first ? "" : ",");
		for (size_t i = 0; i < len; i++)
			fab_strbuf_printf(sb, "%s%" PRIu32, i ? ", " : "", why->view[path[i]].header.pid);
		fab_strbuf_puts(sb, "], \"stuck\": true}");
	} else {
		fab_strbuf_puts(sb, "CYCLE: ");
		for (size_t i = 0; i < len; i++) {
			put_process(sb, &why->view[path[i]]);
			fab_strbuf_puts(sb, i ? ", which waits for " : " waits for ");
		}
		put_process(sb, &why->view[path[0]]);
		fab_strbuf_puts(sb, ": none of them can go on\n");
	}
	why->first = false;
}

/* Find processes that wait for one another, one of the first `about` among them. Each process is in one cycle that is
 * told, at most. */
static void tell_cycles(struct why *why, size_t about)
{
	size_t *path = calloc(why->cnt, sizeof(*path));
	uint8_t *told = calloc(why->cnt, 1), *seen = calloc(why->cnt, 1);

	for (size_t i = 0; path && told && seen && i < about && i < why->cnt; i++) {
		size_t len = 1;

		if (told[i])
			continue;
		memcpy(seen, told, why->cnt);
		seen[i] = 1;
		path[0] = i;
		if (!close_path(why, path, &len, seen))
			continue;
		for (size_t j = 0; j < len; j++)
			told[path[j]] = 1;
		tell_cycle(why, path, len);
	}
	free(path);
	free(told);
	free(seen);
}

/* ---- all of it ---- */

/* Tell of those of the first `about` pages that cannot be read, once for each reason. */
static void tell_bad(struct why *why, size_t about)
{
	for (size_t i = 0; i < about && i < why->cnt; i++) {
		const char *wrong = why->view[i].wrong;
		size_t same = 0, before = 0;

		if (!wrong)
			continue;
		why->verdict.bad++;
		for (size_t j = 0; j < about && j < why->cnt; j++) {
			bool is_same = why->view[j].wrong && !strcmp(why->view[j].wrong, wrong);

			same += is_same;
			before += is_same && j < i;
		}
		if (why->form != FI_STATS_FORM_TEXT || before)
			continue;
		if (same == 1)
			fab_strbuf_printf(&why->sb, "a page cannot be read: %s\n", wrong);
		else
			fab_strbuf_printf(&why->sb, "%zu pages cannot be read: %s\n", same, wrong);
	}
}

size_t fab_stats_explain(const struct fi_stats_source *source, size_t cnt, size_t about, uint64_t after_ns,
			 enum fi_stats_form form, char *buf, size_t len, struct fi_stats_verdict *verdict)
{
	struct why why = { .cnt = cnt, .after_ns = after_ns, .form = form, .first = true };

	fab_strbuf_init(&why.sb, buf, len);
	why.view = calloc(cnt + 1, sizeof(*why.view));
	why.edge = calloc(cnt * cnt + 1, 1);
	if (why.view && why.edge) {
		for (size_t i = 0; i < cnt; i++)
			fab_view_open(&why.view[i], &source[i]);
		if (form == FI_STATS_FORM_JSON)
			fab_strbuf_putc(&why.sb, '[');
		for (size_t i = 0; i < cnt; i++)
			visit(&why, i, note_edge);
		tell_cycles(&why, about);
		tell_bad(&why, about);
		for (size_t i = 0; i < about && i < cnt; i++) {
			visit(&why, i, tell);
			tell_silence(&why, i);
			tell_account(&why, i);
		}
		if (form == FI_STATS_FORM_JSON)
			fab_strbuf_puts(&why.sb, why.first ? "]\n" : "\n]\n");
	}
	free(why.view);
	free(why.edge);
	if (verdict)
		*verdict = why.verdict;
	return why.sb.len;
}

static void note_age(struct why *why, const struct wait *wait)
{
	if (wait->what->state == FI_STATS_KEPT)
		return;
	if (wait->age_ns >= why->after_ns)
		why->since = fab_max(why->since, wait->what->since);
	else if (!why->next_ns || why->after_ns - wait->age_ns < why->next_ns)
		why->next_ns = why->after_ns - wait->age_ns;
}

uint64_t fab_stats_waiting(const struct fi_stats_source *source, uint64_t after_ns, uint64_t *next_ns)
{
	struct fab_view view;
	struct why why = { .view = &view, .cnt = 1, .after_ns = after_ns };

	fab_view_open(&view, source);
	visit(&why, 0, note_age);
	*next_ns = why.next_ns;
	return why.since;
}
