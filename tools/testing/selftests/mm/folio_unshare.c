// SPDX-License-Identifier: GPL-2.0
/*
 * A device takes a read-only long-term pin of memory. If the next write by the
 * process would copy a page, the kernel replaces this page before the pin. A
 * page that userfaultfd protects must stay protected.
 *
 * Proves: the pin changes neither which pages are protected nor the content of
 * any page. After the pin, a write to each protected page traps.
 *
 * How: gup_test pins the memory. Before the pin, the zero page, the huge zero
 * page, or folios that a child shares are mapped in this memory. Half of the
 * memory is protected. If the huge zero page is mapped, all of the memory is
 * protected, so that one PMD still maps the huge zero page.
 *
 * Does not prove: that the device sees the same pages as the process
 * (folio_reuse tests this).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_unshare
 */
#include "../../../../mm/gup_test.h"

#include "folio_did.h"
#include "folio_known.h"
#include "folio_listen.h"
#include "folio_owner.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_UFFD BIT_ULL(57)
/* include/uapi/linux/kernel-page-flags.h */
#define IS_ZERO_PAGE BIT_ULL(24)

FIXTURE(folio_unshare)
{
	struct memory memory;
	int go[2];
	int uffd;
	int device;
	pid_t child;
};

FIXTURE_VARIANT(folio_unshare)
{
	bool forked;
	bool huge;
};

FIXTURE_VARIANT_ADD(folio_unshare, zero_page)
{
};

FIXTURE_VARIANT_ADD(folio_unshare, huge_zero_page)
{
	.huge = true,
};

FIXTURE_VARIANT_ADD(folio_unshare, forked)
{
	.forked = true,
};

FIXTURE_VARIANT_ADD(folio_unshare, huge_forked)
{
	.forked = true,
	.huge = true,
};

/* Map all pages to the zero page. Returns whether each page is mapped to it. */
static bool map_zeros(const struct memory *m)
{
	bool right = !madvise(m->at, bytes(m->pages), MADV_DONTNEED);

	for (unsigned int page = 0; page < m->pages; page++) {
		read_byte(m->at + bytes(page));
		right &= !!(kernel_flags(m->at + bytes(page)) & IS_ZERO_PAGE);
	}
	return right;
}

FIXTURE_SETUP(folio_unshare)
{
	int huge = order_of(read_pmd_pagesize() / psize());
	int order = variant->huge ? huge : variant->forked ? order_of(cont_ptes()) : 0;
	const char *why = folio_settings(order);

	self->memory.fd = -1;
	self->child = -1;
	self->uffd = -1;
	self->device = open("/sys/kernel/debug/gup_test", O_RDWR);
	if (!why && self->device < 0)
		why = "CONFIG_GUP_TEST=n, or no debugfs";
	if (!why)
		why = memory_map(&self->memory, ANON, order, order ? 1 : cont_ptes());
	if (why)
		SKIP(return, "%s", why);
	if (!variant->forked && !map_zeros(&self->memory))
		SKIP(return, "no zero page of this size");
	self->uffd = listener(UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	if (self->uffd < 0 ||
	    listen_to(self->uffd, self->memory.at, bytes(self->memory.pages)))
		SKIP(return, "no write protection by userfaultfd");
	ASSERT_EQ(0, pipe(self->go));
}

FIXTURE_TEARDOWN(folio_unshare)
{
	if (self->child > 0)
		end_child(self->child);
	close(self->device);
	close(self->uffd);
	memory_free(&self->memory);
}

/*
 * The pin covers all pages. If the memory maps the huge zero page, all of the
 * memory is protected. Otherwise only the first half of the memory is
 * protected. Each page gets its own frame, and the protected pages stay
 * protected.
 *
 * Known issue 32: the kernel replaces the huge zero page by a huge page that is
 * not protected, so all pages lose the protection.
 */
TEST_F_TIMEOUT(folio_unshare, pin_keeps_protection, 120)
{
	struct memory *m = &self->memory;
	bool whole = variant->huge && !variant->forked;
	unsigned int page, lost = 0, added = 0, moved = 0, half = whole ? m->pages : m->pages / 2;
	struct pin_longterm_test pin = {
		.addr = (unsigned long)m->at,
		.size = bytes(m->pages),
	};
	unsigned long *before = calloc(m->pages, sizeof(*before));

	ASSERT_NE(NULL, before);
	ASSERT_EQ(0, protect(self->uffd, m->at, half, true));
	if (variant->forked) {
		self->child = waiting_child(self->go, NULL, m);
		ASSERT_LT(0, self->child);
	}
	for (page = 0; page < m->pages; page++) {
		before[page] = pfn_of(m->at + bytes(page));
		ASSERT_EQ(page < half, pagemap_has(m->at + bytes(page), PM_UFFD));
	}
	ASSERT_EQ(0, ioctl(self->device, PIN_LONGTERM_TEST_START, &pin));
	for (page = 0; page < m->pages; page++) {
		char *at = m->at + bytes(page);
		bool kept = pagemap_has(at, PM_UFFD);

		moved += pfn_of(at) != before[page];
		lost += page < half && !kept;
		added += page >= half && kept;
		EXPECT_TRUE(page_is(at, variant->forked ? pattern(page) : 0)) {
			TH_LOG("content of page %u", page);
		}
		EXPECT_EQ(kept ? SIGBUS : 0, try_access(at, true)) {
			TH_LOG("write to page %u", page);
		}
	}
	ioctl(self->device, PIN_LONGTERM_TEST_STOP);
	free(before);
	DID(moved, "pages with another frame");
	EXPECT_EQ(m->pages, moved);
	EXPECT_EQ(0, added);
	if (whole && lost == m->pages)
		KNOWN_ISSUE(32, "a copy of the huge zero page is not protected");
	else
		EXPECT_EQ(0, lost);
	if (whole && !lost)
		STALE_ISSUE(32);
}

TEST_HARNESS_MAIN
