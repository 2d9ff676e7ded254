// SPDX-License-Identifier: GPL-2.0
/*
 * What NUMA balancing and memory policies do with runs of entries.
 *
 * Proves: NUMA balancing makes entries inaccessible to see which node uses
 * them. One fault per folio makes all of its entries accessible again, with
 * content and permission, in folded blocks. If the memory may be on the node of
 * the CPU, this fault moves all of it there. Neither the balancing nor mbind()
 * changes memory that the kernel takes for shared, or that cannot move.
 *
 * How: see folio_nodes.h.
 *
 * Does not prove: where runs of entries end (folio_hinting); where memory
 * should be, and how much balancing helps.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_numa
 */
#include "folio_nodes.h"

/* The first page that is not on the node, or -1. */
static int page_elsewhere(const struct memory *m, unsigned int first, unsigned int pages, int node)
{
	for (unsigned int page = first; page < first + pages; page++)
		if (move_page(m->at + bytes(page), NULL) != node)
			return page;
	return -1;
}

/* Whether the entry of a page has the right size, as far as perf can tell. */
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
	int order;		/* this much above a block's order */
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
		size_t size = read_pmd_pagesize();

		self->watched.memory.fd = -1;
		if (!size || size > LARGEST)
			SKIP(return, "no huge pages that fit into this machine");
		order = order_of(size / psize());
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
 * [contpte 209] All entries of the memory become hinting entries. One fault per
 * folio, in its middle or at its end, makes the whole folio accessible: no
 * other page of it faults. The folio has the same frames and folded blocks, and
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
 * [contpte 228] The memory may be on both nodes, and the CPU is on the other
 * one. The one hinting fault of a folio moves all of it, and it is mapped as
 * before.
 */
TEST_F_TIMEOUT(folio_numa, fault_moves_folio, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned int size = 1U << m->order;

	ASSERT_EQ(m->pages, hint(w));
	/*
	 * MPOL_MF_MOVE also drains the per-CPU lists of pages on the way to the
	 * LRU.
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

/* The number of large folios of this size that count as partially mapped. */
static long mapped_in_part(const struct memory *m)
{
	char path[128], value[32] = "-1";

	snprintf(path, sizeof(path), FOLIO_THP "/hugepages-%zukB/stats/nr_anon_partially_mapped",
		 bytes(1U << m->order) >> 10);
	read_file(path, value, sizeof(value));
	return atol(value);
}

/* Whether any folio is not split. */
static bool any_folio(const struct memory *m)
{
	for (unsigned int i = 0; i < m->pages; i += 1U << m->order)
		if (is_folio(m, i))
			return true;
	return false;
}

/*
 * [contpte 228] mbind() moves folios to the other node and back. A folio never
 * counts as partially mapped, so it stays whole, and it is mapped as before.
 * Known issue 8: the first move marks it as partially mapped, and the second
 * splits it.
 */
TEST_F_TIMEOUT(folio_numa, move_twice, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	unsigned int size = 1U << m->order;
	/*
	 * Single entries map it, and it is large enough for the list of folios
	 * to split.
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
		KNOWN_ISSUE(8, "a folio that was moved looks mapped in part");
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
 * Let a pipe hold a reference, not a pin, to the first page of each folio,
 * until the pipe is closed. Such memory cannot move, but the kernel notices
 * only after it has replaced the entries. 0 or -1.
 */
static int hold(const struct memory *m, int held[2])
{
	/* A pipe holds one page for each page of its size. */
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
 * [contpte 228] A folio with an extra reference cannot move, and stays where it
 * is. After the reference is dropped, the folio moves as a whole. Known issue
 * 8: the failed attempt marks it as partially mapped, so that the move splits
 * it.
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
		KNOWN_ISSUE(8, "a folio that could not move looks mapped in part");
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
 * Whether the balancing scans a huge page even if other processes map it, as
 * kernels before Linux 6.19 do.
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
 * [mapped 48] A child maps all folios too. The balancing leaves private folios
 * alone, since a write to them would copy, and scans shared memory. When the
 * child has exited, all entries become hinting entries, and each folio costs
 * one fault.
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

/* Half of each folio, or half of all single pages. */
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
 * [mapped 25, 48] One process maps the first half of each folio, another the
 * second half: no page is shared, but each folio is. A kernel that guesses by
 * the first page scans the folio, and a kernel that tracks owners does not.
 * Both scan single pages.
 */
TEST_F_TIMEOUT(folio_numa, hint_half_of_folio, 120)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	bool watched = variant->kind == SHMEM || !m->order || folio_owners == OWNERS_GUESSED;
	pid_t child = watched_child(w, keep_second_halves);

	if (folio_owners == OWNERS_UNKNOWN)
		SKIP(return, "CONFIG_KALLSYMS_ALL=n: no way to tell whether owners are tracked");
	ASSERT_LT(0, child);
	unmap_halves(m, 1);
	EXPECT_EQ(watched ? m->pages / 2 : 0, hint(w));
	for (unsigned int i = 0; i < m->pages; i += 2 * half_of(m))
		EXPECT_EQ(-1, foreign_page(m->at + bytes(i), i, half_of(m)));
	EXPECT_TRUE(end_child(child));
}

/*
 * [mapped 48] A driver pins one page: its folio cannot move, so the balancing
 * leaves its entries alone, and scans the others. Linux 6.12 checks that only
 * for single entries of private memory: it scans shared memory and huge pages
 * all the same.
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
 * [mapped 43] mbind(MPOL_MF_MOVE) leaves memory that a child maps too where it
 * is, and reports no failure. MPOL_MF_MOVE_ALL moves it. After the child has
 * exited, MPOL_MF_MOVE moves it too.
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
 * [mapped 25, 43] Two processes map one half of each folio each, as in
 * hint_half_of_folio. mbind() moves the folio if the kernel guesses that it
 * belongs to this process alone, although the child maps the other half. A
 * kernel that tracks owners leaves it.
 */
TEST_F_TIMEOUT(folio_numa, mbind_half_of_folio, 60)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;
	bool moved = !m->order || folio_owners == OWNERS_GUESSED;
	unsigned int half = half_of(m);
	pid_t child = watched_child(w, keep_second_halves);

	if (folio_owners == OWNERS_UNKNOWN)
		SKIP(return, "CONFIG_KALLSYMS_ALL=n: no way to tell whether owners are tracked");
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
 * [mapped 43] A folio with a pinned page cannot move: it stays, and mbind()
 * reports -EIO. All other folios move.
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

TEST_HARNESS_MAIN
