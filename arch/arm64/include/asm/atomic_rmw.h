/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Write faults for atomic read-modify-write instructions.
 *
 * Such an instruction on a page that is not mapped is reported as a read. If
 * the kernel handles it as a read, it maps the zero page, and the same
 * instruction faults again at once, now as a write. If the kernel handles it as
 * a write, there is only one fault, and no huge zero page has to be split.
 */
#ifndef __ASM_ATOMIC_RMW_H
#define __ASM_ATOMIC_RMW_H

#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>

#include <asm/atomic_rmw_insn.h>

#ifdef CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT
/*
 * The address of the last instruction that the kernel read and that is not an
 * atomic. A loop of loads faults there once for each page, and another read of
 * the instruction would cost 4 % of such a fault. If the code at this address
 * changes meanwhile, the kernel handles an atomic there as without this option,
 * with two faults. If a task moves to another CPU, it uses the address of that
 * CPU, which does no harm.
 */
static DEFINE_PER_CPU(unsigned long, atomic_rmw_in_vain);

/*
 * Is the instruction of user space an atomic? Returns false if the instruction
 * cannot be read.
 */
static inline bool atomic_rmw_at(struct pt_regs *regs)
{
	__le32 insn;
	int err;

	if (!user_mode(regs) || compat_user_mode(regs))
		return false;
	pagefault_disable();
	err = get_user(insn, (__le32 __user *)instruction_pointer(regs));
	pagefault_enable();
	return !err && atomic_rmw_insn(le32_to_cpu(insn));
}

/**
 * atomic_rmw_fault_flags() - the flags for the handling of a fault
 * @vma: the VMA; it is locked, and allows the reported access
 * @flags: FAULT_FLAG_* as reported
 * @regs: registers of the task that faulted
 *
 * The kernel reads the instruction only if its type could make a difference:
 * for a data read of user space in memory that is also writable.
 *
 * Return: the flags, with FAULT_FLAG_WRITE for an atomic read-modify-write
 * instruction.
 */
static inline unsigned int atomic_rmw_fault_flags(struct vm_area_struct *vma,
						  unsigned int flags,
						  struct pt_regs *regs)
{
	unsigned long place;

	if (!(flags & FAULT_FLAG_USER) || !(vma->vm_flags & VM_WRITE) ||
	    flags & (FAULT_FLAG_WRITE | FAULT_FLAG_INSTRUCTION))
		return flags;
	/* The address with the ASID in its unused bits. */
	place = instruction_pointer(regs) ^
		(unsigned long)atomic64_read(&vma->vm_mm->context.id) << 48;
	if (raw_cpu_read(atomic_rmw_in_vain) == place)
		return flags;
	if (atomic_rmw_at(regs))
		return flags | FAULT_FLAG_WRITE;
	raw_cpu_write(atomic_rmw_in_vain, place);
	return flags;
}
#else
static inline unsigned int atomic_rmw_fault_flags(struct vm_area_struct *vma,
						  unsigned int flags,
						  struct pt_regs *regs)
{
	return flags;
}
#endif

#endif /* __ASM_ATOMIC_RMW_H */
