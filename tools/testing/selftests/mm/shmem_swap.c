// SPDX-License-Identifier: GPL-2.0
/*
 * A large folio of shared memory is in swap, and one entry in the page cache stands for all pages
 * of the folio. Calls on some of these pages must treat each page separately.
 *
 * Proves: MADV_WILLNEED of a part of the file reads exactly this part, and
 * mincore() reports only this part. smaps counts the swapped pages of a
 * mapping, and no page outside the mapping. ftruncate() to a position inside
 * the folio does not hang, and keeps the content before this position.
 *
 * How: a memfd gets a folio of 64 KiB, or a huge page. MADV_PAGEOUT swaps it
 * out, and a counter of the kernel shows that the folio was not split. In the
 * control variant the file has single pages.
 *
 * Does not prove: that the kernel reads the rest of the folio in one piece.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=shmem_swap
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_pmd.h"
#include "folio_state.h"

enum size { SINGLE, BLOCK, HUGE };

/* The first page of the middle half of the file. The tests use this half. */
static unsigned int first_of(const struct memory *m)
{
	return m->pages / 4;
}

static unsigned int count_of(const struct memory *m)
{
	return m->pages / 2;
}

/*
 * Map a memory file with one folio, or with single pages. Returns NULL, or the reason for a
 * failure.
 */
static const char *map_file(struct memory *m, enum size size)
{
	unsigned int pages = size == HUGE ? pmd_pages() : cont_ptes();
	int order = size == SINGLE ? 0 : order_of(pages ?: 1);
	const char *why = !pages ? NO_HUGE_PAGES : folio_settings(order);

	m->fd = -1;
	if (!why && order && !swaps_large())
		why = "no swap of large folios";
	if (!why && !have_swap())
		why = "no swap";
	return why ?: memory_map(m, SHMEM, order, pages >> order);
}

/*
 * Swap out the file. Returns true if the whole file is in swap, and no large
 * folio was split.
 */
static bool swap_out(const struct memory *m)
{
	long before = folio_statistic(m->pages, "swpout");

	if (madvise(m->at, bytes(m->pages), MADV_PAGEOUT) || swapped_out(m) != m->pages)
		return false;
	return !m->order || folio_statistic(m->pages, "swpout") == before + 1;
}

/* How many pages the machine has read from swap. */
static unsigned long read_in(void)
{
	FILE *file = fopen("/proc/vmstat", "r");
	unsigned long count = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "pswpin %lu", &count) == 1)
			break;
	if (file)
		fclose(file);
	return count;
}

/* The number of pages that do not hold their pattern. */
static unsigned int wrong_pages(const char *at, unsigned int pages)
{
	unsigned int wrong = 0;

	for (unsigned int page = 0; page < pages; page++)
		wrong += !page_is(at + bytes(page), pattern(page));
	return wrong;
}

FIXTURE(shmem_swap)
{
	struct memory memory;
};

FIXTURE_VARIANT(shmem_swap)
{
	enum size size;
};

FIXTURE_VARIANT_ADD(shmem_swap, single)
{
	.size = SINGLE,
};

FIXTURE_VARIANT_ADD(shmem_swap, block)
{
	.size = BLOCK,
};

FIXTURE_VARIANT_ADD(shmem_swap, huge)
{
	.size = HUGE,
};

FIXTURE_SETUP(shmem_swap)
{
	const char *why = map_file(&self->memory, variant->size);

	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(swap_out(&self->memory));
}

FIXTURE_TEARDOWN(shmem_swap)
{
	memory_free(&self->memory);
}

/*
 * MADV_WILLNEED of the middle half of the file reads the pages of this half from swap, and no other
 * pages. mincore() then reports exactly these pages. An access to all pages then reads the
 * remaining pages from swap.
 *
 * Known issue 53: for any range, the kernel reads only the first page of the
 * folio. mincore() then reports all pages of the folio as resident.
 */
TEST_F(shmem_swap, willneed_part)
{
	struct memory *m = &self->memory;
	const unsigned int first = first_of(m), count = count_of(m);
	unsigned int page, reported = 0, bad = 0;
	unsigned long before, early, late;
	unsigned char *there = calloc(m->pages, 1);

	ASSERT_NE(NULL, there);
	before = read_in();
	ASSERT_EQ(0, madvise(m->at + bytes(first), bytes(count), MADV_WILLNEED));
	/* The call may return before the pages are in memory. */
	for (int i = 0; i < 20 && m->pages - swapped_out(m) < count; i++)
		usleep(100000);
	early = read_in() - before;
	ASSERT_EQ(0, mincore(m->at, bytes(m->pages), there));
	for (page = 0; page < m->pages; page++) {
		reported += there[page] & 1;
		bad += (there[page] & 1) != (page >= first && page < first + count);
	}
	free(there);
	EXPECT_EQ(0, wrong_pages(m->at, m->pages));
	late = read_in() - before - early;
	DID(early, "pages read by MADV_WILLNEED");
	EXPECT_EQ(m->pages, early + late);
	TH_LOG("mincore() reports %u of %u pages", reported, m->pages);
	if (m->order && early == 1 && reported == m->pages) {
		KNOWN_ISSUE(53, "MADV_WILLNEED reads one page of a folio, mincore() reports all");
		return;
	}
	EXPECT_EQ(count, early);
	EXPECT_EQ(0, bad);
	if (m->order && early == count && !bad)
		STALE_ISSUE(53);
}

/*
 * A second mapping maps half of the file. smaps must report that all pages of
 * this mapping are in swap, and must count no other page. In a private mapping
 * that has a page table, smaps checks each page.
 *
 * Known issue 54: smaps counts the whole folio. In a private mapping it counts
 * the whole folio again for each page.
 */
TEST_F(shmem_swap, smaps_counts_part)
{
	struct memory *m = &self->memory;
	const unsigned int first = first_of(m), count = count_of(m), size = 1U << m->order;
	const int prot = PROT_READ | PROT_WRITE;
	size_t area = bytes(m->pages);
	long shared, private;
	char *at, *other;

	ASSERT_EQ(m->pages, smaps_pages(m->at, "Swap"));
	/*
	 * Write to the page that lies two pages before the mappings. This write
	 * allocates a page table. This table covers the mappings too, unless
	 * they lie in the range of the next table.
	 */
	at = mmap(NULL, 2 * area, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, at);
	other = (char *)(((unsigned long)at + area - 1) & -area);
	ASSERT_EQ(other, mmap(other, bytes(1), prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			      -1, 0));
	*other = 1;
	other += bytes(2);
	ASSERT_EQ(other, mmap(other, bytes(count), prot, MAP_SHARED | MAP_FIXED, m->fd,
			      bytes(first)));
	shared = smaps_pages(other, "Swap");
	ASSERT_EQ(other, mmap(other, bytes(count), prot, MAP_PRIVATE | MAP_FIXED, m->fd,
			      bytes(first)));
	private = smaps_pages(other, "Swap");
	EXPECT_EQ(0, munmap(at, 2 * area));
	TH_LOG("%u pages in swap: smaps counts %ld shared, %ld private", count, shared, private);
	EXPECT_EQ(m->pages, swapped_out(m));
	EXPECT_EQ(0, wrong_pages(m->at, m->pages));
	DID(count, "pages in swap");
	if (m->order && shared == size && private == (long)size * count) {
		KNOWN_ISSUE(54, "smaps counts pages in swap next to the mapping");
		return;
	}
	EXPECT_EQ(count, shared);
	EXPECT_EQ(count, private);
	if (m->order && shared == count && private == count)
		STALE_ISSUE(54);
}

/*
 * This fixture is the last one, because with known issue 51 a process may
 * occupy a CPU for seconds.
 */
FIXTURE(shmem_cut)
{
	struct memory memory;
};

/*
 * @bytes: how many bytes of the page at the cut stay in the file
 */
FIXTURE_VARIANT(shmem_cut)
{
	enum size size;
	unsigned int bytes;
};

FIXTURE_VARIANT_ADD(shmem_cut, single)
{
	.size = SINGLE,
};

FIXTURE_VARIANT_ADD(shmem_cut, block_in_page)
{
	.size = BLOCK,
	.bytes = 100,
};

FIXTURE_VARIANT_ADD(shmem_cut, huge_in_page)
{
	.size = HUGE,
	.bytes = 100,
};

FIXTURE_VARIANT_ADD(shmem_cut, block)
{
	.size = BLOCK,
};

FIXTURE_VARIANT_ADD(shmem_cut, huge)
{
	.size = HUGE,
};

/* Whether /dev/ram0 is the only swap. */
static bool only_ram(void)
{
	FILE *file = fopen("/proc/swaps", "r");
	unsigned int lines = 0, right = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		lines++;
		right += !strncmp(line, "/dev/ram0", strlen("/dev/ram0"));
	}
	if (file)
		fclose(file);
	return lines == 2 && right;
}

FIXTURE_SETUP(shmem_cut)
{
	const char *why = map_file(&self->memory, variant->size);

	/* On a kernel with known issue 51, ftruncate() ends only if swapoff() is called. */
	if (!why && !only_ram())
		why = "needs /dev/ram0 as the only swap";
	if (why)
		SKIP(return, "%s", why);
	ASSERT_TRUE(swap_out(&self->memory));
}

FIXTURE_TEARDOWN(shmem_cut)
{
	memory_free(&self->memory);
}

/*
 * ftruncate() counts as endless after this many seconds. It normally takes a
 * millisecond.
 */
#define SECONDS 5

/*
 * Start a child that truncates the file. The child runs only if no other
 * process wants the CPU. The child closes its output. Otherwise a process that
 * reads the output of this program would also wait for the child.
 */
static pid_t start_cut(const struct memory *m, size_t length)
{
	const struct sched_param none = {};
	pid_t child = fork();

	if (child)
		return child;
	syscall(__NR_sched_setscheduler, 0, SCHED_IDLE, &none);
	for (int fd = 0; fd < 64; fd++)
		if (fd != m->fd)
			close(fd);
	_exit(ftruncate(m->fd, length) ? errno : 0);
}

/*
 * Wait at most @seconds seconds for a child to end. Returns whether the child
 * has ended. @status is then its wait status.
 */
static bool ended(pid_t child, int seconds, int *status)
{
	for (int i = 0; i < seconds * 100; i++) {
		if (waitpid(child, status, WNOHANG) == child)
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * ftruncate() to a position inside the folio does not hang. After the file has grown again, the
 * content before this position is unchanged, and all bytes after it are zero.
 *
 * Known issue 51: the call does not end if the position lies between two pages. SIGKILL does not
 * end the call. swapoff() brings the folio back into memory, and this ends the call.
 */
TEST_F_TIMEOUT(shmem_cut, truncate, 120)
{
	struct memory *m = &self->memory;
	const unsigned int half = m->pages / 2;
	const size_t cut = bytes(half) + variant->bytes;
	size_t byte, left = 0;
	int status = -1;
	pid_t child;

	ASSERT_LE(0, child = start_cut(m, cut));
	if (!ended(child, SECONDS, &status)) {
		bool killed;

		kill(child, SIGKILL);
		killed = ended(child, 1, &status);
		EXPECT_EQ(0, swapoff("/dev/ram0"));
		EXPECT_TRUE(killed || ended(child, 30, &status));
		EXPECT_TRUE(have_swap());
		ASSERT_FALSE(killed);
		ASSERT_TRUE(m->order && !variant->bytes);
		KNOWN_ISSUE(51, "ftruncate() does not end");
		return;
	}
	ASSERT_EQ(0, status);
	ASSERT_EQ(0, ftruncate(m->fd, bytes(m->pages)));
	EXPECT_EQ(0, wrong_pages(m->at, half));
	for (byte = bytes(half); byte < bytes(m->pages); byte++) {
		unsigned char right = byte < cut ? pattern(half) : 0;

		left += (unsigned char)m->at[byte] != right;
	}
	EXPECT_EQ(0, left);
	DID(m->pages - half, "pages cut off");
	if (m->order && !variant->bytes)
		STALE_ISSUE(51);
}

TEST_HARNESS_MAIN
