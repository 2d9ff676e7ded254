// SPDX-License-Identifier: GPL-2.0
/*
 * A search for several owners with the same sums of IDs as one owner.
 *
 * Take an owner t and P mappings of other owners. Digit k of the sum is the
 * number of mappings by owners with bit k. If all mappings belonged to t, the
 * digit would be P or 0. Let d_k be the difference of these two digits, with
 * |d_k| <= P. The sums are equal if d_0 + d_1 base + d_2 base^2 + ... is 0
 * modulo 2^64. Conversely, there are mappings for any such differences: t has
 * the bits with negative d_k. Mapping number i = 0, 1, ... differs from t in
 * the bits with |d_k| > i. So P mappings can look like the mappings of t if and
 * only if the lattice of all such d has a nonzero vector with no component
 * above P.
 *
 * A basis of the lattice is known. It consists of base * e_k - e_(k+1) for each
 * k, and of 2^64 in digits of that base. To make the vectors short, the search
 * reduces each vector by each other vector, as in Euclid's algorithm, until
 * nothing changes. The result is not always the shortest vector. It is the
 * shortest in all cases in which the shortest vector is known.
 */

#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/math64.h>

#include "rmap_id_collision.h"

struct lattice {
	unsigned int bits;
	s64 basis[COLLISION_BITS][COLLISION_BITS];
};

static s64 product(const struct lattice *l, unsigned int i, unsigned int j)
{
	s64 sum = 0;
	unsigned int k;

	for (k = 0; k < l->bits; k++)
		sum += l->basis[i][k] * l->basis[j][k];
	return sum;
}

static void lattice_init(struct lattice *l, u64 base, unsigned int bits)
{
	u64 quotient, rest;
	unsigned int k;

	memset(l, 0, sizeof(*l));
	l->bits = bits;
	for (k = 0; k + 1 < bits; k++) {
		l->basis[k][k] = base;
		l->basis[k][k + 1] = -1;
	}

	/*
	 * 2^64 = quotient * base + rest, computed from 2^64 - 1. The base does
	 * not divide 2^64.
	 */
	quotient = div64_u64_rem(U64_MAX, base, &rest);
	rest++;
	for (k = 0; k + 1 < bits; k++) {
		l->basis[bits - 1][k] = rest;
		quotient = div64_u64_rem(quotient, base, &rest);
	}
	/*
	 * The last quotient is the highest digit, which may have any size.
	 */
	l->basis[bits - 1][bits - 1] = quotient * base + rest;
}

/* Make vector @i shorter with a multiple of vector @j. */
static bool lattice_reduce(struct lattice *l, unsigned int i, unsigned int j)
{
	s64 norm = product(l, j, j), dot = product(l, i, j);
	s64 q = div64_s64((dot < 0 ? -dot : dot) + norm / 2, norm);
	unsigned int k;

	/* If the quotient were exactly 1/2, @i would keep its length. */
	if (!q || 2 * (dot < 0 ? -dot : dot) == norm)
		return false;
	if (dot < 0)
		q = -q;
	for (k = 0; k < l->bits; k++)
		l->basis[i][k] -= q * l->basis[j][k];
	return true;
}

static u64 vector_norm(const s64 *vector, unsigned int bits)
{
	u64 norm = 0;
	unsigned int k;

	for (k = 0; k < bits; k++)
		norm = max_t(u64, norm, abs(vector[k]));
	return norm;
}

/**
 * collision_search() - find differences that are 0 modulo 2^64
 * @test: the test, for memory
 * @base: the base of the digits, odd
 * @bits: number of digits
 * @found: the smallest differences that were found. The last nonzero difference
 *	is positive
 */
void collision_search(struct kunit *test, u64 base, unsigned int bits,
		      struct collision *found)
{
	struct lattice *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	unsigned int i, j, k, best = 0;
	bool changed;

	KUNIT_ASSERT_NOT_NULL(test, l);
	KUNIT_ASSERT_LE(test, bits, COLLISION_BITS);
	lattice_init(l, base, bits);
	/* The scalar products of the vectors must fit into 64 bits too. */
	KUNIT_ASSERT_LE(test, vector_norm(l->basis[bits - 1], bits), S32_MAX);

	do {
		changed = false;
		for (i = 0; i < bits; i++) {
			for (j = 0; j < bits; j++)
				changed |= i != j && lattice_reduce(l, i, j);
		}
	} while (changed);

	for (i = 1; i < bits; i++) {
		if (vector_norm(l->basis[i], bits) <
		    vector_norm(l->basis[best], bits))
			best = i;
	}
	found->bits = bits;
	found->norm = vector_norm(l->basis[best], bits);
	for (k = bits; k-- && !l->basis[best][k];)
		;
	for (i = 0; i < bits; i++)
		found->vector[i] = l->basis[best][k] < 0 ? -l->basis[best][i] :
							   l->basis[best][i];
	kunit_kfree(test, l);
}

/**
 * collision_owners() - make owners out of differences
 * @found: the differences
 * @mapcount: how many mappings the owners have in all, at least @found->norm
 * @owners: room for @found->bits + 1 owners. The first is the owner that the
 *	other owners look like. It has 0 mappings if @mapcount is @found->norm
 *
 * Return: the number of owners, including owners without mappings.
 */
unsigned int collision_owners(const struct collision *found, u64 mapcount,
			      struct collision_owner *owners)
{
	u64 from = 0, target = 0;
	unsigned int nr = 1, k;

	for (k = 0; k < found->bits; k++)
		target |= found->vector[k] < 0 ? 1ULL << k : 0;
	owners[0] = (struct collision_owner){ target, mapcount - found->norm };

	while (from < found->norm) {
		u64 to = found->norm, differ = 0;

		for (k = 0; k < found->bits; k++) {
			u64 size = abs(found->vector[k]);

			if (size <= from)
				continue;
			differ |= 1ULL << k;
			to = min(to, size);
		}
		owners[nr++] = (struct collision_owner){ target ^ differ,
							 to - from };
		from = to;
	}
	return nr;
}
