// SPDX-License-Identifier: GPL-2.0
/* Tables, and a loop over the cases. */
#include "bare.h"

#define TABLE_OF(name) u64 name[ENTRIES] __attribute__((aligned(1 << PAGE_SHIFT)))

TABLE_OF(level1);
TABLE_OF(level2);
TABLE_OF(level3);
TABLE_OF(other);
TABLE_OF(kernel1);
TABLE_OF(kernel2);
TABLE_OF(kernel3);
static TABLE_OF(second1);
static TABLE_OF(low2);
static TABLE_OF(code2);
static TABLE_OF(code3);

extern void (*const cases_begin[])(void);
extern void (*const cases_end[])(void);
extern char user_code[];

#define LOW 0x40000000UL	/* 1 GiB of memory, mapped at the same address */

/* Remove all translations of earlier cases, and unmap all memory. */
static void reset(void)
{
	set(&level1[2], 0);
	set(&kernel1[0], 0);
	dsb(ish);
	tlbi_all(vmalle1is);
	dsb(ish);
	isb();
	for (unsigned int i = 0; i < ENTRIES; i++)
		level2[i] = level3[i] = other[i] = kernel2[i] = kernel3[i] = 0;
	set(&level2[0], (u64)level3 | TABLE);
	set(&kernel2[0], (u64)kernel3 | TABLE);
	dsb(ishst);
	set(&level1[2], (u64)level2 | TABLE);
	set(&kernel1[0], (u64)kernel2 | TABLE);
	dsb(ishst);
	isb();
}

/* Use table 0 or 1 with an ASID. */
void use_table(int number, u64 asid)
{
	asm volatile("msr ttbr0_el1, %0\n\tisb" :: "r"((u64)(number ? second1 : level1) | of(asid)) : "memory");
}

int main(void)
{
	for (u64 pa = LOW; pa < 2 * LOW; pa += BLOCK)
		low2[pa >> SHIFT2 & ENTRIES - 1] = pa | NORMAL | SHARED | YOUNG | UXN | VALID;
	level1[LOW >> SHIFT1] = second1[LOW >> SHIFT1] = (u64)low2 | TABLE;
	level1[3] = second1[3] = (u64)code2 | TABLE;
	code2[0] = (u64)code3 | TABLE;
	code3[0] = (u64)user_code | NORMAL | SHARED | YOUNG | NG | USER | RO | PXN | LEAF;
	asm volatile("msr mair_el1, %0" :: "r"(0x00ffUL));
	/* the same number of bits and the same pages in both halves, ASIDs of 16 bits, in TTBR0 */
	asm volatile("msr tcr_el1, %0" ::
		     "r"(64UL - BITS | 64UL - BITS << 16 | TCR_GRANULES | 3UL << 12 | 3UL << 28 | 5UL << 8 | 5UL << 24 |
			 5UL << 32 | 1UL << 36 | TCR_MORE));
	asm volatile("msr ttbr0_el1, %0" :: "r"((u64)level1 | of(ASID)));
	asm volatile("msr ttbr1_el1, %0" :: "r"((u64)kernel1));
	asm volatile("dsb sy\n\tisb\n\ttlbi vmalle1\n\tdsb nsh\n\tisb\n\tmrs x0, sctlr_el1\n\torr x0, x0, #1\n\torr x0, x0, #4\n\t"
		     "orr x0, x0, #0x1000\n\tmsr sctlr_el1, x0\n\tisb" ::: "x0", "memory");
	for (void (*const *one)(void) = cases_begin; one < cases_end; one++) {
		reset();
		(*one)();
		run_el0();
		use_table(0, ASID);
	}
	return 0;
}
