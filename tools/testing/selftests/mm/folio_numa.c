// SPDX-License-Identifier: GPL-2.0
/*
 * The effect of NUMA balancing and memory policies on runs of page-table
 * entries.
 *
 * To find out which node uses the pages, NUMA balancing makes entries
 * inaccessible. These entries are called hinting entries.
 *
 * Proves: one fault per folio makes all hinting entries of the folio accessible
 * again. Content and permission are unchanged, and the blocks are folded. If
 * the memory policy allows the node of the CPU, this fault moves the whole
 * folio to this node. NUMA balancing and mbind(MPOL_MF_MOVE) do not change
 * memory that several processes map or that is pinned. The comments of the
 * cases name the exceptions.
 *
 * How: see folio_nodes.h.
 *
 * Does not prove: where a run of entries ends (folio_hinting tests this); which
 * node is best for memory; how much NUMA balancing helps.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_numa
 */
#include "folio_nodes.h"

/* The first page that is not on @node, or -1 if all pages are on it. */
static int page_elsewhere(const struct memory *m, unsigned int first, unsigned int pages, int node)
{
	for (unsigned int page = first; page < first + pages; page++)
		if (move_page(m->at + bytes(page), NULL) != node)
			return page;
	return -1;
}

/*
 * Whether the entry of a page has the expected size. If perf cannot show the
 * size, the function also returns true.
 */
static bool rightly_mapped(const struct memory *m, char *at)
{
	size_t size = bytes(1U << m->order), mapped = mapped_size(at);

	if (size != read_pmd_pagesize())
		size = bytes(has_contpte() && m->order ? cont_ptes() : 1);
	return !mapped || mapped == size;
}

FIXTURE(folio_numa)
{
	struct watched watched;
};

FIXTURE_VARIANT(folio_numa)
{
	enum memory_kind kind;
	int order;		/* SINGLE, PMD, or a number to add to a block's order */
};

#define SINGLE -1
#define PMD -2

FIXTURE_VARIANT_ADD(folio_numa, single_pages)
{
	.kind = ANON,
	.order = SINGLE,
};

FIXTURE_VARIANT_ADD(folio_numa, block)
{
	.kind = ANON,
	.order = 0,
};

FIXTURE_VARIANT_ADD(folio_numa, two_blocks)
{
	.kind = ANON,
	.order = 1,
};

FIXTURE_VARIANT_ADD(folio_numa, huge_page)
{
	.kind = ANON,
	.order = PMD,
};

FIXTURE_VARIANT_ADD(folio_numa, shmem)
{
	.kind = SHMEM,
	.order = 0,
};

FIXTURE_SETUP(folio_numa)
{
	int order = order_of(cont_ptes()) + variant->order;
	unsigned int folios = 2;
	const char *why;

	if (variant->order == SINGLE) {
		order = 0;
		folios = cont_ptes();
	} else if (variant->order == PMD) {
		self->watched.memory.fd = -1;
		if (!pmd_pages())
			SKIP(return, NO_HUGE_PAGES);
		order = order_of(pmd_pages());
		folios = 1;
	}
	why = watched_setup(&self->watched, variant->kind, order, folios);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_numa)
{
	memory_free(&self->watched.memory);
}

/*
 * All entries become hinting entries. Then the test reads a page in the middle
 * of the first folio, and the last page of each other folio. Each read causes
 * one fault, which makes the whole folio accessible. Reads of the folio's other
 * pages do not fault. The folio keeps its frames and has folded blocks, and
 * writes cost no fault.
 */
TEST_F_TIMEOUT(folio_numa, fault_restores_folio, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned int size = 1U << m->order;
	long huge = events("numa_huge_pte_updates");
	unsigned long pfn[2] = { pfn_of(m->at), pfn_of(m->at + bytes(m->pages - 1)) };
	long before;

	ASSERT_EQ(m->pages, hint(w));
	EXPECT_EQ(variant->order == PMD, events("numa_huge_pte_updates") - huge);
	for (unsigned int i = 0; i < m->pages; i += size) {
		char *at = m->at + bytes(i);

		EXPECT_EQ(1, read_pages(at + bytes(i ? size - 1 : size / 2), 1));
		EXPECT_EQ(0, read_pages(at, size));
		EXPECT_TRUE(rightly_mapped(m, at));
	}
	faults_begin(&before);
	for (unsigned int page = 0; page < m->pages; page++)
		m->at[bytes(page)] = pattern(page);
	EXPECT_EQ(0, faults() - before);
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	EXPECT_EQ(pfn[0], pfn_of(m->at));
	EXPECT_EQ(pfn[1], pfn_of(m->at + bytes(m->pages - 1)));
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/*
 * All entries are hinting entries. The policy allows both nodes, and the memory
 * is not on the node of the CPU. One hinting fault per folio moves the whole
 * folio to the node of the CPU. The folio is not split, and its entries have
 * the same size as before.
 */
TEST_F_TIMEOUT(folio_numa, fault_moves_folio, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned int size = 1U << m->order;

	ASSERT_EQ(m->pages, hint(w));
	/*
	 * MPOL_MF_MOVE also drains the per-CPU batches of pages that are not on
	 * the LRU lists yet.
	 */
	ASSERT_EQ(0, bind_to(m->at, m->pages, 1UL << w->here | 1UL << w->there, MPOL_MF_MOVE));
	ASSERT_EQ(-1, page_elsewhere(m, 0, m->pages, w->there));
	for (unsigned int i = 0; i < m->pages; i += size) {
		char *at = m->at + bytes(i);

		EXPECT_EQ(1, read_pages(at + bytes(size - 1), 1));
		EXPECT_EQ(-1, page_elsewhere(m, i, size, w->here));
		EXPECT_EQ(0, read_pages(at, size));
		EXPECT_TRUE(rightly_mapped(m, at));
		EXPECT_TRUE(is_folio(m, i));
	}
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/*
 * The value of one field in the line of numa_maps for the mapping at @at. @name
 * is "dirty" or "anon". If @name is "N", the field is the number of pages on
 * @node. Returns -1 if the line has no such number.
 */
static long numa_pages(const char *at, const char *name, int node)
{
	FILE *f = fopen("/proc/self/numa_maps", "r");
	char line[512], begin[32], word[32], *found;
	long value = -1;

	snprintf(begin, sizeof(begin), "%lx ", (unsigned long)at);
	snprintf(word, sizeof(word), node < 0 ? " %s=" : " %s%d=", name, node);
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, begin, strlen(begin)))
			continue;
		found = strstr(line, word);
		value = found ? atol(found + strlen(word)) : -1;
	}
	if (f)
		fclose(f);
	return value;
}

/*
 * /proc/PID/numa_maps says on which node the pages are and how many of them are
 * dirty. It counts each page of a folio exactly once.
 */
TEST_F(folio_numa, numa_maps)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;

	EXPECT_EQ(m->pages, numa_pages(m->at, "N", w->there));
	EXPECT_EQ(-1, numa_pages(m->at, "N", w->here));
	EXPECT_EQ(m->pages, numa_pages(m->at, "dirty", -1));
	if (variant->kind == ANON)
		EXPECT_EQ(m->pages, numa_pages(m->at, "anon", -1));
	DID(m->pages, "pages on the other node");
}

/* The number of folios of order m->order that count as partially mapped. */
static long mapped_in_part(const struct memory *m)
{
	return folio_statistic(1U << m->order, "nr_anon_partially_mapped");
}

/* Whether at least one folio is still whole. */
static bool any_folio(const struct memory *m)
{
	for (unsigned int i = 0; i < m->pages; i += 1U << m->order)
		if (is_folio(m, i))
			return true;
	return false;
}

/*
 * mbind() moves folios to the other node and back. After the first move no
 * folio counts as partially mapped. After both moves each folio is whole, and
 * its entries have the same size as before. Known issue 8: the first move marks
 * the folio as partially mapped, and the second move splits it.
 */
TEST_F_TIMEOUT(folio_numa, move_twice, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned int size = 1U << m->order;
	/*
	 * Known issue 8 affects only PTE-mapped folios that are large enough
	 * for the deferred split queue.
	 */
	bool may_split = variant->kind == ANON && m->order > 1 &&
			 bytes(size) != read_pmd_pagesize();
	long before = mapped_in_part(m), after;

	ASSERT_EQ(0, bind_to(m->at, m->pages, 1UL << w->here, MPOL_MF_MOVE | MPOL_MF_STRICT));
	EXPECT_EQ(-1, page_elsewhere(m, 0, m->pages, w->here));
	after = mapped_in_part(m);
	for (unsigned int i = 0; i < m->pages; i += size) {
		EXPECT_TRUE(is_folio(m, i));
		EXPECT_TRUE(rightly_mapped(m, m->at + bytes(i)));
	}
	ASSERT_EQ(0, bind_to(m->at, m->pages, 1UL << w->there, MPOL_MF_MOVE | MPOL_MF_STRICT));
	EXPECT_EQ(-1, page_elsewhere(m, 0, m->pages, w->there));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	if (may_split && after - before == m->pages >> m->order && !any_folio(m)) {
		KNOWN_ISSUE(8, "a folio that was moved counts as partially mapped");
		return;
	}
	EXPECT_EQ(before, after);
	if (may_split && before == after)
		STALE_ISSUE(8);
	for (unsigned int i = 0; i < m->pages; i += size) {
		EXPECT_TRUE(is_folio(m, i));
		EXPECT_TRUE(rightly_mapped(m, m->at + bytes(i)));
	}
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/*
 * Put the first page of each folio into a pipe, which holds a reference (not a
 * pin) to the page until the pipe is closed. The folio cannot move, but the
 * kernel notices this only after it has replaced the entries of the folio.
 * Returns 0 or -1.
 */
static int hold(const struct memory *m, int held[2])
{
	/* A pipe with a size of N pages can hold N pages. */
	if (pipe(held) || fcntl(held[1], F_SETPIPE_SZ, bytes(m->pages >> m->order)) < 0)
		return -1;
	for (unsigned int i = 0; i < m->pages; i += 1U << m->order) {
		struct iovec first = { m->at + bytes(i), bytes(1) };

		if (vmsplice(held[1], &first, 1, SPLICE_F_NONBLOCK) != (ssize_t)bytes(1))
			return -1;
	}
	return 0;
}

/*
 * Each folio has an extra reference, so mbind() fails. The folios stay on their
 * node, and are mapped as before. After the references are dropped, mbind()
 * moves each folio without splitting it. Known issue 8: the failed attempt
 * marks a folio as partially mapped, and the later move splits it.
 */
TEST_F_TIMEOUT(folio_numa, move_fails, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned int size = 1U << m->order;
	bool may_split = variant->kind == ANON && m->order > 1 &&
			 bytes(size) != read_pmd_pagesize();
	unsigned long pfn = pfn_of(m->at);
	long before = mapped_in_part(m), after;
	int held[2];

	ASSERT_EQ(0, hold(m, held));
	EXPECT_EQ(-EIO, bind_to(m->at, m->pages, 1UL << w->here, MPOL_MF_MOVE | MPOL_MF_STRICT));
	after = mapped_in_part(m);
	EXPECT_EQ(pfn, pfn_of(m->at));
	EXPECT_EQ(-1, page_elsewhere(m, 0, m->pages, w->there));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	for (unsigned int i = 0; i < m->pages; i += size) {
		EXPECT_TRUE(is_folio(m, i));
		EXPECT_TRUE(rightly_mapped(m, m->at + bytes(i)));
	}
	close(held[0]);
	close(held[1]);
	ASSERT_EQ(0, bind_to(m->at, m->pages, 1UL << w->here, MPOL_MF_MOVE | MPOL_MF_STRICT));
	EXPECT_EQ(-1, page_elsewhere(m, 0, m->pages, w->here));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	if (may_split && after - before == m->pages >> m->order && !any_folio(m)) {
		KNOWN_ISSUE(8, "a folio that could not move counts as partially mapped");
		return;
	}
	EXPECT_EQ(before, after);
	if (may_split && before == after)
		STALE_ISSUE(8);
	for (unsigned int i = 0; i < m->pages; i += size)
		EXPECT_TRUE(is_folio(m, i));
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/*
 * Whether NUMA balancing scans a huge page even if other processes map it.
 * Kernels before Linux 6.19 scan such huge pages.
 */
static bool looks_at_all_huge_pages(void)
{
	return !kernel_has("folio_can_map_prot_numa");
}

static void read_all(struct memory *m)
{
	read_pages(m->at, m->pages);
}

/*
 * A child maps all folios too. While the child runs, NUMA balancing does not
 * scan folios of private mappings, since a write to such a folio would copy
 * pages. NUMA balancing scans shared memory. Kernels before Linux 6.19 scan
 * huge pages of private mappings too. After the child has exited, all entries
 * become hinting entries, and each folio costs one hinting fault.
 */
TEST_F_TIMEOUT(folio_numa, hint_beside_child, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	bool watched = variant->kind == SHMEM ||
		(variant->order == PMD && looks_at_all_huge_pages());
	pid_t child = watched_child(w, read_all);

	ASSERT_LT(0, child);
	EXPECT_EQ(watched ? m->pages : 0, hint(w));
	EXPECT_EQ(watched ? m->pages >> m->order : 0, read_pages(m->at, m->pages));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	EXPECT_TRUE(end_child(child));
	EXPECT_EQ(m->pages, hint(w));
	EXPECT_EQ(m->pages >> m->order, read_pages(m->at, m->pages));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/*
 * The number of pages in half a folio. If the memory has only single pages, the
 * function returns the number of pages in half of the memory.
 */
static unsigned int half_of(const struct memory *m)
{
	return (m->order ? 1U << m->order : m->pages) / 2;
}

static void unmap_halves(struct memory *m, unsigned int from)
{
	unsigned int half = half_of(m);

	for (unsigned int i = from * half; i < m->pages; i += 2 * half)
		munmap(m->at + bytes(i), bytes(half));
}

static void keep_second_halves(struct memory *m)
{
	read_pages(m->at, m->pages);
	unmap_halves(m, 0);
}

/*
 * The parent maps the first half of each folio, and a child maps the second
 * half. So two processes map each folio, but only one process maps each page. A
 * kernel that tracks which processes map a folio does not scan such folios of
 * anonymous memory. An older kernel checks only the mapcount of the first page,
 * and so it scans these folios. Both kernels scan shared memory and single
 * pages.
 */
TEST_F_TIMEOUT(folio_numa, hint_half_of_folio, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	bool watched = variant->kind == SHMEM || !m->order || folio_owners == OWNERS_GUESSED;
	pid_t child = watched_child(w, keep_second_halves);

	if (folio_owners == OWNERS_UNKNOWN)
		SKIP(return, "CONFIG_KALLSYMS_ALL=n: cannot tell whether the kernel tracks owners");
	ASSERT_LT(0, child);
	unmap_halves(m, 1);
	EXPECT_EQ(watched ? m->pages / 2 : 0, hint(w));
	for (unsigned int i = 0; i < m->pages; i += 2 * half_of(m))
		EXPECT_EQ(-1, foreign_page(m->at + bytes(i), i, half_of(m)));
	EXPECT_TRUE(end_child(child));
}

/*
 * One page has a long-term pin, so its folio cannot move. NUMA balancing leaves
 * the entries of this folio alone, and scans all other folios. Linux 6.12
 * checks for pins only in private memory that PTEs map. It scans shared memory
 * and huge pages even if they are pinned.
 */
TEST_F_TIMEOUT(folio_numa, hint_beside_pin, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned int left = 1U << m->order;
	int fd = pin(m->at + bytes(left / 2), 1);

	if (fd < 0)
		SKIP(return, "no io_uring");
	if (looks_at_all_huge_pages() && (variant->kind == SHMEM || variant->order == PMD))
		left = 0;
	EXPECT_EQ(m->pages - left, hint(w));
	EXPECT_EQ((m->pages - left) >> m->order, read_pages(m->at, m->pages));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	close(fd);
}

/*
 * A child maps the memory too. mbind() with MPOL_MF_MOVE does not move the
 * memory, and reports no failure. mbind() with MPOL_MF_MOVE_ALL moves it. After
 * the child has exited, MPOL_MF_MOVE is enough to move it.
 */
TEST_F_TIMEOUT(folio_numa, mbind_beside_child, 60)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned long here = 1UL << w->here, there = 1UL << w->there;
	unsigned int strict_move = MPOL_MF_MOVE | MPOL_MF_STRICT;
	pid_t child = watched_child(w, read_all);

	ASSERT_LT(0, child);
	EXPECT_EQ(0, bind_to(m->at, m->pages, here, strict_move));
	EXPECT_EQ(-1, page_elsewhere(m, 0, m->pages, w->there));
	EXPECT_EQ(0, bind_to(m->at, m->pages, here, MPOL_MF_MOVE_ALL | MPOL_MF_STRICT));
	EXPECT_EQ(-1, page_elsewhere(m, 0, m->pages, w->here));
	EXPECT_TRUE(end_child(child));
	EXPECT_EQ(0, bind_to(m->at, m->pages, there, strict_move));
	EXPECT_EQ(-1, page_elsewhere(m, 0, m->pages, w->there));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/*
 * The parent maps the first half of each folio, and a child maps the second
 * half. The parent calls mbind() with MPOL_MF_MOVE. A kernel that tracks which
 * processes map a folio does not move the folio, since two processes map it. An
 * older kernel considers the folio private to the parent, and moves it. Both
 * kernels move single pages.
 */
TEST_F_TIMEOUT(folio_numa, mbind_half_of_folio, 60)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	bool moved = !m->order || folio_owners == OWNERS_GUESSED;
	unsigned int half = half_of(m);
	pid_t child = watched_child(w, keep_second_halves);

	if (folio_owners == OWNERS_UNKNOWN)
		SKIP(return, "CONFIG_KALLSYMS_ALL=n: cannot tell whether the kernel tracks owners");
	ASSERT_LT(0, child);
	unmap_halves(m, 1);
	for (unsigned int i = 0; i < m->pages; i += 2 * half) {
		EXPECT_EQ(0, bind_to(m->at + bytes(i), half, 1UL << w->here,
				     MPOL_MF_MOVE | MPOL_MF_STRICT));
		EXPECT_EQ(-1, page_elsewhere(m, i, half, moved ? w->here : w->there));
		EXPECT_EQ(-1, foreign_page(m->at + bytes(i), i, half));
	}
	EXPECT_TRUE(end_child(child));
}

/*
 * One page is pinned, so its folio cannot move: mbind() returns -EIO, and the
 * folio stays on its node. All other folios move.
 */
TEST_F_TIMEOUT(folio_numa, mbind_beside_pin, 60)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned int size = 1U << m->order;
	int fd = pin(m->at + bytes(size / 2), 1);

	if (fd < 0)
		SKIP(return, "no io_uring");
	EXPECT_EQ(-EIO, bind_to(m->at, m->pages, 1UL << w->here, MPOL_MF_MOVE | MPOL_MF_STRICT));
	EXPECT_EQ(-1, page_elsewhere(m, 0, size, w->there));
	EXPECT_EQ(-1, page_elsewhere(m, size, m->pages - size, w->here));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	close(fd);
}

/*
 * mbind() with MPOL_MF_STRICT alone moves nothing. It returns -EIO if a page is
 * not on the requested node, and otherwise 0.
 */
TEST_F(folio_numa, mbind_strict)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;

	EXPECT_EQ(-EIO, bind_to(m->at, m->pages, 1UL << w->here, MPOL_MF_STRICT));
	EXPECT_EQ(-1, page_elsewhere(m, 0, m->pages, w->there));
	EXPECT_EQ(0, bind_to(m->at, m->pages, 1UL << w->there, MPOL_MF_STRICT));
	DID(m->pages, "pages on the other node");
}

/*
 * The process drops one page of each folio, so two runs of entries map each
 * folio. mbind() moves all pages that are left, and reports no failure. When
 * mbind() reaches the second run of a folio, it must not count the folio as
 * unmovable.
 */
TEST_F_TIMEOUT(folio_numa, mbind_beside_hole, 60)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned int half = half_of(m), moved = 0;

	for (unsigned int i = half; i < m->pages; i += 2 * half)
		ASSERT_EQ(0, madvise(m->at + bytes(i), bytes(1), MADV_DONTNEED));
	EXPECT_EQ(0, bind_to(m->at, m->pages, 1UL << w->here, MPOL_MF_MOVE | MPOL_MF_STRICT));
	for (unsigned int i = 0; i < m->pages; i += half) {
		unsigned int hole = i / half % 2, left = half - hole;

		EXPECT_EQ(-1, page_elsewhere(m, i + hole, left, w->here));
		EXPECT_EQ(-1, foreign_page(m->at + bytes(i + hole), i + hole, left));
		moved += left;
	}
	DID(moved, "pages moved beside holes");
}

TEST_HARNESS_MAIN
