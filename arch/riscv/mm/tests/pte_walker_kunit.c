// SPDX-License-Identifier: GPL-2.0
/*
 * riscv entries that the hardware writes to.
 *
 * With Svadu, and on any CPU that updates the bits itself, the page-table
 * walker of another CPU may set the accessed and dirty bits at any time. The
 * walker may make an entry dirty as long as the entry is writable. Only the
 * dirty bit says that the page has to be written back, so a function that
 * changes an entry must not lose this bit.
 *
 * The suite simulates the walker. It compiles the functions a second time, and
 * after each read of an entry it makes this entry dirty, as the walker would
 * do. The result does not depend on chance or on the CPU. Not covered: two CPUs
 * at the same time, PMDs.
 *
 *   ./tools/testing/kunit/kunit.py run --arch=riscv pte_walker
 */

#include <kunit/test.h>
#include <asm/tlbflush.h>

#include "pgtable_kunit.h"
#include "pte_walker.h"

PTE_WALKER_FUNCTIONS;

/* The number of entries that fork() may write-protect with one call. */
#define WALKED_PTES	16

/* No function here reads an entry more often. */
#define WALKED_READS	4U

/*
 * The reads, and the entries that the walker made dirty, since walker_start().
 */
static unsigned int walker_reads, walker_dirtied;

/* The walker acts only after this read. If it is 0, it acts after each read. */
static unsigned int walker_when;

/*
 * A store of user space through an entry, as the walker handles it: the update
 * of the entry is atomic, and only sets bits.
 */
static void walker_store(void *p)
{
	pte_t *ptep = p, pte = ptep_get(ptep);

	walker_reads++;
	if (walker_when && walker_reads != walker_when)
		return;
	if (!(pte_val(pte) & _PAGE_PRESENT) || !pte_write(pte) || pte_dirty(pte))
		return;
	WRITE_ONCE(pte_val(*ptep),
		   pte_val(pte) | _PAGE_ACCESSED | _PAGE_DIRTY);
	walker_dirtied++;
}

static void walker_start(struct pgtable_kunit_table *table)
{
	walker_reads = 0;
	walker_dirtied = 0;
	pte_walker.step = walker_store;
	pte_walker.nr = WALKED_PTES;
	barrier();
	pte_walker.ptep = table->pte;
}

static void walker_stop(void)
{
	pte_walker.ptep = NULL;
	barrier();
}

static void walker_exit(struct kunit *test)
{
	walker_stop();
	walker_when = 0;
}

/* The entry for a writable page of a folio that 16 entries map. */
static pte_t walked_entry(struct folio *folio, unsigned int i, bool young)
{
	pte_t pte = pfn_pte(folio_pfn(folio) + i, PAGE_SHARED);

	pte = pte_mkclean(pte_mkwrite_novma(pte));
	return young ? pte_mkyoung(pte) : pte_mkold(pte);
}

static struct pgtable_kunit_table *walked_table(struct kunit *test, bool young)
{
	struct folio *folio = pgtable_kunit_folio_alloc(test, 4);
	struct pgtable_kunit_table *table = pgtable_kunit_table_alloc(test);
	unsigned int i;

	for (i = 0; i < WALKED_PTES; i++)
		pgtable_kunit_table_set(table, i, walked_entry(folio, i, young));
	return table;
}

/*
 * The control: a plain read and a plain write around the store of the walker
 * lose the dirty bit of each entry. If this case lost no bits, the other cases
 * would prove nothing.
 */
static void walker_plain_write_loses(struct kunit *test)
{
	struct pgtable_kunit_table *table = walked_table(test, true);
	unsigned int i, lost = 0;

	walker_start(table);
	for (i = 0; i < WALKED_PTES; i++)
		walked_plain_wrprotect(table->pte + i);
	walker_stop();
	for (i = 0; i < WALKED_PTES; i++)
		lost += !pte_dirty(ptep_get(table->pte + i));
	KUNIT_EXPECT_EQ(test, walker_dirtied, WALKED_PTES);
	KUNIT_EXPECT_EQ(test, lost, WALKED_PTES);
	PGTABLE_KUNIT_DID(test, walker_dirtied, "entries made dirty");
}

/*
 * ptep_set_wrprotect() keeps a dirty bit that the walker sets before the
 * function removes the write permission. fork() calls it for the parent's
 * pages, while other threads of the parent write. The case protects 1 and 16
 * entries with one call. A store of the walker comes before the call, or after
 * each read in the call. A function that uses one atomic operation has no such
 * read. Known issue 16: the bit is lost.
 */
static void wrprotect_keeps_dirty(struct kunit *test)
{
	unsigned int nr, i, entries = 0, lost = 0, between = 0;

	for (nr = 1; nr <= WALKED_PTES; nr += WALKED_PTES - 1) {
		struct pgtable_kunit_table *table = walked_table(test, true);

		/* The entry is dirty before the call. */
		for (i = 0; i < nr; i++)
			walker_store(table->pte + i);
		walker_start(table);
		walked_wrprotect_ptes(table->mm, table->addr, table->pte, nr);
		walker_stop();
		for (i = 0; i < nr; i++)
			table->want[i] = __pte((pte_val(table->want[i]) |
						_PAGE_DIRTY) & ~_PAGE_WRITE);
		pgtable_kunit_table_check(table, "dirty before");
		entries += nr;

		/*
		 * The entry becomes dirty as soon as the function has read it.
		 */
		table = walked_table(test, true);
		walker_start(table);
		walked_wrprotect_ptes(table->mm, table->addr, table->pte, nr);
		walker_stop();
		between += walker_dirtied;
		for (i = 0; i < nr; i++) {
			pte_t pte = ptep_get(table->pte + i);

			if (walker_dirtied && !pte_dirty(pte))
				lost++;
			table->want[i] = pte_wrprotect(table->want[i]);
			if (pte_dirty(pte))
				pte_val(table->want[i]) |= _PAGE_DIRTY;
		}
		pgtable_kunit_table_check(table, "dirty between");
		entries += nr;
	}
	PGTABLE_KUNIT_DID(test, entries, "entries protected");
	kunit_info(test, "%u made dirty after a read, %u lost\n", between, lost);
	if (lost && lost == between)
		pgtable_kunit_known_issue(test, 16,
					  "%u of %u entries lose the dirty bit that is set after the read",
					  lost, between);
	else if (!lost)
		pgtable_kunit_stale_issue(test, 16);
	KUNIT_EXPECT_TRUE_MSG(test, !lost || lost == between,
			      "%u of %u lost", lost, between);
}

/*
 * ptep_set_access_flags() keeps a dirty bit that the walker sets after the page
 * fault has read the entry: before the call, or after each read in it. This
 * happens if two threads fault on one page: the first thread has returned to
 * user space and writes, while the second thread makes the entry young. The
 * entries are young already, or old. Known issue 17: the page fault makes a new
 * value from its read of the entry. If the entry differs from this value, the
 * function writes the value, and the dirty bit is lost.
 */
static void access_flags_keep_dirty(struct kunit *test)
{
	unsigned int i, n, calls = 0, lost = 0;

	for (n = 0; n < 4; n++) {
		bool young = n & 1, before = n & 2;
		/*
		 * Whether the entry differs from the value that the page fault
		 * has made.
		 */
		bool changes = before || !young;
		struct pgtable_kunit_table *table = walked_table(test, young);
		struct vm_area_struct vma = TLB_FLUSH_VMA(table->mm, 0);

		for (i = 0; i < WALKED_PTES; i++) {
			pte_t read = pte_mkyoung(ptep_get(table->pte + i));

			if (!before)
				walker_start(table);
			else
				walker_store(table->pte + i);
			walked_set_access_flags(&vma, table->addr + i * PAGE_SIZE,
						table->pte + i, read, 0);
			walker_stop();
			table->want[i] = read;
			calls += changes;
			if (!changes || pte_dirty(ptep_get(table->pte + i)))
				pte_val(table->want[i]) |= _PAGE_DIRTY;
			else
				lost++;
		}
		pgtable_kunit_table_check(table, "young %d, before %d", young,
					  before);
	}
	PGTABLE_KUNIT_DID(test, calls, "calls with another entry");
	if (lost && lost == calls)
		pgtable_kunit_known_issue(test, 17,
					  "%u of %u entries lose a dirty bit",
					  lost, calls);
	else if (!lost)
		pgtable_kunit_stale_issue(test, 17);
	KUNIT_EXPECT_TRUE_MSG(test, !lost || lost == calls, "%u of %u lost",
			      lost, calls);
}

/*
 * Make @ptep young and clean, and let the walker act after read @when of the
 * function that is called next.
 */
static void walker_prepare(struct pgtable_kunit_table *table, pte_t *ptep,
			   pte_t pte, unsigned int when)
{
	set_pte(ptep, pte);
	walker_when = when;
	walker_start(table);
}

/*
 * ptep_get_and_clear() returns a dirty bit that is set at any time before the
 * entry is cleared, and ptep_test_and_clear_young() keeps such a bit. munmap()
 * and reclaim learn by ptep_get_and_clear() that a page was written to. The
 * walker makes the entry dirty after the first read of a function, after the
 * second, and so on. A function that uses one atomic operation has at most one
 * read, which only decides whether there is anything to do.
 */
static void get_and_clear_keeps_dirty(struct kunit *test)
{
	struct pgtable_kunit_table *table = walked_table(test, true);
	struct vm_area_struct vma = TLB_FLUSH_VMA(table->mm, 0);
	unsigned int i, when, dirtied = 0;

	for (i = 0; i < WALKED_PTES * WALKED_READS; i++) {
		unsigned int idx = i % WALKED_PTES;
		unsigned long addr = table->addr + idx * PAGE_SIZE;
		pte_t *ptep = table->pte + idx, pte = table->want[idx], got;

		when = i / WALKED_PTES + 1;
		walker_prepare(table, ptep, pte, when);
		KUNIT_EXPECT_TRUE(test, walked_clear_young(&vma, addr, ptep));
		walker_stop();
		KUNIT_EXPECT_LT(test, walker_reads, WALKED_READS);
		KUNIT_EXPECT_EQ(test, walker_dirtied, walker_reads >= when);
		dirtied += walker_dirtied;
		got = ptep_get(ptep);
		KUNIT_EXPECT_FALSE(test, pte_young(got));
		KUNIT_EXPECT_EQ(test, !!pte_dirty(got), walker_dirtied);

		walker_prepare(table, ptep, pte, when);
		got = walked_get_and_clear(table->mm, addr, ptep);
		walker_stop();
		KUNIT_EXPECT_LT(test, walker_reads, WALKED_READS);
		KUNIT_EXPECT_TRUE(test, pte_young(got));
		KUNIT_EXPECT_EQ(test, !!pte_dirty(got), walker_dirtied);
		KUNIT_EXPECT_TRUE(test, pte_none(ptep_get(ptep)));
	}
	for (i = 0; i < WALKED_PTES; i++)
		table->want[i] = __pte(0);
	pgtable_kunit_table_check(table, "all cleared");
	PGTABLE_KUNIT_DID(test, dirtied, "entries made dirty");
}

static struct kunit_case pte_walker_cases[] = {
	KUNIT_CASE(walker_plain_write_loses),
	KUNIT_CASE(wrprotect_keeps_dirty),
	KUNIT_CASE(access_flags_keep_dirty),
	KUNIT_CASE(get_and_clear_keeps_dirty),
	{}
};

static struct kunit_suite pte_walker_suite = {
	.name = "pte_walker",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.exit = walker_exit,
	.test_cases = pte_walker_cases,
};

kunit_test_suite(pte_walker_suite);

MODULE_DESCRIPTION("KUnit tests for riscv entries that the hardware writes to");
MODULE_LICENSE("GPL");
