// SPDX-License-Identifier: GPL-2.0
/*
 * The counters in /sys/kernel/mm/transparent_hugepage/hugepages-*kB/stats.
 *
 * Proves: each counter changes when Documentation/admin-guide/mm/transhuge.rst says so, by the
 * right number, and for the right size. No other counter changes. The two counters that are levels,
 * nr_anon and nr_anon_partially_mapped, go down again by the same number, on every way on which a
 * folio can vanish. If a folio only moves, no counter changes.
 *
 * How: a case reads all counters of all sizes, does one thing, and reads them again. Large folios
 * are switched on only while the case touches its own memory, so nobody else gets any.
 *
 * Does not prove: the counters of swap, files and memory cgroups (folio_counters_swap tests
 * them), and of khugepaged (collapse_orders).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_counters
 */
#include "folio_counters.h"
#include "folio_owner.h"

/* include/uapi/asm-generic/mman-common.h; older headers lack this constant. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* How many folios the memory has. */
#define FOLIOS 2

FIXTURE(folio_counters)
{
	struct memory memory;
	struct counters before;
	int order;
	int fd;
};

/* @order: 0 stands for the order of a block, -1 for the order of a huge page */
FIXTURE_VARIANT(folio_counters)
{
	int order;
};

FIXTURE_VARIANT_ADD(folio_counters, four_pages)
{
	.order = 2,
};

FIXTURE_VARIANT_ADD(folio_counters, block)
{
	.order = 0,
};

FIXTURE_VARIANT_ADD(folio_counters, huge_page)
{
	.order = -1,
};

FIXTURE_SETUP(folio_counters)
{
	struct memory *m = &self->memory;
	const char *why;

	*m = (struct memory){ .fd = -1 };
	self->fd = -1;
	self->order = counters_order(variant->order);
	why = counters_allowed(self->order);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(stay_on_cpu());
	ASSERT_NE(MAP_FAILED, counters_reserve(m, ANON, self->order, FOLIOS));
	counters_read(&self->before);
	counters_touch(m);
	for (unsigned int page = 0; page < m->pages; page += 1U << m->order)
		ASSERT_TRUE(is_folio(m, page));
	DID(CHANGES(OWN("anon_fault_alloc", FOLIOS), OWN("nr_anon", FOLIOS)), "counters up");
}

FIXTURE_TEARDOWN(folio_counters)
{
	if (self->fd >= 0)
		close(self->fd);
	memory_free(&self->memory);
}

/* Write a line to the file that splits folios. Returns whether the kernel accepted it. */
static bool split_to(const char *at, unsigned int pages, const char *more)
{
	char line[128];

	snprintf(line, sizeof(line), "%d,0x%lx,0x%lx%s", getpid(), (unsigned long)at,
		 (unsigned long)at + bytes(pages), more);
	return !write_text("/sys/kernel/debug/split_huge_pages", line);
}

/* No case tests a counter that is new in this kernel. */
TEST_F(folio_counters, no_other_counter)
{
	unsigned int known = 0;
	char path[128];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), FOLIO_THP "/hugepages-%zukB/stats",
		 bytes(1U << self->order) >> 10);
	dir = opendir(path);
	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		EXPECT_TRUE(counter_is_known(entry->d_name)) {
			TH_LOG("no case tests the counter %s", entry->d_name);
		}
		known++;
	}
	closedir(dir);
	DID(known, "counters");
}

/* The folios are unmapped as a whole. */
TEST_F(folio_counters, munmap)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(0, munmap(m->at, bytes(m->pages)));
	DID(CHANGES(OWN("nr_anon", -FOLIOS)), "counters down");
}

/* MADV_DONTNEED drops one folio, and the next fault makes a new one. */
TEST_F(folio_counters, dontneed)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(0, madvise(m->at, bytes(m->pages / FOLIOS), MADV_DONTNEED));
	CHANGES(OWN("nr_anon", -1));
	counters_touch(m);
	DID(CHANGES(OWN("nr_anon", 1), OWN("anon_fault_alloc", 1)), "counters up");
}

/*
 * One page in the middle of each folio is unmapped. Then the rest of the first folio is unmapped,
 * and the second folio is split.
 */
TEST_F(folio_counters, partly_unmapped)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS, gone = size / 2, i;

	for (i = 0; i < FOLIOS; i++)
		ASSERT_EQ(0, munmap(m->at + bytes(i * size + gone), bytes(1)));
	CHANGES(OWN("split_deferred", FOLIOS), OWN("nr_anon_partially_mapped", FOLIOS));
	ASSERT_EQ(0, munmap(m->at + bytes(gone + 1), bytes(size - gone - 1)));
	SAME();
	ASSERT_EQ(0, munmap(m->at, bytes(gone)));
	CHANGES(OWN("nr_anon", -1), OWN("nr_anon_partially_mapped", -1));
	ASSERT_TRUE(split_to(m->at + bytes(size), size, ""));
	DID(CHANGES(OWN("split", 1), OWN("nr_anon", -1), OWN("nr_anon_partially_mapped", -1)),
	    "counters that changed with the split");
}

/*
 * A child inherits the folios. The parent writes to one page of the first folio, and the child to
 * one page of the second. Each writer gets a copy, a single page. When the child ends, nobody
 * maps the page of the first folio any longer.
 */
TEST_F(folio_counters, fork)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS;
	int go[2];
	pid_t child;

	ASSERT_EQ(0, pipe(go));
	child = waiting_child(go, NULL, m);
	ASSERT_LT(0, child);
	m->at[bytes(size / 2)] = pattern(size / 2);
	SAME();
	ASSERT_TRUE(end_child(child));
	CHANGES(OWN("split_deferred", 1), OWN("nr_anon_partially_mapped", 1));
	child = fork();
	if (!child) {
		m->at[bytes(size)] = 1;
		_exit(0);
	}
	ASSERT_EQ(0, child_of(child));
	SAME();
	ASSERT_EQ(0, munmap(m->at, bytes(m->pages)));
	DID(CHANGES(OWN("nr_anon", -FOLIOS), OWN("nr_anon_partially_mapped", -1)),
	    "counters down");
}

/* A child makes folios of its own, and ends. */
TEST_F(folio_counters, exit)
{
	pid_t child = fork();

	if (!child) {
		struct memory own;

		if (counters_reserve(&own, ANON, self->order, 1) == MAP_FAILED)
			_exit(1);
		counters_touch(&own);
		_exit(!is_folio(&own, 0));
	}
	ASSERT_EQ(0, child_of(child));
	DID(CHANGES(OWN("anon_fault_alloc", 1)), "counters up");
}

/* The folios are split into single pages. Known issue 8: see counters_queued(). */
TEST_F(folio_counters, split)
{
	struct memory *m = &self->memory;

	ASSERT_TRUE(split_to(m->at, m->pages, ""));
	CHANGES(OWN("split", FOLIOS), OWN("nr_anon", -FOLIOS), QUEUED(FOLIOS));
	ASSERT_TRUE(split_to(m->at, m->pages, ""));
	SAME();
	EXPECT_EQ(-1, foreign(m));
	ASSERT_EQ(0, munmap(m->at, bytes(m->pages)));
	SAME();
	DID(FOLIOS, "folios split");
}

/* The folios are split into folios of four pages. These are then unmapped. */
TEST_F(folio_counters, split_to_lower)
{
	struct memory *m = &self->memory;
	long parts = m->pages / 4;

	if (self->order <= 2)
		SKIP(return, "needs a folio of more than four pages");
	ASSERT_TRUE(split_to(m->at, m->pages, ",2"));
	CHANGES(OWN("split", FOLIOS), OWN("nr_anon", -FOLIOS), { "nr_anon", 2, parts },
		QUEUED(FOLIOS));
	EXPECT_EQ(-1, foreign(m));
	ASSERT_EQ(0, munmap(m->at, bytes(m->pages)));
	DID(CHANGES({ "nr_anon", 2, -parts }), "counters down");
}

/*
 * The second folio is split around its first page: into two folios of four pages, and one folio of
 * each larger order. These are then unmapped.
 */
TEST_F(folio_counters, split_unequally)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS;
	struct change up[COUNTER_ORDERS + 4] = { OWN("split", 1), OWN("nr_anon", -1), QUEUED(1) };
	struct change down[COUNTER_ORDERS + 3] = { OWN("nr_anon", -1) };
	unsigned int parts = 0;

	if (self->order <= 3)
		SKIP(return, "needs a folio of more than eight pages");
	if (!kernel_has("folio_split"))
		SKIP(return, "this kernel splits folios only into equal parts");
	for (int order = 2; order < self->order; order++, parts++) {
		up[3 + parts] = (struct change){ "nr_anon", order, order == 2 ? 2 : 1 };
		down[1 + parts] = (struct change){ "nr_anon", order, order == 2 ? -2 : -1 };
	}
	ASSERT_TRUE(split_to(m->at + bytes(size), 1, ",2,0"));
	counters_check(_metadata, &self->before, up, "split");
	m->order = 2;
	EXPECT_TRUE(is_folio(m, size));
	m->order = self->order - 1;
	EXPECT_TRUE(is_folio(m, size + size / 2));
	EXPECT_EQ(-1, foreign(m));
	ASSERT_EQ(0, munmap(m->at, bytes(m->pages)));
	DID(counters_check(_metadata, &self->before, down, "munmap"), "counters down");
}

/*
 * MADV_FREE of one page has to split the folio. The first folio is pinned, so it cannot be split.
 */
TEST_F(folio_counters, split_failed)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS;

	self->fd = pin(m->at, 1);
	if (self->fd < 0)
		SKIP(return, "no io_uring");
	SAME();
	ASSERT_EQ(0, madvise(m->at + bytes(1), bytes(1), MADV_FREE));
	CHANGES(OWN("split_failed", 1));
	ASSERT_EQ(0, madvise(m->at + bytes(size + 1), bytes(1), MADV_FREE));
	DID(CHANGES(OWN("split", 1), OWN("nr_anon", -1), QUEUED(1)),
	    "counters that changed with the split");
}

/* Reclaim drops folios after MADV_FREE. Nothing goes to swap. */
TEST_F(folio_counters, lazyfree)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
	SAME();
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	ASSERT_EQ(0, present(m, 0, m->pages));
	DID(CHANGES(OWN("nr_anon", -FOLIOS), PASSING(FOLIOS)), "counters down");
}

/* mprotect() and mlock() change the folios, and mremap() moves one. */
TEST_F(folio_counters, nothing)
{
	struct memory *m = &self->memory;
	unsigned int size = m->pages / FOLIOS;
	char *other;

	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ));
	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, mlock(m->at, bytes(m->pages)));
	ASSERT_EQ(0, munlock(m->at, bytes(m->pages)));
	SAME();
	/* Entries in two page tables would be unmapped in two steps. Here they are in one. */
	other = mmap(NULL, bytes(4 * size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, other);
	other = (char *)(((unsigned long)other + bytes(2 * size) - 1) & -bytes(2 * size));
	other += size < pmd_pages() ? bytes(1) : 0;
	ASSERT_EQ(other, mremap(m->at + bytes(size), bytes(size), bytes(size),
				MREMAP_MAYMOVE | MREMAP_FIXED, other));
	EXPECT_EQ(-1, foreign_page(other, size, size));
	SAME();
	ASSERT_EQ(0, munmap(other, bytes(size)));
	DID(CHANGES(OWN("nr_anon", -1)), "counters down");
}

/*
 * The first folio migrates to the other node.
 *
 * Known issue 8: the folio counts as partially mapped after that.
 */
TEST_F(folio_counters, migrate)
{
	struct memory *m = &self->memory;
	int node = move_page(m->at, NULL), to = !node;
	bool marks = m->pages / FOLIOS != pmd_pages();
	long parts = folio_statistic(1U << self->order, "nr_anon_partially_mapped");

	if (move_page(m->at, &to) == -ENODEV)
		SKIP(return, "needs two NUMA nodes");
	EXPECT_EQ(!node, move_page(m->at, NULL));
	EXPECT_TRUE(is_folio(m, 0));
	parts = folio_statistic(1U << self->order, "nr_anon_partially_mapped") - parts;
	if (marks && parts == 1) {
		CHANGES(OWN("split_deferred", 2), OWN("nr_anon_partially_mapped", 1));
		ASSERT_EQ(0, munmap(m->at, bytes(m->pages)));
		CHANGES(OWN("nr_anon", -FOLIOS), OWN("nr_anon_partially_mapped", -1));
		KNOWN_ISSUE(8, "a folio that was moved counts as partially mapped");
		return;
	}
	SAME();
	ASSERT_EQ(0, munmap(m->at, bytes(m->pages)));
	DID(CHANGES(OWN("nr_anon", -FOLIOS)), "counters down");
	if (marks)
		STALE_ISSUE(8);
}

/* A part of the first folio is unmapped. Before the folio migrates, the kernel splits it. */
TEST_F(folio_counters, migrate_part)
{
	struct memory *m = &self->memory;
	int node = move_page(m->at, NULL), to = !node;

	ASSERT_EQ(0, munmap(m->at + bytes(m->pages / FOLIOS / 2), bytes(1)));
	CHANGES(OWN("split_deferred", 1), OWN("nr_anon_partially_mapped", 1));
	if (move_page(m->at, &to) == -ENODEV)
		SKIP(return, "needs two NUMA nodes");
	EXPECT_EQ(!node, move_page(m->at, NULL));
	DID(CHANGES(OWN("split", 1), OWN("nr_anon", -1), OWN("nr_anon_partially_mapped", -1)),
	    "counters that changed with the migration");
}

/*
 * MADV_COLLAPSE makes one huge page of smaller folios, or of single pages. The smaller folios
 * vanish.
 */
TEST_F(folio_counters, collapse)
{
	unsigned int pages = pmd_pages();
	int huge = pages ? order_of(pages) : 0, small = self->order == huge ? 0 : self->order;
	struct memory m;

	if (!pages)
		SKIP(return, NO_HUGE_PAGES);
	ASSERT_NE(MAP_FAILED, counters_reserve(&m, ANON, huge, 1));
	m.order = small;
	counters_touch(&m);
	ASSERT_TRUE(is_folio(&m, 0));
	counters_read(&self->before);
	ASSERT_EQ(0, madvise(m.at, bytes(pages), MADV_COLLAPSE));
	ASSERT_EQ(pages, smaps_pages(m.at, "AnonHugePages"));
	DID(CHANGES({ "collapse_alloc", huge, 1 }, { "nr_anon", huge, 1 },
		    { "nr_anon", small ?: huge, small ? -(long)(pages >> small) : 0 },
		    PASSING(small ? pages >> small : 0)),
	    "counters that changed with the collapse");
	memory_free(&m);
	CHANGES({ "nr_anon", huge, -1 });
}

TEST_HARNESS_MAIN
