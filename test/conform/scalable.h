/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scalable endpoints, each context a side.
 */
#ifndef CONFORM_SCALABLE_H
#define CONFORM_SCALABLE_H

#include "fixture.h"

#define SCALABLE_BITS	2		/* rx_ctx_bits of their address vectors */

enum { SCALABLE_CTX_MAX = 4 };

/* A scalable endpoint, each of its contexts a side of its own. */
struct scalable {
	struct side *base;		/* domain, address vector, name */
	struct fid_ep *sep;
	int tx_cnt, rx_cnt;
	struct side *tx[SCALABLE_CTX_MAX], *rx[SCALABLE_CTX_MAX];
};

/* The level that the next are opened with; FI_THREAD_UNSPEC: any. */
extern enum fi_threading scalable_threading;

/* Domain, AV and the endpoint, with no context yet. */
struct scalable scalable_begin(struct test *t, int tx_cnt, int rx_cnt);
/* Open its transmit or receive context @i, enabled; what else it is opened with comes behind. */
#define scalable_ctx(s, rx, i, ...) scalable_ctx_opts(s, rx, i, &(struct opts) { __VA_ARGS__ })
struct side *scalable_ctx_opts(struct scalable *s, bool rx, int i, const struct opts *o);
/* Enable it and learn its name. */
void scalable_enable(struct scalable *s);
/* All of it, enabled. */
struct scalable scalable_open(struct test *t, int tx_cnt, int rx_cnt);

#endif
