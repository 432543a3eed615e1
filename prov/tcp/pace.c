/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connects of an RDM endpoint, not all at once: an application's first round of sends may open thousands, many to one
 * host, whose queue would overflow (and a lost SYN costs a second). At most so many attempts are young at a time; who
 * comes later waits in line, without a descriptor. An attempt is young for a second at most, so that peers that do not
 * answer hold up nobody for longer. Fewer while there are more connections than there should be (budget.c).
 *
 * Engine lock held.
 */
#include "tcp/peers.h"

#include "base/clock.h"
#include "tcp/tcp.h"

#define MS		1000000ULL	/* ns */
#define YOUNG_MAX	256
#define YOUNG_TIGHT	8		/* while connections are to be closed for new ones */
#define YOUNG_NS	(1000 * MS)
#define LOOK_NS		(20 * MS)	/* how often the line is looked at, if nothing else moves it */

static bool has_room(const struct tcp_pace *pace)
{
	return pace->young_cnt < (tcp_budget_excess() ? YOUNG_TIGHT : YOUNG_MAX);
}

static void pace_look(struct tcp_peer_table *table, uint64_t when_ns)
{
	table->pace.look_ns = when_ns;
	fab_timer_start(table->ep->base.progress, &table->pace.timer, when_ns);
}

static void become_young(struct tcp_pace *pace, struct tcp_peer *peer)
{
	peer->young_ns = fab_now_ns();
	pace->young_cnt++;
	fab_list_add_tail(&pace->young, &peer->pace);
}

static void grow_old(struct tcp_pace *pace, struct tcp_peer *peer)
{
	fab_list_remove(&peer->pace);
	peer->young_ns = 0;
	pace->young_cnt--;
}

bool tcp_pace_enter(struct tcp_peer *peer)
{
	struct tcp_pace *pace = &peer->table->pace;

	if (fab_list_empty(&pace->line) && has_room(pace)) {
		become_young(pace, peer);
		return true;
	}
	if (fab_list_empty(&pace->line))
		pace_look(peer->table, fab_now_ns() + LOOK_NS);
	fab_list_add_tail(&pace->line, &peer->pace);
	return false;
}

void tcp_pace_leave(struct tcp_peer *peer)
{
	struct tcp_pace *pace = &peer->table->pace;
	uint64_t now;

	if (!peer->young_ns) {
		fab_list_remove(&peer->pace);
		return;
	}
	grow_old(pace, peer);
	if (fab_list_empty(&pace->line))
		return;
	now = fab_now_ns();
	if (pace->look_ns > now)
		pace_look(peer->table, now);
}

static void pace_fire(struct fab_timer *timer)
{
	struct tcp_pace *pace = fab_container(timer, struct tcp_pace, timer);
	struct tcp_peer_table *table = fab_container(pace, struct tcp_peer_table, pace);
	uint64_t now = fab_now_ns();
	struct tcp_peer *peer;

	while ((peer = fab_list_first(&pace->young, struct tcp_peer, pace)) && now - peer->young_ns >= YOUNG_NS)
		grow_old(pace, peer);
	/* those whose attempt fails at once do not come back to the line before this is over */
	while ((peer = fab_list_first(&pace->line, struct tcp_peer, pace)) && has_room(pace)) {
		fab_list_remove(&peer->pace);
		become_young(pace, peer);
		tcp_peer_turn(peer);
	}
	if (peer)
		pace_look(table, now + LOOK_NS);
}

void tcp_pace_init(struct tcp_pace *pace)
{
	fab_list_init(&pace->line);
	fab_list_init(&pace->young);
	fab_timer_init(&pace->timer, pace_fire);
}
