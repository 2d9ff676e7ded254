/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Definitions for the cases. PAGE_SHIFT chooses the size of a page: 4K, 16K or
 * 64K. The number of address bits (BITS) makes the tables have levels 1, 2 and
 * 3.
 *
 * A case is CASE(RULE, NAME). RULE is the only rule that must report the case,
 * with _ in place of -. It is "silent" if no rule may report the case.
 */
#ifndef MMCHECK_TLB_BARE_H
#define MMCHECK_TLB_BARE_H

#if PAGE_SHIFT == 12
#define BITS 39
#define JOINED 16		/* entries that the contiguous bit joins */
#define JOINED_RANGE 0, 7	/* scale and number of a range with as many pages */
#define SHORTER_RANGE 0, 6
#define BLOCK_RANGE 1, 7	/* a range as large as a block of level 2 */
#define TCR_GRANULES (2UL << 30)
#elif PAGE_SHIFT == 14
#define BITS 47
#define JOINED 128
#define JOINED_RANGE 1, 1
#define SHORTER_RANGE 1, 0
#define BLOCK_RANGE 1, 31
#define TCR_GRANULES (1UL << 30 | 2UL << 14)
#elif PAGE_SHIFT == 16
#define BITS 48
#define JOINED 32
#define JOINED_RANGE 0, 15
#define SHORTER_RANGE 0, 14
#define BLOCK_RANGE 2, 3
#define TCR_GRANULES (3UL << 30 | 1UL << 14)
#endif

#ifdef LPA2			/* addresses of 52 bits with pages of 4K or 16K */
#define TCR_MORE (1UL << 59)
#define SHARED 0UL		/* these bits of an entry belong to the address */
#define BASE_SHIFT 16		/* of the start of a range */
#else
#define TCR_MORE 0UL
#define SHARED (3UL << 8)
#define BASE_SHIFT PAGE_SHIFT
#endif

#define SHIFT2 (2 * PAGE_SHIFT - 3)	/* of a block of level 2 */
#define SHIFT1 (3 * PAGE_SHIFT - 6)
#define EL0 (3 << SHIFT1)	/* where EL0 runs */

#ifndef __ASSEMBLER__

typedef unsigned long u64;

#define CASE(rule, name)								\
	static void __attribute__((noinline, used)) case_##rule##__##name(void);	\
	static void (*const at_##rule##__##name)(void)					\
		__attribute__((section(".cases"), used)) = case_##rule##__##name;	\
	static void case_##rule##__##name(void)

#define PAGE (1UL << PAGE_SHIFT)
#define ENTRIES (PAGE / 8)	/* of a table */
#define BLOCK (1UL << SHIFT2)
#define VA (2UL << SHIFT1)	/* where the cases map memory */
#define KVA (-1UL << BITS)	/* where the cases map memory in the upper half */
#define RAM 0x60000000UL	/* frames, which nothing else uses */
#define ASID 5UL

#define VALID 1UL
#define LEAF 3UL		/* of the last level */
#define TABLE 3UL
#define NORMAL (0UL << 2)	/* index of the memory type */
#define DEVICE (1UL << 2)
#define USER (1UL << 6)
#define RO (1UL << 7)
#define YOUNG (1UL << 10)
#define NG (1UL << 11)
#define DBM (1UL << 51)
#define CONT (1UL << 52)
#define PXN (1UL << 53)
#define UXN (1UL << 54)
#define SOFT (1UL << 55)
#define RW (NORMAL | SHARED | YOUNG | NG | USER | PXN | UXN)
#define KERNEL (NORMAL | SHARED | YOUNG | PXN | UXN)

extern u64 level1[ENTRIES], level2[ENTRIES], level3[ENTRIES], other[ENTRIES];
extern u64 kernel1[ENTRIES], kernel2[ENTRIES], kernel3[ENTRIES];
void run_el0(void);
void use_table(int number, u64 asid);

#define inline inline __attribute__((always_inline))

static inline void set(u64 *entry, u64 value)
{
	asm volatile("str %1, %0" : "=Q"(*entry) : "r"(value) : "memory");
}

#define dsb(kind) asm volatile("dsb " #kind ::: "memory")
#define isb() asm volatile("isb" ::: "memory")
#define tlbi(kind, operand) asm volatile("tlbi " #kind ", %0" :: "r"((u64)(operand)) : "memory")
#define tlbi_all(kind) asm volatile("tlbi " #kind ::: "memory")
#define at(va) ((va) >> 12 & 0xfffffffffffUL)
#define of(asid) ((u64)(asid) << 48)
#define TG ((PAGE_SHIFT - 10UL) / 2)		/* the number of the granule in an operand */
#define OTHER_TG (TG % 3 + 1)
#define ttl(level) (TG << 46 | (u64)(level) << 44)
#define range_of(va, scale, number, level)								\
	((va) >> BASE_SHIFT & 0x1fffffffffUL | (u64)(level) << 37 | (u64)(number) << 39 | (u64)(scale) << 44 | TG << 46)
#define range(...) range_of(__VA_ARGS__)	/* so that JOINED_RANGE and the like are two arguments */

/* TLBI and DSB that do not wait for accesses to memory with the XS attribute */
#define tlbi_nxs(operand) asm volatile("sys #0, C9, C3, #5, %0" :: "r"((u64)(operand)) : "memory")	/* VALE1ISnXS */
#define tlbi_range_nxs(operand) asm volatile("sys #0, C9, C2, #5, %0" :: "r"((u64)(operand)) : "memory")
#define dsb_nxs() asm volatile(".inst 0xd5033a3f" ::: "memory")		/* DSB ISHnXS */

#define TASK_A KVA
#define TASK_B (KVA + PAGE)
#define MARK 0x100UL		/* an entry that is neither valid nor empty, like a migration entry */

static inline void become(u64 task)
{
	asm volatile("msr sp_el0, %0" :: "r"(task) : "memory");
}

/*
 * Map a page at VA + PAGE * slot. A TLB may hold its translation from now on.
 */
static inline void map(unsigned int slot, u64 bits)
{
	set(&level3[slot], (RAM + slot * PAGE) | bits | LEAF);
	dsb(ishst);
	isb();
}

static inline void flush(unsigned int slot)
{
	dsb(ishst);
	tlbi(vale1is, at(VA + slot * PAGE) | of(ASID));
	dsb(ish);
}

static inline void map_block(u64 bits)
{
	for (unsigned int i = 0; i < JOINED; i++)
		set(&level3[i], (RAM + i * PAGE) | bits | CONT | LEAF);
	dsb(ishst);
	isb();
}

static inline void clear_block(void)
{
	for (unsigned int i = 0; i < JOINED; i++)
		set(&level3[i], 0);
}

#endif /* __ASSEMBLER__ */
#endif
