// SPDX-License-Identifier: GPL-2.0
/* Cases about contiguous entries, about pages and tables that get another use, and about ASIDs. */
#include "bare.h"

/* Contiguous entries */
CASE(contiguous_mix, only_some_have_the_bit)
{
	for (int i = 0; i < JOINED - 1; i++)
		set(&level3[i], (RAM + i * PAGE) | RW | CONT | LEAF);
}

CASE(contiguous_mix, one_does_not_have_the_bit)
{
	for (int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + i * PAGE) | RW | (i == 7 ? 0 : CONT) | LEAF);
}

CASE(contiguous_mix, one_frame_is_another)
{
	for (int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + (i == 7 ? 8 : i) * PAGE) | RW | CONT | LEAF);
}

CASE(contiguous_mix, one_is_read_only)
{
	for (int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + i * PAGE) | RW | (i == 7 ? RO : 0) | CONT | LEAF);
}

CASE(silent, one_is_dirty_and_one_is_old)
{
	for (int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + i * PAGE) | (RW & ~(i == 3 ? YOUNG : 0)) | DBM | (i == 7 ? RO : 0) | CONT | LEAF);
}

/* A TLB may load the block again from the other entries. */
CASE(break_before_make_size, other_entries_keep_the_block)
{
	map_block(RW);
	set(&level3[0], 0);
	flush(0);
	map(0, RW);
	clear_block();
	dsb(ishst);
	tlbi(rvale1is, range(VA, JOINED_RANGE, 3) | of(ASID));
	dsb(ish);
}

/* A table with a contiguous block moves to another address, as in mremap(). */
CASE(silent, table_with_a_block_moves)
{
	map_block(RW);
	set(&level2[0], 0);
	set(&level2[1], (u64)level3 | TABLE);
	dsb(ishst);
	tlbi(rvae1is, range(VA, BLOCK_RANGE, 0) | of(ASID));
	dsb(ish);
}

CASE(stale_rights, table_with_a_block_moves_and_the_range_is_short)
{
	map_block(RW);
	set(&level2[0], 0);
	set(&level2[1], (u64)level3 | TABLE);
	dsb(ishst);
	tlbi(rvae1is, range(VA, SHORTER_RANGE, 0) | of(ASID));
	dsb(ish);
}

/* Tables and walk caches */
CASE(silent, table_cleared_after_tlbi)
{
	map(0, RW);
	set(&level2[0], 0);
	dsb(ishst);
	tlbi(vae1is, at(VA) | of(ASID));
	dsb(ish);
	asm volatile("dc zva, %0" :: "r"(level3) : "memory");
}

CASE(table_reuse, table_cleared_before_tlbi)
{
	set(&level2[0], 0);
	dsb(ishst);
	asm volatile("dc zva, %0" :: "r"(level3) : "memory");
	tlbi(vae1is, at(VA) | of(ASID));
	dsb(ish);
}

CASE(table_reuse, last_level_tlbi_for_a_table)
{
	set(&level2[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
	dsb(ish);
	asm volatile("dc zva, %0" :: "r"(level3) : "memory");
}

/* A walk cache holds a table for all its addresses, so a TLBI of any of them removes it. */
CASE(silent, tlbi_of_the_last_page_of_a_table)
{
	set(&level2[0], 0);
	dsb(ishst);
	tlbi(vae1is, at(VA + BLOCK - PAGE) | of(ASID));
	dsb(ish);
	asm volatile("dc zva, %0" :: "r"(level3) : "memory");
}

CASE(silent, tlbi_of_the_last_page_of_a_table_of_level_2)
{
	set(&level1[2], 0);
	dsb(ishst);
	for (unsigned int i = 0; i < ENTRIES; i++)
		tlbi(vae1is, at(VA + (i + 1) * BLOCK - PAGE) | of(ASID));
	dsb(ish);
	asm volatile("dc zva, %0" :: "r"(level2) : "memory");
}

CASE(table_reuse, tlbi_of_the_page_after_a_table)
{
	set(&level2[0], 0);
	dsb(ishst);
	tlbi(vae1is, at(VA + BLOCK) | of(ASID));
	dsb(ish);
	asm volatile("dc zva, %0" :: "r"(level3) : "memory");
}

/* A page of one address space is cleared for use in another address space. */
CASE(frame_reuse, page_cleared_while_cached)
{
	map(0, RW);
	use_table(1, ASID + 1);
	set(&level3[0], 0);
	dsb(ishst);
	asm volatile("dc zva, %0" :: "r"(RAM) : "memory");
	run_el0();
	use_table(0, ASID);
}

/* A page of one address space becomes a table. */
CASE(frame_reuse, page_becomes_a_table_while_cached)
{
	set(&level3[0], (u64)other | RW | LEAF);
	dsb(ishst);
	use_table(1, ASID + 1);
	set(&level3[0], 0);
	dsb(ishst);
	set(&level2[1], (u64)other | TABLE);
	run_el0();
	use_table(0, ASID);
}

CASE(silent, page_becomes_a_table_after_tlbi)
{
	set(&level3[0], (u64)other | RW | LEAF);
	dsb(ishst);
	use_table(1, ASID + 1);
	set(&level3[0], 0);
	flush(0);
	set(&level2[1], (u64)other | TABLE);
	run_el0();
	use_table(0, ASID);
}

/* The process has ended: its ASID does not run before the TLBI. */
CASE(silent, page_of_an_ended_process_becomes_a_table)
{
	set(&level3[0], (u64)other | RW | LEAF);
	dsb(ishst);
	use_table(1, ASID + 1);
	set(&level3[0], 0);
	dsb(ishst);
	set(&level2[1], (u64)other | TABLE);
	run_el0();
	tlbi(aside1is, of(ASID));
	dsb(ish);
	use_table(0, ASID);
}

/* ASIDs */
CASE(silent, asid_with_tlbi)
{
	map(0, RW);
	use_table(1, ASID + 2);
	dsb(ishst);
	tlbi(aside1is, of(ASID));
	dsb(ish);
	use_table(1, ASID);
	use_table(1, ASID + 2);
	tlbi(aside1is, of(ASID));
	dsb(ish);
}

CASE(asid_reuse, asid_without_tlbi)
{
	map(0, RW);
	use_table(1, ASID);
	use_table(1, ASID + 2);
	tlbi_all(vmalle1is);
	dsb(ish);
}

CASE(silent, changed_while_not_in_use)
{
	map(0, RW);
	use_table(1, ASID + 2);
	dsb(ishst);
	tlbi(aside1is, of(ASID));
	dsb(ish);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
}
