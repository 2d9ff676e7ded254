// SPDX-License-Identifier: GPL-2.0
/*
 * The number of page faults when atomic instructions write to a file.
 *
 * Proves: in a shared mapping of an XFS file, an atomic on each clean page
 * causes one write fault: if the page is not mapped, if loads have mapped it,
 * and if fsync() has written earlier changes. On arm64 an LSE atomic on a page
 * that is not mapped yet faults twice: first as a read, then as a write. If the
 * kernel decodes the instruction (CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT), the
 * atomic faults once. The results are in the file after the page cache is
 * dropped.
 *
 * Does not prove: the same for large folios. A fault on a large folio may map
 * all its pages. KUnit: atomic_rmw_large tests memory files, which have no
 * page_mkwrite().
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=atomic_file
 */
#include "atomic_ops.h"

#define FILE_PAGES 64U

FIXTURE(atomic_file)
{
	int fd;
	unsigned long *at;
};

/* Read the file again, in folios of one page. Returns whether each page has such a folio. */
static bool single_pages(int fd)
{
	int flags_fd = open("/proc/kpageflags", O_RDONLY);
	unsigned int single = 0;
	char *at, byte;
	__u64 flags;

	if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ||
	    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM))
		return false;
	for (unsigned int page = 0; page < FILE_PAGES; page++)
		if (pread(fd, &byte, 1, bytes(page)) != 1)
			return false;
	at = mmap(NULL, bytes(FILE_PAGES), PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (at == MAP_FAILED)
		return false;
	for (unsigned int page = 0; page < FILE_PAGES; page++)
		single += pread(flags_fd, &flags, sizeof(flags),
				pfn_of(at + bytes(page)) * sizeof(flags)) == sizeof(flags) &&
			  !(flags & (FOLIO_HEAD | FOLIO_TAIL));
	munmap(at, bytes(FILE_PAGES));
	close(flags_fd);
	return single == FILE_PAGES;
}

/* Map the file, and unmap an earlier mapping. Returns true on success. */
static bool file_map(FIXTURE_DATA(atomic_file) * self)
{
	if (self->at)
		munmap(self->at, bytes(FILE_PAGES));
	self->at = mmap(NULL, bytes(FILE_PAGES), PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	if (self->at == MAP_FAILED)
		self->at = NULL;
	return self->at;
}

FIXTURE_SETUP(atomic_file)
{
	const char *why = atomics_inexact();

	self->fd = memory_file(XFS, FILE_PAGES);
	if (self->fd < 0)
		SKIP(return, "no XFS at " FOLIO_FILES);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(single_pages(self->fd));
	ASSERT_TRUE(file_map(self));
}

FIXTURE_TEARDOWN(atomic_file)
{
	if (self->at)
		munmap(self->at, bytes(FILE_PAGES));
	if (self->fd >= 0)
		close(self->fd);
}

/* Apply an operation to each page of the file. Returns the number of faults. */
static long file_faults(unsigned long *at, void (*operate)(unsigned long *at))
{
	long before;

	faults_begin(&before);
	for (unsigned int page = 0; page < FILE_PAGES; page++)
		operate(at + bytes(page) / sizeof(*at));
	return faults() - before;
}

/* The value that the atomics left in each page: they have added @added to the pattern. */
static void expect_added(struct __test_metadata *_metadata, int fd, unsigned long added)
{
	for (unsigned int page = 0; page < FILE_PAGES; page++) {
		unsigned long value, before;

		memset(&before, pattern(page), sizeof(before));
		ASSERT_EQ(sizeof(value), pread(fd, &value, sizeof(value), bytes(page)));
		EXPECT_EQ(before + added, value);
	}
}

/*
 * A read fault maps several clean pages of the file without write permission. A
 * write to each page then causes a write fault, which asks the file system for
 * space. This is also true on a CPU that sets dirty bits. The test executes an
 * atomic on each page in three situations:
 *
 *	not mapped		one write fault per page. If the kernel does not decode
 *				the instruction, also as many read faults as loads
 *				cause. The test counts these in another mapping.
 *	clean after fsync()	one write fault per page
 *	mapped by loads		one write fault per page
 *
 * At the end the test drops the page cache, and reads the values from the file
 * system. Fault-around maps at most 64 KiB, so loads of 64 pages cause several
 * faults, or one fault per page if pages have 64K.
 */
TEST_F(atomic_file, clean_pages)
{
	long reads = file_faults(self->at, do_load), count;

	EXPECT_LT(0, reads);
	ASSERT_TRUE(file_map(self));
#ifdef __aarch64__
	if (kernel_has("atomic_rmw_"))
		reads = 0;
#else
	reads = 0;
#endif
	count = file_faults(self->at, do_atomic);
	EXPECT_EQ(FILE_PAGES + reads, count);
	TH_LOG("%ld faults, and %ld of them are read faults", count, reads);

	ASSERT_EQ(0, fsync(self->fd));
	EXPECT_EQ(FILE_PAGES, file_faults(self->at, do_atomic));

	ASSERT_EQ(0, fsync(self->fd));
	ASSERT_TRUE(file_map(self));
	EXPECT_LT(0, file_faults(self->at, do_load));
	EXPECT_EQ(FILE_PAGES, file_faults(self->at, do_atomic));

	ASSERT_EQ(0, munmap(self->at, bytes(FILE_PAGES)));
	self->at = NULL;
	ASSERT_EQ(0, fsync(self->fd));
	ASSERT_EQ(0, posix_fadvise(self->fd, 0, 0, POSIX_FADV_DONTNEED));
	expect_added(_metadata, self->fd, 3);
}

TEST_HARNESS_MAIN
