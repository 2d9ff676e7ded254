// SPDX-License-Identifier: GPL-2.0
/*
 * Checker of break-before-make for a window of page-table entries.
 *
 * The checker sees every write of an entry and every invalidation. It keeps all
 * translations that a TLB may hold in the worst case. Hardware may walk the
 * table at any moment, may cache any valid entry, and never drops an entry
 * without an invalidation. An entry without the contiguous bit is cached for
 * its page. An entry with the bit is cached for every page of its block, as if
 * the TLB had read it from any of the block's entries. The checker ignores the
 * access flag and the dirty state: hardware changes them in place.
 *
 * The rules come from the Arm ARM (DDI 0487), "Using break-before-make when
 * updating translation table entries" and "The Contiguous bit". In the terms of
 * Linux, the rules are:
 *
 * in place:	A valid entry may change its permissions, access flag and dirty
 *		state. A change of output address, memory type, shareability,
 *		nG or of the contiguous bit has to go through an invalid entry.
 *
 * mixed:	A block never has both a valid entry with the contiguous bit and
 *		a valid entry without it. Walks of the two entries would
 *		translate one address with two sizes.
 *
 * misaligned:	A contiguous entry maps the page that belongs to its place in
 *		the block. Otherwise a walk of this entry gives wrong
 *		translations for the other pages of the block.
 *
 * conflict:	A valid entry must not be written while a TLB may hold a
 *		different translation of an address that the entry covers: one
 *		with another output address, attribute or size. The invalidation
 *		has to reach all CPUs, and the kernel has to wait for its end.
 *		Between the invalidation and the write, no entry of the block
 *		may be valid; otherwise a TLB can cache it again.
 *
 * partial:	When a function returns, either no entry of a block is
 *		contiguous, or all entries are contiguous, valid and the same,
 *		including permissions.
 *
 * stale:	When a function returns, a TLB may hold only current
 *		translations of the pages outside of the caller's range. The
 *		caller invalidates only its range.
 *
 * changed:	When a function returns, a page outside of the range has the
 *		same mapping as before the call, or none if it had none. Only
 *		the contiguous bit may differ.
 *
 * The checker allows one state that looks wrong: while the kernel writes the
 * entries of a whole block one by one, hardware sees a block that is only
 * partly contiguous. set_ptes() of new entries does this. Functions that clear
 * or write-protect old entries do it too.
 *
 *	|cccc    |	set: pages 4 to 7 can be used already
 *	|    cccc|	clear: pages 0 to 3 can still be used, until the flush
 *	|RRRRcccc|	write-protect: any page may be writable, until the flush
 *
 * Hardware may use any of the entries for any page of the block, but all entries
 * have the same address and attributes. A page may have the permissions of any
 * of these entries, but only until the caller's invalidation. Linux relies on
 * that (see contpte_wrprotect_ptes()). If a block stays contiguous, a function
 * must not change only a part of it: see rule "partial".
 *
 * With BBM level 3, a TLB that holds two sizes of a translation uses one of
 * them and raises no abort. So different sizes are no conflict, and the rules
 * "in place", "mixed", "conflict" and "stale" ignore the contiguous bit.
 */

#include "contpte_bbm.h"

/* Bits that may differ between a cached translation and the table. */
#define PERMISSIONS	(PTE_USER | PTE_RDONLY | PTE_WRITE | PTE_PXN | \
			 PTE_UXN | PTE_GP | PTE_PO_IDX_MASK)

/* The first entry of a block. */
static int block_of(struct contpte_bbm *bbm, int idx)
{
	return ALIGN_DOWN(idx, bbm->block);
}

static void broken(struct contpte_bbm *bbm, enum contpte_bbm_rule rule, int idx)
{
	if (bbm->rule)
		return;
	bbm->rule = rule;
	bbm->idx = idx;
}

/*
 * The translation that a TLB caches for page @page if it walks the valid entry
 * at @idx.
 */
static pteval_t translation(struct contpte_bbm *bbm, pte_t pte, int idx,
			    int page)
{
	pte = pte_mkold(pte_mkclean(pte));
	if (pte_cont(pte))
		pte = pte_advance_pfn(pte, (page - idx) * (int)bbm->pages);
	return pte_val(pte) & ~PTE_SWBITS_MASK;
}

/* The differences between two translations that require break-before-make. */
static pteval_t differ(struct contpte_bbm *bbm, pteval_t a, pteval_t b)
{
	return (a ^ b) & ~(PERMISSIONS | (bbm->bbml3 ? PTE_CONT : 0));
}

static void cache(struct contpte_bbm *bbm, int page, pteval_t val)
{
	unsigned int i;

	for (i = 0; i < bbm->tlb[page].nr; i++) {
		if (bbm->tlb[page].cached[i] == val)
			return;
	}
	if (i == CONTPTE_BBM_CACHED) {
		broken(bbm, CONTPTE_BBM_TOO_MANY, page);
		return;
	}
	bbm->tlb[page].cached[i] = val;
	bbm->tlb[page].nr++;
}

/* The pages that a walk of an entry translates: [*first, *end). */
static void covered(struct contpte_bbm *bbm, pte_t pte, int idx, int *first,
		    int *end)
{
	*first = pte_cont(pte) ? block_of(bbm, idx) : idx;
	*end = *first + (pte_cont(pte) ? bbm->block : 1);
}

static void walk(struct contpte_bbm *bbm, int idx)
{
	pte_t pte = bbm->pte[idx];
	int page, end;

	if (!pte_valid(pte))
		return;
	for (covered(bbm, pte, idx, &page, &end); page < end; page++)
		cache(bbm, page, translation(bbm, pte, idx, page));
	if (pte_cont(pte))
		bbm->walked[idx / bbm->block] =
			translation(bbm, pte, idx, block_of(bbm, idx));
}

/*
 * Whether the checker has already checked the result of this walk for each page
 * of the block.
 */
static bool walked(struct contpte_bbm *bbm, int idx, pte_t pte)
{
	return pte_valid_cont(pte) &&
	       translation(bbm, pte, idx, block_of(bbm, idx)) ==
	       bbm->walked[idx / bbm->block];
}

static void set_entry(struct contpte_bbm *bbm, int idx, pte_t pte)
{
	pte_t old = bbm->pte[idx];

	bbm->valid[idx / bbm->block] += pte_valid(pte) - pte_valid(old);
	bbm->cont[idx / bbm->block] += pte_valid_cont(pte) - pte_valid_cont(old);
	bbm->pte[idx] = pte;
}

/**
 * contpte_bbm_start() - begin with a window of entries
 * @bbm: the checker
 * @pte: the entries; the TLB may have cached each of them
 * @bbml3: check by the rules for BBM level 3
 */
void contpte_bbm_start(struct contpte_bbm *bbm, const pte_t *pte, bool bbml3)
{
	contpte_bbm_start_level(bbm, pte, CONT_PTES, 1);
	bbm->bbml3 = bbml3;
}

/**
 * contpte_bbm_start_level() - begin with a window of entries of any level
 * @bbm: the checker
 * @pte: the entries; the TLB may have cached each of them
 * @block: number of entries in a contiguous block; it divides the window
 * @pages: number of pages that an entry maps
 */
void contpte_bbm_start_level(struct contpte_bbm *bbm, const pte_t *pte,
			     unsigned int block, unsigned int pages)
{
	int i;

	memset(bbm, 0, sizeof(*bbm));
	bbm->block = block;
	bbm->pages = pages;
	for (i = 0; i < CONTPTE_WINDOW; i++) {
		bbm->was[i] = pte[i];
		set_entry(bbm, i, pte[i]);
		if (!walked(bbm, i, pte[i]))
			walk(bbm, i);
	}
}

/*
 * Whether the block has a valid entry that differs from this entry in the
 * contiguous bit.
 */
static bool mixed(struct contpte_bbm *bbm, int idx, pte_t pte)
{
	unsigned int valid = bbm->valid[idx / bbm->block];
	unsigned int cont = bbm->cont[idx / bbm->block];
	pte_t old = bbm->pte[idx];

	if (pte_cont(pte))
		return valid - cont > pte_valid(old) - pte_valid_cont(old);
	return cont > pte_valid_cont(old);
}

static void check_write(struct contpte_bbm *bbm, int idx, pte_t pte)
{
	pte_t old = bbm->pte[idx];
	unsigned int i;
	int page, end;

	if (pte_valid(old) && differ(bbm, translation(bbm, old, idx, idx),
				     translation(bbm, pte, idx, idx))) {
		broken(bbm, CONTPTE_BBM_IN_PLACE, idx);
		return;
	}
	if (!bbm->bbml3 && mixed(bbm, idx, pte)) {
		broken(bbm, CONTPTE_BBM_MIXED, idx);
		return;
	}
	if (pte_cont(pte) && (pte_pfn(pte) / bbm->pages ^ idx) % bbm->block) {
		broken(bbm, CONTPTE_BBM_MISALIGNED, idx);
		return;
	}
	for (covered(bbm, pte, idx, &page, &end); page < end; page++) {
		pteval_t val = translation(bbm, pte, idx, page);

		for (i = 0; i < bbm->tlb[page].nr; i++) {
			if (differ(bbm, bbm->tlb[page].cached[i], val)) {
				broken(bbm, CONTPTE_BBM_CONFLICT, idx);
				return;
			}
		}
	}
}

/**
 * contpte_bbm_write() - an entry is written
 * @bbm: the checker
 * @idx: the entry
 * @pte: the new value
 */
void contpte_bbm_write(struct contpte_bbm *bbm, int idx, pte_t pte)
{
	if (bbm->rule)
		return;
	bbm->steps++;
	if (pte_valid(pte) && !(walked(bbm, idx, pte) &&
				!mixed(bbm, idx, pte) &&
				!pte_valid(bbm->pte[idx])))
		check_write(bbm, idx, pte);
	set_entry(bbm, idx, pte);
	if (!walked(bbm, idx, pte))
		walk(bbm, idx);
}

/**
 * contpte_bbm_flush() - the translations of a page are invalidated
 * @bbm: the checker
 * @idx: the page's entry
 *
 * The invalidation is on all CPUs, and complete. Translations of other pages of
 * the same contiguous block may stay: hardware does not have to cache a block
 * as one entry.
 */
void contpte_bbm_flush(struct contpte_bbm *bbm, int idx)
{
	int i;

	if (bbm->rule)
		return;
	bbm->steps++;
	bbm->tlb[idx].nr = 0;
	bbm->walked[idx / bbm->block] = 0;
	if (pte_valid(bbm->pte[idx]))
		cache(bbm, idx, translation(bbm, bbm->pte[idx], idx, idx));
	if (!bbm->cont[idx / bbm->block])
		return;
	for (i = block_of(bbm, idx); i < block_of(bbm, idx) + bbm->block; i++) {
		if (pte_valid_cont(bbm->pte[i]))
			cache(bbm, idx, translation(bbm, bbm->pte[i], i, idx));
	}
}

static void check_block(struct contpte_bbm *bbm, int first)
{
	const pte_t *pte = bbm->pte;
	int i;

	for (i = first + 1; i < first + bbm->block; i++) {
		if (pte_valid_cont(pte[i]) == pte_valid_cont(pte[first]) &&
		    (!pte_valid_cont(pte[i]) || translation(bbm, pte[i], i, first) ==
		     translation(bbm, pte[first], first, first)))
			continue;
		broken(bbm, CONTPTE_BBM_PARTIAL, i);
		return;
	}
}

static void check_page(struct contpte_bbm *bbm, int page)
{
	pteval_t ignore = bbm->bbml3 ? PTE_CONT : 0, was = 0, val = 0;
	unsigned int i;

	if (pte_valid(bbm->was[page]))
		was = translation(bbm, bbm->was[page], page, page);
	if (pte_valid(bbm->pte[page]))
		val = translation(bbm, bbm->pte[page], page, page);
	for (i = 0; i < bbm->tlb[page].nr; i++) {
		if ((bbm->tlb[page].cached[i] ^ val) & ~ignore)
			broken(bbm, CONTPTE_BBM_STALE, page);
	}
	if ((was ^ val) & ~PTE_CONT)
		broken(bbm, CONTPTE_BBM_CHANGED, page);
}

/**
 * contpte_bbm_end() - the function under test returns
 * @bbm: the checker
 * @start: first entry of the function's range
 * @end: the entry after the last
 */
void contpte_bbm_end(struct contpte_bbm *bbm, int start, int end)
{
	int i;

	for (i = 0; i < CONTPTE_WINDOW; i += bbm->block)
		check_block(bbm, i);
	for (i = 0; i < CONTPTE_WINDOW; i++) {
		if (i < start || i >= end)
			check_page(bbm, i);
	}
}

/**
 * contpte_bbm_rule_name() - the name of a rule, as in the comment above
 * @rule: the rule
 */
const char *contpte_bbm_rule_name(enum contpte_bbm_rule rule)
{
	static const char * const names[] = {
		[CONTPTE_BBM_OK] = "none",
		[CONTPTE_BBM_IN_PLACE] = "in place",
		[CONTPTE_BBM_MIXED] = "mixed",
		[CONTPTE_BBM_MISALIGNED] = "misaligned",
		[CONTPTE_BBM_CONFLICT] = "conflict",
		[CONTPTE_BBM_PARTIAL] = "partial",
		[CONTPTE_BBM_STALE] = "stale",
		[CONTPTE_BBM_CHANGED] = "changed",
		[CONTPTE_BBM_TOO_MANY] = "too many translations to check",
	};

	return names[rule];
}
