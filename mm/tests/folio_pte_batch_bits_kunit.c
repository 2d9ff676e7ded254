// SPDX-License-Identifier: GPL-2.0
/*
 * folio_pte_batch(): entries that differ in bits, and the report on these bits.
 *
 * Entries of a batch may differ in some bits. The report tells the caller which
 * of these bits are set in any entry of the batch. If the report lacks a
 * writable bit, fork shares a page for writing. If it has the dirty bit
 * although no entry is dirty, clean pages become dirty. Here each entry has a
 * state of a few bits. A model of plain loops computes the length of the batch
 * and the report, for each combination of flags. The entries after the folio
 * map the physically next folio, with all bits that can be reported.
 *
 * compat.h hides the two generations of the interface: one takes the bits to
 * ignore, the other the bits to respect. folio_pte_batch_kunit.c tests all
 * other conditions that end a batch. Not covered: the callers.
 *
 *   ./tools/testing/kunit/kunit.py run --kunitconfig=mm/tests \
 *	folio_pte_batch_bits
 */

#include "folio_pte_batch.h"

/* The state of an entry. STATE_OTHER is the bit that the case tests. */
#define STATE_WRITE	BIT(0)
#define STATE_YOUNG	BIT(1)
#define STATE_DIRTY	BIT(2)
#define STATE_SOFT	BIT(3)
#define STATE_OTHER	BIT(4)
#define STATE_REPORTED	(STATE_WRITE | STATE_YOUNG | STATE_DIRTY)

/* An entry for @pfn. @other sets the bit that STATE_OTHER stands for. */
static pte_t state_pte(unsigned long pfn, unsigned int state,
		       pte_t (*other)(pte_t pte))
{
	pte_t pte = batch_pte(pfn, state & STATE_WRITE);

	if (state & STATE_YOUNG)
		pte = pte_mkyoung(pte);
	if (state & STATE_DIRTY)
		pte = pte_clear_soft_dirty(pte_mkdirty(pte));
	if (state & STATE_SOFT)
		pte = pte_mksoft_dirty(pte);
	if (state & STATE_OTHER)
		pte = other(pte);
	return pte;
}

/*
 * The entries of the folio get their states. The entries of the next folio get
 * all bits.
 */
static void state_map(struct pgtable_kunit_table *table, struct folio *folio,
		      const u8 *state, pte_t (*other)(pte_t pte))
{
	unsigned int n = folio_nr_pages(folio), i;

	pgtable_kunit_table_reset(table);
	for (i = 0; i < 2 * n; i++)
		pgtable_kunit_table_set(table, i,
					state_pte(folio_pfn(folio) + i,
						  i < n ? state[i] :
							  STATE_REPORTED,
						  other));
}

/* The bits of a state that must be alike in a batch. */
static unsigned int state_respected(unsigned int flags)
{
	unsigned int state = STATE_OTHER;

	if (flags & PGTABLE_KUNIT_RESPECT_WRITE)
		state |= STATE_WRITE;
	if (flags & PGTABLE_KUNIT_RESPECT_DIRTY)
		state |= STATE_DIRTY;
	if (flags & PGTABLE_KUNIT_RESPECT_SOFT_DIRTY)
		state |= STATE_SOFT;
	return state;
}

/* The bits of a state that are reported. */
static unsigned int state_asked(unsigned int flags)
{
	unsigned int state = 0;

	if (flags & PGTABLE_KUNIT_MERGE_WRITE)
		state |= STATE_WRITE;
	if (flags & PGTABLE_KUNIT_MERGE_YOUNG)
		state |= STATE_YOUNG;
	if (flags & PGTABLE_KUNIT_MERGE_DIRTY)
		state |= STATE_DIRTY;
	return state;
}

/*
 * An entry without the bits that folio_pte_batch() may change in the caller's
 * copy of the first entry.
 */
static pte_t pte_unmerged(pte_t pte)
{
	return pte_mkold(pte_wrprotect(pte_mkclean(pte_clear_soft_dirty(pte))));
}

/*
 * The end of a batch from entry @idx on, if the bits @same must be alike.
 */
static unsigned int state_end(const u8 *state, unsigned int idx,
			      unsigned int end, unsigned int same)
{
	unsigned int i = idx + 1;

	while (i < end && !((state[i] ^ state[idx]) & same))
		i++;
	return i;
}

/*
 * Ask for a batch from entry @idx on, and compare it with the model: with each
 * combination of flags, or only with no flag and with all flags if the batch
 * may be long. The copy of the first entry stays unchanged if no flag asks for
 * a merge. A merge changes only the merged bits, but pte_mkdirty() may also
 * make the copy soft-dirty.
 */
static bool state_expect(struct kunit *test, struct folio *folio,
			 const u8 *state, unsigned int idx, unsigned int max_nr,
			 const char *what)
{
	unsigned int step = max_nr > BATCH_LONG ? PGTABLE_KUNIT_BATCH_FLAGS - 1 : 1;
	unsigned int end = min(idx + max_nr, (unsigned int)folio_nr_pages(folio));
	struct pgtable_kunit_table *table = test->priv;
	unsigned long addr = pgtable_kunit_table_addr(table, idx);
	pte_t *ptep = table->pte + idx, first = ptep_get(ptep);
	unsigned int flags, i, nr;

	nr = state_end(state, idx, end, STATE_OTHER) - idx;
	KUNIT_EXPECT_EQ_MSG(test, nr,
			    pgtable_kunit_folio_pte_batch_nr(folio, addr, ptep,
							     max_nr),
			    "%s: order %u, from entry %u, at most %u",
			    what, folio_order(folio), idx, max_nr);
	pgtable_kunit_tried++;

	for (flags = 0; flags < PGTABLE_KUNIT_BATCH_FLAGS; flags += step) {
		struct pgtable_kunit_batch batch;
		unsigned int want = 0, got = 0;
		bool copy;

		nr = state_end(state, idx, end, state_respected(flags)) - idx;
		for (i = idx + 1; i < idx + nr; i++)
			want |= state[i];
		want &= state_asked(flags);

		batch = pgtable_kunit_folio_pte_batch(folio, addr, ptep, max_nr,
						      flags);
		pgtable_kunit_tried++;
		copy = want ? pte_same(pte_unmerged(batch.pte),
				       pte_unmerged(first)) :
			      pte_val(batch.pte) == pte_val(first);
		if (PGTABLE_KUNIT_REPORTS_FIRST)
			want |= state[idx] & STATE_REPORTED;
		if (batch.write)
			got |= STATE_WRITE;
		if (batch.young)
			got |= STATE_YOUNG;
		if (batch.dirty)
			got |= STATE_DIRTY;
		if (batch.nr == nr && got == want && copy)
			continue;
		KUNIT_FAIL(test,
			   "%s: order %u, from entry %u, at most %u, flags %#x: nr %u, expected %u, reported %#x, expected %#x, copy %llx, first %llx",
			   what, folio_order(folio), idx, max_nr, flags,
			   batch.nr, nr, got, want,
			   (unsigned long long)pte_val(batch.pte),
			   (unsigned long long)pte_val(first));
		return false;
	}
	return true;
}

/*
 * The entry at @odd differs. Ask for a batch from the first entry, from the
 * entry before @odd, from @odd, and from the entry after @odd.
 */
static bool state_expect_odd(struct kunit *test, struct folio *folio,
			     const u8 *state, unsigned int odd, unsigned int end,
			     const char *what)
{
	const unsigned int from[] = { 0, odd ? odd - 1 : 0, odd, odd + 1 };
	unsigned int n = folio_nr_pages(folio), i;

	for (i = 0; i < ARRAY_SIZE(from); i++) {
		unsigned int max_nr = end - from[i];

		if (from[i] >= min(n, end))
			break;
		if (i)
			max_nr = min(max_nr, BATCH_LONG);
		if (!state_expect(test, folio, state, from[i], max_nr, what))
			return false;
	}
	return true;
}

static pte_t bit_special(pte_t pte)
{
	return pte_mkspecial(pte);
}

static pte_t bit_uffd(pte_t pte)
{
	return pgtable_kunit_mkuffd(pte);
}

static pte_t bit_protnone(pte_t pte)
{
	return batch_pte_prot(pte_pfn(pte), VM_NONE);
}

static pte_t bit_exec(pte_t pte)
{
	return batch_pte_prot(pte_pfn(pte), VM_READ | VM_WRITE | VM_EXEC);
}

/* Bits in which the entries of a table may differ. */
static const struct batch_bit {
	const char *desc;
	unsigned int state;
	pte_t (*make)(pte_t pte);
	bool read_only;			/* entries with the bit are never writable */
} batch_bits[] = {
	{ "writable", STATE_WRITE, NULL, true },
	{ "dirty", STATE_DIRTY },
	{ "soft-dirty", STATE_SOFT },
	{ "young", STATE_YOUNG },
	{ "special", STATE_OTHER, bit_special },
	{ "uffd-wp", STATE_OTHER, bit_uffd, true },
	{ "PROT_NONE", STATE_OTHER, bit_protnone, true },
	{ "executable", STATE_OTHER, bit_exec },
};

KUNIT_ARRAY_PARAM_DESC(batch_bit, batch_bits, desc);

/*
 * Entries of a batch have the same bits, except those that the caller ignores.
 * In this case only one entry has the bit, or only one entry lacks it. The case
 * tries each set of bits to respect. It tries each position of this entry in
 * folios of each order, also the first position. The entry ends the batch
 * unless the bit is ignored. If all entries have the bit, or all lack it, the
 * batch is the whole folio.
 */
static void folio_pte_batch_differing_bit(struct kunit *test)
{
	const struct batch_bit *bit = test->param_value;
	unsigned int rest = bit->read_only ? 0 : STATE_WRITE, lacks, order;
	struct pgtable_kunit_table *table = test->priv;
	u8 *state;

	if (pte_same(state_pte(0, rest | bit->state, bit->make),
		     state_pte(0, rest, bit->make)))
		kunit_skip(test, "no such bit in entries: %s", bit->desc);
	state = kunit_kzalloc(test, BATCH_PAGES_MAX, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, state);

	for (order = 1; order <= BATCH_ORDER_MAX; order++) {
		unsigned int n = 1U << order, odd;
		struct folio *pair[2];

		if (!batch_order_fits(order))
			break;
		pgtable_kunit_folio_alloc_pair(test, order, pair);

		for (lacks = 0; lacks <= 1; lacks++) {
			memset(state, lacks ? rest | bit->state : rest, n);
			state_map(table, pair[0], state, bit->make);

			/*
			 * At the last position, after the folio, no entry of
			 * the folio is odd.
			 */
			for (odd = 0; odd <= n; odd = batch_next(order, odd)) {
				pte_t old = table->pte[odd], new;

				if (odd < n) {
					state[odd] ^= bit->state;
					new = state_pte(folio_pfn(pair[0]) + odd,
							state[odd], bit->make);
					batch_replace(table, odd, new);
				}
				if (!state_expect_odd(test, pair[0], state, odd,
						      2 * n, bit->desc) ||
				    !pgtable_kunit_table_check(table, "%s at %u",
							       bit->desc, odd))
					return;
				if (odd < n) {
					state[odd] ^= bit->state;
					batch_replace(table, odd, old);
				}
			}
		}
	}
}

/*
 * The entries of a folio of four pages are writable, young and dirty in every
 * combination, and a batch begins at each entry. The report combines the bits
 * of all entries of the batch. In 6.12 the report leaves out the first entry.
 */
static void folio_pte_batch_all_states(struct kunit *test)
{
	struct pgtable_kunit_table *table = test->priv;
	const unsigned int bits = 3;
	struct folio *pair[2];
	unsigned int all, i, n;
	u8 state[4] = {};

	n = ARRAY_SIZE(state);
	pgtable_kunit_folio_alloc_pair(test, ilog2(n), pair);
	state_map(table, pair[0], state, NULL);

	for (all = 0; all < BIT(n * bits); all++) {
		for (i = 0; i < n; i++) {
			unsigned int new = (all >> i * bits) & STATE_REPORTED;

			if (state[i] == new)
				continue;
			state[i] = new;
			batch_replace(table, i,
				      state_pte(folio_pfn(pair[0]) + i, new,
						NULL));
		}
		for (i = 0; i < n; i++) {
			if (!state_expect(test, pair[0], state, i, 2 * n - i,
					  "all states"))
				return;
		}
		if (all % 128 == 127 &&
		    !pgtable_kunit_table_check(table, "all states"))
			return;
	}
}

/*
 * The report on ignored bits covers the entries of the batch and no others.
 * Only one entry of the folio has the bit. Entries that do not belong to the
 * batch have all bits: entries after the caller's limit, entries after the
 * folio, and one entry of the folio that ends the batch because it maps a wrong
 * page.
 *
 *	entries	|- - w - - *|* * *	w: writable, *: all bits
 *	batch	 <--------->		entry 5 maps the page of entry 4
 */
static void folio_pte_batch_reported_bits(struct kunit *test)
{
	static const struct {
		unsigned int state;
		const char *desc;
	} kinds[] = {
		{ STATE_WRITE, "writable" },
		{ STATE_YOUNG, "young" },
		{ STATE_DIRTY, "dirty" },
	};
	unsigned int order = batch_order(test), n = 1U << order, at, kind, how;
	struct pgtable_kunit_table *table = test->priv;
	struct folio *pair[2];
	u8 *state;

	pgtable_kunit_folio_alloc_pair(test, order, pair);
	state = kunit_kzalloc(test, n, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, state);

	for (at = 0; at < n; at = batch_next(order, at)) {
		for (kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
			memset(state, 0, n);
			state[at] = kinds[kind].state;
			state_map(table, pair[0], state, NULL);

			/*
			 * The batch ends at the end of the folio, or at a limit
			 * before or after the entry.
			 */
			for (how = 0; how < 3; how++) {
				unsigned int end = how ? at - 1 + how : 2 * n;

				if (!state_expect_odd(test, pair[0], state, at,
						      end, kinds[kind].desc))
					return;
			}
			/*
			 * The next entry maps a wrong page, so the batch ends
			 * there.
			 */
			if (at + 1 < n) {
				unsigned long pfn = folio_pfn(pair[0]) + at + 1;

				state[at + 1] = STATE_REPORTED | STATE_OTHER;
				batch_replace(table, at + 1,
					      state_pte(pfn - 1, STATE_REPORTED,
							NULL));
				if (!state_expect_odd(test, pair[0], state, at,
						      n, kinds[kind].desc))
					return;
			}
			if (!pgtable_kunit_table_check(table, "reported bits"))
				return;
		}
	}
}

/*
 * Bits of the hardware that depend on young, or on dirty and writable.
 * pte_young(), pte_dirty() and pte_write() do not read them. BIT_OF_NO_ACCESS
 * makes an entry inaccessible, but is not the write bit.
 */
#if defined(CONFIG_S390)
#define BIT_OF_YOUNG	_PAGE_INVALID
#define BIT_OF_OTHERS	_PAGE_PROTECT
#define BIT_OF_NO_ACCESS	0
#elif defined(CONFIG_UML)
#define BIT_OF_YOUNG	0
#define BIT_OF_OTHERS	0
#define BIT_OF_NO_ACCESS	_PAGE_PROTNONE
#else
#define BIT_OF_YOUNG	0
#define BIT_OF_OTHERS	0
#define BIT_OF_NO_ACCESS	0
#endif

/*
 * Shadow stacks of riscv are writable and not readable. When such an entry
 * loses the write permission, it gets the read permission.
 */
#if defined(CONFIG_RISCV) && defined(PAGE_SHADOWSTACK)
#define BIT_OF_READ	_PAGE_READ
#else
#define BIT_OF_READ	0
#endif

/*
 * May a batch continue over these two entries, which differ in one bit? It may
 * if the bit is the young bit, or a bit that the caller does not respect. The
 * answer comes from functions that read the bit. The kernel uses functions that
 * change the bit.
 */
static bool bit_ignored(pte_t pte, pte_t next, unsigned int flags)
{
	u64 bit = pte_val(pte) ^ pte_val(next);
	bool dirty = flags & PGTABLE_KUNIT_RESPECT_DIRTY;
	bool soft_dirty = flags & PGTABLE_KUNIT_RESPECT_SOFT_DIRTY;
	bool write = flags & PGTABLE_KUNIT_RESPECT_WRITE;
	bool says = false;

	/* UML sets its own bits in each entry that is written. */
	if (!bit)
		return true;
	if (bit & BIT_OF_NO_ACCESS)
		return false;
	if (bit & BIT_OF_YOUNG)
		return true;
	if (bit & BIT_OF_READ)
		return !write;
	if (bit & BIT_OF_OTHERS)
		return !dirty || !write;
	if (!pte_young(pte) != !pte_young(next))
		says = true;
	if (!pte_dirty(pte) != !pte_dirty(next)) {
		if (dirty)
			return false;
		says = true;
	}
	if (!pte_soft_dirty(pte) != !pte_soft_dirty(next)) {
		if (soft_dirty)
			return false;
		says = true;
	}
	if (!pte_write(pte) != !pte_write(next)) {
		if (write)
			return false;
		says = true;
	}
	return says;
}

/*
 * Ask for batches from entry @idx on. Entry @odd is @pte instead of @next. The
 * batches end there if the difference matters.
 */
static bool bit_expect(struct kunit *test, struct folio *folio, unsigned int idx,
		       unsigned int max_nr, unsigned int odd, pte_t pte,
		       pte_t next)
{
	unsigned int step = max_nr > BATCH_LONG ? PGTABLE_KUNIT_BATCH_FLAGS - 1 : 1;
	struct pgtable_kunit_table *table = test->priv;
	unsigned long addr = pgtable_kunit_table_addr(table, idx);
	unsigned int flags, want;

	for (flags = 0; flags < PGTABLE_KUNIT_BATCH_FLAGS; flags += step) {
		struct pgtable_kunit_batch batch;

		want = bit_ignored(pte, next, flags) ? max_nr : odd - idx;
		batch = pgtable_kunit_folio_pte_batch(folio, addr,
						      table->pte + idx, max_nr,
						      flags);
		pgtable_kunit_tried++;
		KUNIT_EXPECT_EQ_MSG(test, batch.nr, want,
				    "entry %u is %016llx, not %016llx: from entry %u, at most %u, flags %#x",
				    odd, (unsigned long long)pte_val(pte),
				    (unsigned long long)pte_val(next), idx,
				    max_nr, flags);
		if (batch.nr != want)
			return false;
	}
	return true;
}

/*
 * The kernel's own checks warn about a writable entry that userfaultfd
 * protects.
 */
static bool bit_refused(pte_t pte)
{
	return IS_ENABLED(CONFIG_PAGE_TABLE_CHECK) && pgtable_kunit_uffd(pte) &&
	       pte_write(pte);
}

/*
 * Each bit outside of the page frame number ends a batch where it changes,
 * unless the caller ignores it. This holds for bits with and without a name.
 * The bit changes at each position in turn. The batch begins at the first
 * entry, or one entry before the change. The case leaves out bits that make an
 * entry a part of a contiguous block.
 */
static void folio_pte_batch_each_bit(struct kunit *test)
{
	unsigned int order = batch_order(test), n = 1U << order, bit, odd;
	struct pgtable_kunit_table *table = test->priv;
	struct folio *pair[2];

	pgtable_kunit_folio_alloc_pair(test, order, pair);
	batch_map(table, 0, folio_pfn(pair[0]), 2 * n);

	for (bit = 0; bit < BITS_PER_LONG; bit++) {
		for (odd = 1; odd < n; odd = batch_next(order, odd)) {
			pte_t *ptep = table->pte + odd, next = *ptep;
			pte_t pte = __pte(pte_val(next) ^ BIT(bit));

			if (!pte_present(pte) || pte_pfn(pte) != pte_pfn(next) ||
			    pte_batch_hint(ptep, pte) > 1 ||
			    bit_refused(pte))
				break;
			batch_replace(table, odd, pte);
			pte = ptep_get(ptep);
			if (!bit_expect(test, pair[0], 0, n, odd, pte, next) ||
			    !bit_expect(test, pair[0], odd - 1,
					min(n - odd + 1, BATCH_LONG), odd, pte,
					next) ||
			    !pgtable_kunit_table_check(table, "bit %u of entry %u",
						       bit, odd))
				return;
			batch_replace(table, odd, next);
		}
	}
}

static struct kunit_case folio_pte_batch_bits_cases[] = {
	KUNIT_CASE_PARAM(folio_pte_batch_differing_bit, batch_bit_gen_params),
	KUNIT_CASE(folio_pte_batch_all_states),
	KUNIT_CASE_PARAM(folio_pte_batch_reported_bits, batch_order_gen_params),
	KUNIT_CASE_PARAM(folio_pte_batch_each_bit, batch_order_gen_params),
	{}
};

static struct kunit_suite folio_pte_batch_bits_suite = {
	.name = "folio_pte_batch_bits",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_table_init,
	.exit = pgtable_kunit_exit,
	.test_cases = folio_pte_batch_bits_cases,
};

kunit_test_suite(folio_pte_batch_bits_suite);

MODULE_DESCRIPTION("KUnit tests for the bits of folio_pte_batch()");
MODULE_LICENSE("GPL");
