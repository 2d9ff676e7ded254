// SPDX-License-Identifier: GPL-2.0
/*
 * Hugetlb pages that belong to one process, and pages that are reserved for it.
 *
 * Proves: punching a hole into a hugetlb file removes pages of the file. The hole does not remove
 * pages that a process wrote to in a private mapping. If mremap() moves a part of a private
 * mapping, each page keeps its reservation, whether the page moves or stays. munmap() ends these
 * reservations. If no huge page is left, UFFDIO_COPY fails with ENOMEM.
 *
 * How: each case has exactly the huge pages that it needs. As controls, the
 * test punches the same holes into a file with small pages. Other controls move
 * the whole mapping, or a part of a shared mapping. The last two controls call
 * UFFDIO_COPY: one control calls it while the pool still has an available huge
 * page, and the other control calls it for a page that exists.
 *
 * Does not prove: what truncation removes, or what a failed mremap() leaves in
 * place.
 *
 * A kernel with known issue 49 keeps the leaked reservations until the next boot. The leaked
 * reservations are for four pages of the smallest size. Test programs that run later treat these
 * pages as used.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_private
 */
#include "folio_listen.h"
#include "folio_pmd.h"
#include "hugetlb_pool.h"

/* Whether each byte of a huge page has this value. */
static bool huge_is(const char *at, size_t size, unsigned char value)
{
	for (size_t i = 0; i < size; i += psize())
		if (!page_is(at + i, value))
			return false;
	return true;
}

#define FILE_PAGES 6
#define HOLE 4

FIXTURE(hugetlb_private)
{
	struct hugetlb_pool pool;
	size_t size;
	int fd;
	char *file;	/* a shared mapping */
	char *at;	/* a private mapping */
};

/*
 * @small: whether the file has small pages; @advice: whether MADV_REMOVE
 * punches the hole, instead of fallocate()
 */
FIXTURE_VARIANT(hugetlb_private)
{
	bool small;
	bool advice;
};

FIXTURE_VARIANT_ADD(hugetlb_private, fallocate)
{
};

FIXTURE_VARIANT_ADD(hugetlb_private, remove)
{
	.advice = true,
};

FIXTURE_VARIANT_ADD(hugetlb_private, small_fallocate)
{
	.small = true,
};

FIXTURE_VARIANT_ADD(hugetlb_private, small_remove)
{
	.small = true,
	.advice = true,
};

FIXTURE_SETUP(hugetlb_private)
{
	const int prot = PROT_READ | PROT_WRITE;
	const char *why = NULL;
	unsigned int flags = 0;

	self->fd = -1;
	self->file = MAP_FAILED;
	self->at = MAP_FAILED;
	self->pool.folder[0] = 0;
	self->size = psize();
	if (!variant->small) {
		/*
		 * In addition to the huge pages of the file, the private
		 * mapping reserves one huge page for each page of the file.
		 */
		self->size = hugetlb_size(0);
		why = hugetlb_pool_have(&self->pool, self->size, 2 * FILE_PAGES);
	}
	if (why)
		SKIP(return, "%s", why);
	if (!variant->small)
		flags = MFD_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT;
	self->fd = syscall(__NR_memfd_create, "hugetlb_private", flags);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ftruncate(self->fd, FILE_PAGES * self->size));
	self->file = mmap(NULL, FILE_PAGES * self->size, prot, MAP_SHARED, self->fd, 0);
	self->at = mmap(NULL, FILE_PAGES * self->size, prot, MAP_PRIVATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->file);
	ASSERT_NE(MAP_FAILED, self->at);
}

FIXTURE_TEARDOWN(hugetlb_private)
{
	if (self->at != MAP_FAILED)
		munmap(self->at, FILE_PAGES * self->size);
	if (self->file != MAP_FAILED)
		munmap(self->file, FILE_PAGES * self->size);
	if (self->fd >= 0)
		close(self->fd);
	hugetlb_pool_restore(&self->pool);
}

/* Whether the process wrote to this page of the private mapping, and what it wrote. */
static bool is_own(unsigned int page)
{
	return page % 2;
}

static unsigned char own(unsigned int page)
{
	return 100 + page;
}

/*
 * The process has written to every second page of a private mapping. The test punches a hole over
 * the first four pages of the file. The written pages keep their content. In both mappings, the
 * other pages in the hole are zeros, and the pages after the hole keep their content.
 *
 * Known issue 48: the written pages in the hole are zeros too.
 */
TEST_F(hugetlb_private, hole_in_file)
{
	const size_t size = self->size;
	unsigned int lost = 0, kept = 0;

	for (unsigned int i = 0; i < FILE_PAGES; i++) {
		char *at = self->at + i * size, *file = self->file + i * size;

		memset(file, pattern(i), size);
		read_byte(at);
		ASSERT_EQ(pfn_of(file), pfn_of(at));
		if (is_own(i))
			memset(at, own(i), size);
		ASSERT_NE(-1UL, pfn_of(at));
		ASSERT_EQ(is_own(i), pfn_of(file) != pfn_of(at));
	}
	ASSERT_EQ(0, variant->advice ? madvise(self->file, HOLE * size, MADV_REMOVE) :
		     fallocate(self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			       HOLE * size));
	for (unsigned int i = 0; i < FILE_PAGES; i++) {
		char *at = self->at + i * size;

		if (is_own(i) && i < HOLE && huge_is(at, size, 0)) {
			lost++;
			continue;
		}
		kept += is_own(i);
		EXPECT_TRUE(huge_is(at, size, is_own(i) ? own(i) : i < HOLE ? 0 : pattern(i))) {
			TH_LOG("page %u of the private mapping begins with %d", i, *at);
		}
	}
	for (unsigned int i = 0; i < FILE_PAGES; i++) {
		char *file = self->file + i * size;

		EXPECT_TRUE(huge_is(file, size, i < HOLE ? 0 : pattern(i))) {
			TH_LOG("page %u of the file begins with %d", i, *file);
		}
	}
	DID(lost + kept, "pages that a process wrote to");
	if (lost == HOLE / 2 && !variant->small) {
		KNOWN_ISSUE(48, "a hole in the file removes the pages of a process");
		return;
	}
	EXPECT_EQ(0, lost);
	if (!variant->small)
		STALE_ISSUE(48);
}

#define MOVED_PAGES 3

FIXTURE(hugetlb_moved)
{
	struct hugetlb_pool pool;
	size_t size;
	unsigned long reserved;	/* before the mapping */
	char *at;
	char *room;
};

/* @first: the first page that moves; @pages: how many pages move; @shared: a shared mapping */
FIXTURE_VARIANT(hugetlb_moved)
{
	unsigned int first;
	unsigned int pages;
	bool shared;
};

FIXTURE_VARIANT_ADD(hugetlb_moved, whole)
{
	.pages = MOVED_PAGES,
};

FIXTURE_VARIANT_ADD(hugetlb_moved, middle_shared)
{
	.first = 1,
	.pages = 1,
	.shared = true,
};

FIXTURE_VARIANT_ADD(hugetlb_moved, begin)
{
	.pages = 2,
};

FIXTURE_VARIANT_ADD(hugetlb_moved, middle)
{
	.first = 1,
	.pages = 1,
};

FIXTURE_VARIANT_ADD(hugetlb_moved, end)
{
	.first = 1,
	.pages = 2,
};

FIXTURE_SETUP(hugetlb_moved)
{
	const char *why;

	self->at = MAP_FAILED;
	self->room = MAP_FAILED;
	self->size = hugetlb_size(0);
	/*
	 * A kernel with known issue 49 keeps these huge pages reserved until
	 * the next boot.
	 */
	if (access("/tests/list", F_OK))
		SKIP(return, "runs only in the virtual machine");
	why = hugetlb_pool_have_just(&self->pool, self->size, MOVED_PAGES);
	if (why)
		SKIP(return, "%s", why);
	self->reserved = hugetlb_pool_count(&self->pool, "resv_hugepages");
	self->at = mmap(NULL, MOVED_PAGES * self->size, PROT_READ | PROT_WRITE,
			(variant->shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS |
			MAP_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT, -1, 0);
	self->room = mmap(NULL, (MOVED_PAGES + 1) * self->size, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	ASSERT_NE(MAP_FAILED, self->room);
}

FIXTURE_TEARDOWN(hugetlb_moved)
{
	if (self->at != MAP_FAILED)
		munmap(self->at, MOVED_PAGES * self->size);
	if (self->room != MAP_FAILED)
		munmap(self->room, (MOVED_PAGES + 1) * self->size);
	hugetlb_pool_restore(&self->pool);
}

/*
 * A mapping reserves all three pages of the pool. mremap() moves one to three of these pages before
 * the first access. After that each page can be written to, and no reservation is left after
 * munmap().
 *
 * Known issue 49: a write to a page that did not move raises SIGBUS, and the reservation of this
 * page is never freed.
 */
TEST_F(hugetlb_moved, reservations)
{
	char *to = (char *)(((unsigned long)self->room + self->size - 1) & -self->size);
	const unsigned int end = variant->first + variant->pages;
	const unsigned int stay = MOVED_PAGES - variant->pages;
	const size_t size = self->size;
	char *at[MOVED_PAGES];
	unsigned int refused = 0;
	long left;

	ASSERT_EQ(self->reserved + MOVED_PAGES,
		  hugetlb_pool_count(&self->pool, "resv_hugepages"));
	ASSERT_EQ(0, hugetlb_pool_left(&self->pool));
	ASSERT_EQ(to, mremap(self->at + variant->first * size, variant->pages * size,
			     variant->pages * size, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	EXPECT_EQ(self->reserved + MOVED_PAGES,
		  hugetlb_pool_count(&self->pool, "resv_hugepages"));
	for (unsigned int i = 0; i < MOVED_PAGES; i++) {
		bool moved = i >= variant->first && i < end;
		int caught;

		at[i] = moved ? to + (i - variant->first) * size : self->at + i * size;
		caught = try_access(at[i], true);
		if (!caught) {
			memset(at[i], pattern(i), size);
			continue;
		}
		at[i] = NULL;
		EXPECT_EQ(SIGBUS, caught);
		EXPECT_FALSE(moved);
		refused += !moved;
	}
	for (unsigned int i = 0; i < MOVED_PAGES; i++)
		EXPECT_TRUE(!at[i] || huge_is(at[i], size, pattern(i)));
	DID(variant->pages, "pages that moved");
	ASSERT_EQ(0, munmap(self->at, MOVED_PAGES * size));
	ASSERT_EQ(0, munmap(to, variant->pages * size));
	left = hugetlb_pool_count(&self->pool, "resv_hugepages") - self->reserved;
	if (stay && !variant->shared && refused == stay && left == stay) {
		KNOWN_ISSUE(49, "the pages that stay lose their reservation, which leaks");
		return;
	}
	EXPECT_EQ(0, refused);
	EXPECT_EQ(0, left);
	if (stay && !variant->shared)
		STALE_ISSUE(49);
}

FIXTURE(hugetlb_filled)
{
	struct hugetlb_pool pool;
	size_t size;
	int uffd;
	char *at;
	char *other;	/* a mapping that reserves the last page */
	char *source;
};

/*
 * @present: the page exists; @none: no huge page is left; @shared: a shared mapping;
 * @smallest: pages of the smallest size of hugetlb, and not of the size of a PMD
 */
FIXTURE_VARIANT(hugetlb_filled)
{
	bool present;
	bool none;
	bool shared;
	bool smallest;
};

FIXTURE_VARIANT_ADD(hugetlb_filled, one_left)
{
};

FIXTURE_VARIANT_ADD(hugetlb_filled, present)
{
	.present = true,
};

FIXTURE_VARIANT_ADD(hugetlb_filled, none_left)
{
	.none = true,
};

FIXTURE_VARIANT_ADD(hugetlb_filled, none_left_shared)
{
	.none = true,
	.shared = true,
};

FIXTURE_VARIANT_ADD(hugetlb_filled, none_left_smallest)
{
	.none = true,
	.smallest = true,
};

FIXTURE_SETUP(hugetlb_filled)
{
	const int prot = PROT_READ | PROT_WRITE;
	int huge = MAP_ANONYMOUS | MAP_HUGETLB;
	const char *why;

	self->at = MAP_FAILED;
	self->other = MAP_FAILED;
	self->source = MAP_FAILED;
	self->size = variant->smallest ? hugetlb_size(0) : bytes(pmd_pages());
	why = hugetlb_pool_have_just(&self->pool, self->size, 1 + variant->present);
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_HUGETLBFS);
	if (!why && self->uffd < 0)
		why = "userfaultfd cannot watch hugetlb pages";
	if (why)
		SKIP(return, "%s", why);
	huge |= order_of(self->size) << MAP_HUGE_SHIFT;
	self->at = mmap(NULL, self->size, prot, huge | MAP_NORESERVE |
			(variant->shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
	self->source = mmap(NULL, self->size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->at);
	ASSERT_NE(MAP_FAILED, self->source);
	memset(self->source, 1, self->size);
	if (variant->none) {
		self->other = mmap(NULL, self->size, prot, huge | MAP_PRIVATE, -1, 0);
		ASSERT_NE(MAP_FAILED, self->other);
	}
}

FIXTURE_TEARDOWN(hugetlb_filled)
{
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->at != MAP_FAILED)
		munmap(self->at, self->size);
	if (self->other != MAP_FAILED)
		munmap(self->other, self->size);
	if (self->source != MAP_FAILED)
		munmap(self->source, self->size);
	hugetlb_pool_restore(&self->pool);
}

/* Fill the page. Returns 0, the error, or -1 if errno and copy.copy disagree. */
static int fill(FIXTURE_DATA(hugetlb_filled) * self)
{
	struct uffdio_copy copy = {
		.dst = (unsigned long)self->at,
		.src = (unsigned long)self->source,
		.len = self->size,
	};
	int error = ioctl(self->uffd, UFFDIO_COPY, &copy) ? errno : 0;

	return copy.copy == (error ? -error : (long)self->size) ? error : -1;
}

/*
 * UFFDIO_COPY fills a missing page. It fails with EEXIST if the page exists, and with ENOMEM if no
 * huge page is left. After ENOMEM the page is still missing, and UFFDIO_COPY fills it when there is
 * a huge page again.
 *
 * Known issue 50: for PMD-sized pages, UFFDIO_COPY fails with EEXIST if no huge page is left.
 */
TEST_F(hugetlb_filled, error_says_why)
{
	struct uffdio_register where = {
		.range = { (unsigned long)self->at, self->size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	const bool has_pmd_size = self->size == bytes(pmd_pages());
	bool right;
	int error;

	if (variant->present)
		memset(self->at, 2, self->size);
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
	ASSERT_EQ(variant->none ? 0 : 1, hugetlb_pool_left(&self->pool));
	ASSERT_EQ(variant->present ? 0 : SIGBUS, try_access(self->at, false));
	error = fill(self);
	if (variant->none) {
		EXPECT_EQ(SIGBUS, try_access(self->at, false));
		munmap(self->other, self->size);
		self->other = MAP_FAILED;
		ASSERT_EQ(0, fill(self));
	}
	right = huge_is(self->at, self->size, variant->present ? 2 : 1);
	EXPECT_TRUE(right);
	DID(right ? self->size / psize() : 0, "pages with the right content");
	if (!variant->none) {
		EXPECT_EQ(variant->present ? EEXIST : 0, error);
		return;
	}
	if (error == EEXIST && has_pmd_size) {
		KNOWN_ISSUE(50, "UFFDIO_COPY treats a missing page as one that exists");
		return;
	}
	EXPECT_EQ(ENOMEM, error);
	if (has_pmd_size)
		STALE_ISSUE(50);
}

TEST_HARNESS_MAIN
