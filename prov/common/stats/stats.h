/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Writing to the page of this process (weft/stats.h, doc/decisions/stats.md): records of engines, endpoints and peers,
 * pending operations, events and errors. The page comes from the core. Without one, and where a table is full, records
 * are in memory that nobody else sees, so a record always exists.
 *
 * A record is written with the lock of its engine held. Records are found and given back with any lock held, or none.
 */
#ifndef FAB_STATS_H
#define FAB_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <weft/stats.h>
#include "common/op/op.h"

struct fi_provider;
struct sockaddr;

_Static_assert((int) FI_STATS_OPS == (int) FAB_OP_MAX && (int) FI_STATS_READ == (int) FAB_OP_READ &&
	       (int) FI_STATS_RECV == (int) FAB_OP_RECV &&
	       (int) FI_STATS_REMOTE_FETCH_ATOMIC == (int) FAB_OP_REMOTE_FETCH_ATOMIC,
	       "counters are indexed by enum fab_op_code");

/* Ticks that are longer than a program that polls leaves between two passes, 22 to 134 ms; after which pending
 * operations are looked through again, 45 to 270 ms. */
#define FAB_STATS_SLOW		((uint64_t) 1 << 27)
#define FAB_STATS_SURVEY	((uint64_t) 1 << 28)

/* ---- records ---- */

/* A record for a new engine. prov may be NULL. NULL: no memory. */
struct fi_stats_engine *fab_stats_engine_open(const struct fi_provider *prov, bool automatic);
/* Give it back. Idempotent for NULL. */
void fab_stats_engine_close(struct fi_stats_engine *engine);

/* A record for a new endpoint, passive endpoint or shared context. layered: it belongs to a provider above, which
 * describes what the application does, so nobody else sees the record. NULL: no memory. */
struct fi_stats_ep *fab_stats_ep_open(const struct fi_provider *prov, const struct fi_info *info, bool layered);
/* Give it back, with the records of its peers, none of which is in use. */
void fab_stats_ep_close(struct fi_stats_ep *ep);
/* The endpoint is enabled on an engine; fclass is that of its fid. */
void fab_stats_ep_enabled(struct fi_stats_ep *ep, const struct fi_stats_engine *engine, size_t fclass);
/* A record that nobody sees, in place of that of an endpoint without one (unit tests). */
struct fi_stats_ep *fab_stats_nobody(void);
/* Where peers find it: addr may be NULL, incarnation 0. */
void fab_stats_ep_name_text(struct fi_stats_ep *ep, const char *addr);
void fab_stats_ep_name(struct fi_stats_ep *ep, const struct sockaddr *addr, uint64_t incarnation);

/* Strangers, peers of a connectionless endpoint that have no fi_addr, have so many records of the page at most, and
 * take none from peers that are known: anybody who can reach the endpoint can be a stranger. */
#define FAB_STATS_STRANGERS	(FI_STATS_PEER_CNT / 8)

/* A record for a peer of the endpoint: the one that it had before, a free one, that of a peer which has gone, or
 * ep->rest. addr NULL: its address is not known yet. */
struct fi_stats_peer *fab_stats_peer_get(struct fi_stats_ep *ep, const struct sockaddr *addr, uint64_t fi_addr);
/* The address of a stranger was inserted into the vector as fi_addr. Returns its record from now on, which is another
 * one if it was ep->rest: none of the peer's operations is queued then, and the caller says what is known of it. */
struct fi_stats_peer *fab_stats_peer_insert(struct fi_stats_ep *ep, struct fi_stats_peer *peer,
					    const struct sockaddr *addr, uint64_t fi_addr);
/* The same as fab_stats_peer_get() for a peer whose address is this text, in the form of FI_ADDR_STR. */
struct fi_stats_peer *fab_stats_peer_get_text(struct fi_stats_ep *ep, const char *addr, fi_addr_t fi_addr);
/* The index of the record of a peer to which there is no connection; it gets one, as one that has gone. UINT32_MAX: the
 * table is full. */
uint32_t fab_stats_peer_mention(struct fi_stats_ep *ep, const struct sockaddr *addr, uint64_t fi_addr);
/* The peer has no connection any more, and the record is not written to by it. */
void fab_stats_peer_put(struct fi_stats_ep *ep, struct fi_stats_peer *peer);
/* What has become known of a peer: addresses may be NULL, numbers 0. Without effect on ep->rest. */
void fab_stats_peer_name(struct fi_stats_ep *ep, struct fi_stats_peer *peer, const struct sockaddr *addr,
			 const struct sockaddr *local, uint64_t incarnation, uint32_t pid);
/* The peer of what is pending at ep->rest, or of the connection request that is pending at the endpoint. */
void fab_stats_rest_name(struct fi_stats_ep *ep, const struct sockaddr *addr, const struct sockaddr *local);
/* The state of its connection changes. */
void fab_stats_peer_conn(struct fi_stats_ep *ep, struct fi_stats_peer *peer, enum fi_stats_conn conn,
			 enum fi_stats_carrier carrier);

/* The records of peers that have no connection, by a small number for each, such as its fi_addr_t. Zeroed before use.
 * The lock of the engine is held for all of these. */
struct fab_stats_peers {
	struct fi_stats_peer **of;	/* owned */
	size_t cnt;
};
/* The record of a peer, or NULL: it has none yet. */
static inline struct fi_stats_peer *fab_stats_peers_find(const struct fab_stats_peers *peers, uint64_t number)
{
	return __builtin_expect(number < peers->cnt, 1) ? peers->of[number] : NULL;
}
/* Give it one. Returns ep->rest if there is no memory, or the number is large. */
struct fi_stats_peer *fab_stats_peers_add(struct fab_stats_peers *peers, struct fi_stats_ep *ep, uint64_t number,
					  const char *addr, fi_addr_t fi_addr);
/* The peer has gone, and the number may be used again. */
void fab_stats_peers_forget(struct fab_stats_peers *peers, struct fi_stats_ep *ep, uint64_t number);
/* Free the memory. The records stay those of the endpoint. */
void fab_stats_peers_fini(struct fab_stats_peers *peers);

/* One operation of len bytes has succeeded: three instructions, where code is a constant. */
static inline __attribute__((always_inline))
void fab_stats_count(struct fi_stats_peer *peer, enum fab_op_code code, uint64_t len)
{
	peer->op[code].ops++;
	peer->op[code].bytes += len;
}

/* ---- pending operations ---- */

/* Describe the oldest pending operation of a kind; what->since is ignored, and is the time since when the record has
 * had what->number. what NULL: nothing is pending. */
void fab_stats_pending(struct fi_stats_pending *pending, const struct fi_stats_pending *what);

/* An operation with this number has completed: if it was the oldest, the record waits for the next survey. */
static inline void fab_stats_completed(struct fi_stats_pending *pending, uint64_t number)
{
	if (__builtin_expect(pending->number == number && pending->since, 0))
		fab_stats_pending(pending, NULL);
}

/* The same for a kind of a peer of the endpoint. When an operation is found to wait for credit, or for room in the
 * stream, an event is recorded, once for each. */
void fab_stats_peer_pending(struct fi_stats_ep *ep, struct fi_stats_peer *peer, enum fi_stats_peer_kind kind,
			    const struct fi_stats_pending *what);

/* The index of a peer's record for fi_stats_pending.peer; UINT32_MAX: it has none. */
uint32_t fab_stats_peer_index(const struct fi_stats_ep *ep, const struct fi_stats_peer *peer);

/* A record for a thread that waits for a counter, or for deferred work; NULL: the table is full. */
struct fi_stats_wait *fab_stats_wait_open(const struct fi_provider *prov, bool deferred);
/* Give it back; NULL is permitted. */
void fab_stats_wait_close(struct fi_stats_wait *wait);

/* ---- events and errors ---- */

/* Record an event of an endpoint; peer may be NULL. */
void fab_stats_event(struct fi_stats_ep *ep, const struct fi_stats_peer *peer, enum fi_stats_event_kind kind,
		     uint64_t value);
/* Record an operation that has completed in error, and the event. text may be NULL. */
void fab_stats_error(struct fi_stats_ep *ep, enum fab_op_code code, const struct fab_comp *comp, int err,
		     int prov_errno, const char *text);

/* No progress was called for so many ticks while something was pending: record the event. */
void fab_stats_gap(uint64_t ticks);

/* Pending operations were looked through: struct fab_core_ops.stats_stuck. */
uint64_t fab_stats_stuck(const struct fi_provider *prov);

/* ---- figures of the process ---- */

/* The value of the figure with this name, which all parts of the process share: add to it atomically. It is a word that
 * nobody reads if the table is full. kind is FI_STATS_COUNTER or FI_STATS_GAUGE. */
uint64_t *fab_stats_figure(const struct fi_provider *prov, const char *name, enum fi_stats_label_kind kind);

#endif
