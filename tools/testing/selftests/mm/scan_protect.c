// SPDX-License-Identifier: GPL-2.0
/*
 * PAGEMAP_SCAN protects the pages that match the masks, and no other pages.
 *
 * Proves: a scan with PM_SCAN_WP_MATCHING protects each page that was written to and
 * matches the masks. It does not protect pages that were written to but do not match, and
 * later scans still report those pages. This holds with and without an output buffer.
 * After the next write to a protected page, a scan reports this page again. A scan that
 * reads all memory says so in walk_end. If a scan stops at a mapping that it must not
 * protect, this scan or the next scan reports all pages that were written to.
 *
 * How: one page table maps eight pages that count as written to: four pages of a file,
 * and four anonymous pages. The masks match the file pages or the anonymous pages. In one variant
 * the masks name a category that must be set, and in another variant a category that must not be
 * set. In a third variant the masks name two categories, and at least one of these categories must
 * be set. Then a second scan, which protects nothing, reports the pages that are not protected. A
 * fourth variant is a control: all pages match the masks.
 *
 * Does not prove: anything about huge pages (hugetlb_scan tests hugetlb pages).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=scan_protect
 */
#include <linux/fs.h>

#include "folio_listen.h"

/*
 * The first half of these pages belong to a file, and the second half are
 * anonymous.
 */
#define PAGES 8
#define ALL ((1U << PAGES) - 1)
#define OF_FILE ((1U << PAGES / 2) - 1)

/* Which pages a scan matches. */
struct masks {
	unsigned long inverted;
	unsigned long all_of;
	unsigned long any_of;
};

FIXTURE(scan_protect)
{
	char *at;
	int file;
	int uffd;
	int pagemap;
};

/*
 * @matching: the pages that match @masks, one bit for each page: bit N stands
 * for page N.
 */
FIXTURE_VARIANT(scan_protect)
{
	struct masks masks;
	unsigned int matching;
};

FIXTURE_VARIANT_ADD(scan_protect, category)
{
	.masks = { .all_of = PAGE_IS_WRITTEN | PAGE_IS_FILE },
	.matching = OF_FILE,
};

FIXTURE_VARIANT_ADD(scan_protect, not_category)
{
	.masks = { .inverted = PAGE_IS_FILE, .all_of = PAGE_IS_WRITTEN | PAGE_IS_FILE },
	.matching = ALL & ~OF_FILE,
};

FIXTURE_VARIANT_ADD(scan_protect, any_category)
{
	.masks = { .any_of = PAGE_IS_FILE | PAGE_IS_SWAPPED },
	.matching = OF_FILE,
};

/* The control variant: each page matches. */
FIXTURE_VARIANT_ADD(scan_protect, written)
{
	.masks = { .all_of = PAGE_IS_WRITTEN },
	.matching = ALL,
};

FIXTURE_SETUP(scan_protect)
{
	self->uffd = -1;
	self->pagemap = -1;
	self->file = memory_file(SHMEM, PAGES);
	ASSERT_LE(0, self->file);
	self->at = mmap(NULL, bytes(PAGES), PROT_READ | PROT_WRITE, MAP_PRIVATE, self->file, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	self->uffd = listener(UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED |
			      UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
	if (self->uffd < 0 || listen_to(self->uffd, self->at, bytes(PAGES)))
		SKIP(return, "no asynchronous write protection by userfaultfd");
	self->pagemap = open("/proc/self/pagemap", O_RDONLY);
	ASSERT_LE(0, self->pagemap);
}

FIXTURE_TEARDOWN(scan_protect)
{
	if (self->pagemap >= 0)
		close(self->pagemap);
	if (self->uffd >= 0)
		close(self->uffd);
	munmap(self->at, bytes(PAGES));
	close(self->file);
}

/*
 * fill() - map all pages, without protection
 *
 * The kernel counts a page of a file as written to until the page is protected,
 * even if the page was only read. A write to a page makes a private copy, which
 * is anonymous.
 */
static void fill(FIXTURE_DATA(scan_protect) * self)
{
	madvise(self->at, bytes(PAGES), MADV_DONTNEED);
	for (unsigned int page = 0; page < PAGES; page++) {
		if (OF_FILE & 1U << page)
			read_byte(self->at + bytes(page));
		else
			self->at[bytes(page)] = pattern(page);
	}
}

/*
 * scan_with() - scan at most PAGES pages, and report which of them were written to
 * @arguments: flags, start, end and masks; receives walk_end
 * @found: receives a bit mask of the pages that were found: bit N stands for
 *	page N. If @found is NULL, the scan has no output buffer.
 *
 * Return: 0, or -errno
 */
static int scan_with(int pagemap, struct pm_scan_arg *arguments, unsigned int *found)
{
	struct page_region regions[PAGES];
	int count;

	arguments->size = sizeof(*arguments);
	arguments->vec = found ? (unsigned long)regions : 0;
	arguments->vec_len = found ? PAGES : 0;
	arguments->return_mask = PAGE_IS_WRITTEN;
	count = ioctl(pagemap, PAGEMAP_SCAN, arguments);
	if (count < 0)
		return -errno;
	if (!found)
		return 0;
	*found = 0;
	for (int i = 0; i < count; i++)
		for (__u64 at = regions[i].start; at < regions[i].end; at += psize())
			*found |= 1U << (at - arguments->start) / psize();
	return 0;
}

/*
 * scan() - find the pages that match, and protect them if asked to
 * @protects: whether to protect the pages that match and were written to
 * @found: as for scan_with()
 *
 * Return: 0, or -errno
 */
static int scan(FIXTURE_DATA(scan_protect) * self, const struct masks *masks, bool protects,
		unsigned int *found)
{
	struct pm_scan_arg arguments = {
		.flags = (protects ? PM_SCAN_WP_MATCHING : 0) | PM_SCAN_CHECK_WPASYNC,
		.start = (unsigned long)self->at,
		.end = (unsigned long)self->at + bytes(PAGES),
		.category_inverted = masks->inverted,
		.category_mask = masks->all_of,
		.category_anyof_mask = masks->any_of,
	};

	return scan_with(self->pagemap, &arguments, found);
}

static const struct masks written_to = { .all_of = PAGE_IS_WRITTEN };

/*
 * A bit mask of the pages that a scan reports as written to: bit N stands for page N. The scan
 * protects no page.
 */
static unsigned int written(struct __test_metadata *_metadata, FIXTURE_DATA(scan_protect) * self)
{
	unsigned int found = 0;

	EXPECT_EQ(0, scan(self, &written_to, false, &found));
	return found;
}

/*
 * A scan with an output buffer reports the pages that match, and protects only these
 * pages. After a write to the first page and the last page, a scan reports both pages as written
 * to.
 */
TEST_F(scan_protect, with_buffer)
{
	unsigned int found;

	fill(self);
	ASSERT_EQ(ALL, written(_metadata, self));
	ASSERT_EQ(0, scan(self, &variant->masks, true, &found));
	EXPECT_EQ(variant->matching, found);
	DID(__builtin_popcount(found), "pages found");
	EXPECT_EQ(ALL & ~variant->matching, written(_metadata, self));
	self->at[0] = 1;
	self->at[bytes(PAGES - 1)] = 1;
	EXPECT_EQ((ALL & ~variant->matching) | 1U | 1U << (PAGES - 1), written(_metadata, self));
}

/*
 * A scan without an output buffer protects only the pages that match. Known issue 18:
 * it protects all pages of the page table.
 */
TEST_F(scan_protect, without_buffer)
{
	unsigned int left;

	fill(self);
	ASSERT_EQ(ALL, written(_metadata, self));
	ASSERT_EQ(0, scan(self, &variant->masks, true, NULL));
	left = written(_metadata, self);
	DID(PAGES - __builtin_popcount(left), "pages protected");
	if (variant->matching != ALL && !left) {
		KNOWN_ISSUE(18, "pages that do not match are protected");
		return;
	}
	EXPECT_EQ(ALL & ~variant->matching, left);
	if (variant->matching != ALL)
		STALE_ISSUE(18);
}

/* The kernel collects at most this many ranges before it copies them. */
#define COLLECTED 512U

/*
 * scan_all() - scan memory in which every second page is present
 * @ranges: how many pages are present
 * @end: receives the number of pages before walk_end
 *
 * Return: how many ranges the scan has found, or a negative number
 */
static int scan_all(unsigned int ranges, unsigned long *end)
{
	const size_t length = bytes(2 * ranges);
	struct page_region *regions = calloc(ranges, sizeof(*regions));
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pm_scan_arg arguments = {
		.size = sizeof(arguments),
		.start = (unsigned long)at,
		.end = (unsigned long)at + length,
		.vec = (unsigned long)regions,
		.vec_len = ranges,
		.category_mask = PAGE_IS_PRESENT,
		.return_mask = PAGE_IS_PRESENT,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY), count = -1;

	if (fd >= 0 && regions && at != MAP_FAILED && !madvise(at, length, MADV_NOHUGEPAGE)) {
		for (unsigned int i = 0; i < ranges; i++)
			at[bytes(2 * i)] = pattern(i);
		count = ioctl(fd, PAGEMAP_SCAN, &arguments);
		*end = (arguments.walk_end - arguments.start) / psize();
		munmap(at, length);
	}
	free(regions);
	close(fd);
	return count;
}

FIXTURE(long_scan)
{
	unsigned int ranges;	/* more than the kernel collects */
};

FIXTURE_SETUP(long_scan)
{
	unsigned long end;

	self->ranges = COLLECTED + 88;
	if (scan_all(1, &end) < 0)
		SKIP(return, "no PAGEMAP_SCAN");
}

FIXTURE_TEARDOWN(long_scan)
{
}

/*
 * A scan that finds all ranges sets walk_end to the end of the memory, whether
 * the kernel can collect all ranges at once or not.
 *
 * Known issue 76: if the kernel cannot collect all ranges at once, walk_end is
 * the address that the scan had reached when the kernel copied the first ranges.
 */
TEST_F(long_scan, sets_walk_end)
{
	const unsigned int more = self->ranges;
	unsigned long end = 0;

	ASSERT_EQ(COLLECTED - 1, scan_all(COLLECTED - 1, &end));
	EXPECT_EQ(2 * (COLLECTED - 1), end);
	ASSERT_EQ(more, scan_all(more, &end));
	DID(more, "ranges found");
	if (end == 2 * COLLECTED) {
		KNOWN_ISSUE(76, "walk_end of a complete scan is before the end");
		return;
	}
	EXPECT_EQ(2 * more, end);
	STALE_ISSUE(76);
}

/* The first half of the pages is one mapping, and the second half is another mapping. */
#define HALF (PAGES / 2)
#define FIRST ((1U << HALF) - 1)

FIXTURE(two_mappings)
{
	char *at;
	int uffd;
	int pagemap;
};

/* @both: whether a scan may protect the second mapping too */
FIXTURE_VARIANT(two_mappings)
{
	bool both;
};

FIXTURE_VARIANT_ADD(two_mappings, first_allowed)
{
	.both = false,
};

/* The control variant: the scan stops nowhere. */
FIXTURE_VARIANT_ADD(two_mappings, both_allowed)
{
	.both = true,
};

FIXTURE_SETUP(two_mappings)
{
	self->uffd = -1;
	self->pagemap = -1;
	self->at = mmap(NULL, bytes(PAGES), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	for (unsigned int page = 0; page < PAGES; page++)
		self->at[bytes(page)] = pattern(page);
	/* A mapping that is read-only does not merge with its neighbour. */
	ASSERT_EQ(0, mprotect(self->at + bytes(HALF), bytes(HALF), PROT_READ));
	self->uffd = listener(UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED);
	if (self->uffd < 0 ||
	    listen_to(self->uffd, self->at, bytes(variant->both ? PAGES : HALF)))
		SKIP(return, "no asynchronous write protection by userfaultfd");
	self->pagemap = open("/proc/self/pagemap", O_RDONLY);
	ASSERT_LE(0, self->pagemap);
}

FIXTURE_TEARDOWN(two_mappings)
{
	if (self->pagemap >= 0)
		close(self->pagemap);
	if (self->uffd >= 0)
		close(self->uffd);
	munmap(self->at, bytes(PAGES));
}

/*
 * scan_pages() - find the pages that were written to, and protect them if asked to
 * @first: the first page
 * @stop: the page after the last page
 * @found: receives a bit mask of the pages that were found: bit N stands for page @first + N
 * @end: receives the page at which the scan ended
 *
 * Return: 0, or -errno. The scan fails with EPERM at a mapping that it must not protect.
 */
static int scan_pages(FIXTURE_DATA(two_mappings) * self, unsigned int first, unsigned int stop,
		      bool protects, unsigned int *found, unsigned long *end)
{
	struct pm_scan_arg arguments = {
		.flags = (protects ? PM_SCAN_WP_MATCHING : 0) | PM_SCAN_CHECK_WPASYNC,
		.start = (unsigned long)self->at + bytes(first),
		.end = (unsigned long)self->at + bytes(stop),
		.category_mask = PAGE_IS_WRITTEN,
	};
	int error = scan_with(self->pagemap, &arguments, found);

	*end = (arguments.walk_end - (unsigned long)self->at) / psize();
	return error;
}

/*
 * A scan reports and protects the pages of the first mapping, and may have to stop at the second
 * mapping. Each page that was written to is then reported by this scan or by the next scan. If the
 * scan stops but does not fail, walk_end is the start of the second mapping.
 *
 * Known issue 79: the scan fails, but it has protected the pages of the first mapping. So no scan
 * reports them.
 */
TEST_F(two_mappings, loses_no_page)
{
	const unsigned int pages = variant->both ? PAGES : HALF;
	unsigned int before = 0, found = 0, left = 0, second;
	unsigned long end, stopped;
	int error;

	ASSERT_EQ(0, scan_pages(self, 0, HALF, false, &before, &end));
	ASSERT_EQ(FIRST, before);
	ASSERT_EQ(variant->both ? 0 : -EPERM,
		  scan_pages(self, HALF, PAGES, false, &second, &end));
	error = scan_pages(self, 0, PAGES, true, &found, &stopped);
	ASSERT_TRUE(!error || (error == -EPERM && !variant->both));
	ASSERT_EQ(0, scan_pages(self, 0, HALF, false, &left, &end));
	if (error && !left) {
		KNOWN_ISSUE(79, "a scan that fails has protected pages, and does not report them");
		return;
	}
	EXPECT_EQ((1U << pages) - 1, found | left);
	if (!error)
		EXPECT_EQ(pages, stopped);
	DID(__builtin_popcount(found | left), "pages reported");
	if (!variant->both)
		STALE_ISSUE(79);
}

TEST_HARNESS_MAIN
