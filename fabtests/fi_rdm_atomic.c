/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_rdm_atomic: every atomic operation on every datatype that the endpoint says it can, from client to server: what is
 * in the server's memory afterwards and what a fetching operation brings back are held against a model.
 */
#include "lib/func.h"

#include <complex.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include <rdma/fi_atomic.h>

#define MAX_COUNT 16
#define MAX_SIZE 32

enum kind { BASE, FETCH, COMPARE, KINDS };

static const char *const kind_names[] = { "base", "fetch", "compare" };

/* One element: *t op b, where c is what a compare operation compares with. */
typedef void apply_fn(enum fi_op op, void *t, const void *b, const void *c);

struct type {
	const char *name;
	enum fi_datatype code;
	size_t size;
	apply_fn *apply;
	/* The small whole number `value` as this type, and whether two are the same value. */
	void (*set)(void *t, int value);
	bool (*same)(const void *a, const void *b);
};

#define COMMON(t, b, c)								\
	case FI_SUM: t += b; break;						\
	case FI_PROD: t *= b; break;						\
	case FI_LOR: t = t != 0 || b != 0; break;				\
	case FI_LAND: t = t != 0 && b != 0; break;				\
	case FI_LXOR: t = (t != 0) != (b != 0); break;				\
	case FI_ATOMIC_WRITE: t = b; break;					\
	case FI_CSWAP: t = c == t ? b : t; break;				\
	case FI_CSWAP_NE: t = c != t ? b : t; break;

#define ORDERED(t, b, c)							\
	case FI_MIN: t = b < t ? b : t; break;					\
	case FI_MAX: t = b > t ? b : t; break;					\
	case FI_CSWAP_LE: t = c <= t ? b : t; break;				\
	case FI_CSWAP_LT: t = c < t ? b : t; break;				\
	case FI_CSWAP_GE: t = c >= t ? b : t; break;				\
	case FI_CSWAP_GT: t = c > t ? b : t; break;

#define BITS(t, b, c)								\
	case FI_BOR: t |= b; break;						\
	case FI_BAND: t &= b; break;						\
	case FI_BXOR: t ^= b; break;						\
	case FI_MSWAP: t = (b & c) | (t & ~c); break;

#define NONE(t, b, c)

#define MODEL(type, word, more, bits)						\
	static void word##_apply(enum fi_op op, void *target, const void *buf, const void *compare) \
	{									\
		type t, b, c;							\
										\
		memcpy(&t, target, sizeof(t));					\
		memcpy(&b, buf, sizeof(b));					\
		memcpy(&c, compare, sizeof(c));					\
		switch (op) {							\
		COMMON(t, b, c)							\
		more(t, b, c)							\
		bits(t, b, c)							\
		default:							\
			break;							\
		}								\
		memcpy(target, &t, sizeof(t));					\
	}									\
	static void word##_set(void *target, int value)				\
	{									\
		type t = (type) value;						\
										\
		memcpy(target, &t, sizeof(t));					\
	}									\
	static bool word##_same(const void *left, const void *right)		\
	{									\
		type l, r;							\
										\
		memcpy(&l, left, sizeof(l));					\
		memcpy(&r, right, sizeof(r));					\
		return l == r;							\
	}

MODEL(int8_t, int8, ORDERED, BITS)
MODEL(uint8_t, uint8, ORDERED, BITS)
MODEL(int16_t, int16, ORDERED, BITS)
MODEL(uint16_t, uint16, ORDERED, BITS)
MODEL(int32_t, int32, ORDERED, BITS)
MODEL(uint32_t, uint32, ORDERED, BITS)
MODEL(int64_t, int64, ORDERED, BITS)
MODEL(uint64_t, uint64, ORDERED, BITS)
MODEL(float, float, ORDERED, NONE)
MODEL(double, double, ORDERED, NONE)
MODEL(long double, long_double, ORDERED, NONE)
MODEL(float complex, float_complex, NONE, NONE)
MODEL(double complex, double_complex, NONE, NONE)
MODEL(long double complex, long_double_complex, NONE, NONE)

#define TYPE(type, word, code) { #word, code, sizeof(type), word##_apply, word##_set, word##_same }

static const struct type types[] = {
	TYPE(int8_t, int8, FI_INT8), TYPE(uint8_t, uint8, FI_UINT8),
	TYPE(int16_t, int16, FI_INT16), TYPE(uint16_t, uint16, FI_UINT16),
	TYPE(int32_t, int32, FI_INT32), TYPE(uint32_t, uint32, FI_UINT32),
	TYPE(int64_t, int64, FI_INT64), TYPE(uint64_t, uint64, FI_UINT64),
	TYPE(float, float, FI_FLOAT), TYPE(double, double, FI_DOUBLE),
	TYPE(float complex, float_complex, FI_FLOAT_COMPLEX),
	TYPE(double complex, double_complex, FI_DOUBLE_COMPLEX),
	TYPE(long double, long_double, FI_LONG_DOUBLE),
	TYPE(long double complex, long_double_complex, FI_LONG_DOUBLE_COMPLEX),
};

static const struct op {
	const char *name;
	enum fi_op code;
} ops[] = {
	{ "min", FI_MIN }, { "max", FI_MAX }, { "sum", FI_SUM }, { "prod", FI_PROD }, { "lor", FI_LOR },
	{ "land", FI_LAND }, { "bor", FI_BOR }, { "band", FI_BAND }, { "lxor", FI_LXOR }, { "bxor", FI_BXOR },
	{ "read", FI_ATOMIC_READ }, { "write", FI_ATOMIC_WRITE }, { "cswap", FI_CSWAP }, { "cswap_ne", FI_CSWAP_NE },
	{ "cswap_le", FI_CSWAP_LE }, { "cswap_lt", FI_CSWAP_LT }, { "cswap_ge", FI_CSWAP_GE },
	{ "cswap_gt", FI_CSWAP_GT }, { "mswap", FI_MSWAP },
};

#define OP_CNT (sizeof(ops) / sizeof(ops[0]))
#define TYPE_CNT (sizeof(types) / sizeof(types[0]))

/* The target's memory, and on the client the operands and what comes back. */
struct settings {
	bool wanted[OP_CNT];
	bool list;
	struct func_ep ep;
	struct func_buf target, operands, compares, results;
	struct func_region remote;
	uint32_t tried;
};

static const struct util_opt options[] = {
	{ 'o', "operation", "all|NAME",
	  "only this operation: min, max, sum ... read, write,\ncswap ... mswap (default: all)" },
	{ 'l', "list", NULL, "print what was tried" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct func *func, int key, const char *arg)
{
	struct settings *settings = func->own;
	bool known = key != 'o' || !strcmp(arg, "all");
	size_t i;

	settings->list |= key == 'l';
	for (i = 0; key == 'o' && i < OP_CNT; i++) {
		settings->wanted[i] = !strcmp(arg, "all") || !strcmp(arg, ops[i].name);
		known |= settings->wanted[i];
	}
	if (known)
		return 0;
	util_err("-o is '%s': all, or one of these is allowed:", arg);
	for (i = 0; i < OP_CNT; i++)
		fprintf(stderr, "  %s\n", ops[i].name);
	return -FI_EINVAL;
}

/* The values of a case: element i of target, operand and compare operand; compares hold and do not hold in turn. */
static void fill(const struct type *type, char *target, char *operands, char *compares, size_t cnt)
{
	size_t i;

	for (i = 0; i < cnt; i++) {
		type->set(target + i * type->size, (int) (i % 5) + 1);
		type->set(operands + i * type->size, (int) (i % 3));
		type->set(compares + i * type->size, i % 2 ? (int) (i % 5) + 1 : (int) ((i + 2) % 5));
	}
}

/* How many elements of a case both ends can do at once; 0 when one cannot. */
static int agree_count(struct func *func, enum kind kind, const struct type *type, enum fi_op op, size_t *cnt)
{
	static int (*const valid[])(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count) = {
		fi_atomicvalid, fi_fetch_atomicvalid, fi_compare_atomicvalid,
	};
	static const uint64_t flags[] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };
	struct settings *settings = func->own;
	struct fi_atomic_attr attr = { .count = 0 };
	uint64_t ours = 0, theirs;
	size_t count = 0;
	int ret, query;

	ret = valid[kind](settings->ep.ep, type->code, op, &count);
	query = fi_query_atomic(func->domain, type->code, op, &attr, flags[kind]);
	FUNC_EXPECT(func, query == -FI_ENOSYS || !ret == !query, "%s of %s: fi_atomicvalid says %d, fi_query_atomic %d",
		    kind_names[kind], type->name, ret, query);
	FUNC_EXPECT(func, query || ret || (attr.count == count && attr.size == type->size),
		    "%s of %s: fi_atomicvalid says %zu elements, fi_query_atomic %zu of %zu bytes", kind_names[kind],
		    type->name, count, attr.count, attr.size);
	if (!ret)
		ours = htobe64(count < MAX_COUNT ? count : MAX_COUNT);
	FUNC_TRY(func_exchange(func, &ours, &theirs, sizeof(ours), "what atomics there are"));
	*cnt = be64toh(ours) < be64toh(theirs) ? be64toh(ours) : be64toh(theirs);
	return 0;
}

static int post(struct func *func, enum kind kind, const struct type *type, enum fi_op op, size_t cnt,
		struct func_op *done)
{
	struct settings *settings = func->own;
	struct func_ep *ep = &settings->ep;
	struct fi_ioc ioc = { .addr = settings->operands.mem, .count = cnt };
	struct fi_ioc result = { .addr = settings->results.mem, .count = cnt };
	struct fi_ioc compare = { .addr = settings->compares.mem, .count = cnt };
	struct fi_rma_ioc rma_ioc = { .addr = settings->remote.addr, .count = cnt, .key = settings->remote.key };
	struct fi_msg_atomic msg = { .msg_iov = &ioc, .desc = &settings->operands.desc, .iov_count = 1,
				     .addr = ep->peer,
				     .rma_iov = &rma_ioc, .rma_iov_count = 1, .datatype = type->code, .op = op,
				     .context = done };
	uint64_t flags = func_delivery(func) | FI_COMPLETION;

	if (kind == BASE)
		FUNC_POST(func, fi_atomicmsg(ep->ep, &msg, flags));
	else if (kind == FETCH)
		FUNC_POST(func, fi_fetch_atomicmsg(ep->ep, &msg, &result, &settings->results.desc, 1, FI_COMPLETION));
	else
		FUNC_POST(func, fi_compare_atomicmsg(ep->ep, &msg, &compare, &settings->compares.desc, 1, &result,
						     &settings->results.desc, 1, FI_COMPLETION));
	return 0;
}

/* The server's memory is what the model says. */
static int check_target(struct func *func, const char *what, const struct type *type, enum fi_op op, size_t cnt)
{
	char target[MAX_COUNT * MAX_SIZE], operands[MAX_COUNT * MAX_SIZE], compares[MAX_COUNT * MAX_SIZE];
	struct settings *settings = func->own;
	size_t i, at;

	fill(type, target, operands, compares, cnt);
	for (i = 0; i < cnt; i++) {
		at = i * type->size;
		type->apply(op, target + at, operands + at, compares + at);
		FUNC_EXPECT(func, type->same(settings->target.mem + at, target + at),
			    "%s: element %zu of %zu at the target is wrong", what, i, cnt);
	}
	return 0;
}

/* What came back is what was there before. */
static int check_results(struct func *func, const char *what, const struct type *type, size_t cnt)
{
	char target[MAX_COUNT * MAX_SIZE], operands[MAX_COUNT * MAX_SIZE], compares[MAX_COUNT * MAX_SIZE];
	struct settings *settings = func->own;
	size_t i, at;

	fill(type, target, operands, compares, cnt);
	for (i = 0; i < cnt; i++) {
		at = i * type->size;
		FUNC_EXPECT(func, type->same(settings->results.mem + at, target + at),
			    "%s: element %zu of %zu came back wrong", what, i, cnt);
	}
	return 0;
}

static int run_case(struct func *func, enum kind kind, const struct type *type, const struct op *op)
{
	struct settings *settings = func->own;
	struct func_op done = { .done = 0 };
	char what[64];
	size_t cnt = 0;

	FUNC_TRY(agree_count(func, kind, type, op->code, &cnt));
	if (!cnt)
		return 0;
	snprintf(what, sizeof(what), "%s %s of %s", kind_names[kind], op->name, type->name);
	if (settings->list)
		printf("%s\n", what);
	settings->tried++;
	fill(type, settings->target.mem, settings->operands.mem, settings->compares.mem, cnt);
	memset(settings->results.mem, 0xa5, settings->results.len);
	FUNC_TRY(func_sync(func));
	if (func->client) {
		FUNC_TRY(post(func, kind, type, op->code, cnt, &done));
		FUNC_TRY(func_wait(func, &done, what));
		if (kind != BASE)
			FUNC_TRY(check_results(func, what, type, cnt));
	}
	/* Where completions do not mean that it is done over there, a message behind it does. */
	if (kind == BASE && !func->delivery)
		FUNC_TRY(func_greet(func, &settings->ep, 1, 0));
	FUNC_TRY(func_sync(func));
	return func->client ? 0 : check_target(func, what, type, op->code, cnt);
}

static int run(struct func *func)
{
	struct settings *settings = func->own;
	size_t i, j, len = MAX_COUNT * MAX_SIZE;
	unsigned kind;

	FUNC_TRY(func_ep_open(func, &settings->ep, NULL));
	FUNC_TRY(func_buf(func, &settings->target, len, FI_REMOTE_READ | FI_REMOTE_WRITE));
	FUNC_TRY(func_buf(func, &settings->operands, len, FI_READ | FI_WRITE));
	FUNC_TRY(func_buf(func, &settings->compares, len, FI_READ | FI_WRITE));
	FUNC_TRY(func_buf(func, &settings->results, len, FI_READ | FI_WRITE));
	FUNC_TRY(func_exchange_regions(func, &settings->target, &settings->remote));
	for (kind = 0; kind < KINDS; kind++) {
		for (i = 0; i < OP_CNT; i++) {
			for (j = 0; settings->wanted[i] && j < TYPE_CNT; j++)
				FUNC_TRY(run_case(func, kind, &types[j], &ops[i]));
		}
	}
	printf("%u cases\n", settings->tried);
	return settings->tried ? 0 : func_skip(func, "no such operation on any datatype");
}

int main(int argc, char **argv)
{
	static struct settings settings;
	static const struct func_program program = {
		.about = "Try every atomic operation on every datatype.",
		.ep_type = FI_EP_RDM,
		.choose_type = true,
		.caps = FI_MSG | FI_ATOMIC,
		.options = options,
		.take = take,
		.run = run,
	};

	memset(settings.wanted, true, sizeof(settings.wanted));
	return func_main(argc, argv, &program, &settings);
}
