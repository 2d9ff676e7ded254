// SPDX-License-Identifier: GPL-2.0
/*
 * MADV_COLLAPSE on a memory file that already has a huge page.
 *
 * Proves: memory that fallocate() allocated is zero after MADV_COLLAPSE, and
 * keeps later writes. Written pages stay dirty, so reclaim does not drop them.
 *
 * How: the file has one huge page. Either PTEs map this page, or no page table
 * maps it. MADV_COLLAPSE maps the page with one PMD. Then the test checks the
 * content. The control variant does not call MADV_COLLAPSE.
 *
 * Does not prove: the effect of MADV_COLLAPSE on single pages (folio_collapse
 * tests this effect), or on files on a disk.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=collapse_shmem
 */
#include <sys/wait.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_pmd.h"
#include "folio_state.h"

/* From include/uapi/asm-generic/mman-common.h, since older headers lack this constant. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* The test fills LEFT_SIZE bytes with the value LEFT and frees them. */
#define LEFT 0xa5
#define LEFT_SIZE (64UL << 20)

FIXTURE(collapse_shmem)
{
	struct memory memory;
	char *other;
};

/* @collapse: whether to use MADV_COLLAPSE */
FIXTURE_VARIANT(collapse_shmem)
{
	bool collapse;
};

FIXTURE_VARIANT_ADD(collapse_shmem, control)
{
};

FIXTURE_VARIANT_ADD(collapse_shmem, collapse)
{
	.collapse = true,
};

/* Map the file at @at. Returns whether that worked. */
static bool map_pages(const struct memory *m, char *at)
{
	return mmap(at, bytes(m->pages), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd,
		    0) == at;
}

/* The file has no page yet. The setup reserves addresses for two mappings of the whole file. */
FIXTURE_SETUP(collapse_shmem)
{
	struct memory *m = &self->memory;
	unsigned int pages = pmd_pages();
	const char *why;

	*m = (struct memory){ .fd = -1, .pages = pages };
	why = pages ? folio_settings(order_of(pages)) : NO_HUGE_PAGES;
	if (why)
		SKIP(return, "%s", why);
	/* Memory files use shmem_enabled, and ignore the settings for individual folio sizes. */
	ASSERT_EQ(0, write_text(FOLIO_THP "/shmem_enabled", "always"));
	m->order = order_of(pages);
	m->room_bytes = 3 * bytes(pages);
	m->room = mmap(NULL, m->room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, m->room);
	m->at = (char *)(((unsigned long)m->room + bytes(pages) - 1) & -bytes(pages));
	self->other = m->at + bytes(pages);
	m->fd = memory_file(SHMEM, pages);
	ASSERT_LE(0, m->fd);
}

FIXTURE_TEARDOWN(collapse_shmem)
{
	memory_free(&self->memory);
}

/* Fill memory with LEFT and free it. Processes that allocate memory later can get these pages. */
static bool leave_content(size_t length)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

		if (at != MAP_FAILED)
			memset(at, LEFT, length);
		_exit(at == MAP_FAILED);
	}
	return waitpid(child, &status, 0) == child && !status;
}

/*
 * The number of pages with wrong content. Each page should hold @value, or its
 * own pattern if @value is negative.
 */
static unsigned int differ(const struct memory *m, int value)
{
	unsigned int count = 0;

	for (unsigned int page = 0; page < m->pages; page++)
		count += !page_is(m->at + bytes(page), value < 0 ? pattern(page) : value);
	return count;
}

static void fill(const struct memory *m)
{
	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(page), bytes(1));
}

/*
 * fallocate() allocates a huge page for the file. The process finds only zeros
 * in this page, and then writes to the whole page. The written content must
 * still be there after an access through another mapping. Known issue 67:
 * MADV_COLLAPSE maps the page without clearing it, so the page still holds old
 * content of other processes. The access through the other mapping then clears
 * the page, and all writes are lost.
 */
TEST_F(collapse_shmem, fallocated_memory_is_zero)
{
	struct memory *m = &self->memory;
	unsigned int old, lost;
	bool huge;

	ASSERT_TRUE(leave_content(LEFT_SIZE));
	ASSERT_EQ(0, fallocate(m->fd, 0, 0, bytes(m->pages)));
	ASSERT_TRUE(map_pages(m, m->at));
	if (variant->collapse)
		madvise(m->at, bytes(m->pages), MADV_COLLAPSE);
	huge = smaps_pages(m->at, "ShmemPmdMapped") == m->pages;
	old = differ(m, 0);
	fill(m);
	ASSERT_TRUE(is_folio(m, 0));
	ASSERT_TRUE(map_pages(m, self->other));
	read_byte(self->other);
	lost = differ(m, -1);
	TH_LOG("%u pages had old content, %u pages lost a write", old, lost);
	if (variant->collapse && huge && lost == m->pages && differ(m, 0) == 0) {
		KNOWN_ISSUE(67, "MADV_COLLAPSE maps a huge page that is not uptodate");
		return;
	}
	EXPECT_EQ(0, old);
	EXPECT_EQ(0, lost);
	if (variant->collapse)
		STALE_ISSUE(67);
}

/*
 * A read allocates a huge page in the file. The mapping has MADV_NOHUGEPAGE, so
 * PTEs map this page. The process writes to all pages. Reclaim swaps the pages
 * out, and they come back with their content. Known issue 68: MADV_COLLAPSE and
 * khugepaged lose the dirty bits of the PTEs.
 */
TEST_F(collapse_shmem, written_pages_stay)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);
	unsigned int lost;

	if (!have_swap())
		SKIP(return, "no swap");
	ASSERT_TRUE(stay_on_cpu());
	ASSERT_TRUE(map_pages(m, self->other));
	read_byte(self->other);
	ASSERT_EQ(0, munmap(self->other, length));
	ASSERT_TRUE(map_pages(m, m->at));
	ASSERT_EQ(0, madvise(m->at, length, MADV_NOHUGEPAGE));
	/*
	 * First give each page a PTE: a write to a page without a PTE would
	 * mark the folio dirty.
	 */
	for (unsigned int page = 0; page < m->pages; page++)
		read_byte(m->at + bytes(page));
	fill(m);
	ASSERT_TRUE(is_folio(m, 0));
	ASSERT_EQ(0, smaps_pages(m->at, "ShmemPmdMapped"));
	if (variant->collapse) {
		ASSERT_EQ(0, madvise(m->at, length, MADV_HUGEPAGE));
		ASSERT_EQ(0, madvise(m->at, length, MADV_COLLAPSE));
		read_byte(m->at);
		ASSERT_EQ(m->pages, smaps_pages(m->at, "ShmemPmdMapped"));
	}
	for (int i = 0; i < 100 && swapped_out(m) < m->pages; i++)
		ASSERT_EQ(0, madvise(m->at, length, MADV_PAGEOUT));
	DID(swapped_out(m), "pages that reclaim took");
	lost = differ(m, -1);
	if (variant->collapse && lost == m->pages && differ(m, 0) == 0) {
		KNOWN_ISSUE(68, "reclaim drops pages that were written to before MADV_COLLAPSE");
		return;
	}
	EXPECT_EQ(0, lost);
	if (variant->collapse)
		STALE_ISSUE(68);
}

TEST_HARNESS_MAIN
