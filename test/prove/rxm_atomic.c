/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An atomic in a packet of rxm: what is decoded lies within the packet, whatever its length.
 *
 * eva: -eva-slevel 100
 */
#include "prove.h"
#include "rxm/atomic.c"

/*@ assigns \result \from kind, datatype, op;
  @ ensures \result == 0 || \result == 1;
  @*/
bool fab_atomic_valid(enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op);
/*@ assigns \result \from datatype;
  @ ensures 1 <= \result <= 32;
  @*/
size_t fab_atomic_size(enum fi_datatype datatype);

/* A packet as long as two vectors of the most bytes, with the descriptions of all targets; its end is the array's. */
static _Alignas(8) uint8_t mem[sizeof(struct rxm_pkt) + sizeof(struct rxm_amo) + 2 * RXM_AMO_MAX];

static void prove_len(size_t len, uint8_t kind)
{
	struct rxm_pkt *pkt = (struct rxm_pkt *) (mem + sizeof(mem) - sizeof(*pkt) - len);
	struct request req;

	any_bytes(mem, sizeof(mem));
	pkt->op.op = kind;
	if (decode(&req, pkt, len) != 0)
		return;
	prove(req.len <= RXM_AMO_MAX);
	prove(req.ioc_cnt <= RXM_IOV_MAX);
	prove(req.kind <= FAB_ATOMIC_COMPARE);
}

int main(void)
{
	//@ loop unroll 8;
	for (uint8_t kind = RXM_OP_AMO - 1; kind <= RXM_OP_AMO_COMPARE + 1; kind++) {
		//@ loop unroll 300;
		for (size_t len = 0; len <= sizeof(struct rxm_amo) + 64; len += 8)
			prove_len(len, kind);
		prove_len(sizeof(struct rxm_amo) + 2 * RXM_AMO_MAX, kind);
	}
	reached();
	return 0;
}
