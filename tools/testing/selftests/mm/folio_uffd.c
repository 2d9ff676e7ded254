// SPDX-License-Identifier: GPL-2.0
/*
 * Write protection by userfaultfd, page by page, of memory in large folios.
 *
 * Proves: one protected page of a folded block traps a write, its neighbours
 * do not; the block folds no longer; the protection stays with the page through
 * swap, migration and unmapping of a shared file, goes with the unprotection,
 * with mremap() to where nobody listens, and into a child only if it listens.
 *
 * Does not prove: what the events say (uffd-unit-tests does).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_uffd
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>

#include "folio_util.h"

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

/* Listen to write protection of a range; 0, or -errno. */
static int listen_to(int uffd, char *at, size_t length)
{
	struct uffdio_register arguments = {
		.range = { (unsigned long)at, length },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(uffd, UFFDIO_REGISTER, &arguments) ? -errno : 0;
}

static int protect(int uffd, char *at, unsigned int pages, bool on)
{
	struct uffdio_writeprotect arguments = {
		.range = { (unsigned long)at, bytes(pages) },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(uffd, UFFDIO_WRITEPROTECT, &arguments) ? -errno : 0;
}

FIXTURE_SETUP(folio_uffd)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
	};
	int order = order_of(cont_ptes());
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	self->uffd = -1;
	if (!why)
		why = memory_map(&self->memory, variant->kind, order, 2);
	if (why)
		SKIP(return, "%s", why);
	self->contpte = has_contpte();
	self->uffd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (self->uffd < 0 || ioctl(self->uffd, UFFDIO_API, &api))
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
 * Write to a page; whether that trapped. A trapped write is let go by taking
 * the protection away, and is done then.
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

/* Just @page traps, of all pages; every write is done in the end. */
static void check_traps(struct __test_metadata *_metadata, FIXTURE_DATA(folio_uffd) * self,
			int page)
{
	struct memory *m = &self->memory;

	for (unsigned int i = 0; i < m->pages; i++) {
		char *at = m->at + bytes(i);

		EXPECT_EQ(pattern(i), (unsigned char)*at) {
			TH_LOG("content of page %u", i);
		}
		EXPECT_EQ((int)i == page, traps(self->uffd, at)) {
			TH_LOG("page %u traps or not, page %d is protected", i, page);
		}
		EXPECT_EQ(0x77, *at);
		*at = pattern(i);
	}
}

/* [contpte 220] Each page of a block alone: only that one traps. */
TEST_F_TIMEOUT(folio_uffd, protect_each_page, 120)
{
	struct memory *m = &self->memory;
	unsigned int n = cont_ptes();

	for (unsigned int page = 0; page < n; page += n / 16) {
		ASSERT_EQ(0, protect(self->uffd, m->at + bytes(page), 1, true));
		EXPECT_TRUE(pagemap_has(m->at + bytes(page), PM_UFFD_WP));
		if (self->contpte && mapped_size(m->at)) {
			EXPECT_EQ(bytes(1), mapped_size(m->at + bytes(page ? 0 : 1)));
			if (!page)
				EXPECT_EQ(bytes(n), mapped_size(m->at + bytes(n)));
		}
		check_traps(_metadata, self, page);
	}
}

/* [contpte 220] Protected as a whole and unprotected: nothing traps. */
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
 * [contpte 198] [bug B26] Whole folios are swapped out with one page of them
 * protected, and fresh ones with all but one: each page comes back as it was.
 * What comes back is single pages, and no batch when it goes the next time.
 */
TEST_F_TIMEOUT(folio_uffd, pageout, 120)
{
	struct memory *m = &self->memory;
	unsigned int odd = cont_ptes() / 2;

	if (!have_swap())
		SKIP(return, "no swap");
	for (int others = 0; others < 2; others++) {
		memory_free(m);
		ASSERT_EQ(NULL, memory_map(m, variant->kind, order_of(cont_ptes()), 2));
		ASSERT_EQ(0, listen_to(self->uffd, m->at, bytes(m->pages)));
		ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, others));
		ASSERT_EQ(0, protect(self->uffd, m->at + bytes(odd), 1, !others));
		ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_PAGEOUT));
		for (unsigned int page = 0; page < m->pages; page++) {
			char *at = m->at + bytes(page);

			EXPECT_EQ((page == odd) != others, pagemap_has(at, PM_UFFD_WP)) {
				TH_LOG("page %u in swap, page %u is the odd one", page, odd);
			}
			EXPECT_TRUE(page_is(at, pattern(page)));
			EXPECT_EQ((page == odd) != others, pagemap_has(at, PM_UFFD_WP)) {
				TH_LOG("page %u back, page %u is the odd one", page, odd);
			}
		}
	}
}

/*
 * [contpte 198] MADV_DONTNEED of a shared file: protection stays as a marker
 * for each of the pages, and is there when they come back. Of anonymous memory
 * nothing stays.
 */
TEST_F(folio_uffd, madvise_dontneed)
{
	struct memory *m = &self->memory;
	unsigned int n = cont_ptes();

	ASSERT_EQ(0, protect(self->uffd, m->at + bytes(n / 2), n, true));
	ASSERT_EQ(0, madvise(m->at, bytes(m->pages), MADV_DONTNEED));
	for (unsigned int page = 0; page < m->pages; page++) {
		bool kept = variant->kind == SHMEM && page >= n / 2 && page < n / 2 + n;
		char *at = m->at + bytes(page);

		EXPECT_EQ(kept, pagemap_has(at, PM_UFFD_WP)) {
			TH_LOG("page %u while it is gone", page);
		}
		EXPECT_TRUE(page_is(at, variant->kind == SHMEM ? pattern(page) : 0));
		EXPECT_EQ(kept, pagemap_has(at, PM_UFFD_WP)) {
			TH_LOG("page %u when it is back", page);
		}
	}
}

/* [contpte 228] Migration keeps the protection of one page in a folio. */
TEST_F_TIMEOUT(folio_uffd, migrate, 120)
{
	struct memory *m = &self->memory;
	unsigned int page = cont_ptes() / 2;
	int status, node = 0;
	char *at = m->at;

	ASSERT_EQ(0, protect(self->uffd, m->at + bytes(page), 1, true));
	for (node = 0; node < 2; node++) {
		if (syscall(__NR_move_pages, 0, 1L, &at, &node, &status, MPOL_MF_MOVE) ||
		    status == -ENODEV)
			SKIP(return, "needs two NUMA nodes");
	}
	check_traps(_metadata, self, page);
}

/*
 * [bug B22] Moved to where nobody listens, memory is not protected any more,
 * nor does it say so; content is there, and can be written to.
 */
TEST_F(folio_uffd, mremap)
{
	struct memory *m = &self->memory;
	size_t length = bytes(m->pages);
	char *to;

	ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, true));
	to = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(to, mremap(m->at, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = to + bytes(page);

		EXPECT_FALSE(pagemap_has(at, PM_UFFD_WP)) {
			TH_LOG("page %u", page);
		}
		EXPECT_TRUE(page_is(at, pattern(page)));
		EXPECT_EQ(0, try_access(at, true));
	}
	munmap(to, length);
}

/*
 * [contpte 179] A child that does not listen inherits no protection: its
 * writes go through, and the parent's are still trapped.
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
			if (variant->kind == ANON)
				*at = 0;
		}
		_exit(0);
	}
	EXPECT_EQ(0, child_of(child)) {
		TH_LOG("1 protected in the child, 2 wrong content");
	}
	check_traps(_metadata, self, page);
}

/* [contpte 220] Splitting the folio keeps the protection of its pages. */
TEST_F_TIMEOUT(folio_uffd, split_folio, 120)
{
	struct memory *m = &self->memory;
	unsigned int page = cont_ptes() + 1;

	ASSERT_EQ(0, protect(self->uffd, m->at + bytes(page), 1, true));
	if (!split_folios(m))
		SKIP(return, "no debugfs, or cannot be split");
	check_traps(_metadata, self, page);
}

/*
 * [bug B30] A page of zeros is replaced by the zero page when its folio is
 * split, and is protected all the same; here all but one are.
 */
TEST_F_TIMEOUT(folio_uffd, split_folio_of_zeros, 120)
{
	struct memory *m = &self->memory;
	unsigned int odd = cont_ptes() / 2;

	if (variant->kind != ANON)
		SKIP(return, "only anonymous memory gets the zero page");
	memset(m->at, 0, bytes(m->pages));
	ASSERT_EQ(0, protect(self->uffd, m->at, m->pages, true));
	ASSERT_EQ(0, protect(self->uffd, m->at + bytes(odd), 1, false));
	if (!split_folios(m))
		SKIP(return, "no debugfs, or cannot be split");
	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);

		EXPECT_EQ(page != odd, pagemap_has(at, PM_UFFD_WP)) {
			TH_LOG("page %u, all but page %u are protected", page, odd);
		}
		EXPECT_TRUE(page_is(at, 0));
		EXPECT_EQ(page != odd, traps(self->uffd, at)) {
			TH_LOG("page %u traps or not", page);
		}
	}
}

TEST_HARNESS_MAIN
