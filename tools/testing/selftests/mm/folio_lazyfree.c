// SPDX-License-Identifier: GPL-2.0
/*
 * Reclaim of lazyfree memory that is still in use.
 *
 * Proves: MADV_FREE gives up only the memory of its caller. If a child calls
 * MADV_FREE on pages that it shares with its parent, the parent keeps them
 * (freed_by_child). If one process makes a page lazyfree and KSM then merges
 * this page with a page of another process, the merged page keeps its content
 * (freed_in_ksm).
 *
 * MADV_FREE also gives up a page that reclaim would otherwise write to swap: a
 * page in the swap cache, or a page whose folio is marked as dirty (freed_dirty).
 *
 * The program also proves: if a page of a lazyfree folio is pinned, reclaim
 * unmaps the folio but cannot free it. Reclaim then restores each entry with
 * its own write permission and soft-dirty bit, not with the bits of the first
 * entry in the batch.
 *
 *	page		0   1   2   3   4   5 ...
 *	may write	    x       x       x		(other round: 0, 2, 4, ...)
 *
 * How: fork() makes all entries read-only. After the child has exited, the test
 * writes to every second page, which makes these pages writable again. Linux
 * 6.15 and later know that no other process maps the folio, and do not copy its
 * pages. Older kernels copy each page that is written to, and the case is
 * skipped.
 *
 * Does not prove: that reclaim frees lazyfree memory (folio_advice tests this).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_lazyfree
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_owner.h"
#include "folio_pmd.h"
#include "folio_state.h"

FIXTURE(folio_lazyfree)
{
	struct memory memory;
};

FIXTURE_SETUP(folio_lazyfree)
{
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, ANON, order, 1);
	if (!why && !have_swap())
		why = "no swap: reclaim takes no page";
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_lazyfree)
{
	memory_free(&self->memory);
}

/*
 * In a folio every second page is writable, and one page is pinned. Reclaim
 * unmaps the folio and restores its entries. After that, a write to a writable
 * page costs no fault. A write to a read-only page faults and copies the page,
 * since the folio is pinned. The case runs twice: the first entry of the batch
 * is writable in one round and read-only in the other round.
 */
TEST_F(folio_lazyfree, pinned_keeps_permission)
{
	struct memory *m = &self->memory;
	int order = m->order;
	long before;

	for (unsigned int first = 0; first < 2; first++) {
		bool soft = softdirty_supported();
		unsigned long restored = 0;
		int go[2], fd;

		memory_free(m);
		ASSERT_EQ(NULL, memory_map(m, ANON, order, 1));
		ASSERT_EQ(0, pipe(go));
		ASSERT_TRUE(end_child(waiting_child(go, NULL, m)));
		if (soft)
			clear_softdirty();
		for (unsigned int page = first; page < m->pages; page += 2)
			m->at[bytes(page)] = pattern(page);
		if (!is_folio(m, 0))
			SKIP(return, "this kernel still copies pages after the child has exited");
		fd = pin(m->at + bytes(first), 1);
		if (fd < 0)
			SKIP(return, "no io_uring");
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
		ASSERT_EQ(m->pages, smaps_pages(m->at, "LazyFree"));
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
		ASSERT_TRUE(is_folio(m, 0));
		for (unsigned int page = 0; page < m->pages; page++) {
			char *at = m->at + bytes(page);
			unsigned long pfn = pfn_of(at);
			bool writable = page % 2 == first;

			if (soft)
				EXPECT_EQ(writable, pagemap_has(at, PM_SOFT_DIRTY)) {
					TH_LOG("page %u has the wrong soft-dirty bit", page);
				}
			EXPECT_TRUE(page_is(at, pattern(page)));
			faults_begin(&before);
			*at = pattern(page);
			EXPECT_EQ(!writable, faults() - before) {
				TH_LOG("page %u; every second page from page %u on is writable",
				       page, first);
			}
			EXPECT_EQ(writable, pfn_of(at) == pfn);
			restored++;
		}
		DID(restored, "entries checked after reclaim");
		close(fd);
		close(go[0]);
		close(go[1]);
	}
}

FIXTURE(freed_by_child)
{
	struct memory memory;
	int go[2];
};

/*
 * How the parent got its pages before fork() shared them with the child. If
 * neither @pinned nor @merged is set, the parent wrote to the pages.
 * @pinned: another child shared them, and a pin for reading copied them
 * @merged: KSM merged them, and MADV_UNMERGEABLE copied them
 */
FIXTURE_VARIANT(freed_by_child)
{
	bool pinned;
	bool merged;
	bool large;
};

FIXTURE_VARIANT_ADD(freed_by_child, written)
{
};

FIXTURE_VARIANT_ADD(freed_by_child, written_folio)
{
	.large = true,
};

FIXTURE_VARIANT_ADD(freed_by_child, pinned)
{
	.pinned = true,
};

FIXTURE_VARIANT_ADD(freed_by_child, pinned_folio)
{
	.pinned = true,
	.large = true,
};

FIXTURE_VARIANT_ADD(freed_by_child, merged)
{
	.merged = true,
};

FIXTURE_SETUP(freed_by_child)
{
	int order = variant->large ? order_of(cont_ptes()) : 0;
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, ANON, order, 2 * cont_ptes() >> order);
	if (!why && variant->merged && access(FOLIO_KSM "run", W_OK))
		why = "CONFIG_KSM=n";
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(freed_by_child)
{
	memory_free(&self->memory);
}

/*
 * Pin pages for reading while a child shares them. The kernel then copies the
 * pages, although no process writes to them.
 */
static bool pin_shared(int go[2], struct memory *m)
{
	pid_t child = waiting_child(go, NULL, m);
	char *copy = malloc(bytes(m->pages));
	struct iovec to = { copy, bytes(m->pages) }, from = { m->at, bytes(m->pages) };
	bool right = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)bytes(m->pages);

	free(copy);
	return end_child(child) && right;
}

/*
 * Let KSM merge pages, then call MADV_UNMERGEABLE. The kernel then copies the
 * pages, although no process writes to them.
 */
static bool merge_and_unmerge(struct memory *m)
{
	char *last = m->at + bytes(m->pages - 1);

	for (unsigned int page = 0; page < m->pages; page++)
		memset(m->at + bytes(page), pattern(0), bytes(1));
	return ksm_merge(m, m->at, last, pattern(0)) &&
	       !madvise(m->at, bytes(m->pages), MADV_UNMERGEABLE);
}

/*
 * A child calls MADV_FREE on the first half of the memory and exits. The parent
 * calls MADV_FREE on the second half. Reclaim drops the second half, which
 * proves that reclaim ran. The parent must find its content in the first half.
 * If the memory is in large folios, each half is one folio, so MADV_FREE does
 * not split the folio.
 *
 * Known issue 45: if the kernel copies a page although no process writes to it,
 * the entry of the copy is clean, and its folio is clean too. So MADV_FREE in
 * the child makes the page lazyfree, and reclaim drops it.
 */
TEST_F_TIMEOUT(freed_by_child, parent_keeps_content, 120)
{
	struct memory *m = &self->memory;
	unsigned int page, half = m->pages / 2, lost = 0, dropped = 0, copied = 0;
	unsigned long *before = calloc(m->pages, sizeof(*before));
	pid_t child;

	ASSERT_NE(NULL, before);
	for (page = 0; page < m->pages; page++)
		before[page] = pfn_of(m->at + bytes(page));
	if (variant->pinned)
		ASSERT_TRUE(pin_shared(self->go, m));
	if (variant->merged)
		ASSERT_TRUE(merge_and_unmerge(m));
	for (page = 0; page < half; page++)
		copied += pfn_of(m->at + bytes(page)) != before[page];
	free(before);
	child = fork();
	if (!child)
		_exit(!!madvise(m->at, bytes(half), MADV_FREE));
	ASSERT_EQ(0, child_of(child));
	ASSERT_EQ(0, madvise(m->at + bytes(half), bytes(half), MADV_FREE));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	for (page = 0; page < m->pages; page++) {
		int value = variant->merged ? pattern(0) : pattern(page);
		bool kept = page_is(m->at + bytes(page), value);

		EXPECT_TRUE(kept || page_is(m->at + bytes(page), 0)) {
			TH_LOG("content of page %u", page);
		}
		lost += page < half && !kept;
		dropped += page >= half && !kept;
	}
	DID(dropped, "pages dropped that the parent gave up");
	if (variant->pinned || variant->merged)
		DID(copied, "pages copied without a write");
	if (lost && lost == copied)
		KNOWN_ISSUE(45, "a child gives up pages of its parent");
	else
		EXPECT_EQ(0, lost);
	if (!lost && copied)
		STALE_ISSUE(45);
}

enum advice { NONE, WHILE_SHARED, AS_LAST };

FIXTURE(freed_in_ksm)
{
	struct memory memory;
	int go[2];
};

/*
 * @advice: when a child calls MADV_FREE: never, while two addresses map the KSM
 * page, or while one address maps it
 */
FIXTURE_VARIANT(freed_in_ksm)
{
	enum advice advice;
};

FIXTURE_VARIANT_ADD(freed_in_ksm, never)
{
	.advice = NONE,
};

FIXTURE_VARIANT_ADD(freed_in_ksm, while_shared)
{
	.advice = WHILE_SHARED,
};

FIXTURE_VARIANT_ADD(freed_in_ksm, as_last)
{
	.advice = AS_LAST,
};

FIXTURE_SETUP(freed_in_ksm)
{
	const char *why = folio_settings(0);

	self->memory.fd = -1;
	if (!why && access(FOLIO_KSM "run", W_OK))
		why = "CONFIG_KSM=n";
	if (!why && !have_swap())
		why = "no swap";
	if (!why)
		why = memory_map(&self->memory, ANON, 0, 2);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(freed_in_ksm)
{
	memory_free(&self->memory);
}

/*
 * Let KSM merge both pages. Then write to the second page, so that only the
 * first page stays in the KSM frame.
 */
static void merge_and_leave_one(struct memory *m, bool free_shared)
{
	char *second = m->at + bytes(1);

	if (!ksm_merge(m, m->at, second, pattern(0)))
		_exit(1);
	if (free_shared && madvise(m->at, bytes(1), MADV_FREE))
		_exit(1);
	memset(second, pattern(1), bytes(1));
}

static void never_free(struct memory *m)
{
	merge_and_leave_one(m, false);
}

static void free_while_shared(struct memory *m)
{
	merge_and_leave_one(m, true);
}

static void free_as_last(struct memory *m)
{
	merge_and_leave_one(m, false);
	/*
	 * MADV_FREE puts the page into a list of the CPU. The second call
	 * empties this list and so makes the page lazyfree.
	 */
	if (madvise(m->at, bytes(1), MADV_FREE) || madvise(m->at, bytes(1), MADV_FREE))
		_exit(1);
}

/* The number of the page frame that another process maps at this address. */
static unsigned long pfn_in(pid_t process, char *at)
{
	unsigned long pfn;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", process);
	fd = open(path, O_RDONLY);
	pfn = pagemap_get_pfn(fd, at);
	close(fd);
	return pfn;
}

/*
 * A child calls MADV_FREE on a page that KSM has merged. After that, KSM merges a page of the
 * parent into the same frame. The child exits, and reclaim removes the parent's page from memory.
 * The parent never called MADV_FREE, so its page must go to swap, and come back with its content.
 *
 * Known issue 57: if the child is the last process that maps the KSM page,
 * MADV_FREE makes the page lazyfree. The KSM page stays lazyfree after the next
 * merge. Reclaim drops it, and the parent reads zeros.
 */
TEST_F_TIMEOUT(freed_in_ksm, other_process_keeps_content, 120)
{
	void (*const first[])(struct memory *) = { never_free, free_while_shared, free_as_last };
	struct memory *m = &self->memory;
	unsigned long shared;
	bool swapped;
	pid_t child;

	ASSERT_TRUE(stay_on_cpu());
	child = waiting_child(self->go, first[variant->advice], m);
	ASSERT_LT(0, child);
	shared = pfn_in(child, m->at);
	ASSERT_TRUE(ksm_merge(m, m->at, m->at + bytes(1), pattern(0)));
	ASSERT_EQ(shared, pfn_of(m->at)) {
		TH_LOG("KSM did not merge the pages of the two processes");
	}
	memset(m->at + bytes(1), pattern(1), bytes(1));
	ASSERT_TRUE(end_child(child));
	ASSERT_EQ(1, mappings(m->at));
	for (int i = 0; i < 100 && pagemap_has(m->at, PM_PRESENT); i++)
		ASSERT_EQ(0, madvise(m->at, bytes(1), MADV_PAGEOUT));
	DID(!pagemap_has(m->at, PM_PRESENT), "pages that reclaim took");
	swapped = pagemap_has(m->at, PM_SWAP);
	if (variant->advice == AS_LAST && !swapped && page_is(m->at, 0)) {
		KNOWN_ISSUE(57, "MADV_FREE of another process drops a page that KSM merged");
		return;
	}
	EXPECT_TRUE(swapped);
	EXPECT_TRUE(page_is(m->at, pattern(0)));
	EXPECT_TRUE(page_is(m->at + bytes(1), pattern(1)));
	if (variant->advice == AS_LAST)
		STALE_ISSUE(57);
}

enum dirtied { READ_BACK, WRITTEN_BACK, SPLIT };

FIXTURE(freed_dirty)
{
	struct memory memory;
	int go[2];
};

/*
 * @reason: why reclaim would write the pages to swap. The pages came back from swap and were only
 * read, so they are in the swap cache. The pages came back from swap and were written to, so their
 * folios are marked as dirty. The PMD of a dirty huge page was split, so its folio is marked as
 * dirty.
 */
FIXTURE_VARIANT(freed_dirty)
{
	enum dirtied reason;
};

FIXTURE_VARIANT_ADD(freed_dirty, read_back)
{
	.reason = READ_BACK,
};

FIXTURE_VARIANT_ADD(freed_dirty, written_back)
{
	.reason = WRITTEN_BACK,
};

FIXTURE_VARIANT_ADD(freed_dirty, pmd_split)
{
	.reason = SPLIT,
};

FIXTURE_SETUP(freed_dirty)
{
	unsigned int huge = pmd_pages();
	bool large = variant->reason == SPLIT;
	const char *why = NULL;

	self->memory.fd = -1;
	if (large && !huge)
		SKIP(return, NO_HUGE_PAGES);
	why = folio_settings(large ? order_of(huge) : 0);
	if (!why && !have_swap())
		why = "no swap";
	if (!why)
		why = memory_map(&self->memory, ANON, large ? order_of(huge) : 0,
				 large ? 1 : cont_ptes());
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(freed_dirty)
{
	memory_free(&self->memory);
}

/*
 * Bring the pages into the state that the variant names. While a child has the swap entries too, a
 * page that is read stays in the swap cache. Returns whether it worked.
 */
static bool make_dirty(struct memory *m, enum dirtied reason, int go[2])
{
	size_t length = bytes(m->pages);
	unsigned int page;
	pid_t child;

	if (reason == SPLIT)
		return !mprotect(m->at, bytes(1), PROT_READ) &&
		       !mprotect(m->at, bytes(1), PROT_READ | PROT_WRITE) &&
		       !smaps_pages(m->at, "AnonHugePages");
	if (madvise(m->at, length, MADV_PAGEOUT) || swapped_out(m) != m->pages)
		return false;
	child = waiting_child(go, NULL, m);
	for (page = 0; page < m->pages; page++)
		read_byte(m->at + bytes(page));
	if (!end_child(child))
		return false;
	for (page = 0; page < m->pages && reason == WRITTEN_BACK; page++)
		memset(m->at + bytes(page), pattern(page), bytes(1));
	return true;
}

/*
 * Each page is in the swap cache, or its folio is marked as dirty. After MADV_FREE, no page is in
 * the swap cache, no folio is marked as dirty, and all pages are lazyfree. Reclaim then drops the
 * pages, and writes none of them to swap.
 */
TEST_F(freed_dirty, reclaim_drops)
{
	struct memory *m = &self->memory;
	__u64 flag = variant->reason == READ_BACK ? FOLIO_SWAPCACHE : FOLIO_DIRTY;
	unsigned int page, marked = 0;

	ASSERT_TRUE(stay_on_cpu());
	ASSERT_TRUE(make_dirty(m, variant->reason, self->go));
	for (page = 0; page < m->pages; page++)
		marked += (kernel_flags(m->at + bytes(page)) & flag) == flag;
	DID(marked, "pages that reclaim would write to swap");
	EXPECT_EQ(m->pages, marked);
	/* The second call empties the CPU's list of pages that become lazyfree. */
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_FREE));
	for (page = 0; page < m->pages; page++) {
		EXPECT_EQ(0, kernel_flags(m->at + bytes(page)) & (FOLIO_SWAPCACHE | FOLIO_DIRTY)) {
			TH_LOG("page %u", page);
		}
	}
	EXPECT_EQ(m->pages, smaps_pages(m->at, "LazyFree"));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
	EXPECT_EQ(0, swapped_out(m));
	for (page = 0; page < m->pages; page++) {
		EXPECT_TRUE(page_is(m->at + bytes(page), 0)) {
			TH_LOG("page %u", page);
		}
	}
}

TEST_HARNESS_MAIN
