// SPDX-License-Identifier: GPL-2.0
/*
 * A page that UFFDIO_POISON has marked as lost remains marked.
 *
 * Proves: such a page raises SIGBUS until its owner removes the mark. This also
 * holds after the kernel has collapsed the pages of the file into one huge
 * page, and in a child of fork(). The content of all other pages is unchanged.
 *
 * How: a file in memory is mapped twice. In the first mapping two pages are marked. A mark is an
 * entry in the page table of this mapping, so the file still contains both marked pages. Then the
 * second mapping is collapsed by MADV_COLLAPSE, or the process forks. As a control, one variant has
 * anonymous memory, because fork() always copies the page-table entries of such memory.
 *
 * Does not prove: anything about hugetlb.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uffd_poison
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"

/* With pages of 64K a huge page is 512M: too much for this test. */
#define MOST_BYTES (64UL << 20)

/* From include/uapi/asm-generic/mman-common.h, since older headers lack this constant. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

FIXTURE(uffd_poison)
{
	char *area;
	size_t area_bytes;
	char *at;
	char *other;
	unsigned int pages;
	int uffd;
	int fd;
};

/* @file: whether the memory is a file in memory */
FIXTURE_VARIANT(uffd_poison)
{
	bool file;
};

FIXTURE_VARIANT_ADD(uffd_poison, anon)
{
};

FIXTURE_VARIANT_ADD(uffd_poison, file)
{
	.file = true,
};

/* The pages that are marked: the second page and the last page. */
static bool marked(const FIXTURE_DATA(uffd_poison) * self, unsigned int page)
{
	return page == 1 || page == self->pages - 1;
}

/* Let the kernel use huge pages for shared memory. folio_settings() restores the setting. */
static int allow_huge_files(size_t length)
{
	char path[128];

	snprintf(path, sizeof(path), FOLIO_THP "/hugepages-%zukB/shmem_enabled", length / 1024);
	return write_text(path, "always");
}

/* Mark a page as lost. Returns 0 or -errno. */
static int poison(int uffd, char *at)
{
	struct uffdio_poison arguments = {
		.range = { (unsigned long)at, psize() },
	};

	return ioctl(uffd, UFFDIO_POISON, &arguments) ? -errno : 0;
}

/*
 * Both mappings are aligned to a huge page. The first mapping has no entries except the marks. The
 * file gets single pages, because the mapping that fills it has MADV_NOHUGEPAGE.
 */
FIXTURE_SETUP(uffd_poison)
{
	struct uffdio_register where = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	size_t length = read_pmd_pagesize();
	const char *why = folio_settings(0);
	int flags = MAP_FIXED | MAP_SHARED;

	self->area = NULL;
	self->fd = -1;
	self->uffd = listener(UFFD_FEATURE_POISON);
	if (!why && self->uffd < 0)
		why = "userfaultfd cannot mark pages as lost";
	if (!why && (!length || length > MOST_BYTES))
		why = "no huge pages, or too large ones";
	if (why)
		SKIP(return, "%s", why);
	self->pages = length / psize();
	self->area_bytes = 3 * length;
	self->area = mmap(NULL, self->area_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->area);
	self->at = (char *)(((unsigned long)self->area + length - 1) & -length);
	self->other = self->at + length;
	if (variant->file) {
		char *fill;

		ASSERT_EQ(0, allow_huge_files(length));
		self->fd = memory_file(SHMEM, self->pages);
		ASSERT_LE(0, self->fd);
		fill = mmap(self->other, length, PROT_READ | PROT_WRITE, flags, self->fd, 0);
		ASSERT_EQ(self->other, fill);
		ASSERT_EQ(0, madvise(fill, length, MADV_NOHUGEPAGE));
		for (unsigned int page = 0; page < self->pages; page++)
			memset(fill + bytes(page), pattern(page), bytes(1));
		ASSERT_EQ(fill, mmap(fill, length, PROT_READ | PROT_WRITE, flags, self->fd, 0));
	} else {
		flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS;
	}
	ASSERT_EQ(self->at, mmap(self->at, length, PROT_READ | PROT_WRITE, flags, self->fd, 0));
	where.range = (struct uffdio_range){ (unsigned long)self->at, length };
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
	for (unsigned int page = 0; page < self->pages; page++)
		if (marked(self, page))
			ASSERT_EQ(0, poison(self->uffd, self->at + bytes(page)));
}

FIXTURE_TEARDOWN(uffd_poison)
{
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->area)
		munmap(self->area, self->area_bytes);
	if (self->fd >= 0)
		close(self->fd);
}

/* The number of marked pages that raise SIGBUS. */
static unsigned int lost_pages(const FIXTURE_DATA(uffd_poison) * self)
{
	unsigned int found = 0;

	for (unsigned int page = 0; page < self->pages; page++)
		found += marked(self, page) &&
			 try_access(self->at + bytes(page), false) == SIGBUS;
	return found;
}

/*
 * The whole file becomes one huge page, and one PMD maps this page in the
 * second mapping. As a control, the test calls MADV_COLLAPSE for the marked
 * anonymous memory, and the kernel refuses this.
 *
 * Known issue 38: the kernel removes the page table of the first mapping
 * together with the marks. The kernel assumes that page faults can refill each
 * page table of a file mapping.
 */
TEST_F(uffd_poison, collapse)
{
	char *target = variant->file ? self->other : self->at;
	unsigned int page, left;
	int error;

	ASSERT_EQ(2, lost_pages(self));
	error = madvise(target, bytes(self->pages), MADV_COLLAPSE) ? errno : 0;
	left = lost_pages(self);
	if (!variant->file) {
		EXPECT_NE(0, error);
		EXPECT_EQ(2, left);
		return;
	}
	ASSERT_EQ(0, error);
	DID(smaps_pages(target, "ShmemPmdMapped"), "pages of a huge page");
	for (page = 0; page < self->pages; page++) {
		EXPECT_TRUE(page_is(target + bytes(page), pattern(page)));
		if (!marked(self, page))
			EXPECT_TRUE(page_is(self->at + bytes(page), pattern(page)));
	}
	if (!left)
		KNOWN_ISSUE(38, "a collapse in another mapping removes the marks of lost pages");
	else
		EXPECT_EQ(2, left);
	if (left == 2)
		STALE_ISSUE(38);
}

/*
 * A child inherits the memory of its parent, with the marks.
 *
 * Known issue 38: fork() does not copy the page tables of a file, so the child can read the lost
 * pages.
 */
TEST_F(uffd_poison, fork)
{
	pid_t child;
	int left;

	ASSERT_EQ(2, lost_pages(self));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(lost_pages(self));
	left = child_of(child);
	ASSERT_LE(0, left);
	EXPECT_EQ(2, lost_pages(self));
	DID(1, "forks");
	if (variant->file && !left)
		KNOWN_ISSUE(38, "a child has no marks of lost pages of files");
	else
		EXPECT_EQ(2, left);
	if (variant->file && left == 2)
		STALE_ISSUE(38);
}

TEST_HARNESS_MAIN
