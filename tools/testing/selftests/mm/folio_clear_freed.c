// SPDX-License-Identifier: GPL-2.0
/*
 * The content of fresh memory in a kernel that clears all freed memory.
 *
 * Proves: with init_on_free=1 each byte of new memory is zero, although its
 * frames held other bytes before. This is true even if the kernel was also
 * booted with init_on_alloc=1. The page allocator clears pages when they are
 * freed, and does not clear them again when it allocates them. Newer kernels
 * rely on this for huge pages too.
 *
 * How: as in folio_clear. The virtual machine of this program boots with
 * init_on_free=1.
 *
 * Does not prove: that the kernel clears memory as soon as it is freed, because
 * no process can see free memory. The option page_poison=1 switches off
 * init_on_free and init_on_alloc. To test page_poison=1, boot once more with
 * KERNEL_ARGS=page_poison=1 TESTS=folio_clear.
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=folio_clear_freed
 */
#include "folio_clear.h"
#include "folio_state.h"

/* Each round allocates this many bytes, or one folio if a folio is larger. */
#define ROOM (8UL << 20)

FIXTURE(folio_clear_freed)
{
	struct memory memory;
	struct filled filled;
	unsigned int folios;
	int order;
};

FIXTURE_VARIANT(folio_clear_freed)
{
	enum folio_size size;
};

FIXTURE_VARIANT_ADD(folio_clear_freed, single_pages)
{
	.size = SINGLE_PAGES,
};

FIXTURE_VARIANT_ADD(folio_clear_freed, blocks)
{
	.size = BLOCKS,
};

FIXTURE_VARIANT_ADD(folio_clear_freed, huge_pages)
{
	.size = HUGE_PAGES,
};

FIXTURE_SETUP(folio_clear_freed)
{
	const char *why;

	self->memory.fd = -1;
	if (!booted_with("init_on_free=1") || booted_with("page_poison=1"))
		SKIP(return, "not booted with init_on_free=1");
	self->order = order_of_size(variant->size);
	why = clear_settings(self->order);
	if (why)
		SKIP(return, "%s", why);
	self->folios = folios_in(ROOM, self->order);
}

FIXTURE_TEARDOWN(folio_clear_freed)
{
	memory_free(&self->memory);
	filled_free(&self->filled);
}

/*
 * The test allocates, fills and frees anonymous memory several times. It stops
 * when at least half of a new allocation is in frames that the test has filled
 * before. Each new allocation is zero.
 */
TEST_F_TIMEOUT(folio_clear_freed, written, 120)
{
	struct memory *m = &self->memory;
	unsigned int again, pages = self->folios << self->order;
	int tries = 0;

	do {
		ASSERT_TRUE(fresh_map(m, self->order, self->folios, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1));
		for (unsigned int page = 0; page < m->pages; page += 1U << self->order)
			write_zero(m->at + bytes(page));
		EXPECT_EQ(0, not_zero(m->at, pages)) {
			TH_LOG("some of %u pages are not zero: folios of order %d, round %d", pages,
			       self->order, tries);
		}
		EXPECT_TRUE(are_folios(m->at, pages, self->order));
		again = were_filled(&self->filled, m->at, pages);
		ASSERT_TRUE(fill_more(&self->filled, m->at, pages));
		memory_free(m);
	} while (2 * again < pages && ++tries < TRIES);
	EXPECT_LE(pages, 2 * again) {
		TH_LOG("fewer than half of %u pages are in filled frames: this proves nothing",
		       pages);
	}
}

TEST_HARNESS_MAIN
