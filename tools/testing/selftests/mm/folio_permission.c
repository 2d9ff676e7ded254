// SPDX-License-Identifier: GPL-2.0
/*
 * Writable pages and read-only pages in one folio.
 *
 * Proves: each page of a folio keeps its own permission, although the kernel
 * may handle all pages of the folio in one batch. The parent shares some of
 * these pages with a child, and owns the others alone. A shared page stays
 * write-protected, even next to a writable page. A write to a page that the
 * parent alone owns costs no fault. The kernel does not treat the entries of
 * PROT_NONE pages as a folded block. So when the test marks the folio of these
 * pages as idle, neighbouring entries that map other memory do not become old.
 *
 * Does not prove: which entries are in which batch (KUnit: vma_split).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_permission
 */
#include "folio_state.h"
#include "folio_util.h"

#define FOLIOS 2

FIXTURE(folio_permission)
{
	struct memory memory;
};

FIXTURE_VARIANT(folio_permission)
{
	int order;	/* added to the order of a block */
};

FIXTURE_VARIANT_ADD(folio_permission, block)
{
	.order = 0,
};

FIXTURE_VARIANT_ADD(folio_permission, two_blocks)
{
	.order = 1,
};

FIXTURE_SETUP(folio_permission)
{
	int order = order_of(cont_ptes()) + variant->order;
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	if (!why)
		why = memory_map(&self->memory, ANON, order, FOLIOS);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(folio_permission)
{
	memory_free(&self->memory);
}

/*
 * In a child: wait until @go is closed, then check all pages except page @own.
 * The child did not inherit this page. If @own is -1, the child inherited all
 * pages. Returns 0 if all these pages are unchanged, 1 if not, 2 on failure.
 */
static int child_that_waits(const struct memory *m, int go[2], int own)
{
	char byte;

	close(go[1]);
	if (read(go[0], &byte, 1))
		return 2;
	for (unsigned int page = 0; page < m->pages; page++)
		if ((int)page != own && !page_is(m->at + bytes(page), pattern(page)))
			return 1;
	return 0;
}

/*
 * A first fork() makes all pages read-only, and the child exits. The parent
 * writes to one page in the middle, so only this page is writable. Then the
 * parent forks a second child and writes to all pages. The child must not see
 * these writes. So fork() must write-protect the writable entry, even if the
 * batch that contains this entry begins with a read-only entry.
 */
TEST_F(folio_permission, first_readonly_later_writable)
{
	struct memory *m = &self->memory;
	unsigned int page = m->pages / FOLIOS / 2;
	char *at = m->at + bytes(page);
	int go[2];
	pid_t child = fork();

	if (!child)
		_exit(0);
	EXPECT_EQ(0, child_of(child));
	*at = pattern(page);
	ASSERT_EQ(0, pipe(go));
	child = fork();
	if (!child)
		_exit(child_that_waits(m, go, -1));
	memset(m->at, 0, bytes(m->pages));
	close(go[0]);
	close(go[1]);
	EXPECT_EQ(0, child_of(child));
}

/*
 * A child inherits all pages except one, which stays the parent's own page.
 * mprotect() makes all pages read-only and then writable again, in one batch
 * per folio. Then the parent writes to all pages, and the child must not see
 * these writes. The case tries 16 positions of the parent's own page. Commit
 * cf1b80dc31a1 ("mm: pass page directly instead of using folio_page") fixed a
 * bug here.
 */
TEST_F_TIMEOUT(folio_permission, mprotect_beside_own_page, 120)
{
	unsigned int order = self->memory.order, pages = self->memory.pages;
	struct memory *m = &self->memory;
	int go[2];

	for (unsigned int own = 0; own < pages; own += pages / 16) {
		pid_t child;

		memory_free(m);
		ASSERT_EQ(NULL, memory_map(m, ANON, order, pages >> order));
		ASSERT_EQ(0, madvise(m->at + bytes(own), bytes(1), MADV_DONTFORK));
		ASSERT_EQ(0, pipe(go));
		child = fork();
		if (!child)
			_exit(child_that_waits(m, go, own));
		ASSERT_EQ(0, madvise(m->at + bytes(own), bytes(1), MADV_DOFORK));
		ASSERT_EQ(0, mprotect(m->at, bytes(pages), PROT_READ));
		ASSERT_EQ(0, mprotect(m->at, bytes(pages), PROT_READ | PROT_WRITE));
		for (unsigned int page = 0; page < pages; page++)
			memset(m->at + bytes(page), pattern(page) ^ 0x80, bytes(1));
		close(go[0]);
		close(go[1]);
		ASSERT_EQ(0, child_of(child)) {
			TH_LOG("page %u is the parent's own; status 1: the child saw a write", own);
		}
	}
}

/*
 * One page in the middle of a folio is writable, the others are read-only, and
 * mremap() moves them all. After the move, a write to the writable page costs
 * no fault, and a write to each of the remaining pages costs one fault. So no
 * page got the permission of its neighbour.
 */
TEST_F(folio_permission, mremap_keeps_permission)
{
	struct memory *m = &self->memory;
	unsigned int writable = m->pages / FOLIOS / 2;
	size_t length = bytes(m->pages);
	pid_t child = fork();
	char *to;

	if (!child)
		_exit(0);
	EXPECT_EQ(0, child_of(child));
	m->at[bytes(writable)] = pattern(writable);
	to = mmap(NULL, 2 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = (char *)(((unsigned long)to + length - 1) & -length);
	ASSERT_EQ(to, mremap(m->at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	for (unsigned int page = 0; page < m->pages; page++) {
		long before;

		faults_begin(&before);
		to[bytes(page)] = pattern(page);
		EXPECT_EQ(page != writable, faults() - before) {
			TH_LOG("wrong faults at page %u; only page %u is writable", page, writable);
		}
		EXPECT_TRUE(page_is(to + bytes(page), pattern(page)));
	}
	munmap(to, length);
}

/* The number of pages in the VMA that begins at @page. */
static long vma_pages(const struct memory *m, unsigned int page)
{
	return smaps_pages(m->at + bytes(page), "Size");
}

/*
 * A folio has two folded blocks. MADV_DONTFORK keeps one block out of fork(),
 * so a child shares only the other block. MADV_DOFORK then puts both blocks
 * into one VMA again. The parent moves both blocks in one call of mremap(). One
 * batch can reach from the first block into the second. The batch must not give
 * the permission of its first entry to all entries. Otherwise a write would
 * reach the child, or a page would lose its write permission and cost a fault.
 *
 *	|<-- the parent's own, writable -->|<-- shared, read-only -->|
 */
TEST_F(folio_permission, mremap_of_two_blocks)
{
	struct memory *m = &self->memory;
	unsigned int nr = 2 * cont_ptes(), half = nr / 2;
	bool looks = has_contpte() && perf_tells();
	size_t length = bytes(nr);
	const char *why;

	memory_free(m);
	why = folio_settings(order_of(nr));
	if (why)
		SKIP(return, "%s", why);
	for (unsigned int own = 0; own < nr; own += half) {
		char *to, *other;
		long before;
		int go[2];
		pid_t child;

		ASSERT_EQ(NULL, memory_map(m, ANON, order_of(nr), 1));
		ASSERT_EQ(0, madvise(m->at + bytes(own), bytes(half), MADV_DONTFORK));
		ASSERT_EQ(0, pipe(go));
		child = fork();
		if (!child) {
			char byte;

			close(go[1]);
			if (read(go[0], &byte, 1))
				_exit(2);
			for (unsigned int i = half - own; i < nr - own; i++)
				if (!page_is(m->at + bytes(i), pattern(i)))
					_exit(1);
			_exit(0);
		}
		ASSERT_EQ(0, madvise(m->at + bytes(own), bytes(half), MADV_DOFORK));
		ASSERT_EQ(nr, vma_pages(m, 0)) {
			TH_LOG("two VMAs: no batch can reach from one block into the other");
		}
		for (unsigned int page = 0; page < nr && looks; page += half) {
			ASSERT_TRUE(folded(m, page)) {
				TH_LOG("page %u is in no folded block", page);
			}
		}

		to = mmap(NULL, 2 * length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, to);
		to = (char *)(((unsigned long)to + length - 1) & -length);
		ASSERT_EQ(to, mremap(m->at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));

		other = to + bytes(half - own);
		faults_begin(&before);
		for (unsigned int page = 0; page < half; page++)
			to[bytes(own + page)] = pattern(own + page);
		EXPECT_EQ(0, faults() - before) {
			TH_LOG("the parent's own pages begin at page %u; a write faulted", own);
		}
		for (unsigned int page = 0; page < half; page++)
			memset(other + bytes(page), 0xee, bytes(1));
		close(go[0]);
		close(go[1]);
		EXPECT_EQ(0, child_of(child)) {
			TH_LOG("parent's own pages: from %u on; status 1: the child saw a write",
			       own);
		}
		munmap(to, length);
		memory_free(m);
	}
	if (perf_missing(_metadata, has_contpte()))
		SKIP(return, NO_PERF);
}

/*
 * If @set is true, mark the page at address @at as idle. Otherwise read the
 * page's idle bit. Returns the idle bit, or -1 on failure.
 */
static int idle_bit(const char *at, bool set)
{
	int fd = open("/sys/kernel/mm/page_idle/bitmap", O_RDWR);
	unsigned long pfn = pfn_of(at);
	uint64_t bits = 1ULL << pfn % 64;
	ssize_t done;

	done = set ? pwrite(fd, &bits, 8, pfn / 64 * 8) : pread(fd, &bits, 8, pfn / 64 * 8);
	close(fd);
	return done == 8 ? bits >> pfn % 64 & 1 : -1;
}

/*
 * All pages of a folio become PROT_NONE. The test replaces the second half of
 * the folio's first block by a mapping of other memory. Then the test marks the
 * folio as idle. The kernel must clear the accessed bits in the entries of the
 * folio, and in no other entries, so "Referenced" of smaps still counts the
 * other memory.
 *
 *	|<-- the folio, PROT_NONE -->|<-- other pages, in use -->|
 */
TEST_F(folio_permission, idle_beside_none)
{
	struct memory *m = &self->memory;
	unsigned int half = cont_ptes() / 2;
	char *other = m->at + bytes(half);
	const char *why;
	long used;

	if (access("/sys/kernel/mm/page_idle/bitmap", W_OK))
		SKIP(return, "CONFIG_IDLE_PAGE_TRACKING=n");
	ASSERT_EQ(0, mprotect(m->at, bytes(m->pages), PROT_NONE));
	why = folio_settings(0);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(other, mmap(other, bytes(half), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	for (unsigned int page = 0; page < half; page++)
		memset(other + bytes(page), pattern(page), bytes(1));
	ASSERT_EQ(half, smaps_pages(other, "Referenced"));

	ASSERT_EQ(1, idle_bit(m->at, true));
	used = smaps_pages(other, "Referenced");
	EXPECT_EQ(1, idle_bit(m->at, false)) {
		TH_LOG("the folio is not idle");
	}
	if (!used)
		KNOWN_ISSUE(22, "an idle PROT_NONE folio makes pages next to it old");
	else
		EXPECT_EQ(half, used);
	if (used && has_contpte())
		STALE_ISSUE(22);
	for (unsigned int page = 0; page < half; page++)
		EXPECT_TRUE(page_is(other + bytes(page), pattern(page)));
}

FIXTURE(never_written)
{
	char *at;
	int fd;
};

FIXTURE_VARIANT(never_written)
{
	bool file;
};

/* In anonymous memory, each entry maps the zero page. */
FIXTURE_VARIANT_ADD(never_written, anon)
{
	.file = false,
};

/*
 * In a private mapping of a memory file, each entry maps a page of the page
 * cache.
 */
FIXTURE_VARIANT_ADD(never_written, file)
{
	.file = true,
};

FIXTURE_SETUP(never_written)
{
	int flags = MAP_PRIVATE | (variant->file ? 0 : MAP_ANONYMOUS);
	unsigned int pages = cont_ptes();
	const char *why = folio_settings(0);

	self->at = MAP_FAILED;
	self->fd = -1;
	if (why)
		SKIP(return, "%s", why);
	if (variant->file) {
		self->fd = memory_file(SHMEM, pages);
		ASSERT_LE(0, self->fd);
	}
	self->at = mmap(NULL, bytes(pages), PROT_READ | PROT_WRITE, flags, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->at);
}

FIXTURE_TEARDOWN(never_written)
{
	if (self->at != MAP_FAILED)
		munmap(self->at, bytes(cont_ptes()));
	if (self->fd >= 0)
		close(self->fd);
}

/*
 * The process has read its private memory, but has not written to it. So the
 * process has no frames of its own in this memory. mprotect() makes the memory
 * read-only and then writable again. Each write must still copy the page that
 * it writes to, so the other pages and the file stay zero.
 */
TEST_F(never_written, mprotect)
{
	unsigned int pages = cont_ptes(), copies = 0;
	char *at = self->at, *content = malloc(bytes(1));

	ASSERT_NE(NULL, content);
	for (unsigned int page = 0; page < pages; page++)
		read_byte(at + bytes(page));
	ASSERT_EQ(0, mprotect(at, bytes(pages), PROT_READ));
	ASSERT_EQ(0, mprotect(at, bytes(pages), PROT_READ | PROT_WRITE));
	for (unsigned int page = 0; page < pages; page++) {
		unsigned long before = pfn_of(at + bytes(page));

		EXPECT_TRUE(page_is(at + bytes(page), 0));
		memset(at + bytes(page), pattern(page), bytes(1));
		copies += pfn_of(at + bytes(page)) != before;
	}
	EXPECT_EQ(pages, copies);
	for (unsigned int page = 0; page < pages; page++) {
		EXPECT_TRUE(page_is(at + bytes(page), pattern(page)));
		if (!variant->file)
			continue;
		ASSERT_EQ(psize(), pread(self->fd, content, psize(), bytes(page)));
		EXPECT_TRUE(page_is(content, 0));
	}
	DID(copies, "pages copied");
	free(content);
}

TEST_HARNESS_MAIN
