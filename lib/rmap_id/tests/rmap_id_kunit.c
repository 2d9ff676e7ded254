// SPDX-License-Identifier: GPL-2.0
/*
 * rmap IDs: sums of IDs show whether all mappings have one owner.
 *
 * The sums are right for one owner by construction. The cases must show that no
 * other owners have the same sums. They try all multisets of owners of small
 * objects, and random owners up to the largest objects. Suite rmap_id_collision
 * searches for such owners.
 *
 * Not covered: races (atomic_seqcount_race), and how the kernel itself tracks
 * owners, which is different (folio_mapped_shared).
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests 'rmap_id*'
 *
 * For another random sequence: --kernel_args rmap_id_kunit.seed=N. Each run
 * prints its seed.
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "pgtable_kunit.h"
#include "rmap_id.h"

static ulong seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "seed of random mappings, 0 for another seed at each boot");

/* The number of objects with random owners for each order. */
#define RANDOM_OBJECTS	200

/* Words after the sums, which no function may write to. */
#define GUARDS		4
#define GUARD		0x5a5a5a5a5a5a5a5aULL

static u64 combinations;

struct id_order {
	unsigned int order;
	unsigned int values;
	unsigned int bits;
	unsigned int base;
};

/*
 * The orders of folios, in a second table to compare with the table under test.
 */
static const struct id_order id_orders[] = {
	{ 0, 1, 24, 5 }, { 1, 1, 24, 5 }, { 2, 1, 24, 5 },
	{ 3, 2, 12, 33 }, { 4, 2, 12, 33 }, { 5, 2, 12, 33 },
	{ 6, 4, 6, 1025 }, { 7, 4, 6, 1025 }, { 8, 4, 6, 1025 },
	{ 9, 4, 6, 1025 }, { 10, 4, 6, 1025 },
	{ 11, 5, 5, 4097 }, { 12, 5, 5, 4097 },
	{ 13, 6, 4, 32769 }, { 14, 6, 4, 32769 }, { 15, 6, 4, 32769 },
};

static void id_order_desc(const struct id_order *p, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", p->order);
}

KUNIT_ARRAY_PARAM(id_order, id_orders, id_order_desc);

/* Orders with so few multisets that the cases can try all of them. */
#define ID_ORDER_SMALL	4

static PGTABLE_KUNIT_GEN_PARAMS(id_small)
{
	const struct id_order *p = prev ? prev + sizeof(*p) : id_orders;

	if (p->order > ID_ORDER_SMALL)
		return NULL;
	id_order_desc(p, desc);
	return p;
}

/* Orders of objects that can have several owners. */
static PGTABLE_KUNIT_GEN_PARAMS(id_shared)
{
	const struct id_order *p = prev ? prev + sizeof(*p) : id_orders + 1;

	if (p == id_orders + ARRAY_SIZE(id_orders))
		return NULL;
	id_order_desc(p, desc);
	return p;
}

static struct rmap_id_object *id_object(struct kunit *test, unsigned int order)
{
	struct rmap_id_object *object;
	unsigned int i;

	object = kunit_kzalloc(test,
			       struct_size(object, sum, RMAP_ID_VALUES_MAX + GUARDS),
			       GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, object);
	for (i = 0; i < RMAP_ID_VALUES_MAX + GUARDS; i++)
		atomic64_set(&object->sum[i], GUARD);
	rmap_id_init(object, order);
	return object;
}

/*
 * Check that only the sums of the object were written to, and no word after
 * them.
 */
static void id_guards(struct kunit *test, struct rmap_id_object *object,
		      unsigned int values)
{
	unsigned int i;

	for (i = values; i < RMAP_ID_VALUES_MAX + GUARDS; i++)
		KUNIT_EXPECT_EQ_MSG(test, (u64)atomic64_read(&object->sum[i]),
				    GUARD, "sum %u of %u", i, values);
}

/* Check that all sums are 0, as before the first mapping. */
static void id_unmapped(struct kunit *test, struct rmap_id_object *object,
			unsigned int values)
{
	unsigned int i;

	KUNIT_EXPECT_EQ(test, atomic_read(&object->mapcount), 0);
	for (i = 0; i < values; i++)
		KUNIT_EXPECT_EQ(test, (u64)atomic64_read(&object->sum[i]), 0);
	id_guards(test, object, values);
}

/*
 * A sub-ID has one digit for each bit. The case compares each sub-ID with the
 * sum of computed powers of its bits. 0 gives 0, all bits give ((n + 1)^bits -
 * 1) / n, and a larger part gives a larger sub-ID. The case tries all parts of
 * up to 12 bits. Of parts of 24 bits it tries the first 2^16, and all parts
 * with two bits set.
 */
static void rmap_id_sub_digits(struct kunit *test)
{
	const struct id_order *p = test->param_value;
	struct rmap_id_params params = rmap_id_params(p->order);
	unsigned int part, bit, value;
	u64 last = 0, power[24], all = 0;

	for (bit = 0; bit < p->bits; bit++) {
		power[bit] = bit ? power[bit - 1] * p->base : 1;
		all += power[bit];
	}

	for (value = 0; value < p->values; value++) {
		unsigned int shift = value * p->bits;

		for (part = 0; part < 1U << min(p->bits, 16U); part++) {
			u64 sub, want = 0;

			if (part << shift > RMAP_ID_MAX)
				break;
			for (bit = 0; bit < p->bits; bit++)
				want += part >> bit & 1 ? power[bit] : 0;
			sub = rmap_id_sub(&params, part << shift, value);
			KUNIT_ASSERT_EQ_MSG(test, sub, want,
					    "part %x of value %u", part, value);
			if (part)
				KUNIT_ASSERT_GT(test, sub, last);
			last = sub;
			combinations++;
		}
	}
	for (part = 0; part < p->bits * p->bits; part++) {
		unsigned int a = part / p->bits, b = part % p->bits;

		KUNIT_EXPECT_EQ(test,
				rmap_id_sub(&params, 1U << a | 1U << b, 0),
				a == b ? power[a] : power[a] + power[b]);
		combinations++;
	}
	KUNIT_EXPECT_EQ(test, all, rmap_id_sub(&params, RMAP_ID_MAX, 0));
	/* all == ((n + 1)^bits - 1) / n, without the power that may not fit */
	KUNIT_EXPECT_EQ(test, all, power[p->bits - 1] + (power[p->bits - 1] - 1) /
				   (p->base - 1));
}

/* The sub-IDs of the smallest folios as numbers, in base 5. */
static void rmap_id_sub_first(struct kunit *test)
{
	static const u64 want[] = {
		0, 1, 5, 6, 25, 26, 30, 31,
		125, 126, 130, 131, 150, 151, 155, 156,
	};
	struct rmap_id_params params = rmap_id_params(2);
	unsigned int id;

	for (id = 0; id < ARRAY_SIZE(want); id++)
		KUNIT_EXPECT_EQ(test, rmap_id_sub(&params, id, 0), want[id]);
}

/*
 * Every order has enough values: each bit of an ID has a place in one of them.
 * No function writes after the values, because an object has no room there.
 */
static void rmap_id_params_order(struct kunit *test)
{
	const struct id_order *p = test->param_value;
	struct rmap_id_params params = rmap_id_params(p->order);
	struct rmap_id_object *object = id_object(test, p->order);

	KUNIT_EXPECT_EQ(test, params.values, p->values);
	KUNIT_EXPECT_EQ(test, params.bits, p->bits);
	KUNIT_EXPECT_EQ(test, params.base, p->base);
	KUNIT_EXPECT_GT(test, params.base, 1U << p->order);
	KUNIT_EXPECT_GE(test, params.values * params.bits, RMAP_ID_BITS);
	KUNIT_EXPECT_TRUE(test, rmap_id_sound(params.base, params.bits));

	rmap_id_add(object, RMAP_ID_MAX, 1 << p->order);
	rmap_id_exclusive(object, RMAP_ID_MAX);
	id_guards(test, object, p->values);
	rmap_id_add(object, RMAP_ID_MAX, -(1 << p->order));
	id_unmapped(test, object, p->values);
}

/*
 * The build accepts exactly the parameters with (n + 1)^bits - 1 < 2^64. The
 * case checks this by multiplication, and the code under test uses division.
 * Each order has a limit between 1 and 64 bits. The posted values of 8 bits for
 * 512 pages are beyond the limit of their order.
 */
static void rmap_id_sound_limit(struct kunit *test)
{
	unsigned int order, bits;

	for (order = 1; order <= RMAP_ID_ORDER_MAX; order++) {
		u64 base = (1U << order) + 1, power = 1;
		bool fits = true;

		for (bits = 1; bits <= 64; bits++) {
			/* The base is odd, so no power equals 2^64. */
			fits = fits && !check_mul_overflow(power, base, &power);
			KUNIT_EXPECT_EQ_MSG(test, rmap_id_sound(base, bits), fits,
					    "base %llu, %u bits", base, bits);
			combinations++;
		}
		KUNIT_EXPECT_FALSE(test, fits);
	}
	KUNIT_EXPECT_TRUE(test, rmap_id_sound(513, 7));
	KUNIT_EXPECT_FALSE(test, rmap_id_sound(513, 8));
}

/*
 * One owner maps and unmaps pages, one by one or all at once. It always owns
 * all mappings, and without mappings all sums are 0 again. The case tries IDs
 * with one bit, all bits, and random bits.
 */
static void rmap_id_exclusive_one_owner(struct kunit *test)
{
	const struct id_order *p = test->param_value;
	struct rmap_id_object *object = id_object(test, p->order);
	const int max = 1 << p->order;
	struct rnd_state rnd;
	unsigned int i, step;

	prandom_seed_state(&rnd, seed + p->order);
	for (i = 0; i < 2 * RMAP_ID_BITS; i++) {
		unsigned int id = i < RMAP_ID_BITS ? 1U << i :
				  prandom_u32_state(&rnd) % RMAP_ID_MAX + 1;
		int mapped = 0;

		if (i == RMAP_ID_BITS)
			id = RMAP_ID_MAX;
		for (step = 0; step < 64; step++) {
			int nr = prandom_u32_state(&rnd) % (max + 1) - mapped;

			if (step == 0)
				nr = 1;
			if (step == 1)
				nr = max - mapped;
			rmap_id_add(object, id, nr);
			mapped += nr;
			if (!rmap_id_exclusive(object, id)) {
				KUNIT_FAIL(test, "seed %lu: ID %x, %d mappings",
					   seed, id, mapped);
				return;
			}
			combinations++;
		}
		rmap_id_add(object, id, -mapped);
		id_unmapped(test, object, p->values);
	}
}

/*
 * Spread the bits of a small number over an ID: to the first bit, the last bit,
 * and two bits in the middle.
 */
static unsigned int id_spread(unsigned int number, unsigned int bits)
{
	static const unsigned int at[] = {
		0, RMAP_ID_BITS / 2 - 1, RMAP_ID_BITS / 2, RMAP_ID_BITS - 1,
	};
	unsigned int id = 0, i;

	for (i = 0; i < bits; i++)
		id |= number >> i & 1 ? 1U << at[i] : 0;
	return id;
}

/* Try all ways to give @left mappings to the IDs from number @first on. */
static bool id_multisets(struct kunit *test, struct rmap_id_object *object,
			 unsigned int bits, unsigned int first, int left,
			 int *count)
{
	unsigned int number;
	int nr;

	if (first == 1U << bits) {
		unsigned int owners = 0;

		for (number = 1; number < 1U << bits; number++)
			owners += !!count[number];
		for (number = 1; number < 1U << bits; number++) {
			unsigned int id = id_spread(number, bits);
			bool want = !owners || (owners == 1 && count[number]);

			combinations++;
			if (rmap_id_exclusive(object, id) == want)
				continue;
			KUNIT_FAIL(test, "%u owners, ID %x has %d mappings of %d",
				   owners, id, count[number],
				   atomic_read(&object->mapcount));
			return false;
		}
		return true;
	}

	for (nr = 0; nr <= left; nr++) {
		unsigned int id = id_spread(first, bits);
		bool right;

		count[first] = nr;
		if (nr)
			rmap_id_add(object, id, nr);
		right = id_multisets(test, object, bits, first + 1, left - nr,
				     count);
		if (nr)
			rmap_id_add(object, id, -nr);
		count[first] = 0;
		if (!right)
			return false;
	}
	return true;
}

/*
 * Owners map an object in all combinations, with up to the largest number of
 * mappings that one owner can have. For each owner, the answer whether all
 * mappings belong to it is right. The case tries 15 IDs for up to 4 mappings,
 * and 7 IDs for 8 and 16 mappings, since more IDs would take too long.
 */
static void rmap_id_exclusive_every_multiset(struct kunit *test)
{
	const struct id_order *p = test->param_value;
	struct rmap_id_object *object = id_object(test, p->order);
	int count[16] = {};

	id_multisets(test, object, p->order > 2 ? 3 : 4, 1, 1 << p->order,
		     count);
	id_unmapped(test, object, p->values);
}

/*
 * Up to six random owners together have as many mappings as one owner may have.
 * No owner must look like the only owner. In every second object, each owner
 * differs from the first owner in one bit.
 */
static void rmap_id_exclusive_random(struct kunit *test)
{
	const struct id_order *p = test->param_value;
	struct rmap_id_object *object = id_object(test, p->order);
	unsigned int ids[6], n, i, owners;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, seed + p->order);
	for (n = 0; n < RANDOM_OBJECTS; n++) {
		int left = 1 << p->order, count[6];

		owners = min(2 + prandom_u32_state(&rnd) % 5, 1U << p->order);
		for (i = 0; i < owners; i++) {
			unsigned int j;

			do {
				ids[i] = n & 1 && i ?
					 ids[0] ^ 1U << prandom_u32_state(&rnd) %
							RMAP_ID_BITS :
					 prandom_u32_state(&rnd) & RMAP_ID_MAX;
				for (j = 0; j < i && ids[j] != ids[i]; j++)
					;
			} while (!ids[i] || j < i);

			/*
			 * The last owner gets all remaining mappings, so the
			 * object is full.
			 */
			count[i] = 1 + prandom_u32_state(&rnd) %
				       (left - (owners - 1 - i));
			if (i == owners - 1 && n & 2)
				count[i] = left;
			left -= count[i];
			rmap_id_add(object, ids[i], count[i]);
		}
		for (i = 0; i < owners; i++) {
			if (rmap_id_exclusive(object, ids[i]))
				KUNIT_FAIL(test, "seed %lu: %u owners, ID %x has %d of %d",
					   seed, owners, ids[i], count[i],
					   (1 << p->order) - left);
			combinations++;
		}
		while (owners--)
			rmap_id_add(object, ids[owners], -count[owners]);
	}
	id_unmapped(test, object, p->values);
}

/*
 * If there are as many mappings as pages, all of them may belong to one owner.
 * With one more mapping, one owner cannot have all of them, since an
 * owner maps each page at most once. Then rmap_id_exclusive() does not use the
 * sums. This happens for a moment when mappings of the pages replace a huge
 * mapping, until the huge mapping is removed.
 */
static void rmap_id_exclusive_limit(struct kunit *test)
{
	const struct id_order *p = test->param_value;
	struct rmap_id_object *object = id_object(test, p->order);
	const int max = 1 << p->order;

	rmap_id_add(object, RMAP_ID_MAX, 1);
	KUNIT_EXPECT_TRUE(test, rmap_id_exclusive(object, RMAP_ID_MAX));
	rmap_id_add(object, RMAP_ID_MAX, max);
	KUNIT_EXPECT_FALSE(test, rmap_id_exclusive(object, RMAP_ID_MAX));
	rmap_id_add(object, RMAP_ID_MAX, -1);
	KUNIT_EXPECT_TRUE(test, rmap_id_exclusive(object, RMAP_ID_MAX));
	KUNIT_EXPECT_FALSE(test, rmap_id_exclusive(object, RMAP_ID_MAX - 1));
	rmap_id_add(object, RMAP_ID_MAX, -max);
	id_unmapped(test, object, p->values);
}

/*
 * IDs are distinct, never 0, and reused after they are freed. On UML, which
 * runs at the speed of the host, the case allocates all 2^24 - 1 IDs, up to the
 * largest. After that, an allocation fails.
 */
static void rmap_id_alloc_all(struct kunit *test)
{
	unsigned int max = IS_ENABLED(CONFIG_UML) ? RMAP_ID_MAX : 4096;
	unsigned long *used = kvzalloc(BITS_TO_LONGS(max + 1) * sizeof(*used),
				       GFP_KERNEL);
	unsigned int i;
	int id = 0;

	KUNIT_ASSERT_NOT_NULL(test, used);
	for (i = 0; i < max; i++) {
		id = rmap_id_alloc(GFP_KERNEL);
		if (id < RMAP_ID_MIN || id > max || __test_and_set_bit(id, used))
			break;
	}
	KUNIT_EXPECT_EQ_MSG(test, i, max, "got ID %d", id);
	if (i == max && max == RMAP_ID_MAX)
		KUNIT_EXPECT_EQ(test, rmap_id_alloc(GFP_KERNEL), -ENOSPC);
	if (i == max) {
		rmap_id_free(max / 2);
		KUNIT_EXPECT_EQ(test, rmap_id_alloc(GFP_KERNEL), max / 2);
	}
	for_each_set_bit(i, used, max + 1) {
		rmap_id_free(i);
		cond_resched();
	}
	kvfree(used);
	combinations += max;
}

static int rmap_id_suite_init(struct kunit_suite *suite)
{
	seed = seed ?: get_random_u32();
	return pgtable_kunit_suite_init(suite);
}

static int rmap_id_case_init(struct kunit *test)
{
	combinations = 0;
	return pgtable_kunit_init(test);
}

static void rmap_id_case_exit(struct kunit *test)
{
	if (combinations)
		kunit_info(test, "%llu combinations, seed %lu\n", combinations,
			   seed);
}

static struct kunit_case rmap_id_cases[] = {
	KUNIT_CASE_PARAM(rmap_id_sub_digits, id_order_gen_params),
	KUNIT_CASE(rmap_id_sub_first),
	KUNIT_CASE_PARAM(rmap_id_params_order, id_order_gen_params),
	KUNIT_CASE(rmap_id_sound_limit),
	KUNIT_CASE_PARAM(rmap_id_exclusive_one_owner, id_order_gen_params),
	KUNIT_CASE_PARAM_ATTR(rmap_id_exclusive_every_multiset,
			      id_small_gen_params, PGTABLE_KUNIT_SLOW),
	KUNIT_CASE_PARAM(rmap_id_exclusive_random, id_shared_gen_params),
	KUNIT_CASE_PARAM(rmap_id_exclusive_limit, id_order_gen_params),
	KUNIT_CASE_SLOW(rmap_id_alloc_all),
	{}
};

static struct kunit_suite rmap_id_suite = {
	.name = "rmap_id",
	.suite_init = rmap_id_suite_init,
	.init = rmap_id_case_init,
	.exit = rmap_id_case_exit,
	.test_cases = rmap_id_cases,
};

kunit_test_suite(rmap_id_suite);

MODULE_DESCRIPTION("KUnit tests for rmap IDs");
MODULE_LICENSE("GPL");
