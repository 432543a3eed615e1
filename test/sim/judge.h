/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The operations of a program, and the promises of libfabric about each. The judge expects no order of events; it knows
 * what must not happen. A broken promise ends the program by judge_wrong().
 */
#ifndef TEST_SIM_JUDGE_H
#define TEST_SIM_JUDGE_H

#include <rdma/fabric.h>
#include "sim/net.h"
#include "sim/play.h"

#define OPS		(ACTIONS_MAX + 4096)
#define SLOTS		4
#define SLOT_LEN	100000
#define CELLS_LEN	512			/* bytes that the atomics of one node reach at another */
#define LEN_MIN		sizeof(uint32_t)	/* a message begins with the number of its operation */
#define GUARD_LEN	16

struct op {
	uint8_t kind;			/* enum action_kind */
	uint8_t node, peer;
	uint8_t way;			/* enum way, peek or amo */
	uint8_t tx, rx;			/* contexts (node.h): of the sender, and of the receiver */
	bool posted, ended, gone;	/* gone: its process was killed */
	bool cancelled;			/* fi_cancel() was asked for it */
	bool to_claim;			/* a peek has claimed a message */
	bool claimed;			/* the second step of a claim */
	int err;
	uint32_t life, peer_life;	/* of both processes, when it was posted */
	uint32_t len, tag, ignore, slot;
	uint32_t got;			/* a send: the receive that took it, + 1 */
	uint32_t expect;		/* a read: the write that it must see, + 1 */
	bool sure;			/* a read: that write is there, whatever has failed before */
	uint32_t peeked_len, peeked_tag;
	uint8_t *want;			/* an atomic: its result; then its operands, and what it compares with */
	uint8_t *buf;			/* of len bytes, and a guard */
};

/* The memory of a node that the others reach; the guard is not registered. */
struct memory {
	uint8_t slots[NET_NODES][SLOTS][SLOT_LEN];
	struct {
		uint8_t of[NET_NODES][CELLS_LEN];
		uint64_t cnt;			/* that all add to */
		uint8_t guard[SLOT_LEN];
	} cells;
};

/* A completion: of a receive, its message. */
struct ending {
	int err;			/* 0, or FI_E* */
	const uint8_t *buf;
	uint64_t flags, len, olen, tag, data;
	fi_addr_t src;			/* FI_ADDR_NOTAVAIL: not told */
};

extern struct op ops[OPS];
extern uint32_t op_cnt;
extern uint32_t open_cnt;		/* operations that have not ended, other than receives */
extern struct memory *memory[NET_NODES];

void judge_begin(const struct program *program);
/* In case of a fault: why, and no return. */
_Noreturn void judge_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

uint32_t op_id(const struct op *op);
/* A receive that waits for a message, for as long as it takes. */
bool op_is_recv(const struct op *op);
bool op_is_send(const struct op *op);
/* The bytes of operation id. */
void op_fill(uint8_t *buf, uint32_t id, uint32_t len);
/* True if these are the first len of them. */
bool op_is_filled(const uint8_t *buf, uint32_t id, uint32_t len);
/* The bytes behind the operation's buffer are as they were. */
void op_check_guard(const struct op *op);
/* Free the memory of an operation that has ended. */
void op_free(struct op *op);

/* From now on operations between a and b may fail, and their messages may be lost. */
void judge_doubt(unsigned a, unsigned b);
void judge_doubt_all(void);
/* The clock has jumped: a connection that is being made may fail. parks: connections are made again at any time. */
void judge_jumped(bool parks);
/* This node is another process from now on. */
void judge_restarted(unsigned n);
/* True if the keys of a and b differ, so that nothing gets from one to the other. */
bool judge_foreign(unsigned a, unsigned b);
/* True if calls of a to b may fail. */
bool judge_doubts(unsigned a, unsigned b);
/* True if the call of this operation may fail. */
bool judge_doubts_op(const struct op *op);

/* The operation was accepted. */
void judge_posted(struct op *op);
/* It has ended, or a message has come into a receive for many. */
void judge_ended(struct op *op, const struct ending *ending);
/* An error came, of an operation of this node that had ended. */
void judge_late(unsigned n);
/* Messages that have not been received, and should be. */
uint32_t judge_missing(void);
/* An operation that has not ended, or a message that is missing; or NULL. */
const struct op *judge_first_open(void);
/* At the end. */
void judge_finish(void);

#endif
