/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See account.h. Nothing here is called for an expected message, or for a peer that the application knows.
 */
#include "tcp/account/account.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include "common/stats/stats.h"

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
	tcp_account_show(account);
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

/* ---- the page of the process ---- */

#define HELD(class)	"tcp_messages_held_" class "_bytes", "tcp_announced_held_" class "_bytes",	\
			"tcp_answers_held_" class "_bytes"

/* The figures to which each account adds its share, in the order of collect(). Those that are refused only grow. */
static const char *const share_names[TCP_ACCOUNT_SHARES] = {
	HELD("known"), HELD("proved"), HELD("strangers"),
	[TCP_CLASSES * TCP_HELD_KINDS + TCP_REFUSED_READS] = "tcp_refused_reads",
	[TCP_CLASSES * TCP_HELD_KINDS + TCP_REFUSED_REQUEST] = "tcp_refused_requests",
	[TCP_CLASSES * TCP_HELD_KINDS + TCP_REFUSED_ANSWERS] = "tcp_refused_answers",
	[TCP_CLASSES * TCP_HELD_KINDS + TCP_REFUSALS] = "tcp_strangers_not_read",
};

/* Figures of the process that are no account's, behind the shares. */
enum { AWAITED = TCP_ACCOUNT_SHARES, STREAMS, DROPPED, FIGURES };

static bool only_grows(int share)
{
	return share >= TCP_CLASSES * TCP_HELD_KINDS && share < TCP_CLASSES * TCP_HELD_KINDS + TCP_REFUSALS;
}

static void collect(const struct tcp_account_figures *figures, uint64_t shares[TCP_ACCOUNT_SHARES])
{
	memcpy(shares, figures->held, sizeof(figures->held));
	memcpy(shares + TCP_CLASSES * TCP_HELD_KINDS, figures->refused, sizeof(figures->refused));
	shares[TCP_ACCOUNT_SHARES - 1] = figures->waiting;
}

static uint64_t *word[FIGURES];

static void find_words(void)
{
	for (int i = 0; i < TCP_ACCOUNT_SHARES; i++)
		word[i] = fab_stats_figure(&tcp_prov, share_names[i],
					   only_grows(i) ? FI_STATS_COUNTER : FI_STATS_GAUGE);
	word[AWAITED] = fab_stats_figure(&tcp_prov, "tcp_descriptors_awaited", FI_STATS_GAUGE);
	word[STREAMS] = fab_stats_figure(&tcp_prov, "tcp_descriptors_streams", FI_STATS_GAUGE);
	word[DROPPED] = fab_stats_figure(&tcp_prov, "tcp_connections_dropped", FI_STATS_COUNTER);
}

/* The words of all figures in the page, which never move: found by the first call. */
static uint64_t *const *words(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_words);
	return word;
}

void tcp_account_show(struct tcp_account *account)
{
	struct tcp_account_figures figures;
	uint64_t shares[TCP_ACCOUNT_SHARES];

	tcp_account_read(account, &figures);
	collect(&figures, shares);
	for (int i = 0; i < TCP_ACCOUNT_SHARES; i++) {
		if (shares[i] == account->shown[i])
			continue;
		__atomic_fetch_add(words()[i], shares[i] - account->shown[i], __ATOMIC_RELAXED);
		account->shown[i] = shares[i];
	}
	__atomic_store_n(words()[AWAITED], figures.descriptors[TCP_FD_AWAITED], __ATOMIC_RELAXED);
	__atomic_store_n(words()[STREAMS], figures.descriptors[TCP_FD_STREAM], __ATOMIC_RELAXED);
	__atomic_store_n(words()[DROPPED], figures.dropped, __ATOMIC_RELAXED);
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
	       holding_unexpected(holding) >= tcp_stranger_own_max(holding);
}

/* True if the stranger's own share has room again. */
static bool holding_has_room(const struct tcp_holding *holding)
{
	return holding_unexpected(holding) <= tcp_stranger_own_max(holding) / 2;
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
