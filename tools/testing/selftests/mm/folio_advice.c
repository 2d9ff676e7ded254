// SPDX-License-Identifier: GPL-2.0
/*
 * Operations that depend on whether the kernel considers a folio shared: advice
 * on part of a large folio, collapses by khugepaged, and moves of KSM pages.
 *
 * Proves: advice on part of a folio splits the folio if the kernel considers it
 * private to one process. Otherwise advice changes nothing. Advice on a whole
 * folio does not split it. The exception is MADV_PAGEOUT in a kernel that can
 * swap only single pages. Linux 6.15 and later track at most two of the
 * processes that map a folio. If only one process still maps a folio, and this
 * process is not tracked, these kernels consider the folio shared. Older
 * kernels look only at the first page of the folio. They overlook a process
 * that maps only later pages. khugepaged counts the pages in folios that it
 * considers shared. It makes a huge page if this number is max_ptes_shared, but
 * not if the number is higher by one. A KSM page that one process maps twice
 * counts as shared. The zero page never counts as private. The memory of other
 * processes always keeps its content.
 *
 * Does not prove: how the kernel counts mappings (KUnit: folio_mapped_*).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_advice
 */
#include "folio_owner.h"
#include "folio_state.h"

FIXTURE(folio_advice)
{
	struct memory memory;
	int go[2];
};

FIXTURE_VARIANT(folio_advice)
{
	int advice;
};

FIXTURE_VARIANT_ADD(folio_advice, cold)
{
	.advice = MADV_COLD,
};

FIXTURE_VARIANT_ADD(folio_advice, pageout)
{
	.advice = MADV_PAGEOUT,
};

FIXTURE_VARIANT_ADD(folio_advice, free)
{
	.advice = MADV_FREE,
};

/* How many folios of this order the kernel has split so far, or -1 on failure. */
static long splits(const struct memory *m)
{
	return folio_statistic(1U << m->order, "split");
}

FIXTURE_SETUP(folio_advice)
{
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (why)
		SKIP(return, "%s", why);
	if (folio_owners == OWNERS_UNKNOWN)
		SKIP(return, "CONFIG_KALLSYMS_ALL=n: cannot tell if the kernel tracks owners");
	if (!have_swap())
		SKIP(return, "no swap");
	why = memory_map(&self->memory, ANON, order, 1);
	if (why)
		SKIP(return, "%s", why);
	if (splits(&self->memory) < 0)
		SKIP(return, "no counter of split folios in sysfs");
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(folio_advice)
{
	memory_free(&self->memory);
}

/* Call madvise() on some pages. Returns the number of folios that the call split, or -1. */
static long split_by(const struct memory *m, int advice, unsigned int first, unsigned int pages)
{
	long before = splits(m);

	if (madvise(m->at + bytes(first), bytes(pages), advice))
		return -1;
	return splits(m) - before;
}

static int split_half(struct memory *m, int advice)
{
	return split_by(m, advice, m->pages / 4, m->pages / 2);
}

static bool is_large(const char *at)
{
	return kernel_flags(at) & (FOLIO_HEAD | FOLIO_TAIL);
}

/*
 * The test gives advice on the middle half of a folio that no other process
 * maps. The kernel splits the folio, and applies the advice only to this half:
 * MADV_FREE makes its pages lazyfree, and MADV_PAGEOUT removes its pages from
 * memory.
 */
TEST_F(folio_advice, part_alone)
{
	struct memory *m = &self->memory;
	unsigned int first = m->pages / 4, half = m->pages / 2;

	EXPECT_EQ(1, split_by(m, variant->advice, first, half));
	EXPECT_FALSE(is_large(m->at));
	EXPECT_FALSE(is_large(m->at + bytes(first + half)));
	/*
	 * MADV_FREE collects pages in a batch, and the kernel marks them as
	 * lazyfree later. Another call of madvise() makes the kernel mark them
	 * at once.
	 */
	ASSERT_EQ(0, madvise(m->at, bytes(1), MADV_COLD));
	EXPECT_EQ(variant->advice == MADV_FREE ? half : 0, smaps_pages(m->at, "LazyFree"));
	for (unsigned int page = 0; page < m->pages; page++) {
		bool away = variant->advice == MADV_PAGEOUT && page >= first &&
			    page < first + half;

		EXPECT_EQ(!away, pagemap_has(m->at + bytes(page), PM_PRESENT)) {
			TH_LOG("page %u", page);
		}
	}
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/*
 * A child maps the whole folio too. Advice on the middle half of the folio does
 * not split it, and makes no page lazyfree.
 */
TEST_F(folio_advice, part_beside_child)
{
	struct memory *m = &self->memory;
	pid_t child = waiting_child(self->go, NULL, m);

	ASSERT_LT(0, child);
	EXPECT_EQ(0, split_by(m, variant->advice, m->pages / 4, m->pages / 2));
	EXPECT_TRUE(is_folio(m, 0));
	EXPECT_EQ(0, smaps_pages(m->at, "LazyFree"));
	ASSERT_TRUE(end_child(child));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/*
 * One child maps the folio and exits. Then two more children map the folio and
 * exit. Now only the parent maps it, so advice on its middle half splits it.
 */
TEST_F(folio_advice, part_after_children)
{
	struct memory *m = &self->memory;
	pid_t child = waiting_child(self->go, NULL, m), other;

	ASSERT_TRUE(end_child(child));
	child = waiting_child(self->go, NULL, m);
	ASSERT_LT(0, child);
	other = waiting_child(self->go, NULL, m);
	ASSERT_TRUE(end_child(child));
	ASSERT_TRUE(end_child(other));
	EXPECT_EQ(1, split_by(m, variant->advice, m->pages / 4, m->pages / 2));
	EXPECT_FALSE(is_large(m->at));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* Unmap everything except for the last quarter of the last folio. */
static void keep_last_quarter(struct memory *m)
{
	munmap(m->at, bytes(m->pages - (1U << m->order) / 4));
}

/*
 * The parent drops the second half of the folio, and a child maps only the last
 * quarter. The folio does not have more mappings than pages, so an older kernel
 * looks at the first page of the folio. Only the parent maps this page, so the
 * kernel considers the folio private and splits it. A kernel that tracks owners
 * does not split the folio. The child's pages keep their content.
 */
TEST_F(folio_advice, part_beside_child_behind_first_page)
{
	struct memory *m = &self->memory;
	unsigned int half = m->pages / 2, quarter = m->pages / 4;
	pid_t child = waiting_child(self->go, keep_last_quarter, m);
	char *copy = malloc(bytes(quarter));
	struct iovec to = { copy, bytes(quarter) };
	struct iovec from = { m->at + bytes(m->pages - quarter), bytes(quarter) };

	ASSERT_LT(0, child);
	ASSERT_EQ(0, madvise(m->at + bytes(half), bytes(half), MADV_DONTNEED));
	EXPECT_EQ(folio_owners == OWNERS_GUESSED, split_by(m, variant->advice, 0, quarter));
	ASSERT_EQ(bytes(quarter), process_vm_readv(child, &to, 1, &from, 1, 0));
	EXPECT_EQ(-1, foreign_page(copy, m->pages - quarter, quarter));
	EXPECT_EQ(-1, foreign_page(m->at, 0, half));
	ASSERT_TRUE(end_child(child));
	free(copy);
}

/*
 * Three processes have mapped the folio, and only the third process still maps
 * it. A kernel that tracks owners tracks only two processes. It considers the
 * folio shared, and does not split it. An older kernel looks at the first page.
 * It splits the folio, which is correct here because no other process maps the
 * folio.
 */
TEST_F(folio_advice, part_of_third_process)
{
	EXPECT_EQ(folio_owners == OWNERS_GUESSED,
		  ask_third(self->go, &self->memory, split_half, variant->advice));
}

/*
 * MADV_COLD and MADV_FREE on a whole folio do not split it, and MADV_FREE makes
 * all its pages lazyfree. MADV_PAGEOUT swaps out the whole folio. It splits the
 * folio only if the kernel cannot swap large folios.
 */
TEST_F(folio_advice, whole_alone)
{
	struct memory *m = &self->memory;

	EXPECT_EQ(variant->advice == MADV_PAGEOUT && !swaps_large(),
		  split_by(m, variant->advice, 0, m->pages));
	EXPECT_EQ(variant->advice == MADV_FREE ? m->pages : 0, smaps_pages(m->at, "LazyFree"));
	EXPECT_EQ(variant->advice != MADV_PAGEOUT, is_folio(m, 0));
	EXPECT_EQ(variant->advice == MADV_PAGEOUT ? m->pages : 0, smaps_pages(m->at, "Swap"));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* A child maps the folio too. Advice on the whole folio changes nothing. */
TEST_F(folio_advice, whole_beside_child)
{
	struct memory *m = &self->memory;
	pid_t child = waiting_child(self->go, NULL, m);

	ASSERT_LT(0, child);
	EXPECT_EQ(0, split_by(m, variant->advice, 0, m->pages));
	EXPECT_TRUE(is_folio(m, 0));
	ASSERT_TRUE(end_child(child));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* Memory that the cases reclaim with MADV_PAGEOUT. */
FIXTURE(reclaimed)
{
	struct memory memory;
};

FIXTURE_SETUP(reclaimed)
{
	int order = order_of(cont_ptes());
	unsigned int folios = 1024 > 4U << order ? 1024U >> order : 4;
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (!why && !have_swap())
		why = "no swap";
	if (!why)
		why = memory_map(&self->memory, ANON, order, folios);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(reclaimed)
{
	memory_free(&self->memory);
}

/*
 * VmHWM is the largest VmRSS that a process ever had. If the kernel reclaims
 * memory of the process, VmRSS falls, but VmHWM does not. Each CPU counts pages
 * in batches, so the case accepts errors of up to half of the memory.
 */
TEST_F(reclaimed, peak_stays)
{
	long before = status_pages("VmRSS"), half = self->memory.pages / 2;

	ASSERT_EQ(0, madvise(self->memory.at, bytes(self->memory.pages), MADV_PAGEOUT));
	ASSERT_GT(before - half, status_pages("VmRSS")) {
		TH_LOG("reclaim took less than half of the memory");
	}
	EXPECT_LT(before - half, status_pages("VmHWM"));
}

/*
 * A write after MADV_FREE survives reclaim. The writes before MADV_FREE leave
 * dirty entries in the TLB, and MADV_FREE must flush them. Otherwise the later
 * writes set no dirty bit, and reclaim drops the pages.
 */
TEST_F(reclaimed, write_after_free)
{
	struct memory *m = &self->memory;
	unsigned int pages = m->pages < 64 ? m->pages : 64;

	for (unsigned int page = 0; page < pages; page++)
		m->at[bytes(page)] = pattern(page);
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
	for (unsigned int page = 0; page < pages; page++)
		m->at[bytes(page)] = 0x55;
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	DID(m->pages - smaps_pages(m->at, "Rss"), "pages reclaimed");
	for (unsigned int page = 0; page < pages; page++) {
		EXPECT_EQ(0x55, m->at[bytes(page)]) {
			TH_LOG("page %u", page);
		}
	}
}

/*
 * MADV_FREE on swapped-out memory frees its swap slots, so SwapFree grows by
 * the number of these slots. The case requires only half of this growth, since
 * other processes may swap at the same time.
 */
TEST_F(reclaimed, free_in_swap)
{
	struct memory *m = &self->memory;
	long before, out;

	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	out = smaps_pages(m->at, "Swap");
	ASSERT_LT(0, out);
	DID(out, "pages in swap");
	before = size_in("/proc/meminfo", "SwapFree");
	ASSERT_LE(0, before);
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
	EXPECT_EQ(0, smaps_pages(m->at, "Swap"));
	EXPECT_LT(before + out / 2, size_in("/proc/meminfo", "SwapFree"));
}

/* A range of smaller folios that khugepaged can collapse into a huge page. */
FIXTURE(khugepaged)
{
	struct memory memory;
	struct memory huge;
	int go[2];
};

FIXTURE_SETUP(khugepaged)
{
	size_t table = read_pmd_pagesize();
	struct memory *m = &self->memory;
	int order = order_of(cont_ptes());
	const char *why;

	m->fd = -1;
	if (!table || table > 64 << 20)
		SKIP(return, "no huge pages, or huge pages of more than 64 MiB");
	if (folio_owners == OWNERS_UNKNOWN)
		SKIP(return, "CONFIG_KALLSYMS_ALL=n: cannot tell if the kernel tracks owners");
	why = folio_settings(order);
	if (!why)
		why = memory_map(m, ANON, order, 2 * table / bytes(1U << order));
	if (why)
		SKIP(return, "%s", why);
	self->huge = *m;
	self->huge.at = (char *)(((unsigned long)m->at + table - 1) & -table);
	self->huge.pages = table / psize();
	/*
	 * Write the patterns again, since the pattern of a page depends on the
	 * page's number in the range.
	 */
	for (unsigned int page = 0; page < self->huge.pages; page++)
		memset(self->huge.at + bytes(page), pattern(page), bytes(1));
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(khugepaged)
{
	memory_free(&self->memory);
}

static long event_count(const char *name)
{
	char line[128];
	long value = -1;
	FILE *f = fopen("/proc/vmstat", "r");

	while (f && value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ' ')
			value = atol(line + strlen(name));
	if (f)
		fclose(f);
	return value;
}

enum collapse { NOTHING, COLLAPSED, EXCEEDED };

/*
 * Set max_ptes_shared to @limit, and let khugepaged scan the range. khugepaged
 * needs recent accesses to the range, and one writable page. Returns what
 * khugepaged did with the range.
 */
static enum collapse collapse(const struct memory *huge, unsigned int limit)
{
	long exceeded = event_count("thp_scan_exceed_share_pte");
	enum collapse result = NOTHING;
	struct thp_settings settings;

	thp_read_settings(&settings);
	for (int i = 0; i < NR_ORDERS; i++)
		settings.hugepages[i].enabled = THP_NEVER;
	settings.hugepages[order_of(huge->pages)].enabled = THP_MADVISE;
	settings.khugepaged = (struct khugepaged_settings){
		.defrag = true,
		.alloc_sleep_millisecs = 10,
		.scan_sleep_millisecs = 10,
		.max_ptes_none = huge->pages - 1,
		.max_ptes_swap = 0,
		.max_ptes_shared = limit,
		.pages_to_scan = 8 * huge->pages,
	};
	thp_write_settings(&settings);
	madvise(huge->at, bytes(huge->pages), MADV_HUGEPAGE);
	for (int i = 0; i < 200 && !result; i++) {
		huge->at[bytes(huge->pages - 1)] = pattern(huge->pages - 1);
		usleep(50000);
		if (smaps_pages(huge->at, "AnonHugePages") == huge->pages)
			result = COLLAPSED;
		else if (event_count("thp_scan_exceed_share_pte") != exceeded)
			result = EXCEEDED;
	}
	folio_settings(0);
	return result;
}

/* Unmap all folios of the range except the first two. */
static void keep_two_folios(struct memory *huge)
{
	munmap(huge->at + bytes(2U << huge->order), bytes(huge->pages - (2U << huge->order)));
}

/*
 * A child maps two folios of the range. If max_ptes_shared is the number of
 * pages in these two folios, khugepaged makes a huge page. If max_ptes_shared
 * is one less, khugepaged makes no huge page. The memory of both processes
 * keeps its content.
 */
TEST_F_TIMEOUT(khugepaged, max_ptes_shared, 60)
{
	struct memory *huge = &self->huge;
	unsigned int shared = 2U << huge->order;
	pid_t child = waiting_child(self->go, keep_two_folios, huge);
	char *copy = malloc(bytes(shared));
	struct iovec to = { copy, bytes(shared) }, from = { huge->at, bytes(shared) };

	ASSERT_LT(0, child);
	EXPECT_EQ(EXCEEDED, collapse(huge, shared - 1));
	EXPECT_TRUE(is_folio(huge, 0));
	EXPECT_EQ(COLLAPSED, collapse(huge, shared));
	EXPECT_EQ(-1, foreign_page(huge->at, 0, huge->pages));
	ASSERT_EQ(bytes(shared), process_vm_readv(child, &to, 1, &from, 1, 0));
	EXPECT_EQ(-1, foreign_page(copy, 0, shared));
	EXPECT_TRUE(end_child(child));
	free(copy);
}

/*
 * The parent drops the second half of the first folio. A child maps only the
 * last quarter of this folio. max_ptes_shared is 0. An older kernel does not
 * see that the folio is shared, and makes a huge page. A kernel that tracks
 * owners makes a huge page only after the child has exited.
 */
TEST_F_TIMEOUT(khugepaged, shared_behind_first_page, 60)
{
	unsigned int size = 1U << self->huge.order;
	struct memory *huge = &self->huge;
	/* The child keeps only the last quarter of the first folio. */
	struct memory first = { .at = huge->at, .pages = size, .order = huge->order };
	pid_t child;

	/* The child inherits only the first folio. */
	ASSERT_EQ(0, madvise(huge->at + bytes(size), bytes(huge->pages - size), MADV_DONTFORK));
	child = waiting_child(self->go, keep_last_quarter, &first);
	ASSERT_LT(0, child);
	ASSERT_EQ(0, madvise(huge->at + bytes(size), bytes(huge->pages - size), MADV_DOFORK));
	ASSERT_EQ(0, madvise(huge->at + bytes(size / 2), bytes(size / 2), MADV_DONTNEED));
	EXPECT_EQ(folio_owners == OWNERS_GUESSED ? COLLAPSED : EXCEEDED, collapse(huge, 0));
	EXPECT_EQ(-1, foreign_page(huge->at, 0, size / 2));
	EXPECT_EQ(-1, foreign_page(huge->at + bytes(size), size, huge->pages - size));
	EXPECT_TRUE(end_child(child));
	if (folio_owners == OWNERS_TRACKED)
		EXPECT_EQ(COLLAPSED, collapse(huge, 0));
}

/*
 * Single pages of one process. In one case KSM merges two of these pages. In
 * the other case all addresses map the zero page.
 */
FIXTURE(same_page)
{
	struct memory memory;
};

FIXTURE_SETUP(same_page)
{
	const char *why = folio_settings(0);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, ANON, 0, 4);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(same_page)
{
	memory_free(&self->memory);
}

/*
 * KSM merges two pages of one process. The merged page is mapped twice, so it
 * counts as shared and cannot be moved. A write to one of the two addresses
 * goes to a copy. After this write, only the other address maps the merged
 * page, and the merged page can be moved. A write to the other address also
 * goes to a copy.
 */
TEST_F_TIMEOUT(same_page, ksm, 60)
{
	struct memory *m = &self->memory;
	char *a = m->at, *b = m->at + bytes(2);
	int there = !move_page(a, NULL);
	unsigned long merged;

	if (access(FOLIO_KSM "run", W_OK))
		SKIP(return, "CONFIG_KSM=n");
	ASSERT_TRUE(ksm_merge(m, a, b, 0xee));
	merged = pfn_of(b);

	EXPECT_EQ(2, mappings(a));
	EXPECT_FALSE(pagemap_has(a, PM_MMAP_EXCLUSIVE));
	EXPECT_FALSE(pagemap_has(b, PM_MMAP_EXCLUSIVE));
	if (move_page(a, &there) != -ENODEV) {
		EXPECT_EQ(-EACCES, move_page(a, &there));
		EXPECT_EQ(!there, move_page(b, NULL));
	}
	memset(a, 0x11, bytes(1));
	EXPECT_NE(merged, pfn_of(a));
	EXPECT_EQ(merged, pfn_of(b));
	EXPECT_EQ(1, mappings(b));
	EXPECT_TRUE(pagemap_has(b, PM_MMAP_EXCLUSIVE));
	if (move_page(b, &there) != -ENODEV)
		EXPECT_EQ(there, move_page(b, NULL));
	merged = pfn_of(b);
	memset(b, 0x22, bytes(1));
	EXPECT_NE(merged, pfn_of(b));
	EXPECT_TRUE(page_is(a, 0x11));
	EXPECT_TRUE(page_is(b, 0x22));
	EXPECT_TRUE(page_is(m->at + bytes(1), pattern(1)));
}

/*
 * The test drops all pages and reads them, so all addresses map the zero page.
 * The zero page is not exclusive and cannot be moved, and Rss does not count
 * it. The first write to an address allocates a page there.
 */
TEST_F(same_page, zeros)
{
	struct memory *m = &self->memory;
	int there = !move_page(m->at, NULL);
	char *a = m->at, *b = m->at + bytes(1);

	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_DONTNEED));
	for (unsigned int page = 0; page < m->pages; page++)
		read_byte(m->at + bytes(page));
	EXPECT_EQ(pfn_of(a), pfn_of(b));
	EXPECT_FALSE(pagemap_has(a, PM_MMAP_EXCLUSIVE));
	EXPECT_EQ(0, smaps_pages(m->at, "Rss"));
	EXPECT_EQ(-EFAULT, move_page(a, &there));
	memset(a, 0x11, bytes(1));
	EXPECT_NE(pfn_of(a), pfn_of(b));
	EXPECT_TRUE(pagemap_has(a, PM_MMAP_EXCLUSIVE));
	EXPECT_EQ(1, smaps_pages(m->at, "Rss"));
	EXPECT_TRUE(page_is(b, 0));
}

TEST_HARNESS_MAIN
