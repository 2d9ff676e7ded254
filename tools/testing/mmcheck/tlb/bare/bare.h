/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Definitions for the cases. Pages are 4K large and addresses have 39 bits, so
 * the tables have levels 1, 2 and 3.
 *
 * A case is CASE(RULE, NAME). RULE is the only rule that must report the case,
 * with _ in place of -. It is "silent" if no rule may report the case.
 */
#ifndef MMCHECK_TLB_BARE_H
#define MMCHECK_TLB_BARE_H

typedef unsigned long u64;

#define CASE(rule, name)								\
	static void __attribute__((noinline, used)) case_##rule##__##name(void);	\
	static void (*const at_##rule##__##name)(void)					\
		__attribute__((section(".cases"), used)) = case_##rule##__##name;	\
	static void case_##rule##__##name(void)

#define PAGE 4096UL
#define BLOCK (2UL << 20)
#define VA 0x80000000UL		/* where the cases map memory */
#define KVA 0xffffff8000000000UL	/* where the cases map memory in the upper half */
#define RAM 0x60000000UL	/* frames, which nothing else uses */
#define ASID 5UL

#define VALID 1UL
#define LEAF 3UL		/* of the last level */
#define TABLE 3UL
#define NORMAL (0UL << 2)	/* index of the memory type */
#define DEVICE (1UL << 2)
#define USER (1UL << 6)
#define RO (1UL << 7)
#define SHARED (3UL << 8)
#define YOUNG (1UL << 10)
#define NG (1UL << 11)
#define DBM (1UL << 51)
#define CONT (1UL << 52)
#define PXN (1UL << 53)
#define UXN (1UL << 54)
#define SOFT (1UL << 55)
#define RW (NORMAL | SHARED | YOUNG | NG | USER | PXN | UXN)
#define KERNEL (NORMAL | SHARED | YOUNG | PXN | UXN)

extern u64 level1[512], level2[512], level3[512], other[512], kernel1[512], kernel2[512], kernel3[512];
void run_el0(void);

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
#define ttl(level) ((u64)(4 | (level)) << 44)
#define range(va, scale, number, level)										\
	((va) >> 12 & 0x1fffffffffUL | (u64)(level) << 37 | (u64)(number) << 39 | (u64)(scale) << 44 | 1UL << 46)

#define TASK_A KVA
#define TASK_B (KVA + PAGE)
#define MARK 0x100UL		/* an entry that is neither valid nor empty, like a migration entry */

static inline void become(u64 task)
{
	asm volatile("msr sp_el0, %0" :: "r"(task) : "memory");
}

/*
 * Map a page at VA + 4096 * slot. A TLB may hold its translation from now on.
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
	for (unsigned int i = 0; i < 16; i++)
		set(&level3[i], (RAM + i * PAGE) | bits | CONT | LEAF);
	dsb(ishst);
	isb();
}

static inline void clear_block(void)
{
	for (unsigned int i = 0; i < 16; i++)
		set(&level3[i], 0);
}

#endif
