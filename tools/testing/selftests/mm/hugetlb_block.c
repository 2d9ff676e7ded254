// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of hugetlb that are as large as a folded block.
 *
 * Proves: they are mapped with the contiguous bit like folded blocks, and
 * nothing that is done with them ever unfolds one: fork and copy-on-write,
 * protection, unmapping of their neighbour.
 *
 * Does not prove: the rest of hugetlb (hugetlb-madvise and others here do).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=hugetlb_block
 */
#include "folio_util.h"

#define BLOCKS 4

FIXTURE(hugetlb_block)
{
	char *at;
	char path[128];
	unsigned long before;
};

FIXTURE_SETUP(hugetlb_block)
{
	unsigned int n = cont_ptes();

	self->at = MAP_FAILED;
	snprintf(self->path, sizeof(self->path),
		 "/sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages", bytes(n) >> 10);
	if (access(self->path, W_OK))
		SKIP(return, "no hugetlb pages of the size of a block");
	self->before = read_num(self->path);
	write_num(self->path, self->before + 2 * BLOCKS);
	self->at = mmap(NULL, BLOCKS * bytes(n), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
			order_of(bytes(n)) << MAP_HUGE_SHIFT, -1, 0);
	if (self->at == MAP_FAILED)
		SKIP(return, "no hugetlb pages of the size of a block");
	for (unsigned int page = 0; page < BLOCKS * n; page++)
		memset(self->at + bytes(page), pattern(page), bytes(1));
}

FIXTURE_TEARDOWN(hugetlb_block)
{
	if (self->at != MAP_FAILED)
		munmap(self->at, BLOCKS * bytes(cont_ptes()));
	write_num(self->path, self->before);
}

/* Each block but @gone is mapped as one, and has its content. */
static void check(struct __test_metadata *_metadata, char *memory, int gone)
{
	unsigned int n = cont_ptes();

	for (unsigned int page = 0; page < BLOCKS * n; page++) {
		char *at = memory + bytes(page);

		if ((int)(page / n) == gone)
			continue;
		if (mapped_size(at)) {
			EXPECT_EQ(bytes(n), mapped_size(at)) {
				TH_LOG("page %u", page);
			}
		}
		EXPECT_TRUE(page_is(at, pattern(page))) {
			TH_LOG("page %u", page);
		}
	}
}

/* [contpte 211] Forked, and written to on both sides. */
TEST_F(hugetlb_block, fork_and_write)
{
	unsigned int n = cont_ptes();
	pid_t child = fork();

	if (!child) {
		memset(self->at + bytes(n), 0, bytes(2 * n));
		for (unsigned int page = 0; page < BLOCKS * n; page++) {
			bool own = page >= n && page < 3 * n;

			if (!page_is(self->at + bytes(page), own ? 0 : pattern(page)))
				_exit(own ? 2 : 1);
		}
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child)) {
		TH_LOG("1 wrong content of what is shared, 2 of its own; 135: no memory");
	}
	check(_metadata, self->at, -1);
	for (unsigned int page = 0; page < BLOCKS * n; page++)
		self->at[bytes(page)] = pattern(page);
	check(_metadata, self->at, -1);
}

/* [contpte 211] One block without permission, and with it again. */
TEST_F(hugetlb_block, mprotect_one)
{
	size_t size = bytes(cont_ptes());

	ASSERT_EQ(0, mprotect(self->at + size, size, PROT_NONE));
	EXPECT_EQ(SIGSEGV, try_access(self->at + size, false));
	check(_metadata, self->at, 1);
	ASSERT_EQ(0, mprotect(self->at + size, size, PROT_READ | PROT_WRITE));
	check(_metadata, self->at, -1);
}

/* [contpte 211] One block unmapped: its neighbours stay. */
TEST_F(hugetlb_block, munmap_one)
{
	size_t size = bytes(cont_ptes());

	ASSERT_EQ(0, munmap(self->at + 2 * size, size));
	EXPECT_EQ(SIGSEGV, try_access(self->at + 2 * size, false));
	check(_metadata, self->at, 2);
}

TEST_HARNESS_MAIN
