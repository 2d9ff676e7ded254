// SPDX-License-Identifier: GPL-2.0
/*
 * Whether a write to a large folio that was shared reuses its memory, when no
 * other process maps it any more, but something else still refers to it.
 *
 * Proves: the kernel never writes in place while a pipe, a device or swap
 * refers to the folio, or while another process maps any of its pages. A kernel
 * that tracks who maps a folio (Linux 6.15 and later) reuses the folio as soon
 * as that is over: for any order, and also if its pages are spread over VMAs
 * and page tables. Older kernels copy a large folio in all these cases. A
 * pinned page stays the page that the process sees. Threads and vfork() share
 * nothing: they are one process.
 *
 * Does not prove: the tracking itself (KUnit: folio_mapped_*), or reads and
 * writes of devices in progress, which pin pages as the device here does.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_reuse
 */
#include "../../../../mm/gup_test.h"
#include "folio_owner.h"

FIXTURE(folio_reuse)
{
	struct memory memory;
	int go[2];
	unsigned int copies;	/* pages copied, where the kernel may reuse them */
};

FIXTURE_VARIANT(folio_reuse)
{
	int order;
	bool above_block;	/* the order is relative to the order of a block */
	bool huge;
};

FIXTURE_VARIANT_ADD(folio_reuse, order_2)
{
	.order = 2,
};

FIXTURE_VARIANT_ADD(folio_reuse, order_3)
{
	.order = 3,
};

FIXTURE_VARIANT_ADD(folio_reuse, block)
{
	.above_block = true,
};

FIXTURE_VARIANT_ADD(folio_reuse, two_blocks)
{
	.above_block = true,
	.order = 1,
};

FIXTURE_VARIANT_ADD(folio_reuse, eight_blocks)
{
	.above_block = true,
	.order = 3,
};

FIXTURE_VARIANT_ADD(folio_reuse, huge_page)
{
	.huge = true,
};

FIXTURE_SETUP(folio_reuse)
{
	struct memory *m = &self->memory;
	int order = variant->order;
	size_t table = read_pmd_pagesize();
	const char *why;

	m->fd = -1;
	if (variant->above_block)
		order += order_of(cont_ptes());
	if (variant->huge && (!table || table > 64 << 20))
		SKIP(return, "no huge pages, or of more than 64 MiB");
	if (variant->huge)
		order = order_of(table / psize());
	if (folio_owners == OWNERS_UNKNOWN)
		SKIP(return, "CONFIG_KALLSYMS_ALL=n: what the kernel tracks is not known");
	why = folio_settings(order);
	if (!why)
		why = memory_map(m, ANON, order, 1);
	if (why)
		SKIP(return, "%s", why);
	/*
	 * khugepaged must not make a huge page of it, and single entries map
	 * it.
	 */
	folio_settings(0);
	ASSERT_EQ(0, mprotect(m->at, bytes(1), PROT_READ));
	ASSERT_EQ(0, mprotect(m->at, bytes(1), PROT_READ | PROT_WRITE));
	ASSERT_TRUE(is_folio(m, 0));
	ASSERT_EQ(0, pipe(self->go));
	self->copies = folio_owners == OWNERS_TRACKED ? 0 : m->pages;
}

FIXTURE_TEARDOWN(folio_reuse)
{
	memory_free(&self->memory);
}

/*
 * Let a child map all of the memory and exit: no page is marked exclusive any
 * more.
 */
static bool shared_for_a_while(int go[2], struct memory *m)
{
	return end_child(waiting_child(go, NULL, m));
}

/*
 * [mapped 37] A child shares the folio and exits, then the parent writes to
 * each page. A tracking kernel copies none, an older one all. The variants have
 * orders from 2 to the order of a huge page.
 */
TEST_F(folio_reuse, alone)
{
	struct memory *m = &self->memory;

	ASSERT_TRUE(shared_for_a_while(self->go, m));
	EXPECT_EQ(self->copies, copied(m));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* The two halves of the memory; unmap_first_half() unmaps the first. */
static char *halves[2];

static void unmap_first_half(struct memory *m)
{
	munmap(halves[0], bytes(m->pages / 2));
}

/*
 * The folio is mapped in two pieces, and a child maps only the second. A write
 * to the first piece is a copy on every kernel, as the folio is shared. After
 * the child has exited, all other pages belong to one process again.
 */
static void write_to_halves(struct __test_metadata *_metadata, int go[2], struct memory *m,
			    unsigned int copies)
{
	unsigned int half = m->pages / 2;
	pid_t child = waiting_child(go, unmap_first_half, m);

	ASSERT_LT(0, child);
	EXPECT_EQ(1, copied_part(halves[0], 0, 1));
	ASSERT_TRUE(end_child(child));
	EXPECT_EQ(copies ? half - 1 : 0, copied_part(halves[0] + bytes(1), 1, half - 1));
	EXPECT_EQ(copies ? half : 0, copied_part(halves[1], half, half));
	EXPECT_EQ(-1, foreign_page(halves[0], 0, half));
	EXPECT_EQ(-1, foreign_page(halves[1], half, half));
}

/*
 * [mapped 37] The two halves of the folio are in two VMAs of one process. A
 * tracking kernel still sees when the child has exited, and reuses all pages.
 */
TEST_F(folio_reuse, in_two_vmas)
{
	struct memory *m = &self->memory;

	halves[0] = m->at;
	halves[1] = m->at + bytes(m->pages / 2);
	ASSERT_EQ(0, madvise(halves[1], bytes(m->pages / 2), MADV_DONTDUMP));
	write_to_halves(_metadata, self->go, m, self->copies);
}

/*
 * [mapped 37] mremap() has moved one half of the folio to another page table. A
 * tracking kernel still reuses all pages after the child has exited.
 */
TEST_F(folio_reuse, half_moved_away)
{
	struct memory *m = &self->memory;
	size_t table = read_pmd_pagesize(), half = bytes(m->pages / 2);
	char *to;

	if (!table)
		SKIP(return, "unknown how much a page table maps");
	to = mmap(NULL, 2 * table + half, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, to);
	halves[0] = m->at;
	halves[1] = to + table;
	ASSERT_EQ(halves[1], mremap(m->at + half, half, half, MREMAP_MAYMOVE | MREMAP_FIXED,
				    halves[1]));
	write_to_halves(_metadata, self->go, m, self->copies);
	munmap(to, 2 * table + half);
}

/*
 * [mapped 37] mremap() has moved the folio to a place where a page table ends
 * in its middle. A tracking kernel still reuses all pages after the child has
 * exited.
 */
TEST_F(folio_reuse, over_table_end)
{
	struct memory *m = &self->memory;
	size_t table = read_pmd_pagesize(), length = bytes(m->pages);
	char *room;

	if (!table)
		SKIP(return, "unknown how much a page table maps");
	room = mmap(NULL, 4 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, room);
	halves[1] = (char *)(((unsigned long)room + 2 * table - 1) & -table);
	halves[0] = halves[1] - length / 2;
	ASSERT_EQ(halves[0], mremap(m->at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
				    halves[0]));
	write_to_halves(_metadata, self->go, m, self->copies);
	munmap(room, 4 * table);
}

/*
 * [mapped 32] A pipe holds a reference to one page, taken while no page was
 * marked exclusive. The pipe must not show later writes. So a write to this
 * page, or to any other page of the folio, makes a copy. When the pipe is
 * empty, the pages before it are reused.
 */
TEST_F(folio_reuse, page_in_pipe)
{
	struct memory *m = &self->memory;
	unsigned int one = m->pages / 2;
	struct iovec vector = { .iov_base = m->at + bytes(one), .iov_len = bytes(1) };
	char *came = malloc(bytes(1));
	int ends[2];

	ASSERT_NE(NULL, came);
	ASSERT_EQ(0, pipe(ends));
	ASSERT_TRUE(shared_for_a_while(self->go, m));
	ASSERT_EQ(bytes(1), vmsplice(ends[1], &vector, 1, 0));
	EXPECT_EQ(1, copied_part(m->at, 0, 1));
	memset(m->at + bytes(one), 0xff, bytes(1));
	EXPECT_EQ(bytes(1), read(ends[0], came, bytes(1)));
	EXPECT_TRUE(page_is(came, pattern(one)));
	EXPECT_TRUE(page_is(m->at + bytes(one), 0xff));
	EXPECT_EQ(self->copies ? one - 1 : 0, copied_part(m->at + bytes(1), 1, one - 1));
	EXPECT_EQ(-1, foreign_page(m->at, 0, one));
	free(came);
}

/* Pin a page for long to read it, as a device does; without a lock if @fast. */
static int device_pin(int device, char *at, bool fast)
{
	struct pin_longterm_test args = {
		.addr = (unsigned long)at,
		.size = bytes(1),
		.flags = fast ? PIN_LONGTERM_TEST_FLAG_USE_FAST : 0,
	};

	return ioctl(device, PIN_LONGTERM_TEST_START, &args);
}

/* Whether the device sees @value in each byte of the pinned page. */
static bool device_reads(int device, unsigned char value)
{
	char *came = malloc(bytes(1));
	__u64 to = (unsigned long)came;
	bool right = came && !ioctl(device, PIN_LONGTERM_TEST_READ, &to) && page_is(came, value);

	free(came);
	return right;
}

/*
 * [mapped 35] A device pins a page that a child shares. The process gets a page
 * of its own first, and the device sees that page, also after the process
 * writes to it. The child keeps the old content.
 */
TEST_F(folio_reuse, pin_beside_child)
{
	struct memory *m = &self->memory;
	int device = open("/sys/kernel/debug/gup_test", O_RDWR);
	pid_t child;

	if (device < 0)
		SKIP(return, "CONFIG_GUP_TEST=n, or no debugfs");
	child = waiting_child(self->go, NULL, m);
	ASSERT_LT(0, child);
	for (int fast = 0; fast < 2; fast++) {
		unsigned int page = m->pages / 2 + fast;
		char *at = m->at + bytes(page);
		unsigned long before = pfn_of(at), pinned;

		ASSERT_EQ(0, device_pin(device, at, fast));
		pinned = pfn_of(at);
		EXPECT_NE(before, pinned);
		EXPECT_TRUE(device_reads(device, pattern(page)));
		memset(at, 0xff, bytes(1));
		EXPECT_EQ(pinned, pfn_of(at));
		EXPECT_TRUE(device_reads(device, 0xff)) {
			TH_LOG("pinned %s", fast ? "without a lock" : "under the lock");
		}
		EXPECT_TRUE(child_has(child, at, pattern(page)));
		ioctl(device, PIN_LONGTERM_TEST_STOP);
	}
	EXPECT_TRUE(end_child(child));
	close(device);
}

/*
 * [mapped 32] [mapped 35] A device pins a page after the child has exited: a
 * tracking kernel reuses the page for the pin, as it would for a write. While
 * the pin lasts, writes to the other pages are copies, since the folio has more
 * references than mappings. After it they are reused.
 */
TEST_F(folio_reuse, pin_after_child)
{
	struct memory *m = &self->memory;
	unsigned int one = m->pages / 2, left = m->pages - one - 1;
	int device = open("/sys/kernel/debug/gup_test", O_RDWR);
	char *at = m->at + bytes(one);
	unsigned long before, pinned;

	if (device < 0)
		SKIP(return, "CONFIG_GUP_TEST=n, or no debugfs");
	ASSERT_TRUE(shared_for_a_while(self->go, m));
	before = pfn_of(at);
	ASSERT_EQ(0, device_pin(device, at, false));
	pinned = pfn_of(at);
	EXPECT_EQ(self->copies != 0, pinned != before);
	EXPECT_EQ(one, copied_part(m->at, 0, one));
	memset(at, 0xff, bytes(1));
	EXPECT_EQ(pinned, pfn_of(at));
	EXPECT_TRUE(device_reads(device, 0xff));
	ioctl(device, PIN_LONGTERM_TEST_STOP);
	/* Without the pin, the rest of the folio is reused. */
	EXPECT_EQ(self->copies ? left : 0, copied_part(at + bytes(1), one + 1, left));
	EXPECT_EQ(-1, foreign_page(m->at, 0, one));
	EXPECT_EQ(-1, foreign_page(at + bytes(1), one + 1, left));
	close(device);
}

/*
 * [mapped 32] A device pins a page, then the process forks: the child gets
 * copies of the folio's pages at once. So the parent writes to the same memory
 * as before, which the device sees.
 */
TEST_F(folio_reuse, pin_before_fork)
{
	struct memory *m = &self->memory;
	unsigned int one = m->pages / 2;
	int device = open("/sys/kernel/debug/gup_test", O_RDWR);
	char *at = m->at + bytes(one);
	pid_t child;

	if (device < 0)
		SKIP(return, "CONFIG_GUP_TEST=n, or no debugfs");
	ASSERT_EQ(0, device_pin(device, at, true));
	child = waiting_child(self->go, NULL, m);
	ASSERT_LT(0, child);
	EXPECT_EQ(0, copied(m));
	memset(at, 0xff, bytes(1));
	EXPECT_TRUE(device_reads(device, 0xff));
	EXPECT_TRUE(child_has(child, at, pattern(one)));
	EXPECT_TRUE(end_child(child));
	close(device);
}

/*
 * [mapped 33] The memory was swapped out, and a child has it only in swap. The
 * parent reads it back. No other process maps the folio, but the child will
 * read it from the swap cache, so a write must copy. After the child has
 * exited, the kernel drops the swap and reuses the pages. Old kernels read back
 * single pages, new ones some large folios that were swapped out as a whole;
 * the same rule holds for both.
 */
TEST_F(folio_reuse, in_swap_cache)
{
	struct memory *m = &self->memory;
	unsigned int left = m->pages - 1;
	bool large;
	pid_t child;

	if (!have_swap())
		SKIP(return, "no swap");
	folio_settings(m->order);
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	ASSERT_FALSE(pagemap_has(m->at, PM_PRESENT));
	child = waiting_child(self->go, NULL, m);
	ASSERT_LT(0, child);
	for (unsigned int page = 0; page < m->pages; page++)
		read_byte(m->at + bytes(page));
	large = kernel_flags(m->at) & (FOLIO_HEAD | FOLIO_TAIL);
	if (variant->order == 2)
		EXPECT_EQ(folio_owners == OWNERS_TRACKED && swaps_large(), large);
	ASSERT_TRUE(kernel_flags(m->at) & FOLIO_SWAPCACHE);
	ASSERT_TRUE(kernel_flags(m->at + bytes(left)) & FOLIO_SWAPCACHE);
	EXPECT_EQ(1, copied_part(m->at, 0, 1));
	ASSERT_TRUE(end_child(child));
	ASSERT_TRUE(kernel_flags(m->at + bytes(left)) & FOLIO_SWAPCACHE);
	EXPECT_EQ(0, copied_part(m->at + bytes(1), 1, left));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/*
 * [mapped 36] Three processes share the folio, and the second exits first. The
 * kernel counts at most two processes, and has none in the second slot now. The
 * first process still must not write in place. It may after the third has
 * exited.
 */
TEST_F(folio_reuse, three_processes_then_one)
{
	struct memory *m = &self->memory;
	pid_t second, third;

	second = waiting_child(self->go, NULL, m);
	ASSERT_LT(0, second);
	third = waiting_child(self->go, NULL, m);
	ASSERT_LT(0, third);
	ASSERT_TRUE(end_child(second));
	EXPECT_EQ(1, copied_part(m->at, 0, 1));
	EXPECT_TRUE(child_has(third, m->at + bytes(1), pattern(1)));
	ASSERT_TRUE(end_child(third));
	EXPECT_EQ(self->copies ? m->pages - 1 : 0, copied_part(m->at + bytes(1), 1, m->pages - 1));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* Write to all pages: 0 if each one was copied with its content, else 1. */
static int all_copied(struct memory *m, int unused)
{
	return copied(m) != m->pages || foreign_page(m->at, 0, m->pages) != -1;
}

/*
 * [mapped 36] Of three processes only the third is left. A kernel that tracks
 * two processes has never tracked this one, and takes the folio for shared. So
 * every kernel copies all pages here, and each copy has the right content.
 */
TEST_F(folio_reuse, third_process_alone)
{
	EXPECT_EQ(0, ask_third(self->go, &self->memory, all_copied, 0));
}

static void *write_all(void *argument)
{
	struct memory *m = argument;
	static long before;

	faults_begin(&before);
	for (unsigned int page = 0; page < m->pages; page++)
		m->at[bytes(page)] = pattern(page);
	return (void *)(faults() - before);
}

/*
 * [mapped 39] A thread is not another process: no page becomes read-only when
 * it starts, so its writes cost no fault. After a child has shared the folio, a
 * thread that writes reuses the pages as the main thread would.
 */
TEST_F(folio_reuse, thread_writes)
{
	struct memory *m = &self->memory;
	unsigned long before = pfn_of(m->at), last = pfn_of(m->at + bytes(m->pages - 1));
	pthread_t thread;
	void *faulted;

	ASSERT_EQ(0, pthread_create(&thread, NULL, write_all, m));
	ASSERT_EQ(0, pthread_join(thread, &faulted));
	EXPECT_EQ(0, (long)faulted);
	EXPECT_TRUE(pagemap_has(m->at, PM_MMAP_EXCLUSIVE));
	EXPECT_EQ(1, mappings(m->at));
	EXPECT_EQ(before, pfn_of(m->at));

	ASSERT_TRUE(shared_for_a_while(self->go, m));
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_all, m));
	ASSERT_EQ(0, pthread_join(thread, &faulted));
	EXPECT_LE(m->pages, (long)faulted);
	EXPECT_EQ(self->copies != 0, pfn_of(m->at) != before);
	EXPECT_EQ(self->copies != 0, pfn_of(m->at + bytes(m->pages - 1)) != last);
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/*
 * [mapped 39] A child of vfork() uses the memory of its parent: the parent sees
 * its write, in the same frame, and the pages stay exclusive.
 */
TEST_F(folio_reuse, vfork_writes)
{
	struct memory *m = &self->memory;
	unsigned long before = pfn_of(m->at);
	char *at = m->at;
	pid_t child;

	child = vfork();
	if (!child) {
		memset(at, 0xff, bytes(1));
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child));
	EXPECT_TRUE(page_is(at, 0xff));
	EXPECT_EQ(before, pfn_of(at));
	EXPECT_TRUE(pagemap_has(at, PM_MMAP_EXCLUSIVE));
	EXPECT_EQ(0, copied(m));
}

TEST_HARNESS_MAIN
