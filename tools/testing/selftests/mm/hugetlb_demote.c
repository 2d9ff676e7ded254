// SPDX-License-Identifier: GPL-2.0
/*
 * Demotion of hugetlb pages: the files demote and demote_size in sysfs.
 *
 * Proves: a demotion breaks only pages that no process has reserved. After it, a process can use
 * each page that it has reserved. demote_size accepts each smaller size of hugetlb pages, and no
 * other size.
 *
 * How: a pool has PAGES free pages, and a mapping reserves some of them. The test writes to demote,
 * and then to each page of the mapping. In the controls the kernel is not asked for too many pages.
 *
 * Does not prove: that the content of the new pages is zero, or what a demotion does to pages with
 * an optimized memory map (hugetlb_free_vmemmap).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_demote
 */
#include "folio_did.h"
#include "folio_known.h"
#include "hugetlb_pool.h"

#define PAGES 3
#define NODES 8

/* The demotion of one page of the second-smallest size. */
FIXTURE(hugetlb_demote)
{
	struct hugetlb_pool pool;
	struct hugetlb_pool smaller;	/* where the parts of a page go */
	size_t size;
};

/*
 * @reserved: pages of the mapping; @asked: pages that the kernel is asked to demote; @demoted:
 * pages that it may demote; @wrong: pages that a kernel with known issue 101 demotes, or 0
 */
FIXTURE_VARIANT(hugetlb_demote)
{
	int reserved;
	int asked;
	int demoted;
	int wrong;
	bool node;	/* write to the file of a node that has some free pages, but not all */
};

FIXTURE_VARIANT_ADD(hugetlb_demote, one_of_one)
{
	.reserved = PAGES - 1,
	.asked = 1,
	.demoted = 1,
};

FIXTURE_VARIANT_ADD(hugetlb_demote, all_of_one)
{
	.reserved = PAGES - 1,
	.asked = PAGES,
	.demoted = 1,
	.wrong = PAGES,
};

FIXTURE_VARIANT_ADD(hugetlb_demote, one_of_none)
{
	.reserved = PAGES,
	.asked = 1,
};

FIXTURE_VARIANT_ADD(hugetlb_demote, one_of_none_on_node)
{
	.reserved = PAGES,
	.asked = 1,
	.wrong = 1,
	.node = true,
};

FIXTURE(hugetlb_demote_size)
{
	size_t sizes[HUGETLB_SIZES];
	int nr;
	size_t of_table;	/* the size of memory that one PMD maps */
};

/* Returns the size in a file like demote_size, in bytes, or 0. */
static size_t read_size(size_t size)
{
	char path[120];
	size_t kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/demote_size",
		 size >> 10);
	f = fopen(path, "r");
	if (f && fscanf(f, "%zukB", &kib) != 1)
		kib = 0;
	if (f)
		fclose(f);
	return kib << 10;
}

/* Returns 0 or an error. */
static int write_size(size_t size, size_t smaller)
{
	char path[120], text[32];

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%zukB/demote_size",
		 size >> 10);
	snprintf(text, sizeof(text), "%zukB", smaller >> 10);
	errno = 0;
	return write_text(path, text) ? errno : 0;
}

FIXTURE_SETUP(hugetlb_demote)
{
	size_t smaller;
	const char *why;

	self->pool.folder[0] = 0;
	self->smaller.folder[0] = 0;
	self->size = hugetlb_size(1);
	if (!self->size)
		SKIP(return, "no such size of hugetlb");
	smaller = read_size(self->size);
	if (!smaller)
		SKIP(return, "pages of this size cannot be demoted, or not root");
	why = hugetlb_pool_have(&self->smaller, smaller, 0);
	if (!why)
		why = hugetlb_pool_have_just(&self->pool, self->size, PAGES);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(hugetlb_demote)
{
	hugetlb_pool_restore(&self->smaller);
	hugetlb_pool_restore(&self->pool);
}

FIXTURE_SETUP(hugetlb_demote_size)
{
	if (geteuid())
		SKIP(return, "needs root");
	self->nr = detect_hugetlb_page_sizes(self->sizes, HUGETLB_SIZES);
	self->of_table = psize() * psize() / sizeof(uint64_t);
}

FIXTURE_TEARDOWN(hugetlb_demote_size)
{
}

/* The folder of a node that has some free pages, but not all. Returns whether there is one. */
static bool find_node(const struct hugetlb_pool *pool, size_t size, struct hugetlb_pool *node)
{
	const unsigned long all = hugetlb_pool_count(pool, "free_hugepages");
	unsigned long some;

	for (int i = 0; i < NODES; i++) {
		snprintf(node->folder, sizeof(node->folder),
			 "/sys/devices/system/node/node%d/hugepages/hugepages-%zukB", i,
			 size >> 10);
		if (access(node->folder, F_OK))
			continue;
		some = hugetlb_pool_count(node, "free_hugepages");
		if (some && some < all)
			return true;
	}
	return false;
}

/*
 * A mapping reserves pages, and then the kernel is asked to demote pages. Only pages that are not
 * reserved become smaller pages. The process can write to each page of the mapping.
 *
 * Known issue 101: the kernel demotes as many pages as it is asked for if one page is not reserved.
 * For a node, it compares the free pages of the node with the reserved pages of all nodes. If these
 * are more, the difference wraps, and the kernel demotes a reserved page. Then fewer pages are left
 * than the mapping has, and the first access to the next page raises SIGBUS.
 */
TEST_F(hugetlb_demote, reserved_pages_stay)
{
	const size_t length = variant->reserved * self->size;
	struct hugetlb_pool at = self->pool;
	unsigned long before, parts;
	int demoted, written = 0, signal = 0;
	char *map;

	if (variant->node && !find_node(&self->pool, self->size, &at))
		SKIP(return, "needs free pages on two nodes");
	map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		   MAP_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(PAGES - variant->reserved, hugetlb_pool_left(&self->pool));
	before = hugetlb_pool_count(&self->pool, "nr_hugepages");
	parts = hugetlb_pool_count(&self->smaller, "nr_hugepages");
	hugetlb_pool_set(&at, "demote", variant->asked);
	demoted = before - hugetlb_pool_count(&self->pool, "nr_hugepages");
	parts = hugetlb_pool_count(&self->smaller, "nr_hugepages") - parts;
	EXPECT_EQ(demoted * (self->size / read_size(self->size)), parts);

	while (written < variant->reserved && !signal) {
		signal = try_access(map + written * self->size, true);
		written += !signal;
	}
	munmap(map, length);
	TH_LOG("%d of %d pages reserved, %d to be demoted: %d demoted, %d reserved pages written",
	       variant->reserved, PAGES, variant->asked, demoted, written);
	if (variant->wrong && demoted == variant->wrong) {
		EXPECT_EQ(PAGES - demoted, written);
		EXPECT_EQ(SIGBUS, signal);
		KNOWN_ISSUE(101, "a demotion takes pages that a process has reserved");
		return;
	}
	EXPECT_EQ(variant->demoted, demoted);
	EXPECT_EQ(variant->reserved, written);
	if (variant->wrong)
		STALE_ISSUE(101);
}

/*
 * For each size that can be demoted, demote_size accepts each smaller size and then shows it. It
 * refuses its own size, larger sizes, and a size that does not exist.
 *
 * Known issue 111: it refuses sizes below the size of a PMD with EINVAL, even a size that it shows.
 */
TEST_F(hugetlb_demote_size, accepts_smaller_sizes)
{
	int tried = 0, small = 0, refused = 0;

	for (int i = 0; i < self->nr; i++) {
		const size_t size = self->sizes[i], shown = read_size(size);

		if (!shown)
			continue;
		EXPECT_EQ(EINVAL, write_size(size, 3 * psize()));
		for (int j = 0; j < self->nr; j++) {
			const size_t other = self->sizes[j];
			int error = write_size(size, other);

			tried++;
			if (other >= size) {
				EXPECT_EQ(EINVAL, error);
			} else if (other < self->of_table) {
				small++;
				refused += error == EINVAL;
				EXPECT_TRUE(!error || error == EINVAL);
			} else {
				EXPECT_EQ(0, error);
			}
			if (!error)
				EXPECT_EQ(other, read_size(size));
		}
		/* If the kernel refuses to set this size, it has not changed. */
		write_size(size, shown);
		EXPECT_EQ(shown, read_size(size));
	}
	if (!tried)
		SKIP(return, "no size of hugetlb pages can be demoted");
	DID(tried, "sizes");
	TH_LOG("%d sizes below the size of a PMD, %d refused", small, refused);
	if (small && refused == small) {
		KNOWN_ISSUE(111, "demote_size refuses sizes below the size of a PMD");
		return;
	}
	EXPECT_EQ(0, refused);
	if (small)
		STALE_ISSUE(111);
}

TEST_HARNESS_MAIN
