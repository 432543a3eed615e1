/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An exchange of prov/tcp/handshake/cm.c on an engine of its own, which one thread drives, and how it ended. */
#ifndef TEST_TCP_EXCHANGE_H
#define TEST_TCP_EXCHANGE_H

#include <stdbool.h>
#include "common/engine/engine.h"
#include "raw.h"
#include "tcp/handshake/cm.h"

struct exchange {
	struct fab_engine engine;
	struct tcp_cm *cm;
	bool over;			/* it has ended, with this error (0: well) and text */
	int err;
	char text[256];
};

/* Not begun yet. Closing ends it, at whatever point it is. */
void exchange_open(struct exchange *x);
void exchange_close(struct exchange *x);

/* Begin: the next connection to this raw listener is to bring a request. */
void exchange_accept(struct exchange *x, int listener, const struct sockaddr_in *addr);
/* Begin: connect, and say this. 0, or the -FI_E* of tcp_cm_connect(): not begun. */
int exchange_connect(struct exchange *x, const struct sockaddr_in *to, const struct tcp_cm_msg *msg);

/* One pass of the engine; arg is the exchange (raw_drive). */
void exchange_drive(void *arg);
/* Until it is over, which it will be. */
void exchange_finish(struct exchange *x);

#endif
