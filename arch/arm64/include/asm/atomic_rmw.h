/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Write faults for atomic read-modify-write instructions.
 *
 * Such an instruction on a page that is not mapped is reported as a read. To
 * handle that as a read maps the zero page, and the same instruction faults
 * again at once, now as a write. To handle it as a write saves one of the two
 * faults, and a huge zero page that would have to be taken apart.
 */
#ifndef __ASM_ATOMIC_RMW_H
#define __ASM_ATOMIC_RMW_H

#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>

#include <asm/atomic_rmw_insn.h>

#ifdef CONFIG_ARM64_ATOMIC_RMW_WRITE_FAULT
/* The instruction that user space is at. Not one that cannot just be read. */
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
 * atomic_rmw_fault_flags() - what access to handle a fault as
 * @vma: the VMA; it is locked, and the access that was reported is allowed
 * @flags: FAULT_FLAG_* as reported
 * @regs: registers of the task that faulted
 *
 * The instruction is only looked at if it could make a difference: for data
 * that user space reads where it could also write.
 *
 * Return: the flags, with FAULT_FLAG_WRITE for an atomic read-modify-write
 * instruction.
 */
static inline unsigned int atomic_rmw_fault_flags(struct vm_area_struct *vma,
						  unsigned int flags,
						  struct pt_regs *regs)
{
	if (!(flags & FAULT_FLAG_USER) || !(vma->vm_flags & VM_WRITE) ||
	    flags & (FAULT_FLAG_WRITE | FAULT_FLAG_INSTRUCTION) ||
	    !atomic_rmw_at(regs))
		return flags;
	return flags | FAULT_FLAG_WRITE;
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
