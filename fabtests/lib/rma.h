/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* RMA between a client and the server's memory, with struct pp_opts' rma: operations for -o. */
#ifndef FABTESTS_RMA_H
#define FABTESTS_RMA_H

#include "ft.h"

/* What comes with a write that has data: the value means nothing. */
#define FT_WRITE_DATA 0x5a

/* One way, a window at a time. */
extern const struct ft_operation ft_rma_bw[];

/* A write at a time, from posting to its completion here. */
extern const struct ft_operation ft_rma_tx_completion[];

/* A write there, and one back when it has arrived. */
extern const struct ft_operation ft_rma_pingpong[];

/* Learn where the peer's rma_buf is: both ends at once, into pp->remote_addr and pp->remote_key. */
int ft_exchange_regions(struct pp *pp);

/* What an operation in this turn of the ring has to name at the peer. */
uint64_t ft_remote_addr(const struct pp *pp);

/* ft_finish(), and the turns begin anew: part 0 of rma_buf is the next to be used. */
int ft_rma_finish(struct pp *pp, size_t size);

#endif /* FABTESTS_RMA_H */
