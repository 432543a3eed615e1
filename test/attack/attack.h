/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A server, honest peers and attackers, each in a process of its own. They share one page, by which they tell each
 * other addresses and counts. Each value of the page has one writer, but for addresses to be inserted.
 */
#ifndef TEST_ATTACK_H
#define TEST_ATTACK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define PATIENCE_MS	60000		/* longest wait for something that must come */
#define HONEST_TAG	1
#define STRANGE_TAG	2		/* the server has no receive for it */
#define FIRST_TAG	3		/* of a first message */
#define HONEST_LEN	64		/* bytes */
#define KEY		7		/* of the server's region */
#define REGION_LEN	65536
#define INSERT_MAX	64		/* addresses that others may have the server insert */

enum kind {
	RDM,				/* tcp, FI_EP_RDM */
	RXM,				/* tcp;ofi_rxm, FI_EP_RDM */
	MSG,				/* tcp, FI_EP_MSG: the server has a passive endpoint */
	DGRAM,				/* udp; honest messages are echoed */
	KINDS
};

struct page {
	/* written by the server */
	struct sockaddr_in server;	/* where it listens; port 0: not yet */
	uint32_t inserted;		/* addresses of insert[] that it has inserted */
	uint64_t taken;			/* honest messages that it has received */
	uint64_t children;		/* that it has forked */

	/* written by who wants an address inserted, see want_known(); the family last */
	struct sockaddr_in insert[INSERT_MAX];
	uint32_t insert_cnt;		/* places of insert[] that are taken */

	/* written by the honest client */
	struct sockaddr_in honest;	/* where it listens */
	uint64_t done;			/* messages that were delivered (DGRAM: echoed) */
	uint64_t failed;		/* operations that ended with an error */

	/* written by the attacker */
	uint32_t ready;			/* it has set up what it needs */
	uint64_t strokes;		/* connections, frames or packets so far */
	uint64_t stolen;		/* connections that it got in the name of somebody else */

	/* written by the test */
	uint32_t fork_children;		/* the server is to fork children that close what they inherited */
	uint32_t fork_only;		/* the server is to fork children that end */
};

extern struct page *page;

#define GET(member)		__atomic_load_n(&page->member, __ATOMIC_ACQUIRE)
#define SET(member, value)	__atomic_store_n(&page->member, value, __ATOMIC_RELEASE)

uint64_t now_us(void);
/* Sleep for so long, to be asked again. */
void nap_us(unsigned us);
/* Print why and end the process, status 1. */
__attribute__((noreturn, format(printf, 1, 2))) void give_up(const char *fmt, ...);
/* Have the server insert this address, and wait until it has. */
void want_known(const struct sockaddr_in *addr);

/* ---- peers.c: bodies of processes ---- */

/* False: this build has not the provider. */
bool is_built(enum kind kind);

/* Serves until it is killed. */
_Noreturn void serve(enum kind kind);
/* Sends until it is killed, 16 messages at a time, each to be delivered. */
_Noreturn void be_honest(enum kind kind);
/* Opens an endpoint, then sends one message. known: the server knows the address. Returns the microseconds from the
 * call that sends (MSG: fi_connect()) to the delivery. */
uint64_t first_message(enum kind kind, bool known);

/* ---- plain.c: the same with plain sockets, for what the machine allows ---- */

/* Honest clients of it, which tell themselves by their first word, are answered; all others are read. */
_Noreturn void serve_plainly(enum kind kind);
_Noreturn void be_plain(enum kind kind);

/* ---- raids.c, raids_rxm.c: what attackers do ---- */

struct raid {
	const char *name;
	const char *what;		/* in the table */
	enum kind kind;
	void (*run)(void);		/* until it is killed; NULL: the server does it to itself */
	/* limits, as fi_tcp(7) and fi_ofi_rxm(7) state them */
	unsigned memory_mib;		/* by which the server may grow */
	unsigned files;			/* the server's limit on open files */
	bool plain;			/* it is one to a server of plain sockets, too */
};

extern const struct raid raids[];
extern const unsigned raid_cnt;

#endif
