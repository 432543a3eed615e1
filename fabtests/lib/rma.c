/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA between the client and the server's memory. Both have a region of the same shape, rma_buf: the operation in turn
 * n of the ring moves part n of one to part n of the other. Where data is checked, the end that has it first has filled
 * part n with pattern n, and the other one has cleared it.
 */
#include "rma.h"

#include <endian.h>
#include <string.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_rma.h>

/* What one end tells the other of its region, in network order. */
struct region {
	uint64_t addr, key;
};

int ft_exchange_regions(struct pp *pp)
{
	bool virt_addr = pp->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	struct region ours, theirs;
	int ret;

	/* What is remote starts where the registration does: at tx_buf. */
	ours.addr = htobe64(virt_addr ? (uintptr_t) pp->rma_buf : (uintptr_t) (pp->rma_buf - pp->tx_buf));
	ours.key = htobe64(fi_mr_key(pp->mr));
	ret = pp_ctrl_send(pp, &ours, sizeof(ours), "our memory region");
	if (!ret)
		ret = pp_ctrl_recv(pp, &theirs, sizeof(theirs), "the peer's memory region");
	if (ret)
		return ret;
	pp->remote_addr = be64toh(theirs.addr);
	pp->remote_key = be64toh(theirs.key);
	return 0;
}

uint64_t ft_remote_addr(const struct pp *pp)
{
	return pp->remote_addr + (uint64_t) (pp_rma_buf(pp) - pp->rma_buf);
}

static ssize_t post_write(struct pp *pp, size_t len)
{
	return fi_write(pp->ep, pp_rma_buf(pp), len, pp_desc(pp), pp->peer_addr, ft_remote_addr(pp), pp->remote_key,
			pp_tx_context(pp));
}

static ssize_t post_writedata(struct pp *pp, size_t len)
{
	return fi_writedata(pp->ep, pp_rma_buf(pp), len, pp_desc(pp), FT_WRITE_DATA, pp->peer_addr, ft_remote_addr(pp),
			    pp->remote_key, pp_tx_context(pp));
}

static ssize_t post_read(struct pp *pp, size_t len)
{
	return fi_read(pp->ep, pp_rma_buf(pp), len, pp_desc(pp), pp->peer_addr, ft_remote_addr(pp), pp->remote_key,
		       pp_tx_context(pp));
}

/* The server has nothing to do: while it waits for the client's last word, it lets the provider work. */
static int write_step(struct pp *pp, size_t size)
{
	return pp->opts->server ? pp_post(pp, post_write, size) : 0;
}

static int writedata_step(struct pp *pp, size_t size)
{
	return pp->opts->server ? pp_post(pp, post_writedata, size) : pp_recv_data(pp);
}

static int read_step(struct pp *pp, size_t size)
{
	return pp->opts->server ? pp_post(pp, post_read, size) : 0;
}

int ft_rma_finish(struct pp *pp, size_t size)
{
	int ret = ft_finish(pp, size);

	pp->tx_next = 0;
	return ret;
}

/* Fill or clear every part. */
static int prepare(struct pp *pp, size_t size, bool fill)
{
	uint32_t i;

	for (i = 0; i < pp->slots; i++) {
		if (fill)
			pp_fill(pp->rma_buf + i * pp->buf_len, size, i);
		else
			memset(pp->rma_buf + i * pp->buf_len, 0, size);
	}
	return 0;
}

static int write_begin(struct pp *pp, size_t size)
{
	return pp->opts->check ? prepare(pp, size, pp->opts->server) : 0;
}

static int read_begin(struct pp *pp, size_t size)
{
	return pp->opts->check ? prepare(pp, size, !pp->opts->server) : 0;
}

/* The parts that operations have reached hold their patterns. */
static int check_parts(struct pp *pp, size_t size)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < pp->slots && i < pp->opts->iterations && !ret; i++)
		ret = pp_check(pp, pp->rma_buf + i * pp->buf_len, size, i);
	return ret;
}

static int write_check(struct pp *pp, size_t size)
{
	return pp->opts->server ? 0 : check_parts(pp, size);
}

static int read_check(struct pp *pp, size_t size)
{
	return pp->opts->server ? check_parts(pp, size) : 0;
}

static const struct pp_test write_test = {
	.transfers = 1,
	.open = ft_exchange_regions,
	.begin = write_begin,
	.step = write_step,
	.end = ft_rma_finish,
	.check = write_check,
};

static const struct pp_test read_test = {
	.transfers = 1,
	.open = ft_exchange_regions,
	.begin = read_begin,
	.step = read_step,
	.end = ft_rma_finish,
	.check = read_check,
};

static const struct pp_test writedata_test = {
	.transfers = 1,
	.open = ft_exchange_regions,
	.begin = write_begin,
	.step = writedata_step,
	.end = ft_rma_finish,
	.check = write_check,
};

const struct ft_operation ft_rma_bw[] = {
	{ "write", &write_test, 0 },
	{ "read", &read_test, 0 },
	{ "writedata", &writedata_test, 0 },
	{ NULL, NULL, 0 },
};

/* ---- one operation at a time, until it is complete here ---- */

static int completion_step(struct pp *pp, size_t size)
{
	int ret = write_step(pp, size);

	return ret ? ret : pp_flush(pp);
}

static int data_completion_step(struct pp *pp, size_t size)
{
	int ret = writedata_step(pp, size);

	return ret ? ret : pp_flush(pp);
}

static const struct pp_test completion_test = {
	.transfers = 1,
	.latency = true,
	.open = ft_exchange_regions,
	.begin = write_begin,
	.step = completion_step,
	.end = ft_rma_finish,
	.check = write_check,
};

static const struct pp_test data_completion_test = {
	.transfers = 1,
	.latency = true,
	.open = ft_exchange_regions,
	.begin = write_begin,
	.step = data_completion_step,
	.end = ft_rma_finish,
	.check = write_check,
};

const struct ft_operation ft_rma_tx_completion[] = {
	{ "write", &completion_test, 0 },
	{ "writedata", &data_completion_test, 0 },
	{ NULL, NULL, 0 },
};
