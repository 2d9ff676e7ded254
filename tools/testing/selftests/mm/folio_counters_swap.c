// SPDX-License-Identifier: GPL-2.0
/*
 * The counters in /sys/kernel/mm/transparent_hugepage/hugepages-*kB/stats that are about swap,
 * files in memory, and memory cgroups.
 *
 * Proves: swpout and swpin count folios that go to swap and come back as a whole. If swap has no
 * room for a whole folio, swpout_fallback counts the folio. shmem_alloc counts folios of files in
 * memory. If a memory cgroup has no room for a folio, the *_fallback and *_fallback_charge counters
 * count the folio. Each counter grows for the right size, and no other counter changes.
 *
 * How: as in folio_counters.c. The swap device is a RAM disk. One case makes it too small for a
 * folio: it writes a header with fewer pages. A child with a memory limit touches folios until one
 * folio does not fit.
 *
 * Does not prove: what zswap counts.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_counters_swap
 */
#include <sys/stat.h>

#include "folio_counters.h"

#define FOLIOS 2
#define DISK "/dev/ram0"
#define GROUP "/sys/fs/cgroup/folio_counters_swap"
/* The kernel charges this many pages in advance, so a limit may be exceeded by it. */
#define AHEAD 64
/* So many folios exceed the limit. */
#define MANY(size) (2 * AHEAD / (size) + 4)
/* How often to start a child that the kernel kills, because not even a single page fits. */
#define TRIES 5

FIXTURE(folio_counters_swap)
{
	struct memory memory;
	struct counters before;
	int order;
};

/* @order: 0 stands for the order of a block, -1 for the order of a huge page */
FIXTURE_VARIANT(folio_counters_swap)
{
	int order;
};

FIXTURE_VARIANT_ADD(folio_counters_swap, four_pages)
{
	.order = 2,
};

FIXTURE_VARIANT_ADD(folio_counters_swap, block)
{
	.order = 0,
};

FIXTURE_VARIANT_ADD(folio_counters_swap, huge_page)
{
	.order = -1,
};

FIXTURE_SETUP(folio_counters_swap)
{
	const char *why;

	self->memory = (struct memory){ .fd = -1 };
	self->order = counters_order(variant->order);
	why = counters_allowed(self->order);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(stay_on_cpu());
	counters_read(&self->before);
}

FIXTURE_TEARDOWN(folio_counters_swap)
{
	memory_free(&self->memory);
}

/* Whether the kernel can bring an anonymous folio of this order back from swap as a whole. */
static bool comes_back_whole(int order)
{
	return order < order_of(read_pmd_pagesize() / psize());
}

/* Read one byte of each folio, while the kernel may make folios of this order. */
static void read_folios(const struct memory *m)
{
	folio_settings(m->order);
	for (unsigned int page = 0; page < m->pages; page += 1U << m->order)
		read_byte(m->at + bytes(page));
	folio_settings(0);
}

/*
 * Anonymous folios go to swap. Then faults bring them back, except for huge pages: their pages come
 * back one by one.
 */
TEST_F(folio_counters_swap, anon)
{
	struct memory *m = &self->memory;

	if (!have_swap() || !swaps_large())
		SKIP(return, "large folios do not go to swap");
	ASSERT_NE(MAP_FAILED, counters_reserve(m, ANON, self->order, FOLIOS));
	counters_touch(m);
	CHANGES(OWN("anon_fault_alloc", FOLIOS), OWN("nr_anon", FOLIOS));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	ASSERT_EQ(m->pages, swapped_out(m));
	DID(CHANGES(OWN("swpout", FOLIOS), OWN("nr_anon", -FOLIOS)), "counters changed by swap");
	if (comes_back_whole(self->order)) {
		read_folios(m);
		for (unsigned int page = 0; page < m->pages; page += 1U << m->order)
			EXPECT_TRUE(is_folio(m, page));
		CHANGES(OWN("swpin", FOLIOS), OWN("nr_anon", FOLIOS));
		ASSERT_EQ(0, munmap(m->at, bytes(m->pages)));
		CHANGES(OWN("nr_anon", -FOLIOS));
		return;
	}
	EXPECT_EQ(-1, foreign(m));
	SAME();
}

/*
 * Swap has enough pages, but no aligned range of the size of a folio. So the kernel splits the
 * folio, and its pages go to swap one by one.
 */
TEST_F(folio_counters_swap, no_room)
{
	struct memory *m = &self->memory;
	unsigned int size = 1U << self->order, pages;

	if (!have_swap() || !swaps_large())
		SKIP(return, "large folios do not go to swap");
	ASSERT_NE(MAP_FAILED, counters_reserve(m, ANON, self->order, 1));
	counters_touch(m);
	CHANGES(OWN("anon_fault_alloc", 1), OWN("nr_anon", 1));
	ASSERT_EQ(0, swapoff(DISK));
	/* The first page has the header, and the last page is missing. */
	pages = swap_resize(DISK, 2 * size - 1);
	ASSERT_LT(0, pages);
	EXPECT_EQ(0, swapon(DISK, 0));
	EXPECT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	EXPECT_EQ(m->pages, swapped_out(m));
	DID(CHANGES(OWN("swpout_fallback", 1), OWN("split", 1), OWN("nr_anon", -1), QUEUED(1)),
	    "counters changed by swap");
	memory_free(m);
	EXPECT_EQ(0, swapoff(DISK));
	EXPECT_LT(0, swap_resize(DISK, pages));
	EXPECT_TRUE(have_swap());
}

/*
 * Folios of a file in memory go to swap, and come back. Then the file is truncated in the middle of
 * the second folio, which is split.
 */
TEST_F(folio_counters_swap, shmem)
{
	struct memory *m = &self->memory;
	unsigned int size = 1U << self->order, whole = 0;

	ASSERT_NE(MAP_FAILED, counters_reserve(m, SHMEM, self->order, FOLIOS));
	counters_touch(m);
	for (unsigned int page = 0; page < m->pages; page += size)
		ASSERT_TRUE(is_folio(m, page));
	DID(CHANGES(OWN("shmem_alloc", FOLIOS)), "counters up");
	if (have_swap() && swaps_large()) {
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
		ASSERT_EQ(m->pages, swapped_out(m));
		CHANGES(OWN("swpout", FOLIOS));
		read_folios(m);
		for (unsigned int page = 0; page < m->pages; page += size)
			whole += is_folio(m, page);
		/* 6.12 brings the pages back one by one. */
		EXPECT_TRUE(!whole || whole == FOLIOS);
		CHANGES(OWN("swpin", whole));
		EXPECT_EQ(-1, foreign(m));
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_REMOVE));
		counters_touch(m);
		CHANGES(OWN("shmem_alloc", FOLIOS));
	}
	ASSERT_EQ(0, ftruncate(m->fd, bytes(size + size / 2)));
	CHANGES(OWN("split", 1));
	memory_free(m);
	SAME();
}

/* What a child with a memory limit does. */
enum deed { FAULT, SHARED, SWAP_IN };

/* Open the file of a counter. */
static int counter_open(unsigned int pages, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), FOLIO_THP "/hugepages-%zukB/stats/%s", bytes(pages) >> 10,
		 name);
	return open(path, O_RDONLY);
}

/* Read a counter. In contrast to folio_statistic(), this needs no memory of the kernel. */
static long counter_read(int fd)
{
	char value[32] = "";

	return pread(fd, value, sizeof(value) - 1, 0) > 0 ? atol(value) : -1;
}

/*
 * In the child: touch folios until @counter grows. Only one and a half folios, and the pages that
 * the kernel charges in advance, fit into the memory cgroup. Returns an exit status.
 */
static int exceed(const FIXTURE_DATA(folio_counters_swap) * self, enum deed deed, int try,
		  const char *counter)
{
	unsigned int size = 1U << self->order, folios = MANY(size);
	int count = counter_open(size, counter), max = open(GROUP "/memory.max", O_WRONLY);
	long before = counter_read(count), now = before;
	struct memory m;
	char limit[32];

	if (count < 0 || max < 0 || write_text(GROUP "/cgroup.procs", "0") ||
	    write_text(GROUP "/memory.swap.max", deed == SWAP_IN ? "max" : "0") ||
	    counters_reserve(&m, deed == SHARED ? SHMEM : ANON, self->order, folios) == MAP_FAILED)
		return 2;
	if (deed == SWAP_IN) {
		counters_touch(&m);
		if (madvise(m.at, bytes(m.pages), MADV_PAGEOUT) || swapped_out(&m) != m.pages ||
		    write_text(GROUP "/memory.swap.max", "0"))
			return 3;
	}
	folio_settings(self->order);
	snprintf(limit, sizeof(limit), "%lu", read_num(GROUP "/memory.current") +
		 bytes(size + size / 2 + 5 + 3 * try));
	if (write(max, limit, strlen(limit)) < 0)
		return 4;
	for (unsigned int i = 0; i < folios && now == before; i++) {
		/* Reclaim may split huge pages with pages of zeros. */
		if (i && deed != SWAP_IN)
			memset(m.at + bytes((i - 1) * size), 1, bytes(size));
		if (deed == SWAP_IN)
			read_byte(m.at + bytes(i * size));
		else
			m.at[bytes(i * size)] = 1;
		now = counter_read(count);
	}
	if (write(max, "max", 3) < 0)
		return 5;
	folio_settings(0);
	return now == before;
}

/*
 * Let a child exceed the limit of a memory cgroup. The kernel kills the child if not even a single
 * page fits. Then try again with another limit. Returns the exit status of the child, or -1.
 */
static int child_exceeds(FIXTURE_DATA(folio_counters_swap) * self, enum deed deed,
			 const char *counter)
{
	int status = -1;

	write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	for (int try = 0; try < TRIES && (status < 0 || status > 128); try++) {
		pid_t child;

		if (mkdir(GROUP, 0755))
			return -1;
		counters_read(&self->before);
		child = fork();
		if (!child)
			_exit(exceed(self, deed, try, counter));
		status = child_of(child);
		rmdir(GROUP);
	}
	return status;
}

/* Some folios of anonymous memory fit, and one does not. */
TEST_F(folio_counters_swap, anon_charge)
{
	int status = child_exceeds(self, FAULT, "anon_fault_fallback_charge");

	if (status < 0)
		SKIP(return, "CONFIG_MEMCG=n, or no cgroup v2");
	ASSERT_EQ(0, status);
	DID(CHANGES(OWN("anon_fault_alloc", SOME), OWN("anon_fault_fallback", 1),
		    OWN("anon_fault_fallback_charge", 1)), "counters up");
}

/* Some folios of a file in memory fit, and one does not. */
TEST_F(folio_counters_swap, shmem_charge)
{
	int status = child_exceeds(self, SHARED, "shmem_fallback_charge");

	if (status < 0)
		SKIP(return, "CONFIG_MEMCG=n, or no cgroup v2");
	ASSERT_EQ(0, status);
	DID(CHANGES(OWN("shmem_alloc", SOME), OWN("shmem_fallback", 1),
		    OWN("shmem_fallback_charge", 1)), "counters up");
}

/* A folio that comes back from swap does not fit, so its pages come back one by one. */
TEST_F(folio_counters_swap, swap_charge)
{
	unsigned int folios = MANY(1U << self->order);
	int status;

	if (folio_statistic(1U << self->order, "swpin_fallback_charge") < 0)
		SKIP(return, "this kernel does not count folios that come back from swap");
	if (!have_swap() || !swaps_large() || !comes_back_whole(self->order))
		SKIP(return, "folios of this size do not come back from swap as a whole");
	status = child_exceeds(self, SWAP_IN, "swpin_fallback_charge");
	if (status < 0)
		SKIP(return, "CONFIG_MEMCG=n, or no cgroup v2");
	ASSERT_EQ(0, status);
	DID(CHANGES(OWN("anon_fault_alloc", folios), OWN("swpout", folios), OWN("swpin", SOME),
		    OWN("swpin_fallback", 1), OWN("swpin_fallback_charge", 1)), "counters up");
}

TEST_HARNESS_MAIN
