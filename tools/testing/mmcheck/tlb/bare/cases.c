// SPDX-License-Identifier: GPL-2.0
/* One case for each sequence. EL0 runs after each case. The other files have more cases. */
#include "bare.h"

/*
 * Break-before-make: before a new address, memory type, size or contiguous bit
 * there must be an invalid entry and a TLBI.
 */
CASE(silent, another_address)
{
	map(0, RW);
	set(&level3[0], 0);
	flush(0);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
}

CASE(break_before_make, address_over_valid)
{
	map(0, RW);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
}

CASE(break_before_make, address_without_tlbi)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ish);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	flush(0);
}

CASE(break_before_make, tlbi_of_the_next_page)
{
	map(0, RW);
	set(&level3[0], 0);
	flush(1);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	flush(0);
}

CASE(break_before_make, tlbi_for_another_asid)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID + 1));
	dsb(ish);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	flush(0);
}

CASE(break_before_make, no_dsb_before_tlbi)
{
	map(0, RW);
	set(&level3[0], 0);
	tlbi(vale1is, at(VA) | of(ASID));
	dsb(ish);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	flush(0);
}

CASE(missing_dsb, no_dsb_after_tlbi)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	flush(0);
}

CASE(missing_dsb, dsb_for_stores_only)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
	dsb(ishst);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	flush(0);
}

CASE(missing_dsb, dsb_of_one_cpu)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
	dsb(nsh);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	flush(0);
}

CASE(break_before_make, memory_type)
{
	map(0, RW);
	set(&level3[0], RAM | RW | DEVICE | LEAF);
}

CASE(break_before_make_size, contiguous_bit_set)
{
	for (int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + i * PAGE) | RW | LEAF);
	map_block(RW);
}

CASE(silent, fold)
{
	for (int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + i * PAGE) | RW | LEAF);
	clear_block();
	dsb(ishst);
	for (int i = 0; i < JOINED; i++)
		tlbi(vale1is, at(VA + i * PAGE) | of(ASID));
	dsb(ish);
	map_block(RW);
}

CASE(break_before_make_size, fold_flush_one_short)
{
	for (int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + i * PAGE) | RW | LEAF);
	clear_block();
	dsb(ishst);
	for (int i = 0; i < JOINED - 1; i++)
		tlbi(vale1is, at(VA + i * PAGE) | of(ASID));
	dsb(ish);
	map_block(RW);
}

CASE(silent, unfold)
{
	map_block(RW);
	clear_block();
	dsb(ishst);
	tlbi(rvale1is, range(VA, JOINED_RANGE, 0) | of(ASID));
	dsb(ish);
	for (int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + i * PAGE) | RW | LEAF);
}

CASE(break_before_make_size, unfold_range_too_short)
{
	map_block(RW);
	clear_block();
	dsb(ishst);
	tlbi(rvale1is, range(VA, SHORTER_RANGE, 0) | of(ASID));
	dsb(ish);
	for (int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + i * PAGE) | RW | LEAF);
}

CASE(break_before_make_size, block_over_table)
{
	map(0, RW);
	set(&level2[0], RAM | RW | VALID);
	dsb(ishst);
	tlbi_all(vmalle1is);
	dsb(ish);
}

CASE(silent, block_after_table)
{
	map(0, RW);
	set(&level2[0], 0);
	dsb(ishst);
	tlbi(vae1is, at(VA) | of(ASID));
	dsb(ish);
	set(&level2[0], RAM | RW | VALID);
}

CASE(break_before_make_size, block_after_last_level_tlbi)
{
	map(0, RW);
	set(&level2[0], 0);
	flush(0);
	set(&level2[0], RAM | RW | VALID);
}

CASE(break_before_make_size, table_over_block)
{
	set(&level2[1], RAM | RW | VALID);
	dsb(ishst);
	set(&level2[1], (u64)other | TABLE);
	dsb(ishst);
	tlbi_all(vmalle1is);
	dsb(ish);
}

/*
 * Permissions may change in place, but the old permissions count until a TLBI.
 */
CASE(silent, write_protect)
{
	map(0, RW);
	set(&level3[0], RAM | RW | RO | LEAF);
	flush(0);
}

CASE(stale_rights, write_protect_without_tlbi)
{
	map(0, RW);
	set(&level3[0], RAM | RW | RO | LEAF);
	dsb(ish);
}

CASE(stale_rights, write_protect_block_without_the_last_page)
{
	map_block(RW);
	map_block(RW | RO);
	dsb(ishst);
	for (int i = 0; i < JOINED - 1; i++)
		tlbi(vale1is, at(VA + i * PAGE) | of(ASID));
	dsb(ish);
}

CASE(silent, write_protect_block)
{
	map_block(RW);
	map_block(RW | RO);
	dsb(ishst);
	tlbi(rvale1is, range(VA, JOINED_RANGE, 3) | of(ASID));
	dsb(ish);
}

CASE(missing_dsb, write_protect_without_dsb)
{
	map(0, RW);
	set(&level3[0], RAM | RW | RO | LEAF);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
}

CASE(stale_rights, user_bit)
{
	map(0, RW);
	set(&level3[0], RAM | (RW & ~USER) | LEAF);
	dsb(ish);
}

CASE(stale_rights, execute_never)
{
	map(0, RW & ~UXN);
	set(&level3[0], RAM | RW | LEAF);
	dsb(ish);
}

CASE(stale_rights, unmap_without_tlbi)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ish);
}

CASE(silent, upgrade)
{
	map(0, RW | RO);
	set(&level3[0], RAM | RW | LEAF);
}

CASE(silent, access_flag)
{
	map(0, RW);
	set(&level3[0], RAM | (RW & ~YOUNG) | LEAF);
	set(&level3[0], RAM | RW | SOFT | LEAF);
}

CASE(silent, away_and_back)
{
	map(0, RW);
	set(&level3[0], 0);
	set(&level3[0], RAM | RW | LEAF);
}

CASE(silent, invalid_to_valid)
{
	map(0, RW);
	map(ENTRIES - 1, RW);
}

CASE(silent, tlbi_of_everything)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(nshst);
	tlbi_all(vmalle1);
	dsb(nsh);
}

CASE(silent, tlbi_of_the_asid)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(aside1is, of(ASID));
	dsb(ish);
}

CASE(silent, tlbi_of_all_asids)
{
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vaae1is, at(VA));
	dsb(ish);
}

/* Translations for every ASID */
CASE(silent, global_in_the_upper_half)
{
	set(&kernel3[0], RAM | KERNEL | LEAF);
	dsb(ishst);
	set(&kernel3[0], 0);
	dsb(ishst);
	tlbi(vaale1is, at(KVA));
	dsb(ish);
	set(&kernel3[0], (RAM + BLOCK) | KERNEL | LEAF);
}

CASE(break_before_make, global_and_tlbi_of_the_asid)
{
	set(&kernel3[0], RAM | KERNEL | LEAF);
	dsb(ishst);
	set(&kernel3[0], 0);
	dsb(ishst);
	tlbi(aside1is, of(ASID));
	dsb(ish);
	set(&kernel3[0], (RAM + BLOCK) | KERNEL | LEAF);
	dsb(ishst);
	tlbi(vaale1is, at(KVA));
	dsb(ish);
}

CASE(silent, unmapped_in_the_upper_half)
{
	set(&kernel3[0], RAM | KERNEL | LEAF);
	dsb(ishst);
	set(&kernel3[0], 0);
}

CASE(stale_rights, read_only_in_the_upper_half)
{
	set(&kernel3[0], RAM | KERNEL | LEAF);
	dsb(ishst);
	set(&kernel3[0], RAM | KERNEL | RO | LEAF);
}

/*
 * A task changes an entry that another task has made invalid. Linux has the
 * current task in SP_EL0.
 */
CASE(stale_rights, entry_taken_by_another_task)
{
	become(TASK_A);
	map(0, RW);
	set(&level3[0], MARK);
	become(TASK_B);
	set(&level3[0], 0);
	run_el0();
	become(TASK_A);
	flush(0);
}

CASE(missing_dsb, entry_taken_before_dsb)
{
	become(TASK_A);
	map(0, RW);
	set(&level3[0], MARK);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
	become(TASK_B);
	set(&level3[0], 0);
	run_el0();
	become(TASK_A);
	dsb(ish);
}

CASE(silent, entry_taken_after_the_flush)
{
	become(TASK_A);
	map(0, RW);
	set(&level3[0], MARK);
	flush(0);
	become(TASK_B);
	set(&level3[0], 0);
	run_el0();
	become(TASK_A);
}

CASE(silent, another_task_runs_before_the_flush)
{
	become(TASK_A);
	map(0, RW);
	set(&level3[0], MARK);
	become(TASK_B);
	run_el0();
	become(TASK_A);
	flush(0);
}

CASE(silent, another_task_maps_before_the_flush)
{
	become(TASK_A);
	map(0, RW);
	set(&level3[0], 0);
	become(TASK_B);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	run_el0();
	become(TASK_A);
	flush(0);
}

CASE(stale_rights, another_task_maps_and_nothing_flushes)
{
	become(TASK_A);
	map(0, RW);
	set(&level3[0], 0);
	become(TASK_B);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	become(TASK_A);
}

/* As in reclaim: the task that cleared the entry executes the DSB late, and clears the access flag of the new entry. */
CASE(silent, new_entry_of_another_task_gets_old)
{
	become(TASK_A);
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
	become(TASK_B);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	become(TASK_A);
	set(&level3[0], (RAM + BLOCK) | (RW & ~YOUNG) | LEAF);
	dsb(ish);
}

CASE(missing_dsb, new_entry_of_another_task_gets_writable)
{
	become(TASK_A);
	map(0, RW);
	set(&level3[0], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA) | of(ASID));
	become(TASK_B);
	set(&level3[0], (RAM + BLOCK) | RW | RO | LEAF);
	become(TASK_A);
	set(&level3[0], (RAM + BLOCK) | RW | LEAF);
	dsb(ish);
}
