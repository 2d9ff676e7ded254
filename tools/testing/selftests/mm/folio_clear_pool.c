// SPDX-License-Identifier: GPL-2.0
/*
 * What a process finds in memory that does not come from the page allocator when
 * it is used: pages of hugetlb, and buffers of the CMA heap of dma-buf.
 *
 * Proves: each byte is zero, though the very same pages were full of other bytes
 * before, for each size of hugetlb that the machine has, and each way there:
 * faults anywhere, MAP_POPULATE, files of memfd_create(), fallocate(), a driver
 * that pins pages of a file that has none yet.
 *
 * How: just as many pages are in the pool as a case takes, and so it gets the
 * same again; pagemap confirms it. A buffer of three quarters of the CMA area has
 * half of the area in common with the next one. The virtual machine sets aside a
 * page of 1 GiB and a CMA area when it is booted; elsewhere, hugepagesz=1G
 * hugepages=1 and cma=32M on the kernel's command line do.
 *
 * Does not prove: the order in which pages are cleared (KUnit: folio_zero_order).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_clear_pool
 */
#include <dirent.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "folio_clear.h"
#include "hugetlb_pool.h"

/* So much is taken at a time, or a single page where that is larger. */
#define ROOM (16UL << 20)

/* Areas for CMA are no larger than that in the virtual machine. */
#define CMA_AREA (32UL << 20)

/* How pages come. */
enum way { WRITTEN, POPULATED, FILE_WRITTEN, FALLOCATED, PINNED };

FIXTURE(folio_clear_pool)
{
	struct memory memory;
	struct filled filled;
	size_t size;
	unsigned int pages;
	struct hugetlb_pool pool;
};

/* Its sizes, from the smallest on: on arm64 with pages of 4K, 64K, 2M, 32M and 1G. */
FIXTURE_VARIANT(folio_clear_pool)
{
	int rank;
};

FIXTURE_VARIANT_ADD(folio_clear_pool, smallest)
{
	.rank = 0,
};

FIXTURE_VARIANT_ADD(folio_clear_pool, second)
{
	.rank = 1,
};

FIXTURE_VARIANT_ADD(folio_clear_pool, third)
{
	.rank = 2,
};

FIXTURE_VARIANT_ADD(folio_clear_pool, fourth)
{
	.rank = 3,
};

FIXTURE_SETUP(folio_clear_pool)
{
	const char *why;

	self->memory.fd = -1;
	self->size = hugetlb_size(variant->rank);
	if (!self->size)
		SKIP(return, "no such size of hugetlb");
	self->pages = self->size < ROOM ? ROOM / self->size : 1;
	why = hugetlb_pool_have(&self->pool, self->size, self->pages);
	if (why)
		SKIP(return, "%u pages of %zuK: %s", self->pages, self->size >> 10, why);
}

FIXTURE_TEARDOWN(folio_clear_pool)
{
	memory_free(&self->memory);
	filled_free(&self->filled);
	hugetlb_pool_restore(&self->pool);
}

/* Have a driver pin all of a file. */
static bool pin_file(int fd, size_t length)
{
	struct udmabuf_create create = { .memfd = fd, .size = length };
	int device = open("/dev/udmabuf", O_RDWR);
	int buffer = ioctl(device, UDMABUF_CREATE, &create);

	close(device);
	if (buffer < 0)
		return false;
	close(buffer);
	return true;
}

/* All pages of the pool, each by the page @place of it; whether the way is open. */
static bool take(FIXTURE_DATA(folio_clear_pool) * self, enum way how, unsigned int place)
{
	int order = order_of(self->size / psize());
	int huge = order_of(self->size) << MAP_HUGE_SHIFT, flags, fd = -1;
	struct memory *m = &self->memory;

	flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | huge;
	if (how == POPULATED)
		flags |= MAP_POPULATE;
	if (how == FILE_WRITTEN || how == FALLOCATED || how == PINNED) {
		flags = MAP_SHARED;
		fd = syscall(__NR_memfd_create, "folio_clear",
			     MFD_HUGETLB | MFD_ALLOW_SEALING | huge);
		if (fd < 0 || ftruncate(fd, self->pages * self->size) ||
		    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
			return false;
	}
	if (!fresh_map(m, order, self->pages, PROT_READ | PROT_WRITE, flags, fd))
		return false;
	if (how == FALLOCATED)
		return !fallocate(fd, 0, 0, self->pages * self->size);
	if (how == PINNED)
		return pin_file(fd, self->pages * self->size);
	for (unsigned int page = place; page < m->pages; page += 1U << order)
		write_zero(m->at + bytes(page) + FOLIO_CLEAR_INSIDE);
	return true;
}

/*
 * Have as many pages as before that can be pinned: one that lies in a CMA area
 * cannot, for long, and stays in the pool.
 */
static bool have_pinnable(FIXTURE_DATA(folio_clear_pool) * self)
{
	bool right = false;

	for (unsigned int more = 0; more <= CMA_AREA / self->size && !right; more++) {
		hugetlb_pool_resize(&self->pool, self->pool.used + self->pages + more);
		right = take(self, PINNED, 0);
		memory_free(&self->memory);
	}
	return right;
}

/* Take them twice, or by each place of theirs: all that was there is gone. */
static void check(struct __test_metadata *_metadata, FIXTURE_DATA(folio_clear_pool) * self,
		  enum way how)
{
	unsigned int nr = self->size / psize();
	unsigned int places[] = { 0, 0, 1, nr / 2 - 1, nr / 2, nr - 3, nr - 1 };
	bool faults = how == WRITTEN || how == FILE_WRITTEN;
	struct memory *m = &self->memory;

	/* Each round of a gigabyte takes seconds. */
	if (self->size > 4 * ROOM)
		places[1] = nr / 2;
	for (unsigned int i = 0; i < (faults && self->size <= 4 * ROOM ? 7 : 2); i++) {
		ASSERT_TRUE(take(self, how, places[i]));
		EXPECT_EQ(0, not_zero(m->at, m->pages)) {
			TH_LOG("pages of %u, %u each, by page %u", m->pages, nr, places[i]);
		}
		EXPECT_TRUE(are_folios(m->at, m->pages, order_of(nr)));
		if (i) {
			EXPECT_EQ(m->pages, were_filled(&self->filled, m->at, m->pages)) {
				TH_LOG("others than before: that proves nothing");
			}
		}
		ASSERT_TRUE(fill(&self->filled, m->at, m->pages));
		memory_free(m);
	}
}

/* [clearing 18, 24] By a write to each place of it: private memory. */
TEST_F_TIMEOUT(folio_clear_pool, written, 240)
{
	check(_metadata, self, WRITTEN);
}

/* [clearing 18, 24] All of it at once, by MAP_POPULATE. */
TEST_F_TIMEOUT(folio_clear_pool, populated, 240)
{
	check(_metadata, self, POPULATED);
}

/* [clearing 24] By a write to each place of it: memfd_create(MFD_HUGETLB), shared. */
TEST_F_TIMEOUT(folio_clear_pool, file_written, 240)
{
	check(_metadata, self, FILE_WRITTEN);
}

/* [clearing 24] fallocate() of a file: it clears, not the fault after it. */
TEST_F_TIMEOUT(folio_clear_pool, file_fallocated, 240)
{
	check(_metadata, self, FALLOCATED);
}

/*
 * [clearing 24] A driver pins a file that has no pages yet. A process that maps
 * the file sees the new pages, which are cleared without an address as a hint.
 */
TEST_F_TIMEOUT(folio_clear_pool, file_pinned, 240)
{
	if (access("/dev/udmabuf", R_OK | W_OK))
		SKIP(return, "CONFIG_UDMABUF=n");
	if (self->pages * self->size > 64UL << 20)
		SKIP(return, "udmabuf takes no more than 64M");
	ASSERT_TRUE(have_pinnable(self));
	check(_metadata, self, PINNED);
}

FIXTURE(clear_heap)
{
	int heap;
	size_t length;
};

/* What /proc/meminfo says, in bytes. */
static size_t memory_of(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long value = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), ": %lu", &value);
	}
	if (f)
		fclose(f);
	return value << 10;
}

FIXTURE_SETUP(clear_heap)
{
	DIR *folder = opendir("/dev/dma_heap");
	struct dirent *entry;

	/* The area has another name in each kernel; other heaps are called system. */
	self->heap = -1;
	while (folder && self->heap < 0 && (entry = readdir(folder))) {
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, "system", 6))
			self->heap = openat(dirfd(folder), entry->d_name, O_RDWR);
	}
	if (folder)
		closedir(folder);
	self->length = memory_of("CmaTotal") / 4 * 3 & -psize();
	if (self->heap < 0 || !self->length)
		SKIP(return, "no CMA heap: needs CONFIG_DMABUF_HEAPS_CMA, and cma=32M at boot");
}

FIXTURE_TEARDOWN(clear_heap)
{
	if (self->heap >= 0)
		close(self->heap);
}

/*
 * [clearing 34] A buffer of three quarters of the area is filled and given back,
 * and so is the next: it stands on half of the area again, at least.
 */
TEST_F(clear_heap, buffer_again)
{
	for (int round = 0; round < 4; round++) {
		struct dma_heap_allocation_data data = {
			.len = self->length, .fd_flags = O_RDWR | O_CLOEXEC,
		};
		char *at;

		ASSERT_EQ(0, ioctl(self->heap, DMA_HEAP_IOCTL_ALLOC, &data)) {
			TH_LOG("round %d: %s", round, strerror(errno));
		}
		at = mmap(NULL, self->length, PROT_READ | PROT_WRITE, MAP_SHARED, data.fd, 0);
		ASSERT_NE(MAP_FAILED, at);
		EXPECT_EQ(0, not_zero(at, self->length / psize())) {
			TH_LOG("pages of %zu, round %d", self->length / psize(), round);
		}
		memset(at, pattern(round), self->length);
		munmap(at, self->length);
		close(data.fd);
	}
}

TEST_HARNESS_MAIN
