// SPDX-License-Identifier: GPL-2.0
/*
 * Accesses to old blocks on a CPU that does not set the access flag itself.
 *
 * Proves: the first access to an old block faults, and the kernel then makes
 * the whole block young. Accesses to the other pages of the block cost no
 * fault, and all pages of the block count as referenced.
 *
 * The virtual machine of this program has a CPU without FEAT_HAFDBS. CPUs with
 * FEAT_HAFDBS do not fault on old entries, and the program skips its case
 * there.
 *
 * Does not prove: the value of the entries (KUnit: contpte_access,
 * contpte_young).
 *
 * Run: make kselftest TARGETS=mm ARCH=arm64 TESTS=contpte_old
 */
#include "folio_state.h"

#define BLOCKS 4

FIXTURE(contpte_old)
{
	struct memory memory;
};

FIXTURE_VARIANT(contpte_old)
{
	enum memory_kind kind;
};

FIXTURE_VARIANT_ADD(contpte_old, anon)
{
	.kind = ANON,
};

FIXTURE_VARIANT_ADD(contpte_old, shmem)
{
	.kind = SHMEM,
};

FIXTURE_VARIANT_ADD(contpte_old, xfs)
{
	.kind = XFS,
};

/*
 * Make all pages old. The entries of these pages in the TLB may still be young,
 * so flush the TLB. Returns whether it worked.
 */
static bool make_old(const struct memory *m)
{
	FILE *f = fopen("/proc/self/clear_refs", "w");

	if (!f)
		return false;
	fputs("1", f);
	if (fclose(f))
		return false;
	/*
	 * mprotect() flushes the TLB if it changes entries. Entries of a clean
	 * file are read-only already, so PROT_READ would not change them. Use
	 * PROT_NONE.
	 */
	return !mprotect(m->at, bytes(m->pages), PROT_NONE) &&
	       !mprotect(m->at, bytes(m->pages), PROT_READ | PROT_WRITE) &&
	       !smaps_pages(m->at, "Referenced");
}

/* Read a byte of each page. Returns the number of faults. */
static long faults_of(const struct memory *m, unsigned int first, unsigned int pages)
{
	long before;

	faults_begin(&before);
	for (unsigned int page = first; page < first + pages; page++)
		read_byte(m->at + bytes(page));
	return faults() - before;
}

FIXTURE_SETUP(contpte_old)
{
	const char *why = folio_settings(0);
	struct memory *m = &self->memory;

	m->fd = -1;
	if (!why && !has_contpte())
		why = "no contpte in this kernel";
	if (!why)
		why = memory_map(m, ANON, 0, 1);
	if (why)
		SKIP(return, "%s", why);
	/* A read of one old page shows whether the CPU sets the access flag itself. */
	ASSERT_TRUE(make_old(m));
	if (!faults_of(m, 0, 1))
		SKIP(return, "the CPU sets the access flag itself");
	memory_free(m);
	folio_settings(order_of(cont_ptes()));
	/* The page cache of XFS may use smaller folios, so make several tries. */
	for (int i = 0; i < (variant->kind == XFS ? 8 : 1); i++) {
		why = memory_map(m, variant->kind, order_of(cont_ptes()), BLOCKS);
		if (!why)
			break;
	}
	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(contpte_old)
{
	memory_free(&self->memory);
}

/*
 * Make all blocks old. In each block, read page @page first, and then all
 * pages. Returns true if there was one fault in each block and all pages of the
 * blocks are referenced. The other memory of the process is old too, so an
 * access to it can cause one more fault.
 */
static bool one_fault_each(const struct memory *m, unsigned int page)
{
	unsigned int n = cont_ptes();

	if (!make_old(m))
		return false;
	for (unsigned int block = 0; block < BLOCKS; block++) {
		if (faults_of(m, block * n + page, 1) != 1 || faults_of(m, block * n, n) ||
		    smaps_pages(m->at, "Referenced") != (block + 1) * n)
			return false;
	}
	return true;
}

/*
 * The test reads each page of an old folded block. Only the first read faults,
 * and then the whole block is referenced. The test repeats this 16 times, and
 * each time it reads a different page of the block first. An access to other
 * memory can cause one more fault, so the test makes up to ten tries for each
 * of the 16 pages. One successful try is enough.
 */
TEST_F(contpte_old, one_fault_for_block)
{
	struct memory *m = &self->memory;
	unsigned int n = cont_ptes();
	unsigned long blocks = 0;

	if (perf_missing(_metadata, true))
		SKIP(return, NO_PERF);
	for (unsigned int block = 0; block < BLOCKS; block++) {
		ASSERT_TRUE(folded(m, block * n)) {
			TH_LOG("block %u", block);
		}
	}
	for (unsigned int page = 0; page < n; page += n / 16) {
		bool right = false;

		for (int i = 0; i < 10 && !right; i++)
			right = one_fault_each(m, page);
		EXPECT_TRUE(right) {
			TH_LOG("page %u of each block was read first", page);
		}
		blocks += BLOCKS;
	}
	DID(blocks, "old blocks read");
}

TEST_HARNESS_MAIN
