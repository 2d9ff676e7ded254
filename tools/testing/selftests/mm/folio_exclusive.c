// SPDX-License-Identifier: GPL-2.0
/*
 * Files in /proc report how many times a page of a large folio is mapped, and
 * whether only one process maps it. After all other processes have exited, a
 * write by the remaining process reuses the page on some kernels, and copies
 * the page on others.
 *
 * Proves: PM_MMAP_EXCLUSIVE and /proc/kpagecount are right for each page while
 * processes start, unmap parts of the memory, and exit. A page is never
 * "exclusive" while two processes map it. After all other processes have
 * exited, writes reuse the pages if the kernel tracks which processes map a
 * folio (Linux 6.15 and later). Older kernels copy the pages of a large folio.
 *
 * Does not prove: how the kernel tracks the processes (KUnit: folio_mapped_*).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_exclusive
 */
#include "folio_owner.h"

#define CHILDREN 4

FIXTURE(folio_exclusive)
{
	struct memory memory;
	int go[2];
};

FIXTURE_VARIANT(folio_exclusive)
{
	bool large;
};

FIXTURE_VARIANT_ADD(folio_exclusive, folio)
{
	.large = true,
};

FIXTURE_VARIANT_ADD(folio_exclusive, single_pages)
{
	.large = false,
};

FIXTURE_SETUP(folio_exclusive)
{
	int order = variant->large ? order_of(cont_ptes()) : 0;
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (why)
		SKIP(return, "%s", why);
	why = memory_map(&self->memory, ANON, order, variant->large ? 1 : cont_ptes());
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(folio_exclusive)
{
	memory_free(&self->memory);
}

/*
 * Start four children one by one, then let them exit one by one. While there is
 * no child, each page is exclusive. While there is a child, no page is
 * exclusive. The number of mappings of each page is the number of processes.
 */
static void come_and_go(struct __test_metadata *_metadata, struct memory *m)
{
	pid_t children[CHILDREN];
	int go[CHILDREN][2];
	int n;

	for (n = 0; n <= CHILDREN; n++) {
		for (unsigned int page = 0; page < m->pages; page++) {
			char *at = m->at + bytes(page);

			EXPECT_EQ(n == 0, pagemap_has(at, PM_MMAP_EXCLUSIVE)) {
				TH_LOG("page %u with %d children", page, n);
			}
			EXPECT_EQ(n + 1, mappings(at)) {
				TH_LOG("page %u with %d children", page, n);
			}
		}
		if (n == CHILDREN)
			break;
		ASSERT_EQ(0, pipe(go[n]));
		children[n] = waiting_child(go[n], NULL, m);
		ASSERT_LT(0, children[n]);
	}
	while (n--) {
		/*
		 * Later children inherited these descriptors too, but the later
		 * children have already exited.
		 */
		close(go[n][0]);
		close(go[n][1]);
		EXPECT_EQ(0, child_of(children[n]));
		for (unsigned int page = 0; page < m->pages; page++) {
			EXPECT_EQ(n == 0, pagemap_has(m->at + bytes(page), PM_MMAP_EXCLUSIVE));
			EXPECT_EQ(n + 1, mappings(m->at + bytes(page)));
		}
	}
}

/*
 * Up to four children share the memory, and then exit. While the parent is the
 * only process, each page is exclusive. While there is a child, no page is
 * exclusive. kpagecount is always the number of processes. The variants are one
 * large folio and single pages.
 */
TEST_F(folio_exclusive, processes_come_and_go)
{
	come_and_go(_metadata, &self->memory);
}

static void unmap_odd_pages(struct memory *m)
{
	for (unsigned int page = 1; page < m->pages; page += 2)
		munmap(m->at + bytes(page), bytes(1));
}

/*
 * A child unmaps all odd pages. The even pages are mapped twice. The odd pages
 * are exclusive to the parent, although other pages of their folio are shared.
 */
static void unmap_part(struct __test_metadata *_metadata, int go[2], struct memory *m)
{
	pid_t child = waiting_child(go, unmap_odd_pages, m);

	ASSERT_LT(0, child);
	for (unsigned int page = 0; page < m->pages; page++) {
		EXPECT_EQ(page % 2 == 1, pagemap_has(m->at + bytes(page), PM_MMAP_EXCLUSIVE)) {
			TH_LOG("page %u", page);
		}
		EXPECT_EQ(page % 2 ? 1 : 2, mappings(m->at + bytes(page))) {
			TH_LOG("page %u", page);
		}
	}
	close(go[0]);
	close(go[1]);
	EXPECT_EQ(0, child_of(child));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_TRUE(pagemap_has(m->at + bytes(page), PM_MMAP_EXCLUSIVE));
}

/*
 * A child unmaps every second page. These pages are exclusive to the parent,
 * and all other pages are mapped twice. The variants are one large folio and
 * single pages.
 */
TEST_F(folio_exclusive, child_unmaps_part)
{
	unmap_part(_metadata, self->go, &self->memory);
}

/*
 * The test calls this function after the only other process has exited and this
 * process has written to each page. Returns whether @copies is the right number
 * of copied pages. If the memory has only single pages, no kernel copies a
 * page. If the memory is a large folio, a kernel that tracks owners copies no
 * page, and an older kernel copies all pages. If /proc/kallsyms has no data
 * symbols, the test cannot tell these kernels apart. Then it accepts both
 * results: no page copied, or all pages copied.
 */
static bool right_copies(const struct memory *m, unsigned int copies)
{
	bool all = m->order && folio_owners == OWNERS_GUESSED;

	if (m->order && folio_owners == OWNERS_UNKNOWN)
		return copies == 0 || copies == m->pages;
	return copies == (all ? m->pages : 0);
}

/*
 * The parent writes to each page while a child maps all pages. Every kernel
 * copies all pages.
 */
TEST_F(folio_exclusive, write_beside_child)
{
	struct memory *m = &self->memory;
	pid_t child = waiting_child(self->go, NULL, m);

	ASSERT_LT(0, child);
	EXPECT_EQ(m->pages, copied(m));
	close(self->go[0]);
	close(self->go[1]);
	EXPECT_EQ(0, child_of(child));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_TRUE(page_is(m->at + bytes(page), pattern(page)));
}

/*
 * The parent writes to each page after its child has exited. Every kernel
 * reuses single pages. A kernel that tracks owners also reuses the pages of a
 * large folio, and an older kernel copies them.
 */
TEST_F(folio_exclusive, write_after_child)
{
	struct memory *m = &self->memory;
	unsigned int copies;
	pid_t child = waiting_child(self->go, NULL, m);

	ASSERT_LT(0, child);
	close(self->go[0]);
	close(self->go[1]);
	EXPECT_EQ(0, child_of(child));
	copies = copied(m);
	EXPECT_TRUE(right_copies(m, copies)) {
		TH_LOG("%u of %u pages were copied", copies, m->pages);
	}
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_TRUE(page_is(m->at + bytes(page), pattern(page)));
}

/*
 * A child has unmapped every second page and is still running. The parent
 * writes to each page. The kernel copies all pages of a large folio, since the
 * folio is still shared. This includes pages that only the parent maps. In the
 * variant with single pages, the kernel copies only pages that the child maps.
 */
TEST_F(folio_exclusive, write_beside_child_with_part)
{
	struct memory *m = &self->memory;
	pid_t child = waiting_child(self->go, unmap_odd_pages, m);

	ASSERT_LT(0, child);
	EXPECT_EQ(variant->large ? m->pages : m->pages / 2, copied(m));
	close(self->go[0]);
	close(self->go[1]);
	EXPECT_EQ(0, child_of(child));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_TRUE(page_is(m->at + bytes(page), pattern(page)));
}

/*
 * The child has exited, and the parent has dropped all pages except the last.
 * Then the parent writes to the last page. If the folio is large, every kernel
 * copies this page, and can then free the folio. If the folio has only one
 * page, every kernel reuses this page.
 */
TEST_F(folio_exclusive, write_to_last_page)
{
	struct memory *m = &self->memory;
	unsigned int last = m->pages - 1;
	char *at = m->at + bytes(last);
	pid_t child = waiting_child(self->go, NULL, m);
	unsigned long before = pfn_of(at);

	ASSERT_LT(0, child);
	close(self->go[0]);
	close(self->go[1]);
	EXPECT_EQ(0, child_of(child));
	ASSERT_EQ(0, madvise(m->at, bytes(last), MADV_DONTNEED));
	EXPECT_TRUE(pagemap_has(at, PM_MMAP_EXCLUSIVE));
	EXPECT_EQ(1, mappings(at));
	*at = pattern(last);
	EXPECT_EQ(variant->large, pfn_of(at) != before);
	EXPECT_TRUE(page_is(at, pattern(last)));
}

/*
 * The process that filled the folio exits, and then its child writes to each
 * page. The child is the only owner now. As in write_after_child, every kernel
 * reuses single pages, and a kernel that tracks owners also reuses the pages of
 * a large folio. An older kernel copies the pages of a large folio.
 */
TEST_F(folio_exclusive, write_after_parent)
{
	struct memory *m = &self->memory;
	char verdict = 0;
	pid_t middle;

	middle = fork();
	if (!middle) {
		pid_t child, owner = getpid();
		int outlives[2];

		memory_free(m);
		if (memory_map(m, ANON, m->order, variant->large ? 1 : cont_ptes()))
			_exit(1);
		if (pipe(outlives))
			_exit(1);
		child = fork();
		if (child) {
			close(outlives[1]);
			_exit(child < 0 || read(outlives[0], &verdict, 1));
		}
		prctl(PR_SET_PDEATHSIG, 0);
		close(outlives[1]);
		while (getppid() == owner)
			usleep(1000);
		verdict = right_copies(m, copied(m)) ? 'y' : 'n';
		_exit(write(self->go[1], &verdict, 1) != 1);
	}
	close(self->go[1]);
	EXPECT_EQ(0, child_of(middle));
	EXPECT_EQ(1, read(self->go[0], &verdict, 1));
	EXPECT_EQ('y', verdict);
	close(self->go[0]);
}

/*
 * While a child also maps a page, move_pages() does not move the page and
 * reports -EACCES for it. After the child has exited, move_pages() moves the
 * page.
 */
TEST_F(folio_exclusive, move_pages)
{
	struct memory *m = &self->memory;
	int here = move_page(m->at, NULL), there = !here;
	pid_t child;

	if (move_page(m->at, &there) == -ENODEV)
		SKIP(return, "needs two NUMA nodes");
	EXPECT_EQ(there, move_page(m->at, NULL));
	child = waiting_child(self->go, NULL, m);
	ASSERT_LT(0, child);
	EXPECT_EQ(-EACCES, move_page(m->at, &here));
	EXPECT_EQ(there, move_page(m->at, NULL));
	close(self->go[0]);
	close(self->go[1]);
	EXPECT_EQ(0, child_of(child));
	EXPECT_EQ(here, move_page(m->at, &here));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_TRUE(page_is(m->at + bytes(page), pattern(page)));
}

/*
 * A child maps half of the pages. Pss counts a shared page as half a page.
 * Shared_Dirty and Private_Dirty each count half of the pages. After the child
 * has exited, all pages are private.
 */
TEST_F(folio_exclusive, smaps_of_part)
{
	struct memory *m = &self->memory;
	pid_t child = waiting_child(self->go, unmap_odd_pages, m);
	long half = m->pages / 2;

	ASSERT_LT(0, child);
	EXPECT_EQ(m->pages, smaps_pages(m->at, "Rss"));
	EXPECT_EQ(half, smaps_pages(m->at, "Shared_Dirty"));
	EXPECT_EQ(half, smaps_pages(m->at, "Private_Dirty"));
	EXPECT_EQ(half + half / 2, smaps_pages(m->at, "Pss"));
	close(self->go[0]);
	close(self->go[1]);
	EXPECT_EQ(0, child_of(child));
	EXPECT_EQ(m->pages, smaps_pages(m->at, "Private_Dirty"));
}

FIXTURE(folio_exclusive_huge)
{
	struct memory memory;
	int go[2];
};

FIXTURE_SETUP(folio_exclusive_huge)
{
	size_t size = read_pmd_pagesize();
	const char *why;

	self->memory.fd = -1;
	if (!size || size > 64 << 20)
		SKIP(return, "no huge pages that fit into this machine");
	why = folio_settings(order_of(size / psize()));
	if (!why)
		why = memory_map(&self->memory, ANON, order_of(size / psize()), 1);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(folio_exclusive_huge)
{
	memory_free(&self->memory);
}

/*
 * Up to four children share a huge page, and then exit. One PMD maps the huge
 * page in each process. While the parent is the only process, each page is
 * exclusive. While there is a child, no page is exclusive. kpagecount is always
 * the number of processes. In the end one PMD still maps the huge page.
 */
TEST_F_TIMEOUT(folio_exclusive_huge, processes_come_and_go, 60)
{
	come_and_go(_metadata, &self->memory);
	EXPECT_EQ(self->memory.pages, smaps_pages(self->memory.at, "AnonHugePages"));
}

/*
 * Returns whether pagemap reports the state of the first page for all pages.
 * This state is wrong for half of the pages.
 */
static bool answered_by_first_page(int go[2], struct memory *m)
{
	pid_t child = waiting_child(go, unmap_odd_pages, m);
	bool first = mappings(m->at) == 1;
	unsigned int alike = 0, wrong = 0;

	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);

		alike += pagemap_has(at, PM_MMAP_EXCLUSIVE) == first;
		wrong += (mappings(at) == 1) != first;
	}
	return end_child(child) && alike == m->pages && wrong == m->pages / 2;
}

/*
 * In the parent, one PMD maps a huge page. In a child, PTEs map only the even
 * pages of this huge page. pagemap must report for each page separately whether
 * this page is exclusive. Commit 2c1f057e5be6 ("fs/proc/task_mmu: properly
 * detect PM_MMAP_EXCLUSIVE per page of PMD-mapped THPs") fixed a bug here, but
 * 7.3 has it again. Known issue 11: pagemap reports the state of the first page
 * for all pages.
 */
TEST_F_TIMEOUT(folio_exclusive_huge, child_unmaps_part, 60)
{
	if (answered_by_first_page(self->go, &self->memory)) {
		KNOWN_ISSUE(11, "pagemap gives all pages of a huge page the first page's answer");
		return;
	}
	unmap_part(_metadata, self->go, &self->memory);
	EXPECT_EQ(self->memory.pages, smaps_pages(self->memory.at, "AnonHugePages"));
	STALE_ISSUE(11);
}

TEST_HARNESS_MAIN
