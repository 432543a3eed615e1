/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See atomic_model.h. A datatype of the compiler is an expansion of MODEL_*; the small floats are tables of their
 * values. */
#include "atomic_model.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool kind_has(enum kind kind, enum fi_op op)
{
	bool compares = op >= FI_CSWAP && op <= FI_MSWAP;

	return kind == COMPARE ? compares : !compares && (kind == FETCH || op != FI_ATOMIC_READ);
}

bool element_eq(const struct datatype *type, const void *a, const void *b)
{
	for (size_t at = 0; at < type->size; at += type->part) {
		if (memcmp((const char *) a + at, (const char *) b + at, type->used))
			return false;
	}
	return true;
}

/* What all have. */
#define CASES_ALL								\
	case FI_SUM: T += B; break;						\
	case FI_PROD: T = 1u * T * B; break;	/* not in int */		\
	case FI_DIFF: T -= B; break;						\
	case FI_LOR: T = T || B; break;						\
	case FI_LAND: T = T && B; break;					\
	case FI_LXOR: T = (T && !B) || (!T && B); break;			\
	case FI_ATOMIC_READ: break;						\
	case FI_ATOMIC_WRITE: T = B; break;					\
	case FI_CSWAP: if (C == T) T = B; break;				\
	case FI_CSWAP_NE: if (C != T) T = B; break;
#define CASES_ORDER								\
	case FI_MIN: if (B < T) T = B; break;					\
	case FI_MAX: if (B > T) T = B; break;					\
	case FI_CSWAP_LE: if (C <= T) T = B; break;				\
	case FI_CSWAP_LT: if (C < T) T = B; break;				\
	case FI_CSWAP_GE: if (C >= T) T = B; break;				\
	case FI_CSWAP_GT: if (C > T) T = B; break;
#define CASES_BITS								\
	case FI_BOR: T |= B; break;						\
	case FI_BAND: T &= B; break;						\
	case FI_BXOR: T ^= B; break;						\
	case FI_MSWAP: T = (B & C) | (T & ~C); break;

/* Numbers of which products are exact in every format: -3 to 3. */
static int small(unsigned int seed)
{
	return (int) (seed * 7 % 11) % 7 - 3;
}

#define MODEL(name, value, cases)						\
	static bool name##_apply(enum fi_op op, void *t, const void *b, const void *c) \
	{									\
		value T, B, C;							\
										\
		memcpy(&T, t, sizeof(T));					\
		memcpy(&B, b, sizeof(B));					\
		memcpy(&C, c, sizeof(C));					\
		(void) C;							\
		switch ((int) op) {						\
		cases								\
		default: return false;						\
		}								\
		memcpy(t, &T, sizeof(T));					\
		return true;							\
	}
#define MAKE(name, value)							\
	static void name##_make(void *at, unsigned int seed)			\
	{									\
		value v = (value) small(seed);					\
										\
		memcpy(at, &v, sizeof(v));					\
	}
#define MODEL_INTEGER(name, value) MODEL(name, value, CASES_ALL CASES_ORDER CASES_BITS) MAKE(name, value)
#define MODEL_REAL(name, value) MODEL(name, value, CASES_ALL CASES_ORDER) MAKE(name, value)
#define MODEL_COMPLEX(name, value, half)					\
	MODEL(name, value, CASES_ALL)						\
	static void name##_make(void *at, unsigned int seed)			\
	{									\
		half v[2] = { (half) small(seed), (half) small(seed / 3) };	\
										\
		memcpy(at, v, sizeof(v));					\
	}

MODEL_INTEGER(i8, int8_t)
MODEL_INTEGER(u8, uint8_t)
MODEL_INTEGER(i16, int16_t)
MODEL_INTEGER(u16, uint16_t)
MODEL_INTEGER(i32, int32_t)
MODEL_INTEGER(u32, uint32_t)
MODEL_INTEGER(i64, int64_t)
MODEL_INTEGER(u64, uint64_t)
#ifdef __SIZEOF_INT128__
MODEL_INTEGER(i128, __int128)
MODEL_INTEGER(u128, unsigned __int128)
#endif
MODEL_REAL(f32, float)
MODEL_REAL(f64, double)
MODEL_REAL(fx, long double)
MODEL_COMPLEX(c32, float _Complex, float)
MODEL_COMPLEX(c64, double _Complex, double)
MODEL_COMPLEX(cx, long double _Complex, long double)

/* A small float by its bits: 1 of sign, exponent, mantissa. Only the numbers that small() and its results need. */
struct format {
	int exp_bits, man_bits;
};

static float widen(const struct format *f, unsigned int bits)
{
	int exp = (int) (bits >> f->man_bits) & ((1 << f->exp_bits) - 1), bias = (1 << (f->exp_bits - 1)) - 1;
	int man = (int) bits & ((1 << f->man_bits) - 1);
	float v = exp ? ldexpf((float) ((1 << f->man_bits) + man), exp - bias - f->man_bits) :
			ldexpf((float) man, 1 - bias - f->man_bits);

	return bits >> (f->exp_bits + f->man_bits) & 1 ? -v : v;
}

/* The bits of a value that the format has; both zeros are told apart. Without its sign a greater number has greater
 * bits. */
static unsigned int narrow(const struct format *f, float v)
{
	unsigned int sign = 1u << (f->exp_bits + f->man_bits), low = 0, high = sign;

	while (high - low > 1) {
		unsigned int middle = (low + high) / 2;

		*(widen(f, middle) <= fabsf(v) ? &low : &high) = middle;
	}
	if (widen(f, low) != fabsf(v))
		FAIL("%g is no number of this format: the test is wrong", v);
	return low | (signbit(v) ? sign : 0);
}

static bool real_apply(enum fi_op op, float *t, float B, float C)
{
	float T = *t;

	switch ((int) op) {
	CASES_ALL
	CASES_ORDER
	default:
		return false;
	}
	*t = T;
	return true;
}

#define MODEL_NARROW(name, bits, exp, man)					\
	static const struct format name##_format = { exp, man };		\
	static bool name##_apply(enum fi_op op, void *t, const void *b, const void *c) \
	{									\
		bits raw[3];							\
		float v;							\
										\
		memcpy(&raw[0], t, sizeof(bits));				\
		memcpy(&raw[1], b, sizeof(bits));				\
		memcpy(&raw[2], c, sizeof(bits));				\
		v = widen(&name##_format, raw[0]);				\
		if (!real_apply(op, &v, widen(&name##_format, raw[1]), widen(&name##_format, raw[2]))) \
			return false;						\
		raw[0] = (bits) narrow(&name##_format, v);			\
		memcpy(t, &raw[0], sizeof(bits));				\
		return true;							\
	}									\
	static void name##_make(void *at, unsigned int seed)			\
	{									\
		bits raw = (bits) narrow(&name##_format, (float) small(seed));	\
										\
		memcpy(at, &raw, sizeof(raw));					\
	}

MODEL_NARROW(f16, uint16_t, 5, 10)
MODEL_NARROW(bf16, uint16_t, 8, 7)
MODEL_NARROW(e4m3, uint8_t, 4, 3)
MODEL_NARROW(e5m2, uint8_t, 5, 2)

#define ROW_OF(type, size, part, used, model) { #type, type, size, part, used, model##_apply, model##_make }
#define PLAIN(type, size, model) ROW_OF(type, size, size, size, model)
/* x87 numbers take 10 bytes of their 16. */
#define LONG_DOUBLE_USED (LDBL_MANT_DIG == 64 ? 10 : sizeof(long double))

const struct datatype datatypes[] = {
	PLAIN(FI_INT8, 1, i8), PLAIN(FI_UINT8, 1, u8), PLAIN(FI_INT16, 2, i16), PLAIN(FI_UINT16, 2, u16),
	PLAIN(FI_INT32, 4, i32), PLAIN(FI_UINT32, 4, u32), PLAIN(FI_INT64, 8, i64), PLAIN(FI_UINT64, 8, u64),
	PLAIN(FI_FLOAT, 4, f32), PLAIN(FI_DOUBLE, 8, f64), PLAIN(FI_FLOAT_COMPLEX, 8, c32),
	PLAIN(FI_DOUBLE_COMPLEX, 16, c64),
	ROW_OF(FI_LONG_DOUBLE, sizeof(long double), sizeof(long double), LONG_DOUBLE_USED, fx),
	ROW_OF(FI_LONG_DOUBLE_COMPLEX, 2 * sizeof(long double), sizeof(long double), LONG_DOUBLE_USED, cx),
#ifdef __SIZEOF_INT128__
	PLAIN(FI_INT128, 16, i128), PLAIN(FI_UINT128, 16, u128),
#endif
	PLAIN(FI_FLOAT16, 2, f16), PLAIN(FI_BFLOAT16, 2, bf16), PLAIN(FI_FLOAT8_E4M3, 1, e4m3),
	PLAIN(FI_FLOAT8_E5M2, 1, e5m2),
};

const size_t datatype_cnt = COUNT(datatypes);
