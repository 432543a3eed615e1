/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What is set on an object by and by: operation flags, options and overrides. Source: fi_endpoint(3), fi_domain(3). */
#include <stdlib.h>
#include <rdma/fi_atomic.h>

#include "ops.h"

/* ---- operation flags of an endpoint */

/* FI_GETOPSFLAG tells the flags, FI_SETOPSFLAG changes them. */
TEST_PROV(op_flags, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t, .tx_op_flags = FI_INJECT_COMPLETE);
	uint64_t flags = FI_TRANSMIT;

	MUST(fi_control(&p.a->ep->fid, FI_GETOPSFLAG, &flags));
	CHECK_EQ(flags & (FI_INJECT_COMPLETE | FI_DELIVERY_COMPLETE), FI_INJECT_COMPLETE);
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	MUST(fi_control(&p.a->ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT;
	MUST(fi_control(&p.a->ep->fid, FI_GETOPSFLAG, &flags));
	CHECK_EQ(flags & (FI_INJECT_COMPLETE | FI_DELIVERY_COMPLETE), FI_DELIVERY_COMPLETE);
	flags = FI_TRANSMIT | FI_RECV;
	CHECK(fi_control(&p.a->ep->fid, FI_GETOPSFLAG, &flags) < 0);
	check_link(p.a, p.b);
}

/* ---- options and overrides */

struct option_row {
	const char *name;
	int option;
	uint64_t caps;			/* of endpoints that have it */
	bool inject;			/* inject_size, otherwise max_msg_size */
};

static const struct option_row option_rows[] = {
	{ "max_msg", FI_OPT_MAX_MSG_SIZE, FI_MSG, false }, { "max_tagged", FI_OPT_MAX_TAGGED_SIZE, FI_TAGGED, false },
	{ "max_rma", FI_OPT_MAX_RMA_SIZE, FI_RMA, false }, { "inject_msg", FI_OPT_INJECT_MSG_SIZE, FI_MSG, true },
	{ "inject_tagged", FI_OPT_INJECT_TAGGED_SIZE, FI_TAGGED, true },
	{ "inject_rma", FI_OPT_INJECT_RMA_SIZE, FI_RMA, true },
	{ "max_atomic", FI_OPT_MAX_ATOMIC_SIZE, FI_ATOMIC, false },
	{ "inject_atomic", FI_OPT_INJECT_ATOMIC_SIZE, FI_ATOMIC, true },
};

/* The most bytes of an atomic: what the queries say of elements of eight bytes, which every provider has. */
static size_t max_atomic(struct fid_ep *ep)
{
	int (*const valid[])(struct fid_ep *, enum fi_datatype, enum fi_op, size_t *) = {
		fi_atomicvalid, fi_fetch_atomicvalid, fi_compare_atomicvalid,
	};
	size_t max = 0, count;

	for (int i = 0; i < 3; i++)
		if (!valid[i](ep, FI_UINT64, i < 2 ? FI_SUM : FI_CSWAP, &count))
			max = MAX(max, count * 8);
	return max;
}

/* Limits by kind of operation are those of the info, or no option where the endpoint lacks the kind. */
TEST_TABLE(limit_options, option_rows, FI_MSG)
{
	const struct option_row *row = ROW(option_rows);
	uint64_t caps = offered(FI_MSG | row->caps) ? FI_MSG | row->caps : FI_MSG;
	struct side *s = side_open(t, .caps = caps);
	size_t value = 0, len = sizeof(value), want;

	if (!run.ours)
		ABSENT("upstream has them in few providers");
	want = row->inject ? s->info->tx_attr->inject_size : s->info->ep_attr->max_msg_size;
	if (!(s->info->caps & row->caps)) {
		CHECK_RET(fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, row->option, &value, &len), -FI_ENOPROTOOPT);
		return;
	}
	if (row->caps == FI_ATOMIC && want > max_atomic(s->ep))
		want = max_atomic(s->ep);
	MUST(fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, row->option, &value, &len));
	CHECK_EQ(value, want);
	CHECK_EQ(len, sizeof(value));
	len = 1;
	CHECK_RET(fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, row->option, &value, &len), -FI_ETOOSMALL);
	CHECK_EQ(len, sizeof(value));
}

/* And the sizes of queues. */
TEST_PROV(size_options, FI_MSG)
{
	struct side *s = side_open(t, .tx_size = 32, .rx_size = 64);
	size_t value = 0, len = sizeof(value);

	if (!run.ours)
		ABSENT("upstream does not have them");
	MUST(fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_TX_SIZE, &value, &len));
	CHECK_EQ(value, s->info->tx_attr->size);
	MUST(fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_RX_SIZE, &value, &len));
	CHECK_EQ(value, s->info->rx_attr->size);
}

/* How much more can be posted, as programs of 1.x ask. */
TEST_PROV(sizes_left, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t, .tx_size = 32, .rx_size = 64, .raw_cq = true);
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	ssize_t left;
	char in;

	if (!run.ours)
		ABSENT("upstream has them in few providers");
	if (!p.a->info->tx_attr->inject_size)
		ABSENT("inject_size is 0");
	CHECK_EQ(p.b->ep->ops->tx_size_left(p.b->ep), p.b->info->tx_attr->size);
	left = p.b->ep->ops->rx_size_left(p.b->ep);
	CHECK(left > 0 && (size_t) left <= p.b->info->rx_attr->size);
	post_recv(p.b, &in, 1);
	CHECK_EQ(p.b->ep->ops->rx_size_left(p.b->ep), left - 1);
	MUST((int) fi_inject(p.a->ep, "x", 1, p.a->peer));
	while (p.b->ep->ops->rx_size_left(p.b->ep) != left) {
		fi_cq_read(p.b->rx_cq, &entry, 1);
		wait_more(t, &w, "the receive to have its place again");
	}
}

static ssize_t no_copy_from(void *dest, size_t size, enum fi_hmem_iface iface, uint64_t device,
			    const struct iovec *iov, size_t cnt, uint64_t offset)
{
	(void) dest, (void) size, (void) iface, (void) device, (void) iov, (void) cnt, (void) offset;
	abort();
}

static ssize_t no_copy_to(enum fi_hmem_iface iface, uint64_t device, const struct iovec *iov, size_t cnt,
			  uint64_t offset, const void *src, size_t size)
{
	(void) iface, (void) device, (void) iov, (void) cnt, (void) offset, (void) src, (void) size;
	abort();
}

/* Copies from and to device memory can be overridden; where there is none, nobody calls them. */
TEST_PROV(hmem_override, FI_MSG)
{
	struct fi_hmem_override_ops ops = {
		.size = sizeof(ops), .copy_from_hmem_iov = no_copy_from, .copy_to_hmem_iov = no_copy_to,
	}, part;
	struct pair p = pair_open(t);

	if (!run.ours)
		ABSENT("upstream has it where it has device memory");
	if (hmem_on())
		ABSENT("there is; hmem_copies/copy_functions_of_the_program");
	MUST(fi_set_ops(&p.a->domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &ops, NULL));
	CHECK_RET(fi_set_ops(&p.a->domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 1, &ops, NULL), -FI_EBADFLAGS);
	CHECK_RET(fi_set_ops(&p.a->domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, NULL, NULL), -FI_EINVAL);
	CHECK_RET(fi_set_ops(&p.a->domain->fid, "no such ops", 0, &ops, NULL), -FI_ENOSYS);
	note("members that are missing");
	part = ops;
	part.copy_from_hmem_iov = NULL;
	CHECK_RET(fi_set_ops(&p.a->domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &part, NULL), -FI_EINVAL);
	part = ops;
	part.copy_to_hmem_iov = NULL;
	CHECK_RET(fi_set_ops(&p.a->domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &part, NULL), -FI_EINVAL);
	part = ops;
	part.size = sizeof(part) - 1;
	CHECK_RET(fi_set_ops(&p.a->domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &part, NULL), -FI_EINVAL);
	part.size = sizeof(part) + 8;		/* of a later release */
	MUST(fi_set_ops(&p.a->domain->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &part, NULL));
	check_link(p.a, p.b);
}
