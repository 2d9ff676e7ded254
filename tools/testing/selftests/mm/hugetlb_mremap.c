// SPDX-License-Identifier: GPL-2.0
/*
 * mremap() of a hugetlb mapping to an address where page tables can be shared.
 *
 * Proves: mremap() returns, and the page at the new place has the content of the page at the old
 * place.
 *
 * How: two processes can share a page table of hugetlb pages if each has a shared mapping of all
 * memory that the table can map. A child maps as much memory of a hugetlb file as one page table
 * can map, and touches one page. Then the child moves the mapping to an address that is aligned to
 * the size of this memory. In the controls, the mapping is private, or the new address is not
 * aligned.
 *
 * Does not prove: how the kernel moves a table that two processes share (hugetlb_block).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_mremap
 */
#include <sys/wait.h>

#include "folio_did.h"
#include "folio_known.h"
#include "hugetlb_pool.h"

#define SECONDS 5
#define CONTENT 7

FIXTURE(hugetlb_mremap)
{
	struct hugetlb_pool pool;
	size_t size;	/* of a page */
	size_t span;	/* how much one page table maps */
};

/*
 * @flags: MAP_PRIVATE or MAP_SHARED
 * @aligned: whether the new address is aligned to the memory of a page table
 */
FIXTURE_VARIANT(hugetlb_mremap)
{
	int flags;
	bool aligned;
};

FIXTURE_VARIANT_ADD(hugetlb_mremap, shared)
{
	.flags = MAP_SHARED,
	.aligned = true,
};

FIXTURE_VARIANT_ADD(hugetlb_mremap, shared_unaligned)
{
	.flags = MAP_SHARED,
};

FIXTURE_VARIANT_ADD(hugetlb_mremap, private)
{
	.flags = MAP_PRIVATE,
	.aligned = true,
};

FIXTURE_SETUP(hugetlb_mremap)
{
	size_t entries = psize() / sizeof(long);
	const char *why;

	self->size = entries * psize();
	self->span = entries * self->size;
	why = hugetlb_pool_have(&self->pool, self->size, 1);
	if (why)
		SKIP(return, "%zuK: %s", self->size >> 10, why);
}

FIXTURE_TEARDOWN(hugetlb_mremap)
{
	hugetlb_pool_restore(&self->pool);
}

/* The child maps a page, moves the mapping, and reads the page. Returns whether that worked. */
static bool move(const FIXTURE_DATA(hugetlb_mremap) * self,
		 const FIXTURE_VARIANT(hugetlb_mremap) * variant)
{
	int fd = memfd_create("hugetlb_mremap",
			      MFD_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT);
	char *room = mmap(NULL, 5 * self->span, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *at, *to;

	if (fd < 0 || room == MAP_FAILED || ftruncate(fd, self->span))
		return false;
	at = (char *)(((unsigned long)room + self->span - 1) & -self->span);
	to = at + 2 * self->span + (variant->aligned ? 0 : self->size);
	if (mmap(at, self->span, PROT_READ | PROT_WRITE,
		 variant->flags | MAP_FIXED | MAP_NORESERVE, fd, 0) != at)
		return false;
	at[0] = CONTENT;
	return mremap(at, self->span, self->span, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to &&
	       to[0] == CONTENT;
}

/*
 * Whether to make the call that never returns on a kernel with known issue 75. `make known-issues`
 * sets STRICT on a kernel with the issue, and ISSUES on a kernel with its patch.
 */
static bool may_hang(void)
{
	return !has_issue(75) || getenv("STRICT") || getenv("ISSUES");
}

/*
 * One page is enough: mremap() allocates a page table for it at the new place.
 *
 * Known issue 75: the call never returns, and no signal ends it.
 */
TEST_F(hugetlb_mremap, returns)
{
	bool may_share = variant->flags == MAP_SHARED && variant->aligned;
	int status = -1;
	pid_t child;

	if (may_share && !may_hang()) {
		KNOWN_ISSUE(75, "mremap() of shared hugetlb memory would never return");
		return;
	}
	child = fork();
	if (!child)
		_exit(!move(self, variant));
	ASSERT_LT(0, child);
	for (int i = 0; i < SECONDS * 100; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			break;
		usleep(10000);
	}
	ASSERT_NE(-1, status) {
		TH_LOG("mremap() does not return");
		kill(child, SIGKILL);
	}
	EXPECT_EQ(0, status);
	DID(status == 0, "mappings moved");
	if (may_share)
		STALE_ISSUE(75);
}

TEST_HARNESS_MAIN
