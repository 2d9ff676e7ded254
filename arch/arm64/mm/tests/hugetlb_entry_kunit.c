// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of arm64's hugetlbpage.c that write entries.
 *
 * A huge page is one entry, or a block of contiguous entries of the last level
 * or of blocks. Each function has to handle all entries of its page, each with
 * its address, and no entry of another page. If a TLB may have cached a
 * contiguous block, the function has to use break-before-make: clear all
 * entries, then invalidate the page, then write the new entries.
 *
 * Each case calls one function for each size of huge pages, between two other
 * pages and at the end of a table. It compares the whole table, the order of
 * writes, and the invalidation (see hugetlb_entry.h). Not covered: functions
 * that read or clear entries (hugetlb_take), tables and sizes (hugetlb_walk),
 * the calls by hugetlb (the selftests hugetlb_block and hugetlb_fork).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	--kconfig_add CONFIG_HUGETLBFS=y 'hugetlb_*'
 */

#include <kunit/test.h>

#include "hugetlb_entry.h"

static void huge_size_desc(const struct huge_size *size, char *desc)
{
	strscpy(desc, size->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(huge_sizes, huge_sizes, huge_size_desc);

/* Set the entries that the table should have for the page under test. */
static void want_page(struct huge_ctx *h, const struct huge_state *state)
{
	unsigned int i;

	for (i = 0; i < h->size->nr; i++)
		h->table->want[h->first + i] = huge_pte(h, state, i);
}

/* An argument for a new page, young and dirty as a page fault makes it. */
static struct huge_state new_page(enum huge_kind kind, unsigned int page)
{
	bool used = kind == HUGE_WRITE || kind == HUGE_EXEC;

	return (struct huge_state){
		.kind = kind, .page = page,
		.young = used ? 0 : HUGE_NOWHERE,
		.dirty = used ? 0 : HUGE_NOWHERE,
	};
}

/*
 * The entry that a caller passes for a page. The function writes this entry
 * into all entries of the page, each with its own address. So all entries get
 * all bits of the first entry.
 */
static void want_set(struct huge_ctx *h, const struct huge_state *state)
{
	struct huge_state each = *state;
	unsigned int i;

	for (i = 0; i < h->size->nr; i++) {
		if (huge_young(state))
			each.young = i;
		if (huge_dirty(state))
			each.dirty = i;
		h->table->want[h->first + i] = huge_pte(h, &each, i);
	}
}

/*
 * May a caller write the new page over the old page? A caller clears a valid
 * page before it writes a page that is not valid. It also clears a page of one
 * entry before it writes another page.
 */
static bool may_set(struct huge_ctx *h, const struct huge_state *old,
		    const struct huge_state *new)
{
	if (!huge_valid(old->kind))
		return true;
	if (!huge_valid(new->kind))
		return false;
	return huge_cont(h) || old->page == new->page;
}

/*
 * set_huge_pte_at() uses break-before-make for a block that is or may be valid.
 */
static bool breaks(struct huge_ctx *h, const struct huge_state *old,
		   const struct huge_state *new)
{
	return huge_cont(h) && huge_present(new->kind) &&
	       (!PGTABLE_KUNIT_HUGE_EXACT || huge_valid(old->kind));
}

static bool set_one(struct huge_ctx *h, const struct huge_state *old,
		    const struct huge_state *new, bool commit)
{
	unsigned long addr = huge_addr(h);
	pte_t arg = huge_pte(h, new, 0);
	char desc[128];
	bool ok;

	snprintf(desc, sizeof(desc), "entry %u: %s, now %s", h->first,
		 huge_desc(h, old), huge_desc(h, new));
	huge_fill(h, old);
	huge_start(h);
	if (commit)
		huge_ops.prot_commit(h->vma, addr, huge_ptep(h), __pte(0), arg);
	else
		huge_ops.set(h->vma->vm_mm, addr, huge_ptep(h), arg,
			     h->size->size);
	huge_stop(h);
	want_set(h, new);
	ok = huge_check(h, "%s", desc);
	if (breaks(h, old, new))
		return huge_check_flush(h, desc) && ok;
	return huge_check_quiet(h, desc) && ok;
}

/*
 * set_huge_pte_at() writes all entries of a page. The address advances from
 * entry to entry if the page is present. If it is not present, all entries are
 * the same. The function uses break-before-make for a contiguous block only if
 * the old entries are valid, since an unnecessary invalidation costs time on
 * all CPUs. The case tries each kind of old page with each kind of new page.
 * The new page is the same page as before, or another page.
 */
static void set_huge_pte_at_each_kind(struct kunit *test)
{
	struct huge_ctx *h = huge_ctx_alloc(test);
	unsigned int failed = 0, nr = 0, i, page;
	enum huge_kind from, to;

	for (i = 0; i < 2 * HUGE_KINDS * HUGE_KINDS * 2; i++) {
		struct huge_state old, new;

		huge_place(h, i % 2);
		page = i / 2 % 2 ? HUGE_OTHER_PAGE : HUGE_PAGE;
		from = i / 4 % HUGE_KINDS;
		to = i / 4 / HUGE_KINDS;
		old = new_page(from, HUGE_PAGE);
		new = new_page(to, page);
		/* A separate case tests mappings of the kernel. */
		if (to == HUGE_NONE || from == HUGE_KERNEL ||
		    to == HUGE_KERNEL || !may_set(h, &old, &new))
			continue;
		nr++;
		if (!set_one(h, &old, &new, false) &&
		    ++failed == PGTABLE_KUNIT_ENOUGH)
			break;
	}
	PGTABLE_KUNIT_DID(test, nr, "pages set");
}

/*
 * huge_ptep_modify_prot_commit() writes all entries of a page that
 * huge_ptep_modify_prot_start() has cleared. This includes pages that became
 * PROT_NONE, and pages that are not present.
 */
static void huge_modify_prot_commit_sets(struct kunit *test)
{
	struct huge_state old = new_page(HUGE_NONE, HUGE_PAGE);
	struct huge_ctx *h = huge_ctx_alloc(test);
	unsigned int failed = 0, nr = 0, i;

	for (i = 0; i < 2 * HUGE_KINDS; i++) {
		struct huge_state new = new_page(i / 2, HUGE_PAGE);

		huge_place(h, i % 2);
		if (new.kind == HUGE_NONE)
			continue;
		nr++;
		if (!set_one(h, &old, &new, true) &&
		    ++failed == PGTABLE_KUNIT_ENOUGH)
			break;
	}
	PGTABLE_KUNIT_DID(test, nr, "pages set");
}

/*
 * The kernel's own mappings do not belong to the address space of a process, so
 * an invalidation by the ID of a process may miss them. If set_huge_pte_at()
 * replaces a block of init_mm, it invalidates the kernel's addresses.
 */
static void set_huge_pte_at_kernel(struct kunit *test)
{
	struct huge_state old = new_page(HUGE_KERNEL, HUGE_PAGE);
	struct huge_state new = new_page(HUGE_KERNEL, HUGE_OTHER_PAGE);
	struct huge_ctx *h = huge_ctx_alloc(test);
	const struct pgtable_kunit_step *s;
	unsigned int at, nr = 0;

	huge_fill(h, &old);
	huge_start(h);
	huge_ops.set(&init_mm, huge_addr(h), huge_ptep(h), huge_pte(h, &new, 0),
		     h->size->size);
	huge_stop(h);
	want_set(h, &new);
	pgtable_kunit_table_check(h->table, "a page of the kernel");
	for (at = 0; at < h->rec->nr; at++) {
		s = h->rec->step + at;
		if (s->kind != PGTABLE_KUNIT_FLUSH)
			continue;
		nr++;
		KUNIT_EXPECT_PTR_EQ(test, s->mm, &init_mm);
		KUNIT_EXPECT_EQ(test, s->start, huge_addr(h));
		KUNIT_EXPECT_EQ(test, s->end, huge_addr(h) + h->size->size);
		if (PGTABLE_KUNIT_HUGE_EXACT)
			KUNIT_EXPECT_EQ(test, s->flags, PGTABLE_KUNIT_KERNEL |
					PGTABLE_KUNIT_LAST_LEVEL);
	}
	KUNIT_EXPECT_EQ(test, nr, huge_cont(h));
	PGTABLE_KUNIT_DID(test, h->rec->writes, "writes");
}

/*
 * huge_pte_clear() clears all entries of a page of any kind, and invalidates
 * nothing.
 */
static void huge_pte_clear_all(struct kunit *test)
{
	struct huge_state none = new_page(HUGE_NONE, HUGE_PAGE);
	struct huge_ctx *h = huge_ctx_alloc(test);
	unsigned int i, nr = 0;

	for (i = 0; i < 2 * HUGE_KINDS; i++) {
		struct huge_state old = new_page(i / 2, HUGE_PAGE);
		const char *desc = huge_desc(h, &old);

		huge_place(h, i % 2);
		huge_fill(h, &old);
		huge_start(h);
		huge_ops.clear(h->table->mm, huge_addr(h), huge_ptep(h),
			       h->size->size);
		huge_stop(h);
		want_page(h, &none);
		if (!huge_check(h, "%s", desc) || !huge_check_quiet(h, desc))
			break;
		nr++;
	}
	PGTABLE_KUNIT_DID(test, nr, "pages cleared");
}

/*
 * The page after a write protection or a fault: every entry is young if one was
 * young, and dirty if one was dirty. The comparison ignores the form of dirty,
 * since an entry may be dirty in two forms.
 */
static bool check_merged(struct huge_ctx *h, const struct huge_state *state,
			 const char *desc)
{
	unsigned int i;

	for (i = 0; i < h->size->nr; i++) {
		struct huge_state each = *state;
		pte_t is = h->table->pte[h->first + i], want;

		each.young = huge_young(state) ? i : HUGE_NOWHERE;
		each.dirty = huge_dirty(state) ? i : HUGE_NOWHERE;
		want = huge_pte(h, &each, i);
		KUNIT_EXPECT_EQ_MSG(h->test, huge_plain(is), huge_plain(want),
				    "%s: entry %u", desc, i);
		if (huge_plain(is) != huge_plain(want))
			return false;
		h->table->want[h->first + i] = is;
	}
	return true;
}

/*
 * huge_ptep_set_wrprotect() takes the write permission from all entries. If
 * hardware made one of them accessed or dirty, the page is accessed or dirty
 * afterwards. It uses break-before-make for a contiguous block. A page of one
 * entry changes in place, and the caller invalidates it.
 */
static void huge_ptep_set_wrprotect_keeps(struct kunit *test)
{
	struct huge_ctx *h = huge_ctx_alloc(test);
	unsigned int young, dirty, i, nr = 0;

	for (i = 0; i < 6; i++) {
		huge_place(h, i % 2);
		for (young = 0; young <= HUGE_NOWHERE; young = huge_next_place(h, young)) {
			for (dirty = 0; dirty <= HUGE_NOWHERE;
			     dirty = huge_next_place(h, dirty)) {
				static const enum huge_kind kinds[] = {
					HUGE_WRITE, HUGE_READ, HUGE_PROT_NONE,
				};
				struct huge_state old = {
					kinds[i / 2], HUGE_PAGE, young, dirty,
				};
				struct huge_state new = old;
				const char *desc = huge_desc(h, &old);
				bool ok;

				if (old.kind == HUGE_WRITE)
					new.kind = HUGE_READ;
				huge_fill(h, &old);
				huge_start(h);
				huge_ops.wrprotect(h->table->mm, huge_addr(h),
						   huge_ptep(h));
				huge_stop(h);
				ok = check_merged(h, &new, desc);
				ok &= huge_check(h, "%s", desc);
				ok &= huge_cont(h) ? huge_check_flush(h, desc) :
				      huge_check_quiet(h, desc);
				if (!ok)
					return;
				nr++;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, nr, "pages protected");
}

/*
 * The number of combinations of flags that a fault may ask for.
 */
#define FAULT_FLAGS		8
#define FAULT_WRITE		1
#define FAULT_DIRTY		2
#define FAULT_YOUNG		4

/* A page of one entry: exactly one local invalidation, if it became writable. */
static bool check_fault_flush(struct huge_ctx *h, bool flush, const char *desc)
{
	unsigned long size = PGTABLE_KUNIT_HUGE_EXACT ? h->size->size : PAGE_SIZE;
	int level = PGTABLE_KUNIT_HUGE_EXACT ? h->size->level : 3;
	const struct pgtable_kunit_step *s = h->rec->step + h->rec->nr - 1;

	if (!flush)
		return huge_check_quiet(h, desc);
	if (h->rec->flushes == 1 && s->kind == PGTABLE_KUNIT_FLUSH &&
	    s->mm == h->table->mm && s->start == huge_addr(h) &&
	    s->end == s->start + size && s->level == level &&
	    s->flags == PGTABLE_KUNIT_ACCESS_FLAGS_FLUSH)
		return true;
	KUNIT_FAIL(h->test, "%s: %u invalidations, the last %lx-%lx, level %d, flags %#x",
		   desc, h->rec->flushes, s->start, s->end, s->level, s->flags);
	return false;
}

static bool fault_one(struct huge_ctx *h, const struct huge_state *old,
		      unsigned int flags)
{
	struct huge_state new = *old;
	unsigned int i;
	bool changes = false, ok;
	char desc[96];
	pte_t arg;
	int ret;

	new.young = flags & FAULT_YOUNG ? 0 : HUGE_NOWHERE;
	new.dirty = flags & FAULT_DIRTY ? 0 : HUGE_NOWHERE;
	new.kind = flags & FAULT_WRITE ? HUGE_WRITE : old->kind;
	arg = huge_pte(h, &new, 0);
	for (i = 0; i < h->size->nr; i++)
		changes |= huge_young(&new) != (old->young == i) ||
			   huge_dirty(&new) != (old->dirty == i) ||
			   new.kind != old->kind;
	/* No flag that was set is lost. */
	if (huge_young(old))
		new.young = 0;
	if (huge_dirty(old))
		new.dirty = 0;

	snprintf(desc, sizeof(desc), "%s, flags %x", huge_desc(h, old), flags);
	huge_fill(h, old);
	huge_start(h);
	ret = huge_ops.access_flags(h->vma, huge_addr(h), huge_ptep(h), arg,
				    flags & FAULT_WRITE);
	huge_stop(h);
	KUNIT_EXPECT_EQ_MSG(h->test, ret, changes, "%s: returned", desc);
	ok = ret == changes;
	if (huge_cont(h) && !changes)
		KUNIT_EXPECT_EQ_MSG(h->test, h->rec->writes, 0, "%s", desc);
	else
		ok &= check_merged(h, &new, desc);
	ok &= huge_check(h, "%s", desc);
	if (!huge_cont(h))
		return ok & check_fault_flush(h, changes && flags & FAULT_WRITE,
					      desc);
	return ok & (changes ? huge_check_flush(h, desc) :
		     huge_check_quiet(h, desc));
}

/*
 * huge_ptep_set_access_flags() gives all entries the flags that a fault asks
 * for, and keeps the accessed and dirty bits of each entry. If an entry of a
 * block differs from the result, the function uses break-before-make and
 * returns true. If no entry differs, it writes nothing. A page of one entry is
 * invalidated only on this CPU, and only if the caller says that the access is
 * a write.
 */
static void huge_ptep_set_access_flags_merges(struct kunit *test)
{
	struct huge_ctx *h = huge_ctx_alloc(test);
	unsigned int young, dirty, flags, i, nr = 0, failed = 0;

	for (i = 0; i < 4 * FAULT_FLAGS; i++) {
		huge_place(h, i % 2);
		flags = i / 4;
		for (young = 0; young <= HUGE_NOWHERE; young = huge_next_place(h, young)) {
			for (dirty = 0; dirty <= HUGE_NOWHERE;
			     dirty = huge_next_place(h, dirty)) {
				struct huge_state old = {
					i / 2 % 2 ? HUGE_WRITE : HUGE_READ,
					HUGE_PAGE, young, dirty,
				};

				nr++;
				if (!fault_one(h, &old, flags) &&
				    ++failed == PGTABLE_KUNIT_ENOUGH)
					return;
			}
		}
	}
	PGTABLE_KUNIT_DID(test, nr, "faults");
}

static struct kunit_case hugetlb_entry_cases[] = {
	KUNIT_CASE_PARAM(set_huge_pte_at_each_kind, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_modify_prot_commit_sets, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(set_huge_pte_at_kernel, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_pte_clear_all, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_ptep_set_wrprotect_keeps, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_ptep_set_access_flags_merges, huge_sizes_gen_params),
	{}
};

static struct kunit_suite hugetlb_entry_suite = {
	.name = "hugetlb_entry",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = hugetlb_entry_cases,
};

kunit_test_suite(hugetlb_entry_suite);

MODULE_DESCRIPTION("KUnit tests for arm64 functions that write entries of huge pages");
MODULE_LICENSE("GPL");
