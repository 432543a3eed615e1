/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Steps that transfer data: messages, tagged messages, remote reads and writes, receives; and that cancel.
 */
#include "fuzz/calls/data.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_tagged.h>

#define TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_MATCH_COMPLETE | FI_REMOTE_CQ_DATA | FI_MORE | FI_FENCE | FI_TRIGGER)
#define RX_FLAGS	(FI_COMPLETION | FI_MORE | FI_MULTI_RECV | FI_TRIGGER | FI_PEEK | FI_CLAIM | FI_DISCARD)

/* ---- arguments */

fi_addr_t an_addr(const struct obj *ep)
{
	const struct obj *av = ep->av;

	if (av && av->addr_cnt && !one_in(12)) {
		fi_addr_t addr = av->addrs[draw(av->addr_cnt)];

		return one_in(16) ? fi_rx_addr(addr, (int) draw(4), 1 + (int) draw(3)) :
		       one_in(16) ? fi_group_addr(addr, draw(100)) : addr;
	}
	return one_in(2) ? FI_ADDR_UNSPEC : draw_any();
}

bool args_memory(struct args *args, size_t len)
{
	size_t piece;

	args->cnt = one_in(3) ? draw(one_in(4) ? PIECES : 5) : 1;
	args->len = len;
	for (size_t i = 0; i < args->cnt; i++) {
		piece = i + 1 == args->cnt ? len : draw((uint32_t) len + 1);
		args->iov[i].iov_base = op_mem(args->op, piece, &args->desc[i]);
		args->iov[i].iov_len = piece;
		len -= piece;
		if (!args->iov[i].iov_base)
			return false;
	}
	args->buf = args->iov[0].iov_base;
	return true;
}

/* One of these, or with the call that has flags, some. A condition needs its context. */
static uint64_t a_flags(struct args *args, uint64_t usual)
{
	uint64_t flags = one_in(3) ? 0 : draw_bits(usual);
	struct obj *cntr = pick_beside(CNTR, args->ep);

	if (one_in(16))
		flags |= draw_bits(UINT64_MAX & ~(FI_TRIGGER | FI_CLAIM | FI_PEEK | FI_AUTH_KEY));
	if (!(flags & FI_TRIGGER))
		return flags;
	if (!cntr)
		return flags & ~FI_TRIGGER;
	args->context = args->op;
	args->op->trigger.event_type = one_in(8) ? (enum fi_trigger_event) draw(3) : FI_TRIGGER_THRESHOLD;
	if (args->op->trigger.event_type == FI_TRIGGER_XPU)
		args->op->trigger.event_type = FI_TRIGGER_THRESHOLD;
	args->op->trigger.trigger.threshold.cntr = AS(fid_cntr, cntr);
	args->op->trigger.trigger.threshold.threshold = one_in(8) ? draw_any() : draw(8);
	op_pin(args->op, cntr);
	return flags;
}

bool args_draw(struct args *args, bool tx, uint64_t flags)
{
	memset(args, 0, sizeof(*args));
	for (int i = 0; i < 4 && (!args->ep || (args->ep->kind == EP && !args->ep->enabled)); i++)
		args->ep = tx ? pick(EP) : pick_of(1U << EP | 1U << SRX);
	args->op = op_new(args->ep);
	if (!args->op)
		return false;
	args->fid = AS(fid_ep, args->ep);
	args->context = one_in(20) ? NULL : args->op;
	args->addr = tx || one_in(3) ? an_addr(args->ep) : FI_ADDR_UNSPEC;
	args->tag = one_in(8) ? draw64() : draw(4);
	args->ignore = one_in(3) ? draw_bits(UINT64_MAX) | draw(8) : one_in(4) ? UINT64_MAX : 0;
	args->data = draw64();
	args->flags = a_flags(args, flags);
	if (!args_memory(args, draw_len())) {
		args_called(args, -1, false);
		return false;
	}
	return true;
}

void args_called(struct args *args, long long ret, bool inject)
{
	op_called(args->op, ret, inject);
}

static uint64_t remote_addr(const struct obj *mr, size_t len, size_t *fits)
{
	int mode = mr->info->domain_attr->mr_mode;
	uint64_t base = mode & FI_MR_VIRT_ADDR || mode == FI_MR_BASIC ? (uintptr_t) mr->mem : 0;
	size_t at = draw((uint32_t) mr->len + 1);

	if (one_in(8))
		return base + (one_in(2) ? draw_any() : at);
	if (len < mr->len)
		at = draw((uint32_t) (mr->len - len) + 1);
	else
		at = 0;
	*fits = len < mr->len ? len : mr->len;
	return base + at;
}

void args_draw_remote(struct args *args)
{
	struct obj *mr = pick(MR);
	size_t left = args->len, piece;

	args->raddr = draw_any();
	args->key = draw_any();
	if (mr && !one_in(12)) {
		args->key = fi_mr_key(AS(fid_mr, mr));
		args->raddr = remote_addr(mr, args->len, &piece);
	}
	args->rma_cnt = one_in(4) ? draw(one_in(4) ? PIECES : 4) : 1;
	for (size_t i = 0; i < args->rma_cnt; i++) {
		piece = i + 1 == args->rma_cnt ? left : draw((uint32_t) left + 1);
		args->rma[i] = (struct fi_rma_iov) { args->raddr + (args->len - left), piece, args->key };
		left -= piece;
	}
	if (one_in(20) && args->rma_cnt)
		args->rma[0].len = draw_any();
}

/* ---- messages */

#define TOLD	"(ep %u, op %#lx, %zu bytes in %zu, addr %#llx, tag %#llx, flags %#llx)"
#define TELL(args)									\
	(args)->ep->id, (unsigned long) (uintptr_t) (args)->op, (args)->len, (args)->cnt,	\
	(unsigned long long) (args)->addr, (unsigned long long) (args)->tag, (unsigned long long) (args)->flags

void step_send(void)
{
	struct args a;
	struct fi_msg msg;
	uint32_t way = draw(8);
	void *desc;
	long long ret = -1;

	if (!args_draw(&a, true, TX_FLAGS))
		return;
	desc = a.desc[0];
	msg = (struct fi_msg) { .msg_iov = a.iov, .desc = a.desc, .iov_count = a.cnt, .addr = a.addr,
			       .context = a.context,
				.data = a.data };
	if (way && way < 5)
		a.len = a.iov[0].iov_len;
	switch (way) {
	case 0:
		ret = CALL(fi_sendv(a.fid, a.iov, a.desc, a.cnt, a.addr, a.context), "fi_sendv" TOLD, TELL(&a));
		break;
	case 1:
		ret = CALL(fi_send(a.fid, a.buf, a.len, desc, a.addr, a.context), "fi_send" TOLD, TELL(&a));
		break;
	case 2:
		ret = CALL(fi_senddata(a.fid, a.buf, a.len, desc, a.data, a.addr, a.context), "fi_senddata" TOLD,
			   TELL(&a));
		break;
	case 3:
		ret = CALL(fi_inject(a.fid, a.buf, a.len, a.addr), "fi_inject" TOLD, TELL(&a));
		break;
	case 4:
		ret = CALL(fi_injectdata(a.fid, a.buf, a.len, a.data, a.addr), "fi_injectdata" TOLD, TELL(&a));
		break;
	default:
		ret = CALL(fi_sendmsg(a.fid, &msg, a.flags), "fi_sendmsg" TOLD, TELL(&a));
		args_called(&a, ret, a.flags & FI_INJECT);
		return;
	}
	args_called(&a, ret, way == 3 || way == 4);
}

void step_tsend(void)
{
	struct args a;
	struct fi_msg_tagged msg;
	uint32_t way = draw(8);
	void *desc;
	long long ret;

	if (!args_draw(&a, true, TX_FLAGS))
		return;
	desc = a.desc[0];
	msg = (struct fi_msg_tagged) { .msg_iov = a.iov, .desc = a.desc, .iov_count = a.cnt, .addr = a.addr,
				      .tag = a.tag,
				       .ignore = a.ignore, .context = a.context, .data = a.data };
	if (way && way < 5)
		a.len = a.iov[0].iov_len;
	switch (way) {
	case 0:
		ret = CALL(fi_tsendv(a.fid, a.iov, a.desc, a.cnt, a.addr, a.tag, a.context), "fi_tsendv" TOLD,
			   TELL(&a));
		break;
	case 1:
		ret = CALL(fi_tsend(a.fid, a.buf, a.len, desc, a.addr, a.tag, a.context), "fi_tsend" TOLD, TELL(&a));
		break;
	case 2:
		ret = CALL(fi_tsenddata(a.fid, a.buf, a.len, desc, a.data, a.addr, a.tag, a.context),
			   "fi_tsenddata" TOLD,
			   TELL(&a));
		break;
	case 3:
		ret = CALL(fi_tinject(a.fid, a.buf, a.len, a.addr, a.tag), "fi_tinject" TOLD, TELL(&a));
		break;
	case 4:
		ret = CALL(fi_tinjectdata(a.fid, a.buf, a.len, a.data, a.addr, a.tag), "fi_tinjectdata" TOLD, TELL(&a));
		break;
	default:
		ret = CALL(fi_tsendmsg(a.fid, &msg, a.flags), "fi_tsendmsg" TOLD, TELL(&a));
		args_called(&a, ret, a.flags & FI_INJECT);
		return;
	}
	args_called(&a, ret, way == 3 || way == 4);
}

/* An endpoint takes FI_MULTI_RECV also from its own flags. */
static void is_receive(struct args *a, bool with_flags)
{
	uint64_t flags = with_flags ? a->flags : a->ep->info ? a->ep->info->rx_attr->op_flags : 0;

	a->op->many = flags & FI_MULTI_RECV || a->ep->odd_flags;
}

void step_recv(void)
{
	struct args a;
	struct fi_msg msg;
	uint32_t way = draw(4);
	long long ret;

	if (!args_draw(&a, false, RX_FLAGS & ~(FI_PEEK | FI_CLAIM | FI_DISCARD)))
		return;
	msg = (struct fi_msg) { .msg_iov = a.iov, .desc = a.desc, .iov_count = a.cnt, .addr = a.addr,
			       .context = a.context };
	is_receive(&a, way > 1);
	if (!way)
		ret = CALL(fi_recv(a.fid, a.buf, a.iov[0].iov_len, a.desc[0], a.addr, a.context), "fi_recv" TOLD,
			   TELL(&a));
	else if (way == 1)
		ret = CALL(fi_recvv(a.fid, a.iov, a.desc, a.cnt, a.addr, a.context), "fi_recvv" TOLD, TELL(&a));
	else
		ret = CALL(fi_recvmsg(a.fid, &msg, a.flags), "fi_recvmsg" TOLD, TELL(&a));
	args_called(&a, ret, false);
}

/* A message that was claimed is received or dropped with the context of the claim. */
static bool receive_claimed(void)
{
	struct op *op = op_claimed();
	struct args a = { .op = op };
	struct fi_msg_tagged msg = { .context = op };

	if (!op)
		return false;
	a.flags = FI_CLAIM | (one_in(3) ? FI_DISCARD : 0);
	a.ep = op->obj;
	if (!args_memory(&a, draw_len()))
		return false;
	msg.msg_iov = a.iov;
	msg.desc = a.desc;
	msg.iov_count = a.cnt;
	op->claimed = false;
	args_called(&a, CALL(fi_trecvmsg(AS(fid_ep, a.ep), &msg, a.flags), "fi_trecvmsg" TOLD, TELL(&a)), false);
	return true;
}

void step_trecv(void)
{
	struct args a;
	struct fi_msg_tagged msg;
	uint32_t way = draw(4);
	long long ret;

	if (one_in(4) && receive_claimed())
		return;
	if (!args_draw(&a, false, RX_FLAGS))
		return;
	if (!(a.flags & FI_PEEK))
		a.flags &= ~FI_CLAIM;
	msg = (struct fi_msg_tagged) { .msg_iov = a.iov, .desc = a.desc, .iov_count = a.cnt, .addr = a.addr,
				      .tag = a.tag,
				       .ignore = a.ignore, .context = a.context };
	if (a.flags & FI_CLAIM)
		msg.context = a.op;
	is_receive(&a, way > 1);
	a.op->claims = way > 1 && a.flags & FI_CLAIM && !(a.flags & FI_DISCARD);
	if (!way)
		ret = CALL(fi_trecv(a.fid, a.buf, a.iov[0].iov_len, a.desc[0], a.addr, a.tag, a.ignore, a.context),
			   "fi_trecv" TOLD, TELL(&a));
	else if (way == 1)
		ret = CALL(fi_trecvv(a.fid, a.iov, a.desc, a.cnt, a.addr, a.tag, a.ignore, a.context), "fi_trecvv" TOLD,
			   TELL(&a));
	else
		ret = CALL(fi_trecvmsg(a.fid, &msg, a.flags), "fi_trecvmsg" TOLD, TELL(&a));
	args_called(&a, ret, false);
}

/* ---- remote memory */

static long long write_one(struct args *a, const struct fi_msg_rma *msg, uint32_t way)
{
	switch (way) {
	case 0:
		return CALL(fi_writev(a->fid, a->iov, a->desc, a->cnt, a->addr, a->raddr, a->key, a->context),
			    "fi_writev" TOLD, TELL(a));
	case 1:
		return CALL(fi_write(a->fid, a->buf, a->iov[0].iov_len, a->desc[0], a->addr, a->raddr, a->key,
				     a->context),
			    "fi_write" TOLD, TELL(a));
	case 2:
		return CALL(fi_writedata(a->fid, a->buf, a->iov[0].iov_len, a->desc[0], a->data, a->addr, a->raddr,
					 a->key,
					 a->context), "fi_writedata" TOLD, TELL(a));
	case 3:
		return CALL(fi_inject_write(a->fid, a->buf, a->iov[0].iov_len, a->addr, a->raddr, a->key),
			    "fi_inject_write" TOLD, TELL(a));
	case 4:
		return CALL(fi_inject_writedata(a->fid, a->buf, a->iov[0].iov_len, a->data, a->addr, a->raddr, a->key),
			    "fi_inject_writedata" TOLD, TELL(a));
	default:
		return CALL(fi_writemsg(a->fid, msg, a->flags), "fi_writemsg" TOLD, TELL(a));
	}
}

static long long read_one(struct args *a, const struct fi_msg_rma *msg, uint32_t way)
{
	switch (way) {
	case 0:
		return CALL(fi_readv(a->fid, a->iov, a->desc, a->cnt, a->addr, a->raddr, a->key, a->context),
			    "fi_readv" TOLD, TELL(a));
	case 1:
		return CALL(fi_read(a->fid, a->buf, a->iov[0].iov_len, a->desc[0], a->addr, a->raddr, a->key,
				    a->context),
			    "fi_read" TOLD, TELL(a));
	default:
		return CALL(fi_readmsg(a->fid, msg, a->flags), "fi_readmsg" TOLD, TELL(a));
	}
}

void step_rma(void)
{
	struct args a;
	struct fi_msg_rma msg;
	bool reads = one_in(2);
	uint32_t way = draw(8);
	long long ret;

	if (!args_draw(&a, true, reads ? FI_COMPLETION | FI_FENCE | FI_MORE | FI_TRIGGER : TX_FLAGS))
		return;
	args_draw_remote(&a);
	if (reads)
		a.flags &= ~FI_INJECT;
	msg = (struct fi_msg_rma) { .msg_iov = a.iov, .desc = a.desc, .iov_count = a.cnt, .addr = a.addr,
				   .rma_iov = a.rma,
				    .rma_iov_count = a.rma_cnt, .context = a.context, .data = a.data };
	ret = reads ? read_one(&a, &msg, way) : write_one(&a, &msg, way);
	args_called(&a, ret, !reads && (way == 3 || way == 4 || (way > 4 && a.flags & FI_INJECT)));
}

void step_cancel(void)
{
	struct op *op = op_any();
	struct obj *ep = op && op->obj && !one_in(8) ? op->obj : pick_of(1U << EP | 1U << SRX);

	if (ep)
		CALL(fi_cancel(ep->fid, one_in(12) ? NULL : op), "fi_cancel(ep %u, %#lx)", ep->id,
		     (unsigned long) (uintptr_t) op);
}
