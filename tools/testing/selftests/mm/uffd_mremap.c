// SPDX-License-Identifier: GPL-2.0
/*
 * userfaultfd still watches the pages of a registered range after mremap()
 * moves another page next to this range.
 *
 * Proves: without UFFD_FEATURE_EVENT_REMAP, mremap() removes the registration
 * of the page that it moves, and does not remove the registration of any other
 * page. This holds for pages that are missing and for pages that are protected
 * against writes, wherever the moved page goes.
 *
 * How: a range of 16 pages is registered. mremap() moves one of them over another page of the
 * range, or right before the range, or right after the range. At these places the kernel may merge
 * the moved page with its neighbours into one mapping, because no page of the range was ever
 * mapped. Then each page is touched. With UFFD_FEATURE_SIGBUS an access to a watched page raises
 * SIGBUS. As a control the page moves to a place without a registered neighbour. In another variant
 * a page of the range was mapped before, so that the kernel cannot merge.
 *
 * Does not prove: that a monitor gets the right events (uffd-unit-tests checks
 * this).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=uffd_mremap
 */
#include <setjmp.h>
#include <signal.h>

#include "folio_listen.h"

#define PAGES 16
#define ALL ((1U << PAGES) - 1)
/* The page that moves. */
#define SOURCE 10

FIXTURE(uffd_mremap)
{
	char *area;
	char *at;
	int uffd;
};

/*
 * @to: where the page goes, in pages from the start of the range
 * @merges: whether a kernel with known issue 28 loses the registration
 * @mapped: whether a page of the range was mapped before
 */
FIXTURE_VARIANT(uffd_mremap)
{
	int to;
	bool merges;
	bool mapped;
};

FIXTURE_VARIANT_ADD(uffd_mremap, inside)
{
	.to = 4,
	.merges = true,
};

/* Linux 6.12 loses no registration in this variant. */
FIXTURE_VARIANT_ADD(uffd_mremap, before)
{
	.to = -1,
};

FIXTURE_VARIANT_ADD(uffd_mremap, after)
{
	.to = PAGES,
	.merges = true,
};

/*
 * A control variant: a page that is not registered lies between the moved
 * page and the range.
 */
FIXTURE_VARIANT_ADD(uffd_mremap, apart)
{
	.to = -2,
};

/*
 * A control variant: the range has an anon_vma, so the offset of the moved
 * page does not change.
 */
FIXTURE_VARIANT_ADD(uffd_mremap, mapped)
{
	.to = 4,
	.mapped = true,
};

FIXTURE_SETUP(uffd_mremap)
{
	self->area = mmap(NULL, bytes(PAGES + 4), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->area);
	self->at = self->area + bytes(2);
	ASSERT_EQ(self->at, mmap(self->at, bytes(PAGES), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	if (variant->mapped) {
		*self->at = 1;
		ASSERT_EQ(0, madvise(self->at, bytes(PAGES), MADV_DONTNEED));
	}
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_WP_UNPOPULATED);
	if (self->uffd < 0)
		SKIP(return, "userfaultfd cannot raise SIGBUS, or cannot protect missing pages");
}

FIXTURE_TEARDOWN(uffd_mremap)
{
	if (self->uffd >= 0)
		close(self->uffd);
	munmap(self->area, bytes(PAGES + 4));
}

static sigjmp_buf back;

static void on_sigbus(int signal)
{
	siglongjmp(back, signal);
}

/* Whether a read or a write of a page raises SIGBUS. */
static bool traps(char *at, bool write)
{
	if (sigsetjmp(back, 1))
		return true;
	if (write)
		memset(at, 1, 1);
	read_byte(at);
	return false;
}

/*
 * A bit mask of the pages of the range that trap: bit N stands for page N. The bits of the pages in
 * @without are 0.
 */
static unsigned int watched(FIXTURE_DATA(uffd_mremap) * self, bool write, unsigned int without)
{
	unsigned int found = 0;

	signal(SIGBUS, on_sigbus);
	for (unsigned int page = 0; page < PAGES; page++)
		if (!(without & 1U << page) && traps(self->at + bytes(page), write))
			found |= 1U << page;
	signal(SIGBUS, SIG_DFL);
	return found;
}

/*
 * Move the page. Returns -1 if all pages that did not move are still watched.
 * Otherwise returns a bit mask of the pages that are still watched: bit N
 * stands for page N.
 */
static int move_and_look(struct __test_metadata *_metadata, FIXTURE_DATA(uffd_mremap) * self,
			 int page, bool write)
{
	char *to = self->at + bytes(page);
	unsigned int gone = 1U << SOURCE, left;

	if (page >= 0 && page < PAGES)
		gone |= 1U << page;
	ASSERT_EQ(to, mremap(self->at + bytes(SOURCE), bytes(1), bytes(1),
			     MREMAP_MAYMOVE | MREMAP_FIXED, to));
	left = watched(self, write, gone);
	signal(SIGBUS, on_sigbus);
	EXPECT_FALSE(traps(to, write)) {
		TH_LOG("the moved page is still registered");
	}
	signal(SIGBUS, SIG_DFL);
	TH_LOG("did %d checks of pages that did not move", PAGES - __builtin_popcount(gone));
	return left == (ALL & ~gone) ? -1 : left;
}

/*
 * Judge what move_and_look() returned. Known issue 28: no page is watched any
 * more.
 */
static void judge(struct __test_metadata *_metadata, const FIXTURE_VARIANT(uffd_mremap) * variant,
		  int left)
{
	if (variant->merges && !left) {
		KNOWN_ISSUE(28, "mremap() of one page takes the registration of all pages");
		return;
	}
	EXPECT_EQ(-1, left);
	if (variant->merges)
		STALE_ISSUE(28);
}

/*
 * All pages are missing. Before mremap(), a read of each page traps.
 * Afterwards, a read traps at each page that did not move. Known issue 28: the
 * reads after mremap() do not trap.
 */
TEST_F(uffd_mremap, missing_neighbours)
{
	struct uffdio_register arguments = {
		.range = { (unsigned long)self->at, bytes(PAGES) },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &arguments));
	ASSERT_EQ(ALL, watched(self, false, 0));
	judge(_metadata, variant, move_and_look(_metadata, self, variant->to, false));
}

/*
 * All pages are missing and protected. After mremap(), a write traps at each
 * page that did not move. Known issue 28: the writes after mremap() do not
 * trap.
 */
TEST_F(uffd_mremap, protected_neighbours)
{
	ASSERT_EQ(0, listen_to(self->uffd, self->at, bytes(PAGES)));
	ASSERT_EQ(0, protect(self->uffd, self->at, PAGES, true));
	for (unsigned int page = 0; page < PAGES; page++)
		ASSERT_TRUE(pagemap_has(self->at + bytes(page), PM_UFFD_WP));
	judge(_metadata, variant, move_and_look(_metadata, self, variant->to, true));
}

TEST_HARNESS_MAIN
