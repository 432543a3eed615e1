/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The limit on the connections of the process, and the choice of connections to close above it: those idle for longest,
 * by agreement with their peers (park.c). Connections to peers without parking (upstream) stay until they have been
 * quiet for a while; then this end shuts down sending, and reads until the peer closes, too.
 *
 * The same is done if an endpoint has too many connections of peers that are in no address vector ("strangers"). These
 * are closed before all others. Their peers are then forgotten, so that new ones may connect. A stranger that does not
 * answer is disconnected in the end, since it holds a descriptor for nothing.
 *
 * Strangers must not take the descriptors of the process. While these are short (tcp/account), requests of strangers
 * are turned away, and strangers that do nothing are disconnected soon.
 *
 * Each RDM endpoint closes its own connections, under its engine's lock, from a timer that runs while there are too
 * many. The search visits all lives, so each search closes many.
 */
#include "tcp/peer/peers.h"

#include <stdlib.h>
#include "base/bits.h"
#include "base/clock.h"
#include "tcp/account/account.h"
#include "tcp/params/params.h"

#define MS		1000000ULL	/* ns */
#define REAP_MIN_NS	MS
#define REAP_LIFE_NS	500		/* and for each life: a search must take only a small part of the time */
#define REAP_MAX_NS	(500 * MS)	/* between two searches that found nothing */
#define QUIET_NS	(1000 * MS)	/* for peers that do not support parking */
#define SHORT_NS	(10000 * MS)	/* for strangers, if there are few descriptors */
#define SHORTAGE_CNT	64		/* connections to close when the descriptors were used up before the limit was
					 * reached */

bool tcp_strangers_full(const struct tcp_peer_table *table)
{
	uint32_t max = tcp_params.stranger_conn;

	return (max && table->stranger_cnt >= max) || (table->stranger_cnt && tcp_descriptors_short());
}

bool tcp_strangers_many(const struct tcp_peer_table *table)
{
	uint32_t max = tcp_params.stranger_conn;

	return (max && table->stranger_cnt >= max - max / 8) || tcp_descriptors_short();
}

/* The number of strangers' lives to close, including some more to make room. */
static uint64_t stranger_excess(const struct tcp_peer_table *table)
{
	uint32_t max = tcp_params.stranger_conn;

	if (!tcp_strangers_full(table))
		return 0;
	if (!max || table->stranger_cnt < max)
		max = table->stranger_cnt;	/* descriptors are short */
	return table->stranger_cnt - max + 1 + max / 16;
}

/* ---- selection ---- */

struct candidate {
	bool stranger;
	uint32_t age;			/* passes since it was used */
	struct tcp_life *life;
};

static int reap_older_first(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->stranger != right->stranger)
		return left->stranger ? -1 : 1;
	return left->age > right->age ? -1 : left->age < right->age;
}

static bool life_is_stranger(const struct tcp_life *life)
{
	return life->conn.fi_addr == FI_ADDR_NOTAVAIL;
}

static uint32_t life_age(const struct tcp_life *life)
{
	const struct tcp_conn_used *used = &life->conn.used;
	uint32_t now = life->table->ep->base.engine->pass_cnt;

	return fab_min(fab_min(now - used->sent_pass, now - used->recv_pass), now - used->straight_pass);
}

/* True if the connection was quiet for so long, as far as the checks show. */
static bool life_is_quiet(struct tcp_life *life, uint64_t now_ns, uint64_t quiet_ns)
{
	uint32_t used = life->table->ep->base.engine->pass_cnt - life_age(life);

	if (life->quiet_ns && life->quiet_pass == used)
		return now_ns - life->quiet_ns >= quiet_ns;
	life->quiet_pass = used;
	life->quiet_ns = now_ns;
	return false;
}

/* True if it was asked to park so long ago that no answer will come. A peer that has sent something may be a program
 * that makes no progress for long, as while it connects; one that has sent nothing loses nothing. is_short:
 * descriptors are short. */
static bool life_is_overdue(const struct tcp_life *life, uint64_t now_ns, bool is_short)
{
	int wait_ms = life->conn.used.recv_pass ? tcp_params.reply_timeout_ms : tcp_params.connect_timeout_ms;

	if (is_short && life_is_stranger(life))
		return now_ns - life->quiet_ns >= (life->conn.used.recv_pass ? SHORT_NS : QUIET_NS);
	return wait_ms && now_ns - life->quiet_ns >= wait_ms * MS;
}

/* True if the connection may be closed. While descriptors are short, this includes a stranger that has left something
 * unfinished, such as an announced message. */
static bool life_may_go(struct tcp_life *life, uint64_t now_ns, bool is_short)
{
	const struct tcp_conn *conn = &life->conn;

	if (conn->state != TCP_CONN_UP || !life->peer || life->peer->self)
		return false;
	if (!tcp_conn_idle(conn))
		return is_short && life_is_stranger(life) && life_is_quiet(life, now_ns, SHORT_NS);
	return (conn->peer.features & TCP_EXT_PARK) || life_is_quiet(life, now_ns, QUIET_NS);
}

static void life_go(struct tcp_life *life)
{
	if (!(life->conn.peer.features & TCP_EXT_PARK) || life->conn.park.asked || !tcp_conn_idle(&life->conn)) {
		tcp_life_leave(life);
		return;
	}
	life->quiet_ns = fab_now_ns();
	tcp_park_ask(&life->conn);
}

static bool life_is_overdue_stranger(const struct tcp_life *life, uint64_t now_ns, bool is_short)
{
	return life_is_stranger(life) && life->peer && life_is_overdue(life, now_ns, is_short);
}

/* The connections that may be closed: all, or those of strangers. Those that were asked already count towards *want, as
 * long as they may still answer. NULL: none. The caller frees it. */
static struct candidate *reap_candidates(struct tcp_peer_table *table, bool strangers, size_t *cnt, uint64_t *want)
{
	uint64_t now_ns = fab_now_ns();
	struct candidate *found = NULL;
	bool is_short = tcp_descriptors_short();
	struct fab_list *link;

	*cnt = 0;
	fab_list_for_each(&table->lives, link) {
		struct tcp_life *life = fab_container(link, struct tcp_life, link);

		if (strangers && !life_is_stranger(life))
			continue;
		if (life->conn.park.asked && !life_is_overdue(life, now_ns, is_short))
			*want -= !!*want;
		if (life->conn.park.asked ? !life_is_overdue_stranger(life, now_ns, is_short) :
					    !life_may_go(life, now_ns, is_short))
			continue;
		if (!found)
			found = calloc(table->life_cnt, sizeof(*found));
		if (!found)
			break;
		found[(*cnt)++] = (struct candidate) {
			.stranger = life_is_stranger(life), .age = life_age(life), .life = life,
		};
	}
	return found;
}

/* Close up to want connections; true if any could be closed. */
static bool reap(struct tcp_peer_table *table, bool strangers, uint64_t want)
{
	size_t cnt;
	struct candidate *found = reap_candidates(table, strangers, &cnt, &want);

	if (cnt)
		qsort(found, cnt, sizeof(*found), reap_older_first);
	for (size_t i = 0; i < cnt && i < want; i++)
		life_go(found[i].life);
	free(found);
	return cnt;
}

/* Parked ones are freed at once, as many as needed; then idle ones are closed. */
static bool reap_strangers(struct tcp_peer_table *table, uint64_t want)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&table->lives, link, next) {
		struct tcp_life *life = fab_container(link, struct tcp_life, link);

		if (!want || !tcp_life_is_forgettable(life))
			continue;
		tcp_conn_down(&life->conn, 0, 0, "the connection was idle");
		want--;
	}
	return !want || reap(table, true, want);
}

/* ---- the timer ---- */

static uint64_t reap_min_ns(const struct tcp_peer_table *table)
{
	return fab_max(REAP_MIN_NS, (uint64_t) table->life_cnt * REAP_LIFE_NS);
}

static void reap_again(struct tcp_peer_table *table, uint64_t wait_ns)
{
	fab_timer_start(table->ep->base.engine, &table->reap, fab_now_ns() + wait_ns);
}

void tcp_reap_fire(struct fab_timer *timer)
{
	struct tcp_peer_table *table = fab_container(timer, struct tcp_peer_table, reap);
	uint64_t want = fab_max(tcp_descriptors_excess(), (uint64_t) table->shortage);
	uint64_t strangers = stranger_excess(table);
	bool some = false;

	table->shortage = 0;
	if (!want && !strangers) {
		table->reap_ns = 0;
		return;
	}
	if (strangers)
		some = reap_strangers(table, strangers);
	if (want)
		some |= reap(table, false, want);
	table->reap_ns = some ? reap_min_ns(table) : fab_min(table->reap_ns * 2, REAP_MAX_NS);
	/* random, so that two ends that are both short of connections do not ask at the same times */
	reap_again(table, table->reap_ns + fab_random64() % table->reap_ns);
}

void tcp_reap_start(struct tcp_peer_table *table)
{
	if (table->reap_ns || (!tcp_descriptors_excess() && !tcp_strangers_full(table)))
		return;
	table->reap_ns = reap_min_ns(table);
	reap_again(table, 0);
}

bool tcp_reap_shortage(struct tcp_peer_table *table)
{
	if (table->life_cnt < 2)
		return false;
	table->shortage = SHORTAGE_CNT;
	table->reap_ns = reap_min_ns(table);
	reap_again(table, 0);
	return true;
}
