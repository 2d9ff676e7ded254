// SPDX-License-Identifier: GPL-2.0
/*
 * A child of fork() gets hugetlb pages even if the memory of their page tables
 * was used for something else before.
 *
 * Proves: MADV_DONTFORK keeps hugetlb memory from children, and MADV_DOFORK
 * undoes this. For each hugetlb size, a child of fork() gets the parent's page. If only one process
 * maps a page, smaps and pagemap count the page as private. The earlier use of the page table's
 * memory must not matter. It could matter because struct ptdesc overlays struct page: fields that
 * the kernel does not set keep old values.
 *
 * How: after each call of madvise(), a child reports what it reads at the
 * address. As a control, the test makes the same calls for memory with small
 * pages.
 *
 * The test frees pages of a file just before the kernel needs page tables, so that the kernel uses
 * them as page tables (hugetlb_tables.h). Each of these pages has a different page->index. As a
 * control, the test frees pages that all have index 0.
 *
 * No other mapping is near the memory, so all page tables of the memory are
 * new.
 *
 * Does not prove: copy-on-write (hugetlb_block tests this); page tables that
 * processes share.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_fork
 */
#include "hugetlb_tables.h"

/*
 * On every architecture, a page table below the top level maps at most this
 * many bytes.
 */
#define SPAN (4UL << 40)

/* The exit status of a child: which page it has at the address. */
enum { SAME_PAGE, OTHER_PAGE, NO_PAGE };

/*
 * A page in its own address range, and the pages that become the page tables
 * of this range.
 */
struct hugetlb_fork_page {
	size_t size;
	struct used_pages used;
	char *room;
	char *at;
};

FIXTURE(hugetlb_fork)
{
	struct hugetlb_pool pool;
	struct hugetlb_fork_page page;
};

/*
 * @rank: 0 stands for the smallest size of hugetlb pages, 1 for the next size,
 * and so on.
 */
FIXTURE_VARIANT(hugetlb_fork)
{
	int rank;
};

FIXTURE_VARIANT_ADD(hugetlb_fork, smallest)
{
	.rank = 0,
};

FIXTURE_VARIANT_ADD(hugetlb_fork, second)
{
	.rank = 1,
};

FIXTURE_VARIANT_ADD(hugetlb_fork, third)
{
	.rank = 2,
};

FIXTURE_VARIANT_ADD(hugetlb_fork, fourth)
{
	.rank = 3,
};

/*
 * Map a page at an address without a page table. Before this, the function
 * frees some pages, and the kernel then uses some of the freed pages as page
 * tables. @index selects the page->index of the freed pages. Returns true on
 * success.
 */
static bool map_page(struct hugetlb_fork_page *p, enum used_index index)
{
	char *at = mmap(p->room, 2 * SPAN, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	/*
	 * The mmap() above has replaced any older mapping, and has freed the
	 * page tables of the older mapping.
	 */
	if (at != p->room || !used_free(&p->used, index))
		return false;
	at = mmap(p->at, p->size, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED |
		  order_of(p->size) << MAP_HUGE_SHIFT, -1, 0);
	if (at != p->at)
		return false;
	at[0] = 1;
	return true;
}

FIXTURE_SETUP(hugetlb_fork)
{
	const char *why;

	self->page.used.files = 0;
	self->page.room = MAP_FAILED;
	self->page.size = hugetlb_size(variant->rank);
	if (!self->page.size)
		SKIP(return, "no such size of hugetlb");
	why = hugetlb_pool_have(&self->pool, self->page.size, 1);
	if (why)
		SKIP(return, "%zuK: %s", self->page.size >> 10, why);
	ASSERT_TRUE(stay_on_cpu());
	if (!used_open(&self->page.used))
		SKIP(return, "no ramfs");
	self->page.room = mmap(NULL, 2 * SPAN, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (self->page.room == MAP_FAILED)
		SKIP(return, "not enough address space");
	self->page.at = (char *)(((unsigned long)self->page.room + SPAN - 1) & ~(SPAN - 1));
	if (!map_page(&self->page, USED_NUMBER))
		SKIP(return, "all hugetlb pages of %zuK are in use", self->page.size >> 10);
}

FIXTURE_TEARDOWN(hugetlb_fork)
{
	if (self->page.room != MAP_FAILED)
		munmap(self->page.room, 2 * SPAN);
	used_close(&self->page.used);
	hugetlb_pool_restore(&self->pool);
}

/*
 * Free some pages, then fork a child, whose page tables use some of the freed
 * pages. @index selects the page->index of the freed pages. Returns what the
 * child finds, or -1 on failure.
 */
static int child_has_once(struct hugetlb_fork_page *p, enum used_index index)
{
	unsigned long pfn = pfn_of(p->at);
	pid_t child;

	if (!used_free(&p->used, index))
		return -1;
	child = fork();
	if (!child) {
		unsigned long own = pfn_of(p->at);

		_exit(own == pfn ? SAME_PAGE : own == -1UL ? NO_PAGE : OTHER_PAGE);
	}
	return child_of(child);
}

/*
 * Call child_has_once() until it returns @sought, at most USED_TRIES times.
 * Returns the last result.
 */
static int child_has(struct hugetlb_fork_page *p, enum used_index index, int sought)
{
	int has = -1;

	for (int i = 0; i < USED_TRIES && has != sought; i++)
		has = child_has_once(p, index);
	return has;
}

/*
 * A child of fork() has the same page as its parent. The child checks this
 * without a read, because a read allocates a new page of zeros if the entry is
 * missing. Known issue 10: if the frame of the child's page table had a
 * page->index other than 0 in its previous use, the child does not have the
 * page. As a control, the test checks that the child has the page if
 * page->index was 0 in the previous use.
 */
TEST_F(hugetlb_fork, child_has_the_page)
{
	int used, zero;

	ASSERT_NE(-1UL, pfn_of(self->page.at));
	used = child_has(&self->page, USED_NUMBER, NO_PAGE);
	zero = child_has(&self->page, USED_ZERO, SAME_PAGE);
	EXPECT_EQ(SAME_PAGE, zero);
	EXPECT_EQ(1, self->page.at[0]);
	if (used == NO_PAGE && may_look_shared(self->page.size)) {
		KNOWN_ISSUE(10, "a page table in a reused page looks shared");
		return;
	}
	EXPECT_EQ(SAME_PAGE, used);
	if (may_look_shared(self->page.size))
		STALE_ISSUE(10);
}

/*
 * Returns 1 if smaps and pagemap count the page as private, 0 if both count it
 * as shared, else -1.
 */
static int counted_alone(const struct hugetlb_fork_page *p)
{
	long pages = p->size / psize();
	long private = smaps_pages(p->at, "Private_Hugetlb");
	long shared = smaps_pages(p->at, "Shared_Hugetlb");
	bool exclusive = pagemap_has(p->at, PM_MMAP_EXCLUSIVE);

	if (private == pages && !shared && exclusive)
		return 1;
	return !private && shared == pages && !exclusive ? 0 : -1;
}

/*
 * Call map_page() and counted_alone() until counted_alone() returns @sought, at
 * most USED_TRIES times. Returns the last result.
 */
static int mapped_alone(struct hugetlb_fork_page *p, enum used_index index, int sought)
{
	int alone = -1;

	for (int i = 0; i < USED_TRIES && alone != sought; i++)
		alone = map_page(p, index) ? counted_alone(p) : -1;
	return alone;
}

/*
 * A page that only this process maps is private in smaps and exclusive in
 * pagemap. Known issue 10: smaps and pagemap show the page as shared if the
 * memory of its page table previously had a page->index other than 0.
 */
TEST_F(hugetlb_fork, counted_as_private)
{
	int used = mapped_alone(&self->page, USED_NUMBER, 0);

	EXPECT_EQ(1, mapped_alone(&self->page, USED_ZERO, 1));
	if (used == 0 && may_look_shared(self->page.size)) {
		KNOWN_ISSUE(10, "a page table in a reused page looks shared");
		return;
	}
	EXPECT_EQ(1, used);
	if (may_look_shared(self->page.size))
		STALE_ISSUE(10);
}

#define CONTENT 7
#define NO_MEMORY 100

FIXTURE(hugetlb_dofork)
{
	struct hugetlb_pool pool;
	size_t size;
	char *at;
};

FIXTURE_VARIANT(hugetlb_dofork)
{
	int flags;
};

FIXTURE_VARIANT_ADD(hugetlb_dofork, private)
{
	.flags = MAP_PRIVATE | MAP_HUGETLB,
};

FIXTURE_VARIANT_ADD(hugetlb_dofork, shared)
{
	.flags = MAP_SHARED | MAP_HUGETLB,
};

FIXTURE_VARIANT_ADD(hugetlb_dofork, small_private)
{
	.flags = MAP_PRIVATE,
};

FIXTURE_VARIANT_ADD(hugetlb_dofork, small_shared)
{
	.flags = MAP_SHARED,
};

FIXTURE_SETUP(hugetlb_dofork)
{
	int flags = variant->flags | MAP_ANONYMOUS;
	const char *why;

	self->at = MAP_FAILED;
	self->pool.folder[0] = 0;
	self->size = psize();
	if (flags & MAP_HUGETLB) {
		self->size = hugetlb_size(0);
		why = hugetlb_pool_have(&self->pool, self->size, 1);
		if (why)
			SKIP(return, "%s", why);
		flags |= order_of(self->size) << MAP_HUGE_SHIFT;
	}
	self->at = mmap(NULL, self->size, PROT_READ | PROT_WRITE, flags, -1, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	self->at[0] = CONTENT;
}

FIXTURE_TEARDOWN(hugetlb_dofork)
{
	if (self->at != MAP_FAILED)
		munmap(self->at, self->size);
	hugetlb_pool_restore(&self->pool);
}

/*
 * Fork a child. Returns the first byte that the child has at @at, NO_MEMORY if
 * it has no memory there, or 128 plus the signal that ended the child.
 */
static int child_reads(char *at)
{
	unsigned char in_memory;
	pid_t child = fork();

	if (!child)
		_exit(mincore(at, psize(), &in_memory) && errno == ENOMEM ? NO_MEMORY : at[0]);
	return child_of(child);
}

/*
 * Whether a child read the right content from the memory. The function also
 * accepts the effects of known issue 10: if the mapping is private, the child
 * may lack its parent's page, and its read then finds zeros or raises SIGBUS.
 * The case counted_as_private reports this issue.
 */
static bool has_memory(int seen, bool private)
{
	return seen == CONTENT ||
	       (private && has_issue(10) && (!seen || seen == 128 + SIGBUS));
}

/*
 * After MADV_DONTFORK a child does not have the memory, and after MADV_DOFORK it
 * has the memory with its content. Known issue 69: MADV_DOFORK of hugetlb memory
 * fails with EINVAL, and children never have the memory again. As a control,
 * the case does the same with small pages.
 */
TEST_F(hugetlb_dofork, undoes_dontfork)
{
	bool huge = variant->flags & MAP_HUGETLB, private = huge && variant->flags & MAP_PRIVATE;
	int error, before = child_reads(self->at), after;

	ASSERT_EQ(0, madvise(self->at, self->size, MADV_DONTFORK));
	EXPECT_EQ(NO_MEMORY, child_reads(self->at));
	error = madvise(self->at, self->size, MADV_DOFORK) ? errno : 0;
	after = child_reads(self->at);
	EXPECT_EQ(CONTENT, self->at[0]);
	if (huge && error == EINVAL && after == NO_MEMORY) {
		KNOWN_ISSUE(69, "MADV_DOFORK refuses hugetlb memory");
		return;
	}
	EXPECT_EQ(0, error);
	EXPECT_TRUE(has_memory(before, private)) {
		TH_LOG("at first a child has %d", before);
	}
	EXPECT_TRUE(has_memory(after, private)) {
		TH_LOG("after MADV_DOFORK a child has %d", after);
	}
	if (huge)
		STALE_ISSUE(69);
}

TEST_HARNESS_MAIN
