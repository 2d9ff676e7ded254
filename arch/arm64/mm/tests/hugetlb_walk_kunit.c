// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes, page tables and invalidations of arm64's hugetlbpage.c.
 *
 * A huge page is as large as an entry or a contiguous block of some level. The
 * functions find the entry of a page at its level. They build the tables above
 * the entry, and no table below it. They set the bits of an entry that depend
 * on its size.
 *
 * The cases call a second copy of the file (see hugetlb_entry.h). Not covered:
 * the sharing of tables between processes, which is in other files.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	--kconfig_add CONFIG_HUGETLBFS=y 'hugetlb_*'
 */

#include <kunit/test.h>
#include <linux/mman.h>
#include <linux/sizes.h>

#include "hugetlb_entry.h"

static void huge_size_desc(const struct huge_size *size, char *desc)
{
	strscpy(desc, size->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(huge_sizes, huge_sizes, huge_size_desc);

/*
 * The sizes that the architecture defines for each page size are valid, hugetlb
 * registers them at boot, and their pages can migrate. No other size from a
 * page to all of the address space is valid. Memory is reserved for the largest
 * size.
 */
static void huge_sizes_of_page_size(struct kunit *test)
{
	unsigned long want, size, valid = 0, migrate = 0;
	unsigned int shift, nr = 0, i;

	if (PAGE_SIZE == SZ_4K)
		want = SZ_64K | SZ_2M | SZ_32M | SZ_1G;
	else if (PAGE_SIZE == SZ_16K)
		want = SZ_2M | SZ_32M | SZ_1G;
	else
		want = SZ_2M | SZ_512M | SZ_16G;
	for (i = 0, size = 0; i < HUGE_SIZES; i++) {
		KUNIT_EXPECT_EQ(test, huge_sizes[i].size,
				huge_sizes[i].step * huge_sizes[i].nr);
		size |= huge_sizes[i].size;
	}
	KUNIT_EXPECT_EQ(test, size, want);
	for (shift = PAGE_SHIFT; shift < BITS_PER_LONG; shift++) {
		struct hstate h = { .order = shift - PAGE_SHIFT };

		size = BIT(shift);
		if (huge_ops.valid_size(size))
			valid |= size;
		if (huge_ops.migration(&h))
			migrate |= size;
		KUNIT_EXPECT_FALSE_MSG(test, huge_ops.valid_size(size + PAGE_SIZE),
				       "%lx", size);
		nr++;
	}
	KUNIT_EXPECT_EQ(test, valid, want);
	KUNIT_EXPECT_EQ(test, migrate, want);
	KUNIT_EXPECT_EQ(test, huge_ops.init(), want);
	KUNIT_EXPECT_EQ(test, huge_ops.cma_order(), ilog2(want) - PAGE_SHIFT);
	PGTABLE_KUNIT_DID(test, nr, "sizes");
}

/*
 * arch_make_huge_pte() gives an entry the bits of its size: a block has another
 * type than a page, and a part of a block has the contiguous bit. All other
 * bits stay unchanged. A PROT_NONE entry stays invalid, although the bit that
 * makes it valid belongs to the type. With a size that does not exist, nothing
 * changes. Known issue 56: contiguous PROT_NONE entries become valid.
 */
static void arch_make_huge_pte_of_size(struct kunit *test)
{
	static const enum huge_kind kinds[] = {
		HUGE_READ, HUGE_WRITE, HUGE_EXEC, HUGE_PROT_NONE, HUGE_KERNEL,
	};
	struct huge_ctx *h = huge_ctx_alloc(test);
	const pteval_t bits = HUGE_TYPE_PAGE | PTE_CONT;
	unsigned int i, nr = 0, valid = 0;

	for (i = 0; i < 2 * ARRAY_SIZE(kinds); i++) {
		struct huge_state state = {
			kinds[i / 2], HUGE_PAGE, i % 2 ? 0 : HUGE_NOWHERE,
			i % 2 ? 0 : HUGE_NOWHERE,
		};
		pte_t want = huge_pte(h, &state, 0), arg, is;
		const char *desc = huge_desc(h, &state);

		arg = __pte((pte_val(want) & ~bits) | HUGE_TYPE_PAGE);
		is = huge_ops.make(arg, ilog2(h->size->size), VM_HUGETLB);
		if (state.kind == HUGE_PROT_NONE && h->size->size == CONT_PTE_SIZE &&
		    pte_val(is) == (pte_val(want) | PTE_VALID)) {
			valid++;
			continue;
		}
		KUNIT_EXPECT_EQ_MSG(test, pte_val(is), pte_val(want), "%s", desc);
		/* A caller may pass the result of an earlier call. */
		is = huge_ops.make(is, ilog2(h->size->size), VM_HUGETLB);
		KUNIT_EXPECT_EQ_MSG(test, pte_val(is), pte_val(want), "%s, again",
				    desc);
		nr++;
	}
	PGTABLE_KUNIT_DID(test, nr, "entries");
	if (valid)
		pgtable_kunit_known_issue(test, 56, "%u PROT_NONE entries become valid",
					  valid);
	else if (h->size->size == CONT_PTE_SIZE)
		pgtable_kunit_stale_issue(test, 56);
}

/*
 * If a walk finds no table, it skips the range of this table. So
 * hugetlb_mask_last_page() gives the address of the last page in a table: a
 * mask of the address bits that a table of these entries translates, without
 * the bits of the offset in the page. Known issue 12: with five levels, a walk
 * of 1G pages skips the range of the table above.
 */
static void hugetlb_mask_last_page_of_table(struct kunit *test)
{
	const struct huge_size *size = test->param_value;
	struct hstate h = { .order = ilog2(size->size) - PAGE_SHIFT };
	unsigned long want = PTRS_PER_PTE * size->step - size->size;
	unsigned long is = huge_ops.mask_last_page(&h);

	/* The top table is never missing. */
	if (size->level == 1 && CONFIG_PGTABLE_LEVELS == 3)
		want = 0;
	if (size->level == 1 && CONFIG_PGTABLE_LEVELS > 4) {
		if (is == PGDIR_SIZE - PUD_SIZE) {
			pgtable_kunit_known_issue(test, 12,
						  "the mask skips the range of the table above");
			return;
		}
		pgtable_kunit_stale_issue(test, 12);
	}
	KUNIT_EXPECT_EQ(test, is, want);
	h.order++;
	KUNIT_EXPECT_EQ_MSG(test, huge_ops.mask_last_page(&h), 0,
			    "no such size");
}

/*
 * flush_hugetlb_tlb_range() makes one invalidation of the range, on all CPUs.
 * Its step size is such that it reaches each entry. The hint names the level of
 * the entries, or there is no hint. The range is one page, or several pages.
 * Before commit eed6bfa8b282 the hint for contiguous entries was level 0, and
 * with this hint a CPU does not have to invalidate entries of other levels
 * (known issue 34).
 */
static void flush_hugetlb_tlb_range_level(struct kunit *test)
{
	struct huge_ctx *h = huge_ctx_alloc(test);
	const struct pgtable_kunit_step *s = h->rec->step;
	unsigned long start = huge_addr(h), end;
	unsigned int pages;

	for (pages = 1; pages <= 3; pages++) {
		end = start + pages * h->size->size;
		pgtable_kunit_record_start(h->rec);
		huge_ops.flush_range(h->vma, start, end);
		pgtable_kunit_record_stop();
		KUNIT_ASSERT_EQ(test, h->rec->nr, 1);
		KUNIT_EXPECT_EQ(test, s->kind, PGTABLE_KUNIT_FLUSH);
		KUNIT_EXPECT_PTR_EQ(test, s->mm, h->table->mm);
		KUNIT_EXPECT_EQ(test, s->start, start);
		KUNIT_EXPECT_EQ(test, s->end, end);
		KUNIT_EXPECT_EQ(test, s->flags & ~PGTABLE_KUNIT_LAST_LEVEL, 0);
		KUNIT_EXPECT_LE(test, s->stride, h->size->step);
		KUNIT_EXPECT_EQ(test, h->size->step % s->stride, 0);
		if (PGTABLE_KUNIT_HUGE_EXACT)
			KUNIT_EXPECT_EQ(test, s->stride, h->size->step);
		if (huge_cont(h) && !s->level) {
			pgtable_kunit_known_issue(test, 34,
						  "the hint is level 0, which has no such entries");
			continue;
		}
		if (huge_cont(h))
			pgtable_kunit_stale_issue(test, 34);
		if (s->level != TLBI_TTL_UNKNOWN)
			KUNIT_EXPECT_EQ(test, s->level, h->size->level);
	}
	PGTABLE_KUNIT_DID(test, pages - 1, "invalidations");
}

/* The entries of an address in the tables of an address space, or NULL. */
struct walk_path {
	pud_t *pudp;
	pmd_t *pmdp;
	pte_t *ptep;
};

static struct walk_path walk_path(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgdp = pgd_offset(mm, addr);
	struct walk_path path = {};
	p4d_t *p4dp;

	if (pgd_none(READ_ONCE(*pgdp)))
		return path;
	p4dp = p4d_offset(pgdp, addr);
	if (p4d_none(READ_ONCE(*p4dp)))
		return path;
	path.pudp = pud_offset(p4dp, addr);
	if (!pud_table(READ_ONCE(*path.pudp)))
		return path;
	path.pmdp = pmd_offset(path.pudp, addr);
	if (pmd_table(READ_ONCE(*path.pmdp)))
		path.ptep = pte_offset_kernel(path.pmdp, addr);
	return path;
}

/* The entry on a path at the level of a size. */
static pte_t *walk_entry(const struct huge_size *size, struct walk_path path)
{
	return size->level == 1 ? (pte_t *)path.pudp :
	       size->level == 2 ? (pte_t *)path.pmdp : path.ptep;
}

/* Addresses of the thread of the test, for two tables of the largest size. */
static unsigned long walk_area(struct kunit *test)
{
	unsigned long size = huge_sizes[HUGE_SIZES - 1].size, addr;

	addr = kunit_vm_mmap(test, NULL, 0, 4 * size, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, 0);
	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	return ALIGN(addr, size);
}

/*
 * huge_pte_alloc() builds the tables down to the level of the page, and none
 * below. It returns the first entry of the page, which is empty. A second call
 * returns the same entry. The pages are the first and the second of a table. If
 * a process shares its table of blocks, the entry comes from the shared table,
 * unless the process already has its own table.
 */
static void huge_pte_alloc_level(struct kunit *test)
{
	const struct huge_size *size = test->param_value;
	unsigned long area = walk_area(test), addr;
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma = huge_vma_alloc(test, mm, size->size);
	bool block = size->size == PMD_SIZE;
	pte_t shared, *ptep, *want;
	struct walk_path path;
	unsigned int nr = 0;

	mmap_write_lock(mm);
	*huge_ops.shares = &shared;
	ptep = huge_ops.alloc(mm, vma, area, size->size);
	KUNIT_EXPECT_EQ_MSG(test, block, ptep == &shared,
			    "only a table of blocks is shared");
	*huge_ops.shares = NULL;
	for (addr = area; addr < area + 2 * size->size; addr += size->size) {
		ptep = huge_ops.alloc(mm, vma, addr, size->size);
		path = walk_path(mm, addr);
		want = walk_entry(size, path);
		KUNIT_EXPECT_NOT_NULL(test, ptep);
		KUNIT_EXPECT_PTR_EQ(test, ptep, want);
		if (!ptep || ptep != want)
			break;
		KUNIT_EXPECT_EQ(test, pte_val(__ptep_get(ptep)), 0);
		KUNIT_EXPECT_PTR_EQ(test, ptep,
				    huge_ops.alloc(mm, vma, addr, size->size));
		if (size->level == 1)
			KUNIT_EXPECT_NULL_MSG(test, path.pmdp, "a table too many");
		if (size->level == 2)
			KUNIT_EXPECT_NULL_MSG(test, path.ptep, "a table too many");
		nr++;
	}
	*huge_ops.shares = &shared;
	ptep = huge_ops.alloc(mm, vma, area, size->size);
	KUNIT_EXPECT_PTR_EQ_MSG(test, ptep, walk_entry(size, walk_path(mm, area)),
				"the table that is there is kept");
	*huge_ops.shares = NULL;
	KUNIT_EXPECT_NULL(test, huge_ops.alloc(mm, vma, area, 2 * size->size));
	mmap_write_unlock(mm);
	PGTABLE_KUNIT_DID(test, nr, "entries");
}

/* The content of the tables of an address: see huge_pte_offset_tree(). */
enum offset_tree {
	OFFSET_EMPTY,
	OFFSET_PUD_NONE,
	OFFSET_PUD_LEAF,
	OFFSET_PUD_SWAP,
	OFFSET_PMD_NONE,
	OFFSET_PMD_LEAF,
	OFFSET_PMD_SWAP,
	OFFSET_PTES,
	OFFSET_TREES,
};

/* The level at which the walk of the tree ends. */
static int offset_ends(enum offset_tree tree)
{
	return tree == OFFSET_EMPTY ? 0 : tree < OFFSET_PMD_NONE ? 1 :
	       tree < OFFSET_PTES ? 2 : 3;
}

/*
 * Whether the tree can exist in a hugetlb mapping with pages of this size: each
 * page is at its own level.
 */
static bool offset_may_be(const struct huge_size *size, enum offset_tree tree)
{
	if (tree == OFFSET_PUD_LEAF || tree == OFFSET_PUD_SWAP)
		return size->level == 1;
	if (tree == OFFSET_PMD_LEAF || tree == OFFSET_PMD_SWAP)
		return size->level == 2;
	return true;
}

static pte_t *offset_want(const struct huge_size *size, enum offset_tree tree,
			  struct walk_path path)
{
	int ends = offset_ends(tree);

	/*
	 * Whether the table of the entry exists. The top table always exists.
	 */
	if (size->level == 1)
		return ends <= 1 ? (pte_t *)path.pudp : NULL;
	if (size->level == 2)
		return ends == 2 ? (pte_t *)path.pmdp : NULL;
	return ends == 3 ? path.ptep : NULL;
}

/*
 * Build the tree for the page at @addr. If the tree has an entry, the entry
 * maps memory that does not exist, and the caller removes the entry.
 */
static bool offset_build(struct mm_struct *mm, unsigned long addr,
			 enum offset_tree tree, unsigned long *save)
{
	pte_t swap = swp_entry_to_pte(swp_entry(1, 4711));
	pte_t leaf = clear_pte_bit(pfn_pte(PHYS_PFN(BIT(40)),
					   vm_get_page_prot(VM_READ | VM_SHARED)),
				   __pgprot(HUGE_TYPE_PAGE));
	int ends = offset_ends(tree);
	p4d_t *p4dp;
	pud_t *pudp;
	pmd_t *pmdp = NULL;

	*save = 0;
	if (!ends)
		return true;
	p4dp = p4d_alloc(mm, pgd_offset(mm, addr), addr);
	pudp = p4dp ? pud_alloc(mm, p4dp, addr) : NULL;
	if (pudp && ends > 1)
		pmdp = pmd_alloc(mm, pudp, addr);
	if (!pudp || (ends > 1 && !pmdp) ||
	    (ends > 2 && pte_alloc(mm, pmdp)))
		return false;
	if (tree == OFFSET_PUD_LEAF || tree == OFFSET_PUD_SWAP) {
		WRITE_ONCE(*pudp, pte_pud(tree == OFFSET_PUD_LEAF ? leaf : swap));
		*save = (unsigned long)pudp;
	} else if (tree == OFFSET_PMD_LEAF || tree == OFFSET_PMD_SWAP) {
		WRITE_ONCE(*pmdp, pte_pmd(tree == OFFSET_PMD_LEAF ? leaf : swap));
		*save = (unsigned long)pmdp;
	}
	return true;
}

/*
 * huge_pte_offset() returns the first entry of a page for each address in the
 * page. The content of the entry makes no difference: it is empty, present, or
 * not present. It returns NULL if the table of the entry is missing. The trees
 * have from no table to tables of all levels, and the page is at each level.
 */
static void huge_pte_offset_tree(struct kunit *test)
{
	const struct huge_size *size = test->param_value;
	unsigned long base = walk_area(test), save, at;
	struct mm_struct *mm = current->mm;
	enum offset_tree tree;
	unsigned int nr = 0;

	mmap_write_lock(mm);
	for (tree = 0; tree < OFFSET_TREES; tree++) {
		/* A page that is not the first page of its table. */
		unsigned long addr = base + (size->level == 3 ? size->size : 0);

		if (!offset_may_be(size, tree))
			continue;
		if (!offset_build(mm, addr, tree, &save)) {
			KUNIT_FAIL(test, "no memory");
			break;
		}
		for (at = 0; at < size->size; at += size->size / 4) {
			struct walk_path path = walk_path(mm, addr);
			pte_t *is = huge_ops.offset(mm, addr + at, size->size);

			KUNIT_EXPECT_PTR_EQ_MSG(test, is,
						offset_want(size, tree, path),
						"tree %d, address %lx", tree, at);
			nr++;
		}
		if (save)
			WRITE_ONCE(*(pte_t *)save, __pte(0));
	}
	mmap_write_unlock(mm);
	PGTABLE_KUNIT_DID(test, nr, "walks");
}

static struct kunit_case hugetlb_walk_cases[] = {
	KUNIT_CASE(huge_sizes_of_page_size),
	KUNIT_CASE_PARAM(arch_make_huge_pte_of_size, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(hugetlb_mask_last_page_of_table, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(flush_hugetlb_tlb_range_level, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_pte_alloc_level, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_pte_offset_tree, huge_sizes_gen_params),
	{}
};

static struct kunit_suite hugetlb_walk_suite = {
	.name = "hugetlb_walk",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = hugetlb_walk_cases,
};

kunit_test_suite(hugetlb_walk_suite);

MODULE_DESCRIPTION("KUnit tests for arm64 sizes and page tables of huge pages");
MODULE_LICENSE("GPL");
