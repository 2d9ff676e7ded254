// SPDX-License-Identifier: GPL-2.0
/*
 * A mapping that MADV_WIPEONFORK empties in a child is like a new mapping.
 *
 * Proves: the kernel can merge the child's mapping with a new mapping next to
 * it, even if the parent had moved the mapping. The kernel merges anonymous
 * mappings only if their page offsets are contiguous. The offset of a mapping
 * without pages must equal its address.
 *
 * How: the parent maps pages, writes to them, and moves them to another address with mremap(). The
 * child cancels MADV_WIPEONFORK, maps a page right after the mapping, and counts the mappings in
 * /proc/self/maps. In the control variant, the parent does not move the pages.
 *
 * Does not prove: that the child reads zeros (folio_fork.wipeonfork_part tests
 * this).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=fork_wiped
 */
#include "folio_known.h"
#include "folio_util.h"

#define PAGES 3

FIXTURE(fork_wiped)
{
	char *area;
	char *at;
};

FIXTURE_VARIANT(fork_wiped)
{
	bool moved;
};

FIXTURE_VARIANT_ADD(fork_wiped, moved)
{
	.moved = true,
};

/* The control variant: the offset still equals the address. */
FIXTURE_VARIANT_ADD(fork_wiped, in_place)
{
	.moved = false,
};

FIXTURE_SETUP(fork_wiped)
{
	self->area = mmap(NULL, bytes(4 * PAGES), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->area);
	self->at = self->area + bytes(PAGES / 2);
	ASSERT_EQ(self->at, mmap(self->at, bytes(PAGES), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	memset(self->at, 1, bytes(PAGES));
	ASSERT_EQ(0, madvise(self->at, bytes(PAGES), MADV_WIPEONFORK));
	if (variant->moved) {
		char *to = self->at + bytes(PAGES + 2);

		ASSERT_EQ(to, mremap(self->at, bytes(PAGES), bytes(PAGES),
				     MREMAP_MAYMOVE | MREMAP_FIXED, to));
		self->at = to;
	}
}

FIXTURE_TEARDOWN(fork_wiped)
{
	munmap(self->area, bytes(4 * PAGES));
}

/* The number of mappings in a range, or 0 if /proc/self/maps cannot be read. */
static unsigned int mappings(const char *at, unsigned int pages)
{
	unsigned long start, end, from = (unsigned long)at;
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned int count = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2)
			count += start < from + bytes(pages) && end > from;
	if (maps)
		fclose(maps);
	return count;
}

/* The child maps one more page; returns how many mappings there are, or 100 after an error. */
static unsigned int extend(char *at)
{
	char *last = at + bytes(PAGES);

	if (madvise(at, bytes(PAGES), MADV_KEEPONFORK) || mappings(at, PAGES) != 1 ||
	    mmap(last, bytes(1), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != last)
		return 100;
	return mappings(at, PAGES + 1);
}

/*
 * The child maps a new page next to the wiped mapping, and the kernel merges
 * the two mappings. Known issue 30: the kernel does not merge them if the
 * parent had moved the wiped mapping.
 */
TEST_F(fork_wiped, merges_with_new_page)
{
	pid_t child = fork();
	int status;

	ASSERT_LE(0, child);
	if (!child)
		_exit(extend(self->at));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	TH_LOG("did 1 fork, %d mappings", WEXITSTATUS(status));
	if (variant->moved && WEXITSTATUS(status) == 2) {
		KNOWN_ISSUE(30, "a wiped mapping has the offset of its old address");
		return;
	}
	EXPECT_EQ(1, WEXITSTATUS(status));
	if (variant->moved)
		STALE_ISSUE(30);
}

TEST_HARNESS_MAIN
