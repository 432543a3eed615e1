/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The world of a program of random calls: the objects that it has open, the operations that it has posted, their
 * memory, and the judge. One thread; what is wrong ends the program (world_wrong()).
 *
 * The judge knows what may happen, not what must: an operation completes at most once, with the context that was given;
 * memory that was given is written only where and as long as it was given; in the end all can be closed, and neither
 * descriptors nor threads are left.
 */
#ifndef TEST_FUZZ_CALLS_WORLD_H
#define TEST_FUZZ_CALLS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

enum kind { FABRIC, DOMAIN, EQ, CQ, CNTR, AV, SET, EP, SEP, PEP, SRX, STX, MR, WAIT, POLL, MC, LENT, KINDS };

#define ADDRS	16

/* An object that is open. Objects are opened from others; these stay open as long. */
struct obj {
	enum kind kind;
	unsigned id;
	struct fid *fid;
	struct obj *up;			/* was opened from */
	struct obj *base;		/* of an alias: the endpoint */
	struct fi_info *info;		/* of a fabric, domain, endpoint: borrowed from the world */
	struct obj *av, *bound;		/* of an endpoint: the address vector; the last shared context */
	bool enabled;
	bool odd_flags;			/* default flags were changed: receives may take many messages each */
	unsigned pins;			/* the pages forbid to close it: operations wait for it, or it for somebody */
	enum fi_cq_format format;	/* of a queue */
	struct obj *owner;		/* of a peer's queue or counter: the exported form that it writes into */
	fi_addr_t addrs[ADDRS];		/* of a vector: handles that were returned at some time */
	unsigned addr_cnt;
	uint8_t *mem;			/* of a region, or where buffers of a domain must be registered */
	size_t len, used;
	void *desc;
	struct fid *mem_mr;
};

#define PIECES	10

/* An operation: its context is the address of the union. */
struct op {
	union {
		struct fi_context2 context;
		struct fi_triggered_context2 trigger;
	};
	struct obj *obj;		/* the endpoint or shared context that it was posted to; NULL once that is
	closed */
	enum { OP_NEW, OP_POSTED, OP_ENDED } state;
	bool many;			/* a receive that takes many messages */
	bool claims, claimed;		/* FI_PEEK | FI_CLAIM; it found a message, which waits for its receive */
	struct obj *pinned;
	uint8_t *bufs[PIECES * 3];	/* memory of its own */
	size_t lens[PIECES * 3];
	unsigned buf_cnt;
	bool registered;		/* the memory is the domain's */
};

/* Begin anew: the name of the provider, random numbers of this seed, and whether each call is printed. */
void world_begin(const char *prov, bool told);
/* Close all, check that nothing is left. */
void world_end(void);
const char *world_prov(void);

/* A step begins, whose random numbers follow from this one. */
void world_step(const char *name, uint64_t seed);
uint32_t draw(uint32_t n);
uint64_t draw64(void);
/* One time in n. */
bool one_in(uint32_t n);
/* Some of the bits, few more often than many. */
uint64_t draw_bits(uint64_t bits);
/* A length that is odd, or usual, up to 1 MiB. */
size_t draw_len(void);
/* A number of any size. */
uint64_t draw_any(void);

/* What is about to be called, in words; and the answer, which is returned. */
__attribute__((format(printf, 1, 2))) void doing(const char *format, ...);
long long did(long long ret);
#define CALL(call, ...) (doing(__VA_ARGS__), did(call))
_Noreturn __attribute__((format(printf, 1, 2))) void world_wrong(const char *format, ...);
/* Play, until world_wrong(): then its words (static memory). NULL: nothing was wrong. */
const char *world_play(void (*program)(void));

/* ---- objects */

/* An object that a call is about to open, and the result of this call: the object, or NULL. The context of the call is
 * the object. NULL from obj_new(): there are enough. */
struct obj *obj_new(enum kind kind, struct obj *up);
struct obj *obj_keep(struct obj *obj, long long ret, struct fid *fid);
/* The call, which sets what fid is made of, comes first. */
#define obj_opened(obj, call, fid)	({ long long ret_ = (call); obj_keep(obj, ret_, fid); })
/* Any open one of this kind, or of one of these kinds (bits); NULL: there is none. */
struct obj *pick(enum kind kind);
struct obj *pick_of(unsigned kinds);
/* The same, opened from the same domain as this one where there is one; else any, sometimes. */
struct obj *pick_beside(enum kind kind, const struct obj *of);
struct obj *pick_of_domain(enum kind kind, const struct obj *domain);
const struct obj *obj_domain(const struct obj *obj);
struct fid *fid_of(struct obj *obj);
unsigned id_of(const struct obj *obj);
/* Objects of this kind by number, for steps that touch all. NULL: that was all. */
struct obj *obj_next(enum kind kind, unsigned *at);
/* Close one, if the pages permit it now. */
void obj_close(struct obj *obj);
/* Is the object of this fid open? */
bool is_open(const struct fid *fid);
/* The infos of the world: kept until the end. */
struct fi_info *keep_info(struct fi_info *info);

#define AS(type, obj)	((struct type *) fid_of(obj))

/* ---- memory and operations */

/* Memory of this length with guards around it, filled. The world's, until the end. */
uint8_t *mem_new(size_t len);
/* The same, until it is given back: by obj_close(), where it is an object's, or by the second call. */
uint8_t *mem_registered(size_t len);
void mem_unregistered(uint8_t *mem, size_t len);

/* A new operation at an endpoint or shared context. NULL: there are enough. */
struct op *op_new(struct obj *obj);
/* Memory of the operation, registered where the domain wants that; *desc for it. NULL: there is no more. */
uint8_t *op_mem(struct op *op, size_t len, void **desc);
/* The call has returned. The memory is free again if it failed, or if at_once. */
void op_called(struct op *op, long long ret, bool at_once);
/* This object stays open as long as the operation is. */
void op_pin(struct op *op, struct obj *obj);
/* Any operation, in whatever state; NULL: there is none. */
struct op *op_any(void);
/* One whose message waits; NULL: there is none. */
struct op *op_claimed(void);
/* A completion has this context; with flags, if the queue's format has them. err: or 0. */
void op_completes(void *context, uint64_t flags, int err, bool has_flags);

#endif
