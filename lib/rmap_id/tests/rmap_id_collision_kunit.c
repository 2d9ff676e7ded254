// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters of rmap IDs with which several owners look like one owner.
 *
 * If a sum does not fit into 64 bits, a digit is lost, and the sums of several
 * owners can equal the sums of one owner. rmap_id_params.h proves for which
 * parameters this cannot happen. The cases test the proof. In arithmetic of a
 * few bits they try all differences of digits. In arithmetic of 64 bits they
 * use a search. The search must find such owners for every rejected parameter,
 * and no such owners for an accepted parameter.
 *
 * Not covered: whether the search finds the shortest vector. For 8 digits of
 * base 513, a host-side test enumerates all equally short vectors.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests 'rmap_id*'
 */

#include <kunit/test.h>
#include <linux/module.h>

#include "pgtable_kunit.h"
#include "rmap_id.h"
#include "rmap_id_collision.h"

static u64 combinations;

static u64 digits(u64 part, u64 base)
{
	u64 value = 0;
	int bit;

	for (bit = 63; bit >= 0; bit--)
		value = value * base + (part >> bit & 1);
	return value;
}

/*
 * Check that there are several owners, and that their sum equals the sum of one
 * owner.
 */
static void collision_verify(struct kunit *test, u64 base,
			     const struct collision *found)
{
	struct collision_owner owners[COLLISION_BITS + 1];
	u64 mapcount = found->norm + 1, sum = 0, mappings = 0;
	unsigned int nr = collision_owners(found, mapcount, owners), i, j;

	KUNIT_EXPECT_GE(test, nr, 2);
	for (i = 0; i < nr; i++) {
		KUNIT_EXPECT_GT(test, owners[i].mappings, 0);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, owners[i].part, owners[j].part);
		sum += owners[i].mappings * digits(owners[i].part, base);
		mappings += owners[i].mappings;
	}
	KUNIT_EXPECT_EQ(test, mappings, mapcount);
	KUNIT_EXPECT_EQ(test, sum, mapcount * digits(owners[0].part, base));
}

struct posted {
	unsigned int id;
	unsigned int mappings;
};

/*
 * Five owners with 71 mappings. With the IDs of the posted patches they look
 * like the single owner 0x5501.
 */
static const struct posted posted[] = {
	{ 0x5501, 1 }, { 0xaa01, 2 }, { 0x2b01, 12 }, { 0x6901, 28 },
	{ 0x4d01, 28 },
};

/*
 * The posted IDs have three values of 8 bits for up to 512 pages, and 513^8
 * does not fit into 64 bits. The search finds twice the binomials of order 7,
 * with alternating signs, since 512^7 * 2 is 2^64. These are five owners with
 * 71 mappings, and a folio of 128 pages can have 128 mappings. All three sums
 * equal the sums of one owner.
 */
static void rmap_id_collision_posted(struct kunit *test)
{
	static const s64 binomials[] = { -2, 14, -42, 70, -70, 42, -14, 2 };
	struct collision_owner owners[COLLISION_BITS + 1];
	struct collision found;
	u64 sum[3] = {}, mapcount = 0;
	unsigned int nr, i, j;

	collision_search(test, 513, 8, &found);
	KUNIT_EXPECT_EQ(test, found.norm, 70);
	KUNIT_EXPECT_MEMEQ(test, found.vector, binomials, sizeof(binomials));
	collision_verify(test, 513, &found);

	/*
	 * With one more mapping, the owner with the same sums has a mapping
	 * too.
	 */
	nr = collision_owners(&found, found.norm + 1, owners);
	KUNIT_ASSERT_EQ(test, nr, ARRAY_SIZE(posted));
	for (i = 0; i < nr; i++) {
		kunit_info(test, "ID %02llx01 has %llu of %llu mappings\n",
			   owners[i].part, owners[i].mappings, found.norm + 1);
		KUNIT_EXPECT_EQ(test, owners[i].part << 8 | 1, posted[i].id);
		KUNIT_EXPECT_EQ(test, owners[i].mappings, posted[i].mappings);
	}

	for (i = 0; i < ARRAY_SIZE(posted); i++) {
		mapcount += posted[i].mappings;
		for (j = 0; j < 3; j++)
			sum[j] += posted[i].mappings *
				  digits(posted[i].id >> 8 * j & 0xff, 513);
	}
	KUNIT_EXPECT_EQ(test, mapcount, 71);
	for (j = 0; j < 3; j++)
		KUNIT_EXPECT_EQ_MSG(test, sum[j],
				    mapcount * digits(0x5501 >> 8 * j & 0xff, 513),
				    "value %u", j);
}

/*
 * The five owners of rmap_id_collision_posted map folios of each order that
 * they fit into, with the parameters of rmap_id_params.h. While more than one
 * owner has mappings, no owner is the only owner. When only the last owner has
 * mappings, it is the only owner, and no other owner is.
 */
static void rmap_id_exclusive_posted(struct kunit *test)
{
	struct rmap_id_object *object;
	unsigned int order, i;

	for (order = 7; order <= RMAP_ID_ORDER_MAX; order++) {
		object = kunit_kzalloc(test, struct_size(object, sum,
							 RMAP_ID_VALUES_MAX),
				       GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, object);
		rmap_id_init(object, order);
		for (i = 0; i < ARRAY_SIZE(posted); i++)
			rmap_id_add(object, posted[i].id, posted[i].mappings);
		for (i = 0; i < ARRAY_SIZE(posted); i++)
			KUNIT_EXPECT_FALSE_MSG(test,
					       rmap_id_exclusive(object, posted[i].id),
					       "order %u: ID %x", order,
					       posted[i].id);
		for (i = 1; i < ARRAY_SIZE(posted); i++)
			rmap_id_add(object, posted[i].id, -(int)posted[i].mappings);
		for (i = 0; i < ARRAY_SIZE(posted); i++)
			KUNIT_EXPECT_EQ_MSG(test,
					    rmap_id_exclusive(object, posted[i].id),
					    i == 0, "order %u: %x alone, ID %x",
					    order, posted[0].id, posted[i].id);
	}
}

static const unsigned int collision_orders[] = {
	1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
};

static void collision_order_desc(const unsigned int *order, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", *order);
}

KUNIT_ARRAY_PARAM(collision_order, collision_orders, collision_order_desc);

/*
 * For each order, the search with the largest allowed number of digits finds no
 * group of owners that looks like one owner and fits into the folio. The search
 * with one more digit finds such a group. A search with fewer digits is
 * unnecessary, because the first search also covers owners with 0 in all other
 * digits. If several orders share an entry of the table, the entry is right for
 * the largest of these orders.
 */
static void rmap_id_collision_limit(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value, bits = 1;
	u64 max = 1ULL << order, base = max + 1;
	struct rmap_id_params params = rmap_id_params(order);
	struct collision found;

	while (rmap_id_sound(base, bits + 1))
		bits++;
	collision_search(test, base, bits, &found);
	KUNIT_EXPECT_GT(test, found.norm, max);
	collision_search(test, base, bits + 1, &found);
	KUNIT_EXPECT_LE(test, found.norm, max);
	KUNIT_EXPECT_GT(test, found.norm, 0);
	collision_verify(test, base, &found);
	kunit_info(test, "%u digits of base %llu: %llu mappings look like one owner\n",
		   bits + 1, base, found.norm);

	KUNIT_EXPECT_GE(test, params.base, base);
	KUNIT_EXPECT_LE(test, params.bits, bits);
	KUNIT_EXPECT_TRUE(test, rmap_id_sound(params.base, params.bits));
}

/*
 * Whether a vector other than 0, with components of up to @max, has the value
 * 0.
 */
static bool collision_exists(unsigned int base, int max, unsigned int left,
			     u32 mask, u32 sum, bool nonzero)
{
	int d;

	if (!left) {
		combinations++;
		return nonzero && !(sum & mask);
	}
	for (d = -max; d <= max; d++) {
		if (collision_exists(base, max, left - 1, mask, sum * base + d,
				     nonzero || d))
			return true;
	}
	return false;
}

/*
 * In arithmetic of w bits, parameters are sound if and only if (n + 1)^bits <=
 * 2^w. The case shows this for w = 3 to 12: it tries all differences of up to
 * six digits, for owners of up to 8 mappings.
 */
static void rmap_id_sound_small_words(struct kunit *test)
{
	unsigned int w, bits, nr = 0;
	int max;

	for (w = 3; w <= 12; w++) {
		for (max = 1; max <= 8; max++) {
			u64 power = 1, vectors = 1;

			for (bits = 1; bits <= 6; bits++) {
				power *= max + 1;
				vectors *= 2 * max + 1;
				if (vectors > 200000)
					break;
				KUNIT_EXPECT_EQ_MSG(test,
						    collision_exists(max + 1, max,
								     bits,
								     (1U << w) - 1,
								     0, false),
						    power > 1U << w,
						    "%u bits, %d mappings, %u digits",
						    w, max, bits);
				nr++;
			}
			cond_resched();
		}
	}
	PGTABLE_KUNIT_DID(test, nr, "parameters");
	PGTABLE_KUNIT_DID(test, combinations, "vectors");
}

/*
 * The base may be larger than necessary. With a power of two as base, zero bits
 * separate the bits of an ID. For folios of 2^K pages, K + 1 bits for a digit
 * are enough, and K bits are not enough. With base 2^K, 2^K mappings of ID 2
 * look like one mapping of ID 1 and 2^K - 1 mappings of ID 3.
 */
static void rmap_id_base_power_of_two(struct kunit *test)
{
	unsigned int order, part, bit, n;

	for (order = 2; order <= 3; order++) {
		u64 max = 1U << order;

		for (part = 0; part < 256; part++) {
			u64 deposited = 0;

			for (bit = 0; bit < 8; bit++)
				deposited |= (part >> bit & 1ULL) << bit * (order + 1);
			KUNIT_EXPECT_EQ(test, digits(part, 2 * max), deposited);
		}
		for (n = 1; n <= 4; n++) {
			KUNIT_EXPECT_FALSE(test,
					   collision_exists(2 * max, max, n, ~0U,
							    0, false));
			KUNIT_EXPECT_FALSE(test,
					   collision_exists(max + 1, max, n, ~0U,
							    0, false));
			KUNIT_EXPECT_EQ(test,
					collision_exists(max, max, n, ~0U, 0,
							 false), n > 1);
		}
		KUNIT_EXPECT_EQ(test, max * digits(2, max),
				digits(1, max) + (max - 1) * digits(3, max));
		KUNIT_EXPECT_NE(test, max * digits(2, 2 * max),
				digits(1, 2 * max) + (max - 1) * digits(3, 2 * max));
	}
}

static int collision_init(struct kunit *test)
{
	combinations = 0;
	return pgtable_kunit_init(test);
}

static struct kunit_case collision_cases[] = {
	KUNIT_CASE(rmap_id_collision_posted),
	KUNIT_CASE(rmap_id_exclusive_posted),
	KUNIT_CASE_PARAM(rmap_id_collision_limit, collision_order_gen_params),
	KUNIT_CASE_SLOW(rmap_id_sound_small_words),
	KUNIT_CASE(rmap_id_base_power_of_two),
	{}
};

static struct kunit_suite collision_suite = {
	.name = "rmap_id_collision",
	.suite_init = pgtable_kunit_suite_init,
	.init = collision_init,
	.test_cases = collision_cases,
};

kunit_test_suite(collision_suite);

MODULE_DESCRIPTION("KUnit tests for parameters of rmap IDs");
MODULE_LICENSE("GPL");
