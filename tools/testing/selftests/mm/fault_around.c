// SPDX-License-Identifier: GPL-2.0
/*
 * How much of a large folio one read fault on a file maps.
 *
 * Proves: if a mapping covers a large folio of a file, and one page table maps the whole folio, one
 * read fault maps all pages of the folio. Older kernels map only fault_around_bytes. If the folio
 * crosses the end of a page table, or if the mapping covers only a part of the folio, the fault
 * maps only fault_around_bytes, and no page of another table.
 *
 * How: the folio has twice as many pages as fault_around_bytes. The test chooses the address of
 * the mapping relative to a page table.
 *
 * Does not prove: faults past the end of a file, and the first fault in a page table (folio_file
 * tests them).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=fault_around
 */
#include "folio_owner.h"
#include "folio_state.h"

#ifdef PGTABLE_KUNIT_HAS_WHOLE_FOLIO
#define MAPS_WHOLE_FOLIO true
#else
#define MAPS_WHOLE_FOLIO false
#endif

FIXTURE(fault_around)
{
	struct memory memory;
	char *room;
	char *table;	/* the first address of a page table in the room */
	size_t table_bytes;
};

FIXTURE_VARIANT(fault_around)
{
	enum memory_kind kind;
};

FIXTURE_VARIANT_ADD(fault_around, shmem)
{
	.kind = SHMEM,
};

FIXTURE_VARIANT_ADD(fault_around, xfs)
{
	.kind = XFS,
};

FIXTURE_SETUP(fault_around)
{
	int order = order_of(cont_ptes()) + 1;
	const char *why = folio_settings(order);
	size_t table = (size_t)psize() * psize() / sizeof(long);

	self->memory.fd = -1;
	self->room = MAP_FAILED;
	if (!why)
		why = memory_map(&self->memory, variant->kind, order, 1);
	if (why)
		SKIP(return, "%s", why);
	self->table_bytes = table;
	self->room = mmap(NULL, 3 * table, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->room);
	self->table = (char *)(((unsigned long)self->room + table - 1) & -table);
}

FIXTURE_TEARDOWN(fault_around)
{
	if (self->room != MAP_FAILED)
		munmap(self->room, 3 * self->table_bytes);
	memory_free(&self->memory);
}

/*
 * For each of @pages pages of the folio, from page @first on: map these pages at @at, read the
 * page, and check how many pages the fault mapped. The kernel's count of mappings shows that the
 * fault mapped no other page of the folio. At the end the pages are unmapped. Returns the number of
 * faults.
 */
static unsigned int read_each(struct __test_metadata *_metadata, const struct memory *m, char *at,
			      unsigned int first, unsigned int pages, unsigned int expected)
{
	for (unsigned int page = 0; page < pages; page++) {
		unsigned int mapped = 0;

		ASSERT_EQ(at, mmap(at, bytes(pages), PROT_READ, MAP_SHARED | MAP_FIXED, m->fd,
				   bytes(first)));
		EXPECT_EQ(pattern(first + page), (unsigned char)read_byte(at + bytes(page)));
		for (unsigned int i = 0; i < m->pages; i++) {
			char *place = at + bytes(i) - bytes(first), *same = m->at + bytes(i);
			bool there = i >= first && i < first + pages &&
				     pagemap_has(place, PM_PRESENT);

			EXPECT_EQ(1 + there, mappings(same)) {
				TH_LOG("page %u of the folio", i);
			}
			if (there)
				EXPECT_EQ(pfn_of(same), pfn_of(place));
			mapped += there;
		}
		EXPECT_EQ(expected, mapped) {
			TH_LOG("a read of page %u mapped %u pages", page, mapped);
		}
	}
	ASSERT_EQ(at, mmap(at, bytes(pages), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			   -1, 0));
	return pages;
}

/*
 * The mapping covers the whole folio. The folio begins at the first address of a page table, in the
 * middle of the table, or ends with the table. A read of any page maps all pages of the folio.
 */
TEST_F(fault_around, whole_folio)
{
	struct memory *m = &self->memory;
	size_t size = bytes(m->pages);
	size_t offsets[] = { 0, self->table_bytes / 2, self->table_bytes - size };
	unsigned int faults = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(offsets); i++)
		faults += read_each(_metadata, m, self->table + offsets[i], 0, m->pages,
				    MAPS_WHOLE_FOLIO ? m->pages : cont_ptes());
	DID(faults, "faults");
}

/*
 * One half of the folio is in one page table, and the other half is in the next table. A read of
 * any page maps the pages of this half, and no page of the other half.
 */
TEST_F(fault_around, over_table_end)
{
	struct memory *m = &self->memory;
	char *at = self->table + self->table_bytes - bytes(m->pages / 2);

	/* Both tables exist before the first fault of the folio. */
	for (int i = -1; i < 2; i += 2) {
		char *page = at + bytes(m->pages / 2) + i * (long)bytes(m->pages);

		ASSERT_EQ(page, mmap(page, bytes(1), PROT_READ,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
		read_byte(page);
	}
	DID(read_each(_metadata, m, at, 0, m->pages, m->pages / 2), "faults");
}

/*
 * The mapping covers all pages of the folio except the first half or the second half. A read of any
 * page maps the pages of the mapping, and nothing beyond.
 */
TEST_F(fault_around, half_of_folio)
{
	struct memory *m = &self->memory;
	unsigned int half = m->pages / 2, faults = 0;

	for (unsigned int first = 0; first < m->pages; first += half) {
		char *at = self->table + bytes(m->pages + first);

		faults += read_each(_metadata, m, at, first, half, half);
	}
	DID(faults, "faults");
}

/*
 * The folio is the last one of its file, and ends exactly where the file ends. A read of any page
 * maps the whole folio, as in the middle of a file. Known issue 9: in a file that is not a memory
 * file, the fault maps only a part of the folio.
 */
TEST_F(fault_around, last_folio)
{
	struct memory *m = &self->memory;
	unsigned int whole = MAPS_WHOLE_FOLIO ? m->pages : cont_ptes(), mapped = 0;
	char *at = self->table + self->table_bytes / 2, *page = at - bytes(1);

	ASSERT_EQ(0, ftruncate(m->fd, bytes(m->pages)));
	/* Without a page table, the first fault would meet the other symptom of known issue 9. */
	ASSERT_EQ(page, mmap(page, bytes(1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			     -1, 0));
	read_byte(page);
	ASSERT_EQ(at, mmap(at, bytes(m->pages), PROT_READ, MAP_SHARED | MAP_FIXED, m->fd, 0));
	read_byte(at);
	for (unsigned int i = 0; i < m->pages; i++)
		mapped += pagemap_has(at + bytes(i), PM_PRESENT);
	if (MAPS_WHOLE_FOLIO && variant->kind == XFS && mapped == cont_ptes()) {
		DID(read_each(_metadata, m, at, 0, m->pages, cont_ptes()), "faults");
		KNOWN_ISSUE(9, "a fault maps only a part of the last folio");
		return;
	}
	DID(read_each(_metadata, m, at, 0, m->pages, whole), "faults");
	if (MAPS_WHOLE_FOLIO && variant->kind == XFS)
		STALE_ISSUE(9);
}

TEST_HARNESS_MAIN
