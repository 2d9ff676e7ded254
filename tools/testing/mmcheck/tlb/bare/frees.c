// SPDX-License-Identifier: GPL-2.0
/*
 * Cases about functions that the plugin observes. They have the names of the functions in Linux. The plugin finds out
 * from free_pages() and __free_pages() where the structs of pages are.
 */
#include "bare.h"

#define STRUCTS 0xfffffdff80000000UL	/* the struct of page 0; each struct has 64 bytes */
#define page_of(pa) (STRUCTS + ((u64)(pa) >> PAGE_SHIFT) * 64)

#define OBSERVED(name) void __attribute__((noinline, used)) name(u64 first, u64 order)	\
{											\
	asm volatile("" :: "r"(first), "r"(order) : "memory");				\
}

void free_pages(u64 first, u64 order);
void __free_pages(u64 first, u64 order);
void free_unref_page(u64 first, u64 order);
void exit_mmap(void);

OBSERVED(free_pages)
OBSERVED(__free_pages)
OBSERVED(free_unref_page)

static inline void teach(void)
{
	for (unsigned int i = 0; i < 3; i++) {
		free_pages(RAM + i * PAGE, 0);
		__free_pages(page_of(RAM + i * PAGE), 0);
	}
}

CASE(silent, page_freed_after_tlbi)
{
	teach();
	map(3, RW);
	set(&level3[3], 0);
	flush(3);
	free_unref_page(page_of(RAM + 3 * PAGE), 0);
}

CASE(frame_reuse, page_freed_before_tlbi)
{
	teach();
	map(3, RW);
	set(&level3[3], 0);
	free_unref_page(page_of(RAM + 3 * PAGE), 0);
	flush(3);
}

CASE(missing_dsb, page_freed_before_dsb)
{
	teach();
	map(3, RW);
	set(&level3[3], 0);
	dsb(ishst);
	tlbi(vale1is, at(VA + 3 * PAGE) | of(ASID));
	free_unref_page(page_of(RAM + 3 * PAGE), 0);
	dsb(ish);
}

CASE(frame_reuse, last_of_four_pages_freed)
{
	teach();
	map(3, RW);
	set(&level3[3], 0);
	free_unref_page(page_of(RAM), 2);
	flush(3);
}

CASE(silent, other_pages_freed)
{
	teach();
	map(3, RW);
	set(&level3[3], 0);
	free_unref_page(page_of(RAM), 1);
	free_unref_page(page_of(RAM + 4 * PAGE), 2);
	flush(3);
}

CASE(frame_reuse, last_page_of_a_block_freed)
{
	teach();
	set(&level2[1], RAM | RW | VALID);
	dsb(ishst);
	set(&level2[1], 0);
	free_unref_page(page_of(RAM + BLOCK - PAGE), 0);
	dsb(ishst);
	tlbi(vale1is, at(VA + BLOCK) | of(ASID));
	dsb(ish);
}

CASE(table_reuse, table_freed_before_tlbi)
{
	teach();
	set(&level2[0], 0);
	free_unref_page(page_of(level3), 0);
	dsb(ishst);
	tlbi(vae1is, at(VA) | of(ASID));
	dsb(ish);
}

/* The process ends, so it never runs again. */
void __attribute__((noinline)) exit_mmap(void)
{
	set(&level3[3], 0);
	free_unref_page(page_of(RAM + 3 * PAGE), 0);
}

CASE(silent, page_of_an_exiting_process_freed)
{
	teach();
	become(TASK_A);
	map(3, RW);
	exit_mmap();
	use_table(1, ASID + 1);
	run_el0();
	tlbi(aside1is, of(ASID));
	dsb(ish);
}
