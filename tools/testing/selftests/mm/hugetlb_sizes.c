// SPDX-License-Identifier: GPL-2.0
/*
 * Hugetlb pages of each size that the machine has.
 *
 * Proves, for each size: one entry of this size maps each page, also after migration, UFFDIO_COPY,
 * mremap(), mprotect() and copy-on-write, and after another page is poisoned. Each page keeps its
 * content. A page that userfaultfd protects stays protected when it migrates and when mprotect()
 * changes its mapping. An access to any part of a poisoned page raises SIGBUS.
 *
 * How: a page of 64K or 32M (arm64, 4K pages) has 16 entries in a page table. So the cases look at
 * PROBES places in each page. perf tells how large the entry is at each place. Each small page
 * begins with its own number. In pages of 1G only some of the small pages have a number. The
 * machine has two pages of 1G, one on each node, so in these cases the mapping has only one page.
 *
 * Does not prove: anything about page tables that processes share (hugetlb_mremap).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_sizes
 */
#include "folio_listen.h"
#include "folio_poison.h"
#include "folio_state.h"
#include "hugetlb_tables.h"

/* How many places of each page the cases look at. */
#define PROBES 16
/* Pages of at least this size are rare and slow to fill. */
#define LARGE (512UL << 20)

/* Definitions of include/uapi/linux/userfaultfd.h in 7.3, for older headers. */
#define FEATURE_RWP BIT_ULL(17)
#define REGISTER_RWP BIT_ULL(3)
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)

/*
 * @pages: how many hugetlb pages are mapped at @at
 * @one: the page that the case changes; if there are several pages, it is in the middle
 * @room: reserved addresses, in which two times @pages fit
 */
FIXTURE(hugetlb_sizes)
{
	struct hugetlb_pool pool;
	size_t size;
	int pages;
	int one;
	char *room;
	char *at;
	int uffd;
};

/* @rank: 0 is the smallest size of hugetlb pages, 1 the next, and so on. */
FIXTURE_VARIANT(hugetlb_sizes)
{
	int rank;
};

FIXTURE_VARIANT_ADD(hugetlb_sizes, smallest)
{
	.rank = 0,
};

FIXTURE_VARIANT_ADD(hugetlb_sizes, second)
{
	.rank = 1,
};

FIXTURE_VARIANT_ADD(hugetlb_sizes, third)
{
	.rank = 2,
};

FIXTURE_VARIANT_ADD(hugetlb_sizes, fourth)
{
	.rank = 3,
};

/* The distance of small pages with a number. It is odd, so all parts of a page have numbers. */
static size_t distance(size_t size)
{
	return size < LARGE ? psize() : 61 * psize();
}

/* Write the numbers of page @page to @to. */
static void fill(size_t size, char *to, unsigned int page)
{
	for (size_t at = 0; at < size; at += distance(size))
		*(unsigned int *)(to + at) = page * (size / psize()) + at / psize() + 1;
}

/* How many numbers of page @page are wrong at @from. */
static unsigned int wrong(size_t size, const char *from, unsigned int page)
{
	unsigned int count = 0;

	for (size_t at = 0; at < size; at += distance(size))
		count += *(unsigned int *)(from + at) != page * (size / psize()) + at / psize() + 1;
	return count;
}

/* Map @pages hugetlb pages at @at. */
static char *map(FIXTURE_DATA(hugetlb_sizes) * self, char *at, int pages)
{
	return mmap(at, pages * self->size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED |
		    order_of(self->size) << MAP_HUGE_SHIFT, -1, 0);
}

FIXTURE_SETUP(hugetlb_sizes)
{
	const char *why;

	self->room = MAP_FAILED;
	self->uffd = -1;
	self->size = hugetlb_size(variant->rank);
	self->pool.folder[0] = 0;
	if (!self->size)
		SKIP(return, "no such size of hugetlb");
	self->pages = self->size < LARGE ? 3 : 1;
	self->one = self->pages / 2;
	why = hugetlb_pool_have(&self->pool, self->size, 2 * self->pages);
	if (why)
		SKIP(return, "%zuK: %s", self->size >> 10, why);
	self->room = mmap(NULL, (2 * self->pages + 1) * self->size, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->room);
	self->at = (char *)(((unsigned long)self->room + self->size - 1) & -self->size);
	if (map(self, self->at, self->pages) == MAP_FAILED)
		SKIP(return, "all hugetlb pages of %zuK are in use", self->size >> 10);
	for (int page = 0; page < self->pages; page++)
		fill(self->size, self->at + page * self->size, page);
}

FIXTURE_TEARDOWN(hugetlb_sizes)
{
	if (self->uffd >= 0)
		close(self->uffd);
	if (self->room != MAP_FAILED)
		munmap(self->room, (2 * self->pages + 1) * self->size);
	hugetlb_pool_restore(&self->pool);
}

/* The page that the case changes. */
static char *one(const FIXTURE_DATA(hugetlb_sizes) * self)
{
	return self->at + self->one * self->size;
}

/* One of the PROBES places of the page at @at. Their offsets in small pages differ. */
static char *place(const FIXTURE_DATA(hugetlb_sizes) * self, char *at, int probe)
{
	return at + probe * (self->size / PROBES) + 8 * probe + 8;
}

/* At how many of the places of the page at @at an access raises the signal. */
static int raises(const FIXTURE_DATA(hugetlb_sizes) * self, char *at, bool write, int signal)
{
	int count = 0;

	for (int probe = 0; probe < PROBES; probe++)
		count += try_access(place(self, at, probe), write) == signal;
	return count;
}

/* Check that @at is page @page, and that entries of this size map it. */
static void check_page(struct __test_metadata *_metadata, const FIXTURE_DATA(hugetlb_sizes) * self,
		       char *at, int page)
{
	for (int probe = 0; perf_tells() && probe < PROBES; probe++) {
		EXPECT_EQ(self->size, mapped_size(place(self, at, probe))) {
			TH_LOG("%zuK: place %d of page %d", self->size >> 10, probe, page);
		}
	}
	EXPECT_EQ(0, wrong(self->size, at, page)) {
		TH_LOG("%zuK: small pages with wrong content in page %d", self->size >> 10, page);
	}
}

/* Check all pages of the mapping except for page @gone. */
static void check(struct __test_metadata *_metadata, const FIXTURE_DATA(hugetlb_sizes) * self,
		  int gone)
{
	for (int page = 0; page < self->pages; page++)
		if (page != gone)
			check_page(_metadata, self, self->at + page * self->size, page);
}

/* How many pages of this size are free on a node. */
static unsigned long free_on(const FIXTURE_DATA(hugetlb_sizes) * self, int node)
{
	char path[128];

	snprintf(path, sizeof(path),
		 "/sys/devices/system/node/node%d/hugepages/hugepages-%zukB/free_hugepages", node,
		 self->size >> 10);
	return access(path, F_OK) ? 0 : read_num(path);
}

/*
 * Move the page to the other node. Returns NULL, or the reason why this is impossible. The
 * kernel allocates pages of 1G only at boot, so the other node must have one.
 */
static const char *migrate(struct __test_metadata *_metadata,
			   const FIXTURE_DATA(hugetlb_sizes) * self, char *at)
{
	int node = move_page(at, NULL), to = !node;
	unsigned long frame = pfn_of(at);

	if (self->size >= LARGE && !free_on(self, to))
		return "no free page of this size on the other node";
	if (move_page(at, &to) == -ENODEV)
		return "needs two NUMA nodes";
	EXPECT_EQ(!node, move_page(at, NULL));
	EXPECT_NE(frame, pfn_of(at));
	return NULL;
}

/*
 * Each page migrates to the other node and back. All pages have their content
 * after each move, and the frames of the other pages do not change.
 */
TEST_F(hugetlb_sizes, migrate)
{
	int moves = 0;

	for (int i = 0; i < 2 * self->pages; i++) {
		char *at = self->at + i / 2 * self->size;
		char *next = self->at + (i / 2 + 1) % self->pages * self->size;
		unsigned long beside = pfn_of(next);
		const char *why = migrate(_metadata, self, at);

		if (why)
			SKIP(return, "%zuK: %s", self->size >> 10, why);
		if (next != at)
			EXPECT_EQ(beside, pfn_of(next));
		check(_metadata, self, -1);
		EXPECT_EQ(0, raises(self, at, true, SIGSEGV));
		moves++;
	}
	DID(moves, "moves of pages");
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/*
 * A page moves to another address, and back. Nothing is left at its old
 * address. The page and the other pages keep their frames.
 */
TEST_F(hugetlb_sizes, mremap)
{
	char *to = self->at + self->pages * self->size;
	unsigned long frame = pfn_of(one(self));

	ASSERT_EQ(to, mremap(one(self), self->size, self->size, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	EXPECT_EQ(PROBES, raises(self, one(self), false, SIGSEGV));
	EXPECT_EQ(frame, pfn_of(to));
	check_page(_metadata, self, to, self->one);
	check(_metadata, self, self->one);
	ASSERT_EQ(one(self), mremap(to, self->size, self->size, MREMAP_MAYMOVE | MREMAP_FIXED,
				    one(self)));
	EXPECT_EQ(PROBES, raises(self, to, false, SIGSEGV));
	EXPECT_EQ(frame, pfn_of(one(self)));
	check(_metadata, self, -1);
	EXPECT_EQ(0, raises(self, one(self), true, SIGSEGV));
	DID(2, "moves of a page");
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/* The exit status of the child in copy_on_write. */
enum { COPIED, NOT_COPIED, NO_PAGE };

/*
 * In a child: write one number to the page, whose frame is @frame in the parent. The other numbers
 * of the page must not change. Returns the exit status.
 */
static int write_copy(const FIXTURE_DATA(hugetlb_sizes) * self, unsigned long frame)
{
	unsigned long before = pfn_of(one(self));
	bool same = before == frame && !wrong(self->size, one(self), self->one);

	if (before == -1UL)
		return NO_PAGE;
	*(unsigned int *)one(self) = 0;
	return same && pfn_of(one(self)) != frame &&
	       wrong(self->size, one(self), self->one) == 1 ? COPIED : NOT_COPIED;
}

/*
 * A child writes to the page. Each process sees its own content of the page,
 * and the parent can still write to its page.
 */
TEST_F(hugetlb_sizes, copy_on_write)
{
	unsigned long frame = pfn_of(one(self));
	int end = NO_PAGE;

	for (int i = 0; i < USED_TRIES && end == NO_PAGE; i++) {
		pid_t child;

		avoid_issue_10();
		child = fork();
		if (!child)
			_exit(write_copy(self, frame));
		end = child_of(child);
	}
	ASSERT_EQ(COPIED, end);
	EXPECT_EQ(frame, pfn_of(one(self)));
	check(_metadata, self, -1);
	fill(self->size, one(self), self->one);
	check(_metadata, self, -1);
	EXPECT_EQ(frame, pfn_of(one(self)));
	DID(1, "pages copied");
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/*
 * A page is missing, and an access to any part of it raises SIGBUS. UFFDIO_COPY
 * fills the page with a copy of another hugetlb page.
 */
TEST_F(hugetlb_sizes, uffd_copy)
{
	char *source = self->at + self->pages * self->size;
	struct uffdio_register where = {
		.range = { (unsigned long)self->at, self->pages * self->size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_copy copy = {
		.dst = (unsigned long)one(self),
		.src = (unsigned long)source,
		.len = self->size,
	};

	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_HUGETLBFS);
	if (self->uffd < 0)
		SKIP(return, "userfaultfd cannot watch hugetlb pages");
	ASSERT_EQ(source, map(self, source, 1));
	fill(self->size, source, self->one);
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
	ASSERT_EQ(0, madvise(one(self), self->size, MADV_DONTNEED));
	ASSERT_EQ(PROBES, raises(self, one(self), false, SIGBUS));
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_COPY, &copy));
	EXPECT_EQ((__s64)self->size, copy.copy);
	check(_metadata, self, -1);
	EXPECT_EQ(0, raises(self, one(self), true, SIGBUS));
	DID(PROBES, "places filled");
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/* Check that writes to the protected page, and if @reads also reads, raise SIGBUS. */
static void check_protected(struct __test_metadata *_metadata,
			    const FIXTURE_DATA(hugetlb_sizes) * self, bool reads)
{
	EXPECT_EQ(reads ? PROBES : 0, raises(self, one(self), false, SIGBUS));
	EXPECT_EQ(PROBES, raises(self, one(self), true, SIGBUS));
	for (int page = 0; page < self->pages; page++)
		if (page != self->one)
			EXPECT_EQ(0, raises(self, self->at + page * self->size, true, SIGBUS));
	check(_metadata, self, self->one);
	if (!reads)
		check_page(_metadata, self, one(self), self->one);
}

/*
 * The page is protected against writes, or, if @reads, against all accesses. It stays protected
 * when it migrates, and when mprotect() changes the mapping. After the protection ends, the page
 * has its content.
 */
static void stays_protected(struct __test_metadata *_metadata,
			    FIXTURE_DATA(hugetlb_sizes) * self, bool reads, unsigned long how)
{
	struct uffdio_writeprotect arguments = {
		.range = { (unsigned long)one(self), self->size },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	size_t length = self->pages * self->size;
	const char *why;
	int moves = 0;

	ASSERT_EQ(0, ioctl(self->uffd, how, &arguments));
	check_protected(_metadata, self, reads);
	ASSERT_EQ(0, mprotect(self->at, length, PROT_READ));
	EXPECT_EQ(reads ? PROBES : 0, raises(self, one(self), false, SIGBUS));
	ASSERT_EQ(0, mprotect(self->at, length, PROT_READ | PROT_WRITE));
	check_protected(_metadata, self, reads);
	for (why = NULL; moves < 2 && !why; moves++) {
		why = migrate(_metadata, self, one(self));
		check_protected(_metadata, self, reads);
	}
	arguments.mode = 0;
	ASSERT_EQ(0, ioctl(self->uffd, how, &arguments));
	check(_metadata, self, -1);
	EXPECT_EQ(0, raises(self, one(self), true, SIGBUS));
	DID(PROBES, "places protected");
	if (why && __test_passed(_metadata))
		SKIP(return, "%zuK: %s", self->size >> 10, why);
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

/* The page is protected against writes. */
TEST_F(hugetlb_sizes, uffd_wp)
{
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
	if (self->uffd < 0)
		SKIP(return, "userfaultfd cannot protect hugetlb pages");
	ASSERT_EQ(0, listen_to(self->uffd, self->at, self->pages * self->size));
	stays_protected(_metadata, self, false, UFFDIO_WRITEPROTECT);
}

/*
 * The page is missing when it is protected against writes. A read brings a page
 * of zeros, and any write raises SIGBUS.
 */
TEST_F(hugetlb_sizes, uffd_wp_missing)
{
	struct uffdio_writeprotect arguments = {
		.range = { (unsigned long)one(self), self->size },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	unsigned int zeros = 0;

	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
	if (self->uffd < 0)
		SKIP(return, "userfaultfd cannot protect hugetlb pages");
	ASSERT_EQ(0, listen_to(self->uffd, self->at, self->pages * self->size));
	ASSERT_EQ(0, madvise(one(self), self->size, MADV_DONTNEED));
	ASSERT_FALSE(pagemap_has(one(self), PM_PRESENT));
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_WRITEPROTECT, &arguments));
	EXPECT_EQ(0, raises(self, one(self), false, SIGBUS));
	EXPECT_EQ(PROBES, raises(self, one(self), true, SIGBUS));
	for (int probe = 0; probe < PROBES; probe++)
		zeros += !read_byte(place(self, one(self), probe));
	EXPECT_EQ(PROBES, zeros);
	arguments.mode = 0;
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_WRITEPROTECT, &arguments));
	EXPECT_EQ(0, raises(self, one(self), true, SIGBUS));
	check(_metadata, self, self->one);
	DID(zeros, "places protected");
}

/* The page is protected against all accesses. */
TEST_F(hugetlb_sizes, uffd_rwp)
{
	struct uffdio_register where = {
		.range = { (unsigned long)self->at, self->pages * self->size },
		.mode = REGISTER_RWP,
	};

	self->uffd = listener(UFFD_FEATURE_SIGBUS | FEATURE_RWP);
	if (self->uffd < 0)
		SKIP(return, "userfaultfd cannot protect against reads");
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
	stays_protected(_metadata, self, true, RWPROTECT);
}

/*
 * One small page in the middle of the page is poisoned. Then an access to any
 * part of the page raises SIGBUS. HardwareCorrupted counts one small page. This
 * case is the last one, because the machine cannot use the page afterwards.
 */
TEST_F(hugetlb_sizes, poison)
{
	char *bad = one(self) + self->size / 2 + psize();
	long corrupted = size_in("/proc/meminfo", "HardwareCorrupted");

	if (access("/tests/list", F_OK))
		SKIP(return, "runs only in the virtual machine");
	if (poison(bad, 1))
		SKIP(return, "CONFIG_MEMORY_FAILURE=n");
	EXPECT_EQ(PROBES, raises(self, one(self), false, SIGBUS));
	EXPECT_EQ(SIGBUS, try_access(bad, true));
	EXPECT_EQ(corrupted + 1, size_in("/proc/meminfo", "HardwareCorrupted"));
	check(_metadata, self, self->one);
	DID(PROBES, "places that raise SIGBUS");
	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
}

TEST_HARNESS_MAIN
