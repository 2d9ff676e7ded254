/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common parts of the suites on folios that several mms map: mms with VMAs, and
 * a model that counts the mappings of each mm.
 */
#ifndef _MM_TESTS_FOLIO_MAPPED_H
#define _MM_TESTS_FOLIO_MAPPED_H

#include <linux/rmap.h>

#include "owners.h"
#include "pgtable_kunit.h"

#define MAPPED_MMS	6

/*
 * The largest order. With large pages, this is the largest order of a folio
 * that takes less than half of memory.
 */
#define MAPPED_ORDER_MAX \
	MIN_T(unsigned int, MAX_PAGE_ORDER, const_ilog2(SZ_64M / PAGE_SIZE))

/* The kernel's name for it. Without huge pages there is no such order. */
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
#define PMD_FOLIO_ORDER	HPAGE_PMD_ORDER
#else
#define PMD_FOLIO_ORDER	9
#endif

/**
 * struct mapped_mms - address spaces that map a folio
 * @vma: one VMA of each mm, which only the rmap functions use
 */
struct mapped_mms {
	struct vm_area_struct *vma[MAPPED_MMS];
};

/**
 * struct mapped_model - which mms map a folio, and what the kernel can know
 * about these mms
 * @mapped: how many mappings each mm has
 * @tracked: how many of these mappings are counted in one of the two slots. If
 *	an mm finds a free slot when it maps pages, it keeps the slot until it
 *	has unmapped the same number of pages
 * @sticky: an mm has mapped the folio while other mms had mappings; true until
 *   one slot counts all mappings
 * @crowded: some mappings were counted in no slot; the slots have been inexact
 *   from then on
 */
struct mapped_model {
	int mapped[MAPPED_MMS];
	int tracked[MAPPED_MMS];
	bool sticky;
	bool crowded;
};

struct mapped_mms *mapped_mms_fake(struct kunit *test);
int mapped_fake_init(struct kunit *test);
struct mapped_mms *mapped_mms_real(struct kunit *test);
void mapped_mms_ids(struct mapped_mms *mms, const unsigned int *ids);
void mapped_new_anon(struct mapped_mms *mms, struct folio *folio, rmap_t flags);

int mapped_total(const struct mapped_model *model);
int mapped_owners(const struct mapped_model *model);
void mapped_model_change(struct mapped_model *model, int mm, int nr);
const char *mapped_wrong(const struct mapped_model *model,
			 const struct mapped_mms *mms, struct folio *folio);
__printf(4, 5)
bool mapped_check(struct kunit *test, const struct mapped_model *model,
		  struct folio *folio, const char *fmt, ...);

/* The callers of rmap functions hold the lock of a page table. */
static inline void mapped_lock(void)
{
	preempt_disable();
}

static inline void mapped_unlock(void)
{
	preempt_enable();
}

/* The same, with the lock of an mm that is being forked. */
static inline void mapped_fork_begin(struct mapped_mms *mms, int parent)
{
	mapped_lock();
	raw_write_seqcount_begin(&mms->vma[parent]->vm_mm->write_protect_seq);
}

static inline void mapped_fork_end(struct mapped_mms *mms, int parent)
{
	raw_write_seqcount_end(&mms->vma[parent]->vm_mm->write_protect_seq);
	mapped_unlock();
}

static inline void mapped_needs_ids(struct kunit *test)
{
	if (PGTABLE_KUNIT_SHARED != PGTABLE_KUNIT_SHARED_TRACKED)
		kunit_skip(test, "no CONFIG_MM_ID: folios do not know their owners");
}

#endif /* _MM_TESTS_FOLIO_MAPPED_H */
