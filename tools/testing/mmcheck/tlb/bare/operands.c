// SPDX-License-Identifier: GPL-2.0
/* Cases about the operands of TLBI: level hints, ranges, and TLBIs that do not wait for accesses with the XS attribute. */
#include "bare.h"

/* Level hints and operands */
CASE(silent, level_hint)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID) | ttl(3));
	dsb(ish);
}

CASE(tlbi_level, level_hint_of_a_block_for_a_page)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID) | ttl(2));
	dsb(ish);
	flush(0);
}

/* As in reclaim: the TLBI for the page is not complete yet. The second TLBI is for a block that was there before. */
CASE(silent, level_hint_of_a_block_after_the_tlbi_of_a_page)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
	tlbi(vale1, at(VA) | of(ASID) | ttl(2));
	dsb(nsh);
	dsb(ish);
}

CASE(tlbi_level, level_hint_of_a_page_for_a_block)
{
	set(&level2[1], RAM | RW | VALID);
	dsb(ishst);
	set(&level2[1], 0);
	dsb(ishst);
	tlbi(rvale1is, range(VA + BLOCK, BLOCK_RANGE, 3) | of(ASID));
	dsb(ish);
	tlbi(vale1is, at(VA + BLOCK) | of(ASID));
	dsb(ish);
}

CASE(silent, one_tlbi_for_a_block)
{
	set(&level2[1], RAM | RW | VALID);
	dsb(ishst);
	set(&level2[1], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA + BLOCK + 5 * PAGE) | of(ASID) | ttl(2));
	dsb(ish);
}

/* Level 0 has no pages or blocks, except for pages of 4K with LPA2. */
#if defined(LPA2) && PAGE_SHIFT == 12
CASE(tlbi_level, level_hint_0_for_a_page)
#else
CASE(tlbi_operand, level_hint_0_for_a_page)
#endif
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID) | ttl(0));
	dsb(ish);
	flush(0);
}

#if PAGE_SHIFT == 14
#ifdef LPA2
CASE(tlbi_level, level_hint_1_for_a_page)
#else
CASE(tlbi_operand, level_hint_1_for_a_page)
#endif
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID) | ttl(1));
	dsb(ish);
	flush(0);
}
#endif

CASE(tlbi_operand, range_without_granule)
{
	dsb(ishst);
	tlbi(rvale1is, (range(VA, 0, 0, 0) & ~(3UL << 46)) | of(ASID));
	dsb(ish);
}

CASE(tlbi_operand, range_of_another_granule)
{
	dsb(ishst);
	tlbi(rvale1is, range(VA, 0, 0, 0) & ~(3UL << 46) | OTHER_TG << 46 | of(ASID));
	dsb(ish);
}

CASE(tlbi_operand, hint_of_another_granule)
{
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID) | OTHER_TG << 46 | 3UL << 44);
	dsb(ish);
}

CASE(tlbi_operand, range_not_aligned_to_its_level)
{
	dsb(ishst);
	tlbi(rvale1is, range(VA + 16 * PAGE, 0, 0, 2) | of(ASID));
	dsb(ish);
}

/* Ranges in the upper half, and ranges of the largest scale */
static inline void map_kernel_block(u64 pa)
{
	for (unsigned int i = 0; i < JOINED; i++)
		set(&kernel3[i], pa + i * PAGE | KERNEL | LEAF);
	dsb(ishst);
}

static inline void clear_kernel_block(void)
{
	for (unsigned int i = 0; i < JOINED; i++)
		set(&kernel3[i], 0);
	dsb(ishst);
}

CASE(silent, range_in_the_upper_half)
{
	map_kernel_block(RAM);
	clear_kernel_block();
	tlbi(rvaale1is, range(KVA, JOINED_RANGE, 3));
	dsb(ish);
	map_kernel_block(RAM + BLOCK);
}

CASE(break_before_make, range_in_the_upper_half_too_short)
{
	map_kernel_block(RAM);
	clear_kernel_block();
	tlbi(rvaale1is, range(KVA, SHORTER_RANGE, 3));
	dsb(ish);
	map_kernel_block(RAM + BLOCK);
	tlbi_all(vmalle1is);
	dsb(ish);
}

#define LONGEST 65536	/* pages in a range of scale 3 and number 0 */

CASE(silent, last_page_of_a_long_range)
{
	set(&level2[LONGEST / ENTRIES - 1], (u64)other | TABLE);
	set(&other[ENTRIES - 1], RAM | RW | LEAF);
	dsb(ishst);
	set(&other[ENTRIES - 1], 0);
	dsb(ishst);
	tlbi(rvale1is, range(VA, 3, 0, 3) | of(ASID));
	dsb(ish);
}

CASE(stale_rights, page_after_a_long_range)
{
	set(&level2[LONGEST / ENTRIES], (u64)other | TABLE);
	set(&other[0], RAM | RW | LEAF);
	dsb(ishst);
	set(&other[0], 0);
	dsb(ishst);
	tlbi(rvale1is, range(VA, 3, 0, 3) | of(ASID));
	dsb(ish);
}

/* TLBI and DSB that do not wait for accesses with the XS attribute */
CASE(silent, nxs)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi_nxs(at(VA) | of(ASID));
	dsb_nxs();
}

CASE(silent, nxs_and_a_dsb_of_everything)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi_nxs(at(VA) | of(ASID));
	dsb(ish);
}

CASE(missing_dsb, dsb_nxs_after_a_usual_tlbi)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
	dsb_nxs();
}

CASE(silent, range_nxs)
{
	map_block(RW);
	clear_block();
	dsb(ishst);
	tlbi_range_nxs(range(VA, JOINED_RANGE, 3) | of(ASID));
	dsb_nxs();
}

CASE(stale_rights, range_nxs_too_short)
{
	map_block(RW);
	clear_block();
	dsb(ishst);
	tlbi_range_nxs(range(VA, SHORTER_RANGE, 3) | of(ASID));
	dsb_nxs();
}
