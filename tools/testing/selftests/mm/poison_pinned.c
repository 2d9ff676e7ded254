// SPDX-License-Identifier: GPL-2.0
/*
 * A page of a pinned large folio is poisoned.
 *
 * Proves: the kernel does not map the poisoned page again. The kernel cannot
 * split a pinned folio, so the poisoned page stays in the folio, together with
 * good pages. Each access to the poisoned page raises SIGBUS, also if a fault on
 * a good page of the folio came before. The good pages can be used.
 *
 *	page	0 1 2 3 4 5 6 7 ... 15
 *	        . . p . . X . .      .	p: pinned, X: poisoned
 *	                    ^		the first access after the poisoning
 *
 * How: vmsplice() pins a page, and MADV_HWPOISON poisons another. Then the test
 * maps the file again. The cases run only in the virtual machine, because the
 * bad frame cannot be used afterwards.
 *
 * Does not prove: what happens to folios that the kernel can split (see
 * folio_huge and folio_move), to single pages (see page_poison), or to a folio
 * in the swap cache.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=poison_pinned
 */
#include "folio_did.h"
#include "folio_known.h"
#include "folio_owner.h"
#include "folio_poison.h"
#include "folio_state.h"

#define PAGES 16U
#define PINNED 2U
#define BAD 5U
#define GOOD 7U

FIXTURE(poison_pinned)
{
	struct memory memory;
	unsigned long frame;	/* of the poisoned page */
	int ends[2];
};

FIXTURE_VARIANT(poison_pinned)
{
	enum memory_kind kind;
};

FIXTURE_VARIANT_ADD(poison_pinned, shmem)
{
	.kind = SHMEM,
};

FIXTURE_VARIANT_ADD(poison_pinned, file)
{
	.kind = XFS,
};

FIXTURE_SETUP(poison_pinned)
{
	int order = order_of(PAGES);
	struct memory *m = &self->memory;
	const char *why = folio_settings(order);
	struct iovec pinned;
	int err;

	m->fd = -1;
	if (!why && access("/tests/list", F_OK))
		why = "runs only in the virtual machine";
	if (!why)
		why = memory_map(m, variant->kind, order, 1);
	if (why)
		SKIP(return, "%s", why);
	self->frame = pfn_of(m->at + bytes(BAD));
	pinned = (struct iovec){ m->at + bytes(PINNED), bytes(1) };
	ASSERT_EQ(0, pipe(self->ends));
	ASSERT_EQ(bytes(1), vmsplice(self->ends[1], &pinned, 1, 0));
	err = poison(m->at + bytes(BAD), 1);
	if (err == EINVAL)
		SKIP(return, "CONFIG_MEMORY_FAILURE=n");
	ASSERT_EQ(EHWPOISON, err) {
		TH_LOG("the kernel has split the folio");
	}
	ASSERT_EQ(m->at, mmap(m->at, bytes(PAGES), PROT_READ | PROT_WRITE,
			      MAP_FIXED | MAP_SHARED, m->fd, 0));
	ASSERT_TRUE(frame_flags(self->frame) & FRAME_BAD);
	ASSERT_TRUE(frame_flags(self->frame) & FOLIO_TAIL);
}

FIXTURE_TEARDOWN(poison_pinned)
{
	if (self->ends[0]) {
		close(self->ends[0]);
		close(self->ends[1]);
	}
	memory_free(&self->memory);
}

/* The number of good pages with their content; @m->pages - 1 is right. */
static unsigned int good_pages(const struct memory *m)
{
	unsigned int good = 0;

	for (unsigned int page = 0; page < m->pages; page++)
		good += page != BAD && !try_access(m->at + bytes(page), false) &&
			page_is(m->at + bytes(page), pattern(page));
	return good;
}

/*
 * The first access is to the poisoned page. It raises SIGBUS. All other pages
 * of the folio have their content, and a second access raises SIGBUS again.
 */
TEST_F(poison_pinned, itself)
{
	struct memory *m = &self->memory;

	EXPECT_EQ(SIGBUS, try_access(m->at + bytes(BAD), false));
	EXPECT_EQ(PAGES - 1, good_pages(m));
	EXPECT_EQ(SIGBUS, try_access(m->at + bytes(BAD), false));
}

/*
 * The first access is a store to a good page two pages after the poisoned page.
 * This fault may map all good pages of the folio, but not the poisoned page: an
 * access to it raises SIGBUS.
 *
 * Known issue 90: the fault maps the poisoned page too.
 */
TEST_F(poison_pinned, after_neighbour)
{
	struct memory *m = &self->memory;
	char *bad = m->at + bytes(BAD), *good = m->at + bytes(GOOD);
	bool mapped;
	int number;

	memset(good, pattern(GOOD), bytes(1));
	EXPECT_TRUE(pagemap_has(good, PM_PRESENT));
	mapped = pagemap_has(bad, PM_PRESENT) && pfn_of(bad) == self->frame;
	number = try_access(bad, false);
	if (mapped && !number && page_is(bad, pattern(BAD))) {
		EXPECT_EQ(PAGES - 1, good_pages(m));
		KNOWN_ISSUE(90, "a fault on a good page maps a poisoned page of the folio");
		return;
	}
	EXPECT_FALSE(mapped);
	EXPECT_EQ(SIGBUS, number);
	EXPECT_EQ(PAGES - 1, good_pages(m));
	EXPECT_EQ(SIGBUS, try_access(bad, false));
	if (variant->kind != XFS)
		STALE_ISSUE(90);
}

TEST_HARNESS_MAIN
