// SPDX-License-Identifier: GPL-2.0
/*
 * Page tables of huge pages, and checks of the changes that a call made.
 */

#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <asm/pgalloc.h>
#include <asm/tlb.h>

#include "hugetlb_entry.h"

const struct huge_size huge_sizes[HUGE_SIZES] = {
	{ "contiguous pages", CONT_PTE_SIZE, PAGE_SIZE, CONT_PTES, 3 },
	{ "block", PMD_SIZE, PMD_SIZE, 1, 2 },
	{ "contiguous blocks", CONT_PMD_SIZE, PMD_SIZE, CONT_PMDS, 2 },
#ifdef CONFIG_ARM64_4K_PAGES
	{ "large block", PUD_SIZE, PUD_SIZE, 1, 1 },
#endif
};

/*
 * Page frames without memory. Their first address is a multiple of all sizes.
 */
#define HUGE_PFN		PHYS_PFN(BIT(40))

/**
 * huge_vma_alloc() - make a VMA of hugetlb
 * @test: the test that owns it
 * @mm: its address space, which does not contain it
 * @size: the size of its pages
 *
 * hugetlb reads the size from the file system of the VMA's file.
 */
struct vm_area_struct *huge_vma_alloc(struct kunit *test, struct mm_struct *mm,
				      unsigned long size)
{
	struct fake {
		struct vm_area_struct vma;
		struct file file;
		struct inode inode;
		struct super_block sb;
		struct hugetlbfs_sb_info info;
		struct hstate hstate;
	} *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->vma.vm_mm = mm;
	fake->vma.vm_file = &fake->file;
	vm_flags_init(&fake->vma, VM_HUGETLB | VM_SHARED | VM_READ | VM_WRITE);
	fake->file.f_inode = &fake->inode;
	fake->inode.i_sb = &fake->sb;
	fake->sb.s_fs_info = &fake->info;
	fake->info.hstate = &fake->hstate;
	fake->hstate.order = ilog2(size) - PAGE_SHIFT;
	KUNIT_ASSERT_EQ(test, huge_page_size(hstate_vma(&fake->vma)), size);
	return &fake->vma;
}

/* Link the table into the tree, or remove it again. */
static void huge_link(struct huge_ctx *h, bool in)
{
	struct mm_struct *mm = h->table->mm;
	pgd_t *pgdp = pgd_offset(mm, h->base);
	p4d_t *p4dp = p4d_alloc(mm, pgdp, h->base);
	pud_t *pudp;
	pmd_t *pmdp;

	KUNIT_ASSERT_NOT_NULL(h->test, p4dp);
#if CONFIG_PGTABLE_LEVELS > 3
	if (h->size->level == 1) {
		if (in)
			p4d_populate(mm, p4dp, (pud_t *)h->table->pte);
		else
			p4d_clear(p4dp);
		return;
	}
#endif
	pudp = pud_alloc(mm, p4dp, h->base);
	KUNIT_ASSERT_NOT_NULL(h->test, pudp);
	if (h->size->level == 2) {
		if (in)
			pud_populate(mm, pudp, (pmd_t *)h->table->pte);
		else
			pud_clear(pudp);
		return;
	}
	pmdp = pmd_alloc(mm, pudp, h->base);
	KUNIT_ASSERT_NOT_NULL(h->test, pmdp);
	if (in)
		pmd_populate(mm, pmdp, virt_to_page(h->table->pte));
	else
		pmd_clear(pmdp);
}

static void huge_unlink(void *data)
{
	struct huge_ctx *h = data;
	struct mmu_gather tlb;

	if (h->pgd) {
		h->table->mm->pgd = h->pgd;
		return;
	}
	huge_link(h, false);
	tlb_gather_mmu(&tlb, h->table->mm);
	free_pgd_range(&tlb, h->base, h->base + PAGE_SIZE, 0, 0);
	tlb_finish_mmu(&tlb);
}

/*
 * Link the table into the tree, at an address that is not the first. With three
 * levels the PUDs are in the top table of the mm.
 */
static void huge_tree(struct huge_ctx *h)
{
	if (CONFIG_PGTABLE_LEVELS == 3 && h->size->level == 1) {
		h->pgd = h->table->mm->pgd;
		h->table->mm->pgd = (pgd_t *)h->table->pte;
	} else {
		h->base = h->size->step * PTRS_PER_PTE;
		huge_link(h, true);
	}
	KUNIT_ASSERT_EQ(h->test, 0,
			kunit_add_action_or_reset(h->test, huge_unlink, h));
}

/*
 * Let the hardware act if the entry allows it. In a block all entries are
 * alike.
 */
static void hardware(struct huge_ctx *h)
{
	pte_t *ptep = huge_ptep(h) + h->entry;
	pte_t pte = READ_ONCE(*ptep);

	if (!pte_valid(pte) || (h->write && !pte_write(pte)))
		return;
	pte = pte_mkyoung(pte);
	if (h->write)
		pte = clear_pte_bit(pte, __pgprot(PTE_RDONLY));
	WRITE_ONCE(*ptep, pte);
	h->acted = true;
}

static void before_step(struct pgtable_kunit_record *rec, int idx)
{
	struct huge_ctx *h = rec->data;

	if (rec->nr == h->at)
		hardware(h);
}

/* Whether an invalidation hits an entry of the window. */
static bool hits(struct huge_ctx *h, const struct pgtable_kunit_step *step,
		 unsigned int i)
{
	unsigned long addr = h->base + (h->window + i) * h->size->step;
	unsigned long at = step->start;

	if (step->mm != h->table->mm ||
	    (step->flags & (PGTABLE_KUNIT_NOSYNC | PGTABLE_KUNIT_LOCAL)))
		return false;
	if (step->level != TLBI_TTL_UNKNOWN && step->level != h->size->level)
		return false;
	if (at < addr)
		at += DIV_ROUND_UP(addr - at, step->stride) * step->stride;
	return at < step->end && at < addr + h->size->step;
}

static void after_step(struct pgtable_kunit_record *rec,
		       const struct pgtable_kunit_step *step)
{
	struct huge_ctx *h = rec->data;
	unsigned int i;

	if (step->kind == PGTABLE_KUNIT_FLUSH) {
		for (i = 0; i < CONTPTE_WINDOW; i++) {
			if (hits(h, step, i))
				contpte_bbm_flush(h->bbm, i);
		}
	} else if (step->idx < (int)h->first ||
		   step->idx >= (int)(h->first + h->size->nr)) {
		h->outside++;
	} else if (step->kind == PGTABLE_KUNIT_WRITE) {
		contpte_bbm_write(h->bbm, step->idx - h->window,
				  __pte(step->new));
	}
}

/**
 * huge_ctx_alloc() - make a fixture for the size in the test's parameter
 * @test: the test that owns it
 */
struct huge_ctx *huge_ctx_alloc(struct kunit *test)
{
	struct huge_ctx *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	struct huge_state state = {
		.kind = HUGE_WRITE, .young = HUGE_NOWHERE, .dirty = HUGE_NOWHERE,
	};

	KUNIT_ASSERT_NOT_NULL(test, h);
	h->test = test;
	h->size = test->param_value;
	h->at = UINT_MAX;
	h->table = pgtable_kunit_table_alloc(test);
	huge_tree(h);
	h->vma = huge_vma_alloc(test, h->table->mm, h->size->size);
	h->bbm = kunit_kzalloc(test, sizeof(*h->bbm), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, h->bbm);
	h->rec = pgtable_kunit_record_alloc(test, h->table);
	h->rec->before = before_step;
	h->rec->after = after_step;
	h->rec->data = h;
	*huge_ops.erratum = false;
	*huge_ops.shares = NULL;
	huge_recorded_size = h->size->size;
	for (state.page = 0; state.page < 3; state.page++) {
		h->first = state.page * h->size->nr;
		huge_fill(h, &state);
	}
	h->first = PTRS_PER_PTE - 2 * h->size->nr;
	huge_fill(h, &state);
	huge_place(h, false);
	return h;
}

/**
 * huge_place() - choose where the page under test is
 * @h: the context
 * @last: at the end of the table, after another page; otherwise between two
 *	pages
 */
void huge_place(struct huge_ctx *h, bool last)
{
	h->first = last ? PTRS_PER_PTE - h->size->nr : h->size->nr;
	h->window = last ? PTRS_PER_PTE - CONTPTE_WINDOW : 0;
}

static swp_entry_t huge_swp(struct huge_ctx *h, const struct huge_state *state)
{
	unsigned long pfn = HUGE_PFN + state->page * (h->size->size >> PAGE_SHIFT);

	switch (state->kind) {
	case HUGE_SWAP:
		return swp_entry(1, 4711);
	case HUGE_SWAP_BITS:
		return swp_entry(MAX_SWAPFILES - 1, GENMASK(49, 0));
	case HUGE_MIGRATION_READ:
	case HUGE_MIGRATION_UFFD:
		return make_readable_migration_entry(pfn);
	case HUGE_MARKER:
		return make_pte_marker_entry(PTE_MARKER_POISONED);
	default:
		return make_writable_migration_entry(pfn);
	}
}

static pgprot_t huge_prot(enum huge_kind kind)
{
	switch (kind) {
	case HUGE_READ:
		return vm_get_page_prot(VM_READ | VM_SHARED);
	case HUGE_PROT_NONE:
		return vm_get_page_prot(VM_SHARED);
	case HUGE_EXEC:
		/*
		 * The entries are special, so that the kernel does not clean
		 * caches for memory that does not exist.
		 */
		return __pgprot(PTE_SPECIAL |
				pgprot_val(vm_get_page_prot(VM_READ | VM_WRITE |
							    VM_EXEC | VM_SHARED)));
	case HUGE_KERNEL:
		return PAGE_KERNEL;
	default:
		return vm_get_page_prot(VM_READ | VM_WRITE | VM_SHARED);
	}
}

/**
 * huge_pte() - an entry of a page
 * @h: the context
 * @state: the state of the page
 * @i: the number of the entry
 */
pte_t huge_pte(struct huge_ctx *h, const struct huge_state *state,
	       unsigned int i)
{
	unsigned long pages = h->size->step >> PAGE_SHIFT;
	pte_t pte;

	if (state->kind == HUGE_NONE)
		return __pte(0);
	if (!huge_present(state->kind)) {
		pte = swp_entry_to_pte(huge_swp(h, state));
		if (state->kind == HUGE_MIGRATION_UFFD)
			pte = pgtable_kunit_swp_mkuffd(pte);
		return pte;
	}
	pte = pfn_pte(HUGE_PFN + (state->page * h->size->nr + i) * pages,
		      huge_prot(state->kind));
	pte = pte_mkold(pte_mkclean(pte));
	if (h->size->level < 3)
		pte = clear_pte_bit(pte, __pgprot(HUGE_TYPE_PAGE));
	if (huge_cont(h))
		pte = set_pte_bit(pte, __pgprot(PTE_CONT));
	if (i == state->young)
		pte = pte_mkyoung(pte);
	/* A write makes an entry dirty in the way of the hardware. */
	if (i == state->dirty)
		pte = pte_write(pte) ? clear_pte_bit(pte, __pgprot(PTE_RDONLY)) :
		      pte_mkdirty(pte);
	return pte;
}

/**
 * huge_fill() - write the page under test into the table
 * @h: the context
 * @state: its state
 */
void huge_fill(struct huge_ctx *h, const struct huge_state *state)
{
	unsigned int i;

	for (i = 0; i < h->size->nr; i++)
		pgtable_kunit_table_set(h->table, h->first + i,
					huge_pte(h, state, i));
}

/**
 * huge_start() - record and check from here on
 * @h: the context
 */
void huge_start(struct huge_ctx *h)
{
	unsigned int block = h->size->level == 3 ? CONT_PTES : CONT_PMDS;

	h->outside = 0;
	h->acted = false;
	contpte_bbm_start_level(h->bbm, h->table->pte + h->window, block,
				h->size->step >> PAGE_SHIFT);
	pgtable_kunit_record_start(h->rec);
}

/**
 * huge_stop() - the call has ended
 * @h: the context
 */
void huge_stop(struct huge_ctx *h)
{
	int start = h->first - h->window;

	pgtable_kunit_record_stop();
	contpte_bbm_end(h->bbm, start, start + h->size->nr);
	h->at = UINT_MAX;
}

/**
 * huge_check() - check the table and the steps of the last call
 * @h: the context
 * @fmt: the inputs of the call, as for printf()
 *
 * Return: whether the table is as expected, and the call obeyed
 * break-before-make and touched only the entries of its page.
 */
bool huge_check(struct huge_ctx *h, const char *fmt, ...)
{
	struct contpte_bbm *bbm = h->bbm;
	char desc[160];
	va_list args;
	bool ok;

	va_start(args, fmt);
	vsnprintf(desc, sizeof(desc), fmt, args);
	va_end(args);
	ok = pgtable_kunit_table_check(h->table, "%s", desc);
	if (bbm->rule) {
		KUNIT_FAIL(h->test, "%s: breaks the rule \"%s\" at entry %d, step %u",
			   desc, contpte_bbm_rule_name(bbm->rule),
			   bbm->idx + (int)h->window, bbm->steps);
		ok = false;
	}
	KUNIT_EXPECT_EQ_MSG(h->test, h->outside, 0,
			    "%s: steps outside of the page", desc);
	KUNIT_EXPECT_LE_MSG(h->test, h->rec->nr, PGTABLE_KUNIT_STEPS,
			    "%s: too many steps to check", desc);
	return ok && !h->outside;
}

/**
 * huge_check_quiet() - check that the last call invalidated nothing
 * @h: the context
 * @desc: the inputs of the call
 */
bool huge_check_quiet(struct huge_ctx *h, const char *desc)
{
	KUNIT_EXPECT_EQ_MSG(h->test, h->rec->flushes, 0, "%s: invalidations",
			    desc);
	return !h->rec->flushes;
}

/**
 * huge_check_flush() - check that the last call used break-before-make for the
 * page
 * @h: the context
 * @desc: the inputs of the call
 *
 * The call must first clear all entries, then make one invalidation of the
 * whole page on all CPUs, and may then set all entries. The level hint must be
 * right.
 */
bool huge_check_flush(struct huge_ctx *h, const char *desc)
{
	unsigned long size = h->size->size, step = h->size->step;
	unsigned int at, cleared = 0, flushed = 0, set = 0, end;
	const struct pgtable_kunit_step *s;
	const char *wrong = NULL;

	/*
	 * For a page of one entry, the older kernel invalidates one small page,
	 * at any level.
	 */
	if (!PGTABLE_KUNIT_HUGE_EXACT) {
		step = PAGE_SIZE;
		if (!huge_cont(h))
			size = PAGE_SIZE;
	}
	end = min_t(unsigned int, h->rec->nr, PGTABLE_KUNIT_STEPS);
	for (at = 0; at < end; at++) {
		s = h->rec->step + at;
		if (s->kind == PGTABLE_KUNIT_READ)
			continue;
		if (s->kind == PGTABLE_KUNIT_WRITE) {
			cleared += !s->new;
			set += !!s->new;
			if (s->new ? !flushed : flushed)
				wrong = "entries are written in the wrong order";
			continue;
		}
		if (flushed++)
			wrong = "it invalidates twice";
		else if (s->mm != h->vma->vm_mm || s->start != huge_addr(h) ||
			 s->end != huge_addr(h) + size || s->stride != step)
			wrong = "it invalidates another range";
		else if (s->level != TLBI_TTL_UNKNOWN &&
			 s->level != h->size->level &&
			 (PGTABLE_KUNIT_HUGE_EXACT || huge_cont(h)))
			wrong = "the level hint is wrong";
		else if (s->flags & ~PGTABLE_KUNIT_LAST_LEVEL ||
			 (PGTABLE_KUNIT_HUGE_EXACT && !s->flags))
			wrong = "it is the wrong kind of invalidation";
	}
	if (!flushed)
		wrong = "it does not invalidate";
	else if (cleared != h->size->nr || (set && set != h->size->nr))
		wrong = "it does not write each entry once";
	KUNIT_EXPECT_NULL_MSG(h->test, wrong, "%s: %s", desc, wrong);
	return !wrong;
}

/**
 * huge_next_place() - the next place in a page
 * @h: the context
 * @i: the place before
 *
 * The places are the ends and the middle of a block, and then HUGE_NOWHERE.
 */
unsigned int huge_next_place(struct huge_ctx *h, unsigned int i)
{
	unsigned int nr = h->size->nr;

	if (i >= nr - 1)
		return i == HUGE_NOWHERE ? i + 1 : HUGE_NOWHERE;
	return i == 0 ? 1 : i < nr / 2 ? nr / 2 : nr - 1;
}

/**
 * huge_desc() - a description of the state of a page
 * @h: the context
 * @state: the state
 *
 * Return: the text. It stays valid until the second call after this one.
 */
const char *huge_desc(struct huge_ctx *h, const struct huge_state *state)
{
	static const char * const kinds[HUGE_KINDS] = {
		[HUGE_NONE] = "empty",
		[HUGE_READ] = "read-only",
		[HUGE_WRITE] = "writable",
		[HUGE_PROT_NONE] = "PROT_NONE",
		[HUGE_EXEC] = "executable",
		[HUGE_KERNEL] = "kernel",
		[HUGE_SWAP] = "swap",
		[HUGE_SWAP_BITS] = "swap with all bits",
		[HUGE_MIGRATION_READ] = "migration to read",
		[HUGE_MIGRATION_WRITE] = "migration to write",
		[HUGE_MIGRATION_UFFD] = "migration, userfaultfd",
		[HUGE_MARKER] = "marker",
	};
	static char desc[2][64];
	static unsigned int n;
	char *to = desc[n++ % 2];
	int len;

	len = snprintf(to, sizeof(desc[0]), "%s", kinds[state->kind]);
	if (huge_young(state))
		len += snprintf(to + len, sizeof(desc[0]) - len, ", entry %u young",
				state->young);
	if (huge_dirty(state))
		snprintf(to + len, sizeof(desc[0]) - len, ", entry %u dirty",
			 state->dirty);
	return to;
}
