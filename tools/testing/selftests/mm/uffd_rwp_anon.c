// SPDX-License-Identifier: GPL-2.0
/*
 * userfaultfd protects anonymous memory against all accesses (RWP).
 *
 * Proves: an access to a protected page traps, and an access to any other page does not. The
 * protection stays when mprotect() changes the mapping, when NUMA balancing makes the entries
 * around it inaccessible and accessible again, when pages migrate or go to swap, and when a folio
 * is split. A child of fork() and a mapping that mremap() moves have no protection. After the
 * protection ends, each page has its content. PAGEMAP_SCAN reports exactly the pages that are not
 * protected.
 *
 * How: two folios, or single pages. A case protects all pages, or the second half of the first
 * folio and the first half of the second. Like this protection, a hint of NUMA balancing makes an
 * entry inaccessible. NUMA balancing scans before or after the case protects the pages.
 *
 * Does not prove: anything about files (uffd_rwp) and hugetlb (hugetlb_sizes), or about
 * asynchronous protection.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 KERNEL=7.3 TESTS=uffd_rwp_anon
 */
#include <linux/fs.h>

#include "folio_listen.h"
#include "folio_nodes.h"
#include "folio_shared.h"

/* Definitions of the kernel's headers in 7.3, for older headers. */
#define FEATURE_RWP BIT_ULL(17)
#define REGISTER_RWP BIT_ULL(3)
#define RWPROTECT _IOWR(UFFDIO, 0x09, struct uffdio_writeprotect)
#define IS_ACCESSED BIT_ULL(9)

/*
 * @first: the first protected page; @kept: how many pages are protected
 */
FIXTURE(uffd_rwp_anon)
{
	struct watched watched;
	int uffd;
	unsigned int first;
	unsigned int kept;
};

/* @order: SINGLE, BLOCK or HUGE; @part: whether only a part of the pages is protected */
FIXTURE_VARIANT(uffd_rwp_anon)
{
	enum { SINGLE, BLOCK, HUGE } order;
	bool part;
};

FIXTURE_VARIANT_ADD(uffd_rwp_anon, single_part)
{
	.order = SINGLE,
	.part = true,
};

FIXTURE_VARIANT_ADD(uffd_rwp_anon, block)
{
	.order = BLOCK,
};

FIXTURE_VARIANT_ADD(uffd_rwp_anon, block_part)
{
	.order = BLOCK,
	.part = true,
};

FIXTURE_VARIANT_ADD(uffd_rwp_anon, huge_page)
{
	.order = HUGE,
};

FIXTURE_VARIANT_ADD(uffd_rwp_anon, huge_page_part)
{
	.order = HUGE,
	.part = true,
};

FIXTURE_SETUP(uffd_rwp_anon)
{
	struct memory *m = &self->watched.memory;
	struct uffdio_register where = { .mode = REGISTER_RWP };
	int order = variant->order == SINGLE ? 0 : order_of(cont_ptes());
	const char *why = NULL;

	m->fd = -1;
	m->room = NULL;
	self->uffd = listener(UFFD_FEATURE_SIGBUS | FEATURE_RWP);
	if (self->uffd < 0)
		SKIP(return, "userfaultfd cannot protect against reads");
	if (variant->order == HUGE) {
		order = pmd_pages() ? order_of(pmd_pages()) : 0;
		why = order ? NULL : NO_HUGE_PAGES;
	}
	if (!why)
		why = watched_setup(&self->watched, ANON, order,
				    variant->order == SINGLE ? 2 * cont_ptes() : 2);
	if (why)
		SKIP(return, "%s", why);
	self->first = variant->part ? m->pages / 4 : 0;
	self->kept = variant->part ? m->pages / 2 : m->pages;
	where.range.start = (unsigned long)m->at;
	where.range.len = bytes(m->pages);
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &where));
}

FIXTURE_TEARDOWN(uffd_rwp_anon)
{
	if (self->uffd >= 0)
		close(self->uffd);
	memory_free(&self->watched.memory);
}

/* Set or clear the protection of pages. Returns 0 or -errno. */
static int rwprotect(int uffd, char *at, unsigned int pages, bool on)
{
	struct uffdio_writeprotect arguments = {
		.range = { (unsigned long)at, bytes(pages) },
		.mode = on,
	};

	return ioctl(uffd, RWPROTECT, &arguments) ? -errno : 0;
}

/* Protect the pages of the case. Returns 0 or -errno. */
static int arm(const FIXTURE_DATA(uffd_rwp_anon) * self)
{
	return rwprotect(self->uffd, self->watched.memory.at + bytes(self->first), self->kept,
			 true);
}

/* Whether a page is one of the protected pages. */
static bool is_kept(const FIXTURE_DATA(uffd_rwp_anon) * self, unsigned int page)
{
	return page >= self->first && page < self->first + self->kept;
}

/* How many pages PAGEMAP_SCAN reports as accessed. */
static unsigned int accessed(const struct memory *m)
{
	struct page_region regions[8];
	struct pm_scan_arg arguments = {
		.size = sizeof(arguments),
		.start = (unsigned long)m->at,
		.end = (unsigned long)m->at + bytes(m->pages),
		.vec = (unsigned long)regions,
		.vec_len = ARRAY_SIZE(regions),
		.category_mask = IS_ACCESSED,
		.return_mask = IS_ACCESSED,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY);
	int count = ioctl(fd, PAGEMAP_SCAN, &arguments);
	size_t length = 0;

	for (int i = 0; i < count; i++)
		length += regions[i].end - regions[i].start;
	close(fd);
	return count < 0 ? -1U : length / psize();
}

/* Check that accesses to protected pages trap, and that accesses to other pages do not. */
static void check(struct __test_metadata *_metadata, const FIXTURE_DATA(uffd_rwp_anon) * self,
		  const char *when)
{
	const struct memory *m = &self->watched.memory;
	unsigned int beside = m->pages - self->kept;

	EXPECT_EQ(beside, accessed(m)) {
		TH_LOG("%s: pages that PAGEMAP_SCAN reports", when);
	}
	EXPECT_EQ(self->kept, traps(m->at + bytes(self->first), self->kept)) {
		TH_LOG("%s: protected pages that trap", when);
	}
	for (unsigned int page = 0; page < m->pages; page++) {
		if (is_kept(self, page))
			continue;
		beside -= !try_access(m->at + bytes(page), true) &&
			  page_is(m->at + bytes(page), pattern(page));
	}
	EXPECT_EQ(0, beside) {
		TH_LOG("%s: other pages that trap, or have the wrong content", when);
	}
}

/* End the protection, and check that all pages have their content. */
static void disarm(struct __test_metadata *_metadata, const FIXTURE_DATA(uffd_rwp_anon) * self)
{
	const struct memory *m = &self->watched.memory;

	ASSERT_EQ(0, rwprotect(self->uffd, m->at, m->pages, false));
	EXPECT_EQ(0, traps(m->at, m->pages));
	EXPECT_EQ(m->pages, accessed(m));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_EQ(0, try_access(m->at + bytes(page), true));
	DID(self->kept, "pages protected");
}

/*
 * The mapping becomes read-only, and then writable again. Then it becomes inaccessible, and then
 * writable again.
 */
TEST_F(uffd_rwp_anon, mprotect)
{
	struct memory *m = &self->watched.memory;
	size_t length = bytes(m->pages);

	ASSERT_EQ(0, arm(self));
	check(_metadata, self, "at first");
	ASSERT_EQ(0, mprotect(m->at, length, PROT_READ));
	EXPECT_EQ(self->kept, traps(m->at, m->pages));
	EXPECT_EQ(SIGBUS, try_access(m->at + bytes(self->first), false));
	ASSERT_EQ(0, mprotect(m->at, length, PROT_READ | PROT_WRITE));
	check(_metadata, self, "after PROT_READ");
	ASSERT_EQ(0, mprotect(m->at, length, PROT_NONE));
	EXPECT_EQ(SIGSEGV, try_access(m->at, false));
	EXPECT_EQ(SIGSEGV, try_access(m->at + bytes(self->first), false));
	ASSERT_EQ(0, mprotect(m->at, length, PROT_READ | PROT_WRITE));
	check(_metadata, self, "after PROT_NONE");
	disarm(_metadata, self);
}

/*
 * Only the last page becomes read-only, and then writable again. If one entry maps a huge page, the
 * kernel replaces it by entries of single pages.
 */
TEST_F(uffd_rwp_anon, mprotect_part)
{
	struct memory *m = &self->watched.memory;
	char *last = m->at + bytes(m->pages - 1);

	ASSERT_EQ(0, arm(self));
	ASSERT_EQ(0, mprotect(last, bytes(1), PROT_READ));
	ASSERT_EQ(0, mprotect(last, bytes(1), PROT_READ | PROT_WRITE));
	check(_metadata, self, "after PROT_READ");
	disarm(_metadata, self);
}

/* The pages are protected while the mapping is inaccessible. */
TEST_F(uffd_rwp_anon, mprotect_before)
{
	struct memory *m = &self->watched.memory;
	size_t length = bytes(m->pages);

	ASSERT_EQ(0, mprotect(m->at, length, PROT_NONE));
	ASSERT_EQ(0, arm(self));
	ASSERT_EQ(0, mprotect(m->at, length, PROT_READ | PROT_WRITE));
	check(_metadata, self, "after PROT_NONE");
	disarm(_metadata, self);
}

/*
 * NUMA balancing scans the memory after some pages were protected. It leaves them alone, and gives
 * hints to all other pages.
 */
TEST_F_TIMEOUT(uffd_rwp_anon, numa_after, 60)
{
	struct memory *m = &self->watched.memory;

	ASSERT_EQ(0, arm(self));
	EXPECT_EQ(m->pages - self->kept, hint(&self->watched));
	check(_metadata, self, "after the scan");
	EXPECT_EQ(m->pages - self->kept, hint(&self->watched));
	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ));
	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_READ | PROT_WRITE));
	check(_metadata, self, "after the scan and mprotect()");
	disarm(_metadata, self);
}

/*
 * NUMA balancing scans the memory, and then some of the pages are protected. A fault on another
 * page of the same folio makes only the pages accessible that are not protected.
 */
TEST_F_TIMEOUT(uffd_rwp_anon, numa_before, 60)
{
	struct memory *m = &self->watched.memory;

	EXPECT_LT(0, hint(&self->watched));
	ASSERT_EQ(0, arm(self));
	check(_metadata, self, "after the scan");
	disarm(_metadata, self);
	EXPECT_LT(0, hint(&self->watched));
	ASSERT_EQ(0, arm(self));
	ASSERT_EQ(0, rwprotect(self->uffd, m->at, m->pages, false));
	EXPECT_EQ(0, traps(m->at, m->pages));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* The folios move to the node of this CPU, and back. */
TEST_F(uffd_rwp_anon, migrate)
{
	struct watched *w = &self->watched;
	struct memory *m = &w->memory;

	ASSERT_EQ(0, arm(self));
	for (int i = 0; i < 2; i++) {
		int to = i ? w->there : w->here;

		ASSERT_EQ(0, bind_to(m->at, m->pages, 1UL << to, MPOL_MF_MOVE | MPOL_MF_STRICT));
		ASSERT_EQ(to, move_page(m->at, NULL));
		ASSERT_EQ(to, move_page(m->at + bytes(m->pages - 1), NULL));
		check(_metadata, self, "after a move");
	}
	disarm(_metadata, self);
}

/* All pages go to swap, and come back. */
TEST_F(uffd_rwp_anon, swap)
{
	struct memory *m = &self->watched.memory;

	if (!have_swap())
		SKIP(return, "no swap");
	ASSERT_EQ(0, arm(self));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	DID(swapped_out(m), "pages swapped out");
	check(_metadata, self, "after swap");
	disarm(_metadata, self);
}

/* The kernel splits the folios into single pages. */
TEST_F(uffd_rwp_anon, split)
{
	struct memory *m = &self->watched.memory;
	unsigned int folios = m->pages >> m->order, left = 0;

	if (variant->order == SINGLE)
		SKIP(return, "needs large folios");
	ASSERT_EQ(0, arm(self));
	ASSERT_TRUE(split_folios(m));
	for (unsigned int folio = 0; folio < folios; folio++)
		left += is_folio(m, folio << m->order);
	EXPECT_EQ(0, left);
	check(_metadata, self, "after the split");
	disarm(_metadata, self);
}

/* If some of the pages are protected, MADV_COLLAPSE makes no huge page of them. */
TEST_F(uffd_rwp_anon, collapse)
{
	struct memory *m = &self->watched.memory;

	if (variant->order != HUGE || !variant->part)
		SKIP(return, "needs a huge page that was split");
	ASSERT_EQ(0, arm(self));
	ASSERT_TRUE(split_folios(m));
	EXPECT_NE(0, madvise(m->at, bytes(m->pages), MADV_COLLAPSE));
	check(_metadata, self, "after the collapse");
	disarm(_metadata, self);
}

/* process_vm_readv() fails for protected pages, and does not end their protection. */
TEST_F(uffd_rwp_anon, remote_read)
{
	struct memory *m = &self->watched.memory;
	unsigned int refused = 0, page;

	ASSERT_EQ(0, arm(self));
	for (page = 0; page < m->pages; page++) {
		char byte = 0;
		struct iovec to = { &byte, 1 }, from = { m->at + bytes(page), 1 };
		bool read = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;

		refused += !read;
		EXPECT_EQ(is_kept(self, page), !read);
		EXPECT_EQ(read ? pattern(page) : 0, (unsigned char)byte);
	}
	DID(refused, "reads that failed");
	check(_metadata, self, "after the reads");
	disarm(_metadata, self);
}

/* A child has no protection, and the parent keeps it. Both write to all their pages. */
TEST_F(uffd_rwp_anon, fork)
{
	struct memory *m = &self->watched.memory;
	pid_t child;

	ASSERT_EQ(0, arm(self));
	child = fork();
	if (!child) {
		bool right = !traps(m->at, m->pages) && foreign_page(m->at, 0, m->pages) < 0;

		memset(m->at, 0, bytes(m->pages));
		_exit(!right);
	}
	EXPECT_EQ(0, child_of(child));
	check(_metadata, self, "after fork()");
	disarm(_metadata, self);
}

/* mremap() moves the memory. Nobody watches it at the new place. */
TEST_F(uffd_rwp_anon, mremap)
{
	struct memory *m = &self->watched.memory;
	size_t length = bytes(m->pages);
	char *to = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, to);
	ASSERT_EQ(0, arm(self));
	ASSERT_EQ(to, mremap(m->at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	EXPECT_EQ(0, traps(to, m->pages));
	EXPECT_EQ(-1, foreign_page(to, 0, m->pages));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_EQ(0, try_access(to + bytes(page), true));
	DID(self->kept, "pages protected");
	munmap(to, length);
}

/* userfaultfd stops watching the memory. */
TEST_F(uffd_rwp_anon, unregister)
{
	struct memory *m = &self->watched.memory;
	struct uffdio_range range = { (unsigned long)m->at, bytes(m->pages) };

	ASSERT_EQ(0, arm(self));
	check(_metadata, self, "at first");
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_UNREGISTER, &range));
	EXPECT_EQ(0, traps(m->at, m->pages));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
	DID(self->kept, "pages protected");
}

TEST_HARNESS_MAIN
