// SPDX-License-Identifier: GPL-2.0
/*
 * A page comes back from swap. Near it is a page that was never used.
 *
 * Proves: the fault ends, and brings back pages with their content. The page that was never used
 * stays empty. It reads as zeros.
 *
 * How: on arm64 and riscv, the swap entry for slot 0 of the first swap area is 0, like an empty
 * entry. Slot 0 has the header of the area, so it never has a page. The test uses a new, small
 * area. It swaps out pages 1, 2, 3, ... of a block, one after the other:
 *
 *	page	  0	  1	  2	...	  15
 *	slot	empty	  1	  2	...	  15
 *
 * So the entry of page 0 looks like an entry for slot 0. Then the test reads page FAULT, while the
 * kernel may bring back a whole block. In the control, page 0 is in memory.
 *
 * A swap entry of a page that no other process has had is different from an empty entry in one more
 * bit. fork() clears this bit. With memory cgroups, the kernel also compares the cgroups of the
 * slots, and slot 0 has none.
 *
 * Does not prove: what happens with several swap areas, or with memory cgroups.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=swapin_empty
 */
#include <sys/swap.h>
#include <time.h>

#include "folio_did.h"
#include "folio_known.h"
#include "folio_state.h"
#include "folio_util.h"

#define DISK "/dev/ram0"
/* The page that the test reads. */
#define FAULT 5
/* A fault that takes this long does not end. A fault needs less than a millisecond. */
#define SECONDS 3

/* The exit status of the child that reads the page. */
enum { RIGHT, OTHER_SLOTS, WRONG_CONTENT, NOT_EMPTY };

FIXTURE(swapin_empty)
{
	struct memory memory;
	unsigned int area;	/* pages of the swap area before the test */
};

/* @used: whether page 0 is in memory */
FIXTURE_VARIANT(swapin_empty)
{
	bool used;
};

FIXTURE_VARIANT_ADD(swapin_empty, used)
{
	.used = true,
};

FIXTURE_VARIANT_ADD(swapin_empty, empty)
{
};

FIXTURE_SETUP(swapin_empty)
{
	const int order = order_of(cont_ptes());
	const char *why = booted_with("cgroup_disable=memory") ? folio_settings(order) :
			  "the machine does not have cgroup_disable=memory";

	self->memory = (struct memory){ .fd = -1 };
	if (!why)
		why = memory_map(&self->memory, ANON, order, 1);
	if (!why && (!have_swap() || swapoff(DISK)))
		why = "needs " DISK " with a swap area";
	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(stay_on_cpu());
	self->area = swap_resize(DISK, 2 * self->memory.pages);
	ASSERT_LT(0, self->area);
}

FIXTURE_TEARDOWN(swapin_empty)
{
	memory_free(&self->memory);
	if (!self->area)
		return;
	swapoff(DISK);
	EXPECT_LT(0, swap_resize(DISK, self->area));
	EXPECT_TRUE(have_swap());
}

/* The slot in the first swap area in which the page is, or -1. */
static long slot(const char *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = pagemap_get_entry(fd, (char *)at);

	close(fd);
	/* The lowest five bits are the number of the swap area. */
	return entry & PM_SWAP && !(entry & 31) ? (long)(entry >> 5 & ((1UL << 50) - 1)) : -1;
}

/* The content of a page: its pattern, or zeros. */
static unsigned char content(unsigned int page, bool zeros)
{
	return zeros ? 0 : pattern(page);
}

/* Swap out all pages but the first. Returns whether each page is in the slot with its number. */
static bool swap_out(const struct memory *m, bool zeros)
{
	bool right = true;

	for (unsigned int page = 1; page < m->pages; page++) {
		memset(m->at + bytes(page), content(page, zeros), bytes(1));
		madvise(m->at + bytes(page), bytes(1), MADV_PAGEOUT);
		right &= slot(m->at + bytes(page)) == page;
	}
	return right;
}

/* In a child: swap pages out, and read one of them. Returns the exit status. */
static int swap_and_read(const struct memory *m, bool used, bool zeros)
{
	pid_t child;

	folio_settings(0);
	if (!swap_out(m, zeros))
		return OTHER_SLOTS;
	if (used)
		memset(m->at, pattern(0), bytes(1));
	child = fork();
	if (!child)
		_exit(0);
	child_of(child);
	folio_settings(m->order);
	read_byte(m->at + bytes(FAULT));
	folio_settings(0);
	if (!used && pagemap_has(m->at, PM_PRESENT | PM_SWAP))
		return NOT_EMPTY;
	for (unsigned int page = 1; page < m->pages; page++)
		if (!page_is(m->at + bytes(page), content(page, zeros)))
			return WRONG_CONTENT;
	return page_is(m->at, used ? pattern(0) : 0) ? RIGHT : WRONG_CONTENT;
}

/* Start the child, and wait for it. Returns its exit status, or -1 if it does not end. */
static int round_of(const struct memory *m, bool used, bool zeros)
{
	const time_t end = time(NULL) + SECONDS;
	pid_t child = fork();
	int status;

	if (!child)
		_exit(swap_and_read(m, used, zeros));
	while (time(NULL) <= end) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		usleep(1000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return -1;
}

/*
 * Whether to make the access that ends some kernels with known issue 85. `make known-issues` sets
 * STRICT on a kernel with the issue, and ISSUES on a kernel with its patch.
 */
static bool may_end_kernel(void)
{
	return !has_issue(85) || getenv("STRICT") || getenv("ISSUES");
}

/*
 * First the pages have content, and then they contain only zeros. For a page of zeros the kernel
 * only stores a mark.
 *
 * Known issue 85: the kernel takes the empty entry for the entry of slot 0, and brings back a block
 * that begins with slot 0. On 6.12 the fault never ends if the pages have content. On 7.3 the
 * kernel dies if the pages contain only zeros.
 */
TEST_F_TIMEOUT(swapin_empty, stays_empty, 60)
{
#if defined(__aarch64__) || defined(__riscv)
	const bool alike = !variant->used;
#else
	const bool alike = false;
#endif
	struct memory *m = &self->memory;
	int end;

	if (alike && !may_end_kernel()) {
		KNOWN_ISSUE(85, "the kernel would take an empty entry for a page in swap");
		return;
	}
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_DONTNEED));
	for (int zeros = 0; zeros < 2; zeros++) {
		ASSERT_EQ(0, swapon(DISK, 0));
		end = round_of(m, variant->used, zeros);
		ASSERT_EQ(0, swapoff(DISK));
		if (alike && end == -1) {
			KNOWN_ISSUE(85, "the fault does not end");
			return;
		}
		EXPECT_EQ(RIGHT, end) {
			TH_LOG("pages of zeros: %d", zeros);
		}
	}
	DID(2 * (m->pages - 1), "pages in swap");
	if (alike)
		STALE_ISSUE(85);
}

TEST_HARNESS_MAIN
