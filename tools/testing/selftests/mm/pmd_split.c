// SPDX-License-Identifier: GPL-2.0
/*
 * Huge pages that are split into a table of PTEs, and fresh huge pages.
 *
 * Proves: when a call changes one page of a huge page, the other pages keep
 * their content, permission and state. On arm64 the blocks without the changed
 * page are folded immediately. Content survives repeated splits and collapses.
 * If the huge page was young, dirty, soft-dirty, protected by userfaultfd or
 * exclusive, each entry has the same state after a split. No entry gets a state
 * that the huge page did not have. A fresh huge page, or a fresh folio of
 * another size, is zero everywhere. One fault maps all of it, whichever page is
 * accessed first.
 *
 * Does not prove: the value of each entry (KUnit: set_ptes, contpte).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=pmd_split
 */
#include <linux/mman.h>

#include "folio_listen.h"
#include "folio_owner.h"
#include "folio_pmd.h"
#include "folio_state.h"

FIXTURE(pmd_split)
{
	struct memory memory;
	bool contpte;
};

FIXTURE_SETUP(pmd_split)
{
	const char *why = huge_page_map(&self->memory);

	if (why)
		SKIP(return, "%s", why);
	/* khugepaged must not rebuild the huge page. */
	folio_settings(0);
	self->contpte = has_contpte();
}

FIXTURE_TEARDOWN(pmd_split)
{
	memory_free(&self->memory);
}

/*
 * Check that @page has the value @now, or cannot be accessed if @now is -1.
 * Check that all other pages are unchanged, and that all blocks are folded
 * except for the block of @page.
 */
static void check(struct __test_metadata *_metadata, FIXTURE_DATA(pmd_split) * self,
		  unsigned int page, int now)
{
	struct memory *m = &self->memory;
	unsigned int n = cont_ptes(), i;

	for (i = 0; i < m->pages; i += n) {
		char *at = m->at + bytes(i == page ? i + 1 : i);
		bool own = page >= i && page < i + n;

		if (self->contpte && perf_tells()) {
			EXPECT_EQ(bytes(own ? 1 : n), mapped_size(at)) {
				TH_LOG("wrong entry size at page %u; page %u was changed", i, page);
			}
		}
	}
	for (i = 0; i < m->pages; i++) {
		char *at = m->at + bytes(i);

		if (i == page && now < 0) {
			EXPECT_EQ(SIGSEGV, try_access(at, false));
			continue;
		}
		ASSERT_TRUE(page_is(at, i == page ? now : pattern(i))) {
			TH_LOG("wrong content of page %u; page %u was changed", i, page);
		}
	}
}

/*
 * mprotect() makes the first page of a huge page PROT_NONE. This page cannot be
 * accessed. The other pages keep their content, and all blocks except for the
 * first block are folded.
 */
TEST_F(pmd_split, mprotect_first_page)
{
	ASSERT_EQ(0, mprotect(self->memory.at, bytes(1), PROT_NONE));
	check(_metadata, self, 0, -1);
	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
}

/*
 * mprotect() makes the last page of a huge page PROT_NONE. This page cannot be
 * accessed. The other pages keep their content, and all blocks except for the
 * last block are folded.
 */
TEST_F(pmd_split, mprotect_last_page)
{
	unsigned int last = self->memory.pages - 1;

	ASSERT_EQ(0, mprotect(self->memory.at + bytes(last), bytes(1), PROT_NONE));
	check(_metadata, self, last, -1);
	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
}

/*
 * MADV_DONTNEED drops one page in the middle of a huge page, and this page is
 * zero afterwards. The other pages stay writable: a write to each of them costs
 * no fault.
 */
TEST_F(pmd_split, madvise_dontneed_page)
{
	struct memory *m = &self->memory;
	unsigned int page = m->pages / 2 + 1;
	long before;

	ASSERT_EQ(0, madvise(m->at + bytes(page), bytes(1), MADV_DONTNEED));
	faults_begin(&before);
	for (unsigned int i = 0; i < m->pages; i++)
		if (i != page)
			m->at[bytes(i)] = pattern(i);
	EXPECT_EQ(0, faults() - before);
	check(_metadata, self, page, 0);
	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
}

/*
 * After fork() the parent writes to one page of a huge page. The other pages
 * stay shared with the child, in folded blocks. The parent then writes to all
 * pages, and the child still has the old content.
 */
TEST_F(pmd_split, write_after_fork)
{
	struct memory *m = &self->memory;
	unsigned int page = m->pages / 3;
	int go[2];
	pid_t child;
	char byte;

	ASSERT_EQ(0, pipe(go));
	child = fork();
	if (!child) {
		close(go[1]);
		if (read(go[0], &byte, 1))
			_exit(2);
		for (unsigned int i = 0; i < m->pages; i++)
			if (!page_is(m->at + bytes(i), pattern(i)))
				_exit(1);
		_exit(0);
	}
	memset(m->at + bytes(page), 0xfe, bytes(1));
	check(_metadata, self, page, 0xfe);
	for (unsigned int i = 0; i < m->pages; i++)
		m->at[bytes(i)] = 0;
	close(go[0]);
	close(go[1]);
	EXPECT_EQ(0, child_of(child));
	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
}

/*
 * Replace the huge page by a fresh huge page that has the pattern in each page.
 * Returns true on success.
 */
static bool again(struct memory *m)
{
	int order = m->order;
	bool right;

	memory_free(m);
	folio_settings(order);
	right = !memory_map(m, ANON, order, 1);
	folio_settings(0);
	return right && smaps_pages(m->at, "AnonHugePages") == m->pages;
}

/*
 * Split the huge page by dropping its last page. Returns true if one entry
 * mapped the huge page before the call, and a table of PTEs maps its pages
 * afterwards.
 */
static bool split(const struct memory *m)
{
	return smaps_pages(m->at, "AnonHugePages") == m->pages &&
	       !madvise(m->at + bytes(m->pages - 1), bytes(1), MADV_DONTNEED) &&
	       !smaps_pages(m->at, "AnonHugePages");
}

/*
 * If the huge page is young, each entry is young after a split. If the huge
 * page is old, each entry is old. The field "Referenced" of smaps counts the
 * young entries.
 */
TEST_F(pmd_split, keeps_young)
{
	struct memory *m = &self->memory;
	long left = m->pages - 1;

	for (int young = 0; young < 2; young++) {
		FILE *f = fopen("/proc/self/clear_refs", "w");

		ASSERT_TRUE(again(m));
		ASSERT_NE(NULL, f);
		fputs("1", f);
		ASSERT_EQ(0, fclose(f));
		/*
		 * The CPU does not set the accessed bit of an entry that is in
		 * its TLB. mprotect() flushes the TLB.
		 */
		ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ));
		ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ | PROT_WRITE));
		ASSERT_EQ(0, smaps_pages(m->at, "Referenced"));
		if (young)
			read_byte(m->at);
		ASSERT_EQ(young ? m->pages : 0, smaps_pages(m->at, "Referenced"));
		ASSERT_TRUE(split(m));
		EXPECT_EQ(young ? left : 0, smaps_pages(m->at, "Referenced"));
	}
}

/*
 * MADV_FREE makes the huge page clean, and after a split each entry is clean.
 * If the process writes to the huge page before the split, each entry is dirty,
 * and no page is lazyfree.
 */
TEST_F(pmd_split, keeps_dirty)
{
	struct memory *m = &self->memory;
	long left = m->pages - 1;

	for (int dirty = 0; dirty < 2; dirty++) {
		ASSERT_TRUE(again(m));
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
		ASSERT_EQ(m->pages, smaps_pages(m->at, "LazyFree"));
		if (dirty)
			m->at[0] = pattern(0);
		ASSERT_EQ(dirty ? 0 : m->pages, smaps_pages(m->at, "LazyFree"));
		ASSERT_TRUE(split(m));
		EXPECT_EQ(dirty ? 0 : left, smaps_pages(m->at, "LazyFree"));
		EXPECT_EQ(dirty ? left : 0, smaps_pages(m->at, "Private_Dirty"));
	}
}

/*
 * If the huge page has the write protection of userfaultfd, each entry has this
 * protection after a split. If the huge page does not have it, no entry has it.
 */
TEST_F(pmd_split, keeps_uffd)
{
	int uffd = listener(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	struct memory *m = &self->memory;

	if (uffd < 0)
		SKIP(return, "no write protection by userfaultfd");
	for (int on = 0; on < 2; on++) {
		ASSERT_TRUE(again(m));
		ASSERT_EQ(0, listen_to(uffd, m->at, bytes(m->pages)));
		ASSERT_EQ(0, protect(uffd, m->at, m->pages, on));
		ASSERT_TRUE(split(m));
		for (unsigned int i = 0; i < m->pages - 1; i++) {
			ASSERT_EQ(on, pagemap_has(m->at + bytes(i), PM_UFFD_WP)) {
				TH_LOG("page %u has the wrong protection", i);
			}
		}
	}
	close(uffd);
}

/*
 * MADV_FREE makes the huge page clean, and the soft-dirty bits are cleared. If
 * the process then writes to the huge page, each entry is soft-dirty after a
 * split. If the process does not write, no entry is soft-dirty. The huge page
 * must be clean: on x86_64 the split of a dirty huge page may set the
 * soft-dirty bit, since pte_mkdirty() sets this bit. A comment in
 * __split_huge_pmd_locked() says that this may happen.
 */
TEST_F(pmd_split, keeps_soft_dirty)
{
	struct memory *m = &self->memory;

	if (!softdirty_supported())
		SKIP(return, "CONFIG_MEM_SOFT_DIRTY=n");
	for (int written = 0; written < 2; written++) {
		ASSERT_TRUE(again(m));
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
		clear_softdirty();
		if (written)
			m->at[0] = pattern(0);
		ASSERT_TRUE(split(m));
		for (unsigned int i = 0; i < m->pages - 1; i++) {
			ASSERT_EQ(written, pagemap_has(m->at + bytes(i), PM_SOFT_DIRTY)) {
				TH_LOG("page %u has the wrong soft-dirty bit", i);
			}
		}
	}
}

/*
 * If only one process maps the huge page, each page is exclusive after a split.
 * If a child maps the huge page too, no page is exclusive. To check this, the
 * test makes the mapping read-only and then writable again. An exclusive page
 * then gets a writable entry at once, and a write to this page costs no fault.
 * With a child each write costs a fault, and the child keeps the old content.
 */
TEST_F(pmd_split, keeps_exclusive)
{
	struct memory *m = &self->memory;

	for (int shared = 0; shared < 2; shared++) {
		unsigned int left = m->pages - 1;
		pid_t child = -1;
		long before;
		int go[2];

		ASSERT_TRUE(again(m));
		ASSERT_EQ(0, pipe(go));
		if (shared) {
			child = waiting_child(go, NULL, m);
			ASSERT_LT(0, child);
		}
		ASSERT_TRUE(split(m));
		ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ));
		ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ | PROT_WRITE));
		faults_begin(&before);
		for (unsigned int page = 0; page < left; page++)
			m->at[bytes(page)] = 0;
		EXPECT_EQ(shared ? left : 0, faults() - before);
		if (shared) {
			for (unsigned int page = 0; page < left; page++)
				EXPECT_TRUE(child_has(child, m->at + bytes(page), pattern(page)));
			EXPECT_TRUE(end_child(child));
		}
		close(go[0]);
		close(go[1]);
	}
}

/*
 * A write to debugfs splits the folio of the huge page. During the split the
 * entries of the folio are migration entries. Afterwards all entries are dirty
 * and writable, and the content of each page is unchanged.
 */
TEST_F(pmd_split, split_folio)
{
	struct memory *m = &self->memory;

	if (access("/sys/kernel/debug/split_huge_pages", W_OK))
		SKIP(return, "no debugfs");
	ASSERT_TRUE(split_folios(m));
	EXPECT_EQ(m->pages, smaps_pages(m->at, "Private_Dirty"));
	EXPECT_EQ(0, smaps_pages(m->at, "AnonHugePages"));
	for (unsigned int i = 0; i < m->pages; i++) {
		ASSERT_TRUE(page_is(m->at + bytes(i), pattern(i))) {
			TH_LOG("wrong content of page %u", i);
		}
		ASSERT_EQ(0, try_access(m->at + bytes(i), true));
	}
}

/*
 * mprotect() of one page splits the huge page, and MADV_COLLAPSE makes it a
 * huge page again. The test does this 20 times, at different pages. After each
 * round the content is right.
 */
TEST_F_TIMEOUT(pmd_split, split_and_collapse, 120)
{
	struct memory *m = &self->memory;
	unsigned long rounds = 0;

	for (unsigned int round = 0; round < 20; round++) {
		unsigned int page = round * 37 % m->pages;

		ASSERT_EQ(0, mprotect(m->at + bytes(page), bytes(1), PROT_READ));
		ASSERT_EQ(0, smaps_pages(m->at + bytes(page + 1), "AnonHugePages") > 0);
		ASSERT_EQ(0, mprotect(m->at + bytes(page), bytes(1), PROT_READ | PROT_WRITE));
		if (madvise(m->at, bytes(m->pages), MADV_COLLAPSE))
			SKIP(return, "MADV_COLLAPSE failed: %s", strerror(errno));
		EXPECT_EQ(m->pages, smaps_pages(m->at, "AnonHugePages"));
		for (unsigned int i = 0; i < m->pages; i++) {
			ASSERT_TRUE(page_is(m->at + bytes(i), pattern(i))) {
				TH_LOG("wrong content of page %u in round %u", i, round);
			}
		}
		rounds++;
	}
	DID(rounds, "rounds of split and collapse");
}

/*
 * A huge page becomes PROT_NONE, and munmap() of one page splits it. After the
 * split the entries are present but not valid, and no page can be accessed.
 * After mprotect() has made the memory accessible again, each page except the
 * unmapped page still has its content.
 */
TEST_F(pmd_split, split_without_permission)
{
	struct memory *m = &self->memory;
	unsigned int gone = m->pages / 2;

	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_NONE));
	ASSERT_EQ(0, munmap(m->at + bytes(gone), bytes(1)));
	for (unsigned int i = 0; i < m->pages; i += cont_ptes() / 2)
		ASSERT_EQ(SIGSEGV, try_access(m->at + bytes(i), false));
	ASSERT_EQ(0, mprotect(m->at, bytes(gone), PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, mprotect(m->at + bytes(gone + 1), bytes(m->pages - gone - 1),
			      PROT_READ | PROT_WRITE));
	for (unsigned int i = 0; i < m->pages; i++) {
		EXPECT_EQ(i == gone ? SIGSEGV : 0, try_access(m->at + bytes(i), true));
		ASSERT_TRUE(i == gone || page_is(m->at + bytes(i), pattern(i))) {
			TH_LOG("wrong content of page %u", i);
		}
	}
}

/*
 * A huge page is unmapped page by page from both ends. After each step, the
 * first and the last page that are still mapped have the right content.
 */
TEST_F(pmd_split, munmap_page_by_page)
{
	struct memory *m = &self->memory;
	unsigned int first = 0, end = m->pages;

	while (end - first > 2) {
		ASSERT_EQ(0, munmap(m->at + bytes(first++), bytes(1)));
		ASSERT_EQ(0, munmap(m->at + bytes(--end), bytes(1)));
		ASSERT_TRUE(page_is(m->at + bytes(first), pattern(first)));
		ASSERT_TRUE(page_is(m->at + bytes(end - 1), pattern(end - 1)));
	}
}

FIXTURE(fresh_folio)
{
	unsigned int pages;
};

FIXTURE_VARIANT(fresh_folio)
{
	int shift;	/* log2 of the blocks per folio; PMD: a huge page */
};

#define PMD -1

FIXTURE_VARIANT_ADD(fresh_folio, block)
{
	.shift = 0,
};

FIXTURE_VARIANT_ADD(fresh_folio, two_blocks)
{
	.shift = 1,
};

FIXTURE_VARIANT_ADD(fresh_folio, pmd)
{
	.shift = PMD,
};

FIXTURE_SETUP(fresh_folio)
{
	const char *why;

	self->pages = variant->shift == PMD ? pmd_pages() : cont_ptes() << variant->shift;
	if (!self->pages)
		SKIP(return, NO_HUGE_PAGES);
	why = folio_settings(order_of(self->pages));
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(fresh_folio)
{
}

/*
 * A folio full of nonzero bytes is dropped, and a new folio is faulted in. The
 * new folio is zero everywhere, and one fault maps all of it. The test repeats
 * this with each page of the folio as the page that is touched first. If a
 * folio has more than 32 pages, the test uses only 32 of them.
 */
TEST_F_TIMEOUT(fresh_folio, zero_at_each_fault_address, 120)
{
	unsigned int step = self->pages > 32 ? self->pages / 32 : 1;
	size_t size = bytes(self->pages);
	char *room, *at;

	room = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	at = (char *)(((unsigned long)room + size - 1) & -size);
	for (unsigned int page = 0; page < self->pages; page += step) {
		long before;

		memset(at, 0xa5, size);
		ASSERT_EQ(0, madvise(at, size, MADV_DONTNEED));
		faults_begin(&before);
		at[bytes(page) + page % psize()] = 0;
		for (size_t i = 0; i < size; i += psize())
			read_byte(at + i);
		EXPECT_EQ(1, faults() - before) {
			TH_LOG("page %u was touched first", page);
		}
		for (size_t i = 0; i < size; i += psize()) {
			ASSERT_TRUE(page_is(at + i, 0)) {
				TH_LOG("page %zu is not zero; page %u was touched first",
				       i / psize(), page);
			}
		}
	}
	munmap(room, 2 * size);
}

TEST_HARNESS_MAIN
