// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of the mappings of x86.
 *
 * set_memory_*() changes the attributes of single pages of the kernel. If a
 * large entry maps a page, the entry is split first. When all pages of a split
 * entry have the same attributes again, set_memory_rox() merges their entries
 * into one. A mistake in a split changes the attributes or the page of a
 * neighbour.
 *
 * The kernel records the memory type of device memory, so that all mappings of
 * the same memory have the same type. After mprotect() the kernel compares the
 * old and the new entry to find out whether it must invalidate the translation.
 *
 * Not covered: other mappings of the same memory, and invalidations.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=x86_64 --kunitconfig=mm/tests \
 *	kernel_attr
 */

#include <asm/memtype.h>
#include <asm/set_memory.h>
#include <asm/tlbflush.h>
#include <kunit/test.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/uaccess.h>

#include "pgtable_kunit.h"

#define ATTR_ORDER	(PMD_SHIFT - PAGE_SHIFT)
#define ATTR_CHOSEN	5U

static void attr_free(void *data)
{
	unsigned long addr = (unsigned long)data;

	set_memory_nx(addr, PTRS_PER_PTE);
	set_memory_rw(addr, PTRS_PER_PTE);
	free_pages(addr, ATTR_ORDER);
}

/* The attributes of an entry that a split keeps. */
static unsigned long attr_bits(pte_t pte)
{
	return pte_flags(pte) & (_PAGE_PRESENT | _PAGE_RW | _PAGE_USER | _PAGE_NX |
				 _PAGE_PWT | _PAGE_PCD);
}

/*
 * Expect that an entry of @level maps each page, and that page i of the memory
 * is at place i. All pages have the bits @bits, but page @chosen lacks the bits
 * @without.
 */
static void attr_expect(struct kunit *test, unsigned long addr, unsigned int level,
			unsigned long bits, unsigned int chosen,
			unsigned long without, const char *when)
{
	unsigned int i, got, wrong = 0;

	for (i = 0; i < PTRS_PER_PTE; i++) {
		unsigned long at = addr + i * PAGE_SIZE, want = bits;
		pte_t *pte = lookup_address(at, &got);

		if (i == chosen)
			want &= ~without;
		wrong += !pte || got != level || attr_bits(*pte) != want ||
			 slow_virt_to_phys((void *)at) != __pa(at);
	}
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "wrong pages: %s", when);
}

/* Can the kernel write to a page? */
static bool attr_writes(unsigned long addr)
{
	unsigned int value = 1;

	return !copy_to_kernel_nofault((void *)addr, &value, sizeof(value));
}

/*
 * One page in the middle of a large entry becomes read-only, and writable again.
 * The entry is split into entries of single pages, and all other pages keep
 * their attributes and their place. Then set_memory_rox() of all pages makes
 * one large entry of them.
 */
static void set_memory_splits_and_collapses(struct kunit *test)
{
	unsigned long addr = __get_free_pages(GFP_KERNEL, ATTR_ORDER), at, bits;
	unsigned int level;
	pte_t *pte;

	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, attr_free,
							   (void *)addr));
	pte = lookup_address(addr, &level);
	KUNIT_ASSERT_NOT_NULL(test, pte);
	if (level == PG_LEVEL_4K)
		kunit_skip(test, "entries of single pages map the memory");
	bits = attr_bits(*pte);
	at = addr + ATTR_CHOSEN * PAGE_SIZE;

	KUNIT_EXPECT_EQ(test, 0, set_memory_ro(at, 1));
	attr_expect(test, addr, PG_LEVEL_4K, bits, ATTR_CHOSEN, _PAGE_RW,
		    "one page is read-only");
	KUNIT_EXPECT_FALSE(test, attr_writes(at));
	KUNIT_EXPECT_TRUE(test, attr_writes(at - PAGE_SIZE));
	KUNIT_EXPECT_TRUE(test, attr_writes(at + PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, 0, set_memory_rw(at, 1));
	attr_expect(test, addr, PG_LEVEL_4K, bits, ATTR_CHOSEN, 0,
		    "all pages are writable again");
	KUNIT_EXPECT_TRUE(test, attr_writes(at));

	KUNIT_EXPECT_EQ(test, 0, set_memory_rox(addr, PTRS_PER_PTE));
	KUNIT_EXPECT_FALSE(test, attr_writes(at));
#ifdef PGTABLE_KUNIT_HAS_COLLAPSE_LARGE
	attr_expect(test, addr, PG_LEVEL_2M, bits & ~(_PAGE_RW | _PAGE_NX), 0, 0,
		    "all pages are read-only");
#endif
	PGTABLE_KUNIT_DID(test, PTRS_PER_PTE, "pages split");
}

#ifdef PGTABLE_KUNIT_HAS_PFNMAP_TRACK
/* A hole in the physical address space below 4 GiB, for memory of devices. */
#define ATTR_DEVICE	PHYS_PFN(0xd0000000UL)
#define ATTR_PAGES	4UL

/*
 * A driver maps four pages of a device with write-combining. From then on each
 * mapping of these pages gets this memory type. A mapping that includes one
 * more page fails, since that page has another type. After the last mapping is
 * removed, the pages have the default type of device memory again.
 */
static void pfnmap_tracks_memory_type(struct kunit *test)
{
	pgprot_t prot = pgprot_writecombine(PAGE_KERNEL), other = PAGE_KERNEL;
	unsigned long size = ATTR_PAGES * PAGE_SIZE, i;

	if (!pat_enabled())
		kunit_skip(test, "the CPU has no page attribute table");
	KUNIT_ASSERT_EQ(test, 0, pfnmap_track(ATTR_DEVICE, size, &prot));
	KUNIT_EXPECT_EQ(test, pgprot2cachemode(prot), _PAGE_CACHE_MODE_WC);
	for (i = 1; i <= ATTR_PAGES; i++) {
		other = PAGE_KERNEL;
		KUNIT_EXPECT_EQ(test, 0, pfnmap_setup_cachemode(ATTR_DEVICE,
								i * PAGE_SIZE,
								&other));
		KUNIT_EXPECT_EQ(test, pgprot2cachemode(other), _PAGE_CACHE_MODE_WC);
	}
	KUNIT_EXPECT_EQ(test, -EINVAL,
			pfnmap_setup_cachemode(ATTR_DEVICE, size + PAGE_SIZE,
					       &other));
	pfnmap_untrack(ATTR_DEVICE, size);
	other = PAGE_KERNEL;
	KUNIT_EXPECT_EQ(test, 0, pfnmap_setup_cachemode(ATTR_DEVICE,
							size + PAGE_SIZE, &other));
	KUNIT_EXPECT_EQ(test, pgprot2cachemode(other), _PAGE_CACHE_MODE_UC_MINUS);
	PGTABLE_KUNIT_DID(test, ATTR_PAGES, "pages tracked");
}
#endif

#define ATTR_ALL	(_PAGE_PRESENT | _PAGE_USER | _PAGE_RW | _PAGE_ACCESSED | \
			 _PAGE_DIRTY)

/*
 * Two entries of one page, and whether a translation of the first must be
 * invalidated when the second replaces it.
 */
static const struct attr_change {
	const char *desc;
	pteval_t before, after;
	bool flush;
} attr_changes[] = {
	{ "nothing", ATTR_ALL, ATTR_ALL, false },
	{ "read-only", ATTR_ALL, ATTR_ALL & ~_PAGE_RW, true },
	{ "writable", ATTR_ALL & ~_PAGE_RW, ATTR_ALL, true },
	{ "not executable", ATTR_ALL, ATTR_ALL | _PAGE_NX, true },
	{ "executable", ATTR_ALL | _PAGE_NX, ATTR_ALL, true },
	{ "of the kernel", ATTR_ALL, ATTR_ALL & ~_PAGE_USER, true },
	{ "uncached", ATTR_ALL, ATTR_ALL | _PAGE_PCD, true },
	{ "clean", ATTR_ALL, ATTR_ALL & ~_PAGE_DIRTY, true },
	{ "dirty", ATTR_ALL & ~_PAGE_DIRTY, ATTR_ALL, false },
	{ "old", ATTR_ALL, ATTR_ALL & ~_PAGE_ACCESSED, false },
	{ "young", ATTR_ALL & ~_PAGE_ACCESSED, ATTR_ALL, false },
	{ "gone", ATTR_ALL, ATTR_ALL & ~_PAGE_PRESENT, true },
	{ "new", ATTR_ALL & ~_PAGE_PRESENT, ATTR_ALL, false },
	{ "marked by software", ATTR_ALL, ATTR_ALL | _PAGE_SOFTW1, false },
};

/*
 * The translation must be invalidated after two kinds of changes: changes that
 * remove a permission or a state, and changes that grant access in a way that
 * no fault would notice. Other changes of the attributes need no invalidation.
 * A change to another page always needs one.
 */
static void pte_needs_flush_of_change(struct kunit *test)
{
	unsigned long pfn = 0x1000;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(attr_changes); i++) {
		const struct attr_change *change = &attr_changes[i];
		pte_t before = __pte(pfn << PAGE_SHIFT | change->before);
		pte_t after = __pte(pfn << PAGE_SHIFT | change->after);

		KUNIT_EXPECT_EQ_MSG(test, pte_needs_flush(before, after),
				    change->flush, "the page becomes: %s",
				    change->desc);
	}
	KUNIT_EXPECT_TRUE(test, pte_needs_flush(__pte(pfn << PAGE_SHIFT | ATTR_ALL),
						__pte((pfn + 1) << PAGE_SHIFT |
						      ATTR_ALL)));
}

static struct kunit_case kernel_attr_cases[] = {
	KUNIT_CASE(set_memory_splits_and_collapses),
#ifdef PGTABLE_KUNIT_HAS_PFNMAP_TRACK
	KUNIT_CASE(pfnmap_tracks_memory_type),
#endif
	KUNIT_CASE(pte_needs_flush_of_change),
	{}
};

static struct kunit_suite kernel_attr_suite = {
	.name = "kernel_attr",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = kernel_attr_cases,
};

kunit_test_suite(kernel_attr_suite);

MODULE_DESCRIPTION("KUnit tests for attributes of mappings of x86");
MODULE_LICENSE("GPL");
