// SPDX-License-Identifier: GPL-2.0
/*
 * A system call that returns 0 has done what was asked.
 *
 * Proves: mbind() of shared memory sets the policy of exactly its pages, also if another mapping
 * has changed the policy of the file since the last mbind(). shmdt() detaches all parts of a
 * segment, or fails.
 *
 * How: get_mempolicy() says which policy each page has, through both mappings of a file.
 * shmctl(IPC_STAT) counts the mappings of a segment. mseal() makes a mapping that cannot be
 * removed.
 *
 * Does not prove: that pages are allocated according to the policy, or that other calls
 * respect mseal().
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=call_effect
 */
#include <sys/ipc.h>
#include <sys/shm.h>

#include "folio_known.h"
#include "folio_util.h"

#ifndef __NR_mseal
#define __NR_mseal 462
#endif

#define PAGES 8

FIXTURE(shared_policy)
{
	int fd;
	char *at[2];	/* two mappings of the file */
};

/* The last mbind() is for @pages pages, from page @first on. */
FIXTURE_VARIANT(shared_policy)
{
	unsigned int first;
	unsigned int pages;
};

FIXTURE_VARIANT_ADD(shared_policy, whole)
{
	.pages = PAGES,
};

FIXTURE_VARIANT_ADD(shared_policy, first_half)
{
	.pages = PAGES / 2,
};

FIXTURE_VARIANT_ADD(shared_policy, second_half)
{
	.first = PAGES / 2,
	.pages = PAGES / 2,
};

/* Set the policy of memory, for node 0. Returns 0 or an error. */
static int set_policy(char *at, unsigned int pages, long mode)
{
	unsigned long nodes = 1;

	return syscall(__NR_mbind, at, bytes(pages), mode, &nodes, 8 * sizeof(nodes), 0) ?
	       errno : 0;
}

static int policy_of(const char *at)
{
	int mode = -1;

	return syscall(__NR_get_mempolicy, &mode, NULL, 0, at, MPOL_F_ADDR) ? -1 : mode;
}

/* Map the file between pages that are not accessible, so that nothing merges with the mapping. */
static char *map_alone(int fd)
{
	char *room = mmap(NULL, bytes(PAGES + 2), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (room == MAP_FAILED)
		return room;
	return mmap(room + bytes(1), bytes(PAGES), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    fd, 0);
}

FIXTURE_SETUP(shared_policy)
{
	self->fd = -1;
	if (access("/proc/self/numa_maps", F_OK))
		SKIP(return, "CONFIG_NUMA=n");
	self->fd = syscall(__NR_memfd_create, "shared_policy", 0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ftruncate(self->fd, bytes(PAGES)));
	for (int i = 0; i < 2; i++) {
		self->at[i] = map_alone(self->fd);
		ASSERT_NE(MAP_FAILED, self->at[i]);
	}
}

FIXTURE_TEARDOWN(shared_policy)
{
	if (self->fd >= 0)
		close(self->fd);
}

/*
 * The number of pages with this policy among @pages pages of the file. Each page counts twice: once
 * for each mapping.
 */
static unsigned int pages_with(FIXTURE_DATA(shared_policy) * self, int mode, unsigned int first,
			       unsigned int pages)
{
	unsigned int count = 0;

	for (unsigned int page = first; page < first + pages; page++)
		for (int i = 0; i < 2; i++)
			count += policy_of(self->at[i] + bytes(page)) == mode;
	return count;
}

/*
 * The policy of shared memory belongs to the file. The last mbind() decides, through any mapping,
 * and it decides only for its pages. Known issue 108: the kernel does nothing if an earlier mbind()
 * of this mapping had the same policy.
 */
TEST_F(shared_policy, last_call_decides)
{
	const unsigned int first = variant->first, pages = variant->pages;

	ASSERT_EQ(0, set_policy(self->at[0], PAGES, MPOL_BIND));
	EXPECT_EQ(2 * PAGES, pages_with(self, MPOL_BIND, 0, PAGES));
	ASSERT_EQ(0, set_policy(self->at[1], PAGES, MPOL_PREFERRED));
	EXPECT_EQ(2 * PAGES, pages_with(self, MPOL_PREFERRED, 0, PAGES));

	ASSERT_EQ(0, set_policy(self->at[0] + bytes(first), pages, MPOL_BIND));
	if (pages_with(self, MPOL_PREFERRED, 0, PAGES) == 2 * PAGES) {
		KNOWN_ISSUE(108, "mbind() returned 0, but the file keeps its policy");
		return;
	}
	EXPECT_EQ(2 * pages, pages_with(self, MPOL_BIND, first, pages));
	EXPECT_EQ(2 * pages, pages_with(self, MPOL_BIND, 0, PAGES));
	EXPECT_EQ(2 * (PAGES - pages), pages_with(self, MPOL_PREFERRED, 0, PAGES));
	STALE_ISSUE(108);
}

FIXTURE(segment)
{
	int id;
	char *at;
};

/* mseal() is called for the pages from page @first on. */
FIXTURE_VARIANT(segment)
{
	unsigned int first;
};

FIXTURE_VARIANT_ADD(segment, whole)
{
};

FIXTURE_VARIANT_ADD(segment, second_half)
{
	.first = PAGES / 2,
};

/* Attach a new segment, which goes away with its last mapping. Each page has its pattern. */
FIXTURE_SETUP(segment)
{
	if (access("/proc/sysvipc/shm", F_OK))
		SKIP(return, "CONFIG_SYSVIPC=n");
	self->id = shmget(IPC_PRIVATE, bytes(PAGES), 0600);
	ASSERT_LE(0, self->id);
	self->at = shmat(self->id, NULL, 0);
	shmctl(self->id, IPC_RMID, NULL);
	ASSERT_NE(MAP_FAILED, self->at);
	for (unsigned int page = 0; page < PAGES; page++)
		memset(self->at + bytes(page), pattern(page), bytes(1));
}

FIXTURE_TEARDOWN(segment)
{
}

/* The number of mappings of the segment. Without mappings, the segment does not exist. */
static unsigned long attached(int id)
{
	struct shmid_ds status;

	return shmctl(id, IPC_STAT, &status) ? 0 : status.shm_nattch;
}

/*
 * shmdt() detaches the whole segment, also if mprotect() has split its mapping in three parts.
 */
TEST_F(segment, is_detached)
{
	EXPECT_EQ(1, attached(self->id));
	ASSERT_EQ(0, mprotect(self->at + bytes(PAGES / 2), bytes(1), PROT_READ));
	EXPECT_EQ(3, attached(self->id));
	EXPECT_EQ(0, shmdt(self->at));
	EXPECT_EQ(0, attached(self->id));
	for (unsigned int page = 0; page < PAGES; page++)
		EXPECT_EQ(SIGSEGV, try_access(self->at + bytes(page), false));
}

/*
 * A sealed mapping cannot be removed, so munmap() and shmdt() fail with EPERM if a part of the
 * segment is sealed. The sealed pages keep their content. Known issue 110: shmdt() returns 0,
 * although the sealed part stays attached.
 */
TEST_F(segment, sealed_part_stays)
{
	const unsigned int first = variant->first;
	char *sealed = self->at + bytes(first);
	int error;

	if (syscall(__NR_mseal, sealed, bytes(PAGES - first), 0))
		SKIP(return, "no mseal()");
	EXPECT_EQ(-1, munmap(sealed, bytes(PAGES - first)));
	EXPECT_EQ(EPERM, errno);

	error = shmdt(self->at) ? errno : 0;
	EXPECT_LT(0, attached(self->id));
	for (unsigned int page = first; page < PAGES; page++) {
		ASSERT_EQ(0, try_access(self->at + bytes(page), true));
		EXPECT_TRUE(page_is(self->at + bytes(page), pattern(page)));
	}
	if (!error) {
		KNOWN_ISSUE(110, "shmdt() returned 0, but the segment is still attached");
		return;
	}
	EXPECT_EQ(EPERM, error);
	STALE_ISSUE(110);
}

TEST_HARNESS_MAIN
