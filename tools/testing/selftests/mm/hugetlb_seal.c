// SPDX-License-Identifier: GPL-2.0
/*
 * Seals of memory files with huge pages, and mmap() of such files.
 *
 * Proves: a file with F_SEAL_EXEC keeps its executable mode bits. ftruncate() and fallocate() do
 * not shrink a file with F_SEAL_SHRINK. Neither these calls nor mmap() enlarges a file with
 * F_SEAL_GROW. No call can punch a hole into a file with F_SEAL_WRITE. mmap() of a file that is not
 * open for writing does not change the size of the file.
 *
 * How: each case makes the same calls for a hugetlb file and a shmem file, with and without the
 * seal.
 *
 * Does not prove: that a sealed file cannot be written to.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_seal
 */
#include <sys/stat.h>

#include "folio_known.h"
#include "hugetlb_pool.h"

#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8
#endif

/*
 * FILE_PAGES is the number of pages of the file. MAPPED_PAGES is the number of
 * pages of a mapping that is larger than the file.
 */
#define FILE_PAGES 2
#define MAPPED_PAGES 3

FIXTURE(hugetlb_seal)
{
	struct hugetlb_pool pool;
	size_t size;
	unsigned int flags;
	int fd;
	int reader;	/* the same file, but not open for writing */
};

FIXTURE_VARIANT(hugetlb_seal)
{
	bool huge;
};

FIXTURE_VARIANT_ADD(hugetlb_seal, hugetlb)
{
	.huge = true,
};

FIXTURE_VARIANT_ADD(hugetlb_seal, shmem)
{
};

FIXTURE_SETUP(hugetlb_seal)
{
	const char *why;

	self->fd = -1;
	self->reader = -1;
	self->flags = 0;
	self->pool.folder[0] = 0;
	self->size = psize();
	if (!variant->huge)
		return;
	self->size = hugetlb_size(0);
	why = hugetlb_pool_have(&self->pool, self->size, 2 * MAPPED_PAGES);
	if (why)
		SKIP(return, "%s", why);
	self->flags = MFD_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT;
}

static void file_close(FIXTURE_DATA(hugetlb_seal) * self)
{
	if (self->reader >= 0)
		close(self->reader);
	if (self->fd >= 0)
		close(self->fd);
	self->reader = -1;
	self->fd = -1;
}

FIXTURE_TEARDOWN(hugetlb_seal)
{
	file_close(self);
	hugetlb_pool_restore(&self->pool);
}

/* Make a new file of FILE_PAGES pages with these seals. Returns 0, or -1. */
static int file_new(FIXTURE_DATA(hugetlb_seal) * self, int seals)
{
	char path[40];

	file_close(self);
	self->fd = syscall(__NR_memfd_create, "hugetlb_seal", self->flags | MFD_ALLOW_SEALING);
	if (self->fd < 0 || ftruncate(self->fd, FILE_PAGES * self->size) ||
	    fcntl(self->fd, F_ADD_SEALS, seals))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	self->reader = open(path, O_RDONLY);
	return self->reader < 0 ? -1 : 0;
}

static size_t file_pages(FIXTURE_DATA(hugetlb_seal) * self)
{
	struct stat file;

	return fstat(self->fd, &file) ? 0 : file.st_size / self->size;
}

static mode_t file_mode(FIXTURE_DATA(hugetlb_seal) * self)
{
	struct stat file;

	return fstat(self->fd, &file) ? 0 : file.st_mode & 0777;
}

/*
 * If a file was created with MFD_NOEXEC_SEAL, fchmod() cannot make this file
 * executable, but can change its other mode bits. Known issue 70: fchmod() can
 * make such a file executable if it is a hugetlb file.
 */
TEST_F(hugetlb_seal, not_executable)
{
	int error;

	self->fd = syscall(__NR_memfd_create, "hugetlb_seal", self->flags | MFD_NOEXEC_SEAL);
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(F_SEAL_EXEC, fcntl(self->fd, F_GET_SEALS) & F_SEAL_EXEC);
	EXPECT_EQ(0, fchmod(self->fd, 0640));
	EXPECT_EQ(0640, file_mode(self));
	error = fchmod(self->fd, 0750) ? errno : 0;
	if (variant->huge && !error && file_mode(self) == 0750) {
		KNOWN_ISSUE(70, "a file with F_SEAL_EXEC became executable");
		return;
	}
	EXPECT_EQ(EPERM, error);
	EXPECT_EQ(0640, file_mode(self));
	if (variant->huge)
		STALE_ISSUE(70);
}

static const struct way {
	const char *name;
	int flags;
	bool reader;	/* by the file descriptor that is not open for writing */
	int seals;
} ways[] = {
	{ "shared, F_SEAL_GROW", MAP_SHARED, false, F_SEAL_GROW },
	{ "private, F_SEAL_GROW", MAP_PRIVATE, false, F_SEAL_GROW },
	{ "private, all seals", MAP_PRIVATE, false,
	  F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW },
	{ "private, by a reader, F_SEAL_GROW", MAP_PRIVATE, true, F_SEAL_GROW },
	{ "private, by a reader", MAP_PRIVATE, true, 0 },
};

/* Map @pages pages of the file, and unmap them again. Returns 0 or an error. */
static int map_once(FIXTURE_DATA(hugetlb_seal) * self, const struct way *way, int prot, int pages)
{
	char *at = mmap(NULL, pages * self->size, prot, way->flags,
			way->reader ? self->reader : self->fd, 0);

	if (at == MAP_FAILED)
		return errno;
	munmap(at, pages * self->size);
	return 0;
}

/*
 * A mapping does not make a file larger if the file has F_SEAL_GROW, or if it
 * is not open for writing. Known issue 71: each writable mapping that is larger
 * than a hugetlb file enlarges the file. If the file has F_SEAL_GROW, a mapping
 * that would make the file larger may fail with EPERM. In the controls, the
 * mapping is as large as the file, or is read-only, or is a shared mapping of a
 * file without a seal. In the last control, a hugetlb file becomes larger, but
 * a shmem file does not.
 */
TEST_F(hugetlb_seal, mapping_keeps_size)
{
	const int prot = PROT_READ | PROT_WRITE;
	const struct way unsealed = { "shared", MAP_SHARED, false, 0 };
	unsigned int larger = 0;

	ASSERT_EQ(0, file_new(self, 0));
	EXPECT_EQ(0, map_once(self, &unsealed, prot, MAPPED_PAGES));
	EXPECT_EQ(variant->huge ? MAPPED_PAGES : FILE_PAGES, file_pages(self));
	for (unsigned int i = 0; i < ARRAY_SIZE(ways); i++) {
		int error;

		ASSERT_EQ(0, file_new(self, ways[i].seals));
		EXPECT_EQ(0, map_once(self, &ways[i], prot, FILE_PAGES));
		EXPECT_EQ(0, map_once(self, &ways[i], PROT_READ, MAPPED_PAGES));
		EXPECT_EQ(FILE_PAGES, file_pages(self));
		error = map_once(self, &ways[i], prot, MAPPED_PAGES);
		EXPECT_TRUE(!error || (variant->huge && ways[i].seals && error == EPERM))
			TH_LOG("%s: error %d", ways[i].name, error);
		if (variant->huge && file_pages(self) == MAPPED_PAGES) {
			TH_LOG("%s: the file became larger", ways[i].name);
			larger++;
		} else {
			EXPECT_EQ(FILE_PAGES, file_pages(self))
				TH_LOG("%s", ways[i].name);
		}
	}
	if (larger == ARRAY_SIZE(ways)) {
		KNOWN_ISSUE(71, "mmap() made a sealed file or a file of others larger");
		return;
	}
	EXPECT_EQ(0, larger);
	if (variant->huge)
		STALE_ISSUE(71);
}

enum change {
	SHRINK,
	GROW,
	ALLOCATE,
	HOLE,
	NR_CHANGES
};

static const struct {
	int seal;
	int pages;	/* of the file after this change, if no seal refuses it */
} changes[NR_CHANGES] = {
	[SHRINK] = { F_SEAL_SHRINK, FILE_PAGES - 1 },
	[GROW] = { F_SEAL_GROW, FILE_PAGES + 1 },
	[ALLOCATE] = { F_SEAL_GROW, FILE_PAGES + 1 },
	[HOLE] = { F_SEAL_WRITE, FILE_PAGES },
};

/* Returns 0 or an error. */
static int file_change(FIXTURE_DATA(hugetlb_seal) * self, enum change change)
{
	size_t size = changes[change].pages * self->size;
	int ret;

	if (change == ALLOCATE)
		ret = fallocate(self->fd, 0, 0, size);
	else if (change == HOLE)
		ret = fallocate(self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				self->size);
	else
		ret = ftruncate(self->fd, size);
	return ret ? errno : 0;
}

/*
 * ftruncate() and fallocate() fail with EPERM if a seal forbids the change, and
 * the file keeps its size. Without this seal the calls succeed.
 */
TEST_F(hugetlb_seal, change_is_refused)
{
	for (enum change change = 0; change < NR_CHANGES; change++) {
		int seal = changes[change].seal;

		ASSERT_EQ(0, file_new(self, seal));
		EXPECT_EQ(EPERM, file_change(self, change))
			TH_LOG("change %d with its seal", change);
		EXPECT_EQ(FILE_PAGES, file_pages(self));

		ASSERT_EQ(0, file_new(self, (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) & ~seal));
		EXPECT_EQ(0, file_change(self, change))
			TH_LOG("change %d with other seals", change);
		EXPECT_EQ(changes[change].pages, file_pages(self));
	}
}

TEST_HARNESS_MAIN
