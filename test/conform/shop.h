/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An exported shared receive context (fi_peer(3)) whose customers are an endpoint of the provider and another provider,
 * which is played here.
 */
#ifndef CONFORM_SHOP_H
#define CONFORM_SHOP_H

#include "export.h"

/* ---- a provider that has messages */

struct fake {
	struct fid_peer_srx *srx;
	struct fid_peer_cq *cq;
	bool at_once;			/* what it is told to start it does before it returns */
	int refuse;			/* it will not start, for this reason */
	size_t out_cnt;			/* entries that it has */
	size_t start_cnt, discard_cnt;
	struct fi_peer_rx_entry *started[8];	/* not at once: to be done by finish_started() */
};

struct message {
	struct fake *fake;
	bool tagged;
	const void *buf;
	size_t len;
	uint64_t tag, data;
	fi_addr_t addr;
};

/* A message comes: into its receive, or it waits. */
struct fi_peer_rx_entry *arrive(struct test *t, struct fake *fake, const struct message *what);
#define arrive_tagged(t, fake, text, tag_) \
	arrive(t, fake, &(struct message) { .tagged = true, .buf = text, .len = strlen(text), .tag = tag_, \
	       .addr = FI_ADDR_NOTAVAIL })
#define arrive_plain(t, fake, text) \
	arrive(t, fake, &(struct message) { .buf = text, .len = strlen(text), .addr = FI_ADDR_NOTAVAIL })
/* Its two halves. Ask for the receive of a message: what get says. And queue. */
int ask(struct message *m, struct fi_peer_rx_entry **entry);
int wait_for_receive(const struct message *m, struct fi_peer_rx_entry *entry);
/* A message for which there is a receive goes there: completion or failure is told, and the entry goes back. */
void finish(const struct message *m, struct fi_peer_rx_entry *entry);
/* Likewise one that fake->started has. */
void finish_started(struct fake *fake, size_t nth);

/* ---- both providers at one context */

struct shop {
	struct side *a, *b;		/* a sends to b, whose receives are srx's */
	struct fid_ep *srx;
	struct fake *fake;		/* so does this */
};

#define shop_open(t, ...) shop_open_opts(t, &(struct opts) { __VA_ARGS__ })
struct shop shop_open_opts(struct test *t, const struct opts *o);
/* a sends, and it is at b. */
void send_there(struct shop *shop, const char *text, uint64_t tag);
void trecv(struct shop *shop, void *buf, size_t len, uint64_t tag, uint64_t ignore);
/* The next completion is of this buffer, with this text. */
struct comp expect_text(struct shop *shop, void *buf, const char *text);
/* The fake has no entry, and there is no completion more. */
void all_back(struct shop *shop);

#endif
