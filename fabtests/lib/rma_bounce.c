/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA writes there and back. That one has arrived is seen by the data that comes with it, or by its last byte, as
 * programs do that know their provider to write in order.
 */
#include "rma.h"

#include <string.h>

#include <rdma/fi_rma.h>

/* What the last byte of a message is changed to, so that it can be waited for: never 0, never the same twice in a
 * row. */
static char last_byte(uint64_t seq)
{
	return (char) (seq % 127 + 1);
}

/* Both ends write from tx_buf into the other's rma_buf. */
static int bounce_begin(struct pp *pp, size_t size)
{
	memset(pp->rma_buf, 0, size);
	pp->tx_seq = pp->rx_seq = 0;
	return 0;
}

static ssize_t bounce_write(struct pp *pp, size_t len)
{
	return fi_write(pp->ep, pp->tx_buf, len, pp_desc(pp), pp->peer_addr, pp->remote_addr, pp->remote_key,
			pp_tx_context(pp));
}

static ssize_t bounce_writedata(struct pp *pp, size_t len)
{
	return fi_writedata(pp->ep, pp->tx_buf, len, pp_desc(pp), FT_WRITE_DATA, pp->peer_addr, pp->remote_addr,
			    pp->remote_key, pp_tx_context(pp));
}

/* Wait until the last byte is that of the next message. */
static int wait_last_byte(struct pp *pp, size_t size)
{
	const volatile char *last = pp->rma_buf + size - 1;
	struct pp_wait wait = { .polls = 0 };
	char wanted = last_byte(pp->rx_seq++);
	int ret = 0;

	while (*last != wanted && !ret) {
		if (!wait.polls)
			wait.start = util_now_ns();
		ret = pp_progress(pp);
		if (!ret)
			ret = pp_wait_tick(pp, &wait, "the last byte of an RMA write");
	}
	return ret;
}

static int send_bounce(struct pp *pp, size_t size, pp_call_fn *call)
{
	/* The one before may still be read from tx_buf. */
	int ret = pp_flush(pp);

	if (ret)
		return ret;
	/* Messages go out of tx_buf as well. */
	if (pp->opts->check)
		pp_fill(pp->tx_buf, size, 0);
	if (size)
		pp->tx_buf[size - 1] = last_byte(pp->tx_seq++);
	return pp_post(pp, call, size);
}

/* The server begins. */
static int take_turns(struct pp *pp, size_t size, pp_call_fn *call, int (*wait)(struct pp *pp, size_t size))
{
	int ret;

	if (pp->opts->server) {
		ret = send_bounce(pp, size, call);
		return ret ? ret : wait(pp, size);
	}
	ret = wait(pp, size);
	return ret ? ret : send_bounce(pp, size, call);
}

static int bounce_step(struct pp *pp, size_t size)
{
	return take_turns(pp, size, bounce_write, wait_last_byte);
}

/* Wait for a write with data; it has its number, too. */
static int wait_data(struct pp *pp, size_t size)
{
	pp->rx_seq += size > 0;
	return pp_recv_data(pp);
}

static int bounce_data_step(struct pp *pp, size_t size)
{
	return take_turns(pp, size, bounce_writedata, wait_data);
}

/* All but the last byte is as the peer has filled it. */
static int bounce_check(struct pp *pp, size_t size)
{
	return size ? pp_check(pp, pp->rma_buf, size - 1, 0) : 0;
}

static const struct pp_test bounce_test = {
	.transfers = 2,
	.min_size = 1,
	.latency = true,
	.open = ft_exchange_regions,
	.begin = bounce_begin,
	.step = bounce_step,
	.end = ft_rma_finish,
	.check = bounce_check,
};

static const struct pp_test bounce_data_test = {
	.transfers = 2,
	.latency = true,
	.open = ft_exchange_regions,
	.begin = bounce_begin,
	.step = bounce_data_step,
	.end = ft_rma_finish,
	.check = bounce_check,
};

const struct ft_operation ft_rma_pingpong[] = {
	{ "write", &bounce_test, 0 },
	{ "writedata", &bounce_data_test, 0 },
	{ NULL, NULL, 0 },
};
