// SPDX-License-Identifier: GPL-2.0
/*
 * UFFDIO_POISON changes only the process that calls it, although processes may share page tables.
 *
 * Proves: if a process marks a page of a hugetlb file as lost, an access to this page raises SIGBUS
 * in this process, and in no other process that maps the file. The mark stays after the process has
 * dropped another page with MADV_DONTNEED.
 *
 * How: processes that map the same part of a hugetlb file share the page table, if this part is as
 * large as a page table maps. The child of a fork() touches the first page, and so gets the table
 * of its parent. Then the child registers its mapping, and marks a page.
 *
 *	page	0	1	2	LOST
 *	child	touched	appears		marked as lost
 *	parent	touched	touched		touched by a second mapping, too
 *
 * Page 1 appears in the child when its parent touches it: this proves that they share the table. As
 * a control, one variant also registers the mapping for write protection. The kernel then gives the
 * child a table of its own.
 *
 * Does not prove: anything about pages whose entries are in other tables than those of PMDs.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uffd_shared_table
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"
#include "hugetlb_pool.h"

#define LOST 5
/* Pages 0, 1 and LOST, and one to spare. */
#define POOL 4

/* What the child tells by its exit status. ERROR: a call failed. */
enum { SHARED = 1, MARKED = 2, STAYS = 4, ERROR = 8 };

FIXTURE(uffd_shared_table)
{
	struct hugetlb_pool pool;
	size_t size;	/* of a page */
	size_t span;	/* how much a page table maps */
	char *room;
	char *at;	/* a whole page table of pages of the file */
	char *second;	/* another mapping of page LOST */
	int fd;
	int to_child[2];
	int to_parent[2];
};

/* @protect: whether the child also registers the mapping for write protection */
FIXTURE_VARIANT(uffd_shared_table)
{
	bool protect;
};

FIXTURE_VARIANT_ADD(uffd_shared_table, missing)
{
};

FIXTURE_VARIANT_ADD(uffd_shared_table, missing_or_protected)
{
	.protect = true,
};

FIXTURE_SETUP(uffd_shared_table)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_NORESERVE;
	const char *why = NULL;

	memset(self, 0, sizeof(*self));
	self->room = MAP_FAILED;
	self->fd = -1;
	self->size = read_pmd_pagesize();
	self->span = psize() / sizeof(long) * self->size;
	if (psize() == 65536 || !self->size)
		why = "processes share no page tables here";
	if (!why)
		why = hugetlb_pool_have(&self->pool, self->size, POOL);
	if (why)
		SKIP(return, "%s", why);
	self->fd = memfd_create("uffd_shared_table",
				MFD_HUGETLB | order_of(self->size) << MAP_HUGE_SHIFT);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ftruncate(self->fd, self->span));
	self->room = mmap(NULL, 3 * self->span, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, self->room);
	self->at = (char *)(((unsigned long)self->room + self->span - 1) & -self->span);
	self->second = self->at + self->span;
	ASSERT_EQ(self->at, mmap(self->at, self->span, prot, flags | MAP_FIXED, self->fd, 0));
	ASSERT_EQ(self->second, mmap(self->second, self->size, prot, flags | MAP_FIXED, self->fd,
				     LOST * self->size));
	ASSERT_EQ(0, pipe(self->to_child));
	ASSERT_EQ(0, pipe(self->to_parent));
}

FIXTURE_TEARDOWN(uffd_shared_table)
{
	if (self->room != MAP_FAILED)
		munmap(self->room, 3 * self->span);
	if (self->fd >= 0)
		close(self->fd);
	hugetlb_pool_restore(&self->pool);
}

/* Tell the other process to go on, or wait for that. Returns false if it is gone. */
static bool tell(int pipe[2])
{
	return write(pipe[1], "", 1) == 1;
}

static bool wait_for(int pipe[2])
{
	char byte;

	return read(pipe[0], &byte, 1) == 1;
}

/* Register the mapping, and mark a page as lost. */
static bool mark(const FIXTURE_DATA(uffd_shared_table) * self, bool protect)
{
	struct uffdio_poison lost = {
		.range = { (unsigned long)self->at + LOST * self->size, self->size },
	};
	struct uffdio_register where = {
		.range = { (unsigned long)self->at, self->span },
		.mode = UFFDIO_REGISTER_MODE_MISSING | (protect ? UFFDIO_REGISTER_MODE_WP : 0),
	};
	int uffd = listener(UFFD_FEATURE_POISON | UFFD_FEATURE_WP_HUGETLBFS_SHMEM);

	return uffd >= 0 && !ioctl(uffd, UFFDIO_REGISTER, &where) &&
	       !ioctl(uffd, UFFDIO_POISON, &lost);
}

/* Each wait_for() lets the parent touch a page. */
static int child_does(FIXTURE_DATA(uffd_shared_table) * self, bool protect)
{
	char *lost = self->at + LOST * self->size;
	int found = 0;

	close(self->to_child[1]);
	if (try_access(self->at, false) || !tell(self->to_parent) || !wait_for(self->to_child))
		return ERROR;
	if (pagemap_has(self->at + self->size, PM_PRESENT))
		found |= SHARED;
	if (!mark(self, protect) || !tell(self->to_parent) || !wait_for(self->to_child))
		return ERROR;
	if (try_access(lost, false) == SIGBUS)
		found |= MARKED;
	if (madvise(self->at, self->size, MADV_DONTNEED))
		return ERROR;
	if (try_access(lost, false) == SIGBUS)
		found |= STAYS;
	return found;
}

/*
 * The child has a mark for page LOST, and its parent can read this page of the file.
 *
 * Known issue 92: the kernel leaves the shared page table to both processes, and writes the mark
 * into it. The parent gets SIGBUS. MADV_DONTNEED of page 0 takes the table from the child, and the
 * mark with it: after that, the child can read the page.
 */
TEST_F(uffd_shared_table, mark_of_one_process)
{
	char *lost = self->at + LOST * self->size;
	int found, other;
	pid_t child;

	ASSERT_EQ(0, try_access(self->at, true));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(child_does(self, variant->protect));
	close(self->to_parent[1]);
	ASSERT_TRUE(wait_for(self->to_parent));
	ASSERT_EQ(0, try_access(self->at + self->size, true));
	ASSERT_TRUE(tell(self->to_child));
	ASSERT_TRUE(wait_for(self->to_parent));
	other = try_access(lost, false);
	ASSERT_EQ(0, try_access(self->second, true));
	ASSERT_TRUE(tell(self->to_child));
	found = child_of(child);
	ASSERT_LE(0, found);
	ASSERT_GT(ERROR, found);
	DID(found & SHARED, "page tables that two processes shared");
	EXPECT_TRUE(found & MARKED);
	if (!variant->protect && other == SIGBUS && !(found & STAYS)) {
		KNOWN_ISSUE(92, "a page that one process marked as lost kills another process");
		return;
	}
	EXPECT_EQ(0, other);
	EXPECT_EQ(0, try_access(lost, false));
	EXPECT_TRUE(found & STAYS);
	if (!variant->protect)
		STALE_ISSUE(92);
}

TEST_HARNESS_MAIN
