/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The account of what an endpoint holds for its peers: memory, by kind, at its real cost. Each peer has a class, and
 * each class a limit (doc/decisions/account.md). Rooms above charge the account when they take something on, and give
 * back the same amount when it is gone. They ask the account before they take on more, and refuse in the way that fits
 * the kind: a socket is not read, a request is rejected, a connection ends.
 *
 * A receive context has one account of memory (struct tcp_rx_ctx), so endpoints with a shared receive context share it.
 * The lock of their engine guards it. The account of descriptors is one for the process.
 */
#ifndef TCP_ACCOUNT_H
#define TCP_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "tcp/account/descriptors.h"
#include "tcp/params/params.h"

enum tcp_class {
	TCP_KNOWN,			/* in the address vector, or accepted by the application (MSG), unless that
					 * says that it is a stranger (FAB_OPT_STRANGER) */
	TCP_PROVED,			/* in no address vector; it has proved an authorization key */
	TCP_STRANGER,			/* neither */
	TCP_CLASSES,
};

/* Kinds of memory, in bytes. */
enum tcp_held {
	TCP_HELD_MESSAGES,		/* unexpected messages, with their payload */
	TCP_HELD_ANNOUNCED,		/* announced messages that no receive has taken */
	TCP_HELD_ANSWERS,		/* answers to the peer's frames that its kernel has not taken */
	TCP_HELD_KINDS,
};

/* What is held for one connection. Guarded as the account. */
struct tcp_holding {
	uint64_t len[TCP_HELD_KINDS];
	struct fab_list waits;		/* in account.waiting; linked: the connection is not read */
	uint8_t class;			/* enum tcp_class */
	bool layered;			/* a layer above has limits for messages of all strangers (FAB_OPT_STRANGER) */
};

/* What was refused because a limit was reached, each counted when it happens. */
enum tcp_refusal {
	TCP_REFUSED_READS,		/* a stranger's connection is not read until receives are posted */
	TCP_REFUSED_REQUEST,		/* a stranger's request for a connection; it repeats it */
	TCP_REFUSED_ANSWERS,		/* a stranger's connection was ended, since it reads no answers */
	TCP_REFUSALS,
};

/* Numbers of an account that are added to those of other accounts: see account.c. */
#define TCP_ACCOUNT_SHARES	(TCP_CLASSES * TCP_HELD_KINDS + TCP_REFUSALS + 1)

struct tcp_account {
	uint64_t len[TCP_CLASSES][TCP_HELD_KINDS];
	uint64_t refused[TCP_REFUSALS];
	struct fab_list waiting;	/* struct tcp_holding.waits: strangers over a limit, until there is room */
	bool told;			/* the warning about them was logged */
	uint64_t shown[TCP_ACCOUNT_SHARES];	/* its part of the figures of the process, as it was added last */
};

/* Nothing is held; and at the end, again. */
void tcp_account_init(struct tcp_account *account);
void tcp_account_fini(struct tcp_account *account);
/* Something was refused. */
static inline void tcp_account_refuse(struct tcp_account *account, enum tcp_refusal what)
{
	account->refused[what]++;
}

/* What there is to know of an account, for statistics. */
struct tcp_account_figures {
	uint64_t held[TCP_CLASSES][TCP_HELD_KINDS];	/* bytes that are held now */
	uint64_t refused[TCP_REFUSALS];			/* so far */
	uint32_t waiting;		/* connections of strangers that are not read now */
	uint32_t descriptors[TCP_FD_KINDS];		/* that the process holds for connections now */
	uint64_t dropped;		/* connections without a request that the process has closed for others, so
					 * far */
};
/* Fill *figures with what the account and the process hold now. Guarded as the account; O(waiting). */
void tcp_account_read(const struct tcp_account *account, struct tcp_account_figures *figures);
/* Write them to the page of the process (common/stats), where the accounts of all endpoints are added up. Guarded as
 * the account; O(waiting). */
void tcp_account_show(struct tcp_account *account);

/* The connection is a stranger's until tcp_account_reclass(). */
void tcp_holding_init(struct tcp_holding *holding);

/* Charge len bytes to a connection and its class. */
static inline void tcp_account_charge(struct tcp_account *account, struct tcp_holding *holding, enum tcp_held kind,
				      uint64_t len)
{
	account->len[holding->class][kind] += len;
	holding->len[kind] += len;
}

/* The same amount, or a part of it, is not held any more. */
static inline void tcp_account_give(struct tcp_account *account, struct tcp_holding *holding, enum tcp_held kind,
				    uint64_t len)
{
	account->len[holding->class][kind] -= len;
	holding->len[kind] -= len;
}

/* The peer has another class now: it moves there with all that is held for it. */
void tcp_account_reclass(struct tcp_account *account, struct tcp_holding *holding, enum tcp_class class);

/* ---- what connections leave behind ---- */

/* The connection ends, or begins anew, and len bytes stay: they belong to its class only. */
static inline void tcp_account_leave(struct tcp_holding *holding, enum tcp_held kind, uint64_t len)
{
	holding->len[kind] -= len;
}
/* They are gone; they belong to another class now. */
void tcp_account_give_left(struct tcp_account *account, enum tcp_class class, enum tcp_held kind, uint64_t len);
void tcp_account_move_left(struct tcp_account *account, enum tcp_class from, enum tcp_class to, enum tcp_held kind,
			   uint64_t len);

/* ---- messages and announcements of strangers ---- */

/* For a stranger of a layer above, that posts as many receives as it wants messages. */
#define TCP_LAYERED_OWN_MAX	4096
/* Most bytes of them for one stranger, of FI_TCP_STRANGER_MAX for all. A longer message stays in the socket. */
static inline uint64_t tcp_stranger_own_max(const struct tcp_holding *holding)
{
	return holding->layered ? TCP_LAYERED_OWN_MAX : tcp_params.stranger_max / 8;
}
/* Bytes held for all strangers. */
uint64_t tcp_account_strangers(const struct tcp_account *account);
/* True if no further message of this connection may be read. */
bool tcp_account_stranger_is_full(const struct tcp_account *account, const struct tcp_holding *holding);
static inline bool tcp_account_is_full(const struct tcp_account *account, const struct tcp_holding *holding)
{
	return __builtin_expect(holding->class == TCP_STRANGER, 0) && tcp_account_stranger_is_full(account, holding);
}
/*
 * Connections wait since they were full, and `before` bytes were held for all strangers until something was given back,
 * by `giver` unless it is NULL. Returns one that may be read again, which the caller takes out of the list; NULL: no
 * more. A full account lets the others wait until half of it is free.
 */
struct tcp_holding *tcp_account_next(const struct tcp_account *account, struct tcp_holding *giver, uint64_t before);

/* ---- answers to strangers ---- */

#define TCP_ANSWERS_MIN	(16 * 1024)	/* bytes that a stranger may leave unread whatever the others do */
/* That a stranger of a layer above may: each is an account of its own. As much as rxm has of buffers for it. */
#define TCP_LAYERED_ANSWERS_MAX	(1 << 20)

/* True if so much is owed to all strangers, a quarter of FI_TCP_STRANGER_MAX, and to this one, that it gets no further
 * answer before it has read some. */
static inline bool tcp_account_owes_enough(const struct tcp_account *account, const struct tcp_holding *holding)
{
	uint64_t all = holding->layered ? TCP_LAYERED_ANSWERS_MAX : tcp_params.stranger_max / 4;

	return holding->class == TCP_STRANGER && holding->len[TCP_HELD_ANSWERS] >= TCP_ANSWERS_MIN &&
	       account->len[TCP_STRANGER][TCP_HELD_ANSWERS] >= all;
}

#endif
