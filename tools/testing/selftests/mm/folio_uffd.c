// SPDX-License-Identifier: GPL-2.0
/*
 * Write protection by userfaultfd for single pages of large folios.
 *
 * Proves: if one page of a folded block is protected, the kernel unfolds the
 * block, and only a write to this page traps. The page keeps its protection in
 * swap and after migration. A page of a shared file also keeps its protection
 * when the page is unmapped and a fault maps the page again.
 * UFFDIO_WRITEPROTECT can remove the protection. mremap() to an address without
 * userfaultfd removes the protection too. A child inherits the protection only
 * if the monitor asked for fork events.
 *
 * Does not prove: that the events of userfaultfd have the right content (the
 * program uffd-unit-tests checks the content).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_uffd
 */
#include <poll.h>
#include <pthread.h>

#include "folio_listen.h"
#include "folio_state.h"

FIXTURE(folio_uffd)
{
	struct memory memory;
	int uffd;
	bool contpte;
};

FIXTURE_VARIANT(folio_uffd)
{
	enum memory_kind kind;
};

FIXTURE_VARIANT_ADD(folio_uffd, anon)
{
	.kind = ANON,
};

FIXTURE_VARIANT_ADD(folio_uffd, shmem)
{
	.kind = SHMEM,
};

FIXTURE_SETUP(folio_uffd)
{
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	self->uffd = -1;
	if (!why)
		why = memory_map(&self->memory, variant->kind, order, 2);
	if (why)
		SKIP(return, "%s", why);
	self->contpte = has_contpte();
	self->uffd = listener(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM);
	if (self->uffd < 0)
		SKIP(return, "no write protection by userfaultfd");
	if (listen_to(self->uffd, self->memory.at, bytes(self->memory.pages)))
		SKIP(return, "no write protection by userfaultfd for this memory");
}

FIXTURE_TEARDOWN(folio_uffd)
{
	if (self->uffd >= 0)
		close(self->uffd);
	memory_free(&self->memory);
}

static void *write_byte(void *address)
{
	char *at = address;

	*at = 0x77;
	return NULL;
}

/*
 * Write to a page in another thread. Returns whether the write trapped. If the
 * write trapped, the function also removes the protection, and the write
 * continues.
 */
static bool traps(int uffd, char *at)
{
	struct pollfd event = { .fd = uffd, .events = POLLIN };
	struct uffd_msg message = {};
	pthread_t thread;
	bool trapped = false;

	pthread_create(&thread, NULL, write_byte, at);
	for (int i = 0; i < 200 && !trapped; i++) {
		if (poll(&event, 1, 10) > 0 &&
		    read(uffd, &message, sizeof(message)) == sizeof(message))
			trapped = message.event == UFFD_EVENT_PAGEFAULT;
		else if (*(unsigned char *)at == 0x77)
			break;
		asm volatile("" : : : "memory");
	}
	if (trapped)
		protect(uffd, (char *)(message.arg.pagefault.address & -bytes(1)), 1, false);
	pthread_join(thread, NULL);
	return trapped;
}

/*
 * Write to each page. The write to @page must trap, and no other write may
 * trap. If @page is -1, no write may trap. All writes take effect.
 */
static void check_traps(struct __test_metadata *_metadata, FIXTURE_DATA(folio_uffd) * self,
			int page)
{
	struct memory *m = &self->memory;

	for (unsigned int i = 0; i < m->pages; i++) {
		char *at = m->at + bytes(i);

		EXPECT_EQ(pattern(i), (unsigned char)*at) {
			TH_LOG("wrong content of page %u", i);
		}
		EXPECT_EQ((int)i == page, traps(self->uffd, at)) {
			TH_LOG("a write to page %u; only page %d is protected (-1: none)", i, page);
		}
		EXPECT_EQ(0x77, *at);
		*at = pattern(i);
	}
}

/*
 * One page of a block is protected: only a write to this page traps. The block
 * is unfolded, and the next block stays folded. The case repeats this for 16
 * pages of the block.
 */
TEST_F_TIMEOUT(folio_uffd, protect_each_page, 120)
{
	struct memory *m = &self->memory;
	unsigned int n = cont_ptes();

	for (unsigned int page = 0; page < n; page += n / 16) {
		ASSERT_EQ(0, protect(self->uffd, m->at + bytes(page), 1, true));
		EXPECT_TRUE(pagemap_has(m->at + bytes(page), PM_UFFD_WP));
		if (self->contpte && perf_tells()) {
			EXPECT_EQ(bytes(1), mapped_size(m->at + bytes(page ? 0 : 1)));
			if (!page)
				EXPECT_EQ(bytes(n), mapped_size(m->at + bytes(n)));
		}
		check_traps(_metadata, self, page);
	}
	if (perf_missing(_metadata, self->contpte))
		SKIP(return, NO_PERF);
}

/*
 * All pages of two folios are protected, and then unprotected. After each call
 * pagemap shows the new state of each page. After the second call, writes do
 * not trap.
 */
TEST_F_TIMEOUT(folio_uffd, unprotect_whole, 120)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, true));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_TRUE(pagemap_has(m->at + bytes(page), PM_UFFD_WP));
	ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, false));
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_FALSE(pagemap_has(m->at + bytes(page), PM_UFFD_WP));
	check_traps(_metadata, self, -1);
}

/*
 * All pages are protected, and then unprotected. In a private mapping, the call
 * that removes the protection also makes the entries writable again, because
 * all pages belong only to this process. So no write costs a fault.
 */
TEST_F(folio_uffd, unprotect_gives_write_back)
{
	struct memory *m = &self->memory;
	long before;

	if (variant->kind != ANON)
		SKIP(return, "needs private memory");
	ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, true));
	ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, false));
	faults_begin(&before);
	for (unsigned int page = 0; page < m->pages; page++)
		m->at[bytes(page)] = 0x77;
	EXPECT_EQ(0, faults() - before);
	for (unsigned int page = 0; page < m->pages; page++)
		EXPECT_EQ(0x77, m->at[bytes(page)]);
	DID(m->pages, "writes");
}

/*
 * Two folios are swapped out and read back, in two rounds. In the first round
 * one page is protected. In the second round all pages except one are
 * protected. No page gets or loses protection in swap, or when it is read back.
 * The second round needs fresh folios: pages that come back from swap are
 * single pages, which reclaim handles one by one. A draft of commit
 * a67fe41e214f ("mm: rmap: support batched unmapping for file large folios")
 * had a bug here. The commit itself unmaps memory with userfaultfd page by
 * page.
 */
TEST_F_TIMEOUT(folio_uffd, pageout, 120)
{
	struct memory *m = &self->memory;
	unsigned int odd = cont_ptes() / 2;
	unsigned long away;

	if (!have_swap())
		SKIP(return, "no swap");
	for (int others = 0; others < 2; others++) {
		memory_free(m);
		ASSERT_EQ(NULL, memory_map(m, variant->kind, order_of(cont_ptes()), 2));
		ASSERT_EQ(0, listen_to(self->uffd, m->at, bytes(m->pages)));
		ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, others));
		ASSERT_EQ(0, protect(self->uffd, m->at + bytes(odd), 1, !others));
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
		away = swapped_out(m);
		DID(away, "pages swapped out");
		/*
		 * Shared memory may stay in the page cache after it is
		 * unmapped.
		 */
		if (variant->kind == ANON)
			EXPECT_EQ(m->pages, away);
		for (unsigned int page = 0; page < m->pages; page++) {
			char *at = m->at + bytes(page);

			EXPECT_FALSE(pagemap_has(at, PM_PRESENT));
			EXPECT_EQ((page == odd) != others, pagemap_has(at, PM_UFFD_WP)) {
				TH_LOG("page %u in swap; page %u differs from the others", page,
				       odd);
			}
			EXPECT_TRUE(page_is(at, pattern(page)));
			EXPECT_EQ((page == odd) != others, pagemap_has(at, PM_UFFD_WP)) {
				TH_LOG("page %u after swap; page %u differs from the others", page,
				       odd);
			}
		}
	}
}

/*
 * Check memory in which no page is mapped. The caller has protected all pages
 * from the middle of the first block to the middle of the second block. If
 * @markers is set, each of these pages has a marker, and is protected again
 * when a fault maps it. Otherwise no page is protected.
 */
static void check_markers(struct __test_metadata *_metadata, const struct memory *m, bool markers)
{
	unsigned int n = cont_ptes();

	for (unsigned int page = 0; page < m->pages; page++) {
		bool kept = markers && page >= n / 2 && page < n / 2 + n;
		char *at = m->at + bytes(page);

		EXPECT_EQ(kept, pagemap_has(at, PM_UFFD_WP)) {
			TH_LOG("page %u while it is not mapped", page);
		}
		EXPECT_TRUE(page_is(at, markers ? pattern(page) : 0));
		EXPECT_EQ(kept, pagemap_has(at, PM_UFFD_WP)) {
			TH_LOG("page %u after it is mapped again", page);
		}
	}
}

/*
 * MADV_DONTNEED leaves a marker for each protected page of a shared file, and
 * the page is protected again when it is mapped again. Anonymous memory loses
 * the protection.
 */
TEST_F(folio_uffd, madvise_dontneed)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(0, protect(self->uffd, m->at + bytes(cont_ptes() / 2), cont_ptes(), true));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_DONTNEED));
	check_markers(_metadata, m, variant->kind == SHMEM);
}

/*
 * The test protects pages while no page is mapped. In shared memory each of
 * these pages gets a marker, and is protected when it is mapped later.
 * Anonymous memory gets no markers, and its pages are not protected later.
 */
TEST_F(folio_uffd, protect_before_fault)
{
	struct memory *m = &self->memory;

	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_DONTNEED));
	ASSERT_EQ(0, protect(self->uffd, m->at + bytes(cont_ptes() / 2), cont_ptes(), true));
	check_markers(_metadata, m, variant->kind == SHMEM);
}

/*
 * One page of a folio is protected. The folio moves to another node and back.
 * Each move changes its frames. After that, only a write to the protected page
 * traps.
 */
TEST_F_TIMEOUT(folio_uffd, migrate, 120)
{
	struct memory *m = &self->memory;
	unsigned int page = cont_ptes() / 2;
	char *at = m->at + bytes(page);
	unsigned long moves = 0;
	int node = move_page(at, NULL);

	ASSERT_EQ(0, protect(self->uffd, at, 1, true));
	for (int i = 0; i < 2; i++, node = !node) {
		unsigned long before = pfn_of(at);
		int to = !node;

		if (move_page(at, &to) == -ENODEV)
			SKIP(return, "needs two NUMA nodes");
		EXPECT_EQ(!node, move_page(at, NULL));
		moves += pfn_of(at) != before;
		EXPECT_TRUE(pagemap_has(at, PM_UFFD_WP));
	}
	DID(moves, "moves of the folio");
	check_traps(_metadata, self, page);
}

/*
 * mremap() moves protected memory to an address without userfaultfd. pagemap
 * then shows no page as protected. Each page keeps its content, and can be
 * written to. Commit 0cef0bb836e3 ("mm: clear uffd-wp PTE/PMD state on
 * mremap()") fixed a bug here.
 */
TEST_F(folio_uffd, mremap)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);
	char *to;

	ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, true));
	for (unsigned int page = 0; page < m->pages; page++)
		ASSERT_TRUE(pagemap_has(m->at + bytes(page), PM_UFFD_WP));
	to = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(to, mremap(m->at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = to + bytes(page);

		EXPECT_FALSE(pagemap_has(at, PM_UFFD_WP)) {
			TH_LOG("page %u is still protected", page);
		}
		EXPECT_TRUE(page_is(at, pattern(page)));
		EXPECT_EQ(0, try_access(at, true));
	}
	munmap(to, length);
}

/*
 * One page is protected, and the monitor did not ask for fork events. A child
 * inherits no protection, and its writes do not trap. In shared memory the
 * child writes the values that the pages already have. A write by the parent to
 * the protected page still traps.
 */
TEST_F_TIMEOUT(folio_uffd, fork, 120)
{
	struct memory *m = &self->memory;
	unsigned int page = cont_ptes() / 2;
	pid_t child;

	ASSERT_EQ(0, protect(self->uffd, m->at + bytes(page), 1, true));
	child = fork();
	if (!child) {
		for (unsigned int i = 0; i < m->pages; i++) {
			char *at = m->at + bytes(i);

			if (pagemap_has(at, PM_UFFD_WP))
				_exit(1);
			if (!page_is(at, pattern(i)))
				_exit(2);
			*at = variant->kind == ANON ? 0 : pattern(i);
		}
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child)) {
		TH_LOG("status 1: a page is protected in the child; 2: wrong content");
	}
	check_traps(_metadata, self, page);
}

/*
 * The data of the monitor thread. The thread reads the fork event of a child,
 * and lets the child's trapped writes continue.
 */
struct forked {
	int uffd;		/* the parent's userfaultfd */
	int child;		/* the child's userfaultfd, or -1 */
	unsigned long traps;	/* writes by the child that trapped */
	unsigned long at;	/* the page of the last such write */
};

/*
 * fork() waits until this thread reads the fork event. Each trapped write waits
 * until this thread removes the protection.
 */
static void *listen_to_child(void *argument)
{
	struct forked *f = argument;
	struct uffd_msg message;

	for (;;) {
		struct pollfd events[] = {
			{ .fd = f->uffd, .events = POLLIN },
			{ .fd = f->child, .events = POLLIN },
		};

		if (poll(events, 2, 10000) <= 0)
			return NULL;
		if (f->child < 0) {
			if (read(f->uffd, &message, sizeof(message)) == sizeof(message) &&
			    message.event == UFFD_EVENT_FORK)
				f->child = message.arg.fork.ufd;
			continue;
		}
		if (events[1].revents & POLLHUP)
			return NULL;
		if (read(f->child, &message, sizeof(message)) != sizeof(message)) {
			if (events[1].revents & POLLERR)
				return NULL;
			continue;
		}
		f->traps++;
		f->at = message.arg.pagefault.address & -bytes(1);
		if (protect(f->child, (char *)f->at, 1, false))
			return NULL;
	}
}

/*
 * A child calls this function before it touches any page. The function checks
 * that fork() copied all entries, and then writes to each page. Returns 0, or
 * the number of the check that failed.
 */
static int look_and_write(const struct memory *m, const unsigned long *frames, unsigned int page)
{
	for (unsigned int i = 0; i < m->pages; i++) {
		const char *at = m->at + bytes(i);
		bool on = i == page;

		if (!pagemap_has(at, PM_PRESENT) || pfn_of(at) != frames[i])
			return 1;
		if (pagemap_has(at, PM_UFFD_WP) != on)
			return 2;
	}
	if (smaps_pages(m->at, "Rss") != m->pages)
		return 3;
	for (unsigned int i = 0; i < m->pages; i++) {
		if (!page_is(m->at + bytes(i), pattern(i)))
			return 4;
		m->at[bytes(i)] = pattern(i);
	}
	return 0;
}

/*
 * The monitor asks for fork events, and one page is protected. fork() then
 * copies all entries, including the entries of a shared file. So the child has
 * these entries before it touches any page, and Rss counts their pages. The
 * page is protected in the child too, so exactly one write by the child traps.
 * In shared memory, the parent's other entries stay writable.
 */
TEST_F_TIMEOUT(folio_uffd, fork_with_event, 120)
{
	struct memory *m = &self->memory;
	unsigned int page = cont_ptes() / 2;
	struct forked forked = { .child = -1 };
	unsigned long frames[2 * cont_ptes()];
	char *at = m->at + bytes(page);
	pthread_t thread;
	long before;
	pid_t child;

	close(self->uffd);
	self->uffd = listener(UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
			      UFFD_FEATURE_EVENT_FORK);
	if (self->uffd < 0)
		SKIP(return, "userfaultfd has no fork events");
	ASSERT_EQ(0, listen_to(self->uffd, m->at, bytes(m->pages)));
	/*
	 * After the first userfaultfd was closed, all entries were read-only.
	 * So write to each page.
	 */
	for (unsigned int i = 0; i < m->pages; i++) {
		m->at[bytes(i)] = pattern(i);
		frames[i] = pfn_of(m->at + bytes(i));
	}
	ASSERT_EQ(0, protect(self->uffd, at, 1, true));
	forked.uffd = self->uffd;
	ASSERT_EQ(0, pthread_create(&thread, NULL, listen_to_child, &forked));
	child = fork();
	if (!child)
		_exit(look_and_write(m, frames, page));
	EXPECT_EQ(0, child_of(child)) {
		TH_LOG("status 1: not copied; 2: wrong protection; 3: wrong Rss; 4: wrong content");
	}
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	DID(forked.traps, "writes by the child that trapped");
	EXPECT_EQ(1, forked.traps);
	EXPECT_EQ((unsigned long)at, forked.at);
	EXPECT_TRUE(pagemap_has(at, PM_UFFD_WP));
	close(forked.child);
	/* fork() did not write-protect shared memory. */
	faults_begin(&before);
	for (unsigned int i = 0; i < page && variant->kind == SHMEM; i++)
		m->at[bytes(i)] = pattern(i);
	EXPECT_EQ(0, faults() - before);
	check_traps(_metadata, self, page);
}

/*
 * The second page of a folio is protected, and the folio is split. After the
 * split only a write to this page traps.
 */
TEST_F_TIMEOUT(folio_uffd, split_folio, 120)
{
	struct memory *m = &self->memory;
	unsigned int page = cont_ptes() + 1;

	ASSERT_EQ(0, protect(self->uffd, m->at + bytes(page), 1, true));
	if (!split_folios(m))
		SKIP(return, "no debugfs, or the kernel cannot split these folios");
	EXPECT_FALSE(is_folio(m, page - 1));
	check_traps(_metadata, self, page);
}

/*
 * When the kernel splits a folio, it replaces pages of zeros by the zero page.
 * All pages are zero here, and all pages except one are protected. After the
 * split all pages have the same frame, and the same pages are protected as
 * before. A write to a protected page traps, and a write to the unprotected
 * page does not. Commit 9658d698a8a8 ("mm/rmap: fix soft-dirty and uffd-wp bit
 * loss when remapping zero-filled mTHP subpage to shared zeropage") fixed a bug
 * here.
 */
TEST_F_TIMEOUT(folio_uffd, split_folio_of_zeros, 120)
{
	struct memory *m = &self->memory;
	unsigned int odd = cont_ptes() / 2;
	unsigned long zero;

	if (variant->kind != ANON)
		SKIP(return, "only anonymous memory gets the zero page");
	memset(m->at, 0, bytes(m->pages));
	ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, true));
	ASSERT_EQ(0, protect(self->uffd, m->at + bytes(odd), 1, false));
	if (!split_folios(m))
		SKIP(return, "no debugfs, or the kernel cannot split these folios");
	zero = pfn_of(m->at);
	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);

		EXPECT_EQ(zero, pfn_of(at));
		EXPECT_EQ(page != odd, pagemap_has(at, PM_UFFD_WP)) {
			TH_LOG("page %u; all pages except page %u must be protected", page, odd);
		}
		EXPECT_TRUE(page_is(at, 0));
		EXPECT_EQ(page != odd, traps(self->uffd, at)) {
			TH_LOG("unexpected trap, or no trap, at page %u", page);
		}
	}
}

TEST_HARNESS_MAIN
