/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common parts of the suites for arm64's hugetlbpage.c: a page-table tree with
 * a synthetic table at the level under test, and a second copy of the file,
 * which the recorder sees (hugetlb_recorded.c).
 *
 * A huge page is one entry, or a contiguous block of entries. The table is full
 * of huge pages of one size around the page under test:
 *
 *	| page before | page under test | page after |   ...   | last page |
 *
 * The memory that the entries map does not exist. So the suites can test every
 * size up to 16G. The functions under test read no folio.
 */
#ifndef _ARM64_MM_TESTS_HUGETLB_ENTRY_H
#define _ARM64_MM_TESTS_HUGETLB_ENTRY_H

#include <linux/hugetlb.h>

#include "contpte_bbm.h"
#include "contpte_record.h"

/**
 * struct huge_size - a size of huge pages
 * @desc: the words for it
 * @size: the size
 * @step: what one entry maps
 * @nr: number of entries
 * @level: the level of the entries, as in an invalidation
 */
struct huge_size {
	const char *desc;
	unsigned long size;
	unsigned long step;
	unsigned int nr;
	int level;
};

/* A PUD maps memory of a process only with 4K pages. */
#ifdef CONFIG_ARM64_4K_PAGES
#define HUGE_SIZES		4
#else
#define HUGE_SIZES		3
#endif

extern const struct huge_size huge_sizes[HUGE_SIZES];

/**
 * struct huge_ops - the functions of the second copy
 *
 * @erratum and @shares set the answers that the functions get about the CPU and
 * about the sharing of tables. @cma_order and @init report the values that the
 * functions pass to hugetlb. All other members are the functions of a similar
 * name.
 */
struct huge_ops {
	bool *erratum;
	pte_t **shares;
	unsigned int (*cma_order)(void);
	unsigned long (*init)(void);
	pte_t (*get)(struct mm_struct *mm, unsigned long addr, pte_t *ptep);
	void (*set)(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
		    pte_t pte, unsigned long size);
	void (*clear)(struct mm_struct *mm, unsigned long addr, pte_t *ptep,
		      unsigned long size);
	pte_t (*get_and_clear)(struct mm_struct *mm, unsigned long addr,
			       pte_t *ptep, unsigned long size);
	int (*access_flags)(struct vm_area_struct *vma, unsigned long addr,
			    pte_t *ptep, pte_t pte, int dirty);
	void (*wrprotect)(struct mm_struct *mm, unsigned long addr, pte_t *ptep);
	pte_t (*clear_flush)(struct vm_area_struct *vma, unsigned long addr,
			     pte_t *ptep);
	pte_t (*prot_start)(struct vm_area_struct *vma, unsigned long addr,
			    pte_t *ptep);
	void (*prot_commit)(struct vm_area_struct *vma, unsigned long addr,
			    pte_t *ptep, pte_t old, pte_t pte);
	void (*flush_range)(struct vm_area_struct *vma, unsigned long start,
			    unsigned long end);
	pte_t *(*alloc)(struct mm_struct *mm, struct vm_area_struct *vma,
			unsigned long addr, unsigned long size);
	pte_t *(*offset)(struct mm_struct *mm, unsigned long addr,
			 unsigned long size);
	unsigned long (*mask_last_page)(struct hstate *h);
	pte_t (*make)(pte_t entry, unsigned int shift, vm_flags_t flags);
	bool (*valid_size)(unsigned long size);
	bool (*migration)(struct hstate *h);
};

extern const struct huge_ops huge_ops;

/* Set by a test: the size of the page that an entry maps. */
extern unsigned long huge_recorded_size;

/* The bit of the type that is set for a page and clear for a block. */
#define HUGE_TYPE_PAGE		(PTE_TYPE_MASK & ~PTE_VALID)

/* The state of a page: the kind of its entries. */
enum huge_kind {
	HUGE_NONE,
	HUGE_READ,
	HUGE_WRITE,
	HUGE_PROT_NONE,
	HUGE_EXEC,
	HUGE_KERNEL,
	HUGE_SWAP,
	HUGE_SWAP_BITS,
	HUGE_MIGRATION_READ,
	HUGE_MIGRATION_WRITE,
	HUGE_MIGRATION_UFFD,
	HUGE_MARKER,
	HUGE_KINDS,
};

/* The value for "no entry of the block" as a place in a block. */
#define HUGE_NOWHERE		CONT_PTES

/**
 * struct huge_state - the entries of a page, as hardware may leave them
 * @kind: the kind of all entries
 * @page: the number of the page that they map
 * @young: the entry that is young, or HUGE_NOWHERE
 * @dirty: the entry that is dirty, or HUGE_NOWHERE
 */
struct huge_state {
	enum huge_kind kind;
	unsigned int page;
	unsigned int young;
	unsigned int dirty;
};

/*
 * The number of pages that the table can map. The first pages are around the
 * page under test.
 */
#define HUGE_PAGE		1
#define HUGE_OTHER_PAGE		3

/**
 * struct huge_ctx - the tables and the recorder of a case
 * @test: the test
 * @size: the size of the pages
 * @table: the table; its mm translates addresses by it
 * @pgd: the top table of the mm, if the table is in its place; or NULL
 * @vma: a VMA of hugetlb with such pages
 * @rec: the recorder of the table's entries
 * @bbm: the checker of break-before-make that the recorder feeds
 * @base: the address that the first entry of the table translates
 * @first: the first entry of the page under test
 * @window: the first entry that the checker sees
 * @outside: steps on entries outside of the page
 * @at: the hardware acts before this step
 * @entry: the entry in which it acts
 * @write: it writes; otherwise it reads
 * @acted: it has acted
 */
struct huge_ctx {
	struct kunit *test;
	const struct huge_size *size;
	struct pgtable_kunit_table *table;
	pgd_t *pgd;
	struct vm_area_struct *vma;
	struct pgtable_kunit_record *rec;
	struct contpte_bbm *bbm;
	unsigned long base;
	unsigned int first;
	unsigned int window;
	unsigned int outside;
	unsigned int at;
	unsigned int entry;
	bool write;
	bool acted;
};

struct huge_ctx *huge_ctx_alloc(struct kunit *test);
struct vm_area_struct *huge_vma_alloc(struct kunit *test, struct mm_struct *mm,
				      unsigned long size);
void huge_place(struct huge_ctx *h, bool last);
pte_t huge_pte(struct huge_ctx *h, const struct huge_state *state,
	       unsigned int i);
void huge_fill(struct huge_ctx *h, const struct huge_state *state);
void huge_start(struct huge_ctx *h);
void huge_stop(struct huge_ctx *h);
__printf(2, 3)
bool huge_check(struct huge_ctx *h, const char *fmt, ...);
bool huge_check_quiet(struct huge_ctx *h, const char *desc);
bool huge_check_flush(struct huge_ctx *h, const char *desc);
unsigned int huge_next_place(struct huge_ctx *h, unsigned int i);
const char *huge_desc(struct huge_ctx *h, const struct huge_state *state);

static inline bool huge_present(enum huge_kind kind)
{
	return kind > HUGE_NONE && kind < HUGE_SWAP;
}

static inline bool huge_valid(enum huge_kind kind)
{
	return huge_present(kind) && kind != HUGE_PROT_NONE;
}

static inline bool huge_cont(struct huge_ctx *h)
{
	return h->size->nr > 1;
}

static inline unsigned long huge_addr(struct huge_ctx *h)
{
	return h->base + h->first * h->size->step;
}

static inline pte_t *huge_ptep(struct huge_ctx *h)
{
	return h->table->pte + h->first;
}

static inline bool huge_young(const struct huge_state *state)
{
	return state->young != HUGE_NOWHERE;
}

static inline bool huge_dirty(const struct huge_state *state)
{
	return state->dirty != HUGE_NOWHERE;
}

/* An entry may be dirty in two forms. */
static inline pteval_t huge_plain(pte_t pte)
{
	return pte_val(pte_present(pte) && pte_dirty(pte) ? pte_mkdirty(pte) :
		       pte);
}

#endif /* _ARM64_MM_TESTS_HUGETLB_ENTRY_H */
