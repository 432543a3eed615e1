/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that start when a counter reaches a threshold - fi_trigger(3). There are two forms:
 *
 *   triggered operation	a transfer with flag FI_TRIGGER, on an endpoint with that capability; its context is a
 *				struct fi_triggered_context (fi_triggered_context2 if the mode has FI_CONTEXT2)
 *   deferred work		a struct fi_deferred_work that is passed to a domain: FI_QUEUE_WORK of fi_control()
 *
 * The provider owns either struct, and all that it points to, from the call until the operation has completed or was
 * cancelled. Operations that wait for the same counter start in the order of their thresholds, then of their calls. If
 * a counter never reaches the threshold, the program must cancel the operations that wait.
 */
#ifndef FI_TRIGGER_H
#define FI_TRIGGER_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_atomic.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Triggered operations
 */
enum fi_trigger_event {
	FI_TRIGGER_THRESHOLD,		/* trigger.threshold: when cntr is at least threshold */
	FI_TRIGGER_XPU,			/* trigger.xpu: when a device writes certain values; 1.x only */
};

struct fi_trigger_threshold {
	struct fid_cntr *cntr;		/* the caller's; open until the operation has started or has been cancelled */
	size_t threshold;		/* of cntr's successes */
};

/* Out: the values that a device writes to start the operation. These are count elements of datatype at addr; one
 * element is in val8 to val64, several are in data, a buffer of the caller. 1.x only, as the next struct. */
struct fi_trigger_var {
	enum fi_datatype datatype;
	int count;
	void *addr;
	union {
		uint8_t val8;
		uint16_t val16;
		uint32_t val32;
		uint64_t val64;
		uint8_t *data;
	} value;
};

struct fi_trigger_xpu {
	int count;			/* in: room of var; out: number of values, to be written in order */
	enum fi_hmem_iface iface;	/* the device, as in struct fi_mr_attr */
	union {
		uint64_t reserved;
		int cuda;
		int ze;
	} device;
	struct fi_trigger_var *var;
};

/* The context of an operation with FI_TRIGGER; internal belongs to the provider. */
struct fi_triggered_context {
	enum fi_trigger_event event_type;
	union {
		struct fi_trigger_threshold threshold;
		struct fi_trigger_xpu xpu;
		void *internal[3];
	} trigger;
};

/* The same with more room, for mode FI_CONTEXT2. */
struct fi_triggered_context2 {
	enum fi_trigger_event event_type;
	union {
		struct fi_trigger_threshold threshold;
		struct fi_trigger_xpu xpu;
		void *internal[7];
	} trigger;
};


/*
 * Deferred work
 */
enum fi_op_type {
	FI_OP_RECV,			/* op.msg */
	FI_OP_SEND,
	FI_OP_TRECV,			/* op.tagged */
	FI_OP_TSEND,
	FI_OP_READ,			/* op.rma */
	FI_OP_WRITE,
	FI_OP_ATOMIC,			/* op.atomic */
	FI_OP_FETCH_ATOMIC,		/* op.fetch_atomic */
	FI_OP_COMPARE_ATOMIC,		/* op.compare_atomic */
	FI_OP_CNTR_SET,			/* op.cntr */
	FI_OP_CNTR_ADD,
};

/* The arguments of the call with flags for each kind of operation: fi_sendmsg() and fi_recvmsg() here, below
 * fi_tsendmsg() and fi_trecvmsg(), fi_readmsg() and fi_writemsg(), fi_atomicmsg(), fi_fetch_atomicmsg(),
 * fi_compare_atomicmsg(). The calls describe the members. */
struct fi_op_msg {
	struct fid_ep *ep;
	struct fi_msg msg;
	uint64_t flags;
};

struct fi_op_tagged {
	struct fid_ep *ep;
	struct fi_msg_tagged msg;
	uint64_t flags;
};

struct fi_op_rma {
	struct fid_ep *ep;
	struct fi_msg_rma msg;
	uint64_t flags;
};

struct fi_op_atomic {
	struct fid_ep *ep;
	struct fi_msg_atomic msg;
	uint64_t flags;
};

struct fi_op_fetch_atomic {
	struct fid_ep *ep;
	struct fi_msg_atomic msg;
	struct fi_msg_fetch fetch;
	uint64_t flags;
};

struct fi_op_compare_atomic {
	struct fid_ep *ep;
	struct fi_msg_atomic msg;
	struct fi_msg_fetch fetch;
	struct fi_msg_compare compare;
	uint64_t flags;
};

/* Set a counter to value, or add value to it. */
struct fi_op_cntr {
	struct fid_cntr *cntr;
	uint64_t value;
};

/*
 * Start op when the sum of successes and failures of triggering_cntr is at least threshold; when op has ended, add 1 to
 * the successes or failures of completion_cntr. The endpoint's own queue and counters report the operation only with
 * FI_COMPLETION. FI_CANCEL_WORK cancels one, FI_FLUSH_WORK all of the domain or of a counter. -FI_ENOSYS from
 * FI_QUEUE_WORK: this operation cannot be deferred.
 */
struct fi_deferred_work {
	struct fi_context2 context;	/* the provider's */
	uint64_t threshold;
	struct fid_cntr *triggering_cntr;
	struct fid_cntr *completion_cntr;	/* NULL with FI_OP_CNTR_SET and FI_OP_CNTR_ADD */
	enum fi_op_type op_type;	/* tells which member of op is used */
	union {
		struct fi_op_msg *msg;
		struct fi_op_tagged *tagged;
		struct fi_op_rma *rma;
		struct fi_op_atomic *atomic;
		struct fi_op_fetch_atomic *fetch_atomic;
		struct fi_op_compare_atomic *compare_atomic;
		struct fi_op_cntr *cntr;
	} op;
};

#ifdef __cplusplus
}
#endif

#endif /* FI_TRIGGER_H */
