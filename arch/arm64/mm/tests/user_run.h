/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Small programs that run in user space, and a record of their page faults.
 *
 * A program is an array of instructions. It runs to its end in its own process,
 * with memory that a callback maps. The address space remains for checks.
 */
#ifndef _ARM64_MM_TESTS_USER_RUN_H
#define _ARM64_MM_TESTS_USER_RUN_H

#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/mm.h>

/* The number of faults that are recorded. Further faults are only counted. */
#define USER_FAULTS	1024

/**
 * struct user_fault - a page fault, as it reached the core
 * @addr: the address
 * @flags: FAULT_FLAG_*
 * @vma_locked: the kernel first tried it under the lock of the VMA alone
 */
struct user_fault {
	unsigned long addr;
	unsigned int flags;
	bool vma_locked;
};

/**
 * struct user_run - a program, and how it ended
 * @code: its instructions
 * @nr_code: number of them
 * @regs: the values of X0 and the following registers
 * @prepare: maps memory, called in the new address space; returns 0 or -errno
 * @attend: called while the program runs, in the thread of the test; or NULL
 * @data: for @prepare and @attend
 * @addr: start of the recorded memory; @prepare sets it
 * @size: its size
 * @status: how the process ended, in the form of wait()
 * @err: the error if the process was not started, or 0
 * @mm: its address space
 * @esr: the syndrome of the fault that ended it, if a fault ended it
 * @fault_addr: the address of that fault
 * @si_code: the code of the signal, SEGV_MAPERR and others; 0 for no signal
 * @min_flt: number of minor faults of the process
 * @nr: number of faults on the memory
 * @fault: the first USER_FAULTS of them
 */
struct user_run {
	const u32 *code;
	unsigned int nr_code;
	u64 regs[8];
	int (*prepare)(struct user_run *run);
	void (*attend)(struct user_run *run);
	void *data;
	unsigned long addr;
	unsigned long size;
	int status;
	int err;
	struct mm_struct *mm;
	unsigned long esr;
	unsigned long fault_addr;
	int si_code;
	unsigned long min_flt;
	unsigned int nr;
	struct user_fault fault[USER_FAULTS];
	/* private: */
	struct task_struct *task;
	struct completion loaded;
};

/* After the text there is room for data of system calls. */
#define USER_CODE	0x10000UL
#define USER_SCRATCH	(USER_CODE + PAGE_SIZE / 2)

struct user_run *user_run_alloc(struct kunit *test);
void user_run(struct kunit *test, struct user_run *run);

#endif /* _ARM64_MM_TESTS_USER_RUN_H */
