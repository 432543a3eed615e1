/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RMA between a client and the server's memory, with struct pp_opts' rma: operations for -o. */
#ifndef FABTESTS_RMA_H
#define FABTESTS_RMA_H

#include "ft.h"

/* One way, a window at a time. */
extern const struct ft_operation ft_rma_bw[];

/* Learn where the peer's rma_buf is: both ends at once, into pp->remote_addr and pp->remote_key. */
int ft_exchange_regions(struct pp *pp);

/* What an operation in this turn of the ring has to name at the peer. */
uint64_t ft_remote_addr(const struct pp *pp);

#endif /* FABTESTS_RMA_H */
