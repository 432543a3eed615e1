/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The scenarios of trace.c: two nodes, and in that with keys a third one, which is no endpoint.
 */
#ifndef TEST_SIM_TRACE_H
#define TEST_SIM_TRACE_H

#include "sim/frames.h"

#define NODES		2
#define PORT		10000		/* where node 0 listens; the next one has the next port */
#define TRACE_CM	128		/* added to the types of the handshake's messages */

struct scenario {
	const char *name;
	unsigned (*prepare)(void);	/* set parameters; returns the log's limit, or 0 */
	struct frames_watch watch;
	void (*state)(unsigned n);	/* after a call into node n; or NULL */
	/* A step of a third node, which both know as a peer; or NULL. Then calls of the applications are not in the
	 * log. */
	void (*meddle)(void);
	const char *key;		/* the authorization key of both nodes; or NULL */
	bool any_order;			/* receives are posted later, and in any order */
	bool parks;
};

/* An event of a node, with so many numbers, which are ints. */
void trace_say(const char *word, unsigned node, unsigned count, ...);

extern const struct scenario trace_keys;

#endif
