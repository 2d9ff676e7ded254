// SPDX-License-Identifier: GPL-2.0
/*
 * fork() and munmap() that get no memory for themselves.
 *
 * Each allocation of pages that one call makes fails in turn, by
 * /proc/thread-self/fail-nth. Proves: fork() that fails leaves the parent as it
 * was, and one that succeeds all the same gives the child all of its memory;
 * munmap() of more pages than are noted in one place frees all of them when
 * there is no room for more notes.
 *
 * Does not prove: allocations other than of whole pages; reclaim, which does
 * not run when an allocation is made to fail.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_enomem
 */
#include "folio_did.h"
#include "folio_owner.h"

#define FAIL "/sys/kernel/debug/fail_page_alloc/"

/* Every allocation of pages counts, and none fills the log. */
static const struct {
	const char *path;
	const char *value;
} enomem_settings[] = {
	{ FAIL "ignore-gfp-wait", "N" },
	{ FAIL "ignore-gfp-highmem", "N" },
	{ FAIL "min-order", "0" },
	{ FAIL "verbose", "0" },
};

#define ENOMEM_SETTINGS ARRAY_SIZE(enomem_settings)

/* More allocations than any of these calls makes. */
#define ENOMEM_MAX 4000

FIXTURE(folio_enomem)
{
	char before[ENOMEM_SETTINGS][16];
	struct memory memory;
	int fail;
};

FIXTURE_SETUP(folio_enomem)
{
	const char *why;

	self->memory.fd = -1;
	self->fail = open("/proc/thread-self/fail-nth", O_RDWR);
	if (self->fail < 0 || access(FAIL, F_OK))
		SKIP(return, "needs CONFIG_FAIL_PAGE_ALLOC and its debugfs, and root");
	for (unsigned int i = 0; i < ENOMEM_SETTINGS; i++) {
		const char *path = enomem_settings[i].path;

		ASSERT_LT(0, read_file(path, self->before[i], sizeof(self->before[i])));
		ASSERT_EQ(0, write_text(path, enomem_settings[i].value));
	}
	why = folio_settings(order_of(cont_ptes()));
	if (!why)
		why = memory_map(&self->memory, ANON, order_of(cont_ptes()), 2);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_enomem)
{
	for (unsigned int i = 0; i < ENOMEM_SETTINGS; i++) {
		if (self->before[i][0])
			write_text(enomem_settings[i].path, self->before[i]);
	}
	memory_free(&self->memory);
	close(self->fail);
}

/* The allocation of this thread that is to fail, or 0 for none. */
static void fail_nth(int fd, unsigned int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	if (pwrite(fd, text, length, 0) != length)
		_exit(77);
}

/* Whether it has failed; none is to fail any more. */
static bool fail_over(int fd)
{
	char text[16] = "";
	bool over = pread(fd, text, sizeof(text) - 1, 0) > 0 && atoi(text) == 0;

	fail_nth(fd, 0);
	return over;
}

/* Each page has its content. */
static bool memory_right(const struct memory *m)
{
	for (unsigned int page = 0; page < m->pages; page++) {
		if (!page_is(m->at + bytes(page), pattern(page)))
			return false;
	}
	return true;
}

/* What came of forks of which each allocation failed in turn. */
struct enomem_forks {
	unsigned int allocations;
	unsigned int refused;
};

static void fork_each(struct __test_metadata *_metadata, struct memory *m, int fd,
		      struct enomem_forks *forks)
{
	unsigned int nth;
	bool over = true;
	pid_t child;

	for (nth = 1; over && nth < ENOMEM_MAX; nth++) {
		fail_nth(fd, nth);
		child = fork();
		if (!child)
			_exit(!memory_right(m));
		over = fail_over(fd);
		if (child > 0) {
			ASSERT_EQ(0, child_of(child))
				TH_LOG("allocation %u fails: the child has other contents", nth);
		} else {
			forks->refused++;
		}
		for (unsigned int page = 0; page < m->pages; page++) {
			ASSERT_EQ(1, mappings(m->at + bytes(page)))
				TH_LOG("allocation %u fails: page %u", nth, page);
		}
	}
	forks->allocations = nth - 2;
	ASSERT_FALSE(over);
	EXPECT_TRUE(memory_right(m));
}

/*
 * [contpte 174] The first page of a folio is pinned, so that fork() has to copy
 * the folio at once. An allocation that fails ends the fork, with nothing of it
 * left; or fork() does without, and the child has everything. There are as many
 * allocations more than without the pin as there are pages to copy.
 */
TEST_F_TIMEOUT(folio_enomem, fork_pinned, 180)
{
	struct memory *m = &self->memory;
	struct enomem_forks without = {}, with = {};
	int pinned;

	fork_each(_metadata, m, self->fail, &without);
	pinned = pin(m->at, 1);
	if (pinned < 0)
		SKIP(return, "no io_uring");
	fork_each(_metadata, m, self->fail, &with);
	close(pinned);

	EXPECT_LE(without.allocations + cont_ptes(), with.allocations)
		TH_LOG("%u allocations, %u with the pin", without.allocations, with.allocations);
	EXPECT_LE(without.refused + cont_ptes(), with.refused)
		TH_LOG("%u forks refused, %u with the pin", without.refused, with.refused);
	DID(with.refused, "forks without memory");
}

/* Pages in several pages of notes: about 500 fit into each. */
#define UNMAPPED_PAGES 2500

static long memory_free_pages(void)
{
	char line[128];
	long kilobytes = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "MemFree: %ld", &kilobytes) == 1)
			break;
	}
	if (f)
		fclose(f);
	return kilobytes * 1024 / psize();
}

/*
 * Pages are noted until the TLB is invalidated, and are freed after that. Where
 * there is no page for more notes, those that there are have to be freed first,
 * and none may be lost: of private memory and of dirty pages of a file, which
 * stay mapped till then.
 */
TEST_F_TIMEOUT(folio_enomem, munmap_many_pages, 180)
{
	unsigned int kind, nth = 0, failed = 0, refused = 0;
	unsigned long *frames = calloc(UNMAPPED_PAGES, sizeof(*frames));
	int counts = open("/proc/kpagecount", O_RDONLY);
	long before, after;
	bool over;

	ASSERT_NE(NULL, frames);
	ASSERT_LE(0, counts);
	ASSERT_EQ(NULL, folio_settings(0));
	before = memory_free_pages();
	for (kind = 0; kind <= 1; kind++) {
		over = true;
		for (nth = 1; over && nth < ENOMEM_MAX; nth++) {
			int flags = kind ? MAP_SHARED | MAP_ANONYMOUS : MAP_PRIVATE | MAP_ANONYMOUS;
			char *at = mmap(NULL, bytes(UNMAPPED_PAGES), PROT_READ | PROT_WRITE, flags,
					-1, 0);
			unsigned int mapped = 0;
			__u64 count;
			int status;

			ASSERT_NE(MAP_FAILED, at);
			memset(at, 1, bytes(UNMAPPED_PAGES));
			for (unsigned int i = 0; i < UNMAPPED_PAGES; i++)
				frames[i] = pfn_of(at + bytes(i));
			fail_nth(self->fail, nth);
			status = munmap(at, bytes(UNMAPPED_PAGES));
			over = fail_over(self->fail);
			failed += over;
			if (status) {
				/* Refused before anything was done. */
				ASSERT_EQ(ENOMEM, errno);
				refused++;
				EXPECT_TRUE(page_is(at, 1));
				ASSERT_EQ(0, munmap(at, bytes(UNMAPPED_PAGES)));
			}
			EXPECT_EQ(-1UL, pfn_of(at));
			for (unsigned int i = 0; i < UNMAPPED_PAGES; i++) {
				off_t place = frames[i] * sizeof(count);

				ASSERT_EQ(8, pread(counts, &count, sizeof(count), place));
				mapped += !!count;
			}
			EXPECT_EQ(0, mapped)
				TH_LOG("allocation %u fails: pages that are still mapped", nth);
		}
		ASSERT_FALSE(over);
	}
	after = memory_free_pages();
	EXPECT_LT(before - after, UNMAPPED_PAGES / 2)
		TH_LOG("%ld pages free before, %ld after", before, after);
	DID(failed - refused, "munmap() calls that did without memory");
	close(counts);
	free(frames);
}

TEST_HARNESS_MAIN
