// SPDX-License-Identifier: GPL-2.0
/*
 * Large folios across VMAs.
 *
 * A system call on part of a folio, or a VMA that ends inside of one, leaves the
 * rest of the folio mapped; where the architecture folds entries, the folded
 * block may have to be taken apart, or may go on across two VMAs. Each case
 * populates three blocks of anonymous memory with a folio each, does one thing
 * from some page of the second block on, at every page in turn, then another
 * thing to the pages on one side of it, or on both, and compares with a model:
 *
 *	|........|...11111|11111111|	1 the first call
 *	|        |22222222|        |	2 the second: below, above, or across
 *
 *  - the entries and contents of all pages, and that nothing else is mapped;
 *  - that contiguous blocks are complete and of one kind;
 *  - that folios have as many mappings and references as the model, and the
 *    address space as many pages;
 *  - that every entry that lost a page or a permission was invalidated (arm64).
 *
 * Not covered: files, swap (there is no device), threads that run meanwhile.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	vma_split
 */

#include <kunit/test.h>
#include <linux/migrate.h>
#include <linux/mman.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "user_mm.h"
#include "../internal.h"

struct split_fixture {
	struct user_mm *u;
	struct pgtable_kunit_tlb *tlb;	/* or NULL */
	unsigned long addr[USER_PAGES];	/* before the second call */
	pte_t pte[USER_PAGES];
};

/* A call on pages [first, first + nr), which are mapped, and what it means. */
struct split_op {
	const char *desc;
	long (*run)(struct user_mm *u, unsigned int first, unsigned int nr);
};

/* Change what the model knows of the pages of a call. */
static void split_model(struct user_mm *u, unsigned int first, unsigned int nr,
			void (*change)(struct user_page *p))
{
	unsigned int i;

	for (i = first; i < first + nr; i++)
		change(&u->page[i]);
}

static long split_nothing(struct user_mm *u, unsigned int first,
			  unsigned int nr)
{
	return 0;
}

static void split_page_gone(struct user_page *p)
{
	*p = (struct user_page){ .addr = p->addr };
}

static long split_munmap(struct user_mm *u, unsigned int first, unsigned int nr)
{
	split_model(u, first, nr, split_page_gone);
	return pgtable_kunit_syscall(munmap, u->page[first].addr,
				     nr * PAGE_SIZE);
}

static void split_page_read_only(struct user_page *p)
{
	p->writable = false;
}

static long split_protect(struct user_mm *u, unsigned int first,
			  unsigned int nr)
{
	split_model(u, first, nr, split_page_read_only);
	return pgtable_kunit_syscall(mprotect, u->page[first].addr,
				     nr * PAGE_SIZE, PROT_READ);
}

/* All access taken away and given back. */
static void split_page_writable(struct user_page *p)
{
	p->writable = true;
}

static long split_protect_twice(struct user_mm *u, unsigned int first,
				unsigned int nr)
{
	split_model(u, first, nr, split_page_writable);
	return pgtable_kunit_syscall(mprotect, u->page[first].addr,
				     nr * PAGE_SIZE, PROT_NONE) ?:
	       pgtable_kunit_syscall(mprotect, u->page[first].addr,
				     nr * PAGE_SIZE, PROT_READ | PROT_WRITE);
}

static void split_page_locked(struct user_page *p)
{
	p->locked = true;
}

static long split_lock(struct user_mm *u, unsigned int first, unsigned int nr)
{
	split_model(u, first, nr, split_page_locked);
	return pgtable_kunit_syscall(mlock, u->page[first].addr,
				     nr * PAGE_SIZE);
}

static long split_advise(struct user_mm *u, unsigned int first,
			 unsigned int nr, int advice)
{
	return pgtable_kunit_syscall(madvise, u->page[first].addr,
				     nr * PAGE_SIZE, advice);
}

static void split_page_hidden(struct user_page *p)
{
	p->hidden = true;
}

static long split_dontfork(struct user_mm *u, unsigned int first,
			   unsigned int nr)
{
	split_model(u, first, nr, split_page_hidden);
	return split_advise(u, first, nr, MADV_DONTFORK);
}

static void split_page_wiped(struct user_page *p)
{
	p->wiped = true;
}

static long split_wipeonfork(struct user_mm *u, unsigned int first,
			     unsigned int nr)
{
	split_model(u, first, nr, split_page_wiped);
	return split_advise(u, first, nr, MADV_WIPEONFORK);
}

static long split_nohugepage(struct user_mm *u, unsigned int first,
			     unsigned int nr)
{
	return split_advise(u, first, nr, MADV_NOHUGEPAGE);
}

/* Advice that locked memory refuses as a whole. */
static long split_advise_unlocked(struct user_mm *u, unsigned int first,
				  unsigned int nr, int advice)
{
	bool locked = u->page[first].locked || u->page[first + nr - 1].locked;
	long err = split_advise(u, first, nr, advice);

	return locked ? err != -EINVAL : err;
}

static void split_page_empty(struct user_page *p)
{
	p->present = false;
	p->data = 0;
	p->pfn = 0;
}

/* VMA by VMA: what comes before a locked one is gone. */
static long split_dontneed(struct user_mm *u, unsigned int first,
			   unsigned int nr)
{
	unsigned int unlocked = 0;

	while (unlocked < nr && !u->page[first + unlocked].locked)
		unlocked++;
	split_model(u, first, unlocked, split_page_empty);
	return split_advise_unlocked(u, first, nr, MADV_DONTNEED);
}

static long split_free(struct user_mm *u, unsigned int first, unsigned int nr)
{
	return split_advise_unlocked(u, first, nr, MADV_FREE);
}

static long split_cold(struct user_mm *u, unsigned int first, unsigned int nr)
{
	return split_advise_unlocked(u, first, nr, MADV_COLD);
}

static long split_pageout(struct user_mm *u, unsigned int first,
			  unsigned int nr)
{
	return split_advise_unlocked(u, first, nr, MADV_PAGEOUT);
}

static long split_move_one(struct user_mm *u, unsigned int first,
			   unsigned int nr, unsigned long offset)
{
	unsigned long from = u->page[first].addr, size = nr * PAGE_SIZE;
	unsigned long to = USER_ADDR + ++u->moves * USER_PLACE_SIZE +
			   first * PAGE_SIZE + offset;
	unsigned int i;
	long addr;

	addr = pgtable_kunit_syscall(mremap, from, size, size,
				     MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (addr != to)
		return addr;
	for (i = first; i < first + nr; i++) {
		if (!pte_none(user_mm_pte(u, u->page[i].addr)))
			return -EEXIST;
		u->page[i].addr += to - from;
	}
	return 0;
}

static struct vm_area_struct *split_vma_of(struct user_mm *u, unsigned int page)
{
	struct vm_area_struct *vma;

	mmap_read_lock(u->mm);
	vma = find_vma(u->mm, u->page[page].addr);
	mmap_read_unlock(u->mm);
	return vma;
}

/*
 * To another place, of which the offset in a block is the same or not; a call
 * for each VMA, which is all that older kernels can.
 */
static long split_move(struct user_mm *u, unsigned int first, unsigned int nr,
		       unsigned long offset)
{
	unsigned int i, n;
	long err = 0;

	for (i = first; i < first + nr && !err; i += n) {
		for (n = 1; i + n < first + nr; n++)
			if (split_vma_of(u, i + n) != split_vma_of(u, i))
				break;
		err = split_move_one(u, i, n, offset);
	}
	return err;
}

static long split_move_aligned(struct user_mm *u, unsigned int first,
			       unsigned int nr)
{
	return split_move(u, first, nr, 0);
}

static long split_move_unaligned(struct user_mm *u, unsigned int first,
				 unsigned int nr)
{
	return split_move(u, first, nr, PAGE_SIZE);
}

static struct folio *split_new_folio(struct folio *src, unsigned long private)
{
	return folio_alloc(GFP_HIGHUSER_MOVABLE | __GFP_COMP, folio_order(src));
}

/* The folio of the first page goes elsewhere, as in compaction. */
static long split_migrate(struct user_mm *u, unsigned int first,
			  unsigned int nr)
{
	struct folio *folio = user_mm_folio(u, first);
	unsigned int i;
	LIST_HEAD(list);

	if (!folio)
		return 0;
	lru_add_drain_all();
	if (!folio_isolate_lru(folio))
		return -EBUSY;
	for (i = 0; i < USER_PAGES; i++) {
		if (u->page[i].pfn && pfn_folio(u->page[i].pfn) == folio)
			u->page[i].pfn = 0;
	}
	node_stat_mod_folio(folio, NR_ISOLATED_ANON + folio_is_file_lru(folio),
			    folio_nr_pages(folio));
	list_add(&folio->lru, &list);
	return migrate_pages(&list, split_new_folio, NULL, 0, MIGRATE_SYNC,
			     MR_SYSCALL, NULL);
}

/* It falls apart into single pages, which stay where they are. */
static long split_folio_apart(struct user_mm *u, unsigned int first,
			      unsigned int nr)
{
	struct folio *folio = user_mm_folio(u, first);
	long err;

	if (!folio || !folio_test_large(folio))
		return 0;
	lru_add_drain_all();
	folio_get(folio);
	folio_lock(folio);
	err = split_folio(folio);
	folio_unlock(folio);
	folio_put(folio);
	return err;
}

/* A page that was shared once may be copied, or taken over. */
static long split_write(struct user_mm *u, unsigned int first, unsigned int nr)
{
	unsigned int i;

	for (i = first; i < first + nr; i++) {
		struct user_page *p = &u->page[i];

		if (p->writable && p->pfn &&
		    !PageAnonExclusive(pfn_to_page(p->pfn)))
			p->pfn = 0;
		if (user_mm_write(u, i, 5000 + i) != (p->writable ? 0 : -EFAULT))
			return -EFAULT;
	}
	return 0;
}

/* What a child finds, and that it can write to all of that. */
static int split_child(struct user_mm *u)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < USER_PAGES; i++) {
		const struct user_page *p = &u->page[i];
		unsigned int __user *word = (unsigned int __user *)p->addr;
		bool mapped = p->mapped && !p->hidden;
		unsigned int data = 0;

		if (get_user(data, word)) {
			wrong += mapped;
			continue;
		}
		wrong += !mapped || data != (p->wiped ? 0 : p->data);
		wrong += !put_user(7000 + i, word) != p->writable;
		wrong += get_user(data, word) ||
			 (p->writable && data != 7000 + i);
	}
	return wrong;
}

/* Afterwards the pages are written to. */
static long split_fork(struct user_mm *u, unsigned int first, unsigned int nr)
{
	int wrong = user_mm_fork(u, split_child, NULL);

	if (wrong)
		return wrong;
	user_mm_check(u);
	return split_write(u, first, nr);
}

/* The pages below are the parent's alone now, those from there on are not. */
static long split_fork_below(struct user_mm *u, unsigned int first,
			     unsigned int nr)
{
	return split_fork(u, 0, first);
}

static const struct split_op split_first[] = {
	{ "nothing", split_nothing },
	{ "munmap", split_munmap },
	{ "mprotect", split_protect },
	{ "mlock", split_lock },
	{ "DONTFORK", split_dontfork },
	{ "WIPEONFORK", split_wipeonfork },
	{ "NOHUGEPAGE", split_nohugepage },
	{ "DONTNEED", split_dontneed },
	{ "mremap", split_move_aligned },
	{ "mremap, unaligned", split_move_unaligned },
	{ "fork and write", split_fork },
	{ "fork and write up to there", split_fork_below },
};

static const struct split_op split_second[] = {
	{ "write", split_write },
	{ "munmap", split_munmap },
	{ "mprotect", split_protect },
	{ "mprotect, none and back", split_protect_twice },
	{ "DONTNEED", split_dontneed },
	{ "FREE", split_free },
	{ "COLD", split_cold },
	{ "PAGEOUT", split_pageout },
	{ "mremap", split_move_aligned },
	{ "mremap, unaligned", split_move_unaligned },
	{ "migration", split_migrate },
	{ "split of the folio", split_folio_apart },
	{ "fork", split_fork },
};

KUNIT_ARRAY_PARAM_DESC(split_second, split_second, desc);

/* Remember what the TLB may have. */
static void split_remember(struct split_fixture *f)
{
	unsigned int i;

	if (!f->tlb)
		return;
	for (i = 0; i < USER_PAGES; i++) {
		f->addr[i] = f->u->page[i].addr;
		f->pte[i] = user_mm_pte(f->u, f->addr[i]);
	}
	f->tlb->nr = 0;
}

static bool split_invalidated(struct pgtable_kunit_tlb *tlb, unsigned long addr)
{
	unsigned int i;

	if (tlb->nr > PGTABLE_KUNIT_FLUSHES)
		return true;
	for (i = 0; i < tlb->nr; i++)
		if (tlb->range[i].start <= addr && addr < tlb->range[i].end)
			return true;
	return false;
}

static void split_check_tlb(struct kunit *test, struct split_fixture *f)
{
	unsigned int i;

	if (!f->tlb)
		return;
	for (i = 0; i < USER_PAGES; i++) {
		pte_t old = f->pte[i], pte = user_mm_pte(f->u, f->addr[i]);

		if (!pte_present(old) ||
		    (pte_present(pte) && pte_pfn(pte) == pte_pfn(old) &&
		     pte_write(pte) >= pte_write(old)))
			continue;
		if (!split_invalidated(f->tlb, f->addr[i])) {
			KUNIT_FAIL(test, "%s: page %u: %016llx to %016llx, %u invalidations",
				   f->u->what, i, (u64)pte_val(old),
				   (u64)pte_val(pte), f->tlb->nr);
			return;
		}
	}
}

/* The pages of the second call, in which none is unmapped or elsewhere. */
static bool split_side(struct user_mm *u, unsigned int side, unsigned int at,
		       unsigned int *first, unsigned int *nr)
{
	static const char * const names[] = { "below", "above", "across" };
	unsigned int i;

	*first = side == 0 ? USER_BLOCK : side == 1 ? at : at - 1;
	*nr = side == 0 ? at - USER_BLOCK : side == 1 ? 2 * USER_BLOCK - at : 2;
	strlcat(u->what, names[side], sizeof(u->what));
	for (i = 0; i < *nr; i++) {
		const struct user_page *p = &u->page[*first + i];

		if (!p->mapped || p->addr != u->page[*first].addr + i * PAGE_SIZE)
			return false;
	}
	return true;
}

/* With large blocks only the positions near their ends and their middle. */
static bool split_position(unsigned int i)
{
	return USER_BLOCK <= 16 || i <= 2 || i >= USER_BLOCK - 2 ||
	       abs_diff(i, USER_BLOCK / 2) <= 1;
}

static void split_call(struct user_mm *u, const struct split_op *op,
		       unsigned int first, unsigned int nr)
{
	long err = op->run(u, first, nr);

	if (err) {
		u->failed++;
		KUNIT_FAIL(u->test, "%s: %s fails: %ld", u->what, op->desc, err);
	}
}

static bool split_once(struct kunit *test, const struct split_op *one,
		       const struct split_op *two, unsigned int at,
		       unsigned int side)
{
	struct split_fixture *f = test->priv;
	struct user_mm *u = f->u;
	unsigned int first, nr;

	user_mm_populate(u, USER_BLOCK_ORDER);
	snprintf(u->what, sizeof(u->what), "%s from page %u on, %s ", one->desc,
		 at, two->desc);
	split_call(u, one, at, USER_PAGES - at);
	if (!split_side(u, side, at, &first, &nr))
		return false;
	split_remember(f);
	split_call(u, two, first, nr);
	split_check_tlb(test, f);
	user_mm_check(u);
	return true;
}

/*
 * Every first call at every page of the block, and the second one on each side
 * of it and across: what stays of a block over two VMAs, and what a child gets
 * of it [contpte 170, 175, 192, 199, 224, 225].
 */
static void vma_split_and_call(struct kunit *test)
{
	const struct split_op *two = test->param_value;
	struct split_fixture *f = test->priv;
	unsigned int i, at, side, n = 0;

	for (i = 0; i < ARRAY_SIZE(split_first); i++)
		for (at = USER_BLOCK + 1; at < 2 * USER_BLOCK; at++) {
			if (!split_position(at - USER_BLOCK))
				continue;
			for (side = 0; side < 3 && !f->u->failed; side++)
				n += split_once(test, &split_first[i], two, at,
						side);
		}
	user_mm_unmap(f->u);
	kunit_info(test, "%u combinations\n", n);
}

static struct kunit_suite vma_split_suite;

static int vma_split_init(struct kunit *test)
{
	int err = pgtable_kunit_case_init(test, &vma_split_suite);
	struct split_fixture *f;

	if (err)
		return err;
	f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, f);
	test->priv = f;
	pgtable_kunit_thp_set(test, BIT(USER_BLOCK_ORDER), true);
	f->u = user_mm_alloc(test);
	if (IS_ENABLED(CONFIG_ARM64))
		f->tlb = pgtable_kunit_tlb_record(test, f->u->mm);
	return 0;
}

static struct kunit_case vma_split_cases[] = {
	KUNIT_CASE_PARAM_ATTR(vma_split_and_call, split_second_gen_params,
			      PGTABLE_KUNIT_SLOW),
	{}
};

static struct kunit_suite vma_split_suite = {
	.name = "vma_split",
	.init = vma_split_init,
	.test_cases = vma_split_cases,
};

kunit_test_suite(vma_split_suite);

MODULE_DESCRIPTION("KUnit tests for large folios across VMAs");
MODULE_LICENSE("GPL");
