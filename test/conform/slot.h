/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The contexts that a side gives to operations without one: by them a completion finds the call and the buffer. */
#ifndef CONFORM_SLOT_H
#define CONFORM_SLOT_H

#include "ops.h"

struct slot {
	struct fi_context2 provider;	/* first: providers with mode FI_CONTEXT write here */
	enum call call;
	void *buf;			/* of a receive */
	unsigned int done;		/* completions so far */
	bool many;			/* multi-receive: more than one is right */
};

/* The slot whose context is @ctx, NULL if it is not one of the side's. */
struct slot *slot_find(struct side *s, const void *ctx);

/* With FI_MSG_PREFIX: the receive of this completion had a buffer of its own, with room in front. Fill the test's, and
 * take what is in front off the lengths. */
void prefix_took(struct side *s, struct comp *c);

#endif
