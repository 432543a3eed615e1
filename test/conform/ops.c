/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Posting any operation, and the memory regions that RMA needs. */
#define CONFORM_INSIDE
#include "ops.h"

#include <stdlib.h>
#include <string.h>

#include "slot.h"

const struct call_info calls[CALL_CNT] = {
	[SEND] = { .name = "fi_send", .caps = FI_MSG },
	[SENDV] = { "fi_sendv", FI_MSG, .iov = true },
	[SENDMSG] = { "fi_sendmsg", FI_MSG, .iov = true, .msg = true },
	[INJECT] = { "fi_inject", FI_MSG, .inject = true },
	[SENDDATA] = { "fi_senddata", FI_MSG, .data = true },
	[INJECTDATA] = { "fi_injectdata", FI_MSG, .inject = true, .data = true },
	[TSEND] = { .name = "fi_tsend", .caps = FI_TAGGED },
	[TSENDV] = { "fi_tsendv", FI_TAGGED, .iov = true },
	[TSENDMSG] = { "fi_tsendmsg", FI_TAGGED, .iov = true, .msg = true },
	[TINJECT] = { "fi_tinject", FI_TAGGED, .inject = true },
	[TSENDDATA] = { "fi_tsenddata", FI_TAGGED, .data = true },
	[TINJECTDATA] = { "fi_tinjectdata", FI_TAGGED, .inject = true, .data = true },
	[RECV] = { "fi_recv", FI_MSG, .recv = true },
	[RECVV] = { "fi_recvv", FI_MSG, .recv = true, .iov = true },
	[RECVMSG] = { "fi_recvmsg", FI_MSG, .recv = true, .iov = true, .msg = true },
	[TRECV] = { "fi_trecv", FI_TAGGED, .recv = true },
	[TRECVV] = { "fi_trecvv", FI_TAGGED, .recv = true, .iov = true },
	[TRECVMSG] = { "fi_trecvmsg", FI_TAGGED, .recv = true, .iov = true, .msg = true },
	[WRITE] = { .name = "fi_write", .caps = FI_RMA },
	[WRITEV] = { "fi_writev", FI_RMA, .iov = true },
	[WRITEMSG] = { "fi_writemsg", FI_RMA, .iov = true, .msg = true },
	[INJECT_WRITE] = { "fi_inject_write", FI_RMA, .inject = true },
	[WRITEDATA] = { "fi_writedata", FI_RMA, .data = true },
	[INJECT_WRITEDATA] = { "fi_inject_writedata", FI_RMA, .inject = true, .data = true },
	[READ] = { .name = "fi_read", .caps = FI_RMA },
	[READV] = { "fi_readv", FI_RMA, .iov = true },
	[READMSG] = { "fi_readmsg", FI_RMA, .iov = true, .msg = true },
};

/* ---- contexts */

#define SLOTS 256

struct slots {
	struct slots *next;
	size_t used;
	struct slot slot[SLOTS];
};

static struct slot *slot_new(struct side *s)
{
	struct slots *chunk = s->slots;

	if (!chunk || chunk->used == SLOTS) {
		chunk = mem(s->t, sizeof(*chunk));
		chunk->next = s->slots;
		s->slots = chunk;
	}
	return &chunk->slot[chunk->used++];
}

struct slot *slot_find(struct side *s, const void *ctx)
{
	const struct slot *slot = ctx;
	struct slots *chunk;

	for (chunk = s->slots; chunk; chunk = chunk->next) {
		if (slot >= chunk->slot && slot < chunk->slot + chunk->used)
			return &chunk->slot[slot - chunk->slot];
	}
	return NULL;
}

/* ---- local registration */

struct local {
	struct local *next;
	const uint8_t *buf;
	size_t len;
	struct fid_mr *mr;
	bool device;			/* buf is an address of the device */
};

void *desc_for(struct side *s, const void *buf, size_t len)
{
	struct local *l;
	int ret;

	if (!(s->info->domain_attr->mr_mode & FI_MR_LOCAL) || !buf || !len)
		return NULL;
	for (l = s->locals; l; l = l->next) {
		if (!l->device && l->buf <= (const uint8_t *) buf && (const uint8_t *) buf + len <= l->buf + l->len)
			return fi_mr_desc(l->mr);
	}
	l = mem(s->t, sizeof(*l));
	*l = (struct local) { .next = s->locals, .buf = buf, .len = len };
	ret = fi_mr_reg(s->domain, buf, len, FI_SEND | FI_RECV | FI_READ | FI_WRITE, 0, ++s->t->key, 0, &l->mr, NULL);
	if (ret == -FI_EFAULT)		/* a constant, which a kernel's device may only read */
		ret = fi_mr_reg(s->domain, buf, len, FI_SEND | FI_WRITE, 0, ++s->t->key, 0, &l->mr, NULL);
	MUST(ret);
	own_fid(s->t, &l->mr->fid);
	region_ready(s, l->mr);
	s->locals = l;
	return fi_mr_desc(l->mr);
}

/* True if the side was opened for it: tests may open one with an entry of their own. */
static bool knows_device(const struct side *s)
{
	return (s->info->caps & FI_HMEM) && (s->info->domain_attr->mr_mode & FI_MR_HMEM) &&
	       FI_VERSION_GE(s->fabric->api_version, FI_VERSION(1, 9));
}

void *device_desc(struct side *s, struct iovec *iov, void *desc)
{
	void *addr = iov->iov_len && knows_device(s) ? hmem_addr(iov->iov_base) : NULL;
	struct local *l;

	if (!addr)
		return desc;
	for (l = s->locals; l; l = l->next) {
		if (l->device && l->buf <= (uint8_t *) addr && (uint8_t *) addr + iov->iov_len <= l->buf + l->len)
			break;
	}
	if (!l) {
		const struct iovec whole = hmem_whole(iov->iov_base);

		l = mem(s->t, sizeof(*l));
		*l = (struct local) {
			.next = s->locals, .buf = hmem_addr(whole.iov_base), .len = whole.iov_len, .device = true,
		};
		MUST(hmem_reg(s->domain, whole.iov_base, whole.iov_len, FI_SEND | FI_RECV | FI_READ | FI_WRITE,
			      0x4000 + ++s->t->key, &l->mr));	/* tests choose lower ones */
		own_fid(s->t, &l->mr->fid);
		region_ready(s, l->mr);
		s->locals = l;
	}
	iov->iov_base = addr;
	return fi_mr_desc(l->mr);
}

void locals_close(struct side *s)
{
	for (; s->locals; s->locals = s->locals->next)
		close_now(s->t, &s->locals->mr->fid);
}

/* ---- room in front of messages, for FI_MSG_PREFIX: the test's buffers have none, so they are copied */

struct prefixed {
	struct prefixed *next;
	void *ctx;
	uint8_t *buf;			/* with the prefix */
	struct iovec to;		/* the test's: the first one of several */
};

/* A buffer that has room in front, and then what the first of the operation's has. */
static uint8_t *with_room(struct side *s, const struct iovec *first)
{
	size_t prefix = s->info->ep_attr->msg_prefix_size;
	uint8_t *buf = mem(s->t, prefix + first->iov_len + 1);

	if (first->iov_len)
		memcpy(buf + prefix, first->iov_base, first->iov_len);
	return buf;
}

static void remember(struct side *s, void *ctx, uint8_t *buf, const struct iovec *first)
{
	struct prefixed *p = mem(s->t, sizeof(*p));

	*p = (struct prefixed) { .ctx = ctx, .buf = buf, .to = *first };
	*s->prefixed_end = p;
	s->prefixed_end = &p->next;
}

/* The operation with room in front, where that is wanted: *out, or the operation as it is. */
static const struct op *prefixed(struct side *s, const struct op *op, void *ctx, struct op *out)
{
	struct iovec first = { .iov_base = (void *) op->buf, .iov_len = op->len }, *iov;
	uint8_t *buf;

	if (!(s->info->mode & FI_MSG_PREFIX) || calls[op->call].caps != FI_MSG || (op->iov && !op->iov_cnt))
		return op;
	if (op->iov)
		first = op->iov[0];
	buf = with_room(s, &first);
	*out = *op;
	out->buf = buf;
	out->len = first.iov_len + s->info->ep_attr->msg_prefix_size;
	if (op->iov) {
		iov = mem(s->t, op->iov_cnt * sizeof(*iov));
		memcpy(iov, op->iov, op->iov_cnt * sizeof(*iov));
		iov[0] = (struct iovec) { .iov_base = buf, .iov_len = out->len };
		out->iov = iov;
	}
	if (calls[op->call].recv)
		remember(s, ctx, buf, &first);
	return out;
}

void prefix_took(struct side *s, struct comp *c)
{
	size_t prefix = s->info->ep_attr->msg_prefix_size, len;
	struct prefixed **link = &s->prefixed, *p;

	while (*link && (*link)->ctx != c->ctx)
		link = &(*link)->next;
	p = *link;
	if (!p)
		return;
	*link = p->next;
	if (!p->next)
		s->prefixed_end = link;
	len = c->len < prefix ? 0 : MIN(c->len - prefix, p->to.iov_len);
	if (len)
		memcpy(p->to.iov_base, p->buf + prefix, len);
	c->len -= MIN(c->len, prefix);
}

/* ---- calls */

/* What every call is made of, defaults filled in. */
struct full {
	const struct op *op;
	struct iovec one;
	const struct iovec *iov;
	void *desc[16];
	const void *buf;
	struct iovec device[16];
	size_t iov_cnt;
	struct fi_rma_iov rma_one;
	const struct fi_rma_iov *rma;
	size_t rma_cnt;
	fi_addr_t addr;
	void *ctx;
};

static size_t iov_bytes(const struct iovec *iov, size_t cnt)
{
	size_t i, len = 0;

	for (i = 0; i < cnt; i++)
		len += iov[i].iov_len;
	return len;
}

static bool reads_back(enum call call)
{
	return calls[call].recv || call == READ || call == READV || call == READMSG;
}

/* What is sent from elsewhere is copied to the device before. */
static void copied(struct side *s, struct iovec *iov)
{
	void *copy;

	if (!iov->iov_base || !iov->iov_len || hmem_addr(iov->iov_base))
		return;
	copy = mem(s->t, iov->iov_len);
	memcpy(copy, iov->iov_base, iov->iov_len);
	iov->iov_base = copy;
}

/* Buffers in memory of the device, by its addresses. */
static void on_device(struct full *f, struct side *s)
{
	size_t i;

	for (i = 0; i < f->iov_cnt; i++)
		f->device[i] = f->iov[i];
	for (i = 0; i < f->iov_cnt && !reads_back(f->op->call); i++)
		copied(s, &f->device[i]);
	for (i = 0; i < f->iov_cnt; i++)
		f->desc[i] = device_desc(s, &f->device[i], f->desc[i]);
	f->iov = f->device;
	if (f->iov_cnt == 1 && !f->op->iov)
		f->buf = f->device[0].iov_base;
}

static void fill_in(struct full *f, struct side *s, const struct op *op, void *ctx)
{
	size_t i;

	*f = (struct full) { .op = op, .ctx = ctx };
	f->addr = op->addr ? *op->addr : calls[op->call].recv ? FI_ADDR_UNSPEC : s->peer;
	f->one = (struct iovec) { .iov_base = (void *) op->buf, .iov_len = op->len };
	f->iov = op->iov ? op->iov : &f->one;
	f->iov_cnt = op->iov ? op->iov_cnt : 1;
	for (i = 0; i < MIN(f->iov_cnt, COUNT(f->desc)); i++)
		f->desc[i] = desc_for(s, f->iov[i].iov_base, f->iov[i].iov_len);
	f->buf = op->buf;
	if (hmem_on() && knows_device(s) && (strcmp(run.prov, "verbs") || !(op->flags & FI_INJECT)) &&
	    !calls[op->call].inject && f->iov_cnt <= COUNT(f->device))
		on_device(f, s);
	f->rma_one = (struct fi_rma_iov) { .addr = op->raddr, .key = op->key, .len = iov_bytes(f->iov, f->iov_cnt) };
	f->rma = op->rma_iov ? op->rma_iov : &f->rma_one;
	f->rma_cnt = op->rma_iov ? op->rma_cnt : 1;
}

static ssize_t call_msg(struct fid_ep *ep, const struct full *f)
{
	const struct op *o = f->op;
	struct fi_msg m = { .msg_iov = f->iov, .desc = (void **) f->desc, .iov_count = f->iov_cnt, .addr = f->addr,
			    .context = f->ctx, .data = o->data };

	switch (o->call) {
	case SEND:
		return fi_send(ep, f->buf, o->len, f->desc[0], f->addr, f->ctx);
	case SENDV:
		return fi_sendv(ep, f->iov, (void **) f->desc, f->iov_cnt, f->addr, f->ctx);
	case SENDMSG:
		return fi_sendmsg(ep, &m, o->flags);
	case INJECT:
		return fi_inject(ep, o->buf, o->len, f->addr);
	case SENDDATA:
		return fi_senddata(ep, f->buf, o->len, f->desc[0], o->data, f->addr, f->ctx);
	case INJECTDATA:
		return fi_injectdata(ep, o->buf, o->len, o->data, f->addr);
	case RECV:
		return fi_recv(ep, (void *) f->buf, o->len, f->desc[0], f->addr, f->ctx);
	case RECVV:
		return fi_recvv(ep, f->iov, (void **) f->desc, f->iov_cnt, f->addr, f->ctx);
	default:
		return fi_recvmsg(ep, &m, o->flags);
	}
}

static ssize_t call_tagged(struct fid_ep *ep, const struct full *f)
{
	const struct op *o = f->op;
	struct fi_msg_tagged m = { .msg_iov = f->iov, .desc = (void **) f->desc, .iov_count = f->iov_cnt,
				   .addr = f->addr, .tag = o->tag, .ignore = o->ignore, .context = f->ctx,
				   .data = o->data };

	switch (o->call) {
	case TSEND:
		return fi_tsend(ep, f->buf, o->len, f->desc[0], f->addr, o->tag, f->ctx);
	case TSENDV:
		return fi_tsendv(ep, f->iov, (void **) f->desc, f->iov_cnt, f->addr, o->tag, f->ctx);
	case TSENDMSG:
		return fi_tsendmsg(ep, &m, o->flags);
	case TINJECT:
		return fi_tinject(ep, o->buf, o->len, f->addr, o->tag);
	case TSENDDATA:
		return fi_tsenddata(ep, f->buf, o->len, f->desc[0], o->data, f->addr, o->tag, f->ctx);
	case TINJECTDATA:
		return fi_tinjectdata(ep, o->buf, o->len, o->data, f->addr, o->tag);
	case TRECV:
		return fi_trecv(ep, (void *) f->buf, o->len, f->desc[0], f->addr, o->tag, o->ignore, f->ctx);
	case TRECVV:
		return fi_trecvv(ep, f->iov, (void **) f->desc, f->iov_cnt, f->addr, o->tag, o->ignore, f->ctx);
	default:
		return fi_trecvmsg(ep, &m, o->flags);
	}
}

static ssize_t call_rma(struct fid_ep *ep, const struct full *f)
{
	const struct op *o = f->op;
	struct fi_msg_rma m = { .msg_iov = f->iov, .desc = (void **) f->desc, .iov_count = f->iov_cnt, .addr = f->addr,
				.rma_iov = f->rma, .rma_iov_count = f->rma_cnt, .context = f->ctx, .data = o->data };

	switch (o->call) {
	case WRITE:
		return fi_write(ep, f->buf, o->len, f->desc[0], f->addr, o->raddr, o->key, f->ctx);
	case WRITEV:
		return fi_writev(ep, f->iov, (void **) f->desc, f->iov_cnt, f->addr, o->raddr, o->key, f->ctx);
	case WRITEMSG:
		return fi_writemsg(ep, &m, o->flags);
	case INJECT_WRITE:
		return fi_inject_write(ep, o->buf, o->len, f->addr, o->raddr, o->key);
	case WRITEDATA:
		return fi_writedata(ep, f->buf, o->len, f->desc[0], o->data, f->addr, o->raddr, o->key, f->ctx);
	case INJECT_WRITEDATA:
		return fi_inject_writedata(ep, o->buf, o->len, o->data, f->addr, o->raddr, o->key);
	case READ:
		return fi_read(ep, (void *) f->buf, o->len, f->desc[0], f->addr, o->raddr, o->key, f->ctx);
	case READV:
		return fi_readv(ep, f->iov, (void **) f->desc, f->iov_cnt, f->addr, o->raddr, o->key, f->ctx);
	default:
		return fi_readmsg(ep, &m, o->flags);
	}
}

static ssize_t call(struct side *s, const struct op *op, void *ctx)
{
	struct full f;

	fill_in(&f, s, op, ctx);
	switch (calls[op->call].caps) {
	case FI_MSG:
		return call_msg(s->ep, &f);
	case FI_TAGGED:
		return call_tagged(s->ep, &f);
	default:
		return call_rma(s->ep, &f);
	}
}

static void *own_ctx(struct side *s, const struct op *op)
{
	struct slot *slot;

	if (op->ctx || calls[op->call].inject)
		return op->ctx;
	slot = slot_new(s);
	slot->call = op->call;
	slot->buf = op->iov ? op->iov[0].iov_base : (void *) op->buf;
	slot->many = op->flags & FI_MULTI_RECV;
	return slot;
}

/* With the side whose queues the completion will come to. */
static ssize_t counted(struct side *s, const struct op *op, ssize_t ret)
{
	if (!ret && !calls[op->call].recv)
		(s->o.cq_of ? s->o.cq_of : s)->tx_posted++;
	return ret;
}

ssize_t try_op_with(struct side *s, const struct op *op)
{
	void *ctx = own_ctx(s, op);
	struct op room;

	return counted(s, op, call(s, prefixed(s, op, ctx, &room), ctx));
}

/* The same context for each attempt; -FI_EAGAIN drives all sides, within the deadline. */
static ssize_t insist(struct side *s, const struct op *op, void *ctx)
{
	struct wait w = wait_begin();
	struct op room;
	ssize_t ret;

	op = prefixed(s, op, ctx, &room);
	while ((ret = call(s, op, ctx)) == -FI_EAGAIN)
		wait_more(s->t, &w, calls[op->call].name);
	return counted(s, op, ret);
}

ssize_t post_ret_with(struct side *s, const struct op *op)
{
	return insist(s, op, own_ctx(s, op));
}

void *post_with(struct side *s, const struct op *op)
{
	void *ctx = own_ctx(s, op);
	ssize_t ret;

	if ((calls[op->call].inject || (op->flags & FI_INJECT)) && op->len > s->info->tx_attr->inject_size)
		ABSENT("inject_size is %zu", s->info->tx_attr->inject_size);
	ret = insist(s, op, ctx);
	if (ret)
		FAIL("%s of %zu bytes returned %zd (%s)", calls[op->call].name, op->len, ret, fi_strerror((int) -ret));
	return ctx;
}

void post_recv(struct side *s, void *buf, size_t len)
{
	post(s, RECV, .buf = buf, .len = len);
}

void send_bytes(struct side *s, const void *buf, size_t len)
{
	post(s, SEND, .buf = buf, .len = len);
}

int send_fails(struct side *s, fi_addr_t nobody)
{
	ssize_t ret = post_ret(s, SEND, .buf = "lost", .len = 4, .addr = &nobody);

	return ret ? (int) -ret : expect_tx_failed(s).err;
}

void post_trecv(struct side *s, void *buf, size_t len, uint64_t tag, uint64_t ignore)
{
	post(s, TRECV, .buf = buf, .len = len, .tag = tag, .ignore = ignore);
}

void tsend_bytes(struct side *s, const void *buf, size_t len, uint64_t tag)
{
	post(s, TSEND, .buf = buf, .len = len, .tag = tag);
}

void *ctx_buf(struct side *s, void *ctx)
{
	struct slot *slot = slot_find(s, ctx);

	if (!slot)
		FAIL("completion with context %p, which no operation of this side has", ctx);
	return slot->buf;
}

struct comp expect_recv(struct side *s, const void *data, size_t len)
{
	struct comp c = expect_rx(s);

	CHECK_EQ(c.len, len);
	CHECK(s->o.format < FI_CQ_FORMAT_MSG || (c.flags & FI_RECV));
	CHECK_MEM(ctx_buf(s, c.ctx), data, len);
	return c;
}

void check_link(struct side *a, struct side *b)
{
	uint8_t *in = mem(a->t, 16), *out = mem_pattern(a->t, 16, 77);
	bool tagged = !(b->info->caps & FI_MSG);

	post(b, tagged ? TRECV : RECV, .buf = in, .len = 16, .tag = 77);
	post(a, tagged ? TSEND : SEND, .buf = out, .len = 16, .tag = 77);
	expect_rx(b);
	CHECK_MEM(in, out, 16);
	expect_tx(a);
}

/* ---- memory regions */

void region_ready(struct side *s, struct fid_mr *mr)
{
	if (!(s->info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return;
	MUST(fi_mr_bind(mr, &s->ep->fid, 0));
	MUST(fi_mr_enable(mr));
}

struct region region_open(struct side *s, void *buf, size_t len, uint64_t access)
{
	struct region r = { .buf = buf ? buf : mem(s->t, len), .len = len };

	if (knows_device(s) && hmem_addr(r.buf))
		MUST(hmem_reg(s->domain, r.buf, len, access, ++s->t->key, &r.mr));
	else
		MUST(fi_mr_reg(s->domain, r.buf, len, access, 0, ++s->t->key, 0, &r.mr, NULL));
	own_fid(s->t, &r.mr->fid);
	region_ready(s, r.mr);
	r.key = fi_mr_key(r.mr);
	if (s->info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | MR_BASIC))
		r.addr = (uintptr_t) (knows_device(s) && hmem_addr(r.buf) ? hmem_addr(r.buf) : r.buf);
	return r;
}

void check_listener(struct side *listener)
{
	struct side *a = connector_open(listener->t, listener, &(struct opts) { 0 }), *b = side_connect(a, listener);

	check_link(a, b);
	side_close(a);
	side_close(b);
}

uint64_t level_delivered(void)
{
	return !strcmp(run.prov, "verbs") ? FI_TRANSMIT_COMPLETE : FI_DELIVERY_COMPLETE;
}

void wait_byte(struct test *t, const volatile uint8_t *at, uint8_t want)
{
	struct wait w = wait_begin();

	while (*at != want)
		wait_more(t, &w, "the write to arrive");
}
