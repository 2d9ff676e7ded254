// SPDX-License-Identifier: GPL-2.0
/*
 * The content of memory that comes from a pool instead of the page allocator:
 * hugetlb pages, and buffers of the CMA heap of dma-buf.
 *
 * Proves: each byte is zero, although the same pages held other bytes before.
 * This holds for each hugetlb size of the machine. It also holds for each way
 * to get a hugetlb page: a fault at the start, middle or end of the page,
 * MAP_POPULATE, files of memfd_create(), fallocate(), and a driver that pins an
 * empty file.
 *
 * How: the hugetlb pool has exactly as many pages as a case uses. So each
 * allocation of the case gets the same pages again, and pagemap confirms this.
 * Each buffer of the CMA heap takes three quarters of the CMA area, and the
 * test frees each buffer before it allocates the next one. So two successive
 * buffers share at least half of the area. The virtual machine reserves a page
 * of 1 GiB and a CMA area at boot. On other machines use hugepagesz=1G
 * hugepages=1 and cma=32M on the kernel's command line.
 *
 * Does not prove: the order in which pages are cleared (KUnit:
 * folio_zero_order).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_clear_pool
 */
#include <dirent.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>

#include "folio_clear.h"
#include "folio_state.h"
#include "hugetlb_pool.h"

/* Each round allocates this many bytes, or one page if a page is larger. */
#define ROOM (16UL << 20)

/* The CMA area of the virtual machine is at most this large. */
#define CMA_AREA (32UL << 20)

/* How the test makes the kernel provide pages. */
enum way { WRITTEN, POPULATED, FILE_WRITTEN, FALLOCATED, PINNED };

FIXTURE(folio_clear_pool)
{
	struct memory memory;
	struct filled filled;
	size_t size;
	unsigned int pages;
	struct hugetlb_pool pool;
};

/*
 * @rank is the index of a hugetlb size, and index 0 is the smallest size. On
 * arm64 with 4K pages the sizes are 64K, 2M, 32M and 1G.
 */
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

/* Make the udmabuf driver pin the whole file. */
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

/*
 * Allocate all pages of the pool. For WRITTEN and FILE_WRITTEN, write to base
 * page @place of each hugetlb page. Returns whether the allocation worked.
 */
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
 * Enlarge the pool until it has enough pages for a long-term pin. The kernel
 * does not use pages in CMA areas for such a pin.
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

/*
 * Allocate the pages, check that they are zero, fill them and free them. Do this
 * at least twice. If a write allocates the pages, every round writes to one
 * base page of each hugetlb page. The rounds use up to six different base
 * pages.
 */
static void check(struct __test_metadata *_metadata, FIXTURE_DATA(folio_clear_pool) * self,
		  enum way how)
{
	unsigned int nr = self->size / psize();
	unsigned int places[] = { 0, 0, 1, nr / 2 - 1, nr / 2, nr - 3, nr - 1 };
	bool faults = how == WRITTEN || how == FILE_WRITTEN;
	struct memory *m = &self->memory;

	/* A round with a page of 1 GiB takes seconds, so use only two base pages. */
	if (self->size > 4 * ROOM)
		places[1] = nr / 2;
	for (unsigned int i = 0; i < (faults && self->size <= 4 * ROOM ? 7 : 2); i++) {
		ASSERT_TRUE(take(self, how, places[i]));
		EXPECT_EQ(0, not_zero(m->at, m->pages)) {
			TH_LOG("some of %u pages not zero: %u per hugetlb page, touched page %u",
			       m->pages, nr, places[i]);
		}
		EXPECT_TRUE(are_folios(m->at, m->pages, order_of(nr)));
		if (i) {
			EXPECT_EQ(m->pages, were_filled(&self->filled, m->at, m->pages)) {
				TH_LOG("the pool gave other pages this time: this proves nothing");
			}
		}
		ASSERT_TRUE(fill(&self->filled, m->at, m->pages));
		memory_free(m);
	}
}

/*
 * Private hugetlb pages are zero after a first write. Each round writes to one
 * base page of each hugetlb page. All rounds together use up to six different
 * base pages: the first and the second, two in the middle, and two at the end.
 */
TEST_F_TIMEOUT(folio_clear_pool, written, 240)
{
	check(_metadata, self, WRITTEN);
}

/* Private hugetlb pages that MAP_POPULATE allocates are zero. */
TEST_F_TIMEOUT(folio_clear_pool, populated, 240)
{
	check(_metadata, self, POPULATED);
}

/*
 * Pages of a shared file of memfd_create(MFD_HUGETLB) are zero after a first
 * write. The write goes to up to six places of the page in turn.
 */
TEST_F_TIMEOUT(folio_clear_pool, file_written, 240)
{
	check(_metadata, self, FILE_WRITTEN);
}

/*
 * fallocate() allocates and clears the pages of a hugetlb file. A later fault
 * only maps these pages, and they are zero.
 */
TEST_F_TIMEOUT(folio_clear_pool, file_fallocated, 240)
{
	check(_metadata, self, FALLOCATED);
}

/*
 * A driver pins a hugetlb file that has no pages yet, so the kernel allocates
 * new pages. There is no fault address that the kernel could use as a hint when
 * it clears these pages. A process that maps the file finds zeros.
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

FIXTURE_SETUP(clear_heap)
{
	DIR *folder = opendir("/dev/dma_heap");
	struct dirent *entry;

	/*
	 * The name of the CMA heap differs between kernels. All other heaps
	 * have names that begin with "system".
	 */
	self->heap = -1;
	while (folder && self->heap < 0 && (entry = readdir(folder))) {
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, "system", 6))
			self->heap = openat(dirfd(folder), entry->d_name, O_RDWR);
	}
	if (folder)
		closedir(folder);
	self->length = self->heap < 0 ? 0 :
		       bytes(size_in("/proc/meminfo", "CmaTotal") / 4 * 3);
	if (!self->length)
		SKIP(return, "no CMA heap: needs CONFIG_DMABUF_HEAPS_CMA, and cma=32M at boot");
}

FIXTURE_TEARDOWN(clear_heap)
{
	if (self->heap >= 0)
		close(self->heap);
}

/*
 * Four times, the test allocates a buffer of three quarters of the CMA area,
 * checks that it is zero, fills it and frees it. Two such buffers always have
 * at least half of the area in common. So each buffer after the first contains
 * pages that the test has filled.
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
			TH_LOG("some of %zu pages are not zero, round %d",
			       self->length / psize(), round);
		}
		memset(at, pattern(round), self->length);
		munmap(at, self->length);
		close(data.fd);
	}
}

TEST_HARNESS_MAIN
