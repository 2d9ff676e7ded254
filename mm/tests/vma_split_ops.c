// SPDX-License-Identifier: GPL-2.0
/*
 * The calls that the suite on large folios across VMAs makes, and their effect
 * on the model.
 */

#include <linux/migrate.h>
#include <linux/mman.h>
#include <linux/swap.h>
#include <linux/uaccess.h>
#include <linux/unistd.h>

#include "vma_split.h"
#include "../internal.h"

/* Change the pages of a call in the model. */
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

/* Remove all access, and restore it. */
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

/* Advice that fails for locked memory, with no effect on any page. */
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

/* MADV_DONTNEED works VMA by VMA: it discards the pages before a locked VMA. */
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

/*
 * Two calls. The first call splits the folio, which uses migration entries. If
 * these lose the young bit (known issue 1), the split already makes the pages
 * old. So the pages are read again, and the second call has to make them old
 * itself.
 */
static long split_cold(struct user_mm *u, unsigned int first, unsigned int nr)
{
	long err = split_advise_unlocked(u, first, nr, MADV_COLD);
	unsigned int i, data;

	for (i = first; i < first + nr && !err; i++) {
		if (!u->page[i].present)
			continue;
		if (get_user(data, (unsigned int __user *)u->page[i].addr) ||
		    !pte_young(user_mm_pte(u, u->page[i].addr)))
			return -EFAULT;
	}
	return err ?: split_advise_unlocked(u, first, nr, MADV_COLD);
}

static long split_pageout(struct user_mm *u, unsigned int first,
			  unsigned int nr)
{
	return split_advise_unlocked(u, first, nr, MADV_PAGEOUT);
}

/* Reclaim may drop the page at once, since its entry is clean. */
static bool split_is_free(struct folio *folio, pte_t pte)
{
	return !pte_young(pte) && !pte_dirty(pte) &&
	       !folio_test_swapbacked(folio);
}

static bool split_is_cold(struct folio *folio, pte_t pte)
{
	return !pte_young(pte) && !folio_test_active(folio);
}

/* If nothing can be swapped out, reclaim makes the page active. */
static bool split_was_paged_out(struct folio *folio, pte_t pte)
{
	return folio_test_active(folio);
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
 * Move the pages to another address, at the same offset in a block or at
 * another offset. There is one call for each VMA, since older kernels cannot
 * move several VMAs at once.
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

/* Migrate the folio of the first page, as compaction does. */
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

/* Split the folio into single pages, which keep their page frames. */
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

/*
 * Write to the pages. If a page has been shared, the kernel copies or reuses
 * it.
 */
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

/* Check the content in a child, and that it can write to all pages. */
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

/* Fork, then write to the pages. */
static long split_fork(struct user_mm *u, unsigned int first, unsigned int nr)
{
	int wrong = user_mm_fork(u, split_child, NULL);

	if (wrong)
		return wrong;
	user_mm_check(u);
	return split_write(u, first, nr);
}

/*
 * Fork, then write to all pages before @first. Afterwards these pages belong
 * only to the parent, and the later pages do not.
 */
static long split_fork_below(struct user_mm *u, unsigned int first,
			     unsigned int nr)
{
	return split_fork(u, 0, first);
}

const struct split_op vma_split_first[SPLIT_FIRST] = {
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

const struct split_op vma_split_second[SPLIT_SECOND] = {
	/*
	 * The kernel copies the page or reuses it. If it reuses the page, only
	 * the permission changes.
	 */
	{ "write", split_write, PGTABLE_KUNIT_REUSES_FOLIOS },
	{ "munmap", split_munmap },
	{ "mprotect", split_protect },
	{ "mprotect, none and back", split_protect_twice, true },
	{ "DONTNEED", split_dontneed },
	{ "FREE", split_free, true, split_is_free },
	{ "COLD", split_cold, true, split_is_cold },
	{ "PAGEOUT", split_pageout, true, split_was_paged_out },
	{ "mremap", split_move_aligned },
	{ "mremap, unaligned", split_move_unaligned },
	{ "migration", split_migrate },
	{ "split of the folio", split_folio_apart, true },
	{ "fork", split_fork },
};
