// SPDX-License-Identifier: GPL-2.0
/*
 * Is a folio mapped by one mm, or by several? Tests of the rmap functions.
 *
 * Page faults, fork and unmapping call these functions. The cases call them
 * with real mms and real folios, but without page tables. They check the
 * mapcounts, and the answer that the kernel derives from them. Newer kernels
 * know owners. Older kernels guess from mapcounts, and their guess must be the
 * documented one, with its errors. A kernel without huge pages considers all
 * large folios shared. So the expectation depends on the kernel.
 *
 * Not covered: statistics and partly mapped folios (folio_page_mapcount),
 * callers that use the answer, folios that have only a mapcount
 * (folio_mapcount).
 *
 *   ./tools/testing/kunit/kunit.py run --arch=arm64 --kunitconfig=mm/tests \
 *	'folio_mapped_rmap'
 *
 * For another random sequence: --kernel_args folio_mapped_rmap_kunit.seed=N.
 * Each run prints its seed.
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/rmap.h>

#include "folio_mapped.h"

static ulong seed;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "seed of the walk, 0 for another seed at each boot");

/* For one page. In older kernels the function does not take the child's VMA. */
#ifdef PGTABLE_KUNIT_HAS_DUP_RMAP_VMA
#define rmap_dup_file_pte		folio_dup_file_rmap_pte
#define rmap_dup_anon_pte		folio_try_dup_anon_rmap_pte
#else
#define rmap_dup_file_pte(folio, page, dst) \
	((void)(dst), folio_dup_file_rmap_pte(folio, page))
#define rmap_dup_anon_pte(folio, page, dst, src) \
	((void)(dst), folio_try_dup_anon_rmap_pte(folio, page, src))
#endif

/* Steps of each random walk. */
#define STEPS		20000

/* Pages of a folio that are checked one by one. */
#define PAGES		16

/**
 * struct rmap_folio - a folio, and how often each of its pages is mapped
 * @folio: the folio
 * @model: the mms that map it
 * @page: mappings of each page by each mm; for larger folios only of the first
 * pages
 * @entire: mappings of the whole folio, by mm
 */
struct rmap_folio {
	struct folio *folio;
	struct mapped_model model;
	int page[MAPPED_MMS][PAGES];
	int entire[MAPPED_MMS];
};

static void rmap_ptes(struct kunit *test, struct rmap_folio *f, int mm, int first,
		      int nr, int times)
{
	struct mapped_mms *mms = test->priv;
	struct page *page = folio_page(f->folio, first);
	int i;

	mapped_lock();
	if (times > 0)
		folio_add_file_rmap_ptes(f->folio, page, nr, mms->vma[mm]);
	else
		folio_remove_rmap_ptes(f->folio, page, nr, mms->vma[mm]);
	mapped_unlock();
	for (i = first; i < min(first + nr, PAGES); i++)
		f->page[mm][i] += times;
	mapped_model_change(&f->model, mm, times * nr);
}

static void rmap_pmd(struct kunit *test, struct rmap_folio *f, int mm, int times)
{
	struct mapped_mms *mms = test->priv;

	mapped_lock();
	if (times > 0)
		folio_add_file_rmap_pmd(f->folio, &f->folio->page, mms->vma[mm]);
	else
		folio_remove_rmap_pmd(f->folio, &f->folio->page, mms->vma[mm]);
	mapped_unlock();
	f->entire[mm] += times;
	mapped_model_change(&f->model, mm, times);
}

/* The sum of @counts over all mms, for one page or for the whole folio. */
static int rmap_page_total(const struct rmap_folio *f, int page)
{
	int mm, total = 0;

	for (mm = 0; mm < MAPPED_MMS; mm++)
		total += f->page[mm][page];
	return total;
}

static int rmap_entire_total(const struct rmap_folio *f)
{
	int mm, total = 0;

	for (mm = 0; mm < MAPPED_MMS; mm++)
		total += f->entire[mm];
	return total;
}

/*
 * May a kernel that has to guess give this answer? Its documentation says when
 * the guess may be wrong, and this function applies the documentation to the
 * model. A shared folio may look exclusive only if an mm maps only a part of it
 * and there are no more mappings than pages. An exclusive folio may look shared
 * only if the mm maps a page twice.
 */
static bool rmap_guess_allowed(const struct rmap_folio *f, bool said)
{
	bool shared = mapped_owners(&f->model) > 1, part = false, twice = false;
	int pages = min_t(int, PAGES, folio_nr_pages(f->folio)), mm, i;

	if (PGTABLE_KUNIT_SHARED == PGTABLE_KUNIT_SHARED_ASSUMED)
		return said;
	for (mm = 0; mm < MAPPED_MMS; mm++) {
		for (i = 0; i < pages && f->model.mapped[mm]; i++) {
			part |= !f->page[mm][i] && !f->entire[mm];
			twice |= f->page[mm][i] + f->entire[mm] > 1;
		}
	}
	if (said == shared)
		return true;
	return said ? twice :
		      part && mapped_total(&f->model) <= folio_nr_pages(f->folio);
}

/*
 * The exact rule by which a kernel guesses. If a kernel has another rule, the
 * cases notice this.
 */
static bool rmap_guess(const struct rmap_folio *f)
{
	int total = mapped_total(&f->model);

	if (PGTABLE_KUNIT_SHARED == PGTABLE_KUNIT_SHARED_ASSUMED)
		return true;
	if (total <= 1)
		return false;
	if (rmap_entire_total(f) || total > folio_nr_pages(f->folio))
		return true;
	return rmap_page_total(f, 0) > 1;
}

/* Mapcounts are the sums of all mappings, and the answer is right. */
static bool rmap_check(struct kunit *test, struct rmap_folio *f, const char *what)
{
	struct folio *folio = f->folio;
	int total = mapped_total(&f->model), i, pages;
	bool right = true, said;

	pgtable_kunit_tried++;
	right &= folio_mapcount(folio) == total;
	right &= folio_mapped(folio) == (total > 0);
	right &= folio_entire_mapcount(folio) == rmap_entire_total(f);
	pages = PGTABLE_KUNIT_PAGE_MAPCOUNT ? min_t(int, PAGES, folio_nr_pages(folio)) :
					      0;
	for (i = 0; i < pages; i++)
		right &= atomic_read(&folio_page(folio, i)->_mapcount) + 1 ==
			 rmap_page_total(f, i);
	if (!right) {
		KUNIT_FAIL(test,
			   "order %u, %s: mapcount %d (expected %d), entire %d (%d), page 0 %d (%d)",
			   folio_order(folio), what, folio_mapcount(folio), total,
			   folio_entire_mapcount(folio), rmap_entire_total(f),
			   atomic_read(&folio->_mapcount) + 1,
			   rmap_page_total(f, 0));
		return false;
	}

	if (PGTABLE_KUNIT_SHARED == PGTABLE_KUNIT_SHARED_TRACKED)
		return mapped_check(test, &f->model, folio, "%s", what);
	said = pgtable_kunit_mapped_shared(folio);
	if (said == rmap_guess(f) && rmap_guess_allowed(f, said))
		return true;
	KUNIT_FAIL(test,
		   "order %u, %s: shared is %d; mapcount %d, entire %d, page 0 %d, %d mms",
		   folio_order(folio), what, pgtable_kunit_mapped_shared(folio),
		   total, rmap_entire_total(f), rmap_page_total(f, 0),
		   mapped_owners(&f->model));
	return false;
}

/* Unmap all pages that are mapped. */
static void rmap_unmap_all(struct kunit *test, struct rmap_folio *f)
{
	int mm, i;

	for (mm = 0; mm < MAPPED_MMS; mm++) {
		while (f->entire[mm])
			rmap_pmd(test, f, mm, -1);
		for (i = 0; i < PAGES; i++) {
			while (f->page[mm][i])
				rmap_ptes(test, f, mm, i, 1, -1);
		}
	}
}

static void rmap_folio_init(struct kunit *test, struct rmap_folio *f,
			    unsigned int order)
{
	memset(f, 0, sizeof(*f));
	if (order > MAPPED_ORDER_MAX)
		kunit_skip(test, "a huge page is too large for this machine");
	f->folio = pgtable_kunit_folio_alloc(test, order);
}

static void rmap_needs_pmd(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		kunit_skip(test, "no CONFIG_TRANSPARENT_HUGEPAGE");
}

/*
 * Each of four pages is mapped by A, by B, by both or by no mm: all 256 ways. A
 * kernel that knows owners is right each time. A kernel that estimates says
 * "not shared" if there is one mapping, and "shared" if there are more mappings
 * than pages. In all other cases page 0 decides. A kernel that could know the
 * owners, but is configured not to track them, says "shared".
 */
static void folio_mapped_shared_every_page(struct kunit *test)
{
	struct rmap_folio f;
	unsigned int way, i, mm;

	rmap_folio_init(test, &f, 2);
	for (way = 0; way < 256; way++) {
		char what[32];

		snprintf(what, sizeof(what), "pages of A and B as in %02x", way);
		for (mm = 0; mm < 2; mm++) {
			for (i = 0; i < 4; i++) {
				if (!(way >> (2 * i + mm) & 1))
					continue;
				rmap_ptes(test, &f, mm, i, 1, 1);
				if (!rmap_check(test, &f, what))
					return;
			}
		}
		rmap_unmap_all(test, &f);
		if (!rmap_check(test, &f, "unmapped"))
			return;
	}
}

/*
 * A maps page 0 and B maps all others, so there are no more mappings than
 * pages. A kernel that guesses says "not shared", which is wrong but
 * documented. A kernel that knows owners says "shared".
 */
static void folio_mapped_shared_not_page_0(struct kunit *test)
{
	bool want = PGTABLE_KUNIT_SHARED != PGTABLE_KUNIT_SHARED_GUESSED;
	struct rmap_folio f;

	rmap_folio_init(test, &f, 4);
	rmap_ptes(test, &f, 0, 0, 1, 1);
	rmap_ptes(test, &f, 1, 1, PAGES - 1, 1);
	KUNIT_EXPECT_EQ(test, folio_mapcount(f.folio), PAGES);
	KUNIT_EXPECT_EQ(test, pgtable_kunit_mapped_shared(f.folio), want);
	rmap_check(test, &f, "A maps page 0, B the others");

	/*
	 * With one mapping more than there are pages, every kernel says
	 * "shared".
	 */
	rmap_ptes(test, &f, 1, 1, 1, 1);
	KUNIT_EXPECT_TRUE(test, pgtable_kunit_mapped_shared(f.folio));
	rmap_check(test, &f, "and B one page twice");
	rmap_unmap_all(test, &f);
	rmap_check(test, &f, "unmapped");
}

static const unsigned int rmap_orders[] = { 1, 2, 4, PMD_FOLIO_ORDER };

static void rmap_order_desc(const unsigned int *order, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", *order);
}

KUNIT_ARRAY_PARAM(rmap_order, rmap_orders, rmap_order_desc);

/*
 * Random mms map and unmap random runs of pages, or the whole folio at once.
 * After every step the mapcount is the sum of the mapcounts of the pages and of
 * the whole folio, and the answer is right. The largest folio is only checked
 * in its first 16 pages.
 */
static void folio_mapcount_is_sum(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value, step;
	struct rmap_folio f;
	struct rnd_state rnd;
	int pages;

	rmap_folio_init(test, &f, order);
	pages = min_t(int, PAGES, folio_nr_pages(f.folio));
	prandom_seed_state(&rnd, seed + order);
	for (step = 0; step < STEPS; step++) {
		int mm = prandom_u32_state(&rnd) % 4;
		int first = prandom_u32_state(&rnd) % pages;
		int nr = 1 + prandom_u32_state(&rnd) % (pages - first), i;
		u32 draw = prandom_u32_state(&rnd);
		bool pmd = order == PMD_FOLIO_ORDER && !(draw & 6) &&
			   IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE);

		if (pmd) {
			if (draw & 1 && f.entire[mm])
				rmap_pmd(test, &f, mm, -1);
			else if (f.entire[mm] < 3)
				rmap_pmd(test, &f, mm, 1);
		} else if (draw & 1) {
			/* Unmap only the pages of the run that are mapped. */
			for (i = 0; i < nr && f.page[mm][first + i]; i++)
				;
			if (i)
				rmap_ptes(test, &f, mm, first, i, -1);
		} else {
			for (i = 0; i < nr && f.page[mm][first + i] < 3; i++)
				;
			if (i)
				rmap_ptes(test, &f, mm, first, i, 1);
		}
		if (!rmap_check(test, &f, "random step")) {
			kunit_err(test, "seed %lu, step %u", seed, step);
			break;
		}
		/* From time to time no mm maps the folio. */
		if (draw >> 24 == 0) {
			rmap_unmap_all(test, &f);
			rmap_check(test, &f, "unmapped");
		}
	}
	rmap_unmap_all(test, &f);
	rmap_check(test, &f, "unmapped");
}

/*
 * Fork: first A alone maps a new anonymous folio. A child then maps as many
 * pages. It maps the last page with the function for one page. It unmaps page
 * by page while a grandchild comes and goes. Each step matches the model. At
 * the end only A maps the folio.
 */
static void folio_try_dup_anon_rmap_fork(struct kunit *test)
{
	struct mapped_mms *mms = test->priv;
	struct rmap_folio f;
	int i, mm;

	rmap_folio_init(test, &f, 4);
	mapped_new_anon(mms, f.folio, RMAP_EXCLUSIVE);
	mapped_model_change(&f.model, 0, PAGES);
	for (i = 0; i < PAGES; i++)
		f.page[0][i]++;
	rmap_check(test, &f, "new");

	for (mm = 1; mm <= 2; mm++) {
		int nr = mm == 1 ? PAGES : PAGES / 2;

		mapped_fork_begin(mms, mm - 1);
		KUNIT_EXPECT_EQ(test, 0,
				pgtable_kunit_dup_anon_rmap(f.folio, &f.folio->page,
							    nr - 1, mms->vma[mm],
							    mms->vma[mm - 1]));
		KUNIT_EXPECT_EQ(test, 0,
				rmap_dup_anon_pte(f.folio, folio_page(f.folio, nr - 1),
						  mms->vma[mm], mms->vma[mm - 1]));
		mapped_fork_end(mms, mm - 1);
		for (i = 0; i < nr; i++) {
			f.page[mm][i]++;
			KUNIT_EXPECT_FALSE(test,
					   PageAnonExclusive(folio_page(f.folio, i)));
		}
		mapped_model_change(&f.model, mm, nr);
		rmap_check(test, &f, "fork");
	}
	for (i = 0; i < PAGES; i++) {
		rmap_ptes(test, &f, 1, i, 1, -1);
		rmap_check(test, &f, "the child unmaps a page");
		if (i == PAGES / 2) {
			rmap_ptes(test, &f, 2, 0, PAGES / 2, -1);
			rmap_check(test, &f, "the grandchild unmaps all");
		}
	}
	if (PGTABLE_KUNIT_SHARED != PGTABLE_KUNIT_SHARED_ASSUMED)
		KUNIT_EXPECT_FALSE(test, pgtable_kunit_mapped_shared(f.folio));

	rmap_ptes(test, &f, 0, 0, PAGES, -1);
	rmap_check(test, &f, "unmapped");
}

/*
 * Fork of a file mapping: the child gets the same number of mappings. The
 * function for one page makes the last one.
 */
static void folio_dup_file_rmap_fork(struct kunit *test)
{
	struct mapped_mms *mms = test->priv;
	struct rmap_folio f;
	int i;

	rmap_folio_init(test, &f, 4);
	rmap_ptes(test, &f, 0, 2, 5, 1);
	rmap_check(test, &f, "A maps 5 pages");
	mapped_lock();
	pgtable_kunit_dup_file_rmap(f.folio, folio_page(f.folio, 3), 3, mms->vma[1]);
	rmap_dup_file_pte(f.folio, folio_page(f.folio, 6), mms->vma[1]);
	mapped_unlock();
	for (i = 3; i < 7; i++)
		f.page[1][i]++;
	mapped_model_change(&f.model, 1, 4);
	rmap_check(test, &f, "and so does its child, 4 of them");
	rmap_ptes(test, &f, 0, 2, 5, -1);
	rmap_check(test, &f, "A unmaps them");
	rmap_unmap_all(test, &f);
	rmap_check(test, &f, "unmapped");
}

/*
 * A PMD of @mm maps the folio. Map it page by page, as the split of a PMD does.
 */
static void rmap_remap(struct kunit *test, struct rmap_folio *f, int mm)
{
	struct mapped_mms *mms = test->priv;
	int nr = folio_nr_pages(f->folio), i;

	mapped_lock();
	folio_add_anon_rmap_ptes(f->folio, &f->folio->page, nr, mms->vma[mm],
				 mms->vma[mm]->vm_start, RMAP_NONE);
	mapped_unlock();
	for (i = 0; i < PAGES; i++)
		f->page[mm][i]++;
	mapped_model_change(&f->model, mm, nr);
	rmap_check(test, f, "mapped by a PMD and by PTEs");
	rmap_pmd(test, f, mm, -1);
	rmap_check(test, f, "mapped by PTEs");
}

/*
 * A huge page is mapped once by its PMD. After PTEs have replaced the PMD, it
 * is mapped as often as it has pages. In between it has one mapping more, but
 * all mappings belong to one mm. A kernel that knows owners says "not shared"
 * at each step.
 */
static void folio_mapcount_pmd_to_ptes(struct kunit *test)
{
	bool tracked = PGTABLE_KUNIT_SHARED == PGTABLE_KUNIT_SHARED_TRACKED;
	struct mapped_mms *mms = test->priv;
	struct rmap_folio f;
	int nr;

	rmap_needs_pmd(test);
	rmap_folio_init(test, &f, PMD_FOLIO_ORDER);
	nr = folio_nr_pages(f.folio);
	mapped_new_anon(mms, f.folio, RMAP_NONE);
	f.entire[0]++;
	mapped_model_change(&f.model, 0, 1);
	rmap_check(test, &f, "new");
	KUNIT_EXPECT_FALSE(test, pgtable_kunit_mapped_shared(f.folio));

	/* Two processes map the huge page by a PMD. */
	mapped_fork_begin(mms, 0);
	KUNIT_EXPECT_EQ(test, 0,
			pgtable_kunit_dup_anon_rmap_pmd(f.folio, mms->vma[1],
							mms->vma[0]));
	mapped_fork_end(mms, 0);
	f.entire[1]++;
	mapped_model_change(&f.model, 1, 1);
	rmap_check(test, &f, "two PMDs");
	KUNIT_EXPECT_TRUE(test, pgtable_kunit_mapped_shared(f.folio));
	rmap_pmd(test, &f, 1, -1);
	rmap_check(test, &f, "one PMD");
	KUNIT_EXPECT_FALSE(test, pgtable_kunit_mapped_shared(f.folio));

	rmap_remap(test, &f, 0);
	if (tracked)
		KUNIT_EXPECT_FALSE(test, pgtable_kunit_mapped_shared(f.folio));
	KUNIT_EXPECT_EQ(test, folio_mapcount(f.folio), nr);

	/*
	 * Unmap all at once: the kernel would queue a partly mapped folio for a
	 * split.
	 */
	rmap_ptes(test, &f, 0, 0, nr, -1);
	rmap_check(test, &f, "unmapped");
	KUNIT_EXPECT_FALSE(test, folio_mapped(f.folio));
}

/*
 * folio_dup_file_rmap_pmd() duplicates a mapping of the whole folio, and must
 * count one more mapping of the whole folio. Known issue 6: it counts one more
 * mapping of each page instead. No caller exists.
 */
static void folio_dup_file_rmap_pmd_entire(struct kunit *test)
{
	struct mapped_mms *mms = test->priv;
	struct rmap_folio f;
	int nr, entire, mapcount;

	rmap_needs_pmd(test);
	rmap_folio_init(test, &f, PMD_FOLIO_ORDER);
	nr = folio_nr_pages(f.folio);
	rmap_pmd(test, &f, 0, 1);
	mapped_lock();
	pgtable_kunit_dup_file_rmap_pmd(f.folio, mms->vma[1]);
	entire = folio_entire_mapcount(f.folio);
	mapcount = folio_mapcount(f.folio);
	if (mapcount == nr + 1)
		folio_remove_rmap_ptes(f.folio, &f.folio->page, nr, mms->vma[1]);
	else
		folio_remove_rmap_pmd(f.folio, &f.folio->page, mms->vma[1]);
	/* The removal subtracted pages that it had not added. */
	if (mapcount == nr + 1 && PGTABLE_KUNIT_PAGE_MAPCOUNT)
		atomic_add(nr, &f.folio->_nr_pages_mapped);
	mapped_unlock();
	rmap_pmd(test, &f, 0, -1);
	KUNIT_EXPECT_FALSE(test, folio_mapped(f.folio));
	pgtable_kunit_tried++;

	if (entire == 1 && mapcount == nr + 1) {
		pgtable_kunit_known_issue(test, 6,
					  "entire mapcount %d, mapcount %d", entire,
					  mapcount);
		return;
	}
	KUNIT_EXPECT_EQ(test, entire, 2);
	KUNIT_EXPECT_EQ(test, mapcount, 2);
	pgtable_kunit_stale_issue(test, 6);
}

static int rmap_suite_init(struct kunit_suite *suite)
{
	seed = seed ?: get_random_u32();
	return pgtable_kunit_suite_init(suite);
}

static int rmap_init(struct kunit *test)
{
	int err = pgtable_kunit_init(test);

	if (err)
		return err;
	test->priv = mapped_mms_real(test);
	return 0;
}

static void rmap_exit(struct kunit *test)
{
	if (pgtable_kunit_tried)
		kunit_info(test, "seed %lu\n", seed);
	pgtable_kunit_exit(test);
}

static struct kunit_case rmap_cases[] = {
	KUNIT_CASE(folio_mapped_shared_every_page),
	KUNIT_CASE(folio_mapped_shared_not_page_0),
	KUNIT_CASE_PARAM(folio_mapcount_is_sum, rmap_order_gen_params),
	KUNIT_CASE(folio_try_dup_anon_rmap_fork),
	KUNIT_CASE(folio_dup_file_rmap_fork),
	KUNIT_CASE(folio_mapcount_pmd_to_ptes),
	KUNIT_CASE(folio_dup_file_rmap_pmd_entire),
	{}
};

static struct kunit_suite rmap_suite = {
	.name = "folio_mapped_rmap",
	.suite_init = rmap_suite_init,
	.init = rmap_init,
	.exit = rmap_exit,
	.test_cases = rmap_cases,
};

kunit_test_suite(rmap_suite);

MODULE_DESCRIPTION("KUnit tests for the owners of a folio, through rmap");
MODULE_LICENSE("GPL");
