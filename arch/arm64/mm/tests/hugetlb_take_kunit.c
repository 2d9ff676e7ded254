// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of arm64's hugetlbpage.c that read entries, or clear and return
 * them.
 *
 * Hardware sets accessed and dirty in one entry of a contiguous block. So a
 * function that reads a page, or takes it (clears and returns it), has to read
 * all of its entries. A page that is not present has the same number of
 * entries, and its first entry describes it: in such entries, the accessed and
 * dirty bits mean something else.
 *
 * The fixture is the same as in hugetlb_entry. In one case hardware accesses the
 * page during the call, before each step of the function. Not covered: functions
 * that write entries (hugetlb_entry), sequences of calls (hugetlb_walk), several
 * CPUs at once.
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

/**
 * struct take_op - a function that takes a page, or makes it read-only
 * @name: its name
 * @call: the function; returns the page that it took, or an empty entry
 * @flushes: it uses break-before-make for a block; a function that only takes a
 *   page does so for any page
 * @takes: the entries are empty afterwards
 */
struct take_op {
	const char *name;
	pte_t (*call)(struct huge_ctx *h);
	bool flushes;
	bool takes;
};

static pte_t take_get_and_clear(struct huge_ctx *h)
{
	return huge_ops.get_and_clear(h->table->mm, huge_addr(h), huge_ptep(h),
				      h->size->size);
}

static pte_t take_clear_flush(struct huge_ctx *h)
{
	return huge_ops.clear_flush(h->vma, huge_addr(h), huge_ptep(h));
}

static pte_t take_prot_start(struct huge_ctx *h)
{
	return huge_ops.prot_start(h->vma, huge_addr(h), huge_ptep(h));
}

static pte_t take_wrprotect(struct huge_ctx *h)
{
	huge_ops.wrprotect(h->table->mm, huge_addr(h), huge_ptep(h));
	return __pte(0);
}

static pte_t take_access_flags(struct huge_ctx *h)
{
	const struct huge_state young = {
		HUGE_WRITE, HUGE_PAGE, 0, HUGE_NOWHERE,
	};

	huge_ops.access_flags(h->vma, huge_addr(h), huge_ptep(h),
			      huge_pte(h, &young, 0), 0);
	return __pte(0);
}

static const struct take_op take_ops[] = {
	{ "huge_ptep_get_and_clear", take_get_and_clear, false, true },
	{ "huge_ptep_clear_flush", take_clear_flush, true, true },
	{ "huge_ptep_modify_prot_start", take_prot_start, false, true },
	{ "huge_ptep_set_wrprotect", take_wrprotect, true, false },
	{ "huge_ptep_set_access_flags", take_access_flags, true, false },
};

/* The entry that describes the whole page. */
static pte_t merged(struct huge_ctx *h, const struct huge_state *state)
{
	struct huge_state first = *state;

	first.young = huge_young(state) ? 0 : HUGE_NOWHERE;
	first.dirty = huge_dirty(state) ? 0 : HUGE_NOWHERE;
	return huge_pte(h, &first, 0);
}

static bool take_one(struct huge_ctx *h, const struct take_op *op,
		     const struct huge_state *old)
{
	bool flushes = op->flushes || (*huge_ops.erratum &&
				       op->call == take_prot_start &&
				       old->kind == HUGE_EXEC);
	char desc[128];
	unsigned int i;
	pte_t taken;
	bool ok;

	snprintf(desc, sizeof(desc), "%s, entry %u, %s", op->name, h->first,
		 huge_desc(h, old));
	huge_fill(h, old);
	huge_start(h);
	taken = op->call(h);
	huge_stop(h);
	ok = huge_plain(taken) == huge_plain(merged(h, old));
	KUNIT_EXPECT_EQ_MSG(h->test, huge_plain(taken), huge_plain(merged(h, old)),
			    "%s: taken", desc);
	for (i = 0; i < h->size->nr; i++)
		h->table->want[h->first + i] = __pte(0);
	ok &= huge_check(h, "%s", desc);
	/* The older kernel invalidates no entry that the CPU cannot use. */
	if (flushes && (PGTABLE_KUNIT_HUGE_EXACT || huge_cont(h) ||
			huge_valid(old->kind)))
		return huge_check_flush(h, desc) & ok;
	return huge_check_quiet(h, desc) & ok;
}

/* Try all pairs of a young and a dirty place. Returns false after a failure. */
static bool take_places(struct huge_ctx *h, const struct take_op *op,
			enum huge_kind kind, unsigned int *nr)
{
	struct huge_state old = { .kind = kind, .page = HUGE_PAGE };

	for (old.young = 0; old.young <= HUGE_NOWHERE;
	     old.young = huge_next_place(h, old.young)) {
		for (old.dirty = 0; old.dirty <= HUGE_NOWHERE;
		     old.dirty = huge_next_place(h, old.dirty)) {
			if (!take_one(h, op, &old))
				return false;
			(*nr)++;
		}
	}
	return true;
}

/*
 * A function that takes a present page clears all of its entries. It returns
 * the first entry, with the accessed and dirty bits of all entries. Only
 * huge_ptep_clear_flush() invalidates, once.
 */
static void huge_take_gathers(struct kunit *test)
{
	static const enum huge_kind kinds[] = {
		HUGE_WRITE, HUGE_READ, HUGE_PROT_NONE, HUGE_EXEC,
	};
	struct huge_ctx *h = huge_ctx_alloc(test);
	unsigned int op, i, nr = 0;

	for (op = 0; take_ops[op].takes && op < ARRAY_SIZE(take_ops); op++) {
		for (i = 0; i < 2 * ARRAY_SIZE(kinds); i++) {
			huge_place(h, i % 2);
			if (!take_places(h, take_ops + op, kinds[i / 2], &nr))
				break;
		}
	}
	PGTABLE_KUNIT_DID(test, nr, "pages taken");
}

/*
 * huge_ptep_get_and_clear() and huge_ptep_modify_prot_start() clear all entries
 * of a page that is not present, and return the first entry unchanged. Before
 * commit 49c87f767774 the size came from the folio of the entry, so the other
 * entries stayed. In one kind of entry all bits of the offset are set. In a
 * present entry some of these bits would mean dirty and contiguous. In this
 * case such an entry follows another entry.
 */
static void huge_take_nonpresent(struct kunit *test)
{
	struct huge_ctx *h = huge_ctx_alloc(test);
	struct huge_state bits = { HUGE_SWAP_BITS, HUGE_PAGE, HUGE_NOWHERE,
				   HUGE_NOWHERE };
	unsigned int op, i, k, nr = 0;
	enum huge_kind kind;

	for (op = 0; op < ARRAY_SIZE(take_ops); op++) {
		if (!take_ops[op].takes || take_ops[op].flushes)
			continue;
		for (i = 0; i < 2 * (HUGE_KINDS - HUGE_SWAP); i++) {
			struct huge_state old = bits;
			pte_t taken;

			kind = HUGE_SWAP + i / 2;
			huge_place(h, i % 2);
			old.kind = kind;
			huge_fill(h, &bits);
			pgtable_kunit_table_set(h->table, h->first,
						huge_pte(h, &old, 0));
			huge_start(h);
			taken = take_ops[op].call(h);
			huge_stop(h);
			KUNIT_EXPECT_EQ_MSG(test, pte_val(taken),
					    pte_val(huge_pte(h, &old, 0)),
					    "%s, %s: taken", take_ops[op].name,
					    huge_desc(h, &old));
			for (k = 0; k < h->size->nr; k++)
				h->table->want[h->first + k] = __pte(0);
			if (!huge_check(h, "%s, %s", take_ops[op].name,
					huge_desc(h, &old)) ||
			    !huge_check_quiet(h, take_ops[op].name))
				return;
			nr++;
		}
	}
	PGTABLE_KUNIT_DID(test, nr, "pages taken");
}

/*
 * On a CPU with erratum 2645198 an executable page may become non-executable
 * only after an invalidation, which huge_ptep_modify_prot_start() makes. For
 * other pages it makes no invalidation.
 */
static void huge_modify_prot_start_erratum(struct kunit *test)
{
	struct huge_ctx *h = huge_ctx_alloc(test);
	unsigned int i, nr = 0;

	*huge_ops.erratum = true;
	for (i = 0; i < 4; i++) {
		huge_place(h, i % 2);
		if (!take_places(h, take_ops + 2, i < 2 ? HUGE_EXEC : HUGE_WRITE,
				 &nr))
			break;
	}
	*huge_ops.erratum = false;
	PGTABLE_KUNIT_DID(test, nr, "pages taken");
}

/*
 * huge_ptep_get() returns the first entry, with the accessed and dirty bits of
 * all entries, and writes nothing. If the first entry is not present, the
 * function returns it unchanged, and reads no other entry. The address may be
 * any address in the page: pagemap gives the address at which its range starts.
 */
static void huge_ptep_get_any_address(struct kunit *test)
{
	struct huge_ctx *h = huge_ctx_alloc(test);
	unsigned long at[] = {
		0, PAGE_SIZE, h->size->step, h->size->size / 2,
		h->size->size - PAGE_SIZE,
	};
	struct huge_state old = { .page = HUGE_PAGE };
	unsigned int i, nr = 0, reads;
	pte_t want, is;

	for (i = 0; i < 2 * HUGE_KINDS * ARRAY_SIZE(at); i++) {
		unsigned long addr;

		huge_place(h, i % 2);
		old.kind = i / 2 % HUGE_KINDS;
		addr = huge_addr(h) + at[i / 2 / HUGE_KINDS] % h->size->size;
		for (old.young = 0; old.young <= HUGE_NOWHERE;
		     old.young = huge_next_place(h, old.young)) {
			old.dirty = old.young ? 0 : h->size->nr - 1;
			huge_fill(h, &old);
			want = merged(h, &old);
			huge_start(h);
			is = huge_ops.get(h->table->mm, addr, huge_ptep(h));
			huge_stop(h);
			KUNIT_EXPECT_EQ_MSG(test, huge_plain(is), huge_plain(want),
					    "%s, address %lx", huge_desc(h, &old),
					    addr - huge_addr(h));
			reads = huge_present(old.kind) && huge_cont(h) ?
				h->size->nr + 1 : 1;
			KUNIT_EXPECT_EQ_MSG(test, h->rec->nr, reads, "%s: steps",
					    huge_desc(h, &old));
			if (!huge_check(h, "%s", huge_desc(h, &old)) ||
			    huge_plain(is) != huge_plain(want) ||
			    h->rec->nr != reads)
				return;
			nr++;
		}
	}
	PGTABLE_KUNIT_DID(test, nr, "pages read");
}

/*
 * Make one access of the hardware during a call. Returns false if the call lost
 * the access.
 */
static bool race_one(struct huge_ctx *h, const struct take_op *op,
		     unsigned int at, unsigned int entry, bool write)
{
	const struct huge_state old = {
		HUGE_WRITE, HUGE_PAGE, HUGE_NOWHERE, HUGE_NOWHERE,
	};
	bool young, dirty;
	pte_t taken;

	huge_fill(h, &old);
	h->at = at;
	h->entry = entry;
	h->write = write;
	huge_start(h);
	taken = op->call(h);
	huge_stop(h);
	if (!h->acted)
		return true;
	if (!op->takes)
		taken = huge_ops.get(h->table->mm, huge_addr(h), huge_ptep(h));
	young = pte_young(taken);
	dirty = !write || pte_dirty(taken);
	KUNIT_EXPECT_TRUE_MSG(h->test, young && dirty,
			      "%s: loses a %s in entry %u before step %u",
			      op->name, write ? "write" : "read", entry, at);
	return young && dirty;
}

/*
 * Make accesses to one entry, around the steps in which a function may use it:
 * a function may access all entries up to four times. Returns how many accesses
 * came before the function took the entry.
 */
static unsigned int race_entry(struct huge_ctx *h, const struct take_op *op,
			       unsigned int entry)
{
	unsigned int round, d, write, acted = 0;

	for (round = 0; round < 4; round++) {
		for (d = 0; d < 6; d++) {
			unsigned int at = round * h->size->nr + entry + d;

			for (write = 0; write < 2; write++) {
				if (!race_one(h, op, at, entry, write))
					return acted;
				acted += h->acted;
			}
		}
	}
	return acted;
}

/*
 * Hardware reads or writes the page while a function works on it. The entry that
 * it uses becomes young, or young and dirty. If this happens before a function
 * has taken this entry, the result must be young or dirty. The entry is the
 * first, second, middle or last, and the access comes right before each step on
 * it.
 */
static void huge_take_races_hardware(struct kunit *test)
{
	struct huge_ctx *h = huge_ctx_alloc(test);
	unsigned int op, entry, nr = 0;

	for (op = 0; op < ARRAY_SIZE(take_ops); op++) {
		for (entry = 0; entry < h->size->nr; entry = huge_next_place(h, entry)) {
			unsigned int acted = race_entry(h, take_ops + op, entry);

			KUNIT_EXPECT_GT_MSG(test, acted, 0, "%s: no access",
					    take_ops[op].name);
			nr += acted;
		}
	}
	PGTABLE_KUNIT_DID(test, nr, "accesses during a call");
}

static struct kunit_case hugetlb_take_cases[] = {
	KUNIT_CASE_PARAM(huge_take_gathers, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_take_nonpresent, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_modify_prot_start_erratum, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_ptep_get_any_address, huge_sizes_gen_params),
	KUNIT_CASE_PARAM(huge_take_races_hardware, huge_sizes_gen_params),
	{}
};

static struct kunit_suite hugetlb_take_suite = {
	.name = "hugetlb_take",
	.suite_init = pgtable_kunit_suite_init,
	.init = pgtable_kunit_init,
	.test_cases = hugetlb_take_cases,
};

kunit_test_suite(hugetlb_take_suite);

MODULE_DESCRIPTION("KUnit tests for arm64 functions that read and take entries of huge pages");
MODULE_LICENSE("GPL");
