/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unexpected messages and announcements in the account (tcp/account/account.h). A message counts from its header until
 * a receive has taken it, also after its sender has disconnected. If too much is held for strangers, or for one, their
 * sockets are not read, between two frames, until receives have taken half of it. Engine lock held.
 */
#include "tcp/message/msg.h"
#include <sys/epoll.h>
#include "tcp/params/params.h"

static enum tcp_held held_as(const struct tcp_unexp *unexp)
{
	return unexp->announced ? TCP_HELD_ANNOUNCED : TCP_HELD_MESSAGES;
}

void tcp_unexp_charge(struct tcp_unexp *unexp, uint64_t len)
{
	unexp->charged += len;
	tcp_account_charge(&unexp->ep->rx->account, &unexp->conn->holding, held_as(unexp), len);
}

void tcp_stranger_release(struct tcp_conn *conn)
{
	fab_list_remove(&conn->holding.waits);
	if (conn->rx.phase != TCP_RX_STALLED)
		tcp_rx_pause(conn, false);
}

/* Read again from connections for which there is room, now that something was given back. */
static void strangers_go_on(struct tcp_account *account, struct tcp_holding *giver, uint64_t before)
{
	struct tcp_holding *next;

	while ((next = tcp_account_next(account, giver, before)))
		tcp_stranger_release(fab_container(next, struct tcp_conn, holding));
}

void tcp_unexp_give(struct tcp_unexp *unexp)
{
	struct tcp_account *account = &unexp->ep->rx->account;
	struct tcp_holding *holding = unexp->conn ? &unexp->conn->holding : NULL;
	uint64_t before = tcp_account_strangers(account);

	if (holding)
		tcp_account_give(account, holding, held_as(unexp), unexp->charged);
	else
		tcp_account_give_left(account, unexp->class, held_as(unexp), unexp->charged);
	if (!fab_list_empty(&account->waiting))
		strangers_go_on(account, holding, before);
}

void tcp_unexp_leave(struct tcp_unexp *unexp)
{
	unexp->class = unexp->conn->holding.class;
	tcp_account_leave(&unexp->conn->holding, held_as(unexp), unexp->charged);
	unexp->conn = NULL;
}

void tcp_unexp_reclass(struct tcp_unexp *unexp, enum tcp_class class)
{
	struct tcp_account *account = &unexp->ep->rx->account;
	uint64_t before = tcp_account_strangers(account);

	tcp_account_move_left(account, unexp->class, class, held_as(unexp), unexp->charged);
	unexp->class = class;
	if (!fab_list_empty(&account->waiting))
		strangers_go_on(account, NULL, before);
}

void tcp_stranger_reclass(struct tcp_conn *conn)
{
	struct tcp_account *account = &conn->ep->rx->account;
	uint64_t before = tcp_account_strangers(account);

	tcp_conn_classify(conn);
	if (conn->holding.class != TCP_STRANGER && !fab_list_empty(&conn->holding.waits))
		tcp_stranger_release(conn);
	if (!fab_list_empty(&account->waiting))
		strangers_go_on(account, NULL, before);
}

void tcp_stranger_hold(struct tcp_conn *conn)
{
	struct tcp_account *account = &conn->ep->rx->account;

	/* the layer above says so for all of its endpoints */
	if (!account->told && !conn->holding.layered)
		TCP_WARN(FI_LOG_EP_DATA, "messages of peers that are in no address vector take %llu bytes, since no "
			 "receive is posted for them; no more are read until there is one. The limit is "
			 "FI_TCP_STRANGER_MAX, %zu bytes, of which one peer gets an eighth\n",
			 (unsigned long long) tcp_account_strangers(account), tcp_params.stranger_max);
	account->told = true;
	conn->rx.paused |= TCP_RX_PAUSED;
	/* Not even for its end: the kernel's data would have to be kept then. The socket of a ring only wakes, and must
	 * continue to. */
	if (!conn->io->pull)
		fab_source_mod(&conn->src, conn->src.events & ~(uint32_t) (EPOLLIN | EPOLLRDHUP));
	if (!fab_list_empty(&conn->holding.waits))
		return;
	fab_list_add_tail(&account->waiting, &conn->holding.waits);
	tcp_account_refuse(account, TCP_REFUSED_READS);
}
