// SPDX-License-Identifier: GPL-2.0
/*
 * Hugetlb mappings whose first page table is missing.
 *
 * Proves: if the first page table of a mapping is missing, a call on the whole
 * mapping still reaches pages in the second page table. MADV_DONTNEED drops the
 * page, mprotect() protects it, and fork() copies its entry. This holds for
 * each size of hugetlb pages.
 *
 * How: the entries of the mapping need two whole page tables, one for each half.
 * Only one page in the second half is ever touched, so the first half has no table. The kernel
 * skips the range of a missing table. It calculates the size of this range with
 * hugetlb_mask_last_page(). As a control, the same call is made only for the second half, which has
 * a table.
 *
 *	begin                      at
 *	|  no table                |  table: one page                 |
 *
 * Does not prove: that mremap() and munmap() reach the page. They call hugetlb_mask_last_page()
 * too. If mremap() or munmap() skips a page, the call frees a page table that still maps the page.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_sparse
 */
#include "hugetlb_tables.h"

FIXTURE(hugetlb_sparse)
{
	struct hugetlb_pool pool;
	struct used_pages used;
	size_t size;	/* of a page */
	size_t span;	/* how much one table of such entries maps */
	char *room;
	char *begin;	/* the start of the mapping, which is two spans long */
	char *at;	/* the page */
};

/* @rank: 0 is the smallest size of hugetlb pages, 1 the next, and so on. */
FIXTURE_VARIANT(hugetlb_sparse)
{
	int rank;
};

FIXTURE_VARIANT_ADD(hugetlb_sparse, smallest)
{
	.rank = 0,
};

FIXTURE_VARIANT_ADD(hugetlb_sparse, second)
{
	.rank = 1,
};

FIXTURE_VARIANT_ADD(hugetlb_sparse, third)
{
	.rank = 2,
};

FIXTURE_VARIANT_ADD(hugetlb_sparse, fourth)
{
	.rank = 3,
};

/* Return how much memory one page table maps if each of its entries maps @size bytes. */
static size_t table_span(size_t size)
{
	size_t entries = psize() / sizeof(long), span = entries * psize();

	while (span <= size)
		span *= entries;
	return span;
}

FIXTURE_SETUP(hugetlb_sparse)
{
	const char *why;

	self->used.files = 0;
	self->room = MAP_FAILED;
	self->size = hugetlb_size(variant->rank);
	if (!self->size)
		SKIP(return, "no such size of hugetlb");
	why = hugetlb_pool_have(&self->pool, self->size, 1);
	if (why)
		SKIP(return, "%zuK: %s", self->size >> 10, why);
	if (!used_open(&self->used))
		SKIP(return, "no ramfs");
	self->span = table_span(self->size);
	/*
	 * Reserve enough addresses: no other mapping may use the page tables of the two
	 * halves.
	 */
	self->room = mmap(NULL, 4 * self->span, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (self->room == MAP_FAILED)
		SKIP(return, "not enough address space");
	self->begin = (char *)(((unsigned long)self->room + 2 * self->span - 1) & -self->span);
	ASSERT_EQ(self->begin,
		  mmap(self->begin, 2 * self->span, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE | MAP_FIXED |
		       order_of(self->size) << MAP_HUGE_SHIFT, -1, 0));
	self->at = self->begin + self->span;
	if (try_access(self->at, false))
		SKIP(return, "all hugetlb pages of %zuK are in use", self->size >> 10);
	*self->at = 1;
	ASSERT_NE(-1UL, pfn_of(self->at));
}

FIXTURE_TEARDOWN(hugetlb_sparse)
{
	/*
	 * Of the two halves of the mapping, first unmap the half that has a page
	 * table. This call unmaps the page on every kernel.
	 */
	if (self->room != MAP_FAILED) {
		munmap(self->at, self->span);
		munmap(self->room, 4 * self->span);
	}
	used_close(&self->used);
	hugetlb_pool_restore(&self->pool);
}

/*
 * Whether known issue 12 affects pages of this size. It affects pages that PUDs
 * map, on arm64 kernels that were built for five levels. Only such a kernel has
 * __p4d_alloc(). With fewer levels, the two sizes that the faulty code confuses
 * are equal.
 */
static bool may_step_too_far(size_t size)
{
#ifdef __aarch64__
	size_t entries = psize() / sizeof(long);

	return psize() == 4096 && size >= entries * entries * psize() &&
	       kernel_has("__p4d_alloc");
#else
	return false;
#endif
}

/*
 * MADV_DONTNEED of the whole mapping drops the page, and its memory goes back to the
 * pool. Known issue 12: the page stays, with its content.
 */
TEST_F(hugetlb_sparse, dontneed)
{
	unsigned long free = hugetlb_pool_count(&self->pool, "free_hugepages");
	unsigned long pfn = pfn_of(self->at), now;
	bool kept;

	ASSERT_EQ(0, madvise(self->begin, 2 * self->span, MADV_DONTNEED));
	now = pfn_of(self->at);
	kept = now == pfn && *self->at == 1 &&
	       hugetlb_pool_count(&self->pool, "free_hugepages") == free;
	if (kept) {
		/*
		 * The control: MADV_DONTNEED of the second half alone drops the page.
		 */
		ASSERT_EQ(0, madvise(self->at, self->span, MADV_DONTNEED));
		EXPECT_EQ(-1UL, pfn_of(self->at));
		EXPECT_EQ(free + 1, hugetlb_pool_count(&self->pool, "free_hugepages"));
	}
	if (kept && may_step_too_far(self->size)) {
		KNOWN_ISSUE(12, "the kernel skips a page after a missing table");
		return;
	}
	EXPECT_EQ(-1UL, now);
	EXPECT_EQ(free + 1, hugetlb_pool_count(&self->pool, "free_hugepages"));
	if (may_step_too_far(self->size))
		STALE_ISSUE(12);
}

/*
 * mprotect() of the whole mapping makes the page read-only. Known issue 12: the page
 * stays writable.
 */
TEST_F(hugetlb_sparse, mprotect)
{
	int caught;

	ASSERT_EQ(0, try_access(self->at, true));
	ASSERT_EQ(0, mprotect(self->begin, 2 * self->span, PROT_READ));
	caught = try_access(self->at, true);
	/* The control: mprotect() of the second half alone works. */
	ASSERT_EQ(0, mprotect(self->begin, 2 * self->span, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, mprotect(self->at, self->span, PROT_READ));
	EXPECT_EQ(SIGSEGV, try_access(self->at, true));
	EXPECT_EQ(0, try_access(self->at, false));
	if (!caught && may_step_too_far(self->size)) {
		KNOWN_ISSUE(12, "the kernel skips a page after a missing table");
		return;
	}
	EXPECT_EQ(SIGSEGV, caught);
	if (may_step_too_far(self->size))
		STALE_ISSUE(12);
}

/*
 * Find out which page a child has at the address of its parent's page. Returns 1 if the child has
 * its parent's page, 0 if it has no page, 2 if it has another page, and any other number on
 * failure.
 */
static int child_has(FIXTURE_DATA(hugetlb_sparse) * self)
{
	unsigned long pfn = pfn_of(self->at);
	int has = -1;
	pid_t child;

	/*
	 * The child's page tables use pages whose page->index is 0, which avoids known issue 10.
	 */
	for (int i = 0; i < USED_TRIES && has != 1; i++) {
		if (!stay_on_cpu() || !used_free(&self->used, USED_ZERO))
			return -1;
		child = fork();
		if (!child) {
			unsigned long own = pfn_of(self->at);

			has = own == pfn ? 1 : own == -1UL ? 0 : 2;
			/*
			 * First unmap the half that has a page table. FIXTURE_TEARDOWN() does
			 * the same.
			 */
			munmap(self->at, self->span);
			_exit(has);
		}
		has = child_of(child);
	}
	return has;
}

/*
 * A child of fork() has the page. Known issue 12: the child has no
 * page, and would read zeros where its parent has data.
 */
TEST_F(hugetlb_sparse, fork)
{
	int has = child_has(self);

	/*
	 * The control: mprotect() of the first half makes the second half a
	 * separate mapping. A child then has the page.
	 */
	ASSERT_EQ(0, mprotect(self->begin, self->span, PROT_NONE));
	EXPECT_EQ(1, child_has(self));
	if (has == 0 && may_step_too_far(self->size)) {
		KNOWN_ISSUE(12, "the kernel skips a page after a missing table");
		return;
	}
	EXPECT_EQ(1, has);
	if (may_step_too_far(self->size))
		STALE_ISSUE(12);
}

TEST_HARNESS_MAIN
