/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The number of sums that an object of each order needs, and the proof that
 * this number is enough.
 *
 * An owner has an ID of RMAP_ID_BITS bits. An object of up to n mappings adds
 * up the IDs of all its mappings. For the sum, an ID is a number in base n + 1:
 * each bit of the ID is one digit. A digit of the sum is the number of mappings
 * by owners with this bit. There are at most n mappings, so no digit carries
 * into the next digit. All mappings belong to one owner if and only if each
 * digit of the sum is the number of mappings where the owner's ID has a 1, and
 * 0 where it has a 0.
 *
 * The sum has to fit: (n + 1)^bits - 1 < 2^64. This condition is also
 * necessary: if it does not hold, 2^64 itself can be written with digits of at
 * most n. These digits are a sum of other owners, and the sum is 0 modulo 2^64.
 * So an ID is divided into as many values as necessary.
 */
#ifndef _LIB_RMAP_ID_PARAMS_H
#define _LIB_RMAP_ID_PARAMS_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/limits.h>
#include <linux/types.h>

#define RMAP_ID_BITS		24
#define RMAP_ID_ORDER_MAX	15
#define RMAP_ID_VALUES_MAX	6

/**
 * struct rmap_id_params - how IDs are divided for an object
 * @base: the base of the digits: one more than the largest number of mappings
 * @values: the number of sums
 * @bits: the number of digits of each sum
 */
struct rmap_id_params {
	unsigned int base;
	unsigned int values;
	unsigned int bits;
};

/* Divide @q by @base once for each existing digit of @k, @k + 1, ... */
static __always_inline u64 __rmap_id_div(u64 q, u64 base, unsigned int bits,
					 unsigned int k)
{
	return k < bits ? q / base : q;
}

static __always_inline u64 __rmap_id_div4(u64 q, u64 base, unsigned int bits,
					  unsigned int k)
{
	q = __rmap_id_div(q, base, bits, k);
	q = __rmap_id_div(q, base, bits, k + 1);
	q = __rmap_id_div(q, base, bits, k + 2);
	return __rmap_id_div(q, base, bits, k + 3);
}

static __always_inline u64 __rmap_id_div16(u64 q, u64 base, unsigned int bits,
					   unsigned int k)
{
	q = __rmap_id_div4(q, base, bits, k);
	q = __rmap_id_div4(q, base, bits, k + 4);
	q = __rmap_id_div4(q, base, bits, k + 8);
	return __rmap_id_div4(q, base, bits, k + 12);
}

/**
 * rmap_id_sound() - whether a value of 64 bits can hold the sums
 * @base: of the digits; not a power of two
 * @bits: digits of a value, at most 64
 *
 * The function has no loop, so that the compiler can evaluate it for constants.
 * The power (@base)^(@bits) may be too large, so the function divides 2^64 - 1
 * instead.
 */
static __always_inline bool rmap_id_sound(unsigned int base, unsigned int bits)
{
	u64 q = U64_MAX;

	q = __rmap_id_div16(q, base, bits, 0);
	q = __rmap_id_div16(q, base, bits, 16);
	q = __rmap_id_div16(q, base, bits, 32);
	q = __rmap_id_div16(q, base, bits, 48);
	return bits <= 64 && q;
}

/*
 * Parameters for all objects of up to 2^@order mappings. Unsound parameters do
 * not compile.
 */
static __always_inline struct rmap_id_params
rmap_id_sound_params(unsigned int order, unsigned int values, unsigned int bits)
{
	BUILD_BUG_ON(!rmap_id_sound((1U << order) + 1, bits));
	BUILD_BUG_ON(values * bits < RMAP_ID_BITS);
	BUILD_BUG_ON(values > RMAP_ID_VALUES_MAX);
	return (struct rmap_id_params){
		.base = (1U << order) + 1,
		.values = values,
		.bits = bits,
	};
}

/**
 * rmap_id_params() - how IDs are divided for an object
 * @order: the object has up to 2^@order mappings, with order up to
 *	   RMAP_ID_ORDER_MAX
 */
static inline struct rmap_id_params rmap_id_params(unsigned int order)
{
	switch (order) {
	case 0 ... 2:
		return rmap_id_sound_params(2, 1, 24);
	case 3 ... 5:
		return rmap_id_sound_params(5, 2, 12);
	case 6 ... 10:
		/*
		 * Three values of 8 bits are enough for 128 pages, but not for
		 * 256.
		 */
		return rmap_id_sound_params(10, 4, 6);
	case 11 ... 12:
		return rmap_id_sound_params(12, 5, 5);
	default:
		return rmap_id_sound_params(RMAP_ID_ORDER_MAX, 6, 4);
	}
}

#endif /* _LIB_RMAP_ID_PARAMS_H */
