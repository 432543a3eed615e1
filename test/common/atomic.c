/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Arithmetic of atomics against a model that works otherwise: integers digit by digit in base 256, floats as long
 * double and back by a search of all encodings, complex numbers part by part.
 */
#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include "common/op/atomic.h"

#define ELEMENT_MAX	32
#define VALUE_MAX	16

enum sort { SIGNED, UNSIGNED, BINARY, NARROW, COMPLEX };

static const struct type {
	const char *name;
	enum fi_datatype datatype;
	enum sort sort;
	size_t size;
	size_t used;			/* bytes of a part that hold the number */
	unsigned exp_bits, man_bits;	/* NARROW */
	bool finite;			/* NARROW, and without infinities */
} types[] = {
	{ "int8", FI_INT8, SIGNED, 1, 1, 0, 0, 0 },
	{ "uint8", FI_UINT8, UNSIGNED, 1, 1, 0, 0, 0 },
	{ "int16", FI_INT16, SIGNED, 2, 2, 0, 0, 0 },
	{ "uint16", FI_UINT16, UNSIGNED, 2, 2, 0, 0, 0 },
	{ "int32", FI_INT32, SIGNED, 4, 4, 0, 0, 0 },
	{ "uint32", FI_UINT32, UNSIGNED, 4, 4, 0, 0, 0 },
	{ "int64", FI_INT64, SIGNED, 8, 8, 0, 0, 0 },
	{ "uint64", FI_UINT64, UNSIGNED, 8, 8, 0, 0, 0 },
#ifdef __SIZEOF_INT128__
	{ "int128", FI_INT128, SIGNED, 16, 16, 0, 0, 0 },
	{ "uint128", FI_UINT128, UNSIGNED, 16, 16, 0, 0, 0 },
#endif
	{ "float", FI_FLOAT, BINARY, sizeof(float), sizeof(float), 0, 0, 0 },
	{ "double", FI_DOUBLE, BINARY, sizeof(double), sizeof(double), 0, 0, 0 },
	{ "long double", FI_LONG_DOUBLE, BINARY, sizeof(long double), LDBL_MANT_DIG == 64 ? 10 : sizeof(long double),
	  0, 0, 0 },
	{ "float16", FI_FLOAT16, NARROW, 2, 2, 5, 10, false },
	{ "bfloat16", FI_BFLOAT16, NARROW, 2, 2, 8, 7, false },
	{ "float8_e4m3", FI_FLOAT8_E4M3, NARROW, 1, 1, 4, 3, true },
	{ "float8_e5m2", FI_FLOAT8_E5M2, NARROW, 1, 1, 5, 2, false },
	{ "float complex", FI_FLOAT_COMPLEX, COMPLEX, 2 * sizeof(float), sizeof(float), 0, 0, 0 },
	{ "double complex", FI_DOUBLE_COMPLEX, COMPLEX, 2 * sizeof(double), sizeof(double), 0, 0, 0 },
	{ "long double complex", FI_LONG_DOUBLE_COMPLEX, COMPLEX, 2 * sizeof(long double),
	  LDBL_MANT_DIG == 64 ? 10 : sizeof(long double), 0, 0, 0 },
};

/* ---- the model: integers, least digit first ---- */

typedef unsigned char elem[ELEMENT_MAX];

static unsigned digit(const struct type *ty, const unsigned char *v, size_t i)
{
	const uint16_t one = 1;

	return v[*(const unsigned char *) &one ? i : ty->size - 1 - i];
}

static void set_digit(const struct type *ty, unsigned char *v, size_t i, unsigned d)
{
	const uint16_t one = 1;

	v[*(const unsigned char *) &one ? i : ty->size - 1 - i] = d;
}

static int int_order(const struct type *ty, const unsigned char *a, const unsigned char *b)
{
	for (size_t i = ty->size; i--;) {
		const unsigned flip = ty->sort == SIGNED && i == ty->size - 1 ? 0x80 : 0;
		const unsigned x = digit(ty, a, i) ^ flip, y = digit(ty, b, i) ^ flip;

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

static void int_math(const struct type *ty, enum fi_op op, unsigned char *t, const unsigned char *b)
{
	unsigned acc[ELEMENT_MAX] = { 0 }, carry = op == FI_DIFF;

	for (size_t i = 0; i < ty->size; i++) {
		if (op == FI_PROD)
			for (size_t j = 0; j + i < ty->size; j++)
				acc[i + j] += digit(ty, t, i) * digit(ty, b, j);
		else
			acc[i] = digit(ty, t, i) + (op == FI_DIFF ? 0xff - digit(ty, b, i) : digit(ty, b, i));
	}
	for (size_t i = 0; i < ty->size; i++) {
		acc[i] += carry;
		set_digit(ty, t, i, acc[i] & 0xff);
		carry = acc[i] >> 8;
	}
}

/* ---- the model: floats ---- */

static long double narrow_value(const struct type *ty, unsigned bits)
{
	const unsigned exp_top = (1u << ty->exp_bits) - 1, man_top = (1u << ty->man_bits) - 1;
	const unsigned man = bits & man_top, exp = bits >> ty->man_bits & exp_top;
	const bool minus = bits >> (ty->man_bits + ty->exp_bits) & 1;
	const int bias = exp_top / 2;
	long double v;

	if (exp == exp_top && (ty->finite ? man == man_top : man))
		v = NAN;
	else if (exp == exp_top && !ty->finite)
		v = INFINITY;
	else
		v = ldexpl((long double) man / (man_top + 1) + !!exp, (exp ? (int) exp : 1) - bias);
	return minus ? -v : v;
}

/* The nearest number of all that there are, the even one of two; beyond the middle between the largest and what would
 * be the next, that which stands for too large. */
static unsigned narrow_nearest(const struct type *ty, long double v)
{
	const unsigned sign = !!signbit(v) << (ty->exp_bits + ty->man_bits);
	const unsigned end = 1u << (ty->exp_bits + ty->man_bits);
	const unsigned over = ty->finite ? end - 1 : ((1u << ty->exp_bits) - 1) << ty->man_bits;
	const long double abs = fabsl(v), top = narrow_value(ty, over - 1), step = top - narrow_value(ty, over - 2);
	unsigned low = 0, high = over;
	long double from_low, from_high;

	while (high - low > 1) {
		const unsigned mid = (low + high) / 2;

		if (narrow_value(ty, mid) <= abs)
			low = mid;
		else
			high = mid;
	}
	from_low = abs - narrow_value(ty, low);
	from_high = (high == over ? top + step : narrow_value(ty, high)) - abs;
	if (from_low < from_high)
		return sign | low;
	return sign | (from_low > from_high || (low & 1) ? high : low);
}

static long double part_get(const struct type *ty, const unsigned char *p)
{
	float f;
	double d;
	long double l;
	uint16_t h;

	switch (ty->datatype) {
	case FI_FLOAT: case FI_FLOAT_COMPLEX:
		memcpy(&f, p, sizeof(f));
		return f;
	case FI_DOUBLE: case FI_DOUBLE_COMPLEX:
		memcpy(&d, p, sizeof(d));
		return d;
	case FI_LONG_DOUBLE: case FI_LONG_DOUBLE_COMPLEX:
		memcpy(&l, p, sizeof(l));
		return l;
	default:
		memcpy(&h, p, ty->size == 2 ? 2 : 0);
		return narrow_value(ty, ty->size == 2 ? h : *p);
	}
}

static void part_put(const struct type *ty, unsigned char *p, long double l)
{
	float f = l;
	double d = l;
	uint16_t h;

	switch (ty->datatype) {
	case FI_FLOAT: case FI_FLOAT_COMPLEX:
		memcpy(p, &f, sizeof(f));
		break;
	case FI_DOUBLE: case FI_DOUBLE_COMPLEX:
		memcpy(p, &d, sizeof(d));
		break;
	case FI_LONG_DOUBLE: case FI_LONG_DOUBLE_COMPLEX:
		memcpy(p, &l, ty->used);
		break;
	default:
		h = isnan(l) ? (ty->finite ? 0x7f : (((1u << ty->exp_bits) - 1) << ty->man_bits) | 1)
			     : narrow_nearest(ty, l);
		if (ty->size == 2)
			memcpy(p, &h, 2);
		else
			*p = h;
	}
}

static bool is_integer(const struct type *ty)
{
	return ty->sort == SIGNED || ty->sort == UNSIGNED;
}

static bool is_true(const struct type *ty, const unsigned char *v)
{
	if (is_integer(ty)) {
		for (size_t i = 0; i < ty->size; i++)
			if (v[i])
				return true;
		return false;
	}
	return part_get(ty, v) != 0 || (ty->sort == COMPLEX && part_get(ty, v + ty->size / 2) != 0);
}

static void put_bool(const struct type *ty, unsigned char *t, bool v)
{
	if (is_integer(ty)) {
		memset(t, 0, ty->size);
		set_digit(ty, t, 0, v);
		return;
	}
	part_put(ty, t, v);
	if (ty->sort == COMPLEX)
		part_put(ty, t + ty->size / 2, 0);
}

static void float_math(const struct type *ty, enum fi_op op, unsigned char *t, const unsigned char *b)
{
	const size_t half = ty->size / 2;
	const long double tr = part_get(ty, t), br = part_get(ty, b);

	if (ty->sort == COMPLEX) {
		const long double ti = part_get(ty, t + half), bi = part_get(ty, b + half);

		part_put(ty, t, op == FI_SUM ? tr + br : op == FI_DIFF ? tr - br : tr * br - ti * bi);
		part_put(ty, t + half, op == FI_SUM ? ti + bi : op == FI_DIFF ? ti - bi : tr * bi + ti * br);
	} else {
		part_put(ty, t, op == FI_SUM ? tr + br : op == FI_DIFF ? tr - br : tr * br);
	}
}

/* Does x compare with t as op says (FI_MIN, FI_MAX: b with t)? */
static bool moves(const struct type *ty, enum fi_op op, const unsigned char *x, const unsigned char *t)
{
	bool less, same;

	if (is_integer(ty)) {
		less = int_order(ty, x, t) < 0;
		same = int_order(ty, x, t) == 0;
	} else {
		const long double xr = part_get(ty, x), tr = part_get(ty, t);

		less = xr < tr;
		same = xr == tr && (ty->sort != COMPLEX ||
				    part_get(ty, x + ty->size / 2) == part_get(ty, t + ty->size / 2));
		if (isunordered(xr, tr))
			return op == FI_CSWAP_NE;
	}
	switch (op) {
	case FI_CSWAP: return same;
	case FI_CSWAP_NE: return !same;
	case FI_MIN: case FI_CSWAP_LT: return less;
	case FI_CSWAP_LE: return less || same;
	case FI_CSWAP_GE: return !less;
	default: return !less && !same;
	}
}

static void model(const struct type *ty, enum fi_op op, unsigned char *t, const unsigned char *b,
		  const unsigned char *c)
{
	switch (op) {
	case FI_SUM: case FI_PROD: case FI_DIFF:
		(is_integer(ty) ? int_math : float_math)(ty, op, t, b);
		break;
	case FI_LOR:
		put_bool(ty, t, is_true(ty, t) || is_true(ty, b));
		break;
	case FI_LAND:
		put_bool(ty, t, is_true(ty, t) && is_true(ty, b));
		break;
	case FI_LXOR:
		put_bool(ty, t, is_true(ty, t) != is_true(ty, b));
		break;
	case FI_ATOMIC_READ:
		break;
	case FI_BOR: case FI_BAND: case FI_BXOR: case FI_MSWAP:
		for (size_t i = 0; i < ty->size; i++)
			t[i] = op == FI_BOR ? t[i] | b[i] : op == FI_BAND ? t[i] & b[i] : op == FI_BXOR ? t[i] ^ b[i] :
			       (t[i] & ~c[i]) | (b[i] & c[i]);
		break;
	default:
		if (op == FI_ATOMIC_WRITE || moves(ty, op, op == FI_MIN || op == FI_MAX ? b : c, t))
			memcpy(t, b, ty->size);
	}
}

/* What the interface defines, said once more. */
static bool defined(const struct type *ty, enum fab_atomic_kind kind, enum fi_op op)
{
	switch (op) {
	case FI_MIN: case FI_MAX:
		return kind != FAB_ATOMIC_COMPARE && ty->sort != COMPLEX;
	case FI_BOR: case FI_BAND: case FI_BXOR:
		return kind != FAB_ATOMIC_COMPARE && is_integer(ty);
	case FI_ATOMIC_READ:
		return kind == FAB_ATOMIC_FETCH;
	case FI_CSWAP: case FI_CSWAP_NE:
		return kind == FAB_ATOMIC_COMPARE;
	case FI_MSWAP:
		return kind == FAB_ATOMIC_COMPARE && is_integer(ty);
	case FI_CSWAP_LE: case FI_CSWAP_LT: case FI_CSWAP_GE: case FI_CSWAP_GT:
		return kind == FAB_ATOMIC_COMPARE && ty->sort != COMPLEX;
	default:
		return kind != FAB_ATOMIC_COMPARE;
	}
}

/* ---- values worth trying ---- */

static size_t int_values(const struct type *ty, elem *v)
{
	struct rng rng = { 7 };

	memset(v, 0, VALUE_MAX * sizeof(*v));
	set_digit(ty, v[1], 0, 1);				/* 1 */
	set_digit(ty, v[2], 0, 3);
	memset(v[3], 0xff, ty->size);				/* -1, or the largest */
	set_digit(ty, v[4], ty->size - 1, 0x80);		/* the least, or the middle */
	memset(v[5], 0xff, ty->size);
	set_digit(ty, v[5], ty->size - 1, 0x7f);		/* the largest with a sign */
	memset(v[6], 0x5a, ty->size);
	for (size_t i = 7; i < 10; i++)
		for (size_t j = 0; j < ty->size; j++)
			v[i][j] = rng_below(&rng, 256);
	return 10;
}

static size_t real_values(const struct type *ty, elem *v)
{
	const long double max = ty->datatype == FI_FLOAT ? FLT_MAX : ty->datatype == FI_DOUBLE ? DBL_MAX : LDBL_MAX;
	const long double min = ty->datatype == FI_FLOAT ? FLT_TRUE_MIN :
				ty->datatype == FI_DOUBLE ? DBL_TRUE_MIN : LDBL_TRUE_MIN;
	const unsigned top = ty->finite ? 0x7e : (((1u << ty->exp_bits) - 1) << ty->man_bits) - 1;
	const long double value[] = {
		0.0L, -0.0L, 1.0L, -1.0L, 1.5L, -3.0L, 0.125L, 100.0L, NAN, INFINITY, -INFINITY,
		ty->sort == NARROW ? narrow_value(ty, top) : max, ty->sort == NARROW ? -narrow_value(ty, top) : -max,
		ty->sort == NARROW ? narrow_value(ty, 1) : min,
	};
	const size_t cnt = sizeof(value) / sizeof(*value);

	for (size_t i = 0; i < cnt; i++) {
		memset(v[i], 0xc0 + i, sizeof(*v));
		part_put(ty, v[i], value[i]);
	}
	return cnt;
}

static size_t complex_values(const struct type *ty, elem *v)
{
	static const long double value[][2] = {
		{ 0, 0 }, { 1, 0 }, { 0, 1 }, { -2, 3 }, { 1.5, -0.25 }, { -0.0, 0 }, { 64, 1024 }, { 1, NAN },
	};
	const size_t cnt = sizeof(value) / sizeof(*value);

	for (size_t i = 0; i < cnt; i++) {
		memset(v[i], 0xd0 + i, sizeof(*v));
		part_put(ty, v[i], value[i][0]);
		part_put(ty, v[i] + ty->size / 2, value[i][1]);
	}
	return cnt;
}

static size_t values_of(const struct type *ty, elem *v)
{
	return is_integer(ty) ? int_values(ty, v) : ty->sort == COMPLEX ? complex_values(ty, v) : real_values(ty, v);
}

/* ---- tests ---- */

/* Every byte as wanted, but for the bits of a NaN that was computed. */
static bool element_equal(const struct type *ty, enum fi_op op, const unsigned char *got, const unsigned char *want)
{
	const size_t part = ty->sort == COMPLEX ? ty->size / 2 : ty->size;

	for (size_t at = 0; at < ty->size; at += part) {
		if (!is_integer(ty) && (op == FI_SUM || op == FI_PROD || op == FI_DIFF) &&
		    isnan(part_get(ty, want + at))) {
			if (!isnan(part_get(ty, got + at)) ||
			    memcmp(got + at + ty->used, want + at + ty->used, part - ty->used))
				return false;
		} else if (memcmp(got + at, want + at, part)) {
			return false;
		}
	}
	return true;
}

static void show(const char *what, const unsigned char *v, size_t size)
{
	char text[2 * ELEMENT_MAX + 1] = "";

	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", v[i]);
	print_message("  %-8s %s\n", what, text);
}

/* One element of target changes, at an odd address, and nothing around it. */
static void try_one(const struct type *ty, enum fi_op op, const unsigned char *t, const unsigned char *b,
		    const unsigned char *c, bool fetch)
{
	unsigned char target[ELEMENT_MAX + 2], result[ELEMENT_MAX + 2];
	unsigned char operand[ELEMENT_MAX + 1], compare[ELEMENT_MAX + 1];
	elem want;

	memset(target, 0xee, sizeof(target));
	memset(result, 0xee, sizeof(result));
	memcpy(target + 1, t, ty->size);
	memcpy(operand + 1, b, ty->size);
	memcpy(compare + 1, c, ty->size);
	memcpy(want, t, ty->size);
	model(ty, op, want, b, c);

	fab_atomic_do(ty->datatype, op, target + 1, op == FI_ATOMIC_READ ? NULL : operand + 1,
		      op >= FI_CSWAP && op <= FI_MSWAP ? compare + 1 : NULL, fetch ? result + 1 : NULL, 1);
	if (!element_equal(ty, op, target + 1, want)) {
		show("target", t, ty->size);
		show("operand", b, ty->size);
		show("compare", c, ty->size);
		show("want", want, ty->size);
		show("got", target + 1, ty->size);
		fail_msg("%s, operation %d", ty->name, op);
	}
	assert_int_equal(target[0], 0xee);
	assert_int_equal(target[1 + ty->size], 0xee);
	if (fetch)
		assert_memory_equal(result + 1, t, ty->size);
	else
		assert_int_equal(result[1], 0xee);
	assert_int_equal(result[0], 0xee);
	assert_int_equal(result[1 + ty->size], 0xee);
}

static void try_values(const struct type *ty, enum fi_op op, bool fetch)
{
	const bool compares = op >= FI_CSWAP && op <= FI_MSWAP;
	elem v[VALUE_MAX];
	const size_t cnt = values_of(ty, v);

	for (size_t t = 0; t < cnt; t++)
		for (size_t b = 0; b < cnt; b++)
			for (size_t c = 0; c < (compares ? cnt : 1); c++)
				try_one(ty, op, v[t], v[b], v[c], fetch);
}

static void each_type_operation_and_kind_does_what_the_model_does(void **state)
{
	(void) state;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const struct type *ty = &types[i];

		assert_int_equal(fab_atomic_size(ty->datatype), ty->size);
		for (int op = FI_MIN; op <= FI_DIFF; op++) {
			for (int kind = FAB_ATOMIC_BASE; kind <= FAB_ATOMIC_COMPARE; kind++) {
				const bool valid = fab_atomic_valid(kind, ty->datatype, op);

				if (valid != defined(ty, kind, op))
					fail_msg("%s, operation %d, kind %d: %d", ty->name, op, kind, valid);
				if (valid)
					try_values(ty, op, kind != FAB_ATOMIC_BASE);
			}
		}
	}
}

static void numbers_that_are_no_datatype_or_operation_are_refused(void **state)
{
	static const unsigned none[] = { FI_FLOAT8_E5M2 + 1, FI_VOID, FI_VOID + 1, 0x80000000u, UINT32_MAX };

	(void) state;
	for (int kind = FAB_ATOMIC_BASE; kind <= FAB_ATOMIC_COMPARE; kind++) {
		for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
			assert_int_equal(fab_atomic_size(none[i]), 0);
			assert_false(fab_atomic_valid(kind, none[i], FI_SUM));
			assert_false(fab_atomic_valid(kind, none[i], FI_CSWAP));
			assert_false(fab_atomic_valid(kind, FI_UINT64, none[i]));
		}
	}
	assert_false(fab_atomic_valid(FAB_ATOMIC_COMPARE + 1, FI_UINT64, FI_SUM));
}

/* All pairs of the 8-bit floats, and pairs drawn of the 16-bit ones. */
static void narrow_floats_round_once_to_the_nearest(void **state)
{
	static const enum fi_op ops[] = { FI_SUM, FI_DIFF, FI_PROD };
	struct rng rng = { 42 };

	(void) state;
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		const struct type *ty = &types[i];

		if (ty->sort != NARROW)
			continue;
		for (unsigned n = 0; n < 0x10000; n++) {
			uint16_t t = ty->size == 1 ? n >> 8 : rng_below(&rng, 0x10000);
			uint16_t b = ty->size == 1 ? n & 0xff : rng_below(&rng, 0x10000);
			unsigned char bytes[2][2];

			memcpy(bytes[0], &t, 2);
			memcpy(bytes[1], &b, 2);
			if (ty->size == 1) {
				bytes[0][0] = t;
				bytes[1][0] = b;
			}
			for (size_t j = 0; j < 3; j++)
				try_one(ty, ops[j], bytes[0], bytes[1], bytes[1], false);
		}
	}
}

/* Written down, so that model and table cannot be wrong in the same way. */
static void some_sums_and_products_are_known(void **state)
{
	static const struct {
		enum fi_datatype datatype;
		enum fi_op op;
		uint16_t t, b, want;
	} known[] = {
		{ FI_INT8, FI_SUM, 0x7f, 0x01, 0x80 },
		{ FI_UINT16, FI_PROD, 0xffff, 0xffff, 0x0001 },
		{ FI_UINT8, FI_DIFF, 0x02, 0x03, 0xff },
		{ FI_INT8, FI_MIN, 0x01, 0xff, 0xff },
		{ FI_UINT8, FI_MIN, 0x01, 0xff, 0x01 },
		{ FI_FLOAT16, FI_SUM, 0x3c00, 0x1000, 0x3c00 },	/* 1 + 2^-11: a tie, to even */
		{ FI_FLOAT16, FI_SUM, 0x3c01, 0x1000, 0x3c02 },
		{ FI_FLOAT16, FI_PROD, 0x7bff, 0x4000, 0x7c00 },	/* 65504 * 2 */
		{ FI_BFLOAT16, FI_SUM, 0x3f80, 0x3f80, 0x4000 },
		{ FI_BFLOAT16, FI_PROD, 0x0001, 0x3f00, 0x0000 },	/* least / 2: a tie, to even */
		{ FI_FLOAT8_E4M3, FI_SUM, 0x7e, 0x7e, 0x7f },	/* 448 + 448 */
		{ FI_FLOAT8_E4M3, FI_PROD, 0x3c, 0x40, 0x44 },	/* 1.5 * 2 */
		{ FI_FLOAT8_E5M2, FI_SUM, 0x7b, 0x7b, 0x7c },
		{ FI_FLOAT8_E5M2, FI_DIFF, 0x3c, 0x3c, 0x00 },
	};

	(void) state;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		const bool byte = fab_atomic_size(known[i].datatype) == 1;
		uint8_t t8 = known[i].t, b8 = known[i].b;
		uint16_t t16 = known[i].t, b16 = known[i].b;

		fab_atomic_do(known[i].datatype, known[i].op, byte ? (void *) &t8 : &t16,
			      byte ? (void *) &b8 : &b16, NULL, NULL, 1);
		assert_int_equal(byte ? t8 : t16, known[i].want);
	}
}

static void an_array_is_changed_element_by_element(void **state)
{
	uint32_t target[5] = { 1, 2, 3, 4, 5 }, result[5] = { 0 };
	const uint32_t operand[5] = { 10, 20, 30, 40, 50 }, compare[5] = { 1, 0, 3, 0, 0 };

	(void) state;
	fab_atomic_do(FI_UINT32, FI_CSWAP, target, operand, compare, result, 4);
	assert_memory_equal(target, ((uint32_t []) { 10, 2, 30, 4, 5 }), sizeof(target));
	assert_memory_equal(result, ((uint32_t []) { 1, 2, 3, 4, 0 }), sizeof(result));
	fab_atomic_do(FI_UINT32, FI_SUM, target, operand, NULL, result, 0);
	assert_int_equal(target[0], 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_operation_and_kind_does_what_the_model_does),
		cmocka_unit_test(numbers_that_are_no_datatype_or_operation_are_refused),
		cmocka_unit_test(narrow_floats_round_once_to_the_nearest),
		cmocka_unit_test(some_sums_and_products_are_known),
		cmocka_unit_test(an_array_is_changed_element_by_element),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
