// SPDX-License-Identifier: GPL-2.0
/*
 * One of several single pages is poisoned.
 *
 * Proves: each access to the poisoned page raises SIGBUS, in each process that
 * maps the page. All other pages can be read and written. A process that does
 * not access the page does not die.
 *
 * How: madvise(MADV_HWPOISON) makes the kernel treat the page as if it had a
 * memory error. The cases run only in the virtual machine, because the bad
 * frame cannot be used afterwards.
 *
 * Does not prove: what happens to hugetlb pages, or to a page of a large folio
 * (see folio_move and poison_pinned).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=page_poison
 */
#include "folio_owner.h"
#include "folio_poison.h"
#include "folio_state.h"

#define PAGES 8

FIXTURE(page_poison)
{
	struct memory memory;
};

FIXTURE_VARIANT(page_poison)
{
	enum memory_kind kind;
};

FIXTURE_VARIANT_ADD(page_poison, anon)
{
	.kind = ANON,
};

FIXTURE_VARIANT_ADD(page_poison, shmem)
{
	.kind = SHMEM,
};

FIXTURE_SETUP(page_poison)
{
	const char *why = folio_settings(0);

	self->memory.fd = -1;
	if (!why && access("/tests/list", F_OK))
		why = "runs only in the virtual machine";
	if (!why)
		why = memory_map(&self->memory, variant->kind, 0, PAGES);
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(page_poison)
{
	memory_free(&self->memory);
}

/*
 * The number of pages for which a read raises SIGBUS. The function returns -1
 * if another page has wrong content or cannot be written to.
 */
static int bad_pages(const struct memory *m)
{
	int bad = 0;

	for (unsigned int page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);

		if (try_access(at, false) == SIGBUS)
			bad++;
		else if (!page_is(at, pattern(page)) || try_access(at, true))
			return -1;
	}
	return bad;
}

/*
 * A child also maps all pages, and one page is poisoned. The parent and the
 * child each access this page twice, and get SIGBUS each time. Both can use all
 * other pages.
 */
TEST_F(page_poison, one_page)
{
	struct memory *m = &self->memory;
	pid_t child;
	int go[2];
	char byte;

	ASSERT_EQ(0, pipe(go));
	child = fork();
	if (!child) {
		close(go[1]);
		if (read(go[0], &byte, 1))
			_exit(2);
		_exit(bad_pages(m) != 1 || bad_pages(m) != 1);
	}
	if (poison(m->at + bytes(PAGES / 2), 1)) {
		close(go[1]);
		SKIP(return, "CONFIG_MEMORY_FAILURE=n");
	}
	EXPECT_EQ(1, bad_pages(m));
	EXPECT_EQ(1, bad_pages(m));
	close(go[0]);
	close(go[1]);
	EXPECT_EQ(0, child_of(child)) {
		TH_LOG("status 1: the child did not see exactly one bad page");
	}
	DID(2, "processes with a bad page");
}

TEST_HARNESS_MAIN
