/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A function for each pair of datatype and operation, and the table of these functions. TYPE_get() and TYPE_put() load
 * and store one element of datatype TYPE. Part 1 has these functions for each datatype, part 2 the operations, part 3
 * the table.
 */
#include "atomic.h"

#include <float.h>
#include <stdint.h>
#include <string.h>

#define DATATYPE_CNT	(FI_FLOAT8_E5M2 + 1)
#define OP_CNT		(FI_DIFF + 1)

/* Apply an operation to the elements in the len bytes at t, with operands from b and comparands, if any, from c. */
typedef void atomic_fn(char *t, const char *b, const char *c, size_t len);

/*
 * 1. Elements
 */

#define ELEMENT_GET(type, value) \
	static inline value type##_get(const char *p) \
	{ \
		value v; \
\
		memcpy(&v, p, sizeof(v)); \
		return v; \
	}

/* A type of the compiler without padding bytes. */
#define ELEMENT(type, value) \
	ELEMENT_GET(type, value) \
	static inline void type##_put(char *p, value v) \
	{ \
		memcpy(p, &v, sizeof(v)); \
	}

ELEMENT(i8, int8_t)
ELEMENT(u8, uint8_t)
ELEMENT(i16, int16_t)
ELEMENT(u16, uint16_t)
ELEMENT(i32, int32_t)
ELEMENT(u32, uint32_t)
ELEMENT(i64, int64_t)
ELEMENT(u64, uint64_t)
#ifdef __SIZEOF_INT128__
ELEMENT(i128, __int128)
ELEMENT(u128, unsigned __int128)
#endif
ELEMENT(f32, float)
ELEMENT(f64, double)
ELEMENT(c32, float _Complex)
ELEMENT(c64, double _Complex)

/* The bytes of a long double that hold the number. The padding bytes after them are not written. */
#define LONG_DOUBLE_LEN (LDBL_MANT_DIG == 64 ? 10 : sizeof(long double))

ELEMENT_GET(fx, long double)
ELEMENT_GET(cx, long double _Complex)

static inline void fx_put(char *p, long double v)
{
	memcpy(p, &v, LONG_DOUBLE_LEN);
}

static inline void cx_put(char *p, long double _Complex v)
{
	fx_put(p, __real__ v);
	fx_put(p + sizeof(long double), __imag__ v);
}

/* A float of 16 or 8 bits: from the top, sign, exponent, mantissa. */
struct narrow {
	unsigned exp_bits, man_bits;
	unsigned top;		/* the largest finite number, without its sign */
	unsigned over;		/* the result if a number is larger: infinity, or NaN in a format without infinity */
	unsigned nan;		/* the NaN that computations return */
};

static const struct narrow f16 = { 5, 10, 0x7bff, 0x7c00, 0x7e00 };
static const struct narrow bf16 = { 8, 7, 0x7f7f, 0x7f80, 0x7fc0 };
static const struct narrow e4m3 = { 4, 3, 0x7e, 0x7f, 0x7f };
static const struct narrow e5m2 = { 5, 2, 0x7b, 0x7c, 0x7e };

static inline int narrow_bias(const struct narrow *fmt)
{
	return (1 << (fmt->exp_bits - 1)) - 1;
}

/* 2 to the power of exp, -1022 to 1023. */
static inline double pow2(int exp)
{
	const uint64_t bits = (uint64_t) (exp + 1023) << 52;
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* Convert to double. The result is exact, since a double has more bits of exponent and of mantissa. */
static double narrow_widen(const struct narrow *fmt, unsigned bits)
{
	const unsigned sign = bits >> (fmt->exp_bits + fmt->man_bits), one = 1u << fmt->man_bits;
	const unsigned abs = bits & ~(sign << (fmt->exp_bits + fmt->man_bits));
	const int exp = abs >> fmt->man_bits;
	double v;

	if (abs > fmt->top)
		v = abs == fmt->over && fmt->over != fmt->nan ? __builtin_inf() : __builtin_nan("");
	else if (exp)
		v = (one | (abs & (one - 1))) * pow2(exp - narrow_bias(fmt) - (int) fmt->man_bits);
	else
		v = abs * pow2(1 - narrow_bias(fmt) - (int) fmt->man_bits);
	return sign ? -v : v;
}

/* Round v to nearest, ties to even. v is the sum or product of two such numbers, computed as a double. A double has
 * more than twice their bits, so its own rounding does not change the result. */
static unsigned narrow_round(const struct narrow *fmt, double v)
{
	const int exp_min = 1 - narrow_bias(fmt), man_bits = fmt->man_bits;
	unsigned sign, abs;
	uint64_t bits;
	double scaled;
	int exp;

	memcpy(&bits, &v, sizeof(bits));
	sign = (unsigned) (bits >> 63) << (fmt->exp_bits + fmt->man_bits);
	if (__builtin_isnan(v))
		return sign | fmt->nan;
	if (__builtin_isinf(v))
		return sign | fmt->over;

	exp = (int) (bits >> 52 & 0x7ff) - 1023;
	if (exp < exp_min)
		exp = exp_min;
	scaled = __builtin_fabs(v) * pow2(man_bits - exp);
	abs = (unsigned) scaled;
	if (scaled - abs > 0.5 || (scaled - abs == 0.5 && (abs & 1)))
		abs++;
	/* The bit before the mantissa, or a carry out of it, increments the exponent. */
	abs += (unsigned) (exp - exp_min) << man_bits;
	return sign | (abs > fmt->top ? fmt->over : abs);
}

#define ELEMENT_NARROW(type, bits) \
	static inline double type##_get(const char *p) \
	{ \
		return narrow_widen(&type, bits##_get(p)); \
	} \
	static inline void type##_put(char *p, double v) \
	{ \
		bits##_put(p, narrow_round(&type, v)); \
	}

ELEMENT_NARROW(f16, u16)
ELEMENT_NARROW(bf16, u16)
ELEMENT_NARROW(e4m3, u8)
ELEMENT_NARROW(e5m2, u8)

/*
 * 2. Operations
 */

/* Operations of all datatypes. */
static void keep(char *t, const char *b, const char *c, size_t len)
{
	(void) t, (void) b, (void) c, (void) len;
}

static void replace(char *t, const char *b, const char *c, size_t len)
{
	(void) c;
	memcpy(t, b, len);
}

/* Copy each element of b, of size bytes, to the target if the element of x (b or c) compares so with the target. */
#define MOVE_IF(type, size, op, x, compares) \
	static void type##_##op(char *t, const char *b, const char *c, size_t len) \
	{ \
		(void) c; \
		for (size_t at = 0; at < len; at += size) { \
			if (type##_get(x + at) compares type##_get(t + at)) \
				memcpy(t + at, b + at, size); \
		} \
	}

/* Set each element, of size bytes, to `value`, which is computed from T and B in type wide. */
#define SET(type, size, wide, op, value) \
	static void type##_##op(char *t, const char *b, const char *c, size_t len) \
	{ \
		(void) c; \
		for (size_t at = 0; at < len; at += size) { \
			const wide T = type##_get(t + at), B = type##_get(b + at); \
\
			type##_put(t + at, value); \
		} \
	}

#define NUMBER_OPS(type, size, wide) \
	SET(type, size, wide, sum, T + B) \
	SET(type, size, wide, prod, T * B) \
	SET(type, size, wide, diff, T - B) \
	SET(type, size, wide, lor, T || B) \
	SET(type, size, wide, land, T && B) \
	SET(type, size, wide, lxor, !T != !B) \
	MOVE_IF(type, size, cswap, c, ==) \
	MOVE_IF(type, size, cswap_ne, c, !=)

#define ORDER_OPS(type, size) \
	MOVE_IF(type, size, min, b, <) \
	MOVE_IF(type, size, max, b, >) \
	MOVE_IF(type, size, cswap_le, c, <=) \
	MOVE_IF(type, size, cswap_lt, c, <) \
	MOVE_IF(type, size, cswap_ge, c, >=) \
	MOVE_IF(type, size, cswap_gt, c, >)

#define BIT_OPS(type, size, wide) \
	SET(type, size, wide, bor, T | B) \
	SET(type, size, wide, band, T & B) \
	SET(type, size, wide, bxor, T ^ B) \
	SET(type, size, wide, mswap, (B & (wide) type##_get(c + at)) | (T & ~(wide) type##_get(c + at)))

#define COMPLEX(type, value)		NUMBER_OPS(type, sizeof(value), value)
#define REAL(type, size, wide)		NUMBER_OPS(type, size, wide) ORDER_OPS(type, size)
/* wide is unsigned and at least as wide as int, so that no overflow is undefined. */
#define INTEGER(type, value, wide)	REAL(type, sizeof(value), wide) BIT_OPS(type, sizeof(value), wide)

INTEGER(i8, int8_t, uint64_t)
INTEGER(u8, uint8_t, uint64_t)
INTEGER(i16, int16_t, uint64_t)
INTEGER(u16, uint16_t, uint64_t)
INTEGER(i32, int32_t, uint64_t)
INTEGER(u32, uint32_t, uint64_t)
INTEGER(i64, int64_t, uint64_t)
INTEGER(u64, uint64_t, uint64_t)
#ifdef __SIZEOF_INT128__
INTEGER(i128, __int128, unsigned __int128)
INTEGER(u128, unsigned __int128, unsigned __int128)
#endif
REAL(f32, sizeof(float), float)
REAL(f64, sizeof(double), double)
REAL(fx, sizeof(long double), long double)
REAL(f16, 2, double)
REAL(bf16, 2, double)
REAL(e4m3, 1, double)
REAL(e5m2, 1, double)
COMPLEX(c32, float _Complex)
COMPLEX(c64, double _Complex)
COMPLEX(cx, long double _Complex)

/*
 * 3. The table
 */

#define COMPLEX_ROW(type) \
	[FI_ATOMIC_READ] = keep, [FI_ATOMIC_WRITE] = replace, \
	[FI_SUM] = type##_sum, [FI_PROD] = type##_prod, [FI_DIFF] = type##_diff, \
	[FI_LOR] = type##_lor, [FI_LAND] = type##_land, [FI_LXOR] = type##_lxor, \
	[FI_CSWAP] = type##_cswap, [FI_CSWAP_NE] = type##_cswap_ne

#define REAL_ROW(type) \
	COMPLEX_ROW(type), [FI_MIN] = type##_min, [FI_MAX] = type##_max, \
	[FI_CSWAP_LE] = type##_cswap_le, [FI_CSWAP_LT] = type##_cswap_lt, \
	[FI_CSWAP_GE] = type##_cswap_ge, [FI_CSWAP_GT] = type##_cswap_gt

#define INTEGER_ROW(type) \
	REAL_ROW(type), [FI_BOR] = type##_bor, [FI_BAND] = type##_band, [FI_BXOR] = type##_bxor, \
	[FI_MSWAP] = type##_mswap

static const struct {
	size_t size;
	atomic_fn *fn[OP_CNT];
} datatypes[DATATYPE_CNT] = {
	[FI_INT8] = { 1, { INTEGER_ROW(i8) } },
	[FI_UINT8] = { 1, { INTEGER_ROW(u8) } },
	[FI_INT16] = { 2, { INTEGER_ROW(i16) } },
	[FI_UINT16] = { 2, { INTEGER_ROW(u16) } },
	[FI_INT32] = { 4, { INTEGER_ROW(i32) } },
	[FI_UINT32] = { 4, { INTEGER_ROW(u32) } },
	[FI_INT64] = { 8, { INTEGER_ROW(i64) } },
	[FI_UINT64] = { 8, { INTEGER_ROW(u64) } },
#ifdef __SIZEOF_INT128__
	[FI_INT128] = { 16, { INTEGER_ROW(i128) } },
	[FI_UINT128] = { 16, { INTEGER_ROW(u128) } },
#endif
	[FI_FLOAT] = { sizeof(float), { REAL_ROW(f32) } },
	[FI_DOUBLE] = { sizeof(double), { REAL_ROW(f64) } },
	[FI_LONG_DOUBLE] = { sizeof(long double), { REAL_ROW(fx) } },
	[FI_FLOAT16] = { 2, { REAL_ROW(f16) } },
	[FI_BFLOAT16] = { 2, { REAL_ROW(bf16) } },
	[FI_FLOAT8_E4M3] = { 1, { REAL_ROW(e4m3) } },
	[FI_FLOAT8_E5M2] = { 1, { REAL_ROW(e5m2) } },
	[FI_FLOAT_COMPLEX] = { sizeof(float _Complex), { COMPLEX_ROW(c32) } },
	[FI_DOUBLE_COMPLEX] = { sizeof(double _Complex), { COMPLEX_ROW(c64) } },
	[FI_LONG_DOUBLE_COMPLEX] = { sizeof(long double _Complex), { COMPLEX_ROW(cx) } },
};

size_t fab_atomic_size(enum fi_datatype datatype)
{
	return (unsigned) datatype < DATATYPE_CNT ? datatypes[datatype].size : 0;
}

static bool kind_has(enum fab_atomic_kind kind, enum fi_op op)
{
	const bool compares = op >= FI_CSWAP && op <= FI_MSWAP;

	switch (kind) {
	case FAB_ATOMIC_BASE:
		return !compares && op != FI_ATOMIC_READ;
	case FAB_ATOMIC_FETCH:
		return !compares;
	case FAB_ATOMIC_COMPARE:
		return compares;
	}
	return false;
}

bool fab_atomic_valid(enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op)
{
	return (unsigned) datatype < DATATYPE_CNT && (unsigned) op < OP_CNT && kind_has(kind, op) &&
	       datatypes[datatype].fn[op];
}

void fab_atomic_do(enum fi_datatype datatype, enum fi_op op, void *target, const void *operand, const void *compare,
		   void *result, size_t cnt)
{
	const size_t len = cnt * datatypes[datatype].size;

	if (!len)
		return;
	if (result)
		memcpy(result, target, len);
	datatypes[datatype].fn[op](target, operand, compare, len);
}

/* ---- targets of several pieces ---- */

#define ELEMENT_MAX	32		/* bytes: two long doubles */

/* The rest of an operation. Pointers that are not used stay NULL. */
struct job {
	enum fi_datatype datatype;
	enum fi_op op;
	size_t size;			/* of an element, in bytes */
	const uint8_t *operand, *compare;
	uint8_t *result;
};

/* Do the next cnt elements, which are at target. */
static void job_step(struct job *job, void *target, size_t cnt)
{
	size_t len = cnt * job->size;

	fab_atomic_do(job->datatype, job->op, target, job->operand, job->compare, job->result, cnt);
	job->operand = job->operand ? job->operand + len : NULL;
	job->compare = job->compare ? job->compare + len : NULL;
	job->result = job->result ? job->result + len : NULL;
}

/* Copy len bytes between elem and the pieces, from offset at of the first piece on. */
static void copy_across(const struct iovec *iov, size_t at, uint8_t *elem, size_t len, bool out)
{
	for (; len; iov++, at = 0) {
		size_t n = iov->iov_len - at < len ? iov->iov_len - at : len;
		uint8_t *piece = (uint8_t *) iov->iov_base + at;

		memcpy(out ? piece : elem, out ? elem : piece, n);
		elem += n;
		len -= n;
	}
}

void fab_atomic_pieces(enum fi_datatype datatype, enum fi_op op, const struct iovec *iov, size_t cnt,
		       const void *operand, const void *compare, void *result)
{
	struct job job = {
		.datatype = datatype, .op = op, .size = fab_atomic_size(datatype), .operand = operand,
		.compare = compare, .result = result,
	};
	size_t at = 0;			/* offset in *iov */

	for (const struct iovec *end = iov + cnt; iov < end; ) {
		size_t whole = (iov->iov_len - at) / job.size;
		uint8_t elem[ELEMENT_MAX];

		job_step(&job, (uint8_t *) iov->iov_base + at, whole);
		at += whole * job.size;
		if (at < iov->iov_len) {
			copy_across(iov, at, elem, job.size, false);
			job_step(&job, elem, 1);
			copy_across(iov, at, elem, job.size, true);
			at += job.size;
		}
		for (; iov < end && at >= iov->iov_len; iov++)
			at -= iov->iov_len;
	}
}
