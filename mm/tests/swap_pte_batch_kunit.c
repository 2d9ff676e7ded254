// SPDX-License-Identifier: GPL-2.0
/*
 * swap_pte_batch(): how many consecutive entries are consecutive slots of one
 * swap device; and pte_move_swp_offset(), which computes the next entry.
 *
 * zap, madvise and swap-in free or read all these slots with one call. If a
 * batch is too long, they free slots of another owner. Each case writes swap
 * entries of an invented device into a synthetic page table, asks for a batch,
 * and compares its length with the entries. Nothing in the table may change.
 * Nothing is swapped: the entries have the highest types, which a device gets
 * only when all other types are in use.
 *
 * Not covered: the callers, and calls with an entry that is not a swap entry.
 * Such calls break the contract, and VM_WARN_ON() reports them.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests swap_pte_batch
 */

#include <kunit/test.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/swap.h>
#include <linux/swapops.h>

#include "../internal.h"
#include "pgtable_kunit.h"

/*
 * The number of entries for which the cases try all pairs of positions: more
 * than fit into a cache line.
 */
#define RUN		32

/*
 * The types of three devices: for most entries, for other entries, and one that
 * never had a map of memory cgroups.
 */
#define TYPE		(MAX_SWAPFILES - 1)
#define OTHER_TYPE	(MAX_SWAPFILES - 2)
#define UNUSED_TYPE	(MAX_SWAPFILES - 3)

/* The slots extend over two pages of the map of memory cgroups. */
#define FIRST		(PAGE_SIZE / sizeof(unsigned short) - RUN / 2)

/* The bits of a swap entry in addition to type and offset. */
#define SWP_SOFT	BIT(0)
#define SWP_EXCLUSIVE	BIT(1)
#define SWP_UFFD	BIT(2)
#define SWP_BITS	(SWP_SOFT | SWP_EXCLUSIVE | SWP_UFFD)

static pte_t swap_pte(unsigned int type, unsigned long offset, unsigned int bits)
{
	pte_t pte = swp_entry_to_pte(swp_entry(type, offset));

	if (bits & SWP_SOFT)
		pte = pte_swp_mksoft_dirty(pte);
	if (bits & SWP_EXCLUSIVE)
		pte = pte_swp_mkexclusive(pte);
	if (bits & SWP_UFFD)
		pte = pgtable_kunit_swp_mkuffd(pte);
	return pte;
}

/* The bits that entries of this architecture have. */
static unsigned int swap_bits(void)
{
	unsigned int bits = 0, bit;

	for (bit = 1; bit & SWP_BITS; bit <<= 1) {
		if (!pte_same(swap_pte(TYPE, FIRST, bit),
			      swap_pte(TYPE, FIRST, 0)))
			bits |= bit;
	}
	return bits;
}

/* Can the entry be decoded to the values that it was made from? */
static bool swap_decodes(pte_t pte, unsigned int type, unsigned long offset,
			 unsigned int bits)
{
	swp_entry_t entry = pgtable_kunit_swp_entry(pte);

	return swp_type(entry) == type && swp_offset(entry) == offset &&
	       !!pte_swp_soft_dirty(pte) == !!(bits & SWP_SOFT) &&
	       !!pte_swp_exclusive(pte) == !!(bits & SWP_EXCLUSIVE) &&
	       !!pgtable_kunit_swp_uffd(pte) == !!(bits & SWP_UFFD);
}

/* Write entries for @nr slots from @offset on. */
static void swap_map(struct pgtable_kunit_table *table, int idx, int nr,
		     unsigned int type, unsigned long offset, unsigned int bits)
{
	int i;

	for (i = 0; i < nr; i++)
		pgtable_kunit_table_set(table, idx + i,
					swap_pte(type, offset + i, bits));
}

/* Expect a batch of @want entries from entry @idx on. */
static bool swap_expect(struct kunit *test, int idx, int max_nr, int want,
			const char *what)
{
	struct pgtable_kunit_table *table = test->priv;
	pte_t *ptep = table->pte + idx;
	int nr = swap_pte_batch(ptep, max_nr, ptep_get(ptep));

	KUNIT_EXPECT_EQ_MSG(test, nr, want,
			    "%s: from entry %d, at most %d, first %016llx",
			    what, idx, max_nr,
			    (unsigned long long)pte_val(ptep_get(ptep)));
	pgtable_kunit_tried++;
	return nr == want;
}

static void swap_cgroup_off(void *type)
{
	pgtable_kunit_swap_cgroup_off((unsigned long)type);
}

/*
 * If the kernel has maps of memory cgroups, the devices get such maps, with 0
 * for each slot.
 */
static void swap_cgroup_on(struct kunit *test)
{
	const unsigned long types[] = { TYPE, OTHER_TYPE };
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		KUNIT_ASSERT_EQ(test, 0,
				pgtable_kunit_swap_cgroup_on(types[i],
							     FIRST + 2 * PTRS_PER_PTE));
		KUNIT_ASSERT_EQ(test, 0,
				kunit_add_action_or_reset(test, swap_cgroup_off,
							  (void *)types[i]));
	}
}

static pte_t odd_none(void)
{
	return pgtable_kunit_none();
}

static pte_t odd_present(void)
{
	return pfn_pte(page_to_pfn(ZERO_PAGE(0)), vm_get_page_prot(VM_READ));
}

static pte_t odd_marker(void)
{
	return make_pte_marker(PTE_MARKER_POISONED);
}

#ifdef CONFIG_MIGRATION
static pte_t odd_migration(void)
{
	return swp_entry_to_pte(make_readable_migration_entry(FIRST));
}
#endif

/*
 * Entries that do not continue a batch. Each differs in one way from an entry
 * that would.
 */
static const struct swap_odd {
	const char *desc;
	pte_t (*make)(void);
	int type;
	int offset;
	unsigned int bits;
} swap_odds[] = {
	{ "none", odd_none },
	{ "present", odd_present },
	{ "marker", odd_marker },
#ifdef CONFIG_MIGRATION
	{ "migration entry", odd_migration },
#endif
	{ "other type", .type = OTHER_TYPE - TYPE },
	{ "slot skipped", .offset = 1 },
	{ "same slot twice", .offset = -1 },
	{ "slot before", .offset = -2 },
	{ "soft-dirty", .bits = SWP_SOFT },
	{ "exclusive", .bits = SWP_EXCLUSIVE },
	{ "uffd-wp", .bits = SWP_UFFD },
};

KUNIT_ARRAY_PARAM_DESC(swap_odd, swap_odds, desc);

/*
 * A batch ends before an entry that is not a swap entry, is of another device,
 * has a wrong slot, or differs in a bit. After this odd entry the slots
 * continue normally. The odd entry is at each position, and the batch begins
 * before it, at it, and after it. The other entries have each combination of
 * bits in turn, so the case covers both an odd entry that alone has a bit and
 * one that alone lacks it. The run ends with the table, and the first entry
 * after the table would continue the run.
 */
static void swap_pte_batch_odd_entry(struct kunit *test)
{
	const struct swap_odd *odd = test->param_value;
	const int first = PTRS_PER_PTE - RUN, end = PTRS_PER_PTE;
	struct pgtable_kunit_table *table = test->priv;
	unsigned int have = swap_bits(), bits;
	int at, from;

	if (odd->bits & ~have)
		kunit_skip(test, "no such bit in swap entries: %s", odd->desc);
	swap_cgroup_on(test);

	for (bits = 0; bits <= SWP_BITS; bits++) {
		if (bits & ~have)
			continue;
		for (at = first + 1; at < end; at++) {
			unsigned long offset = FIRST + at - first;

			pgtable_kunit_table_reset(table);
			swap_map(table, first, RUN + 1, TYPE, FIRST, bits);
			pgtable_kunit_raw_clear(table->mm,
						pgtable_kunit_table_addr(table, at),
						table->pte + at);
			pgtable_kunit_table_set(table, at,
						odd->make ? odd->make() :
						swap_pte(TYPE + odd->type,
							 offset + odd->offset,
							 bits ^ odd->bits));

			for (from = first; from < end; from++) {
				int want = from < at ? at - from :
					   from == at ? 1 : end - from;

				if (from == at && odd->make)
					continue;
				if (!swap_expect(test, from, end - from, want,
						 odd->desc))
					return;
			}
			if (!pgtable_kunit_table_check(table, "%s at %d",
						       odd->desc, at))
				return;
		}
	}
}

/*
 * Consecutive slots with equal bits are one batch, from each slot to the
 * caller's limit.
 */
static void swap_pte_batch_limit(struct kunit *test)
{
	struct pgtable_kunit_table *table = test->priv;
	unsigned int have = swap_bits(), bits;
	int from, max_nr;

	swap_cgroup_on(test);

	for (bits = 0; bits <= SWP_BITS; bits++) {
		if (bits & ~have)
			continue;
		pgtable_kunit_table_reset(table);
		swap_map(table, 0, RUN, TYPE, FIRST, bits);
		for (from = 0; from < RUN; from++) {
			for (max_nr = 1; max_nr <= RUN - from; max_nr++) {
				if (!swap_expect(test, from, max_nr, max_nr,
						 "limit"))
					return;
			}
		}
		pgtable_kunit_table_check(table, "limit");
	}
}

/*
 * All entries of a table hold consecutive slots. They are one batch, and the
 * batch ends with the table. The entry after the table holds the next slot, and
 * the function must not count it. In large tables only some entries are tried.
 */
static void swap_pte_batch_table_end(struct kunit *test)
{
	const int step = max(1, (int)PTRS_PER_PTE / 512);
	struct pgtable_kunit_table *table = test->priv;
	int from;

	swap_cgroup_on(test);
	swap_map(table, 0, PTRS_PER_PTE + 1, TYPE, FIRST, 0);

	for (from = 0; from < PTRS_PER_PTE; from += step) {
		if (!swap_expect(test, from, PTRS_PER_PTE - from,
				 PTRS_PER_PTE - from, "end of the table"))
			return;
	}
	pgtable_kunit_table_check(table, "end of the table");
}

/*
 * The kernel uncharges the slots of a batch from the memory cgroup of the first
 * slot. So the batch ends if the next slot belongs to another cgroup. The odd
 * slot is at each position, alone or with all later slots, and the batch begins
 * at each slot. The IDs of the cgroups have some equal bytes, and ID 0 means no
 * cgroup.
 */
static void swap_pte_batch_memcg_border(struct kunit *test)
{
	static const struct {
		unsigned short rest, odd;
	} ids[] = { { 1, 2 }, { 1, 257 }, { 1, 0 }, { 0, 1 }, { 0xffff, 1 } };
	struct pgtable_kunit_table *table = test->priv;
	int i, at, alone, from, slot;

	if (!PGTABLE_KUNIT_SWAP_BATCH_CGROUP)
		kunit_skip(test, "swap_pte_batch() does not call lookup_swap_cgroup_id()");
	if (!IS_ENABLED(CONFIG_MEMCG) || mem_cgroup_disabled())
		kunit_skip(test, "no memory cgroups: CONFIG_MEMCG=n, or disabled");
	swap_cgroup_on(test);
	swap_map(table, 0, RUN, TYPE, FIRST, 0);

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		for (at = 1; at < 2 * RUN; at++) {
			/*
			 * First only one slot is odd, then one slot and all
			 * later slots.
			 */
			alone = at < RUN ? at : 0;
			for (slot = 0; slot < RUN; slot++) {
				swp_entry_t entry = swp_entry(TYPE, FIRST + slot);
				bool odd = alone ? slot == at : slot >= at - RUN;
				unsigned short id = odd ? ids[i].odd : ids[i].rest;

				if (!pgtable_kunit_swap_cgroup_record(entry, id))
					kunit_skip(test, "no swap_cgroup_record() of an entry");
			}
			for (from = 0; from < RUN; from++) {
				int border = alone ?: at - RUN, want;

				want = from < border ? border - from :
				       alone && from == at ? 1 : RUN - from;
				if (!swap_expect(test, from, RUN - from, want,
						 alone ? "slot of another memcg" :
							 "slots of another memcg"))
					return;
			}
		}
	}
	pgtable_kunit_table_check(table, "memory cgroups");
}

/* The highest offset that fits into an entry, as swapon() computes it. */
static unsigned long swap_offset_max(void)
{
	swp_entry_t entry = __pte_to_swp_entry(swp_entry_to_pte(swp_entry(0, ~0UL)));

	/*
	 * On x86_64 the entry with this offset is empty, so other functions do
	 * not treat it as a swap entry.
	 */
	return swp_offset(swp_entry(__swp_type(entry), __swp_offset(entry)));
}

/*
 * A forged or damaged entry may name a device that never existed. Its slots
 * have no cgroup. In an earlier kernel the lookup followed a NULL pointer.
 * Slots may have any offset, and the run crosses each bit of the offset.
 */
static void swap_pte_batch_unused_type(struct kunit *test)
{
	struct pgtable_kunit_table *table = test->priv;
	unsigned long middle;
	int from;

	for (middle = RUN; middle < swap_offset_max() && middle; middle <<= 1) {
		pgtable_kunit_table_reset(table);
		swap_map(table, 0, RUN, UNUSED_TYPE, middle - RUN / 2, 0);
		for (from = 0; from < RUN; from++) {
			if (!swap_expect(test, from, RUN - from, RUN - from,
					 "unused type"))
				return;
		}
		pgtable_kunit_table_check(table, "unused type");
	}
}

/*
 * If the target is a valid slot, move an entry with each combination of bits.
 */
static bool swap_moves(struct kunit *test, unsigned int type,
		       unsigned long offset, long delta)
{
	unsigned int have = swap_bits(), bits;
	pte_t pte, moved;

	if (!offset || !in_range(offset + delta, 1, swap_offset_max()))
		return true;

	for (bits = 0; bits <= SWP_BITS; bits++) {
		if (bits & ~have)
			continue;
		pte = swap_pte(type, offset, bits);
		moved = pte_move_swp_offset(pte, delta);
		pgtable_kunit_tried++;
		if (swap_decodes(moved, type, offset + delta, bits) &&
		    pte_same(pte_move_swp_offset(moved, -delta), pte) &&
		    (delta != 1 || pte_same(pte_next_swp_offset(pte), moved)))
			continue;
		KUNIT_FAIL(test,
			   "type %u, offset %#lx, bits %#x, %016llx, moved by %ld: %016llx",
			   type, offset, bits, (unsigned long long)pte_val(pte),
			   delta, (unsigned long long)pte_val(moved));
		return false;
	}
	return true;
}

/*
 * An entry that is moved to another slot, forwards or back, keeps its device
 * and its bits. The offsets lie around each bit. The moves are by one entry, by
 * a few, and by the number of entries in a table. So a carry reaches each bit,
 * but no carry leaves the field. Slot 0 is the header of a device, so no entry
 * has it.
 */
static void pte_move_swp_offset_keeps_rest(struct kunit *test)
{
	const unsigned int types[] = { 0, 1, MAX_SWAPFILES / 2, TYPE };
	const long deltas[] = { 1, 2, 3, RUN, PTRS_PER_PTE - 1, PTRS_PER_PTE };
	unsigned long max = swap_offset_max(), bit;
	unsigned int t, d;

	for (bit = 1; bit && bit <= max; bit <<= 1) {
		for (t = 0; t < ARRAY_SIZE(types); t++) {
			for (d = 0; d < ARRAY_SIZE(deltas); d++) {
				long delta = deltas[d];

				if (!swap_moves(test, types[t], bit, delta) ||
				    !swap_moves(test, types[t], bit, -delta) ||
				    !swap_moves(test, types[t], bit - 1, delta))
					return;
			}
		}
	}
	kunit_info(test, "offsets have %u bits\n", fls64(max));
}

static struct kunit_case swap_pte_batch_cases[] = {
	KUNIT_CASE_PARAM(swap_pte_batch_odd_entry, swap_odd_gen_params),
	KUNIT_CASE(swap_pte_batch_limit),
	KUNIT_CASE(swap_pte_batch_table_end),
	KUNIT_CASE(swap_pte_batch_memcg_border),
	KUNIT_CASE(pte_move_swp_offset_keeps_rest),
	KUNIT_CASE(swap_pte_batch_unused_type),
	{}
};

static struct kunit_suite swap_pte_batch_suite = {
	.name = "swap_pte_batch",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_table_init,
	.exit = pgtable_kunit_exit,
	.test_cases = swap_pte_batch_cases,
};

kunit_test_suite(swap_pte_batch_suite);

MODULE_DESCRIPTION("KUnit tests for swap_pte_batch()");
MODULE_LICENSE("GPL");
