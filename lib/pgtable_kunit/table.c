// SPDX-License-Identifier: GPL-2.0
/*
 * Synthetic page tables, and their comparison with an expected image.
 */

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "pgtable_kunit.h"

/* The table with a guard page on either side; the fourth page is spare. */
#define TABLE_ORDER	2
#define TABLE_PAGES	3
#define TABLE_SIZE	(PTRS_PER_PTE * sizeof(pte_t))
#define POISON		0xa5

/* An address that every architecture has in its user space. */
#define TABLE_ADDR	(2 * PMD_SIZE)

/* The tables of the running test. */
static LIST_HEAD(tables);

static bool is_poison(pte_t *pte)
{
	return !memchr_inv(pte, POISON, sizeof(*pte));
}

/* A guard page, by its position relative to the table: -1 or 1. */
static pte_t *guard_page(pte_t *pte, int page)
{
	return pte + page * PTRS_PER_PTE;
}

static void poison_guards(struct pgtable_kunit_table *table)
{
	int page;

	for (page = -1; page <= 1; page += 2) {
		memset(guard_page(table->pte, page), POISON, TABLE_SIZE);
		memset(guard_page(table->want, page), POISON, TABLE_SIZE);
	}
	table->guard_used = false;
}

static void table_empty(struct pgtable_kunit_table *table)
{
	pte_t none = pgtable_kunit_none();
	int i;

	for (i = 0; i < PTRS_PER_PTE; i++)
		table->pte[i] = none;
	memcpy(table->want, table->pte, TABLE_SIZE);
}

/**
 * pgtable_kunit_table_reset() - empty a table
 * @table: the table
 *
 * The table and the expected image become empty, and the guards hold only
 * poison. Tests call this in their loops, so it also lets other tasks run.
 */
void pgtable_kunit_table_reset(struct pgtable_kunit_table *table)
{
	int pages = table->guard_used ? TABLE_PAGES : 1;
	pte_t *ptep = table->guard_used ? guard_page(table->pte, -1) : table->pte;
	pte_t *end = ptep + pages * PTRS_PER_PTE;

	for (; ptep < end; ptep++) {
		if (!pte_none(READ_ONCE(*ptep)) && !is_poison(ptep))
			pgtable_kunit_raw_clear(table->mm,
						pgtable_kunit_table_addr(table, ptep - table->pte),
						ptep);
	}
	table_empty(table);
	if (table->guard_used)
		poison_guards(table);
	cond_resched();
}

/**
 * pgtable_kunit_tables_reset() - empty all tables of the test
 *
 * The test is about to free the folios that the entries map.
 */
void pgtable_kunit_tables_reset(void)
{
	struct pgtable_kunit_table *table;

	list_for_each_entry(table, &tables, list)
		pgtable_kunit_table_reset(table);
}

static void table_free(void *data)
{
	struct pgtable_kunit_table *table = data;
	struct page *page = virt_to_page(table->pages);

	pgtable_kunit_table_reset(table);
	list_del(&table->list);
	KUNIT_EXPECT_EQ_MSG(table->test, page_ref_count(page), 1,
			    "leak: a page of the table is still in use");
	KUNIT_EXPECT_EQ_MSG(table->test, atomic_read(&table->mm->mm_users), 1,
			    "leak: the mm of the table is still in use");
	mmput(table->mm);
	free_pages((unsigned long)table->pages, TABLE_ORDER);
}

/**
 * pgtable_kunit_table_alloc() - make an empty table
 * @test: the test that owns it
 */
struct pgtable_kunit_table *pgtable_kunit_table_alloc(struct kunit *test)
{
	struct pgtable_kunit_table *table;

	table = kunit_kzalloc(test, sizeof(*table), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, table);
	table->test = test;
	table->addr = TABLE_ADDR;

	table->want_pages = kunit_kzalloc(test, TABLE_PAGES * TABLE_SIZE,
					  GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, table->want_pages);
	table->want = table->want_pages + TABLE_SIZE;

	table->mm = mm_alloc();
	KUNIT_ASSERT_NOT_NULL(test, table->mm);
	table->pages = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO,
						TABLE_ORDER);
	if (!table->pages) {
		mmput(table->mm);
		KUNIT_FAIL_AND_ABORT(test, "out of memory");
	}
	table->pte = table->pages + TABLE_SIZE;
	table_empty(table);
	poison_guards(table);
	list_add(&table->list, &tables);

	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, table_free, table));
	return table;
}

/**
 * pgtable_kunit_table_set() - write an entry exactly as given
 * @table: the table
 * @idx: index of the entry; may lie in a guard
 * @pte: the entry
 *
 * This creates the state before the call under test. The expected image gets
 * the entry too.
 */
void pgtable_kunit_table_set(struct pgtable_kunit_table *table, int idx,
			     pte_t pte)
{
	unsigned long addr = pgtable_kunit_table_addr(table, idx);
	pte_t *ptep = table->pte + idx;

	if (idx < 0 || idx >= PTRS_PER_PTE) {
		table->guard_used = true;
		*ptep = pgtable_kunit_none();
	}
	pgtable_kunit_raw_set(table->mm, addr, ptep, pte);
	table->want[idx] = *ptep;
}

/**
 * pgtable_kunit_table_same() - compare a table with the expected image, silently
 * @table: the table
 *
 * Return: whether every entry, including the guards, is as expected.
 */
bool pgtable_kunit_table_same(struct pgtable_kunit_table *table)
{
	return !memcmp(guard_page(table->pte, -1), guard_page(table->want, -1),
		       TABLE_PAGES * TABLE_SIZE);
}

/**
 * pgtable_kunit_table_check() - compare a table with the expected image
 * @table: the table
 * @fmt: the inputs of the call under test, as for printf()
 *
 * Compares every entry, including the guards. If entries differ, the test
 * fails, and the message shows the first of them.
 *
 * Return: whether all entries were as expected.
 */
bool pgtable_kunit_table_check(struct pgtable_kunit_table *table,
			       const char *fmt, ...)
{
	/* In some architectures PTRS_PER_PTE is unsigned. */
	const int nr = PTRS_PER_PTE;
	int i, first = 0, differ = 0;
	struct pgtable_kunit_pte_diff diff;
	struct va_format vaf;
	va_list args;

	if (pgtable_kunit_table_same(table))
		return true;

	for (i = -nr; i < 2 * nr; i++) {
		if (!memcmp(table->pte + i, table->want + i,
			    sizeof(pte_t)))
			continue;
		if (!differ++)
			first = i;
	}
	/*
	 * The test may have written to a guard. The next reset clears it.
	 */
	table->guard_used = true;

	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	KUNIT_FAIL(table->test,
		   "%pV: entry %d%s is %016llx, expected %016llx (%d differ)%s",
		   &vaf, first,
		   first < 0 || first >= nr ?
		   ", outside of the table," : "",
		   (unsigned long long)pte_val(table->pte[first]),
		   (unsigned long long)pte_val(table->want[first]), differ,
		   pgtable_kunit_pte_diff(&diff, table->pte[first],
					  table->want[first]));
	va_end(args);
	return false;
}

/**
 * pgtable_kunit_table_init() - the init of a suite: a table in test->priv
 * @test: the test
 *
 * Return: 0, or an error number.
 */
int pgtable_kunit_table_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);

	if (!err)
		test->priv = pgtable_kunit_table_alloc(test);
	return err;
}
