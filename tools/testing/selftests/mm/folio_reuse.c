// SPDX-License-Identifier: GPL-2.0
/*
 * A process writes to a large folio that other processes share, or shared
 * before. The kernel either reuses the page or copies it.
 *
 * Proves: a write to a shared folio copies the page as long as another process
 * maps any page of the folio. A write also copies the page if a pipe, a device
 * or swap still refers to the folio, even if no other process maps the folio.
 * Linux 6.15 and later track which processes map a folio. When the other
 * processes have gone, and the pipe, the device and swap no longer refer to the
 * folio, such kernels reuse the folio. This holds for folios of any order, even
 * if several VMAs or page tables map the pages of a folio. Older kernels copy
 * large folios in all these cases. A pinned page stays mapped in its process.
 * Threads and the child of vfork() do not count as other processes.
 *
 * Does not prove: how the kernel tracks processes (KUnit: folio_mapped_*), or
 * what happens during real device I/O. In this program, gup_test acts as the
 * device and pins the pages.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_reuse
 */
#include "../../../../mm/gup_test.h"
#include "folio_owner.h"

FIXTURE(folio_reuse)
{
	struct memory memory;
	int go[2];
	unsigned int copies;	/* pages copied by writes after all sharers have exited */
};

FIXTURE_VARIANT(folio_reuse)
{
	int order;
	bool above_block;	/* .order is added to the order of a block */
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
		SKIP(return, "no huge pages, or huge pages of more than 64 MiB");
	if (variant->huge)
		order = order_of(table / psize());
	if (folio_owners == OWNERS_UNKNOWN)
		SKIP(return, "CONFIG_KALLSYMS_ALL=n: cannot tell whether the kernel tracks owners");
	why = folio_settings(order);
	if (!why)
		why = memory_map(m, ANON, order, 1);
	if (why)
		SKIP(return, "%s", why);
	/*
	 * khugepaged must not make a huge page again. mprotect() of one page
	 * splits a huge page, so that PTEs map the memory.
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
 * Let a child map all of the memory and exit. After that, no page is marked
 * exclusive. Returns true on success.
 */
static bool shared_for_a_while(int go[2], struct memory *m)
{
	return end_child(waiting_child(go, NULL, m));
}

/*
 * A child shares the folio and exits. Then the parent writes to each page. A
 * kernel that tracks owners copies no page, and an older kernel copies all
 * pages. The variants have folios from order 2 to the order of a huge page.
 */
TEST_F(folio_reuse, alone)
{
	struct memory *m = &self->memory;

	ASSERT_TRUE(shared_for_a_while(self->go, m));
	EXPECT_EQ(self->copies, copied(m));
	EXPECT_EQ(-1, foreign_page(m->at, 0, m->pages));
}

/* The addresses of the two halves of the memory. */
static char *halves[2];

static void unmap_first_half(struct memory *m)
{
	munmap(halves[0], bytes(m->pages / 2));
}

/*
 * A process maps a folio in two halves, and a child maps only the second half.
 * If the parent writes to the first half, every kernel copies the page, since
 * the folio is shared. After the child has exited, the parent writes to all
 * other pages. If @copies is 0, no write copies a page; otherwise each write
 * copies a page.
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
 * The two halves of the folio are in two VMAs of one process. A child shares
 * the second half, so a write to the first half copies the page. After the
 * child has exited, a kernel that tracks owners reuses the other pages.
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
 * mremap() moves the second half of the folio to another page table. A child
 * shares the second half, so a write to the first half copies the page. After
 * the child has exited, a kernel that tracks owners reuses the other pages.
 */
TEST_F(folio_reuse, half_moved_away)
{
	struct memory *m = &self->memory;
	size_t table = read_pmd_pagesize(), half = bytes(m->pages / 2);
	char *to;

	if (!table)
		SKIP(return, "cannot tell how much memory a page table maps");
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
 * mremap() moves the folio across the end of a page table: this table maps the
 * first half, and the next table maps the second half. A child shares the
 * second half, so a write to the first half copies the page. After the child
 * has exited, a kernel that tracks owners reuses the other pages.
 */
TEST_F(folio_reuse, over_table_end)
{
	struct memory *m = &self->memory;
	size_t table = read_pmd_pagesize(), length = bytes(m->pages);
	char *room;

	if (!table)
		SKIP(return, "cannot tell how much memory a page table maps");
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
 * A child shares the folio and exits. Then a pipe takes a reference to one
 * page. The pipe must not show later writes, so a write to any page of the
 * folio copies the written page. After the pipe has been read, the parent
 * writes to the pages that precede the page that was in the pipe. A kernel that
 * tracks owners reuses these pages.
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

/*
 * Take a long-term pin of a page for reading, as a device does. If @fast is
 * set, pin the page by GUP-fast, without a lock.
 */
static int device_pin(int device, char *at, bool fast)
{
	struct pin_longterm_test args = {
		.addr = (unsigned long)at,
		.size = bytes(1),
		.flags = fast ? PIN_LONGTERM_TEST_FLAG_USE_FAST : 0,
	};

	return ioctl(device, PIN_LONGTERM_TEST_START, &args);
}

/* Whether each byte of the pinned page is @value when the device reads it. */
static bool device_reads(int device, unsigned char value)
{
	char *came = malloc(bytes(1));
	__u64 to = (unsigned long)came;
	bool right = came && !ioctl(device, PIN_LONGTERM_TEST_READ, &to) && page_is(came, value);

	free(came);
	return right;
}

/*
 * A device pins a page that a child shares. The kernel first gives the parent a
 * copy of the page, and pins the copy. The device sees what the parent then
 * writes to this copy, and the child keeps the old content. The case pins one
 * page under the mmap lock, and another page by GUP-fast.
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
			TH_LOG("the pin was made %s", fast ? "without a lock" : "under the lock");
		}
		EXPECT_TRUE(child_has(child, at, pattern(page)));
		ioctl(device, PIN_LONGTERM_TEST_STOP);
	}
	EXPECT_TRUE(end_child(child));
	close(device);
}

/*
 * A child shares the folio and exits. Then a device pins one page. A kernel
 * that tracks owners pins this page without a copy, and an older kernel pins a
 * copy. While the page is pinned, a write to any other page of the folio copies
 * the written page, since the folio has more references than mappings. After
 * the page is unpinned, a kernel that tracks owners reuses the remaining pages.
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
	/* The page is no longer pinned. Write to the pages that follow it. */
	EXPECT_EQ(self->copies ? left : 0, copied_part(at + bytes(1), one + 1, left));
	EXPECT_EQ(-1, foreign_page(m->at, 0, one));
	EXPECT_EQ(-1, foreign_page(at + bytes(1), one + 1, left));
	close(device);
}

/*
 * A device pins a page. Then the process forks. During fork(), the kernel
 * copies all pages of the folio for the child. So later writes by the parent
 * copy nothing, and the device sees a write to the pinned page. The child keeps
 * the old content.
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
 * The memory is swapped out, a child is forked, and the parent reads the memory
 * back. No other process maps the folio, but the child has swap entries for its
 * pages, and will find the folio in the swap cache. So a write by the parent
 * copies the page. After the child has exited, the kernel frees the swap
 * entries and reuses the pages. Older kernels read back single pages. A newer
 * kernel can read back a large folio, if it swapped out the folio in one piece.
 * With single pages and with a large folio, a write copies the page while the
 * child lives, and copies nothing after the child has exited.
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
 * Three processes share the folio, and the second process exits first. The
 * kernel tracks at most two processes per folio, and the second of its two
 * slots is now empty. A write by the first process still copies the page, since
 * the third process maps the folio. After the third process has exited, a
 * kernel that tracks owners reuses the pages.
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

/*
 * Write to all pages. Returns 0 if each page was copied with its content, else
 * 1.
 */
static int all_copied(struct memory *m, int unused)
{
	return copied(m) != m->pages || foreign_page(m->at, 0, m->pages) != -1;
}

/*
 * Three processes mapped the folio, and only the third process still maps it. A
 * kernel that tracks owners tracks at most two processes per folio. It has
 * never tracked the third process, so it assumes that the folio is shared, and
 * copies each page that the process writes to. An older kernel also copies each
 * page of this large folio. Each copy has the right content.
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
 * A thread is not another process. When a thread starts, no page becomes
 * read-only, and a write by the thread costs no fault. Then a child shares the
 * folio and exits, and a new thread writes to all pages. A kernel that tracks
 * owners reuses the pages, and an older kernel copies them.
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
 * A child of vfork() uses the memory of its parent. The child writes to a page:
 * the parent sees the write in the same frame, and the page stays exclusive.
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
