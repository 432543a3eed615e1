/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See account.h. Nothing here is called for an expected message, or for a peer that the application knows.
 */
#include "tcp/account/account.h"

#include <assert.h>
#include <string.h>

void tcp_account_init(struct tcp_account *account)
{
	*account = (struct tcp_account) { .told = false };
	fab_list_init(&account->waiting);
}

void tcp_account_fini(struct tcp_account *account)
{
	for (int class = 0; class < TCP_CLASSES; class++) {
		for (int kind = 0; kind < TCP_HELD_KINDS; kind++)
			assert(!account->len[class][kind]);
	}
	(void) account;
}

void tcp_account_read(const struct tcp_account *account, struct tcp_account_figures *figures)
{
	struct fab_list *link;

	memcpy(figures->held, account->len, sizeof(figures->held));
	memcpy(figures->refused, account->refused, sizeof(figures->refused));
	figures->waiting = 0;
	fab_list_for_each(&account->waiting, link)
		figures->waiting++;
	for (int kind = 0; kind < TCP_FD_KINDS; kind++)
		figures->descriptors[kind] = tcp_descriptors_held(kind);
	figures->dropped = tcp_descriptors_dropped();
}

void tcp_holding_init(struct tcp_holding *holding)
{
	*holding = (struct tcp_holding) { .class = TCP_STRANGER };
	fab_list_init(&holding->waits);
}

void tcp_account_give_left(struct tcp_account *account, enum tcp_class class, enum tcp_held kind, uint64_t len)
{
	account->len[class][kind] -= len;
}

void tcp_account_move_left(struct tcp_account *account, enum tcp_class from, enum tcp_class to, enum tcp_held kind,
			   uint64_t len)
{
	account->len[from][kind] -= len;
	account->len[to][kind] += len;
}

void tcp_account_reclass(struct tcp_account *account, struct tcp_holding *holding, enum tcp_class class)
{
	for (int kind = 0; kind < TCP_HELD_KINDS; kind++)
		tcp_account_move_left(account, holding->class, class, kind, holding->len[kind]);
	holding->class = class;
}

/* ---- strangers ---- */

static uint64_t holding_unexpected(const struct tcp_holding *holding)
{
	return holding->len[TCP_HELD_MESSAGES] + holding->len[TCP_HELD_ANNOUNCED];
}

uint64_t tcp_account_strangers(const struct tcp_account *account)
{
	return account->len[TCP_STRANGER][TCP_HELD_MESSAGES] + account->len[TCP_STRANGER][TCP_HELD_ANNOUNCED];
}

bool tcp_account_stranger_is_full(const struct tcp_account *account, const struct tcp_holding *holding)
{
	return tcp_account_strangers(account) >= tcp_params.stranger_max ||
	       holding_unexpected(holding) >= tcp_stranger_own_max();
}

/* True if the stranger's own share has room again. */
static bool holding_has_room(const struct tcp_holding *holding)
{
	return holding_unexpected(holding) <= tcp_stranger_own_max() / 2;
}

struct tcp_holding *tcp_account_next(const struct tcp_account *account, struct tcp_holding *giver, uint64_t before)
{
	uint64_t now = tcp_account_strangers(account), half = tcp_params.stranger_max / 2;
	struct fab_list *link;

	if (giver && !fab_list_empty(&giver->waits) && now < tcp_params.stranger_max && holding_has_room(giver))
		return giver;
	if (now > half || before <= half)
		return NULL;
	fab_list_for_each(&account->waiting, link) {
		struct tcp_holding *holding = fab_container(link, struct tcp_holding, waits);

		if (holding_has_room(holding))
			return holding;
	}
	return NULL;
}
