/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which instructions are atomic read-modify-write operations on memory.
 *
 * The list has only atomics, class by class as in the encoding index of the Arm
 * ARM (DDI 0487, "Loads and Stores"). It leaves out unallocated encodings, and
 * instructions with similar encodings that only load (LDAPR, LD64B) or only
 * store (ST64B). It also leaves out 128-bit atomics (FEAT_LSE128).
 *
 * The code needs only integers, and compiles on every architecture.
 */
#ifndef __ASM_ATOMIC_RMW_INSN_H
#define __ASM_ATOMIC_RMW_INSN_H

#include <linux/types.h>

/*
 * Atomic memory operations:
 *
 *	 31 30 29   27 26 25 24 23 22 21 20   16 15 14   12 11 10 9    5 4    0
 *	| size | 1 1 1 | V | 0 0| A| R| 1|  Rs  |o3|  opc  | 0  0|  Rn  |  Rt  |
 *
 * V must be 0, because V = 1 means SIMD registers.
 */
static __always_inline bool atomic_rmw_memory_op(u32 insn)
{
	u32 size = insn >> 30, ordering = insn >> 22 & 3, opc = insn >> 12 & 7;
	u32 rt = insn & 31;

	if (!(insn >> 15 & 1))
		return true;		/* LD<op>, ST<op>: add, clr, eor, ... */
	switch (opc) {
	case 0:				/* SWP */
		return true;
	case 1:				/* RCWCLR, RCWSCLR */
		return size < 2;
	case 2:				/* RCWSWP, RCWSSWP; ST64BV0 */
	case 3:				/* RCWSET, RCWSSET; ST64BV */
		if (size < 2)
			return true;
		/*
		 * ST64BV and ST64BV0 store eight registers. The first has an
		 * even number.
		 */
		return size == 3 && !ordering && !(rt & 1) && rt < 24;
	default:
		return false;
	}
}

/**
 * atomic_rmw_insn() - whether an instruction reads, modifies and writes memory
 * @insn: an A64 instruction, as a number
 *
 * Conditional instructions, such as CAS, count even if they do not write.
 *
 * Return: whether the instruction does all three in one atomic operation.
 */
static __always_inline bool atomic_rmw_insn(u32 insn)
{
	if ((insn & 0x3f200c00) == 0x38200000)
		return atomic_rmw_memory_op(insn);
	/* CAS; CASP, if both of its pairs begin with an even register */
	return (insn & 0x3fa07c00) == 0x08a07c00 ||
	       (insn & 0xbfa17c01) == 0x08207c00;
}

#endif /* __ASM_ATOMIC_RMW_INSN_H */
