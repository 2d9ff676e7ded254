// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of system calls in the same way as in the entry code.
 */

#include <linux/ptrace.h>
#include <linux/syscalls.h>
#include <asm/syscall.h>

#include "pgtable_kunit.h"

/**
 * pgtable_kunit_do_syscall() - make a system call from inside the kernel
 * @nr: its number, __NR_*
 * @arg: its six arguments; pointers must be to user memory
 *
 * It works on the address space of the caller, which may be a kernel thread.
 *
 * Return: the result of the system call; -EOPNOTSUPP if this file does not
 * support the architecture.
 */
long pgtable_kunit_do_syscall(unsigned int nr, const unsigned long *arg)
{
#if defined(CONFIG_ARM64)
	/* Newer kernels read the first argument from here too. */
	struct pt_regs regs = {
		.orig_x0 = arg[0],
		.regs = { arg[0], arg[1], arg[2], arg[3], arg[4], arg[5] },
	};

	return sys_call_table[nr](&regs);
#elif defined(CONFIG_X86_64) && !defined(CONFIG_UML)
	struct pt_regs regs = {
		.di = arg[0], .si = arg[1], .dx = arg[2],
		.r10 = arg[3], .r8 = arg[4], .r9 = arg[5],
	};

	return sys_call_table[nr](&regs);
#else
	return -EOPNOTSUPP;
#endif
}
